/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/exec_warm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define IDLE_MAX 4
#define POLL_MS 50

struct exec_warm {
	struct exec_warm *next;
	pid_t pid;
	int fd;
	char *key;
	char missing[64];
	char in[8192];
	size_t in_len;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER; /* for the following */
static struct exec_warm *idle;

extern char **environ;

/* --- where the package is --- */

/* The folder of the file this code is in: the program, or the module of Python. */
static bool own_folder(char *out, size_t cap, bool *ret_is_module)
{
	Dl_info info = {0};
	/* The address of data, as that of a function is no pointer in ISO C. */
	const char *name = dladdr(&pool_lock, &info) ? info.dli_fname : NULL;
	size_t len = name ? strlen(name) : 0;
	*ret_is_module = len > 3 && !strcmp(name + len - 3, ".so");
	ssize_t n = *ret_is_module ? (ssize_t)snprintf(out, cap, "%s", name) : readlink("/proc/self/exe", out, cap - 1);
	if (n <= 0 || (size_t)n >= cap)
		return false;
	out[n] = 0;
	char *slash = strrchr(out, '/');
	if (!slash)
		return false;
	*slash = 0;
	return true;
}

static struct err *find_package(char *out, size_t cap)
{
	/* Beside the program in the build folder; where it is installed; in the package itself. */
	static const char *const places[] = {"../../python", "../" EXEC_LIBDIR "/scry/python"}, *const of_module[] = {".."};
	char own[3072], file[4096 + 64];
	bool is_module;
	if (!own_folder(own, sizeof(own), &is_module))
		return err_new(ERR_INTERNAL, "exec: the program does not know where it is");
	size_t cnt = is_module ? ARRAY_LEN(of_module) : ARRAY_LEN(places);
	for (size_t i = 0; i < cnt; i++) {
		snprintf(out, cap, "%s/%s", own, is_module ? of_module[i] : places[i]);
		snprintf(file, sizeof(file), "%s/scry/_scry.abi3.so", out);
		if (!access(file, R_OK))
			return NULL;
	}
	return err_fix(err_new(ERR_ENV, "exec: this scry was built without Python"), "install python3-dev and build scry again");
}

/* --- starting one --- */

static const char boot[] = "import sys; sys.path.insert(0, sys.argv[1]); from scry import _warm; _warm.main()";

/* The environment, and for a build with a sanitizer its runtime, which has to be there before Python is. */
static char **environment(char preload[4096], char ***ret_owned)
{
	*ret_owned = NULL;
#if defined(__SANITIZE_ADDRESS__)
	Dl_info info = {0};
	void *runtime = dlsym(RTLD_DEFAULT, "__asan_init");
	size_t n = 0;
	if (!runtime || !dladdr(runtime, &info))
		return environ;
	snprintf(preload, 4096, "LD_PRELOAD=%s", info.dli_fname);
	while (environ[n])
		n++;
	char **env = calloc(n + 3, sizeof(*env));
	if (!env)
		return environ;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "ASAN_OPTIONS=", 13))
			env[k++] = environ[i];
	}
	env[k++] = preload;
	/* What Python leaves at its end is not ours; Python finds out itself that memory is out. */
	env[k] = (char *)"ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1";
	*ret_owned = env;
	return env;
#else
	(void)preload;
	return environ;
#endif
}

static int spawn(char *const *argv, int fd, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	char preload[4096], **owned;
	char **env = environment(preload, &owned);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	/* Until it is ready, what Python complains of is what it says. */
	posix_spawn_file_actions_adddup2(&files, fd, 2);
	posix_spawn_file_actions_adddup2(&files, fd, 3);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	int rc = posix_spawnp(ret, argv[0], &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	free(owned);
	return rc;
}

static void free_warm(struct exec_warm *w)
{
	free(w->key);
	free(w);
}

void exec_warm_end(struct exec_warm *w)
{
	if (!w)
		return;
	/* It ends by itself when nobody talks to it any more, and takes what it forked with it. */
	close(w->fd);
	int status;
	for (int ms = 0; ms < 2000 && !waitpid(w->pid, &status, WNOHANG); ms++)
		(void)!poll(NULL, 0, 1);
	kill(w->pid, SIGKILL);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	free_warm(w);
}

int exec_warm_fd(const struct exec_warm *w)
{
	return w->fd;
}

const char *exec_warm_missing(const struct exec_warm *w)
{
	return w->missing;
}

static bool take_line(struct exec_warm *w, char *line, size_t cap)
{
	char *nl = memchr(w->in, '\n', w->in_len);
	if (!nl)
		return false;
	size_t len = (size_t)(nl - w->in);
	snprintf(line, cap, "%.*s", (int)len, w->in);
	w->in_len -= len + 1;
	memmove(w->in, nl + 1, w->in_len);
	return true;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct err *check_call(const struct ses_call *call)
{
	if (call->cancel && atomic_load(call->cancel))
		return err_new(ERR_CANCELLED, "cancelled");
	return call->deadline_ns && now_ns() > call->deadline_ns ? err_new(ERR_TIMEOUT, "the deadline passed") : NULL;
}

struct err *exec_warm_line(struct exec_warm *w, const struct ses_call *call, char *line, size_t cap)
{
	while (!take_line(w, line, cap)) {
		struct err *e = check_call(call);
		if (e)
			return e;
		struct pollfd p = {.fd = w->fd, .events = POLLIN};
		if (poll(&p, 1, POLL_MS) <= 0)
			continue;
		/* A line longer than all this is nothing of ours. */
		ssize_t n = w->in_len < sizeof(w->in) ? recv(w->fd, w->in + w->in_len, sizeof(w->in) - w->in_len, MSG_DONTWAIT) : 0;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return err_new(ERR_IO, "exec: the warm interpreter ended");
		w->in_len += (size_t)n;
	}
	return NULL;
}

/* Its first word: "ready WHAT IS MISSING", "error KIND TEXT", or what Python says of why it does not start, line by line. */
static struct err *read_ready(struct exec_warm *w, const struct ses_call *call)
{
	char line[2048], last[1024] = "";
	for (;;) {
		struct err *e = exec_warm_line(w, call, line, sizeof(line));
		if (e && e->kind == ERR_IO && *last) {
			err_free(e);
			return err_fix(err_new(ERR_ENV, "exec: python3 does not start: %s", last),
				       "it must be Python 3.11 or newer; $SCRY_PYTHON says which is taken");
		}
		if (e)
			return e;
		if (!strncmp(line, "ready ", 6)) {
			snprintf(w->missing, sizeof(w->missing), "%.*s", (int)sizeof(w->missing) - 1, line + 6);
			return NULL;
		}
		if (!strncmp(line, "error ", 6))
			return err_new(ERR_BAD_INPUT, "exec: %s", line + 6);
		snprintf(last, sizeof(last), "%.*s", (int)sizeof(last) - 1, line);
	}
}

static struct err *start(const struct exec_want *want, const char *key, struct exec_warm **ret)
{
	char package[4096];
	struct err *e = find_package(package, sizeof(package));
	if (e)
		return e;
	const char *python = getenv("SCRY_PYTHON");
	char *const argv[] = {(char *)(python && *python ? python : "python3"), (char *)"-I", (char *)"-c", (char *)boot, package,
			      (char *)want->target, (char *)(want->no_store ? "no-store" : "store"),
			      (char *)(want->is_confined ? "confined" : "unconfined"), (char *)want->load.processor,
			      (char *)want->load.base, (char *)want->load.format, NULL};
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_os(errno, "exec: a socket");
	struct exec_warm *w = calloc(1, sizeof(*w));
	int rc = ENOMEM;
	if (w) {
		w->fd = pair[0];
		w->key = strdup(key);
		rc = w->key ? spawn(argv, pair[1], &w->pid) : ENOMEM;
	}
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		if (w)
			free_warm(w);
		return rc == ENOENT ? err_fix(err_new(ERR_ENV, "exec: there is no %s", argv[0]), "install python3") : err_os(rc, "exec: %s", argv[0]);
	}
	e = read_ready(w, want->call);
	if (e) {
		exec_warm_end(w);
		return e;
	}
	*ret = w;
	return NULL;
}

/* --- the pool --- */

static bool is_alive(const struct exec_warm *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	return poll(&p, 1, 0) == 0;
}

struct err *exec_warm_take(const struct exec_want *want, struct exec_warm **ret)
{
	char *key = NULL;
	if (asprintf(&key, "%s\n%s\n%d%d\n%s\n%s\n%s", want->sha256, want->target, want->no_store, want->is_confined, want->load.processor,
		     want->load.base, want->load.format) < 0)
		return &err_nomem;
	struct exec_warm *found = NULL;
	pthread_mutex_lock(&pool_lock);
	for (struct exec_warm **at = &idle; *at && !found;) {
		if (strcmp((*at)->key, key)) {
			at = &(*at)->next;
			continue;
		}
		found = *at;
		*at = found->next;
	}
	pthread_mutex_unlock(&pool_lock);
	if (found && !is_alive(found)) {
		exec_warm_end(found);
		found = NULL;
	}
	struct err *e = found ? NULL : start(want, key, &found);
	free(key);
	if (!e)
		*ret = found;
	return e;
}

void exec_warm_give(struct exec_warm *w)
{
	struct exec_warm *old = NULL;
	unsigned n = 1;
	pthread_mutex_lock(&pool_lock);
	w->next = idle;
	idle = w;
	for (struct exec_warm *at = idle; at; at = at->next) {
		if (n++ != IDLE_MAX)
			continue;
		old = at->next;
		at->next = NULL;
	}
	pthread_mutex_unlock(&pool_lock);
	while (old) {
		struct exec_warm *next = old->next;
		exec_warm_end(old);
		old = next;
	}
}

void exec_warm_end_all(void)
{
	pthread_mutex_lock(&pool_lock);
	struct exec_warm *w = idle;
	idle = NULL;
	pthread_mutex_unlock(&pool_lock);
	while (w) {
		struct exec_warm *next = w->next;
		exec_warm_end(w);
		w = next;
	}
}

/* --- handing over --- */

static struct err *send_all(struct exec_warm *w, const void *bytes, size_t len)
{
	for (const char *p = bytes; len;) {
		ssize_t n = send(w->fd, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_os(errno, "exec: the warm interpreter");
		p += n;
		len -= (size_t)n;
	}
	return NULL;
}

struct err *exec_warm_send(struct exec_warm *w, const char *text, size_t len, const int *fds, unsigned fd_cnt)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = {.room = {0}};
	char kind = 'r';
	struct iovec io = {&kind, 1};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = CMSG_SPACE(fd_cnt * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(fd_cnt * sizeof(int));
	memcpy(CMSG_DATA(c), fds, fd_cnt * sizeof(int));
	uint32_t size = (uint32_t)len;
	if (sendmsg(w->fd, &msg, MSG_NOSIGNAL) != 1)
		return err_os(errno, "exec: the warm interpreter");
	struct err *e = send_all(w, &size, sizeof(size));
	return e ? e : send_all(w, text, len);
}
