/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bit sets over 64-bit words, and rank/select over them. The caller keeps indices in range.
 * Bit i is bit i%64 of word i/64, little-endian words, which is also their form in the image file.
 */
static inline size_t bits_words(uint64_t bits)
{
	return (size_t)(bits / 64 + (bits % 64 != 0));
}

static inline bool bits_get(const uint64_t *w, uint64_t i)
{
	return w[i / 64] >> (i % 64) & 1;
}

static inline void bits_set(uint64_t *w, uint64_t i)
{
	w[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void bits_clear(uint64_t *w, uint64_t i)
{
	w[i / 64] &= ~((uint64_t)1 << (i % 64));
}

/* Clears or sets the bits [from, to). */
void bits_clear_range(uint64_t *w, uint64_t from, uint64_t to);
void bits_set_range(uint64_t *w, uint64_t from, uint64_t to);

/* First set bit in [from, to), or `to`. */
uint64_t bits_next(const uint64_t *w, uint64_t from, uint64_t to);

/* Last set bit in [from, to), or `to` when there is none. */
uint64_t bits_prev(const uint64_t *w, uint64_t from, uint64_t to);

/*
 * Rank directory: one u32 per 512 bits (8 words), the number of set bits before that block; its
 * length is bits_rank_blocks(bits) + 1, the last entry being the total.
 */
#define BITS_RANK_SPAN 512

static inline size_t bits_rank_blocks(uint64_t bits)
{
	return (size_t)((bits + BITS_RANK_SPAN - 1) / BITS_RANK_SPAN);
}

void bits_rank_build(const uint64_t *w, uint64_t bits, uint32_t *ret_rank);

/* Number of set bits before bit i (i <= bits). Cost: at most eight words. */
uint64_t bits_rank(const uint64_t *w, const uint32_t *rank, uint64_t bits, uint64_t i);

/* Index of the k-th set bit (k from 0), or `bits` when there are not that many. Binary search over
 * the directory, then at most eight words. */
uint64_t bits_select(const uint64_t *w, const uint32_t *rank, uint64_t bits, uint64_t k);

#endif
