/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <string.h>

/*
 * Parts of blocks that stand alone in the structure. What several blocks decide in the same words, with the same outcomes, is one decision that
 * all of them come to: compilers ask twice where that saves a jump (loops whose condition is asked before them and at their end, ways on which an
 * answer is known). What a block does last before its loop begins again is a step, when it moves what the loop goes on by.
 */

#define SKIP_MAX 8
#define DEPTH_MAX 8

/* Past parts that do nothing but go on. */
static uint32_t skip(const struct cprint_printer *p, uint32_t b)
{
	for (unsigned i = 0; i < SKIP_MAX && p->blocks[b].end == STR_END_GOTO && !p->blocks[b].cost; i++)
		b = p->blocks[b].to[0];
	return b;
}

/* --- decisions ----------------------------------------------------------------------------------------------- */
struct said {
	uint32_t block;     /* the first that says it; STR_NONE: empty */
	uint32_t part;      /* the decision, or STR_NONE */
	bool is_not;        /* ... say the opposite of what it ends with */
	size_t at, len;     /* its words, in `words` */
	uint64_t hash;
};

static uint64_t hash_of(const char *s, size_t len, uint32_t yes, uint32_t no)
{
	uint64_t h = 0xcbf29ce484222325u ^ ((uint64_t)yes << 32 | no);
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

static void decide(struct cprint_printer *p, uint32_t b, uint32_t part)
{
	p->blocks[b].end = STR_END_GOTO;
	p->blocks[b].to[0] = part;
}

static void take_decision(struct cprint_printer *p, struct said *s, uint32_t b)
{
	if (s->part == STR_NONE) {
		s->part = p->part_cnt++;
		p->blocks[s->part] = p->blocks[s->block];
		p->blocks[s->part].cost = 0;
		p->blocks[s->part].is_expr = true;
		p->parts[s->part] = (struct cprint_part){s->block, p->parts[s->block].last, p->parts[s->block].last};
		decide(p, s->block, s->part);
	}
	decide(p, b, s->part);
}

/* The words of a condition, or of its opposite, whichever come first by their letters; so that either is found by both. */
static bool say(struct cprint_printer *p, ir_ref cond, struct buf *words, bool *is_not)
{
	size_t at = words->len, mid, len;
	if (!cprint_condition(p, cond, false, words))
		return false;
	mid = words->len;
	if (!cprint_condition(p, cond, true, words) || words->failed)
		return false;
	len = words->len - mid;
	int order = memcmp(words->data + mid, words->data + at, len < mid - at ? len : mid - at);
	*is_not = order < 0 || (!order && len < mid - at);
	if (*is_not)
		memmove(words->data + at, words->data + mid, len);
	words->len = *is_not ? at + len : mid;
	return true;
}

/* The words are what is executed: where they are the same, so is what they say of the state they are said in. */
static bool join_decisions(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	struct buf words = {0};
	struct cprint_map *map = p->map;
	uint32_t cap = 64;
	while (cap < 2 * f->block_cnt)
		cap *= 2;
	struct said *table = ARENA_RAW_ARRAY(a, struct said, cap);
	if (!table)
		return false;
	for (uint32_t i = 0; i < cap; i++)
		table[i].block = STR_NONE;
	p->map = NULL;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_rec *end = ir_terminator(f, b);
		if (p->blocks[b].end != STR_END_COND || !end || end->op != IR_BR)
			continue;
		size_t at = words.len;
		bool is_not;
		if (!say(p, end->a, &words, &is_not))
			break;
		uint32_t yes = skip(p, p->blocks[b].to[is_not]), no = skip(p, p->blocks[b].to[!is_not]);
		uint64_t h = hash_of(words.data + at, words.len - at, yes, no);
		uint32_t i = (uint32_t)h & (cap - 1);
		for (; table[i].block != STR_NONE; i = (i + 1) & (cap - 1)) {
			const struct said *s = &table[i];
			const struct str_block *k = &p->blocks[s->part == STR_NONE ? s->block : s->part];
			if (s->hash == h && s->len == words.len - at && !memcmp(words.data + s->at, words.data + at, s->len) &&
			    skip(p, k->to[s->is_not]) == yes && skip(p, k->to[!s->is_not]) == no)
				break;
		}
		if (table[i].block != STR_NONE) {
			take_decision(p, &table[i], b);
			words.len = at;
		} else {
			table[i] = (struct said){b, STR_NONE, is_not, at, words.len - at, h};
		}
	}
	p->map = map;
	bool ok = !words.failed;
	buf_fini(&words);
	return ok;
}

/* --- steps of loops ------------------------------------------------------------------------------------------------ */
/* Whether a value is an expression in which location `loc` is read. */
static bool reads(const struct cprint_printer *p, ir_ref r, unsigned loc, unsigned depth)
{
	const struct ir_rec *rec = cprint_inline(p, r);
	if (!rec || depth == DEPTH_MAX)
		return false;
	if (rec->op == IR_GET)
		return rec->aux == loc;
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	bool is_read = false;
	for (unsigned i = 0; i < ir_fixed_operands((enum ir_op)rec->op) && !is_read; i++)
		is_read = reads(p, refs[i], loc, depth + 1);
	return is_read;
}

/* The place of the last statement before `end` of a part, when that sets a variable; else UINT32_MAX. */
static uint32_t last_set(const struct cprint_printer *p, uint32_t part, uint32_t end)
{
	for (uint32_t i = end; i-- > p->parts[part].first;) {
		uint32_t r = p->f->order[i];
		const struct ir_rec *rec = &p->f->recs[r];
		if (cprint_is_idle(p, r) || p->values[r].is_inline)
			continue;
		return rec->op == IR_PUT && p->f->machine->locs[rec->aux].cls == IR_LOC_VAR ? i : UINT32_MAX;
	}
	return UINT32_MAX;
}

/* Whether the statement at a place of the order moves a variable on. */
static bool moves(const struct cprint_printer *p, uint32_t at)
{
	const struct ir_rec *rec = at == UINT32_MAX ? NULL : &p->f->recs[p->f->order[at]];
	return rec && reads(p, rec->a, rec->aux, 0);
}

/* i = i + 1, or i = i + 1; c = *i, before going back to what asks for i, or c. */
static void take_step(struct cprint_printer *p, uint32_t b)
{
	const struct ir_func *f = p->f;
	struct str_block *k = &p->blocks[b];
	uint32_t to = k->to[0], last = last_set(p, b, p->parts[b].last), cost = 1;
	if (k->end != STR_END_GOTO || last == UINT32_MAX || p->blocks[to].end != STR_END_COND || p->parts[to].block > b)
		return;
	const struct ir_rec *end = ir_terminator(f, p->parts[to].block), *set = &f->recs[f->order[last]];
	bool is_step = reads(p, end->a, set->aux, 0);
	if (is_step && !moves(p, last)) {
		uint32_t before = last_set(p, b, last);
		is_step = moves(p, before) && reads(p, set->a, f->recs[f->order[before]].aux, 0);
		last = before;
		cost = 2;
	}
	if (!is_step)
		return;
	uint32_t s = p->part_cnt++;
	p->parts[s] = (struct cprint_part){b, last, p->parts[b].last};
	p->parts[b].last = last;
	p->blocks[s] = (struct str_block){.end = STR_END_GOTO, .is_expr = true, .is_step = true, .cost = cost, .to = {to}};
	k->cost -= cost;
	k->to[0] = s;
}

uint32_t cprint_first_set(const struct cprint_printer *p, uint32_t part, uint32_t step)
{
	const struct ir_func *f = p->f;
	uint32_t at = last_set(p, part, p->parts[part].last), first = p->parts[step].first;
	while (first < p->parts[step].last && (f->recs[f->order[first]].op != IR_PUT || p->values[f->order[first]].is_inline))
		first++;
	bool is_same = at != UINT32_MAX && first < p->parts[step].last && f->recs[f->order[at]].aux == f->recs[f->order[first]].aux;
	return is_same && !moves(p, at) ? at : UINT32_MAX;
}

bool cprint_split(struct cprint_printer *p, struct arena *a)
{
	if (!join_decisions(p, a))
		return false;
	for (uint32_t b = 0; b < p->f->block_cnt; b++)
		take_step(p, b);
	return true;
}
