/* SPDX-License-Identifier: Apache-2.0 */
#include "image/space.h"

#include "base/cur.h"
#include "base/vec.h"

#include <string.h>

/*
 * Reads go file bytes first, then the relocations that touch them. Most reads meet no relocation, so the
 * outermost two are looked at before anything is searched. Nothing here trusts the arrays: they may lie
 * in an image file that someone damaged, so every index and length is tested where it is used.
 */
#define RELOC_WIDTH_MAX 8

static bool seg_has_file(const struct space *s, const struct space_seg *seg)
{
	return seg->file_off <= s->file_len && seg->file_len <= s->file_len - seg->file_off;
}

static unsigned reloc_width(const struct space *s, uint32_t i)
{
	unsigned width = s->reloc_kind[i] & 15;
	return width <= RELOC_WIDTH_MAX ? width : 0;
}

static void store_word(uint8_t *p, uint64_t v, unsigned len, bool is_be)
{
	for (unsigned i = 0; i < len; i++)
		p[is_be ? len - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

static uint64_t load_word(const uint8_t *p, unsigned len, bool is_be)
{
	switch (len) {
	case 1:
		return p[0];
	case 2:
		return load_u16(p, is_be);
	case 4:
		return load_u32(p, is_be);
	default:
		return load_u64(p, is_be);
	}
}

/* Writes what relocation i does to [loc, loc + len), which it may touch only in part. */
static void apply_reloc(const struct space *s, uint32_t i, uint32_t loc, uint8_t *out, size_t len)
{
	uint8_t word[RELOC_WIDTH_MAX] = {0};
	unsigned width = reloc_width(s, i);
	uint64_t at = s->reloc_loc[i];
	store_word(word, space_reloc_value(s, i), width, s->is_be);
	for (unsigned k = 0; k < width; k++) {
		if (at + k >= loc && at + k - loc < len)
			out[at + k - loc] = word[k];
	}
}

/* Whether some relocation may touch [loc, loc + len). */
static bool near_relocs(const struct space *s, uint32_t loc, size_t len)
{
	return s->reloc_cnt && loc < (uint64_t)s->reloc_loc[s->reloc_cnt - 1] + RELOC_WIDTH_MAX &&
	       (uint64_t)loc + len > s->reloc_loc[0];
}

static void apply_relocs(const struct space *s, uint32_t loc, uint8_t *out, size_t len)
{
	if (!near_relocs(s, loc, len))
		return;
	uint32_t i = space_reloc_at(s, loc < RELOC_WIDTH_MAX ? 0 : loc - (RELOC_WIDTH_MAX - 1));
	for (; i < s->reloc_cnt && s->reloc_loc[i] < (uint64_t)loc + len; i++)
		apply_reloc(s, i, loc, out, len);
}

struct err *space_prepare(struct space *s)
{
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		const struct space_seg *seg = &s->segs[i];
		if (!seg->is_patched || !seg->file_len || !seg_has_file(s, seg))
			continue;
		if (!s->patched)
			s->patched = alloc_array(s->seg_cnt, sizeof(*s->patched));
		uint8_t *copy = s->patched ? malloc(seg->file_len) : NULL;
		if (!copy)
			return &err_nomem;
		memcpy(copy, s->file + seg->file_off, seg->file_len);
		apply_relocs(s, seg->loc, copy, seg->file_len);
		s->patched[i] = copy;
	}
	return NULL;
}

void space_fini(struct space *s)
{
	for (uint32_t i = 0; s->patched && i < s->seg_cnt; i++)
		free(s->patched[i]);
	free(s->patched);
	s->patched = NULL;
}

int space_seg_of_loc(const struct space *s, uint32_t loc)
{
	uint32_t lo = 0, hi = s->seg_cnt; /* the last one that begins at or before loc is in [lo, hi) */
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (s->segs[mid].loc <= loc)
			lo = mid;
		else
			hi = mid;
	}
	if (lo == hi || s->segs[lo].loc > loc || loc - s->segs[lo].loc >= s->segs[lo].mem_len)
		return -1;
	return (int)lo;
}

int space_seg_of_va(const struct space *s, uint64_t va)
{
	uint32_t lo = 0, hi = s->seg_cnt;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (s->segs[mid].va <= va)
			lo = mid;
		else
			hi = mid;
	}
	if (lo == hi || s->segs[lo].va > va || va - s->segs[lo].va >= s->segs[lo].mem_len)
		return -1;
	return (int)lo;
}

uint32_t space_loc(const struct space *s, uint64_t va)
{
	int i = space_seg_of_va(s, va);
	return i < 0 ? LOC_NONE : s->segs[i].loc + (uint32_t)(va - s->segs[i].va);
}

uint64_t space_va(const struct space *s, uint32_t loc)
{
	int i = space_seg_of_loc(s, loc);
	if (i < 0 && loc) {
		i = space_seg_of_loc(s, loc - 1); /* one past the end */
	}
	return i < 0 ? UINT64_MAX : s->segs[i].va + (loc - s->segs[i].loc);
}

const uint8_t *space_bytes(const struct space *s, uint32_t loc, size_t *ret_len)
{
	*ret_len = 0;
	int i = space_seg_of_loc(s, loc);
	if (i < 0)
		return NULL;
	const struct space_seg *seg = &s->segs[i];
	uint32_t off = loc - seg->loc;
	if (off >= seg->file_len || !seg_has_file(s, seg))
		return NULL;
	*ret_len = (size_t)(seg->file_len - off);
	if (s->patched && s->patched[i])
		return s->patched[i] + off;
	return s->file + seg->file_off + off;
}

size_t space_read(const struct space *s, uint32_t loc, void *out, size_t len)
{
	int i = space_seg_of_loc(s, loc);
	if (i < 0 || !len)
		return 0;
	const struct space_seg *seg = &s->segs[i];
	uint32_t off = loc - seg->loc;
	if (len > seg->mem_len - off)
		len = (size_t)(seg->mem_len - off);
	size_t have = 0;
	if (off < seg->file_len && seg_has_file(s, seg)) {
		have = (size_t)(seg->file_len - off) < len ? (size_t)(seg->file_len - off) : len;
		memcpy(out, s->file + seg->file_off + off, have);
	}
	memset((uint8_t *)out + have, 0, len - have);
	apply_relocs(s, loc, out, len);
	return len;
}

bool space_word(const struct space *s, uint32_t loc, unsigned len, uint64_t *ret)
{
	int i = space_seg_of_loc(s, loc);
	if (i < 0 || (len != 1 && len != 2 && len != 4 && len != 8))
		return false;
	const struct space_seg *seg = &s->segs[i];
	uint32_t off = loc - seg->loc;
	if (len <= seg->file_len && off <= seg->file_len - len && seg_has_file(s, seg) &&
	    !near_relocs(s, loc, len)) {
		*ret = load_word(s->file + seg->file_off + off, len, s->is_be);
		return true;
	}
	uint8_t word[8];
	if (space_read(s, loc, word, len) < len)
		return false;
	*ret = load_word(word, len, s->is_be);
	return true;
}

uint32_t space_reloc_at(const struct space *s, uint32_t loc)
{
	uint32_t lo = 0, hi = s->reloc_cnt; /* the first one at or after loc is in [lo, hi] */
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (s->reloc_loc[mid] < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint64_t space_reloc_value(const struct space *s, uint32_t i)
{
	if (i >= s->reloc_cnt)
		return UINT64_MAX;
	uint32_t val = s->reloc_val[i];
	if (!(s->reloc_kind[i] & SPACE_REL_WIDE))
		return space_va(s, val);
	return val < s->reloc_wide_cnt ? s->reloc_wide[val] : UINT64_MAX;
}
