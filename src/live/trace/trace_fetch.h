/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_FETCH_H
#define LIVE_TRACE_TRACE_FETCH_H

#include "live/trace/sysc.h"
#include "live/trace/trace_event.h"

#include "base/buf.h"
#include "base/vec.h"

#include <sys/types.h>

/*
 * Reads what the arguments of a call lead to from a stopped process, as the table of calls says. The process's memory is
 * hostile: lengths are capped, a fault ends a slot where it is, another thread may change everything meanwhile.
 */
struct trace_fetched {
	VEC(struct trace_slot) slots; /* data is null until trace_fetch_end() */
	VEC(size_t) offs;             /* of each slot's bytes in `bytes` */
	struct buf bytes;
};

void trace_fetched_fini(struct trace_fetched *f);
void trace_fetched_reset(struct trace_fetched *f);

/* A call of a stopped thread. */
struct trace_fetch_call {
	pid_t tid;
	const struct sysc *s;  /* resolved */
	const uint64_t *args;  /* SYSC_ARG_MAX */
	int64_t ret;           /* of one that ended */
	uint32_t string_max;   /* bytes read of strings and buffers that are not paths */
	bool is_compat;        /* of i386: what is read gets the shape of 64-bit ABIs */
};

/* Reads the inputs (TRACE_IN), or the outputs of a call that ended without an error. */
void trace_fetch(struct trace_fetched *f, const struct trace_fetch_call *call, enum trace_phase phase);

/* Marks paths that another thread changed since they were read. */
void trace_fetch_check_paths(struct trace_fetched *f, const struct trace_fetch_call *call);

/* A slot with `len` bytes that came from somewhere else. */
void trace_fetch_add(struct trace_fetched *f, struct trace_slot slot, const void *bytes);

/* Makes the slots' pointers; valid until something is added. */
void trace_fetch_end(struct trace_fetched *f);

/* Bytes read of [va, va + len), up to the first that cannot be. */
size_t trace_peek(pid_t tid, uint64_t va, void *to, size_t len);

#endif
