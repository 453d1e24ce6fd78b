/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "lib/graphs.h"
#include "structure/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 200

/*
 * Input: two bytes of options, then six bytes a block: how it ends and what it weighs, where it leads (two times two bytes, modulo one more
 * than there are blocks: that one is not there), how many of the following blocks a switch leads to. The tree of a good graph passes the
 * check and executes as the graph is walked.
 */
static void make(struct graph *g, const uint8_t *p, uint32_t cnt)
{
	for (uint32_t b = 0; b < cnt; b++)
		graph_add(g, p[6 * b] >> 4 & 3);
	for (uint32_t b = 0; b < cnt; b++, p += 6) {
		uint32_t x = (uint32_t)(p[1] | p[2] << 8) % (cnt + 1), y = (uint32_t)(p[3] | p[4] << 8) % (cnt + 1);
		g->blocks[b].is_expr = p[0] & 0x40;
		g->blocks[b].is_step = (p[0] & 0xc0) == 0xc0;
		switch (p[0] & 3) {
		case STR_END_GOTO:
			graph_goto(g, b, x);
			break;
		case STR_END_COND:
			graph_cond(g, b, x, y);
			break;
		case STR_END_SWITCH:
			graph_switch(g, b, x);
			for (uint32_t i = 0; i < p[5] % 16u; i++)
				graph_case(g, b, 5 * i, 5 * i + 1, (y + i * (1 + p[5] / 16)) % (cnt + 1));
			break;
		default:
			break;
		}
	}
}

static void fail(const char *what)
{
	fprintf(stderr, "fuzz_structure: %s\n", what);
	abort();
}

static void compare(const struct str_graph *g, const struct str_tree *t, struct arena *a)
{
	uint32_t walked[STEPS], ran[STEPS], *parents = ARENA_ARRAY(a, uint32_t, t->node_cnt);
	for (uint64_t seed = 0; seed < 3 && parents; seed++) {
		struct graph_trace want = {.blocks = walked, .max = STEPS}, have = {.blocks = ran, .max = STEPS};
		graph_walk(g, seed, &want);
		if (!graph_run(g, t, seed, parents, &have))
			fail("the tree makes no sense");
		if (have.cnt != want.cnt || have.has_left != want.has_left || memcmp(walked, ran, want.cnt * sizeof(*ran)) != 0)
			fail("the tree does something else");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len < 2 || len > 6000)
		return 0;
	struct graph g = {0};
	struct arena a = {0};
	struct str_tree t;
	const struct str_opts o = {.is_plain = bytes[0] & 1, .copy_cost_max = bytes[0] >> 4, .depth_max = bytes[1] % 32u};
	make(&g, bytes + 2, (uint32_t)((len - 2) / 6));
	struct str_graph sg = graph_get(&g);
	struct err *e = str_build(&a, &sg, &o, &t);
	if (e) {
		fuzz_rejected++;
		err_free(e);
	} else {
		fuzz_accepted++;
		e = str_check(&a, &sg, &t);
		if (e)
			fail(e->text);
		compare(&sg, &t, &a);
	}
	arena_fini(&a);
	graph_fini(&g);
	return 0;
}
