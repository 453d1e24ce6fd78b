/* SPDX-License-Identifier: Apache-2.0 */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_LEN ((size_t)64 << 10)
#define FLUSH_LEN ((size_t)256 << 10) /* answers that wait to be sent together at most, bytes */
#define STUCK_MS (120 * 1000)         /* a client that takes nothing for so long is gone */
#define KEEP_LEN ((size_t)16 << 20)   /* buffers above this go back after use, bytes */

int plat_conn_init(struct plat_conn *c, const struct plat_opts *opts, int in_fd, int out_fd, int signal_fd)
{
	*c = (struct plat_conn){.opts = opts, .in_fd = in_fd, .out_fd = out_fd, .signal_fd = signal_fd};
	c->in.max_raw_len = PLAT_REQUEST_MAX;
	for (size_t i = 0; i < PLAT_FILES_MAX; i++)
		c->files[i] = -1;
	plat_inf_init(&c->inf);
	return plat_root_init(&c->root, opts->root);
}

void plat_conn_fini(struct plat_conn *c)
{
	plat_inf_fini(&c->inf);
	tenet_record_free(c->log);
	for (size_t i = 0; i < PLAT_FILES_MAX; i++)
		if (c->files[i] >= 0)
			close(c->files[i]);
	for (size_t i = 0; i < c->env.cnt; i++)
		free(c->env.data[i]);
	VEC_FREE(&c->env);
	for (size_t i = 0; i < 3; i++)
		free(c->stdio[i]);
	for (; c->queue_idx < c->queue.cnt; c->queue_idx++)
		free(c->queue.data[c->queue_idx].payload);
	VEC_FREE(&c->queue);
	VEC_FREE(&c->listed);
	gdb_decoder_fini(&c->in);
	struct buf *bufs[] = {&c->req, &c->out, &c->last, &c->scratch, &c->packed, &c->list_filter, &c->maps, &c->object};
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		buf_fini(bufs[i]);
	plat_root_fini(&c->root);
}

/* --- answers -------------------------------------------------------------------------------------------------------- */

void plat_put_hextext(struct buf *out, const char *text)
{
	buf_add_hexbytes(out, (const uint8_t *)text, strlen(text));
}

void plat_error(struct plat_conn *c, unsigned code, const char *text)
{
	buf_add_ch(&c->out, 'E');
	buf_add_hex(&c->out, code & 0xff, 2);
	if (c->has_error_strings && text) {
		buf_add_ch(&c->out, ';');
		plat_put_hextext(&c->out, text);
	}
}

void plat_errno(struct plat_conn *c, int os_errno)
{
	plat_error(c, (unsigned)os_errno, strerror(os_errno));
}

bool plat_text(struct gdb_span hex, char *ret, size_t cap)
{
	struct buf text = {0};
	bool ok = gdb_unhex(hex, cap - 1, &text) && !memchr(text.data ? text.data : "", 0, text.len);
	if (ok) {
		if (text.len)
			memcpy(ret, text.data, text.len);
		ret[text.len] = 0;
	}
	buf_fini(&text);
	return ok;
}

/* --- sending and receiving ------------------------------------------------------------------------------------------ */

static ssize_t send_some(struct plat_conn *c, const char *p, size_t len)
{
	ssize_t n = send(c->out_fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 && errno == ENOTSOCK ? write(c->out_fd, p, len) : n;
}

bool plat_conn_flush(struct plat_conn *c)
{
	size_t at = 0;
	if (c->out_fd < 0) /* whoever feeds us takes it */
		return !c->out.failed;
	while (at < c->out.len && !c->is_gone) {
		ssize_t n = send_some(c, c->out.data + at, c->out.len - at);
		struct pollfd p = {.fd = c->out_fd, .events = POLLOUT};
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			c->is_gone = poll(&p, 1, STUCK_MS) == 0;
		else if (n == 0 || errno != EINTR)
			c->is_gone = true;
	}
	c->is_gone |= c->out.failed;
	c->is_over |= c->is_gone;
	c->out.len = 0;
	if (c->out.cap > KEEP_LEN)
		buf_fini(&c->out);
	return !c->is_gone;
}

bool plat_conn_read(struct plat_conn *c)
{
	uint8_t *to = gdb_decoder_room(&c->in, READ_LEN);
	ssize_t n = to ? read(c->in_fd, to, READ_LEN) : -1;
	if (to && n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0) {
		c->is_eof = true;
		return false;
	}
	gdb_decoder_filled(&c->in, (size_t)n);
	return true;
}

void plat_conn_feed(struct plat_conn *c, const void *bytes, size_t len)
{
	uint8_t *to = gdb_decoder_room(&c->in, len);
	if (!to)
		return;
	memcpy(to, bytes, len);
	gdb_decoder_filled(&c->in, len);
}

/* --- packets -------------------------------------------------------------------------------------------------------- */

static const struct plat_packet *find(struct gdb_span payload)
{
	static const struct plat_packet *const tables[] = {plat_file_packets, plat_state_packets, plat_run_packets, plat_setup_packets,
							   plat_host_packets, plat_proc_packets};
	const struct plat_packet *letter = NULL;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct plat_packet *p = tables[i]; p->name; p++) {
			if (!gdb_span_starts(payload, p->name) || (!(p->flags & PLAT_PREFIX) && !gdb_span_is(payload, p->name)))
				continue;
			if (p->name[1])
				return p;
			letter = p; /* "X" also begins longer names */
		}
	return letter;
}

static void run_packet(struct plat_conn *c, struct gdb_span payload)
{
	const struct plat_packet *p = find(payload);
	size_t start = c->out.len;
	if (p && p->flags & (PLAT_PROCESS | PLAT_ASKS))
		plat_launch_given(c);
	if (p && p->flags & PLAT_RAW && (!(p->flags & PLAT_RUN) || c->opts->allow_run)) {
		gdb_skip(&payload, p->name);
		p->run(c, payload);
	} else {
		start = gdb_begin(&c->out);
		if (p) {
			if (!(p->flags & PLAT_WHOLE))
				gdb_skip(&payload, p->name);
			if (p->flags & PLAT_RUN && !c->opts->allow_run)
				plat_error(c, EACCES, "this server runs no programs: it was started without --allow-run");
			else if (p->flags & PLAT_WRITE && !c->opts->allow_write)
				gdb_vfile_reply_put(&c->out, -1, EACCES);
			else if (p->flags & PLAT_PROCESS && (!c->inf.pid || c->inf.is_exited))
				plat_error(c, c->is_lldb ? 0x44 : ESRCH, "there is no process");
			else
				p->run(c, payload);
		}
		gdb_end(&c->out, start);
	}
	if (!c->is_noack && c->out.len > start) {
		c->last.len = 0;
		buf_add(&c->last, c->out.data + start, c->out.len - start);
	}
}

static bool take_queued(struct plat_conn *c)
{
	if (c->queue_idx == c->queue.cnt) {
		c->queue_idx = c->queue.cnt = 0;
		c->queue_len = 0;
		return false;
	}
	struct plat_queued q = c->queue.data[c->queue_idx++];
	c->queue_len -= q.len;
	run_packet(c, gdb_span_make(q.payload, q.len));
	free(q.payload);
	return true;
}

static void take_packet(struct plat_conn *c, const struct gdb_packet *p)
{
	c->req.len = 0;
	if (!c->is_noack)
		buf_add_ch(&c->out, '+');
	if (gdb_expand_buf(p->raw, p->raw_len, false, PLAT_REQUEST_MAX, &c->req) != GDB_EXPAND_OK)
		gdb_put(&c->out, "E16");
	else
		run_packet(c, gdb_span_make(c->req.data ? c->req.data : "", c->req.len));
	if (c->req.cap > KEEP_LEN)
		buf_fini(&c->req);
}

static bool handle_one(struct plat_conn *c)
{
	struct gdb_packet p;
	if (take_queued(c))
		return true;
	switch (gdb_decoder_next(&c->in, &p)) {
	case GDB_PACKET:
		take_packet(c, &p);
		return true;
	case GDB_BAD_SUM:
		if (!c->is_noack)
			buf_add_ch(&c->out, '-');
		return true;
	case GDB_NAK:
		if (!c->is_noack)
			buf_add(&c->out, c->last.data, c->last.len);
		return true;
	case GDB_ACK:
	case GDB_NOTIFICATION:
	case GDB_INTERRUPT: /* of a program that stopped meanwhile */
		return true;
	case GDB_TOO_LONG:
		c->is_over = true;
		return false;
	case GDB_MORE:
		return false;
	}
	return false;
}

void plat_conn_handle(struct plat_conn *c)
{
	while (!c->is_over && handle_one(c))
		if (c->out.len >= FLUSH_LEN && !plat_conn_flush(c))
			return;
	(void)plat_conn_flush(c);
}

void plat_conn_run(struct plat_conn *c)
{
	while (!c->is_over) {
		plat_conn_handle(c);
		if (c->is_over || c->is_eof)
			return;
		(void)plat_conn_read(c);
	}
}
