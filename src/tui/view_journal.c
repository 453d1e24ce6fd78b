/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/glob.h"

#include <string.h>
#include <time.h>

/* The journal, the newest entry first: who changed what, when; and taking back what one sees. */
#define VALUE_MAX 400  /* bytes shown of a value */
#define SCAN_STEP 2000 /* entries read at once by a filter */

static struct ses_text text_of(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

static struct ses_text change_of(struct arena *a, const struct ses_entry *j)
{
	const char *arrow = j->has_before && j->has_after ? " -> " : j->has_before ? " taken away" : "";
	int before = (int)MIN(j->before.len, VALUE_MAX);
	char *s = arena_printf(a, "%.*s%s%.*s", before, j->before.s, arrow, (int)MIN(j->after.len, VALUE_MAX), j->after.s);
	return s ? text_of(s) : text_of("");
}

static struct ses_text time_of(struct arena *a, uint64_t ns)
{
	char text[32];
	time_t at = (time_t)(ns / 1000000000u);
	struct tm tm;
	if (!localtime_r(&at, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm))
		return text_of("");
	char *copy = arena_strndup(a, text, strlen(text));
	return text_of(copy ? copy : "");
}

static bool put_row(struct tui_page *ret, const struct ses_entry *j)
{
	struct tui_row *r = &ret->rows[ret->cnt++];
	struct arena *a = &ret->arena;
	bool is_edit = !strcmp(j->step, "edit");
	const char *author = j->author ? j->author : "";
	const char *kind = j->author_kind && strcmp(j->author_kind, "human") ? j->author_kind : NULL;
	char *what = arena_printf(a, "%s%s%s%s%s", is_edit ? "" : j->step, is_edit ? "" : " ", j->op, *j->sub ? " " : "", j->sub);
	char *rev = arena_printf(a, "%llu", (unsigned long long)j->rev);
	const char *addr = j->has_addr ? arena_printf(a, "%llx", (unsigned long long)j->addr) : "";
	char *who = arena_printf(a, kind ? "%s (%s)" : "%s", author, kind);
	r->tag = arena_strndup(a, author, strlen(author));
	if (!what || !rev || !addr || !who || !r->tag)
		return false;
	r->va = j->addr;
	r->has_va = j->has_addr;
	r->id = j->rev;
	r->mark = j->undone_by ? 'u' : 0;
	r->col[0] = text_of(rev);
	r->col[1] = text_of(who);
	r->col[2] = text_of(what);
	r->col[3] = text_of(addr);
	r->col[4] = change_of(a, j);
	r->col[5] = time_of(a, j->time_ns);
	return true;
}

static bool has(const char *filter, struct ses_text t)
{
	return glob_match(filter, strlen(filter), t.s, t.len, true);
}

static bool matches(const char *filter, const struct ses_entry *j)
{
	return !filter || has(filter, text_of(j->op)) || has(filter, text_of(j->sub)) || has(filter, text_of(j->author ? j->author : "")) ||
	       has(filter, j->before) || has(filter, j->after);
}

/* Entries first .. last (numbers from 1), from the last to the first, those that match. */
static struct err *take(const struct tui_query *q, uint64_t first, uint64_t last, struct tui_page *ret)
{
	struct arena temp = {0};
	struct ses_entry *j;
	uint32_t cnt;
	uint64_t total;
	struct ses_journal_ask ask = {.first_seq = first, .limit = (uint32_t)(last - first + 1)};
	struct err *e = ses_journal(q->ses, &ask, &temp, &j, &cnt, &total);
	for (uint32_t i = e ? 0 : cnt; i-- && !e;) {
		if (!matches(q->page.filter, &j[i]))
			continue;
		bool is_before = q->page.filter && ret->total < q->page.offset;
		ret->total++;
		if (!is_before && ret->cnt < q->page.limit && !put_row(ret, &j[i]))
			e = &err_nomem;
	}
	arena_fini(&temp);
	return e;
}

/* Without a filter a page is read where it is; with one the whole journal is, in steps. */
static struct err *journal_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct arena temp = {0};
	struct ses_entry *j;
	uint32_t cnt;
	uint64_t total = 0;
	struct ses_journal_ask ask = {.first_seq = 1, .limit = 1};
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)q->page.limit + 1);
	struct err *e = ret->rows ? ses_journal(q->ses, &ask, &temp, &j, &cnt, &total) : &err_nomem;
	arena_fini(&temp);
	uint64_t last = q->page.filter ? total : total - MIN(q->page.offset, total);
	uint64_t first = q->page.filter || last <= q->page.limit ? 1 : last - q->page.limit + 1;
	while (last >= first && last && !e) {
		uint64_t from = last - first >= SCAN_STEP ? last - SCAN_STEP + 1 : first;
		if (q->call && q->call->cancel && atomic_load(q->call->cancel))
			return err_new(ERR_CANCELLED, "cancelled");
		e = take(q, from, last, ret);
		last = from - 1;
	}
	if (!q->page.filter)
		ret->total = total;
	return e;
}

static const struct tui_list_ops journal_list = {
	.title = "Journal (u: was taken back)",
	.empty = "nothing was edited yet",
	.columns = {{.title = "rev", .width = 5, .role = ROLE_DIM, .is_right = true},
		    {.title = "who", .width = 13, .role = ROLE_NAME},
		    {.title = "what", .width = 14, .role = ROLE_KEY},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "change", .role = ROLE_TEXT},
		    {.title = "when", .width = 16, .role = ROLE_DIM}},
	.column_cnt = 6,
	.is_newest_first = true,
	.fetch = journal_fetch,
};

static bool journal_act(struct tui *t, enum tui_action a)
{
	if (a != TUI_UNDO_ENTRY && a != TUI_UNDO_AUTHOR)
		return false;
	const struct tui_row *row = tui_list_row(t, &t->lists[TUI_V_JOURNAL]);
	if (!row)
		return true;
	if (a == TUI_UNDO_ENTRY)
		tui_edit_submit(t, "undo", "", row->id, "");
	else
		tui_edit_submit(t, "undo", "", 0, row->tag);
	return true;
}

const struct tui_view_ops tui_journal_ops = {
	.name = "journal", .where = TUI_IN_LIST | TUI_IN_JOURNAL, .list = &journal_list, .act = journal_act};
