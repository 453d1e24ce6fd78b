/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/str_int.h"

#include <string.h>

/* Statements a condition may have before its comma; and where that saves a jump. */
#define COND_COST_MAX 1
#define COND_COST_LONG_MAX 8

uint32_t str_cond_new(struct str_work *w, struct str_cond c, unsigned leaves)
{
	if (w->cond_cnt == w->cond_cap)
		return STR_NONE;
	w->conds[w->cond_cnt] = c;
	w->leaves[w->cond_cnt] = (uint8_t)leaves;
	return w->cond_cnt++;
}

/* As deep as the largest condition. */
void str_cond_turn(struct str_work *w, uint32_t cond)
{
	uint32_t stack[STR_COND_LEAVES_MAX + 1], cnt = 0;
	stack[cnt++] = cond;
	while (cnt > 0) {
		struct str_cond *c = &w->conds[stack[--cnt]];
		if (c->op == STR_COND_BLOCK) {
			c->is_not = !c->is_not;
			continue;
		}
		c->op = c->op == STR_COND_AND ? STR_COND_OR : STR_COND_AND;
		stack[cnt++] = c->a;
		stack[cnt++] = c->b;
	}
}

uint32_t str_cond_first(const struct str_cond *conds, uint32_t cond)
{
	while (conds[cond].op != STR_COND_BLOCK)
		cond = conds[cond].a;
	return cond;
}

/* Whether block f, to which one way of x leads, can be the second half of x's condition; the edges then. */
static bool join(struct str_work *w, uint32_t x, unsigned way, uint32_t *in_cnt)
{
	uint32_t f = w->to[2 * x + way], other = w->to[2 * x + !way];
	if (f == x || f == 0 || w->end[f] != STR_END_COND || in_cnt[f] != 1)
		return false;
	uint32_t *to = &w->to[2 * f];
	bool has_statements = w->g->blocks[f].cost != 0;
	if ((to[0] != other && to[1] != other) || w->leaves[w->cond[x]] + w->leaves[w->cond[f]] > STR_COND_LEAVES_MAX)
		return false;
	if (has_statements && (!w->g->blocks[f].is_expr || w->g->blocks[f].cost > (w->sinks ? COND_COST_LONG_MAX : COND_COST_MAX)))
		return false;
	/* f has two ways, so the one that is left is not x's other. */
	bool is_turned = to[0] == other, is_or = way == 1;
	uint32_t out = to[is_turned];
	/* x || f, whose other way is f's; or x && f. */
	uint32_t second = w->cond[f];
	if (is_turned != is_or)
		str_cond_turn(w, second);
	uint32_t c = str_cond_new(w, (struct str_cond){.op = is_or ? STR_COND_OR : STR_COND_AND, .a = w->cond[x], .b = second},
				  w->leaves[w->cond[x]] + w->leaves[second]);
	if (c == STR_NONE)
		return false;
	w->conds[str_cond_first(w->conds, second)].is_bare = false;
	w->cond[x] = c;
	w->is_mixed[x] = true;
	w->to[2 * x + way] = out;
	w->cost[x] += w->cost[f];
	w->is_gone[f] = true;
	in_cnt[other]--;
	return true;
}

bool str_join_conds(struct str_work *w)
{
	uint32_t *in_cnt = ARENA_ARRAY(w->a, uint32_t, w->n);
	w->conds = ARENA_RAW_ARRAY(w->a, struct str_cond, 2 * (size_t)w->n);
	w->leaves = ARENA_RAW_ARRAY(w->a, uint8_t, 2 * (size_t)w->n);
	w->cond = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->is_mixed = ARENA_ARRAY(w->a, bool, w->n);
	if (!in_cnt || !w->conds || !w->leaves || !w->cond || !w->is_mixed)
		return false;
	w->cond_cap = 2 * w->n;
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		for (uint32_t k = 0, cnt = str_succ_cnt(w, w->rpo[i]); k < cnt; k++)
			in_cnt[str_succ(w, w->rpo[i], k)]++;
	}
	for (uint32_t b = 0; b < w->n; b++) {
		if (w->end[b] == STR_END_COND)
			w->cond[b] = str_cond_new(w, (struct str_cond){.op = STR_COND_BLOCK, .is_bare = w->g->blocks[b].cost != 0, .a = b}, 1);
	}
	/* What comes after is joined first. */
	for (uint32_t i = w->rpo_cnt; i-- > 0 && !w->o->is_plain;) {
		uint32_t x = w->rpo[i];
		while (w->end[x] == STR_END_COND && (join(w, x, 0, in_cnt) || join(w, x, 1, in_cnt)))
			;
	}
	return true;
}
