/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a project's index: opening, slots, sweeping, and what is remembered of paths. Finding is in ses_index_find.c.
 *
 * An entry's id is (slot, 31 bits; string, 1 bit; number, 32 bits): entries of a slot lie together, in both the table and the
 * text index, and a slot that is dead is skipped by its number. The text index holds no text (content=''), so nothing has
 * to be deleted from it entry by entry; it is made anew from the entries when half of it is dead.
 */
#include "session/ses_index.h"

#include "session/ses_index_int.h"

#include "session/store_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define INDEX_VERSION 1
#define INDEX_BUSY_MS 60000
#define BATCH 512            /* rows between which the lock is given back */
#define SWEEP_MIN 20000

static const char schema[] =
	"CREATE TABLE note(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE path(path TEXT PRIMARY KEY, sha256 BLOB NOT NULL, was_sha256 BLOB, dev INTEGER, ino INTEGER, len INTEGER,"
	" mtime_ns INTEGER, ctime_ns INTEGER, view INTEGER, va INTEGER, sub INTEGER, top_va INTEGER, top_sub INTEGER) WITHOUT ROWID;"
	"CREATE TABLE slot(id INTEGER PRIMARY KEY AUTOINCREMENT, sha256 BLOB NOT NULL, part INTEGER NOT NULL, gen INTEGER, rev INTEGER,"
	" stamp_ns INTEGER, name_cnt INTEGER, string_cnt INTEGER, is_live INTEGER NOT NULL);"
	"CREATE INDEX slot_of ON slot(sha256, part) WHERE is_live;"
	"CREATE TABLE entry(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, va INTEGER NOT NULL, text TEXT NOT NULL, readable TEXT,"
	" version TEXT, library TEXT);"
	"CREATE INDEX entry_link ON entry(text) WHERE kind < 2;"
	"CREATE TABLE gram(slot INTEGER, is_string INTEGER, gram INTEGER, cnt INTEGER, ids BLOB, PRIMARY KEY(slot, is_string, gram))"
	" WITHOUT ROWID;"
	"CREATE VIRTUAL TABLE name_text USING fts5(text, content='', detail=none, columnsize=0, tokenize='trigram');"
	"CREATE VIRTUAL TABLE string_text USING fts5(text, content='', detail=none, columnsize=0, tokenize='trigram');";

static const char *const sql[INDEX_STMT_COUNT] = {
	[INDEX_ADD_NAME] = "INSERT INTO name_text(rowid, text) VALUES(?1, ?2)",
	[INDEX_ADD_STRING] = "INSERT INTO string_text(rowid, text) VALUES(?1, ?2)",
	[INDEX_ADD_ENTRY] = "INSERT INTO entry(id, kind, va, text, readable, version, library) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[INDEX_ADD_GRAM] = "INSERT INTO gram(slot, is_string, gram, cnt, ids) VALUES(?1, ?2, ?3, ?4, ?5)",
	[INDEX_FIND_NAME] = "SELECT rowid FROM name_text WHERE name_text MATCH ?1 AND rowid > ?2 ORDER BY rowid",
	[INDEX_FIND_STRING] = "SELECT rowid FROM string_text WHERE string_text MATCH ?1 AND rowid > ?2 ORDER BY rowid",
	[INDEX_GET_ENTRY] = "SELECT id, kind, va, text, readable, version, library FROM entry WHERE id=?1",
	[INDEX_WALK] = "SELECT id, kind, va, text, readable, version, library FROM entry WHERE id>?1 AND id<=?2 ORDER BY id",
	[INDEX_LINK] = "SELECT id, kind, va, text, readable, version, library FROM entry WHERE text=?1 AND kind=?2 AND kind < 2 ORDER BY id",
	[INDEX_GET_SLOT] = "SELECT gen, rev, stamp_ns FROM slot WHERE sha256=?1 AND part=?2 AND is_live",
	[INDEX_GET_PATH] = "SELECT sha256, was_sha256, dev, ino, len, mtime_ns, ctime_ns, view, va, sub, top_va, top_sub FROM path WHERE path=?1",
	[INDEX_GET_GRAM] = "SELECT cnt, ids FROM gram WHERE slot=?1 AND is_string=?2 AND gram=?3",
};

struct err *ses_index_error(const struct ses_index *ix)
{
	int code = ix->db ? sqlite3_errcode(ix->db) : SQLITE_NOMEM;
	const char *why = ix->db ? sqlite3_errmsg(ix->db) : "out of memory";
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return &err_nomem;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_new(ERR_BUSY, "%s: another process holds it", ix->path);
	case SQLITE_READONLY:
		return err_new(ERR_READONLY, "%s: %s", ix->path, why);
	case SQLITE_INTERRUPT:
		return err_new(ERR_TIMEOUT, "the deadline passed");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_fix(err_new(ERR_BAD_INPUT, "%s: %s", ix->path, why), "remove it; it is made anew");
	default:
		return err_new(ERR_IO, "%s: %s", ix->path, why);
	}
}

/* A statement, prepared on first use; reset and unbound. The lock is held. */
sqlite3_stmt *ses_index_stmt(struct ses_index *ix, enum ses_index_stmt which)
{
	if (!ix->stmts[which] && sqlite3_prepare_v3(ix->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &ix->stmts[which], NULL) != SQLITE_OK)
		return NULL;
	sqlite3_reset(ix->stmts[which]);
	sqlite3_clear_bindings(ix->stmts[which]);
	return ix->stmts[which];
}

struct index_held ses_index_hold(struct ses_index *ix)
{
	struct index_held h = {.ix = ix};
	pthread_mutex_lock(&ix->lock);
	if (ix->store)
		h.as = store_as_user(ix->store);
	return h;
}

void ses_index_let(struct index_held *h)
{
	if (h->ix->store)
		store_as_back(&h->as);
	pthread_mutex_unlock(&h->ix->lock);
}

static void finalizep(sqlite3_stmt **st)
{
	sqlite3_finalize(*st);
}
#define _cleanup_stmt_ _cleanup_(finalizep)

static sqlite3_stmt *prepare(struct ses_index *ix, const char *text)
{
	sqlite3_stmt *st = NULL;
	return sqlite3_prepare_v2(ix->db, text, -1, &st, NULL) == SQLITE_OK ? st : NULL;
}

static struct err *done(struct ses_index *ix, sqlite3_stmt *st)
{
	return st && sqlite3_step(st) == SQLITE_DONE ? NULL : ses_index_error(ix);
}

static struct err *exec(struct ses_index *ix, const char *text)
{
	return sqlite3_exec(ix->db, text, NULL, NULL, NULL) == SQLITE_OK ? NULL : ses_index_error(ix);
}

static int64_t number(struct ses_index *ix, const char *text)
{
	_cleanup_stmt_ sqlite3_stmt *st = prepare(ix, text);
	return st && sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : -1;
}

/* --- opening --- */

static struct err *make_schema(struct ses_index *ix)
{
	struct err *e = exec(ix, "BEGIN IMMEDIATE");
	if (e)
		return e;
	/* Somebody else may have made it meanwhile. */
	if (number(ix, "PRAGMA user_version") == INDEX_VERSION)
		return exec(ix, "COMMIT");
	char version[40];
	snprintf(version, sizeof(version), "PRAGMA user_version=%d", INDEX_VERSION);
	e = exec(ix, schema);
	if (!e)
		e = exec(ix, version);
	if (!e)
		return exec(ix, "COMMIT");
	(void)sqlite3_exec(ix->db, "ROLLBACK", NULL, NULL, NULL);
	return e;
}

static struct err *open_db(struct ses_index *ix)
{
	mode_t was = umask(077);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	bool is_open = sqlite3_open_v2(ix->path, &ix->db, flags, NULL) == SQLITE_OK;
	struct err *e = is_open ? NULL : ses_index_error(ix);
	if (!e) {
		sqlite3_busy_timeout(ix->db, INDEX_BUSY_MS);
		(void)sqlite3_exec(ix->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-4096;"
				   "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
		int64_t version = number(ix, "PRAGMA user_version");
		if (version < 0)
			e = ses_index_error(ix);
		else if (version && version != INDEX_VERSION)
			e = err_new(ERR_BAD_INPUT, "%s: is of another version", ix->path);
		else if (!version)
			e = make_schema(ix);
	}
	umask(was);
	return e;
}

static void close_db(struct ses_index *ix)
{
	for (size_t i = 0; i < INDEX_STMT_COUNT; i++) {
		sqlite3_finalize(ix->stmts[i]);
		ix->stmts[i] = NULL;
	}
	sqlite3_close(ix->db);
	ix->db = NULL;
}

/* It holds nothing that cannot be made again but the places people were at. */
static void remove_db(struct ses_index *ix)
{
	static const char *const tails[] = {"", "-wal", "-shm"};
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		_cleanup_free_ char *path = NULL;
		if (asprintf(&path, "%s%s", ix->path, tails[i]) >= 0)
			(void)unlink(path);
	}
}

static struct err *index_path(struct ses_index *ix, const struct store *st, const char *id)
{
	if (!st) {
		ix->path = strdup(":memory:");
		return ix->path ? NULL : &err_nomem;
	}
	ix->path = store_project_path(st, id);
	return ix->path ? store_make_projects(st) : &err_nomem;
}

static struct ses_index *index_new(const struct store *st)
{
	struct ses_index *ix = calloc(1, sizeof(*ix));
	if (!ix)
		return NULL;
	pthread_mutex_init(&ix->lock, NULL);
	pthread_mutex_init(&ix->reader_lock, NULL);
	ix->store = st;
	return ix;
}

struct ses_index *ses_index_reader(struct ses_index *ix)
{
	if (!ix->store)
		return ix;
	pthread_mutex_lock(&ix->reader_lock);
	struct ses_index *r = ix->reader ? ix->reader : index_new(ix->store);
	if (r && !ix->reader) {
		struct index_held h = ses_index_hold(r);
		r->path = strdup(ix->path);
		struct err *e = r->path ? open_db(r) : &err_nomem;
		ses_index_let(&h);
		if (e)
			ses_index_close(r);
		r = e ? NULL : r;
		err_free(e);
		ix->reader = r;
	}
	pthread_mutex_unlock(&ix->reader_lock);
	return r ? r : ix;
}

struct err *ses_index_open(const struct store *st, const char *id, struct ses_index **ret)
{
	struct ses_index *ix = index_new(st);
	if (!ix)
		return &err_nomem;
	struct index_held h = ses_index_hold(ix);
	struct err *e = index_path(ix, st, id);
	if (!e)
		e = open_db(ix);
	if (e && e->kind == ERR_BAD_INPUT && st) {
		err_free(e);
		close_db(ix);
		remove_db(ix);
		e = open_db(ix);
	}
	ses_index_let(&h);
	if (e) {
		ses_index_close(ix);
		return e;
	}
	*ret = ix;
	return NULL;
}

void ses_index_close(struct ses_index *ix)
{
	if (!ix)
		return;
	ses_index_close(ix->reader);
	struct index_held h = ses_index_hold(ix);
	close_db(ix);
	ses_index_let(&h);
	pthread_mutex_destroy(&ix->lock);
	pthread_mutex_destroy(&ix->reader_lock);
	free(ix->slots);
	free(ix->path);
	free(ix);
}

/* --- slots --- */

/* The live slots in order of their numbers. Another process may have changed them, so a read of one small table each time. */
struct err *ses_index_load_slots(struct ses_index *ix)
{
	_cleanup_stmt_ sqlite3_stmt *st = prepare(ix, "SELECT id, sha256, name_cnt, string_cnt FROM slot WHERE is_live ORDER BY id");
	int rc;
	ix->slot_cnt = 0;
	if (!st)
		return ses_index_error(ix);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (sqlite3_column_bytes(st, 1) != 32 || sqlite3_column_int64(st, 0) >= (int64_t)1 << 30)
			continue;
		struct index_slot *grown = realloc(ix->slots, (ix->slot_cnt + 1) * sizeof(*grown));
		if (!grown)
			return &err_nomem;
		ix->slots = grown;
		struct index_slot *s = &grown[ix->slot_cnt++];
		s->id = (uint32_t)sqlite3_column_int64(st, 0);
		memcpy(s->sha256, sqlite3_column_blob(st, 1), 32);
		s->cnt[0] = (uint64_t)sqlite3_column_int64(st, 2);
		s->cnt[1] = (uint64_t)sqlite3_column_int64(st, 3);
	}
	return rc == SQLITE_DONE ? NULL : ses_index_error(ix);
}

bool ses_index_get(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part, struct ses_index_state *ret)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	sqlite3_stmt *st = ses_index_stmt(h.ix, INDEX_GET_SLOT);
	if (!st)
		return false;
	sqlite3_bind_blob(st, 1, sha256, 32, SQLITE_STATIC);
	sqlite3_bind_int(st, 2, (int)part);
	bool is_there = sqlite3_step(st) == SQLITE_ROW;
	if (is_there)
		*ret = (struct ses_index_state){(uint32_t)sqlite3_column_int64(st, 0), (uint64_t)sqlite3_column_int64(st, 1),
						sqlite3_column_int64(st, 2)};
	sqlite3_reset(st);
	return is_there;
}

struct err *ses_index_touch(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part, int64_t stamp_ns)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	_cleanup_stmt_ sqlite3_stmt *st = prepare(h.ix, "UPDATE slot SET stamp_ns=?3 WHERE sha256=?1 AND part=?2 AND is_live");
	if (!st)
		return ses_index_error(ix);
	sqlite3_bind_blob(st, 1, sha256, 32, SQLITE_STATIC);
	sqlite3_bind_int(st, 2, (int)part);
	sqlite3_bind_int64(st, 3, stamp_ns);
	return done(ix, st);
}

/* --- short texts --- */

static void gram_add(struct index_grams *g, uint32_t gram, uint32_t n)
{
	struct index_gram *x = &g->list[gram];
	if (x->cnt && x->last == n)
		return;
	x->last = n;
	if (x->cnt++ >= INDEX_GRAM_MAX)
		return;
	if (x->cnt > x->cap) {
		uint32_t cap = x->cap ? x->cap * 2 : 4;
		uint32_t *grown = realloc(x->ids, cap * sizeof(*grown));
		if (!grown) {
			g->failed = true;
			x->cnt--;
			return;
		}
		x->ids = grown;
		x->cap = cap;
	}
	x->ids[x->cnt - 1] = n;
}

static void grams_add(struct index_grams *g, struct ses_text t, uint32_t n)
{
	uint32_t before = UINT32_MAX;
	for (uint32_t i = 0; i < t.len; i++) {
		uint32_t ch = index_fold((uint8_t)t.s[i]);
		gram_add(g, ch, n);
		if (before != UINT32_MAX)
			gram_add(g, index_gram_of(before, ch), n);
		before = ch;
	}
}

static struct err *grams_write(struct ses_index *ix, uint32_t slot, int is_string, struct index_grams *g)
{
	if (g->failed)
		return &err_nomem;
	for (uint32_t i = 0; i < INDEX_GRAM_COUNT; i++) {
		struct index_gram *x = &g->list[i];
		if (!x->cnt)
			continue;
		sqlite3_stmt *st = ses_index_stmt(ix, INDEX_ADD_GRAM);
		if (!st)
			return ses_index_error(ix);
		sqlite3_bind_int64(st, 1, slot);
		sqlite3_bind_int(st, 2, is_string);
		sqlite3_bind_int64(st, 3, i);
		sqlite3_bind_int64(st, 4, x->cnt);
		sqlite3_bind_blob(st, 5, x->ids, (int)(MIN(x->cnt, INDEX_GRAM_MAX) * sizeof(uint32_t)), SQLITE_STATIC);
		struct err *e = done(ix, st);
		if (e)
			return e;
	}
	return NULL;
}

static void grams_free(struct index_grams *g)
{
	for (uint32_t i = 0; g && i < INDEX_GRAM_COUNT; i++)
		free(g->list[i].ids);
	free(g);
}

/* --- writing --- */

struct ses_index_writer {
	struct ses_index *ix;
	uint8_t sha256[32];
	enum ses_index_part part;
	uint32_t slot;
	uint32_t cnt[2];             /* names, strings */
	struct index_grams *grams[2];
	struct ses_index_row batch[BATCH];
	uint32_t batch_cnt;
	struct arena arena;          /* of the batch */
	struct buf text;
};

static void writer_free(struct ses_index_writer *w)
{
	grams_free(w->grams[0]);
	grams_free(w->grams[1]);
	arena_fini(&w->arena);
	buf_fini(&w->text);
	free(w);
}

static struct err *writer_start(struct ses_index_writer *w)
{
	struct ses_index *ix = w->ix;
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	if (ix->is_writing)
		return err_new(ERR_BUSY, "%s: is being written", h.ix->path);
	struct err *e = exec(ix, "BEGIN IMMEDIATE");
	if (e)
		return e;
	_cleanup_stmt_ sqlite3_stmt *st = prepare(ix, "INSERT INTO slot(sha256, part, is_live) VALUES(?1, ?2, 0)");
	if (st) {
		sqlite3_bind_blob(st, 1, w->sha256, 32, SQLITE_STATIC);
		sqlite3_bind_int(st, 2, (int)w->part);
	}
	e = done(ix, st);
	int64_t slot = sqlite3_last_insert_rowid(ix->db);
	if (!e && slot >= (int64_t)1 << 30)
		e = err_fix(err_new(ERR_BUDGET, "%s: has no slots left", ix->path), "remove it; it is made anew");
	if (e) {
		(void)sqlite3_exec(ix->db, "ROLLBACK", NULL, NULL, NULL);
		return e;
	}
	ix->is_writing = true;
	w->slot = (uint32_t)slot;
	return NULL;
}

struct err *ses_index_begin(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part, struct ses_index_writer **ret)
{
	struct ses_index_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return &err_nomem;
	w->ix = ix;
	w->part = part;
	memcpy(w->sha256, sha256, 32);
	w->grams[0] = calloc(1, sizeof(*w->grams[0]));
	w->grams[1] = calloc(1, sizeof(*w->grams[1]));
	struct err *e = w->grams[0] && w->grams[1] ? writer_start(w) : &err_nomem;
	if (e) {
		writer_free(w);
		return e;
	}
	*ret = w;
	return NULL;
}

static void bind_text(sqlite3_stmt *st, int i, struct ses_text t, bool is_null)
{
	if (is_null && !t.len)
		sqlite3_bind_null(st, i);
	else
		sqlite3_bind_text64(st, i, t.s, t.len, SQLITE_STATIC, SQLITE_UTF8);
}

static struct err *write_row(struct ses_index_writer *w, const struct ses_index_row *r)
{
	struct ses_index *ix = w->ix;
	int is_string = r->kind == SES_FIND_STRING;
	uint32_t n = ++w->cnt[is_string];
	uint64_t id = index_id(w->slot, is_string, n);
	sqlite3_stmt *st = ses_index_stmt(ix, INDEX_ADD_ENTRY);
	if (!st)
		return ses_index_error(ix);
	sqlite3_bind_int64(st, 1, (int64_t)id);
	sqlite3_bind_int(st, 2, (int)r->kind);
	sqlite3_bind_int64(st, 3, (int64_t)r->va);
	bind_text(st, 4, r->text, false);
	bind_text(st, 5, r->readable, true);
	bind_text(st, 6, r->version, true);
	bind_text(st, 7, r->library, true);
	struct err *e = done(ix, st);
	if (e)
		return e;
	struct ses_text t = r->text;
	grams_add(w->grams[is_string], r->text, n);
	if (r->readable.len) {
		grams_add(w->grams[is_string], r->readable, n);
		w->text.len = 0;
		buf_add(&w->text, t.s, t.len);
		buf_add_ch(&w->text, '\n');
		buf_add(&w->text, r->readable.s, r->readable.len);
		if (w->text.failed)
			return &err_nomem;
		t = (struct ses_text){w->text.data, (uint32_t)w->text.len};
	}
	st = ses_index_stmt(ix, is_string ? INDEX_ADD_STRING : INDEX_ADD_NAME);
	if (!st)
		return ses_index_error(ix);
	sqlite3_bind_int64(st, 1, (int64_t)id);
	bind_text(st, 2, t, false);
	return done(ix, st);
}

static struct err *write_batch(struct ses_index_writer *w)
{
	_cleanup_held_ struct index_held h = ses_index_hold(w->ix);
	struct err *e = NULL;
	for (uint32_t i = 0; i < w->batch_cnt && !e; i++)
		e = write_row(w, &w->batch[i]);
	w->batch_cnt = 0;
	arena_reset(&w->arena);
	return h.ix ? e : NULL;
}

static bool keep_text(struct ses_index_writer *w, struct ses_text *t)
{
	t->s = t->len ? arena_strndup(&w->arena, t->s, t->len) : "";
	return t->s != NULL;
}

struct err *ses_index_add(struct ses_index_writer *w, const struct ses_index_row *row)
{
	struct ses_index_row *r = &w->batch[w->batch_cnt];
	*r = *row;
	if (!row->text.len)
		return NULL;
	if (w->cnt[row->kind == SES_FIND_STRING] >= UINT32_MAX - BATCH)
		return err_new(ERR_BUDGET, "a binary has too many names or strings for the index");
	if (!keep_text(w, &r->text) || !keep_text(w, &r->readable) || !keep_text(w, &r->version) || !keep_text(w, &r->library))
		return &err_nomem;
	return ++w->batch_cnt == BATCH ? write_batch(w) : NULL;
}

static struct err *make_live(struct ses_index_writer *w, const struct ses_index_state *state)
{
	struct ses_index *ix = w->ix;
	_cleanup_stmt_ sqlite3_stmt *kill = prepare(ix, "UPDATE slot SET is_live=0 WHERE sha256=?1 AND part=?2 AND id<>?3");
	_cleanup_stmt_ sqlite3_stmt *live = prepare(ix, "UPDATE slot SET is_live=1, gen=?2, rev=?3, stamp_ns=?4, name_cnt=?5, string_cnt=?6"
						    " WHERE id=?1");
	if (!kill || !live)
		return ses_index_error(ix);
	sqlite3_bind_blob(kill, 1, w->sha256, 32, SQLITE_STATIC);
	sqlite3_bind_int(kill, 2, (int)w->part);
	sqlite3_bind_int64(kill, 3, w->slot);
	sqlite3_bind_int64(live, 1, w->slot);
	sqlite3_bind_int64(live, 2, state->gen);
	sqlite3_bind_int64(live, 3, (int64_t)state->rev);
	sqlite3_bind_int64(live, 4, state->stamp_ns);
	sqlite3_bind_int64(live, 5, w->cnt[0]);
	sqlite3_bind_int64(live, 6, w->cnt[1]);
	struct err *e = done(ix, kill);
	return e ? e : done(ix, live);
}

struct err *ses_index_end(struct ses_index_writer *w, const struct ses_index_state *state, bool is_done)
{
	struct ses_index *ix = w->ix;
	struct err *e = is_done ? write_batch(w) : NULL;
	struct index_held h = ses_index_hold(ix);
	for (int i = 0; i < 2 && is_done && !e; i++)
		e = grams_write(ix, w->slot, i, w->grams[i]);
	if (is_done && !e)
		e = make_live(w, state);
	if (is_done && !e)
		e = exec(ix, "COMMIT");
	if (!is_done || e)
		(void)sqlite3_exec(ix->db, "ROLLBACK", NULL, NULL, NULL);
	ix->is_writing = false;
	ses_index_let(&h);
	writer_free(w);
	return e;
}

/* --- sweeping --- */

static struct err *refill(struct ses_index *ix)
{
	static const char text[] =
		"DELETE FROM entry WHERE (id>>33) IN (SELECT id FROM slot WHERE NOT is_live);"
		"DELETE FROM gram WHERE slot IN (SELECT id FROM slot WHERE NOT is_live);"
		"DELETE FROM slot WHERE NOT is_live;"
		"INSERT INTO name_text(name_text) VALUES('delete-all');"
		"INSERT INTO string_text(string_text) VALUES('delete-all');"
		"INSERT INTO name_text(rowid, text) SELECT id, CASE WHEN readable IS NULL THEN text ELSE text || char(10) || readable END"
		" FROM entry WHERE kind<>5 ORDER BY id;"
		"INSERT INTO string_text(rowid, text) SELECT id, text FROM entry WHERE kind=5 ORDER BY id;";
	_Static_assert(SES_FIND_STRING == 5, "the kind of strings stands in SQL above");
	struct err *e = exec(ix, "BEGIN IMMEDIATE");
	if (!e)
		e = exec(ix, text);
	if (!e)
		e = exec(ix, "COMMIT");
	if (e)
		(void)sqlite3_exec(ix->db, "ROLLBACK", NULL, NULL, NULL);
	return e;
}

struct err *ses_index_keep(struct ses_index *ix, const uint8_t (*sha256s)[32], size_t cnt)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	struct err *e = ses_index_load_slots(ix);
	for (size_t i = 0; i < ix->slot_cnt && !e; i++) {
		size_t k = 0;
		while (k < cnt && memcmp(ix->slots[i].sha256, sha256s[k], 32))
			k++;
		if (k < cnt)
			continue;
		_cleanup_stmt_ sqlite3_stmt *st = prepare(ix, "UPDATE slot SET is_live=0 WHERE id=?1");
		if (st)
			sqlite3_bind_int64(st, 1, ix->slots[i].id);
		e = done(ix, st);
	}
	if (e || h.ix->is_writing)
		return e;
	int64_t dead = number(ix, "SELECT total(name_cnt)+total(string_cnt) FROM slot WHERE NOT is_live");
	int64_t live = number(ix, "SELECT total(name_cnt)+total(string_cnt) FROM slot WHERE is_live");
	return dead > SWEEP_MIN && dead > live ? refill(ix) : NULL;
}

uint64_t ses_index_row_cnt(struct ses_index *ix, uint32_t kinds)
{
	ix = ses_index_reader(ix);
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	uint64_t n = 0;
	struct err *e = ses_index_load_slots(h.ix);
	for (size_t i = 0; !e && i < ix->slot_cnt; i++)
		n += (kinds & SES_FIND_NAMES ? ix->slots[i].cnt[0] : 0) + (kinds & SES_FIND_STRINGS ? ix->slots[i].cnt[1] : 0);
	err_free(e);
	return n;
}

/* --- paths and notes --- */

static bool blob32(sqlite3_stmt *st, int col, uint8_t ret[32])
{
	if (sqlite3_column_bytes(st, col) != 32)
		return false;
	memcpy(ret, sqlite3_column_blob(st, col), 32);
	return true;
}

bool ses_index_get_path(struct ses_index *ix, const char *path, struct ses_index_path *ret)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	sqlite3_stmt *st = ses_index_stmt(h.ix, INDEX_GET_PATH);
	struct ses_index_path p = {0};
	if (!st)
		return false;
	sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
	if (sqlite3_step(st) != SQLITE_ROW || !blob32(st, 0, p.sha256)) {
		sqlite3_reset(st);
		return false;
	}
	p.has_was = blob32(st, 1, p.was_sha256);
	p.dev = (uint64_t)sqlite3_column_int64(st, 2);
	p.ino = (uint64_t)sqlite3_column_int64(st, 3);
	p.len = (uint64_t)sqlite3_column_int64(st, 4);
	p.mtime_ns = sqlite3_column_int64(st, 5);
	p.ctime_ns = sqlite3_column_int64(st, 6);
	p.has_place = sqlite3_column_type(st, 7) != SQLITE_NULL;
	p.place = (struct ses_place){.view = (uint32_t)sqlite3_column_int64(st, 7), .va = (uint64_t)sqlite3_column_int64(st, 8),
				     .sub = (uint32_t)sqlite3_column_int64(st, 9), .top_va = (uint64_t)sqlite3_column_int64(st, 10),
				     .top_sub = (uint32_t)sqlite3_column_int64(st, 11)};
	sqlite3_reset(st);
	*ret = p;
	return true;
}

struct err *ses_index_put_path(struct ses_index *ix, const char *path, const struct ses_index_path *p)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	_cleanup_stmt_ sqlite3_stmt *st = prepare(h.ix, "INSERT OR REPLACE INTO path(path, sha256, was_sha256, dev, ino, len, mtime_ns, ctime_ns,"
						  " view, va, sub, top_va, top_sub) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)");
	if (!st)
		return ses_index_error(ix);
	sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
	sqlite3_bind_blob(st, 2, p->sha256, 32, SQLITE_STATIC);
	if (p->has_was)
		sqlite3_bind_blob(st, 3, p->was_sha256, 32, SQLITE_STATIC);
	const int64_t stats[] = {(int64_t)p->dev, (int64_t)p->ino, (int64_t)p->len, p->mtime_ns, p->ctime_ns};
	for (size_t i = 0; i < ARRAY_LEN(stats); i++)
		sqlite3_bind_int64(st, 4 + (int)i, stats[i]);
	const int64_t place[] = {p->place.view, (int64_t)p->place.va, p->place.sub, (int64_t)p->place.top_va, p->place.top_sub};
	for (size_t i = 0; p->has_place && i < ARRAY_LEN(place); i++)
		sqlite3_bind_int64(st, 9 + (int)i, place[i]);
	return done(ix, st);
}

char *ses_index_get_note(struct ses_index *ix, const char *key)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	_cleanup_stmt_ sqlite3_stmt *st = prepare(h.ix, "SELECT value FROM note WHERE key=?1");
	if (!st)
		return NULL;
	sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	const char *value = sqlite3_step(st) == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	return value ? strdup(value) : NULL;
}

struct err *ses_index_put_note(struct ses_index *ix, const char *key, const char *value)
{
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	_cleanup_stmt_ sqlite3_stmt *st = prepare(h.ix, "INSERT OR REPLACE INTO note(key, value) VALUES(?1, ?2)");
	if (!st)
		return ses_index_error(ix);
	sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, value, -1, SQLITE_STATIC);
	return done(ix, st);
}
