/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_DECODE_H
#define LIVE_TRACE_DECODE_H

#include "base/buf.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_wire.h"

#define TRACE_SLOT_MAX 40
#define TRACE_WIDE_MAX 16384
#define TRACE_PATH_MAX 4400 /* of a path from its components */

/* One record taken apart. Pointers lead into the record or into this. */
struct trace_record {
	struct trace_event ev;        /* without what only the join knows: comm, exe, container, pid, ppid */
	uint8_t kind;                 /* enum trace_kind or TRACE_WIRE_NUMBERS */
	uint32_t seq;
	bool has_proc;
	struct trace_wire_proc proc;
	const uint8_t *container;
	uint32_t container_len;
	struct trace_slot slots[TRACE_SLOT_MAX];
	char paths[2][TRACE_PATH_MAX];
	uint8_t wide[TRACE_WIDE_MAX]; /* structs of i386 as 64-bit ABIs have them */
};

/* Takes the `len` bytes at `rec` apart, which may be anything. False: they are no record, and `ret` is undefined. */
bool trace_decode(const uint8_t *rec, size_t len, struct trace_record *ret);

/* Appends `ev` as one framed record, with what is known of its process. A slot that is too long for a record is cut. */
void trace_encode(const struct trace_event *ev, struct buf *b);

#endif
