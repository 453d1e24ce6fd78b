/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_COUNT_H
#define LIVE_TRACE_TRACE_COUNT_H

#include "live/trace/trace_event.h"

#include <stddef.h>

/* Calls, errors and times by call: the summary. */
struct trace_counts;

struct trace_count_row {
	const char *name;       /* valid as long as the counts are */
	uint64_t calls, errors;
	uint64_t ns;            /* in all calls together, of those whose duration is known */
	uint64_t timed;         /* calls whose duration is known */
	uint64_t max_ns;
};

struct trace_counts *trace_counts_new(void); /* null: no memory */
void trace_counts_free(struct trace_counts *c);
void trace_counts_add(struct trace_counts *c, const struct trace_event *ev);

/* The rows with calls, most time first. */
const struct trace_count_row *trace_counts_rows(struct trace_counts *c, size_t *ret_cnt);

#endif
