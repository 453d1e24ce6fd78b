/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg_view.h"

/* The longest field a relocation patches, so that one that begins just before a range is seen. */
#define DBG_RELOC_WIDTH_MAX 8

static bool view_has_reloc(const struct fmt_bin *b, uint64_t va, uint64_t len)
{
	uint64_t first = va < DBG_RELOC_WIDTH_MAX ? 0 : va - (DBG_RELOC_WIDTH_MAX - 1);
	size_t lo = 0, hi = b->relocs.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->relocs.data[mid].va < first)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < b->relocs.cnt && b->relocs.data[lo].va - first < len + (va - first);
}

struct err *dbg_view_open(const struct fmt_bin *b, uint64_t va, uint64_t len, struct dbg_view *ret)
{
	*ret = (struct dbg_view){.cur = cur_make(NULL, 0, b->is_be), .va = va};
	const struct fmt_segment *s = fmt_segment_at(b, va);
	if (!s || va - s->va >= s->file_len)
		return NULL;
	uint64_t skip = va - s->va;
	len = MIN(len, s->file_len - skip);
	uint64_t off = s->file_off + skip;
	if (off > b->bytes_len || len > b->bytes_len - off || !len)
		return NULL;
	ret->file = b->bytes + off;
	if (!view_has_reloc(b, va, len)) {
		ret->cur = cur_make(b->bytes + off, (size_t)len, b->is_be);
		return NULL;
	}
	uint8_t *copy = malloc((size_t)len);
	if (!copy)
		return &err_nomem;
	size_t got = fmt_read(b, va, copy, (size_t)len);
	ret->owned = copy;
	ret->cur = cur_make(copy, MIN(got, (size_t)len), b->is_be);
	return NULL;
}

void dbg_view_close(struct dbg_view *v)
{
	free(v->owned);
	*v = (struct dbg_view){0};
}
