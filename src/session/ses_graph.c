/* SPDX-License-Identifier: Apache-2.0 */
/* References, the blocks of a function, and who calls whom. All of it is read off the image's reference tables. */
#include "session/ses_int.h"

#include <string.h>

/* --- references --- */

#define SPAN_MAX 64

/* Slices of the reference tables that together are the answer. */
struct xref_spans {
	uint32_t first[SPAN_MAX], cnt[SPAN_MAX];
	uint32_t n;
	bool is_rev;
};

static void xref_span_add(struct ses_snap *sn, struct xref_spans *s, uint32_t from, uint32_t last)
{
	if (from == LOC_NONE || s->n == SPAN_MAX)
		return;
	uint32_t first;
	uint32_t cnt = s->is_rev ? image_xrefs_to(sn->im, from, last, &first) : image_xrefs_from(sn->im, from, last, &first);
	if (!cnt)
		return;
	s->first[s->n] = first;
	s->cnt[s->n++] = cnt;
}

/* An import is one thing with three addresses: its stub, its slot and the place that stands for it. */
static void xref_spans_to(struct ses_snap *sn, struct xref_spans *s, uint32_t loc)
{
	const struct image_import *imp = image_import_at(sn->im, loc);
	if (imp) {
		xref_span_add(sn, s, imp->loc, imp->loc);
		xref_span_add(sn, s, imp->got_loc, imp->got_loc);
		xref_span_add(sn, s, imp->plt_loc, imp->plt_loc);
		return;
	}
	uint32_t start = loc, len = 1;
	enum image_item_kind kind;
	(void)image_item_at(sn->im, loc, &start, &len, &kind);
	xref_span_add(sn, s, start, start + (len ? len - 1 : 0));
}

static void xref_spans_from(struct ses_snap *sn, struct xref_spans *s, uint32_t loc, bool whole_func)
{
	uint32_t func = whole_func ? image_func_at(sn->im, loc) : UINT32_MAX;
	if (func != UINT32_MAX) {
		uint32_t cnt;
		const struct image_range *r = image_func_ranges(sn->im, func, &cnt);
		for (uint32_t i = 0; i < cnt; i++)
			xref_span_add(sn, s, r[i].loc, r[i].loc + r[i].len - 1);
		return;
	}
	uint32_t start = loc, len = 1;
	enum image_item_kind kind;
	(void)image_item_at(sn->im, loc, &start, &len, &kind);
	xref_span_add(sn, s, start, start + (len ? len - 1 : 0));
}

static void xref_fill(struct ses_snap *sn, const struct image_xref *x, bool from, struct arena *a, struct ses_xref *ret)
{
	uint32_t cnt, f = image_func_at(sn->im, from ? x->to : x->from);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	*ret = (struct ses_xref){.from = space_va(sn->space, x->from), .to = space_va(sn->space, x->to),
				 .kind = ses_xref_name(x->kind), .has_func = f < cnt, .func = {"", 0},
				 .text = ses_line_text(sn, x->from, a)};
	if (ret->has_func) {
		ret->func_addr = space_va(sn->space, funcs[f].loc);
		ret->func = ses_func_name(sn, f, a);
	}
}

static bool xref_matches(struct ses_snap *sn, const struct ses_page *page, const struct image_xref *x, bool from)
{
	if (!page->filter || !*page->filter)
		return true;
	struct arena a = {0};
	struct ses_xref t;
	xref_fill(sn, x, from, &a, &t);
	bool ok = ses_filter_match(page->filter, t.func) || ses_filter_match(page->filter, ses_text_cstr(t.kind)) ||
		  ses_filter_match(page->filter, t.text);
	arena_fini(&a);
	return ok;
}

/* With a filter every reference is looked at; without one only the page's. */
static struct err *xref_page(struct ses_snap *sn, const struct ses_call *call, const struct xref_spans *s, struct ses_page *page,
			     struct arena *a, struct ses_xref **ret)
{
	bool from = !s->is_rev;
	uint64_t all = 0, pos = 0;
	bool has_filter = page->filter && *page->filter;
	for (uint32_t i = 0; i < s->n; i++)
		all += s->cnt[i];
	uint32_t limit = (uint32_t)MIN(page->limit ? page->limit : 1000, all), n = 0;
	struct ses_xref *out = ARENA_ARRAY(a, struct ses_xref, (size_t)limit + 1);
	struct err *e = out ? NULL : &err_nomem;
	for (uint32_t i = 0; i < s->n && !e && (has_filter || n < limit); i++) {
		uint32_t k = 0;
		if (!has_filter && page->offset > pos) {
			k = (uint32_t)MIN(page->offset - pos, s->cnt[i]);
			pos += k;
		}
		for (; k < s->cnt[i] && !e && (has_filter || n < limit); k++) {
			struct image_xref x;
			bool ok = s->is_rev ? image_xref_rev(sn->im, s->first[i] + k, &x) : image_xref_fwd(sn->im, s->first[i] + k, &x);
			if (!ok || !xref_matches(sn, page, &x, from))
				continue;
			if (pos++ >= page->offset && n < limit)
				xref_fill(sn, &x, from, a, &out[n++]);
			if (pos % 1024 == 0)
				e = ses_call_check(call);
		}
	}
	*ret = out;
	page->cnt = n;
	page->total = has_filter ? pos : all;
	return e;
}

struct err *ses_xrefs(struct ses_snap *sn, const struct ses_call *call, const struct ses_xref_ask *ask, struct ses_page *page,
		      struct arena *a, struct ses_xref **ret)
{
	uint32_t loc = space_loc(sn->space, ask->va);
	if (loc == LOC_NONE)
		return err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)ask->va);
	struct xref_spans s = {.is_rev = !ask->from};
	if (ask->from)
		xref_spans_from(sn, &s, loc, ask->whole_func);
	else
		xref_spans_to(sn, &s, loc);
	return xref_page(sn, call, &s, page, a, ret);
}

/* --- blocks --- */

struct block_list {
	struct ses_block *b;
	uint32_t *locs; /* parallel: where each begins, in order of address */
	uint32_t cnt;
};

static uint32_t block_count(struct ses_snap *sn, const struct image_range *r, uint32_t cnt)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		n++;
		for (uint32_t loc = image_block_next(sn->im, r[i].loc + 1, r[i].loc + r[i].len); loc < r[i].loc + r[i].len;
		     loc = image_block_next(sn->im, loc + 1, r[i].loc + r[i].len))
			n++;
	}
	return n;
}

static uint32_t block_at(const struct block_list *l, uint32_t loc)
{
	for (uint32_t i = 0; i < l->cnt; i++) {
		if (l->locs[i] == loc)
			return i;
	}
	return UINT32_MAX;
}

/* Binary search where the list is long; the ranges after the first are in order, the first may lie anywhere. */
static uint32_t block_find(const struct block_list *l, const uint32_t *order, uint32_t loc)
{
	if (!order)
		return block_at(l, loc);
	uint32_t lo = 0, hi = l->cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (l->locs[order[mid]] < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < l->cnt && l->locs[order[lo]] == loc ? order[lo] : UINT32_MAX;
}

struct block_edges {
	struct ses_snap *sn;
	const struct block_list *list;
	const uint32_t *order;
	struct arena *a;
	struct ses_edge *out;
	uint32_t cnt, cap;
};

static void edge_add(struct block_edges *g, uint32_t loc, const char *kind)
{
	uint32_t id = loc == LOC_NONE ? UINT32_MAX : block_find(g->list, g->order, loc);
	if (id == UINT32_MAX)
		return;
	for (uint32_t i = 0; i < g->cnt; i++) {
		if (g->out[i].id == id && g->out[i].kind == kind)
			return;
	}
	if (g->cnt == g->cap) {
		uint32_t cap = g->cap ? g->cap * 2 : 4;
		struct ses_edge *grown = ARENA_ARRAY(g->a, struct ses_edge, cap);
		if (!grown)
			return;
		if (g->cnt)
			memcpy(grown, g->out, g->cnt * sizeof(*grown));
		g->out = grown;
		g->cap = cap;
	}
	g->out[g->cnt++] = (struct ses_edge){.id = id, .addr = space_va(g->sn->space, loc), .kind = kind};
}

static bool call_returns(struct ses_snap *sn, const struct arch_insn *insn)
{
	uint64_t va = insn->flow == ARCH_FLOW_CALL ? insn->target : insn->ref_cnt ? insn->refs[0].va : UINT64_MAX;
	uint32_t loc = space_loc(sn->space, va), cnt;
	const struct image_import *imp = loc == LOC_NONE ? NULL : image_import_at(sn->im, loc);
	if (imp && insn->flow == ARCH_FLOW_ICALL)
		loc = imp->plt_loc != LOC_NONE ? imp->plt_loc : imp->loc;
	uint32_t f = loc == LOC_NONE ? UINT32_MAX : image_func_starting(sn->im, loc);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	return f >= cnt || !(funcs[f].flags & IMAGE_FN_NORETURN);
}

static void switch_edges(struct block_edges *g, uint32_t jump_loc)
{
	const struct image_table *t = image_table_at(g->sn->im, jump_loc);
	for (uint32_t i = 0; t && i < t->target_cnt; i++)
		edge_add(g, image_table_target(g->sn->im, t, i), "switch");
	uint32_t first, n = t ? 0 : image_xrefs_from(g->sn->im, jump_loc, jump_loc, &first);
	for (uint32_t i = 0; i < n; i++) {
		struct image_xref x;
		if (image_xref_fwd(g->sn->im, first + i, &x) && x.kind == IMAGE_XREF_JUMP)
			edge_add(g, x.to, "jump");
	}
}

/* What follows from the block's last instruction; `end` is one past it. */
static void block_succ(struct block_edges *g, uint32_t end)
{
	uint32_t start, len;
	enum image_item_kind kind;
	size_t left;
	if (!image_item_at(g->sn->im, end - 1, &start, &len, &kind) || kind != IMAGE_CODE)
		return;
	const uint8_t *p = space_bytes(g->sn->space, start, &left);
	if (!p)
		return;
	struct arch_insn insn;
	g->sn->arch->decode(g->sn->arch, p, left, space_va(g->sn->space, start), &insn);
	switch ((enum arch_flow)insn.flow) {
	case ARCH_FLOW_NEXT:
		edge_add(g, end, "fall");
		break;
	case ARCH_FLOW_JUMP:
		edge_add(g, space_loc(g->sn->space, insn.target), "jump");
		break;
	case ARCH_FLOW_CJUMP:
		edge_add(g, space_loc(g->sn->space, insn.target), "taken");
		edge_add(g, end, "fall");
		break;
	case ARCH_FLOW_IJUMP:
		switch_edges(g, start);
		break;
	case ARCH_FLOW_CALL:
	case ARCH_FLOW_ICALL:
		if (call_returns(g->sn, &insn))
			edge_add(g, end, "fall");
		break;
	case ARCH_FLOW_RET:
	case ARCH_FLOW_STOP:
	case ARCH_FLOW_INVALID:
		break;
	}
}

static int order_cmp(const void *x, const void *y, void *ctx)
{
	const uint32_t *locs = ctx;
	uint32_t a = locs[*(const uint32_t *)x], b = locs[*(const uint32_t *)y];
	return a < b ? -1 : a > b;
}

static void block_list_fill(struct ses_snap *sn, const struct image_range *r, uint32_t cnt, struct block_list *l, uint32_t max)
{
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t end = r[i].loc + r[i].len;
		for (uint32_t loc = r[i].loc; loc < end && l->cnt < max;) {
			uint32_t next = image_block_next(sn->im, loc + 1, end);
			l->locs[l->cnt] = loc;
			l->b[l->cnt] = (struct ses_block){.id = l->cnt, .addr = space_va(sn->space, loc),
							  .end = space_va(sn->space, loc) + (next - loc)};
			l->cnt++;
			loc = next;
		}
	}
}

struct err *ses_blocks(struct ses_snap *sn, const struct ses_call *call, uint64_t func_va, struct arena *a, struct ses_block **ret,
		       uint32_t *ret_cnt)
{
	uint32_t loc = space_loc(sn->space, func_va), cnt;
	uint32_t f = loc == LOC_NONE ? UINT32_MAX : image_func_at(sn->im, loc);
	if (f == UINT32_MAX)
		return err_new(ERR_NOT_FOUND, "0x%llx: is in no function", (unsigned long long)func_va);
	const struct image_range *r = image_func_ranges(sn->im, f, &cnt);
	uint32_t max = block_count(sn, r, cnt);
	struct block_list l = {.b = ARENA_ARRAY(a, struct ses_block, (size_t)max + 1), .locs = ARENA_ARRAY(a, uint32_t, (size_t)max + 1)};
	uint32_t *order = ARENA_ARRAY(a, uint32_t, (size_t)max + 1);
	if (!l.b || !l.locs || !order)
		return &err_nomem;
	block_list_fill(sn, r, cnt, &l, max);
	for (uint32_t i = 0; i < l.cnt; i++)
		order[i] = i;
	qsort_r(order, l.cnt, sizeof(*order), order_cmp, l.locs);
	struct err *e = NULL;
	for (uint32_t i = 0; i < l.cnt && !e; i++) {
		struct block_edges g = {.sn = sn, .list = &l, .order = order, .a = a};
		block_succ(&g, l.locs[i] + (uint32_t)(l.b[i].end - l.b[i].addr));
		l.b[i].succ = g.out;
		l.b[i].succ_cnt = g.cnt;
		if (i % 1024 == 1023)
			e = ses_call_check(call);
	}
	*ret = l.b;
	*ret_cnt = l.cnt;
	return e;
}

/* --- call graph --- */

static int edge_cmp(const void *x, const void *y)
{
	const struct ses_edge_row *a = x, *b = y;
	if (a->caller != b->caller)
		return a->caller < b->caller ? -1 : 1;
	return a->callee < b->callee ? -1 : a->callee > b->callee;
}

/* The loc a reference calls: a function's start or an import; LOC_NONE when it is no call. */
static uint32_t edge_callee(struct ses_snap *sn, uint32_t func, const struct image_xref *x)
{
	if (x->kind != IMAGE_XREF_CALL && x->kind != IMAGE_XREF_JUMP)
		return LOC_NONE;
	uint32_t f = image_func_starting(sn->im, x->to);
	if (f == UINT32_MAX)
		return x->kind == IMAGE_XREF_CALL || image_import_at(sn->im, x->to) ? x->to : LOC_NONE;
	return x->kind == IMAGE_XREF_JUMP && f == func ? LOC_NONE : x->to;
}

static struct err *edges_make(struct ses_snap *sn, const struct ses_call *call)
{
	VEC(struct ses_edge_row) rows = {0};
	uint32_t cnt = image_xref_cnt(sn->im), func_cnt;
	const struct image_func *funcs = image_funcs(sn->im, &func_cnt);
	struct err *e = NULL;
	for (uint32_t i = 0; i < cnt && !e; i++) {
		struct image_xref x;
		if (i % 1024 == 1023)
			e = ses_call_check(call);
		if (!image_xref_fwd(sn->im, i, &x) || (x.kind != IMAGE_XREF_CALL && x.kind != IMAGE_XREF_JUMP))
			continue;
		uint32_t f = image_func_at(sn->im, x.from);
		uint32_t callee = f < func_cnt ? edge_callee(sn, f, &x) : LOC_NONE;
		if (callee != LOC_NONE && !VEC_PUSH(&rows, (struct ses_edge_row){funcs[f].loc, callee, 1}))
			e = &err_nomem;
	}
	if (e) {
		VEC_FREE(&rows);
		return e;
	}
	uint64_t n = 0;
	if (rows.cnt)
		qsort(rows.data, rows.cnt, sizeof(*rows.data), edge_cmp);
	for (size_t i = 0; i < rows.cnt; i++) {
		if (n && !edge_cmp(&rows.data[n - 1], &rows.data[i]))
			rows.data[n - 1].cnt++;
		else
			rows.data[n++] = rows.data[i];
	}
	sn->edges = rows.data;
	sn->edge_cnt = n;
	return NULL;
}

struct err *ses_edges(struct ses_snap *sn, const struct ses_call *call, const struct ses_edge_row **ret, uint64_t *ret_cnt)
{
	pthread_mutex_lock(&sn->lock);
	struct err *e = sn->has_edges ? NULL : edges_make(sn, call);
	sn->has_edges = sn->has_edges || !e;
	*ret = sn->edges;
	*ret_cnt = sn->edge_cnt;
	pthread_mutex_unlock(&sn->lock);
	return e;
}

static uint64_t edges_of(const struct ses_edge_row *rows, uint64_t cnt, uint32_t caller)
{
	uint64_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		if (rows[mid].caller < caller)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Marks in `wanted` the edges within `depth` calls of `root`, breadth first. */
static struct err *edges_reach(const struct ses_edge_row *rows, uint64_t cnt, uint32_t root, uint32_t depth, uint8_t *wanted)
{
	VEC(uint32_t) queue = {0};
	struct err *e = VEC_PUSH(&queue, root) ? NULL : &err_nomem;
	size_t level_end = queue.cnt;
	for (size_t i = 0; i < queue.cnt && depth && !e; i++) {
		uint32_t at = queue.data[i];
		for (uint64_t k = edges_of(rows, cnt, at); k < cnt && rows[k].caller == at && !e && !wanted[k]; k++) {
			wanted[k] = 1;
			if (!VEC_PUSH(&queue, rows[k].callee))
				e = &err_nomem;
		}
		if (i + 1 == level_end) {
			level_end = queue.cnt;
			depth--;
		}
	}
	VEC_FREE(&queue);
	return e;
}

struct err *ses_callgraph(struct ses_snap *sn, const struct ses_call *call, const struct ses_call_ask *ask, struct ses_page *page,
			  struct arena *a, struct ses_call_edge **ret)
{
	const struct ses_edge_row *rows;
	uint64_t cnt, total = 0;
	struct err *e = ses_edges(sn, call, &rows, &cnt);
	_cleanup_free_ uint8_t *wanted = NULL;
	if (!e && ask->func_va != UINT64_MAX) {
		uint32_t loc = space_loc(sn->space, ask->func_va);
		wanted = alloc_array(cnt, 1);
		e = wanted ? edges_reach(rows, cnt, loc, ask->depth, wanted) : &err_nomem;
	}
	uint32_t limit = (uint32_t)MIN(page->limit ? page->limit : 1000, cnt), n = 0;
	struct ses_call_edge *out = e ? NULL : ARENA_ARRAY(a, struct ses_call_edge, (size_t)limit + 1);
	if (e || !out)
		return e ? e : &err_nomem;
	for (uint64_t i = wanted || (page->filter && *page->filter) ? 0 : MIN(page->offset, cnt); i < cnt; i++) {
		if (wanted && !wanted[i])
			continue;
		if (page->filter && *page->filter && !ses_filter_match(page->filter, ses_name_loc(sn, rows[i].caller, a)) &&
		    !ses_filter_match(page->filter, ses_name_loc(sn, rows[i].callee, a)))
			continue;
		bool is_plain = !wanted && !(page->filter && *page->filter);
		if (!is_plain && total++ < page->offset)
			continue;
		if (n == limit) {
			if (is_plain)
				break;
			continue;
		}
		out[n++] = (struct ses_call_edge){.caller = space_va(sn->space, rows[i].caller),
						  .callee = space_va(sn->space, rows[i].callee), .count = rows[i].cnt,
						  .caller_name = ses_name_loc(sn, rows[i].caller, a),
						  .callee_name = ses_name_loc(sn, rows[i].callee, a)};
	}
	*ret = out;
	page->cnt = n;
	page->total = wanted || (page->filter && *page->filter) ? total : cnt;
	return NULL;
}
