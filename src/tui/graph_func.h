/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_GRAPH_FUNC_H
#define TUI_GRAPH_FUNC_H

#include "session/session.h"
#include "tui/graph_layout.h"

/*
 * A function as a picture: its blocks, where their lines are, and the layout. The text of lines is not kept; who draws
 * asks the session for the few that are on the screen. Nothing in it borrows from the snapshot it was made from.
 */
enum tui_graph_kind {
	TUI_AROUND_NONE,  /* blocks of a function */
	TUI_AROUND_CALLS,  /* who calls a function, two steps up, and what it calls */
	TUI_AROUND_REFS,   /* who refers to an address, and what that refers to */
};
enum tui_zoom { TUI_ZOOM_FULL, TUI_ZOOM_SHORT, TUI_ZOOM_NAMES, TUI_ZOOM_COUNT };

#define TUI_SHORT_LINES 2 /* shown at each end of a block in TUI_ZOOM_SHORT */

struct tui_graph_block {
	uint64_t va, end;
	uint32_t line, line_cnt;  /* of line_va */
	struct ses_text name;     /* "" when it has none */
	int32_t text_w;           /* widest line */
	bool is_condition;        /* leaves by a taken and a fall edge */
};

struct tui_graph_func {
	struct arena arena;
	uint64_t va;
	struct ses_text name;
	uint32_t cnt, entry;
	struct tui_graph_block *blocks;
	uint32_t *by_va;          /* blocks in order of address */
	uint64_t *line_va;        /* lines of blocks, one an item */
	struct graph g;           /* boxes by block number */
	enum tui_zoom zoom;
	enum tui_graph_kind kind;
	uint64_t more;            /* of calls and references: edges left out, because there are too many to look at */
};

struct tui_graph_ask {
	enum tui_graph_kind kind;
	uint64_t va;              /* any address of the function */
	enum tui_zoom zoom;
	bool is_ascii;            /* the terminal shows ASCII only */
	const atomic_bool *cancel; /* may be null */
};

/* Makes the picture; any thread. Errors: not_found (in no function), timeout, cancelled, budget, no memory. Free with
 * tui_graph_func_free(), which accepts null. */
_must_use_ struct err *tui_graph_func_new(struct ses_snap *sn, const struct ses_call *call, const struct tui_graph_ask *ask,
					  struct tui_graph_func **ret);
void tui_graph_func_free(struct tui_graph_func *f);
/* The same of names instead of blocks: calls or references around an address. Each of its blocks is a function or a datum. */
_must_use_ struct err *tui_graph_around_new(struct ses_snap *sn, const struct ses_call *call, const struct tui_graph_ask *ask,
					    struct tui_graph_func **ret);
/* The size of each box, before they are laid out. */
void tui_graph_sizes(struct tui_graph_func *f);

/* The block that holds an address; false when none does. */
bool tui_graph_block_at(const struct tui_graph_func *f, uint64_t va, uint32_t *ret);
/* The line (place in line_va) that holds an address of the block. */
uint32_t tui_graph_line_at(const struct tui_graph_func *f, uint32_t block, uint64_t va);

/* Rows of text in a block's box at this zoom, and from line to row and back. A row that stands for lines that are left
 * out gives the first of them and sets *ret_is_gap. */
uint32_t tui_graph_row_cnt(const struct tui_graph_func *f, uint32_t block);
uint32_t tui_graph_row_of(const struct tui_graph_func *f, uint32_t block, uint32_t line);
uint32_t tui_graph_line_of(const struct tui_graph_func *f, uint32_t block, uint32_t row, bool *ret_is_gap);

/* Whether a line of the listing is one of a block's: no banner, no name on a line of its own, no padding. */
bool tui_graph_is_line(const struct ses_head *h);

/* Paints the picture; what is outside of g->body is not touched. Sets the terminal's cursor and where the map is. */
struct tui;
void tui_graph_paint(struct tui *t, bool is_focused);
/* The line at the cursor, or null. In the frame's arena. */
const struct ses_head *tui_graph_head(struct tui *t, uint64_t va);

#endif
