/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <stdio.h>
#include <string.h>

/*
 * Requires: the form of variables. Provides: names that say what variables are for. Breaks: nothing.
 *
 * What begins with a number and goes on by one counts: i, j, k. What goes on by a number and is where memory is read or written is a
 * pointer that walks: p. The others keep theirs, so that one name more changes no other.
 */
enum { SETS = 1, STEPS = 2, ADDRESS = 4 };

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

/* `next`: per location, the one whose value it holds one step on. */
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

bool dec_names(struct dec_func *fn, struct arena *a)
{
	static const char letters[] = "ijk";
	const struct ir_func *f = fn->f;
	struct ir_loc *locs = ARENA_RAW_ARRAY(a, struct ir_loc, f->machine->loc_cnt + (size_t)1);
	uint8_t *uses = ARENA_ARRAY(a, uint8_t, f->machine->loc_cnt + (size_t)1);
	unsigned counters = 0, pointers = 0;
	uint16_t *next = ARENA_RAW_ARRAY(a, uint16_t, f->machine->loc_cnt + (size_t)1);
	if (!locs || !uses || !next)
		return false;
	memcpy(locs, fn->machine.locs, f->machine->loc_cnt * sizeof(*locs));
	memset(next, 0xff, f->machine->loc_cnt * sizeof(*next));
	/* Twice: a copy may stand before the step. */
	for (uint32_t i = 0; i < 2 * f->order_cnt; i++)
		look(f, &f->recs[f->order[i % f->order_cnt]], uses, next);
	for (unsigned i = fn->first_var; i < fn->machine.loc_cnt; i++) {
		char name[24] = "";
		/* Those with names of their own are parameters and the like. */
		if (locs[i].name[0] != 'v' || locs[i].width < IR_W32 || !(uses[i] & STEPS))
			continue;
		if (uses[i] & ADDRESS && locs[i].width == f->machine->addr_width)
			snprintf(name, sizeof(name), pointers ? "p%u" : "p", pointers + 1), pointers++;
		else if (uses[i] & SETS && counters < 3)
			snprintf(name, sizeof(name), "%c", letters[counters++]);
		else if (uses[i] & SETS)
			snprintf(name, sizeof(name), "n%u", ++counters - 2); /* i8 and so on are types */
		if (name[0] && !(locs[i].name = arena_strndup(a, name, strlen(name))))
			return false;
	}
	fn->machine.locs = locs;
	return true;
}
