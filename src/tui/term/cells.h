/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TERM_CELLS_H
#define TUI_TERM_CELLS_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A grid of character cells: what a frame looks like, without a terminal. Views paint into one; the writer turns the
 * difference of two into bytes. Colours are small numbers (roles of the theme), so a view never knows a colour depth.
 */
enum cells_attr { CELLS_BOLD = 1, CELLS_ITALIC = 2, CELLS_UNDERLINE = 4, CELLS_REVERSE = 8 };

#define CELLS_MARK_CNT 2

struct cells_style {
	uint8_t fg, bg; /* roles */
	uint8_t attr;   /* enum cells_attr bits */
};

struct cells_cell {
	uint32_t cp;                   /* 0: the right half of a wide character */
	uint32_t mark[CELLS_MARK_CNT]; /* combining marks, 0: none */
	struct cells_style st;
	uint8_t width;                 /* 1; 2 on the left half, 0 on the right half */
};

struct cells {
	int w, h;
	struct cells_cell *cell; /* w * h, row by row */
	bool is_ascii;           /* the terminal shows ASCII only: other characters become escapes or stand-ins */
};

struct cells_rect {
	int x, y, w, h;
};

/* How a code point is shown. */
enum cells_width {
	WIDTH_ONE,
	WIDTH_WIDE,
	WIDTH_MARK,   /* combines with the cell before it */
	WIDTH_ESCAPE, /* control, bidi control, invisible: shown as an escape */
};
enum cells_width cells_width(uint32_t cp);

/* Makes the grid w x h (each 1 .. 4096), content undefined; false when memory ran out (the grid is as before). */
_must_use_ bool cells_resize(struct cells *g, int w, int h);
void cells_fini(struct cells *g);

/* The part of a rectangle that is in the grid, of width or height 0 when nothing is. On a screen of a row or two panes have
 * none, so who reads cells of a pane asks here first. */
struct cells_rect cells_clip(const struct cells *g, struct cells_rect r);

/* Blanks a rectangle, clipped to the grid. */
void cells_fill(struct cells *g, struct cells_rect r, struct cells_style st);

/* One character at (x, y), clipped; a wide one that does not fit becomes a blank. A half of a wide character that
 * loses its other half becomes a blank. Returns the cells used. */
int cells_put(struct cells *g, int x, int y, uint32_t cp, struct cells_style st);

/* Changes the colours of a rectangle and keeps its text. bg of `st` is set, fg only when `with_fg`, attr is or-ed. */
void cells_tint(struct cells *g, struct cells_rect r, struct cells_style st, bool with_fg);

/*
 * Where text goes: from x to before `end` on row y. Text that does not fit ends in an ellipsis and sets is_cut, after
 * which nothing more is written. `skip` columns of the text are left out first (sideways scrolling).
 */
struct cells_pen {
	struct cells *g;
	int x, y, end;
	int skip;
	int col;           /* columns written so far, those skipped or cut included */
	struct cells_style st;
	uint8_t escape_fg; /* role for what is shown as an escape */
	bool is_cut;
};

/* Writes target text: anything that is not a visible character appears as an escape (\n, \x1b, \u{202e}); bytes that
 * are not UTF-8 as \xNN. Returns the columns it takes, those skipped and cut included. */
int cells_text(struct cells_pen *p, const char *s, size_t len);
int cells_str(struct cells_pen *p, const char *s);
int cells_printf(struct cells_pen *p, const char *fmt, ...) _printf_(2, 3);

/* Columns cells_text() would take. */
int cells_text_width(const struct cells *g, const char *s, size_t len);

/* Writes blanks until `col` columns were written. */
void cells_pad_to(struct cells_pen *p, int col);

/* Frame pieces by meaning, in the terminal's character set. */
enum cells_glyph { GLYPH_H, GLYPH_V, GLYPH_TL, GLYPH_TR, GLYPH_BL, GLYPH_BR, GLYPH_ELLIPSIS, GLYPH_DOT, GLYPH_BAR,
		   GLYPH_THUMB, GLYPH_UP, GLYPH_DOWN, GLYPH_ARROW, GLYPH_COUNT };
uint32_t cells_glyph(const struct cells *g, enum cells_glyph which);

/* A frame around (inside) the rectangle with a title in its upper edge (null: none). */
void cells_box(struct cells *g, struct cells_rect r, const char *title, struct cells_style st);

#endif
