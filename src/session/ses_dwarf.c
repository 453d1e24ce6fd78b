/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of debug information, from the image's records into a set, when somebody names them. What a pointer leads to is left
 * a tag until it is asked for itself, so that one variable of the kernel does not bring in the whole kernel.
 */
#include "session/ses_types.h"

#include "base/map.h"

#include <stdio.h>
#include <string.h>

#define DWARF_DEPTH_MAX 128

enum { FROM_NONE, FROM_BUSY, FROM_READY, FROM_FILLED };

struct from_image {
	struct types_ref ref;
	uint8_t state;
};

static struct types_ref convert(struct ses_typeset *ts, uint32_t idx, unsigned depth);
static void fill(struct ses_typeset *ts, uint32_t idx, unsigned depth);

static bool is_struct(uint8_t kind)
{
	return kind == IMAGE_T_STRUCT || kind == IMAGE_T_UNION;
}

/* --- base types --- */

/* By what it is, for names that C does not know. */
static enum types_base base_by_encoding(uint8_t encoding, uint64_t len)
{
	enum { BOOLEAN = 2, COMPLEX = 3, FLOAT = 4, SIGNED = 5, SIGNED_CHAR = 6 };
	bool is_signed = encoding == SIGNED || encoding == SIGNED_CHAR;
	if (encoding == FLOAT)
		return len == 4 ? TYPES_B_FLOAT : len == 8 ? TYPES_B_DOUBLE : len == 2 ? TYPES_B_FLOAT16 : TYPES_B_LDOUBLE;
	if (encoding == BOOLEAN && len == 1)
		return TYPES_B_BOOL;
	switch (len) {
	case 1:
		return is_signed ? TYPES_B_SCHAR : TYPES_B_UCHAR;
	case 2:
		return is_signed ? TYPES_B_SHORT : TYPES_B_USHORT;
	case 4:
		return is_signed ? TYPES_B_INT : TYPES_B_UINT;
	case 8:
		return is_signed ? TYPES_B_LLONG : TYPES_B_ULLONG;
	case 16:
		return is_signed ? TYPES_B_INT128 : TYPES_B_UINT128;
	default:
		return TYPES_B_COUNT;
	}
}

static struct types_ref convert_base(struct ses_typeset *ts, const struct image_type *t)
{
	size_t len;
	const char *name = image_text(ts->sn->im, t->name, &len);
	struct types_ref r = {0};
	struct err *e = len ? types_parse_type(ts->t, name, len, NULL, &r) : &err_not_found;
	const struct types_type *rec = types_get(ts->t, types_real(ts->t, r).id);
	bool is_it = !e && rec->len == t->len && (rec->kind == TYPES_INT || rec->kind == TYPES_FLOAT || rec->kind == TYPES_COMPLEX);
	err_free(e);
	if (is_it)
		return types_real(ts->t, r);
	enum types_base b = base_by_encoding(t->encoding, t->len);
	r = b == TYPES_B_COUNT ? (struct types_ref){0} : types_build_base(ts->t, b);
	if (types_get(ts->t, r.id)->len == t->len)
		return r;
	return types_build_array(ts->t, types_build_base(ts->t, TYPES_B_UCHAR), t->len, false);
}

/* --- others --- */

static struct types_ref void_ref(struct ses_typeset *ts)
{
	return types_build_base(ts->t, TYPES_B_VOID);
}

static struct types_ref convert_func(struct ses_typeset *ts, const struct image_type *t, unsigned depth)
{
	uint32_t cnt, n = 0;
	const struct image_type_sub *s = image_type_subs(ts->sn->im, t, &cnt);
	_cleanup_free_ struct types_param *params = alloc_array(cnt, sizeof(*params));
	struct types_ref result = convert(ts, t->target, depth + 1);
	for (uint32_t i = 0; params && i < cnt; i++) {
		size_t len;
		const char *name = image_text(ts->sn->im, s[i].name, &len);
		struct types_ref r = convert(ts, s[i].type, depth + 1);
		if (r.id && types_get(ts->t, types_real(ts->t, r).id)->kind != TYPES_VOID)
			params[n++] = (struct types_param){.name = types_build_name(ts->t, name, len), .type = r};
	}
	uint32_t flags = (t->flags & IMAGE_T_F_VARIADIC && n ? TYPES_F_VARIADIC : 0) |
			 (t->flags & IMAGE_T_F_NOPROTO || (t->flags & IMAGE_T_F_VARIADIC && !n) ? TYPES_F_NOPROTO : 0);
	return params ? types_build_func(ts->t, result.id ? result : void_ref(ts), params, n, flags) : result;
}

static struct types_ref convert_enum(struct ses_typeset *ts, const struct image_type *t, struct types_ref r)
{
	uint32_t cnt, n = 0;
	const struct image_type_sub *s = image_type_subs(ts->sn->im, t, &cnt);
	_cleanup_free_ struct types_const *c = alloc_array(cnt, sizeof(*c));
	bool is_negative = false;
	for (uint32_t i = 0; c && i < cnt; i++) {
		size_t len;
		const char *name = image_text(ts->sn->im, s[i].name, &len);
		c[n].name = types_build_name(ts->t, name, len);
		c[n].value = s[i].value;
		c[n].is_unsigned = s[i].bit_len && s[i].value < 0;
		is_negative |= c[n].value < 0 && !c[n].is_unsigned;
		n += c[n].name != NULL;
	}
	bool is_done = c && !(t->flags & IMAGE_T_F_INCOMPLETE) && types_build_enum(ts->t, r, c, n, (uint32_t)MIN(t->len, 8u), is_negative);
	(void)is_done;
	return r;
}

static enum types_kind tag_kind(uint8_t kind)
{
	return kind == IMAGE_T_STRUCT ? TYPES_STRUCT : kind == IMAGE_T_UNION ? TYPES_UNION : TYPES_ENUM;
}

/* The number of the struct that a type contains by value: its own, its elements'; 0 when there is none. */
static uint32_t contained(struct ses_typeset *ts, uint32_t idx)
{
	uint32_t cnt;
	const struct image_type *t = image_types(ts->sn->im, &cnt);
	for (unsigned i = 0; i < DWARF_DEPTH_MAX && idx < cnt; i++) {
		if (is_struct(t[idx].kind))
			return idx;
		if (t[idx].kind != IMAGE_T_ARRAY && t[idx].kind != IMAGE_T_TYPEDEF && t[idx].kind != IMAGE_T_CONST &&
		    t[idx].kind != IMAGE_T_VOLATILE)
			return 0;
		idx = t[idx].target;
	}
	return 0;
}

static struct types_ref convert_new(struct ses_typeset *ts, uint32_t idx, const struct image_type *t, unsigned depth)
{
	size_t len;
	const char *name = image_text(ts->sn->im, t->name, &len);
	struct types_ref to = {0};
	struct from_image *from = &ts->from[idx];
	if (is_struct(t->kind) || t->kind == IMAGE_T_ENUM) {
		from->ref = types_build_tag(ts->t, tag_kind(t->kind), name, len);
		from->state = FROM_READY;
		return t->kind == IMAGE_T_ENUM && from->ref.id ? convert_enum(ts, t, from->ref) : from->ref;
	}
	if (t->kind == IMAGE_T_ARRAY || t->kind == IMAGE_T_VECTOR)
		fill(ts, contained(ts, t->target), depth + 1);
	if (t->kind != IMAGE_T_BASE && t->kind != IMAGE_T_FUNC)
		to = convert(ts, t->target, depth + 1);
	switch (t->kind) {
	case IMAGE_T_BASE:
		return convert_base(ts, t);
	case IMAGE_T_FUNC:
		return convert_func(ts, t, depth);
	case IMAGE_T_POINTER:
		return types_build_pointer(ts->t, to.id ? to : void_ref(ts));
	case IMAGE_T_ARRAY:
		return to.id ? types_build_array(ts->t, to, t->flags & IMAGE_T_F_OPEN ? 0 : t->len, t->flags & IMAGE_T_F_OPEN) : to;
	case IMAGE_T_VECTOR:
		return to.id ? types_build_vector(ts->t, to, t->len * types_get(ts->t, types_real(ts->t, to).id)->len) : to;
	case IMAGE_T_TYPEDEF:
		return to.id ? types_build_typedef(ts->t, name, len, to) : to;
	case IMAGE_T_CONST:
		to.quals |= TYPES_CONST;
		return to.id ? to : void_ref(ts);
	case IMAGE_T_VOLATILE:
		to.quals |= TYPES_VOLATILE;
		return to.id ? to : void_ref(ts);
	default:
		return to;
	}
}

static struct types_ref convert(struct ses_typeset *ts, uint32_t idx, unsigned depth)
{
	uint32_t cnt;
	const struct image_type *t = image_types(ts->sn->im, &cnt);
	if (!idx || idx >= cnt || depth > DWARF_DEPTH_MAX || ts->from[idx].state == FROM_BUSY)
		return void_ref(ts);
	if (ts->from[idx].state >= FROM_READY)
		return ts->from[idx].ref;
	ts->from[idx].state = FROM_BUSY;
	struct types_ref r = convert_new(ts, idx, &t[idx], depth);
	ts->from[idx].ref = r;
	ts->from[idx].state = MAX(ts->from[idx].state, FROM_READY);
	/* What has no tag is printed where it is used. */
	if (is_struct(t[idx].kind) && !t[idx].name.len)
		fill(ts, idx, depth + 1);
	return r;
}

/* --- members --- */

/* Anonymous members have no name, everything else has one, and none twice. */
static const char *member_name(struct ses_typeset *ts, const struct image_type_sub *s, bool may_lack, struct map *seen)
{
	char made[512];
	size_t len;
	uint32_t times = 0;
	const char *text = image_text(ts->sn->im, s->name, &len);
	const char *name = types_build_name(ts->t, text, len);
	if (!name && may_lack)
		return NULL;
	if (!name) {
		snprintf(made, sizeof(made), "_at_%llx", (unsigned long long)s->value / 8);
		name = types_build_name(ts->t, made, strlen(made));
	}
	if (name && map_find(seen, (uintptr_t)name, &times)) {
		snprintf(made, sizeof(made), "%.400s__%u", name, times + 1);
		const char *other = types_build_name(ts->t, made, strlen(made));
		if (map_put(seen, (uintptr_t)name, times + 1))
			name = other;
	}
	return name && map_put(seen, (uintptr_t)name, 1) ? name : NULL;
}

/* False for a member that C cannot have there. */
static bool make_member(struct ses_typeset *ts, const struct image_type_sub *s, unsigned depth, struct map *seen, struct types_member *ret)
{
	uint64_t len;
	uint32_t align;
	fill(ts, contained(ts, s->type), depth + 1);
	struct types_ref r = convert(ts, s->type, depth + 1);
	const struct types_type *rec = types_get(ts->t, types_real(ts->t, r).id);
	bool is_open = rec->kind == TYPES_ARRAY && rec->flags & TYPES_F_OPEN;
	if (!r.id || s->value < 0 || (!is_open && !types_layout(ts->t, r, &len, &align)))
		return false;
	*ret = (struct types_member){.type = r, .off = (uint64_t)s->value / 8, .bit_len = s->bit_len};
	if (s->bit_len) {
		bool is_int = rec->kind == TYPES_INT || rec->kind == TYPES_ENUM;
		ret->is_bitfield = true;
		ret->bit_off = (uint32_t)(s->value % 8);
		if (!is_int || s->bit_len > rec->len * 8)
			return false;
	}
	const struct types_type *direct = types_get(ts->t, r.id);
	bool may_lack = !s->bit_len && (direct->kind == TYPES_STRUCT || direct->kind == TYPES_UNION) && !direct->name && !direct->alias;
	ret->name = member_name(ts, s, may_lack, seen);
	return ret->name || may_lack;
}

static void fill(struct ses_typeset *ts, uint32_t idx, unsigned depth)
{
	uint32_t cnt, type_cnt, n = 0;
	const struct image_type *t = image_types(ts->sn->im, &type_cnt);
	if (!idx || idx >= type_cnt || !is_struct(t[idx].kind) || depth > DWARF_DEPTH_MAX)
		return;
	struct types_ref r = convert(ts, idx, depth + 1);
	if (!r.id || ts->from[idx].state != FROM_READY || t[idx].flags & IMAGE_T_F_INCOMPLETE)
		return;
	ts->from[idx].state = FROM_FILLED;
	const struct image_type_sub *s = image_type_subs(ts->sn->im, &t[idx], &cnt);
	_cleanup_free_ struct types_member *m = alloc_array(cnt, sizeof(*m));
	_cleanup_map_ struct map seen = {0};
	for (uint32_t i = 0; m && i < cnt; i++) {
		bool is_it = make_member(ts, &s[i], depth, &seen, &m[n]);
		const struct types_type *rec = is_it ? types_get(ts->t, types_real(ts->t, m[n].type).id) : NULL;
		bool is_lost = is_it && i + 1 < cnt && t[idx].kind == IMAGE_T_STRUCT && rec->flags & TYPES_F_OPEN && !m[n].is_bitfield;
		n += is_it && !is_lost;
	}
	if (m)
		(void)types_build_struct(ts->t, r, m, n, t[idx].len, t[idx].align);
}

static bool has_from(struct ses_typeset *ts)
{
	uint32_t cnt;
	(void)image_types(ts->sn->im, &cnt);
	if (!ts->from)
		ts->from = alloc_array(cnt, sizeof(*ts->from));
	return ts->from && cnt;
}

struct types_ref ses_dwarf_type(struct ses_typeset *ts, uint32_t idx)
{
	struct types_ref r = {0};
	if (!has_from(ts))
		return r;
	types_set_builtin(ts->t, true);
	fill(ts, contained(ts, idx), 0);
	r = convert(ts, idx, 0);
	types_set_builtin(ts->t, false);
	return r;
}
