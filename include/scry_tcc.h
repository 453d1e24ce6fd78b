/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRY_TCC_H
#define SCRY_TCC_H

/*
 * scry.h for the Tiny C Compiler: what that lacks of what the header is written in. Integers of 128 bits can be loaded, stored and
 * copied, nothing else; so code with arithmetic in them, of the x87, or of instructions that have no form in C is not for it, nor are
 * fused multiplications and conversions of unsigned integers to floating point. Whoever runs the code has scry_call().
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#undef __attribute__ /* the system's headers take them all away */

#define SCRY_OUTSIDE
#define SCRY_SHARED static
#define __builtin_trap() __asm__ volatile("ud2")
#define __builtin_clzll(a) scry_tcc_clz(a)
#define __builtin_ctzll(a) scry_tcc_ctz(a)
#define __builtin_popcountll(a) scry_tcc_popcnt(a)
#define __builtin_sqrtf(f) scry_tcc_sqrtf(f)
#define __builtin_sqrt(f) scry_tcc_sqrt(f)

static inline int scry_tcc_clz(uint64_t a)
{
	uint64_t n;
	__asm__("bsrq %1, %0" : "=r"(n) : "r"(a));
	return 63 - (int)n;
}

static inline int scry_tcc_ctz(uint64_t a)
{
	uint64_t n;
	__asm__("bsfq %1, %0" : "=r"(n) : "r"(a));
	return (int)n;
}

static inline int scry_tcc_popcnt(uint64_t a)
{
	int n = 0;
	for (; a; a &= a - 1)
		n++;
	return n;
}

/* Its assembler has no name for vector registers: sqrtss and movss, sqrtsd and movsd, of the place at rax through xmm0, which
 * holds nothing between statements. */
static inline float scry_tcc_sqrtf(float f)
{
	__asm__ volatile(".byte 0xf3, 0x0f, 0x51, 0x00, 0xf3, 0x0f, 0x11, 0x00" : : "a"(&f) : "memory");
	return f;
}

static inline double scry_tcc_sqrt(double f)
{
	__asm__ volatile(".byte 0xf2, 0x0f, 0x51, 0x00, 0xf2, 0x0f, 0x11, 0x00" : : "a"(&f) : "memory");
	return f;
}

/* Puts `v` there if it holds `old`; what it held. */
static inline uint64_t scry_tcc_cas(void *p, uint64_t old, uint64_t v, int len)
{
	if (len == 1)
		__asm__ volatile("lock; cmpxchgb %2, (%1)" : "+a"(old) : "r"(p), "c"((uint8_t)v) : "memory");
	else if (len == 2)
		__asm__ volatile("lock; cmpxchgw %2, (%1)" : "+a"(old) : "r"(p), "c"((uint16_t)v) : "memory");
	else if (len == 4)
		__asm__ volatile("lock; cmpxchgl %2, (%1)" : "+a"(old) : "r"(p), "c"((uint32_t)v) : "memory");
	else
		__asm__ volatile("lock; cmpxchgq %2, (%1)" : "+a"(old) : "r"(p), "c"(v) : "memory");
	return old;
}

#define SCRY_TCC_CHANGE(p, v)                                                              \
	({                                                                                 \
		__typeof__(*(p)) was_, is_ = *(p);                                         \
		do {                                                                       \
			was_ = is_;                                                        \
			is_ = (__typeof__(was_))scry_tcc_cas(p, was_, (v), sizeof(*(p)));  \
		} while (is_ != was_);                                                     \
		was_;                                                                      \
	})
#define __ATOMIC_SEQ_CST 0
#define __atomic_exchange_n(p, v, order) SCRY_TCC_CHANGE(p, v)
#define __atomic_fetch_add(p, v, order) SCRY_TCC_CHANGE(p, was_ + (v))
#define __atomic_fetch_sub(p, v, order) SCRY_TCC_CHANGE(p, was_ - (v))
#define __atomic_fetch_and(p, v, order) SCRY_TCC_CHANGE(p, was_ & (v))
#define __atomic_fetch_or(p, v, order) SCRY_TCC_CHANGE(p, was_ | (v))
#define __atomic_fetch_xor(p, v, order) SCRY_TCC_CHANGE(p, was_ ^ (v))
#define __atomic_compare_exchange_n(p, old, v, weak, order, fails) (*(old) = scry_tcc_cas(p, *(old), v, sizeof(*(p))))
#define __atomic_thread_fence(order) __asm__ volatile(".byte 0x0f, 0xae, 0xf0" : : : "memory") /* mfence */

/* It takes memory as it is written down: no assumption about alignment or types, and no call. */
#define SCRY_MEMORY(bits)                                                   \
	SCRY_INLINE uint##bits##_t scry_load##bits(uintptr_t addr)          \
	{                                                                   \
		return *(const uint##bits##_t *)addr;                       \
	}                                                                   \
	SCRY_INLINE void scry_store##bits(uintptr_t addr, uint##bits##_t v) \
	{                                                                   \
		*(uint##bits##_t *)addr = v;                                \
	}

#include "scry.h"

/* What SCRY_WIDE(64) would be, by the instructions themselves. */
SCRY_INLINE uint64_t scry_mul64(uint64_t a, uint64_t b)
{
	return a * b;
}

SCRY_INLINE uint64_t scry_umulh64(uint64_t a, uint64_t b)
{
	uint64_t lo, hi;
	__asm__("mulq %3" : "=a"(lo), "=d"(hi) : "0"(a), "c"(b));
	return hi;
}

SCRY_INLINE uint64_t scry_smulh64(uint64_t a, uint64_t b)
{
	uint64_t lo, hi;
	__asm__("imulq %3" : "=a"(lo), "=d"(hi) : "0"(a), "c"(b));
	return hi;
}

SCRY_INLINE uint1_t scry_ovf_mul64(uint64_t a, uint64_t b)
{
	return scry_smulh64(a, b) != (uint64_t)((int64_t)(a * b) >> 63);
}

#define SCRY_TCC_DIVIDE(name, insn, out)                                                \
	SCRY_INLINE uint64_t name(uint64_t hi, uint64_t lo, uint64_t c)                 \
	{                                                                               \
		uint64_t q, r;                                                          \
		__asm__(insn " %4" : "=a"(q), "=d"(r) : "0"(lo), "1"(hi), "c"(c));      \
		return out;                                                             \
	}
SCRY_TCC_DIVIDE(scry_udivw64, "divq", q)
SCRY_TCC_DIVIDE(scry_uremw64, "divq", r)
SCRY_TCC_DIVIDE(scry_sdivw64, "idivq", q)
SCRY_TCC_DIVIDE(scry_sremw64, "idivq", r)

SCRY_INLINE uint64_t scry_fshr64(uint64_t hi, uint64_t lo, uint64_t n)
{
	return n >= 128 ? 0 : n >= 64 ? hi >> (n - 64) : n ? lo >> n | hi << (64 - n) : lo;
}

#endif
