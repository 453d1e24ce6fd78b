/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: by .eh_frame where the file is at hand, else by frame pointers. */
#include "live/debug/debug_int.h"

#include "format/fmt.h"
#include "live/trace/trace_cfi.h"

/* By the frame record that a frame pointer leads to: the caller's frame pointer and the return address. */
static bool by_pointer(struct debug *d, uint64_t *pc, uint64_t *sp, uint64_t *fp)
{
	uint64_t word = d->arch && d->arch->bits == 32 ? 4 : 8, next, ra;
	if (!*fp || *fp < *sp || *fp - *sp > 64 << 20 || *fp % word || !debug_word(d, *fp, &next) || !debug_word(d, *fp + word, &ra) || !ra)
		return false;
	*sp = *fp + 2 * word;
	*fp = next;
	*pc = ra;
	return true;
}

/* By the row of the unwind table that holds at pc (or, after a call, at the call). */
static bool by_table(struct debug *d, const struct trace_cfi_row *row, uint64_t *pc, uint64_t *sp, uint64_t *fp)
{
	uint64_t base = row->base == TRACE_CFA_BP ? *fp : *sp;
	uint64_t cfa = base + (uint64_t)(int64_t)row->cfa_off, ra, old_fp = *fp;
	if (!row->has_ra || cfa <= *sp || !debug_word(d, cfa + (uint64_t)(int64_t)row->ra_off, &ra) || !ra)
		return false;
	if (row->has_bp && !debug_word(d, cfa + (uint64_t)(int64_t)row->bp_off, &old_fp))
		return false;
	*fp = row->bp_is_lost ? 0 : old_fp;
	*sp = cfa;
	*pc = ra;
	return true;
}

size_t debug_unwind(struct debug *d, debug_bin_fn *bin, void *ctx, struct debug_frame *out, size_t cap)
{
	uint64_t pc, sp, fp = 0;
	size_t cnt = 0;
	bool is_exact = true; /* pc is no return address */
	if (!debug_pc(d, &pc) || !debug_reg(d, d->regs.sp, &sp))
		return 0;
	debug_reg(d, d->regs.fp, &fp);
	while (cnt < cap) {
		struct debug_frame *f = &out[cnt++];
		*f = (struct debug_frame){.pc = pc, .sp = sp, .fp = fp};
		uint64_t base = 0, before = sp, ra;
		const struct fmt_bin *b = bin ? bin(ctx, pc, &base) : NULL;
		struct trace_cfi_row row = {0};
		bool has_row = b && b->machine == FMT_MACHINE_X86_64 && trace_cfi_find(b, pc - base - !is_exact, &row) &&
			       row.base != TRACE_CFA_UNKNOWN;
		is_exact = has_row && row.is_signal;
		if (has_row ? by_table(d, &row, &pc, &sp, &fp) : false) {
			f->cfa = sp;
		} else if (cnt == 1 && d->regs.ra >= 0 && debug_reg(d, d->regs.ra, &ra) && ra) {
			/* A link register: it may be the caller of a function that has saved nothing yet, or stale; both are better than none. */
			uint64_t saved = 0;
			bool is_saved = fp >= sp && debug_word(d, fp + 8, &saved) && saved == ra;
			if (is_saved && by_pointer(d, &pc, &sp, &fp))
				f->cfa = sp;
			else
				pc = ra;
			before = sp - 1;
		} else if (!has_row && by_pointer(d, &pc, &sp, &fp)) {
			f->cfa = sp;
		} else {
			break;
		}
		if (sp <= before)
			break;
	}
	return cnt;
}
