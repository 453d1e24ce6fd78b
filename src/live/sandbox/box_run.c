/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * Inside a call's process: from the request in the shared memory to its end. Nothing here is trusted by the parent.
 */
struct box *box_now;

uint64_t box_now_ns(void)
{
	struct timespec t = {0};
	/* Not through libc: that would ask the vDSO, which is not there. */
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define FSW_STACK_FAULT 0x40

void box_finish(struct box_shared *s, enum box_end end)
{
	uint16_t fsw;
	__asm__ volatile("fnstsw %0" : "=m"(fsw));
	s->has_x87_fault |= (fsw & FSW_STACK_FAULT) != 0;
	if (s->is_trial)
		box_trial_finish(box_now);
	memcpy(s->bufs, (const void *)BOX_BUFS, s->bufs_len <= BOX_BUF_TOTAL ? s->bufs_len : 0);
	s->end = end;
	s->ns = box_now_ns() - s->ns;
	s->state = BOX_STATE_DONE;
	for (;;)
		syscall(SYS_exit_group, 0);
}

/* rdtsc and rdtscp count calls: two runs of one function then see the same. */
static bool is_rdtsc(ucontext_t *u)
{
	static uint64_t fake;
	const uint8_t *ip = (const uint8_t *)(uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	/* Some processors report a jump to no address where it went. */
	if ((uintptr_t)ip >> 47)
		return false;
	bool is_p = ip[0] == 0x0f && ip[1] == 0x01 && ip[2] == 0xf9;
	if (!is_p && !(ip[0] == 0x0f && ip[1] == 0x31))
		return false;
	fake += 1000;
	u->uc_mcontext.gregs[REG_RAX] = (greg_t)(fake & 0xffffffff);
	u->uc_mcontext.gregs[REG_RDX] = (greg_t)(fake >> 32);
	if (is_p)
		u->uc_mcontext.gregs[REG_RCX] = 0;
	u->uc_mcontext.gregs[REG_RIP] += is_p ? 3 : 2;
	return true;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	struct box_shared *s = box_now->shared;
	/* The trapped counter faults without an address; its bytes can be read, since they were fetched. */
	if (sig == SIGSEGV && info->si_code == SI_KERNEL && is_rdtsc(u))
		return;
	if (s->is_trial) {
		if (box_trial_signal(box_now, sig, (uint64_t)(uintptr_t)info->si_addr, u))
			return;
	}
	s->ip = box_shadow_ip((uint64_t)u->uc_mcontext.gregs[REG_RIP]);
	if (sig == SIGVTALRM)
		box_finish(s, BOX_TIMEOUT);
	s->signal = sig;
	s->fault = (uint64_t)(uintptr_t)info->si_addr;
	s->syscall_nr = sig == SIGSYS ? info->si_syscall : -1;
	box_finish(s, sig == SIGSYS ? BOX_SYSCALL : BOX_SIGNAL);
}

static bool catch_signals(void)
{
	static uint8_t stack[65536] __attribute__((aligned(16)));
	static const int all[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT, SIGVTALRM};
	const stack_t alt = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	sigemptyset(&act.sa_mask);
	if (sigaltstack(&alt, NULL))
		return false;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (sigaction(all[i], &act, NULL))
			return false;
	return true;
}

void box_run(struct box *b)
{
	struct box_shared *s = b->shared;
	box_now = b;
	uint32_t bufs_len = s->bufs_len;
	memcpy((void *)BOX_BUFS, s->bufs, bufs_len);
	struct box_regs regs = s->regs;
	/* Arguments on the stack, aligned as the ABI has it at a call. */
	uint32_t cnt = s->stack_cnt;
	uint64_t sp = (BOX_STACK + BOX_STACK_LEN - 256 - 8 * (uint64_t)cnt) & ~(uint64_t)15;
	memcpy((void *)(uintptr_t)sp, s->stack, 8 * (size_t)cnt);
	regs.rsp = sp;
	if (!catch_signals() || (s->code && !box_code_prepare()) || (s->is_trial && !box_trial_prepare(b, &regs)) || !box_lock(b)) {
		s->state = BOX_STATE_LOCK_FAILED;
		for (;;)
			syscall(SYS_exit_group, 1);
	}
	s->state = BOX_STATE_RUNNING;
	s->ns = box_now_ns();
	if (s->is_trial)
		box_trial_run(b, &regs);
	else if (s->code)
		box_code_run(b, &regs);
	else
		box_enter(&regs);
	s->regs = regs;
	s->has_x87_fault = (regs.fsw & FSW_STACK_FAULT) != 0;
	box_finish(s, BOX_RETURNED);
}
