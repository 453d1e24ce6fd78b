/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by process and descriptor. A fork copies nothing: a process that is not known has what its parent has, until its own events
 * say otherwise. A descriptor that was closed is remembered as such, so that nothing is asked of a parent for it.
 */
#include "live/trace/trace_fds.h"

#include "live/trace/sysc.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16384   /* what is known at once; a power of two */
#define PROBES 8
#define DEPTH_MAX 64  /* parents asked */

struct known {
	uint32_t pid;     /* 0: free */
	int32_t fd;       /* AT_FDCWD: the current folder; PARENT: path is the parent's pid */
	char *path;       /* null: not open */
	uint64_t used;    /* when it was last looked at, in events */
};

#define PARENT INT_MIN

struct trace_fds {
	bool uses_proc;
	uint64_t clock;
	struct known slots[SLOTS];
};

struct trace_fds *trace_fds_new(bool uses_proc)
{
	struct trace_fds *f = calloc(1, sizeof(*f));
	if (f)
		f->uses_proc = uses_proc;
	return f;
}

void trace_fds_free(struct trace_fds *f)
{
	for (size_t i = 0; f && i < SLOTS; i++)
		free(f->slots[i].path);
	free(f);
}

static size_t slot_at(uint32_t pid, int32_t fd, unsigned probe)
{
	uint64_t h = ((uint64_t)pid << 32 | (uint32_t)fd) * 0x9e3779b97f4a7c15u;
	return (size_t)((h >> 40) + probe) & (SLOTS - 1);
}

static struct known *find(struct trace_fds *f, uint32_t pid, int32_t fd)
{
	for (unsigned i = 0; i < PROBES; i++) {
		struct known *k = &f->slots[slot_at(pid, fd, i)];
		if (k->pid == pid && k->fd == fd) {
			k->used = f->clock;
			return k;
		}
	}
	return NULL;
}

/* Takes `path`. */
static void put(struct trace_fds *f, uint32_t pid, int32_t fd, char *path)
{
	struct known *k = find(f, pid, fd);
	for (unsigned i = 0; !k && i < PROBES; i++)
		if (!f->slots[slot_at(pid, fd, i)].pid)
			k = &f->slots[slot_at(pid, fd, i)];
	if (!k) { /* the place of what was not looked at for longest */
		k = &f->slots[slot_at(pid, fd, 0)];
		for (unsigned i = 1; i < PROBES; i++)
			if (f->slots[slot_at(pid, fd, i)].used < k->used)
				k = &f->slots[slot_at(pid, fd, i)];
	}
	free(k->path);
	*k = (struct known){.pid = pid, .fd = fd, .path = path, .used = f->clock};
}

static bool ask_proc(uint32_t pid, int32_t fd, struct buf *out)
{
	char name[64], path[4096];
	if (fd == AT_FDCWD)
		snprintf(name, sizeof(name), "/proc/%u/cwd", pid);
	else
		snprintf(name, sizeof(name), "/proc/%u/fd/%d", pid, fd);
	ssize_t n = readlink(name, path, sizeof(path));
	if (n > 0)
		buf_add(out, path, (size_t)n);
	return n > 0;
}

bool trace_fds_path(struct trace_fds *f, uint32_t pid, int32_t fd, struct buf *out)
{
	uint32_t at = pid;
	for (unsigned i = 0; i < DEPTH_MAX; i++) {
		const struct known *k = find(f, at, fd);
		if (k && k->path)
			buf_add_str(out, k->path);
		if (k)
			return k->path;
		const struct known *up = find(f, at, PARENT);
		if (!up || !up->path)
			break;
		at = (uint32_t)strtoul(up->path, NULL, 10);
	}
	return f->uses_proc && ask_proc(pid, fd, out);
}

/* --- what events say -------------------------------------------------------------------------------------------------- */

/* Appends an absolute path without "//", "." and ".."; links are not followed. */
static void put_clean(struct buf *out, const char *path, size_t len)
{
	size_t from = out->len;
	for (size_t at = 0; at < len && !out->failed;) {
		size_t n = 0;
		while (at + n < len && path[at + n] != '/')
			n++;
		if (n == 2 && !memcmp(path + at, "..", 2)) {
			while (out->len > from && out->data[out->len - 1] != '/')
				out->len--;
			out->len -= out->len > from;
		} else if (n && !(n == 1 && path[at] == '.')) {
			buf_add_ch(out, '/');
			buf_add(out, path + at, n);
		}
		at += n + 1;
	}
	if (out->len == from)
		buf_add_ch(out, '/');
}

static const struct trace_slot *path_slot(const struct trace_event *ev, unsigned arg)
{
	for (uint32_t i = 0; i < ev->nslots; i++)
		if (ev->slots[i].arg == arg && ev->slots[i].phase == TRACE_IN && ev->slots[i].part == TRACE_PART_SELF)
			return ev->slots[i].len && ev->slots[i].status != TRACE_TRUNCATED && ev->slots[i].status != TRACE_FAULTED
				? &ev->slots[i] : NULL;
	return NULL;
}

/* The path an argument names, absolute; null where the folder it begins in is not known. Returns owned. */
static char *absolute(struct trace_fds *f, const struct trace_event *ev, unsigned arg, int32_t dirfd)
{
	const struct trace_slot *slot = path_slot(ev, arg);
	_cleanup_buf_ struct buf whole = {0}, clean = {0};
	if (!slot)
		return NULL;
	size_t len = strnlen((const char *)slot->data, slot->len);
	if ((!len || slot->data[0] != '/') && !trace_fds_path(f, ev->pid, dirfd, &whole))
		return NULL;
	buf_add_ch(&whole, '/');
	buf_add(&whole, slot->data, len);
	if (whole.failed || whole.data[0] != '/')
		return NULL;
	put_clean(&clean, whole.data, whole.len);
	buf_add_ch(&clean, 0);
	return clean.failed ? NULL : strdup(clean.data);
}

/* Nothing is known of it any more, or: it is what /proc says, if anything. */
static void forget(struct trace_fds *f, uint32_t pid, int32_t fd)
{
	_cleanup_buf_ struct buf path = {0};
	if (f->uses_proc && ask_proc(pid, fd, &path)) {
		buf_add_ch(&path, 0);
		put(f, pid, fd, path.failed ? NULL : strdup(path.data));
		return;
	}
	put(f, pid, fd, NULL);
}

static void on_copy(struct trace_fds *f, const struct trace_event *ev, int32_t from)
{
	_cleanup_buf_ struct buf path = {0};
	if (trace_fds_path(f, ev->pid, from, &path)) {
		buf_add_ch(&path, 0);
		put(f, ev->pid, (int32_t)ev->ret, path.failed ? NULL : strdup(path.data));
	} else {
		put(f, ev->pid, (int32_t)ev->ret, NULL);
	}
}

static void on_call(struct trace_fds *f, const struct trace_event *ev, const struct sysc *s)
{
	bool is_at = !strcmp(s->name, "openat") || !strcmp(s->name, "openat2");
	if (!strcmp(s->name, "open") || !strcmp(s->name, "creat") || is_at) {
		char *path = absolute(f, ev, is_at, is_at ? (int32_t)ev->args[0] : AT_FDCWD);
		if (path)
			put(f, ev->pid, (int32_t)ev->ret, path);
		else
			forget(f, ev->pid, (int32_t)ev->ret);
	} else if (!strncmp(s->name, "dup", 3) || (!strcmp(s->name, "fcntl") && (ev->args[1] == F_DUPFD || ev->args[1] == F_DUPFD_CLOEXEC))) {
		on_copy(f, ev, (int32_t)ev->args[0]);
	} else if (!strcmp(s->name, "close")) {
		put(f, ev->pid, (int32_t)ev->args[0], NULL);
	} else if (!strcmp(s->name, "close_range") && !(ev->args[2] & 4)) { /* CLOSE_RANGE_CLOEXEC */
		for (size_t i = 0; i < SLOTS; i++)
			if (f->slots[i].pid == ev->pid && f->slots[i].fd >= 0 && (uint32_t)f->slots[i].fd >= (uint32_t)ev->args[0] &&
			    (uint32_t)f->slots[i].fd <= (uint32_t)ev->args[1])
				put(f, ev->pid, f->slots[i].fd, NULL);
	} else if (!strcmp(s->name, "chdir")) {
		char *path = absolute(f, ev, 0, AT_FDCWD);
		if (path)
			put(f, ev->pid, AT_FDCWD, path);
		else
			forget(f, ev->pid, AT_FDCWD);
	} else if (!strcmp(s->name, "fchdir")) {
		_cleanup_buf_ struct buf path = {0};
		if (trace_fds_path(f, ev->pid, (int32_t)ev->args[0], &path)) {
			buf_add_ch(&path, 0);
			put(f, ev->pid, AT_FDCWD, path.failed ? NULL : strdup(path.data));
		} else {
			forget(f, ev->pid, AT_FDCWD);
		}
	} else if (s->flags & SYSC_RET_FD || !strcmp(s->name, "fcntl")) {
		if (s->flags & SYSC_RET_FD && ev->ret >= 0)
			forget(f, ev->pid, (int32_t)ev->ret);
	}
}

/* Whatever is known of the process. */
static void drop_pid(struct trace_fds *f, uint32_t pid)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (f->slots[i].pid == pid) {
			free(f->slots[i].path);
			f->slots[i] = (struct known){0};
		}
}

void trace_fds_event(struct trace_fds *f, const struct trace_event *ev)
{
	f->clock++;
	if (ev->kind == TRACE_FORK && ev->args[1] && ev->args[1] != ev->pid) {
		char parent[16];
		snprintf(parent, sizeof(parent), "%u", ev->pid);
		put(f, (uint32_t)ev->args[1], PARENT, strdup(parent));
	} else if (ev->kind == TRACE_EXEC) {
		/* Which were to be closed is not known. */
		for (size_t i = 0; f->uses_proc && i < SLOTS; i++)
			if (f->slots[i].pid == ev->pid && f->slots[i].fd >= 0)
				forget(f, ev->pid, f->slots[i].fd);
	} else if (ev->kind == TRACE_EXIT && ev->args[0] && ev->pid == ev->tid) {
		/* Its children may still have its descriptors: they ask for what it had until the place is needed. */
		if (f->uses_proc)
			drop_pid(f, ev->pid);
	} else if (ev->kind == TRACE_SYSCALL && !ev->unfinished && (ev->ret >= 0 || ev->ret < -4095)) {
		const struct sysc *s = sysc_find(ev->abi, ev->nr);
		struct sysc resolved;
		if (!s || !(s->classes & (SYSC_C_DESC | SYSC_C_FILE | SYSC_C_NETWORK)))
			return;
		sysc_resolve(s, ev->args, &resolved);
		on_call(f, ev, &resolved);
	}
}
