/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * Follows control from the known starts over the records of the sweep. Code between two records is
 * straight, so a step costs a look into a bit map, and each record is passed once: the first
 * function to reach it owns it.
 *
 * A call is followed behind it only when the callee is known to return. Until then the caller waits
 * in the callee's list; reaching a return (or an indirect jump nobody understands, or bytes that do
 * not decode: no proof of the contrary) makes a function return and wakes those who wait. What
 * still waits when everything has come to rest cannot return: the least fixpoint, which does not
 * depend on the order of the visits. Thus code behind abort() is never taken for a part of the
 * function, and no guess has to be taken back.
 */
#define NEAR_MAX (1u << 20)

struct flow {
	struct code *c;
	uint32_t fn;
	uint32_t home_to; /* the next known start behind the function's first byte */
	VEC(uint32_t) todo;
};

uint32_t code_fn_find(const struct code *c, uint32_t loc)
{
	uint32_t i;
	return code_has(c, c->starts, loc) && map_find(&c->fn_at, loc, &i) ? i : CODE_NONE;
}

uint32_t code_import_of(const struct code *c, uint32_t loc)
{
	uint32_t i;
	return loc != LOC_NONE && map_find(&c->got, loc, &i) ? i : CODE_NONE;
}

uint32_t code_fn_add(struct code *c, uint32_t loc, enum image_source source)
{
	uint32_t i = code_fn_find(c, loc);
	if (i != CODE_NONE) {
		if (source < c->fns.data[i].source)
			c->fns.data[i].source = (uint8_t)source;
		return i;
	}
	i = (uint32_t)c->fns.cnt;
	if (!VEC_PUSH(&c->fns, (struct code_fn){.loc = loc,
						.waiting = CODE_NONE,
						.resume = CODE_NONE,
						.thunk_to = LOC_NONE,
						.source = (uint8_t)source,
						.is_queued = true}) ||
	    !VEC_PUSH(&c->queue, i) || !map_put(&c->fn_at, loc, i)) {
		c->has_failed = true;
		return CODE_NONE;
	}
	code_stated_flags(c, &c->fns.data[i]);
	code_mark(c, c->starts, loc);
	if (loc >= c->free_from && loc < c->free_to)
		c->free_from = loc + 1;
	return i;
}

/* The first start behind `loc`, or `to`. Where functions are found one behind the other, what lies before the next
 * known one is looked through once. */
static uint32_t next_start(struct code *c, uint32_t loc, uint32_t to)
{
	uint32_t from = loc + 1;
	bool is_known = from >= c->free_from && from < c->free_to;
	uint32_t next = code_next(c, c->starts, is_known ? c->free_to : from, to);
	if (!is_known)
		c->free_from = from;
	c->free_to = MAX(next, is_known ? c->free_to : from);
	return MIN(next, to);
}

bool code_is_after_end(const struct code *c, uint32_t loc)
{
	const struct code_region *r = code_region_of(c, loc);
	if (!r || loc == r->from)
		return true;
	uint32_t q = code_insn_before(c, loc);
	if (q == CODE_NONE || code_has(c, c->pads, q))
		return true;
	return code_has(c, c->rec_bits, q) && code_rec_ends(&c->recs[code_rec_at(c, q)]);
}

static void wake(struct code *c, uint32_t fn);

static void fn_returns(struct code *c, uint32_t fn)
{
	if (c->fns.data[fn].status == FN_UNKNOWN)
		wake(c, fn);
}

static void add_wait(struct code *c, uint32_t callee, uint32_t fn, uint32_t loc)
{
	if (!VEC_PUSH(&c->waits, (struct code_wait){fn, loc, c->fns.data[callee].waiting})) {
		c->has_failed = true;
		return;
	}
	c->fns.data[callee].waiting = (uint32_t)(c->waits.cnt - 1);
}

static void enqueue(struct code *c, uint32_t fn)
{
	if (c->fns.data[fn].is_queued)
		return;
	c->fns.data[fn].is_queued = true;
	if (!VEC_PUSH(&c->queue, fn))
		c->has_failed = true;
}

/*
 * Marks `fn` as returning, and in turn those that only wait to return with it. Callers waiting to
 * go on behind their call are put into the list that their next visit takes up: a wait on
 * themselves.
 */
static void wake(struct code *c, uint32_t fn)
{
	VEC(uint32_t) stack = {0};
	bool ok = VEC_PUSH(&stack, fn);
	while (ok && stack.cnt) {
		struct code_fn *f = &c->fns.data[VEC_POP(&stack)];
		if (f->status != FN_UNKNOWN)
			continue;
		f->status = FN_RETURNS;
		uint32_t next;
		uint32_t w = f->waiting;
		f->waiting = CODE_NONE;
		for (; w != CODE_NONE && ok; w = next) {
			struct code_wait *wait = &c->waits.data[w];
			next = wait->next;
			if (wait->loc == CODE_NONE) {
				ok = VEC_PUSH(&stack, wait->fn);
				continue;
			}
			wait->next = c->fns.data[wait->fn].resume;
			c->fns.data[wait->fn].resume = w;
			enqueue(c, wait->fn);
		}
	}
	if (!ok)
		c->has_failed = true;
	VEC_FREE(&stack);
}

/* Leaves the function for another one that starts at a known place. */
static void leave_to(struct flow *w, uint32_t callee)
{
	struct code *c = w->c;
	if (callee == CODE_NONE)
		return;
	c->fns.data[w->fn].flags |= IMAGE_FN_TAIL;
	if (c->fns.data[callee].status == FN_RETURNS)
		fn_returns(c, w->fn);
	else if (c->fns.data[callee].status == FN_UNKNOWN && callee != w->fn)
		add_wait(c, callee, w->fn, CODE_NONE);
}

static void later(struct flow *w, uint32_t loc)
{
	if (!VEC_PUSH(&w->todo, loc))
		w->c->has_failed = true;
}

/* Whether a known start lies between a jump and its target, so that the jump leaves the function's
 * surroundings. */
static bool crosses_start(const struct flow *w, uint32_t from, uint32_t to)
{
	const struct code *c = w->c;
	uint32_t start = c->fns.data[w->fn].loc;
	if (to >= start && to < w->home_to)
		return false;
	if ((to > from ? to - from : from - to) > NEAR_MAX)
		return true;
	if (to > from)
		return code_next(c, c->starts, from + 1, to + 1) <= to;
	return code_next(c, c->starts, to, from + 1) <= from;
}

static bool is_aligned(const struct code *c, uint32_t loc)
{
	return space_va(&c->d->space, loc) % c->arch->func_align == 0;
}

/* A jump out of a function's extent, or of a function without one to somewhere behind another
 * start. */
static void jump_far(struct flow *w, const struct code_rec *r)
{
	struct code *c = w->c;
	const struct code_ext *to = code_ext_of(c, r->target);
	if ((to && to->start != CODE_NONE) || c->fns.data[w->fn].is_bound) {
		fn_returns(c,
			   w->fn); /* the middle of another function: shared code, not followed */
		return;
	}
	if (r->flow == ARCH_FLOW_JUMP && code_is_after_end(c, r->target) &&
	    !code_has(c, c->covered, r->target) &&
	    (is_aligned(c, r->target) ||
	     (code_entry_look(c, r->target) != ENTRY_ODD &&
	      (!c->are_aligned || code_gives_back_stack(c, r->loc) ||
	       code_entry_look(c, c->fns.data[w->fn].loc) != ENTRY_FRAME)))) {
		leave_to(w, code_fn_add(c, r->target, IMAGE_SRC_CALL));
		return;
	}
	later(w, r->target);
}

/* A jump to near code that nothing says to be a function: behind the end of a function that has
 * given its frame back, to what can be a beginning and is reached no other way. */
static bool is_near_tail_call(const struct flow *w, const struct code_rec *r)
{
	const struct code *c = w->c;
	return r->flow == ARCH_FLOW_JUMP && r->target > r->loc &&
	       !code_has(c, c->covered, r->target) && code_is_after_end(c, r->target) &&
	       code_gives_back_stack(c, r->loc) && code_entry_look(c, r->target) != ENTRY_ODD;
}

/* The sweep has no instruction at `loc`, but control comes there. */
static void miss(struct code *c, uint32_t loc)
{
	if (code_has(c, c->covered, loc) || code_has(c, c->rec_bits, loc) ||
	    code_has(c, c->sync, loc) || code_stated_data_end(c, loc) > loc)
		return;
	if (!VEC_PUSH(&c->missync, loc))
		c->has_failed = true;
}

static void follow_jump(struct flow *w, const struct code_rec *r)
{
	struct code *c = w->c;
	uint32_t t = r->target;
	if (t == LOC_NONE || !code_in(c, t) || !code_region_of(c, t)) {
		uint32_t import = code_import_of(c, t);
		if (import == CODE_NONE || !bits_get(c->import_noreturn, import))
			fn_returns(c, w->fn);
		return;
	}
	if (!code_has(c, c->items, t)) {
		miss(c, t);
		fn_returns(c, w->fn);
		return;
	}
	uint32_t start = c->fns.data[w->fn].loc;
	if (t != start && code_has(c, c->starts, t)) {
		leave_to(w, code_fn_find(c, t));
		return;
	}
	const struct code_ext *from = code_ext_of(c, r->loc);
	if (from && from->start == start) {
		const struct code_ext *to = code_ext_of(c, t);
		if (to && to->start == start)
			later(w, t);
		else
			jump_far(w, r);
		return;
	}
	if (crosses_start(w, r->loc, t))
		jump_far(w, r);
	else if (is_near_tail_call(w, r))
		leave_to(w, code_fn_add(c, t, IMAGE_SRC_CALL));
	else
		later(w, t);
}

static void follow_ijump(struct flow *w, const struct code_rec *r, uint32_t rec)
{
	struct code *c = w->c;
	uint32_t import = code_import_of(c, r->target);
	if (import != CODE_NONE) {
		c->fns.data[w->fn].flags |= IMAGE_FN_TAIL;
		if (!bits_get(c->import_noreturn, import))
			fn_returns(c, w->fn);
		return;
	}
	const struct code_table *t = code_table_of(c, rec);
	if (!t) {
		/* A slot or a register: a tail call through a pointer, unless it looks like a
		 * dispatch. */
		c->fns.data[w->fn].flags |= r->is_dispatch ? IMAGE_FN_INDIRECT : IMAGE_FN_TAIL;
		fn_returns(c, w->fn);
		return;
	}
	for (uint32_t i = 0; i < t->t.target_cnt; i++) {
		uint32_t to = c->targets.data[t->t.target_first + i];
		if (code_has(c, c->pads, to) && code_is_after_end(c, to))
			continue; /* a case that cannot happen: behind the function */
		if (to == c->fns.data[w->fn].loc || !code_has(c, c->starts, to))
			later(w, to);
	}
}

/* Behind a call of something that comes back, or of which nobody knows: true when control goes on.
 */
static bool follow_call(struct flow *w, const struct code_rec *r)
{
	struct code *c = w->c;
	uint32_t next = r->loc + r->len;
	uint32_t import = code_import_of(c, r->target);
	if (import != CODE_NONE)
		return !bits_get(c->import_noreturn, import);
	if (r->flow == ARCH_FLOW_ICALL || r->target == LOC_NONE || r->target == next)
		return true;
	uint32_t callee = code_fn_find(c, r->target);
	if (callee == CODE_NONE) {
		if (!code_in(c, r->target))
			return true;
		const struct code_ext *to = code_ext_of(c, r->target);
		const struct code_ext *from = code_ext_of(c, r->loc);
		if (to && from && to->start == from->start) {
			later(w, r->target); /* a subroutine within the function */
			return true;
		}
		if ((to && to->from != r->target) || code_is_stated_inside(c, r->target))
			return true; /* into the middle, as Go calls its unrolled loops */
		if (!code_has(c, c->items, r->target)) {
			miss(c, r->target);
			return true;
		}
		if (code_has(c, c->covered, r->target) || code_in_plt(c, r->target))
			return true;
		callee = code_fn_add(c, r->target, IMAGE_SRC_CALL);
		if (callee == CODE_NONE)
			return false;
	}
	if (c->fns.data[callee].status == FN_UNKNOWN)
		add_wait(c, callee, w->fn, next);
	return c->fns.data[callee].status == FN_RETURNS;
}

/* The piece from `loc` to `to` belongs to the function but ends without a record: into another
 * function, or at the end of the region. */
static void end_piece(struct flow *w, uint32_t loc, uint32_t to)
{
	struct code *c = w->c;
	bits_set_range(c->covered, loc - c->base, to - c->base);
	if (loc < to && !VEC_PUSH(&c->pieces, (struct code_piece){loc, to, w->fn}))
		c->has_failed = true;
}

/* True when only padding lies between `loc` and the next start or the end of the extent: the call
 * before it cannot have been meant to return. */
static bool is_end_of_code(const struct flow *w, uint32_t loc, const struct code_region *region)
{
	const struct code *c = w->c;
	const struct code_ext *e = code_ext_of(c, loc - 1);
	uint32_t to = e ? MIN(e->to, region->to) : region->to;
	for (unsigned n = 0; n < 64; n++) {
		if (loc >= to || code_has(c, c->starts, loc))
			return true;
		if (!code_has(c, c->pads, loc))
			return !e && n && is_aligned(c, loc) && !code_is_jumped_to(c, loc) &&
			       code_entry_look(c, loc) != ENTRY_ODD;
		loc = code_insn_end(c, loc);
	}
	return false;
}

/* How far the function may go from `loc` on, where pieces of functions were stated. */
static uint32_t bound_of(const struct flow *w, uint32_t loc, uint32_t to)
{
	const struct code *c = w->c;
	const struct code_ext *e = code_ext_of(c, loc);
	bool is_own = e && e->is_stated && e->start == c->fns.data[w->fn].loc;
	if (c->fns.data[w->fn].is_bound)
		return is_own ? MIN(e->to, to) : loc;
	if (e && e->is_stated && c->fns.data[w->fn].loc != loc)
		return loc;
	const struct code_ext *end = c->exts.data + c->exts.cnt;
	for (e = e ? e + 1 : code_ext_after(c, loc); e < end && e->from < to; e++)
		if (e->is_stated)
			return e->from;
	return to;
}

/* Walks straight code from `loc` to where it ends. */
static void walk(struct flow *w, uint32_t loc, const struct code_region *region)
{
	struct code *c = w->c;
	uint32_t region_to = c->has_bounds ? bound_of(w, loc, region->to) : region->to;
	for (;;) {
		uint32_t at = code_next(c, c->rec_bits, loc, region_to);
		uint32_t start = code_next(c, c->starts, loc + 1, MIN(at + 1, region_to));
		if (start <= at && start < region_to && start != c->fns.data[w->fn].loc) {
			end_piece(w, loc, start);
			leave_to(w, code_fn_find(c, start));
			return;
		}
		if (at >= region_to) {
			end_piece(w, loc, MAX(loc, region_to));
			fn_returns(c, w->fn);
			return;
		}
		uint32_t rec = code_rec_at(c, at);
		const struct code_rec *r = &c->recs[rec];
		if (r->flow == ARCH_FLOW_INVALID) {
			end_piece(w, loc, at);
			fn_returns(c, w->fn);
			return;
		}
		bits_set_range(c->covered, loc - c->base, at + r->len - c->base);
		if (c->owner[rec] != CODE_NONE) {
			if (c->owner[rec] != w->fn)
				fn_returns(c, w->fn);
			return;
		}
		c->owner[rec] = w->fn;
		c->covered_cnt += at + r->len - loc;
		uint32_t next = at + r->len;
		switch ((enum arch_flow)r->flow) {
		case ARCH_FLOW_JUMP:
			follow_jump(w, r);
			return;
		case ARCH_FLOW_CJUMP:
			follow_jump(w, r);
			if (next < region_to && !code_has(c, c->starts, next))
				code_mark(c, c->leaders, next);
			break;
		case ARCH_FLOW_IJUMP:
			follow_ijump(w, r, rec);
			return;
		case ARCH_FLOW_CALL:
		case ARCH_FLOW_ICALL:
			if (!follow_call(w, r))
				return;
			if (is_end_of_code(w, next, region))
				return;
			break;
		case ARCH_FLOW_RET:
			fn_returns(c, w->fn);
			return;
		case ARCH_FLOW_NEXT:
			break;
		case ARCH_FLOW_STOP:
		case ARCH_FLOW_INVALID:
			return;
		}
		if (next >= region_to)
			return;
		if (code_has(c, c->starts, next)) {
			leave_to(w, code_fn_find(c, next));
			return;
		}
		loc = next;
	}
}

static void drain(struct flow *w)
{
	struct code *c = w->c;
	while (w->todo.cnt && !c->has_failed) {
		uint32_t loc = VEC_POP(&w->todo);
		const struct code_region *region = code_region_of(c, loc);
		if (!region || !code_has(c, c->items, loc) || code_has(c, c->leaders, loc))
			continue;
		code_mark(c, c->leaders, loc);
		walk(w, loc, region);
	}
}

static void visit(struct code *c, struct flow *w, uint32_t fn)
{
	w->fn = fn;
	uint32_t loc = c->fns.data[fn].loc;
	const struct code_region *region = code_region_of(c, loc);
	w->home_to = region ? next_start(c, loc, region->to) : loc;
	later(w, loc);
	drain(w);
	while (c->fns.data[fn].resume != CODE_NONE && !c->has_failed) {
		struct code_wait wait = c->waits.data[c->fns.data[fn].resume];
		c->fns.data[fn].resume = wait.next;
		region = code_region_of(c, wait.loc);
		if (region && code_has(c, c->starts, wait.loc)) {
			leave_to(w, code_fn_find(c, wait.loc));
		} else if (region && !is_end_of_code(w, wait.loc, region)) {
			walk(w, wait.loc, region);
			drain(w);
		}
	}
}

struct err *code_flow(struct code *c)
{
	struct flow w = {.c = c};
	uint64_t steps = 0;
	for (size_t i = 0; i < c->queue.cnt && !c->has_failed; i++) {
		uint32_t fn = c->queue.data[i];
		c->fns.data[fn].is_queued = false;
		visit(c, &w, fn);
		if (++steps % 1024 == 0) {
			if (code_is_cancelled(c))
				break;
			code_progress(c, "functions", c->covered_cnt, c->len);
		}
		if (i > 65536 && i * 2 > c->queue.cnt) {
			memmove(c->queue.data, c->queue.data + i + 1,
				(c->queue.cnt - i - 1) * sizeof(*c->queue.data));
			c->queue.cnt -= i + 1;
			i = (size_t)-1;
		}
	}
	c->queue.cnt = 0;
	VEC_FREE(&w.todo);
	return c->has_failed ? &err_nomem : NULL;
}

void code_flow_part(struct code *c, uint32_t fn, uint32_t loc)
{
	struct flow w = {.c = c, .fn = fn};
	const struct code_region *region = code_region_of(c, c->fns.data[fn].loc);
	w.home_to = region ? next_start(c, c->fns.data[fn].loc, region->to) : loc;
	later(&w, loc);
	drain(&w);
	VEC_FREE(&w.todo);
}

void code_flow_settle(struct code *c)
{
	for (size_t i = 0; i < c->fns.cnt; i++) {
		struct code_fn *f = &c->fns.data[i];
		if (f->status != FN_UNKNOWN)
			continue;
		f->status = FN_NORETURN;
		if (!f->why)
			f->why = IMAGE_NORETURN_CALLEE;
	}
}
