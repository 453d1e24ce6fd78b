/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_REMOTE_H
#define CLI_CLI_REMOTE_H

#include "session/ops.h"

/* A command that a running server (docs/serving.md) answers in place of this process. */
struct cli_remote {
	const char *socket;          /* a path or a bare name */
	const char *file;            /* what it is about: a path, or what the server calls it; null: no target */
	const char *const *load;     /* --processor, --base, --format; null: not given */
	const struct ops_args *args;
	bool is_json, has_color;
	const atomic_bool *cancel;
	/* Set: */
	struct err *status;          /* what an answer comes to all the same; the caller's */
	char more[256];              /* "20 shown of 300; more with --cursor C", "" */
};

/* Appends what is to be printed. The error is the server's, or that nobody answers there. */
_must_use_ struct err *cli_remote_run(struct cli_remote *r, struct buf *out);

#endif
