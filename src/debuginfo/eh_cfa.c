/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/eh_cfa.h"

/* Primary opcodes stand in the top two bits, the others are whole bytes. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_PRIMARY_MASK = 0xc0,

	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_A64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_GNU_WINDOW_SAVE = 0x2d, /* AArch64: negate_ra_state */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* Rows remembered before the location advances: compilers nest none there. */
#define CFA_STACK_MAX 8

struct cfa_machine {
	struct cur *c;
	const struct dbg_cfa_rules *rules;
	struct dbg_cfa *row;
	struct dbg_cfa stack[CFA_STACK_MAX];
	unsigned depth;
};

static int64_t cfa_factored(const struct cfa_machine *m, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)m->rules->data_align);
}

static bool cfa_define(struct cfa_machine *m, unsigned op)
{
	struct cur *c = m->c;
	struct dbg_cfa *row = m->row;
	switch (op) {
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_SF:
		row->reg = cur_uleb(c);
		row->off = op == CFA_DEF_CFA ? (int64_t)cur_uleb(c) : cfa_factored(m, cur_sleb(c));
		row->is_expr = false;
		row->is_set = true;
		return true;
	case CFA_DEF_CFA_REGISTER:
		row->reg = cur_uleb(c);
		return true;
	case CFA_DEF_CFA_OFFSET:
		row->off = (int64_t)cur_uleb(c);
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		row->off = cfa_factored(m, cur_sleb(c));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		cur_skip(c, cur_uleb(c));
		row->is_expr = true;
		row->is_set = true;
		return true;
	default:
		return false;
	}
}

/* Rules of registers, whose operands are only skipped. */
static bool cfa_skip_rule(struct cfa_machine *m, unsigned op)
{
	struct cur *c = m->c;
	switch (op) {
	case CFA_NOP:
	case CFA_GNU_WINDOW_SAVE:
	case CFA_A64_NEGATE_RA_STATE_WITH_PC:
		return true;
	case CFA_OFFSET_EXTENDED:
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		cur_uleb(c);
		cur_uleb(c);
		return true;
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_VAL_OFFSET_SF:
		cur_uleb(c);
		cur_sleb(c);
		return true;
	case CFA_RESTORE_EXTENDED:
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
	case CFA_GNU_ARGS_SIZE:
		cur_uleb(c);
		return true;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		cur_uleb(c);
		cur_skip(c, cur_uleb(c));
		return true;
	default:
		return false;
	}
}

static bool cfa_stack(struct cfa_machine *m, unsigned op)
{
	if (op == CFA_REMEMBER_STATE && m->depth < CFA_STACK_MAX) {
		m->stack[m->depth++] = *m->row;
		return true;
	}
	if (op == CFA_RESTORE_STATE && m->depth > 0) {
		*m->row = m->stack[--m->depth];
		return true;
	}
	return false;
}

/* Whether `op` moves the location on; one that moves by nothing stays in the row. */
static bool cfa_advances(struct cfa_machine *m, unsigned op, bool *ret_known)
{
	*ret_known = true;
	if ((op & CFA_PRIMARY_MASK) == CFA_ADVANCE_LOC)
		return (op & ~(unsigned)CFA_PRIMARY_MASK) != 0;
	switch (op) {
	case CFA_SET_LOC:
		return true;
	case CFA_ADVANCE_LOC1:
		return cur_u8(m->c) != 0;
	case CFA_ADVANCE_LOC2:
		return cur_u16(m->c) != 0;
	case CFA_ADVANCE_LOC4:
		return cur_u32(m->c) != 0;
	case CFA_MIPS_ADVANCE_LOC8:
		return cur_u64(m->c) != 0;
	default:
		*ret_known = false;
		return false;
	}
}

bool dbg_cfa_run(struct cur *c, const struct dbg_cfa_rules *rules, struct dbg_cfa *row,
		 uint64_t *steps_left)
{
	struct cfa_machine m = {.c = c, .rules = rules, .row = row};
	while (cur_left(c) && *steps_left) {
		--*steps_left;
		unsigned op = cur_u8(c);
		bool known;
		if (cfa_advances(&m, op, &known))
			return !c->failed;
		if (known)
			continue;
		struct dbg_cfa before = *row;
		switch (op & CFA_PRIMARY_MASK) {
		case CFA_OFFSET:
			cur_uleb(c);
			break;
		case CFA_RESTORE:
			break;
		default:
			if (!cfa_define(&m, op) && !cfa_skip_rule(&m, op) && !cfa_stack(&m, op))
				return false;
		}
		if (c->failed) {
			*row = before;
			return false;
		}
	}
	return !c->failed;
}

bool dbg_cfa_is_fresh(enum fmt_machine machine, const struct dbg_cfa *row)
{
	/* DWARF numbers of the stack pointer, and what a call has pushed: the psABIs' register tables. */
	static const struct {
		uint64_t reg;
		int64_t off;
		bool is_known;
	} fresh[] = {
		[FMT_MACHINE_X86_64] = {7, 8, true},
		[FMT_MACHINE_I386] = {4, 4, true},
		[FMT_MACHINE_A64] = {31, 0, true},
	};
	if ((size_t)machine >= ARRAY_LEN(fresh) || !fresh[machine].is_known || !row->is_set)
		return true;
	return !row->is_expr && row->reg == fresh[machine].reg && row->off == fresh[machine].off;
}
