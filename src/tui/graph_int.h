/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_GRAPH_INT_H
#define TUI_GRAPH_INT_H

#include "tui/graph_layout.h"

/*
 * What the steps of a layout hand to each other. Nodes are the boxes (by their numbers) and then the dummies: one for
 * each layer that a net passes. A net is all edges of one direction that lead to one box: net 2*box is the edges from
 * above, net 2*box+1 those from below (and from the box itself).
 *
 * Channel c is the space above layer c; channel layer_cnt is the space below the last one.
 */
#define GRAPH_NONE UINT32_MAX

struct graph_net {
	uint32_t lo, hi;       /* layers with a dummy; lo > hi: none */
	uint32_t dummy;        /* node of the dummy in layer lo */
	uint32_t low_box;      /* back: a box in the lowest layer it comes from */
	uint32_t src_lo, src_hi; /* channels that edges enter it from a box in */
	int32_t in_x;          /* column at the target box */
	int32_t come_lo, come_hi; /* columns its lines come from, the last ones before the box */
	int32_t lane_x;
	uint8_t kinds;
	bool is_used;          /* some edge is in it */
	bool is_lane;          /* runs outside of all boxes instead of through dummies */
};

struct graph_node {
	uint32_t layer, pos;   /* pos: in its layer, from the left */
	uint32_t net;          /* dummy: whose */
	int32_t x, w;          /* left edge and width */
};

/* Neighbours in the layer above or below, by node. */
struct graph_adj {
	uint32_t *first;       /* node_cnt + 1 */
	uint32_t *node;
};

/* A net's part of a channel: one horizontal line at `track` (-1: none is needed) with vertical legs. */
struct graph_group {
	uint32_t net;
	int32_t a, b;          /* columns from and to */
	uint32_t leg, leg_cnt;
	int32_t track;
};

enum graph_side { GRAPH_UP, GRAPH_DOWN, GRAPH_ASIDE /* to the lane */ };

struct graph_leg {
	uint32_t chan, net;
	int32_t x;
	uint8_t side;          /* enum graph_side: where it goes from the horizontal line */
	uint8_t kinds;
};

struct graph_inner {
	struct arena *a;
	struct graph *g;
	uint32_t node_cnt, layer_cnt;
	struct graph_node *nodes;
	struct graph_net *nets;       /* 2 * box_cnt */
	uint32_t *out_first, *out;    /* edges by the box they leave */
	uint32_t *layer_first, *order; /* nodes by layer and position */
	uint32_t *rank;               /* boxes: order of the first visit, what the first order of a layer comes from */
	struct graph_adj up, down;

	struct graph_leg *legs;
	uint32_t leg_cnt;
	struct graph_group *groups;
	uint32_t *group_first;        /* channels + 1 */
	int32_t *chan_y, *layer_y;    /* first rows; chan_y has one more, the end */
	struct graph_line *lines;
	uint32_t line_cnt, line_cap;
	uint32_t *band_first;         /* lines of channel 0, layer 0, channel 1, ...: 2 * layer_cnt + 2 */
	struct graph_line *lanes;
	uint32_t lane_cnt;
	uint32_t *layer_boxes, *layer_box_first;
	int32_t left_lanes, right_lanes;
};

static inline uint32_t graph_net_of(const struct graph_edge *e)
{
	return 2 * e->to + e->is_back;
}

static inline uint32_t graph_dummy(const struct graph_net *n, uint32_t layer)
{
	return n->dummy + (layer - n->lo);
}

static inline bool graph_is_dummy(const struct graph_inner *in, uint32_t node)
{
	return node >= in->g->box_cnt;
}

/* The column where lines meet a node. */
static inline int32_t graph_middle(const struct graph_node *n)
{
	return n->x + n->w / 2;
}

/* Where lines may meet a box's edge: not at its corners when it has more than those. */
static inline void graph_interior(const struct graph_node *n, int32_t *ret_lo, int32_t *ret_hi)
{
	bool has_frame = n->w >= 3;
	*ret_lo = n->x + has_frame;
	*ret_hi = n->x + n->w - 1 - has_frame;
}

static inline bool graph_is_cancelled(const struct graph_inner *in)
{
	return in->g->cancel && atomic_load(in->g->cancel);
}

/* Whether an edge has a dummy or a lane on its way: it does not lead from one layer to the next. */
static inline bool graph_is_long(const struct graph_inner *in, const struct graph_edge *e)
{
	return e->is_back || in->nodes[e->to].layer - in->nodes[e->from].layer > 1;
}

/* The steps, in this order. Null or &err_nomem or cancelled. */
_must_use_ struct err *graph_rank(struct graph_inner *in);     /* graph_rank.c: directions, layers, nets and dummies */
_must_use_ struct err *graph_sort(struct graph_inner *in);     /* graph_sort.c: the order in each layer */
_must_use_ struct err *graph_place(struct graph_inner *in);    /* graph_place.c: columns */
_must_use_ struct err *graph_ports(struct graph_inner *in);    /* graph_ports.c: columns at boxes, lanes */
_must_use_ struct err *graph_tracks(struct graph_inner *in);   /* graph_tracks.c: legs, groups and their tracks */
_must_use_ struct err *graph_route(struct graph_inner *in);    /* graph_route.c: rows, lines */
/* The part of a channel that belongs to a net, or null. */
const struct graph_group *graph_group_at(const struct graph_inner *in, uint32_t chan, uint32_t net);

#endif
