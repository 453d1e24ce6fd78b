/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/*
 * The symbol palette: functions, other symbols and strings that have what is typed in their name, in one list; when
 * nothing has it as it stands, functions that have its letters in this order. And the peek: the lines of a place
 * without going there.
 */
#define SYMBOL_MAX 500 /* rows; the list says when there are more */
#define PEEK_LINES 60
#define SCAN_MAX 20000u

static struct ses_text text_of(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

static bool add(struct tui_page *p, uint64_t va, const char *kind, struct ses_text name)
{
	char *addr = arena_printf(&p->arena, "%llx", (unsigned long long)va);
	if (p->cnt == SYMBOL_MAX || !addr)
		return false;
	struct tui_row *r = &p->rows[p->cnt++];
	r->va = va;
	r->has_va = true;
	r->col[0] = name;
	r->col[1] = text_of(kind);
	r->col[2] = text_of(addr);
	return true;
}

static struct err *add_functions(const struct tui_query *q, const char *filter, struct tui_page *ret)
{
	struct ses_func *f;
	struct ses_page page = {.filter = filter, .limit = SYMBOL_MAX};
	struct err *e = ses_functions(q->snap, q->call, &page, &ret->arena, &f);
	if (e)
		return e;
	ret->has_more |= page.total > page.cnt;
	for (uint32_t i = 0; i < page.cnt; i++) {
		if (!add(ret, f[i].addr, "function", f[i].demangled.len ? f[i].demangled : f[i].name))
			break;
	}
	return NULL;
}

/* Symbols that are no functions; those are there already. */
static struct err *add_symbols(const struct tui_query *q, struct tui_page *ret)
{
	for (uint64_t off = 0; off < SCAN_MAX && ret->cnt < SYMBOL_MAX;) {
		struct ses_import *m;
		struct ses_page page = {.filter = q->page.filter, .offset = off, .limit = 1000};
		struct err *e = ses_symbols(q->snap, q->call, &page, &ret->arena, &m);
		if (e)
			return e;
		for (uint32_t i = 0; i < page.cnt; i++) {
			bool is_func = !strcmp(m[i].kind, "func") || !strcmp(m[i].kind, "ifunc");
			if (m[i].has_addr && !is_func && !add(ret, m[i].addr, m[i].kind, m[i].demangled.len ? m[i].demangled : m[i].name))
				break;
		}
		off += page.cnt;
		if (!page.cnt || off >= page.total)
			return NULL;
	}
	ret->has_more = true;
	return NULL;
}

static struct err *add_strings(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_string *s;
	struct ses_page page = {.filter = q->page.filter, .limit = SYMBOL_MAX, .min_len = 4};
	struct err *e = ses_strings(q->snap, q->call, &page, &ret->arena, &s);
	if (e)
		return e;
	ret->has_more |= page.total > page.cnt;
	for (uint32_t i = 0; i < page.cnt; i++) {
		if (!add(ret, s[i].addr, "string", s[i].text))
			break;
	}
	return NULL;
}

/* "abc" as "*a*b*c*"; a filter that is a glob already stays one. */
const char *tui_letters_in_order(struct arena *a, const char *s)
{
	size_t len = strlen(s);
	char *out = strpbrk(s, "*?[") ? NULL : arena_alloc(a, 2 * len + 2);
	char *to = out;
	if (!out)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (((uint8_t)s[i] & 0xc0) != 0x80)
			*to++ = '*';
		*to++ = s[i];
	}
	*to++ = '*';
	*to = '\0';
	return out;
}

static struct err *symbols_fetch(const struct tui_query *q, struct tui_page *ret)
{
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, SYMBOL_MAX);
	if (!ret->rows)
		return &err_nomem;
	struct err *e = add_functions(q, q->page.filter, ret);
	if (!e && q->page.filter)
		e = add_symbols(q, ret);
	if (!e && q->page.filter)
		e = add_strings(q, ret);
	const char *fuzzy = !e && q->page.filter && !ret->cnt ? tui_letters_in_order(&ret->arena, q->page.filter) : NULL;
	if (fuzzy)
		e = add_functions(q, fuzzy, ret);
	ret->has_more |= ret->cnt == SYMBOL_MAX;
	ret->total = ret->cnt;
	uint64_t skip = MIN(q->page.offset, ret->cnt);
	ret->rows += skip;
	ret->cnt = (uint32_t)MIN(ret->cnt - skip, q->page.limit);
	return e;
}

const struct tui_list_ops tui_symbols_palette_list = {
	.title = "Functions, symbols and strings",
	.empty = "nothing has a name",
	.columns = {{.title = "name", .role = ROLE_NAME},
		    {.title = "kind", .width = 9, .role = ROLE_DIM},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true}},
	.column_cnt = 3,
	.is_typed_in = true,
	.fetch = symbols_fetch,
};

void tui_symbols_open(struct tui *t)
{
	*t->symbols.filter = '\0';
	tui_list_restart(&t->symbols);
	tui_overlay_push(t, TUI_O_SYMBOLS);
}

static struct err *peek_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_head *h;
	uint32_t cnt = 0;
	struct ses_at at = {.va = q->va, .sub = 0, .count = PEEK_LINES};
	struct err *e = ses_heads(q->snap, q->call, &at, &ret->arena, &h, &cnt);
	if (e)
		return e;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	ret->total = cnt;
	for (uint32_t i = (uint32_t)MIN(q->page.offset, cnt); i < cnt && ret->cnt < q->page.limit; i++) {
		struct tui_row *r = &ret->rows[ret->cnt++];
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)h[i].va);
		if (!addr)
			return &err_nomem;
		r->va = h[i].va;
		r->has_va = true;
		r->col[0] = text_of(addr);
		r->col[1] = h[i].text;
		r->col[2] = h[i].comment;
	}
	return NULL;
}

const struct tui_list_ops tui_peek_list = {
	.title = "Peek",
	.empty = "nothing is there",
	.columns = {{.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "text", .role = ROLE_TEXT},
		    {.title = "comment", .width = 32, .role = ROLE_COMMENT}},
	.column_cnt = 3,
	.is_ordered_by_va = true,
	.fetch = peek_fetch,
};

void tui_peek_open(struct tui *t)
{
	struct ses_func f;
	uint64_t va;
	if (!tui_listing_target(t, &va)) {
		tui_say(t, false, "nothing on this line leads anywhere");
		return;
	}
	struct ses_text name = ses_name_at(t->snap, va, &t->frame_arena);
	if (!name.len)
		name = ses_where(t->snap, va, &t->frame_arena);
	int n = snprintf(t->peek_title, sizeof(t->peek_title), "%.*s (%llx)", (int)MIN(name.len, 60), name.s, (unsigned long long)va);
	if (ses_func_at(t->snap, va, &t->frame_arena, &f) && n > 0 && (size_t)n < sizeof(t->peek_title))
		snprintf(t->peek_title + n, sizeof(t->peek_title) - (size_t)n, ": %s%llu bytes, %u callers%s",
			 f.addr == va ? "function, " : "in a function of ", (unsigned long long)f.size, f.callers,
			 f.flags & SES_FN_NORETURN ? ", does not return" : "");
	t->peek.va = va;
	*t->peek.filter = '\0';
	tui_list_restart(&t->peek);
	tui_overlay_push(t, TUI_O_PEEK);
}
