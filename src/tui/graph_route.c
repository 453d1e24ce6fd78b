/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_int.h"

#include <string.h>

/*
 * Rows of layers and channels, and the lines to be drawn, in bands from top to bottom: channel 0, layer 0, channel 1...
 * A channel has a row below the boxes for marks, its tracks, and a row above the boxes for arrow heads.
 */
static struct err *rows(struct graph_inner *in)
{
	struct graph *g = in->g;
	int64_t y = 0;
	in->chan_y = ARENA_ARRAY(in->a, int32_t, (size_t)in->layer_cnt + 2);
	in->layer_y = ARENA_ARRAY(in->a, int32_t, (size_t)in->layer_cnt + 1);
	int32_t *height = ARENA_ARRAY(in->a, int32_t, (size_t)in->layer_cnt + 1);
	if (!in->chan_y || !in->layer_y || !height)
		return &err_nomem;
	for (uint32_t b = 0; b < g->box_cnt; b++)
		height[in->nodes[b].layer] = MAX(height[in->nodes[b].layer], g->boxes[b].h);
	for (uint32_t c = 0; c <= in->layer_cnt; c++) {
		int32_t tracks = 0;
		for (uint32_t i = in->group_first[c]; i < in->group_first[c + 1]; i++)
			tracks = MAX(tracks, in->groups[i].track + 1);
		in->chan_y[c] = (int32_t)y;
		bool is_inner = c && c < in->layer_cnt;
		y += is_inner || in->group_first[c] < in->group_first[c + 1] ? tracks + 2 : 0;
		if (c < in->layer_cnt) {
			in->layer_y[c] = (int32_t)y;
			y += height[c];
		}
		if (y > 1 << 30)
			return err_new(ERR_BUDGET, "the graph is too high to be drawn");
	}
	in->chan_y[in->layer_cnt + 1] = in->layer_y[in->layer_cnt] = (int32_t)y;
	g->h = (int32_t)y;
	for (uint32_t b = 0; b < g->box_cnt; b++) {
		g->boxes[b].x = in->nodes[b].x;
		g->boxes[b].y = in->layer_y[in->nodes[b].layer];
		g->boxes[b].layer = in->nodes[b].layer;
	}
	return NULL;
}

static int32_t track_y(const struct graph_inner *in, uint32_t chan, const struct graph_group *g)
{
	return in->chan_y[chan] + 1 + g->track;
}

static void add(struct graph_inner *in, int32_t x, int32_t y0, int32_t y1, const struct graph_line *what)
{
	struct graph_line l = *what;
	if (y0 > y1)
		return;
	l.x0 = l.x1 = x;
	l.y0 = y0;
	l.y1 = y1;
	in->lines[in->line_cnt++] = l;
}

static void channel_lines(struct graph_inner *in, uint32_t c)
{
	int32_t top = in->chan_y[c];
	int32_t bottom = (c < in->layer_cnt ? in->layer_y[c] : in->chan_y[c + 1]) - 1;
	for (uint32_t i = in->group_first[c]; i < in->group_first[c + 1]; i++) {
		const struct graph_group *g = &in->groups[i];
		struct graph_line l = {.to = g->net / 2, .is_back = g->net & 1, .kinds = in->nets[g->net].kinds};
		int32_t y = g->track < 0 ? top : track_y(in, c, g);
		for (uint32_t k = g->leg; k < g->leg + g->leg_cnt; k++) {
			const struct graph_leg *leg = &in->legs[k];
			struct graph_line one = l;
			one.kinds = leg->kinds;
			one.goes_up = leg->side == GRAPH_UP || g->track < 0;
			one.goes_down = leg->side == GRAPH_DOWN;
			if (leg->side == GRAPH_UP && g->track >= 0)
				add(in, leg->x, top, y, &one);
			else if (leg->side == GRAPH_DOWN)
				add(in, leg->x, y, bottom, &one);
		}
		if (g->track >= 0) {
			l.x0 = g->a;
			l.x1 = g->b;
			l.y0 = l.y1 = y;
			in->lines[in->line_cnt++] = l;
		}
	}
}

/* What passes through a layer, and what leaves boxes that are less high than it. */
static void layer_lines(struct graph_inner *in, uint32_t layer)
{
	const struct graph *g = in->g;
	int32_t bottom = in->chan_y[layer + 1] - 1;
	for (uint32_t i = in->layer_first[layer]; i < in->layer_first[layer + 1]; i++) {
		uint32_t node = in->order[i];
		const struct graph_node *n = &in->nodes[node];
		if (graph_is_dummy(in, node)) {
			struct graph_line l = {.to = n->net / 2, .is_back = n->net & 1, .kinds = in->nets[n->net].kinds,
					       .goes_up = true, .goes_down = true};
			add(in, n->x, in->layer_y[layer], bottom, &l);
			continue;
		}
		for (uint32_t k = in->out_first[node]; k < in->out_first[node + 1]; k++) {
			const struct graph_edge *e = &g->edges[in->out[k]];
			struct graph_line l = {.to = e->to, .is_back = e->is_back, .kinds = e->kind, .goes_up = true,
					       .goes_down = true};
			add(in, e->out_x, g->boxes[node].y + g->boxes[node].h, bottom, &l);
		}
	}
}

static struct err *lane_lines(struct graph_inner *in)
{
	uint32_t nets = 2 * in->g->box_cnt;
	uint32_t *lane_of = ARENA_ARRAY(in->a, uint32_t, nets);
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < nets && lane_of; i++) {
		if (in->nets[i].is_lane)
			lane_of[i] = cnt++;
	}
	in->lanes = ARENA_ARRAY(in->a, struct graph_line, (size_t)cnt + 1);
	if (!lane_of || !in->lanes)
		return &err_nomem;
	in->lane_cnt = cnt;
	for (uint32_t i = 0; i < cnt; i++)
		in->lanes[i].y0 = INT32_MAX;
	for (uint32_t c = 0; c <= in->layer_cnt; c++) {
		for (uint32_t k = in->group_first[c]; k < in->group_first[c + 1]; k++) {
			const struct graph_group *g = &in->groups[k];
			const struct graph_net *n = &in->nets[g->net];
			if (!n->is_lane || (g->a != n->lane_x && g->b != n->lane_x))
				continue;
			struct graph_line *l = &in->lanes[lane_of[g->net]];
			int32_t y = track_y(in, c, g);
			l->x0 = l->x1 = n->lane_x;
			l->y0 = MIN(l->y0, y);
			l->y1 = MAX(l->y1, y);
			l->to = g->net / 2;
			l->is_back = g->net & 1;
			l->kinds = n->kinds;
		}
	}
	return NULL;
}

static struct err *boxes_by_layer(struct graph_inner *in)
{
	uint32_t cnt = 0;
	in->layer_boxes = ARENA_ARRAY(in->a, uint32_t, in->g->box_cnt);
	in->layer_box_first = ARENA_ARRAY(in->a, uint32_t, (size_t)in->layer_cnt + 1);
	if (!in->layer_boxes || !in->layer_box_first)
		return &err_nomem;
	for (uint32_t l = 0; l < in->layer_cnt; l++) {
		in->layer_box_first[l] = cnt;
		for (uint32_t i = in->layer_first[l]; i < in->layer_first[l + 1]; i++) {
			if (!graph_is_dummy(in, in->order[i]))
				in->layer_boxes[cnt++] = in->order[i];
		}
	}
	in->layer_box_first[in->layer_cnt] = cnt;
	return NULL;
}

struct err *graph_route(struct graph_inner *in)
{
	struct err *e = rows(in);
	if (!e)
		e = lane_lines(in);
	if (!e)
		e = boxes_by_layer(in);
	if (e)
		return e;
	size_t most = (size_t)in->leg_cnt + in->group_first[in->layer_cnt + 1] + in->node_cnt + in->g->edge_cnt + 1;
	in->lines = ARENA_ARRAY(in->a, struct graph_line, most);
	in->band_first = ARENA_ARRAY(in->a, uint32_t, 2 * (size_t)in->layer_cnt + 2);
	if (!in->lines || !in->band_first)
		return &err_nomem;
	for (uint32_t c = 0; c <= in->layer_cnt; c++) {
		in->band_first[2 * c] = in->line_cnt;
		channel_lines(in, c);
		in->band_first[2 * c + 1] = in->line_cnt;
		if (c < in->layer_cnt)
			layer_lines(in, c);
	}
	return NULL;
}
