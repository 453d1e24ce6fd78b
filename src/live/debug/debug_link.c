/* SPDX-License-Identifier: Apache-2.0 */
#include "live/debug/debug_link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum { SLICE_MS = 100, BATCH_MAX = 64 << 20 };
/* How long a target may take to stop when asked to. */
static const uint64_t stop_grace_ns = 10000000000u;
/* How long one step of many takes at most, unless it waits for something. */
static const uint64_t patience_ns = 500000000;

struct err *debug_link_begin(struct debug_link *l, struct reach_link link, const struct reach_wait *wait)
{
	l->cancel = wait->cancel;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0) {
		struct err *e = err_os(errno, "eventfd");
		reach_link_close(&link);
		return e;
	}
	return reach_conn_new(link, wait, &l->conn);
}

void debug_link_fini(struct debug_link *l)
{
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	l->wake_fd = -1;
	if (l->conn)
		reach_conn_free(l->conn);
	l->conn = NULL;
	err_free(l->lost);
	l->lost = NULL;
}

void debug_link_interrupt(struct debug_link *l)
{
	uint64_t one = 1;
	(void)!write(l->wake_fd, &one, sizeof(one));
}

bool debug_link_is_interrupted(struct debug_link *l)
{
	uint64_t v;
	bool is_cancelled = l->cancel && atomic_load(l->cancel);
	return read(l->wake_fd, &v, sizeof(v)) > 0 || is_cancelled;
}

size_t debug_ask(struct debug_batch *b, const char *fmt, ...)
{
	char text[1024];
	_cleanup_free_ char *more = NULL;
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n >= (int)sizeof(text) && vasprintf(&more, fmt, again) < 0) {
		more = NULL;
		b->out.failed = true;
	}
	va_end(again);
	va_end(ap);
	buf_add_str(&b->out, more ? more : text);
	if (!VEC_PUSH(&b->out_ends, b->out.len))
		b->out.failed = true;
	return b->out_ends.cnt - 1;
}

void debug_batch_clear(struct debug_batch *b)
{
	b->out.len = b->data.len = b->out_ends.cnt = b->ends.cnt = b->run_at = 0;
}

void debug_batch_fini(struct debug_batch *b)
{
	buf_fini(&b->out);
	buf_fini(&b->data);
	VEC_FREE(&b->out_ends);
	VEC_FREE(&b->ends);
}

struct gdb_span debug_reply(const struct debug_batch *b, size_t i)
{
	if (i >= b->ends.cnt || !b->data.data)
		return gdb_span_make("", 0);
	size_t from = i ? b->ends.data[i - 1] : 0;
	return gdb_span_make(b->data.data + from, b->ends.data[i] - from);
}

bool debug_reply_is_ok(const struct debug_batch *b, size_t i)
{
	return gdb_span_is(debug_reply(b, i), "OK");
}

static void print_output(struct debug_link *l, struct gdb_span reply)
{
	_cleanup_buf_ struct buf text = {0};
	if (gdb_unhex(gdb_span_make(reply.s + 1, reply.len - 1), reply.len, &text) && l->output && text.len)
		l->output(l->output_ctx, text.data, text.len);
}

/* Waits until the target, which runs, says something, and asks it to stop when somebody wants that. */
static struct err *await_stop(struct debug_link *l, bool is_patient, uint64_t *until_ns)
{
	uint64_t patient_ns = is_patient ? reach_now_ns() + patience_ns : 0;
	for (bool has_item = false;;) {
		struct err *e = reach_peek(l->conn, &has_item);
		if (e || has_item)
			return e;
		int wake_fd = *until_ns || reach_now_ns() < patient_ns ? -1 : l->wake_fd;
		struct pollfd p[2] = {{.fd = reach_conn_fd(l->conn), .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
		int n = poll(p, 2, SLICE_MS);
		if (n < 0 && errno != EINTR)
			return err_os(errno, "poll");
		bool is_cancelled = l->cancel && atomic_load(l->cancel);
		uint64_t v;
		if (!*until_ns && (is_cancelled || (n > 0 && p[1].revents && read(l->wake_fd, &v, sizeof(v)) > 0))) {
			*until_ns = reach_now_ns() + stop_grace_ns;
			e = reach_interrupt(l->conn);
		} else if (*until_ns && reach_now_ns() > *until_ns) {
			e = err_new(ERR_TIMEOUT, "the target was asked to stop and does not");
		}
		if (e)
			return e;
	}
}

static struct err *take_replies(struct debug_link *l, struct debug_batch *b, size_t stray_cnt)
{
	uint64_t until_ns = 0;
	while (b->ends.cnt < b->out_ends.cnt) {
		struct reach_reply r;
		bool is_stop = !stray_cnt && b->ends.cnt + 1 == b->run_at;
		struct err *e = is_stop ? await_stop(l, b->is_one_of_many, &until_ns) : NULL;
		if (!e)
			e = reach_reply(l->conn, &r);
		b->is_interrupted |= until_ns != 0;
		if (e)
			return e;
		if (!r.is_final) {
			print_output(l, r.payload);
			if (until_ns && reach_now_ns() > until_ns)
				return err_new(ERR_TIMEOUT, "the target was asked to stop and does not");
			continue;
		}
		if (stray_cnt) {
			stray_cnt--;
			continue;
		}
		buf_add(&b->data, r.payload.s, r.payload.len);
		if (b->data.len > BATCH_MAX)
			return err_new(ERR_BUDGET, "replies of the debug server are longer than %d MB", BATCH_MAX >> 20);
		if (b->data.failed || !VEC_PUSH(&b->ends, b->data.len))
			return &err_nomem;
	}
	return NULL;
}

struct err *debug_link_run(struct debug_link *l, struct debug_batch *b)
{
	uint64_t v;
	if (l->lost)
		return err_new(l->lost->kind, "%s", l->lost->text);
	if (b->out.failed)
		return &err_nomem;
	b->data.len = b->ends.cnt = 0;
	b->is_interrupted = false;
	struct err *e = NULL;
	size_t stray_cnt = reach_open_cnt(l->conn);
	/* What was asked for before it runs is stale; what comes once it is on its way is not. */
	if (b->run_at && !b->is_one_of_many)
		(void)!read(l->wake_fd, &v, sizeof(v));
	for (size_t i = 0, from = 0; i < b->out_ends.cnt && !e; from = b->out_ends.data[i++]) {
		buf_add(reach_begin(l->conn), b->out.data + from, b->out_ends.data[i] - from);
		e = reach_send(l->conn, i, i + 1 == b->run_at ? REACH_RUNS : 0);
		l->packet_cnt++;
	}
	if (!e)
		e = take_replies(l, b, stray_cnt);
	if (e)
		l->lost = err_new(e->kind, "the connection was given up: %s", e->text);
	return e;
}
