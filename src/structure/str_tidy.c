/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/str_int.h"

#include <string.h>

/*
 * From a tree in which every edge is a jump to one as people write it. A jump keeps the block it leads to whatever it is written
 * as, and what ends a sequence is always a jump or does not come back, so that parts can be moved and their jumps thought over again.
 */

#define DEPTH_MAX 24
/* Jumps that may become the block they lead to, and what those copies may cost together. */
#define SINK_CNT_MAX 6
#define SINK_COST_MAX 48
/* ... and by how much more than is asked for what is behind a goto may cost. */
#define SINK_COPY_FACTOR 3
/* Blocks a copy may go through. */
#define COPY_BLOCKS_MAX 6

/* What stands around a sequence. STR_NONE: nothing, or nobody knows. */
struct around {
	uint32_t follow;            /* the block that comes when its end is reached */
	uint32_t brk, brk_item;     /* ... after a break, and what that leaves */
	uint32_t again, again_item; /* ... a continue */
	uint32_t depth;
};

struct frame {
	uint32_t seq;
	struct around at;
};

struct walk {
	struct str_shape *s;
	struct frame *stack;
	uint32_t cnt;
	bool copies, cuts;
};

/* The block control comes to at item i and those behind it. */
static uint32_t entry(const struct str_shape *s, uint32_t i, uint32_t follow)
{
	if (i == STR_NONE)
		return follow;
	const struct str_item *it = &s->items[i];
	if (it->kind == STR_LABEL || it->kind == STR_BLOCK || str_is_jump(it))
		return it->block;
	if (it->kind != STR_IF && it->kind != STR_WHILE)
		return STR_NONE;
	const struct str_cond *first = &s->w->conds[str_cond_first(s->w->conds, it->cond)];
	return first->is_bare ? STR_NONE : first->a;
}

static void enter(struct walk *w, uint32_t seq, struct around at)
{
	at.depth++;
	w->stack[w->cnt++] = (struct frame){seq, at};
}

/* --- copies of what soon leaves ---------------------------------------------------------------------------------------- */
/* The blocks from b to where control leaves, or to a block that is next here anyway (*ret_next, else STR_NONE); 0: too much. */
static uint32_t find_tail(const struct str_shape *s, uint32_t b, uint32_t follow, const struct around *at, uint32_t *blocks, uint32_t *ret_next)
{
	const struct str_work *w = s->w;
	uint32_t cnt = 0, cost = 0, max = (w->sinks ? SINK_COPY_FACTOR : 1) * w->o->copy_cost_max;
	*ret_next = STR_NONE;
	while (cnt < COPY_BLOCKS_MAX) {
		cost += w->cost[b];
		if ((w->end[b] != STR_END_LEAVE && w->end[b] != STR_END_GOTO) || cost > max || cost > s->copy_budget)
			return 0;
		blocks[cnt++] = b;
		if (w->end[b] == STR_END_LEAVE)
			return cnt;
		b = w->to[2 * b];
		if (b == follow || b == at->brk || b == at->again) {
			*ret_next = b;
			return cnt;
		}
	}
	return 0;
}

/* In the place of jump i the code it leads to; gives the jump that ends that, or i. */
static uint32_t copy_tail(struct str_shape *s, uint32_t seq, uint32_t i, uint32_t follow, const struct around *at)
{
	uint32_t blocks[COPY_BLOCKS_MAX], next, cnt = find_tail(s, s->items[i].block, follow, at, blocks, &next);
	if (!cnt)
		return i;
	uint32_t behind = s->items[i].next, last = i;
	/* What falls in here may have to jump here some day, when this is the only place. */
	s->items[i].kind = STR_LABEL;
	s->items[i].falls = true;
	for (uint32_t k = 0; k <= cnt && !s->failed; k++) {
		s->copy_budget -= k < cnt ? s->w->cost[blocks[k]] : 0;
		uint32_t item = k < cnt ? str_item_new(s, STR_BLOCK, blocks[k]) :
				next == STR_NONE ? str_item_new(s, STR_LEAVE, blocks[cnt - 1]) : str_item_new(s, STR_GOTO, next);
		s->items[last].next = item;
		last = item;
	}
	s->items[last].next = behind;
	if (behind == STR_NONE)
		s->items[seq].last = last;
	return last;
}

/* --- jumps -------------------------------------------------------------------------------------------------------------- */
static bool set_jump(struct str_shape *s, uint32_t i, uint32_t follow, const struct around *at)
{
	struct str_item *it = &s->items[i];
	uint32_t to = it->block;
	if (to == follow) {
		it->kind = STR_NEXT;
	} else if (to == at->brk) {
		it->kind = STR_BREAK;
		s->items[at->brk_item].jump_cnt++;
	} else if (to == at->again) {
		it->kind = STR_CONTINUE;
		s->items[at->again_item].again_cnt++;
	} else {
		it->kind = STR_GOTO;
		return false;
	}
	return true;
}

static void jump(struct walk *w, uint32_t seq, uint32_t i, const struct around *at)
{
	struct str_shape *s = w->s;
	uint32_t follow = entry(s, s->items[i].next, at->follow);
	if (set_jump(s, i, follow, at))
		return;
	if (w->copies)
		i = copy_tail(s, seq, i, follow, at);
	if (str_is_jump(&s->items[i]) && !set_jump(s, i, follow, at))
		s->refs[s->items[i].block]++;
}

/* An arm that is too deep goes to the end of the function; a jump to it stays. */
static uint32_t cut(struct walk *w, uint32_t seq, const struct around *at)
{
	struct str_shape *s = w->s;
	uint32_t first = s->items[seq].first;
	uint32_t max = s->w->o->depth_max ? s->w->o->depth_max : DEPTH_MAX;
	if (!w->cuts || at->depth + 1 < max || first == STR_NONE || s->items[first].kind != STR_LABEL)
		return seq;
	uint32_t moved = str_item_new(s, STR_SEQ, STR_NONE), go = str_item_new(s, STR_GOTO, s->items[first].block);
	if (s->failed)
		return seq;
	s->items[moved].first = first;
	s->items[moved].last = s->items[seq].last;
	s->items[seq].first = s->items[seq].last = go;
	str_append(s, s->root, moved);
	const struct around top = {STR_NONE, STR_NONE, STR_NONE, STR_NONE, STR_NONE, 0};
	w->stack[w->cnt++] = (struct frame){moved, top};
	return seq;
}

static void enter_switch(struct walk *w, uint32_t i, uint32_t follow, const struct around *at)
{
	struct str_shape *s = w->s;
	struct around in = *at;
	s->items[i].jump_cnt = 0;
	in.brk = follow;
	in.brk_item = i;
	in.depth++;
	for (uint32_t c = s->items[i].first; c != STR_NONE; c = s->items[c].next) {
		uint32_t next = s->items[c].next;
		in.follow = next == STR_NONE ? follow : entry(s, s->items[s->items[next].first].first, STR_NONE);
		enter(w, cut(w, s->items[c].first, &in), in);
	}
}

static void enter_loop(struct walk *w, uint32_t i, uint32_t follow, const struct around *at)
{
	struct str_item *it = &w->s->items[i];
	it->jump_cnt = it->again_cnt = 0;
	uint32_t again = it->kind == STR_WHILE && it->step != STR_NONE ? it->step : it->block;
	struct around in = {.follow = again, .brk = follow, .brk_item = i, .again = again, .again_item = i, .depth = at->depth};
	enter(w, it->first, in);
}

static void look(struct walk *w, uint32_t seq, const struct around *at)
{
	struct str_shape *s = w->s;
	s->seqs[s->seq_cnt++] = seq;
	if (at->depth > s->depth)
		s->depth = at->depth;
	for (uint32_t i = s->items[seq].first, next; i != STR_NONE && !s->failed; i = next) {
		next = s->items[i].next;
		struct around in = *at;
		switch (s->items[i].kind) {
		case STR_NEXT:
		case STR_BREAK:
		case STR_CONTINUE:
		case STR_GOTO:
			jump(w, seq, i, at);
			break;
		case STR_IF:
			in.follow = entry(s, next, at->follow);
			for (uint32_t k = s->items[i].first; k != STR_NONE; k = s->items[k].next)
				enter(w, cut(w, k, &in), in);
			break;
		case STR_LOOP:
		case STR_WHILE:
		case STR_DO:
			enter_loop(w, i, entry(s, next, at->follow), at);
			break;
		case STR_SWITCH:
			enter_switch(w, i, entry(s, next, at->follow), at);
			break;
		case STR_SEQ: {
			const struct around top = {STR_NONE, STR_NONE, STR_NONE, STR_NONE, STR_NONE, 0};
			w->stack[w->cnt++] = (struct frame){i, top};
			break;
		}
		default:
			break;
		}
	}
}

/* Every jump as what it is where it stands. */
static bool resolve(struct str_shape *s, bool copies, bool cuts)
{
	struct walk w = {.s = s, .copies = copies, .cuts = cuts, .stack = ARENA_RAW_ARRAY(s->w->a, struct frame, 2 * (size_t)s->cnt + 1)};
	s->seqs = ARENA_RAW_ARRAY(s->w->a, uint32_t, 2 * (size_t)s->cnt + 1);
	if (!w.stack || !s->seqs)
		return false;
	memset(s->refs, 0, sizeof(*s->refs) * s->w->n);
	/* What nobody reaches keeps its label. */
	const struct str_work *sw = s->w;
	for (uint32_t k = sw->tgt_first[str_top(sw)] + 1; k < sw->tgt_first[sw->n]; k++)
		s->refs[sw->tgts[k]] = 1;
	s->seq_cnt = s->depth = 0;
	w.stack[w.cnt++] = (struct frame){s->root, {STR_NONE, STR_NONE, STR_NONE, STR_NONE, STR_NONE, 0}};
	while (w.cnt && !s->failed) {
		struct frame f = w.stack[--w.cnt];
		look(&w, f.seq, &f.at);
	}
	return !s->failed;
}

/* --- sequences, from the inside out ---------------------------------------------------------------------------------------- */
/* Whether a sequence does nothing here. */
static bool is_empty(const struct str_shape *s, uint32_t seq)
{
	uint32_t first = s->items[seq].first;
	return first == STR_NONE || (s->items[first].kind == STR_NEXT && s->items[first].next == STR_NONE);
}

/* A jump, or what ends a function, and nothing more than its statements. */
static bool is_short(const struct str_shape *s, uint32_t seq)
{
	for (uint32_t i = s->items[seq].first, cnt = 0; i != STR_NONE; i = s->items[i].next) {
		uint8_t kind = s->items[i].kind;
		cnt += kind != STR_LABEL;
		if (cnt > 2 || kind == STR_IF || kind == STR_LOOP || kind == STR_WHILE || kind == STR_DO || kind == STR_SWITCH)
			return false;
	}
	return true;
}

static bool seq_falls(const struct str_shape *s, uint32_t seq)
{
	uint32_t last = s->items[seq].last;
	return s->items[seq].first == STR_NONE || s->items[last].falls;
}

static bool find_falls(const struct str_shape *s, uint32_t i)
{
	const struct str_item *it = &s->items[i];
	switch (it->kind) {
	case STR_BREAK:
	case STR_CONTINUE:
	case STR_GOTO:
	case STR_LEAVE:
		return false;
	case STR_IF: {
		uint32_t other = s->items[it->first].next;
		return seq_falls(s, it->first) || other == STR_NONE || seq_falls(s, other);
	}
	case STR_LOOP:
		return it->jump_cnt != 0;
	case STR_SWITCH:
		return it->jump_cnt || seq_falls(s, s->items[it->last].first);
	case STR_SEQ:
		return seq_falls(s, i);
	default:
		return true;
	}
}

/* The content of sequence `from` behind item i of `seq`. */
static void splice(struct str_shape *s, uint32_t seq, uint32_t i, uint32_t from)
{
	struct str_item *f = &s->items[from];
	if (f->first == STR_NONE)
		return;
	s->items[f->last].next = s->items[i].next;
	if (s->items[i].next == STR_NONE)
		s->items[seq].last = f->last;
	s->items[i].next = f->first;
	f->first = f->last = STR_NONE;
}

/* What does not fall through comes first and the rest behind it. Gives the last item that is dealt with. */
static uint32_t tidy_if(struct str_shape *s, uint32_t seq, uint32_t i)
{
	struct str_item *it = &s->items[i];
	uint32_t then = it->first, other = s->items[then].next;
	if (other == STR_NONE)
		return i;
	bool then_falls = seq_falls(s, then), other_falls = seq_falls(s, other);
	bool is_turned = is_empty(s, then) && !is_empty(s, other);
	if (!is_turned && !is_empty(s, other))
		is_turned = then_falls ? !other_falls : !other_falls && is_short(s, other) && !is_short(s, then);
	if (is_turned) {
		uint32_t swap = then;
		str_cond_turn(s->w, it->cond);
		then = other;
		other = swap;
		then_falls = other_falls;
		it->first = then;
		it->last = s->items[then].next = other;
		s->items[other].next = STR_NONE;
	}
	if (then_falls && !is_empty(s, other))
		return i;
	uint32_t last = s->items[other].last;
	s->items[then].next = STR_NONE;
	it->last = then;
	splice(s, seq, i, other);
	return last == STR_NONE ? i : last;
}

/* --- loops ------------------------------------------------------------------------------------------------------------------- */
static uint32_t skip_labels(const struct str_shape *s, uint32_t i)
{
	while (i != STR_NONE && s->items[i].kind == STR_LABEL && !s->refs[s->items[i].block])
		i = s->items[i].next;
	return i;
}

static bool is_in_loop(const struct str_work *w, uint32_t b, uint32_t header)
{
	uint32_t l = w->loop[b];
	while (l != header && l != STR_NONE)
		l = w->loop_up[l];
	return l != STR_NONE;
}

/* Whether item i, an if, is the way out of the loop: what is in it can stand behind the loop then. */
static bool is_exit(const struct str_shape *s, uint32_t loop, uint32_t i)
{
	const struct str_item *l = &s->items[loop];
	uint32_t then = s->items[i].first;
	if (s->items[i].kind != STR_IF || s->items[then].next != STR_NONE || s->items[then].first == STR_NONE || seq_falls(s, then))
		return false;
	uint32_t first = s->items[then].first, last = s->items[then].last;
	if (s->items[first].kind == STR_BREAK)
		return true;
	uint8_t end = s->items[last].kind;
	bool is_only = l->jump_cnt == (end == STR_BREAK) && !l->again_cnt;
	return is_only && (end == STR_BREAK || end == STR_LEAVE || (end == STR_GOTO && !is_in_loop(s->w, s->items[last].block, l->block)));
}

/* The if i behind `before` (STR_NONE: the first) of the body is the loop's condition now; its content goes behind the loop. */
static void take_exit(struct str_shape *s, uint32_t seq, uint32_t loop, uint32_t before, uint32_t i, uint8_t kind)
{
	struct str_item *l = &s->items[loop], *body = &s->items[l->first];
	uint32_t then = s->items[i].first, next = s->items[i].next;
	if (before == STR_NONE)
		body->first = next;
	else
		s->items[before].next = next;
	if (next == STR_NONE)
		body->last = before;
	l->kind = kind;
	l->cond = s->items[i].cond;
	str_cond_turn(s->w, l->cond);
	l->falls = true;
	struct str_item *end = &s->items[s->items[then].last];
	if (end->kind == STR_BREAK) {
		/* Behind the loop it goes on by itself. */
		l->jump_cnt--;
		end->kind = STR_NEXT;
		end->falls = true;
	}
	splice(s, seq, loop, then);
}

/* while (1) { if (c) break; ... } */
static bool tidy_while(struct str_shape *s, uint32_t seq, uint32_t loop)
{
	struct str_work *w = s->w;
	uint32_t body = s->items[loop].first, i = skip_labels(s, s->items[body].first), block = STR_NONE;
	if (i == STR_NONE)
		return false;
	if (s->items[i].kind == STR_BLOCK && w->g->blocks[s->items[i].block].is_expr && w->g->blocks[s->items[i].block].cost <= 1) {
		block = i;
		i = s->items[i].next;
	}
	if (i == STR_NONE || !is_exit(s, loop, i))
		return false;
	struct str_cond *first = &w->conds[str_cond_first(w->conds, s->items[i].cond)];
	if (first->is_bare != (block != STR_NONE) || (block != STR_NONE && first->a != s->items[block].block))
		return false;
	first->is_bare = false;
	s->items[body].first = i;
	take_exit(s, seq, loop, STR_NONE, i, STR_WHILE);
	return true;
}

/* while (1) { ...; if (c) break; } */
static bool tidy_do(struct str_shape *s, uint32_t seq, uint32_t loop)
{
	struct str_work *w = s->w;
	uint32_t body = s->items[loop].first, before = STR_NONE, exit_at = STR_NONE, last = s->items[body].last;
	if (s->items[loop].again_cnt || last == STR_NONE || s->items[last].kind != STR_NEXT || s->items[last].block != s->items[loop].block)
		return false;
	for (uint32_t i = s->items[body].first, prev = STR_NONE; i != STR_NONE; prev = i, i = s->items[i].next) {
		if (s->items[i].next == last && s->items[i].kind == STR_IF) {
			exit_at = i;
			before = prev;
		}
	}
	if (exit_at == STR_NONE || !is_exit(s, loop, exit_at))
		return false;
	const struct str_cond *first = &w->conds[str_cond_first(w->conds, s->items[exit_at].cond)];
	s->items[loop].block = first->is_bare ? STR_NONE : first->a;
	/* The jump back is the condition's. */
	s->items[exit_at].next = STR_NONE;
	s->items[body].last = exit_at;
	take_exit(s, seq, loop, before, exit_at, STR_DO);
	return true;
}

/* What a while does last is the step of a for. */
static void tidy_for(struct str_shape *s, uint32_t loop)
{
	const struct str_graph *g = s->w->g;
	struct str_item *l = &s->items[loop];
	uint32_t body = l->first, last = s->items[body].last, before = STR_NONE, step = STR_NONE;
	if (l->kind != STR_WHILE || l->step != STR_NONE || l->again_cnt || last == STR_NONE || s->items[last].kind != STR_NEXT)
		return;
	for (uint32_t i = s->items[body].first, prev = STR_NONE; i != STR_NONE; prev = i, i = s->items[i].next) {
		if (s->items[i].next == last && s->items[i].kind == STR_BLOCK) {
			step = i;
			before = prev;
		}
	}
	if (step == STR_NONE || s->items[last].block != l->block)
		return;
	uint32_t b = s->items[step].block;
	bool is_label = before != STR_NONE && s->items[before].kind == STR_LABEL && s->items[before].block == b && s->refs[b];
	if (!g->blocks[b].is_expr || (!g->blocks[b].is_step && !is_label))
		return;
	l->step = b;
	if (before == STR_NONE)
		s->items[body].first = s->items[body].last = STR_NONE;
	else {
		s->items[before].next = STR_NONE;
		s->items[body].last = before;
	}
}

static void tidy_loop(struct str_shape *s, uint32_t seq, uint32_t i)
{
	if (s->items[i].kind == STR_LOOP && !s->w->o->is_plain && !tidy_while(s, seq, i))
		tidy_do(s, seq, i);
	if (!s->w->o->is_plain)
		tidy_for(s, i);
}

/* Whether anything was left out or moved. */
static bool tidy_seq(struct str_shape *s, uint32_t seq)
{
	bool is_live = true, is_changed = false;
	uint32_t prev = STR_NONE;
	for (uint32_t i = s->items[seq].first, next; i != STR_NONE; i = next) {
		next = s->items[i].next;
		is_live |= s->items[i].kind == STR_SEQ || (s->items[i].kind == STR_LABEL && s->refs[s->items[i].block]);
		if (!is_live) {
			/* Nothing comes here. */
			if (prev == STR_NONE)
				s->items[seq].first = next;
			else
				s->items[prev].next = next;
			if (next == STR_NONE)
				s->items[seq].last = prev;
			is_changed = true;
			continue;
		}
		prev = i;
		uint32_t last = i;
		uint8_t kind = s->items[i].kind;
		if (kind == STR_IF)
			last = tidy_if(s, seq, i);
		else if (kind == STR_LOOP || kind == STR_WHILE || kind == STR_DO)
			tidy_loop(s, seq, i);
		is_changed |= last != i || s->items[i].kind != kind;
		s->items[i].falls = find_falls(s, i);
		prev = last;
		next = s->items[last].next;
		is_live = s->items[last].falls;
	}
	return is_changed;
}

static bool tidy_seqs(struct str_shape *s)
{
	bool is_changed = false;
	for (uint32_t k = s->seq_cnt; k-- > 0;)
		is_changed |= tidy_seq(s, s->seqs[k]);
	return is_changed;
}

/* What is known of the tree as it is now. */
static bool look_back(struct str_shape *s)
{
	if (!resolve(s, false, false))
		return false;
	for (uint32_t k = s->seq_cnt; k-- > 0;) {
		uint32_t seq = s->seqs[k];
		for (uint32_t i = s->items[seq].first; i != STR_NONE; i = s->items[i].next)
			s->items[i].falls = find_falls(s, i);
		s->items[seq].falls = seq_falls(s, seq);
	}
	return true;
}

/* --- code before a join ------------------------------------------------------------------------------------------------------ */
/* Where jumps to a block are. */
struct jumps {
	uint32_t *first, *cnt; /* by block */
	uint32_t *next;        /* by item */
	uint32_t *seq;
};

static bool find_jumps(struct str_shape *s, struct jumps *j)
{
	struct arena *a = s->w->a;
	j->first = ARENA_RAW_ARRAY(a, uint32_t, s->w->n);
	j->cnt = ARENA_ARRAY(a, uint32_t, s->w->n);
	j->next = ARENA_RAW_ARRAY(a, uint32_t, s->cnt);
	j->seq = ARENA_RAW_ARRAY(a, uint32_t, s->cnt);
	if (!j->first || !j->cnt || !j->next || !j->seq)
		return false;
	memset(j->first, 0xff, s->w->n * sizeof(*j->first));
	for (uint32_t k = 0; k < s->seq_cnt; k++) {
		for (uint32_t i = s->items[s->seqs[k]].first; i != STR_NONE; i = s->items[i].next) {
			uint32_t to = s->items[i].block;
			if (!str_is_jump(&s->items[i]))
				continue;
			j->next[i] = j->first[to];
			j->seq[i] = s->seqs[k];
			j->first[to] = i;
			j->cnt[to]++;
		}
	}
	return true;
}

/* Behind jump i, in its place, block d, and the jump to where that leads. */
static void put_copy(struct str_shape *s, uint32_t seq, uint32_t i, uint32_t d, uint32_t to)
{
	uint32_t block = str_item_new(s, STR_BLOCK, d), jump = str_item_new(s, STR_GOTO, to);
	if (s->failed)
		return;
	s->items[i].kind = STR_LABEL;
	s->items[i].falls = true;
	s->items[jump].next = s->items[i].next;
	s->items[block].next = jump;
	s->items[i].next = block;
	if (s->items[seq].last == i)
		s->items[seq].last = jump;
}

/*
 * if (x) { if (y) goto j; } d; j:  Instead of before the join, a few statements stand where control comes to them from, so that what
 * jumped over them need not. Whether it did is only known when everything is in its place, so this is for who can compare.
 */
static bool sink_seq(struct str_shape *s, const struct jumps *j, uint32_t seq)
{
	const struct str_work *w = s->w;
	bool is_changed = false;
	for (uint32_t i = s->items[seq].first, prev = STR_NONE; i != STR_NONE && !s->failed;) {
		uint32_t d = s->items[i].block, block = s->items[i].next, jump = block == STR_NONE ? STR_NONE : s->items[block].next;
		bool is_it = s->items[i].kind == STR_LABEL && jump != STR_NONE && s->items[block].kind == STR_BLOCK && s->items[block].block == d &&
			     w->end[d] == STR_END_GOTO && !w->is_header[d] && !s->is_direct[d];
		is_it = is_it && (s->items[jump].kind == STR_NEXT || s->items[jump].kind == STR_GOTO);
		uint32_t to = is_it ? s->items[jump].block : d, n = is_it ? j->cnt[d] : 0;
		if (to == d || !s->refs[to] || !n || n > SINK_CNT_MAX || w->cost[d] * n > SINK_COST_MAX || w->cost[d] * (n - 1) > s->copy_budget) {
			prev = i;
			i = s->items[i].next;
			continue;
		}
		s->copy_budget -= w->cost[d] * (n - 1);
		for (uint32_t k = j->first[d]; k != STR_NONE; k = j->next[k])
			put_copy(s, j->seq[k], k, d, to);
		/* Nothing comes here any more; and there are jumps now that are not in the lists. */
		j->cnt[d] = j->cnt[to] = 0;
		uint32_t behind = s->items[jump].next;
		while (prev != STR_NONE && s->items[prev].next != i)
			prev = s->items[prev].next;
		if (prev == STR_NONE)
			s->items[seq].first = behind;
		else
			s->items[prev].next = behind;
		if (behind == STR_NONE)
			s->items[seq].last = prev;
		i = behind;
		is_changed = true;
	}
	return is_changed;
}

static bool sink(struct str_shape *s)
{
	for (unsigned round = 0; round < 3; round++) {
		struct jumps j;
		bool is_changed = false;
		if (!find_jumps(s, &j))
			return false;
		uint32_t cnt = s->seq_cnt;
		for (uint32_t k = 0; k < cnt && !s->failed; k++)
			is_changed |= sink_seq(s, &j, s->seqs[k]);
		if (!is_changed)
			break;
		if (!resolve(s, false, false))
			return false;
	}
	return !s->failed;
}

/* --- what is jumped over --------------------------------------------------------------------------------------------------- */
struct arms {
	uint32_t *list;     /* the items of the sequence at hand */
	uint32_t *seq, *prev; /* by item, of what is in that sequence */
	uint32_t *label_at; /* by block: its next label */
	uint32_t cap;       /* items these are for */
};

/* The items behind i and before `label` at the end of arm `to`, and there a jump to where they went on. */
static void move_into(struct str_shape *s, struct arms *m, uint32_t i, uint32_t label, uint32_t to)
{
	uint32_t first = s->items[i].next, last = m->prev[label], go = str_item_new(s, STR_NEXT, s->items[label].block);
	if (s->failed)
		return;
	if (!str_is_jump(&s->items[last]) && s->items[last].kind != STR_LEAVE) {
		s->items[last].next = go;
		last = go;
	}
	if (s->items[to].first == STR_NONE)
		s->items[to].first = first;
	else
		s->items[s->items[to].last].next = first;
	s->items[to].last = last;
	s->items[last].next = STR_NONE;
	s->items[i].next = label;
	m->prev[label] = i;
	for (uint32_t k = first; k != last; k = s->items[k].next)
		m->seq[k] = STR_NONE;
}

/* Where in sequence seq the jump that ends an arm leads to, when there is something between that arm's if, i, and this. */
static uint32_t find_over(const struct str_shape *s, const struct arms *m, uint32_t seq, uint32_t i, uint32_t arm)
{
	uint32_t last = arm == STR_NONE ? STR_NONE : s->items[arm].last;
	if (last == STR_NONE || s->items[last].kind != STR_GOTO)
		return STR_NONE;
	uint32_t label = m->label_at[s->items[last].block];
	return label != STR_NONE && m->seq[label] == seq && s->items[i].next != label ? label : STR_NONE;
}

/*
 * if (x) goto j; d; j:  What only happens here when x does not hold is the other arm, whether or not something else leads into d.
 * Compilers let what goes on in the middle of d do so, where the source tests x again.
 */
static bool arm_seq(struct str_shape *s, struct arms *m, uint32_t seq)
{
	uint32_t cnt = 0, before = STR_NONE;
	bool is_changed = false;
	for (uint32_t i = s->items[seq].first; i != STR_NONE; before = i, i = s->items[i].next) {
		m->list[cnt++] = i;
		m->seq[i] = seq;
		m->prev[i] = before;
		/* Of the sequence this was moved from it may still be known. */
		if (s->items[i].kind == STR_LABEL)
			m->label_at[s->items[i].block] = STR_NONE;
	}
	while (cnt-- > 0 && !s->failed && s->cnt + 2 <= m->cap) {
		uint32_t i = m->list[cnt];
		if (s->items[i].kind == STR_LABEL)
			m->label_at[s->items[i].block] = i;
		if (s->items[i].kind != STR_IF)
			continue;
		uint32_t then = s->items[i].first, other = s->items[then].next;
		uint32_t label = find_over(s, m, seq, i, then), to = other;
		if (label == STR_NONE) {
			label = find_over(s, m, seq, i, other);
			to = then;
		}
		if (label == STR_NONE || (to != STR_NONE && s->items[to].last != STR_NONE && !find_falls(s, s->items[to].last)))
			continue;
		if (to == STR_NONE) {
			to = str_item_new(s, STR_SEQ, STR_NONE);
			str_append(s, i, to);
		}
		if (!s->failed)
			move_into(s, m, i, label, to);
		is_changed = true;
	}
	return is_changed;
}

static bool put_arms(struct str_shape *s)
{
	struct arms m = {.cap = 2 * s->cnt + 64};
	bool is_changed = false;
	m.list = ARENA_RAW_ARRAY(s->w->a, uint32_t, m.cap);
	m.seq = ARENA_RAW_ARRAY(s->w->a, uint32_t, m.cap);
	m.prev = ARENA_RAW_ARRAY(s->w->a, uint32_t, m.cap);
	m.label_at = ARENA_RAW_ARRAY(s->w->a, uint32_t, s->w->n);
	if (!m.list || !m.seq || !m.prev || !m.label_at)
		return false;
	memset(m.label_at, 0xff, s->w->n * sizeof(*m.label_at));
	uint32_t cnt = s->seq_cnt;
	for (uint32_t k = 0; k < cnt && !s->failed; k++)
		is_changed |= arm_seq(s, &m, s->seqs[k]);
	return !s->failed && (!is_changed || resolve(s, false, false));
}

bool str_tidy(struct str_shape *s)
{
	const struct str_opts *o = s->w->o;
	uint32_t max = o->depth_max ? o->depth_max : DEPTH_MAX;
	bool copies = !o->is_plain && o->copy_cost_max;
	if (!resolve(s, false, false) || (s->w->sinks && !sink(s)))
		return false;
	if (!o->is_plain && !put_arms(s))
		return false;
	tidy_seqs(s);
	/* Each round makes room for the next; what a last one might still find is left. */
	for (unsigned round = 0; round < 4; round++) {
		if (!resolve(s, false, false) || (!o->is_plain && !put_arms(s)) || (copies && round && !resolve(s, true, false)))
			return false;
		if (!tidy_seqs(s) && round > 1)
			break;
	}
	if (s->depth > max) {
		if (!resolve(s, false, true))
			return false;
		tidy_seqs(s);
	}
	return look_back(s);
}
