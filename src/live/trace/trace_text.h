/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TEXT_H
#define LIVE_TRACE_TEXT_H

#include "live/trace/trace_event.h"

#include "base/buf.h"

/*
 * Events as text, in the spelling of strace(1). All bytes of an event are hostile: whatever cannot be printed is escaped, no
 * output is longer than its limits say, and what was not read is shown as its address, never as if it had been zero.
 */
struct trace_btf;
struct trace_fds;
struct sysc;

struct trace_text_opts {
	uint32_t string_max;      /* bytes of a string or buffer that are shown; 0 = 32. Paths are shown whole */
	bool has_pid;             /* each line begins with "[pid N]" */
	bool has_times;           /* each line ends with the duration, "<0.000123>" */
	const struct trace_btf *btf; /* for structs nobody described, or null; borrowed */
	struct trace_fds *fds;    /* paths of descriptors are shown behind them; null: not. Borrowed */
};

/* Appends the event as one line, with its end of line. */
void trace_text_event(const struct trace_event *ev, const struct trace_text_opts *opts, struct buf *out);

/* How an argument is shown. */
struct trace_arg {
	const char *name;  /* "filename" */
	const char *type;  /* "path", "flags", "struct stat": what the text is of */
	uint8_t status;    /* enum trace_status of what the text shows; of a number TRACE_OK */
	bool is_string;    /* the text is the bytes themselves */
	bool is_hidden;    /* the call does not look at it */
};

/* The arguments of a system call that an event is of, those that depend on others resolved; 0 for other events. */
unsigned trace_text_arg_cnt(const struct trace_event *ev);

/* Appends the text of argument `idx` (below trace_text_arg_cnt()). A path or string is its bytes, without quotes and
 * escapes; everything else is as in the line. */
struct trace_arg trace_text_arg(const struct trace_event *ev, unsigned idx, const struct trace_text_opts *opts, struct buf *out);

/* The name of the event: of a call its name ("openat", "syscall_0x1ff"), else "exec", "exit" and so on. */
const char *trace_text_name(const struct trace_event *ev, char space[24]);

/* Whether the call ended in an error, and its name ("ENOENT", "ERESTARTSYS"; null: a number without one). */
bool trace_text_errno(const struct trace_event *ev, const char **ret_name);

const char *trace_kind_name(enum trace_kind kind);
const char *trace_status_name(unsigned status);
const char *trace_lost_reason_name(unsigned reason);

#endif
