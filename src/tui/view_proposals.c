/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/glob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * What agents want changed and nobody has decided yet: a list, and below it the one under the cursor in full, beside the code it is
 * about as it would be.
 */
#define VALUE_MAX 4000     /* bytes shown of a value */
#define PROPOSALS_MAX 100000
#define PREVIEW_MIN_H 16   /* lower panes are the list alone */
#define VALUE_LINES 6      /* of the preview for each of before and after */

enum { COL_ID, COL_WHO, COL_WHAT, COL_ADDR, COL_CHANGE, COL_NOTE, COL_BEFORE, COL_AFTER };

static struct ses_text text_of(const char *s)
{
	return s ? (struct ses_text){s, (uint32_t)strlen(s)} : (struct ses_text){"", 0};
}

struct err *tui_proposals_count(struct ses *s, bool is_ever, uint64_t *ret)
{
	const struct ses_proposals_ask ask = {.has_decided = is_ever, .limit = 0};
	struct arena a = {0};
	struct ses_proposal *p;
	uint32_t cnt;
	struct err *e = ses_proposals(s, &ask, &a, &p, &cnt, ret);
	arena_fini(&a);
	return e;
}

/* --- the list --------------------------------------------------------------------------------------------------------- */

/* What it says now and what it is to say, in one line. */
static struct ses_text change_of(struct arena *a, const struct ses_proposal *p)
{
	int before = p->has_before ? (int)MIN(p->before.len, VALUE_MAX) : 0;
	int after = p->has_after ? (int)MIN(p->after.len, VALUE_MAX) : 0;
	const char *arrow = p->has_before && p->has_after ? " -> " : p->has_before ? " taken away" : "";
	char *line = arena_printf(a, "%.*s%s%.*s", before, p->before.s, arrow, after, p->after.s), *to = line;
	for (const char *from = line; line && *from; from++) {
		bool is_blank = strchr(" \t\n", *from) != NULL;
		if (!is_blank || to == line || to[-1] != ' ')
			*to++ = is_blank ? ' ' : *from;
	}
	if (line)
		*to = '\0';
	return text_of(line);
}

static struct ses_text value_of(struct arena *a, bool has, struct ses_text t)
{
	uint32_t len = MIN(t.len, VALUE_MAX);
	char *s = has ? arena_strndup(a, t.s, len) : NULL;
	return s ? (struct ses_text){s, len} : (struct ses_text){NULL, 0};
}

static bool is_stale(const struct ses_proposal *p)
{
	return !strcmp(p->state, "stale");
}

static bool put_row(struct tui_page *ret, const struct ses_proposal *p)
{
	struct tui_row *r = &ret->rows[ret->cnt];
	struct arena *a = &ret->arena;
	const char *kind = strcmp(p->author_kind, "agent") ? p->author_kind : NULL;
	const char *note = arena_printf(a, "%s%s%s", is_stale(p) ? "stale: what it changes was changed since" : "",
					is_stale(p) && *p->note ? "; " : "", p->note);
	r->tag = arena_strndup(a, p->op, strlen(p->op));
	r->col[COL_ID] = text_of(arena_printf(a, "%llu", (unsigned long long)p->id));
	r->col[COL_WHO] = text_of(arena_printf(a, kind ? "%s (%s)" : "%s", p->author, kind));
	r->col[COL_WHAT] = text_of(arena_printf(a, "%s%s%s", p->op, *p->sub ? " " : "", p->sub));
	r->col[COL_ADDR] = text_of(p->has_addr ? arena_printf(a, "%llx", (unsigned long long)p->addr) : "");
	r->col[COL_CHANGE] = change_of(a, p);
	r->col[COL_NOTE] = text_of(note);
	r->col[COL_BEFORE] = value_of(a, p->has_before, p->before);
	r->col[COL_AFTER] = value_of(a, p->has_after, p->after);
	r->va = p->addr;
	r->has_va = p->has_addr;
	r->id = p->id;
	r->mark = is_stale(p) ? '!' : 0;
	ret->cnt++;
	return note && r->tag;
}

static bool has(const char *filter, struct ses_text t)
{
	return glob_match(filter, strlen(filter), t.s, t.len, true);
}

static bool matches(const char *filter, const struct ses_proposal *p)
{
	return !filter || has(filter, text_of(p->op)) || has(filter, text_of(p->sub)) || has(filter, text_of(p->author)) ||
	       has(filter, text_of(p->note)) || has(filter, text_of(p->state)) || (p->has_before && has(filter, p->before)) ||
	       (p->has_after && has(filter, p->after));
}

/* Without a filter a page is read where it is, with one all of them are. */
static struct err *proposals_fetch(const struct tui_query *q, struct tui_page *ret)
{
	const char *filter = q->page.filter;
	const struct ses_proposals_ask ask = {.offset = filter ? 0 : q->page.offset,
					      .limit = filter ? PROPOSALS_MAX : MIN(q->page.limit, PROPOSALS_MAX)};
	struct arena temp = {0};
	struct ses_proposal *p = NULL;
	uint32_t cnt = 0;
	struct err *e = ses_proposals(q->ses, &ask, &temp, &p, &cnt, &ret->total);
	ret->rows = e ? NULL : ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)MIN(cnt, q->page.limit) + 1);
	if (!e && !ret->rows)
		e = &err_nomem;
	uint64_t found = 0;
	for (uint32_t i = 0; i < cnt && !e; i++) {
		if (!matches(filter, &p[i]))
			continue;
		found++;
		if ((!filter || found > q->page.offset) && ret->cnt < q->page.limit && !put_row(ret, &p[i]))
			e = &err_nomem;
	}
	if (filter)
		ret->total = found;
	arena_fini(&temp);
	return e;
}

static const struct tui_list_ops proposals_list = {
	.title = "Proposals (!: stale)",
	.empty = "no agent has proposed anything that waits (scry mcp FILE --propose)",
	.columns = {{.title = "id", .width = 5, .role = ROLE_DIM, .is_right = true},
		    {.title = "who", .width = 13, .role = ROLE_NAME},
		    {.title = "what", .width = 14, .role = ROLE_KEY},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "change", .role = ROLE_TEXT},
		    {.title = "note", .width = 30, .role = ROLE_COMMENT}},
	.column_cnt = 6,
	.is_ordered_by_id = true,
	.fetch = proposals_fetch,
};

/* --- the one under the cursor ------------------------------------------------------------------------------------------ */

/* Text with its tabs as blanks. */
static void draw_tabbed(struct cells_pen *p, const char *s, uint32_t len)
{
	while (len) {
		const char *tab = memchr(s, '\t', len);
		uint32_t n = tab ? (uint32_t)(tab - s) : len;
		cells_text(p, s, n);
		if (tab)
			cells_str(p, "    ");
		s += n + (tab != NULL);
		len -= n + (tab != NULL);
	}
}

/* A value line by line, each behind its sign; the rows it took. */
static int draw_value(struct tui *t, struct cells_rect r, char sign, struct ses_text v, enum term_role fg)
{
	int row = 0;
	uint32_t at = 0;
	while (v.s && row < r.h && (at < v.len || !row)) {
		const char *end = memchr(v.s + at, '\n', v.len - at);
		uint32_t len = end ? (uint32_t)(end - v.s) - at : v.len - at;
		struct cells_pen p = tui_pen(t, r, row++, ROLE_KEY, ROLE_BG);
		bool is_cut = row == r.h && at + len + 1 < v.len;
		cells_printf(&p, " %c ", sign);
		p.st.fg = (uint8_t)fg;
		draw_tabbed(&p, v.s + at, len);
		if (is_cut)
			cells_str(&p, " \xe2\x80\xa6");
		at += len + 1;
	}
	return row;
}

/* A line of the listing as it would be: its name or comment, when the proposal is about that. */
static void draw_code_line(struct tui *t, struct cells_rect r, const struct tui_row *row, const struct ses_head *h, bool *is_put)
{
	struct cells_pen p = tui_pen(t, r, 0, ROLE_ADDR, ROLE_BG);
	bool is_here = h->va == row->va && !*is_put;
	struct ses_text what = row->col[COL_WHAT], after = row->col[COL_AFTER];
	bool is_name = is_here && !strcmp(row->tag, "rename") && h->kind == SES_HEAD_LABEL;
	bool is_comment = is_here && !h->sub && what.len == 12 && !memcmp(what.s, "comment line", 12);
	cells_printf(&p, " %08llx ", (unsigned long long)h->va);
	p.st.fg = ROLE_NAME;
	if (is_name && after.s) {
		cells_text(&p, after.s, after.len);
		cells_str(&p, ": *");
	} else {
		p.st.fg = ROLE_TEXT;
		tui_line_spans(&p, h, (struct ses_text){"", 0}, ROLE_BG);
	}
	struct ses_text comment = is_comment && after.s ? after : is_comment ? (struct ses_text){"", 0} : h->comment;
	p.st.fg = ROLE_COMMENT;
	if (comment.len) {
		cells_str(&p, "  ; ");
		cells_text(&p, comment.s, comment.len);
		cells_str(&p, is_comment ? " *" : "");
	}
	*is_put |= is_name || is_comment;
}

static void draw_code(struct tui *t, struct cells_rect r, const struct tui_row *row)
{
	struct ses_head *h;
	uint32_t cnt = 0;
	bool is_put = false;
	struct ses_call call = tui_call(t, 8);
	struct ses_at at = {.va = row->va, .count = (uint32_t)r.h};
	struct err *e = r.h > 0 ? ses_heads(t->snap, &call, &at, &t->frame_arena, &h, &cnt) : NULL;
	for (uint32_t i = 0; !e && i < cnt && i < (uint32_t)r.h; i++)
		draw_code_line(t, (struct cells_rect){r.x, r.y + (int)i, r.w, 1}, row, &h[i], &is_put);
	err_free(e);
}

static void draw_preview(struct tui *t, struct cells_rect r, const struct tui_row *row)
{
	struct cells_pen p = tui_pen(t, r, 0, ROLE_TITLE, ROLE_BG_DIALOG);
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	cells_fill(&t->grid, (struct cells_rect){r.x, r.y, r.w, 1}, p.st);
	cells_printf(&p, "  %llu: ", (unsigned long long)row->id);
	cells_text(&p, row->col[COL_WHAT].s, row->col[COL_WHAT].len);
	if (row->has_va) {
		struct ses_text where = ses_where(t->snap, row->va, &t->frame_arena);
		cells_str(&p, " at ");
		cells_text(&p, where.s, MIN(where.len, 60));
	}
	cells_str(&p, ", by ");
	cells_text(&p, row->col[COL_WHO].s, row->col[COL_WHO].len);
	int at = 1;
	if (row->col[COL_NOTE].len && at < r.h) {
		p = tui_pen(t, r, at++, row->mark ? ROLE_WARN : ROLE_COMMENT, ROLE_BG);
		cells_str(&p, row->mark ? " ! " : "   ");
		cells_text(&p, row->col[COL_NOTE].s, row->col[COL_NOTE].len);
	}
	at += draw_value(t, (struct cells_rect){r.x, r.y + at, r.w, MIN(r.h - at, VALUE_LINES)}, '-', row->col[COL_BEFORE], ROLE_DIM);
	at += draw_value(t, (struct cells_rect){r.x, r.y + at, r.w, MIN(r.h - at, VALUE_LINES)}, '+', row->col[COL_AFTER], ROLE_TEXT);
	if (row->has_va)
		draw_code(t, (struct cells_rect){r.x, r.y + at, r.w, r.h - at}, row);
}

static void proposals_draw(struct tui *t, struct cells_rect r, bool is_focused)
{
	struct tui_list *l = &t->lists[TUI_V_PROPOSALS];
	struct cells_rect below = {r.x, r.y, r.w, r.h >= PREVIEW_MIN_H && r.w >= 20 ? r.h * 2 / 5 : 0};
	below.y += r.h - below.h;
	r.h -= below.h;
	tui_list_draw(t, l, r, is_focused);
	const struct tui_row *row = below.h ? tui_list_row(t, l) : NULL;
	if (row)
		draw_preview(t, below, row);
}

/* --- deciding ---------------------------------------------------------------------------------------------------------- */

/* Those that are marked, else the one under the cursor; the marks are gone then. */
static void decide(struct tui *t, const char *op)
{
	struct tui_list *l = &t->lists[TUI_V_PROPOSALS];
	const struct tui_row *row = tui_list_row(t, l);
	size_t cnt = l->marked.cnt ? l->marked.cnt : row != NULL;
	const char **words = ARENA_ARRAY(&t->frame_arena, const char *, 2 * cnt + 1);
	bool is_made = words != NULL;
	for (size_t i = 0; i < cnt && is_made; i++) {
		uint64_t id = l->marked.cnt ? l->marked.data[i] : row->id;
		words[2 * i] = "id";
		words[2 * i + 1] = arena_printf(&t->frame_arena, "%llu", (unsigned long long)id);
		is_made = words[2 * i + 1];
	}
	if (!is_made)
		tui_say_err(t, &err_nomem);
	else if (cnt)
		tui_edit_words(t, op, words);
	l->marked.cnt = 0;
}

static void refuse(struct tui *t)
{
	decide(t, "refuse");
}

static void mark(struct tui *t)
{
	struct tui_list *l = &t->lists[TUI_V_PROPOSALS];
	const struct tui_row *row = tui_list_row(t, l);
	if (row && !tui_list_mark(l, row->id))
		tui_say_err(t, &err_nomem);
	tui_list_act(t, l, TUI_DOWN);
}

/* All that the filter leaves; when they are all marked none of them. */
static void mark_all(struct tui *t)
{
	struct tui_list *l = &t->lists[TUI_V_PROPOSALS];
	struct tui_page all = {0};
	struct ses_call call = tui_call(t, 0);
	struct tui_query q = {.call = &call, .page = {.filter = *l->filter ? l->filter : NULL, .limit = PROPOSALS_MAX}};
	uint32_t marked = 0;
	tui_query_bind(t, &q);
	struct err *e = proposals_fetch(&q, &all);
	for (uint32_t i = 0; !e && i < all.cnt; i++)
		marked += tui_list_is_marked(l, all.rows[i].id);
	for (uint32_t i = 0; !e && i < all.cnt; i++) {
		bool is_to_change = marked == all.cnt || !tui_list_is_marked(l, all.rows[i].id);
		if (is_to_change && !tui_list_mark(l, all.rows[i].id))
			e = &err_nomem;
	}
	arena_fini(&all.arena);
	if (e)
		tui_say_err(t, e);
}

static bool proposals_act(struct tui *t, enum tui_action a)
{
	struct tui_list *l = &t->lists[TUI_V_PROPOSALS];
	switch ((int)a) {
	case TUI_ACCEPT:
		decide(t, "accept");
		return true;
	case TUI_REFUSE:
		/* Nothing takes a refusal back. */
		if (l->marked.cnt > 1)
			tui_confirm(t, refuse, "Put the %zu marked proposals away for good?", l->marked.cnt);
		else
			decide(t, "refuse");
		return true;
	case TUI_PROPOSAL_MARK:
		mark(t);
		return true;
	case TUI_PROPOSAL_MARK_ALL:
		mark_all(t);
		return true;
	default:
		return false;
	}
}

const struct tui_view_ops tui_proposals_ops = {
	.name = "proposals", .where = TUI_IN_LIST | TUI_IN_PROPOSALS, .list = &proposals_list, .draw = proposals_draw, .act = proposals_act};
