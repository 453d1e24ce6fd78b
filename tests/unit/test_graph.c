/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of graphs by its properties: no cell of an edge in a box, every edge from its box to its target, nothing
 * outside of the picture, the same picture every time; over made-up graphs of many shapes and over the functions of a
 * real program.
 */
#include "session/session.h"
#include "tui/graph_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROGRAM "/bin/bash"

static uint32_t rng = 1;

static uint32_t rnd(uint32_t below)
{
	rng = rng * 1664525u + 1013904223u;
	return below ? (uint32_t)((uint64_t)(rng >> 8) * below >> 24) : 0;
}

/* --- what holds for every layout --- */

static bool is_in_box(const struct graph_box *b, int32_t x0, int32_t y0, const struct graph_point *to)
{
	return x0 < b->x + b->w && to->x >= b->x && y0 < b->y + b->h && to->y >= b->y;
}

static void check_span(const struct graph *g, const struct graph_point *a, const struct graph_point *b)
{
	struct graph_point lo = {MIN(a->x, b->x), MIN(a->y, b->y)};
	struct graph_point hi = {MAX(a->x, b->x), MAX(a->y, b->y)};
	uint32_t first;
	uint32_t end = graph_layers(g, lo.y, hi.y + 1, &first);
	assert_true(lo.x == hi.x || lo.y == hi.y);
	assert_true(lo.x >= 0 && lo.y >= 0 && hi.x < g->w && hi.y < g->h);
	for (uint32_t l = first; l < end; l++) {
		const uint32_t *boxes;
		uint32_t cnt = graph_layer_boxes(g, l, &boxes);
		/* The boxes stand from left to right: the first that ends right of the line's left end, and on from it. */
		uint32_t at = 0;
		for (uint32_t n = cnt; n;) {
			const struct graph_box *box = &g->boxes[boxes[at + n / 2]];
			if (box->x + box->w <= lo.x) {
				at += n / 2 + 1;
				n -= n / 2 + 1;
			} else {
				n /= 2;
			}
		}
		for (; at < cnt && g->boxes[boxes[at]].x <= hi.x; at++)
			assert_false(is_in_box(&g->boxes[boxes[at]], lo.x, lo.y, &hi));
	}
}

static void check_boxes(const struct graph *g)
{
	uint32_t seen = 0;
	for (uint32_t l = 0; l < g->layer_cnt; l++) {
		const uint32_t *boxes;
		uint32_t cnt = graph_layer_boxes(g, l, &boxes);
		for (uint32_t i = 0; i < cnt; i++) {
			const struct graph_box *b = &g->boxes[boxes[i]];
			assert_int_equal(b->layer, l);
			assert_true(b->x >= 0 && b->y >= 0 && b->x + b->w <= g->w && b->y + b->h <= g->h);
			assert_true(b->y >= g->boxes[g->entry].y);
			if (i)
				assert_true(b->x > g->boxes[boxes[i - 1]].x + g->boxes[boxes[i - 1]].w);
			seen++;
		}
	}
	assert_int_equal(seen, g->box_cnt);
	assert_int_equal(g->boxes[g->entry].layer, 0);
}

static void check_lines(const struct graph *g)
{
	const struct graph_line *lines;
	for (int lanes = 0; lanes < 2; lanes++) {
		uint32_t cnt = lanes ? graph_lanes(g, &lines) : graph_lines(g, 0, g->h, &lines);
		for (uint32_t i = 0; i < cnt; i++) {
			const struct graph_line *l = &lines[i];
			assert_true(l->x0 <= l->x1 && l->y0 <= l->y1 && l->to < g->box_cnt && l->kinds);
			check_span(g, &(struct graph_point){l->x0, l->y0}, &(struct graph_point){l->x1, l->y1});
		}
	}
}

static void check_edges(const struct graph *g)
{
	struct arena a = {0};
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		const struct graph_edge *e = &g->edges[i];
		const struct graph_box *from = &g->boxes[e->from];
		const struct graph_box *to = &g->boxes[e->to];
		struct graph_point *p;
		uint32_t cnt;
		int32_t x;
		arena_reset(&a);
		assert_null(graph_path(g, i, &a, &p, &cnt));
		assert_true(cnt >= 2);
		assert_true(p[0].y == from->y + from->h && p[0].x >= from->x && p[0].x < from->x + from->w);
		assert_true(p[cnt - 1].y == to->y - 1 && p[cnt - 1].x >= to->x && p[cnt - 1].x < to->x + to->w);
		assert_true(graph_entry_x(g, e->to, e->is_back, &x));
		assert_int_equal(x, p[cnt - 1].x);
		for (uint32_t k = 1; k < cnt; k++)
			check_span(g, &p[k - 1], &p[k]);
		assert_true(e->is_back ? from->layer >= to->layer : from->layer < to->layer);
		assert_true(e->is_back || e->from != e->to);
	}
	arena_fini(&a);
}

/* Whether the lines cover a cell, as they are asked for when that cell is drawn. */
static bool is_drawn(const struct graph *g, struct graph_point p, uint32_t to)
{
	const struct graph_line *l;
	for (int lanes = 0; lanes < 2; lanes++) {
		uint32_t cnt = lanes ? graph_lanes(g, &l) : graph_lines(g, p.y, p.y + 1, &l);
		for (uint32_t i = 0; i < cnt; i++) {
			if (l[i].to == to && p.x >= l[i].x0 && p.x <= l[i].x1 && p.y >= l[i].y0 && p.y <= l[i].y1)
				return true;
		}
	}
	return false;
}

/* Every cell of some edges is drawn by a line of the same destination. */
static void check_drawn(const struct graph *g)
{
	struct arena a = {0};
	uint32_t step = MAX(g->edge_cnt / 16, 1);
	for (uint32_t i = 0; i < g->edge_cnt; i += step) {
		struct graph_point *p;
		uint32_t cnt;
		assert_null(graph_path(g, i, &a, &p, &cnt));
		for (uint32_t k = 1; k < cnt; k++) {
			struct graph_point at = p[k - 1];
			int32_t dx = (p[k].x > at.x) - (p[k].x < at.x);
			int32_t dy = (p[k].y > at.y) - (p[k].y < at.y);
			int32_t len = abs(p[k].x - at.x) + abs(p[k].y - at.y);
			int32_t stride = MAX(len / 40, 1);
			for (int32_t n = 0; n <= len; n += stride)
				assert_true(is_drawn(g, (struct graph_point){at.x + n * dx, at.y + n * dy}, g->edges[i].to));
		}
		arena_reset(&a);
	}
	arena_fini(&a);
}

static void lay_out(struct graph *g, struct arena *a)
{
	struct err *e = graph_layout(g, a);
	if (e)
		fail_msg("%s", e->text);
}

static void check_all(struct graph *g)
{
	struct arena a = {0};
	struct arena b = {0};
	lay_out(g, &a);
	check_boxes(g);
	check_lines(g);
	check_edges(g);
	check_drawn(g);
	struct graph again = *g;
	again.boxes = ARENA_ARRAY(&b, struct graph_box, g->box_cnt);
	again.edges = ARENA_ARRAY(&b, struct graph_edge, (size_t)g->edge_cnt + 1);
	for (uint32_t i = 0; i < g->box_cnt; i++)
		again.boxes[i] = (struct graph_box){.w = g->boxes[i].w, .h = g->boxes[i].h};
	for (uint32_t i = 0; i < g->edge_cnt; i++)
		again.edges[i] = (struct graph_edge){.from = g->edges[i].from, .to = g->edges[i].to, .kind = g->edges[i].kind};
	lay_out(&again, &b);
	assert_memory_equal(again.boxes, g->boxes, g->box_cnt * sizeof(*g->boxes));
	assert_memory_equal(again.edges, g->edges, g->edge_cnt * sizeof(*g->edges));
	assert_int_equal(again.w, g->w);
	assert_int_equal(again.h, g->h);
	arena_fini(&a);
	arena_fini(&b);
}

/* --- made-up graphs --- */

enum shape { CHAIN, LADDER, RANDOM, TREE, SWITCH, NEST, LOOPS, ISLANDS, LOCAL, SHAPE_COUNT };

static uint32_t target_of(enum shape s, uint32_t from, uint32_t n, uint32_t k)
{
	uint32_t r = rnd(20); /* once: MIN and MAX evaluate twice */
	uint32_t r2 = rnd(6);
	switch (s) {
	case CHAIN:
		return k ? from : (from + 1) % n; /* and to itself */
	case LADDER:
		return MIN(from + 1 + k, n - 1);
	case TREE:
		return (2 * from + 1 + k) % n;
	case SWITCH:
		return from ? n - 1 : rnd(n);
	case NEST:
		return k ? n - 1 - from : MIN(from + 1, n - 1);
	case LOOPS:
		return k ? from - MIN(from, r) : MIN(from + 1, n - 1);
	case ISLANDS:
		return MIN(from / 7 * 7 + r % 7, n - 1);
	case LOCAL:
		return MIN(n - 1, from + r - MIN(from, r2));
	default:
		return rnd(n);
	}
}

static void make(struct graph *g, enum shape s, uint32_t n, struct arena *a)
{
	static const uint8_t kinds[] = {GRAPH_FALL, GRAPH_TAKEN, GRAPH_JUMP, GRAPH_SWITCH};
	uint32_t outs = s == SWITCH ? MIN(n, 400) : 0;
	*g = (struct graph){.box_cnt = n, .entry = s == ISLANDS ? n / 2 : 0};
	g->boxes = ARENA_ARRAY(a, struct graph_box, n);
	g->edges = ARENA_ARRAY(a, struct graph_edge, (size_t)n * 3 + outs);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t cnt = s == SWITCH && i == 0 ? outs : rnd(4) ? 2 : rnd(4);
		g->boxes[i] = (struct graph_box){.w = 1 + (int32_t)rnd(60), .h = 1 + (int32_t)rnd(30)};
		for (uint32_t k = 0; k < cnt; k++)
			g->edges[g->edge_cnt++] = (struct graph_edge){.from = i, .to = target_of(s, i, n, k), .kind = kinds[rnd(4)]};
	}
}

static void test_made_up(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 8, 13, 40, 150, 700, 3000};
	for (int s = 0; s < SHAPE_COUNT; s++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			for (uint32_t round = 0; round < (sizes[i] < 100 ? 12 : 1); round++) {
				struct arena a = {0};
				struct graph g;
				make(&g, (enum shape)s, sizes[i], &a);
				check_all(&g);
				arena_fini(&a);
			}
		}
	}
}

/* Small graphs of every kind of trouble at once: parallel edges, loops into loops, boxes of one cell. */
static void test_many_small(void **state)
{
	for (uint32_t round = 0; round < 3000; round++) {
		struct arena a = {0};
		struct graph g;
		make(&g, RANDOM, 1 + rnd(12), &a);
		for (uint32_t i = 0; i < g.box_cnt && round % 3 == 0; i++)
			g.boxes[i].w = g.boxes[i].h = 1 + (int32_t)rnd(2);
		check_all(&g);
		arena_fini(&a);
	}
}

static void test_ladder_is_narrow(void **state)
{
	struct graph_box boxes[4] = {{.w = 20, .h = 5}, {.w = 20, .h = 5}, {.w = 20, .h = 5}, {.w = 20, .h = 5}};
	struct graph_edge edges[] = {{0, 1, GRAPH_FALL}, {0, 2, GRAPH_TAKEN}, {1, 3, GRAPH_JUMP}, {2, 3, GRAPH_FALL}};
	struct graph g = {.boxes = boxes, .edges = edges, .box_cnt = 4, .edge_cnt = 4};
	struct arena a = {0};
	lay_out(&g, &a);
	assert_int_equal(g.crossing_cnt, 0);
	assert_true(boxes[1].y == boxes[2].y && boxes[1].x < boxes[2].x);
	assert_int_equal(g.w, 43);
	assert_in_range(boxes[0].x, 10, 13); /* above the middle of its two */
	assert_in_range(boxes[3].x, 10, 13);
	assert_true(g.h <= 3 * 5 + 2 * 4);
	arena_fini(&a);
}

static void test_loop_stands_at_a_side(void **state)
{
	struct graph_box boxes[4] = {{.w = 20, .h = 3}, {.w = 20, .h = 3}, {.w = 20, .h = 3}, {.w = 20, .h = 3}};
	struct graph_edge edges[] = {{0, 1, GRAPH_FALL}, {1, 2, GRAPH_FALL}, {2, 1, GRAPH_TAKEN}, {2, 3, GRAPH_FALL}, {3, 3, GRAPH_JUMP}};
	struct graph g = {.boxes = boxes, .edges = edges, .box_cnt = 4, .edge_cnt = 5};
	struct arena a = {0};
	struct graph_point *p;
	uint32_t cnt;
	lay_out(&g, &a);
	assert_true(edges[2].is_back && edges[4].is_back && !edges[0].is_back && !edges[3].is_back);
	assert_null(graph_path(&g, 2, &a, &p, &cnt));
	assert_int_equal(cnt, 6);
	assert_true(p[2].x == p[3].x && p[2].x < boxes[1].x && p[2].x < boxes[2].x); /* the way up is to the left of the loop */
	arena_fini(&a);
}

static void test_refusals(void **state)
{
	struct graph_box box = {.w = 1, .h = 1};
	struct graph_edge edge = {.to = 1, .kind = GRAPH_JUMP};
	struct graph g = {.boxes = &box, .edges = &edge, .box_cnt = 1, .edge_cnt = 1};
	struct arena a = {0};
	struct err *e = graph_layout(&g, &a);
	assert_int_equal(e->kind, ERR_INVALID);
	err_free(e);
	edge.to = 0;
	box.w = 0;
	e = graph_layout(&g, &a);
	assert_int_equal(e->kind, ERR_INVALID);
	err_free(e);
	box.w = 1;
	atomic_bool stop = true;
	g.cancel = &stop;
	e = graph_layout(&g, &a);
	assert_int_equal(e->kind, ERR_CANCELLED);
	err_free(e);
	g.cancel = NULL;
	arena_fini(&a);
	/* Memory that ends at any place is said, and nothing is leaked or written past. */
	struct arena make_arena = {0};
	make(&g, LOOPS, 200, &make_arena);
	size_t limit = 1000;
	for (bool done = false; !done; limit += limit / 8) {
		arena_init(&a, limit);
		e = graph_layout(&g, &a);
		done = !e;
		if (e && e->kind != ERR_NOMEM)
			fail_msg("%s", e->text);
		err_free(e);
		arena_fini(&a);
	}
	assert_true(limit > 20000);
	arena_fini(&make_arena);
}

/* --- real functions --- */

static uint8_t kind_of(const char *name)
{
	return !strcmp(name, "fall") ? GRAPH_FALL : !strcmp(name, "taken") ? GRAPH_TAKEN : !strcmp(name, "switch") ? GRAPH_SWITCH : GRAPH_JUMP;
}

static void from_blocks(struct graph *g, const struct ses_block *b, uint32_t cnt, struct arena *a)
{
	uint32_t edges = 0;
	for (uint32_t i = 0; i < cnt; i++)
		edges += b[i].succ_cnt;
	*g = (struct graph){.box_cnt = cnt, .boxes = ARENA_ARRAY(a, struct graph_box, cnt),
			    .edges = ARENA_ARRAY(a, struct graph_edge, (size_t)edges + 1)};
	for (uint32_t i = 0; i < cnt; i++) {
		g->boxes[i] = (struct graph_box){.w = 20 + (int32_t)(b[i].addr % 40), .h = 2 + (int32_t)MIN((b[i].end - b[i].addr) / 4, 500)};
		for (uint32_t k = 0; k < b[i].succ_cnt; k++)
			g->edges[g->edge_cnt++] = (struct graph_edge){.from = i, .to = b[i].succ[k].id, .kind = kind_of(b[i].succ[k].kind)};
	}
}

static void test_real_functions(void **state)
{
	struct ses_opts opts = {.no_store = true};
	struct ses_call call = {.caps = SES_CAP_READ};
	struct ses_page page = {.limit = 100000};
	struct ses *ses;
	struct ses_func *funcs;
	struct arena a = {0};
	uint32_t checked = 0;
	uint32_t most = 0;
	struct err *e = ses_open(PROGRAM, &opts, &ses);
	if (e) {
		err_free(e);
		skip();
	}
	struct ses_snap *sn = ses_snap_get(ses);
	assert_null(ses_functions(sn, &call, &page, &a, &funcs));
	for (uint32_t i = 0; i < page.cnt; i++) {
		struct arena one = {0};
		struct ses_block *blocks;
		struct graph g;
		uint32_t cnt;
		if (funcs[i].blocks < 2 || (i % 4 && funcs[i].blocks < 60))
			continue;
		assert_null(ses_blocks(sn, &call, funcs[i].addr, &one, &blocks, &cnt));
		from_blocks(&g, blocks, cnt, &one);
		check_all(&g);
		most = MAX(most, cnt);
		checked++;
		arena_fini(&one);
	}
	print_message("%u functions, the largest of %u blocks\n", checked, most);
	assert_true(checked > 128 && most > 200);
	ses_snap_put(sn);
	ses_close(ses);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_many_small),
		cmocka_unit_test(test_ladder_is_narrow),
		cmocka_unit_test(test_loop_stands_at_a_side),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_real_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
