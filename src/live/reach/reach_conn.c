/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_conn.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

/* Bytes read at once: enough for a chunk, and still in the processor's cache when they are expanded. */
#define READ_LEN (256u << 10)
/* Longest reply, raw and expanded. No request of ours asks for more than a few MiB. */
#define MAX_REPLY_LEN (24u << 20)
/* Noise, acks, notifications and bad packets between two replies. */
#define MAX_NOISE 100000u
/* What has to come in the time of a stall at least, so that a byte now and then is no progress. */
#define MIN_PROGRESS_LEN 1024u
#define MAX_REPEATS 3u

/* Offsets count all bytes ever appended to `out`. */
struct request {
	uint64_t start_off, end_off;
	uint64_t tag;
	unsigned flags;
	uint64_t turn; /* round trips after which its reply comes: one more than before it was sent */
	enum { OWN_NONE, OWN_HELLO, OWN_FEATURES } own; /* the connection's own: QStartNoAckMode, qSupported */
};

struct reach_conn {
	struct reach_link link;
	struct reach_wait wait;
	struct gdb_decoder in;
	struct gdb_packet pending; /* decoded and not taken yet, see reach_is_ready() */
	struct buf reply;
	struct buf out;
	uint64_t out_off;     /* offset of out.data[0] */
	uint64_t sent_off;    /* bytes written to the link */
	size_t begun;	      /* of reach_begin() */
	struct request *open; /* a ring */
	size_t open_cap, open_first, open_cnt;
	struct gdb_features features;
	uint64_t turn_cnt; /* of the replies so far */
	uint64_t in_len, echo_no;
	unsigned noise_cnt, repeat_cnt;
	bool is_noack, has_features, has_pending, is_dead;
};

const char *reach_kind_name(enum reach_kind k)
{
	switch (k) {
	case REACH_SCRY:
		return "scry";
	case REACH_LLDB:
		return "lldb-server";
	case REACH_GDBSERVER:
		return "gdbserver";
	case REACH_PLAIN:
		break;
	}
	return "a plain stub";
}

void reach_conn_free(struct reach_conn *c)
{
	if (!c)
		return;
	reach_link_close(&c->link);
	gdb_decoder_fini(&c->in);
	buf_fini(&c->reply);
	buf_fini(&c->out);
	free(c->open);
	free(c);
}

void reach_set_wait(struct reach_conn *c, const struct reach_wait *wait)
{
	c->wait = *wait;
}

static struct err *broken(struct reach_conn *c, struct err *e)
{
	c->is_dead = true;
	return e;
}

/* --- sending --- */

static struct request *open_at(const struct reach_conn *c, size_t i)
{
	return &c->open[(c->open_first + i) % c->open_cap];
}

/* How far may be sent: in ack mode to the end of the first request that is not answered. */
static uint64_t send_limit(const struct reach_conn *c)
{
	return c->is_noack || !c->open_cnt ? c->out_off + c->out.len : open_at(c, 0)->end_off;
}

/* Forgets what is sent; in ack mode not before it was answered, since it may be asked for again. */
static void drop_sent(struct reach_conn *c)
{
	uint64_t keep_off = c->is_noack || !c->open_cnt ? c->sent_off : MIN(c->sent_off, open_at(c, 0)->start_off);
	size_t len = (size_t)(keep_off - c->out_off);
	if (!len || (len < c->out.len && len < READ_LEN))
		return;
	memmove(c->out.data, c->out.data + len, c->out.len - len);
	c->out.len -= len;
	c->out_off = keep_off;
}

/* Writes what may be written now. */
static struct err *push_out(struct reach_conn *c)
{
	if (c->out.failed)
		return broken(c, &err_nomem);
	while (c->sent_off < send_limit(c)) {
		size_t len = (size_t)(send_limit(c) - c->sent_off);
		ssize_t n = send(c->link.out, c->out.data + (c->sent_off - c->out_off), len, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(c->link.out, c->out.data + (c->sent_off - c->out_off), len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0)
			return broken(c, err_os(errno, "the connection was closed by the other machine"));
		c->sent_off += (uint64_t)n;
	}
	drop_sent(c);
	return NULL;
}

struct err *reach_flush(struct reach_conn *c)
{
	return push_out(c);
}

struct buf *reach_begin(struct reach_conn *c)
{
	c->begun = gdb_begin(&c->out);
	return &c->out;
}

static struct err *add_open(struct reach_conn *c, struct request r)
{
	if (c->open_cnt == c->open_cap) {
		size_t cap = c->open_cap ? c->open_cap * 2 : 64;
		struct request *all = malloc(cap * sizeof(*all));
		if (!all)
			return broken(c, &err_nomem);
		for (size_t i = 0; i < c->open_cnt; i++)
			all[i] = *open_at(c, i);
		free(c->open);
		c->open = all;
		c->open_cap = cap;
		c->open_first = 0;
	}
	c->open_cnt++;
	*open_at(c, c->open_cnt - 1) = r;
	return NULL;
}

static struct err *send_as(struct reach_conn *c, struct request r)
{
	if (c->is_dead)
		return err_new(ERR_IO, "the connection is gone");
	r.start_off = c->out_off + c->begun;
	gdb_end(&c->out, c->begun);
	r.end_off = c->out_off + c->out.len;
	r.turn = c->turn_cnt + 1;
	return add_open(c, r);
}

struct err *reach_send(struct reach_conn *c, uint64_t tag, unsigned flags)
{
	struct err *e = send_as(c, (struct request){.tag = tag, .flags = flags});
	/* Small requests wait for reach_reply(), which writes all of them at once. */
	return e || c->out.len < 65536 ? e : push_out(c);
}

/* An ack or an interrupt, outside the count of requests. Nothing else is under way then. */
static struct err *send_mark(struct reach_conn *c, char mark)
{
	struct err *e = reach_poll(c->link.out, POLLOUT, reach_now_ns() + reach_stall_ns(&c->wait), &c->wait);
	if (e)
		return e;
	ssize_t n = send(c->link.out, &mark, 1, MSG_NOSIGNAL);
	if (n < 0 && errno == ENOTSOCK)
		n = write(c->link.out, &mark, 1);
	return n == 1 ? NULL : broken(c, err_os(errno, "the connection was closed by the other machine"));
}

struct err *reach_interrupt(struct reach_conn *c)
{
	struct err *e = push_out(c);
	/* What is to be interrupted may not even be sent. */
	return e || c->sent_off < send_limit(c) ? e : send_mark(c, 3);
}

/* --- receiving --- */

static struct err *fill(struct reach_conn *c)
{
	uint8_t *room = gdb_decoder_room(&c->in, READ_LEN);
	if (!room)
		return broken(c, &err_nomem);
	ssize_t n = read(c->link.in, room, READ_LEN);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n < 0)
		return broken(c, err_os(errno, "the connection broke"));
	if (!n)
		return broken(c, err_new(ERR_IO, "the other machine closed the connection"));
	gdb_decoder_filled(&c->in, (size_t)n);
	c->in_len += (uint64_t)n;
	return NULL;
}

/* The other side wants the last packet again, or (`mark` `-`) we do. */
static struct err *repeat(struct reach_conn *c, bool is_ours)
{
	if (c->is_noack && is_ours)
		return broken(c, err_new(ERR_BAD_INPUT, "a packet came with a wrong checksum"));
	if (++c->repeat_cnt > MAX_REPEATS)
		return broken(c, err_new(ERR_BAD_INPUT, "a packet was damaged %u times on its way %s", c->repeat_cnt,
					 is_ours ? "here" : "there"));
	if (is_ours)
		return send_mark(c, '-');
	if (!c->is_noack && c->open_cnt)
		c->sent_off = open_at(c, 0)->start_off;
	return push_out(c);
}

/* The next packet, or null payload when more bytes are needed. */
static struct err *next_packet(struct reach_conn *c, struct gdb_packet *ret, bool *ret_is_there)
{
	*ret_is_there = false;
	for (;;) {
		struct err *e = NULL;
		enum gdb_item item = gdb_decoder_next(&c->in, ret);
		if (item == GDB_MORE && c->in.junk_cnt < MAX_NOISE)
			return NULL;
		if (item == GDB_PACKET && !c->open_cnt)
			item = GDB_NOTIFICATION; /* nobody asked */
		if (item != GDB_PACKET && (++c->noise_cnt > MAX_NOISE || c->in.junk_cnt >= MAX_NOISE))
			return broken(c, err_new(ERR_BAD_INPUT, "what comes is not the gdb remote protocol"));
		switch (item) {
		case GDB_PACKET:
			c->noise_cnt = c->repeat_cnt = 0;
			c->in.junk_cnt = 0;
			*ret_is_there = true;
			return c->is_noack ? NULL : send_mark(c, '+');
		case GDB_NAK:
			e = repeat(c, false);
			break;
		case GDB_BAD_SUM:
			e = repeat(c, true);
			break;
		case GDB_TOO_LONG:
			return broken(c, err_new(ERR_BAD_INPUT, "a packet of more than %u MiB came", MAX_REPLY_LEN >> 20));
		case GDB_MORE:
		case GDB_NOTIFICATION:
		case GDB_ACK:
		case GDB_INTERRUPT:
			break;
		}
		if (e)
			return e;
	}
}

/* Waits for a packet. */
static struct err *await_packet(struct reach_conn *c, bool may_be_silent, struct gdb_packet *ret)
{
	if (c->has_pending) {
		c->has_pending = false;
		*ret = c->pending;
		return NULL;
	}
	uint64_t stall_ns = reach_stall_ns(&c->wait), until_ns = reach_now_ns() + stall_ns, mark_len = c->in_len;
	for (;;) {
		/* What is here already first: what is asked because of it then goes out together. */
		bool is_there;
		struct err *e = next_packet(c, ret, &is_there);
		if (e || is_there)
			return e;
		e = push_out(c);
		if (e)
			return e;
		bool is_all_sent = c->sent_off >= send_limit(c);
		uint64_t sent_before = c->sent_off;
		/* With both directions open, either may be ready; a full one must not hold up the other. */
		if (!is_all_sent && c->link.in != c->link.out) {
			struct pollfd p[2] = {{.fd = c->link.in, .events = POLLIN}, {.fd = c->link.out, .events = POLLOUT}};
			poll(p, 2, 100);
		} else {
			e = reach_poll(c->link.in, (short)(POLLIN | (is_all_sent ? 0 : POLLOUT)), may_be_silent ? UINT64_MAX : until_ns,
				       &c->wait);
		}
		if (!e)
			e = fill(c);
		if (!e && !is_all_sent)
			e = push_out(c);
		if (e)
			return e;
		if (c->in_len - mark_len >= MIN_PROGRESS_LEN || c->sent_off != sent_before) {
			mark_len = c->in_len;
			until_ns = reach_now_ns() + stall_ns;
		} else if (!may_be_silent && reach_now_ns() >= until_ns) {
			return err_new(ERR_TIMEOUT, "the server has stalled: next to nothing came for %.3g s", (double)stall_ns / 1e9);
		}
	}
}

/* The reply to a request of the connection's own is in c->reply. */
static void take_own(struct reach_conn *c, const struct request *r)
{
	struct gdb_span reply = gdb_span_make(c->reply.data, c->reply.len);
	if (r->own == OWN_FEATURES) {
		gdb_features_read(reply, &c->features);
		c->has_features = true;
		return;
	}
	c->is_noack = c->in.is_noack = gdb_span_is(reply, "OK");
	/* What waited for it goes now. */
	for (size_t i = 0; i < c->open_cnt; i++)
		open_at(c, i)->turn++;
}

static struct request pop_open(struct reach_conn *c)
{
	struct request r = *open_at(c, 0);
	c->open_first = (c->open_first + 1) % c->open_cap;
	c->open_cnt--;
	/* With acknowledgements one goes after the other. */
	c->turn_cnt = c->is_noack ? MAX(c->turn_cnt, r.turn) : c->turn_cnt + 1;
	return r;
}

/* `O` and hex digits, not `OK`. */
static bool is_output(const struct buf *reply)
{
	return reply->len > 2 && reply->data[0] == 'O' && gdb_digit(reply->data[1]) >= 0 && gdb_digit(reply->data[2]) >= 0;
}

static struct err *expand_reply(struct reach_conn *c, const struct gdb_packet *p)
{
	c->reply.len = 0;
	if (!buf_room(&c->reply, 1)) /* never null */
		return broken(c, &err_nomem);
	switch (gdb_expand_buf(p->raw, p->raw_len, true, MAX_REPLY_LEN, &c->reply)) {
	case GDB_EXPAND_OK:
		return NULL;
	case GDB_EXPAND_BAD:
		return broken(c, err_new(ERR_BAD_INPUT, "a packet is malformed: an escape or run without its byte"));
	case GDB_EXPAND_LIMIT:
		break;
	}
	return broken(c, err_new(ERR_BAD_INPUT, "a packet expands to more than %u MiB", MAX_REPLY_LEN >> 20));
}

struct err *reach_reply(struct reach_conn *c, struct reach_reply *ret)
{
	for (;;) {
		if (c->is_dead || !c->open_cnt)
			return err_new(c->is_dead ? ERR_IO : ERR_INTERNAL, c->is_dead ? "the connection is gone" : "no reply is due");
		struct request r = *open_at(c, 0);
		struct gdb_packet p;
		struct err *e = await_packet(c, r.flags & REACH_RUNS, &p);
		if (!e)
			e = expand_reply(c, &p);
		if (e)
			return e;
		bool is_final = !(r.flags & REACH_RUNS) || !is_output(&c->reply);
		if (is_final)
			pop_open(c);
		if (r.own != OWN_NONE) {
			take_own(c, &r);
			continue;
		}
		*ret = (struct reach_reply){.tag = r.tag, .payload = gdb_span_make(c->reply.data, c->reply.len), .is_final = is_final};
		return NULL;
	}
}

size_t reach_open_cnt(const struct reach_conn *c)
{
	size_t own_cnt = 0;
	while (own_cnt < c->open_cnt && open_at(c, own_cnt)->own != OWN_NONE)
		own_cnt++;
	return c->open_cnt - own_cnt;
}

struct err *reach_is_ready(struct reach_conn *c, bool *ret)
{
	*ret = false;
	if (c->is_dead)
		return err_new(ERR_IO, "the connection is gone");
	struct err *e = push_out(c);
	for (bool did_fill = false; !e;) {
		if (!c->has_pending)
			e = next_packet(c, &c->pending, &c->has_pending);
		if (e)
			break;
		if (!c->has_pending && did_fill)
			break;
		if (!c->has_pending) {
			did_fill = true;
			e = fill(c);
			continue;
		}
		*ret = open_at(c, 0)->own == OWN_NONE;
		if (*ret)
			break;
		c->has_pending = false;
		e = expand_reply(c, &c->pending);
		if (!e) {
			struct request r = pop_open(c);
			take_own(c, &r);
			e = push_out(c);
		}
	}
	return e;
}

bool reach_is_sending(const struct reach_conn *c)
{
	return c->sent_off < send_limit(c);
}

static struct err *ask_text(struct reach_conn *c, const char *text, struct gdb_span *ret)
{
	buf_add_str(reach_begin(c), text);
	struct reach_reply r = {0};
	struct err *e = reach_send(c, 0, 0);
	if (!e)
		e = reach_reply(c, &r);
	if (!e)
		*ret = r.payload;
	return e;
}

struct err *reach_ask(struct reach_conn *c, struct gdb_span *ret, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	struct err *e = len < 0 ? &err_nomem : ask_text(c, text, ret);
	if (len >= 0)
		free(text);
	return e;
}

/* The reply to the connection's own first request. */
static struct err *await_own(struct reach_conn *c)
{
	struct gdb_packet p;
	struct err *e = await_packet(c, false, &p);
	if (!e)
		e = expand_reply(c, &p);
	if (e)
		return e;
	struct request r = pop_open(c);
	take_own(c, &r);
	return NULL;
}

struct err *reach_learn(struct reach_conn *c)
{
	return c->has_features ? NULL : await_own(c);
}

struct err *reach_resync(struct reach_conn *c)
{
	if (c->is_dead || !c->features.has_echo || !c->is_noack)
		return err_new(ERR_UNSUPPORTED, "the server has no qEcho; connect anew");
	char text[40];
	snprintf(text, sizeof(text), "qEcho:%llu", (unsigned long long)++c->echo_no);
	buf_add_str(reach_begin(c), text);
	struct err *e = reach_send(c, 0, 0);
	while (!e) {
		struct reach_reply r;
		e = reach_reply(c, &r);
		if (!e && gdb_span_is(r.payload, text))
			break;
		if (!e && !c->open_cnt)
			e = broken(c, err_new(ERR_BAD_INPUT, "the server answers qEcho with something else"));
	}
	if (!e) {
		/* What stood open before it is answered, or never will be. */
		c->open_cnt = 0;
	}
	return e;
}

static struct err *greet(struct reach_conn *c)
{
	/* An ack for whatever it thinks it sent, as LLDB and GDB begin. */
	buf_add_ch(&c->out, '+');
	buf_add_str(reach_begin(c), "QStartNoAckMode");
	struct err *e = send_as(c, (struct request){.own = OWN_HELLO});
	if (e)
		return e;
	buf_add_str(reach_begin(c), "qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+;exec-events+;xmlRegisters=i386");
	return send_as(c, (struct request){.own = OWN_FEATURES});
}

struct err *reach_conn_begin(struct reach_link link, const struct reach_wait *wait, struct reach_conn **ret)
{
	struct reach_conn *c = calloc(1, sizeof(*c));
	if (!c) {
		reach_link_close(&link);
		return &err_nomem;
	}
	c->link = link;
	c->wait = *wait;
	c->in.max_raw_len = MAX_REPLY_LEN;
	struct err *e = greet(c);
	if (e)
		reach_conn_free(c);
	else
		*ret = c;
	return e;
}

struct err *reach_conn_new(struct reach_link link, const struct reach_wait *wait, struct reach_conn **ret)
{
	struct reach_conn *c = NULL;
	struct err *e = reach_conn_begin(link, wait, &c);
	if (e)
		return e;
	e = await_own(c);
	if (e)
		reach_conn_free(c);
	else
		*ret = c;
	return e;
}

const struct gdb_features *reach_features(const struct reach_conn *c)
{
	return &c->features;
}

enum reach_kind reach_conn_kind(const struct reach_conn *c)
{
	if (c->features.is_scry)
		return REACH_SCRY;
	if (c->features.is_lldb)
		return REACH_LLDB;
	return c->is_noack ? REACH_GDBSERVER : REACH_PLAIN;
}

bool reach_is_noack(const struct reach_conn *c)
{
	return c->is_noack;
}

int reach_conn_fd(const struct reach_conn *c)
{
	return c->link.in;
}

bool reach_has_item(const struct reach_conn *c)
{
	return c->has_pending || c->in.pos < c->in.in.len;
}

static bool skip_acks(struct reach_conn *c)
{
	while (!c->has_pending && c->in.pos < c->in.in.len && c->in.in.data[c->in.pos] == '+')
		c->in.pos++;
	return reach_has_item(c);
}

struct err *reach_peek(struct reach_conn *c, bool *ret_has_item)
{
	struct err *e = push_out(c);
	*ret_has_item = skip_acks(c);
	if (!e && !*ret_has_item)
		e = fill(c);
	*ret_has_item = *ret_has_item || skip_acks(c);
	return e;
}

uint64_t reach_turn_cnt(const struct reach_conn *c)
{
	return c->turn_cnt;
}

uint64_t reach_in_len(const struct reach_conn *c)
{
	return c->in_len;
}
