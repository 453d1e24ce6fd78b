/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All facts of one revision in memory. A view is a few sorted arrays. The next revision's is merged from them and the
 * rows the journal says were touched; arrays of kinds that were not touched, and all old texts, are borrowed from the
 * view before, which is therefore kept. When that chain gets long or holds much that is dead, everything is copied into
 * the newest and the chain is dropped.
 */
#include "edits/edits_int.h"

#include "base/vec.h"

#include <string.h>

#define VIEW_DEPTH_MAX 32
#define VIEW_SPARE_MIN 262144

struct view_name { const char *s; uint32_t len; uint64_t va; };
struct view_touch { uint64_t va, rev; };

struct view_list { struct edits_fact *data; size_t cnt; };

struct edits_view {
	atomic_uint refs;
	unsigned depth;
	uint64_t bias;             /* of its addresses above the file's */
	size_t chain_len;          /* bytes in the arenas of this view and of those it borrows from */
	struct edits_view *older;  /* borrowed from; null: nothing */
	struct arena arena;
	struct edits_state state;
	struct view_list facts[EDITS_KIND_COUNT];
	struct view_name *names;   /* by text */
	size_t name_cnt;
	struct view_touch *touches; /* by va, each once */
	size_t touch_cnt;
	uint64_t newest[EDITS_KIND_COUNT]; /* revision that touched the kind last */
};

/* Rows read from the file, their texts in the arena of the view being made. */
struct view_rows { struct edits_row *data; size_t cnt, cap; };

struct edits_view *edits_view_ref(struct edits_view *v)
{
	if (v)
		atomic_fetch_add(&v->refs, 1);
	return v;
}

void edits_view_unref(struct edits_view *v)
{
	while (v && atomic_fetch_sub(&v->refs, 1) == 1) {
		struct edits_view *older = v->older;
		arena_fini(&v->arena);
		free(v);
		v = older;
	}
}

static void view_unrefp(struct edits_view **v)
{
	edits_view_unref(*v);
}
#define _cleanup_view_ _cleanup_(view_unrefp)

const struct edits_state *edits_view_state(const struct edits_view *v)
{
	return &v->state;
}

/* --- rows --- */

static int key_cmp(uint64_t a_va, const char *a_sub, uint64_t b_va, const char *b_sub)
{
	return a_va != b_va ? (a_va < b_va ? -1 : 1) : strcmp(a_sub, b_sub);
}

static int row_cmp(const void *x, const void *y)
{
	const struct edits_row *a = x, *b = y;
	int c = a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : key_cmp(a->va, a->sub, b->va, b->sub);
	return c ? c : a->order < b->order ? -1 : a->order > b->order;
}

/* What is in order already, as most is, costs one look. */
static void sort(void *base, size_t cnt, size_t len, int (*cmp)(const void *, const void *))
{
	size_t i = 1;
	while (i < cnt && cmp((char *)base + (i - 1) * len, (char *)base + i * len) <= 0)
		i++;
	if (i < cnt)
		qsort(base, cnt, len, cmp);
}

/* The row under the statement; true when it is of a kind this scry knows. */
static bool row_take(sqlite3_stmt *st, uint64_t bias, struct arena *a, struct edits_row *ret)
{
	const char *kind = (const char *)sqlite3_column_text(st, 0);
	*ret = (struct edits_row){.va = (uint64_t)sqlite3_column_int64(st, 1), .sub = "", .rev = (uint64_t)sqlite3_column_int64(st, 4)};
	if (!kind || !edits_kind_find(kind, &ret->kind) || ret->kind == EDITS_ANALYSIS)
		return false;
	ret->va += edits_has_va(ret->kind) ? bias : 0;
	const char *sub = (const char *)sqlite3_column_text(st, 2);
	if (sub && *sub)
		ret->sub = arena_strndup(a, sub, (size_t)sqlite3_column_bytes(st, 2));
	if (sqlite3_column_type(st, 3) != SQLITE_NULL) {
		const char *value = (const char *)sqlite3_column_text(st, 3);
		ret->value_len = (uint32_t)sqlite3_column_bytes(st, 3);
		ret->value = value ? arena_strndup(a, value, ret->value_len) : NULL;
		if (!ret->value)
			ret->sub = NULL;
	}
	return true;
}

/* The tables' order is not by kind: taken apart by kind the rows are in order, or nearly. Of one key the last row counts. */
static bool rows_sort(struct view_rows *rows)
{
	size_t at[EDITS_KIND_COUNT + 1] = {0}, n = 0;
	struct edits_row *out = rows->cnt ? alloc_array(rows->cnt, sizeof(*out)) : NULL;
	if (!out)
		return !rows->cnt;
	for (size_t i = 0; i < rows->cnt; i++)
		at[rows->data[i].kind + 1]++;
	for (size_t k = 1; k <= EDITS_KIND_COUNT; k++)
		at[k] += at[k - 1];
	for (size_t i = 0; i < rows->cnt; i++)
		out[at[rows->data[i].kind]++] = rows->data[i];
	sort(out, rows->cnt, sizeof(*out), row_cmp);
	for (size_t i = 0; i < rows->cnt; i++) {
		bool is_again = n && out[n - 1].kind == out[i].kind && !key_cmp(out[n - 1].va, out[n - 1].sub, out[i].va, out[i].sub);
		n -= is_again;
		out[n++] = out[i];
	}
	free(rows->data);
	rows->data = out;
	rows->cap = rows->cnt;
	rows->cnt = n;
	return true;
}

static struct err *rows_read(sqlite3 *db, sqlite3_stmt *st, uint64_t bias, struct arena *a, struct view_rows *ret)
{
	int rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct edits_row row;
		if (!row_take(st, bias, a, &row))
			continue;
		row.order = (uint32_t)ret->cnt;
		if (!row.sub || !VEC_PUSH(ret, row))
			return &err_nomem;
	}
	if (rc != SQLITE_DONE)
		return edits_error(&(struct edits){.db = db, .path = (char *)sqlite3_db_filename(db, "main")});
	return rows_sort(ret) ? NULL : &err_nomem;
}

/* --- merging --- */

/* Rows of one kind: `*at` moves over them. */
static size_t rows_of(const struct view_rows *rows, enum edits_kind kind, size_t *at)
{
	size_t n = 0;
	while (*at + n < rows->cnt && rows->data[*at + n].kind == kind)
		n++;
	*at += n;
	return n;
}

static bool merge_facts(struct edits_view *v, const struct view_list *old, const struct edits_row *rows, size_t cnt,
			struct view_list *ret)
{
	struct edits_fact *out = ARENA_ARRAY(&v->arena, struct edits_fact, old->cnt + cnt);
	size_t n = 0, i = 0, k = 0;
	if (!out)
		return false;
	while (i < old->cnt || k < cnt) {
		int c = i == old->cnt ? 1 : k == cnt ? -1 :
			key_cmp(old->data[i].va, old->data[i].sub, rows[k].va, rows[k].sub);
		if (c < 0) {
			out[n++] = old->data[i++];
			continue;
		}
		i += c == 0;
		if (rows[k].value)
			out[n++] = (struct edits_fact){rows[k].va, rows[k].sub, rows[k].value, rows[k].value_len, rows[k].rev};
		k++;
	}
	*ret = (struct view_list){out, n};
	return true;
}

static int text_cmp(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, MIN(a_len, b_len));
	return c ? c : a_len < b_len ? -1 : a_len > b_len;
}

static int name_cmp(const void *x, const void *y)
{
	const struct view_name *a = x, *b = y;
	return text_cmp(a->s, a->len, b->s, b->len);
}

/* Whether a sorted run of rows has that address. */
static bool rows_have(const struct edits_row *rows, size_t cnt, uint64_t va)
{
	size_t lo = 0, hi = cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (rows[mid].va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && rows[lo].va == va;
}

static bool merge_names(struct edits_view *v, const struct edits_view *old, const struct edits_row *rows, size_t cnt)
{
	size_t old_cnt = old ? old->name_cnt : 0, added = 0, n = 0, i = 0, k = 0;
	struct view_name *out = ARENA_ARRAY(&v->arena, struct view_name, old_cnt + cnt);
	_cleanup_free_ struct view_name *mine = alloc_array(cnt, sizeof(*mine));
	if (!out || !mine)
		return false;
	for (size_t r = 0; r < cnt; r++) {
		if (rows[r].value)
			mine[added++] = (struct view_name){rows[r].value, rows[r].value_len, rows[r].va};
	}
	sort(mine, added, sizeof(*mine), name_cmp);
	while (i < old_cnt || k < added) {
		if (i < old_cnt && rows_have(rows, cnt, old->names[i].va))
			i++;
		else if (k == added || (i < old_cnt && name_cmp(&old->names[i], &mine[k]) < 0))
			out[n++] = old->names[i++];
		else
			out[n++] = mine[k++];
	}
	v->names = out;
	v->name_cnt = n;
	return true;
}

static int touch_cmp(const void *x, const void *y)
{
	const struct view_touch *a = x, *b = y;
	if (a->va != b->va)
		return a->va < b->va ? -1 : 1;
	return a->rev < b->rev ? -1 : a->rev > b->rev;
}

static bool merge_touches(struct edits_view *v, const struct edits_view *old, const struct view_rows *rows)
{
	size_t old_cnt = old ? old->touch_cnt : 0, n = 0, i = 0, k = 0;
	struct view_touch *out = ARENA_ARRAY(&v->arena, struct view_touch, old_cnt + rows->cnt);
	_cleanup_free_ struct view_touch *mine = alloc_array(rows->cnt, sizeof(*mine));
	if (!out || !mine)
		return false;
	for (size_t r = 0; r < rows->cnt; r++)
		mine[r] = (struct view_touch){rows->data[r].va, rows->data[r].rev};
	sort(mine, rows->cnt, sizeof(*mine), touch_cmp);
	while (i < old_cnt || k < rows->cnt) {
		bool is_old = k == rows->cnt || (i < old_cnt && old->touches[i].va < mine[k].va);
		struct view_touch t = is_old ? old->touches[i++] : mine[k++];
		if (n && out[n - 1].va == t.va)
			out[n - 1].rev = MAX(out[n - 1].rev, t.rev);
		else
			out[n++] = t;
	}
	v->touches = out;
	v->touch_cnt = n;
	return true;
}

/* The kinds that were touched are merged, the others borrowed. */
static bool view_merge(struct edits_view *v, struct edits_view *old, const struct view_rows *rows)
{
	static const struct view_list none;
	size_t at = 0;
	if (old) {
		v->older = edits_view_ref(old);
		v->depth = old->depth + 1;
		v->chain_len = old->chain_len;
		v->names = old->names;
		v->name_cnt = old->name_cnt;
		v->touches = old->touches;
		v->touch_cnt = old->touch_cnt;
		memcpy(v->newest, old->newest, sizeof(v->newest));
	}
	for (size_t i = 0; i < rows->cnt; i++)
		v->newest[rows->data[i].kind] = MAX(v->newest[rows->data[i].kind], rows->data[i].rev);
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++) {
		const struct view_list *was = old ? &old->facts[k] : &none;
		size_t first = at, n = rows_of(rows, (enum edits_kind)k, &at);
		v->facts[k] = *was;
		if (n && !merge_facts(v, was, rows->data + first, n, &v->facts[k]))
			return false;
		if (n && k == EDITS_NAME && !merge_names(v, old, rows->data + first, n))
			return false;
	}
	return !rows->cnt || merge_touches(v, old, rows);
}

/* --- letting go of older views --- */

static bool copy_list(struct edits_view *v, struct view_list *list)
{
	if (!list->cnt)
		return true;
	struct edits_fact *out = ARENA_ARRAY(&v->arena, struct edits_fact, list->cnt);
	if (!out)
		return false;
	for (size_t i = 0; i < list->cnt; i++) {
		out[i] = list->data[i];
		out[i].value = arena_strndup(&v->arena, out[i].value, out[i].value_len);
		out[i].sub = *out[i].sub ? arena_strndup(&v->arena, out[i].sub, strlen(out[i].sub)) : "";
		if (!out[i].value || !out[i].sub)
			return false;
	}
	list->data = out;
	return true;
}

static struct err *view_copy(const struct edits_view *from, struct edits_view **ret)
{
	_cleanup_view_ struct edits_view *v = calloc(1, sizeof(*v));
	if (!v)
		return &err_nomem;
	atomic_init(&v->refs, 1);
	v->state = from->state;
	v->bias = from->bias;
	memcpy(v->facts, from->facts, sizeof(v->facts));
	memcpy(v->newest, from->newest, sizeof(v->newest));
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++) {
		if (!copy_list(v, &v->facts[k]))
			return &err_nomem;
	}
	v->names = ARENA_ARRAY(&v->arena, struct view_name, from->name_cnt + 1);
	v->touches = ARENA_ARRAY(&v->arena, struct view_touch, from->touch_cnt + 1);
	if (!v->names || !v->touches)
		return &err_nomem;
	for (size_t i = 0; i < from->name_cnt; i++) {
		const struct edits_fact *f = edits_find(v, EDITS_NAME, from->names[i].va, "");
		if (f)
			v->names[v->name_cnt++] = (struct view_name){f->value, f->value_len, f->va};
	}
	if (from->touch_cnt)
		memcpy(v->touches, from->touches, from->touch_cnt * sizeof(*v->touches));
	v->touch_cnt = from->touch_cnt;
	v->chain_len = v->arena.used_len;
	*ret = take_ptr(v);
	return NULL;
}

static size_t view_live_len(const struct edits_view *v)
{
	size_t n = v->name_cnt * sizeof(*v->names) + v->touch_cnt * sizeof(*v->touches);
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++)
		n += v->facts[k].cnt * (sizeof(struct edits_fact) + 32);
	return n;
}

static struct err *view_finish(struct edits_view *v, struct edits_view **ret)
{
	v->chain_len += v->arena.used_len;
	if (v->older && (v->depth > VIEW_DEPTH_MAX || v->chain_len > 3 * view_live_len(v) + VIEW_SPARE_MIN)) {
		struct err *why = view_copy(v, ret);
		edits_view_unref(v);
		return why;
	}
	*ret = v;
	return NULL;
}

/* --- making --- */

static struct err *view_make(sqlite3 *db, sqlite3_stmt *st, const struct edits_state *s, uint64_t bias, struct edits_view *old,
			     struct edits_view **ret)
{
	_cleanup_view_ struct edits_view *v = calloc(1, sizeof(*v));
	struct view_rows rows = {0};
	if (!v)
		return &err_nomem;
	atomic_init(&v->refs, 1);
	v->state = *s;
	v->bias = bias;
	struct err *why = rows_read(db, st, bias, &v->arena, &rows);
	if (!why && !view_merge(v, old, &rows))
		why = &err_nomem;
	VEC_FREE(&rows);
	return why ? why : view_finish(take_ptr(v), ret);
}

struct err *edits_view_read(sqlite3 *db, const struct edits_state *s, uint64_t bias, struct edits_view **ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(db, "SELECT kind, addr, sub, value, rev FROM fact", -1, &st, NULL) != SQLITE_OK)
		return edits_error(&(struct edits){.db = db, .path = (char *)sqlite3_db_filename(db, "main")});
	return view_make(db, st, s, bias, NULL, ret);
}

/* The journal's entries say all: the newest of a key is its fact. */
static const char view_since_sql[] =
	"SELECT op, coalesce(addr, 0), sub, after, rev FROM journal"
	" WHERE seq >= (SELECT seq_first+seq_cnt FROM revision WHERE rev=?1) ORDER BY seq";

static struct err *view_get(struct edits *e, struct edits_view *older, struct edits_view **ret)
{
	struct edits_state s;
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	struct err *why = edits_get_state(e, &s);
	if (why)
		return why;
	if (older && older->bias != e->bias)
		older = NULL;
	if (older && older->state.rev == s.rev) {
		*ret = edits_view_ref(older);
		return NULL;
	}
	if (!older || !older->state.rev || older->state.rev > s.rev)
		return edits_view_read(e->db, &s, e->bias, ret);
	why = edits_prepare(e, view_since_sql, &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)older->state.rev);
	return view_make(e->db, st, &s, e->bias, older, ret);
}

struct err *edits_view_get(struct edits *e, struct edits_view *older, struct edits_view **ret)
{
	struct err *why = edits_exec(e, "BEGIN");
	if (why)
		return why;
	why = view_get(e, older, ret);
	edits_rollback(e);
	return why;
}

/* --- elsewhere --- */

static int fact_cmp(const void *x, const void *y)
{
	const struct edits_fact *a = x, *b = y;
	return key_cmp(a->va, a->sub, b->va, b->sub);
}

struct err *edits_view_at(const struct edits_view *v, uint64_t bias, struct edits_view **ret)
{
	uint64_t by = bias - v->bias;
	struct err *why = view_copy(v, ret);
	if (why)
		return why;
	struct edits_view *n = *ret;
	n->bias = bias;
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++) {
		for (size_t i = 0; edits_has_va((enum edits_kind)k) && i < n->facts[k].cnt; i++)
			n->facts[k].data[i].va += by;
		if (n->facts[k].cnt)
			qsort(n->facts[k].data, n->facts[k].cnt, sizeof(*n->facts[k].data), fact_cmp);
	}
	for (size_t i = 0; i < n->name_cnt; i++)
		n->names[i].va += by;
	for (size_t i = 0; i < n->touch_cnt; i++)
		n->touches[i].va += by;
	if (n->touch_cnt)
		qsort(n->touches, n->touch_cnt, sizeof(*n->touches), touch_cmp);
	return NULL;
}

/* --- asking --- */

/* Index of the first fact not below the key. */
static size_t lower_bound(const struct view_list *l, uint64_t va, const char *sub)
{
	size_t lo = 0, hi = l->cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (key_cmp(l->data[mid].va, l->data[mid].sub, va, sub) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct edits_fact *edits_find(const struct edits_view *v, enum edits_kind kind, uint64_t va, const char *sub)
{
	if (!v || !v->facts[kind].cnt)
		return NULL;
	const struct view_list *l = &v->facts[kind];
	size_t i = lower_bound(l, va, sub);
	return i < l->cnt && l->data[i].va == va && !strcmp(l->data[i].sub, sub) ? &l->data[i] : NULL;
}

const struct edits_fact *edits_range(const struct edits_view *v, enum edits_kind kind, uint64_t first_va, uint64_t last_va,
				     size_t *ret_cnt)
{
	*ret_cnt = 0;
	if (!v || !v->facts[kind].cnt || first_va > last_va)
		return NULL;
	const struct view_list *l = &v->facts[kind];
	size_t i = lower_bound(l, first_va, ""), end = last_va == UINT64_MAX ? l->cnt : lower_bound(l, last_va + 1, "");
	*ret_cnt = end - i;
	return end > i ? &l->data[i] : NULL;
}

bool edits_name_find(const struct edits_view *v, const char *name, size_t len, uint64_t *ret_va)
{
	size_t lo = 0, hi = v ? v->name_cnt : 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = text_cmp(v->names[mid].s, v->names[mid].len, name, len);
		if (!c) {
			*ret_va = v->names[mid].va;
			return true;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

uint64_t edits_view_touched(const struct edits_view *v, uint64_t first_va, uint64_t last_va)
{
	size_t lo = 0, hi = v ? v->touch_cnt : 0, cnt = hi;
	uint64_t newest = 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (v->touches[mid].va < first_va)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < cnt && v->touches[lo].va <= last_va; lo++)
		newest = MAX(newest, v->touches[lo].rev);
	return newest;
}

uint64_t edits_view_newest(const struct edits_view *v, uint32_t kinds)
{
	uint64_t newest = 0;
	for (unsigned k = 0; v && k < EDITS_KIND_COUNT; k++) {
		if (kinds & 1u << k)
			newest = MAX(newest, v->newest[k]);
	}
	return newest;
}
