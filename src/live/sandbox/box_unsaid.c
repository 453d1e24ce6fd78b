/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/*
 * What no input says (enum box_unsaid). Every return of the target is a breakpoint in this process's copy of its pages: it is done here, and
 * what it gave back of the stack is cleared then. Nothing else that moves the stack pointer is looked at.
 */
#define PAGE 4096ul
#define GIVEN_BACK (64ul << 10) /* no stack of a call is thought to be deeper */
#define RET 0xc3
#define BREAKPOINT 0xcc

static bool clears_stack;

static void clear_stack(uint64_t sp)
{
	uint64_t from = sp - BOX_STACK < GIVEN_BACK ? BOX_STACK : sp - GIVEN_BACK;
	memset((void *)(uintptr_t)from, 0, sp - from);
}

/* Over the items of the range: those of one byte, or of two with a prefix that means nothing here. */
static bool break_returns(const struct box *b, const struct image_range *r)
{
	struct image_items it;
	uint64_t open = 0;
	for (bool ok = image_items_from(b->opts.im, r->loc, &it); ok && it.loc - r->loc < r->len; ok = image_items_next(&it)) {
		uint8_t *p = (uint8_t *)(uintptr_t)(space_va(image_space(b->opts.im), it.loc) + b->slide);
		if (it.kind != IMAGE_CODE || it.len > 2 || p[it.len - 1] != RET || (it.len == 2 && *p != 0xf2 && *p != 0xf3))
			continue;
		uint64_t page = (uintptr_t)p & ~(PAGE - 1);
		if (page != open && mprotect((void *)(uintptr_t)page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
			return false;
		open = page;
		*p = BREAKPOINT;
	}
	return true;
}

bool box_unsaid_prepare(const struct box *b, uint64_t sp)
{
	uint32_t cnt, range_cnt;
	if (b->shared->unsaid != BOX_UNSAID_STACK)
		return true;
	image_funcs(b->opts.im, &cnt);
	for (uint32_t f = 0; f < cnt; f++) {
		const struct image_range *r = image_func_ranges(b->opts.im, f, &range_cnt);
		for (uint32_t i = 0; i < range_cnt; i++)
			if (!break_returns(b, &r[i]))
				return false;
	}
	clear_stack(sp - 8);
	clears_stack = true;
	return true;
}

bool box_unsaid_hit(void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t sp = (uint64_t)g[REG_RSP];
	if (!clears_stack || sp < BOX_STACK || sp > BOX_STACK + BOX_STACK_LEN - 8)
		return false;
	memcpy(&g[REG_RIP], (const void *)(uintptr_t)sp, 8);
	g[REG_RSP] = (greg_t)(sp + 8);
	clear_stack(sp + 8);
	return true;
}

uint64_t box_unsaid_canary(uint64_t v)
{
	uint64_t was;
	__asm__ volatile("mov %%fs:0x28, %0; mov %1, %%fs:0x28" : "=&r"(was) : "r"(v) : "memory");
	return was;
}
