/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_func.h"

#include "tui/tui_int.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 1024          /* lines asked for at once */
#define LINES_MAX 8000000u
#define FULL_W 84           /* of text; what is longer ends in an ellipsis */
#define SHORT_W 44
#define PORTS_W_MAX 260     /* a box grows with its edges up to here */

struct maker {
	struct ses_snap *sn;
	const struct ses_call *call;
	const struct tui_graph_ask *ask;
	struct tui_graph_func *f;
	struct cells measure;     /* no cells: only the character set */
	struct arena temp;
	VEC(uint64_t) lines;
};

static int by_address(const void *x, const void *y, void *ctx)
{
	const struct tui_graph_block *b = ctx;
	uint64_t a = b[*(const uint32_t *)x].va;
	uint64_t c = b[*(const uint32_t *)y].va;
	return a < c ? -1 : a > c;
}

static struct ses_text keep(struct maker *m, struct ses_text s)
{
	char *copy = arena_strndup(&m->f->arena, s.s, s.len);
	return copy ? (struct ses_text){copy, s.len} : (struct ses_text){"", 0};
}

static int32_t line_width(const struct maker *m, const struct ses_head *h)
{
	int w = tui_line_column(&m->measure, h, h->text.len);
	if (h->comment.len)
		w += 4 + cells_text_width(&m->measure, h->comment.s, h->comment.len);
	return MIN(w, FULL_W);
}

bool tui_graph_is_line(const struct ses_head *h)
{
	return h->kind != SES_HEAD_FUNC && h->kind != SES_HEAD_LABEL && h->kind != SES_HEAD_SEGMENT && h->kind != SES_HEAD_ALIGN;
}

/* The items of blocks first .. last (places in by_va) that follow each other without a hole. */
static struct err *run_lines(struct maker *m, uint32_t first, uint32_t last)
{
	struct tui_graph_func *f = m->f;
	uint64_t at = f->blocks[f->by_va[first]].va;
	uint64_t end = f->blocks[f->by_va[last]].end;
	uint32_t k = first;
	f->blocks[f->by_va[k]].line = (uint32_t)m->lines.cnt;
	while (at < end) {
		struct ses_head *h;
		uint32_t cnt = 0;
		struct ses_at ask = {.va = at, .sub = SES_SUB_ITEM, .count = CHUNK};
		arena_reset(&m->temp);
		struct err *e = ses_heads(m->sn, m->call, &ask, &m->temp, &h, &cnt);
		if (e)
			return e;
		uint64_t before = at;
		for (uint32_t i = 0; i < cnt && h[i].va < end; i++) {
			at = h[i].kind == SES_HEAD_ALIGN ? h[i].va + MAX(h[i].size, 1) : at;
			if (!tui_graph_is_line(&h[i]))
				continue;
			while (h[i].va >= f->blocks[f->by_va[k]].end && k < last)
				f->blocks[f->by_va[++k]].line = (uint32_t)m->lines.cnt;
			struct tui_graph_block *b = &f->blocks[f->by_va[k]];
			b->line_cnt++;
			b->text_w = MAX(b->text_w, line_width(m, &h[i]));
			if (!VEC_PUSH(&m->lines, h[i].va))
				return &err_nomem;
			at = h[i].va + MAX(h[i].size, 1);
		}
		if (at == before || m->lines.cnt > LINES_MAX)
			break;
	}
	return m->lines.cnt > LINES_MAX ? err_new(ERR_BUDGET, "the function is too long for a graph") : NULL;
}

static struct err *lines(struct maker *m)
{
	struct tui_graph_func *f = m->f;
	struct err *e = NULL;
	for (uint32_t i = 0; i < f->cnt && !e;) {
		uint32_t last = i;
		while (last + 1 < f->cnt && f->blocks[f->by_va[last + 1]].va == f->blocks[f->by_va[last]].end)
			last++;
		e = run_lines(m, i, last);
		i = last + 1;
	}
	if (e)
		return e;
	f->line_va = ARENA_ARRAY(&f->arena, uint64_t, m->lines.cnt + 1);
	if (!f->line_va)
		return &err_nomem;
	if (m->lines.cnt)
		memcpy(f->line_va, m->lines.data, m->lines.cnt * sizeof(*f->line_va));
	return NULL;
}

static uint8_t kind_of(const char *name, bool is_condition)
{
	if (!strcmp(name, "taken"))
		return GRAPH_TAKEN;
	if (!strcmp(name, "switch"))
		return GRAPH_SWITCH;
	return !strcmp(name, "fall") && is_condition ? GRAPH_FALL : GRAPH_JUMP;
}

static struct err *blocks(struct maker *m)
{
	struct tui_graph_func *f = m->f;
	struct ses_block *b;
	struct arena temp = {0};
	struct err *e = ses_blocks(m->sn, m->call, f->va, &temp, &b, &f->cnt);
	if (!e && !f->cnt)
		e = err_new(ERR_NOT_FOUND, "0x%llx: the function has no blocks", (unsigned long long)f->va);
	uint32_t edges = 0;
	for (uint32_t i = 0; i < f->cnt && !e; i++)
		edges += b[i].succ_cnt;
	struct graph *g = &f->g;
	if (!e) {
		f->blocks = ARENA_ARRAY(&f->arena, struct tui_graph_block, f->cnt);
		f->by_va = ARENA_ARRAY(&f->arena, uint32_t, f->cnt);
		g->boxes = ARENA_ARRAY(&f->arena, struct graph_box, f->cnt);
		g->edges = ARENA_ARRAY(&f->arena, struct graph_edge, (size_t)edges + 1);
		if (!f->blocks || !f->by_va || !g->boxes || !g->edges)
			e = &err_nomem;
	}
	for (uint32_t i = 0; i < f->cnt && !e; i++) {
		struct tui_graph_block *to = &f->blocks[i];
		*to = (struct tui_graph_block){.va = b[i].addr, .end = b[i].end,
					       .name = keep(m, ses_name_at(m->sn, b[i].addr, &temp))};
		for (uint32_t k = 0; k < b[i].succ_cnt; k++)
			to->is_condition = to->is_condition || !strcmp(b[i].succ[k].kind, "taken");
		for (uint32_t k = 0; k < b[i].succ_cnt; k++)
			g->edges[g->edge_cnt++] = (struct graph_edge){.from = i, .to = b[i].succ[k].id,
								      .kind = kind_of(b[i].succ[k].kind, to->is_condition)};
		f->by_va[i] = i;
		if (b[i].addr == f->va)
			f->entry = i;
	}
	arena_fini(&temp);
	if (!e)
		qsort_r(f->by_va, f->cnt, sizeof(*f->by_va), by_address, f->blocks);
	return e;
}

uint32_t tui_graph_row_cnt(const struct tui_graph_func *f, uint32_t block)
{
	uint32_t n = f->blocks[block].line_cnt;
	if (f->zoom == TUI_ZOOM_NAMES)
		return 0;
	return f->zoom == TUI_ZOOM_SHORT ? MIN(n, 2 * TUI_SHORT_LINES + 1) : n;
}

uint32_t tui_graph_row_of(const struct tui_graph_func *f, uint32_t block, uint32_t line)
{
	const struct tui_graph_block *b = &f->blocks[block];
	uint32_t rows = tui_graph_row_cnt(f, block);
	uint32_t at = line - b->line;
	if (rows >= b->line_cnt || at < TUI_SHORT_LINES)
		return rows ? MIN(at, rows - 1) : 0;
	uint32_t from_end = b->line_cnt - 1 - at;
	return from_end < TUI_SHORT_LINES ? rows - 1 - from_end : rows ? TUI_SHORT_LINES : 0;
}

uint32_t tui_graph_line_of(const struct tui_graph_func *f, uint32_t block, uint32_t row, bool *ret_is_gap)
{
	const struct tui_graph_block *b = &f->blocks[block];
	uint32_t rows = tui_graph_row_cnt(f, block);
	*ret_is_gap = rows && rows < b->line_cnt && row == TUI_SHORT_LINES;
	if (rows >= b->line_cnt || row <= TUI_SHORT_LINES)
		return b->line + row;
	return b->line + b->line_cnt - (rows - row);
}

void tui_graph_sizes(struct tui_graph_func *f)
{
	for (uint32_t i = 0; i < f->cnt; i++) {
		const struct tui_graph_block *b = &f->blocks[i];
		int32_t digits = (67 - __builtin_clzll(b->va | 1)) / 4;
		int32_t title = b->name.len ? (int32_t)MIN(b->name.len, 40) : digits;
		struct graph_box *box = &f->g.boxes[i];
		*box = (struct graph_box){.w = title + 2, .h = 1};
		if (f->zoom == TUI_ZOOM_NAMES)
			continue;
		box->h = (int32_t)tui_graph_row_cnt(f, i) + 2;
		box->w = MAX(title + 6, (f->zoom == TUI_ZOOM_SHORT ? MIN(b->text_w, SHORT_W) : b->text_w) + 4);
	}
	uint32_t run = 0;
	for (uint32_t i = 0; i < f->g.edge_cnt; i++) {
		struct graph_box *box = &f->g.boxes[f->g.edges[i].from];
		run = i && f->g.edges[i].from == f->g.edges[i - 1].from ? run + 1 : 1;
		box->w = MAX(box->w, (int32_t)MIN(2 * run + 1, PORTS_W_MAX));
	}
}

static struct err *make(struct maker *m)
{
	struct tui_graph_func *f = m->f;
	struct ses_func func;
	if (!ses_func_at(m->sn, m->ask->va, &m->temp, &func))
		return err_new(ERR_NOT_FOUND, "0x%llx: is in no function", (unsigned long long)m->ask->va);
	f->va = func.addr;
	f->zoom = m->ask->zoom;
	f->name = keep(m, func.name);
	struct err *e = blocks(m);
	if (!e)
		e = lines(m);
	if (e)
		return e;
	tui_graph_sizes(f);
	f->g.box_cnt = f->cnt;
	f->g.entry = f->entry;
	f->g.cancel = m->ask->cancel;
	e = graph_layout(&f->g, &f->arena);
	f->g.cancel = NULL;
	return e;
}

struct err *tui_graph_func_new(struct ses_snap *sn, const struct ses_call *call, const struct tui_graph_ask *ask,
			       struct tui_graph_func **ret)
{
	if (ask->kind != TUI_AROUND_NONE)
		return tui_graph_around_new(sn, call, ask, ret);
	struct maker m = {.sn = sn, .call = call, .ask = ask, .f = calloc(1, sizeof(*m.f)), .measure = {.is_ascii = ask->is_ascii}};
	if (!m.f)
		return &err_nomem;
	struct err *e = make(&m);
	arena_fini(&m.temp);
	VEC_FREE(&m.lines);
	if (e)
		tui_graph_func_free(take_ptr(m.f));
	*ret = m.f;
	return e;
}

void tui_graph_func_free(struct tui_graph_func *f)
{
	if (!f)
		return;
	arena_fini(&f->arena);
	free(f);
}

bool tui_graph_block_at(const struct tui_graph_func *f, uint64_t va, uint32_t *ret)
{
	uint32_t lo = 0;
	uint32_t hi = f->cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (f->blocks[f->by_va[mid]].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret = lo ? f->by_va[lo - 1] : 0;
	return lo && va < f->blocks[*ret].end;
}

uint32_t tui_graph_line_at(const struct tui_graph_func *f, uint32_t block, uint64_t va)
{
	const struct tui_graph_block *b = &f->blocks[block];
	uint32_t lo = b->line;
	uint32_t hi = b->line + b->line_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (f->line_va[mid] <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > b->line ? lo - 1 : b->line;
}
