/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_copy.h"

/*
 * Requires: SSA, every block reached. Provides: joins no wider than their values are, or than anybody asks. Breaks: nothing.
 *
 * A register of 64 bits carries narrower values round loops. A join's width by its values is that of the widest of them, joins counting as
 * what they come to themselves (from 1 bit upwards until nothing changes); by its uses it is what the widest of those takes. The smaller one is
 * what the join becomes, with an extension behind it; bits that differ then are bits nobody looks at.
 */

struct range {
	struct dec *d;
	struct ir_func *f;
	struct dec_copy c;
	uint8_t *by_value, *by_use; /* enum ir_width, per record; of joins */
	uint8_t *to;                /* ... what it becomes; IR_W0: stays */
	ir_ref *part;               /* per entry of `lists`: the narrow value, made at the end of the way in */
	uint32_t narrow_cnt;
};

/* As wide as bits [0, bits). */
static enum ir_width width_for(unsigned bits)
{
	return bits <= 1 ? IR_W1 : bits <= 8 ? IR_W8 : bits <= 16 ? IR_W16 : bits <= 32 ? IR_W32 : IR_W64;
}

static bool is_join(const struct range *r, uint32_t id)
{
	const struct ir_rec *rec = &r->f->recs[id];
	return rec->op == IR_PHI && (rec->width == IR_W64 || rec->width == IR_W32 || rec->width == IR_W16);
}

static unsigned bits_in(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 1;
}

/* The width a value comes to. */
static enum ir_width value_width(const struct range *r, ir_ref v)
{
	uint64_t number;
	if (ir_const_get(r->f, v, &number))
		return width_for(bits_in(number));
	if (ir_tag(v) != IR_TAG_VALUE)
		return ir_ref_width(r->f, v);
	const struct ir_rec *rec = &r->f->recs[ir_index(v)];
	if (is_join(r, ir_index(v)))
		return (enum ir_width)r->by_value[ir_index(v)];
	if (rec->op == IR_ZEXT)
		return ir_ref_width(r->f, rec->a);
	if (rec->op == IR_AND && ir_const_get(r->f, rec->b, &number))
		return width_for(bits_in(number));
	return (enum ir_width)rec->width;
}

static bool widen(uint8_t *w, enum ir_width to)
{
	if (*w >= to)
		return false;
	*w = (uint8_t)to;
	return true;
}

static bool widen_joins(struct range *r)
{
	bool changed = false;
	for (uint32_t i = 0; i < r->f->order_cnt; i++) {
		uint32_t id = r->f->order[i];
		const struct ir_rec *rec = &r->f->recs[id];
		for (uint32_t k = 0; is_join(r, id) && k < rec->c; k++) {
			ir_ref v = r->f->lists[rec->b + k];
			changed |= widen(&r->by_value[id], value_width(r, v));
			/* What it takes of another join. */
			if (ir_tag(v) == IR_TAG_VALUE && is_join(r, ir_index(v)))
				changed |= widen(&r->by_use[ir_index(v)], (enum ir_width)r->by_use[id]);
		}
	}
	return changed;
}

struct user {
	struct range *r;
	const struct ir_rec *rec;
};

static void use(void *ctx, ir_ref v)
{
	struct user *u = ctx;
	uint64_t mask;
	if (ir_tag(v) != IR_TAG_VALUE || !is_join(u->r, ir_index(v)))
		return;
	enum ir_width w = ir_ref_width(u->r->f, v);
	if (u->rec->op == IR_EXTRACT)
		w = width_for(u->rec->aux + ir_bits((enum ir_width)u->rec->width));
	else if (u->rec->op == IR_AND && ir_const_get(u->r->f, u->rec->b, &mask))
		w = width_for(bits_in(mask));
	widen(&u->r->by_use[ir_index(v)], w);
}

static bool find_widths(struct range *r)
{
	struct ir_func *f = r->f;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		uint32_t id = f->order[i];
		if (is_join(r, id))
			r->by_value[id] = r->by_use[id] = IR_W1;
	}
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		struct user u = {r, &f->recs[f->order[i]]};
		if (u.rec->op != IR_PHI || !is_join(r, f->order[i]))
			ir_operands(f, u.rec, use, &u);
	}
	for (unsigned rounds = 0; widen_joins(r); rounds++)
		if (rounds == 64)
			return false;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		uint32_t id = f->order[i];
		if (!is_join(r, id))
			continue;
		uint8_t w = r->by_value[id] < r->by_use[id] ? r->by_value[id] : r->by_use[id];
		if (w < f->recs[id].width) {
			r->to[id] = w;
			r->narrow_cnt++;
		}
	}
	return r->narrow_cnt > 0;
}

static ir_ref part_of(struct dec_build *b, ir_ref v, enum ir_width w)
{
	const struct ir_rec part = {.op = IR_EXTRACT, .width = (uint8_t)w, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE};
	return dec_op(b, &part);
}

/* Behind the joins of a block: what stands for the narrow ones. */
static void begin(struct dec_copy *c, uint32_t block)
{
	struct range *r = c->ctx;
	const struct ir_func *f = r->f;
	for (uint32_t i = f->blocks[block].first; i < f->blocks[block].last; i++) {
		uint32_t id = f->order[i];
		if (f->recs[id].op != IR_PHI)
			break;
		if (r->to[id] == IR_W0)
			continue;
		const struct ir_rec wide = {.op = IR_ZEXT, .width = f->recs[id].width, .a = c->map[id], .b = IR_REF_NONE, .c = IR_REF_NONE};
		c->b.f->recs[ir_index(c->map[id])].width = r->to[id];
		c->b.zeros[ir_index(c->map[id])] = ~dec_mask((enum ir_width)r->to[id]);
		c->map[id] = dec_op(&c->b, &wide);
	}
}

/* Before a block ends: narrow values of what the joins behind it take. */
static bool rec_of(struct dec_copy *c, uint32_t id, ir_ref *ret)
{
	struct range *r = c->ctx;
	const struct ir_func *f = r->f;
	uint32_t block = c->b.f->cur_block;
	(void)ret;
	if (f->order[f->blocks[block].last - 1] != id)
		return false;
	for (uint32_t s = c->g.succs.first[block]; s < c->g.succs.first[block + 1]; s++) {
		uint32_t to = c->g.succs.list[s], at = 0;
		while (c->g.preds.list[c->g.preds.first[to] + at] != block)
			at++;
		for (uint32_t i = f->blocks[to].first; i < f->blocks[to].last; i++) {
			const struct ir_rec *phi = &f->recs[f->order[i]];
			if (phi->op != IR_PHI)
				break;
			if (r->to[f->order[i]] != IR_W0)
				r->part[phi->b + at] = part_of(&c->b, dec_copied(c, f->lists[phi->b + at]), (enum ir_width)r->to[f->order[i]]);
		}
	}
	return false;
}

struct err *dec_range(struct dec *d)
{
	struct range r = {.d = d, .f = d->f};
	struct ir_func *f = d->f;
	size_t n = f->rec_cnt + (size_t)1;
	r.by_value = ARENA_ARRAY(d->arena, uint8_t, n);
	r.by_use = ARENA_ARRAY(d->arena, uint8_t, n);
	r.to = ARENA_ARRAY(d->arena, uint8_t, n);
	r.part = ARENA_RAW_ARRAY(d->arena, ir_ref, f->list_cnt + (size_t)1);
	if (!r.by_value || !r.by_use || !r.to || !r.part)
		return &err_nomem;
	if (!find_widths(&r))
		return NULL;
	struct err *e = dec_copy_init(&r.c, d);
	if (e)
		return e;
	r.c.ctx = &r;
	r.c.begin = begin;
	r.c.rec = rec_of;
	r.c.part = r.part;
	r.c.is_part = r.to;
	return dec_copy_run(&r.c);
}
