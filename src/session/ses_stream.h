/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_STREAM_H
#define SESSION_SES_STREAM_H

#include "base/buf.h"
#include "session/session.h"

/*
 * Traces and probes that somebody else than the command line asked for: each is a command of scry's own in a process of its own, whose
 * lines wait here until they are read. It ends when it is stopped, when its client is gone, when nobody reads it for a minute, and with
 * this process. All functions are for any thread.
 */
enum {
	SES_STREAM_MAX = 16,               /* at once */
	SES_STREAM_CLIENT_MAX = 4,         /* of one client */
	SES_STREAM_BYTES_MAX = 8 << 20,    /* of lines that wait; what is older is forgotten and counted */
	SES_STREAM_LINE_MAX = 1 << 20,
	SES_STREAM_IDLE_S = 60,
};

/* The program to start, borrowed; null (at the beginning): none, and traces are unsupported. Set once, before anything runs. */
void ses_stream_set_program(const char *path);
/* Starts `args`, ended by null, the program's name not among them. Errors: unsupported, busy. */
_must_use_ struct err *ses_stream_start(uint64_t client, char *const *args, uint64_t *ret_id);

struct ses_stream_ask {
	uint64_t client, id;
	uint64_t from;      /* number of the first line that is wanted: what is before it is given back */
	uint64_t limit;     /* lines */
	uint64_t max_len;   /* bytes of lines, but always one; 0: no limit */
	uint64_t wait_ms;   /* for so many lines, or the end */
	bool stop;          /* ends it first */
	const struct ses_call *call;
};
struct ses_stream_answer {
	struct buf lines;   /* ended by '\n' each */
	uint64_t cnt;
	uint64_t missed;    /* lines before the first of these that were forgotten */
	uint64_t next;      /* number of the line after these */
	bool is_over;       /* there is none and will be none */
	char notes[1024];   /* what it said beside its lines, so far; "" nothing */
};
/* Errors: not_found; cancelled and timeout as ses_call_check(); what the command failed with, when there are no lines left. The answer's
 * buffer is the caller's. */
_must_use_ struct err *ses_stream_read(const struct ses_stream_ask *ask, struct ses_stream_answer *ret);
/* The client is gone, and what it began ends. */
void ses_stream_drop(uint64_t client);

#endif
