/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <stdio.h>
#include <string.h>

/*
 * Requires: SSA, every block reached. Provides: the form of variables. Breaks: SSA.
 *
 * A value has a variable when another block uses it, or a join takes or makes it. Values of a join share one as far as no two of them
 * are needed at once (Boissinot et al., "Revisiting Out-of-SSA Translation", without its value classes): those that do not are copied at the
 * end of the way into the join; a way that leaves a block with others gets a block of its own for that. Where copies read each other's
 * variables all are read before one is set.
 */

#define NONE UINT32_MAX
#define CLASS_MAX 64   /* values of one variable, more are copied */

struct use {
	uint32_t block, pos; /* order index; blocks[b].last: in the terminator or in copies behind the records */
};

struct vars {
	struct dec *d;
	struct ir_func *f;       /* SSA */
	struct ir_func *o;       /* made */
	struct arena *a;
	struct ir_edges succs, preds;
	uint32_t *block_of, *pos_of; /* per record */
	uint32_t *number;        /* per record: among the values with variables; NONE */
	uint32_t *values;        /* the opposite */
	uint32_t cnt;
	uint32_t *use_first;     /* per value: in `uses` */
	struct use *uses;
	uint64_t *live_out;      /* per block, bits by value */
	uint64_t *live_in;
	uint32_t words;
	uint32_t *up, *class_next, *class_cnt; /* union of values; members in a ring */
	uint32_t *var;           /* per value that stands for its class: location */
	struct ir_loc *locs;
	struct dec_var *infos;
	uint32_t var_cnt;
	ir_ref *map;             /* per record: what it is in `o`, in the block at hand */
	uint32_t *map_block;
	uint32_t block;          /* being made */
	uint32_t entry_end;      /* the function begins with GETs, up to there in `order` */
	uint16_t *params;        /* variables of parameters */
	uint32_t *split;         /* per edge of succs: the block between; NONE */
};

/* --- which values ------------------------------------------------------------------------------------------------------------- */
/* Cheap and made of what is always at hand: made anew where it is used. */
static bool is_again(const struct vars *v, uint32_t id)
{
	return v->f->recs[id].op == IR_GADDR;
}

static void want(struct vars *v, uint32_t id)
{
	if (v->number[id] == NONE && !is_again(v, id)) {
		v->number[id] = v->cnt;
		v->values[v->cnt++] = id;
	}
}

/* What is read first in the function: of the state, or of its parameters. */
static bool is_param(const struct vars *v, uint32_t b, uint32_t pos)
{
	const struct ir_rec *rec = &v->f->recs[v->f->order[pos]];
	return b == 0 && pos < v->entry_end && rec->op == IR_GET && rec->flags & IR_F_TYPED;
}

struct seen {
	struct vars *v;
	uint32_t block;
};

static void see(void *ctx, ir_ref r)
{
	struct seen *s = ctx;
	if (ir_tag(r) == IR_TAG_VALUE && s->v->block_of[ir_index(r)] != s->block)
		want(s->v, ir_index(r));
}

static void find_values(struct vars *v)
{
	struct ir_func *f = v->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
			uint32_t id = f->order[i];
			const struct ir_rec *rec = &f->recs[id];
			struct seen s = {v, b};
			if (is_param(v, b, i))
				want(v, id);
			if (rec->op != IR_PHI) {
				ir_operands(f, rec, see, &s);
				continue;
			}
			want(v, id);
			for (uint32_t k = 0; k < rec->c; k++) {
				s.block = v->preds.list[v->preds.first[b] + k];
				see(&s, f->lists[rec->b + k]);
				/* Copies behind a branch stand in a block of their own. */
				ir_ref r = f->lists[rec->b + k];
				if (ir_tag(r) == IR_TAG_VALUE && f->recs[f->order[f->blocks[s.block].last - 1]].op != IR_JMP)
					want(v, ir_index(r));
			}
		}
	}
}

/* --- liveness -------------------------------------------------------------------------------------------------------------------- */
struct counting {
	struct vars *v;
	uint32_t block, pos;
	uint32_t *fill; /* null: counts into use_first */
};

static void count_use(void *ctx, ir_ref r)
{
	struct counting *c = ctx;
	struct vars *v = c->v;
	uint32_t k = ir_tag(r) == IR_TAG_VALUE ? v->number[ir_index(r)] : NONE;
	if (k == NONE)
		return;
	if (!c->fill)
		v->use_first[k + 1]++;
	else
		v->uses[v->use_first[k] + c->fill[k]++] = (struct use){c->block, c->pos};
}

static void count_uses(struct vars *v, uint32_t *fill)
{
	struct ir_func *f = v->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
			const struct ir_rec *rec = &f->recs[f->order[i]];
			struct counting c = {v, b, i + 1 == f->blocks[b].last ? f->blocks[b].last : i, fill};
			if (rec->op != IR_PHI) {
				ir_operands(f, rec, count_use, &c);
				continue;
			}
			for (uint32_t k = 0; k < rec->c; k++) {
				c.block = v->preds.list[v->preds.first[b] + k];
				c.pos = f->blocks[c.block].last;
				count_use(&c, f->lists[rec->b + k]);
			}
		}
	}
}

/* Values are walked up from each use to their definition: Boissinot et al., "Computing Liveness Sets for SSA-Form Programs". */
static bool make_live(struct vars *v)
{
	struct ir_func *f = v->f;
	uint32_t *stack = ARENA_RAW_ARRAY(v->a, uint32_t, f->block_cnt + (size_t)1);
	v->words = (v->cnt + 63) / 64;
	size_t cells = (size_t)v->words * f->block_cnt;
	if (cells > 1u << 20)
		return false;
	v->live_in = ARENA_ARRAY(v->a, uint64_t, cells + 1);
	v->live_out = ARENA_ARRAY(v->a, uint64_t, cells + 1);
	if (!stack || !v->live_in || !v->live_out)
		return false;
	for (uint32_t k = 0; k < v->cnt; k++) {
		uint32_t home = v->block_of[v->values[k]];
		uint64_t bit = (uint64_t)1 << k % 64;
		for (uint32_t u = v->use_first[k]; u < v->use_first[k + 1]; u++) {
			uint32_t depth = 0;
			if (v->uses[u].block != home && !(v->live_in[(size_t)v->uses[u].block * v->words + k / 64] & bit)) {
				v->live_in[(size_t)v->uses[u].block * v->words + k / 64] |= bit;
				stack[depth++] = v->uses[u].block;
			}
			while (depth) {
				uint32_t b = stack[--depth];
				for (uint32_t i = v->preds.first[b]; i < v->preds.first[b + 1]; i++) {
					uint32_t p = v->preds.list[i];
					v->live_out[(size_t)p * v->words + k / 64] |= bit;
					uint64_t *in = &v->live_in[(size_t)p * v->words + k / 64];
					if (p == home || *in & bit)
						continue;
					*in |= bit;
					stack[depth++] = p;
				}
			}
		}
	}
	return true;
}

/* Where a value is made: joins at the front of their block. */
static uint32_t def_pos(const struct vars *v, uint32_t k)
{
	uint32_t id = v->values[k];
	return v->f->recs[id].op == IR_PHI ? v->f->blocks[v->block_of[id]].first : v->pos_of[id];
}

/* Whether value `x` is still needed behind place `pos` of block `b`, and made by then. */
static bool is_live_at(const struct vars *v, uint32_t x, uint32_t b, uint32_t pos)
{
	uint32_t home = v->block_of[v->values[x]];
	uint64_t bit = (uint64_t)1 << x % 64;
	if (home == b ? def_pos(v, x) > pos : !(v->live_in[(size_t)b * v->words + x / 64] & bit))
		return false;
	if (v->live_out[(size_t)b * v->words + x / 64] & bit)
		return true;
	for (uint32_t u = v->use_first[x]; u < v->use_first[x + 1]; u++)
		if (v->uses[u].block == b && v->uses[u].pos > pos)
			return true;
	return false;
}

static bool interfere(const struct vars *v, uint32_t x, uint32_t y)
{
	return is_live_at(v, x, v->block_of[v->values[y]], def_pos(v, y)) || is_live_at(v, y, v->block_of[v->values[x]], def_pos(v, x));
}

/* --- sharing -------------------------------------------------------------------------------------------------------------------- */
static uint32_t top(const struct vars *v, uint32_t x)
{
	while (v->up[x] != x)
		x = v->up[x] = v->up[v->up[x]];
	return x;
}

static void try_share(struct vars *v, uint32_t x, uint32_t y)
{
	uint32_t tx = top(v, x), ty = top(v, y);
	if (tx == ty || v->class_cnt[tx] + v->class_cnt[ty] > CLASS_MAX ||
	    v->f->recs[v->values[x]].width != v->f->recs[v->values[y]].width)
		return;
	uint32_t i = tx;
	do {
		uint32_t k = ty;
		do {
			if (interfere(v, i, k))
				return;
			k = v->class_next[k];
		} while (k != ty);
		i = v->class_next[i];
	} while (i != tx);
	v->up[ty] = tx;
	v->class_cnt[tx] += v->class_cnt[ty];
	uint32_t t = v->class_next[tx];
	v->class_next[tx] = v->class_next[ty];
	v->class_next[ty] = t;
}

static void share(struct vars *v)
{
	struct ir_func *f = v->f;
	for (uint32_t k = 0; k < v->cnt; k++) {
		v->up[k] = v->class_next[k] = k;
		v->class_cnt[k] = 1;
	}
	for (uint32_t k = 0; k < v->cnt; k++) {
		const struct ir_rec *phi = &f->recs[v->values[k]];
		for (uint32_t i = 0; phi->op == IR_PHI && i < phi->c; i++) {
			ir_ref r = f->lists[phi->b + i];
			uint32_t y = ir_tag(r) == IR_TAG_VALUE ? v->number[ir_index(r)] : NONE;
			if (y != NONE)
				try_share(v, k, y);
		}
	}
}

/* --- variables ------------------------------------------------------------------------------------------------------------------- */
static uint64_t va_of(const struct ir_func *f, uint32_t id)
{
	uint32_t origin = f->recs[id].origin;
	return origin < f->origin_cnt ? f->origins[origin].va : UINT64_MAX;
}

static bool name_vars(struct vars *v)
{
	struct ir_func *f = v->f;
	uint32_t base = f->machine->loc_cnt, number = 1;
	v->var = ARENA_RAW_ARRAY(v->a, uint32_t, v->cnt + (size_t)1);
	v->locs = ARENA_ARRAY(v->a, struct ir_loc, base + (size_t)v->cnt + 1);
	v->infos = ARENA_ARRAY(v->a, struct dec_var, v->cnt + (size_t)1);
	v->params = ARENA_RAW_ARRAY(v->a, uint16_t, IR_SIG_ARG_MAX);
	if (!v->var || !v->locs || !v->infos || !v->params)
		return false;
	for (unsigned i = 0; i < IR_SIG_ARG_MAX; i++)
		v->params[i] = IR_LOC_NONE;
	memcpy(v->locs, f->machine->locs, base * sizeof(*v->locs));
	memset(v->var, 0xff, v->cnt * sizeof(*v->var));
	/* In the order of their first definitions' addresses: values are found in the order of blocks, which is that of addresses. */
	for (uint32_t k = 0; k < v->cnt; k++) {
		uint32_t t = top(v, k), id = v->values[k];
		const struct ir_rec *rec = &f->recs[id];
		if (v->var[t] == NONE) {
			v->var[t] = v->var_cnt++;
			v->infos[v->var[t]] = (struct dec_var){.loc = IR_LOC_NONE, .width = rec->width, .va = UINT64_MAX};
		}
		struct dec_var *i = &v->infos[v->var[t]];
		uint64_t va = va_of(f, id);
		i->va = va < i->va ? va : i->va;
		if (rec->op == IR_GET && v->block_of[id] == 0 && v->pos_of[id] < v->entry_end && i->loc == IR_LOC_NONE) {
			i->loc = (uint16_t)rec->aux;
			i->is_param = rec->flags & IR_F_TYPED;
			i->is_entry = v->class_cnt[t] == 1;
		}
	}
	for (uint32_t k = 0; k < v->var_cnt; k++) {
		struct dec_var *i = &v->infos[k];
		char name[24];
		unsigned arg = 0, param = 0;
		while (i->is_param && f->self->args[param].loc != i->loc)
			param++;
		if (i->is_param)
			v->params[param] = (uint16_t)(base + k);
		while (arg < v->d->conv.int_arg_cnt && v->d->conv.int_arg[arg] != i->loc)
			arg++;
		if (i->is_param)
			snprintf(name, sizeof(name), "a%u", param);
		else if (i->is_entry && !f->self && arg < v->d->conv.int_arg_cnt)
			snprintf(name, sizeof(name), "a%u", arg);
		else if (i->is_entry && i->loc == f->machine->sp_loc)
			snprintf(name, sizeof(name), "sp");
		else if (i->is_entry)
			snprintf(name, sizeof(name), "in_%s", f->machine->locs[i->loc].name);
		else
			snprintf(name, sizeof(name), "v%u", number++);
		v->locs[base + k] = (struct ir_loc){arena_strndup(v->a, name, strlen(name)), i->width, IR_LOC_VAR};
		if (!v->locs[base + k].name)
			return false;
	}
	return true;
}

/* --- making ------------------------------------------------------------------------------------------------------------------------ */
static uint32_t var_of(const struct vars *v, uint32_t id)
{
	uint32_t k = v->number[id];
	return k == NONE ? NONE : v->var[top(v, k)];
}

static ir_ref get_var(struct vars *v, uint32_t var)
{
	const struct ir_rec get = {.op = IR_GET, .width = v->infos[var].width, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = v->f->machine->loc_cnt + var};
	return ir_emit(v->o, &get);
}

static ir_ref value_in(struct vars *v, ir_ref r)
{
	if (ir_tag(r) != IR_TAG_VALUE)
		return r;
	uint32_t id = ir_index(r), var = var_of(v, id);
	if (var != NONE)
		return get_var(v, var);
	if (v->map_block[id] == v->block)
		return v->map[id];
	/* Only what is made again comes here. */
	v->map[id] = ir_emit(v->o, &v->f->recs[id]);
	v->map_block[id] = v->block;
	return v->map[id];
}

static void put_var(struct vars *v, uint32_t var, ir_ref value)
{
	const struct ir_rec put = {.op = IR_PUT, .width = v->infos[var].width, .a = value, .b = IR_REF_NONE, .c = IR_REF_NONE,
				   .aux = v->f->machine->loc_cnt + var};
	ir_emit(v->o, &put);
}

/* Whether the way from `from` into `to` has copies. */
static bool has_copies(struct vars *v, uint32_t from, uint32_t to)
{
	const struct ir_func *f = v->f;
	uint32_t at = 0;
	while (v->preds.list[v->preds.first[to] + at] != from)
		at++;
	for (uint32_t i = f->blocks[to].first; i < f->blocks[to].last; i++) {
		uint32_t id = f->order[i];
		const struct ir_rec *phi = &f->recs[id];
		if (phi->op != IR_PHI)
			break;
		ir_ref r = f->lists[phi->b + at];
		if (ir_tag(r) != IR_TAG_VALUE || var_of(v, ir_index(r)) != var_of(v, id))
			return true;
	}
	return false;
}

/* All are read, then all are set. */
static bool put_copies(struct vars *v, uint32_t from, uint32_t to)
{
	const struct ir_func *f = v->f;
	uint32_t at = 0, cnt = 0;
	while (v->preds.list[v->preds.first[to] + at] != from)
		at++;
	uint32_t max = f->blocks[to].last - f->blocks[to].first;
	ir_ref *values = ARENA_RAW_ARRAY(v->a, ir_ref, max + (size_t)1);
	uint32_t *into = ARENA_RAW_ARRAY(v->a, uint32_t, max + (size_t)1);
	if (!values || !into)
		return false;
	for (uint32_t i = f->blocks[to].first; i < f->blocks[to].last; i++) {
		uint32_t id = f->order[i], var = var_of(v, id);
		const struct ir_rec *phi = &f->recs[id];
		if (phi->op != IR_PHI)
			break;
		ir_ref r = f->lists[phi->b + at];
		if (ir_tag(r) == IR_TAG_VALUE && var_of(v, ir_index(r)) == var)
			continue;
		v->o->cur_origin = ir_tag(r) == IR_TAG_VALUE ? f->recs[ir_index(r)].origin : v->o->cur_origin;
		into[cnt] = var;
		values[cnt++] = value_in(v, r);
	}
	for (uint32_t i = 0; i < cnt; i++)
		put_var(v, into[i], values[i]);
	return true;
}

static struct ir_rec mapped_rec(struct vars *v, const struct ir_rec *rec)
{
	struct ir_rec out = *rec;
	unsigned n = ir_fixed_operands((enum ir_op)rec->op);
	if (n > 0 && rec->a != IR_REF_NONE)
		out.a = value_in(v, rec->a);
	if (n > 1 && rec->b != IR_REF_NONE)
		out.b = value_in(v, rec->b);
	if (n > 2 && rec->c != IR_REF_NONE)
		out.c = value_in(v, rec->c);
	if (!ir_has_list((enum ir_op)rec->op))
		return out;
	ir_ref *refs = ARENA_RAW_ARRAY(v->a, ir_ref, rec->c + (size_t)1);
	if (!refs) {
		v->o->failed = true;
		return out;
	}
	for (uint32_t i = 0; i < rec->c; i++)
		refs[i] = value_in(v, v->f->lists[rec->b + i]);
	out.b = ir_list(v->o, refs, rec->c);
	return out;
}

static ir_ref led(const struct vars *v, uint32_t from, ir_ref to)
{
	for (uint32_t k = v->succs.first[from]; k < v->succs.first[from + 1]; k++)
		if (v->succs.list[k] == ir_index(to) && v->split[k] != NONE)
			return ir_block_ref(v->split[k]);
	return to;
}

static void lead_end(struct vars *v, uint32_t b, struct ir_rec *end)
{
	if (end->op == IR_BR) {
		end->b = led(v, b, end->b);
		end->c = led(v, b, end->c);
	}
	if (end->op != IR_SWITCH)
		return;
	end->aux = ir_index(led(v, b, ir_block_ref(end->aux)));
	for (uint32_t i = 1; i < end->c; i += 2)
		v->o->lists[end->b + i] = led(v, b, v->o->lists[end->b + i]);
}

static bool make_block(struct vars *v, uint32_t b)
{
	struct ir_func *f = v->f;
	v->block = b;
	ir_block_begin(v->o, b);
	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
		uint32_t id = f->order[i];
		const struct ir_rec *rec = &f->recs[id];
		if (rec->op == IR_PHI)
			continue;
		v->o->cur_origin = rec->origin;
		struct ir_rec out = mapped_rec(v, rec);
		if (i + 1 == f->blocks[b].last) {
			if (out.op == IR_JMP && !put_copies(v, b, ir_index(out.a)))
				return false;
			v->o->cur_origin = rec->origin;
			lead_end(v, b, &out);
		}
		v->map[id] = ir_emit(v->o, &out);
		v->map_block[id] = b;
		uint32_t var = var_of(v, id);
		if (var != NONE)
			put_var(v, var, v->map[id]);
	}
	return true;
}

static bool make_splits(struct vars *v)
{
	struct ir_func *f = v->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		for (uint32_t k = v->succs.first[b]; k < v->succs.first[b + 1]; k++) {
			if (v->split[k] == NONE)
				continue;
			v->block = v->split[k];
			ir_block_begin(v->o, v->block);
			v->o->cur_origin = f->recs[f->order[f->blocks[b].last - 1]].origin;
			if (!put_copies(v, b, v->succs.list[k]))
				return false;
			const struct ir_rec jump = {.op = IR_JMP, .a = ir_block_ref(v->succs.list[k]), .b = IR_REF_NONE, .c = IR_REF_NONE};
			ir_emit(v->o, &jump);
		}
	}
	return true;
}

static bool make_blocks(struct vars *v)
{
	struct ir_func *f = v->f;
	for (uint32_t b = 0; b < f->block_cnt; b++)
		ir_block_new(v->o, f->blocks[b].va);
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		bool is_plain = v->succs.first[b + 1] - v->succs.first[b] == 1 && f->recs[f->order[f->blocks[b].last - 1]].op == IR_JMP;
		for (uint32_t k = v->succs.first[b]; k < v->succs.first[b + 1]; k++)
			v->split[k] = !is_plain && has_copies(v, b, v->succs.list[k]) ? ir_block_new(v->o, UINT64_MAX) : NONE;
	}
	for (uint32_t b = 0; b < f->block_cnt; b++)
		if (!make_block(v, b))
			return false;
	return make_splits(v);
}

static bool prepare(struct vars *v)
{
	struct ir_func *f = v->f;
	uint32_t n = f->rec_cnt;
	v->block_of = ARENA_RAW_ARRAY(v->a, uint32_t, n + (size_t)1);
	v->pos_of = ARENA_RAW_ARRAY(v->a, uint32_t, n + (size_t)1);
	v->number = ARENA_RAW_ARRAY(v->a, uint32_t, n + (size_t)1);
	v->values = ARENA_RAW_ARRAY(v->a, uint32_t, n + (size_t)1);
	v->map = ARENA_RAW_ARRAY(v->a, ir_ref, n + (size_t)1);
	v->map_block = ARENA_RAW_ARRAY(v->a, uint32_t, n + (size_t)1);
	if (!v->block_of || !v->pos_of || !v->number || !v->values || !v->map || !v->map_block || !ir_succs(f, &v->succs) ||
	    !ir_turn_edges(f, &v->succs, &v->preds))
		return false;
	memset(v->block_of, 0xff, n * sizeof(*v->block_of));
	memset(v->number, 0xff, n * sizeof(*v->number));
	memset(v->map_block, 0xff, n * sizeof(*v->map_block));
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
			v->block_of[f->order[i]] = b;
			v->pos_of[f->order[i]] = i;
		}
	}
	/* Entry values come before anything happens. */
	v->entry_end = f->blocks[0].first;
	while (v->entry_end + 1 < f->blocks[0].last && f->recs[f->order[v->entry_end]].op == IR_GET)
		v->entry_end++;
	find_values(v);
	v->use_first = ARENA_ARRAY(v->a, uint32_t, v->cnt + (size_t)2);
	uint32_t *fill = ARENA_ARRAY(v->a, uint32_t, v->cnt + (size_t)1);
	v->up = ARENA_RAW_ARRAY(v->a, uint32_t, v->cnt + (size_t)1);
	v->class_next = ARENA_RAW_ARRAY(v->a, uint32_t, v->cnt + (size_t)1);
	v->class_cnt = ARENA_RAW_ARRAY(v->a, uint32_t, v->cnt + (size_t)1);
	v->split = ARENA_RAW_ARRAY(v->a, uint32_t, v->succs.first[f->block_cnt] + (size_t)1);
	if (!v->use_first || !fill || !v->up || !v->class_next || !v->class_cnt || !v->split)
		return false;
	count_uses(v, NULL);
	for (uint32_t k = 0; k < v->cnt; k++)
		v->use_first[k + 1] += v->use_first[k];
	v->uses = ARENA_RAW_ARRAY(v->a, struct use, v->use_first[v->cnt] + (size_t)1);
	if (!v->uses)
		return false;
	count_uses(v, fill);
	return true;
}

struct err *dec_vars(struct dec *d, struct dec_func *ret)
{
	struct vars v = {.d = d, .f = d->f, .a = d->arena};
	struct ir_func *f = d->f;
	if (!prepare(&v))
		return &err_nomem;
	if ((size_t)v.cnt * f->block_cnt > 64u << 20 || v.cnt + f->machine->loc_cnt >= IR_LOC_NONE)
		return dec_budget(d);
	if (!make_live(&v))
		return dec_budget(d);
	share(&v);
	v.o = ir_func_new(d->arena, f->machine, f->va);
	if (!v.o || !name_vars(&v))
		return &err_nomem;
	ret->machine = *f->machine;
	ret->machine.locs = v.locs;
	ret->first_var = f->machine->loc_cnt;
	ret->var_cnt = (uint16_t)v.var_cnt;
	ret->machine.loc_cnt = (uint16_t)(ret->first_var + v.var_cnt);
	ret->vars = v.infos;
	struct ir_func *o = v.o;
	o->machine = &ret->machine;
	o->self = f->self;
	o->params = f->self ? v.params : NULL;
	o->sigs = f->sigs;
	o->sig_cnt = f->sig_cnt;
	o->origins = f->origins;
	o->origin_cnt = o->origin_cap = f->origin_cnt;
	o->intrins = f->intrins;
	o->intrin_cnt = o->intrin_cap = f->intrin_cnt;
	o->consts = f->consts;
	o->const_cnt = o->const_cap = f->const_cnt;
	o->words = f->words;
	o->word_cnt = o->word_cap = f->word_cnt;
	o->const_hash = f->const_hash;
	o->const_hash_cap = f->const_hash_cap;
	ir_reserve(o, f->order_cnt * 2, 0);
	if (!make_blocks(&v) || o->failed)
		return &err_nomem;
	d->f = ret->f = o;
	return NULL;
}
