/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_values.h"

#include "ir/ir_interp.h"

#include <stdlib.h>
#include <string.h>

/*
 * Requires: SSA, every block reached. Provides: switches on values in place of jumps through tables and of trees of comparisons. Breaks:
 * nothing; blocks that only compared are no longer reached.
 *
 * A block whose end looks at one value, the tested one, is the root of a tree: behind it stand blocks that do nothing but look at the same
 * value again. Each way through the tree has the set of values that take it; what is decided by neither is no part of it. Sets follow from
 * comparisons by arithmetic, and where a condition or an address is something else (a mask of bits, a table), by computing it for each value, of
 * which there must be few then. Each entry of a table is read and has to lead to where the jump was known to lead.
 *
 * A tree becomes a switch when it was one: it has a table, or asks for bits of a mask, or compares the value with three numbers and leads to three
 * places, or compares twice with one number (equal, then less).
 */

#define VALUES_MAX 4096 /* that are tried one by one, and cases of a switch */
#define EVAL_DEPTH_MAX 24
#define TREE_DEPTH_MAX 64
#define UP_MAX 16       /* blocks before one that are asked for what they know of a value */

struct value {
	uint64_t v;
	uint32_t group;
};

/* A way out of a tree. */
struct leaf {
	uint32_t to, from;
	uint32_t group;
	struct dec_values set;
};

struct trees {
	struct dec *d;
	struct ir_func *f;
	struct arena *a;       /* for as long as the pass */
	struct arena scratch;  /* for a tree */
	struct dec_graph g;
	bool *is_done;         /* blocks: the root of a tree, or in one */
	bool *is_used_outside; /* records: by another block than their own */
	uint32_t *block_of;    /* records */
	uint32_t *into;        /* blocks: the root whose tree it was, or UINT32_MAX */
	uint32_t *loop, *loop_up; /* blocks: header of the innermost loop; headers: that of the loop around it; or UINT32_MAX */
	uint32_t *inner_first, *inner_next; /* blocks of a root's tree, in their order */
	uint32_t old_cnt;      /* blocks */
	uint32_t looked_at;    /* block */
	uint32_t made_cnt;
	uint64_t eval_left;    /* operations that may still be computed */
	struct leaf *leaves;   /* room of a tree */
	uint32_t *inner;
	uint64_t *consts;
	struct value *values;
	ir_ref *list;
	bool failed;
};

/* The tree at hand. */
struct tree {
	ir_ref root;
	enum ir_width width;
	struct leaf *leaves;
	uint32_t leaf_cnt, leaf_cap;
	uint32_t *inner;
	uint32_t inner_cnt;
	uint64_t *consts;     /* compared for equality */
	uint32_t const_cnt;
	uint32_t range_cnt;   /* ... for being in a range */
	bool may_guess;       /* where a table ends */
	bool has_table, has_bits, has_pair;
};

/* --- sets ------------------------------------------------------------------------------------------------------------ */
static bool set_new(struct trees *t, struct dec_values *s)
{
	s->cnt = 0;
	s->spans = ARENA_RAW_ARRAY(&t->scratch, struct dec_span, DEC_SPANS_MAX);
	t->failed |= !s->spans;
	return s->spans;
}

/* Drops the room that is not used. */
static bool set_keep(struct trees *t, const struct dec_values *from, struct dec_values *to)
{
	to->cnt = from->cnt;
	to->spans = ARENA_RAW_ARRAY(&t->scratch, struct dec_span, from->cnt + (size_t)1);
	t->failed |= !to->spans;
	if (to->spans)
		memcpy(to->spans, from->spans, from->cnt * sizeof(*to->spans));
	return to->spans;
}

/* --- computing a value ---------------------------------------------------------------------------------------------------- */
static bool eval(struct trees *t, ir_ref v, ir_ref root, uint64_t x, unsigned depth, struct ir_val *ret)
{
	const struct ir_func *f = t->f;
	*ret = (struct ir_val){{0}};
	if (v == root) {
		ret->w[0] = x;
		return true;
	}
	if (ir_const_get(f, v, &ret->w[0]))
		return true;
	const struct ir_rec *rec = dec_rec(f, v), *low = dec_rec(f, root);
	uint64_t mask;
	/* Bits of what the tested value is the low part of. */
	if (rec && rec->op == IR_AND && low && low->op == IR_EXTRACT && !low->aux && low->a == rec->a && ir_const_get(f, rec->b, &mask) &&
	    !(mask & ~dec_mask((enum ir_width)low->width))) {
		ret->w[0] = x & mask;
		return true;
	}
	if (!rec || depth == EVAL_DEPTH_MAX || !t->eval_left || ir_bits((enum ir_width)rec->width) > 64 || rec->width == IR_W0)
		return false;
	t->eval_left--;
	if (rec->op == IR_GADDR)
		return ir_const_get(f, rec->a, &ret->w[0]);
	struct ir_val a = {{0}}, b = {{0}}, c = {{0}};
	unsigned n = ir_fixed_operands((enum ir_op)rec->op);
	bool is_load = rec->op == IR_LOAD;
	if (ir_has_list((enum ir_op)rec->op) || !(is_load || dec_is_pure((enum ir_op)rec->op)))
		return false;
	if ((n > 0 && !eval(t, rec->a, root, x, depth + 1, &a)) || (n > 1 && rec->b != IR_REF_NONE && !eval(t, rec->b, root, x, depth + 1, &b)) ||
	    (n > 2 && rec->c != IR_REF_NONE && !eval(t, rec->c, root, x, depth + 1, &c)))
		return false;
	if (is_load) {
		const struct dec_opts *o = t->d->opts;
		size_t len = ir_bits((enum ir_width)rec->width) / 8;
		bool is_plain = !(rec->flags & (IR_F_BE | IR_F_VOLATILE)) && !f->machine->is_be;
		return is_plain && o->rodata && o->rodata(o->ctx, a.w[0], ret->w, len);
	}
	enum ir_width xw = ir_ref_width(f, rec->op == IR_INSERT ? rec->b : rec->a);
	return ir_eval(rec, xw, &a, &b, &c, ret) && !ret->is_undef;
}

/* --- conditions -------------------------------------------------------------------------------------------------------------- */
/* The number the tested value is compared with. */
static void note_const(struct tree *tr, const struct dec_chain *c, uint64_t v, bool is_eq)
{
	for (unsigned i = 0; i < c->cnt; i++)
		v = c->steps[i].op == IR_ADD ? v - c->steps[i].add : v;
	v &= dec_mask(tr->width);
	for (uint32_t i = 0; i < tr->const_cnt; i++)
		/* "More than 5" may have become "6 at least". */
		if (tr->consts[i] == v || (!is_eq && tr->consts[i] - v + 1 <= 2)) {
			tr->has_pair |= !is_eq;
			return;
		}
	if (is_eq && tr->const_cnt < VALUES_MAX)
		tr->consts[tr->const_cnt++] = v;
}

/* Whether v is "not something", and of what. */
static bool is_negation(const struct ir_func *f, const struct ir_rec *rec, ir_ref *of)
{
	uint64_t c;
	if (!rec || (rec->op != IR_XOR && rec->op != IR_CMP) || ir_ref_width(f, rec->a) != IR_W1 || !ir_const_get(f, rec->b, &c))
		return false;
	*of = rec->a;
	return rec->op == IR_XOR ? c == 1 : rec->kind == IR_CMP_EQ && !c;
}

/* Whether it asks for a bit of a number, and the value says which. */
static bool asks_for_bit(const struct ir_func *f, ir_ref v, unsigned depth)
{
	const struct ir_rec *rec = dec_rec(f, v);
	uint64_t c;
	if (!rec || depth == 6 || !dec_is_pure((enum ir_op)rec->op))
		return false;
	if (rec->op == IR_SHL || rec->op == IR_LSHR || rec->op == IR_ASHR)
		return ir_const_get(f, rec->a, &c) && !ir_const_get(f, rec->b, &c);
	unsigned n = ir_fixed_operands((enum ir_op)rec->op);
	return (n > 0 && asks_for_bit(f, rec->a, depth + 1)) || (n > 1 && asks_for_bit(f, rec->b, depth + 1));
}

/* Whether what stands in a block behind record `from`, up to `to`, leaves memory as it is; UINT32_MAX: from its start, to its end. */
static bool keeps_memory(const struct ir_func *f, uint32_t b, uint32_t from, uint32_t to)
{
	bool is_on = from == UINT32_MAX;
	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last && f->order[i] != to; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		bool is_quiet = rec->op == IR_LOAD || rec->op == IR_GET || rec->op == IR_PUT || rec->op == IR_PHI || rec->op == IR_BR ||
				rec->op == IR_JMP;
		if (is_on && !is_quiet && !dec_is_pure((enum ir_op)rec->op))
			return false;
		is_on |= f->order[i] == from;
	}
	return true;
}

/* Whether r is the tested value: it itself, or what was loaded from the same place on the only way there, and not stored to since. */
static bool is_root(const struct trees *t, const struct tree *tr, ir_ref r)
{
	const struct ir_func *f = t->f;
	const struct ir_rec *x = dec_rec(f, tr->root), *y = dec_rec(f, r);
	if (r == tr->root || !x || !y || x->op != IR_LOAD || y->op != IR_LOAD)
		return r == tr->root;
	if (x->a != y->a || x->b != y->b || x->width != y->width || x->kind != y->kind || (x->flags | y->flags) & IR_F_VOLATILE)
		return false;
	uint32_t b = t->block_of[ir_index(tr->root)], top = t->block_of[ir_index(r)], to = ir_index(tr->root);
	for (unsigned i = 0; i < UP_MAX && b != top; i++) {
		if (t->g.preds.first[b + 1] - t->g.preds.first[b] != 1 || !keeps_memory(f, b, UINT32_MAX, to))
			return false;
		b = t->g.preds.list[t->g.preds.first[b]];
		to = UINT32_MAX;
	}
	return b == top && to == UINT32_MAX && keeps_memory(f, b, ir_index(r), to);
}

/* Of the values in `in` those for which condition v holds. */
static bool set_of_cond(struct trees *t, struct tree *tr, ir_ref v, const struct dec_values *in, struct dec_values *out)
{
	const struct ir_func *f = t->f;
	struct dec_chain c;
	bool is_right, is_not = false, ok = true;
	uint64_t number;
	struct dec_values a, b;
	for (unsigned i = 0; i < 4; i++) {
		ir_ref of;
		if (!is_negation(f, dec_rec(f, v), &of))
			break;
		v = of;
		is_not = !is_not;
	}
	const struct ir_rec *rec = dec_rec(f, v);
	if (!rec || !set_new(t, &a) || !set_new(t, &b))
		return false;
	if (dec_chain_of_cmp(f, rec, &c, &is_right, &number) && is_root(t, tr, c.root)) {
		ok = dec_values_of_cmp(rec, ir_ref_width(f, rec->a), number, is_right, &a);
		for (unsigned i = 0; i < c.cnt && ok; i++) {
			struct dec_values swap = a;
			ok = dec_values_before(&c.steps[i], &a, &b);
			a = b;
			b = swap;
		}
		if (ok)
			note_const(tr, &c, number, rec->kind == IR_CMP_EQ);
		/* x - 5 < 3: several cases at once. */
		bool is_range = (rec->kind == IR_CMP_ULT || rec->kind == IR_CMP_ULE) && c.cnt && c.steps[0].op == IR_ADD;
		tr->range_cnt += is_range && number <= DEC_SPANS_MAX;
	} else {
		if (dec_values_cnt(in) > VALUES_MAX / 8 || !asks_for_bit(f, v, 0))
			return false;
		for (uint32_t i = 0; i < in->cnt && ok; i++) {
			for (uint64_t x = in->spans[i].lo; ok; x++) {
				struct ir_val r;
				ok = eval(t, v, tr->root, x, 0, &r) && (!(r.w[0] & 1) || dec_values_add(&a, x, x));
				if (x == in->spans[i].hi)
					break;
			}
		}
		tr->has_bits |= ok;
	}
	return ok && dec_values_meet(in, &a, is_not, out);
}

/* --- trees -------------------------------------------------------------------------------------------------------------------- */
static const struct ir_rec *end_of(const struct trees *t, uint32_t b)
{
	return ir_terminator(t->f, b);
}

static bool is_by_address(const struct ir_rec *end)
{
	return end->op == IR_SWITCH && !(end->flags & IR_F_COMPUTED);
}

/* Whether a block behind the root only looks at values: then what it computes can be computed before. */
static bool is_quiet(const struct trees *t, uint32_t b)
{
	const struct ir_func *f = t->f;
	const struct ir_block *k = &f->blocks[b];
	if (t->g.preds.first[b + 1] - t->g.preds.first[b] != 1 || b == 0 || t->is_done[b])
		return false;
	for (uint32_t i = k->first; i + 1 < k->last; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		bool is_load = rec->op == IR_LOAD && !(rec->flags & IR_F_VOLATILE) && !t->is_used_outside[f->order[i]];
		if (!is_load && !dec_is_pure((enum ir_op)rec->op))
			return false;
	}
	return true;
}

/* Loads are not done before: what is made of one must not be needed elsewhere. */
static bool is_load_kept(const struct trees *t, uint32_t b)
{
	const struct ir_func *f = t->f;
	const struct ir_block *k = &f->blocks[b];
	bool has_load = false;
	for (uint32_t i = k->first; i + 1 < k->last; i++) {
		has_load |= f->recs[f->order[i]].op == IR_LOAD;
		if (has_load && t->is_used_outside[f->order[i]])
			return false;
	}
	return true;
}

static bool has_joins(const struct trees *t, uint32_t b)
{
	return t->f->recs[t->f->order[t->f->blocks[b].first]].op == IR_PHI;
}

static bool add_leaf(struct trees *t, struct tree *tr, uint32_t from, uint32_t to, const struct dec_values *s)
{
	if (!s->cnt)
		return true;
	if (tr->leaf_cnt == tr->leaf_cap)
		return false;
	struct leaf *l = &tr->leaves[tr->leaf_cnt++];
	*l = (struct leaf){.to = to, .from = from};
	return set_keep(t, s, &l->set);
}

/* The case of a jump by address that a value leads to: its place in the list. UINT32_MAX: to none. */
static uint32_t case_of(struct trees *t, const struct tree *tr, const struct ir_rec *end, uint64_t x)
{
	const struct ir_func *f = t->f;
	struct ir_val to;
	uint64_t at;
	if (!eval(t, end->a, tr->root, x, 0, &to))
		return UINT32_MAX;
	for (uint32_t k = 0; k < end->c / 2; k++)
		if (ir_const_get(f, f->lists[end->b + 2 * k], &at) && at == to.w[0])
			return k;
	return UINT32_MAX;
}

/* Without bounds a table ends before what is no entry of one. */
static bool guess_end(struct trees *t, const struct tree *tr, const struct ir_rec *end, const struct dec_values *in, struct dec_values *ret)
{
	uint64_t lo = in->spans[0].lo, cnt = 0;
	while (cnt < VALUES_MAX && lo + cnt <= in->spans[0].hi && case_of(t, tr, end, lo + cnt) != UINT32_MAX)
		cnt++;
	return cnt > 1 && cnt < VALUES_MAX && dec_values_add(ret, lo, lo + cnt - 1);
}

/* The cases of a jump by address: values by the block they lead to. */
static bool split_table(struct trees *t, struct tree *tr, uint32_t b, const struct dec_values *all)
{
	const struct ir_func *f = t->f;
	const struct ir_rec *end = end_of(t, b);
	uint32_t n = end->c / 2;
	struct dec_values *sets = ARENA_ARRAY(&t->scratch, struct dec_values, n + (size_t)1), in = *all, rest;
	t->failed |= !sets;
	if (!sets || tr->leaf_cap - tr->leaf_cnt < n + 2 || n > VALUES_MAX || !set_new(t, &rest))
		return false;
	bool is_guess = dec_values_cnt(all) > VALUES_MAX;
	if (is_guess && (!tr->may_guess || !set_new(t, &in) || !guess_end(t, tr, end, all, &in) || !dec_values_meet(all, &in, true, &rest)))
		return false;
	for (uint32_t k = 0; k < n; k++)
		if (!set_new(t, &sets[k]))
			return false;
	for (uint32_t i = 0; i < in.cnt; i++) {
		for (uint64_t x = in.spans[i].lo;; x++) {
			uint32_t k = case_of(t, tr, end, x);
			/* An entry that leads elsewhere: it is not the table. */
			if (k == UINT32_MAX || !dec_values_add(&sets[k], x, x))
				return false;
			if (x == in.spans[i].hi)
				break;
		}
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t to = ir_index(f->lists[end->b + 2 * k + 1]);
		/* No value leads there: then that is not all of the table, or joins would have a way less. */
		if (!sets[k].cnt && (is_guess || has_joins(t, to)))
			return false;
		if (!add_leaf(t, tr, b, to, &sets[k]))
			return false;
	}
	tr->has_table = true;
	return !is_guess || add_leaf(t, tr, b, end->aux, &rest);
}

static bool is_in_loop(const struct trees *t, uint32_t b, uint32_t header)
{
	uint32_t l = t->loop[b];
	for (unsigned i = 0; l != header && l != UINT32_MAX && i < 64; i++)
		l = t->loop_up[l];
	return l == header;
}

/* Whether a block decides on going on with its loop: that is no case. */
static bool ends_loop(const struct trees *t, uint32_t b)
{
	const struct ir_rec *end = end_of(t, b);
	uint32_t h = t->loop[b];
	return h != UINT32_MAX && end->op == IR_BR && is_in_loop(t, ir_index(end->b), h) != is_in_loop(t, ir_index(end->c), h);
}

/* Whether a block may stand in the tree of the one before it. */
static bool looks_on(const struct trees *t, uint32_t b)
{
	const struct ir_rec *end = end_of(t, b);
	return end && (end->op == IR_BR || is_by_address(end)) && is_quiet(t, b) && is_load_kept(t, b);
}

struct step {
	uint32_t block;
	struct dec_values in;
};

/* Where the values in `in` go from block b; false: it does not look at the tested value, or at too many of them. */
static bool split(struct trees *t, struct tree *tr, const struct step *s, struct dec_values ways[2])
{
	const struct ir_rec *end = end_of(t, s->block);
	if (is_by_address(end))
		return split_table(t, tr, s->block, &s->in);
	return end->op == IR_BR && set_new(t, &ways[0]) && set_new(t, &ways[1]) && set_of_cond(t, tr, end->a, &s->in, &ways[0]) &&
	       dec_values_meet(&s->in, &ways[0], true, &ways[1]);
}

static bool grow_tree(struct trees *t, struct tree *tr, uint32_t top, const struct dec_values *all)
{
	struct step stack[TREE_DEPTH_MAX];
	uint32_t cnt = 0;
	stack[cnt++] = (struct step){top, *all};
	while (cnt) {
		struct step s = stack[--cnt];
		struct dec_values ways[2] = {{0}};
		uint32_t had = tr->leaf_cnt;
		if (!split(t, tr, &s, ways)) {
			tr->leaf_cnt = had;
			if (s.block == top || t->failed)
				return false;
			/* It stays as it is, behind a way out. */
			uint32_t from = t->g.preds.list[t->g.preds.first[s.block]];
			if (!add_leaf(t, tr, from, s.block, &s.in))
				return false;
			continue;
		}
		if (s.block != top)
			tr->inner[tr->inner_cnt++] = s.block;
		if (end_of(t, s.block)->op != IR_BR)
			continue;
		const ir_ref to[2] = {end_of(t, s.block)->b, end_of(t, s.block)->c};
		if (to[0] == to[1])
			return false;
		for (unsigned k = 2; k-- > 0;) {
			uint32_t next = ir_index(to[k]);
			/* Who looks at the tree's root itself would lose a way. */
			if (!ways[k].cnt && s.block == top)
				return false;
			if (!ways[k].cnt)
				continue;
			if (next != top && looks_on(t, next) && cnt < TREE_DEPTH_MAX)
				stack[cnt++] = (struct step){next, ways[k]};
			else if (!add_leaf(t, tr, s.block, next, &ways[k]))
				return false;
		}
	}
	return true;
}

/* --- what is known of a value ----------------------------------------------------------------------------------------------- */
static uint64_t highest(const struct ir_func *f, ir_ref v, unsigned depth)
{
	const struct ir_rec *rec = dec_rec(f, v);
	uint64_t c, mask = dec_mask(ir_ref_width(f, v));
	if (ir_const_get(f, v, &c))
		return c;
	if (!rec || depth == 4)
		return mask;
	switch (rec->op) {
	case IR_AND:
		return ir_const_get(f, rec->b, &c) && c < mask ? c : mask;
	case IR_ZEXT:
		return highest(f, rec->a, depth + 1);
	case IR_LSHR:
		return ir_const_get(f, rec->b, &c) && c < 64 ? mask >> c : mask;
	default:
		return mask;
	}
}

/* The values that come to block b, as far as the blocks on the only way there say. */
static bool values_at(struct trees *t, struct tree *tr, uint32_t b, struct dec_values *ret)
{
	struct dec_values a, out;
	if (!set_new(t, &a) || !set_new(t, &out))
		return false;
	(void)dec_values_add(&a, 0, highest(t->f, tr->root, 0));
	for (unsigned i = 0; i < UP_MAX && t->g.preds.first[b + 1] - t->g.preds.first[b] == 1 && b; i++) {
		uint32_t from = t->g.preds.list[t->g.preds.first[b]];
		const struct ir_rec *end = end_of(t, from);
		bool is_first = end->op == IR_BR && ir_index(end->b) == b;
		struct tree scratch = *tr;
		if (end->op == IR_BR && end->b != end->c && set_of_cond(t, &scratch, end->a, &a, &out)) {
			struct dec_values keep;
			if (!set_new(t, &keep) || !dec_values_meet(&a, &out, !is_first, &keep))
				return false;
			a = keep;
		}
		b = from;
	}
	*ret = a;
	return a.cnt;
}

/* --- making the switch ---------------------------------------------------------------------------------------------------------- */
static uint32_t pred_place(const struct trees *t, uint32_t b, uint32_t from)
{
	uint32_t at = 0;
	while (t->g.preds.list[t->g.preds.first[b] + at] != from)
		at++;
	return at;
}

/* Whether two ways bring the joins of a block the same. */
static bool brings_same(const struct trees *t, uint32_t b, uint32_t x, uint32_t y)
{
	const struct ir_func *f = t->f;
	uint32_t i = pred_place(t, b, x), k = pred_place(t, b, y);
	for (uint32_t n = f->blocks[b].first; n < f->blocks[b].last; n++) {
		const struct ir_rec *phi = &f->recs[f->order[n]];
		if (phi->op != IR_PHI)
			break;
		if (f->lists[phi->b + i] != f->lists[phi->b + k])
			return false;
	}
	return true;
}

static uint32_t make_groups(const struct trees *t, struct tree *tr)
{
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < tr->leaf_cnt; i++) {
		uint32_t k = 0;
		while (k < i && (tr->leaves[k].to != tr->leaves[i].to || !brings_same(t, tr->leaves[i].to, tr->leaves[k].from, tr->leaves[i].from)))
			k++;
		tr->leaves[i].group = k < i ? tr->leaves[k].group : cnt++;
	}
	return cnt;
}

/* Whether the block is reached from elsewhere, too: as the second half of a condition of several would be. */
static bool is_shared(const struct trees *t, const struct tree *tr, uint32_t b)
{
	uint32_t in = 0;
	for (uint32_t k = t->g.preds.first[b]; k < t->g.preds.first[b + 1]; k++) {
		for (uint32_t i = 0; i < tr->leaf_cnt; i++) {
			if (tr->leaves[i].to == b && tr->leaves[i].from == t->g.preds.list[k]) {
				in++;
				break;
			}
		}
	}
	return in != t->g.preds.first[b + 1] - t->g.preds.first[b];
}

/* Whether a block ends by comparing the tested value. */
static bool asks_again(const struct trees *t, const struct tree *tr, uint32_t b)
{
	const struct ir_rec *end = end_of(t, b);
	struct dec_chain c;
	ir_ref v = end->a, of;
	bool is_right;
	uint64_t number;
	if (end->op != IR_BR)
		return false;
	if (is_negation(t->f, dec_rec(t->f, v), &of))
		v = of;
	return dec_chain_of_cmp(t->f, dec_rec(t->f, v), &c, &is_right, &number) && c.root == tr->root;
}

/* Ways for two to four values side by side, with others on both sides: more than 6, and 8 at most. */
static uint32_t narrow_cnt(const struct tree *tr)
{
	uint64_t mask = dec_mask(tr->width), half = mask >> 1;
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < tr->leaf_cnt; i++) {
		const struct dec_values *s = &tr->leaves[i].set;
		uint64_t lo = s->spans[0].lo, hi = s->spans[0].hi;
		bool is_at_end = !lo || hi == mask || hi == half || lo == half + 1;
		cnt += s->cnt == 1 && hi - lo - 1 < 3 && !is_at_end;
	}
	return cnt;
}

static bool was_switch(const struct trees *t, const struct tree *tr, uint32_t groups)
{
	if (tr->has_table)
		return true;
	if (groups < 2 || !tr->inner_cnt)
		return false;
	if (groups == 2) {
		bool is_free = !is_shared(t, tr, tr->leaves[0].to);
		for (uint32_t i = 1; i < tr->leaf_cnt && is_free; i++)
			is_free = !is_shared(t, tr, tr->leaves[i].to);
		return is_free && (tr->has_bits || (tr->has_pair && tr->const_cnt > 2));
	}
	if (tr->has_bits || (tr->has_pair && tr->const_cnt > 1))
		return true;
	/* if (x == 1 && y) ... else if (x == 2) ...: after the last of them nobody would ask again. */
	for (uint32_t i = 0; i < tr->leaf_cnt; i++)
		if (asks_again(t, tr, tr->leaves[i].to))
			return false;
	uint32_t narrow = narrow_cnt(tr), ranges = narrow > tr->range_cnt ? narrow : tr->range_cnt, cases = tr->const_cnt + 2 * ranges;
	return (tr->const_cnt || narrow > 1) && cases > 2 && (groups > 3 || cases > 3);
}

static int by_value(const void *x, const void *y)
{
	const struct value *a = x, *b = y;
	return a->v < b->v ? -1 : a->v > b->v;
}

/* The group every other value goes to, and another one that has as many values too many, or UINT32_MAX; UINT32_MAX: there are more of such. */
static uint32_t find_default(const struct tree *tr, uint32_t groups, uint64_t *sizes, uint32_t *other)
{
	uint32_t best = 0;
	*other = UINT32_MAX;
	for (uint32_t i = 0; i < tr->leaf_cnt; i++) {
		uint64_t more = dec_values_cnt(&tr->leaves[i].set), *s = &sizes[tr->leaves[i].group];
		*s = more >= UINT64_MAX - *s ? UINT64_MAX : *s + more;
	}
	for (uint32_t k = 1; k < groups; k++)
		best = sizes[k] > sizes[best] ? k : best;
	uint64_t total = 0;
	for (uint32_t k = 0; k < groups; k++) {
		bool is_large = sizes[k] > VALUES_MAX;
		if (k == best)
			continue;
		if (is_large && *other != UINT32_MAX)
			return UINT32_MAX;
		*other = is_large ? k : *other;
		total += is_large ? 0 : sizes[k];
	}
	return total > VALUES_MAX ? UINT32_MAX : best;
}

/* The number below which, as kind counts, all values of group a are, and none of b's. */
static bool is_apart(const struct tree *tr, uint32_t a, uint32_t b, uint8_t kind, uint64_t *number)
{
	uint64_t sign = kind == IR_CMP_SLT ? dec_mask(tr->width) - (dec_mask(tr->width) >> 1) : 0, highest = 0, lowest = UINT64_MAX;
	for (uint32_t i = 0; i < tr->leaf_cnt; i++) {
		const struct leaf *l = &tr->leaves[i];
		for (uint32_t k = 0; k < l->set.cnt; k++) {
			uint64_t lo = l->set.spans[k].lo, hi = l->set.spans[k].hi;
			/* Over the sign's border: from one end to the other. */
			bool is_over = sign && lo < sign && hi >= sign;
			lo = is_over ? 0 : lo ^ sign;
			hi = is_over ? dec_mask(tr->width) : hi ^ sign;
			highest = l->group == a && hi > highest ? hi : highest;
			lowest = l->group == b && lo < lowest ? lo : lowest;
		}
	}
	*number = lowest ^ sign;
	return highest < lowest;
}

/* Two groups of too many values, apart by one comparison, which comes behind the switch's default. */
struct rest {
	uint32_t groups[2]; /* below the number, and above */
	uint8_t kind; /* IR_CMP_ULT, IR_CMP_SLT */
	uint64_t number;
};

static bool find_rest(const struct tree *tr, uint32_t a, uint32_t b, struct rest *ret)
{
	static const uint8_t kinds[] = {IR_CMP_ULT, IR_CMP_SLT};
	for (unsigned i = 0; i < 4; i++) {
		*ret = (struct rest){.groups = {i & 1 ? b : a, i & 1 ? a : b}, .kind = kinds[i / 2]};
		if (is_apart(tr, ret->groups[0], ret->groups[1], ret->kind, &ret->number))
			return true;
	}
	return false;
}

/* One more way into block b, from the new block `from`, that brings what the one from `as` does. */
static void add_way(struct trees *t, uint32_t b, uint32_t as)
{
	struct ir_func *f = t->f;
	uint32_t at = pred_place(t, b, as);
	for (uint32_t n = f->blocks[b].first; n < f->blocks[b].last; n++) {
		struct ir_rec *phi = &f->recs[f->order[n]];
		if (phi->op != IR_PHI)
			break;
		uint32_t first = f->list_cnt;
		for (uint32_t k = 0; k <= phi->c; k++) {
			ir_ref r = f->lists[phi->b + (k < phi->c ? k : at)];
			(void)ir_list(f, &r, 1);
		}
		phi->b = first;
		phi->c++;
	}
}

/* The block the switch of `top` leads to for a group: its own, or a new one before it. */
static uint32_t way_to(struct trees *t, const struct tree *tr, uint32_t top, uint32_t group)
{
	struct ir_func *f = t->f;
	const struct leaf *l = tr->leaves;
	bool is_own = false;
	while (l->group != group)
		l++;
	for (uint32_t i = 0; i < tr->leaf_cnt; i++)
		is_own |= tr->leaves[i].group == group && tr->leaves[i].from == top;
	if (is_own || !has_joins(t, l->to))
		return l->to;
	uint32_t b = ir_block_new(f, UINT64_MAX);
	const struct ir_rec jump = {.op = IR_JMP, .a = ir_block_ref(l->to), .b = IR_REF_NONE, .c = IR_REF_NONE};
	ir_block_begin(f, b);
	f->cur_origin = end_of(t, l->from)->origin;
	ir_emit(f, &jump);
	add_way(t, l->to, l->from);
	return b;
}

/* Whether a group goes straight from the block the switch will end to joins there. */
static bool is_own_join(const struct trees *t, const struct tree *tr, uint32_t top, uint32_t group)
{
	for (uint32_t i = 0; i < tr->leaf_cnt; i++)
		if (tr->leaves[i].group == group && tr->leaves[i].from == top && has_joins(t, tr->leaves[i].to))
			return true;
	return false;
}

static uint32_t make_rest(struct trees *t, const struct tree *tr, uint32_t top, const struct rest *two, const uint32_t *to)
{
	struct ir_func *f = t->f;
	uint32_t b = ir_block_new(f, UINT64_MAX);
	const struct ir_rec less = {.op = IR_CMP, .kind = two->kind, .width = IR_W1, .a = tr->root,
				    .b = ir_const(f, tr->width, two->number), .c = IR_REF_NONE};
	ir_block_begin(f, b);
	f->cur_origin = end_of(t, top)->origin;
	const struct ir_rec end = {.op = IR_BR, .a = ir_emit(f, &less), .b = ir_block_ref(to[two->groups[0]]), .c = ir_block_ref(to[two->groups[1]])};
	ir_emit(f, &end);
	return b;
}

static bool make_switch(struct trees *t, struct tree *tr, uint32_t top, uint32_t groups)
{
	struct ir_func *f = t->f;
	uint64_t *sizes = ARENA_ARRAY(&t->scratch, uint64_t, groups + (size_t)1);
	uint32_t *to = ARENA_RAW_ARRAY(&t->scratch, uint32_t, groups + (size_t)1), cnt = 0, other = UINT32_MAX;
	uint32_t rest = sizes ? find_default(tr, groups, sizes, &other) : 0;
	struct rest two = {{0}};
	struct value *values = t->values;
	ir_ref *list = t->list;
	t->failed |= !sizes || !to;
	if (t->failed || rest == UINT32_MAX)
		return false;
	struct ir_rec *end = &f->recs[f->order[f->blocks[top].last - 1]];
	if (other != UINT32_MAX && (is_by_address(end) || is_own_join(t, tr, top, rest) || is_own_join(t, tr, top, other) ||
				    !find_rest(tr, rest, other, &two)))
		return false;
	/* With every value a case, what else there is never comes. */
	bool is_full = is_by_address(end) && sizes[rest] <= VALUES_MAX;
	for (uint32_t i = 0; i < tr->leaf_cnt; i++) {
		const struct leaf *l = &tr->leaves[i];
		for (uint32_t k = 0; k < l->set.cnt && (is_full || (l->group != rest && l->group != other)); k++) {
			for (uint64_t v = l->set.spans[k].lo; cnt < VALUES_MAX; v++) {
				values[cnt++] = (struct value){v, l->group};
				if (v == l->set.spans[k].hi)
					break;
			}
		}
	}
	if (!cnt)
		return false;
	qsort(values, cnt, sizeof(*values), by_value);
	for (uint32_t k = 0; k < groups; k++)
		to[k] = way_to(t, tr, top, k);
	for (uint32_t i = 0; i < cnt; i++) {
		list[2 * i] = ir_const(f, tr->width, values[i].v);
		list[2 * i + 1] = ir_block_ref(to[values[i].group]);
	}
	uint32_t others_to = other == UINT32_MAX ? to[rest] : make_rest(t, tr, top, &two, to);
	end = &f->recs[f->order[f->blocks[top].last - 1]];
	*end = (struct ir_rec){.op = IR_SWITCH, .flags = IR_F_COMPUTED, .a = tr->root, .b = ir_list(f, list, 2 * cnt), .c = 2 * cnt,
			       .aux = is_full ? end->aux : others_to, .origin = end->origin};
	t->made_cnt++;
	return true;
}

static bool try_root(struct trees *t, uint32_t top, ir_ref root, bool may_guess)
{
	struct tree tr = {.root = root, .width = ir_ref_width(t->f, root), .leaves = t->leaves, .leaf_cap = 2 * t->old_cnt + 2,
			  .inner = t->inner, .consts = t->consts, .may_guess = may_guess};
	struct dec_values all;
	arena_reset(&t->scratch);
	if (tr.width < IR_W8 || ir_bits(tr.width) > 64 || !values_at(t, &tr, top, &all))
		return false;
	tr.const_cnt = tr.range_cnt = 0;
	tr.has_pair = tr.has_bits = false;
	if (!grow_tree(t, &tr, top, &all))
		return false;
	uint32_t groups = make_groups(t, &tr);
	if (!was_switch(t, &tr, groups) || !make_switch(t, &tr, top, groups))
		return false;
	uint32_t *last = &t->inner_first[top];
	uint32_t origin = end_of(t, top)->origin, origin_cnt = t->f->origin_cnt;
	for (uint32_t i = 0; i < tr.inner_cnt; i++) {
		const struct ir_block *k = &t->f->blocks[tr.inner[i]];
		for (uint32_t n = k->first; n < k->last; n++) {
			uint32_t of = t->f->recs[t->f->order[n]].origin;
			if (of < origin_cnt && of != origin)
				t->f->origins[of].with = origin + 1;
		}
		t->is_done[tr.inner[i]] = true;
		t->into[tr.inner[i]] = top;
		*last = tr.inner[i];
		last = &t->inner_next[tr.inner[i]];
	}
	t->is_done[top] = true;
	return true;
}

/* What a jump by address depends on, the innermost last; false: on more than one thing. `guess`: the innermost that has one value for each
 * place in a table, or IR_REF_NONE. */
static bool find_roots(const struct trees *t, ir_ref v, ir_ref *roots, unsigned *cnt, ir_ref *guess)
{
	const struct ir_func *f = t->f;
	bool is_index = false, is_one = true;
	*cnt = 0;
	*guess = IR_REF_NONE;
	for (unsigned depth = 0; depth < EVAL_DEPTH_MAX; depth++) {
		const struct ir_rec *rec = dec_rec(f, v);
		ir_ref next = IR_REF_NONE;
		if (!rec || ir_has_list((enum ir_op)rec->op) || !(rec->op == IR_LOAD || dec_is_pure((enum ir_op)rec->op)))
			break;
		const ir_ref refs[3] = {rec->a, rec->b, rec->c};
		unsigned others = 0;
		for (unsigned i = 0; i < ir_fixed_operands((enum ir_op)rec->op); i++) {
			const struct ir_rec *o = dec_rec(f, refs[i]);
			if (!o || o->op == IR_GADDR)
				continue;
			others += next != IR_REF_NONE && next != refs[i];
			next = refs[i];
		}
		if (next == IR_REF_NONE || others || ir_bits(ir_ref_width(f, next)) > 64 || ir_ref_width(f, next) < IR_W8)
			break;
		is_index |= rec->op == IR_LOAD;
		is_one &= rec->op == IR_LOAD || rec->op == IR_ADD || rec->op == IR_SUB || rec->op == IR_SHL || rec->op == IR_MUL ||
			  rec->op == IR_ZEXT || rec->op == IR_SEXT;
		v = next;
		roots[(*cnt)++] = v;
		if (is_index && is_one)
			*guess = v;
	}
	return *cnt > 0;
}

static void try_alone(struct trees *t, uint32_t b)
{
	const struct ir_func *f = t->f;
	const struct ir_rec *end = end_of(t, b);
	ir_ref roots[EVAL_DEPTH_MAX], guess;
	struct dec_chain c;
	uint64_t number;
	bool is_right;
	unsigned cnt;
	if (!end || t->is_done[b])
		return;
	if (end->op == IR_BR && (looks_on(t, ir_index(end->b)) || looks_on(t, ir_index(end->c)))) {
		ir_ref v = end->a, of;
		if (is_negation(f, dec_rec(f, v), &of))
			v = of;
		if (dec_chain_of_cmp(f, dec_rec(f, v), &c, &is_right, &number))
			(void)try_root(t, b, c.root, false);
	} else if (is_by_address(end) && find_roots(t, end->a, roots, &cnt, &guess)) {
		while (cnt > 0 && !t->is_done[b])
			(void)try_root(t, b, roots[--cnt], false);
		if (!t->is_done[b] && guess != IR_REF_NONE)
			(void)try_root(t, b, guess, true);
	}
}

/* What a loop goes on by is a case only when what comes behind is no switch without it. */
static void try_block(struct trees *t, uint32_t b)
{
	for (uint32_t at = b; ends_loop(t, at) && !t->is_done[at];) {
		const struct ir_rec *end = end_of(t, at);
		at = ir_index(is_in_loop(t, ir_index(end->b), t->loop[at]) ? end->b : end->c);
		if (!looks_on(t, at))
			break;
		try_alone(t, at);
		if (t->is_done[at])
			return;
	}
	try_alone(t, b);
}

/* --- the function -------------------------------------------------------------------------------------------------------------- */
static void look_at_use(void *ctx, ir_ref r)
{
	struct trees *t = ctx;
	if (ir_tag(r) == IR_TAG_VALUE && t->block_of[ir_index(r)] != t->looked_at)
		t->is_used_outside[ir_index(r)] = true;
}

/* Natural loops, the outer ones first, so that the innermost is what is left. */
static bool find_loops(struct trees *t)
{
	uint32_t n = t->f->block_cnt, *stack = ARENA_RAW_ARRAY(t->a, uint32_t, n + (size_t)1);
	uint64_t left = 64 * (uint64_t)n;
	if (!stack)
		return false;
	for (uint32_t i = 0; i < t->g.rpo_cnt; i++) {
		uint32_t h = t->g.rpo[i], cnt = 0, up = t->loop[h];
		for (uint32_t k = t->g.preds.first[h]; k < t->g.preds.first[h + 1]; k++) {
			uint32_t p = t->g.preds.list[k];
			if (t->g.rpo_at[p] != UINT32_MAX && dec_dominates(&t->g, h, p) && t->loop[p] != h) {
				t->loop[p] = h;
				stack[cnt++] = p;
			}
		}
		if (!cnt)
			continue;
		t->loop_up[h] = up;
		t->loop[h] = h;
		while (cnt && left) {
			uint32_t b = stack[--cnt];
			for (uint32_t k = t->g.preds.first[b]; k < t->g.preds.first[b + 1] && b != h; k++, left -= left != 0) {
				uint32_t p = t->g.preds.list[k];
				if (t->g.rpo_at[p] == UINT32_MAX || t->loop[p] == h)
					continue;
				t->loop[p] = h;
				stack[cnt++] = p;
			}
		}
	}
	return true;
}

static bool prepare(struct trees *t)
{
	struct ir_func *f = t->f;
	size_t n = f->block_cnt + (size_t)1;
	t->old_cnt = f->block_cnt;
	t->is_done = ARENA_ARRAY(t->a, bool, n);
	t->is_used_outside = ARENA_ARRAY(t->a, bool, f->rec_cnt + (size_t)1);
	t->block_of = ARENA_RAW_ARRAY(t->a, uint32_t, f->rec_cnt + (size_t)1);
	t->into = ARENA_RAW_ARRAY(t->a, uint32_t, n);
	t->loop = ARENA_RAW_ARRAY(t->a, uint32_t, n);
	t->loop_up = ARENA_RAW_ARRAY(t->a, uint32_t, n);
	t->inner_first = ARENA_RAW_ARRAY(t->a, uint32_t, n);
	t->inner_next = ARENA_RAW_ARRAY(t->a, uint32_t, n);
	t->leaves = ARENA_RAW_ARRAY(t->a, struct leaf, 2 * n);
	t->inner = ARENA_RAW_ARRAY(t->a, uint32_t, n);
	t->consts = ARENA_RAW_ARRAY(t->a, uint64_t, VALUES_MAX);
	t->values = ARENA_RAW_ARRAY(t->a, struct value, VALUES_MAX);
	t->list = ARENA_RAW_ARRAY(t->a, ir_ref, 2 * (size_t)VALUES_MAX);
	t->eval_left = 64 * (uint64_t)f->rec_cnt + 300000;
	bool has_room = t->leaves && t->inner && t->consts && t->values && t->list && t->loop && t->loop_up;
	if (!has_room || !t->is_done || !t->is_used_outside || !t->block_of || !t->into || !t->inner_first || !t->inner_next ||
	    !dec_graph_make(f, t->a, &t->g))
		return false;
	memset(t->loop, 0xff, n * sizeof(*t->loop));
	memset(t->loop_up, 0xff, n * sizeof(*t->loop_up));
	memset(t->into, 0xff, n * sizeof(*t->into));
	memset(t->inner_first, 0xff, n * sizeof(*t->inner_first));
	memset(t->inner_next, 0xff, n * sizeof(*t->inner_next));
	for (uint32_t b = 0; b < f->block_cnt; b++)
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++)
			t->block_of[f->order[i]] = b;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		t->looked_at = b;
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++)
			ir_operands(f, &f->recs[f->order[i]], look_at_use, t);
	}
	return find_loops(t);
}

/* Of a block's records how many come before the first load; its end left out. */
static uint32_t before_loads(const struct ir_func *f, const struct ir_block *k)
{
	uint32_t i = k->first;
	while (i + 1 < k->last && f->recs[f->order[i]].op != IR_LOAD)
		i++;
	return i;
}

/* What the blocks of trees compute is computed before, for those who use it; loads and what is made of them nobody uses any more. */
static bool move_values(struct trees *t)
{
	struct ir_func *f = t->f;
	uint32_t *order = ARENA_RAW_ARRAY(t->a, uint32_t, f->order_cnt + (size_t)1), at = 0;
	struct ir_block *blocks = ARENA_RAW_ARRAY(t->a, struct ir_block, f->block_cnt + (size_t)1);
	if (!order || !blocks)
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_block *k = &f->blocks[b];
		bool is_old = b < t->old_cnt, is_inner = is_old && t->into[b] != UINT32_MAX;
		blocks[b] = (struct ir_block){k->va, at, at};
		for (uint32_t i = is_inner ? before_loads(f, k) : k->first; i + 1 < k->last; i++)
			order[at++] = f->order[i];
		for (uint32_t m = is_old ? t->inner_first[b] : UINT32_MAX; m != UINT32_MAX; m = t->inner_next[m])
			for (uint32_t i = f->blocks[m].first; i < before_loads(f, &f->blocks[m]); i++)
				order[at++] = f->order[i];
		order[at++] = f->order[k->last - 1];
		blocks[b].last = at;
	}
	f->order = order;
	f->order_cnt = f->order_cap = at;
	f->blocks = blocks;
	f->block_cap = f->block_cnt;
	return true;
}

struct err *dec_switch(struct dec *d)
{
	struct trees t = {.d = d, .f = d->f, .a = d->arena};
	bool ok = prepare(&t);
	for (uint32_t i = 0; i < t.g.rpo_cnt && ok && !t.failed && !t.f->failed; i++)
		try_block(&t, t.g.rpo[i]);
	arena_fini(&t.scratch);
	ok = ok && !t.failed && !t.f->failed && (!t.made_cnt || move_values(&t));
	return ok ? NULL : &err_nomem;
}
