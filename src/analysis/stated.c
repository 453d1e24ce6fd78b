/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stated.h"

#include "analysis/code.h"
#include "base/cleanup.h"

/*
 * What people stated, brought into the terms of the stages: zones of data that the sweep does not decode, points where it
 * must begin an instruction, starts and extents of functions, what is known of them, jump tables. The array of
 * statements comes from a journal and may hold anything.
 */
#define OPEN_LEN 4096u   /* of code outside of every region whose end nobody told */
#define ZONES_MAX (1u << 20)

/* --- zones --- */

static int compare_zones(const void *a, const void *b)
{
	const struct stated_zone *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* The zone that `it` is within its segment; false when it is none. */
static bool zone_of(const struct image_data *d, const struct analysis_item *it, struct stated_zone *ret)
{
	int i = space_seg_of_va(&d->space, it->va);
	if (i < 0 || d->segs.data[i].is_extern || it->kind > ANALYSIS_UNDEF)
		return false;
	const struct space_seg *seg = &d->segs.data[i];
	uint64_t off = it->va - seg->va, len = MIN(it->len, seg->mem_len - off);
	*ret = (struct stated_zone){.from = seg->loc + (uint32_t)off, .kind = it->kind, .unit = it->unit, .is_pointer = it->is_pointer,
				    .is_filed = off < seg->file_len};
	ret->to = ret->from + (uint32_t)len;
	if (stated_is_code(ret)) {
		ret->to = ret->is_filed ? ret->from + (uint32_t)MIN(len, seg->file_len - off) : ret->from;
		return ret->is_filed;
	}
	if (it->kind == ANALYSIS_STRING) {
		if (it->encoding >= IMAGE_ENC_COUNT || it->zero_len > 4 || it->zero_len > len || it->len != len ||
		    off + len > seg->file_len)
			return false;
		ret->encoding = it->encoding;
		ret->zero_len = it->zero_len;
	}
	return len > 0;
}

/* A zone that begins in the file's bytes and ends behind them is two. */
static bool push_zone(const struct image_data *d, const struct stated_zone *z, struct stated_zone *out, size_t *cnt)
{
	const struct space_seg *seg = &d->segs.data[space_seg_of_loc(&d->space, z->from)];
	uint64_t file_end = seg->loc + seg->file_len;
	out[*cnt] = *z;
	(*cnt)++;
	if (!z->is_filed || z->to <= file_end)
		return false;
	out[*cnt - 1].to = (uint32_t)file_end;
	out[*cnt] = *z;
	out[*cnt].from = (uint32_t)file_end;
	out[*cnt].is_filed = false;
	(*cnt)++;
	return true;
}

bool analysis_zones(const struct analysis_stated *s, const struct image_data *d, struct stated_zone **ret, size_t *ret_cnt)
{
	size_t item_cnt = s ? MIN(s->item_cnt, ZONES_MAX) : 0, cnt = 0, n = 0;
	*ret = NULL;
	*ret_cnt = 0;
	if (!item_cnt)
		return true;
	_cleanup_free_ struct stated_zone *all = alloc_array(2 * item_cnt, sizeof(*all));
	if (!all)
		return false;
	for (size_t i = 0; i < item_cnt; i++) {
		struct stated_zone z;
		if (zone_of(d, &s->items[i], &z))
			(void)push_zone(d, &z, all, &cnt);
	}
	if (cnt)
		qsort(all, cnt, sizeof(*all), compare_zones);
	for (size_t i = 0; i < cnt; i++) {
		struct stated_zone z = all[i];
		if (n && all[n - 1].from == z.from)
			continue; /* one address, one statement */
		if (n && all[n - 1].to > z.from) {
			all[n - 1].to = z.from;
			/* A text that lost its end is none. */
			if (all[n - 1].kind == ANALYSIS_STRING)
				n--;
		}
		all[n++] = z;
	}
	*ret = take_ptr(all);
	*ret_cnt = n;
	return true;
}

const struct stated_zone *analysis_zone_at(const struct stated_zone *zones, size_t cnt, uint32_t loc)
{
	size_t lo = 0, hi = cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (zones[mid].from <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && loc < zones[lo - 1].to ? &zones[lo - 1] : NULL;
}

uint32_t code_stated_data_end(const struct code *c, uint32_t loc)
{
	if (!c->zones.cnt)
		return loc;
	const struct stated_zone *z = analysis_zone_at(c->zones.data, c->zones.cnt, loc);
	return z && !stated_is_code(z) ? z->to : loc;
}

uint32_t code_stated_data_next(const struct code *c, uint32_t loc, uint32_t to)
{
	size_t lo = 0, hi = c->zones.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->zones.data[mid].to <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo < c->zones.cnt && c->zones.data[lo].from < to && stated_is_code(&c->zones.data[lo]))
		lo++;
	return lo < c->zones.cnt ? MAX(loc, MIN(c->zones.data[lo].from, to)) : to;
}

static int compare_flags(const void *a, const void *b)
{
	const struct stated_flags *x = a, *y = b;
	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	return (x->flags > y->flags) - (x->flags < y->flags);
}

struct err *code_stated_read(struct code *c)
{
	const struct analysis_stated *s = c->in->stated;
	const struct space *space = &c->d->space;
	if (!s)
		return NULL;
	if (!analysis_zones(s, c->d, &c->zones.data, &c->zones.cnt))
		return &err_nomem;
	for (size_t i = 0; i < s->flag_cnt && i < ZONES_MAX; i++) {
		const struct analysis_func_flags *f = &s->flags[i];
		uint32_t loc = space_loc(space, f->va);
		bool has_thunk = (f->flags & ANALYSIS_THUNK) && f->thunk_va != UINT64_MAX;
		if (loc != LOC_NONE &&
		    !VEC_PUSH(&c->flags, (struct stated_flags){loc, f->flags, has_thunk ? space_loc(space, f->thunk_va) : LOC_NONE}))
			return &err_nomem;
	}
	if (c->flags.cnt)
		qsort(c->flags.data, c->flags.cnt, sizeof(*c->flags.data), compare_flags);
	return NULL;
}

/* --- code --- */

/* Where the sweep has to go beyond what headers call executable. */
struct err *code_stated_regions(struct code *c)
{
	for (size_t i = 0; i < c->zones.cnt; i++) {
		const struct stated_zone *z = &c->zones.data[i];
		if (!stated_is_code(z))
			continue;
		const struct space_seg *seg = &c->d->segs.data[space_seg_of_loc(&c->d->space, z->from)];
		uint64_t end = seg->loc + seg->file_len;
		uint32_t to = z->to > z->from ? z->to : (uint32_t)MIN(end, (uint64_t)z->from + OPEN_LEN);
		if (i + 1 < c->zones.cnt)
			to = MIN(to, c->zones.data[i + 1].from);
		if (!VEC_PUSH(&c->regions, (struct code_region){z->from, to, true, true}))
			return &err_nomem;
	}
	return NULL;
}

static void mark_sync(struct code *c, uint32_t loc)
{
	if (code_in(c, loc))
		code_mark(c, c->sync, loc);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct code_ext *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/* The stated piece as an extent; false when it is none. */
static bool piece_of(const struct code *c, const struct analysis_piece *p, struct code_ext *ret)
{
	uint32_t start = space_loc(&c->d->space, p->func_va), from = space_loc(&c->d->space, p->va);
	const struct code_region *r = from == LOC_NONE ? NULL : code_region_of(c, from);
	if (!r || !p->len || start == LOC_NONE || !code_in(c, start))
		return false;
	*ret = (struct code_ext){.from = from, .to = p->len > r->to - from ? r->to : from + (uint32_t)p->len, .start = start,
				 .source = IMAGE_SRC_USER, .is_fragment = from != start, .is_stated = true};
	return true;
}

/* Stated pieces take their bytes from the extents that tables tell. What such a function had besides is nobody's. */
static struct err *put_pieces(struct code *c, const struct code_ext *stated, size_t cnt)
{
	VEC(struct code_ext) out = {0};
	bool ok = true;
	size_t k = 0;
	for (size_t i = 0; i < c->exts.cnt && ok; i++) {
		struct code_ext e = c->exts.data[i];
		for (; k < cnt && stated[k].to <= e.from && ok; k++)
			ok = VEC_PUSH(&out, stated[k]);
		bool is_ours = false;
		for (size_t m = k; m < cnt && stated[m].from < e.to; m++)
			is_ours = is_ours || stated[m].start == e.start;
		/* What is left of an extent before and between the pieces. */
		for (; k < cnt && stated[k].from < e.to && ok; k++) {
			struct code_ext head = e;
			head.to = stated[k].from;
			if (head.from < head.to && !is_ours)
				ok = VEC_PUSH(&out, head);
			e.is_fragment = e.is_fragment || stated[k].to > e.from;
			e.from = MAX(e.from, stated[k].to);
			if (stated[k].to > e.to)
				break; /* it goes on into the next extent */
			ok = ok && VEC_PUSH(&out, stated[k]);
		}
		if (e.from < e.to && !is_ours)
			ok = ok && VEC_PUSH(&out, e);
	}
	for (; k < cnt && ok; k++)
		ok = VEC_PUSH(&out, stated[k]);
	VEC_FREE(&c->exts);
	memcpy(&c->exts, &out, sizeof(c->exts));
	return ok ? NULL : &err_nomem;
}

static struct err *stated_pieces(struct code *c, const struct analysis_stated *s)
{
	size_t cnt = 0, n = 0, all_cnt = MIN(s->piece_cnt, (size_t)ZONES_MAX);
	_cleanup_free_ struct code_ext *all = alloc_array(all_cnt, sizeof(*all));
	if (!all)
		return &err_nomem;
	for (size_t i = 0; i < all_cnt; i++)
		cnt += piece_of(c, &s->pieces[i], &all[cnt]);
	if (!cnt)
		return NULL;
	qsort(all, cnt, sizeof(*all), compare_pieces);
	for (size_t i = 0; i < cnt; i++) {
		struct code_ext e = all[i];
		if (n && all[n - 1].from == e.from)
			continue;
		if (n)
			all[n - 1].to = MIN(all[n - 1].to, e.from);
		all[n++] = e;
	}
	for (size_t i = 0; i < n; i++) {
		mark_sync(c, all[i].from);
		mark_sync(c, all[i].to);
		mark_sync(c, all[i].start);
	}
	c->has_bounds = true;
	return put_pieces(c, all, n);
}

/* Entry `i` of a stated table, LOC_NONE when it leads nowhere. */
static uint32_t switch_target(const struct code *c, const struct analysis_switch *s, uint32_t i)
{
	uint64_t v;
	unsigned width = s->entry_bytes;
	uint32_t at = space_loc(&c->d->space, s->table_va + (uint64_t)i * width);
	if (at == LOC_NONE || !space_word(&c->d->space, at, width, &v))
		return LOC_NONE;
	if (s->is_signed && width < 8 && v >> (8 * width - 1))
		v |= UINT64_MAX << (8 * width);
	uint64_t va = s->base_va ? s->base_va + (v << s->shift) : v;
	if (c->arch->bits == 32)
		va = (uint32_t)va;
	return space_loc(&c->d->space, va);
}

static bool is_switch(const struct analysis_switch *s)
{
	bool is_width = s->entry_bytes == 1 || s->entry_bytes == 2 || s->entry_bytes == 4 || s->entry_bytes == 8;
	return is_width && s->shift <= 3 && s->entry_cnt && s->entry_cnt <= ANALYSIS_SWITCH_MAX;
}

struct err *code_stated_exts(struct code *c)
{
	const struct analysis_stated *s = c->in->stated;
	if (!s)
		return NULL;
	for (size_t i = 0; i < c->zones.cnt; i++) {
		mark_sync(c, c->zones.data[i].from);
		if (!stated_is_code(&c->zones.data[i]))
			mark_sync(c, c->zones.data[i].to);
	}
	uint64_t steps = 0;
	for (size_t i = 0; i < s->switch_cnt && steps < ZONES_MAX; i++) {
		if (!is_switch(&s->switches[i]))
			continue;
		steps += s->switches[i].entry_cnt;
		mark_sync(c, space_loc(&c->d->space, s->switches[i].jump_va));
		for (uint32_t k = 0; k < s->switches[i].entry_cnt; k++) {
			uint32_t to = switch_target(c, &s->switches[i], k);
			if (to != LOC_NONE)
				mark_sync(c, to);
		}
	}
	return s->piece_cnt ? stated_pieces(c, s) : NULL;
}

void code_stated_starts(struct code *c)
{
	for (size_t i = 0; i < c->zones.cnt; i++) {
		const struct stated_zone *z = &c->zones.data[i];
		if (z->kind == ANALYSIS_FUNC && code_has(c, c->items, z->from) &&
		    code_fn_add(c, z->from, IMAGE_SRC_USER) == CODE_NONE)
			c->has_failed = true;
	}
	for (size_t i = 0; i < c->exts.cnt && c->has_bounds; i++) {
		const struct code_ext *e = &c->exts.data[i];
		if (!e->is_stated || !code_has(c, c->items, e->start))
			continue;
		uint32_t fn = code_fn_add(c, e->start, IMAGE_SRC_USER);
		if (fn == CODE_NONE)
			c->has_failed = true;
		else
			c->fns.data[fn].is_bound = true;
	}
}

void code_stated_flags(const struct code *c, struct code_fn *f)
{
	size_t lo = 0, hi = c->flags.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->flags.data[mid].loc < f->loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->flags.cnt || c->flags.data[lo].loc != f->loc)
		return;
	const struct stated_flags *s = &c->flags.data[lo];
	if (s->flags & ANALYSIS_LIBRARY)
		f->flags |= IMAGE_FN_LIBRARY;
	if (s->flags & ANALYSIS_THUNK)
		f->flags |= IMAGE_FN_THUNK;
	if ((s->flags & ANALYSIS_THUNK) && s->thunk_loc != LOC_NONE)
		f->thunk_to = s->thunk_loc;
	if (s->flags & ANALYSIS_NORETURN) {
		f->status = FN_NORETURN;
		f->why = IMAGE_NORETURN_STATED;
	} else if (s->flags & ANALYSIS_RETURNS) {
		f->status = FN_RETURNS;
	}
}

/* --- jump tables --- */

static int compare_tables(const void *a, const void *b)
{
	const struct code_table *x = a, *y = b;
	return (x->rec > y->rec) - (x->rec < y->rec);
}

static struct err *put_table(struct code *c, const struct analysis_switch *s)
{
	uint32_t jump = space_loc(&c->d->space, s->jump_va), table = space_loc(&c->d->space, s->table_va);
	if (!is_switch(s) || jump == LOC_NONE || table == LOC_NONE || !code_has(c, c->rec_bits, jump))
		return NULL;
	uint32_t rec = code_rec_at(c, jump);
	if (c->recs[rec].flow != ARCH_FLOW_IJUMP)
		return NULL;
	struct code_table t = {.rec = rec, .t = {.jump_loc = jump, .table_loc = table, .index_loc = LOC_NONE, .low = s->low,
						 .target_first = (uint32_t)c->targets.cnt, .entry_bytes = s->entry_bytes,
						 .is_relative = s->base_va != 0}};
	if (!VEC_RESERVE(&c->targets, s->entry_cnt))
		return &err_nomem;
	for (; t.t.target_cnt < s->entry_cnt; t.t.target_cnt++) {
		uint32_t to = switch_target(c, s, t.t.target_cnt);
		if (to == LOC_NONE || !code_in(c, to))
			break; /* a table ends where an entry leads nowhere */
		c->targets.data[c->targets.cnt++] = to;
	}
	struct code_table *was = (struct code_table *)code_table_of(c, rec);
	if (!t.t.target_cnt)
		return NULL;
	if (was) {
		*was = t;
		return NULL;
	}
	if (!VEC_PUSH(&c->tables, t))
		return &err_nomem;
	qsort(c->tables.data, c->tables.cnt, sizeof(*c->tables.data), compare_tables);
	return NULL;
}

struct err *code_stated_tables(struct code *c)
{
	const struct analysis_stated *s = c->in->stated;
	uint64_t steps = 0;
	struct err *e = NULL;
	for (size_t i = 0; s && !e && i < s->switch_cnt && steps < ZONES_MAX; i++) {
		steps += is_switch(&s->switches[i]) ? s->switches[i].entry_cnt : 0;
		e = put_table(c, &s->switches[i]);
	}
	return e;
}

/* --- following --- */

/* Who owns code at `loc` that nobody reached: the function whose extent it lies in, or one that is never listed. */
static uint32_t owner_for(struct code *c, uint32_t loc)
{
	const struct code_ext *e = code_ext_of(c, loc);
	uint32_t fn = e ? code_fn_find(c, e->start) : CODE_NONE;
	if (fn != CODE_NONE)
		return fn;
	fn = (uint32_t)c->fns.cnt;
	struct code_fn f = {.loc = loc, .waiting = CODE_NONE, .resume = CODE_NONE, .thunk_to = LOC_NONE, .source = IMAGE_SRC_USER,
			    .is_loose = true};
	return VEC_PUSH(&c->fns, f) ? fn : CODE_NONE;
}

struct err *code_stated_flow(struct code *c)
{
	for (size_t i = 0; i < c->zones.cnt; i++) {
		const struct stated_zone *z = &c->zones.data[i];
		uint32_t fn = CODE_NONE;
		if (z->kind != ANALYSIS_CODE)
			continue;
		for (uint32_t at = z->from; at < MAX(z->to, z->from + 1); at = code_insn_end(c, at)) {
			if (!code_has(c, c->items, at) || code_has(c, c->covered, at))
				continue;
			if (fn == CODE_NONE)
				fn = owner_for(c, at);
			if (fn == CODE_NONE)
				return &err_nomem;
			code_flow_part(c, fn, at);
			struct err *e = code_flow(c);
			if (e || code_is_cancelled(c))
				return e;
		}
	}
	return NULL;
}
