/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_vec_int.h"

/* Vector moves, scalar floating point, conversions of scalars. */

/* movaps movdqa .. : whole registers. That memory must be aligned for some is not modelled. */
bool lift_do_vmov(struct lift_x86 *x, unsigned arg)
{
	if (!lift_vec_plain(x, 2) || x->in.operand_count_visible != 2)
		return false;
	lift_vec_write(x, 0, lift_vec_read(x, 1));
	return true;
}

/* movss movsd: from memory clears the rest, from a register keeps it. */
bool lift_do_vmov_scalar(struct lift_x86 *x, unsigned w)
{
	unsigned cnt = x->in.operand_count_visible;
	if (!lift_vec_plain(x, cnt))
		return false;
	ir_ref v = lift_vec_low(x, cnt - 1, (enum ir_width)w);
	ir_ref addr;
	if (lift_address(x, 0, &addr))
		lift_store(x, addr, v);
	else if (lift_is_mem(x, cnt - 1))
		lift_vec_zext(x, 0, v);
	else
		lift_vec_merge(x, 0, cnt == 3 ? 1 : 0, v);
	return true;
}

/* movd movq: between vector registers, general registers and memory; clears the rest. */
bool lift_do_vmov_gpr(struct lift_x86 *x, unsigned arg)
{
	unsigned num, off;
	enum ir_width w;
	ir_ref addr;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || x->in.operand_count_visible != 2)
		return false;
	if (lift_vec(x, 0) >= 0) {
		if (lift_is_reg(x, 1) && lift_gpr(x->ops[1].reg.value, &num, &w, &off))
			lift_vec_zext(x, 0, lift_read_gpr(x, x->ops[1].reg.value));
		else if (lift_vec(x, 1) >= 0 || lift_is_mem(x, 1)) {
			w = arg == ZYDIS_MNEMONIC_MOVQ ? IR_W64 : lift_op_width(x, 1);
			if (lift_is_mem(x, 1) && !lift_address(x, 1, &addr))
				return false;
			lift_vec_zext(x, 0, lift_vec_low(x, 1, w));
		} else
			return false;
		return true;
	}
	if (lift_vec(x, 1) < 0)
		return false;
	w = lift_op_width(x, 0);
	ir_ref v = lift_vec_low(x, 1, w);
	if (lift_address(x, 0, &addr))
		lift_store(x, addr, v);
	else if (lift_is_reg(x, 0) && lift_gpr(x->ops[0].reg.value, &num, &w, &off))
		lift_write_gpr(x, x->ops[0].reg.value, v);
	else
		return false;
	return true;
}

/* movhps movlps movhpd movlpd: one half from or to memory; arg is its place in bits. */
bool lift_do_vmov_half(struct lift_x86 *x, unsigned off)
{
	unsigned cnt = x->in.operand_count_visible;
	ir_ref addr;
	if (!lift_vec_plain(x, cnt))
		return false;
	if (lift_address(x, 0, &addr)) {
		lift_store(x, addr, lift_extract(x, IR_W64, lift_vec_read(x, 1).half[0], off));
		return true;
	}
	if (!lift_address(x, cnt - 1, &addr))
		return false;
	ir_ref v = lift_load(x, IR_W64, addr), old = lift_get(x, lift_xmm_loc((unsigned)lift_vec(x, cnt == 3 ? 1 : 0)));
	lift_vec_write(x, 0, (struct lift_vec){{lift_insert(x, old, v, off), IR_REF_NONE}, 1});
	return true;
}

/* movhlps (arg 0), movlhps (arg 64): half of the last operand to the other half. */
bool lift_do_vmov_hl(struct lift_x86 *x, unsigned to)
{
	unsigned cnt = x->in.operand_count_visible;
	if (!lift_vec_plain(x, cnt) || lift_is_mem(x, cnt - 1))
		return false;
	ir_ref v = lift_extract(x, IR_W64, lift_vec_read(x, cnt - 1).half[0], 64 - to);
	ir_ref old = lift_vec_read(x, cnt == 3 ? 1 : 0).half[0];
	lift_vec_write(x, 0, (struct lift_vec){{lift_insert(x, old, v, to), IR_REF_NONE}, 1});
	return true;
}

bool lift_do_zeroupper(struct lift_x86 *x, unsigned all)
{
	for (unsigned i = 0; i < (x->is_64 ? 16u : 8u); i++) {
		if (all)
			lift_put(x, lift_xmm_loc(i), lift_k(x, IR_W128, 0));
		lift_put(x, lift_ymmh_loc(i), lift_k(x, IR_W128, 0));
		lift_put(x, lift_zmmh_loc(i), lift_k(x, IR_W256, 0));
	}
	return true;
}

/* --- scalars ----------------------------------------------------------------------------------------------- */
/* addss .. : arg is ir_lane(); the rest of the register is the first source's. */
bool lift_do_fscalar(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = ir_lane_width(arg);
	unsigned cnt = x->in.operand_count_visible, first = cnt == 3 ? 1 : 0;
	if (!lift_vec_plain(x, cnt))
		return false;
	ir_ref b = lift_vec_low(x, cnt - 1, w);
	struct ir_rec rec = {
		.op = (uint8_t)ir_lane_op(arg), .kind = (uint8_t)ir_lane_kind(arg), .width = (uint8_t)w, .a = b, .b = IR_REF_NONE,
		.c = IR_REF_NONE,
	};
	if (rec.op == IR_FBIN) {
		rec.a = lift_vec_low(x, first, w);
		rec.b = b;
	}
	lift_vec_merge(x, 0, first, ir_emit(x->f, &rec));
	return true;
}

static ir_ref fcmp(struct lift_x86 *x, enum ir_kind kind, ir_ref a, ir_ref b)
{
	const struct ir_rec rec = {.op = IR_FCMP, .width = IR_W1, .kind = (uint8_t)kind, .a = a, .b = b, .c = IR_REF_NONE};
	return ir_emit(x->f, &rec);
}

/* comiss ucomiss comisd ucomisd: unordered is below, equal and odd at once. */
bool lift_do_fcomi(struct lift_x86 *x, unsigned w)
{
	if (!lift_vec_plain(x, 2))
		return false;
	ir_ref a = lift_vec_low(x, 0, (enum ir_width)w), b = lift_vec_low(x, 1, (enum ir_width)w);
	ir_ref uno = fcmp(x, IR_FCMP_UNO, a, b), zero = lift_k(x, IR_W1, 0);
	lift_flag_value(x, LIFT_ZF, lift_op(x, IR_OR, IR_W1, fcmp(x, IR_FCMP_OEQ, a, b), uno));
	lift_flag_value(x, LIFT_CF, lift_op(x, IR_OR, IR_W1, fcmp(x, IR_FCMP_OLT, a, b), uno));
	lift_flag_value(x, LIFT_PF, uno);
	lift_flag_value(x, LIFT_OF, zero);
	lift_flag_value(x, LIFT_SF, zero);
	lift_flag_value(x, LIFT_AF, zero);
	return true;
}

/* cvtsi2ss cvtsi2sd */
bool lift_do_int_cvt(struct lift_x86 *x, unsigned w)
{
	unsigned cnt = x->in.operand_count_visible, num, off;
	enum ir_width rw;
	ir_ref addr, v;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || lift_vec(x, 0) < 0 || (cnt == 3 && lift_vec(x, 1) < 0))
		return false;
	if (lift_is_reg(x, cnt - 1) && lift_gpr(x->ops[cnt - 1].reg.value, &num, &rw, &off))
		v = lift_read_gpr(x, x->ops[cnt - 1].reg.value);
	else if (lift_address(x, cnt - 1, &addr))
		v = lift_load(x, lift_op_width(x, cnt - 1), addr);
	else
		return false;
	const struct ir_rec rec = {.op = IR_ITOF, .width = (uint8_t)w, .kind = IR_ITOF_S, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE};
	lift_vec_merge(x, 0, cnt == 3 ? 1 : 0, ir_emit(x->f, &rec));
	return true;
}

/* cvttsd2si cvtsd2si ..: arg is the float's width, and the kind above. */
bool lift_do_fcvt_int(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = lift_op_width(x, 0), rw;
	unsigned num, off;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || !lift_is_reg(x, 0) ||
	    !lift_gpr(x->ops[0].reg.value, &num, &rw, &off) || (lift_vec(x, 1) < 0 && !lift_is_mem(x, 1)))
		return false;
	ir_ref addr;
	if (lift_is_mem(x, 1) && !lift_address(x, 1, &addr))
		return false;
	const struct ir_rec rec = {
		.op = IR_FTOI, .width = (uint8_t)w, .kind = (uint8_t)(arg >> 8), .a = lift_vec_low(x, 1, (enum ir_width)(arg & 0xff)),
		.b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	lift_write_gpr(x, x->ops[0].reg.value, ir_emit(x->f, &rec));
	return true;
}

/* cvtss2sd cvtsd2ss: arg is the width of the result. */
bool lift_do_fcvt_float(struct lift_x86 *x, unsigned w)
{
	unsigned cnt = x->in.operand_count_visible;
	if (!lift_vec_plain(x, cnt))
		return false;
	ir_ref v = lift_vec_low(x, cnt - 1, w == IR_W64 ? IR_W32 : IR_W64);
	const struct ir_rec rec = {.op = IR_FCVT, .width = (uint8_t)w, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE};
	lift_vec_merge(x, 0, cnt == 3 ? 1 : 0, ir_emit(x->f, &rec));
	return true;
}

/* roundss roundsd: the immediate says how. */
bool lift_do_roundx(struct lift_x86 *x, unsigned w)
{
	static const uint8_t kinds[4] = {IR_FUN_NEAREST, IR_FUN_FLOOR, IR_FUN_CEIL, IR_FUN_TRUNC};
	unsigned cnt = x->in.operand_count_visible;
	if (!lift_vec_plain(x, cnt) || !lift_is_imm(x, cnt - 1))
		return false;
	uint64_t how = x->ops[cnt - 1].imm.value.u;
	const struct ir_rec rec = {
		.op = IR_FUN, .width = (uint8_t)w, .kind = how & 4 ? IR_FUN_ROUND : kinds[how & 3],
		.a = lift_vec_low(x, cnt - 2, (enum ir_width)w), .b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	lift_vec_merge(x, 0, cnt == 4 ? 1 : 0, ir_emit(x->f, &rec));
	return true;
}

/* The predicates 0 .. 7 of cmpss and the like, made of ours; those from 4 on are the opposites. */
static const uint8_t predicates[4] = {IR_FCMP_OEQ, IR_FCMP_OLT, IR_FCMP_OLE, IR_FCMP_UNO};

/* cmpss cmpsd cmpps cmppd: arg is the lane's width, in bit 8 whether there is only one. */
bool lift_do_fpcmp(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = (enum ir_width)(arg & 0xff);
	unsigned cnt = x->in.operand_count_visible, first = cnt == 4 ? 1 : 0;
	if (!lift_vec_plain(x, cnt) || !lift_is_imm(x, cnt - 1) || x->ops[cnt - 1].imm.value.u > 7)
		return false;
	unsigned how = (unsigned)x->ops[cnt - 1].imm.value.u;
	enum ir_kind kind = (enum ir_kind)predicates[how & 3];
	if (arg >> 8) {
		ir_ref is = fcmp(x, kind, lift_vec_low(x, first, w), lift_vec_low(x, cnt - 2, w));
		lift_vec_merge(x, 0, first, lift_sext(x, w, how & 4 ? lift_not(x, is) : is));
		return true;
	}
	struct lift_vec a = lift_vec_read(x, first), b = lift_vec_read(x, cnt - 2);
	for (unsigned i = 0; i < a.cnt; i++) {
		a.half[i] = lift_vmap(x, ir_lane(IR_FCMP, kind, w), a.half[i], b.half[i]);
		if (how & 4)
			a.half[i] = lift_not(x, a.half[i]);
	}
	lift_vec_write(x, 0, a);
	return true;
}
