/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and says what it cost, for the bench:
 *
 *   measure COMMAND ARGS...
 *   STATUS USER_NS SYS_NS WALL_NS MAXRSS_KB   on stderr's last line; the command's stdout goes to /dev/null
 *
 * A program of its own because the kernel counts the memory of the process that started a command, up to exec, as
 * the command's: under an interpreter nothing below its 14 MB could be seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t tv_ns(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: measure COMMAND ARGS...\n");
		return 2;
	}
	posix_spawn_file_actions_t act;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&act, 1, "/dev/null", O_WRONLY, 0);

	pid_t pid;
	int64_t start = now_ns();
	int ret = posix_spawnp(&pid, argv[1], &act, NULL, argv + 1, environ);
	if (ret) {
		fprintf(stderr, "measure: %s: %s\n", argv[1], strerror(ret));
		return 2;
	}
	int status;
	struct rusage use;
	while (wait4(pid, &status, 0, &use) < 0)
		if (errno != EINTR)
			return 2;
	fprintf(stderr, "\n%d %" PRId64 " %" PRId64 " %" PRId64 " %ld\n",
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), tv_ns(use.ru_utime), tv_ns(use.ru_stime),
		now_ns() - start, use.ru_maxrss);
	return 0;
}
