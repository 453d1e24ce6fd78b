/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/str_int.h"

#include <string.h>

/* From the tree as it is worked on to the one that is handed out, what contains others first. */
struct frame {
	uint32_t item; /* the next one */
	uint32_t parent;
	uint32_t depth;
};

struct give {
	struct str_shape *s;
	struct str_node *nodes;
	uint32_t *last; /* per node: its last child so far */
	struct frame *stack;
	uint32_t cnt, node_cnt;
	uint32_t *values, value_cnt;
	uint32_t *value_at; /* per block: of its values in the switch at hand how many there are, then where the next one goes */
	uint8_t *seen; /* per block: 1 its statements, 2 its end, 4 its label */
	struct str_tree *ret;
};

/* The values of a switch by the case they go to, which notes how many, and its first. */
static void give_values(struct give *g, uint32_t item)
{
	const struct str_work *w = g->s->w;
	struct str_item *items = g->s->items;
	const struct str_block *b = &w->g->blocks[items[item].block];
	for (uint32_t c = items[item].first; c != STR_NONE; c = items[c].next)
		g->value_at[items[c].block] = 0;
	for (uint32_t k = 0; k < b->case_cnt; k++)
		g->value_at[w->skip[w->g->cases[b->first_case + k].to]]++;
	for (uint32_t c = items[item].first; c != STR_NONE; c = items[c].next) {
		uint32_t *at = &g->value_at[items[c].block], cnt = *at;
		items[c].value_cnt = cnt;
		items[c].first_value = *at = g->value_cnt;
		g->value_cnt += cnt;
	}
	for (uint32_t k = 0; k < b->case_cnt; k++)
		g->values[g->value_at[w->skip[w->g->cases[b->first_case + k].to]]++] = b->first_case + k;
}

/* A default that only leaves its switch, and no value goes there: it says what holds anyway. */
static bool is_idle_default(const struct give *g, uint32_t i)
{
	const struct str_item *items = g->s->items, *it = &items[i];
	uint32_t first = items[it->first].first;
	bool only_leaves = first == STR_NONE || items[first].kind == STR_NEXT || items[first].kind == STR_BREAK;
	return it->is_default && it->next == STR_NONE && only_leaves && !it->value_cnt;
}

/* A block may have more than one; all lead to the same. */
static bool is_first_label(struct give *g, uint32_t b)
{
	bool is_first = g->s->refs[b] && !(g->seen[b] & 4);
	g->seen[b] |= is_first ? 4 : 0;
	return is_first;
}

static bool is_shown(struct give *g, uint32_t i)
{
	const struct str_item *it = &g->s->items[i];
	switch (it->kind) {
	case STR_NEXT:
		return false;
	case STR_LABEL:
		return is_first_label(g, it->block);
	case STR_CASE:
		return !is_idle_default(g, i);
	default:
		return true;
	}
}

static uint32_t add_node(struct give *g, uint32_t i, uint32_t parent)
{
	const struct str_item *it = &g->s->items[i];
	uint32_t n = g->node_cnt++;
	struct str_node *node = &g->nodes[n];
	*node = (struct str_node){.kind = it->kind, .is_default = it->is_default, .block = it->block, .cond = it->cond};
	node->first = node->next = STR_NONE;
	if (it->kind == STR_LOOP || it->kind == STR_WHILE || it->kind == STR_DO)
		node->block = it->kind == STR_WHILE ? it->step : STR_NONE;
	if (it->kind == STR_IF)
		node->block = STR_NONE;
	uint8_t part = it->kind == STR_BLOCK ? 1 : it->kind == STR_LEAVE ? 2 : 0;
	if (part) {
		node->is_copy = g->seen[it->block] & part;
		g->seen[it->block] |= part;
		g->ret->copy_cnt += node->is_copy;
	}
	g->ret->goto_cnt += it->kind == STR_GOTO;
	if (it->kind == STR_SWITCH)
		give_values(g, i);
	if (it->kind == STR_CASE) {
		node->falls = g->s->items[it->first].falls;
		node->value_cnt = it->value_cnt;
		node->first_value = it->first_value;
	}
	g->last[n] = STR_NONE;
	if (parent == STR_NONE)
		return n;
	if (g->last[parent] == STR_NONE)
		g->nodes[parent].first = n;
	else
		g->nodes[g->last[parent]].next = n;
	g->last[parent] = n;
	return n;
}

static void give_item(struct give *g, uint32_t i, uint32_t parent, uint32_t depth)
{
	uint32_t first = g->s->items[i].first;
	if (!is_shown(g, i))
		return;
	/* A part that was moved to the end is not nested there. */
	bool is_inner = g->s->items[i].kind == STR_SEQ && g->nodes[parent].kind == STR_SEQ;
	uint32_t n = is_inner ? parent : add_node(g, i, parent);
	bool is_braced = g->s->items[i].kind == STR_SEQ && !is_inner;
	depth += is_braced;
	if (depth > g->ret->depth)
		g->ret->depth = depth;
	if (first != STR_NONE)
		g->stack[g->cnt++] = (struct frame){first, n, depth};
}

bool str_give(struct str_shape *s, struct str_tree *ret)
{
	struct arena *a = s->w->a;
	struct give g = {.s = s, .ret = ret, .nodes = ARENA_RAW_ARRAY(a, struct str_node, s->cnt), .last = ARENA_RAW_ARRAY(a, uint32_t, s->cnt),
			 .stack = ARENA_RAW_ARRAY(a, struct frame, (size_t)s->cnt + 1), .seen = ARENA_ARRAY(a, uint8_t, s->w->n)};
	g.values = ARENA_RAW_ARRAY(a, uint32_t, (size_t)s->w->g->case_cnt + 1);
	g.value_at = ARENA_RAW_ARRAY(a, uint32_t, s->w->n);
	if (!g.nodes || !g.last || !g.stack || !g.seen || !g.values || !g.value_at)
		return false;
	ret->root = add_node(&g, s->root, STR_NONE);
	g.stack[g.cnt++] = (struct frame){s->items[s->root].first, ret->root, 0};
	while (g.cnt) {
		struct frame *f = &g.stack[g.cnt - 1];
		uint32_t i = f->item;
		if (i == STR_NONE) {
			g.cnt--;
			continue;
		}
		f->item = s->items[i].next;
		give_item(&g, i, f->parent, f->depth);
	}
	ret->nodes = g.nodes;
	ret->node_cnt = g.node_cnt;
	ret->values = g.values;
	ret->conds = s->w->conds;
	ret->cond_cnt = s->w->cond_cnt;
	return true;
}
