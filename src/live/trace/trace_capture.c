/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_capture.h"

#include "base/json.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	OPEN_MAX = 128,      /* written files held open */
	KNOWN_MAX = 1024,    /* descriptors whose file is known */
	LINES_MAX = 100000,  /* of the index */
	PATH_LEN = 4096,
};

/* A file that is or may be written. */
struct written {
	int fd;              /* ours, for reading; -1: it cannot be read */
	dev_t dev;
	ino_t ino;
	bool is_dirty;
	bool is_mapped;      /* it may be written without a call: copied when the trace ends */
	uint32_t pid;        /* who wrote last */
	uint64_t time;
	char comm[16];
	char *exe, *path;    /* may be null */
};

/* What a descriptor of a process is open on. */
struct known {
	uint32_t pid;
	int32_t fd;
	int32_t at;          /* in `open`, -1: nothing that is captured */
};

/* The copy of an executed file, so that the next execution needs none. */
struct copied { dev_t dev; ino_t ino; struct timespec mtime, ctime; off_t size; char name[2 * SHA256_LEN + 1]; uint64_t len; bool is_cut; };

struct trace_capture {
	struct trace_capture_opts o;
	int dir, index;
	struct written open[OPEN_MAX];
	size_t open_cnt;
	struct known known[KNOWN_MAX];
	size_t known_cnt;
	struct copied execs[64]; /* the newest ones */
	size_t exec_cnt;
	struct trace_capture_counts counts;
	int failed;          /* errno of what could not be written; 0: nothing */
	struct buf line;
	uint8_t bytes[65536];
};

struct err *trace_capture_new(const struct trace_capture_opts *o, struct trace_capture **ret)
{
	struct err *e = sha256_try();
	if (e)
		return e;
	struct trace_capture *c = calloc(1, sizeof(*c));
	if (!c)
		return &err_nomem;
	c->o = *o;
	c->index = -1;
	if (mkdir(o->dir, 0700) && errno != EEXIST)
		e = err_os(errno, "%s", o->dir);
	c->dir = e ? -1 : open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!e && c->dir < 0)
		e = err_os(errno, "%s", o->dir);
	if (!e)
		c->index = openat(c->dir, "index.jsonl", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (!e && c->index < 0)
		e = errno == EEXIST ? err_fix(err_new(ERR_INVALID, "%s: has a capture already", o->dir), "give another folder")
				    : err_os(errno, "%s/index.jsonl", o->dir);
	if (e) {
		trace_capture_free(c);
		return e;
	}
	*ret = c;
	return NULL;
}

static void close_written(struct written *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->exe);
	free(w->path);
}

void trace_capture_free(struct trace_capture *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->open_cnt; i++)
		close_written(&c->open[i]);
	if (c->index >= 0)
		close(c->index);
	if (c->dir >= 0)
		close(c->dir);
	buf_fini(&c->line);
	free(c);
}

/* --- which calls -------------------------------------------------------------------------------------------------------- */
enum use { USE_NONE, USE_WRITES /* through its argument */, USE_OPENS, USE_CLOSES, USE_REPLACES /* a descriptor */, USE_MAPS };
static const struct { const char *name; uint8_t use, arg; } uses[] = {
	{"write", USE_WRITES, 0}, {"pwrite64", USE_WRITES, 0}, {"writev", USE_WRITES, 0}, {"pwritev", USE_WRITES, 0}, {"pwritev2", USE_WRITES, 0},
	{"ftruncate", USE_WRITES, 0}, {"ftruncate64", USE_WRITES, 0}, {"fallocate", USE_WRITES, 0}, {"sendfile", USE_WRITES, 0},
	{"sendfile64", USE_WRITES, 0}, {"splice", USE_WRITES, 2}, {"copy_file_range", USE_WRITES, 2}, {"mmap", USE_MAPS, 4}, {"mmap2", USE_MAPS, 4},
	{"open", USE_OPENS, 1}, {"openat", USE_OPENS, 2}, {"creat", USE_OPENS, 0}, {"openat2", USE_OPENS, 0}, {"memfd_create", USE_OPENS, 0},
	{"close", USE_CLOSES, 0}, {"close_range", USE_CLOSES, 0}, {"dup2", USE_REPLACES, 1}, {"dup3", USE_REPLACES, 1},
};

static const char *use_of(const struct sysc *s, enum use *ret, unsigned *ret_arg)
{
	for (size_t i = 0; s && i < ARRAY_LEN(uses); i++) {
		if (!strcmp(s->name, uses[i].name)) {
			*ret = (enum use)uses[i].use;
			*ret_arg = uses[i].arg;
			return s->name;
		}
	}
	*ret = USE_NONE;
	return NULL;
}

bool trace_capture_needs(const struct trace_capture *c, const struct sysc *s)
{
	enum use use;
	unsigned arg;
	return (c->o.write && use_of(s, &use, &arg)) || (c->o.exec && (!strcmp(s->name, "execve") || !strcmp(s->name, "execveat")));
}

/* --- copies -------------------------------------------------------------------------------------------------------------- */

/* Whether reading it is without effect and without end: not the kernel's own files, nor those another process answers for. */
static bool is_plain(int fd)
{
	static const uint32_t kernels[] = {0x9fa0 /* proc */, 0x62656572 /* sysfs */, 0x64626720 /* debugfs */, 0x74726163 /* tracefs */,
					   0x73636673 /* securityfs */, 0xcafe4a11 /* bpf */, 0x27e0eb /* cgroup */, 0x63677270 /* cgroup2 */,
					   0x65735546 /* FUSE */, 0xf97cff8c /* selinux */, 0x6165676c /* pstore */, 0xde5e81e4 /* efivars */,
					   0x62656570 /* configfs */, 0x9fa2 /* usbdevice */};
	struct statfs s;
	if (fstatfs(fd, &s))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
		if ((uint32_t)s.f_type == kernels[i])
			return false;
	}
	return true;
}

/* A regular file that a process has open, opened for us; -1. Nothing else is ever opened: pipes and devices would notice. */
static int open_theirs(const char *at, struct stat *st, char *path, size_t cap)
{
	char own[64];
	_cleanup_close_ int held = open(at, O_PATH | O_CLOEXEC);
	*path = 0;
	if (held < 0 || fstat(held, st) || !S_ISREG(st->st_mode) || !is_plain(held))
		return -1;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", held);
	ssize_t n = readlink(own, path, cap - 1);
	path[n < 0 ? 0 : n] = 0;
	return open(own, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static bool write_all(struct trace_capture *c, int fd, const void *bytes, size_t len)
{
	for (const uint8_t *p = bytes; len;) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			c->failed = n ? errno : EIO;
			return false;
		}
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* Copies what is in `from` to the file .part; bytes copied, and their hash. */
static bool copy_part(struct trace_capture *c, int from, uint64_t max, char name[2 * SHA256_LEN + 1], uint64_t *ret_len)
{
	struct sha256 *hash = NULL;
	uint8_t sum[SHA256_LEN];
	struct err *e = sha256_new(&hash);
	_cleanup_close_ int to = e ? -1 : openat(c->dir, ".part", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool ok = to >= 0;
	if (!e && !ok)
		c->failed = errno;
	uint64_t at = 0;
	for (ssize_t n = 1; ok && n > 0 && at < max;) {
		n = pread(from, c->bytes, (size_t)MIN(max - at, (uint64_t)sizeof(c->bytes)), (off_t)at);
		if (n <= 0)
			break;
		sha256_add(hash, c->bytes, (size_t)n);
		ok = write_all(c, to, c->bytes, (size_t)n);
		at += (uint64_t)n;
	}
	if (ok)
		e = sha256_end(hash, sum);
	ok = ok && !e;
	for (size_t i = 0; ok && i < SHA256_LEN; i++)
		snprintf(name + 2 * i, 3, "%02x", sum[i]);
	err_free(e);
	sha256_free(hash);
	*ret_len = at;
	return ok;
}

/* A copy in the folder. False: there is none. */
static bool copy(struct trace_capture *c, int from, struct copied *ret)
{
	uint64_t left = c->o.total_max - MIN(c->counts.bytes, c->o.total_max), max = MIN(c->o.file_max, left);
	struct stat st;
	if (c->failed || fstat(from, &st) || (!max && st.st_size) || !copy_part(c, from, max, ret->name, &ret->len))
		return false;
	ret->is_cut = !fstat(from, &st) && (uint64_t)st.st_size > ret->len;
	if (!faccessat(c->dir, ret->name, F_OK, AT_SYMLINK_NOFOLLOW)) {
		unlinkat(c->dir, ".part", 0);
		return true;
	}
	if (renameat(c->dir, ".part", c->dir, ret->name)) {
		c->failed = errno;
		return false;
	}
	c->counts.files++;
	c->counts.bytes += ret->len;
	return true;
}

/* --- the index --------------------------------------------------------------------------------------------------------------- */
struct entry {
	const char *kind, *why, *path, *comm, *exe;
	uint64_t time, size;
	uint32_t pid;
	const struct copied *copy; /* null: none */
};

static void put_text(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s && *s)
		json_str(j, s);
	else
		json_null(j);
}

static void put_entry(struct trace_capture *c, const struct entry *n)
{
	char time[24];
	if (c->counts.execs + c->counts.writes >= LINES_MAX) {
		c->counts.missed++;
		return;
	}
	*(*n->kind == 'e' ? &c->counts.execs : &c->counts.writes) += 1;
	c->counts.cut += n->copy && n->copy->is_cut;
	c->counts.missed += !n->copy;
	c->line.len = 0;
	struct json j = json_make(&c->line);
	json_obj(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	json_key(&j, "kind");
	json_str(&j, n->kind);
	put_text(&j, "file", n->copy ? n->copy->name : NULL);
	json_key(&j, "bytes");
	json_u64(&j, n->copy ? n->copy->len : 0);
	json_key(&j, "size");
	json_u64(&j, n->size);
	json_key(&j, "cut");
	json_bool(&j, n->copy && n->copy->is_cut);
	json_key(&j, "why");
	json_str(&j, n->why);
	put_text(&j, "path", n->path);
	json_key(&j, "pid");
	json_u64(&j, n->pid);
	put_text(&j, "comm", n->comm);
	put_text(&j, "exe", n->exe);
	json_key(&j, "time");
	snprintf(time, sizeof(time), "0x%" PRIx64, n->time);
	json_str(&j, time);
	json_end_obj(&j);
	buf_add_ch(&c->line, '\n');
	if (c->line.failed)
		c->failed = ENOMEM;
	else if (!c->failed)
		write_all(c, c->index, c->line.data, c->line.len);
	c->line.failed = false;
}

/* --- what is executed ----------------------------------------------------------------------------------------------------------- */
static const struct copied *find_copied(const struct trace_capture *c, const struct stat *st)
{
	for (size_t i = 0; i < MIN(c->exec_cnt, ARRAY_LEN(c->execs)); i++) {
		const struct copied *x = &c->execs[i];
		if (x->dev == st->st_dev && x->ino == st->st_ino && x->size == st->st_size && !memcmp(&x->mtime, &st->st_mtim, sizeof(x->mtime)) &&
		    !memcmp(&x->ctime, &st->st_ctim, sizeof(x->ctime)))
			return x;
	}
	return NULL;
}

/* Whether the process has the name it got when it executed: else it may have executed another program since, whose file was read. */
static bool is_still(const struct trace_event *ev)
{
	char at[64], comm[17];
	snprintf(at, sizeof(at), "/proc/%u/comm", ev->pid);
	_cleanup_close_ int fd = open(at, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
	if (n <= 0 || !ev->comm)
		return false;
	comm[n - (comm[n - 1] == '\n')] = 0;
	return !strcmp(comm, ev->comm);
}

static void on_exec(struct trace_capture *c, const struct trace_event *ev)
{
	char at[64], path[PATH_LEN];
	struct stat st = {0};
	snprintf(at, sizeof(at), "/proc/%u/exe", ev->pid);
	_cleanup_close_ int fd = open_theirs(at, &st, path, sizeof(path));
	const struct copied *x = fd >= 0 ? find_copied(c, &st) : NULL;
	struct copied made = {.dev = st.st_dev, .ino = st.st_ino, .mtime = st.st_mtim, .ctime = st.st_ctim, .size = st.st_size};
	if (fd >= 0 && !x && copy(c, fd, &made)) {
		c->execs[c->exec_cnt % ARRAY_LEN(c->execs)] = made;
		x = &made;
		c->exec_cnt++;
	}
	bool is_other = fd >= 0 && !is_still(ev);
	const char *why = fd < 0 ? "gone" : !x ? "limit" : is_other ? "raced" : "exec";
	put_entry(c, &(struct entry){.kind = "exec", .why = why, .path = *path ? path : ev->exe, .comm = ev->comm, .exe = ev->exe, .time = ev->time,
				     .size = (uint64_t)st.st_size, .pid = ev->pid, .copy = x});
}

/* --- what is written -------------------------------------------------------------------------------------------------------------- */
static void save(struct trace_capture *c, struct written *w, const char *why)
{
	bool is_last = *why == 'e' && strcmp(why, "exited") != 0;
	struct copied made = {0};
	struct stat st = {0};
	if (!w->is_dirty || (w->is_mapped && !is_last))
		return;
	w->is_dirty = false;
	bool ok = w->fd >= 0 && !fstat(w->fd, &st) && copy(c, w->fd, &made);
	put_entry(c, &(struct entry){.kind = "write", .why = w->fd < 0 ? "unreadable" : ok ? why : "limit", .path = w->path, .comm = w->comm,
				     .exe = w->exe, .time = w->time, .size = (uint64_t)st.st_size, .pid = w->pid, .copy = ok ? &made : NULL});
}

static void forget(struct trace_capture *c, size_t i)
{
	c->known[i] = c->known[--c->known_cnt];
}

/* The oldest file makes room. */
static void drop_oldest(struct trace_capture *c)
{
	save(c, &c->open[0], "evicted");
	close_written(&c->open[0]);
	memmove(&c->open[0], &c->open[1], --c->open_cnt * sizeof(c->open[0]));
	for (size_t i = c->known_cnt; i-- > 0;) {
		if (c->known[i].at == 0)
			forget(c, i);
		else if (c->known[i].at > 0)
			c->known[i].at--;
	}
}

static int32_t look_at(struct trace_capture *c, uint32_t pid, int32_t fd)
{
	char at[64], path[PATH_LEN];
	struct stat st;
	snprintf(at, sizeof(at), "/proc/%u/fd/%d", pid, fd);
	int own = open_theirs(at, &st, path, sizeof(path));
	/* Of a file that cannot be read it is said that it was written. */
	if (own < 0 && (!*path || errno == ENOENT))
		return -1;
	for (size_t i = 0; i < c->open_cnt; i++) {
		if (c->open[i].dev == st.st_dev && c->open[i].ino == st.st_ino) {
			if (own >= 0)
				close(own);
			return (int32_t)i;
		}
	}
	if (c->open_cnt == OPEN_MAX)
		drop_oldest(c);
	c->open[c->open_cnt] = (struct written){.fd = own, .dev = st.st_dev, .ino = st.st_ino, .path = strdup(path)};
	return (int32_t)c->open_cnt++;
}

static struct written *file_of(struct trace_capture *c, uint32_t pid, int32_t fd)
{
	for (size_t i = 0; i < c->known_cnt; i++) {
		if (c->known[i].pid == pid && c->known[i].fd == fd)
			return c->known[i].at < 0 ? NULL : &c->open[c->known[i].at];
	}
	int32_t found = look_at(c, pid, fd);
	if (c->known_cnt == KNOWN_MAX)
		c->known_cnt = 0;
	c->known[c->known_cnt++] = (struct known){pid, fd, found};
	return found < 0 ? NULL : &c->open[found];
}

static void on_write(struct trace_capture *c, const struct trace_event *ev, int32_t fd, bool is_map)
{
	struct written *w = file_of(c, ev->pid, fd);
	if (!w)
		return;
	w->is_dirty = true;
	w->is_mapped |= is_map;
	w->pid = ev->pid;
	w->time = ev->time;
	snprintf(w->comm, sizeof(w->comm), "%s", ev->comm ? ev->comm : "");
	if (ev->exe && (!w->exe || strcmp(w->exe, ev->exe) != 0)) {
		free(w->exe);
		w->exe = strdup(ev->exe);
	}
}

/* The descriptor is closed (all of them: -1), and what was written through it is whole. */
static void on_close(struct trace_capture *c, uint32_t pid, int32_t fd, const char *why)
{
	for (size_t i = c->known_cnt; i-- > 0;) {
		struct known *k = &c->known[i];
		if (k->pid != pid || (fd >= 0 && k->fd != fd))
			continue;
		if (k->at >= 0)
			save(c, &c->open[k->at], why);
		forget(c, i);
	}
}

static void on_call(struct trace_capture *c, const struct trace_event *ev)
{
	const struct sysc *s = sysc_find(ev->abi, ev->nr);
	enum use use;
	unsigned arg;
	const char *name = use_of(s, &use, &arg);
	if (!name || ev->unfinished || (ev->ret < 0 && ev->ret >= -4095))
		return;
	int32_t fd = (int32_t)(uint32_t)ev->args[arg];
	if (use == USE_WRITES) {
		on_write(c, ev, fd, false);
	} else if (use == USE_MAPS) {
		unsigned type = ev->args[3] & MAP_TYPE;
		bool is_shared = (type == MAP_SHARED || type == MAP_SHARED_VALIDATE) && !(ev->args[3] & MAP_ANONYMOUS);
		if ((ev->args[2] & PROT_WRITE) && is_shared)
			on_write(c, ev, fd, true);
	} else if (use == USE_OPENS) {
		/* Held from now on, as the process may be gone when its first write is told. */
		on_close(c, ev->pid, (int32_t)ev->ret, "closed");
		if (*name == 'm' || !strcmp(name, "creat") || !strcmp(name, "openat2") || (ev->args[arg] & O_ACCMODE) != O_RDONLY)
			(void)file_of(c, ev->pid, (int32_t)ev->ret);
	} else {
		on_close(c, ev->pid, use == USE_REPLACES || !strcmp(name, "close") ? fd : -1, "closed");
	}
}

void trace_capture_event(struct trace_capture *c, const struct trace_event *ev)
{
	if (ev->kind == TRACE_EXEC && c->o.exec)
		on_exec(c, ev);
	if (!c->o.write)
		return;
	if (ev->kind == TRACE_SYSCALL)
		on_call(c, ev);
	else if (ev->kind == TRACE_EXEC || (ev->kind == TRACE_EXIT && ev->args[0]))
		on_close(c, ev->pid, -1, ev->kind == TRACE_EXEC ? "closed" : "exited");
}

struct err *trace_capture_end(struct trace_capture *c, struct trace_capture_counts *ret)
{
	for (size_t i = 0; i < c->open_cnt; i++)
		save(c, &c->open[i], "end");
	unlinkat(c->dir, ".part", 0);
	*ret = c->counts;
	return c->failed ? err_os(c->failed, "%s: the capture could not be written", c->o.dir) : NULL;
}
