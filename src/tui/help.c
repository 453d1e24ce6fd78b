/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/* The help card, made from the action list: two columns where there is room, scrolled where there is not. */
#define ENTRY_COLS 62
#define HELP_HERE ((enum tui_group)(TUI_GROUP_COUNT + 1))
#define HELP_LINE_MAX (TUI_ACTION_COUNT + 2 * TUI_GROUP_COUNT + 1)

struct help_line {
	enum tui_action action; /* TUI_NONE: heading of `group`, or blank when group is TUI_GROUP_COUNT */
	enum tui_group group;
};

/* Whether an action is one of this view rather than of all. */
static bool is_of_view(uint16_t where, enum tui_action a)
{
	const struct tui_action_info *info = tui_action_info(a);
	return info->where != TUI_IN_ANY && info->where & where && info->group != TUI_GROUP_LATER;
}

/* The keys of the view with the focus first, then the others by what they are for. */
static int all_lines(const struct tui *t, struct help_line *ret)
{
	uint16_t where = tui_view_ops(tui_focus(t))->where;
	int n = 0;
	ret[n++] = (struct help_line){TUI_NONE, HELP_HERE};
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		if (is_of_view(where, (enum tui_action)a))
			ret[n++] = (struct help_line){(enum tui_action)a, HELP_HERE};
	}
	for (int g = 0; g < TUI_GROUP_COUNT; g++) {
		ret[n++] = (struct help_line){TUI_NONE, TUI_GROUP_COUNT};
		ret[n++] = (struct help_line){TUI_NONE, (enum tui_group)g};
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
			if (tui_action_info((enum tui_action)a)->group == g && !is_of_view(where, (enum tui_action)a))
				ret[n++] = (struct help_line){(enum tui_action)a, (enum tui_group)g};
		}
	}
	return n;
}

int tui_help_line_cnt(const struct tui *t)
{
	struct help_line lines[HELP_LINE_MAX];
	return all_lines(t, lines);
}

static const char *where_text(uint16_t where)
{
	if (where == TUI_IN_ANY)
		return "";
	if (where == TUI_IN_LIST)
		return " (in lists)";
	if (where == TUI_IN_JOURNAL)
		return " (in the journal)";
	if (where == TUI_IN_PROPOSALS)
		return " (in the proposals)";
	if (where == TUI_IN_TYPES)
		return " (in the types)";
	if (where == TUI_IN_OWNED)
		return " (in types and bookmarks)";
	if (where == TUI_IN_LISTING)
		return " (in the listing)";
	if (where == TUI_IN_LINES)
		return " (in listing and hex)";
	if (where == TUI_IN_GRAPH)
		return " (in the graph)";
	if (where == TUI_IN_CODE)
		return " (in listing, C and graph)";
	if (where == TUI_IN_TEXT)
		return " (in listing and C)";
	if (where == TUI_IN_PLACES)
		return " (in listing, C and hex)";
	return " (in listing, C, graph and hex)";
}

static void draw_entry(struct tui *t, struct cells_rect r, const struct help_line *line)
{
	struct cells_pen p = tui_pen(t, r, 0, ROLE_TITLE, ROLE_BG_DIALOG);
	if (line->action == TUI_NONE) {
		p.st.attr = CELLS_BOLD;
		if (line->group < TUI_GROUP_COUNT)
			cells_str(&p, tui_group_name(line->group));
		else if (line->group == HELP_HERE)
			cells_printf(&p, "In this view (%s)", tui_view_ops(tui_focus(t))->name);
		return;
	}
	const struct tui_action_info *info = tui_action_info(line->action);
	p.st.fg = ROLE_KEY;
	cells_str(&p, "  ");
	const char *keys = tui_keymap_keys(t->keys, line->action);
	cells_str(&p, *keys ? keys : "(palette)");
	cells_pad_to(&p, 23);
	p.st.fg = ROLE_TEXT;
	cells_str(&p, " ");
	cells_str(&p, info->text);
	p.st.fg = ROLE_DIM;
	cells_str(&p, where_text(info->where));
}

void tui_help_draw(struct tui *t, struct cells_rect r)
{
	struct help_line lines[HELP_LINE_MAX];
	int cnt = all_lines(t, lines);
	int columns = MAX(1, r.w / ENTRY_COLS);
	int rows = (cnt + columns - 1) / columns;
	int width = r.w / columns;
	t->help_top = MAX(0, MIN(t->help_top, rows - r.h));
	for (int y = 0; y < r.h && t->help_top + y < rows; y++) {
		for (int c = 0; c < columns; c++) {
			int i = c * rows + t->help_top + y;
			if (i < cnt)
				draw_entry(t, (struct cells_rect){r.x + c * width, r.y + y, width - 1, 1}, &lines[i]);
		}
	}
	if (rows > r.h)
		tui_draw_bar(t, (struct cells_rect){r.x + r.w - 1, r.y, 1, r.h}, (uint64_t)t->help_top, (uint64_t)r.h,
			     (uint64_t)rows);
}
