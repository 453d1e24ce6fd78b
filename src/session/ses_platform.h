/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_PLATFORM_H
#define SESSION_SES_PLATFORM_H

#include "base/err.h"

#include <stdbool.h>

/* Serving files, processes and debugging to lldb, gdb and other scrys: what the options of `scry platform` mean. */
struct ses_platform {
	const char *root; /* folder that packets about files are confined to; null: none */
	bool allow_run;   /* clients run programs */
	char *const *argv;/* program that each client finds launched, ended by null; null: none. Needs allow_run */
	bool is_remote;   /* over TCP: files are changed only below `root`, or by who may run programs anyway */
};

/* Serves the client at descriptors 0 and 1 until it goes. Errors: invalid (the root), io. */
_must_use_ struct err *ses_platform_stdio(const struct ses_platform *p);

/* Accepts clients on a listening socket until SIGINT or SIGTERM; `is_welcome` (may be null) looks at each. */
_must_use_ struct err *ses_platform_listen(const struct ses_platform *p, int listen_fd, bool (*is_welcome)(int fd));

#endif
