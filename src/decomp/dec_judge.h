/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECOMP_DEC_JUDGE_H
#define DECOMP_DEC_JUDGE_H

#include "decomp/dec.h"

/*
 * Runs the lifted form of a function and what passes made of it on the same made-up state, in the interpreter, and compares what
 * they leave: how they end, results and kept registers, memory but for their own frame, calls with the arguments callees may read.
 * Memory is mapped everywhere, its content follows from the seed; calls answer by address and order, change what they may, and write a
 * byte through the lowest argument that points into the caller's frame.
 */
enum dec_verdict {
	DEC_V_SAME,
	DEC_V_DIFFERS,
	DEC_V_CUT,    /* nothing to say: too many steps, or it hangs on something undefined */
};

/* `why` says what differs. `opts` as the passes had it. */
enum dec_verdict dec_judge(struct ir_func *lifted, struct ir_func *made, const struct dec_opts *opts, uint64_t seed, char *why, size_t cap);

#endif
