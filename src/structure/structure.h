/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRUCTURE_STRUCTURE_H
#define STRUCTURE_STRUCTURE_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Structured control flow. In goes a graph that knows of blocks only how they end and what they weigh; out comes a tree of
 * sequences, ifs, loops, switches, and gotos where nothing else says it. What is in a block is the business of who asks, who then
 * prints the tree with its own statements.
 *
 * Executing the tree goes through the same blocks in the same order as walking the graph, for every graph, also
 * irreducible ones. Every block is in the tree, in one place or, where it is small, in several; what cannot be reached stands at the
 * end, behind a label. Left out are only blocks that do nothing but go on, when something leads to them.
 *
 * Everything is an index into flat arrays; nothing recurses, so that neither size nor depth of the graph matters.
 */

#define STR_NONE UINT32_MAX

/* How a block ends. */
enum str_end {
	STR_END_GOTO,   /* to[0] */
	STR_END_COND,   /* to[0] when the condition holds, else to[1] */
	STR_END_SWITCH, /* by value: `cases`, to[1] for every other */
	STR_END_LEAVE,  /* return, tail call, trap: control does not come back into the graph */
};

struct str_block {
	uint8_t end;        /* enum str_end */
	/* Its statements may be part of a condition: none, or expressions that C can put before a comma. */
	bool is_expr;
	/* Its statements are what a loop does between two rounds (i++): they may stand in the head of a `for`. Only with is_expr. */
	bool is_step;
	uint32_t cost;      /* statements, the end left out; a LEAVE counts what it prints as well. 0: it only ends */
	uint32_t to[2];
	uint32_t first_case, case_cnt; /* SWITCH: in `cases`; a value is in one of them at most */
};

struct str_case {
	int64_t lo, hi; /* both included */
	uint32_t to;
};

/* Block 0 is the entry. The order of blocks is that of their addresses: what could stand in any order stands in this. */
struct str_graph {
	const struct str_block *blocks;
	const struct str_case *cases;
	uint32_t block_cnt, case_cnt;
};

/* --- conditions -------------------------------------------------------------------------------------------- */
enum str_cond_op { STR_COND_BLOCK, STR_COND_AND, STR_COND_OR };

/* BLOCK: the statements of block `a` (where it has any), then the condition it ends with. AND, OR: conditions `a`, `b`, and b
 * happens only where C's && and || say so. is_not turns the whole over; only BLOCK has it. */
struct str_cond {
	uint8_t op; /* enum str_cond_op */
	bool is_not;
	/* BLOCK: the statements stand before, as a STR_BLOCK node of their own, so only the condition is meant. */
	bool is_bare;
	uint32_t a, b;
};

/* --- the tree ------------------------------------------------------------------------------------------------ */
enum str_kind {
	STR_SEQ,      /* children, one after the other */
	STR_BLOCK,    /* the statements of `block`, without what it ends with */
	STR_LEAVE,    /* what `block` ends with, a STR_END_LEAVE */
	STR_IF,       /* `cond`; children: then, else (left out where empty), both STR_SEQ */
	STR_LOOP,     /* for ever; child: the body, a STR_SEQ */
	STR_WHILE,    /* `cond`; child: the body. With `block` not STR_NONE a `for`, whose step that block is */
	STR_DO,       /* the body, then `cond` */
	STR_SWITCH,   /* on what `block` ends with; children: STR_CASE, each falls into the next */
	STR_CASE,     /* the cases of the switch that go to `block`, with is_default everything else; child: a STR_SEQ */
	STR_BREAK,    /* of the innermost loop or switch */
	STR_CONTINUE, /* of the innermost loop */
	STR_GOTO,     /* to the label of `block` */
	STR_LABEL,    /* of `block`; every block has one at most */
};

struct str_node {
	uint8_t kind; /* enum str_kind */
	bool is_default;
	bool falls;   /* CASE: control may go on into the next one, or out of the switch at its end */
	bool is_copy; /* BLOCK, LEAVE: the block has an earlier place in the tree */
	uint32_t block;
	uint32_t cond;        /* in `conds` */
	uint32_t first_value, value_cnt; /* CASE: in `values` */
	uint32_t first, next; /* child; sibling; STR_NONE: none */
};

struct str_tree {
	const struct str_node *nodes;
	const struct str_cond *conds;
	const uint32_t *values; /* numbers of cases of the graph, as they stand there for each STR_CASE */
	uint32_t node_cnt, cond_cnt;
	uint32_t root;       /* a STR_SEQ */
	uint32_t goto_cnt;   /* STR_GOTO nodes that are in it */
	uint32_t copy_cnt;   /* nodes with is_copy */
	uint32_t depth;      /* of the deepest node that opens a brace */
	bool is_plain;       /* the budget ran out: without schemas */
};

struct str_opts {
	/* Only what always succeeds: nested by dominators, a goto where control does not simply go on. */
	bool is_plain;
	/* A goto to code that soon leaves or joins is replaced by that code when it costs this much at most; 0: by none. */
	uint32_t copy_cost_max;
	/* Braces nest no deeper; what is deeper stands at the end of the function, behind a label. 0: 24. */
	uint32_t depth_max;
};

/*
 * The tree of a graph, in `a` (which also takes the scratch memory). Linear but for sorting. Errors: bad_input for a graph
 * that names a block it does not have, no memory.
 */
_must_use_ struct err *str_build(struct arena *a, const struct str_graph *g, const struct str_opts *opts, struct str_tree *ret);

/* Whether the tree says what the graph says: each edge leads where it led, every block is there, and so is every label.
 * Null when it does; else internal, naming the block. */
_must_use_ struct err *str_check(struct arena *a, const struct str_graph *g, const struct str_tree *t);

#endif
