/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/*
 * Requires: lifted form. Provides: SSA, with blocks as they were; joins of one value are left to dec_dead(). Breaks: nothing.
 *
 * Which locations matter where is known before (liveness, as far as the convention says what calls and returns look at), so one
 * way through the blocks in reverse post-order makes everything: a join gets a PHI for a location that is live and whose values
 * differ, a loop's head one for each that is live.
 *
 * What the state of the machine holds is followed beside it: a PUT of what is there already is not made.
 *
 * A function with a signature has its parameters from C and not from the state, and so have callees with one their arguments, which stand
 * as marked PUTs right before the call; results are marked, too. No return address is pushed for it: the state's stack pointer is the one
 * before that. A jump out where the stack is as at the entry is its call and return.
 */

#define TRANSLATED_MAX 16

struct phi {
	uint32_t rec, block, loc; /* loc: its number among the used ones */
};

struct ssa {
	struct dec *d;
	const struct ir_func *f; /* lifted */
	struct dec_graph g;
	struct dec_build b;
	uint16_t number[DEC_LOC_MAX]; /* of a location among the used ones; UINT16_MAX: not used */
	uint16_t locs[DEC_LOC_MAX];   /* the opposite */
	uint32_t loc_cnt;
	struct dec_set used;
	struct dec_set loop_safe;     /* nothing but returns and jumps out changes these in the state */
	struct dec_set *live_in, *gen, *kill;
	struct dec_set *call_live;    /* of the block: behind each call, the last one first */
	uint32_t call_cnt;
	ir_ref *defs, *state;         /* per block in reverse post-order, per used location, at its end */
	ir_ref *def, *st;             /* of the block at hand */
	uint32_t *put_by;             /* per used location: where the block at hand sets it; UINT32_MAX */
	bool *is_done;
	ir_ref *map;                  /* value of a lifted record */
	struct phi *phis;
	uint32_t phi_cnt, phi_cap;
	ir_ref entry_sp;
	struct translated {
		ir_ref value;
		uint64_t text;            /* address */
	} translated[TRANSLATED_MAX]; /* the last ones, in a ring */
	uint32_t translated_cnt;
	uint16_t vec_cnt_loc;         /* says callees that take any number of arguments how many are in vector registers */
	bool is_reads_only;           /* what happens to values at returns does not count */
	const struct ir_sig *self;    /* null: none */
	bool is_lost;                 /* has a signature, and leaves with the stack in another place */
	bool *sp_has_phi;             /* per block */
	bool trusts_sp;               /* loops leave the stack pointer as it was at their heads; whether they do is seen at the end */
};

struct err *dec_budget(const struct dec *d)
{
	return err_new(ERR_BUDGET, "the function at 0x%llx needs more than %u steps", (unsigned long long)d->f->va, d->step_limit);
}

/* --- liveness ------------------------------------------------------------------------------------------------------------- */
static struct dec_set set_of(const uint64_t *w)
{
	struct dec_set r;
	memcpy(r.w, w, sizeof(r.w));
	return r;
}

static struct dec_set or_of(struct dec_set x, const struct dec_set *y)
{
	for (unsigned i = 0; i < DEC_LOC_WORDS; i++)
		x.w[i] |= y->w[i];
	return x;
}

static struct dec_set and_of(struct dec_set x, const struct dec_set *y)
{
	for (unsigned i = 0; i < DEC_LOC_WORDS; i++)
		x.w[i] &= y->w[i];
	return x;
}

static struct dec_set minus_of(struct dec_set x, const struct dec_set *y)
{
	for (unsigned i = 0; i < DEC_LOC_WORDS; i++)
		x.w[i] &= ~y->w[i];
	return x;
}

static struct dec_set reads_of(const struct ssa *s, const struct ir_rec *call)
{
	struct dec_callee c = dec_callee_at(s->d, s->f, call);
	struct dec_set reads = set_of(c.reads);
	/* The call itself pushes the return address. */
	dec_set_add(&reads, s->f->machine->sp_loc);
	return and_of(reads, &s->used);
}

static struct dec_set changes_of(const struct ssa *s, const struct ir_rec *call)
{
	struct dec_callee c = dec_callee_at(s->d, s->f, call);
	return and_of(set_of(c.changes), &s->used);
}

/* What nobody relies on behind a call but as its result. */
static struct dec_set kills_of(const struct ssa *s, const struct ir_rec *call)
{
	struct dec_callee c = dec_callee_at(s->d, s->f, call);
	struct dec_set kept = set_of(c.may_keep);
	return and_of(minus_of(set_of(c.changes), &kept), &s->used);
}

/* What callers find in the state. */
static struct dec_set left_of(const struct ssa *s)
{
	struct dec_set results = s->d->opts->leaves ? set_of(s->d->opts->leaves) : s->d->conv.results;
	return and_of(or_of(results, &s->d->conv.keeps), &s->used);
}

static struct dec_set ends_of(const struct ssa *s)
{
	struct dec_set r = left_of(s);
	if (s->self && s->self->result_width != IR_W0 && dec_set_has(&s->used, s->self->result))
		dec_set_add(&r, s->self->result);
	return r;
}

/* One record, backwards. */
static void step_back(const struct ssa *s, const struct ir_rec *rec, struct dec_set *gen, struct dec_set *kill)
{
	struct dec_set one = {{0}}, more = {{0}};
	switch (rec->op) {
	case IR_PUT:
		dec_set_add(&one, rec->aux);
		break;
	case IR_GET:
		dec_set_add(&more, rec->aux);
		break;
	case IR_CALL:
		one = kills_of(s, rec);
		more = reads_of(s, rec);
		break;
	case IR_RET:
		if (!s->is_reads_only)
			more = ends_of(s);
		break;
	case IR_IJMP:
		more = s->is_reads_only ? reads_of(s, rec) : s->used;
		break;
	default:
		return;
	}
	*gen = or_of(minus_of(*gen, &one), &more);
	*kill = or_of(*kill, &one);
}

static bool make_live(struct ssa *s)
{
	const struct ir_func *f = s->f;
	struct arena *a = s->d->arena;
	uint32_t n = f->block_cnt;
	s->live_in = ARENA_ARRAY(a, struct dec_set, n + (size_t)1);
	s->gen = ARENA_ARRAY(a, struct dec_set, n + (size_t)1);
	s->kill = ARENA_ARRAY(a, struct dec_set, n + (size_t)1);
	if (!s->live_in || !s->gen || !s->kill)
		return false;
	uint32_t calls_max = 0;
	for (uint32_t b = 0; b < n; b++) {
		uint32_t calls = 0;
		for (uint32_t i = f->blocks[b].last; i-- > f->blocks[b].first;) {
			const struct ir_rec *rec = &f->recs[f->order[i]];
			step_back(s, rec, &s->gen[b], &s->kill[b]);
			calls += rec->op == IR_CALL;
		}
		calls_max = calls > calls_max ? calls : calls_max;
	}
	s->call_live = ARENA_ARRAY(a, struct dec_set, calls_max + (size_t)1);
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = s->g.rpo_cnt; i-- > 0;) {
			uint32_t b = s->g.rpo[i];
			struct dec_set out = {{0}};
			for (uint32_t k = s->g.succs.first[b]; k < s->g.succs.first[b + 1]; k++)
				out = or_of(out, &s->live_in[s->g.succs.list[k]]);
			out = or_of(minus_of(out, &s->kill[b]), &s->gen[b]);
			changed |= s->g.has_loop && memcmp(&out, &s->live_in[b], sizeof(out)) != 0;
			s->live_in[b] = out;
		}
	}
	return s->call_live != NULL;
}

/* What is live behind each call of a block. */
static void make_call_live(struct ssa *s, uint32_t b)
{
	const struct ir_func *f = s->f;
	struct dec_set live = {{0}}, none = {{0}};
	s->call_cnt = 0;
	for (uint32_t k = s->g.succs.first[b]; k < s->g.succs.first[b + 1]; k++)
		live = or_of(live, &s->live_in[s->g.succs.list[k]]);
	for (uint32_t i = f->blocks[b].last; i-- > f->blocks[b].first;) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if (rec->op == IR_CALL)
			s->call_live[s->call_cnt++] = live;
		step_back(s, rec, &live, &none);
	}
}

/* --- which locations there are ---------------------------------------------------------------------------------------------- */
static void use_loc(struct ssa *s, unsigned loc)
{
	if (dec_set_has(&s->used, loc))
		return;
	dec_set_add(&s->used, loc);
	s->number[loc] = (uint16_t)s->loc_cnt;
	s->locs[s->loc_cnt++] = (uint16_t)loc;
}

static bool is_control(const struct ir_func *f, unsigned loc)
{
	return f->machine->locs[loc].cls == IR_LOC_CONTROL && strcmp(f->machine->locs[loc].name, "fsw") != 0;
}

static void touch(struct ssa *s, struct dec_set *touched, unsigned loc)
{
	use_loc(s, loc);
	dec_set_add(touched, loc);
}

static bool has_sig(const struct ssa *s, const struct ir_rec *rec, struct ir_sig *ret)
{
	uint64_t va;
	bool is_number = rec->flags & IR_F_COMPUTED && ir_tag(rec->a) == IR_TAG_CONST;
	const struct dec_opts *o = s->d->opts;
	return o->sig && !is_number && dec_target(s->f, rec->a, &va) && o->sig(o->ctx, va, ret);
}

/* What argument i in general registers is, as far as it is a number or an address. */
static bool known_arg(const struct ssa *s, unsigned i, uint64_t *ret)
{
	uint16_t k = s->number[s->d->conv.int_arg[i]];
	ir_ref r = k == UINT16_MAX ? IR_REF_NONE : s->def[k];
	for (unsigned n = 0; r != IR_REF_NONE && n < MIN(s->translated_cnt, (unsigned)TRANSLATED_MAX); n++) {
		if (s->translated[n].value != r)
			continue;
		*ret = s->translated[n].text;
		return true;
	}
	return r != IR_REF_NONE && dec_target(s->b.f, r, ret);
}

/* Of a call of a function that takes any number of arguments: none is in a vector register. */
static bool has_call_sig(const struct ssa *s, const struct ir_rec *rec, bool is_any, struct ir_sig *ret)
{
	uint64_t va, args[6] = {0}, vecs;
	unsigned known = 0;
	const struct dec_opts *o = s->d->opts;
	if (!o->call_sig || s->vec_cnt_loc == IR_LOC_NONE || (rec->flags & IR_F_COMPUTED && ir_tag(rec->a) == IR_TAG_CONST) ||
	    !dec_target(s->f, rec->a, &va))
		return false;
	if (is_any)
		return o->call_sig(o->ctx, va, NULL, 0, ret);
	uint16_t k = s->number[s->vec_cnt_loc];
	if (k == UINT16_MAX || s->def[k] == IR_REF_NONE || !ir_const_get(s->b.f, s->def[k], &vecs) || vecs & 0xff)
		return false;
	for (unsigned i = 0; i < s->d->conv.int_arg_cnt; i++)
		known |= (unsigned)known_arg(s, i, &args[i]) << i;
	return o->call_sig(o->ctx, va, args, known, ret);
}

static void use_sig(struct ssa *s, const struct ir_sig *sig)
{
	for (unsigned i = 0; i < sig->arg_cnt; i++)
		use_loc(s, sig->args[i].loc);
	if (sig->result_width != IR_W0)
		use_loc(s, sig->result);
}

static struct err *look(struct ssa *s)
{
	const struct ir_func *f = s->f;
	if (f->machine->loc_cnt > DEC_LOC_MAX)
		return err_new(ERR_UNSUPPORTED, "%s has more locations than sets of them", f->machine->name);
	memset(s->number, 0xff, sizeof(s->number));
	use_loc(s, f->machine->sp_loc);
	/* Not in the state, where callees may look for them; and what one callee gives is another's argument, or the result. */
	if (s->self)
		use_sig(s, s->self);
	s->loop_safe = s->d->conv.keeps;
	s->loop_safe.w[f->machine->sp_loc / 64] &= ~((uint64_t)1 << f->machine->sp_loc % 64);
	struct dec_set touched = {{0}};
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if (rec->op == IR_GET || rec->op == IR_PUT)
			use_loc(s, rec->aux);
		bool is_rounding = rec->op == IR_PUT && is_control(f, rec->aux);
		struct ir_sig sig;
		if ((rec->op == IR_CALL || rec->op == IR_IJMP) && has_sig(s, rec, &sig)) {
			use_sig(s, &sig);
		} else if ((rec->op == IR_CALL || rec->op == IR_IJMP) && has_call_sig(s, rec, true, &sig)) {
			use_sig(s, &sig);
			use_loc(s, s->vec_cnt_loc);
		}
		if (rec->op == IR_CALL)
			touched = or_of(touched, &s->d->conv.args);
		if (rec->op == IR_PHI)
			return err_new(ERR_INTERNAL, "the function at 0x%llx is in SSA form already", (unsigned long long)f->va);
		if (rec->op == IR_INTRIN) {
			const struct ir_intrin *in = &f->intrins[rec->aux];
			for (unsigned k = 0; k < in->in_cnt; k++)
				touch(s, &touched, in->in[k]);
			for (unsigned k = 0; k < in->out_cnt; k++) {
				touch(s, &touched, in->out[k]);
				is_rounding |= is_control(f, in->out[k]);
			}
			if (in->alt_len)
				touch(s, &touched, in->alt_reg);
		}
		/* Floating-point operations take the rounding from there; they are values here, which may move. */
		if (is_rounding)
			return err_new(ERR_UNSUPPORTED, "the function at 0x%llx changes how floating point rounds", (unsigned long long)f->va);
	}
	s->loop_safe = minus_of(s->loop_safe, &touched);
	return NULL;
}

/* --- making ------------------------------------------------------------------------------------------------------------------- */
static ir_ref mapped(const struct ssa *s, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? s->map[ir_index(r)] : r;
}

static ir_ref new_phi(struct ssa *s, uint32_t block, uint32_t k)
{
	uint32_t first = s->g.preds.first[block], cnt = 0;
	enum ir_width w = (enum ir_width)s->f->machine->locs[s->locs[k]].width;
	if (s->phi_cnt == s->phi_cap) {
		uint32_t cap = s->phi_cap * 2 + 64;
		struct phi *phis = ARENA_RAW_ARRAY(s->d->arena, struct phi, cap);
		if (!phis) {
			s->b.failed = true;
			return ir_const(s->b.f, w, 0);
		}
		if (s->phi_cnt)
			memcpy(phis, s->phis, s->phi_cnt * sizeof(*phis));
		s->phis = phis;
		s->phi_cap = cap;
	}
	struct ir_rec rec = {.op = IR_PHI, .width = (uint8_t)w, .a = IR_REF_NONE};
	uint32_t list = s->b.f->list_cnt;
	for (uint32_t i = first; i < s->g.preds.first[block + 1]; i++) {
		uint32_t p = s->g.preds.list[i];
		if (s->g.rpo_at[p] == UINT32_MAX)
			continue;
		ir_ref v = s->is_done[p] ? s->defs[(size_t)s->g.rpo_at[p] * s->loc_cnt + k] : ir_const(s->b.f, w, 0);
		if (v == IR_REF_NONE)
			v = ir_const(s->b.f, w, 0);
		(void)ir_list(s->b.f, &v, 1);
		cnt++;
	}
	rec.a = IR_REF_NONE;
	rec.b = list;
	rec.c = cnt;
	ir_ref r = dec_put_rec(&s->b, &rec);
	if (!s->b.failed)
		s->phis[s->phi_cnt++] = (struct phi){ir_index(r), block, k};
	return r;
}

/* The one value all preds that are done leave; NONE when they differ. */
static ir_ref common(const struct ssa *s, const ir_ref *table, uint32_t block, uint32_t k, bool *ret_all_done)
{
	ir_ref v = IR_REF_NONE;
	bool differs = false;
	*ret_all_done = true;
	for (uint32_t i = s->g.preds.first[block]; i < s->g.preds.first[block + 1]; i++) {
		uint32_t p = s->g.preds.list[i];
		if (s->g.rpo_at[p] == UINT32_MAX)
			continue;
		if (!s->is_done[p]) {
			*ret_all_done = false;
			continue;
		}
		ir_ref is = table[(size_t)s->g.rpo_at[p] * s->loc_cnt + k];
		differs |= is == IR_REF_NONE || (v != IR_REF_NONE && v != is);
		v = is;
	}
	return differs ? IR_REF_NONE : v;
}

/* A join of what the state holds, where the join of the values is just that. */
static ir_ref joined_state(const struct ssa *s, uint32_t block, uint32_t k)
{
	const struct ir_rec *phi = dec_rec(s->b.f, s->def[k]);
	if (!phi || phi->op != IR_PHI || s->b.block_of[ir_index(s->def[k])] != block)
		return IR_REF_NONE;
	uint32_t at = 0;
	for (uint32_t i = s->g.preds.first[block]; i < s->g.preds.first[block + 1]; i++) {
		uint32_t p = s->g.preds.list[i];
		if (s->g.rpo_at[p] == UINT32_MAX)
			continue;
		if (!s->is_done[p] || s->state[(size_t)s->g.rpo_at[p] * s->loc_cnt + k] != s->b.f->lists[phi->b + at])
			return IR_REF_NONE;
		at++;
	}
	return s->def[k];
}

static ir_ref get_loc(struct ssa *s, unsigned loc)
{
	const struct ir_rec get = {.op = IR_GET, .width = s->f->machine->locs[loc].width, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = loc};
	return dec_put_rec(&s->b, &get);
}

static ir_ref get_narrow(struct ssa *s, unsigned loc, unsigned width)
{
	const struct ir_rec get = {.op = IR_GET, .width = (uint8_t)width, .flags = IR_F_TYPED, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = loc};
	return dec_put_rec(&s->b, &get);
}

/* As wide as the location it is of. */
static ir_ref widened(struct ssa *s, unsigned loc, ir_ref v)
{
	const struct ir_rec wide = {.op = IR_ZEXT, .width = s->f->machine->locs[loc].width, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE};
	return ir_ref_width(s->b.f, v) == wide.width ? v : dec_op(&s->b, &wide);
}

static void put_typed(struct ssa *s, unsigned loc, unsigned width, ir_ref v)
{
	struct ir_rec part = {.op = IR_EXTRACT, .width = (uint8_t)width, .a = v, .b = IR_REF_NONE, .c = IR_REF_NONE};
	const struct ir_rec put = {.op = IR_PUT, .width = (uint8_t)width, .flags = IR_F_TYPED,
				   .a = width == s->f->machine->locs[loc].width ? v : dec_op(&s->b, &part), .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = loc};
	dec_put_rec(&s->b, &put);
}

static const struct ir_sig_arg *arg_at(const struct ir_sig *sig, unsigned loc)
{
	for (unsigned i = 0; sig && i < sig->arg_cnt; i++)
		if (sig->args[i].loc == loc)
			return &sig->args[i];
	return NULL;
}

static ir_ref moved(struct ssa *s, ir_ref sp, int64_t by)
{
	enum ir_width w = (enum ir_width)s->f->machine->addr_width;
	return dec_op2(&s->b, IR_ADD, w, sp, ir_const(s->b.f, w, (uint64_t)by));
}

/* What is in a location when the function begins, or the parameter that is. */
static ir_ref begin_loc(struct ssa *s, unsigned loc)
{
	const struct ir_sig_arg *arg = arg_at(s->self, loc);
	return arg ? get_narrow(s, loc, arg->width) : get_loc(s, loc);
}

/* Behind all of that. */
static void begin_def(struct ssa *s, uint32_t k)
{
	unsigned loc = s->locs[k];
	if (arg_at(s->self, loc)) {
		s->st[k] = IR_REF_NONE;
		s->def[k] = widened(s, loc, s->def[k]);
	} else if (s->self && loc == s->f->machine->sp_loc) {
		s->def[k] = moved(s, s->st[k], -(int64_t)s->d->conv.ptr_bytes);
	}
}

static void enter(struct ssa *s, uint32_t block)
{
	const struct ir_func *f = s->f;
	s->b.f->cur_origin = f->recs[f->order[f->blocks[block].first]].origin;
	for (uint32_t k = 0; k < s->loc_cnt; k++) {
		bool is_live = dec_set_has(&s->live_in[block], s->locs[k]), all_done;
		s->def[k] = s->st[k] = IR_REF_NONE;
		s->put_by[k] = UINT32_MAX;
		if (block == 0) {
			/* Kept ones too: to know that the state holds them. */
			if (is_live || dec_set_has(&s->d->conv.keeps, s->locs[k]))
				s->def[k] = s->st[k] = begin_loc(s, s->locs[k]);
			continue;
		}
		ir_ref v = common(s, s->defs, block, k, &all_done);
		all_done |= s->trusts_sp && s->locs[k] == f->machine->sp_loc;
		if (is_live)
			s->def[k] = all_done && v != IR_REF_NONE ? v : new_phi(s, block, k);
		if (is_live && s->locs[k] == f->machine->sp_loc)
			s->sp_has_phi[block] = !all_done || v == IR_REF_NONE;
	}
	for (uint32_t k = 0; k < s->loc_cnt && block == 0; k++)
		if (s->def[k] != IR_REF_NONE)
			begin_def(s, k);
	for (uint32_t k = 0; k < s->loc_cnt && block != 0; k++) {
		bool all_done;
		ir_ref v = common(s, s->state, block, k, &all_done);
		if (all_done || dec_set_has(&s->loop_safe, s->locs[k]))
			s->st[k] = v != IR_REF_NONE ? v : joined_state(s, block, k);
	}
}

static ir_ref def_of(struct ssa *s, uint32_t k)
{
	if (s->def[k] == IR_REF_NONE) {
		const struct ir_rec undef = {.op = IR_UNDEF, .width = s->f->machine->locs[s->locs[k]].width, .a = IR_REF_NONE, .b = IR_REF_NONE,
					     .c = IR_REF_NONE};
		s->def[k] = dec_put_rec(&s->b, &undef);
	}
	return s->def[k];
}

/* Whether the state lacks what a location is. */
static bool is_wanted(struct ssa *s, uint32_t k)
{
	if (s->def[k] == IR_REF_NONE && s->st[k] == IR_REF_NONE && dec_set_has(&s->d->conv.keeps, s->locs[k]))
		return false;
	const struct ir_rec *is = dec_rec(s->b.f, def_of(s, k));
	return s->def[k] != s->st[k] && !(is && is->op == IR_UNDEF);
}

/* The state gets what it does not hold yet, of the locations of `set`, in the order the machine set them. */
static void put_state(struct ssa *s, const struct dec_set *set)
{
	uint16_t wanted[DEC_LOC_MAX];
	uint32_t cnt = 0, here = s->b.f->cur_origin;
	for (uint32_t k = 0; k < s->loc_cnt; k++) {
		if (!dec_set_has(set, s->locs[k]) || !is_wanted(s, k))
			continue;
		uint32_t at = cnt++;
		for (; at > 0 && s->put_by[wanted[at - 1]] + 1 > s->put_by[k] + 1; at--)
			wanted[at] = wanted[at - 1];
		wanted[at] = (uint16_t)k;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t k = wanted[i];
		unsigned loc = s->locs[k];
		const struct ir_rec *is = dec_rec(s->b.f, s->def[k]);
		const struct ir_rec put = {.op = IR_PUT, .width = s->f->machine->locs[loc].width, .a = s->def[k], .b = IR_REF_NONE,
					   .c = IR_REF_NONE, .aux = loc};
		s->b.f->cur_origin = s->put_by[k] != UINT32_MAX ? s->put_by[k] : is ? is->origin : here;
		dec_put_rec(&s->b, &put);
		s->st[k] = s->def[k];
	}
	s->b.f->cur_origin = here;
}

/* The callee's signature, by its number; false: it has none. */
static bool find_sig(struct ssa *s, const struct ir_rec *rec, uint32_t *ret)
{
	struct ir_sig sig;
	if (!has_sig(s, rec, &sig) && !has_call_sig(s, rec, false, &sig))
		return false;
	struct ir_func *f = s->b.f;
	if (!(f->sig_cnt & (f->sig_cnt - 1))) {
		struct ir_sig *list = ARENA_RAW_ARRAY(s->d->arena, struct ir_sig, f->sig_cnt ? 2 * (size_t)f->sig_cnt : 1);
		if (!list)
			return false;
		if (f->sig_cnt)
			memcpy(list, f->sigs, f->sig_cnt * sizeof(*list));
		f->sigs = list;
	}
	*ret = f->sig_cnt;
	f->sigs[f->sig_cnt++] = sig;
	return true;
}

/* Arguments, all made before the first is handed over. */
static void put_args(struct ssa *s, const struct ir_sig *sig)
{
	for (unsigned i = 0; i < sig->arg_cnt; i++) {
		uint32_t k = s->number[sig->args[i].loc];
		unsigned loc = sig->args[i].loc;
		enum ir_width w = (enum ir_width)s->f->machine->locs[loc].width;
		put_typed(s, loc, sig->args[i].width, k == UINT16_MAX ? ir_const(s->b.f, w, 0) : def_of(s, k));
	}
	for (unsigned i = 0; i < sig->arg_cnt; i++)
		if (s->number[sig->args[i].loc] != UINT16_MAX)
			s->st[s->number[sig->args[i].loc]] = IR_REF_NONE;
}

static struct dec_set without_args(const struct ssa *s, struct dec_set set, const struct ir_sig *sig)
{
	/* Of any number of arguments those that are there are known. */
	for (unsigned i = 0; sig->is_variadic && i < s->loc_cnt; i++) {
		unsigned loc = s->locs[i];
		bool is_arg = loc == s->vec_cnt_loc || s->f->machine->locs[loc].cls == IR_LOC_VEC;
		for (unsigned k = 0; k < s->d->conv.int_arg_cnt; k++)
			is_arg |= loc == s->d->conv.int_arg[k];
		if (is_arg)
			set.w[loc / 64] &= ~((uint64_t)1 << loc % 64);
	}
	for (unsigned i = 0; i < sig->arg_cnt; i++)
		set.w[sig->args[i].loc / 64] &= ~((uint64_t)1 << sig->args[i].loc % 64);
	return set;
}

static void put_call(struct ssa *s, const struct ir_rec *rec)
{
	struct dec_set reads = reads_of(s, rec), changes = changes_of(s, rec), kills = kills_of(s, rec);
	struct dec_set more = and_of(minus_of(changes, &kills), &s->call_live[s->call_cnt - 1]);
	uint32_t number = 0;
	bool is_typed = find_sig(s, rec, &number);
	const struct ir_sig sig = is_typed ? s->b.f->sigs[number] : (struct ir_sig){0};
	if (is_typed)
		reads = without_args(s, reads, &sig);
	/* Said before each call, for those who want to know where its arguments are. */
	s->st[s->number[s->f->machine->sp_loc]] = IR_REF_NONE;
	put_state(s, &reads);
	/* What the callee may leave alone is read behind it. */
	put_state(s, &more);
	uint64_t text = 0, va;
	const struct dec_opts *o = s->d->opts;
	int which = is_typed && o->translates && dec_target(s->f, rec->a, &va) ? o->translates(o->ctx, va) : -1;
	bool has_text = which >= 0 && which < (int)s->d->conv.int_arg_cnt && known_arg(s, (unsigned)which, &text);
	struct ir_rec call = *rec;
	call.a = mapped(s, rec->a);
	call.b = mapped(s, rec->b);
	if (ir_tag(rec->a) == IR_TAG_VALUE)
		call.flags |= IR_F_COMPUTED;
	if (is_typed) {
		put_args(s, &sig);
		call.flags |= IR_F_TYPED;
		call.aux = number;
	}
	dec_put_rec(&s->b, &call);
	uint32_t result = sig.result_width != IR_W0 ? s->number[sig.result] : UINT16_MAX;
	if (result != UINT16_MAX)
		s->st[result] = IR_REF_NONE;
	const struct dec_set *live = &s->call_live[--s->call_cnt];
	for (uint32_t k = 0; k < s->loc_cnt; k++) {
		unsigned loc = s->locs[k];
		if (!dec_set_has(&changes, loc))
			continue;
		s->def[k] = s->st[k] = IR_REF_NONE;
		if (!dec_set_has(live, loc))
			continue;
		if (k == result) {
			s->def[k] = widened(s, loc, get_narrow(s, loc, sig.result_width));
			if (has_text)
				s->translated[s->translated_cnt++ % TRANSLATED_MAX] = (struct translated){s->def[k], text};
		} else {
			s->def[k] = s->st[k] = get_loc(s, loc);
		}
	}
}

/* Out of the function: to another one, when the stack is as it was at the entry and a function begins there. */
static void put_jump_out(struct ssa *s, const struct ir_rec *rec)
{
	uint64_t va;
	const struct dec_opts *o = s->d->opts;
	struct dec_set set = s->used;
	uint32_t sp = s->number[s->f->machine->sp_loc], number = 0;
	bool is_call = s->def[sp] == s->entry_sp, is_typed = is_call && find_sig(s, rec, &number);
	if (o->is_start && dec_target(s->f, rec->a, &va) && o->is_start(o->ctx, va) && is_call) {
		/* What it leaves alone is what our caller finds. */
		struct dec_set reads = reads_of(s, rec), ends = s->self ? left_of(s) : ends_of(s);
		set = or_of(reads, &ends);
	}
	s->is_lost |= s->self && !is_call;
	/* One without a signature is called with its own, and takes over its return address. */
	is_typed &= s->self != NULL;
	if (s->self)
		s->def[sp] = moved(s, s->def[sp], s->d->conv.ptr_bytes);
	if (is_typed)
		set = without_args(s, set, &s->b.f->sigs[number]);
	put_state(s, &set);
	struct ir_rec jump = *rec;
	jump.a = mapped(s, rec->a);
	if (ir_tag(rec->a) == IR_TAG_VALUE)
		jump.flags |= IR_F_COMPUTED;
	if (is_typed) {
		put_args(s, &s->b.f->sigs[number]);
		jump.flags |= IR_F_TYPED;
		jump.aux = number;
	}
	dec_put_rec(&s->b, &jump);
}

/* Of a value and a number the value. */
static ir_ref base_of(const struct ssa *s, ir_ref r)
{
	const struct ir_rec *rec = dec_rec(s->b.f, r);
	uint64_t by;
	return rec && rec->op == IR_ADD && ir_const_get(s->b.f, rec->b, &by) ? rec->a : r;
}

static void put_return(struct ssa *s, const struct ir_rec *rec)
{
	struct dec_set set = s->self ? left_of(s) : ends_of(s);
	uint32_t sp = s->number[s->f->machine->sp_loc];
	if (s->self) {
		/* What was pushed is no return address of ours. */
		bool is_pushed = s->def[sp] != s->entry_sp && base_of(s, s->def[sp]) == base_of(s, s->entry_sp);
		s->is_lost |= rec->aux != 0 || is_pushed;
		s->def[sp] = moved(s, s->def[sp], s->d->conv.ptr_bytes);
	}
	put_state(s, &set);
	if (s->self && s->self->result_width != IR_W0) {
		uint32_t k = s->number[s->self->result];
		enum ir_width w = (enum ir_width)s->f->machine->locs[s->self->result].width;
		put_typed(s, s->self->result, s->self->result_width, k == UINT16_MAX ? ir_const(s->b.f, w, 0) : def_of(s, k));
	}
	dec_put_rec(&s->b, rec);
}

/* What the C of an unlifted instruction leaves in the state is not what was there. */
static void forget_state(struct ssa *s, const struct ir_intrin *in)
{
	for (unsigned k = 0; k < in->in_cnt; k++)
		s->st[s->number[in->in[k]]] = IR_REF_NONE;
	for (unsigned k = 0; k < in->out_cnt; k++)
		s->st[s->number[in->out[k]]] = IR_REF_NONE;
	if (in->alt_len)
		s->st[s->number[in->alt_reg]] = IR_REF_NONE;
	for (uint32_t k = 0; k < s->loc_cnt; k++) {
		enum ir_loc_class cls = (enum ir_loc_class)s->f->machine->locs[s->locs[k]].cls;
		if (cls == IR_LOC_X87 || (cls == IR_LOC_FLAG && s->locs[k] != s->d->conv.df))
			s->st[k] = IR_REF_NONE;
	}
}

static ir_ref put_listed(struct ssa *s, const struct ir_rec *rec)
{
	struct ir_rec out = *rec;
	out.b = s->b.f->list_cnt;
	for (uint32_t i = 0; i < rec->c; i++) {
		ir_ref r = mapped(s, s->f->lists[rec->b + i]);
		(void)ir_list(s->b.f, &r, 1);
	}
	if (rec->op == IR_SWITCH)
		out.a = mapped(s, rec->a);
	return dec_put_rec(&s->b, &out);
}

/* Constants are shared with the lifted function, see start(). */
static void put_any(struct ssa *s, uint32_t id)
{
	const struct ir_rec *rec = &s->f->recs[id];
	struct ir_rec out = *rec;
	s->b.f->cur_origin = rec->origin;
	switch (rec->op) {
	case IR_GET:
		s->map[id] = def_of(s, s->number[rec->aux]);
		return;
	case IR_PUT:
		s->def[s->number[rec->aux]] = mapped(s, rec->a);
		s->put_by[s->number[rec->aux]] = rec->origin;
		return;
	case IR_CALL:
		put_call(s, rec);
		return;
	case IR_RET:
		put_return(s, rec);
		return;
	case IR_IJMP:
		put_jump_out(s, rec);
		return;
	case IR_INTRIN:
		s->map[id] = put_listed(s, rec);
		forget_state(s, &s->f->intrins[rec->aux]);
		return;
	case IR_MEMOP:
	case IR_SWITCH:
		s->map[id] = put_listed(s, rec);
		return;
	default:
		break;
	}
	unsigned n = ir_fixed_operands((enum ir_op)rec->op);
	out.a = n > 0 ? mapped(s, rec->a) : out.a;
	out.b = n > 1 ? mapped(s, rec->b) : out.b;
	out.c = n > 2 ? mapped(s, rec->c) : out.c;
	bool is_value = dec_is_pure((enum ir_op)rec->op) || rec->op == IR_DIV || rec->op == IR_DIVW;
	s->map[id] = is_value ? dec_op(&s->b, &out) : dec_put_rec(&s->b, &out);
}

static void put_block(struct ssa *s, uint32_t block)
{
	const struct ir_func *f = s->f;
	size_t row = (size_t)s->g.rpo_at[block] * s->loc_cnt;
	s->def = s->defs + row;
	s->st = s->state + row;
	dec_build_block(&s->b, block);
	make_call_live(s, block);
	enter(s, block);
	if (block == 0)
		s->entry_sp = s->def[s->number[f->machine->sp_loc]];
	for (uint32_t i = f->blocks[block].first; i < f->blocks[block].last && !s->b.failed; i++)
		put_any(s, f->order[i]);
	s->is_done[block] = true;
}

/* --- joins ------------------------------------------------------------------------------------------------------------------- */
static void fill_phis(struct ssa *s)
{
	struct ir_func *o = s->b.f;
	for (uint32_t i = 0; i < s->phi_cnt; i++) {
		const struct phi *p = &s->phis[i];
		uint32_t at = o->recs[p->rec].b;
		for (uint32_t k = s->g.preds.first[p->block]; k < s->g.preds.first[p->block + 1]; k++) {
			uint32_t from = s->g.preds.list[k];
			if (s->g.rpo_at[from] == UINT32_MAX)
				continue;
			ir_ref v = s->defs[(size_t)s->g.rpo_at[from] * s->loc_cnt + p->loc];
			if (v != IR_REF_NONE)
				o->lists[at] = v;
			at++;
		}
	}
}

/* Machine instructions, unlifted ones and constants are those of the lifted function. */
static struct ir_func *start(struct ssa *s)
{
	const struct ir_func *f = s->f;
	struct ir_func *o = ir_func_new(s->d->arena, f->machine, f->va);
	if (!o)
		return NULL;
	o->self = s->self;
	o->origins = f->origins;
	o->origin_cnt = o->origin_cap = f->origin_cnt;
	o->intrins = f->intrins;
	o->intrin_cnt = o->intrin_cap = f->intrin_cnt;
	for (uint32_t i = 0; i < f->const_cnt; i++)
		(void)ir_const_wide(o, (enum ir_width)f->consts[i].width, &f->words[f->consts[i].first_word]);
	for (uint32_t i = 0; i < f->block_cnt; i++)
		ir_block_new(o, f->blocks[i].va);
	return o->failed ? NULL : o;
}

/* Locations set on every way to a return, and those set anywhere. */
static struct err *find_writes(struct ssa *s, struct dec_set *ret_all, struct dec_set *ret_any)
{
	const struct ir_func *f = s->f;
	struct dec_set *out = ARENA_RAW_ARRAY(s->d->arena, struct dec_set, f->block_cnt + (size_t)1);
	if (!out)
		return &err_nomem;
	memset(out, 0xff, f->block_cnt * sizeof(*out));
	*ret_any = (struct dec_set){{0}};
	for (bool changed = true; changed;) {
		changed = false;
		memset(ret_all, 0xff, sizeof(*ret_all));
		for (uint32_t k = 0; k < s->g.rpo_cnt; k++) {
			uint32_t b = s->g.rpo[k];
			struct dec_set now;
			memset(&now, b == 0 ? 0 : 0xff, sizeof(now));
			for (uint32_t i = s->g.preds.first[b]; i < s->g.preds.first[b + 1]; i++)
				now = and_of(now, &out[s->g.preds.list[i]]);
			for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
				const struct ir_rec *rec = &f->recs[f->order[i]];
				if (rec->op == IR_PUT) {
					dec_set_add(&now, rec->aux);
					dec_set_add(ret_any, rec->aux);
				}
				if (rec->op != IR_CALL && rec->op != IR_IJMP)
					continue;
				struct dec_callee c = dec_callee_at(s->d, f, rec);
				struct dec_set changes = set_of(c.changes), kept = set_of(c.may_keep), surely = minus_of(changes, &kept);
				now = or_of(now, &surely);
				*ret_any = or_of(*ret_any, &changes);
			}
			const struct ir_rec *end = &f->recs[f->order[f->blocks[b].last - 1]];
			if (end->op == IR_RET || end->op == IR_IJMP)
				*ret_all = and_of(*ret_all, &now);
			changed |= s->g.has_loop && memcmp(&now, &out[b], sizeof(now)) != 0;
			out[b] = now;
		}
	}
	return NULL;
}

static bool is_on_stack(const struct ir_func *f, ir_ref addr)
{
	const struct ir_rec *rec = dec_rec(f, addr);
	for (unsigned i = 0; rec && (rec->op == IR_ADD || rec->op == IR_SUB) && i < 4; i++)
		rec = dec_rec(f, rec->a);
	return rec && rec->op == IR_GET && rec->aux == f->machine->sp_loc;
}

/* What a block puts on the stack of what registers held at the entry; `holds` are those that still do. */
static void save_block(const struct ssa *s, uint32_t b, struct dec_set *holds, uint8_t *is_first, struct dec_set *saved)
{
	const struct ir_func *f = s->f;
	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		const struct ir_rec *of = rec->op == IR_STORE ? dec_rec(f, rec->b) : NULL;
		if (rec->op == IR_GET)
			is_first[f->order[i]] = dec_set_has(holds, rec->aux);
		if (rec->op == IR_PUT)
			holds->w[rec->aux / 64] &= ~((uint64_t)1 << rec->aux % 64);
		if (of && of->op == IR_GET && is_first[ir_index(rec->b)] && is_on_stack(f, rec->a))
			dec_set_add(saved, of->aux);
	}
}

/* General registers a callee is to keep that are put nowhere on the stack as they were at the entry: it cannot give them back, so what reads
 * one takes an argument there, and what sets one changes it. Compilers make none of that; functions written by hand call each other so. */
static bool find_unsaved(const struct ssa *s, struct dec_set *ret)
{
	const struct ir_machine *m = s->f->machine;
	struct dec_set saved = {{0}}, *out = ARENA_ARRAY(s->d->arena, struct dec_set, s->f->block_cnt + (size_t)1);
	uint8_t *is_first = ARENA_ARRAY(s->d->arena, uint8_t, s->f->rec_cnt + (size_t)1);
	*ret = (struct dec_set){{0}};
	for (bool changed = out && is_first; changed;) {
		changed = false;
		for (uint32_t k = 0; k < s->g.rpo_cnt; k++) {
			uint32_t b = s->g.rpo[k];
			struct dec_set now = b == 0 ? s->d->conv.keeps : (struct dec_set){{0}};
			for (uint32_t i = s->g.preds.first[b]; i < s->g.preds.first[b + 1]; i++)
				now = or_of(now, &out[s->g.preds.list[i]]);
			save_block(s, b, &now, is_first, &saved);
			changed |= s->g.has_loop && memcmp(&now, &out[b], sizeof(now)) != 0;
			out[b] = now;
		}
	}
	for (unsigned l = 0; l < m->loc_cnt; l++)
		if (m->locs[l].cls == IR_LOC_GPR && l != m->sp_loc && dec_set_has(&s->d->conv.keeps, l) && !dec_set_has(&saved, l))
			dec_set_add(ret, l);
	return out && is_first;
}

struct err *dec_ssa_effects(struct dec *d, struct dec_callee *ret)
{
	struct ssa s = {.d = d, .f = d->f, .is_reads_only = true, .vec_cnt_loc = IR_LOC_NONE};
	struct dec_set all, any;
	struct err *e = look(&s);
	/* How it rounds is no concern of callers. */
	if (e && e->kind != ERR_UNSUPPORTED)
		return e;
	err_free(e);
	/* What the function does not name goes through it. */
	for (unsigned i = 0; i < s.f->machine->loc_cnt && i < DEC_LOC_MAX; i++)
		if (dec_set_has(&d->conv.args, i))
			use_loc(&s, i);
	if (!dec_graph_flow(d->f, d->arena, &s.g) || !make_live(&s))
		return &err_nomem;
	struct dec_set unsaved;
	if (!find_unsaved(&s, &unsaved))
		return &err_nomem;
	struct dec_set args = or_of(d->conv.args, &unsaved), reads = and_of(s.live_in[0], &args);
	e = find_writes(&s, &all, &any);
	if (e)
		return e;
	struct dec_set changed = or_of(d->conv.changes, &unsaved), changes = and_of(changed, &any), may_keep = minus_of(changes, &all);
	memcpy(ret->reads, reads.w, sizeof(ret->reads));
	memcpy(ret->changes, changes.w, sizeof(ret->changes));
	memcpy(ret->may_keep, may_keep.w, sizeof(ret->may_keep));
	return NULL;
}

/* Whether loops left the stack pointer as it was taken to be at their heads. */
static bool is_sp_right(const struct ssa *s)
{
	uint32_t k = s->number[s->f->machine->sp_loc];
	for (uint32_t i = 1; i < s->g.rpo_cnt; i++) {
		uint32_t b = s->g.rpo[i];
		bool all_done;
		ir_ref v = common(s, s->defs, b, k, &all_done);
		/* Ways that differ have a join. */
		for (uint32_t p = s->g.preds.first[b]; p < s->g.preds.first[b + 1] && v == IR_REF_NONE; p++) {
			uint32_t from = s->g.preds.list[p];
			if (s->g.rpo_at[from] != UINT32_MAX && s->g.rpo_at[from] >= i && !s->sp_has_phi[b])
				return false;
		}
	}
	return true;
}

static struct err *make_ssa(struct dec *d, bool trusts_sp, bool *ret_is_wrong)
{
	struct ssa s = {.d = d, .f = d->f, .self = d->opts->self, .trusts_sp = trusts_sp, .vec_cnt_loc = ir_loc_find(d->f->machine, "rax", 3)};
	*ret_is_wrong = false;
	struct err *e = look(&s);
	if (e)
		return e;
	struct ir_func *o = start(&s);
	const struct ir_func *f = d->f;
	if (!o || !dec_graph_make(d->f, d->arena, &s.g) || !make_live(&s))
		return &err_nomem;
	size_t cells = (size_t)s.g.rpo_cnt * s.loc_cnt;
	if (cells > 4u << 20)
		return dec_budget(d);
	s.defs = ARENA_RAW_ARRAY(d->arena, ir_ref, cells + 1);
	s.state = ARENA_RAW_ARRAY(d->arena, ir_ref, cells + 1);
	s.put_by = ARENA_RAW_ARRAY(d->arena, uint32_t, s.loc_cnt + (size_t)1);
	s.is_done = ARENA_ARRAY(d->arena, bool, f->block_cnt + (size_t)1);
	s.sp_has_phi = ARENA_ARRAY(d->arena, bool, f->block_cnt + (size_t)1);
	s.map = ARENA_RAW_ARRAY(d->arena, ir_ref, f->rec_cnt + (size_t)1);
	if (!s.defs || !s.state || !s.put_by || !s.is_done || !s.sp_has_phi || !s.map ||
	    !dec_build_init(&s.b, o, &s.g, f->rec_cnt + 256, d->step_limit - d->steps))
		return &err_nomem;
	s.b.rules_off = d->opts->rules_off;
	for (uint32_t i = 0; i < s.g.rpo_cnt && !s.b.failed; i++)
		put_block(&s, s.g.rpo[i]);
	for (uint32_t b = 0; b < f->block_cnt && !s.b.failed; b++) {
		const struct ir_rec trap = {.op = IR_TRAP, .kind = IR_TRAP_END, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
		if (s.g.rpo_at[b] != UINT32_MAX)
			continue;
		dec_build_block(&s.b, b);
		dec_put_rec(&s.b, &trap);
	}
	d->steps += s.b.steps;
	if (o->failed || (s.b.failed && s.b.steps <= s.b.step_limit))
		return &err_nomem;
	if (s.b.failed)
		return dec_budget(d);
	if (trusts_sp && !is_sp_right(&s)) {
		*ret_is_wrong = true;
		return NULL;
	}
	if (s.is_lost)
		return err_new(ERR_UNSUPPORTED, "the function at 0x%llx leaves with the stack in another place", (unsigned long long)f->va);
	fill_phis(&s);
	d->f = o;
	return NULL;
}

struct err *dec_ssa(struct dec *d)
{
	bool is_wrong;
	struct err *e = make_ssa(d, true, &is_wrong);
	return e || !is_wrong ? e : make_ssa(d, false, &is_wrong);
}
