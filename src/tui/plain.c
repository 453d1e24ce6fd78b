/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui.h"

#include "session/ops.h"
#include "session/project.h"
#include "session/ses_live.h"
#include "tui/operation.h"
#include "tui/tui_int.h"

#include <ctype.h>
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
	/* Where the rows of the list printed last lead to. */
	struct {
		uint64_t va;
		uint32_t bin;   /* as in struct tui_row */
		bool has_va, is_import;
		uint64_t event; /* of the live trace, 0: none */
	} rows[ROWS];
	uint32_t row_cnt;
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
	tui_query_bind(t, &q);
	q.call = &call;
	q.page.limit = ROWS;
	page.err = ops->fetch(&q, &page);
	p->row_cnt = 0;
	for (uint32_t i = 0; !page.err && i < page.cnt; i++) {
		const struct tui_row *r = &page.rows[i];
		p->rows[p->row_cnt].va = r->va;
		p->rows[p->row_cnt].bin = r->bin;
		p->rows[p->row_cnt].has_va = r->has_va;
		p->rows[p->row_cnt].event = ops == tui_live_ops.list ? r->id : 0;
		p->rows[p->row_cnt++].is_import = ops == tui_imports_ops.list;
		buf_printf(&p->out, "%u  ", p->row_cnt);
		if (r->mark)
			buf_printf(&p->out, "%c ", r->mark);
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

/* What only a screen has. */
static bool needs_screen(enum tui_action a)
{
	static const enum tui_action screen[] = {
		TUI_LEFT, TUI_RIGHT, TUI_LINE_START, TUI_LINE_END, TUI_WORD_NEXT, TUI_WORD_PREV, TUI_CENTRE, TUI_BLOCK_SUCC, TUI_BLOCK_PREV_EDGE,
		TUI_BLOCK_NEXT, TUI_BLOCK_PREV, TUI_BLOCK_ENTRY, TUI_GRAPH_CENTRE, TUI_PAN_LEFT, TUI_PAN_RIGHT, TUI_HINTS, TUI_FILTER, TUI_SORT,
		TUI_FOCUS_NEXT, TUI_FOCUS_PREV, TUI_SPLIT, TUI_GRAPH_ZOOM, TUI_GRAPH_MAP, TUI_ZOOM_PANE, TUI_TOGGLE_FUNCTIONS, TUI_INSPECTOR,
		TUI_BYTES, TUI_PATCH, TUI_UNPATCH, TUI_TOKEN_NEXT, TUI_TOKEN_PREV, TUI_PALETTE, TUI_REDRAW, TUI_THEME, TUI_COLOURS,
		TUI_SUSPEND, TUI_CANCEL, TUI_UNDO_ENTRY, TUI_UNDO_AUTHOR, TUI_LIST_DELETE, TUI_TYPE_NEW,
		TUI_LIVE_PAUSE, TUI_LIVE_TAIL, TUI_LIVE_ERRORS, TUI_LIVE_FINDINGS, TUI_LIVE_FIND, TUI_LIVE_C, TUI_LIVE_FRAMES, TUI_LIVE_STOP,
		TUI_ACCEPT, TUI_REFUSE, TUI_PROPOSAL_MARK, TUI_PROPOSAL_MARK_ALL, TUI_FOLD, TUI_FOLD_ALL, TUI_COPY_C};
	for (size_t i = 0; i < ARRAY_LEN(screen); i++) {
		if (screen[i] == a)
			return true;
	}
	return tui_action_info(a)->group == TUI_GROUP_LATER;
}

/* Letters that a line mode needs; every other verb is the key of the table. */
static const struct { char c; enum tui_action a; } own[] = {
	{'f', TUI_VIEW_FUNCTIONS}, {'s', TUI_VIEW_STRINGS}, {'l', TUI_VIEW_LISTING}, {'h', TUI_VIEW_HEX}, {'e', TUI_FOLLOW},
	{'b', TUI_BACK}, {'?', TUI_HELP}, {'/', TUI_SEARCH}};

/* The verb of a line's beginning, and its length: a letter of our own, two keys or one of the table. */
static enum tui_action verb_of(const struct plain *p, const char *line, size_t *ret_len)
{
	struct tui_stroke s[2] = {{(uint8_t)line[0], 0}, {(uint8_t)line[1], 0}};
	*ret_len = 1;
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (own[i].c == line[0])
			return own[i].a;
	}
	if (!tui_keymap_is_prefix(p->tui.keys, s[0], TUI_IN_LISTING))
		return tui_keymap_action(p->tui.keys, s, 1, TUI_IN_LISTING);
	*ret_len = line[1] ? 2 : 1;
	return tui_keymap_action(p->tui.keys, s, 2, TUI_IN_LISTING);
}

/* What is typed for an action: the first of its keys that is characters. */
static void add_verb(const struct plain *p, struct buf *out, enum tui_action a)
{
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (own[i].a == a) {
			buf_add_ch(out, own[i].c);
			return;
		}
	}
	for (const char *k = tui_keymap_keys(p->tui.keys, a); *k;) {
		size_t n = strcspn(k, " ");
		char line[3] = {k[0], n > 1 ? k[1] : '\0', '\0'};
		size_t len;
		if (n <= 2 && verb_of(p, line, &len) == a && len == n) {
			buf_add(out, k, n);
			return;
		}
		k += n + (k[n] == ' ');
	}
}

static void print_help(struct plain *p)
{
	buf_add_str(&p->out, "20  so many lines more; Enter: some more\nxrefs main  any command of scry help, without the file\n");
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		const struct tui_action_info *info = tui_action_info((enum tui_action)a);
		size_t start = p->out.len;
		if (needs_screen((enum tui_action)a))
			continue;
		add_verb(p, &p->out, (enum tui_action)a);
		if (p->out.len > start)
			buf_add_str(&p->out, "  ");
		buf_add_ch(&p->out, ':');
		for (const char *c = info->name; *c; c++)
			buf_add_ch(&p->out, *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c);
		buf_printf(&p->out, "  %s\n", info->text);
	}
}

static void run_operation(struct plain *p, const char *line)
{
	struct ses_call call = tui_call(&p->tui, 0);
	const struct ops_req on = {.sn = p->tui.snap, .call = &call, .project = p->tui.project, .binary = p->tui.bin};
	struct err *e = tui_operation(&on, line, &p->out);
	if (p->out.len && p->out.data[p->out.len - 1] != '\n')
		buf_add_ch(&p->out, '\n');
	if (e)
		tui_say_err(&p->tui, e);
	tui_news(&p->tui);
}

/* What was asked for a text gets the rest of the line; without one it says what is there. */
static void answer_prompt(struct plain *p, const char *rest)
{
	struct tui *t = &p->tui;
	if (!*rest && t->prompt.kind != TUI_PROMPT_SEARCH && t->prompt.kind != TUI_PROMPT_SEARCH_BACK) {
		tui_say(t, false, "%s%s (say it behind the verb)", tui_prompt_label(t->prompt.kind), t->prompt.text);
		return;
	}
	tui_prompt_key(t, 'u', TERM_CTRL);
	tui_prompt_paste(t, rest, strlen(rest));
	if (t->prompt.len >= strlen(rest))
		tui_prompt_key(t, TERM_KEY_ENTER, 0);
}

static void print_overlay(struct plain *p, const char *rest)
{
	struct tui_list *l = tui_overlay_list(&p->tui);
	if (l)
		print_list(p, l->ops, (struct tui_query){.page.filter = *rest ? rest : NULL, .va = l->va, .kind = l->kind, .what = l->what});
}

static void follow_row(struct plain *p, const char *rest)
{
	unsigned long n = strtoul(rest, NULL, 10);
	if (!n || n > p->row_cnt)
		tui_say(&p->tui, true, "no row %.20s was listed", rest);
	else if (p->rows[n - 1].event)
		tui_live_go(&p->tui, p->rows[n - 1].event, UINT64_MAX, false);
	else if (p->rows[n - 1].bin && p->tui.project)
		tui_go_binary(&p->tui, p->rows[n - 1].bin - 1, p->rows[n - 1].has_va, p->rows[n - 1].va);
	else if (!p->rows[n - 1].has_va)
		tui_say(&p->tui, true, "row %lu has no address", n);
	else if (p->rows[n - 1].is_import)
		tui_follow(&p->tui, p->rows[n - 1].va);
	else
		tui_go(&p->tui, p->rows[n - 1].va);
}

/* What leads over the project is found in its index, which is brought up to date here: nothing runs behind the lines. */
static void read_project(struct plain *p, enum tui_action a)
{
	uint32_t done, all;
	if (!p->tui.project || (a != TUI_FOLLOW && a != TUI_XREFS_TO && a != TUI_XREFS_HERE && a != TUI_SCOPE))
		return;
	ses_project_progress(p->tui.project, &done, &all);
	if (done < all) {
		buf_printf(&p->out, "reading the binaries of the project, %u of %u are read\n", done, all);
		flush(p);
	}
	struct err *e = ses_project_sync(p->tui.project);
	if (e)
		tui_say_err(&p->tui, e);
}

/* Another binary by its name; without one, or with a part of names, those there are. */
static void binaries(struct plain *p, const char *rest)
{
	uint32_t bin;
	struct err *e = *rest ? ses_project_pick(p->tui.project, rest, &bin) : &err_not_found;
	if (e)
		print_list(p, &tui_binaries_list, (struct tui_query){.page.filter = *rest ? rest : NULL});
	else
		tui_go_binary(&p->tui, bin, false, 0);
	err_free(e);
}

/* Where one is before a line, to tell whether it led elsewhere. */
struct spot { uint32_t bin; uint64_t va; size_t past, future; };

static struct spot spot_of(const struct tui *t)
{
	return (struct spot){t->bin, t->listing.va, t->past.cnt, t->future.cnt};
}

/* A list that was printed is no place to come back to. */
static void leave_view(struct tui *t, const struct spot *was)
{
	if (t->main_view == TUI_V_LISTING)
		return;
	bool is_list = tui_view_ops(t->main_view)->list != NULL;
	size_t past = is_list ? was->past : t->past.cnt, future = t->future.cnt;
	tui_show_view(t, TUI_V_LISTING);
	t->past.cnt = MIN(t->past.cnt, past);
	t->future.cnt = is_list ? was->future : future;
}

static void print_arrival(struct plain *p, const struct spot *was, bool is_asked)
{
	struct tui *t = &p->tui;
	struct ses_binary b;
	leave_view(t, was);
	if (t->bin != was->bin) {
		struct err *e = ses_project_binary(t->project, t->bin, &t->frame_arena, &b);
		if (!e) {
			buf_printf(&p->out, "%u of %u  ", t->bin + 1, ses_project_cnt(t->project));
			put(p, (struct ses_text){b.label, (uint32_t)strlen(b.label)});
			buf_add_str(&p->out, "  ");
			put(p, (struct ses_text){b.path, (uint32_t)strlen(b.path)});
			buf_add_ch(&p->out, '\n');
		}
		err_free(e);
		tui_draw(t); /* finds the place in it */
	}
	if (t->bin != was->bin || t->listing.va != was->va || t->past.cnt != was->past || is_asked)
		print_here(p);
}

/* What asks before it is done is asked here; false: it was not agreed to. */
static bool is_agreed(struct plain *p)
{
	struct tui *t = &p->tui;
	char *line = NULL;
	size_t cap = 0;
	if (!t->overlay_cnt || t->overlays[t->overlay_cnt - 1] != TUI_O_CONFIRM)
		return false;
	put(p, (struct ses_text){t->confirm_text, (uint32_t)strlen(t->confirm_text)});
	buf_add_str(&p->out, "  (y: yes) ");
	flush(p);
	bool is_yes = getline(&line, &cap, stdin) > 0 && line[0] == 'y';
	free(line);
	tui_overlay_key(t, is_yes ? 'y' : 'n', 0);
	return is_yes;
}

/* The events of a trace as they come, to its end. */
static void print_trace(struct plain *p)
{
	struct ses_live *l = p->tui.live.trace;
	struct ses_live_state st = {.is_running = true};
	uint64_t seen = 0;
	while (l && (st.is_running || seen < st.last_id)) {
		struct arena a = {0};
		struct ses_live_row rows[64];
		ses_live_has_news(l);
		ses_live_get_state(l, &st);
		uint32_t cnt = ses_live_rows(l, ses_live_index(l, seen + 1), ARRAY_LEN(rows), &a, rows);
		for (uint32_t i = 0; i < cnt; i++) {
			const struct ses_live_row *r = &rows[i];
			seen = r->id;
			if (r->tid)
				buf_printf(&p->out, "%u  ", r->tid);
			put(p, r->name);
			buf_add_str(&p->out, r->kind == SES_LIVE_CALL || !r->name.len ? "" : "  ");
			put(p, r->args);
			buf_add_str(&p->out, r->result.len ? " = " : "");
			put(p, r->result);
			buf_add_ch(&p->out, '\n');
		}
		flush(p);
		arena_fini(&a);
		if (!cnt && !st.is_running)
			break;
		if (!cnt)
			ses_live_wait(l, 1000);
	}
	tui_say(&p->tui, false, "%llu events; ,v lists them, and those a filter leaves; e and a number goes to where the call was made",
		(unsigned long long)st.events);
}

/* The trace's events, those of the filter. */
static void list_trace(struct plain *p, const char *rest)
{
	struct err *e = p->tui.live.trace ? ses_live_filter(p->tui.live.trace, rest) : NULL;
	if (e)
		tui_say_err(&p->tui, e);
	else
		print_list(p, tui_live_ops.list, (struct tui_query){.page.filter = NULL});
	if (!p->tui.live.trace)
		tui_say(&p->tui, false, ":live-start and a program with its arguments traces it; -p PID a process, --read FILE what was recorded");
}

static void do_action(struct plain *p, enum tui_action a, const char *rest)
{
	struct tui *t = &p->tui;
	char line[64];
	struct spot spot = spot_of(t);
	uint64_t was = spot.va;
	read_project(p, a);
	if (needs_screen(a) && tui_action_info(a)->group != TUI_GROUP_LATER) {
		tui_say(t, true, "%s: only a screen has this", tui_action_info(a)->text);
	} else if (a == TUI_HELP) {
		print_help(p);
	} else if (a == TUI_VIEW_LISTING || (a == TUI_GOTO && !*rest)) {
		print_here(p);
	} else if (a == TUI_VIEW_HEX) {
		print_hex(p);
	} else if (a == TUI_VIEW_GRAPH) {
		snprintf(line, sizeof(line), "blocks 0x%llx", (unsigned long long)was);
		run_operation(p, line);
	} else if (a == TUI_VIEW_C) {
		snprintf(line, sizeof(line), "decompile 0x%llx", (unsigned long long)was);
		run_operation(p, line);
	} else if (a == TUI_GRAPH_CALLS) {
		snprintf(line, sizeof(line), "callgraph 0x%llx --depth 2", (unsigned long long)was);
		run_operation(p, line);
	} else if (a == TUI_GRAPH_REFS) {
		snprintf(line, sizeof(line), "xrefs 0x%llx", (unsigned long long)was);
		run_operation(p, line);
	} else if (a == TUI_FOLLOW && *rest) {
		follow_row(p, rest);
	} else if (a == TUI_BINARIES && t->project) {
		binaries(p, rest);
	} else if (a == TUI_SCOPE && t->project) {
		print_list(p, &tui_project_symbols_list, (struct tui_query){.page.filter = *rest ? rest : NULL});
	} else if (a == TUI_PROBES) {
		tui_probes_read(t);
		print_list(p, &tui_probes_list, (struct tui_query){.page.filter = NULL});
	} else if (a == TUI_LIVE) {
		list_trace(p, rest);
	} else if (a == TUI_LIVE_START && *rest) {
		const struct ses_live *before = t->live.trace;
		tui_live_begin(t, rest);
		if (is_agreed(p) || t->live.trace != before)
			print_trace(p);
	} else if (a == TUI_VIEW_FUNCTIONS) {
		print_list(p, tui_functions_ops.list, (struct tui_query){.page.filter = *rest ? rest : NULL});
	} else {
		tui_act(t, a);
		if (t->prompt.kind)
			answer_prompt(p, rest);
		tui_news(t);
		const struct tui_list_ops *list = tui_view_ops(t->main_view)->list;
		if (t->overlay_cnt)
			print_overlay(p, rest);
		else if (list)
			print_list(p, list, (struct tui_query){.page.filter = *rest ? rest : NULL, .what = t->lists[t->main_view].what});
	}
	print_arrival(p, &spot, a == TUI_GOTO && *rest && !t->is_message_bad);
}

/* After ':': an action by its name and what it is about, else a place. */
static void do_command(struct plain *p, const char *text)
{
	size_t len = strcspn(text, " ");
	enum tui_action a = tui_action_named(text, len);
	struct spot was = spot_of(&p->tui);
	if (a != TUI_NONE && a != TUI_COMMAND) {
		do_action(p, a, text + len + strspn(text + len, " "));
		return;
	}
	tui_command(&p->tui, text);
	tui_news(&p->tui);
	print_arrival(p, &was, false);
}

/* What the status line of a screen would say. */
static void print_message(struct plain *p)
{
	struct tui *t = &p->tui;
	if (*t->message) {
		put(p, (struct ses_text){t->message, (uint32_t)strlen(t->message)});
		buf_add_ch(&p->out, '\n');
	}
}

static bool is_word_char(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_';
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
		size_t len;
		enum tui_action a = verb_of(p, line, &len);
		const char *rest = line + len + strspn(line + len, " \t");
		size_t word = strcspn(line, " \t");
		/* "doctor" is no d; the letter of a mark stands at its verb. */
		bool is_word = word > len && is_word_char(line[len - 1]) && is_word_char(line[len]) &&
			       !((a == TUI_MARK || a == TUI_MARK_GO) && word == len + 1);
		if (word > 1 && tui_is_operation(line))
			run_operation(p, line);
		else if (is_word)
			tui_say(t, true, "%.*s: no such verb (? lists them), nor a command that can be said here", (int)word, line);
		else if (a == TUI_COMMAND)
			do_command(p, rest);
		else if (a == TUI_NONE)
			tui_say(t, true, "%.*s: no such verb (? lists them)", (int)len, line);
		else
			do_action(p, a, rest);
	}
	print_message(p);
	t->overlay_cnt = 0;
	t->prompt.kind = TUI_PROMPT_NONE;
	t->pending = TUI_NONE;
	tui_draw(t); /* verbs act on the lines a screen would show */
}

/* The binary that was shown last, or the first of the others that can be. */
static struct err *first_binary(struct ses_project *project, uint32_t *ret_bin, struct ses **ret)
{
	uint32_t cnt = ses_project_cnt(project), shown = ses_project_get_shown(project);
	struct err *e = NULL;
	for (uint32_t k = 0; k < cnt; k++) {
		*ret_bin = (shown + k) % cnt;
		err_free(e);
		e = ses_project_get(project, *ret_bin, ret);
		if (!e)
			return NULL;
	}
	return err_fix(e, "scry project list P.json says what is with each of them");
}

static int run_lines(struct ses *s, struct ses_project *project, uint32_t bin)
{
	struct plain *p = calloc(1, sizeof(*p));
	char *line = NULL;
	size_t cap = 0;
	if (!p || !tui_init(&p->tui, s, 80, 24)) {
		free(p);
		return ops_fail(&err_nomem, NULL);
	}
	p->tui.operate = tui_operation;
	if (project)
		tui_project_begin(&p->tui, project, bin);
	print_message(p);
	*p->tui.message = '\0';
	/* What is wrong with the keys, before the first of them. */
	tui_keys_use(&p->tui, getenv("SCRY_KEYS"));
	print_message(p);
	tui_draw(&p->tui); /* finds the place to start from */
	print_arrival(p, &(struct spot){.bin = project ? UINT32_MAX : 0}, true);
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
	free(p);
	return 0;
}

int tui_run_plain(const char *path)
{
	struct ses_opts opts = {.may_connect = true};
	struct ses *s = NULL;
	struct err *e = ses_open(path, &opts, &s);
	int status = e ? ops_fail(e, NULL) : run_lines(s, NULL, 0);
	ses_close(s);
	return status;
}

int tui_run_plain_project(const char *file, const char *const *paths, size_t cnt)
{
	struct ses_project_opts o = {.file = file, .paths = paths, .path_cnt = cnt, .event_fd = -1};
	struct ses_project *project = NULL;
	struct ses *s = NULL;
	uint32_t bin = 0;
	struct err *e = ses_project_open(&o, &project);
	if (!e)
		e = first_binary(project, &bin, &s);
	int status = e ? ops_fail(e, NULL) : run_lines(s, project, bin);
	ses_project_close(project);
	return status;
}
