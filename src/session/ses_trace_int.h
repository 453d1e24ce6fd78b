/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_TRACE_INT_H
#define SESSION_SES_TRACE_INT_H

#include "base/err.h"
#include "live/trace/trace_bpf.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_file.h"
#include "live/trace/trace_join.h"

#include <sys/types.h>

/* What a trace is of and who takes it, for any source. */
struct ses_trace_what {
	char *const *argv;        /* a program to start, or null */
	const pid_t *pids;
	size_t pid_cnt;
	const char *comm;         /* with neither of these, everybody of that name; null: everybody */
	const char *container;    /* and of that container; null: any or none */
	bool with_children;       /* of pids, too; of a program always */
	const uint64_t *wanted;   /* bit per number of x86-64, 512 of them; null: all */
	uint32_t string_max;      /* bytes of strings and buffers that are wanted */
	uint32_t stack_len;
	bool with_times;          /* how long each call took, at the price of a program at its beginning */
	bool with_entries;        /* calls that may block have an event when they begin, too */
	bool with_maps;
	bool is_left_running;     /* the program goes on when the trace ends before it does */
	const char *file;         /* a trace file to write, or null */
	struct trace_writer_options file_options;
	uint32_t ring_len;        /* as struct trace_bpf_options has it, */
	enum trace_hook hook;     /* and this */
	trace_sink_fn *sink;      /* null: the file is all */
	bool (*is_stopped)(void *ctx);
	void *ctx;
};

/* By eBPF. Error ERR_ENV where that is not to be had; nothing was started then. */
_must_use_ struct err *ses_trace_bpf(const struct ses_trace_what *what, int *ret_status, struct trace_totals *ret_totals);

#endif
