/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the disk lies. The check asks SQLite about the file's pages and then whether the tables follow from the journal,
 * each rule as one query whose rows are the faults. Salvage reads the damaged file row by row, so that a bad page costs only
 * the rows on it, and plays them into a new file.
 */
#include "edits/edits_int.h"

#include "base/buf.h"
#include "base/map.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CHECK_FAULT_MAX 20
#define SALVAGE_MISS_MAX 4096

/* Rows are faults. What is joined on an expression is cast to the type of the other side: without it SQLite's index over the
 * joined rows leaves that column out, and a join over one kind of fact takes the square of their number. */
static const char *const check_rules[] = {
	"SELECT 'revision '||rev||': the one before it is missing' FROM (SELECT rev, lag(rev, 1, 0) OVER (ORDER BY rev) AS p FROM revision)"
	" WHERE rev<>p+1",
	"SELECT 'entry '||seq||': the one before it is missing' FROM (SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS p FROM journal)"
	" WHERE seq<>p+1",
	"SELECT 'revision '||rev||': its entries do not begin where the last one''s end' FROM (SELECT rev, seq_first,"
	" lag(seq_first+seq_cnt, 1, 1) OVER (ORDER BY rev) AS p FROM revision) WHERE seq_first<>p",
	"SELECT 'entry '||j.seq||': is not of revision '||j.rev FROM journal j LEFT JOIN revision r ON r.rev=j.rev"
	" WHERE r.rev IS NULL OR j.seq<r.seq_first OR j.seq>=r.seq_first+r.seq_cnt",
	"SELECT 'the last entry is missing' FROM (SELECT coalesce(max(seq), 0) AS s FROM journal) WHERE s<>"
	"(SELECT coalesce(max(seq_first+seq_cnt), 1)-1 FROM revision)",
	"SELECT 'entry '||seq||': what was before it is not what the entry before left' FROM (SELECT seq, op, before, lag(after)"
	" OVER (PARTITION BY op, addr, sub ORDER BY seq) AS p FROM journal) WHERE op<>'analysis' AND before IS NOT p",
	"SELECT 'fact '||f.kind||' at '||printf('0x%llx', f.addr)||' '||f.sub||': is not what the journal says' FROM fact f LEFT JOIN"
	" (SELECT op, CAST(coalesce(addr, 0) AS INTEGER) AS addr, sub, max(seq) AS seq FROM journal GROUP BY op, addr, sub) k"
	" ON k.op=f.kind AND k.addr=f.addr AND k.sub=f.sub LEFT JOIN journal j ON j.seq=k.seq WHERE j.seq IS NULL OR"
	" j.after IS NOT f.value OR j.rev<>f.rev",
	"SELECT 'entry '||k.seq||': its fact is missing' FROM (SELECT op, CAST(coalesce(addr, 0) AS INTEGER) AS addr, sub,"
	" max(seq) AS seq FROM journal WHERE op<>'analysis' GROUP BY op, addr, sub) k"
	" LEFT JOIN fact f ON f.kind=k.op AND f.addr=k.addr AND f.sub=k.sub"
	" WHERE f.kind IS NULL",
	"SELECT 'revision '||r.rev||': is said to be taken back by '||coalesce(r.undone_by, 'none')||', the journal says '||"
	"coalesce(u.rev, 'none') FROM revision r LEFT JOIN (SELECT target, max(rev) AS rev FROM revision WHERE target IS NOT NULL AND"
	" (step=2 OR undone_by IS NULL) GROUP BY target) u ON u.target=r.rev WHERE r.undone_by IS NOT u.rev",
	"SELECT 'state: revision '||rev||', the newest is '||m FROM state, (SELECT coalesce(max(rev), 0) AS m FROM revision) WHERE rev<>m",
	"SELECT 'state: newest edit '||edit_rev||', the journal says '||m FROM state, (SELECT coalesce(max(rev), 0) AS m FROM revision"
	" WHERE step<>3) WHERE edit_rev<>m",
	"SELECT 'state: generation '||image_gen||', the journal says '||m FROM state, (SELECT coalesce(max(cast(after AS INTEGER)), 0) AS m"
	" FROM journal WHERE op='analysis') WHERE image_gen<>m",
};

/* Appends the first column of every row, a line each. */
static struct err *check_rows(struct edits *e, const char *sql, struct buf *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, sql, &st);
	for (unsigned n = 0; !why && !(why = edits_step_row(e, st, &has_row)) && has_row; n++) {
		const char *s = (const char *)sqlite3_column_text(st, 0);
		if (!s || !strcmp(s, "ok"))
			continue;
		if (n == CHECK_FAULT_MAX) {
			buf_add_str(ret, "and more like these\n");
			break;
		}
		for (; *s; s++)
			buf_add_ch(ret, *s == '\n' ? ' ' : *s);
		buf_add_ch(ret, '\n');
	}
	return why;
}

static struct err *check_directives(struct edits *e, struct buf *ret)
{
	struct buf sql = {0};
	buf_add_str(&sql, "SELECT 'state: newest directive '||directive_rev||', the journal says '||m FROM state,"
		    " (SELECT coalesce(max(rev), 0) AS m FROM journal WHERE op IN (");
	bool is_first = true;
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++) {
		if (!edits_is_directive((enum edits_kind)k))
			continue;
		buf_printf(&sql, "%s'%s'", is_first ? "" : ",", edits_kind_name((enum edits_kind)k));
		is_first = false;
	}
	buf_add(&sql, ")) WHERE directive_rev<>m", 25);
	buf_add_ch(&sql, 0);
	struct err *why = sql.failed ? &err_nomem : check_rows(e, sql.data, ret);
	buf_fini(&sql);
	return why;
}

struct err *edits_check(struct edits *e, struct buf *ret)
{
	struct err *why = edits_exec(e, "BEGIN");
	if (!why)
		why = check_rows(e, "PRAGMA integrity_check", ret);
	for (size_t i = 0; !why && !ret->len && i < ARRAY_LEN(check_rules); i++)
		why = check_rows(e, check_rules[i], ret);
	if (!why && !ret->len)
		why = check_directives(e, ret);
	edits_rollback(e);
	if (why && why->kind == ERR_BAD_INPUT) {
		buf_printf(ret, "%s\n", why->text);
		err_free(why);
		why = NULL;
	}
	return !why && ret->failed ? &err_nomem : why;
}

/* --- salvage --- */

struct salvage {
	sqlite3 *from;
	struct edits to;
	struct edits_writer w;
	struct edits_revision rev;    /* of the revision being written */
	struct map revs;              /* old number to new */
	struct arena arena;
	sqlite3_stmt *entry, *revision;
	uint64_t old_rev;             /* being written; 0 none */
	uint64_t entries, lost;
};

/* The revision that revision `rev` of the new file took back; 0 none. */
static struct err *salvage_target(struct salvage *s, uint64_t rev, uint64_t *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(&s->to, "SELECT target FROM revision WHERE rev=?1", &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)rev);
	why = edits_step_row(&s->to, st, &has_row);
	*ret = has_row ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	return why;
}

/* Writes the revision whose entries were added. */
static struct err *salvage_close_revision(struct salvage *s)
{
	uint64_t was = s->old_rev, rev = s->w.state.rev + 1;
	s->old_rev = 0;
	if (!was || !s->w.seq_cnt)
		return NULL;
	struct err *why = edits_writer_end(&s->w, &s->rev);
	if (!why && !map_put(&s->revs, was, (uint32_t)rev))
		why = &err_nomem;
	if (!why && s->rev.target)
		why = edits_set_undone_by(&s->to, s->rev.target, rev);
	uint64_t redone = 0;
	if (!why && s->rev.step == EDITS_STEP_REDO)
		why = salvage_target(s, s->rev.target, &redone);
	if (!why && redone)
		why = edits_set_undone_by(&s->to, redone, 0);
	s->w.state.rev = s->w.state.edit_rev = rev;
	if (s->w.has_directive)
		s->w.state.directive_rev = rev;
	s->w.seq_first += s->w.seq_cnt;
	s->w.seq_cnt = 0;
	s->w.has_directive = false;
	arena_reset(&s->arena);
	return why;
}

static const char *salvage_text(struct salvage *s, sqlite3_stmt *st, int col, const char *otherwise)
{
	const char *t = sqlite3_column_type(st, col) == SQLITE_NULL ? NULL : (const char *)sqlite3_column_text(st, col);
	return t ? arena_strndup(&s->arena, t, (size_t)sqlite3_column_bytes(st, col)) : otherwise;
}

/* Who and when, as far as it can be read; an undo whose edit is lost becomes an edit. */
static struct err *salvage_open_revision(struct salvage *s, uint64_t rev)
{
	sqlite3_stmt *st = s->revision;
	uint32_t target;
	s->old_rev = rev;
	s->rev = (struct edits_revision){.author = "unknown", .author_kind = "script", .note = "salvaged", .time_ns = 1};
	sqlite3_reset(st);
	sqlite3_bind_int64(st, 1, (sqlite3_int64)rev);
	if (sqlite3_step(st) != SQLITE_ROW)
		return NULL;
	s->rev.time_ns = (uint64_t)sqlite3_column_int64(st, 2);
	s->rev.author = salvage_text(s, st, 3, "unknown");
	s->rev.author_kind = salvage_text(s, st, 4, "script");
	s->rev.note = salvage_text(s, st, 5, NULL);
	int step = sqlite3_column_int(st, 0);
	if ((step == EDITS_STEP_UNDO || step == EDITS_STEP_REDO) && map_find(&s->revs, (uint64_t)sqlite3_column_int64(st, 1), &target)) {
		s->rev.step = (enum edits_step_kind)step;
		s->rev.target = target;
	}
	return s->rev.author && s->rev.author_kind ? NULL : &err_nomem;
}

/* Sets a fact in the new file; what the new file's rules refuse is lost. */
static struct err *salvage_change(struct salvage *s, struct edits_change *c)
{
	uint64_t touched;
	struct err *why = edits_get_fact(&s->to, c, &s->arena, &c->before, &c->before_len, &touched);
	if (why)
		return why;
	bool is_same = c->value ? c->before && c->before_len == c->value_len && !memcmp(c->before, c->value, c->value_len) : !c->before;
	if (is_same)
		return NULL;
	why = edits_writer_add(&s->w, c, touched);
	if (why && edits_is_taken(&s->to)) {
		err_free(why);
		why = NULL;
		s->lost++;
		return NULL;
	}
	s->entries += !why;
	return why;
}

/* kind, addr, sub, value in four columns from `at`. */
static struct err *salvage_row(struct salvage *s, sqlite3_stmt *st, int at)
{
	struct edits_change c = {.va = (uint64_t)sqlite3_column_int64(st, at + 1)};
	const char *kind = (const char *)sqlite3_column_text(st, at);
	if (!kind || !edits_kind_find(kind, &c.kind)) {
		s->lost++;
		return NULL;
	}
	if (c.kind == EDITS_ANALYSIS)
		return NULL;
	c.sub = salvage_text(s, st, at + 2, "");
	c.value = salvage_text(s, st, at + 3, NULL);
	c.value_len = c.value ? (size_t)sqlite3_column_bytes(st, at + 3) : 0;
	return c.sub ? salvage_change(s, &c) : &err_nomem;
}

static struct err *salvage_entry(struct salvage *s, uint64_t seq, bool *ret_is_there)
{
	sqlite3_stmt *st = s->entry;
	struct err *why = NULL;
	sqlite3_reset(st);
	sqlite3_bind_int64(st, 1, (sqlite3_int64)seq);
	*ret_is_there = sqlite3_step(st) == SQLITE_ROW;
	if (!*ret_is_there)
		return NULL;
	uint64_t rev = (uint64_t)sqlite3_column_int64(st, 0);
	if (rev != s->old_rev) {
		why = salvage_close_revision(s);
		if (!why)
			why = salvage_open_revision(s, rev);
	}
	return why ? why : salvage_row(s, st, 1);
}

static uint64_t salvage_max(struct salvage *s, const char *sql)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(s->from, sql, -1, &st, NULL) != SQLITE_OK || sqlite3_step(st) != SQLITE_ROW)
		return 0;
	return (uint64_t)sqlite3_column_int64(st, 0);
}

static struct err *salvage_entries(struct salvage *s)
{
	uint64_t last = salvage_max(s, "SELECT max(seq) FROM journal");
	last = MAX(last, salvage_max(s, "SELECT max(seq_first+seq_cnt)-1 FROM revision"));
	struct err *why = NULL;
	uint64_t missed = 0;
	for (uint64_t seq = 1; !why && (seq <= last || missed < SALVAGE_MISS_MAX); seq++) {
		bool is_there;
		why = salvage_entry(s, seq, &is_there);
		if (is_there) {
			/* Those missed on the way here were there once. */
			s->lost += missed;
			missed = 0;
		} else {
			missed++;
		}
		if (seq == last) {
			s->lost += missed;
			missed = 0;
		}
	}
	return why ? why : salvage_close_revision(s);
}

/* Facts from either end until a bad page: those whose entries are lost. */
static struct err *salvage_facts(struct salvage *s)
{
	static const char *const orders[] = {"SELECT kind, addr, sub, value FROM fact ORDER BY kind, addr, sub",
					     "SELECT kind, addr, sub, value FROM fact ORDER BY kind DESC, addr DESC, sub DESC"};
	struct err *why = salvage_open_revision(s, (uint64_t)INT64_MAX);
	for (size_t i = 0; i < ARRAY_LEN(orders) && !why; i++) {
		_cleanup_stmt_ sqlite3_stmt *st = NULL;
		if (sqlite3_prepare_v2(s->from, orders[i], -1, &st, NULL) != SQLITE_OK)
			continue;
		while (!why && sqlite3_step(st) == SQLITE_ROW)
			why = salvage_row(s, st, 0);
	}
	return why ? why : salvage_close_revision(s);
}

static struct err *salvage_run(struct salvage *s)
{
	bool can_read = sqlite3_prepare_v2(s->from, "SELECT rev, op, addr, sub, after FROM journal WHERE seq=?1", -1, &s->entry, NULL) ==
				SQLITE_OK &&
			sqlite3_prepare_v2(s->from, "SELECT step, target, time_ns, author, author_kind, note FROM revision WHERE rev=?1", -1,
					   &s->revision, NULL) == SQLITE_OK;
	if (!can_read)
		return err_new(ERR_BAD_INPUT, "nothing of it can be read: %s", sqlite3_errmsg(s->from));
	struct err *why = edits_begin(&s->to);
	if (!why)
		why = edits_writer_begin(&s->w, &s->to);
	if (!why)
		why = salvage_entries(s);
	if (!why)
		why = salvage_facts(s);
	if (!why)
		why = edits_salvage_proposals(&s->to, s->from, &s->revs, &s->lost);
	if (!why)
		return edits_end(&s->to);
	edits_rollback(&s->to);
	return why;
}

struct err *edits_salvage(const char *from_path, const char *to_path, uint64_t *ret_entries, uint64_t *ret_lost)
{
	struct stat st;
	if (!lstat(to_path, &st))
		return err_new(ERR_INVALID, "%s: is there already", to_path);
	struct edits *to;
	struct salvage s = {.from = stat(from_path, &st) ? NULL : edits_open_read(from_path, 0)};
	if (!s.from)
		return err_os(errno, "%s", from_path);
	struct err *why = edits_open(to_path, false, &to);
	if (!why) {
		s.to = *to;
		why = err_prefix(salvage_run(&s), "%s", from_path);
		*to = s.to;
		edits_close(to);
	}
	sqlite3_finalize(s.entry);
	sqlite3_finalize(s.revision);
	sqlite3_close_v2(s.from);
	map_fini(&s.revs);
	arena_fini(&s.arena);
	if (why)
		return why;
	*ret_entries = s.entries;
	*ret_lost = s.lost;
	return NULL;
}
