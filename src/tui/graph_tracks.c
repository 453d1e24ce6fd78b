/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * Channels: what runs between two layers. The part of a net in a channel is one horizontal line with legs up to what
 * stands above and down to what stands below. Two parts that overlap get different tracks. Of two parts with legs in
 * the same column, the one whose leg goes up must be above, or the legs would lie on each other; where that closes a
 * circle one of them does. Otherwise the order is the one that crosses least: of lines that go right the rightmost
 * first, then of lines that go left the leftmost.
 */
struct chan {
	struct graph_inner *in;
	struct graph_group *g;
	uint32_t cnt;
	struct graph_leg *legs;
	uint32_t leg_cnt;
	/* Room for the largest channel: */
	uint32_t *rank, *of_rank;   /* groups by preference and back */
	uint32_t *before_cnt;       /* groups that must be placed before this one */
	uint32_t *next_first, *next; /* and those this one must be before */
	uint32_t *heap;
	uint32_t *by_x;             /* legs */
	uint32_t *group_of;         /* leg -> group */
	int32_t *xs;                /* ends of groups, ascending */
	uint32_t x_cnt;
	int32_t *tree, *mark;       /* greatest track by column: of the node, of all below it */
};

static int by_net(const void *x, const void *y)
{
	const struct graph_leg *a = x;
	const struct graph_leg *b = y;
	if (a->net != b->net)
		return a->net < b->net ? -1 : 1;
	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return a->side < b->side ? -1 : a->side > b->side;
}

/* --- legs --- */

static void add_leg(struct graph_inner *in, struct graph_leg leg)
{
	in->legs[in->leg_cnt++] = leg;
}

static void legs_make(struct graph_inner *in)
{
	const struct graph *g = in->g;
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		const struct graph_edge *e = &g->edges[i];
		uint32_t net = graph_net_of(e);
		uint32_t chan = in->nodes[e->from].layer + 1;
		add_leg(in, (struct graph_leg){chan, net, e->out_x, GRAPH_UP, e->kind});
		if (graph_is_long(in, e) && in->nets[net].is_lane)
			add_leg(in, (struct graph_leg){chan, net, in->nets[net].lane_x, GRAPH_ASIDE, in->nets[net].kinds});
	}
	for (uint32_t i = 0; i < 2 * g->box_cnt; i++) {
		const struct graph_net *n = &in->nets[i];
		uint32_t chan = in->nodes[i / 2].layer;
		if (!n->is_used)
			continue;
		add_leg(in, (struct graph_leg){chan, i, n->in_x, GRAPH_DOWN, n->kinds});
		if (n->is_lane)
			add_leg(in, (struct graph_leg){chan, i, n->lane_x, GRAPH_ASIDE, n->kinds});
	}
	for (uint32_t i = g->box_cnt; i < in->node_cnt; i++) {
		const struct graph_node *d = &in->nodes[i];
		uint8_t kinds = in->nets[d->net].kinds;
		add_leg(in, (struct graph_leg){d->layer, d->net, d->x, GRAPH_DOWN, kinds});
		add_leg(in, (struct graph_leg){d->layer + 1, d->net, d->x, GRAPH_UP, kinds});
	}
}

/* Legs by channel, then net; groups of them. */
static struct err *groups_make(struct graph_inner *in)
{
	uint32_t chans = in->layer_cnt + 1;
	uint32_t *first = ARENA_ARRAY(in->a, uint32_t, (size_t)chans + 2);
	struct graph_leg *sorted = ARENA_ARRAY(in->a, struct graph_leg, (size_t)in->leg_cnt + 1);
	in->groups = ARENA_ARRAY(in->a, struct graph_group, (size_t)in->leg_cnt + 1);
	in->group_first = ARENA_ARRAY(in->a, uint32_t, (size_t)chans + 1);
	if (!first || !sorted || !in->groups || !in->group_first)
		return &err_nomem;
	for (uint32_t i = 0; i < in->leg_cnt; i++)
		first[in->legs[i].chan + 2]++;
	for (uint32_t c = 0; c < chans; c++)
		first[c + 2] += first[c + 1];
	for (uint32_t i = 0; i < in->leg_cnt; i++)
		sorted[first[in->legs[i].chan + 1]++] = in->legs[i];
	in->legs = sorted;
	uint32_t cnt = 0;
	for (uint32_t c = 0; c < chans; c++) {
		uint32_t end = first[c + 1];
		in->group_first[c] = cnt;
		qsort(sorted + first[c], end - first[c], sizeof(*sorted), by_net);
		for (uint32_t i = first[c]; i < end; i++) {
			struct graph_group *g = cnt > in->group_first[c] ? &in->groups[cnt - 1] : NULL;
			if (!g || g->net != sorted[i].net) {
				g = &in->groups[cnt++];
				*g = (struct graph_group){.net = sorted[i].net, .a = sorted[i].x, .leg = i, .track = -1};
			}
			g->b = sorted[i].x;
			g->leg_cnt++;
		}
	}
	in->group_first[chans] = cnt;
	return NULL;
}

/* --- preference --- */

struct wish {
	int32_t class, key;
};

static struct wish wish_of(const struct chan *c, const struct graph_group *g)
{
	int64_t sum[3] = {0};
	int64_t cnt[3] = {0};
	for (uint32_t i = g->leg; i < g->leg + g->leg_cnt; i++) {
		sum[c->in->legs[i].side] += c->in->legs[i].x;
		cnt[c->in->legs[i].side]++;
	}
	if (!cnt[GRAPH_DOWN] && !cnt[GRAPH_ASIDE])
		return (struct wish){0, g->b - g->a};
	if (!cnt[GRAPH_UP] && !cnt[GRAPH_ASIDE])
		return (struct wish){3, g->a - g->b};
	int64_t up = cnt[GRAPH_UP] ? sum[GRAPH_UP] / cnt[GRAPH_UP] : sum[GRAPH_ASIDE] / cnt[GRAPH_ASIDE];
	int64_t down = cnt[GRAPH_DOWN] ? sum[GRAPH_DOWN] / cnt[GRAPH_DOWN] : sum[GRAPH_ASIDE] / cnt[GRAPH_ASIDE];
	return up < down ? (struct wish){1, -g->b} : (struct wish){2, g->a};
}

static int by_wish(const void *x, const void *y, void *ctx)
{
	const struct chan *c = ctx;
	uint32_t a = *(const uint32_t *)x;
	uint32_t b = *(const uint32_t *)y;
	struct wish wa = wish_of(c, &c->g[a]);
	struct wish wb = wish_of(c, &c->g[b]);
	if (wa.class != wb.class)
		return wa.class < wb.class ? -1 : 1;
	if (wa.key != wb.key)
		return wa.key < wb.key ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* --- what must be above what --- */

static int by_column(const void *x, const void *y, void *ctx)
{
	const struct graph_leg *legs = ctx;
	uint32_t a = *(const uint32_t *)x;
	uint32_t b = *(const uint32_t *)y;
	if (legs[a].x != legs[b].x)
		return legs[a].x < legs[b].x ? -1 : 1;
	if (legs[a].side != legs[b].side)
		return legs[a].side < legs[b].side ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* The pairs (above, below): counts them, or notes them when is_fill. In a column the last leg up is taken
 * for all of them; only a box with more edges than columns has more. */
static void pairs(struct chan *c, bool is_fill)
{
	uint32_t up = GRAPH_NONE;
	int32_t up_x = 0;
	for (uint32_t i = 0; i < c->leg_cnt; i++) {
		const struct graph_leg *l = &c->legs[c->by_x[i]];
		uint32_t g = c->group_of[c->by_x[i]];
		if (l->side == GRAPH_UP) {
			up = g;
			up_x = l->x;
			continue;
		}
		if (l->side != GRAPH_DOWN || up == GRAPH_NONE || up_x != l->x || up == g)
			continue;
		if (is_fill) {
			c->next[c->next_first[up + 1]++] = g;
			c->before_cnt[g]++;
		} else {
			c->next_first[up + 2]++;
		}
	}
}

static void constrain(struct chan *c)
{
	for (uint32_t i = 0; i < c->leg_cnt; i++)
		c->by_x[i] = i;
	for (uint32_t k = 0; k < c->cnt; k++) {
		c->before_cnt[k] = 0;
		for (uint32_t i = 0; i < c->g[k].leg_cnt; i++)
			c->group_of[c->g[k].leg - (uint32_t)(c->legs - c->in->legs) + i] = k;
	}
	qsort_r(c->by_x, c->leg_cnt, sizeof(*c->by_x), by_column, c->legs);
	memset(c->next_first, 0, ((size_t)c->cnt + 2) * sizeof(*c->next_first));
	pairs(c, false);
	for (uint32_t k = 0; k < c->cnt; k++)
		c->next_first[k + 2] += c->next_first[k + 1];
	pairs(c, true);
}

/* --- the heap of groups that may be placed now, by preference --- */

static void heap_push(struct chan *c, uint32_t *cnt, uint32_t rank)
{
	uint32_t i = (*cnt)++;
	for (; i && c->heap[(i - 1) / 2] > rank; i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = rank;
}

static uint32_t heap_pop(struct chan *c, uint32_t *cnt)
{
	uint32_t top = c->heap[0];
	uint32_t last = c->heap[--*cnt];
	uint32_t i = 0;
	for (;;) {
		uint32_t k = 2 * i + 1;
		if (k >= *cnt)
			break;
		if (k + 1 < *cnt && c->heap[k + 1] < c->heap[k])
			k++;
		if (c->heap[k] >= last)
			break;
		c->heap[i] = c->heap[k];
		i = k;
	}
	c->heap[i] = last;
	return top;
}

/* --- tracks: one below the lowest of what was placed before in these columns --- */

struct span {
	uint32_t lo, hi; /* places in xs */
};

static int32_t tree_max(const struct chan *c, uint32_t node, struct span here, struct span want)
{
	if (want.hi < here.lo || want.lo > here.hi)
		return -1;
	if (want.lo <= here.lo && here.hi <= want.hi)
		return c->tree[node];
	uint32_t mid = here.lo + (here.hi - here.lo) / 2;
	int32_t a = tree_max(c, 2 * node, (struct span){here.lo, mid}, want);
	int32_t b = tree_max(c, 2 * node + 1, (struct span){mid + 1, here.hi}, want);
	return MAX(c->mark[node], MAX(a, b));
}

static void tree_set(struct chan *c, uint32_t node, struct span here, const struct span *want, int32_t track)
{
	if (want->hi < here.lo || want->lo > here.hi)
		return;
	c->tree[node] = MAX(c->tree[node], track);
	if (want->lo <= here.lo && here.hi <= want->hi) {
		c->mark[node] = MAX(c->mark[node], track);
		return;
	}
	uint32_t mid = here.lo + (here.hi - here.lo) / 2;
	tree_set(c, 2 * node, (struct span){here.lo, mid}, want, track);
	tree_set(c, 2 * node + 1, (struct span){mid + 1, here.hi}, want, track);
}

static uint32_t place_of(const struct chan *c, int32_t x)
{
	uint32_t lo = 0;
	uint32_t hi = c->x_cnt - 1;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->xs[mid] < x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void take_track(struct chan *c, struct graph_group *g)
{
	struct span all = {0, c->x_cnt - 1};
	struct span want = {place_of(c, g->a), place_of(c, g->b)};
	if (g->a == g->b)
		return;
	g->track = tree_max(c, 1, all, want) + 1;
	tree_set(c, 1, all, &want, g->track);
}

static int by_value(const void *x, const void *y)
{
	int32_t a = *(const int32_t *)x;
	int32_t b = *(const int32_t *)y;
	return a < b ? -1 : a > b;
}

static void columns(struct chan *c)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < c->cnt; k++) {
		c->xs[n++] = c->g[k].a;
		c->xs[n++] = c->g[k].b;
	}
	qsort(c->xs, n, sizeof(*c->xs), by_value);
	c->x_cnt = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!i || c->xs[i] != c->xs[i - 1])
			c->xs[c->x_cnt++] = c->xs[i];
	}
	for (size_t i = 0; i < 4 * (size_t)c->x_cnt; i++)
		c->tree[i] = c->mark[i] = -1;
}

static void channel(struct chan *c)
{
	uint32_t heap_cnt = 0;
	uint32_t forced = 0;
	for (uint32_t k = 0; k < c->cnt; k++)
		c->of_rank[k] = k;
	qsort_r(c->of_rank, c->cnt, sizeof(*c->of_rank), by_wish, c);
	for (uint32_t r = 0; r < c->cnt; r++)
		c->rank[c->of_rank[r]] = r;
	constrain(c);
	columns(c);
	for (uint32_t k = 0; k < c->cnt; k++) {
		if (!c->before_cnt[k])
			heap_push(c, &heap_cnt, c->rank[k]);
	}
	for (uint32_t done = 0; done < c->cnt; done++) {
		/* A circle: the best of those that wait goes first. */
		while (!heap_cnt) {
			uint32_t k = c->of_rank[forced++];
			if (!c->before_cnt[k] || c->before_cnt[k] == GRAPH_NONE)
				continue;
			c->before_cnt[k] = 0;
			heap_push(c, &heap_cnt, c->rank[k]);
		}
		uint32_t k = c->of_rank[heap_pop(c, &heap_cnt)];
		c->before_cnt[k] = GRAPH_NONE;
		take_track(c, &c->g[k]);
		for (uint32_t i = c->next_first[k]; i < c->next_first[k + 1]; i++) {
			uint32_t n = c->next[i];
			if (c->before_cnt[n] && c->before_cnt[n] != GRAPH_NONE && !--c->before_cnt[n])
				heap_push(c, &heap_cnt, c->rank[n]);
		}
	}
}

static struct err *room(struct graph_inner *in, struct chan *c)
{
	size_t legs = 1;
	size_t groups = 1;
	for (uint32_t i = 0; i <= in->layer_cnt; i++) {
		uint32_t cnt = in->group_first[i + 1] - in->group_first[i];
		groups = MAX(groups, cnt);
		if (cnt) {
			const struct graph_group *last = &in->groups[in->group_first[i + 1] - 1];
			legs = MAX(legs, last->leg + last->leg_cnt - in->groups[in->group_first[i]].leg);
		}
	}
	c->rank = ARENA_ARRAY(in->a, uint32_t, groups);
	c->of_rank = ARENA_ARRAY(in->a, uint32_t, groups);
	c->before_cnt = ARENA_ARRAY(in->a, uint32_t, groups);
	c->next_first = ARENA_ARRAY(in->a, uint32_t, groups + 2);
	c->heap = ARENA_ARRAY(in->a, uint32_t, groups);
	c->xs = ARENA_ARRAY(in->a, int32_t, 2 * groups);
	c->tree = ARENA_ARRAY(in->a, int32_t, 8 * groups);
	c->mark = ARENA_ARRAY(in->a, int32_t, 8 * groups);
	c->next = ARENA_ARRAY(in->a, uint32_t, legs);
	c->by_x = ARENA_ARRAY(in->a, uint32_t, legs);
	c->group_of = ARENA_ARRAY(in->a, uint32_t, legs);
	bool ok = c->rank && c->of_rank && c->before_cnt && c->next_first && c->heap && c->xs && c->tree && c->mark && c->next &&
		  c->by_x && c->group_of;
	return ok ? NULL : &err_nomem;
}

const struct graph_group *graph_group_at(const struct graph_inner *in, uint32_t chan, uint32_t net)
{
	uint32_t lo = in->group_first[chan];
	uint32_t hi = in->group_first[chan + 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (in->groups[mid].net < net)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < in->group_first[chan + 1] && in->groups[lo].net == net ? &in->groups[lo] : NULL;
}

struct err *graph_tracks(struct graph_inner *in)
{
	struct chan c = {.in = in};
	size_t most = 2 * (size_t)in->g->edge_cnt + 2 * (size_t)in->node_cnt + 4 * (size_t)in->g->box_cnt;
	in->legs = ARENA_ARRAY(in->a, struct graph_leg, most);
	if (!in->legs)
		return &err_nomem;
	legs_make(in);
	struct err *e = groups_make(in);
	if (!e)
		e = room(in, &c);
	for (uint32_t i = 0; i <= in->layer_cnt && !e; i++) {
		c.g = in->groups + in->group_first[i];
		c.cnt = in->group_first[i + 1] - in->group_first[i];
		if (!c.cnt)
			continue;
		c.legs = in->legs + c.g[0].leg;
		c.leg_cnt = c.g[c.cnt - 1].leg + c.g[c.cnt - 1].leg_cnt - c.g[0].leg;
		channel(&c);
		if (graph_is_cancelled(in))
			e = err_new(ERR_CANCELLED, "stopped");
	}
	return e;
}
