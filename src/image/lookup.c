/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_int.h"

#include <string.h>

/*
 * From an address to what is known about it. Each table has a directory that narrows the search to a few
 * elements, so that a page of 200 rows costs 200 short searches. Tables are ordered in the file; a
 * damaged one gives wrong answers but no access outside of it.
 */
static uint32_t key_name(const struct image *im, uint64_t pos)
{
	uint32_t cnt;
	return image_names(im, &cnt)[pos].loc;
}

static uint32_t key_func(const struct image *im, uint64_t pos)
{
	uint32_t cnt;
	return image_funcs(im, &cnt)[pos].loc;
}

static uint32_t key_string(const struct image *im, uint64_t pos)
{
	uint32_t cnt;
	return image_strings(im, &cnt)[pos].loc;
}

static const struct image_range *range_at(const struct image *im, uint64_t pos)
{
	uint32_t cnt;
	const struct image_range *r = image_sect_data(im, IMAGE_SECT_FUNC_RANGES, &cnt);
	uint64_t i = image_packed_at(&im->range_order, pos);
	return i < cnt ? &r[i] : NULL;
}

static uint32_t key_range(const struct image *im, uint64_t pos)
{
	const struct image_range *r = range_at(im, pos);
	return r ? r->loc : LOC_NONE;
}

const struct image_range *image_func_ranges(const struct image *im, uint32_t func, uint32_t *ret_cnt)
{
	uint32_t func_cnt, range_cnt;
	const struct image_func *f = image_funcs(im, &func_cnt);
	const struct image_range *r = image_sect_data(im, IMAGE_SECT_FUNC_RANGES, &range_cnt);
	*ret_cnt = 0;
	if (func >= func_cnt || f[func].range_first > range_cnt ||
	    f[func].range_cnt > range_cnt - f[func].range_first)
		return NULL;
	*ret_cnt = f[func].range_cnt;
	return r + f[func].range_first;
}

uint32_t image_func_at(const struct image *im, uint32_t loc)
{
	uint64_t pos = image_upper(im, &im->range_dir, im->range_order.cnt, loc, key_range);
	const struct image_range *r = pos ? range_at(im, pos - 1) : NULL;
	if (!r || r->loc > loc || loc - r->loc >= r->len || r->func >= im->sects[IMAGE_SECT_FUNCS].cnt)
		return UINT32_MAX;
	return r->func;
}

uint32_t image_func_starting(const struct image *im, uint32_t loc)
{
	uint64_t cnt = im->sects[IMAGE_SECT_FUNCS].cnt;
	uint64_t pos = image_lower(im, &im->func_dir, cnt, loc, key_func);
	return pos < cnt && key_func(im, pos) == loc ? (uint32_t)pos : UINT32_MAX;
}

const struct image_name *image_name_at(const struct image *im, uint32_t loc)
{
	uint32_t cnt;
	const struct image_name *n = image_names(im, &cnt);
	uint64_t pos = image_lower(im, &im->name_dir, cnt, loc, key_name);
	return pos < cnt && n[pos].loc == loc ? &n[pos] : NULL;
}

const struct image_name *image_name_before(const struct image *im, uint32_t loc)
{
	uint32_t cnt;
	const struct image_name *n = image_names(im, &cnt);
	uint64_t end = image_upper(im, &im->name_dir, cnt, loc, key_name);
	int seg = space_seg_of_loc(&im->space, loc);
	if (!end || seg < 0 || n[end - 1].loc > loc || n[end - 1].loc < im->segs[seg].loc)
		return NULL;
	return image_name_at(im, n[end - 1].loc);
}

static int compare_name(const struct image *im, uint32_t pos, const char *s, size_t len)
{
	const struct image_name *n = image_name_by_order(im, pos);
	size_t have_len = 0;
	const char *have = n ? image_text(im, n->name, &have_len) : "";
	int c = memcmp(have, s, have_len < len ? have_len : len);
	return c ? c : (have_len > len) - (have_len < len);
}

/* The first position of [lo, hi) not below `s`, or with `is_above` the first one above it; hi: none. */
static uint32_t name_bound(const struct image *im, const char *s, size_t len, uint32_t lo, uint32_t hi, bool is_above)
{
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int c = compare_name(im, mid, s, len);
		if (c < 0 || (is_above && c == 0))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t image_name_find(const struct image *im, const char *s, size_t len, uint32_t *ret_first)
{
	uint32_t cnt = (uint32_t)im->name_order.cnt, first = name_bound(im, s, len, 0, cnt, false);
	uint64_t reach = 1;
	/* Few names are borne by more than one: the end is looked for from here on, twice as far each time. */
	while (reach < cnt - first && compare_name(im, (uint32_t)(first + reach), s, len) == 0)
		reach *= 2;
	*ret_first = first;
	if (first == cnt)
		return 0;
	return name_bound(im, s, len, (uint32_t)(first + reach / 2), (uint32_t)MIN(first + reach, (uint64_t)cnt), true) - first;
}

const struct image_name *image_name_by_order(const struct image *im, uint32_t pos)
{
	uint32_t cnt;
	const struct image_name *n = image_names(im, &cnt);
	uint64_t i = pos < im->name_order.cnt ? image_packed_at(&im->name_order, pos) : cnt;
	return i < cnt ? &n[i] : NULL;
}

static uint32_t key_from(const struct image *im, uint64_t pos)
{
	return image_seq_at(&im->xref_from, pos);
}

static uint32_t key_to(const struct image *im, uint64_t pos)
{
	uint64_t i = image_packed_at(&im->xref_rev, pos);
	return i < im->xref_to.cnt ? (uint32_t)(image_packed_at(&im->xref_to, i) >> 3) : LOC_NONE;
}

uint32_t image_xref_cnt(const struct image *im)
{
	return (uint32_t)im->xref_to.cnt;
}

/* End of the slice of keys up to loc_last that begins at `pos`: nearly always within a few steps. */
static inline __attribute__((always_inline)) uint64_t
slice_end(const struct image *im, const struct image_dir *dir, uint64_t pos, uint32_t loc_last, image_key_fn *key)
{
	uint64_t cnt = im->xref_to.cnt;
	for (unsigned i = 0; i < 8; i++, pos++) {
		if (pos >= cnt || key(im, pos) > loc_last)
			return pos;
	}
	uint64_t end = image_upper(im, dir, cnt, loc_last, key);
	return end > pos ? end : pos;
}

uint32_t image_xrefs_from(const struct image *im, uint32_t loc_first, uint32_t loc_last, uint32_t *ret_first)
{
	uint64_t pos = image_lower(im, &im->xref_from_dir, im->xref_to.cnt, loc_first, key_from);
	*ret_first = (uint32_t)pos;
	return (uint32_t)(slice_end(im, &im->xref_from_dir, pos, loc_last, key_from) - pos);
}

uint32_t image_xrefs_to(const struct image *im, uint32_t loc_first, uint32_t loc_last, uint32_t *ret_first)
{
	uint64_t pos = image_lower(im, &im->xref_to_dir, im->xref_to.cnt, loc_first, key_to);
	*ret_first = (uint32_t)pos;
	return (uint32_t)(slice_end(im, &im->xref_to_dir, pos, loc_last, key_to) - pos);
}

bool image_xref_fwd(const struct image *im, uint32_t pos, struct image_xref *ret)
{
	if (pos >= im->xref_to.cnt)
		return false;
	uint64_t v = image_packed_at(&im->xref_to, pos);
	struct image_xref x = {.from = image_seq_at(&im->xref_from, pos), .to = (uint32_t)(v >> 3),
			       .kind = (uint8_t)(v & 7)};
	if (x.kind > IMAGE_XREF_OFFSET || v >> 35)
		return false;
	*ret = x;
	return true;
}

bool image_xref_rev(const struct image *im, uint32_t pos, struct image_xref *ret)
{
	if (pos >= im->xref_rev.cnt)
		return false;
	uint64_t i = image_packed_at(&im->xref_rev, pos);
	return i < UINT32_MAX && image_xref_fwd(im, (uint32_t)i, ret);
}

const struct image_string *image_string_at(const struct image *im, uint32_t loc)
{
	uint32_t cnt;
	const struct image_string *s = image_strings(im, &cnt);
	uint64_t end = image_upper(im, &im->string_dir, cnt, loc, key_string);
	if (!end || s[end - 1].loc > loc)
		return NULL;
	return loc == s[end - 1].loc || loc - s[end - 1].loc < s[end - 1].len ? &s[end - 1] : NULL;
}

const struct image_table *image_table_at(const struct image *im, uint32_t jump_loc)
{
	uint32_t cnt;
	const struct image_table *t = image_tables(im, &cnt);
	uint32_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (t[mid].jump_loc < jump_loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && t[lo].jump_loc == jump_loc ? &t[lo] : NULL;
}

uint32_t image_table_target(const struct image *im, const struct image_table *t, uint32_t i)
{
	uint32_t cnt;
	const uint32_t *targets = image_sect_data(im, IMAGE_SECT_TARGETS, &cnt);
	if (i >= t->target_cnt || t->target_first > cnt || i >= cnt - t->target_first)
		return LOC_NONE;
	return targets[t->target_first + i];
}

const struct image_proto *image_proto_at(const struct image *im, uint32_t loc)
{
	uint32_t cnt;
	const struct image_proto *p = image_sect_data(im, IMAGE_SECT_PROTOS, &cnt);
	uint32_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (p[mid].loc < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && p[lo].loc == loc ? &p[lo] : NULL;
}

/* Where a type stands in the order of names: void, tags, typedefs, the others. */
static unsigned type_class(const struct image_type *t)
{
	bool is_tagged = t->kind == IMAGE_T_STRUCT || t->kind == IMAGE_T_UNION || t->kind == IMAGE_T_ENUM;
	return t->kind == IMAGE_T_VOID ? 0 : is_tagged && t->name.len ? 1 : t->kind == IMAGE_T_TYPEDEF ? 2 : 3;
}

static int type_order(const struct image *im, const struct image_type *t, unsigned class, const char *name, size_t len)
{
	size_t own_len;
	const char *own = image_text(im, t->name, &own_len);
	unsigned own_class = type_class(t);
	if (own_class != class)
		return own_class < class ? -1 : 1;
	int d = memcmp(own, name, MIN(own_len, len));
	return d ? d : own_len < len ? -1 : own_len > len;
}

uint32_t image_type_find(const struct image *im, const char *name, size_t len, bool is_tag)
{
	uint32_t cnt, lo = 0;
	const struct image_type *t = image_types(im, &cnt);
	for (uint32_t hi = cnt; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (type_order(im, &t[mid], is_tag ? 1 : 2, name, len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && !type_order(im, &t[lo], is_tag ? 1 : 2, name, len) ? lo : 0;
}

const struct image_type_sub *image_type_subs(const struct image *im, const struct image_type *t, uint32_t *ret_cnt)
{
	uint32_t cnt;
	const struct image_type_sub *s = image_sect_data(im, IMAGE_SECT_TYPE_SUBS, &cnt);
	bool is_in = t->sub_first <= cnt && t->sub_cnt <= cnt - t->sub_first;
	*ret_cnt = is_in ? t->sub_cnt : 0;
	return *ret_cnt ? s + t->sub_first : NULL;
}

bool image_has_lines(const struct image *im)
{
	return im->line_loc.cnt != 0;
}

bool image_line_at(const struct image *im, uint32_t loc, struct image_str *ret_file, uint32_t *ret_line)
{
	uint32_t file_cnt;
	const struct image_str *files = image_sect_data(im, IMAGE_SECT_LINE_FILES, &file_cnt);
	int seg = space_seg_of_loc(&im->space, loc);
	uint64_t lo = 0, hi = im->line_loc.cnt;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		if (image_seq_at(&im->line_loc, mid) <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || seg < 0)
		return false;
	uint32_t at = image_seq_at(&im->line_loc, lo - 1);
	uint64_t file = image_packed_at(&im->line_file, lo - 1);
	uint32_t line = (uint32_t)image_packed_at(&im->line_num, lo - 1);
	if (at > loc || at < im->segs[seg].loc || file >= file_cnt || !line)
		return false;
	*ret_file = files[file];
	*ret_line = line;
	return true;
}

const struct image_import *image_import_at(const struct image *im, uint32_t loc)
{
	uint32_t cnt, import_cnt;
	const struct image_import_loc *at = image_sect_data(im, IMAGE_SECT_IMPORT_LOCS, &cnt);
	const struct image_import *imports = image_imports(im, &import_cnt);
	uint32_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (at[mid].loc < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && at[lo].loc == loc && at[lo].import < import_cnt ? &imports[at[lo].import] : NULL;
}
