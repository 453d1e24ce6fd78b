/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_FDS_H
#define LIVE_TRACE_TRACE_FDS_H

#include "live/trace/trace_event.h"

#include "base/buf.h"
#include "base/err.h"

/*
 * What descriptors of traced processes are open on: kept from their events, else asked of /proc/PID/fd while the process is
 * there. Bounded: past its limit the oldest knowledge is forgotten. Not for several threads.
 */
struct trace_fds;

/* `uses_proc`: the processes are of this machine and run now. Returns owned, null when memory ran out. */
struct trace_fds *trace_fds_new(bool uses_proc);
void trace_fds_free(struct trace_fds *f);

/* Learns from an event that ended: open, dup, close, exec, exit. After the event was shown. */
void trace_fds_event(struct trace_fds *f, const struct trace_event *ev);

/* Appends the path, "pipe:[12]" or "socket:[3]"; false and nothing where it is not known. */
bool trace_fds_path(struct trace_fds *f, uint32_t pid, int32_t fd, struct buf *out);

#endif
