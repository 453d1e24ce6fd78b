/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: its tables, how it is opened, and what SQLite's results mean. SQLite's own locks are the only locks, and a file
 * that SQLite calls damaged is never deleted or made anew here.
 */
#include "edits/edits_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EDITS_VERSION 1
#define EDITS_BUSY_MS 30000

static const struct { const char *name; bool is_directive; } edits_kinds[EDITS_KIND_COUNT] = {
	[EDITS_NAME] = {"rename", false},
	[EDITS_COMMENT] = {"comment", false},
	[EDITS_TYPE] = {"retype", false},
	[EDITS_PROTOTYPE] = {"set_prototype", false},
	[EDITS_ITEM] = {"define", true},
	[EDITS_FORMAT] = {"format", false},
	[EDITS_BOOKMARK] = {"bookmark", false},
	[EDITS_PATCH] = {"patch", false},
	[EDITS_BOUNDS] = {"bounds", true},
	[EDITS_FLAGS] = {"flags", true},
	[EDITS_TABLE] = {"jump_table", true},
	[EDITS_DECL] = {"declare", false},
	[EDITS_LOAD] = {"load", true},
	[EDITS_ANALYSIS] = {"analysis", false},
};

const char *edits_kind_name(enum edits_kind k)
{
	return (unsigned)k < EDITS_KIND_COUNT ? edits_kinds[k].name : "";
}

bool edits_kind_find(const char *name, enum edits_kind *ret)
{
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++) {
		if (!strcmp(edits_kinds[k].name, name)) {
			*ret = (enum edits_kind)k;
			return true;
		}
	}
	return false;
}

bool edits_has_va(enum edits_kind k)
{
	return k != EDITS_DECL && k != EDITS_LOAD && k != EDITS_ANALYSIS;
}

bool edits_is_directive(enum edits_kind k)
{
	return (unsigned)k < EDITS_KIND_COUNT && edits_kinds[k].is_directive;
}

const char *edits_step_name(unsigned step)
{
	static const char *const names[] = {"edit", "undo", "redo", "analysis"};
	return step < ARRAY_LEN(names) ? names[step] : "";
}

/*
 * Revisions and entries are only ever added; of an old row nothing changes but `undone_by`. `fact` and the numbers in
 * `state` follow from them (edits_check.c proves it). A fact that was taken away keeps its row, without a value, so that
 * one knows when.
 */
static const char edits_schema_sql[] =
	"CREATE TABLE state(id INTEGER PRIMARY KEY CHECK(id = 1), rev INTEGER NOT NULL, edit_rev INTEGER NOT NULL,"
	" directive_rev INTEGER NOT NULL, image_gen INTEGER NOT NULL, built_from_rev INTEGER NOT NULL, path BLOB NOT NULL);"
	"CREATE TABLE revision(rev INTEGER PRIMARY KEY, step INTEGER NOT NULL, target INTEGER, undone_by INTEGER,"
	" time_ns INTEGER NOT NULL, author TEXT NOT NULL, author_kind TEXT NOT NULL, note TEXT, seq_first INTEGER NOT NULL,"
	" seq_cnt INTEGER NOT NULL);"
	"CREATE INDEX revision_stands ON revision(step, rev) WHERE undone_by IS NULL AND step < 2;"
	"CREATE TABLE journal(seq INTEGER PRIMARY KEY, rev INTEGER NOT NULL, op TEXT NOT NULL, addr INTEGER, sub TEXT NOT NULL,"
	" before TEXT, after TEXT);"
	"CREATE TABLE fact(kind TEXT NOT NULL, addr INTEGER NOT NULL, sub TEXT NOT NULL, value TEXT, rev INTEGER NOT NULL,"
	" PRIMARY KEY(addr, kind, sub)) WITHOUT ROWID;"
	"CREATE UNIQUE INDEX fact_name ON fact(value) WHERE kind = 'rename' AND value IS NOT NULL;"
	"INSERT INTO state VALUES(1, 0, 0, 0, 0, 0, x'');"
	"PRAGMA user_version = 1;";
_Static_assert(EDITS_VERSION == 1, "the schema states its version");

const char *edits_schema(void)
{
	return edits_schema_sql;
}

const char edits_state_sql[] = "SELECT rev, edit_rev, directive_rev, image_gen, built_from_rev FROM state";

#define ROW "(?,?,?,?,?,?,?)"
#define ROW_8 ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW
_Static_assert(EDITS_BATCH == 32, "EDITS_ST_PUT_ENTRIES has four times eight rows");

static const char *const edits_sql[EDITS_ST_COUNT] = {
	[EDITS_ST_STATE] = edits_state_sql,
	[EDITS_ST_FACT] = "SELECT value, rev FROM fact WHERE kind=?1 AND addr=?2 AND sub=?3",
	[EDITS_ST_NAME] = "SELECT addr FROM fact WHERE kind='rename' AND value IS NOT NULL AND value=?1",
	/* FAIL: a row that breaks a rule is not written, and there is no other to take back. */
	[EDITS_ST_NEW_FACT] = "INSERT OR FAIL INTO fact(kind, addr, sub, value, rev) VALUES(?1, ?2, ?3, ?4, ?5)",
	[EDITS_ST_SET_FACT] = "UPDATE OR FAIL fact SET value=?4, rev=?5 WHERE kind=?1 AND addr=?2 AND sub=?3",
	[EDITS_ST_PUT_ENTRY] = "INSERT INTO journal(seq, rev, op, addr, sub, before, after) VALUES" ROW,
	[EDITS_ST_PUT_ENTRIES] = "INSERT INTO journal(seq, rev, op, addr, sub, before, after) VALUES" ROW_8 "," ROW_8 "," ROW_8 "," ROW_8,
	[EDITS_ST_NEXT_SEQ] = "SELECT seq FROM journal ORDER BY seq DESC LIMIT 1",
	[EDITS_ST_PUT_REVISION] = "INSERT INTO revision(rev, step, target, time_ns, author, author_kind, note, seq_first, seq_cnt)"
				  " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[EDITS_ST_PUT_STATE] = "UPDATE state SET rev=?1, edit_rev=?2, directive_rev=?3",
};

/* --- results --- */

/* Why the file cannot be written, as the system says it; SQLite only says that some file could not be opened. */
static int write_errno(const char *path)
{
	if (!access(path, W_OK))
		return 0;
	if (errno != ENOENT)
		return errno;
	_cleanup_free_ char *folder = strdup(path);
	char *slash = folder ? strrchr(folder, '/') : NULL;
	if (slash)
		*slash = 0;
	return folder && access(slash ? folder : ".", W_OK) ? errno : 0;
}

struct err *edits_error(const struct edits *e)
{
	int code = e->db ? sqlite3_errcode(e->db) : SQLITE_NOMEM;
	const char *why = e->db ? sqlite3_errmsg(e->db) : "out of memory";
	int os = e->db ? sqlite3_system_errno(e->db) : 0;
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return &err_nomem;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_fix(err_new(ERR_BUSY, "%s: another process is writing", e->path), "try again");
	case SQLITE_READONLY:
		return err_new(ERR_READONLY, "%s: %s", e->path, why);
	case SQLITE_CANTOPEN:
		os = e->path && write_errno(e->path) ? write_errno(e->path) : os;
		if (os == EROFS)
			return err_new(ERR_READONLY, "%s: the file system is read-only", e->path);
		if (os == EACCES || os == EPERM)
			return err_new(ERR_DENIED, "%s: %s", e->path, strerror(os));
		return err_new(ERR_IO, "%s: %s", e->path, os ? strerror(os) : why);
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return err_new(ERR_DENIED, "%s: %s", e->path, why);
	case SQLITE_FULL:
		return err_fix(err_new(ERR_IO, "%s: the disk is full; nothing was changed", e->path), "make room and try again");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_fix(err_new(ERR_BAD_INPUT, "%s: is damaged: %s", e->path, why), "scry salvage FILE saves what can be read");
	default:
		return err_new(ERR_IO, "%s: %s%s%s", e->path, why, os ? ": " : "", os ? strerror(os) : "");
	}
}

struct err *edits_exec(struct edits *e, const char *sql)
{
	return sqlite3_exec(e->db, sql, NULL, NULL, NULL) == SQLITE_OK ? NULL : edits_error(e);
}

struct err *edits_prepare(struct edits *e, const char *sql, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(e->db, sql, -1, ret, NULL) == SQLITE_OK ? NULL : edits_error(e);
}

struct err *edits_stmt(struct edits *e, enum edits_stmt which, sqlite3_stmt **ret)
{
	sqlite3_stmt *st = e->st[which];
	if (!st && sqlite3_prepare_v3(e->db, edits_sql[which], -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK)
		return edits_error(e);
	e->st[which] = st;
	sqlite3_reset(st);
	*ret = st;
	return NULL;
}

struct err *edits_run(struct edits *e, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	struct err *why = rc == SQLITE_DONE ? NULL : edits_error(e);
	sqlite3_reset(st);
	return why;
}

struct err *edits_step_row(struct edits *e, sqlite3_stmt *st, bool *ret_row)
{
	int rc = sqlite3_step(st);
	*ret_row = rc == SQLITE_ROW;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? NULL : edits_error(e);
}

static void edits_reset_all(struct edits *e)
{
	for (unsigned i = 0; i < EDITS_ST_COUNT; i++)
		sqlite3_reset(e->st[i]);
}

struct err *edits_begin(struct edits *e)
{
	return edits_exec(e, "BEGIN IMMEDIATE");
}

void edits_rollback(struct edits *e)
{
	edits_reset_all(e);
	if (!sqlite3_get_autocommit(e->db))
		(void)sqlite3_exec(e->db, "ROLLBACK", NULL, NULL, NULL);
}

struct err *edits_end(struct edits *e)
{
	edits_reset_all(e);
	struct err *why = edits_exec(e, "COMMIT");
	if (why)
		edits_rollback(e);
	return why;
}

/* --- opening --- */

/* Short waits of even length: with SQLite's own growing ones a writer can starve behind another that never pauses. */
static int edits_on_busy(void *ctx, int n)
{
	(void)ctx;
	struct timespec t = {0, 1000000};
	if (n >= EDITS_BUSY_MS)
		return 0;
	nanosleep(&t, NULL);
	return 1;
}

sqlite3 *edits_open_read(const char *name, int flags)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | flags, NULL) != SQLITE_OK) {
		sqlite3_close_v2(db);
		return NULL;
	}
	sqlite3_busy_handler(db, edits_on_busy, NULL);
	return db;
}

static struct err *edits_version(struct edits *e, int *ret)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	bool has_row = false;
	struct err *why = edits_prepare(e, "PRAGMA user_version", &st);
	if (!why)
		why = edits_step_row(e, st, &has_row);
	if (!why)
		*ret = has_row ? sqlite3_column_int(st, 0) : 0;
	return why;
}

/* Version 0 with tables in it is a file from before there was a journal: it says nothing that is not in the images. */
static struct err *edits_make_tables(struct edits *e)
{
	int version = 0;
	struct err *why = edits_begin(e);
	if (!why)
		why = edits_version(e, &version);
	if (!why && !version)
		why = edits_exec(e, "DROP TABLE IF EXISTS journal; DROP TABLE IF EXISTS state");
	if (!why && !version)
		why = edits_exec(e, edits_schema_sql);
	if (!why)
		return edits_end(e);
	edits_rollback(e);
	return why;
}

static struct err *edits_setup(struct edits *e, bool is_read_only)
{
	int version = 0;
	sqlite3_busy_handler(e->db, edits_on_busy, NULL);
	struct err *why = NULL;
	if (!is_read_only) {
		/* EXTRA is FULL, and syncs the folder when a rollback journal is deleted: else a power cut can bring the
		 * journal back and with it the state before. Where WAL cannot work SQLite stays in that mode. */
		why = edits_exec(e, "PRAGMA synchronous=EXTRA");
		(void)sqlite3_exec(e->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
	}
	if (!why)
		why = edits_version(e, &version);
	if (!why && version > EDITS_VERSION)
		why = err_fix(err_new(ERR_BAD_INPUT, "%s: was written by a newer scry (version %d)", e->path, version), "use that scry");
	if (!why && !version)
		why = is_read_only ? err_new(ERR_NOT_FOUND, "%s: holds no journal", e->path) : edits_make_tables(e);
	return why;
}

struct err *edits_open(const char *path, bool is_read_only, struct edits **ret)
{
	struct stat st;
	if (is_read_only && stat(path, &st) && errno == ENOENT)
		return err_new(ERR_NOT_FOUND, "%s: there is none", path);
	struct edits *e = calloc(1, sizeof(*e));
	if (!e)
		return &err_nomem;
	e->path = strdup(path);
	int flags = SQLITE_OPEN_NOMUTEX | (is_read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	mode_t was = umask(077);
	struct err *why = !e->path ? &err_nomem : sqlite3_open_v2(path, &e->db, flags, NULL) == SQLITE_OK ? NULL : edits_error(e);
	if (!why)
		why = edits_setup(e, is_read_only);
	umask(was);
	if (why) {
		edits_close(e);
		return why;
	}
	*ret = e;
	return NULL;
}

void edits_close(struct edits *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < EDITS_ST_COUNT; i++)
		sqlite3_finalize(e->st[i]);
	sqlite3_close_v2(e->db);
	free(e->path);
	free(e);
}
