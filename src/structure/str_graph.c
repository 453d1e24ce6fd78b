/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/str_int.h"

#include <stdlib.h>
#include <string.h>

/* What is known of a graph: order, dominators (Lengauer and Tarjan 1979), natural loops. */

struct err *str_graph_check(const struct str_graph *g)
{
	if (!g->block_cnt || g->block_cnt >= STR_NONE / 4)
		return err_new(ERR_BAD_INPUT, "a graph of %u blocks", g->block_cnt);
	for (uint32_t b = 0; b < g->block_cnt; b++) {
		const struct str_block *k = &g->blocks[b];
		bool has_first = k->end == STR_END_GOTO || k->end == STR_END_COND, has_second = k->end == STR_END_COND || k->end == STR_END_SWITCH;
		bool is_bad = k->end > STR_END_LEAVE || (has_first && k->to[0] >= g->block_cnt) || (has_second && k->to[1] >= g->block_cnt);
		if (!is_bad && k->end == STR_END_SWITCH) {
			is_bad = k->first_case > g->case_cnt || k->case_cnt > g->case_cnt - k->first_case;
			for (uint32_t i = 0; i < k->case_cnt && !is_bad; i++)
				is_bad = g->cases[k->first_case + i].to >= g->block_cnt;
		}
		if (is_bad)
			return err_new(ERR_BAD_INPUT, "block %u of a graph leads to a block that is not there", b);
	}
	return NULL;
}

uint32_t *str_skip(struct arena *a, const struct str_graph *g)
{
	uint32_t *skip = ARENA_RAW_ARRAY(a, uint32_t, g->block_cnt), *path = ARENA_RAW_ARRAY(a, uint32_t, g->block_cnt);
	if (!skip || !path)
		return NULL;
	enum { UNKNOWN = STR_NONE, ON_PATH = STR_NONE - 1 };
	memset(skip, 0xff, sizeof(*skip) * g->block_cnt);
	for (uint32_t b = 0; b < g->block_cnt; b++) {
		uint32_t cnt = 0, at = b, end;
		while (skip[at] == UNKNOWN && g->blocks[at].end == STR_END_GOTO && !g->blocks[at].cost) {
			skip[at] = ON_PATH;
			path[cnt++] = at;
			at = g->blocks[at].to[0];
		}
		/* Of a ring of them, one stays. */
		end = skip[at] == UNKNOWN || skip[at] == ON_PATH ? at : skip[at];
		skip[at] = end;
		while (cnt > 0)
			skip[path[--cnt]] = end;
	}
	return skip;
}

uint32_t str_succ_cnt(const struct str_work *w, uint32_t b)
{
	switch (w->end[b]) {
	case STR_END_GOTO:
		return 1;
	case STR_END_COND:
		return 2;
	case STR_END_SWITCH:
		return w->tgt_first[b + 1] - w->tgt_first[b];
	default:
		return 0;
	}
}

/* In ascending order. */
uint32_t str_succ(const struct str_work *w, uint32_t b, uint32_t i)
{
	if (w->end[b] == STR_END_SWITCH)
		return w->tgts[w->tgt_first[b] + i];
	const uint32_t *to = &w->to[2 * b];
	if (w->end[b] == STR_END_GOTO)
		return to[0];
	return (to[0] < to[1]) == !i ? to[0] : to[1];
}

/* --- order ------------------------------------------------------------------------------------------------------ */
/* What nobody reaches does not change what is. */
static bool counts(const struct str_work *w, uint32_t from, uint32_t to)
{
	return w->is_main[from] ? from != str_top(w) || !to || !w->is_main[to] : !w->is_main[to];
}

struct search {
	struct frame {
		uint32_t block, left;
	} *stack;
	bool *seen;
	uint32_t *post;
	uint32_t pre_cnt, post_cnt;
	bool is_main_known;
};

/* Later blocks are searched first, so that of two which may stand in either order the earlier one comes first. */
static void search(struct str_work *w, struct search *s, uint32_t from)
{
	uint32_t depth = 0;
	s->stack[depth++] = (struct frame){from, str_succ_cnt(w, from)};
	s->seen[from] = true;
	w->pre_no[from] = w->pre_parent[s->pre_cnt] = s->pre_cnt;
	w->pre[s->pre_cnt++] = from;
	while (depth) {
		struct frame *f = &s->stack[depth - 1];
		if (!f->left) {
			s->post[s->post_cnt++] = f->block;
			depth--;
			continue;
		}
		uint32_t to = str_succ(w, f->block, --f->left);
		if (s->seen[to] || (s->is_main_known && !counts(w, f->block, to)))
			continue;
		s->seen[to] = true;
		w->pre_parent[s->pre_cnt] = w->pre_no[f->block];
		w->pre_no[to] = s->pre_cnt;
		w->pre[s->pre_cnt++] = to;
		s->stack[depth++] = (struct frame){to, str_succ_cnt(w, to)};
	}
}

/* What the block before all others leads to: the entry, and where what cannot be reached begins. */
static void find_roots(struct str_work *w, struct search *s, bool *has_pred)
{
	uint32_t top = str_top(w), cnt = w->tgt_first[top];
	search(w, s, 0);
	memcpy(w->is_main, s->seen, w->n * sizeof(*s->seen));
	for (uint32_t b = 0; b < top; b++) {
		for (uint32_t i = 0, n = w->is_gone[b] ? 0 : str_succ_cnt(w, b); i < n; i++)
			has_pred[str_succ(w, b, i)] = true;
	}
	w->tgts[cnt++] = 0;
	for (unsigned any = 0; any < 2; any++) {
		for (uint32_t b = 0; b < top; b++) {
			if (s->seen[b] || w->is_gone[b] || w->skip[b] != b || (!any && has_pred[b]))
				continue;
			search(w, s, b);
			w->tgts[cnt++] = b;
		}
	}
	w->tgt_first[top + 1] = cnt;
}

bool str_order(struct str_work *w)
{
	struct search s = {.stack = ARENA_RAW_ARRAY(w->a, struct frame, w->n), .seen = ARENA_ARRAY(w->a, bool, w->n),
			   .post = ARENA_RAW_ARRAY(w->a, uint32_t, w->n)};
	bool *has_pred = ARENA_ARRAY(w->a, bool, w->n);
	w->is_main = ARENA_ARRAY(w->a, bool, w->n);
	w->rpo = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->rpo_no = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->pre = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->pre_no = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->pre_parent = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	if (!s.stack || !s.seen || !s.post || !has_pred || !w->is_main || !w->rpo || !w->rpo_no || !w->pre || !w->pre_no || !w->pre_parent)
		return false;
	find_roots(w, &s, has_pred);
	w->is_main[str_top(w)] = true;
	memset(s.seen, 0, w->n * sizeof(*s.seen));
	s.pre_cnt = s.post_cnt = 0;
	s.is_main_known = true;
	memset(w->rpo_no, 0xff, sizeof(*w->rpo_no) * w->n);
	search(w, &s, str_top(w));
	w->rpo_cnt = s.post_cnt;
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		w->rpo[i] = s.post[w->rpo_cnt - 1 - i];
		w->rpo_no[w->rpo[i]] = i;
	}
	return true;
}

bool str_edges(struct str_work *w)
{
	w->pred_first = ARENA_ARRAY(w->a, uint32_t, (size_t)w->n + 2);
	if (!w->pred_first)
		return false;
	uint32_t total = 0;
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		uint32_t b = w->rpo[i], cnt = str_succ_cnt(w, b);
		for (uint32_t k = 0; k < cnt; k++) {
			bool is_edge = counts(w, b, str_succ(w, b, k));
			total += is_edge;
			w->pred_first[str_succ(w, b, k) + 2] += is_edge;
		}
	}
	w->preds = ARENA_RAW_ARRAY(w->a, uint32_t, (size_t)total + 1);
	if (!w->preds)
		return false;
	for (uint32_t b = 0; b < w->n; b++)
		w->pred_first[b + 2] += w->pred_first[b + 1];
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		uint32_t b = w->rpo[i], cnt = str_succ_cnt(w, b);
		for (uint32_t k = 0; k < cnt; k++) {
			if (counts(w, b, str_succ(w, b, k)))
				w->preds[w->pred_first[str_succ(w, b, k) + 1]++] = b;
		}
	}
	return true;
}

/* --- dominators, all by place in the order of the search --------------------------------------------------- */
struct forest {
	uint32_t *up, *label, *semi, *path;
};

static uint32_t eval(struct forest *f, uint32_t v)
{
	if (f->up[v] == STR_NONE)
		return v;
	uint32_t cnt = 0, at = v;
	for (; f->up[f->up[at]] != STR_NONE; at = f->up[at])
		f->path[cnt++] = at;
	while (cnt > 0) {
		uint32_t x = f->path[--cnt], above = f->up[x];
		if (f->semi[f->label[above]] < f->semi[f->label[x]])
			f->label[x] = f->label[above];
		f->up[x] = f->up[above];
	}
	return f->label[v];
}

static bool find_idoms(struct str_work *w)
{
	uint32_t n = w->rpo_cnt;
	struct forest f = {ARENA_RAW_ARRAY(w->a, uint32_t, n), ARENA_RAW_ARRAY(w->a, uint32_t, n), ARENA_RAW_ARRAY(w->a, uint32_t, n),
			   ARENA_RAW_ARRAY(w->a, uint32_t, n)};
	uint32_t *bucket = ARENA_RAW_ARRAY(w->a, uint32_t, n), *bucket_next = ARENA_RAW_ARRAY(w->a, uint32_t, n);
	uint32_t *dom = ARENA_RAW_ARRAY(w->a, uint32_t, n);
	if (!f.up || !f.label || !f.semi || !f.path || !bucket || !bucket_next || !dom)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		f.up[i] = bucket[i] = STR_NONE;
		f.label[i] = f.semi[i] = i;
	}
	dom[0] = 0;
	for (uint32_t i = n; i-- > 1;) {
		uint32_t b = w->pre[i], parent = w->pre_parent[i];
		for (uint32_t k = w->pred_first[b]; k < w->pred_first[b + 1]; k++) {
			uint32_t u = eval(&f, w->pre_no[w->preds[k]]);
			if (f.semi[u] < f.semi[i])
				f.semi[i] = f.semi[u];
		}
		bucket_next[i] = bucket[f.semi[i]];
		bucket[f.semi[i]] = i;
		f.up[i] = parent;
		for (uint32_t v = bucket[parent]; v != STR_NONE; v = bucket_next[v]) {
			uint32_t u = eval(&f, v);
			dom[v] = f.semi[u] < f.semi[v] ? u : parent;
		}
		bucket[parent] = STR_NONE;
	}
	for (uint32_t i = 1; i < n; i++) {
		if (dom[i] != f.semi[i])
			dom[i] = dom[dom[i]];
		w->idom[w->pre[i]] = w->pre[dom[i]];
	}
	w->idom[str_top(w)] = STR_NONE;
	return true;
}

bool str_dominators(struct str_work *w)
{
	w->idom = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->dom_no = ARENA_ARRAY(w->a, uint32_t, w->n);
	w->dom_size = ARENA_ARRAY(w->a, uint32_t, w->n);
	w->weight = ARENA_ARRAY(w->a, uint32_t, w->n);
	uint32_t *used = ARENA_ARRAY(w->a, uint32_t, w->n);
	if (!w->idom || !w->dom_no || !w->dom_size || !w->weight || !used || !find_idoms(w))
		return false;
	for (uint32_t i = w->rpo_cnt; i-- > 0;) {
		uint32_t b = w->rpo[i];
		w->dom_size[b]++;
		w->weight[b] += w->cost[b] + 1;
		if (!i)
			continue;
		w->dom_size[w->idom[b]] += w->dom_size[b];
		w->weight[w->idom[b]] += w->weight[b];
	}
	for (uint32_t i = 1; i < w->rpo_cnt; i++) {
		uint32_t b = w->rpo[i], up = w->idom[b];
		w->dom_no[b] = w->dom_no[up] + 1 + used[up];
		used[up] += w->dom_size[b];
	}
	return true;
}

/* --- loops --------------------------------------------------------------------------------------------------- */
static uint32_t find_top(uint32_t *top, uint32_t b)
{
	uint32_t at = b;
	while (top[at] != at)
		at = top[at];
	while (top[b] != at) {
		uint32_t next = top[b];
		top[b] = at;
		b = next;
	}
	return at;
}

/* Loops from the inside out: each found one is a single block to those around it. `outer` becomes the header of the next loop around
 * a block, or around the loop that a header begins. */
static bool collect(struct str_work *w, uint32_t *outer)
{
	uint32_t *top = ARENA_RAW_ARRAY(w->a, uint32_t, w->n), *work = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	if (!top || !work)
		return false;
	for (uint32_t b = 0; b < w->n; b++)
		top[b] = b;
	for (uint32_t i = w->rpo_cnt; i-- > 0;) {
		uint32_t h = w->rpo[i], cnt = 0;
		for (uint32_t k = w->pred_first[h]; k < w->pred_first[h + 1]; k++) {
			uint32_t p = w->preds[k];
			if (!str_dominates(w, h, p))
				continue;
			w->is_header[h] = true;
			p = find_top(top, p);
			if (p != h) {
				top[p] = outer[p] = h;
				work[cnt++] = p;
			}
		}
		while (cnt > 0) {
			uint32_t b = work[--cnt];
			for (uint32_t k = w->pred_first[b]; k < w->pred_first[b + 1]; k++) {
				uint32_t p = find_top(top, w->preds[k]);
				if (p == h || p == b)
					continue;
				top[p] = outer[p] = h;
				work[cnt++] = p;
			}
		}
	}
	return true;
}

bool str_loops(struct str_work *w)
{
	uint32_t *outer = ARENA_RAW_ARRAY(w->a, uint32_t, w->n), *depth = ARENA_ARRAY(w->a, uint32_t, w->n);
	w->loop = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->loop_up = ARENA_RAW_ARRAY(w->a, uint32_t, w->n);
	w->is_header = ARENA_ARRAY(w->a, bool, w->n);
	w->in_cnt = ARENA_ARRAY(w->a, uint32_t, w->n);
	if (!outer || !depth || !w->loop || !w->loop_up || !w->is_header || !w->in_cnt)
		return false;
	memset(outer, 0xff, sizeof(*outer) * w->n);
	memset(w->loop, 0xff, sizeof(*w->loop) * w->n);
	memset(w->loop_up, 0xff, sizeof(*w->loop_up) * w->n);
	if (!collect(w, outer))
		return false;
	/* Headers come before what is in their loops. */
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		uint32_t b = w->rpo[i], around = outer[b] == STR_NONE ? STR_NONE : w->loop[outer[b]];
		uint32_t above = around == STR_NONE ? 0 : depth[around];
		w->is_header[b] = w->is_header[b] && above < STR_LOOP_DEPTH_MAX;
		w->loop[b] = w->is_header[b] ? b : around;
		w->loop_up[b] = around;
		depth[b] = above + w->is_header[b];
	}
	for (uint32_t i = 0; i < w->rpo_cnt; i++) {
		uint32_t b = w->rpo[i];
		for (uint32_t k = w->pred_first[b]; k < w->pred_first[b + 1]; k++)
			w->in_cnt[b] += !str_is_back(w, w->preds[k], b);
	}
	return true;
}
