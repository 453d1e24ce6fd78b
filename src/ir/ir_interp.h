/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IR_IR_INTERP_H
#define IR_IR_INTERP_H

#include "ir/ir.h"

/*
 * Runs IR. Registers are an array of values, memory comes page by page from the caller, calls and unlifted instructions are
 * the caller's. It is the reference for what IR means: lifted code is compared with the processor through it, rewritten IR
 * with the IR before, printed C with both.
 *
 * Every bit a run produces is known or not: what depends on an UNDEF is marked, value by value, and comparing skips it. So an
 * architecture's undefined flags need no list of their own: a lifter writes UNDEF to them.
 */

/* A value: low word first, bits above its width 0. */
struct ir_val {
	uint64_t w[8];
	bool is_undef; /* depends on an UNDEF */
};

#define IR_PAGE_LEN 4096

/* Memory by pages, made on first touch. Lives in an arena. */
struct ir_page {
	uint64_t va;          /* multiple of IR_PAGE_LEN */
	uint8_t *bytes;       /* IR_PAGE_LEN */
	uint8_t *undef;       /* bit i: byte i depends on an UNDEF; null: none does */
	bool is_read_only;
	bool is_written;
};

struct ir_mem {
	struct arena *arena;
	/* Fills the page at `va` (zeroed before) and may set is_read_only; false: nothing is mapped there. Null: everything is
	 * mapped and zero. */
	bool (*fill)(void *ctx, struct ir_page *page);
	void *ctx;
	struct ir_page **pages; /* open addressing */
	uint32_t page_cnt, page_cap;
	uint32_t page_limit;    /* 0: none; else touching more faults */
};

/* Bytes at `va`, wrapping at the top of the address space of 64 bits. False: a fault, at *ret_fault; nothing is written then. */
bool ir_mem_read(struct ir_mem *m, uint64_t va, void *out, size_t len, uint64_t *ret_fault);
bool ir_mem_write(struct ir_mem *m, uint64_t va, const void *bytes, size_t len, uint64_t *ret_fault);
/* The page that holds `va`, made when it is not there; null: not mapped, or no memory. */
struct ir_page *ir_mem_page(struct ir_mem *m, uint64_t va);

enum ir_exit {
	IR_EXIT_JUMP,   /* IJMP: goes on at `va` */
	IR_EXIT_RET,    /* RET: to `va`, taken off the stack */
	IR_EXIT_TRAP,   /* TRAP, or a division that does so: `kind`, IR_DIV_... or IR_TRAP_... */
	IR_EXIT_FAULT,  /* memory at `va` is not mapped or read-only */
	IR_EXIT_CALL,   /* a CALL of `va` and no handler, or the handler said so */
	IR_EXIT_INTRIN, /* an INTRIN and no handler, or the handler said so */
	IR_EXIT_UNKNOWN, /* an address or a condition depends on an UNDEF */
	IR_EXIT_BUDGET, /* steps ran out */
	IR_EXIT_NOMEM,
	IR_EXIT_COUNT
};

struct ir_run {
	/* Set by the caller. */
	struct ir_func *func;
	struct arena *arena;     /* scratch */
	struct ir_val *locs;     /* the machine's loc_cnt, in and out */
	struct ir_mem *mem;
	uint64_t step_limit;     /* records; 0: 1,000,000 */
	void *ctx;
	/* After the return address was pushed. True: the callee has returned (return address off the stack), go on. Null:
	 * IR_EXIT_CALL. */
	bool (*call)(struct ir_run *r, uint64_t va);
	/* Arguments in the order struct ir_intrin gives, results to out[]. True: done. Null: IR_EXIT_INTRIN. */
	bool (*intrin)(struct ir_run *r, const struct ir_intrin *in, const struct ir_val *args, struct ir_val *out);
	/* Called before each block, for coverage; may be null. */
	void (*block)(struct ir_run *r, uint32_t block);

	/* How it ended. A record that faults or traps has changed nothing. */
	enum ir_exit exit;
	uint64_t va;             /* see enum ir_exit */
	uint8_t kind;            /* enum ir_kind of a trap */
	uint32_t rec;            /* the record it ended at; origins[recs[rec].origin] is the instruction */
	uint64_t steps;
};

/* Runs a function that ir_check() accepts from block 0 to an end. */
void ir_interp(struct ir_run *r);

/*
 * One pure operation by itself: what the constant folder and the tests use. `rec` gives op, kind, width and aux, `x` the
 * width of the operands its signature calls x (any when there are none). Operands it does not have may be null. False: it would
 * trap. Only for operations without effects, and DIV and DIVW; not for GET, PHI and RES.
 */
bool ir_eval(const struct ir_rec *rec, enum ir_width x, const struct ir_val *a, const struct ir_val *b, const struct ir_val *c,
	     struct ir_val *ret);

/* "jump", "fault", ... */
const char *ir_exit_name(enum ir_exit e);

#endif
