/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events with anything in them, as text and as JSON: a call by number with its registers and pieces of memory, or another kind of event.
 * Lines must be one line of printable characters, JSON must be JSON, and neither longer than what an event can hold. Also fed to what
 * remembers descriptors and counts calls.
 */
#include "fuzz.h"

#include "base/cur.h"
#include "live/trace/sysc.h"
#include "live/trace/trace_count.h"
#include "live/trace/trace_fds.h"
#include "live/trace/trace_json.h"
#include "live/trace/trace_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_MAX 16

static void read_event(struct cur *c, struct trace_event *ev, struct trace_slot *slots, char comm[16])
{
	*ev = (struct trace_event){.kind = cur_u8(c) % TRACE_KIND_COUNT, .abi = cur_u8(c) % (TRACE_ABI_COUNT + 1)};
	uint8_t flags = cur_u8(c);
	ev->unfinished = flags & 1;
	ev->nr = (int16_t)cur_u16(c);
	ev->ret = (flags & 2) ? (int64_t)cur_u64(c) : (int16_t)cur_u16(c);
	for (unsigned i = 0; i < 6; i++)
		ev->args[i] = (flags & 4) ? cur_u64(c) : cur_u16(c);
	ev->pid = cur_u8(c);
	ev->tid = cur_u8(c);
	ev->ns = cur_u16(c);
	memset(comm, flags, 15);
	comm[15] = 0;
	ev->comm = flags & 8 ? comm : NULL;
	ev->exe = flags & 16 ? "/x" : NULL;
	ev->slots = slots;
	for (uint8_t cnt = cur_u8(c) % (SLOT_MAX + 1); ev->nslots < cnt && !c->failed;) {
		struct trace_slot *s = &slots[ev->nslots];
		uint8_t what = cur_u8(c);
		*s = (struct trace_slot){.arg = what & 31, .phase = what >> 5 & 1, .part = what >> 6, .status = cur_u8(c), .full = cur_u8(c)};
		uint16_t len = cur_u16(c);
		s->len = (uint32_t)MIN(len, cur_left(c));
		s->data = cur_bytes(c, s->len);
		ev->nslots++;
	}
}

static void check_line(const struct buf *out, size_t max)
{
	if (out->failed || !out->len || out->data[out->len - 1] != '\n' || out->len > max)
		abort();
	for (size_t i = 0; i + 1 < out->len; i++)
		if ((uint8_t)out->data[i] < 0x20 || (uint8_t)out->data[i] > 0x7e)
			abort();
}

static void check_json(const struct buf *out, size_t max)
{
	json_t *doc = out->failed || out->len > max ? NULL : json_loadb(out->data, out->len, JSON_REJECT_DUPLICATES, NULL);
	if (!doc || !json_is_object(doc))
		abort();
	json_decref(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct cur c = cur_make(bytes, len, false);
	struct trace_fds *fds = trace_fds_new(false);
	struct trace_counts *counts = trace_counts_new();
	for (unsigned n = 0; n < 32 && cur_left(&c) > 16 && fds && counts; n++) {
		struct trace_event ev;
		struct trace_slot slots[SLOT_MAX];
		char comm[16];
		read_event(&c, &ev, slots, comm);
		size_t in = 0;
		for (uint32_t i = 0; i < ev.nslots; i++)
			in += slots[i].len;
		/* Flags may name every bit, an address may stand for each argument, a word may be shown for each bit of memory. */
		size_t max = 40 * in + 16384;
		struct trace_text_opts o = {.string_max = n % 2 ? 32 : 4096, .has_pid = n % 3, .has_times = n % 5, .fds = n % 2 ? fds : NULL};
		struct buf text = {0}, json = {0};
		trace_text_event(&ev, &o, &text);
		check_line(&text, max);
		trace_json_event(&ev, &o, NULL, 0, &json);
		check_json(&json, 4 * max);
		trace_fds_event(fds, &ev);
		trace_counts_add(counts, &ev);
		fuzz_accepted += ev.kind == TRACE_SYSCALL && sysc_find(ev.abi, ev.nr);
		fuzz_rejected += ev.kind != TRACE_SYSCALL || !sysc_find(ev.abi, ev.nr);
		buf_fini(&text);
		buf_fini(&json);
	}
	size_t cnt;
	if (counts)
		trace_counts_rows(counts, &cnt);
	trace_counts_free(counts);
	trace_fds_free(fds);
	return 0;
}
