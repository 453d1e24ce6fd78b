/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the journal (entries are numbered without gaps, so a page is found by its first number), and what follows from it. */
#include "edits/edits_int.h"

#include <stdlib.h>
#include <string.h>

static const char entries_sql[] =
	"SELECT j.seq, j.rev, j.op, j.addr, j.sub, j.before, j.after, r.step, r.target, r.undone_by, r.time_ns, r.author,"
	" r.author_kind, r.note, 1 FROM journal j JOIN revision r ON r.rev=j.rev WHERE j.seq>=?1 ORDER BY j.seq LIMIT ?2";

/* The columns of entries_sql: the first entry's before, all else the last one's. */
static const char changes_sql[] =
	"SELECT b.seq, b.rev, b.op, b.addr, b.sub, a.before, b.after, r.step, r.target, r.undone_by, r.time_ns, r.author, r.author_kind,"
	" r.note, g.n FROM (SELECT min(seq) AS first, max(seq) AS last, count(*) AS n FROM journal WHERE seq>=?1 AND seq<?2 GROUP BY op, addr, sub) g"
	" CROSS JOIN journal a ON a.seq=g.first CROSS JOIN journal b ON b.seq=g.last CROSS JOIN revision r ON r.rev=b.rev"
	" WHERE a.before IS NOT b.after ORDER BY b.seq";

/* SQLite takes the other columns from the row that has the maximum. */
static const char stated_sql[] =
	"SELECT max(j.seq), j.rev, j.op, j.addr, j.sub, NULL, j.after, r.step, r.target, r.undone_by, r.time_ns, r.author, r.author_kind,"
	" r.note, 1 FROM journal j CROSS JOIN revision r ON r.rev=j.rev CROSS JOIN fact f ON f.kind=j.op AND f.addr=coalesce(j.addr, 0) AND"
	" f.sub=j.sub WHERE r.step=0 AND j.after=f.value GROUP BY f.kind, f.addr, f.sub";

static bool copy_text(sqlite3_stmt *st, int col, struct arena *a, const char **ret, size_t *ret_len)
{
	*ret = NULL;
	size_t len = 0;
	if (sqlite3_column_type(st, col) != SQLITE_NULL) {
		const char *s = (const char *)sqlite3_column_text(st, col);
		len = (size_t)sqlite3_column_bytes(st, col);
		*ret = s ? arena_strndup(a, s, len) : NULL;
		if (!*ret)
			return false;
	}
	if (ret_len)
		*ret_len = len;
	return true;
}

static struct err *read_entry(struct edits *e, sqlite3_stmt *st, struct arena *a, struct edits_entry *ret)
{
	const char *op;
	*ret = (struct edits_entry){
		.seq = (uint64_t)sqlite3_column_int64(st, 0),
		.rev = (uint64_t)sqlite3_column_int64(st, 1),
		.has_va = sqlite3_column_type(st, 3) != SQLITE_NULL,
		.va = (uint64_t)sqlite3_column_int64(st, 3),
		.step = edits_step_name((unsigned)sqlite3_column_int(st, 7)),
		.undoes = (uint64_t)sqlite3_column_int64(st, 8),
		.undone_by = (uint64_t)sqlite3_column_int64(st, 9),
		.time_ns = (uint64_t)sqlite3_column_int64(st, 10),
		.cnt = (uint64_t)sqlite3_column_int64(st, 14),
	};
	bool ok = copy_text(st, 2, a, &op, NULL) && copy_text(st, 4, a, &ret->sub, NULL) &&
		  copy_text(st, 5, a, &ret->before, &ret->before_len) && copy_text(st, 6, a, &ret->after, &ret->after_len) &&
		  copy_text(st, 11, a, &ret->author, NULL) && copy_text(st, 12, a, &ret->author_kind, NULL) &&
		  copy_text(st, 13, a, &ret->note, NULL);
	if (!ok)
		return &err_nomem;
	ret->va += ret->has_va ? e->bias : 0;
	if (!op || !edits_kind_find(op, &ret->kind) || !ret->sub || !ret->author || !ret->author_kind)
		return err_fix(err_new(ERR_BAD_INPUT, "%s: entry %llu is damaged", e->path, (unsigned long long)ret->seq),
			       "scry salvage FILE saves what can be read");
	return NULL;
}

/* Number of the first entry of a revision after `since`, and of the one that comes next. */
static struct err *seq_bounds(struct edits *e, uint64_t since, uint64_t *ret_first, uint64_t *ret_next)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, "SELECT (SELECT seq_first FROM revision WHERE rev>?1 ORDER BY rev LIMIT 1),"
					" (SELECT seq_first+seq_cnt FROM revision ORDER BY rev DESC LIMIT 1)", &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)MIN(since, (uint64_t)INT64_MAX));
	why = edits_step_row(e, st, &has_row);
	if (why)
		return why;
	*ret_next = has_row && sqlite3_column_type(st, 1) != SQLITE_NULL ? (uint64_t)sqlite3_column_int64(st, 1) : 1;
	*ret_first = has_row && sqlite3_column_type(st, 0) != SQLITE_NULL ? (uint64_t)sqlite3_column_int64(st, 0) : *ret_next;
	return NULL;
}

static struct err *read_page(struct edits *e, uint64_t first, uint32_t want, struct arena *a, struct edits_entry *out, uint32_t *ret_cnt)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	uint32_t n = 0;
	struct err *why = edits_prepare(e, entries_sql, &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)first);
	sqlite3_bind_int64(st, 2, want);
	while (n < want && !(why = edits_step_row(e, st, &has_row)) && has_row) {
		why = read_entry(e, st, a, &out[n]);
		if (why)
			return why;
		n++;
	}
	*ret_cnt = n;
	return why;
}

struct err *edits_journal(struct edits *e, const struct edits_journal_ask *ask, struct arena *a, struct edits_entry **ret,
			  uint32_t *ret_cnt, uint64_t *ret_total)
{
	uint64_t first = 1, next = 1;
	struct err *why = edits_exec(e, "BEGIN");
	if (why)
		return why;
	why = seq_bounds(e, ask->since, &first, &next);
	uint64_t from = MAX(first, ask->first_seq);
	uint32_t want = why || from >= next ? 0 : (uint32_t)MIN((uint64_t)ask->limit, next - from);
	struct edits_entry *out = why ? NULL : ARENA_ARRAY(a, struct edits_entry, (size_t)want + 1);
	uint32_t n = 0;
	if (!why && !out)
		why = &err_nomem;
	if (!why && want)
		why = read_page(e, from, want, a, out, &n);
	edits_rollback(e);
	if (why)
		return why;
	*ret = out;
	*ret_cnt = n;
	*ret_total = next - MIN(first, next);
	return NULL;
}

/* --- what changed --- */

static struct err *read_changes(struct edits *e, const struct edits_changes_ask *ask, struct arena *a, struct edits_entry *out,
				uint32_t *ret_cnt, uint64_t *ret_total)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	uint64_t first, end, next, at = 0;
	uint32_t n = 0;
	struct err *why = seq_bounds(e, ask->since, &first, &next);
	if (!why)
		why = seq_bounds(e, ask->until, &end, &next);
	if (!why)
		why = edits_prepare(e, changes_sql, &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)first);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)end);
	for (; !(why = edits_step_row(e, st, &has_row)) && has_row; at++) {
		if (at < ask->offset || n == ask->limit)
			continue;
		why = read_entry(e, st, a, &out[n]);
		if (why)
			return why;
		n++;
	}
	*ret_cnt = n;
	*ret_total = at;
	return why;
}

/* The number that query gives. */
static struct err *one_number(struct edits *e, const char *sql, uint64_t *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, sql, &st);
	if (!why)
		why = edits_step_row(e, st, &has_row);
	if (!why)
		*ret = has_row ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	return why;
}

struct err *edits_changes(struct edits *e, const struct edits_changes_ask *ask, struct arena *a, struct edits_entry **ret,
			  uint32_t *ret_cnt, uint64_t *ret_total)
{
	uint64_t entries = 0;
	struct err *why = edits_exec(e, "BEGIN");
	if (why)
		return why;
	why = one_number(e, "SELECT max(seq) FROM journal", &entries);
	struct edits_entry *out = why ? NULL : ARENA_ARRAY(a, struct edits_entry, (size_t)MIN((uint64_t)ask->limit, entries) + 1);
	if (!why && !out)
		why = &err_nomem;
	if (!why)
		why = read_changes(e, ask, a, out, ret_cnt, ret_total);
	edits_rollback(e);
	if (!why)
		*ret = out;
	return why;
}

/* --- who stated what --- */

static int stated_cmp(const void *x, const void *y)
{
	const struct edits_entry *a = x, *b = y;
	if (a->va != b->va)
		return a->va < b->va ? -1 : 1;
	return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->sub, b->sub);
}

static struct err *read_stated(struct edits *e, struct arena *a, struct edits_entry *out, uint64_t cnt)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	uint64_t n = 0;
	struct err *why = edits_prepare(e, stated_sql, &st);
	while (!why && !(why = edits_step_row(e, st, &has_row)) && has_row) {
		if (n == cnt)
			break;
		why = read_entry(e, st, a, &out[n++]);
	}
	if (!why && (n < cnt || has_row))
		why = err_fix(err_new(ERR_BAD_INPUT, "%s: of %llu facts only %llu have an edit", e->path, (unsigned long long)cnt,
				      (unsigned long long)n), "scry salvage FILE saves what can be read");
	return why;
}

struct err *edits_stated(struct edits *e, struct arena *a, struct edits_entry **ret, size_t *ret_cnt, uint64_t *ret_rev)
{
	uint64_t cnt = 0;
	struct edits_state s;
	struct err *why = edits_exec(e, "BEGIN");
	if (why)
		return why;
	why = edits_get_state(e, &s);
	if (!why)
		why = one_number(e, "SELECT count(*) FROM fact WHERE value IS NOT NULL", &cnt);
	struct edits_entry *out = why ? NULL : ARENA_ARRAY(a, struct edits_entry, cnt + 1);
	if (!why && !out)
		why = &err_nomem;
	if (!why)
		why = read_stated(e, a, out, cnt);
	edits_rollback(e);
	if (why)
		return why;
	qsort(out, cnt, sizeof(*out), stated_cmp);
	*ret = out;
	*ret_cnt = cnt;
	*ret_rev = s.rev;
	return NULL;
}
