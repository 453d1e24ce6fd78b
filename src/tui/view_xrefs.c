/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/* The references dialog. */
static struct err *xrefs_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_xref *x;
	bool is_from = q->kind;
	struct ses_xref_ask ask = {.va = q->va, .from = is_from, .whole_func = is_from};
	struct ses_page page = q->page;
	struct err *e = ses_xrefs(q->snap, q->call, &ask, &page, &ret->arena, &x);
	if (e)
		return e;
	uint32_t cnt = page.cnt;
	ret->total = page.total;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		struct tui_row *r = &ret->rows[i];
		r->va = is_from ? x[i].to : x[i].from;
		r->has_va = true;
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)r->va);
		if (!addr)
			return &err_nomem;
		r->col[0] = (struct ses_text){x[i].kind, (uint32_t)strlen(x[i].kind)};
		r->col[1] = (struct ses_text){addr, (uint32_t)strlen(addr)};
		r->col[2] = x[i].func;
		r->col[3] = x[i].text;
	}
	ret->cnt = cnt;
	return q->project && !is_from ? tui_far_rows(q, page.total, ret) : NULL;
}

const struct tui_list_ops tui_xrefs_list = {
	.title = "References",
	.empty = "no references",
	.columns = {{.title = "kind", .width = 6, .role = ROLE_KEY},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "function", .width = 28, .role = ROLE_NAME},
		    {.title = "text", .role = ROLE_TEXT}},
	.column_cnt = 4,
	.fetch = xrefs_fetch,
};

/* What the references are asked of: the row of a list, what the cursor stands on in the listing, a byte. Within a
 * function's body that nothing else refers to, the function. */
static bool subject(struct tui *t, uint64_t *ret)
{
	enum tui_view v = tui_focus(t);
	struct ses_func f;
	uint64_t va;
	if (tui_view_ops(v)->list) {
		const struct tui_row *row = tui_list_row(t, &t->lists[v]);
		if (!row || !row->has_va)
			return false;
		*ret = row->va;
		return true;
	}
	if (tui_operand(t, ret))
		return true;
	if (!tui_view_ops(v)->va(t, &va))
		return false;
	*ret = va;
	bool is_code = v == TUI_V_LISTING || v == TUI_V_GRAPH;
	if (is_code && !ses_name_at(t->snap, va, &t->frame_arena).len && ses_func_at(t->snap, va, &t->frame_arena, &f))
		*ret = f.addr;
	return true;
}

/* The row nearest to where one is: mostly the reference one came by. */
static void select_nearest(struct tui *t, uint64_t va)
{
	struct tui_list *l = &t->xrefs;
	uint64_t least = UINT64_MAX;
	if (!tui_list_row(t, l) || l->page_off)
		return;
	for (uint32_t i = 0; i < l->page.cnt; i++) {
		uint64_t at = l->page.rows[i].va;
		uint64_t away = at > va ? at - va : va - at;
		if (away < least) {
			least = away;
			l->cur = i;
		}
	}
}

void tui_xrefs_open(struct tui *t, bool is_from)
{
	uint64_t here;
	bool has_here = tui_focus_va(t, &here);
	t->is_xrefs_here = false;
	struct ses_func f;
	uint64_t va;
	if (is_from ? !tui_focus_va(t, &va) : !subject(t, &va)) {
		tui_say(t, true, "this row has no address");
		return;
	}
	if (is_from && ses_func_at(t->snap, va, &t->frame_arena, &f))
		va = f.addr;
	struct ses_text name = ses_name_at(t->snap, va, &t->frame_arena);
	if (!name.len)
		name = ses_where(t->snap, va, &t->frame_arena);
	snprintf(t->xrefs_title, sizeof(t->xrefs_title), "References %s %.*s (%llx)", is_from ? "from" : "to",
		 (int)MIN(name.len, 60), name.s, (unsigned long long)va);
	t->xrefs.va = va;
	t->xrefs.kind = is_from;
	*t->xrefs.filter = '\0';
	tui_list_restart(&t->xrefs);
	if (has_here && !is_from)
		select_nearest(t, here);
	tui_overlay_push(t, TUI_O_XREFS);
}
