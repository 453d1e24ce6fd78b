/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_SEED_H
#define LIVE_TRACE_SEED_H

#include "base/buf.h"
#include "base/err.h"
#include "live/trace/trace_bpf.h"

/*
 * Processes that were there before the trace: who of them is recorded, and records of what they are (TRACE_PROCESS),
 * of the calls they wait in, where not all of the machine is meant, and of what code they have mapped (TRACE_MMAP), all
 * from /proc. Call after the programs were attached: threads that are made meanwhile are then theirs. Records are framed
 * and appended to `records`.
 */

/* Sets the bit of one thread. */
void trace_seed_set(struct trace_shared *shared, uint32_t tid, bool bit);

/* One process with all its threads; of calls those of shared->exit_ids. `inverted`: the bitmap says who is not recorded.
 * ERR_NOT_FOUND: there is none. */
_must_use_ struct err *trace_seed_process(struct trace_shared *shared, uint32_t pid, bool inverted, bool with_maps, struct buf *records);

/* The executable mappings a process has now; nothing when it is gone. */
void trace_seed_mappings(uint32_t pid, struct buf *records);

/* All that `scope` means; `cfg` is what was made of it. A process that ends meanwhile is no error, but a pid of the
 * scope that is none is. */
_must_use_ struct err *trace_seed_scope(struct trace_shared *shared, const struct trace_scope *scope, const struct trace_config *cfg, bool with_maps,
					struct buf *records);

/* What a process just made or become another program says of its container, as a record like those above; nothing when it is in none
 * or gone. `proc` is what its own record said. */
void trace_seed_cgroup(uint32_t tid, const struct trace_wire_proc *proc, struct buf *records);

/* Processes with the same key are in the same container, or in none. Where cgroups have no unified hierarchy mounts tell them apart. */
static inline uint64_t trace_seed_key(const struct trace_wire_proc *p)
{
	return p->cgroup ^ (uint64_t)p->mnt_ns << 32;
}

#endif
