/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include <scry.h>

#include <asm/prctl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * Trials: state from a seed. The machine code and the C form start from the same registers, the same stack and the same
 * memory, and what they call is the same machine code; so whatever they leave must be the same.
 */
#define PAGE 4096ul

static uint64_t made[BOX_PAGE_MAX]; /* pages of the lazy region that were touched */
static uint32_t made_cnt;
static uint32_t import_calls;
static unsigned long fs_base;

/* --- values --------------------------------------------------------------------------------------------------------- */
static const struct {
	uint8_t pointers, zeros; /* of 256 words */
} shares[8] = {{128, 64}, {250, 0}, {80, 176}, {64, 64}, {200, 56}, {16, 200}, {160, 96}, {255, 0}};

/* One number the function compares with, or one beside it. */
static uint64_t meant(const struct box_input *in, uint64_t r)
{
	static const int8_t beside[8] = {0, 0, 0, 0, 0, 0, 1, -1};
	return in->words[(r >> 3) % in->word_cnt] + (uint64_t)(int64_t)beside[r & 7];
}

/* Numbers of a width nobody knows yet: as one, as two halves, or the same in each byte. */
static uint64_t meant_word(const struct box_input *in, uint64_t r)
{
	uint64_t a = meant(in, r >> 8), b = meant(in, r >> 24);
	switch (r & 3) {
	case 0:
		return a;
	case 1:
		return (a & 0xff) * 0x0101010101010101u;
	default:
		return (a & 0xffffffff) | b << 32;
	}
}

static uint64_t a_pointer(uint64_t r)
{
	/* Somewhere in a few pages: structures meet again, and from one pointer to another is not far. */
	return BOX_LAZY + (r >> 8 & 0xfff0);
}

/* What is no pointer can mostly be used as one, too: it ends before the part of addresses that processes cannot have. */
static uint64_t a_number(const struct box_input *in, uint64_t r)
{
	const uint64_t text = 0x20202020202020u | (r >> 11 & 0x1f1f1f1f1f1f1fu) | 0x40404040404040u;
	if (in->word_cnt && (r >> 4 & 15) < 6)
		return meant_word(in, r >> 8);
	switch (r >> 8 & 15) {
	case 0:
	case 1:
	case 2:
		return 0;
	case 3:
	case 4:
		return r >> 16 & 15;
	case 5:
	case 6:
		return r >> 16 & 255;
	case 7:
	case 8:
		return 1;
	case 9: /* a short text, and a piece of a long one */
	case 10:
	case 11:
		return text & 0x7f7f7f7f7f7f;
	case 12:
		return text | 0x6100000000000000u;
	case 13:
		return (r >> 16 & 0xffff) | (uint64_t)(r >> 40 & 3) << 32;
	case 14:
		return r >> 17;
	default:
		return r;
	}
}

uint64_t box_input_word(const struct box_input *in, uint64_t at)
{
	for (uint32_t i = in->patch_cnt; i > 0; i--)
		if (at >= in->patches[i - 1].from && at < in->patches[i - 1].to)
			return in->patches[i - 1].value;
	uint64_t r = box_mix(in->seed, at);
	unsigned pointers = shares[in->seed & 7].pointers, zeros = shares[in->seed & 7].zeros;
	/* Arguments are what the rest hangs on: mostly pointers in one seed, mostly numbers in the next. */
	if (at < 48) {
		pointers = in->seed & 1 ? 230 : 80;
		zeros = 8;
	}
	if ((r & 255) < pointers)
		return a_pointer(r);
	return (r & 255) < pointers + zeros ? 0 : a_number(in, r >> 8);
}

static void fill(const struct box_input *in, uint64_t from, uint64_t len)
{
	for (uint64_t a = from; a < from + len; a += 8) {
		uint64_t w = box_input_word(in, a);
		memcpy((void *)(uintptr_t)a, &w, 8);
	}
}

static void fill_regs(const struct box_input *in, struct box_regs *r)
{
	uint64_t *const ints[6] = {&r->rdi, &r->rsi, &r->rdx, &r->rcx, &r->r8, &r->r9};
	for (unsigned i = 0; i < 6; i++)
		*ints[i] = box_input_word(in, 8 * i);
	for (unsigned i = 0; i < 8; i++) {
		double d = (double)(int64_t)(box_mix(in->seed, 100 + i) % 2001) - 1000;
		memcpy(&r->xmm[i][0], &d, 8);
	}
	r->rax = 0;
}

/* Variables that start as zero are what the program made of them by the time the function runs. */
static void fill_variables(const struct box *b)
{
	const struct space *sp = image_space(b->opts.im);
	uint64_t room = 1u << 20;
	if (!((b->shared->input.seed ^ b->shared->input.seed >> 3) & 1))
		return;
	for (uint32_t i = 0; i < sp->seg_cnt; i++) {
		const struct space_seg *g = &sp->segs[i];
		if (!(g->perm & 2) || g->is_extern)
			continue;
		uint64_t end = (g->va + g->mem_len + b->slide) & ~7ul;
		for (uint64_t a = (g->va + g->file_len + b->slide + 7) & ~7ul; a < end && room; a += 8, room -= 8) {
			uint64_t *p = (uint64_t *)(uintptr_t)a;
			if (!*p)
				*p = box_input_word(&b->shared->input, a);
		}
	}
}

/* Other variables are what the input says they are. */
static void patch_variables(const struct box *b)
{
	const struct space *sp = image_space(b->opts.im);
	const struct box_input *in = &b->shared->input;
	for (uint32_t i = 0; i < in->patch_cnt && i < BOX_PATCH_MAX; i++) {
		uint64_t at = in->patches[i].from, len = in->patches[i].to - at, va = at - b->slide;
		int seg = len <= 8 ? space_seg_of_va(sp, va) : -1;
		if (seg >= 0 && sp->segs[seg].perm & 2 && !sp->segs[seg].is_extern && va - sp->segs[seg].va + len <= sp->segs[seg].mem_len)
			memcpy((void *)(uintptr_t)at, &in->patches[i].value, len);
	}
}

/* --- before the lock ------------------------------------------------------------------------------------------------ */
bool box_trial_prepare(struct box *b, struct box_regs *regs)
{
	struct box_shared *s = b->shared;
	const struct itimerval limit = {.it_value = {.tv_sec = s->cpu_ms / 1000, .tv_usec = s->cpu_ms % 1000 * 1000}};
	fill(&s->input, BOX_TRIAL_SP, BOX_STACK + BOX_STACK_LEN - BOX_TRIAL_SP);
	fill_regs(&s->input, regs);
	fill_variables(b);
	patch_variables(b);
	regs->rsp = BOX_TRIAL_SP;
	return box_unsaid_prepare(b, regs->rsp) && box_cover_prepare(s) && !setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

/* --- running --------------------------------------------------------------------------------------------------------- */
static struct scry_x86_64 machine;

/* From box_enter.S: calls fn(arg) on another stack. */
void box_on_stack(void (*fn)(struct scry_x86_64 *), struct scry_x86_64 *arg, uint64_t sp);

uint64_t box_scry_call(void)
{
	return (uint64_t)(uintptr_t)scry_call;
}

bool box_code_prepare(void)
{
	return !syscall(SYS_arch_prctl, ARCH_GET_FS, &fs_base);
}

/* Where box_enter()'s call comes back to. */
extern const char box_enter_back[] __attribute__((visibility("hidden")));

/* The C form: the same start, with the same return address, which is not gone to. */
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
	const uint64_t back = (uintptr_t)box_enter_back;
	memcpy((void *)(uintptr_t)m->rsp, &back, 8);
	m->fsbase = fs_base;
	m->mxcsr = 0x1f80;
	m->fcw = 0x37f;
	m->pf = m->zf = 1; /* as the xor before the call leaves them */
	m->image = b->slide;
	memcpy(&m->xmm0, r->xmm, sizeof(r->xmm));
	void (*fn)(struct scry_x86_64 *);
	memcpy(&fn, &b->shared->code, sizeof(fn));
	box_on_stack(fn, m, BOX_HOST_STACK + BOX_HOST_STACK_LEN - 64);
	r->rax = m->rax;
	r->out_rdx = m->rdx;
	memcpy(r->xmm[0], &m->xmm0, 16);
	memcpy(r->xmm[1], &m->xmm1, 16);
	/* A value returned on the x87 stack is the place below its top at the entry. */
	memcpy(r->st0, &m->f7, 10);
}

void box_trial_run(struct box *b, struct box_regs *regs)
{
	bool is_canary = b->shared->unsaid == BOX_UNSAID_CANARY;
	uint64_t canary = is_canary ? box_unsaid_canary(0x1122334455667700) : 0;
	if (b->shared->code)
		box_code_run(b, regs);
	else
		box_enter(regs);
	if (is_canary)
		box_unsaid_canary(canary);
}

static bool make_page(struct box *b, uint64_t at)
{
	uint64_t page = at & ~(PAGE - 1);
	/* Running over the end of a stack stays a fault. */
	if (made_cnt == BOX_PAGE_MAX / 2 || at < BOX_LOW || (at >= BOX_HOST_STACK - (1u << 20) && at < BOX_STACK))
		return false;
	if (mmap((void *)(uintptr_t)page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    (void *)(uintptr_t)page)
		return false;
	made[made_cnt++] = page;
	fill(&b->shared->input, page, PAGE);
	return true;
}

static uint64_t made_answer(uint64_t r)
{
	switch (r & 7) {
	case 0:
	case 1:
		return a_pointer(r);
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

/* What the next import answers; `r` is made of seed and import. */
static uint64_t an_answer(struct box_shared *s, uint64_t r)
{
	uint32_t i = import_calls++;
	uint64_t v = made_answer(box_mix(r, i));
	if (i >= BOX_ANSWER_MAX)
		return v;
	for (uint32_t k = 0; k < s->input.patch_cnt && k < BOX_PATCH_MAX; k++)
		if (s->input.patches[k].from == BOX_ANSWER_AT(i))
			v = s->input.patches[k].value;
	s->answers[i] = v;
	s->answer_cnt = i + 1;
	return v;
}

/* A pointer to a function that is none answers as an import would, and leaves the same registers. */
static bool answer_call(struct box *b, ucontext_t *u, uint64_t at)
{
	static const int cleared[] = {REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11};
	struct box_shared *s = b->shared;
	greg_t *g = u->uc_mcontext.gregs;
	uint64_t sp = (uint64_t)g[REG_RSP], back;
	if (at < BOX_LOW || sp < BOX_STACK || sp > BOX_STACK + BOX_STACK_LEN - 8 ||
	    space_seg_of_va(image_space(b->opts.im), at - b->slide) >= 0)
		return false;
	memcpy(&back, (const void *)(uintptr_t)sp, 8);
	uint64_t h = box_mix(box_mix(box_mix(s->trace, at), (uint64_t)g[REG_RDI]), (uint64_t)g[REG_RSI]);
	s->trace = box_mix(h, (uint64_t)g[REG_RDX]);
	s->import_calls++;
	g[REG_RAX] = (greg_t)an_answer(s, box_mix(s->input.seed, at));
	for (size_t i = 0; i < sizeof(cleared) / sizeof(cleared[0]); i++)
		g[cleared[i]] = 0;
	if (u->uc_mcontext.fpregs)
		memset(u->uc_mcontext.fpregs->_xmm, 0, sizeof(u->uc_mcontext.fpregs->_xmm));
	g[REG_EFL] = (g[REG_EFL] & ~0xcd5l) | 0x44;
	g[REG_RSP] = (greg_t)(sp + 8);
	g[REG_RIP] = (greg_t)back;
	return true;
}

bool box_trial_signal(struct box *b, int sig, uint64_t fault, void *context)
{
	ucontext_t *u = context;
	greg_t *ip = &u->uc_mcontext.gregs[REG_RIP];
	if (sig == SIGTRAP)
		return box_shadow_stepped(u) || box_cover_hit(b->shared, u) || box_unsaid_hit(u);
	/* Through the stack's registers the processor calls such an address a bus error. */
	if (sig != SIGSEGV && sig != SIGBUS)
		return false;
	/* Nothing to decode where nothing runs. */
	if (fault == (uint64_t)*ip)
		return answer_call(b, u, fault);
	if (make_page(b, fault))
		return true;
	enum box_shadow_say say = box_shadow_fault(u);
	if (say == BOX_SHADOW_LIMIT)
		b->shared->missing |= BOX_NO_SHADOW;
	return say == BOX_SHADOW_STEP;
}

uint64_t box_trial_import(struct box *b, uint32_t number, const uint64_t *args)
{
	struct box_shared *s = b->shared;
	uint64_t h = box_mix(s->trace, number);
	for (unsigned i = 0; i < 3 && (!b->opts.import_args || i < b->opts.import_args[number]); i++)
		h = box_mix(h, args[i]);
	s->trace = h;
	return an_answer(s, box_mix(s->input.seed, number));
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

/* Reading alone is nothing a function does: compilers leave out reads nobody needs. */
static bool is_changed(const struct box_input *in, uint64_t page)
{
	for (uint64_t a = page; a < page + PAGE; a += 8) {
		uint64_t w;
		memcpy(&w, (const void *)(uintptr_t)a, 8);
		if (w != box_input_word(in, a))
			return true;
	}
	return false;
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
	memcpy(s->made, made, made_cnt * sizeof(*made));
	s->made_cnt = made_cnt;
	for (uint32_t i = 0; i < made_cnt; i++)
		if (is_changed(&s->input, made[i]))
			add_page(s, made[i], PAGE);
}
