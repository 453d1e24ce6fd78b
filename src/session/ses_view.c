/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filtered and sorted lists. The indices that pass are computed once for a (list, filter, sort) and kept in the snapshot,
 * so that a page costs by its length whatever its offset. A list as it is stored needs none.
 */
#include "session/ses_int.h"

#include "base/glob.h"

#include <stdio.h>
#include <string.h>

#define VIEW_LIMIT 1000

bool ses_filter_match(const char *filter, struct ses_text t)
{
	return !filter || !*filter || glob_match(filter, strlen(filter), t.s, t.len, true);
}

struct view_sort {
	struct ses_snap *sn;
	const struct ses_view_ask *ask;
};

static int view_cmp(const void *x, const void *y, void *ctx)
{
	const struct view_sort *s = ctx;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	int c = s->ask->cmp(s->sn, s->ask->ctx, a, b);
	if (c)
		return s->ask->is_descending ? -c : c;
	return a < b ? -1 : a > b;
}

static struct err *view_make(struct ses_snap *sn, const struct ses_call *call, const struct ses_view_ask *ask, struct ses_view *v)
{
	uint32_t *idx = alloc_array(ask->cnt, sizeof(*idx));
	if (!idx)
		return &err_nomem;
	uint64_t n = 0;
	struct err *e = NULL;
	for (uint32_t i = 0; i < ask->cnt && !e; i++) {
		if (!ask->match || ask->match(sn, ask->ctx, i))
			idx[n++] = i;
		if (i % 1024 == 1023)
			e = ses_call_check(call);
	}
	if (e) {
		free(idx);
		return e;
	}
	struct view_sort s = {sn, ask};
	if (ask->cmp)
		qsort_r(idx, n, sizeof(*idx), view_cmp, &s);
	v->idx = idx;
	v->cnt = n;
	return NULL;
}

/* The caller holds sn->lock. */
static struct err *view_get(struct ses_snap *sn, const struct ses_call *call, const struct ses_view_ask *ask, struct ses_view **ret)
{
	struct ses_view *oldest = &sn->views[0];
	_cleanup_free_ char *key = NULL;
	if (asprintf(&key, "%s\n%s", ask->list, ask->key) < 0)
		return &err_nomem;
	for (size_t i = 0; i < SES_VIEW_MAX; i++) {
		struct ses_view *v = &sn->views[i];
		if (v->key && !strcmp(v->key, key)) {
			v->used = ++sn->view_clock;
			*ret = v;
			return NULL;
		}
		if (v->used < oldest->used)
			oldest = v;
	}
	struct ses_view made = {0};
	struct err *e = view_make(sn, call, ask, &made);
	if (e)
		return e;
	free(oldest->key);
	free(oldest->idx);
	*oldest = made;
	oldest->key = take_ptr(key);
	oldest->used = ++sn->view_clock;
	*ret = oldest;
	return NULL;
}

struct err *ses_view_page(struct ses_snap *sn, const struct ses_call *call, const struct ses_view_ask *ask,
			  struct ses_page *page, struct arena *a, const uint32_t **ret_idx)
{
	uint32_t limit = page->limit ? page->limit : VIEW_LIMIT;
	if (!ask->match && !ask->cmp) {
		page->total = ask->cnt;
		*ret_idx = NULL;
		page->cnt = page->offset >= ask->cnt ? 0 : (uint32_t)MIN(limit, ask->cnt - page->offset);
		return NULL;
	}
	pthread_mutex_lock(&sn->lock);
	struct ses_view *v = NULL;
	struct err *e = view_get(sn, call, ask, &v);
	uint32_t n = e || page->offset >= v->cnt ? 0 : (uint32_t)MIN(limit, v->cnt - page->offset);
	/* A copy of the page: the view may be replaced by another thread's as soon as the lock is gone. */
	uint32_t *copy = e ? NULL : ARENA_ARRAY(a, uint32_t, n ? n : 1);
	if (!e && !copy)
		e = &err_nomem;
	if (!e) {
		memcpy(copy, v->idx + (n ? page->offset : 0), n * sizeof(*copy));
		*ret_idx = copy;
		page->cnt = n;
		page->total = v->cnt;
	}
	pthread_mutex_unlock(&sn->lock);
	return e;
}
