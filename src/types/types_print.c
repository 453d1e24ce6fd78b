/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types as canonical C. A declarator is printed in two halves around its name: what stands left of it and what stands right.
 * Structs without a tag are printed by the typedef that names them, else with their members in place; members that share
 * such a struct are printed as one declaration, as they must have been written.
 */
#include "types/types_int.h"

#include "base/bits.h"

#include <string.h>

#define PRINT_TAB_MAX 200

static void print_body(const struct types *t, uint32_t id, unsigned tabs, struct buf *ret);
static void print_declr(const struct types *t, struct types_ref r, const char *name, unsigned tabs, struct buf *ret);

static const char *const base_words[TYPES_B_COUNT] = {
	[TYPES_B_BOOL] = "_Bool", [TYPES_B_CHAR] = "char", [TYPES_B_SCHAR] = "signed char", [TYPES_B_UCHAR] = "unsigned char",
	[TYPES_B_SHORT] = "short", [TYPES_B_USHORT] = "unsigned short", [TYPES_B_INT] = "int", [TYPES_B_UINT] = "unsigned int",
	[TYPES_B_LONG] = "long", [TYPES_B_ULONG] = "unsigned long", [TYPES_B_LLONG] = "long long",
	[TYPES_B_ULLONG] = "unsigned long long", [TYPES_B_INT128] = "__int128", [TYPES_B_UINT128] = "unsigned __int128",
	[TYPES_B_FLOAT16] = "_Float16", [TYPES_B_FLOAT] = "float", [TYPES_B_DOUBLE] = "double",
	[TYPES_B_LDOUBLE] = "long double", [TYPES_B_FLOAT32] = "_Float32", [TYPES_B_FLOAT64] = "_Float64",
	[TYPES_B_FLOAT32X] = "_Float32x", [TYPES_B_FLOAT64X] = "_Float64x", [TYPES_B_FLOAT128] = "_Float128",
	[TYPES_B_FLOAT80] = "__float80", [TYPES_B_DEC32] = "_Decimal32", [TYPES_B_DEC64] = "_Decimal64",
	[TYPES_B_DEC128] = "_Decimal128", [TYPES_B_VOID] = "void", [TYPES_B_VALIST] = "__builtin_va_list",
};

static void print_tabs(unsigned tabs, struct buf *ret)
{
	for (unsigned i = 0; i < tabs; i++)
		buf_add_ch(ret, '\t');
}

static void print_quals(uint32_t quals, struct buf *ret)
{
	static const char *const words[] = {"const ", "volatile ", "restrict ", "_Atomic "};
	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		if (quals >> i & 1)
			buf_add_str(ret, words[i]);
	}
}

/* " __attribute__((a, b))" from flags and an alignment; nothing when there are none. */
static void print_attrs(uint32_t flags, uint32_t align, struct buf *ret)
{
	static const struct {
		uint32_t flag;
		const char *word;
	} rows[] = {
		{TYPES_F_PACKED, "packed"}, {TYPES_F_NORETURN, "noreturn"}, {TYPES_F_MAY_ALIAS, "may_alias"},
		{TYPES_F_TRANSPARENT, "transparent_union"}, {TYPES_F_STDCALL, "stdcall"}, {TYPES_F_FASTCALL, "fastcall"},
		{TYPES_F_MS_ABI, "ms_abi"}, {TYPES_F_SYSV_ABI, "sysv_abi"},
	};
	const char *sep = " __attribute__((";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!(flags & rows[i].flag))
			continue;
		buf_add_str(ret, sep);
		buf_add_str(ret, rows[i].word);
		sep = ", ";
	}
	if (align) {
		buf_add_str(ret, sep);
		buf_printf(ret, "aligned(%u)", align);
		sep = ", ";
	}
	if (*sep == ',')
		buf_add_str(ret, "))");
}

static bool is_tagged(const struct types_type *rec)
{
	return rec->kind == TYPES_STRUCT || rec->kind == TYPES_UNION || rec->kind == TYPES_ENUM;
}

/* The type the specifiers stand for: below all pointers, arrays and functions. */
static struct types_ref print_core(const struct types *t, struct types_ref r)
{
	for (;;) {
		const struct types_type *rec = types_get(t, r.id);
		if (rec->kind != TYPES_POINTER && rec->kind != TYPES_ARRAY && rec->kind != TYPES_FUNC)
			return r;
		r = rec->target;
	}
}

/* A type that must be printed with its members where it is used. */
static bool is_inline(const struct types *t, struct types_ref core)
{
	const struct types_type *rec = types_get(t, core.id);
	return is_tagged(rec) && !rec->name && !rec->alias;
}

static const char *tagged_word(enum types_kind kind)
{
	return kind == TYPES_STRUCT ? "struct" : kind == TYPES_UNION ? "union" : "enum";
}

/* The specifiers: a type that is no pointer, array or function. */
static void print_specs(const struct types *t, struct types_ref core, unsigned tabs, struct buf *ret)
{
	const struct types_type *rec = types_get(t, core.id);
	print_quals(core.quals, ret);
	if (rec->kind == TYPES_VECTOR) {
		print_specs(t, rec->target, tabs, ret);
		buf_printf(ret, " __attribute__((vector_size(%llu)))", (unsigned long long)rec->len);
	} else if (rec->kind == TYPES_COMPLEX) {
		buf_add_str(ret, "_Complex ");
		print_specs(t, rec->target, tabs, ret);
	} else if (rec->kind == TYPES_TYPEDEF) {
		buf_add_str(ret, rec->name);
	} else if (is_tagged(rec) && rec->alias) {
		buf_add_str(ret, types_get(t, rec->alias)->name);
	} else if (is_tagged(rec) && rec->name) {
		buf_printf(ret, "%s %s", tagged_word(rec->kind), rec->name);
	} else if (is_tagged(rec)) {
		print_body(t, core.id, tabs, ret);
	} else if (rec->kind != TYPES_NONE) {
		buf_add_str(ret, base_words[rec->base]);
	}
}

static bool binds_tighter(const struct types *t, struct types_ref r)
{
	enum types_kind kind = types_get(t, r.id)->kind;
	return kind == TYPES_ARRAY || kind == TYPES_FUNC;
}

static void print_left(const struct types *t, struct types_ref r, struct buf *ret)
{
	const struct types_type *rec = types_get(t, r.id);
	if (rec->kind != TYPES_POINTER && rec->kind != TYPES_ARRAY && rec->kind != TYPES_FUNC)
		return;
	print_left(t, rec->target, ret);
	if (rec->kind != TYPES_POINTER)
		return;
	buf_add_str(ret, binds_tighter(t, rec->target) ? "(*" : "*");
	print_quals(r.quals, ret);
}

static void print_params(const struct types *t, const struct types_type *rec, unsigned tabs, struct buf *ret)
{
	buf_add_ch(ret, '(');
	for (uint32_t i = 0; i < rec->sub_cnt; i++) {
		const struct types_param *param = &t->params.data[rec->first + i];
		if (i)
			buf_add_str(ret, ", ");
		print_declr(t, param->type, param->name, tabs, ret);
	}
	if (rec->flags & TYPES_F_VARIADIC)
		buf_add_str(ret, ", ...");
	else if (!rec->sub_cnt && !(rec->flags & TYPES_F_NOPROTO))
		buf_add_str(ret, "void");
	buf_add_ch(ret, ')');
}

static void print_right(const struct types *t, struct types_ref r, unsigned tabs, struct buf *ret)
{
	for (;;) {
		const struct types_type *rec = types_get(t, r.id);
		if (rec->kind == TYPES_POINTER) {
			if (binds_tighter(t, rec->target))
				buf_add_ch(ret, ')');
		} else if (rec->kind == TYPES_ARRAY) {
			if (rec->flags & TYPES_F_OPEN)
				buf_add_str(ret, "[]");
			else
				buf_printf(ret, "[%llu]", (unsigned long long)rec->cnt);
		} else if (rec->kind == TYPES_FUNC) {
			print_params(t, rec, tabs, ret);
		} else {
			return;
		}
		r = rec->target;
	}
}

/* Attributes of the outermost function, which is the one that a declarator's attributes mean. */
static uint32_t func_flags(const struct types *t, struct types_ref r)
{
	const struct types_type *rec = types_get(t, r.id);
	while (rec->kind == TYPES_POINTER || rec->kind == TYPES_ARRAY)
		rec = types_get(t, rec->target.id);
	return rec->kind == TYPES_FUNC ? rec->flags & (TYPES_F_NORETURN | TYPES_F_CONVENTIONS) : 0;
}

/* A declarator without its specifiers. */
static void print_bare(const struct types *t, struct types_ref r, const char *name, unsigned tabs, struct buf *ret)
{
	size_t from = ret->len;
	print_left(t, r, ret);
	if (name) {
		buf_add_str(ret, name);
	} else if (ret->len > from && ret->data[ret->len - 1] == ' ') {
		/* "* const " of a nameless pointer. */
		ret->len--;
	}
	print_right(t, r, tabs, ret);
}

static void print_declr(const struct types *t, struct types_ref r, const char *name, unsigned tabs, struct buf *ret)
{
	print_specs(t, print_core(t, r), tabs, ret);
	if (name || types_get(t, r.id)->kind == TYPES_POINTER || binds_tighter(t, r))
		buf_add_ch(ret, ' ');
	print_bare(t, r, name, tabs, ret);
	print_attrs(func_flags(t, r), 0, ret);
}

static void print_member(const struct types *t, const struct types_member *m, bool is_joined, unsigned tabs, struct buf *ret)
{
	struct types_ref core = print_core(t, m->type);
	if (!is_joined)
		print_specs(t, core, tabs, ret);
	if (m->name || m->is_bitfield) {
		buf_add_ch(ret, ' ');
		print_bare(t, m->type, m->name, tabs, ret);
	}
	if (m->is_bitfield)
		buf_printf(ret, "%s: %u", m->name ? " " : "", m->bit_len);
	/* What an anonymous member has, #pragma pack of its struct gave it. */
	if (m->name || m->is_bitfield)
		print_attrs((m->is_packed ? TYPES_F_PACKED : 0) | func_flags(t, m->type), m->user_align, ret);
}

static bool is_joined(const struct types *t, const struct types_member *m, const struct types_member *before)
{
	struct types_ref a = print_core(t, m->type), b = print_core(t, before->type);
	return a.id == b.id && a.quals == b.quals && is_inline(t, a) && m->name && before->name;
}

/* The end of a declaration, and of the pragma that stands before the closing brace of a struct printed in it. */
static void print_end(const struct types *t, uint32_t inner, struct buf *ret)
{
	buf_add_str(ret, ";\n");
	if (types_get(t, inner)->pack)
		buf_add_str(ret, "#pragma pack(pop)\n");
}

/* The struct whose members are printed where this type is used; 0: none. */
static uint32_t inline_id(const struct types *t, struct types_ref r)
{
	struct types_ref core = print_core(t, r);
	return is_inline(t, core) ? core.id : 0;
}

static void print_consts(const struct types *t, const struct types_type *rec, unsigned tabs, struct buf *ret)
{
	for (uint32_t i = 0; i < rec->sub_cnt; i++) {
		const struct types_const *c = &t->consts.data[rec->first + i];
		print_tabs(tabs + 1, ret);
		buf_add_str(ret, c->name);
		if (c->is_unsigned)
			buf_printf(ret, " = %lluU,\n", (unsigned long long)c->value);
		else if (c->value == INT64_MIN)
			buf_add_str(ret, " = -9223372036854775807 - 1,\n");
		else
			buf_printf(ret, " = %lld,\n", (long long)c->value);
	}
}

/* A struct, union or enum with its content. */
static void print_body(const struct types *t, uint32_t id, unsigned tabs, struct buf *ret)
{
	const struct types_type *rec = types_get(t, id);
	tabs = MIN(tabs, PRINT_TAB_MAX);
	buf_printf(ret, "%s%s%s {\n", tagged_word(rec->kind), rec->name ? " " : "", rec->name ? rec->name : "");
	if (rec->kind == TYPES_ENUM) {
		print_consts(t, rec, tabs, ret);
	} else {
		for (uint32_t i = 0; i < rec->sub_cnt; i++) {
			const struct types_member *m = &t->members.data[rec->first + i];
			bool joined = i && is_joined(t, m, m - 1);
			if (joined)
				buf_add_ch(ret, ',');
			else if (i)
				print_end(t, inline_id(t, m[-1].type), ret);
			if (!joined)
				print_tabs(tabs + 1, ret);
			print_member(t, m, joined, tabs + 1, ret);
		}
		if (rec->sub_cnt)
			print_end(t, inline_id(t, t->members.data[rec->first + rec->sub_cnt - 1].type), ret);
	}
	if (rec->pack)
		buf_printf(ret, "#pragma pack(push, %u)\n", rec->pack);
	print_tabs(tabs, ret);
	buf_add_ch(ret, '}');
	uint32_t kept = TYPES_F_PACKED | TYPES_F_MAY_ALIAS | TYPES_F_TRANSPARENT;
	print_attrs(rec->flags & kept, rec->user_align, ret);
}

void types_print(const struct types *t, struct types_ref r, const char *name, struct buf *ret)
{
	print_declr(t, r, name && *name ? name : NULL, 0, ret);
}

static void print_typedef(const struct types *t, const struct types_type *rec, struct buf *ret)
{
	const struct types_type *target = types_get(t, rec->target.id);
	uint32_t inner = inline_id(t, rec->target);
	buf_add_str(ret, "typedef ");
	/* The typedef that names a struct without a tag is where its members stand. */
	if (is_tagged(target) && target->alias && types_get(t, target->alias) == rec) {
		print_body(t, rec->target.id, 0, ret);
		buf_printf(ret, " %s", rec->name);
		inner = rec->target.id;
	} else {
		print_declr(t, rec->target, rec->name, 0, ret);
	}
	print_attrs(rec->flags & TYPES_F_MAY_ALIAS, rec->user_align, ret);
	print_end(t, inner, ret);
}

static void print_object(const struct types *t, const struct types_decl *d, struct buf *ret)
{
	if (d->is_static)
		buf_add_str(ret, "static ");
	else if (d->kind == TYPES_D_VAR)
		buf_add_str(ret, "extern ");
	print_specs(t, print_core(t, d->type), 0, ret);
	buf_add_ch(ret, ' ');
	print_bare(t, d->type, d->name, 0, ret);
	if (d->asm_name)
		buf_printf(ret, " asm(\"%s\")", d->asm_name);
	print_attrs(func_flags(t, d->type), 0, ret);
	print_end(t, inline_id(t, d->type), ret);
}

void types_print_decl(const struct types *t, uint32_t idx, struct buf *ret)
{
	const struct types_decl *d = types_decl_get(t, idx);
	const struct types_type *rec = types_get(t, d->type.id);
	switch (d->kind) {
	case TYPES_D_TYPEDEF:
		print_typedef(t, rec, ret);
		break;
	case TYPES_D_FUNC:
	case TYPES_D_VAR:
		print_object(t, d, ret);
		break;
	case TYPES_D_TAG:
	case TYPES_D_CONST:
		if (rec->alias) {
			print_typedef(t, types_get(t, rec->alias), ret);
		} else if (rec->flags & TYPES_F_COMPLETE) {
			print_body(t, d->type.id, 0, ret);
			print_end(t, d->type.id, ret);
		} else if (rec->name) {
			buf_printf(ret, "%s %s;\n", tagged_word(rec->kind), rec->name);
		}
		break;
	}
}

static int print_by_order(const void *a, const void *b, void *ctx)
{
	const struct types *t = ctx;
	uint32_t x = t->decls.data[*(const uint32_t *)a].order, y = t->decls.data[*(const uint32_t *)b].order;
	return (x > y) - (x < y);
}

/*
 * Constants are printed with their enum. One without tag and typedef stands where its first constant was declared, unless
 * it is part of another declaration, which prints it: `inlined` holds those.
 */
static bool print_is_own(const struct types *t, const struct types_decl *d, const uint64_t *inlined)
{
	const struct types_type *rec = types_get(t, d->type.id);
	if (d->is_builtin)
		return false;
	if (d->kind != TYPES_D_CONST)
		return true;
	return !rec->name && !rec->alias && rec->sub_cnt && t->consts.data[rec->first].name == d->name &&
	       !bits_get(inlined, d->type.id);
}

/* Marks the types whose content is printed within something else. */
static void print_mark_inlined(const struct types *t, uint64_t *inlined)
{
	for (size_t i = 0; i < t->members.cnt; i++)
		bits_set(inlined, print_core(t, t->members.data[i].type).id);
	for (size_t i = 0; i < t->params.cnt; i++)
		bits_set(inlined, print_core(t, t->params.data[i].type).id);
	for (size_t i = 1; i < t->decls.cnt; i++) {
		const struct types_decl *d = &t->decls.data[i];
		struct types_ref r = d->kind == TYPES_D_TYPEDEF ? types_get(t, d->type.id)->target : d->type;
		if (d->kind != TYPES_D_CONST && d->kind != TYPES_D_TAG)
			bits_set(inlined, print_core(t, r).id);
	}
}

void types_print_all(const struct types *t, struct buf *ret)
{
	_cleanup_free_ uint32_t *list = alloc_array(t->decls.cnt, sizeof(*list));
	_cleanup_free_ uint64_t *inlined = alloc_array(bits_words(t->types.cnt), sizeof(*inlined));
	size_t cnt = 0;
	if (!list || !inlined) {
		ret->failed = true;
		return;
	}
	print_mark_inlined(t, inlined);
	for (uint32_t i = 1; i < t->decls.cnt; i++) {
		if (print_is_own(t, &t->decls.data[i], inlined))
			list[cnt++] = i;
	}
	qsort_r(list, cnt, sizeof(*list), print_by_order, (void *)t);
	for (size_t i = 0; i < cnt && !ret->failed; i++)
		types_print_decl(t, list[i], ret);
}
