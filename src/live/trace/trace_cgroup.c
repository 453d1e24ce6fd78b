/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_cgroup.h"

#include "live/trace/trace_wire.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 32
#define HIERARCHIES_MAX 32

size_t trace_cgroup_container(const char *path, const char **ret)
{
	size_t run = 0, found = 0;
	for (const char *p = path; *p; p++) {
		run = isxdigit((unsigned char)*p) ? run + 1 : 0;
		if (run == TRACE_CONTAINER_LEN && !isxdigit((unsigned char)p[1])) {
			*ret = p - (TRACE_CONTAINER_LEN - 1);
			found = TRACE_CONTAINER_LEN;
		}
	}
	return found;
}

bool trace_cgroup_is_in(const char *path, const char *container)
{
	const char *id;
	return trace_cgroup_container(path, &id) && !strncmp(id, container, strlen(container));
}

struct hierarchy {
	uint32_t id;
	char controllers[128]; /* "" of the unified one */
};

struct walk {
	const char *container;
	void (*fn)(void *ctx, uint64_t key);
	void *ctx;
	uint32_t hierarchy;
};

/* The folder and those in it. `inside`: what is above says that it is the container's, if its own name says nothing. Takes `fd`. */
static void walk_folder(const struct walk *w, int fd, const char *name, bool inside, unsigned depth)
{
	struct stat st;
	const char *id;
	if (trace_cgroup_container(name, &id))
		inside = trace_cgroup_is_in(name, w->container);
	if (inside && !fstat(fd, &st))
		w->fn(w->ctx, trace_cgroup_key(st.st_ino, w->hierarchy));
	DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || depth == DEPTH_MAX)
			continue;
		int sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			walk_folder(w, sub, e->d_name, inside, depth + 1);
	}
	closedir(d);
}

/* The hierarchies there are: lines "number:controllers:path" of the process's own cgroups. */
static size_t read_hierarchies(struct hierarchy *ret)
{
	char line[4096 + 256];
	size_t cnt = 0;
	FILE *f = fopen("/proc/self/cgroup", "re");
	while (f && cnt < HIERARCHIES_MAX && fgets(line, sizeof(line), f)) {
		struct hierarchy *h = &ret[cnt];
		h->controllers[0] = '\0';
		if (sscanf(line, "%u:%127[^:]:", &h->id, h->controllers) >= 1)
			cnt++;
	}
	if (f)
		fclose(f);
	return cnt;
}

/* Whether this is a mount of the hierarchy; `text` is what a line of mountinfo (proc_pid_mountinfo(5)) has behind its dash: type, source, options. */
static bool is_mount_of(const struct hierarchy *h, const char *text)
{
	char type[32], options[512];
	if (sscanf(text, "%31s %*s %511s", type, options) != 2)
		return false;
	if (!h->controllers[0])
		return !strcmp(type, "cgroup2");
	char first[128], wanted[130], all[sizeof(options) + 2];
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(h->controllers, ","), h->controllers);
	snprintf(wanted, sizeof(wanted), ",%s,", first);
	snprintf(all, sizeof(all), ",%s,", options);
	return !strcmp(type, "cgroup") && strstr(all, wanted);
}

void trace_cgroup_each(const char *container, void (*fn)(void *ctx, uint64_t key), void *ctx)
{
	struct hierarchy known[HIERARCHIES_MAX];
	bool done[HIERARCHIES_MAX] = {false};
	size_t cnt = read_hierarchies(known);
	char line[8192], path[4096];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *dash = strstr(line, " - ");
		if (!dash || sscanf(line, "%*d %*d %*s %*s %4095s", path) != 1)
			continue;
		for (size_t i = 0; i < cnt; i++) {
			if (done[i] || !is_mount_of(&known[i], dash + 3))
				continue;
			done[i] = true;
			struct walk w = {.container = container, .fn = fn, .ctx = ctx, .hierarchy = known[i].id};
			int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd >= 0)
				walk_folder(&w, fd, "", false, 0);
		}
	}
	if (f)
		fclose(f);
}
