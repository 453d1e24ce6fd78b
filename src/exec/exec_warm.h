/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXEC_EXEC_WARM_H
#define EXEC_EXEC_WARM_H

#include "base/err.h"
#include "session/session.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Warm interpreters: processes of python3 that have imported scry and opened a target, and fork one process for each run
 * (python/scry/_warm.py). One run at a time each; those that wait are kept for the next. Any thread.
 */
struct exec_warm;

struct exec_want {
	const char *target;    /* path, or "sha256:HEX" */
	const char *sha256;    /* hex, or "" */
	bool no_store, is_confined;
	struct ses_asked load; /* what no journal tells it */
	const struct ses_call *call; /* whose deadline and cancel flag hold for starting one */
};

/* One that waits, or a new one. Errors: env (no Python, or a build without its module), timeout, cancelled. */
_must_use_ struct err *exec_warm_take(const struct exec_want *want, struct exec_warm **ret);
/* It is free for the next run. */
void exec_warm_give(struct exec_warm *w);
/* Ends it, at once. */
void exec_warm_end(struct exec_warm *w);

int exec_warm_fd(const struct exec_warm *w);            /* of what it says, a line each */
const char *exec_warm_missing(const struct exec_warm *w); /* what the kernel lacks for the lock, "" when nothing */
/* Hands it a request and descriptors. Error io when it is gone. */
_must_use_ struct err *exec_warm_send(struct exec_warm *w, const char *text, size_t len, const int *fds, unsigned fd_cnt);
/* Its next line, without the line feed. Errors: timeout, cancelled (then or later it may still come), io when it is gone. */
_must_use_ struct err *exec_warm_line(struct exec_warm *w, const struct ses_call *call, char *line, size_t cap);
/* Ends those that wait, and returns when they are gone. */
void exec_warm_end_all(void);

#endif
