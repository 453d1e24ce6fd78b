/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

/* Imports, exports and all symbols: one shape, three sources. */
typedef struct err *source_fn(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			      struct ses_import **ret);

static struct err *fetch(const struct tui_query *q, struct tui_page *ret, source_fn *source)
{
	struct ses_import *m;
	struct ses_page page = q->page;
	struct err *e = source(q->snap, q->call, &page, &ret->arena, &m);
	if (e)
		return e;
	uint32_t cnt = page.cnt;
	ret->total = page.total;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		struct tui_row *r = &ret->rows[i];
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)m[i].addr);
		if (!addr)
			return &err_nomem;
		r->va = m[i].addr;
		r->has_va = m[i].has_addr;
		if (m[i].has_addr)
			r->col[0] = (struct ses_text){addr, (uint32_t)strlen(addr)};
		r->col[1] = m[i].demangled.len ? m[i].demangled : m[i].name;
		r->col[2] = (struct ses_text){m[i].kind, (uint32_t)strlen(m[i].kind)};
		r->col[3] = m[i].version;
		r->col[4] = m[i].library;
	}
	ret->cnt = cnt;
	return NULL;
}

static struct err *imports_fetch(const struct tui_query *q, struct tui_page *ret)
{
	return fetch(q, ret, ses_imports);
}

static struct err *exports_fetch(const struct tui_query *q, struct tui_page *ret)
{
	return fetch(q, ret, ses_exports);
}

static struct err *symbols_fetch(const struct tui_query *q, struct tui_page *ret)
{
	return fetch(q, ret, ses_symbols);
}

#define SYMBOL_COLUMNS                                                                                     \
	.columns = {{.title = "address", .sort = "addr", .width = 12, .role = ROLE_ADDR, .is_right = true}, \
		    {.title = "name", .sort = "name", .role = ROLE_NAME},                                   \
		    {.title = "kind", .sort = "kind", .width = 8, .role = ROLE_DIM},                        \
		    {.title = "version", .width = 14, .role = ROLE_DIM},                                    \
		    {.title = "library", .width = 16, .role = ROLE_TEXT}},                                  \
	.column_cnt = 5

static const struct tui_list_ops imports_list = {
	.title = "Imports", .empty = "no imports", SYMBOL_COLUMNS, .fetch = imports_fetch};
static const struct tui_list_ops exports_list = {
	.title = "Exports", .empty = "no exports", SYMBOL_COLUMNS, .fetch = exports_fetch};
static const struct tui_list_ops symbols_list = {
	.title = "Symbols", .empty = "no symbols", SYMBOL_COLUMNS, .fetch = symbols_fetch};

const struct tui_view_ops tui_imports_ops = {.name = "imports", .where = TUI_IN_LIST, .list = &imports_list};
const struct tui_view_ops tui_exports_ops = {.name = "exports", .where = TUI_IN_LIST, .list = &exports_list};
const struct tui_view_ops tui_symbols_ops = {.name = "symbols", .where = TUI_IN_LIST, .list = &symbols_list};
