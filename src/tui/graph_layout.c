/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_layout.h"

#include "tui/graph_int.h"

static struct err *check(const struct graph *g)
{
	if (!g->box_cnt || g->entry >= g->box_cnt)
		return err_new(ERR_INVALID, "a graph without boxes or entry");
	if (g->box_cnt > GRAPH_BOX_MAX || g->edge_cnt > GRAPH_EDGE_MAX)
		return err_new(ERR_BUDGET, "%u blocks and %u edges are more than a graph can show", g->box_cnt, g->edge_cnt);
	for (uint32_t i = 0; i < g->box_cnt; i++) {
		const struct graph_box *b = &g->boxes[i];
		if (b->w < 1 || b->h < 1 || b->w > GRAPH_CELLS_MAX || b->h > GRAPH_CELLS_MAX)
			return err_new(ERR_INVALID, "box %u is %d x %d", i, b->w, b->h);
	}
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		if (g->edges[i].from >= g->box_cnt || g->edges[i].to >= g->box_cnt)
			return err_new(ERR_INVALID, "edge %u leads nowhere", i);
	}
	return NULL;
}

struct err *graph_layout(struct graph *g, struct arena *a)
{
	static struct err *(*const steps[])(struct graph_inner *) = {graph_rank,  graph_sort,	graph_place,
								     graph_ports, graph_tracks, graph_route};
	struct err *e = check(g);
	if (e)
		return e;
	struct graph_inner *in = ARENA_NEW(a, struct graph_inner);
	if (!in)
		return &err_nomem;
	in->a = a;
	in->g = g;
	for (size_t i = 0; i < ARRAY_LEN(steps) && !e; i++)
		e = graph_is_cancelled(in) ? err_new(ERR_CANCELLED, "stopped") : steps[i](in);
	g->inner = in;
	g->layer_cnt = in->layer_cnt;
	return e;
}

/* --- reading it --- */

/* The band that holds row y: 2*c for channel c, 2*c+1 for layer c. */
static uint32_t band_at(const struct graph_inner *in, int32_t y)
{
	uint32_t lo = 0;
	uint32_t hi = 2 * in->layer_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo + 1) / 2;
		if ((mid & 1 ? in->layer_y[mid / 2] : in->chan_y[mid / 2]) <= y)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

uint32_t graph_lines(const struct graph *g, int32_t y0, int32_t y1, const struct graph_line **ret)
{
	const struct graph_inner *in = g->inner;
	uint32_t first = in->band_first[band_at(in, MAX(y0, 0))];
	*ret = in->lines + first;
	if (y1 <= y0 || y1 <= 0 || y0 >= g->h)
		return 0;
	uint32_t last = band_at(in, y1 - 1);
	return (last == 2 * in->layer_cnt ? in->line_cnt : in->band_first[last + 1]) - first;
}

uint32_t graph_lanes(const struct graph *g, const struct graph_line **ret)
{
	*ret = g->inner->lanes;
	return g->inner->lane_cnt;
}

uint32_t graph_layers(const struct graph *g, int32_t y0, int32_t y1, uint32_t *ret_first)
{
	const struct graph_inner *in = g->inner;
	*ret_first = 0;
	if (y1 <= y0 || y1 <= 0 || y0 >= g->h)
		return 0;
	*ret_first = MIN(band_at(in, MAX(y0, 0)) / 2, in->layer_cnt - 1);
	return MIN(band_at(in, y1 - 1) / 2, in->layer_cnt - 1) + 1;
}

uint32_t graph_layer_boxes(const struct graph *g, uint32_t layer, const uint32_t **ret)
{
	const struct graph_inner *in = g->inner;
	*ret = in->layer_boxes + in->layer_box_first[layer];
	return in->layer_box_first[layer + 1] - in->layer_box_first[layer];
}

bool graph_entry_x(const struct graph *g, uint32_t box, bool is_back, int32_t *ret_x)
{
	const struct graph_net *n = &g->inner->nets[2 * box + is_back];
	*ret_x = n->in_x;
	return n->is_used;
}

struct path {
	const struct graph_inner *in;
	uint32_t net;
	struct graph_point *pt;
	uint32_t cnt;
	int32_t x;
};

/* Goes to column x in a channel. */
static void turn(struct path *p, uint32_t chan, int32_t x)
{
	const struct graph_group *g = graph_group_at(p->in, chan, p->net);
	if (!g || x == p->x)
		return;
	int32_t y = p->in->chan_y[chan] + 1 + g->track;
	p->pt[p->cnt++] = (struct graph_point){p->x, y};
	p->pt[p->cnt++] = (struct graph_point){x, y};
	p->x = x;
}

static void walk(struct path *p, const struct graph_edge *e)
{
	const struct graph_inner *in = p->in;
	const struct graph_net *n = &in->nets[p->net];
	uint32_t from = in->nodes[e->from].layer;
	uint32_t to = in->nodes[e->to].layer;
	if (graph_is_long(in, e) && n->is_lane) {
		turn(p, from + 1, n->lane_x);
	} else if (e->is_back) {
		turn(p, from + 1, in->nodes[graph_dummy(n, from)].x);
		for (uint32_t l = from; l > to; l--)
			turn(p, l, in->nodes[graph_dummy(n, l - 1)].x);
	} else {
		for (uint32_t l = from + 1; l < to; l++)
			turn(p, l, in->nodes[graph_dummy(n, l)].x);
	}
	turn(p, to, n->in_x);
}

struct err *graph_path(const struct graph *g, uint32_t edge, struct arena *a, struct graph_point **ret, uint32_t *ret_cnt)
{
	const struct graph_inner *in = g->inner;
	const struct graph_edge *e = &g->edges[edge];
	uint32_t from = in->nodes[e->from].layer;
	uint32_t to = in->nodes[e->to].layer;
	uint32_t span = from > to ? from - to : to - from;
	struct path p = {.in = in, .net = graph_net_of(e), .x = e->out_x,
			 .pt = ARENA_ARRAY(a, struct graph_point, 2 * (size_t)span + 8)};
	if (!p.pt)
		return &err_nomem;
	p.pt[p.cnt++] = (struct graph_point){e->out_x, g->boxes[e->from].y + g->boxes[e->from].h};
	walk(&p, e);
	p.pt[p.cnt++] = (struct graph_point){p.x, g->boxes[e->to].y - 1};
	*ret = p.pt;
	*ret_cnt = p.cnt;
	return NULL;
}
