/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_GRAPH_LAYOUT_H
#define TUI_GRAPH_LAYOUT_H

#include "base/arena.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Where the boxes of a control-flow graph stand and how its edges run, in character cells: layers from top to bottom,
 * the entry in the first one, edges of horizontal and vertical lines that pass between layers and beside boxes and
 * never through one. Pure: the same graph gives the same picture on every machine.
 *
 * All edges that lead to one box and need more than the gap between two layers are drawn as branches of one line, so
 * a line seen anywhere has one destination. Edges that go back up have a line of their own, to the left where they can.
 */

/* What an edge says; bits, because a line may be shared by several edges. */
enum graph_kind { GRAPH_FALL = 1, GRAPH_TAKEN = 2, GRAPH_JUMP = 4, GRAPH_SWITCH = 8 };

#define GRAPH_BOX_MAX 1000000u
#define GRAPH_EDGE_MAX 4000000u
#define GRAPH_CELLS_MAX 100000 /* of one box in each direction */

struct graph_box {
	int32_t w, h;          /* given: cells, at least 1 */
	int32_t x, y;          /* set: its upper left cell */
	uint32_t layer;        /* set */
};

struct graph_edge {
	uint32_t from, to;     /* given: boxes */
	uint8_t kind;          /* given: one of enum graph_kind */
	bool is_back;          /* set: goes up, or leads to its own box */
	int32_t out_x;         /* set: the column where it leaves its box */
};

/* A straight line of cells, both ends belonging to it: x0 <= x1, y0 <= y1. */
struct graph_line {
	int32_t x0, y0, x1, y1;
	uint32_t to;           /* box it leads to */
	uint8_t kinds;         /* of the edges that share it */
	bool is_back;
	bool goes_up, goes_down; /* a vertical one: goes on beyond its end, into another line or to a box */
};

struct graph_point {
	int32_t x, y;
};

struct graph_net;
struct graph_inner;

struct graph {
	struct graph_box *boxes;
	struct graph_edge *edges;
	uint32_t box_cnt, edge_cnt;
	uint32_t entry;
	const atomic_bool *cancel; /* may be null */
	/* Set: */
	int32_t w, h;              /* cells of the whole; every box and line is inside */
	uint32_t layer_cnt;
	uint64_t crossing_cnt;     /* of the order that was chosen, between neighbouring layers */
	struct graph_inner *inner;
};

/* Lays the graph out; boxes and edges are the caller's, everything else is taken from the arena, also what is only
 * needed on the way. Errors: invalid (a box or an edge is out of range), budget (more than the limits above, or a
 * picture of 2^30 cells in one direction), cancelled, no memory. Time is about linear in what is drawn. */
_must_use_ struct err *graph_layout(struct graph *g, struct arena *a);

/* The lines that may touch the rows [y0, y1): a slice of all lines in order from top to bottom. It may also hold
 * lines that do not. Lines that run the whole height at a side come apart, by graph_lanes(). */
uint32_t graph_lines(const struct graph *g, int32_t y0, int32_t y1, const struct graph_line **ret);
uint32_t graph_lanes(const struct graph *g, const struct graph_line **ret);

/* The layers whose boxes may touch the rows [y0, y1): *ret_first up to, not including, the result. */
uint32_t graph_layers(const struct graph *g, int32_t y0, int32_t y1, uint32_t *ret_first);
/* The boxes of a layer from left to right. */
uint32_t graph_layer_boxes(const struct graph *g, uint32_t layer, const uint32_t **ret);

/* The cells at which an edge begins, turns and ends: from the cell below its box to the cell above its target. */
_must_use_ struct err *graph_path(const struct graph *g, uint32_t edge, struct arena *a, struct graph_point **ret,
				  uint32_t *ret_cnt);
/* The column where edges (those that go back, or the others) enter a box; the arrow's head is in the row above it.
 * False when there is none. */
bool graph_entry_x(const struct graph *g, uint32_t box, bool is_back, int32_t *ret_x);

#endif
