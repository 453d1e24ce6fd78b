/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

/* Places somebody marked in the journal, with what they said of them. */
static struct err *bookmarks_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_fact *f;
	struct ses_page page = q->page;
	struct err *e = ses_facts(q->snap, q->call, "bookmark", &page, &ret->arena, &f);
	if (e)
		return e;
	ret->total = page.total;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)page.cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < page.cnt; i++) {
		struct tui_row *r = &ret->rows[ret->cnt++];
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)f[i].addr);
		char *rev = arena_printf(&ret->arena, "%llu", (unsigned long long)f[i].rev);
		if (!addr || !rev)
			return &err_nomem;
		r->va = f[i].addr;
		r->has_va = true;
		r->col[0] = (struct ses_text){addr, (uint32_t)strlen(addr)};
		r->col[1] = ses_where(q->snap, f[i].addr, &ret->arena);
		r->col[2] = f[i].value;
		r->col[3] = (struct ses_text){rev, (uint32_t)strlen(rev)};
	}
	return NULL;
}

static const struct tui_list_ops bookmarks_list = {
	.title = "Bookmarks",
	.empty = "no bookmarks (,B sets one)",
	.columns = {{.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "where", .width = 30, .role = ROLE_NAME},
		    {.title = "text", .role = ROLE_COMMENT},
		    {.title = "rev", .width = 6, .role = ROLE_DIM, .is_right = true}},
	.column_cnt = 4,
	.is_ordered_by_va = true,
	.fetch = bookmarks_fetch,
};

static bool bookmarks_act(struct tui *t, enum tui_action a)
{
	const struct tui_row *row = a == TUI_LIST_DELETE ? tui_list_row(t, &t->lists[TUI_V_BOOKMARKS]) : NULL;
	if (row)
		tui_edit_submit(t, "bookmark", "", row->va, "");
	return row != NULL;
}

const struct tui_view_ops tui_bookmarks_ops = {
	.name = "bookmarks", .where = TUI_IN_LIST | TUI_IN_MARKS, .list = &bookmarks_list, .act = bookmarks_act};
