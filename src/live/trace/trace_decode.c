/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_decode.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_compat.h"
#include "live/trace/trace_frame.h"

#include "base/cur.h"

#include <string.h>
#include <sys/syscall.h>

/* Slots are taken in as they come; what they mean for events is decided afterwards, as it depends on the result. */

static bool read_wire(struct cur *c, struct trace_record *r, struct trace_wire *w)
{
	const uint8_t *p = cur_bytes(c, sizeof(*w));
	if (!p)
		return false;
	memcpy(w, p, sizeof(*w));
	r->kind = w->kind;
	r->seq = w->seq;
	r->ev = (struct trace_event){.kind = (enum trace_kind)w->kind, .unfinished = w->flags & TRACE_WIRE_ENTRY,
		.abi = w->flags >> TRACE_WIRE_ABI_SHIFT & 3, .cpu = w->cpu,
		.seq = w->cpu == TRACE_WIRE_NO_CPU ? 0 : w->seq, .time = w->time, .tid = w->tid, .nr = w->nr, .ret = w->ret};
	if (r->ev.unfinished && w->flags & TRACE_WIRE_EXACT && !sysc_is_exec(r->ev.abi, w->nr)) /* by ptrace, which gives no others */
		r->ev.left = TRACE_LEFT;
	memcpy(r->ev.args, w->args, sizeof(w->args));
	if (w->flags & TRACE_WIRE_TIMED)
		r->ev.ns = cur_u64(c);
	return (w->kind < TRACE_KIND_COUNT || w->kind == TRACE_WIRE_NUMBERS) && r->ev.abi < TRACE_ABI_COUNT;
}

static bool read_user(struct cur *c, struct trace_event *ev)
{
	struct trace_wire_user u;
	const uint8_t *p = cur_bytes(c, sizeof(u));
	if (!p)
		return false;
	memcpy(&u, p, sizeof(u));
	ev->ip = u.ip;
	ev->sp = u.sp;
	ev->bp = u.sp + u.bp_off;
	const uint8_t *stack = cur_bytes(c, u.area_len);
	if (!stack || u.stack_len > u.area_len)
		return false;
	ev->stack = stack;
	ev->nstack = u.stack_len;
	return true;
}

/* A path from its components, last one first, each with its NUL. One that was cut lacks its first ones. */
static void join_path(struct trace_slot *s, char *out)
{
	size_t at = 0, stop = s->len;
	if (s->status == TRACE_OK && !stop)
		out[at++] = '/';
	while (stop > 0 && !s->data[stop - 1]) {
		size_t from = stop - 1;
		while (from > 0 && s->data[from - 1])
			from--;
		size_t len = stop - 1 - from;
		if (len + 1 > TRACE_PATH_MAX - at)
			break;
		if (at || s->status == TRACE_OK)
			out[at++] = '/';
		memcpy(out + at, s->data + from, len);
		at += len;
		stop = from;
	}
	s->data = (const uint8_t *)out;
	s->len = (uint32_t)at;
}

/* Keeps what only the join reads; false: the slot is one of the event's. */
static bool take_own(struct trace_record *r, const struct trace_slot *s)
{
	switch (s->arg) {
	case TRACE_WIRE_ARG_PROC:
		r->has_proc = s->len == sizeof(r->proc);
		if (r->has_proc)
			memcpy(&r->proc, s->data, sizeof(r->proc));
		r->proc.comm[sizeof(r->proc.comm) - 1] = '\0';
		return true;
	case TRACE_WIRE_ARG_STACK:
		if (s->len > r->ev.nstack) {
			r->ev.stack = s->data;
			r->ev.nstack = s->len;
		}
		return true;
	case TRACE_WIRE_ARG_CONTAINER:
		r->container = s->data;
		r->container_len = s->len;
		return true;
	default:
		return false;
	}
}

/* What a status means depends on the call: the kernel's side only says what went wrong with a copy. */
static void set_status(const struct trace_event *ev, struct trace_slot *s)
{
	if (s->part == TRACE_PART_DATA && s->phase == TRACE_OUT && ev->ret >= 0 && s->len >= (uint64_t)ev->ret) {
		s->len = (uint32_t)ev->ret; /* the rest of the buffers was there before */
		s->full = s->len;
		s->status = TRACE_OK;
	}
	if (s->status == TRACE_OK && !s->len && s->part == TRACE_PART_SELF && s->arg < 6 && !ev->args[s->arg])
		s->status = TRACE_ABSENT;
	else if (s->status == TRACE_OK && s->phase == TRACE_IN && !ev->unfinished)
		s->status = TRACE_LATE;
	if (s->full < s->len && s->status != TRACE_TRUNCATED)
		s->full = s->len;
}

static uint32_t hash_path(const uint8_t *bytes, size_t len)
{
	uint64_t hash = len;
	for (size_t i = 0; i < (len + TRACE_PATH_BLOCK - 1) / TRACE_PATH_BLOCK * TRACE_PATH_BLOCK; i += 8) {
		uint64_t word = 0;
		if (i < len)
			memcpy(&word, bytes + i, MIN(len - i, sizeof(word)));
		hash = trace_path_step(hash, word);
	}
	return trace_path_hash(hash);
}

/* A string that was read when the call had ended: whether it was the same when it began. */
static void compare_path(struct trace_slot *s, uint32_t was)
{
	if (!was || (s->status != TRACE_LATE && s->status != TRACE_TRUNCATED))
		return;
	if (hash_path(s->data, s->len) != was)
		s->status = TRACE_RACED;
	else if (s->status == TRACE_LATE)
		s->status = TRACE_OK;
}

static bool read_slots(struct cur *c, struct trace_record *r, bool is_exact)
{
	unsigned paths = 0;
	/* The thread that was made comes back from the call as well: by then who made it may have the memory for other things again. */
	bool is_stale = !is_exact && r->kind == TRACE_SYSCALL && r->ev.nr == SYS_clone3 && !r->ev.ret && !r->ev.unfinished;
	while (cur_left(c)) {
		struct trace_wire_slot w;
		const uint8_t *p = cur_bytes(c, sizeof(w));
		if (!p)
			return false;
		memcpy(&w, p, sizeof(w));
		struct trace_slot s = {.arg = w.arg, .status = w.how & TRACE_WIRE_STATUS_MASK, .phase = w.how >> TRACE_WIRE_PHASE_SHIFT & 1,
			.part = w.how >> TRACE_WIRE_PART_SHIFT & 7, .len = w.len, .full = w.full};
		s.data = cur_bytes(c, w.len);
		cur_skip(c, -(uint32_t)w.len & 7);
		if (c->failed || s.status >= TRACE_STATUS_COUNT || s.part >= TRACE_PART_COUNT)
			return false;
		if (take_own(r, &s))
			continue;
		bool is_call = r->kind == TRACE_SYSCALL, is_hashed = is_call && w.how & TRACE_WIRE_HASHED;
		if (!is_call && w.how & TRACE_WIRE_REVERSED && paths < 2)
			join_path(&s, r->paths[paths++]);
		if (is_hashed)
			s.full = 0;
		if (is_call && !is_exact)
			set_status(&r->ev, &s);
		if (is_hashed)
			compare_path(&s, w.full);
		if (s.full < s.len)
			s.full = 0;
		if (r->ev.nslots < TRACE_SLOT_MAX && !is_stale)
			r->slots[r->ev.nslots++] = s;
	}
	return true;
}

/* Of bytes that were read because another argument might have made this one a pointer: what it is. False: it is none. */
static bool fit_slot(const struct trace_event *ev, const struct sysc_arg *a, struct trace_slot *s)
{
	bool is_error = ev->ret < 0 && ev->ret >= -4095;
	if (!s->len && ev->args[s->arg])
		s->status = TRACE_FAULTED; /* or too small for a pointer: it was not tried */
	if (a->fetch == SYSC_FETCH_NONE || !s->len || (a->dir == SYSC_OUT && is_error))
		return a->fetch != SYSC_FETCH_NONE && !s->len;
	bool is_cut = false;
	uint64_t want = s->len;
	if (a->fetch == SYSC_FETCH_FIXED) {
		want = a->size;
	} else if (a->fetch == SYSC_FETCH_STR) {
		want = strnlen((const char *)s->data, s->len);
		is_cut = want == s->len;
	} else if (a->len == SYSC_LEN_ARG && a->partner >= 0) {
		want = ev->args[a->partner & 7];
		is_cut = want > s->len;
	}
	if (a->dir == SYSC_IN)
		s->phase = TRACE_IN;
	if (want <= s->len && !(is_cut && s->status == TRACE_FAULTED))
		s->status = is_cut ? TRACE_TRUNCATED : s->phase == TRACE_IN ? TRACE_LATE : TRACE_OK;
	s->full = is_cut && a->fetch == SYSC_FETCH_STR ? 0 : (uint32_t)MIN(want, UINT32_MAX);
	s->len = (uint32_t)MIN(want, s->len);
	return true;
}

/* Leaves of the slots of fcntl(2) and its like what their arguments make of them. */
static void fit_variants(struct trace_record *r)
{
	const struct sysc *s = r->ev.abi != TRACE_I386 ? sysc_find(r->ev.abi, r->ev.nr) : NULL;
	struct sysc v;
	if (!s || !sysc_variant(s, 0, &v))
		return;
	sysc_resolve(s, r->ev.args, &v);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < r->ev.nslots; i++) {
		struct trace_slot slot = r->slots[i];
		bool is_own = slot.part == TRACE_PART_SELF && slot.arg < SYSC_ARG_MAX && s->a[slot.arg].fetch == SYSC_FETCH_NONE;
		if (!is_own || (slot.arg < v.nargs && fit_slot(&r->ev, &v.a[slot.arg], &slot)))
			r->slots[kept++] = slot;
	}
	r->ev.nslots = kept;
}

/* How a slot of i386 differs from what it is elsewhere; null: it does not. */
static const struct trace_compat *compat_of(const struct sysc *s, const struct trace_slot *slot)
{
	if (slot->part == TRACE_PART_IOV)
		return trace_compat_named("iovec");
	if (slot->part != TRACE_PART_SELF || slot->arg >= s->nargs)
		return NULL;
	const struct sysc_arg *a = &s->a[slot->arg];
	switch (a->fetch) {
	case SYSC_FETCH_IOVEC: return trace_compat_named("iovec");
	case SYSC_FETCH_MSGHDR: return trace_compat_named("user_msghdr");
	case SYSC_FETCH_FIXED: case SYSC_FETCH_ARRAY: return trace_compat_find(s, a);
	default: return NULL;
	}
}

/* Structs of i386 get the shape that all others have. */
static void widen(struct trace_record *r)
{
	const struct sysc *s = sysc_find(r->ev.abi, r->ev.nr);
	size_t used = 0;
	for (uint32_t i = 0; s && i < r->ev.nslots; i++) {
		struct trace_slot *slot = &r->slots[i];
		const struct trace_compat *c = compat_of(s, slot);
		bool is_control = slot->part == TRACE_PART_CONTROL;
		if (!is_control && (!c || !c->fields))
			continue;
		uint8_t *to = r->wide + used;
		size_t room = sizeof(r->wide) - used;
		uint32_t full = slot->full;
		size_t len = is_control ? trace_compat_control(slot->data, slot->len, to, room)
					: trace_compat_widen(c, slot->data, slot->len, to, room);
		if (is_control)
			full = slot->status == TRACE_TRUNCATED ? 0 : (uint32_t)len;
		else
			full = full > UINT32_MAX / c->to ? 0 : full / c->from * c->to;
		slot->data = to;
		slot->len = (uint32_t)len;
		slot->full = full && full < len ? (uint32_t)len : full;
		used += len;
	}
}

bool trace_decode(const uint8_t *rec, size_t len, struct trace_record *r)
{
	struct cur c = cur_make(rec, len, false);
	struct trace_wire w;
	r->has_proc = false;
	r->container = NULL;
	r->container_len = 0;
	if (len > TRACE_WIRE_MAX || !read_wire(&c, r, &w))
		return false;
	if (w.flags & TRACE_WIRE_USER && !read_user(&c, &r->ev))
		return false;
	if (!read_slots(&c, r, w.flags & TRACE_WIRE_EXACT) || c.failed)
		return false;
	r->ev.slots = r->slots;
	if (r->kind == TRACE_SYSCALL && !(w.flags & TRACE_WIRE_EXACT))
		fit_variants(r);
	if (r->kind == TRACE_SYSCALL && !(w.flags & TRACE_WIRE_EXACT) && r->ev.abi == TRACE_I386)
		widen(r);
	if (r->ev.unfinished)
		r->ev.ret = 0;
	if (r->kind == TRACE_LOST) {
		r->ev.lost.count = w.args[0];
		r->ev.lost.first = w.args[1];
		r->ev.lost.last = w.args[2];
		r->ev.lost.reason = w.nr >= 0 && w.nr < TRACE_LOST_REASON_COUNT ? (uint8_t)w.nr : TRACE_LOST_FILE;
		memset(r->ev.args, 0, sizeof(r->ev.args));
		r->ev.nr = 0;
	}
	return true;
}

/* --- back -------------------------------------------------------------------------------------------------------- */

static void put_text(struct buf *b, size_t begin, uint8_t arg, const char *s)
{
	size_t len = s ? strnlen(s, 4096) : 0;
	if (len)
		trace_record_slot(b, begin, (struct trace_wire_slot){.len = (uint16_t)len, .arg = arg}, s);
}

void trace_encode(const struct trace_event *ev, struct buf *b)
{
	struct trace_wire w = {.time = ev->time, .tid = ev->tid, .seq = (uint32_t)ev->seq, .nr = ev->nr,
		.cpu = ev->seq ? ev->cpu : TRACE_WIRE_NO_CPU, .kind = (uint8_t)ev->kind,
		.flags = (uint8_t)((ev->unfinished ? TRACE_WIRE_ENTRY : 0) | TRACE_WIRE_EXACT | ev->abi << TRACE_WIRE_ABI_SHIFT |
				   (ev->ns ? TRACE_WIRE_TIMED : 0) | (ev->ip ? TRACE_WIRE_USER : 0)),
		.ret = ev->ret};
	memcpy(w.args, ev->args, sizeof(w.args));
	if (ev->kind == TRACE_LOST) {
		w.args[0] = ev->lost.count;
		w.args[1] = ev->lost.first;
		w.args[2] = ev->lost.last;
		w.nr = ev->lost.reason;
	}
	size_t begin = trace_record_begin(b, &w);
	if (ev->ns)
		buf_add(b, &ev->ns, sizeof(ev->ns));
	if (ev->ip) {
		uint16_t area = (uint16_t)(MIN(ev->nstack, 2u * TRACE_STACK_DEEP) & ~7u);
		struct trace_wire_user u = {.ip = ev->ip, .sp = ev->sp, .area_len = area, .stack_len = area,
			.bp_off = (uint32_t)(ev->bp - ev->sp)};
		buf_add(b, &u, sizeof(u));
		buf_add(b, ev->stack, area);
	}
	struct trace_wire_proc p = {.tgid = ev->pid, .ppid = ev->ppid};
	memcpy(p.comm, ev->comm ? ev->comm : "", ev->comm ? strnlen(ev->comm, sizeof(p.comm) - 1) : 0);
	trace_record_slot(b, begin, (struct trace_wire_slot){.len = sizeof(p), .arg = TRACE_WIRE_ARG_PROC}, &p);
	bool has_exe = false;
	for (uint32_t i = 0; i < ev->nslots; i++) {
		const struct trace_slot *s = &ev->slots[i];
		uint16_t len = (uint16_t)MIN(s->len, (uint32_t)TRACE_LIMIT_MAX * 2);
		unsigned status = len < s->len && s->status != TRACE_FAULTED ? TRACE_TRUNCATED : s->status;
		has_exe = has_exe || s->arg == TRACE_ARG_EXE;
		struct trace_wire_slot w_slot = {.len = len, .arg = s->arg, .full = s->full || len == s->len ? s->full : s->len,
			.how = (uint8_t)(status | (unsigned)s->part << TRACE_WIRE_PART_SHIFT | (unsigned)s->phase << TRACE_WIRE_PHASE_SHIFT)};
		trace_record_slot(b, begin, w_slot, s->data);
	}
	if ((ev->kind == TRACE_EXEC || ev->kind == TRACE_PROCESS) && !has_exe)
		put_text(b, begin, TRACE_ARG_EXE, ev->exe);
	if (ev->kind == TRACE_EXEC || ev->kind == TRACE_PROCESS)
		put_text(b, begin, TRACE_WIRE_ARG_CONTAINER, ev->container);
	trace_record_end(b, begin);
}
