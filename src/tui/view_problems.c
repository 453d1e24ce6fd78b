/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

static struct err *problems_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_problem *p;
	struct ses_page page = q->page;
	struct err *e = ses_problems(q->snap, &page, &ret->arena, &p);
	if (e)
		return e;
	uint32_t cnt = page.cnt;
	ret->total = page.total;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		struct tui_row *r = &ret->rows[i];
		char *addr = p[i].has_addr ? arena_printf(&ret->arena, "%llx", (unsigned long long)p[i].addr) : NULL;
		r->va = p[i].addr;
		r->has_va = p[i].has_addr;
		r->mark = p[i].severity[0] == 'e' ? '!' : 0;
		r->col[0] = (struct ses_text){p[i].severity, (uint32_t)strlen(p[i].severity)};
		r->col[1] = (struct ses_text){addr ? addr : "", addr ? (uint32_t)strlen(addr) : 0};
		r->col[2] = p[i].what;
		r->col[3] = p[i].why;
	}
	ret->cnt = cnt;
	return NULL;
}

static const struct tui_list_ops problems_list = {
	.title = "Problems",
	.empty = "no problems were found",
	.columns = {{.title = "severity", .width = 8, .role = ROLE_WARN},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "what", .width = 28, .role = ROLE_TEXT},
		    {.title = "why", .role = ROLE_TEXT}},
	.column_cnt = 4,
	.fetch = problems_fetch,
};

const struct tui_view_ops tui_problems_ops = {.name = "problems", .where = TUI_IN_LIST, .list = &problems_list};
