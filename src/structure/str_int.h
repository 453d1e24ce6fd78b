/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRUCTURE_STR_INT_H
#define STRUCTURE_STR_INT_H

#include "structure/structure.h"

/* A loop of more loops around it than this is written with gotos. */
#define STR_LOOP_DEPTH_MAX 20
/* Conditions of more blocks than this are not joined further. */
#define STR_COND_LEAVES_MAX 24

/*
 * The graph as it is worked on. Blocks that do nothing but go on are no longer there: edges lead past them. What is known of a
 * block stands in arrays by its number.
 */
struct str_work {
	struct arena *a;
	const struct str_graph *g;
	const struct str_opts *o;
	bool sinks;             /* as little jumps as there may be, at the price of copies and longer conditions */
	uint32_t n;             /* blocks and, the last one, one that leads to the entry and to what cannot be reached from there */
	bool *is_main;          /* can be reached from the entry; edges from others to these count for nothing */
	bool *is_gone;          /* part of another's condition */
	uint32_t *skip;         /* str_skip() */
	uint8_t *end;           /* enum str_end; a condition both ways of which are one is a GOTO */
	uint32_t *to;           /* two of each block */
	uint32_t *tgt_first;    /* n + 1: of a SWITCH, its different targets in `tgts`, ascending */
	uint32_t *tgts;
	uint32_t *cost;
	uint32_t *cond;         /* of a COND, in `conds` */
	bool *is_mixed;         /* its condition has other blocks in it */
	struct str_cond *conds;
	uint8_t *leaves;        /* of each condition */
	uint32_t cond_cnt, cond_cap;

	uint32_t *rpo;          /* all that are there, reverse postorder */
	uint32_t *rpo_no;       /* place of a block in it, or STR_NONE */
	uint32_t rpo_cnt;
	uint32_t *pre;          /* the same in the order of the search, and each one's parent there by place */
	uint32_t *pre_no;
	uint32_t *pre_parent;
	uint32_t *pred_first;   /* n + 1 */
	uint32_t *preds;        /* one for each edge: a condition counts twice, a switch once for each target */
	uint32_t *idom;
	uint32_t *dom_no, *dom_size; /* a dominates b: dom_no[a] <= dom_no[b] < dom_no[a] + dom_size[a] */
	uint32_t *loop;         /* header of the innermost loop, or STR_NONE */
	uint32_t *loop_up;      /* of a header: that of the loop around it */
	bool *is_header;
	uint32_t *weight;       /* cost of all it dominates */
	uint32_t *in_cnt;       /* edges but those back to a header */
};

/* --- str_graph.c */
uint32_t str_succ_cnt(const struct str_work *w, uint32_t b);
uint32_t str_succ(const struct str_work *w, uint32_t b, uint32_t i);
/* To what leads past blocks that do nothing: skip[b]. Also what str_check() goes by. */
_must_use_ uint32_t *str_skip(struct arena *a, const struct str_graph *g);
_must_use_ struct err *str_graph_check(const struct str_graph *g);
/* Each false when out of memory. */
bool str_order(struct str_work *w);
bool str_edges(struct str_work *w);
bool str_dominators(struct str_work *w);
bool str_loops(struct str_work *w);

/* The block before all others. */
static inline uint32_t str_top(const struct str_work *w)
{
	return w->n - 1;
}

static inline bool str_dominates(const struct str_work *w, uint32_t x, uint32_t b)
{
	return w->dom_no[b] - w->dom_no[x] < w->dom_size[x];
}

/* An edge back to the beginning of a loop. */
static inline bool str_is_back(const struct str_work *w, uint32_t from, uint32_t to)
{
	return w->is_header[to] && str_dominates(w, to, from);
}

/* --- str_cond.c */
/* Blocks that only decide become part of the condition before them. */
bool str_join_conds(struct str_work *w);
uint32_t str_cond_new(struct str_work *w, struct str_cond c, unsigned leaves);
/* The opposite; changes the condition. */
void str_cond_turn(struct str_work *w, uint32_t cond);
/* Of its conditions the first one, a STR_COND_BLOCK. */
uint32_t str_cond_first(const struct str_cond *conds, uint32_t cond);

/* --- the tree while it is built -------------------------------------------------------------------------- */
/* Where a jump is that says what the tree says anyway: only while it is built. */
#define STR_NEXT (STR_LABEL + 1)

/* As struct str_node; jumps (NEXT, BREAK, CONTINUE, GOTO) keep the block they lead to, so that they can be thought over again. */
struct str_item {
	uint8_t kind; /* enum str_kind, STR_NEXT */
	bool is_default;
	bool falls;   /* control may come out at its end */
	uint32_t block; /* as there; of loops the header, or of a DO what it decides with */
	uint32_t step;  /* of a WHILE: the block a `for` has as its step, or STR_NONE */
	uint32_t cond;
	uint32_t first, last, next;
	uint32_t jump_cnt;  /* loops, switches: breaks of it */
	uint32_t again_cnt; /* loops: continues of it */
	uint32_t first_value, value_cnt; /* cases, at the end: as there */
};

struct str_shape {
	struct str_work *w;
	struct str_item *items;
	uint32_t cnt, cap;
	uint32_t root;
	uint32_t *refs;       /* per block: gotos to it */
	bool *is_direct;      /* per block: an edge leads to it that is no jump */
	uint32_t *seqs;       /* all of them, what contains others first */
	uint32_t seq_cnt;
	uint32_t depth;       /* braces around the deepest */
	uint32_t copy_budget; /* cost that may still be copied */
	bool failed;
};

uint32_t str_item_new(struct str_shape *s, uint8_t kind, uint32_t block);
void str_append(struct str_shape *s, uint32_t seq, uint32_t item);
static inline bool str_is_jump(const struct str_item *i)
{
	return i->kind == STR_NEXT || i->kind == STR_BREAK || i->kind == STR_CONTINUE || i->kind == STR_GOTO;
}

/* --- str_place.c: where each block stands; all jumps are GOTO */
bool str_place(struct str_shape *s);
/* --- str_tidy.c: the tree as people write it */
bool str_tidy(struct str_shape *s);
/* The tree as it is handed out. */
bool str_give(struct str_shape *s, struct str_tree *ret);

#endif
