/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

#define MIN_LEN 4

static struct err *strings_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_string *s;
	struct ses_page page = q->page;
	page.min_len = MIN_LEN;
	struct err *e = ses_strings(q->snap, q->call, &page, &ret->arena, &s);
	if (e)
		return e;
	uint32_t cnt = page.cnt;
	ret->total = page.total;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		struct tui_row *r = &ret->rows[i];
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)s[i].addr);
		char *len = arena_printf(&ret->arena, "%u", s[i].len);
		if (!addr || !len)
			return &err_nomem;
		r->va = s[i].addr;
		r->has_va = true;
		r->col[0] = (struct ses_text){addr, (uint32_t)strlen(addr)};
		r->col[1] = (struct ses_text){len, (uint32_t)strlen(len)};
		r->col[2] = (struct ses_text){s[i].encoding, (uint32_t)strlen(s[i].encoding)};
		r->col[3] = s[i].text;
	}
	ret->cnt = cnt;
	return NULL;
}

static const struct tui_list_ops strings_list = {
	.title = "Strings",
	.empty = "no strings",
	.columns = {{.title = "address", .sort = "addr", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "length", .sort = "len", .width = 6, .role = ROLE_DIM, .is_right = true},
		    {.title = "encoding", .sort = "encoding", .width = 8, .role = ROLE_DIM},
		    {.title = "text", .sort = "text", .role = ROLE_STRING}},
	.column_cnt = 4,
	.is_ordered_by_va = true,
	.fetch = strings_fetch,
};

const struct tui_view_ops tui_strings_ops = {.name = "strings", .where = TUI_IN_LIST, .list = &strings_list};
