/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/str_int.h"

#include <string.h>

/*
 * Reads the tree back: which block comes first when control is at a node, and which comes after each way a block may end; compared with the
 * graph. Shares nothing with what built the tree but str_skip().
 */

/* Places control may be at: node n, or 2 * n + 1: the condition of the DO n, the step of the WHILE n. */
#define PLACE(n) (2 * (n))
#define INNER(n) (2 * (n) + 1)

enum { UNKNOWN = STR_NONE, NOWHERE = STR_NONE - 1, ON_WAY = STR_NONE - 2 };

struct check {
	struct arena *a;
	const struct str_graph *g;
	const struct str_tree *t;
	uint32_t *skip;
	uint32_t *after;    /* per node: the place behind it; NOWHERE behind the last */
	uint32_t *brk, *again; /* per node: the places of a break and a continue in it */
	uint32_t *first;    /* per place: the block that comes, UNKNOWN until it is looked for */
	uint32_t *way;
	uint32_t *label;    /* per block: its node */
	uint32_t *case_of, *in_switch; /* per block: the case for it in the switch looked at last */
	bool *is_there;
	struct err *e;
};

static struct err *wrong(uint32_t block, const char *what)
{
	return err_new(ERR_INTERNAL, "structure: block %u: %s", block, what);
}

static void fail(struct check *c, uint32_t block, const char *what)
{
	if (!c->e)
		c->e = wrong(block, what);
}

static const struct str_node *node(const struct check *c, uint32_t n)
{
	return &c->t->nodes[n];
}

/* The condition's first block, or UNKNOWN where that stands before. */
static uint32_t cond_first(const struct check *c, uint32_t cond)
{
	const struct str_cond *first = &c->t->conds[str_cond_first(c->t->conds, cond)];
	return first->is_bare ? UNKNOWN : first->a;
}

/* From parents to children: what is around each node. */
static void find_around(struct check *c)
{
	const struct str_tree *t = c->t;
	for (uint32_t n = 0; n < t->node_cnt; n++) {
		const struct str_node *k = &t->nodes[n];
		uint32_t behind = c->after[n], brk = c->brk[n], again = c->again[n], end = behind;
		if (k->kind == STR_LOOP || k->kind == STR_WHILE || k->kind == STR_DO) {
			bool is_inner = k->kind == STR_DO || k->block != STR_NONE;
			brk = behind;
			again = end = is_inner ? INNER(n) : PLACE(n);
		} else if (k->kind == STR_SWITCH) {
			brk = behind;
		}
		for (uint32_t i = k->first; i != STR_NONE; i = t->nodes[i].next) {
			bool has_next = t->nodes[i].next != STR_NONE && k->kind != STR_IF;
			c->after[i] = has_next ? PLACE(t->nodes[i].next) : end;
			c->brk[i] = brk;
			c->again[i] = again;
		}
	}
}

/* The place control goes on to at once, or the block that is first there. */
static bool step(struct check *c, uint32_t place, uint32_t *ret)
{
	uint32_t n = place / 2;
	const struct str_node *k = node(c, n);
	if (place & 1) {
		*ret = k->kind == STR_DO ? cond_first(c, k->cond) : k->block;
		return false;
	}
	switch (k->kind) {
	case STR_BLOCK:
	case STR_GOTO:
		*ret = k->block;
		return false;
	case STR_IF:
	case STR_WHILE:
		*ret = cond_first(c, k->cond);
		return false;
	case STR_SEQ:
	case STR_LOOP:
	case STR_DO:
	case STR_CASE:
		*ret = k->first == STR_NONE ? c->after[n] : PLACE(k->first);
		return true;
	case STR_LABEL:
		*ret = c->after[n];
		return true;
	case STR_BREAK:
		*ret = c->brk[n];
		return true;
	case STR_CONTINUE:
		*ret = c->again[n];
		return true;
	default:
		*ret = UNKNOWN;
		return false;
	}
}

/* The block that comes first at a place; NOWHERE: none does. */
static uint32_t first_at(struct check *c, uint32_t place)
{
	uint32_t cnt = 0, block = NOWHERE;
	while (place != NOWHERE && c->first[place] != ON_WAY) {
		if (c->first[place] != UNKNOWN) {
			block = c->first[place];
			break;
		}
		c->first[place] = ON_WAY;
		c->way[cnt++] = place;
		uint32_t next;
		if (!step(c, place, &next)) {
			block = next == UNKNOWN ? NOWHERE : next;
			break;
		}
		place = next;
	}
	while (cnt > 0)
		c->first[c->way[--cnt]] = block;
	return block;
}

/* Where block b leads to; false: not in this way. */
static bool ends_as(const struct check *c, uint32_t b, enum str_end end, uint32_t *to)
{
	const struct str_block *k = &c->g->blocks[b];
	to[0] = k->end == STR_END_GOTO || k->end == STR_END_COND ? c->skip[k->to[0]] : c->skip[k->end == STR_END_SWITCH ? k->to[1] : 0];
	to[1] = k->end == STR_END_COND ? c->skip[k->to[1]] : to[0];
	bool is_one = k->end == STR_END_COND && to[0] == to[1];
	if (k->end == STR_END_SWITCH) {
		is_one = true;
		for (uint32_t i = 0; i < k->case_cnt && is_one; i++)
			is_one = c->skip[c->g->cases[k->first_case + i].to] == to[0];
	}
	return (is_one ? STR_END_GOTO : (enum str_end)k->end) == end;
}

/* A condition that leads to one of two blocks. As deep as the largest one; what is left to do is at most one for each of its blocks. */
static void check_cond(struct check *c, uint32_t cond, uint32_t yes, uint32_t no)
{
	struct {
		uint32_t cond, yes, no;
	} stack[2 * STR_COND_LEAVES_MAX + 2];
	uint32_t cnt = 0;
	stack[cnt].cond = cond;
	stack[cnt].yes = yes;
	stack[cnt++].no = no;
	while (cnt > 0) {
		cond = stack[--cnt].cond;
		yes = stack[cnt].yes;
		no = stack[cnt].no;
		const struct str_cond *k = &c->t->conds[cond];
		if (k->op == STR_COND_BLOCK) {
			uint32_t to[2];
			c->is_there[k->a] = true;
			if (!ends_as(c, k->a, STR_END_COND, to) || to[0] != (k->is_not ? no : yes) || to[1] != (k->is_not ? yes : no))
				fail(c, k->a, "its condition leads elsewhere");
			continue;
		}
		if (cnt + 2 > sizeof(stack) / sizeof(*stack)) {
			fail(c, k->a, "its condition is too large");
			return;
		}
		uint32_t second = cond_first(c, k->b);
		if (second == UNKNOWN)
			fail(c, c->t->conds[str_cond_first(c->t->conds, k->b)].a, "its statements are not in its condition");
		stack[cnt].cond = k->a;
		stack[cnt].yes = k->op == STR_COND_AND ? second : yes;
		stack[cnt++].no = k->op == STR_COND_AND ? no : second;
		stack[cnt].cond = k->b;
		stack[cnt].yes = yes;
		stack[cnt++].no = no;
	}
}

/* What the statements of block b are followed by, at `place`. */
static void check_block(struct check *c, uint32_t b, uint32_t place)
{
	uint32_t to[2], n = place / 2;
	const struct str_node *k = place == NOWHERE ? NULL : node(c, n);
	c->is_there[b] = true;
	if (ends_as(c, b, STR_END_GOTO, to)) {
		if (place == NOWHERE || first_at(c, place) != to[0])
			fail(c, b, "it leads elsewhere");
		return;
	}
	bool ok = false;
	if (k && ends_as(c, b, STR_END_COND, to)) {
		bool is_cond = (place & 1) ? k->kind == STR_DO : k->kind == STR_IF;
		const struct str_cond *first = is_cond ? &c->t->conds[str_cond_first(c->t->conds, k->cond)] : NULL;
		ok = first && first->is_bare && first->a == b;
	} else if (k && !(place & 1)) {
		ok = k->block == b && k->kind == (ends_as(c, b, STR_END_SWITCH, to) ? STR_SWITCH : STR_LEAVE);
	}
	if (!ok)
		fail(c, b, "what it ends with does not follow it");
}

static void check_case(struct check *c, uint32_t n, uint32_t b, uint32_t to)
{
	uint32_t in = c->in_switch[to] == n ? c->case_of[to] : STR_NONE;
	if (in == STR_NONE || first_at(c, PLACE(in)) != to)
		fail(c, b, "a value of its switch leads elsewhere");
}

static void check_switch(struct check *c, uint32_t n)
{
	const struct str_node *k = node(c, n);
	const struct str_block *b = &c->g->blocks[k->block];
	uint32_t other = STR_NONE, to = c->skip[b->to[1]];
	for (uint32_t i = k->first; i != STR_NONE; i = node(c, i)->next) {
		c->in_switch[node(c, i)->block] = n;
		c->case_of[node(c, i)->block] = i;
		if (node(c, i)->is_default)
			other = i;
	}
	for (uint32_t i = 0; i < b->case_cnt; i++)
		check_case(c, n, k->block, c->skip[c->g->cases[b->first_case + i].to]);
	if (first_at(c, other == STR_NONE ? c->after[n] : PLACE(other)) != to)
		fail(c, k->block, "the default of its switch leads elsewhere");
}

static void check_node(struct check *c, uint32_t n)
{
	const struct str_node *k = node(c, n);
	switch (k->kind) {
	case STR_BLOCK:
		check_block(c, k->block, c->after[n]);
		break;
	case STR_IF: {
		uint32_t other = node(c, k->first)->next;
		check_cond(c, k->cond, first_at(c, PLACE(k->first)), first_at(c, other == STR_NONE ? c->after[n] : PLACE(other)));
		break;
	}
	case STR_WHILE:
		if (k->block != STR_NONE)
			check_block(c, k->block, PLACE(n));
		check_cond(c, k->cond, first_at(c, PLACE(k->first)), first_at(c, c->after[n]));
		break;
	case STR_DO:
		check_cond(c, k->cond, first_at(c, PLACE(k->first)), first_at(c, c->after[n]));
		break;
	case STR_SWITCH:
		check_switch(c, n);
		break;
	case STR_GOTO:
		if (c->label[k->block] == STR_NONE)
			fail(c, k->block, "it has no label");
		break;
	case STR_LABEL:
		if (first_at(c, PLACE(n)) != k->block)
			fail(c, k->block, "its label is elsewhere");
		break;
	case STR_LEAVE:
		if (c->g->blocks[k->block].end != STR_END_LEAVE)
			fail(c, k->block, "it does not leave");
		break;
	default:
		break;
	}
}

static uint32_t *filled(struct arena *a, size_t cnt)
{
	uint32_t *p = ARENA_RAW_ARRAY(a, uint32_t, cnt);
	if (p)
		memset(p, 0xff, cnt * sizeof(*p));
	return p;
}

struct err *str_check(struct arena *a, const struct str_graph *g, const struct str_tree *t)
{
	size_t n = t->node_cnt, blocks = g->block_cnt;
	struct err *e = str_graph_check(g);
	if (e)
		return e;
	struct check c = {.a = a, .g = g, .t = t, .skip = str_skip(a, g), .after = ARENA_RAW_ARRAY(a, uint32_t, n),
			  .brk = ARENA_RAW_ARRAY(a, uint32_t, n), .again = ARENA_RAW_ARRAY(a, uint32_t, n), .first = filled(a, 2 * n),
			  .way = ARENA_RAW_ARRAY(a, uint32_t, 2 * n),
			  .label = filled(a, blocks), .case_of = filled(a, blocks), .in_switch = filled(a, blocks),
			  .is_there = ARENA_ARRAY(a, bool, blocks)};
	if (!c.skip || !c.after || !c.brk || !c.again || !c.first || !c.way || !c.label || !c.case_of || !c.in_switch || !c.is_there)
		return &err_nomem;
	c.after[t->root] = c.brk[t->root] = c.again[t->root] = NOWHERE;
	find_around(&c);
	for (uint32_t i = 0; i < n; i++) {
		if (t->nodes[i].kind != STR_LABEL)
			continue;
		if (c.label[t->nodes[i].block] != STR_NONE)
			fail(&c, t->nodes[i].block, "it has two labels");
		c.label[t->nodes[i].block] = i;
	}
	for (uint32_t i = 0; i < n && !c.e; i++)
		check_node(&c, i);
	if (!c.e && first_at(&c, PLACE(t->root)) != 0)
		fail(&c, 0, "the tree does not begin with it");
	for (uint32_t b = 0; b < blocks && !c.e; b++) {
		if (!c.is_there[b] && c.skip[b] == b)
			fail(&c, b, "it is not in the tree");
	}
	return c.e;
}
