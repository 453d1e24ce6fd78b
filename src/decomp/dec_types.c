/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/*
 * Requires: the form of variables. Provides: for each variable and value how people would declare it. Breaks: nothing; what is said here
 * changes no meaning.
 *
 * Values that are one in the source (what a variable is set to and read as, both sides of a comparison, a choice) are joined, and each use
 * of any of them votes for all. One pass over the records, near linear (Tarjan's union of sets).
 */
struct types {
	const struct ir_func *f;
	uint32_t *up;      /* records, then locations */
	struct votes {
		uint16_t with, without; /* a sign */
		uint16_t as_address;
	} *votes;
	uint32_t first_loc;
};

static uint32_t top(struct types *t, uint32_t x)
{
	while (t->up[x] != x)
		x = t->up[x] = t->up[t->up[x]];
	return x;
}

static uint32_t node(struct types *t, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? ir_index(r) : UINT32_MAX;
}

static void join(struct types *t, uint32_t x, uint32_t y)
{
	if (x == UINT32_MAX || y == UINT32_MAX)
		return;
	x = top(t, x);
	y = top(t, y);
	t->up[x > y ? x : y] = x > y ? y : x;
}

static bool is_const(ir_ref r)
{
	return ir_tag(r) == IR_TAG_CONST;
}

/* Sums, masks and what they are made of are of one type, as long as one side is a number. */
static void join_record(struct types *t, uint32_t id)
{
	const struct ir_rec *r = &t->f->recs[id];
	switch (r->op) {
	case IR_GET:
		if (t->f->machine->locs[r->aux].cls == IR_LOC_VAR)
			join(t, id, t->first_loc + r->aux);
		break;
	case IR_PUT:
		if (t->f->machine->locs[r->aux].cls == IR_LOC_VAR)
			join(t, node(t, r->a), t->first_loc + r->aux);
		break;
	case IR_ADD:
	case IR_SUB:
		if (is_const(r->b))
			join(t, id, node(t, r->a));
		break;
	case IR_CMP:
		join(t, node(t, r->a), node(t, r->b));
		break;
	case IR_SEL:
		join(t, id, node(t, r->b));
		join(t, id, node(t, r->c));
		break;
	default:
		break;
	}
}

static void vote(struct types *t, ir_ref r, unsigned with, unsigned without)
{
	uint32_t n = node(t, r);
	if (n == UINT32_MAX)
		return;
	struct votes *v = &t->votes[top(t, n)];
	v->with = (uint16_t)MIN(v->with + with, (unsigned)UINT16_MAX);
	v->without = (uint16_t)MIN(v->without + without, (unsigned)UINT16_MAX);
}

/* What an address is counted from: a sum's first operand that is no number and no index. */
static void vote_address(struct types *t, ir_ref r)
{
	for (unsigned depth = 0; depth < 4; depth++) {
		uint32_t n = node(t, r);
		if (n == UINT32_MAX)
			return;
		struct votes *v = &t->votes[top(t, n)];
		v->as_address = (uint16_t)(v->as_address | 1);
		const struct ir_rec *rec = &t->f->recs[n];
		if (rec->op != IR_ADD && rec->op != IR_SUB)
			return;
		r = rec->a;
	}
}

static void vote_record(struct types *t, uint32_t id)
{
	const struct ir_rec *r = &t->f->recs[id];
	switch (r->op) {
	case IR_CMP:
		if (r->kind == IR_CMP_SLT || r->kind == IR_CMP_SLE) {
			vote(t, r->a, 4, 0);
			vote(t, r->b, 4, 0);
		} else if (r->kind != IR_CMP_EQ) {
			vote(t, r->a, 0, 4);
			vote(t, r->b, 0, 4);
		}
		break;
	case IR_SEXT:
		vote(t, r->a, 3, 0);
		break;
	case IR_ZEXT:
		vote(t, r->a, 0, 1);
		break;
	case IR_ASHR:
		vote(t, r->a, 4, 0);
		vote(t, ir_ref_make(IR_TAG_VALUE, id), 2, 0);
		break;
	case IR_LSHR:
		vote(t, r->a, 0, 4);
		vote(t, ir_ref_make(IR_TAG_VALUE, id), 0, 1);
		break;
	case IR_DIV: {
		bool is_signed = r->kind == IR_DIV_SQUOT || r->kind == IR_DIV_SREM;
		vote(t, r->a, is_signed ? 4 : 0, is_signed ? 0 : 4);
		vote(t, r->b, is_signed ? 4 : 0, is_signed ? 0 : 4);
		vote(t, ir_ref_make(IR_TAG_VALUE, id), is_signed ? 4 : 0, is_signed ? 0 : 4);
		break;
	}
	case IR_AND:
	case IR_OR:
	case IR_XOR:
		if (is_const(r->b))
			vote(t, r->a, 0, 1);
		break;
	case IR_LOAD:
	case IR_STORE:
		vote_address(t, r->a);
		break;
	default:
		break;
	}
}

static bool has_sign(struct types *t, uint32_t x, unsigned width)
{
	const struct votes *v = &t->votes[top(t, x)];
	return width > IR_W1 && width <= IR_W64 && v->with > v->without && !(width == IR_W64 && v->as_address);
}

bool dec_types(struct dec_func *fn, struct arena *a)
{
	const struct ir_func *f = fn->f;
	uint32_t locs = f->machine->loc_cnt, n = f->rec_cnt + locs;
	struct types t = {.f = f, .first_loc = f->rec_cnt, .up = ARENA_RAW_ARRAY(a, uint32_t, n + (size_t)1),
			  .votes = ARENA_ARRAY(a, struct votes, n + (size_t)1)};
	fn->rec_signs = ARENA_ARRAY(a, uint8_t, f->rec_cnt + (size_t)1);
	fn->loc_signs = ARENA_ARRAY(a, uint8_t, locs + (size_t)1);
	if (!t.up || !t.votes || !fn->rec_signs || !fn->loc_signs)
		return false;
	for (uint32_t i = 0; i < n; i++)
		t.up[i] = i;
	for (uint32_t i = 0; i < f->order_cnt; i++)
		join_record(&t, f->order[i]);
	for (uint32_t i = 0; i < f->order_cnt; i++)
		vote_record(&t, f->order[i]);
	for (uint32_t i = 0; i < f->order_cnt; i++)
		fn->rec_signs[f->order[i]] = has_sign(&t, f->order[i], f->recs[f->order[i]].width);
	for (uint32_t i = 0; i < locs; i++)
		fn->loc_signs[i] = f->machine->locs[i].cls == IR_LOC_VAR && has_sign(&t, t.first_loc + i, f->machine->locs[i].width);
	return true;
}
