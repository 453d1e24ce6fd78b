/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRY_H
#define SCRY_H

/*
 * The header of C that scry prints. Everything is total: a helper has one result for every input, the one the
 * machine gives, where C alone would be undefined (shifts by the width and more, signed overflow, division that traps,
 * unaligned and re-typed memory). Nothing but the compiler's own headers is needed; gcc and clang in gnu11
 * mode define the two things ISO C leaves open here, narrowing to signed types and right shifts of negative values.
 *
 * Names end in the width in bits: 8, 16, 32, 64, and 128 where the compiler has such a type. A value of one bit is a
 * uint1_t that holds 0 or 1; floating point values are their bits in an integer, of 80 bits in a uint80_t.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
/* Functions take what they were given, not only what they use. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#if defined(__clang__) || __GNUC__ >= 12
/* A function that only ends by a jump out of it may call itself on every way. */
#pragma GCC diagnostic ignored "-Winfinite-recursion"
#endif

#define SCRY_INLINE static inline __attribute__((unused, always_inline))

typedef uint8_t uint1_t;
#ifdef __SIZEOF_INT128__
typedef unsigned __int128 uint128_t;
typedef __int128 int128_t;
#else
typedef struct { uint64_t w[2]; } __attribute__((aligned(16))) uint128_t; /* can be loaded, stored and copied */
#endif
typedef uint128_t uint80_t; /* the upper 48 bits are 0 */
typedef struct { uint64_t w[4]; } uint256_t;
typedef struct { uint64_t w[8]; } uint512_t;

/* Ends the program as the processor would on an undefined instruction or a failed division. */
SCRY_INLINE __attribute__((noreturn)) void scry_trap(void)
{
	__builtin_trap();
}

/* A condition whose outcome is known: compilers warn of what they see is one. */
SCRY_INLINE uint1_t scry_known(uint1_t v)
{
	return v;
}

/* --- memory: any address, any alignment, any type behind it; in the byte order of the machine ------------- */
#if defined(__GNUC__) && !defined(__clang__)
/* An address near 0 is one, too; gcc takes it for a member of a null pointer. */
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
#ifndef SCRY_MEMORY
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
#endif

/* --- integers --------------------------------------------------------------------------------------------- */
/*
 * shl, lshr, ashr: a count of the width or more gives 0, 0, copies of the sign bit.
 * rotl, rotr: the count is taken modulo the width.
 * carry, borrow: out of a + b + c and a - b - c, c being 0 or 1; ovf_add, ovf_sub: signed overflow of the same.
 * udiv, urem, sdiv, srem: truncating; a divisor of 0 and a quotient that does not fit trap, as x86 does.
 * not: all bits the other way.
 * clz, ctz of 0 give the width; popcnt counts ones.
 */
#define SCRY_SHIFTS(bits, wide, swide)                                           \
	SCRY_INLINE uint##bits##_t scry_shl##bits(uint##bits##_t a, uint64_t n)  \
	{                                                                        \
		return n < bits ? (uint##bits##_t)((wide)a << n) : 0;            \
	}                                                                        \
	SCRY_INLINE uint##bits##_t scry_lshr##bits(uint##bits##_t a, uint64_t n) \
	{                                                                        \
		return n < bits ? (uint##bits##_t)((wide)a >> n) : 0;            \
	}                                                                        \
	SCRY_INLINE uint##bits##_t scry_ashr##bits(uint##bits##_t a, uint64_t n) \
	{                                                                        \
		n = n < bits ? n : bits - 1;                                     \
		return (uint##bits##_t)((swide)(int##bits##_t)a >> n);           \
	}
#define SCRY_UDIV(bits, name, op)                                                               \
	SCRY_INLINE uint##bits##_t scry_##name##bits(uint##bits##_t a, uint##bits##_t b)        \
	{                                                                                       \
		if (!b)                                                                         \
			scry_trap();                                                            \
		return (uint##bits##_t)(a op b);                                                \
	}
#define SCRY_SDIV(bits, name, op)                                                               \
	SCRY_INLINE uint##bits##_t scry_##name##bits(uint##bits##_t a, uint##bits##_t b)        \
	{                                                                                       \
		scry_check_div##bits(a, b);                                                     \
		return (uint##bits##_t)((int##bits##_t)a op (int##bits##_t)b);                  \
	}
#define SCRY_INTEGERS(bits)                                                                                     \
	SCRY_MEMORY(bits)                                                                                       \
	SCRY_SHIFTS(bits, uint64_t, int64_t)                                                                    \
	SCRY_INLINE uint##bits##_t scry_rotl##bits(uint##bits##_t a, uint64_t n)                                \
	{                                                                                                       \
		n %= bits;                                                                                      \
		return n ? (uint##bits##_t)((uint64_t)a << n | (uint64_t)a >> (bits - n)) : a;                  \
	}                                                                                                       \
	SCRY_INLINE uint##bits##_t scry_rotr##bits(uint##bits##_t a, uint64_t n)                                \
	{                                                                                                       \
		return scry_rotl##bits(a, bits - n % bits);                                                     \
	}                                                                                                       \
	SCRY_INLINE uint8_t scry_carry##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)                     \
	{                                                                                                       \
		uint##bits##_t sum = (uint##bits##_t)(a + b);                                                   \
		return (uint8_t)(sum < a || (uint##bits##_t)(sum + c) < sum);                                   \
	}                                                                                                       \
	SCRY_INLINE uint8_t scry_borrow##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)                    \
	{                                                                                                       \
		return (uint8_t)(a < b || (uint##bits##_t)(a - b) < c);                                         \
	}                                                                                                       \
	SCRY_INLINE uint8_t scry_ovf_add##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)                   \
	{                                                                                                       \
		uint##bits##_t r = (uint##bits##_t)(a + b + c);                                                 \
		return (uint8_t)(((a ^ r) & (b ^ r)) >> (bits - 1) & 1);                                        \
	}                                                                                                       \
	SCRY_INLINE uint8_t scry_ovf_sub##bits(uint##bits##_t a, uint##bits##_t b, uint8_t c)                   \
	{                                                                                                       \
		uint##bits##_t r = (uint##bits##_t)(a - b - c);                                                 \
		return (uint8_t)(((a ^ b) & (a ^ r)) >> (bits - 1) & 1);                                        \
	}                                                                                                       \
	SCRY_UDIV(bits, udiv, /)                                                                                \
	SCRY_UDIV(bits, urem, %)                                                                                \
	SCRY_INLINE void scry_check_div##bits(uint##bits##_t a, uint##bits##_t b)                               \
	{                                                                                                       \
		if (!b || (b == (uint##bits##_t)-1 && a == (uint##bits##_t)((uint64_t)1 << (bits - 1))))        \
			scry_trap();                                                                            \
	}                                                                                                       \
	SCRY_SDIV(bits, sdiv, /)                                                                                \
	SCRY_SDIV(bits, srem, %)                                                                                \
	SCRY_INLINE uint##bits##_t scry_clz##bits(uint##bits##_t a)                                             \
	{                                                                                                       \
		return (uint##bits##_t)(a ? __builtin_clzll(a) - (64 - bits) : bits);                           \
	}                                                                                                       \
	SCRY_INLINE uint##bits##_t scry_ctz##bits(uint##bits##_t a)                                             \
	{                                                                                                       \
		return (uint##bits##_t)(a ? __builtin_ctzll(a) : bits);                                         \
	}                                                                                                       \
	SCRY_INLINE uint##bits##_t scry_popcnt##bits(uint##bits##_t a)                                          \
	{                                                                                                       \
		return (uint##bits##_t)__builtin_popcountll(a);                                                 \
	}

/* What memory is read and written as: *(u32 *)ADDRESS. Wherever it lies, and whatever else lies there. */
typedef uint8_t u8 __attribute__((may_alias));
typedef uint16_t u16 __attribute__((may_alias, aligned(1)));
typedef uint32_t u32 __attribute__((may_alias, aligned(1)));
typedef uint64_t u64 __attribute__((may_alias, aligned(1)));
typedef int8_t i8 __attribute__((may_alias));
typedef int16_t i16 __attribute__((may_alias, aligned(1)));
typedef int32_t i32 __attribute__((may_alias, aligned(1)));
typedef int64_t i64 __attribute__((may_alias, aligned(1)));

SCRY_INTEGERS(8)
SCRY_INTEGERS(16)
SCRY_INTEGERS(32)
SCRY_INTEGERS(64)

SCRY_INLINE uint8_t scry_not8(uint8_t a)
{
	return (uint8_t)~a;
}

SCRY_INLINE uint16_t scry_not16(uint16_t a)
{
	return (uint16_t)~a;
}

/* 1 when the low byte has an even number of ones: the parity flag of x86. */
SCRY_INLINE uint8_t scry_parity(uint64_t a)
{
	return (uint8_t)(~__builtin_popcountll(a & 0xff) & 1);
}

/* High halves of products, low halves, the same divisions of a double-width dividend hi:lo, signed overflow of a product,
 * the low half of hi:lo shifted right. `twice` is the type of twice the width. */
#define SCRY_UDIVW(bits, name, op)                                                                              \
	SCRY_INLINE uint##bits##_t scry_##name##bits(uint##bits##_t hi, uint##bits##_t lo, uint##bits##_t c)    \
	{                                                                                                       \
		if (hi >= c)                                                                                    \
			scry_trap();                                                                            \
		return (uint##bits##_t)(scry_pair##bits(hi, lo) op c);                                          \
	}
#define SCRY_SDIVW(bits, name, op)                                                                              \
	SCRY_INLINE uint##bits##_t scry_##name##bits(uint##bits##_t hi, uint##bits##_t lo, uint##bits##_t c)    \
	{                                                                                                       \
		return (uint##bits##_t)(scry_sdivcheck##bits(hi, lo, c) op (int##bits##_t)c);                   \
	}
#define SCRY_WIDE(bits, twice, stwice)                                                                                  \
	SCRY_INLINE uint##bits##_t scry_mul##bits(uint##bits##_t a, uint##bits##_t b)                                   \
	{                                                                                                               \
		return (uint##bits##_t)((uint64_t)a * b);                                                               \
	}                                                                                                               \
	SCRY_INLINE uint##bits##_t scry_umulh##bits(uint##bits##_t a, uint##bits##_t b)                                 \
	{                                                                                                               \
		return (uint##bits##_t)((twice)a * b >> bits);                                                          \
	}                                                                                                               \
	SCRY_INLINE uint##bits##_t scry_smulh##bits(uint##bits##_t a, uint##bits##_t b)                                 \
	{                                                                                                               \
		return (uint##bits##_t)((twice)((stwice)(int##bits##_t)a * (int##bits##_t)b) >> bits);                  \
	}                                                                                                               \
	SCRY_INLINE uint1_t scry_ovf_mul##bits(uint##bits##_t a, uint##bits##_t b)                                      \
	{                                                                                                               \
		stwice p = (stwice)(int##bits##_t)a * (int##bits##_t)b;                                                 \
		return p != (int##bits##_t)p;                                                                           \
	}                                                                                                               \
	SCRY_INLINE twice scry_pair##bits(uint##bits##_t hi, uint##bits##_t lo)                                         \
	{                                                                                                               \
		return (twice)((twice)hi << bits | lo);                                                                 \
	}                                                                                                               \
	SCRY_UDIVW(bits, udivw, /)                                                                                      \
	SCRY_UDIVW(bits, uremw, %)                                                                                      \
	SCRY_INLINE stwice scry_sdivcheck##bits(uint##bits##_t hi, uint##bits##_t lo, uint##bits##_t c)                 \
	{                                                                                                               \
		stwice a = (stwice)scry_pair##bits(hi, lo), b = (int##bits##_t)c;                                       \
		if (!b || (b == -1 && (twice)a == (twice)1 << (2 * bits - 1)) || a / b != (int##bits##_t)(a / b))       \
			scry_trap();                                                                                    \
		return a;                                                                                               \
	}                                                                                                               \
	SCRY_SDIVW(bits, sdivw, /)                                                                                      \
	SCRY_SDIVW(bits, sremw, %)                                                                                      \
	SCRY_INLINE uint##bits##_t scry_fshr##bits(uint##bits##_t hi, uint##bits##_t lo, uint64_t n)                    \
	{                                                                                                               \
		return n < 2 * bits ? (uint##bits##_t)(scry_pair##bits(hi, lo) >> n) : 0;                               \
	}

SCRY_WIDE(8, uint16_t, int16_t)
SCRY_WIDE(16, uint32_t, int32_t)
SCRY_WIDE(32, uint64_t, int64_t)
#ifdef __SIZEOF_INT128__
SCRY_WIDE(64, uint128_t, int128_t)
#endif

/* `a` of the first width with the bits from `off` on, as many as the second width, replaced by `b`. */
#define SCRY_INSERT(wide, bits, ones)                                                                          \
	SCRY_INLINE uint##wide##_t scry_insert##wide##_##bits(uint##wide##_t a, uint##bits##_t b, unsigned off) \
	{                                                                                                      \
		uint##wide##_t mask = (uint##wide##_t)((uint##wide##_t)ones << off);                           \
		return (uint##wide##_t)((a & (uint##wide##_t)~mask) | ((uint##wide##_t)b << off));             \
	}
/* The sign of the second width spread over the first. */
#define SCRY_SEXT(wide, bits)                                                      \
	SCRY_INLINE uint##wide##_t scry_sext##wide##_##bits(uint##bits##_t a)      \
	{                                                                          \
		return (uint##wide##_t)(int##wide##_t)(int##bits##_t)a;            \
	}
#define SCRY_SEXT1(wide)                                                   \
	SCRY_INLINE uint##wide##_t scry_sext##wide##_1(uint1_t a)          \
	{                                                                  \
		return (uint##wide##_t)(a ? ~(uint##wide##_t)0 : 0);       \
	}
#define SCRY_FROM_8(wide) SCRY_INSERT(wide, 1, 1u) SCRY_INSERT(wide, 8, 0xffu) SCRY_SEXT1(wide) SCRY_SEXT(wide, 8)
#define SCRY_FROM_16(wide) SCRY_FROM_8(wide) SCRY_INSERT(wide, 16, 0xffffu) SCRY_SEXT(wide, 16)
#define SCRY_FROM_32(wide) SCRY_FROM_16(wide) SCRY_INSERT(wide, 32, 0xffffffffu) SCRY_SEXT(wide, 32)
SCRY_INSERT(8, 1, 1u)
SCRY_SEXT1(8)
SCRY_FROM_8(16)
SCRY_FROM_16(32)
SCRY_FROM_32(64)

/* Bytes in the other order. */
SCRY_INLINE uint16_t scry_bswap16(uint16_t a)
{
	return (uint16_t)(a << 8 | a >> 8);
}

SCRY_INLINE uint32_t scry_bswap32(uint32_t a)
{
	return (uint32_t)scry_bswap16((uint16_t)a) << 16 | scry_bswap16((uint16_t)(a >> 16));
}

SCRY_INLINE uint64_t scry_bswap64(uint64_t a)
{
	return (uint64_t)scry_bswap32((uint32_t)a) << 32 | scry_bswap32((uint32_t)(a >> 32));
}

/* pdep, pext: the low bits of `a` put where `mask` has ones; the bits of `a` where it has ones, put together. */
SCRY_INLINE uint64_t scry_pdep64(uint64_t a, uint64_t mask)
{
	uint64_t r = 0;
	for (; mask; mask &= mask - 1, a >>= 1)
		r |= a & 1 ? mask & (0 - mask) : 0;
	return r;
}

SCRY_INLINE uint64_t scry_pext64(uint64_t a, uint64_t mask)
{
	uint64_t r = 0;
	for (unsigned i = 0; mask; mask &= mask - 1, i++)
		r |= (uint64_t)((a & mask & (0 - mask)) != 0) << i;
	return r;
}

#define SCRY_DEPOSIT(bits)                                                                  \
	SCRY_INLINE uint##bits##_t scry_pdep##bits(uint##bits##_t a, uint##bits##_t mask)   \
	{                                                                                   \
		return (uint##bits##_t)scry_pdep64(a, mask);                                \
	}                                                                                   \
	SCRY_INLINE uint##bits##_t scry_pext##bits(uint##bits##_t a, uint##bits##_t mask)   \
	{                                                                                   \
		return (uint##bits##_t)scry_pext64(a, mask);                                \
	}
SCRY_DEPOSIT(8)
SCRY_DEPOSIT(16)
SCRY_DEPOSIT(32)

#ifdef __SIZEOF_INT128__
SCRY_FROM_32(128)
SCRY_INSERT(128, 64, 0xffffffffffffffffu)
SCRY_SEXT(128, 64)

SCRY_INLINE uint128_t scry_insert128_80(uint128_t a, uint80_t b, unsigned off)
{
	uint128_t mask = (((uint128_t)1 << 80) - 1) << off;
	return (a & ~mask) | b << off;
}

/* A constant of more than 64 bits. */
SCRY_INLINE uint128_t scry_u128(uint64_t hi, uint64_t lo)
{
	return scry_pair64(hi, lo);
}

SCRY_INLINE uint128_t scry_mul128(uint128_t a, uint128_t b)
{
	return a * b;
}

SCRY_SHIFTS(128, uint128_t, int128_t)

SCRY_INLINE uint80_t scry_load80(uintptr_t addr)
{
	return (uint80_t)scry_load16(addr + 8) << 64 | scry_load64(addr);
}

SCRY_INLINE void scry_store80(uintptr_t addr, uint80_t v)
{
	scry_store64(addr, (uint64_t)v);
	scry_store16(addr + 8, (uint16_t)(v >> 64));
}
#endif
SCRY_MEMORY(128)
SCRY_MEMORY(256)
SCRY_MEMORY(512)

/* --- atomic memory, sequentially consistent: all give the old value ------------------------------------------ */
/* The processor does these at any address; of one that may not be aligned clang makes a call of a library. */
#define SCRY_FETCH(bits, op)                                                                    \
	SCRY_INLINE uint##bits##_t scry_atomic_##op##bits(uintptr_t addr, uint##bits##_t v)     \
	{                                                                                       \
		return __atomic_fetch_##op((scry_cell##bits *)addr, v, __ATOMIC_SEQ_CST);       \
	}
#define SCRY_ATOMIC(bits)                                                                                               \
	typedef uint##bits##_t scry_cell##bits __attribute__((may_alias));                                              \
	SCRY_INLINE uint##bits##_t scry_atomic_xchg##bits(uintptr_t addr, uint##bits##_t v)                             \
	{                                                                                                               \
		return __atomic_exchange_n((scry_cell##bits *)addr, v, __ATOMIC_SEQ_CST);                               \
	}                                                                                                               \
	SCRY_FETCH(bits, add)                                                                                           \
	SCRY_FETCH(bits, sub)                                                                                           \
	SCRY_FETCH(bits, and)                                                                                           \
	SCRY_FETCH(bits, or)                                                                                            \
	SCRY_FETCH(bits, xor)                                                                                           \
	SCRY_INLINE uint##bits##_t scry_atomic_cas##bits(uintptr_t addr, uint##bits##_t old, uint##bits##_t v)          \
	{                                                                                                               \
		__atomic_compare_exchange_n((scry_cell##bits *)addr, &old, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
		return old;                                                                                             \
	}
SCRY_ATOMIC(8)
SCRY_ATOMIC(16)
SCRY_ATOMIC(32)
SCRY_ATOMIC(64)

SCRY_INLINE void scry_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* --- repeated string operations ------------------------------------------------------------------------------- */
/*
 * Addresses and count are left as the processor leaves them. cmp and scan go on while the two elements are equal
 * (go_on 1) or differ (0); the last two compared are in *a and *b, 0 when the count was 0.
 */
#define SCRY_REP(bits)                                                                                         \
	SCRY_INLINE uintptr_t scry_rep_step##bits(uint1_t back)                                                \
	{                                                                                                      \
		return back ? 0 - (uintptr_t)(bits / 8) : bits / 8;                                            \
	}                                                                                                      \
	SCRY_INLINE void scry_rep_copy##bits(uintptr_t *dst, uintptr_t *src, uintptr_t *cnt, uint1_t back)     \
	{                                                                                                      \
		for (; *cnt; --*cnt, *dst += scry_rep_step##bits(back), *src += scry_rep_step##bits(back))     \
			scry_store##bits(*dst, scry_load##bits(*src));                                         \
	}                                                                                                      \
	SCRY_INLINE void scry_rep_fill##bits(uintptr_t *dst, uint##bits##_t v, uintptr_t *cnt, uint1_t back)   \
	{                                                                                                      \
		for (; *cnt; --*cnt, *dst += scry_rep_step##bits(back))                                        \
			scry_store##bits(*dst, v);                                                             \
	}                                                                                                      \
	SCRY_INLINE void scry_rep_cmp##bits(uintptr_t *dst, uintptr_t *src, uintptr_t *cnt, uint1_t back,      \
					    uint1_t go_on, uint##bits##_t *a, uint##bits##_t *b)               \
	{                                                                                                      \
		*a = *b = 0;                                                                                   \
		while (*cnt) {                                                                                 \
			*a = scry_load##bits(*src);                                                            \
			*b = scry_load##bits(*dst);                                                            \
			--*cnt;                                                                                \
			*dst += scry_rep_step##bits(back);                                                     \
			*src += scry_rep_step##bits(back);                                                     \
			if ((*a == *b) != go_on)                                                               \
				break;                                                                         \
		}                                                                                              \
	}                                                                                                      \
	SCRY_INLINE void scry_rep_scan##bits(uintptr_t *dst, uint##bits##_t v, uintptr_t *cnt, uint1_t back,   \
					     uint1_t go_on, uint##bits##_t *a, uint##bits##_t *b)              \
	{                                                                                                      \
		*a = *b = 0;                                                                                   \
		while (*cnt) {                                                                                 \
			*a = v;                                                                                \
			*b = scry_load##bits(*dst);                                                            \
			--*cnt;                                                                                \
			*dst += scry_rep_step##bits(back);                                                     \
			if ((*a == *b) != go_on)                                                               \
				break;                                                                         \
		}                                                                                              \
	}
SCRY_REP(8)
SCRY_REP(16)
SCRY_REP(32)
SCRY_REP(64)

/* --- floating point ------------------------------------------------------------------------------------------- */
/*
 * Values are bits. A NaN among the operands is the result, made quiet, the first before the second; a NaN made of
 * numbers has its sign set and nothing else in its fraction: what SSE does, and what C leaves open. minx and maxx give the
 * second operand when either is a NaN or both are zeros. Conversions to integers give 1 followed by zeros for a
 * NaN and for what does not fit. 32 bits of x86 need -msse2 -mfpmath=sse, or results are rounded twice.
 */
#define SCRY_FLOAT(bits, type, inf, quiet, dflt)                                                                  \
	SCRY_INLINE type scry_f##bits(uint##bits##_t a)                                                        \
	{                                                                                                      \
		type f;                                                                                        \
		memcpy(&f, &a, sizeof(f));                                                                     \
		return f;                                                                                      \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_bits_f##bits(type f)                                                   \
	{                                                                                                      \
		uint##bits##_t a;                                                                              \
		memcpy(&a, &f, sizeof(a));                                                                     \
		return a;                                                                                      \
	}                                                                                                      \
	SCRY_INLINE uint1_t scry_isnan##bits(uint##bits##_t a)                                                 \
	{                                                                                                      \
		return (a & ~((uint##bits##_t)1 << (bits - 1))) > inf;                                         \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_fresult##bits(uint##bits##_t a, uint##bits##_t b, type f)              \
	{                                                                                                      \
		if (scry_isnan##bits(a))                                                                       \
			return a | quiet;                                                                      \
		if (scry_isnan##bits(b))                                                                       \
			return b | quiet;                                                                      \
		uint##bits##_t r = scry_bits_f##bits(f);                                                       \
		return scry_isnan##bits(r) ? dflt : r;                                                         \
	}                                                                                                      \
	SCRY_FLOAT_OPS(bits, type)
#define SCRY_FOP(bits, name, op)                                                                \
	SCRY_INLINE uint##bits##_t scry_##name##bits(uint##bits##_t a, uint##bits##_t b)        \
	{                                                                                       \
		return scry_fresult##bits(a, b, scry_f##bits(a) op scry_f##bits(b));            \
	}
#define SCRY_FCMP(bits, name, op)                                                       \
	SCRY_INLINE uint1_t scry_##name##bits(uint##bits##_t a, uint##bits##_t b)       \
	{                                                                               \
		return scry_f##bits(a) op scry_f##bits(b);                              \
	}
#define SCRY_FLOAT_OPS(bits, type)                                                      \
	SCRY_FOP(bits, fadd, +)                                                         \
	SCRY_FOP(bits, fsub, -)                                                         \
	SCRY_FOP(bits, fmul, *)                                                         \
	SCRY_FOP(bits, fdiv, /)                                                         \
	SCRY_INLINE uint##bits##_t scry_fmin##bits(uint##bits##_t a, uint##bits##_t b)  \
	{                                                                               \
		return scry_f##bits(a) < scry_f##bits(b) ? a : b;                       \
	}                                                                               \
	SCRY_INLINE uint##bits##_t scry_fmax##bits(uint##bits##_t a, uint##bits##_t b)  \
	{                                                                               \
		return scry_f##bits(a) > scry_f##bits(b) ? a : b;                       \
	}                                                                               \
	SCRY_FCMP(bits, foeq, ==)                                                       \
	SCRY_FCMP(bits, folt, <)                                                        \
	SCRY_FCMP(bits, fole, <=)                                                       \
	SCRY_INLINE uint1_t scry_funo##bits(uint##bits##_t a, uint##bits##_t b)         \
	{                                                                               \
		return scry_isnan##bits(a) || scry_isnan##bits(b);                      \
	}                                                                               \
	SCRY_INLINE uint##bits##_t scry_fabs##bits(uint##bits##_t a)                    \
	{                                                                               \
		return a & ~((uint##bits##_t)1 << (bits - 1));                          \
	}                                                                               \
	SCRY_INLINE uint##bits##_t scry_fneg##bits(uint##bits##_t a)                    \
	{                                                                               \
		return a ^ (uint##bits##_t)1 << (bits - 1);                             \
	}

SCRY_FLOAT(32, float, 0x7f800000u, 0x400000u, 0xffc00000u)
SCRY_FLOAT(64, double, 0x7ff0000000000000u, 0x8000000000000u, 0xfff8000000000000u)

/* Square root and the current rounding have no form in C that needs no library. */
SCRY_INLINE float scry_sqrt_any32(float f)
{
#ifdef __SSE2__
	__asm__("sqrtss %0, %0" : "+x"(f));
	return f;
#else
	return __builtin_sqrtf(f);
#endif
}

SCRY_INLINE double scry_sqrt_any64(double f)
{
#ifdef __SSE2__
	__asm__("sqrtsd %0, %0" : "+x"(f));
	return f;
#else
	return __builtin_sqrt(f);
#endif
}

/* To an integer, for what is smaller than the first number all of whose neighbours are integers: towards zero, and
 * from there as asked. */
#define SCRY_FLOAT_ROUND(bits, type, limit)                                                                    \
	SCRY_INLINE uint##bits##_t scry_fint##bits(uint##bits##_t a, int how)                                  \
	{                                                                                                      \
		type f = scry_f##bits(a), t = f < 0 ? -f : f;                                                  \
		if (!(t < limit))                                                                              \
			return scry_isnan##bits(a) ? (uint##bits##_t)(a | scry_quiet##bits) : a;               \
		type down = (type)(int64_t)t, rest = t - down;                                                 \
		uint1_t is_neg = (uint1_t)(a >> (bits - 1)), up = 0;                                           \
		if (how == 1)                                                                                  \
			up = is_neg && rest > 0;                                                               \
		else if (how == 2)                                                                             \
			up = !is_neg && rest > 0;                                                              \
		else if (how == 3)                                                                             \
			up = rest > (type)0.5 || (rest == (type)0.5 && ((int64_t)t & 1));                      \
		return scry_bits_f##bits(down + (type)up) | (uint##bits##_t)is_neg << (bits - 1);              \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_ftrunc##bits(uint##bits##_t a)                                         \
	{                                                                                                      \
		return scry_fint##bits(a, 0);                                                                  \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_ffloor##bits(uint##bits##_t a)                                         \
	{                                                                                                      \
		return scry_fint##bits(a, 1);                                                                  \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_fceil##bits(uint##bits##_t a)                                          \
	{                                                                                                      \
		return scry_fint##bits(a, 2);                                                                  \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_fnearest##bits(uint##bits##_t a)                                       \
	{                                                                                                      \
		return scry_fint##bits(a, 3);                                                                  \
	}                                                                                                      \
	/* In the current rounding: adding and taking away again what has no room for a fraction. */           \
	SCRY_INLINE uint##bits##_t scry_fround##bits(uint##bits##_t a)                                         \
	{                                                                                                      \
		type f = scry_f##bits(a);                                                                      \
		if (!((f < 0 ? -f : f) < limit))                                                               \
			return scry_fint##bits(a, 0);                                                          \
		volatile type big = a >> (bits - 1) ? -limit : limit, sum = f + big;                           \
		uint##bits##_t r = scry_bits_f##bits(sum - big);                                               \
		return scry_fabs##bits(r) | (a & ~scry_fabs##bits(~(uint##bits##_t)0));                        \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_fsqrt##bits(uint##bits##_t a)                                          \
	{                                                                                                      \
		return scry_fresult##bits(a, a, scry_sqrt_any##bits(scry_f##bits(a)));                         \
	}
#define scry_quiet32 0x400000u
#define scry_quiet64 0x8000000000000u
SCRY_FLOAT_ROUND(32, float, 0x1p23f)
SCRY_FLOAT_ROUND(64, double, 0x1p52)

/* a * b + c rounded once, by the compiler's builtin: without an instruction for it that is a call of libm. */
SCRY_INLINE uint64_t scry_fma64(uint64_t a, uint64_t b, uint64_t c)
{
	if (scry_isnan64(a) || scry_isnan64(b))
		return scry_fresult64(a, b, 0);
	return scry_fresult64(c, c, __builtin_fma(scry_f64(a), scry_f64(b), scry_f64(c)));
}

SCRY_INLINE uint32_t scry_fma32(uint32_t a, uint32_t b, uint32_t c)
{
	if (scry_isnan32(a) || scry_isnan32(b))
		return scry_fresult32(a, b, 0);
	return scry_fresult32(c, c, __builtin_fmaf(scry_f32(a), scry_f32(b), scry_f32(c)));
}

SCRY_INLINE uint64_t scry_fcvt64_32(uint32_t a)
{
	if (scry_isnan32(a))
		return (uint64_t)(a >> 31) << 63 | 0x7ff8000000000000u | (uint64_t)(a & 0x7fffff) << 29;
	return scry_bits_f64((double)scry_f32(a));
}

SCRY_INLINE uint32_t scry_fcvt32_64(uint64_t a)
{
	if (scry_isnan64(a))
		return (uint32_t)(a >> 63) << 31 | 0x7fc00000u | (uint32_t)(a >> 29 & 0x7fffff);
	return scry_bits_f32((float)scry_f64(a));
}

/* To and from integers of `ibits` bits; `limit` is the first number that does not fit. */
#define SCRY_FLOAT_INT(fbits, ibits, type, limit)                                                              \
	SCRY_INLINE uint##ibits##_t scry_ftrunc##ibits##_##fbits(uint##fbits##_t a)                            \
	{                                                                                                      \
		type f = scry_f##fbits(scry_ftrunc##fbits(a));                                                 \
		return f >= -limit && f < limit ? (uint##ibits##_t)(int##ibits##_t)f                           \
						: (uint##ibits##_t)((uint##ibits##_t)1 << (ibits - 1));        \
	}                                                                                                      \
	SCRY_INLINE uint##ibits##_t scry_ftoi##ibits##_##fbits(uint##fbits##_t a)                              \
	{                                                                                                      \
		return scry_ftrunc##ibits##_##fbits(scry_fround##fbits(a));                                    \
	}                                                                                                      \
	SCRY_INLINE uint##fbits##_t scry_sitof##fbits##_##ibits(uint##ibits##_t a)                             \
	{                                                                                                      \
		return scry_bits_f##fbits((type)(int##ibits##_t)a);                                            \
	}                                                                                                      \
	SCRY_INLINE uint##fbits##_t scry_uitof##fbits##_##ibits(uint##ibits##_t a)                             \
	{                                                                                                      \
		return scry_bits_f##fbits((type)a);                                                            \
	}
SCRY_FLOAT_INT(32, 16, float, 0x1p15f)
SCRY_FLOAT_INT(32, 32, float, 0x1p31f)
SCRY_FLOAT_INT(32, 64, float, 0x1p63f)
SCRY_FLOAT_INT(64, 16, double, 0x1p15)
SCRY_FLOAT_INT(64, 32, double, 0x1p31)
SCRY_FLOAT_INT(64, 64, double, 0x1p63)

/* The 80-bit values of the x87, in the compiler's long double. */
#if defined(__SIZEOF_INT128__) && __LDBL_MANT_DIG__ == 64
SCRY_INLINE long double scry_f80(uint80_t a)
{
	long double f = 0;
	memcpy(&f, &a, 10);
	return f;
}

SCRY_INLINE uint80_t scry_bits_f80(long double f)
{
	uint80_t a = 0;
	memcpy(&a, &f, 10);
	return a;
}

SCRY_INLINE uint1_t scry_isnan80(uint80_t a)
{
	long double f = scry_f80(a);
	return f != f;
}

SCRY_INLINE uint80_t scry_fresult80(uint80_t a, uint80_t b, long double f)
{
	const uint80_t quiet = (uint80_t)1 << 62;
	if (scry_isnan80(a))
		return a | quiet;
	if (scry_isnan80(b))
		return b | quiet;
	return f != f ? scry_u128(0xffff, 0xc000000000000000u) : scry_bits_f80(f);
}
SCRY_FLOAT_OPS(80, long double)

SCRY_INLINE uint80_t scry_fsqrt80(uint80_t a)
{
	long double f = scry_f80(a);
	__asm__("fsqrt" : "+t"(f));
	return scry_fresult80(a, a, f);
}

SCRY_INLINE uint80_t scry_fround80(uint80_t a)
{
	long double f = scry_f80(a);
	__asm__("frndint" : "+t"(f));
	return scry_fresult80(a, a, f);
}

/* To an integer as the control word's two bits `rc` say, whatever they are now. */
SCRY_INLINE uint80_t scry_fint80(uint80_t a, unsigned rc)
{
	long double f = scry_f80(a);
	uint16_t was, now;
	__asm__ volatile("fnstcw %0" : "=m"(was));
	now = (uint16_t)((was & ~0xc00u) | rc << 10);
	__asm__ volatile("fldcw %1\n\tfrndint\n\tfldcw %2" : "+t"(f) : "m"(now), "m"(was));
	return scry_fresult80(a, a, f);
}

#define SCRY_FINT80(name, rc)                   \
	SCRY_INLINE uint80_t name(uint80_t a)   \
	{                                       \
		return scry_fint80(a, rc);      \
	}
SCRY_FINT80(scry_fnearest80, 0)
SCRY_FINT80(scry_ffloor80, 1)
SCRY_FINT80(scry_fceil80, 2)
SCRY_FINT80(scry_ftrunc80, 3)

SCRY_INLINE uint80_t scry_fcvt80_64(uint64_t a)
{
	return scry_isnan64(a) ? scry_fresult80(scry_bits_f80((long double)scry_f64(a)), 0, 0)
			       : scry_bits_f80((long double)scry_f64(a));
}

SCRY_INLINE uint80_t scry_fcvt80_32(uint32_t a)
{
	return scry_fcvt80_64(scry_fcvt64_32(a));
}

SCRY_INLINE uint64_t scry_fcvt64_80(uint80_t a)
{
	volatile double f = (double)scry_f80(a);
	return scry_bits_f64(f);
}

SCRY_INLINE uint32_t scry_fcvt32_80(uint80_t a)
{
	volatile float f = (float)scry_f80(a);
	return scry_bits_f32(f);
}

#define SCRY_X87_INT(ibits, limit)                                                                              \
	SCRY_INLINE uint##ibits##_t scry_ftrunc##ibits##_80(uint80_t a)                                         \
	{                                                                                                       \
		long double f = scry_f80(a);                                                                    \
		return f > -limit - 1 && f < limit ? (uint##ibits##_t)(int##ibits##_t)f                         \
						   : (uint##ibits##_t)((uint##ibits##_t)1 << (ibits - 1));      \
	}                                                                                                       \
	SCRY_INLINE uint##ibits##_t scry_ftoi##ibits##_80(uint80_t a)                                           \
	{                                                                                                       \
		return scry_ftrunc##ibits##_80(scry_fround80(a));                                               \
	}                                                                                                       \
	SCRY_INLINE uint80_t scry_sitof80_##ibits(uint##ibits##_t a)                                            \
	{                                                                                                       \
		return scry_bits_f80((long double)(int##ibits##_t)a);                                           \
	}                                                                                                       \
	SCRY_INLINE uint80_t scry_uitof80_##ibits(uint##ibits##_t a)                                            \
	{                                                                                                       \
		return scry_bits_f80((long double)a);                                                           \
	}
SCRY_X87_INT(16, 0x1p15L)
SCRY_X87_INT(32, 0x1p31L)
SCRY_X87_INT(64, 0x1p63L)
#endif

/* --- vectors: lanes of a wide integer, lane 0 lowest ------------------------------------------------------------ */
/* The value of an expression for each lane; x, y and z are the lanes of a, b and c, n is b whole. */
#define SCRY_LANES(w, lane, a, b, c, ...)                                                             \
	__extension__({                                                                               \
		uint##w##_t a_ = (a), b_ = (b), c_ = (c), r_ = 0;                                     \
		for (unsigned i_ = 0; i_ < w; i_ += lane) {                                           \
			uint##lane##_t x = (uint##lane##_t)(a_ >> i_), y = (uint##lane##_t)(b_ >> i_); \
			uint##lane##_t z = (uint##lane##_t)(c_ >> i_);                                \
			uint64_t n = (uint64_t)b_;                                                    \
			(void)x, (void)y, (void)z, (void)n;                                           \
			r_ |= (uint##w##_t)(uint##lane##_t)(__VA_ARGS__) << i_;                       \
		}                                                                                     \
		r_;                                                                                   \
	})

/* The value of an expression for each lane x of a, put into lanes of `to` bits of `w`. */
#define SCRY_CONVERT(w, from_w, from, to, a, ...)                                                            \
	__extension__({                                                                                      \
		uint##from_w##_t a_ = (a);                                                                   \
		uint##w##_t r_ = 0;                                                                          \
		for (unsigned i_ = 0; (i_ + 1) * from <= from_w && (i_ + 1) * to <= w; i_++) {               \
			uint##from##_t x = (uint##from##_t)(a_ >> i_ * from);                                \
			r_ |= (uint##w##_t)(uint##to##_t)(__VA_ARGS__) << i_ * to;                           \
		}                                                                                            \
		r_;                                                                                          \
	})

SCRY_INLINE uint64_t scry_saturate_s(int64_t v, unsigned bits)
{
	int64_t max = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
	return (uint64_t)(v > max ? max : v < -max - 1 ? -max - 1 : v);
}

SCRY_INLINE uint64_t scry_saturate_u(int64_t v, unsigned bits)
{
	int64_t max = (int64_t)(((uint64_t)1 << bits) - 1);
	return (uint64_t)(v > max ? max : v < 0 ? 0 : v);
}

#define SCRY_LANE_OPS(bits)                                                                                    \
	SCRY_INLINE uint##bits##_t scry_vadds##bits(uint##bits##_t a, uint##bits##_t b)                        \
	{                                                                                                      \
		return (uint##bits##_t)scry_saturate_s((int64_t)(int##bits##_t)a + (int##bits##_t)b, bits);    \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_vaddus##bits(uint##bits##_t a, uint##bits##_t b)                       \
	{                                                                                                      \
		return (uint##bits##_t)scry_saturate_u((int64_t)a + b, bits);                                  \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_vsubs##bits(uint##bits##_t a, uint##bits##_t b)                        \
	{                                                                                                      \
		return (uint##bits##_t)scry_saturate_s((int64_t)(int##bits##_t)a - (int##bits##_t)b, bits);    \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_vsubus##bits(uint##bits##_t a, uint##bits##_t b)                       \
	{                                                                                                      \
		return (uint##bits##_t)scry_saturate_u((int64_t)a - b, bits);                                  \
	}                                                                                                      \
	SCRY_INLINE uint##bits##_t scry_vavgu##bits(uint##bits##_t a, uint##bits##_t b)                        \
	{                                                                                                      \
		return (uint##bits##_t)(((uint64_t)a + b + 1) >> 1);                                           \
	}                                                                                                      \
	SCRY_LANE_MINMAX(bits)
#define SCRY_LANE_PICK(bits, name, type, op)                                                    \
	SCRY_INLINE uint##bits##_t scry_##name##bits(uint##bits##_t a, uint##bits##_t b)        \
	{                                                                                       \
		return (type)a op (type)b ? a : b;                                              \
	}
#define SCRY_LANE_MINMAX(bits)                          \
	SCRY_LANE_PICK(bits, vmins, int##bits##_t, <)   \
	SCRY_LANE_PICK(bits, vminu, uint##bits##_t, <)  \
	SCRY_LANE_PICK(bits, vmaxs, int##bits##_t, >)   \
	SCRY_LANE_PICK(bits, vmaxu, uint##bits##_t, >)
SCRY_LANE_OPS(8)
SCRY_LANE_OPS(16)
SCRY_LANE_OPS(32)
SCRY_LANE_MINMAX(64)

/* The sign-extended lane at bit `off`. */
#define SCRY_LANE_S(v, off, lane) ((int64_t)((uint64_t)((v) >> (off)) << (64 - (lane))) >> (64 - (lane)))
#define SCRY_LANE_U(v, off, lane) ((uint64_t)((v) >> (off)) << (64 - (lane)) >> (64 - (lane)))
/*
 * perm: byte i is byte c[i] of b:a, 0 beyond them. mask: the sign bits of the lanes. packs, packu: signed lanes to
 * half their width, saturated, a's first. madd: products of adjacent signed lanes, summed in pairs. muleu, mules:
 * products of the even lanes. sad: sums of absolute differences of eight bytes each.
 */
#define SCRY_VMUL(w, name, LANE)                                                                        \
	SCRY_INLINE uint##w##_t scry_##name##w(uint##w##_t a, uint##w##_t b, unsigned lane)             \
	{                                                                                               \
		uint##w##_t r = 0;                                                                      \
		for (unsigned i = 0; i < w; i += 2 * lane) {                                            \
			uint64_t p = (uint64_t)LANE(a, i, lane) * (uint64_t)LANE(b, i, lane);           \
			r |= (uint##w##_t)SCRY_LANE_U(p, 0, 2 * lane) << i;                             \
		}                                                                                       \
		return r;                                                                               \
	}
#define SCRY_VECTORS(w)                                                                                         \
	SCRY_INLINE uint##w##_t scry_vperm##w(uint##w##_t a, uint##w##_t b, uint##w##_t c)                      \
	{                                                                                                       \
		uint##w##_t r = 0;                                                                              \
		for (unsigned i = 0; i < w; i += 8) {                                                           \
			unsigned from = (uint8_t)(c >> i);                                                      \
			if (from < w / 4)                                                                       \
				r |= (uint##w##_t)(uint8_t)((from < w / 8 ? a : b) >> from % (w / 8) * 8) << i; \
		}                                                                                               \
		return r;                                                                                       \
	}                                                                                                       \
	SCRY_INLINE uint32_t scry_vmask##w(uint##w##_t a, unsigned lane)                                        \
	{                                                                                                       \
		uint32_t r = 0;                                                                                 \
		for (unsigned i = 0; i < w / lane; i++)                                                         \
			r |= (uint32_t)(a >> ((i + 1) * lane - 1) & 1) << i;                                    \
		return r;                                                                                       \
	}                                                                                                       \
	SCRY_INLINE uint##w##_t scry_vpack##w(uint##w##_t a, uint##w##_t b, unsigned lane, uint1_t is_signed)   \
	{                                                                                                       \
		uint##w##_t r = 0;                                                                              \
		unsigned half = lane / 2, n = w / lane;                                                         \
		for (unsigned i = 0; i < 2 * n; i++) {                                                          \
			int64_t s = SCRY_LANE_S(i < n ? a : b, i % n * lane, lane);                             \
			uint64_t v = is_signed ? scry_saturate_s(s, half) : scry_saturate_u(s, half);           \
			r |= (uint##w##_t)SCRY_LANE_U(v, 0, half) << i * half;                                  \
		}                                                                                               \
		return r;                                                                                       \
	}                                                                                                       \
	SCRY_INLINE uint##w##_t scry_vmadd##w(uint##w##_t a, uint##w##_t b, unsigned lane)                      \
	{                                                                                                       \
		uint##w##_t r = 0;                                                                              \
		for (unsigned i = 0; i < w; i += 2 * lane) {                                                    \
			uint64_t lo = (uint64_t)SCRY_LANE_S(a, i, lane) * (uint64_t)SCRY_LANE_S(b, i, lane);    \
			uint64_t hi = (uint64_t)SCRY_LANE_S(a, i + lane, lane) *                                \
				      (uint64_t)SCRY_LANE_S(b, i + lane, lane);                                 \
			r |= (uint##w##_t)SCRY_LANE_U(lo + hi, 0, 2 * lane) << i;                               \
		}                                                                                               \
		return r;                                                                                       \
	}                                                                                                       \
	SCRY_VMUL(w, vmuleu, SCRY_LANE_U)                                                                      \
	SCRY_VMUL(w, vmules, SCRY_LANE_S)                                                                      \
	SCRY_INLINE uint##w##_t scry_vsad##w(uint##w##_t a, uint##w##_t b)                                      \
	{                                                                                                       \
		uint##w##_t r = 0;                                                                              \
		for (unsigned i = 0; i < w; i += 8) {                                                           \
			uint8_t x = (uint8_t)(a >> i), y = (uint8_t)(b >> i);                                   \
			r += (uint##w##_t)(x > y ? x - y : y - x) << i / 64 * 64;                               \
		}                                                                                               \
		return r;                                                                                       \
	}
SCRY_VECTORS(64)
#ifdef __SIZEOF_INT128__
SCRY_VECTORS(128)
#endif

/* --- the state of a machine, and code that is run with it --------------------------------------------------------- */
/*
 * A function of the lowest level takes the registers in one of these, its return address on top of the stack they
 * name, and leaves in it what the machine code would: pc is where it returned to. `image` is how far the program lies
 * from the addresses its file gives. scry_call() runs machine code with that state until it returns; SCRY_INSN() one
 * instruction that has no form in C. One thread at a time.
 */
#define SCRY_ROW8(type, r) type r##0, r##1, r##2, r##3, r##4, r##5, r##6, r##7
#define SCRY_ROW16(type, r) SCRY_ROW8(type, r), r##8, r##9, r##10, r##11, r##12, r##13, r##14, r##15
/* A function's registers are variables: SCRY_REGS(r) is r(NAME) for each of them. Here they go to the state and come back. */
#define SCRY_SAVE_ONE(name) m->name = name;
#define SCRY_LOAD_ONE(name) name = m->name;
#define SCRY_SAVE SCRY_REGS(SCRY_SAVE_ONE)
#define SCRY_LOAD SCRY_REGS(SCRY_LOAD_ONE)
#ifdef __SIZEOF_INT128__
/* Programs of 32 bits: their C is compiled for 64, where there are integers of 128 bits, with all addresses below 4 GiB. Their
 * machine code cannot be run from there, so what needs it ends the program. */
struct scry_i386 {
	uint32_t eax, ecx, edx, ebx, esp, ebp, esi, edi;
	uint1_t cf, pf, af, zf, sf, df, of;
	uint32_t fsbase, gsbase;
	uint16_t es, cs, ss, ds, fs, gs;
	uint32_t mxcsr;
	uint16_t fcw, fsw;
	SCRY_ROW8(uint128_t, xmm);
	SCRY_ROW8(uint128_t, ymmh);
	SCRY_ROW8(uint256_t, zmmh);
	SCRY_ROW8(uint80_t, f);
	SCRY_ROW8(uint64_t, mm);
	SCRY_ROW8(uint64_t, k);
	uintptr_t pc, image;
};

SCRY_INLINE void scry_call_i386(struct scry_i386 *m, uintptr_t target, uintptr_t back)
{
	(void)m, (void)target, (void)back;
	scry_trap();
}

#define scry_leave_i386(m, target) scry_call_i386(m, target, 0)
#define SCRY_INSN_i386(m, what, top, bytes) scry_trap()
#define SCRY_INSN_YMM_i386(m, what, top, bytes) scry_trap()
#define SCRY_INSN_ZMM_i386(m, what, top, bytes) scry_trap()
#endif

#ifdef __x86_64__
struct scry_x86_64 {
	uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
	uint1_t cf, pf, af, zf, sf, df, of;
	uint64_t fsbase, gsbase;
	uint16_t es, cs, ss, ds, fs, gs;
	uint32_t mxcsr;
	uint16_t fcw, fsw; /* of fsw only the condition codes */
	SCRY_ROW16(uint128_t, xmm);
	SCRY_ROW16(uint128_t, ymmh);
	SCRY_ROW16(uint256_t, zmmh);
	SCRY_ROW8(uint80_t, f);
	SCRY_ROW8(uint64_t, mm);
	SCRY_ROW8(uint64_t, k);
	uint512_t zmm16, zmm17, zmm18, zmm19, zmm20, zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29, zmm30, zmm31;
	uintptr_t pc, image;
	/* Of this header. */
	uint64_t host_sp, flags;
	uint32_t host_mxcsr;
	uint16_t host_fcw;
	uint8_t fx[512] __attribute__((aligned(16)));
};

#ifdef SCRY_OUTSIDE
/* For compilers whose assembler does not know the instructions below: whoever runs the code has scry_call(). */
void scry_call(struct scry_x86_64 *m, uintptr_t target, uintptr_t back);
#define SCRY_OUTLINE inline
#else
static struct scry_x86_64 *scry_now;
static uint64_t scry_kept;

/* What of the state beside general registers an instruction takes: SCRY_INSN()'s second argument. */
#define SCRY_X87 1
#define SCRY_MMX 2

SCRY_INLINE void scry_fill_fx(struct scry_x86_64 *m, int what, unsigned top)
{
	uint16_t fsw = (uint16_t)((m->fsw & ~0x3800) | top << 11);
	const uint80_t *f = &m->f0;
	const uint64_t *mm = &m->mm0;
	memset(m->fx, 0, sizeof(m->fx));
	memcpy(m->fx, &m->fcw, 2);
	memcpy(m->fx + 2, &fsw, 2);
	/* The register the next push takes is empty; with nothing to take, all are. */
	m->fx[4] = what & SCRY_MMX ? 0xff : what & SCRY_X87 ? (uint8_t)~(1u << ((top + 7) & 7)) : 0;
	m->mxcsr &= 0xffff;
	memcpy(m->fx + 24, &m->mxcsr, 4);
	for (unsigned i = 0; i < 8; i++) {
		if (what & SCRY_MMX)
			memcpy(m->fx + 32 + 16 * i, &mm[i], 8);
		else
			memcpy(m->fx + 32 + 16 * i, &f[(top + i) & 7], 10);
	}
	memcpy(m->fx + 160, &m->xmm0, 256);
	m->flags = 0x202u | m->cf | m->pf << 2 | m->af << 4 | m->zf << 6 | m->sf << 7 | m->df << 10 | m->of << 11;
}

SCRY_INLINE void scry_take_fx(struct scry_x86_64 *m, int what)
{
	uint80_t *f = &m->f0;
	uint64_t *mm = &m->mm0;
	memcpy(&m->fcw, m->fx, 2);
	memcpy(&m->fsw, m->fx + 2, 2);
	unsigned top = m->fsw >> 11 & 7;
	m->fsw &= 0x4700;
	memcpy(&m->mxcsr, m->fx + 24, 4);
	for (unsigned i = 0; i < 8; i++) {
		if (what & SCRY_MMX)
			memcpy(&mm[i], m->fx + 32 + 16 * i, 8);
		else
			memcpy(&f[(top + i) & 7], m->fx + 32 + 16 * i, 10);
	}
	memcpy(&m->xmm0, m->fx + 160, 256);
	m->cf = m->flags & 1;
	m->pf = m->flags >> 2 & 1;
	m->af = m->flags >> 4 & 1;
	m->zf = m->flags >> 6 & 1;
	m->sf = m->flags >> 7 & 1;
	m->df = m->flags >> 10 & 1;
	m->of = m->flags >> 11 & 1;
}

/* Everything the machine has, from the state at rdi; then whatever `run` says; then back. The stack pointer is the
 * state's own while code is called, the host's while one instruction is run: no instruction printed this way names it. */
#define SCRY_STATE_IN                                                                                         \
	"sub $128, %%rsp; push %%rbx; push %%rbp; push %%r12; push %%r13; push %%r14; push %%r15\n"           \
	"stmxcsr %c[host_mxcsr](%%rdi); fnstcw %c[host_fcw](%%rdi); fxrstor %c[fx](%%rdi)\n"                  \
	"pushq %c[flags](%%rdi); popfq\n"                                                                     \
	"mov 0(%%rdi), %%rax; mov 8(%%rdi), %%rcx; mov 16(%%rdi), %%rdx; mov 24(%%rdi), %%rbx\n"              \
	"mov 40(%%rdi), %%rbp; mov 48(%%rdi), %%rsi; mov 64(%%rdi), %%r8; mov 72(%%rdi), %%r9\n"              \
	"mov 80(%%rdi), %%r10; mov 88(%%rdi), %%r11; mov 96(%%rdi), %%r12; mov 104(%%rdi), %%r13\n"           \
	"mov 112(%%rdi), %%r14; mov 120(%%rdi), %%r15\n"                                                      \
	"mov %%rsp, %c[host_sp](%%rdi)\n"
#define SCRY_STATE_OUT(more)                                                                                  \
	"mov %%rdi, %[kept]; mov %[now], %%rdi\n"                                                             \
	"mov %%rax, 0(%%rdi); mov %%rcx, 8(%%rdi); mov %%rdx, 16(%%rdi); mov %%rbx, 24(%%rdi)\n"              \
	"mov %%rbp, 40(%%rdi); mov %%rsi, 48(%%rdi); mov %%r8, 64(%%rdi); mov %%r9, 72(%%rdi)\n"              \
	"mov %%r10, 80(%%rdi); mov %%r11, 88(%%rdi); mov %%r12, 96(%%rdi); mov %%r13, 104(%%rdi)\n"           \
	"mov %%r14, 112(%%rdi); mov %%r15, 120(%%rdi); mov %[kept], %%rax; mov %%rax, 56(%%rdi)\n"            \
	"mov %c[host_sp](%%rdi), %%rsp; pushfq; popq %c[flags](%%rdi); cld\n"                                 \
	more "fxsave %c[fx](%%rdi); fninit; fldcw %c[host_fcw](%%rdi); ldmxcsr %c[host_mxcsr](%%rdi)\n"            \
	"pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbp; pop %%rbx; add $128, %%rsp\n"
#define SCRY_STATE_ARGS                                                                                       \
	[now] "m"(scry_now), [kept] "m"(scry_kept), [host_mxcsr] "i"(offsetof(struct scry_x86_64, host_mxcsr)), \
		[host_fcw] "i"(offsetof(struct scry_x86_64, host_fcw)), [fx] "i"(offsetof(struct scry_x86_64, fx)), \
		[flags] "i"(offsetof(struct scry_x86_64, flags)),                                              \
		[host_sp] "i"(offsetof(struct scry_x86_64, host_sp)),                                          \
		[ymmh] "i"(offsetof(struct scry_x86_64, ymmh0)), [zmmh] "i"(offsetof(struct scry_x86_64, zmmh0)), \
		[zmm16] "i"(offsetof(struct scry_x86_64, zmm16)), [k0] "i"(offsetof(struct scry_x86_64, k0))
#define SCRY_STATE_CLOBBERS                                                                                       \
	"rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
		"xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"

#ifdef __clang__
#define SCRY_OUTLINE __attribute__((noinline, unused))
#else
#define SCRY_OUTLINE __attribute__((noinline, noclone, unused))
#endif

/* Where code that was called comes back to. */
extern const char scry_call_back[] __attribute__((visibility("hidden")));

/* `back` is the address the machine code would have come back to: what is left of it on the stack is made right. */
static SCRY_OUTLINE void scry_call(struct scry_x86_64 *m, uintptr_t target, uintptr_t back)
{
	struct scry_x86_64 *outer = scry_now;
	scry_fill_fx(m, 0, 0);
	scry_now = m;
	scry_kept = target;
	__asm__ volatile(SCRY_STATE_IN "mov 32(%%rdi), %%rsp; mov 56(%%rdi), %%rdi; call *%[kept]\n"
			 "scry_call_back: mov %%rdi, %[kept]; mov %[now], %%rdi; mov %%rsp, 32(%%rdi); mov %[kept], %%rdi\n" SCRY_STATE_OUT("")
			 : "+D"(m)
			 : SCRY_STATE_ARGS
			 : SCRY_STATE_CLOBBERS);
	scry_now = outer;
	scry_take_fx(m, SCRY_X87);
	if (scry_load64(m->rsp - 8) == (uintptr_t)scry_call_back)
		scry_store64(m->rsp - 8, back);
}

/* The upper halves of the registers of AVX, for what names them. */
#define SCRY_YMM(i, off) "vinsertf128 $1, %c[ymmh]+" off "(%%rdi), %%ymm" i ", %%ymm" i "\n"
#define SCRY_YMM_OUT(i, off) "vextractf128 $1, %%ymm" i ", %c[ymmh]+" off "(%%rdi)\n"
#define SCRY_YMMS(one)                                                                                        \
	one("0", "0") one("1", "16") one("2", "32") one("3", "48") one("4", "64") one("5", "80") one("6", "96") \
		one("7", "112") one("8", "128") one("9", "144") one("10", "160") one("11", "176")              \
			one("12", "192") one("13", "208") one("14", "224") one("15", "240")

/* The same for AVX-512: what is above 256 bits, the registers from 16 on and the masks. The compiler has none of them in use,
 * or is told. */
#define SCRY_ZMM(i, off) "vinserti64x4 $1, %c[zmmh]+2*" off "(%%rdi), %%zmm" i ", %%zmm" i "\n"
#define SCRY_ZMM_OUT(i, off) "vextracti64x4 $1, %%zmm" i ", %c[zmmh]+2*" off "(%%rdi)\n"
#define SCRY_K(i) "kmovq %c[k0]+8*" i "(%%rdi), %%k" i "\n"
#define SCRY_K_OUT(i) "kmovq %%k" i ", %c[k0]+8*" i "(%%rdi)\n"
#define SCRY_KS(one) one("0") one("1") one("2") one("3") one("4") one("5") one("6") one("7")
#define SCRY_HIGH(i, n) "vmovdqu64 %c[zmm16]+64*" n "(%%rdi), %%zmm" i "\n"
#define SCRY_HIGH_OUT(i, n) "vmovdqu64 %%zmm" i ", %c[zmm16]+64*" n "(%%rdi)\n"
#define SCRY_HIGHS(one)                                                                                       \
	one("16", "0") one("17", "1") one("18", "2") one("19", "3") one("20", "4") one("21", "5") one("22", "6") \
		one("23", "7") one("24", "8") one("25", "9") one("26", "10") one("27", "11") one("28", "12")  \
			one("29", "13") one("30", "14") one("31", "15")
#define SCRY_ALL_IN SCRY_YMMS(SCRY_YMM) SCRY_YMMS(SCRY_ZMM) SCRY_HIGHS(SCRY_HIGH) SCRY_KS(SCRY_K)
#define SCRY_ALL_OUT                                                                                          \
	SCRY_KS(SCRY_K_OUT) SCRY_HIGHS(SCRY_HIGH_OUT) SCRY_YMMS(SCRY_ZMM_OUT) SCRY_YMMS(SCRY_YMM_OUT) "vzeroupper\n"
#ifdef __AVX512F__
#define SCRY_ZMM_CLOBBERS                                                                                     \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",  \
		"xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define SCRY_ZMM_CLOBBERS
#endif

#define SCRY_INSN(m, what, top, bytes) SCRY_RUN(m, what, top, bytes, "", "")
#define SCRY_INSN_YMM(m, what, top, bytes) SCRY_RUN(m, what, top, bytes, SCRY_YMMS(SCRY_YMM), SCRY_YMMS(SCRY_YMM_OUT))
#define SCRY_INSN_ZMM(m, what, top, bytes) SCRY_RUN(m, what, top, bytes, SCRY_ALL_IN, SCRY_ALL_OUT)
#define SCRY_RUN(m, what, top, bytes, in, out)                                                                \
	do {                                                                                                  \
		struct scry_x86_64 *m_ = (m), *outer_ = scry_now;                                             \
		scry_fill_fx(m_, what, top);                                                                  \
		scry_now = m_;                                                                                \
		__asm__ volatile(SCRY_STATE_IN in "mov 56(%%rdi), %%rdi\n.byte " bytes "\n" SCRY_STATE_OUT(out) \
				 : "+D"(m_)                                                                   \
				 : SCRY_STATE_ARGS                                                            \
				 : SCRY_STATE_CLOBBERS SCRY_ZMM_CLOBBERS);                                                      \
		scry_now = outer_;                                                                            \
		scry_take_fx(m_, what);                                                                       \
	} while (0)

#endif

/*
 * Functions that take parameters and give results as C does have what else they need from here: the state of the call that is going on. Their
 * return address is not on its stack; rsp is the one of before the call. Whoever calls the first of them sets it.
 */
#ifndef SCRY_SHARED
#define SCRY_SHARED __attribute__((weak, visibility("hidden")))
#endif
SCRY_SHARED struct scry_x86_64 *scry_m;

/* Calls the C form of a function, which leaves the stack as scry_call() of its machine code does. */
SCRY_INLINE void scry_enter(struct scry_x86_64 *m, void (*fn)(struct scry_x86_64 *), uintptr_t back)
{
	m->rsp -= 8;
	scry_store64(m->rsp, back);
	fn(m);
}

/* Calls of functions that take any number of arguments, which are the first in general registers; none is in a vector register. */
#define SCRY_ARGS(...) (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

/* `fn`: the function's C, or null: `va` is its address in the file. */
SCRY_INLINE uint64_t scry_pass(void (*fn)(struct scry_x86_64 *), uint64_t va, const uint64_t *args, size_t cnt)
{
	uint64_t *const regs[] = {&scry_m->rdi, &scry_m->rsi, &scry_m->rdx, &scry_m->rcx, &scry_m->r8, &scry_m->r9};
	for (size_t i = 0; i < cnt && i < 6; i++)
		*regs[i] = args[i];
	scry_m->rax = 0;
	if (fn)
		scry_enter(scry_m, fn, 0);
	else
		scry_call(scry_m, scry_m->image + va, 0);
	return scry_m->rax;
}

/* Goes on in machine code with the state as it is, until that returns to this function's caller. */
static SCRY_OUTLINE void scry_leave(struct scry_x86_64 *m, uintptr_t target)
{
	uintptr_t pc = scry_load64(m->rsp);
	m->rsp += 8;
	scry_call(m, target, pc);
	m->pc = pc;
}
#endif

#endif
