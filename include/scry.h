/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRY_H
#define SCRY_H

/*
 * The header of C that scry prints. Everything is total: a helper has one result for every input, the one the
 * machine gives, where C alone would be undefined (shifts by the width and more, signed overflow, division that traps,
 * unaligned and re-typed memory). Nothing but the compiler's own headers is needed; gcc and clang in gnu11
 * mode define the two things ISO C leaves open here, narrowing to signed types and right shifts of negative values.
 *
 * Names end in the width in bits: 8, 16, 32, 64.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SCRY_INLINE static inline __attribute__((unused, always_inline))

/* Ends the program as the processor would on an undefined instruction or a failed division. */
SCRY_INLINE __attribute__((noreturn)) void scry_trap(void)
{
	__builtin_trap();
}

/* --- memory: any address, any alignment, any type behind it; in the byte order of the machine ------------- */
#define SCRY_MEMORY(bits)                                                        \
	SCRY_INLINE uint##bits##_t scry_load##bits(uintptr_t addr)               \
	{                                                                        \
		uint##bits##_t v;                                                \
		memcpy(&v, (const void *)addr, sizeof(v));                       \
		return v;                                                        \
	}                                                                        \
	SCRY_INLINE void scry_store##bits(uintptr_t addr, uint##bits##_t v)      \
	{                                                                        \
		memcpy((void *)addr, &v, sizeof(v));                             \
	}

/* --- integers --------------------------------------------------------------------------------------------- */
/*
 * shl, lshr, ashr: a count of the width or more gives 0, 0, copies of the sign bit.
 * rotl, rotr: the count is taken modulo the width.
 * carry, borrow: out of a + b + c and a - b - c, c being 0 or 1; ovf_add, ovf_sub: signed overflow of the same.
 * udiv, urem, sdiv, srem: truncating; a divisor of 0 and a quotient that does not fit trap, as x86 does.
 * clz, ctz of 0 give the width; popcnt counts ones.
 */
#define SCRY_INTEGERS(bits)                                                                              \
	SCRY_MEMORY(bits)                                                                                \
	SCRY_INLINE uint##bits##_t scry_shl##bits(uint##bits##_t a, uint64_t n)                          \
	{                                                                                                \
		return n < bits ? (uint##bits##_t)((uint64_t)a << n) : 0;                                \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_lshr##bits(uint##bits##_t a, uint64_t n)                         \
	{                                                                                                \
		return n < bits ? (uint##bits##_t)((uint64_t)a >> n) : 0;                                \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_ashr##bits(uint##bits##_t a, uint64_t n)                         \
	{                                                                                                \
		return (uint##bits##_t)((int64_t)(int##bits##_t)a >> (n < bits ? n : bits - 1));         \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_rotl##bits(uint##bits##_t a, uint64_t n)                         \
	{                                                                                                \
		n %= bits;                                                                               \
		return n ? (uint##bits##_t)((uint64_t)a << n | (uint64_t)a >> (bits - n)) : a;           \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_rotr##bits(uint##bits##_t a, uint64_t n)                         \
	{                                                                                                \
		return scry_rotl##bits(a, bits - n % bits);                                              \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_carry##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)              \
	{                                                                                                \
		uint##bits##_t sum = (uint##bits##_t)(a + b);                                            \
		return (uint8_t)(sum < a || (uint##bits##_t)(sum + c) < sum);                            \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_borrow##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)             \
	{                                                                                                \
		return (uint8_t)(a < b || (uint##bits##_t)(a - b) < c);                                  \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_ovf_add##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)            \
	{                                                                                                \
		uint##bits##_t r = (uint##bits##_t)(a + b + c);                                          \
		return (uint8_t)(((a ^ r) & (b ^ r)) >> (bits - 1) & 1);                                 \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_ovf_sub##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)            \
	{                                                                                                \
		uint##bits##_t r = (uint##bits##_t)(a - b - c);                                          \
		return (uint8_t)(((a ^ b) & (a ^ r)) >> (bits - 1) & 1);                                 \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_udiv##bits(uint##bits##_t a, uint##bits##_t b)                   \
	{                                                                                                \
		if (!b)                                                                                  \
			scry_trap();                                                                     \
		return (uint##bits##_t)(a / b);                                                          \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_urem##bits(uint##bits##_t a, uint##bits##_t b)                   \
	{                                                                                                \
		if (!b)                                                                                  \
			scry_trap();                                                                     \
		return (uint##bits##_t)(a % b);                                                          \
	}                                                                                                \
	SCRY_INLINE void scry_check_div##bits(uint##bits##_t a, uint##bits##_t b)                        \
	{                                                                                                \
		if (!b || (b == (uint##bits##_t)-1 && a == (uint##bits##_t)((uint64_t)1 << (bits - 1)))) \
			scry_trap();                                                                     \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_sdiv##bits(uint##bits##_t a, uint##bits##_t b)                   \
	{                                                                                                \
		scry_check_div##bits(a, b);                                                              \
		return (uint##bits##_t)((int##bits##_t)a / (int##bits##_t)b);                            \
	}                                                                                                \
	SCRY_INLINE uint##bits##_t scry_srem##bits(uint##bits##_t a, uint##bits##_t b)                   \
	{                                                                                                \
		scry_check_div##bits(a, b);                                                              \
		return (uint##bits##_t)((int##bits##_t)a % (int##bits##_t)b);                            \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_clz##bits(uint##bits##_t a)                                             \
	{                                                                                                \
		return (uint8_t)(a ? __builtin_clzll(a) - (64 - bits) : bits);                           \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_ctz##bits(uint##bits##_t a)                                             \
	{                                                                                                \
		return (uint8_t)(a ? __builtin_ctzll(a) : bits);                                         \
	}                                                                                                \
	SCRY_INLINE uint8_t scry_popcnt##bits(uint##bits##_t a)                                          \
	{                                                                                                \
		return (uint8_t)__builtin_popcountll(a);                                                 \
	}

SCRY_INTEGERS(8)
SCRY_INTEGERS(16)
SCRY_INTEGERS(32)
SCRY_INTEGERS(64)

/* 1 when the low byte has an even number of ones: the parity flag of x86. */
SCRY_INLINE uint8_t scry_parity(uint64_t a)
{
	return (uint8_t)(~__builtin_popcountll(a & 0xff) & 1);
}

/* The high half of the product. */
SCRY_INLINE uint32_t scry_umulh32(uint32_t a, uint32_t b)
{
	return (uint32_t)((uint64_t)a * b >> 32);
}

SCRY_INLINE uint32_t scry_smulh32(uint32_t a, uint32_t b)
{
	return (uint32_t)((uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32);
}

SCRY_INLINE uint64_t scry_umulh64(uint64_t a, uint64_t b)
{
	uint64_t lo = (a & 0xffffffff) * (b & 0xffffffff);
	uint64_t m1 = (a >> 32) * (b & 0xffffffff) + (lo >> 32);
	uint64_t m2 = (a & 0xffffffff) * (b >> 32) + (m1 & 0xffffffff);
	return (a >> 32) * (b >> 32) + (m1 >> 32) + (m2 >> 32);
}

SCRY_INLINE uint64_t scry_smulh64(uint64_t a, uint64_t b)
{
	return scry_umulh64(a, b) - ((a >> 63) ? b : 0) - ((b >> 63) ? a : 0);
}

/* --- floating point: the rules of SSE2 ---------------------------------------------------------------------- */
/* minsd, maxsd: the second operand when either is a NaN or both are zeros. */
SCRY_INLINE double scry_minsd(double a, double b)
{
	return a < b ? a : b;
}

SCRY_INLINE double scry_maxsd(double a, double b)
{
	return a > b ? a : b;
}

SCRY_INLINE float scry_minss(float a, float b)
{
	return a < b ? a : b;
}

SCRY_INLINE float scry_maxss(float a, float b)
{
	return a > b ? a : b;
}

/* cvttsd2si, cvttss2si: truncate; a NaN and what does not fit give the "integer indefinite" value. */
SCRY_INLINE uint32_t scry_cvtt32(double a)
{
	return a > -2147483649.0 && a < 2147483648.0 ? (uint32_t)(int32_t)a : 0x80000000u;
}

SCRY_INLINE uint64_t scry_cvtt64(double a)
{
	return a >= -0x1p63 && a < 0x1p63 ? (uint64_t)(int64_t)a : (uint64_t)1 << 63;
}

#endif
