/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_CONN_H
#define LIVE_REACH_REACH_CONN_H

#include "live/gdb/gdb_codec.h"
#include "live/reach/reach_link.h"

/*
 * A client's connection to a gdb remote server: requests go out as they are made, any number in flight, and replies come back in order. A
 * server without no-ack mode answers one at a time (more would give wrong data), so there requests wait here; callers see no difference.
 * Everything it says is hostile: packets and what they expand to are bounded, noise is counted, and silence has an end.
 * One thread at a time.
 */
struct reach_conn;

/* What is at the other end, which decides what can be trusted (docs/remote.md). */
enum reach_kind {
	REACH_SCRY,	 /* our own server */
	REACH_LLDB,	 /* lldb-server, either mode; debugserver */
	REACH_GDBSERVER, /* GNU gdbserver */
	REACH_PLAIN,	 /* QEMU and other stubs */
};
const char *reach_kind_name(enum reach_kind k);

/* Takes the link, also on failure. Agrees on no-ack mode where there is one (one round trip) and asks qSupported, whose answer is read with
 * whatever comes next. Errors: timeout, cancelled, io; bad_input "not a gdb remote server". */
_must_use_ struct err *reach_conn_new(struct reach_link link, const struct reach_wait *wait, struct reach_conn **ret);
/* The same without waiting: the link may still be connecting, and what is asked waits for no-ack mode. What is wrong shows later. */
_must_use_ struct err *reach_conn_begin(struct reach_link link, const struct reach_wait *wait, struct reach_conn **ret);
void reach_conn_free(struct reach_conn *c);
/* From now on. */
void reach_set_wait(struct reach_conn *c, const struct reach_wait *wait);

/* A request: begin, append the payload to the buffer, send. `tag` comes back with the reply. */
struct buf *reach_begin(struct reach_conn *c);
/* The reply may be preceded by any number of `O` packets (output of the program), and may come at any time: silence is no error. */
#define REACH_RUNS 1u
_must_use_ struct err *reach_send(struct reach_conn *c, uint64_t tag, unsigned flags);

struct reach_reply {
	uint64_t tag;
	struct gdb_span payload; /* expanded; borrowed until the next call on this connection */
	bool is_final;		 /* false: an `O` packet; the request is still open */
};

/* The next reply, waiting for it and sending meanwhile. Errors: timeout (a stall: see reach_resync()), cancelled, io (the connection is
 * gone), bad_input (what came is no protocol); after all but timeout and cancelled nothing more can be had. Nothing may be asked when
 * nothing is open. */
_must_use_ struct err *reach_reply(struct reach_conn *c, struct reach_reply *ret);
/* Writes and reads what can be now, waiting for nothing: whether there is more than acknowledgements, so that reach_reply() is worth it. */
_must_use_ struct err *reach_peek(struct reach_conn *c, bool *ret_has_item);
/* The same, and whether a whole reply is there, so that reach_reply() will not wait. */
_must_use_ struct err *reach_is_ready(struct reach_conn *c, bool *ret);
/* Whether something of what was sent has not gone out: then poll(2) for that, too. */
bool reach_is_sending(const struct reach_conn *c);
/* Writes what can be written now of what was sent; waits for nothing. */
_must_use_ struct err *reach_flush(struct reach_conn *c);
/* Replies still to come, and requests not yet written because of ack mode or a full socket. */
size_t reach_open_cnt(const struct reach_conn *c);

/* Sends a request and waits for its reply. Only with nothing else open. */
_must_use_ struct err *reach_ask(struct reach_conn *c, struct gdb_span *ret, const char *fmt, ...) _printf_(3, 4);

/* Asks the server to stop the program (0x03). */
_must_use_ struct err *reach_interrupt(struct reach_conn *c);

/* After a timeout: drops what is open and gets into step by qEcho. Error unsupported where the server has none: connect anew. */
_must_use_ struct err *reach_resync(struct reach_conn *c);

/* Reads the answer to qSupported if it has not come yet. Only with nothing else open. */
_must_use_ struct err *reach_learn(struct reach_conn *c);
/* Known after the first reply, or reach_learn(). */
const struct gdb_features *reach_features(const struct reach_conn *c);
enum reach_kind reach_conn_kind(const struct reach_conn *c);
bool reach_is_noack(const struct reach_conn *c);

/* For poll(2): readable when something came. What is buffered already is told by reach_has_item(). */
int reach_conn_fd(const struct reach_conn *c);
bool reach_has_item(const struct reach_conn *c);

/* The longest chain of requests each of which was sent after the reply to the one before it had come: what latency multiplies. */
uint64_t reach_turn_cnt(const struct reach_conn *c);
/* Bytes received. */
uint64_t reach_in_len(const struct reach_conn *c);

#endif
