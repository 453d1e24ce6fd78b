/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_int.h"

/*
 * decode() by way of Zydis: what the fast path does not know goes here, and the tests hold the fast
 * path to the answers of this file.
 */
struct slow {
	const struct arch *a;
	const uint8_t *p;
	size_t len; /* of the bytes at `p`, not of the instruction */
	uint64_t va;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static void set_invalid(struct arch_insn *ret)
{
	*ret = (struct arch_insn){.len = 1, .flow = ARCH_FLOW_INVALID};
}

static void add_ref(struct arch_insn *ret, struct arch_ref ref)
{
	if (ret->ref_cnt < ARCH_REF_MAX)
		ret->refs[ret->ref_cnt++] = ref;
}

static bool is_small(int64_t v)
{
	return v > -X86_SMALL && v < X86_SMALL;
}

/* The reference of a memory operand, when the decoder alone can know one. */
static void add_mem_ref(struct slow *s, const ZydisDecodedOperand *op, struct arch_insn *ret)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	bool is_lea = m->type == ZYDIS_MEMOP_TYPE_AGEN;
	if (m->type != ZYDIS_MEMOP_TYPE_MEM && !is_lea)
		return;
	if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS)
		return;
	if (s->in.address_width == 16)
		return;
	struct arch_ref ref = {.kind = ARCH_REF_READ};
	uint64_t disp = (uint64_t)m->disp.value;
	if (m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP) {
		ref.va = s->va + s->in.length + disp;
	} else if (m->base == ZYDIS_REGISTER_NONE && m->index == ZYDIS_REGISTER_NONE) {
		ref.va = disp;
		ref.is_guess = is_lea;
	} else {
		if (s->in.raw.disp.size != 32 || is_small((int32_t)disp))
			return;
		if (x86_gpr(m->base, NULL, NULL) == s->a->sp_reg)
			return;
		ref.va = disp;
		ref.is_guess = true;
	}
	ref.va = s->in.address_width == 32 ? (uint32_t)ref.va : ref.va;
	if (is_lea) {
		ref.kind = ARCH_REF_OFFSET;
	} else {
		ref.kind = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ARCH_REF_WRITE : ARCH_REF_READ;
		unsigned bytes = op->size / 8;
		ref.access_bytes = (uint8_t)(bytes > 255 ? 255 : bytes);
	}
	add_ref(ret, ref);
}

/* Immediates of 32 bits and more of the few instructions that take addresses. */
static void add_imm_ref(struct slow *s, const ZydisDecodedOperand *op, struct arch_insn *ret)
{
	switch (s->in.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		break;
	default:
		return;
	}
	if (op->imm.is_relative || s->in.raw.imm[0].size < 32)
		return;
	uint64_t v = s->in.raw.imm[0].value.u;
	if (s->in.operand_width == 32) {
		if (is_small((int32_t)v))
			return;
		v = (uint32_t)v;
	} else {
		if (s->in.raw.imm[0].size == 32)
			v = (uint64_t)(int64_t)(int32_t)v;
		if (is_small((int64_t)v))
			return;
	}
	add_ref(ret, (struct arch_ref){.va = x86_va(s->a, v), .kind = ARCH_REF_OFFSET, .is_guess = true});
}

static void add_refs(struct slow *s, struct arch_insn *ret)
{
	for (unsigned i = 0; i < s->in.operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &s->ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			add_mem_ref(s, op, ret);
		else if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			add_imm_ref(s, op, ret);
	}
}

/* Sets `target` and the flow for a relative operand, `indirect` for all others. */
static void set_branch(struct slow *s, enum arch_flow direct, enum arch_flow indirect,
		       struct arch_insn *ret)
{
	if (!s->in.raw.imm[0].is_relative) {
		ret->flow = (uint8_t)indirect;
		return;
	}
	uint64_t target = s->va + s->in.length + s->in.raw.imm[0].value.u;
	if (s->in.operand_width == 16)
		target = (uint16_t)target;
	ret->target = x86_va(s->a, target);
	ret->flow = (uint8_t)direct;
}

static void set_flow(struct slow *s, struct arch_insn *ret)
{
	switch (s->in.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		set_branch(s, ARCH_FLOW_CALL, ARCH_FLOW_ICALL, ret);
		/* call $+5: pushes its own address, calls nothing. */
		if (ret->flow == ARCH_FLOW_CALL && ret->target == x86_va(s->a, s->va + s->in.length))
			ret->flow = ARCH_FLOW_NEXT;
		break;
	case ZYDIS_MNEMONIC_JMP:
		set_branch(s, ARCH_FLOW_JUMP, ARCH_FLOW_IJUMP, ret);
		break;
	case ZYDIS_MNEMONIC_XBEGIN:
		set_branch(s, ARCH_FLOW_CJUMP, ARCH_FLOW_NEXT, ret);
		break;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_RSM:
		ret->flow = ARCH_FLOW_RET;
		break;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		ret->flow = ARCH_FLOW_STOP;
		break;
	case ZYDIS_MNEMONIC_INT3:
		/* One alone may be a breakpoint somebody left; a run of them is never passed. */
		if (s->in.length < s->len && s->p[s->in.length] == 0xcc)
			ret->flow = ARCH_FLOW_STOP;
		break;
	default:
		if (s->in.meta.category == ZYDIS_CATEGORY_COND_BR)
			set_branch(s, ARCH_FLOW_CJUMP, ARCH_FLOW_NEXT, ret);
		break;
	}
}

/* push of a register that a function saves first, sub of the stack pointer. */
static bool is_frame(const struct slow *s)
{
	if (s->in.operand_count_visible == 0 || s->ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	uint8_t width;
	uint8_t r = x86_gpr(s->ops[0].reg.value, &width, NULL);
	if (width * 8 != s->a->bits)
		return false;
	if (s->in.mnemonic == ZYDIS_MNEMONIC_SUB)
		return r == s->a->sp_reg && s->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	if (s->in.mnemonic != ZYDIS_MNEMONIC_PUSH)
		return false;
	if (s->a->bits == 64)
		return r == 3 || r == 5 || (r >= 12 && r < 16);
	return r == 3 || r == 5 || r == 6 || r == 7;
}

/* mov r,r and lea r,[r+0] of the full width. */
static bool is_nop_move(const struct slow *s)
{
	if (s->in.mnemonic != ZYDIS_MNEMONIC_MOV && s->in.mnemonic != ZYDIS_MNEMONIC_LEA)
		return false;
	const ZydisDecodedOperand *op = s->ops;
	if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER || op[0].size != s->a->bits)
		return false;
	if (op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
		return op[0].reg.value == op[1].reg.value;
	if (op[1].type != ZYDIS_OPERAND_TYPE_MEMORY || op[1].mem.type != ZYDIS_MEMOP_TYPE_AGEN)
		return false;
	const ZydisDecodedOperandMem *m = &op[1].mem;
	if (m->disp.value != 0)
		return false;
	if (m->index == ZYDIS_REGISTER_NONE)
		return m->base == op[0].reg.value;
	return m->base == ZYDIS_REGISTER_NONE && m->scale == 1 && m->index == op[0].reg.value;
}

static bool is_privileged(const ZydisDecodedInstruction *in)
{
	return (in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) || in->meta.category == ZYDIS_CATEGORY_IO ||
	       in->meta.category == ZYDIS_CATEGORY_IOSTRINGOP || in->mnemonic == ZYDIS_MNEMONIC_CLI ||
	       in->mnemonic == ZYDIS_MNEMONIC_STI;
}

static void set_flags(struct slow *s, struct arch_insn *ret)
{
	unsigned flags = 0;
	switch (s->in.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
		flags |= ARCH_INSN_NOP;
		break;
	case ZYDIS_MNEMONIC_INT3:
		flags |= ARCH_INSN_PAD_TRAP;
		break;
	case ZYDIS_MNEMONIC_ENDBR32:
	case ZYDIS_MNEMONIC_ENDBR64:
		flags |= ARCH_INSN_LANDING;
		break;
	default:
		break;
	}
	if (is_nop_move(s))
		flags |= ARCH_INSN_NOP;
	if (is_frame(s))
		flags |= ARCH_INSN_FRAME;
	if (s->in.attributes & ZYDIS_ATTRIB_HAS_NOTRACK)
		flags |= ARCH_INSN_NOTRACK;
	if (s->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		flags |= ARCH_INSN_REP;
	if (is_privileged(&s->in))
		flags |= ARCH_INSN_PRIVILEGED;
	ret->flags = (uint8_t)flags;
}

/* fwait and a floating-point instruction in one; when the two are too long together, only the fwait. */
static void decode_after_fwait(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
			       struct arch_insn *ret)
{
	x86_decode_slow(a, p + 1, len - 1, va + 1, ret);
	if (ret->flow == ARCH_FLOW_INVALID || ret->len == X86_MAX_LEN)
		*ret = (struct arch_insn){.len = 1, .flow = ARCH_FLOW_NEXT};
	else
		ret->len++;
}

void x86_decode_slow(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		     struct arch_insn *ret)
{
	struct slow s;
	ZydisDecoderContext ctx;
	if (x86_is_legacy_prefix(p[0]) || x86_is_rex(a, p[0]) || p[0] == 0x9b) {
		bool is_fwait;
		unsigned lead = x86_lead(a, p, len, &is_fwait);
		if (lead && is_fwait) {
			decode_after_fwait(a, p, len, va, ret);
			return;
		}
		if (lead) {
			*ret = (struct arch_insn){.len = (uint8_t)lead, .flow = ARCH_FLOW_NEXT};
			return;
		}
	}
	s.a = a;
	s.p = p;
	s.len = len;
	s.va = va;
	const ZydisDecoder *dec = x86_decoder(a);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(dec, &ctx, p, len, &s.in)) ||
	    x86_is_foreign(&s.in) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(dec, &ctx, &s.in, s.ops,
						     s.in.operand_count_visible))) {
		set_invalid(ret);
		return;
	}
	ret->target = 0;
	ret->ref_cnt = 0;
	ret->len = s.in.length;
	ret->flow = ARCH_FLOW_NEXT;
	set_flow(&s, ret);
	set_flags(&s, ret);
	if (!(ret->flags & ARCH_INSN_NOP))
		add_refs(&s, ret);
}
