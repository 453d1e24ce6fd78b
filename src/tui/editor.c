/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A text of several lines, with the keys of a plain editor. Ctrl+S declares it; what is wrong is said with its line, the
 * cursor goes there and the text stays. Esc leaves; what was changed is asked about first.
 */
#define TEXT_MAX (1u << 20)
#define TAB_COLS 8

static bool make_room(struct tui_editor *d, size_t more)
{
	if (d->len + more + 1 > TEXT_MAX)
		return false;
	if (d->len + more + 1 <= d->cap)
		return true;
	size_t cap = MIN((d->len + more + 1) * 2, (size_t)TEXT_MAX);
	char *grown = realloc(d->text, cap);
	if (!grown)
		return false;
	d->text = grown;
	d->cap = cap;
	return true;
}

bool tui_editor_open(struct tui *t, const char *title, const char *over, const char *text)
{
	struct tui_editor *d = &t->editor;
	free(d->text);
	*d = (struct tui_editor){0};
	if (!make_room(d, strlen(text))) {
		tui_say_err(t, &err_nomem);
		return false;
	}
	d->len = strlen(text);
	memcpy(d->text, text, d->len + 1);
	snprintf(d->title, sizeof(d->title), "%s", title);
	snprintf(d->over, sizeof(d->over), "%s", over);
	return tui_overlay_push(t, TUI_O_EDITOR);
}

void tui_editor_fini(struct tui *t)
{
	free(t->editor.text);
	t->editor = (struct tui_editor){0};
}

/* --- lines --- */

static size_t line_start(const struct tui_editor *d, size_t at)
{
	while (at && d->text[at - 1] != '\n')
		at--;
	return at;
}

static size_t line_end(const struct tui_editor *d, size_t at)
{
	while (at < d->len && d->text[at] != '\n')
		at++;
	return at;
}

static size_t line_of(const struct tui_editor *d, size_t at)
{
	size_t n = 0;
	for (size_t i = 0; i < at; i++)
		n += d->text[i] == '\n';
	return n;
}

static size_t start_of_line(const struct tui_editor *d, size_t line)
{
	size_t at = 0;
	for (; line && at < d->len; line--)
		at = MIN(line_end(d, at) + 1, d->len);
	return at;
}

static size_t char_end(const struct tui_editor *d, size_t at)
{
	if (at < d->len)
		at++;
	while (at < d->len && ((uint8_t)d->text[at] & 0xc0) == 0x80)
		at++;
	return at;
}

static size_t char_start(const struct tui_editor *d, size_t at)
{
	if (at)
		at--;
	while (at && ((uint8_t)d->text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

static int column_after(const struct cells *g, const char *s, size_t len, int col)
{
	return *s == '\t' ? (col / TAB_COLS + 1) * TAB_COLS : col + cells_text_width(g, s, len);
}

/* Column at which the character at `at` is drawn, and the place in a line that is drawn at a column. */
static int column_of(const struct tui *t, size_t at)
{
	const struct tui_editor *d = &t->editor;
	int col = 0;
	for (size_t i = line_start(d, at); i < at; i = char_end(d, i))
		col = column_after(&t->grid, d->text + i, char_end(d, i) - i, col);
	return col;
}

static size_t place_of(const struct tui *t, size_t line, int col)
{
	const struct tui_editor *d = &t->editor;
	size_t at = start_of_line(d, line);
	int c = 0;
	while (at < d->len && d->text[at] != '\n') {
		size_t end = char_end(d, at);
		c = column_after(&t->grid, d->text + at, end - at, c);
		if (c > col)
			break;
		at = end;
	}
	return at;
}

/* --- changing --- */

static void insert(struct tui *t, const char *s, size_t len)
{
	struct tui_editor *d = &t->editor;
	if (!make_room(d, len)) {
		tui_say(t, true, "a text holds %u bytes; the rest is not taken", TEXT_MAX);
		return;
	}
	memmove(d->text + d->pos + len, d->text + d->pos, d->len - d->pos + 1);
	memcpy(d->text + d->pos, s, len);
	d->len += len;
	d->pos += len;
	d->is_changed = true;
}

static void erase(struct tui_editor *d, size_t from, size_t to)
{
	if (from == to)
		return;
	memmove(d->text + from, d->text + to, d->len - to + 1);
	d->len -= to - from;
	d->pos = from;
	d->is_changed = true;
}

/* A new line begins like the one before it. */
static void new_line(struct tui *t)
{
	struct tui_editor *d = &t->editor;
	size_t start = line_start(d, d->pos);
	size_t n = 0;
	char indent[64] = "\n";
	while (start + n < d->pos && n + 2 < sizeof(indent) && (d->text[start + n] == '\t' || d->text[start + n] == ' '))
		n++;
	memcpy(indent + 1, d->text + start, n);
	insert(t, indent, n + 1);
}

static void up_down(struct tui *t, long by)
{
	struct tui_editor *d = &t->editor;
	int col = column_of(t, d->pos);
	long line = (long)line_of(d, d->pos) + by;
	long last = (long)line_of(d, d->len);
	d->pos = place_of(t, (size_t)MAX(0, MIN(line, last)), col);
}

static void leave(struct tui *t)
{
	struct tui_editor *d = &t->editor;
	if (d->is_changed && !d->is_leaving) {
		d->is_leaving = true;
		snprintf(d->error, sizeof(d->error), "not declared yet: Esc again drops it, Ctrl+S declares it");
		d->error_line = 0;
		return;
	}
	tui_overlay_pop(t);
	tui_editor_fini(t);
}

static void save(struct tui *t)
{
	struct tui_editor *d = &t->editor;
	if (d->is_saving)
		return;
	*d->error = '\0';
	d->error_line = 0;
	if (!d->text[strspn(d->text, " \t\n")]) {
		snprintf(d->error, sizeof(d->error), "nothing is written here (Del in the list takes a type away)");
		return;
	}
	d->is_saving = true;
	tui_edit_declare(t, d->text, d->over);
}

void tui_editor_done(struct tui *t, struct err *e)
{
	struct tui_editor *d = &t->editor;
	if (!d->is_saving) {
		err_free(e);
		return;
	}
	d->is_saving = false;
	if (!e) {
		d->is_changed = false;
		leave(t);
		return;
	}
	const char *text = e->text ? e->text : err_kind_name(e->kind);
	const char *at = strstr(text, ": ");
	unsigned line = 0;
	unsigned col = 0;
	snprintf(d->error, sizeof(d->error), "%s", text);
	/* "declare: LINE:COLUMN: why" */
	if (at && sscanf(at + 2, "%u:%u:", &line, &col) == 2 && line && col) {
		d->error_line = line;
		d->pos = MIN(start_of_line(d, line - 1) + col - 1, line_end(d, start_of_line(d, line - 1)));
	}
	err_free(e);
}

/* --- keys --- */

static bool move_key(struct tui *t, uint32_t key, int page)
{
	struct tui_editor *d = &t->editor;
	switch (key) {
	case TERM_KEY_UP:
	case TERM_KEY_DOWN:
		up_down(t, key == TERM_KEY_UP ? -1 : 1);
		return true;
	case TERM_KEY_PGUP:
	case TERM_KEY_PGDN:
		up_down(t, key == TERM_KEY_PGUP ? -page : page);
		return true;
	case TERM_KEY_LEFT:
		d->pos = char_start(d, d->pos);
		return true;
	case TERM_KEY_RIGHT:
		d->pos = char_end(d, d->pos);
		return true;
	case TERM_KEY_HOME:
		d->pos = line_start(d, d->pos);
		return true;
	case TERM_KEY_END:
		d->pos = line_end(d, d->pos);
		return true;
	default:
		return false;
	}
}

static void control_key(struct tui *t, uint32_t key)
{
	struct tui_editor *d = &t->editor;
	switch (key) {
	case 's':
		save(t);
		break;
	case 'a':
		d->pos = line_start(d, d->pos);
		break;
	case 'e':
		d->pos = line_end(d, d->pos);
		break;
	case 'k':
		erase(d, d->pos, d->text[d->pos] == '\n' ? d->pos + 1 : line_end(d, d->pos));
		break;
	case 'u':
		erase(d, line_start(d, d->pos), d->pos);
		break;
	case 'y':
		tui_copy_text(t, d->text, d->len);
		break;
	case 'c':
	case 'g':
		leave(t);
		break;
	case TERM_KEY_HOME:
		d->pos = 0;
		break;
	case TERM_KEY_END:
		d->pos = d->len;
		break;
	default:
		break;
	}
}

void tui_editor_key(struct tui *t, uint32_t key, uint8_t mods)
{
	struct tui_editor *d = &t->editor;
	char text[4];
	if (key != TERM_KEY_ESC)
		d->is_leaving = false;
	if (mods & TERM_CTRL)
		control_key(t, key);
	else if (key == TERM_KEY_ESC)
		leave(t);
	else if (key == TERM_KEY_ENTER)
		new_line(t);
	else if (key == TERM_KEY_TAB)
		insert(t, "\t", 1);
	else if (key == TERM_KEY_BACKSPACE)
		erase(d, char_start(d, d->pos), d->pos);
	else if (key == TERM_KEY_DELETE)
		erase(d, d->pos, char_end(d, d->pos));
	else if (key < TERM_KEY_ESC && !(mods & TERM_ALT))
		insert(t, text, utf8_put(key, text));
	else
		move_key(t, key, MAX(t->editor_rect.h - 1, 1));
}

void tui_editor_paste(struct tui *t, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char ch = text[i] == '\r' ? '\n' : text[i];
		if ((uint8_t)ch >= 0x20 || ch == '\n' || ch == '\t')
			insert(t, &ch, 1);
	}
}

void tui_editor_click(struct tui *t, int x, int y)
{
	struct cells_rect r = t->editor_rect;
	if (x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h)
		t->editor.pos = place_of(t, t->editor.top + (size_t)(y - r.y), x - r.x + t->editor.skip);
}

void tui_editor_scroll(struct tui *t, int lines)
{
	up_down(t, lines);
}

/* --- drawing --- */

static void draw_line(struct tui *t, struct cells_rect r, size_t line, bool is_bad)
{
	const struct tui_editor *d = &t->editor;
	enum term_role bg = is_bad ? ROLE_BG_WORD : ROLE_BG_DIALOG;
	struct cells_pen p = tui_pen(t, r, 0, ROLE_TEXT, bg);
	size_t at = start_of_line(d, line);
	size_t end = line_end(d, at);
	int col = 0;
	cells_fill(&t->grid, r, p.st);
	p.skip = d->skip;
	while (at < end && !p.is_cut) {
		size_t n = at;
		while (n < end && d->text[n] != '\t')
			n++;
		cells_text(&p, d->text + at, n - at);
		if (n < end) {
			col = (p.col / TAB_COLS + 1) * TAB_COLS;
			cells_pad_to(&p, col);
			n++;
		}
		at = n;
	}
}

static void keep_in_sight(struct tui *t, struct cells_rect r)
{
	struct tui_editor *d = &t->editor;
	size_t line = line_of(d, d->pos);
	int col = column_of(t, d->pos);
	if (line < d->top)
		d->top = line;
	if (line >= d->top + (size_t)r.h)
		d->top = line - (size_t)r.h + 1;
	if (col < d->skip || col >= d->skip + r.w)
		d->skip = col >= r.w ? col - r.w / 2 : 0;
	t->cur_x = r.x + col - d->skip;
	t->cur_y = r.y + (int)(line - d->top);
}

void tui_editor_draw(struct tui *t, struct cells_rect r)
{
	struct tui_editor *d = &t->editor;
	size_t lines = line_of(d, d->len) + 1;
	int gutter = 6;
	if (r.h < 3 || r.w < gutter + 4)
		return;
	struct cells_rect body = {r.x + gutter, r.y, r.w - gutter - 1, r.h - 2};
	t->editor_rect = body;
	keep_in_sight(t, body);
	for (int y = 0; y < body.h && d->top + (size_t)y < lines; y++) {
		size_t line = d->top + (size_t)y;
		bool is_bad = d->error_line == line + 1;
		struct cells_pen p = tui_pen(t, (struct cells_rect){r.x, r.y, gutter, 1}, y, is_bad ? ROLE_ERROR : ROLE_DIM, ROLE_BG_DIALOG);
		cells_printf(&p, "%c%4zu", is_bad ? '!' : ' ', line + 1);
		draw_line(t, (struct cells_rect){body.x, body.y + y, body.w, 1}, line, is_bad);
	}
	tui_draw_bar(t, (struct cells_rect){r.x + r.w - 1, body.y, 1, body.h}, d->top, (uint64_t)body.h, lines);
	struct cells_pen p = tui_pen(t, r, r.h - 1, *d->error ? ROLE_ERROR : ROLE_DIM, ROLE_BG_DIALOG);
	if (d->is_saving)
		cells_str(&p, " being declared");
	else if (*d->error)
		cells_printf(&p, " ! %s", d->error);
	else
		cells_str(&p, " Ctrl+S declares, Ctrl+Y copies, Esc leaves");
}
