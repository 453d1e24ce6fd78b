/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_int.h"

/*
 * Items and rows. The item bits of all segments lie one behind the other in blocks of 512 bits; a `pos` is a bit
 * number there, and seg_block says where a segment's bits begin. Item k of the file-backed ones is the k-th
 * set bit. Parts without file bytes have a list instead, which continues the rows of their segment. Empty
 * stretches are skipped by rank, so a segment of zeros as one item costs no scan.
 */
#define BLOCK_WORDS (BITS_RANK_SPAN / 64)

/* The part of a segment's bits: [first, end) as positions. */
struct seg_bits {
	uint64_t first, end;
};

static struct seg_bits seg_bits(const struct image *im, uint32_t seg)
{
	uint64_t first = (uint64_t)im->seg_block[seg] * BITS_RANK_SPAN;
	return (struct seg_bits){first, first + im->segs[seg].file_len};
}

static uint32_t nobits_end(const struct image *im, uint32_t seg)
{
	return seg + 1 < im->space.seg_cnt ? im->segs[seg + 1].nobits_first : (uint32_t)im->nobits.cnt;
}

/* Set bits before pos. */
static uint32_t rank_of(const struct image *im, uint64_t pos)
{
	return (uint32_t)bits_rank(im->item_bits, im->item_rank, im->sects[IMAGE_SECT_ITEM_BITS].cnt, pos);
}

/* Position of the k-th set bit, looked for in blocks [lo, hi); `none` when it is not there. */
static uint64_t select_in(const struct image *im, uint64_t lo, uint64_t hi, uint32_t k, uint64_t none)
{
	if (lo >= hi || im->item_rank[lo] > k || im->item_rank[hi] <= k)
		return none;
	for (unsigned i = 0; i < 4 && im->item_rank[lo + 1] <= k && lo + 1 < hi; i++)
		lo++;
	while (hi - lo > 1 && im->item_rank[lo + 1] <= k) {
		uint64_t mid = lo + (hi - lo) / 2;
		if (im->item_rank[mid] <= k)
			lo = mid;
		else
			hi = mid;
	}
	uint32_t left = k - im->item_rank[lo];
	for (uint64_t i = lo * BLOCK_WORDS; i < (lo + 1) * BLOCK_WORDS; i++) {
		uint64_t word = im->item_bits[i];
		unsigned n = (unsigned)__builtin_popcountll(word);
		if (left >= n) {
			left -= n;
			continue;
		}
		for (; left; left--)
			word &= word - 1;
		return i * 64 + (unsigned)__builtin_ctzll(word);
	}
	return none;
}

/* First item start at or after pos, or b.end. */
static uint64_t next_start(const struct image *im, struct seg_bits b, uint64_t pos)
{
	uint64_t near = (pos / BITS_RANK_SPAN + 1) * BITS_RANK_SPAN;
	if (near >= b.end)
		return bits_next(im->item_bits, pos, b.end);
	uint64_t found = bits_next(im->item_bits, pos, near);
	if (found < near)
		return found;
	uint64_t block = near / BITS_RANK_SPAN;
	found = select_in(im, block, (b.end + BITS_RANK_SPAN - 1) / BITS_RANK_SPAN, im->item_rank[block], b.end);
	return found < b.end ? found : b.end;
}

/* Last item start at or before pos; the segment's first position when there is none. */
static uint64_t prev_start(const struct image *im, struct seg_bits b, uint64_t pos)
{
	uint64_t near = pos / BITS_RANK_SPAN * BITS_RANK_SPAN;
	uint64_t found = bits_prev(im->item_bits, near, pos + 1);
	if (found <= pos)
		return found;
	uint64_t block = near / BITS_RANK_SPAN, first = b.first / BITS_RANK_SPAN;
	if (block <= first || im->item_rank[block] == 0)
		return b.first;
	return select_in(im, first, block, im->item_rank[block] - 1, b.first);
}

static uint32_t key_run(const struct image *im, uint64_t pos)
{
	return image_seq_at(&im->run_loc, pos);
}

/* The run that holds loc; UINT32_MAX when a damaged image has none. */
static uint32_t run_of(const struct image *im, uint32_t loc)
{
	uint64_t end = image_upper(im, &im->run_dir, im->run_loc.cnt, loc, key_run);
	return end ? (uint32_t)(end - 1) : UINT32_MAX;
}

static enum image_item_kind kind_of_run(const struct image *im, uint32_t run)
{
	uint8_t kind = run < im->run_loc.cnt ? im->run_kind[run] : IMAGE_UNKNOWN;
	return kind < IMAGE_ITEM_KIND_COUNT ? (enum image_item_kind)kind : IMAGE_UNKNOWN;
}

static uint32_t run_end(const struct image *im, uint32_t run)
{
	return run + 1 < im->run_loc.cnt ? image_seq_at(&im->run_loc, (uint64_t)run + 1) : UINT32_MAX;
}

/* Index into the nobits items of the one that holds loc, between the bounds of its segment. */
static uint32_t nobits_of(const struct image *im, uint32_t seg, uint32_t loc)
{
	uint32_t lo = im->segs[seg].nobits_first, hi = nobits_end(im, seg);
	while (hi > lo && hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (image_seq_at(&im->nobits, mid) <= loc)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Start and length of nobits item i of a segment, kept inside the part without file bytes. */
static void nobits_bounds(const struct image *im, uint32_t seg, uint32_t i, uint32_t *ret_loc, uint32_t *ret_end)
{
	const struct space_seg *s = &im->segs[seg];
	uint32_t first = s->loc + (uint32_t)s->file_len, last = s->loc + (uint32_t)s->mem_len;
	uint32_t loc = first, end = last;
	if (i > s->nobits_first && i < nobits_end(im, seg))
		loc = image_seq_at(&im->nobits, i);
	if (i + 1 < nobits_end(im, seg))
		end = image_seq_at(&im->nobits, (uint64_t)i + 1);
	*ret_loc = loc < first || loc >= last ? first : loc;
	*ret_end = end <= *ret_loc || end > last ? last : end;
}

/* Start and end of the item of `seg` that holds `loc`. */
static void item_bounds(const struct image *im, uint32_t seg, uint32_t loc, uint32_t *ret_loc, uint32_t *ret_end)
{
	const struct space_seg *s = &im->segs[seg];
	if (loc - s->loc >= s->file_len) {
		nobits_bounds(im, seg, nobits_of(im, seg, loc), ret_loc, ret_end);
		return;
	}
	struct seg_bits b = seg_bits(im, seg);
	uint64_t pos = b.first + (loc - s->loc);
	*ret_loc = s->loc + (uint32_t)(prev_start(im, b, pos) - b.first);
	*ret_end = s->loc + (uint32_t)(next_start(im, b, pos + 1) - b.first);
}

uint32_t image_row_cnt(const struct image *im)
{
	return im->meta.row_cnt;
}

uint32_t image_row_of(const struct image *im, uint32_t loc)
{
	int i = space_seg_of_loc(&im->space, loc);
	if (i < 0)
		return UINT32_MAX;
	uint32_t seg = (uint32_t)i;
	const struct space_seg *s = &im->segs[seg];
	struct seg_bits b = seg_bits(im, seg);
	uint32_t before = im->item_rank[im->seg_block[seg]];
	uint32_t row;
	if (loc - s->loc < s->file_len) {
		uint32_t upto = rank_of(im, b.first + (loc - s->loc) + 1);
		row = s->row_first + (upto > before ? upto - before - 1 : 0);
	} else {
		uint32_t in_file = im->item_rank[im->seg_block[seg + 1]] - before;
		row = s->row_first + in_file + (nobits_of(im, seg, loc) - s->nobits_first);
	}
	return row < im->meta.row_cnt ? row : UINT32_MAX;
}

uint32_t image_loc_of_row(const struct image *im, uint32_t row)
{
	if (row >= im->meta.row_cnt)
		return LOC_NONE;
	uint32_t seg = 0, hi = im->space.seg_cnt;
	while (hi - seg > 1) {
		uint32_t mid = seg + (hi - seg) / 2;
		if (im->segs[mid].row_first <= row)
			seg = mid;
		else
			hi = mid;
	}
	const struct space_seg *s = &im->segs[seg];
	uint32_t first = im->seg_block[seg], end = im->seg_block[seg + 1];
	uint32_t k = row - s->row_first;
	uint32_t in_file = im->item_rank[end] - im->item_rank[first];
	if (k < in_file) {
		struct seg_bits b = seg_bits(im, seg);
		uint64_t pos = select_in(im, first, end, im->item_rank[first] + k, b.first);
		return pos < b.end ? s->loc + (uint32_t)(pos - b.first) : LOC_NONE;
	}
	uint32_t loc, loc_end;
	if (s->file_len >= s->mem_len || k - in_file >= nobits_end(im, seg) - s->nobits_first)
		return LOC_NONE;
	nobits_bounds(im, seg, s->nobits_first + (k - in_file), &loc, &loc_end);
	return loc;
}

bool image_item_at(const struct image *im, uint32_t loc, uint32_t *ret_start, uint32_t *ret_len,
		   enum image_item_kind *ret_kind)
{
	int seg = space_seg_of_loc(&im->space, loc);
	if (seg < 0)
		return false;
	uint32_t start, end;
	item_bounds(im, (uint32_t)seg, loc, &start, &end);
	*ret_start = start;
	*ret_len = end - start;
	*ret_kind = kind_of_run(im, run_of(im, start));
	return true;
}

/* Fills the iterator for the item of it->seg that holds loc. */
static void items_set(struct image_items *it, uint32_t loc)
{
	const struct image *im = it->im;
	uint32_t end;
	item_bounds(im, it->seg, loc, &it->loc, &end);
	it->len = end - it->loc;
	const struct space_seg *s = &im->segs[it->seg];
	it->nobits = loc - s->loc < s->file_len ? s->nobits_first : nobits_of(im, it->seg, loc);
	it->run = run_of(im, it->loc);
	it->run_end = it->run == UINT32_MAX ? UINT32_MAX : run_end(im, it->run);
	it->kind = kind_of_run(im, it->run);
}

bool image_items_from(const struct image *im, uint32_t loc, struct image_items *ret)
{
	int seg = space_seg_of_loc(&im->space, loc);
	if (seg < 0)
		return false;
	*ret = (struct image_items){.im = im, .seg = (uint32_t)seg};
	items_set(ret, loc);
	ret->row = image_row_of(im, ret->loc);
	return true;
}

bool image_items_next(struct image_items *it)
{
	const struct image *im = it->im;
	const struct space_seg *s = &im->segs[it->seg];
	uint32_t loc = it->loc + it->len;
	if (loc - s->loc >= s->mem_len) {
		if (it->seg + 1 >= im->space.seg_cnt)
			return false;
		it->seg++;
		items_set(it, im->segs[it->seg].loc);
		it->row++;
		return true;
	}
	if (loc - s->loc < s->file_len) {
		struct seg_bits b = seg_bits(im, it->seg);
		uint64_t next = next_start(im, b, b.first + (loc - s->loc) + 1);
		it->loc = loc;
		it->len = s->loc + (uint32_t)(next - b.first) - loc;
	} else {
		uint32_t end;
		if (it->loc - s->loc >= s->file_len)
			it->nobits++;
		nobits_bounds(im, it->seg, it->nobits, &it->loc, &end);
		if (it->loc < loc) /* a damaged list must not lead back */
			it->loc = loc;
		it->len = (end > it->loc ? end : s->loc + (uint32_t)s->mem_len) - it->loc;
	}
	it->row++;
	while (it->loc >= it->run_end && it->run + 1 < im->run_loc.cnt) {
		it->run++;
		it->run_end = run_end(im, it->run);
		it->kind = kind_of_run(im, it->run);
	}
	return true;
}

bool image_items_prev(struct image_items *it)
{
	const struct image *im = it->im;
	const struct space_seg *s = &im->segs[it->seg];
	uint32_t last;
	if (it->loc > s->loc) {
		last = it->loc - 1;
	} else if (it->seg) {
		it->seg--;
		last = im->segs[it->seg].loc + (uint32_t)im->segs[it->seg].mem_len - 1;
	} else {
		return false;
	}
	items_set(it, last);
	it->row--;
	return true;
}

static bool extra_block_at(const struct image *im, uint32_t loc, uint32_t *ret_next)
{
	uint32_t cnt;
	const uint32_t *extra = image_sect_data(im, IMAGE_SECT_BLOCK_EXTRA, &cnt);
	uint32_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (extra[mid] < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret_next = lo < cnt ? extra[lo] : UINT32_MAX;
	return lo < cnt && extra[lo] == loc;
}

bool image_block_starts(const struct image *im, uint32_t loc)
{
	int seg = space_seg_of_loc(&im->space, loc);
	uint32_t next;
	if (seg < 0 || loc - im->segs[seg].loc >= im->segs[seg].file_len)
		return false;
	uint64_t pos = seg_bits(im, (uint32_t)seg).first + (loc - im->segs[seg].loc);
	if (!bits_get(im->item_bits, pos))
		return extra_block_at(im, loc, &next);
	uint32_t k = rank_of(im, pos);
	return k < im->sects[IMAGE_SECT_BLOCK_BITS].cnt && bits_get(im->block_bits, k);
}

/* The first block of `seg` that begins an item at or after loc; `to` when there is none before. */
static uint32_t block_in_seg(const struct image *im, uint32_t seg, uint32_t loc, uint32_t to)
{
	const struct space_seg *s = &im->segs[seg];
	if (loc - s->loc >= s->file_len)
		return to;
	struct seg_bits b = seg_bits(im, seg);
	uint64_t pos = b.first + (loc - s->loc);
	uint64_t end = MIN(b.end, b.first + (to - s->loc));
	uint64_t cnt = im->sects[IMAGE_SECT_BLOCK_BITS].cnt;
	uint32_t k = rank_of(im, pos), k_end = rank_of(im, end);
	if (k >= k_end || k_end > cnt)
		return to;
	uint64_t found = bits_next(im->block_bits, k, k_end);
	if (found >= k_end)
		return to;
	uint64_t at = select_in(im, pos / BITS_RANK_SPAN, im->seg_block[seg + 1], (uint32_t)found, end);
	return at < end && at >= pos ? s->loc + (uint32_t)(at - b.first) : to;
}

uint32_t image_block_next(const struct image *im, uint32_t from, uint32_t to)
{
	uint32_t best = to, extra;
	extra_block_at(im, from, &extra);
	if (extra < best)
		best = extra;
	uint32_t loc = from;
	while (loc < best) {
		int seg = space_seg_of_loc(&im->space, loc);
		if (seg >= 0) {
			uint32_t found = block_in_seg(im, (uint32_t)seg, loc, best);
			if (found < best)
				return found;
		}
		/* On with the next segment that begins after loc. */
		uint32_t lo = 0, hi = im->space.seg_cnt;
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;
			if (im->segs[mid].loc <= loc)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo >= im->space.seg_cnt)
			break;
		loc = im->segs[lo].loc;
	}
	return best;
}
