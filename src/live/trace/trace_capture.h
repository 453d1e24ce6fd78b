/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_CAPTURE_H
#define LIVE_TRACE_TRACE_CAPTURE_H

#include "live/trace/trace_event.h"

#include "base/err.h"
#include "live/trace/sysc.h"

/*
 * Copies of the files that traced processes execute and write, in a folder: each named by the SHA-256 of what is in it, and a line of
 * JSON for each execution and each written file in index.jsonl. What is read is what the processes have open (/proc/PID/exe, /proc/PID/fd), never a
 * path of theirs, so memory files and deleted ones are read too; what is written is named by nothing of theirs. Not for several threads.
 */
struct trace_capture;

struct trace_capture_opts {
	const char *dir;     /* made, if it is not there; has no index yet */
	bool exec, write;
	uint64_t file_max;   /* bytes of one file; what is longer is cut, and the index says so */
	uint64_t total_max;  /* bytes of all */
};
/* Errors: io; invalid: there is an index; env: no libcrypto. */
_must_use_ struct err *trace_capture_new(const struct trace_capture_opts *o, struct trace_capture **ret);
/* Accepts null. */
void trace_capture_free(struct trace_capture *c);

/* Whether it wants events of this call. */
bool trace_capture_needs(const struct trace_capture *c, const struct sysc *s);
/* Takes an event, when it happened: what a process has open is looked at now. */
void trace_capture_event(struct trace_capture *c, const struct trace_event *ev);

struct trace_capture_counts {
	uint64_t execs, writes;  /* lines of the index */
	uint64_t files, bytes;   /* in the folder */
	uint64_t cut;            /* lines whose file is not whole */
	uint64_t missed;         /* lines without a file */
};
/* Copies what is still open and was written, and counts. Error io: the first that could not be written, after which nothing was. */
_must_use_ struct err *trace_capture_end(struct trace_capture *c, struct trace_capture_counts *ret);

#endif
