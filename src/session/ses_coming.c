/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_coming.h"

#include "live/reach/reach_cache.h"
#include "session/store.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* Smaller files are here before anybody misses them. */
#define MIN_LEN (4u << 20)
#define IDLE_MS 50
#define MAX_TABLES 64

struct ses_coming {
	char *url;
	struct ses_coming_opts opts;
	pthread_t thread;
	bool has_thread;
	atomic_bool cancel;
	atomic_bool is_started; /* the tables were asked for: the rest may come */
	atomic_bool wants_all;	/* also with only_wanted */
	atomic_bool is_ending;
	struct file *file; /* the caller's once it was handed out; set once, by the thread */
	uint64_t ino, dev;

	pthread_mutex_t lock; /* for the following */
	pthread_cond_t changed;
	bool is_mapped, is_done;
	struct err *err;
	struct ses_remote_got got;
};

static void signal_all(struct ses_coming *c)
{
	pthread_cond_broadcast(&c->changed);
}

/* --- the thread that fetches --- */

static void came(void *ctx, size_t block)
{
	holes_fill(((struct ses_coming *)ctx)->file->holes, block);
}

static struct err *begun(void *ctx, struct reach_fetch_job *job, struct reach_part *part)
{
	struct ses_coming *c = ctx;
	struct stat st;
	if (reach_part_len(part) < MIN_LEN && !c->file)
		return NULL;
	if (fstat(reach_part_fd(part), &st))
		return err_os(errno, "%s", c->url);
	if (c->file) {
		/* The connection was lost; the file there may be another one now, and the half of the old one is what is mapped. */
		if (st.st_ino != c->ino || st.st_dev != c->dev)
			return err_fix(err_new(ERR_STALE, "%s: was changed there while it was read", c->url), "open it again");
		holes_restart(c->file->holes);
	} else {
		struct file *f = NULL;
		struct err *e = file_open_holes(reach_part_fd(part), c->url, reach_part_len(part), REACH_BLOCK_LEN, &f);
		if (e)
			return e;
		c->ino = st.st_ino;
		c->dev = st.st_dev;
		pthread_mutex_lock(&c->lock);
		c->file = f;
		c->is_mapped = true;
		signal_all(c);
		pthread_mutex_unlock(&c->lock);
	}
	reach_part_watch(part, came, c);
	return NULL;
}

static enum reach_rest next(void *ctx, struct reach_fetch_job *job, size_t *ret_block)
{
	struct ses_coming *c = ctx;
	*ret_block = SIZE_MAX;
	if (!c->file)
		return REACH_REST_COMES;
	if (atomic_load(&c->is_ending))
		return REACH_REST_NEVER;
	*ret_block = holes_next(c->file->holes);
	if (atomic_load(&c->wants_all))
		return REACH_REST_COMES;
	return c->opts.only_wanted || !atomic_load(&c->is_started) ? REACH_REST_WAITS : REACH_REST_COMES;
}

static void idle(void *ctx)
{
	holes_idle(((struct ses_coming *)ctx)->file->holes, IDLE_MS);
}

/* Whether the bytes that are mapped are those of the file that was got. */
static bool is_that_file(const struct ses_coming *c, const struct ses_remote_got *got)
{
	struct stat st;
	return got->cnt && got->files[0].local && !stat(got->files[0].local, &st) && st.st_ino == c->ino && st.st_dev == c->dev &&
	       (uint64_t)st.st_size == c->file->len;
}

static void *fetch_main(void *arg)
{
	struct ses_coming *c = arg;
	const struct reach_reader reader = {.begun = begun, .next = next, .idle = idle, .ctx = c};
	/* Somebody who sleeps in a fault cannot pass on that he was interrupted. */
	const atomic_bool *cancel = c->opts.only_wanted && c->opts.cancel ? c->opts.cancel : &c->cancel;
	struct ses_remote_opts opts = {.cancel = cancel, .no_store = c->opts.no_store, .progress = c->opts.progress, .ctx = c->opts.ctx,
				       .reader = &reader};
	struct ses_remote_got got = {0};
	struct err *e = ses_remote_fetch(c->url, false, &opts, &got);
	if (!e && c->file && !is_that_file(c, &got))
		e = err_fix(err_new(ERR_STALE, "%s: was changed there while it was read", c->url), "open it again");
	if (!e && c->file) {
		e = file_settle(c->file);
		holes_end(c->file->holes, !e);
	} else if (c->file) {
		holes_end(c->file->holes, false);
	}
	pthread_mutex_lock(&c->lock);
	c->err = e;
	c->got = got;
	c->is_done = true;
	signal_all(c);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* --- the reader --- */

/* Until `*flag` (under the lock) or the end, a moment at most. */
static void wait_a_moment(struct ses_coming *c)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 50000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&c->changed, &c->lock, &t);
}

static size_t read_here(void *ctx, uint64_t off, uint8_t *dst, size_t len)
{
	struct file *f = ctx;
	if (off >= f->len)
		return 0;
	len = MIN(len, f->len - (size_t)off);
	if (!holes_wait(f->holes, off, len, UINT_MAX))
		return 0;
	memcpy(dst, f->data + off, len);
	return len;
}

/* Headers are at the beginning, section headers nearly always at the end: both at once, then what they lead to. */
static void want_tables(struct file *f)
{
	struct reach_range tables[MAX_TABLES];
	holes_want(f->holes, 0, 1);
	holes_want(f->holes, f->len - 1, 1);
	size_t cnt = reach_elf_tables(read_here, f, tables, MAX_TABLES);
	for (size_t i = 0; i < cnt; i++)
		holes_want(f->holes, tables[i].off, tables[i].len);
}

static struct err *take_result(struct ses_coming *c, struct ses_remote_got *ret_got)
{
	struct err *e = take_ptr(c->err);
	*ret_got = c->got;
	c->got = (struct ses_remote_got){0};
	return e;
}

struct err *ses_coming_begin(const char *url, const struct ses_coming_opts *opts, struct ses_coming **ret, struct file **ret_file,
			     struct ses_remote_got *ret_got)
{
	struct ses_coming *c = calloc(1, sizeof(*c));
	if (!c)
		return &err_nomem;
	c->opts = *opts;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->url = strdup(url);
	int rc = c->url ? pthread_create(&c->thread, NULL, fetch_main, c) : ENOMEM;
	c->has_thread = !rc;
	pthread_mutex_lock(&c->lock);
	while (!rc && !c->is_mapped && !c->is_done) {
		wait_a_moment(c);
		if (opts->cancel && atomic_load(opts->cancel))
			atomic_store(&c->cancel, true);
	}
	bool is_coming = c->is_mapped && !(c->is_done && c->err);
	struct err *e = rc ? err_os(rc, "cannot start a thread") : is_coming ? NULL : take_result(c, ret_got);
	*ret_file = c->file;
	pthread_mutex_unlock(&c->lock);
	if (is_coming) {
		want_tables(c->file);
		atomic_store(&c->is_started, true);
		*ret = c;
		return NULL;
	}
	*ret_file = NULL;
	struct file *f = c->file;
	ses_coming_free(c);
	file_close(f);
	return e;
}

/* The thread has ended, or is told to when *stop. */
static void join(struct ses_coming *c, const atomic_bool *stop)
{
	pthread_mutex_lock(&c->lock);
	while (!c->is_done) {
		wait_a_moment(c);
		if (stop && atomic_load(stop))
			atomic_store(&c->cancel, true);
	}
	pthread_mutex_unlock(&c->lock);
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	c->has_thread = false;
}

struct err *ses_coming_wait(struct ses_coming *c, const atomic_bool *stop, struct ses_remote_got *ret_got, uint8_t sha256[32])
{
	atomic_store(&c->wants_all, true);
	holes_wake(c->file->holes);
	join(c, stop);
	struct ses_remote_got got = {0};
	struct err *e = take_result(c, &got);
	const char *name = !e && got.cnt && got.files[0].local ? strrchr(got.files[0].local, '/') : NULL;
	if (!e && (!name || !store_unhex(name + 1, 32, sha256)))
		e = err_new(ERR_INTERNAL, "%s: was fetched and has no name", c->url);
	if (e)
		ses_remote_fini(&got);
	*ret_got = got;
	return e;
}

struct err *ses_coming_end(struct ses_coming *c)
{
	atomic_store(&c->is_ending, true);
	holes_wake(c->file->holes);
	join(c, NULL);
	struct ses_remote_got got = {0};
	struct err *e = take_result(c, &got);
	ses_remote_fini(&got);
	/* That not all of it was fetched is what was asked for. */
	if (e && e->kind == ERR_CANCELLED && !(c->opts.cancel && atomic_load(c->opts.cancel))) {
		err_free(e);
		e = NULL;
	}
	return e;
}

void ses_coming_free(struct ses_coming *c)
{
	if (!c)
		return;
	atomic_store(&c->cancel, true);
	atomic_store(&c->is_ending, true);
	if (c->file)
		holes_wake(c->file->holes);
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	err_free(c->err);
	ses_remote_fini(&c->got);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c->url);
	free(c);
}
