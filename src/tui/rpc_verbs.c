/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/rpc_verbs.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/*
 * Verbs: what a person would do with keys, asked for by name. They go through the same actions, prompts and lists, so there is one
 * way of doing each thing; with `delay_ms` they are typed where they can be read along.
 */
#define STEP_MAX 100000
#define WAIT_MAX_MS 60000
#define REPEAT_MAX 9999

static struct err *no_such(const char *what, const char *given, const char *fix)
{
	return err_fix(err_new(ERR_INVALID, "%s: '%s' is none", what, given), "%s", fix);
}

/* --- steps ------------------------------------------------------------------------------------------------------------------ */

bool tui_step_add(struct tui_call *c, struct tui_step s)
{
	return c->steps.cnt < STEP_MAX && VEC_PUSH(&c->steps, s);
}

void tui_put_away(struct tui *t)
{
	/* A filter's prompt puts back what it changed; one Esc closes any. */
	for (int i = 0; i < 4 && t->prompt.kind; i++)
		tui_prompt_key(t, TERM_KEY_ESC, 0);
	t->overlay_cnt = 0;
	t->prefix.key = 0;
	t->is_card = false;
	t->pending = TUI_NONE;
	t->count = 0;
	t->opening = NULL;
	t->is_dirty = true;
}

/* An action as its key would do it: a dialog has the moving ones, any other closes it. */
static void act(struct tui *t, enum tui_action a)
{
	struct tui_list *l = tui_overlay_list(t);
	const char *name;
	uint32_t key;
	uint8_t mods;
	t->is_dirty = t->has_acted = true;
	if (!t->search_job)
		*t->message = '\0';
	if (t->prompt.kind)
		tui_prompt_key(t, TERM_KEY_ESC, 0);
	if (l && tui_list_act(t, l, a))
		return;
	if (l && a == TUI_FOLLOW) {
		tui_overlay_accept(t);
		return;
	}
	name = tui_keymap_keys(t->keys, a);
	if (t->overlay_cnt && !l && tui_action_info(a)->group == TUI_GROUP_MOVE && term_key_parse(name, strcspn(name, " "), &key, &mods)) {
		tui_overlay_key(t, key, mods);
		return;
	}
	bool was_open = t->overlay_cnt > 0;
	tui_put_away(t);
	if (!was_open || (a != TUI_BACK && a != TUI_CANCEL))
		tui_act(t, a);
}

void tui_step_do(struct tui *t, const struct tui_step *s)
{
	struct term_ev ev = {.type = TERM_EV_KEY, .key = s->key, .mods = s->mods};
	arena_reset(&t->frame_arena);
	t->is_driven = true;
	if (s->action)
		act(t, s->action);
	else if (s->key)
		tui_event(t, &ev);
	t->is_driven = false;
}

static struct err *step_action(struct tui_call *c, enum tui_action a)
{
	return tui_step_add(c, (struct tui_step){.action = a}) ? NULL : &err_nomem;
}

static struct err *delay_of(const struct tui_call *c, size_t n, uint32_t *ret)
{
	int64_t ms = tui_arg_int(c, n, 0);
	if (ms < 0 || ms > WAIT_MAX_MS)
		return err_new(ERR_INVALID, "delay_ms: is 0 to %d", WAIT_MAX_MS);
	*ret = (uint32_t)ms;
	return NULL;
}

/* Characters as keys; a line feed is Enter. */
static struct err *step_text(struct tui_call *c, const char *text, uint32_t delay)
{
	size_t len = strlen(text);
	for (size_t at = 0; at < len;) {
		uint32_t cp;
		size_t n = utf8_next(text + at, len - at, &cp);
		if (!n || (cp < 0x20 && cp != '\n' && cp != '\t') || cp == 0x7f)
			return err_fix(err_new(ERR_INVALID, "text: a control character is not text"), "ui.keys presses keys");
		uint32_t key = cp == '\n' ? TERM_KEY_ENTER : cp == '\t' ? TERM_KEY_TAB : cp;
		if (!tui_step_add(c, (struct tui_step){.wait_ms = delay, .key = key}))
			return err_new(ERR_BUDGET, "text: more than %d keys at once", STEP_MAX);
		at += n;
	}
	return NULL;
}

/* Opens the prompt of an action and types into it. */
static struct err *step_prompt(struct tui_call *c, enum tui_action a, const char *text, uint32_t delay)
{
	if (strlen(text) >= TUI_FILTER_MAX)
		return err_new(ERR_INVALID, "%s: longer than the %d bytes a prompt holds", c->m->name, TUI_FILTER_MAX - 1);
	tui_put_away(c->t);
	struct err *e = step_action(c, a);
	if (!e)
		e = step_text(c, text, delay);
	return e || tui_step_add(c, (struct tui_step){.wait_ms = delay, .key = TERM_KEY_ENTER}) ? e : &err_nomem;
}

static struct err *one_key(struct tui_call *c, const char *name, uint32_t delay)
{
	struct tui_step s = {.wait_ms = delay};
	char *end;
	if (!strncmp(name, "wait:", 5)) {
		unsigned long ms = strtoul(name + 5, &end, 10);
		if (end == name + 5 || *end || ms > WAIT_MAX_MS)
			return err_new(ERR_INVALID, "%s: a wait is 0 to %d milliseconds", name, WAIT_MAX_MS);
		s.wait_ms = (uint32_t)ms;
	} else if (!term_key_parse(name, strlen(name), &s.key, &s.mods)) {
		return no_such("keys", name, "keys are written as in ui.methods: Enter, Ctrl+P, g; ui.text types text");
	}
	return tui_step_add(c, s) ? NULL : err_new(ERR_BUDGET, "keys: more than %d at once", STEP_MAX);
}

struct err *tui_verb_keys(struct tui_call *c)
{
	uint32_t delay = 0;
	const struct ops_doc *list = c->args[0];
	struct err *e = delay_of(c, 1, &delay);
	for (size_t i = 0; i < list->cnt && !e; i++) {
		const struct ops_doc *k = &list->items[i];
		e = k->kind == OPS_DOC_STRING ? one_key(c, k->s, delay) : err_new(ERR_INVALID, "keys: key %zu is no string", i);
	}
	return e;
}

struct err *tui_verb_text(struct tui_call *c)
{
	uint32_t delay = 0;
	struct err *e = delay_of(c, 1, &delay);
	return e ? e : step_text(c, tui_arg_str(c, 0), delay);
}

struct err *tui_verb_paste(struct tui_call *c)
{
	struct term_ev ev = {.type = TERM_EV_PASTE, .text = c->args[0]->s, .text_len = c->args[0]->len};
	struct term_ev end = {.type = TERM_EV_PASTE_END};
	c->t->is_driven = true;
	tui_event(c->t, &ev);
	tui_event(c->t, &end);
	c->t->is_driven = false;
	return NULL;
}

struct err *tui_verb_mouse(struct tui_call *c)
{
	static const struct { const char *name; uint8_t cnt; uint8_t events[4]; } kinds[] = {
		{"click", 2, {TERM_MOUSE_PRESS, TERM_MOUSE_RELEASE}},
		{"double", 4, {TERM_MOUSE_PRESS, TERM_MOUSE_RELEASE, TERM_MOUSE_PRESS, TERM_MOUSE_RELEASE}},
		{"press", 1, {TERM_MOUSE_PRESS}}, {"release", 1, {TERM_MOUSE_RELEASE}}, {"drag", 1, {TERM_MOUSE_DRAG}},
		{"wheel_up", 1, {TERM_MOUSE_WHEEL_UP}}, {"wheel_down", 1, {TERM_MOUSE_WHEEL_DOWN}},
	};
	const char *what = tui_arg_str(c, 0);
	int64_t x = tui_arg_int(c, 1, 0), y = tui_arg_int(c, 2, 0);
	size_t k = 0;
	while (k < ARRAY_LEN(kinds) && strcmp(kinds[k].name, what))
		k++;
	if (k == ARRAY_LEN(kinds))
		return no_such("what", what, "click, double, press, release, drag, wheel_up or wheel_down");
	if (x < 0 || y < 0 || x >= c->t->grid.w || y >= c->t->grid.h)
		return err_new(ERR_INVALID, "x, y: outside the %dx%d cells of the screen", c->t->grid.w, c->t->grid.h);
	for (uint8_t i = 0; i < kinds[k].cnt; i++) {
		struct term_ev ev = {.type = TERM_EV_MOUSE, .mouse = (enum term_mouse)kinds[k].events[i], .x = (int)x, .y = (int)y};
		c->t->is_driven = true;
		tui_event(c->t, &ev);
		c->t->is_driven = false;
	}
	return NULL;
}

/* --- actions ------------------------------------------------------------------------------------------------------------------ */

static struct err *times_of(const struct tui_call *c, size_t n, int64_t *ret)
{
	*ret = tui_arg_int(c, n, 1);
	return *ret >= 0 && *ret <= REPEAT_MAX ? NULL : err_new(ERR_INVALID, "n: is 0 to %d", REPEAT_MAX);
}

static struct err *repeat(struct tui_call *c, enum tui_action a, size_t n)
{
	int64_t times;
	struct err *e = times_of(c, n, &times);
	for (int64_t i = 0; i < times && !e; i++)
		e = step_action(c, a);
	return e;
}

struct err *tui_verb_action(struct tui_call *c)
{
	const char *name = tui_arg_str(c, 0);
	enum tui_action a = tui_action_named(name, strlen(name));
	return a ? repeat(c, a, 1) : no_such("action", name, "ui.methods lists the actions");
}

struct err *tui_verb_move(struct tui_call *c)
{
	const char *dir = tui_arg_str(c, 0);
	enum tui_action a = tui_action_named(dir, strlen(dir));
	if (!a || tui_action_info(a)->group != TUI_GROUP_MOVE)
		return no_such("dir", dir, "up, down, left, right, half_up, half_down, page_up, page_down, top, bottom, line_start, line_end, "
			       "word_next, word_prev, func_next, func_prev");
	return repeat(c, a, 1);
}

struct err *tui_verb_goto(struct tui_call *c)
{
	uint64_t va;
	uint32_t delay = 0;
	const char *target = tui_arg_str(c, 0);
	struct err *e = delay_of(c, 1, &delay);
	if (!e)
		e = ses_resolve(c->t->snap, target, &va);
	if (!e && !ses_is_mapped(c->t->snap, va))
		e = err_new(ERR_NOT_FOUND, "0x%llx is not mapped", (unsigned long long)va);
	if (e)
		return e;
	if (delay)
		return step_prompt(c, TUI_GOTO, target, delay);
	tui_put_away(c->t);
	*c->t->message = '\0';
	c->t->has_acted = true;
	tui_go(c->t, va);
	return NULL;
}

struct err *tui_verb_follow(struct tui_call *c)
{
	return step_action(c, TUI_FOLLOW);
}

struct err *tui_verb_back(struct tui_call *c)
{
	tui_put_away(c->t);
	return repeat(c, TUI_BACK, 0);
}

struct err *tui_verb_forward(struct tui_call *c)
{
	tui_put_away(c->t);
	return repeat(c, TUI_FORWARD, 0);
}

struct err *tui_verb_pseudocode(struct tui_call *c)
{
	struct tui *t = c->t;
	uint64_t va;
	const char *target = tui_arg_str(c, 0);
	struct err *e = NULL;
	if (target)
		e = ses_resolve(t->snap, target, &va);
	else if (!tui_focus_va(t, &va))
		e = err_fix(err_new(ERR_NOT_FOUND, "ui.pseudocode: the cursor is on no address"), "say target");
	if (!e && !tui_c_can(t, va))
		e = err_new(ERR_NOT_FOUND, "0x%llx: is in no function", (unsigned long long)va);
	if (e)
		return e;
	tui_put_away(t);
	t->focus_functions = false;
	t->has_acted = true;
	if (t->main_view != TUI_V_C) {
		tui_show_view(t, TUI_V_C);
		tui_c_ops.go(t, va);
	} else {
		tui_go(t, va);
	}
	return NULL;
}

struct err *tui_verb_toggle_view(struct tui_call *c)
{
	tui_put_away(c->t);
	return step_action(c, c->t->focus_functions ? TUI_FOCUS_NEXT : TUI_VIEW_C);
}

struct err *tui_verb_hex(struct tui_call *c)
{
	tui_put_away(c->t);
	return step_action(c, TUI_VIEW_HEX);
}

struct err *tui_verb_trace(struct tui_call *c)
{
	static const struct { const char *name; enum tui_action a; } moves[] = {
		{"next", TUI_TIME_NEXT}, {"prev", TUI_TIME_PREV}, {"over", TUI_TIME_OVER}, {"over_back", TUI_TIME_OVER_PREV},
		{"here_next", TUI_TIME_HERE_NEXT}, {"here_prev", TUI_TIME_HERE_PREV}};
	const char *what = tui_arg_str(c, 0);
	for (size_t i = 0; i < ARRAY_LEN(moves); i++)
		if (!strcmp(what, moves[i].name)) {
			tui_put_away(c->t);
			return step_action(c, moves[i].a);
		}
	tui_put_away(c->t);
	if (!tui_dock_goto(c->t, what))
		return no_such("step", what,
			       "next, prev, over, over_back, here_next, here_prev, !50 (percent), !=1200 (a step); with scry --trace LOG");
	return NULL;
}

struct err *tui_verb_show(struct tui_call *c)
{
	char name[40];
	const char *view = tui_arg_str(c, 0);
	snprintf(name, sizeof(name), "VIEW_%s", view);
	enum tui_action a = tui_action_named(name, strlen(name));
	if (!a)
		return no_such("view", view, "the actions that begin with VIEW_ in ui.methods");
	tui_put_away(c->t);
	/* Some of the keys lead there and back. */
	bool is_there = !c->t->focus_functions && !strcasecmp(tui_view_ops(c->t->main_view)->name, view);
	return is_there ? NULL : step_action(c, a);
}

struct err *tui_verb_structs(struct tui_call *c)
{
	enum tui_action a = tui_action_named("VIEW_TYPES", 10);
	if (!a)
		return err_fix(err_new(ERR_UNSUPPORTED, "ui.structs: there is no view of types yet"), "the operation types lists them");
	tui_put_away(c->t);
	return step_action(c, a);
}

struct err *tui_verb_xrefs(struct tui_call *c)
{
	tui_put_away(c->t);
	return step_action(c, tui_arg_bool(c, 0) ? TUI_XREFS_FROM : TUI_XREFS_TO);
}

struct err *tui_verb_symbols(struct tui_call *c)
{
	uint32_t delay = 0;
	const char *query = tui_arg_str(c, 0);
	struct err *e = delay_of(c, 1, &delay);
	tui_put_away(c->t);
	if (!e)
		e = step_action(c, TUI_FIND_SYMBOL);
	return e || !query ? e : step_text(c, query, delay);
}

static struct err *graph_block(struct tui_call *c)
{
	uint64_t va;
	const char *block = tui_arg_str(c, 1);
	if (!block)
		return err_new(ERR_INVALID, "block: is missing");
	struct err *e = ses_resolve(c->t->snap, block, &va);
	if (!e && !tui_graph_can(c->t, va))
		e = err_new(ERR_NOT_FOUND, "%s: is in no function", block);
	if (!e)
		tui_go(c->t, va);
	return e;
}

struct err *tui_verb_graph(struct tui_call *c)
{
	static const struct { const char *name; enum tui_action a; } moves[] = {
		{"zoom", TUI_GRAPH_ZOOM}, {"entry", TUI_BLOCK_ENTRY}, {"succ", TUI_BLOCK_SUCC}, {"pred", TUI_BLOCK_PREV_EDGE},
		{"next", TUI_BLOCK_NEXT}, {"prev", TUI_BLOCK_PREV}};
	struct tui *t = c->t;
	const char *what = tui_arg_str(c, 0) ? tui_arg_str(c, 0) : "show";
	enum tui_action then = TUI_NONE;
	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		if (!strcmp(what, moves[i].name))
			then = moves[i].a;
	}
	bool is_block = !strcmp(what, "block"), is_close = !strcmp(what, "close"), is_toggle = !strcmp(what, "toggle");
	if (!then && !is_block && !is_close && !is_toggle && strcmp(what, "show") && strcmp(what, "open"))
		return no_such("action", what, "show, open, close, toggle, zoom, entry, succ, pred, next, prev or block");
	tui_put_away(t);
	bool is_shown = t->main_view == TUI_V_GRAPH;
	struct err *e = NULL;
	if (is_toggle || is_shown == is_close)
		act(t, TUI_VIEW_GRAPH);
	t->focus_functions = false;
	if (is_block)
		e = graph_block(c);
	return e || !then ? e : step_action(c, then);
}

/* --- finding ------------------------------------------------------------------------------------------------------------------ */

struct err *tui_verb_search(struct tui_call *c)
{
	uint32_t delay = 0;
	struct tui *t = c->t;
	const char *query = tui_arg_str(c, 0);
	bool is_all = tui_arg_bool(c, 1), is_back = tui_arg_bool(c, 2);
	struct err *e = delay_of(c, 3, &delay);
	if (!e && !*query)
		e = err_new(ERR_INVALID, "query: is empty");
	if (e)
		return e;
	if (delay || strlen(query) >= TUI_FILTER_MAX)
		return step_prompt(c, is_all ? TUI_SEARCH_ALL : is_back ? TUI_SEARCH_BACK : TUI_SEARCH, query, delay);
	tui_put_away(t);
	*t->message = '\0';
	t->has_acted = true;
	tui_search_start(t, query, is_all, is_back);
	return NULL;
}

/* The list one would move in: the dialog's, or that of the view with the focus. */
static struct tui_list *list_of(struct tui *t)
{
	if (t->overlay_cnt)
		return tui_overlay_list(t);
	return tui_view_ops(tui_focus(t))->list ? &t->lists[tui_focus(t)] : NULL;
}

static struct err *need_list(struct tui_call *c, struct tui_list **ret)
{
	*ret = list_of(c->t);
	return *ret ? NULL : err_fix(err_new(ERR_NOT_FOUND, "%s: there is no list with the focus", c->m->name),
				       "ui.show, ui.xrefs, ui.symbols show one");
}

struct err *tui_verb_filter(struct tui_call *c)
{
	struct tui_list *l;
	const char *text = tui_arg_str(c, 0);
	struct err *e = need_list(c, &l);
	if (!e && strlen(text) >= TUI_FILTER_MAX)
		e = err_new(ERR_INVALID, "text: longer than %d bytes", TUI_FILTER_MAX - 1);
	if (e)
		return e;
	tui_list_set_filter(l, text);
	c->t->is_dirty = true;
	return NULL;
}

static bool row_has(const struct tui_row *r, const char *text)
{
	for (int i = 0; i < TUI_COL_MAX; i++) {
		if (r->col[i].len && memmem(r->col[i].s, r->col[i].len, text, strlen(text)))
			return true;
	}
	return false;
}

static struct err *select_row(struct tui_call *c, struct tui_list *l)
{
	const char *text = tui_arg_str(c, 1);
	int64_t index = tui_arg_int(c, 0, -1);
	(void)tui_list_row(c->t, l);
	if (!text && !c->args[0])
		return NULL;
	if (!l->has_page)
		return err_new(ERR_BUSY, "%s: the list is being loaded", c->m->name);
	for (uint32_t i = 0; text && i < l->page.cnt; i++) {
		if (!row_has(&l->page.rows[i], text))
			continue;
		l->cur = l->page_off + i;
		return NULL;
	}
	if (text)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: no row near the cursor has '%s'", c->m->name, text), "ui.filter searches the whole list");
	if (index < 0 || (uint64_t)index >= l->page.total)
		return err_new(ERR_NOT_FOUND, "index: the list has %llu rows", (unsigned long long)l->page.total);
	l->cur = (uint64_t)index;
	return NULL;
}

struct err *tui_verb_select(struct tui_call *c)
{
	struct tui_list *l;
	struct err *e = need_list(c, &l);
	if (!e)
		e = select_row(c, l);
	if (e)
		return e;
	c->t->is_dirty = c->t->has_acted = true;
	return tui_arg_bool(c, 2) ? step_action(c, TUI_FOLLOW) : NULL;
}

struct err *tui_verb_close(struct tui_call *c)
{
	tui_put_away(c->t);
	return NULL;
}

/* --- the cursor --------------------------------------------------------------------------------------------------------------- */

static struct cells_rect focus_rect(const struct tui *t)
{
	return t->focus_functions ? t->functions_rect : t->main_rect;
}

static bool is_listing(const struct tui *t)
{
	return tui_focus(t) == TUI_V_LISTING && t->listing.lines_snap == t->snap;
}

static void set_listing(struct tui *t, const struct ses_head *h, uint32_t off)
{
	t->listing.va = h->va;
	t->listing.sub = h->sub;
	t->listing.off = off;
	t->is_dirty = t->has_acted = true;
}

/* Puts the cursor on what is drawn in a cell; false when nothing that has one is. */
static bool click(struct tui *t, int x, int y)
{
	enum tui_view v = tui_focus(t);
	t->is_dirty = t->has_acted = true;
	return tui_view_ops(v)->list ? tui_list_click(t, &t->lists[v], x, y) : tui_view_ops(v)->click(t, x, y, false);
}

struct err *tui_verb_cursor(struct tui_call *c)
{
	struct tui *t = c->t;
	struct cells_rect r = focus_rect(t);
	int64_t line = tui_arg_int(c, 0, 0), col = tui_arg_int(c, 1, 0);
	if (line < 0 || line >= r.h || col < 0 || col >= r.w)
		return err_new(ERR_INVALID, "line, col: outside the %dx%d cells of the pane", r.w, r.h);
	tui_put_away(t);
	if (!is_listing(t))
		return click(t, r.x + (int)col, r.y + (int)line) ? NULL : err_new(ERR_NOT_FOUND, "line: nothing is there");
	if (line >= t->listing.line_cnt)
		return err_new(ERR_NOT_FOUND, "line: the listing ends before it");
	const struct ses_head *h = &t->listing.lines[line];
	set_listing(t, h, tui_line_offset(&t->grid, h, (int)col));
	return NULL;
}

static bool is_word_char(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || (ch & 0x80);
}

/* Whether the text at `off` is the word and no part of a longer one. */
static bool is_word_at(struct ses_text s, size_t off, const char *word, size_t len)
{
	if (off + len > s.len || memcmp(s.s + off, word, len))
		return false;
	bool is_cut_before = off && is_word_char(s.s[off - 1]) && is_word_char(*word);
	bool is_cut_after = off + len < s.len && is_word_char(s.s[off + len]) && is_word_char(word[len - 1]);
	return !is_cut_before && !is_cut_after;
}

/* The n-th place of a word in the lines [from, to) of the listing. */
static bool listing_word(struct tui *t, const char *word, int64_t from, int64_t to, int64_t n)
{
	size_t len = strlen(word);
	for (int64_t i = from; i < MIN(to, (int64_t)t->listing.line_cnt); i++) {
		const struct ses_head *h = &t->listing.lines[i];
		for (size_t off = 0; off + len <= h->text.len; off++) {
			if (!is_word_at(h->text, off, word, len) || --n)
				continue;
			set_listing(t, h, (uint32_t)off);
			return true;
		}
	}
	return false;
}

/* The same in what is drawn, cell by cell. */
static bool drawn_word(struct tui *t, const char *word, int64_t from, int64_t to, int64_t n)
{
	struct cells_rect r = cells_clip(&t->grid, focus_rect(t));
	char u8[4];
	for (int64_t y = from; y < MIN(to, (int64_t)r.h); y++) {
		const struct cells_cell *row = &t->grid.cell[(r.y + y) * t->grid.w];
		for (int x = r.x; x < r.x + r.w; x++) {
			size_t done = 0;
			for (int at = x; word[done] && at < r.x + r.w; at++) {
				size_t k = row[at].cp ? utf8_put(row[at].cp, u8) : 0;
				if (strncmp(word + done, u8, k))
					break;
				done += k;
			}
			if (word[done] || --n)
				continue;
			return click(t, x, r.y + (int)y);
		}
	}
	return false;
}

struct err *tui_verb_cursor_on(struct tui_call *c)
{
	struct tui *t = c->t;
	const char *word = tui_arg_str(c, 0);
	int64_t line = tui_arg_int(c, 1, -1), n = tui_arg_int(c, 2, 1);
	if (!*word || n < 1 || (c->args[1] && line < 0))
		return err_new(ERR_INVALID, "word, line, occurrence: a word, a line from 0, a number from 1");
	tui_put_away(t);
	int64_t from = c->args[1] ? line : 0, to = c->args[1] ? line + 1 : INT32_MAX;
	bool is_found = is_listing(t) ? listing_word(t, word, from, to, n) : drawn_word(t, word, from, to, n);
	struct json j = tui_call_extra(c);
	json_key(&j, "found");
	json_bool(&j, is_found);
	return NULL;
}

/* --- the rest ----------------------------------------------------------------------------------------------------------------- */

struct err *tui_verb_screen(struct tui_call *c)
{
	const char *format = tui_arg_str(c, 0);
	if (format && strcmp(format, "text") && strcmp(format, "html") && strcmp(format, "svg"))
		return no_such("format", format, "text, html or svg");
	return NULL;
}

struct err *tui_verb_rename_many(struct tui_call *c)
{
	static const char *const names[] = {"from", "from", "atomic", "dry_run"};
	struct ops_doc *params = ARENA_NEW(&c->arena, struct ops_doc);
	struct ops_doc *items = ARENA_ARRAY(&c->arena, struct ops_doc, ARRAY_LEN(names) + 1);
	if (!params || !items)
		return &err_nomem;
	if (!c->args[0] == !c->args[1])
		return err_new(ERR_INVALID, "ui.rename_many: either items or file");
	*params = (struct ops_doc){.kind = OPS_DOC_OBJECT, .items = items};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!c->args[i])
			continue;
		items[params->cnt] = *c->args[i];
		items[params->cnt++].key = names[i];
	}
	return tui_edit_call(c, ops_find("rename"), params);
}
