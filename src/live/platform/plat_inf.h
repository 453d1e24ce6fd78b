/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_INF_H
#define LIVE_PLATFORM_PLAT_INF_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * A process under ptrace(2), x86-64: launched or attached to, all its threads stopped or all as they were told to run. Forked children
 * are let go, without breakpoints in them. Functions return 0 or -errno unless said otherwise. One thread of one process calls all of this,
 * with SIGCHLD blocked.
 */
#define PLAT_XSTATE_LEN 16384 /* bytes of the largest XSAVE area taken */
#define PLAT_DEBUG_REGS 4

enum plat_reason {
	PLAT_STOP_NONE,       /* stopped with the others */
	PLAT_STOP_SIGNAL,     /* a signal is about to be delivered, plat_thread.sig */
	PLAT_STOP_BREAK,      /* a breakpoint in memory */
	PLAT_STOP_HW_BREAK,   /* one of the processor's */
	PLAT_STOP_WATCH,      /* plat_thread.watch_va was used */
	PLAT_STOP_TRACE,      /* a step ended */
	PLAT_STOP_EXEC,       /* it is another program now */
	PLAT_STOP_INTERRUPT,  /* as the client asked, or by attaching */
};

enum plat_action { PLAT_HOLD, PLAT_CONT, PLAT_STEP };

struct plat_thread {
	pid_t tid;
	bool is_stopped;
	bool has_status;        /* `status` came while others were stopped and is still to be reported */
	int status;             /* of waitpid(2) */
	enum plat_reason reason;
	int sig;                /* of the stop: what continuing would deliver; 0 none */
	uint64_t watch_va;
	uint64_t seen_pc;       /* where it was reported last, until it goes on: a breakpoint there is stepped over; 0 nowhere */
	uint64_t over_va;       /* breakpoint that is out of memory until its step has ended; 0 none */
	/* What it was told to do: */
	enum plat_action action;
	int deliver;            /* signal, 0 none */
	uint64_t range_start, range_end; /* steps on while pc is inside; equal: one step */
	/* Registers, as far as they were read since it stopped. */
	bool has_regs, is_regs_dirty, has_xstate, is_xstate_dirty;
	struct user_regs_struct regs;
	uint8_t *xstate;        /* PLAT_XSTATE_LEN bytes */
	size_t xstate_len;
	uint64_t dr7;           /* that the thread has; the addresses are those of the process */
};

/* A breakpoint in memory: int3. */
struct plat_break {
	uint64_t va;
	uint8_t saved;
	bool is_in;
};

struct plat_watch {
	uint64_t va;   /* as asked for */
	uint32_t len;  /* bytes; 0 of a breakpoint */
	uint8_t kind;  /* of the packet: '1' execution, '2' write, '3' read, '4' both */
	uint8_t slots; /* bits of the debug registers it takes */
};

struct plat_inf {
	pid_t pid;              /* 0: none */
	bool was_launched;
	bool is_exited;
	bool is_running;        /* as a whole: plat_inf_resume() was called and nothing was reported yet */
	bool is_wanted;         /* an interrupt was asked for */
	int exit_status;        /* of waitpid(2) */
	int mem_fd;             /* /proc/PID/mem, -1 */
	int term_fd;            /* its terminal's other end, -1 */
	pid_t in_vfork;         /* thread whose child has the memory for now: no breakpoints are in it; 0 none */
	VEC(struct plat_thread *) threads; /* borrowed pointers stay valid while a thread lives */
	struct plat_thread *current; /* the one that was reported */
	VEC(struct plat_break) breaks;
	VEC(struct plat_watch) watches;
	uint64_t dr[PLAT_DEBUG_REGS], dr7;
	uint64_t passed;        /* signals that go to the program without a stop: bit SIG - 1 */
	uint64_t generation;    /* counts resumes: what was read of it before is old */
};

struct plat_launch {
	char *const *argv;      /* the program, looked for in PATH when it has no slash, and its words */
	char *const *envp;
	const char *stdio[3];   /* files in place of the terminal, or null */
	bool own_stdio;         /* descriptors 0 to 2 of this process */
	bool has_aslr;          /* addresses are left to chance */
};

void plat_inf_init(struct plat_inf *inf);

/* Starts a program, which is stopped at its first instruction then. */
int plat_inf_launch(struct plat_inf *inf, const struct plat_launch *how);
/* Stops a process with all its threads. */
int plat_inf_attach(struct plat_inf *inf, pid_t pid);

/* Kills it and waits for its end; or lets it run on without us, `stay_stopped` stopped by SIGSTOP. No process is left in `inf`. */
void plat_inf_kill(struct plat_inf *inf);
int plat_inf_detach(struct plat_inf *inf, bool stay_stopped);
/* At a client's end: kills what was launched, lets go of what was attached to. */
void plat_inf_fini(struct plat_inf *inf);

struct plat_thread *plat_thread_find(struct plat_inf *inf, pid_t tid);

/* All threads do what their `action` says. */
void plat_inf_resume(struct plat_inf *inf);
/* Looks, without waiting, at what happened; true when that is to be reported: all are stopped and `current` says why, or is_exited. */
bool plat_inf_poll(struct plat_inf *inf);
/* Asks a running process to stop, which plat_inf_poll() will report as PLAT_STOP_INTERRUPT. */
void plat_inf_interrupt(struct plat_inf *inf);

/* Registers of a stopped thread, read when asked for first; what is changed is written when it goes on. Null: the thread is gone. */
struct user_regs_struct *plat_regs(struct plat_thread *t);
/* The XSAVE area in its standard form, at least the 512 bytes of FXSAVE. */
uint8_t *plat_xstate(struct plat_thread *t);
/* Writes changed registers now. */
int plat_regs_flush(struct plat_thread *t);

/* Memory as the program has it, without breakpoints: bytes from `va` on that could be read, 0 when none. */
size_t plat_mem_read(struct plat_inf *inf, uint64_t va, void *ret, size_t len);
/* Writes below breakpoints, and also where the program itself may not. */
int plat_mem_write(struct plat_inf *inf, uint64_t va, const void *bytes, size_t len);

int plat_break_add(struct plat_inf *inf, uint64_t va);
int plat_break_del(struct plat_inf *inf, uint64_t va);
/* `kind` as plat_watch has it. -ENOSPC when the processor has no more. */
int plat_watch_add(struct plat_inf *inf, uint8_t kind, uint64_t va, uint32_t len);
int plat_watch_del(struct plat_inf *inf, uint8_t kind, uint64_t va, uint32_t len);

#endif
