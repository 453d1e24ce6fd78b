/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set: names, records and how they are taken back. All records lie in vectors and name each other by index, so that
 * going back to a mark is cutting the vectors; the few records that change after they were made (a forward struct that is
 * completed, a prototype that says more than the one before) are saved first.
 */
#include "types/types.h"

#include "types/types_int.h"

#include <string.h>

#define S(len, align) {len, align, align, true}
#define U(len, align) {len, align, align, false}

#define ROWS_COMMON                                                                                        \
	[TYPES_B_BOOL] = U(1, 1), [TYPES_B_SCHAR] = S(1, 1), [TYPES_B_UCHAR] = U(1, 1), [TYPES_B_SHORT] = S(2, 2), \
	[TYPES_B_USHORT] = U(2, 2), [TYPES_B_INT] = S(4, 4), [TYPES_B_UINT] = U(4, 4), [TYPES_B_FLOAT16] = S(2, 2), \
	[TYPES_B_FLOAT] = S(4, 4), [TYPES_B_FLOAT32] = S(4, 4), [TYPES_B_FLOAT128] = S(16, 16), [TYPES_B_DEC32] = S(4, 4), \
	[TYPES_B_DEC128] = S(16, 16)

#define ROWS_LP64                                                                                          \
	[TYPES_B_LONG] = S(8, 8), [TYPES_B_ULONG] = U(8, 8), [TYPES_B_LLONG] = S(8, 8), [TYPES_B_ULLONG] = U(8, 8), \
	[TYPES_B_INT128] = S(16, 16), [TYPES_B_UINT128] = U(16, 16), [TYPES_B_DOUBLE] = S(8, 8), [TYPES_B_FLOAT64] = S(8, 8), \
	[TYPES_B_FLOAT32X] = S(8, 8), [TYPES_B_DEC64] = S(8, 8), [TYPES_B_LDOUBLE] = S(16, 16), [TYPES_B_FLOAT64X] = S(16, 16)

static const struct types_abi_row types_abi_rows[TYPES_ABI_COUNT] = {
	[TYPES_X86_64] = {
		.base = {ROWS_COMMON, ROWS_LP64, [TYPES_B_CHAR] = S(1, 1), [TYPES_B_FLOAT80] = S(16, 16),
			 [TYPES_B_VALIST] = {24, 8, 8, false}},
		.ptr_len = 8, .size_type = TYPES_B_ULONG, .ptrdiff_type = TYPES_B_LONG, .wchar_type = TYPES_B_INT,
	},
	[TYPES_I386] = {
		.base = {ROWS_COMMON, [TYPES_B_CHAR] = S(1, 1), [TYPES_B_LONG] = S(4, 4), [TYPES_B_ULONG] = U(4, 4),
			 [TYPES_B_LLONG] = {8, 4, 8, true}, [TYPES_B_ULLONG] = {8, 4, 8, false},
			 [TYPES_B_DOUBLE] = {8, 4, 8, true}, [TYPES_B_FLOAT64] = {8, 4, 8, true},
			 [TYPES_B_FLOAT32X] = {8, 4, 8, true}, [TYPES_B_DEC64] = {8, 8, 8, true},
			 [TYPES_B_LDOUBLE] = S(12, 4), [TYPES_B_FLOAT64X] = S(12, 4), [TYPES_B_FLOAT80] = S(12, 4),
			 [TYPES_B_VALIST] = U(4, 4)},
		.ptr_len = 4, .size_type = TYPES_B_UINT, .ptrdiff_type = TYPES_B_INT, .wchar_type = TYPES_B_LONG,
	},
	[TYPES_A64] = {
		.base = {ROWS_COMMON, ROWS_LP64, [TYPES_B_CHAR] = U(1, 1), [TYPES_B_VALIST] = {32, 8, 8, false}},
		.has_anon_align = true,
		.ptr_len = 8, .size_type = TYPES_B_ULONG, .ptrdiff_type = TYPES_B_LONG, .wchar_type = TYPES_B_UINT,
	},
};

static uint64_t types_hash(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
	return h ^ h >> 32;
}

/* The slot that holds the name, or the free one where it would go. */
static size_t types_slot(const struct types *t, const char *s, size_t len)
{
	size_t i = (size_t)types_hash(s, len) & (t->slot_cap - 1);
	for (; t->slots[i]; i = (i + 1) & (t->slot_cap - 1)) {
		const struct types_name *n = &t->names.data[t->slots[i]];
		if (n->len == len && !memcmp(n->s, s, len))
			break;
	}
	return i;
}

uint32_t types_name_find(const struct types *t, const char *s, size_t len)
{
	return t->slots[types_slot(t, s, len)];
}

static bool types_grow_slots(struct types *t)
{
	size_t cap = t->slot_cap ? t->slot_cap * 2 : 1024;
	uint32_t *slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->slot_cap = cap;
	for (uint32_t id = 1; id < t->names.cnt; id++)
		slots[types_slot(t, t->names.data[id].s, t->names.data[id].len)] = id;
	return true;
}

uint32_t types_intern(struct types *t, const char *s, size_t len)
{
	size_t i = types_slot(t, s, len);
	if (t->slots[i])
		return t->slots[i];
	char *copy = t->names.cnt < TYPES_RECORD_MAX && len < UINT32_MAX ? malloc(len + 1) : NULL;
	if (!copy || !VEC_PUSH(&t->names, (struct types_name){.s = copy, .len = (uint32_t)len})) {
		free(copy);
		t->is_full = true;
		return 0;
	}
	memcpy(copy, s, len);
	copy[len] = 0;
	uint32_t id = (uint32_t)t->names.cnt - 1;
	t->slots[i] = id;
	if (t->names.cnt * 2 > t->slot_cap && !types_grow_slots(t)) {
		t->slots[i] = 0;
		free(VEC_POP(&t->names).s);
		t->is_full = true;
		return 0;
	}
	return id;
}

uint32_t types_add(struct types *t, const struct types_type *rec)
{
	if (t->types.cnt >= TYPES_RECORD_MAX || rec->depth > TYPES_DEPTH_MAX || !VEC_PUSH(&t->types, *rec)) {
		t->is_full = true;
		return 0;
	}
	return (uint32_t)t->types.cnt - 1;
}

uint32_t types_decl_add(struct types *t, const struct types_decl *d, uint32_t name)
{
	if (t->decls.cnt >= TYPES_RECORD_MAX || !VEC_PUSH(&t->decls, *d)) {
		t->is_full = true;
		return 0;
	}
	uint32_t idx = (uint32_t)t->decls.cnt - 1;
	struct types_name *n = &t->names.data[name];
	uint32_t *slot = d->kind == TYPES_D_TAG ? &n->tag : &n->ident;
	t->decls.data[idx].is_builtin |= t->is_builtin;
	t->decls.data[idx].prev = *slot;
	t->decls.data[idx].name = n->s;
	t->decls.data[idx].order = ++t->order;
	*slot = idx;
	return idx;
}

struct types_type *types_change(struct types *t, uint32_t id)
{
	if (!VEC_PUSH(&t->saved, (struct types_saved){.idx = id, .type = t->types.data[id]})) {
		t->is_full = true;
		return NULL;
	}
	return &t->types.data[id];
}

struct types_decl *types_decl_change(struct types *t, uint32_t idx)
{
	if (!VEC_PUSH(&t->saved, (struct types_saved){.is_decl = true, .idx = idx, .decl = t->decls.data[idx]})) {
		t->is_full = true;
		return NULL;
	}
	return &t->decls.data[idx];
}

struct types_mark types_mark(const struct types *t)
{
	return (struct types_mark){
		.type_cnt = (uint32_t)t->types.cnt, .member_cnt = (uint32_t)t->members.cnt,
		.param_cnt = (uint32_t)t->params.cnt, .const_cnt = (uint32_t)t->consts.cnt,
		.decl_cnt = (uint32_t)t->decls.cnt, .name_cnt = (uint32_t)t->names.cnt,
		.saved_cnt = (uint32_t)t->saved.cnt, .order = t->order,
	};
}

void types_rewind(struct types *t, const struct types_mark *mark)
{
	while (t->saved.cnt > mark->saved_cnt) {
		const struct types_saved *s = &VEC_POP(&t->saved);
		if (s->is_decl)
			t->decls.data[s->idx] = s->decl;
		else
			t->types.data[s->idx] = s->type;
	}
	while (t->decls.cnt > mark->decl_cnt) {
		const struct types_decl *d = &VEC_POP(&t->decls);
		struct types_name *n = &t->names.data[types_name_find(t, d->name, strlen(d->name))];
		*(d->kind == TYPES_D_TAG ? &n->tag : &n->ident) = d->prev;
	}
	while (t->names.cnt > mark->name_cnt) {
		const struct types_name *n = &t->names.data[t->names.cnt - 1];
		t->slots[types_slot(t, n->s, n->len)] = 0;
		free(VEC_POP(&t->names).s);
	}
	t->types.cnt = mark->type_cnt;
	t->members.cnt = mark->member_cnt;
	t->params.cnt = mark->param_cnt;
	t->consts.cnt = mark->const_cnt;
	t->order = mark->order;
	t->is_full = false;
}

static enum types_kind types_base_kind(enum types_base b)
{
	if (b == TYPES_B_VOID)
		return TYPES_VOID;
	if (b == TYPES_B_VALIST)
		return TYPES_VALIST;
	return b <= TYPES_B_UINT128 ? TYPES_INT : TYPES_FLOAT;
}

static bool types_add_bases(struct types *t)
{
	for (enum types_base b = 0; b < TYPES_B_COUNT; b++) {
		const struct types_base_row *row = &t->row->base[b];
		struct types_type rec = {.kind = types_base_kind(b), .base = b, .depth = 1, .len = row->len, .align = row->align,
					 .flags = row->len ? TYPES_F_COMPLETE : 0};
		t->base_id[b] = types_add(t, &rec);
		if (!t->base_id[b])
			return false;
	}
	return true;
}

static const struct {
	const char *name;
	enum types_kw kw;
} types_keywords[] = {
	{"void", KW_VOID}, {"char", KW_CHAR}, {"short", KW_SHORT}, {"int", KW_INT}, {"long", KW_LONG}, {"float", KW_FLOAT},
	{"double", KW_DOUBLE}, {"signed", KW_SIGNED}, {"__signed", KW_SIGNED}, {"__signed__", KW_SIGNED},
	{"unsigned", KW_UNSIGNED}, {"_Bool", KW_BOOL}, {"_Complex", KW_COMPLEX}, {"__complex__", KW_COMPLEX},
	{"__complex", KW_COMPLEX}, {"__int128", KW_INT128}, {"__int8", KW_INT8}, {"__int16", KW_INT16},
	{"__int32", KW_INT32}, {"__int64", KW_INT64}, {"_Float16", KW_FLOAT16}, {"__fp16", KW_FLOAT16},
	{"_Float32", KW_FLOAT32}, {"_Float64", KW_FLOAT64}, {"_Float32x", KW_FLOAT32X}, {"_Float64x", KW_FLOAT64X},
	{"_Float128", KW_FLOAT128}, {"__float128", KW_FLOAT128}, {"__float80", KW_FLOAT80}, {"_Decimal32", KW_DEC32},
	{"_Decimal64", KW_DEC64}, {"_Decimal128", KW_DEC128}, {"__builtin_va_list", KW_VALIST}, {"struct", KW_STRUCT},
	{"union", KW_UNION}, {"enum", KW_ENUM}, {"typeof", KW_TYPEOF}, {"__typeof", KW_TYPEOF}, {"__typeof__", KW_TYPEOF},
	{"const", KW_CONST}, {"__const", KW_CONST}, {"__const__", KW_CONST}, {"volatile", KW_VOLATILE},
	{"__volatile", KW_VOLATILE}, {"__volatile__", KW_VOLATILE}, {"restrict", KW_RESTRICT}, {"__restrict", KW_RESTRICT},
	{"__restrict__", KW_RESTRICT}, {"_Atomic", KW_ATOMIC}, {"typedef", KW_TYPEDEF}, {"extern", KW_EXTERN},
	{"static", KW_STATIC}, {"inline", KW_INLINE}, {"__inline", KW_INLINE}, {"__inline__", KW_INLINE},
	{"register", KW_REGISTER}, {"auto", KW_AUTO}, {"_Thread_local", KW_THREAD}, {"__thread", KW_THREAD},
	{"_Noreturn", KW_NORETURN}, {"__attribute__", KW_ATTRIBUTE}, {"__attribute", KW_ATTRIBUTE},
	{"__declspec", KW_DECLSPEC}, {"_Alignas", KW_ALIGNAS}, {"__extension__", KW_EXTENSION}, {"__stdcall", KW_STDCALL},
	{"__fastcall", KW_FASTCALL}, {"__cdecl", KW_CDECL}, {"asm", KW_ASM}, {"__asm", KW_ASM}, {"__asm__", KW_ASM},
	{"_Static_assert", KW_STATIC_ASSERT}, {"static_assert", KW_STATIC_ASSERT}, {"sizeof", KW_SIZEOF},
	{"_Alignof", KW_ALIGNOF}, {"__alignof__", KW_ALIGNOF_GNU}, {"__alignof", KW_ALIGNOF_GNU},
	{"__builtin_offsetof", KW_OFFSETOF}, {"offsetof", KW_OFFSETOF},
	{"__builtin_types_compatible_p", KW_TYPES_COMPATIBLE}, {"__builtin_choose_expr", KW_CHOOSE},
	{"__builtin_constant_p", KW_CONSTANT_P}, {"_Generic", KW_GENERIC}, {"_BitInt", KW_UNSUPPORTED},
	{"__auto_type", KW_UNSUPPORTED}, {"_Imaginary", KW_UNSUPPORTED},
};

/* Names people expect to be there without any header; text may give them another meaning. */
static bool types_add_builtins(struct types *t)
{
	const struct {
		const char *name;
		enum types_base base;
	} rows[] = {
		{"int8_t", TYPES_B_SCHAR}, {"uint8_t", TYPES_B_UCHAR}, {"int16_t", TYPES_B_SHORT}, {"uint16_t", TYPES_B_USHORT},
		{"int32_t", TYPES_B_INT}, {"uint32_t", TYPES_B_UINT},
		{"int64_t", t->row->ptr_len == 8 ? TYPES_B_LONG : TYPES_B_LLONG},
		{"uint64_t", t->row->ptr_len == 8 ? TYPES_B_ULONG : TYPES_B_ULLONG},
		{"size_t", t->row->size_type}, {"ssize_t", t->row->ptrdiff_type}, {"ptrdiff_t", t->row->ptrdiff_type},
		{"intptr_t", t->row->ptrdiff_type}, {"uintptr_t", t->row->size_type}, {"wchar_t", t->row->wchar_type},
		{"char16_t", TYPES_B_USHORT}, {"char32_t", TYPES_B_UINT}, {"bool", TYPES_B_BOOL}, {"va_list", TYPES_B_VALIST},
		{"s8", TYPES_B_SCHAR}, {"u8", TYPES_B_UCHAR}, {"s16", TYPES_B_SHORT}, {"u16", TYPES_B_USHORT},
		{"s32", TYPES_B_INT}, {"u32", TYPES_B_UINT}, {"s64", TYPES_B_LLONG}, {"u64", TYPES_B_ULLONG},
		{"_BYTE", TYPES_B_UCHAR}, {"_WORD", TYPES_B_USHORT}, {"_DWORD", TYPES_B_UINT}, {"_QWORD", TYPES_B_ULLONG},
		{"__int128_t", TYPES_B_INT128}, {"__uint128_t", TYPES_B_UINT128},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct types_base_row *base = &t->row->base[rows[i].base];
		if (!base->len)
			continue;
		uint32_t name = types_intern(t, rows[i].name, strlen(rows[i].name));
		if (!name)
			return false;
		struct types_ref target = {t->base_id[rows[i].base], 0};
		struct types_type rec = {.kind = TYPES_TYPEDEF, .flags = TYPES_F_COMPLETE, .len = base->len,
					 .depth = 2, .target = target, .real = target, .name = t->names.data[name].s};
		uint32_t id = types_add(t, &rec);
		struct types_decl d = {.kind = TYPES_D_TYPEDEF, .is_builtin = true, .type = {id, 0}};
		if (!id || !types_decl_add(t, &d, name))
			return false;
	}
	return true;
}

static bool types_setup(struct types *t)
{
	/* Index 0 of each means none. */
	char *empty = calloc(1, 1);
	if (!empty || !VEC_PUSH(&t->names, (struct types_name){.s = empty})) {
		free(empty);
		return false;
	}
	if (!types_grow_slots(t) || !VEC_PUSH(&t->types, (struct types_type){0}) || !VEC_PUSH(&t->decls, (struct types_decl){0}))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(types_keywords); i++) {
		uint32_t id = types_intern(t, types_keywords[i].name, strlen(types_keywords[i].name));
		if (!id)
			return false;
		t->names.data[id].kw = types_keywords[i].kw;
	}
	return types_add_bases(t) && types_add_builtins(t);
}

struct types *types_new(enum types_abi abi)
{
	struct types *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->abi = abi;
	t->row = &types_abi_rows[abi];
	if (types_setup(t))
		return t;
	types_free(t);
	return NULL;
}

void types_free(struct types *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->names.cnt; i++)
		free(t->names.data[i].s);
	VEC_FREE(&t->names);
	free(t->slots);
	VEC_FREE(&t->types);
	VEC_FREE(&t->members);
	VEC_FREE(&t->params);
	VEC_FREE(&t->consts);
	VEC_FREE(&t->decls);
	VEC_FREE(&t->saved);
	free(t);
}

enum types_abi types_abi_of(const struct types *t)
{
	return t->abi;
}

const struct types_type *types_get(const struct types *t, uint32_t id)
{
	return &t->types.data[id < t->types.cnt ? id : 0];
}

struct types_ref types_real(const struct types *t, struct types_ref r)
{
	const struct types_type *rec = types_get(t, r.id);
	if (rec->kind != TYPES_TYPEDEF)
		return r;
	return (struct types_ref){rec->real.id, rec->real.quals | r.quals};
}

const struct types_member *types_members(const struct types *t, uint32_t id, uint32_t *ret_cnt)
{
	const struct types_type *rec = types_get(t, id);
	bool is_right = rec->kind == TYPES_STRUCT || rec->kind == TYPES_UNION;
	*ret_cnt = is_right ? rec->sub_cnt : 0;
	return *ret_cnt ? t->members.data + rec->first : NULL;
}

const struct types_param *types_params(const struct types *t, uint32_t id, uint32_t *ret_cnt)
{
	const struct types_type *rec = types_get(t, id);
	*ret_cnt = rec->kind == TYPES_FUNC ? rec->sub_cnt : 0;
	return *ret_cnt ? t->params.data + rec->first : NULL;
}

const struct types_const *types_consts(const struct types *t, uint32_t id, uint32_t *ret_cnt)
{
	const struct types_type *rec = types_get(t, id);
	*ret_cnt = rec->kind == TYPES_ENUM ? rec->sub_cnt : 0;
	return *ret_cnt ? t->consts.data + rec->first : NULL;
}

uint32_t types_decl_cnt(const struct types *t)
{
	return (uint32_t)t->decls.cnt;
}

const struct types_decl *types_decl_get(const struct types *t, uint32_t idx)
{
	return &t->decls.data[idx < t->decls.cnt ? idx : 0];
}

uint32_t types_find(const struct types *t, const char *name, size_t len, bool tags)
{
	const struct types_name *n = &t->names.data[types_name_find(t, name, len)];
	return tags ? n->tag : n->ident;
}
