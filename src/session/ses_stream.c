/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_stream.h"

#include "base/child.h"
#include "session/ses_int.h"

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

#define WAITING_MAX 2         /* readers that wait at once: the threads they wait in are others', too */
#define TICK_MS 100
#define STOP_NS 5000000000u   /* that one has that is to end by itself */

struct line {
	struct line *next;
	size_t len;
	char text[];
};

struct stream {
	struct stream *next;
	uint64_t id, client;
	char **args;
	pid_t pid;
	int out, err;            /* of the process; -1: at its end */
	struct line *first, **last;
	uint64_t first_no, next_no; /* numbers of the first line that waits and of the next one */
	size_t len;              /* bytes of lines that wait */
	struct buf part;         /* of a line; the thread's own */
	bool is_skipping;        /* the rest of a line that is too long */
	char notes[1024];
	int status;              /* wait status */
	unsigned readers;
	bool is_stopping, is_over, is_gone;
	struct err *failed;      /* why it could not be started */
	uint64_t read_ns, stop_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all that follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static unsigned stream_cnt, waiting_cnt;
static uint64_t last_id;
static const char *program;

void ses_stream_set_program(const char *path)
{
	program = path;
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */
static void drop_first(struct stream *s)
{
	struct line *l = s->first;
	s->first = l->next;
	if (!s->first)
		s->last = &s->first;
	s->len -= l->len;
	s->first_no++;
	free(l);
}

/* Under the lock. A line there is no memory for is one that was forgotten. */
static void add_line(struct stream *s, const char *text, size_t len)
{
	struct line *l = malloc(sizeof(*l) + len);
	s->next_no++;
	while (s->first && (!l || s->len + len > SES_STREAM_BYTES_MAX))
		drop_first(s);
	if (!l) {
		s->first_no = s->next_no;
		return;
	}
	l->next = NULL;
	l->len = len;
	memcpy(l->text, text, len);
	*s->last = l;
	s->last = &l->next;
	s->len += len;
}

static void take_bytes(struct stream *s, const char *bytes, size_t len)
{
	pthread_mutex_lock(&lock);
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) : len;
		if (!s->is_skipping)
			buf_add(&s->part, bytes, n);
		if (s->part.len > SES_STREAM_LINE_MAX || s->part.failed) {
			s->is_skipping = true;
			s->part.failed = false;
			s->part.len = 0;
		}
		if (end && s->is_skipping) /* it has a number, and is missed */
			add_line(s, "", 0);
		else if (end)
			add_line(s, s->part.data, s->part.len);
		if (end) {
			s->part.len = 0;
			s->is_skipping = false;
		}
		n += end != NULL;
		bytes += n;
		len -= n;
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* The first of what it says. */
static void take_notes(struct stream *s, const char *bytes, size_t len)
{
	pthread_mutex_lock(&lock);
	size_t has = strlen(s->notes), n = MIN(len, sizeof(s->notes) - 1 - has);
	for (size_t i = 0; i < n; i++)
		s->notes[has + i] = bytes[i] ? bytes[i] : ' ';
	s->notes[has + n] = 0;
	pthread_mutex_unlock(&lock);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- the process -------------------------------------------------------------------------------------------------------- */

/* Only system calls. It dies with the thread that started it, which waits for it. */
_Noreturn static void become(char *const *args, int in, int out, int err, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	child_give_signals();
	setsid();
	if (!prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) && getppid() == parent && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2)
		execve(program, args, environ);
	_exit(126);
}

static struct err *start_process(struct stream *s)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1}, in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t parent = getpid();
	struct err *e = NULL;
	if (in < 0 || pipe2(out, O_CLOEXEC | O_NONBLOCK) || pipe2(err, O_CLOEXEC | O_NONBLOCK))
		e = err_os(errno, "no pipe");
	/* The process writes as programs do: it waits. */
	if (!e && (fcntl(out[1], F_SETFL, 0) || fcntl(err[1], F_SETFL, 0)))
		e = err_os(errno, "no pipe");
	if (!e) {
		s->pid = fork();
		if (!s->pid)
			become(s->args, in, out[1], err[1], parent);
		if (s->pid < 0)
			e = err_os(errno, "no process");
	}
	close_fd(&in);
	close_fd(&out[1]);
	close_fd(&err[1]);
	if (e) {
		close_fd(&out[0]);
		close_fd(&err[0]);
	}
	s->out = out[0];
	s->err = err[0];
	return e;
}

/* False at the end of it. */
static bool take(struct stream *s, int *fd, bool is_notes)
{
	char bytes[16384];
	ssize_t n = read(*fd, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n > 0 && is_notes)
		take_notes(s, bytes, (size_t)n);
	else if (n > 0)
		take_bytes(s, bytes, (size_t)n);
	else
		close_fd(fd);
	return n > 0;
}

/* What readers and time ask for; under the lock. */
static void tend(struct stream *s)
{
	uint64_t now = ses_now_ns();
	if (!s->readers && now - s->read_ns > (uint64_t)SES_STREAM_IDLE_S * 1000000000)
		s->is_gone = true;
	if (s->is_gone) {
		kill(s->pid, SIGKILL);
	} else if (s->is_stopping && !s->stop_ns) {
		s->stop_ns = now;
		kill(s->pid, SIGINT);
	} else if (s->is_stopping && now - s->stop_ns > STOP_NS) {
		kill(s->pid, SIGKILL);
	}
}

static void unlist(struct stream *s)
{
	struct stream **at = &streams;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	stream_cnt--;
}

/* Nobody is at it any more. */
static void free_stream(struct stream *s)
{
	while (s->first)
		drop_first(s);
	for (size_t i = 0; s->args && s->args[i]; i++)
		free(s->args[i]);
	free(s->args);
	buf_fini(&s->part);
	err_free(s->failed);
	free(s);
}

static void *stream_main(void *ctx)
{
	struct stream *s = ctx;
	struct err *e = start_process(s);
	pthread_mutex_lock(&lock);
	s->failed = e;
	pthread_mutex_unlock(&lock);
	while (!e && s->out >= 0) {
		struct pollfd f[] = {{.fd = s->out, .events = POLLIN}, {.fd = s->err, .events = POLLIN}};
		poll(f, 2, TICK_MS);
		if (f[1].revents && s->err >= 0)
			take(s, &s->err, true);
		if (f[0].revents)
			take(s, &s->out, false);
		pthread_mutex_lock(&lock);
		tend(s);
		pthread_mutex_unlock(&lock);
	}
	while (s->err >= 0 && take(s, &s->err, true))
		;
	close_fd(&s->err);
	int status = 0;
	while (!e && waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	pthread_mutex_lock(&lock);
	s->status = status;
	s->is_over = true;
	s->read_ns = ses_now_ns();
	pthread_cond_broadcast(&changed);
	/* It waits to be read to its end, but not for ever. */
	while (!s->is_gone) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec++;
		pthread_cond_timedwait(&changed, &lock, &t);
		s->is_gone |= !s->readers && ses_now_ns() - s->read_ns > (uint64_t)SES_STREAM_IDLE_S * 1000000000;
	}
	while (s->readers)
		pthread_cond_wait(&changed, &lock);
	unlist(s);
	pthread_mutex_unlock(&lock);
	free_stream(s);
	return NULL;
}

/* --- beginning ------------------------------------------------------------------------------------------------------------ */
static char **copy_args(char *const *args)
{
	size_t cnt = 0;
	while (args[cnt])
		cnt++;
	char **ret = calloc(cnt + 2, sizeof(*ret));
	if (!ret)
		return NULL;
	ret[0] = strdup("scry");
	bool ok = ret[0];
	for (size_t i = 0; ok && i < cnt; i++)
		ok = (ret[i + 1] = strdup(args[i]));
	if (ok)
		return ret;
	for (size_t i = 0; i <= cnt; i++)
		free(ret[i]);
	free(ret);
	return NULL;
}

/* Under the lock. */
static struct err *check_room(uint64_t client)
{
	unsigned own = 0;
	for (const struct stream *s = streams; s; s = s->next)
		own += s->client == client && !s->is_gone;
	if (own < SES_STREAM_CLIENT_MAX && stream_cnt < SES_STREAM_MAX)
		return NULL;
	return err_fix(err_new(ERR_BUSY, "so many traces and probes are there already: %u, of which %u are yours", stream_cnt, own),
		       "events {\"cursor\":C,\"stop\":true} ends one");
}

struct err *ses_stream_start(uint64_t client, char *const *args, uint64_t *ret_id)
{
	if (!program || !client)
		return err_fix(err_new(ERR_UNSUPPORTED, "%s: only the command line and servers watch running programs", args[0]), "scry %s",
			       args[0]);
	struct stream *s = calloc(1, sizeof(*s));
	char **copy = s ? copy_args(args) : NULL;
	if (!copy) {
		free(s);
		return &err_nomem;
	}
	*s = (struct stream){.client = client, .args = copy, .out = -1, .err = -1, .last = &s->first, .read_ns = ses_now_ns()};
	pthread_mutex_lock(&lock);
	struct err *e = check_room(client);
	pthread_t thread;
	if (!e) {
		*ret_id = s->id = ++last_id;
		int why = pthread_create(&thread, NULL, stream_main, s);
		if (why)
			e = err_os(why, "no thread");
	}
	if (!e) {
		pthread_detach(thread);
		s->next = streams;
		streams = s;
		stream_cnt++;
	}
	pthread_mutex_unlock(&lock);
	if (e)
		free_stream(s);
	return e;
}

/* --- reading -------------------------------------------------------------------------------------------------------------- */

/* What a command that failed said, as an error again (docs/ops.md: exit statuses). */
static struct err *failure(const struct stream *s)
{
	static const uint8_t kinds[] = {[1] = ERR_NOT_FOUND, [2] = ERR_INVALID, [3] = ERR_BAD_INPUT, [4] = ERR_ENV, [5] = ERR_IO};
	int code = WIFEXITED(s->status) ? WEXITSTATUS(s->status) : -1;
	if (s->failed)
		return err_new(s->failed->kind, "%s", s->failed->text);
	if (!code || code == 130)
		return NULL;
	/* Its last line is the one that says why; what to do stands behind. */
	const char *text = s->notes, *last = text;
	for (const char *p = text; (p = strstr(p, "scry: ")); p++)
		last = p == text || p[-1] == '\n' ? p + 6 : last;
	int len = (int)strcspn(last, "\n");
	enum err_kind kind = code > 0 && code < (int)ARRAY_LEN(kinds) ? kinds[code] : ERR_INTERNAL;
	return len ? err_new(kind, "%.*s", len, last) : err_new(kind, "the trace failed");
}

/* Whether there is nothing to wait for; under the lock. */
static bool has_all(const struct stream *s, const struct ses_stream_ask *ask, uint64_t end_ns)
{
	return s->is_over || s->is_gone || s->next_no - MAX(ask->from, s->first_no) >= ask->limit || ses_now_ns() >= end_ns;
}

static struct err *await(struct stream *s, const struct ses_stream_ask *ask)
{
	/* Those that would wait beyond these get what is there. */
	bool may_wait = waiting_cnt < WAITING_MAX;
	uint64_t end_ns = ses_now_ns() + (may_wait ? ask->wait_ms * 1000000 : 0);
	struct err *e = NULL;
	waiting_cnt += may_wait;
	while (!e && !has_all(s, ask, end_ns)) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 20000000;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&changed, &lock, &t);
		e = ses_call_check(ask->call);
	}
	waiting_cnt -= may_wait;
	return e;
}

static struct err *read_lines(struct stream *s, const struct ses_stream_ask *ask, struct ses_stream_answer *ret)
{
	while (s->first && s->first_no < ask->from)
		drop_first(s);
	ret->missed = s->first_no > ask->from ? s->first_no - ask->from : 0;
	ret->next = MAX(s->first_no, MIN(ask->from, s->next_no));
	for (const struct line *l = s->first; l && ret->cnt < ask->limit; l = l->next, ret->next++) {
		if (!l->len) {
			ret->missed++;
			continue;
		}
		if (ret->cnt && ask->max_len && ret->lines.len + l->len > ask->max_len)
			break;
		buf_add(&ret->lines, l->text, l->len);
		buf_add_ch(&ret->lines, '\n');
		ret->cnt++;
	}
	memcpy(ret->notes, s->notes, sizeof(ret->notes));
	ret->is_over = s->is_over && ret->next == s->next_no;
	if (ret->is_over && !ret->cnt)
		return failure(s);
	return ret->lines.failed ? &err_nomem : NULL;
}

struct err *ses_stream_read(const struct ses_stream_ask *ask, struct ses_stream_answer *ret)
{
	*ret = (struct ses_stream_answer){0};
	pthread_mutex_lock(&lock);
	struct stream *s = streams;
	while (s && (s->id != ask->id || s->client != ask->client || s->is_gone))
		s = s->next;
	struct err *e = s ? NULL : err_fix(err_new(ERR_NOT_FOUND, "there is no such trace any more"), "one that nobody reads for a minute ends");
	if (s) {
		s->readers++;
		s->is_stopping |= ask->stop;
		e = await(s, ask);
		if (!e)
			e = read_lines(s, ask, ret);
		s->readers--;
		s->read_ns = ses_now_ns();
		/* Read to its end. */
		s->is_gone |= ret->is_over;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return e;
}

void ses_stream_drop(uint64_t client)
{
	pthread_mutex_lock(&lock);
	for (struct stream *s = streams; s; s = s->next)
		s->is_gone |= s->client == client;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}
