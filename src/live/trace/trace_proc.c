/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_proc.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 512

struct entry {
	struct trace_proc p;
	struct entry *next;
};

struct trace_procs {
	struct entry *buckets[BUCKETS];
};

/* The beginning of a file of a process, with a NUL behind it; "" when it cannot be read. Gives how much that is. */
static size_t read_file(pid_t pid, const char *name, char *to, size_t len)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t got = 0;
	for (ssize_t n = 1; fd >= 0 && n > 0 && got < len - 1; got += n > 0 ? (size_t)n : 0)
		n = read(fd, to + got, len - 1 - got);
	to[got] = 0;
	return got;
}

static uint32_t status_number(const char *status, const char *key)
{
	const char *at = strstr(status, key);
	return at ? (uint32_t)strtoul(at + strlen(key), NULL, 10) : 0;
}

pid_t trace_procs_tgid(pid_t tid)
{
	char status[1024];
	read_file(tid, "status", status, sizeof(status));
	uint32_t tgid = status_number(status, "\nTgid:\t");
	return tgid ? (pid_t)tgid : tid;
}

/* The last run of 64 hexadecimal digits in the cgroup's path names the container. */
static char *container_of(const char *cgroup)
{
	const char *found = NULL;
	size_t run = 0;
	for (const char *p = cgroup; *p; p++) {
		run = isxdigit((unsigned char)*p) ? run + 1 : 0;
		if (run == 64 && !isxdigit((unsigned char)p[1]))
			found = p - 63;
	}
	return found ? strndup(found, 64) : NULL;
}

static void fill(struct trace_proc *p)
{
	char text[4097], path[64];
	free(p->comm);
	free(p->exe);
	free(p->container);
	read_file(p->pid, "comm", text, sizeof(text));
	text[strcspn(text, "\n")] = 0;
	p->comm = text[0] ? strdup(text) : NULL;
	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	ssize_t n = readlink(path, text, sizeof(text) - 1);
	p->exe = n > 0 ? strndup(text, (size_t)n) : NULL;
	read_file(p->pid, "status", text, sizeof(text));
	p->ppid = status_number(text, "\nPPid:\t");
	read_file(p->pid, "cgroup", text, sizeof(text));
	p->container = container_of(text);
}

static struct entry **place(struct trace_procs *p, pid_t pid)
{
	struct entry **at = &p->buckets[(unsigned)pid % BUCKETS];
	while (*at && (*at)->p.pid != pid)
		at = &(*at)->next;
	return at;
}

const struct trace_proc *trace_procs_get(struct trace_procs *p, pid_t pid)
{
	struct entry **at = place(p, pid);
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return NULL;
		(*at)->p.pid = pid;
		fill(&(*at)->p);
	}
	return &(*at)->p;
}

void trace_procs_renew(struct trace_procs *p, pid_t pid)
{
	struct entry **at = place(p, pid);
	if (*at)
		fill(&(*at)->p);
}

void trace_procs_drop(struct trace_procs *p, pid_t pid)
{
	struct entry **at = place(p, pid), *e = *at;
	if (!e)
		return;
	*at = e->next;
	free(e->p.comm);
	free(e->p.exe);
	free(e->p.container);
	free(e);
}

struct trace_procs *trace_procs_new(void)
{
	return calloc(1, sizeof(struct trace_procs));
}

void trace_procs_free(struct trace_procs *p)
{
	for (size_t i = 0; p && i < BUCKETS; i++)
		while (p->buckets[i])
			trace_procs_drop(p, p->buckets[i]->p.pid);
	free(p);
}

size_t trace_procs_threads(pid_t pid, pid_t *ret, size_t max)
{
	char path[64];
	size_t cnt = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (const struct dirent *e = d ? readdir(d) : NULL; e && cnt < max; e = readdir(d)) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid > 0)
			ret[cnt++] = tid;
	}
	if (d)
		closedir(d);
	return cnt;
}

void trace_procs_state(pid_t pid, struct trace_proc_state *ret)
{
	char text[4096];
	*ret = (struct trace_proc_state){0};
	size_t len = read_file(pid, "status", text, sizeof(text));
	const char *state = strstr(text, "\nState:\t"), *tracer = strstr(text, "\nTracerPid:\t"), *kernel = strstr(text, "\nKthread:\t1");
	ret->state = state ? state[8] : 0;
	ret->tracer = tracer ? (pid_t)strtol(tracer + 12, NULL, 10) : 0;
	/* Before Linux 6.10 that is not said: there are no processes without memory but those that have ended. */
	ret->is_kernel = kernel || (len && ret->state != 'Z' && ret->state != 'X' && !strstr(text, "\nVmSize:"));
	if (ret->tracer && read_file(ret->tracer, "comm", ret->tracer_comm, sizeof(ret->tracer_comm)))
		ret->tracer_comm[strcspn(ret->tracer_comm, "\n")] = 0;
}

size_t trace_procs_cmdline(pid_t pid, char *ret, size_t len)
{
	return read_file(pid, "cmdline", ret, len);
}

size_t trace_procs_environ(pid_t pid, char *ret, size_t len)
{
	return read_file(pid, "environ", ret, len);
}

size_t trace_procs_auxv(pid_t pid, char *ret, size_t len)
{
	return read_file(pid, "auxv", ret, len);
}
