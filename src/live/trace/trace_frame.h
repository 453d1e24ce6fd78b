/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_FRAME_H
#define LIVE_TRACE_FRAME_H

#include "base/buf.h"
#include "base/cur.h"
#include "live/trace/trace_wire.h"

/*
 * How records follow each other in the kernel's ring and in trace files: 8 bytes of frame (the length with two flags,
 * and a number of the kernel's), the record, up to 7 bytes to the next multiple of 8.
 */
enum {
	TRACE_FRAME_LEN = 8,
	TRACE_FRAME_BUSY = 1u << 31,      /* not written yet */
	TRACE_FRAME_DISCARDED = 1u << 30, /* taken back */
};

static inline uint64_t trace_frame_len(uint32_t head)
{
	return ((head & ~(TRACE_FRAME_BUSY | TRACE_FRAME_DISCARDED)) + TRACE_FRAME_LEN + 7ull) & ~7ull;
}

/* The next record of a chunk, borrowed; null at the end or (c->failed) where the frame is damaged. */
static inline const uint8_t *trace_frame_next(struct cur *c, uint32_t *ret_len)
{
	while (cur_left(c)) {
		uint32_t head = cur_u32(c), len = head & ~(TRACE_FRAME_BUSY | TRACE_FRAME_DISCARDED);
		cur_skip(c, 4);
		const uint8_t *rec = cur_bytes(c, len);
		cur_skip(c, -len & 7);
		if (c->failed || head & TRACE_FRAME_BUSY) {
			c->failed = true;
			return NULL;
		}
		*ret_len = len;
		if (!(head & TRACE_FRAME_DISCARDED))
			return rec;
	}
	return NULL;
}

/* Begins a framed record with that fixed part; gives where it begins, for trace_record_end(). */
size_t trace_record_begin(struct buf *b, const struct trace_wire *w);

/* Adds a slot of `len` bytes, at most 65,535, and not more than fit into TRACE_WIRE_MAX: else nothing is added. `how`
 * as in trace_wire_slot. */
void trace_record_slot(struct buf *b, size_t begin, struct trace_wire_slot slot, const void *bytes);

void trace_record_end(struct buf *b, size_t begin);

#endif
