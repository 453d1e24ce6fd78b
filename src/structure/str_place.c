/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/str_int.h"

#include <stdlib.h>
#include <string.h>

/* So many cases are followed that fall into one another. */
#define CHAIN_MAX 256

/*
 * Where each block stands (after Ramsey, Beyond Relooper, 2022): a block that one edge leads to stands at that edge, one that
 * several lead to behind the block that dominates it, or behind the loop that is left towards it. Every edge is a jump at first.
 */
enum at {
	AT_EDGE,  /* where the only edge to it is */
	AT_OWNER, /* behind its dominator */
	AT_LOOP,  /* behind the loop of header `behind` */
	AT_CASE,  /* in a case of the switch that dominates it */
};

/* Lists of blocks in reverse postorder. */
struct list {
	uint32_t *first, *last, *next;
};

struct place {
	struct str_shape *s;
	struct str_work *w;
	uint8_t *at;
	struct list own;   /* by block: AT_OWNER */
	struct list after; /* by header: AT_LOOP */
	struct list cases; /* by block in whose case it stands: AT_CASE that no case is for */
	uint32_t *case_next;   /* by block, while its switch is written: the case behind it, that it falls into */
	bool *is_fallen_into;
};

static bool list_init(struct place *p, struct list *l)
{
	size_t n = p->w->n;
	l->first = ARENA_RAW_ARRAY(p->w->a, uint32_t, n);
	l->last = ARENA_RAW_ARRAY(p->w->a, uint32_t, n);
	l->next = ARENA_RAW_ARRAY(p->w->a, uint32_t, n);
	if (!l->first || !l->last || !l->next)
		return false;
	memset(l->first, 0xff, n * sizeof(*l->first));
	return true;
}

static void list_add(struct list *l, uint32_t to, uint32_t b)
{
	l->next[b] = STR_NONE;
	if (l->first[to] == STR_NONE)
		l->first[to] = b;
	else
		l->next[l->last[to]] = b;
	l->last[to] = b;
}

/* The outermost loop that the dominator of b is in and b is not, or STR_NONE. */
static uint32_t loop_left(const struct str_work *w, uint32_t b)
{
	uint32_t out = STR_NONE, around = w->is_header[b] ? w->loop_up[b] : w->loop[b];
	for (uint32_t l = w->loop[w->idom[b]]; l != around && l != STR_NONE; l = w->loop_up[l])
		out = l;
	return out;
}

/* --- loops: what comes behind ---------------------------------------------------------------------------------- */
/* How much a way out of a loop is the way out. */
static uint64_t exit_score(const struct str_work *w, uint32_t h, uint32_t b)
{
	uint32_t from = w->idom[b];
	bool is_latch = false;
	for (uint32_t i = 0, cnt = str_succ_cnt(w, from); i < cnt && w->in_cnt[b] == 1; i++)
		is_latch |= str_succ(w, from, i) == h;
	uint64_t score = w->weight[b] < 1u << 20 ? w->weight[b] : 1u << 20;
	/* The condition at its head, or at its end, says when a loop ends. */
	if (w->in_cnt[b] == 1 && (from == h || is_latch))
		score = 4 * score + 16;
	return score;
}

/* Of blocks that one edge leads to, out of loop h, those that stand at their edge. */
static void place_exits(struct place *p, uint32_t h, const uint32_t *exits, uint32_t cnt)
{
	const struct str_work *w = p->w;
	uint32_t best = STR_NONE, merges = 0;
	uint64_t best_score = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t score = exit_score(w, h, exits[i]);
		merges += w->in_cnt[exits[i]] > 1;
		if (w->in_cnt[exits[i]] == 1 && (best == STR_NONE || score > best_score)) {
			best = exits[i];
			best_score = score;
		}
	}
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t b = exits[i];
		/* Where ways out join, what leads there stays in the loop, unless it is much. */
		bool is_behind = w->in_cnt[b] > 1 || (b == best && (!merges || best_score >= 64));
		p->at[b] = is_behind ? AT_LOOP : AT_EDGE;
		if (is_behind)
			list_add(&p->after, h, b);
	}
}

/* --- switches ---------------------------------------------------------------------------------------------------- */
static bool is_case_of(const struct str_work *w, uint32_t x, uint32_t b)
{
	uint32_t lo = w->tgt_first[x], hi = w->tgt_first[x + 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (w->tgts[mid] < b)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < w->tgt_first[x + 1] && w->tgts[lo] == b;
}

/* The block among those that x dominates at once that block b is below. */
static uint32_t child_over(const struct str_work *w, uint32_t x, uint32_t b)
{
	for (unsigned i = 0; i < 64 && b != STR_NONE; i++, b = w->idom[b]) {
		if (w->idom[b] == x)
			return b;
	}
	return STR_NONE;
}

/* What several cases of the switch that ends x lead to: one of them comes behind it, the rest into cases. */
static void place_cases(struct place *p, uint32_t x)
{
	const struct str_work *w = p->w;
	uint32_t follow = STR_NONE, list = p->own.first[x];
	for (uint32_t b = list; b != STR_NONE; b = p->own.next[b]) {
		if (follow == STR_NONE || w->in_cnt[b] >= w->in_cnt[follow])
			follow = b;
	}
	p->own.first[x] = STR_NONE;
	for (uint32_t b = list, next; b != STR_NONE; b = next) {
		uint32_t over = STR_NONE;
		next = p->own.next[b];
		bool is_case = b != follow && is_case_of(w, x, b);
		for (uint32_t k = w->pred_first[b]; k < w->pred_first[b + 1] && b != follow && !is_case; k++) {
			uint32_t c = child_over(w, x, w->preds[k]);
			if (c != STR_NONE && c != b && c != follow && (over == STR_NONE || c > over) && is_case_of(w, x, c))
				over = c;
		}
		if (!is_case && over == STR_NONE) {
			list_add(&p->own, x, b);
			continue;
		}
		p->at[b] = AT_CASE;
		if (!is_case)
			list_add(&p->cases, over, b);
	}
}

static bool decide(struct place *p)
{
	struct str_work *w = p->w;
	uint32_t *exits = ARENA_RAW_ARRAY(w->a, uint32_t, (size_t)w->rpo_cnt + 1);
	struct list out;
	p->at = ARENA_ARRAY(w->a, uint8_t, w->n);
	p->case_next = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	p->is_fallen_into = ARENA_RAW_ARRAY(w->a, bool, w->n);
	if (!p->case_next || !p->is_fallen_into)
		return false;
	if (!exits || !p->at || !list_init(p, &p->own) || !list_init(p, &p->after) || !list_init(p, &p->cases) || !list_init(p, &out))
		return false;
	for (uint32_t i = 1; i < w->rpo_cnt; i++) {
		uint32_t b = w->rpo[i], left = loop_left(w, b);
		if (left != STR_NONE) {
			list_add(&out, left, b);
		} else {
			p->at[b] = w->in_cnt[b] == 1 ? AT_EDGE : AT_OWNER;
			if (w->in_cnt[b] != 1)
				list_add(&p->own, w->idom[b], b);
		}
	}
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		uint32_t h = w->rpo[i], cnt = 0;
		for (uint32_t b = out.first[h]; b != STR_NONE; b = out.next[b])
			exits[cnt++] = b;
		place_exits(p, h, exits, cnt);
		if (w->end[h] == STR_END_SWITCH && h != str_top(w))
			place_cases(p, h);
	}
	return true;
}

/* --- writing it down ------------------------------------------------------------------------------------------------ */
uint32_t str_item_new(struct str_shape *s, uint8_t kind, uint32_t block)
{
	if (s->cnt == s->cap) {
		uint32_t cap = 2 * s->cap;
		struct str_item *items = ARENA_RAW_ARRAY(s->w->a, struct str_item, cap);
		if (!items) {
			s->failed = true;
			/* There always is one. */
			s->items[s->cnt - 1].kind = kind;
			return s->cnt - 1;
		}
		memcpy(items, s->items, s->cnt * sizeof(*items));
		s->items = items;
		s->cap = cap;
	}
	s->items[s->cnt] = (struct str_item){.kind = kind, .falls = true, .block = block,
					     .step = STR_NONE, .cond = STR_NONE, .first = STR_NONE, .last = STR_NONE,
					     .next = STR_NONE};
	return s->cnt++;
}

void str_append(struct str_shape *s, uint32_t seq, uint32_t item)
{
	if (s->failed)
		return;
	if (s->items[seq].first == STR_NONE)
		s->items[seq].first = item;
	else
		s->items[s->items[seq].last].next = item;
	s->items[seq].last = item;
}

static uint32_t put(struct str_shape *s, uint32_t parent, uint8_t kind, uint32_t block)
{
	uint32_t i = str_item_new(s, kind, block);
	str_append(s, parent, i);
	return i;
}

struct task {
	uint32_t block, seq;
	bool is_body; /* of its loop, whose head stands already */
};

/* What is still to be written, the next on top. Every block is there once, as itself and, when it begins a loop, as a body. */
struct tasks {
	struct task *list;
	uint32_t cnt;
};

static void push(struct tasks *t, uint32_t block, uint32_t seq)
{
	t->list[t->cnt++] = (struct task){block, seq, false};
}

/* The first of the list on top. */
static void push_list(struct tasks *t, const struct list *l, uint32_t of, uint32_t seq)
{
	uint32_t from = t->cnt;
	for (uint32_t b = l->first[of]; b != STR_NONE; b = l->next[b])
		push(t, b, seq);
	for (uint32_t to = t->cnt; from + 1 < to; from++) {
		struct task swap = t->list[--to];
		t->list[to] = t->list[from];
		t->list[from] = swap;
	}
}

static void put_edge(struct place *p, struct tasks *t, uint32_t from, uint32_t to, uint32_t seq)
{
	if (p->at[to] == AT_EDGE && p->w->idom[to] == from) {
		p->s->is_direct[to] = true;
		push(t, to, seq);
	} else {
		put(p->s, seq, STR_GOTO, to);
	}
}

/* Whether a case of the switch that ends block x is where block b stands. */
static bool is_here(const struct place *p, uint32_t x, uint32_t b)
{
	return p->w->idom[b] == x && (p->at[b] == AT_CASE || p->at[b] == AT_EDGE);
}

static void put_case(struct place *p, struct tasks *t, uint32_t x, uint32_t in, uint32_t to)
{
	struct str_shape *s = p->s;
	uint32_t c = put(s, in, STR_CASE, to), body = put(s, c, STR_SEQ, STR_NONE);
	s->items[c].is_default = to == p->w->to[2 * x + 1];
	if (p->w->idom[to] == x)
		push_list(t, &p->cases, to, body);
	if (is_here(p, x, to)) {
		s->is_direct[to] = true;
		push(t, to, body);
	} else {
		put(s, body, STR_GOTO, to);
	}
}

/* The case that falls into case `to` of the switch that ends x: one whose code leads there. STR_NONE: none. */
static uint32_t case_before(const struct place *p, uint32_t x, uint32_t to)
{
	const struct str_work *w = p->w;
	uint32_t best = STR_NONE;
	for (uint32_t k = w->pred_first[to]; k < w->pred_first[to + 1]; k++) {
		uint32_t c = w->preds[k] == x ? STR_NONE : child_over(w, x, w->preds[k]);
		if (c != STR_NONE && c != to && is_here(p, x, c) && is_case_of(w, x, c) && (best == STR_NONE || c > best))
			best = c;
	}
	return best;
}

/* Whether following cases by falling through from one of them leads to another; or nobody knows. */
static bool falls_to(const struct place *p, uint32_t from, uint32_t to)
{
	for (unsigned i = 0; i < CHAIN_MAX && from != STR_NONE; i++, from = p->case_next[from]) {
		if (from == to)
			return true;
	}
	return from != STR_NONE;
}

/* In the order of blocks, but what falls into another case stands before that. */
static void put_switch(struct place *p, struct tasks *t, uint32_t b, uint32_t seq)
{
	struct str_work *w = p->w;
	uint32_t i = put(p->s, seq, STR_SWITCH, b), rest = w->to[2 * b + 1], first = w->tgt_first[b], end = w->tgt_first[b + 1];
	for (uint32_t k = first; k < end; k++) {
		p->case_next[w->tgts[k]] = STR_NONE;
		p->is_fallen_into[w->tgts[k]] = false;
	}
	for (uint32_t k = first; k < end; k++) {
		uint32_t to = w->tgts[k], before = is_here(p, b, to) ? case_before(p, b, to) : STR_NONE;
		if (before == STR_NONE || p->case_next[before] != STR_NONE || falls_to(p, to, before))
			continue;
		p->case_next[before] = to;
		p->is_fallen_into[to] = true;
	}
	/* What only leads on, and is for no value in particular, comes last. */
	bool is_last = !is_here(p, b, rest);
	for (uint32_t k = first; k < end; k++) {
		for (uint32_t to = w->tgts[k]; to != STR_NONE && !p->is_fallen_into[w->tgts[k]]; to = p->case_next[to]) {
			if (to != rest || !is_last)
				put_case(p, t, b, i, to);
		}
	}
	if (is_last)
		put_case(p, t, b, i, rest);
}

static void put_end(struct place *p, struct tasks *t, uint32_t b, uint32_t seq)
{
	struct str_work *w = p->w;
	struct str_shape *s = p->s;
	const uint32_t *to = &w->to[2 * b];
	switch (w->end[b]) {
	case STR_END_GOTO:
		put_edge(p, t, b, to[0], seq);
		break;
	case STR_END_COND: {
		uint32_t i = put(s, seq, STR_IF, b);
		s->items[i].cond = w->cond[b];
		for (unsigned k = 0; k < 2; k++)
			put_edge(p, t, b, to[k], put(s, i, STR_SEQ, STR_NONE));
		break;
	}
	case STR_END_SWITCH:
		put_switch(p, t, b, seq);
		break;
	default:
		put(s, seq, STR_LEAVE, b);
	}
}

static void put_block(struct place *p, struct tasks *t, struct task task)
{
	struct str_work *w = p->w;
	uint32_t b = task.block;
	if (!task.is_body) {
		put(p->s, task.seq, STR_LABEL, b);
		if (w->is_header[b]) {
			uint32_t loop = put(p->s, task.seq, STR_LOOP, b), body = put(p->s, loop, STR_SEQ, STR_NONE);
			push_list(t, &p->after, b, task.seq);
			t->list[t->cnt++] = (struct task){b, body, true};
			return;
		}
	}
	/* A block that only decides is in its condition. */
	if (w->end[b] != STR_END_COND || w->g->blocks[b].cost)
		put(p->s, task.seq, STR_BLOCK, b);
	push_list(t, &p->own, b, task.seq);
	put_end(p, t, b, task.seq);
}

bool str_place(struct str_shape *s)
{
	struct place p = {.s = s, .w = s->w};
	struct tasks t = {.list = ARENA_RAW_ARRAY(s->w->a, struct task, 2 * (size_t)s->w->n + 2)};
	s->refs = ARENA_ARRAY(s->w->a, uint32_t, s->w->n);
	s->is_direct = ARENA_ARRAY(s->w->a, bool, s->w->n);
	if (!t.list || !s->refs || !s->is_direct || !decide(&p))
		return false;
	s->cap = 4 * s->w->n + 64;
	s->items = ARENA_RAW_ARRAY(s->w->a, struct str_item, s->cap);
	if (!s->items)
		return false;
	s->root = str_item_new(s, STR_SEQ, STR_NONE);
	/* Behind what is reached stands what is not. */
	uint32_t top = str_top(s->w);
	for (uint32_t k = s->w->tgt_first[top + 1]; k-- > s->w->tgt_first[top] + 1;) {
		if (p.at[s->w->tgts[k]] == AT_EDGE)
			push(&t, s->w->tgts[k], s->root);
	}
	push_list(&t, &p.own, top, s->root);
	put_edge(&p, &t, top, 0, s->root);
	while (t.cnt && !s->failed)
		put_block(&p, &t, t.list[--t.cnt]);
	return !s->failed;
}
