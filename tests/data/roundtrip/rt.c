/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program with the C of its functions in place of their machine code: preloaded into it, and compiled together
 * with that C, which RT_CODE names, and RT_FUNCS, which lists the functions. Before main() the machine code of each is
 * overwritten, so that none of it can run, but for a jump to a stub of ours at its beginning. From there the registers go
 * to a struct scry_x86_64 and the C form is called on a stack of its own, since the program's is the C form's to write.
 *
 * Exits with 97 when it cannot begin. What it cannot follow is control that leaves calls by other ways than returning
 * (longjmp, exceptions), and threads.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "scry.h"

struct rt_func {
	uint64_t va;
	uint32_t len, room; /* bytes of machine code; to what is behind it */
	uint8_t x87_cnt;    /* long doubles it returns */
	void (*fn)(struct scry_x86_64 *m);
};
struct rt_range {
	uint64_t va, len;
};
extern const struct rt_func rt_funcs[];
extern const struct rt_range rt_rest[];
extern const unsigned rt_func_cnt, rt_rest_cnt;

static const struct rt_func *rt_find(const struct scry_x86_64 *m, uintptr_t target)
{
	uint64_t va = target - m->image;
	unsigned lo = 0, hi = rt_func_cnt;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (rt_funcs[mid].va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < rt_func_cnt && rt_funcs[lo].va == va ? &rt_funcs[lo] : NULL;
}

static void rt_call(struct scry_x86_64 *m, uintptr_t target, uintptr_t back)
{
	const struct rt_func *f = rt_find(m, target);
	if (f)
		scry_enter(m, f->fn, back);
	else
		scry_call(m, target, back);
}

static void rt_leave(struct scry_x86_64 *m, uintptr_t target)
{
	const struct rt_func *f = rt_find(m, target);
	if (f)
		f->fn(m);
	else
		scry_leave(m, target);
}

/* Where the C runs that the program's own start leads to. */
#define RT_STACK_LEN ((size_t)1 << 30)
static uint64_t rt_top;
static uintptr_t rt_image;

/* What rt_entry() leaves on the program's stack. */
struct rt_frame {
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax, flags, index;
};

static __attribute__((used)) struct scry_x86_64 *rt_run(struct rt_frame *f, const uint8_t *fx, struct scry_x86_64 *m)
{
	memset(m, 0, sizeof(*m));
	m->rax = f->rax, m->rcx = f->rcx, m->rdx = f->rdx, m->rbx = f->rbx, m->rbp = f->rbp, m->rsi = f->rsi, m->rdi = f->rdi;
	m->r8 = f->r8, m->r9 = f->r9, m->r10 = f->r10, m->r11 = f->r11, m->r12 = f->r12, m->r13 = f->r13, m->r14 = f->r14, m->r15 = f->r15;
	m->flags = f->flags;
	m->rsp = (uintptr_t)(f + 1);
	__asm__("mov %%fs:0, %0" : "=r"(m->fsbase));
	__asm__("mov %%cs, %0; mov %%ss, %1" : "=r"(m->cs), "=r"(m->ss));
	m->image = rt_image;
	memcpy(m->fx, fx, sizeof(m->fx));
	scry_take_fx(m, SCRY_X87);
	const struct rt_func *func = &rt_funcs[f->index];
	func->fn(m);
	unsigned top = (8 - func->x87_cnt) & 7;
	scry_fill_fx(m, SCRY_X87, top);
	m->fx[4] = (uint8_t)(0xff00 >> func->x87_cnt);
	return m;
}

static __attribute__((naked, used)) void rt_entry(void)
{
	__asm__ volatile("pushfq; push %%rax; push %%rcx; push %%rdx; push %%rbx; push %%rbp; push %%rsi; push %%rdi\n"
			 "push %%r8; push %%r9; push %%r10; push %%r11; push %%r12; push %%r13; push %%r14; push %%r15\n"
			 "cld; mov %%rsp, %%rdi\n"
			 "mov %[now], %%rax; mov %[top], %%rsp; test %%rax, %%rax; jz 1f\n"
			 "mov %c[host_sp](%%rax), %%rsp; sub $256, %%rsp\n"
			 "1: and $-64, %%rsp; sub $512, %%rsp; mov %%rsp, %%rsi; fxsave (%%rsi); fninit\n"
			 "sub %[len], %%rsp; mov %%rsp, %%rdx; call rt_run\n"
			 "mov %%rax, %%rdi; fxrstor %c[fx](%%rdi)\n"
			 "mov 32(%%rdi), %%rsp; pushq %c[pc](%%rdi); pushq %c[flags](%%rdi); popfq\n"
			 "mov 0(%%rdi), %%rax; mov 8(%%rdi), %%rcx; mov 16(%%rdi), %%rdx; mov 24(%%rdi), %%rbx\n"
			 "mov 40(%%rdi), %%rbp; mov 48(%%rdi), %%rsi; mov 64(%%rdi), %%r8; mov 72(%%rdi), %%r9\n"
			 "mov 80(%%rdi), %%r10; mov 88(%%rdi), %%r11; mov 96(%%rdi), %%r12; mov 104(%%rdi), %%r13\n"
			 "mov 112(%%rdi), %%r14; mov 120(%%rdi), %%r15; mov 56(%%rdi), %%rdi; ret\n"
			 :
			 : [now] "m"(scry_now), [top] "m"(rt_top), [host_sp] "i"(offsetof(struct scry_x86_64, host_sp)),
			   [len] "i"((sizeof(struct scry_x86_64) + 63) & ~63ul), [fx] "i"(offsetof(struct scry_x86_64, fx)),
			   [pc] "i"(offsetof(struct scry_x86_64, pc)), [flags] "i"(offsetof(struct scry_x86_64, flags)));
}

static void rt_die(const char *what)
{
	fprintf(stderr, "roundtrip: %s\n", what);
	_exit(97);
}

static int rt_first(struct dl_phdr_info *info, size_t len, void *ctx)
{
	(void)len;
	*(uintptr_t *)ctx = info->dlpi_addr;
	return 1;
}

static void rt_open(uint64_t va, uint64_t len, int prot)
{
	uintptr_t from = (rt_image + va) & ~4095ul, to = (rt_image + va + len + 4095) & ~4095ul;
	if (mprotect((void *)from, to - from, prot))
		rt_die("code that cannot be written");
}

static uint8_t *rt_stubs;

/* A function too short for a jump begins with a trap. */
static void rt_trap(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *u = ctx;
	struct scry_x86_64 m = {.image = rt_image};
	const struct rt_func *f = rt_find(&m, (uintptr_t)u->uc_mcontext.gregs[REG_RIP] - 1);
	(void)info;
	if (f)
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(rt_stubs + 32 * (f - rt_funcs));
	else
		sigaction(sig, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static __attribute__((constructor)) void rt_begin(void)
{
	dl_iterate_phdr(rt_first, &rt_image);
	char *stack = mmap(NULL, RT_STACK_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stack == MAP_FAILED)
		rt_die("no stack");
	rt_top = (uintptr_t)stack + RT_STACK_LEN - 64;
	/* Stubs within reach of a jump of 32 bits. */
	size_t stubs_len = ((size_t)rt_func_cnt * 32 + 4095) & ~4095ul;
	uint8_t *stubs = MAP_FAILED;
	for (uintptr_t back = 0x10000; stubs == MAP_FAILED && back < 0x40000000; back += 0x10000) {
		uintptr_t below = rt_image + (rt_func_cnt ? rt_funcs[0].va & ~4095ul : 0);
		if (below > back + stubs_len)
			stubs = mmap((void *)(below - back - stubs_len), stubs_len, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
	if (stubs == MAP_FAILED)
		rt_die("no room near the program");
	for (unsigned i = 0; i < rt_rest_cnt; i++) {
		rt_open(rt_rest[i].va, rt_rest[i].len, PROT_READ | PROT_WRITE | PROT_EXEC);
		memset((void *)(rt_image + rt_rest[i].va), 0xcc, rt_rest[i].len);
	}
	for (unsigned i = 0; i < rt_func_cnt; i++) {
		const struct rt_func *f = &rt_funcs[i];
		uint8_t *at = (uint8_t *)(rt_image + f->va), *stub = stubs + 32 * (size_t)i;
		rt_open(f->va, f->len > 5 ? f->len : 5, PROT_READ | PROT_WRITE | PROT_EXEC);
		memset(at, 0xcc, f->len);
		int32_t far = (int32_t)(stub - (at + 5));
		if (f->room >= 5) {
			at[0] = 0xe9;
			memcpy(at + 1, &far, 4);
		}
		/* push index; jmp *0(%rip); address */
		static const uint8_t jump[6] = {0xff, 0x25, 0, 0, 0, 0};
		uintptr_t to = (uintptr_t)rt_entry;
		stub[0] = 0x68;
		memcpy(stub + 1, &i, 4);
		memcpy(stub + 5, jump, 6);
		memcpy(stub + 11, &to, 8);
	}
	rt_stubs = stubs;
	struct sigaction act = {.sa_sigaction = rt_trap, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &act, NULL);
	if (mprotect(stubs, stubs_len, PROT_READ | PROT_EXEC))
		rt_die("stubs that cannot be run");
	/* The program's children are themselves. */
	unsetenv("LD_PRELOAD");
}

#define scry_call(m, target, back) rt_call(m, target, back)
#define scry_leave(m, target) rt_leave(m, target)
#include RT_CODE
#include RT_FUNCS
