/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DEBUG_LINK_H
#define LIVE_DEBUG_LINK_H

#include "base/err.h"
#include "base/vec.h"
#include "live/reach/reach_conn.h"

/*
 * Batches over a connection: requests that do not depend on each other are asked at once and cost one round trip. A server that says
 * nothing, or nonsense, is an error, after which the link is lost and says so at once. One thread, but for debug_link_interrupt().
 */
struct debug_link {
	struct reach_conn *conn;     /* owned */
	int wake_fd;                 /* eventfd: somebody wants the target stopped */
	const atomic_bool *cancel;   /* may be null; looked at while waiting */
	struct err *lost;            /* why nothing more can be asked; null: it can */
	void (*output)(void *ctx, const char *s, size_t len); /* what the target printed (`O` packets); may be null */
	void *output_ctx;
	uint64_t packet_cnt;         /* requests sent */
};

/* A batch. Zero-initialise; debug_batch_fini() releases. */
struct debug_batch {
	struct buf out;              /* payloads, escaped */
	VEC(size_t) out_ends;        /* of each in `out` */
	struct buf data;             /* replies, expanded */
	VEC(size_t) ends;            /* of each in `data` */
	size_t run_at;               /* number + 1 of the request that lets the target run, 0: none does */
	bool is_one_of_many;         /* steps that follow one another: who asked for their end between two of them is not forgotten, and heard
				      * by the target only when one takes long */
	bool is_interrupted;         /* it was asked to stop meanwhile */
};

/* Takes the link, also on failure, and agrees on how to frame packets. */
_must_use_ struct err *debug_link_begin(struct debug_link *l, struct reach_link link, const struct reach_wait *wait);
void debug_link_fini(struct debug_link *l);

/* Adds a request, a payload that needs no escaping; gives its number in the batch. */
size_t debug_ask(struct debug_batch *b, const char *fmt, ...) _printf_(2, 3);
/* The last request lets the target run, so its reply may take any time; output comes before it and debug_link_interrupt() asks for it. What
 * is asked behind it is answered when the target has stopped, which not every server does right. */
static inline void debug_runs(struct debug_batch *b)
{
	b->run_at = b->out_ends.cnt;
}
/* Sends what was asked and reads as many replies. Answers to what others asked on this connection and did not wait for are passed over. */
_must_use_ struct err *debug_link_run(struct debug_link *l, struct debug_batch *b);
/* The i-th reply, valid until the batch is used again; empty when there is none. */
struct gdb_span debug_reply(const struct debug_batch *b, size_t i);
/* Whether the i-th reply is "OK". */
bool debug_reply_is_ok(const struct debug_batch *b, size_t i);
/* The batch is empty again. */
void debug_batch_clear(struct debug_batch *b);
void debug_batch_fini(struct debug_batch *b);
#define _cleanup_batch_ _cleanup_(debug_batch_fini)

/* Whether somebody asked for that, once. */
bool debug_link_is_interrupted(struct debug_link *l);
/* Any thread: the target that runs is to stop. */
void debug_link_interrupt(struct debug_link *l);

#endif
