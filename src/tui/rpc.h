/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_RPC_H
#define TUI_RPC_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Drivers: programs and people that steer the live workbench over a unix socket (docs/driving.md). Part of the event loop, never a thread
 * of its own; what takes time runs in jobs. Each connection's requests are done one after the other, in their order; different
 * connections do not wait for each other. Nothing here writes to the terminal.
 */
struct tui;
struct tui_rpc;

/* Listens on the socket of that name (see rpc/sock.h). */
_must_use_ struct err *tui_rpc_new(const char *name, struct tui_rpc **ret);
/* After tui_fini(): its jobs point here. Null is accepted. */
void tui_rpc_free(struct tui_rpc *r);

/* Puts the sockets into the epoll; events carry `first_src` and what follows in data.u32. */
_must_use_ struct err *tui_rpc_watch(struct tui_rpc *r, int epoll_fd, uint32_t first_src);
void tui_rpc_event(struct tui_rpc *r, uint32_t src, uint32_t events);

/* The session is there and shown; `t` is borrowed. Until then only what needs no workbench is answered. */
void tui_rpc_show(struct tui_rpc *r, struct tui *t);

/* Goes on with every request, after a frame was painted and handed to the terminal. `is_stuck`: it has not taken all of it. */
void tui_rpc_step(struct tui_rpc *r, uint64_t now_ns, bool is_stuck);
/* Somebody waits for a frame, so it is painted though the terminal takes none. */
bool tui_rpc_is_waiting(const struct tui_rpc *r);
/* A driver asked to leave. */
bool tui_rpc_wants_quit(const struct tui_rpc *r);
/* When to step again without an event, CLOCK_MONOTONIC; 0: no need. */
uint64_t tui_rpc_due_ns(const struct tui_rpc *r);

#endif
