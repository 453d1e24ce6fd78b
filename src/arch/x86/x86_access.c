/* SPDX-License-Identifier: Apache-2.0 */
/* accesses(): the memory operands of Zydis, hidden ones among them, with registers put in (Intel SDM volume 2, "Instruction Format"). */
#include "arch/x86/x86_int.h"

/* What an XSAVE area may have: the standard form with AVX-512 and PKRU, bytes. More than is touched is named rather than less. */
#define XSAVE_LEN 2816

static bool reg_value(const struct arch_machine *m, ZydisRegister r, uint64_t next_va, uint64_t *ret)
{
	uint8_t width;
	bool is_high;
	*ret = 0;
	if (r == ZYDIS_REGISTER_NONE)
		return true;
	if (r == ZYDIS_REGISTER_RIP || r == ZYDIS_REGISTER_EIP) {
		*ret = next_va;
		return true;
	}
	uint8_t n = x86_gpr(r, &width, &is_high);
	if (n == ARCH_REG_NONE || width < 2)
		return false;
	*ret = width == 8 ? m->regs[n] : width == 4 ? (uint32_t)m->regs[n] : (uint16_t)m->regs[n];
	return true;
}

static uint32_t access_len(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
		return XSAVE_LEN;
	default:
		return op->size / 8u;
	}
}

/* Where the stack pointer is not yet, or no more, what it was before. */
static uint64_t stack_shift(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op, uint32_t len)
{
	if (op->mem.base != ZYDIS_REGISTER_RSP && op->mem.base != ZYDIS_REGISTER_ESP)
		return 0;
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		return 0 - (uint64_t)len;
	/* pop [rsp+8] counts from behind what it took. */
	return in->mnemonic == ZYDIS_MNEMONIC_POP && op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT ? len : 0;
}

size_t x86_accesses(const struct arch *a, const uint8_t *p, size_t len, const struct arch_machine *m, struct arch_access *out, size_t cap)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecoderContext ctx;
	const ZydisDecoder *dec = x86_decoder(a);
	size_t cnt = 0;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(dec, &ctx, p, len, &in)) || x86_is_foreign(&in) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(dec, &ctx, &in, ops, in.operand_count)))
		return 0;
	bool has_rep = in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	uint64_t times = in.address_width == 64 ? m->regs[1] : (uint32_t)m->regs[1];
	if (has_rep && !times)
		return 0;
	for (unsigned i = 0; i < in.operand_count && cnt < cap; i++) {
		const ZydisDecodedOperand *op = &ops[i];
		uint64_t base, index;
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
		    !reg_value(m, op->mem.base, m->pc + in.length, &base) || !reg_value(m, op->mem.index, 0, &index))
			continue;
		struct arch_access *r = &out[cnt];
		r->len = access_len(&in, op);
		r->kinds = (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? ARCH_ACCESS_READ : 0) |
			   (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ARCH_ACCESS_WRITE : 0);
		r->va = base + index * op->mem.scale + (uint64_t)op->mem.disp.value;
		if (in.address_width == 32)
			r->va = (uint32_t)r->va;
		r->va += stack_shift(&in, op, r->len);
		if (op->mem.segment == ZYDIS_REGISTER_FS)
			r->va += m->fs_base;
		else if (op->mem.segment == ZYDIS_REGISTER_GS)
			r->va += m->gs_base;
		r->va = x86_va(a, r->va);
		cnt += r->len && r->kinds;
	}
	return cnt;
}
