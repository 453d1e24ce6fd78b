/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHILD_CC_H
#define BASE_CHILD_CC_H

#include "base/buf.h"
#include "base/err.h"

/*
 * A temporary folder, for this user alone, in which a compiler makes code of C that scry printed. It runs as child_tool.h says,
 * able to write only there. Once opened, several threads may put and run.
 */
struct child_cc {
	char dir[128];             /* absolute; without a slash at its end */
	/* As in child_tool.h; to be set after child_cc_open(). */
	struct err *(*check)(void *ctx);
	void *check_ctx;
};

/* Makes the folder below $TMPDIR, else /tmp. Error env. */
_must_use_ struct err *child_cc_open(struct child_cc *cc);

/* Writes the file `name` of the folder. Error env. */
_must_use_ struct err *child_cc_put(const struct child_cc *cc, const char *name, const void *bytes, size_t len);

/* Runs `argv` ("gcc", ..., null) in the folder. Errors: internal "gcc does not take the C: ..." with its first words of an error,
 * env when there is no such compiler, check()'s, timeout, budget. */
_must_use_ struct err *child_cc_run(const struct child_cc *cc, const char *const *argv);

/* What keeps the compiler to its folder and this kernel does not have, as text for a person; "" when nothing is missing. */
const char *child_cc_missing(void);

/* Removes the folder and what is in it. A folder that was never made is accepted. */
void child_cc_close(struct child_cc *cc);

#endif
