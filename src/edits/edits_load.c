/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading without a connection of one's own: the path of every command. While there is no write-ahead log the file holds
 * everything and can be read without SQLite's locks and without its shared index, which is most of what a read would
 * cost. A checkpoint cannot have begun unless a log appeared, so such a read counts when there was none before and
 * after it and the file was not written meanwhile.
 */
#include "edits/edits_int.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool edits_read_state(sqlite3 *db, struct edits_state *ret)
{
	_cleanup_stmt_ sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, edits_state_sql, -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
		return false;
	*ret = (struct edits_state){
		.rev = (uint64_t)sqlite3_column_int64(q, 0),
		.edit_rev = (uint64_t)sqlite3_column_int64(q, 1),
		.directive_rev = (uint64_t)sqlite3_column_int64(q, 2),
		.image_gen = (uint32_t)sqlite3_column_int64(q, 3),
		.built_from_rev = (uint64_t)sqlite3_column_int64(q, 4),
	};
	return true;
}

static void load_closep(sqlite3 **db)
{
	sqlite3_close_v2(*db);
}
#define _cleanup_db_ _cleanup_(load_closep)

/* State and facts through one connection; `*ret_view` null when there are no edits. */
static struct err *load_from(sqlite3 *db, struct edits_state *ret, struct edits_view **ret_view)
{
	*ret_view = NULL;
	if (!edits_read_state(db, ret))
		return &err_not_found;
	return ret->edit_rev ? edits_view_read(db, ret, 0, ret_view) : NULL;
}

static bool load_quiet(const char *path, struct edits_state *ret, struct edits_view **ret_view)
{
	struct buf uri = {0};
	_cleanup_free_ char *wal = NULL;
	struct stat before, after, log;
	if (asprintf(&wal, "%s-wal", path) < 0 || stat(path, &before) || !stat(wal, &log))
		return false;
	buf_add_str(&uri, "file:");
	for (const char *p = path; *p; p++) {
		if (*p == '%' || *p == '?' || *p == '#')
			buf_printf(&uri, "%%%02x", (unsigned)(uint8_t)*p);
		else
			buf_add_ch(&uri, *p);
	}
	buf_add(&uri, "?immutable=1", 13);
	_cleanup_db_ sqlite3 *db = uri.failed ? NULL : edits_open_read(uri.data, SQLITE_OPEN_URI);
	buf_fini(&uri);
	struct err *why = db ? load_from(db, ret, ret_view) : &err_not_found;
	if (!why && stat(wal, &log) && !stat(path, &after) && after.st_ino == before.st_ino &&
	    after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec)
		return true;
	if (!why)
		edits_view_unref(*ret_view);
	err_free(why);
	return false;
}

struct err *edits_load(const char *path, struct edits_state *ret, struct edits_view **ret_view)
{
	struct stat st;
	if (load_quiet(path, ret, ret_view))
		return NULL;
	_cleanup_db_ sqlite3 *db = stat(path, &st) ? NULL : edits_open_read(path, 0);
	if (!db || sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return &err_not_found;
	struct err *why = load_from(db, ret, ret_view);
	int code = sqlite3_errcode(db);
	if (why == &err_not_found && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB))
		return edits_error(&(struct edits){.db = db, .path = (char *)path});
	return why;
}
