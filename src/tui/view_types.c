/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "session/ops.h"

#include <stdio.h>
#include <string.h>

/* The C types of the target: a list, and each of them as text in an editor. */
enum { COL_NAME, COL_SIZE, COL_KIND, COL_SOURCE, COL_TEXT, COL_COUNT };

static struct err *ask(const struct tui_query *q, const char *filter, struct tui_page *page, struct ops_rows *ret)
{
	char offset[24];
	char limit[24];
	snprintf(offset, sizeof(offset), "%llu", (unsigned long long)q->page.offset);
	snprintf(limit, sizeof(limit), "%u", q->page.limit);
	const char *pairs[11] = {"offset", offset, "limit", limit};
	size_t n = 4;
	if (filter) {
		pairs[n++] = "filter";
		pairs[n++] = filter;
	}
	if (*q->what) {
		pairs[n++] = "source";
		pairs[n++] = q->what;
	}
	if (q->page.sort) {
		pairs[n++] = "sort";
		pairs[n++] = q->page.sort;
	}
	return ops_call(q->snap, q->call, "types", pairs, &page->arena, ret);
}

/* What has the filter in its name; when nothing has, what has its letters in this order. */
static struct err *types_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ops_rows rows;
	struct err *e = ask(q, q->page.filter, ret, &rows);
	const char *fuzzy = !e && q->page.filter && !rows.total ? tui_letters_in_order(&ret->arena, q->page.filter) : NULL;
	if (fuzzy)
		e = ask(q, fuzzy, ret, &rows);
	if (e)
		return e;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)rows.row_cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	ret->total = rows.total;
	for (uint32_t i = 0; i < rows.row_cnt; i++) {
		const struct ses_text *cell = rows.cells + (size_t)i * rows.column_cnt;
		struct tui_row *r = &ret->rows[ret->cnt++];
		r->tag = arena_strndup(&ret->arena, cell[COL_NAME].s, cell[COL_NAME].len);
		if (!r->tag)
			return &err_nomem;
		for (int c = 0; c < COL_COUNT; c++)
			r->col[c] = cell[c];
	}
	return NULL;
}

static const struct tui_list_ops types_list = {
	.title = "Types",
	.empty = "no types (Ctrl+N makes one)",
	.columns = {{.title = "name", .sort = "name", .width = 32, .role = ROLE_NAME},
		    {.title = "size", .sort = "size", .width = 7, .role = ROLE_NUMBER, .is_right = true},
		    {.title = "kind", .width = 8, .role = ROLE_DIM},
		    {.title = "source", .width = 8, .role = ROLE_DIM},
		    {.title = "text", .role = ROLE_TEXT}},
	.column_cnt = COL_COUNT,
	.fetch = types_fetch,
};

/* The C text of a declared type, in the frame's arena; null when nobody declared it. */
static const char *text_of(struct tui *t, const char *name)
{
	struct ses_fact *f;
	struct ses_page page = {.filter = name, .limit = UINT32_MAX};
	struct ses_call call = tui_call(t, 0);
	struct err *e = ses_facts(t->snap, &call, "declare", &page, &t->frame_arena, &f);
	for (uint32_t i = 0; !e && i < page.cnt; i++) {
		if (strlen(name) == f[i].sub.len && !memcmp(name, f[i].sub.s, f[i].sub.len))
			return f[i].value.s;
	}
	err_free(e);
	return NULL;
}

/* A type that nobody declared: its text, whose declaration stands before what debug information or the system say. */
static void open_copy(struct tui *t, const struct tui_row *row)
{
	char title[300];
	struct ses_text shown = row->col[COL_TEXT];
	char *text = arena_strndup(&t->frame_arena, shown.s, shown.len);
	char *to = text;
	if (!text) {
		tui_say_err(t, &err_nomem);
		return;
	}
	/* A cell is one line; C has no other backslash here. */
	for (const char *from = text; *from; from++) {
		bool is_escape = *from == '\\' && (from[1] == 'n' || from[1] == 't');
		*to++ = !is_escape ? *from : *++from == 'n' ? '\n' : '\t';
	}
	*to = '\0';
	snprintf(title, sizeof(title), "%s, from %.*s: Ctrl+S declares a copy of your own", row->tag, (int)row->col[COL_SOURCE].len,
		 row->col[COL_SOURCE].s);
	tui_editor_open(t, title, "", text);
}

/* The list of one source, then of the next, then of all. */
static void next_source(struct tui *t)
{
	static const char *const sources[] = {"", "user", "header", "dwarf", "builtin"};
	struct tui_list *l = &t->lists[TUI_V_TYPES];
	size_t i = 0;
	while (strcmp(sources[i], l->what))
		i++;
	snprintf(l->what, sizeof(l->what), "%s", sources[(i + 1) % ARRAY_LEN(sources)]);
	tui_list_restart(l);
}

static void open_type(struct tui *t, const struct tui_row *row)
{
	char title[300];
	const char *text = text_of(t, row->tag);
	snprintf(title, sizeof(title), "%s", row->tag);
	if (text)
		tui_editor_open(t, title, row->tag, text);
	else
		open_copy(t, row);
}

static void undeclare(struct tui *t)
{
	tui_edit_declare(t, "", t->type_name);
}

static void copy_text(struct tui *t, const char *name)
{
	const char *text = text_of(t, name);
	if (text)
		tui_copy_text(t, text, strlen(text));
	else
		tui_say(t, true, "nothing here to copy");
}

static bool types_act(struct tui *t, enum tui_action a)
{
	if (a == TUI_TYPE_NEW) {
		tui_editor_open(t, "New declaration", "", "struct name {\n\t\n};\n");
		t->editor.pos = strlen("struct ");
		return true;
	}
	if (a == TUI_TYPE_SOURCE) {
		next_source(t);
		return true;
	}
	if (a != TUI_FOLLOW && a != TUI_LIST_DELETE && a != TUI_COPY_LINE)
		return false;
	const struct tui_row *row = tui_list_row(t, &t->lists[TUI_V_TYPES]);
	if (!row)
		return a != TUI_FOLLOW; /* it is opened when it is there */
	if (a == TUI_FOLLOW) {
		open_type(t, row);
	} else if (a == TUI_COPY_LINE) {
		copy_text(t, row->tag);
	} else {
		snprintf(t->type_name, sizeof(t->type_name), "%s", row->tag);
		tui_confirm(t, undeclare, "Take the declaration of %s away?", row->tag);
	}
	return true;
}

const struct tui_view_ops tui_types_ops = {.name = "types", .where = TUI_IN_LIST | TUI_IN_TYPES, .list = &types_list, .act = types_act};
