/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"

static uint64_t bits_mask(uint64_t from, uint64_t to, uint64_t word)
{
	uint64_t mask = ~(uint64_t)0;
	if (word == from / 64)
		mask &= ~(uint64_t)0 << (from % 64);
	if (word == to / 64)
		mask &= ((uint64_t)1 << (to % 64)) - 1;
	return mask;
}

void bits_clear_range(uint64_t *w, uint64_t from, uint64_t to)
{
	for (uint64_t i = from / 64; from < to && i * 64 < to; i++)
		w[i] &= ~bits_mask(from, to, i);
}

void bits_set_range(uint64_t *w, uint64_t from, uint64_t to)
{
	for (uint64_t i = from / 64; from < to && i * 64 < to; i++)
		w[i] |= bits_mask(from, to, i);
}

uint64_t bits_next(const uint64_t *w, uint64_t from, uint64_t to)
{
	for (uint64_t i = from / 64; from < to && i * 64 < to; i++) {
		uint64_t word = w[i] & bits_mask(from, to, i);
		if (word)
			return i * 64 + (unsigned)__builtin_ctzll(word);
	}
	return to;
}

uint64_t bits_prev(const uint64_t *w, uint64_t from, uint64_t to)
{
	if (from >= to)
		return to;
	for (uint64_t i = (to - 1) / 64 + 1; i-- > from / 64;) {
		uint64_t word = w[i] & bits_mask(from, to, i);
		if (word)
			return i * 64 + 63 - (unsigned)__builtin_clzll(word);
	}
	return to;
}

void bits_rank_build(const uint64_t *w, uint64_t bits, uint32_t *ret_rank)
{
	uint32_t sum = 0;
	size_t words = bits_words(bits);
	for (size_t i = 0; i < words; i++) {
		if (i % (BITS_RANK_SPAN / 64) == 0)
			ret_rank[i / (BITS_RANK_SPAN / 64)] = sum;
		sum += (uint32_t)__builtin_popcountll(w[i]);
	}
	ret_rank[bits_rank_blocks(bits)] = sum;
}

uint64_t bits_rank(const uint64_t *w, const uint32_t *rank, uint64_t bits, uint64_t i)
{
	if (i >= bits)
		return rank[bits_rank_blocks(bits)];
	uint64_t sum = rank[i / BITS_RANK_SPAN];
	for (uint64_t k = i / BITS_RANK_SPAN * (BITS_RANK_SPAN / 64); k < i / 64; k++)
		sum += (unsigned)__builtin_popcountll(w[k]);
	if (i % 64)
		sum += (unsigned)__builtin_popcountll(w[i / 64] << (64 - i % 64));
	return sum;
}

uint64_t bits_select(const uint64_t *w, const uint32_t *rank, uint64_t bits, uint64_t k)
{
	size_t blocks = bits_rank_blocks(bits);
	if (k >= rank[blocks])
		return bits;
	size_t lo = 0, hi = blocks; /* rank[lo] <= k < rank[hi] */
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (rank[mid] <= k)
			lo = mid;
		else
			hi = mid;
	}
	uint64_t left = k - rank[lo];
	size_t words = bits_words(bits);
	for (size_t i = lo * (BITS_RANK_SPAN / 64); i < words; i++) {
		uint64_t word = w[i];
		unsigned n = (unsigned)__builtin_popcountll(word);
		if (left >= n) {
			left -= n;
			continue;
		}
		for (; left; left--)
			word &= word - 1;
		return (uint64_t)i * 64 + (unsigned)__builtin_ctzll(word);
	}
	return bits;
}
