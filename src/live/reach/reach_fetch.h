/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_FETCH_H
#define LIVE_REACH_REACH_FETCH_H

#include "live/reach/reach_part.h"

/*
 * Fetches files, all of them at once: looks, opens, reads and closes go out as far as a window allows, which grows until the throughput
 * stops rising. Where bytes go and which are needed at all is a sink's to say: the cache, or a file of the user's.
 */
struct reach_fetch_job {
	const char *path; /* there; borrowed */
	/* May be null: where else to look for it, one after the other while it is not there, ended by null; borrowed. `path` becomes the
	 * one where it was, or the last. */
	const char *const *next_paths;
	void *ctx;	  /* the caller's */
	/* The sink's word, when first asked: nothing that is here can be it. */
	bool is_new;
	/* The sink's word, with a part: what comes is of no use for another fetch, since nothing tells two versions of the file apart. */
	bool is_at_once;
	/* What the server says of its SHA-256, after the sink wanted that. */
	bool is_sha256_asked, has_sha256;
	uint8_t sha256[SHA256_LEN];

	/* What became of it. */
	bool is_done;		/* the sink has it */
	struct err *err;	/* else why not, owned; null: not finished, because the connection went */
	struct reach_meta meta; /* what is known of it */

	struct reach_job_state *state; /* the fetch's own */
};

struct reach_progress {
	uint64_t done_len, total_len; /* bytes, of the files whose length is known; what was there before counts */
	uint64_t came_len;	      /* bytes of files that came over the link */
	unsigned done_cnt, job_cnt;
	bool is_waiting; /* for somebody else who fetches the same */
};

/* What a sink says of a file. */
enum reach_place {
	REACH_PLACE_LATER, /* more has to be known; not when all is known */
	REACH_PLACE_PART,  /* here it goes */
	REACH_PLACE_HAS,   /* nothing has to be fetched */
	REACH_PLACE_PROVE, /* the same bytes may be here: ask for their SHA-256, and then again; once, when all is known */
	REACH_PLACE_BUSY,  /* somebody else fetches it just now: ask again later */
};

/* The blocks that nobody waits for. */
enum reach_rest {
	REACH_REST_COMES,
	REACH_REST_WAITS,
	REACH_REST_NEVER, /* the job ends unfinished, after a look at whether the file is still what it was: error cancelled, or stale */
};

/* Somebody who reads a file while it comes. */
struct reach_reader {
	/* Told of each part that place() gave, before anything is written to it. An error fails the job. */
	struct err *(*begun)(void *ctx, struct reach_fetch_job *job, struct reach_part *part);
	/* The block that is needed first (*ret_block, SIZE_MAX: none is), and what of the others. */
	enum reach_rest (*next)(void *ctx, struct reach_fetch_job *job, size_t *ret_block);
	/* Nothing is under way and nothing wanted; returns when that may have changed. */
	void (*idle)(void *ctx);
	void *ctx;
};

struct reach_sink {
	/* Where job's file goes. Asked when something is known (meta) and, with `is_last`, when all is that can be; then the length is
	 * known. An error fails the job. */
	struct err *(*place)(void *ctx, struct reach_fetch_job *job, bool is_last, enum reach_place *ret, struct reach_part **ret_part);
	/* All bytes are there, compared with all that was promised. Takes the part. */
	struct err *(*publish)(void *ctx, struct reach_fetch_job *job, struct reach_part *part, const uint8_t sha256[SHA256_LEN]);
	/* The part that place() gave is closed without: kept for later, or dropped. */
	void (*give_up)(void *ctx, struct reach_fetch_job *job);
	void *ctx;
	const struct reach_reader *reader; /* may be null */
	/* May be null. Often, with its own context. */
	void (*progress)(void *ctx, const struct reach_progress *p);
	void *progress_ctx;
	const atomic_bool *cancel; /* may be null; looked at while somebody else is waited for */
};

/*
 * Fetches what is neither done nor failed. An error is the connection's (io, timeout, cancelled, bad_input): jobs that are neither can be
 * given to another one. What fails one file is in its job: denied, not_found, bad_input (the server lies about length, id or hash), stale
 * (the file changed meanwhile), unsupported (the server would give wrong bytes), io.
 */
_must_use_ struct err *reach_fetch(struct reach_peer *p, struct reach_fetch_job *jobs, unsigned job_cnt, const struct reach_sink *sink);

/*
 * Makes `path` there what the file `fd` is, pipelined, and compares length and hash after; nothing is sent, and nothing touched, where it has
 * that hash already. A new file gets its permissions. `progress` may be null. `*ret_sent_len`: bytes that went. What came only in part is
 * removed there. The connection is out of step after an error. Errors as above; invalid when either is no file, or both are the same.
 */
_must_use_ struct err *reach_push(struct reach_peer *p, const char *path, int fd,
				  void (*progress)(void *ctx, uint64_t done, uint64_t len), void *ctx, uint64_t *ret_sent_len);

#endif
