/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_cfi.h"

#include "base/cur.h"

#include <string.h>

/* Pointer encodings (LSB 5.0, 10.5.1). */
enum { ENC_ABSPTR = 0x00, ENC_UDATA4 = 0x03, ENC_SDATA4 = 0x0b, ENC_PCREL = 0x10, ENC_DATAREL = 0x30, ENC_OMIT = 0xff };

/* DWARF's numbers of registers of x86-64. */
enum { REG_BX = 3, REG_DI = 5, REG_BP = 6, REG_SP = 7, REG_12 = 12, REG_RA = 16 };
const uint8_t trace_cfi_kept[TRACE_CFI_KEPT] = {REG_BX, REG_12, REG_12 + 1, REG_12 + 2, REG_12 + 3};

/* What is kept of them: rules of the kept ones, then of these two. */
enum { SLOT_BP = TRACE_CFI_KEPT, SLOT_RA, SLOT_CNT };

#define STEPS_MAX 4096 /* instructions of one program */
#define STACK_MAX 8    /* rows remembered */

enum rule { RULE_SAME, RULE_OFFSET, RULE_DI, RULE_OTHER };

struct row {
	uint8_t base;
	uint8_t rule[SLOT_CNT]; /* enum rule */
	int64_t cfa_off;
	int64_t off[SLOT_CNT];
};

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t enc;
	bool is_signal;
	struct cur program;
};

const uint8_t *trace_cfi_bytes(const struct fmt_bin *b, uint64_t va, size_t *ret_len)
{
	const struct fmt_segment *s = fmt_segment_at(b, va);
	if (!s || va - s->va >= s->file_len)
		return NULL;
	*ret_len = (size_t)(s->file_len - (va - s->va));
	return b->bytes + s->file_off + (va - s->va);
}

static struct cur view_at(const struct fmt_bin *b, uint64_t va)
{
	size_t len = 0;
	const uint8_t *p = trace_cfi_bytes(b, va, &len);
	struct cur c = cur_make(p, len, false);
	c.failed = !p;
	return c;
}

/* A pointer at the cursor, whose first byte is at `va`. Encodings compilers do not use fail. */
static uint64_t read_pointer(struct cur *c, unsigned enc, uint64_t va)
{
	uint64_t base = (enc & 0x70) == ENC_PCREL ? va : 0;
	if (enc & 0x80 || ((enc & 0x70) != ENC_PCREL && enc & 0x70)) {
		c->failed = true;
		return 0;
	}
	switch (enc & 0x0f) {
	case ENC_ABSPTR:
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		return base + cur_u64(c);
	case ENC_UDATA4:
		return base + cur_u32(c);
	case ENC_SDATA4:
		return base + (uint64_t)(int64_t)(int32_t)cur_u32(c);
	default:
		c->failed = true;
		return 0;
	}
}

/* The FDE of the last function in the sorted table that begins at or before `va`; 0: none. */
static uint64_t find_fde(const struct fmt_bin *b, uint64_t va)
{
	uint64_t hdr = b->eh_frame_hdr.va;
	struct cur c = view_at(b, hdr);
	if (!b->eh_frame_hdr.len || cur_u8(&c) != 1)
		return 0;
	unsigned frame_enc = cur_u8(&c), count_enc = cur_u8(&c), table_enc = cur_u8(&c);
	read_pointer(&c, frame_enc, hdr + 4);
	if (c.failed || count_enc != ENC_UDATA4 || table_enc != (ENC_DATAREL | ENC_SDATA4))
		return 0;
	uint32_t count = cur_u32(&c);
	struct cur table = cur_sub(&c, c.pos, (uint64_t)count * 8);
	uint32_t low = 0, high = count;
	if (c.failed || table.failed)
		return 0;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		uint64_t start = hdr + (uint64_t)(int64_t)(int32_t)load_u32(table.base + 8 * (size_t)mid, false);
		if (start <= va)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? hdr + (uint64_t)(int64_t)(int32_t)load_u32(table.base + 8 * (size_t)(low - 1) + 4, false) : 0;
}

static bool read_cie(const struct fmt_bin *b, uint64_t va, struct cie *ret)
{
	struct cur c = view_at(b, va);
	uint32_t len = cur_u32(&c);
	c = cur_sub(&c, 4, len);
	*ret = (struct cie){.enc = ENC_ABSPTR};
	if (cur_u32(&c))
		return false;
	unsigned version = cur_u8(&c);
	size_t letters_len;
	const char *letters = cur_str(&c, &letters_len);
	if (!letters || (version != 1 && version != 3))
		return false;
	ret->code_align = cur_uleb(&c);
	ret->data_align = cur_sleb(&c);
	uint64_t ra = version == 1 ? cur_u8(&c) : cur_uleb(&c);
	if (c.failed || ra != REG_RA || *letters != 'z')
		return false;
	uint64_t aug_len = cur_uleb(&c);
	struct cur aug = cur_sub(&c, c.pos, aug_len);
	cur_skip(&c, aug_len);
	for (letters++; *letters && !aug.failed; letters++) {
		if (*letters == 'R')
			ret->enc = cur_u8(&aug);
		else if (*letters == 'L')
			cur_skip(&aug, 1);
		else if (*letters == 'S')
			ret->is_signal = true;
		else if (*letters == 'P')
			cur_skip(&aug, (cur_u8(&aug) & 0x0f) == ENC_ABSPTR ? 8 : 4);
		else
			return false;
	}
	ret->program = cur_sub(&c, c.pos, cur_left(&c));
	return !c.failed && !aug.failed;
}

/* -1: of those that do not matter here nothing is kept. */
static int slot_of(uint64_t reg)
{
	if (reg >= REG_12 && reg < REG_RA)
		return 1 + (int)(reg - REG_12);
	return reg == REG_BX ? 0 : reg == REG_BP ? SLOT_BP : reg == REG_RA ? SLOT_RA : -1;
}

static void set_rule(struct row *row, uint64_t reg, uint8_t rule, int64_t off)
{
	int i = slot_of(reg);
	if (i < 0)
		return;
	row->rule[i] = rule;
	row->off[i] = off;
}

static void define_cfa(struct row *row, uint64_t reg)
{
	row->base = reg == REG_SP ? TRACE_CFA_SP : reg == REG_BP ? TRACE_CFA_BP : TRACE_CFA_UNKNOWN;
}

struct machine {
	struct row row, first, stack[STACK_MAX];
	unsigned depth;
	uint64_t loc; /* of the row */
};

/* As the CIE has it. */
static void restore(struct machine *m, uint64_t reg)
{
	int i = slot_of(reg);
	if (i >= 0)
		set_rule(&m->row, reg, m->first.rule[i], m->first.off[i]);
}

/* One instruction with its operands in bytes of their own; false: not known. */
static bool step_extended(struct machine *m, struct cur *c, const struct cie *cie, unsigned op)
{
	uint64_t reg;
	switch (op) {
	case 0x00: /* nop */
		return true;
	case 0x02: /* advance_loc1, 2, 4 */
		m->loc += cur_u8(c) * cie->code_align;
		return true;
	case 0x03:
		m->loc += cur_u16(c) * cie->code_align;
		return true;
	case 0x04:
		m->loc += cur_u32(c) * cie->code_align;
		return true;
	case 0x05: /* offset_extended */
		reg = cur_uleb(c);
		set_rule(&m->row, reg, RULE_OFFSET, (int64_t)(cur_uleb(c) * (uint64_t)cie->data_align));
		return true;
	case 0x06: /* restore_extended */
		restore(m, cur_uleb(c));
		return true;
	case 0x07: /* undefined: of the return address, there is no caller */
		set_rule(&m->row, cur_uleb(c), RULE_OTHER, 0);
		return true;
	case 0x08: /* same_value */
		set_rule(&m->row, cur_uleb(c), RULE_SAME, 0);
		return true;
	case 0x09: /* register */
		reg = cur_uleb(c);
		set_rule(&m->row, reg, cur_uleb(c) == REG_DI ? RULE_DI : RULE_OTHER, 0);
		return true;
	case 0x0a: /* remember_state */
		if (m->depth == STACK_MAX)
			return false;
		m->stack[m->depth++] = m->row;
		return true;
	case 0x0b: /* restore_state */
		if (!m->depth)
			return false;
		m->row = m->stack[--m->depth];
		return true;
	case 0x0c: /* def_cfa */
		define_cfa(&m->row, cur_uleb(c));
		m->row.cfa_off = (int64_t)cur_uleb(c);
		return true;
	case 0x0d: /* def_cfa_register */
		define_cfa(&m->row, cur_uleb(c));
		return true;
	case 0x0e: /* def_cfa_offset */
		m->row.cfa_off = (int64_t)cur_uleb(c);
		return true;
	case 0x0f: /* def_cfa_expression */
		m->row.base = TRACE_CFA_UNKNOWN;
		cur_skip(c, cur_uleb(c));
		return true;
	case 0x10: /* expression, val_expression */
	case 0x16:
		set_rule(&m->row, cur_uleb(c), RULE_OTHER, 0);
		cur_skip(c, cur_uleb(c));
		return true;
	case 0x12: /* def_cfa_sf */
		define_cfa(&m->row, cur_uleb(c));
		m->row.cfa_off = cur_sleb(c) * cie->data_align;
		return true;
	case 0x13: /* def_cfa_offset_sf */
		m->row.cfa_off = cur_sleb(c) * cie->data_align;
		return true;
	case 0x2e: /* GNU_args_size */
		cur_uleb(c);
		return true;
	default:
		return false;
	}
}

/* Runs a program up to the row of `va`; false: it is not understood. */
static bool run(struct machine *m, struct cur c, const struct cie *cie, uint64_t va)
{
	for (unsigned step = 0; cur_left(&c) && step < STEPS_MAX; step++) {
		unsigned op = cur_u8(&c), low = op & 0x3f;
		switch (op & 0xc0) {
		case 0x40: /* advance_loc */
			m->loc += low * cie->code_align;
			break;
		case 0x80: /* offset */
			set_rule(&m->row, low, RULE_OFFSET, (int64_t)(cur_uleb(&c) * (uint64_t)cie->data_align));
			break;
		case 0xc0: /* restore */
			restore(m, low);
			break;
		default:
			if (!step_extended(m, &c, cie, op))
				return false;
		}
		if (c.failed)
			return false;
		/* An instruction that goes on changes nothing else: this was the row. */
		if (m->loc > va)
			return true;
	}
	return !cur_left(&c);
}

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* An FDE taken apart as far as its program. */
struct fde {
	uint64_t start, range;
	struct cie cie;
	struct cur program;
};

static bool read_fde(const struct fmt_bin *b, uint64_t va, struct fde *ret)
{
	struct cur c = view_at(b, va);
	uint32_t len = cur_u32(&c);
	c = cur_sub(&c, 4, len);
	uint32_t back = cur_u32(&c);
	if (c.failed || !back || !read_cie(b, va + 4 - back, &ret->cie))
		return false;
	ret->start = read_pointer(&c, ret->cie.enc, va + 8);
	ret->range = read_pointer(&c, ret->cie.enc & 0x0f, 0);
	cur_skip(&c, cur_uleb(&c));
	ret->program = cur_sub(&c, c.pos, cur_left(&c));
	return !c.failed;
}

/* Without a sorted table (programs that are linked statically have none): one record after the other. */
static bool scan_fdes(const struct fmt_bin *b, uint64_t va, struct fde *ret)
{
	struct cur all = view_at(b, b->eh_frame.va);
	struct cur c = cur_sub(&all, 0, MIN(b->eh_frame.len, (uint64_t)all.len));
	while (cur_left(&c) >= 4) {
		uint64_t at = b->eh_frame.va + c.pos;
		uint32_t len = cur_u32(&c);
		if (!len || len > cur_left(&c))
			return false;
		bool is_cie = len >= 4 && !load_u32(c.base + c.pos, false);
		cur_skip(&c, len);
		if (!is_cie && read_fde(b, at, ret) && va >= ret->start && va - ret->start < ret->range)
			return true;
	}
	return false;
}

static void put_saved(const struct row *row, struct trace_cfi_saved *ret)
{
	for (int i = 0; i < TRACE_CFI_KEPT; i++) {
		bool is_saved = row->rule[i] == RULE_OFFSET && fits(row->off[i]);
		ret->where[i] = is_saved ? TRACE_CFI_SAVED : row->rule[i] == RULE_SAME ? TRACE_CFI_SAME : TRACE_CFI_LOST;
		ret->off[i] = is_saved ? (int32_t)row->off[i] : 0;
	}
}

bool trace_cfi_find_saved(const struct fmt_bin *b, uint64_t va, struct trace_cfi_row *ret, struct trace_cfi_saved *ret_saved)
{
	struct fde f;
	if (b->machine != FMT_MACHINE_X86_64)
		return false;
	uint64_t at = find_fde(b, va);
	if (at ? !read_fde(b, at, &f) : !scan_fdes(b, va, &f))
		return false;
	if (va < f.start || va - f.start >= f.range)
		return false;
	struct machine m = {.loc = f.start};
	if (!run(&m, f.cie.program, &f.cie, UINT64_MAX))
		return false;
	m.first = m.row;
	m.loc = f.start;
	m.depth = 0;
	const struct row *r = &m.row;
	if (!run(&m, f.program, &f.cie, va) || !fits(r->cfa_off) || !fits(r->off[SLOT_RA]) || !fits(r->off[SLOT_BP]))
		return false;
	uint8_t ra = r->rule[SLOT_RA], bp = r->rule[SLOT_BP];
	*ret = (struct trace_cfi_row){.base = r->base, .has_ra = ra == RULE_OFFSET, .has_bp = bp == RULE_OFFSET,
		.bp_is_lost = bp == RULE_OTHER || bp == RULE_DI, .ra_is_di = ra == RULE_DI,
		.is_signal = f.cie.is_signal, .cfa_off = (int32_t)r->cfa_off,
		.ra_off = (int32_t)r->off[SLOT_RA], .bp_off = (int32_t)r->off[SLOT_BP]};
	if (ret_saved)
		put_saved(r, ret_saved);
	return true;
}

bool trace_cfi_find(const struct fmt_bin *b, uint64_t va, struct trace_cfi_row *ret)
{
	return trace_cfi_find_saved(b, va, ret, NULL);
}
