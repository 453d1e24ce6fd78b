/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int64_t file_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct err *file_check_kind(const char *path, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return err_new(ERR_BAD_INPUT, "%s: is a folder, not a program", path);
	if (!S_ISREG(st->st_mode))
		return err_new(ERR_BAD_INPUT, "%s: is not a regular file", path);
	return NULL;
}

static struct err *file_map(struct file *f)
{
	if (!f->len)
		return NULL;
	/* Shared, though it is never written: into private mappings the kernel puts the breakpoints of probes (uprobes), whoever's they are. */
	void *p = mmap(NULL, f->len, PROT_READ, MAP_SHARED, f->fd, 0);
	if (p == MAP_FAILED && errno == ENODEV)
		p = mmap(NULL, f->len, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (p == MAP_FAILED && errno == ENODEV)
		return err_new(ERR_BAD_INPUT, "%s: is of a kind that cannot be mapped into memory", f->path);
	if (p == MAP_FAILED)
		return err_os(errno, "%s: cannot map", f->path);
	f->data = p;
	f->view = guard_add(p, f->len);
	return f->view ? NULL : err_new(ERR_BUDGET, "%s: too many files are open", f->path);
}

static void file_note(struct file *f, const struct stat *st)
{
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->mtime_ns = file_ns(st->st_mtim);
	f->ctime_ns = file_ns(st->st_ctim);
	f->mode = st->st_mode;
	f->uid = st->st_uid;
}

struct err *file_open(const char *path, struct file **ret)
{
	struct file *f = calloc(1, sizeof(*f));
	if (!f)
		return &err_nomem;
	f->fd = -1;
	f->path = strdup(path);
	struct err *e = f->path ? NULL : &err_nomem;
	struct stat st;
	if (!e) {
		/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
		f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (f->fd < 0)
			e = err_os(errno, "%s", path);
	}
	if (!e && fstat(f->fd, &st))
		e = err_os(errno, "%s", path);
	if (!e)
		e = file_check_kind(path, &st);
	if (!e) {
		f->len = (size_t)st.st_size;
		file_note(f, &st);
		e = file_map(f);
	}
	if (e) {
		file_close(f);
		return e;
	}
	*ret = f;
	return NULL;
}

struct err *file_open_holes(int fd, const char *path, uint64_t len, uint32_t block_len, struct file **ret)
{
	struct file *f = calloc(1, sizeof(*f));
	if (!f)
		return &err_nomem;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	f->path = strdup(path);
	f->len = (size_t)len;
	struct stat st;
	struct err *e = f->fd < 0 || fstat(f->fd, &st) ? err_os(errno, "%s", path) : f->path ? NULL : &err_nomem;
	if (!e)
		e = holes_new(f->fd, len, block_len, &f->holes);
	if (!e) {
		file_note(f, &st);
		f->data = holes_data(f->holes);
		f->view = guard_add(f->data, f->len);
	}
	if (!e && !f->view)
		e = err_new(ERR_BUDGET, "%s: too many files are open", path);
	if (e) {
		file_close(f);
		return e;
	}
	*ret = f;
	return NULL;
}

struct err *file_settle(struct file *f)
{
	struct stat st;
	if (fstat(f->fd, &st))
		return err_os(errno, "%s", f->path);
	file_note(f, &st);
	atomic_store(&f->is_settled, true);
	return NULL;
}

void file_close(struct file *f)
{
	if (!f)
		return;
	guard_del(f->view);
	if (f->holes)
		holes_free(f->holes);
	else if (f->data)
		munmap((void *)f->data, f->len);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f);
}

bool file_has_changed(const struct file *f)
{
	struct stat st;
	/* It is being written; the times are of no meaning before that is over. */
	if (f->holes && !atomic_load(&f->is_settled))
		return guard_was_hit(f->view) || holes_was_hit(f->holes);
	return guard_was_hit(f->view) || (f->holes && holes_was_hit(f->holes)) || fstat(f->fd, &st) || (size_t)st.st_size != f->len ||
	       file_ns(st.st_mtim) != f->mtime_ns || file_ns(st.st_ctim) != f->ctime_ns;
}

static struct err *file_write_all(int fd, const char *path, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(errno, "%s: cannot write", path);
		p += n;
		len -= (size_t)n;
	}
	return NULL;
}

static void file_sync_parent(const char *path)
{
	_cleanup_free_ char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	if (!slash)
		return;
	*slash = 0;
	_cleanup_close_ int fd = open(*dir ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
}

struct err *file_write_atomic(const char *path, const void *bytes, size_t len)
{
	_cleanup_free_ char *tmp = NULL;
	if (asprintf(&tmp, "%s.tmp.XXXXXX", path) < 0)
		return &err_nomem;
	_cleanup_close_ int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_os(errno, "%s: cannot make a temporary file", tmp);
	struct err *e = file_write_all(fd, tmp, bytes, len);
	if (!e && fsync(fd))
		e = err_os(errno, "%s: cannot sync", tmp);
	if (!e && rename(tmp, path))
		e = err_os(errno, "%s: cannot rename into place", path);
	if (e)
		unlink(tmp);
	else
		file_sync_parent(path);
	return e;
}

struct err *file_make_dirs(const char *path)
{
	_cleanup_free_ char *part = strdup(path);
	if (!part)
		return &err_nomem;
	for (char *p = part + 1;; p++) {
		if (*p != '/' && *p)
			continue;
		char was = *p;
		*p = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return err_os(errno, "%s: cannot make the folder", part);
		*p = was;
		if (!was)
			break;
	}
	struct stat st;
	if (stat(path, &st))
		return err_os(errno, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return err_new(ERR_IO, "%s: is not a folder", path);
	if (st.st_uid != geteuid())
		return err_new(ERR_DENIED, "%s: belongs to uid %u, not to you", path, st.st_uid);
	return NULL;
}
