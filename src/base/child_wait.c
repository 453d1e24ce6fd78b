/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file a process sleeps on, read from /proc: the call it is in, the path in its memory, what that path leads to. All of it may
 * be gone or refused while it is read, and then nothing is known.
 */
#include "base/child_wait.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool proc_text(pid_t pid, const char *name, char *ret, size_t cap)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, cap - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Whether it is of the group, and asleep. */
static bool is_asleep(pid_t pid, pid_t group)
{
	char text[512], state;
	int of;
	/* The name, in parentheses, may hold anything. */
	const char *end = proc_text(pid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
	return end && sscanf(end + 1, " %c %*d %d", &state, &of) == 2 && of == group && state == 'S';
}

/* The path at `addr` of its memory. */
static bool path_at(pid_t pid, unsigned long long addr, char *ret, size_t cap)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC);
	/* A page at a time: what follows may not be mapped. */
	for (size_t n = 0; fd >= 0 && n < cap;) {
		size_t want = MIN(cap - n, 4096 - (size_t)((addr + n) % 4096));
		ssize_t got = pread(fd, ret + n, want, (off_t)(addr + n));
		if (got <= 0)
			return false;
		if (memchr(ret + n, 0, (size_t)got))
			return true;
		n += (size_t)got;
	}
	return false;
}

/* The file of an open or a read it sleeps in: a name for /proc, to be looked at, and one to be said. */
static bool file_of_call(pid_t pid, char *look, size_t cap, char *say, size_t say_cap)
{
	char text[256], given[PATH_MAX];
	unsigned long long a[3];
	long nr;
	if (!proc_text(pid, "syscall", text, sizeof(text)) || sscanf(text, "%ld %llx %llx %llx", &nr, &a[0], &a[1], &a[2]) != 4)
		return false;
	if (nr == SYS_read) {
		ssize_t n;
		snprintf(look, cap, "/proc/%d/fd/%d", (int)pid, (int)a[0]);
		n = readlink(look, say, say_cap - 1);
		say[n > 0 ? n : 0] = '\0';
		/* Not a pipe between processes, which has no path. */
		return *say == '/';
	}
	unsigned long long at = nr == SYS_openat ? a[1] : 0;
	int dir = nr == SYS_openat ? (int)a[0] : AT_FDCWD;
#ifdef SYS_open
	at = nr == SYS_open ? a[0] : at;
#endif
	if (!at || !path_at(pid, at, given, sizeof(given)))
		return false;
	snprintf(say, say_cap, "%s", given);
	int len = *given == '/' ? snprintf(look, cap, "%s", given) :
		  dir == AT_FDCWD ? snprintf(look, cap, "/proc/%d/cwd/%s", (int)pid, given) :
				    snprintf(look, cap, "/proc/%d/fd/%d/%s", (int)pid, dir, given);
	return len > 0 && (size_t)len < cap;
}

bool child_waits_for(pid_t group, char *ret, size_t cap)
{
	DIR *d = opendir("/proc");
	bool is_found = false;
	for (const struct dirent *e; d && !is_found && (e = readdir(d));) {
		char look[PATH_MAX + 64];
		struct stat st;
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		is_found = pid > 0 && is_asleep(pid, group) && file_of_call(pid, look, sizeof(look), ret, cap) && !stat(look, &st) &&
			   (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode));
	}
	if (d)
		closedir(d);
	return is_found;
}
