/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/glob.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Every match of a search, as a view: a job finds them piece by piece and the list shows what there is. They stay until the
 * next such search, so one follows a match and comes back to the others.
 */
#define PIECE 64        /* the first one, which is to be there at once */
#define PIECE_MAX 8192
#define FOUND_MAX 100000

struct found_row {
	uint64_t va;
	struct ses_text func, text;
};

/* The job adds to it, we read: each holds it. */
struct tui_found {
	pthread_mutex_t lock;
	atomic_int holders;
	struct arena arena;        /* of the rows */
	VEC(struct found_row) rows;
	bool is_ended, is_cut;     /* more would be there */
	uint32_t shown;            /* rows at the last frame */
	bool was_ended;
};

struct found_job {
	struct tui_job job;
	struct tui_found *found;
	enum ses_search_kind kind;
	char what[TUI_FILTER_MAX];
	struct err *err;
};

static void put(struct tui_found *f)
{
	if (!f || atomic_fetch_sub(&f->holders, 1) > 1)
		return;
	arena_fini(&f->arena);
	VEC_FREE(&f->rows);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static bool add(struct tui_found *f, const struct ses_hit *h)
{
	char *func = arena_strndup(&f->arena, h->func.s ? h->func.s : "", h->func.len);
	char *text = arena_strndup(&f->arena, h->text.s ? h->text.s : "", h->text.len);
	struct found_row r = {h->addr, {func, h->func.len}, {text, h->text.len}};
	return func && text && VEC_PUSH(&f->rows, r);
}

/* One piece; false when it was the last. */
static bool find_more(struct found_job *s, struct ses_search_ask *ask)
{
	struct arena a = {0};
	struct ses_hit *hits;
	struct tui_found *f = s->found;
	uint64_t from = ask->from_va;
	uint32_t skipped = ask->skip;
	ask->limit = MIN(ask->limit, FOUND_MAX - (uint32_t)s->found->rows.cnt); /* only we add to them */
	s->err = ses_search(s->job.snap, &s->job.call, ask, &a, &hits);
	pthread_mutex_lock(&f->lock);
	for (uint32_t i = 0; !s->err && i < ask->cnt; i++) {
		if (!add(f, &hits[i]))
			s->err = &err_nomem;
	}
	f->is_cut = !s->err && ask->has_more && f->rows.cnt >= FOUND_MAX;
	bool goes_on = !s->err && ask->has_more && (ask->next_va != from || ask->next_skip != skipped) && f->rows.cnt < FOUND_MAX;
	pthread_mutex_unlock(&f->lock);
	arena_fini(&a);
	ask->from_va = ask->next_va;
	ask->skip = ask->next_skip;
	ask->limit = MIN(ask->limit * 2, PIECE_MAX);
	return goes_on;
}

static void run(struct tui_job *j)
{
	struct found_job *s = (struct found_job *)j;
	struct ses_search_ask ask = {.kind = s->kind, .what = s->what, .limit = PIECE};
	uint64_t one = 1;
	while (!atomic_load(&j->is_cancelled) && find_more(s, &ask)) {
		ssize_t n = j->event_fd >= 0 ? write(j->event_fd, &one, sizeof(one)) : 0;
		(void)n;
	}
	pthread_mutex_lock(&s->found->lock);
	s->found->is_ended = true;
	s->found->is_cut = s->found->is_cut || s->err; /* stopped */
	pthread_mutex_unlock(&s->found->lock);
}

static void done(struct tui *t, struct tui_job *j)
{
	struct found_job *s = (struct found_job *)j;
	char number[32];
	if (t->found_job != j)
		return;
	t->found_job = NULL;
	t->is_dirty = true;
	if (s->err)
		tui_say_err(t, take_ptr(s->err));
	else if (s->found->is_cut)
		tui_say(t, true, "the first %s matches; there are more: search for something longer", tui_number(FOUND_MAX, number));
	else if (!s->found->rows.cnt)
		tui_say(t, true, "not found: %s", t->search_text);
	else
		tui_say(t, false, "%s match%s", tui_number(s->found->rows.cnt, number), s->found->rows.cnt == 1 ? "" : "es");
}

static void fini(struct tui_job *j)
{
	struct found_job *s = (struct found_job *)j;
	err_free(s->err);
	put(s->found);
}

bool tui_found_cancel(struct tui *t)
{
	bool was_running = t->found_job != NULL;
	tui_job_cancel(t->found_job);
	t->found_job = NULL;
	return was_running;
}

void tui_found_fini(struct tui *t)
{
	tui_found_cancel(t);
	put(t->found);
	t->found = NULL;
	*t->lists[TUI_V_SEARCH].what = '\0';
}

void tui_found_start(struct tui *t, const char *text)
{
	const char *what;
	struct tui_list *l = &t->lists[TUI_V_SEARCH];
	struct found_job *s = calloc(1, sizeof(*s));
	struct tui_found *f = calloc(1, sizeof(*f));
	if (!s || !f) {
		free(s);
		free(f);
		tui_say_err(t, &err_nomem);
		return;
	}
	tui_found_fini(t);
	pthread_mutex_init(&f->lock, NULL);
	atomic_store(&f->holders, 2);
	s->found = t->found = f;
	s->kind = tui_search_kind(text, &what);
	snprintf(s->what, sizeof(s->what), "%s", what);
	s->job.run = run;
	s->job.done = done;
	s->job.fini = fini;
	t->found_job = &s->job;
	snprintf(l->what, sizeof(l->what), "of %.*s", (int)sizeof(l->what) - 4, text);
	*l->filter = '\0';
	tui_list_restart(l);
	tui_show_view(t, TUI_V_SEARCH);
	tui_say(t, false, "searching %s  (Ctrl+C stops)", text);
	tui_job_start(t, &s->job);
}

void tui_found_pump(struct tui *t)
{
	struct tui_found *f = t->found;
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	bool is_new = f->shown != f->rows.cnt || f->was_ended != f->is_ended;
	f->shown = (uint32_t)f->rows.cnt;
	f->was_ended = f->is_ended;
	pthread_mutex_unlock(&f->lock);
	if (is_new)
		tui_list_refresh(&t->lists[TUI_V_SEARCH]);
}

static bool matches(const char *filter, const struct found_row *r)
{
	return !filter || glob_match(filter, strlen(filter), r->func.s, r->func.len, true) ||
	       glob_match(filter, strlen(filter), r->text.s, r->text.len, true);
}

static struct err *put_rows(const struct tui_query *q, struct tui_page *ret)
{
	const struct tui_found *f = q->found;
	for (size_t i = 0; i < f->rows.cnt; i++) {
		const struct found_row *x = &f->rows.data[i];
		if (!matches(q->page.filter, x) || ret->total++ < q->page.offset || ret->cnt == q->page.limit)
			continue;
		struct tui_row *r = &ret->rows[ret->cnt++];
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)x->va);
		r->va = x->va;
		r->has_va = true;
		r->col[0] = (struct ses_text){addr, addr ? (uint32_t)strlen(addr) : 0};
		r->col[1] = x->func;
		r->col[2] = x->text;
		if (!addr)
			return &err_nomem;
	}
	return NULL;
}

/* The rows' texts live as long as the search, which outlives a page of it: a new search drops the page. */
static struct err *fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct tui_found *f = (struct tui_found *)q->found;
	if (!f)
		return NULL;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)q->page.limit + 1);
	if (!ret->rows)
		return &err_nomem;
	pthread_mutex_lock(&f->lock);
	struct err *e = put_rows(q, ret);
	ret->has_more = f->is_cut || !f->is_ended;
	pthread_mutex_unlock(&f->lock);
	return e;
}

static const struct tui_list_ops search_list = {
	.title = "Matches",
	.empty = "none (Ctrl+F searches)",
	.columns = {{.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "function", .width = 28, .role = ROLE_NAME},
		    {.title = "text", .role = ROLE_TEXT}},
	.column_cnt = 3,
	.is_ordered_by_va = true,
	.fetch = fetch,
};

const struct tui_view_ops tui_search_ops = {.name = "search", .where = TUI_IN_LIST, .list = &search_list};
