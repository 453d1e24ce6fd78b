/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_frame.h"

static void pad(struct buf *b, size_t begin)
{
	static const uint8_t zeros[8];
	buf_add(b, zeros, -(b->len - begin) & 7);
}

size_t trace_record_begin(struct buf *b, const struct trace_wire *w)
{
	static const uint8_t frame[TRACE_FRAME_LEN];
	size_t begin = b->len;
	buf_add(b, frame, sizeof(frame));
	buf_add(b, w, sizeof(*w));
	return begin;
}

void trace_record_slot(struct buf *b, size_t begin, struct trace_wire_slot slot, const void *bytes)
{
	if (b->len - begin + sizeof(slot) + slot.len + 7 > TRACE_WIRE_MAX)
		return;
	buf_add(b, &slot, sizeof(slot));
	buf_add(b, bytes, slot.len);
	pad(b, begin);
}

void trace_record_end(struct buf *b, size_t begin)
{
	pad(b, begin);
	if (b->failed)
		return;
	uint32_t len = (uint32_t)(b->len - begin - TRACE_FRAME_LEN);
	memcpy(b->data + begin, &len, sizeof(len));
}
