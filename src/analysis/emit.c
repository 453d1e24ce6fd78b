/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * From the state of discovery to the image's vectors. First what lies in the extent of a function
 * but was not reached (landing pads, code behind calls that do not return) is taken into it when it
 * decodes; then items, blocks and references are what the sweep has there, and functions are the
 * pieces their records lie in.
 */
static void own_recs(struct code *c, uint32_t from, uint32_t to, uint32_t fn)
{
	for (uint32_t i = code_rec_at(c, from); i < c->rec_cnt && c->recs[i].loc < to; i++) {
		const struct code_rec *r = &c->recs[i];
		uint32_t next = r->loc + r->len;
		if (c->owner[i] == CODE_NONE)
			c->owner[i] = fn;
		if ((code_rec_ends(r) || r->flow == ARCH_FLOW_CJUMP) && next < to &&
		    code_has(c, c->items, next))
			code_mark(c, c->leaders, next);
	}
}

/* Takes [from, to), which nobody reached, into `fn` unless it holds bytes that are no code; padding
 * in front stays out. */
static void adopt(struct code *c, uint32_t from, uint32_t to, uint32_t fn)
{
	while (from < to && code_has(c, c->items, from) && code_has(c, c->pads, from))
		from = code_insn_end(c, from);
	if (from >= to || !code_has(c, c->items, from))
		return;
	uint32_t last = from;
	for (uint32_t i = code_rec_at(c, from); i < c->rec_cnt && c->recs[i].loc < to; i++) {
		if (c->recs[i].flow == ARCH_FLOW_INVALID || c->owner[i] != CODE_NONE)
			return;
		last = c->recs[i].loc + c->recs[i].len;
	}
	/* A tail that does not end in a jump or return and is nothing but padding is not code. */
	uint32_t end = last;
	for (uint32_t at = code_next(c, c->items, last, to); at < to; at = code_insn_end(c, at))
		if (!code_has(c, c->pads, at))
			end = to;
	if (end <= from || end > to)
		return;
	bits_set_range(c->covered, from - c->base, end - c->base);
	code_mark(c, c->leaders, from);
	own_recs(c, from, end, fn);
	if (end > last && !VEC_PUSH(&c->pieces, (struct code_piece){last, end, fn}))
		c->has_failed = true;
}

static void adopt_exts(struct code *c)
{
	for (size_t i = 0; i < c->exts.cnt; i++) {
		const struct code_ext *e = &c->exts.data[i];
		uint32_t fn = code_fn_find(c, e->start);
		if (fn == CODE_NONE)
			continue;
		for (uint32_t at = code_next_gap(c, e->from, e->to); at < e->to;) {
			uint32_t next = code_next(c, c->covered, at, e->to);
			/* Around what somebody says to be none the rest is code still. */
			next = code_stated_data_next(c, at, next);
			uint32_t start = code_next(c, c->starts, at + 1, next);
			adopt(c, at, MIN(next, start), fn);
			next = MAX(next, code_stated_data_end(c, next));
			at = code_next_gap(c, MIN(next, e->to), e->to);
		}
	}
	/* What the linker made for imports is code whether or not anybody calls it. */
	for (size_t i = 0; i < c->plts.cnt; i++) {
		const struct code_piece *p = &c->plts.data[i];
		for (uint32_t at = code_next(c, c->items, p->from, p->to); at < p->to;) {
			uint32_t next = code_insn_end(c, at);
			if (code_has(c, c->items, at) && !code_has(c, c->covered, at)) {
				bits_set_range(c->covered, at - c->base, next - c->base);
				if (code_is_after_end(c, at))
					code_mark(c, c->leaders, at);
			}
			at = next;
		}
	}
}

/* What nobody reached is no code and needs no record; in a file made to be large those are nearly
 * all. Bytes that do not decode end the instruction before them and stay. */
static void drop_unreached(struct code *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (c->owner[i] == CODE_NONE && r->flow != ARCH_FLOW_INVALID &&
		    !code_has(c, c->covered, r->loc)) {
			bits_clear(c->rec_bits, r->loc - c->base);
			continue;
		}
		c->recs[n] = *r;
		c->owner[n++] = c->owner[i];
	}
	c->rec_cnt = n;
	bits_rank_build(c->rec_bits, c->len, c->rank);
	/* The index of jumps counts the old records. */
	free(c->into);
	c->into = NULL;
	struct code_rec *recs = realloc(c->recs, (n + 1) * sizeof(*recs));
	uint32_t *owner = realloc(c->owner, (n + 1) * sizeof(*owner));
	c->recs = recs ? recs : c->recs;
	c->owner = owner ? owner : c->owner;
}

static bool push_xref(struct image_data *d, uint32_t from, uint32_t to, enum image_xref_kind kind)
{
	return VEC_PUSH(&d->xrefs, (struct image_xref){from, to, (uint8_t)kind});
}

static bool emit_rec_xrefs(struct code *c)
{
	struct image_data *d = c->d;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (r->target == LOC_NONE || r->flow == ARCH_FLOW_INVALID ||
		    !code_has(c, c->covered, r->loc))
			continue;
		enum image_xref_kind kind = r->flow == ARCH_FLOW_CALL || r->flow == ARCH_FLOW_ICALL
						    ? IMAGE_XREF_CALL
						    : IMAGE_XREF_JUMP;
		uint32_t to = r->target;
		if (r->flow == ARCH_FLOW_IJUMP || r->flow == ARCH_FLOW_ICALL) {
			uint32_t import = code_import_of(c, to);
			if (import == CODE_NONE)
				continue;
			to = d->imports.data[import].loc;
		}
		if (to != LOC_NONE && !push_xref(d, r->loc, to, kind))
			return false;
	}
	return true;
}

static bool emit_ref_xrefs(struct code *c)
{
	struct image_data *d = c->d;
	size_t total = 0;
	for (size_t k = 0; k < c->chunks.cnt; k++)
		total += c->chunks.data[k].refs.cnt;
	for (uint32_t i = 0; i < c->rec_cnt; i++)
		total += c->recs[i].target != LOC_NONE;
	if (!VEC_RESERVE(&d->xrefs, total))
		return false;
	for (size_t k = 0; k < c->chunks.cnt; k++) {
		struct code_chunk *chunk = &c->chunks.data[k];
		for (size_t i = 0; i < chunk->refs.cnt; i++)
			if (code_has(c, c->covered, chunk->refs.data[i].from))
				d->xrefs.data[d->xrefs.cnt++] = chunk->refs.data[i];
		VEC_FREE(&chunk->refs);
	}
	return true;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static bool emit_table(struct code *c, const struct code_table *t, uint32_t *sorted)
{
	struct image_data *d = c->d;
	struct image_table out = t->t;
	const uint32_t *targets = c->targets.data + t->t.target_first;
	out.target_first = (uint32_t)d->targets.cnt;
	if (!VEC_RESERVE(&d->targets, out.target_cnt) || !VEC_PUSH(&d->tables, out))
		return false;
	memcpy(d->targets.data + d->targets.cnt, targets, out.target_cnt * sizeof(*targets));
	d->targets.cnt += out.target_cnt;
	memcpy(sorted, targets, out.target_cnt * sizeof(*targets));
	qsort(sorted, out.target_cnt, sizeof(*sorted), compare_u32);
	for (uint32_t i = 0; i < out.target_cnt; i++)
		if ((!i || sorted[i] != sorted[i - 1]) &&
		    !push_xref(d, out.jump_loc, sorted[i], IMAGE_XREF_JUMP))
			return false;
	if (out.table_loc != LOC_NONE &&
	    !push_xref(d, out.jump_loc, out.table_loc, IMAGE_XREF_READ))
		return false;
	return out.index_loc == LOC_NONE ||
	       push_xref(d, out.jump_loc, out.index_loc, IMAGE_XREF_READ);
}

static bool emit_tables(struct code *c)
{
	uint32_t max = 0;
	for (size_t i = 0; i < c->tables.cnt; i++)
		max = MAX(max, c->tables.data[i].t.target_cnt);
	_cleanup_free_ uint32_t *sorted = alloc_array(max, sizeof(*sorted));
	if (!sorted)
		return false;
	for (size_t i = 0; i < c->tables.cnt; i++)
		if (code_has(c, c->covered, c->tables.data[i].t.jump_loc) &&
		    !emit_table(c, &c->tables.data[i], sorted))
			return false;
	return true;
}

static void emit_bits(struct code *c, uint64_t *code_bits)
{
	struct image_data *d = c->d;
	/* Jumps into code that another function owns begin blocks there as well. */
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if ((r->flow == ARCH_FLOW_JUMP || r->flow == ARCH_FLOW_CJUMP) &&
		    r->target != LOC_NONE && code_in(c, r->target) &&
		    code_has(c, c->covered, r->loc))
			code_mark(c, c->leaders, r->target);
	}
	size_t first = c->base / 64;
	for (size_t w = 0; w < bits_words(c->len); w++) {
		uint64_t items = c->items[w] & c->covered[w];
		c->leaders[w] &= items;
		d->item_bits[first + w] |= items;
		d->block_bits[first + w] |= c->leaders[w];
		code_bits[first + w] = c->covered[w];
		d->meta.insn_cnt += (unsigned)__builtin_popcountll(items);
	}
}

static int compare_pieces(const void *a, const void *b)
{
	const struct code_piece *x = a, *y = b;
	return x->from != y->from ? (x->from < y->from ? -1 : 1) : 0;
}

/* Whether what lies between two pieces of one function belongs to it as well: padding, or its own
 * extent. */
static bool joins(const struct code *c, uint32_t from, uint32_t to)
{
	const struct code_ext *e = code_ext_of(c, from);
	if (e && e == code_ext_of(c, to) && code_next(c, c->starts, from, to) == to)
		return true;
	if (to - from > 64)
		return false;
	while (from < to && code_has(c, c->pads, from) && !code_has(c, c->covered, from))
		from = code_insn_end(c, from);
	return from == to;
}

struct layout {
	struct code *c;
	VEC(struct code_piece) list; /* by address */
	size_t next_piece;	     /* of c->pieces */
};

static bool add_piece(struct layout *l, uint32_t from, uint32_t to, uint32_t fn)
{
	struct code_piece *last = l->list.cnt ? &l->list.data[l->list.cnt - 1] : NULL;
	if (from >= to)
		return true;
	/* A function begins a piece of its own, also right behind its cold part. */
	if (last && last->fn == fn && from != l->c->fns.data[fn].loc && joins(l->c, last->to, from)) {
		last->to = to;
		return true;
	}
	return VEC_PUSH(&l->list, (struct code_piece){from, to, fn});
}

/* The pieces that end without a record of their own and lie before `loc`; gives where the last of
 * them ends. */
static bool add_loose(struct layout *l, uint32_t loc, uint32_t *low)
{
	struct code *c = l->c;
	for (; l->next_piece < c->pieces.cnt && c->pieces.data[l->next_piece].from < loc;
	     l->next_piece++) {
		struct code_piece p = c->pieces.data[l->next_piece];
		p.from = MAX(p.from, *low);
		p.to = MIN(p.to, loc);
		if (p.from >= p.to)
			continue;
		if (!add_piece(l, p.from, p.to, p.fn))
			return false;
		*low = p.to;
	}
	return true;
}

/* Where the straight code that ends with the record at `loc` begins: reached without a gap, not
 * before `low`. */
static uint32_t piece_start(const struct code *c, uint32_t low, uint32_t loc)
{
	uint32_t from = code_next(c, c->covered, low, loc + 1);
	for (;;) {
		uint32_t gap = code_next_gap(c, from, loc);
		/* Stubs nobody owns may lie right before. */
		if (gap >= loc && code_in_plt(c, from) && !code_in_plt(c, loc))
			gap = code_region_of(c, from) ? code_insn_end(c, from) : loc;
		if (gap >= loc)
			return from;
		from = code_next(c, c->covered, gap, loc + 1);
	}
}

/* What fills up the import stub before is code that nobody runs: a stub's piece begins with the stub. */
static uint32_t own_start(const struct code *c, uint32_t from, uint32_t loc, uint32_t fn)
{
	uint32_t start = c->fns.data[fn].loc;
	return start > from && start <= loc && code_in_plt(c, from) ? start : from;
}

/* Which bytes belong to which function: from each record back to the end of the one before it. */
static bool lay_out(struct layout *l)
{
	struct code *c = l->c;
	if (c->pieces.cnt)
		qsort(c->pieces.data, c->pieces.cnt, sizeof(*c->pieces.data), compare_pieces);
	uint32_t low = c->base;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (!add_loose(l, r->loc, &low))
			return false;
		if (c->owner[i] != CODE_NONE &&
		    !add_piece(l, own_start(c, piece_start(c, low, r->loc), r->loc, c->owner[i]), r->loc + r->len, c->owner[i]))
			return false;
		low = r->loc + r->len;
	}
	return add_loose(l, c->base + c->len, &low);
}

static int compare_order(const void *a, const void *b, void *ctx)
{
	const struct code_fn *fns = ctx;
	uint32_t x = fns[*(const uint32_t *)a].loc, y = fns[*(const uint32_t *)b].loc;
	return (x > y) - (x < y);
}

/* Functions in order of their address; `ret_new` tells for each old number the new one, CODE_NONE
 * when it has no code. */
static bool order_funcs(struct code *c, const struct layout *l, uint32_t *order, uint32_t *ret_new)
{
	struct image_data *d = c->d;
	for (uint32_t i = 0; i < c->fns.cnt; i++) {
		order[i] = i;
		ret_new[i] = CODE_NONE;
	}
	for (size_t i = 0; i < l->list.cnt; i++)
		if (l->list.data[i].from == c->fns.data[l->list.data[i].fn].loc &&
		    !c->fns.data[l->list.data[i].fn].is_loose)
			ret_new[l->list.data[i].fn] = 0;
	qsort_r(order, c->fns.cnt, sizeof(*order), compare_order, c->fns.data);
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < c->fns.cnt; i++)
		cnt += ret_new[i] != CODE_NONE;
	if (!VEC_RESERVE(&d->funcs, cnt))
		return false;
	for (size_t i = 0; i < c->fns.cnt; i++) {
		const struct code_fn *f = &c->fns.data[order[i]];
		if (ret_new[order[i]] == CODE_NONE)
			continue;
		ret_new[order[i]] = (uint32_t)d->funcs.cnt;
		if (!VEC_PUSH(&d->funcs,
			      (struct image_func){
				      .loc = f->loc,
				      .source = f->source,
				      .why_noreturn = f->status == FN_NORETURN ? f->why : 0,
				      .flags = f->flags |
					       (f->status == FN_NORETURN ? IMAGE_FN_NORETURN : 0),
				      .thunk_to = f->thunk_to}))
			return false;
	}
	VEC_FREE(&c->fns); /* they are the image's now */
	return true;
}

#define RANGE_MAX 65535u

static bool emit_ranges(struct code *c, const struct layout *l, const uint32_t *new_of)
{
	struct image_data *d = c->d;
	for (size_t i = 0; i < l->list.cnt; i++) {
		uint32_t f = new_of[l->list.data[i].fn];
		if (f != CODE_NONE && d->funcs.data[f].range_cnt < RANGE_MAX)
			d->funcs.data[f].range_cnt++;
	}
	uint32_t total = 0;
	for (size_t i = 0; i < d->funcs.cnt; i++) {
		d->funcs.data[i].range_first = total;
		total += d->funcs.data[i].range_cnt;
	}
	_cleanup_free_ uint32_t *fill = alloc_array(d->funcs.cnt, sizeof(*fill));
	if (!fill || !VEC_RESERVE(&d->func_ranges, total))
		return false;
	d->func_ranges.cnt = total;
	/* The piece with the start comes first; the others follow by address. */
	for (size_t i = 0; i < d->funcs.cnt; i++)
		fill[i] = 1;
	for (size_t i = 0; i < l->list.cnt; i++) {
		const struct code_piece *p = &l->list.data[i];
		uint32_t f = new_of[p->fn];
		if (f == CODE_NONE)
			continue;
		struct image_func *func = &d->funcs.data[f];
		uint32_t k = p->from == func->loc ? 0 : fill[f];
		if (k >= func->range_cnt)
			continue;
		fill[f] += k != 0;
		d->func_ranges.data[func->range_first + k] =
			(struct image_range){p->from, p->to - p->from, f};
		func->size_len += p->to - p->from;
		if (func->range_cnt > 1)
			func->flags |= IMAGE_FN_SPLIT;
	}
	return true;
}

static uint32_t func_starting(const struct image_data *d, uint32_t loc)
{
	size_t lo = 0, hi = d->funcs.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (d->funcs.data[mid].loc < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->funcs.cnt && d->funcs.data[lo].loc == loc ? (uint32_t)lo : CODE_NONE;
}

struct counter {
	struct code *c;
	uint32_t *last;	       /* per function: the last that was counted as its caller, + 1 */
	uint32_t *last_import; /* the same per import */
};

/* What a record calls: a function or an import. */
static void count_call(struct counter *n, uint32_t f, const struct code_rec *r)
{
	struct code *c = n->c;
	struct image_func *funcs = c->d->funcs.data;
	bool is_call = r->flow == ARCH_FLOW_CALL || r->flow == ARCH_FLOW_ICALL;
	bool is_jump = r->flow == ARCH_FLOW_JUMP || r->flow == ARCH_FLOW_CJUMP ||
		       r->flow == ARCH_FLOW_IJUMP;
	if (r->target == LOC_NONE || (!is_call && !is_jump))
		return;
	uint32_t import = code_import_of(c, r->target);
	if (import != CODE_NONE) {
		funcs[f].callee_cnt += n->last_import[import] != f + 1;
		n->last_import[import] = f + 1;
		return;
	}
	if (r->flow == ARCH_FLOW_ICALL || r->flow == ARCH_FLOW_IJUMP)
		return;
	uint32_t g = func_starting(c->d, r->target);
	if (g == CODE_NONE || (is_jump && g == f) || n->last[g] == f + 1)
		return;
	n->last[g] = f + 1;
	funcs[g].caller_cnt++;
	funcs[f].callee_cnt++;
}

/* One jump to another function or import, at most behind a mark where indirect branches land. */
static void find_thunk(struct code *c, struct image_func *f, uint32_t insn_cnt)
{
	if (f->thunk_to != LOC_NONE || f->range_cnt != 1 || f->block_cnt != 1 || insn_cnt > 2)
		return;
	const struct image_range *range = &c->d->func_ranges.data[f->range_first];
	uint32_t at = code_next(c, c->rec_bits, range->loc, range->loc + range->len);
	if (at >= range->loc + range->len)
		return;
	const struct code_rec *r = &c->recs[code_rec_at(c, at)];
	uint32_t import = code_import_of(c, r->target);
	if (insn_cnt == 2 && !code_has(c, c->pads, range->loc))
		return;
	if ((r->flow == ARCH_FLOW_IJUMP || r->flow == ARCH_FLOW_JUMP) && import != CODE_NONE)
		f->thunk_to = c->d->imports.data[import].loc;
	else if (r->flow == ARCH_FLOW_JUMP && code_in(c, r->target) &&
		 code_has(c, c->starts, r->target))
		f->thunk_to = r->target;
	if (f->thunk_to != LOC_NONE)
		f->flags = (f->flags & ~(uint32_t)IMAGE_FN_TAIL) | IMAGE_FN_THUNK;
}

static uint32_t count_bits(const struct code *c, const uint64_t *bits, uint32_t from, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t at = code_next(c, bits, from, to); at < to;
	     at = code_next(c, bits, at + 1, to))
		n++;
	return n;
}

static void why_noreturn(struct image_func *f, bool has_call, bool has_stop)
{
	if (f->why_noreturn == IMAGE_NORETURN_CALLEE && !has_call)
		f->why_noreturn = has_stop ? IMAGE_NORETURN_STOP : IMAGE_NORETURN_LOOP;
}

static void count_func(struct counter *n, uint32_t f)
{
	struct code *c = n->c;
	struct image_func *func = &c->d->funcs.data[f];
	uint32_t insn_cnt = 0;
	bool has_call = false;
	bool has_stop = false;
	for (uint32_t k = 0; k < func->range_cnt; k++) {
		const struct image_range *range = &c->d->func_ranges.data[func->range_first + k];
		uint32_t to = range->loc + range->len;
		func->block_cnt += count_bits(c, c->leaders, range->loc, to);
		if (insn_cnt <= 2 && range->len <= 64)
			insn_cnt += count_bits(c, c->items, range->loc, to);
		else
			insn_cnt = 3;
		for (uint32_t i = code_rec_at(c, range->loc); i < c->rec_cnt && c->recs[i].loc < to;
		     i++) {
			const struct code_rec *r = &c->recs[i];
			if (c->owner[i] == CODE_NONE)
				continue;
			has_call |= r->flow == ARCH_FLOW_CALL || r->flow == ARCH_FLOW_ICALL;
			has_stop |= r->flow == ARCH_FLOW_STOP;
			count_call(n, f, r);
		}
	}
	find_thunk(c, func, insn_cnt);
	why_noreturn(func, has_call, has_stop);
}

static void mark_exports(struct image_data *d)
{
	for (size_t i = 0; i < d->symbols.cnt; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		uint32_t f = s->flags & IMAGE_SYM_EXPORT && s->loc != LOC_NONE
				     ? func_starting(d, s->loc)
				     : CODE_NONE;
		if (f != CODE_NONE)
			d->funcs.data[f].flags |= IMAGE_FN_EXPORT;
	}
}

static bool emit_funcs(struct code *c)
{
	struct layout l = {.c = c};
	uint32_t *order = alloc_array(c->fns.cnt, sizeof(*order));
	uint32_t *new_of = alloc_array(c->fns.cnt, sizeof(*new_of));
	bool ok = order && new_of && lay_out(&l) && order_funcs(c, &l, order, new_of) &&
		  emit_ranges(c, &l, new_of);
	VEC_FREE(&l.list);
	free(order);
	free(new_of);
	if (!ok)
		return false;
	struct counter n = {.c = c};
	n.last = alloc_array(c->d->funcs.cnt, sizeof(*n.last));
	n.last_import = alloc_array(c->d->imports.cnt, sizeof(*n.last_import));
	ok = n.last && n.last_import;
	for (uint32_t i = 0; ok && i < c->d->funcs.cnt; i++)
		count_func(&n, i);
	free(n.last);
	free(n.last_import);
	mark_exports(c->d);
	return ok;
}

static void set_main(struct image_data *d)
{
	struct image_meta *m = &d->meta;
	if (m->main_loc != LOC_NONE && func_starting(d, m->main_loc) != CODE_NONE)
		return;
	if (m->entry_loc != LOC_NONE && func_starting(d, m->entry_loc) != CODE_NONE)
		m->main_loc = m->entry_loc;
	else if (d->funcs.cnt)
		m->main_loc = d->funcs.data[0].loc;
}

struct err *code_emit(struct code *c, uint64_t **ret_code_bits)
{
	struct image_data *d = c->d;
	uint64_t *code_bits = alloc_array(bits_words(d->loc_cnt) + 1, sizeof(*code_bits));
	if (!code_bits)
		return &err_nomem;
	if (c->regions.cnt) {
		adopt_exts(c);
		drop_unreached(c);
		/* Nothing is discovered any more; what only that needs goes before the image grows. */
		VEC_FREE(&c->waits);
		VEC_FREE(&c->queue);
		map_fini(&c->fn_at);
		emit_bits(c, code_bits);
		if (c->has_failed || !emit_funcs(c) || !emit_ref_xrefs(c) || !emit_rec_xrefs(c) ||
		    !emit_tables(c)) {
			free(code_bits);
			return &err_nomem;
		}
	}
	set_main(d);
	*ret_code_bits = code_bits;
	return NULL;
}
