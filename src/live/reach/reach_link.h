/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_LINK_H
#define LIVE_REACH_REACH_LINK_H

#include "live/reach/reach_url.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* How long something may take, and who may end it. Copied by whoever takes it. */
struct reach_wait {
	unsigned stall_ms;	   /* without progress for that long, it has failed; 0: 15 s */
	const atomic_bool *cancel; /* may be null */
};

/* Two descriptors, non-blocking, perhaps the same, and the process behind them, perhaps none. */
struct reach_link {
	int in, out;
	pid_t pid;
};
#define REACH_NO_LINK ((struct reach_link){.in = -1, .out = -1})

/*
 * Connects: TCP, a unix socket, or `ssh -- HOST` with the given command there (`ssh_command`, shell words) or, with `ssh_subsystem`, that
 * subsystem. ssh's own messages go to stderr. Errors: timeout, denied, not_found, io, cancelled; env without ssh.
 */
_must_use_ struct err *reach_link_open(const struct reach_url *u, const struct reach_wait *wait, const char *ssh_command,
				       const char *ssh_subsystem, struct reach_link *ret);

/* A link over a connected descriptor (takes it). */
_must_use_ struct err *reach_link_fd(int fd, struct reach_link *ret);

/* Begins to connect to where the socket `fd` is connected to, waiting for nothing: what is wrong shows when it is written to. Error
 * unsupported when it is no socket of TCP or a path. */
_must_use_ struct err *reach_link_again(int fd, struct reach_link *ret);

/* Closes and, when a process is behind it, waits until that has ended, at most a second before it is killed. */
void reach_link_close(struct reach_link *l);

/* Waits until `fd` has `events` (poll(2)), at most until `until_ns` (CLOCK_MONOTONIC). Errors: timeout, cancelled, io. */
_must_use_ struct err *reach_poll(int fd, short events, uint64_t until_ns, const struct reach_wait *wait);
uint64_t reach_now_ns(void);
static inline uint64_t reach_stall_ns(const struct reach_wait *wait)
{
	return (uint64_t)(wait->stall_ms ? wait->stall_ms : 15000) * 1000000;
}

#endif
