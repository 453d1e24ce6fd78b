/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_COMING_H
#define SESSION_SES_COMING_H

#include "base/file.h"
#include "session/ses_remote.h"

/*
 * A large file of another machine that is opened while it comes: mapped (base/holes.h) as soon as its length is known, with what its tables
 * and the reader want fetched first. What its bytes hash to, and so whose names and comments are its own, is known when all of it is here.
 */
struct ses_coming;

struct ses_coming_opts {
	const atomic_bool *cancel; /* may be null; while this waits, and with `only_wanted` for good */
	bool no_store;
	bool only_wanted; /* the rest is not fetched, until ses_coming_wait() */
	void (*progress)(void *ctx, const struct ses_remote_progress *p); /* may be null; from another thread, until it is freed */
	void *ctx;
};

/*
 * Fetches. Small files, and those that are kept here, are in `*ret_got` when it returns, and `*ret` is null. Else `*ret_file` (the caller's,
 * to be closed after `*ret` is freed) is mapped, and its tables have been asked for. Errors as ses_remote_fetch().
 */
_must_use_ struct err *ses_coming_begin(const char *url, const struct ses_coming_opts *opts, struct ses_coming **ret,
					struct file **ret_file, struct ses_remote_got *ret_got);

/* Waits until all of the file is here, or *stop (may be null; error cancelled). What was got is moved to `*ret_got`, its hash to `sha256`.
 * Errors as of fetching; stale: it changed meanwhile. */
_must_use_ struct err *ses_coming_wait(struct ses_coming *c, const atomic_bool *stop, struct ses_remote_got *ret_got, uint8_t sha256[32]);

/* With `only_wanted`: no more is wanted. Asks whether the file is still what it was: error stale when it is not, or what came between. */
_must_use_ struct err *ses_coming_end(struct ses_coming *c);

/* Ends what is under way; what came is kept for the next time. Null is accepted. */
void ses_coming_free(struct ses_coming *c);

#endif
