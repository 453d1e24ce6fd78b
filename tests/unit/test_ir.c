/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR: the interpreter's operations against include/scry.h, which has the same ones in C (all operands at 8 bits, boundary
 * and random ones at the other widths); the verifier's refusals; the text form both ways; small programs run.
 */
#include "ir/ir_interp.h"

/* What it needs of conversions, C gives; its users build with their own warnings. */
#pragma GCC diagnostic ignored "-Wconversion"
#include "../../include/scry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct ir_loc toy_locs[] = {
	{"r0", IR_W64, IR_LOC_GPR}, {"r1", IR_W64, IR_LOC_GPR}, {"sp", IR_W64, IR_LOC_GPR},
	{"cf", IR_W1, IR_LOC_FLAG}, {"v0", IR_W128, IR_LOC_VEC},
};
static const struct ir_machine toy = {
	.name = "toy", .locs = toy_locs, .loc_cnt = 5, .sp_loc = 2, .addr_width = IR_W64, .calls_push = true,
};
static const struct ir_machine *const machines[] = {&toy};

/* --- operations against scry.h ----------------------------------------------------------------------------- */
static uint64_t rng(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

static uint64_t pick(unsigned bits)
{
	uint64_t r = rng(), edge = (uint64_t)1 << (r % bits);
	const uint64_t any[8] = {edge, edge - 1, 0 - edge, r >> 60 & 3, rng(), rng(), rng(), ~edge};
	return any[r >> 32 & 7];
}

static uint64_t eval(enum ir_op op, enum ir_kind kind, enum ir_width w, enum ir_width x, const uint64_t v[3])
{
	const struct ir_rec rec = {.op = (uint8_t)op, .kind = (uint8_t)kind, .width = (uint8_t)w};
	struct ir_val a = {.w = {v[0]}}, b = {.w = {v[1]}}, c = {.w = {v[2]}}, r;
	assert_true(ir_eval(&rec, x, &a, &b, &c, &r));
	return r.w[0];
}

#define SAME(op, kind, w, x, expr)                                                                               \
	do {                                                                                                     \
		uint64_t want = (uint64_t)(expr), is = eval(IR_##op, IR_##kind, w, x, v);                        \
		if (want != is)                                                                                  \
			fail_msg(#op " " #kind " %#lx %#lx %#lx: %#lx, scry.h %#lx", v[0], v[1], v[2], is, want); \
	} while (0)

#define CHECK_WIDTH(bits)                                                                                      \
	static void check##bits(uint64_t x, uint64_t y, uint64_t n)                                            \
	{                                                                                                      \
		const enum ir_width w = ir_width_of(bits);                                                     \
		uint##bits##_t a = (uint##bits##_t)x, b = (uint##bits##_t)y;                                   \
		uint64_t v[3] = {a, b, 0};                                                                     \
		for (v[2] = 0; v[2] < 2; v[2]++) {                                                             \
			SAME(FLAG, FLAG_CARRY, IR_W1, w, scry_carry##bits(a, b, (uint8_t)v[2]));               \
			SAME(FLAG, FLAG_BORROW, IR_W1, w, scry_borrow##bits(a, b, (uint8_t)v[2]));             \
			SAME(FLAG, FLAG_OVF_ADD, IR_W1, w, scry_ovf_add##bits(a, b, (uint8_t)v[2]));           \
			SAME(FLAG, FLAG_OVF_SUB, IR_W1, w, scry_ovf_sub##bits(a, b, (uint8_t)v[2]));           \
		}                                                                                              \
		SAME(ADD, KIND_NONE, w, IR_W0, (uint##bits##_t)(a + b));                                       \
		SAME(SUB, KIND_NONE, w, IR_W0, (uint##bits##_t)(a - b));                                       \
		SAME(AND, KIND_NONE, w, IR_W0, (a) & b);                                                          \
		SAME(OR, KIND_NONE, w, IR_W0, a | b);                                                          \
		SAME(XOR, KIND_NONE, w, IR_W0, a ^ b);                                                         \
		SAME(CMP, CMP_EQ, IR_W1, w, a == b);                                                           \
		SAME(CMP, CMP_ULT, IR_W1, w, a < b);                                                           \
		SAME(CMP, CMP_ULE, IR_W1, w, a <= b);                                                          \
		SAME(CMP, CMP_SLT, IR_W1, w, (int##bits##_t)a < (int##bits##_t)b);                             \
		SAME(CMP, CMP_SLE, IR_W1, w, (int##bits##_t)a <= (int##bits##_t)b);                            \
		SAME(BITS, BITS_CLZ, w, IR_W0, scry_clz##bits(a));                                             \
		SAME(BITS, BITS_CTZ, w, IR_W0, scry_ctz##bits(a));                                             \
		SAME(BITS, BITS_POPCNT, w, IR_W0, scry_popcnt##bits(a));                                       \
		SAME(PARITY, KIND_NONE, IR_W1, w, scry_parity(a));                                             \
		if (b) {                                                                                       \
			SAME(DIV, DIV_UQUOT, w, IR_W0, scry_udiv##bits(a, b));                                 \
			SAME(DIV, DIV_UREM, w, IR_W0, scry_urem##bits(a, b));                                  \
		}                                                                                              \
		if (b && !(b == (uint##bits##_t)-1 && a == (uint##bits##_t)((uint64_t)1 << (bits - 1)))) {     \
			SAME(DIV, DIV_SQUOT, w, IR_W0, scry_sdiv##bits(a, b));                                 \
			SAME(DIV, DIV_SREM, w, IR_W0, scry_srem##bits(a, b));                                  \
		}                                                                                              \
		v[1] = n;                                                                                      \
		SAME(SHL, KIND_NONE, w, IR_W0, scry_shl##bits(a, n));                                          \
		SAME(LSHR, KIND_NONE, w, IR_W0, scry_lshr##bits(a, n));                                        \
		SAME(ASHR, KIND_NONE, w, IR_W0, scry_ashr##bits(a, n));                                        \
		SAME(ROT, ROT_L, w, IR_W0, scry_rotl##bits(a, n));                                             \
		SAME(ROT, ROT_R, w, IR_W0, scry_rotr##bits(a, n));                                             \
	}

CHECK_WIDTH(8)
CHECK_WIDTH(16)
CHECK_WIDTH(32)
CHECK_WIDTH(64)

static void check_products(uint64_t a, uint64_t b)
{
	const uint64_t v[3] = {a, b, 0};
	SAME(MULH, MULH_U, IR_W64, IR_W0, scry_umulh64(a, b));
	SAME(MULH, MULH_S, IR_W64, IR_W0, scry_smulh64(a, b));
	SAME(MUL, KIND_NONE, IR_W64, IR_W0, a * b);
}

static void test_ops_8(void **state)
{
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = 0; b < 256; b++)
			check8(a, b, b);
	}
}

static void test_ops_wider(void **state)
{
	for (unsigned i = 0; i < 20000; i++) {
		check16(pick(16), pick(16), pick(6));
		check32(pick(32), pick(32), pick(8));
		check64(pick(64), pick(64), pick(8));
		check_products(pick(64), pick(64));
	}
}

static void divide(enum ir_kind kind, enum ir_width w, uint64_t hi, uint64_t lo, uint64_t d, bool want_ok, uint64_t want)
{
	const struct ir_rec rec = {.op = IR_DIVW, .kind = (uint8_t)kind, .width = (uint8_t)w};
	struct ir_val a = {.w = {hi}}, b = {.w = {lo}}, c = {.w = {d}}, r;
	assert_int_equal(ir_eval(&rec, IR_W0, &a, &b, &c, &r), want_ok);
	if (want_ok)
		assert_int_equal(r.w[0], want);
}

/* Division of the double width, all signs and both ends. */
static void test_wide_division(void **state)
{
	for (int n = -32768; n < 32768; n += 7) {
		for (int d = -128; d < 128; d++) {
			int q = d ? n / d : 0;
			bool fits = d && q >= -128 && q < 128;
			uint64_t hi = (uint8_t)(n >> 8), lo = (uint8_t)n;
			divide(IR_DIVW_SQUOT, IR_W8, hi, lo, (uint8_t)d, fits, (uint8_t)q);
			divide(IR_DIVW_SREM, IR_W8, hi, lo, (uint8_t)d, fits, (uint8_t)(d ? n % d : 0));
			unsigned un = (uint16_t)n, ud = (uint8_t)d;
			bool ufits = ud && un / ud < 256;
			divide(IR_DIVW_UQUOT, IR_W8, hi, lo, ud, ufits, ufits ? un / ud : 0);
		}
	}
	divide(IR_DIVW_UQUOT, IR_W64, 1, 0, 2, true, (uint64_t)1 << 63);
	divide(IR_DIVW_UQUOT, IR_W64, 2, 0, 2, false, 0);
	divide(IR_DIVW_SQUOT, IR_W64, UINT64_MAX, 0, 2, true, (uint64_t)1 << 63);
	divide(IR_DIVW_SQUOT, IR_W64, 0, (uint64_t)1 << 63, 1, false, 0);
}

/* Operations wider than 64 bits against 128-bit arithmetic of the compiler. */
static void test_wide(void **state)
{
	for (unsigned i = 0; i < 20000; i++) {
		unsigned __int128 a = (unsigned __int128)pick(64) << 64 | pick(64), b = (unsigned __int128)pick(64) << 64 | pick(64);
		unsigned n = (unsigned)(rng() % 140);
		struct ir_val va = {.w = {(uint64_t)a, (uint64_t)(a >> 64)}}, vb = {.w = {(uint64_t)b, (uint64_t)(b >> 64)}}, r;
		struct ir_val vn = {.w = {n}};
		const struct {
			enum ir_op op;
			unsigned __int128 want;
			const struct ir_val *second;
		} cases[] = {
			{IR_ADD, a + b, &vb},
			{IR_SUB, a - b, &vb},
			{IR_MUL, a * b, &vb},
			{IR_SHL, n < 128 ? a << n : 0, &vn},
			{IR_LSHR, n < 128 ? a >> n : 0, &vn},
			{IR_ASHR, (unsigned __int128)((__int128)a >> (n < 128 ? n : 127)), &vn},
		};
		for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			const struct ir_rec rec = {.op = (uint8_t)cases[k].op, .width = IR_W128};
			assert_true(ir_eval(&rec, IR_W0, &va, cases[k].second, NULL, &r));
			assert_int_equal(r.w[0], (uint64_t)cases[k].want);
			assert_int_equal(r.w[1], (uint64_t)(cases[k].want >> 64));
			assert_int_equal(r.w[2], 0);
		}
	}
}

static double f64(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

static void test_floats(void **state)
{
	static const uint64_t specials[] = {0, (uint64_t)1 << 63, 1, 0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
					    0x7ff8000000000001, 0xfff0000000000001, 0x41dfffffffc00000, 0x43e0000000000000,
					    0xc1e0000000000000, 0xc3e0000000000000, 0x3fe0000000000000, 0xbff8000000000000};
	const unsigned cnt = sizeof(specials) / sizeof(*specials);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t v[3] = {i < cnt * cnt ? specials[i / cnt] : rng(), i < cnt * cnt ? specials[i % cnt] : rng(), 0};
		double a = f64(v[0]), b = f64(v[1]);
		uint64_t min = f64(v[0]) < f64(v[1]) ? v[0] : v[1];
		SAME(FBIN, FBIN_MINX, IR_W64, IR_W0, min);
		SAME(FCMP, FCMP_OLT, IR_W1, IR_W64, a < b);
		SAME(FCMP, FCMP_OEQ, IR_W1, IR_W64, a == b);
		SAME(FCMP, FCMP_UNO, IR_W1, IR_W64, __builtin_isunordered(a, b));
		SAME(FTOI, FTOI_TRUNC, IR_W32, IR_W64, scry_ftrunc32_64(scry_bits_f64(a)));
		SAME(FTOI, FTOI_TRUNC, IR_W64, IR_W64, scry_ftrunc64_64(scry_bits_f64(a)));
		double sum = a + b;
		uint64_t bits = eval(IR_FBIN, IR_FBIN_ADD, IR_W64, IR_W0, v);
		assert_true(__builtin_isnan(sum) ? __builtin_isnan(f64(bits)) : f64(bits) == sum);
	}
	const uint64_t nans[3] = {0x7ff0000000000005, 0xfff8000000000009, 0};
	assert_int_equal(eval(IR_FBIN, IR_FBIN_MUL, IR_W64, IR_W0, nans), 0x7ff8000000000005);
	const uint64_t infs[3] = {0x7ff0000000000000, 0x7ff0000000000000, 0};
	assert_int_equal(eval(IR_FBIN, IR_FBIN_SUB, IR_W64, IR_W0, infs), 0xfff8000000000000);
}

/* --- text, verifier, programs ------------------------------------------------------------------------------- */
static struct ir_func *parse(struct arena *a, const char *text)
{
	struct ir_func *f;
	struct err *e = ir_parse(a, text, strlen(text), machines, 1, &f);
	if (e)
		fail_msg("%s", e->text);
	return f;
}

static const char everything[] =
	"func toy 0x1000\n"
	"intrin 0 cpuid 0x1004 0fa2 in ( r0 ) out ( r0 v0 ) mem 4 rwsz x87 -1 alt r1 0fa3\n"
	"block 0 0x1000\n"
	"insn 0x1000 4\n"
	"%0:64 = get r0\n"
	"%1:64 = add %0 0x5:64\n"
	"put r0 %1\n"
	"%3:1 = cmp.ult %1 %0\n"
	"%4:128 = get v0\n"
	"%5:128 = vmap <add 32> %4 0xffffffffffffffff0000000000000001:128\n"
	"%6:128 = vperm %5 %4 0x0:128\n"
	"%7:32 = vmask #8 %6\n"
	"%8:128 = vcvt <itof.s 32> %5 0x40:64\n"
	"%9:32 = load %1 !volatile\n"
	"store %1 %9 !be\n"
	"%11:8 = extract #3 %9\n"
	"%12 = memop.scan #8 ( %0 %11 %1 0x0:1 0x1:1 )\n"
	"%13:64 = res #2 %12\n"
	"switch b2 %13 ( 0x1:64 b1 0x2:64 b3 )\n"
	"block 1\n"
	"insn 0x1004 2\n"
	"%15 = intrin #0 ( %0 %1 )\n"
	"%16:64 = res #0 %15\n"
	"call %16 0x1006:64\n"
	"jmp b3\n"
	"block 2 0x1010\n"
	"br %3 b1 b3\n"
	"block 3 0x1020\n"
	"%20:64 = phi ( %0 %1 %1 )\n"
	"%21:64 = gaddr 0x2000:64\n"
	"put r1 %21\n"
	"ret #8\n";

static void test_text(void **state)
{
	struct arena a = {0};
	struct buf once = {0}, twice = {0};
	struct ir_func *f = parse(&a, everything);
	struct err *e = ir_check(f);
	if (e)
		fail_msg("%s", e->text);
	ir_print(f, &once);
	buf_add_ch(&once, 0);
	assert_string_equal(once.data, everything);
	ir_print(parse(&a, once.data), &twice);
	buf_add_ch(&twice, 0);
	assert_string_equal(once.data, twice.data);
	buf_fini(&once);
	buf_fini(&twice);
	arena_fini(&a);
}

/* Each must be refused, by parser or verifier, for the reason given. */
static void test_refusals(void **state)
{
	static const char *const cases[][2] = {
		{"block 0\nput r0 0x1:32\nret #0\n", "location"},
		{"block 0\n%0:64 = add 0x1:64 0x1:32\nret #0\n", "width"},
		{"block 0\n%0:64 = add 0x1:64\nret #0\n", "no value"},
		{"block 0\n%0:64 = add 0x1:64 0x1:64 0x1:64\nret #0\n", "too many"},
		{"block 0\n%0:32 = extract #33 0x1:64\nret #0\n", "bits"},
		{"block 0\n%0:64 = add %1 0x1:64\n%1:64 = get r0\nret #0\n", "need not exist"},
		{"block 0\nbr 0x1:1 b1 b2\nblock 1\n%1:64 = get r0\njmp b2\nblock 2\nput r0 %1\nret #0\n", "need not exist"},
		{"block 0\n%0:64 = get r0\n", "end"},
		{"block 0\nret #0\nret #0\n", "end"},
		{"block 0\njmp b1\n", "block"},
		{"block 0\n", "empty"},
		{"block 0\n%0:64 = phi ( 0x1:64 )\nret #0\n", "way in"},
		{"block 0\n%0:128 = vmap <load 32> 0x1:128 0x1:128\nret #0\n", "lanes"},
		{"block 0\n%0:128 = vmap <fbin.add 16> 0x1:128 0x1:128\nret #0\n", "lanes"},
		{"block 0\n%0:64 = mulh 0x1:64 0x1:64\nret #0\n", "kind"},
		{"block 0\n%0:1 = cmp.u 0x1:64 0x1:64\nret #0\n", "operation"},
		{"block 0\nput r9 0x1:64\nret #0\n", "location"},
		{"block 1\nret #0\n", "numbered"},
		{"block 0\n%0:64 = get r0\n%0:64 = get r0\nret #0\n", "before"},
		{"block 0\nswitch b0 0x1:64 ( 0x1:64 )\n", "half a case"},
		{"block 0\n%0 = memop.fill #8 ( 0x0:64 0x1:64 0x0:64 0x0:1 0x0:1 )\nret #0\n", "width"},
		{"block 0\n%0:64 = res #0 0x1:64\nret #0\n", "result"},
		{"block 0\nput r0 0x1g:64\nret #0\n", "hex"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena a = {0};
		struct ir_func *f;
		char text[400];
		snprintf(text, sizeof(text), "func toy 0x0\n%s", cases[i][0]);
		struct err *e = ir_parse(&a, text, strlen(text), machines, 1, &f);
		if (!e)
			e = ir_check(f);
		if (!e)
			fail_msg("%s: is taken", cases[i][0]);
		if (!strstr(e->text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], e->text);
		err_free(e);
		arena_fini(&a);
	}
}

static struct ir_run run(struct arena *a, struct ir_func *f, struct ir_val *locs, struct ir_mem *mem)
{
	struct err *e = ir_check(f);
	if (e)
		fail_msg("%s", e->text);
	struct ir_run r = {.func = f, .arena = a, .locs = locs, .mem = mem};
	ir_interp(&r);
	return r;
}

static void test_programs(void **state)
{
	struct arena a = {0};
	struct ir_mem mem = {.arena = &a};
	struct ir_val locs[5] = {{{0}}};
	/* Sum of 1 .. r0 by joins, and the count of steps of the loop in r1. */
	struct ir_func *f = parse(&a, "func toy 0x0\n"
				      "block 0\n%0:64 = get r0\njmp b1\n"
				      "block 1\n%2:64 = phi ( %0 %7 )\n%3:64 = phi ( 0x0:64 %6 )\n%4:1 = cmp.eq %2 0x0:64\nbr %4 b3 b2\n"
				      "block 2\n%6:64 = add %3 %2\n%7:64 = sub %2 0x1:64\njmp b1\n"
				      "block 3\nput r1 %3\nijmp 0x77:64\n");
	locs[0].w[0] = 100;
	struct ir_run r = run(&a, f, locs, &mem);
	assert_int_equal(r.exit, IR_EXIT_JUMP);
	assert_int_equal(r.va, 0x77);
	assert_int_equal(locs[1].w[0], 5050);

	/* A fill, then a scan for the byte behind it; across a page. */
	f = parse(&a, "func toy 0x0\nblock 0\n%0 = memop.fill #8 ( 0xff0:64 0xab:8 0x20:64 0x0:1 0x0:1 )\n%1:64 = res #0 %0\n"
		      "%2 = memop.scan #8 ( 0xff0:64 0xab:8 0x100:64 0x0:1 0x1:1 )\n%3:64 = res #0 %2\n%4:64 = res #2 %2\n"
		      "put r0 %1\nput r1 %3\nput sp %4\nijmp 0x0:64\n");
	run(&a, f, locs, &mem);
	assert_int_equal(locs[0].w[0], 0x1010);
	assert_int_equal(locs[1].w[0], 0x1011);
	assert_int_equal(locs[2].w[0], 0x100 - 0x21);

	/* What depends on the unknown is marked; a chosen known value is not; an unknown condition stops. */
	f = parse(&a, "func toy 0x0\nblock 0\n%0:64 = undef\n%1:64 = add %0 0x1:64\n%2:64 = sel 0x1:1 0x7:64 %0\nput r0 %1\nput r1 %2\n"
		      "%5:1 = undef\nput cf %5\nbr %5 b0 b0\n");
	r = run(&a, f, locs, &mem);
	assert_int_equal(r.exit, IR_EXIT_UNKNOWN);
	assert_true(locs[0].is_undef && !locs[1].is_undef && locs[3].is_undef);

	/* Faults and traps leave the registers. */
	mem.page_limit = mem.page_cnt;
	f = parse(&a, "func toy 0x0\nblock 0\n%0:64 = load 0x5000000:64\nput r1 %0\nret #0\n");
	r = run(&a, f, locs, &mem);
	assert_int_equal(r.exit, IR_EXIT_FAULT);
	assert_int_equal(r.va, 0x5000000);
	assert_int_equal(locs[1].w[0], 7);
	f = parse(&a, "func toy 0x0\nblock 0\n%0:64 = div.uquot 0x5:64 0x0:64\nput r1 %0\nret #0\n");
	assert_int_equal(run(&a, f, locs, &mem).exit, IR_EXIT_TRAP);
	f = parse(&a, "func toy 0x0\nblock 0\njmp b0\n");
	assert_int_equal(run(&a, f, locs, &mem).exit, IR_EXIT_BUDGET);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops_8),     cmocka_unit_test(test_ops_wider), cmocka_unit_test(test_wide_division),
		cmocka_unit_test(test_wide),      cmocka_unit_test(test_floats),    cmocka_unit_test(test_text),
		cmocka_unit_test(test_refusals),  cmocka_unit_test(test_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
