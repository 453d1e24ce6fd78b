/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/*
 * What the bytes at the cursor are: code, data, a string, a function, or nobody knows. The status line says what came of it;
 * the listing shows it when the analysis behind it is through, at the same place.
 */
static const char *const widths[] = {"byte", "word", "dword", "qword"};

/* The width after the one that is shown, or after the one asked for a moment ago. */
static const char *next_width(struct tui *t, uint64_t va)
{
	struct ses_head *h;
	uint32_t cnt = 0;
	struct ses_call call = tui_call(t, 50);
	struct ses_at at = {.va = va, .sub = SES_SUB_ITEM, .count = 1};
	bool is_again = t->define_va == va && !strcmp(t->last.op, "define") && !strncmp(t->last.value, "data:", 5);
	for (size_t i = 0; is_again && i < sizeof(widths) / sizeof(*widths); i++) {
		if (!strcmp(t->last.value + 5, widths[i]))
			return widths[(i + 1) % 4];
	}
	err_free(ses_heads(t->snap, &call, &at, &t->frame_arena, &h, &cnt));
	if (!cnt || h->kind != SES_HEAD_DATA || h->va != va)
		return widths[0];
	return widths[h->size == 1 ? 1 : h->size == 2 ? 2 : h->size == 4 ? 3 : 0];
}

bool tui_define_act(struct tui *t, enum tui_action a)
{
	char value[32];
	uint64_t va;
	const char *what = a == TUI_DEFINE_CODE ? "code" : a == TUI_DEFINE_FUNC ? "func" : a == TUI_DEFINE_STRING ? "string" :
			   a == TUI_UNDEFINE ? "undef" : NULL;
	if (!what && a != TUI_DEFINE_DATA && a != TUI_DEFINE_TYPE)
		return false;
	if (!tui_focus_va(t, &va)) {
		tui_say(t, true, "no address here");
		return true;
	}
	if (a == TUI_DEFINE_TYPE) {
		t->edit_va = va;
		tui_prompt_open(t, TUI_PROMPT_DEFINE, "");
		return true;
	}
	if (!what) {
		snprintf(value, sizeof(value), "data:%s", next_width(t, va));
		what = value;
	}
	t->define_va = va;
	tui_edit_submit(t, "define", "", va, what);
	return true;
}

void tui_define_accept(struct tui *t, const char *text)
{
	char value[TUI_FILTER_MAX + 8];
	static const char *const words[] = {"code", "func", "string", "array:", "undef", "data:"};
	bool is_word = false;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		is_word = is_word || !strncmp(text, words[i], strlen(words[i]));
	snprintf(value, sizeof(value), "%s%s", is_word ? "" : "data:", text);
	t->define_va = t->edit_va;
	tui_edit_submit(t, "define", "", t->edit_va, value);
}

bool tui_define_tell(struct tui *t, const struct ses_edit *e)
{
	static const char *const why[][2] = {{"flow", "control ends there"}, {"segment", "the segment ends there"},
					     {"defined", "something is defined there"}, {"undecodable", "no instruction is there"},
					     {"limit", "that is enough for once"}};
	const char *ends = "";
	if (strcmp(e->op, "define"))
		return false;
	if (e->status == SES_EDIT_UNCHANGED) {
		tui_say(t, false, "%s", e->why ? e->why : "as it was");
		return true;
	}
	if (e->status != SES_EDIT_APPLIED || !e->value)
		return false;
	for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
		if (e->made.stopped && !strcmp(e->made.stopped, why[i][0]))
			ends = why[i][1];
	}
	if (e->made.stopped)
		tui_say(t, false, "%s: %u instructions to %llx, where %s (Ctrl+Z takes it back)", e->made.how ? "function" : "code",
			e->made.count, (unsigned long long)e->made.end, ends);
	else
		tui_say(t, false, "%.*s: %llu bytes to %llx (Ctrl+Z takes it back)", (int)strcspn(e->value, ":"), e->value,
			(unsigned long long)(e->made.end - e->addr), (unsigned long long)e->made.end);
	return true;
}
