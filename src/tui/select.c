/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/* Lines of the listing that are selected, from where the selection began to the cursor; and letters to jump by. */
static const char hint_letters[] = "asdfghjklqwertyuiopzxcvbnm";
#define HINT_BASE (sizeof(hint_letters) - 1)

/* Lines before an item are numbered, the item itself comes last. */
static bool is_before(struct tui_place a, struct tui_place b)
{
	return a.va < b.va || (a.va == b.va && a.sub - 1 < b.sub - 1);
}

void tui_select_toggle(struct tui *t)
{
	t->is_selecting = !t->is_selecting;
	t->anchor = (struct tui_place){.va = t->listing.va, .sub = t->listing.sub};
	tui_say(t, false, t->is_selecting ? "lines from here: move, then Ctrl+Y copies them, Y as bytes; v or Esc ends" : "no selection");
}

bool tui_select_range(const struct tui *t, struct tui_place *first, struct tui_place *last)
{
	struct tui_place cur = {.va = t->listing.va, .sub = t->listing.sub};
	bool is_up = is_before(cur, t->anchor);
	*first = is_up ? cur : t->anchor;
	*last = is_up ? t->anchor : cur;
	return t->is_selecting;
}

bool tui_select_has(const struct tui *t, uint64_t va, uint32_t sub)
{
	struct tui_place first;
	struct tui_place last;
	struct tui_place at = {.va = va, .sub = sub};
	return tui_select_range(t, &first, &last) && !is_before(at, first) && !is_before(last, at);
}

/* --- hints ------------------------------------------------------------------------------------------------------------- */

static uint32_t hint_cnt(const struct tui *t)
{
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < t->listing.line_cnt; i++)
		cnt += t->listing.lines[i].has_target;
	return cnt;
}

static void hint_text(uint32_t n, uint32_t cnt, char out[3])
{
	bool is_two = cnt > HINT_BASE;
	snprintf(out, 3, "%c%c", hint_letters[is_two ? n / HINT_BASE % HINT_BASE : n % HINT_BASE], is_two ? hint_letters[n % HINT_BASE] : '\0');
}

const char *tui_hint_of(const struct tui *t, uint32_t i, char out[3])
{
	uint32_t n = 0;
	*out = '\0';
	if (t->pending != TUI_HINTS || !t->listing.lines[i].has_target)
		return out;
	for (uint32_t k = 0; k < i; k++)
		n += t->listing.lines[k].has_target;
	hint_text(n, hint_cnt(t), out);
	return out;
}

void tui_hints_begin(struct tui *t)
{
	t->hint = 0;
	if (!hint_cnt(t)) {
		tui_say(t, false, "nothing on the screen leads anywhere");
		return;
	}
	t->pending = TUI_HINTS;
	tui_say(t, false, "go to: type the letters beside a line");
}

void tui_hints_key(struct tui *t, uint32_t key)
{
	char want[3] = {0};
	char got[3];
	if (t->hint)
		want[0] = t->hint;
	want[t->hint != 0] = key < 0x80 ? (char)key : '\0';
	bool is_beginning = false;
	for (uint32_t i = 0; i < t->listing.line_cnt && want[0]; i++) {
		tui_hint_of(t, i, got);
		if (*got && !strcmp(got, want)) {
			t->pending = TUI_NONE;
			tui_go(t, t->listing.lines[i].target);
			return;
		}
		is_beginning = is_beginning || (*got && got[0] == want[0] && !t->hint);
	}
	if (is_beginning) {
		t->hint = want[0];
		return;
	}
	t->pending = TUI_NONE;
	tui_say(t, false, "no line has these letters");
}
