/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECOMP_DEC_INT_H
#define DECOMP_DEC_INT_H

#include "decomp/dec.h"

/* --- sets of locations ------------------------------------------------------------------------------------------------- */
#define DEC_LOC_MAX (64 * DEC_LOC_WORDS)

struct dec_set {
	uint64_t w[DEC_LOC_WORDS];
};

static inline bool dec_set_has(const struct dec_set *s, unsigned loc)
{
	return s->w[loc / 64] >> loc % 64 & 1;
}

static inline void dec_set_add(struct dec_set *s, unsigned loc)
{
	s->w[loc / 64] |= (uint64_t)1 << loc % 64;
}

/* What the convention of a machine says of its locations. */
struct dec_conv {
	struct dec_set args;      /* a callee may read them */
	struct dec_set results;   /* a caller may read them behind a call */
	struct dec_set changes;   /* a callee may change them */
	struct dec_set keeps;     /* a function leaves them as they were */
	uint16_t int_arg[6];      /* in the order of arguments */
	unsigned int_arg_cnt;
	uint16_t df;              /* IR_LOC_NONE: none */
	uint16_t canary_base;     /* the stack protector's value lies at this location plus canary_off */
	uint32_t canary_off;
	unsigned ptr_bytes;
};

void dec_conv_of(const struct ir_machine *m, struct dec_conv *ret);

/* --- blocks --------------------------------------------------------------------------------------------------------------- */
/* Of blocks that can be reached: order, dominators. In an arena. */
struct dec_graph {
	struct ir_edges succs, preds;
	uint32_t *rpo;       /* blocks in reverse post-order, rpo_cnt of them */
	uint32_t *rpo_at;    /* per block, its place there; UINT32_MAX: not reached */
	uint32_t rpo_cnt;
	bool has_loop;       /* an edge leads to a block that is no later there: what flows along edges is not known after one round */
	uint32_t *idom;      /* per block; that of block 0 is itself */
	uint32_t *dom_first; /* intervals of the dominator tree: a dominates b when a's interval holds b's first */
	uint32_t *dom_last;
};

bool dec_graph_make(struct ir_func *f, struct arena *a, struct dec_graph *ret);
/* Without dominators. */
bool dec_graph_flow(struct ir_func *f, struct arena *a, struct dec_graph *ret);

static inline bool dec_dominates(const struct dec_graph *g, uint32_t a, uint32_t b)
{
	return g->dom_first[a] <= g->dom_first[b] && g->dom_first[b] <= g->dom_last[a];
}

/* --- building with folding -------------------------------------------------------------------------------------------- */
/*
 * Records go into blocks of `f` as ir_emit() has them, but what is made of constants is a constant, what the rules know
 * simpler is that, and what a dominating block has already made is that value.
 */
struct dec_build {
	struct ir_func *f;
	const struct dec_graph *g; /* of the blocks; numbers as in f */
	uint32_t *block_of;        /* per record of f */
	uint64_t *zeros;           /* per record of up to 64 bits: bits known to be 0 */
	uint32_t cap;              /* of the two */
	uint32_t *table;           /* values by content, open addressing, UINT32_MAX: empty */
	uint32_t table_cap;
	uint32_t steps, step_limit;
	unsigned depth;            /* rules within rules */
	unsigned rules_off;        /* as the options have it */
	bool failed;
};

bool dec_build_init(struct dec_build *b, struct ir_func *f, const struct dec_graph *g, uint32_t recs, uint32_t step_limit);
/* Begins a block; records made from here on are its. */
void dec_build_block(struct dec_build *b, uint32_t block);
/* A record as it stands, with its effects. */
ir_ref dec_put_rec(struct dec_build *b, const struct ir_rec *rec);
/* A pure operation: a value that is equal to it. */
ir_ref dec_op(struct dec_build *b, const struct ir_rec *rec);
ir_ref dec_op2(struct dec_build *b, enum ir_op op, enum ir_width w, ir_ref x, ir_ref y);

/* What is no operation on values alone, but the same wherever it is done. */
ir_ref dec_value(struct dec_build *b, const struct ir_rec *rec);

/* The record of a value; null for a constant. */
static inline const struct ir_rec *dec_rec(const struct ir_func *f, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? &f->recs[ir_index(r)] : NULL;
}

/* Bits of a value of at most 64 bits that are known to be 0; those above its width are. */
uint64_t dec_zeros(const struct dec_build *b, ir_ref r);

static inline uint64_t dec_mask(enum ir_width w)
{
	unsigned bits = ir_bits(w);
	return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* Whether an operation has no effect and cannot stop the program: a value like any other. */
static inline bool dec_is_pure(enum ir_op op)
{
	return ir_op_info(op)->signature[0] != '-' && !ir_op_info(op)->effects && op != IR_PHI && op != IR_RES && op != IR_UNDEF;
}

/* Division by a constant of what multiplies and shifts; IR_REF_NONE: it is none. */
ir_ref dec_divide(struct dec_build *b, const struct ir_rec *rec);

/* Whether the first two operands may change places. */
bool dec_commutes(enum ir_op op, enum ir_kind kind);

/* One simplification by the rules of dec_rules.c; IR_REF_NONE: none fits. */
ir_ref dec_rules(struct dec_build *b, const struct ir_rec *rec);

/* --- replacing values -------------------------------------------------------------------------------------------------------- */
/* What stands for a value in `rep` (per record: itself, or what replaces it). */
ir_ref dec_find(ir_ref *rep, ir_ref r);
/* In all records and lists. */
void dec_replace(struct ir_func *f, ir_ref *rep);

/* The address in the file a constant or a GADDR names. */
bool dec_target(const struct ir_func *f, ir_ref r, uint64_t *ret_va);

/* --- passes ------------------------------------------------------------------------------------------------------------- */
struct dec {
	const struct dec_opts *opts;
	struct arena *arena;
	struct dec_conv conv;
	struct ir_func *f;    /* as the passes so far left it */
	uint32_t step_limit, steps;
	unsigned assumes;
	bool is_frame_known;  /* each use of the stack pointer has been followed, and what nobody else reaches are values */
	/* What was said of callees, by address; open addressing. */
	struct dec_known {
		uint64_t va;
		bool is_used;
		struct dec_callee callee;
	} *known;
	uint32_t known_cnt, known_cap;
};

/* What is known of the callee of a CALL or the aim of an IJMP of `f`: the convention, and what the options say. */
struct dec_callee dec_callee_at(struct dec *d, const struct ir_func *f, const struct ir_rec *rec);

/* Bytes of arguments on the stack `d->f` may read; -1: not known. How many it was seen to read, and whether it looks at its return address
 * (either may be null). */
int32_t dec_stack_args(struct dec *d, int32_t *ret_least, bool *ret_reads_return);

/* Whether a record of `f` loads the stack protector's value. */
bool dec_is_canary(const struct dec *d, const struct ir_func *f, const struct ir_rec *rec);

_must_use_ struct err *dec_ssa(struct dec *d);
/* Of a lifted function: argument locations it may read the entry's value of, or hand on; what it changes. */
_must_use_ struct err *dec_ssa_effects(struct dec *d, struct dec_callee *ret);
_must_use_ struct err *dec_stack(struct dec *d);
_must_use_ struct err *dec_switch(struct dec *d);
_must_use_ struct err *dec_range(struct dec *d);
_must_use_ struct err *dec_state(struct dec *d);
_must_use_ struct err *dec_dead(struct dec *d);
_must_use_ struct err *dec_vars(struct dec *d, struct dec_func *ret);

/* Fills in how variables and values are declared; false: no memory. */
bool dec_types(struct dec_func *fn, struct arena *a);

/* Names variables by what they are used for; false: no memory. */
bool dec_names(struct dec *d, struct dec_func *fn);

struct err *dec_budget(const struct dec *d);

#endif
