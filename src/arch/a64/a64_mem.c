/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/a64/a64_int.h"

/* effect() of loads and stores: Arm ARM, C4.1, "loads and stores". */

static void add_write(struct arch_effect *r, uint32_t reg)
{
	/* 31 is the zero register in every place this is called for. */
	if (reg != 31)
		r->writes |= (uint64_t)1 << reg;
}

/* The base register is written back. */
static void write_back(struct arch_effect *r, uint32_t base, int64_t delta)
{
	r->writes |= (uint64_t)1 << base;
	if (base == A64_SP)
		r->sp_delta = (int32_t)delta;
}

static void set_store(struct arch_effect *r, uint32_t base, unsigned width)
{
	r->op = ARCH_OP_STORE;
	r->base = (uint8_t)base;
	r->width = (uint8_t)width;
}

/* One register loaded or stored; the caller has set the address. */
static void set_access(uint32_t w, struct arch_effect *r)
{
	unsigned size = w >> 30;
	unsigned opc = a64_bits(w, 22, 2);
	uint32_t rt = a64_bits(w, 0, 5);
	if (a64_bits(w, 26, 1)) {
		r->width = (uint8_t)(opc & 2 ? 16 : 1 << size);
		if (!(opc & 1))
			r->op = ARCH_OP_STORE;
		return;
	}
	if (size == 3 && opc == 2)
		return; /* prfm */
	r->width = (uint8_t)(1 << size);
	if (opc == 0) {
		r->op = ARCH_OP_STORE;
		if (rt != 31)
			r->src1 = (uint8_t)rt;
		return;
	}
	if (rt == 31)
		return;
	r->op = ARCH_OP_LOAD;
	r->dst = (uint8_t)rt;
	r->is_signed = opc >= 2;
	if (r->is_signed)
		r->ext_width = opc == 2 ? 8 : 4;
	add_write(r, rt);
}

static void literal(uint32_t w, uint64_t va, struct arch_effect *r)
{
	static const uint8_t widths[4] = {4, 8, 4, 0};
	unsigned opc = w >> 30;
	uint32_t rt = a64_bits(w, 0, 5);
	if (a64_bits(w, 26, 1) || opc == 3 || rt == 31)
		return;
	r->op = ARCH_OP_LOAD;
	r->dst = (uint8_t)rt;
	r->imm = (int64_t)(va + (uint64_t)(a64_sbits(w, 5, 19) * 4));
	r->width = widths[opc];
	r->is_signed = opc == 2;
	if (r->is_signed)
		r->ext_width = 8;
	add_write(r, rt);
}

/* log2 of the bytes that immediate and register offsets count in. */
static unsigned access_shift(uint32_t w)
{
	return a64_bits(w, 26, 1) && (a64_bits(w, 22, 2) & 2) ? 4 : w >> 30;
}

/* [base, index, extend #shift] */
static void register_offset(uint32_t w, struct arch_effect *r)
{
	unsigned option = a64_bits(w, 13, 3);
	uint32_t index = a64_bits(w, 16, 5);
	r->base = (uint8_t)a64_bits(w, 5, 5);
	if (index != 31) {
		r->index = (uint8_t)index;
		r->scale = (uint8_t)(a64_bits(w, 12, 1) ? 1 << access_shift(w) : 1);
		r->index_width = option & 1 ? 0 : 4;
		r->is_index_signed = option >= 4;
	}
	set_access(w, r);
}

/* Signed 9-bit offset: unscaled, pre- and post-indexed. */
static void offset9(uint32_t w, struct arch_effect *r)
{
	unsigned mode = a64_bits(w, 10, 2);
	int64_t imm = a64_sbits(w, 12, 9);
	r->base = (uint8_t)a64_bits(w, 5, 5);
	r->imm = mode == 1 ? 0 : imm;
	set_access(w, r);
	if (mode & 1)
		write_back(r, r->base, imm);
}

static void pair(uint32_t w, struct arch_effect *r)
{
	unsigned mode = a64_bits(w, 23, 2);
	unsigned opc = w >> 30;
	bool is_vector = a64_bits(w, 26, 1);
	bool is_load = a64_bits(w, 22, 1);
	unsigned bytes = is_vector ? 4u << opc : opc == 2 ? 8 : 4;
	/* stgp stores two registers of 8 bytes but counts in 16. */
	unsigned unit = opc == 1 && !is_vector && !is_load ? 16 : bytes;
	int64_t imm = a64_sbits(w, 15, 7) * (int64_t)unit;
	uint32_t base = a64_bits(w, 5, 5);
	r->imm = mode == 1 ? 0 : imm;
	r->base = (uint8_t)base;
	if (!is_load) {
		set_store(r, base, 2 * bytes);
	} else if (!is_vector) {
		add_write(r, a64_bits(w, 0, 5));
		add_write(r, a64_bits(w, 10, 5));
	}
	if (mode & 1)
		write_back(r, base, imm);
}

/* Exclusive and ordered accesses, compare and swap. */
static void exclusive(uint32_t w, struct arch_effect *r)
{
	bool is_load = a64_bits(w, 22, 1);
	bool is_pair = a64_bits(w, 21, 1);
	bool is_ordered = a64_bits(w, 23, 1);
	uint32_t rs = a64_bits(w, 16, 5);
	uint32_t rt = a64_bits(w, 0, 5);
	if (is_ordered && is_pair) {
		add_write(r, rs); /* cas */
	} else if (is_pair && !(w >> 31)) {
		add_write(r, rs); /* casp: two registers from an even one */
		add_write(r, rs | 1);
	} else if (is_load) {
		add_write(r, rt);
		if (is_pair)
			add_write(r, a64_bits(w, 10, 5));
		return;
	} else if (!is_ordered) {
		add_write(r, rs); /* status of stxr */
	}
	set_store(r, a64_bits(w, 5, 5), 1u << (w >> 30));
}

/* Bits 29:27 are 111, bit 24 is 0: one register with one of several kinds of offset. */
static void single(uint32_t w, struct arch_effect *r)
{
	uint32_t rn = a64_bits(w, 5, 5);
	if (!a64_bits(w, 21, 1)) {
		offset9(w, r);
	} else if (a64_bits(w, 10, 2) == 2) {
		register_offset(w, r);
	} else if (a64_bits(w, 10, 2) == 0) {
		add_write(r, a64_bits(w, 0, 5)); /* ldadd, swp and the like; ldapr */
		set_store(r, rn, 1u << (w >> 30));
	} else {
		add_write(r, a64_bits(w, 0, 5)); /* ldraa, ldrab */
		if (a64_bits(w, 11, 1)) {
			write_back(r, rn, 0);
			r->sp_is_known = rn != A64_SP;
		}
	}
}

void a64_mem_effect(uint32_t w, uint64_t va, struct arch_effect *r)
{
	uint32_t rn = a64_bits(w, 5, 5);
	if ((w & 0x3b000000) == 0x18000000) {
		literal(w, va, r);
	} else if ((w & 0x3b000000) == 0x39000000) {
		r->base = (uint8_t)rn;
		r->imm = (int64_t)a64_bits(w, 10, 12) << access_shift(w);
		set_access(w, r);
	} else if ((w & 0x3b000000) == 0x38000000) {
		single(w, r);
	} else if ((w & 0x3a000000) == 0x28000000) {
		pair(w, r);
	} else if ((w & 0x3f000000) == 0x08000000) {
		exclusive(w, r);
	} else if ((w & 0xbe800000) == 0x0c800000) {
		/* Vector structures with the base moved on. */
		write_back(r, rn, 0);
		r->sp_is_known = rn != A64_SP;
	} else if ((w & 0xff200000) == 0xd9200000) {
		/* Memory tags: stg and the like move the base on in two of their forms, ldg loads. */
		if (a64_bits(w, 10, 1))
			write_back(r, rn, a64_sbits(w, 12, 9) * 16);
		else if (!a64_bits(w, 11, 1))
			add_write(r, a64_bits(w, 0, 5));
	} else if ((w & 0x3f200c00) == 0x19000000) {
		r->base = (uint8_t)rn; /* ldapur, stlur */
		r->imm = a64_sbits(w, 12, 9);
		set_access(w, r);
	}
}
