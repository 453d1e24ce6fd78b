/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_remote.h"

#include "base/file.h"
#include "format/fmt.h"
#include "live/reach/reach_cache.h"
#include "session/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Connections made again, in all, and without a byte between them. */
#define MAX_ATTEMPTS 12
#define MAX_IDLE_ATTEMPTS 3
#define MAX_LIBS 2000

bool ses_is_remote(const char *path)
{
	return reach_is_url(path);
}

/* --- where fetched files are kept --- */

static char *cache_root(void)
{
	_cleanup_free_ char *store = store_default_root();
	char *root;
	return store && asprintf(&root, "%s/remote", store) >= 0 ? root : NULL;
}

/* $SCRY_CACHE_LIMIT, bytes; 0: the default. */
static uint64_t cache_limit(void)
{
	const char *text = getenv("SCRY_CACHE_LIMIT");
	uint64_t len = 0;
	return text && gdb_is_dec(gdb_span_make(text, strlen(text)), &len) ? len : 0;
}

/* A folder for one run, in memory where there is such a place. */
static struct err *temporary_root(char **ret)
{
	const char *const places[] = {getenv("TMPDIR"), "/dev/shm", "/tmp"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char *root = NULL;
		if (!places[i] || asprintf(&root, "%s/scry-XXXXXX", places[i]) < 0)
			continue;
		if (mkdtemp(root)) {
			*ret = root;
			return NULL;
		}
		free(root);
	}
	return err_new(ERR_IO, "there is no folder for temporary files");
}

static struct err *open_cache(const struct ses_remote_opts *opts, struct ses_remote_got *got, struct store **ret_store,
			      struct reach_cache **ret)
{
	_cleanup_free_ char *root = cache_root();
	struct err *e = opts->no_store || !root ? &err_not_found : store_open(ret_store);
	if (!e) {
		_cleanup_as_ struct store_as as = store_as_user(*ret_store);
		e = reach_cache_open(root, cache_limit(), ret);
	}
	if (!e)
		return NULL;
	if (opts->say && !opts->no_store && e->text) {
		char line[400];
		snprintf(line, sizeof(line), "what is fetched is not kept: %s", e->text);
		opts->say(opts->ctx, line);
	}
	err_free(e);
	e = temporary_root(&got->folder);
	return e ? e : reach_cache_open(got->folder, cache_limit(), ret);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

void ses_remote_fini(struct ses_remote_got *g)
{
	for (size_t i = 0; i < g->cnt; i++) {
		free(g->files[i].url);
		free(g->files[i].local);
		err_free(g->files[i].err);
	}
	free(g->files);
	if (g->folder)
		nftw(g->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(g->folder);
	*g = (struct ses_remote_got){0};
}

/* --- fetching --- */

struct remote {
	struct reach_url url;
	const struct ses_remote_opts *opts;
	struct reach_wait wait;
	struct reach_cache *cache;
	struct reach_cache_sink sink;
	struct reach_peer *peer;
	bool is_over; /* the peer is over somebody's connection, which is not made again */
	struct ses_remote_got *got;
	struct ses_remote_progress base; /* what earlier fetches of this run did */
	struct ses_remote_progress last;
	uint64_t turn_cnt, wire_len; /* of earlier connections */
};

static void tell(void *ctx, const struct reach_progress *p)
{
	struct remote *r = ctx;
	r->last = (struct ses_remote_progress){.done_len = r->base.done_len + p->done_len,
					       .total_len = r->base.total_len + p->total_len,
					       .came_len = r->base.came_len + p->came_len,
					       .done_cnt = r->base.done_cnt + p->done_cnt,
					       .file_cnt = r->base.file_cnt + p->job_cnt,
					       .is_waiting = p->is_waiting};
	if (r->opts->progress)
		r->opts->progress(r->opts->ctx, &r->last);
}

static void hang_up(struct remote *r)
{
	if (!r->peer)
		return;
	snprintf(r->got->server, sizeof(r->got->server), "%s", r->peer->what);
	r->turn_cnt += r->peer->turn_cnt;
	r->wire_len += r->peer->wire_len;
	reach_peer_close(take_ptr(r->peer));
}

/* Whether a connection that failed so is worth another. */
static bool is_passing(const struct err *e)
{
	return e->kind == ERR_IO || e->kind == ERR_TIMEOUT;
}

/* One batch of files; a lost connection is made again as long as each brings something. */
static struct err *fetch_jobs(struct remote *r, struct reach_fetch_job *jobs, unsigned cnt)
{
	unsigned idle_cnt = 0;
	for (unsigned attempt = 1;; attempt++) {
		uint64_t before = r->last.came_len;
		bool is_new = !r->peer;
		struct err *e = is_new ? reach_peer_open(&r->url, &r->wait, &r->peer) : NULL;
		/* Nobody there at all: said at once, unless somebody was a moment ago. */
		if (e && attempt == 1)
			return e;
		if (!e)
			e = reach_fetch(r->peer, jobs, cnt, &r->sink.sink);
		if (!e) {
			r->base = r->last;
			return NULL;
		}
		if (r->is_over)
			return e;
		hang_up(r);
		r->base.came_len = r->last.came_len;
		idle_cnt = r->last.came_len > before ? 0 : idle_cnt + 1;
		if (!is_passing(e) || idle_cnt >= MAX_IDLE_ATTEMPTS || attempt >= MAX_ATTEMPTS || (idle_cnt && e->kind == ERR_TIMEOUT))
			return err_prefix(e, "%s", r->url.peer);
		if (r->opts->say) {
			char line[400];
			snprintf(line, sizeof(line), "%s; connecting again", e->text);
			r->opts->say(r->opts->ctx, line);
		}
		err_free(e);
		nanosleep(&(struct timespec){.tv_nsec = 200000000L * (1 + idle_cnt)}, NULL);
	}
}

static struct err *add_file(struct remote *r, const char *path, char *local, struct err *why)
{
	struct ses_remote_got *g = r->got;
	struct ses_remote_file *all = realloc(g->files, (g->cnt + 1) * sizeof(*all));
	char *url = NULL;
	if (!all || asprintf(&url, "%s%s%s", r->url.peer, r->url.scheme == REACH_UNIX ? ":" : "", path) < 0) {
		free(local);
		err_free(why);
		g->files = all ? all : g->files;
		return &err_nomem;
	}
	g->files = all;
	all[g->cnt++] = (struct ses_remote_file){.url = url, .local = local, .err = why};
	return NULL;
}

/* --- libraries --- */

struct names {
	char **all;
	size_t cnt;
};

static void names_fini(struct names *n)
{
	for (size_t i = 0; i < n->cnt; i++)
		free(n->all[i]);
	free(n->all);
}

static bool has_name(const struct names *n, const char *name)
{
	for (size_t i = 0; i < n->cnt; i++) {
		if (!strcmp(n->all[i], name))
			return true;
	}
	return false;
}

/* Takes `name`. */
static struct err *add_name(struct names *n, char *name)
{
	char **all = name ? realloc(n->all, (n->cnt + 1) * sizeof(*all)) : NULL;
	if (!all) {
		free(name);
		return &err_nomem;
	}
	n->all = all;
	all[n->cnt++] = name;
	return NULL;
}

/* Names that a file needs: words of its own, taken as such and never as more than a part of a path there. */
static struct err *add_needed(const char *local, struct names *todo, const struct names *seen)
{
	struct file *f = NULL;
	struct fmt_bin *b = NULL;
	struct err *e = file_open(local, &f);
	if (!e)
		e = fmt_open(f->data, f->len, &b);
	for (size_t i = 0; !e && i < b->needed.cnt; i++) {
		struct fmt_str s = b->needed.data[i];
		char name[256];
		if (!s.len || s.len >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)s.len, s.s);
		bool is_plain = strlen(name) == s.len && strcmp(name, ".") && strcmp(name, "..");
		for (const char *p = name; *p; p++)
			is_plain = is_plain && *p > ' ' && *p < 127 && *p != '/';
		if (is_plain && !has_name(seen, name) && !has_name(todo, name))
			e = add_name(todo, strdup(name));
	}
	/* What is no program needs nothing. */
	if (e && e->kind != ERR_NOMEM) {
		err_free(e);
		e = NULL;
	}
	fmt_bin_free(b);
	file_close(f);
	return e;
}

/* Where libraries are looked for, in this order: beside the file, then where distributions have them. */
static const char *const lib_folders[] = {"",
					  "/lib/x86_64-linux-gnu",
					  "/usr/lib/x86_64-linux-gnu",
					  "/lib/aarch64-linux-gnu",
					  "/usr/lib/aarch64-linux-gnu",
					  "/lib/i386-linux-gnu",
					  "/usr/lib/i386-linux-gnu",
					  "/lib64",
					  "/usr/lib64",
					  "/lib",
					  "/usr/lib",
					  "/usr/local/lib"};

/* Where a name may be: paths, owned, the first `cnt` of which are to be tried. */
struct search {
	char *local; /* where the cache has it, owned: what a job's context is */
	char *paths[ARRAY_LEN(lib_folders) + 1];
	size_t cnt;
};

static struct err *make_search(struct remote *r, const char *own, const char *name, struct search *s)
{
	for (size_t k = 0; k < ARRAY_LEN(lib_folders); k++) {
		const char *folder = k ? lib_folders[k] : own;
		char *path;
		if (k && !strcmp(folder, own))
			continue;
		if (asprintf(&path, "%s/%s", folder, name) < 0)
			return &err_nomem;
		if (reach_cache_is_missing(r->cache, r->url.peer, path))
			free(path);
		else
			s->paths[s->cnt++] = path;
	}
	return NULL;
}

/* What became of a name: it is noted where it was not, and the file goes to what was got. */
static struct err *take_job(struct remote *r, struct reach_fetch_job *j, struct names *found)
{
	struct search *s = (struct search *)j->ctx;
	bool is_missing = j->err && j->err->kind == ERR_NOT_FOUND;
	for (size_t i = 0; i < s->cnt && (s->paths[i] != j->path || is_missing); i++) {
		reach_cache_put_missing(r->cache, r->url.peer, s->paths[i]);
		if (s->paths[i] == j->path)
			break;
	}
	struct err *e = s->local ? add_name(found, strdup(s->local)) : NULL;
	if (!e && (j->is_done || (j->err && !is_missing)))
		e = add_file(r, j->path, take_ptr(s->local), take_ptr(j->err));
	return e;
}

/* All names at once, each in one folder after the other until it is there; what is nowhere is said. All move to `seen`. */
static struct err *fetch_named(struct remote *r, const char *own, struct names *todo, struct names *seen, struct names *found)
{
	size_t cnt = todo->cnt;
	struct reach_fetch_job *jobs = calloc(cnt + 1, sizeof(*jobs));
	struct search *all = calloc(cnt + 1, sizeof(*all));
	struct err *e = jobs && all ? NULL : &err_nomem;
	unsigned job_cnt = 0;
	for (size_t i = 0; i < cnt && !e; i++) {
		struct search *s = &all[i];
		e = make_search(r, own, todo->all[i], s);
		if (!e && s->cnt)
			jobs[job_cnt++] = (struct reach_fetch_job){
				.path = s->paths[0], .next_paths = (const char *const *)&s->paths[1], .ctx = &s->local};
	}
	if (!e && job_cnt)
		e = fetch_jobs(r, jobs, job_cnt);
	for (unsigned k = 0; k < job_cnt && jobs; k++) {
		size_t before = r->got->cnt;
		if (!e)
			e = take_job(r, &jobs[k], found);
		size_t i = (size_t)((struct search *)jobs[k].ctx - all);
		if (!e && r->got->cnt > before)
			e = add_name(seen, take_ptr(todo->all[i]));
		err_free(jobs[k].err);
	}
	for (size_t i = 0; i < cnt && !e; i++) {
		char *name = take_ptr(todo->all[i]);
		if (!name)
			continue;
		e = add_file(r, name, NULL, err_new(ERR_NOT_FOUND, "%s: is in none of the usual folders there", name));
		struct err *also = add_name(seen, name);
		e = e ? e : also;
	}
	todo->cnt = e ? cnt : 0;
	for (size_t i = 0; i < cnt && all; i++) {
		for (size_t k = 0; k < all[i].cnt; k++)
			free(all[i].paths[k]);
		free(all[i].local);
	}
	free(all);
	free(jobs);
	return e;
}

/* What is needed by `local`, and by what that needs. */
static struct err *fetch_libs(struct remote *r, const char *local)
{
	struct names todo = {0}, seen = {0}, found = {0};
	const char *slash = strrchr(r->url.path, '/');
	_cleanup_free_ char *own = slash ? strndup(r->url.path, (size_t)(slash - r->url.path)) : NULL;
	struct err *e = own ? add_needed(local, &todo, &seen) : &err_nomem;
	while (!e && todo.cnt && seen.cnt < MAX_LIBS) {
		e = fetch_named(r, own, &todo, &seen, &found);
		struct names next = found;
		found = (struct names){0};
		for (size_t i = 0; i < next.cnt && !e; i++)
			e = add_needed(next.all[i], &todo, &seen);
		names_fini(&next);
	}
	names_fini(&todo);
	names_fini(&seen);
	names_fini(&found);
	return e;
}

static struct err *fetch_all(struct remote *r, bool libs)
{
	char *local = NULL;
	struct reach_fetch_job job = {.path = r->url.path, .ctx = &local};
	struct err *e = fetch_jobs(r, &job, 1);
	if (!e)
		e = job.err;
	else
		err_free(job.err);
	if (e) {
		free(local);
		return e;
	}
	e = add_file(r, r->url.path, local, NULL);
	if (!e && libs)
		e = fetch_libs(r, local);
	return e;
}

/* The cache and its sink, then `fetch`. Takes the URL. */
static struct err *with_cache(struct remote *r, struct err *(*fetch)(struct remote *r, void *ctx), void *ctx, struct ses_remote_got *ret)
{
	struct ses_remote_got got = {0};
	struct store *st = NULL;
	r->got = &got;
	r->wait = (struct reach_wait){.stall_ms = r->opts->stall_ms, .cancel = r->opts->cancel};
	struct err *e = open_cache(r->opts, &got, &st, &r->cache);
	struct store_as as = e || got.folder ? (struct store_as){0} : store_as_user(st);
	if (!e)
		e = reach_cache_sink_init(&r->sink, r->cache, r->url.peer);
	if (!e) {
		r->sink.sink.progress = tell;
		r->sink.sink.progress_ctx = r;
		r->sink.sink.cancel = r->opts->cancel;
		r->sink.sink.reader = r->opts->reader;
		e = fetch(r, ctx);
	}
	hang_up(r);
	reach_cache_sink_fini(&r->sink);
	got.came_len = r->last.came_len;
	got.turn_cnt = r->turn_cnt;
	got.wire_len = r->wire_len;
	/* What is new may have made the cache too long. Not in the way of anybody: a failure shows the next time. */
	uint64_t freed_len;
	if (!e && got.came_len && !got.folder)
		err_free(reach_cache_prune(r->cache, UINT64_MAX, &freed_len));
	reach_cache_close(r->cache);
	store_as_back(&as);
	store_close(st);
	reach_url_fini(&r->url);
	if (e) {
		ses_remote_fini(&got);
		return e;
	}
	*ret = got;
	return NULL;
}

static struct err *fetch_one(struct remote *r, void *ctx)
{
	return fetch_all(r, *(bool *)ctx);
}

struct err *ses_remote_fetch(const char *url, bool libs, const struct ses_remote_opts *opts, struct ses_remote_got *ret)
{
	struct remote r = {.opts = opts};
	struct err *e = reach_url_parse(url, true, &r.url);
	return e ? e : with_cache(&r, fetch_one, &libs, ret);
}

struct paths {
	const char *const *all;
	size_t cnt;
};

static struct err *fetch_paths(struct remote *r, void *ctx)
{
	const struct paths *p = ctx;
	struct reach_fetch_job *jobs = calloc(p->cnt + 1, sizeof(*jobs));
	char **locals = calloc(p->cnt + 1, sizeof(*locals));
	struct err *e = jobs && locals ? NULL : &err_nomem;
	for (size_t i = 0; i < p->cnt && !e; i++)
		jobs[i] = (struct reach_fetch_job){.path = p->all[i], .ctx = &locals[i]};
	if (!e)
		e = fetch_jobs(r, jobs, (unsigned)p->cnt);
	for (size_t i = 0; i < p->cnt && jobs && locals; i++) {
		if (e) {
			free(locals[i]);
			err_free(jobs[i].err);
		} else {
			e = add_file(r, p->all[i], locals[i], jobs[i].err);
		}
	}
	free(jobs);
	free(locals);
	return e;
}

struct err *ses_remote_fetch_over(struct reach_conn *conn, const char *url, const char *const *paths, size_t cnt,
				  const struct ses_remote_opts *opts, struct ses_remote_got *ret)
{
	struct remote r = {.opts = opts, .is_over = true};
	struct paths p = {paths, cnt};
	struct err *e = reach_url_parse(url, false, &r.url);
	if (e)
		return e;
	e = reach_peer_over(conn, &r.peer);
	if (e) {
		reach_url_fini(&r.url);
		return e;
	}
	return with_cache(&r, fetch_paths, &p, ret);
}

/* Bytes of `from` to `to`, in the kernel where it can. */
static struct err *copy_bytes(int from, int to, const char *path)
{
	struct stat st;
	if (fstat(from, &st))
		return err_os(errno, "%s", path);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)left, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
			char bytes[65536];
			n = read(from, bytes, sizeof(bytes));
			if (n > 0 && write(to, bytes, (size_t)n) != n)
				return err_os(errno ? errno : ENOSPC, "%s: cannot write", path);
		}
		if (n <= 0)
			return err_os(n ? errno : EIO, "%s: cannot write", path);
		left -= n;
	}
	return NULL;
}

struct err *ses_remote_copy(const char *local, const char *path)
{
	_cleanup_free_ char *tmp = NULL;
	_cleanup_close_ int from = open(local, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return err_os(errno, "%s", local);
	if (asprintf(&tmp, "%s.tmp.XXXXXX", path) < 0)
		return &err_nomem;
	int to = mkostemp(tmp, O_CLOEXEC);
	if (to < 0)
		return err_os(errno, "%s: cannot write", path);
	mode_t mask = umask(0);
	umask(mask);
	struct err *e = copy_bytes(from, to, path);
	if (!e && fchmod(to, 0644 & ~mask))
		e = err_os(errno, "%s: cannot set its mode", path);
	if (close(to) && !e)
		e = err_os(errno, "%s: cannot close", path);
	if (!e && rename(tmp, path))
		e = err_os(errno, "%s: cannot rename into place", path);
	if (e)
		unlink(tmp);
	return e;
}

static void push_progress(void *ctx, uint64_t done, uint64_t len)
{
	const struct ses_remote_opts *opts = ctx;
	struct ses_remote_progress p = {.done_len = done, .total_len = len, .came_len = done, .file_cnt = 1};
	if (opts->progress)
		opts->progress(opts->ctx, &p);
}

struct err *ses_remote_push(const char *file, const char *url, const struct ses_remote_opts *opts, uint64_t *ret_len,
			    uint64_t *ret_sent_len)
{
	struct reach_url u;
	struct reach_wait wait = {.stall_ms = opts->stall_ms, .cancel = opts->cancel};
	struct reach_peer *p = NULL;
	struct stat st;
	_cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		return err_os(errno, "%s", file);
	struct err *e = reach_url_parse(url, true, &u);
	if (e)
		return e;
	e = reach_peer_open(&u, &wait, &p);
	if (!e)
		e = reach_push(p, u.path, fd, push_progress, (void *)(uintptr_t)opts,
			       ret_sent_len);
	reach_peer_close(p);
	reach_url_fini(&u);
	*ret_len = (uint64_t)st.st_size;
	return e;
}

/* --- the cache --- */

/* The user's own, as that user. */
struct own_cache {
	struct store *st;
	struct store_as as;
	struct reach_cache *c;
};

static struct err *own_cache_open(struct own_cache *own)
{
	_cleanup_free_ char *root = cache_root();
	struct err *e = root ? store_open(&own->st) : err_new(ERR_ENV, "there is no home for a store");
	if (e)
		return e;
	own->as = store_as_user(own->st);
	return reach_cache_open(root, cache_limit(), &own->c);
}

static void own_cache_close(struct own_cache *own)
{
	reach_cache_close(own->c);
	store_as_back(&own->as);
	store_close(own->st);
}

void ses_cache_free(struct ses_cached *rows, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		free(rows[i].url);
	free(rows);
}

struct err *ses_cache_list(bool verify, struct ses_cached **ret, size_t *ret_cnt)
{
	struct own_cache own = {0};
	struct reach_cache_row *rows = NULL;
	size_t cnt = 0;
	struct err *e = own_cache_open(&own);
	if (!e)
		e = reach_cache_list(own.c, verify, &rows, &cnt);
	own_cache_close(&own);
	if (e)
		return e;
	struct ses_cached *all = calloc(cnt + 1, sizeof(*all));
	for (size_t i = 0; i < cnt && all; i++) {
		const struct reach_entry *en = &rows[i].entry;
		bool is_unix = !strncmp(en->peer, "unix-connect://", 15);
		all[i].len = en->len;
		all[i].used_s = rows[i].used_s;
		all[i].is_damaged = rows[i].is_damaged;
		store_hex(en->sha256, all[i].sha256);
		memcpy(all[i].id, en->id, sizeof(all[i].id));
		if (asprintf(&all[i].url, "%s%s%s", en->peer, is_unix ? ":" : "", en->path) < 0)
			all[i].url = NULL;
	}
	free(rows);
	if (!all)
		return &err_nomem;
	*ret = all;
	*ret_cnt = cnt;
	return NULL;
}

struct err *ses_cache_prune(uint64_t limit_len, uint64_t *ret_freed_len)
{
	struct own_cache own = {0};
	struct err *e = own_cache_open(&own);
	if (!e)
		e = reach_cache_prune(own.c, limit_len, ret_freed_len);
	own_cache_close(&own);
	return e;
}
