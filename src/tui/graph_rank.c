/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * Which edges go back, which layer each box is in, and what passes through layers on its way. A depth-first walk from
 * the entry finds the edges that close a cycle; without them the longest way from a root is a box's layer. Long edges
 * get one dummy for each layer they pass, shared by all edges with the same target. Where that would cost more than
 * the graph itself is worth, the longest of them run in lanes outside of everything instead.
 */
#define DUMMIES_PER_ITEM 3
#define DUMMIES_MIN 20000u

static struct err *edges_by_box(struct graph_inner *in)
{
	const struct graph *g = in->g;
	in->out_first = ARENA_ARRAY(in->a, uint32_t, (size_t)g->box_cnt + 2);
	in->out = ARENA_ARRAY(in->a, uint32_t, (size_t)g->edge_cnt + 1);
	if (!in->out_first || !in->out)
		return &err_nomem;
	uint32_t *first = in->out_first;
	for (uint32_t i = 0; i < g->edge_cnt; i++)
		first[g->edges[i].from + 2]++;
	for (uint32_t b = 0; b < g->box_cnt; b++)
		first[b + 2] += first[b + 1];
	for (uint32_t i = 0; i < g->edge_cnt; i++)
		in->out[first[g->edges[i].from + 1]++] = i;
	return NULL;
}

struct walk {
	uint8_t *state;       /* 0 not met, 1 on the way, 2 left */
	uint32_t *stack, *at; /* boxes on the way and the next of their edges */
	uint32_t *done;       /* boxes in the order they were left */
	uint32_t done_cnt, met_cnt;
};

static void walk_from(struct graph_inner *in, struct walk *w, uint32_t root)
{
	struct graph *g = in->g;
	uint32_t depth = 0;
	w->stack[0] = root;
	w->at[0] = in->out_first[root];
	w->state[root] = 1;
	in->rank[root] = w->met_cnt++;
	for (;;) {
		uint32_t box = w->stack[depth];
		if (w->at[depth] == in->out_first[box + 1]) {
			w->state[box] = 2;
			w->done[w->done_cnt++] = box;
			if (!depth)
				return;
			depth--;
			continue;
		}
		struct graph_edge *e = &g->edges[in->out[w->at[depth]++]];
		/* Nothing stands above the entry. */
		e->is_back = w->state[e->to] == 1 || e->to == g->entry;
		if (w->state[e->to])
			continue;
		depth++;
		w->stack[depth] = e->to;
		w->at[depth] = in->out_first[e->to];
		w->state[e->to] = 1;
		in->rank[e->to] = w->met_cnt++;
	}
}

static struct err *layers(struct graph_inner *in)
{
	struct graph *g = in->g;
	uint32_t n = g->box_cnt;
	struct walk w = {.state = ARENA_ARRAY(in->a, uint8_t, n), .stack = ARENA_ARRAY(in->a, uint32_t, n),
			 .at = ARENA_ARRAY(in->a, uint32_t, n), .done = ARENA_ARRAY(in->a, uint32_t, n)};
	in->rank = ARENA_ARRAY(in->a, uint32_t, n);
	uint32_t *in_cnt = ARENA_ARRAY(in->a, uint32_t, n);
	if (!w.state || !w.stack || !w.at || !w.done || !in->rank || !in_cnt)
		return &err_nomem;
	walk_from(in, &w, g->entry);
	for (uint32_t b = 0; b < n; b++) {
		if (!w.state[b])
			walk_from(in, &w, b);
	}
	/* Boxes in the reverse order of leaving: no forward edge points back in it. */
	for (uint32_t i = n; i-- > 0;) {
		uint32_t box = w.done[i];
		for (uint32_t k = in->out_first[box]; k < in->out_first[box + 1]; k++) {
			const struct graph_edge *e = &g->edges[in->out[k]];
			if (e->is_back)
				continue;
			in->nodes[e->to].layer = MAX(in->nodes[e->to].layer, in->nodes[box].layer + 1);
			in_cnt[e->to]++;
		}
	}
	/* What nothing leads to (a landing pad, code reached by a table that was not found) stands near what it leads to. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t box = w.done[i];
		uint32_t layer = GRAPH_NONE;
		for (uint32_t k = in->out_first[box]; k < in->out_first[box + 1] && !in_cnt[box] && box != g->entry; k++) {
			const struct graph_edge *e = &g->edges[in->out[k]];
			if (!e->is_back)
				layer = MIN(layer, in->nodes[e->to].layer - 1);
		}
		if (layer != GRAPH_NONE)
			in->nodes[box].layer = layer;
	}
	for (uint32_t b = 0; b < n; b++)
		in->layer_cnt = MAX(in->layer_cnt, in->nodes[b].layer + 1);
	return NULL;
}

static void nets(struct graph_inner *in)
{
	struct graph *g = in->g;
	for (uint32_t i = 0; i < 2 * g->box_cnt; i++)
		in->nets[i] = (struct graph_net){.lo = 1, .low_box = GRAPH_NONE, .src_lo = GRAPH_NONE};
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		const struct graph_edge *e = &g->edges[i];
		struct graph_net *n = &in->nets[graph_net_of(e)];
		uint32_t from = in->nodes[e->from].layer;
		uint32_t to = in->nodes[e->to].layer;
		n->is_used = true;
		n->kinds |= e->kind;
		if (e->is_back) {
			if (n->low_box == GRAPH_NONE || from > n->hi) {
				n->hi = from;
				n->low_box = e->from;
			}
			n->lo = to;
		} else if (to - from > 1) {
			n->lo = n->hi ? MIN(n->lo, from + 1) : from + 1;
			n->hi = to - 1;
		}
		if (graph_is_long(in, e)) {
			n->src_lo = MIN(n->src_lo, from + 1);
			n->src_hi = MAX(n->src_hi, from + 1);
		}
	}
}

static uint32_t dummy_cnt(const struct graph_net *n)
{
	return n->src_lo == GRAPH_NONE || n->is_lane ? 0 : n->hi - n->lo + 1;
}

static int longer_first(const void *x, const void *y, void *ctx)
{
	const struct graph_net *nets = ctx;
	uint32_t a = *(const uint32_t *)x;
	uint32_t b = *(const uint32_t *)y;
	uint32_t la = dummy_cnt(&nets[a]);
	uint32_t lb = dummy_cnt(&nets[b]);
	if (la != lb)
		return la > lb ? -1 : 1;
	return a < b ? -1 : a > b;
}

static struct err *choose_lanes(struct graph_inner *in, uint64_t *total)
{
	const struct graph *g = in->g;
	uint64_t limit = MAX((uint64_t)DUMMIES_PER_ITEM * ((uint64_t)g->box_cnt + g->edge_cnt), DUMMIES_MIN);
	uint32_t cnt = 2 * g->box_cnt;
	uint32_t *by_len = ARENA_ARRAY(in->a, uint32_t, cnt);
	if (!by_len)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		by_len[i] = i;
		*total += dummy_cnt(&in->nets[i]);
	}
	if (*total <= limit)
		return NULL;
	qsort_r(by_len, cnt, sizeof(*by_len), longer_first, in->nets);
	for (uint32_t i = 0; i < cnt && *total > limit; i++) {
		struct graph_net *n = &in->nets[by_len[i]];
		*total -= dummy_cnt(n);
		n->is_lane = n->src_lo != GRAPH_NONE;
	}
	return NULL;
}

static struct err *dummies(struct graph_inner *in)
{
	const struct graph *g = in->g;
	uint64_t total = 0;
	struct err *e = choose_lanes(in, &total);
	if (e)
		return e;
	struct graph_node *nodes = ARENA_ARRAY(in->a, struct graph_node, g->box_cnt + total);
	if (!nodes)
		return &err_nomem;
	memcpy(nodes, in->nodes, g->box_cnt * sizeof(*nodes));
	in->nodes = nodes;
	in->node_cnt = g->box_cnt;
	for (uint32_t i = 0; i < 2 * g->box_cnt; i++) {
		struct graph_net *n = &in->nets[i];
		if (!dummy_cnt(n)) {
			n->lo = 1;
			n->hi = 0;
			continue;
		}
		n->dummy = in->node_cnt;
		for (uint32_t l = n->lo; l <= n->hi; l++)
			nodes[in->node_cnt++] = (struct graph_node){.layer = l, .net = i, .w = 1};
	}
	return NULL;
}

struct err *graph_rank(struct graph_inner *in)
{
	struct graph *g = in->g;
	in->nodes = ARENA_ARRAY(in->a, struct graph_node, g->box_cnt);
	in->nets = ARENA_ARRAY(in->a, struct graph_net, (size_t)2 * g->box_cnt);
	if (!in->nodes || !in->nets)
		return &err_nomem;
	for (uint32_t b = 0; b < g->box_cnt; b++)
		in->nodes[b] = (struct graph_node){.net = GRAPH_NONE, .w = g->boxes[b].w};
	struct err *e = edges_by_box(in);
	if (!e)
		e = layers(in);
	if (e)
		return e;
	nets(in);
	return dummies(in);
}
