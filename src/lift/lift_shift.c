/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

/* Shifts and rotations. The processor masks counts to 5 bits, to 6 for operands of 64. */

/* The masked count, 8 bits wide; true when it is a constant 0, which changes nothing. */
static bool count_of(struct lift_x86 *x, unsigned i, ir_ref *ret)
{
	unsigned mask = lift_op_width(x, 0) == IR_W64 ? 63 : 31;
	uint64_t n;
	ir_ref v = lift_is_imm(x, i) ? lift_k(x, IR_W8, x->ops[i].imm.value.u) : lift_read(x, i);
	*ret = lift_op(x, IR_AND, IR_W8, v, lift_k(x, IR_W8, mask));
	return ir_const_get(x->f, *ret, &n) && n == 0;
}

/* Memory is read, and may fault, and a 32-bit register is written, and so its upper half cleared, even when the count is 0. */
static void write_same(struct lift_x86 *x)
{
	ir_ref same = lift_read(x, 0);
	if (lift_is_reg(x, 0) && lift_op_width(x, 0) == IR_W32)
		lift_write(x, 0, same);
}

static ir_ref rotate(struct lift_x86 *x, enum ir_kind kind, ir_ref a, ir_ref n)
{
	const struct ir_rec rec = {
		.op = IR_ROT, .width = (uint8_t)lift_width(x, a), .kind = (uint8_t)kind, .a = a, .b = n, .c = IR_REF_NONE,
	};
	return lift_op_kind(x, &rec);
}

static ir_ref shifted(struct lift_x86 *x, enum lift_thunk_kind kind, ir_ref a, ir_ref n)
{
	enum ir_width w = lift_width(x, a);
	switch (kind) {
	case LIFT_T_SHL:
		return lift_op(x, IR_SHL, w, a, n);
	case LIFT_T_SHR:
		return lift_op(x, IR_LSHR, w, a, n);
	case LIFT_T_SAR:
		return lift_op(x, IR_ASHR, w, a, n);
	default:
		return rotate(x, kind == LIFT_T_ROL ? IR_ROT_L : IR_ROT_R, a, n);
	}
}

/* shl shr sar rol ror */
bool lift_do_shift(struct lift_x86 *x, unsigned kind)
{
	ir_ref n;
	if (!lift_plain(x, 2))
		return false;
	if (count_of(x, 1, &n)) {
		write_same(x);
		return true;
	}
	ir_ref a = lift_read(x, 0), r = shifted(x, (enum lift_thunk_kind)kind, a, n);
	bool rotates = kind == LIFT_T_ROL || kind == LIFT_T_ROR;
	const struct lift_thunk t = {
		.kind = (uint8_t)kind, .width = (uint8_t)lift_op_width(x, 0), .a = a, .b = n, .c = IR_REF_NONE, .r = r,
	};
	lift_write(x, 0, r);
	lift_flags_thunk(x, rotates ? LIFT_F_CF | LIFT_F_OF : LIFT_F_ARITH, &t);
	return true;
}

/* rcl rcr by a constant: the carry and the operand in one, turned round. */
bool lift_do_rcx(struct lift_x86 *x, unsigned is_left)
{
	enum ir_width w = lift_op_width(x, 0);
	unsigned bits = ir_bits(w);
	ir_ref count;
	uint64_t n = 0;
	if (!lift_plain(x, 2) || !lift_is_imm(x, 1))
		return false;
	if (count_of(x, 1, &count)) {
		write_same(x);
		return true;
	}
	ir_const_get(x->f, count, &n);
	bool is_one = n == 1;
	n %= bits + 1;
	if (n == 0)
		return false;
	ir_ref a = lift_read(x, 0), c = lift_zext(x, w, lift_flag(x, LIFT_CF));
	/* To the left by n is to the right by bits + 1 - n. */
	unsigned left = is_left ? (unsigned)n : bits + 1 - (unsigned)n;
	ir_ref r = lift_op(x, IR_OR, w, lift_op(x, IR_SHL, w, a, lift_k(x, IR_W8, left)),
			   lift_op(x, IR_SHL, w, c, lift_k(x, IR_W8, left - 1)));
	r = lift_op(x, IR_OR, w, r, lift_op(x, IR_LSHR, w, a, lift_k(x, IR_W8, bits + 1 - left)));
	ir_ref cf = lift_bit(x, a, bits - left);
	ir_ref of = is_left ? lift_op(x, IR_XOR, IR_W1, lift_msb(x, r), cf)
			    : lift_op(x, IR_XOR, IR_W1, lift_msb(x, r), lift_bit(x, r, bits - 2));
	lift_write(x, 0, r);
	lift_flag_value(x, LIFT_CF, cf);
	if (is_one)
		lift_flag_value(x, LIFT_OF, of);
	else
		lift_flags_undef(x, LIFT_F_OF);
	return true;
}

/* shld shrd */
bool lift_do_double_shift(struct lift_x86 *x, unsigned is_left)
{
	enum ir_width w = lift_op_width(x, 0);
	unsigned bits = ir_bits(w);
	ir_ref n;
	if (!lift_plain(x, 3))
		return false;
	if (count_of(x, 2, &n)) {
		write_same(x);
		return true;
	}
	ir_ref a = lift_read(x, 0), b = lift_read(x, 1);
	struct ir_rec rec = {.op = IR_FSHR, .width = (uint8_t)w, .a = b, .b = a, .c = n};
	if (is_left) {
		rec.a = a;
		rec.b = b;
		rec.c = lift_op(x, IR_SUB, IR_W8, lift_k(x, IR_W8, bits), n);
	}
	ir_ref r = lift_op_kind(x, &rec);
	if (w == IR_W16) {
		ir_ref is_far = lift_cmp(x, IR_CMP_ULT, lift_k(x, IR_W8, 16), n);
		r = lift_sel(x, is_far, lift_undef(x, w), r);
	}
	const struct lift_thunk t = {
		.kind = is_left ? LIFT_T_SHLD : LIFT_T_SHRD, .width = (uint8_t)w, .a = a, .b = n, .c = IR_REF_NONE, .r = r,
	};
	lift_write(x, 0, r);
	lift_flags_thunk(x, LIFT_F_ARITH, &t);
	return true;
}

/* shlx shrx sarx: no flags. */
bool lift_do_bmi_shift(struct lift_x86 *x, unsigned op)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 3))
		return false;
	ir_ref a = lift_read(x, 1), n = lift_op(x, IR_AND, w, lift_read(x, 2), lift_k(x, w, w == IR_W64 ? 63 : 31));
	lift_write(x, 0, lift_op(x, (enum ir_op)op, w, a, n));
	return true;
}

bool lift_do_rorx(struct lift_x86 *x, unsigned arg)
{
	if (!lift_plain(x, 3))
		return false;
	ir_ref n = lift_k(x, IR_W8, x->ops[2].imm.value.u & (lift_op_width(x, 0) == IR_W64 ? 63 : 31));
	lift_write(x, 0, rotate(x, IR_ROT_R, lift_read(x, 1), n));
	return true;
}
