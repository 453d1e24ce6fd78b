/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PAR_H
#define BASE_PAR_H

#include "base/cleanup.h"

#include <stddef.h>

/*
 * A parallel for over an index range. `fn` is called once for each [from, to) piece with the number
 * of the worker (0 .. par_threads()-1) that runs it; pieces are handed out in order, who runs which is
 * not defined, so results must be written per index or merged in a fixed order by the caller.
 * The calling thread is worker 0. With one thread everything runs in the caller.
 */
struct par;

typedef void par_fn(void *ctx, unsigned worker, size_t from, size_t to);

/* `threads` 0: one per online processor. Null when memory ran out; a machine that refuses threads
 * gives a pool of fewer. */
_must_use_ struct par *par_new(unsigned threads);
void par_free(struct par *p);
unsigned par_threads(const struct par *p);

/* Runs fn over [0, count) in pieces of `grain` (at least 1) and returns when all are done. */
void par_for(struct par *p, size_t count, size_t grain, par_fn *fn, void *ctx);

#endif
