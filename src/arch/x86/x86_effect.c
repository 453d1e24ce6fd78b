/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_int.h"

/*
 * effect(): what an instruction does to general registers. The operand lists of Zydis, hidden operands
 * included, say what is written; a switch over the mnemonic says what the value is where jump tables,
 * constants and stack tracking need it.
 */
struct eff {
	const struct arch *a;
	uint64_t va;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct arch_effect *ret;
};

#define SP_BIT ((uint64_t)1 << 4)

/* A general register operand with nothing odd about it: no ah, no segment or vector register. */
static bool is_gpr(const struct eff *e, unsigned i, uint8_t *ret_num)
{
	bool is_high;
	if (i >= e->in.operand_count_visible || e->ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	*ret_num = x86_gpr(e->ops[i].reg.value, NULL, &is_high);
	return *ret_num != ARCH_REG_NONE && !is_high;
}

static bool is_imm(const struct eff *e, unsigned i)
{
	return i < e->in.operand_count_visible && e->ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static bool is_mem(const struct eff *e, unsigned i)
{
	return i < e->in.operand_count_visible && e->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static unsigned width_of(const struct eff *e, unsigned i)
{
	return e->ops[i].size / 8u;
}

/* The immediate as the operation sees it: sign-extended where the encoding is, cut to `width` bytes. */
static int64_t imm_of(const struct eff *e, unsigned i, unsigned width)
{
	uint64_t v = e->ops[i].imm.value.u;
	if (width < 8)
		v &= ((uint64_t)1 << width * 8) - 1;
	return (int64_t)v;
}

/* Fills base, index, scale and imm; false for addresses that cannot be told (segments, vectors). */
static bool set_mem(struct eff *e, unsigned i)
{
	const ZydisDecodedOperandMem *m = &e->ops[i].mem;
	struct arch_effect *r = e->ret;
	if (m->type != ZYDIS_MEMOP_TYPE_MEM && m->type != ZYDIS_MEMOP_TYPE_AGEN)
		return false;
	if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS)
		return false;
	if (e->in.address_width != e->a->bits)
		return false;
	uint64_t disp = (uint64_t)m->disp.value;
	r->base = ARCH_REG_NONE;
	r->index = ARCH_REG_NONE;
	r->scale = 1;
	if (m->base == ZYDIS_REGISTER_RIP)
		disp += e->va + e->in.length;
	else
		r->base = x86_gpr(m->base, NULL, NULL);
	if (m->index != ZYDIS_REGISTER_NONE) {
		r->index = x86_gpr(m->index, NULL, NULL);
		r->scale = m->scale;
	}
	if (r->base == ARCH_REG_NONE && r->index == ARCH_REG_NONE)
		disp = x86_va(e->a, disp);
	r->imm = (int64_t)disp;
	return true;
}

static void set_const(struct eff *e, uint8_t dst, uint64_t v, unsigned width)
{
	e->ret->op = ARCH_OP_CONST;
	e->ret->dst = dst;
	e->ret->imm = (int64_t)(width == 4 ? (uint32_t)v : v);
	e->ret->width = (uint8_t)width;
}

static void set_store(struct eff *e)
{
	if (!set_mem(e, 0))
		return;
	e->ret->op = ARCH_OP_STORE;
	e->ret->width = (uint8_t)width_of(e, 0);
}

/* mov, movzx, movsx, movsxd. */
static void eff_mov(struct eff *e, bool is_signed)
{
	struct arch_effect *r = e->ret;
	uint8_t dst;
	uint8_t src;
	if (is_mem(e, 0)) {
		set_store(e);
		if (r->op == ARCH_OP_STORE && is_gpr(e, 1, &src))
			r->src1 = src;
		return;
	}
	/* The upper part of the register survives a write of 8 or 16 bits. */
	if (!is_gpr(e, 0, &dst) || width_of(e, 0) < 4)
		return;
	if (is_imm(e, 1)) {
		set_const(e, dst, e->ops[1].imm.value.u, width_of(e, 0));
		return;
	}
	if (is_gpr(e, 1, &src)) {
		r->op = ARCH_OP_MOVE;
		r->src1 = src;
	} else if (is_mem(e, 1) && set_mem(e, 1)) {
		r->op = ARCH_OP_LOAD;
	} else {
		return;
	}
	r->dst = dst;
	r->width = (uint8_t)width_of(e, 1);
	r->is_signed = is_signed;
	if (is_signed)
		r->ext_width = (uint8_t)width_of(e, 0);
}

/* cwde and cdqe. */
static void eff_extend_acc(struct eff *e, uint8_t width)
{
	*e->ret = (struct arch_effect){
		.op = ARCH_OP_MOVE, .is_signed = true, .width = width, .ext_width = (uint8_t)(width * 2),
		.dst = 0, .src1 = 0, .src2 = ARCH_REG_NONE, .base = ARCH_REG_NONE,
		.index = ARCH_REG_NONE, .scale = 1, .sp_is_known = true, .writes = 1};
}

static void eff_lea(struct eff *e)
{
	struct arch_effect *r = e->ret;
	uint8_t dst;
	unsigned width = width_of(e, 0);
	if (!is_gpr(e, 0, &dst) || width < 4 || !set_mem(e, 1))
		return;
	if (r->base == ARCH_REG_NONE && r->index == ARCH_REG_NONE) {
		set_const(e, dst, (uint64_t)r->imm, width);
		return;
	}
	r->op = ARCH_OP_LEA;
	r->dst = dst;
	r->width = (uint8_t)width;
}

/* add, sub, and, shl, shr, inc, dec with a register destination; memory destinations are stores. */
static void eff_alu(struct eff *e, enum arch_op op, int64_t implied)
{
	struct arch_effect *r = e->ret;
	uint8_t dst;
	uint8_t src;
	if (is_mem(e, 0)) {
		set_store(e);
		return;
	}
	unsigned width = width_of(e, 0);
	if (!is_gpr(e, 0, &dst) || width < 4)
		return;
	if (e->in.operand_count_visible == 1) {
		r->imm = implied;
	} else if (is_imm(e, 1)) {
		r->imm = width == 4 ? (int64_t)(uint32_t)e->ops[1].imm.value.u : e->ops[1].imm.value.s;
	} else if (is_gpr(e, 1, &src)) {
		/* Shifts by cl take the count from one byte. */
		if (op == ARCH_OP_SHL || op == ARCH_OP_SHR)
			return;
		if (op == ARCH_OP_SUB && src == dst) {
			set_const(e, dst, 0, width);
			return;
		}
		r->src2 = src;
	} else if (op == ARCH_OP_ADD && is_mem(e, 1) && set_mem(e, 1)) {
		r->has_mem = true;
	} else {
		return;
	}
	r->op = (uint8_t)op;
	r->dst = dst;
	r->src1 = dst;
	r->width = (uint8_t)width;
}

/* xor r,r gives 0; or r,-1 gives all ones. */
static void eff_xor_or(struct eff *e)
{
	uint8_t dst;
	uint8_t src;
	if (is_mem(e, 0)) {
		set_store(e);
		return;
	}
	unsigned width = width_of(e, 0);
	if (!is_gpr(e, 0, &dst) || width < 4)
		return;
	if (e->in.mnemonic == ZYDIS_MNEMONIC_XOR && is_gpr(e, 1, &src) && src == dst)
		set_const(e, dst, 0, width);
	if (e->in.mnemonic == ZYDIS_MNEMONIC_OR && is_imm(e, 1) && e->ops[1].imm.value.s == -1)
		set_const(e, dst, UINT64_MAX, width);
}

static void eff_cmp(struct eff *e, enum arch_op op)
{
	struct arch_effect *r = e->ret;
	uint8_t src;
	unsigned width = width_of(e, 0);
	if (is_mem(e, 0)) {
		if (!is_imm(e, 1) || !set_mem(e, 0))
			return;
		r->has_mem = true;
		r->cmp_imm = imm_of(e, 1, width);
	} else if (is_gpr(e, 0, &src)) {
		uint8_t src2;
		if (is_imm(e, 1))
			r->imm = imm_of(e, 1, width);
		else if (is_gpr(e, 1, &src2))
			r->src2 = src2;
		else
			return;
		r->src1 = src;
	} else {
		return;
	}
	r->op = (uint8_t)op;
	r->width = (uint8_t)width;
}

/* The operand of an indirect jump or call. */
static void eff_indirect(struct eff *e)
{
	uint8_t src;
	if (e->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return;
	if (is_gpr(e, 0, &src)) {
		e->ret->op = ARCH_OP_MOVE;
		e->ret->src1 = src;
		e->ret->width = (uint8_t)width_of(e, 0);
	} else if (is_mem(e, 0) && set_mem(e, 0)) {
		e->ret->op = ARCH_OP_LOAD;
		e->ret->width = (uint8_t)width_of(e, 0);
	}
}

static enum arch_cond cond_of(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_JZ:
		return ARCH_COND_EQ;
	case ZYDIS_MNEMONIC_JNZ:
		return ARCH_COND_NE;
	case ZYDIS_MNEMONIC_JB:
		return ARCH_COND_ULT;
	case ZYDIS_MNEMONIC_JBE:
		return ARCH_COND_ULE;
	case ZYDIS_MNEMONIC_JNBE:
		return ARCH_COND_UGT;
	case ZYDIS_MNEMONIC_JNB:
		return ARCH_COND_UGE;
	case ZYDIS_MNEMONIC_JL:
		return ARCH_COND_SLT;
	case ZYDIS_MNEMONIC_JLE:
		return ARCH_COND_SLE;
	case ZYDIS_MNEMONIC_JNLE:
		return ARCH_COND_SGT;
	case ZYDIS_MNEMONIC_JNL:
		return ARCH_COND_SGE;
	default:
		return ARCH_COND_OTHER;
	}
}

/* Value and operands by mnemonic; what is not here stays ARCH_OP_OTHER, or a store. */
static void set_op(struct eff *e)
{
	switch (e->in.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		eff_mov(e, false);
		break;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		eff_mov(e, true);
		break;
	case ZYDIS_MNEMONIC_CWDE:
		eff_extend_acc(e, 2);
		break;
	case ZYDIS_MNEMONIC_CDQE:
		eff_extend_acc(e, 4);
		break;
	case ZYDIS_MNEMONIC_LEA:
		eff_lea(e);
		break;
	case ZYDIS_MNEMONIC_ADD:
		eff_alu(e, ARCH_OP_ADD, 0);
		break;
	case ZYDIS_MNEMONIC_INC:
		eff_alu(e, ARCH_OP_ADD, 1);
		break;
	case ZYDIS_MNEMONIC_SUB:
		eff_alu(e, ARCH_OP_SUB, 0);
		break;
	case ZYDIS_MNEMONIC_DEC:
		eff_alu(e, ARCH_OP_SUB, 1);
		break;
	case ZYDIS_MNEMONIC_AND:
		eff_alu(e, ARCH_OP_AND, 0);
		break;
	case ZYDIS_MNEMONIC_SHL:
		eff_alu(e, ARCH_OP_SHL, 0);
		break;
	case ZYDIS_MNEMONIC_SHR:
		eff_alu(e, ARCH_OP_SHR, 0);
		break;
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_OR:
		eff_xor_or(e);
		break;
	case ZYDIS_MNEMONIC_CMP:
		eff_cmp(e, ARCH_OP_CMP);
		break;
	case ZYDIS_MNEMONIC_TEST:
		eff_cmp(e, ARCH_OP_TEST);
		break;
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		eff_indirect(e);
		break;
	default:
		if (e->in.meta.category == ZYDIS_CATEGORY_COND_BR || e->in.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
			e->ret->cond = (uint8_t)cond_of(e->in.mnemonic);
		else if (is_mem(e, 0) && (e->ops[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			set_store(e);
		break;
	}
}

/* Bytes a push or pop moves, from the hidden stack operand. */
static int32_t stack_bytes(const struct eff *e)
{
	for (unsigned i = 0; i < e->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &e->ops[i];
		if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    x86_gpr(op->mem.base, NULL, NULL) == e->a->sp_reg)
			return op->size / 8;
	}
	return 0;
}

/* Immediate arithmetic on the stack pointer; false when the new value is not a known distance away. */
static bool explicit_sp(const struct eff *e, int32_t *ret_delta)
{
	const struct arch_effect *r = e->ret;
	if (r->dst != e->a->sp_reg || r->width * 8u != e->a->bits)
		return false;
	int64_t v = e->a->bits == 32 ? (int32_t)r->imm : r->imm;
	if (v < INT32_MIN || v > INT32_MAX)
		return false;
	bool is_add = r->op == ARCH_OP_ADD && r->src2 == ARCH_REG_NONE && !r->has_mem;
	bool is_sub = r->op == ARCH_OP_SUB && r->src2 == ARCH_REG_NONE && v != INT32_MIN;
	bool is_lea = r->op == ARCH_OP_LEA && r->base == e->a->sp_reg && r->index == ARCH_REG_NONE;
	if (!is_add && !is_sub && !is_lea)
		return false;
	*ret_delta = (int32_t)(is_sub ? -v : v);
	return true;
}

/* True when the change of the stack pointer is known. */
static bool sp_delta_of(struct eff *e, int32_t *ret_delta)
{
	switch (e->in.meta.category) {
	case ZYDIS_CATEGORY_PUSH:
		if (e->in.mnemonic == ZYDIS_MNEMONIC_ENTER)
			break;
		*ret_delta = -stack_bytes(e);
		return *ret_delta != 0;
	case ZYDIS_CATEGORY_POP: {
		uint8_t dst;
		if (e->in.mnemonic == ZYDIS_MNEMONIC_LEAVE || (is_gpr(e, 0, &dst) && dst == e->a->sp_reg))
			return false;
		*ret_delta = stack_bytes(e);
		return *ret_delta != 0;
	}
	case ZYDIS_CATEGORY_CALL:
		if (e->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || e->in.operand_width == 16)
			return false;
		/* The callee takes the return address off again, unless this is a call of the next
		 * instruction, which leaves it there. */
		*ret_delta = e->in.raw.imm[0].is_relative && e->in.raw.imm[0].value.u == 0
				     ? -(int32_t)(e->a->bits / 8)
				     : 0;
		return true;
	case ZYDIS_CATEGORY_RET:
		if (e->in.mnemonic != ZYDIS_MNEMONIC_RET ||
		    e->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return false;
		*ret_delta = (int32_t)(e->a->bits / 8);
		if (is_imm(e, 0))
			*ret_delta += (int32_t)(uint16_t)e->ops[0].imm.value.u;
		return true;
	default:
		break;
	}
	return explicit_sp(e, ret_delta);
}

static void set_writes(struct eff *e)
{
	uint64_t writes = 0;
	for (unsigned i = 0; i < e->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &e->ops[i];
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		uint8_t r = x86_gpr(op->reg.value, NULL, NULL);
		if (r != ARCH_REG_NONE)
			writes |= (uint64_t)1 << r;
	}
	if (e->in.mnemonic == ZYDIS_MNEMONIC_POPA || e->in.mnemonic == ZYDIS_MNEMONIC_POPAD)
		writes |= 0xff;
	/* Zydis names r8 and up for some vector encodings that 32-bit mode ignores the bit of. */
	e->ret->writes = e->a->bits == 64 ? writes : writes & 0xff;
}

static void set_sp(struct eff *e)
{
	int32_t delta = 0;
	bool is_call = e->in.meta.category == ZYDIS_CATEGORY_CALL;
	e->ret->sp_is_known = true;
	if (!(e->ret->writes & SP_BIT) && !is_call)
		return;
	if (!sp_delta_of(e, &delta)) {
		e->ret->sp_is_known = false;
		return;
	}
	e->ret->sp_delta = delta;
	if (is_call && delta == 0)
		e->ret->writes &= ~SP_BIT;
}

void x86_effect(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		struct arch_effect *ret)
{
	*ret = (struct arch_effect){
		.sp_is_known = true, .scale = 1, .dst = ARCH_REG_NONE, .src1 = ARCH_REG_NONE,
		.src2 = ARCH_REG_NONE, .base = ARCH_REG_NONE, .index = ARCH_REG_NONE};
	struct eff e;
	ZydisDecoderContext ctx;
	const ZydisDecoder *dec = x86_decoder(a);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(dec, &ctx, p, len, &e.in)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(dec, &ctx, &e.in, e.ops, e.in.operand_count)))
		return;
	e.a = a;
	e.va = va;
	e.ret = ret;
	set_op(&e);
	set_writes(&e);
	set_sp(&e);
}
