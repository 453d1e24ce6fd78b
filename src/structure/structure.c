/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/structure.h"

#include "structure/str_int.h"

#include <stdlib.h>
#include <string.h>

static int cmp_block(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	return a < b ? -1 : a > b;
}

/* The different blocks a switch leads to. */
static uint32_t add_targets(struct str_work *w, const struct str_block *k, uint32_t at)
{
	uint32_t cnt = 0, out = 0, *tgts = &w->tgts[at];
	tgts[cnt++] = w->skip[k->to[1]];
	for (uint32_t i = 0; i < k->case_cnt; i++)
		tgts[cnt++] = w->skip[w->g->cases[k->first_case + i].to];
	qsort(tgts, cnt, sizeof(*tgts), cmp_block);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!i || tgts[i] != tgts[i - 1])
			tgts[out++] = tgts[i];
	}
	return out;
}

static bool copy_graph(struct str_work *w)
{
	const struct str_graph *g = w->g;
	size_t n = g->block_cnt, total = 0;
	for (uint32_t b = 0; b < n; b++)
		total += g->blocks[b].end == STR_END_SWITCH ? (size_t)g->blocks[b].case_cnt + 1 : 0;
	w->skip = str_skip(w->a, g);
	w->end = ARENA_RAW_ARRAY(w->a, uint8_t, n + 1);
	w->to = ARENA_ARRAY(w->a, uint32_t, 2 * n + 2);
	w->cost = ARENA_ARRAY(w->a, uint32_t, n + 1);
	w->is_gone = ARENA_ARRAY(w->a, bool, n + 1);
	w->tgt_first = ARENA_RAW_ARRAY(w->a, uint32_t, n + 2);
	w->tgts = ARENA_RAW_ARRAY(w->a, uint32_t, total + n);
	if (!w->skip || !w->end || !w->to || !w->cost || !w->is_gone || !w->tgt_first || !w->tgts)
		return false;
	uint32_t at = 0;
	for (uint32_t b = 0; b < n; b++) {
		const struct str_block *k = &g->blocks[b];
		w->end[b] = k->end;
		w->cost[b] = k->cost < 1u << 16 ? k->cost : 1u << 16;
		w->tgt_first[b] = at;
		if (k->end == STR_END_GOTO || k->end == STR_END_COND)
			w->to[2 * b] = w->skip[k->to[0]];
		if (k->end == STR_END_COND || k->end == STR_END_SWITCH)
			w->to[2 * b + 1] = w->skip[k->to[1]];
		if (k->end == STR_END_COND && w->to[2 * b] == w->to[2 * b + 1])
			w->end[b] = STR_END_GOTO;
		if (k->end != STR_END_SWITCH)
			continue;
		uint32_t cnt = add_targets(w, k, at);
		if (cnt == 1) {
			w->end[b] = STR_END_GOTO;
			w->to[2 * b] = w->tgts[at];
		} else {
			at += cnt;
		}
	}
	w->end[n] = STR_END_SWITCH;
	w->tgt_first[n] = w->tgt_first[n + 1] = at;
	return true;
}

static bool build(struct arena *a, const struct str_graph *g, const struct str_opts *opts, bool sinks, struct str_tree *ret)
{
	struct str_work w = {.a = a, .g = g, .o = opts, .sinks = sinks, .n = g->block_cnt + 1};
	struct str_shape s = {.w = &w};
	*ret = (struct str_tree){.is_plain = opts->is_plain};
	/* Joining conditions takes blocks out, so that the rest is looked at anew. */
	bool ok = copy_graph(&w) && str_order(&w) && str_join_conds(&w) && str_order(&w) && str_edges(&w) && str_dominators(&w) && str_loops(&w);
	for (uint32_t i = 0; i < w.rpo_cnt && ok; i++)
		s.copy_budget += w.cost[w.rpo[i]];
	s.copy_budget = s.copy_budget / 2 + 64;
	return ok && str_place(&s) && str_tidy(&s) && str_give(&s, ret);
}

struct err *str_build(struct arena *a, const struct str_graph *g, const struct str_opts *opts, struct str_tree *ret)
{
	struct str_tree other;
	*ret = (struct str_tree){.is_plain = opts->is_plain};
	struct err *e = str_graph_check(g);
	if (e)
		return e;
	if (!build(a, g, opts, false, ret))
		return &err_nomem;
	/* Where that leaves gotos, what does with fewer is better. */
	if (!ret->goto_cnt || opts->is_plain || !opts->copy_cost_max)
		return NULL;
	if (!build(a, g, opts, true, &other))
		return &err_nomem;
	if (other.goto_cnt < ret->goto_cnt)
		*ret = other;
	return NULL;
}
