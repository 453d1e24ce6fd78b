/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

#define PLACES_MAX 1000

static struct tui_place here(const struct tui *t)
{
	struct tui_place p = {.bin = t->bin, .view = (uint16_t)t->main_view, .va = t->listing.va, .sub = t->listing.sub,
			      .top_va = t->listing.top_va, .top_sub = t->listing.top_sub};
	if (t->main_view == TUI_V_HEX) {
		p.va = t->hex.va;
		p.top_va = t->hex.top;
	} else if (t->main_view == TUI_V_GRAPH) {
		p.va = t->graph.va;
		p.top_va = tui_graph_spot(t);
		p.sub = t->graph.kind;
		p.top_sub = 0;
		if (t->graph.kind)
			p.top_va = t->graph.root;
	} else if (t->main_view == TUI_V_C) {
		tui_c_spot(t, &p);
	} else if (t->main_view == TUI_V_LIVE) {
		p.event = t->live.event;
	}
	return p;
}

void tui_push_past(struct tui *t)
{
	struct tui_place p = here(t);
	if (t->past.cnt && !memcmp(&t->past.data[t->past.cnt - 1], &p, sizeof(p)))
		return;
	if (t->past.cnt == PLACES_MAX) {
		memmove(t->past.data, t->past.data + 1, (PLACES_MAX - 1) * sizeof(*t->past.data));
		t->past.cnt--;
	}
	/* Without memory the way back is shorter; nothing else depends on it. */
	if (!VEC_PUSH(&t->past, p))
		return;
}

void tui_restore(struct tui *t, const struct tui_place *p)
{
	t->main_view = (enum tui_view)p->view;
	t->focus_functions = false;
	if (p->view == TUI_V_HEX) {
		t->hex.va = p->va;
		t->hex.top = p->top_va;
		t->hex.is_placed = true;
		return;
	}
	if (p->view == TUI_V_GRAPH && p->sub) {
		t->graph.kind = (uint8_t)p->sub;
		t->graph.root = p->top_va;
		t->graph.va = p->va;
		t->graph.is_placed = t->graph.want_centre = true;
		return;
	}
	if (p->view == TUI_V_GRAPH) {
		tui_graph_restore(t, p->va, p->top_va);
		return;
	}
	if (p->view == TUI_V_C) {
		tui_c_restore(t, p);
		return;
	}
	if (p->view == TUI_V_LIVE)
		tui_live_restore(t, p->event);
	t->listing.va = p->va;
	t->listing.sub = p->sub;
	t->listing.top_va = p->top_va;
	t->listing.top_sub = p->top_sub;
	t->listing.off = 0;
	t->listing.hscroll = 0;
	t->listing.is_placed = true;
}

void tui_go(struct tui *t, uint64_t va)
{
	if (!ses_is_mapped(t->snap, va)) {
		tui_say(t, true, "0x%llx is not mapped", (unsigned long long)va);
		return;
	}
	if (t->listing.is_placed)
		tui_push_past(t);
	t->future.cnt = 0;
	t->focus_functions = false;
	bool stays_in_c = t->main_view == TUI_V_C && tui_c_can(t, va);
	if (t->main_view != TUI_V_HEX && !stays_in_c)
		t->main_view = t->graph.is_sticky && tui_graph_can(t, va) ? TUI_V_GRAPH : TUI_V_LISTING;
	tui_view_ops(t->main_view)->go(t, va);
}

void tui_go_line(struct tui *t, uint64_t line)
{
	uint64_t cnt = ses_row_cnt(t->snap);
	uint64_t va;
	enum tui_view v = tui_focus(t);
	if (tui_view_ops(v)->list)
		t->lists[v].cur = line - 1; /* drawing keeps it in the list */
	else if (v == TUI_V_C)
		tui_c_go_line(t, line);
	else if (v != TUI_V_LISTING)
		tui_say(t, false, "lines are counted in the listing, in C and in lists");
	else if (!cnt)
		tui_say(t, false, "lines are counted when the analysis is through");
	else if (ses_va_of_row(t->snap, MIN(line, cnt) - 1, &va))
		tui_go(t, va);
}

void tui_show_view(struct tui *t, enum tui_view v)
{
	uint64_t va = 0;
	bool has_va = t->main_view != v && !tui_view_ops(t->main_view)->list &&
		      tui_view_ops(t->main_view)->va(t, &va);
	t->focus_functions = false;
	if (t->main_view == v)
		return;
	tui_push_past(t);
	t->future.cnt = 0;
	t->main_view = v;
	if (tui_view_ops(v)->go && has_va)
		tui_view_ops(v)->go(t, va);
}

void tui_back(struct tui *t)
{
	if (t->focus_functions) {
		t->focus_functions = false;
		return;
	}
	if (!t->past.cnt) {
		tui_say(t, false, "no place before this one (q leaves)");
		return;
	}
	struct tui_place now = here(t);
	struct tui_place p = VEC_POP(&t->past);
	if (p.bin != t->bin && !tui_show_binary(t, p.bin))
		return;
	if (!VEC_PUSH(&t->future, now))
		t->future.cnt = 0;
	tui_restore(t, &p);
}

void tui_forward(struct tui *t)
{
	if (!t->future.cnt) {
		tui_say(t, false, "no place after this one");
		return;
	}
	struct tui_place p = VEC_POP(&t->future);
	tui_push_past(t);
	if (p.bin != t->bin && !tui_show_binary(t, p.bin))
		return;
	tui_restore(t, &p);
}
