/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RPC_LINES_H
#define RPC_LINES_H

#include "base/buf.h"

/*
 * Bytes of a stream to lines, one JSON document each. No I/O: whoever reads feeds what it read. What comes out does not
 * depend on how the bytes were cut into reads. Bounded: a line that is longer than `max` is reported once and
 * swallowed up to its end. Zero-initialise; rpc_lines_fini() releases.
 */
#define RPC_LINE_MAX ((size_t)1 << 20) /* bytes, without the line feed, where `max` is 0 */

enum rpc_line { RPC_LINE_NONE, RPC_LINE_READY, RPC_LINE_TOO_LONG, RPC_LINE_NOMEM };

struct rpc_lines {
	struct buf in;
	size_t at;          /* of in: where the next line begins */
	size_t scanned;     /* of in: up to here there is no line feed */
	size_t max;         /* bytes of a line, without the line feed; 0: RPC_LINE_MAX */
	bool is_skipping;   /* inside a line that was too long */
};

/* How many bytes may be fed now: 0 while a line's worth of them waits to be taken. */
size_t rpc_lines_room(const struct rpc_lines *l);
/* Takes bytes, at most rpc_lines_room() of them. */
void rpc_lines_feed(struct rpc_lines *l, const void *bytes, size_t len);
/* The stream ended: what is left is a line, if it is anything. */
void rpc_lines_end(struct rpc_lines *l);
/* The next line, without its line feed (and a carriage return before it) and valid until the next feed. Empty lines are
 * passed over. */
enum rpc_line rpc_lines_next(struct rpc_lines *l, const char **ret, size_t *ret_len);
void rpc_lines_fini(struct rpc_lines *l);

#endif
