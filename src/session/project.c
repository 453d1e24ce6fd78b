/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binaries of a project: where each is now, its session, and where a person was in it. Opening a project is one stat a
 * binary: what a path held is remembered with its stat, so nothing is read or hashed while nothing changed, and a binary
 * is mapped when it is first asked for.
 */
#include "session/project.h"

#include "session/project_int.h"
#include "session/ses_sha256.h"
#include "session/ses_int.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_MAX 4096  /* files looked at for one that moved */
#define LOOK_DEPTH 3

const char *ses_binary_state_name(enum ses_binary_state s)
{
	static const char *const names[] = {[SES_BINARY_SAME] = "same", [SES_BINARY_MOVED] = "moved", [SES_BINARY_CHANGED] = "changed",
					    [SES_BINARY_BEFORE] = "before", [SES_BINARY_VANISHED] = "vanished", [SES_BINARY_FAILED] = "failed"};
	return names[s];
}

static void set_text(char **slot, char *text)
{
	free(*slot);
	*slot = text;
}

static void say(struct project_binary *b, const char *fmt, ...) _printf_(2, 3);
static void say(struct project_binary *b, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	set_text(&b->why, strdup(text));
}

static void hash_is(struct project_binary *b, const uint8_t sha256[32])
{
	memcpy(b->sha256, sha256, 32);
	b->has_sha256 = true;
}

/* --- where a binary is now --- */

static void stat_to_known(struct ses_index_path *k, const struct stat *st)
{
	k->dev = st->st_dev;
	k->ino = st->st_ino;
	k->len = (uint64_t)st->st_size;
	k->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	k->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

static bool stat_is_known(const struct ses_index_path *k, const struct stat *st)
{
	struct ses_index_path now;
	stat_to_known(&now, st);
	return now.dev == k->dev && now.ino == k->ino && now.len == k->len && now.mtime_ns == k->mtime_ns && now.ctime_ns == k->ctime_ns;
}

/* A binary as it was, beside what it has become, when there is work on it. The lock is held or nobody else is there. */
static void add_before(struct ses_project *p, uint32_t i, const uint8_t sha256[32])
{
	struct project_binary *b = &p->bins[i];
	if (!p->store || !store_has_target(p->store, sha256) || p->bin_cnt == p->bin_cap)
		return;
	for (uint32_t k = 0; k < p->bin_cnt; k++) {
		if (p->bins[k].state == SES_BINARY_BEFORE && !memcmp(p->bins[k].sha256, sha256, 32))
			return;
	}
	struct project_binary *n = &p->bins[p->bin_cnt];
	*n = (struct project_binary){.state = SES_BINARY_BEFORE, .is_sure = true, .path = strdup(b->path)};
	if (asprintf(&n->label, "%s@before", b->label) < 0)
		n->label = NULL;
	if (!n->label || !n->path) {
		free(n->label);
		free(n->path);
		return;
	}
	hash_is(n, sha256);
	say(n, "as it was before %s changed: its work is here, its bytes are gone", b->label);
	p->bin_cnt++;
}

/* The bytes at the path are `now`, by hash. */
static void identified(struct ses_project *p, uint32_t i, const uint8_t now[32])
{
	struct project_binary *b = &p->bins[i];
	const uint8_t *was = NULL;
	if (b->state == SES_BINARY_MOVED || b->state == SES_BINARY_VANISHED || b->state == SES_BINARY_BEFORE)
		return;
	if (b->has_sha256 && memcmp(b->sha256, now, 32))
		was = b->sha256;
	else if (!b->is_pinned && b->has_known && b->known.has_was && memcmp(b->known.was_sha256, now, 32))
		was = b->known.was_sha256;
	b->is_sure = true;
	b->known.has_was = was != NULL;
	if (was) {
		memmove(b->known.was_sha256, was, 32);
		b->state = SES_BINARY_CHANGED;
		say(b, "has other bytes than when it was added; the work on those before is in %s@before", b->label);
		add_before(p, i, b->known.was_sha256);
	}
	memmove(b->known.sha256, now, 32);
	hash_is(b, now);
}

/* Whether a file has these bytes. Only one of the right length is read. */
static bool has_hash(struct ses_project *p, const char *path, const struct project_binary *b)
{
	struct stat st;
	uint8_t sha256[32];
	if (stat(path, &st) || !S_ISREG(st.st_mode) || (b->has_known && b->known.len && (uint64_t)st.st_size != b->known.len))
		return false;
	struct err *e = ses_project_hash(p->store, path, sha256);
	bool is_it = !e && !memcmp(sha256, b->sha256, 32);
	err_free(e);
	return is_it;
}

static bool try_place(struct ses_project *p, struct project_binary *b, char *path)
{
	if (!path || !strcmp(path, b->path) || !has_hash(p, path, b)) {
		free(path);
		return false;
	}
	b->state = SES_BINARY_MOVED;
	say(b, "is not at %s any more; the same bytes are at %s", b->path, path);
	set_text(&b->found, path);
	return true;
}

/* A folder and those below it, as far as the budget goes: files of the binary's name or length. */
static bool look_below(struct ses_project *p, struct project_binary *b, const char *dir, unsigned depth, unsigned *budget)
{
	DIR *d = opendir(dir);
	bool is_found = false;
	const char *name = strrchr(b->path, '/') + 1;
	for (struct dirent *de; d && !is_found && *budget && (de = readdir(d));) {
		struct stat st;
		char *path = de->d_name[0] == '.' ? NULL : ses_project_abs(dir, de->d_name);
		--*budget;
		if (!path || lstat(path, &st)) {
			free(path);
			continue;
		}
		if (S_ISDIR(st.st_mode) && depth)
			is_found = look_below(p, b, path, depth - 1, budget);
		bool has_len = b->has_known && b->known.len && (uint64_t)st.st_size == b->known.len;
		bool may_be = S_ISREG(st.st_mode) && (has_len || !strcmp(de->d_name, name));
		if (may_be)
			is_found = try_place(p, b, path);
		else
			free(path);
	}
	if (d)
		closedir(d);
	return is_found;
}

/* Nothing is at its path: where it was last analysed, below the folder of the project's file, beside its other binaries. */
static void look_for(struct ses_project *p, uint32_t i)
{
	struct project_binary *b = &p->bins[i];
	const char *slash = strrchr(b->path, '/');
	const char *name = slash ? slash + 1 : b->path;
	set_text(&b->found, NULL);
	b->is_sure = b->has_sha256;
	b->state = SES_BINARY_VANISHED;
	if (!b->has_sha256) {
		say(b, "there is no such file, and its bytes are not known");
		return;
	}
	if (p->store && try_place(p, b, store_seen_path(p->store, b->sha256)))
		return;
	_cleanup_free_ char *dir = p->file ? ses_project_dir(p->file) : NULL;
	unsigned budget = LOOK_MAX;
	if (dir && look_below(p, b, dir, LOOK_DEPTH, &budget))
		return;
	for (uint32_t k = 0; k < p->bin_cnt; k++) {
		const char *end = strrchr(p->bins[k].path, '/');
		_cleanup_free_ char *beside = end && k != i ? strndup(p->bins[k].path, (size_t)(end - p->bins[k].path)) : NULL;
		if (beside && try_place(p, b, ses_project_abs(beside, name)))
			return;
	}
	say(b, "is gone; what the store knows of it is shown, without bytes");
}

/* What is remembered of a binary; a failure costs a place, which is no reason to fail. */
static void remember(struct ses_project *p, const struct project_binary *b)
{
	struct ses_index_path k = b->known;
	if (!b->is_sure || !b->has_sha256 || b->state == SES_BINARY_BEFORE)
		return;
	memcpy(k.sha256, b->sha256, 32);
	k.has_place = b->has_place;
	k.place = b->place;
	err_free(ses_index_put_path(p->index, b->path, &k));
}

static void look_at(struct ses_project *p, uint32_t i)
{
	struct project_binary *b = &p->bins[i];
	struct stat st;
	b->has_known = ses_index_get_path(p->index, b->path, &b->known);
	if (b->has_known && b->known.has_place) {
		b->has_place = true;
		b->place = b->known.place;
	}
	if (!b->is_pinned && b->has_known)
		hash_is(b, b->known.sha256);
	else if (b->has_known && memcmp(b->known.sha256, b->sha256, 32))
		b->known.len = 0; /* of what was here before that */
	if (stat(b->path, &st)) {
		if (errno == ENOENT || errno == ENOTDIR) {
			look_for(p, i);
		} else {
			b->state = SES_BINARY_FAILED;
			say(b, "%s", strerror(errno));
		}
		return;
	}
	set_text(&b->found, strdup(b->path));
	if (b->has_known && stat_is_known(&b->known, &st))
		identified(p, i, b->known.sha256);
	stat_to_known(&b->known, &st);
	/* Another file than it was, perhaps with other bytes. In the background that is found out later. */
	uint8_t now[32];
	struct err *e = b->is_sure || !b->has_sha256 || p->is_background ? NULL : ses_project_hash(p->store, b->path, now);
	if (!e && !b->is_sure && b->has_sha256 && !p->is_background) {
		identified(p, i, now);
		remember(p, b);
	}
	err_free(e);
}

/* --- opening the project --- */

/* The last part of the path, with a number when another binary has that already. */
static char *make_label(const struct ses_project *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *label = NULL;
	for (unsigned n = 1;; n++) {
		bool is_taken = false;
		free(label);
		if ((n == 1 ? asprintf(&label, "%s", slash ? slash + 1 : path) : asprintf(&label, "%s#%u", slash ? slash + 1 : path, n)) < 0)
			return NULL;
		for (char *c = label; *c; c++)
			*c = *c == '!' ? '_' : *c;
		for (uint32_t i = 0; i < p->bin_cnt; i++)
			is_taken = is_taken || (p->bins[i].label && !strcmp(p->bins[i].label, label));
		if (!is_taken)
			return label;
	}
}

static struct err *add_binary(struct ses_project *p, char *path, const struct ses_project_entry *entry)
{
	struct project_binary *b = &p->bins[p->bin_cnt];
	if (!path)
		return &err_nomem;
	*b = (struct project_binary){.path = path};
	p->bin_cnt++;
	if (entry && entry->label) {
		b->label = strdup(entry->label);
		if (!b->label)
			return &err_nomem;
	}
	if (entry && entry->has_sha256) {
		b->is_pinned = true;
		hash_is(b, entry->sha256);
	}
	return NULL;
}

static bool has_path(const struct ses_project *p, const char *path)
{
	for (uint32_t i = 0; i < p->bin_cnt; i++) {
		if (!strcmp(p->bins[i].path, path))
			return true;
	}
	return false;
}

static struct err *add_binaries(struct ses_project *p, const struct ses_project_opts *o, const struct ses_project_text *t)
{
	_cleanup_free_ char *dir = o->file ? ses_project_dir(o->file) : NULL;
	p->bin_cap = (uint32_t)(2 * (t->cnt + o->path_cnt + SES_PROJECT_JOIN_MAX));
	p->bins = alloc_array(p->bin_cap, sizeof(*p->bins));
	struct err *e = p->bins ? NULL : &err_nomem;
	if (!e && o->file && !dir)
		e = err_os(errno, "%s: its folder", o->file);
	for (size_t i = 0; i < t->cnt && !e; i++)
		e = add_binary(p, ses_project_abs(dir, t->list[i].path), &t->list[i]);
	for (size_t i = 0; i < o->path_cnt && !e; i++) {
		char *abs = ses_project_real(o->paths[i]);
		if (!abs || access(abs, F_OK)) {
			free(abs);
			abs = NULL;
		}
		if (!abs)
			e = err_os(errno, "%s", o->paths[i]);
		else if (has_path(p, abs))
			free(abs);
		else
			e = add_binary(p, abs, NULL);
	}
	/* After those that were given, so that none made up takes one of theirs. */
	for (uint32_t i = 0; i < p->bin_cnt && !e; i++) {
		if (!p->bins[i].label)
			p->bins[i].label = make_label(p, p->bins[i].path);
		e = p->bins[i].label ? NULL : &err_nomem;
	}
	return e;
}

static int path_cmp(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Of a project without an id: the hash of its file's path, or of its binaries'. */
static struct err *make_id(struct ses_project *p)
{
	struct buf text = {0};
	uint8_t sha256[32];
	char hex[65];
	_cleanup_free_ char *real = p->file ? realpath(p->file, NULL) : NULL;
	const char **paths = alloc_array(p->bin_cnt, sizeof(*paths));
	if (!paths)
		return &err_nomem;
	for (uint32_t i = 0; i < p->bin_cnt; i++)
		paths[i] = p->bins[i].path;
	qsort(paths, p->bin_cnt, sizeof(*paths), path_cmp);
	buf_add_str(&text, real ? "file\n" : "binaries\n");
	buf_add_str(&text, real ? real : "");
	for (uint32_t i = 0; i < p->bin_cnt && !real; i++) {
		buf_add_str(&text, paths[i]);
		buf_add_ch(&text, '\n');
	}
	struct err *e = text.failed ? &err_nomem : ses_sha256((const uint8_t *)text.data, text.len, NULL, NULL, NULL, sha256);
	free(paths);
	buf_fini(&text);
	if (e)
		return e;
	store_hex(sha256, hex);
	memcpy(p->id, hex, 32);
	return NULL;
}

static struct err *open_index(struct ses_project *p)
{
	struct err *why = p->no_store ? NULL : store_open(&p->store);
	if (!why && p->store)
		why = ses_index_open(p->store, p->id, &p->index);
	if (why) {
		p->note = strdup(why->text);
		err_free(why);
	}
	return p->index ? NULL : ses_index_open(NULL, p->id, &p->index);
}

static struct err *project_read(struct ses_project *p, const struct ses_project_opts *o)
{
	struct arena a = {0};
	struct ses_project_text t = {.name = "", .id = ""};
	struct err *e = o->file ? ses_project_read(o->file, &a, &t) : NULL;
	if (!e && o->file)
		p->file = strdup(o->file);
	if (!e)
		e = add_binaries(p, o, &t);
	if (!e && !p->bin_cnt)
		e = err_fix(err_new(ERR_INVALID, "%s: has no binaries", o->file ? o->file : "the project"), "scry project add P.json FILE...");
	if (!e) {
		const char *slash = o->file ? strrchr(o->file, '/') : NULL;
		p->name = strdup(*t.name ? t.name : o->file ? (slash ? slash + 1 : o->file) : p->bins[0].label);
		snprintf(p->id, sizeof(p->id), "%s", t.id);
		e = p->name ? NULL : &err_nomem;
	}
	if (!e && !*p->id)
		e = make_id(p);
	arena_fini(&a);
	return e;
}

static void *worker(void *arg);
static bool is_fresh(struct ses_project *p, uint32_t i);

struct err *ses_project_open(const struct ses_project_opts *opts, struct ses_project **ret)
{
	struct ses_project *p = calloc(1, sizeof(*p));
	if (!p)
		return &err_nomem;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->sync_lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->threads = opts->threads;
	p->no_store = opts->no_store;
	p->is_background = opts->background;
	p->cancel = opts->cancel;
	p->event_fd = opts->background ? opts->event_fd : -1;
	struct err *e = project_read(p, opts);
	if (!e)
		e = open_index(p);
	for (uint32_t i = 0, cnt = p->bin_cnt; !e && i < cnt; i++)
		look_at(p, i);
	for (uint32_t i = 0; !e && i < p->bin_cnt; i++)
		p->bins[i].is_indexed = is_fresh(p, i);
	if (!e && opts->ses) {
		p->bins[0].ses = opts->ses;
		p->bins[0].is_borrowed = true;
	}
	_cleanup_free_ char *shown = e ? NULL : ses_index_get_note(p->index, "shown");
	for (uint32_t i = 0; shown && i < p->bin_cnt; i++) {
		if (p->bins[i].state != SES_BINARY_BEFORE && !strcmp(p->bins[i].path, shown))
			p->shown = i;
	}
	if (!e && opts->background) {
		p->wants_sync = true;
		int rc = pthread_create(&p->worker, NULL, worker, p);
		p->has_worker = !rc;
		e = rc ? err_os(rc, "cannot start a thread") : NULL;
	}
	if (e) {
		ses_project_close(p);
		return e;
	}
	*ret = p;
	return NULL;
}

struct err *ses_project_join(struct ses_project *p, const char *path, uint32_t *ret)
{
	char *abs = ses_project_real(path);
	if (!abs || access(abs, R_OK)) {
		free(abs);
		return err_os(errno, "%s", path);
	}
	pthread_mutex_lock(&p->lock);
	struct err *e = NULL;
	uint32_t at = 0;
	while (at < p->bin_cnt && (strcmp(p->bins[at].path, abs) != 0 || p->bins[at].state == SES_BINARY_BEFORE))
		at++;
	bool is_new = at == p->bin_cnt;
	char *label = is_new ? make_label(p, abs) : NULL;
	if (is_new && !label)
		e = &err_nomem;
	else if (is_new && p->bin_cnt + 1 >= p->bin_cap) /* its last one may have a state BEFORE */
		e = err_new(ERR_BUDGET, "%s: no more than %u binaries are looked at beside those of the project", path, SES_PROJECT_JOIN_MAX);
	if (is_new && !e) {
		e = add_binary(p, take_ptr(abs), NULL);
		p->bins[at].label = take_ptr(label);
		look_at(p, at);
		p->wants_sync = p->is_background;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	free(abs);
	free(label);
	*ret = at;
	return e;
}

void ses_project_close(struct ses_project *p)
{
	if (!p)
		return;
	atomic_store(&p->stop, true);
	if (p->has_worker) {
		pthread_mutex_lock(&p->lock);
		pthread_cond_broadcast(&p->changed);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->worker, NULL);
	}
	for (uint32_t i = 0; i < p->bin_cnt; i++) {
		struct project_binary *b = &p->bins[i];
		if (p->index && b->has_place)
			remember(p, b);
		if (!b->is_borrowed)
			ses_close(b->ses);
		free(b->label);
		free(b->path);
		free(b->found);
		free(b->why);
	}
	ses_index_close(p->index);
	store_close(p->store);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->sync_lock);
	pthread_cond_destroy(&p->changed);
	free(p->bins);
	free(p->file);
	free(p->name);
	free(p->note);
	free(p);
}

const char *ses_project_name(const struct ses_project *p)
{
	return p->name;
}

const char *ses_project_note(const struct ses_project *p)
{
	return p->note;
}

uint32_t ses_project_cnt(struct ses_project *p)
{
	pthread_mutex_lock(&p->lock);
	uint32_t cnt = p->bin_cnt;
	pthread_mutex_unlock(&p->lock);
	return cnt;
}

static const char *copy(struct arena *a, const char *s)
{
	return s ? arena_strndup(a, s, strlen(s)) : "";
}

struct err *ses_project_binary(struct ses_project *p, uint32_t i, struct arena *a, struct ses_binary *ret)
{
	pthread_mutex_lock(&p->lock);
	if (i >= p->bin_cnt) {
		pthread_mutex_unlock(&p->lock);
		return &err_not_found;
	}
	const struct project_binary *b = &p->bins[i];
	*ret = (struct ses_binary){.label = copy(a, b->label), .path = copy(a, b->path), .found = copy(a, b->found), .why = copy(a, b->why),
				   .state = b->state, .has_sha256 = b->has_sha256, .is_open = b->ses != NULL, .is_indexed = b->is_indexed,
				   .ses = b->ses};
	if (b->has_sha256)
		store_hex(b->sha256, ret->sha256);
	pthread_mutex_unlock(&p->lock);
	if (ret->ses) {
		struct ses_progress g;
		ses_get_progress(ret->ses, &g);
		ret->is_ready = g.state == SES_READY;
	}
	return ret->label && ret->path && ret->found && ret->why ? NULL : &err_nomem;
}

struct err *ses_project_pick(struct ses_project *p, const char *word, uint32_t *ret)
{
	_cleanup_free_ char *real = ses_project_real(word);
	uint32_t hits = 0, found = 0;
	pthread_mutex_lock(&p->lock);
	/* A label is unique; a path is; the last part of one may not be. */
	for (unsigned way = 0; way < 3 && !hits; way++) {
		for (uint32_t i = 0; i < p->bin_cnt; i++) {
			const struct project_binary *b = &p->bins[i];
			const char *slash = strrchr(b->path, '/');
			bool is_it = way == 0 ? !strcmp(b->label, word) : b->state == SES_BINARY_BEFORE ? false :
				     way == 1 ? !strcmp(b->path, word) || (real && !strcmp(b->path, real)) : slash && !strcmp(slash + 1, word);
			hits += is_it;
			found = is_it ? i : found;
		}
	}
	pthread_mutex_unlock(&p->lock);
	if (!hits)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: is no binary of the project", word), "scry project list shows them");
	if (hits > 1)
		return err_fix(err_new(ERR_AMBIGUOUS, "%s: is the name of %u binaries of the project", word, hits), "give the label");
	*ret = found;
	return NULL;
}

/* --- sessions --- */

static struct err *open_session(struct ses_project *p, const char *path, const char *found, const uint8_t *sha256, struct ses **ret)
{
	struct ses_opts o = {.threads = p->threads, .no_store = p->no_store, .background = p->is_background,
			     .cancel = p->is_background ? NULL : p->cancel};
	struct err *e = found ? ses_open(found, &o, ret) : &err_not_found;
	/* Gone since we looked, or all the time. */
	if (e && (!found || e->kind == ERR_BAD_INPUT) && sha256 && (!found || access(found, F_OK))) {
		err_free(e);
		e = ses_open_absent(path, sha256, &o, ret);
	}
	return e;
}

struct err *ses_project_get(struct ses_project *p, uint32_t i, struct ses **ret)
{
	pthread_mutex_lock(&p->lock);
	if (i >= p->bin_cnt) {
		pthread_mutex_unlock(&p->lock);
		return &err_not_found;
	}
	struct project_binary *b = &p->bins[i];
	while (b->is_opening)
		pthread_cond_wait(&p->changed, &p->lock);
	if (b->ses) {
		*ret = b->ses;
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	b->is_opening = true;
	_cleanup_free_ char *found = b->found ? strdup(b->found) : NULL;
	uint8_t sha256[32];
	bool has_sha256 = b->has_sha256;
	memcpy(sha256, b->sha256, 32);
	pthread_mutex_unlock(&p->lock);
	struct ses *s = NULL;
	struct err *e = open_session(p, b->path, found, has_sha256 ? sha256 : NULL, &s);
	uint8_t now[32];
	bool is_sure = s && !ses_is_absent(s) && ses_get_sha256(s, now);
	pthread_mutex_lock(&p->lock);
	b->is_opening = false;
	b->ses = s;
	if (s && ses_is_absent(s) && b->state != SES_BINARY_BEFORE) {
		b->state = SES_BINARY_VANISHED;
		say(b, "is gone; what the store knows of it is shown, without bytes");
	}
	if (is_sure)
		identified(p, i, now);
	if (e && b->state != SES_BINARY_VANISHED) {
		b->state = SES_BINARY_FAILED;
		say(b, "%s", e->text ? e->text : err_kind_name(e->kind));
	}
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	*ret = s;
	return e;
}

bool ses_project_is_known(struct ses_project *p, uint32_t i)
{
	pthread_mutex_lock(&p->lock);
	const struct project_binary *b = i < p->bin_cnt ? &p->bins[i] : NULL;
	bool is_known = b && (b->ses || (b->has_sha256 && b->is_sure && p->store && store_has_target(p->store, b->sha256)));
	pthread_mutex_unlock(&p->lock);
	return is_known;
}

uint32_t ses_project_of_hash(struct ses_project *p, const uint8_t sha256[32])
{
	uint32_t found = UINT32_MAX;
	pthread_mutex_lock(&p->lock);
	for (uint32_t i = p->bin_cnt; i-- > 0;) {
		if (p->bins[i].has_sha256 && !memcmp(p->bins[i].sha256, sha256, 32) && p->bins[i].state != SES_BINARY_BEFORE)
			found = i;
	}
	pthread_mutex_unlock(&p->lock);
	return found;
}

/* --- places --- */

void ses_project_put_place(struct ses_project *p, uint32_t i, const struct ses_place *place)
{
	pthread_mutex_lock(&p->lock);
	struct project_binary copy_of = {0};
	if (i < p->bin_cnt) {
		p->bins[i].place = *place;
		p->bins[i].has_place = true;
		copy_of = p->bins[i];
	}
	pthread_mutex_unlock(&p->lock);
	if (copy_of.path)
		remember(p, &copy_of);
}

bool ses_project_get_place(struct ses_project *p, uint32_t i, struct ses_place *ret)
{
	pthread_mutex_lock(&p->lock);
	bool has_place = i < p->bin_cnt && p->bins[i].has_place;
	if (has_place)
		*ret = p->bins[i].place;
	pthread_mutex_unlock(&p->lock);
	return has_place;
}

void ses_project_put_shown(struct ses_project *p, uint32_t i)
{
	pthread_mutex_lock(&p->lock);
	const char *path = i < p->bin_cnt ? p->bins[i].path : NULL; /* paths do not change */
	p->shown = path ? i : p->shown;
	pthread_mutex_unlock(&p->lock);
	if (path)
		err_free(ses_index_put_note(p->index, "shown", path));
}

uint32_t ses_project_get_shown(struct ses_project *p)
{
	pthread_mutex_lock(&p->lock);
	uint32_t i = p->shown;
	pthread_mutex_unlock(&p->lock);
	return i;
}

/* --- keeping the index --- */

static bool is_stopped(const struct ses_project *p)
{
	return atomic_load(&p->stop) || (p->cancel && atomic_load(p->cancel));
}

/* Whether the index has what was last committed for the binary: one stat and two rows. */
static bool is_fresh(struct ses_project *p, uint32_t i)
{
	struct ses_index_state s;
	uint8_t sha256[32];
	pthread_mutex_lock(&p->lock);
	struct project_binary *b = &p->bins[i];
	bool may_be = b->is_sure && b->has_sha256;
	memcpy(sha256, b->sha256, 32);
	pthread_mutex_unlock(&p->lock);
	if (!may_be || !p->store)
		return false;
	int64_t stamp = store_stamp_ns(p->store, sha256);
	bool ret = stamp != 0;
	for (int part = 0; part < SES_INDEX_PART_COUNT && ret; part++)
		ret = ses_index_get(p->index, sha256, (enum ses_index_part)part, &s) && s.stamp_ns == stamp;
	return ret;
}

static void set_indexed(struct ses_project *p, uint32_t i, bool is_indexed)
{
	uint64_t one = 1;
	pthread_mutex_lock(&p->lock);
	p->bins[i].is_indexed = is_indexed;
	struct project_binary b = p->bins[i];
	pthread_mutex_unlock(&p->lock);
	if (is_indexed)
		remember(p, &b);
	if (p->event_fd >= 0 && write(p->event_fd, &one, sizeof(one)) < 0) {
		/* EAGAIN: it is readable already. */
	}
}

static struct err *sync_one(struct ses_project *p, uint32_t i, bool *ret_made)
{
	struct ses *s;
	uint8_t now[32];
	if (is_fresh(p, i)) {
		pthread_mutex_lock(&p->lock);
		p->bins[i].is_indexed = true;
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	struct err *e = ses_project_get(p, i, &s);
	if (e)
		return e;
	if (ses_wait(s, &p->stop) != SES_READY)
		return err_new(ERR_BAD_INPUT, "%s: %s", ses_path(s), ses_error_text(s));
	if (!ses_is_absent(s) && ses_get_sha256(s, now)) {
		pthread_mutex_lock(&p->lock);
		identified(p, i, now);
		pthread_mutex_unlock(&p->lock);
	}
	e = ses_project_index_one(p, s, ret_made);
	if (!e)
		set_indexed(p, i, true);
	return e;
}

/* Slots of what is no longer in the project are given up. */
static struct err *sweep(struct ses_project *p)
{
	pthread_mutex_lock(&p->lock);
	size_t n = 0;
	uint8_t (*keep)[32] = alloc_array(p->bin_cnt, 32);
	for (uint32_t i = 0; keep && i < p->bin_cnt; i++) {
		if (p->bins[i].has_sha256)
			memcpy(keep[n++], p->bins[i].sha256, 32);
	}
	pthread_mutex_unlock(&p->lock);
	struct err *e = keep ? ses_index_keep(p->index, (const uint8_t (*)[32])keep, n) : &err_nomem;
	free(keep);
	return e;
}

/* A fault of one binary, which leaves the others as they are. */
static bool is_its_own(const struct err *e)
{
	return e->kind == ERR_BAD_INPUT || e->kind == ERR_NOT_FOUND || e->kind == ERR_UNSUPPORTED || e->kind == ERR_DENIED || e->kind == ERR_STALE;
}

struct err *ses_project_sync(struct ses_project *p)
{
	struct err *first = NULL;
	bool made = false;
	/* Who comes while another does it finds it done. */
	pthread_mutex_lock(&p->sync_lock);
	for (uint32_t i = 0; i < ses_project_cnt(p) && !is_stopped(p); i++) {
		struct err *e = sync_one(p, i, &made);
		if (e && !is_its_own(e) && !first)
			first = e;
		else
			err_free(e);
	}
	if (!first && made && !is_stopped(p))
		first = sweep(p);
	pthread_mutex_unlock(&p->sync_lock);
	/* What an analysis needed goes back to the system: a binary costs what is mapped of it. */
	if (made)
		malloc_trim(0);
	if (is_stopped(p) && !first)
		first = err_new(ERR_CANCELLED, "cancelled");
	return first;
}

static void *worker(void *arg)
{
	struct ses_project *p = arg;
	pthread_mutex_lock(&p->lock);
	while (!atomic_load(&p->stop)) {
		if (!p->wants_sync) {
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		p->wants_sync = false;
		pthread_mutex_unlock(&p->lock);
		struct err *e = ses_project_sync(p);
		pthread_mutex_lock(&p->lock);
		if (e && e->kind != ERR_CANCELLED && !p->note)
			p->note = strdup(e->text);
		err_free(e);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void ses_project_poke(struct ses_project *p)
{
	pthread_mutex_lock(&p->lock);
	p->wants_sync = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

void ses_project_progress(struct ses_project *p, uint32_t *ret_done, uint32_t *ret_cnt)
{
	pthread_mutex_lock(&p->lock);
	*ret_done = *ret_cnt = 0;
	for (uint32_t i = 0; i < p->bin_cnt; i++) {
		*ret_cnt += p->bins[i].state != SES_BINARY_FAILED;
		*ret_done += p->bins[i].is_indexed && p->bins[i].state != SES_BINARY_FAILED;
	}
	pthread_mutex_unlock(&p->lock);
}
