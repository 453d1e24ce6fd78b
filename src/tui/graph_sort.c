/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * The order of the nodes in each layer: sweeps down and up put each node at the mean place of its neighbours in the
 * layer just passed, and the order with the fewest crossings is kept. The number of sweeps is bounded by the size of
 * the graph, so that the time stays near linear.
 */
#define SWEEPS_MAX 24
#define SWEEPS_MIN 2
#define SWEEPS_IDLE 4       /* without a better order */
#define WORK_MAX 12000000u  /* nodes and lines looked at by all sweeps together */

struct seg {
	uint32_t up, down;
};

/* The lines between neighbouring layers, each once. */
static uint32_t segs_make(struct graph_inner *in, struct seg *out)
{
	const struct graph *g = in->g;
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		const struct graph_edge *e = &g->edges[i];
		const struct graph_net *net = &in->nets[graph_net_of(e)];
		if (e->is_back)
			continue;
		if (!graph_is_long(in, e))
			out[n++] = (struct seg){e->from, e->to};
		else if (!net->is_lane)
			out[n++] = (struct seg){e->from, graph_dummy(net, in->nodes[e->from].layer + 1)};
	}
	for (uint32_t i = 0; i < 2 * g->box_cnt; i++) {
		const struct graph_net *net = &in->nets[i];
		if (net->lo > net->hi)
			continue;
		for (uint32_t l = net->lo; l < net->hi; l++)
			out[n++] = (struct seg){graph_dummy(net, l), graph_dummy(net, l + 1)};
		if (!(i & 1))
			out[n++] = (struct seg){graph_dummy(net, net->hi), i / 2};
	}
	return n;
}

static bool adj_make(struct graph_inner *in, const struct seg *segs, uint32_t cnt, bool is_up)
{
	struct graph_adj *adj = is_up ? &in->up : &in->down;
	uint32_t *first = ARENA_ARRAY(in->a, uint32_t, (size_t)in->node_cnt + 2);
	adj->node = ARENA_ARRAY(in->a, uint32_t, (size_t)cnt + 1);
	adj->first = first;
	if (!first || !adj->node)
		return false;
	for (uint32_t i = 0; i < cnt; i++)
		first[(is_up ? segs[i].down : segs[i].up) + 2]++;
	for (uint32_t i = 0; i < in->node_cnt; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t at = is_up ? segs[i].down : segs[i].up;
		adj->node[first[at + 1]++] = is_up ? segs[i].up : segs[i].down;
	}
	return true;
}

struct sorter {
	struct graph_inner *in;
	double *key;          /* by node */
	uint32_t *tree;       /* for counting crossings */
	uint32_t *places;
	uint32_t *best;       /* order */
};

static int by_key(const void *x, const void *y, void *ctx)
{
	const struct sorter *s = ctx;
	uint32_t a = *(const uint32_t *)x;
	uint32_t b = *(const uint32_t *)y;
	if (s->key[a] != s->key[b])
		return s->key[a] < s->key[b] ? -1 : 1;
	uint32_t pa = s->in->nodes[a].pos;
	uint32_t pb = s->in->nodes[b].pos;
	return pa != pb ? (pa < pb ? -1 : 1) : a < b ? -1 : a > b;
}

static void sort_layer(struct sorter *s, uint32_t layer)
{
	struct graph_inner *in = s->in;
	uint32_t *o = in->order + in->layer_first[layer];
	uint32_t n = in->layer_first[layer + 1] - in->layer_first[layer];
	if (n > 24) {
		qsort_r(o, n, sizeof(*o), by_key, s);
	} else {
		for (uint32_t i = 1; i < n; i++) {
			uint32_t v = o[i];
			uint32_t k = i;
			for (; k && by_key(&o[k - 1], &v, s) > 0; k--)
				o[k] = o[k - 1];
			o[k] = v;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		in->nodes[o[i]].pos = i;
}

static void place_first(struct sorter *s)
{
	struct graph_inner *in = s->in;
	uint32_t *at = s->places;
	for (uint32_t i = 0; i < in->node_cnt; i++)
		in->layer_first[in->nodes[i].layer + 1]++;
	for (uint32_t l = 0; l < in->layer_cnt; l++) {
		in->layer_first[l + 1] += in->layer_first[l];
		at[l] = in->layer_first[l];
	}
	for (uint32_t i = 0; i < in->node_cnt; i++) {
		const struct graph_node *n = &in->nodes[i];
		in->order[at[n->layer]++] = i;
		s->key[i] = n->net == GRAPH_NONE ? in->rank[i] : in->rank[n->net / 2] - (n->net & 1 ? 0.5 : 0);
	}
	for (uint32_t l = 0; l < in->layer_cnt; l++)
		sort_layer(s, l);
}

/* Keys of a layer from the layer above (or below) it. A line that goes back begins and ends beside a box of its own
 * layer; to the left of it is where it belongs. */
static void keys_of(struct sorter *s, uint32_t layer, bool from_above)
{
	struct graph_inner *in = s->in;
	const struct graph_adj *adj = from_above ? &in->up : &in->down;
	uint32_t first = in->layer_first[layer];
	uint32_t end = in->layer_first[layer + 1];
	uint32_t other = from_above ? layer - 1 : layer + 1;
	double scale = (double)(in->layer_first[other + 1] - in->layer_first[other]) / (double)(end - first);
	for (uint32_t i = first; i < end; i++) {
		uint32_t node = in->order[i];
		uint32_t k = adj->first[node];
		uint32_t k_end = adj->first[node + 1];
		double sum = 0;
		for (uint32_t j = k; j < k_end; j++)
			sum += in->nodes[adj->node[j]].pos;
		s->key[node] = k_end > k ? sum / (double)(k_end - k) : in->nodes[node].pos * scale;
	}
	for (uint32_t i = first; i < end; i++) {
		uint32_t node = in->order[i];
		const struct graph_node *n = &in->nodes[node];
		if (n->net == GRAPH_NONE || !(n->net & 1) || adj->first[node + 1] > adj->first[node])
			continue;
		const struct graph_net *net = &in->nets[n->net];
		s->key[node] = s->key[from_above ? n->net / 2 : net->low_box] - 0.25;
	}
}

static int by_place(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x;
	uint32_t b = *(const uint32_t *)y;
	return a < b ? -1 : a > b;
}

static void sort_places(uint32_t *p, uint32_t n)
{
	if (n > 24) {
		qsort(p, n, sizeof(*p), by_place);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		uint32_t v = p[i];
		uint32_t k = i;
		for (; k && p[k - 1] > v; k--)
			p[k] = p[k - 1];
		p[k] = v;
	}
}

/* Crossings between a layer and the next: pairs of lines in one order above and in the other below. */
static uint64_t crossings_below(struct sorter *s, uint32_t layer)
{
	struct graph_inner *in = s->in;
	uint32_t size = in->layer_first[layer + 2] - in->layer_first[layer + 1];
	uint32_t seen = 0;
	uint64_t sum = 0;
	memset(s->tree, 0, ((size_t)size + 1) * sizeof(*s->tree));
	for (uint32_t i = in->layer_first[layer]; i < in->layer_first[layer + 1]; i++) {
		uint32_t node = in->order[i];
		uint32_t cnt = in->down.first[node + 1] - in->down.first[node];
		for (uint32_t k = 0; k < cnt; k++)
			s->places[k] = in->nodes[in->down.node[in->down.first[node] + k]].pos;
		sort_places(s->places, cnt);
		for (uint32_t k = 0; k < cnt; k++) {
			uint32_t not_after = 0;
			for (uint32_t at = s->places[k] + 1; at; at &= at - 1)
				not_after += s->tree[at];
			sum += seen - not_after;
		}
		for (uint32_t k = 0; k < cnt; k++) {
			for (uint32_t at = s->places[k] + 1; at <= size; at += at & -at)
				s->tree[at]++;
		}
		seen += cnt;
	}
	return sum;
}

static uint64_t crossings(struct sorter *s)
{
	uint64_t sum = 0;
	for (uint32_t l = 0; l + 1 < s->in->layer_cnt; l++)
		sum += crossings_below(s, l);
	return sum;
}

static void take_best(struct sorter *s)
{
	struct graph_inner *in = s->in;
	memcpy(in->order, s->best, in->node_cnt * sizeof(*in->order));
	for (uint32_t l = 0; l < in->layer_cnt; l++) {
		for (uint32_t i = in->layer_first[l]; i < in->layer_first[l + 1]; i++)
			in->nodes[in->order[i]].pos = i - in->layer_first[l];
	}
}

static struct err *sweeps(struct sorter *s, uint32_t seg_cnt)
{
	struct graph_inner *in = s->in;
	uint64_t cost = (uint64_t)in->node_cnt + seg_cnt;
	uint64_t rounds = MIN(MAX(WORK_MAX / (cost + 1), SWEEPS_MIN), SWEEPS_MAX);
	uint64_t least = crossings(s);
	uint32_t idle = 0;
	memcpy(s->best, in->order, in->node_cnt * sizeof(*s->best));
	for (uint64_t r = 0; r < rounds && least && idle < SWEEPS_IDLE; r++) {
		for (uint32_t l = 1; l < in->layer_cnt; l++) {
			uint32_t layer = r % 2 ? in->layer_cnt - 1 - l : l;
			keys_of(s, layer, r % 2 == 0);
			sort_layer(s, layer);
		}
		if (graph_is_cancelled(in))
			return err_new(ERR_CANCELLED, "stopped");
		uint64_t now = crossings(s);
		idle++;
		if (now < least) {
			least = now;
			idle = 0;
			memcpy(s->best, in->order, in->node_cnt * sizeof(*s->best));
		}
	}
	take_best(s);
	in->g->crossing_cnt = least;
	return NULL;
}

struct err *graph_sort(struct graph_inner *in)
{
	struct sorter s = {.in = in};
	size_t room = (size_t)MAX(in->node_cnt, in->layer_cnt) + 2;
	struct seg *segs = ARENA_ARRAY(in->a, struct seg, (size_t)in->g->edge_cnt + in->node_cnt + 1);
	if (!segs)
		return &err_nomem;
	uint32_t seg_cnt = segs_make(in, segs);
	in->layer_first = ARENA_ARRAY(in->a, uint32_t, (size_t)in->layer_cnt + 2);
	in->order = ARENA_ARRAY(in->a, uint32_t, room);
	s.key = ARENA_ARRAY(in->a, double, room);
	s.tree = ARENA_ARRAY(in->a, uint32_t, room);
	s.places = ARENA_ARRAY(in->a, uint32_t, room + seg_cnt);
	s.best = ARENA_ARRAY(in->a, uint32_t, room);
	if (!in->layer_first || !in->order || !s.key || !s.tree || !s.places || !s.best)
		return &err_nomem;
	if (!adj_make(in, segs, seg_cnt, true) || !adj_make(in, segs, seg_cnt, false))
		return &err_nomem;
	place_first(&s);
	return sweeps(&s, seg_cnt);
}
