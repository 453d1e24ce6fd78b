/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_TRACE_H
#define SESSION_SES_TRACE_H

#include "session/ops.h"

#include <stdatomic.h>

/*
 * Tracing: what the options of `scry trace` mean, which source gives the events, and what becomes of them. The events'
 * text goes to `write` as it is made.
 */
struct ses_trace_io {
	/* Text for whoever reads the trace; false: nobody reads any more. */
	bool (*write)(void *ctx, const char *s, size_t len);
	/* A line for people about the trace itself, without its end. */
	void (*say)(void *ctx, const char *line);
	void *ctx;
	const atomic_bool *cancel; /* ends the trace, as Ctrl+C does */
	bool is_json, is_live;     /* is_live: somebody watches, so lines are not kept back */
	bool is_rows;              /* what `write` gets are rows of ses_live.h */
};

/* Runs the trace that the arguments of the operation `trace` ask for. `*ret_status`: the wait status of the program started, -1
 * where there is none or it still runs. Errors: invalid; unsupported (ERR_ENV) for what this machine refuses. */
_must_use_ struct err *ses_trace(const struct ops_args *args, const struct ses_trace_io *io, int *ret_status);

/* Such a trace from its beginning to its end, for a process that does nothing else: rows into `fd`, the last of them about how it ended. */
void ses_trace_rows(const struct ops_args *args, struct err *parsing, int fd, const atomic_bool *cancel);

#endif
