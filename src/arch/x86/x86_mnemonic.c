/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_text_int.h"

#include "base/cleanup.h"

/* Mnemonics that objdump spells otherwise than Zydis, and widths of memory operands likewise. */

static const char *branch_name(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_JZ:
		return "je";
	case ZYDIS_MNEMONIC_JNZ:
		return "jne";
	case ZYDIS_MNEMONIC_JNB:
		return "jae";
	case ZYDIS_MNEMONIC_JNBE:
		return "ja";
	case ZYDIS_MNEMONIC_JNL:
		return "jge";
	case ZYDIS_MNEMONIC_JNLE:
		return "jg";
	case ZYDIS_MNEMONIC_CMOVZ:
		return "cmove";
	case ZYDIS_MNEMONIC_CMOVNZ:
		return "cmovne";
	case ZYDIS_MNEMONIC_CMOVNB:
		return "cmovae";
	case ZYDIS_MNEMONIC_CMOVNBE:
		return "cmova";
	case ZYDIS_MNEMONIC_CMOVNL:
		return "cmovge";
	case ZYDIS_MNEMONIC_CMOVNLE:
		return "cmovg";
	case ZYDIS_MNEMONIC_SETZ:
		return "sete";
	case ZYDIS_MNEMONIC_SETNZ:
		return "setne";
	case ZYDIS_MNEMONIC_SETNB:
		return "setae";
	case ZYDIS_MNEMONIC_SETNBE:
		return "seta";
	case ZYDIS_MNEMONIC_SETNL:
		return "setge";
	case ZYDIS_MNEMONIC_SETNLE:
		return "setg";
	default:
		return NULL;
	}
}

static const char *string_name(ZydisMnemonic m, const struct x86_text *x)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MOVSD:
		return x->in.meta.category == ZYDIS_CATEGORY_STRINGOP ? "movs" : NULL;
	case ZYDIS_MNEMONIC_CMPSD:
		return x->in.meta.category == ZYDIS_CATEGORY_STRINGOP ? "cmps" : NULL;
	case ZYDIS_MNEMONIC_MOVSB:
	case ZYDIS_MNEMONIC_MOVSW:
	case ZYDIS_MNEMONIC_MOVSQ:
		return "movs";
	case ZYDIS_MNEMONIC_CMPSB:
	case ZYDIS_MNEMONIC_CMPSW:
	case ZYDIS_MNEMONIC_CMPSQ:
		return "cmps";
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
		return "stos";
	case ZYDIS_MNEMONIC_LODSB:
	case ZYDIS_MNEMONIC_LODSW:
	case ZYDIS_MNEMONIC_LODSD:
	case ZYDIS_MNEMONIC_LODSQ:
		return "lods";
	case ZYDIS_MNEMONIC_SCASB:
	case ZYDIS_MNEMONIC_SCASW:
	case ZYDIS_MNEMONIC_SCASD:
	case ZYDIS_MNEMONIC_SCASQ:
		return "scas";
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_INSD:
		return "ins";
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSW:
	case ZYDIS_MNEMONIC_OUTSD:
		return "outs";
	default:
		return NULL;
	}
}

bool x86_is_short_branch(const struct x86_text *x)
{
	static const uint8_t opsize[] = {0x66};
	if (x->in.mnemonic != ZYDIS_MNEMONIC_JMP && x->in.mnemonic != ZYDIS_MNEMONIC_CALL &&
	    x->in.mnemonic != ZYDIS_MNEMONIC_RET)
		return false;
	if (x->in.raw.imm[0].is_relative || x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return x->in.operand_width == 16;
	return !x->in.raw.rex.W && x86_last_prefix(&x->in, opsize, 1) == 0x66;
}

static const char *system_name(ZydisMnemonic m, const struct x86_text *x)
{
	unsigned width = x->in.operand_width;
	switch (m) {
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_PUSHFD:
		return "pushf";
	case ZYDIS_MNEMONIC_PUSHF:
		return "pushfw";
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_POPFD:
		return "popf";
	case ZYDIS_MNEMONIC_POPF:
		return "popfw";
	case ZYDIS_MNEMONIC_PUSHAD:
		return "pusha";
	case ZYDIS_MNEMONIC_PUSHA:
		return "pushaw";
	case ZYDIS_MNEMONIC_POPAD:
		return "popa";
	case ZYDIS_MNEMONIC_POPA:
		return "popaw";
	case ZYDIS_MNEMONIC_IRETD:
		return "iret";
	case ZYDIS_MNEMONIC_IRET:
		return "iretw";
	case ZYDIS_MNEMONIC_SYSRET:
		return x->a->bits == 64 ? (width == 64 ? "sysretq" : "sysretd") : "sysret";
	case ZYDIS_MNEMONIC_SYSEXIT:
		return x->a->bits == 64 ? (width == 64 ? "sysexitq" : "sysexitd") : "sysexit";
	case ZYDIS_MNEMONIC_RET:
		if (x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return width == 64 ? "retfq" : width == 16 ? "retfw" : "retf";
		return x86_is_short_branch(x) ? "retw" : NULL;
	case ZYDIS_MNEMONIC_CALL:
		return width == 16 && x->in.raw.imm[0].is_relative ? "callw" : NULL;
	case ZYDIS_MNEMONIC_JMP:
		return width == 16 && x->in.raw.imm[0].is_relative ? "jmpw" : NULL;
	case ZYDIS_MNEMONIC_PUSH:
		return width == 16 && x->ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY &&
				       (x->ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
					x->ops[0].encoding == ZYDIS_OPERAND_ENCODING_NONE)
			       ? "pushw"
			       : NULL;
	case ZYDIS_MNEMONIC_POP:
		return width == 16 && x->ops[0].encoding == ZYDIS_OPERAND_ENCODING_NONE ? "popw" : NULL;
	case ZYDIS_MNEMONIC_LEAVE:
		return width == 16 ? "leavew" : NULL;
	case ZYDIS_MNEMONIC_ENTER:
		return width == 16 ? "enterw" : NULL;
	default:
		return NULL;
	}
}

static const char *other_name(ZydisMnemonic m, const struct x86_text *x)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MOV:
		if (x->in.raw.imm[0].size == 64 || x->in.raw.disp.size == 64)
			return "movabs";
		return NULL;
	case ZYDIS_MNEMONIC_NOP:
		/* 66 90 is what the assembler makes of this; so is every 90 with a REX.B. */
		if (x->in.opcode == 0x90 && x->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		    x->in.operand_width == 16)
			return "xchg ax,ax";
		return NULL;
	case ZYDIS_MNEMONIC_FEMMS:
		return "femms";
	default:
		return NULL;
	}
}

/* Floating-point instructions: Intel's undocumented ones, and those an fwait turns into others. */
static const char *x87_name(ZydisMnemonic m, const struct x86_text *x)
{
	bool has_fwait = x->is_lone_fwait_gone;
	switch (m) {
	case ZYDIS_MNEMONIC_FENI8087_NOP:
		return has_fwait ? "feni(8087 only)" : "fneni(8087 only)";
	case ZYDIS_MNEMONIC_FDISI8087_NOP:
		return has_fwait ? "fdisi(8087 only)" : "fndisi(8087 only)";
	case ZYDIS_MNEMONIC_FSETPM287_NOP:
		return has_fwait ? "fsetpm(287 only)" : "fnsetpm(287 only)";
	case ZYDIS_MNEMONIC_FNSTCW:
		return has_fwait ? "fstcw" : NULL;
	case ZYDIS_MNEMONIC_FNSTSW:
		return has_fwait ? "fstsw" : NULL;
	case ZYDIS_MNEMONIC_FNSTENV:
		return has_fwait ? "fstenv" : NULL;
	case ZYDIS_MNEMONIC_FNSAVE:
		return has_fwait ? "fsave" : NULL;
	case ZYDIS_MNEMONIC_FNCLEX:
		return has_fwait ? "fclex" : NULL;
	case ZYDIS_MNEMONIC_FNINIT:
		return has_fwait ? "finit" : NULL;
	default:
		return NULL;
	}
}

/* One switch per family: they are consulted in turn, the common ones first. */
static const char *spelling(const struct x86_text *x)
{
	ZydisMnemonic m = x->in.mnemonic;
	const char *s = branch_name(m);
	if (!s)
		s = other_name(m, x);
	if (!s)
		s = string_name(m, x);
	if (!s && x->in.opcode >= 0xd8 && x->in.opcode <= 0xdf)
		s = x87_name(m, x);
	else if (!s)
		s = system_name(m, x);
	return s;
}

static const char cmp_words[32][9] = {
	"eq",    "lt",    "le",    "unord",   "neq",    "nlt",    "nle",    "ord",
	"eq_uq", "nge",   "ngt",   "false",   "neq_oq", "ge",     "gt",     "true",
	"eq_os", "lt_oq", "le_oq", "unord_s", "neq_us", "nlt_uq", "nle_uq", "ord_s",
	"eq_us", "nge_uq", "ngt_uq", "false_os", "neq_os", "ge_oq", "gt_oq", "true_us"};

static const char int_cmp_words[8][6] = {"eq", "lt", "le", "false", "neq", "nlt", "nle", "true"};
static const char xop_com_words[8][6] = {"lt", "le", "gt", "ge", "eq", "neq", "false", "true"};

/* Writes a comparison with its predicate inside: `before` WORD `after`. */
static void put_pseudo(struct x86_text *x, const char *before, const char *word, const char *after)
{
	x86_put(x, before, strlen(before));
	x86_put(x, word, strlen(word));
	x86_put(x, after, strlen(after));
	x->op_cnt--;
}

struct pseudo {
	ZydisMnemonic m;
	char before[6];
	char after[3];
	char kind; /* 'c' 8 words, 'v' 32 words, 'i' integer, 'x' XOP */
};

static const struct pseudo pseudos[] = {
	{ZYDIS_MNEMONIC_CMPPS, "cmp", "ps", 'c'},     {ZYDIS_MNEMONIC_CMPPD, "cmp", "pd", 'c'},
	{ZYDIS_MNEMONIC_CMPSS, "cmp", "ss", 'c'},     {ZYDIS_MNEMONIC_CMPSD, "cmp", "sd", 'c'},
	{ZYDIS_MNEMONIC_VCMPPS, "vcmp", "ps", 'v'},   {ZYDIS_MNEMONIC_VCMPPD, "vcmp", "pd", 'v'},
	{ZYDIS_MNEMONIC_VCMPSS, "vcmp", "ss", 'v'},   {ZYDIS_MNEMONIC_VCMPSD, "vcmp", "sd", 'v'},
	{ZYDIS_MNEMONIC_VCMPPH, "vcmp", "ph", 'v'},   {ZYDIS_MNEMONIC_VCMPSH, "vcmp", "sh", 'v'},
	{ZYDIS_MNEMONIC_VPCMPB, "vpcmp", "b", 'i'},   {ZYDIS_MNEMONIC_VPCMPW, "vpcmp", "w", 'i'},
	{ZYDIS_MNEMONIC_VPCMPD, "vpcmp", "d", 'i'},   {ZYDIS_MNEMONIC_VPCMPQ, "vpcmp", "q", 'i'},
	{ZYDIS_MNEMONIC_VPCMPUB, "vpcmp", "ub", 'i'}, {ZYDIS_MNEMONIC_VPCMPUW, "vpcmp", "uw", 'i'},
	{ZYDIS_MNEMONIC_VPCMPUD, "vpcmp", "ud", 'i'}, {ZYDIS_MNEMONIC_VPCMPUQ, "vpcmp", "uq", 'i'},
	{ZYDIS_MNEMONIC_VPCOMB, "vpcom", "b", 'x'},   {ZYDIS_MNEMONIC_VPCOMW, "vpcom", "w", 'x'},
	{ZYDIS_MNEMONIC_VPCOMD, "vpcom", "d", 'x'},   {ZYDIS_MNEMONIC_VPCOMQ, "vpcom", "q", 'x'},
	{ZYDIS_MNEMONIC_VPCOMUB, "vpcom", "ub", 'x'}, {ZYDIS_MNEMONIC_VPCOMUW, "vpcom", "uw", 'x'},
	{ZYDIS_MNEMONIC_VPCOMUD, "vpcom", "ud", 'x'}, {ZYDIS_MNEMONIC_VPCOMUQ, "vpcom", "uq", 'x'},
};

/* pclmulqdq: bits 0 and 4 of the immediate choose the halves. */
static bool put_pclmul(struct x86_text *x, uint64_t imm)
{
	static const char names[4][16] = {"pclmullqlqdq", "pclmulhqlqdq", "pclmullqhqdq", "pclmulhqhqdq"};
	if (imm & ~(uint64_t)0x11)
		return false;
	put_pseudo(x, x->in.mnemonic == ZYDIS_MNEMONIC_VPCLMULQDQ ? "v" : "",
		   names[(imm & 1) | (imm >> 3 & 2)], "");
	return true;
}

static bool put_if_pseudo(struct x86_text *x)
{
	unsigned last = x->op_cnt - 1u;
	if (x->in.raw.imm[0].size != 8 || x->op_cnt < 3 || x->ops[last].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	uint64_t imm = x->ops[last].imm.value.u;
	if (x->in.mnemonic == ZYDIS_MNEMONIC_PCLMULQDQ || x->in.mnemonic == ZYDIS_MNEMONIC_VPCLMULQDQ)
		return put_pclmul(x, imm);
	for (size_t i = 0; i < ARRAY_LEN(pseudos); i++) {
		const struct pseudo *p = &pseudos[i];
		if (p->m != x->in.mnemonic)
			continue;
		const char *word = NULL;
		if (p->kind == 'v' && imm < 32)
			word = cmp_words[imm];
		else if (p->kind == 'c' && imm < 8)
			word = cmp_words[imm];
		else if (p->kind == 'i' && imm < 8 && imm != 3 && imm != 7)
			word = int_cmp_words[imm];
		else if (p->kind == 'x' && imm < 8)
			word = xop_com_words[imm];
		if (!word)
			return false;
		put_pseudo(x, p->before, word, p->after);
		return true;
	}
	return false;
}

void x86_put_mnemonic(struct x86_text *x)
{
	uint8_t from = x->used_len;
	if (x->fixed_name) {
		x86_put(x, x->fixed_name, strlen(x->fixed_name));
	} else if (!put_if_pseudo(x)) {
		const char *s = spelling(x);
		if (s) {
			x86_put(x, s, strlen(s));
		} else {
			const ZydisShortString *z = ZydisMnemonicGetStringWrapped(x->in.mnemonic);
			x86_put(x, z->data, z->size);
		}
	}
	x86_span(x, from, ARCH_TOK_MNEMONIC);
}

/* Areas of memory rather than operands. */
static bool is_sizeless(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_LGDT:
	case ZYDIS_MNEMONIC_LIDT:
	case ZYDIS_MNEMONIC_SGDT:
	case ZYDIS_MNEMONIC_SIDT:
	case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FLDENV:
	case ZYDIS_MNEMONIC_FNSAVE:
	case ZYDIS_MNEMONIC_FRSTOR:
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_XSAVES:
	case ZYDIS_MNEMONIC_XSAVES64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_XRSTORS:
	case ZYDIS_MNEMONIC_XRSTORS64:
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_ENQCMD:
	case ZYDIS_MNEMONIC_ENQCMDS:
	case ZYDIS_MNEMONIC_LDTILECFG:
	case ZYDIS_MNEMONIC_STTILECFG:
	case ZYDIS_MNEMONIC_TILELOADD:
	case ZYDIS_MNEMONIC_TILELOADDT1:
	case ZYDIS_MNEMONIC_TILESTORED:
	case ZYDIS_MNEMONIC_WRSSD:
	case ZYDIS_MNEMONIC_WRSSQ:
	case ZYDIS_MNEMONIC_WRUSSD:
	case ZYDIS_MNEMONIC_WRUSSQ:
	case ZYDIS_MNEMONIC_BNDLDX:
	case ZYDIS_MNEMONIC_BNDSTX:
	case ZYDIS_MNEMONIC_BNDMOV:
		return true;
	default:
		return false;
	}
}

unsigned x86_mem_width(const struct x86_text *x, const ZydisDecodedOperand *op)
{
	if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return x->in.mnemonic == ZYDIS_MNEMONIC_INVLPG ? 8 : 0;
	if (op->size > 512 || x86_is_moffs(x))
		return 0;
	if (is_sizeless(x->in.mnemonic))
		return 0;
	switch (x->in.mnemonic) {
	case ZYDIS_MNEMONIC_LSS:
	case ZYDIS_MNEMONIC_LFS:
	case ZYDIS_MNEMONIC_LGS:
	case ZYDIS_MNEMONIC_LES:
	case ZYDIS_MNEMONIC_LDS:
		return x->in.operand_width == 16 ? 32 : 48;
	case ZYDIS_MNEMONIC_CMPXCHG16B:
	case ZYDIS_MNEMONIC_INVEPT:
	case ZYDIS_MNEMONIC_INVVPID:
	case ZYDIS_MNEMONIC_INVPCID:
		return 127;
	case ZYDIS_MNEMONIC_LAR:
	case ZYDIS_MNEMONIC_LSL:
		return 16;
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_JMP:
		if (x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return x->in.operand_width == 16 ? 32 : 48;
		return x86_is_short_branch(x) ? 16 : op->size;
	case ZYDIS_MNEMONIC_PREFETCH:
	case ZYDIS_MNEMONIC_PREFETCHW:
	case ZYDIS_MNEMONIC_PREFETCHWT1:
	case ZYDIS_MNEMONIC_PREFETCHNTA:
	case ZYDIS_MNEMONIC_PREFETCHT0:
	case ZYDIS_MNEMONIC_PREFETCHT1:
	case ZYDIS_MNEMONIC_PREFETCHT2:
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
	case ZYDIS_MNEMONIC_CLDEMOTE:
		return 8;
	default:
		break;
	}
	/* Gathers and broadcasts name one element. */
	if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB ||
	    (x->in.avx.broadcast.mode && !x->in.avx.broadcast.is_static))
		return op->element_size;
	return op->size;
}

bool x86_hides_width(const struct x86_text *x)
{
	ZydisRegister r = x->ops[0].reg.value;
	switch (x->in.mnemonic) {
	case ZYDIS_MNEMONIC_VFPCLASSPS:
	case ZYDIS_MNEMONIC_VFPCLASSPD:
	case ZYDIS_MNEMONIC_VFPCLASSPH:
		return true;
	case ZYDIS_MNEMONIC_VCVTPD2DQ:
	case ZYDIS_MNEMONIC_VCVTPD2PS:
	case ZYDIS_MNEMONIC_VCVTPD2UDQ:
	case ZYDIS_MNEMONIC_VCVTTPD2DQ:
	case ZYDIS_MNEMONIC_VCVTTPD2UDQ:
	case ZYDIS_MNEMONIC_VCVTQQ2PS:
	case ZYDIS_MNEMONIC_VCVTUQQ2PS:
	case ZYDIS_MNEMONIC_VCVTPD2PH:
	case ZYDIS_MNEMONIC_VCVTQQ2PH:
	case ZYDIS_MNEMONIC_VCVTUQQ2PH:
	case ZYDIS_MNEMONIC_VCVTDQ2PH:
	case ZYDIS_MNEMONIC_VCVTUDQ2PH:
	case ZYDIS_MNEMONIC_VCVTPS2PHX:
	case ZYDIS_MNEMONIC_VCVTNEPS2BF16:
		return r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM31;
	default:
		return false;
	}
}
