/* SPDX-License-Identifier: Apache-2.0 */
/* From paths to places in a type, and back. */
#include "types/types_int.h"

#include <string.h>

/* The member of that name, anonymous ones seen through; adds the offsets on the way to `*off`. Recursion is as deep as
 * anonymous structs were nested in the text. */
static const struct types_member *query_member(const struct types *t, uint32_t id, const char *s, size_t len, uint64_t *off)
{
	uint32_t cnt;
	const struct types_member *m = types_members(t, id, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (m[i].name && strlen(m[i].name) == len && !memcmp(m[i].name, s, len)) {
			*off += m[i].off;
			return &m[i];
		}
	}
	for (uint32_t i = 0; i < cnt; i++) {
		if (m[i].name || m[i].is_bitfield)
			continue;
		uint64_t inner = *off + m[i].off;
		const struct types_member *found = query_member(t, m[i].type.id, s, len, &inner);
		if (found) {
			*off = inner;
			return found;
		}
	}
	return NULL;
}

static bool path_is_name(char c)
{
	return c != '.' && c != '[' && c != ']' && c != ' ';
}

static struct err *path_member(const struct types *t, struct types_at *at, const char *s, size_t len)
{
	struct types_ref real = types_real(t, at->type);
	const struct types_type *rec = types_get(t, real.id);
	if (!len)
		return err_new(ERR_INVALID, "a member's name expected in the path");
	if (rec->kind != TYPES_STRUCT && rec->kind != TYPES_UNION)
		return err_new(ERR_INVALID, "'%.*s' is asked of a type without members", (int)MIN(len, 100), s);
	if (!(rec->flags & TYPES_F_COMPLETE))
		return err_new(ERR_INVALID, "'%.*s' is asked of an incomplete type", (int)MIN(len, 100), s);
	const struct types_member *m = query_member(t, real.id, s, len, &at->off);
	if (!m)
		return err_new(ERR_NOT_FOUND, "no member '%.*s'", (int)MIN(len, 100), s);
	at->type = (struct types_ref){m->type.id, m->type.quals | real.quals};
	at->is_bitfield = m->is_bitfield;
	at->bit_off = m->bit_off;
	at->bit_len = m->bit_len;
	return NULL;
}

/* "[n]", from behind the bracket to behind the closing one. */
static struct err *path_index(const struct types *t, struct types_at *at, const char **s, const char *end)
{
	struct types_ref real = types_real(t, at->type);
	const struct types_type *rec = types_get(t, real.id);
	const char *from = *s;
	uint64_t n = 0;
	bool is_over = false;
	for (; *s < end && **s >= '0' && **s <= '9'; (*s)++) {
		is_over |= __builtin_mul_overflow(n, 10u, &n);
		is_over |= __builtin_add_overflow(n, (uint64_t)(**s - '0'), &n);
	}
	if (*s == from || *s >= end || **s != ']')
		return err_new(ERR_INVALID, "an index like [3] expected in the path");
	(*s)++;
	if (rec->kind != TYPES_ARRAY && rec->kind != TYPES_VECTOR)
		return err_new(ERR_INVALID, "an index is asked of a type that is no array");
	uint64_t elem_len = types_get(t, types_real(t, rec->target).id)->len, by;
	bool is_open = rec->flags & TYPES_F_OPEN;
	if (is_over || (!is_open && n >= rec->cnt) || __builtin_mul_overflow(elem_len, n, &by) || by > TYPES_LEN_MAX)
		return err_new(ERR_INVALID, "index %.*s is past the end of the array", (int)MIN(*s - from - 1, 40), from);
	at->off += by;
	at->type = (struct types_ref){rec->target.id, rec->target.quals | real.quals};
	return NULL;
}

struct err *types_path(const struct types *t, struct types_ref r, const char *path, size_t len, struct types_at *ret)
{
	struct types_at at = {.type = r};
	const char *s = path, *end = path + len;
	bool is_first = true;
	while (s < end) {
		struct err *e;
		if (*s == '[') {
			s++;
			e = path_index(t, &at, &s, end);
		} else if (*s == '.' || is_first) {
			s += *s == '.';
			const char *from = s;
			while (s < end && path_is_name(*s))
				s++;
			e = path_member(t, &at, from, (size_t)(s - from));
		} else {
			e = err_new(ERR_INVALID, "'.' or '[' expected in the path");
		}
		if (e)
			return e;
		if (at.off > TYPES_LEN_MAX)
			return err_new(ERR_INVALID, "the path leads too far");
		is_first = false;
	}
	*ret = at;
	return NULL;
}

/* The first member that covers `off`; null when it lies in padding. */
static const struct types_member *query_covering(const struct types *t, uint32_t id, uint64_t off)
{
	uint32_t cnt;
	const struct types_member *m = types_members(t, id, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct types_type *rec = types_get(t, types_real(t, m[i].type).id);
		uint64_t len = m[i].is_bitfield ? (m[i].bit_off + m[i].bit_len + 7) / 8 : rec->len;
		bool is_open = rec->flags & TYPES_F_OPEN && !m[i].is_bitfield;
		if ((m[i].is_bitfield && !m[i].name) || off < m[i].off)
			continue;
		if (off - m[i].off < len || (is_open && types_get(t, types_real(t, rec->target).id)->len))
			return &m[i];
	}
	return NULL;
}

bool types_path_of(const struct types *t, struct types_ref r, uint64_t off, struct buf *ret, struct types_at *ret_at)
{
	struct types_at at = {.type = r}, named = at; /* `named`: the last that the path can say */
	struct types_ref real = types_real(t, r);
	const struct types_type *rec = types_get(t, real.id);
	if (!(rec->flags & TYPES_F_OPEN) && off >= rec->len)
		return false;
	for (;;) {
		real = types_real(t, at.type);
		rec = types_get(t, real.id);
		if (rec->kind == TYPES_STRUCT || rec->kind == TYPES_UNION) {
			const struct types_member *m = query_covering(t, real.id, off - at.off);
			if (!m)
				break;
			if (m->name) {
				buf_add_ch(ret, '.');
				buf_add_str(ret, m->name);
			}
			at = (struct types_at){.type = {m->type.id, m->type.quals | real.quals}, .off = at.off + m->off,
					       .is_bitfield = m->is_bitfield, .bit_off = m->bit_off, .bit_len = m->bit_len};
			named = m->name ? at : named;
			if (m->is_bitfield)
				break;
		} else if (rec->kind == TYPES_ARRAY) {
			uint64_t len = types_get(t, types_real(t, rec->target).id)->len;
			if (!len)
				break;
			uint64_t n = (off - at.off) / len;
			buf_printf(ret, "[%llu]", (unsigned long long)n);
			at.off += n * len;
			at.type = (struct types_ref){rec->target.id, rec->target.quals | real.quals};
			named = at;
		} else {
			break;
		}
	}
	*ret_at = named;
	return true;
}
