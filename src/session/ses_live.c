/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watcher's side of a live trace: a thread reads rows from the pipe and keeps the newest in a ring, with the numbers of those
 * that the filter leaves in another. Nothing wakes anybody while no event comes.
 */
#include "session/ses_live.h"

#include "base/buf.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "live/trace/sysc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 65536
#define BYTES_MAX (64u << 20)
#define READ_LEN 262144
#define TELL_MS 33
#define END_MS 2000    /* for a tracer to end in good order */
#define WORDS_MAX 32   /* of a filter */
#define FILTER_MAX 256

enum word_kind { WORD_TEXT, WORD_CLASS, WORD_PID, WORD_CALL, WORD_ERROR, WORD_FINDING, WORD_COMM };

struct word {
	enum word_kind kind;
	bool is_not;
	uint16_t class;
	uint32_t pid;
	const char *text;  /* in `text` of the filter */
	size_t len;
};

struct filter {
	char text[FILTER_MAX];
	struct word words[WORDS_MAX];
	uint32_t cnt;
};

struct kept {
	uint64_t id;
	uint8_t *bytes;
	uint32_t len;
};

struct ses_live {
	pthread_t thread;
	bool has_thread;
	int fd, event_fd;
	pid_t pid;
	atomic_bool is_leaving;

	pthread_mutex_t lock;      /* for what follows */
	pthread_cond_t changed;
	bool is_reaped;            /* the process is gone, its number may be another's */
	bool is_told, has_news;
	uint64_t told_ns;
	struct kept *rows;         /* a ring: that of id is at id % rows_max */
	uint64_t *matches;         /* a ring of ids: the i-th that was left by the filter ever is at i % rows_max */
	uint32_t rows_max;
	uint64_t bytes_max, bytes;
	uint64_t first_id, next_id;
	uint64_t match_first, match_end;
	uint64_t pause_end;        /* match_end when it was paused */
	uint64_t paused_drops;
	struct ses_live_state st;
	struct filter filter;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- the filter ------------------------------------------------------------------------------------------------------- */

static struct err *parse_word(struct filter *f, const char *s, size_t len)
{
	struct word *w = &f->words[f->cnt];
	*w = (struct word){.kind = WORD_TEXT};
	if (*s == '!' && len > 1) {
		w->is_not = true;
		s++;
		len--;
	}
	w->text = s;
	w->len = len;
	if (*s == '%' && len > 1) {
		w->kind = WORD_CLASS;
		w->class = sysc_class_bit(s, len);
		if (!w->class)
			return err_fix(err_new(ERR_INVALID, "%.*s: no class of calls has that name", (int)len, s),
				       "classes are file, network, memory, process, signal, ipc, desc, creds, clock, stat, pure");
	} else if (len > 4 && !memcmp(s, "pid=", 4)) {
		char *end;
		w->kind = WORD_PID;
		w->pid = (uint32_t)strtoul(s + 4, &end, 10);
		if (end != s + len)
			return err_new(ERR_INVALID, "%.*s: is no number of a process", (int)len, s);
	} else if (len > 5 && !memcmp(s, "call=", 5)) {
		w->kind = WORD_CALL;
		w->text += 5;
		w->len -= 5;
	} else if (len > 5 && !memcmp(s, "comm=", 5)) {
		w->kind = WORD_COMM;
		w->text += 5;
		w->len -= 5;
	} else if (len == 5 && !memcmp(s, "error", 5)) {
		w->kind = WORD_ERROR;
	} else if (len == 7 && !memcmp(s, "finding", 7)) {
		w->kind = WORD_FINDING;
	}
	f->cnt++;
	return NULL;
}

static struct err *parse_filter(struct filter *f, const char *text)
{
	size_t len = strlen(text);
	if (len >= sizeof(f->text))
		return err_new(ERR_INVALID, "a filter has at most %zu bytes", sizeof(f->text) - 1);
	memcpy(f->text, text, len + 1);
	f->cnt = 0;
	for (const char *at = f->text; *at;) {
		at += strspn(at, " ");
		size_t n = strcspn(at, " ");
		if (n && f->cnt == WORDS_MAX)
			return err_new(ERR_INVALID, "a filter has at most %d words", WORDS_MAX);
		struct err *e = n ? parse_word(f, at, n) : NULL;
		if (e)
			return e;
		at += n;
	}
	return NULL;
}

static bool has_text(const char *s, size_t len, struct ses_text t)
{
	return glob_match(s, len, t.s, t.len, true);
}

static bool is_one_of(const char *list, size_t len, struct ses_text name)
{
	while (len) {
		const char *comma = memchr(list, ',', len);
		size_t n = comma ? (size_t)(comma - list) : len;
		if (n == name.len && !memcmp(list, name.s, n))
			return true;
		n += comma != NULL;
		list += n;
		len -= n;
	}
	return false;
}

static bool has_site(const struct word *w, const struct ses_live_row *r)
{
	return r->site < r->frame_cnt && (has_text(w->text, w->len, r->frames[r->site].func) || has_text(w->text, w->len, r->frames[r->site].module));
}

static bool meets(const struct word *w, const struct ses_live_row *r)
{
	switch (w->kind) {
	case WORD_CLASS:
		return r->classes & w->class;
	case WORD_PID:
		return r->pid == w->pid || r->tid == w->pid;
	case WORD_CALL:
		return r->kind == SES_LIVE_CALL && is_one_of(w->text, w->len, r->name);
	case WORD_COMM:
		return has_text(w->text, w->len, r->comm);
	case WORD_ERROR:
		return r->is_error;
	case WORD_FINDING:
		return r->kind == SES_LIVE_FINDING;
	case WORD_TEXT:
		break;
	}
	return has_text(w->text, w->len, r->name) || has_text(w->text, w->len, r->args) || has_text(w->text, w->len, r->result) || has_site(w, r);
}

/* What is missing is no row to be filtered: it is missing from whatever is shown. */
static bool is_left(const struct filter *f, const struct ses_live_row *r)
{
	if (r->kind == SES_LIVE_LOST || r->kind == SES_LIVE_END)
		return true;
	for (uint32_t i = 0; i < f->cnt; i++) {
		if (meets(&f->words[i], r) == f->words[i].is_not)
			return false;
	}
	return true;
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

static void drop_oldest(struct ses_live *l)
{
	struct kept *k = &l->rows[l->first_id % l->rows_max];
	if (l->match_first < l->match_end && l->matches[l->match_first % l->rows_max] == l->first_id)
		l->match_first++;
	l->bytes -= k->len;
	free(k->bytes);
	k->bytes = NULL;
	l->first_id++;
	l->st.dropped++;
}

static bool has_room(const struct ses_live *l, size_t len)
{
	return l->next_id - l->first_id < l->rows_max && l->bytes + len <= l->bytes_max;
}

static void keep(struct ses_live *l, const uint8_t *bytes, size_t len, const struct ses_live_row *r)
{
	if (l->st.is_paused && r->kind != SES_LIVE_END && !has_room(l, len)) {
		l->paused_drops++;
		l->st.dropped++;
		return;
	}
	while (l->first_id < l->next_id && !has_room(l, len))
		drop_oldest(l);
	uint8_t *own = malloc(len);
	if (!own) {
		l->st.dropped++;
		return;
	}
	memcpy(own, bytes, len);
	l->rows[l->next_id % l->rows_max] = (struct kept){.id = l->next_id, .bytes = own, .len = (uint32_t)len};
	l->bytes += len;
	if (is_left(&l->filter, r))
		l->matches[l->match_end++ % l->rows_max] = l->next_id;
	l->next_id++;
}

/* A row of our own. */
static void keep_own(struct ses_live *l, enum ses_live_kind kind, const char *text)
{
	_cleanup_buf_ struct buf out = {0};
	struct ses_live_row r = {.kind = kind, .args = {text, (uint32_t)strlen(text)}, .is_error = kind == SES_LIVE_END};
	ses_live_put(&r, &out);
	if (!out.failed)
		keep(l, (const uint8_t *)out.data, out.len, &r);
}

static void count(struct ses_live *l, const struct ses_live_row *r)
{
	l->st.events += r->kind == SES_LIVE_CALL || r->kind == SES_LIVE_EVENT || r->kind == SES_LIVE_FINDING;
	l->st.lost += r->kind == SES_LIVE_LOST ? r->ns : 0;
	l->st.is_bad |= r->kind == SES_LIVE_END && r->is_error;
}

/* --- the thread ------------------------------------------------------------------------------------------------------- */

static void tell(struct ses_live *l)
{
	uint64_t one = 1;
	l->has_news = true;
	pthread_cond_broadcast(&l->changed);
	if (l->is_told || l->event_fd < 0)
		return;
	l->is_told = true;
	l->told_ns = now_ns();
	ssize_t n = write(l->event_fd, &one, sizeof(one));
	(void)n;
}

/* Takes the whole rows of what was read; false: these are none. */
static bool take_rows(struct ses_live *l, struct buf *in, bool *saw_end)
{
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	size_t at = 0;
	pthread_mutex_lock(&l->lock);
	while (at < in->len) {
		struct ses_live_row r;
		const uint8_t *bytes = (const uint8_t *)in->data + at;
		size_t n = ses_live_parse(bytes, in->len - at, frames, &r);
		if (n == SIZE_MAX) {
			pthread_mutex_unlock(&l->lock);
			return false;
		}
		if (!n)
			break;
		count(l, &r);
		keep(l, bytes, n, &r);
		*saw_end |= r.kind == SES_LIVE_END;
		at += n;
	}
	pthread_mutex_unlock(&l->lock);
	memmove(in->data, in->data + at, in->len - at);
	in->len -= at;
	return true;
}

/* Waits for more, but no longer than until somebody is to be told. */
static bool wait_more(struct ses_live *l, bool *is_untold)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	int ms = -1;
	if (*is_untold) {
		uint64_t since = (now_ns() - l->told_ns) / 1000000;
		ms = since < TELL_MS ? (int)(TELL_MS - since) : 0;
	}
	int n = poll(&p, 1, ms);
	if (*is_untold && now_ns() - l->told_ns >= TELL_MS * 1000000ull) {
		pthread_mutex_lock(&l->lock);
		tell(l);
		pthread_mutex_unlock(&l->lock);
		*is_untold = false;
	}
	return n > 0;
}

static void *reader(void *arg)
{
	struct ses_live *l = arg;
	_cleanup_buf_ struct buf in = {0};
	bool saw_end = false, is_untold = false, is_well = true;
	while (is_well && !atomic_load(&l->is_leaving)) {
		if (!wait_more(l, &is_untold))
			continue;
		char *room = buf_room(&in, READ_LEN);
		ssize_t n = room ? read(l->fd, room, READ_LEN) : -1;
		if (n < 0 && room && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		in.len += (size_t)n;
		is_well = take_rows(l, &in, &saw_end);
		is_untold = true;
	}
	int status;
	kill(-l->pid, SIGTERM); /* what it started and left */
	while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
		;
	pthread_mutex_lock(&l->lock);
	l->is_reaped = true;
	l->st.is_running = false;
	if (!saw_end && !atomic_load(&l->is_leaving)) {
		l->st.is_bad = true;
		keep_own(l, SES_LIVE_END,
			 is_well ? "the process that traces has ended without a word" : "the process that traces sent what is no row");
	}
	l->is_told = false;
	tell(l);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

/* In the new process. Does not return. */
static void become(const char *program, char *const *argv, int out)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	child_give_signals();
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	int null = open("/dev/null", O_RDWR);
	if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(null, 2) == 2)
		execv(program, argv);
	_exit(127);
}

static struct err *spawn(struct ses_live *l, const struct ses_live_opts *o)
{
	int ends[2];
	size_t cnt = 0;
	while (o->words[cnt])
		cnt++;
	char **argv = calloc(cnt + 3, sizeof(*argv));
	if (!argv)
		return &err_nomem;
	argv[0] = (char *)(uintptr_t) "scry";
	argv[1] = (char *)(uintptr_t) "trace-rows";
	for (size_t i = 0; i < cnt; i++)
		argv[i + 2] = (char *)(uintptr_t)o->words[i];
	if (pipe2(ends, O_CLOEXEC)) {
		free(argv);
		return err_os(errno, "no pipe");
	}
	l->fd = ends[0];
	l->pid = fork();
	if (!l->pid)
		become(o->program ? o->program : "/proc/self/exe", argv, ends[1]);
	close(ends[1]);
	free(argv);
	if (l->pid < 0)
		return err_os(errno, "no process to trace with");
	setpgid(l->pid, l->pid); /* whoever of the two comes first */
	return NULL;
}

struct err *ses_live_start(const struct ses_live_opts *o, struct ses_live **ret)
{
	struct ses_live *l = calloc(1, sizeof(*l));
	if (!l)
		return &err_nomem;
	l->fd = -1;
	l->event_fd = o->event_fd;
	l->rows_max = o->rows_max ? o->rows_max : ROWS_MAX;
	l->bytes_max = o->bytes_max ? o->bytes_max : BYTES_MAX;
	l->first_id = l->next_id = 1;
	l->st.is_running = true;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->rows = calloc(l->rows_max, sizeof(*l->rows));
	l->matches = calloc(l->rows_max, sizeof(*l->matches));
	struct err *e = l->rows && l->matches ? spawn(l, o) : &err_nomem;
	int rc = e ? 0 : pthread_create(&l->thread, NULL, reader, l);
	l->has_thread = !e && !rc;
	if (rc)
		e = err_os(rc, "cannot start a thread");
	if (e) {
		ses_live_free(l);
		return e;
	}
	*ret = l;
	return NULL;
}

static void send(struct ses_live *l, int sig)
{
	pthread_mutex_lock(&l->lock);
	/* Asked once, the tracer ends in good order; what it started is asked when it has. */
	if (l->pid > 0 && !l->is_reaped)
		kill(sig == SIGKILL ? -l->pid : l->pid, sig);
	pthread_mutex_unlock(&l->lock);
}

void ses_live_stop(struct ses_live *l)
{
	send(l, SIGTERM);
}

void ses_live_free(struct ses_live *l)
{
	if (!l)
		return;
	send(l, SIGTERM);
	if (l->has_thread) {
		uint64_t until = now_ns() + END_MS * 1000000ull;
		pthread_mutex_lock(&l->lock);
		while (l->st.is_running && now_ns() < until) {
			struct timespec t;
			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec += 50000000;
			t.tv_sec += t.tv_nsec / 1000000000;
			t.tv_nsec %= 1000000000;
			pthread_cond_timedwait(&l->changed, &l->lock, &t);
		}
		pthread_mutex_unlock(&l->lock);
		send(l, SIGKILL);
		pthread_join(l->thread, NULL);
	} else if (l->pid > 0) {
		kill(-l->pid, SIGKILL);
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
	}
	for (uint32_t i = 0; l->rows && i < l->rows_max; i++)
		free(l->rows[i].bytes);
	if (l->fd >= 0)
		close(l->fd);
	free(l->rows);
	free(l->matches);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* --- what is shown ---------------------------------------------------------------------------------------------------- */

static uint64_t shown_end(const struct ses_live *l)
{
	return l->st.is_paused ? l->pause_end : l->match_end;
}

void ses_live_get_state(struct ses_live *l, struct ses_live_state *ret)
{
	pthread_mutex_lock(&l->lock);
	*ret = l->st;
	ret->kept = l->next_id - l->first_id;
	ret->kept_max = l->rows_max;
	ret->shown = shown_end(l) - l->match_first;
	ret->gone = l->match_first;
	ret->last_id = l->next_id - 1;
	pthread_mutex_unlock(&l->lock);
}

bool ses_live_has_news(struct ses_live *l)
{
	pthread_mutex_lock(&l->lock);
	bool has = l->has_news;
	l->has_news = l->is_told = false;
	pthread_mutex_unlock(&l->lock);
	return has;
}

void ses_live_wait(struct ses_live *l, int ms)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000l;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&l->lock);
	while (!l->has_news && l->st.is_running && !pthread_cond_timedwait(&l->changed, &l->lock, &t))
		;
	pthread_mutex_unlock(&l->lock);
}

void ses_live_pause(struct ses_live *l, bool is_paused)
{
	char text[96];
	pthread_mutex_lock(&l->lock);
	if (is_paused && !l->st.is_paused) {
		l->pause_end = l->match_end;
		l->paused_drops = 0;
	}
	bool is_resumed = l->st.is_paused && !is_paused;
	l->st.is_paused = is_paused;
	if (is_resumed && l->paused_drops) {
		snprintf(text, sizeof(text), "%llu rows came while it was held, and there was no room for them",
			 (unsigned long long)l->paused_drops);
		keep_own(l, SES_LIVE_LOST, text);
	}
	pthread_mutex_unlock(&l->lock);
}

static bool get(const struct ses_live *l, uint64_t id, struct ses_live_frame *frames, struct ses_live_row *ret)
{
	const struct kept *k = &l->rows[id % l->rows_max];
	if (!k->bytes || k->id != id || ses_live_parse(k->bytes, k->len, frames, ret) != k->len)
		return false;
	ret->id = id;
	return true;
}

struct err *ses_live_filter(struct ses_live *l, const char *text)
{
	struct filter *f = calloc(1, sizeof(*f));
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	struct ses_live_row r;
	struct err *e = f ? parse_filter(f, text ? text : "") : &err_nomem;
	if (e) {
		free(f);
		return e;
	}
	pthread_mutex_lock(&l->lock);
	uint64_t last_shown = shown_end(l) > l->match_first ? l->matches[(shown_end(l) - 1) % l->rows_max] : 0;
	l->filter = *f;
	for (uint32_t i = 0; i < f->cnt; i++) /* its words are in its own text */
		l->filter.words[i].text = l->filter.text + (f->words[i].text - f->text);
	l->match_first = l->match_end = l->pause_end = 0;
	for (uint64_t id = l->first_id; id < l->next_id; id++) {
		if (get(l, id, frames, &r) && is_left(&l->filter, &r))
			l->matches[l->match_end++ % l->rows_max] = id;
		if (l->st.is_paused && id <= last_shown)
			l->pause_end = l->match_end;
	}
	pthread_mutex_unlock(&l->lock);
	free(f);
	return NULL;
}

static bool copy_text(struct arena *a, struct ses_text *t)
{
	char *s = arena_strndup(a, t->s ? t->s : "", t->len);
	t->s = s;
	return s;
}

/* Everything of the row into the arena. */
static bool copy_row(struct arena *a, struct ses_live_row *r)
{
	struct ses_live_frame *to = ARENA_ARRAY(a, struct ses_live_frame, (size_t)r->frame_cnt + 1);
	bool is_well = to && copy_text(a, &r->comm) && copy_text(a, &r->name) && copy_text(a, &r->args) && copy_text(a, &r->result);
	for (uint32_t i = 0; is_well && i < r->frame_cnt; i++) {
		to[i] = r->frames[i];
		is_well = copy_text(a, &to[i].module) && copy_text(a, &to[i].func);
	}
	r->frames = to;
	return is_well;
}

uint32_t ses_live_rows(struct ses_live *l, uint64_t off, uint32_t max, struct arena *a, struct ses_live_row *ret)
{
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	uint32_t cnt = 0;
	pthread_mutex_lock(&l->lock);
	uint64_t end = shown_end(l);
	for (uint64_t i = l->match_first + off; i < end && cnt < max; i++) {
		if (!get(l, l->matches[i % l->rows_max], frames, &ret[cnt]) || !copy_row(a, &ret[cnt]))
			break;
		cnt++;
	}
	pthread_mutex_unlock(&l->lock);
	return cnt;
}

uint64_t ses_live_index(struct ses_live *l, uint64_t id)
{
	pthread_mutex_lock(&l->lock);
	uint64_t low = l->match_first, high = shown_end(l), first = l->match_first;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		if (l->matches[mid % l->rows_max] < id)
			low = mid + 1;
		else
			high = mid;
	}
	pthread_mutex_unlock(&l->lock);
	return low - first;
}

bool ses_live_find(struct ses_live *l, const char *text, uint64_t off, bool back, uint64_t *ret)
{
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	struct ses_live_row r;
	struct word w = {.kind = WORD_TEXT, .text = text, .len = strlen(text)};
	bool found = false;
	pthread_mutex_lock(&l->lock);
	uint64_t cnt = shown_end(l) - l->match_first;
	for (uint64_t i = back ? MIN(off, cnt) : off; !found && (back ? i > 0 : i < cnt);) {
		uint64_t at = back ? --i : i++;
		found = get(l, l->matches[(l->match_first + at) % l->rows_max], frames, &r) &&
			(meets(&w, &r) || has_text(w.text, w.len, r.comm));
		if (found)
			*ret = at;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}
