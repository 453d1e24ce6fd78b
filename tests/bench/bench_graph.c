/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays out a graph read from stdin ("BOXES EDGES ENTRY", then "W H" for each box, then "FROM TO" for each edge) as often
 * as argv[1] says and prints the nanoseconds of CPU time of each, then what came out: columns, rows, crossings.
 */
#include "tui/graph_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static bool read_graph(struct graph *g, struct arena *a)
{
	if (scanf("%u %u %u", &g->box_cnt, &g->edge_cnt, &g->entry) != 3)
		return false;
	g->boxes = ARENA_ARRAY(a, struct graph_box, g->box_cnt);
	g->edges = ARENA_ARRAY(a, struct graph_edge, g->edge_cnt + (size_t)1);
	if (!g->boxes || !g->edges)
		return false;
	for (uint32_t i = 0; i < g->box_cnt; i++) {
		if (scanf("%d %d", &g->boxes[i].w, &g->boxes[i].h) != 2)
			return false;
	}
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		if (scanf("%u %u", &g->edges[i].from, &g->edges[i].to) != 2)
			return false;
		g->edges[i].kind = GRAPH_JUMP;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct arena input = {0};
	struct graph g = {0};
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	if (!read_graph(&g, &input)) {
		fprintf(stderr, "bench_graph: that is not a graph\n");
		return 2;
	}
	for (long i = 0; i < rounds; i++) {
		struct arena a = {0};
		struct timespec from;
		struct timespec to;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		struct err *e = graph_layout(&g, &a);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		arena_fini(&a);
		if (e) {
			fprintf(stderr, "bench_graph: %s\n", e->text);
			return 1;
		}
		printf("%" PRId64 "\n", (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec));
	}
	printf("%d %d %" PRIu64 "\n", g.w, g.h, g.crossing_cnt);
	arena_fini(&input);
	return 0;
}
