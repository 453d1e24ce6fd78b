/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

/* Moves, the stack, conditional moves. */

bool lift_do_mov(struct lift_x86 *x, unsigned arg)
{
	if (!lift_plain(x, 2))
		return false;
	lift_write(x, 0, lift_read(x, 1));
	return true;
}

/* movzx movsx movsxd */
bool lift_do_movx(struct lift_x86 *x, unsigned op)
{
	enum ir_width w = lift_op_width(x, 0);
	/* movsxd to 16 bits: processors disagree on how much it reads. */
	if (!lift_plain(x, 2) || ir_bits(lift_op_width(x, 1)) > ir_bits(w))
		return false;
	ir_ref v = lift_read(x, 1);
	lift_write(x, 0, op == IR_ZEXT ? lift_zext(x, w, v) : lift_sext(x, w, v));
	return true;
}

bool lift_do_movbe(struct lift_x86 *x, unsigned arg)
{
	ir_ref addr;
	unsigned mem = lift_is_mem(x, 0) ? 0 : 1;
	if (!lift_plain(x, 2) || !lift_address(x, mem, &addr))
		return false;
	struct ir_rec rec = {
		.op = IR_LOAD, .width = (uint8_t)lift_op_width(x, 0), .flags = IR_F_BE, .a = addr, .b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	if (mem == 0) {
		rec.op = IR_STORE;
		rec.b = lift_read(x, 1);
		ir_emit(x->f, &rec);
	} else {
		lift_write(x, 0, ir_emit(x->f, &rec));
	}
	return true;
}

bool lift_do_lea(struct lift_x86 *x, unsigned arg)
{
	ir_ref addr;
	enum ir_width w = lift_op_width(x, 0);
	if (!lift_address(x, 1, &addr) || !lift_is_reg(x, 0))
		return false;
	lift_write(x, 0, ir_bits(w) <= ir_bits(x->aw) ? lift_extract(x, w, addr, 0) : lift_zext(x, w, addr));
	return true;
}

/* The width a push or pop moves, IR_W0 when it is not for us. */
static enum ir_width stack_width(const struct lift_x86 *x)
{
	enum ir_width w = ir_width_of(x->in.operand_width);
	return w == IR_W16 || w == x->aw ? w : IR_W0;
}

static ir_ref sp_plus(struct lift_x86 *x, int bytes)
{
	ir_ref sp = lift_get(x, LIFT_SP);
	return bytes < 0 ? lift_op(x, IR_SUB, x->aw, sp, lift_k(x, x->aw, (uint64_t)-bytes))
			 : lift_op(x, IR_ADD, x->aw, sp, lift_k(x, x->aw, (uint64_t)bytes));
}

bool lift_do_push(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = stack_width(x);
	if (!lift_plain(x, 1) || w == IR_W0)
		return false;
	ir_ref v = lift_is_imm(x, 0) ? lift_imm(x, w, x->ops[0].imm.value.u) : lift_read(x, 0);
	if (lift_width(x, v) != w)
		return false;
	ir_ref sp = sp_plus(x, -(int)ir_bits(w) / 8);
	lift_store(x, sp, v);
	lift_put(x, LIFT_SP, sp);
	return true;
}

/* What pushf gives beside the flags that are locations: bit 1, which is set, and that of interrupts, which programs have on. */
#define FLAGS_SET 0x202

static const struct {
	uint8_t bit;
	uint16_t loc;
} flag_bits[] = {{0, LIFT_CF}, {2, LIFT_PF}, {4, LIFT_AF}, {6, LIFT_ZF}, {7, LIFT_SF}, {10, LIFT_DF}, {11, LIFT_OF}};

bool lift_do_pushf(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = stack_width(x);
	if (w == IR_W0)
		return false;
	ir_ref v = lift_k(x, w, FLAGS_SET);
	for (unsigned i = 0; i < ARRAY_LEN(flag_bits); i++)
		v = lift_insert(x, v, lift_flag(x, flag_bits[i].loc), flag_bits[i].bit);
	ir_ref sp = sp_plus(x, -(int)ir_bits(w) / 8);
	lift_store(x, sp, v);
	lift_put(x, LIFT_SP, sp);
	return true;
}

/* The other bits a program may change (alignment checks, whether there is a cpuid) are not kept. */
bool lift_do_popf(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = stack_width(x);
	if (w == IR_W0)
		return false;
	ir_ref v = lift_load(x, w, lift_get(x, LIFT_SP));
	for (unsigned i = 0; i < ARRAY_LEN(flag_bits); i++)
		lift_flag_value(x, flag_bits[i].loc, lift_bit(x, v, flag_bits[i].bit));
	lift_put(x, LIFT_SP, sp_plus(x, (int)ir_bits(w) / 8));
	return true;
}

/* Of no other frame's pointers. */
bool lift_do_enter(struct lift_x86 *x, unsigned arg)
{
	if (!lift_is_imm(x, 0) || !lift_is_imm(x, 1) || (x->ops[1].imm.value.u & 31) || x->in.operand_width != ir_bits(x->aw))
		return false;
	ir_ref sp = sp_plus(x, -(int)ir_bits(x->aw) / 8);
	lift_store(x, sp, lift_get(x, LIFT_BP));
	lift_put(x, LIFT_BP, sp);
	lift_put(x, LIFT_SP, lift_op(x, IR_SUB, x->aw, sp, lift_k(x, x->aw, x->ops[0].imm.value.u & 0xffff)));
	return true;
}

/* The address of a memory destination is computed after the stack pointer moved; a pop of it keeps what was loaded. */
bool lift_do_pop(struct lift_x86 *x, unsigned arg)
{
	enum ir_width w = stack_width(x);
	if (!lift_plain(x, 1) || w == IR_W0 || lift_op_width(x, 0) != w)
		return false;
	ir_ref sp = lift_get(x, LIFT_SP);
	ir_ref v = lift_load(x, w, sp);
	ir_ref next = lift_op(x, IR_ADD, x->aw, sp, lift_k(x, x->aw, ir_bits(w) / 8));
	if (lift_is_mem(x, 0)) {
		if (x->ops[0].mem.base == ZYDIS_REGISTER_RSP || x->ops[0].mem.base == ZYDIS_REGISTER_ESP)
			return false;
		lift_write(x, 0, v);
		lift_put(x, LIFT_SP, next);
		return true;
	}
	/* What was loaded goes straight to its register, unless that is the stack pointer, which keeps it. */
	bool is_sp = x->ops[0].reg.value == ZYDIS_REGISTER_RSP || x->ops[0].reg.value == ZYDIS_REGISTER_ESP ||
		     x->ops[0].reg.value == ZYDIS_REGISTER_SP;
	if (is_sp)
		lift_put(x, LIFT_SP, next);
	lift_write(x, 0, v);
	if (!is_sp)
		lift_put(x, LIFT_SP, next);
	return true;
}

bool lift_do_leave(struct lift_x86 *x, unsigned arg)
{
	if (x->in.operand_width != ir_bits(x->aw))
		return false;
	ir_ref bp = lift_get(x, LIFT_BP);
	ir_ref v = lift_load(x, x->aw, bp);
	lift_put(x, LIFT_SP, lift_op(x, IR_ADD, x->aw, bp, lift_k(x, x->aw, ir_bits(x->aw) / 8)));
	lift_put(x, LIFT_BP, v);
	return true;
}

bool lift_do_xlat(struct lift_x86 *x, unsigned arg)
{
	if (x->in.address_width != ir_bits(x->aw) || (x->in.attributes & ZYDIS_ATTRIB_HAS_SEGMENT))
		return false;
	ir_ref al = lift_zext(x, x->aw, lift_read_gpr(x, ZYDIS_REGISTER_AL));
	ir_ref addr = lift_op(x, IR_ADD, x->aw, lift_get(x, LIFT_BX), al);
	lift_write_gpr(x, ZYDIS_REGISTER_AL, lift_load(x, IR_W8, addr));
	return true;
}

/* The source is read, and a 32-bit register written, whatever the condition. */
bool lift_do_cmov(struct lift_x86 *x, unsigned cc)
{
	if (!lift_plain(x, 2))
		return false;
	ir_ref v = lift_read(x, 1), old = lift_read(x, 0);
	lift_write(x, 0, lift_sel(x, lift_cond(x, cc), v, old));
	return true;
}

bool lift_do_set(struct lift_x86 *x, unsigned cc)
{
	if (!lift_plain(x, 1))
		return false;
	lift_write(x, 0, lift_zext(x, IR_W8, lift_cond(x, cc)));
	return true;
}

bool lift_do_nop(struct lift_x86 *x, unsigned arg)
{
	return true;
}

bool lift_do_fence(struct lift_x86 *x, unsigned arg)
{
	const struct ir_rec rec = {.op = IR_FENCE, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	ir_emit(x->f, &rec);
	return true;
}
