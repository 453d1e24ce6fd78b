/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_text_int.h"

#include "base/cleanup.h"

/* Operands: registers, memory, immediates and branch targets. */

void x86_put_hex(struct x86_text *x, uint64_t v)
{
	char buf[18];
	char *s = buf + sizeof(buf);
	do {
		*--s = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	*--s = 'x';
	*--s = '0';
	x86_put(x, s, (size_t)(buf + sizeof(buf) - s));
}

void x86_put_addr(struct x86_text *x, uint64_t va)
{
	uint8_t from = x->used_len;
	if (x->name) {
		char buf[X86_NAME_MAX];
		size_t len = x->name(x->name_ctx, va, buf, sizeof(buf));
		if (len > 0) {
			x86_put(x, buf, MIN(len, sizeof(buf)));
			x86_span(x, from, ARCH_TOK_NAME);
			return;
		}
	}
	x86_put_hex(x, va);
	x86_span(x, from, ARCH_TOK_ADDR);
}

static void put_reg(struct x86_text *x, ZydisRegister r)
{
	const ZydisShortString *s = ZydisRegisterGetStringWrapped(r);
	uint8_t from = x->used_len;
	if (s)
		x86_put(x, s->data, s->size);
	x86_span(x, from, ARCH_TOK_REG);
}

/* mov to and from segment registers: the general register has the width of the operand size, and a
 * segment register that does not exist is written as "?". */
static bool put_mov_seg(struct x86_text *x, const ZydisDecodedOperand *op)
{
	bool is_seg = op->reg.value >= ZYDIS_REGISTER_ES && op->reg.value <= ZYDIS_REGISTER_GS;
	if (is_seg && x->fixed_seg) {
		uint8_t from = x->used_len;
		x86_put(x, x->fixed_seg, strlen(x->fixed_seg));
		x86_span(x, from, ARCH_TOK_REG);
		return true;
	}
	if (is_seg)
		return false;
	ZydisRegister first = x->in.operand_width == 64	  ? ZYDIS_REGISTER_RAX
			      : x->in.operand_width == 16 ? ZYDIS_REGISTER_AX
							  : ZYDIS_REGISTER_EAX;
	put_reg(x, (ZydisRegister)(first + x86_gpr(op->reg.value, NULL, NULL)));
	return true;
}

static void put_reg_operand(struct x86_text *x, const ZydisDecodedOperand *op)
{
	ZydisRegister r = op->reg.value;
	if (x86_is_mov_seg(x) && put_mov_seg(x, op))
		return;
	if (x->fixed_seg && r >= ZYDIS_REGISTER_BND0 && r <= ZYDIS_REGISTER_BND3) {
		x86_put(x, x->fixed_seg, strlen(x->fixed_seg));
		return;
	}
	if (r < ZYDIS_REGISTER_ST0 || r > ZYDIS_REGISTER_ST7) {
		put_reg(x, r);
		return;
	}
	uint8_t from = x->used_len;
	X86_PUT(x, "st");
	if (op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
		x86_put_ch(x, '(');
		x86_put_ch(x, (char)('0' + (r - ZYDIS_REGISTER_ST0)));
		x86_put_ch(x, ')');
	}
	x86_span(x, from, ARCH_TOK_REG);
}

static void put_size(struct x86_text *x, const ZydisDecodedOperand *op)
{
	unsigned width = x86_mem_width(x, op);
	uint8_t from = x->used_len;
	const char *word;
	switch (width) {
	case 8:
		word = "BYTE";
		break;
	case 16:
		word = "WORD";
		break;
	case 32:
		word = "DWORD";
		break;
	case 48:
		word = "FWORD";
		break;
	case 64:
		word = "QWORD";
		break;
	case 80:
		word = "TBYTE";
		break;
	case 127: /* what objdump calls 16 bytes outside vector registers */
		word = "OWORD";
		break;
	case 128:
		word = "XMMWORD";
		break;
	case 256:
		word = "YMMWORD";
		break;
	case 512:
		word = "ZMMWORD";
		break;
	default:
		return;
	}
	x86_put(x, word, strlen(word));
	if (x->in.avx.broadcast.mode && !x->in.avx.broadcast.is_static)
		X86_PUT(x, " BCST ");
	else
		X86_PUT(x, " PTR ");
	x->used_len--;
	x86_span(x, from, ARCH_TOK_SIZE);
	x->used_len++;
}

/* Displacement after registers: signed, with its sign. */
static void put_disp(struct x86_text *x, int64_t disp)
{
	uint64_t v = (uint64_t)disp;
	if (disp < 0) {
		x86_put_ch(x, '-');
		v = -v;
	} else {
		x86_put_ch(x, '+');
	}
	uint8_t from = x->used_len;
	x86_put_hex(x, v);
	x86_span(x, from, ARCH_TOK_DISP);
}

static void put_index(struct x86_text *x, const ZydisDecodedOperandMem *m, bool has_base)
{
	uint8_t from;
	if (has_base)
		x86_put_ch(x, '+');
	if (m->index != ZYDIS_REGISTER_NONE) {
		put_reg(x, m->index);
	} else {
		from = x->used_len;
		if (x->in.address_width == 64)
			X86_PUT(x, "riz");
		else
			X86_PUT(x, "eiz");
		x86_span(x, from, ARCH_TOK_REG);
	}
	if (x->in.address_width == 16)
		return;
	x86_put_ch(x, '*');
	x86_put_ch(x, (char)('0' + (1 << x->in.raw.sib.scale)));
}

/* Whether an index stands in the brackets: one is encoded, or the encoding has room for one that the
 * base alone would not need. */
static bool shows_index(const struct x86_text *x, const ZydisDecodedOperandMem *m)
{
	if (m->index != ZYDIS_REGISTER_NONE)
		return true;
	if (x->in.raw.sib.offset == 0)
		return false;
	if (x->in.raw.sib.scale != 0)
		return true;
	if (m->base == ZYDIS_REGISTER_NONE)
		return x->in.address_width == 32;
	return (x->in.raw.sib.base & 7) != 4;
}

static void put_rip(struct x86_text *x, const ZydisDecodedOperandMem *m)
{
	uint64_t disp = (uint64_t)m->disp.value;
	uint64_t va = x->va + x->skip + x->in.length + disp;
	x86_put_ch(x, '[');
	put_reg(x, m->base);
	x86_put_ch(x, '+');
	uint8_t from = x->used_len;
	if (x->name && m->base == ZYDIS_REGISTER_RIP) {
		char buf[X86_NAME_MAX];
		size_t len = x->name(x->name_ctx, va, buf, sizeof(buf));
		if (len > 0) {
			x86_put(x, buf, MIN(len, sizeof(buf)));
			x86_span(x, from, ARCH_TOK_NAME);
			x86_put_ch(x, ']');
			return;
		}
	}
	x86_put_hex(x, disp);
	x86_span(x, from, ARCH_TOK_DISP);
	x86_put_ch(x, ']');
}

static void put_segment(struct x86_text *x, ZydisRegister segment)
{
	put_reg(x, segment);
	x86_put_ch(x, ':');
}

/* The segment prefix that counts: in 64-bit mode only fs and gs do. */
static ZydisRegister segment_of(const struct x86_text *x)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65};
	static const uint8_t regs[] = {ZYDIS_REGISTER_ES, ZYDIS_REGISTER_CS, ZYDIS_REGISTER_SS,
				       ZYDIS_REGISTER_DS, ZYDIS_REGISTER_FS, ZYDIS_REGISTER_GS};
	size_t from = x->a->bits == 64 || x86_is_notrack(x) ? 4 : 0;
	uint8_t v = x86_last_prefix(&x->in, prefixes + from, sizeof(prefixes) - from);
	for (size_t i = from; i < sizeof(prefixes); i++) {
		if (v == prefixes[i])
			return (ZydisRegister)regs[i];
	}
	return ZYDIS_REGISTER_NONE;
}

static void put_absolute(struct x86_text *x, const ZydisDecodedOperandMem *m, ZydisRegister segment)
{
	uint64_t v = (uint64_t)m->disp.value;
	if (x->in.address_width == 32)
		v = (uint32_t)v;
	else if (x->in.address_width == 16)
		v = (uint16_t)v;
	put_segment(x, segment == ZYDIS_REGISTER_NONE ? ZYDIS_REGISTER_DS : segment);
	if (segment != ZYDIS_REGISTER_FS && segment != ZYDIS_REGISTER_GS) {
		x86_put_addr(x, v);
		return;
	}
	uint8_t from = x->used_len;
	x86_put_hex(x, v);
	x86_span(x, from, ARCH_TOK_DISP);
}

static void put_mem(struct x86_text *x, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	put_size(x, op);
	ZydisRegister segment = segment_of(x);
	if (x->in.raw.modrm.offset == 0 && m->base != ZYDIS_REGISTER_NONE) {
		/* String instructions name their segment. */
		put_segment(x, m->segment);
		x86_put_ch(x, '[');
		put_reg(x, m->base);
		x86_put_ch(x, ']');
		return;
	}
	bool has_index = shows_index(x, m);
	if (m->base == ZYDIS_REGISTER_NONE && !has_index) {
		put_absolute(x, m, segment);
		return;
	}
	if (segment != ZYDIS_REGISTER_NONE)
		put_segment(x, segment);
	if (m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP) {
		put_rip(x, m);
		return;
	}
	x86_put_ch(x, '[');
	if (m->base != ZYDIS_REGISTER_NONE)
		put_reg(x, m->base);
	if (has_index)
		put_index(x, m, m->base != ZYDIS_REGISTER_NONE);
	/* With 67 in 64-bit mode what has no register is cut to 32 bits. */
	bool is_cut = x->a->bits == 64 && x->in.address_width == 32 && m->base == ZYDIS_REGISTER_NONE &&
		      m->index == ZYDIS_REGISTER_NONE;
	if (x->in.raw.disp.size != 0)
		put_disp(x, is_cut ? (int64_t)(uint32_t)m->disp.value : m->disp.value);
	x86_put_ch(x, ']');
}

static void put_imm(struct x86_text *x, const ZydisDecodedOperand *op)
{
	uint8_t from = x->used_len;
	if (op->imm.is_relative) {
		uint64_t target = x->va + x->skip + x->in.length + op->imm.value.u;
		if (x->in.operand_width == 16)
			target = (uint16_t)target;
		x86_put_addr(x, x86_va(x->a, target));
		return;
	}
	uint64_t v = op->imm.value.u;
	if (x->in.raw.imm[0].size == 0) {
		/* The one in shl eax,1 is part of the opcode. */
		x86_put_ch(x, (char)('0' + (v & 7)));
	} else {
		unsigned width = x->in.operand_width;
		if (op->imm.is_signed && width < 64)
			v &= ((uint64_t)1 << width) - 1;
		x86_put_hex(x, v);
	}
	x86_span(x, from, ARCH_TOK_IMM);
}

static void put_mask(struct x86_text *x)
{
	if (x->in.avx.mask.reg != ZYDIS_REGISTER_NONE && x->in.avx.mask.reg != ZYDIS_REGISTER_K0) {
		x86_put_ch(x, '{');
		put_reg(x, x->in.avx.mask.reg);
		x86_put_ch(x, '}');
	}
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && x->in.raw.evex.z)
		X86_PUT(x, "{z}");
}

static void put_rounding(struct x86_text *x)
{
	static const char words[][9] = {"", "{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}"};
	unsigned mode = x->in.avx.rounding.mode;
	if (mode > 0 && mode < ARRAY_LEN(words))
		x86_put(x, words[mode], 8);
	else
		X86_PUT(x, "{sae}");
}

/* {1to8} */
static void put_broadcast_cnt(struct x86_text *x)
{
	static const char words[][6] = {"",      "{1to2", "{1to4", "{1to8", "{1to1", "{1to3", "{1to6",
					"{1to2", "{1to4", "{1to8", "{1to4", "{1to8", "{1to8"};
	unsigned mode = x->in.avx.broadcast.mode;
	if (mode == 0 || mode >= ARRAY_LEN(words))
		return;
	x86_put(x, words[mode], 5);
	if (mode == ZYDIS_BROADCAST_MODE_1_TO_16)
		x86_put_ch(x, '6');
	else if (mode == ZYDIS_BROADCAST_MODE_1_TO_32)
		x86_put_ch(x, '2');
	else if (mode == ZYDIS_BROADCAST_MODE_1_TO_64)
		x86_put_ch(x, '4');
	x86_put_ch(x, '}');
}

void x86_put_operand(struct x86_text *x, unsigned i)
{
	const ZydisDecodedOperand *op = &x->ops[i];
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		put_reg_operand(x, op);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		put_mem(x, op);
		if (x->is_bcst_counted)
			put_broadcast_cnt(x);
		break;
	case ZYDIS_OPERAND_TYPE_POINTER:
		x86_put_hex(x, op->ptr.segment);
		x86_put_ch(x, ':');
		x86_put_hex(x, op->ptr.offset);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		put_imm(x, op);
		break;
	case ZYDIS_OPERAND_TYPE_UNUSED:
		break;
	}
	if (i == 0 && x->in.avx.mask.mode)
		put_mask(x);
	if (i == x->sae_op)
		put_rounding(x);
}
