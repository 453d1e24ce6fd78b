/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/* What functions promise each other: the convention, and what their code says. */

bool dec_target(const struct ir_func *f, ir_ref r, uint64_t *ret_va)
{
	const struct ir_rec *rec = dec_rec(f, r);
	return ir_const_get(f, rec && rec->op == IR_GADDR ? rec->a : r, ret_va);
}

static struct dec_callee conventional(const struct dec_conv *conv)
{
	struct dec_callee c = {.stack_args = -1};
	memcpy(c.reads, conv->args.w, sizeof(c.reads));
	memcpy(c.changes, conv->changes.w, sizeof(c.changes));
	return c;
}

static struct dec_known *slot_of(struct dec *d, uint64_t va)
{
	uint32_t mask = d->known_cap - 1;
	for (uint32_t i = (uint32_t)(va * 0x9e3779b97f4a7c15 >> 32) & mask;; i = (i + 1) & mask)
		if (!d->known[i].is_used || d->known[i].va == va)
			return &d->known[i];
}

static bool grow(struct dec *d)
{
	struct dec_known *was = d->known;
	uint32_t cap = d->known_cap;
	if (cap && d->known_cnt * 2 < cap)
		return true;
	struct dec_known *bigger = ARENA_ARRAY(d->arena, struct dec_known, cap ? 2 * (size_t)cap : 32);
	if (!bigger)
		return false;
	d->known = bigger;
	d->known_cap = cap ? 2 * cap : 32;
	for (uint32_t i = 0; i < cap; i++)
		if (was[i].is_used)
			*slot_of(d, was[i].va) = was[i];
	return true;
}

struct dec_callee dec_callee_at(struct dec *d, const struct ir_func *f, const struct ir_rec *rec)
{
	uint64_t va;
	struct dec_callee c = conventional(&d->conv);
	bool is_number = rec->flags & IR_F_COMPUTED && ir_tag(rec->a) == IR_TAG_CONST;
	if (!d->opts->callee || is_number || !dec_target(f, rec->a, &va) || !grow(d))
		return c;
	struct dec_known *k = slot_of(d, va);
	if (!k->is_used) {
		d->opts->callee(d->opts->ctx, va, &c);
		*k = (struct dec_known){va, true, c};
		d->known_cnt++;
	}
	return k->callee;
}

void dec_callee_conventional(const struct ir_machine *m, struct dec_callee *ret)
{
	struct dec_conv conv;
	dec_conv_of(m, &conv);
	*ret = conventional(&conv);
}

void dec_callee_plain(const struct ir_machine *m, unsigned args, struct dec_callee *ret)
{
	struct dec_conv conv;
	struct dec_set reads = {{0}};
	dec_conv_of(m, &conv);
	for (unsigned i = 0; i < m->loc_cnt && i < DEC_LOC_MAX; i++)
		if (dec_set_has(&conv.args, i) && dec_set_has(&conv.keeps, i))
			dec_set_add(&reads, i);
	for (unsigned i = 0; i < args && i < conv.int_arg_cnt; i++)
		dec_set_add(&reads, conv.int_arg[i]);
	/* Of i386 arguments are on the stack. */
	if (!conv.int_arg_cnt)
		return;
	memcpy(ret->reads, reads.w, sizeof(ret->reads));
	ret->stack_args = 0;
}

/* --- arguments on the stack, in lifted form --------------------------------------------------------------------------------------- */
#define OFF_NONE INT32_MIN

struct args {
	struct dec *d;
	struct ir_func *f;
	struct dec_graph g;
	int32_t *off;        /* per record: bytes from the entry's stack pointer; OFF_NONE */
	int32_t *out;        /* per block and location, at its end */
	int32_t *now;
	uint8_t *is_done;
	int32_t end;         /* of what is read */
	bool is_known;
	bool reads_return;
};

static int32_t off_of(const struct args *s, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? s->off[ir_index(r)] : OFF_NONE;
}

/* An address of the caller's frame that goes where it cannot be followed. */
static void lose(void *ctx, ir_ref r)
{
	struct args *s = ctx;
	int32_t at = off_of(s, r);
	s->is_known &= at == OFF_NONE || at < (int32_t)s->d->conv.ptr_bytes;
}

static void look_at(struct args *s, uint32_t id)
{
	const struct ir_rec *rec = &s->f->recs[id];
	int32_t at = off_of(s, rec->a), to = OFF_NONE, len = (int32_t)ir_bits((enum ir_width)rec->width) / 8;
	uint64_t by;
	s->off[id] = OFF_NONE;
	switch (rec->op) {
	case IR_GET:
		s->off[id] = s->now[rec->aux];
		return;
	case IR_PUT:
		s->now[rec->aux] = at;
		return;
	case IR_ADD:
	case IR_SUB:
		if (at != OFF_NONE && ir_const_get(s->f, rec->b, &by)) {
			int64_t v = s->d->conv.ptr_bytes == 4 ? (int32_t)by : (int64_t)by;
			v = rec->op == IR_ADD ? at + v : at - v;
			to = v > -(1 << 28) && v < 1 << 28 ? (int32_t)v : OFF_NONE;
		}
		if (to == OFF_NONE)
			ir_operands(s->f, rec, lose, s);
		s->off[id] = to;
		return;
	case IR_STORE:
		lose(s, rec->b);
		/* fall through */
	case IR_LOAD:
		if (at != OFF_NONE && at + len > s->end)
			s->end = at + len;
		s->reads_return |= at != OFF_NONE && at + len > 0 && at < (int32_t)s->d->conv.ptr_bytes;
		return;
	case IR_CALL: {
		struct dec_callee c = dec_callee_at(s->d, s->f, rec);
		for (unsigned l = 0; l < s->f->machine->loc_cnt; l++) {
			if (c.reads[l / 64] >> l % 64 & 1 && l != s->f->machine->sp_loc)
				s->is_known &= s->now[l] == OFF_NONE || s->now[l] < (int32_t)s->d->conv.ptr_bytes;
			if (c.changes[l / 64] >> l % 64 & 1)
				s->now[l] = OFF_NONE;
		}
		return;
	}
	case IR_IJMP: {
		int32_t more = dec_callee_at(s->d, s->f, rec).stack_args;
		s->is_known &= more >= 0;
		s->end = more + (int32_t)s->d->conv.ptr_bytes > s->end ? more + (int32_t)s->d->conv.ptr_bytes : s->end;
		return;
	}
	case IR_CMP:
		return;
	default:
		ir_operands(s->f, rec, lose, s);
	}
}

static void join(int32_t *restrict now, const int32_t *restrict out, uint32_t n)
{
	for (uint32_t l = 0; l < n; l++)
		now[l] = now[l] == out[l] ? now[l] : OFF_NONE;
}

static void look_block(struct args *s, uint32_t b)
{
	uint32_t n = s->f->machine->loc_cnt;
	bool is_first = true;
	for (uint32_t i = s->g.preds.first[b]; i < s->g.preds.first[b + 1]; i++) {
		uint32_t p = s->g.preds.list[i];
		if (!s->is_done[p])
			continue;
		if (is_first)
			memcpy(s->now, &s->out[(size_t)p * n], n * sizeof(*s->now));
		else
			join(s->now, &s->out[(size_t)p * n], n);
		is_first = false;
	}
	for (uint32_t i = s->f->blocks[b].first; i < s->f->blocks[b].last; i++)
		look_at(s, s->f->order[i]);
	memcpy(&s->out[(size_t)b * n], s->now, n * sizeof(*s->now));
	s->is_done[b] = 1;
}

/* Whether a loop's end `b` leaves what another way into its head, `p`, does, as far as it matters: the stack pointer, and addresses of
 * the caller's frame. */
static bool comes_round(const struct args *s, uint32_t p, uint32_t b)
{
	uint32_t n = s->f->machine->loc_cnt;
	const int32_t *x = &s->out[(size_t)p * n], *y = &s->out[(size_t)b * n];
	int32_t word = (int32_t)s->d->conv.ptr_bytes;
	for (uint32_t l = 0; l < n; l++)
		if (x[l] != y[l] && (l == s->f->machine->sp_loc || x[l] >= word || y[l] >= word))
			return false;
	return true;
}

int32_t dec_stack_args(struct dec *d, int32_t *ret_least, bool *ret_reads_return)
{
	struct args s = {.d = d, .f = d->f, .end = (int32_t)d->conv.ptr_bytes, .is_known = true};
	uint32_t n = d->f->machine->loc_cnt;
	if ((size_t)n * d->f->block_cnt > 1u << 20 || !dec_graph_flow(d->f, d->arena, &s.g))
		return -1;
	s.off = ARENA_RAW_ARRAY(d->arena, int32_t, d->f->rec_cnt + (size_t)1);
	s.out = ARENA_RAW_ARRAY(d->arena, int32_t, (size_t)n * d->f->block_cnt + 1);
	s.now = ARENA_RAW_ARRAY(d->arena, int32_t, n + (size_t)1);
	s.is_done = ARENA_ARRAY(d->arena, uint8_t, d->f->block_cnt + (size_t)1);
	if (!s.off || !s.out || !s.now || !s.is_done)
		return -1;
	for (uint32_t l = 0; l < n; l++)
		s.now[l] = OFF_NONE;
	s.now[d->f->machine->sp_loc] = 0;
	for (uint32_t i = 0; i < s.g.rpo_cnt; i++)
		look_block(&s, s.g.rpo[i]);
	/* What comes round a loop has to be what was taken for it at its head. */
	for (uint32_t i = 0; i < s.g.rpo_cnt && s.is_known; i++) {
		uint32_t b = s.g.rpo[i];
		for (uint32_t k = s.g.succs.first[b]; k < s.g.succs.first[b + 1]; k++) {
			uint32_t to = s.g.succs.list[k];
			for (uint32_t p = s.g.preds.first[to]; s.g.rpo_at[to] <= i && p < s.g.preds.first[to + 1]; p++)
				s.is_known &= s.g.rpo_at[s.g.preds.list[p]] == UINT32_MAX || comes_round(&s, s.g.preds.list[p], b);
		}
	}
	if (ret_reads_return)
		*ret_reads_return = s.reads_return;
	if (ret_least)
		*ret_least = s.end - (int32_t)d->conv.ptr_bytes;
	return s.is_known ? s.end - (int32_t)d->conv.ptr_bytes : -1;
}

void dec_callee_of(struct ir_func *lifted, const struct dec_opts *opts, struct dec_callee *ret)
{
	struct dec d = {.opts = opts, .arena = lifted->arena, .f = lifted, .step_limit = UINT32_MAX};
	dec_conv_of(lifted->machine, &d.conv);
	struct err *e = dec_ssa_effects(&d, ret);
	ret->stack_args = e ? -1 : dec_stack_args(&d, NULL, NULL);
	err_free(e);
}
