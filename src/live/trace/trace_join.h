/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_JOIN_H
#define LIVE_TRACE_JOIN_H

#include "base/err.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_wire.h"

/*
 * Records to events: joins each with what is known of its thread and process, an end of a call with its beginning, and
 * says what is missing where it is missing. Records may be anything; memory is bounded by how many there are.
 */
struct trace_join;

/* How many records of CPUs there were, and how many their numbers say there should have been. */
struct trace_totals {
	uint64_t received;
	uint64_t lost;
	uint64_t damaged; /* bytes of chunks that were no records */
	bool file_is_full; /* of a file that is written: its limit was reached */
};

/* Null when memory is out. */
struct trace_join *trace_join_new(trace_sink_fn *sink, void *ctx);
void trace_join_free(struct trace_join *j);

/* Takes a chunk of framed records (trace_frame.h) and gives the sink their events. `*ret_more`: the sink wants more. */
_must_use_ struct err *trace_join_chunk(struct trace_join *j, const uint8_t *chunk, size_t len, bool *ret_more);

/* Says that bytes between the last chunk and the next are damaged or missing: the sink is told, and gaps in the numbers
 * of records from here to each CPU's next one are put down to it. */
void trace_join_damage(struct trace_join *j);

/* Says that CPUs have given these many numbers and no record is still to come: what is missing then is lost. */
void trace_join_end(struct trace_join *j, const struct trace_cpu *cpus, size_t cnt);

/* At the end: gives calls that have begun and not come back once more (TRACE_LEFT_AGAIN), where no record is missing that might say otherwise. */
void trace_join_left(struct trace_join *j);

/* Appends records from which a join that begins here knows what this one does. */
struct buf;
void trace_join_snapshot(const struct trace_join *j, struct buf *records);

struct trace_totals trace_join_totals(const struct trace_join *j);

#endif
