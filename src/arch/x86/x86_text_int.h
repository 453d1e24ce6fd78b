/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_X86_X86_TEXT_INT_H
#define ARCH_X86_X86_TEXT_INT_H

#include "arch/x86/x86_int.h"

#include <string.h>

/*
 * One instruction being written in the spelling of `objdump -d -M intel`. The decoder's lists say what
 * the operands are; this adds what the spelling depends on.
 */
struct x86_text {
	const struct arch *a;
	const uint8_t *p;
	uint64_t va;
	uint8_t skip;     /* bytes before the part Zydis decoded: an fwait taken in, a lone rex */
	uint8_t operand;  /* being written, 255 for the mnemonic */
	uint8_t op_cnt;   /* operands that are written; a pseudo-op hides its immediate */
	uint8_t sae_op;   /* operand after which {sae} or {rn-sae} stands, 255 for none */
	uint8_t used_len; /* of `t->text` */
	bool is_lone_fwait_gone; /* an fwait before it makes fnstcw an fstcw */
	const char *fixed_name;   /* mnemonic that the bytes get whatever they decode to, or null */
	const char *fixed_seg;    /* likewise the segment or bound register, or null */
	bool is_bcst_counted; /* the mnemonic does not tell the element count: [rax]{1to8} */
	arch_name_fn *name;
	void *name_ctx;
	struct arch_text *t;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* Names longer than this are cut, so that the rest of the instruction still fits. */
#define X86_NAME_MAX 140

/* Text that does not fit is cut; ARCH_TEXT_MAX leaves room for every instruction and a long name. */
static inline void x86_put(struct x86_text *x, const char *s, size_t len)
{
	size_t room = ARCH_TEXT_MAX - 1 - (size_t)x->used_len;
	if (len > room)
		len = room;
	memcpy(x->t->text + x->used_len, s, len);
	x->used_len = (uint8_t)(x->used_len + len);
}

static inline void x86_put_ch(struct x86_text *x, char ch)
{
	if (x->used_len < ARCH_TEXT_MAX - 1)
		x->t->text[x->used_len++] = ch;
}

#define X86_PUT(x, literal) x86_put((x), (literal), sizeof(literal) - 1)

/* Ends a token that began at text offset `from`. */
static inline void x86_span(struct x86_text *x, uint8_t from, enum arch_token kind)
{
	if (x->t->span_cnt < ARCH_SPAN_MAX && x->used_len > from)
		x->t->spans[x->t->span_cnt++] = (struct arch_span){
			.off = from, .len = (uint8_t)(x->used_len - from), .kind = (uint8_t)kind,
			.operand = x->operand};
}

/* "0x2f" */
void x86_put_hex(struct x86_text *x, uint64_t v);

/* An address: its name when there is one, else hex. */
void x86_put_addr(struct x86_text *x, uint64_t va);

/* The operand as objdump writes it. */
void x86_put_operand(struct x86_text *x, unsigned i);

/* Prefixes that stand before the mnemonic, each with a space after it. */
void x86_put_prefixes(struct x86_text *x);

/* mov between the accumulator and an absolute address that stands in the instruction. */
static inline bool x86_is_moffs(const struct x86_text *x)
{
	return x->in.opcode >= 0xa0 && x->in.opcode <= 0xa3 && x->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
}

/* mov to or from a segment register. */
static inline bool x86_is_mov_seg(const struct x86_text *x)
{
	return (x->in.opcode == 0x8c || x->in.opcode == 0x8e) && x->in.mnemonic == ZYDIS_MNEMONIC_MOV;
}

/* An indirect branch whose ds prefix says that no landing pad is needed. */
static inline bool x86_is_notrack(const struct x86_text *x)
{
	return (x->in.attributes & ZYDIS_ATTRIB_HAS_NOTRACK) &&
	       x->ops[0].type != ZYDIS_OPERAND_TYPE_POINTER;
}

/* jmp, call and ret that objdump reads as 16 bits wide in 64-bit mode; processors differ on it. */
bool x86_is_short_branch(const struct x86_text *x);

/* Writes one prefix that does nothing, and no space. */
void x86_put_idle_prefix(struct x86_text *x, uint8_t v);

/* Mnemonic without a space after it; sets op_cnt when the mnemonic swallows operands. */
void x86_put_mnemonic(struct x86_text *x);

/* Whether memory operands of this instruction are written without "DWORD PTR"; else the width in bits
 * that is written, which is not always that of the access. */
unsigned x86_mem_width(const struct x86_text *x, const ZydisDecodedOperand *op);

/* Whether neither mnemonic nor registers tell how many elements a broadcast operand makes. */
bool x86_hides_width(const struct x86_text *x);

/* The last prefix among `values`, or 0. */
uint8_t x86_last_prefix(const ZydisDecodedInstruction *in, const uint8_t *values, size_t cnt);

#endif
