/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_text_int.h"

/*
 * Prefixes before the mnemonic. objdump writes every prefix that had no effect, in the order of the
 * bytes, and the few that belong to the instruction (rep, lock, bnd, notrack). What "had no effect"
 * means has to be worked out from the operands.
 */
enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8, REX = 0x40 };

uint8_t x86_last_prefix(const ZydisDecodedInstruction *in, const uint8_t *values, size_t cnt)
{
	for (unsigned i = in->raw.prefix_count; i > 0; i--) {
		uint8_t v = in->raw.prefixes[i - 1].value;
		if (memchr(values, v, cnt))
			return v;
	}
	return 0;
}

static bool is_plain_gpr(ZydisRegister r)
{
	return r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_R15;
}

/* Registers whose number REX extends. */
static bool is_extended_by_rex(ZydisRegister r)
{
	return is_plain_gpr(r) || (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_ZMM31) ||
	       (r >= ZYDIS_REGISTER_CR0 && r <= ZYDIS_REGISTER_DR15) ||
	       (r >= ZYDIS_REGISTER_BND0 && r <= ZYDIS_REGISTER_BND3);
}

/* Whether REX.W chose the width of something. */
static bool uses_rex_w(const struct x86_text *x)
{
	if (x->in.operand_width != 64)
		return false;
	switch (x->in.meta.category) {
	case ZYDIS_CATEGORY_X87_ALU:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_PUSH:
		return false;
	case ZYDIS_CATEGORY_RET:
		return x->in.mnemonic != ZYDIS_MNEMONIC_RET ||
		       x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_CONVERT:
		return true;
	default:
		break;
	}
	if (x86_is_mov_seg(x))
		return x->in.raw.modrm.mod == 3;
	/* movq between a vector register and memory in the encoding it shares with movd. */
	if (x->in.mnemonic == ZYDIS_MNEMONIC_MOVQ &&
	    (x->in.opcode == 0x6e ||
	     (x->in.opcode == 0x7e && x->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY)))
		return true;
	switch (x->in.mnemonic) {
	case ZYDIS_MNEMONIC_CMPXCHG16B:
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC64:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_XSAVES64:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_XRSTORS64:
		return true;
	default:
		break;
	}
	bool has_mem = false;
	bool has_vector = false;
	for (unsigned i = 0; i < x->op_cnt; i++) {
		const ZydisDecodedOperand *op = &x->ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if (op->reg.value >= ZYDIS_REGISTER_RAX && op->reg.value <= ZYDIS_REGISTER_R15)
				return true;
			has_vector = has_vector || !is_plain_gpr(op->reg.value);
		} else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			has_mem = has_mem || op->size == 64;
		}
	}
	return has_mem && !has_vector;
}

static unsigned rex_used(const struct x86_text *x)
{
	unsigned used = uses_rex_w(x) ? REX_W : 0;
	for (unsigned i = 0; i < x->op_cnt; i++) {
		const ZydisDecodedOperand *op = &x->ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && x->in.raw.modrm.offset != 0) {
			used |= REX_B;
			if (x->in.raw.sib.offset != 0)
				used |= REX_X;
			continue;
		}
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || !is_extended_by_rex(op->reg.value))
			continue;
		if (op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG)
			used |= REX_R;
		else if (op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM ||
			 op->encoding == ZYDIS_OPERAND_ENCODING_OPCODE)
			used |= REX_B;
		else
			continue;
		/* Only these four have another name without REX. */
		if (op->reg.value >= ZYDIS_REGISTER_SPL && op->reg.value <= ZYDIS_REGISTER_DIL)
			used |= REX;
	}
	return used;
}

static void put_rex(struct x86_text *x, uint8_t rex)
{
	X86_PUT(x, "rex");
	if (rex & 15)
		x86_put_ch(x, '.');
	if (rex & REX_W)
		x86_put_ch(x, 'W');
	if (rex & REX_R)
		x86_put_ch(x, 'R');
	if (rex & REX_X)
		x86_put_ch(x, 'X');
	if (rex & REX_B)
		x86_put_ch(x, 'B');
}

static bool shows_rex(const struct x86_text *x, uint8_t rex)
{
	if (x->in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return true;
	unsigned used = rex_used(x);
	if ((rex & 15) == 0)
		return !(used & REX);
	return (rex & 15 & ~used) != 0;
}

static bool has_mem_operand(const struct x86_text *x)
{
	for (unsigned i = 0; i < x->op_cnt; i++) {
		if (x->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return true;
	}
	return false;
}

static bool uses_address_size(const struct x86_text *x)
{
	switch (x->in.mnemonic) {
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
		return true;
	default:
		return has_mem_operand(x) && x->in.raw.disp.size != 64 && !x86_is_moffs(x);
	}
}

/* Whether 66 chose a width; instructions of 8 bits and without operands ignore it. */
static bool uses_operand_size(const struct x86_text *x)
{
	if (x->in.operand_width != 16 || x->in.meta.category == ZYDIS_CATEGORY_X87_ALU)
		return false;
	if (x86_is_mov_seg(x))
		return x->in.raw.modrm.mod == 3;
	for (unsigned i = 0; i < x->op_cnt; i++) {
		if (x->ops[i].size == 16 && x->ops[i].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return true;
	}
	switch (x->in.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_CONVERT:
		return true;
	default:
		return x->in.mnemonic == ZYDIS_MNEMONIC_ENTER || x->in.mnemonic == ZYDIS_MNEMONIC_LEAVE ||
		       x->in.mnemonic == ZYDIS_MNEMONIC_NOP;
	}
}

static bool is_string(const struct x86_text *x)
{
	return x->in.meta.category == ZYDIS_CATEGORY_STRINGOP ||
	       x->in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP || x->in.mnemonic == ZYDIS_MNEMONIC_XLAT;
}

/* Whether the last segment prefix, `v`, is left out before the mnemonic. In 64-bit mode only fs and gs
 * count, wherever they stand; they stand in the operand then, and the last prefix vanishes. */
static bool uses_segment(const struct x86_text *x, uint8_t v)
{
	static const uint8_t fs_gs[] = {0x64, 0x65};
	bool counts = x->a->bits == 32 || x86_last_prefix(&x->in, fs_gs, sizeof(fs_gs)) != 0;
	for (unsigned i = 0; i < x->op_cnt; i++) {
		const ZydisDecodedOperand *op = &x->ops[i];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (!is_string(x))
			return counts;
		/* The destination of a string instruction is in es whatever the prefix says; its source
		 * has its segment written, which swallows any prefix. */
		uint8_t base = x86_gpr(op->mem.base, NULL, NULL);
		if (base == 6 || base == 3)
			return true;
	}
	return false;
}

static bool is_rep_string(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MOVSB:
	case ZYDIS_MNEMONIC_MOVSW:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVSQ:
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
	case ZYDIS_MNEMONIC_LODSB:
	case ZYDIS_MNEMONIC_LODSW:
	case ZYDIS_MNEMONIC_LODSD:
	case ZYDIS_MNEMONIC_LODSQ:
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_INSD:
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSW:
	case ZYDIS_MNEMONIC_OUTSD:
		return true;
	default:
		return false;
	}
}

/* f2 and f3 that select no other instruction. */
static const char *rep_name(const struct x86_text *x, uint8_t v, bool is_last)
{
	if (v == 0xf3) {
		if (is_last && (x->in.attributes & ZYDIS_ATTRIB_HAS_XRELEASE))
			return "xrelease";
		return is_rep_string(x->in.mnemonic) ? "rep" : "repz";
	}
	if (is_last && (x->in.attributes & ZYDIS_ATTRIB_HAS_XACQUIRE))
		return "xacquire";
	return is_last && (x->in.attributes & ZYDIS_ATTRIB_HAS_BND) ? "bnd" : "repnz";
}

static const char *segment_name(uint8_t v)
{
	switch (v) {
	case 0x26:
		return "es";
	case 0x2e:
		return "cs";
	case 0x36:
		return "ss";
	case 0x3e:
		return "ds";
	case 0x64:
		return "fs";
	default:
		return "gs";
	}
}

/* What is written for prefix byte `v`; null when it took effect. `is_last`: of its group. */
static const char *prefix_name(const struct x86_text *x, uint8_t v, bool is_last)
{
	switch (v) {
	case 0xf0:
		return "lock";
	case 0xf2:
	case 0xf3:
		return rep_name(x, v, is_last);
	case 0x66:
		if (is_last && (uses_operand_size(x) || x86_is_short_branch(x)))
			return NULL;
		return "data16";
	case 0x67:
		if (is_last && uses_address_size(x))
			return NULL;
		return x->a->bits == 64 ? "addr32" : "addr16";
	default:
		if (is_last && v == 0x3e && x86_is_notrack(x))
			return "notrack";
		if (is_last && uses_segment(x, v))
			return NULL;
		return segment_name(v);
	}
}

/* Prefixes that exclude each other: the last of a group counts. */
static unsigned group_of(uint8_t v)
{
	switch (v) {
	case 0xf0:
		return 1;
	case 0xf2:
	case 0xf3:
		return 2;
	case 0x66:
		return 3;
	case 0x67:
		return 4;
	default:
		return 5;
	}
}

void x86_put_idle_prefix(struct x86_text *x, uint8_t v)
{
	uint8_t from = x->used_len;
	const char *name = NULL;
	if (x86_is_rex(x->a, v))
		put_rex(x, v);
	else if (v == 0xf2)
		name = "repnz";
	else if (v == 0xf3)
		name = "repz";
	else
		name = prefix_name(x, v, false);
	if (name)
		x86_put(x, name, strlen(name));
	x86_span(x, from, ARCH_TOK_PREFIX);
}

/* Whether a prefix equal to `v` selected the instruction rather than modified it. */
static bool is_mandatory(const struct x86_text *x, uint8_t v)
{
	for (unsigned i = 0; i < x->in.raw.prefix_count && !is_string(x); i++) {
		if (x->in.raw.prefixes[i].value == v &&
		    x->in.raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_MANDATORY)
			return true;
	}
	return false;
}

void x86_put_prefixes(struct x86_text *x)
{
	const ZydisDecodedInstruction *in = &x->in;
	unsigned cnt = in->raw.prefix_count;
	for (unsigned i = 0; i < cnt; i++) {
		uint8_t v = in->raw.prefixes[i].value;
		uint8_t from = x->used_len;
		if (x->a->bits == 64 && (v & 0xf0) == 0x40) {
			if (!shows_rex(x, v))
				continue;
			put_rex(x, v);
		} else {
			bool is_last = true;
			for (unsigned k = i + 1; k < cnt && is_last; k++) {
				uint8_t w = in->raw.prefixes[k].value;
				is_last = group_of(w) != group_of(v) ||
					  (x->a->bits == 64 && (w & 0xf0) == 0x40);
			}
			const char *name = is_last && is_mandatory(x, v) ? NULL : prefix_name(x, v, is_last);
			if (!name)
				continue;
			x86_put(x, name, strlen(name));
		}
		x86_span(x, from, ARCH_TOK_PREFIX);
		x86_put_ch(x, ' ');
	}
}
