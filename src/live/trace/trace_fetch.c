/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_fetch.h"

#include "live/trace/trace_compat.h"

#include "base/cleanup.h"
#include "base/cur.h"

#include <string.h>
#include <sys/uio.h>

#define PAGE 4096
#define PATH_LEN 4096
#define STRUCT_LEN 4096    /* bytes of arrays */
#define SOCKADDR_LEN 128   /* struct sockaddr_storage */
#define IOVEC_CNT 64
#define IOVEC_LEN 16384    /* bytes of the buffers of all */
#define WORDS_LEN 32768    /* bytes of the strings of an array */
#define WORDS_CNT 4096

struct reader {
	struct trace_fetched *f;
	pid_t tid;
	const struct sysc *s;
	const uint64_t *args;
	enum trace_phase phase;
	int64_t ret;
	uint32_t string_max;
	bool is_compat;
};

void trace_fetched_reset(struct trace_fetched *f)
{
	f->slots.cnt = f->offs.cnt = f->bytes.len = 0;
}

void trace_fetched_fini(struct trace_fetched *f)
{
	VEC_FREE(&f->slots);
	VEC_FREE(&f->offs);
	buf_fini(&f->bytes);
}

size_t trace_peek(pid_t tid, uint64_t va, void *to, size_t len)
{
	size_t got = 0;
	while (got < len) {
		/* The kernel transfers whole elements or none: one for each page. */
		struct iovec local = {(char *)to + got, 0}, remote[32];
		unsigned cnt = 0;
		uint64_t at = va + got, left = len - got;
		for (; cnt < ARRAY_LEN(remote) && left; cnt++) {
			uint64_t part = MIN(left, PAGE - at % PAGE);
			if (at + part < at)
				break;
			remote[cnt] = (struct iovec){(void *)(uintptr_t)at, part};
			local.iov_len += part;
			at += part;
			left -= part;
		}
		ssize_t n = cnt ? process_vm_readv(tid, &local, 1, remote, cnt, 0) : 0;
		if (n <= 0)
			break;
		got += (size_t)n;
		if ((size_t)n < local.iov_len)
			break;
	}
	return got;
}

static void push(struct trace_fetched *f, struct trace_slot slot, size_t off)
{
	if (VEC_RESERVE(&f->slots, 1) && VEC_RESERVE(&f->offs, 1)) {
		f->slots.data[f->slots.cnt++] = slot;
		f->offs.data[f->offs.cnt++] = off;
	}
}

void trace_fetch_add(struct trace_fetched *f, struct trace_slot slot, const void *bytes)
{
	size_t off = f->bytes.len;
	buf_add(&f->bytes, bytes, slot.len);
	if (!f->bytes.failed)
		push(f, slot, off);
}

void trace_fetch_end(struct trace_fetched *f)
{
	for (size_t i = 0; i < f->slots.cnt; i++)
		f->slots.data[i].data = (const uint8_t *)(f->bytes.data ? f->bytes.data : "") + f->offs.data[i];
}

/* A slot of `want` bytes at `va`, of which at most `max` are read. */
static const uint8_t *read_bytes(struct reader *r, unsigned arg, unsigned part, uint64_t va, uint64_t want, size_t max)
{
	size_t len = MIN(want, max), off = r->f->bytes.len;
	char *to = buf_room(&r->f->bytes, len);
	if (!to)
		return NULL;
	size_t got = trace_peek(r->tid, va, to, len);
	r->f->bytes.len += got;
	push(r->f, (struct trace_slot){.arg = (uint8_t)arg, .phase = (uint8_t)r->phase, .part = (uint8_t)part, .len = (uint32_t)got,
				       .full = want > UINT32_MAX ? 0 : (uint32_t)want,
				       .status = got < len ? TRACE_FAULTED : len < want ? TRACE_TRUNCATED : TRACE_OK}, off);
	return got == len ? (const uint8_t *)r->f->bytes.data + off : NULL;
}

/* How structs of i386 are read: `cnt` of them, of which at most `max`. */
struct wide {
	const struct trace_compat *c;
	uint64_t cnt;
	size_t max;
};

static const uint8_t *read_wide(struct reader *r, unsigned arg, unsigned part, uint64_t va, struct wide w)
{
	const struct trace_compat *c = w.c;
	uint64_t cnt = w.cnt;
	uint8_t raw[STRUCT_LEN];
	size_t want = MIN(MIN(cnt, w.max), sizeof(raw) / c->from), off = r->f->bytes.len;
	char *to = buf_room(&r->f->bytes, want * c->to);
	if (!to)
		return NULL;
	size_t got = trace_peek(r->tid, va, raw, want * c->from) / c->from;
	r->f->bytes.len += trace_compat_widen(c, raw, got * c->from, (uint8_t *)to, want * c->to);
	push(r->f, (struct trace_slot){.arg = (uint8_t)arg, .phase = (uint8_t)r->phase, .part = (uint8_t)part, .len = (uint32_t)(got * c->to),
				       .full = cnt > UINT32_MAX / c->to ? 0 : (uint32_t)(cnt * c->to),
				       .status = got < want ? TRACE_FAULTED : want < cnt ? TRACE_TRUNCATED : TRACE_OK}, off);
	return got == want ? (const uint8_t *)r->f->bytes.data + off : NULL;
}

/* A struct or an array of them, `want` bytes in the shape of 64-bit ABIs. */
static void read_structs(struct reader *r, unsigned arg, uint64_t want, size_t max)
{
	const struct trace_compat *c = r->is_compat ? trace_compat_find(r->s, &r->s->a[arg]) : NULL;
	if (c && c->fields)
		read_wide(r, arg, TRACE_PART_SELF, r->args[arg], (struct wide){c, want / c->to, max / c->to});
	else
		read_bytes(r, arg, TRACE_PART_SELF, r->args[arg], want, max);
}

/* Appends a string, its NUL included, at most `max` bytes; the status says how it went. */
static uint8_t read_string(struct reader *r, uint64_t va, size_t max)
{
	size_t got = 0;
	while (got < max) {
		size_t part = MIN(MIN(max - got, PAGE - (va + got) % PAGE), got ? PAGE : 256);
		char *to = buf_room(&r->f->bytes, part);
		size_t n = to ? trace_peek(r->tid, va + got, to, part) : 0;
		size_t len = to ? strnlen(to, n) : 0;
		if (!to)
			return TRACE_ABSENT;
		r->f->bytes.len += len < n ? len + 1 : n;
		got += n;
		if (len < n)
			return TRACE_OK;
		if (n < part)
			return TRACE_FAULTED;
	}
	return TRACE_TRUNCATED;
}

static void read_str(struct reader *r, unsigned arg)
{
	const struct sysc_arg *a = &r->s->a[arg];
	size_t off = r->f->bytes.len, max = a->cls == SYSC_PATH ? PATH_LEN : MAX(r->string_max, 64u);
	if (a->size)
		max = MIN(max, a->size);
	uint8_t status = read_string(r, r->args[arg], max);
	push(r->f, (struct trace_slot){.arg = (uint8_t)arg, .phase = (uint8_t)r->phase, .status = status, .len = (uint32_t)(r->f->bytes.len - off)},
	     off);
}

static void read_strv(struct reader *r, unsigned arg)
{
	size_t off = r->f->bytes.len;
	uint8_t status = TRACE_OK;
	for (size_t i = 0; status == TRACE_OK; i++) {
		uint64_t va = 0;
		unsigned word_len = r->is_compat ? 4 : 8;
		if (trace_peek(r->tid, r->args[arg] + i * word_len, &va, word_len) < word_len)
			status = TRACE_FAULTED;
		else if (!va)
			break;
		else if (i == WORDS_CNT || r->f->bytes.len - off >= WORDS_LEN)
			status = TRACE_TRUNCATED;
		else
			status = read_string(r, va, WORDS_LEN - (r->f->bytes.len - off));
	}
	push(r->f, (struct trace_slot){.arg = (uint8_t)arg, .phase = (uint8_t)r->phase, .status = status, .len = (uint32_t)(r->f->bytes.len - off)},
	     off);
}

/* What the partner says, in bytes or elements; out of it, what the result leaves of it. */
static uint64_t length(struct reader *r, const struct sysc_arg *a)
{
	uint64_t n = a->partner >= 0 ? r->args[a->partner] : 0;
	if (a->len == SYSC_LEN_PTR) {
		uint32_t value = 0;
		n = trace_peek(r->tid, n, &value, sizeof(value)) == sizeof(value) ? value : 0;
		/* The kernel says how long it would have been; what was there before says how much it wrote. */
		for (size_t i = 0; i < r->f->slots.cnt; i++) {
			const struct trace_slot *slot = &r->f->slots.data[i];
			if (slot->arg == (uint8_t)a->partner && slot->phase == TRACE_IN && slot->len == 4)
				n = MIN(n, load_u32((const uint8_t *)r->f->bytes.data + r->f->offs.data[i], false));
		}
	} else if (a->partner >= 0 && !sysc_is_wide(&r->s->a[a->partner])) {
		n = (int32_t)n < 0 ? 0 : (uint32_t)n;
	}
	if (r->phase == TRACE_OUT && a->by_ret)
		n = MIN(n, (uint64_t)MAX(r->ret, 0));
	return n;
}

static void read_iovec(struct reader *r, unsigned arg, unsigned part, uint64_t va, uint64_t cnt)
{
	uint64_t left = r->phase == TRACE_OUT ? (uint64_t)MAX(r->ret, 0) : UINT64_MAX, full = 0;
	uint64_t bytes = cnt > IOVEC_CNT ? IOVEC_CNT * 16 + 1 : cnt * 16;
	struct iovec vec[IOVEC_CNT];
	if (r->is_compat)
		read_wide(r, arg, part, va, (struct wide){trace_compat_named("iovec"), cnt, IOVEC_CNT});
	else
		read_bytes(r, arg, part, va, bytes, sizeof(vec));
	const struct trace_slot *slot = r->f->slots.cnt ? &r->f->slots.data[r->f->slots.cnt - 1] : NULL;
	if (!slot)
		return;
	size_t have = slot->len / 16, off = r->f->bytes.len;
	memcpy(vec, r->f->bytes.data + r->f->offs.data[r->f->offs.cnt - 1], have * 16);
	uint8_t status = TRACE_OK;
	for (size_t i = 0; i < have && left && status == TRACE_OK; i++) {
		uint64_t len = MIN(vec[i].iov_len, left), room = IOVEC_LEN - (r->f->bytes.len - off);
		size_t part_len = MIN(len, room);
		char *to = buf_room(&r->f->bytes, part_len);
		size_t got = to ? trace_peek(r->tid, (uintptr_t)vec[i].iov_base, to, part_len) : 0;
		r->f->bytes.len += got;
		full += len;
		left -= len;
		status = got < part_len ? TRACE_FAULTED : part_len < len ? TRACE_TRUNCATED : TRACE_OK;
	}
	push(r->f, (struct trace_slot){.arg = (uint8_t)arg, .phase = (uint8_t)r->phase, .part = TRACE_PART_DATA, .status = status,
				       .len = (uint32_t)(r->f->bytes.len - off), .full = full > UINT32_MAX ? 0 : (uint32_t)full}, off);
}

static const uint8_t *read_msghdr_self(struct reader *r, unsigned arg)
{
	if (r->is_compat)
		return read_wide(r, arg, TRACE_PART_SELF, r->args[arg], (struct wide){trace_compat_named("user_msghdr"), 1, 1});
	return read_bytes(r, arg, TRACE_PART_SELF, r->args[arg], 56, 56);
}

static void read_control(struct reader *r, unsigned arg, uint64_t va, uint64_t len)
{
	uint8_t raw[STRUCT_LEN / 2], wide[STRUCT_LEN];
	if (!r->is_compat) {
		read_bytes(r, arg, TRACE_PART_CONTROL, va, len, STRUCT_LEN);
		return;
	}
	size_t want = MIN(len, sizeof(raw)), got = trace_peek(r->tid, va, raw, want), to = trace_compat_control(raw, got, wide, sizeof(wide));
	trace_fetch_add(r->f, (struct trace_slot){.arg = (uint8_t)arg, .phase = (uint8_t)r->phase, .part = TRACE_PART_CONTROL, .len = (uint32_t)to,
						  .full = want < len ? 0 : (uint32_t)to,
						  .status = got < want ? TRACE_FAULTED : want < len ? TRACE_TRUNCATED : TRACE_OK}, wide);
}

static void read_msghdr(struct reader *r, unsigned arg)
{
	const uint8_t *p = read_msghdr_self(r, arg);
	if (!p)
		return;
	uint64_t name = load_u64(p, false), iov = load_u64(p + 16, false), iov_cnt = load_u64(p + 24, false);
	uint64_t control = load_u64(p + 32, false), control_len = load_u64(p + 40, false);
	uint32_t name_len = load_u32(p + 8, false);
	if (name && name_len)
		read_bytes(r, arg, TRACE_PART_NAME, name, name_len, SOCKADDR_LEN);
	if (iov && iov_cnt)
		read_iovec(r, arg, TRACE_PART_IOV, iov, iov_cnt);
	if (control && control_len)
		read_control(r, arg, control, control_len);
}

static void read_arg(struct reader *r, unsigned arg)
{
	const struct sysc_arg *a = &r->s->a[arg];
	uint64_t va = r->args[arg];
	switch ((enum sysc_fetch)a->fetch) {
	case SYSC_FETCH_STR: read_str(r, arg); break;
	case SYSC_FETCH_STRV: read_strv(r, arg); break;
	case SYSC_FETCH_FIXED:
		if (a->cls == SYSC_FDSET) {
			int32_t n = (int32_t)r->args[0];
			read_bytes(r, arg, TRACE_PART_SELF, va, n < 0 ? 0 : ((uint64_t)(uint32_t)n + 63) / 64 * 8, 128);
		} else {
			read_structs(r, arg, a->size, a->size);
		}
		break;
	case SYSC_FETCH_BYTES:
		/* msgbuf has its type before the text. */
		read_bytes(r, arg, TRACE_PART_SELF, va, length(r, a) + (strstr(a->ctype, "msgbuf") ? 8 : 0),
			   a->cls == SYSC_PATH ? PATH_LEN : r->string_max);
		break;
	case SYSC_FETCH_ARRAY: {
		uint64_t n = length(r, a);
		read_structs(r, arg, n > UINT32_MAX / a->size ? UINT32_MAX : n * a->size, STRUCT_LEN);
		break;
	}
	case SYSC_FETCH_SOCKADDR: read_bytes(r, arg, TRACE_PART_SELF, va, length(r, a), SOCKADDR_LEN); break;
	case SYSC_FETCH_IOVEC: read_iovec(r, arg, TRACE_PART_SELF, va, length(r, &(struct sysc_arg){.partner = a->partner, .len = a->len}));
		break;
	case SYSC_FETCH_MSGHDR: read_msghdr(r, arg); break;
	case SYSC_FETCH_NONE: case SYSC_FETCH_COUNT: break;
	}
}

void trace_fetch(struct trace_fetched *f, const struct trace_fetch_call *call, enum trace_phase phase)
{
	const struct sysc *s = call->s;
	const uint64_t *args = call->args;
	struct reader r = {.f = f, .tid = call->tid, .s = s, .args = args, .phase = phase, .ret = call->ret, .string_max = call->string_max,
			   .is_compat = call->is_compat};
	unsigned wanted = phase == TRACE_IN ? SYSC_IN : SYSC_OUT;
	/* Lengths that pointers lead to come first: how much was written depends on what they were. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < s->nargs; i++)
			if (s->a[i].fetch != SYSC_FETCH_NONE && s->a[i].dir & wanted && args[i] && (s->a[i].len == SYSC_LEN_NONE) == !pass)
				read_arg(&r, i);
	/* A msghdr that is filled is an input, too: its lengths are. */
	for (unsigned i = 0; phase == TRACE_IN && i < s->nargs; i++)
		if (s->a[i].fetch == SYSC_FETCH_MSGHDR && s->a[i].dir == SYSC_OUT && args[i])
			read_msghdr_self(&r, i);
}

void trace_fetch_check_paths(struct trace_fetched *f, const struct trace_fetch_call *call)
{
	const struct sysc *s = call->s;
	for (size_t i = 0; i < f->slots.cnt; i++) {
		struct trace_slot *slot = &f->slots.data[i];
		char now[PATH_LEN];
		if (slot->phase != TRACE_IN || slot->status != TRACE_OK || slot->arg >= s->nargs || s->a[slot->arg].cls != SYSC_PATH || !slot->len)
			continue;
		if (trace_peek(call->tid, call->args[slot->arg], now, slot->len) == slot->len &&
		    memcmp(now, f->bytes.data + f->offs.data[i], slot->len) != 0)
			slot->status = TRACE_RACED;
	}
}
