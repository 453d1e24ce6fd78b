/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_PROBE_WHO_H
#define LIVE_TRACE_PROBE_WHO_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Whose hits are recorded, where the kernel's own filter of one process is not enough: a bit for every process number there can be, shared
 * with the programs of probes. A program where processes are made (raw tracepoint sched_process_fork) hands the bit on to children, and takes
 * it from a number that somebody else has now, before they run.
 */
struct probe_who;

enum { PROBE_WHO_MAX = 1 << 22 }; /* process numbers, PID_MAX_LIMIT of include/linux/threads.h */

/* `with_children`: those they have, and those they make from now on. Errors: ERR_ENV (what the kernel refuses; another pid namespace than the first,
 * whose numbers the kernel's are not), ERR_NOT_FOUND (no such process). */
_must_use_ struct err *probe_who_open(const pid_t *pids, size_t cnt, bool with_children, struct probe_who **ret);
/* Accepts null. */
void probe_who_close(struct probe_who *w);
/* The map of the bits, of PROBE_WHO_MAX / 8 bytes. */
int probe_who_fd(const struct probe_who *w);
/* Whether one of them is still there. */
bool probe_who_is_alive(const struct probe_who *w);

#endif
