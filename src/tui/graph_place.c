/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_int.h"

#include <string.h>

/*
 * Columns: each node is drawn to the mean column of its neighbours, and each layer, in its order and without overlaps,
 * comes as near to those wishes as it can (least squares, exact, by pooling neighbours that push each other). Lines
 * that pass through pull harder than boxes, so that they stay straight.
 */
#define GAP_BOXES 3
#define GAP_LINES 1
#define GAP_MIXED 2
#define ROUNDS_MAX 6
#define ROUNDS_MIN 1
#define WORK_MAX 12000000u
#define PULL_LINE 8.0
#define PULL_NONE 0.05
#define WIDTH_MAX (1 << 28)

struct placer {
	struct graph_inner *in;
	double *want, *pull;          /* by place in the layer */
	double *pool_sum, *pool_pull; /* pools of places that touch */
	uint32_t *pool_end;
	int64_t *off;                 /* places from the left, packed */
};

static int32_t gap(const struct graph_inner *in, uint32_t a, uint32_t b)
{
	bool is_line = graph_is_dummy(in, a);
	if (is_line && graph_is_dummy(in, b))
		return GAP_LINES;
	return is_line || graph_is_dummy(in, b) ? GAP_MIXED : GAP_BOXES;
}

static uint32_t offsets(struct placer *p, uint32_t layer)
{
	struct graph_inner *in = p->in;
	const uint32_t *o = in->order + in->layer_first[layer];
	uint32_t n = in->layer_first[layer + 1] - in->layer_first[layer];
	int64_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			at += in->nodes[o[i - 1]].w + gap(in, o[i - 1], o[i]);
		p->off[i] = at;
	}
	return n;
}

static int64_t round_down(double v)
{
	int64_t i = (int64_t)v;
	return i > v ? i - 1 : i;
}

/* Nearest to `want` (of left edges) with the layer's distances kept. */
static void fit(struct placer *p, uint32_t layer)
{
	struct graph_inner *in = p->in;
	uint32_t n = offsets(p, layer);
	uint32_t pools = 0;
	for (uint32_t i = 0; i < n; i++) {
		p->pool_sum[pools] = (p->want[i] - (double)p->off[i]) * p->pull[i];
		p->pool_pull[pools] = p->pull[i];
		p->pool_end[pools] = i + 1;
		pools++;
		while (pools > 1 && p->pool_sum[pools - 2] * p->pool_pull[pools - 1] >=
				    p->pool_sum[pools - 1] * p->pool_pull[pools - 2]) {
			pools--;
			p->pool_sum[pools - 1] += p->pool_sum[pools];
			p->pool_pull[pools - 1] += p->pool_pull[pools];
			p->pool_end[pools - 1] = p->pool_end[pools];
		}
	}
	const uint32_t *o = in->order + in->layer_first[layer];
	uint32_t i = 0;
	for (uint32_t k = 0; k < pools; k++) {
		double at = p->pool_sum[k] / p->pool_pull[k] + 0.5;
		int64_t base = round_down(MIN(MAX(at, -2.0 * WIDTH_MAX), 2.0 * WIDTH_MAX));
		for (; i < p->pool_end[k]; i++)
			in->nodes[o[i]].x = (int32_t)(base + p->off[i]);
	}
}

struct sum {
	double mid, pull;
};

static void add_wishes(const struct graph_inner *in, uint32_t node, const struct graph_adj *adj, struct sum *s)
{
	for (uint32_t k = adj->first[node]; k < adj->first[node + 1]; k++) {
		uint32_t other = adj->node[k];
		double pull = graph_is_dummy(in, node) && graph_is_dummy(in, other) ? PULL_LINE : 1;
		s->mid += pull * graph_middle(&in->nodes[other]);
		s->pull += pull;
	}
}

static void fit_to(struct placer *p, uint32_t layer, bool above, bool below)
{
	struct graph_inner *in = p->in;
	uint32_t first = in->layer_first[layer];
	for (uint32_t i = first; i < in->layer_first[layer + 1]; i++) {
		uint32_t node = in->order[i];
		const struct graph_node *n = &in->nodes[node];
		struct sum s = {0};
		if (above)
			add_wishes(in, node, &in->up, &s);
		if (below)
			add_wishes(in, node, &in->down, &s);
		p->want[i - first] = s.pull > 0 ? s.mid / s.pull - n->w / 2 : n->x;
		p->pull[i - first] = s.pull > 0 ? s.pull : PULL_NONE;
	}
	fit(p, layer);
}

/* A line between two lines stands where the one above it does, where there is room. */
static void straighten(struct graph_inner *in, uint32_t layer)
{
	uint32_t first = in->layer_first[layer];
	uint32_t end = in->layer_first[layer + 1];
	for (uint32_t i = first; i < end; i++) {
		uint32_t node = in->order[i];
		uint32_t up = in->up.first[node] < in->up.first[node + 1] ? in->up.node[in->up.first[node]] : GRAPH_NONE;
		for (uint32_t k = in->up.first[node]; k < in->up.first[node + 1]; k++) {
			if (graph_is_dummy(in, in->up.node[k]))
				up = in->up.node[k];
		}
		if (!graph_is_dummy(in, node) || up == GRAPH_NONE || !graph_is_dummy(in, up))
			continue;
		int64_t lo = INT32_MIN;
		int64_t hi = INT32_MAX;
		if (i > first) {
			const struct graph_node *b = &in->nodes[in->order[i - 1]];
			lo = b->x + b->w + gap(in, in->order[i - 1], node);
		}
		if (i + 1 < end)
			hi = in->nodes[in->order[i + 1]].x - 1 - gap(in, node, in->order[i + 1]);
		int32_t x = in->nodes[up].x;
		if (x >= lo && x <= hi)
			in->nodes[node].x = x;
	}
}

static struct err *pack(struct placer *p)
{
	struct graph_inner *in = p->in;
	for (uint32_t l = 0; l < in->layer_cnt; l++) {
		uint32_t n = offsets(p, l);
		const uint32_t *o = in->order + in->layer_first[l];
		int64_t width = p->off[n - 1] + in->nodes[o[n - 1]].w;
		if (width > WIDTH_MAX)
			return err_new(ERR_BUDGET, "the graph is too wide to be drawn");
		for (uint32_t i = 0; i < n; i++)
			in->nodes[o[i]].x = (int32_t)(p->off[i] - width / 2);
	}
	return NULL;
}

static struct err *rounds(struct placer *p)
{
	struct graph_inner *in = p->in;
	uint64_t cost = 2 * ((uint64_t)in->node_cnt + in->up.first[in->node_cnt]) + 1;
	uint64_t cnt = MIN(MAX(WORK_MAX / cost, ROUNDS_MIN), ROUNDS_MAX);
	for (uint64_t r = 0; r < cnt; r++) {
		for (uint32_t l = 1; l < in->layer_cnt; l++)
			fit_to(p, l, true, r > 1);
		for (uint32_t l = in->layer_cnt - 1; l-- > 0;)
			fit_to(p, l, r > 1, true);
		if (graph_is_cancelled(in))
			return err_new(ERR_CANCELLED, "stopped");
	}
	for (uint32_t l = 1; l < in->layer_cnt; l++)
		fit_to(p, l, true, true);
	for (uint32_t l = 1; l < in->layer_cnt; l++)
		straighten(in, l);
	return NULL;
}

struct err *graph_place(struct graph_inner *in)
{
	struct placer p = {.in = in};
	uint32_t most = 1;
	for (uint32_t l = 0; l < in->layer_cnt; l++)
		most = MAX(most, in->layer_first[l + 1] - in->layer_first[l]);
	p.want = ARENA_ARRAY(in->a, double, most);
	p.pull = ARENA_ARRAY(in->a, double, most);
	p.pool_sum = ARENA_ARRAY(in->a, double, most);
	p.pool_pull = ARENA_ARRAY(in->a, double, most);
	p.pool_end = ARENA_ARRAY(in->a, uint32_t, most);
	p.off = ARENA_ARRAY(in->a, int64_t, most);
	if (!p.want || !p.pull || !p.pool_sum || !p.pool_pull || !p.pool_end || !p.off)
		return &err_nomem;
	struct err *e = pack(&p);
	return e ? e : rounds(&p);
}
