/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_X86_X86_INT_H
#define ARCH_X86_X86_INT_H

#include "arch/x86/x86_zydis.h"

/*
 * x86-64 and i386. Lengths, validity and operands come from Zydis; the text is written here.
 *
 *   x86.c          the two tables, register names, small helpers
 *   x86_decode.c   decode() through Zydis: the reference, and what everything rare takes
 *   x86_fast.c     decode() for the encodings that make up nearly all code
 *   x86_effect.c   effect()
 *   x86_access.c   accesses()
 *   x86_format.c   format(): the order of things, what is (bad)
 *   x86_text_fast.c  format() for the common encodings
 *   x86_prefix.c   prefixes that are written
 *   x86_mnemonic.c mnemonics and memory widths
 *   x86_operand.c  operands
 */
#define X86_MAX_LEN 15

/* Values nearer to zero than this are plain numbers: no address space maps its first page. */
#define X86_SMALL 0x1000

/* A virtual address cut to the machine's width. */
static inline uint64_t x86_va(const struct arch *a, uint64_t va)
{
	return a->bits == 32 ? (uint32_t)va : va;
}

/* Number of the general register that `r` is or is part of, ARCH_REG_NONE for all others. `*ret_width`
 * (may be null) is in bytes; ah, ch, dh and bh give `*ret_is_high`. */
uint8_t x86_gpr(ZydisRegister r, uint8_t *ret_width, bool *ret_is_high);

/*
 * What stands before an instruction without being part of it, for listings that agree with objdump's:
 * prefixes up to a REX that another prefix follows (the processor ignores that REX) are an item of
 * their own, and an fwait belongs to the floating-point instruction behind it. Gives the number of
 * bytes, 0 in nearly all cases, and `*ret_is_fwait`.
 */
unsigned x86_lead(const struct arch *a, const uint8_t *p, size_t len, bool *ret_is_fwait);

/* A legacy prefix byte, or 0x40..0x4f in 64-bit mode. */
bool x86_is_legacy_prefix(uint8_t b);

static inline bool x86_is_rex(const struct arch *a, uint8_t b)
{
	return a->bits == 64 && (b & 0xf0) == 0x40;
}

void x86_decode(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_insn *ret);

/* The same answer for every input, by way of Zydis alone. */
void x86_decode_slow(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		     struct arch_insn *ret);

/* True when the bytes are one of the encodings it knows; else `ret` holds nothing. */
bool x86_decode_fast(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		     struct arch_insn *ret);

void x86_effect(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		struct arch_effect *ret);

size_t x86_accesses(const struct arch *a, const uint8_t *p, size_t len, const struct arch_machine *m, struct arch_access *out, size_t cap);

/* The text through Zydis: the reference, and what everything rare takes. */
size_t x86_format_slow(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		       const struct arch_names *names, struct arch_text *ret);

/* The same text for the encodings it knows; else 0, and `ret` holds nothing. */
size_t x86_format_fast(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		       const struct arch_names *names, struct arch_text *ret);

size_t x86_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		  const struct arch_names *names, struct arch_text *ret);

#endif
