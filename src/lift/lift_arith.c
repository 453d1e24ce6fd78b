/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

/* Addition to division. */

static bool is_locked(const struct lift_x86 *x)
{
	return x->in.attributes & ZYDIS_ATTRIB_HAS_LOCK;
}

static ir_ref rmw(struct lift_x86 *x, enum ir_kind kind, ir_ref addr, ir_ref v)
{
	const struct ir_rec rec = {
		.op = IR_RMW, .width = (uint8_t)lift_width(x, v), .kind = (uint8_t)kind, .a = addr, .b = v, .c = IR_REF_NONE,
	};
	return ir_emit(x->f, &rec);
}

static void set_flags(struct lift_x86 *x, enum ir_op op, const struct lift_thunk *t)
{
	if (op == IR_ADD || op == IR_SUB)
		lift_flags_thunk(x, LIFT_F_ARITH, t);
	else
		lift_flags_logic(x, t->r);
}

static bool locked_arith(struct lift_x86 *x, enum ir_op op)
{
	static const uint8_t kinds[IR_OP_COUNT] = {
		[IR_ADD] = IR_RMW_ADD, [IR_SUB] = IR_RMW_SUB, [IR_AND] = IR_RMW_AND, [IR_OR] = IR_RMW_OR, [IR_XOR] = IR_RMW_XOR,
	};
	enum ir_width w = lift_op_width(x, 0);
	ir_ref addr;
	if (!lift_address(x, 0, &addr))
		return false;
	ir_ref b = lift_read(x, 1);
	ir_ref a = rmw(x, (enum ir_kind)kinds[op], addr, b);
	const struct lift_thunk t = {
		.kind = op == IR_ADD ? LIFT_T_ADD : LIFT_T_SUB, .width = (uint8_t)w, .a = a, .b = b, .c = IR_REF_NONE,
		.r = lift_op(x, op, w, a, b),
	};
	set_flags(x, op, &t);
	return true;
}

/* add adc sub sbb cmp and or xor test */
bool lift_do_arith(struct lift_x86 *x, unsigned arg)
{
	enum ir_op op = (enum ir_op)(arg & 0xff);
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 2))
		return false;
	if (is_locked(x))
		return !(arg & LIFT_CARRY) && locked_arith(x, op);
	bool is_same = !(arg & LIFT_CARRY) && lift_is_reg(x, 0) && lift_is_reg(x, 1) &&
		       x->ops[0].reg.value == x->ops[1].reg.value && (op == IR_XOR || op == IR_SUB);
	if (is_same && !(arg & LIFT_DROP)) {
		/* The idiom for zero: nothing of the register is read. */
		ir_ref zero = lift_k(x, w, 0);
		const struct lift_thunk t = {
			.kind = LIFT_T_SUB, .width = (uint8_t)w, .a = zero, .b = zero, .c = IR_REF_NONE, .r = zero,
		};
		lift_write(x, 0, zero);
		set_flags(x, op, &t);
		return true;
	}
	ir_ref a = lift_read(x, 0);
	bool is_twice = lift_is_reg(x, 0) && lift_is_reg(x, 1) && x->ops[0].reg.value == x->ops[1].reg.value;
	ir_ref b = is_twice ? a : lift_read(x, 1);
	ir_ref c = arg & LIFT_CARRY ? lift_flag(x, LIFT_CF) : IR_REF_NONE;
	ir_ref r = is_twice && (op == IR_AND || op == IR_OR) ? a : lift_op(x, op, w, a, b);
	if (c != IR_REF_NONE)
		r = lift_op(x, op, w, r, lift_zext(x, w, c));
	const struct lift_thunk t = {
		.kind = op == IR_ADD ? LIFT_T_ADD : LIFT_T_SUB, .width = (uint8_t)w, .a = a, .b = b, .c = c, .r = r,
	};
	if (!(arg & LIFT_DROP))
		lift_write(x, 0, r);
	set_flags(x, op, &t);
	return true;
}

/* inc dec: the carry stays. */
bool lift_do_incdec(struct lift_x86 *x, unsigned op)
{
	enum ir_width w = lift_op_width(x, 0);
	ir_ref addr, a, one = lift_k(x, w, 1);
	if (!lift_plain(x, 1))
		return false;
	if (is_locked(x)) {
		if (!lift_address(x, 0, &addr))
			return false;
		a = rmw(x, op == IR_ADD ? IR_RMW_ADD : IR_RMW_SUB, addr, one);
	} else {
		a = lift_read(x, 0);
	}
	ir_ref r = lift_op(x, (enum ir_op)op, w, a, one);
	if (!is_locked(x))
		lift_write(x, 0, r);
	const struct lift_thunk t = {
		.kind = op == IR_ADD ? LIFT_T_ADD : LIFT_T_SUB, .width = (uint8_t)w, .a = a, .b = one, .c = IR_REF_NONE, .r = r,
	};
	lift_flags_thunk(x, LIFT_F_ARITH & ~LIFT_F_CF, &t);
	return true;
}

bool lift_do_neg(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 1) || is_locked(x))
		return false;
	ir_ref zero = lift_k(x, w, 0), b = lift_read(x, 0), r = lift_op(x, IR_SUB, w, zero, b);
	const struct lift_thunk t = {.kind = LIFT_T_SUB, .width = (uint8_t)w, .a = zero, .b = b, .c = IR_REF_NONE, .r = r};
	lift_write(x, 0, r);
	lift_flags_thunk(x, LIFT_F_ARITH, &t);
	return true;
}

bool lift_do_not(struct lift_x86 *x, unsigned arg)
{
	if (!lift_plain(x, 1) || is_locked(x))
		return false;
	lift_write(x, 0, lift_not(x, lift_read(x, 0)));
	return true;
}

/* adcx adox: one flag in and out, the others stay. */
bool lift_do_adx(struct lift_x86 *x, unsigned flag)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 2))
		return false;
	ir_ref a = lift_read(x, 0), b = lift_read(x, 1), c = lift_flag(x, flag);
	ir_ref r = lift_op(x, IR_ADD, w, lift_op(x, IR_ADD, w, a, b), lift_zext(x, w, c));
	const struct ir_rec carry = {.op = IR_FLAG, .width = IR_W1, .kind = IR_FLAG_CARRY, .a = a, .b = b, .c = c};
	lift_flag_value(x, flag, lift_op_kind(x, &carry));
	lift_write(x, 0, r);
	return true;
}

/* --- multiplication ---------------------------------------------------------------------------------------- */
static ir_ref mulh(struct lift_x86 *x, enum ir_kind kind, enum ir_width w, ir_ref a, ir_ref b)
{
	const struct ir_rec rec = {.op = IR_MULH, .width = (uint8_t)w, .kind = (uint8_t)kind, .a = a, .b = b, .c = IR_REF_NONE};
	return lift_op_kind(x, &rec);
}

/* The registers of the product and the dividend for a width: low (or whole, for 8 bits), high. */
static const ZydisRegister low_reg[IR_W_COUNT] = {
	[IR_W8] = ZYDIS_REGISTER_AL, [IR_W16] = ZYDIS_REGISTER_AX, [IR_W32] = ZYDIS_REGISTER_EAX, [IR_W64] = ZYDIS_REGISTER_RAX,
};
static const ZydisRegister high_reg[IR_W_COUNT] = {
	[IR_W8] = ZYDIS_REGISTER_AH, [IR_W16] = ZYDIS_REGISTER_DX, [IR_W32] = ZYDIS_REGISTER_EDX, [IR_W64] = ZYDIS_REGISTER_RDX,
};

static void write_pair(struct lift_x86 *x, enum ir_width w, ir_ref low, ir_ref high)
{
	lift_write_gpr(x, low_reg[w], low);
	lift_write_gpr(x, high_reg[w], high);
}

static void mul_flags(struct lift_x86 *x, ir_ref overflow)
{
	lift_flags_undef(x, LIFT_F_ARITH);
	lift_flag_value(x, LIFT_CF, overflow);
	lift_flag_value(x, LIFT_OF, overflow);
}

/* mul, imul with one operand */
bool lift_do_mul(struct lift_x86 *x, unsigned kind)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 1))
		return false;
	ir_ref b = lift_read(x, 0), a = lift_read_gpr(x, low_reg[w]);
	ir_ref low = lift_op(x, IR_MUL, w, a, b), high = mulh(x, (enum ir_kind)kind, w, a, b);
	ir_ref fits;
	if (kind == IR_MULH_U)
		fits = lift_is_zero(x, high);
	else
		fits = lift_cmp(x, IR_CMP_EQ, high, lift_op(x, IR_ASHR, w, low, lift_k(x, IR_W8, ir_bits(w) - 1)));
	write_pair(x, w, low, high);
	mul_flags(x, lift_not(x, fits));
	return true;
}

bool lift_do_imul(struct lift_x86 *x, unsigned arg)
{
	unsigned cnt = x->in.operand_count_visible;
	enum ir_width w = lift_op_width(x, 0);
	if (cnt == 1)
		return lift_do_mul(x, IR_MULH_S);
	if (!lift_plain(x, cnt) || cnt < 2)
		return false;
	ir_ref a = lift_read(x, cnt - 2), b = lift_read(x, cnt - 1);
	const struct ir_rec ovf = {.op = IR_MULOVF, .width = IR_W1, .a = a, .b = b, .c = IR_REF_NONE};
	ir_ref overflow = lift_op_kind(x, &ovf);
	lift_write(x, 0, lift_op(x, IR_MUL, w, a, b));
	mul_flags(x, overflow);
	return true;
}

/* mulx: no flags; the high half wins when both registers are one. */
bool lift_do_mulx(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 3))
		return false;
	ir_ref b = lift_read(x, 2), a = lift_read_gpr(x, high_reg[w]);
	ir_ref low = lift_op(x, IR_MUL, w, a, b), high = mulh(x, IR_MULH_U, w, a, b);
	lift_write(x, 1, low);
	lift_write(x, 0, high);
	return true;
}

/* div idiv */
bool lift_do_div(struct lift_x86 *x, unsigned quot_kind)
{
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_plain(x, 1))
		return false;
	ir_ref d = lift_read(x, 0), hi = lift_read_gpr(x, high_reg[w]), lo = lift_read_gpr(x, low_reg[w]);
	struct ir_rec rec = {.op = IR_DIVW, .width = (uint8_t)w, .kind = (uint8_t)quot_kind, .a = hi, .b = lo, .c = d};
	ir_ref q = ir_emit(x->f, &rec);
	rec.kind = (uint8_t)(quot_kind == IR_DIVW_UQUOT ? IR_DIVW_UREM : IR_DIVW_SREM);
	ir_ref r = ir_emit(x->f, &rec);
	write_pair(x, w, q, r);
	lift_flags_undef(x, LIFT_F_ARITH);
	return true;
}

/* --- exchanges --------------------------------------------------------------------------------------------- */
bool lift_do_xadd(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = lift_op_width(x, 0);
	ir_ref addr, a, b;
	if (!lift_plain(x, 2))
		return false;
	if (is_locked(x)) {
		if (!lift_address(x, 0, &addr))
			return false;
		b = lift_read(x, 1);
		a = rmw(x, IR_RMW_ADD, addr, b);
	} else {
		a = lift_read(x, 0);
		b = lift_read(x, 1);
	}
	const struct lift_thunk t = {
		.kind = LIFT_T_ADD, .width = (uint8_t)w, .a = a, .b = b, .c = IR_REF_NONE, .r = lift_op(x, IR_ADD, w, a, b),
	};
	if (is_locked(x)) {
		lift_write(x, 1, a);
	} else if (lift_is_mem(x, 0)) {
		lift_write(x, 0, t.r);
		lift_write(x, 1, a);
	} else {
		lift_write(x, 1, a);
		lift_write(x, 0, t.r);
	}
	lift_flags_thunk(x, LIFT_F_ARITH, &t);
	return true;
}

/* With memory it is locked, whatever its prefixes. */
bool lift_do_xchg(struct lift_x86 *x, unsigned arg)
{
	if (!lift_plain(x, 2))
		return false;
	unsigned mem = lift_is_mem(x, 0) ? 0 : lift_is_mem(x, 1) ? 1 : 2;
	ir_ref addr;
	if (mem < 2) {
		ir_ref v = lift_read(x, 1 - mem);
		if (!lift_address(x, mem, &addr))
			return false;
		lift_write(x, 1 - mem, rmw(x, IR_RMW_XCHG, addr, v));
		return true;
	}
	ir_ref a = lift_read(x, 0), b = lift_read(x, 1);
	lift_write(x, 0, b);
	lift_write(x, 1, a);
	return true;
}

/* cmpxchg: the accumulator gets the old value when that is another. Without lock it is the same to one thread. */
bool lift_do_cmpxchg(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = lift_op_width(x, 0);
	ir_ref addr;
	if (!lift_plain(x, 2))
		return false;
	ir_ref acc = lift_read_gpr(x, low_reg[w]), v = lift_read(x, 1), old;
	if (lift_is_mem(x, 0)) {
		if (!lift_address(x, 0, &addr))
			return false;
		const struct ir_rec cas = {.op = IR_CAS, .width = (uint8_t)w, .a = addr, .b = acc, .c = v};
		old = ir_emit(x->f, &cas);
	} else {
		old = lift_read(x, 0);
	}
	ir_ref is_equal = lift_cmp(x, IR_CMP_EQ, acc, old);
	/* Whole registers are chosen: one that is not written keeps its upper half. */
	ir_ref full = lift_get(x, LIFT_AX);
	if (!lift_is_mem(x, 0)) {
		unsigned num, off;
		enum ir_width rw;
		lift_gpr(x->ops[0].reg.value, &num, &rw, &off);
		ir_ref was = lift_get(x, lift_gpr_loc(num));
		lift_write(x, 0, v);
		ir_ref is = lift_get(x, lift_gpr_loc(num));
		lift_put(x, lift_gpr_loc(num), lift_sel(x, is_equal, is, was));
		if (num == 0)
			full = lift_get(x, LIFT_AX);
	}
	lift_write_gpr(x, low_reg[w], old);
	ir_ref changed = lift_get(x, LIFT_AX);
	lift_put(x, LIFT_AX, lift_sel(x, is_equal, full, changed));
	const struct lift_thunk t = {
		.kind = LIFT_T_SUB, .width = (uint8_t)w, .a = acc, .b = old, .c = IR_REF_NONE, .r = lift_op(x, IR_SUB, w, acc, old),
	};
	lift_flags_thunk(x, LIFT_F_ARITH, &t);
	return true;
}

/* --- sign of the accumulator, flags ------------------------------------------------------------------------- */
/* cbw cwde cdqe: from half the width into the accumulator; cwd cdq cqo (arg: the width): its sign into the other. */
bool lift_do_cwd(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = (enum ir_width)(arg & 0xff);
	if (arg >> 8) {
		ir_ref a = lift_read_gpr(x, low_reg[w]);
		lift_write_gpr(x, high_reg[w], lift_op(x, IR_ASHR, w, a, lift_k(x, IR_W8, ir_bits(w) - 1)));
		return true;
	}
	enum ir_width half = (enum ir_width)(w - 1);
	lift_write_gpr(x, low_reg[w], lift_sext(x, w, lift_read_gpr(x, low_reg[half])));
	return true;
}

/* clc stc cld std: arg is the flag's location and, in bit 8, its value; bit 9: cmc. */
bool lift_do_flagop(struct lift_x86 *x, unsigned arg)
{
	unsigned loc = arg & 0xff;
	lift_flag_value(x, loc, arg & 1 << 9 ? lift_not(x, lift_flag(x, loc)) : lift_k(x, IR_W1, arg >> 8 & 1));
	return true;
}

static const struct {
	unsigned loc, bit;
} in_ah[] = {{LIFT_CF, 0}, {LIFT_PF, 2}, {LIFT_AF, 4}, {LIFT_ZF, 6}, {LIFT_SF, 7}};

bool lift_do_sahf(struct lift_x86 *x, unsigned arg)
{
	ir_ref ah = lift_read_gpr(x, ZYDIS_REGISTER_AH);
	for (unsigned i = 0; i < sizeof(in_ah) / sizeof(*in_ah); i++)
		lift_flag_value(x, in_ah[i].loc, lift_bit(x, ah, in_ah[i].bit));
	return true;
}

bool lift_do_lahf(struct lift_x86 *x, unsigned arg)
{
	ir_ref v = lift_k(x, IR_W8, 2);
	for (unsigned i = 0; i < sizeof(in_ah) / sizeof(*in_ah); i++)
		v = lift_insert(x, v, lift_flag(x, in_ah[i].loc), in_ah[i].bit);
	lift_write_gpr(x, ZYDIS_REGISTER_AH, v);
	return true;
}
