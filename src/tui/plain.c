/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui.h"

#include "session/ops.h"
#include "tui/tui_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The workbench a line at a time, for screen readers and pipes: the same keys from the same table, each followed by what
 * it is about; what a pane would show is printed. There is no screen: the state is that of the full one, never drawn.
 */
#define LINES 12
#define ROWS 20
#define LINES_MAX 10000

struct plain {
	struct tui tui;
	struct buf out;
	uint64_t next_va;   /* where the next lines begin */
	uint32_t next_sub;
};

static void put(struct plain *p, struct ses_text s)
{
	ops_escape(&p->out, s.s, s.len);
}

static void flush(struct plain *p)
{
	if (!p->out.failed)
		fwrite(p->out.data ? p->out.data : "", 1, p->out.len, stdout);
	fflush(stdout);
	p->out.len = 0;
}

static void print_lines(struct plain *p, uint32_t count)
{
	struct tui *t = &p->tui;
	struct ses_head *h;
	uint32_t cnt = 0;
	struct ses_call call = tui_call(t, 0);
	struct ses_at at = {.va = p->next_va, .sub = p->next_sub, .count = count + 1};
	struct err *e = ses_heads(t->snap, &call, &at, &t->frame_arena, &h, &cnt);
	if (e) {
		tui_say_err(t, e);
		return;
	}
	for (uint32_t i = 0; i < MIN(cnt, count); i++) {
		buf_printf(&p->out, "%llx  ", (unsigned long long)h[i].va);
		put(p, h[i].text);
		if (h[i].comment.len) {
			buf_add_str(&p->out, "  ; ");
			put(p, h[i].comment);
		}
		buf_add_ch(&p->out, '\n');
	}
	if (cnt <= count) {
		buf_add_str(&p->out, "end of the file\n");
		return;
	}
	p->next_va = h[count].va;
	p->next_sub = h[count].sub ? h[count].sub : SES_SUB_ITEM;
}

/* The place gone to, from its first line on. */
static void print_here(struct plain *p)
{
	p->next_va = p->tui.listing.va;
	p->next_sub = 0;
	print_lines(p, LINES);
}

static void print_list(struct plain *p, const struct tui_list_ops *ops, struct tui_query q)
{
	struct tui *t = &p->tui;
	struct tui_page page = {0};
	struct ses_call call = tui_call(t, 0);
	q.snap = t->snap;
	q.ses = t->ses;
	q.keys = t->keys;
	q.call = &call;
	q.page.limit = ROWS;
	page.err = ops->fetch(&q, &page);
	for (uint32_t i = 0; !page.err && i < page.cnt; i++) {
		for (int c = 0; c < ops->column_cnt; c++) {
			if (c)
				buf_add_str(&p->out, "  ");
			if (page.rows[i].col[c].s)
				put(p, page.rows[i].col[c]);
		}
		buf_add_ch(&p->out, '\n');
	}
	if (page.err)
		tui_say_err(t, take_ptr(page.err));
	else if (!page.cnt)
		buf_printf(&p->out, "%s\n", q.page.filter ? "nothing matches" : ops->empty);
	else
		buf_printf(&p->out, "%s: %u of %llu%s\n", ops->title, page.cnt, (unsigned long long)page.total,
			   page.has_more ? " or more" : "");
	arena_fini(&page.arena);
}

static void print_hex(struct plain *p)
{
	uint8_t bytes[16];
	bool mapped[16];
	uint64_t va = p->tui.listing.va;
	for (int row = 0; row < 8; row++, va += 16) {
		ses_bytes(p->tui.snap, va, 16, bytes, mapped);
		buf_printf(&p->out, "%llx ", (unsigned long long)va);
		for (int i = 0; i < 16; i++)
			buf_printf(&p->out, mapped[i] ? " %02x" : " ??", bytes[i]);
		buf_add_ch(&p->out, '\n');
	}
}

static void print_help(struct plain *p)
{
	static const struct { const char *key; enum tui_action a; const char *arg; } verbs[] = {
		{"g", TUI_GOTO, " NAME or ADDRESS"}, {"x", TUI_XREFS_TO, ""}, {"X", TUI_XREFS_FROM, ""}, {"/", TUI_SEARCH, " TEXT"},
		{"f", TUI_VIEW_FUNCTIONS, " [FILTER]"}, {"s", TUI_VIEW_STRINGS, " [FILTER]"}, {"l", TUI_VIEW_LISTING, ""},
		{"h", TUI_VIEW_HEX, ""}, {"e", TUI_FOLLOW, ""}, {"b", TUI_BACK, ""}, {"n", TUI_RENAME, " NAME"},
		{";", TUI_COMMENT, " TEXT"}, {"q", TUI_QUIT, ""}};
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		buf_printf(&p->out, "%s%s  %s\n", verbs[i].key, verbs[i].arg, tui_action_info(verbs[i].a)->text);
	buf_add_str(&p->out, "20  so many lines more; Enter: some more\n:ACTION  any action by its name: undo, redo, forward ...\n");
}

/* What a line's first character means: letters a line mode needs, else the key of the table. */
static enum tui_action verb_of(const struct plain *p, char c)
{
	static const struct { char c; enum tui_action a; } own[] = {
		{'f', TUI_VIEW_FUNCTIONS}, {'s', TUI_VIEW_STRINGS}, {'l', TUI_VIEW_LISTING}, {'h', TUI_VIEW_HEX}, {'e', TUI_FOLLOW},
		{'b', TUI_BACK}};
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (own[i].c == c)
			return own[i].a;
	}
	return tui_key_action(p->tui.keys, (uint8_t)c, 0, TUI_IN_LISTING);
}

static void go_to(struct plain *p, const char *what)
{
	uint64_t va;
	struct err *e = ses_resolve(p->tui.snap, what, &va);
	if (e)
		tui_say_err(&p->tui, e);
	else
		tui_go(&p->tui, va);
}

static void do_action(struct plain *p, enum tui_action a, const char *rest)
{
	struct tui *t = &p->tui;
	struct tui_query q = {.page.filter = *rest ? rest : NULL, .va = t->listing.va};
	uint64_t was = t->listing.va;
	switch ((int)a) {
	case TUI_GOTO:
		go_to(p, rest);
		break;
	case TUI_SEARCH:
		tui_search_start(t, rest, false, false);
		break;
	case TUI_XREFS_TO:
	case TUI_XREFS_FROM:
		q.kind = a == TUI_XREFS_FROM;
		q.page.filter = NULL;
		print_list(p, &tui_xrefs_list, q);
		return;
	case TUI_VIEW_FUNCTIONS:
		print_list(p, tui_functions_ops.list, q);
		return;
	case TUI_VIEW_STRINGS:
		print_list(p, tui_strings_ops.list, q);
		return;
	case TUI_HISTORY:
		q.page.filter = NULL;
		print_list(p, &tui_history_list, q);
		return;
	case TUI_VIEW_HEX:
		print_hex(p);
		return;
	case TUI_HELP:
		print_help(p);
		return;
	case TUI_RENAME:
	case TUI_COMMENT:
		t->edit_va = t->listing.va;
		tui_edit_accept(t, a == TUI_RENAME ? TUI_PROMPT_RENAME : TUI_PROMPT_COMMENT, rest, "");
		tui_news(t);
		return;
	case TUI_RETYPE:
		tui_act(t, a);
		tui_edit_accept(t, t->prompt.kind, rest, "");
		tui_news(t);
		return;
	case TUI_FORMAT_NEXT:
	case TUI_FORMAT_PREV:
		tui_act(t, a);
		tui_news(t);
		return;
	case TUI_VIEW_LISTING:
		print_here(p);
		return;
	case TUI_COMMAND:
		tui_command(t, rest);
		tui_news(t);
		break;
	default:
		tui_act(t, a);
		break;
	}
	if (t->listing.va != was || a == TUI_GOTO)
		print_here(p);
}

static void do_line(struct plain *p, char *line)
{
	struct tui *t = &p->tui;
	line[strcspn(line, "\r\n")] = '\0';
	line += strspn(line, " \t");
	arena_reset(&t->frame_arena);
	*t->message = '\0';
	if (!*line || (*line >= '0' && *line <= '9')) {
		unsigned long n = *line ? strtoul(line, NULL, 10) : LINES;
		print_lines(p, (uint32_t)MIN(MAX(n, 1ul), (unsigned long)LINES_MAX));
	} else {
		enum tui_action a = verb_of(p, *line);
		const char *rest = line + 1 + strspn(line + 1, " \t");
		if (a == TUI_NONE)
			tui_say(t, true, "%.1s: no such verb (? lists them)", line);
		else
			do_action(p, a, rest);
	}
	if (*t->message) {
		put(p, (struct ses_text){t->message, (uint32_t)strlen(t->message)});
		buf_add_ch(&p->out, '\n');
	}
	t->overlay_cnt = 0;
	t->prompt.kind = TUI_PROMPT_NONE;
}

int tui_run_plain(const char *path)
{
	struct plain *p = calloc(1, sizeof(*p));
	struct ses_opts opts = {0};
	struct ses *s = NULL;
	char *line = NULL;
	size_t cap = 0;
	struct err *e = p ? ses_open(path, &opts, &s) : &err_nomem;
	if (!e && !tui_init(&p->tui, s, 80, 24))
		e = &err_nomem;
	if (e) {
		int status = err_exit_status(e->kind);
		fprintf(stderr, "scry: %s\n", e->text ? e->text : err_kind_name(e->kind));
		err_free(e);
		ses_close(s);
		free(p);
		return status;
	}
	tui_draw(&p->tui); /* finds the place to start from */
	print_here(p);
	for (;;) {
		buf_add_str(&p->out, "> ");
		flush(p);
		if (p->tui.wants_quit || getline(&line, &cap, stdin) < 0)
			break;
		do_line(p, line);
		if (p->tui.wants_quit)
			break;
	}
	p->out.len = 0;
	free(line);
	tui_fini(&p->tui);
	buf_fini(&p->out);
	ses_close(s);
	free(p);
	return 0;
}
