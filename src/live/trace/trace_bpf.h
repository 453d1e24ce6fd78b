/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_BPF_H
#define LIVE_TRACE_BPF_H

#include "base/err.h"
#include "live/trace/trace_plan.h"

#include <sys/types.h>

/*
 * Records from the kernel by eBPF: programs at the tracepoints of system calls and processes, a ring they write to,
 * and who reads it. Threads are chosen by a bitmap; processes are judged when they are made, become
 * another program, or change what they are chosen by. Nothing stays behind when the process that opened it is gone, however it ended.
 *
 * One thread uses a trace_bpf. Needs CAP_BPF and CAP_PERFMON (root), tracepoints typed by BTF, or else raw ones, or else those of perf, which
 * say less: who sent a signal is not known then, and who is moved to another cgroup is judged with its next program.
 */
struct trace_bpf;

/* How programs are attached; each later one for kernels that refuse the one before. */
enum trace_hook { TRACE_HOOK_ANY, TRACE_HOOK_BTF, TRACE_HOOK_RAW, TRACE_HOOK_PERF };

/* "tp_btf", "raw_tp", "perf". */
const char *trace_hook_name(enum trace_hook hook);

/* Whose calls are recorded. Lists are any-of; kinds of which there is a list must all fit. Without pids and lists, and
 * without `own`, everybody's are. */
struct trace_scope {
	const uint32_t *pids; /* processes, with all their threads */
	size_t pid_cnt;
	bool own;             /* nobody's until trace_bpf_add() names the caller's child */
	bool tree;            /* and their children's */
	const uint32_t *uids;
	size_t uid_cnt;
	const uint64_t *cgroups; /* ids (inode numbers of their folders) */
	size_t cgroup_cnt;
	const uint32_t *pid_nss, *mnt_nss; /* inode numbers */
	size_t pid_ns_cnt, mnt_ns_cnt;
	const char *const *comms;
	size_t comm_cnt;
	const char *const *exes; /* paths */
	size_t exe_cnt;
	const char *container; /* the beginning of its id; those that are made later, too; null: any or none */
};

struct trace_bpf_options {
	struct trace_plan plan;
	struct trace_scope scope;
	enum trace_hook hook;
	bool with_site;      /* ip, sp and stack_len bytes of stack in each record */
	uint32_t stack_len;  /* 0 to 2,048 */
	bool with_times;     /* durations, for another program at every entry */
	bool with_signals;
	uint32_t ring_len;   /* bytes for each CPU, a power of two from 64 KB to 256 MB; 0 = 16 MB, less where there are many CPUs */
};

/* Loads and attaches. Errors: ERR_ENV when this build, kernel or user cannot (the text says which, the fix what to do),
 * ERR_INVALID for options out of range. */
_must_use_ struct err *trace_bpf_open(const struct trace_bpf_options *opt, struct trace_bpf **ret);

/* Detaches and frees; null is accepted. */
void trace_bpf_close(struct trace_bpf *t);

/* Detaches, so that nothing new comes; what is in the ring can still be drained. */
void trace_bpf_stop(struct trace_bpf *t);

/* Records this process and its threads from now on; with `tree` its children by and by. */
_must_use_ struct err *trace_bpf_add(struct trace_bpf *t, pid_t pid);

/* Who takes what was recorded: `len` bytes of records framed as trace_frame.h has them, valid until it returns. */
typedef struct err *trace_chunk_fn(void *ctx, const uint8_t *chunk, size_t len);

/* Gives `fn` what is in the rings up to now, in order of time, a piece at a time. `*ret_any`: there was something. After
 * trace_bpf_stop() that is all there is. */
_must_use_ struct err *trace_bpf_drain(struct trace_bpf *t, trace_chunk_fn *fn, void *ctx, bool *ret_any);

/* Waits until there is much in the rings, or for `ms` milliseconds, or a signal. */
void trace_bpf_wait(struct trace_bpf *t, int ms);

/* What every CPU has counted so far: `*ret_cnt` of them, valid until trace_bpf_close(). seen is what was recorded and what was lost. */
const struct trace_cpu *trace_bpf_cpus(const struct trace_bpf *t, size_t *ret_cnt);

#endif
