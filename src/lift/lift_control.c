/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

#include <stdlib.h>

/* Jumps, calls, returns, traps. */

static void end_with(struct lift_x86 *x, const struct ir_rec *rec)
{
	ir_emit(x->f, rec);
	x->is_ended = true;
}

static void branch(struct lift_x86 *x, ir_ref cond, uint64_t yes, uint64_t no)
{
	const struct ir_rec rec = {
		.op = IR_BR, .a = cond, .b = ir_block_ref(lift_block_for(x, yes)), .c = ir_block_ref(lift_block_for(x, no)),
	};
	end_with(x, &rec);
}

/* Where a relative operand leads; false: it is none. */
static bool relative_target(const struct lift_x86 *x, uint64_t *ret)
{
	if (!lift_is_imm(x, 0) || !x->ops[0].imm.is_relative)
		return false;
	uint64_t va = lift_next_va(x) + x->ops[0].imm.value.u;
	if (x->in.operand_width == 16)
		va = (uint16_t)va;
	*ret = x->is_64 ? va : (uint32_t)va;
	return true;
}

bool lift_do_jcc(struct lift_x86 *x, unsigned cc)
{
	uint64_t to;
	if (!relative_target(x, &to))
		return false;
	branch(x, lift_cond(x, cc), to, lift_next_va(x));
	return true;
}

static ZydisRegister counter(const struct lift_x86 *x)
{
	return x->in.address_width == 64 ? ZYDIS_REGISTER_RCX : x->in.address_width == 32 ? ZYDIS_REGISTER_ECX : ZYDIS_REGISTER_CX;
}

bool lift_do_jcxz(struct lift_x86 *x, unsigned arg)
{
	uint64_t to;
	if (!relative_target(x, &to))
		return false;
	branch(x, lift_is_zero(x, lift_read_gpr(x, counter(x))), to, lift_next_va(x));
	return true;
}

/* loop (arg 0), loope (1), loopne (2) */
bool lift_do_loop(struct lift_x86 *x, unsigned arg)
{
	uint64_t to;
	if (!relative_target(x, &to))
		return false;
	ir_ref c = lift_read_gpr(x, counter(x)), cond, zf = IR_REF_NONE;
	enum ir_width w = lift_width(x, c);
	if (arg)
		zf = lift_flag(x, LIFT_ZF);
	c = lift_op(x, IR_SUB, w, c, lift_k(x, w, 1));
	lift_write_gpr(x, counter(x), c);
	cond = lift_not(x, lift_is_zero(x, c));
	if (arg)
		cond = lift_op(x, IR_AND, IR_W1, cond, arg == 1 ? zf : lift_not(x, zf));
	branch(x, cond, to, lift_next_va(x));
	return true;
}

static const struct lift_table *table_at(const struct lift_x86 *x)
{
	uint32_t lo = 0, hi = x->code->table_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (x->code->tables[mid].jump_va < x->va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->code->table_cnt && x->code->tables[lo].jump_va == x->va ? &x->code->tables[lo] : NULL;
}

static void leave_for(struct lift_x86 *x, ir_ref to)
{
	const struct ir_rec rec = {.op = IR_IJMP, .a = to, .b = IR_REF_NONE, .c = IR_REF_NONE};
	end_with(x, &rec);
}

static int by_va(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* A jump whose targets are known: cases by address, anything else is the end of what is known. */
static bool jump_by_table(struct lift_x86 *x, const struct lift_table *t, ir_ref to)
{
	uint64_t *targets = ARENA_ARRAY(x->f->arena, uint64_t, t->target_cnt + 1);
	ir_ref *list = ARENA_ARRAY(x->f->arena, ir_ref, 2 * (size_t)t->target_cnt + 1);
	if (!targets || !list)
		return false;
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < t->target_cnt; i++)
		targets[i] = t->targets[i];
	qsort(targets, t->target_cnt, sizeof(*targets), by_va);
	for (uint32_t i = 0; i < t->target_cnt; i++) {
		if (i && targets[i] == targets[i - 1])
			continue;
		list[cnt++] = lift_k(x, x->aw, targets[i]);
		list[cnt++] = ir_block_ref(lift_block_for(x, targets[i]));
	}
	const struct ir_rec rec = {
		.op = IR_SWITCH, .a = to, .b = ir_list(x->f, list, cnt), .c = cnt, .aux = lift_block_nowhere(x),
	};
	end_with(x, &rec);
	return true;
}

bool lift_do_jmp(struct lift_x86 *x, unsigned arg)
{
	uint64_t va;
	if (relative_target(x, &va)) {
		lift_goto(x, va);
		return true;
	}
	if (x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || !lift_plain(x, 1) || lift_op_width(x, 0) != x->aw)
		return false;
	ir_ref to = lift_read(x, 0);
	const struct lift_table *t = table_at(x);
	if (!t || !t->target_cnt || !jump_by_table(x, t, to))
		leave_for(x, to);
	return true;
}

static bool returns(const struct lift_x86 *x, uint64_t va)
{
	return !x->code->returns || x->code->returns(x->code->ctx, va);
}

/* Whether the call goes to the next instruction, which only pushes its own address. */
static bool call_next(struct lift_x86 *x)
{
	ir_ref sp = lift_op(x, IR_SUB, x->aw, lift_get(x, LIFT_SP), lift_k(x, x->aw, ir_bits(x->aw) / 8));
	const struct ir_rec rec = {
		.op = IR_GADDR, .width = (uint8_t)x->aw, .a = lift_k(x, x->aw, lift_next_va(x)), .b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	lift_store(x, sp, ir_emit(x->f, &rec));
	lift_put(x, LIFT_SP, sp);
	return true;
}

bool lift_do_call(struct lift_x86 *x, unsigned arg)
{
	uint64_t va = 0;
	bool is_direct = relative_target(x, &va);
	if (is_direct && x->in.operand_width == 16)
		return false;
	if (is_direct && va == lift_next_va(x))
		return call_next(x);
	if (!is_direct && (x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || !lift_plain(x, 1) || lift_op_width(x, 0) != x->aw))
		return false;
	ir_ref to = is_direct ? lift_k(x, x->aw, va) : lift_read(x, 0);
	if (x->code->flags_live_out)
		lift_flags_sync(x, (1u << LIFT_FLAG_CNT) - 1);
	else
		lift_flags_sync(x, LIFT_F_DF);
	const struct ir_rec rec = {.op = IR_CALL, .a = to, .b = lift_k(x, x->aw, lift_next_va(x)), .c = IR_REF_NONE};
	ir_emit(x->f, &rec);
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++)
		x->flags[i] = (struct lift_flag){.state = LIFT_FLAG_IN_LOC}; /* the callee's */
	x->is_open = x->top >= 0 && !x->is_single;
	if (is_direct && !returns(x, va)) {
		const struct ir_rec end = {.op = IR_TRAP, .kind = IR_TRAP_END, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
		end_with(x, &end);
	}
	return true;
}

bool lift_do_ret(struct lift_x86 *x, unsigned arg)
{
	if (x->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || x->in.operand_width != ir_bits(x->aw))
		return false;
	unsigned more = lift_is_imm(x, 0) ? (unsigned)(x->ops[0].imm.value.u & 0xffff) : 0;
	const struct ir_rec rec = {.op = IR_RET, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = more};
	end_with(x, &rec);
	return true;
}

bool lift_do_trap(struct lift_x86 *x, unsigned kind)
{
	const struct ir_rec rec = {.op = IR_TRAP, .kind = (uint8_t)kind, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	end_with(x, &rec);
	return true;
}
