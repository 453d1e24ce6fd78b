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
	if (x86_is_foreign(&x->in))
		return false;
	x->op_cnt = operands_shown(&x->in);
	return ZYAN_SUCCESS(ZydisDecoderDecodeOperands(dec, &ctx, &x->in, x->ops, x->op_cnt));
}

static void put_decoded(struct x86_text *x)
{
	x->sae_op = find_sae_op(x);
	x->is_bcst_counted = x->in.avx.broadcast.mode && x86_hides_width(x);
	/* Hint nops have two operands; the one in ModRM.rm is written. */
	if (x->in.mnemonic == ZYDIS_MNEMONIC_NOP && x->op_cnt == 2)
		x->ops[0] = x->ops[x->ops[0].encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG];
	if (x->in.mnemonic == ZYDIS_MNEMONIC_NOP && x->op_cnt)
		x->op_cnt = 1;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && x->in.opcode >= 0xd8 &&
	    x->in.opcode <= 0xdf && x->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && is_x87_alias(&x->in)) {
		x->fixed_name = "(bad)";
		x->op_cnt = 0;
	}
	if (x->in.raw.prefix_count > 0)
		x86_put_prefixes(x);
	x86_put_mnemonic(x);
	/* Of the two stack registers of these, one goes without saying. */
	if (x->in.mnemonic == ZYDIS_MNEMONIC_FUCOMP)
		x->ops[0] = x->ops[--x->op_cnt];
	put_operands(x);
}

/* Decodes the bytes with one thing put right. */
static bool decode_patched(struct x86_text *x, uint8_t *buf, size_t len, unsigned opcode_off)
{
	if (opcode_off + 1 >= len)
		return false;
	uint8_t op = buf[opcode_off];
	uint8_t modrm = buf[opcode_off + 1];
	if (op == 0x8c || op == 0x8e) {
		/* mov with segment register 6 or 7, or to cs. */
		buf[opcode_off + 1] = modrm & 0xc7;
		x->fixed_seg = (modrm & 0x38) == 8 ? "cs" : "?";
	} else if (op >= 0xd8 && op <= 0xdf && modrm < 0xc0) {
		/* fldenv has a memory operand without a size. */
		buf[opcode_off] = 0xd9;
		buf[opcode_off + 1] = (uint8_t)((modrm & 0xc7) | 4 << 3);
		x->fixed_name = "(bad)";
	} else if (op == 0xdb && modrm == 0xe5) {
		buf[opcode_off + 1] = 0xe4;
		x->fixed_name = "frstpm(287 only)";
	} else if (op == 0x0f && (modrm == 0x1a || modrm == 0x1b) && opcode_off + 2 < len) {
		/* Bound registers 4 to 7. */
		buf[opcode_off + 2] &= 0xdf;
		x->fixed_seg = "(bad)";
	} else {
		return false;
	}
	return decode_all(x, buf, len);
}

/*
 * Puts the prefixes of the original bytes back into the decoded instruction, from which those that the
 * processor refuses (lock, REX before VEX) were taken to get it decoded at all.
 */
static void restore_prefixes(struct x86_text *x, const uint8_t *p, unsigned cnt)
{
	ZydisDecodedInstructionRaw old = x->in.raw;
	x->in.length = (uint8_t)(x->in.length + cnt - old.prefix_count);
	x->in.raw.prefix_count = (uint8_t)cnt;
	for (unsigned i = 0; i < cnt; i++) {
		x->in.raw.prefixes[i].value = p[i];
		x->in.raw.prefixes[i].type = ZYDIS_PREFIX_TYPE_EFFECTIVE;
		for (unsigned k = 0; k < old.prefix_count; k++) {
			if (old.prefixes[k].value == p[i])
				x->in.raw.prefixes[i].type = old.prefixes[k].type;
		}
	}
}

/* A second try for what the processor refuses but objdump writes. `opcode_off`: number of prefixes. */
static bool decode_refused(struct x86_text *x, const uint8_t *p, size_t len, unsigned opcode_off)
{
	uint8_t buf[X86_MAX_LEN];
	size_t n = 0;
	unsigned dropped = 0;
	bool is_vex = p[opcode_off] == 0xc4 || p[opcode_off] == 0xc5 || p[opcode_off] == 0x62;
	for (unsigned i = 0; i < len && i < sizeof(buf); i++) {
		if (i < opcode_off && (p[i] == 0xf0 || (is_vex && x86_is_rex(x->a, p[i]))))
			dropped++;
		else
			buf[n++] = p[i];
	}
	if (!(dropped && decode_all(x, buf, n)) && !decode_patched(x, buf, n, opcode_off - dropped))
		return false;
	if (x->in.length + dropped > X86_MAX_LEN)
		return false;
	restore_prefixes(x, p, opcode_off);
	return true;
}

/*
 * How many bytes objdump passes over for an opcode that is none, which depends on how far it got; a
 * listing over data in code agrees with it line by line. `*ret_is_bare`: prefixes are not written,
 * which is so when VEX.vvvv names a register that nothing uses.
 */
static unsigned bad_len(const struct x86_text *x, const uint8_t *p, size_t len, bool *ret_is_bare)
{
	*ret_is_bare = false;
	bool is_64 = x->a->bits == 64;
	bool is_vector = len > 1 && (is_64 || p[1] >= 0xc0);
	switch (p[0]) {
	case 0x0f:
		if (len > 1 && (p[1] == 0x38 || p[1] == 0x3a))
			return 3;
		/* Opcodes that need a prefix they have not got. */
		*ret_is_bare = len > 1 && (p[1] == 0x6c || p[1] == 0x6d || p[1] == 0x7c || p[1] == 0x7d);
		return len > 1 && (p[1] == 0x0f || p[1] == 0xa7) ? 1 : 2;
	case 0x62: {
		unsigned map = len > 1 ? p[1] & 15 : 0;
		if (!is_vector || map == 0 || map == 4 || map > 6 || len < 5)
			return 1;
		if (!(p[2] & 4))
			return 2;
		*ret_is_bare = (p[2] & 0x78) != 0x78;
		return 5;
	}
	case 0xc4:
		if (!is_vector || len < 4 || (p[1] & 31) < 1 || (p[1] & 31) > 3)
			return 1;
		*ret_is_bare = (p[2] & 0x78) != 0x78;
		return 4;
	case 0x8f:
		if (len < 4 || (p[1] & 31) < 8 || (p[1] & 31) > 10)
			return 1;
		*ret_is_bare = (p[2] & 0x78) != 0x78;
		return 4;
	case 0xc5:
		if (!is_vector || len < 3)
			return 1;
		*ret_is_bare = (p[1] & 0x78) != 0x78;
		return 3;
	default:
		return p[0] >= 0xd8 && p[0] <= 0xdf ? 2 : 1;
	}
}

static size_t put_bad(struct x86_text *x, const uint8_t *p, size_t len)
{
	unsigned n = 0;
	uint8_t mask = 0;
	while (n < len && n < X86_MAX_LEN && (x86_is_legacy_prefix(p[n]) || x86_is_rex(x->a, p[n])))
		n++;
	if (n < len && n < X86_MAX_LEN - 1) {
		if (decode_refused(x, p, len, n)) {
			put_decoded(x);
			return x->in.length;
		}
		x->fixed_name = NULL;
		x->fixed_seg = NULL;
		bool is_bare;
		unsigned opcode_len = bad_len(x, p + n, len - n, &is_bare);
		/* An inverted R, X and B of all ones in VEX makes objdump forget the REX before it. */
		bool is_rex_gone = p[n] == 0xc4 && n + 1 < len && p[n + 1] >> 5 == 7;
		for (unsigned i = 0; i < n && !is_bare; i++) {
			if (is_rex_gone && x86_is_rex(x->a, p[i]))
				continue;
			x86_put_idle_prefix(x, p[i]);
			x86_put_ch(x, ' ');
		}
		mask = opcode_len == 5 && !is_bare ? p[n + 3] : 0;
		n += opcode_len;
	} else {
		n = 1;
	}
	uint8_t from = x->used_len;
	X86_PUT(x, "(bad)");
	x86_span(x, from, ARCH_TOK_MNEMONIC);
	if (mask & 7) {
		X86_PUT(x, " {k");
		x86_put_ch(x, (char)('0' + (mask & 7)));
		x86_put_ch(x, '}');
		if (mask & 0x80)
			X86_PUT(x, "{z}");
	}
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

size_t x86_format_slow(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		       const struct arch_names *names, struct arch_text *ret)
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
	x.name = names ? names->fn : NULL;
	x.name_ctx = names ? names->ctx : NULL;
	x.t = ret;
	ret->span_cnt = 0;
	size_t insn_len = put_insn(&x, p, len);
	ret->len = x.used_len;
	ret->text[ret->len] = 0;
	return insn_len;
}

size_t x86_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		  const struct arch_names *names, struct arch_text *ret)
{
	size_t n = x86_format_fast(a, p, len, va, names, ret);
	return n ? n : x86_format_slow(a, p, len, va, names, ret);
}
