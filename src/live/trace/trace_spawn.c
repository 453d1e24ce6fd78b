/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_spawn.h"

#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the child: waits until it is traced, then becomes the program. Does not return. */
static void become(char *const *argv, const char *path, const struct sock_fprog *filter, int go, int failed)
{
	char ch;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	child_give_signals();
	if (read(go, &ch, 1) == 1) {
		if (filter && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter)))
			_exit(127);
		execv(path, argv);
		int why = errno;
		if (write(failed, &why, sizeof(why)) < 0)
			_exit(126);
	}
	_exit(127);
}

struct err *trace_spawn_find(const char *name, char *path, size_t len)
{
	const char *dirs = getenv("PATH");
	if (strchr(name, '/') || !dirs) {
		snprintf(path, len, "%s", name);
		return access(path, F_OK) ? err_new(ERR_NOT_FOUND, "%s: there is no such program", name) : NULL;
	}
	while (*dirs) {
		size_t n = strcspn(dirs, ":");
		snprintf(path, len, "%.*s/%s", n ? (int)n : 1, n ? dirs : ".", name);
		struct stat st;
		if (!access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode))
			return NULL;
		dirs += n + (dirs[n] == ':');
	}
	return err_new(ERR_NOT_FOUND, "%s: there is no such program in PATH", name);
}

struct err *trace_spawn_new(char *const *argv, const struct sock_fprog *filter, struct trace_spawn *ret)
{
	char path[4096];
	int go[2], failed[2];
	*ret = (struct trace_spawn){.go = -1, .failed = -1};
	struct err *e = trace_spawn_find(argv[0], path, sizeof(path));
	if (e)
		return e;
	if (pipe2(go, O_CLOEXEC))
		return err_os(errno, "no pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		e = err_os(errno, "no pipe");
		close(go[0]);
		close(go[1]);
		return e;
	}
	ret->pid = fork();
	if (!ret->pid) {
		close(go[1]);
		become(argv, path, filter, go[0], failed[1]);
	}
	if (ret->pid < 0) {
		e = err_os(errno, "no process for %s", path);
		ret->pid = 0;
	}
	close(go[0]);
	close(failed[1]);
	ret->go = go[1];
	ret->failed = failed[0];
	return e;
}

struct err *trace_spawn_go(struct trace_spawn *s)
{
	struct err *e = write(s->go, "g", 1) == 1 ? NULL : err_os(errno, "no word to the program");
	close(s->go);
	s->go = -1;
	return e;
}

struct err *trace_spawn_error(const struct trace_spawn *s, const char *name)
{
	int why;
	return s->failed >= 0 && read(s->failed, &why, sizeof(why)) == sizeof(why) ? err_os(why, "%s cannot be run", name) : NULL;
}

void trace_spawn_fini(struct trace_spawn *s)
{
	if (s->go >= 0)
		close(s->go);
	if (s->failed >= 0)
		close(s->failed);
	*s = (struct trace_spawn){.go = -1, .failed = -1};
}
