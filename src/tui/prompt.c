/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/*
 * One line to type in, with the editing keys of a shell. A paste is text, whatever it holds. Filters act on every
 * change.
 */
static const char *const labels[TUI_PROMPT_COUNT] = {
	[TUI_PROMPT_GOTO] = "go to: ",
	[TUI_PROMPT_SEARCH] = "search: ",
	[TUI_PROMPT_SEARCH_BACK] = "search backwards: ",
	[TUI_PROMPT_SEARCH_ALL] = "list matches of: ",
	[TUI_PROMPT_FILTER] = "filter: ",
	[TUI_PROMPT_COMMAND] = ":",
	[TUI_PROMPT_RENAME] = "name: ",
	[TUI_PROMPT_COMMENT] = "comment: ",
	[TUI_PROMPT_BLOCK] = "comment above: ",
	[TUI_PROMPT_RETYPE] = "type: ",
	[TUI_PROMPT_PROTOTYPE] = "prototype: ",
	[TUI_PROMPT_BOOKMARK] = "bookmark: ",
	[TUI_PROMPT_DEFINE] = "data of type: ",
	[TUI_PROMPT_TRACE] = "trace: ",
	[TUI_PROMPT_LIVE_FIND] = "find: ",
	[TUI_PROMPT_WRITTEN] = "written: ",
	[TUI_PROMPT_DEBUG] = "debug: ",
	[TUI_PROMPT_EXPORT] = "write findings to: ",
};

/* The list a filter acts on: that of the view with the focus. */
static struct tui_list *filtered(struct tui *t)
{
	return &t->lists[tui_focus(t)];
}

const char *tui_prompt_label(enum tui_prompt_kind kind)
{
	return labels[kind];
}

void tui_prompt_open(struct tui *t, enum tui_prompt_kind kind, const char *text)
{
	struct tui_prompt *p = &t->prompt;
	tui_job_cancel(t->prefill_job);
	t->prefill_job = NULL;
	p->kind = kind;
	p->len = p->pos = (uint32_t)snprintf(p->text, sizeof(p->text), "%s", text);
	p->history_at = p->history_cnt[kind];
	snprintf(p->before, sizeof(p->before), "%s", text);
}

void tui_prompt_prefill(struct tui *t, const char *text, size_t len)
{
	struct tui_prompt *p = &t->prompt;
	memmove(p->text + len, p->text, p->len + 1);
	memcpy(p->text, text, len);
	p->len += (uint32_t)len;
	p->pos += (uint32_t)len;
	snprintf(p->before, sizeof(p->before), "%.*s", (int)len, text);
	t->is_dirty = true;
}

static void changed(struct tui *t)
{
	if (t->prompt.kind == TUI_PROMPT_FILTER)
		tui_list_set_filter(filtered(t), t->prompt.text);
}

static void remember(struct tui_prompt *p)
{
	int *cnt = &p->history_cnt[p->kind];
	if (!p->len || (*cnt && strcmp(p->history[p->kind][*cnt - 1], p->text) == 0))
		return;
	if (*cnt == TUI_HISTORY_MAX) {
		memmove(p->history[p->kind][0], p->history[p->kind][1], sizeof(p->history[p->kind]) - TUI_FILTER_MAX);
		(*cnt)--;
	}
	memcpy(p->history[p->kind][(*cnt)++], p->text, TUI_FILTER_MAX);
}

static void accept(struct tui *t)
{
	struct tui_prompt *p = &t->prompt;
	enum tui_prompt_kind kind = p->kind;
	uint64_t va;
	remember(p);
	p->kind = TUI_PROMPT_NONE;
	if (tui_edit_is_prompt(kind)) {
		tui_edit_accept(t, kind, p->text, p->before);
		return;
	}
	if ((kind == TUI_PROMPT_SEARCH || kind == TUI_PROMPT_SEARCH_BACK) && !p->len)
		tui_search_again(t, kind == TUI_PROMPT_SEARCH_BACK);
	if (kind == TUI_PROMPT_FILTER || !p->len)
		return;
	if (kind == TUI_PROMPT_COMMAND) {
		tui_command(t, p->text);
		return;
	}
	if (kind == TUI_PROMPT_TRACE || kind == TUI_PROMPT_LIVE_FIND) {
		tui_live_accept(t, kind, p->text);
		return;
	}
	if (kind == TUI_PROMPT_WRITTEN) {
		tui_dock_written(t, p->text);
		return;
	}
	if (kind == TUI_PROMPT_DEBUG) {
		tui_dock_accept(t, p->text);
		return;
	}
	if (kind == TUI_PROMPT_DEFINE) {
		tui_define_accept(t, p->text);
		return;
	}
	if (kind == TUI_PROMPT_EXPORT) {
		tui_export_start(t, p->text);
		return;
	}
	if (kind != TUI_PROMPT_GOTO) {
		tui_search_start(t, p->text, kind == TUI_PROMPT_SEARCH_ALL, kind == TUI_PROMPT_SEARCH_BACK);
		return;
	}
	if (tui_dock_goto(t, p->text))
		return;
	struct err *e = ses_resolve(t->snap, p->text, &va);
	if (e)
		tui_say_err(t, e);
	else
		tui_go(t, va);
}

static void leave(struct tui *t)
{
	if (t->prompt.kind == TUI_PROMPT_FILTER)
		tui_list_set_filter(filtered(t), t->prompt.before);
	t->prompt.kind = TUI_PROMPT_NONE;
}

/* What does not fit is said, never dropped in silence. */
static void insert(struct tui *t, const char *s, size_t len)
{
	struct tui_prompt *p = &t->prompt;
	if (len > sizeof(p->text) - 1 - p->len) {
		tui_say(t, true, "a prompt holds %zu bytes; the rest is not taken", sizeof(p->text) - 1);
		return;
	}
	memmove(p->text + p->pos + len, p->text + p->pos, p->len - p->pos + 1);
	memcpy(p->text + p->pos, s, len);
	p->len += (uint32_t)len;
	p->pos += (uint32_t)len;
}

static void erase(struct tui_prompt *p, uint32_t from, uint32_t to)
{
	memmove(p->text + from, p->text + to, p->len - to + 1);
	p->len -= to - from;
	p->pos = from;
}

static uint32_t char_before(const struct tui_prompt *p)
{
	uint32_t i = p->pos;
	while (i && ((uint8_t)p->text[--i] & 0xc0) == 0x80)
		;
	return i;
}

static uint32_t char_after(const struct tui_prompt *p)
{
	uint32_t i = p->pos;
	if (i < p->len)
		i++;
	while (i < p->len && ((uint8_t)p->text[i] & 0xc0) == 0x80)
		i++;
	return i;
}

static uint32_t word_before(const struct tui_prompt *p)
{
	uint32_t i = p->pos;
	while (i && p->text[i - 1] == ' ')
		i--;
	while (i && p->text[i - 1] != ' ')
		i--;
	return i;
}

static void recall(struct tui_prompt *p, int by)
{
	int at = p->history_at + by;
	if (at < 0 || at > p->history_cnt[p->kind])
		return;
	p->history_at = at;
	const char *text = at < p->history_cnt[p->kind] ? p->history[p->kind][at] : "";
	p->len = p->pos = (uint32_t)snprintf(p->text, sizeof(p->text), "%s", text);
}

/* Completes a name as far as all functions that begin so agree. */
static void complete(struct tui *t)
{
	struct tui_prompt *p = &t->prompt;
	char glob[TUI_FILTER_MAX + 2];
	struct ses_func *funcs;
	if ((p->kind == TUI_PROMPT_COMMAND || p->kind == TUI_PROMPT_WRITTEN) && p->len && p->pos == p->len) {
		size_t n = p->kind == TUI_PROMPT_COMMAND ? tui_command_complete(p->text, glob, sizeof(p->text))
							 : tui_dock_complete(t, p->text, glob, sizeof(p->text));
		if (n > p->len) {
			memcpy(p->text, glob, n + 1);
			p->len = p->pos = (uint32_t)n;
		}
	}
	if (p->kind != TUI_PROMPT_GOTO || !p->len || p->pos != p->len)
		return;
	snprintf(glob, sizeof(glob), "%s*", p->text);
	struct ses_page page = {.filter = glob, .limit = 200};
	struct ses_call call = tui_call(t, 50);
	struct err *e = ses_functions(t->snap, &call, &page, &t->frame_arena, &funcs);
	if (e || !page.cnt) {
		err_free(e);
		return;
	}
	uint32_t same = funcs[0].name.len;
	for (uint32_t i = 1; i < page.cnt; i++) {
		uint32_t n = 0;
		while (n < same && n < funcs[i].name.len && funcs[i].name.s[n] == funcs[0].name.s[n])
			n++;
		same = n;
	}
	if (same > p->len && same < sizeof(p->text) && !strncmp(funcs[0].name.s, p->text, p->len)) {
		memcpy(p->text, funcs[0].name.s, same);
		p->text[same] = '\0';
		p->len = p->pos = same;
	}
	if (page.total > 1)
		tui_say(t, false, "%llu names begin so", (unsigned long long)page.total);
}

/* A search for text becomes one for bytes, and the other way round. */
static void flip_kind(struct tui *t)
{
	struct tui_prompt *p = &t->prompt;
	if (p->kind != TUI_PROMPT_SEARCH && p->kind != TUI_PROMPT_SEARCH_BACK && p->kind != TUI_PROMPT_SEARCH_ALL)
		return;
	const char *what;
	bool is_bytes = tui_search_kind(p->text, &what) == SES_SEARCH_BYTES;
	uint32_t old = (uint32_t)(what - p->text);
	uint32_t end = p->pos = p->len;
	erase(p, 0, old);
	p->pos = 0;
	insert(t, is_bytes ? "text:" : "hex:", is_bytes ? 5 : 4);
	p->pos += end - old;
}

static void special_key(struct tui *t, uint32_t key)
{
	struct tui_prompt *p = &t->prompt;
	switch (key) {
	case TERM_KEY_LEFT:
		p->pos = char_before(p);
		break;
	case TERM_KEY_RIGHT:
		p->pos = char_after(p);
		break;
	case TERM_KEY_HOME:
		p->pos = 0;
		break;
	case TERM_KEY_END:
		p->pos = p->len;
		break;
	case TERM_KEY_BACKSPACE:
		if (p->len)
			erase(p, char_before(p), p->pos);
		else
			leave(t);
		break;
	case TERM_KEY_DELETE:
		erase(p, p->pos, char_after(p));
		break;
	case TERM_KEY_UP:
	case TERM_KEY_DOWN:
		if (p->kind == TUI_PROMPT_FILTER)
			tui_list_act(t, filtered(t), key == TERM_KEY_UP ? TUI_UP : TUI_DOWN);
		else
			recall(p, key == TERM_KEY_UP ? -1 : 1);
		break;
	case TERM_KEY_F1 + 1:
		flip_kind(t);
		break;
	case TERM_KEY_TAB:
		complete(t);
		break;
	case TERM_KEY_ENTER:
		accept(t);
		break;
	case TERM_KEY_ESC:
		leave(t);
		break;
	default:
		break;
	}
}

static void control_key(struct tui *t, uint32_t key)
{
	struct tui_prompt *p = &t->prompt;
	switch (key) {
	case 'a':
		p->pos = 0;
		break;
	case 'e':
		p->pos = p->len;
		break;
	case 'b':
		p->pos = char_before(p);
		break;
	case 'f':
		p->pos = char_after(p);
		break;
	case 'd':
		erase(p, p->pos, char_after(p));
		break;
	case 'k':
		p->text[p->len = p->pos] = '\0';
		break;
	case 'u':
		erase(p, 0, p->pos);
		break;
	case 'w':
		erase(p, word_before(p), p->pos);
		break;
	case 'p':
	case 'n':
		recall(p, key == 'p' ? -1 : 1);
		break;
	case 'c':
	case 'g':
		leave(t);
		break;
	default:
		break;
	}
}

void tui_prompt_key(struct tui *t, uint32_t key, uint8_t mods)
{
	char text[4];
	if (mods & TERM_CTRL)
		control_key(t, key);
	else if (key >= TERM_KEY_ESC)
		special_key(t, key);
	else if (!(mods & TERM_ALT))
		insert(t, text, utf8_put(key, text));
	if (t->prompt.kind)
		changed(t);
}

void tui_prompt_paste(struct tui *t, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		/* A line end ends nothing here: it is text, and a prompt has one line. */
		char ch = (uint8_t)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
		insert(t, &ch, 1);
	}
	changed(t);
}

void tui_prompt_draw(struct tui *t, int y)
{
	struct tui_prompt *p = &t->prompt;
	struct cells_rect r = {0, y, t->grid.w, 1};
	struct cells_pen pen = tui_pen(t, r, 0, ROLE_KEY, ROLE_BG);
	cells_fill(&t->grid, r, pen.st);
	int label = cells_str(&pen, labels[p->kind]);
	int at = cells_text_width(&t->grid, p->text, p->pos);
	int room = t->grid.w - label - 1;
	pen.st.fg = ROLE_TEXT;
	if (at >= room)
		pen.skip = at - room + 1;
	t->cur_x = label + at - pen.skip;
	t->cur_y = y;
	cells_text(&pen, p->text, p->len);
	if (p->len || pen.is_cut)
		return;
	pen.st.fg = ROLE_DIM;
	pen.x += 1;
	if (p->kind == TUI_PROMPT_SEARCH || p->kind == TUI_PROMPT_SEARCH_BACK || p->kind == TUI_PROMPT_SEARCH_ALL)
		cells_str(&pen, "text, or hex:de ad ?? ef (F2)  rx:pattern  imm:0x10  insn:mov*");
	else if (p->kind == TUI_PROMPT_RENAME)
		cells_str(&pen, "a name; nothing takes the given name away");
	else if (p->kind == TUI_PROMPT_RETYPE)
		cells_str(&pen, "a C type, as in struct pair [4]; nothing takes the given type away");
	else if (p->kind == TUI_PROMPT_PROTOTYPE)
		cells_str(&pen, "as in int f(char *, ...); nothing takes the given prototype away");
	else if (p->kind == TUI_PROMPT_COMMAND)
		cells_str(&pen, "an action (suspend, view-hex, theme ...), a name or an address; Tab completes");
	else if (p->kind == TUI_PROMPT_WRITTEN)
		cells_str(&pen, "a register: when it was written last; rax> when it is next; Tab completes");
	else if (p->kind == TUI_PROMPT_DEBUG)
		cells_str(&pen, "a command of the debugger (help lists them), or connect://HOST:PORT of a server");
	else if (p->kind == TUI_PROMPT_GOTO)
		cells_str(&pen, "name, 0x401136, name+0x10 or file:0x1000; Tab completes");
}
