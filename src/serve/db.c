/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open databases. Each is a session that analyses in the background and is shared by whoever opened the same file; with the last opener
 * it is put away, once the requests that use it are through.
 */
#include "serve/serve_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct serve_db *serve_db_ref(struct serve_db *db)
{
	atomic_fetch_add(&db->refs, 1);
	return db;
}

void serve_db_unref(struct serve_db *db)
{
	if (!db || atomic_fetch_sub(&db->refs, 1) != 1)
		return;
	/* A project's session is closed with the project. */
	if (!db->project)
		ses_close(db->ses);
	free(db->path);
	free(db->speeds);
	free(db);
}

static struct serve_db *db_new(struct serve *s, const char *path)
{
	size_t op_cnt;
	ops_table(&op_cnt);
	struct serve_db *db = calloc(1, sizeof(*db));
	if (!db)
		return NULL;
	*db = (struct serve_db){.event_src = SERVE_DB_EVENT, .watch_src = SERVE_DB_WATCH, .serve = s, .path = strdup(path),
				.speeds = alloc_array(op_cnt, sizeof(*db->speeds))};
	atomic_init(&db->refs, 1);
	if (db->path && db->speeds)
		return db;
	serve_db_unref(db);
	return NULL;
}

/* The caller holds the lock. */
static struct serve_db *by_path(struct serve *s, const char *path)
{
	for (size_t i = 0; i < s->db_cnt; i++) {
		if (!strcmp(s->dbs[i]->path, path))
			return s->dbs[i];
	}
	return NULL;
}

/* Puts it into the table, or gives the one that is there already; takes `db`. A reference of the caller's. */
static struct err *list(struct serve *s, struct serve_db *db, struct serve_db **ret)
{
	struct err *e = NULL;
	pthread_mutex_lock(&s->lock);
	struct serve_db *there = by_path(s, db->path);
	if (there) {
		there->openers++;
		*ret = serve_db_ref(there);
	} else if (s->db_cnt == SERVE_DB_MAX) {
		e = err_fix(err_new(ERR_BUDGET, "%s: %d databases are open", db->path, SERVE_DB_MAX), "close one");
	} else {
		db->id = ++s->db_last_id;
		db->openers = 1;
		db->is_listed = true;
		s->dbs[s->db_cnt++] = serve_db_ref(db);
		*ret = serve_db_ref(db);
	}
	pthread_mutex_unlock(&s->lock);
	if (!there && !e)
		serve_watch_db(s, db);
	serve_db_unref(db);
	return e;
}

struct err *serve_db_open(struct serve *s, const struct serve_open_opts *o, struct serve_db **ret)
{
	_cleanup_free_ char *real = realpath(o->path, NULL);
	const char *path = real ? real : o->path;
	bool is_stated = o->processor || o->base || o->format;
	if (!real && strncmp(path, "sha256:", 7))
		return err_os(errno, "%s", path);
	pthread_mutex_lock(&s->lock);
	struct serve_db *there = is_stated ? NULL : by_path(s, path);
	if (there) {
		there->openers++;
		*ret = serve_db_ref(there);
	}
	pthread_mutex_unlock(&s->lock);
	if (there)
		return NULL;
	struct serve_db *db = db_new(s, path);
	if (!db)
		return &err_nomem;
	struct ses_opts opts = {.background = true, .no_store = s->no_store, .processor = o->processor, .base = o->base, .format = o->format};
	struct err *e = ses_open(path, &opts, &db->ses);
	if (e) {
		serve_db_unref(db);
		return e;
	}
	return list(s, db, ret);
}

struct err *serve_db_open_project(struct serve *s, const char *file)
{
	struct ses_project_opts o = {.file = file, .no_store = s->no_store, .background = true, .event_fd = -1};
	struct ses_project *p = NULL;
	struct err *e = ses_project_open(&o, &p);
	if (e)
		return e;
	if (!VEC_PUSH(&s->projects, p)) {
		ses_project_close(p);
		return &err_nomem;
	}
	uint32_t cnt = ses_project_cnt(p);
	struct arena a = {0};
	for (uint32_t i = 0; i < cnt && !e; i++) {
		struct ses_binary b;
		struct serve_db *ours = NULL;
		e = ses_project_binary(p, i, &a, &b);
		struct serve_db *db = e || b.state == SES_BINARY_FAILED ? NULL : db_new(s, b.label);
		if (!db)
			continue;
		db->project = p;
		db->binary = i;
		e = ses_project_get(p, i, &db->ses);
		if (e)
			serve_db_unref(db);
		else
			e = list(s, db, &ours);
		serve_db_unref(ours);
	}
	arena_fini(&a);
	return e;
}

void serve_db_close(struct serve_db *db)
{
	struct serve *s = db->serve;
	bool is_last;
	pthread_mutex_lock(&s->lock);
	is_last = db->openers && --db->openers == 0 && db->is_listed;
	for (size_t i = 0; is_last && i < s->db_cnt; i++) {
		if (s->dbs[i] != db)
			continue;
		memmove(&s->dbs[i], &s->dbs[i + 1], (s->db_cnt - i - 1) * sizeof(*s->dbs));
		s->db_cnt--;
		db->is_listed = false;
		break;
	}
	pthread_mutex_unlock(&s->lock);
	if (!is_last)
		return;
	serve_watch_db(s, db);
	serve_db_unref(db);
}

static bool is_called(const struct serve_db *db, const char *word)
{
	const char *slash = strrchr(db->path, '/');
	return slash && !strcmp(slash + 1, word);
}

static struct serve_db *find_word(struct serve *s, const char *word, size_t *ret_cnt)
{
	_cleanup_free_ char *real = strchr(word, '/') ? realpath(word, NULL) : NULL;
	struct serve_db *found = NULL;
	char *end;
	unsigned long id = strtoul(word, &end, 10);
	for (size_t i = 0; i < s->db_cnt; i++) {
		struct serve_db *db = s->dbs[i];
		if (!strcmp(db->path, word) || (real && !strcmp(db->path, real)) || (*word && !*end && db->id == id)) {
			*ret_cnt = 1;
			return db;
		}
		if (is_called(db, word)) {
			found = db;
			++*ret_cnt;
		}
	}
	return found;
}

struct err *serve_db_find(struct serve *s, const struct ops_doc *what, struct serve_db **ret)
{
	char number[32];
	const char *word = what->s;
	size_t cnt = 0;
	if (what->kind == OPS_DOC_INT) {
		snprintf(number, sizeof(number), "%lld", (long long)what->num);
		word = number;
	} else if (what->kind != OPS_DOC_STRING || strlen(what->s) != what->len) {
		return err_new(ERR_INVALID, "database: is an id, a path, or the last part of one");
	}
	pthread_mutex_lock(&s->lock);
	struct serve_db *db = find_word(s, word, &cnt);
	if (cnt == 1)
		*ret = serve_db_ref(db);
	pthread_mutex_unlock(&s->lock);
	if (cnt == 1)
		return NULL;
	if (cnt)
		return err_fix(err_new(ERR_AMBIGUOUS, "%s: %zu databases are called so", word, cnt), "say its id or its path");
	return err_fix(err_new(ERR_NOT_FOUND, "%s: no such database is open", word), "open it; databases lists them");
}

struct serve_db *serve_db_first(struct serve *s)
{
	pthread_mutex_lock(&s->lock);
	struct serve_db *db = s->db_cnt ? serve_db_ref(s->dbs[0]) : NULL;
	pthread_mutex_unlock(&s->lock);
	return db;
}

size_t serve_db_all(struct serve *s, struct serve_db **ret)
{
	pthread_mutex_lock(&s->lock);
	size_t cnt = s->db_cnt;
	for (size_t i = 0; i < cnt; i++)
		ret[i] = serve_db_ref(s->dbs[i]);
	pthread_mutex_unlock(&s->lock);
	return cnt;
}

void serve_db_refresh(struct serve_db *db)
{
	atomic_store(&db->refreshing, false);
	/* What cannot be read is said to whoever asks for it. */
	err_free(ses_refresh(db->ses));
}
