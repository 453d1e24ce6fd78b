/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global.db, and where the journals are. Reading is on the path of every command, so a read opens the file read-only,
 * runs one statement and closes; a write makes the schema when it is not there. SQLite's own locks are the only locks.
 */
#include "session/store_int.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define STORE_BUSY_MS 60000
#define STORE_QUIET_NS 2000000000

static const char store_global_schema[] =
	"CREATE TABLE IF NOT EXISTS stat_cache(dev INTEGER NOT NULL, ino INTEGER NOT NULL, len INTEGER NOT NULL,"
	" mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, hashed_ns INTEGER NOT NULL, sha256 BLOB NOT NULL,"
	" PRIMARY KEY(dev, ino)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS consent(sha256 BLOB NOT NULL, uid INTEGER NOT NULL, time_ns INTEGER NOT NULL,"
	" PRIMARY KEY(sha256, uid)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS native(sha256 BLOB PRIMARY KEY, target BLOB NOT NULL, path TEXT NOT NULL, time_ns INTEGER NOT NULL)"
	" WITHOUT ROWID;";

static struct err *db_error(sqlite3 *db, const char *path)
{
	int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
	const char *why = db ? sqlite3_errmsg(db) : "out of memory";
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return &err_nomem;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_new(ERR_BUSY, "%s: another process holds it", path);
	case SQLITE_READONLY:
		return err_new(ERR_READONLY, "%s: %s", path, why);
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return err_new(ERR_DENIED, "%s: %s", path, why);
	default:
		return err_new(ERR_IO, "%s: %s", path, why);
	}
}

static void db_closep(sqlite3 **db)
{
	sqlite3_close_v2(*db);
}

static void db_finalizep(sqlite3_stmt **st)
{
	sqlite3_finalize(*st);
}
#define _cleanup_db_ _cleanup_(db_closep)
#define _cleanup_stmt_ _cleanup_(db_finalizep)

/* Opens for reading; null when there is none or it cannot be read. */
static sqlite3 *db_open_read(const char *path)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		sqlite3_close_v2(db);
		return NULL;
	}
	sqlite3_busy_timeout(db, STORE_BUSY_MS);
	return db;
}

/* Opens for writing and makes the schema when the file is new. `mode` is the journal mode asked for. */
static struct err *db_open_write(const char *path, const char *schema, const char *mode, sqlite3 **ret)
{
	mode_t was = umask(077);
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(db, STORE_BUSY_MS);
		char pragma[64];
		snprintf(pragma, sizeof(pragma), "PRAGMA journal_mode=%s", mode);
		/* Where WAL cannot work SQLite stays in its rollback mode, which is as safe. */
		(void)sqlite3_exec(db, pragma, NULL, NULL, NULL);
		(void)sqlite3_exec(db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
		rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, schema, NULL, NULL, NULL);
	umask(was);
	if (rc != SQLITE_OK) {
		struct err *e = db_error(db, path);
		sqlite3_close_v2(db);
		return e;
	}
	*ret = db;
	return NULL;
}

static int64_t store_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static char *store_global_path(const struct store *st)
{
	char *path = NULL;
	return asprintf(&path, "%s/global.db", st->root) < 0 ? NULL : path;
}

bool store_find_sha256(struct store *st, const struct file *f, uint8_t ret_sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_global_path(st);
	_cleanup_db_ sqlite3 *db = path ? db_open_read(path) : NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (!db || sqlite3_prepare_v2(db, "SELECT len, mtime_ns, ctime_ns, hashed_ns, sha256 FROM stat_cache"
				      " WHERE dev=?1 AND ino=?2", -1, &q, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_int64(q, 1, (sqlite3_int64)f->dev);
	sqlite3_bind_int64(q, 2, (sqlite3_int64)f->ino);
	if (sqlite3_step(q) != SQLITE_ROW || sqlite3_column_int64(q, 0) != (sqlite3_int64)f->len ||
	    sqlite3_column_int64(q, 1) != f->mtime_ns || sqlite3_column_int64(q, 2) != f->ctime_ns ||
	    sqlite3_column_bytes(q, 4) != 32)
		return false;
	int64_t hashed = sqlite3_column_int64(q, 3);
	if (hashed - f->mtime_ns < STORE_QUIET_NS || hashed - f->ctime_ns < STORE_QUIET_NS)
		return false;
	memcpy(ret_sha256, sqlite3_column_blob(q, 4), 32);
	return true;
}

static int store_insert_sha256(sqlite3 *db, const struct file *f, const uint8_t sha256[32], int64_t now)
{
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO stat_cache(dev, ino, len, mtime_ns, ctime_ns, hashed_ns, sha256)"
				    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", -1, &q, NULL);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(q, 1, (sqlite3_int64)f->dev);
	sqlite3_bind_int64(q, 2, (sqlite3_int64)f->ino);
	sqlite3_bind_int64(q, 3, (sqlite3_int64)f->len);
	sqlite3_bind_int64(q, 4, f->mtime_ns);
	sqlite3_bind_int64(q, 5, f->ctime_ns);
	sqlite3_bind_int64(q, 6, now);
	sqlite3_bind_blob(q, 7, sha256, 32, SQLITE_STATIC);
	return sqlite3_step(q) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(db);
}

struct err *store_put_sha256(struct store *st, const struct file *f, const uint8_t sha256[32])
{
	int64_t now = store_now_ns();
	if (now - f->mtime_ns < STORE_QUIET_NS || now - f->ctime_ns < STORE_QUIET_NS)
		return NULL;
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_global_path(st);
	_cleanup_db_ sqlite3 *db = NULL;
	struct err *e = path ? store_make_root(st) : &err_nomem;
	/* A rollback journal, not WAL: a cache of one-row lookups gains nothing from WAL, and every command would
	 * pay for mapping its shared index. */
	if (!e)
		e = db_open_write(path, store_global_schema, "DELETE", &db);
	if (e)
		return e;
	if (store_insert_sha256(db, f, sha256, now) != SQLITE_OK || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return db_error(db, path);
	return NULL;
}

bool store_has_consent(struct store *st, const uint8_t sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_global_path(st);
	_cleanup_db_ sqlite3 *db = path ? db_open_read(path) : NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (!db || sqlite3_prepare_v2(db, "SELECT 1 FROM consent WHERE sha256=?1 AND uid=?2", -1, &q, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_blob(q, 1, sha256, 32, SQLITE_STATIC);
	sqlite3_bind_int64(q, 2, (sqlite3_int64)geteuid());
	return sqlite3_step(q) == SQLITE_ROW;
}

struct err *store_put_consent(struct store *st, const uint8_t sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_global_path(st);
	_cleanup_db_ sqlite3 *db = NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	struct err *e = path ? store_make_root(st) : &err_nomem;
	if (!e)
		e = db_open_write(path, store_global_schema, "DELETE", &db);
	if (e)
		return e;
	if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO consent(sha256, uid, time_ns) VALUES(?1, ?2, ?3)", -1, &q, NULL) != SQLITE_OK)
		return db_error(db, path);
	sqlite3_bind_blob(q, 1, sha256, 32, SQLITE_STATIC);
	sqlite3_bind_int64(q, 2, (sqlite3_int64)geteuid());
	sqlite3_bind_int64(q, 3, store_now_ns());
	if (sqlite3_step(q) != SQLITE_DONE || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return db_error(db, path);
	return NULL;
}

struct err *store_put_native(struct store *st, const uint8_t sha256[32], const uint8_t target[32], const char *target_path)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_global_path(st);
	_cleanup_db_ sqlite3 *db = NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	struct err *e = path ? store_make_root(st) : &err_nomem;
	if (!e)
		e = db_open_write(path, store_global_schema, "DELETE", &db);
	if (e)
		return e;
	if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO native(sha256, target, path, time_ns) VALUES(?1, ?2, ?3, ?4)", -1, &q, NULL) != SQLITE_OK)
		return db_error(db, path);
	sqlite3_bind_blob(q, 1, sha256, 32, SQLITE_STATIC);
	sqlite3_bind_blob(q, 2, target, 32, SQLITE_STATIC);
	sqlite3_bind_text(q, 3, target_path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 4, store_now_ns());
	if (sqlite3_step(q) != SQLITE_DONE || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return db_error(db, path);
	return NULL;
}

bool store_find_native(struct store *st, const uint8_t sha256[32], uint8_t ret_target[32], char **ret_path)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_global_path(st);
	_cleanup_db_ sqlite3 *db = path ? db_open_read(path) : NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (!db || sqlite3_prepare_v2(db, "SELECT target, path FROM native WHERE sha256=?1", -1, &q, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_blob(q, 1, sha256, 32, SQLITE_STATIC);
	if (sqlite3_step(q) != SQLITE_ROW || sqlite3_column_bytes(q, 0) != 32)
		return false;
	memcpy(ret_target, sqlite3_column_blob(q, 0), 32);
	*ret_path = strdup((const char *)sqlite3_column_text(q, 1));
	return *ret_path;
}

struct err *store_get_state(struct store *st, const uint8_t sha256[32], struct edits_state *ret, struct edits_view **ret_edits)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "edits.db");
	struct err *e = path ? edits_load(path, ret, ret_edits) : &err_nomem;
	if (e || ret->image_gen)
		return e;
	edits_view_unref(*ret_edits);
	return &err_not_found;
}

struct err *store_get_base(struct store *st, const uint8_t sha256[32], struct edits_state *ret, struct edits_view **ret_edits)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "edits.db");
	return path ? edits_load(path, ret, ret_edits) : &err_nomem;
}

char *store_seen_path(const struct store *st, const uint8_t sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "edits.db");
	_cleanup_db_ sqlite3 *db = path ? db_open_read(path) : NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (!db || sqlite3_prepare_v2(db, "SELECT path FROM state", -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
		return NULL;
	const char *seen = (const char *)sqlite3_column_text(q, 0);
	return seen && *seen ? strdup(seen) : NULL;
}

struct err *store_open_edits(const struct store *st, const uint8_t sha256[32], bool is_read_only, struct edits **ret)
{
	_cleanup_free_ char *path = store_target_path(st, sha256, "edits.db");
	struct err *e = !path ? &err_nomem : is_read_only ? NULL : store_make_target(st, sha256);
	return e ? e : edits_open(path, is_read_only, ret);
}

static void store_close_editsp(struct edits **e)
{
	edits_close(*e);
}

struct err *store_publish(struct store *st, const uint8_t sha256[32], const char *target_path, const struct buf *image,
			  const struct edits_state *base)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_(store_close_editsp) struct edits *edits = NULL;
	struct edits_state s;
	struct err *e = store_open_edits(st, sha256, false, &edits);
	/* The write lock is held from here to the commit, so generation numbers cannot collide. */
	if (!e)
		e = edits_publish_begin(edits, &s);
	if (e)
		return e;
	if (s.image_gen != base->image_gen + 1 && s.directive_rev <= s.built_from_rev)
		return edits_publish_end(edits, &s, target_path, false);
	s.built_from_rev = base->rev;
	_cleanup_free_ char *image_path = store_image_path(st, sha256, s.image_gen);
	e = image_path ? file_write_atomic(image_path, image->data, image->len) : &err_nomem;
	struct err *why = edits_publish_end(edits, &s, target_path, !e);
	if (e) {
		err_free(why);
		return e;
	}
	if (why)
		return why;
	store_unlink_old(st, sha256, s.image_gen);
	store_touch_stamp(st, sha256);
	return NULL;
}

static int store_mode_row(void *ctx, int n, char **values, char **names)
{
	(void)names;
	if (n > 0 && values[0])
		snprintf((char *)ctx, 16, "%s", values[0]);
	return 0;
}

struct err *store_try(struct store *st, char ret_mode[16])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = NULL;
	ret_mode[0] = 0;
	struct err *e = store_make_root(st);
	if (e)
		return e;
	if (asprintf(&path, "%s/doctor.%d.db", st->root, (int)getpid()) < 0)
		return &err_nomem;
	sqlite3 *db = NULL;
	e = db_open_write(path, store_global_schema, "WAL", &db);
	if (!e && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		e = db_error(db, path);
	if (!e)
		(void)sqlite3_exec(db, "PRAGMA journal_mode", store_mode_row, ret_mode, NULL);
	sqlite3_close_v2(db);
	unlink(path);
	return e;
}
