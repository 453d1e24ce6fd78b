/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing by ptrace(2). A thread is stopped where a call begins and where it ends; the kernel says which it is
 * (PTRACE_GET_SYSCALL_INFO), so that no state of ours can get out of step. Programs started here get a seccomp filter
 * when not all calls are wanted: the others then run at full speed.
 */
#include "live/trace/trace_ptrace.h"

#include "live/trace/trace_compat.h"
#include "live/trace/trace_decode.h"
#include "live/trace/trace_fetch.h"
#include "live/trace/trace_frame.h"
#include "live/trace/trace_maps.h"
#include "live/trace/trace_proc.h"
#include "live/trace/trace_seed.h"
#include "live/trace/trace_spawn.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define STRING_MAX 512
#define STACK_MAX (2 * TRACE_STACK_DEEP)
#define ARGV_MAX 32768  /* bytes of the arguments of a program, and of its environment */
#define BUCKETS 1024
#define AUXV_MAX 1024   /* and of its auxiliary vector */
#define FILTER_MAX 1000 /* instructions */

struct thread {
	struct thread *next;     /* of its bucket */
	pid_t tid, pid;
	bool is_inside;          /* a call has begun: what follows is of it */
	bool is_ours;            /* a filter is in it */
	bool is_hidden;          /* before the program that was asked for runs */
	bool is_said;            /* its call was given already: it does not come back */
	bool is_event;           /* the call is one of those wanted */
	bool is_map;             /* it may make code */
	bool is_filter;          /* it puts a filter of the program's own before ours */
	bool sees_all;           /* which there is: what that refuses ours does not see, so every call stops */
	uint8_t abi;
	int nr;
	uint64_t args[6];
	uint64_t ip, sp, bp, begun_ns;
	struct sysc s;
	struct trace_fetched got;
	uint8_t *stack;
	uint32_t stack_len;
};

struct tracer {
	const struct trace_ptrace_opts *o;
	struct thread *buckets[BUCKETS];
	size_t thread_cnt;
	struct trace_procs *procs;
	struct trace_spawn spawn; /* the program started */
	int child_status;
	bool has_filter;
	bool is_over;            /* the sink wants no more */
	bool is_stopped;         /* the caller neither */
};

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* --- threads -------------------------------------------------------------------------------------------------------- */
static struct thread **thread_place(struct tracer *tr, pid_t tid)
{
	struct thread **p = &tr->buckets[(unsigned)tid % BUCKETS];
	while (*p && (*p)->tid != tid)
		p = &(*p)->next;
	return p;
}

static struct thread *thread_get(struct tracer *tr, pid_t tid)
{
	struct thread **p = thread_place(tr, tid);
	if (*p)
		return *p;
	struct thread *th = calloc(1, sizeof(*th));
	if (!th)
		return NULL;
	th->tid = tid;
	th->pid = trace_procs_tgid(tid);
	th->is_ours = tr->has_filter;
	*p = th;
	tr->thread_cnt++;
	return th;
}

static void thread_free(struct thread *th)
{
	trace_fetched_fini(&th->got);
	free(th->stack);
	free(th);
}

static void thread_drop(struct tracer *tr, pid_t tid)
{
	struct thread **p = thread_place(tr, tid), *th = *p;
	if (!th)
		return;
	*p = th->next;
	thread_free(th);
	tr->thread_cnt--;
}

/* --- events --------------------------------------------------------------------------------------------------------- */
static void give(struct tracer *tr, struct thread *th, struct trace_event *ev)
{
	if (th->is_hidden || tr->is_over)
		return;
	const struct trace_proc *p = trace_procs_get(tr->procs, th->pid);
	ev->pid = (uint32_t)th->pid;
	ev->tid = (uint32_t)th->tid;
	ev->time = ev->time ? ev->time : now_ns();
	if (p) {
		ev->comm = p->comm;
		ev->exe = p->exe;
		ev->container = p->container;
		ev->ppid = p->ppid;
	}
	tr->is_over = !tr->o->sink(tr->o->ctx, ev);
}

static void give_call(struct tracer *tr, struct thread *th, int64_t ret, bool is_unfinished)
{
	bool is_left = is_unfinished && !sysc_is_exec(th->abi, th->nr); /* those are given when they begin, too */
	struct trace_event ev = {.kind = TRACE_SYSCALL, .unfinished = is_unfinished, .abi = th->abi, .nr = th->nr, .ret = ret, .ip = th->ip,
				 .left = is_left ? TRACE_LEFT : TRACE_LEFT_UNKNOWN, .sp = th->sp, .bp = th->bp, .stack = th->stack,
				 .nstack = th->stack_len, .time = now_ns()};
	memcpy(ev.args, th->args, sizeof(ev.args));
	if (!is_unfinished && th->begun_ns)
		ev.ns = MAX(ev.time - th->begun_ns, 1u);
	trace_fetch_end(&th->got);
	ev.slots = th->got.slots.data;
	ev.nslots = (uint32_t)th->got.slots.cnt;
	give(tr, th, &ev);
}

static bool is_wanted(const struct tracer *tr, unsigned abi, int nr)
{
	const uint64_t *bits = tr->o->wanted;
	return !bits || abi != TRACE_X86_64 || nr < 0 || nr >= sysc_end(TRACE_X86_64) || bits[nr / 64] >> (nr % 64) & 1;
}

/* The register that frames may be found by; 0: not known. */
static uint64_t read_bp(pid_t tid)
{
	struct user_regs_struct regs;
	struct iovec io = {&regs, sizeof(regs)};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) || io.iov_len < sizeof(regs)) /* of 32-bit code it is shorter */
		return 0;
#if defined(__aarch64__)
	return regs.regs[29];
#else
	return regs.rbp;
#endif
}

static void read_stack(struct tracer *tr, struct thread *th)
{
	uint32_t len = MIN(tr->o->stack_len, STACK_MAX);
	th->bp = len ? read_bp(th->tid) : 0;
	if (len && !th->stack)
		th->stack = malloc(len);
	th->stack_len = th->stack ? (uint32_t)trace_peek(th->tid, th->sp, th->stack, len) : 0;
}

static uint32_t string_max(const struct tracer *tr)
{
	return tr->o->string_max ? tr->o->string_max : STRING_MAX;
}

static const int map_calls[] = {SYS_mmap, SYS_mprotect, SYS_pkey_mprotect};

static bool may_map(const struct tracer *tr, const struct thread *th)
{
	bool is_one = false;
	for (size_t i = 0; i < ARRAY_LEN(map_calls); i++)
		is_one = is_one || th->nr == map_calls[i];
	return tr->o->with_maps && is_one && th->abi != TRACE_I386 && th->args[2] & PROT_EXEC;
}

static bool may_filter(const struct thread *th)
{
	return th->abi != TRACE_I386 && !th->is_hidden &&
	       ((th->nr == SYS_prctl && th->args[0] == PR_SET_SECCOMP) || (th->nr == SYS_seccomp && th->args[0] == SECCOMP_SET_MODE_FILTER));
}

static void see_all(struct tracer *tr, pid_t pid)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct thread *th = tr->buckets[i]; th; th = th->next)
			th->sees_all |= th->pid == pid;
}

/* The executable mapping a call has made, as the kernel has it now. */
static void give_mapping(struct tracer *tr, struct thread *th, uint64_t va)
{
	struct trace_map m;
	if (!trace_maps_query((uint32_t)th->tid, va, &m))
		return;
	static const char deleted[] = " (deleted)";
	size_t len = strlen(m.path);
	struct trace_wire_file f = {.ino = m.ino, .dev = m.dev, .nlink = 1};
	if (m.ino && len > sizeof(deleted) && !strcmp(m.path + len - (sizeof(deleted) - 1), deleted)) {
		f.nlink = 0;
		len -= sizeof(deleted) - 1;
	}
	struct trace_slot slots[] = {{.len = (uint32_t)len, .full = (uint32_t)len, .data = (const uint8_t *)m.path},
				     {.arg = TRACE_WIRE_ARG_FILE, .len = sizeof(f), .data = (const uint8_t *)&f}};
	bool is_new = th->nr == SYS_mmap;
	struct trace_event ev = {.kind = TRACE_MMAP, .args = {va, th->args[1], th->args[2], is_new ? th->args[3] : 0, m.file_off + (va - m.start)},
				 .slots = slots, .nslots = !len ? 0 : m.ino ? 2 : 1};
	give(tr, th, &ev);
}

/* Of structs of i386 that are not known there is the pointer. */
static void hide_unknown(struct sysc *s)
{
	for (unsigned i = 0; i < s->nargs; i++) {
		struct sysc_arg *a = &s->a[i];
		bool is_struct = a->fetch == SYSC_FETCH_FIXED || a->fetch == SYSC_FETCH_ARRAY;
		if ((is_struct && !trace_compat_find(s, a)) || (a->fetch == SYSC_FETCH_BYTES && strstr(a->ctype, "msgbuf")))
			a->dir = 0;
	}
}

static void on_entry(struct tracer *tr, struct thread *th, const struct __ptrace_syscall_info *info)
{
	bool is_seccomp = info->op == PTRACE_SYSCALL_INFO_SECCOMP;
	th->is_inside = true;
	th->abi = info->arch == AUDIT_ARCH_X86_64 ? TRACE_X86_64 : info->arch == AUDIT_ARCH_I386 ? TRACE_I386 : TRACE_ARM64;
	th->nr = (int)(is_seccomp ? info->seccomp.nr : info->entry.nr);
	for (unsigned i = 0; i < 6; i++)
		th->args[i] = is_seccomp ? info->seccomp.args[i] : info->entry.args[i];
	th->ip = info->instruction_pointer;
	th->sp = info->stack_pointer;
	th->is_said = false;
	th->is_event = is_wanted(tr, th->abi, th->nr);
	th->is_map = may_map(tr, th);
	th->is_filter = may_filter(th);
	th->stack_len = 0;
	trace_fetched_reset(&th->got);
	const struct sysc *s = sysc_find(th->abi, th->nr);
	th->s = (struct sysc){0};
	if (s)
		sysc_resolve(s, th->args, &th->s);
	if (!th->is_event || (th->is_hidden && th->nr != SYS_execve))
		return;
	if (th->abi == TRACE_I386)
		hide_unknown(&th->s);
	trace_fetch(&th->got, &(struct trace_fetch_call){.tid = th->tid, .s = &th->s, .args = th->args, .string_max = string_max(tr),
							 .is_compat = th->abi == TRACE_I386}, TRACE_IN);
	read_stack(tr, th);
	if (th->s.flags & SYSC_NO_RETURN && !strncmp(th->s.name, "exit", 4)) {
		th->is_said = true;
		give_call(tr, th, 0, true);
	}
	/* Who called is only known as long as the old program is there. */
	if (tr->o->stack_len && !th->is_hidden && !strncmp(th->s.name ? th->s.name : "", "execve", 6))
		give_call(tr, th, 0, true);
	th->begun_ns = now_ns();
}

static void on_return(struct tracer *tr, struct thread *th, const struct __ptrace_syscall_info *info)
{
	if (!th->is_inside)
		return;
	int64_t ret = info->exit.rval;
	bool has_map = th->is_map && !th->is_hidden && (ret >= 0 || ret < -4095);
	th->is_inside = false;
	if (th->is_filter && !ret)
		see_all(tr, th->pid);
	if (!th->is_event || th->is_hidden || th->is_said) {
		if (has_map)
			give_mapping(tr, th, th->nr == SYS_mmap ? (uint64_t)ret : th->args[0]);
		return;
	}
	bool has_new_memory = th->s.flags & SYSC_NO_RETURN && ret >= 0;
	if (!has_new_memory) {
		struct trace_fetch_call call = {.tid = th->tid, .s = &th->s, .args = th->args, .ret = ret, .string_max = string_max(tr),
						.is_compat = th->abi == TRACE_I386};
		trace_fetch_check_paths(&th->got, &call);
		if (ret >= 0 || ret < -4095)
			trace_fetch(&th->got, &call, TRACE_OUT);
	}
	give_call(tr, th, ret, false);
	if (has_map)
		give_mapping(tr, th, th->nr == SYS_mmap ? (uint64_t)ret : th->args[0]);
	if (th->abi == TRACE_X86_64 && th->nr == SYS_prctl && th->args[0] == PR_SET_NAME && !ret)
		trace_procs_renew(tr->procs, th->pid);
}

static void on_signal(struct tracer *tr, struct thread *th, int sig)
{
	siginfo_t info;
	struct trace_event ev = {.kind = TRACE_SIGNAL, .args = {(uint64_t)sig}};
	struct trace_slot slot = {.len = sizeof(info), .full = sizeof(info), .data = (const uint8_t *)&info};
	if (!ptrace(PTRACE_GETSIGINFO, th->tid, 0, &info)) {
		bool is_fault = info.si_code > 0 && (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP);
		ev.args[1] = (uint64_t)(int64_t)info.si_code;
		ev.args[2] = is_fault ? (uintptr_t)info.si_addr : (uint64_t)info.si_pid;
		ev.slots = &slot;
		ev.nslots = 1;
	}
	give(tr, th, &ev);
}

static void on_new(struct tracer *tr, struct thread *th, unsigned event)
{
	unsigned long tid = 0;
	if (ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &tid) || !tid)
		return;
	struct thread *child = thread_get(tr, (pid_t)tid);
	if (!child)
		return;
	child->pid = event == PTRACE_EVENT_CLONE ? trace_procs_tgid((pid_t)tid) : (pid_t)tid;
	child->sees_all = th->sees_all;
	struct trace_event ev = {.kind = TRACE_FORK, .ret = (int64_t)tid, .args = {th->nr == SYS_clone ? th->args[0] : 0, (uint64_t)child->pid}};
	give(tr, th, &ev);
}

/* The file a process runs. */
static bool find_exe(pid_t pid, struct trace_wire_file *ret)
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat(path, &st))
		return false;
	*ret = (struct trace_wire_file){.ino = st.st_ino, .dev = major(st.st_dev) << 20 | minor(st.st_dev), .nlink = (uint32_t)st.st_nlink};
	return true;
}

/* The program is another one now; a thread that was not the first has become it (ptrace(2)). */
static void on_exec(struct tracer *tr, struct thread *th)
{
	unsigned long former = 0;
	if (!ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &former) && former && (pid_t)former != th->tid) {
		struct thread *old = *thread_place(tr, (pid_t)former);
		if (old) {
			struct thread *next = th->next, kept = *th;
			pid_t tid = th->tid;
			*th = *old;
			th->next = next;
			th->tid = tid;
			old->got = kept.got;
			old->stack = kept.stack;
			thread_drop(tr, (pid_t)former);
		}
	}
	trace_procs_renew(tr->procs, th->pid);
	char text[2][ARGV_MAX + 1];
	struct trace_slot slots[4];
	uint32_t cnt = 2;
	for (unsigned i = 0; i < cnt; i++) {
		size_t len = (i ? trace_procs_environ : trace_procs_cmdline)(th->pid, text[i], sizeof(text[i]));
		slots[i] = (struct trace_slot){.arg = i ? TRACE_ARG_ENVP : TRACE_ARG_ARGV, .len = (uint32_t)MIN(len, ARGV_MAX),
					       .data = (const uint8_t *)text[i], .status = len > ARGV_MAX ? TRACE_TRUNCATED : TRACE_OK};
	}
	/* By these two it is found where the kernel has put the program and its loader. */
	char auxv[AUXV_MAX + 1];
	size_t auxv_len = MIN(trace_procs_auxv(th->pid, auxv, sizeof(auxv)), AUXV_MAX);
	struct trace_wire_file f;
	if (auxv_len)
		slots[cnt++] = (struct trace_slot){.arg = TRACE_WIRE_ARG_AUXV, .len = (uint32_t)auxv_len, .data = (const uint8_t *)auxv};
	if (find_exe(th->pid, &f))
		slots[cnt++] = (struct trace_slot){.arg = TRACE_WIRE_ARG_FILE, .len = sizeof(f), .data = (const uint8_t *)&f};
	struct trace_event ev = {.kind = TRACE_EXEC, .slots = slots, .nslots = cnt};
	give(tr, th, &ev);
}

static void on_end(struct tracer *tr, pid_t tid, int status)
{
	struct thread *th = *thread_place(tr, tid);
	if (th && th->is_inside && th->is_event && !th->is_said)
		give_call(tr, th, 0, true);
	if (th) {
		struct trace_event ev = {.kind = TRACE_EXIT, .ret = status, .args = {th->tid == th->pid}};
		give(tr, th, &ev);
		if (th->tid == th->pid)
			trace_procs_drop(tr->procs, th->pid);
	}
	if (tid == tr->spawn.pid)
		tr->child_status = status;
	thread_drop(tr, tid);
}

/* --- stops ---------------------------------------------------------------------------------------------------------- */
static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* What lets the thread go on. Where a filter is in it, it stops by itself where a wanted call begins. */
static void resume(struct tracer *tr, struct thread *th, int sig)
{
	bool is_filtered = th->is_ours && tr->has_filter && !th->sees_all, by_filter = is_filtered && !th->is_inside;
	if (th->is_inside && !th->is_event && !th->is_map && !th->is_filter && is_filtered)
		th->is_inside = false;
	ptrace(by_filter ? PTRACE_CONT : PTRACE_SYSCALL, th->tid, 0, (unsigned long)sig);
}

static void on_call(struct tracer *tr, struct thread *th)
{
	struct __ptrace_syscall_info info;
	memset(&info, 0, sizeof(info));
	if (ptrace(PTRACE_GET_SYSCALL_INFO, th->tid, sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY || info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
		if (!(th->is_inside && info.op == PTRACE_SYSCALL_INFO_SECCOMP)) /* else its entry was seen already */
			on_entry(tr, th, &info);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		on_return(tr, th, &info);
	}
}

static void on_stop(struct tracer *tr, struct thread *th, int status)
{
	int sig = WSTOPSIG(status);
	unsigned event = (unsigned)status >> 16;
	if (event == PTRACE_EVENT_STOP && is_stop_signal(sig)) {
		ptrace(PTRACE_LISTEN, th->tid, 0, 0);
		return;
	}
	if (event == PTRACE_EVENT_SECCOMP || (!event && sig == (SIGTRAP | 0x80))) {
		on_call(tr, th);
		sig = 0;
	} else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
		on_new(tr, th, event);
		sig = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		th->is_hidden = false;
		on_exec(tr, th);
		sig = 0;
	} else if (event) {
		sig = 0;
	} else {
		on_signal(tr, th, sig);
	}
	resume(tr, th, sig);
}

/* What a process has mapped before it is traced. */
static void give_mappings(struct tracer *tr, struct thread *th)
{
	_cleanup_buf_ struct buf records = {0};
	_cleanup_free_ struct trace_record *r = malloc(sizeof(*r));
	trace_seed_mappings((uint32_t)th->pid, &records);
	struct cur c = cur_make(records.data, records.len, false);
	uint32_t len;
	for (const uint8_t *rec; r && (rec = trace_frame_next(&c, &len));)
		if (trace_decode(rec, len, r))
			give(tr, th, &r->ev);
}

/* Why a process cannot be traced, as far as /proc tells. */
static struct err *refused(pid_t pid, int why)
{
	struct trace_proc_state st;
	trace_procs_state(pid, &st);
	if (pid == getpid())
		return err_new(ERR_INVALID, "process %d is this one, which cannot trace itself by ptrace", pid);
	if (st.tracer)
		return err_new(ERR_ENV, "process %d is traced already, by process %d (%s)", pid, st.tracer, st.tracer_comm);
	if (st.state == 'Z' || st.state == 'X')
		return err_new(ERR_NOT_FOUND, "process %d has ended, and waits for its parent to take notice", pid);
	if (st.is_kernel)
		return err_new(ERR_INVALID, "process %d is a thread of the kernel's, which makes no system calls", pid);
	return err_fix(err_os(why, "process %d cannot be traced", pid), why == EPERM || why == EACCES
			       ? "a process of somebody else needs root: sudo scry trace -p %d" : "see ptrace(2): process %d", pid);
}

static struct err *not_started(struct tracer *tr)
{
	struct trace_proc_state st;
	struct err *e = err_os(errno, "%s cannot be traced", tr->o->argv[0]);
	trace_procs_state(tr->spawn.pid, &st);
	return st.tracer ? err_fix(e, "who traces this process (%d, %s) has traced it first", st.tracer, st.tracer_comm)
			 : err_fix(e, "ptrace(2) is not allowed here: a container or a security module may forbid it");
}

/* The tracer of a program it did not start: its threads as they are. */
static struct err *attach(struct tracer *tr, pid_t pid, long options)
{
	pid_t tids[4096];
	size_t cnt = trace_procs_threads(pid, tids, ARRAY_LEN(tids));
	if (!cnt)
		return err_new(ERR_NOT_FOUND, "there is no process %d", pid);
	for (size_t i = 0; i < cnt; i++) {
		if (ptrace(PTRACE_SEIZE, tids[i], 0, options)) {
			if (errno == ESRCH && i)
				continue;
			return refused(pid, errno);
		}
		struct thread *th = thread_get(tr, tids[i]);
		if (th)
			th->is_ours = false;
		if (th && !i && tr->o->with_maps)
			give_mappings(tr, th);
		ptrace(PTRACE_INTERRUPT, tids[i], 0, 0);
	}
	return NULL;
}

static void let_go(struct tracer *tr, struct thread *th, int status)
{
	int sig = WSTOPSIG(status);
	bool is_signal = !((unsigned)status >> 16) && sig != (SIGTRAP | 0x80);
	if (th->is_ours && tr->has_filter)
		kill(th->pid, SIGKILL); /* without a tracer its calls would fail */
	ptrace(PTRACE_DETACH, th->tid, 0, is_signal ? (unsigned long)sig : 0);
}

static void stop_thread(struct tracer *tr, struct thread *th)
{
	if (th->is_inside && th->is_event && !th->is_said)
		give_call(tr, th, 0, true);
	if (ptrace(PTRACE_INTERRUPT, th->tid, 0, 0) && errno == ESRCH && th->is_ours && tr->has_filter)
		kill(th->pid, SIGKILL);
}

/* All threads are stopped and detached; those in a filter are killed. */
static void detach_all(struct tracer *tr)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct thread *th = tr->buckets[i]; th; th = th->next)
			stop_thread(tr, th);
	while (tr->thread_cnt) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			break;
		struct thread *th = *thread_place(tr, tid);
		if (!th)
			continue;
		if (WIFSTOPPED(status))
			let_go(tr, th, status);
		else if (tid == tr->spawn.pid)
			tr->child_status = status;
		thread_drop(tr, tid);
	}
}

static void wait_loop(struct tracer *tr)
{
	while (tr->thread_cnt && !tr->is_over && !tr->is_stopped) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);
		tr->is_stopped = tr->o->is_stopped && tr->o->is_stopped(tr->o->ctx);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			break;
		if (!WIFSTOPPED(status)) {
			on_end(tr, tid, status);
			continue;
		}
		struct thread *th = thread_get(tr, tid);
		if (!th)
			break;
		on_stop(tr, th, status);
	}
	detach_all(tr);
}

/* --- programs started here -------------------------------------------------------------------------------------------- */
static void add(struct sock_filter *prog, unsigned *cnt, struct sock_filter insn)
{
	if (*cnt < FILTER_MAX)
		prog[(*cnt)++] = insn;
}

/* Ranges of wanted numbers are given to the tracer, and what makes code; all other calls of x86-64 run. */
static unsigned make_filter(const uint64_t *wanted, bool with_maps, struct sock_filter *prog)
{
	unsigned cnt = 0;
	int end = sysc_end(TRACE_X86_64);
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	for (int nr = 0; nr < end;) {
		int first = nr;
		bool is_in = wanted[nr / 64] >> (nr % 64) & 1;
		while (nr < end && (bool)(wanted[nr / 64] >> (nr % 64) & 1) == is_in)
			nr++;
		if (!is_in)
			continue;
		add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)first, 0, 2));
		add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)nr, 1, 0));
		add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
	}
	/* Numbers nobody knows are shown: they may be younger than the table. */
	add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)end, 0, 1));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
	add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
	add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])));
	add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	for (size_t i = 0; with_maps && i < ARRAY_LEN(map_calls); i++) {
		add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)map_calls[i], 0, 4));
		add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])));
		add(prog, &cnt, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
		add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
		add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	}
	add(prog, &cnt, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	return cnt < FILTER_MAX ? cnt : 0;
}

static struct err *start(struct tracer *tr, long options)
{
	struct sock_filter prog[FILTER_MAX];
	struct sock_fprog filter = {.filter = prog};
	if (tr->o->wanted && !tr->o->no_filter)
		filter.len = (unsigned short)make_filter(tr->o->wanted, tr->o->with_maps, prog);
	tr->has_filter = filter.len;
	struct err *e = trace_spawn_new(tr->o->argv, tr->has_filter ? &filter : NULL, &tr->spawn);
	struct thread *th = e ? NULL : thread_get(tr, tr->spawn.pid);
	if (!e && !th)
		e = &err_nomem;
	if (!e && ptrace(PTRACE_SEIZE, tr->spawn.pid, 0, options | (tr->has_filter ? PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP : 0)))
		e = not_started(tr);
	if (e)
		return e;
	th->is_hidden = true;
	ptrace(PTRACE_INTERRUPT, tr->spawn.pid, 0, 0);
	return trace_spawn_go(&tr->spawn);
}

struct err *trace_ptrace_run(const struct trace_ptrace_opts *o, int *ret_status)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE;
	if (!o->no_follow)
		options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
	struct tracer tr = {.o = o, .child_status = -1, .spawn = {.go = -1, .failed = -1}, .procs = trace_procs_new()};
	struct err *e = tr.procs ? NULL : &err_nomem;
	if (!e && o->argv)
		e = start(&tr, options);
	for (size_t i = 0; !e && i < o->pid_cnt; i++)
		e = attach(&tr, o->pids[i], options);
	if (!e)
		wait_loop(&tr);
	else
		detach_all(&tr);
	if (!e && o->argv && tr.child_status != -1)
		e = trace_spawn_error(&tr.spawn, o->argv[0]);
	trace_spawn_fini(&tr.spawn);
	for (size_t i = 0; i < BUCKETS; i++)
		while (tr.buckets[i])
			thread_drop(&tr, tr.buckets[i]->tid);
	trace_procs_free(tr.procs);
	*ret_status = tr.child_status;
	return e;
}
