/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * The columns in which edges leave and enter boxes, and the lanes outside of all boxes. A port goes where its line is
 * straight when that is within its box; ports of one box keep the order of where their lines go.
 */
#define LANE_SCAN 256 /* lanes tried before a new one is opened */

struct ports {
	struct graph_inner *in;
	int64_t *want;        /* by edge: the column it heads for */
	uint32_t *mine;       /* the edges of one box */
};

static int by_want(const void *x, const void *y, void *ctx)
{
	const int64_t *want = ctx;
	uint32_t a = *(const uint32_t *)x;
	uint32_t b = *(const uint32_t *)y;
	if (want[a] != want[b])
		return want[a] < want[b] ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int64_t heads_for(const struct graph_inner *in, const struct graph_edge *e)
{
	const struct graph_net *net = &in->nets[graph_net_of(e)];
	if (!graph_is_long(in, e))
		return graph_middle(&in->nodes[e->to]);
	if (net->is_lane)
		return e->is_back ? INT32_MIN : INT32_MAX;
	uint32_t layer = in->nodes[e->from].layer;
	return in->nodes[graph_dummy(net, e->is_back ? layer : layer + 1)].x;
}

static void leave(struct ports *p, uint32_t box)
{
	struct graph_inner *in = p->in;
	struct graph_edge *edges = in->g->edges;
	uint32_t cnt = in->out_first[box + 1] - in->out_first[box];
	int32_t lo;
	int32_t hi;
	graph_interior(&in->nodes[box], &lo, &hi);
	memcpy(p->mine, in->out + in->out_first[box], cnt * sizeof(*p->mine));
	if (cnt > 1)
		qsort_r(p->mine, cnt, sizeof(*p->mine), by_want, p->want);
	int64_t room = (int64_t)hi - lo + 1;
	int64_t step = 2 * (int64_t)cnt - 1 <= room ? 2 : 1;
	int64_t at = lo - step;
	for (uint32_t i = 0; i < cnt; i++) {
		struct graph_edge *e = &edges[p->mine[i]];
		if (cnt > room) {
			e->out_x = (int32_t)(lo + room * i / cnt);
			continue;
		}
		at = MAX(MIN(MAX(p->want[p->mine[i]], lo), hi), at + step);
		e->out_x = (int32_t)MIN(at, hi - step * (int64_t)(cnt - 1 - i));
		at = e->out_x;
	}
}

/* Where an edge's line is just before it enters its box. */
static int32_t comes_from(const struct graph_inner *in, const struct graph_edge *e)
{
	const struct graph_net *net = &in->nets[graph_net_of(e)];
	int32_t lo;
	int32_t hi;
	if (!graph_is_long(in, e))
		return e->out_x;
	if (!net->is_lane)
		return in->nodes[graph_dummy(net, e->is_back ? net->lo : net->hi)].x;
	graph_interior(&in->nodes[e->to], &lo, &hi);
	return e->is_back ? lo : hi;
}

/* A net enters its box where the only line that comes is straight, or else where the one nearest to the middle is, or
 * else in the middle. */
static void enter(struct graph_inner *in)
{
	const struct graph *g = in->g;
	for (uint32_t i = 0; i < 2 * g->box_cnt; i++) {
		in->nets[i].come_lo = INT32_MAX;
		in->nets[i].come_hi = INT32_MIN;
		in->nets[i].in_x = INT32_MIN;
	}
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		const struct graph_edge *e = &g->edges[i];
		struct graph_net *net = &in->nets[graph_net_of(e)];
		int32_t x = comes_from(in, e);
		int32_t mid = graph_middle(&in->nodes[e->to]);
		int32_t lo;
		int32_t hi;
		graph_interior(&in->nodes[e->to], &lo, &hi);
		net->come_lo = MIN(net->come_lo, x);
		net->come_hi = MAX(net->come_hi, x);
		if (x >= lo && x <= hi && (net->in_x == INT32_MIN || abs(x - mid) < abs(net->in_x - mid)))
			net->in_x = x;
	}
	for (uint32_t i = 0; i < 2 * g->box_cnt; i++) {
		struct graph_net *net = &in->nets[i];
		int32_t lo;
		int32_t hi;
		graph_interior(&in->nodes[i / 2], &lo, &hi);
		if (net->is_used && net->in_x == INT32_MIN)
			net->in_x = net->come_lo == net->come_hi ? MIN(MAX(net->come_lo, lo), hi) : graph_middle(&in->nodes[i / 2]);
	}
}

/* The line that comes from below and the one from above meet the box in different columns. */
static void part(struct graph_inner *in, uint32_t box)
{
	struct graph_net *down = &in->nets[2 * box];
	struct graph_net *back = down + 1;
	int32_t lo;
	int32_t hi;
	graph_interior(&in->nodes[box], &lo, &hi);
	if (!down->is_used || !back->is_used || hi == lo)
		return;
	bool is_left = back->is_lane || in->nodes[back->dummy].x < in->nodes[box].x;
	back->in_x = is_left ? lo : hi;
	if (down->in_x == back->in_x)
		down->in_x = is_left ? MIN(lo + 2, hi) : MAX(hi - 2, lo);
}

struct lane_net {
	uint32_t net, top, bottom; /* channels */
};

static int by_top(const void *x, const void *y)
{
	const struct lane_net *a = x;
	const struct lane_net *b = y;
	if (a->top != b->top)
		return a->top < b->top ? -1 : 1;
	return a->net < b->net ? -1 : a->net > b->net;
}

/* Gives the nets of one side their lanes: numbers from the inside out. Returns how many there are. */
static int32_t lanes_of(struct graph_inner *in, struct lane_net *nets, uint32_t cnt, int64_t *end)
{
	int32_t lanes = 0;
	qsort(nets, cnt, sizeof(*nets), by_top);
	for (uint32_t i = 0; i < cnt; i++) {
		int32_t lane = MAX(0, lanes - LANE_SCAN);
		while (lane < lanes && end[lane] >= nets[i].top)
			lane++;
		if (lane == lanes)
			lanes++;
		end[lane] = nets[i].bottom;
		in->nets[nets[i].net].lane_x = lane;
	}
	return lanes;
}

static struct err *lanes(struct graph_inner *in)
{
	uint32_t box_cnt = in->g->box_cnt;
	struct lane_net *nets = ARENA_ARRAY(in->a, struct lane_net, box_cnt);
	int64_t *end = ARENA_ARRAY(in->a, int64_t, box_cnt);
	if (!nets || !end)
		return &err_nomem;
	for (uint32_t is_back = 0; is_back < 2; is_back++) {
		uint32_t cnt = 0;
		for (uint32_t b = 0; b < box_cnt; b++) {
			const struct graph_net *n = &in->nets[2 * b + is_back];
			uint32_t at = in->nodes[b].layer;
			if (n->is_lane)
				nets[cnt++] = (struct lane_net){2 * b + is_back, MIN(n->src_lo, at), MAX(n->src_hi, at)};
		}
		int32_t lane_cnt = lanes_of(in, nets, cnt, end);
		*(is_back ? &in->left_lanes : &in->right_lanes) = lane_cnt;
	}
	return NULL;
}

/* Moves everything so that the left edge is column 0, with the lanes beside it. */
static struct err *shift(struct graph_inner *in)
{
	int64_t left = INT32_MAX;
	int64_t right = INT32_MIN;
	for (uint32_t i = 0; i < in->node_cnt; i++) {
		left = MIN(left, in->nodes[i].x);
		right = MAX(right, (int64_t)in->nodes[i].x + in->nodes[i].w);
	}
	int64_t margin = in->left_lanes ? 2 * (int64_t)in->left_lanes + 1 : 0;
	int64_t width = right - left + margin + (in->right_lanes ? 2 * (int64_t)in->right_lanes + 1 : 0);
	if (width > 1 << 30)
		return err_new(ERR_BUDGET, "the graph is too wide to be drawn");
	for (uint32_t i = 0; i < in->node_cnt; i++)
		in->nodes[i].x = (int32_t)(in->nodes[i].x - left + margin);
	for (uint32_t i = 0; i < 2 * in->g->box_cnt; i++) {
		struct graph_net *n = &in->nets[i];
		if (n->is_lane)
			n->lane_x = (int32_t)(i & 1 ? margin - 2 - 2 * n->lane_x : right - left + margin + 1 + 2 * n->lane_x);
	}
	in->g->w = (int32_t)width;
	return NULL;
}

struct err *graph_ports(struct graph_inner *in)
{
	struct graph *g = in->g;
	struct ports p = {.in = in, .want = ARENA_ARRAY(in->a, int64_t, (size_t)g->edge_cnt + 1),
			  .mine = ARENA_ARRAY(in->a, uint32_t, (size_t)g->edge_cnt + 1)};
	if (!p.want || !p.mine)
		return &err_nomem;
	struct err *e = lanes(in);
	if (!e)
		e = shift(in);
	if (e)
		return e;
	for (uint32_t i = 0; i < g->edge_cnt; i++)
		p.want[i] = heads_for(in, &g->edges[i]);
	for (uint32_t b = 0; b < g->box_cnt; b++)
		leave(&p, b);
	enter(in);
	for (uint32_t b = 0; b < g->box_cnt; b++)
		part(in, b);
	return NULL;
}
