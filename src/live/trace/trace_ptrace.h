/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_PTRACE_H
#define LIVE_TRACE_TRACE_PTRACE_H

#include "live/trace/trace_event.h"

#include "base/err.h"

#include <sys/types.h>

/*
 * The source of events that needs no privilege: ptrace(2), with a seccomp(2) filter in programs started here, so that only
 * the calls asked for stop. Follows forks, threads and execs. One trace a process at a time, since it waits for all children.
 *
 * Who is traced when scry is killed: programs started here end with it (PTRACE_O_EXITKILL) where the filter is in them, because
 * without a tracer each filtered call would fail with ENOSYS; all others are detached by the kernel and go on.
 */
struct trace_ptrace_opts {
	char *const *argv;       /* program to start, ended by null, argv[0] looked for in PATH; or null */
	const pid_t *pids;       /* processes to attach to */
	size_t pid_cnt;
	const uint64_t *wanted;  /* bit per number of x86-64 calls; null: all. Calls of other ABIs are always given */
	uint32_t string_max;     /* bytes read of a string or buffer, 0 = 512; paths are read whole */
	uint32_t stack_len;      /* bytes of user stack with each call, at most 4096 */
	bool with_maps;          /* executable mappings as events, too */
	bool no_filter;          /* no seccomp filter, so that what was started can be left running */
	bool no_follow;          /* children of processes attached to are let go */
	bool (*is_stopped)(void *ctx); /* asked after each wait, which signals interrupt: true ends the trace */
	trace_sink_fn *sink;
	void *ctx;               /* of both */
};

/* Traces until the last traced process ended, the sink wants no more, or is_stopped() says so. What was started and is still
 * running is then left to itself, or killed where a filter is in it. `*ret_status` is the wait status of the program started,
 * -1 while it runs. Errors: not_found for a program that is not there, denied for a process of somebody else. */
_must_use_ struct err *trace_ptrace_run(const struct trace_ptrace_opts *opts, int *ret_status);

#endif
