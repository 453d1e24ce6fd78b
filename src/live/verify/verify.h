/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_VERIFY_VERIFY_H
#define LIVE_VERIFY_VERIFY_H

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"

/*
 * Whether a function's C does what its machine code does: both are run in the sandbox on the same states, made from seeds,
 * and what they leave is compared: how they ended, the registers of results (a long double's, too), every page of memory but the stack, the
 * imports called in order with their first arguments. This is testing, not proof: a verdict says on how many
 * inputs, and which share of the function's blocks they reached. It is what the target's own process says.
 */
#define VERIFY_ENGINE_VERSION 6 /* raised whenever the same function and the same C could get another verdict */

enum verify_status { VERIFY_NOT_RUN, VERIFY_COMPILES, VERIFY_EQUAL, VERIFY_DIFFERS, VERIFY_UNREPEATABLE, VERIFY_INCONCLUSIVE,
		     VERIFY_STATUS_COUNT };

const char *verify_status_name(enum verify_status s);

/* A way from block to block. */
struct verify_edge {
	uint32_t from, to; /* numbers of blocks */
	uint64_t branch;   /* the jump that decides; 0: nothing does */
};

/* A function to verify. */
struct verify_func {
	uint64_t va;
	const char *name;       /* of its C form, which is called with the state */
	/* Bits of these registers that are no result, and may be anything. */
	uint64_t not_rax, not_rdx, not_xmm0[2];
	bool not_st0;
	const uint64_t *blocks; /* starts of its blocks, borrowed */
	uint32_t block_cnt;
	uint32_t edge_cnt;
	const struct verify_edge *edges; /* borrowed, by `from` */
	const uint64_t *words;  /* numbers it compares with, borrowed */
	uint32_t word_cnt;
};

#define VERIFY_WORD_MAX 48
#define VERIFY_ANSWER_AT 1024 /* words of answers begin here */
#define VERIFY_ANSWER_MAX 64

/* A word of an input: below 48 an integer argument, at / 8 by the order of the ABI; at VERIFY_ANSWER_AT + 8 * i what the `i`th import called
 * answers; else `len` bytes at an address of the process. */
struct verify_word {
	uint64_t at, value;
	uint64_t len; /* 1 to 8 */
};

struct verify_verdict {
	enum verify_status status;
	uint32_t inputs;        /* clean, repeatable runs that were compared */
	uint32_t tried;         /* seeds */
	uint32_t blocks, blocks_hit; /* of the function; by those runs */
	uint32_t edges, edges_hit;
	uint64_t seed;          /* of the first difference, and its input as small as it was found: these words, zero in other arguments
				   and made memory */
	struct verify_word words[VERIFY_WORD_MAX];
	uint32_t word_cnt;
	uint32_t more_words;    /* that are not listed */
	bool is_quick;          /* the C was compiled by the quick compiler */
	bool is_by_unset;       /* some of those that gave the same did so where stack that nobody set is zero */
	char why[160];          /* what differs, or why nothing could be said; "" */
};

struct verify_opts {
	const struct image *im;
	int fd;                 /* the target's file */
	const char *cc;         /* "gcc" */
	const char *level;      /* "-O1" */
	const char *header;     /* the text of scry.h */
	size_t header_len;
	const char *quick_header; /* the text of scry_tcc.h: the C is compiled by the Tiny C Compiler, if verify_quick_takes() it; null: by cc */
	size_t quick_header_len;
	const uint8_t *import_args; /* as box_opts has it */
	uint32_t seeds;         /* at most so many a function */
	uint64_t seed;          /* the first of them */
	bool has_input;         /* one run only, on that seed with these words, as a verdict has them */
	const struct verify_word *words;
	uint32_t word_cnt;      /* at most VERIFY_WORD_MAX */
	uint32_t cpu_ms;        /* a run of the machine code at most; its C, where every instruction is a statement, has 20 times that */
	/* Asked now and then whether to go on; its error is what the call fails with. May be null. */
	struct err *(*check)(void *ctx);
	void *check_ctx;
};

struct verify;

/* Whether the quick compiler is worth trying on that C of one function. It may still refuse: then verify_open() says internal or env. */
bool verify_quick_takes(const char *text, size_t len);

/*
 * Compiles `text` (C of all of `funcs`) in a temporary folder, scry.h beside it, and makes the sandbox with it. Several may be open, each
 * used by one thread.
 * Errors: env (no compiler), internal with the compiler's first words (the C does not compile), box_open()'s, and opts->check()'s.
 */
_must_use_ struct err *verify_open(const struct verify_opts *opts, const struct buf *text, const struct verify_func *funcs,
				   uint32_t func_cnt, struct verify **ret);
void verify_close(struct verify *v);

/* Verifies function `i` of those given. Errors: env, io, opts->check()'s. */
_must_use_ struct err *verify_run(struct verify *v, uint32_t i, struct verify_verdict *ret);

/* What the sandbox and the compiler's lock could not get from the kernel, as box_missing(). */
const char *verify_missing(struct verify *v);

#endif
