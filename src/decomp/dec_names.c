/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <stdio.h>
#include <string.h>

/*
 * Requires: the form of variables. Provides: names that say what variables are for. Breaks: nothing.
 *
 * What begins with a number and goes on by one counts: i, j, k. What goes on by a number and is where memory is read or written is a
 * pointer that walks: p. What a known function gives is called as what it gives is, and what it takes as its parameter; so are parameters of
 * a function whose prototype says so. The address of something in the frame is local_OFFSET. The others keep theirs, so that one name more
 * changes no other.
 */
enum { SETS = 1, STEPS = 2, ADDRESS = 4 };

#define WORD_MAX 40

/* Why a variable is called so: the later, the better. */
enum rank { R_NONE, R_FRAME, R_ARG, R_RESULT, R_PARAM };

struct names {
	struct dec *d;
	struct dec_func *fn;
	const struct ir_func *f;
	struct arena *a;
	struct ir_loc *locs;
	uint8_t *uses;           /* per location: SETS, STEPS, ADDRESS */
	uint8_t *sets;           /* per location: how often it is set; 2: more often than once */
	uint16_t *next;          /* per location: the one whose value it holds one step on */
	struct wish {
		const char *word;
		uint8_t rank;
	} *wishes;               /* per location */
	uint8_t *rec_ranks;
};

/* What an address is counted from. */
static ir_ref base_of(const struct ir_func *f, ir_ref r)
{
	for (unsigned depth = 0; depth < 4 && ir_tag(r) == IR_TAG_VALUE; depth++) {
		const struct ir_rec *rec = &f->recs[ir_index(r)];
		if (rec->op != IR_ADD && rec->op != IR_SUB)
			break;
		r = rec->a;
	}
	return r;
}

static void look(const struct ir_func *f, const struct ir_rec *r, uint8_t *uses, uint16_t *next)
{
	uint64_t v;
	if (r->op == IR_LOAD || r->op == IR_STORE) {
		ir_ref base = base_of(f, r->a);
		if (ir_tag(base) == IR_TAG_VALUE && f->recs[ir_index(base)].op == IR_GET)
			uses[f->recs[ir_index(base)].aux] |= ADDRESS;
	}
	if (r->op != IR_PUT)
		return;
	const struct ir_rec *from = ir_tag(r->a) == IR_TAG_VALUE ? &f->recs[ir_index(r->a)] : NULL;
	if (!from)
		uses[r->aux] |= SETS;
	else if (from->op == IR_GET && next[from->aux] == r->aux)
		uses[r->aux] |= STEPS;
	else if (from->op == IR_ADD && ir_tag(from->a) == IR_TAG_VALUE && f->recs[ir_index(from->a)].op == IR_GET &&
		 ir_const_get(f, from->b, &v) && v && v < 64) {
		next[r->aux] = (uint16_t)f->recs[ir_index(from->a)].aux;
		uses[r->aux] |= next[r->aux] == r->aux ? STEPS : 0;
	}
}

/* --- words of known functions ---------------------------------------------------------------------------------------- */
static bool is_var(const struct names *n, unsigned loc)
{
	return n->locs[loc].cls == IR_LOC_VAR;
}

static void wish(struct names *n, unsigned loc, enum rank rank, const char *word)
{
	if (is_var(n, loc) && n->wishes[loc].rank < rank)
		n->wishes[loc] = (struct wish){word, (uint8_t)rank};
}

/* The value, and as far as it is the same number in fewer bits what that is made of, with the variables these are kept in. */
static void wish_value(struct names *n, ir_ref r, enum rank rank, const char *word)
{
	for (unsigned depth = 0; depth < 4 && ir_tag(r) == IR_TAG_VALUE; depth++) {
		uint32_t id = ir_index(r);
		const struct ir_rec *rec = &n->f->recs[id];
		if (rec->op == IR_GET && !(rec->flags & IR_F_TYPED)) {
			wish(n, rec->aux, rank, word);
			return;
		}
		if (n->rec_ranks[id] < rank) {
			n->rec_ranks[id] = (uint8_t)rank;
			n->fn->rec_words[id] = word;
		}
		if (rec->op != IR_ZEXT && rec->op != IR_SEXT && (rec->op != IR_EXTRACT || rec->aux))
			return;
		r = rec->a;
	}
}

static const char *word_of(struct names *n, uint64_t va, int arg)
{
	char word[WORD_MAX];
	return n->d->opts->word && n->d->opts->word(n->d->opts->ctx, va, arg, word, sizeof(word)) ? arena_strndup(n->a, word, strlen(word)) : NULL;
}

/* The arguments of a call, handed over before place `at` of the order. */
static void look_at_args(struct names *n, const struct ir_rec *call, uint32_t first, uint32_t at)
{
	uint64_t va;
	if (!(call->flags & IR_F_TYPED) || call->aux >= n->f->sig_cnt || !dec_target(n->f, call->a, &va))
		return;
	const struct ir_sig *sig = &n->f->sigs[call->aux];
	for (uint32_t i = at; i-- > first;) {
		const struct ir_rec *rec = &n->f->recs[n->f->order[i]];
		if (rec->op == IR_CALL)
			break;
		for (unsigned k = 0; rec->op == IR_PUT && rec->flags & IR_F_TYPED && k < sig->arg_cnt; k++) {
			const char *word = sig->args[k].loc == rec->aux ? word_of(n, va, (int)k) : NULL;
			if (word)
				wish_value(n, rec->a, R_ARG, word);
		}
	}
}

static bool is_result_of(const struct names *n, ir_ref r, const struct ir_rec **ret)
{
	for (unsigned depth = 0; depth < 4 && ir_tag(r) == IR_TAG_VALUE; depth++) {
		const struct ir_rec *rec = *ret = &n->f->recs[ir_index(r)];
		if (rec->op == IR_GET)
			return rec->flags & IR_F_TYPED;
		if (rec->op != IR_ZEXT && rec->op != IR_SEXT && (rec->op != IR_EXTRACT || rec->aux))
			return false;
		r = rec->a;
	}
	return false;
}

static void look_at_block(struct names *n, const struct ir_block *b)
{
	const char *result = NULL;
	for (uint32_t i = b->first; i < b->last; i++) {
		uint32_t id = n->f->order[i];
		const struct ir_rec *rec = &n->f->recs[id], *from;
		uint64_t va;
		if (rec->op == IR_CALL || rec->op == IR_IJMP) {
			look_at_args(n, rec, b->first, i);
			result = rec->flags & IR_F_TYPED && dec_target(n->f, rec->a, &va) ? word_of(n, va, -1) : NULL;
		}
		if (rec->op == IR_GET && rec->flags & IR_F_TYPED && result && n->rec_ranks[id] < R_RESULT) {
			n->rec_ranks[id] = R_RESULT;
			n->fn->rec_words[id] = result;
		}
		if (rec->op == IR_EXTRACT && is_result_of(n, ir_ref_make(IR_TAG_VALUE, id), &from))
			n->fn->rec_words[id] = n->fn->rec_words[from - n->f->recs];
		if (rec->op == IR_PUT && is_result_of(n, rec->a, &from) && n->fn->rec_words[from - n->f->recs])
			wish(n, rec->aux, R_RESULT, n->fn->rec_words[from - n->f->recs]);
	}
}

/* How far below the stack pointer at entry an address lies; 0: elsewhere. */
static uint64_t frame_offset(const struct names *n, ir_ref r)
{
	const struct ir_rec *rec = dec_rec(n->f, r), *sp = rec && (rec->op == IR_ADD || rec->op == IR_SUB) ? dec_rec(n->f, rec->a) : NULL;
	uint64_t v;
	if (!sp || sp->op != IR_GET || sp->aux < n->fn->first_var || !ir_const_get(n->f, rec->b, &v))
		return 0;
	const struct dec_var *var = &n->fn->vars[sp->aux - n->fn->first_var];
	v = rec->op == IR_SUB ? v : (0 - v) & dec_mask((enum ir_width)rec->width);
	return var->is_entry && var->loc == n->f->machine->sp_loc && v < 1u << 20 ? v : 0;
}

/* Variables that are set once, to an address in the frame, and values that are one. */
static bool look_at_frame(struct names *n)
{
	const struct ir_func *f = n->f;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		uint64_t off = frame_offset(n, ir_ref_make(IR_TAG_VALUE, f->order[i]));
		if (rec->op == IR_PUT)
			n->sets[rec->aux] = (uint8_t)MIN(n->sets[rec->aux] + 1, 2);
		if (!off)
			continue;
		n->fn->rec_words[f->order[i]] = arena_printf(n->a, "local_%llx", (unsigned long long)off);
		n->rec_ranks[f->order[i]] = R_FRAME;
		if (!n->fn->rec_words[f->order[i]])
			return false;
	}
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if (rec->op == IR_PUT && n->sets[rec->aux] == 1 && frame_offset(n, rec->a))
			wish(n, rec->aux, R_FRAME, n->fn->rec_words[ir_index(rec->a)]);
	}
	return true;
}

static void look_at_params(struct names *n)
{
	for (unsigned i = 0; n->f->self && n->f->params && i < n->f->self->arg_cnt; i++) {
		const char *word = n->f->params[i] == IR_LOC_NONE ? NULL : word_of(n, n->f->va, (int)i);
		if (word)
			wish(n, n->f->params[i], R_PARAM, word);
	}
}

/* --- names -------------------------------------------------------------------------------------------------------------- */
static bool is_taken(const struct names *n, const char *name)
{
	for (unsigned i = n->fn->first_var; i < n->fn->machine.loc_cnt; i++)
		if (!strcmp(n->locs[i].name, name))
			return true;
	return false;
}

static bool give(struct names *n, unsigned loc, const char *name)
{
	const char *own = arena_strndup(n->a, name, strlen(name));
	n->locs[loc].name = own ? own : n->locs[loc].name;
	return own != NULL;
}

static bool give_word(struct names *n, unsigned loc)
{
	char name[WORD_MAX + 16];
	const char *word = n->wishes[loc].word;
	size_t len = strlen(word);
	snprintf(name, sizeof(name), "%s", word);
	for (unsigned k = 2; is_taken(n, name); k++)
		snprintf(name, sizeof(name), "%s%s%u", word, len && word[len - 1] >= '0' && word[len - 1] <= '9' ? "_" : "", k);
	return give(n, loc, name);
}

static bool give_names(struct names *n)
{
	static const char letters[] = "ijk";
	unsigned counters = 0, pointers = 0;
	for (unsigned i = n->fn->first_var; i < n->fn->machine.loc_cnt; i++) {
		char name[24];
		const struct dec_var *var = &n->fn->vars[i - n->fn->first_var];
		bool is_own = n->locs[i].name[0] != 'v';
		/* Those with names of their own are parameters and the like. */
		if (n->wishes[i].rank && (!is_own || var->is_param)) {
			if (!give_word(n, i))
				return false;
			continue;
		}
		if (is_own || n->locs[i].width < IR_W32 || !(n->uses[i] & STEPS))
			continue;
		bool is_pointer = n->uses[i] & ADDRESS && n->locs[i].width == n->f->machine->addr_width;
		if (!is_pointer && !(n->uses[i] & SETS))
			continue;
		do {
			if (is_pointer)
				snprintf(name, sizeof(name), pointers ? "p%u" : "p", pointers + 1), pointers++;
			else if (counters < 3)
				snprintf(name, sizeof(name), "%c", letters[counters++]);
			else
				snprintf(name, sizeof(name), "n%u", ++counters - 2); /* i8 and so on are types */
		} while (is_taken(n, name));
		if (!give(n, i, name))
			return false;
	}
	return true;
}

bool dec_names(struct dec *d, struct dec_func *fn)
{
	const struct ir_func *f = fn->f;
	size_t locs = f->machine->loc_cnt + (size_t)1, recs = f->rec_cnt + (size_t)1;
	struct names n = {.d = d, .fn = fn, .f = f, .a = d->arena};
	n.locs = ARENA_RAW_ARRAY(n.a, struct ir_loc, locs);
	n.uses = ARENA_ARRAY(n.a, uint8_t, locs);
	n.sets = ARENA_ARRAY(n.a, uint8_t, locs);
	n.next = ARENA_RAW_ARRAY(n.a, uint16_t, locs);
	n.wishes = ARENA_ARRAY(n.a, struct wish, locs);
	n.rec_ranks = ARENA_ARRAY(n.a, uint8_t, recs);
	fn->rec_words = ARENA_ARRAY(n.a, const char *, recs);
	if (!n.locs || !n.uses || !n.sets || !n.next || !n.wishes || !n.rec_ranks || !fn->rec_words)
		return false;
	memcpy(n.locs, fn->machine.locs, f->machine->loc_cnt * sizeof(*n.locs));
	memset(n.next, 0xff, f->machine->loc_cnt * sizeof(*n.next));
	/* Twice: a copy may stand before the step. */
	for (uint32_t i = 0; i < 2 * f->order_cnt; i++)
		look(f, &f->recs[f->order[i % f->order_cnt]], n.uses, n.next);
	if (!look_at_frame(&n))
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++)
		look_at_block(&n, &f->blocks[b]);
	look_at_params(&n);
	/* What counts is called as it is always called. */
	for (unsigned i = fn->first_var; i < fn->machine.loc_cnt; i++)
		if (n.uses[i] & STEPS && n.wishes[i].rank < R_RESULT)
			n.wishes[i].rank = R_NONE;
	if (!give_names(&n))
		return false;
	fn->machine.locs = n.locs;
	return true;
}
