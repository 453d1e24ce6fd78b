/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_JSON_H
#define LIVE_TRACE_TRACE_JSON_H

#include "live/trace/trace_text.h"

#include "base/buf.h"

/* Where a call was made, as far as somebody found out; null where not known. */
struct trace_frame_text {
	const char *module, *build_id, *func;
	uint64_t offset;      /* in the module's file */
	uint32_t line;        /* of C, 0 = not known */
};

/*
 * Appends the event as one JSON object, version 1 of the schema in docs/tracing.md, without an end of line. `frames`: the site and
 * what called it, `frame_cnt` of them.
 */
void trace_json_event(const struct trace_event *ev, const struct trace_text_opts *opts, const struct trace_frame_text *frames, size_t frame_cnt,
		      struct buf *out);

#endif
