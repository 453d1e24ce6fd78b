/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/term/cells.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct width_range {
	uint32_t first, last;
	uint8_t width;
};

static const struct width_range width_ranges[] = {
#include "tui/term/width_table.def"
};

enum cells_width cells_width(uint32_t cp)
{
	if (cp >= 0x20 && cp < 0x7f)
		return WIDTH_ONE;
	size_t lo = 0;
	size_t hi = ARRAY_LEN(width_ranges);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (cp > width_ranges[mid].last)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < ARRAY_LEN(width_ranges) && cp >= width_ranges[lo].first)
		return width_ranges[lo].width;
	return cp > 0x10ffff ? WIDTH_ESCAPE : WIDTH_ONE;
}

bool cells_resize(struct cells *g, int w, int h)
{
	if (w < 1 || h < 1 || w > 4096 || h > 4096)
		return false;
	if (g->cell && w == g->w && h == g->h)
		return true;
	struct cells_cell *cell = calloc((size_t)w * (size_t)h, sizeof(*cell));
	if (!cell)
		return false;
	free(g->cell);
	g->cell = cell;
	g->w = w;
	g->h = h;
	return true;
}

void cells_fini(struct cells *g)
{
	free(g->cell);
	g->cell = NULL;
	g->w = g->h = 0;
}

struct cells_rect cells_clip(const struct cells *g, struct cells_rect r)
{
	int x1 = MIN(r.x + r.w, g->w);
	int y1 = MIN(r.y + r.h, g->h);
	r.x = MAX(r.x, 0);
	r.y = MAX(r.y, 0);
	r.w = MAX(x1 - r.x, 0);
	r.h = MAX(y1 - r.y, 0);
	return r;
}

/* The cell is about to change: its partner in a wide character must not stay behind. */
static void split_wide(struct cells *g, int x, int y)
{
	struct cells_cell *c = &g->cell[y * g->w + x];
	if (c->width == 0 && c->cp == 0 && x > 0 && c[-1].width == 2) {
		c[-1].cp = ' ';
		c[-1].width = 1;
		memset(c[-1].mark, 0, sizeof(c[-1].mark));
	}
	if (c->width == 2 && x + 1 < g->w) {
		c[1].cp = ' ';
		c[1].width = 1;
	}
}

void cells_fill(struct cells *g, struct cells_rect r, struct cells_style st)
{
	r = cells_clip(g, r);
	for (int y = r.y; y < r.y + r.h && r.w; y++) {
		split_wide(g, r.x, y);
		split_wide(g, r.x + r.w - 1, y);
		for (int x = r.x; x < r.x + r.w; x++)
			g->cell[y * g->w + x] = (struct cells_cell){.cp = ' ', .st = st, .width = 1};
	}
}

void cells_tint(struct cells *g, struct cells_rect r, struct cells_style st, bool with_fg)
{
	r = cells_clip(g, r);
	for (int y = r.y; y < r.y + r.h; y++) {
		for (int x = r.x; x < r.x + r.w; x++) {
			struct cells_cell *c = &g->cell[y * g->w + x];
			c->st.bg = st.bg;
			c->st.attr |= st.attr;
			if (with_fg)
				c->st.fg = st.fg;
		}
	}
}

int cells_put(struct cells *g, int x, int y, uint32_t cp, struct cells_style st)
{
	if (x < 0 || y < 0 || x >= g->w || y >= g->h)
		return 0;
	int width = cells_width(cp) == WIDTH_WIDE ? 2 : 1;
	if (width == 2 && x + 1 >= g->w) {
		cp = ' ';
		width = 1;
	}
	split_wide(g, x, y);
	struct cells_cell *c = &g->cell[y * g->w + x];
	*c = (struct cells_cell){.cp = cp, .st = st, .width = (uint8_t)width};
	if (width == 2) {
		split_wide(g, x + 1, y);
		c[1] = (struct cells_cell){.st = st};
	}
	return width;
}

/* How one code point (or one bad byte) of a text is shown. */
struct shown {
	size_t len;        /* bytes of the text it stands for */
	uint32_t cp;       /* when it is a character */
	int width;         /* columns; 0 for a mark */
	bool is_escape;
	char escape[12];
};

static void show_escape(struct shown *sh, uint32_t cp, bool is_byte)
{
	sh->is_escape = true;
	if (is_byte || (cp < 0x20 && cp != '\n' && cp != '\t' && cp != '\r') || cp == 0x7f)
		snprintf(sh->escape, sizeof(sh->escape), "\\x%02x", cp & 0xff);
	else if (cp < 0x20)
		snprintf(sh->escape, sizeof(sh->escape), "\\%c", cp == '\n' ? 'n' : cp == '\t' ? 't' : 'r');
	else
		snprintf(sh->escape, sizeof(sh->escape), "\\u{%x}", cp & 0x1fffff);
	sh->width = (int)strlen(sh->escape);
}

static struct shown show_next(const struct cells *g, const char *s, size_t len, int mark_cnt)
{
	struct shown sh = {.len = 1, .width = 1, .cp = (uint8_t)*s};
	if (sh.cp >= 0x20 && sh.cp < 0x7f)
		return sh;
	sh.len = utf8_next(s, len, &sh.cp);
	if (!sh.len) {
		sh.len = 1;
		show_escape(&sh, (uint8_t)*s, true);
		return sh;
	}
	enum cells_width kind = cells_width(sh.cp);
	/* A mark needs a cell to sit on, and a pile of them is a way to draw over the lines above. */
	if (kind == WIDTH_ESCAPE || g->is_ascii || (kind == WIDTH_MARK && (mark_cnt < 0 || mark_cnt >= CELLS_MARK_CNT)))
		show_escape(&sh, sh.cp, false);
	else
		sh.width = kind == WIDTH_MARK ? 0 : kind == WIDTH_WIDE ? 2 : 1;
	return sh;
}

static void pen_cut(struct cells_pen *p)
{
	p->is_cut = true;
	if (p->end > 0)
		cells_put(p->g, p->end - 1, p->y, cells_glyph(p->g, GLYPH_ELLIPSIS), p->st);
	p->x = p->end;
}

/* Writes one character of `width` columns, or its visible part. */
static void pen_put(struct cells_pen *p, uint32_t cp, int width, struct cells_style st)
{
	p->col += width;
	if (p->is_cut)
		return;
	if (p->skip >= width) {
		p->skip -= width;
		return;
	}
	if (p->skip > 0) { /* the right half of a wide character that began before the left edge */
		cp = ' ';
		width -= p->skip;
		p->skip = 0;
	}
	if (p->x + width > p->end) {
		pen_cut(p);
		return;
	}
	cells_put(p->g, p->x, p->y, cp, st);
	p->x += width;
}

static void pen_mark(struct cells_pen *p, uint32_t cp)
{
	int x = p->x - 1;
	if (p->is_cut || p->skip || x < 0 || x >= p->g->w || p->y < 0 || p->y >= p->g->h)
		return;
	struct cells_cell *c = &p->g->cell[p->y * p->g->w + x];
	if (c->width == 0 && x > 0)
		c--;
	for (int i = 0; i < CELLS_MARK_CNT; i++) {
		if (!c->mark[i]) {
			c->mark[i] = cp;
			return;
		}
	}
}

int cells_text(struct cells_pen *p, const char *s, size_t len)
{
	int width = 0;
	int mark_cnt = -1; /* marks on the last cell; -1: nothing to carry one */
	for (size_t i = 0; i < len && width < 1 << 20;) {
		struct shown sh = show_next(p->g, s + i, len - i, mark_cnt);
		i += sh.len;
		width += sh.width;
		if (sh.is_escape) {
			struct cells_style st = p->st;
			st.fg = p->escape_fg ? p->escape_fg : st.fg;
			for (const char *e = sh.escape; *e; e++)
				pen_put(p, (uint8_t)*e, 1, st);
			mark_cnt = -1;
		} else if (sh.width) {
			pen_put(p, sh.cp, sh.width, p->st);
			mark_cnt = 0;
		} else {
			pen_mark(p, sh.cp);
			mark_cnt++;
		}
	}
	return width;
}

int cells_str(struct cells_pen *p, const char *s)
{
	return cells_text(p, s, strlen(s));
}

int cells_printf(struct cells_pen *p, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return n < 0 ? 0 : cells_text(p, text, MIN((size_t)n, sizeof(text) - 1));
}

int cells_text_width(const struct cells *g, const char *s, size_t len)
{
	int width = 0;
	int mark_cnt = -1;
	for (size_t i = 0; i < len && width < 1 << 20;) {
		struct shown sh = show_next(g, s + i, len - i, mark_cnt);
		i += sh.len;
		width += sh.width;
		mark_cnt = sh.is_escape ? -1 : sh.width ? 0 : mark_cnt + 1;
	}
	return width;
}

void cells_pad_to(struct cells_pen *p, int col)
{
	while (p->col < col && (p->skip || p->x < p->end) && !p->is_cut)
		pen_put(p, ' ', 1, p->st);
}

uint32_t cells_glyph(const struct cells *g, enum cells_glyph which)
{
	static const uint32_t unicode[GLYPH_COUNT] = {0x2500, 0x2502, 0x256d, 0x256e, 0x2570, 0x256f, 0x2026,
						      0xb7, 0x2502, 0x2588, 0x2191, 0x2193, 0x25b8};
	static const char ascii[GLYPH_COUNT + 1] = "-|++++>.|#^v>";
	return g->is_ascii ? (uint8_t)ascii[which] : unicode[which];
}

void cells_box(struct cells *g, struct cells_rect r, const char *title, struct cells_style st)
{
	if (r.w < 2 || r.h < 2)
		return;
	for (int x = r.x + 1; x < r.x + r.w - 1; x++) {
		cells_put(g, x, r.y, cells_glyph(g, GLYPH_H), st);
		cells_put(g, x, r.y + r.h - 1, cells_glyph(g, GLYPH_H), st);
	}
	for (int y = r.y + 1; y < r.y + r.h - 1; y++) {
		cells_put(g, r.x, y, cells_glyph(g, GLYPH_V), st);
		cells_put(g, r.x + r.w - 1, y, cells_glyph(g, GLYPH_V), st);
	}
	cells_put(g, r.x, r.y, cells_glyph(g, GLYPH_TL), st);
	cells_put(g, r.x + r.w - 1, r.y, cells_glyph(g, GLYPH_TR), st);
	cells_put(g, r.x, r.y + r.h - 1, cells_glyph(g, GLYPH_BL), st);
	cells_put(g, r.x + r.w - 1, r.y + r.h - 1, cells_glyph(g, GLYPH_BR), st);
	if (!title || r.w < 6)
		return;
	struct cells_pen p = {.g = g, .x = r.x + 2, .y = r.y, .end = MIN(r.x + r.w - 2, g->w), .st = st};
	p.st.attr |= CELLS_BOLD;
	cells_str(&p, " ");
	cells_str(&p, title);
	cells_str(&p, " ");
}
