/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/*
 * Keys that wait for another key (marks, counts, the leader) and the command line, where every action has its name.
 */
#define COUNT_MAX 9999
#define LEADER_NS 250000000u

/* Whether `text` begins the action's name; '-' and '_' are one, case does not matter. */
static bool begins(const char *text, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i] == '-' ? '_' : text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i];
		if (!name[i] || c != name[i])
			return false;
	}
	return true;
}

/* The action meant: by its whole name, else the only one that begins so. *ret_cnt: how many begin so. */
static enum tui_action find_action(const char *text, size_t len, int *ret_cnt)
{
	enum tui_action found = TUI_NONE;
	*ret_cnt = 0;
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT && len; a++) {
		const char *name = tui_action_info((enum tui_action)a)->name;
		if (!begins(text, len, name))
			continue;
		if (strlen(name) == len) {
			*ret_cnt = 1;
			return (enum tui_action)a;
		}
		found = (enum tui_action)a;
		(*ret_cnt)++;
	}
	return *ret_cnt == 1 ? found : TUI_NONE;
}

void tui_command(struct tui *t, const char *text)
{
	int cnt = 0;
	uint64_t va;
	text += strspn(text, " :");
	size_t len = strcspn(text, " ");
	bool is_goto = (len == 1 && *text == 'g') || (len == 4 && !strncmp(text, "goto", 4));
	const char *rest = text + len + strspn(text + len, " ");
	if (!*text)
		return;
	if (len == 1 && *text == 'q') {
		tui_act(t, TUI_QUIT);
		return;
	}
	enum tui_action a = *rest ? TUI_NONE : find_action(text, len, &cnt);
	if (a != TUI_NONE) {
		tui_act(t, a);
		return;
	}
	struct err *e = ses_resolve(t->snap, is_goto && *rest ? rest : text, &va);
	if (!e) {
		tui_go(t, va);
		return;
	}
	err_free(e);
	if (*rest || !cnt)
		tui_say(t, true, "%s: no such action, name or address (Tab completes, Ctrl+P lists)", text);
	else
		tui_say(t, true, "%s: %d actions begin so (Tab completes)", text, cnt);
}

size_t tui_command_complete(const char *text, char *out, size_t cap)
{
	const char *first = NULL;
	size_t same = 0;
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		const char *name = tui_action_info((enum tui_action)a)->name;
		if (!begins(text, strlen(text), name))
			continue;
		size_t n = 0;
		while (first && n < same && first[n] == name[n])
			n++;
		same = first ? n : strlen(name);
		first = first ? first : name;
	}
	if (!first || same >= cap)
		return 0;
	for (size_t i = 0; i < same; i++)
		out[i] = first[i] == '_' ? '-' : first[i] >= 'A' && first[i] <= 'Z' ? (char)(first[i] + 32) : first[i];
	out[same] = '\0';
	return same;
}

/* --- marks ------------------------------------------------------------------------------------------------------------ */

static struct tui_mark *mark_of(struct tui *t, uint32_t key)
{
	if (key >= 'a' && key <= 'z')
		return &t->marks[key - 'a'];
	return key >= 'A' && key <= 'Z' ? &t->marks[26 + key - 'A'] : NULL;
}

static void marked_key(struct tui *t, uint32_t key)
{
	bool is_set = t->pending == TUI_MARK;
	struct tui_mark *m = mark_of(t, key);
	uint64_t va;
	t->pending = TUI_NONE;
	if (key == TERM_KEY_ESC)
		return;
	if (!m) {
		tui_say(t, true, "a mark is a letter");
	} else if (!is_set && !m->is_set) {
		tui_say(t, true, "mark %c is not set (m%c sets it)", (int)key, (int)key);
	} else if (!is_set) {
		tui_go(t, m->va);
	} else if (tui_focus_va(t, &va)) {
		*m = (struct tui_mark){.va = va, .is_set = true};
		tui_say(t, false, "mark %c is %llx ('%c goes there)", (int)key, (unsigned long long)va, (int)key);
	}
}

bool tui_pending_key(struct tui *t, uint32_t key, uint8_t mods)
{
	bool is_plain = !(mods & (TERM_CTRL | TERM_ALT));
	if (t->pending) {
		marked_key(t, is_plain ? key : TERM_KEY_ESC);
		return true;
	}
	bool is_digit = is_plain && !t->is_leader && ((key >= '1' && key <= '9') || (key == '0' && t->count));
	if (!is_digit)
		return false;
	t->count = MIN(t->count * 10 + (int)(key - '0'), COUNT_MAX);
	tui_say(t, false, "%d", t->count);
	return true;
}

/* --- the leader's card -------------------------------------------------------------------------------------------------- */

void tui_leader_begin(struct tui *t, uint64_t now)
{
	t->is_leader = true;
	t->is_card = false;
	t->card_ns = now + LEADER_NS;
}

void tui_tick(struct tui *t, uint64_t now)
{
	if (!t->is_leader || t->is_card || now < t->card_ns)
		return;
	t->is_card = true;
	t->is_dirty = true;
}

/* Every action behind the leader with its letter. */
void tui_card_draw(struct tui *t)
{
	int cnt = 0;
	int y = 0;
	enum tui_action rows[TUI_ACTION_COUNT];
	const char *letters[TUI_ACTION_COUNT];
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		const char *at = strchr(tui_action_info((enum tui_action)a)->keys, ',');
		if (at && at[1] && at[1] != ' ') {
			letters[cnt] = at + 1;
			rows[cnt++] = (enum tui_action)a;
		}
	}
	int w = MIN(44, t->grid.w);
	int h = MIN(cnt + 2, t->grid.h - 3);
	if (h < 3 || w < 10)
		return;
	struct cells_rect r = {t->grid.w - w, t->grid.h - 2 - h, w, h};
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	cells_fill(&t->grid, r, st);
	cells_box(&t->grid, r, ", then", st);
	for (; y < h - 2; y++) {
		struct cells_pen p = tui_pen(t, (struct cells_rect){r.x + 2, r.y + 1, r.w - 4, 1}, y, ROLE_KEY, ROLE_BG_DIALOG);
		p.st.attr = CELLS_BOLD;
		cells_text(&p, letters[y], 1);
		p.st.attr = 0;
		p.st.fg = ROLE_TEXT;
		cells_printf(&p, "  %s", tui_action_info(rows[y])->text);
	}
	t->scroll_hint.w = 0;
}
