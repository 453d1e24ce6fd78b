/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a trace: the first byte chooses a whole file ('f') or records as they come out of a block ('r'). Every event
 * that comes of them is read in full and must come back the same through its own encoding.
 */
#include "fuzz.h"

#include "live/trace/trace_decode.h"
#include "live/trace/trace_file.h"
#include "live/trace/trace_frame.h"

#include <stdlib.h>
#include <string.h>

static unsigned sum; /* of all bytes, so that reading them is not left out */

static void read_all(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)bytes)[i];
}

static void check_slots(const struct trace_event *ev)
{
	if (ev->nslots > TRACE_SLOT_MAX)
		abort();
	for (uint32_t i = 0; i < ev->nslots; i++) {
		const struct trace_slot *s = &ev->slots[i];
		if (s->status >= TRACE_STATUS_COUNT || s->part >= TRACE_PART_COUNT || s->phase > TRACE_OUT || (s->full && s->full < s->len))
			abort();
		read_all(s->data, s->len);
	}
}

static bool check(void *ctx, const struct trace_event *ev)
{
	if ((unsigned)ev->kind >= TRACE_KIND_COUNT || ev->abi >= TRACE_ABI_COUNT || ev->nstack > 65535)
		abort();
	read_all(ev->stack, ev->nstack);
	read_all(ev->comm, ev->comm ? strlen(ev->comm) : 0);
	read_all(ev->exe, ev->exe ? strlen(ev->exe) : 0);
	read_all(ev->container, ev->container ? strlen(ev->container) : 0);
	check_slots(ev);
	if (ev->kind == TRACE_LOST)
		return true;
	struct buf b = {0};
	trace_encode(ev, &b);
	struct cur c = cur_make(b.data, b.len, false);
	uint32_t len = 0;
	const uint8_t *rec = trace_frame_next(&c, &len);
	struct trace_record *r = malloc(sizeof(*r));
	if (!rec || !trace_decode(rec, len, r) || r->ev.nr != ev->nr || r->ev.ret != ev->ret || memcmp(r->ev.args, ev->args, sizeof(ev->args)) ||
	    r->ev.unfinished != ev->unfinished || r->ev.ip != ev->ip)
		abort();
	check_slots(&r->ev);
	free(r);
	buf_fini(&b);
	fuzz_accepted++;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	struct err *e;
	struct trace_totals totals = {0};
	if (bytes[0] == 'f') {
		struct trace_file *f;
		e = trace_file_open_bytes(bytes + 1, len - 1, &f);
		if (!e) {
			e = trace_file_each(f, check, NULL, &totals);
			trace_file_free(f);
		}
	} else {
		struct trace_join *j = trace_join_new(check, NULL);
		struct trace_cpu cpus[2] = {{.seen = 3}, {.seen = 1}};
		bool more;
		e = trace_join_chunk(j, bytes + 1, len - 1, &more);
		struct buf b = {0};
		trace_join_snapshot(j, &b);
		trace_join_end(j, cpus, 2);
		struct trace_join *again = trace_join_new(check, NULL);
		if (!e)
			e = trace_join_chunk(again, (const uint8_t *)b.data, b.len, &more);
		if (trace_join_totals(again).damaged)
			abort();
		totals = trace_join_totals(j);
		trace_join_free(again);
		trace_join_free(j);
		buf_fini(&b);
	}
	fuzz_rejected += e || totals.damaged;
	err_free(e);
	return 0;
}
