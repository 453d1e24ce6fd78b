/* SPDX-License-Identifier: Apache-2.0 */
#include "session/project.h"
#include "tui/graph_func.h"
#include "tui/tui_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The frame around the views: header, panes, status, footer; keys and mouse to actions; snapshots as they come. A view
 * never learns of another view, of the terminal, or of a colour.
 */
#define FUNCTIONS_MIN_W 84 /* narrower screens show one pane at a time */
#define HEX_W 79
#define DOUBLE_CLICK_NS 400000000u
#define WHEEL_LINES 3
#define HINT_SETS 3
#define TIMES_MAX 9999 /* a key by its count */

static const struct tui_view_ops *const views[TUI_V_COUNT] = {
	[TUI_V_LISTING] = &tui_listing_ops, [TUI_V_HEX] = &tui_hex_ops,
	[TUI_V_GRAPH] = &tui_graph_ops,	    [TUI_V_C] = &tui_c_ops,
	[TUI_V_FUNCTIONS] = &tui_functions_ops,
	[TUI_V_STRINGS] = &tui_strings_ops, [TUI_V_IMPORTS] = &tui_imports_ops, [TUI_V_EXPORTS] = &tui_exports_ops,
	[TUI_V_SYMBOLS] = &tui_symbols_ops, [TUI_V_MAP] = &tui_map_ops,	      [TUI_V_PROBLEMS] = &tui_problems_ops,
	[TUI_V_BOOKMARKS] = &tui_bookmarks_ops, [TUI_V_JOURNAL] = &tui_journal_ops, [TUI_V_TYPES] = &tui_types_ops,
	[TUI_V_PROPOSALS] = &tui_proposals_ops, [TUI_V_SEARCH] = &tui_search_ops, [TUI_V_LIVE] = &tui_live_ops,
};

const struct tui_view_ops *tui_view_ops(enum tui_view v)
{
	return views[v];
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct ses_call tui_call(const struct tui *t, unsigned ms)
{
	struct ses_call call = {.caps = SES_CAP_READ};
	/* Without a loop there is nobody to finish the work later. */
	if (ms && t->job_fd >= 0)
		call.deadline_ns = now_ns() + ms * 1000000ull;
	return call;
}

enum tui_view tui_focus(const struct tui *t)
{
	return t->focus_functions ? TUI_V_FUNCTIONS : t->main_view;
}

void tui_say(struct tui *t, bool is_bad, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(t->message, sizeof(t->message), fmt, ap);
	va_end(ap);
	snprintf(t->said.line[t->said.cnt++ % TUI_SAID_MAX], sizeof(t->said.line[0]), "%s%s", is_bad ? "! " : "", t->message);
	t->is_message_bad = is_bad;
	t->is_dirty = true;
}

void tui_say_err(struct tui *t, struct err *e)
{
	tui_say(t, true, "%s", e->text ? e->text : err_kind_name(e->kind));
	err_free(e);
}

const char *tui_number(uint64_t v, char *out)
{
	char plain[24];
	int n = snprintf(plain, sizeof(plain), "%llu", (unsigned long long)v);
	char *to = out;
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = plain[i];
	}
	*to = '\0';
	return out;
}

struct cells_pen tui_pen(struct tui *t, struct cells_rect r, int row, enum term_role fg, enum term_role bg)
{
	return (struct cells_pen){.g = &t->grid, .x = r.x, .y = r.y + row, .end = r.x + r.w, .st = tui_style(fg, bg),
				  .escape_fg = ROLE_ESCAPE};
}

void tui_draw_bar(struct tui *t, struct cells_rect r, uint64_t pos, uint64_t page, uint64_t total)
{
	struct cells_style st = tui_style(ROLE_BORDER, ROLE_BG);
	for (int y = 0; y < r.h; y++)
		cells_put(&t->grid, r.x, r.y + y, cells_glyph(&t->grid, total ? GLYPH_BAR : GLYPH_DOT), st);
	if (total <= page || r.h < 2)
		return;
	int len = (int)MAX((uint64_t)r.h * page / total, 1);
	uint64_t last = total - page;
	int at = (int)((double)MIN(pos, last) / (double)last * (r.h - len) + 0.5);
	for (int y = at; y < at + len && y < r.h; y++)
		cells_put(&t->grid, r.x, r.y + y, cells_glyph(&t->grid, GLYPH_THUMB), st);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void load_info(struct tui *t)
{
	arena_reset(&t->info_arena);
	t->section_cnt = 0;
	struct err *e = ses_info(t->snap, &t->info_arena, &t->info);
	if (!e)
		e = ses_sections(t->snap, &t->info_arena, &t->sections, &t->section_cnt);
	if (e)
		tui_say_err(t, e);
}

bool tui_init(struct tui *t, struct ses *s, int w, int h)
{
	memset(t, 0, sizeof(*t));
	t->ses = s;
	t->job_fd = -1;
	t->cur_x = -1;
	t->keys = tui_keymap_new();
	if (!t->keys || !cells_resize(&t->grid, MAX(w, 1), MAX(h, 1)))
		return false;
	t->snap = ses_snap_get(s);
	ses_get_progress(s, &t->progress);
	load_info(t);
	for (int v = 0; v < TUI_V_COUNT; v++) {
		if (views[v]->list)
			tui_list_init(&t->lists[v], views[v]->list);
	}
	tui_list_init(&t->palette, &tui_palette_list);
	tui_list_init(&t->xrefs, &tui_xrefs_list);
	tui_list_init(&t->symbols, &tui_symbols_palette_list);
	tui_list_init(&t->peek, &tui_peek_list);
	tui_list_init(&t->copy, &tui_copy_list);
	tui_list_init(&t->log, &tui_log_list);
	tui_list_init(&t->presets, &tui_presets_list);
	tui_list_init(&t->binaries, &tui_binaries_list);
	tui_list_init(&t->frames, &tui_frames_list);
	tui_list_init(&t->probes_list, &tui_probes_list);
	const char *note = ses_store_note(s);
	if (note)
		tui_say(t, true, "the analysis is not kept on disk: %s", note);
	t->is_dirty = true;
	return true;
}

void tui_fini(struct tui *t)
{
	tui_place_save(t);
	tui_live_fini(t);
	tui_dock_stop(t);
	tui_jobs_reap(t, true);
	tui_dock_fini(t);
	tui_probes_fini(t);
	tui_edits_finish(t);
	for (int v = 0; v < TUI_V_COUNT; v++) {
		if (views[v]->list)
			tui_list_fini(&t->lists[v]);
	}
	tui_list_fini(&t->palette);
	tui_list_fini(&t->xrefs);
	tui_found_fini(t);
	tui_list_fini(&t->symbols);
	tui_list_fini(&t->peek);
	tui_list_fini(&t->copy);
	tui_list_fini(&t->log);
	tui_list_fini(&t->presets);
	tui_list_fini(&t->binaries);
	tui_list_fini(&t->frames);
	tui_list_fini(&t->probes_list);
	tui_editor_fini(t);
	buf_fini(&t->clip);
	VEC_FREE(&t->past);
	VEC_FREE(&t->future);
	tui_graph_fini(t);
	tui_c_fini(t);
	arena_fini(&t->listing.arena);
	arena_fini(&t->hex.arena);
	arena_fini(&t->info_arena);
	arena_fini(&t->frame_arena);
	cells_fini(&t->grid);
	tui_keymap_free(t->keys);
	if (t->snap)
		ses_snap_put(t->snap);
	ses_project_close(t->own_project);
}

bool tui_resize(struct tui *t, int w, int h)
{
	t->is_dirty = true;
	return cells_resize(&t->grid, MAX(w, 1), MAX(h, 1));
}

void tui_take_session(struct tui *t, struct ses *s)
{
	struct ses_snap *old = t->snap;
	/* What runs is of the program that was shown. */
	if (t->dock) {
		tui_dock_stop(t);
		tui_jobs_reap(t, true);
		tui_dock_fini(t);
	}
	tui_search_cancel(t);
	tui_found_fini(t);
	*t->changed = '\0';
	t->has_proposals = false;
	t->proposals_waiting = t->lists[TUI_V_PROPOSALS].marked.cnt = 0;
	t->prompt.kind = TUI_PROMPT_NONE;
	t->overlay_cnt = 0;
	tui_editor_fini(t);
	t->hex.is_editing = t->has_split_va = false;
	t->own_rev = 0;
	t->opening = NULL;
	t->is_dirty = true;
	t->ses = s;
	t->snap = ses_snap_get(s);
	ses_get_progress(s, &t->progress);
	load_info(t);
	for (int v = 0; v < TUI_V_COUNT; v++) {
		if (!views[v]->list || v == TUI_V_LIVE) /* which is of no target */
			continue;
		*t->lists[v].filter = '\0';
		tui_list_restart(&t->lists[v]);
	}
	struct tui_list *const dialogs[] = {&t->xrefs, &t->symbols, &t->peek, &t->copy, &t->binaries};
	for (size_t i = 0; i < ARRAY_LEN(dialogs); i++)
		tui_list_restart(dialogs[i]);
	tui_job_cancel(t->graph.job);
	tui_graph_fini(t);
	t->graph = (struct tui_graph){.zoom = t->graph.zoom, .hide_map = t->graph.hide_map};
	tui_c_fini(t);
	t->c = (struct tui_c){0};
	t->listing.is_placed = t->hex.is_placed = false;
	t->listing.lines_snap = NULL;
	t->listing.line_cnt = 0;
	t->hex.segs_snap = NULL;
	t->focus_functions = false;
	if (t->main_view == TUI_V_GRAPH || t->main_view == TUI_V_C)
		t->main_view = TUI_V_LISTING;
	ses_snap_put(old);
}

void tui_news(struct tui *t)
{
	tui_jobs_reap(t, false);
	ses_get_progress(t->ses, &t->progress);
	t->is_dirty = true;
	struct ses_snap *next = ses_snap_get(t->ses);
	if (next == t->snap) {
		ses_snap_put(next);
		return;
	}
	struct ses_snap *old = t->snap;
	uint64_t old_start = t->info.main_va;
	t->snap = next;
	load_info(t);
	/* Where nobody has moved yet there is no place to keep, and a better one to start from. */
	if (!t->has_acted && t->info.main_va != old_start)
		t->listing.is_placed = false;
	/* Identities of the old one must not outlive it: a later snapshot may get its address. */
	t->listing.lines_snap = NULL;
	t->listing.line_cnt = 0;
	t->hex.segs_snap = NULL;
	t->graph.f_snap = NULL;
	tui_c_outdate(t);
	for (int v = 0; v < TUI_V_COUNT; v++) {
		if (views[v]->list)
			tui_list_snap_changed(t, &t->lists[v]);
	}
	tui_list_snap_changed(t, &t->xrefs);
	tui_list_snap_changed(t, &t->symbols);
	tui_list_snap_changed(t, &t->peek);
	ses_snap_put(old);
}

/* --- drawing -------------------------------------------------------------------------------------------------------- */

static const char *state_name(enum ses_state s)
{
	switch (s) {
	case SES_IDENTIFYING:
		return "identifying";
	case SES_ANALYSING:
		return "analysing";
	case SES_READY:
		return "ready";
	case SES_FAILED:
		return "! failed";
	}
	return "";
}

const char *tui_size(uint64_t v, char *out, size_t len)
{
	static const char units[] = "BKMGTP";
	double d = (double)v;
	int unit = 0;
	while (d >= 1024 && unit < 5) {
		d /= 1024;
		unit++;
	}
	if (unit)
		snprintf(out, len, "%.1f %cB", d, units[unit]);
	else
		snprintf(out, len, "%llu bytes", (unsigned long long)v);
	return out;
}

static unsigned percent(const struct ses_progress *g)
{
	return (unsigned)((double)MIN(g->done, g->total) * 100.0 / (double)g->total);
}

/* What is known before the analysis is through. */
static void draw_counts(struct tui *t, struct cells_pen *p)
{
	char number[32];
	const struct tui_list *imports = &t->lists[TUI_V_IMPORTS];
	if (t->progress.func_cnt)
		cells_printf(p, ", %s functions", tui_number(t->progress.func_cnt, number));
	if (t->info.strings)
		cells_printf(p, ", %s strings", tui_number(t->info.strings, number));
	if (imports->has_page && imports->page.total)
		cells_printf(p, ", %s imports", tui_number(imports->page.total, number));
}

static void draw_state(struct tui *t, struct cells_pen *p)
{
	const struct ses_progress *g = &t->progress;
	p->st.fg = g->state == SES_READY ? ROLE_BAR_DIM : ROLE_BAR_WARN;
	cells_str(p, g->state == SES_IDENTIFYING && g->stage ? g->stage : state_name(g->state));
	if (g->state == SES_FAILED) {
		const char *why = ses_error_text(t->ses);
		cells_printf(p, ": %s", why ? why : "");
	} else if (g->state == SES_ANALYSING) {
		cells_printf(p, ": %s", g->stage ? g->stage : "");
	}
	if (g->state != SES_READY && g->state != SES_FAILED && g->total)
		cells_printf(p, " %u %%", percent(g));
	if (g->state == SES_ANALYSING)
		draw_counts(t, p);
	if (ses_target_changed(t->ses)) {
		p->st.fg = ROLE_BAR_WARN;
		cells_str(p, "  ! the file has changed on disk");
	}
}

static void draw_header(struct tui *t)
{
	char size[32];
	char number[32];
	struct cells_rect r = {0, 0, t->grid.w, 1};
	struct cells_pen p = tui_pen(t, r, 0, ROLE_BAR_KEY, ROLE_BG_BAR);
	cells_fill(&t->grid, r, p.st);
	const char *path = ses_path(t->ses);
	const char *slash = strrchr(path, '/');
	p.st.attr = CELLS_BOLD;
	cells_str(&p, " ");
	cells_str(&p, slash && slash[1] ? slash + 1 : path);
	p.st.attr = 0;
	p.st.fg = ROLE_BAR;
	cells_str(&p, "  ");
	cells_text(&p, t->info.format.s, t->info.format.len);
	cells_str(&p, " ");
	cells_text(&p, t->info.arch.s, t->info.arch.len);
	if (t->info.type.len) {
		cells_str(&p, " ");
		cells_text(&p, t->info.type.s, t->info.type.len);
	}
	cells_printf(&p, "  %s", tui_size(t->info.size, size, sizeof(size)));
	if (t->info.is_stripped)
		cells_str(&p, "  stripped");
	if (t->info.format.len == 3 && !memcmp(t->info.format.s, "raw", 3)) {
		const char *key = tui_keymap_keys(t->keys, TUI_LOAD);
		cells_printf(&p, "  stated, not read (%.*s: load options)", (int)strcspn(key, " "), key);
	}
	tui_project_draw(t, &p);
	cells_str(&p, "  ");
	draw_state(t, &p);
	if (t->info.problems) {
		p.st.fg = ROLE_BAR_WARN;
		cells_printf(&p, "  ! %s problem%s (P)", tui_number(t->info.problems, number), t->info.problems == 1 ? "" : "s");
	}
}

static const struct ses_segment *section_at(const struct tui *t, uint64_t va)
{
	for (uint32_t i = 0; i < t->section_cnt; i++) {
		if (va >= t->sections[i].addr && va - t->sections[i].addr < t->sections[i].size)
			return &t->sections[i];
	}
	return NULL;
}

bool tui_focus_va(struct tui *t, uint64_t *ret)
{
	enum tui_view v = tui_focus(t);
	if (!views[v]->list)
		return views[v]->va(t, ret);
	const struct tui_row *row = tui_list_row(t, &t->lists[v]);
	if (!row || !row->has_va)
		return false;
	*ret = row->va;
	return true;
}

bool tui_operand(struct tui *t, uint64_t *ret)
{
	switch ((int)tui_focus(t)) {
	case TUI_V_LISTING:
		return tui_listing_operand(t, ret);
	case TUI_V_GRAPH:
		return tui_graph_operand(t, ret);
	case TUI_V_C:
		return tui_c_subject(t, ret);
	default:
		return false;
	}
}

static void draw_where(struct tui *t, struct cells_pen *p)
{
	char number[2][32];
	uint64_t va;
	uint64_t off;
	uint64_t row;
	if (!tui_focus_va(t, &va)) {
		if (*t->changed)
			cells_printf(p, "  last: %s", t->changed);
		return;
	}
	struct ses_text where = ses_where(t->snap, va, &t->frame_arena);
	const struct ses_segment *s = section_at(t, va);
	p->st.fg = ROLE_BAR_NAME;
	cells_printf(p, "  %llx ", (unsigned long long)va);
	p->st.fg = ROLE_BAR;
	cells_text(p, where.s, MIN(where.len, 60));
	if (s) {
		p->st.fg = ROLE_BAR_DIM;
		cells_str(p, "  ");
		cells_text(p, s->name.s, s->name.len);
	}
	if (ses_va_to_file(t->snap, va, &off))
		cells_printf(p, "  file +%llx", (unsigned long long)off);
	if (*t->changed)
		cells_printf(p, "  last: %s", t->changed);
	if (tui_focus(t) == TUI_V_LISTING && ses_row_of(t->snap, va, &row))
		cells_printf(p, "  row %s of %s", tui_number(row + 1, number[0]), tui_number(ses_row_cnt(t->snap), number[1]));
}

static void draw_message(struct tui *t, struct cells_pen *p)
{
	p->st.fg = t->is_message_bad ? ROLE_BAR_WARN : ROLE_BAR;
	cells_printf(p, t->is_message_bad ? "  ! %s" : "  %s", t->message);
}

static void draw_progress(struct tui *t, struct cells_pen *p)
{
	const struct ses_progress *g = &t->progress;
	cells_str(p, "  analysing");
	if (g->total)
		cells_printf(p, " %u %%", percent(g));
	cells_str(p, " \xc2\xb7 what you look at goes first \xc2\xb7 Esc never waits");
}

/* What agents propose waits for the person. */
static void draw_waiting(struct tui *t, struct cells_pen *p)
{
	char number[32];
	const char *key = tui_keymap_keys(t->keys, TUI_VIEW_PROPOSALS);
	if (!t->proposals_waiting)
		return;
	p->st.fg = ROLE_BAR_WARN;
	cells_printf(p, "  ! %s proposed", tui_number(t->proposals_waiting, number));
	if (*key && t->main_view != TUI_V_PROPOSALS)
		cells_printf(p, " (%.*s)", (int)strcspn(key, " "), key);
	p->st.fg = ROLE_BAR;
}

static void draw_status(struct tui *t, int y)
{
	struct cells_rect r = {0, y, t->grid.w, 1};
	struct cells_pen p = tui_pen(t, r, 0, ROLE_BAR_KEY, ROLE_BG_BAR);
	cells_fill(&t->grid, r, p.st);
	p.st.attr = CELLS_BOLD;
	cells_printf(&p, t->split_rect.w ? " split: %s" : " %s", views[tui_focus(t)]->name);
	p.st.attr = 0;
	draw_waiting(t, &p);
	/* A prompt has the line below, where messages are. */
	if (*t->message && t->prompt.kind) {
		draw_message(t, &p);
		return;
	}
	if (views[tui_focus(t)]->status)
		views[tui_focus(t)]->status(t, &p);
	draw_where(t, &p);
	p.st.fg = ROLE_BAR_DIM;
	if (t->progress.state == SES_ANALYSING && ses_snap_is_preview(t->snap))
		draw_progress(t, &p);
}

static void draw_hint(struct cells_pen *p, const struct tui_keymap *keys, enum tui_action a, const char *text)
{
	const char *key = tui_keymap_keys(keys, a);
	size_t len = strcspn(key, " ");
	if (!len || p->x + (int)len + (int)strlen(text) + 3 > p->end)
		return;
	p->st.fg = ROLE_KEY;
	p->st.attr = CELLS_BOLD;
	cells_str(p, " ");
	cells_text(p, key, len);
	p->st.fg = ROLE_DIM;
	p->st.attr = 0;
	cells_printf(p, " %s ", text);
}

void tui_draw_hints(struct cells_pen *p, const struct tui_keymap *keys, uint16_t where, unsigned set)
{
	static const struct { enum tui_action a; const char *text; } more[HINT_SETS - 1][5] = {
		{{TUI_RENAME, "name"}, {TUI_COMMENT, "comment"}, {TUI_RETYPE, "type"}, {TUI_UNDO, "take back"}, {TUI_VIEW_GRAPH, "graph"}},
		{{TUI_VIEW_STRINGS, "strings"}, {TUI_FIND_SYMBOL, "any name"}, {TUI_VIEW_HEX, "hex"}, {TUI_HINTS, "jump"},
		 {TUI_SEARCH_ALL, "all matches"}},
	};
	if (set % HINT_SETS) {
		for (size_t i = 0; i < ARRAY_LEN(more[0]); i++)
			draw_hint(p, keys, more[set % HINT_SETS - 1][i].a, more[set % HINT_SETS - 1][i].text);
		draw_hint(p, keys, TUI_PALETTE, "everything");
		draw_hint(p, keys, TUI_HELP, "keys");
		return;
	}
	if (where & TUI_IN_PROPOSALS) {
		draw_hint(p, keys, TUI_ACCEPT, "accept");
		draw_hint(p, keys, TUI_REFUSE, "refuse");
		draw_hint(p, keys, TUI_PROPOSAL_MARK, "mark");
	}
	if (where & TUI_IN_LIVE) {
		draw_hint(p, keys, TUI_FOLLOW, "call site");
		draw_hint(p, keys, TUI_LIVE_C, "its C");
		draw_hint(p, keys, TUI_LIVE_FRAMES, "who called");
		draw_hint(p, keys, TUI_FILTER, "filter");
		draw_hint(p, keys, TUI_LIVE_PAUSE, "hold");
		draw_hint(p, keys, TUI_LIVE_TAIL, "newest");
		draw_hint(p, keys, TUI_LIVE_START, "trace");
		draw_hint(p, keys, TUI_LIVE_STOP, "end");
		draw_hint(p, keys, TUI_BACK, "back");
		draw_hint(p, keys, TUI_HELP, "keys");
		return;
	}
	draw_hint(p, keys, TUI_FOLLOW, where & TUI_IN_LIST ? "open" : where == TUI_IN_HEX ? "code" : "follow");
	draw_hint(p, keys, TUI_XREFS_TO, "who refers");
	if (where & TUI_IN_MAIN)
		draw_hint(p, keys, TUI_VIEW_C, where == TUI_IN_C ? "listing" : "C");
	draw_hint(p, keys, TUI_GOTO, "go to");
	draw_hint(p, keys, where & TUI_IN_LIST ? TUI_FILTER : TUI_SEARCH, where & TUI_IN_LIST ? "filter" : "search");
	draw_hint(p, keys, TUI_BACK, "back");
	draw_hint(p, keys, TUI_PALETTE, "everything");
	draw_hint(p, keys, TUI_HELP, "keys");
}

/* In place of the hints, so that the place stays in sight. */
static void draw_message_line(struct tui *t, struct cells_rect r, struct cells_pen *p)
{
	p->st = tui_style(ROLE_BAR, ROLE_BG_BAR);
	cells_fill(&t->grid, r, p->st);
	draw_message(t, p);
}

static void draw_footer(struct tui *t, int y)
{
	struct cells_rect r = {0, y, t->grid.w, 1};
	struct cells_pen p = tui_pen(t, r, 0, ROLE_DIM, ROLE_BG);
	uint16_t where = views[tui_focus(t)]->where;
	cells_fill(&t->grid, r, p.st);
	if (t->prefix.key)
		tui_prefix_draw(t, &p);
	else if (*t->message && !t->prompt.kind)
		draw_message_line(t, r, &p);
	else
		tui_draw_hints(&p, t->keys, where, t->hint_set);
}

int tui_functions_width(int screen_w)
{
	return screen_w < FUNCTIONS_MIN_W ? 0 : MIN(MAX(screen_w / 4, 28), 48);
}

/* The functions pane marks the function the listing is in. */
static void draw_panes(struct tui *t)
{
	int h = MAX(t->grid.h - 3, 1);
	bool is_narrow = t->grid.w < FUNCTIONS_MIN_W;
	bool show = !t->hide_functions && t->main_view != TUI_V_FUNCTIONS && (!is_narrow || t->focus_functions);
	int w = !show ? 0 : is_narrow ? t->grid.w : tui_functions_width(t->grid.w);
	/* Sixteen bytes with their text need a width of their own. */
	if (w && !is_narrow && t->main_view == TUI_V_HEX)
		w = MAX(MIN(w, t->grid.w - HEX_W), 20);
	if (w && !t->focus_functions && tui_split_fits(t, t->grid.w) && !tui_split_fits(t, t->grid.w - w))
		w = 0; /* the split needs their room until they are asked for */
	t->split_rect.w = 0;
	t->functions_rect = (struct cells_rect){0, 1, w, h};
	t->main_rect = (struct cells_rect){w, 1, MAX(t->grid.w - w, 0), h};
	if (is_narrow && show)
		t->main_rect.w = 0;
	int dock = tui_dock_width(t, t->main_rect.w);
	t->main_rect.w -= dock;
	if (dock)
		tui_dock_draw(t, (struct cells_rect){t->main_rect.x + t->main_rect.w, 1, dock, h});
	if (t->main_rect.w) {
		if (views[t->main_view]->list && !views[t->main_view]->draw)
			tui_list_draw(t, &t->lists[t->main_view], t->main_rect, !t->focus_functions);
		else if (tui_split_fits(t, t->main_rect.w))
			tui_split_draw(t, !t->focus_functions);
		else
			views[t->main_view]->draw(t, t->main_rect, !t->focus_functions);
	}
	if (!w)
		return;
	struct tui_list *functions = &t->lists[TUI_V_FUNCTIONS];
	struct ses_func f;
	uint64_t va;
	/* Names alone while another pane has the focus: that is what one glances at, and what moves cheaply. */
	functions->is_brief = !t->focus_functions;
	functions->has_here = views[t->main_view]->va && views[t->main_view]->va(t, &va) &&
			      ses_func_at(t->snap, va, &t->frame_arena, &f);
	functions->here_va = functions->has_here ? f.addr : 0;
	tui_list_draw(t, functions, t->functions_rect, t->focus_functions);
}

void tui_draw(struct tui *t)
{
	arena_reset(&t->frame_arena);
	t->cur_x = t->cur_y = -1;
	t->scroll_hint.w = 0;
	tui_found_pump(t);
	tui_live_pump(t);
	cells_fill(&t->grid, (struct cells_rect){0, 0, t->grid.w, t->grid.h}, tui_style(ROLE_TEXT, ROLE_BG));
	if (t->hide_functions || (t->main_view == TUI_V_FUNCTIONS))
		t->focus_functions = false;
	draw_panes(t);
	draw_header(t);
	if (t->grid.h > 3) {
		draw_status(t, t->grid.h - 2);
		draw_footer(t, t->grid.h - 1);
	}
	tui_overlays_draw(t);
	if (t->prefix.key && t->is_card)
		tui_card_draw(t);
	if (t->offer_ns)
		tui_offer_draw(t);
	if (t->prompt.kind)
		tui_prompt_draw(t, t->grid.h - 1);
	t->frame++;
	t->is_dirty = false;
}

/* --- actions ---------------------------------------------------------------------------------------------------------- */

static void cancel(struct tui *t)
{
	enum tui_view v = tui_focus(t);
	if (t->search_job)
		tui_search_cancel(t);
	else if (tui_dock_cancel(t))
		t->is_dirty = true;
	else if (tui_found_cancel(t))
		tui_say(t, false, "search stopped; what was found stays");
	else if (t->overlay_cnt)
		tui_overlay_pop(t);
	else if (views[v]->list && *t->lists[v].filter)
		tui_list_set_filter(&t->lists[v], "");
	else
		tui_say(t, false, "nothing is running (q leaves)");
}

void tui_open_row(struct tui *t)
{
	struct tui_list *l = &t->lists[tui_focus(t)];
	const struct tui_row *row = tui_list_row(t, l);
	if (!row && l->job)
		t->opening = l;
	else if (row && row->bin)
		tui_go_row(t, row);
	else if (row && row->has_va && tui_focus(t) == TUI_V_IMPORTS)
		tui_follow(t, row->va);
	else if (row && views[tui_focus(t)]->act && views[tui_focus(t)]->act(t, TUI_FOLLOW))
		return;
	else if (row && row->has_va)
		tui_go(t, row->va);
	else if (row)
		tui_say(t, false, "this row has no address");
}

static void go_entry(struct tui *t)
{
	tui_go(t, t->info.main_va);
}

static void focus_next(struct tui *t)
{
	if (t->hide_functions || t->main_view == TUI_V_FUNCTIONS)
		tui_say(t, false, "there is one pane (Ctrl+B shows the functions)");
	else
		t->focus_functions = !t->focus_functions;
}

static void show_functions(struct tui *t)
{
	t->hide_functions = false;
	t->focus_functions = t->main_view != TUI_V_FUNCTIONS;
}

static void prompt(struct tui *t, enum tui_prompt_kind kind)
{
	tui_prompt_open(t, kind, kind == TUI_PROMPT_FILTER ? t->lists[tui_focus(t)].filter : "");
}

/* One pane over all the room; what was beside it comes back. */
static void zoom_pane(struct tui *t)
{
	t->is_zoomed = !t->is_zoomed;
	if (t->is_zoomed) {
		t->had_split = t->is_split;
		t->had_functions = !t->hide_functions;
		t->is_split = false;
		t->hide_functions = true;
		if (t->focus_functions)
			t->main_view = TUI_V_FUNCTIONS;
		return;
	}
	t->is_split = t->had_split;
	t->hide_functions = !t->had_functions;
	if (t->main_view == TUI_V_FUNCTIONS && t->had_functions) {
		t->main_view = TUI_V_LISTING;
		t->focus_functions = true;
	}
}

static bool act_view(struct tui *t, enum tui_action a)
{
	switch ((int)a) {
	case TUI_FOCUS_NEXT:
	case TUI_FOCUS_PREV:
		focus_next(t);
		return true;
	case TUI_VIEW_C:
		/* In a split the side that leads changes. */
		if (t->split_rect.w && !t->focus_functions)
			tui_split_swap(t);
		else
			tui_c_toggle(t);
		return true;
	case TUI_VIEW_GRAPH:
		tui_graph_toggle(t);
		return true;
	case TUI_GRAPH_CALLS:
		tui_graph_around(t, TUI_AROUND_CALLS);
		return true;
	case TUI_GRAPH_REFS:
		tui_graph_around(t, TUI_AROUND_REFS);
		return true;
	case TUI_SPLIT:
		tui_split_toggle(t);
		return true;
	case TUI_VIEW_LISTING:
		t->graph.is_sticky = false;
		tui_show_view(t, TUI_V_LISTING);
		return true;
	case TUI_VIEW_HEX:
		tui_show_view(t, t->main_view == TUI_V_HEX ? TUI_V_LISTING : TUI_V_HEX);
		return true;
	case TUI_VIEW_FUNCTIONS:
		show_functions(t);
		return true;
	case TUI_VIEW_STRINGS:
		tui_show_view(t, TUI_V_STRINGS);
		return true;
	case TUI_VIEW_IMPORTS:
		tui_show_view(t, TUI_V_IMPORTS);
		return true;
	case TUI_VIEW_EXPORTS:
		tui_show_view(t, TUI_V_EXPORTS);
		return true;
	case TUI_VIEW_SYMBOLS:
		tui_show_view(t, TUI_V_SYMBOLS);
		return true;
	case TUI_VIEW_MAP:
		tui_show_view(t, TUI_V_MAP);
		return true;
	case TUI_VIEW_PROBLEMS:
		tui_show_view(t, TUI_V_PROBLEMS);
		return true;
	case TUI_VIEW_BOOKMARKS:
		tui_show_view(t, TUI_V_BOOKMARKS);
		return true;
	case TUI_VIEW_PROPOSALS:
		tui_show_view(t, TUI_V_PROPOSALS);
		return true;
	case TUI_VIEW_SEARCH:
		tui_show_view(t, TUI_V_SEARCH);
		return true;
	case TUI_LIVE:
	case TUI_LIVE_START:
	case TUI_LIVE_STOP:
	case TUI_LIVE_PAUSE:
		return tui_live_act(t, a);
	case TUI_VIEW_TYPES:
		tui_show_view(t, TUI_V_TYPES);
		return true;
	case TUI_ZOOM_PANE:
		zoom_pane(t);
		return true;
	case TUI_TOGGLE_FUNCTIONS:
		t->hide_functions = !t->hide_functions;
		return true;
	default:
		return false;
	}
}

static bool act_find(struct tui *t, enum tui_action a)
{
	switch ((int)a) {
	case TUI_GOTO:
		prompt(t, TUI_PROMPT_GOTO);
		return true;
	case TUI_SEARCH:
		prompt(t, TUI_PROMPT_SEARCH);
		return true;
	case TUI_SEARCH_BACK:
		prompt(t, TUI_PROMPT_SEARCH_BACK);
		return true;
	case TUI_XREFS_HERE:
		tui_xrefs_open(t, false);
		t->is_xrefs_here = true;
		return true;
	case TUI_SEARCH_ALL:
		prompt(t, TUI_PROMPT_SEARCH_ALL);
		return true;
	case TUI_FILTER:
		if (!views[tui_focus(t)]->list)
			show_functions(t);
		prompt(t, TUI_PROMPT_FILTER);
		return true;
	case TUI_BINARIES:
		tui_binaries_open(t);
		return true;
	case TUI_SCOPE:
		tui_scope(t);
		return true;
	case TUI_FIND_SYMBOL:
		tui_symbols_open(t);
		return true;
	case TUI_PEEK:
		tui_peek_open(t);
		return true;
	case TUI_TOKEN_NEXT:
	case TUI_TOKEN_PREV:
		tui_search_token(t, a == TUI_TOKEN_PREV);
		return true;
	case TUI_MARK:
	case TUI_MARK_GO:
		t->pending = a;
		tui_say(t, false, a == TUI_MARK ? "mark: a letter" : "go to mark: a letter");
		return true;
	case TUI_SEARCH_NEXT:
	case TUI_SEARCH_PREV:
		tui_search_again(t, a == TUI_SEARCH_PREV);
		return true;
	case TUI_XREFS_TO:
	case TUI_XREFS_FROM:
		tui_xrefs_open(t, a == TUI_XREFS_FROM);
		return true;
	case TUI_CANCEL:
		cancel(t);
		return true;
	case TUI_GO_ENTRY:
		go_entry(t);
		return true;
	case TUI_BACK:
		tui_back(t);
		return true;
	case TUI_FORWARD:
		tui_forward(t);
		return true;
	default:
		return false;
	}
}

static void act_scry(struct tui *t, enum tui_action a)
{
	switch ((int)a) {
	case TUI_COPY_LINE:
	case TUI_COPY_ADDRESS:
	case TUI_COPY_NAME:
	case TUI_COPY_BYTES:
	case TUI_COPY_C:
		tui_copy(t, a);
		break;
	case TUI_COPY_AS:
		tui_list_restart(&t->copy);
		tui_overlay_push(t, TUI_O_COPY);
		break;
	case TUI_EXPORT:
		prompt(t, TUI_PROMPT_EXPORT);
		break;
	case TUI_SAVE:
		tui_say(t, false, "nothing waits to be saved: every edit is on disk when it says so (U lists them)");
		break;
	case TUI_KEYS_AGAIN:
		if (tui_keys_use(t, getenv("SCRY_KEYS")))
			tui_say(t, false, "keys read again");
		break;
	case TUI_LOAD:
		tui_load_open(t);
		break;
	case TUI_LOG:
		tui_list_restart(&t->log);
		tui_overlay_push(t, TUI_O_LOG);
		break;
	case TUI_KEYS:
		tui_list_restart(&t->presets);
		tui_overlay_push(t, TUI_O_KEYS);
		break;
	case TUI_COMMAND:
		prompt(t, TUI_PROMPT_COMMAND);
		break;
	case TUI_PALETTE:
		tui_palette_open(t);
		break;
	case TUI_HELP:
		t->help_top = 0;
		tui_overlay_push(t, TUI_O_HELP);
		break;
	case TUI_REDRAW:
		t->wants_redraw = true;
		break;
	case TUI_THEME:
		t->is_light = !t->is_light;
		t->wants_redraw = true;
		break;
	case TUI_COLOURS:
		t->colour_step++;
		break;
	case TUI_SUSPEND:
		t->wants_suspend = true;
		break;
	case TUI_QUIT:
		t->wants_quit = true;
		break;
	default:
		tui_say(t, false, "%s: not in this view", tui_action_info(a)->text);
		break;
	}
}

void tui_act(struct tui *t, enum tui_action a)
{
	enum tui_view v = tui_focus(t);
	if (a == TUI_NONE)
		return;
	if (tui_action_info(a)->group == TUI_GROUP_LATER) {
		tui_say(t, true, "unsupported: %s", tui_action_info(a)->text);
		return;
	}
	if ((views[v]->act && views[v]->act(t, a)) || (views[v]->list && tui_list_act(t, &t->lists[v], a)))
		return;
	if (a == TUI_FOLLOW && views[v]->list) {
		tui_open_row(t);
		return;
	}
	if (!act_view(t, a) && !act_find(t, a) && !tui_probes_act(t, a) && !tui_dock_act(t, a) &&
	    !tui_edit_act(t, a) && !tui_define_act(t, a) && !tui_typing_act(t, a))
		act_scry(t, a);
}

/* The key meant: of a layout with other letters the one at the same place, unless it is bound as it is. */
static struct tui_stroke meant(const struct tui *t, struct tui_stroke s, uint16_t where)
{
	if (s.key < 0x80 || s.key >= TERM_KEY_ESC || (!t->prefix.key && tui_keymap_action(t->keys, &s, 1, where)))
		return s;
	return (struct tui_stroke){tui_keymap_char(t->keys, s.key), s.mods};
}

static void say_unbound(struct tui *t)
{
	const char *help = tui_keymap_keys(t->keys, TUI_HELP);
	const char *palette = tui_keymap_keys(t->keys, TUI_PALETTE);
	tui_say(t, false, "no action on this key here (%.*s shows the keys, %.*s everything)", (int)strcspn(help, " "), help,
		(int)strcspn(palette, " "), palette);
}

static void on_key(struct tui *t, uint32_t key, uint8_t mods)
{
	/* A running search keeps its line until it ends. */
	if (!t->search_job)
		*t->message = '\0';
	t->opening = NULL;
	t->hint_set = 0;
	if (t->offer_ns && tui_offer_key(t, mods ? 0 : key))
		return;
	if (!t->prompt.kind && !t->overlay_cnt && tui_hex_edit_key(t, key, mods))
		return;
	if (t->prompt.kind) {
		tui_prompt_key(t, key, mods);
		return;
	}
	if (t->overlay_cnt) {
		tui_overlay_key(t, key, mods);
		return;
	}
	if (tui_pending_key(t, key, mods))
		return;
	uint16_t where = views[tui_focus(t)]->where;
	struct tui_stroke s[TUI_STROKES_MAX] = {t->prefix, meant(t, (struct tui_stroke){key, mods}, where)};
	bool is_second = t->prefix.key != 0;
	t->prefix.key = 0;
	if (!is_second && tui_keymap_is_prefix(t->keys, s[1], where)) {
		tui_prefix_begin(t, s[1], now_ns());
		return;
	}
	enum tui_action a = tui_keymap_action(t->keys, is_second ? s : s + 1, is_second ? 2 : 1, where);
	if (is_second && a == TUI_NONE && (key == TERM_KEY_ESC || key == TERM_KEY_BACKSPACE || (key == 'g' && mods == TERM_CTRL)))
		return;
	if (a == TUI_BACK && t->search_job)
		a = TUI_CANCEL;
	if (a == TUI_NONE)
		say_unbound(t);
	/* A count repeats what moves; for anything else it means nothing. */
	int times = a != TUI_NONE && tui_action_info(a)->group == TUI_GROUP_MOVE ? MIN(MAX(t->count, 1), TIMES_MAX) : 1;
	int line = a == TUI_BOTTOM ? t->count : 0;
	t->count = 0;
	if (line) {
		tui_go_line(t, (uint64_t)line);
		return;
	}
	for (int i = 0; i < times; i++)
		tui_act(t, a);
}

/* --- mouse ------------------------------------------------------------------------------------------------------------ */

static bool is_in(struct cells_rect r, int x, int y)
{
	return x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h;
}

static void on_wheel(struct tui *t, const struct term_ev *ev)
{
	int by = ev->mouse == TERM_MOUSE_WHEEL_UP ? -WHEEL_LINES : WHEEL_LINES;
	if (is_in(t->functions_rect, ev->x, ev->y))
		tui_list_scroll(t, &t->lists[TUI_V_FUNCTIONS], by);
	else if (is_in(t->split_rect, ev->x, ev->y))
		views[tui_split_other(t)]->scroll(t, by);
	else if (!is_in(t->main_rect, ev->x, ev->y))
		return;
	else if (views[t->main_view]->list)
		tui_list_scroll(t, &t->lists[t->main_view], by);
	else
		views[t->main_view]->scroll(t, by);
}

static void on_press(struct tui *t, const struct term_ev *ev, bool is_double)
{
	bool in_functions = is_in(t->functions_rect, ev->x, ev->y);
	if (is_in(t->split_rect, ev->x, ev->y))
		tui_split_swap(t);
	if (!in_functions && !is_in(t->main_rect, ev->x, ev->y))
		return;
	t->focus_functions = in_functions;
	enum tui_view v = tui_focus(t);
	bool can_open;
	if (views[v]->list) {
		const struct tui_list *l = &t->lists[v];
		t->is_dragging_bar = ev->x == l->body.x + l->body.w;
		can_open = tui_list_click(t, &t->lists[v], ev->x, ev->y);
	} else {
		t->is_dragging_bar = v == TUI_V_GRAPH || ev->x >= t->main_rect.x + t->main_rect.w - 1;
		can_open = views[v]->click(t, ev->x, ev->y, false);
	}
	if (is_double && can_open)
		tui_act(t, TUI_FOLLOW);
}

static void on_mouse(struct tui *t, const struct term_ev *ev)
{
	bool is_press = ev->mouse == TERM_MOUSE_PRESS && ev->button == 0;
	uint64_t now = is_press ? now_ns() : 0;
	bool is_double = is_press && ev->x == t->click_x && ev->y == t->click_y && now - t->click_ns < DOUBLE_CLICK_NS;
	if (is_press) {
		t->click_x = ev->x;
		t->click_y = ev->y;
		t->click_ns = is_double ? 0 : now;
	}
	if (t->prompt.kind || t->hex.is_editing)
		return;
	if (t->overlay_cnt)
		tui_overlay_mouse(t, ev, is_double);
	else if (ev->mouse == TERM_MOUSE_WHEEL_UP || ev->mouse == TERM_MOUSE_WHEEL_DOWN)
		on_wheel(t, ev);
	else if (is_press)
		on_press(t, ev, is_double);
	else if (ev->mouse == TERM_MOUSE_DRAG && t->is_dragging_bar && views[tui_focus(t)]->list)
		tui_list_click(t, &t->lists[tui_focus(t)], t->lists[tui_focus(t)].body.x + t->lists[tui_focus(t)].body.w, ev->y);
	else if (ev->mouse == TERM_MOUSE_DRAG && t->is_dragging_bar)
		views[t->main_view]->click(t, t->main_view == TUI_V_GRAPH ? ev->x : t->main_rect.x + t->main_rect.w - 1, ev->y, true);
	if (ev->mouse == TERM_MOUSE_RELEASE)
		t->is_dragging_bar = false;
}

void tui_event(struct tui *t, const struct term_ev *ev)
{
	arena_reset(&t->frame_arena);
	t->is_dirty = true;
	t->has_acted = true;
	switch (ev->type) {
	case TERM_EV_KEY:
		/* Esc and a key sent in one go look like Alt+key; as long as that means nothing it is both of them. */
		if (ev->mods & TERM_ALT && !tui_key_action(t->keys, ev->key, ev->mods, TUI_IN_ANY)) {
			on_key(t, TERM_KEY_ESC, 0);
			on_key(t, ev->key, ev->mods & (uint8_t)~TERM_ALT);
		} else {
			on_key(t, ev->key, ev->mods);
		}
		break;
	case TERM_EV_MOUSE:
		on_mouse(t, ev);
		break;
	case TERM_EV_PASTE:
		if (t->prompt.kind)
			tui_prompt_paste(t, ev->text, ev->text_len);
		else if (t->overlay_cnt)
			tui_overlay_paste(t, ev->text, ev->text_len);
		else
			tui_hex_edit_paste(t, ev->text, ev->text_len);
		break;
	case TERM_EV_PASTE_END:
	case TERM_EV_REPLY:
		break;
	}
}
