/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/*
 * Keys that wait for another key (marks, counts, the leader) and the command line, where every action has its name.
 */
#define COUNT_MAX 99999999
#define LEADER_NS 250000000u
#define CARD_COLS 44
/* The footer changes while a person looks at a first page, and rests then: who is idle is not woken. */
#define ROTATE_NS 2500000000ull
#define ROTATIONS 3

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
		if (m->bin == t->bin)
			tui_go(t, m->va);
		else
			tui_go_binary(t, m->bin, true, m->va);
	} else if (tui_focus_va(t, &va)) {
		*m = (struct tui_mark){.va = va, .bin = t->bin, .is_set = true};
		tui_say(t, false, "mark %c is %llx ('%c goes there)", (int)key, (unsigned long long)va, (int)key);
	}
}

bool tui_pending_key(struct tui *t, uint32_t key, uint8_t mods)
{
	bool is_plain = !(mods & (TERM_CTRL | TERM_ALT));
	if (t->pending == TUI_HINTS) {
		tui_hints_key(t, is_plain ? key : TERM_KEY_ESC);
		return true;
	}
	if (t->pending) {
		marked_key(t, is_plain ? key : TERM_KEY_ESC);
		return true;
	}
	bool is_digit = is_plain && !t->prefix.key && ((key >= '1' && key <= '9') || (key == '0' && t->count));
	if (!is_digit)
		return false;
	t->count = MIN(t->count * 10 + (int)(key - '0'), COUNT_MAX);
	tui_say(t, false, "%d", t->count);
	return true;
}

/* --- two keys -------------------------------------------------------------------------------------------------------------- */

void tui_prefix_begin(struct tui *t, struct tui_stroke s, uint64_t now)
{
	t->prefix = s;
	t->is_card = false;
	t->card_ns = now + LEADER_NS;
}

void tui_tick(struct tui *t, uint64_t now)
{
	tui_probes_tick(t, now);
	if (t->offer_ns && now >= t->offer_ns)
		tui_offer_end(t);
	if (t->rotate_ns && !t->has_acted && now >= t->rotate_ns) {
		t->rotate_ns = ++t->hint_set < ROTATIONS ? now + ROTATE_NS : 0;
		t->is_dirty = true;
	}
	if (!t->prefix.key || t->is_card || now < t->card_ns)
		return;
	t->is_card = true;
	t->is_dirty = true;
}

static void earliest(uint64_t *due, uint64_t ns)
{
	if (ns && (!*due || ns < *due))
		*due = ns;
}

uint64_t tui_tick_due(const struct tui *t)
{
	uint64_t due = 0;
	earliest(&due, t->offer_ns);
	earliest(&due, t->probes_due_ns);
	earliest(&due, t->has_acted ? 0 : t->rotate_ns);
	earliest(&due, t->prefix.key && !t->is_card ? t->card_ns : 0);
	return due;
}

static const char *prefix_name(const struct tui *t, char *out)
{
	bool is_char = t->prefix.key < TERM_KEY_ESC;
	out[is_char ? utf8_put(t->prefix.key, out) : 0] = '\0';
	return out;
}

/* In the footer: the keys that may follow. */
void tui_prefix_draw(struct tui *t, struct cells_pen *p)
{
	char name[8];
	enum tui_action a;
	const char *key;
	uint16_t where = tui_view_ops(tui_focus(t))->where;
	cells_printf(p, " %s then:", prefix_name(t, name));
	for (unsigned i = 0; (key = tui_keymap_after(t->keys, t->prefix, where, i, &a)); i++)
		cells_printf(p, " %s", key);
	cells_str(p, "  (Esc no)");
}

/* Every action behind it with its key, in as many columns as fit. */
void tui_card_draw(struct tui *t)
{
	enum tui_action a;
	const char *key;
	char title[24];
	char name[8];
	unsigned cnt = 0;
	uint16_t where = tui_view_ops(tui_focus(t))->where;
	while (tui_keymap_after(t->keys, t->prefix, where, cnt, &a))
		cnt++;
	int columns = MAX(1, MIN(t->grid.w / CARD_COLS, 2));
	int rows = MIN(((int)cnt + columns - 1) / columns, t->grid.h - 5);
	int w = MIN(columns * CARD_COLS + 2, t->grid.w);
	if (rows < 1 || w < 10)
		return;
	struct cells_rect r = {t->grid.w - w, t->grid.h - 4 - rows, w, rows + 2};
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	cells_fill(&t->grid, r, st);
	snprintf(title, sizeof(title), "%s then", prefix_name(t, name));
	cells_box(&t->grid, r, title, st);
	for (int i = 0; i < rows * columns && (key = tui_keymap_after(t->keys, t->prefix, where, (unsigned)i, &a)); i++) {
		int width = (r.w - 2) / columns;
		struct cells_rect at = {r.x + 2 + i / rows * width, r.y + 1, width - 2, rows};
		struct cells_pen p = tui_pen(t, at, i % rows, ROLE_KEY, ROLE_BG_DIALOG);
		p.st.attr = CELLS_BOLD;
		cells_str(&p, key);
		p.st.attr = 0;
		p.st.fg = ROLE_TEXT;
		cells_printf(&p, "  %s", tui_action_info(a)->text);
	}
	t->scroll_hint.w = 0;
}
