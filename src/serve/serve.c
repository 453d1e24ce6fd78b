/* SPDX-License-Identifier: Apache-2.0 */
/* `scry serve`: words, sockets, threads, and the end of it all. */
#include "serve/serve.h"

#include "rpc/sock.h"
#include "serve/serve_int.h"
#include "session/ses_stream.h"
#include "serve/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENTS_MAX 4096u
#define FDS_OWN 128               /* descriptors that are not for clients */
#define CACHE_LEN ((size_t)64 << 20)
#define TOKEN_MIN 16

struct words {
	struct arena arena;
	struct ops_args args;
	bool no_store, is_help;
};

static const char *word_of(const struct words *w, const char *name)
{
	return ops_arg_str(&w->args, name);
}

static int usage(const struct ops_op *op)
{
	struct buf text = {0};
	ops_write_op_help(&text, op);
	bool is_good = !text.failed && write(STDOUT_FILENO, text.data, text.len) == (ssize_t)text.len;
	buf_fini(&text);
	return is_good ? 0 : 5;
}

/* "--name=value", "--name value" or "--flag"; *ret_used tells whether the next word was the value. */
static struct err *take_option(struct words *w, const char *word, const char *next, bool *ret_used)
{
	size_t len = strcspn(word + 2, "=");
	const char *value = word[2 + len] ? word + 3 + len : NULL;
	const struct ops_param *p = word[1] == '-' ? ops_param_find(w->args.op, word + 2, len) : NULL;
	if (!strcmp(word, "--no-store")) {
		w->no_store = true;
		return NULL;
	}
	if (!p || p->is_positional)
		return err_fix(err_new(ERR_INVALID, "%s: serve has no such option", word), "scry help serve");
	*ret_used = p->type != OPS_FLAG && !value;
	return ops_args_set(&w->args, p, *ret_used ? next : value);
}

static struct err *take_words(struct words *w, int argc, char **argv)
{
	const struct ops_param *file = ops_param_at(w->args.op, 0);
	struct err *e = NULL;
	bool only_files = false;
	for (int i = 0; i < argc && !e; i++) {
		bool is_used = false;
		if (!only_files && !strcmp(argv[i], "--"))
			only_files = true;
		else if (!only_files && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")))
			w->is_help = true;
		else if (!only_files && argv[i][0] == '-' && argv[i][1])
			e = take_option(w, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &is_used);
		else
			e = ops_args_set(&w->args, file, argv[i]);
		i += is_used;
	}
	return e;
}

static struct err *take_caps(const struct words *w, uint32_t *ret)
{
	const char *list = word_of(w, "caps");
	*ret = ops_arg_is_set(&w->args, "read_only") ? SES_CAP_READ : SES_CAP_ALL;
	if (!list)
		return NULL;
	uint32_t named = 0;
	for (const char *p = list; *p;) {
		char name[32];
		size_t n = strcspn(p, ",");
		snprintf(name, sizeof(name), "%.*s", (int)n, p);
		uint32_t cap = ses_cap_find(name);
		if (!cap)
			return err_new(ERR_INVALID, "--caps: '%s' is no capability", name);
		named |= cap;
		p += n + (p[n] == ',');
	}
	*ret &= named;
	return NULL;
}

/* --- TCP ---------------------------------------------------------------------------------------------------------------- */

static struct err *read_token(const char *path, char **ret)
{
	char text[4096];
	struct stat st;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		return err_os(errno, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || (st.st_uid != geteuid() && st.st_uid != 0))
		return err_fix(err_new(ERR_DENIED, "%s: others can read the token", path), "chmod 600 %s", path);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return err_os(errno, "%s", path);
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	if (strlen(text) < TOKEN_MIN)
		return err_fix(err_new(ERR_INVALID, "%s: a token has at least %d bytes", path, TOKEN_MIN),
			       "head -c 32 /dev/urandom | base64 > %s", path);
	*ret = strdup(text);
	return *ret ? NULL : &err_nomem;
}

/* Snippets of clients elsewhere run with the server's environment, in which its user may keep keys: only what says where things are stays. */
static void forget_environment(void)
{
	static const char *const kept[] = {"PATH=", "HOME=", "USER=", "LOGNAME=", "LANG=", "LC_", "TZ=", "TMPDIR=", "XDG_", "SCRY_", "PYTHONPATH=",
					   "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS="};
	size_t cnt = 0;
	for (char **var = environ; *var; var++) {
		bool stays = false;
		for (size_t k = 0; k < ARRAY_LEN(kept) && !stays; k++)
			stays = !strncmp(*var, kept[k], strlen(kept[k]));
		if (stays)
			environ[cnt++] = *var;
	}
	environ[cnt] = NULL;
}

static struct err *listen_tcp(struct serve *s, const struct words *w, char **ret_token)
{
	const char *where = word_of(w, "listen"), *cert = word_of(w, "tls_cert"), *key = word_of(w, "tls_key"), *token = word_of(w, "token_file");
	if (!where && (cert || key || token))
		return err_new(ERR_INVALID, "serve: certificate, key and token are for --listen");
	if (!where)
		return NULL;
	if (!cert || !key || !token)
		return err_fix(err_new(ERR_DENIED, "--listen: without TLS and a token nothing is served over TCP"),
			       "give --tls-cert, --tls-key and --token-file, or forward the socket: ssh -L PORT:SOCKET HOST");
	struct err *e = read_token(token, ret_token);
	if (!e)
		e = serve_tls_load(cert, key, &s->tls);
	if (!e)
		e = rpc_listen_tcp(where, &s->tls_fd);
	if (!e)
		forget_environment();
	s->token = *ret_token;
	return e;
}

/* --- beginning and end ------------------------------------------------------------------------------------------------------ */

struct err *serve_init(struct serve *s, unsigned workers, unsigned loops)
{
	*s = (struct serve){.caps = SES_CAP_ALL, .listener_src = SERVE_LISTENER, .tls_listener_src = SERVE_TLS_LISTENER,
			    .signal_src = SERVE_SIGNAL, .listen_fd = -1, .tls_fd = -1, .signal_fd = -1, .reserve_fd = -1,
			    .conn_max = CLIENTS_MAX, .loop_cnt = loops};
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned i = 0; i < loops; i++)
		serve_loop_init(&s->loops[i], s, i);
	s->cache = serve_cache_new(CACHE_LEN);
	return s->cache ? serve_pool_new(workers, &s->pool) : &err_nomem;
}

void serve_fini(struct serve *s)
{
	serve_pool_free(s->pool);
	for (unsigned i = 0; i < s->loop_cnt; i++)
		serve_loop_fini(&s->loops[i]);
	while (s->watched.cnt)
		serve_db_unref(VEC_POP(&s->watched));
	while (s->unwatched.cnt)
		serve_db_unref(VEC_POP(&s->unwatched));
	VEC_FREE(&s->watched);
	VEC_FREE(&s->unwatched);
	while (s->db_cnt)
		serve_db_unref(s->dbs[--s->db_cnt]);
	while (s->projects.cnt)
		ses_project_close(VEC_POP(&s->projects));
	VEC_FREE(&s->projects);
	serve_cache_free(s->cache);
	serve_tls_unload(s->tls);
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	if (s->tls_fd >= 0)
		close(s->tls_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	pthread_mutex_destroy(&s->lock);
}

static struct err *add(int epoll_fd, int fd, enum serve_src *src)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = src}};
	if (fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return err_os(errno, "epoll");
	return NULL;
}

static struct err *make_fds(struct serve *s)
{
	sigset_t set;
	struct err *e = NULL;
	for (unsigned i = 0; i < s->loop_cnt && !e; i++) {
		struct serve_loop *l = &s->loops[i];
		l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		e = l->epoll_fd < 0 || l->wake_fd < 0 ? err_os(errno, "epoll") : add(l->epoll_fd, l->wake_fd, &l->wake_src);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!e)
		e = add(s->loops[0].epoll_fd, s->signal_fd, &s->signal_src);
	for (unsigned i = 0; i < s->loop_cnt && !e; i++)
		e = serve_loop_listen(&s->loops[i], true) ? NULL : err_os(errno, "epoll");
	return e;
}

static struct err *open_files(struct serve *s, const struct words *w)
{
	size_t cnt;
	const char *project = word_of(w, "project"), *const *files = ops_arg_texts(&w->args, "file", &cnt);
	struct err *e = project ? serve_db_open_project(s, project) : NULL;
	for (size_t i = 0; i < cnt && !e; i++) {
		const struct serve_open_opts o = {.path = files[i]};
		struct serve_db *db = NULL;
		e = serve_db_open(s, &o, &db);
		if (!e && ses_store_note(db->ses))
			fprintf(stderr, "scry: the analysis is kept in memory only: %s\n", ses_store_note(db->ses));
		serve_db_unref(db);
	}
	return e;
}

static void *loop_thread(void *arg)
{
	serve_loop_run(arg);
	return NULL;
}

static struct err *run(struct serve *s)
{
	unsigned started = 1;
	while (started < s->loop_cnt && !pthread_create(&s->loops[started].thread, NULL, loop_thread, &s->loops[started]))
		started++;
	/* Clients go only where somebody is. */
	for (unsigned i = started; i < s->loop_cnt; i++)
		serve_loop_fini(&s->loops[i]);
	s->loop_cnt = started;
	serve_loop_run(&s->loops[0]);
	for (unsigned i = 1; i < s->loop_cnt; i++)
		pthread_join(s->loops[i].thread, NULL);
	return NULL;
}

static struct err *take_limits(struct serve *s, const struct words *w)
{
	struct rlimit lim;
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &lim);
		(void)getrlimit(RLIMIT_NOFILE, &lim);
		s->conn_max = (unsigned)MIN((rlim_t)CLIENTS_MAX, lim.rlim_cur > 2 * FDS_OWN ? lim.rlim_cur - FDS_OWN : lim.rlim_cur / 2);
	}
	uint64_t n = ops_arg_u64(&w->args, "max_clients", s->conn_max);
	s->conn_max = (unsigned)MIN(n, (uint64_t)s->conn_max);
	return n ? NULL : err_new(ERR_INVALID, "--max-clients: at least 1");
}

static struct err *serve_all(struct serve *s, const struct words *w, const struct sockaddr_un *at)
{
	char *token = NULL;
	struct err *e = take_caps(w, &s->caps);
	s->no_store = w->no_store;
	if (!e)
		e = take_limits(s, w);
	if (!e)
		e = listen_tcp(s, w, &token);
	if (!e)
		e = make_fds(s);
	if (!e)
		e = open_files(s, w);
	if (!e) {
		fprintf(stderr, "scry: listening on %s\n", at->sun_path);
		e = run(s);
	}
	serve_fini(s);
	free(token);
	return e;
}

/* Before there are threads: the mask of files is the process's, and every thread leaves signals to the first loop. */
static void set_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static struct err *serve_words(const struct words *w)
{
	struct sockaddr_un at;
	struct rpc_listener listener = {.fd = -1};
	const char *name = word_of(w, "socket");
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned cnt = cores < 1 ? 1 : (unsigned)cores;
	set_signals();
	mallopt(M_ARENA_MAX, (int)MIN(2 * cnt, 16u));
	struct serve *s = calloc(1, sizeof(*s));
	struct err *e = s ? rpc_sock_path(name ? name : "serve", true, &at) : &err_nomem;
	if (!e)
		e = rpc_listen(&at, &listener);
	if (!e)
		e = serve_init(s, MAX(cnt, 4u), MIN(cnt, (unsigned)SERVE_LOOP_MAX));
	if (!e) {
		s->listen_fd = listener.fd;
		e = serve_all(s, w, &at);
	}
	rpc_listener_fini(&listener);
	free(s);
	return e;
}

int serve_main(int argc, char **argv)
{
	struct words w = {0};
	const struct ops_op *op = ops_find("serve");
	ses_stream_set_program("/proc/self/exe");
	ops_args_init(&w.args, op, &w.arena);
	struct err *e = take_words(&w, argc, argv);
	if (!e && !w.is_help)
		e = serve_words(&w);
	int status = e ? ops_fail(e, NULL) : w.is_help ? usage(op) : 0;
	arena_fini(&w.arena);
	return status;
}
