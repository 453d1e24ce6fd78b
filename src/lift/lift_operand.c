/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

#include "ir/ir_interp.h"

/* Emitting with folding of what is trivial, operands, addresses. */

/* The record's value when all its operands are constants of at most 64 bits. */
static bool fold(struct lift_x86 *x, const struct ir_rec *rec, ir_ref *ret)
{
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	/* The common case first. */
	if (ir_tag(rec->a) == IR_TAG_VALUE || ir_tag(rec->b) == IR_TAG_VALUE || ir_tag(rec->c) == IR_TAG_VALUE)
		return false;
	struct ir_val v[3] = {{{0}}}, r;
	const char *operands = ir_op_info((enum ir_op)rec->op)->signature + 2;
	enum ir_width xw = IR_W0;
	if (rec->op == IR_GADDR || rec->op == IR_UNDEF || ir_op_info((enum ir_op)rec->op)->effects ||
	    ir_bits((enum ir_width)rec->width) > 64)
		return false;
	for (unsigned i = 0; i < 3; i++) {
		if (refs[i] == IR_REF_NONE)
			continue;
		if (!ir_const_get(x->f, refs[i], &v[i].w[0]))
			return false;
		if (operands[i] == 'x')
			xw = ir_ref_width(x->f, refs[i]);
	}
	if (rec->a == IR_REF_NONE || !ir_eval(rec, xw, &v[0], &v[1], &v[2], &r))
		return false;
	*ret = ir_const(x->f, (enum ir_width)rec->width, r.w[0]);
	return true;
}

ir_ref lift_op_kind(struct lift_x86 *x, const struct ir_rec *rec)
{
	ir_ref r;
	return fold(x, rec, &r) ? r : ir_emit(x->f, rec);
}

static bool is_const(const struct lift_x86 *x, ir_ref v, uint64_t value)
{
	uint64_t is;
	return ir_const_get(x->f, v, &is) && is == value;
}

ir_ref lift_op(struct lift_x86 *x, enum ir_op op, enum ir_width w, ir_ref a, ir_ref b)
{
	bool adds = op == IR_ADD || op == IR_SUB || op == IR_OR || op == IR_XOR || op == IR_SHL || op == IR_LSHR || op == IR_ASHR;
	if (adds && b != IR_REF_NONE && is_const(x, b, 0))
		return a;
	const struct ir_rec rec = {.op = (uint8_t)op, .width = (uint8_t)w, .a = a, .b = b, .c = IR_REF_NONE};
	return lift_op_kind(x, &rec);
}

ir_ref lift_k(struct lift_x86 *x, enum ir_width w, uint64_t v)
{
	return ir_const(x->f, w, v);
}

ir_ref lift_get(struct lift_x86 *x, uint16_t loc)
{
	const struct ir_rec rec = {
		.op = IR_GET, .width = x->f->machine->locs[loc].width, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = loc,
	};
	return ir_emit(x->f, &rec);
}

void lift_put(struct lift_x86 *x, uint16_t loc, ir_ref v)
{
	const struct ir_rec rec = {
		.op = IR_PUT, .width = x->f->machine->locs[loc].width, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = loc,
	};
	ir_emit(x->f, &rec);
}

ir_ref lift_zext(struct lift_x86 *x, enum ir_width w, ir_ref v)
{
	return lift_width(x, v) == w ? v : lift_op(x, IR_ZEXT, w, v, IR_REF_NONE);
}

ir_ref lift_sext(struct lift_x86 *x, enum ir_width w, ir_ref v)
{
	return lift_width(x, v) == w ? v : lift_op(x, IR_SEXT, w, v, IR_REF_NONE);
}

ir_ref lift_extract(struct lift_x86 *x, enum ir_width w, ir_ref v, unsigned off)
{
	if (lift_width(x, v) == w)
		return v;
	const struct ir_rec rec = {.op = IR_EXTRACT, .width = (uint8_t)w, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = off};
	return lift_op_kind(x, &rec);
}

ir_ref lift_insert(struct lift_x86 *x, ir_ref into, ir_ref v, unsigned off)
{
	enum ir_width w = lift_width(x, into);
	if (lift_width(x, v) == w)
		return v;
	const struct ir_rec rec = {.op = IR_INSERT, .width = (uint8_t)w, .a = into, .b = v, .c = IR_REF_NONE, .aux = off};
	return lift_op_kind(x, &rec);
}

ir_ref lift_cmp(struct lift_x86 *x, enum ir_kind kind, ir_ref a, ir_ref b)
{
	const struct ir_rec rec = {.op = IR_CMP, .width = IR_W1, .kind = (uint8_t)kind, .a = a, .b = b, .c = IR_REF_NONE};
	return lift_op_kind(x, &rec);
}

ir_ref lift_not(struct lift_x86 *x, ir_ref v)
{
	static const uint64_t ones[8] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
					 UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	enum ir_width w = lift_width(x, v);
	return lift_op(x, IR_XOR, w, v, ir_const_wide(x->f, w, ones));
}

ir_ref lift_sel(struct lift_x86 *x, ir_ref cond, ir_ref a, ir_ref b)
{
	const struct ir_rec rec = {.op = IR_SEL, .width = (uint8_t)lift_width(x, a), .a = cond, .b = a, .c = b};
	if (is_const(x, cond, 1) || a == b)
		return a;
	return is_const(x, cond, 0) ? b : ir_emit(x->f, &rec);
}

ir_ref lift_is_zero(struct lift_x86 *x, ir_ref v)
{
	return lift_cmp(x, IR_CMP_EQ, v, lift_k(x, lift_width(x, v), 0));
}

ir_ref lift_msb(struct lift_x86 *x, ir_ref v)
{
	return lift_cmp(x, IR_CMP_SLT, v, lift_k(x, lift_width(x, v), 0));
}

ir_ref lift_bit(struct lift_x86 *x, ir_ref v, unsigned bit)
{
	return lift_extract(x, IR_W1, v, bit);
}

ir_ref lift_undef(struct lift_x86 *x, enum ir_width w)
{
	const struct ir_rec rec = {.op = IR_UNDEF, .width = (uint8_t)w, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	return ir_emit(x->f, &rec);
}

ir_ref lift_load(struct lift_x86 *x, enum ir_width w, ir_ref addr)
{
	const struct ir_rec rec = {.op = IR_LOAD, .width = (uint8_t)w, .a = addr, .b = IR_REF_NONE, .c = IR_REF_NONE};
	return ir_emit(x->f, &rec);
}

void lift_store(struct lift_x86 *x, ir_ref addr, ir_ref v)
{
	const struct ir_rec rec = {.op = IR_STORE, .width = (uint8_t)lift_width(x, v), .a = addr, .b = v, .c = IR_REF_NONE};
	ir_emit(x->f, &rec);
}

/* --- registers --------------------------------------------------------------------------------------------- */
bool lift_gpr(ZydisRegister r, unsigned *ret_num, enum ir_width *ret_width, unsigned *ret_off)
{
	*ret_off = 0;
	if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15) {
		*ret_width = IR_W64;
		*ret_num = (unsigned)(r - ZYDIS_REGISTER_RAX);
	} else if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D) {
		*ret_width = IR_W32;
		*ret_num = (unsigned)(r - ZYDIS_REGISTER_EAX);
	} else if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W) {
		*ret_width = IR_W16;
		*ret_num = (unsigned)(r - ZYDIS_REGISTER_AX);
	} else if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_R15B) {
		/* al cl dl bl ah ch dh bh spl bpl sil dil r8b .. */
		unsigned i = (unsigned)(r - ZYDIS_REGISTER_AL);
		*ret_width = IR_W8;
		*ret_num = i < 4 ? i : i - 4;
		*ret_off = i >= 4 && i < 8 ? 8 : 0;
	} else {
		return false;
	}
	return true;
}

ir_ref lift_read_gpr(struct lift_x86 *x, ZydisRegister r)
{
	unsigned num, off;
	enum ir_width w;
	if (!lift_gpr(r, &num, &w, &off))
		return lift_undef(x, x->aw);
	return lift_extract(x, w, lift_get(x, lift_gpr_loc(num)), off);
}

void lift_write_gpr(struct lift_x86 *x, ZydisRegister r, ir_ref v)
{
	unsigned num, off;
	enum ir_width w;
	if (!lift_gpr(r, &num, &w, &off))
		return;
	uint16_t loc = lift_gpr_loc(num);
	if (w == IR_W32)
		v = lift_zext(x, x->aw, v);
	else if (w != IR_W64)
		v = lift_insert(x, lift_get(x, loc), v, off);
	lift_put(x, loc, v);
}

int lift_vec(const struct lift_x86 *x, unsigned i)
{
	if (i >= x->op_cnt || x->ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return -1;
	ZydisRegister r = x->ops[i].reg.value;
	if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM15)
		return (int)(r - ZYDIS_REGISTER_XMM0);
	return r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM15 ? (int)(r - ZYDIS_REGISTER_YMM0) : -1;
}

/* --- addresses --------------------------------------------------------------------------------------------- */
uint64_t lift_next_va(const struct lift_x86 *x)
{
	uint64_t va = x->va + x->in.length;
	return x->is_64 ? va : (uint32_t)va;
}

static ir_ref gaddr(struct lift_x86 *x, uint64_t va)
{
	const struct ir_rec rec = {
		.op = IR_GADDR, .width = (uint8_t)x->aw, .a = lift_k(x, x->aw, va), .b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	return ir_emit(x->f, &rec);
}

static bool is_image_addr(const struct lift_x86 *x, uint64_t v)
{
	return x->code->is_addr && x->code->is_addr(x->code->ctx, x->va, v);
}

ir_ref lift_imm(struct lift_x86 *x, enum ir_width w, uint64_t v)
{
	if ((w == IR_W32 || w == IR_W64) && is_image_addr(x, w == IR_W32 ? (uint32_t)v : v)) {
		ir_ref r = gaddr(x, w == IR_W32 ? (uint32_t)v : v);
		return lift_extract(x, w, r, 0);
	}
	return lift_k(x, w, v);
}

/* A register of an address, of the address's width. */
static ir_ref address_part(struct lift_x86 *x, ZydisRegister r, enum ir_width w)
{
	ir_ref v = lift_read_gpr(x, r);
	return lift_extract(x, w, v, 0);
}

static ir_ref add_part(struct lift_x86 *x, enum ir_width w, ir_ref sum, ir_ref part)
{
	return sum == IR_REF_NONE ? part : lift_op(x, IR_ADD, w, sum, part);
}

static bool has_address(const struct lift_x86 *x, unsigned i)
{
	const ZydisDecodedOperandMem *m = &x->ops[i].mem;
	unsigned num, off;
	enum ir_width w;
	if (x->in.address_width == 16 || (m->type != ZYDIS_MEMOP_TYPE_MEM && m->type != ZYDIS_MEMOP_TYPE_AGEN))
		return false;
	if (m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP)
		return m->index == ZYDIS_REGISTER_NONE;
	return (m->base == ZYDIS_REGISTER_NONE || lift_gpr(m->base, &num, &w, &off)) &&
	       (m->index == ZYDIS_REGISTER_NONE || lift_gpr(m->index, &num, &w, &off));
}

/* Without the segment. */
static ir_ref effective(struct lift_x86 *x, const ZydisDecodedOperandMem *m)
{
	enum ir_width w = x->in.address_width == 64 ? IR_W64 : IR_W32;
	uint64_t disp = m->disp.has_displacement ? (uint64_t)m->disp.value : 0;
	if (m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP) {
		uint64_t va = lift_next_va(x) + disp;
		return gaddr(x, w == IR_W32 ? (uint32_t)va : va);
	}
	ir_ref sum = IR_REF_NONE;
	if (m->base != ZYDIS_REGISTER_NONE)
		sum = address_part(x, m->base, w);
	if (m->index != ZYDIS_REGISTER_NONE) {
		ir_ref index = address_part(x, m->index, w);
		unsigned shift = m->scale > 1 ? (unsigned)__builtin_ctz(m->scale) : 0;
		sum = add_part(x, w, sum, lift_op(x, IR_SHL, w, index, lift_k(x, IR_W8, shift)));
	}
	if (disp || sum == IR_REF_NONE)
		sum = add_part(x, w, sum, lift_imm(x, w, disp));
	return lift_zext(x, x->aw, sum);
}

bool lift_address(struct lift_x86 *x, unsigned i, ir_ref *ret)
{
	const ZydisDecodedOperandMem *m = &x->ops[i].mem;
	if (x->ops[i].type != ZYDIS_OPERAND_TYPE_MEMORY || !has_address(x, i))
		return false;
	if (x->addr[i] != IR_REF_NONE) {
		*ret = x->addr[i];
		return true;
	}
	ir_ref ea = effective(x, m);
	bool is_fs = m->segment == ZYDIS_REGISTER_FS;
	if ((is_fs || m->segment == ZYDIS_REGISTER_GS) && m->type == ZYDIS_MEMOP_TYPE_MEM)
		ea = lift_op(x, IR_ADD, x->aw, lift_get(x, is_fs ? LIFT_FSBASE : LIFT_GSBASE), ea);
	*ret = x->addr[i] = ea;
	return true;
}

/* --- operands ---------------------------------------------------------------------------------------------- */
bool lift_is_mem(const struct lift_x86 *x, unsigned i)
{
	return i < x->op_cnt && x->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
}

bool lift_is_reg(const struct lift_x86 *x, unsigned i)
{
	return i < x->op_cnt && x->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

bool lift_is_imm(const struct lift_x86 *x, unsigned i)
{
	return i < x->op_cnt && x->ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

enum ir_width lift_op_width(const struct lift_x86 *x, unsigned i)
{
	return i < x->op_cnt ? ir_width_of(x->ops[i].size) : IR_W0;
}

bool lift_plain(struct lift_x86 *x, unsigned cnt)
{
	unsigned num, off;
	enum ir_width w;
	if (cnt > x->op_cnt)
		return false;
	for (unsigned i = 0; i < cnt; i++) {
		const ZydisDecodedOperand *op = &x->ops[i];
		bool ok = op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
			  (op->type == ZYDIS_OPERAND_TYPE_REGISTER && lift_gpr(op->reg.value, &num, &w, &off)) ||
			  (op->type == ZYDIS_OPERAND_TYPE_MEMORY && has_address(x, i));
		if (!ok || (op->type != ZYDIS_OPERAND_TYPE_IMMEDIATE && lift_op_width(x, i) == IR_W0))
			return false;
	}
	return true;
}

ir_ref lift_read(struct lift_x86 *x, unsigned i)
{
	const ZydisDecodedOperand *op = &x->ops[i];
	ir_ref addr;
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return lift_read_gpr(x, op->reg.value);
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return lift_imm(x, lift_op_width(x, 0), op->imm.value.u);
	default:
		return lift_address(x, i, &addr) ? lift_load(x, lift_op_width(x, i), addr) : lift_undef(x, IR_W64);
	}
}

void lift_write(struct lift_x86 *x, unsigned i, ir_ref v)
{
	ir_ref addr;
	if (lift_is_reg(x, i))
		lift_write_gpr(x, x->ops[i].reg.value, v);
	else if (lift_address(x, i, &addr))
		lift_store(x, addr, v);
}
