/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proposals: edits that somebody wants and another is to accept. They are rows beside the journal and no part of it: no fact, no
 * revision. One that is accepted becomes an ordinary edit in the transaction that marks it, so that a crash leaves both or neither. The
 * table is made when the first is written; who does not know it passes it over.
 */
#include "edits/edits_int.h"

#include "base/map.h"

#include <string.h>
#include <time.h>

#define PROPOSALS_OPEN_MAX 100000

static const char schema_sql[] =
	"CREATE TABLE IF NOT EXISTS proposal(id INTEGER PRIMARY KEY AUTOINCREMENT, call INTEGER NOT NULL, time_ns INTEGER NOT NULL,"
	" author TEXT NOT NULL, author_kind TEXT NOT NULL, note TEXT, op TEXT NOT NULL, addr INTEGER, sub TEXT NOT NULL, before TEXT, after TEXT,"
	" state INTEGER NOT NULL DEFAULT 0, rev INTEGER, decided_ns INTEGER);"
	"CREATE INDEX IF NOT EXISTS proposal_open ON proposal(id) WHERE state=0;";

static const char list_sql[] =
	"SELECT p.id, p.call, p.time_ns, p.author, p.author_kind, p.note, p.op, p.addr, p.sub, p.before, p.after, p.state, p.rev,"
	" p.before IS NOT f.value FROM proposal p LEFT JOIN fact f ON f.kind=p.op AND f.addr=coalesce(p.addr, 0) AND f.sub=p.sub"
	" WHERE (?1 OR p.state=0) AND (?2 IS NULL OR p.author=?2) AND (?3=0 OR p.id=?3) ORDER BY p.id LIMIT ?4 OFFSET ?5";

static int64_t wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void bind(sqlite3_stmt *st, int at, const char *s, size_t len)
{
	if (s)
		sqlite3_bind_text64(st, at, s, len, SQLITE_STATIC, SQLITE_UTF8);
	else
		sqlite3_bind_null(st, at);
}

/* One number that a query gives. */
static struct err *ask_num(struct edits *e, const char *sql, uint64_t *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, sql, &st);
	if (!why)
		why = edits_step_row(e, st, &has_row);
	*ret = !why && has_row ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	return why;
}

static struct err *has_table(struct edits *e, bool *ret)
{
	uint64_t n;
	struct err *why = ask_num(e, "SELECT count(*) FROM sqlite_master WHERE type='table' AND name='proposal'", &n);
	*ret = !why && n;
	return why;
}

/* --- proposing --- */

static struct err *put(struct edits *e, sqlite3_stmt *st, struct edits_change *c, uint64_t call, const struct edits_opts *o)
{
	const char *kind = edits_author_kind_name(o->author_kind);
	sqlite3_reset(st);
	sqlite3_bind_int64(st, 1, (sqlite3_int64)call);
	sqlite3_bind_int64(st, 2, wall_ns());
	bind(st, 3, o->author, strlen(o->author));
	bind(st, 4, kind, strlen(kind));
	bind(st, 5, o->note, o->note ? strlen(o->note) : 0);
	bind(st, 6, edits_kind_name(c->kind), strlen(edits_kind_name(c->kind)));
	if (edits_has_va(c->kind))
		sqlite3_bind_int64(st, 7, (sqlite3_int64)(c->va - e->bias));
	else
		sqlite3_bind_null(st, 7);
	bind(st, 8, c->sub ? c->sub : "", c->sub ? strlen(c->sub) : 0);
	bind(st, 9, c->before, c->before_len);
	bind(st, 10, c->value, c->value_len);
	struct err *why = edits_run(e, st);
	c->proposal = (uint64_t)sqlite3_last_insert_rowid(e->db);
	return why;
}

static struct err *put_all(struct edits *e, struct edits_change *c, size_t cnt, const struct edits_opts *o)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	uint64_t call, open = 0;
	struct err *why = edits_exec(e, schema_sql);
	if (!why)
		why = ask_num(e, "SELECT count(*) FROM proposal WHERE state=0", &open);
	if (!why && open + cnt > PROPOSALS_OPEN_MAX)
		why = err_fix(err_new(ERR_BUDGET, "%s: %llu proposals wait to be decided", e->path, (unsigned long long)open),
			      "accept or refuse them");
	if (!why)
		why = ask_num(e, "SELECT coalesce(max(call), 0)+1 FROM proposal", &call);
	if (!why)
		why = edits_prepare(e, "INSERT INTO proposal(call, time_ns, author, author_kind, note, op, addr, sub, before, after)"
				    " VALUES(?,?,?,?,?,?,?,?,?,?)", &st);
	for (size_t i = 0; i < cnt && !why; i++) {
		if (c[i].status == EDITS_APPLIED && !c[i].is_giving_way)
			why = put(e, st, &c[i], call, o);
	}
	return why;
}

struct err *edits_propose(struct edits *e, struct edits_change *changes, size_t cnt, const struct edits_opts *opts, struct arena *a)
{
	struct edits_opts o = *opts;
	if (!o.author || !*o.author)
		o.author = edits_login(a);
	struct err *why = o.author ? edits_begin(e) : &err_nomem;
	if (why)
		return why;
	why = put_all(e, changes, cnt, &o);
	if (!why)
		return edits_end(e);
	edits_rollback(e);
	return why;
}

/* --- reading --- */

static bool copy(sqlite3_stmt *st, int col, struct arena *a, const char **ret, size_t *ret_len)
{
	*ret = NULL;
	*ret_len = 0;
	if (sqlite3_column_type(st, col) == SQLITE_NULL)
		return true;
	const char *s = (const char *)sqlite3_column_text(st, col);
	*ret_len = (size_t)sqlite3_column_bytes(st, col);
	*ret = s ? arena_strndup(a, s, *ret_len) : NULL;
	return *ret;
}

static struct err *read_one(struct edits *e, sqlite3_stmt *st, struct arena *a, struct edits_proposal *p)
{
	size_t unused;
	const char *op;
	int state = sqlite3_column_int(st, 11);
	*p = (struct edits_proposal){.id = (uint64_t)sqlite3_column_int64(st, 0), .call = (uint64_t)sqlite3_column_int64(st, 1),
				     .time_ns = (uint64_t)sqlite3_column_int64(st, 2), .has_va = sqlite3_column_type(st, 7) != SQLITE_NULL,
				     .va = (uint64_t)sqlite3_column_int64(st, 7), .rev = (uint64_t)sqlite3_column_int64(st, 12),
				     .is_stale = !state && sqlite3_column_int(st, 13)};
	bool is_good = copy(st, 3, a, &p->author, &unused) && copy(st, 4, a, &p->author_kind, &unused) && copy(st, 5, a, &p->note, &unused) &&
		       copy(st, 6, a, &op, &unused) && copy(st, 8, a, &p->sub, &unused) && copy(st, 9, a, &p->before, &p->before_len) &&
		       copy(st, 10, a, &p->after, &p->after_len);
	if (!is_good)
		return &err_nomem;
	p->va += p->has_va ? e->bias : 0;
	p->state = state == 1 ? EDITS_ACCEPTED : state == 2 ? EDITS_DECLINED : EDITS_OPEN;
	bool is_whole = op && p->sub && p->author && p->author_kind && edits_kind_find(op, &p->kind);
	return is_whole ? NULL : err_new(ERR_BAD_INPUT, "%s: proposal %llu is damaged", e->path, (unsigned long long)p->id);
}

static struct err *count(struct edits *e, const struct edits_proposals_ask *ask, uint64_t *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, "SELECT count(*) FROM proposal WHERE (?1 OR state=0) AND (?2 IS NULL OR author=?2)"
					" AND (?3=0 OR id=?3)", &st);
	if (why)
		return why;
	sqlite3_bind_int(st, 1, ask->has_decided);
	bind(st, 2, ask->author, ask->author ? strlen(ask->author) : 0);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)ask->id);
	why = edits_step_row(e, st, &has_row);
	*ret = !why && has_row ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	return why;
}

static struct err *read_page(struct edits *e, const struct edits_proposals_ask *ask, struct arena *a, struct edits_proposal **ret, uint32_t *ret_cnt,
			     uint64_t *ret_total)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = count(e, ask, ret_total);
	uint64_t want = !why && *ret_total > ask->offset ? MIN(*ret_total - ask->offset, (uint64_t)ask->limit) : 0;
	*ret = ARENA_ARRAY(a, struct edits_proposal, want + 1);
	if (!why && !*ret)
		why = &err_nomem;
	if (!why)
		why = edits_prepare(e, list_sql, &st);
	if (why)
		return why;
	sqlite3_bind_int(st, 1, ask->has_decided);
	bind(st, 2, ask->author, ask->author ? strlen(ask->author) : 0);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)ask->id);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)want);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)MIN(ask->offset, (uint64_t)INT64_MAX));
	while (*ret_cnt < want && !(why = edits_step_row(e, st, &has_row)) && has_row) {
		why = read_one(e, st, a, &(*ret)[*ret_cnt]);
		if (why)
			return why;
		++*ret_cnt;
	}
	return why;
}

struct err *edits_proposals(struct edits *e, const struct edits_proposals_ask *ask, struct arena *a, struct edits_proposal **ret, uint32_t *ret_cnt,
			    uint64_t *ret_total)
{
	bool is_there;
	*ret = NULL;
	*ret_cnt = 0;
	*ret_total = 0;
	struct err *why = edits_exec(e, "BEGIN");
	if (!why)
		why = has_table(e, &is_there);
	if (!why && is_there)
		why = read_page(e, ask, a, ret, ret_cnt, ret_total);
	edits_rollback(e);
	return why;
}

/* --- deciding --- */

struct err *edits_proposal_check(struct edits *e, const struct edits_change *c, const char **ret_why)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false, is_there;
	struct err *why = has_table(e, &is_there);
	*ret_why = "there is no such proposal";
	if (!why && is_there)
		why = edits_prepare(e, "SELECT state, before IS NOT ?2 FROM proposal WHERE id=?1", &st);
	if (why || !is_there)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)c->proposal);
	bind(st, 2, c->before, c->before_len);
	why = edits_step_row(e, st, &has_row);
	if (!why && has_row)
		*ret_why = sqlite3_column_int(st, 0) ? "it was decided already" :
			   sqlite3_column_int(st, 1) ? "stale: what it changes was changed since" : NULL;
	return why;
}

struct err *edits_proposal_mark(struct edits *e, uint64_t id, uint64_t rev)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	struct err *why = edits_prepare(e, "UPDATE proposal SET state=?2, rev=?3, decided_ns=?4 WHERE id=?1 AND state=0", &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)id);
	sqlite3_bind_int(st, 2, rev ? 1 : 2);
	if (rev)
		sqlite3_bind_int64(st, 3, (sqlite3_int64)rev);
	else
		sqlite3_bind_null(st, 3);
	sqlite3_bind_int64(st, 4, wall_ns());
	return edits_run(e, st);
}

struct err *edits_decline(struct edits *e, const uint64_t *ids, size_t cnt)
{
	bool is_there;
	struct err *why = edits_begin(e);
	if (why)
		return why;
	why = has_table(e, &is_there);
	for (size_t i = 0; i < cnt && !why && is_there; i++)
		why = edits_proposal_mark(e, ids[i], 0);
	if (!why)
		return edits_end(e);
	edits_rollback(e);
	return why;
}

/* --- salvage --- */

/* What of a row of the damaged file's table makes sense; its revision is one of the new file's. */
static bool read_row(sqlite3_stmt *from, sqlite3_stmt *to, const struct map *revs)
{
	enum edits_kind kind;
	uint32_t rev;
	/* Columns that hold nothing but text. */
	static const int texts[] = {3, 4, 6, 8};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (!sqlite3_column_text(from, texts[i]))
			return false;
	}
	if (!edits_kind_find((const char *)sqlite3_column_text(from, 6), &kind) || kind == EDITS_ANALYSIS)
		return false;
	sqlite3_reset(to);
	for (int i = 0; i < sqlite3_column_count(from); i++)
		sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
	if (map_find(revs, (uint64_t)sqlite3_column_int64(from, 12), &rev))
		sqlite3_bind_int64(to, 13, rev);
	else
		sqlite3_bind_null(to, 13);
	return true;
}

struct err *edits_salvage_proposals(struct edits *to, sqlite3 *from, const struct map *revs, uint64_t *ret_lost)
{
	/* From either end until a bad page. */
	static const char *const orders[] = {"SELECT * FROM proposal ORDER BY id", "SELECT * FROM proposal ORDER BY id DESC"};
	_cleanup_stmt_ sqlite3_stmt *put_row = NULL, *newest = NULL;
	uint64_t last = 0, kept = 0;
	struct err *why = NULL;
	if (sqlite3_prepare_v2(from, "SELECT seq FROM sqlite_sequence WHERE name='proposal'", -1, &newest, NULL) == SQLITE_OK &&
	    sqlite3_step(newest) == SQLITE_ROW)
		last = (uint64_t)sqlite3_column_int64(newest, 0);
	for (size_t i = 0; i < ARRAY_LEN(orders) && !why; i++) {
		_cleanup_stmt_ sqlite3_stmt *st = NULL;
		/* Nobody ever proposed, or nothing of it can be read. */
		if (sqlite3_prepare_v2(from, orders[i], -1, &st, NULL) != SQLITE_OK || sqlite3_column_count(st) != 14)
			continue;
		while (!why && sqlite3_step(st) == SQLITE_ROW) {
			last = MAX(last, (uint64_t)sqlite3_column_int64(st, 0));
			if (!put_row)
				why = edits_exec(to, schema_sql);
			if (!why && !put_row)
				why = edits_prepare(to, "INSERT OR IGNORE INTO proposal VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", &put_row);
			if (why || !read_row(st, put_row, revs))
				continue;
			why = edits_run(to, put_row);
			kept += !why && sqlite3_changes(to->db);
		}
	}
	/* They are numbered without gaps, and none is ever taken away. */
	*ret_lost += last > kept ? last - kept : 0;
	return why;
}
