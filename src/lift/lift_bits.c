/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

/* Single bits, counts of bits, bit fields. */

static ir_ref bits(struct lift_x86 *x, enum ir_kind kind, ir_ref a)
{
	const struct ir_rec rec = {
		.op = IR_BITS, .width = (uint8_t)lift_width(x, a), .kind = (uint8_t)kind, .a = a, .b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	return lift_op_kind(x, &rec);
}

/* bt bts btr btc: arg is the operation on the bit, IR_OP_NONE for bt. A bit number in a register reaches beyond the operand
 * when that is memory. */
bool lift_do_bt(struct lift_x86 *x, unsigned op)
{
	enum ir_width w = lift_op_width(x, 0);
	unsigned wb = ir_bits(w);
	ir_ref addr = IR_REF_NONE;
	if (!lift_plain(x, 2) || (x->in.attributes & ZYDIS_ATTRIB_HAS_LOCK))
		return false;
	ir_ref index = lift_is_imm(x, 1) ? lift_k(x, w, x->ops[1].imm.value.u & (wb - 1)) : lift_read(x, 1);
	if (lift_is_mem(x, 0)) {
		lift_address(x, 0, &addr);
		unsigned shift = (unsigned)__builtin_ctz(wb);
		ir_ref words = lift_op(x, IR_ASHR, w, index, lift_k(x, IR_W8, shift));
		words = lift_sext(x, x->aw, words);
		addr = lift_op(x, IR_ADD, x->aw, addr, lift_op(x, IR_SHL, x->aw, words, lift_k(x, IR_W8, shift - 3)));
	}
	ir_ref a = addr == IR_REF_NONE ? lift_read(x, 0) : lift_load(x, w, addr);
	ir_ref n = lift_op(x, IR_AND, w, index, lift_k(x, w, wb - 1));
	ir_ref cf = lift_bit(x, lift_op(x, IR_LSHR, w, a, n), 0);
	if (op != IR_OP_NONE) {
		ir_ref bit = lift_op(x, IR_SHL, w, lift_k(x, w, 1), n);
		ir_ref r = lift_op(x, (enum ir_op)op, w, a, op == IR_AND ? lift_not(x, bit) : bit);
		if (addr == IR_REF_NONE)
			lift_write(x, 0, r);
		else
			lift_store(x, addr, r);
	}
	lift_flags_undef(x, LIFT_F_PF | LIFT_F_AF | LIFT_F_SF | LIFT_F_OF);
	lift_flag_value(x, LIFT_CF, cf);
	return true;
}

/* bsf bsr: a source of 0 leaves the whole register as it is (SDM, BSF: some older processors clear the upper half). */
bool lift_do_scan(struct lift_x86 *x, unsigned kind)
{
	enum ir_width w = lift_op_width(x, 0);
	unsigned num, off;
	enum ir_width rw;
	if (!lift_plain(x, 2) || !lift_gpr(x->ops[0].reg.value, &num, &rw, &off))
		return false;
	ir_ref a = lift_read(x, 1), n = bits(x, (enum ir_kind)kind, a), zero = lift_is_zero(x, a);
	if (kind == IR_BITS_CLZ)
		n = lift_op(x, IR_SUB, w, lift_k(x, w, ir_bits(w) - 1), n);
	ir_ref old = lift_get(x, lift_gpr_loc(num));
	ir_ref is_new = w == IR_W16 ? lift_insert(x, old, n, 0) : lift_zext(x, x->aw, n);
	lift_put(x, lift_gpr_loc(num), lift_sel(x, zero, old, is_new));
	lift_flags_undef(x, LIFT_F_ARITH);
	lift_flag_value(x, LIFT_ZF, zero);
	return true;
}

/* tzcnt lzcnt popcnt */
bool lift_do_count(struct lift_x86 *x, unsigned kind)
{
	if (!lift_plain(x, 2))
		return false;
	ir_ref a = lift_read(x, 1), n = bits(x, (enum ir_kind)kind, a), zero = lift_is_zero(x, a);
	lift_write(x, 0, n);
	if (kind == IR_BITS_POPCNT) {
		for (unsigned loc = LIFT_CF; loc <= LIFT_OF; loc++) {
			if (loc != LIFT_DF)
				lift_flag_value(x, loc, loc == LIFT_ZF ? zero : lift_k(x, IR_W1, 0));
		}
		return true;
	}
	lift_flags_undef(x, LIFT_F_ARITH);
	lift_flag_value(x, LIFT_CF, zero);
	lift_flag_value(x, LIFT_ZF, lift_is_zero(x, n));
	return true;
}

bool lift_do_bswap(struct lift_x86 *x, unsigned arg)
{
	if (!lift_plain(x, 1) || lift_op_width(x, 0) == IR_W16)
		return false;
	lift_write(x, 0, bits(x, IR_BITS_BSWAP, lift_read(x, 0)));
	return true;
}

/* andn blsr blsi blsmsk */
bool lift_do_bmi(struct lift_x86 *x, unsigned m)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, x->in.operand_count_visible))
		return false;
	ir_ref a = lift_read(x, 1), one = lift_k(x, w, 1), r, cf;
	switch (m) {
	case ZYDIS_MNEMONIC_ANDN:
		r = lift_op(x, IR_AND, w, lift_not(x, a), lift_read(x, 2));
		cf = lift_k(x, IR_W1, 0);
		break;
	case ZYDIS_MNEMONIC_BLSR:
		r = lift_op(x, IR_AND, w, a, lift_op(x, IR_SUB, w, a, one));
		cf = lift_is_zero(x, a);
		break;
	case ZYDIS_MNEMONIC_BLSI:
		r = lift_op(x, IR_AND, w, a, lift_op(x, IR_SUB, w, lift_k(x, w, 0), a));
		cf = lift_not(x, lift_is_zero(x, a));
		break;
	default:
		r = lift_op(x, IR_XOR, w, a, lift_op(x, IR_SUB, w, a, one));
		cf = lift_is_zero(x, a);
	}
	lift_write(x, 0, r);
	lift_flags_result(x, r);
	lift_flags_undef(x, LIFT_F_AF | LIFT_F_PF);
	lift_flag_value(x, LIFT_CF, cf);
	lift_flag_value(x, LIFT_OF, lift_k(x, IR_W1, 0));
	return true;
}

bool lift_do_pdep(struct lift_x86 *x, unsigned kind)
{
	if (!lift_plain(x, 3))
		return false;
	const struct ir_rec rec = {
		.op = IR_BITS2, .width = (uint8_t)lift_op_width(x, 0), .kind = (uint8_t)kind,
		.a = lift_read(x, 1), .b = lift_read(x, 2), .c = IR_REF_NONE,
	};
	lift_write(x, 0, lift_op_kind(x, &rec));
	return true;
}

/* bzhi: bits from the number in the low byte on become 0. */
bool lift_do_bzhi(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 3))
		return false;
	ir_ref a = lift_read(x, 1), n = lift_extract(x, IR_W8, lift_read(x, 2), 0);
	ir_ref ones = lift_op(x, IR_SHL, w, lift_not(x, lift_k(x, w, 0)), n);
	ir_ref r = lift_op(x, IR_AND, w, a, lift_not(x, ones));
	lift_write(x, 0, r);
	lift_flags_result(x, r);
	lift_flags_undef(x, LIFT_F_AF | LIFT_F_PF);
	lift_flag_value(x, LIFT_CF, lift_cmp(x, IR_CMP_ULE, lift_k(x, IR_W8, ir_bits(w)), n));
	lift_flag_value(x, LIFT_OF, lift_k(x, IR_W1, 0));
	return true;
}
