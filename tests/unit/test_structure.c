/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/graphs.h"
#include "structure/structure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 300

/* Builds the tree of a graph, has it checked and executed beside the graph. */
static void check_graph(const struct str_graph *g, const struct str_opts *o, uint64_t seed, struct str_tree *ret)
{
	struct arena a = {0};
	struct str_tree t;
	uint32_t walked[STEPS], ran[STEPS];
	struct err *e = str_build(&a, g, o, &t);
	assert_null(e);
	e = str_check(&a, g, &t);
	if (e)
		fail_msg("%s", e->text);
	uint32_t *parents = ARENA_ARRAY(&a, uint32_t, t.node_cnt);
	assert_non_null(parents);
	for (unsigned i = 0; i < 4; i++) {
		struct graph_trace want = {.blocks = walked, .max = STEPS}, have = {.blocks = ran, .max = STEPS};
		graph_walk(g, seed + i, &want);
		assert_true(graph_run(g, &t, seed + i, parents, &have));
		assert_int_equal(have.cnt, want.cnt);
		assert_int_equal(have.has_left, want.has_left);
		assert_memory_equal(walked, ran, want.cnt * sizeof(*ran));
	}
	*ret = t;
	arena_fini(&a);
}

static const struct str_opts all = {.copy_cost_max = 6}, plain = {.is_plain = true}, flat = {.copy_cost_max = 3, .depth_max = 3};

static void test_random(void **state)
{
	(void)state;
	struct graph_rand r = {1};
	struct str_tree t;
	for (unsigned i = 0; i < 6000; i++) {
		struct graph g = {0};
		graph_random(&g, &r, 1 + graph_rand(&r, i % 8 ? 12 : 60), i % 3 ? graph_rand(&r, 8) + 1 : 0);
		struct str_graph sg = graph_get(&g);
		check_graph(&sg, &all, i, &t);
		check_graph(&sg, &plain, i, &t);
		check_graph(&sg, &flat, i, &t);
		graph_fini(&g);
	}
}

static void test_programs(void **state)
{
	(void)state;
	struct graph_rand r = {2};
	struct str_tree t;
	unsigned with = 0, gotos = 0;
	for (unsigned i = 0; i < 3000; i++) {
		struct graph g = {0};
		graph_program(&g, &r, 1 + i % 5);
		struct str_graph sg = graph_get(&g);
		check_graph(&sg, &flat, i, &t);
		check_graph(&sg, &all, i, &t);
		with += t.goto_cnt != 0;
		gotos += t.goto_cnt;
		graph_fini(&g);
	}
	/* A break of the loop in a switch, and what one case of a switch and one that breaks share, have no other form. */
	assert_true(with <= 300 && gotos <= 2 * with + 200);
}

/* Shapes that make what is not linear slow, of as many blocks as a function may have. */
static void test_large(void **state)
{
	(void)state;
	enum { CNT = 20000 };
	struct graph_rand r = {3};
	struct str_tree t;
	for (unsigned shape = 0; shape < 8; shape++) {
		struct graph g = {0};
		for (uint32_t b = 0; b < CNT; b++)
			graph_add(&g, 1);
		for (uint32_t b = 0; b + 1 < CNT; b++) {
			switch (shape) {
			case 0: /* one chain */
				graph_goto(&g, b, b + 1);
				break;
			case 1: /* every condition may fail */
				graph_cond(&g, b, CNT - 1, b + 1);
				break;
			case 2: /* ... and each has something to do first */
				if (b % 2)
					graph_goto(&g, b, CNT - 1);
				else
					graph_cond(&g, b, b + 1, b + 2 < CNT ? b + 2 : CNT - 1);
				break;
			case 3: /* loops in loops */
				if (b < CNT / 2)
					graph_goto(&g, b, b + 1);
				else
					graph_cond(&g, b, CNT - 1 - b, b + 1);
				break;
			case 4: /* ifs in ifs, all with an end of their own */
				if (b < CNT / 2)
					graph_cond(&g, b, b + 1, CNT - 1 - b);
				else
					graph_goto(&g, b, b + 1);
				break;
			case 5: /* two ways down that cross at every step */
				graph_cond(&g, b, b + 1, b + 2 < CNT ? b + 2 : CNT - 1);
				break;
			case 6: /* backwards */
				graph_cond(&g, b, b ? b - 1 : 0, b + 1);
				break;
			default:
				graph_cond(&g, b, graph_rand(&r, CNT), graph_rand(&r, CNT));
			}
		}
		struct str_graph sg = graph_get(&g);
		check_graph(&sg, &all, shape, &t);
		assert_true(t.depth <= 24);
		check_graph(&sg, &plain, shape, &t);
		assert_true(t.depth <= 24);
		graph_fini(&g);
	}
	/* One switch to everything, and a ring of switches. */
	struct graph g = {0};
	for (uint32_t b = 0; b < CNT; b++)
		graph_add(&g, 1);
	graph_switch(&g, 0, 1);
	for (uint32_t b = 1; b < CNT; b++) {
		graph_case(&g, 0, b, b, b);
		graph_cond(&g, b, (b + 1) % CNT, 0);
	}
	struct str_graph sg = graph_get(&g);
	check_graph(&sg, &all, 1, &t);
	graph_fini(&g);
}

/* A tree that says something else is told from one that does not. */
static void test_check(void **state)
{
	(void)state;
	struct graph_rand r = {4};
	unsigned tried = 0;
	for (unsigned i = 0; i < 2000; i++) {
		struct arena a = {0};
		struct graph g = {0};
		struct str_tree t;
		graph_program(&g, &r, 2);
		struct str_graph sg = graph_get(&g);
		assert_null(str_build(&a, &sg, &all, &t));
		struct str_node *nodes = (struct str_node *)t.nodes;
		struct str_cond *conds = (struct str_cond *)t.conds;
		uint32_t n = graph_rand(&r, t.node_cnt), what = graph_rand(&r, 4);
		bool is_wrong = true;
		if (what == 0 && nodes[n].kind == STR_IF)
			conds[nodes[n].cond].is_not ^= conds[nodes[n].cond].op == STR_COND_BLOCK;
		else if (what == 1 && nodes[n].kind == STR_BREAK)
			nodes[n].kind = STR_CONTINUE;
		else if (what == 2 && nodes[n].kind == STR_BLOCK && nodes[n].next != STR_NONE && nodes[nodes[n].next].kind == STR_BLOCK)
			nodes[n].next = nodes[nodes[n].next].next;
		else if (what == 3 && nodes[n].kind == STR_LEAVE)
			nodes[n].kind = STR_LABEL;
		else
			is_wrong = false;
		if (what == 0 && is_wrong)
			is_wrong = conds[nodes[n].cond].op == STR_COND_BLOCK;
		struct err *e = str_check(&a, &sg, &t);
		assert_int_equal(e != NULL, is_wrong);
		tried += is_wrong;
		err_free(e);
		graph_fini(&g);
		arena_fini(&a);
	}
	assert_true(tried > 100);
}

/* if (x) { a; if (y) goto j; } d; j:  with a little before the join, and with much. */
static void test_before_join(void **state)
{
	(void)state;
	for (uint32_t cost = 2; cost < 200; cost += 100) {
		struct graph g = {0};
		struct str_tree t;
		graph_add(&g, 0);
		graph_add(&g, 9);
		graph_add(&g, cost);
		graph_add(&g, 50);
		graph_cond(&g, 0, 1, 2);
		graph_cond(&g, 1, 3, 2);
		graph_goto(&g, 2, 3);
		struct str_graph sg = graph_get(&g);
		check_graph(&sg, &all, 1, &t);
		assert_int_equal(t.goto_cnt, cost > 100);
		assert_int_equal(t.copy_cnt, cost < 100);
		graph_fini(&g);
	}
}

/* case 1: if (x) a; else d: b; e;  with case 2 going to d: a jump into the other arm, none over it. */
static void test_other_arm(void **state)
{
	(void)state;
	struct graph g = {0};
	struct str_tree t;
	for (unsigned i = 0; i < 8; i++)
		graph_add(&g, 50);
	graph_switch(&g, 0, 7);
	graph_case(&g, 0, 1, 1, 2);
	graph_case(&g, 0, 2, 2, 1);
	graph_goto(&g, 1, 4);
	graph_cond(&g, 2, 3, 4);
	graph_goto(&g, 3, 5);
	graph_goto(&g, 4, 5);
	graph_goto(&g, 5, 6);
	graph_goto(&g, 6, 7);
	struct str_graph sg = graph_get(&g);
	check_graph(&sg, &all, 1, &t);
	assert_int_equal(t.goto_cnt, 1);
	assert_int_equal(t.copy_cnt, 0);
	graph_fini(&g);
}

/* A case that goes on as an earlier one does stands before that. */
static void test_fall_through(void **state)
{
	(void)state;
	struct graph g = {0};
	struct str_tree t;
	for (unsigned i = 0; i < 6; i++)
		graph_add(&g, 9);
	graph_switch(&g, 0, 5);
	graph_case(&g, 0, 1, 3, 1);
	graph_case(&g, 0, 7, 7, 2);
	graph_case(&g, 0, 9, 9, 3);
	graph_goto(&g, 1, 5);
	graph_cond(&g, 2, 4, 1);
	graph_goto(&g, 3, 5);
	graph_goto(&g, 4, 1);
	struct str_graph sg = graph_get(&g);
	check_graph(&sg, &all, 1, &t);
	assert_int_equal(t.goto_cnt, 0);
	graph_fini(&g);
}

static void test_bad_graph(void **state)
{
	(void)state;
	struct arena a = {0};
	struct str_tree t;
	struct str_block blocks[2] = {{.end = STR_END_GOTO, .to = {2}}, {.end = STR_END_LEAVE}};
	struct str_case one = {1, 1, 7};
	struct str_graph g = {blocks, &one, 2, 1};
	const struct str_graph none = {0};
	struct err *e = str_build(&a, &g, &all, &t);
	assert_non_null(e);
	err_free(e);
	blocks[0] = (struct str_block){.end = STR_END_SWITCH, .to = {0, 1}, .case_cnt = 1};
	e = str_build(&a, &g, &all, &t);
	assert_non_null(e);
	err_free(e);
	one.to = 1;
	assert_null(str_build(&a, &g, &all, &t));
	blocks[0].first_case = UINT32_MAX;
	e = str_build(&a, &g, &all, &t);
	assert_non_null(e);
	err_free(e);
	e = str_build(&a, &none, &all, &t);
	assert_non_null(e);
	err_free(e);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_before_join),
		cmocka_unit_test(test_other_arm),
		cmocka_unit_test(test_fall_through),
		cmocka_unit_test(test_bad_graph),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
