/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/load.h"

#include "session/session.h"
#include "tui/term/input.h"
#include "tui/term/theme.h"
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DIALOG_W 72
#define SHOWN_MAX 8

/* The n-th of the processors, "auto" before all; null behind the last. */
static const char *processor(uint32_t n)
{
	return n ? ses_processor(n - 1) : "auto";
}

static bool matches(const struct tui_load *d, const char *name)
{
	size_t len = strlen(d->filter);
	for (const char *s = name; *s; s++) {
		if (!strncasecmp(s, d->filter, len))
			return true;
	}
	return !len;
}

/* The n-th of those that match; null behind the last. */
static const char *matching(const struct tui_load *d, uint32_t n)
{
	const char *name;
	for (uint32_t i = 0; (name = processor(i)); i++) {
		if (matches(d, name) && !n--)
			return name;
	}
	return NULL;
}

const char *tui_load_processor(const struct tui_load *d)
{
	return matching(d, d->cur);
}

void tui_load_choose(struct tui_load *d, const char *name)
{
	*d->filter = '\0';
	d->cur = 0;
	for (uint32_t i = 0; processor(i); i++) {
		if (!strcmp(processor(i), name))
			d->cur = i;
	}
}

static void type(struct tui_load *d, uint32_t key)
{
	char *text = d->is_in_base ? d->base : d->filter;
	size_t len = strlen(text);
	if (key == TERM_KEY_BACKSPACE)
		text[len ? len - 1 : 0] = '\0';
	else if (key > ' ' && key < 0x7f && len + 1 < sizeof(d->base))
		memcpy(text + len, (char[]){(char)key, 0}, 2);
	if (!d->is_in_base)
		d->cur = 0;
}

enum tui_load_end tui_load_key(struct tui_load *d, uint32_t key, uint8_t mods)
{
	bool is_plain = !(mods & (TERM_CTRL | TERM_ALT));
	if (key == TERM_KEY_ESC || (mods & TERM_CTRL && (key == 'g' || key == 'c')))
		return TUI_LOAD_LEFT;
	if (key == TERM_KEY_TAB)
		d->is_in_base = !d->is_in_base;
	else if (key == TERM_KEY_F1 + 1 || (mods & TERM_CTRL && key == 'k'))
		d->is_raw = !d->is_raw;
	else if (key == TERM_KEY_UP || (mods & TERM_CTRL && key == 'p'))
		d->cur -= d->cur > 0;
	else if (key == TERM_KEY_DOWN || (mods & TERM_CTRL && key == 'n'))
		d->cur += matching(d, d->cur + 1) != NULL;
	else if (key == TERM_KEY_ENTER)
		return tui_load_processor(d) ? TUI_LOAD_TAKEN : TUI_LOAD_OPEN;
	else if (is_plain)
		type(d, key);
	return TUI_LOAD_OPEN;
}

static struct cells_pen row(struct cells *g, struct cells_rect r, int y, enum term_role fg, enum term_role bg)
{
	struct cells_rect line = {r.x + 1, r.y + y, r.w - 2, 1};
	cells_fill(g, line, tui_style(fg, bg));
	return (struct cells_pen){.g = g, .x = line.x + 1, .y = line.y, .end = line.x + line.w, .st = tui_style(fg, bg), .escape_fg = ROLE_ESCAPE};
}

static void field(struct cells_pen *p, const char *label, const char *text, bool is_focused, int *ret_x, int *ret_y)
{
	cells_printf(p, "%s %s ", is_focused ? ">" : " ", label);
	p->st.fg = ROLE_TEXT;
	cells_str(p, text);
	if (is_focused) {
		*ret_x = MIN(p->x, p->end - 1);
		*ret_y = p->y;
	}
}

struct cells_rect tui_load_draw(const struct tui_load *d, struct cells *g, const char *title, int *ret_x, int *ret_y)
{
	uint32_t cnt = 0;
	while (matching(d, cnt))
		cnt++;
	int shown = (int)MIN(cnt ? cnt : 1, SHOWN_MAX);
	int h = MIN(shown + 6 + (*d->why != 0), g->h);
	int w = MIN(DIALOG_W, g->w);
	struct cells_rect r = {(g->w - w) / 2, MAX(0, (g->h - h) / 3), w, h};
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	cells_fill(g, r, st);
	cells_box(g, r, title, st);
	int y = 1;
	struct cells_pen p;
	if (*d->why) {
		p = row(g, r, y++, ROLE_ERROR, ROLE_BG_DIALOG);
		cells_printf(&p, "! %s", d->why);
	}
	p = row(g, r, y++, ROLE_KEY, ROLE_BG_DIALOG);
	field(&p, "processor:", d->filter, !d->is_in_base, ret_x, ret_y);
	uint32_t top = d->cur >= SHOWN_MAX ? d->cur - SHOWN_MAX + 1 : 0;
	for (int i = 0; i < shown && y < h - 4; i++, y++) {
		const char *name = matching(d, top + (uint32_t)i);
		bool is_cur = top + (uint32_t)i == d->cur;
		p = row(g, r, y, is_cur ? ROLE_SELECT : ROLE_NAME, is_cur ? ROLE_BG_SELECT : ROLE_BG_DIALOG);
		cells_printf(&p, "  %c %s", is_cur ? '>' : ' ', !name ? "none is called so" : strcmp(name, "auto") ? name : "auto: as the file says");
	}
	p = row(g, r, y++, ROLE_KEY, ROLE_BG_DIALOG);
	field(&p, "base:", d->base, d->is_in_base, ret_x, ret_y);
	if (!*d->base) {
		p.st.fg = ROLE_DIM;
		cells_str(&p, "  an address in hex; nothing: as the file says");
	}
	p = row(g, r, y++, ROLE_TEXT, ROLE_BG_DIALOG);
	cells_printf(&p, "  format: %s", d->is_raw ? "raw bytes, whatever the file says" : "as the file says");
	p = row(g, r, y, ROLE_DIM, ROLE_BG_DIALOG);
	cells_str(&p, "Enter takes them, Tab processor or base, F2 format, Esc leaves");
	return r;
}

/* --- reload as ------------------------------------------------------------------------------------------------------------- */

/* What stands in the journal is what it begins with. */
void tui_load_open(struct tui *t)
{
	struct ses_fact *f;
	struct ses_page page = {.limit = 8};
	struct ses_call call = tui_call(t, 0);
	struct tui_load *d = &t->load;
	*d = (struct tui_load){0};
	struct err *e = ses_facts(t->snap, &call, "load", &page, &t->frame_arena, &f);
	for (uint32_t i = 0; !e && i < page.cnt; i++) {
		char value[32];
		snprintf(value, sizeof(value), "%.*s", (int)f[i].value.len, f[i].value.s);
		if (f[i].sub.len && f[i].sub.s[0] == 'p')
			tui_load_choose(d, value);
		else if (f[i].sub.len && f[i].sub.s[0] == 'b')
			snprintf(d->base, sizeof(d->base), "%s", value);
		else
			d->is_raw = true;
	}
	err_free(e);
	tui_overlay_push(t, TUI_O_LOAD);
}

void tui_load_overlay_key(struct tui *t, uint32_t key, uint8_t mods)
{
	struct tui_load *d = &t->load;
	enum tui_load_end end = tui_load_key(d, key, mods);
	if (end == TUI_LOAD_OPEN)
		return;
	tui_overlay_pop(t);
	if (end == TUI_LOAD_LEFT)
		return;
	const char *words[] = {"processor", tui_load_processor(d), "base", tui_load_base(d), "format", tui_load_format(d), NULL};
	tui_edit_words(t, "load", words);
}
