/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include "structure/structure.h"

/*
 * Control flow graphs and what they are walked with: who walks a graph and who executes the tree made of it asks the same oracle, and must
 * come through the same blocks.
 */

/* A graph that is being put together. Zero-initialise; graph_fini() releases. */
struct graph {
	struct str_block *blocks;
	struct str_case *cases;
	uint32_t cnt, cap, case_cnt, case_cap;
};

void graph_fini(struct graph *g);
/* Appends a block that leaves; its number. */
uint32_t graph_add(struct graph *g, uint32_t cost);
void graph_goto(struct graph *g, uint32_t b, uint32_t to);
void graph_cond(struct graph *g, uint32_t b, uint32_t yes, uint32_t no);
/* A switch with everything to `other`; then one case. Cases of one block follow each other. */
void graph_switch(struct graph *g, uint32_t b, uint32_t other);
void graph_case(struct graph *g, uint32_t b, int64_t lo, int64_t hi, uint32_t to);
struct str_graph graph_get(const struct graph *g);

/* Repeatable random numbers. */
struct graph_rand {
	uint64_t state;
};
uint32_t graph_rand(struct graph_rand *r, uint32_t below);

/* Any graph: of `cnt` blocks, edges anywhere, or near (`span` blocks at most). */
void graph_random(struct graph *g, struct graph_rand *r, uint32_t cnt, uint32_t span);
/* The graph of a program that has no goto: sequences, ifs, loops, switches, breaks, continues, returns nested `depth` deep. */
void graph_program(struct graph *g, struct graph_rand *r, unsigned depth);

/* The blocks a walk comes through, without those that only lead on; `seed` is the oracle. Gives how many, `max` at most, and whether it
 * left. */
struct graph_trace {
	uint32_t *blocks;
	uint32_t cnt, max;
	bool has_left;
};
void graph_walk(const struct str_graph *g, uint64_t seed, struct graph_trace *t);
/* The same of a tree. False: what it says makes no sense. `parents`: scratch of node_cnt. */
bool graph_run(const struct str_graph *g, const struct str_tree *tree, uint64_t seed, uint32_t *parents, struct graph_trace *t);

#endif
