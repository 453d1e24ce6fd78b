/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/a64/a64_int.h"

#include "arch/a64/a64.h"

uint64_t a64_adr(uint32_t w, uint64_t va)
{
	int64_t imm = a64_sbits(w, 5, 19) * 4 + a64_bits(w, 29, 2);
	if (w >> 31)
		return (va & ~(uint64_t)0xfff) + (uint64_t)imm * 4096;
	return va + (uint64_t)imm;
}

static void add_ref(struct arch_insn *ret, uint64_t va, enum arch_ref_kind kind, unsigned bytes)
{
	ret->refs[ret->ref_cnt++] =
		(struct arch_ref){.va = va, .kind = (uint8_t)kind, .access_bytes = (uint8_t)bytes};
}

/* ldr of a literal; prfm makes no reference. */
static void set_literal(uint32_t w, uint64_t va, struct arch_insn *ret)
{
	static const uint8_t widths[2][4] = {{4, 8, 4, 0}, {4, 8, 16, 0}};
	unsigned bytes = widths[a64_bits(w, 26, 1)][w >> 30];
	if (bytes)
		add_ref(ret, va + (uint64_t)(a64_sbits(w, 5, 19) * 4), ARCH_REF_READ, bytes);
	else if (a64_bits(w, 26, 1))
		ret->flow = ARCH_FLOW_INVALID;
}

/* br, blr, ret, eret and their authenticated forms: "unconditional branch (register)". */
static void set_register_branch(uint32_t w, struct arch_insn *ret)
{
	unsigned opc = a64_bits(w, 21, 4);
	unsigned op3 = a64_bits(w, 10, 6);
	bool is_plain = a64_bits(w, 16, 5) == 31 && op3 == 0 && a64_bits(w, 0, 5) == 0;
	bool is_auth = a64_bits(w, 16, 5) == 31 && (op3 == 2 || op3 == 3);
	ret->flow = ARCH_FLOW_INVALID;
	if (!is_plain && !is_auth)
		return;
	switch (opc) {
	case 0:
	case 8:
		ret->flow = ARCH_FLOW_IJUMP;
		break;
	case 1:
	case 9:
		ret->flow = ARCH_FLOW_ICALL;
		break;
	case 2:
		ret->flow = ARCH_FLOW_RET;
		break;
	case 4:
	case 5:
		ret->flow = ARCH_FLOW_RET;
		ret->flags |= ARCH_INSN_PRIVILEGED;
		break;
	default:
		break;
	}
}

/* Exceptions, hints and system registers. */
static void set_system(uint32_t w, struct arch_insn *ret)
{
	if ((w & 0xff000000) == 0xd4000000) {
		unsigned opc = a64_bits(w, 21, 3);
		unsigned ll = a64_bits(w, 0, 5);
		if (opc == 0 && ll > 1)
			ret->flags |= ARCH_INSN_PRIVILEGED; /* hvc, smc */
		else if (opc == 1 || opc == 2)
			ret->flow = ARCH_FLOW_STOP; /* brk, hlt */
		return;
	}
	if ((w & 0xfffff01f) == 0xd503201f) {
		unsigned hint = a64_bits(w, 5, 7);
		if (hint == 0)
			ret->flags |= ARCH_INSN_NOP;
		/* paciasp, pacibsp, bti c, bti jc; bti j marks targets of jump tables, not functions. */
		if (hint == 25 || hint == 27 || hint == 34 || hint == 38)
			ret->flags |= ARCH_INSN_LANDING;
		return;
	}
	/* mrs and msr of registers that are not for EL0. */
	if ((w & 0xffd00000) == 0xd5100000 && a64_bits(w, 16, 3) != 3)
		ret->flags |= ARCH_INSN_PRIVILEGED;
}

/* Group "branches, exceptions and system". */
static void set_branch(uint32_t w, uint64_t va, struct arch_insn *ret)
{
	if ((w & 0x7c000000) == 0x14000000) {
		ret->target = va + (uint64_t)(a64_sbits(w, 0, 26) * 4);
		ret->flow = w >> 31 ? ARCH_FLOW_CALL : ARCH_FLOW_JUMP;
	} else if ((w & 0xff000000) == 0x54000000) {
		ret->target = va + (uint64_t)(a64_sbits(w, 5, 19) * 4);
		ret->flow = a64_bits(w, 0, 4) >= 14 ? ARCH_FLOW_JUMP : ARCH_FLOW_CJUMP;
	} else if ((w & 0x7e000000) == 0x34000000) {
		ret->target = va + (uint64_t)(a64_sbits(w, 5, 19) * 4);
		ret->flow = ARCH_FLOW_CJUMP;
	} else if ((w & 0x7e000000) == 0x36000000) {
		ret->target = va + (uint64_t)(a64_sbits(w, 5, 14) * 4);
		ret->flow = ARCH_FLOW_CJUMP;
	} else if ((w & 0xfe000000) == 0xd6000000) {
		set_register_branch(w, ret);
	} else if ((w & 0xfe000000) == 0xd4000000) {
		set_system(w, ret);
	} else {
		ret->flow = ARCH_FLOW_INVALID;
	}
}

/* sub sp,sp,#N; stp or str with the stack pointer moved down first. */
static bool is_frame(uint32_t w)
{
	return (w & 0xff8003ff) == 0xd10003ff || (w & 0xffe003e0) == 0xa9a003e0 ||
	       (w & 0xfff00fe0) == 0xf8100fe0;
}

void a64_decode(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_insn *ret)
{
	ret->target = 0;
	ret->ref_cnt = 0;
	ret->flags = 0;
	ret->len = A64_LEN;
	ret->flow = ARCH_FLOW_NEXT;
	if (len < A64_LEN) {
		ret->len = (uint8_t)len;
		ret->flow = ARCH_FLOW_INVALID;
		return;
	}
	uint32_t w = a64_word(p);
	/* Top-level encoding, C4.1: bits 28 to 25. */
	switch (a64_bits(w, 25, 4)) {
	case 0:
		/* udf; what else is here is SME, which has bit 31 set. */
		if (w >> 16 == 0)
			ret->flow = ARCH_FLOW_STOP;
		else if (!(w >> 31))
			ret->flow = ARCH_FLOW_INVALID;
		if (w == 0)
			ret->flags = ARCH_INSN_PAD_TRAP;
		break;
	case 1:
	case 3:
		ret->flow = ARCH_FLOW_INVALID;
		break;
	case 8:
		if ((w & 0x9f000000) == 0x10000000)
			add_ref(ret, a64_adr(w, va), ARCH_REF_OFFSET, 0);
		break;
	case 10:
	case 11:
		set_branch(w, va, ret);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		if ((w & 0x3b000000) == 0x18000000)
			set_literal(w, va, ret);
		break;
	default:
		break;
	}
	if (!a64_is_valid(w)) {
		ret->flow = ARCH_FLOW_INVALID;
		ret->ref_cnt = 0;
		return;
	}
	if (is_frame(w))
		ret->flags |= ARCH_INSN_FRAME;
}

static const char *reg_name(const struct arch *a, uint8_t r)
{
	static const char names[32][4] = {
		"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
		"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};
	return r < ARRAY_LEN(names) ? names[r] : "";
}

const struct arch a64_arch = {
	.name = "aarch64",
	.id = ARCH_ID_A64,
	.bits = 64,
	.align = A64_LEN,
	.min_len = A64_LEN,
	.max_len = A64_LEN,
	.reg_cnt = 32,
	.sp_reg = A64_SP,
	.link_reg = A64_LR,
	.has_pairs = true,
	.func_align = 4,
	/* AAPCS64: x0 to x18, and the link register. */
	.call_clobbers = 0x4007ffff,
	.decode = a64_decode,
	.effect = a64_effect,
	.format = a64_format,
	.reg_name = reg_name,
};
