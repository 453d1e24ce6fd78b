/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_ANALYSIS_H
#define ANALYSIS_ANALYSIS_H

#include "analysis/stated.h"
#include "arch/arch.h"
#include "base/err.h"
#include "base/par.h"
#include "debuginfo/dbg.h"
#include "image/image.h"

#include <stdatomic.h>

/*
 * Finds the code: function starts from every source of truth before any guess, blocks, jump tables, noreturn, tail
 * calls, thunks, cross references, strings and data items. The result depends only on the inputs, never on the
 * number of threads or on what was asked for first.
 */
struct analysis_in {
	const struct arch *arch;
	const struct dbg_fdes *fdes;       /* may be null */
	const struct dbg_funcs *go_funcs;  /* may be null */
	const struct dbg_funcs *dwarf_funcs; /* may be null */
	const struct dbg_lines *dwarf_lines; /* may be null */
	const struct analysis_stated *stated; /* may be null */
	struct par *par;
	const atomic_bool *cancel;         /* may be null; looked at every 1,024 steps */
	/* Progress, called from the calling thread about every 20 ms and at each stage; may be null. `stage` is a
	 * word for people ("functions", "references", "strings"); done and total are bytes of code or items. */
	void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total, uint64_t func_cnt);
	void *ctx;
};

/* Fills the analysis part of `d` (see image.h). Errors: cancelled, no memory. Peak memory beyond `d`'s own
 * input: at most 12 bytes a byte of code in all (issue's bar: 16 MB + 12x .text for the whole process). */
_must_use_ struct err *analysis_run(const struct analysis_in *in, struct image_data *d);

/*
 * What can be said about the surroundings of one address before the analysis has ended: the instructions of the code
 * reached from `va` as item starts, in order, at most `max`. A pure function of bytes; microseconds. Used for what the user
 * looks at while analysis runs. Returns the count.
 */
size_t analysis_preview(const struct arch *arch, const struct space *s, uint64_t va, uint32_t *ret_locs, size_t max);

/* Version of the engine: raise it whenever the same input gives a different image. */
#define ANALYSIS_ENGINE_VERSION IMAGE_ENGINE_VERSION

#endif
