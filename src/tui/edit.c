/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "session/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Edits. One is shown at once, marked as pending, and written by a job, so that a slow disk stops no frame; it counts
 * as done only when the job says that it is on disk. They are written one after the other, in the order they were made.
 */
struct tui_edit {
	struct tui_job job;
	struct tui_edit *next;
	struct ses *ses;
	char op[16], sub[16]; /* op "undo" and "redo" are steps */
	uint64_t va;
	char *value;
	char **words;  /* of an operation of the table, see tui_edit_words(); null: an edit of one address */
	uint64_t wait; /* proposals, after some were decided */
	uint32_t decided; /* so many */
	struct arena arena;
	struct err *err;
	struct ses_edit edit;
	struct ses_undone_list undone;
	uint64_t rev; /* it came to; 0: none */
};

static bool is_step(const struct tui_edit *e)
{
	return !strcmp(e->op, "undo") || !strcmp(e->op, "redo");
}

/* Deciding about a proposal. */
static bool is_decision(const struct tui_edit *e)
{
	return e->words && (!strcmp(e->op, "accept") || !strcmp(e->op, "refuse"));
}

static const char *past_of(const struct tui_edit *decision)
{
	return *decision->op == 'a' ? "accepted" : "refused";
}

static bool is_text(const struct ses_text *t, const char *s)
{
	return t->len == strlen(s) && !memcmp(t->s, s, t->len);
}

/* What became of the proposals: a row says of each its status, and last the reason when it still waits. */
static struct err *read_decided(struct tui_edit *e, const struct ops_rows *rows, struct err *said)
{
	const struct ses_text *why = NULL;
	for (uint32_t i = 0; i < rows->row_cnt && rows->column_cnt > 1; i++) {
		const struct ses_text *row = rows->cells + (size_t)i * rows->column_cnt, *last = &row[rows->column_cnt - 1];
		if (is_text(&row[1], past_of(e)))
			e->decided++;
		else if (!why && last->len)
			why = last;
	}
	if (!why)
		return said;
	enum err_kind kind = said ? said->kind : ERR_STALE;
	err_free(said);
	if (rows->row_cnt == 1)
		return err_new(kind, "proposal %s was not %s: %.*s", e->words[1], past_of(e), (int)MIN(why->len, (uint32_t)200), why->s);
	return err_new(kind, "%u of %u proposals %s, the others not: %.*s", e->decided, rows->row_cnt, past_of(e),
		       (int)MIN(why->len, (uint32_t)200), why->s);
}

static void run(struct tui_job *j)
{
	struct tui_edit *e = (struct tui_edit *)j;
	struct ses_edit_opts opts = {0};
	if (is_step(e)) {
		struct ses_undo_ask ask = {.is_redo = *e->op == 'r', .steps = 1, .rev = e->va, .of_author = *e->value ? e->value : NULL};
		e->err = ses_undo(e->ses, &ask, &opts, &e->arena, &e->undone);
		e->rev = e->undone.rev;
		return;
	}
	if (e->words) {
		struct ses_call call = {.caps = SES_CAP_READ | SES_CAP_EDIT};
		struct ops_rows rows = {0};
		e->err = ops_call(j->snap, &call, e->op, (const char *const *)e->words, &e->arena, &rows);
		if (is_decision(e)) {
			e->err = read_decided(e, &rows, e->err);
			struct err *unread = tui_proposals_count(e->ses, false, &e->wait);
			e->wait = unread ? UINT64_MAX : e->wait;
			err_free(unread);
		}
		struct ses_snap *sn = ses_snap_get(e->ses);
		e->rev = ses_snap_rev(sn);
		ses_snap_put(sn);
		return;
	}
	e->edit = (struct ses_edit){.op = e->op, .addr = e->va, .sub = e->sub, .value = *e->value ? e->value : NULL,
				    .value_len = strlen(e->value)};
	e->err = ses_edit(e->ses, &e->edit, 1, &opts, &e->arena, &e->rev);
}

static void fini(struct tui_job *j)
{
	struct tui_edit *e = (struct tui_edit *)j;
	err_free(e->err);
	free(e->value);
	for (size_t i = 0; e->words && e->words[i]; i++)
		free(e->words[i]);
	free(e->words);
	arena_fini(&e->arena);
}

static void tell_decided(struct tui *t, const struct tui_edit *e)
{
	const char *undo = *e->op == 'a' ? " (Ctrl+Z takes it back)" : "";
	if (e->words[2])
		tui_say(t, false, "%u proposals %s%s", e->decided, past_of(e), undo);
	else
		tui_say(t, false, "proposal %s %s%s", e->words[1], past_of(e), undo);
}

static void tell(struct tui *t, struct tui_edit *e)
{
	bool is_type = e->words && strcmp(e->op, "load") && !is_decision(e);
	if (is_type && (!e->err || t->editor.is_saving)) {
		tui_say(t, e->err != NULL, e->err ? "not declared" : "%sd (Ctrl+Z takes it back)", e->op);
		tui_editor_done(t, take_ptr(e->err));
	} else if (is_decision(e) && !e->err) {
		tell_decided(t, e);
	} else if (e->words && !e->err) {
		tui_say(t, false, "loaded so; every edit stays with its bytes (Ctrl+Z takes it back)");
	} else if (e->err) {
		tui_say_err(t, take_ptr(e->err));
	} else if (is_step(e) && !e->undone.cnt) {
		tui_say(t, false, "nothing to %s", e->op);
	} else if (is_step(e)) {
		tui_say(t, false, "%s: revision %llu, %llu changes (U shows all)", e->op, (unsigned long long)e->undone.list[0].target,
			(unsigned long long)e->undone.list[0].changes);
	} else if (tui_define_tell(t, &e->edit)) {
		return;
	} else if (e->edit.status == SES_EDIT_REFUSED) {
		tui_say(t, true, "%s refused: %s", e->op, e->edit.why ? e->edit.why : "");
	} else if (e->edit.status == SES_EDIT_UNCHANGED) {
		tui_say(t, false, "%s: as it was", e->op);
	} else {
		tui_say(t, false, "%s at %llx is on disk (Ctrl+Z takes it back)", e->op, (unsigned long long)e->va);
	}
}

static void start_next(struct tui *t);

static void done(struct tui *t, struct tui_job *j)
{
	struct tui_edit *e = (struct tui_edit *)j;
	t->edit_running = NULL;
	t->own_rev = MAX(t->own_rev, e->rev);
	t->listing.lines_snap = NULL;
	t->is_dirty = true;
	tell(t, e);
	if (is_decision(e) && e->ses == t->ses && e->wait != UINT64_MAX)
		t->proposals_waiting = e->wait;
	static const enum tui_view shown_by[] = {TUI_V_JOURNAL, TUI_V_BOOKMARKS, TUI_V_TYPES, TUI_V_PROPOSALS};
	for (size_t i = 0; i < ARRAY_LEN(shown_by); i++)
		tui_list_snap_changed(t, &t->lists[shown_by[i]]);
	start_next(t);
}

static void start_next(struct tui *t)
{
	struct tui_edit *e = t->edit_first;
	if (!e || t->edit_running)
		return;
	t->edit_first = e->next;
	if (!t->edit_first)
		t->edit_last = NULL;
	t->edit_running = e;
	tui_job_start(t, &e->job);
}

static bool take_words(struct tui_edit *e, const char *value, const char *const *words)
{
	size_t cnt = 0;
	e->value = strdup(value);
	while (words && words[cnt])
		cnt++;
	e->words = words ? calloc(cnt + 1, sizeof(*e->words)) : NULL;
	if (!e->value || (words && !e->words))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		e->words[i] = strdup(words[i]);
		if (!e->words[i])
			return false;
	}
	return true;
}

static void submit(struct tui *t, const char *op, const char *sub, uint64_t va, const char *value, const char *const *words)
{
	struct tui_edit *e = calloc(1, sizeof(*e));
	if (!e || !take_words(e, value, words)) {
		if (e)
			fini(&e->job);
		free(e);
		tui_say_err(t, &err_nomem);
		return;
	}
	if (!words && strcmp(op, "undo") && strcmp(op, "redo")) {
		bool fits = strlen(value) < sizeof(t->last.value);
		snprintf(t->last.op, sizeof(t->last.op), "%s", fits ? op : "");
		snprintf(t->last.sub, sizeof(t->last.sub), "%s", sub);
		snprintf(t->last.value, sizeof(t->last.value), "%s", fits ? value : "");
	}
	snprintf(e->op, sizeof(e->op), "%s", op);
	snprintf(e->sub, sizeof(e->sub), "%s", sub);
	e->va = va;
	e->ses = t->ses;
	e->job.run = run;
	e->job.done = done;
	e->job.fini = fini;
	if (t->edit_last)
		t->edit_last->next = e;
	else
		t->edit_first = e;
	t->edit_last = e;
	t->listing.lines_snap = NULL;
	tui_say(t, false, "%s: being written", op);
	start_next(t);
}

void tui_edit_submit(struct tui *t, const char *op, const char *sub, uint64_t va, const char *value)
{
	submit(t, op, sub, va, value, NULL);
}

void tui_edit_declare(struct tui *t, const char *text, const char *over)
{
	const char *declare[] = {"text", text, *over ? "over" : NULL, over, NULL};
	const char *undeclare[] = {"name", over, NULL};
	tui_edit_words(t, *text ? "declare" : "undeclare", *text ? declare : undeclare);
}

void tui_edit_words(struct tui *t, const char *op, const char *const *words)
{
	submit(t, op, "", 0, "", words);
}

/* Edits that were made but not begun are written before we leave. */
void tui_edits_finish(struct tui *t)
{
	while (t->edit_first) {
		struct tui_edit *e = t->edit_first;
		t->edit_first = e->next;
		e->job.snap = t->snap;
		e->job.run(&e->job);
		fini(&e->job);
		free(e);
	}
	t->edit_last = NULL;
}

static void show_pending(struct tui *t, const struct tui_edit *e, struct ses_head *h)
{
	char *text;
	if (e->ses != t->ses || e->va != h->va || !*e->value || is_step(e))
		return;
	bool is_label = !strcmp(e->op, "rename") && h->kind == SES_HEAD_LABEL;
	bool is_comment = !strcmp(e->op, "comment") && !h->sub;
	if (!is_label && !is_comment)
		return;
	text = arena_printf(&t->listing.arena, is_label ? "%s: *" : "%s *", e->value);
	if (!text)
		return;
	struct ses_text shown = {text, (uint32_t)strlen(text)};
	if (is_label)
		h->text = shown;
	else
		h->comment = shown;
}

void tui_edits_show(struct tui *t, struct ses_head *lines, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		if (t->edit_running)
			show_pending(t, t->edit_running, &lines[i]);
		for (const struct tui_edit *e = t->edit_first; e; e = e->next)
			show_pending(t, e, &lines[i]);
	}
}

/* --- what a prompt begins with ----------------------------------------------------------------------------------------- */

struct edit_kind {
	const char *op, *sub;
};

/* Of a prompt that is none of an edit, op is null. */
static struct edit_kind kind_of(enum tui_prompt_kind kind)
{
	static const struct edit_kind kinds[TUI_PROMPT_COUNT] = {
		[TUI_PROMPT_RENAME] = {"rename", ""},	[TUI_PROMPT_COMMENT] = {"comment", "line"}, [TUI_PROMPT_BLOCK] = {"comment", "block"},
		[TUI_PROMPT_RETYPE] = {"retype", ""},	[TUI_PROMPT_PROTOTYPE] = {"set_prototype", ""},
		[TUI_PROMPT_BOOKMARK] = {"bookmark", ""},
	};
	return kinds[kind];
}

bool tui_edit_is_prompt(enum tui_prompt_kind kind)
{
	return kind_of(kind).op != NULL;
}

/*
 * What is there now comes from the journal, which says what a change would replace. That may wait for a disk, so the
 * prompt is open before, and what is typed meanwhile stands behind it.
 */
struct prefill {
	struct tui_job job;
	struct ses *ses;
	struct edit_kind kind;
	uint64_t va;
	struct ses_edit edit;
	struct err *err;
	struct arena arena;
};

static void prefill_run(struct tui_job *j)
{
	struct prefill *f = (struct prefill *)j;
	struct ses_edit_opts opts = {.is_dry_run = true};
	uint64_t rev;
	f->edit = (struct ses_edit){.op = f->kind.op, .addr = f->va, .sub = f->kind.sub};
	f->err = ses_edit(f->ses, &f->edit, 1, &opts, &f->arena, &rev);
}

static void begin_with(struct tui *t, struct edit_kind kind, const char *text, size_t len)
{
	if (len < sizeof(t->prompt.text) - t->prompt.len && !memchr(text, '\n', len)) {
		tui_prompt_prefill(t, text, len);
		return;
	}
	t->prompt.kind = TUI_PROMPT_NONE;
	tui_say(t, true, "longer than a prompt holds; change it with scry %s", kind.op);
}

static void prefill_done(struct tui *t, struct tui_job *j)
{
	struct prefill *f = (struct prefill *)j;
	const struct ses_edit *e = &f->edit;
	if (t->prefill_job != j)
		return;
	t->prefill_job = NULL;
	if (t->prompt.kind && !f->err && e->before)
		begin_with(t, f->kind, e->before, e->before_len);
}

static void prefill_fini(struct tui_job *j)
{
	struct prefill *f = (struct prefill *)j;
	err_free(f->err);
	arena_fini(&f->arena);
}

/* What was said last and is not on disk yet; null when nothing was. */
static const struct tui_edit *pending_of(const struct tui *t, struct edit_kind kind)
{
	const struct tui_edit *last = NULL;
	const struct tui_edit *first = t->edit_running ? t->edit_running : t->edit_first;
	for (const struct tui_edit *e = first; e; e = e == t->edit_running ? t->edit_first : e->next) {
		if (e->va == t->edit_va && !strcmp(e->op, kind.op) && !strcmp(e->sub, kind.sub))
			last = e;
	}
	return last;
}

static void prefill(struct tui *t, struct edit_kind kind)
{
	const struct tui_edit *pending = pending_of(t, kind);
	if (pending) {
		begin_with(t, kind, pending->value, strlen(pending->value));
		return;
	}
	struct prefill *f = calloc(1, sizeof(*f));
	tui_job_cancel(t->prefill_job);
	t->prefill_job = NULL;
	if (!f) {
		t->prompt.kind = TUI_PROMPT_NONE;
		tui_say_err(t, &err_nomem);
		return;
	}
	f->ses = t->ses;
	f->kind = kind;
	f->va = t->edit_va;
	f->job.run = prefill_run;
	f->job.done = prefill_done;
	f->job.fini = prefill_fini;
	t->prefill_job = &f->job;
	tui_job_start(t, &f->job);
}

bool tui_edit_act(struct tui *t, enum tui_action a)
{
	char text[TUI_FILTER_MAX] = "";
	uint64_t va;
	if (a == TUI_UNDO || a == TUI_REDO) {
		tui_edit_submit(t, a == TUI_UNDO ? "undo" : "redo", "", 0, "");
		return true;
	}
	if (a == TUI_HISTORY) {
		tui_show_view(t, TUI_V_JOURNAL);
		return true;
	}
	if (a == TUI_PATCH || a == TUI_UNPATCH) {
		if (a == TUI_PATCH)
			tui_hex_edit_begin(t);
		else
			tui_hex_unpatch(t);
		return true;
	}
	if (a != TUI_RENAME && a != TUI_COMMENT && a != TUI_COMMENT_BLOCK && a != TUI_BOOKMARK && a != TUI_REPEAT)
		return false;
	bool has_operand = a == TUI_RENAME && tui_focus(t) != TUI_V_GRAPH && tui_operand(t, &va);
	if (!has_operand && !tui_focus_va(t, &va)) {
		tui_say(t, true, "no address here");
		return true;
	}
	if (a == TUI_REPEAT) {
		struct tui_last last = t->last;
		if (*last.op)
			tui_edit_submit(t, last.op, last.sub, va, last.value);
		else
			tui_say(t, false, "nothing was edited yet");
		return true;
	}
	t->edit_va = va;
	if (a != TUI_RENAME) {
		tui_prompt_open(t, a == TUI_COMMENT ? TUI_PROMPT_COMMENT : a == TUI_BOOKMARK ? TUI_PROMPT_BOOKMARK : TUI_PROMPT_BLOCK, "");
		prefill(t, kind_of(t->prompt.kind));
		return true;
	}
	struct ses_text name = ses_name_at(t->snap, va, &t->frame_arena);
	if (name.len >= sizeof(text)) {
		tui_say(t, true, "longer than a prompt holds; change it with scry rename");
		return true;
	}
	snprintf(text, sizeof(text), "%.*s", (int)name.len, name.s);
	tui_prompt_open(t, TUI_PROMPT_RENAME, text);
	return true;
}

/* The prompt was accepted; what it was opened with again changes nothing, nothing takes it away. */
void tui_edit_accept(struct tui *t, enum tui_prompt_kind kind, const char *text, const char *before)
{
	bool is_unread = t->prefill_job != NULL;
	tui_job_cancel(t->prefill_job);
	t->prefill_job = NULL;
	/* Nothing typed before it was known what is there: nothing is meant. */
	if (!strcmp(text, before) || (is_unread && !*text))
		return;
	struct edit_kind k = kind_of(kind);
	tui_edit_submit(t, k.op, k.sub, t->edit_va, text);
}
