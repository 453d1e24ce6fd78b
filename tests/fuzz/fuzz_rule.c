/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules and events: the input is a text of rules, a zero byte, and bytes that events are made of: their kinds, calls, registers and slots of
 * any length and status. A text is refused with a line that it has, or it is used; then
 * whatever comes, findings name rules that are there.
 */
#include "fuzz.h"

#include "base/cur.h"
#include "live/trace/sysc.h"
#include "live/trace/trace_fds.h"
#include "live/trace/trace_rule.h"

#include <stdlib.h>
#include <string.h>

static uint64_t told;

static void on_finding(void *ctx, const struct trace_finding *f)
{
	if (!f->rule || !f->title || !f->severity || (!f->ev && !f->repeats))
		abort();
	told++;
}

static bool make_event(struct cur *c, struct trace_event *ev, struct trace_slot slots[4], char names[2][16])
{
	*ev = (struct trace_event){.kind = cur_u8(c) % TRACE_KIND_COUNT};
	uint8_t bits = cur_u8(c);
	ev->abi = bits & 3;
	ev->unfinished = (bits & 0x84) == 0x84;
	ev->nr = cur_u16(c) % 470;
	ev->pid = cur_u8(c) % 8;
	ev->tid = ev->pid + (bits >> 6);
	ev->ppid = cur_u8(c) % 8;
	ev->ret = (int8_t)cur_u8(c);
	ev->time = cur_u32(c);
	for (unsigned i = 0; i < 6; i++)
		ev->args[i] = i < 3 ? cur_u16(c) : 0;
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *p = cur_bytes(c, 8);
		memset(names[i], 0, 16);
		if (p)
			memcpy(names[i], p, 8);
	}
	if (bits & 8)
		ev->comm = names[0];
	if (bits & 16)
		ev->exe = names[1];
	ev->slots = slots;
	for (; ev->nslots < (bits >> 4) % 5u && ev->nslots < 4; ev->nslots++) {
		struct trace_slot *s = &slots[ev->nslots];
		*s = (struct trace_slot){.arg = cur_u8(c) % 20, .status = cur_u8(c) % TRACE_STATUS_COUNT, .len = cur_u8(c) % 40};
		s->data = cur_bytes(c, s->len);
		if (!s->data)
			break;
	}
	return !c->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct trace_rules *r;
	struct trace_fds *fds = trace_fds_new(false);
	size_t text_len = strnlen((const char *)bytes, len), lines = 1;
	if (!fds || trace_rules_new(&r))
		abort();
	for (size_t i = 0; i < text_len; i++)
		lines += bytes[i] == '\n';
	struct err *e = trace_rules_add_text(r, "f", (const char *)bytes, text_len);
	if (e) {
		struct trace_finding f;
		if (e->kind != ERR_INVALID || strncmp(e->text, "f:", 2) || strtoul(e->text + 2, NULL, 10) > lines || trace_rules_get(r, 0, &f))
			abort();
		fuzz_rejected++;
	} else {
		fuzz_accepted++;
		struct cur c = cur_make(bytes + text_len, len - text_len, false);
		struct trace_event ev;
		struct trace_slot slots[4];
		char names[2][16];
		if (!trace_rules_begin(r, on_finding, NULL, fds))
			abort();
		cur_skip(&c, 1);
		while (cur_left(&c) && make_event(&c, &ev, slots, names)) {
			trace_rules_event(r, &ev);
			trace_fds_event(fds, &ev);
		}
		trace_rules_finish(r);
	}
	err_free(e);
	trace_rules_free(r);
	trace_fds_free(fds);
	return 0;
}
