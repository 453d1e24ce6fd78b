/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * What the first instructions at a place say about it: a function begins with a stack as its caller
 * left it and with registers that hold arguments or the caller's values. Code that takes a value
 * from a register the caller keeps its own in, or overwrites one before it was saved, that calls
 * without having moved the stack pointer, or that gives back stack it never took, is the middle of
 * something: a landing pad, a case of a switch, cold code.
 */
/* Whether one instruction, run before the stack pointer has moved, cannot stand at the start of a
 * function. */
static bool is_odd_at_start(const struct code *c, const struct arch_effect *e, uint64_t kept,
			    uint64_t *written)
{
	const struct arch *a = c->arch;
	bool is_on_stack = e->base == a->sp_reg && e->index == ARCH_REG_NONE;
	bool is_save = e->op == ARCH_OP_STORE && is_on_stack && (e->imm < 0 || a->bits == 32);
	const uint8_t regs[] = {is_save ? ARCH_REG_NONE : e->src1, e->src2, e->base, e->index};
	if (e->writes & kept)
		return true;
	for (unsigned i = 0; i < ARRAY_LEN(regs) && e->op != ARCH_OP_OTHER; i++)
		if (regs[i] < a->reg_cnt && (kept & ~*written) >> regs[i] & 1)
			return true;
	*written |= e->writes;
	if (!is_on_stack || e->imm < 0 || a->bits == 32)
		return false;
	return e->op == ARCH_OP_LEA || e->op == ARCH_OP_STORE;
}

static enum entry_look look_on(const struct code *c, uint32_t loc, bool has_stack,
			       uint32_t *ret_next)
{
	const struct code_rec *r = &c->recs[code_rec_at(c, loc)];
	switch ((enum arch_flow)r->flow) {
	case ARCH_FLOW_CALL:
	case ARCH_FLOW_ICALL:
		if (r->target == LOC_NONE || code_pc_thunk(c, r->target) == ARCH_REG_NONE)
			return ENTRY_ODD;
		return ENTRY_FRAME;
	case ARCH_FLOW_JUMP:
		if (r->target == LOC_NONE || code_has(c, c->starts, r->target) ||
		    !code_has(c, c->items, r->target))
			return ENTRY_LEAF;
		*ret_next = r->target;
		return ENTRY_OPEN;
	case ARCH_FLOW_CJUMP:
		return ENTRY_OPEN;
	case ARCH_FLOW_RET:
	case ARCH_FLOW_IJUMP:
		return ENTRY_LEAF;
	case ARCH_FLOW_STOP:
		return has_stack ? ENTRY_OPEN_END : ENTRY_ODD;
	case ARCH_FLOW_NEXT:
		return ENTRY_OPEN;
	case ARCH_FLOW_INVALID:
		break;
	}
	return ENTRY_OPEN_END;
}

enum entry_look code_entry_look(const struct code *c, uint32_t loc)
{
	const struct arch *a = c->arch;
	uint64_t kept = ~a->call_clobbers & ~((uint64_t)1 << a->sp_reg);
	uint64_t written = 0;
	if (a->reg_cnt < 64)
		kept &= ((uint64_t)1 << a->reg_cnt) - 1;
	if (a->link_reg != ARCH_REG_NONE)
		kept &= ~((uint64_t)1 << a->link_reg);
	for (unsigned n = 0; n < 64 && code_has(c, c->items, loc); n++) {
		uint32_t next = code_insn_end(c, loc);
		if (code_has(c, c->rec_bits, loc)) {
			enum entry_look look = look_on(c, loc, n != 0, &next);
			if (look != ENTRY_OPEN)
				return look == ENTRY_OPEN_END ? ENTRY_OPEN : look;
			loc = next;
			continue;
		}
		struct arch_effect e;
		if (!code_effect(c, loc, &e))
			break;
		if (!e.sp_is_known)
			return e.writes & kept ? ENTRY_ODD : ENTRY_OPEN;
		if (e.sp_delta)
			return e.sp_delta > 0 ? ENTRY_ODD : ENTRY_FRAME;
		if (is_odd_at_start(c, &e, kept, &written))
			return ENTRY_ODD;
		loc = next;
	}
	return ENTRY_OPEN;
}

bool code_effect(const struct code *c, uint32_t loc, struct arch_effect *ret)
{
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, loc, &len);
	if (!p)
		return false;
	c->arch->effect(c->arch, p, len, space_va(&c->d->space, loc), ret);
	return true;
}

bool code_gives_back_stack(const struct code *c, uint32_t loc)
{
	const struct arch *a = c->arch;
	/* Where arguments go over the stack, taking them off again is not the end of a function;
	 * restoring is. */
	uint64_t restored =
		a->bits == 32 ? ~a->call_clobbers & ~((uint64_t)1 << a->sp_reg) : UINT64_MAX;
	for (unsigned n = 0; n < 4; n++) {
		uint32_t q = code_insn_before(c, loc);
		struct arch_effect e;
		if (q == CODE_NONE || code_has(c, c->rec_bits, q) || !code_effect(c, q, &e))
			return false;
		if ((!e.sp_is_known || e.sp_delta > 0) && e.writes & restored)
			return true;
		if (e.sp_delta)
			return false;
		loc = q;
	}
	return false;
}
