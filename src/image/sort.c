/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_int.h"

#include "base/cleanup.h"

/*
 * References are by far the most numerous thing in an image, so they are sorted by radix: three passes of 11 bits
 * over 32-bit locs, stable, into a second array of the same size. What shares a `from` is a handful, or the
 * targets of one switch, and is put in order by comparison.
 */
#define RADIX_BITS 11
#define RADIX_SIZE (1u << RADIX_BITS)
#define RADIX_PASSES 3

/* Turns counts into first positions; false when every key falls into one bucket and the pass can be left out. */
static bool radix_starts(uint32_t *counts, size_t cnt)
{
	uint32_t sum = 0;
	for (unsigned i = 0; i < RADIX_SIZE; i++) {
		uint32_t n = counts[i];
		if (n == cnt)
			return false;
		counts[i] = sum;
		sum += n;
	}
	return true;
}

static int compare_xrefs(const void *a, const void *b)
{
	const struct image_xref *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Orders one group of equal `from`. */
static void sort_group(struct image_xref *x, size_t cnt)
{
	if (cnt > 16) {
		qsort(x, cnt, sizeof(*x), compare_xrefs);
		return;
	}
	for (size_t i = 1; i < cnt; i++) {
		struct image_xref v = x[i];
		size_t k = i;
		for (; k && compare_xrefs(&x[k - 1], &v) > 0; k--)
			x[k] = x[k - 1];
		x[k] = v;
	}
}

/* Sorts the groups and drops repeats; returns how many are left. */
static size_t sort_groups(struct image_xref *x, size_t cnt)
{
	size_t kept = 0;
	for (size_t i = 0, end; i < cnt; i = end) {
		for (end = i + 1; end < cnt && x[end].from == x[i].from; end++)
			;
		sort_group(&x[i], end - i);
		for (size_t k = i; k < end; k++) {
			if (k == i || compare_xrefs(&x[k - 1], &x[k]))
				x[kept++] = x[k];
		}
	}
	return kept;
}

static bool is_sorted(const struct image_xref *x, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		if (x[i - 1].from > x[i].from)
			return false;
	}
	return true;
}

bool image_sort_xrefs(struct image_xref *xrefs, size_t *cnt)
{
	size_t n = *cnt;
	if (!is_sorted(xrefs, n)) {
		_cleanup_free_ struct image_xref *other = alloc_array(n, sizeof(*other));
		if (!other)
			return false;
		struct image_xref *from = xrefs, *to = other;
		for (unsigned shift = 0; shift < RADIX_BITS * RADIX_PASSES; shift += RADIX_BITS) {
			uint32_t counts[RADIX_SIZE] = {0};
			for (size_t i = 0; i < n; i++)
				counts[from[i].from >> shift & (RADIX_SIZE - 1)]++;
			if (!radix_starts(counts, n))
				continue;
			for (size_t i = 0; i < n; i++)
				to[counts[from[i].from >> shift & (RADIX_SIZE - 1)]++] = from[i];
			struct image_xref *t = from;
			from = to;
			to = t;
		}
		if (from != xrefs)
			memcpy(xrefs, from, n * sizeof(*xrefs));
	}
	*cnt = sort_groups(xrefs, n);
	return true;
}

bool image_sort_reverse(const struct image_xref *xrefs, size_t cnt, uint32_t *ret)
{
	_cleanup_free_ uint32_t *other = alloc_array(cnt, sizeof(*other));
	if (!other)
		return false;
	for (size_t i = 0; i < cnt; i++)
		ret[i] = (uint32_t)i;
	uint32_t *from = ret, *to = other;
	for (unsigned shift = 0; shift < RADIX_BITS * RADIX_PASSES; shift += RADIX_BITS) {
		uint32_t counts[RADIX_SIZE] = {0};
		for (size_t i = 0; i < cnt; i++)
			counts[xrefs[i].to >> shift & (RADIX_SIZE - 1)]++;
		if (!radix_starts(counts, cnt))
			continue;
		for (size_t i = 0; i < cnt; i++)
			to[counts[xrefs[from[i]].to >> shift & (RADIX_SIZE - 1)]++] = from[i];
		uint32_t *t = from;
		from = to;
		to = t;
	}
	if (from != ret)
		memcpy(ret, from, cnt * sizeof(*ret));
	return true;
}
