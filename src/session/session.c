/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a target and handing out snapshots. The short way, taken whenever the target was seen before: map the
 * file, ask the stat cache for its hash, read one row, map the image. Nothing of the target is parsed. The long way is
 * in ses_build.c and runs in the caller or in the session's worker.
 */
#include "session/session.h"

#include "session/ses_load_int.h"
#include "session/ses_types.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define SES_EVENT_NS 50000000

uint64_t ses_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct err *ses_call_check(const struct ses_call *call)
{
	if (!call)
		return NULL;
	if (call->cancel && atomic_load(call->cancel))
		return err_new(ERR_CANCELLED, "cancelled");
	if (call->deadline_ns && ses_now_ns() > call->deadline_ns)
		return err_new(ERR_TIMEOUT, "the deadline passed");
	return NULL;
}

static const char *const ses_cap_names[] = {"read", "edit", "run-code", "run-target", "trace", "write-files", "net"};

const char *ses_cap_name(unsigned bit)
{
	return bit < ARRAY_LEN(ses_cap_names) ? ses_cap_names[bit] : NULL;
}

uint32_t ses_cap_find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(ses_cap_names); i++) {
		if (!strcmp(ses_cap_names[i], name))
			return 1u << i;
	}
	return 0;
}

void ses_meter_begin(const struct ses_call *call, const char *what, uint64_t total)
{
	if (!call || !call->meter)
		return;
	atomic_store(&call->meter->done, 0);
	atomic_store(&call->meter->total, total);
	atomic_store(&call->meter->what, what);
}

void ses_meter_add(const struct ses_call *call, uint64_t cnt)
{
	if (call && call->meter)
		atomic_fetch_add(&call->meter->done, cnt);
}

/* --- snapshots --- */

struct ses_snap *ses_snap_new(struct ses *s, struct image *im, struct buf *mem, bool is_preview)
{
	struct ses_snap *sn = calloc(1, sizeof(*sn));
	if (!sn)
		return NULL;
	atomic_init(&sn->refs, 1);
	pthread_mutex_init(&sn->lock, NULL);
	sn->ses = s;
	sn->im = im;
	sn->arch = s->arch;
	sn->space = image_space(im);
	sn->is_preview = is_preview;
	if (mem) {
		sn->mem = *mem;
		*mem = (struct buf){0};
	}
	return sn;
}

void ses_snap_free(struct ses_snap *sn)
{
	if (!sn)
		return;
	for (size_t i = 0; i < SES_VIEW_MAX; i++) {
		free(sn->views[i].key);
		free(sn->views[i].idx);
	}
	free(sn->marks);
	free(sn->edges);
	free(sn->typed);
	ses_protos_free(sn->protos);
	ses_typeset_put(sn->types);
	image_unref(sn->im);
	edits_view_unref(sn->edits);
	buf_fini(&sn->mem);
	ses_snap_put(sn->holds);
	pthread_mutex_destroy(&sn->lock);
	free(sn);
}

struct ses_snap *ses_snap_with(struct ses_snap *was, struct edits_view *edits)
{
	struct ses_snap *sn = ses_snap_new(was->ses, image_ref(was->im), NULL, was->is_preview);
	if (!sn) {
		image_unref(was->im);
		return NULL;
	}
	sn->arch = was->arch;
	sn->edits = edits;
	sn->rev = edits ? edits_view_state(edits)->rev : was->rev;
	sn->gen = was->gen;
	sn->is_settled = was->is_settled && sn->rev == was->rev;
	sn->holds = was->mem.len ? was : was->holds;
	if (sn->holds)
		atomic_fetch_add(&sn->holds->refs, 1);
	return sn;
}

uint64_t ses_snap_bias(const struct ses_snap *sn)
{
	return image_meta(sn->im)->bias;
}

bool ses_snap_is_stale(const struct ses_snap *sn)
{
	const struct edits_state *st = sn->edits ? edits_view_state(sn->edits) : NULL;
	return st && !sn->is_settled && st->directive_rev > st->built_from_rev;
}

struct ses_snap *ses_snap_get(struct ses *s)
{
	pthread_mutex_lock(&s->lock);
	struct ses_snap *sn = s->snap;
	atomic_fetch_add(&sn->refs, 1);
	pthread_mutex_unlock(&s->lock);
	return sn;
}

void ses_snap_put(struct ses_snap *sn)
{
	if (sn && atomic_fetch_sub(&sn->refs, 1) == 1)
		ses_snap_free(sn);
}

uint64_t ses_snap_rev(const struct ses_snap *sn)
{
	return sn->rev;
}

struct ses *ses_snap_session(const struct ses_snap *sn)
{
	return sn->ses;
}

bool ses_snap_is_pending(const struct ses_snap *sn)
{
	struct ses *s = sn->ses;
	pthread_mutex_lock(&s->lock);
	bool is_pending = s->progress.state == SES_IDENTIFYING || s->progress.state == SES_ANALYSING;
	pthread_mutex_unlock(&s->lock);
	return is_pending || ses_snap_is_stale(sn);
}

bool ses_snap_is_preview(const struct ses_snap *sn)
{
	return sn->is_preview;
}

/* --- progress --- */

static void ses_signal(struct ses *s)
{
	uint64_t one = 1;
	pthread_cond_broadcast(&s->changed);
	if (s->event_fd >= 0 && write(s->event_fd, &one, sizeof(one)) < 0) {
		/* EAGAIN: it is readable already. */
	}
}

void ses_set_progress(struct ses *s, enum ses_state state, const char *stage, uint64_t done, uint64_t total, uint64_t func_cnt)
{
	struct ses_progress p = {.state = state, .stage = stage, .done = done, .total = total, .func_cnt = func_cnt};
	uint64_t now = ses_now_ns();
	pthread_mutex_lock(&s->lock);
	bool is_due = state != s->progress.state || now - s->event_ns >= SES_EVENT_NS;
	s->progress = p;
	if (is_due)
		s->event_ns = now;
	pthread_mutex_unlock(&s->lock);
	if (!is_due)
		return;
	ses_signal(s);
	if (s->progress_fn)
		s->progress_fn(s->progress_ctx, &p);
}

static bool is_as_new(const struct ses_snap *sn, const struct ses_snap *was)
{
	if (sn->is_preview != was->is_preview)
		return was->is_preview;
	return sn->gen != was->gen ? sn->gen > was->gen : sn->rev >= was->rev;
}

/* An edit and an analysis may end at the same time: the newer one stays. */
static void publish(struct ses *s, struct ses_snap *sn, bool is_done)
{
	pthread_mutex_lock(&s->lock);
	struct ses_snap *was = s->snap;
	if (!was || is_as_new(sn, was))
		s->snap = sn;
	else
		was = sn;
	if (is_done)
		s->progress = (struct ses_progress){.state = SES_READY, .stage = "ready"};
	pthread_mutex_unlock(&s->lock);
	ses_snap_put(was);
	ses_signal(s);
}

void ses_publish(struct ses *s, struct ses_snap *sn)
{
	publish(s, sn, false);
}

void ses_publish_done(struct ses *s, struct ses_snap *sn)
{
	publish(s, sn, true);
}

bool ses_has_hash(struct ses *s)
{
	pthread_mutex_lock(&s->lock);
	bool has = s->has_sha256;
	pthread_mutex_unlock(&s->lock);
	return has;
}

int ses_event_fd(const struct ses *s)
{
	return s->event_fd;
}

void ses_get_progress(const struct ses *s, struct ses_progress *ret)
{
	struct ses *w = (struct ses *)s;
	pthread_mutex_lock(&w->lock);
	*ret = s->progress;
	pthread_mutex_unlock(&w->lock);
}

const char *ses_error_text(const struct ses *s)
{
	struct ses *w = (struct ses *)s;
	pthread_mutex_lock(&w->lock);
	const char *text = s->error_text ? s->error_text : "";
	pthread_mutex_unlock(&w->lock);
	return text;
}

const char *ses_local_path(const struct ses *s)
{
	struct ses *w = (struct ses *)s;
	pthread_mutex_lock(&w->lock);
	const char *path = s->remote.cnt ? s->remote.files[0].local : s->path;
	pthread_mutex_unlock(&w->lock);
	return path;
}

bool ses_is_partial(const struct ses *s, uint64_t *ret_have_len)
{
	const struct holes *h = s->file ? s->file->holes : NULL;
	*ret_have_len = h ? holes_have_len(h) : s->file ? s->file->len : 0;
	return h && *ret_have_len < s->file->len;
}

const char *ses_path(const struct ses *s)
{
	return s->path;
}

const char *ses_store_note(const struct ses *s)
{
	struct ses *w = (struct ses *)s;
	pthread_mutex_lock(&w->lock);
	const char *note = w->store_note;
	pthread_mutex_unlock(&w->lock);
	return note;
}

bool ses_target_changed(const struct ses *s)
{
	return s->file && file_has_changed(s->file);
}

bool ses_is_absent(const struct ses *s)
{
	return !s->file;
}

bool ses_get_sha256(const struct ses *s, uint8_t ret[32])
{
	struct ses *w = (struct ses *)s;
	pthread_mutex_lock(&w->lock);
	bool is_known = s->has_sha256;
	if (is_known)
		memcpy(ret, s->sha256, 32);
	pthread_mutex_unlock(&w->lock);
	return is_known;
}

enum ses_state ses_wait(struct ses *s, const atomic_bool *stop)
{
	pthread_mutex_lock(&s->lock);
	while (s->progress.state != SES_READY && s->progress.state != SES_FAILED && !(stop && atomic_load(stop))) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += SES_EVENT_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
	}
	enum ses_state state = s->progress.state;
	pthread_mutex_unlock(&s->lock);
	return state;
}

/* --- opening --- */

static void work_once(struct ses *s)
{
	struct err *e = ses_build(s);
	if (!e)
		return;
	pthread_mutex_lock(&s->lock);
	if (!s->error_text)
		s->error_text = strdup(e->text);
	s->progress = (struct ses_progress){.state = SES_FAILED, .stage = "failed"};
	pthread_mutex_unlock(&s->lock);
	err_free(e);
	ses_signal(s);
}

static void *ses_worker(void *arg)
{
	struct ses *s = arg;
	bool is_wanted;
	do {
		work_once(s);
		pthread_mutex_lock(&s->worker_lock);
		is_wanted = s->is_wanted && !atomic_load(&s->stop);
		s->is_wanted = false;
		s->is_working = is_wanted;
		pthread_mutex_unlock(&s->worker_lock);
	} while (is_wanted);
	return NULL;
}

/* One worker at a time; one that is at work is told to look once more. */
static struct err *start_worker(struct ses *s)
{
	int rc = 0;
	pthread_mutex_lock(&s->worker_lock);
	if (s->is_working) {
		s->is_wanted = true;
	} else {
		if (s->has_worker)
			pthread_join(s->worker, NULL);
		s->is_working = true;
		rc = pthread_create(&s->worker, NULL, ses_worker, s);
		s->has_worker = s->is_working = !rc;
	}
	pthread_mutex_unlock(&s->worker_lock);
	return rc ? err_os(rc, "cannot start a thread") : NULL;
}

void ses_analyse_newer(struct ses *s)
{
	struct ses_snap *sn = ses_snap_get(s);
	bool is_due = s->event_fd >= 0 && s->file && ses_snap_is_stale(sn);
	ses_snap_put(sn);
	if (is_due)
		err_free(start_worker(s)); /* the snapshot stays pending, and the next edit or refresh tries again */
}

/* What can be shown while the worker is at it: the stored image, or what the file's tables say. */
static struct err *ses_start_worker(struct ses *s)
{
	struct err *e = s->snap ? NULL : ses_build_preview(s, &s->snap);
	return e ? e : start_worker(s);
}

/* The short way. Null snapshot when it cannot be gone, whatever the reason: the long way finds it out again. */
static struct ses_snap *ses_open_known(struct ses *s)
{
	if (!s->store || s->force || !store_find_sha256(s->store, s->file, s->sha256))
		return NULL;
	s->has_sha256 = true;
	struct ses_snap *sn = NULL;
	err_free(ses_open_stored(s, &sn));
	return sn;
}

/* Of a machine without a decoder everything is shown but code. */
struct err *ses_arch_of(enum arch_id id, const struct arch **ret)
{
	if (id != ARCH_ID_NONE)
		return arch_get(id, ret);
	*ret = &arch_none;
	return NULL;
}

/* --- a file of another machine --- */

#define MISSED_MS 100 /* that a person who looks at a place waits for its bytes, before it is shown without */

struct fetching {
	const struct ses_opts *opts;
};

static void tell_fetching(void *ctx, const struct ses_remote_progress *r)
{
	const struct ses_opts *opts = ((const struct fetching *)ctx)->opts;
	struct ses_progress p = {.state = SES_IDENTIFYING, .stage = "fetching", .done = r->done_len, .total = r->total_len};
	if (opts->progress)
		opts->progress(opts->progress_ctx, &p);
}

/* To this machine first. */
static struct err *ses_fetch(struct ses *s, const struct ses_opts *opts)
{
	struct fetching f = {.opts = opts};
	struct ses_remote_opts how = {.cancel = opts->cancel, .no_store = opts->no_store, .progress = tell_fetching, .ctx = &f};
	return ses_remote_fetch(s->path, false, &how, &s->remote);
}

/* From the thread that fetches: places that were shown without their bytes are shown again, under a snapshot of their own. */
static void show_again(struct ses *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_preview = s->snap && s->snap->is_preview;
	pthread_mutex_unlock(&s->lock);
	if (!is_preview)
		return;
	struct ses_snap *was = ses_snap_get(s), *sn = ses_snap_with(was, NULL);
	ses_snap_put(was);
	if (sn)
		ses_publish(s, sn);
}

static void tell_coming(void *ctx, const struct ses_remote_progress *r)
{
	struct ses *s = ctx;
	struct ses_progress p = {.state = SES_IDENTIFYING, .stage = "fetching", .done = r->done_len, .total = r->total_len};
	pthread_mutex_lock(&s->lock);
	bool is_shown = !s->opening && s->event_fd >= 0;
	if (s->opening && s->opening->progress)
		s->opening->progress(s->opening->progress_ctx, &p);
	pthread_mutex_unlock(&s->lock);
	if (!is_shown)
		return;
	ses_set_progress(s, SES_IDENTIFYING, "fetching", p.done, p.total, 0);
	uint64_t now = ses_now_ns();
	if (now - s->shown_ns < MISSED_MS * 1000000ull || !atomic_exchange(&s->is_missed, false))
		return;
	s->shown_ns = now;
	show_again(s);
}

/* What is large is opened as soon as it can be looked at, everything else when it is here. */
static struct err *ses_begin_coming(struct ses *s, const struct ses_opts *opts)
{
	struct ses_coming_opts how = {.cancel = opts->cancel, .no_store = opts->no_store, .only_wanted = !opts->background,
				      .progress = tell_coming, .ctx = s};
	s->opening = opts;
	return ses_coming_begin(s->path, &how, &s->coming, &s->file, &s->remote);
}

static void end_opening(struct ses *s)
{
	pthread_mutex_lock(&s->lock);
	s->opening = NULL;
	pthread_mutex_unlock(&s->lock);
}

struct err *ses_arrive(struct ses *s)
{
	struct ses_remote_got got = {0};
	uint8_t sha256[32];
	struct err *e = ses_coming_wait(s->coming, s->event_fd >= 0 ? &s->stop : s->cancel, &got, sha256);
	ses_coming_free(take_ptr(s->coming));
	if (e)
		return e;
	pthread_mutex_lock(&s->lock);
	s->remote = got;
	memcpy(s->sha256, sha256, 32);
	s->has_sha256 = true;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct err *ses_end_part(struct ses *s)
{
	struct err *e = s->coming ? ses_coming_end(s->coming) : NULL;
	ses_coming_free(take_ptr(s->coming));
	return e;
}

bool ses_is_here(const struct ses_snap *sn, uint32_t loc, uint32_t len)
{
	struct ses *s = sn->ses;
	struct holes *h = s->file && sn->is_preview ? s->file->holes : NULL;
	int i = h ? space_seg_of_loc(sn->space, loc) : -1;
	if (i < 0)
		return true;
	const struct space_seg *g = &sn->space->segs[i];
	uint32_t off = loc - g->loc;
	if (off >= g->file_len)
		return true;
	/* On one page once is waited. */
	unsigned ms = s->event_fd < 0 ? UINT_MAX : atomic_load(&s->is_missed) ? 0 : MISSED_MS;
	if (holes_wait(h, g->file_off + off, MIN(len, g->file_len - off), ms))
		return true;
	atomic_store(&s->is_missed, true);
	return false;
}

static struct err *ses_open_file(struct ses *s)
{
	struct err *e = file_open(ses_local_path(s), &s->file);
	if (e && e->os_errno == EACCES)
		return err_fix(e, "read permission on the file and its folders is needed");
	if (e)
		return e;
	if (!s->file->len)
		return err_new(ERR_BAD_INPUT, "%s: is empty", s->path);
	return NULL;
}

/* With options that are to be stated: they must fit the file first. */
static struct err *begin_as(struct ses *s, const struct ses_opts *opts)
{
	struct err *e = ses_load_take(s, opts);
	if (!e)
		e = ses_parse_as(s, &s->asked);
	if (e || !s->store)
		return e;
	if (store_find_sha256(s->store, s->file, s->sha256))
		s->has_sha256 = true;
	e = ses_identify(s);
	if (!e)
		e = ses_load_state(s, opts);
	if (!e)
		s->asked = (struct ses_load){0};
	return e;
}

/* What the journal says of how to read the file; its hash is known. */
static struct ses_load stated_load(struct ses *s)
{
	struct ses_load l = s->asked;
	struct edits_state st;
	struct edits_view *v = NULL;
	struct err *e = s->store && s->has_sha256 ? store_get_base(s->store, s->sha256, &st, &v) : &err_not_found;
	if (!e && v)
		ses_load_read(v, &l);
	err_free(e);
	edits_view_unref(v);
	return l;
}

/* Before anything is shown. A file that says nothing of itself may have been opened with options before. */
static struct err *first_parse(struct ses *s)
{
	struct ses_load l = stated_load(s);
	struct err *e = ses_parse_as(s, &l);
	if (!e || e->kind != ERR_UNSUPPORTED || s->has_sha256 || !s->store)
		return e;
	struct err *why = ses_identify(s);
	if (!why)
		err_free(store_put_sha256(s->store, s->file, s->sha256)); /* a cache, for the next refusal */
	l = why ? l : stated_load(s);
	if (why || !ses_load_is_any(&l)) {
		err_free(why);
		return e;
	}
	err_free(e);
	return ses_parse_as(s, &l);
}

/* A part of a file shows what its tables say. Where they are not to be understood all of it is waited for, and then said why. */
static struct err *begin_part(struct ses *s, const struct ses_opts *opts)
{
	struct ses_load none = {0};
	struct err *e = ses_parse_as(s, &none);
	if (!e)
		e = ses_build_preview(s, &s->snap);
	if (!e)
		s->progress = (struct ses_progress){.state = SES_IDENTIFYING, .stage = "fetching",
						    .done = holes_have_len(s->file->holes), .total = s->file->len};
	if (!e || e->kind == ERR_NOMEM)
		return e;
	err_free(e);
	return ses_arrive(s);
}

static struct err *begin_whole(struct ses *s, const struct ses_opts *opts)
{
	if (s->snap && !ses_snap_is_stale(s->snap)) {
		s->progress = (struct ses_progress){.state = SES_READY, .stage = "ready"};
		return NULL;
	}
	struct err *e = first_parse(s);
	if (e)
		return e;
	return opts->background ? ses_start_worker(s) : ses_build(s);
}

static struct err *ses_begin(struct ses *s, const struct ses_opts *opts)
{
	bool is_remote = opts->may_connect && ses_is_remote(s->path), has_load = opts->processor || opts->base || opts->format;
	bool may_be_partial = is_remote && !has_load && !opts->force && (opts->background || opts->may_be_partial);
	struct err *e = may_be_partial ? ses_begin_coming(s, opts) : is_remote ? ses_fetch(s, opts) : NULL;
	if (!e && !s->coming)
		e = ses_open_file(s);
	if (e)
		return e;
	if (!opts->no_store) {
		struct err *why = store_open(&s->store);
		if (why)
			s->store_note = strdup(why->text);
		err_free(why);
	}
	if (has_load) {
		e = begin_as(s, opts);
		if (e)
			return e;
	}
	if (opts->background) {
		s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (s->event_fd < 0)
			return err_os(errno, "eventfd");
	}
	e = s->coming ? begin_part(s, opts) : NULL;
	if (e)
		return e;
	if (s->coming)
		return opts->background ? start_worker(s) : NULL;
	s->snap = ses_open_known(s);
	return begin_whole(s, opts);
}

static struct ses *ses_new(const char *path, const struct ses_opts *opts)
{
	struct ses *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->event_fd = s->watch_fd = -1;
	s->threads = opts->threads;
	s->force = opts->force;
	s->cancel = opts->cancel;
	if (!opts->background) {
		s->progress_fn = opts->progress;
		s->progress_ctx = opts->progress_ctx;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->edits_lock, NULL);
	pthread_mutex_init(&s->worker_lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->path = strdup(path);
	if (s->path)
		return s;
	ses_close(s);
	return NULL;
}

struct err *ses_open(const char *path, const struct ses_opts *opts, struct ses **ret)
{
	uint8_t sha256[32] = {0};
	if (!strncmp(path, "sha256:", 7) && strlen(path) == 71 && store_unhex(path + 7, 32, sha256) && access(path, F_OK))
		return ses_open_absent(path, sha256, opts, ret);
	struct ses *s = ses_new(path, opts);
	struct err *e = s ? ses_begin(s, opts) : &err_nomem;
	if (s)
		end_opening(s);
	if (e) {
		ses_close(s);
		return e;
	}
	*ret = s;
	return NULL;
}

struct err *ses_open_absent(const char *path, const uint8_t sha256[32], const struct ses_opts *opts, struct ses **ret)
{
	struct ses *s = ses_new(path, opts);
	struct err *e = s ? store_open(&s->store) : &err_nomem;
	if (!e) {
		memcpy(s->sha256, sha256, 32);
		s->has_sha256 = true;
		s->progress = (struct ses_progress){.state = SES_READY, .stage = "ready"};
		s->event_fd = opts->background ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
		e = ses_open_stored(s, &s->snap);
	}
	if (e && (e->kind == ERR_NOT_FOUND || e->kind == ERR_STALE)) {
		err_free(e);
		e = err_new(ERR_NOT_FOUND, "%s: the file is gone and the store has no analysis of it", path);
	}
	if (e) {
		ses_close(s);
		return e;
	}
	*ret = s;
	return NULL;
}

void ses_close(struct ses *s)
{
	if (!s)
		return;
	if (s->has_worker) {
		atomic_store(&s->stop, true);
		pthread_join(s->worker, NULL);
	}
	ses_coming_free(s->coming);
	ses_snap_put(s->snap);
	fmt_bin_free(s->bin);
	ses_edits_close(s);
	store_close(s->store);
	file_close(s->file);
	if (s->event_fd >= 0)
		close(s->event_fd);
	if (s->watch_fd >= 0)
		close(s->watch_fd);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->edits_lock);
	pthread_mutex_destroy(&s->worker_lock);
	pthread_cond_destroy(&s->changed);
	free(s->store_note);
	free(s->error_text);
	ses_remote_fini(&s->remote);
	free(s->path);
	free(s);
}
