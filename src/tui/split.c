/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

/*
 * Two views of one place side by side: the listing, and right of it the C of the function, or the graph where there is no C or it
 * was asked for. The one with the keys leads, the other goes to the leader's address whenever that changes, and by nothing else; so
 * each can be scrolled on its own. The lines that belong together have a mark: the instructions of a statement, the statement's
 * lines, the instructions of a block.
 */
#define SPLIT_MIN_W 100

static bool is_half(enum tui_view v)
{
	return v == TUI_V_LISTING || v == TUI_V_GRAPH || v == TUI_V_C;
}

enum tui_view tui_split_other(const struct tui *t)
{
	return t->main_view != TUI_V_LISTING ? TUI_V_LISTING : t->split_with == TUI_V_GRAPH ? TUI_V_GRAPH : TUI_V_C;
}

bool tui_split_fits(const struct tui *t, int w)
{
	return t->is_split && is_half(t->main_view) && w >= SPLIT_MIN_W;
}

void tui_split_toggle(struct tui *t)
{
	uint64_t va;
	if (t->is_split) {
		t->is_split = false;
		return;
	}
	if (t->grid.w < SPLIT_MIN_W) {
		tui_say(t, true, "a split needs %d columns, here are %d", SPLIT_MIN_W, t->grid.w);
		return;
	}
	bool has_va = tui_view_ops(t->main_view)->va && tui_view_ops(t->main_view)->va(t, &va);
	if (!is_half(t->main_view))
		tui_show_view(t, TUI_V_LISTING);
	t->focus_functions = false;
	t->split_with = t->main_view == TUI_V_GRAPH || !ses_can_decompile(t->snap) ? TUI_V_GRAPH : TUI_V_C;
	t->is_split = true;
	t->has_split_va = false;
	if (has_va)
		tui_say(t, false, "Tab changes the side that leads, s ends the split");
}

void tui_split_swap(struct tui *t)
{
	struct cells_rect r = t->main_rect;
	if (tui_split_other(t) == TUI_V_C && !tui_c_can(t, t->listing.va)) {
		tui_say(t, true, "C is of a function, and here is none");
		return;
	}
	t->main_rect = t->split_rect;
	t->split_rect = r;
	t->main_view = tui_split_other(t);
	t->graph.is_sticky = t->main_view == TUI_V_GRAPH;
	/* The new leader is where the old one led it. */
	t->has_split_va = tui_view_ops(t->main_view)->va(t, &t->split_va);
}

/* Takes the other half to where the leader is, when that is news. */
static void lead_other(struct tui *t)
{
	uint64_t va;
	if (!tui_view_ops(t->main_view)->va(t, &va) || (t->has_split_va && va == t->split_va))
		return;
	t->split_va = va;
	t->has_split_va = true;
	tui_view_ops(tui_split_other(t))->go(t, va);
}

void tui_split_draw(struct tui *t, bool is_focused)
{
	struct cells_rect r = t->main_rect;
	struct cells_rect left = {r.x, r.y, (r.w + 1) / 2, r.h};
	struct cells_rect right = {left.x + left.w, r.y, r.w - left.w, r.h};
	bool leads_left = t->main_view == TUI_V_LISTING;
	t->main_rect = leads_left ? left : right;
	t->split_rect = leads_left ? right : left;
	/* A leader without a place takes one before the other is led to it. */
	if (!t->listing.is_placed) {
		t->listing.va = t->info.main_va;
		t->listing.is_placed = t->listing.want_context = true;
	}
	if (t->main_view != TUI_V_LISTING)
		t->split_with = t->main_view;
	lead_other(t);
	tui_view_ops(tui_split_other(t))->draw(t, t->split_rect, false);
	tui_view_ops(t->main_view)->draw(t, t->main_rect, is_focused);
}
