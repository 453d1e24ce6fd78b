/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include "base/child_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/*
 * The answer comes over a pipe; how far the child got stands in one shared page, which the locked
 * child can write too, so that the parent reads it as it reads everything else of the child.
 */
enum child_stage { CHILD_STARTED, CHILD_FAILED /* text says why */, CHILD_LOCKED, CHILD_DONE };

#define CHILD_TEXT_MAX 512
#define CHILD_READ_LEN 65536

/* How often a child that closed its pipe but did not end is looked at. */
#define CHILD_REAP_MS 2

struct child_page {
	atomic_int stage;    /* enum child_stage */
	atomic_int call_nr;  /* the forbidden call, or -1 */
	atomic_int status;   /* what run() returned */
	atomic_int err_kind;
	char text[CHILD_TEXT_MAX];
	char fix[CHILD_TEXT_MAX];
};

struct child {
	const struct child_opts *opts;
	struct child_page *page;
	int fd;              /* the pipe's reading end */
	pid_t pid;
	int64_t deadline_ms;
};

/* In the child only: where the SIGSYS handler leaves the number. */
static struct child_page *child_own_page;

/* Held from making a pipe to closing its writing end, so that no other child of ours inherits it. */
static pthread_mutex_t child_fork_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t child_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

bool child_write(int fd, const void *bytes, size_t len)
{
	const char *p = bytes;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static void child_on_sigsys(int sig, siginfo_t *info, void *context)
{
	atomic_store(&child_own_page->call_nr, info->si_syscall);
	syscall(SYS_exit_group, 1);
}

/* The parent's handlers are not for the child. SIGBUS stays: base/guard.h mends mappings with it. */
static void child_reset_signals(void)
{
	static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigemptyset(&act.sa_mask);
	for (int sig = 1; sig < NSIG; sig++) {
		if (sig != SIGBUS && sig != SIGKILL && sig != SIGSTOP)
			sigaction(sig, &act, NULL);
	}
	act.sa_handler = SIG_IGN;
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		sigaction(ignored[i], &act, NULL);
	act.sa_sigaction = child_on_sigsys;
	act.sa_flags = SA_SIGINFO;
	sigaction(SIGSYS, &act, NULL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static struct err *child_lock(const struct child_opts *opts, int *out_fd)
{
	struct err *e = child_lock_shared(child_own_page);
	if (!e)
		e = child_lock_files(out_fd);
	if (!e)
		e = child_lock_limits(opts->max_mem_len, opts->cpu_s);
	if (e)
		return e;
	/* Only now: it takes /proc/self, which the steps before read, away from people who are not root. */
	prctl(PR_SET_DUMPABLE, 0);
	return child_lock_calls(opts->is_lenient);
}

_Noreturn static void child_main(const struct child_opts *opts, struct child_page *page, int out_fd)
{
	child_own_page = page;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_reset_signals();
	struct err *e = opts->prepare ? opts->prepare(opts->ctx) : NULL;
	if (!e)
		e = child_lock(opts, &out_fd);
	if (e) {
		snprintf(page->text, sizeof(page->text), "%s", e->text);
		snprintf(page->fix, sizeof(page->fix), "%s", e->fix ? e->fix : "");
		atomic_store(&page->err_kind, (int)e->kind);
		atomic_store(&page->stage, CHILD_FAILED);
		_exit(1);
	}
	atomic_store(&page->stage, CHILD_LOCKED);
	int status = opts->run(opts->ctx, out_fd);
	atomic_store(&page->status, status);
	atomic_store(&page->stage, CHILD_DONE);
	_exit(0);
}

static struct err *child_start(struct child *c)
{
	int fds[2];
	pid_t parent = getpid();
	pthread_mutex_lock(&child_fork_lock);
	if (pipe2(fds, O_CLOEXEC)) {
		struct err *e = err_os(errno, "a pipe for %s", c->opts->what);
		pthread_mutex_unlock(&child_fork_lock);
		return e;
	}
	c->pid = fork();
	if (c->pid == 0) {
		if (getppid() != parent)
			_exit(1);
		child_main(c->opts, c->page, fds[1]);
	}
	int os_errno = errno;
	close(fds[1]);
	pthread_mutex_unlock(&child_fork_lock);
	if (c->pid < 0) {
		close(fds[0]);
		return err_os(os_errno, "a process for %s", c->opts->what);
	}
	c->fd = fds[0];
	return NULL;
}

static struct err *child_late(const struct child *c)
{
	return err_new(ERR_TIMEOUT, "%s took more than %u ms", c->opts->what, c->opts->wall_ms);
}

/* Takes what the child writes until it closes the pipe. */
static struct err *child_collect(struct child *c, struct buf *ret)
{
	size_t start = ret->len;
	for (;;) {
		int64_t left = c->deadline_ms - child_now_ms();
		if (left <= 0)
			return child_late(c);
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		int ready = poll(&p, 1, (int)MIN(left, 60000));
		if (ready < 0 && errno != EINTR)
			return err_os(errno, "waiting for %s", c->opts->what);
		if (ready <= 0)
			continue;
		size_t room = c->opts->max_out_len - (ret->len - start);
		/* One byte past the limit is asked for, to know that there was one. */
		size_t want = MIN(room + 1, CHILD_READ_LEN);
		char *at = buf_room(ret, want);
		if (!at)
			return &err_nomem;
		ssize_t n = read(c->fd, at, want);
		if (n < 0 && errno != EINTR)
			return err_os(errno, "reading the answer of %s", c->opts->what);
		if (n == 0)
			return NULL;
		ret->len += n > 0 ? MIN((size_t)n, room) : 0;
		if (n > 0 && (size_t)n > room)
			return err_new(ERR_BUDGET, "%s gave more than %zu bytes", c->opts->what, c->opts->max_out_len);
	}
}

/* Waits for the end of the child; false when it did not come in time. `*ret_status` is -1 when somebody
 * else took the child's status. */
static bool child_reap(struct child *c, int *ret_status, struct rusage *ret_usage)
{
	for (;;) {
		pid_t got = wait4(c->pid, ret_status, WNOHANG, ret_usage);
		if (got == c->pid)
			return true;
		if (got < 0 && errno != EINTR) {
			*ret_status = -1;
			return true;
		}
		if (child_now_ms() >= c->deadline_ms)
			return false;
		poll(NULL, 0, CHILD_REAP_MS);
	}
}

static void child_kill(struct child *c)
{
	int status;
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
}

/* Copies text the child left, up to its room, without what a terminal would obey. */
static void child_copy_text(const char *from, char *to)
{
	size_t i;
	for (i = 0; i < CHILD_TEXT_MAX - 1 && from[i]; i++)
		to[i] = (unsigned char)from[i] < ' ' || from[i] == 0x7f ? '?' : from[i];
	to[i] = 0;
}

static struct err *child_prepare_failed(struct child *c)
{
	char text[CHILD_TEXT_MAX], fix[CHILD_TEXT_MAX];
	child_copy_text(c->page->text, text);
	child_copy_text(c->page->fix, fix);
	struct err *e = err_new(ERR_ENV, "%s", text);
	return fix[0] ? err_fix(e, "%s", fix) : e;
}

static struct err *child_judge(struct child *c, int status, const struct rusage *usage)
{
	const char *what = c->opts->what;
	int stage = atomic_load(&c->page->stage), call_nr = atomic_load(&c->page->call_nr);
	if (call_nr >= 0) {
		const char *name = child_call_name(call_nr);
		return name ? err_new(ERR_BAD_INPUT, "the child was stopped at the system call %s while %s", name, what) :
			      err_new(ERR_BAD_INPUT, "the child was stopped at system call %d while %s", call_nr, what);
	}
	if (status != -1 && WIFSIGNALED(status)) {
		int sig = WTERMSIG(status);
		if (sig == SIGXCPU || (sig == SIGKILL && usage->ru_utime.tv_sec + usage->ru_stime.tv_sec >= c->opts->cpu_s))
			return err_new(ERR_TIMEOUT, "%s took more than %u s of processor time", what, c->opts->cpu_s);
		const char *name = sigabbrev_np(sig);
		return err_new(ERR_BAD_INPUT, "the child died of SIG%s while %s", name ? name : "?", what);
	}
	if (stage == CHILD_FAILED)
		return child_prepare_failed(c);
	if (stage != CHILD_DONE)
		return err_new(ERR_BAD_INPUT, "the child ended early while %s", what);
	int said = atomic_load(&c->page->status);
	return said ? err_new(ERR_BAD_INPUT, "%s failed (%d)", what, said) : NULL;
}

static struct err *child_run_on_page(struct child *c, struct buf *ret)
{
	c->deadline_ms = child_now_ms() + c->opts->wall_ms;
	struct err *e = child_start(c);
	if (e)
		return e;
	int status = -1;
	struct rusage usage = {0};
	e = child_collect(c, ret);
	close(c->fd);
	if (!e && !child_reap(c, &status, &usage))
		e = child_late(c);
	if (e) {
		child_kill(c);
		return e;
	}
	return child_judge(c, status, &usage);
}

/*
 * gcc 12's AddressSanitizer does not take the locks of its allocator over fork(): a child may find one held by a thread that it does not
 * have, and wait for ever. With it, a child that has not ended after a while is begun anew, before one has all the time there is.
 */
#ifdef __SANITIZE_ADDRESS__
#define CHILD_TRIES 3
#define CHILD_TRY_MS 15000
#else
#define CHILD_TRIES 0
#define CHILD_TRY_MS 0
#endif

struct err *child_run(const struct child_opts *opts, struct buf *ret)
{
	struct child_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return &err_nomem;
	size_t len = ret->len;
	struct err *e = NULL;
	for (unsigned left = opts->wall_ms > CHILD_TRY_MS ? CHILD_TRIES : 0;; left--) {
		struct child_opts once = *opts;
		if (left)
			once.wall_ms = CHILD_TRY_MS;
		memset(page, 0, sizeof(*page));
		atomic_store(&page->call_nr, -1);
		struct child c = {.opts = &once, .page = page, .fd = -1};
		e = child_run_on_page(&c, ret);
		if (!left || !e || e->kind != ERR_TIMEOUT)
			break;
		err_free(e);
		ret->len = len;
	}
	munmap(page, sizeof(*page));
	return e;
}

/* --- signals of programs that are started --- */

static const int child_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGXFSZ};
static bool child_ignores[ARRAY_LEN(child_signals)], child_is_noted;

void child_note_signals(void)
{
	struct sigaction was;
	for (size_t i = 0; i < ARRAY_LEN(child_signals) && !child_is_noted; i++)
		child_ignores[i] = !sigaction(child_signals[i], NULL, &was) && was.sa_handler == SIG_IGN;
	child_is_noted = true;
}

void child_give_signals(void)
{
	for (size_t i = 0; i < ARRAY_LEN(child_signals); i++)
		sigaction(child_signals[i], &(struct sigaction){.sa_handler = child_ignores[i] ? SIG_IGN : SIG_DFL}, NULL);
}
