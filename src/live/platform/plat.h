/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_H
#define LIVE_PLATFORM_PLAT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The server's end of remote debugging: an LLDB platform (files, processes, a shell) and a debug server for x86-64, both on one
 * connection and on one port, for lldb, gdb and ourselves. The protocol is gdb's (live/gdb/gdb_codec.h) with LLDB's extensions. Each
 * connection is a process of its own, so that no client can hold up another, and what a client launched dies with it.
 */
struct plat_opts {
	const char *root; /* folder that packets about files are confined to; null: none. Programs that are run are not confined */
	bool allow_run;   /* clients may launch, attach to and kill programs, and run a shell */
	bool allow_write; /* clients may change files */
	bool own_stdio;   /* programs get descriptors 0 to 2 of this process; else a terminal whose output is sent to the client */
	char *const *argv;/* program that each client finds launched, ended by null; null: none. With allow_run alone */
	uint16_t port;    /* TCP port that debug connections go to; 0: the client knows the way (a unix socket) */
};

/* Serves one connection until its end, in this process, which should have no other children: SIGCHLD is blocked and all children are waited for.
 * `in_fd` and `out_fd` may be the same; both stay open. Error io, or invalid for a root that is no folder. */
_must_use_ struct err *plat_serve(const struct plat_opts *opts, int in_fd, int out_fd);

/* Accepts connections on `listen_fd` (a listening socket) until a signal is readable on `stop_fd` (signalfd), a process for each; more than
 * `conn_max` at a time are closed at once. `is_welcome` (may be null) looks at each first. Ends those processes before it returns. */
struct plat_listen {
	const struct plat_opts *opts;
	int listen_fd, stop_fd;
	unsigned conn_max; /* 0: 256 */
	bool (*is_welcome)(int fd);
};
_must_use_ struct err *plat_listen_run(const struct plat_listen *l);

/* A server for one client in a child of this process, reached through a socket. */
struct plat_stub {
	int fd;    /* the client's end; -1: none */
	pid_t pid; /* 0: none */
};

/* Starts it with `opts`. The child keeps descriptors 0 to 2 and closes all others. Error io. */
_must_use_ struct err *plat_stub_start(const struct plat_opts *opts, struct plat_stub *ret);
/* Closes the connection, which ends what the client launched and lets go of what it attached to, and waits for the child. */
void plat_stub_stop(struct plat_stub *s);

#endif
