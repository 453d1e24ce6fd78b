/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_URL_H
#define LIVE_REACH_REACH_URL_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Where a file of another machine is:
 *   connect://HOST:PORT/PATH           a gdb remote server over TCP (LLDB's spelling); HOST may be [::1]
 *   unix-connect://SOCKET:/PATH        the same over a unix socket; SOCKET is a path on this machine
 *   ssh://[USER@]HOST[:PORT]/PATH      over the user's ssh
 * A path begins with its slash; nothing in it is decoded.
 */
enum reach_scheme { REACH_TCP, REACH_UNIX, REACH_SSH };

struct reach_url {
	enum reach_scheme scheme;
	char *host; /* TCP, SSH; of UNIX the socket */
	char *port; /* null: none was given */
	char *user; /* SSH; null: none was given */
	char *path; /* "" where none was given */
	char *peer; /* the text before the path: what names the server */
};

/* Whether the text begins as one of these. */
bool reach_is_url(const char *text);

/* Error invalid says what is off: no host, a host that begins with `-`, a bad port, control characters, no path where `needs_path`.
 * Released by reach_url_fini(). */
_must_use_ struct err *reach_url_parse(const char *text, bool needs_path, struct reach_url *ret);
void reach_url_fini(struct reach_url *u);
#define _cleanup_url_ _cleanup_(reach_url_fini)

#endif
