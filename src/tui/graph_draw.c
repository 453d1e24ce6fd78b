/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_func.h"

#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/*
 * Paints the part of a graph that is on the screen. Lines are first gathered in a grid of the window's size, as which
 * sides of each cell they touch, and then become characters; boxes go over them. Nothing of the picture's size is
 * ever allocated. What kind an edge is, is said by a letter where it begins (T taken, F not taken), by double lines
 * for the way back, and only then by colour.
 */
#define MAP_W 26
#define MAP_H 11
#define MAP_MIN_W 56 /* of the window */
#define MAP_MIN_H 14
#define COMMENT_GAP 2

enum side { SIDE_UP = 1, SIDE_DOWN = 2, SIDE_LEFT = 4, SIDE_RIGHT = 8 };

struct mark {
	uint8_t sides, kinds;
	bool is_back, is_forward, is_bright;
};

struct painter {
	struct tui *t;
	struct tui_graph *v;
	struct tui_graph_func *f;
	struct cells *g;
	struct cells_rect r; /* the window */
	struct mark *marks;
	uint32_t cur;        /* block under the cursor */
	struct ses_text word;
};

static bool in_window(const struct painter *p, int32_t x, int32_t y)
{
	return x >= p->v->x && x < p->v->x + p->r.w && y >= p->v->y && y < p->v->y + p->r.h;
}

/* One character at a cell of the picture. */
static void put(struct painter *p, int32_t x, int32_t y, uint32_t cp, struct cells_style st)
{
	if (in_window(p, x, y))
		cells_put(p->g, p->r.x + x - p->v->x, p->r.y + y - p->v->y, cp, st);
}

static struct mark *mark_at(struct painter *p, int32_t x, int32_t y)
{
	return &p->marks[(y - p->v->y) * p->r.w + (x - p->v->x)];
}

static void gather(struct painter *p, const struct graph_line *l, bool is_bright)
{
	int32_t x0 = MAX(l->x0, p->v->x);
	int32_t x1 = MIN(l->x1, p->v->x + p->r.w - 1);
	int32_t y0 = MAX(l->y0, p->v->y);
	int32_t y1 = MIN(l->y1, p->v->y + p->r.h - 1);
	bool is_vertical = l->x0 == l->x1;
	for (int32_t y = y0; y <= y1; y++) {
		for (int32_t x = x0; x <= x1; x++) {
			struct mark *m = mark_at(p, x, y);
			if (is_vertical)
				m->sides |= (y > l->y0 || l->goes_up ? SIDE_UP : 0) | (y < l->y1 || l->goes_down ? SIDE_DOWN : 0);
			else
				m->sides |= (x > l->x0 ? SIDE_LEFT : 0) | (x < l->x1 ? SIDE_RIGHT : 0);
			m->kinds |= l->kinds;
			m->is_back |= l->is_back;
			m->is_forward |= !l->is_back;
			m->is_bright |= is_bright;
		}
	}
}

/* The edges that leave the block under the cursor stand out along their whole way. */
static void brighten(struct painter *p)
{
	const struct graph *g = &p->f->g;
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		struct graph_point *pt;
		uint32_t cnt;
		if (g->edges[i].from != p->cur)
			continue;
		struct err *e = graph_path(g, i, &p->t->frame_arena, &pt, &cnt);
		for (uint32_t k = 1; !e && k < cnt; k++) {
			struct graph_line l = {.x0 = MIN(pt[k - 1].x, pt[k].x), .x1 = MAX(pt[k - 1].x, pt[k].x),
					       .y0 = MIN(pt[k - 1].y, pt[k].y), .y1 = MAX(pt[k - 1].y, pt[k].y)};
			for (int32_t y = MAX(l.y0, p->v->y); y <= MIN(l.y1, p->v->y + p->r.h - 1); y++) {
				for (int32_t x = MAX(l.x0, p->v->x); x <= MIN(l.x1, p->v->x + p->r.w - 1); x++)
					mark_at(p, x, y)->is_bright = true;
			}
		}
		err_free(e);
	}
}

static uint32_t line_glyph(const struct cells *g, const struct mark *m)
{
	/* By sides: up 1, down 2, left 4, right 8. */
	static const uint16_t single[16] = {' ',    0x2502, 0x2502, 0x2502, 0x2500, 0x256f, 0x256e, 0x2524,
					    0x2500, 0x2570, 0x256d, 0x251c, 0x2500, 0x2534, 0x252c, 0x253c};
	static const uint16_t twofold[16] = {' ',    0x2551, 0x2551, 0x2551, 0x2550, 0x255d, 0x2557, 0x2563,
					     0x2550, 0x255a, 0x2554, 0x2560, 0x2550, 0x2569, 0x2566, 0x256c};
	bool is_double = m->is_back && !m->is_forward;
	if (!g->is_ascii)
		return is_double ? twofold[m->sides] : single[m->sides];
	if (!(m->sides & (SIDE_LEFT | SIDE_RIGHT)))
		return is_double ? ':' : '|';
	if (!(m->sides & (SIDE_UP | SIDE_DOWN)))
		return is_double ? '=' : '-';
	return is_double ? '#' : '+';
}

static enum term_role kinds_role(uint8_t kinds)
{
	if (kinds == GRAPH_TAKEN)
		return ROLE_EDGE_TAKEN;
	if (kinds == GRAPH_FALL)
		return ROLE_EDGE_FALL;
	return kinds & (GRAPH_TAKEN | GRAPH_FALL) ? ROLE_ARROW : ROLE_EDGE_JUMP;
}

static void paint_lines(struct painter *p)
{
	const struct graph_line *l;
	p->marks = ARENA_ARRAY(&p->t->frame_arena, struct mark, (size_t)p->r.w * (size_t)p->r.h);
	if (!p->marks)
		return;
	for (int lanes = 0; lanes < 2; lanes++) {
		uint32_t cnt = lanes ? graph_lanes(&p->f->g, &l) : graph_lines(&p->f->g, p->v->y, p->v->y + p->r.h, &l);
		for (uint32_t i = 0; i < cnt; i++)
			gather(p, &l[i], l[i].to == p->cur);
	}
	brighten(p);
	for (int32_t y = 0; y < p->r.h; y++) {
		for (int32_t x = 0; x < p->r.w; x++) {
			const struct mark *m = &p->marks[y * p->r.w + x];
			struct cells_style st = tui_style(kinds_role(m->kinds), ROLE_BG);
			st.attr = m->is_bright ? CELLS_BOLD : 0;
			if (m->sides)
				cells_put(p->g, p->r.x + x, p->r.y + y, line_glyph(p->g, m), st);
		}
	}
}

/* --- boxes --- */

/* A pen for a row of the picture from column x up to, not including, x_end, cut to the window. False: not in it. */
static bool pen_at(struct painter *p, int32_t x, int32_t x_end, int32_t y, struct cells_pen *ret)
{
	int32_t left = p->r.x + x - p->v->x;
	int32_t end = MIN(p->r.x + x_end - p->v->x, p->r.x + p->r.w);
	if (y < p->v->y || y >= p->v->y + p->r.h || end <= p->r.x || left >= end)
		return false;
	*ret = (struct cells_pen){.g = p->g, .x = MAX(left, p->r.x), .y = p->r.y + y - p->v->y, .end = end,
				  .skip = MAX(p->r.x - left, 0), .escape_fg = ROLE_ESCAPE};
	return true;
}

static void fill(struct painter *p, struct cells_rect box, struct cells_style st)
{
	int32_t x0 = MAX(box.x, p->v->x);
	int32_t y0 = MAX(box.y, p->v->y);
	int32_t x1 = MIN(box.x + box.w, p->v->x + p->r.w);
	int32_t y1 = MIN(box.y + box.h, p->v->y + p->r.h);
	if (x0 < x1 && y0 < y1)
		cells_fill(p->g, (struct cells_rect){p->r.x + x0 - p->v->x, p->r.y + y0 - p->v->y, x1 - x0, y1 - y0}, st);
}

static void title(struct painter *p, struct cells_pen *pen, uint32_t block, int max)
{
	const struct tui_graph_block *b = &p->f->blocks[block];
	char addr[32];
	struct ses_text s = b->name;
	if (!s.len)
		s = (struct ses_text){addr, (uint32_t)snprintf(addr, sizeof(addr), "%llx", (unsigned long long)b->va)};
	int end = pen->end;
	pen->end = MIN(end, pen->x + max);
	cells_text(pen, s.s, s.len);
	pen->end = end;
}

static void frame(struct painter *p, uint32_t block, struct cells_style st)
{
	const struct graph_box *b = &p->f->g.boxes[block];
	struct cells_pen pen;
	int32_t right = b->x + b->w - 1;
	int32_t bottom = b->y + b->h - 1;
	for (int32_t x = MAX(b->x + 1, p->v->x); x < MIN(right, p->v->x + p->r.w); x++) {
		put(p, x, b->y, cells_glyph(p->g, GLYPH_H), st);
		put(p, x, bottom, cells_glyph(p->g, GLYPH_H), st);
	}
	for (int32_t y = MAX(b->y + 1, p->v->y); y < MIN(bottom, p->v->y + p->r.h); y++) {
		put(p, b->x, y, cells_glyph(p->g, GLYPH_V), st);
		put(p, right, y, cells_glyph(p->g, GLYPH_V), st);
	}
	put(p, b->x, b->y, cells_glyph(p->g, GLYPH_TL), st);
	put(p, right, b->y, cells_glyph(p->g, GLYPH_TR), st);
	put(p, b->x, bottom, cells_glyph(p->g, GLYPH_BL), st);
	put(p, right, bottom, cells_glyph(p->g, GLYPH_BR), st);
	if (!pen_at(p, b->x + 2, right - 1, b->y, &pen))
		return;
	pen.st = tui_style(block == p->cur ? ROLE_KEY : ROLE_LABEL, ROLE_BG);
	pen.st.attr = CELLS_BOLD;
	cells_str(&pen, block == p->cur ? ">" : " ");
	title(p, &pen, block, b->w);
	cells_str(&pen, " ");
}

/* Where a program stands, or a log leads, goes before the cursor, which has a mark of its own. */
static enum term_role ground(const struct painter *p, uint64_t va)
{
	enum term_role trail = tui_dock_bg(p->t, va);
	return trail != ROLE_BG_NOW && va == p->v->va ? ROLE_BG_LINE : trail;
}

static void paint_head(struct painter *p, struct cells_pen *pen, const struct ses_head *h)
{
	enum term_role bg = ground(p, h->va);
	tui_line_spans(pen, h, p->word, bg);
	if (!h->comment.len)
		return;
	pen->st = tui_style(ROLE_COMMENT, bg);
	cells_pad_to(pen, pen->col + COMMENT_GAP);
	cells_str(pen, "; ");
	cells_text(pen, h->comment.s, h->comment.len);
}

const struct ses_head *tui_graph_head(struct tui *t, uint64_t va)
{
	struct ses_call call = tui_call(t, 0);
	struct ses_head *h;
	uint32_t cnt = 0;
	struct ses_at ask = {.va = va, .sub = SES_SUB_ITEM, .count = 1};
	struct err *e = ses_heads(t->snap, &call, &ask, &t->frame_arena, &h, &cnt);
	bool good = !e && cnt;
	err_free(e);
	return good ? &h[0] : NULL;
}

/* The lines of a block from line `at` on, until `cnt` items came. Null when there are none. */
static struct ses_head *heads(struct painter *p, uint32_t at, uint32_t cnt, uint32_t *ret_cnt)
{
	struct ses_call call = tui_call(p->t, 0);
	struct ses_head *h;
	uint32_t got = 0;
	uint32_t n = 0;
	/* A name in the middle of a block has a line of its own. */
	struct ses_at ask = {.va = p->f->line_va[at], .sub = SES_SUB_ITEM, .count = 2 * cnt};
	struct err *e = ses_heads(p->t->snap, &call, &ask, &p->t->frame_arena, &h, &got);
	bool good = !e;
	err_free(e);
	for (uint32_t i = 0; good && i < got && n < cnt; i++) {
		if (tui_graph_is_line(&h[i]))
			h[n++] = h[i];
	}
	*ret_cnt = good ? n : 0;
	return h;
}

/* Rows [from, to) of a block's text, whose lines follow each other. */
static void paint_rows(struct painter *p, uint32_t block, uint32_t from, uint32_t to)
{
	const struct graph_box *b = &p->f->g.boxes[block];
	bool is_gap;
	uint32_t cnt;
	if (from >= to)
		return;
	struct ses_head *h = heads(p, tui_graph_line_of(p->f, block, from, &is_gap), to - from, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		int32_t y = b->y + 1 + (int32_t)(from + i);
		struct cells_pen pen;
		enum term_role bg = ground(p, h[i].va);
		if (bg != ROLE_BG)
			fill(p, (struct cells_rect){b->x + 1, y, b->w - 2, 1}, tui_style(ROLE_TEXT, bg));
		if (tui_dock_has_break(p->t, h[i].va))
			put(p, b->x + 1, y, '@', tui_style(ROLE_WARN, bg));
		else if (h[i].va == p->v->va)
			put(p, b->x + 1, y, '>', tui_style(ROLE_KEY, bg));
		if (pen_at(p, b->x + 2, b->x + b->w - 1, y, &pen))
			paint_head(p, &pen, &h[i]);
	}
}

static void paint_text(struct painter *p, uint32_t block)
{
	const struct graph_box *b = &p->f->g.boxes[block];
	const struct tui_graph_block *k = &p->f->blocks[block];
	uint32_t rows = tui_graph_row_cnt(p->f, block);
	int64_t from = MAX((int64_t)p->v->y - (b->y + 1), 0);
	int64_t to = MIN((int64_t)p->v->y + p->r.h - (b->y + 1), (int64_t)rows);
	bool has_gap = rows < k->line_cnt;
	struct cells_pen pen;
	if (from >= to)
		return;
	if (!has_gap) {
		paint_rows(p, block, (uint32_t)from, (uint32_t)to);
		return;
	}
	paint_rows(p, block, (uint32_t)from, (uint32_t)MIN(to, TUI_SHORT_LINES));
	paint_rows(p, block, (uint32_t)MAX(from, TUI_SHORT_LINES + 1), (uint32_t)to);
	uint32_t line = tui_graph_line_at(p->f, block, p->v->va);
	bool is_here = block == p->cur && tui_graph_row_of(p->f, block, line) == TUI_SHORT_LINES;
	if (!pen_at(p, b->x + 2, b->x + b->w - 1, b->y + 1 + TUI_SHORT_LINES, &pen))
		return;
	pen.st = tui_style(ROLE_DIM, is_here ? ROLE_BG_LINE : ROLE_BG);
	cells_printf(&pen, "%s%u more", p->g->is_ascii ? "... " : "\xe2\x8b\xae ", k->line_cnt - 2 * TUI_SHORT_LINES);
}

static void paint_name(struct painter *p, uint32_t block)
{
	const struct graph_box *b = &p->f->g.boxes[block];
	enum term_role bg = block == p->cur ? ROLE_BG_SELECT : ROLE_BG_DIALOG;
	struct cells_pen pen;
	fill(p, (struct cells_rect){b->x, b->y, b->w, 1}, tui_style(ROLE_TEXT, bg));
	if (!pen_at(p, b->x, b->x + b->w, b->y, &pen))
		return;
	pen.st = tui_style(block == p->cur ? ROLE_SELECT : ROLE_LABEL, bg);
	cells_str(&pen, block == p->cur ? ">" : "[");
	title(p, &pen, block, b->w - 2 - pen.skip);
	cells_pad_to(&pen, b->w - 1);
	cells_str(&pen, block == p->cur ? "<" : "]");
}

static void paint_box(struct painter *p, uint32_t block)
{
	const struct graph_box *b = &p->f->g.boxes[block];
	if (b->x >= p->v->x + p->r.w || b->x + b->w <= p->v->x)
		return;
	if (p->f->zoom == TUI_ZOOM_NAMES) {
		paint_name(p, block);
		return;
	}
	struct cells_style st = tui_style(block == p->cur ? ROLE_BORDER_FOCUS : ROLE_BORDER, ROLE_BG);
	st.attr = block == p->cur ? CELLS_BOLD : 0;
	fill(p, (struct cells_rect){b->x, b->y, b->w, b->h}, tui_style(ROLE_TEXT, ROLE_BG));
	frame(p, block, st);
	paint_text(p, block);
}

/* Heads of arrows above a box; letters below one that leaves by a condition. */
static void paint_heads(struct painter *p, uint32_t block)
{
	const struct graph_box *b = &p->f->g.boxes[block];
	int32_t x;
	for (int is_back = 0; is_back < 2; is_back++) {
		if (!graph_entry_x(&p->f->g, block, is_back, &x) || !in_window(p, x, b->y - 1))
			continue;
		const struct mark *m = mark_at(p, x, b->y - 1);
		struct cells_style st = tui_style(kinds_role(m->kinds), ROLE_BG);
		st.attr = m->is_bright ? CELLS_BOLD : 0;
		put(p, x, b->y - 1, p->g->is_ascii ? 'v' : 0x25be, st);
	}
}

static void paint_letters(struct painter *p)
{
	const struct graph *g = &p->f->g;
	for (uint32_t i = 0; i < g->edge_cnt; i++) {
		const struct graph_edge *e = &g->edges[i];
		const struct graph_box *b = &g->boxes[e->from];
		struct cells_style st = tui_style(kinds_role(e->kind), ROLE_BG);
		st.attr = CELLS_BOLD;
		if (p->f->blocks[e->from].is_condition && in_window(p, e->out_x, b->y + b->h))
			put(p, e->out_x, b->y + b->h, e->kind == GRAPH_TAKEN ? 'T' : 'F', st);
	}
}

/* --- the map --- */

/* A corner where the map does not hide the block under the cursor. */
static struct cells_rect map_place(const struct painter *p)
{
	const struct graph_box *b = &p->f->g.boxes[p->cur];
	int32_t x = p->r.x + b->x - p->v->x;
	int32_t y = p->r.y + b->y - p->v->y;
	struct cells_rect m = {0, 0, MAP_W, MAP_H};
	for (int corner = 0; corner < 4; corner++) {
		m.x = corner & 2 ? p->r.x : p->r.x + p->r.w - MAP_W;
		m.y = corner & 1 ? p->r.y + p->r.h - MAP_H : p->r.y;
		if (x >= m.x + m.w || x + b->w <= m.x || y >= m.y + m.h || y + b->h <= m.y)
			return m;
	}
	return (struct cells_rect){p->r.x + p->r.w - MAP_W, p->r.y, MAP_W, MAP_H};
}

static void paint_map(struct painter *p)
{
	const struct graph *g = &p->f->g;
	struct tui_graph *v = p->v;
	v->map = (struct cells_rect){0};
	bool is_all = g->w <= p->r.w && g->h <= p->r.h;
	if (v->hide_map || is_all || p->r.w < MAP_MIN_W || p->r.h < MAP_MIN_H)
		return;
	struct cells_rect m = map_place(p);
	cells_fill(p->g, m, tui_style(ROLE_DIM, ROLE_BG_DIALOG));
	cells_box(p->g, m, NULL, tui_style(ROLE_BORDER, ROLE_BG_DIALOG));
	m = (struct cells_rect){m.x + 1, m.y + 1, m.w - 2, m.h - 2};
	v->map = m;
	uint32_t step = g->box_cnt / 20000 + 1; /* more would not be seen */
	for (uint32_t i = 0; i < g->box_cnt; i += step) {
		const struct graph_box *b = &g->boxes[i];
		int x = (int)((int64_t)(b->x + b->w / 2) * m.w / g->w);
		int y = (int)((int64_t)(b->y + b->h / 2) * m.h / g->h);
		cells_put(p->g, m.x + x, m.y + y, p->g->is_ascii ? '.' : 0x25aa, tui_style(ROLE_DIM, ROLE_BG_DIALOG));
	}
	int64_t x0 = MAX((int64_t)v->x * m.w / g->w, 0);
	int64_t y0 = MAX((int64_t)v->y * m.h / g->h, 0);
	int64_t x1 = MIN(((int64_t)v->x + p->r.w - 1) * m.w / g->w, m.w - 1);
	int64_t y1 = MIN(((int64_t)v->y + p->r.h - 1) * m.h / g->h, m.h - 1);
	if (x0 <= x1 && y0 <= y1)
		cells_tint(p->g, (struct cells_rect){m.x + (int)x0, m.y + (int)y0, (int)(x1 - x0) + 1, (int)(y1 - y0) + 1},
			   tui_style(ROLE_SELECT, ROLE_BG_SELECT), true);
	const struct graph_box *b = &g->boxes[p->cur];
	int x = m.x + (int)((int64_t)(b->x + b->w / 2) * m.w / g->w);
	int y = m.y + (int)((int64_t)(b->y + b->h / 2) * m.h / g->h);
	bool is_in = x >= m.x + x0 && x <= m.x + x1 && y >= m.y + y0 && y <= m.y + y1;
	cells_put(p->g, x, y, '@', is_in ? tui_style(ROLE_SELECT, ROLE_BG_SELECT) : tui_style(ROLE_KEY, ROLE_BG_DIALOG));
}

/* --- all of it --- */

static void paint_cursor(struct painter *p, bool is_focused)
{
	struct tui *t = p->t;
	const struct graph_box *b = &p->f->g.boxes[p->cur];
	uint32_t line = tui_graph_line_at(p->f, p->cur, p->v->va);
	int32_t y = b->y + (p->f->zoom == TUI_ZOOM_NAMES ? 0 : 1 + (int32_t)tui_graph_row_of(p->f, p->cur, line));
	int32_t x = b->x + (p->f->zoom == TUI_ZOOM_NAMES ? 1 : 2);
	const struct ses_head *h = p->f->zoom == TUI_ZOOM_NAMES ? NULL : tui_graph_head(t, p->v->va);
	if (h)
		x = MIN(x + tui_line_column(p->g, h, p->v->off), b->x + b->w - 2);
	if (!is_focused || !in_window(p, x, y))
		return;
	t->cur_x = p->r.x + x - p->v->x;
	t->cur_y = p->r.y + y - p->v->y;
}

void tui_graph_paint(struct tui *t, bool is_focused)
{
	struct painter p = {.t = t, .v = &t->graph, .f = t->graph.f, .g = &t->grid, .r = t->graph.body, .word = {"", 0}};
	uint32_t first;
	if (!tui_graph_block_at(p.f, p.v->va, &p.cur))
		p.cur = p.f->entry;
	const struct ses_head *h = tui_graph_head(t, p.v->va);
	const struct ses_span *s = h ? tui_line_token(h, p.v->off) : NULL;
	if (s)
		p.word = (struct ses_text){h->text.s + s->off, s->len};
	paint_lines(&p);
	if (!p.marks)
		return;
	/* One row more at each end: heads and letters stand outside of their boxes. */
	uint32_t end = graph_layers(&p.f->g, p.v->y - 1, p.v->y + p.r.h + 1, &first);
	for (uint32_t l = first; l < end; l++) {
		const uint32_t *boxes;
		uint32_t cnt = graph_layer_boxes(&p.f->g, l, &boxes);
		for (uint32_t i = 0; i < cnt; i++) {
			paint_heads(&p, boxes[i]);
			paint_box(&p, boxes[i]);
		}
	}
	paint_letters(&p);
	paint_map(&p);
	paint_cursor(&p, is_focused);
}
