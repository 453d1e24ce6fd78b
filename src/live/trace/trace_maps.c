/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_maps.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* include/uapi/linux/fs.h since 6.11; here because headers are older than kernels. */
struct procmap_query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_len, build_id_len;
	uint64_t name, build_id;
};
#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
#define PROCMAP_EXECUTABLE 0x04

static bool query(int fd, uint64_t va, struct trace_map *ret)
{
	struct procmap_query q = {.size = sizeof(q), .flags = PROCMAP_EXECUTABLE, .addr = va,
		.name_len = sizeof(ret->path), .name = (uintptr_t)ret->path};
	if (ioctl(fd, PROCMAP_QUERY, &q) < 0)
		return false;
	ret->start = q.start;
	ret->end = q.end;
	ret->file_off = q.offset;
	ret->ino = q.inode;
	ret->dev = q.dev_major << 20 | q.dev_minor;
	if (!q.name_len)
		ret->path[0] = '\0';
	return true;
}

static bool read_lines(FILE *f, uint64_t va, struct trace_map *ret)
{
	char line[4096 + 128];
	while (fgets(line, sizeof(line), f)) {
		unsigned long long from, to, off, ino;
		unsigned maj, min;
		char perms[8];
		int at = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &from, &to, perms, &off, &maj, &min, &ino, &at) < 7)
			continue;
		if (va < from || va >= to || perms[2] != 'x')
			continue;
		*ret = (struct trace_map){.start = from, .end = to, .file_off = off, .ino = ino, .dev = maj << 20 | min};
		snprintf(ret->path, sizeof(ret->path), "%.*s", at ? (int)strcspn(line + at, "\n") : 0, line + at);
		return true;
	}
	return false;
}

bool trace_maps_query(uint32_t pid, uint64_t va, struct trace_map *ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (query(fd, va, ret)) {
		close(fd);
		return true;
	}
	FILE *f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return false;
	}
	bool found = read_lines(f, va, ret);
	fclose(f);
	return found;
}
