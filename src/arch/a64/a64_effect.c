/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/a64/a64_int.h"

/* effect() of everything that is no load or store. */

static void set_dst(struct arch_effect *r, uint32_t rd)
{
	r->dst = (uint8_t)rd;
	r->writes |= (uint64_t)1 << rd;
}

static void set_const(struct arch_effect *r, uint32_t rd, uint64_t v, unsigned width)
{
	r->op = ARCH_OP_CONST;
	r->imm = (int64_t)(width == 4 ? (uint32_t)v : v);
	r->width = (uint8_t)width;
	set_dst(r, rd);
}

/* The 64-bit pattern of a logical immediate (DecodeBitMasks); false when the fields are reserved. */
static bool bit_mask(unsigned n, unsigned imms, unsigned immr, uint64_t *ret)
{
	unsigned combined = n << 6 | (~imms & 63);
	if (combined < 2)
		return false;
	unsigned log_len = 31 - (unsigned)__builtin_clz(combined);
	unsigned esize = 1u << log_len;
	unsigned levels = esize - 1;
	unsigned s = imms & levels;
	unsigned rot = immr & levels;
	if (s == levels)
		return false;
	uint64_t ones = ((uint64_t)1 << (s + 1)) - 1;
	uint64_t mask = esize == 64 ? UINT64_MAX : ((uint64_t)1 << esize) - 1;
	uint64_t elem = rot ? ((ones >> rot) | (ones << (esize - rot))) & mask : ones;
	for (unsigned i = esize; i < 64; i *= 2)
		elem |= elem << i;
	*ret = elem;
	return true;
}

/* What is left of an add or sub once its operands are known. `is_sp`: register 31 as destination is the
 * stack pointer. */
static void set_add_sub(uint32_t w, bool is_sp, struct arch_effect *r)
{
	bool is_sub = a64_bits(w, 30, 1);
	bool sets_flags = a64_bits(w, 29, 1);
	uint32_t rd = a64_bits(w, 0, 5);
	r->width = w >> 31 ? 8 : 4;
	if (rd == 31 && (sets_flags || !is_sp)) {
		r->op = is_sub && sets_flags ? ARCH_OP_CMP : ARCH_OP_OTHER;
		return;
	}
	r->op = is_sub ? ARCH_OP_SUB : ARCH_OP_ADD;
	set_dst(r, rd);
}

static void add_sub_imm(uint32_t w, struct arch_effect *r)
{
	uint64_t imm = (uint64_t)a64_bits(w, 10, 12) << (a64_bits(w, 22, 1) ? 12 : 0);
	uint32_t rn = a64_bits(w, 5, 5);
	r->src1 = (uint8_t)rn;
	r->imm = (int64_t)imm;
	set_add_sub(w, true, r);
	if (r->dst == A64_SP) {
		r->sp_is_known = rn == A64_SP;
		if (r->sp_is_known)
			r->sp_delta = (int32_t)(r->op == ARCH_OP_SUB ? -(int64_t)imm : (int64_t)imm);
	}
	if (imm == 0 && r->dst != ARCH_REG_NONE)
		r->op = ARCH_OP_MOVE;
}

static void add_sub_shifted(uint32_t w, struct arch_effect *r)
{
	unsigned amount = a64_bits(w, 10, 6);
	uint32_t rn = a64_bits(w, 5, 5);
	uint32_t rm = a64_bits(w, 16, 5);
	set_add_sub(w, false, r);
	/* The zero register as first operand makes it a neg. */
	if (rn == 31 || (amount != 0 && (a64_bits(w, 22, 2) != 0 || amount > 7))) {
		r->op = ARCH_OP_OTHER;
		r->dst = ARCH_REG_NONE;
		r->width = 0;
		return;
	}
	r->src1 = (uint8_t)rn;
	if (rm == 31)
		return;
	r->src2 = (uint8_t)rm;
	if (amount != 0) {
		r->scale = (uint8_t)(1u << amount);
		r->ext_width = r->width;
	}
}

static void add_sub_extended(uint32_t w, struct arch_effect *r)
{
	unsigned option = a64_bits(w, 13, 3);
	uint32_t rm = a64_bits(w, 16, 5);
	set_add_sub(w, true, r);
	r->src1 = (uint8_t)a64_bits(w, 5, 5);
	if (rm != 31) {
		r->src2 = (uint8_t)rm;
		r->ext_width = (uint8_t)(1 << (option & 3));
		r->is_signed = option >= 4;
		r->scale = (uint8_t)(1 << a64_bits(w, 10, 3));
	}
	if (r->dst == A64_SP)
		r->sp_is_known = false;
}

static void logical_imm(uint32_t w, struct arch_effect *r)
{
	unsigned opc = a64_bits(w, 29, 2);
	uint32_t rn = a64_bits(w, 5, 5);
	uint32_t rd = a64_bits(w, 0, 5);
	unsigned width = w >> 31 ? 8 : 4;
	uint64_t mask;
	bool is_test = opc == 3 && rd == 31;
	if (!is_test) {
		r->writes |= (uint64_t)1 << rd;
		r->sp_is_known = rd != A64_SP;
	}
	if (!bit_mask(a64_bits(w, 22, 1), a64_bits(w, 10, 6), a64_bits(w, 16, 6), &mask))
		return;
	if (width == 4)
		mask = (uint32_t)mask;
	if (opc == 1 && rn == 31) {
		set_const(r, rd, mask, width);
		return;
	}
	if ((opc != 0 && opc != 3) || rn == 31)
		return;
	r->op = is_test ? ARCH_OP_TEST : ARCH_OP_AND;
	r->src1 = (uint8_t)rn;
	r->imm = (int64_t)mask;
	r->width = (uint8_t)width;
	if (!is_test)
		r->dst = (uint8_t)rd;
}

static void logical_shifted(uint32_t w, struct arch_effect *r)
{
	unsigned opc = a64_bits(w, 29, 2);
	uint32_t rd = a64_bits(w, 0, 5);
	uint32_t rn = a64_bits(w, 5, 5);
	uint32_t rm = a64_bits(w, 16, 5);
	unsigned width = w >> 31 ? 8 : 4;
	bool is_plain = a64_bits(w, 10, 6) == 0 && a64_bits(w, 21, 1) == 0;
	if (rd != 31)
		r->writes |= (uint64_t)1 << rd;
	if (!is_plain || (rd == 31 && opc != 3))
		return;
	if ((opc == 1 && rn == 31 && rm == 31) || (opc == 2 && rn == rm)) {
		set_const(r, rd, 0, width);
	} else if (opc == 1 && rn == 31) {
		r->op = ARCH_OP_MOVE;
		r->src1 = (uint8_t)rm;
		r->dst = (uint8_t)rd;
		r->width = (uint8_t)width;
	} else if ((opc == 0 || opc == 3) && rn != 31 && rm != 31) {
		r->op = rd == 31 ? ARCH_OP_TEST : ARCH_OP_AND;
		r->src1 = (uint8_t)rn;
		r->src2 = (uint8_t)rm;
		r->width = (uint8_t)width;
		if (rd != 31)
			r->dst = (uint8_t)rd;
	}
}

static void move_wide(uint32_t w, struct arch_effect *r)
{
	unsigned opc = a64_bits(w, 29, 2);
	uint32_t rd = a64_bits(w, 0, 5);
	unsigned shift = 16 * a64_bits(w, 21, 2);
	uint64_t v = (uint64_t)a64_bits(w, 5, 16) << shift;
	unsigned width = w >> 31 ? 8 : 4;
	if (rd == 31)
		return;
	if (opc == 0) {
		set_const(r, rd, ~v, width);
	} else if (opc == 2) {
		set_const(r, rd, v, width);
	} else if (opc == 3) {
		uint64_t kept = ~((uint64_t)0xffff << shift);
		r->op = ARCH_OP_INSERT;
		r->src1 = (uint8_t)rd;
		r->imm = (int64_t)v;
		r->cmp_imm = (int64_t)(width == 4 ? (uint32_t)kept : kept);
		r->width = (uint8_t)width;
		set_dst(r, rd);
	}
}

/* The aliases of sbfm and ubfm that move or shift: lsl, lsr, uxtb, uxth, sxtb, sxth, sxtw, ubfx. */
static void bitfield(uint32_t w, struct arch_effect *r)
{
	unsigned opc = a64_bits(w, 29, 2);
	uint32_t rd = a64_bits(w, 0, 5);
	uint32_t rn = a64_bits(w, 5, 5);
	unsigned immr = a64_bits(w, 16, 6);
	unsigned imms = a64_bits(w, 10, 6);
	unsigned width = w >> 31 ? 8 : 4;
	unsigned top = width * 8 - 1;
	if (rd == 31)
		return;
	r->writes |= (uint64_t)1 << rd;
	if (rn == 31 || opc == 1 || opc == 3)
		return;
	if (immr == 0 && (imms == 7 || imms == 15 || (imms == 31 && width == 8))) {
		r->op = ARCH_OP_MOVE;
		r->width = (uint8_t)((imms + 1) / 8);
		r->is_signed = opc == 0;
		if (r->is_signed)
			r->ext_width = (uint8_t)width;
	} else if (opc == 2 && imms == top) {
		r->op = ARCH_OP_SHR;
		r->imm = immr;
		r->width = (uint8_t)width;
	} else if (opc == 2 && imms + 1 == immr) {
		r->op = ARCH_OP_SHL;
		r->imm = top - imms;
		r->width = (uint8_t)width;
	} else if (opc == 2 && immr <= imms && imms <= top) {
		r->op = ARCH_OP_SHR;
		r->imm = immr;
		r->cmp_imm = (int64_t)(((uint64_t)1 << (imms - immr + 1)) - 1);
		r->width = (uint8_t)width;
	} else {
		return;
	}
	r->src1 = (uint8_t)rn;
	r->dst = (uint8_t)rd;
}

static void dp_imm(uint32_t w, uint64_t va, struct arch_effect *r)
{
	uint32_t rd = a64_bits(w, 0, 5);
	switch (a64_bits(w, 23, 3)) {
	case 0:
	case 1:
		if (rd != 31)
			set_const(r, rd, a64_adr(w, va), 8);
		break;
	case 2:
		add_sub_imm(w, r);
		break;
	case 3:
		/* addg, subg: a tag goes into the pointer. */
		r->writes |= (uint64_t)1 << rd;
		r->sp_is_known = rd != A64_SP;
		break;
	case 4:
		logical_imm(w, r);
		break;
	case 5:
		move_wide(w, r);
		break;
	case 6:
		bitfield(w, r);
		break;
	default:
		if (rd != 31)
			r->writes |= (uint64_t)1 << rd; /* extr */
		break;
	}
}

static void dp_reg(uint32_t w, struct arch_effect *r)
{
	bool is_flags_only = (w & 0x1fe00000) == 0x1a400000 /* ccmp */ ||
			     (w & 0x5fe0741f) == 0x1a00040d /* setf8, rmif */;
	if ((w & 0x1f000000) == 0x0a000000)
		logical_shifted(w, r);
	else if ((w & 0x1f200000) == 0x0b000000)
		add_sub_shifted(w, r);
	else if ((w & 0x1fe00000) == 0x0b200000)
		add_sub_extended(w, r);
	else if (!is_flags_only && a64_bits(w, 0, 5) != 31)
		r->writes |= (uint64_t)1 << a64_bits(w, 0, 5);
}

/* Moves and conversions from vector to general registers. */
static void vector(uint32_t w, struct arch_effect *r)
{
	bool writes = false;
	if ((w & 0x5f20fc00) == 0x1e200000) {
		unsigned opcode = a64_bits(w, 16, 3);
		writes = opcode != 2 && opcode != 3 && opcode != 7;
	} else if ((w & 0x5f200000) == 0x1e000000) {
		writes = a64_bits(w, 16, 3) < 2;
	} else if ((w & 0xbfe0fc00) == 0x0e003c00 || (w & 0xbfe0fc00) == 0x0e002c00) {
		writes = true;
	}
	if (writes && a64_bits(w, 0, 5) != 31)
		r->writes |= (uint64_t)1 << a64_bits(w, 0, 5);
}

static void branch(uint32_t w, struct arch_effect *r)
{
	static const uint8_t conds[16] = {
		ARCH_COND_EQ,    ARCH_COND_NE,    ARCH_COND_UGE,   ARCH_COND_ULT,
		ARCH_COND_OTHER, ARCH_COND_OTHER, ARCH_COND_OTHER, ARCH_COND_OTHER,
		ARCH_COND_UGT,   ARCH_COND_ULE,   ARCH_COND_SGE,   ARCH_COND_SLT,
		ARCH_COND_SGT,   ARCH_COND_SLE,   ARCH_COND_NONE,  ARCH_COND_NONE};
	uint32_t rn = a64_bits(w, 5, 5);
	if ((w & 0xff000000) == 0x54000000) {
		r->cond = conds[a64_bits(w, 0, 4)];
	} else if ((w & 0x7e000000) == 0x34000000) {
		r->cond = a64_bits(w, 24, 1) ? ARCH_COND_NE : ARCH_COND_EQ;
		if (a64_bits(w, 0, 5) != 31) {
			r->op = ARCH_OP_CMP;
			r->src1 = (uint8_t)a64_bits(w, 0, 5);
			r->width = w >> 31 ? 8 : 4;
		}
	} else if ((w & 0x7e000000) == 0x36000000) {
		r->cond = ARCH_COND_OTHER;
	} else if ((w & 0xfe000000) == 0xd6000000) {
		if ((a64_bits(w, 21, 4) & 7) < 2 && rn != 31) {
			r->op = ARCH_OP_MOVE;
			r->src1 = (uint8_t)rn;
			r->width = 8;
		}
	} else if ((w & 0xfff00000) == 0xd5300000 || (w & 0xfff80000) == 0xd5280000) {
		if (a64_bits(w, 0, 5) != 31)
			r->writes |= (uint64_t)1 << a64_bits(w, 0, 5); /* mrs, sysl */
	} else if ((w & 0xfffff01f) == 0xd503201f) {
		/* Signing and checking hints change the link register or x17. */
		unsigned hint = a64_bits(w, 5, 7);
		if (hint == 7 || (hint >= 24 && hint < 32))
			r->writes |= (uint64_t)1 << A64_LR;
		else if (hint == 8 || hint == 10 || hint == 12 || hint == 14)
			r->writes |= (uint64_t)1 << 17;
	}
}

void a64_effect(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_effect *ret)
{
	*ret = (struct arch_effect){
		.sp_is_known = true, .scale = 1, .dst = ARCH_REG_NONE, .src1 = ARCH_REG_NONE,
		.src2 = ARCH_REG_NONE, .base = ARCH_REG_NONE, .index = ARCH_REG_NONE};
	if (len < A64_LEN)
		return;
	uint32_t w = a64_word(p);
	switch (a64_bits(w, 25, 4)) {
	case 2:
		/* SVE: counts and lengths go to the register in the low bits, which may be sp. */
		ret->writes = (uint64_t)1 << a64_bits(w, 0, 5);
		ret->sp_is_known = a64_bits(w, 0, 5) != A64_SP;
		break;
	case 8:
	case 9:
		dp_imm(w, va, ret);
		break;
	case 10:
	case 11:
		branch(w, ret);
		break;
	case 5:
	case 13:
		dp_reg(w, ret);
		break;
	case 7:
	case 15:
		vector(w, ret);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		a64_mem_effect(w, va, ret);
		break;
	default:
		break;
	}
}
