/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_FINDING_H
#define LIVE_TRACE_TRACE_FINDING_H

#include "live/trace/trace_json.h"
#include "live/trace/trace_rule.h"

/* `frames`, frame_cnt of them: where the event was made and who called, as trace_json_event() takes them. */

/* Appends the finding as lines for people: what was found and by whom, then the event that completed it and its call sites, indented. */
void trace_finding_text(const struct trace_finding *f, const struct trace_text_opts *opts, const struct trace_frame_text *frames, size_t frame_cnt,
			struct buf *out);

/* Appends it as one JSON object (docs/rules.md), without an end of line. */
void trace_finding_json(const struct trace_finding *f, const struct trace_text_opts *opts, const struct trace_frame_text *frames, size_t frame_cnt,
			struct buf *out);

#endif
