/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_FILE_H
#define LIVE_TRACE_FILE_H

#include "base/err.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_join.h"

/*
 * Trace files: a header that says in words what is in it, then blocks of framed records as they came out of the
 * kernel's ring. docs/trace-format.md is the description. A block has a checksum, so damage anywhere costs the blocks
 * it lies in and no more, and the numbers of records say how many these were.
 */
#define TRACE_FILE_DEFAULT_LEN ((uint64_t)1 << 30)

struct trace_writer;

struct trace_writer_options {
	uint64_t limit_len;  /* bytes of all files together, 0 = TRACE_FILE_DEFAULT_LEN */
	unsigned keep;       /* 0 or 1: at the limit writing ends; else so many files: PATH is the newest, PATH.1 the one before */
	const char *command; /* what was traced, for the header; null: nothing to say */
};

/* Begins a new file in place of what was at `path`. */
_must_use_ struct err *trace_writer_new(const char *path, const struct trace_writer_options *opt, struct trace_writer **ret);

/* Appends a chunk of framed records, `len` bytes; `w` is a struct trace_writer (a trace_chunk_fn). At the limit what
 * does not fit is left out, and with it all that comes; trace_writer_is_full() says so. */
_must_use_ struct err *trace_writer_chunk(void *w, const uint8_t *chunk, size_t len);

/* Appends an event of a source that has no records. It is kept and written with others, at the latest at the end. */
_must_use_ struct err *trace_writer_event(struct trace_writer *w, const struct trace_event *ev);

bool trace_writer_is_full(const struct trace_writer *w);

/* Bytes written so far, in all files. */
uint64_t trace_writer_len(const struct trace_writer *w);

/* Writes how many records every CPU has numbered (null, 0: nobody numbers), which makes the file whole, and frees `w`,
 * also when it fails. Null is accepted. */
_must_use_ struct err *trace_writer_close(struct trace_writer *w, const struct trace_cpu *cpus, size_t cnt);

struct trace_file;

/* Opens a trace file, which may be anything: ERR_BAD_INPUT says what is wrong with it. */
_must_use_ struct err *trace_file_open(const char *path, struct trace_file **ret);

/* The same with bytes that the caller keeps. */
_must_use_ struct err *trace_file_open_bytes(const uint8_t *bytes, size_t len, struct trace_file **ret);
void trace_file_free(struct trace_file *f);

/* What its header says: lines "name value", NUL-terminated, valid as long as `f`. */
const char *trace_file_header(const struct trace_file *f);

/* The value of a line of the header, its length in `*ret_len`; null: there is no such line. */
const char *trace_file_field(const struct trace_file *f, const char *name, size_t *ret_len);

/* ns to add to a time of an event for the time of day; 0 where the header does not say. */
int64_t trace_file_epoch(const struct trace_file *f);

/* Gives the sink all events from the beginning. Where bytes are damaged or the end is missing there is a TRACE_LOST
 * with reason TRACE_LOST_FILE, its count 0 where nobody knows how many. `ret`, if not null, gets the totals. */
_must_use_ struct err *trace_file_each(struct trace_file *f, trace_sink_fn *sink, void *ctx, struct trace_totals *ret);

#endif
