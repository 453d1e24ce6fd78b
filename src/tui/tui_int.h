/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TUI_INT_H
#define TUI_TUI_INT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "session/session.h"
#include "tui/actions.h"
#include "tui/keymap.h"
#include "tui/load.h"
#include "tui/term/cells.h"
#include "tui/term/input.h"
#include "tui/term/theme.h"

#include <stdatomic.h>

/*
 * The workbench without a terminal: state, keys in, a grid of cells out. tui.c drives it from a terminal, the unit
 * tests drive it directly. One thread; long work runs in jobs (job.c) whose end is told through job_fd.
 */
struct tui;

/* --- jobs: work that may outlast a frame ------------------------------------------------------------------------ */

struct tui_job {
	struct tui_job *next;
	struct ses_snap *snap;      /* held */
	struct ses_call call;       /* cancel points at is_cancelled */
	atomic_bool is_cancelled;
	atomic_bool is_done;
	int event_fd;
	unsigned long thread;
	bool is_driver;             /* asked for over the socket: no part of what the screen waits for */
	void (*run)(struct tui_job *j);                  /* in its thread: reads snap, writes to itself only */
	void (*done)(struct tui *t, struct tui_job *j);  /* in ours; not called when cancelled */
	void (*fini)(struct tui_job *j);                 /* releases what `run` made; may be null */
};

/* Starts a job that the caller allocated with calloc and filled (run, done, fini, limits of `call` if any); takes it. With no event loop
 * (job_fd < 0) it runs to its end at once. */
void tui_job_start(struct tui *t, struct tui_job *j);
/* The job's result is not wanted any more. `done` is not called. Null is accepted. */
void tui_job_cancel(struct tui_job *j);
/* Finishes what has ended; with `wait` cancels and waits for all. */
void tui_jobs_reap(struct tui *t, bool wait);

/* --- lists: one page of a long list, with a filter --------------------------------------------------------------- */

#define TUI_COL_MAX 8
#define TUI_FILTER_MAX 256

struct tui_row {
	uint64_t va;
	bool has_va;
	uint32_t bin;                          /* of a project: the binary's number + 1; 0: the one shown */
	uint8_t action;                        /* palette: what it starts */
	char mark;                             /* a sign before the row, 0: none */
	uint64_t id;                           /* journal: revision; proposals: number */
	const char *tag;                       /* journal: author; types: name; in the page's arena */
	struct ses_text col[TUI_COL_MAX];
};

struct tui_column {
	const char *title;
	const char *sort;   /* key for ses_page.sort, or null */
	int16_t width;      /* columns; 0: the rest */
	uint8_t role;
	bool is_right;
};

#define TUI_SAID_MAX 64
#define TUI_RECENT_MAX 8
struct tui_said {
	char line[TUI_SAID_MAX][264];
	unsigned cnt; /* said so far; the last ones are kept */
};

struct tui_query {
	struct ses_snap *snap;
	struct ses *ses;    /* history: the journal is the session's */
	const struct tui_keymap *keys; /* palette, copying */
	const struct tui_said *said;   /* what the status line said; of lists that are read at once */
	const uint8_t *recent;         /* palette: the actions done last, TUI_RECENT_MAX of them */
	struct ses_project *project; /* or null */
	uint32_t bin;       /* of the project: the one shown */
	const struct ses_call *call;
	struct ses_page page;
	uint64_t va;        /* xrefs: of what */
	const char *what;   /* search: the words; types: the source, or "" */
	int kind;           /* search kind; xrefs: 1 from */
	const struct tui_found *found; /* search: what it found so far, or null */
	struct ses_live *live; /* its rows, read in our thread alone; or null */
	uint64_t live_id;   /* frames: of this event */
	const struct tui *tui; /* probes: whose they are; in our thread alone, or null */
};

struct tui_page {
	struct arena arena;
	struct tui_row *rows;
	uint32_t cnt;
	uint64_t total;
	bool has_more;      /* total is a lower bound */
	struct err *err;
};

struct tui_list_ops {
	const char *title;
	const char *empty;  /* said when nothing is there */
	struct tui_column columns[TUI_COL_MAX];
	int column_cnt;
	bool is_ordered_by_va;
	bool is_ordered_by_id;
	bool is_typed_in;   /* what is typed is its filter */
	bool is_newest_first; /* it grows at its top */
	/* Fills ret->rows (in ret->arena), cnt and total. Thread-safe; no state of the tui. */
	struct err *(*fetch)(const struct tui_query *q, struct tui_page *ret);
};

struct tui_list {
	const struct tui_list_ops *ops;
	char filter[TUI_FILTER_MAX];
	int sort;                 /* 0: as it comes; n: column n-1; negative: descending */
	uint64_t va;              /* query parameters */
	int kind;
	char what[TUI_FILTER_MAX];
	bool is_brief;            /* only the first column is shown */
	VEC(uint64_t) marked;     /* ids of rows that a person marked, ascending */
	bool has_here;            /* the row of here_va is marked: where another view is */
	uint64_t here_va;
	uint64_t cur, top;        /* rows of the filtered list */
	int height;               /* rows shown last time */
	struct cells_rect body;   /* where rows were drawn */
	bool has_page;
	struct tui_page page;
	uint64_t page_off;
	uint32_t page_limit;
	struct ses_snap *page_snap; /* identity only, not held */
	struct tui_job *job;      /* loading a page */
	uint64_t job_off;
	uint32_t job_limit;
};

/* What every list may ask about, for a fetch in our own thread. */
void tui_query_bind(struct tui *t, struct tui_query *q);
void tui_list_init(struct tui_list *l, const struct tui_list_ops *ops);
void tui_list_fini(struct tui_list *l);
/* The parameters changed: load anew from the first row. */
void tui_list_restart(struct tui_list *l);
/* Its rows may be others: reads them anew and stays at the row. */
void tui_list_refresh(struct tui_list *l);
void tui_list_set_filter(struct tui_list *l, const char *filter);
/* Another snapshot: load anew, but stay at the row with the address of the current one. */
void tui_list_snap_changed(struct tui *t, struct tui_list *l);
void tui_list_draw(struct tui *t, struct tui_list *l, struct cells_rect r, bool is_focused);
bool tui_list_act(struct tui *t, struct tui_list *l, enum tui_action a);
void tui_list_scroll(struct tui *t, struct tui_list *l, int rows);
/* Selects the row drawn at this place; false when there is none. */
bool tui_list_click(struct tui *t, struct tui_list *l, int x, int y);
bool tui_list_is_marked(const struct tui_list *l, uint64_t id);
/* Marks a row, or no longer; false without memory. */
bool tui_list_mark(struct tui_list *l, uint64_t id);
/* The current row, or null while it is not loaded. */
const struct tui_row *tui_list_row(struct tui *t, struct tui_list *l);

struct tui_place {
	uint64_t va, top_va;
	uint32_t sub, top_sub;
	uint32_t bin;             /* of the project */
	uint16_t view;            /* enum tui_view */
	uint16_t col;             /* in C */
	uint64_t event;           /* of the live trace */
};

/* --- views ---------------------------------------------------------------------------------------------------------- */

enum tui_view {
	TUI_V_LISTING, TUI_V_HEX, TUI_V_GRAPH, TUI_V_C, TUI_V_FUNCTIONS, TUI_V_STRINGS, TUI_V_IMPORTS, TUI_V_EXPORTS, TUI_V_SYMBOLS, TUI_V_MAP,
	TUI_V_PROBLEMS, TUI_V_BOOKMARKS, TUI_V_JOURNAL, TUI_V_TYPES, TUI_V_PROPOSALS, TUI_V_SEARCH, TUI_V_LIVE, TUI_V_COUNT
};

struct tui_view_ops {
	const char *name;
	uint16_t where;                                /* enum tui_where */
	const struct tui_list_ops *list;               /* a list view: everything else below may be null; `act` comes before the list's */
	void (*draw)(struct tui *t, struct cells_rect r, bool is_focused); /* of a list view: in place of the list alone */
	bool (*act)(struct tui *t, enum tui_action a); /* false: not mine */
	void (*scroll)(struct tui *t, int rows);       /* the wheel */
	bool (*click)(struct tui *t, int x, int y, bool is_drag); /* false: nothing there to open */
	void (*go)(struct tui *t, uint64_t va);
	bool (*va)(struct tui *t, uint64_t *ret);      /* address under the cursor */
	void (*status)(struct tui *t, struct cells_pen *p); /* what the status line says of it beside the place; may be null */
};

extern const struct tui_view_ops tui_listing_ops, tui_hex_ops, tui_graph_ops, tui_c_ops, tui_functions_ops, tui_strings_ops, tui_imports_ops,
	tui_exports_ops, tui_symbols_ops, tui_map_ops, tui_problems_ops, tui_bookmarks_ops, tui_journal_ops, tui_types_ops, tui_proposals_ops,
	tui_search_ops, tui_live_ops;
const struct tui_view_ops *tui_view_ops(enum tui_view v);

struct tui_listing {
	uint64_t va, top_va;      /* cursor and first line: anchors, never rows */
	uint32_t sub, top_sub;
	uint32_t off;             /* byte of the cursor line's text */
	uint64_t number_of, number_va; /* of the cursor line when it was drawn last: its address, that of the number at number_off in it */
	uint32_t number_off;
	int hscroll;              /* columns of text left out at the left */
	int bytes_mode;           /* 0 none, 1 eight, 2 all */
	bool is_placed;
	bool want_context;        /* the next frame puts the cursor line in the upper third */
	bool want_centre;
	struct cells_rect body;
	int text_x;               /* column where the text of lines begins */
	struct arena arena;       /* lines of the frame */
	struct ses_head *lines;
	uint32_t line_cnt;
	const struct ses_snap *lines_snap;
	uint64_t lines_va;
	uint32_t lines_sub, lines_want;
};

struct tui_hex_seg {
	uint64_t first_va;        /* of its first row: a multiple of 16 */
	uint64_t row, row_cnt;
};

#define TUI_HEX_EDIT_MAX 256 /* bytes typed at once */

struct tui_hex {
	uint64_t va;              /* cursor byte */
	uint64_t top;             /* row */
	bool is_placed;
	struct cells_rect body;
	const struct ses_snap *segs_snap;
	struct tui_hex_seg *segs;
	uint32_t seg_cnt;
	uint64_t row_cnt;
	int digits;               /* of addresses: 8, 12 or 16 */
	struct arena arena;
	bool hide_inspector;
	bool is_editing;          /* keys are bytes, see hex_edit.c */
	bool is_text;             /* typed as characters, not as digits */
	uint64_t edit_va;         /* of the first byte typed */
	uint32_t nibble_cnt;      /* half bytes typed */
	uint8_t typed[TUI_HEX_EDIT_MAX];
};
/* Begins to type bytes over those at the cursor. */
void tui_hex_edit_begin(struct tui *t);
/* A key while bytes are typed; false: it is for whoever gets keys otherwise. */
bool tui_hex_edit_key(struct tui *t, uint32_t key, uint8_t mods);
void tui_hex_edit_paste(struct tui *t, const char *text, size_t len);
/* Gives the file's bytes back where the cursor is in a patch. */
void tui_hex_unpatch(struct tui *t);
/* The typed byte at an address; false when none is. */
bool tui_hex_typed(const struct tui *t, uint64_t va, uint8_t *ret);
/* What the bytes at the cursor are as numbers, text, times: rows of the inspector. */
#define TUI_INSPECT_W 46
#define TUI_INSPECT_H 18
void tui_hex_inspect_draw(struct tui *t, struct cells_rect r);

/* The graph of a function: view_graph.c; what it shows is in graph_func.h. */
struct tui_graph {
	uint64_t va;              /* cursor line */
	uint32_t off;             /* byte of its text */
	uint64_t came_from;       /* block that was left along an edge, UINT64_MAX: none */
	bool is_placed;
	bool is_sticky;           /* places are shown as a graph until it is left */
	bool hide_map;
	bool want_centre;         /* the next frame puts the block in the middle */
	bool want_sight;          /* the next frame shows the cursor line */
	uint8_t zoom;             /* enum tui_zoom */
	uint8_t kind;             /* enum tui_graph_kind */
	uint64_t root;            /* of calls and references: around what */
	int32_t x, y;             /* cell of the picture in the upper left corner */
	struct cells_rect body, map; /* where they were drawn; map.w 0: not */
	struct tui_graph_func *f;
	const struct ses_snap *f_snap; /* identity only, not held */
	struct tui_job *job;      /* laying out a large one */
	uint64_t job_va;
	int drag_x, drag_y;       /* the mouse at the last event of a drag */
	bool is_dragging_map;
};
void tui_graph_fini(struct tui *t);
/* Space: to the graph of the function under the cursor, and back to the listing. */
void tui_graph_toggle(struct tui *t);
/* The graph of calls or of references (enum tui_graph_kind) around what the cursor is on. */
void tui_graph_around(struct tui *t, int kind);
/* Whether an address can be shown as a graph: it is in a function. */
bool tui_graph_can(struct tui *t, uint64_t va);
bool tui_graph_operand(struct tui *t, uint64_t *ret);
/* Where the picture is, as one number for struct tui_place, and back. */
uint64_t tui_graph_spot(const struct tui *t);
void tui_graph_restore(struct tui *t, uint64_t va, uint64_t spot);

/* The block under the graph's cursor, for whoever shows the same place; false when there is none. */
bool tui_graph_block(const struct tui *t, uint64_t *ret_va, uint64_t *ret_end);

/* --- C of a function: c_made.c makes it in jobs, view_c.c shows it --- */

/* What is folded away, as it is remembered: a block of a function by where it begins. */
struct tui_c_fold {
	uint64_t func, va;
	uint32_t depth;           /* braces around it */
	bool is_label;            /* it is what stands behind a label, else between braces */
};

struct tui_c_block {
	uint32_t head, last;      /* lines: the one that stays, the last one that goes */
	struct tui_c_fold key;
	bool is_part;             /* of a label's block, whose braces these are */
};

struct tui_c_made {
	struct arena arena;
	uint64_t func;
	const struct ses_snap *snap; /* it was made from, identity only; null: from an older one */
	struct ses_c c;
	struct err *err;             /* there is none, and why */
	uint64_t used;               /* clock of the last use */
	struct tui_c_block *blocks;  /* c_fold.c; null until somebody folds */
	uint32_t block_cnt;
};

#define TUI_C_KEPT 16 /* functions */

struct tui_c {
	uint64_t func;            /* that is shown */
	uint64_t va;              /* what the cursor line stands for */
	uint32_t line, top;       /* lines of `shown` */
	uint32_t off;             /* byte of the line */
	int col;                  /* column that going up and down keeps to */
	int hscroll;
	bool is_placed, want_context, want_centre;
	bool has_keep;            /* once its text is there the cursor goes to these lines */
	uint32_t keep_line, keep_top;
	int keep_col;
	bool is_selecting;
	uint32_t anchor;          /* line where the selection began */
	struct cells_rect body;
	int text_x;               /* columns before the text */
	struct tui_c_made *shown; /* what line and top are of; null: nothing was there yet */
	struct tui_c_made *made[TUI_C_KEPT];
	uint64_t clock;
	struct tui_job *job;
	uint64_t job_func;
	VEC(struct tui_c_fold) folds; /* sorted */
	const struct tui_c_made *rows_of; /* what `rows` was made of; null: it is to be made anew */
	bool has_folds;           /* something of it is folded: rows are not lines */
	VEC(uint32_t) rows;       /* the lines that are left */
};
/* Rows of the text shown: its lines without what is folded. Remakes them when they are of another text or of other folds. */
void tui_c_rows_make(struct tui *t, struct tui_c_made *m);
uint32_t tui_c_row_cnt(const struct tui *t);
uint32_t tui_c_row_line(const struct tui *t, uint32_t row);
/* Of a line that is folded away the row of what it is folded into. */
uint32_t tui_c_row_of(const struct tui *t, uint32_t line);
/* How many lines are folded into this one; 0: it is none of those. */
uint32_t tui_c_hidden(const struct tui *t, uint32_t line);
/* Folds the block that *line is in, or unfolds it; *line becomes the one that stays. False: there is none, or no memory. */
bool tui_c_fold_toggle(struct tui *t, struct tui_c_made *m, uint32_t *line);
/* Folds every block of the body; unfolds all when any is folded. False: there is none. */
bool tui_c_fold_all(struct tui *t, struct tui_c_made *m);
/* Nothing that a line is in stays folded. */
void tui_c_unfold_at(struct tui *t, struct tui_c_made *m, uint32_t line);
/* The address of the block behind a label's line. */
uint64_t tui_c_label_va(const struct tui_c_made *m, uint32_t line);
/* The newest C of a function that is there, null when there is none yet; what is missing or of an older snapshot is being made
 * afterwards, and what is being made of another function is not wanted any more. */
struct tui_c_made *tui_c_get(struct tui *t, uint64_t func);
void tui_c_cancel(struct tui *t);
/* Another snapshot: everything is of an older one. */
void tui_c_outdate(struct tui *t);
void tui_c_fini(struct tui *t);
/* `next` takes the place of `old`, which is of the same function: the cursor stays at its statement. */
void tui_c_replaced(struct tui *t, const struct tui_c_made *old, struct tui_c_made *next);
/* Tab: to the C of the function under the cursor, and back to the listing. */
void tui_c_toggle(struct tui *t);
/* Whether an address can be shown as C. */
bool tui_c_can(struct tui *t, uint64_t va);
/* What a key acts on: where the token under the cursor leads, else the function. */
bool tui_c_subject(struct tui *t, uint64_t *ret);
/* The place as struct tui_place has it: its line, the function, the first line shown; and back. */
void tui_c_spot(const struct tui *t, struct tui_place *p);
void tui_c_restore(struct tui *t, const struct tui_place *p);
/* Whether the instruction at va is of the cursor line's statement. */
bool tui_c_links(const struct tui *t, uint64_t va);
/* The number under the cursor, or the first behind it, that is an operand of the statement's instructions. */
bool tui_c_number(struct tui *t, uint64_t *ret_va, unsigned *ret_operand, struct ses_formats *ret);
/* Looks for text, or with `is_word` for a whole word, from the cursor on. */
void tui_c_search(struct tui *t, const char *text, bool back, bool is_word);
void tui_c_go_line(struct tui *t, uint64_t line);
/* The word under the cursor; "" when there is none. */
struct ses_text tui_c_word(const struct tui *t);
/* The cursor's line, the selected ones, or with `is_all` the function, as they are; false when nothing is there. */
bool tui_c_copy(struct tui *t, bool is_all, struct buf *out);

/* --- split: listing and the C or the graph of one place --- */

void tui_split_toggle(struct tui *t);
/* Whether the split is on and `w` columns do for it. */
bool tui_split_fits(const struct tui *t, int w);
/* The view that is led. */
enum tui_view tui_split_other(const struct tui *t);
/* The other half leads. */
void tui_split_swap(struct tui *t);
/* Draws both halves into t->main_rect, which becomes the leader's part. */
void tui_split_draw(struct tui *t, bool is_focused);

/* --- prompt ---------------------------------------------------------------------------------------------------------- */

enum tui_prompt_kind { TUI_PROMPT_NONE, TUI_PROMPT_GOTO, TUI_PROMPT_SEARCH, TUI_PROMPT_SEARCH_BACK, TUI_PROMPT_SEARCH_ALL, TUI_PROMPT_FILTER,
		       TUI_PROMPT_COMMAND, TUI_PROMPT_RENAME, TUI_PROMPT_COMMENT, TUI_PROMPT_BLOCK,
		       TUI_PROMPT_RETYPE, TUI_PROMPT_PROTOTYPE,
		       TUI_PROMPT_BOOKMARK, TUI_PROMPT_EXPORT,
		       TUI_PROMPT_DEFINE, TUI_PROMPT_TRACE, TUI_PROMPT_LIVE_FIND,
		       TUI_PROMPT_WRITTEN, TUI_PROMPT_DEBUG,
		       TUI_PROMPT_COUNT };

#define TUI_HISTORY_MAX 16

struct tui_prompt {
	enum tui_prompt_kind kind;
	char text[TUI_FILTER_MAX];
	uint32_t len, pos;        /* bytes */
	char before[TUI_FILTER_MAX]; /* filter to put back on Esc */
	char history[TUI_PROMPT_COUNT][TUI_HISTORY_MAX][TUI_FILTER_MAX];
	int history_cnt[TUI_PROMPT_COUNT];
	int history_at;
};

/* What stands before what is typed. */
const char *tui_prompt_label(enum tui_prompt_kind kind);
void tui_prompt_open(struct tui *t, enum tui_prompt_kind kind, const char *text);
/* Text that was there before what was typed. */
void tui_prompt_prefill(struct tui *t, const char *text, size_t len);
void tui_prompt_key(struct tui *t, uint32_t key, uint8_t mods);
void tui_prompt_paste(struct tui *t, const char *text, size_t len);
void tui_prompt_draw(struct tui *t, int y);

/* --- overlays --------------------------------------------------------------------------------------------------------- */

enum tui_overlay { TUI_O_PALETTE, TUI_O_XREFS, TUI_O_HELP, TUI_O_SYMBOLS, TUI_O_PEEK, TUI_O_COPY, TUI_O_CONFIRM, TUI_O_EDITOR,
		   TUI_O_LOG, TUI_O_KEYS, TUI_O_BINARIES, TUI_O_LOAD, TUI_O_FRAMES, TUI_O_PROBES };
#define TUI_OVERLAY_MAX 4

bool tui_overlay_push(struct tui *t, enum tui_overlay which);
void tui_overlay_pop(struct tui *t);
void tui_overlays_draw(struct tui *t);
void tui_overlay_accept(struct tui *t);
/* The list of the uppermost dialog, or null. */
struct tui_list *tui_overlay_list(struct tui *t);
void tui_overlay_key(struct tui *t, uint32_t key, uint8_t mods);
void tui_overlay_paste(struct tui *t, const char *text, size_t len);
void tui_overlay_mouse(struct tui *t, const struct term_ev *ev, bool is_double);

extern const struct tui_list_ops tui_palette_list, tui_xrefs_list, tui_symbols_palette_list, tui_peek_list,
	tui_copy_list, tui_log_list, tui_presets_list,
	tui_binaries_list, tui_frames_list, tui_probes_list, tui_project_symbols_list, tui_project_strings_list;
/* Asks before something is done: `yes` is done on y or Enter. */
void tui_confirm(struct tui *t, void (*yes)(struct tui *t), const char *fmt, ...) _printf_(3, 4);

/* --- a text of several lines to edit: C declarations --- */

struct tui_editor {
	char title[300];
	char over[300];           /* name of what the text takes the place of, "": a new one */
	char *text;               /* NUL-terminated */
	size_t len, cap, pos;
	size_t top;               /* first line shown */
	int skip;                 /* columns left out at the left */
	bool is_changed, is_leaving, is_saving;
	char error[400];          /* of the last attempt, "" none */
	size_t error_line;        /* from 1; 0: no line of it */
};
/* Opens it over what is shown; false without memory. */
bool tui_editor_open(struct tui *t, const char *title, const char *over, const char *text);
void tui_editor_draw(struct tui *t, struct cells_rect r);
void tui_editor_key(struct tui *t, uint32_t key, uint8_t mods);
void tui_editor_paste(struct tui *t, const char *text, size_t len);
void tui_editor_click(struct tui *t, int x, int y);
void tui_editor_scroll(struct tui *t, int lines);
/* What became of the declaration that was submitted; takes e. */
void tui_editor_done(struct tui *t, struct err *e);
void tui_editor_fini(struct tui *t);

/* Load options of the target, changed with the work kept. */
void tui_load_open(struct tui *t);
void tui_load_overlay_key(struct tui *t, uint32_t key, uint8_t mods);

/* "abc" as the glob "*a*b*c*", in the arena; null for what is a glob already, and without memory. */
const char *tui_letters_in_order(struct arena *a, const char *s);
void tui_symbols_open(struct tui *t);
void tui_peek_open(struct tui *t);
void tui_palette_open(struct tui *t);
void tui_xrefs_open(struct tui *t, bool is_from);
void tui_help_draw(struct tui *t, struct cells_rect r);
int tui_help_line_cnt(const struct tui *t);

/* --- copying, commands, keys that wait for another ----------------------------------------------------------------------- */

/* Copies what the action says of the line under the cursor. */
void tui_copy(struct tui *t, enum tui_action a);
void tui_copy_text(struct tui *t, const char *s, size_t len);

/* Keys of a preset from now on; false, and it is said, when something in their files cannot be taken. tui_keys_pick() also keeps the choice. */
bool tui_keys_use(struct tui *t, const char *name);
void tui_keys_pick(struct tui *t, unsigned i);
/* The first start ever offers keys, beside what is shown, until a key or a while ends that. */
void tui_offer_begin(struct tui *t, uint64_t now);
void tui_offer_end(struct tui *t);
bool tui_offer_key(struct tui *t, uint32_t key); /* whether the key was the answer */
void tui_offer_draw(struct tui *t);

/* --- selected lines, hints --- */

void tui_select_toggle(struct tui *t);
/* Whether a line of the listing is selected. */
bool tui_select_has(const struct tui *t, uint64_t va, uint32_t sub);
/* The first and the last selected line; false when none is. */
bool tui_select_range(const struct tui *t, struct tui_place *first, struct tui_place *last);
/* Letters beside what the lines on the screen lead to; the next keys choose one. */
void tui_hints_begin(struct tui *t);
void tui_hints_key(struct tui *t, uint32_t key);
/* The letters of the i-th of the listing's lines, "" when it leads nowhere. */
const char *tui_hint_of(const struct tui *t, uint32_t i, char out[3]);

struct ops_req;
typedef struct err *tui_operate_fn(const struct ops_req *on, const char *line, struct buf *out);
/* Writes findings to `path` as Markdown, in a job. */
void tui_export_start(struct tui *t, const char *path);

/* Does what was typed after ':'. */
void tui_command(struct tui *t, const char *text);
/* Continues an action's name as far as all that begin so agree; the length of `out`, 0 when none does. */
size_t tui_command_complete(const char *text, char *out, size_t cap);

struct tui_mark {
	uint64_t va;
	uint32_t bin;
	bool is_set;
};

/* A mark's letter or a digit of a count; false: an ordinary key. */
bool tui_pending_key(struct tui *t, uint32_t key, uint8_t mods);
/* Somebody, perhaps ourselves, committed to the target's journal. */
void tui_watch_event(struct tui *t, uint64_t now);
/* Time passed: the news of a burst may be due. */
void tui_watch_tick(struct tui *t, uint64_t now);
/* The first of two keys was typed, the leader most often. */
void tui_prefix_begin(struct tui *t, struct tui_stroke s, uint64_t now);
/* Time passed: its card may be due. */
void tui_tick(struct tui *t, uint64_t now);
void tui_prefix_draw(struct tui *t, struct cells_pen *p);
void tui_card_draw(struct tui *t);

/* --- edits ------------------------------------------------------------------------------------------------------------------ */

/* The edit made last, for another place; op "": none. */
struct tui_last {
	char op[16], sub[16], value[TUI_FILTER_MAX];
};

struct tui_edit;
/* Renaming, comments, undo, redo, history; false when the action is none of them. */
bool tui_edit_act(struct tui *t, enum tui_action a);
/* An edit as the journal names them (struct ses_edit), shown as pending and written by a job; an empty value takes away. */
void tui_edit_submit(struct tui *t, const char *op, const char *sub, uint64_t va, const char *value);
/* Whether what is typed there is an edit. */
bool tui_edit_is_prompt(enum tui_prompt_kind kind);
/* C text to declare in the place of `over` ("": beside what there is), or with no text `over` to undeclare. */
void tui_edit_declare(struct tui *t, const char *text, const char *over);
/* An operation of the table that edits, with the names and values of its parameters, ended by null. */
void tui_edit_words(struct tui *t, const char *op, const char *const *words);
void tui_edit_accept(struct tui *t, enum tui_prompt_kind kind, const char *text, const char *before);
/* Types, prototypes and formats of numbers; false when the action is none of them. */
bool tui_typing_act(struct tui *t, enum tui_action a);
/* The instruction or datum and the operand whose number the cursor is on, or the first of the line; false when there is none. */
bool tui_number_here(struct tui *t, uint64_t *ret_va, unsigned *ret_operand);
/* define.c: what the bytes at the cursor are. */
bool tui_define_act(struct tui *t, enum tui_action a);
void tui_define_accept(struct tui *t, const char *text);
/* Says what came of a define; false when it is none or there is nothing of its own to say. */
bool tui_define_tell(struct tui *t, const struct ses_edit *e);
/* Puts edits that are not on disk yet into lines, with a '*' behind them. */
void tui_edits_show(struct tui *t, struct ses_head *lines, uint32_t cnt);
void tui_edits_finish(struct tui *t);

/* How many proposals wait to be decided, or were made ever. */
_must_use_ struct err *tui_proposals_count(struct ses *s, bool is_ever, uint64_t *ret);

/* --- places and search -------------------------------------------------------------------------------------------------- */

/* Goes to an address in the listing (or the hex view when that is shown), remembering where we were. */
void tui_go(struct tui *t, uint64_t va);
void tui_push_past(struct tui *t);
/* To a line by its number from 1: a row of the listing, of a list. */
void tui_go_line(struct tui *t, uint64_t line);
/* Shows the place, which is in the binary that is shown. */
void tui_restore(struct tui *t, const struct tui_place *p);
void tui_show_view(struct tui *t, enum tui_view v);
void tui_back(struct tui *t);
void tui_forward(struct tui *t);

void tui_search_start(struct tui *t, const char *text, bool is_all, bool back);
void tui_search_again(struct tui *t, bool back);
/* The next place in the code of the word under the listing's cursor. */
void tui_search_token(struct tui *t, bool back);
void tui_search_cancel(struct tui *t);
/* Looks for every match and shows the view that they come into. */
void tui_found_start(struct tui *t, const char *text);
/* Ends the search for every match; what it found stays. False when none runs. */
bool tui_found_cancel(struct tui *t);
/* The view of matches shows what was found since the last frame. */
void tui_found_pump(struct tui *t);
void tui_found_fini(struct tui *t);
/* Splits "hex:de ad" into kind and words. */
enum ses_search_kind tui_search_kind(const char *text, const char **ret_what);

/* --- projects ------------------------------------------------------------------------------------------------------------ */

struct ses_project;
/* The session shown is binary `bin` of a project, which is borrowed: to where a person was in it. */
void tui_project_begin(struct tui *t, struct ses_project *p, uint32_t bin);
/* Remembers where a person is in the binary shown. */
void tui_place_save(struct tui *t);
/* To a binary that was open, without a trace in the history; false when it cannot be shown. */
bool tui_show_binary(struct tui *t, uint32_t bin);
/* To a place in a binary, or to where a person was in it; back leads here. */
void tui_go_binary(struct tui *t, uint32_t bin, bool has_va, uint64_t va);
/* To what a row stands for. */
void tui_go_row(struct tui *t, const struct tui_row *row);
/* As tui_go(); from an import on to the binary of the project that exports it. */
void tui_follow(struct tui *t, uint64_t va);
/* Appends references from other binaries behind the `local_total` of the binary's own. */
_must_use_ struct err *tui_far_rows(const struct tui_query *q, uint64_t local_total, struct tui_page *ret);
void tui_binaries_open(struct tui *t);
/* The list of names or strings: of this binary, of the whole project. */
void tui_scope(struct tui *t);
void tui_project_draw(struct tui *t, struct cells_pen *p);

/* To the instruction before a place of a file, which is opened beside what is open when it is another; with `to_c` its C. */
void tui_go_file(struct tui *t, const char *path, uint64_t off, bool to_c);

/* --- live trace (view_live.c) --- */

struct ses_live;
struct tui_live {
	struct ses_live *trace;   /* null: none was begun */
	bool is_tail;             /* the cursor stays at the newest event */
	bool is_changed;          /* the list is to be read anew */
	uint64_t event;           /* under the cursor */
	uint64_t gone;            /* rows before the list's first, at the last frame */
	char filter[TUI_FILTER_MAX]; /* in force */
	char command[TUI_FILTER_MAX];
	char asked[TUI_FILTER_MAX];  /* that waits for a yes */
	char find[TUI_FILTER_MAX];
};
/* Begins the trace that the words ask for, as behind `scry trace`; asks first when it runs a program. */
void tui_live_begin(struct tui *t, const char *words);
/* What a prompt of the view got. */
void tui_live_accept(struct tui *t, enum tui_prompt_kind kind, const char *text);
/* The view shows what came since the last frame. */
void tui_live_pump(struct tui *t);
/* To the event, as a place remembers it. */
void tui_live_restore(struct tui *t, uint64_t event);
/* To where the event's i-th frame is; UINT64_MAX: to its call site. */
void tui_live_go(struct tui *t, uint64_t event, uint64_t frame, bool to_c);
bool tui_live_act(struct tui *t, enum tui_action a);
void tui_live_fini(struct tui *t);

/* --- probes --- */

struct tui_probe;
/* A probe on or off, the list of them; false when the action is none of these. */
bool tui_probes_act(struct tui *t, enum tui_action a);
/* Reads what was hit since the last time. */
void tui_probes_read(struct tui *t);
void tui_probes_tick(struct tui *t, uint64_t now);
/* What the probe at an address has seen; false: there is none. */
bool tui_probe_draw(struct tui *t, struct cells_pen *p, uint64_t va, enum term_role bg);
/* The address of the next probe of what is shown, *at counts them from 0; false: no more. */
bool tui_probe_next(const struct tui *t, size_t *at, uint64_t *ret_va);
void tui_probes_fini(struct tui *t);

/* --- dock.c, dock_draw.c: a program that is debugged, or the log of one that ran --- */

struct tui_dock;
bool tui_dock_act(struct tui *t, enum tui_action a); /* false: not mine */
/* Reads a log, in a job. */
void tui_dock_trace(struct tui *t, const char *path);
/* Where the log is; false: none is loaded. */
bool tui_dock_step(const struct tui *t, uint64_t *ret_step, uint64_t *ret_steps);
/* What was typed at the prompts: a place in the log ("!50"; false: it is none), a register, a server or command. */
bool tui_dock_goto(struct tui *t, const char *text);
void tui_dock_written(struct tui *t, const char *text);
/* What all registers of the log that begin so begin with; its length. */
size_t tui_dock_complete(struct tui *t, const char *text, char *out, size_t cap);
void tui_dock_accept(struct tui *t, const char *text);
bool tui_dock_cancel(struct tui *t);
/* The jobs are about to be waited for; they ended. */
void tui_dock_stop(struct tui *t);
void tui_dock_fini(struct tui *t);
/* Columns beside the main pane, 0: it is not shown. */
int tui_dock_width(const struct tui *t, int w);
void tui_dock_draw(struct tui *t, struct cells_rect r);
/* The ground of a line of code: now, past, ahead; ROLE_BG elsewhere. */
enum term_role tui_dock_bg(const struct tui *t, uint64_t va);
bool tui_dock_has_break(const struct tui *t, uint64_t va);
/* Bytes as they are in the target or were at the step; false: nothing runs. */
bool tui_dock_bytes(struct tui *t, uint64_t va, uint32_t len, uint8_t *out, bool *known);

/* --- the whole ------------------------------------------------------------------------------------------------------------ */

struct tui {
	struct ses *ses;
	struct ses_snap *snap;
	struct ses_project *project;   /* that it is a binary of, or null */
	struct ses_project *own_project; /* made to open another file beside the only one; or null */
	uint32_t bin;                  /* which one */
	struct tui_job *open_job;      /* opens another */
	struct ses_info info;
	struct ses_segment *sections;
	uint32_t section_cnt;
	struct arena info_arena;       /* of info and sections */
	struct arena frame_arena;      /* what one frame or one key needs */
	struct ses_progress progress;

	struct cells grid;             /* the frame being painted */
	uint64_t frame;                /* frames painted so far */
	int cur_x, cur_y;              /* terminal cursor; x < 0: hidden */
	struct cells_rect scroll_hint; /* see struct term_writer */
	bool is_dirty, wants_quit, wants_redraw, wants_suspend;
	int edge_step;                 /* lines the listing moves when the cursor leaves it beside a pane; 0: one */
	bool is_light;
	int colour_step;               /* bumped by the COLOURS action */

	enum tui_view main_view;
	bool focus_functions;
	bool hide_functions;
	struct cells_rect main_rect, functions_rect;
	bool is_split;                 /* listing and another view side by side, where there is room */
	enum tui_view split_with;      /* TUI_V_C or TUI_V_GRAPH */
	bool has_split_va;
	uint64_t split_va;             /* where the leading half was when the other was led there */
	struct cells_rect split_rect;  /* of the half that is led; w 0: not shown */
	struct tui_listing listing;
	struct tui_hex hex;
	struct tui_graph graph;
	struct tui_c c;
	struct tui_live live;
	VEC(struct tui_probe *) probes;
	struct tui_job *probes_job;    /* reads what they saw */
	uint64_t probes_due_ns;        /* when it is to be read again; 0: none is attached */
	struct tui_list probes_list;
	struct tui_list lists[TUI_V_COUNT];

	struct tui_prompt prompt;
	enum tui_overlay overlays[TUI_OVERLAY_MAX];
	int overlay_cnt;
	struct tui_list palette, xrefs, symbols, peek, copy, log, presets, binaries, frames;
	struct tui_load load;
	struct tui_editor editor;
	struct cells_rect editor_rect; /* of its lines */
	char confirm_text[256];
	void (*confirm_yes)(struct tui *t);
	char type_name[300];           /* that is about to be undeclared */
	struct tui_list *opening;      /* Enter was pressed on a row that is still being loaded */
	struct cells_rect overlay_rect;
	int help_top;
	bool is_xrefs_here;            /* the references are shown under the line */
	bool is_zoomed, had_split, had_functions;
	struct tui_said said;
	uint8_t recent[TUI_RECENT_MAX];
	uint64_t offer_ns;             /* until when keys are offered; 0: they are not */
	uint64_t rotate_ns;            /* when the footer shows other keys, as long as nobody did anything; 0: no more */
	unsigned hint_set;             /* which keys it shows */
	bool is_selecting;
	struct tui_place anchor;       /* where the selection of lines began */
	char hint;                     /* the first of a hint's two letters, once typed */
	tui_operate_fn *operate;       /* operations of the table by their command line; null: there are none */
	char xrefs_title[128];
	char peek_title[160];

	VEC(struct tui_place) past;
	VEC(struct tui_place) future;

	bool is_driven;                /* what is done now is a driver's */
	bool has_acted;                /* a key or the mouse was used: the place is a person's */
	struct tui_keymap *keys;
	struct tui_stroke prefix;      /* the first of two keys that was typed; key 0: none */
	bool is_card;                  /* and a while ago: its card is shown */
	uint64_t card_ns;              /* when it is due */
	enum tui_action pending;       /* TUI_MARK or TUI_MARK_GO: the next key is its letter */
	uint64_t edit_va;              /* what the prompt is about */
	uint64_t own_rev;              /* the newest revision of our own: no news */
	uint64_t define_va;            /* what was defined last */
	struct tui_job *prefill_job;   /* reads what the prompt begins with */
	struct tui_last last;
	struct tui_edit *edit_running, *edit_first, *edit_last;
	int count;                     /* typed before a key; 0: none */
	struct tui_mark marks[52];
	struct buf clip;               /* for the terminal: what sets its clipboard */
	bool is_dragging_bar;
	char message[256];
	bool is_message_bad;
	unsigned said_from;            /* of what was said the first that drivers have not cleared */
	char search_text[TUI_FILTER_MAX];
	char search_word[TUI_FILTER_MAX]; /* that has to stand in what is found, "": nothing has to */
	struct tui_job *search_job;
	struct tui_job *found_job;     /* fills `found`, which the view of matches shows */
	struct tui_found *found;
	char changed[120];             /* the newest entry of the journal, "" none */
	bool has_proposals;            /* these were read */
	uint64_t proposals_waiting, proposals_ever;

	struct tui_job *refresh_job;   /* reads what others committed */
	uint64_t refresh_due_ns, refresh_last_ns; /* when the next one is due, 0: not; began */

	struct tui_dock *dock;         /* null: neither a log nor a debugger */
	struct tui_job *jobs;
	int job_fd;                    /* eventfd for jobs that ended, -1: run jobs at once */
	uint64_t click_ns;             /* double clicks */
	int click_x, click_y;
};

/* Takes nothing: `s` is borrowed. False when memory ran out. `w` x `h` is the first size. */
bool tui_init(struct tui *t, struct ses *s, int w, int h);
void tui_fini(struct tui *t);
/* Another session in place of the one shown: every view begins anew. `s` is borrowed. */
void tui_take_session(struct tui *t, struct ses *s);
bool tui_resize(struct tui *t, int w, int h);
void tui_event(struct tui *t, const struct term_ev *ev);
/* The session's event descriptor or job_fd told of something new. */
void tui_news(struct tui *t);
void tui_act(struct tui *t, enum tui_action a);
/* Opens the current row of the list that has the focus; once it is there when it is still being loaded. */
void tui_open_row(struct tui *t);
/* Paints t->grid. */
void tui_draw(struct tui *t);
void tui_say(struct tui *t, bool is_bad, const char *fmt, ...) _printf_(3, 4);
void tui_say_err(struct tui *t, struct err *e); /* takes e */

struct ses_call tui_call(const struct tui *t, unsigned ms);
enum tui_view tui_focus(const struct tui *t);
/* The address the focus is on; false when it is on none. */
bool tui_focus_va(struct tui *t, uint64_t *ret);
/* What the operand under the cursor leads to, in listing, graph and C (there else the function); false when it leads nowhere. */
bool tui_operand(struct tui *t, uint64_t *ret);
/* The target of the operand under the listing's cursor; false when the cursor is on none. */
bool tui_listing_operand(struct tui *t, uint64_t *ret);
/* The number of the operand under the cursor; -1: none. */
int tui_listing_operand_idx(struct tui *t);
/* The target of the listing's current line; false when it has none. */
bool tui_listing_target(struct tui *t, uint64_t *ret);
/* The word under the listing's cursor; "" when there is none. */
struct ses_text tui_listing_word(struct tui *t);
/* The function after (by > 0) or before an address. */
void tui_go_function(struct tui *t, uint64_t va, int by);
/* A line of the listing in other views. Spans of an item's text with operands in a column of their own; `word` is marked
 * where it occurs. */
void tui_line_spans(struct cells_pen *p, const struct ses_head *h, struct ses_text word, enum term_role bg);
/* Column at which a byte of the text is drawn, and the byte drawn at a column. */
int tui_line_column(const struct cells *g, const struct ses_head *h, uint32_t off);
uint32_t tui_line_offset(const struct cells *g, const struct ses_head *h, int col);
/* The token at a byte, null when there is none or only punctuation. */
const struct ses_span *tui_line_token(const struct ses_head *h, uint32_t off);
/* A scroll bar in column x of the rectangle: `pos` of `total` with `page` shown; total 0: not known. */
void tui_draw_bar(struct tui *t, struct cells_rect r, uint64_t pos, uint64_t page, uint64_t total);
static inline struct cells_style tui_style(enum term_role fg, enum term_role bg)
{
	return (struct cells_style){.fg = (uint8_t)fg, .bg = (uint8_t)bg};
}
struct cells_pen tui_pen(struct tui *t, struct cells_rect r, int row, enum term_role fg, enum term_role bg);
/* "1,234,567"; `out` has room for 32. */
const char *tui_number(uint64_t v, char *out);
/* "1.2 MB". */
const char *tui_size(uint64_t v, char *out, size_t len);
/* Columns of the functions pane beside another one; 0: a screen too narrow for two. */
int tui_functions_width(int screen_w);
/* The footer's keys for a focus (enum tui_where); set 0 is for moving about, the others rotate with it. */
void tui_draw_hints(struct cells_pen *p, const struct tui_keymap *keys, uint16_t where, unsigned set);
/* When tui_tick() is due; 0: never. */
uint64_t tui_tick_due(const struct tui *t);
/* The action of one key without the ones that want another. */
static inline enum tui_action tui_key_action(const struct tui_keymap *keys, uint32_t key, uint8_t mods, uint16_t where)
{
	return tui_keymap_action(keys, &(struct tui_stroke){key, mods}, 1, where);
}

#endif
