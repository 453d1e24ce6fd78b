/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

/* Functions: name, size and address; a thunk is marked '.', one that does not return '!'. */
static struct err *functions_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_func *f;
	struct ses_page page = q->page;
	struct err *e = ses_functions(q->snap, q->call, &page, &ret->arena, &f);
	if (e)
		return e;
	uint32_t cnt = page.cnt;
	ret->total = page.total;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		struct tui_row *r = &ret->rows[i];
		char *size = arena_printf(&ret->arena, "%llu", (unsigned long long)f[i].size);
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)f[i].addr);
		if (!size || !addr)
			return &err_nomem;
		r->va = f[i].addr;
		r->has_va = true;
		r->mark = f[i].flags & SES_FN_NORETURN ? '!' : f[i].flags & SES_FN_THUNK ? '.' : 0;
		r->col[0] = f[i].demangled.len ? f[i].demangled : f[i].name;
		r->col[1] = (struct ses_text){size, (uint32_t)__builtin_strlen(size)};
		r->col[2] = (struct ses_text){addr, (uint32_t)__builtin_strlen(addr)};
	}
	ret->cnt = cnt;
	return NULL;
}

static const struct tui_list_ops functions_list = {
	.title = "Functions",
	.empty = "no functions",
	.columns = {{.title = "name", .sort = "name", .role = ROLE_NAME},
		    {.title = "size", .sort = "size", .width = 7, .role = ROLE_DIM, .is_right = true},
		    {.title = "address", .sort = "addr", .width = 9, .role = ROLE_ADDR, .is_right = true}},
	.column_cnt = 3,
	.is_ordered_by_va = true,
	.fetch = functions_fetch,
};

const struct tui_view_ops tui_functions_ops = {.name = "functions", .where = TUI_IN_LIST, .list = &functions_list};
