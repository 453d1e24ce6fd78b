/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the ring. Their strings and memory are the traced program's; what says how long they are is checked against the layout. */
#include "live/trace/probe_int.h"

static void take_slot(const struct probe_arg *a, const uint8_t *p, bool is_null, struct trace_slot *ret)
{
	int32_t n;
	memcpy(&n, p, sizeof(n));
	ret->phase = TRACE_IN;
	ret->data = p + 8;
	if (is_null || !n) {
		ret->status = TRACE_ABSENT;
		ret->data = NULL;
	} else if (n < 0 || (uint32_t)n > a->len + (a->fetch == PROBE_STRING ? 2u : 0u)) {
		ret->status = TRACE_FAULTED;
	} else if (a->fetch == PROBE_BYTES) {
		ret->status = TRACE_OK;
		ret->len = (uint32_t)n;
	} else {
		ret->status = (uint32_t)n == a->len + 2u ? TRACE_TRUNCATED : TRACE_OK;
		ret->len = MIN((uint32_t)n - 1, a->len);
	}
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static void take_return(const struct probe_kind *k, const uint8_t *p, struct probe_hit *h)
{
	h->ret = word_at(p);
	h->ns = word_at(p + 8);
	if (k->ret.fetch != PROBE_VALUE)
		take_slot(&k->ret, p + 16, !h->ret, &h->slots[PROBE_ARG_MAX]);
}

static void take_entry(const struct probe_kind *k, const struct probe_layout *l, const uint8_t *rec, struct probe_hit *h)
{
	h->values = rec + sizeof(struct probe_rec);
	for (uint32_t i = 0; i < k->arg_cnt; i++) {
		bool is_unknown = h->is_stack_bad && k->args[i].from == PROBE_STACK;
		if (l->slot[i])
			take_slot(&k->args[i], rec + l->slot[i], is_unknown || !word_at(h->values + (size_t)8 * i), &h->slots[i]);
	}
}

bool probe_decode(const struct probe_opts *o, const uint8_t *bytes, size_t len, struct probe_hit *ret)
{
	struct probe_rec r;
	struct probe_layout l;
	if (len < sizeof(r))
		return false;
	memcpy(&r, bytes, sizeof(r));
	if (r.point >= o->point_cnt || o->points[r.point].kind >= o->kind_cnt || r.phase >= PROBE_PHASE_COUNT)
		return false;
	const struct probe_kind *k = &o->kinds[o->points[r.point].kind];
	struct err *e = probe_layout(k, &l);
	uint32_t want = r.phase == PROBE_ENTRY ? l.entry_len : r.phase == PROBE_RETURN ? l.return_len : l.call_len;
	bool ok = !e && len >= want && (r.phase == PROBE_ENTRY || k->has_return);
	err_free(e);
	if (!ok)
		return false;
	/* Slots are many and most unused: what is not fetched stays as it is zeroed, absent without bytes. */
	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i <= PROBE_ARG_MAX; i++)
		ret->slots[i] = (struct trace_slot){.arg = (uint8_t)i, .status = TRACE_ABSENT};
	ret->rec = bytes;
	ret->rec_len = want;
	ret->point = r.point;
	ret->phase = r.phase;
	ret->cpu = r.cpu;
	ret->pid = (uint32_t)(r.pid_tid >> 32);
	ret->tid = (uint32_t)r.pid_tid;
	ret->time = r.time;
	ret->begin = r.begin;
	ret->ip = r.ip;
	ret->sp = r.sp;
	ret->is_stack_bad = r.flags & PROBE_REC_STACK_BAD;
	ret->has_caller = r.flags & PROBE_REC_CALLER;
	ret->caller = r.caller;
	if (r.phase != PROBE_RETURN)
		take_entry(k, &l, bytes, ret);
	if (r.phase != PROBE_ENTRY)
		take_return(k, bytes + (r.phase == PROBE_RETURN ? sizeof(r) : l.entry_len), ret);
	return true;
}
