/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_live.h"

#include "tui/operation.h"
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/*
 * A trace while it is made: the newest events as a list, the one under the cursor in full below it with who called. The session keeps
 * the rows; here is what is shown of them, and the ways from an event to the code.
 */
#define DETAIL_MIN_H 16 /* lower panes are the list alone */
#define WORDS_MAX 200
#define COMMAND_MAX 40 /* bytes of the words in the title */

enum { COL_TIME, COL_PID, COL_COMM, COL_CALL, COL_ARGS, COL_RESULT, COL_SITE };

static struct ses_text text_of(const char *s)
{
	return s ? (struct ses_text){s, (uint32_t)strlen(s)} : (struct ses_text){"", 0};
}

static struct tui_list *list_of(struct tui *t)
{
	return &t->lists[TUI_V_LIVE];
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

static const char *base_name(struct ses_text path, uint32_t *ret_len)
{
	const char *slash = memrchr(path.s, '/', path.len);
	const char *name = slash ? slash + 1 : path.s;
	*ret_len = path.len - (uint32_t)(name - path.s);
	return name;
}

/* "main+0x1c", "libc.so.6+0xf8bf7", "0x7f..." */
static struct ses_text site_text(struct arena *a, const struct ses_live_frame *f)
{
	uint32_t len;
	const char *module = base_name(f->module, &len);
	const char *mark = f->is_guess ? "?" : "";
	if (f->func.len)
		return text_of(arena_printf(a, "%.*s+0x%llx%s", (int)f->func.len, f->func.s, (unsigned long long)f->func_off, mark));
	if (f->module.len)
		return text_of(arena_printf(a, "%.*s+0x%llx%s", (int)len, module, (unsigned long long)f->off, mark));
	return text_of(arena_printf(a, "0x%llx", (unsigned long long)f->off));
}

static bool put_row(struct tui_page *ret, const struct ses_live_row *x)
{
	struct arena *a = &ret->arena;
	struct tui_row *r = &ret->rows[ret->cnt++];
	bool has_time = x->kind != SES_LIVE_SAID && x->kind != SES_LIVE_END;
	const char *time = has_time ? arena_printf(a, "%llu.%06llu", (unsigned long long)(x->time / 1000000000),
						   (unsigned long long)(x->time / 1000 % 1000000)) : "";
	const char *pid = x->tid ? arena_printf(a, "%u", x->tid) : "";
	r->id = x->id;
	r->mark = x->kind == SES_LIVE_FINDING ? '!' : x->kind == SES_LIVE_LOST ? '*' : x->is_error ? '-' : 0;
	r->col[COL_TIME] = text_of(time);
	r->col[COL_PID] = text_of(pid);
	r->col[COL_COMM] = x->comm;
	r->col[COL_CALL] = x->name;
	r->col[COL_ARGS] = x->args;
	r->col[COL_RESULT] = x->result;
	if (x->site < x->frame_cnt)
		r->col[COL_SITE] = site_text(a, &x->frames[x->site]);
	return time && pid && (x->site >= x->frame_cnt || r->col[COL_SITE].s);
}

static struct err *live_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_live_state st;
	uint32_t limit = (uint32_t)MIN(q->page.limit, 4096u);
	struct ses_live_row *rows = q->live ? ARENA_ARRAY(&ret->arena, struct ses_live_row, (size_t)limit + 1) : NULL;
	ret->rows = q->live ? ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)limit + 1) : NULL;
	if (!q->live)
		return NULL;
	if (!rows || !ret->rows)
		return &err_nomem;
	ses_live_get_state(q->live, &st);
	ret->total = st.shown;
	uint32_t cnt = ses_live_rows(q->live, q->page.offset, limit, &ret->arena, rows);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!put_row(ret, &rows[i]))
			return &err_nomem;
	}
	return NULL;
}

static const struct tui_list_ops live_list = {
	.title = "Live trace (-: failed, !: finding, *: missing)",
	.empty = "nothing is traced (t: a program with its arguments, -p PID, --read FILE)",
	.columns = {{.title = "seconds", .width = 11, .role = ROLE_DIM, .is_right = true},
		    {.title = "thread", .width = 7, .role = ROLE_ADDR, .is_right = true},
		    {.title = "program", .width = 10, .role = ROLE_DIM},
		    {.title = "event", .width = 15, .role = ROLE_MNEMONIC},
		    {.title = "arguments", .role = ROLE_TEXT},
		    {.title = "result", .width = 14, .role = ROLE_NUMBER},
		    {.title = "call site", .width = 24, .role = ROLE_NAME}},
	.column_cnt = 7,
	.is_ordered_by_id = true,
	.fetch = live_fetch,
};

/* The row with this id into the frame's arena; false: it is not kept any more. */
static bool get_row(struct tui *t, uint64_t id, struct ses_live_row *ret)
{
	if (!t->live.trace || !id)
		return false;
	uint64_t at = ses_live_index(t->live.trace, id);
	return ses_live_rows(t->live.trace, at, 1, &t->frame_arena, ret) && ret->id == id;
}

/* --- frames ----------------------------------------------------------------------------------------------------------- */

static struct err *frames_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_live_row row;
	uint64_t at = q->live ? ses_live_index(q->live, q->live_id) : 0;
	if (!q->live || !ses_live_rows(q->live, at, 1, &ret->arena, &row) || row.id != q->live_id)
		return NULL;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)row.frame_cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	ret->total = row.frame_cnt;
	for (uint32_t i = (uint32_t)MIN(q->page.offset, row.frame_cnt); i < row.frame_cnt && ret->cnt < q->page.limit; i++) {
		const struct ses_live_frame *f = &row.frames[i];
		struct tui_row *r = &ret->rows[ret->cnt++];
		*r = (struct tui_row){.id = i, .mark = i == row.site ? '*' : 0};
		r->col[0] = text_of(arena_printf(&ret->arena, "%u", i));
		r->col[1] = site_text(&ret->arena, f);
		r->col[2] = text_of(arena_printf(&ret->arena, "%llx", (unsigned long long)f->off));
		r->col[3] = f->module;
		if (!r->col[0].s || !r->col[1].s || !r->col[2].s)
			return &err_nomem;
	}
	return NULL;
}

const struct tui_list_ops tui_frames_list = {
	.title = "Who called, the innermost first (*: the call site)",
	.empty = "nobody knows who called",
	.columns = {{.title = "frame", .width = 5, .role = ROLE_DIM, .is_right = true},
		    {.title = "function", .width = 40, .role = ROLE_NAME},
		    {.title = "in the file", .width = 11, .role = ROLE_ADDR, .is_right = true},
		    {.title = "module", .role = ROLE_TEXT}},
	.column_cnt = 4,
	.fetch = frames_fetch,
};

void tui_live_go(struct tui *t, uint64_t event, uint64_t frame, bool to_c)
{
	struct ses_live_row row;
	if (!get_row(t, event, &row)) {
		tui_say(t, true, "the event is not kept any more");
		return;
	}
	uint64_t i = frame == UINT64_MAX ? row.site : frame;
	if (i >= row.frame_cnt) {
		tui_say(t, false, row.kind == SES_LIVE_CALL ? "nobody knows where this call was made" : "this is no call of a program");
		return;
	}
	const struct ses_live_frame *f = &row.frames[i];
	char *path = f->module.len && *f->module.s == '/' ? arena_strndup(&t->frame_arena, f->module.s, f->module.len) : NULL;
	if (path)
		tui_go_file(t, path, f->off, to_c);
	else
		tui_say(t, true, "%.*s: no file has this code", f->module.len ? (int)f->module.len : 7, f->module.len ? f->module.s : "unknown");
}

/* --- the trace -------------------------------------------------------------------------------------------------------- */

/* The words with their quotes taken away, in the frame's arena, ended by null; null when there are too many. What is no option at the
 * beginning is a program. Findings of all rules are shown unless rules are named. */
static const char **split(struct tui *t, const char *line, bool *ret_runs)
{
	const char **words = ARENA_ARRAY(&t->frame_arena, const char *, WORDS_MAX + 4);
	char *rest = arena_strndup(&t->frame_arena, line, strlen(line)), *word;
	size_t cnt = 0, first = 0;
	bool has_rule = false, is_program = false;
	if (!words || !rest)
		return NULL;
	words[cnt++] = "--rule";
	words[cnt++] = "all";
	while ((word = tui_next_word(&rest))) {
		if (cnt >= WORDS_MAX)
			return NULL;
		if (cnt == 2 && *word != '-')
			words[cnt++] = "--";
		is_program |= !strcmp(words[cnt - 1], "--");
		has_rule |= !is_program && (!strcmp(word, "--rule") || !strncmp(word, "--rule=", 7));
		words[cnt++] = word;
	}
	first = has_rule ? 2 : 0;
	*ret_runs = is_program;
	return words + first;
}

static void start(struct tui *t)
{
	struct tui_live *v = &t->live;
	bool runs;
	const char **words = split(t, v->asked, &runs);
	struct ses_live *trace = NULL;
	struct ses_live_opts o = {.words = words, .event_fd = t->job_fd};
	struct err *e = words ? ses_live_start(&o, &trace) : err_new(ERR_INVALID, "trace: more than %d words", WORDS_MAX);
	if (e) {
		tui_say_err(t, e);
		return;
	}
	ses_live_free(v->trace);
	v->trace = trace;
	snprintf(v->command, sizeof(v->command), "%s", v->asked);
	*v->filter = *list_of(t)->filter = '\0';
	v->event = v->gone = 0;
	v->is_tail = v->is_changed = true;
	tui_list_restart(list_of(t));
	tui_show_view(t, TUI_V_LIVE);
}

void tui_live_begin(struct tui *t, const char *words)
{
	bool runs = false;
	/* Whoever steers the workbench may read and edit; running and tracing are the person's to begin. */
	if (t->is_driven) {
		tui_say(t, true, "denied: a driver may not run or trace programs");
		return;
	}
	snprintf(t->live.asked, sizeof(t->live.asked), "%s", words);
	if (!split(t, words, &runs))
		tui_say(t, true, "trace: more than %d words", WORDS_MAX);
	else if (runs)
		tui_confirm(t, start, "Run it as you, in no sandbox?  %s", words + strspn(words, "- "));
	else
		start(t);
}

void tui_live_accept(struct tui *t, enum tui_prompt_kind kind, const char *text)
{
	uint64_t at;
	struct tui_list *l = list_of(t);
	if (kind == TUI_PROMPT_TRACE) {
		tui_live_begin(t, text);
		return;
	}
	snprintf(t->live.find, sizeof(t->live.find), "%s", text);
	bool has_trace = t->live.trace != NULL, is_here = has_trace && ses_live_find(t->live.trace, text, l->cur, false, &at);
	if (!is_here && !(has_trace && ses_live_find(t->live.trace, text, 0, false, &at))) {
		tui_say(t, true, "not found: %s", text);
		return;
	}
	if (!is_here)
		tui_say(t, false, "found from the beginning on");
	l->cur = at;
	t->live.is_tail = false;
}

static void find_again(struct tui *t, bool back)
{
	uint64_t at;
	struct tui_list *l = list_of(t);
	if (!*t->live.find)
		tui_say(t, false, "nothing was looked for yet");
	else if (!t->live.trace || !ses_live_find(t->live.trace, t->live.find, back ? l->cur : l->cur + 1, back, &at))
		tui_say(t, true, "no more of %s %s", t->live.find, back ? "before this" : "after this");
	else
		l->cur = at;
	t->live.is_tail = false;
}

void tui_live_fini(struct tui *t)
{
	ses_live_free(t->live.trace);
	t->live.trace = NULL;
}

/* --- what is shown ---------------------------------------------------------------------------------------------------- */

static void say_state(struct tui *t, const struct ses_live_state *st)
{
	char n[3][32], tail[96] = "";
	struct tui_list *l = list_of(t);
	if (st->lost)
		snprintf(tail, sizeof(tail), ", %s lost", tui_number(st->lost, n[1]));
	if (st->dropped)
		snprintf(tail + strlen(tail), sizeof(tail) - strlen(tail), ", the first %s not kept", tui_number(st->dropped, n[2]));
	/* Behind it stands the filter, which is not to be pushed out. */
	bool is_long = strlen(t->live.command) > COMMAND_MAX;
	snprintf(l->what, sizeof(l->what), "%s events%s  %s%s  %.*s%s", tui_number(st->events, n[0]), tail,
		 !st->is_running ? st->is_bad ? "failed" : "ended" : st->is_paused ? "paused" : "running",
		 t->live.is_tail && st->is_running ? ", newest" : "", COMMAND_MAX, t->live.command,
		 is_long ? "..." : "");
}

/* The filter that was typed is put into force; one that cannot be taken leaves the last one. */
static void apply_filter(struct tui *t)
{
	struct tui_list *l = list_of(t);
	struct tui_live *v = &t->live;
	if (!strcmp(v->filter, l->filter))
		return;
	struct err *e = ses_live_filter(v->trace, l->filter);
	if (e) {
		/* It is still being typed, most often. */
		tui_say_err(t, e);
		return;
	}
	snprintf(v->filter, sizeof(v->filter), "%s", l->filter);
	v->gone = 0;
	l->cur = ses_live_index(v->trace, v->event);
	l->top = l->cur > (uint64_t)l->height / 2 ? l->cur - (uint64_t)l->height / 2 : 0;
	v->is_changed = true;
}

void tui_live_pump(struct tui *t)
{
	struct tui_live *v = &t->live;
	struct tui_list *l = list_of(t);
	struct ses_live_state st;
	if (!v->trace || t->main_view != TUI_V_LIVE) /* nobody looks: nobody is woken */
		return;
	apply_filter(t);
	if (!ses_live_has_news(v->trace) && !v->is_changed)
		return;
	ses_live_get_state(v->trace, &st);
	uint64_t gone = st.gone - MIN(v->gone, st.gone);
	v->gone = st.gone;
	v->is_changed = false;
	l->cur -= MIN(l->cur, gone);
	l->top -= MIN(l->top, gone);
	if (v->is_tail && !st.is_paused)
		l->cur = st.shown ? st.shown - 1 : 0;
	say_state(t, &st);
	tui_list_refresh(l);
}

/* Text over as many rows of r as it needs; how many it took. */
static int draw_wrapped(struct tui *t, struct cells_rect r, struct ses_text s, enum term_role fg)
{
	int row = 0;
	for (uint32_t at = 0; at < s.len && row < r.h; row++) {
		uint32_t n = MIN(s.len - at, (uint32_t)MAX(r.w - 4, 8));
		while (n > 1 && at + n < s.len && ((uint8_t)s.s[at + n] & 0xc0) == 0x80)
			n--;
		struct cells_pen p = tui_pen(t, r, row, fg, ROLE_BG);
		cells_str(&p, "   ");
		cells_text(&p, s.s + at, n);
		at += n;
	}
	return row;
}

static void draw_detail(struct tui *t, struct cells_rect r, const struct ses_live_row *x)
{
	struct cells_pen p = tui_pen(t, r, 0, ROLE_TITLE, ROLE_BG_DIALOG);
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	cells_fill(&t->grid, (struct cells_rect){r.x, r.y, r.w, 1}, p.st);
	cells_str(&p, "  ");
	cells_text(&p, x->name.s, x->name.len);
	if (x->tid)
		cells_printf(&p, x->pid == x->tid ? "  process %u" : "  process %u thread %u", x->pid, x->tid);
	if (x->comm.len) {
		cells_str(&p, "  ");
		cells_text(&p, x->comm.s, x->comm.len);
	}
	if (x->ns && x->kind == SES_LIVE_CALL)
		cells_printf(&p, "  took %llu.%03llu us", (unsigned long long)(x->ns / 1000), (unsigned long long)(x->ns % 1000));
	int at = 1;
	struct cells_rect body = {r.x, r.y + at, r.w, MAX(r.h / 2 - at, 1)};
	at += draw_wrapped(t, body, x->args, x->kind == SES_LIVE_FINDING ? ROLE_WARN : ROLE_TEXT);
	if (x->result.len && at < r.h) {
		p = tui_pen(t, r, at++, x->is_error ? ROLE_ERROR : ROLE_NUMBER, ROLE_BG);
		cells_str(&p, " = ");
		cells_text(&p, x->result.s, x->result.len);
	}
	for (uint32_t i = 0; i < x->frame_cnt && at < r.h; i++) {
		struct ses_text site = site_text(&t->frame_arena, &x->frames[i]);
		p = tui_pen(t, r, at++, ROLE_KEY, ROLE_BG);
		cells_str(&p, i == x->site ? " > " : "   ");
		p.st.fg = ROLE_NAME;
		cells_text(&p, site.s ? site.s : "", site.len);
		p.st.fg = ROLE_DIM;
		cells_str(&p, "  ");
		cells_text(&p, x->frames[i].module.s, x->frames[i].module.len);
		if (i + 1 < x->frame_cnt && at == r.h)
			cells_str(&p, " \xe2\x80\xa6");
	}
}

static void live_draw(struct tui *t, struct cells_rect r, bool is_focused)
{
	struct tui_list *l = list_of(t);
	struct cells_rect below = {r.x, r.y, r.w, r.h >= DETAIL_MIN_H && r.w >= 20 ? r.h / 3 : 0};
	struct ses_live_row row;
	below.y += r.h - below.h;
	r.h -= below.h;
	tui_list_draw(t, l, r, is_focused);
	const struct tui_row *cur = tui_list_row(t, l);
	t->live.event = cur ? cur->id : t->live.event;
	if (below.h && cur && get_row(t, cur->id, &row))
		draw_detail(t, below, &row);
}

void tui_live_restore(struct tui *t, uint64_t event)
{
	struct tui_list *l = list_of(t);
	if (!t->live.trace)
		return;
	t->live.is_tail = false;
	t->live.event = event;
	t->live.is_changed = true;
	tui_live_pump(t);
	l->cur = ses_live_index(t->live.trace, event);
}

/* --- keys ------------------------------------------------------------------------------------------------------------- */

static void prompt_trace(struct tui *t)
{
	char text[TUI_FILTER_MAX];
	const char *path = ses_path(t->ses);
	bool is_plain = !strpbrk(path, " \t'\"") && strlen(path) + 2 < sizeof(text);
	snprintf(text, sizeof(text), is_plain ? "%s " : "'%s' ", path);
	tui_prompt_open(t, TUI_PROMPT_TRACE, *t->live.command ? t->live.command : text);
}

/* A word of the filter put there, or taken away. */
static void toggle_word(struct tui *t, const char *word)
{
	struct tui_list *l = list_of(t);
	char filter[TUI_FILTER_MAX] = "";
	bool had = false;
	for (const char *at = l->filter; *at;) {
		at += strspn(at, " ");
		size_t n = strcspn(at, " ");
		bool is_it = n == strlen(word) && !memcmp(at, word, n);
		had |= is_it;
		if (n && !is_it)
			snprintf(filter + strlen(filter), sizeof(filter) - strlen(filter), "%s%.*s", *filter ? " " : "", (int)n, at);
		at += n;
	}
	if (!had)
		snprintf(filter + strlen(filter), sizeof(filter) - strlen(filter), "%s%s", *filter ? " " : "", word);
	tui_list_set_filter(l, filter);
}

static void toggle_pause(struct tui *t)
{
	struct ses_live_state st;
	if (!t->live.trace)
		return;
	ses_live_get_state(t->live.trace, &st);
	ses_live_pause(t->live.trace, !st.is_paused);
	t->live.is_changed = true;
	tui_say(t, false, st.is_paused ? "goes on" : "held; new events are kept behind these while there is room");
}

bool tui_live_act(struct tui *t, enum tui_action a)
{
	struct tui_live *v = &t->live;
	if (v->trace && t->main_view == TUI_V_LIVE)
		apply_filter(t); /* keys are about the rows it leaves, though no frame has shown them */
	switch ((int)a) {
	case TUI_LIVE:
		if (t->main_view == TUI_V_LIVE)
			return true;
		tui_show_view(t, TUI_V_LIVE);
		v->is_changed = true;
		if (!v->trace)
			prompt_trace(t);
		return true;
	case TUI_LIVE_START:
		prompt_trace(t);
		return true;
	case TUI_LIVE_STOP:
		if (v->trace)
			ses_live_stop(v->trace);
		else
			tui_say(t, false, "nothing is traced");
		return true;
	case TUI_LIVE_PAUSE:
		toggle_pause(t);
		return true;
	case TUI_LIVE_TAIL:
		v->is_tail = !v->is_tail;
		v->is_changed = true;
		return true;
	case TUI_LIVE_ERRORS:
		toggle_word(t, "error");
		return true;
	case TUI_LIVE_FINDINGS:
		toggle_word(t, "finding");
		return true;
	case TUI_LIVE_FIND:
		tui_prompt_open(t, TUI_PROMPT_LIVE_FIND, "");
		return true;
	case TUI_SEARCH_NEXT:
	case TUI_SEARCH_PREV:
		find_again(t, a == TUI_SEARCH_PREV);
		return true;
	case TUI_LIVE_FRAMES:
	case TUI_XREFS_TO:
		tui_list_restart(&t->frames);
		tui_overlay_push(t, TUI_O_FRAMES);
		return true;
	case TUI_FOLLOW:
		tui_live_go(t, v->event, UINT64_MAX, false);
		return true;
	case TUI_LIVE_C:
		tui_live_go(t, v->event, UINT64_MAX, true);
		return true;
	case TUI_UP:
	case TUI_HALF_UP:
	case TUI_PAGE_UP:
	case TUI_TOP:
	case TUI_LINE_START:
		v->is_tail = false;
		v->is_changed = true;
		return false;
	case TUI_BOTTOM:
	case TUI_LINE_END:
		v->is_tail = v->is_changed = true;
		return false;
	default:
		return false;
	}
}

const struct tui_view_ops tui_live_ops = {
	.name = "live", .where = TUI_IN_LIST | TUI_IN_LIVE, .list = &live_list, .draw = live_draw, .act = tui_live_act};
