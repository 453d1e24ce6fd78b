/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo and redo. To take revision R back is to write a revision whose entries are R's in reverse order with before and
 * after changed places, provided that every fact still is what R made of it. Undo takes back an edit, redo takes back
 * an undo; what is taken back says by whom in `undone_by`, and a redone edit stands again.
 */
#include "edits/edits_int.h"

#include <inttypes.h>
#include <string.h>

/* A revision to take back. */
struct victim {
	uint64_t rev, target, seq_first, seq_cnt;
	const char *author, *note; /* of the edit at the bottom of it */
};

/* ?1 is the author or null for anybody, ?2 what it must be older than: a run of steps looks at each revision once. */
static const char undo_sql[] =
	"SELECT rev, target, seq_first, seq_cnt, author, note FROM revision WHERE undone_by IS NULL AND step=0"
	" AND (?1 IS NULL OR author=?1) AND rev<?2 ORDER BY rev DESC LIMIT 1";
/* An undo that is newer than every edit (?3): else its redo would come back under what was done since. */
static const char redo_sql[] =
	"SELECT u.rev, u.target, u.seq_first, u.seq_cnt, t.author, t.note FROM revision u JOIN revision t ON t.rev=u.target"
	" WHERE u.undone_by IS NULL AND u.step=1 AND (?1 IS NULL OR t.author=?1) AND u.rev<?2 AND u.rev>?3 ORDER BY u.rev DESC LIMIT 1";
/* Edits among the revisions after ?2. */
static const char newest_sql[] = "SELECT max(rev) FROM revision WHERE rev>?2 AND step=0 AND (?1 IS NULL OR author=?1)";

struct undo_ask {
	bool is_redo;
	const char *author;         /* whose edits; null: anybody's */
	uint64_t only_rev;          /* the one edit meant; 0: the newest */
	struct edits_revision rev;  /* who does this */
	bool is_dry_run;
	/* From step to step: */
	uint64_t below;             /* the revision that was taken back last */
	uint64_t seen, newest_edit; /* up to revision `seen` the newest edit is this */
};

static struct err *column_copy(sqlite3_stmt *st, int col, struct arena *a, const char **ret)
{
	*ret = NULL;
	if (sqlite3_column_type(st, col) == SQLITE_NULL)
		return NULL;
	const char *s = (const char *)sqlite3_column_text(st, col);
	*ret = s ? arena_strndup(a, s, (size_t)sqlite3_column_bytes(st, col)) : NULL;
	return *ret ? NULL : &err_nomem;
}

/* Others may edit between two steps: what is new since the last one is looked at. */
static struct err *find_newest_edit(struct edits *e, struct undo_ask *ask, uint64_t rev)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, newest_sql, &st);
	if (why)
		return why;
	if (ask->author)
		sqlite3_bind_text(st, 1, ask->author, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)ask->seen);
	why = edits_step_row(e, st, &has_row);
	if (!why && has_row)
		ask->newest_edit = MAX(ask->newest_edit, (uint64_t)sqlite3_column_int64(st, 0));
	ask->seen = rev;
	return why;
}

static struct err *find_victim(struct edits *e, struct undo_ask *ask, struct arena *a, struct victim *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, ask->is_redo ? redo_sql : undo_sql, &st);
	if (why)
		return why;
	if (ask->author)
		sqlite3_bind_text(st, 1, ask->author, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)ask->below);
	if (ask->is_redo)
		sqlite3_bind_int64(st, 3, (sqlite3_int64)ask->newest_edit);
	why = edits_step_row(e, st, &has_row);
	if (why || !has_row)
		return why ? why : &err_not_found;
	*ret = (struct victim){.rev = (uint64_t)sqlite3_column_int64(st, 0), .target = (uint64_t)sqlite3_column_int64(st, 1),
			       .seq_first = (uint64_t)sqlite3_column_int64(st, 2), .seq_cnt = (uint64_t)sqlite3_column_int64(st, 3)};
	if (ask->only_rev && ret->rev != ask->only_rev)
		return &err_not_found;
	why = column_copy(st, 4, a, &ret->author);
	return why ? why : column_copy(st, 5, a, &ret->note);
}

static struct err *stale_at(const struct edits *e, const struct edits_change *c, const char *what)
{
	return err_new(ERR_STALE, "%s at 0x%" PRIx64 "%s%s: %s", edits_kind_name(c->kind), c->va + e->bias, c->sub[0] ? " " : "", c->sub, what);
}

/* The entry the other way round, if its fact is still what the entry made of it. */
static struct err *take_back_entry(struct edits_writer *w, sqlite3_stmt *st, struct arena *a)
{
	struct edits_change c = {.va = (uint64_t)sqlite3_column_int64(st, 1)};
	const char *now = NULL, *op = NULL, *after = NULL;
	size_t now_len = 0;
	uint64_t touched;
	struct err *why = column_copy(st, 0, a, &op);
	if (!why)
		why = column_copy(st, 2, a, &c.sub);
	if (!why)
		why = column_copy(st, 3, a, &c.value);
	if (!why)
		why = column_copy(st, 4, a, &after);
	if (why)
		return why;
	if (!op || !c.sub || !edits_kind_find(op, &c.kind))
		return err_new(ERR_UNSUPPORTED, "%s: this scry does not know edits of this kind", op ? op : "?");
	c.value_len = (size_t)sqlite3_column_bytes(st, 3);
	size_t after_len = (size_t)sqlite3_column_bytes(st, 4);
	why = edits_get_fact(w->e, &c, a, &now, &now_len, &touched);
	if (why)
		return why;
	if (!now != !after || (now && (now_len != after_len || memcmp(now, after, now_len))))
		return stale_at(w->e, &c, "was changed since");
	c.before = after;
	c.before_len = after_len;
	why = edits_writer_add(w, &c, touched);
	/* The index of names: somebody gave the old name to another address. */
	if (why && c.kind == EDITS_NAME && edits_is_taken(w->e)) {
		err_free(why);
		why = stale_at(w->e, &c, "its name is now another address's");
	}
	return why;
}

static struct err *take_back_entries(struct edits_writer *w, const struct victim *v, struct arena *a)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(w->e, "SELECT op, addr, sub, before, after FROM journal WHERE seq>=?1 AND seq<?2"
					" ORDER BY seq DESC", &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)v->seq_first);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)(v->seq_first + v->seq_cnt));
	while (!(why = edits_step_row(w->e, st, &has_row)) && has_row) {
		why = take_back_entry(w, st, a);
		if (why)
			return why;
	}
	return why;
}

struct err *edits_set_undone_by(struct edits *e, uint64_t rev, uint64_t by)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	struct err *why = edits_prepare(e, "UPDATE revision SET undone_by=?2 WHERE rev=?1", &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)rev);
	if (by)
		sqlite3_bind_int64(st, 2, (sqlite3_int64)by);
	return edits_run(e, st);
}

static struct err *take_back(struct edits *e, struct undo_ask *ask, struct arena *a, struct edits_step *ret)
{
	struct edits_writer w;
	struct victim v;
	struct err *why = edits_writer_begin(&w, e);
	if (!why && ask->is_redo)
		why = find_newest_edit(e, ask, w.state.rev);
	if (!why)
		why = find_victim(e, ask, a, &v);
	if (!why)
		why = take_back_entries(&w, &v, a);
	if (why)
		return why;
	struct edits_revision r = ask->rev;
	r.step = ask->is_redo ? EDITS_STEP_REDO : EDITS_STEP_UNDO;
	r.target = v.rev;
	uint64_t rev = w.state.rev + 1;
	why = edits_writer_end(&w, &r);
	if (!why)
		why = edits_set_undone_by(e, v.rev, rev);
	if (!why && ask->is_redo)
		why = edits_set_undone_by(e, v.target, 0);
	if (why)
		return why;
	*ret = (struct edits_step){.rev = rev, .target = v.rev, .cnt = v.seq_cnt, .author = v.author, .note = v.note};
	return NULL;
}

static struct err *take_back_steps(struct edits *e, unsigned steps, struct undo_ask *ask, struct arena *a,
				   struct edits_steps *ret)
{
	uint32_t cnt = 0, cap = 0;
	struct edits_step *out = NULL;
	struct err *why = NULL;
	while (cnt < steps && !why) {
		struct edits_step one;
		if (cnt == cap) {
			struct edits_step *grown = ARENA_ARRAY(a, struct edits_step, cap * 2 + 4);
			if (!grown) {
				why = &err_nomem;
				break;
			}
			if (cnt)
				memcpy(grown, out, cnt * sizeof(*out));
			out = grown;
			cap = cap * 2 + 4;
		}
		why = edits_begin(e);
		if (why)
			break;
		why = take_back(e, ask, a, &one);
		if (why || ask->is_dry_run)
			edits_rollback(e);
		else
			why = edits_end(e);
		if (!why) {
			out[cnt++] = one;
			ask->below = one.target;
		}
		if (ask->is_dry_run)
			break;
	}
	*ret = (struct edits_steps){out, cnt};
	return why == &err_not_found ? NULL : why;
}

static struct err *undo_ask(bool is_redo, const char *author, const struct edits_opts *opts, struct arena *a, struct undo_ask *ret)
{
	const char *who = opts->author && *opts->author ? opts->author : edits_login(a);
	*ret = (struct undo_ask){.is_redo = is_redo, .author = author, .is_dry_run = opts->is_dry_run, .below = INT64_MAX,
				 .rev = {.author = who, .note = opts->note, 
					 .author_kind = edits_author_kind_name(opts->author_kind)}};
	return who ? NULL : &err_nomem;
}

struct err *edits_undo(struct edits *e, unsigned steps, const char *author, const struct edits_opts *opts, struct arena *a,
		       struct edits_steps *ret)
{
	struct undo_ask ask;
	struct err *why = undo_ask(false, author, opts, a, &ask);
	return why ? why : take_back_steps(e, steps, &ask, a, ret);
}

struct err *edits_redo(struct edits *e, unsigned steps, const char *author, const struct edits_opts *opts, struct arena *a,
		       struct edits_steps *ret)
{
	struct undo_ask ask;
	struct err *why = undo_ask(true, author, opts, a, &ask);
	return why ? why : take_back_steps(e, steps, &ask, a, ret);
}

struct err *edits_undo_rev(struct edits *e, uint64_t rev, const struct edits_opts *opts, struct arena *a, struct edits_steps *ret)
{
	struct undo_ask ask;
	struct err *why = undo_ask(false, NULL, opts, a, &ask);
	ask.only_rev = rev;
	ask.below = rev < INT64_MAX ? rev + 1 : INT64_MAX;
	if (!why)
		why = take_back_steps(e, 1, &ask, a, ret);
	if (why || ret->cnt)
		return why;
	return err_new(ERR_NOT_FOUND, "revision %" PRIu64 " is no edit that stands", rev);
}
