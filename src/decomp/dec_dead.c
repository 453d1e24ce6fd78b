/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/*
 * Requires: SSA. Provides: every record has an effect or is used by one that has; branches are not decided by numbers; every block is
 * reached; a block that only one leads to, and that alone, is part of it. Breaks: numbers of blocks.
 *
 * What goes without a trace: a load nobody needs (reading is no effect), a division that cannot trap.
 */

ir_ref dec_find(ir_ref *rep, ir_ref r)
{
	while (ir_tag(r) == IR_TAG_VALUE && rep[ir_index(r)] != r) {
		ir_ref up = rep[ir_index(r)];
		if (ir_tag(up) == IR_TAG_VALUE)
			rep[ir_index(r)] = rep[ir_index(up)];
		r = up;
	}
	return r;
}

void dec_replace(struct ir_func *f, ir_ref *rep)
{
	for (uint32_t i = 0; i < f->rec_cnt; i++) {
		struct ir_rec *rec = &f->recs[i];
		unsigned n = ir_fixed_operands((enum ir_op)rec->op);
		if (n > 0)
			rec->a = rec->a == IR_REF_NONE ? rec->a : dec_find(rep, rec->a);
		if (n > 1)
			rec->b = rec->b == IR_REF_NONE ? rec->b : dec_find(rep, rec->b);
		if (n > 2)
			rec->c = rec->c == IR_REF_NONE ? rec->c : dec_find(rep, rec->c);
	}
	for (uint32_t i = 0; i < f->list_cnt; i++)
		f->lists[i] = dec_find(rep, f->lists[i]);
}

struct dead {
	struct ir_func *f;
	struct arena *a;
	struct ir_edges preds; /* before branches were decided */
	struct ir_edges succs; /* after */
	bool *is_reached;
	ir_ref *rep;
	uint8_t *is_live;
	uint32_t *stack, depth;
};

/* --- branches --------------------------------------------------------------------------------------------------------------- */
static void jump(struct ir_rec *end, ir_ref to)
{
	*end = (struct ir_rec){.op = IR_JMP, .a = to, .b = IR_REF_NONE, .c = IR_REF_NONE, .origin = end->origin};
}

static void decide(struct ir_func *f, struct ir_rec *end)
{
	uint64_t v;
	if (end->op == IR_BR) {
		if (end->b == end->c)
			jump(end, end->b);
		else if (ir_const_get(f, end->a, &v))
			jump(end, v ? end->b : end->c);
		return;
	}
	if (end->op != IR_SWITCH || ir_tag(end->a) != IR_TAG_CONST)
		return;
	ir_ref to = ir_block_ref(end->aux);
	for (uint32_t i = 0; i + 1 < end->c; i += 2)
		if (f->lists[end->b + i] == end->a)
			to = f->lists[end->b + i + 1];
	jump(end, to);
}

static struct ir_rec *end_of(struct ir_func *f, uint32_t b)
{
	return &f->recs[f->order[f->blocks[b].last - 1]];
}

static bool reach(struct dead *d)
{
	struct ir_func *f = d->f;
	uint32_t depth = 0;
	d->is_reached = ARENA_ARRAY(d->a, bool, f->block_cnt + (size_t)1);
	uint32_t *stack = ARENA_RAW_ARRAY(d->a, uint32_t, f->block_cnt + (size_t)1);
	if (!d->is_reached || !stack || !ir_preds(f, &d->preds))
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++)
		decide(f, end_of(f, b));
	if (!ir_succs(f, &d->succs))
		return false;
	d->is_reached[0] = true;
	stack[depth++] = 0;
	while (depth) {
		uint32_t b = stack[--depth];
		for (uint32_t k = d->succs.first[b]; k < d->succs.first[b + 1]; k++) {
			uint32_t to = d->succs.list[k];
			if (d->is_reached[to])
				continue;
			d->is_reached[to] = true;
			stack[depth++] = to;
		}
	}
	return true;
}

static bool goes(const struct dead *d, uint32_t from, uint32_t to)
{
	if (!d->is_reached[from])
		return false;
	for (uint32_t k = d->succs.first[from]; k < d->succs.first[from + 1]; k++)
		if (d->succs.list[k] == to)
			return true;
	return false;
}

/* --- joins -------------------------------------------------------------------------------------------------------------------- */
/* Values of ways that are gone are dropped. */
static void cut_phis(struct dead *d)
{
	struct ir_func *f = d->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		uint32_t first = d->preds.first[b], n = d->preds.first[b + 1] - first;
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last && d->is_reached[b]; i++) {
			struct ir_rec *phi = &f->recs[f->order[i]];
			if (phi->op != IR_PHI)
				break;
			uint32_t to = 0;
			for (uint32_t k = 0; k < n && k < phi->c; k++)
				if (goes(d, d->preds.list[first + k], b))
					f->lists[phi->b + to++] = f->lists[phi->b + k];
			phi->c = to;
		}
	}
}

/* Whether the join `id` is another value, which stands for it then. */
static bool join_phi(struct dead *d, uint32_t id)
{
	const struct ir_func *f = d->f;
	const struct ir_rec *phi = &f->recs[id];
	ir_ref self = ir_ref_make(IR_TAG_VALUE, id), same = IR_REF_NONE;
	if (d->rep[id] != self)
		return false;
	for (uint32_t k = 0; k < phi->c; k++) {
		ir_ref v = dec_find(d->rep, f->lists[phi->b + k]);
		if (v == self || v == same)
			continue;
		if (same != IR_REF_NONE)
			return false;
		same = v;
	}
	if (same != IR_REF_NONE)
		d->rep[id] = same;
	return same != IR_REF_NONE;
}

/* Whether there were any. */
static bool join_phis(struct dead *d)
{
	const struct ir_func *f = d->f;
	bool changed = true, any = false;
	for (unsigned rounds = 0; changed && rounds < 16; rounds++) {
		changed = false;
		for (uint32_t b = 0; b < f->block_cnt; b++)
			for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last && f->recs[f->order[i]].op == IR_PHI; i++)
				changed |= join_phi(d, f->order[i]);
		any |= changed;
	}
	return any;
}

/* --- life --------------------------------------------------------------------------------------------------------------------- */
static bool stays(const struct ir_func *f, const struct ir_rec *rec)
{
	unsigned effects = ir_op_info((enum ir_op)rec->op)->effects;
	uint64_t by;
	switch (rec->op) {
	case IR_GET:
	case IR_PHI:
	case IR_RES:
		return false;
	case IR_LOAD:
		return rec->flags & IR_F_VOLATILE;
	case IR_DIV:
		if (!ir_const_get(f, rec->b, &by) || !by)
			return true;
		return (rec->kind == IR_DIV_SQUOT || rec->kind == IR_DIV_SREM) && by == dec_mask((enum ir_width)rec->width);
	default:
		return effects != 0;
	}
}

static void mark(void *ctx, ir_ref r)
{
	struct dead *d = ctx;
	if (ir_tag(r) != IR_TAG_VALUE || d->is_live[ir_index(r)])
		return;
	d->is_live[ir_index(r)] = 1;
	d->stack[d->depth++] = ir_index(r);
}

static bool live(struct dead *d)
{
	struct ir_func *f = d->f;
	d->is_live = ARENA_ARRAY(d->a, uint8_t, f->rec_cnt + (size_t)1);
	d->stack = ARENA_RAW_ARRAY(d->a, uint32_t, f->rec_cnt + (size_t)1);
	if (!d->is_live || !d->stack)
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++)
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last && d->is_reached[b]; i++)
			if (stays(f, &f->recs[f->order[i]]))
				mark(d, ir_ref_make(IR_TAG_VALUE, f->order[i]));
	while (d->depth) {
		uint32_t r = d->stack[--d->depth];
		ir_operands(f, &f->recs[r], mark, d);
	}
	return true;
}

/* --- blocks ------------------------------------------------------------------------------------------------------------------- */
static uint32_t only_next(const struct dead *d, const uint32_t *in_cnt, uint32_t b)
{
	const struct ir_rec *end = end_of(d->f, b);
	uint32_t to = ir_index(end->a);
	return end->op == IR_JMP && in_cnt[to] == 1 && to != 0 && to != b ? to : UINT32_MAX;
}

static uint32_t keep(struct dead *d, uint32_t b, bool has_end, uint32_t *order, uint32_t at)
{
	struct ir_func *f = d->f;
	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last - !has_end; i++)
		if (d->is_live[f->order[i]])
			order[at++] = f->order[i];
	return at;
}

static void renumber(struct ir_func *f, struct ir_rec *end, const uint32_t *number)
{
	if (end->op == IR_JMP)
		end->a = ir_block_ref(number[ir_index(end->a)]);
	if (end->op == IR_BR) {
		end->b = ir_block_ref(number[ir_index(end->b)]);
		end->c = ir_block_ref(number[ir_index(end->c)]);
	}
	if (end->op != IR_SWITCH)
		return;
	end->aux = number[end->aux];
	for (uint32_t i = 1; i < end->c; i += 2)
		f->lists[end->b + i] = ir_block_ref(number[ir_index(f->lists[end->b + i])]);
}

/* A block that became part of another has its number, which may stand elsewhere among the ways into a join. */
static bool sort_phis(struct dead *d, const uint32_t *number)
{
	struct ir_func *f = d->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		uint32_t first = d->preds.first[b], n = d->preds.first[b + 1] - first, cnt = 0;
		if (!d->is_reached[b] || f->recs[f->order[f->blocks[b].first]].op != IR_PHI)
			continue;
		uint32_t *keys = ARENA_RAW_ARRAY(d->a, uint32_t, n + (size_t)1);
		uint32_t *sorted = ARENA_RAW_ARRAY(d->a, uint32_t, n + (size_t)1);
		ir_ref *was = ARENA_RAW_ARRAY(d->a, ir_ref, n + (size_t)1);
		if (!keys || !sorted || !was)
			return false;
		bool in_order = true;
		for (uint32_t k = 0; k < n; k++)
			if (goes(d, d->preds.list[first + k], b))
				keys[cnt++] = number[d->preds.list[first + k]];
		for (uint32_t k = 0; k < cnt; k++) {
			uint32_t at = 0;
			for (uint32_t i = 0; i < cnt; i++)
				at += keys[i] < keys[k];
			sorted[k] = at;
			in_order &= at == k;
		}
		for (uint32_t i = f->blocks[b].first; !in_order && i < f->blocks[b].last; i++) {
			const struct ir_rec *phi = &f->recs[f->order[i]];
			if (phi->op != IR_PHI)
				break;
			memcpy(was, &f->lists[phi->b], cnt * sizeof(*was));
			for (uint32_t k = 0; k < cnt; k++)
				f->lists[phi->b + sorted[k]] = was[k];
		}
	}
	return true;
}

static bool move_blocks(struct dead *d)
{
	struct ir_func *f = d->f;
	uint32_t n = f->block_cnt, cnt = 0, at = 0;
	uint32_t *in_cnt = ARENA_ARRAY(d->a, uint32_t, n + (size_t)1);
	uint32_t *number = ARENA_RAW_ARRAY(d->a, uint32_t, n + (size_t)1);
	bool *is_tail = ARENA_ARRAY(d->a, bool, n + (size_t)1);
	uint32_t *order = ARENA_RAW_ARRAY(d->a, uint32_t, f->order_cnt + (size_t)1);
	struct ir_block *blocks = ARENA_RAW_ARRAY(d->a, struct ir_block, n + (size_t)1);
	if (!in_cnt || !number || !is_tail || !order || !blocks)
		return false;
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t k = d->succs.first[b]; k < d->succs.first[b + 1] && d->is_reached[b]; k++)
			in_cnt[d->succs.list[k]]++;
	for (uint32_t b = 0; b < n; b++) {
		uint32_t to = d->is_reached[b] ? only_next(d, in_cnt, b) : UINT32_MAX;
		if (to != UINT32_MAX)
			is_tail[to] = true;
	}
	for (uint32_t b = 0; b < n; b++) {
		if (!d->is_reached[b] || is_tail[b])
			continue;
		uint64_t va = f->blocks[b].va;
		uint32_t first = at;
		number[b] = cnt;
		for (uint32_t x = b, to; ; x = to) {
			to = only_next(d, in_cnt, x);
			at = keep(d, x, to == UINT32_MAX, order, at);
			if (to == UINT32_MAX)
				break;
			va = va == UINT64_MAX ? f->blocks[to].va : va;
			number[to] = cnt;
		}
		blocks[cnt++] = (struct ir_block){va, first, at};
	}
	if (!sort_phis(d, number))
		return false;
	f->order = order;
	f->order_cnt = f->order_cap = at;
	f->blocks = blocks;
	f->block_cnt = f->block_cap = cnt;
	for (uint32_t b = 0; b < cnt; b++)
		renumber(f, end_of(f, b), number);
	return true;
}

struct err *dec_dead(struct dec *dec)
{
	struct dead d = {.f = dec->f, .a = dec->arena};
	struct ir_func *f = dec->f;
	if (!reach(&d))
		return &err_nomem;
	d.rep = ARENA_RAW_ARRAY(d.a, ir_ref, f->rec_cnt + (size_t)1);
	if (!d.rep)
		return &err_nomem;
	for (uint32_t i = 0; i < f->rec_cnt; i++)
		d.rep[i] = ir_ref_make(IR_TAG_VALUE, i);
	cut_phis(&d);
	if (join_phis(&d))
		dec_replace(f, d.rep);
	return live(&d) && move_blocks(&d) ? NULL : &err_nomem;
}
