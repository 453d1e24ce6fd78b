/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child_tool.h"

#include "base/child_lock.h"
#include "base/child_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOOL_ERR_MAX 65536
#define TOOL_MEM_MAX ((rlim_t)4 << 30)
#define TOOL_LOOK_MS 100 /* how often check() is asked */
#define TOOL_WAIT_MS 500 /* how often it is looked whether it waits for what is no file */
#define TOOL_NO_LOCK 126
#define TOOL_NO_PROGRAM 127

struct tool_pipe {
	int fd;
	struct buf *to;
	size_t max_len, start;
	bool is_over;
};

static int64_t tool_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void tool_limit(__rlimit_resource_t what, rlim_t to)
{
	struct rlimit old;
	if (getrlimit(what, &old))
		_exit(TOOL_NO_LOCK);
	struct rlimit now = {MIN(to, old.rlim_max), MIN(to, old.rlim_max)};
	if (setrlimit(what, &now))
		_exit(TOOL_NO_LOCK);
}

bool child_tool_find(const char *name, char *ret, size_t cap)
{
	static const char *const folders[] = {"/usr/bin/", "/bin/"};
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		int len = snprintf(ret, cap, "%s%s", folders[i], name);
		if (len > 0 && (size_t)len < cap && !access(ret, X_OK))
			return true;
	}
	return false;
}

_Noreturn static void tool_child(const struct child_tool *tool, int out_fd, int err_fd)
{
	char path[512], tmp[512];
	const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", tool->folder ? tmp : NULL, NULL};
	int null = open("/dev/null", O_RDONLY);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0)
		_exit(TOOL_NO_LOCK);
	if (close_range(3, ~0u, 0)) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
	}
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigemptyset(&act.sa_mask);
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &act, NULL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	tool_limit(RLIMIT_AS, tool->max_mem_len ? tool->max_mem_len : TOOL_MEM_MAX);
	tool_limit(RLIMIT_CPU, tool->cpu_s);
	tool_limit(RLIMIT_CORE, 0);
	tool_limit(RLIMIT_FSIZE, tool->folder ? tool->max_file_len : 0);
	tool_limit(RLIMIT_NOFILE, 256);
	if (tool->folder) {
		int len = snprintf(tmp, sizeof(tmp), "TMPDIR=%s", tool->folder);
		if (len >= (int)sizeof(tmp) || chdir(tool->folder) || !child_lock_folder(tool->folder))
			_exit(TOOL_NO_LOCK);
	}
	if (child_lock_tool(tool->folder != NULL))
		_exit(TOOL_NO_LOCK);
	if (child_tool_find(tool->argv[0], path, sizeof(path)))
		execve(path, (char *const *)tool->argv, (char *const *)env);
	_exit(TOOL_NO_PROGRAM);
}

/* Takes what is there; false at the end. */
static bool tool_take(struct tool_pipe *p)
{
	char *at = buf_room(p->to, 65536);
	ssize_t n = at ? read(p->fd, at, 65536) : -1;
	if (n < 0 && at && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	size_t room = p->max_len - (p->to->len - p->start);
	p->is_over |= (size_t)n > room;
	p->to->len += MIN((size_t)n, room);
	return true;
}

static struct err *tool_waits(const struct child_tool *tool, pid_t pid)
{
	char file[512];
	if (!child_waits_for(pid, file, sizeof(file)))
		return NULL;
	return err_fix(err_new(ERR_BAD_INPUT, "%s waits for %s, which is a pipe or a device and no file", tool->argv[0], file),
		       "write what comes out of it into a file");
}

static struct err *tool_collect(const struct child_tool *tool, pid_t pid, struct tool_pipe pipes[2])
{
	int64_t begun = tool_now_ms(), deadline = begun + tool->wall_ms, look = begun + TOOL_WAIT_MS;
	while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
		int64_t left = deadline - tool_now_ms();
		struct pollfd p[2] = {{.fd = pipes[0].fd, .events = POLLIN}, {.fd = pipes[1].fd, .events = POLLIN}};
		struct err *e = tool->check ? tool->check(tool->check_ctx) : NULL;
		if (!e && tool->wants_files && tool_now_ms() >= look) {
			e = tool_waits(tool, pid);
			look = tool_now_ms() + TOOL_WAIT_MS;
		}
		if (e)
			return e;
		if (left <= 0)
			return err_new(ERR_TIMEOUT, "%s took more than %u ms", tool->argv[0], tool->wall_ms);
		if (poll(p, 2, (int)MIN(left, tool->check ? TOOL_LOOK_MS : tool->wants_files ? TOOL_WAIT_MS : 60000)) < 0 && errno != EINTR)
			return err_os(errno, "waiting for %s", tool->argv[0]);
		for (int i = 0; i < 2; i++) {
			if (p[i].fd < 0 || !p[i].revents || tool_take(&pipes[i]))
				continue;
			close(pipes[i].fd);
			pipes[i].fd = -1;
		}
		if (pipes[0].is_over)
			return err_new(ERR_BUDGET, "%s gave more than %zu bytes", tool->argv[0], tool->max_out_len);
	}
	return NULL;
}

static struct err *tool_judge(const struct child_tool *tool, int status, int *ret_status)
{
	if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));
		if (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)
			return err_new(ERR_TIMEOUT, "%s took more than %u s of processor time", tool->argv[0], tool->cpu_s);
		return err_new(ERR_BAD_INPUT, "%s died of SIG%s", tool->argv[0], name ? name : "?");
	}
	*ret_status = WEXITSTATUS(status);
	if (*ret_status == TOOL_NO_PROGRAM)
		return err_new(ERR_ENV, "there is no %s in /usr/bin", tool->argv[0]);
	return *ret_status == TOOL_NO_LOCK ? err_new(ERR_ENV, "%s cannot be locked in on this kernel", tool->argv[0]) : NULL;
}

struct err *child_tool_run(const struct child_tool *tool, struct buf *ret_out, struct buf *ret_err, int *ret_status)
{
	int out[2], err[2], status = 0;
	if (pipe2(out, O_CLOEXEC))
		return err_os(errno, "a pipe for %s", tool->argv[0]);
	if (pipe2(err, O_CLOEXEC)) {
		struct err *e = err_os(errno, "a pipe for %s", tool->argv[0]);
		close(out[0]);
		close(out[1]);
		return e;
	}
	pid_t pid = fork();
	if (pid == 0)
		tool_child(tool, out[1], err[1]);
	int os_errno = errno;
	/* As it does itself: whoever is first, the group is there when it is to be ended. */
	if (pid > 0)
		setpgid(pid, pid);
	close(out[1]);
	close(err[1]);
	struct tool_pipe pipes[2] = {{out[0], ret_out, tool->max_out_len, ret_out->len, false}, {err[0], ret_err, TOOL_ERR_MAX, ret_err->len, false}};
	struct err *e = pid < 0 ? err_os(os_errno, "a process for %s", tool->argv[0]) : tool_collect(tool, pid, pipes);
	for (int i = 0; i < 2; i++) {
		if (pipes[i].fd >= 0)
			close(pipes[i].fd);
	}
	if (pid > 0) {
		/* Whatever it started ends with it. */
		if (e) {
			kill(pid, SIGKILL);
			kill(-pid, SIGKILL);
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		kill(-pid, SIGKILL);
	}
	return e ? e : tool_judge(tool, status, ret_status);
}
