/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A list of any length, of which one page is held. A page is asked for within a frame's time; what does not come in
 * that time is fetched by a job while the rows show as not there yet. The list is stayed in by address when the
 * snapshot changes.
 */
#define PAGE_MIN 64
#define FRAME_MS 8

struct list_job {
	struct tui_job job;
	struct tui_list *list;
	const struct tui_list_ops *ops;
	struct tui_query query;
	char filter[TUI_FILTER_MAX];
	char what[TUI_FILTER_MAX];
	char sort[32];
	struct tui_page page;
};

static void page_fini(struct tui_page *p)
{
	arena_fini(&p->arena);
	err_free(p->err);
	*p = (struct tui_page){0};
}

void tui_list_init(struct tui_list *l, const struct tui_list_ops *ops)
{
	memset(l, 0, sizeof(*l));
	l->ops = ops;
}

static void drop_page(struct tui_list *l)
{
	tui_job_cancel(l->job);
	l->job = NULL;
	page_fini(&l->page);
	l->has_page = false;
}

void tui_list_fini(struct tui_list *l)
{
	drop_page(l);
	VEC_FREE(&l->marked);
}

/* The first mark that is not below an id. */
static size_t find_mark(const struct tui_list *l, uint64_t id)
{
	size_t lo = 0, hi = l->marked.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (l->marked.data[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool tui_list_is_marked(const struct tui_list *l, uint64_t id)
{
	size_t at = find_mark(l, id);
	return at < l->marked.cnt && l->marked.data[at] == id;
}

bool tui_list_mark(struct tui_list *l, uint64_t id)
{
	size_t at = find_mark(l, id);
	bool is_marked = tui_list_is_marked(l, id);
	uint64_t *to = l->marked.data + at;
	if (is_marked) {
		memmove(to, to + 1, (--l->marked.cnt - at) * sizeof(*to));
		return true;
	}
	if (!VEC_PUSH(&l->marked, id))
		return false;
	to = l->marked.data + at;
	memmove(to + 1, to, (l->marked.cnt - 1 - at) * sizeof(*to));
	*to = id;
	return true;
}

void tui_list_restart(struct tui_list *l)
{
	drop_page(l);
	l->cur = l->top = 0;
}

void tui_list_refresh(struct tui_list *l)
{
	drop_page(l);
}

void tui_list_set_filter(struct tui_list *l, const char *filter)
{
	if (strcmp(l->filter, filter) == 0)
		return;
	snprintf(l->filter, sizeof(l->filter), "%s", filter);
	tui_list_restart(l);
}

static const char *sort_key(const struct tui_list *l, char *out, size_t len)
{
	int col = abs(l->sort) - 1;
	if (col < 0 || col >= l->ops->column_cnt || !l->ops->columns[col].sort)
		return NULL;
	snprintf(out, len, "%s%s", l->sort < 0 ? "-" : "", l->ops->columns[col].sort);
	return out;
}

static struct tui_query make_query(const struct tui_list *l, char *sort, size_t sort_len)
{
	return (struct tui_query){
		.page = {.filter = *l->filter ? l->filter : NULL, .sort = sort_key(l, sort, sort_len)},
		.va = l->va,
		.kind = l->kind,
		.what = l->what,
	};
}

static void job_run(struct tui_job *j)
{
	struct list_job *lj = (struct list_job *)j;
	lj->query.snap = j->snap;
	lj->query.call = &j->call;
	lj->page.err = lj->ops->fetch(&lj->query, &lj->page);
}

static void job_done(struct tui *t, struct tui_job *j)
{
	struct list_job *lj = (struct list_job *)j;
	struct tui_list *l = lj->list;
	if (l->job != j)
		return;
	l->job = NULL;
	t->is_dirty = true;
	if (j->snap != t->snap) /* it will be asked for again */
		return;
	page_fini(&l->page);
	l->page = lj->page;
	lj->page = (struct tui_page){0};
	l->page_off = lj->query.page.offset;
	l->page_limit = lj->query.page.limit;
	l->page_snap = j->snap;
	l->has_page = true;
	if (t->opening != l)
		return;
	t->opening = NULL;
	if (tui_overlay_list(t) == l)
		tui_overlay_accept(t);
	else if (!t->overlay_cnt && l == &t->lists[tui_focus(t)])
		tui_open_row(t);
}

static void job_fini(struct tui_job *j)
{
	page_fini(&((struct list_job *)j)->page);
}

static void start_job(struct tui *t, struct tui_list *l, uint64_t off, uint32_t limit)
{
	struct list_job *lj = calloc(1, sizeof(*lj));
	if (!lj)
		return;
	tui_job_cancel(l->job);
	snprintf(lj->filter, sizeof(lj->filter), "%s", l->filter);
	snprintf(lj->what, sizeof(lj->what), "%s", l->what);
	lj->query = make_query(l, lj->sort, sizeof(lj->sort));
	lj->query.ses = t->ses;
	lj->query.keys = t->keys;
	lj->query.project = t->project;
	lj->query.bin = t->bin;
	lj->query.found = NULL; /* read in our thread alone */
	lj->query.live = NULL;
	lj->query.tui = NULL;
	lj->query.page.filter = *lj->filter ? lj->filter : NULL;
	lj->query.what = lj->what;
	lj->query.page.offset = off;
	lj->query.page.limit = limit;
	lj->list = l;
	lj->ops = l->ops;
	lj->job.run = job_run;
	lj->job.done = job_done;
	lj->job.fini = job_fini;
	l->job = &lj->job;
	l->job_off = off;
	l->job_limit = limit;
	tui_job_start(t, &lj->job);
}

/* Whether the page holds every row of [first, first + cnt) that exists. */
static bool page_covers(const struct tui *t, const struct tui_list *l, uint64_t first, uint32_t cnt)
{
	if (!l->has_page || l->page_snap != t->snap)
		return false;
	uint64_t end = MIN(first + cnt, l->page.total);
	return l->page.err || first >= end || (first >= l->page_off && end <= l->page_off + l->page.cnt);
}

void tui_query_bind(struct tui *t, struct tui_query *q)
{
	q->snap = t->snap;
	q->ses = t->ses;
	q->keys = t->keys;
	q->said = &t->said;
	q->recent = t->recent;
	q->project = t->project;
	q->bin = t->bin;
	q->found = t->found;
	q->live = t->live.trace;
	q->tui = t;
	q->live_id = t->live.event;
}

static void need(struct tui *t, struct tui_list *l, uint64_t first, uint32_t cnt)
{
	char sort[32];
	if (page_covers(t, l, first, cnt))
		return;
	uint32_t limit = MAX(cnt * 3, PAGE_MIN);
	uint64_t off = first > cnt ? first - cnt : 0;
	if (l->job && l->job_off <= first && l->job_off + l->job_limit >= first + cnt)
		return;
	struct ses_call call = tui_call(t, FRAME_MS);
	struct tui_query q = make_query(l, sort, sizeof(sort));
	struct tui_page p = {0};
	tui_query_bind(t, &q);
	q.call = &call;
	q.page.offset = off;
	q.page.limit = limit;
	p.err = l->ops->fetch(&q, &p);
	if (p.err && p.err->kind == ERR_TIMEOUT) {
		page_fini(&p);
		start_job(t, l, off, limit);
		return;
	}
	tui_job_cancel(l->job);
	l->job = NULL;
	page_fini(&l->page);
	l->page = p;
	l->page_off = off;
	l->page_limit = limit;
	l->page_snap = t->snap;
	l->has_page = true;
}

static const struct tui_row *row_at(const struct tui_list *l, uint64_t i)
{
	if (!l->has_page || i < l->page_off || i - l->page_off >= l->page.cnt)
		return NULL;
	return &l->page.rows[i - l->page_off];
}

const struct tui_row *tui_list_row(struct tui *t, struct tui_list *l)
{
	need(t, l, l->cur, 1);
	return l->page_snap == t->snap ? row_at(l, l->cur) : NULL;
}

static uint64_t key_of(const struct tui_list *l, const struct tui_row *r)
{
	return l->ops->is_ordered_by_id ? r->id : r->va;
}

/* First row whose address (or id) is not below this, by asking for single rows. */
static uint64_t find_row(struct tui *t, struct tui_list *l, uint64_t key)
{
	uint64_t lo = 0;
	uint64_t hi = l->page.total;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		need(t, l, mid, 1);
		const struct tui_row *r = row_at(l, mid);
		if (!r)
			return l->cur;
		if (key_of(l, r) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void tui_list_snap_changed(struct tui *t, struct tui_list *l)
{
	const struct tui_row *r = l->has_page ? row_at(l, l->cur) : NULL;
	bool can_find = r && ((r->has_va && l->ops->is_ordered_by_va) || l->ops->is_ordered_by_id) && !l->sort;
	uint64_t key = can_find ? key_of(l, r) : 0;
	uint64_t shown = l->cur - l->top;
	uint64_t total = l->has_page ? l->page.total : 0;
	drop_page(l);
	if (l->ops->is_newest_first && l->cur && total) {
		/* The same entry, though others came above it. */
		need(t, l, l->cur, 1);
		uint64_t more = l->has_page && l->page.total > total ? l->page.total - total : 0;
		l->cur += more;
		l->top += more;
		return;
	}
	if (!can_find || !l->cur)
		return;
	need(t, l, l->cur, 1);
	if (!l->has_page || l->page.err)
		return;
	l->cur = find_row(t, l, key);
	l->top = l->cur > shown ? l->cur - shown : 0;
}

static void clamp(struct tui_list *l)
{
	uint64_t total = l->has_page ? l->page.total : l->cur + 1;
	uint64_t height = (uint64_t)MAX(l->height, 1);
	if (l->cur >= total)
		l->cur = total ? total - 1 : 0;
	if (l->top > l->cur)
		l->top = l->cur;
	if (l->cur >= l->top + height)
		l->top = l->cur - height + 1;
	if (l->top + height > total)
		l->top = total > height ? total - height : 0;
}

static void draw_heading(struct tui *t, struct tui_list *l, struct cells_rect r, bool is_focused)
{
	char number[32];
	struct cells_pen p = tui_pen(t, r, 0, is_focused ? ROLE_TITLE : ROLE_DIM, ROLE_BG_DIALOG);
	cells_fill(&t->grid, (struct cells_rect){r.x, r.y, r.w, 1}, p.st);
	p.st.attr = is_focused ? CELLS_BOLD : 0;
	cells_str(&p, is_focused ? "> " : "  ");
	cells_str(&p, l->ops->title);
	p.st.attr = 0;
	p.st.fg = ROLE_DIM;
	if (l->job)
		cells_str(&p, " \xe2\x80\xa6");
	else if (l->has_page)
		cells_printf(&p, " %s%s", tui_number(l->page.total, number), l->page.has_more ? "+" : "");
	if (l->marked.cnt)
		cells_printf(&p, ", %s marked", tui_number(l->marked.cnt, number));
	if (*l->what)
		cells_printf(&p, "  %s", l->what);
	if (*l->filter && !l->ops->is_typed_in) {
		p.st.fg = ROLE_KEY;
		cells_printf(&p, "  /%s", l->filter);
	}
	if (l->sort && abs(l->sort) <= l->ops->column_cnt)
		cells_printf(&p, "  by %s%s", l->ops->columns[abs(l->sort) - 1].title, l->sort < 0 ? " down" : "");
}

/* Widths of the columns in r; the first `0` column takes what is left. Narrow lists lose their last columns. */
static void column_widths(const struct tui_list *l, int w, int *ret)
{
	int used = 0;
	int rest = -1;
	for (int i = 0; i < l->ops->column_cnt; i++) {
		ret[i] = l->is_brief && i ? -1 : l->ops->columns[i].width;
		if (ret[i] < 0)
			continue;
		used += ret[i] + 1;
		if (!ret[i])
			rest = i;
	}
	int need_rest = rest >= 0 ? 18 : 0;
	for (int i = l->ops->column_cnt - 1; i >= 0 && used + need_rest > w; i--) {
		if (i == rest || ret[i] <= 0)
			continue;
		used -= ret[i] + 1;
		ret[i] = -1;
	}
	if (rest >= 0)
		ret[rest] = MAX(w - used, 1);
}

static void draw_cell(struct tui *t, struct cells_rect r, const struct tui_column *c, struct ses_text text,
		      struct cells_style st)
{
	int width = c->is_right ? cells_text_width(&t->grid, text.s, text.len) : 0;
	struct cells_pen p = {.g = &t->grid, .x = r.x, .y = r.y, .end = r.x + r.w, .st = st, .escape_fg = ROLE_ESCAPE};
	if (st.fg == ROLE_SELECT)
		p.escape_fg = 0;
	if (width < r.w && c->is_right)
		p.x += r.w - width;
	cells_text(&p, text.s, text.len);
}

static void draw_row(struct tui *t, struct tui_list *l, struct cells_rect r, const struct tui_row *row, int state)
{
	int widths[TUI_COL_MAX];
	enum term_role bg = state == 2 ? ROLE_BG_SELECT : state == 1 ? ROLE_BG_WORD : ROLE_BG;
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, bg));
	bool is_here = row && row->has_va && l->has_here && row->va == l->here_va;
	bool is_marked = row && tui_list_is_marked(l, row->id);
	uint32_t sign = state ? '>' : is_here ? '*' : is_marked ? '+' : row && row->mark ? (uint32_t)(uint8_t)row->mark : ' ';
	if ((is_here || is_marked) && !state) {
		bg = ROLE_BG_LINE;
		cells_fill(&t->grid, r, tui_style(ROLE_TEXT, bg));
	}
	/* A pane at the side is written anew wherever the terminal cannot scroll the other one alone: one pen does for its rows. */
	bool is_quiet = l->is_brief && !state && !is_here;
	cells_put(&t->grid, r.x, r.y, sign, tui_style(state == 2 ? ROLE_SELECT : is_quiet ? l->ops->columns[0].role : ROLE_KEY, bg));
	if (!row) {
		cells_put(&t->grid, r.x + 2, r.y, cells_glyph(&t->grid, GLYPH_ELLIPSIS), tui_style(ROLE_DIM, bg));
		return;
	}
	column_widths(l, r.w - 1, widths);
	int x = r.x + 1;
	for (int i = 0; i < l->ops->column_cnt; i++) {
		if (widths[i] < 0)
			continue;
		struct cells_rect cell = {x, r.y, MIN(widths[i], r.x + r.w - x), 1};
		struct cells_style st = tui_style(state == 2 ? ROLE_SELECT : l->ops->columns[i].role, bg);
		if (cell.w > 0 && row->col[i].s)
			draw_cell(t, cell, &l->ops->columns[i], row->col[i], st);
		x += widths[i] + 1;
	}
}

/* The columns' titles, where there is room for a line that says what is obvious. */
static void draw_titles(struct tui *t, struct tui_list *l, struct cells_rect r)
{
	int widths[TUI_COL_MAX];
	struct cells_style st = tui_style(ROLE_DIM, ROLE_BG);
	st.attr = CELLS_UNDERLINE;
	cells_fill(&t->grid, r, st);
	column_widths(l, r.w - 1, widths);
	int x = r.x + 1;
	for (int i = 0; i < l->ops->column_cnt; i++) {
		const char *title = l->ops->columns[i].title;
		if (widths[i] < 0)
			continue;
		draw_cell(t, (struct cells_rect){x, r.y, MIN(widths[i], r.x + r.w - x), 1}, &l->ops->columns[i],
			  (struct ses_text){title, (uint32_t)strlen(title)}, st);
		x += widths[i] + 1;
	}
}

static void draw_nothing(struct tui *t, struct tui_list *l, struct cells_rect r)
{
	struct cells_pen p = tui_pen(t, r, 0, l->page.err ? ROLE_ERROR : ROLE_DIM, ROLE_BG);
	cells_str(&p, "  ");
	if (l->page.err)
		cells_printf(&p, "! %s", l->page.err->text ? l->page.err->text : "out of memory");
	else if (ses_snap_is_preview(t->snap) && !l->ops->is_typed_in)
		cells_str(&p, "being looked for");
	else if (*l->filter)
		cells_str(&p, "nothing matches");
	else
		cells_str(&p, l->ops->empty);
}

void tui_list_draw(struct tui *t, struct tui_list *l, struct cells_rect r, bool is_focused)
{
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	if (r.w < 4 || r.h < 1)
		return;
	int titles = r.h > 8 && !l->is_brief && r.w >= 40 && !l->ops->is_typed_in;
	int head = (r.h > 2) + titles;
	struct cells_rect body = {r.x, r.y + head, r.w - 1, r.h - head};
	l->body = body;
	l->height = body.h;
	clamp(l);
	need(t, l, l->top, (uint32_t)body.h);
	clamp(l);
	need(t, l, l->top, (uint32_t)body.h);
	if (head)
		draw_heading(t, l, r, is_focused);
	if (titles)
		draw_titles(t, l, (struct cells_rect){r.x, r.y + 1, r.w - 1, 1});
	uint64_t total = l->has_page ? l->page.total : 0;
	for (int i = 0; i < body.h; i++) {
		uint64_t at = l->top + (uint64_t)i;
		if (l->has_page && at >= total)
			break;
		int state = at != l->cur ? 0 : is_focused ? 2 : 1;
		draw_row(t, l, (struct cells_rect){body.x, body.y + i, body.w, 1}, row_at(l, at), state);
	}
	if (l->has_page && !total)
		draw_nothing(t, l, body);
	tui_draw_bar(t, (struct cells_rect){r.x + r.w - 1, body.y, 1, body.h}, l->top, (uint64_t)body.h, l->has_page ? MAX(total, 1) : 0);
	if (is_focused && body.h) {
		t->cur_x = body.x;
		t->cur_y = body.y + (int)(l->cur - l->top);
	}
}

static void move(struct tui *t, struct tui_list *l, int64_t by)
{
	uint64_t total = l->has_page ? l->page.total : 0;
	if (by < 0)
		l->cur = l->cur > (uint64_t)-by ? l->cur - (uint64_t)-by : 0;
	else
		l->cur = total ? MIN(l->cur + (uint64_t)by, total - 1) : 0;
	clamp(l);
}

static void next_sort(struct tui_list *l)
{
	int n = l->sort;
	do {
		n = n > 0 ? -n : -n + 1;
		if (n > l->ops->column_cnt)
			n = 0;
	} while (n && !l->ops->columns[abs(n) - 1].sort);
	l->sort = n;
	tui_list_restart(l);
}

bool tui_list_act(struct tui *t, struct tui_list *l, enum tui_action a)
{
	int page = MAX(l->height - 1, 1);
	switch ((int)a) {
	case TUI_UP:
		move(t, l, -1);
		return true;
	case TUI_DOWN:
		move(t, l, 1);
		return true;
	case TUI_HALF_UP:
		move(t, l, -(page / 2 + 1));
		return true;
	case TUI_HALF_DOWN:
		move(t, l, page / 2 + 1);
		return true;
	case TUI_PAGE_UP:
		move(t, l, -page);
		return true;
	case TUI_PAGE_DOWN:
		move(t, l, page);
		return true;
	case TUI_LINE_START:
	case TUI_TOP:
		move(t, l, INT32_MIN);
		l->cur = l->top = 0;
		return true;
	case TUI_LINE_END:
	case TUI_BOTTOM:
		if (l->has_page && l->page.total)
			l->cur = l->page.total - 1;
		clamp(l);
		return true;
	case TUI_SORT:
		next_sort(l);
		return true;
	default:
		return false;
	}
}

void tui_list_scroll(struct tui *t, struct tui_list *l, int rows)
{
	uint64_t total = l->has_page ? l->page.total : 0;
	uint64_t height = (uint64_t)MAX(l->height, 1);
	uint64_t last = total > height ? total - height : 0;
	if (rows < 0)
		l->top = l->top > (uint64_t)-rows ? l->top - (uint64_t)-rows : 0;
	else
		l->top = MIN(l->top + (uint64_t)rows, last);
	l->cur = MIN(MAX(l->cur, l->top), l->top + height - 1);
	clamp(l);
}

bool tui_list_click(struct tui *t, struct tui_list *l, int x, int y)
{
	uint64_t total = l->has_page ? l->page.total : 0;
	if (x == l->body.x + l->body.w && total && l->body.h > 1) { /* the scroll bar */
		int at = MAX(0, MIN(y - l->body.y, l->body.h - 1));
		l->cur = (uint64_t)((double)at / (l->body.h - 1) * (double)(total - 1));
		return false;
	}
	if (x < l->body.x || x >= l->body.x + l->body.w || y < l->body.y || y >= l->body.y + l->body.h)
		return false;
	uint64_t at = l->top + (uint64_t)(y - l->body.y);
	if (at >= total)
		return false;
	l->cur = at;
	return true;
}
