/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: one thread reads stdin, writes stdout and watches databases; MCP_THREADS others do the jobs. A client that does not read its answers
 * is not read from. When stdin ends, what was asked is still answered.
 */
#include "mcp/mcp.h"

#include "mcp/mcp_int.h"

#include "session/ses_stream.h"
#include "rpc/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

#define MCP_THREADS 4
#define MCP_OUT_MAX ((size_t)1 << 20) /* bytes that wait to be written; with more, nothing is read */
#define MCP_WRITE_LEN 4096            /* PIPE_BUF: so much goes into a pipe that poll() calls writable */
#define MCP_TICK_NS 100000000         /* between two words about progress */

static volatile sig_atomic_t mcp_stopped;
static int mcp_signal_fd = -1;

static void on_signal(int sig)
{
	uint64_t one = 1;
	mcp_stopped = sig;
	(void)!write(mcp_signal_fd, &one, sizeof(one));
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- jobs --- */

static void wake(struct mcp *m)
{
	uint64_t one = 1;
	(void)!write(m->wake_fd, &one, sizeof(one));
}

void mcp_queue(struct mcp *m, struct mcp_job *job)
{
	if (m->is_inline) {
		mcp_job_run(job);
		mcp_job_end(m, job);
		return;
	}
	pthread_mutex_lock(&m->lock);
	*(m->queue ? &m->queue_end->next : &m->queue) = job;
	m->queue_end = job;
	m->job_cnt++;
	pthread_cond_signal(&m->has_work);
	pthread_mutex_unlock(&m->lock);
}

static void unlink_job(struct mcp_job **list, struct mcp_job *job)
{
	while (*list != job)
		list = &(*list)->next;
	*list = job->next;
}

static void *work(void *arg)
{
	struct mcp *m = arg;
	pthread_mutex_lock(&m->lock);
	while (!m->is_stopping || m->queue) {
		struct mcp_job *job = m->queue;
		if (!job) {
			pthread_cond_wait(&m->has_work, &m->lock);
			continue;
		}
		m->queue = job->next;
		job->next = m->running;
		m->running = job;
		pthread_mutex_unlock(&m->lock);
		/* One that was cancelled before it began is not begun. */
		if (!atomic_load(&job->cancel))
			mcp_job_run(job);
		pthread_mutex_lock(&m->lock);
		unlink_job(&m->running, job);
		job->next = NULL;
		struct mcp_job **end = &m->done;
		while (*end)
			end = &(*end)->next;
		*end = job;
		wake(m);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static void cancel_all(struct mcp *m)
{
	pthread_mutex_lock(&m->lock);
	struct mcp_job *lists[] = {m->queue, m->running};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		for (struct mcp_job *k = lists[i]; k; k = k->next)
			atomic_store(&k->cancel, true);
	}
	pthread_mutex_unlock(&m->lock);
}

static void take_done(struct mcp *m)
{
	pthread_mutex_lock(&m->lock);
	struct mcp_job *done = m->done;
	m->done = NULL;
	for (struct mcp_job *k = done; k; k = k->next)
		m->job_cnt--;
	pthread_mutex_unlock(&m->lock);
	while (done) {
		struct mcp_job *next = done->next;
		mcp_job_end(m, done);
		done = next;
	}
}

/* --- progress --- */

/* How far the job is, in units of its own; false when there is nothing to tell. */
static bool measure(struct mcp_job *job, const char **ret_stage, uint64_t *ret_done, uint64_t *ret_total)
{
	struct mcp_db *db = atomic_load(&job->waits_for);
	if (db) {
		struct ses_progress p;
		ses_get_progress(db->s, &p);
		*ret_stage = p.stage;
		*ret_done = p.done;
		*ret_total = p.total;
		return p.stage != NULL;
	}
	*ret_stage = atomic_load(&job->meter.what);
	*ret_done = atomic_load(&job->meter.done);
	*ret_total = atomic_load(&job->meter.total);
	return *ret_stage != NULL;
}

/* What is told only ever grows: a stage begins where the one before it was left. */
static void put_progress(struct mcp *m, struct mcp_job *job)
{
	const char *stage;
	uint64_t done, total;
	struct buf params = {0}, text = {0};
	if (!measure(job, &stage, &done, &total))
		return;
	if (stage != job->stage)
		job->base = job->told + (job->stage != NULL);
	job->stage = stage;
	double now = job->base + (double)done;
	if (now <= job->told && job->told_ns)
		return;
	job->told = now;
	buf_printf(&params, "{\"progressToken\":%s,\"progress\":%.0f", job->token, now);
	if (total)
		buf_printf(&params, ",\"total\":%.0f", job->base + (double)MAX(total, done));
	struct json j = json_make(&params);
	j.comma = true;
	json_key(&j, "message");
	buf_printf(&text, "%s: %llu", stage, (unsigned long long)done);
	if (total)
		buf_printf(&text, " of %llu", (unsigned long long)total);
	json_strn(&j, text.data ? text.data : "", text.len);
	buf_add_ch(&params, '}');
	if (!params.failed)
		mcp_notify(m, "notifications/progress", params.data, params.len);
	buf_fini(&params);
	buf_fini(&text);
}

/* Gives the time of the next word, 0: nobody waits for one. */
static uint64_t tell_progress(struct mcp *m, uint64_t now)
{
	uint64_t next = 0;
	pthread_mutex_lock(&m->lock);
	/* What waits may be running by then. */
	for (struct mcp_job *k = m->queue; k; k = k->next)
		next = k->token ? now + MCP_TICK_NS : next;
	for (struct mcp_job *k = m->running; k; k = k->next) {
		if (!k->token || k->is_cancelled)
			continue;
		if (now >= k->told_ns + MCP_TICK_NS) {
			put_progress(m, k);
			k->told_ns = now;
		}
		next = next ? MIN(next, k->told_ns + MCP_TICK_NS) : k->told_ns + MCP_TICK_NS;
	}
	pthread_mutex_unlock(&m->lock);
	return next;
}

/* --- the loop --- */

struct loop {
	struct mcp *m;
	struct rpc_lines lines;
	bool is_ended;   /* nothing more comes */
	bool is_deaf;    /* nobody reads what is written */
	bool has_more;   /* lines that were not taken yet */
	struct pollfd fds[3 + 2 * MCP_DBS_MAX];
	struct mcp_db *dbs[2 * MCP_DBS_MAX]; /* whose descriptor, from fds[3] on */
	uint32_t db_fd_cnt;
};

static void read_some(struct loop *l)
{
	char bytes[65536];
	ssize_t n = read(STDIN_FILENO, bytes, MIN(sizeof(bytes), rpc_lines_room(&l->lines)));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		rpc_lines_feed(&l->lines, bytes, (size_t)n);
	l->is_ended = n <= 0;
	if (l->is_ended)
		rpc_lines_end(&l->lines);
}

static bool is_full(const struct mcp *m)
{
	return m->out.len - m->sent > MCP_OUT_MAX || m->job_cnt >= MCP_JOBS_MAX;
}

/* True when there may be more. */
static bool take_lines(struct loop *l)
{
	const char *line;
	size_t len;
	while (!is_full(l->m)) {
		switch (rpc_lines_next(&l->lines, &line, &len)) {
		case RPC_LINE_READY:
			mcp_take_line(l->m, line, len);
			break;
		case RPC_LINE_TOO_LONG:
			mcp_take_long_line(l->m);
			break;
		case RPC_LINE_NOMEM:
			l->is_ended = true;
			return false;
		case RPC_LINE_NONE:
			return false;
		}
	}
	return true;
}

static void write_some(struct loop *l)
{
	struct mcp *m = l->m;
	size_t left = m->out.len - m->sent;
	ssize_t n = write(STDOUT_FILENO, m->out.data + m->sent, MIN(left, MCP_WRITE_LEN));
	if (n < 0 && errno != EINTR && errno != EAGAIN)
		l->is_deaf = true;
	m->sent += n > 0 ? (size_t)n : 0;
	if (m->sent == m->out.len)
		m->sent = m->out.len = 0;
	else if (m->sent > MCP_OUT_MAX) {
		memmove(m->out.data, m->out.data + m->sent, m->out.len - m->sent);
		m->out.len -= m->sent;
		m->sent = 0;
	}
}

static void watch_dbs(struct loop *l)
{
	struct mcp *m = l->m;
	l->db_fd_cnt = 0;
	pthread_mutex_lock(&m->lock);
	uint32_t cnt = m->db_cnt;
	pthread_mutex_unlock(&m->lock);
	for (uint32_t i = 0; i < cnt; i++) {
		int fds[] = {ses_event_fd(m->dbs[i]->s), ses_watch_fd(m->dbs[i]->s)};
		for (size_t k = 0; k < ARRAY_LEN(fds); k++) {
			l->dbs[l->db_fd_cnt] = m->dbs[i];
			/* The second of each database is the one that ses_watch_clear() rearms; one that is not there is passed over by poll(). */
			l->fds[3 + l->db_fd_cnt++] = (struct pollfd){.fd = fds[k], .events = POLLIN};
		}
	}
}

/* Somebody edited, or an analysis went on. */
static void take_news(struct loop *l)
{
	for (uint32_t i = 0; i < l->db_fd_cnt; i++) {
		uint64_t unused;
		if (!(l->fds[3 + i].revents & POLLIN))
			continue;
		if (i % 2 == 0) {
			(void)!read(l->fds[3 + i].fd, &unused, sizeof(unused));
			continue;
		}
		ses_watch_clear(l->dbs[i]->s);
		struct err *e = ses_refresh(l->dbs[i]->s);
		if (e)
			fprintf(stderr, "scry: mcp: %s\n", e->text);
		err_free(e);
	}
}

static int timeout_of(uint64_t now, uint64_t a, uint64_t b)
{
	uint64_t at = a && b ? MIN(a, b) : a ? a : b;
	if (!at)
		return -1;
	return at <= now ? 0 : (int)MIN((at - now) / 1000000 + 1, 60000);
}

static struct err *turn(struct loop *l)
{
	struct mcp *m = l->m;
	uint64_t unused, now = now_ns();
	uint64_t due = tell_progress(m, now), news = mcp_tell_news(m, now);
	bool reads = !l->is_ended && !l->has_more && !is_full(m) && rpc_lines_room(&l->lines);
	watch_dbs(l);
	l->fds[0] = (struct pollfd){.fd = reads ? STDIN_FILENO : -1, .events = POLLIN};
	l->fds[1] = (struct pollfd){.fd = m->out.len > m->sent ? STDOUT_FILENO : -1, .events = POLLOUT};
	l->fds[2] = (struct pollfd){.fd = m->wake_fd, .events = POLLIN};
	int wait = l->has_more && !is_full(m) ? 0 : timeout_of(now, due, news);
	if (poll(l->fds, 3 + l->db_fd_cnt, wait) < 0 && errno != EINTR)
		return err_os(errno, "mcp: waiting");
	if (l->fds[2].revents)
		(void)!read(m->wake_fd, &unused, sizeof(unused));
	take_done(m);
	if (l->fds[0].revents)
		read_some(l);
	if (l->fds[1].revents)
		write_some(l);
	take_news(l);
	return m->out.failed ? &err_nomem : NULL;
}

static bool is_over(struct loop *l)
{
	struct mcp *m = l->m;
	return l->is_deaf || mcp_stopped || (l->is_ended && !l->has_more && !m->job_cnt && m->out.len == m->sent);
}

static struct err *serve(struct mcp *m)
{
	pthread_t threads[MCP_THREADS];
	struct loop *l = calloc(1, sizeof(*l));
	struct err *e = l ? NULL : &err_nomem;
	unsigned n = 0;
	for (; !e && n < MCP_THREADS; n++) {
		int why = pthread_create(&threads[n], NULL, work, m);
		if (why) {
			e = err_os(why, "mcp: no thread");
			break;
		}
	}
	if (l)
		l->m = m;
	/* What is over is found out before anything is waited for. */
	while (!e) {
		l->has_more = take_lines(l);
		if (is_over(l))
			break;
		e = turn(l);
	}
	cancel_all(m);
	pthread_mutex_lock(&m->lock);
	m->is_stopping = true;
	pthread_cond_broadcast(&m->has_work);
	pthread_mutex_unlock(&m->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	take_done(m);
	if (l)
		rpc_lines_fini(&l->lines);
	free(l);
	return e;
}

/* --- starting --- */

static struct err *read_caps(const char *text, uint32_t *ret)
{
	char word[32];
	*ret = 0;
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, ",");
		snprintf(word, sizeof(word), "%.*s", (int)MIN(n, sizeof(word) - 1), at);
		uint32_t cap = ses_cap_find(word);
		if (!cap)
			return err_fix(err_new(ERR_INVALID, "--allow: '%s' is no capability", word),
				       "some of read,edit,run-code,run-target,trace,write-files, with commas between");
		*ret |= cap;
		at += n + (at[n] == ',');
	}
	return NULL;
}

static struct err *read_words(struct ops_args *args, int argc, char **argv)
{
	struct err *e = NULL;
	bool only_words = false;
	for (int i = 0; i < argc && !e; i++) {
		const char *word = argv[i];
		bool is_option = !only_words && word[0] == '-' && word[1] == '-';
		size_t len = is_option ? strcspn(word + 2, "=") : 0;
		const struct ops_param *p = is_option && len ? ops_param_find(args->op, word + 2, len) : ops_param_at(args->op, 0);
		if (is_option && !word[2]) {
			only_words = true;
			continue;
		}
		if (is_option && (!p || p->is_positional))
			return err_fix(err_new(ERR_INVALID, "%s: mcp has no such option", word), "scry help mcp");
		const char *value = !is_option ? word : word[2 + len] == '=' ? word + 3 + len : NULL;
		if (is_option && !value && p->type != OPS_FLAG)
			value = i + 1 < argc ? argv[++i] : NULL;
		e = ops_args_set(args, p, value);
	}
	return e ? e : ops_args_check(args);
}

static struct err *begin(struct mcp *m, const struct ops_args *args)
{
	size_t cnt;
	const char *const *files = ops_arg_texts(args, "file", &cnt), *allow = ops_arg_str(args, "allow");
	struct err *e = read_caps(allow ? allow : "read,edit", &m->caps);
	m->is_proposing = ops_arg_is_set(args, "propose");
	m->no_store = ops_arg_is_set(args, "no_store");
	m->max_bytes = ops_arg_u64(args, "max_bytes", MCP_BYTES_USUAL);
	if (!e && (m->max_bytes < 256 || m->max_bytes > MCP_BYTES_MAX))
		e = err_new(ERR_INVALID, "--max-bytes: from 256 to %llu", (unsigned long long)MCP_BYTES_MAX);
	const char *project = ops_arg_str(args, "project");
	if (!e && project)
		e = mcp_db_open_project(m, project);
	for (size_t i = 0; i < cnt && !e; i++) {
		struct mcp_db *db;
		bool is_new;
		e = mcp_db_open(m, files[i], &is_new, &db);
	}
	return e;
}

static struct err *signals(struct mcp *m)
{
	struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, ignore = {.sa_handler = SIG_IGN};
	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->wake_fd < 0)
		return err_os(errno, "mcp: no descriptor");
	mcp_signal_fd = m->wake_fd;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	return NULL;
}

int mcp_main(int argc, char **argv)
{
	struct mcp *m = calloc(1, sizeof(*m));
	struct arena a = {0};
	struct ops_args args;
	if (!m)
		return ops_fail(&err_nomem, NULL);
	ses_stream_set_program("/proc/self/exe");
	m->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	m->has_work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	ops_args_init(&args, ops_find("mcp"), &a);
	struct err *e = read_words(&args, argc, argv);
	if (!e)
		e = signals(m);
	if (!e)
		e = begin(m, &args);
	if (!e)
		e = serve(m);
	int status = e ? ops_fail(e, NULL) : mcp_stopped ? 130 : 0;
	ses_stream_drop(1);
	mcp_dbs_close(m);
	for (size_t i = 0; i < MCP_RESTS_MAX; i++)
		mcp_rest_free(m->rests[i]);
	for (size_t i = 0; i < m->subs.cnt; i++)
		free(m->subs.data[i].uri);
	VEC_FREE(&m->subs);
	buf_fini(&m->out);
	arena_fini(&a);
	free(m);
	return status;
}
