/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RPC_SOCK_H
#define RPC_SOCK_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * Unix sockets that only their owner can use, at either end. A socket is made with mode 0600 in a folder that nobody else can change (or
 * whose sticky bit keeps others from changing what is not theirs), and each end checks the other's uid by SO_PEERCRED (unix(7)).
 */

/* Where a socket called so lies: a path as it is; a bare name in $XDG_RUNTIME_DIR/scry, without that in /tmp/scry-UID, folders
 * for this user alone, made when `make` says so. Errors: invalid (too long for a socket), denied (a folder that is not ours). */
_must_use_ struct err *rpc_sock_path(const char *name, bool make, struct sockaddr_un *ret);

struct rpc_listener {
	int fd;             /* listening, non-blocking; -1: none */
	struct sockaddr_un at;
	dev_t dev;          /* of the name in the file system */
	ino_t ino;
};

/* A socket that nobody answers on any more is replaced; error busy when somebody does, denied for what is no socket of ours. */
_must_use_ struct err *rpc_listen(const struct sockaddr_un *at, struct rpc_listener *ret);
/* Closes it and takes its name out of the file system, if that still is this socket's. */
void rpc_listener_fini(struct rpc_listener *l);

/* A socket that listens at "HOST:PORT" ("[::1]:80", port 0 for any) and nowhere else, non-blocking. What is said there anybody can hear who can
 * connect. Errors: invalid, io. */
_must_use_ struct err *rpc_listen_tcp(const char *where, int *ret_fd);

/* A connection to a socket whose owner is this user; blocking. */
_must_use_ struct err *rpc_connect(const struct sockaddr_un *at, int *ret_fd);

/* Whether the other end is this user. */
bool rpc_is_peer_ours(int fd);

#endif
