/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/* Reverse post-order by a stack of our own: depth is the input's. */
static bool make_rpo(struct ir_func *f, struct arena *a, struct dec_graph *g)
{
	uint32_t n = f->block_cnt, depth = 0, at = n;
	uint32_t *order = ARENA_RAW_ARRAY(a, uint32_t, n + (size_t)1);
	uint32_t *stack = ARENA_RAW_ARRAY(a, uint32_t, n + (size_t)1);
	uint32_t *next = ARENA_RAW_ARRAY(a, uint32_t, n + (size_t)1);
	g->rpo_at = ARENA_RAW_ARRAY(a, uint32_t, n + (size_t)1);
	if (!order || !stack || !next || !g->rpo_at)
		return false;
	memset(g->rpo_at, 0xff, n * sizeof(*g->rpo_at));
	stack[depth++] = 0;
	next[0] = g->succs.first[0];
	g->rpo_at[0] = 0;
	while (depth) {
		uint32_t b = stack[depth - 1];
		if (next[b] == g->succs.first[b + 1]) {
			order[--at] = b;
			depth--;
			continue;
		}
		uint32_t to = g->succs.list[next[b]++];
		if (g->rpo_at[to] == UINT32_MAX) {
			g->rpo_at[to] = 0;
			next[to] = g->succs.first[to];
			stack[depth++] = to;
		}
	}
	g->rpo = order + at;
	g->rpo_cnt = n - at;
	for (uint32_t i = 0; i < g->rpo_cnt; i++)
		g->rpo_at[g->rpo[i]] = i;
	for (uint32_t i = 0; i < g->rpo_cnt && !g->has_loop; i++)
		for (uint32_t k = g->succs.first[g->rpo[i]]; k < g->succs.first[g->rpo[i] + 1]; k++)
			g->has_loop |= g->rpo_at[g->succs.list[k]] <= i;
	return true;
}

static uint32_t meet(const struct dec_graph *g, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (g->rpo_at[a] > g->rpo_at[b])
			a = g->idom[a];
		while (g->rpo_at[b] > g->rpo_at[a])
			b = g->idom[b];
	}
	return a;
}

/* Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm". */
static bool make_idom(struct ir_func *f, struct arena *a, struct dec_graph *g)
{
	g->idom = ARENA_RAW_ARRAY(a, uint32_t, f->block_cnt + (size_t)1);
	if (!g->idom)
		return false;
	memset(g->idom, 0xff, f->block_cnt * sizeof(*g->idom));
	g->idom[0] = 0;
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = 1; i < g->rpo_cnt; i++) {
			uint32_t b = g->rpo[i], best = UINT32_MAX;
			for (uint32_t k = g->preds.first[b]; k < g->preds.first[b + 1]; k++) {
				uint32_t p = g->preds.list[k];
				if (g->rpo_at[p] != UINT32_MAX && g->idom[p] != UINT32_MAX)
					best = best == UINT32_MAX ? p : meet(g, best, p);
			}
			changed |= g->has_loop && g->idom[b] != best;
			g->idom[b] = best;
		}
	}
	return true;
}

/* Intervals: children come behind their parents in reverse post-order, so sizes add up from its end. */
static bool make_intervals(struct ir_func *f, struct arena *a, struct dec_graph *g)
{
	uint32_t *size = ARENA_ARRAY(a, uint32_t, f->block_cnt + (size_t)1);
	uint32_t *fill = ARENA_ARRAY(a, uint32_t, f->block_cnt + (size_t)1);
	g->dom_first = ARENA_ARRAY(a, uint32_t, f->block_cnt + (size_t)1);
	g->dom_last = ARENA_ARRAY(a, uint32_t, f->block_cnt + (size_t)1);
	if (!size || !fill || !g->dom_first || !g->dom_last)
		return false;
	for (uint32_t i = g->rpo_cnt; i-- > 0;) {
		uint32_t b = g->rpo[i];
		size[b]++;
		if (i)
			size[g->idom[b]] += size[b];
	}
	for (uint32_t i = 0; i < g->rpo_cnt; i++) {
		uint32_t b = g->rpo[i];
		if (i) {
			uint32_t up = g->idom[b];
			g->dom_first[b] = g->dom_first[up] + 1 + fill[up];
			fill[up] += size[b];
		}
		g->dom_last[b] = g->dom_first[b] + size[b] - 1;
	}
	return true;
}

bool dec_graph_flow(struct ir_func *f, struct arena *a, struct dec_graph *ret)
{
	*ret = (struct dec_graph){0};
	return ir_succs(f, &ret->succs) && ir_turn_edges(f, &ret->succs, &ret->preds) && make_rpo(f, a, ret);
}

bool dec_graph_make(struct ir_func *f, struct arena *a, struct dec_graph *ret)
{
	return dec_graph_flow(f, a, ret) && make_idom(f, a, ret) && make_intervals(f, a, ret);
}
