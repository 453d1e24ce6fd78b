/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_INF_INT_H
#define LIVE_PLATFORM_PLAT_INF_INT_H

#include "live/platform/plat_inf.h"

#include <errno.h>

/* Between the parts of plat_inf.h: plat_inf.c (processes and threads), plat_run.c (running and stopping), plat_mem.c (memory and breakpoints),
 * plat_regs.c (registers). */

/* A wait for threads to stop gives up after this: one may sit in the kernel where nothing reaches it. */
#define PLAT_STOP_WAIT_MS 5000

/* A thread that is new, running; null without memory. */
struct plat_thread *plat_thread_add(struct plat_inf *inf, pid_t tid);
void plat_thread_drop(struct plat_inf *inf, struct plat_thread *t);
/* Forgets what was read of it. */
void plat_regs_forget(struct plat_thread *t);

/* waitpid(2) for one thread or process, at most `ms`: 0, or -ETIMEDOUT, -ECHILD. */
int plat_wait_for(pid_t tid, int *ret_status, int ms);

/* Stops all threads that run; what else happened to them is kept as their status. */
void plat_stop_all(struct plat_inf *inf);

/* The thread that is reported; null: none. */
void plat_inf_show(struct plat_inf *inf, struct plat_thread *t);

/* The process is another program: memory and breakpoints are new. */
void plat_mem_renew(struct plat_inf *inf);
/* Takes breakpoints out of the memory of process `pid`, or puts them back into ours. */
void plat_breaks_out(struct plat_inf *inf, pid_t pid);
void plat_breaks_in(struct plat_inf *inf);
struct plat_break *plat_break_find(struct plat_inf *inf, uint64_t va);
/* Raw bytes, as they are in memory. */
int plat_mem_poke(struct plat_inf *inf, uint64_t va, const void *bytes, size_t len);
/* Debug registers of the process to a stopped thread. */
void plat_watch_apply(struct plat_inf *inf, struct plat_thread *t);
/* Which of them made the thread stop: a bit each, and 1 << 14 for a step; they are cleared. */
unsigned plat_watch_hit(struct plat_thread *t);

#endif
