/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types from records in place of text. A struct comes with the places of its members and must get a C spelling that
 * gives them the same ones. Tried in this order: the members as they are; with `aligned` where one stands further on than it
 * must; packed, with the gaps filled; and when even that does not do (members that overlap), bytes.
 */
#include "types/types_int.h"

#include <stdio.h>
#include <string.h>

#define BUILD_ALIGN_TRIES 32
#define BUILD_ALIGN_MAX 4096u

void types_set_builtin(struct types *t, bool on)
{
	t->is_builtin = on;
}

bool types_is_builtin(const struct types *t)
{
	return t->is_builtin;
}

static struct types_ref built(struct types *t, uint32_t id)
{
	t->is_full = false;
	return (struct types_ref){id, 0};
}

static bool too_deep(const struct types *t, struct types_ref r)
{
	return types_get(t, r.id)->depth + 2 > TYPES_DEPTH_MAX || t->types.cnt + 1 >= TYPES_RECORD_MAX;
}

struct types_ref types_build_base(struct types *t, enum types_base b)
{
	return (struct types_ref){t->base_id[b], 0};
}

struct types_ref types_build_pointer(struct types *t, struct types_ref target)
{
	return too_deep(t, target) ? (struct types_ref){0} : types_pointer(t, target);
}

struct types_ref types_build_array(struct types *t, struct types_ref elem, uint64_t cnt, bool is_open)
{
	const char *why;
	return too_deep(t, elem) ? (struct types_ref){0} : types_array(t, elem, cnt, is_open, &why);
}

struct types_ref types_build_vector(struct types *t, struct types_ref elem, uint64_t len)
{
	const char *why;
	return too_deep(t, elem) ? (struct types_ref){0} : types_vector(t, elem, len, &why);
}

struct types_ref types_build_func(struct types *t, struct types_ref result, const struct types_param *params, uint32_t cnt, uint32_t flags)
{
	uint32_t depth = types_get(t, result.id)->depth;
	if (t->params.cnt + cnt > TYPES_RECORD_MAX || (cnt && !VEC_RESERVE(&t->params, cnt)))
		return (struct types_ref){0};
	struct types_type rec = {.kind = TYPES_FUNC, .target = result, .flags = flags, .first = (uint32_t)t->params.cnt, .sub_cnt = cnt};
	for (uint32_t i = 0; i < cnt; i++) {
		struct types_param p = {.type = params[i].type};
		uint32_t name = params[i].name ? types_intern(t, params[i].name, strlen(params[i].name)) : 0;
		p.name = name && !t->names.data[name].kw ? t->names.data[name].s : NULL;
		depth = MAX(depth, types_get(t, p.type.id)->depth);
		t->params.data[t->params.cnt++] = p;
	}
	rec.depth = depth + 1;
	return built(t, types_add(t, &rec));
}

struct types_ref types_build_tag(struct types *t, enum types_kind kind, const char *name, size_t len)
{
	uint32_t n = len ? types_intern(t, name, len) : 0;
	struct types_type rec = {.kind = kind, .depth = 1, .name = n ? t->names.data[n].s : NULL};
	if (n && t->names.data[n].kw)
		rec.name = NULL;
	uint32_t id = types_add(t, &rec);
	struct types_decl d = {.kind = TYPES_D_TAG, .type = {id, 0}};
	if (id && rec.name && !types_decl_add(t, &d, n))
		id = 0;
	return built(t, id);
}

struct types_ref types_build_typedef(struct types *t, const char *name, size_t len, struct types_ref target)
{
	uint32_t n = types_intern(t, name, len);
	const struct types_type *to = types_get(t, target.id);
	struct types_ref real = types_real(t, target);
	if (!n || t->names.data[n].kw || too_deep(t, target))
		return built(t, 0);
	const struct types_type *rec = types_get(t, real.id);
	struct types_type def = {.kind = TYPES_TYPEDEF, .flags = rec->flags & TYPES_F_COMPLETE, .len = rec->len, .depth = to->depth + 1,
				 .align = to->kind == TYPES_TYPEDEF ? to->align : 0, .target = target, .real = real,
				 .name = t->names.data[n].s};
	bool names_it = (to->kind == TYPES_STRUCT || to->kind == TYPES_UNION || to->kind == TYPES_ENUM) && !to->name && !to->alias &&
			!target.quals;
	uint32_t id = types_add(t, &def);
	struct types_decl d = {.kind = TYPES_D_TYPEDEF, .type = {id, 0}};
	if (!id || !types_decl_add(t, &d, n))
		return built(t, 0);
	struct types_type *anon = names_it ? types_change(t, target.id) : NULL;
	if (anon)
		anon->alias = id;
	return built(t, id);
}

/* Completes a tag; what is declared after what it needs is printed after it. */
static bool build_finish(struct types *t, uint32_t id, const struct types_type *rec)
{
	struct types_type *to = types_change(t, id);
	if (!to)
		return false;
	const char *name = to->name;
	uint32_t alias = to->alias;
	*to = *rec;
	to->name = name;
	to->alias = alias;
	uint32_t idx = name ? types_find(t, name, strlen(name), true) : 0;
	struct types_decl *d = idx && t->decls.data[idx].type.id == id ? types_decl_change(t, idx) : NULL;
	if (d)
		d->order = ++t->order;
	return true;
}

/* A name that nothing else has, with a number behind it if need be: two units may each have an enum with a constant of one name. */
static uint32_t build_free_name(struct types *t, const char *name)
{
	char other[512];
	uint32_t n = types_intern(t, name, strlen(name));
	for (unsigned i = 2; n && t->names.data[n].ident && i < 100; i++) {
		snprintf(other, sizeof(other), "%.480s__%u", name, i);
		n = types_intern(t, other, strlen(other));
	}
	return n && !t->names.data[n].kw && !t->names.data[n].ident ? n : 0;
}

bool types_build_enum(struct types *t, struct types_ref r, const struct types_const *consts, uint32_t cnt, uint32_t len, bool is_signed)
{
	static const enum types_base bases[] = {TYPES_B_SCHAR, TYPES_B_SHORT, TYPES_B_INT, TYPES_B_LLONG};
	struct types_type rec = {.kind = TYPES_ENUM, .depth = 1, .flags = TYPES_F_COMPLETE, .first = (uint32_t)t->consts.cnt};
	size_t b = 0;
	while (b + 1 < ARRAY_LEN(bases) && t->row->base[bases[b]].len < len)
		b++;
	if (len == 8 && t->row->ptr_len == 8)
		rec.target.id = t->base_id[is_signed ? TYPES_B_LONG : TYPES_B_ULONG];
	else
		rec.target.id = t->base_id[bases[b] + !is_signed];
	rec.len = types_get(t, rec.target.id)->len;
	rec.align = types_get(t, rec.target.id)->align;
	rec.flags |= len < 4 ? TYPES_F_PACKED : 0;
	if (t->consts.cnt + cnt > TYPES_RECORD_MAX || (cnt && !VEC_RESERVE(&t->consts, cnt)))
		return false;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t n = build_free_name(t, consts[i].name);
		if (!n)
			continue;
		struct types_const c = consts[i];
		c.name = t->names.data[n].s;
		struct types_decl d = {.kind = TYPES_D_CONST, .type = r, .value = c};
		if (!types_decl_add(t, &d, n))
			break;
		t->consts.data[t->consts.cnt++] = c;
		rec.sub_cnt++;
	}
	t->is_full = false;
	return build_finish(t, r.id, &rec);
}

/* --- structs --- */

struct build {
	struct types *t;
	struct types_type rec;
	const struct types_member *want; /* where everything must stand */
	uint32_t cnt;
	uint64_t len;
	uint32_t align;
	bool is_exact;                   /* no alignment but that may come out */
	VEC(struct types_member) m;
};

static bool same_place(const struct types_member *a, const struct types_member *b)
{
	return a->off == b->off && (!a->is_bitfield || a->bit_off == b->bit_off);
}

/* Places the members; whether all stand where they must. `*ret_first`: the first that does not. */
static bool build_place(struct build *b, uint32_t *ret_first)
{
	const char *why = types_place_members(b->t, &b->rec, b->m.data, (uint32_t)b->m.cnt);
	for (*ret_first = 0; !why && *ret_first < b->cnt && same_place(&b->m.data[*ret_first], &b->want[*ret_first]);)
		++*ret_first;
	return !why && *ret_first == b->cnt;
}

static bool build_reset(struct build *b, uint32_t flags)
{
	b->rec = (struct types_type){.kind = b->rec.kind, .depth = 1, .flags = flags, .user_align = b->align};
	b->m.cnt = 0;
	for (uint32_t i = 0; i < b->cnt; i++) {
		struct types_member m = b->want[i];
		m.user_align = 0;
		if (!VEC_PUSH(&b->m, m))
			return false;
	}
	return true;
}

/* Rounds the length up with an alignment of the whole, when that is what is missing. */
static bool build_len(struct build *b)
{
	for (uint32_t a = MAX(b->rec.align, 1) * 2; !b->is_exact && b->rec.len < b->len && a <= BUILD_ALIGN_MAX; a *= 2) {
		if (types_round_up(b->rec.len, a) == b->len) {
			b->rec.user_align = a;
			b->rec.align = a;
			b->rec.len = b->len;
		}
	}
	return b->rec.len == b->len;
}

/* As C lays it out by itself, with `aligned` at members that stand further on. */
static bool build_natural(struct build *b)
{
	uint32_t at;
	if (!build_reset(b, 0))
		return false;
	for (unsigned i = 0; i < BUILD_ALIGN_TRIES; i++) {
		if (build_place(b, &at))
			return build_len(b);
		if (at >= b->cnt || b->m.data[at].is_bitfield || b->want[at].off <= b->m.data[at].off || b->m.data[at].user_align)
			return false;
		uint32_t a = 2;
		while (a <= BUILD_ALIGN_MAX && types_round_up(b->m.data[at].off, a) != b->want[at].off)
			a *= 2;
		if (a > BUILD_ALIGN_MAX)
			return false;
		b->m.data[at].user_align = a;
	}
	return false;
}

static bool build_pad(struct build *b, uint64_t bits, uint64_t at_bit)
{
	struct types_member m = {0};
	/* Bits up to the next byte are an unnamed bit-field. */
	uint64_t odd = at_bit % 8 ? MIN(8 - at_bit % 8, bits) : bits < 8 ? bits : 0;
	if (odd) {
		m = (struct types_member){.type = {b->t->base_id[TYPES_B_UCHAR], 0}, .is_bitfield = true, .bit_len = (uint32_t)odd};
		return VEC_PUSH(&b->m, m) && (odd == bits || build_pad(b, bits - odd, at_bit + odd));
	}
	char name[32];
	const char *why;
	snprintf(name, sizeof(name), "_gap_%llx", (unsigned long long)at_bit / 8);
	uint32_t n = types_intern(b->t, name, strlen(name));
	m.name = n ? b->t->names.data[n].s : NULL;
	m.type = types_array(b->t, (struct types_ref){b->t->base_id[TYPES_B_UCHAR], 0}, bits / 8, false, &why);
	return n && m.type.id && VEC_PUSH(&b->m, m) && (bits % 8 == 0 || build_pad(b, bits % 8, at_bit + bits / 8 * 8));
}

/* A union that is longer than its members has one as long as it. */
static bool build_packed_union(struct build *b)
{
	uint32_t at;
	if (!build_reset(b, TYPES_F_PACKED) || !build_place(b, &at))
		return false;
	return build_len(b) || (b->rec.len < b->len && build_pad(b, b->len * 8, 0) && build_place(b, &at) && b->rec.len == b->len);
}

/* Everything packed and the gaps filled. */
static bool build_packed(struct build *b)
{
	uint64_t bits = 0;
	if (b->rec.kind == TYPES_UNION)
		return build_packed_union(b);
	b->m.cnt = 0;
	for (uint32_t i = 0; i < b->cnt; i++) {
		const struct types_member *w = &b->want[i];
		uint64_t at = w->off * 8 + (w->is_bitfield ? w->bit_off : 0);
		uint64_t len = w->is_bitfield ? w->bit_len : types_get(b->t, types_real(b->t, w->type).id)->len * 8;
		struct types_member m = *w;
		m.user_align = 0;
		if (at < bits || (at > bits && !build_pad(b, at - bits, bits)) || !VEC_PUSH(&b->m, m))
			return false;
		bits = at + len;
	}
	if (b->len * 8 < bits || (b->len * 8 > bits && !build_pad(b, b->len * 8 - bits, bits)))
		return false;
	/* The alignment is what the members would give, as far as the length allows it. */
	uint32_t align = b->align;
	for (uint32_t i = 0; i < b->cnt && !b->align && !b->is_exact; i++)
		align = MAX(align, types_align_of(b->t, b->want[i].type));
	while (align > 1 && b->len % align)
		align /= 2;
	b->rec = (struct types_type){.kind = b->rec.kind, .depth = 1, .flags = TYPES_F_PACKED, .user_align = align > 1 ? align : 0};
	if (types_place_members(b->t, &b->rec, b->m.data, (uint32_t)b->m.cnt) || b->rec.len != b->len)
		return false;
	for (size_t i = 0, k = 0; i < b->m.cnt && k < b->cnt; i++) {
		bool is_gap = b->m.data[i].name != b->want[k].name || b->m.data[i].type.id != b->want[k].type.id;
		if (is_gap)
			continue;
		if (!same_place(&b->m.data[i], &b->want[k++]))
			return false;
	}
	return true;
}

static bool build_bytes(struct build *b)
{
	const char *why;
	uint32_t n = types_intern(b->t, "_bytes", 6);
	struct types_member m = {.name = n ? b->t->names.data[n].s : NULL};
	m.type = types_array(b->t, (struct types_ref){b->t->base_id[TYPES_B_UCHAR], 0}, b->len, false, &why);
	b->m.cnt = 0;
	b->rec = (struct types_type){.kind = b->rec.kind, .depth = 1, .user_align = b->align};
	if (!n || !m.type.id || (b->len && !VEC_PUSH(&b->m, m)))
		return false;
	return !types_place_members(b->t, &b->rec, b->m.data, (uint32_t)b->m.cnt);
}

enum types_built types_build_struct(struct types *t, struct types_ref r, const struct types_member *members, uint32_t cnt, uint64_t len,
				    uint32_t align)
{
	struct build b = {.t = t, .rec = {.kind = types_get(t, r.id)->kind}, .want = members, .cnt = cnt, .len = len, .align = align};
	enum types_built how = build_natural(&b) ? TYPES_BUILT_PLAIN : TYPES_BUILT_PACKED;
	if (how == TYPES_BUILT_PACKED && !build_packed(&b))
		how = build_bytes(&b) ? TYPES_BUILT_BYTES : TYPES_BUILT_NOT;
	bool ok = how != TYPES_BUILT_NOT && t->members.cnt + b.m.cnt <= TYPES_RECORD_MAX && (!b.m.cnt || VEC_RESERVE(&t->members, b.m.cnt));
	if (ok) {
		b.rec.first = (uint32_t)t->members.cnt;
		b.rec.sub_cnt = (uint32_t)b.m.cnt;
		for (size_t i = 0; i < b.m.cnt; i++)
			t->members.data[t->members.cnt++] = b.m.data[i];
		ok = build_finish(t, r.id, &b.rec);
	}
	VEC_FREE(&b.m);
	t->is_full = false;
	return ok ? how : TYPES_BUILT_NOT;
}

bool types_place_as(struct types *t, struct types_type *rec, struct types_placed *as)
{
	uint32_t align = as->align;
	struct build b = {.t = t, .rec = {.kind = rec->kind}, .want = as->want, .cnt = as->cnt, .len = as->len, .is_exact = true};
	bool ok = build_natural(&b) && b.rec.align == align;
	b.align = align > 1 ? align : 0;
	ok = ok || (build_natural(&b) && b.rec.align == align) || (build_packed(&b) && b.rec.align == align);
	if (!ok) {
		VEC_FREE(&b.m);
		return false;
	}
	rec->flags |= b.rec.flags;
	rec->align = b.rec.align;
	rec->user_align = b.rec.user_align;
	rec->len = b.rec.len;
	rec->pack = 0;
	as->made = b.m.data;
	as->made_cnt = (uint32_t)b.m.cnt;
	return true;
}

const char *types_build_name(struct types *t, const char *name, size_t len)
{
	uint32_t n = len ? types_intern(t, name, len) : 0;
	t->is_full = false;
	return n && !t->names.data[n].kw ? t->names.data[n].s : NULL;
}
