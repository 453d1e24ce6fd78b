/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes a switch and what does not, in IR written here; whatever becomes of it, the interpreter sees it lead where the lifted form does.
 */
#include "decomp/dec_judge.h"
#include "lift/lift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TABLE_VA 0x4000
#define SEEDS 400

/* Of a table of jumps: distances from the table. */
static const int32_t table[] = {0x1100 - TABLE_VA, 0x1200 - TABLE_VA, 0x1100 - TABLE_VA, 0x1300 - TABLE_VA, 0x1200 - TABLE_VA, 0x1234 - TABLE_VA};

struct seen {
	struct ir_func *lifted;
	struct dec_opts opts;
	unsigned switch_cnt;  /* on numbers */
	unsigned address_cnt; /* on addresses */
	char text[512];       /* cases by what they store: "1,2:10 7:20 else:30" */
};

static bool rodata(void *ctx, uint64_t va, void *out, size_t len)
{
	(void)ctx;
	if (va < TABLE_VA || va + len > TABLE_VA + sizeof(table))
		return false;
	memcpy(out, (const char *)table + (va - TABLE_VA), len);
	return true;
}

/* The number that ends up in rax when control comes to a block. */
static unsigned leads_to(const struct ir_func *f, uint32_t b)
{
	for (unsigned depth = 0; depth < 4; depth++) {
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
			const struct ir_rec *rec = &f->recs[f->order[i]];
			uint64_t v;
			if (rec->op == IR_STORE && ir_const_get(f, rec->b, &v))
				return (unsigned)v;
		}
		const struct ir_rec *end = ir_terminator(f, b);
		if (end->op != IR_JMP)
			break;
		b = ir_index(end->a);
	}
	return 0;
}

static bool look(void *ctx, unsigned pass, struct ir_func *f)
{
	struct seen *s = ctx;
	char why[160];
	struct err *e = ir_check(f);
	if (e)
		fail_msg("%s: %s", dec_pass_name((enum dec_pass)pass), e->text);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		if (dec_judge(s->lifted, f, &s->opts, seed, why, sizeof(why)) == DEC_V_DIFFERS)
			fail_msg("%s: seed %llu: %s", dec_pass_name((enum dec_pass)pass), (unsigned long long)seed, why);
	if (pass != DEC_P_DEAD)
		return true;
	size_t at = 0;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_rec *end = ir_terminator(f, b);
		if (end->op != IR_SWITCH)
			continue;
		s->switch_cnt += end->flags & IR_F_COMPUTED ? 1 : 0;
		s->address_cnt += end->flags & IR_F_COMPUTED ? 0 : 1;
		for (uint32_t i = 0; i < end->c && at < sizeof(s->text) - 32; i += 2) {
			uint64_t v;
			assert_true(ir_const_get(f, f->lists[end->b + i], &v));
			at += (size_t)snprintf(s->text + at, sizeof(s->text) - at, "%llx:%x ", (unsigned long long)v,
					       leads_to(f, ir_index(f->lists[end->b + i + 1])));
		}
		snprintf(s->text + at, sizeof(s->text) - at, "else:%x", leads_to(f, end->aux));
	}
	return true;
}

/* Blocks 50 and up store their number and return. */
static void run(const char *body, struct seen *s)
{
	struct arena a = {0};
	struct dec_func made;
	const struct ir_machine *m = lift_machine(ARCH_ID_X86_64);
	*s = (struct seen){.opts = {.rodata = rodata}};
	s->opts.after = look;
	s->opts.ctx = s;
	struct err *e = ir_parse(&a, body, strlen(body), &m, 1, &s->lifted);
	if (e)
		fail_msg("%s", e->text);
	e = ir_check(s->lifted);
	if (e)
		fail_msg("%s", e->text);
	e = dec_run(s->lifted, &s->opts, &made);
	if (e)
		fail_msg("%s", e->text);
	arena_fini(&a);
}

/* Block b stores a number and returns; asks whether edi is a number, or less than one; looks into a table. */
#define LEAVES(b, n) "block " #b " 0x1" #n "\nstore 0x5000:64 0x" #n ":32\nret #0\n"
#define EDI(b) "block " #b " 0x2" #b "0\n%" #b "0:64 = get rdi\n%" #b "1:32 = extract #0 %" #b "0\n"
#define ASKS(b, cc, x, y, yes, no) EDI(b) "%" #b "2:1 = cmp." #cc " " x " " y "\nbr %" #b "2 b" #yes " b" #no "\n"
#define IS(b, n, yes, no) ASKS(b, eq, "%" #b "1", #n ":32", yes, no)
#define MORE(b, n, yes, no) ASKS(b, slt, #n ":32", "%" #b "1", yes, no)
#define ABOVE(b, n, yes, no) ASKS(b, ult, #n ":32", "%" #b "1", yes, no)
#define JUMPS(b, n) "%" #b "3:64 = zext " n "\n%" #b "4:64 = shl %" #b "3 0x2:64\n%" #b "5:64 = gaddr 0x4000:64\n%" #b "6:64 = add %" #b \
	"5 %" #b "4\n%" #b "7:32 = load %" #b "6\n%" #b "8:64 = sext %" #b "7\n%" #b "9:64 = add %" #b "5 %" #b "8\n"
#define BIT(b, mask, yes, no) EDI(b) "%" #b "2:64 = and %" #b "0 0x3f:64\n%" #b "3:64 = lshr " #mask ":64 %" #b "2\n%" #b "4:1 = extract #0 %" #b \
	"3\nbr %" #b "4 b" #yes " b" #no "\n"
#define STOP(b) "block " #b " 0x1900\ntrap.ud\n"
#define FUNC "func x86-64 0x1000\n"

static void is(const char *body, const char *cases)
{
	struct seen s;
	run(body, &s);
	assert_int_equal(s.address_cnt, 0);
	assert_int_equal(s.switch_cnt, *cases ? 1 : 0);
	assert_string_equal(s.text, cases);
}

static void test_table(void **state)
{
	(void)state;
	struct seen s;
	/* switch (x - 2), of five, with what asks before. */
	is(FUNC EDI(0) "%2:32 = add %1 0xfffffffe:32\n%3:1 = cmp.ult 0x4:32 %2\nbr %3 b4 b1\n"
	   EDI(1) "%12:32 = add %11 0xfffffffe:32\n" JUMPS(1, "%12") "switch b5 %19 ( 0x1100:64 b2 0x1200:64 b3 0x1300:64 b4 )\n"
	   LEAVES(2, 100) LEAVES(3, 200) LEAVES(4, 300) STOP(5), "2:100 3:200 4:100 6:200 else:300");
	/* What happens between is not done before. */
	is(FUNC ABOVE(0, 0x3, 4, 1) EDI(1) "store 0x6000:64 0x7:32\n" JUMPS(1, "%11") "switch b5 %19 ( 0x1100:64 b2 0x1200:64 b3 0x1300:64 b4 )\n"
	   LEAVES(2, 100) LEAVES(3, 200) LEAVES(4, 300) STOP(5), "0:100 1:200 2:100 3:300 else:0");
	/* The mask bounds it. */
	is(FUNC EDI(0) "%2:32 = and %1 0x3:32\n" JUMPS(0, "%2") "switch b4 %09 ( 0x1100:64 b1 0x1200:64 b2 0x1300:64 b3 )\n"
	   LEAVES(1, 100) LEAVES(2, 200) LEAVES(3, 300) STOP(4), "0:100 1:200 2:100 3:300 else:0");
	/* Nothing does: up to the entry that is none. */
	is(FUNC EDI(0) JUMPS(0, "%1") "switch b4 %09 ( 0x1100:64 b1 0x1200:64 b2 0x1300:64 b3 )\n"
	   LEAVES(1, 100) LEAVES(2, 200) LEAVES(3, 300) STOP(4), "0:100 1:200 2:100 3:300 4:200 else:0");
	/* An entry that leads elsewhere: not what is known of the jump. */
	run(FUNC ABOVE(0, 0x5, 4, 1) EDI(1) JUMPS(1, "%11") "switch b5 %19 ( 0x1100:64 b2 0x1200:64 b3 0x1300:64 b4 )\n"
	    LEAVES(2, 100) LEAVES(3, 200) LEAVES(4, 300) STOP(5), &s);
	assert_int_equal(s.switch_cnt, 0);
	assert_int_equal(s.address_cnt, 1);
}

static void test_tree(void **state)
{
	(void)state;
	/* 20? more than 20? 5? 30? */
	is(FUNC IS(0, 0x14, 5, 1) MORE(1, 0x14, 2, 3) IS(2, 0x1e, 6, 4) IS(3, 0x5, 6, 4)
	   LEAVES(4, 100) LEAVES(5, 200) LEAVES(6, 300), "5:300 14:200 1e:300 else:100");
	/* One after the other, with four numbers or four outcomes. */
	is(FUNC IS(0, 0x7, 4, 1) IS(1, 0xfffffffe, 5, 2) IS(2, 0x9, 4, 3) IS(3, 0x2, 5, 6) LEAVES(4, 100) LEAVES(5, 200) LEAVES(6, 300),
	   "2:200 7:100 9:100 fffffffe:200 else:300");
	is(FUNC IS(0, 0x7, 4, 1) IS(1, 0xa, 5, 2) IS(2, 0x9, 6, 3) "block 3 0x1030\njmp b7\n"
	   LEAVES(4, 100) LEAVES(5, 200) LEAVES(6, 300) LEAVES(7, 400),
	   "7:100 9:300 a:200 else:400");
	is(FUNC IS(0, 0x7, 4, 1) IS(1, 0xfffffffe, 5, 2) IS(2, 0x9, 4, 3) "block 3 0x1030\njmp b6\n"
	   LEAVES(4, 100) LEAVES(5, 200) LEAVES(6, 300), "");
	/* Two are an if with an else. */
	is(FUNC IS(0, 0x7, 2, 1) IS(1, 0x9, 3, 4) LEAVES(2, 100) LEAVES(3, 200) LEAVES(4, 300), "");
	/* Of several with one outcome: a condition of ||. */
	is(FUNC IS(0, 0x7, 3, 1) IS(1, 0x9, 3, 2) IS(2, 0xb, 3, 4) LEAVES(3, 100) LEAVES(4, 200), "");
	/* if (x == 1 && y) ... else if (x == 2) ...: who comes out of the first goes on asking. */
	is(FUNC IS(0, 0x7, 1, 2) "block 1 0x1010\n%15:64 = get rsi\n%16:1 = cmp.eq %15 0x0:64\nbr %16 b2 b4\n" IS(2, 0x9, 5, 3) IS(3, 0xb, 5, 6)
	   LEAVES(4, 100) LEAVES(5, 200) LEAVES(6, 300), "");
}

static void test_mask(void **state)
{
	(void)state;
	is(FUNC ABOVE(0, 0x9, 4, 1) BIT(1, 0x212, 3, 2) BIT(2, 0x48, 5, 4) LEAVES(3, 100) LEAVES(4, 200) LEAVES(5, 300),
	   "1:100 3:300 4:100 6:300 9:100 else:200");
	/* A bit of something is no list of cases. */
	is(FUNC ABOVE(0, 0x9, 2, 1) EDI(1) "%12:32 = and %11 0x4:32\n%13:1 = cmp.eq %12 0x0:32\nbr %13 b3 b4\n"
	   LEAVES(2, 100) LEAVES(3, 200) LEAVES(4, 300), "");
}

/* Values that meet behind a switch, by way. */
static void test_joins(void **state)
{
	(void)state;
	is(FUNC IS(0, 0x1, 4, 1) IS(1, 0x2, 5, 2) IS(2, 0x3, 6, 3)
	   "block 3 0x1030\nput rsi 0x1:64\njmp b7\n" "block 4 0x1040\nput rsi 0x2:64\njmp b7\n"
	   "block 5 0x1050\nput rsi 0x3:64\njmp b7\n" "block 6 0x1060\nput rsi 0x4:64\njmp b7\n"
	   "block 7 0x1070\n%70:64 = get rsi\nstore 0x5008:64 %70\nstore 0x5000:64 0x9:32\nret #0\n", "1:9 2:9 3:9 else:9");
}

/* What a loop goes on by is none of its cases, where there are enough without it. */
static void test_loop(void **state)
{
	(void)state;
	is(FUNC "block 0 0x1000\njmp b1\n" IS(1, 0x7, 5, 2) IS(2, 0x9, 3, 6)
	   "block 3 0x1030\nstore 0x5000:64 0x1:32\nput rdi 0x7:64\njmp b1\n"
	   "block 4 0x1040\nstore 0x5000:64 0x2:32\nput rdi 0x7:64\njmp b1\n" LEAVES(5, 100)
	   IS(6, 0xb, 4, 7) IS(7, 0xd, 8, 9) "block 8 0x1080\nstore 0x5000:64 0x3:32\nput rdi 0x7:64\njmp b1\n"
	   "block 9 0x1090\nstore 0x5000:64 0x4:32\nput rdi 0x7:64\njmp b1\n", "9:1 b:2 d:3 else:4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table), cmocka_unit_test(test_tree), cmocka_unit_test(test_mask), cmocka_unit_test(test_joins),
		cmocka_unit_test(test_loop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
