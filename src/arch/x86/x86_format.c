/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_text_int.h"

/*
 * format(): Zydis decodes, this writes. The order is objdump's: prefixes, mnemonic, operands.
 */

/* The operand that {sae} or a rounding mode follows: the last that is no immediate. */
static uint8_t find_sae_op(const struct x86_text *x)
{
	if (!x->in.avx.has_sae && x->in.avx.rounding.mode == 0)
		return 255;
	unsigned i = x->op_cnt;
	while (i > 0 && x->ops[i - 1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		i--;
	return i > 0 ? (uint8_t)(i - 1) : 255;
}

static void put_operands(struct x86_text *x)
{
	bool is_first = true;
	for (unsigned i = 0; i < x->op_cnt; i++) {
		/* The mask is written behind the first operand. */
		if (x->ops[i].encoding == ZYDIS_OPERAND_ENCODING_MASK)
			continue;
		x86_put_ch(x, is_first ? ' ' : ',');
		is_first = false;
		x->operand = (uint8_t)i;
		x86_put_operand(x, i);
	}
}

/* How many operands are written: those of string instructions are implied but written. */
static uint8_t operands_shown(const ZydisDecodedInstruction *in)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		return 2;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return in->mnemonic == ZYDIS_MNEMONIC_NOP && in->operand_count_visible ? 1
									      : in->operand_count_visible;
	default:
		break;
	}
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_XLAT:
		return 1;
	case ZYDIS_MNEMONIC_SHA256RNDS2:
	case ZYDIS_MNEMONIC_BLENDVPS:
	case ZYDIS_MNEMONIC_BLENDVPD:
	case ZYDIS_MNEMONIC_PBLENDVB:
		return 3;
	default:
		return in->operand_count_visible;
	}
}

/* Encodings of stack-register instructions that objdump knows no name for, though processors do. */
static bool is_x87_alias(const ZydisDecodedInstruction *in)
{
	if (in->raw.modrm.offset == 0 || in->raw.modrm.mod != 3)
		return false;
	switch (in->opcode) {
	case 0xd9:
		return in->raw.modrm.reg == 3;
	case 0xdc:
		return in->raw.modrm.reg == 2 || in->raw.modrm.reg == 3;
	case 0xdd:
		return in->raw.modrm.reg == 1;
	case 0xde:
		return in->raw.modrm.reg == 2;
	case 0xdf:
		return in->raw.modrm.reg >= 1 && in->raw.modrm.reg <= 3;
	default:
		return false;
	}
}

static bool decode_all(struct x86_text *x, const uint8_t *p, size_t len)
{
	ZydisDecoderContext ctx;
	const ZydisDecoder *dec = x86_decoder(x->a);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(dec, &ctx, p, len, &x->in)))
		return false;
	x->op_cnt = operands_shown(&x->in);
	return ZYAN_SUCCESS(ZydisDecoderDecodeOperands(dec, &ctx, &x->in, x->ops, x->op_cnt));
}

static void put_decoded(struct x86_text *x)
{
	x->sae_op = find_sae_op(x);
	x->is_bcst_counted = false;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && x->in.opcode >= 0xd8 &&
	    x->in.opcode <= 0xdf && x->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && is_x87_alias(&x->in)) {
		x->fixed_name = "(bad)";
		x->op_cnt = 0;
	}
	if (x->in.raw.prefix_count > 0)
		x86_put_prefixes(x);
	x86_put_mnemonic(x);
	put_operands(x);
}

/*
 * Bytes that are no instruction. objdump gives some of them a text all the same, and how many bytes it
 * passes over depends on how far it got; a listing over data in code agrees with it line by line.
 */
static unsigned bad_len(const struct x86_text *x, const uint8_t *p, size_t len)
{
	switch (p[0]) {
	case 0x0f:
		if (len > 1 && (p[1] == 0x38 || p[1] == 0x3a))
			return 3;
		return 2;
	case 0x62:
		return 1;
	case 0xc5:
		return x->a->bits == 64 || (len > 1 && p[1] >= 0xc0) ? 3 : 1;
	case 0xd8:
	case 0xd9:
	case 0xda:
	case 0xdb:
	case 0xdc:
	case 0xdd:
	case 0xde:
	case 0xdf:
		return 2;
	default:
		return 1;
	}
}

/* Decodes the bytes with one thing put right. */
static bool decode_patched(struct x86_text *x, const uint8_t *p, size_t len, unsigned opcode_off)
{
	uint8_t buf[X86_MAX_LEN];
	size_t n = len < sizeof(buf) ? len : sizeof(buf);
	memcpy(buf, p, n);
	uint8_t op = p[opcode_off];
	if (opcode_off + 1 >= n)
		return false;
	uint8_t modrm = p[opcode_off + 1];
	if (op == 0x8c || op == 0x8e) {
		/* mov with segment register 6 or 7, or to cs. */
		buf[opcode_off + 1] = modrm & 0xc7;
		x->fixed_seg = (modrm & 0x38) == 8 ? "cs" : "?";
	} else if (op >= 0xd8 && op <= 0xdf && modrm < 0xc0) {
		/* fldenv has a memory operand without a size. */
		buf[opcode_off] = 0xd9;
		buf[opcode_off + 1] = (uint8_t)((modrm & 0xc7) | 4 << 3);
		x->fixed_name = "(bad)";
	} else {
		return false;
	}
	return decode_all(x, buf, n);
}

/* lock where the processor refuses it. */
static bool decode_unlocked(struct x86_text *x, const uint8_t *p, size_t len, unsigned opcode_off)
{
	uint8_t buf[X86_MAX_LEN];
	size_t n = 0;
	unsigned lock_off = 0;
	unsigned lock_cnt = 0;
	for (unsigned i = 0; i < len && i < sizeof(buf); i++) {
		if (i < opcode_off && p[i] == 0xf0) {
			lock_off = i;
			lock_cnt++;
		} else {
			buf[n++] = p[i];
		}
	}
	if (lock_cnt != 1 || n == 0 || !decode_all(x, buf, n) || x->in.length == X86_MAX_LEN)
		return false;
	ZydisDecodedInstructionRaw *raw = &x->in.raw;
	for (unsigned i = raw->prefix_count; i > lock_off; i--)
		raw->prefixes[i] = raw->prefixes[i - 1];
	raw->prefixes[lock_off].value = 0xf0;
	raw->prefixes[lock_off].type = ZYDIS_PREFIX_TYPE_EFFECTIVE;
	raw->prefix_count++;
	x->in.length++;
	return true;
}

static size_t put_bad(struct x86_text *x, const uint8_t *p, size_t len)
{
	unsigned n = 0;
	while (n < len && n < X86_MAX_LEN && (x86_is_legacy_prefix(p[n]) || x86_is_rex(x->a, p[n])))
		n++;
	if (n < len && n < X86_MAX_LEN - 1) {
		if (decode_patched(x, p, len, n) || (n > 0 && decode_unlocked(x, p, len, n))) {
			put_decoded(x);
			return x->in.length;
		}
		x->fixed_name = NULL;
		for (unsigned i = 0; i < n; i++) {
			x86_put_idle_prefix(x, p[i]);
			x86_put_ch(x, ' ');
		}
		n += bad_len(x, p + n, len - n);
	} else {
		n = 1;
	}
	uint8_t from = x->used_len;
	X86_PUT(x, "(bad)");
	x86_span(x, from, ARCH_TOK_MNEMONIC);
	return n < len ? n : len;
}

static size_t put_insn(struct x86_text *x, const uint8_t *p, size_t len)
{
	bool is_fwait = false;
	unsigned lead = 0;
	if (x86_is_legacy_prefix(p[0]) || x86_is_rex(x->a, p[0]) || p[0] == 0x9b)
		lead = x86_lead(x->a, p, len, &is_fwait);
	if (lead && !is_fwait) {
		for (unsigned i = 0; i < lead; i++) {
			if (i > 0)
				x86_put_ch(x, ' ');
			x86_put_idle_prefix(x, p[i]);
		}
		return lead;
	}
	if (lead) {
		x->skip = 1;
		x->is_lone_fwait_gone = true;
		if (!decode_all(x, p + 1, len - 1) || x->in.length == X86_MAX_LEN) {
			x->is_lone_fwait_gone = false;
			x->skip = 0;
		}
	}
	if (!x->skip && !decode_all(x, p, len))
		return put_bad(x, p, len);
	put_decoded(x);
	return (size_t)x->in.length + x->skip;
}

size_t x86_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, arch_name_fn *name,
		  void *name_ctx, struct arch_text *ret)
{
	struct x86_text x;
	x.a = a;
	x.p = p;
	x.va = va;
	x.skip = 0;
	x.is_lone_fwait_gone = false;
	x.fixed_name = NULL;
	x.fixed_seg = NULL;
	x.operand = 255;
	x.used_len = 0;
	x.name = name;
	x.name_ctx = name_ctx;
	x.t = ret;
	ret->span_cnt = 0;
	size_t insn_len = put_insn(&x, p, len);
	ret->len = x.used_len;
	ret->text[ret->len] = 0;
	return insn_len;
}
