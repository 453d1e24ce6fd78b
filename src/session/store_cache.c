/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.db of a target's folder: what can be computed again. Nothing here is an error: what cannot be read is not there, and a file
 * that is damaged or somebody else's is thrown away by who next writes.
 */
#include "session/store_int.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_BUSY_MS 3000
#define CACHE_VALUE_MAX (64u << 10)
#define CACHE_VERSION 1

static const char cache_schema[] =
	"CREATE TABLE IF NOT EXISTS entry(kind TEXT NOT NULL, addr INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
	" sum INTEGER NOT NULL, PRIMARY KEY(kind, addr)) WITHOUT ROWID; PRAGMA user_version=1";

static void cache_closep(sqlite3 **db)
{
	sqlite3_close_v2(*db);
}

static void cache_finalizep(sqlite3_stmt **q)
{
	sqlite3_finalize(*q);
}
#define _cleanup_db_ _cleanup_(cache_closep)
#define _cleanup_stmt_ _cleanup_(cache_finalizep)

/* FNV-1a over key and value: SQLite does not see every damaged byte. */
static int64_t cache_sum(const uint8_t *key, const uint8_t *value, uint32_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (uint32_t i = 0; i < 32 + len; i++)
		h = (h ^ (i < 32 ? key[i] : value[i - 32])) * 0x100000001b3u;
	return (int64_t)h;
}

static int cache_version(sqlite3 *db)
{
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
		return -1;
	return sqlite3_column_int(q, 0);
}

/* For reading; null when there is none of ours. */
static sqlite3 *cache_open_read(const char *path)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
		sqlite3_busy_timeout(db, CACHE_BUSY_MS);
		if (cache_version(db) == CACHE_VERSION)
			return db;
	}
	sqlite3_close_v2(db);
	return NULL;
}

/* One row; false when it is damaged. */
static bool cache_row(sqlite3_stmt *q, struct arena *a, struct store_cached *ret)
{
	const uint8_t *key = sqlite3_column_blob(q, 1), *value = sqlite3_column_blob(q, 2);
	int key_len = sqlite3_column_bytes(q, 1), len = sqlite3_column_bytes(q, 2);
	if (key_len != 32 || !key || !value || len <= 0 || (uint32_t)len > CACHE_VALUE_MAX ||
	    sqlite3_column_int64(q, 3) != cache_sum(key, value, (uint32_t)len))
		return false;
	ret->addr = (uint64_t)sqlite3_column_int64(q, 0);
	memcpy(ret->key, key, 32);
	ret->value = arena_alloc(a, (size_t)len);
	ret->len = (uint32_t)len;
	if (ret->value)
		memcpy(ret->value, value, (size_t)len);
	return ret->value;
}

struct store_cached_list store_cache_load(struct store *st, const uint8_t sha256[32], const char *kind, uint64_t from, uint64_t to,
					  struct arena *a)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "cache.db");
	_cleanup_db_ sqlite3 *db = path ? cache_open_read(path) : NULL;
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	struct store_cached_list l = {0};
	uint32_t cap = 0;
	if (!db || sqlite3_prepare_v2(db, "SELECT addr, key, value, sum FROM entry WHERE kind=?1 AND addr BETWEEN ?2 AND ?3 ORDER BY addr", -1,
				      &q, NULL) != SQLITE_OK)
		return l;
	sqlite3_bind_text(q, 1, kind, -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 2, (sqlite3_int64)from);
	sqlite3_bind_int64(q, 3, (sqlite3_int64)to);
	while (sqlite3_step(q) == SQLITE_ROW) {
		if (l.cnt == cap) {
			cap = cap * 2 + 16;
			struct store_cached *more = ARENA_ARRAY(a, struct store_cached, cap);
			if (!more)
				return l;
			if (l.cnt)
				memcpy(more, l.rows, l.cnt * sizeof(*more));
			l.rows = more;
		}
		l.cnt += cache_row(q, a, &l.rows[l.cnt]);
	}
	return l;
}

/* Reads every row; false when one is damaged. */
static bool cache_is_fine(sqlite3 *db, uint64_t *ret_cnt)
{
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	struct arena a = {0};
	bool ok = sqlite3_prepare_v2(db, "SELECT addr, key, value, sum FROM entry", -1, &q, NULL) == SQLITE_OK;
	int rc = SQLITE_DONE;
	*ret_cnt = 0;
	while (ok && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		struct store_cached row;
		ok = cache_row(q, &a, &row);
		arena_reset(&a);
		++*ret_cnt;
	}
	arena_fini(&a);
	return ok && rc == SQLITE_DONE;
}

static bool cache_insert(sqlite3 *db, const char *kind, const struct store_cached *rows, uint32_t cnt)
{
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO entry(kind, addr, key, value, sum) VALUES(?1, ?2, ?3, ?4, ?5)", -1, &q, NULL) !=
	    SQLITE_OK)
		return false;
	for (uint32_t i = 0; i < cnt; i++) {
		sqlite3_bind_text(q, 1, kind, -1, SQLITE_STATIC);
		sqlite3_bind_int64(q, 2, (sqlite3_int64)rows[i].addr);
		sqlite3_bind_blob(q, 3, rows[i].key, 32, SQLITE_STATIC);
		sqlite3_bind_blob(q, 4, rows[i].value, (int)rows[i].len, SQLITE_STATIC);
		sqlite3_bind_int64(q, 5, cache_sum(rows[i].key, rows[i].value, rows[i].len));
		if (sqlite3_step(q) != SQLITE_DONE)
			return false;
		sqlite3_reset(q);
	}
	return true;
}

/* `*ret_is_ours` is false when the file is damaged or of another make. */
static bool cache_write(const char *path, const char *kind, const struct store_cached *rows, uint32_t cnt, bool *ret_is_ours)
{
	_cleanup_db_ sqlite3 *db = NULL;
	mode_t was = umask(077);
	int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(db, CACHE_BUSY_MS);
		rc = sqlite3_exec(db, "PRAGMA synchronous=OFF; BEGIN IMMEDIATE", NULL, NULL, NULL);
	}
	bool is_open = rc == SQLITE_OK;
	int version = is_open ? cache_version(db) : 0;
	if (is_open && version == 0)
		rc = sqlite3_exec(db, cache_schema, NULL, NULL, NULL);
	uint64_t had;
	bool is_fine = rc == SQLITE_OK && version >= 0 && version <= CACHE_VERSION && cache_is_fine(db, &had);
	int why = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
	bool ok = is_fine && cache_insert(db, kind, rows, cnt) && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
	umask(was);
	/* A disk that is full, locked or not ours to write says nothing about the file. */
	*ret_is_ours = is_fine || why == SQLITE_NOMEM || why == SQLITE_BUSY || why == SQLITE_LOCKED || why == SQLITE_READONLY ||
		       why == SQLITE_PERM || why == SQLITE_FULL || why == SQLITE_IOERR || why == SQLITE_CANTOPEN;
	return ok;
}

bool store_cache_put(struct store *st, const uint8_t sha256[32], const char *kind, const struct store_cached *rows, uint32_t cnt)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "cache.db");
	_cleanup_free_ char *journal = store_target_path(st, sha256, "cache.db-journal");
	bool is_ours = true;
	struct err *e = path && journal ? store_make_target(st, sha256) : &err_nomem;
	if (e) {
		err_free(e);
		return false;
	}
	bool ok = cache_write(path, kind, rows, cnt, &is_ours);
	if (!ok && !is_ours && !unlink(path)) {
		(void)unlink(journal);
		ok = cache_write(path, kind, rows, cnt, &is_ours);
	}
	return ok;
}

/* SQLite counts the changes of a file in its header (fileformat2, 1.3.7). */
uint64_t store_cache_stamp(struct store *st, const uint8_t sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "cache.db");
	_cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	uint8_t cnt[4] = {0};
	struct stat s;
	if (fd < 0 || fstat(fd, &s) || pread(fd, cnt, sizeof(cnt), 24) != sizeof(cnt))
		return 0;
	return (uint64_t)s.st_ino << 32 | (uint64_t)cnt[0] << 24 | (uint64_t)cnt[1] << 16 | (uint64_t)cnt[2] << 8 | cnt[3];
}

enum store_cache_state store_cache_check(struct store *st, const uint8_t sha256[32], uint64_t *ret_cnt, uint64_t *ret_bytes)
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "cache.db");
	struct stat s;
	*ret_cnt = *ret_bytes = 0;
	if (!path || stat(path, &s))
		return STORE_CACHE_NONE;
	*ret_bytes = (uint64_t)s.st_size;
	_cleanup_db_ sqlite3 *db = cache_open_read(path);
	return db && cache_is_fine(db, ret_cnt) ? STORE_CACHE_FINE : STORE_CACHE_DAMAGED;
}
