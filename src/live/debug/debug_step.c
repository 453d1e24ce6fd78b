/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step through a statement without single steps: its instructions are decoded, breakpoints go where control leaves them, and the target
 * runs. Where an instruction does not say where it leads (a jump or call through a register, a return whose caller is not known) the target
 * stops before it and that one instruction is stepped.
 */
#include "live/debug/debug_int.h"

enum { INSN_MAX = 8192, PLACE_MAX = 128, PASSES = 4096 };

struct leaving {
	struct debug *d;
	const struct debug_step *s;
	struct debug_place places[PLACE_MAX];
	size_t cnt;
	bool is_full;
};

static bool is_inside(const struct debug_step *s, uint64_t va)
{
	for (size_t i = 0; i < s->range_cnt; i++)
		if (va >= s->ranges[i].first && va < s->ranges[i].end)
			return true;
	return false;
}

static void add_place(struct leaving *l, uint64_t va, uint64_t min_sp)
{
	for (size_t i = 0; i < l->cnt; i++)
		if (l->places[i].va == va) {
			l->places[i].min_sp = MIN(l->places[i].min_sp, min_sp);
			return;
		}
	l->is_full |= l->cnt == PLACE_MAX;
	if (l->cnt < PLACE_MAX)
		l->places[l->cnt++] = (struct debug_place){va, min_sp};
}

static void add_exit(struct leaving *l, uint64_t va)
{
	/* In a recursive call the same instruction is reached with a lower stack. */
	if (!is_inside(l->s, va))
		add_place(l, va, l->s->has_caller && l->s->caller_sp > 1 << 20 ? 1 : 0);
}

/* Whether the target must stop before this instruction and step it. */
static bool is_unclear(const struct debug_step *s, const struct arch_insn *in)
{
	switch (in->flow) {
	case ARCH_FLOW_IJUMP:
		return true;
	case ARCH_FLOW_ICALL:
		return !s->is_over;
	case ARCH_FLOW_RET:
		return !s->has_caller;
	default:
		return false;
	}
}

static bool decode_at(struct debug *d, uint64_t va, struct arch_insn *ret)
{
	uint8_t bytes[16];
	size_t got;
	struct err *e = debug_mem(d, va, bytes, d->arch->max_len, &got);
	err_free(e);
	if (e || !got)
		return false;
	d->arch->decode(d->arch, bytes, got, va, ret);
	return ret->flow != ARCH_FLOW_INVALID;
}

/* Where control leaves the statement from this instruction. */
static void add_exits(struct leaving *l, uint64_t va, const struct arch_insn *in)
{
	if (is_unclear(l->s, in)) {
		add_place(l, va, 0);
		return;
	}
	switch (in->flow) {
	case ARCH_FLOW_RET:
		add_place(l, l->s->caller_va, l->s->caller_sp);
		break;
	case ARCH_FLOW_JUMP:
		add_exit(l, in->target);
		break;
	case ARCH_FLOW_CJUMP:
		add_exit(l, in->target);
		add_exit(l, va + in->len);
		break;
	case ARCH_FLOW_STOP:
		break;
	case ARCH_FLOW_CALL:
		if (!l->s->is_over && (!l->s->wants || l->s->wants(l->s->ctx, in->target)))
			add_place(l, in->target, 0);
		add_exit(l, va + in->len);
		break;
	default:
		add_exit(l, va + in->len);
		break;
	}
}

/* The pages of all instructions in one batch, then the exits. */
static struct err *find_exits(struct leaving *l)
{
	uint64_t pages[64];
	size_t cnt = 0;
	for (size_t i = 0; i < l->s->range_cnt; i++)
		for (uint64_t at = l->s->ranges[i].first / DEBUG_PAGE; at <= (l->s->ranges[i].end - 1) / DEBUG_PAGE && cnt < ARRAY_LEN(pages); at++)
			pages[cnt++] = at * DEBUG_PAGE;
	struct err *e = debug_pages(l->d, pages, cnt);
	size_t insns = 0;
	for (size_t i = 0; !e && i < l->s->range_cnt; i++)
		for (uint64_t va = l->s->ranges[i].first; va < l->s->ranges[i].end && insns < INSN_MAX; insns++) {
			struct arch_insn in;
			if (!decode_at(l->d, va, &in)) {
				/* Nothing known to stop at: before it. */
				add_place(l, va, 0);
				break;
			}
			add_exits(l, va, &in);
			va += in.len;
		}
	l->is_full |= insns == INSN_MAX;
	return e;
}

/* One instruction that does not say where it leads. Sets is_done when it left the statement for good. */
static struct err *step_unclear(struct debug *d, struct debug_step *s, const struct arch_insn *in, uint64_t pc, bool *ret_goes_on)
{
	bool is_call = in->flow == ARCH_FLOW_CALL || in->flow == ARCH_FLOW_ICALL;
	uint64_t sp = 0, now;
	debug_reg(d, d->regs.sp, &sp);
	struct err *e = debug_step_insn(d);
	*ret_goes_on = false;
	if (e || d->state != DEBUG_STOPPED || d->stop.signal != 5 || d->stop.break_id || !debug_pc(d, &now))
		return e;
	if (is_inside(s, now)) {
		*ret_goes_on = true;
	} else if (is_call && s->wants && !s->wants(s->ctx, now)) {
		/* Not a function that anybody wants to see: run through it. */
		int hit;
		e = debug_run_to(d, &(struct debug_place){pc + in->len, sp}, 1, &hit);
		*ret_goes_on = !e && hit == 0 && is_inside(s, pc + in->len);
		s->is_done = !e && hit == 0 && !*ret_goes_on;
	} else {
		s->is_done = true;
	}
	return e;
}

struct err *debug_step_range(struct debug *d, struct debug_step *s)
{
	DEBUG_STOPPED_ONLY(d);
	s->is_done = false;
	if (!d->arch)
		return err_new(ERR_UNSUPPORTED, "the target's processor is not known");
	for (int pass = 0; pass < PASSES; pass++) {
		struct leaving l = {.d = d, .s = s};
		struct arch_insn in;
		uint64_t pc;
		bool goes_on = false;
		if (!debug_pc(d, &pc))
			return err_new(ERR_IO, "the debug server does not tell the program counter");
		struct err *e = find_exits(&l);
		if (e)
			return e;
		if (!decode_at(d, pc, &in) || is_unclear(s, &in) || l.is_full) {
			e = step_unclear(d, s, &in, pc, &goes_on);
		} else {
			int hit;
			e = debug_run_to(d, l.places, l.cnt, &hit);
			goes_on = !e && hit >= 0 && is_inside(s, l.places[hit].va);
			s->is_done = !e && hit >= 0 && !goes_on;
		}
		if (e || !goes_on || (d->stop.break_id && debug_break_find(d, d->stop.break_id)))
			return e;
	}
	return err_new(ERR_BUDGET, "the statement takes too many steps; use until or continue");
}
