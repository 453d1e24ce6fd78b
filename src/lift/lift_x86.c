/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

#include "arch/x86/x86_zydis.h"

#include <stdio.h>
#include <string.h>

/*
 * Blocks are lifted in the order they are reached, so that the height of the x87 stack is known at each; those nobody reaches
 * come last. Flags that a later block reads are put into their locations afterwards, when all is known.
 */
#define ALL_FLAGS ((1u << LIFT_FLAG_CNT) - 1)

/* --- blocks ------------------------------------------------------------------------------------------------ */
/* Number of the code's block that begins at `va`, or -1. */
static int64_t code_block(const struct lift_code *code, uint64_t va)
{
	uint32_t lo = 0, hi = code->block_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (code->blocks[mid].va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < code->block_cnt && code->blocks[lo].va == va ? (int64_t)lo : -1;
}

static uint32_t add_exit(struct lift_x86 *x, uint64_t va, bool is_nowhere)
{
	if (x->exit_cnt == x->exit_cap) {
		uint32_t cap = x->exit_cap * 2 + 16;
		struct lift_exit *bigger = ARENA_ARRAY(x->f->arena, struct lift_exit, cap);
		if (!bigger) {
			x->f->failed = true;
			return 0;
		}
		if (x->exit_cnt)
			memcpy(bigger, x->exits, x->exit_cnt * sizeof(*bigger));
		x->exits = bigger;
		x->exit_cap = cap;
	}
	uint32_t block = ir_block_new(x->f, UINT64_MAX);
	x->exits[x->exit_cnt++] = (struct lift_exit){.block = block, .va = va, .is_nowhere = is_nowhere};
	return block;
}

static void reach(struct lift_x86 *x, uint32_t i)
{
	struct lift_done *d = &x->done[i];
	if (d->is_reached) {
		bool is_same = d->top == x->top || (d->is_open && x->top == d->top - 1) || (x->is_open && d->top == x->top - 1);
		x->stats.x87_differs |= !is_same;
		return;
	}
	d->is_reached = true;
	d->top = x->top;
	d->is_open = x->is_open;
	x->todo[x->todo_cnt++] = i;
}

uint32_t lift_block_for(struct lift_x86 *x, uint64_t va)
{
	int64_t i = x->is_single ? -1 : code_block(x->code, va);
	if (i < 0)
		return add_exit(x, va, false);
	reach(x, (uint32_t)i);
	return 1 + (uint32_t)i;
}

uint32_t lift_block_nowhere(struct lift_x86 *x)
{
	return add_exit(x, 0, true);
}

void lift_goto(struct lift_x86 *x, uint64_t va)
{
	bool is_inside = !x->is_single && code_block(x->code, va) >= 0;
	struct ir_rec rec = {.op = IR_JMP, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	if (is_inside) {
		rec.a = ir_block_ref(lift_block_for(x, va));
	} else {
		rec.op = IR_IJMP;
		rec.a = lift_k(x, x->aw, va);
	}
	ir_emit(x->f, &rec);
	x->is_ended = true;
}

/* --- instructions ------------------------------------------------------------------------------------------ */
/* Of the operands, those that are written in assembler: what is lifted by hand knows what else its instruction touches. */
static bool decode(struct lift_x86 *x, const uint8_t *p, size_t len)
{
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(x->decoder, &x->ctx, p, len, &x->in)) || x86_is_foreign(&x->in))
		return false;
	x->op_cnt = x->in.operand_count_visible;
	return !x->op_cnt || ZYAN_SUCCESS(ZydisDecoderDecodeOperands(x->decoder, &x->ctx, &x->in, x->ops, x->op_cnt));
}

/* All of them. */
static bool decode_hidden(struct lift_x86 *x)
{
	x->op_cnt = x->in.operand_count;
	return ZYAN_SUCCESS(ZydisDecoderDecodeOperands(x->decoder, &x->ctx, &x->in, x->ops, x->op_cnt));
}

/* The instruction at `p`, which is at `va`; gives its length. */
static size_t lift_one(struct lift_x86 *x, const uint8_t *p, size_t len, uint64_t va)
{
	x->va = va;
	x->bytes = p;
	x->stats.insn_cnt++;
	if (!decode(x, p, len)) {
		ir_origin_set(x->f, va, 1);
		x->stats.bad_cnt++;
		lift_do_trap(x, IR_TRAP_DECODE);
		return 1;
	}
	for (unsigned i = 0; i < x->op_cnt; i++)
		x->addr[i] = IR_REF_NONE;
	ir_origin_set(x->f, va, x->in.length);
	if (x->is_open && lift_x87_is(&x->in))
		lift_x87_settle(x);
	/* movsd and cmpsd are names of two instructions each. */
	bool is_string = x->in.meta.category == ZYDIS_CATEGORY_STRINGOP;
	struct lift_row row = is_string ? (struct lift_row){lift_do_string, 0} : lift_row_of(x->in.mnemonic);
	if (!row.fn || !row.fn(x, row.arg)) {
		x->stats.generic_cnt++;
		for (unsigned i = x->op_cnt; i < x->in.operand_count; i++)
			x->addr[i] = IR_REF_NONE;
		if (decode_hidden(x))
			lift_generic(x);
		else
			lift_do_trap(x, IR_TRAP_DECODE);
	}
	return x->in.length;
}

static void lift_block(struct lift_x86 *x, uint32_t i)
{
	const struct lift_block *b = &x->code->blocks[i];
	struct lift_done *d = &x->done[i];
	ir_block_begin(x->f, 1 + i);
	lift_flags_reset(x);
	x->flags_read = 0;
	x->is_ended = false;
	x->top = d->top;
	x->is_open = d->is_open;
	uint32_t off = 0;
	while (off < b->len && !x->is_ended && !x->f->failed)
		off += (uint32_t)lift_one(x, b->bytes + off, b->len - off, b->va + off);
	if (!x->is_ended)
		lift_goto(x, x->is_64 ? b->va + off : (uint32_t)(b->va + off));
	d->flags_read = x->flags_read;
	memcpy(d->flags, x->flags, sizeof(d->flags));
}

/* --- flags between blocks ------------------------------------------------------------------------------------ */
static uint32_t flags_where(const struct lift_done *d, bool (*fn)(const struct lift_flag *f))
{
	uint32_t mask = 0;
	for (unsigned i = 0; i < LIFT_FLAG_CNT; i++)
		mask |= (uint32_t)fn(&d->flags[i]) << i;
	return mask;
}

static bool is_unmade(const struct lift_flag *f)
{
	return f->state != LIFT_FLAG_IN_LOC;
}

static bool may_keep(const struct lift_flag *f)
{
	return f->may_keep;
}

/* Flags alive at the end of each block. A block is looked at again when one behind it wants more; a flag is added at
 * most once, so that is soon over whatever the graph. */
static bool flags_alive(struct lift_x86 *x, uint32_t *alive_out)
{
	struct ir_func *f = x->f;
	struct ir_edges succs, preds;
	uint32_t *todo = ARENA_ARRAY(f->arena, uint32_t, f->block_cnt + 1), cnt = 0;
	bool *is_queued = ARENA_ARRAY(f->arena, bool, f->block_cnt + 1);
	if (!todo || !is_queued || !ir_succs(f, &succs) || !ir_turn_edges(f, &succs, &preds))
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		if (succs.first[b] == succs.first[b + 1])
			alive_out[b] = x->code->flags_live_out ? ALL_FLAGS : LIFT_F_DF;
		todo[cnt++] = b;
		is_queued[b] = true;
	}
	while (cnt) {
		uint32_t b = todo[--cnt], in = alive_out[b];
		is_queued[b] = false;
		if (b >= 1 && b <= x->code->block_cnt)
			in = x->done[b - 1].flags_read | (in & flags_where(&x->done[b - 1], may_keep));
		for (uint32_t i = preds.first[b]; i < preds.first[b + 1]; i++) {
			uint32_t p = preds.list[i];
			if (!(in & ~alive_out[p]))
				continue;
			alive_out[p] |= in;
			if (!is_queued[p])
				todo[cnt++] = p;
			is_queued[p] = true;
		}
	}
	return true;
}

static void put_flags(struct lift_x86 *x)
{
	struct ir_func *f = x->f;
	if (f->failed)
		return;
	uint32_t *alive = ARENA_ARRAY(f->arena, uint32_t, f->block_cnt + 1);
	if (!alive || !flags_alive(x, alive)) {
		f->failed = true;
		return;
	}
	for (uint32_t i = 0; i < x->code->block_cnt && !f->failed; i++) {
		uint32_t mask = alive[1 + i] & flags_where(&x->done[i], is_unmade);
		if (!mask)
			continue;
		uint32_t last = ir_block_reopen(f, 1 + i);
		f->cur_origin = f->recs[last].origin;
		memcpy(x->flags, x->done[i].flags, sizeof(x->flags));
		lift_flags_sync(x, mask);
		ir_block_close(f, last);
	}
}

/* --- functions --------------------------------------------------------------------------------------------- */
static void end_exits(struct lift_x86 *x)
{
	for (uint32_t i = 0; i < x->exit_cnt; i++) {
		const struct lift_exit *e = &x->exits[i];
		ir_block_begin(x->f, e->block);
		if (e->is_nowhere)
			lift_do_trap(x, IR_TRAP_END);
		else {
			const struct ir_rec rec = {
				.op = IR_IJMP, .a = lift_k(x, x->aw, e->va), .b = IR_REF_NONE, .c = IR_REF_NONE,
			};
			ir_emit(x->f, &rec);
		}
	}
}

static struct err *check_code(const struct lift_code *code)
{
	if (!lift_machine(code->arch))
		return err_new(ERR_UNSUPPORTED, "no lifter for this architecture");
	for (uint32_t i = 0; i < code->block_cnt; i++) {
		const struct lift_block *b = &code->blocks[i];
		bool overlaps = i && b->va - code->blocks[i - 1].va < code->blocks[i - 1].len;
		if (!b->len || overlaps || (i && b->va <= code->blocks[i - 1].va))
			return err_new(ERR_INVALID, "the blocks of the function at 0x%llx are empty or out of order",
				       (unsigned long long)code->va);
	}
	if (code_block(code, code->va) < 0)
		return err_new(ERR_INVALID, "no block at the entry 0x%llx", (unsigned long long)code->va);
	return NULL;
}

/* Everything but the blocks' content. */
static struct err *start(struct lift_x86 *x, struct arena *arena, const struct lift_code *code)
{
	const struct arch *a;
	struct err *e = arch_get(code->arch, &a);
	if (e)
		return e;
	uint64_t bytes = 0;
	x->code = code;
	x->is_64 = code->arch == ARCH_ID_X86_64;
	x->aw = x->is_64 ? IR_W64 : IR_W32;
	x->decoder = x86_decoder(a);
	x->f = ir_func_new(arena, lift_machine(code->arch), code->va);
	x->done = ARENA_ARRAY(arena, struct lift_done, code->block_cnt);
	x->todo = ARENA_ARRAY(arena, uint32_t, code->block_cnt);
	if (!x->f || !x->done || !x->todo)
		return &err_nomem;
	for (uint32_t i = 0; i < code->block_cnt; i++)
		bytes += code->blocks[i].len;
	uint64_t limit = code->rec_limit ? code->rec_limit : bytes * 64 + 4096;
	x->f->rec_limit = limit < IR_REF_INDEX_MAX ? (uint32_t)limit : IR_REF_INDEX_MAX;
	/* Measured: about one record for each byte of code, four bytes an instruction. */
	ir_reserve(x->f, (uint32_t)(bytes < UINT32_MAX / 2 ? bytes + bytes / 4 + 16 : 0), (uint32_t)(bytes / 4 + 4));
	ir_block_new(x->f, code->va);
	for (uint32_t i = 0; i < code->block_cnt; i++)
		ir_block_new(x->f, code->blocks[i].va);
	return NULL;
}

static struct err *lift_blocks(struct lift_x86 *x)
{
	uint32_t entry = (uint32_t)code_block(x->code, x->code->va);
	const struct ir_rec rec = {.op = IR_JMP, .a = ir_block_ref(1 + entry), .b = IR_REF_NONE, .c = IR_REF_NONE};
	ir_origin_set(x->f, x->code->va, 0);
	ir_block_begin(x->f, 0);
	ir_emit(x->f, &rec);
	reach(x, entry);
	for (uint32_t next = 0; !x->f->failed; next++) {
		while (x->todo_cnt && !x->f->failed)
			lift_block(x, x->todo[--x->todo_cnt]);
		while (next < x->code->block_cnt && x->done[next].is_reached)
			next++;
		if (next == x->code->block_cnt)
			break;
		x->top = 0;
		x->is_open = false;
		reach(x, next);
	}
	end_exits(x);
	put_flags(x);
	return ir_status(x->f);
}

struct err *lift_func(struct arena *arena, const struct lift_code *code, struct ir_func **ret, struct lift_stats *ret_stats)
{
	struct lift_x86 x = {0};
	*ret = NULL;
	struct err *e = check_code(code);
	if (!e)
		e = start(&x, arena, code);
	if (!e)
		e = lift_blocks(&x);
	if (e)
		return e;
	if (ret_stats)
		*ret_stats = x.stats;
	*ret = x.f;
	return NULL;
}

/* --- one instruction --------------------------------------------------------------------------------------- */
static const char *form_of(const struct lift_x86 *x)
{
	char buf[160];
	int n = snprintf(buf, sizeof(buf), "%s%s%s", x->in.attributes & ZYDIS_ATTRIB_HAS_LOCK ? "lock " : "",
			 x->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) ? "rep " : "",
			 ZydisMnemonicGetString(x->in.mnemonic));
	for (unsigned i = 0; i < x->in.operand_count_visible && n > 0 && n < 140; i++) {
		static const char kinds[] = "?rmpi";
		const ZydisDecodedOperand *op = &x->ops[i];
		char kind = op->type <= ZYDIS_OPERAND_TYPE_IMMEDIATE ? kinds[op->type] : '?';
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			ZydisRegisterClass c = ZydisRegisterGetClass(op->reg.value);
			kind = c == ZYDIS_REGCLASS_XMM || c == ZYDIS_REGCLASS_YMM || c == ZYDIS_REGCLASS_ZMM ? 'x' :
			       c == ZYDIS_REGCLASS_X87 ? 's' : c == ZYDIS_REGCLASS_MMX ? 'y' : c == ZYDIS_REGCLASS_MASK ? 'k' : 'r';
		}
		n += snprintf(buf + n, sizeof(buf) - (size_t)n, " %c%u", kind, op->size);
	}
	return arena_strndup(x->f->arena, buf, strlen(buf));
}

struct err *lift_insn(struct arena *arena, enum arch_id arch, const uint8_t *p, size_t len, uint64_t va, struct lift_insn *ret)
{
	struct lift_x86 x = {.is_single = true};
	struct lift_block block = {.va = va, .bytes = p, .len = (uint32_t)(len > 15 ? 15 : len)};
	const struct lift_code code = {
		.arch = arch, .va = va, .blocks = &block, .block_cnt = 1, .flags_live_out = true,
	};
	struct err *e = check_code(&code);
	if (!e)
		e = start(&x, arena, &code);
	if (e)
		return e;
	bool ok = decode(&x, p, block.len);
	block.len = ok ? x.in.length : 1;
	ret->form = ok ? form_of(&x) : "(bad)";
	e = lift_blocks(&x);
	if (e)
		return e;
	ret->func = x.f;
	ret->len = (uint8_t)block.len;
	ret->is_generic = x.stats.generic_cnt > 0;
	ret->is_bad = !ok;
	ret->x87_delta = (int8_t)x.top;
	return ret->form ? NULL : &err_nomem;
}
