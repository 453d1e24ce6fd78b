/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running and stopping. One thread's event stops all; events of others that came meanwhile are kept and reported when those go on. A
 * breakpoint under a thread that goes on is stepped over first, with the other threads stopped, except where the instruction is a system
 * call: that may need the others to come back, so they run and the breakpoint is out until it did.
 */
#include "live/platform/plat_inf_int.h"

#include "base/cleanup.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define OVER_WAIT_MS 1000 /* for one instruction */
#define OVER_TRIES 100    /* steps that end in a signal the client does not see */
#define STEP_BIT (1u << 14)

static bool is_passed(const struct plat_inf *inf, int sig)
{
	return sig > 0 && sig <= 64 && sig != SIGTRAP && inf->passed >> (sig - 1) & 1;
}

static void thread_go(struct plat_inf *inf, struct plat_thread *t)
{
	plat_watch_apply(inf, t);
	(void)plat_regs_flush(t);
	plat_regs_forget(t);
	t->seen_pc = 0;
	t->reason = PLAT_STOP_NONE;
	t->is_stopped = ptrace(t->action == PLAT_STEP ? PTRACE_SINGLESTEP : PTRACE_CONT, t->tid, 0, t->deliver) < 0 && errno != ESRCH;
	t->deliver = t->sig = 0;
}

/* --- processes and threads that come and go ------------------------------------------------------------------------- */

static bool is_ours(const struct plat_inf *inf, pid_t tid)
{
	char path[48], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	FILE *f = fopen(path, "re");
	size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[len] = 0;
	const char *at = strstr(text, "\nTgid:");
	return at && strtol(at + 6, NULL, 10) == inf->pid;
}

/* A forked child runs on without us. */
static void let_child_go(struct plat_inf *inf, pid_t pid)
{
	plat_breaks_out(inf, pid);
	(void)ptrace(PTRACE_DETACH, pid, 0, 0);
}

static void adopt(struct plat_inf *inf, pid_t tid, int status)
{
	if (!WIFSTOPPED(status))
		return;
	if (!is_ours(inf, tid)) {
		let_child_go(inf, tid);
		return;
	}
	struct plat_thread *t = plat_thread_add(inf, tid);
	if (!t) {
		(void)ptrace(PTRACE_DETACH, tid, 0, 0);
		return;
	}
	t->is_stopped = true;
	thread_go(inf, t);
}

static void did_fork(struct plat_inf *inf, struct plat_thread *t, int event)
{
	unsigned long msg = 0;
	int status;
	if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &msg) < 0)
		return;
	if (event == PTRACE_EVENT_CLONE) {
		/* A thread; or, by odd flags, a process. */
		if (!plat_thread_find(inf, (pid_t)msg) && is_ours(inf, (pid_t)msg))
			(void)plat_thread_add(inf, (pid_t)msg);
		return;
	}
	/* The child of vfork(2) has our very memory until it is another program. */
	if (event == PTRACE_EVENT_VFORK) {
		plat_breaks_out(inf, inf->pid);
		inf->in_vfork = t->tid;
	}
	if (plat_wait_for((pid_t)msg, &status, PLAT_STOP_WAIT_MS) == 0 && WIFSTOPPED(status))
		let_child_go(inf, (pid_t)msg);
}

static void did_exec(struct plat_inf *inf, struct plat_thread *t)
{
	/* Whoever called it is the leader now, and alone. */
	while (inf->threads.cnt > 1)
		plat_thread_drop(inf, inf->threads.data[inf->threads.data[0] == t]);
	t->over_va = 0;
	t->dr7 = 0;
	inf->in_vfork = 0;
	plat_regs_forget(t);
	plat_mem_renew(inf);
}

/* What an event of ptrace does to the process as a whole; true when it is done with and the thread is to go on. */
static bool did_event(struct plat_inf *inf, struct plat_thread *t, int event)
{
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		did_fork(inf, t, event);
		return true;
	case PTRACE_EVENT_VFORK_DONE:
		inf->in_vfork = 0;
		plat_breaks_in(inf);
		return true;
	case PTRACE_EVENT_EXEC:
		did_exec(inf, t);
		return false;
	default:
		return event != PTRACE_EVENT_STOP;
	}
}

/* --- why a thread stopped ------------------------------------------------------------------------------------------- */

/* It ran into one of our breakpoints, and stands at it now. */
static bool at_break(struct plat_inf *inf, struct plat_thread *t)
{
	siginfo_t info;
	struct user_regs_struct *r = plat_regs(t);
	if (!r || ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) < 0 || (info.si_code != SI_KERNEL && info.si_code != TRAP_BRKPT))
		return false;
	const struct plat_break *b = plat_break_find(inf, r->rip - 1);
	if (!b || !b->is_in)
		return false;
	r->rip--;
	t->is_regs_dirty = true;
	return plat_regs_flush(t) == 0;
}

static bool is_in_range(struct plat_thread *t)
{
	const struct user_regs_struct *r = t->range_start < t->range_end ? plat_regs(t) : NULL;
	return r && r->rip >= t->range_start && r->rip < t->range_end;
}

static bool hit_watch(struct plat_inf *inf, struct plat_thread *t, unsigned hit)
{
	for (size_t i = 0; i < inf->watches.cnt; i++)
		if (inf->watches.data[i].slots & hit) {
			t->watch_va = inf->watches.data[i].va;
			t->reason = inf->watches.data[i].kind == '1' ? PLAT_STOP_HW_BREAK : PLAT_STOP_WATCH;
			t->sig = SIGTRAP;
			return true;
		}
	return false;
}

/* The breakpoint this thread was stepping over goes back. */
static void end_step_over(struct plat_inf *inf, struct plat_thread *t)
{
	struct plat_break *b = t->over_va ? plat_break_find(inf, t->over_va) : NULL;
	t->over_va = 0;
	if (b && !b->is_in && !inf->in_vfork)
		b->is_in = !plat_mem_poke(inf, b->va, &(uint8_t){0xcc}, 1);
}

/* A step over a system call, or into the handler of a signal, ends in the kernel, which says so without the processor's bit: by this code,
 * and by that of ptrace_notify(). */
static bool ends_in_kernel(const struct plat_thread *t)
{
	siginfo_t info;
	return ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0 && (info.si_code == TRAP_BRKPT || info.si_code == SIGTRAP);
}

/* A stop by SIGTRAP; false when nobody is to know and the thread goes on. */
static bool trapped(struct plat_inf *inf, struct plat_thread *t, bool was_over)
{
	unsigned hit = plat_watch_hit(t);
	t->sig = SIGTRAP;
	if (at_break(inf, t)) {
		t->reason = PLAT_STOP_BREAK;
		return true;
	}
	if (hit_watch(inf, t, hit & 0xf))
		return true;
	bool is_step = hit & STEP_BIT || ends_in_kernel(t);
	if (is_step && was_over && t->action != PLAT_STEP)
		return false;
	if (is_step && t->action == PLAT_STEP) {
		if (is_in_range(t))
			return false;
		t->reason = PLAT_STOP_TRACE;
		return true;
	}
	t->reason = PLAT_STOP_SIGNAL;
	return true;
}

static bool ended(struct plat_inf *inf, struct plat_thread *t, int status)
{
	if (t->tid != inf->pid) {
		plat_thread_drop(inf, t);
		return false;
	}
	inf->is_exited = true;
	inf->exit_status = status;
	return true;
}

/* Takes what waitpid(2) said of a thread; true when it is to be reported, else the thread goes on. */
static bool handle(struct plat_inf *inf, struct plat_thread *t, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	bool was_over = t->over_va != 0;
	if (!WIFSTOPPED(status))
		return ended(inf, t, status);
	t->is_stopped = true;
	plat_regs_forget(t);
	end_step_over(inf, t);
	t->sig = 0;
	if (event == PTRACE_EVENT_STOP) {
		if (inf->is_wanted) {
			inf->is_wanted = false;
			t->reason = PLAT_STOP_INTERRUPT;
			return true;
		}
		if (sig != SIGTRAP) { /* job control stopped it, and goes on with it, too */
			t->is_stopped = ptrace(PTRACE_LISTEN, t->tid, 0, 0) < 0;
			return false;
		}
	} else if (event) {
		if (!did_event(inf, t, event)) {
			t->reason = PLAT_STOP_EXEC;
			return true;
		}
	} else if (sig == SIGTRAP) {
		if (trapped(inf, t, was_over))
			return true;
		t->sig = 0;
	} else if (!is_passed(inf, sig)) {
		t->reason = PLAT_STOP_SIGNAL;
		t->sig = sig;
		return true;
	} else {
		t->deliver = sig;
	}
	thread_go(inf, t);
	return false;
}

/* The same while all are being stopped: what is to be reported is kept. False when the thread is gone. */
static bool handle_late(struct plat_inf *inf, struct plat_thread *t, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	if (!WIFSTOPPED(status) && t->tid != inf->pid) {
		plat_thread_drop(inf, t);
		return false;
	}
	t->status = status;
	t->has_status = !WIFSTOPPED(status);
	if (t->has_status)
		return true;
	t->is_stopped = true;
	plat_regs_forget(t);
	end_step_over(inf, t);
	if (event == PTRACE_EVENT_STOP)
		t->has_status = sig != SIGTRAP;
	else if (event)
		t->has_status = !did_event(inf, t, event);
	else if (sig == SIGTRAP && at_break(inf, t))
		; /* it runs into it again when it goes on */
	else if (sig == SIGTRAP && t->action == PLAT_STEP)
		(void)plat_watch_hit(t); /* a step that is not awaited any more */
	else if (is_passed(inf, sig))
		t->deliver = sig;
	else
		t->has_status = true;
	return true;
}

void plat_stop_all(struct plat_inf *inf)
{
	for (size_t i = 0; i < inf->threads.cnt; i++)
		if (!inf->threads.data[i]->is_stopped)
			(void)ptrace(PTRACE_INTERRUPT, inf->threads.data[i]->tid, 0, 0);
	/* The list grows by threads that were made meanwhile, and those stop by themselves. */
	for (size_t i = 0; i < inf->threads.cnt;) {
		struct plat_thread *t = inf->threads.data[i];
		int status, ms = t->tid == inf->in_vfork ? 0 : PLAT_STOP_WAIT_MS;
		int got = t->is_stopped || t->has_status ? 1 : plat_wait_for(t->tid, &status, ms);
		if (got == -ECHILD && t->tid != inf->pid)
			plat_thread_drop(inf, t);
		else if (got || handle_late(inf, t, status))
			i++;
	}
}

/* --- going on ------------------------------------------------------------------------------------------------------- */

/* The breakpoint under a thread that is to go on, or null. */
static struct plat_break *break_under(struct plat_inf *inf, struct plat_thread *t)
{
	const struct user_regs_struct *r = inf->breaks.cnt && t->seen_pc ? plat_regs(t) : NULL;
	struct plat_break *b = r && r->rip == t->seen_pc ? plat_break_find(inf, r->rip) : NULL;
	return b && b->is_in ? b : NULL;
}

static bool is_syscall(struct plat_inf *inf, uint64_t va)
{
	uint8_t code[2];
	return plat_mem_read(inf, va, code, 2) == 2 &&
	       ((code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34)) || (code[0] == 0xcd && code[1] == 0x80));
}

/* One instruction without the breakpoint at its start. What else happens is kept as the thread's status. */
static void step_over(struct plat_inf *inf, struct plat_thread *t, struct plat_break *b)
{
	int status = 0, kept = t->deliver, ms = is_syscall(inf, b->va) ? 0 : OVER_WAIT_MS;
	if (plat_mem_poke(inf, b->va, &b->saved, 1))
		return;
	b->is_in = false;
	t->over_va = b->va;
	for (unsigned i = 0; i < OVER_TRIES; i++) {
		plat_watch_apply(inf, t);
		(void)plat_regs_flush(t);
		plat_regs_forget(t);
		if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, 0) < 0)
			break;
		t->is_stopped = false;
		if (!ms || plat_wait_for(t->tid, &status, ms) < 0) {
			t->deliver = kept;
			return; /* runs on; handle() ends it */
		}
		t->is_stopped = WIFSTOPPED(status);
		/* An interrupt from before comes first, when the thread had stopped by itself then. */
		bool is_late = t->is_stopped && status >> 8 == (SIGTRAP | PTRACE_EVENT_STOP << 8);
		if (!is_late && (!t->is_stopped || status >> 16 || !is_passed(inf, WSTOPSIG(status))))
			break;
		if (!is_late)
			kept = WSTOPSIG(status);
	}
	t->deliver = kept;
	bool is_done = t->is_stopped && !(status >> 16) && WSTOPSIG(status) == SIGTRAP && t->action == PLAT_CONT && !inf->dr7;
	if (is_done)
		(void)plat_watch_hit(t);
	t->has_status = !is_done;
	t->status = status;
	if (is_done)
		end_step_over(inf, t);
}

void plat_inf_resume(struct plat_inf *inf)
{
	bool has_news = false;
	inf->generation++;
	inf->is_running = true;
	inf->is_wanted = false;
	for (size_t i = 0; i < inf->threads.cnt; i++)
		has_news |= inf->threads.data[i]->has_status && inf->threads.data[i]->action != PLAT_HOLD;
	for (size_t i = 0; i < inf->threads.cnt && !has_news; i++) {
		struct plat_thread *t = inf->threads.data[i];
		struct plat_break *b = t->is_stopped && t->action != PLAT_HOLD ? break_under(inf, t) : NULL;
		if (b)
			step_over(inf, t, b);
		has_news |= b && t->has_status;
	}
	/* Threads are not added here: nothing is waited for. */
	for (size_t i = 0; i < inf->threads.cnt && !has_news; i++) {
		struct plat_thread *t = inf->threads.data[i];
		if (t->is_stopped && t->action != PLAT_HOLD)
			thread_go(inf, t);
	}
}

void plat_inf_show(struct plat_inf *inf, struct plat_thread *t)
{
	const struct user_regs_struct *r = t ? plat_regs(t) : NULL;
	inf->current = t;
	if (r)
		t->seen_pc = r->rip;
}

static bool report(struct plat_inf *inf, struct plat_thread *t)
{
	if (!inf->is_exited)
		plat_stop_all(inf);
	plat_inf_show(inf, inf->is_exited ? NULL : t);
	inf->is_running = false;
	return true;
}

/* What was kept, of threads that were told to go on; all that ended is told in any case. */
static struct plat_thread *next_kept(struct plat_inf *inf)
{
	for (size_t i = 0; i < inf->threads.cnt; i++) {
		struct plat_thread *t = inf->threads.data[i];
		if (t->has_status && (t->action != PLAT_HOLD || !WIFSTOPPED(t->status)))
			return t;
	}
	return NULL;
}

/* When what was kept came to nothing the others, which waited for it, go on. */
static void go_on(struct plat_inf *inf)
{
	for (size_t i = 0; i < inf->threads.cnt; i++) {
		struct plat_thread *t = inf->threads.data[i];
		if (t->is_stopped && !t->has_status && t->action != PLAT_HOLD)
			thread_go(inf, t);
	}
}

bool plat_inf_poll(struct plat_inf *inf)
{
	int status;
	bool had_kept = false;
	if (!inf->is_running)
		return false;
	for (struct plat_thread *t = next_kept(inf); t; t = next_kept(inf)) {
		t->has_status = false;
		had_kept = true;
		if (handle(inf, t, t->status))
			return report(inf, t);
	}
	if (had_kept)
		go_on(inf);
	for (pid_t tid = waitpid(-1, &status, __WALL | WNOHANG); tid > 0; tid = waitpid(-1, &status, __WALL | WNOHANG)) {
		struct plat_thread *t = plat_thread_find(inf, tid);
		if (!t)
			adopt(inf, tid, status);
		else if (handle(inf, t, status))
			return report(inf, t);
	}
	return false;
}

void plat_inf_interrupt(struct plat_inf *inf)
{
	inf->is_wanted = inf->is_running;
	for (size_t i = 0; i < inf->threads.cnt && inf->is_running; i++)
		if (!inf->threads.data[i]->is_stopped && ptrace(PTRACE_INTERRUPT, inf->threads.data[i]->tid, 0, 0) == 0)
			return;
}
