/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: by .eh_frame where the file is at hand, else by frame pointers. */
#include "live/debug/debug_int.h"

#include "format/fmt.h"
#include "live/trace/trace_cfi.h"

/* DWARF's numbers (System V ABI, AMD64, figure 3.36). */
static const char *const names[DEBUG_FRAME_REGS] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
						    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};
enum { REG_BP = 6, REG_SP = 7 };

static void know(struct debug_frame *f, unsigned reg, uint64_t v)
{
	f->regs[reg] = v;
	f->known |= (uint16_t)(1u << reg);
}

static bool is_known(const struct debug_frame *f, unsigned reg)
{
	return f->known >> reg & 1;
}

bool debug_frame_reg(const struct debug *d, const struct debug_frame *f, int reg, uint64_t *ret)
{
	const struct debug_regs *r = &d->regs;
	if (reg < 0)
		return false;
	*ret = reg == r->pc ? f->pc : reg == r->sp ? f->sp : f->fp;
	if (reg == r->pc || reg == r->sp || (reg == r->fp && f->fp))
		return true;
	for (unsigned i = 0; i < DEBUG_FRAME_REGS; i++)
		if (is_known(f, i) && !strcmp(r->list[reg].name, names[i])) {
			*ret = f->regs[i];
			return true;
		}
	return false;
}

/* By the frame record that a frame pointer leads to: the caller's frame pointer and the return address. */
static bool by_pointer(struct debug *d, const struct debug_frame *f, struct debug_frame *ret)
{
	uint64_t word = d->arch && d->arch->bits == 32 ? 4 : 8, fp = f->fp;
	return fp && fp >= f->sp && fp - f->sp <= 64 << 20 && fp % word == 0 && debug_word(d, fp, &ret->fp) && debug_word(d, fp + word, &ret->pc) &&
	       ret->pc && (ret->sp = fp + 2 * word);
}

/* By the row of the unwind table that holds at pc (or, after a call, at the call). */
static bool by_table(struct debug *d, const struct trace_cfi_row *row, const struct trace_cfi_saved *saved, const struct debug_frame *f,
		     struct debug_frame *ret)
{
	uint64_t cfa = (row->base == TRACE_CFA_BP ? f->fp : f->sp) + (uint64_t)(int64_t)row->cfa_off, v;
	if (!row->has_ra || cfa <= f->sp || !debug_word(d, cfa + (uint64_t)(int64_t)row->ra_off, &ret->pc) || !ret->pc)
		return false;
	ret->fp = row->bp_is_lost ? 0 : f->fp;
	if (row->has_bp && !debug_word(d, cfa + (uint64_t)(int64_t)row->bp_off, &ret->fp))
		return false;
	ret->sp = cfa;
	if (row->has_bp || (!row->bp_is_lost && is_known(f, REG_BP)))
		know(ret, REG_BP, ret->fp);
	for (int i = 0; i < TRACE_CFI_KEPT; i++) {
		unsigned reg = trace_cfi_kept[i];
		if (saved->where[i] == TRACE_CFI_SAVED && debug_word(d, cfa + (uint64_t)(int64_t)saved->off[i], &v))
			know(ret, reg, v);
		else if (saved->where[i] == TRACE_CFI_SAME && is_known(f, reg))
			know(ret, reg, f->regs[reg]);
	}
	return true;
}

/* The frame that a handler of a signal returns to restores them all: Linux' struct ucontext at the stack pointer. */
static bool by_signal(struct debug *d, const struct debug_frame *f, struct debug_frame *ret)
{
	static const uint8_t order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, REG_BP, 3, 1, 0, 2, REG_SP};
	enum { REGS_OFF = 40 };
	uint64_t v;
	for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
		if (!debug_word(d, f->sp + REGS_OFF + 8 * i, &v))
			return false;
		know(ret, order[i], v);
	}
	ret->sp = ret->regs[REG_SP];
	ret->fp = ret->regs[REG_BP];
	return debug_word(d, f->sp + REGS_OFF + 8 * ARRAY_LEN(order), &ret->pc) && ret->pc;
}

/* By a link register: it may be the caller of a function that has saved nothing yet, or stale; both are better than none. */
static bool by_link(struct debug *d, struct debug_frame *f, struct debug_frame *ret)
{
	uint64_t saved = 0, ra;
	if (d->regs.ra < 0 || !debug_reg(d, d->regs.ra, &ra) || !ra)
		return false;
	bool is_saved = f->fp >= f->sp && debug_word(d, f->fp + 8, &saved) && saved == ra;
	if (is_saved && by_pointer(d, f, ret)) {
		f->cfa = ret->sp;
		return true;
	}
	*ret = (struct debug_frame){.pc = ra, .sp = f->sp, .fp = f->fp};
	return true;
}

struct walk {
	struct debug *d;
	debug_bin_fn *bin;
	void *ctx;
	bool is_innermost, is_exact; /* the frame; its pc is no return address */
};

/* The caller of `f`, which learns its CFA. */
static bool unwind_one(struct walk *w, struct debug_frame *f, struct debug_frame *ret)
{
	struct debug *d = w->d;
	uint64_t base = 0;
	const struct fmt_bin *b = w->bin ? w->bin(w->ctx, f->pc, &base) : NULL;
	struct trace_cfi_row row = {0};
	struct trace_cfi_saved saved;
	bool has_row = b && b->machine == FMT_MACHINE_X86_64 && trace_cfi_find_saved(b, f->pc - base - !w->is_exact, &row, &saved);
	w->is_exact = has_row && row.is_signal;
	bool has_frame = has_row && row.base != TRACE_CFA_UNKNOWN;
	*ret = (struct debug_frame){0};
	if (w->is_exact && by_signal(d, f, ret)) {
		/* A handler may have a stack of its own, which lies anywhere. */
		f->cfa = ret->sp;
		return true;
	}
	*ret = (struct debug_frame){0};
	bool has = has_frame && by_table(d, &row, &saved, f, ret);
	if (!has && w->is_innermost && by_link(d, f, ret))
		return true;
	if (!has && !has_frame) {
		*ret = (struct debug_frame){0};
		has = by_pointer(d, f, ret);
	}
	if (has)
		f->cfa = ret->sp;
	return has && ret->sp > f->sp;
}

size_t debug_unwind(struct debug *d, debug_bin_fn *bin, void *ctx, struct debug_frame *out, size_t cap)
{
	struct debug_frame f = {0};
	struct walk w = {.d = d, .bin = bin, .ctx = ctx, .is_innermost = true, .is_exact = true};
	size_t cnt = 0;
	uint64_t v;
	if (!debug_pc(d, &f.pc) || !debug_reg(d, d->regs.sp, &f.sp))
		return 0;
	debug_reg(d, d->regs.fp, &f.fp);
	for (unsigned i = 0; i < DEBUG_FRAME_REGS; i++) {
		int reg = debug_regs_find(&d->regs, names[i]);
		/* All came together. */
		if (reg >= 0 && d->valid[reg] && debug_reg(d, reg, &v))
			know(&f, i, v);
	}
	for (bool more = true; more && cnt < cap; w.is_innermost = false) {
		out[cnt] = f;
		more = unwind_one(&w, &out[cnt++], &f);
	}
	return cnt;
}
