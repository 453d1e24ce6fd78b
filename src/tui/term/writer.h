/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TERM_WRITER_H
#define TUI_TERM_WRITER_H

#include "base/buf.h"
#include "tui/term/cells.h"
#include "tui/term/theme.h"

/*
 * Turns a frame into the bytes that change the terminal from the last frame to it. It remembers what the terminal
 * shows (`front`), never clears, and moves a block of rows with one scroll command when that is cheaper.
 *
 * Set depth, palette, has_sync and has_margins directly; after changing depth or palette call term_writer_forget().
 */
struct term_writer {
	struct cells front;
	enum term_depth depth;
	struct term_palette palette;
	bool has_sync;      /* the terminal knows synchronised updates (mode 2026) */
	bool has_margins;   /* and left and right margins (mode 69) */
	bool has_bce;       /* erasing takes the current ground */
	bool no_scroll;     /* the terminal's scroll regions cannot be trusted */
	/* Where rows are likely to have moved up or down together since the last frame; w 0: nowhere. */
	struct cells_rect scroll_hint;

	int cur_x, cur_y;   /* the terminal's cursor; -1: not known */
	bool cur_shown;
	bool pen_known;
	uint32_t pen_fg, pen_bg; /* resolved colours */
	uint8_t pen_attr;
};

void term_writer_fini(struct term_writer *w);

/* Whatever the terminal shows is unknown from here on: the next frame is written in full. */
void term_writer_forget(struct term_writer *w);

/* Appends to `out` what makes the terminal show `next` with its cursor at (cur_x, cur_y), hidden when cur_x < 0.
 * Appends nothing when nothing changed. False when memory ran out (then forget() was done). */
_must_use_ bool term_writer_frame(struct term_writer *w, const struct cells *next, int cur_x, int cur_y, struct buf *out);

#endif
