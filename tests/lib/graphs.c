/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

void graph_fini(struct graph *g)
{
	free(g->blocks);
	free(g->cases);
	*g = (struct graph){0};
}

uint32_t graph_add(struct graph *g, uint32_t cost)
{
	if (g->cnt == g->cap) {
		g->cap = 2 * g->cap + 16;
		g->blocks = realloc(g->blocks, g->cap * sizeof(*g->blocks));
		if (!g->blocks)
			abort();
	}
	g->blocks[g->cnt] = (struct str_block){.end = STR_END_LEAVE, .cost = cost, .is_expr = cost < 2};
	return g->cnt++;
}

void graph_goto(struct graph *g, uint32_t b, uint32_t to)
{
	g->blocks[b].end = STR_END_GOTO;
	g->blocks[b].to[0] = to;
}

void graph_cond(struct graph *g, uint32_t b, uint32_t yes, uint32_t no)
{
	g->blocks[b].end = STR_END_COND;
	g->blocks[b].to[0] = yes;
	g->blocks[b].to[1] = no;
}

void graph_switch(struct graph *g, uint32_t b, uint32_t other)
{
	g->blocks[b].end = STR_END_SWITCH;
	g->blocks[b].to[1] = other;
	g->blocks[b].first_case = g->case_cnt;
	g->blocks[b].case_cnt = 0;
}

void graph_case(struct graph *g, uint32_t b, int64_t lo, int64_t hi, uint32_t to)
{
	if (g->case_cnt == g->case_cap) {
		g->case_cap = 2 * g->case_cap + 16;
		g->cases = realloc(g->cases, g->case_cap * sizeof(*g->cases));
		if (!g->cases)
			abort();
	}
	g->cases[g->case_cnt++] = (struct str_case){lo, hi, to};
	g->blocks[b].case_cnt++;
}

struct str_graph graph_get(const struct graph *g)
{
	return (struct str_graph){g->blocks, g->cases, g->cnt, g->case_cnt};
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint32_t graph_rand(struct graph_rand *r, uint32_t below)
{
	r->state++;
	return below ? (uint32_t)(mix(r->state) % below) : 0;
}

/* --- any graph ---------------------------------------------------------------------------------------------- */
static uint32_t any_block(struct graph_rand *r, uint32_t cnt, uint32_t from, uint32_t span)
{
	if (!span || !graph_rand(r, 12))
		return graph_rand(r, cnt);
	uint32_t lo = from > span ? from - span : 0, hi = from + span < cnt ? from + span : cnt - 1;
	/* Code goes on more often than back. */
	if (graph_rand(r, 4))
		lo = from < hi ? from + 1 : hi;
	return lo + graph_rand(r, hi - lo + 1);
}

void graph_random(struct graph *g, struct graph_rand *r, uint32_t cnt, uint32_t span)
{
	for (uint32_t b = 0; b < cnt; b++)
		graph_add(g, graph_rand(r, 3) ? graph_rand(r, 4) : 0);
	for (uint32_t b = 0; b < cnt; b++) {
		uint32_t kind = graph_rand(r, 16);
		g->blocks[b].is_step = g->blocks[b].is_expr && graph_rand(r, 2);
		if (kind < 5) {
			graph_goto(g, b, any_block(r, cnt, b, span));
		} else if (kind < 14) {
			graph_cond(g, b, any_block(r, cnt, b, span), any_block(r, cnt, b, span));
		} else if (kind == 14) {
			uint32_t cases = graph_rand(r, 6);
			graph_switch(g, b, any_block(r, cnt, b, span));
			for (uint32_t i = 0; i < cases; i++)
				graph_case(g, b, 3 * i, 3 * i + graph_rand(r, 2), any_block(r, cnt, b, span));
		}
	}
}

/* --- programs ------------------------------------------------------------------------------------------------- */
struct program {
	struct graph *g;
	struct graph_rand *r;
	uint32_t brk, again; /* blocks; STR_NONE: not in a loop */
};

/* Writes a statement that begins in block `at` and ends in the block it gives, STR_NONE when control does not come there. */
static uint32_t statement(struct program *p, uint32_t at, unsigned depth);

static uint32_t sequence(struct program *p, uint32_t at, unsigned depth)
{
	for (uint32_t i = graph_rand(p->r, 4); i > 0 && at != STR_NONE; i--)
		at = statement(p, at, depth);
	return at;
}

static uint32_t if_statement(struct program *p, uint32_t at, unsigned depth)
{
	struct graph *g = p->g;
	uint32_t yes = graph_add(g, 1), end = sequence(p, yes, depth), other = STR_NONE, no = STR_NONE;
	if (graph_rand(p->r, 2)) {
		no = graph_add(g, 1);
		other = sequence(p, no, depth);
	}
	uint32_t join = graph_add(g, 1);
	graph_cond(g, at, yes, no == STR_NONE ? join : no);
	if (end != STR_NONE)
		graph_goto(g, end, join);
	if (other != STR_NONE)
		graph_goto(g, other, join);
	return no != STR_NONE && end == STR_NONE && other == STR_NONE ? STR_NONE : join;
}

static uint32_t loop_statement(struct program *p, uint32_t at, unsigned depth)
{
	struct graph *g = p->g;
	struct program in = *p;
	bool is_do = graph_rand(p->r, 3) == 0;
	uint32_t head = graph_add(g, is_do ? 1 : 0), out = graph_add(g, 1);
	graph_goto(g, at, head);
	in.brk = out;
	if (is_do) {
		uint32_t decide = graph_add(g, 0);
		in.again = decide;
		uint32_t end = sequence(&in, head, depth);
		if (end != STR_NONE)
			graph_goto(g, end, decide);
		graph_cond(g, decide, head, out);
		return out;
	}
	uint32_t body = graph_add(g, 1);
	in.again = head;
	graph_cond(g, head, body, out);
	uint32_t end = sequence(&in, body, depth);
	if (end != STR_NONE)
		graph_goto(g, end, head);
	return out;
}

static uint32_t switch_statement(struct program *p, uint32_t at, unsigned depth)
{
	struct graph *g = p->g;
	struct program in = *p;
	uint32_t cnt = 2 + graph_rand(p->r, 4), out = graph_add(g, 1), bodies[8], ends[8];
	in.brk = out;
	for (uint32_t i = 0; i < cnt; i++) {
		bodies[i] = graph_add(g, 1);
		ends[i] = sequence(&in, bodies[i], depth);
	}
	bool has_default = graph_rand(p->r, 2);
	graph_switch(g, at, has_default ? bodies[cnt - 1] : out);
	for (uint32_t i = 0; i < cnt - has_default; i++)
		graph_case(g, at, 10 * i, 10 * i + 1, bodies[i]);
	for (uint32_t i = 0; i < cnt; i++) {
		bool falls = i + 1 < cnt && !graph_rand(p->r, 4);
		if (ends[i] != STR_NONE)
			graph_goto(g, ends[i], falls ? bodies[i + 1] : out);
	}
	return out;
}

static uint32_t statement(struct program *p, uint32_t at, unsigned depth)
{
	uint32_t kind = graph_rand(p->r, depth ? 10 : 4);
	if (kind == 0 && p->brk != STR_NONE && graph_rand(p->r, 2)) {
		graph_goto(p->g, at, p->brk);
		return STR_NONE;
	}
	if (kind == 1 && p->again != STR_NONE && graph_rand(p->r, 2)) {
		graph_goto(p->g, at, p->again);
		return STR_NONE;
	}
	if (kind == 2 && !graph_rand(p->r, 3))
		return STR_NONE; /* a return: the block leaves */
	if (kind < 4) {
		uint32_t next = graph_add(p->g, 1);
		graph_goto(p->g, at, next);
		return next;
	}
	if (kind < 7)
		return if_statement(p, at, depth - 1);
	if (kind < 9)
		return loop_statement(p, at, depth - 1);
	return switch_statement(p, at, depth - 1);
}

/* What follows a return leads nowhere. */
static void cut_unreached(struct graph *g)
{
	bool *seen = calloc(g->cnt, sizeof(*seen));
	uint32_t *work = calloc(g->cnt, sizeof(*work)), cnt = 0;
	if (!seen || !work)
		abort();
	work[cnt++] = 0;
	seen[0] = true;
	while (cnt > 0) {
		const struct str_block *k = &g->blocks[work[--cnt]];
		uint32_t fixed = k->end == STR_END_LEAVE ? 0 : 2, all = fixed + (k->end == STR_END_SWITCH ? k->case_cnt : 0);
		for (uint32_t i = 0; i < all; i++) {
			uint32_t way = k->end == STR_END_GOTO ? 0 : k->end == STR_END_SWITCH ? 1 : i;
			uint32_t to = i >= 2 ? g->cases[k->first_case + i - 2].to : k->to[way];
			if (!seen[to]) {
				seen[to] = true;
				work[cnt++] = to;
			}
		}
	}
	for (uint32_t b = 0; b < g->cnt; b++)
		g->blocks[b].end = seen[b] ? g->blocks[b].end : STR_END_LEAVE;
	free(seen);
	free(work);
}

void graph_program(struct graph *g, struct graph_rand *r, unsigned depth)
{
	struct program p = {g, r, STR_NONE, STR_NONE};
	uint32_t at = graph_add(g, 1);
	for (unsigned i = 0; i < 5 && at != STR_NONE; i++)
		at = statement(&p, at, depth);
	cut_unreached(g);
}

/* --- walking -------------------------------------------------------------------------------------------------- */
/* What the oracle says to the end of block b after so many blocks. */
static uint64_t oracle(uint64_t seed, uint32_t cnt, uint32_t b)
{
	return mix(seed ^ mix((uint64_t)cnt << 32 | b));
}

static bool is_idle(const struct str_block *b)
{
	return b->end == STR_END_GOTO && !b->cost;
}

static uint32_t choose(const struct str_graph *g, uint32_t b, uint64_t word)
{
	const struct str_block *k = &g->blocks[b];
	uint32_t i = (uint32_t)(word % (k->case_cnt + 1));
	return i < k->case_cnt ? g->cases[k->first_case + i].to : k->to[1];
}

static void visit(const struct str_graph *g, struct graph_trace *t, uint32_t b)
{
	if (!is_idle(&g->blocks[b]) && t->cnt < t->max)
		t->blocks[t->cnt++] = b;
}

void graph_walk(const struct str_graph *g, uint64_t seed, struct graph_trace *t)
{
	t->cnt = 0;
	t->has_left = false;
	/* Blocks that only lead on may do so in a ring. */
	for (uint32_t b = 0, idle = 0; t->cnt < t->max && idle <= g->block_cnt;) {
		const struct str_block *k = &g->blocks[b];
		idle = is_idle(k) ? idle + 1 : 0;
		visit(g, t, b);
		uint64_t word = oracle(seed, t->cnt, b);
		switch (k->end) {
		case STR_END_GOTO:
			b = k->to[0];
			break;
		case STR_END_COND:
			b = k->to[!(word & 1)];
			break;
		case STR_END_SWITCH:
			b = choose(g, b, word);
			break;
		default:
			t->has_left = true;
			return;
		}
	}
}

/* --- executing a tree --------------------------------------------------------------------------------------------- */
struct run {
	const struct str_graph *g;
	const struct str_tree *tree;
	const uint32_t *parents;
	uint64_t seed;
	struct graph_trace *t;
	bool is_wrong;
};

static bool decide(struct run *r, uint32_t cond)
{
	const struct str_cond *c = &r->tree->conds[cond];
	if (c->op == STR_COND_AND)
		return decide(r, c->a) && decide(r, c->b);
	if (c->op == STR_COND_OR)
		return decide(r, c->a) || decide(r, c->b);
	if (!c->is_bare)
		visit(r->g, r->t, c->a);
	return (oracle(r->seed, r->t->cnt, c->a) & 1) != c->is_not;
}

static uint32_t child(const struct run *r, uint32_t n, unsigned i)
{
	n = r->tree->nodes[n].first;
	while (i-- > 0 && n != STR_NONE)
		n = r->tree->nodes[n].next;
	return n;
}

static bool is_loop(uint8_t kind)
{
	return kind == STR_LOOP || kind == STR_WHILE || kind == STR_DO;
}

/* The loop (or switch, if wanted) around n. */
static uint32_t around(const struct run *r, uint32_t n, bool or_switch)
{
	do
		n = r->parents[n];
	while (n != STR_NONE && !is_loop(r->tree->nodes[n].kind) && !(or_switch && r->tree->nodes[n].kind == STR_SWITCH));
	return n;
}

/* Where a node is entered or the one behind it is looked for, in one step each. */
struct at {
	uint32_t n;
	bool is_out; /* it is done */
};

static struct at done(uint32_t n)
{
	return (struct at){n, true};
}

static struct at into(uint32_t n)
{
	return (struct at){n, false};
}

/* The end of what loop n repeats. */
static struct at next_round(struct run *r, uint32_t n)
{
	const struct str_node *k = &r->tree->nodes[n];
	if (k->kind == STR_WHILE && k->block != STR_NONE)
		visit(r->g, r->t, k->block);
	if (k->kind == STR_DO)
		return decide(r, k->cond) ? into(k->first) : done(n);
	return into(n);
}

static struct at enter(struct run *r, uint32_t n)
{
	const struct str_node *k = &r->tree->nodes[n];
	uint32_t to = STR_NONE;
	switch (k->kind) {
	case STR_BLOCK:
		visit(r->g, r->t, k->block);
		return done(n);
	case STR_SEQ:
	case STR_LOOP:
	case STR_DO:
		return k->first == STR_NONE ? done(n) : into(k->first);
	case STR_LEAVE:
		r->t->has_left = true;
		return into(STR_NONE);
	case STR_IF:
		to = child(r, n, decide(r, k->cond) ? 0 : 1);
		return to == STR_NONE ? done(n) : into(to);
	case STR_WHILE:
		return decide(r, k->cond) ? into(k->first) : done(n);
	case STR_SWITCH: {
		uint32_t b = choose(r->g, k->block, oracle(r->seed, r->t->cnt, k->block)), other = STR_NONE;
		/* The tree is past what only leads on, or somewhere in a ring of that. */
		for (uint32_t i = 0; i <= r->g->block_cnt; i++, b = r->g->blocks[b].to[0]) {
			for (uint32_t c = k->first; c != STR_NONE; c = r->tree->nodes[c].next) {
				if (r->tree->nodes[c].block == b)
					return into(c);
				other = r->tree->nodes[c].is_default ? c : other;
			}
			if (!is_idle(&r->g->blocks[b]))
				break;
		}
		return other == STR_NONE ? done(n) : into(other);
	}
	case STR_CASE:
		return into(k->first);
	case STR_BREAK:
		to = around(r, n, true);
		break;
	case STR_CONTINUE:
		to = around(r, n, false);
		if (to != STR_NONE)
			return next_round(r, to);
		break;
	case STR_GOTO:
		for (uint32_t i = 0; i < r->tree->node_cnt; i++) {
			if (r->tree->nodes[i].kind == STR_LABEL && r->tree->nodes[i].block == k->block)
				return done(i);
		}
		break;
	default:
		return done(n);
	}
	r->is_wrong |= to == STR_NONE;
	return to == STR_NONE ? into(STR_NONE) : done(to);
}

static struct at leave(struct run *r, uint32_t n)
{
	uint32_t up = r->parents[n];
	if (up == STR_NONE) {
		r->is_wrong = true;
		return into(STR_NONE);
	}
	const struct str_node *p = &r->tree->nodes[up];
	if (is_loop(p->kind))
		return next_round(r, up);
	if (p->kind == STR_IF || r->tree->nodes[n].next == STR_NONE)
		return done(up);
	return into(r->tree->nodes[n].next);
}

bool graph_run(const struct str_graph *g, const struct str_tree *tree, uint64_t seed, uint32_t *parents, struct graph_trace *t)
{
	struct run r = {g, tree, parents, seed, t, false};
	t->cnt = 0;
	t->has_left = false;
	parents[tree->root] = STR_NONE;
	for (uint32_t n = 0; n < tree->node_cnt; n++) {
		for (uint32_t i = tree->nodes[n].first; i != STR_NONE; i = tree->nodes[i].next)
			parents[i] = n;
	}
	uint32_t idle = 0, seen = 0;
	for (struct at at = into(tree->root); at.n != STR_NONE && t->cnt < t->max && idle < 8 * tree->node_cnt + 8;) {
		at = at.is_out ? leave(&r, at.n) : enter(&r, at.n);
		idle = t->cnt == seen ? idle + 1 : 0;
		seen = t->cnt;
	}
	return !r.is_wrong;
}
