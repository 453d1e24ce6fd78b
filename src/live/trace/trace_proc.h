/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_PROC_H
#define LIVE_TRACE_TRACE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc says of processes, asked once for each until it is renewed. What it does not say is null or 0. */
struct trace_proc {
	pid_t pid;
	uint32_t ppid;
	char *comm, *exe, *container; /* container: the 64 hexadecimal digits of its cgroup */
};

struct trace_procs;
struct trace_procs *trace_procs_new(void);
void trace_procs_free(struct trace_procs *p);

/* Null when memory ran out. Valid until the process is renewed or dropped. */
const struct trace_proc *trace_procs_get(struct trace_procs *p, pid_t pid);
void trace_procs_renew(struct trace_procs *p, pid_t pid); /* it is another program now */
void trace_procs_drop(struct trace_procs *p, pid_t pid);  /* it is gone */

/* The process a thread belongs to; the thread itself when it is gone. */
pid_t trace_procs_tgid(pid_t tid);

struct trace_proc_state {
	char state;            /* as /proc/PID/status has it, 'Z' for one that has ended; 0: there is none */
	bool is_kernel;        /* a thread of the kernel's */
	pid_t tracer;          /* 0: none */
	char tracer_comm[16];  /* "" unknown */
};
void trace_procs_state(pid_t pid, struct trace_proc_state *ret);

/* The threads of a process, at most `max`; 0 when there is no such process. */
size_t trace_procs_threads(pid_t pid, pid_t *ret, size_t max);

/* The arguments of the program, each with its NUL, as far as they fit into `len` bytes with one more NUL behind them. */
size_t trace_procs_cmdline(pid_t pid, char *ret, size_t len);

/* Its environment, likewise. */
size_t trace_procs_environ(pid_t pid, char *ret, size_t len);

/* Its auxiliary vector (getauxval(3)), likewise. */
size_t trace_procs_auxv(pid_t pid, char *ret, size_t len);

#endif
