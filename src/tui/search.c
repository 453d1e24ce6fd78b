/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the next place of something, in a job: the screen stays alive and Ctrl+C stops it. */
struct search_job {
	struct tui_job job;
	enum ses_search_kind kind;
	char what[TUI_FILTER_MAX];
	char word[TUI_FILTER_MAX]; /* a hit must have it whole, "": any will do */
	uint64_t from;
	bool back, has_wrapped, is_found;
	uint64_t found;
	struct err *err;
	struct arena arena;
};

struct prefix {
	const char *text;
	enum ses_search_kind kind;
};

static const struct prefix prefixes[] = {
	{"hex:", SES_SEARCH_BYTES}, {"bytes:", SES_SEARCH_BYTES}, {"text:", SES_SEARCH_TEXT}, {"rx:", SES_SEARCH_REGEX},
	{"regex:", SES_SEARCH_REGEX}, {"imm:", SES_SEARCH_IMM}, {"insn:", SES_SEARCH_INSN},
	{"c:", SES_SEARCH_C},
};

enum ses_search_kind tui_search_kind(const char *text, const char **ret_what)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i].text);
		if (strncmp(text, prefixes[i].text, n) == 0) {
			*ret_what = text + n + strspn(text + n, " ");
			return prefixes[i].kind;
		}
	}
	*ret_what = text;
	return SES_SEARCH_TEXT;
}

static bool is_word_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '@';
}

/* Whether the word stands in a text as it is, in no longer one. */
static bool has_word(struct ses_text t, const char *word)
{
	size_t len = strlen(word);
	for (uint32_t i = 0; len <= t.len && i <= t.len - len; i++) {
		bool is_there = !memcmp(t.s + i, word, len);
		if (is_there && (!i || !is_word_char(t.s[i - 1])) && (i + len == t.len || !is_word_char(t.s[i + len])))
			return true;
	}
	return false;
}

static void run_once(struct search_job *s, uint64_t from)
{
	struct ses_hit *hits;
	struct ses_search_ask ask = {.kind = s->kind, .what = s->what, .from_va = from, .back = s->back, .limit = 1, .has_more = true};
	while (ask.has_more && !s->is_found && !s->err) {
		s->err = ses_search(s->job.snap, &s->job.call, &ask, &s->arena, &hits);
		if (s->err)
			return;
		if (ask.cnt && *s->word && !has_word(hits[0].text, s->word)) {
			ask.from_va = hits[0].addr + !s->back;
			ask.has_more = true;
			arena_reset(&s->arena);
			continue;
		}
		if (ask.cnt) {
			s->is_found = true;
			s->found = hits[0].addr;
		}
		if (ask.next_va == ask.from_va)
			return;
		ask.from_va = ask.next_va;
	}
}

static void run(struct tui_job *j)
{
	struct search_job *s = (struct search_job *)j;
	run_once(s, s->from);
	if (s->is_found || s->err)
		return;
	s->has_wrapped = true;
	run_once(s, s->back ? UINT64_MAX : 0);
}

static void done(struct tui *t, struct tui_job *j)
{
	struct search_job *s = (struct search_job *)j;
	if (t->search_job != j)
		return;
	t->search_job = NULL;
	t->is_dirty = true;
	if (s->err) {
		tui_say_err(t, s->err);
		s->err = NULL;
	} else if (!s->is_found) {
		tui_say(t, true, "not found: %s", t->search_text);
	} else {
		tui_go(t, s->found);
		tui_say(t, false, "found%s: %s  (F3 next, N before)", s->has_wrapped ? ", past the end" : "", t->search_text);
	}
}

static void fini(struct tui_job *j)
{
	struct search_job *s = (struct search_job *)j;
	err_free(s->err);
	arena_fini(&s->arena);
}

static void start(struct tui *t, uint64_t from, bool back)
{
	const char *what;
	struct search_job *s = calloc(1, sizeof(*s));
	if (!s)
		return;
	tui_search_cancel(t);
	s->kind = tui_search_kind(t->search_text, &what);
	snprintf(s->what, sizeof(s->what), "%s", what);
	snprintf(s->word, sizeof(s->word), "%s", t->search_word);
	s->from = from;
	s->back = back;
	s->job.run = run;
	s->job.done = done;
	s->job.fini = fini;
	t->search_job = &s->job;
	tui_say(t, false, "searching %s  (Ctrl+C stops)", t->search_text);
	tui_job_start(t, &s->job);
}

void tui_search_cancel(struct tui *t)
{
	if (!t->search_job)
		return;
	tui_job_cancel(t->search_job);
	t->search_job = NULL;
	tui_say(t, false, "search stopped");
}

static uint64_t cursor_va(struct tui *t)
{
	uint64_t va = t->listing.va;
	const struct tui_view_ops *v = tui_view_ops(t->main_view);
	if (v->va)
		v->va(t, &va);
	return va;
}

/* In C plain words and patterns are looked for in the text of the function; everything else, and "text:", in the whole file. */
static bool is_in_c(const struct tui *t)
{
	const char *what;
	enum ses_search_kind kind = tui_search_kind(t->search_text, &what);
	return tui_focus(t) == TUI_V_C && (what == t->search_text || kind == SES_SEARCH_REGEX);
}

/* Matches in the C of all functions are a list: which of them is the next depends on no cursor. */
static bool is_list(const char *text)
{
	const char *what;
	return tui_search_kind(text, &what) == SES_SEARCH_C;
}

void tui_search_start(struct tui *t, const char *text, bool is_all, bool back)
{
	snprintf(t->search_text, sizeof(t->search_text), "%s", text);
	*t->search_word = '\0';
	if (!is_all && is_in_c(t)) {
		tui_c_search(t, text, back, false);
		return;
	}
	if (!is_all && !is_list(text)) {
		start(t, cursor_va(t) + !back, back);
		return;
	}
	tui_found_start(t, text);
}

void tui_search_again(struct tui *t, bool back)
{
	if (!*t->search_text) {
		tui_say(t, true, "nothing was searched for yet ( / )");
		return;
	}
	if (is_in_c(t)) {
		tui_c_search(t, t->search_text, back, false);
		return;
	}
	if (is_list(t->search_text)) {
		tui_found_start(t, t->search_text);
		return;
	}
	uint64_t va = cursor_va(t);
	start(t, back ? va : va + 1, back);
}

void tui_search_token(struct tui *t, bool back)
{
	bool is_c = tui_focus(t) == TUI_V_C;
	struct ses_text word = is_c ? tui_c_word(t) : tui_listing_word(t);
	if (!word.len || word.len > 200) {
		tui_say(t, false, "no word under the cursor");
		return;
	}
	if (is_c) {
		char text[TUI_FILTER_MAX];
		snprintf(text, sizeof(text), "%.*s", (int)word.len, word.s);
		tui_c_search(t, text, back, true);
		return;
	}
	snprintf(t->search_text, sizeof(t->search_text), "insn:*%.*s*", (int)word.len, word.s);
	snprintf(t->search_word, sizeof(t->search_word), "%.*s", (int)word.len, word.s);
	tui_search_again(t, back);
}
