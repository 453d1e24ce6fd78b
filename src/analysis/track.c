/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

#include "arch/arch.h"

/*
 * Constants in registers along straight code: what a register holds when every instruction since
 * says so. Used where an address is made by several instructions, and to find a table's base far
 * from its use.
 */
static bool track_get(const struct code_track *t, uint8_t reg, uint64_t *ret)
{
	if (reg >= 64 || !(t->known >> reg & 1))
		return false;
	*ret = t->val[reg];
	return true;
}

static void track_set(const struct code *c, struct code_track *t, uint8_t reg, uint64_t v,
		      unsigned width)
{
	if (reg >= 64)
		return;
	if (width == 4 || c->arch->bits == 32)
		v = (uint32_t)v;
	t->val[reg] = v;
	t->known |= (uint64_t)1 << reg;
}

/* The address a memory operand means when its registers are known. */
static bool track_address(const struct code_track *t, const struct arch_effect *e, uint64_t *ret)
{
	uint64_t base = 0;
	uint64_t index = 0;
	if (e->base != ARCH_REG_NONE && !track_get(t, e->base, &base))
		return false;
	if (e->index != ARCH_REG_NONE && !track_get(t, e->index, &index))
		return false;
	*ret = base + index * e->scale + (uint64_t)e->imm;
	return true;
}

static bool track_load(const struct code *c, uint64_t va, unsigned width, uint64_t *ret)
{
	uint32_t loc = space_loc(&c->d->space, va);
	return loc != LOC_NONE && width == c->arch->bits / 8u &&
	       space_word(&c->d->space, loc, width, ret);
}

/* The value an effect gives its destination. */
static bool track_value(const struct code *c, const struct code_track *t,
			const struct arch_effect *e, uint64_t *ret)
{
	uint64_t a;
	uint64_t b = (uint64_t)e->imm;
	switch ((enum arch_op)e->op) {
	case ARCH_OP_CONST:
		*ret = (uint64_t)e->imm;
		return true;
	case ARCH_OP_MOVE:
		return e->width >= 4 && track_get(t, e->src1, ret);
	case ARCH_OP_LEA:
		return track_address(t, e, ret);
	case ARCH_OP_LOAD:
		return track_address(t, e, &a) && track_load(c, a, e->width, ret);
	case ARCH_OP_ADD:
	case ARCH_OP_SUB:
		if (e->ext_width || e->has_mem || !track_get(t, e->src1, &a) ||
		    (e->src2 != ARCH_REG_NONE && !track_get(t, e->src2, &b)))
			return false;
		b *= e->src2 != ARCH_REG_NONE && e->scale > 1 ? e->scale : 1;
		*ret = e->op == ARCH_OP_ADD ? a + b : a - b;
		return true;
	case ARCH_OP_INSERT:
		if (!track_get(t, e->src1, &a))
			return false;
		*ret = (a & (uint64_t)e->cmp_imm) | b;
		return true;
	case ARCH_OP_OTHER:
	case ARCH_OP_STORE:
	case ARCH_OP_AND:
	case ARCH_OP_SHL:
	case ARCH_OP_SHR:
	case ARCH_OP_CMP:
	case ARCH_OP_TEST:
		break;
	}
	return false;
}

void code_track_step(const struct code *c, struct code_track *t, uint32_t loc,
		     const struct code_rec *rec, struct arch_effect *ret)
{
	const struct arch *a = c->arch;
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, loc, &len);
	*ret = (struct arch_effect){.dst = ARCH_REG_NONE,
				    .src1 = ARCH_REG_NONE,
				    .src2 = ARCH_REG_NONE,
				    .base = ARCH_REG_NONE,
				    .index = ARCH_REG_NONE};
	if (!p) {
		t->known = 0;
		return;
	}
	a->effect(a, p, len, space_va(&c->d->space, loc), ret);
	uint64_t word = a->bits / 8u;
	uint64_t pushed = t->pushed;
	uint64_t others = ret->writes & ~((uint64_t)1 << a->sp_reg);
	t->pushed = 0;
	uint64_t v = 0;
	bool has_value = ret->dst != ARCH_REG_NONE && track_value(c, t, ret, &v);
	t->known &= ~ret->writes;
	if (has_value)
		track_set(c, t, ret->dst, v, ret->width);
	else if (pushed && ret->sp_is_known && ret->sp_delta == (int32_t)word && others &&
		 !(others & (others - 1)))
		track_set(c, t, (uint8_t)__builtin_ctzll(others), pushed, (unsigned)word);
	if (!rec || (rec->flow != ARCH_FLOW_CALL && rec->flow != ARCH_FLOW_ICALL))
		return;
	if (rec->flow == ARCH_FLOW_CALL && rec->target == loc + rec->len) {
		t->pushed = space_va(&c->d->space, loc) + rec->len;
		return;
	}
	t->known &= ~a->call_clobbers;
	uint8_t reg = rec->flow == ARCH_FLOW_CALL && a->bits == 32 && rec->target != LOC_NONE
			      ? code_pc_thunk(c, rec->target)
			      : ARCH_REG_NONE;
	if (reg != ARCH_REG_NONE)
		track_set(c, t, reg, space_va(&c->d->space, loc) + rec->len, a->bits / 8u);
}

uint8_t code_pc_thunk(const struct code *c, uint32_t target)
{
	const struct arch *a = c->arch;
	if (!code_has(c, c->items, target) || a->link_reg != ARCH_REG_NONE)
		return ARCH_REG_NONE;
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, target, &len);
	if (!p)
		return ARCH_REG_NONE;
	struct arch_effect e;
	a->effect(a, p, len, space_va(&c->d->space, target), &e);
	uint32_t next = code_insn_end(c, target);
	if (e.op == ARCH_OP_LOAD && e.base == a->sp_reg && e.index == ARCH_REG_NONE && !e.imm &&
	    code_has(c, c->rec_bits, next) && c->recs[code_rec_at(c, next)].flow == ARCH_FLOW_RET)
		return e.dst;
	return ARCH_REG_NONE;
}
