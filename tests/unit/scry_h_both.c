/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that says what scry.h does with memory and where the state lies. test_scry_h.c has two compilers make it: what both say must
 * be the same. Operations without memory test_cprint.c tries.
 */
#include <stdio.h>

#include "scry.h"

#define LEN 1024

static uint8_t mem[LEN];

static uint64_t rng(void)
{
	static uint64_t s = 88172645463325252u;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

static void fresh(void)
{
	for (int i = 0; i < LEN; i++)
		mem[i] = (uint8_t)(rng() & 3);
}

static void say(const char *what, int bits, uint64_t v)
{
	for (int i = 0; i < LEN; i++)
		v = v * 31 + mem[i];
	printf("%s %d %llx\n", what, bits, (unsigned long long)v);
}

#define TRY(bits)                                                                                   \
	static void atomic##bits(uintptr_t at, uint##bits##_t v, uint##bits##_t old)                \
	{                                                                                           \
		fresh();                                                                            \
		scry_store##bits(at, old);                                                          \
		say("xchg", bits, scry_atomic_xchg##bits(at, v));                                   \
		say("add", bits, scry_atomic_add##bits(at, v));                                     \
		say("sub", bits, scry_atomic_sub##bits(at, (uint##bits##_t)(v >> 1)));              \
		say("or", bits, scry_atomic_or##bits(at, (uint##bits##_t)(v >> 2)));                \
		say("and", bits, scry_atomic_and##bits(at, (uint##bits##_t)(v << 1)));              \
		say("xor", bits, scry_atomic_xor##bits(at, (uint##bits##_t)(v >> 3)));              \
		say("cas", bits, scry_atomic_cas##bits(at, old, v));                                \
		say("cas it", bits, scry_atomic_cas##bits(at, scry_load##bits(at), v));             \
		scry_fence();                                                                       \
		scry_store##bits(at + 1, old);                                                      \
		say("store", bits, scry_load##bits(at + 2));                                        \
	}                                                                                           \
	static void rep##bits(uintptr_t to, uintptr_t from, uint##bits##_t v, uint1_t back)         \
	{                                                                                           \
		uintptr_t cnt = rng() % 6, base = (uintptr_t)mem;                                   \
		uint##bits##_t a, b;                                                                \
		fresh();                                                                            \
		scry_rep_copy##bits(&to, &from, &cnt, back);                                        \
		say("copy", bits, (to - from) ^ cnt);                                               \
		cnt = rng() % 6;                                                                    \
		scry_rep_cmp##bits(&to, &from, &cnt, back, rng() & 1, &a, &b);                      \
		say("cmp", bits, (to - from) ^ cnt ^ a ^ (uint64_t)b << 9);                         \
		cnt = rng() % 6;                                                                    \
		scry_rep_scan##bits(&to, scry_load##bits(from), &cnt, back, rng() & 1, &a, &b);     \
		say("scan", bits, (to - base) ^ cnt ^ a ^ (uint64_t)b << 9);                        \
		cnt = rng() % 6;                                                                    \
		scry_rep_fill##bits(&to, v, &cnt, back);                                            \
		say("fill", bits, (to - base) ^ cnt);                                               \
	}                                                                                           \
	static void try##bits(void)                                                                 \
	{                                                                                           \
		for (int i = 0; i < 200; i++) {                                                     \
			uintptr_t at = (uintptr_t)mem + 400 + rng() % 64;                           \
			uint64_t v = rng(), r = rng();                                              \
			atomic##bits(at, (uint##bits##_t)v, (uint##bits##_t)(i & 1 ? v : r));       \
			rep##bits(at + r % 32, at, (uint##bits##_t)v, r >> 60 & 1);                 \
		}                                                                                   \
	}
TRY(8)
TRY(16)
TRY(32)
TRY(64)

#define PLACE(name) printf(#name " %d\n", (int)offsetof(struct scry_x86_64, name))

int main(void)
{
	PLACE(rax), PLACE(r15), PLACE(cf), PLACE(of), PLACE(fsbase), PLACE(es), PLACE(mxcsr), PLACE(fcw), PLACE(fsw), PLACE(xmm0);
	PLACE(xmm15), PLACE(ymmh0), PLACE(zmmh0), PLACE(f0), PLACE(mm0), PLACE(k0), PLACE(zmm16), PLACE(zmm31), PLACE(pc), PLACE(image);
	PLACE(host_sp), PLACE(flags), PLACE(host_mxcsr), PLACE(host_fcw), PLACE(fx);
	printf("all %d\n", (int)sizeof(struct scry_x86_64));
	try8();
	try16();
	try32();
	try64();
	uintptr_t at = (uintptr_t)mem + 3;
	fresh();
	scry_store128(at + 50, scry_load128(at));
	scry_store256(at + 70, scry_load256(at));
	scry_store512(at + 150, scry_load512(at + 50));
	say("wide", 0, 0);
	return 0;
}
