/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

#include <string.h>

/*
 * Flags are not computed when an instruction sets them: it leaves a thunk that says from what they would be, and who reads
 * one makes it. What is still unmade at the end of a block and wanted by a later one is made there (lift_x86.c). A
 * condition right behind the comparison it tests becomes one CMP.
 */

static struct lift_flag *flag_of(struct lift_x86 *x, unsigned loc)
{
	return &x->flags[loc - LIFT_CF];
}

void lift_flags_reset(struct lift_x86 *x)
{
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++)
		x->flags[i] = (struct lift_flag){.state = LIFT_FLAG_IN_LOC, .may_keep = true};
}

/* Instructions whose count may be 0 stack up as long as nobody reads the flags; from so many on, they are made. */
#define CHAIN_MAX 32

static bool keeps(const struct lift_thunk *t)
{
	return t->kind >= LIFT_T_SHL;
}

void lift_flags_thunk(struct lift_x86 *x, unsigned mask, const struct lift_thunk *t)
{
	struct lift_thunk *copy = ARENA_RAW_ARRAY(x->f->arena, struct lift_thunk, 1);
	struct lift_flag *before = keeps(t) ? ARENA_RAW_ARRAY(x->f->arena, struct lift_flag, LIFT_FLAG_CNT) : NULL;
	if (!copy || (keeps(t) && !before)) {
		x->f->failed = true;
		return;
	}
	*copy = *t;
	copy->before = before;
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++) {
		const struct lift_thunk *old = x->flags[i].state == LIFT_FLAG_THUNK ? x->flags[i].thunk : NULL;
		if (!keeps(t) || !(mask >> i & 1) || !old || !keeps(old))
			continue;
		if (old->depth == CHAIN_MAX)
			lift_flag(x, LIFT_CF + i);
		else if (old->depth >= copy->depth)
			copy->depth = old->depth + 1;
	}
	if (before)
		memcpy(before, x->flags, sizeof(x->flags));
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++) {
		if (!(mask >> i & 1))
			continue;
		x->flags[i] = (struct lift_flag){
			.state = LIFT_FLAG_THUNK, .thunk = copy, .may_keep = before && before[i].may_keep,
		};
	}
}

void lift_flag_value(struct lift_x86 *x, unsigned loc, ir_ref v)
{
	*flag_of(x, loc) = (struct lift_flag){.state = LIFT_FLAG_VALUE, .value = v};
}

void lift_flags_undef(struct lift_x86 *x, unsigned mask)
{
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++) {
		if (mask >> i & 1)
			x->flags[i] = (struct lift_flag){.state = LIFT_FLAG_UNDEF};
	}
}

void lift_flags_logic(struct lift_x86 *x, ir_ref r)
{
	const struct lift_thunk t = {.kind = LIFT_T_LOGIC, .width = (uint8_t)lift_width(x, r), .r = r};
	lift_flags_thunk(x, LIFT_F_ARITH, &t);
}

void lift_flags_result(struct lift_x86 *x, ir_ref r)
{
	const struct lift_thunk t = {.kind = LIFT_T_RESULT, .width = (uint8_t)lift_width(x, r), .r = r};
	lift_flags_thunk(x, LIFT_F_ZF | LIFT_F_SF | LIFT_F_PF, &t);
}

/* --- making one flag --------------------------------------------------------------------------------------- */
static ir_ref parity(struct lift_x86 *x, ir_ref r)
{
	return lift_op(x, IR_PARITY, IR_W1, r, IR_REF_NONE);
}

static ir_ref flag_op(struct lift_x86 *x, enum ir_kind kind, const struct lift_thunk *t)
{
	const struct ir_rec rec = {
		.op = IR_FLAG, .width = IR_W1, .kind = (uint8_t)kind, .a = t->a, .b = t->b,
		.c = t->c == IR_REF_NONE ? lift_k(x, IR_W1, 0) : t->c,
	};
	return lift_op_kind(x, &rec);
}

static ir_ref half_carry(struct lift_x86 *x, const struct lift_thunk *t)
{
	enum ir_width w = (enum ir_width)t->width;
	ir_ref all = lift_op(x, IR_XOR, w, lift_op(x, IR_XOR, w, t->a, t->b), t->r);
	return lift_bit(x, all, 4);
}

static ir_ref add_sub_flag(struct lift_x86 *x, const struct lift_thunk *t, unsigned loc)
{
	bool is_add = t->kind == LIFT_T_ADD;
	bool is_plain = t->c == IR_REF_NONE;
	switch (loc) {
	case LIFT_CF:
		if (is_plain)
			return is_add ? lift_cmp(x, IR_CMP_ULT, t->r, t->a) : lift_cmp(x, IR_CMP_ULT, t->a, t->b);
		return flag_op(x, is_add ? IR_FLAG_CARRY : IR_FLAG_BORROW, t);
	case LIFT_OF:
		return flag_op(x, is_add ? IR_FLAG_OVF_ADD : IR_FLAG_OVF_SUB, t);
	case LIFT_AF:
		return half_carry(x, t);
	case LIFT_ZF:
		return is_plain && !is_add ? lift_cmp(x, IR_CMP_EQ, t->a, t->b) : lift_is_zero(x, t->r);
	case LIFT_SF:
		return lift_msb(x, t->r);
	default:
		return parity(x, t->r);
	}
}

/* The last bit shifted out of `a` by `n`, which is not 0 and not constant; what n = 0 gives does not matter. */
static ir_ref shifted_out(struct lift_x86 *x, const struct lift_thunk *t)
{
	enum ir_width w = (enum ir_width)t->width;
	unsigned bits = ir_bits(w);
	ir_ref n = t->b;
	ir_ref less = lift_op(x, IR_SUB, IR_W8, n, lift_k(x, IR_W8, 1));
	ir_ref cf;
	if (t->kind == LIFT_T_SHL || t->kind == LIFT_T_SHLD)
		cf = lift_msb(x, lift_op(x, IR_SHL, w, t->a, less));
	else
		cf = lift_bit(x, lift_op(x, t->kind == LIFT_T_SAR ? IR_ASHR : IR_LSHR, w, t->a, less), 0);
	/* Counts beyond the width: only for 8 and 16 bits, where they are not masked away. */
	if (bits >= 32 || t->kind == LIFT_T_SAR)
		return cf;
	unsigned last = t->kind == LIFT_T_SHLD || t->kind == LIFT_T_SHRD ? bits : bits - 1;
	ir_ref is_far = lift_cmp(x, IR_CMP_ULT, lift_k(x, IR_W8, last), n);
	return lift_sel(x, is_far, lift_undef(x, IR_W1), cf);
}

/* Overflow flag of a shift by one. */
static ir_ref overflow_by_one(struct lift_x86 *x, const struct lift_thunk *t)
{
	switch (t->kind) {
	case LIFT_T_SAR:
		return lift_k(x, IR_W1, 0);
	case LIFT_T_SHR:
		return lift_msb(x, t->a);
	case LIFT_T_ROL:
		return lift_op(x, IR_XOR, IR_W1, lift_msb(x, t->r), lift_bit(x, t->r, 0));
	case LIFT_T_ROR:
		return lift_op(x, IR_XOR, IR_W1, lift_msb(x, t->r), lift_bit(x, t->r, ir_bits((enum ir_width)t->width) - 2));
	default:
		return lift_op(x, IR_XOR, IR_W1, lift_msb(x, t->r), lift_msb(x, t->a));
	}
}

/* If the count were not 0. */
static ir_ref shift_flag(struct lift_x86 *x, const struct lift_thunk *t, unsigned loc)
{
	ir_ref is_one;
	switch (loc) {
	case LIFT_CF:
		if (t->kind == LIFT_T_ROL)
			return lift_bit(x, t->r, 0);
		return t->kind == LIFT_T_ROR ? lift_msb(x, t->r) : shifted_out(x, t);
	case LIFT_OF:
		is_one = lift_cmp(x, IR_CMP_EQ, t->b, lift_k(x, IR_W8, 1));
		return lift_sel(x, is_one, overflow_by_one(x, t), lift_undef(x, IR_W1));
	case LIFT_ZF:
		return lift_is_zero(x, t->r);
	case LIFT_SF:
		return lift_msb(x, t->r);
	case LIFT_PF:
		return parity(x, t->r);
	default:
		return lift_undef(x, IR_W1);
	}
}

static ir_ref resolve(struct lift_x86 *x, const struct lift_flag *f, unsigned loc);

static ir_ref kept(struct lift_x86 *x, const struct lift_thunk *t, unsigned loc)
{
	uint64_t n;
	ir_ref made = shift_flag(x, t, loc);
	if (ir_const_get(x->f, t->b, &n))
		return made;
	ir_ref old = resolve(x, &t->before[loc - LIFT_CF], loc);
	return lift_sel(x, lift_is_zero(x, t->b), old, made);
}

static ir_ref repeated(struct lift_x86 *x, const struct lift_thunk *t, unsigned loc)
{
	const struct lift_thunk last = {
		.kind = LIFT_T_SUB, .width = t->width, .a = t->a, .b = t->b, .c = IR_REF_NONE, .r = t->r,
	};
	ir_ref old = resolve(x, &t->before[loc - LIFT_CF], loc);
	return lift_sel(x, t->c, old, add_sub_flag(x, &last, loc));
}

static ir_ref resolve(struct lift_x86 *x, const struct lift_flag *f, unsigned loc)
{
	switch (f->state) {
	case LIFT_FLAG_VALUE:
		return f->value;
	case LIFT_FLAG_UNDEF:
		return lift_undef(x, IR_W1);
	case LIFT_FLAG_IN_LOC:
		x->flags_read |= LIFT_FLAG_BIT(loc);
		return lift_get(x, (uint16_t)loc);
	default:
		break;
	}
	const struct lift_thunk *t = f->thunk;
	switch (t->kind) {
	case LIFT_T_ADD:
	case LIFT_T_SUB:
		return add_sub_flag(x, t, loc);
	case LIFT_T_LOGIC:
	case LIFT_T_RESULT:
		if (loc == LIFT_CF || loc == LIFT_OF)
			return lift_k(x, IR_W1, 0);
		return loc == LIFT_AF ? lift_undef(x, IR_W1) : shift_flag(x, t, loc);
	case LIFT_T_REPEATED:
		return repeated(x, t, loc);
	default:
		return kept(x, t, loc);
	}
}

ir_ref lift_flag(struct lift_x86 *x, unsigned loc)
{
	struct lift_flag *f = flag_of(x, loc);
	if (f->state == LIFT_FLAG_VALUE)
		return f->value;
	ir_ref v = resolve(x, f, loc);
	if (f->state != LIFT_FLAG_IN_LOC) {
		f->state = LIFT_FLAG_VALUE;
		f->value = v;
	}
	return v;
}

void lift_flags_sync(struct lift_x86 *x, unsigned mask)
{
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++) {
		if ((mask >> i & 1) && x->flags[i].state != LIFT_FLAG_IN_LOC)
			lift_flag(x, LIFT_CF + i);
	}
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++) {
		if (!(mask >> i & 1) || x->flags[i].state == LIFT_FLAG_IN_LOC)
			continue;
		lift_put(x, (uint16_t)(LIFT_CF + i), x->flags[i].value);
		x->flags[i] = (struct lift_flag){.state = LIFT_FLAG_IN_LOC};
	}
}

/* --- conditions -------------------------------------------------------------------------------------------- */
/* The thunk that two flags share and that says everything; null: none. */
static const struct lift_thunk *common(const struct lift_x86 *x, unsigned a, unsigned b)
{
	const struct lift_flag *fa = &x->flags[a - LIFT_CF], *fb = &x->flags[b - LIFT_CF];
	return fa->thunk && fa->thunk == fb->thunk ? fa->thunk : NULL;
}

static bool is_plain_sub(const struct lift_thunk *t)
{
	return t && t->kind == LIFT_T_SUB && t->c == IR_REF_NONE;
}

static ir_ref below_or_equal(struct lift_x86 *x)
{
	const struct lift_thunk *t = common(x, LIFT_CF, LIFT_ZF);
	if (is_plain_sub(t))
		return lift_cmp(x, IR_CMP_ULE, t->a, t->b);
	if (t && t->kind == LIFT_T_LOGIC)
		return lift_flag(x, LIFT_ZF);
	return lift_op(x, IR_OR, IR_W1, lift_flag(x, LIFT_CF), lift_flag(x, LIFT_ZF));
}

static ir_ref less(struct lift_x86 *x)
{
	const struct lift_thunk *t = common(x, LIFT_SF, LIFT_OF);
	if (is_plain_sub(t))
		return lift_cmp(x, IR_CMP_SLT, t->a, t->b);
	if (t && t->kind == LIFT_T_LOGIC)
		return lift_flag(x, LIFT_SF);
	return lift_op(x, IR_XOR, IR_W1, lift_flag(x, LIFT_SF), lift_flag(x, LIFT_OF));
}

static ir_ref less_or_equal(struct lift_x86 *x)
{
	const struct lift_thunk *t = common(x, LIFT_SF, LIFT_OF);
	bool with_zero = t && t == common(x, LIFT_SF, LIFT_ZF);
	if (with_zero && is_plain_sub(t))
		return lift_cmp(x, IR_CMP_SLE, t->a, t->b);
	if (with_zero && t->kind == LIFT_T_LOGIC)
		return lift_cmp(x, IR_CMP_SLE, t->r, lift_k(x, (enum ir_width)t->width, 0));
	return lift_op(x, IR_OR, IR_W1, lift_flag(x, LIFT_ZF), less(x));
}

ir_ref lift_cond(struct lift_x86 *x, unsigned cc)
{
	ir_ref v;
	switch (cc >> 1) {
	case 0:
		v = lift_flag(x, LIFT_OF);
		break;
	case 1:
		v = lift_flag(x, LIFT_CF);
		break;
	case 2:
		v = lift_flag(x, LIFT_ZF);
		break;
	case 3:
		v = below_or_equal(x);
		break;
	case 4:
		v = lift_flag(x, LIFT_SF);
		break;
	case 5:
		v = lift_flag(x, LIFT_PF);
		break;
	case 6:
		v = less(x);
		break;
	default:
		v = less_or_equal(x);
	}
	return cc & 1 ? lift_not(x, v) : v;
}
