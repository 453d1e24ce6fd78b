/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include <scry.h>

#include <asm/prctl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/*
 * Trials: state from a seed. The machine code and the C form start from the same registers, the same stack and the same
 * memory, and what they call is the same machine code; so whatever they leave must be the same.
 */
#define PAGE 4096ul

static uint64_t made[BOX_PAGE_MAX]; /* pages of the lazy region that were touched */
static uint32_t made_cnt;
static uint8_t saved[BOX_BLOCK_MAX]; /* first bytes of blocks, under the breakpoints */
static uint32_t import_calls;
static unsigned long fs_base;

/* --- values --------------------------------------------------------------------------------------------------------- */
/* How words are made differs from seed to seed: which share of them points somewhere. */
static uint64_t word_of(uint64_t seed, uint64_t at)
{
	static const uint8_t pointers[] = {128, 250, 200, 64, 230, 16, 128, 255}; /* of 256 */
	uint64_t r = box_mix(seed, at);
	if ((r & 255) < pointers[seed & 7])
		/* Somewhere in a few pages: structures meet again, and stay small. */
		return BOX_LAZY + ((r >> 8 & 63) << 16) + (r >> 16 & 0xff0);
	switch (r >> 8 & 7) {
	case 0:
	case 1:
		return 0;
	case 2:
		return r >> 16 & 15;
	case 3:
		return r >> 16 & 255;
	case 4:
		return 1;
	case 5: /* text */
		return 0x20202020202020u | (r >> 11 & 0x1f1f1f1f1f1f1fu) | 0x40404040404040u;
	case 6:
		return (r >> 16 & 0xffff) | (uint64_t)(r >> 40 & 3) << 32;
	default:
		return r;
	}
}

static void fill(uint64_t seed, uint64_t from, uint64_t len)
{
	for (uint64_t a = from; a < from + len; a += 8) {
		uint64_t w = word_of(seed, a);
		memcpy((void *)(uintptr_t)a, &w, 8);
	}
}

static void fill_regs(uint64_t seed, struct box_regs *r)
{
	uint64_t *const ints[6] = {&r->rdi, &r->rsi, &r->rdx, &r->rcx, &r->r8, &r->r9};
	for (unsigned i = 0; i < 6; i++)
		*ints[i] = word_of(seed, i);
	for (unsigned i = 0; i < 8; i++) {
		double d = (double)(int64_t)(box_mix(seed, 100 + i) % 2001) - 1000;
		memcpy(&r->xmm[i][0], &d, 8);
	}
	r->rax = 0;
}

/* --- before the lock ------------------------------------------------------------------------------------------------ */
/* A breakpoint on every block, in this process's copy of the page; each is taken away when it is hit. */
static bool put_breakpoints(struct box_shared *s)
{
	for (uint32_t i = 0; i < s->block_cnt; i++) {
		uint8_t *p = (uint8_t *)(uintptr_t)s->blocks[i];
		if (mprotect((void *)((uintptr_t)p & ~(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
			return false;
		saved[i] = *p;
	}
	/* Two blocks at one address would save the breakpoint: bytes first, breakpoints then. */
	for (uint32_t i = 0; i < s->block_cnt; i++)
		*(uint8_t *)(uintptr_t)s->blocks[i] = 0xcc;
	return true;
}

bool box_trial_prepare(struct box *b, struct box_regs *regs)
{
	struct box_shared *s = b->shared;
	const struct itimerval limit = {.it_value = {.tv_sec = s->cpu_ms / 1000, .tv_usec = s->cpu_ms % 1000 * 1000}};
	fill(s->seed, BOX_STACK + BOX_STACK_LEN - 4096, 4096);
	fill_regs(s->seed, regs);
	regs->rsp = BOX_STACK + BOX_STACK_LEN - 2048;
	return put_breakpoints(s) && !setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

/* --- running --------------------------------------------------------------------------------------------------------- */
static struct scry_x86_64 machine;

/* From box_enter.S: calls fn(arg) on another stack. */
void box_on_stack(void (*fn)(struct scry_x86_64 *), struct scry_x86_64 *arg, uint64_t sp);

bool box_code_prepare(void)
{
	return !syscall(SYS_arch_prctl, ARCH_GET_FS, &fs_base);
}

/* The C form: the same start, its return address being nobody's. */
void box_code_run(struct box *b, struct box_regs *r)
{
	struct scry_x86_64 *m = &machine;
	m->rdi = r->rdi;
	m->rsi = r->rsi;
	m->rdx = r->rdx;
	m->rcx = r->rcx;
	m->r8 = r->r8;
	m->r9 = r->r9;
	m->rax = r->rax;
	m->r11 = r->target;
	m->rsp = r->rsp - 8;
	m->fsbase = fs_base;
	m->mxcsr = 0x1f80;
	m->fcw = 0x37f;
	m->pf = m->zf = 1; /* as the xor before the call leaves them */
	m->image = b->slide;
	memcpy(&m->xmm0, r->xmm, sizeof(r->xmm));
	void (*fn)(struct scry_x86_64 *);
	memcpy(&fn, &b->shared->code, sizeof(fn));
	box_on_stack(fn, m, BOX_HOST_STACK + BOX_STACK_LEN - 64);
	r->rax = m->rax;
	r->out_rdx = m->rdx;
	memcpy(r->xmm[0], &m->xmm0, 16);
	memcpy(r->xmm[1], &m->xmm1, 16);
	/* A value returned on the x87 stack is the place below its top at the entry. */
	memcpy(r->st0, &m->f7, 10);
}

void box_trial_run(struct box *b, struct box_regs *regs)
{
	if (b->shared->code)
		box_code_run(b, regs);
	else
		box_enter(regs);
}

static bool make_page(struct box *b, uint64_t at)
{
	uint64_t page = at & ~(PAGE - 1);
	if (made_cnt == BOX_PAGE_MAX / 2)
		return false;
	if (mprotect((void *)(uintptr_t)page, PAGE, PROT_READ | PROT_WRITE))
		return false;
	made[made_cnt++] = page;
	fill(b->shared->seed, page, PAGE);
	return true;
}

bool box_trial_signal(struct box *b, int sig, uint64_t fault, uint64_t *ip)
{
	struct box_shared *s = b->shared;
	if (sig == SIGSEGV && fault >= BOX_LAZY && fault < BOX_LAZY + BOX_LAZY_LEN) {
		for (uint32_t i = 0; i < made_cnt; i++)
			if (made[i] == (fault & ~(PAGE - 1)))
				return false;
		return make_page(b, fault);
	}
	if (sig != SIGTRAP)
		return false;
	bool found = false;
	for (uint32_t i = 0; i < s->block_cnt && i < BOX_BLOCK_MAX; i++) {
		if (s->blocks[i] != *ip - 1)
			continue;
		*(uint8_t *)(uintptr_t)(*ip - 1) = saved[i];
		s->blocks_hit[i] = 1;
		found = true;
	}
	*ip -= found;
	return found;
}

uint64_t box_trial_import(struct box *b, uint32_t number, const uint64_t *args)
{
	struct box_shared *s = b->shared;
	uint64_t h = box_mix(s->trace, number);
	for (unsigned i = 0; i < 3; i++)
		h = box_mix(h, args[i]);
	s->trace = h;
	uint64_t r = box_mix(box_mix(s->seed, number), import_calls++);
	switch (r & 7) {
	case 0:
	case 1:
		return BOX_LAZY + ((r >> 8 & 63) << 16) + (r >> 16 & 0xff0);
	case 2:
		return UINT64_MAX;
	case 3:
		return 1;
	case 4:
		return r >> 8 & 63;
	default:
		return 0;
	}
}

/* --- what it left --------------------------------------------------------------------------------------------------- */
static void add_page(struct box_shared *s, uint64_t addr, uint64_t len)
{
	if (s->page_cnt >= BOX_PAGE_MAX)
		return;
	uint64_t h = len;
	for (uint64_t i = 0; i + 8 <= len; i += 8) {
		uint64_t w;
		memcpy(&w, (const void *)(uintptr_t)(addr + i), 8);
		h = w ? box_mix(h, w + i) : h;
	}
	s->pages[s->page_cnt++] = (struct box_page){addr, h};
}

void box_trial_finish(struct box *b)
{
	struct box_shared *s = b->shared;
	const struct space *sp = image_space(b->opts.im);
	s->page_cnt = 0;
	for (uint32_t i = 0; i < sp->seg_cnt; i++) {
		const struct space_seg *g = &sp->segs[i];
		/* Large ones in a few pieces, so that there is room for the rest. */
		if (!(g->perm & 2) || g->is_extern)
			continue;
		uint64_t from = g->va + b->slide, piece = (g->mem_len / 64 + PAGE) & ~(PAGE - 1);
		for (uint64_t off = 0; off < g->mem_len; off += piece)
			add_page(s, from + off, g->mem_len - off < piece ? g->mem_len - off : piece);
	}
	add_page(s, BOX_HEAP, box_heap_used() & ~7ul);
	/* In order of address: which was touched first may differ. */
	for (uint32_t i = 1; i < made_cnt; i++)
		for (uint32_t k = i; k && made[k] < made[k - 1]; k--) {
			uint64_t swap = made[k];
			made[k] = made[k - 1];
			made[k - 1] = swap;
		}
	for (uint32_t i = 0; i < made_cnt; i++)
		add_page(s, made[i], PAGE);
}
