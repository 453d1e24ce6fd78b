/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What lies over the panes: a stack of dialogs. The uppermost has the keys; Esc closes it. */

bool tui_overlay_push(struct tui *t, enum tui_overlay which)
{
	if (t->overlay_cnt == TUI_OVERLAY_MAX || (t->overlay_cnt && t->overlays[t->overlay_cnt - 1] == which))
		return false;
	t->overlays[t->overlay_cnt++] = which;
	return true;
}

void tui_overlay_pop(struct tui *t)
{
	if (t->overlay_cnt)
		t->overlay_cnt--;
}

static struct tui_list *list_of(struct tui *t, enum tui_overlay which)
{
	switch (which) {
	case TUI_O_PALETTE:
		return &t->palette;
	case TUI_O_XREFS:
		return &t->xrefs;
	case TUI_O_SYMBOLS:
		return &t->symbols;
	case TUI_O_PEEK:
		return &t->peek;
	case TUI_O_COPY:
		return &t->copy;
	case TUI_O_LOG:
		return &t->log;
	case TUI_O_KEYS:
		return &t->presets;
	case TUI_O_BINARIES:
		return &t->binaries;
	case TUI_O_FRAMES:
		return &t->frames;
	case TUI_O_PROBES:
		return &t->probes_list;
	case TUI_O_HELP:
	case TUI_O_CONFIRM:
	case TUI_O_EDITOR:
	case TUI_O_LOAD:
		return NULL;
	}
	return NULL;
}

static enum tui_overlay uppermost(const struct tui *t)
{
	return t->overlays[t->overlay_cnt - 1];
}

static struct cells_rect dialog_rect(const struct tui *t, int want_w, int want_h)
{
	int w = MIN(want_w, t->grid.w - (t->grid.w > 60 ? 4 : 0));
	int h = MIN(want_h, t->grid.h - (t->grid.h > 16 ? 4 : 2));
	return (struct cells_rect){(t->grid.w - w) / 2, MAX(1, (t->grid.h - h) / 3), w, h};
}

/* Under the cursor's line, or above it where there is more room. */
static struct cells_rect rect_at_line(const struct tui *t, int want_h)
{
	struct cells_rect m = t->main_rect;
	int below = m.y + m.h - 1 - t->cur_y;
	int above = t->cur_y - m.y;
	int h = MIN(MAX(want_h, 5), MAX(MAX(below, above), 3));
	int w = MIN(m.w - 4, 100);
	if (t->cur_y < 0 || w < 20)
		return dialog_rect(t, 110, want_h);
	return (struct cells_rect){m.x + 2, below >= h || below >= above ? t->cur_y + 1 : t->cur_y - h, w, h};
}

static void draw_filter(struct tui *t, struct cells_rect r, const struct tui_list *l)
{
	struct cells_pen p = tui_pen(t, r, 0, ROLE_KEY, ROLE_BG_DIALOG);
	cells_fill(&t->grid, r, p.st);
	cells_str(&p, "> ");
	p.st.fg = ROLE_TEXT;
	cells_str(&p, l->filter);
	t->cur_x = MIN(p.x, r.x + r.w - 1);
	t->cur_y = r.y;
	p.st.fg = ROLE_DIM;
	if (!*l->filter)
		cells_str(&p, l == &t->palette ? "  type to find an action; Enter does it, Esc closes" :
			  l == &t->symbols && t->project ? "  type a part of a name; Enter goes there, F2 this binary or the project, Esc closes" :
			  "  type a part of a name; Enter goes there, Esc closes");
}

static void draw_list_dialog(struct tui *t, enum tui_overlay which)
{
	struct tui_list *l = list_of(t, which);
	char title[TUI_FILTER_MAX + 32];
	if (which == TUI_O_XREFS)
		snprintf(title, sizeof(title), "%s", t->xrefs_title);
	else if (which == TUI_O_PEEK)
		snprintf(title, sizeof(title), "%s", t->peek_title);
	else
		snprintf(title, sizeof(title), "%s", l->ops->title);
	int want_h = 30;
	tui_list_row(t, l);
	if (!l->ops->is_typed_in && l->has_page && l->page.total < 24)
		want_h = MAX((int)l->page.total + 4, 9);
	struct cells_rect r = which == TUI_O_XREFS && t->is_xrefs_here ? rect_at_line(t, (int)MIN(l->page.total, 8) + 4) :
							    dialog_rect(t, 110, want_h);
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	t->overlay_rect = r;
	cells_fill(&t->grid, r, st);
	cells_box(&t->grid, r, title, st);
	struct cells_rect body = {r.x + 1, r.y + 1, r.w - 2, r.h - 2};
	if (l->ops->is_typed_in && body.h > 2) {
		tui_list_draw(t, l, (struct cells_rect){body.x, body.y + 1, body.w, body.h - 1}, true);
		draw_filter(t, (struct cells_rect){body.x, body.y, body.w, 1}, l);
	} else {
		tui_list_draw(t, l, body, true);
	}
}

static void draw_help(struct tui *t)
{
	struct cells_rect r = dialog_rect(t, 130, tui_help_line_cnt(t) + 2);
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	t->overlay_rect = r;
	cells_fill(&t->grid, r, st);
	cells_box(&t->grid, r, "Keys  (j k scroll, Esc closes, Ctrl+P does what has no key)", st);
	tui_help_draw(t, (struct cells_rect){r.x + 1, r.y + 1, r.w - 2, r.h - 2});
	t->cur_x = r.x + 1;
	t->cur_y = r.y + 1;
}

static void draw_editor(struct tui *t)
{
	struct cells_rect r = dialog_rect(t, 110, 34);
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	t->overlay_rect = r;
	cells_fill(&t->grid, r, st);
	cells_box(&t->grid, r, t->editor.title, st);
	tui_editor_draw(t, (struct cells_rect){r.x + 1, r.y + 1, r.w - 2, r.h - 2});
}

static void draw_confirm(struct tui *t)
{
	struct cells_rect r = dialog_rect(t, 70, 5);
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	t->overlay_rect = r;
	cells_fill(&t->grid, r, st);
	cells_box(&t->grid, r, "Sure?", st);
	struct cells_pen p = tui_pen(t, (struct cells_rect){r.x + 2, r.y + 1, r.w - 4, 1}, 0, ROLE_TEXT, ROLE_BG_DIALOG);
	cells_str(&p, t->confirm_text);
	p = tui_pen(t, (struct cells_rect){r.x + 2, r.y + 3, r.w - 4, 1}, 0, ROLE_KEY, ROLE_BG_DIALOG);
	t->cur_x = p.x;
	t->cur_y = p.y;
	cells_str(&p, "Enter or y: yes   Esc or n: no");
}

void tui_confirm(struct tui *t, void (*yes)(struct tui *t), const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(t->confirm_text, sizeof(t->confirm_text), fmt, ap);
	va_end(ap);
	t->confirm_yes = yes;
	tui_overlay_push(t, TUI_O_CONFIRM);
}

static void confirm_key(struct tui *t, uint32_t key, uint8_t mods)
{
	bool is_yes = !(mods & (TERM_CTRL | TERM_ALT)) && (key == 'y' || key == TERM_KEY_ENTER);
	tui_overlay_pop(t);
	if (is_yes)
		t->confirm_yes(t);
	else
		tui_say(t, false, "nothing was changed");
}

void tui_overlays_draw(struct tui *t)
{
	for (int i = 0; i < t->overlay_cnt; i++) {
		if (t->overlays[i] == TUI_O_HELP)
			draw_help(t);
		else if (t->overlays[i] == TUI_O_EDITOR)
			draw_editor(t);
		else if (t->overlays[i] == TUI_O_CONFIRM)
			draw_confirm(t);
		else if (t->overlays[i] == TUI_O_LOAD)
			t->overlay_rect = tui_load_draw(&t->load, &t->grid, "Load options", &t->cur_x, &t->cur_y);
		else
			draw_list_dialog(t, t->overlays[i]);
	}
	if (t->overlay_cnt)
		t->scroll_hint.w = 0;
}

struct tui_list *tui_overlay_list(struct tui *t)
{
	return t->overlay_cnt ? list_of(t, uppermost(t)) : NULL;
}

/* The palette shows what was done last first. */
static void remember(struct tui *t, uint8_t action)
{
	int at = 0;
	while (at < TUI_RECENT_MAX - 1 && t->recent[at] != action)
		at++;
	memmove(t->recent + 1, t->recent, (size_t)at);
	t->recent[0] = action;
}

void tui_overlay_accept(struct tui *t)
{
	enum tui_overlay which = uppermost(t);
	struct tui_list *l = list_of(t, which);
	const struct tui_row *row = l ? tui_list_row(t, l) : NULL;
	if (!row) {
		t->opening = l && l->job ? l : NULL;
		return;
	}
	struct tui_row chosen = *row;
	t->overlay_cnt = 0;
	if (which == TUI_O_PALETTE)
		remember(t, chosen.action);
	if (which == TUI_O_KEYS)
		tui_keys_pick(t, chosen.action);
	else if (which == TUI_O_FRAMES)
		tui_live_go(t, t->live.event, chosen.id, false);
	else if (which == TUI_O_PALETTE || which == TUI_O_COPY)
		tui_act(t, (enum tui_action)chosen.action);
	else
		tui_go_row(t, &chosen);
}

static void edit_filter(struct tui_list *l, uint32_t key)
{
	char filter[TUI_FILTER_MAX];
	size_t len = strlen(l->filter);
	memcpy(filter, l->filter, len + 1);
	if (key == TERM_KEY_BACKSPACE) {
		while (len && ((uint8_t)filter[--len] & 0xc0) == 0x80)
			;
	} else if (len + 5 < sizeof(filter)) {
		len += utf8_put(key, filter + len);
	}
	filter[len] = '\0';
	tui_list_set_filter(l, filter);
}

void tui_overlay_paste(struct tui *t, const char *text, size_t len)
{
	struct tui_list *l = tui_overlay_list(t);
	if (uppermost(t) == TUI_O_EDITOR)
		tui_editor_paste(t, text, len);
	for (size_t i = 0; i < len && uppermost(t) == TUI_O_LOAD; i++) {
		if ((uint8_t)text[i] > ' ')
			tui_load_overlay_key(t, (uint8_t)text[i], 0);
	}
	for (size_t i = 0; i < len && l && l->ops->is_typed_in; i++) {
		if ((uint8_t)text[i] >= 0x20 && (uint8_t)text[i] < 0x7f)
			edit_filter(l, (uint8_t)text[i]);
	}
}

static void help_key(struct tui *t, enum tui_action a)
{
	int page = MAX(t->overlay_rect.h - 3, 1);
	if (a == TUI_UP || a == TUI_DOWN)
		t->help_top += a == TUI_UP ? -1 : 1;
	else if (a == TUI_PAGE_UP || a == TUI_HALF_UP)
		t->help_top -= page;
	else if (a == TUI_PAGE_DOWN || a == TUI_HALF_DOWN)
		t->help_top += page;
	else if (a == TUI_TOP || a == TUI_LINE_START)
		t->help_top = 0;
	else if (a == TUI_BOTTOM || a == TUI_LINE_END)
		t->help_top = tui_help_line_cnt(t);
	else
		tui_overlay_pop(t);
	t->help_top = MAX(t->help_top, 0);
}

void tui_overlay_key(struct tui *t, uint32_t key, uint8_t mods)
{
	enum tui_overlay which = uppermost(t);
	struct tui_list *l = list_of(t, which);
	if (which == TUI_O_EDITOR || which == TUI_O_CONFIRM || which == TUI_O_LOAD) {
		(which == TUI_O_EDITOR ? tui_editor_key : which == TUI_O_LOAD ? tui_load_overlay_key : confirm_key)(t, key, mods);
		return;
	}
	bool is_typed_in = l && l->ops->is_typed_in;
	bool is_typing = is_typed_in && !(mods & (TERM_CTRL | TERM_ALT)) && (key < TERM_KEY_ESC ||
		(key == TERM_KEY_BACKSPACE && *l->filter));
	if (is_typing) {
		edit_filter(l, key);
		return;
	}
	enum tui_action a = tui_key_action(t->keys, key, mods, TUI_IN_LIST);
	/* In a list one types in, the next and previous row are a shell's keys. */
	if (is_typed_in && mods == TERM_CTRL && (key == 'n' || key == 'p'))
		a = key == 'n' ? TUI_DOWN : TUI_UP;
	if (a == TUI_BACK || a == TUI_CANCEL)
		tui_overlay_pop(t);
	else if (which == TUI_O_HELP)
		help_key(t, a);
	else if (a == TUI_FOLLOW)
		tui_overlay_accept(t);
	else if (a == TUI_SCOPE)
		tui_scope(t);
	else if (a == TUI_QUIT)
		tui_overlay_pop(t);
	else
		tui_list_act(t, l, a);
}

void tui_overlay_mouse(struct tui *t, const struct term_ev *ev, bool is_double)
{
	struct tui_list *l = list_of(t, uppermost(t));
	struct cells_rect r = t->overlay_rect;
	bool is_inside = ev->x >= r.x && ev->x < r.x + r.w && ev->y >= r.y && ev->y < r.y + r.h;
	if (ev->mouse == TERM_MOUSE_WHEEL_UP || ev->mouse == TERM_MOUSE_WHEEL_DOWN) {
		int by = ev->mouse == TERM_MOUSE_WHEEL_UP ? -3 : 3;
		if (l)
			tui_list_scroll(t, l, by);
		else if (uppermost(t) == TUI_O_EDITOR)
			tui_editor_scroll(t, by);
		else
			t->help_top = MAX(0, t->help_top + by);
	} else if (ev->mouse == TERM_MOUSE_PRESS && uppermost(t) == TUI_O_EDITOR) {
		tui_editor_click(t, ev->x, ev->y); /* a click beside it drops no text */
	} else if (ev->mouse == TERM_MOUSE_PRESS && !is_inside) {
		tui_overlay_pop(t);
	} else if (ev->mouse == TERM_MOUSE_PRESS && l && tui_list_click(t, l, ev->x, ev->y) && is_double) {
		tui_overlay_accept(t);
	}
}
