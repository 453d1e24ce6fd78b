/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECOMP_DEC_COPY_H
#define DECOMP_DEC_COPY_H

#include "decomp/dec_int.h"

/*
 * A function in SSA form copied record by record, in reverse post-order, with folding: what passes that replace values are made of.
 * Every block is to be reached (dec_dead() before); joins come out as they were, for dec_dead() behind to look at.
 */
struct dec_copy {
	struct dec *d;
	const struct ir_func *f; /* copied */
	struct dec_graph g;
	struct dec_build b;      /* making */
	ir_ref *map;             /* per record copied: what it became */
	bool *is_done;           /* blocks */
	uint32_t *phi_of;        /* per join copied: its record in the copy */
	/* Of joins whose `is_part` is not 0 (per record): their operands in the copy, by entry of the copied function's lists. */
	const uint8_t *is_part;
	const ir_ref *part;
	void *ctx;
	/* Behind the joins of a block, before its other records; may be null. */
	void (*begin)(struct dec_copy *c, uint32_t block);
	/* True: the record was seen to, and this is its value (any reference where it has none); may be null. */
	bool (*rec)(struct dec_copy *c, uint32_t id, ir_ref *ret);
};

/* Hooks and ctx are the caller's to set before or after. */
_must_use_ struct err *dec_copy_init(struct dec_copy *c, struct dec *d);
/* Leaves the copy in d->f. Errors: budget, no memory. */
_must_use_ struct err *dec_copy_run(struct dec_copy *c);
/* What an operand of the function copied is in the copy. */
ir_ref dec_copied(const struct dec_copy *c, ir_ref r);

/* An empty function with the blocks, constants, instructions and machine of another; which is not to get constants any more. */
struct ir_func *dec_func_like(struct ir_func *f, struct arena *a);

#endif
