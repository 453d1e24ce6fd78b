/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_A64_A64_INT_H
#define ARCH_A64_A64_INT_H

#include "arch/arch.h"
#include "base/cur.h"

/*
 * AArch64. Flow, references and effects are read from the instruction words themselves (Arm ARM DDI
 * 0487, chapter C4); only the text comes from Capstone.
 *
 *   a64_decode.c  the table, decode()
 *   a64_effect.c  effect()
 *   a64_mem.c     effect() of loads and stores
 *   a64_valid.c   which words are no instruction
 *   a64_format.c  format()
 */
enum { A64_LEN = 4, A64_SP = 31, A64_LR = 30 };

/* The field of `cnt` bits from bit `lo`. */
static inline uint32_t a64_bits(uint32_t w, unsigned lo, unsigned cnt)
{
	return w >> lo & ((1u << cnt) - 1);
}

/* The same, sign-extended. */
static inline int64_t a64_sbits(uint32_t w, unsigned lo, unsigned cnt)
{
	return (int32_t)(w << (32 - lo - cnt)) >> (32 - cnt);
}

/* Instruction words are little-endian whatever the data are. */
static inline uint32_t a64_word(const uint8_t *p)
{
	return load_u32(p, false);
}

/* Target of adr or adrp. */
uint64_t a64_adr(uint32_t w, uint64_t va);

/* False for words that no version of the architecture gives a meaning, as far as that is cheap to say. */
bool a64_is_valid(uint32_t w);

void a64_decode(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_insn *ret);
void a64_effect(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_effect *ret);

/* Loads and stores: what they do to registers. */
void a64_mem_effect(uint32_t w, uint64_t va, struct arch_effect *ret);

size_t a64_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		  const struct arch_names *names, struct arch_text *ret);

#endif
