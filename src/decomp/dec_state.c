/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/*
 * Requires: SSA, every block reached. Provides: no PUT of what the state of the machine holds already. Breaks: nothing; what PUTs used
 * is for dec_dead().
 *
 * What each location of the state holds, forwards over the blocks: a value, or nothing that is known. Where ways meet that hold
 * different values, a join of just these values is what it holds.
 */

#define UNSEEN (IR_REF_NONE - 1)
#define ROUNDS_MAX 12

struct state {
	struct dec *d;
	struct ir_func *f;
	struct dec_graph g;
	uint16_t number[DEC_LOC_MAX];
	uint16_t locs[DEC_LOC_MAX];
	uint32_t cnt;
	ir_ref *out;         /* per block and location, at its end */
	ir_ref *now;
	uint8_t *is_idle;    /* per record */
};

static void use_loc(struct state *s, unsigned loc)
{
	if (s->number[loc] != UINT16_MAX)
		return;
	s->number[loc] = (uint16_t)s->cnt;
	s->locs[s->cnt++] = (uint16_t)loc;
}

static bool init(struct state *s)
{
	struct ir_func *f = s->f;
	memset(s->number, 0xff, sizeof(s->number));
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if (rec->op == IR_PUT)
			use_loc(s, rec->aux);
	}
	size_t cells = (size_t)s->cnt * f->block_cnt;
	s->out = ARENA_RAW_ARRAY(s->d->arena, ir_ref, cells + 1);
	s->now = ARENA_RAW_ARRAY(s->d->arena, ir_ref, s->cnt + (size_t)1);
	s->is_idle = ARENA_ARRAY(s->d->arena, uint8_t, f->rec_cnt + (size_t)1);
	for (size_t i = 0; s->out && i < cells; i++)
		s->out[i] = UNSEEN;
	return s->out && s->now && s->is_idle && dec_graph_flow(f, s->d->arena, &s->g);
}

/* The join of a block that takes from each way what the state held there; values of ways not seen yet may be any. */
static ir_ref joining(const struct state *s, uint32_t b, uint32_t k)
{
	const struct ir_func *f = s->f;
	uint32_t first = s->g.preds.first[b];
	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
		const struct ir_rec *phi = &f->recs[f->order[i]];
		if (phi->op != IR_PHI)
			break;
		uint32_t same = 0;
		while (same < phi->c) {
			ir_ref is = s->out[(size_t)s->g.preds.list[first + same] * s->cnt + k];
			if (is != UNSEEN && is != f->lists[phi->b + same])
				break;
			same++;
		}
		if (same == phi->c)
			return ir_ref_make(IR_TAG_VALUE, f->order[i]);
	}
	return IR_REF_NONE;
}

static void enter(struct state *s, uint32_t b)
{
	for (uint32_t k = 0; k < s->cnt; k++) {
		ir_ref v = b == 0 ? IR_REF_NONE : UNSEEN;
		bool differs = false;
		for (uint32_t i = s->g.preds.first[b]; i < s->g.preds.first[b + 1]; i++) {
			ir_ref is = s->out[(size_t)s->g.preds.list[i] * s->cnt + k];
			if (is == UNSEEN)
				continue;
			differs |= v != UNSEEN && v != is;
			v = is;
		}
		s->now[k] = differs ? joining(s, b, k) : v;
	}
}

static void forget(struct state *s, unsigned loc)
{
	if (s->number[loc] != UINT16_MAX)
		s->now[s->number[loc]] = IR_REF_NONE;
}

/* As dec_ssa() has it. */
static void forget_intrin(struct state *s, const struct ir_intrin *in)
{
	for (unsigned k = 0; k < in->in_cnt; k++)
		forget(s, in->in[k]);
	for (unsigned k = 0; k < in->out_cnt; k++)
		forget(s, in->out[k]);
	if (in->alt_len)
		forget(s, in->alt_reg);
	for (uint32_t k = 0; k < s->cnt; k++) {
		enum ir_loc_class cls = (enum ir_loc_class)s->f->machine->locs[s->locs[k]].cls;
		if (cls == IR_LOC_X87 || (cls == IR_LOC_FLAG && s->locs[k] != s->d->conv.df))
			s->now[k] = IR_REF_NONE;
	}
}

static void step(struct state *s, uint32_t id, bool is_final)
{
	const struct ir_rec *rec = &s->f->recs[id];
	/* What goes by C leaves the state as it is, and that may be anything. */
	if (rec->flags & IR_F_TYPED && (rec->op == IR_GET || rec->op == IR_PUT)) {
		forget(s, rec->aux);
		return;
	}
	uint32_t k = rec->op == IR_GET || rec->op == IR_PUT ? s->number[rec->aux] : 0;
	switch (rec->op) {
	case IR_GET:
		if (k != UINT16_MAX && (s->now[k] == IR_REF_NONE || s->now[k] == UNSEEN))
			s->now[k] = ir_ref_make(IR_TAG_VALUE, id);
		break;
	case IR_PUT:
		if (is_final && s->now[k] == rec->a)
			s->is_idle[id] = 1;
		s->now[k] = rec->a;
		break;
	case IR_CALL: {
		struct dec_callee c = dec_callee_at(s->d, s->f, rec);
		for (uint32_t i = 0; i < s->cnt; i++)
			if (c.changes[s->locs[i] / 64] >> s->locs[i] % 64 & 1)
				s->now[i] = IR_REF_NONE;
		break;
	}
	case IR_INTRIN:
		forget_intrin(s, &s->f->intrins[rec->aux]);
		break;
	default:
		break;
	}
}

static bool round_of(struct state *s, bool is_final)
{
	bool changed = false;
	for (uint32_t i = 0; i < s->g.rpo_cnt; i++) {
		uint32_t b = s->g.rpo[i];
		enter(s, b);
		for (uint32_t k = s->f->blocks[b].first; k < s->f->blocks[b].last; k++)
			step(s, s->f->order[k], is_final);
		ir_ref *out = &s->out[(size_t)b * s->cnt];
		changed |= s->cnt && memcmp(out, s->now, s->cnt * sizeof(*out)) != 0;
		if (s->cnt)
			memcpy(out, s->now, s->cnt * sizeof(*out));
	}
	return changed;
}

struct err *dec_state(struct dec *d)
{
	struct state s = {.d = d, .f = d->f};
	unsigned rounds = 0;
	if (!init(&s))
		return &err_nomem;
	while (round_of(&s, false))
		if (++rounds == ROUNDS_MAX)
			return NULL;
	round_of(&s, true);
	for (uint32_t i = 0; i < d->f->rec_cnt; i++)
		if (s.is_idle[i])
			d->f->recs[i].op = IR_OP_NONE;
	return NULL;
}
