/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule of the simplifier is an equation: both sides are built and evaluated. At 8 bits (and 1) for every value of its letters, or
 * every pair where there are two; its numbers go through all 256 values where there is one, through many pairs where there are two. At 16 to
 * 128 bits for many values near the borders. A rule that never applies fails, too.
 */
#include "decomp/dec_rules.h"
#include "ir/ir_interp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define VALUES_MAX 3
#define RECS_MAX 128

static struct ir_loc locs[26 * IR_W_COUNT];
static const struct ir_machine machine = {.name = "letters", .locs = locs, .loc_cnt = 26 * IR_W_COUNT, .sp_loc = 0, .addr_width = IR_W64};

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Near zero, near the borders of widths, anything. */
static uint64_t biased(void)
{
	static const uint8_t borders[] = {0, 1, 7, 8, 15, 16, 31, 32, 63};
	uint64_t r = next(), v = (uint64_t)1 << borders[(r >> 8) % sizeof(borders)];
	switch (r & 7) {
	case 0:
		return (r >> 32 & 3) - 1;
	case 1:
		return v - 1;
	case 2:
		return v;
	case 3:
		return 0 - v;
	case 4:
		return r >> 32 & 0xff;
	default:
		return next();
	}
}

struct instance {
	struct arena a;
	struct ir_func *f;
	struct dec_build b;
	struct dec_graph g;
	unsigned masks;              /* which letters are masked, so that some of their bits are known */
	uint64_t mask;
	unsigned cnt;                /* letters that are values */
	uint8_t letters[VALUES_MAX];
	enum ir_width widths[VALUES_MAX];
};

static ir_ref make(void *ctx, unsigned letter, enum ir_width w)
{
	struct instance *in = ctx;
	if (in->cnt == VALUES_MAX || w == IR_W0 || w >= IR_W256)
		return ir_const(in->f, IR_W8, 0);
	in->letters[in->cnt] = (uint8_t)letter;
	in->widths[in->cnt++] = w;
	const struct ir_rec get = {.op = IR_GET, .width = (uint8_t)w, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = letter * IR_W_COUNT + w};
	ir_ref r = dec_put_rec(&in->b, &get);
	if (!(in->masks >> (in->cnt - 1) & 1))
		return r;
	const struct ir_rec mask = {.op = IR_AND, .width = (uint8_t)w, .a = r, .b = ir_const(in->f, w, in->mask), .c = IR_REF_NONE};
	return dec_put_rec(&in->b, &mask);
}

static bool begin(struct instance *in)
{
	static uint32_t zero;
	arena_reset(&in->a);
	in->cnt = 0;
	in->f = ir_func_new(&in->a, &machine, 0);
	assert_non_null(in->f);
	ir_block_new(in->f, 0);
	in->g = (struct dec_graph){.dom_first = &zero, .dom_last = &zero, .idom = &zero};
	assert_true(dec_build_init(&in->b, in->f, &in->g, RECS_MAX, 100000));
	dec_build_block(&in->b, 0);
	return true;
}

/* --- evaluation -------------------------------------------------------------------------------------------------------------------- */
static struct ir_val values[26], vals[RECS_MAX * 4];

static struct ir_val value_of(const struct ir_func *f, ir_ref r)
{
	struct ir_val v = {{0}};
	const uint64_t *words = ir_const_words(f, r);
	if (ir_tag(r) == IR_TAG_VALUE)
		return vals[ir_index(r)];
	if (words)
		memcpy(v.w, words, ir_words(ir_ref_width(f, r)) * 8);
	return v;
}

static enum ir_width x_of(const struct ir_func *f, const struct ir_rec *rec)
{
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	const char *operands = ir_op_info((enum ir_op)rec->op)->signature + 2, *x = strchr(operands, 'x');
	return x ? ir_ref_width(f, refs[x - operands]) : IR_W0;
}

/* False: it traps. */
static bool eval(const struct ir_func *f, const struct ir_rec *rec, struct ir_val *ret)
{
	struct ir_val a = value_of(f, rec->a), b = value_of(f, rec->b), c = value_of(f, rec->c);
	*ret = (struct ir_val){{0}};
	if (rec->op == IR_GET) {
		*ret = values[rec->aux / IR_W_COUNT];
		return true;
	}
	return rec->op == IR_PUT || ir_eval(rec, x_of(f, rec), &a, &b, &c, ret);
}

/* Both sides on the values there are now. */
static void compare(struct instance *in, const struct ir_rec *root, ir_ref result, const char *name)
{
	struct ir_val left, right;
	bool traps = false;
	for (uint32_t i = 0; i < in->f->rec_cnt; i++)
		traps |= !eval(in->f, &in->f->recs[i], &vals[i]);
	bool left_traps = !eval(in->f, root, &left);
	/* Both may trap, or none. */
	if (left_traps || traps) {
		if (left_traps != traps)
			fail_msg("%s: only one side traps", name);
		return;
	}
	right = value_of(in->f, result);
	if (memcmp(left.w, right.w, sizeof(left.w)))
		fail_msg("%s: at width %u: 0x%llx, 0x%llx are 0x%llx, made 0x%llx", name, ir_bits((enum ir_width)root->width),
			 (unsigned long long)values[in->letters[0]].w[0], (unsigned long long)values[in->letters[1]].w[0],
			 (unsigned long long)left.w[0], (unsigned long long)right.w[0]);
}

static void set_value(struct instance *in, unsigned i, uint64_t low, uint64_t high)
{
	unsigned bits = ir_bits(in->widths[i]);
	struct ir_val v = {{low, bits > 64 ? high : 0}};
	if (bits < 64)
		v.w[0] &= ((uint64_t)1 << bits) - 1;
	if (bits > 64 && bits < 128)
		v.w[1] &= ((uint64_t)1 << (bits - 64)) - 1;
	values[in->letters[i]] = v;
}

static unsigned long try_values(struct instance *in, const struct ir_rec *root, ir_ref result, const char *name, bool is_small)
{
	unsigned long cnt = 0, all = 1;
	for (unsigned i = 0; i < in->cnt; i++)
		all *= 1ul << (ir_bits(in->widths[i]) < 8 ? ir_bits(in->widths[i]) : 8);
	for (unsigned long v = 0; is_small && all <= 65536 && v < all; v++, cnt++) {
		unsigned long rest = v;
		for (unsigned i = 0; i < in->cnt; i++) {
			unsigned bits = ir_bits(in->widths[i]);
			set_value(in, i, rest, 0);
			rest >>= bits < 8 ? bits : 8;
		}
		compare(in, root, result, name);
	}
	for (unsigned k = 0; !cnt && k < (is_small ? 500u : 40u); k++) {
		for (unsigned i = 0; i < in->cnt; i++)
			set_value(in, i, biased(), biased());
		compare(in, root, result, name);
	}
	return cnt ? cnt : 40;
}

/* --- one rule ------------------------------------------------------------------------------------------------------------------------- */
static const enum ir_width widths[] = {IR_W1, IR_W8, IR_W16, IR_W32, IR_W64, IR_W128};
#define WIDTHS 6

static struct instance in;

/* With these numbers and widths; whether the rule applied. */
static bool try_one(unsigned rule, struct dec_rule_sample *s, const char *name, bool is_thorough)
{
	struct ir_rec root;
	begin(&in);
	s->choice_cnt = 0;
	s->numbers = 0;
	memset(s->value, 0xff, sizeof(s->value));
	s->make = make;
	s->ctx = &in;
	if (!dec_rule_root(&in.b, rule, s, &root) || in.cnt > VALUES_MAX)
		return false;
	uint32_t before = in.f->rec_cnt;
	/* Well formed is what ir_check() says so. */
	const struct ir_rec put = {.op = IR_PUT, .width = root.width, .a = dec_put_rec(&in.b, &root), .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = root.width};
	const struct ir_rec end = {.op = IR_TRAP, .kind = IR_TRAP_END, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	dec_put_rec(&in.b, &put);
	dec_put_rec(&in.b, &end);
	struct err *e = ir_check(in.f);
	bool is_well = !e;
	err_free(e);
	in.f->rec_cnt = before;
	in.f->order_cnt = in.f->blocks[0].last = before;
	if (!is_well)
		return false;
	ir_ref result = dec_rule_try(&in.b, rule, &root);
	if (result == IR_REF_NONE)
		return false;
	if (in.b.failed || in.f->rec_cnt > RECS_MAX * 4)
		fail_msg("%s: its result does not come to an end", name);
	if (ir_ref_width(in.f, result) != root.width)
		fail_msg("%s: %u bits become %u", name, ir_bits((enum ir_width)root.width), ir_bits(ir_ref_width(in.f, result)));
	bool is_small = true;
	for (unsigned i = 0; i < in.cnt; i++)
		is_small &= in.widths[i] <= IR_W8;
	/* Of two letters every pair, but not for every number. */
	try_values(&in, &root, result, name, is_small && (in.cnt < 2 || is_thorough));
	return true;
}

static unsigned numbers_in(const char *pattern)
{
	unsigned cnt = 0;
	for (char c = 'A'; c <= 'Z'; c++)
		cnt += strchr(pattern, c) != NULL;
	return cnt;
}

static unsigned long try_rule(unsigned rule)
{
	const char *pattern, *result;
	const char *name = dec_rule_text(rule, &pattern, &result);
	unsigned numbers = numbers_in(pattern);
	unsigned long applied = 0;
	for (unsigned w = 0; w < WIDTHS * WIDTHS * WIDTHS; w++) {
		struct dec_rule_sample s = {.choice = {widths[w % WIDTHS], widths[w / WIDTHS % WIDTHS], widths[w / WIDTHS / WIDTHS], IR_W8}};
		bool is_small = s.choice[0] <= IR_W8;
		unsigned cnt = !numbers ? 6 : !is_small ? 40 : numbers == 1 ? 256 : 300;
		for (unsigned k = 0; k < cnt; k++) {
			static const uint8_t some[] = {0, 1, 4, 7, 8, 15, 16, 24, 31, 32, 48, 56, 63, 64};
			static const uint64_t masks[] = {0x7f, 0x0f, 0xf0, 1, 0x80, 0x7fffffff};
			in.masks = k & 1 ? 0 : (unsigned)(next() & 3);
			in.mask = masks[k % 6];
			for (unsigned i = 0; i < 26; i++)
				s.number[i] = numbers == 1 && is_small ? k : k % 3 == 0 ? biased() : k % 3 == 1 ? next() % 129 : some[next() % 14];
			/* Pairs that conditions want: sums, complements, equal ones. */
			if (numbers == 2 && k % 5 == 0)
				s.number[3] = k % 10 ? ir_bits(s.choice[0]) - s.number[2] : 0 - s.number[2];
			applied += try_one(rule, &s, name, k < 12);
			/* How many widths it leaves free is known by now. */
			if (s.choice_cnt < 3 && w >= WIDTHS * WIDTHS)
				return applied;
			if (s.choice_cnt < 2 && w >= WIDTHS)
				return applied;
		}
	}
	return applied;
}

static void test_rules(void **unused)
{
	(void)unused;
	unsigned cnt = dec_rule_cnt();
	unsigned long applied = 0;
	for (unsigned l = 0; l < 26; l++)
		for (unsigned w = 0; w < IR_W_COUNT; w++)
			locs[l * IR_W_COUNT + w] = (struct ir_loc){"x", (uint8_t)(w ? w : IR_W8), IR_LOC_VAR};
	assert_true(cnt >= 80);
	for (unsigned i = 0; i < cnt; i++) {
		const char *pattern, *result;
		unsigned long n = try_rule(i);
		if (!n)
			fail_msg("%s never applies", dec_rule_text(i, &pattern, &result));
		applied += n;
	}
	print_message("%u rules hold, applied %lu times\n", cnt, applied);
	arena_fini(&in.a);
}

/* --- division by constants ------------------------------------------------------------------------------------------------------------ */
static ir_ref op2(enum ir_op op, enum ir_kind kind, enum ir_width w, ir_ref x, ir_ref y)
{
	const struct ir_rec rec = {.op = (uint8_t)op, .kind = (uint8_t)kind, .width = (uint8_t)w, .a = x, .b = y, .c = IR_REF_NONE};
	return dec_op(&in.b, &rec);
}

static ir_ref op1(enum ir_op op, enum ir_width w, ir_ref x, uint32_t aux)
{
	const struct ir_rec rec = {.op = (uint8_t)op, .width = (uint8_t)w, .a = x, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = aux};
	return dec_op(&in.b, &rec);
}

static uint64_t value_at(ir_ref r, uint64_t n, enum ir_width w)
{
	values[0] = (struct ir_val){{n & dec_mask(w)}};
	for (uint32_t i = 0; i < in.f->rec_cnt; i++)
		assert_true(eval(in.f, &in.f->recs[i], &vals[i]));
	return value_of(in.f, r).w[0];
}

static bool has_division(void)
{
	bool has = false;
	for (uint32_t i = 0; i < in.f->rec_cnt; i++)
		has |= in.f->recs[i].op == IR_DIV;
	return has;
}

static ir_ref letter(enum ir_width w)
{
	begin(&in);
	in.masks = 0;
	return make(&in, 0, w);
}

static ir_ref number(enum ir_width w, uint64_t v)
{
	return ir_const(in.f, w, v);
}

/* (n * M) >> p for every n of 8 bits and every M and p near by: whatever is made of it is that. */
static void test_division_of_8_bits(void **unused)
{
	unsigned made = 0, bad = 0;
	(void)unused;
	for (uint64_t m = 3; m < 700; m++) {
		for (unsigned p = 8; p < 18; p++) {
			ir_ref n = letter(IR_W8);
			ir_ref wide = op2(IR_MUL, 0, IR_W64, op1(IR_ZEXT, IR_W64, n, 0), number(IR_W64, m));
			ir_ref u = op2(IR_LSHR, 0, IR_W64, wide, number(IR_W8, p));
			made += has_division();
			for (unsigned v = 0; has_division() && v < 256; v++)
				bad += value_at(u, v, IR_W8) != v * m >> p;
			n = letter(IR_W8);
			wide = op2(IR_MUL, 0, IR_W64, op1(IR_SEXT, IR_W64, n, 0), number(IR_W64, m));
			ir_ref s = op2(IR_ASHR, 0, IR_W64, wide, number(IR_W8, p));
			ir_ref q = op2(IR_SUB, 0, IR_W8, op1(IR_EXTRACT, IR_W8, s, 0), op2(IR_ASHR, 0, IR_W8, n, number(IR_W8, 7)));
			made += has_division();
			for (int v = -128; has_division() && v < 128; v++)
				bad += value_at(q, (uint64_t)v, IR_W8) != (uint8_t)((v * (int)m >> p) + (v < 0));
		}
	}
	print_message("%u divisions of 8 bits\n", made);
	assert_int_equal(bad, 0);
	assert_true(made > 500);
}

/* What compilers make of n / d (Warren, "Hacker's Delight", 10): each is found again, and right at its borders. */
static void check_quotient(ir_ref q, uint64_t d, enum ir_width w, bool is_signed)
{
	unsigned found = 0;
	for (uint32_t i = 0; i < in.f->rec_cnt; i++)
		found += in.f->recs[i].op == IR_DIV && in.f->recs[i].b == number(w, d);
	if (!found)
		fail_msg("%s division by %llu at %u bits is not found", is_signed ? "signed" : "unsigned", (unsigned long long)d, ir_bits(w));
	for (unsigned i = 0; i < 60; i++) {
		uint64_t n = i < 40 ? (next() % 1000) * d + next() % 3 - 1 : biased();
		n &= dec_mask(w);
		uint64_t want = n / d;
		if (is_signed)
			want = (uint64_t)(w == IR_W32 ? (int32_t)n / (int32_t)d : (int64_t)n / (int64_t)d) & dec_mask(w);
		assert_int_equal(value_at(q, n, w), want);
	}
}

static void test_division_by_constants(void **unused)
{
	(void)unused;
	for (uint64_t d = 3; d < 2000; d += d < 130 ? 1 : 37) {
		unsigned l = 64 - (unsigned)__builtin_clzll(d - 1);
		if (!(d & (d - 1)))
			continue;
		/* Unsigned, 32 bits: M of 33 bits, or of 32 when that is enough. */
		uint64_t m = (((uint64_t)1 << (32 + l)) + d - 1) / d;
		ir_ref n = letter(IR_W32), wide = op1(IR_ZEXT, IR_W64, n, 0), q;
		if (m >> 32) {
			ir_ref t = op1(IR_EXTRACT, IR_W32, op2(IR_MUL, 0, IR_W64, wide, number(IR_W64, m & 0xffffffff)), 32);
			ir_ref half = op2(IR_LSHR, 0, IR_W32, op2(IR_SUB, 0, IR_W32, n, t), number(IR_W8, 1));
			q = op2(IR_LSHR, 0, IR_W32, op2(IR_ADD, 0, IR_W32, half, t), number(IR_W8, l - 1));
		} else {
			wide = op2(IR_MUL, 0, IR_W64, wide, number(IR_W64, m));
			q = op1(IR_EXTRACT, IR_W32, op2(IR_LSHR, 0, IR_W64, wide, number(IR_W8, 32 + l)), 0);
		}
		check_quotient(q, d, IR_W32, false);
		/* Signed, 32 bits. */
		m = (((uint64_t)1 << (31 + l)) + d - 1) / d;
		n = letter(IR_W32);
		wide = op1(IR_SEXT, IR_W64, n, 0);
		ir_ref t = op1(IR_EXTRACT, IR_W32, op2(IR_MUL, 0, IR_W64, wide, number(IR_W64, (uint64_t)(int64_t)(int32_t)m)), 32);
		if (m >> 31)
			t = op2(IR_ADD, 0, IR_W32, t, n);
		t = op2(IR_ASHR, 0, IR_W32, t, number(IR_W8, l - 1));
		q = op2(IR_SUB, 0, IR_W32, t, op2(IR_ASHR, 0, IR_W32, n, number(IR_W8, 31)));
		check_quotient(q, d, IR_W32, true);
		/* Unsigned and signed, 64 bits. */
		unsigned __int128 big = (((unsigned __int128)1 << (64 + l)) + d - 1) / d;
		n = letter(IR_W64);
		t = op2(IR_MULH, IR_MULH_U, IR_W64, n, number(IR_W64, (uint64_t)big));
		ir_ref half = op2(IR_LSHR, 0, IR_W64, op2(IR_SUB, 0, IR_W64, n, t), number(IR_W8, 1));
		q = op2(IR_LSHR, 0, IR_W64, op2(IR_ADD, 0, IR_W64, half, t), number(IR_W8, l - 1));
		check_quotient(q, d, IR_W64, false);
		big = (((unsigned __int128)1 << (63 + l)) + d - 1) / d;
		n = letter(IR_W64);
		t = op2(IR_MULH, IR_MULH_S, IR_W64, n, number(IR_W64, (uint64_t)big));
		if (big >> 63)
			t = op2(IR_ADD, 0, IR_W64, t, n);
		t = op2(IR_ASHR, 0, IR_W64, t, number(IR_W8, l - 1));
		q = op2(IR_SUB, 0, IR_W64, t, op2(IR_ASHR, 0, IR_W64, n, number(IR_W8, 63)));
		check_quotient(q, d, IR_W64, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_division_of_8_bits), cmocka_unit_test(test_division_by_constants),
					   cmocka_unit_test(test_rules)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
