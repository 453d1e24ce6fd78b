/* SPDX-License-Identifier: Apache-2.0 */
/*
 * include/scry.h against arithmetic in 128 bits, which cannot overflow here: all pairs at 8 bits, boundary
 * and random values at the other widths; and that it compiles alone, without a warning, with every compiler
 * at hand at -O0 and -O2.
 */
#include "../../include/scry.h"

#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef __int128 wide;

static uint64_t rng(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

#define F64(x) scry_bits_f64(x)

/* Values near the places where carries and signs change, else random. */
static uint64_t pick(unsigned bits)
{
	uint64_t r = rng();
	uint64_t edge = (uint64_t)1 << (r % bits);
	switch (r >> 32 & 7) {
	case 0:
		return edge;
	case 1:
		return edge - 1;
	case 2:
		return 0 - edge;
	case 3:
		return r >> 60 & 3;
	default:
		return rng();
	}
}

#define CHECK_WIDTH(bits)                                                                                      \
	static void check##bits(uint64_t x, uint64_t y, uint64_t n)                                            \
	{                                                                                                      \
		uint##bits##_t a = (uint##bits##_t)x, b = (uint##bits##_t)y;                                   \
		wide sa = (int##bits##_t)a, sb = (int##bits##_t)b;                                             \
		wide top = (wide)1 << bits, smin = -((wide)1 << (bits - 1)), smax = -smin - 1;                 \
		for (uint8_t c = 0; c < 2; c++) {                                                              \
			wide sum = sa + sb + c, dif = sa - sb - c;                                             \
			assert_int_equal(scry_carry##bits(a, b, c), (wide)a + b + c >= top);                   \
			assert_int_equal(scry_borrow##bits(a, b, c), (wide)a - b - c < 0);                     \
			assert_int_equal(scry_ovf_add##bits(a, b, c), sum < smin || sum > smax);               \
			assert_int_equal(scry_ovf_sub##bits(a, b, c), dif < smin || dif > smax);               \
		}                                                                                              \
		assert_true(scry_shl##bits(a, n) == (n < bits ? (uint##bits##_t)((wide)a << n) : 0));          \
		assert_true(scry_lshr##bits(a, n) == (n < bits ? (uint##bits##_t)((wide)a >> n) : 0));         \
		assert_true(scry_ashr##bits(a, n) == (uint##bits##_t)(sa >> (n < bits ? n : bits)));           \
		wide twice = (wide)a << (n % bits);                                                            \
		assert_true(scry_rotl##bits(a, n) == (uint##bits##_t)(twice | twice >> bits));                 \
		assert_true(scry_rotr##bits(scry_rotl##bits(a, n), n) == a);                                   \
		if (b) {                                                                                       \
			assert_true(scry_udiv##bits(a, b) == (uint##bits##_t)((wide)a / b));                   \
			assert_true(scry_urem##bits(a, b) == (uint##bits##_t)((wide)a % b));                   \
		}                                                                                              \
		if (b && !(sa == smin && sb == -1)) {                                                          \
			assert_true(scry_sdiv##bits(a, b) == (uint##bits##_t)(sa / sb));                       \
			assert_true(scry_srem##bits(a, b) == (uint##bits##_t)(sa % sb));                       \
		}                                                                                              \
		unsigned ones = 0, lead = bits, trail = bits;                                                  \
		for (unsigned i = 0; i < bits; i++) {                                                          \
			if (!((wide)a >> i & 1))                                                               \
				continue;                                                                      \
			ones++;                                                                                \
			lead = bits - 1 - i;                                                                   \
			trail = trail == bits ? i : trail;                                                     \
		}                                                                                              \
		assert_int_equal(scry_popcnt##bits(a), ones);                                                  \
		assert_int_equal(scry_clz##bits(a), lead);                                                     \
		assert_int_equal(scry_ctz##bits(a), trail);                                                    \
		uint8_t cell[16] = {0};                                                                        \
		scry_store##bits((uintptr_t)cell + 1, a);                                                      \
		assert_true(scry_load##bits((uintptr_t)cell + 1) == a && !cell[0] && !cell[1 + bits / 8]);     \
	}

CHECK_WIDTH(8)
CHECK_WIDTH(16)
CHECK_WIDTH(32)

/* At 64 bits sa >> 64 and a << 63 still fit 128 bits with the sign; the rotation is done in unsigned. */
static void check64(uint64_t a, uint64_t b, uint64_t n)
{
	wide sa = (int64_t)a, sb = (int64_t)b;
	for (uint8_t c = 0; c < 2; c++) {
		wide sum = sa + sb + c, dif = sa - sb - c;
		assert_int_equal(scry_carry64(a, b, c), ((unsigned __int128)a + b + c) >> 64);
		assert_int_equal(scry_borrow64(a, b, c), (wide)a - (wide)b - c < 0);
		assert_int_equal(scry_ovf_add64(a, b, c), sum != (int64_t)sum);
		assert_int_equal(scry_ovf_sub64(a, b, c), dif != (int64_t)dif);
	}
	assert_true(scry_shl64(a, n) == (n < 64 ? (uint64_t)((unsigned __int128)a << n) : 0));
	assert_true(scry_lshr64(a, n) == (n < 64 ? a >> n : 0));
	assert_true(scry_ashr64(a, n) == (uint64_t)(sa >> (n < 64 ? n : 64)));
	unsigned __int128 twice = (unsigned __int128)a << (n % 64);
	assert_true(scry_rotl64(a, n) == (uint64_t)(twice | twice >> 64));
	assert_true(scry_rotr64(scry_rotl64(a, n), n) == a);
	assert_true(scry_umulh64(a, b) == (uint64_t)((unsigned __int128)a * b >> 64));
	assert_true(scry_smulh64(a, b) == (uint64_t)(sa * sb >> 64));
	assert_true(scry_umulh32((uint32_t)a, (uint32_t)b) == (uint32_t)((uint64_t)(uint32_t)a * (uint32_t)b >> 32));
	assert_true(scry_smulh32((uint32_t)a, (uint32_t)b) == (uint32_t)((wide)(int32_t)a * (int32_t)b >> 32));
	if (b && !(a == (uint64_t)1 << 63 && b == UINT64_MAX)) {
		assert_true(scry_udiv64(a, b) == a / b && scry_urem64(a, b) == a % b);
		assert_true(scry_sdiv64(a, b) == (uint64_t)(sa / sb));
		assert_true(scry_srem64(a, b) == (uint64_t)(sa % sb));
	}
}

static void test_all_pairs_of_bytes(void **state)
{
	for (uint64_t a = 0; a < 256; a++) {
		for (uint64_t b = 0; b < 256; b++)
			check8(a, b, b);
		unsigned ones = 0;
		for (unsigned i = 0; i < 8; i++)
			ones += a >> i & 1;
		assert_int_equal(scry_parity(a | 0x5500), ones % 2 == 0);
	}
}

static void test_wider(void **state)
{
	for (int i = 0; i < 100000; i++) {
		check16(pick(16), pick(16), rng() % 40);
		check32(pick(32), pick(32), rng() % 80);
		check64(pick(64), pick(64), rng() % 160);
	}
	check64(1, 1, UINT64_MAX);
}

static bool traps(uint64_t (*fn)(void))
{
	pid_t pid = fork();
	if (!pid) {
		int sigs[] = {SIGILL, SIGTRAP, SIGABRT};
		for (unsigned i = 0; i < 3; i++)
			sigaction(sigs[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
		_exit((int)fn() & 0);
	}
	int status;
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

static volatile uint64_t zero;

static uint64_t div_by_zero(void)
{
	return scry_udiv32(5, (uint32_t)zero);
}

static uint64_t div_overflow(void)
{
	return scry_sdiv64((uint64_t)1 << 63, zero - 1);
}

static uint64_t div_fine(void)
{
	return scry_sdiv8(0x80, (uint8_t)(zero + 1));
}

static void test_division_traps_where_the_machine_does(void **state)
{
	assert_true(traps(div_by_zero));
	assert_true(traps(div_overflow));
	assert_false(traps(div_fine));
}

static void test_sse_rules(void **state)
{
	assert_true(scry_fmin64(F64(NAN), F64(3.0)) == F64(3.0) && scry_isnan64(scry_fmin64(F64(3.0), F64(NAN))));
	assert_true(scry_fmax64(F64(0.0), F64(-0.0)) == F64(-0.0) && scry_fmin64(F64(-0.0), F64(0.0)) == F64(0.0));
	assert_int_equal(scry_ftrunc32_64(F64(-2147483648.9)), 0x80000000u);
	assert_int_equal(scry_ftrunc32_64(F64(2147483648.0)), 0x80000000u);
	assert_int_equal(scry_ftrunc32_64(F64(NAN)), 0x80000000u);
	assert_int_equal(scry_ftrunc32_64(F64(-1.9)), 0xffffffffu);
	assert_true(scry_ftrunc64_64(F64(0x1p63)) == (uint64_t)1 << 63 && scry_ftrunc64_64(F64(-5.5)) == (uint64_t)-5);
}

static void test_compiles_everywhere(void **state)
{
	static const char *const compilers[] = {"gcc", "clang"};
	unsigned tried = 0;
	for (unsigned i = 0; i < 4; i++) {
		char cmd[512];
		snprintf(cmd, sizeof(cmd), "command -v %s >/dev/null || exit 9; echo '#include \"%s/scry.h\"' | %s -std=gnu11 "
			 "-Wall -Wextra -Werror -O%d -c -x c -o /dev/null -", compilers[i / 2], SCRY_INCLUDE, compilers[i / 2],
			 i % 2 ? 2 : 0);
		pid_t pid = fork();
		if (!pid)
			execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		int status = -1;
		waitpid(pid, &status, 0);
		if (WEXITSTATUS(status) == 9)
			continue;
		assert_int_equal(status, 0);
		tried++;
	}
	assert_true(tried > 0);
}

#if defined(__x86_64__)
/* What the program of scry_h_both.c says, made by the compiler that `how` begins with. */
static size_t said(const char *how, char *ret, size_t cap)
{
	char cmd[1024], name[] = "/tmp/scry-h-XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	close(fd);
	snprintf(cmd, sizeof(cmd), "%s -w -I %s -o %s %s && %s", how, SCRY_INCLUDE, name, SCRY_H_BOTH, name);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	size_t len = fread(ret, 1, cap, p);
	assert_int_equal(pclose(p), 0);
	unlink(name);
	return len;
}

static void test_quick_compiler_says_the_same(void **state)
{
	static char a[1 << 20], b[1 << 20];
	if (access("/usr/bin/tcc", X_OK)) {
		print_message("there is no tcc\n");
		skip();
	}
	size_t len = said("gcc -O1", a, sizeof(a));
	assert_true(len > 100000 && len < sizeof(a));
	assert_int_equal(said("/usr/bin/tcc -include scry_tcc.h", b, sizeof(b)), len);
	for (size_t i = 0; i < len; i++)
		if (a[i] != b[i])
			fail_msg("gcc: %.60s\ntcc: %.60s", a + (i > 20 ? i - 20 : 0), b + (i > 20 ? i - 20 : 0));
}

/* Instructions run with the whole state: what AVX-512 has beyond AVX goes in and comes out. */
static void test_avx512(void **state)
{
	static struct scry_x86_64 m;
	if (!__builtin_cpu_supports("avx512bw"))
		skip();
	m.mxcsr = 0x1f80;
	m.fcw = 0x37f;
	m.xmm1 = scry_u128(2, 1);
	m.ymmh1 = scry_u128(4, 3);
	m.k3 = 0xf0;
	for (unsigned i = 0; i < 8; i++)
		m.zmm16.w[i] = 100 + i;
	for (unsigned i = 0; i < 4; i++)
		m.zmmh1.w[i] = 5 + i;
	SCRY_INSN_ZMM(&m, 0, 0, "0x62,0xe1,0xfd,0x40,0xd4,0xc9"); /* vpaddq zmm17,zmm16,zmm1 */
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(m.zmm17.w[i], 101 + 2 * i);
	SCRY_INSN_ZMM(&m, 0, 0, "0x62,0x71,0xfd,0x43,0xd4,0xc9"); /* vpaddq zmm9{k3},zmm16,zmm1 */
	assert_true(m.xmm9 == 0 && m.ymmh9 == 0 && m.k3 == 0xf0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(m.zmmh9.w[i], 109 + 2 * i);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs_of_bytes),
		cmocka_unit_test(test_wider),
		cmocka_unit_test(test_division_traps_where_the_machine_does),
		cmocka_unit_test(test_sse_rules),
		cmocka_unit_test(test_compiles_everywhere),
#if defined(__x86_64__)
		cmocka_unit_test(test_quick_compiler_says_the_same),
		cmocka_unit_test(test_avx512),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
