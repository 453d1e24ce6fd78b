/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/eh_pointer.h"

/* Formats (low four bits) and what they are relative to (the next three). */
enum {
	EH_ULEB128 = 0x01,
	EH_UDATA2 = 0x02,
	EH_UDATA4 = 0x03,
	EH_UDATA8 = 0x04,
	EH_SIGNED = 0x08, /* a signed word */
	EH_SLEB128 = 0x09,
	EH_SDATA2 = 0x0a,
	EH_SDATA4 = 0x0b,
	EH_SDATA8 = 0x0c,
	EH_RELATIVE_MASK = 0x70,
	EH_TEXTREL = 0x20,
	EH_DATAREL = 0x30,
	EH_FUNCREL = 0x40,
	EH_ALIGNED = 0x50,
};

unsigned dbg_eh_number_bytes(const struct fmt_bin *b, unsigned enc)
{
	switch (enc & DBG_EH_FORMAT_MASK) {
	case DBG_EH_ABSPTR:
	case EH_SIGNED:
		return b->bits / 8;
	case EH_UDATA2:
	case EH_SDATA2:
		return 2;
	case EH_UDATA4:
	case EH_SDATA4:
		return 4;
	case EH_UDATA8:
	case EH_SDATA8:
		return 8;
	default:
		return 0;
	}
}

uint64_t dbg_eh_number(const struct fmt_bin *b, struct cur *c, unsigned enc)
{
	switch (enc & DBG_EH_FORMAT_MASK) {
	case DBG_EH_ABSPTR:
		return cur_word(c, b->bits / 8);
	case EH_SIGNED:
		return b->bits == 64 ? cur_u64(c) : (uint64_t)(int64_t)(int32_t)cur_u32(c);
	case EH_ULEB128:
		return cur_uleb(c);
	case EH_UDATA2:
		return cur_u16(c);
	case EH_UDATA4:
		return cur_u32(c);
	case EH_UDATA8:
	case EH_SDATA8:
		return cur_u64(c);
	case EH_SLEB128:
		return (uint64_t)cur_sleb(c);
	case EH_SDATA2:
		return (uint64_t)(int64_t)(int16_t)cur_u16(c);
	case EH_SDATA4:
		return (uint64_t)(int64_t)(int32_t)cur_u32(c);
	default:
		c->failed = true;
		return 0;
	}
}

/* The value of the pointer-sized slot at `va`, as the loader leaves it. */
static uint64_t eh_slot(const struct fmt_bin *b, uint64_t va, struct cur *c)
{
	uint8_t raw[8] = {0};
	size_t word_len = b->bits / 8;
	if (fmt_read(b, va, raw, word_len) < word_len) {
		c->failed = true;
		return 0;
	}
	struct cur slot = cur_make(raw, sizeof(raw), b->is_be);
	return cur_word(&slot, b->bits / 8);
}

uint64_t dbg_eh_pointer(const struct fmt_bin *b, struct dbg_view *v, unsigned enc,
			const struct dbg_eh_bases *bases)
{
	struct cur *c = &v->cur;
	if (enc == DBG_EH_OMIT)
		return 0;
	if ((enc & EH_RELATIVE_MASK) == EH_ALIGNED) {
		uint64_t word_len = b->bits / 8, at = v->va + c->pos;
		cur_skip(c, (word_len - at % word_len) % word_len);
		return cur_word(c, b->bits / 8);
	}
	uint64_t at_va = v->va + c->pos;
	uint64_t value = dbg_eh_number(b, c, enc);
	if (c->failed || !value)
		return 0;
	switch (enc & EH_RELATIVE_MASK) {
	case 0:
		break;
	case DBG_EH_PCREL:
		value += at_va;
		break;
	case EH_TEXTREL:
		value += bases->text_va;
		break;
	case EH_DATAREL:
		value += bases->data_va;
		break;
	case EH_FUNCREL:
		value += bases->func_va;
		break;
	default:
		c->failed = true;
		return 0;
	}
	value = dbg_trim_va(b, value);
	return enc & DBG_EH_INDIRECT ? eh_slot(b, value, c) : value;
}
