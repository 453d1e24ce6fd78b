/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declaration specifiers (C 6.7) and attributes. Attributes that change a layout or a call are kept; those that cannot
 * be honoured are errors; all others mean nothing for a type and are skipped.
 */
#include "types/types_int.h"

#include <string.h>

enum types_mode {
	MODE_NONE, MODE_QI, MODE_HI, MODE_SI, MODE_DI, MODE_TI, MODE_WORD, MODE_HF, MODE_SF, MODE_DF, MODE_XF, MODE_TF
};

bool types_starts_type(const struct types_parser *p, const struct types_token *tok)
{
	if (tok->kind != TOK_IDENT)
		return false;
	const struct types_name *n = &p->t->names.data[tok->name];
	if (n->kw)
		return n->kw <= KW_SPEC_LAST || n->kw == KW_UNSUPPORTED;
	return n->ident && types_decl_get(p->t, n->ident)->kind == TYPES_D_TYPEDEF;
}

void types_static_assert(struct types_parser *p)
{
	types_next(p);
	types_expect(p, '(');
	struct types_token at = p->lex.tok;
	bool is_unsigned;
	int64_t v = types_const_expr(p, &is_unsigned);
	const char *text = "";
	if (types_accept(p, ',') && types_is(p, TOK_STR))
		text = types_string(p);
	types_expect(p, ')');
	if (!p->err && !v)
		types_fail(p, &at, "static assertion failed%s%s", *text ? ": " : "", text);
	types_accept(p, ';');
}

/* The number of an attribute's "(n)" or of _Alignas; checked to be an alignment. */
static uint32_t spec_align(struct types_parser *p)
{
	struct types_token at = p->lex.tok;
	bool is_unsigned;
	int64_t v = types_const_expr(p, &is_unsigned);
	if (v < 0 || v > TYPES_ALIGN_MAX || (v & (v - 1)))
		types_fail(p, &at, "an alignment must be a power of two up to %u", TYPES_ALIGN_MAX);
	return p->err ? 0 : (uint32_t)v;
}

static void attr_mode(struct types_parser *p, struct types_attr *ret)
{
	static const struct {
		const char *name;
		enum types_mode mode;
	} rows[] = {
		{"QI", MODE_QI}, {"byte", MODE_QI}, {"HI", MODE_HI}, {"SI", MODE_SI}, {"DI", MODE_DI}, {"TI", MODE_TI},
		{"word", MODE_WORD}, {"pointer", MODE_WORD}, {"unwind_word", MODE_WORD}, {"HF", MODE_HF}, {"SF", MODE_SF},
		{"DF", MODE_DF}, {"XF", MODE_XF}, {"TF", MODE_TF},
	};
	types_expect(p, '(');
	struct types_token at = p->lex.tok;
	char name[32] = "";
	if (at.kind == TOK_IDENT && at.len < sizeof(name)) {
		memcpy(name, at.s, at.len);
		size_t len = at.len;
		if (len > 4 && !memcmp(name, "__", 2) && !memcmp(name + len - 2, "__", 2)) {
			memmove(name, name + 2, len - 4);
			name[len - 4] = 0;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!strcmp(rows[i].name, name))
			ret->mode = rows[i].mode;
	}
	if (!ret->mode)
		types_fail(p, &at, "mode '%s' is not supported", name);
	types_next(p);
	types_expect(p, ')');
}

static void attr_vector(struct types_parser *p, struct types_attr *ret)
{
	types_expect(p, '(');
	struct types_token at = p->lex.tok;
	bool is_unsigned;
	int64_t v = types_const_expr(p, &is_unsigned);
	if (v <= 0)
		types_fail(p, &at, "vector_size must be above 0");
	ret->vector_len = (uint64_t)v;
	types_expect(p, ')');
}

/* Whether attribute `s` is `name` or `__name__`. */
static bool attr_is(const struct types_token *tok, const char *name)
{
	size_t len = strlen(name);
	if (tok->len == len + 4)
		return !memcmp(tok->s, "__", 2) && !memcmp(tok->s + 2 + len, "__", 2) && !memcmp(tok->s + 2, name, len);
	return tok->len == len && !memcmp(tok->s, name, len);
}

static void attr_one(struct types_parser *p, struct types_attr *ret)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} flags[] = {
		{"packed", TYPES_F_PACKED}, {"noreturn", TYPES_F_NORETURN}, {"_Noreturn", TYPES_F_NORETURN},
		{"may_alias", TYPES_F_MAY_ALIAS}, {"transparent_union", TYPES_F_TRANSPARENT}, {"stdcall", TYPES_F_STDCALL},
		{"fastcall", TYPES_F_FASTCALL}, {"ms_abi", TYPES_F_MS_ABI}, {"sysv_abi", TYPES_F_SYSV_ABI},
	};
	struct types_token at = p->lex.tok;
	types_next(p);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (attr_is(&at, flags[i].name))
			ret->flags |= flags[i].flag;
	}
	if (attr_is(&at, "aligned")) {
		uint32_t align = 16;
		if (types_accept(p, '(')) {
			align = spec_align(p);
			types_expect(p, ')');
		}
		ret->align = MAX(ret->align, align);
	} else if (attr_is(&at, "mode")) {
		attr_mode(p, ret);
	} else if (attr_is(&at, "vector_size")) {
		attr_vector(p, ret);
	} else if (attr_is(&at, "ms_struct") && p->says) {
		ret->flags |= TYPES_A_MS_STRUCT;
	} else if (attr_is(&at, "ms_struct")) {
		types_fail(p, &at, "attribute 'ms_struct' is only known of headers, and where libclang is (libclang1-14)");
	} else if (attr_is(&at, "ext_vector_type") || attr_is(&at, "scalar_storage_order") ||
		   attr_is(&at, "address_space") || attr_is(&at, "neon_vector_type")) {
		types_fail(p, &at, "attribute '%.*s' is not supported", (int)MIN(at.len, 64), at.s);
	} else if (types_is(p, '(')) {
		types_skip_group(p);
	}
}

void types_attrs(struct types_parser *p, struct types_attr *ret)
{
	for (;;) {
		bool is_c23 = types_is(p, '[') && p->lex.s < p->lex.end && *p->lex.s == '[';
		if (!is_c23 && types_kw(p) != KW_ATTRIBUTE)
			return;
		types_next(p);
		if (!is_c23)
			types_expect(p, '(');
		types_expect(p, is_c23 ? '[' : '(');
		unsigned close = is_c23 ? ']' : ')';
		while (!types_is(p, close) && !p->err) {
			if (types_is(p, TOK_IDENT)) {
				attr_one(p, ret);
				/* gnu::packed */
				while (types_accept(p, ':'))
					;
			} else if (!types_accept(p, ',')) {
				types_fail(p, &p->lex.tok, "an attribute expected");
			}
		}
		types_expect(p, close);
		types_expect(p, close);
	}
}

static void spec_alignas(struct types_parser *p, struct types_attr *attr)
{
	types_next(p);
	types_expect(p, '(');
	uint32_t align = 0;
	if (types_starts_type(p, &p->lex.tok))
		align = types_align_of(p->t, types_type_name(p));
	else
		align = spec_align(p);
	types_expect(p, ')');
	attr->align = MAX(attr->align, align);
}

static struct types_ref spec_typeof(struct types_parser *p)
{
	struct types_ref r;
	types_next(p);
	types_expect(p, '(');
	if (types_starts_type(p, &p->lex.tok))
		r = types_type_name(p);
	else
		r = types_expr_type(p);
	types_expect(p, ')');
	return r;
}

/* The words seen so far of a basic type. */
struct spec_words {
	unsigned cnt[KW_TYPE_LAST + 1];
	unsigned total;
	struct types_token first;
};

static bool words_are(const struct spec_words *w, unsigned total, enum types_kw kw)
{
	return w->total == total && w->cnt[kw] == 1;
}

static enum types_base words_int(const struct spec_words *w)
{
	unsigned sign = w->cnt[KW_SIGNED] + w->cnt[KW_UNSIGNED];
	unsigned rest = w->total - sign;
	bool u = w->cnt[KW_UNSIGNED];
	if (sign > 1)
		return TYPES_B_COUNT;
	if (words_are(w, sign + 1, KW_CHAR))
		return u ? TYPES_B_UCHAR : sign ? TYPES_B_SCHAR : TYPES_B_CHAR;
	if (words_are(w, sign + 1, KW_INT128))
		return u ? TYPES_B_UINT128 : TYPES_B_INT128;
	if (words_are(w, sign + 1, KW_INT8))
		return u ? TYPES_B_UCHAR : TYPES_B_SCHAR;
	if (words_are(w, sign + 1, KW_INT16))
		return u ? TYPES_B_USHORT : TYPES_B_SHORT;
	if (words_are(w, sign + 1, KW_INT32))
		return u ? TYPES_B_UINT : TYPES_B_INT;
	if (words_are(w, sign + 1, KW_INT64))
		return u ? TYPES_B_ULLONG : TYPES_B_LLONG;
	if (w->cnt[KW_INT] > 1)
		return TYPES_B_COUNT;
	rest -= w->cnt[KW_INT];
	if (!rest && (sign || w->cnt[KW_INT]))
		return u ? TYPES_B_UINT : TYPES_B_INT;
	if (rest == 1 && w->cnt[KW_SHORT])
		return u ? TYPES_B_USHORT : TYPES_B_SHORT;
	if (rest == 1 && w->cnt[KW_LONG])
		return u ? TYPES_B_ULONG : TYPES_B_LONG;
	if (rest == 2 && w->cnt[KW_LONG] == 2)
		return u ? TYPES_B_ULLONG : TYPES_B_LLONG;
	return TYPES_B_COUNT;
}

static enum types_base words_base(const struct spec_words *w)
{
	static const struct {
		enum types_kw kw;
		enum types_base base;
	} rows[] = {
		{KW_VOID, TYPES_B_VOID}, {KW_BOOL, TYPES_B_BOOL}, {KW_FLOAT, TYPES_B_FLOAT}, {KW_DOUBLE, TYPES_B_DOUBLE},
		{KW_FLOAT16, TYPES_B_FLOAT16}, {KW_FLOAT32, TYPES_B_FLOAT32}, {KW_FLOAT64, TYPES_B_FLOAT64},
		{KW_FLOAT32X, TYPES_B_FLOAT32X}, {KW_FLOAT64X, TYPES_B_FLOAT64X}, {KW_FLOAT128, TYPES_B_FLOAT128},
		{KW_FLOAT80, TYPES_B_FLOAT80}, {KW_DEC32, TYPES_B_DEC32}, {KW_DEC64, TYPES_B_DEC64},
		{KW_DEC128, TYPES_B_DEC128}, {KW_VALIST, TYPES_B_VALIST},
	};
	if (w->total == 2 && w->cnt[KW_LONG] == 1 && w->cnt[KW_DOUBLE])
		return TYPES_B_LDOUBLE;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (words_are(w, 1, rows[i].kw))
			return rows[i].base;
	}
	return words_int(w);
}

static struct types_ref words_type(struct types_parser *p, struct spec_words *w)
{
	bool is_complex = w->cnt[KW_COMPLEX] == 1;
	w->total -= is_complex;
	enum types_base b = is_complex && !w->total ? TYPES_B_DOUBLE : words_base(w);
	if (b == TYPES_B_COUNT || (is_complex && (b == TYPES_B_VOID || b == TYPES_B_VALIST || b == TYPES_B_BOOL))) {
		types_fail(p, &w->first, "these words make no type");
		return (struct types_ref){0};
	}
	if (b != TYPES_B_VOID && !p->t->row->base[b].len) {
		types_fail(p, &w->first, "this target has no such type");
		return (struct types_ref){0};
	}
	struct types_ref r = is_complex ? types_complex(p->t, b) : (struct types_ref){p->t->base_id[b], 0};
	if (!r.id)
		types_fail_full(p);
	return r;
}

/* Storage classes, qualifiers and other words that name no type; false when the token is something else. */
static bool spec_word(struct types_parser *p, enum types_kw kw, struct types_spec *ret)
{
	switch (kw) {
	case KW_CONST:
		ret->type.quals |= TYPES_CONST;
		break;
	case KW_VOLATILE:
		ret->type.quals |= TYPES_VOLATILE;
		break;
	case KW_RESTRICT:
		ret->type.quals |= TYPES_RESTRICT;
		break;
	case KW_TYPEDEF:
		ret->is_typedef = true;
		break;
	case KW_STATIC:
		ret->is_static = true;
		break;
	case KW_EXTERN:
		ret->is_extern = true;
		break;
	case KW_NORETURN:
		ret->attr.flags |= TYPES_F_NORETURN;
		break;
	case KW_STDCALL:
		ret->attr.flags |= TYPES_F_STDCALL;
		break;
	case KW_FASTCALL:
		ret->attr.flags |= TYPES_F_FASTCALL;
		break;
	case KW_INLINE:
	case KW_REGISTER:
	case KW_AUTO:
	case KW_THREAD:
	case KW_EXTENSION:
	case KW_CDECL:
		break;
	default:
		return false;
	}
	ret->is_storage |= kw == KW_REGISTER || kw == KW_AUTO || kw == KW_THREAD;
	types_next(p);
	return true;
}

/* _Atomic(type) and the qualifier _Atomic. */
static void spec_atomic(struct types_parser *p, struct types_spec *ret)
{
	struct types_token at = p->lex.tok;
	types_next(p);
	ret->type.quals |= TYPES_ATOMIC;
	if (!types_accept(p, '('))
		return;
	if (ret->type.id)
		types_fail(p, &at, "two types in one declaration");
	struct types_ref r = types_type_name(p);
	types_expect(p, ')');
	ret->type = (struct types_ref){r.id, ret->type.quals | r.quals};
}

/* A specifier that is, or holds, a type; false when the token is something else. */
static bool spec_type(struct types_parser *p, enum types_kw kw, struct spec_words *w, struct types_spec *ret)
{
	struct types_token at = p->lex.tok;
	bool has_type = ret->type.id || w->total;
	struct types_ref r = {0};
	if (kw > KW_NONE && kw <= KW_TYPE_LAST) {
		if (ret->type.id) {
			types_fail(p, &at, "two types in one declaration");
			return true;
		}
		if (!w->total++)
			w->first = at;
		w->cnt[kw]++;
		types_next(p);
		return true;
	}
	if (kw == KW_STRUCT || kw == KW_UNION || kw == KW_ENUM) {
		r = types_tagged(p);
	} else if (kw == KW_TYPEOF) {
		r = spec_typeof(p);
	} else if (kw == KW_NONE && types_is(p, TOK_IDENT) && !has_type && types_starts_type(p, &at)) {
		r = types_decl_get(p->t, p->t->names.data[at.name].ident)->type;
		types_next(p);
	} else {
		return false;
	}
	if (has_type)
		types_fail(p, &at, "two types in one declaration");
	ret->type = (struct types_ref){r.id, ret->type.quals | r.quals};
	return true;
}

static void specs_inner(struct types_parser *p, struct types_spec *ret)
{
	struct spec_words w = {0};
	struct types_token at = p->lex.tok;
	while (!p->err) {
		enum types_kw kw = types_kw(p);
		if (kw == KW_UNSUPPORTED)
			types_fail(p, &p->lex.tok, "'%s' is not supported", types_tok_name(p));
		else if (kw == KW_ATTRIBUTE || types_is(p, '['))
			types_attrs(p, &ret->attr);
		else if (kw == KW_ALIGNAS)
			spec_alignas(p, &ret->attr);
		else if (kw == KW_ATOMIC)
			spec_atomic(p, ret);
		else if (kw == KW_DECLSPEC) {
			types_next(p);
			types_skip_group(p);
		} else if (!spec_word(p, kw, ret) && !spec_type(p, kw, &w, ret))
			break;
		if (types_is(p, '[') && !(p->lex.s < p->lex.end && *p->lex.s == '['))
			break;
	}
	if (w.total) {
		struct types_ref r = words_type(p, &w);
		ret->type.id = r.id;
	}
	if (p->err || ret->type.id)
		return;
	if (at.kind == TOK_IDENT && !p->t->names.data[at.name].kw)
		types_fail(p, &at, "unknown type name '%.100s'", p->t->names.data[at.name].s);
	else if (types_is(p, TOK_EOF))
		types_fail(p, &p->lex.tok, "a type expected, but the text ends");
	else
		types_fail(p, &p->lex.tok, "a type expected before '%.*s'", (int)MIN(p->lex.tok.len, 64), p->lex.tok.s);
}

void types_specs(struct types_parser *p, struct types_spec *ret)
{
	*ret = (struct types_spec){0};
	if (types_enter(p))
		specs_inner(p, ret);
	types_leave(p);
}

static enum types_base mode_base(const struct types *t, uint32_t mode, bool is_unsigned)
{
	bool is_lp64 = t->row->ptr_len == 8;
	switch ((enum types_mode)mode) {
	case MODE_QI:
		return is_unsigned ? TYPES_B_UCHAR : TYPES_B_SCHAR;
	case MODE_HI:
		return is_unsigned ? TYPES_B_USHORT : TYPES_B_SHORT;
	case MODE_SI:
		return is_unsigned ? TYPES_B_UINT : TYPES_B_INT;
	case MODE_WORD:
		if (!is_lp64)
			return is_unsigned ? TYPES_B_UINT : TYPES_B_INT;
		return is_unsigned ? TYPES_B_ULONG : TYPES_B_LONG;
	case MODE_DI:
		if (!is_lp64)
			return is_unsigned ? TYPES_B_ULLONG : TYPES_B_LLONG;
		return is_unsigned ? TYPES_B_ULONG : TYPES_B_LONG;
	case MODE_TI:
		return is_unsigned ? TYPES_B_UINT128 : TYPES_B_INT128;
	case MODE_HF:
		return TYPES_B_FLOAT16;
	case MODE_SF:
		return TYPES_B_FLOAT;
	case MODE_DF:
		return TYPES_B_DOUBLE;
	case MODE_XF:
		return t->row->base[TYPES_B_FLOAT80].len ? TYPES_B_LDOUBLE : TYPES_B_COUNT;
	case MODE_TF:
		return t->row->base[TYPES_B_FLOAT80].len ? TYPES_B_FLOAT128 : TYPES_B_LDOUBLE;
	case MODE_NONE:
		break;
	}
	return TYPES_B_COUNT;
}

static struct types_ref apply_mode(struct types_parser *p, struct types_ref r, uint32_t mode, const struct types_token *at)
{
	const struct types_type *rec = types_get(p->t, types_real(p->t, r).id);
	bool is_float = mode >= MODE_HF;
	const struct types_type *i = rec->kind == TYPES_ENUM ? types_get(p->t, rec->target.id) : rec;
	bool is_complex = rec->kind == TYPES_COMPLEX && is_float;
	if (is_float ? rec->kind != TYPES_FLOAT && !is_complex : i->kind != TYPES_INT) {
		/* mode(word) and mode(pointer) of a pointer change nothing. */
		if (rec->kind == TYPES_POINTER && mode == MODE_WORD)
			return r;
		types_fail(p, at, "this mode does not fit the type");
		return r;
	}
	enum types_base b = mode_base(p->t, mode, !is_float && !p->t->row->base[i->base].is_signed);
	if (b == TYPES_B_COUNT || !p->t->row->base[b].len) {
		types_fail(p, at, "this target has no such mode");
		return r;
	}
	uint32_t id = is_complex ? types_complex(p->t, b).id : p->t->base_id[b];
	return (struct types_ref){id, types_real(p->t, r).quals};
}

/* A copy of function type `r` with more flags, also behind pointers and arrays. Typedefs are not changed. */
static struct types_ref apply_func(struct types_parser *p, struct types_ref r, uint32_t flags)
{
	uint32_t chain[TYPES_DEPTH_MAX];
	size_t cnt = 0;
	uint32_t id = r.id;
	while (cnt < ARRAY_LEN(chain) && (types_get(p->t, id)->kind == TYPES_POINTER || types_get(p->t, id)->kind == TYPES_ARRAY)) {
		chain[cnt++] = id;
		id = types_get(p->t, id)->target.id;
	}
	struct types_type rec = *types_get(p->t, id);
	if (rec.kind == TYPES_TYPEDEF)
		rec = *types_get(p->t, rec.real.id);
	if (rec.kind != TYPES_FUNC || (rec.flags & flags) == flags)
		return r;
	rec.flags |= flags;
	id = types_add(p->t, &rec);
	while (id && cnt) {
		rec = *types_get(p->t, chain[--cnt]);
		rec.target.id = id;
		id = types_add(p->t, &rec);
	}
	if (!id)
		types_fail_full(p);
	return (struct types_ref){id, r.quals};
}

struct types_ref types_apply(struct types_parser *p, struct types_ref r, const struct types_attr *attr,
			     const struct types_token *at)
{
	if (p->err || !r.id)
		return r;
	if (attr->mode)
		r = apply_mode(p, r, attr->mode, at);
	if (attr->vector_len && !p->err) {
		const char *why = NULL;
		struct types_ref v = types_vector(p->t, r, attr->vector_len, &why);
		if (why)
			types_fail(p, at, "%s", why);
		else if (!v.id)
			types_fail_full(p);
		r.id = v.id;
	}
	uint32_t flags = attr->flags & (TYPES_F_NORETURN | TYPES_F_CONVENTIONS);
	return flags && !p->err ? apply_func(p, r, flags) : r;
}
