/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_copy.h"

#include <string.h>

ir_ref dec_copied(const struct dec_copy *c, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? c->map[ir_index(r)] : r;
}

struct ir_func *dec_func_like(struct ir_func *f, struct arena *a)
{
	struct ir_func *o = ir_func_new(a, f->machine, f->va);
	if (!o)
		return NULL;
	o->self = f->self;
	o->sigs = f->sigs;
	o->sig_cnt = f->sig_cnt;
	o->origins = f->origins;
	o->origin_cnt = o->origin_cap = f->origin_cnt;
	o->intrins = f->intrins;
	o->intrin_cnt = o->intrin_cap = f->intrin_cnt;
	o->consts = f->consts;
	o->const_cnt = f->const_cnt;
	o->const_cap = f->const_cap;
	o->words = f->words;
	o->word_cnt = f->word_cnt;
	o->word_cap = f->word_cap;
	o->const_hash = f->const_hash;
	o->const_hash_cap = f->const_hash_cap;
	for (uint32_t i = 0; i < f->block_cnt; i++)
		ir_block_new(o, f->blocks[i].va);
	return o->failed ? NULL : o;
}

static ir_ref copy_list(struct dec_copy *c, const struct ir_rec *rec)
{
	struct ir_rec out = *rec;
	out.b = c->b.f->list_cnt;
	for (uint32_t i = 0; i < rec->c; i++) {
		ir_ref r = rec->op == IR_PHI ? c->f->lists[rec->b + i] : dec_copied(c, c->f->lists[rec->b + i]);
		(void)ir_list(c->b.f, &r, 1);
	}
	if (rec->op == IR_SWITCH)
		out.a = dec_copied(c, rec->a);
	return dec_put_rec(&c->b, &out);
}

static ir_ref copy_rec(struct dec_copy *c, const struct ir_rec *rec)
{
	struct ir_rec out = *rec;
	if (ir_has_list((enum ir_op)rec->op))
		return copy_list(c, rec);
	unsigned n = ir_fixed_operands((enum ir_op)rec->op);
	out.a = n > 0 ? dec_copied(c, rec->a) : out.a;
	out.b = n > 1 ? dec_copied(c, rec->b) : out.b;
	out.c = n > 2 ? dec_copied(c, rec->c) : out.c;
	bool is_value = dec_is_pure((enum ir_op)rec->op) || rec->op == IR_DIV || rec->op == IR_DIVW;
	return is_value ? dec_op(&c->b, &out) : dec_put_rec(&c->b, &out);
}

static void copy_block(struct dec_copy *c, uint32_t block)
{
	const struct ir_func *f = c->f;
	bool is_begun = !c->begin;
	dec_build_block(&c->b, block);
	for (uint32_t i = f->blocks[block].first; i < f->blocks[block].last && !c->b.failed; i++) {
		uint32_t id = f->order[i];
		const struct ir_rec *rec = &f->recs[id];
		c->b.f->cur_origin = rec->origin;
		if (rec->op != IR_PHI && !is_begun) {
			c->begin(c, block);
			is_begun = true;
		}
		ir_ref r = IR_REF_NONE;
		if (rec->op == IR_PHI || !c->rec || !c->rec(c, id, &r))
			r = copy_rec(c, rec);
		c->map[id] = r;
		if (rec->op == IR_PHI)
			c->phi_of[id] = ir_index(r);
	}
	c->is_done[block] = true;
}

/* Operands of joins, which may be made after them. */
static void map_phis(struct dec_copy *c)
{
	const struct ir_func *f = c->f;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *was = &f->recs[f->order[i]];
		if (was->op != IR_PHI)
			continue;
		const struct ir_rec *is = &c->b.f->recs[c->phi_of[f->order[i]]];
		bool is_part = c->is_part && c->is_part[f->order[i]];
		for (uint32_t k = 0; k < was->c; k++)
			c->b.f->lists[is->b + k] = is_part ? c->part[was->b + k] : dec_copied(c, f->lists[was->b + k]);
	}
}

struct err *dec_copy_init(struct dec_copy *c, struct dec *d)
{
	struct ir_func *f = d->f;
	c->d = d;
	c->f = f;
	struct ir_func *o = dec_func_like(f, d->arena);
	c->map = ARENA_RAW_ARRAY(d->arena, ir_ref, f->rec_cnt + (size_t)1);
	c->phi_of = ARENA_RAW_ARRAY(d->arena, uint32_t, f->rec_cnt + (size_t)1);
	c->is_done = ARENA_ARRAY(d->arena, bool, f->block_cnt + (size_t)1);
	bool ok = o && c->map && c->phi_of && c->is_done && dec_graph_make(f, d->arena, &c->g) &&
		  dec_build_init(&c->b, o, &c->g, f->order_cnt + f->order_cnt / 4 + 256, d->step_limit - d->steps);
	c->b.rules_off = d->opts->rules_off;
	return ok ? NULL : &err_nomem;
}

struct err *dec_copy_run(struct dec_copy *c)
{
	struct ir_func *o = c->b.f;
	for (uint32_t i = 0; i < c->g.rpo_cnt && !c->b.failed; i++)
		copy_block(c, c->g.rpo[i]);
	c->d->steps += c->b.steps;
	if (o->failed || (c->b.failed && c->b.steps <= c->b.step_limit))
		return &err_nomem;
	if (c->b.failed)
		return dec_budget(c->d);
	map_phis(c);
	c->d->f = o;
	return NULL;
}
