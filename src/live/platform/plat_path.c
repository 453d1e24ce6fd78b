/* SPDX-License-Identifier: Apache-2.0 */
#include "live/platform/plat_path.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX 40  /* as the kernel follows, path_resolution(7) */
#define DEPTH_MAX 256 /* folders below each other that the walk holds open */
#define TRIES_MAX 64  /* of openat2(2), which asks to try again when a folder was renamed under ".." */

int plat_root_init(struct plat_root *r, const char *path)
{
	*r = (struct plat_root){.fd = -1, .home_fd = -1};
	if (path)
		r->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else
		r->home_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return path && r->fd < 0 ? -errno : 0;
}

void plat_root_fini(struct plat_root *r)
{
	if (r->fd >= 0)
		close(r->fd);
	if (r->home_fd >= 0)
		close(r->home_fd);
	r->fd = r->home_fd = -1;
}

/* --- the walk ------------------------------------------------------------------------------------------------------- */

struct walk {
	VEC(int) dirs;           /* from below the root down to where the walk is */
	int root_fd;
	char rest[2 * PATH_MAX]; /* what is still to be walked */
	unsigned link_cnt;
};

static int walk_top(const struct walk *w)
{
	return w->dirs.cnt ? w->dirs.data[w->dirs.cnt - 1] : w->root_fd;
}

static void walk_up(struct walk *w, size_t to_cnt)
{
	while (w->dirs.cnt > to_cnt)
		close(VEC_POP(&w->dirs));
}

/* Takes the next component out of `rest`: 0 when there is none. `*ret_is_last`: only slashes follow; `*ret_is_dir`: some do. */
static int walk_component(struct walk *w, char name[NAME_MAX + 1], bool *ret_is_last, bool *ret_is_dir)
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(p, "/");
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, p, len);
	name[len] = 0;
	*ret_is_dir = p[len] == '/';
	p += len;
	p += strspn(p, "/");
	*ret_is_last = !*p;
	memmove(w->rest, p, strlen(p) + 1);
	return (int)len;
}

/* A link's text comes before what is still to be walked, with the slash that stood behind the link. */
static int walk_link(struct walk *w, int fd, bool is_dir)
{
	char text[PATH_MAX], all[2 * PATH_MAX];
	ssize_t len = readlinkat(fd, "", text, sizeof(text) - 1);
	if (len < 0)
		return -errno;
	text[len] = 0;
	if (++w->link_cnt > LINKS_MAX)
		return -ELOOP;
	if (!len)
		return -ENOENT;
	int n = snprintf(all, sizeof(all), "%s%s%s", text, is_dir ? "/" : "", w->rest);
	if (n < 0 || (size_t)n >= sizeof(all))
		return -ENAMETOOLONG;
	if (text[0] == '/')
		walk_up(w, 0);
	memcpy(w->rest, all, (size_t)n + 1);
	return 0;
}

/* The object `fd` (O_PATH, owned) that was found as the last component, opened as `flags` say. */
static int walk_reopen(int fd, int flags)
{
	char at[32];
	if (flags & O_PATH)
		return fd;
	snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	int opened = open(at, flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
	int status = opened < 0 ? -errno : opened;
	close(fd);
	return status;
}

/* One component of the way. 0: go on; else the end, which is a descriptor in `*ret_fd` or -errno. */
static int walk_step(struct walk *w, int flags, mode_t mode, int *ret_fd)
{
	char name[NAME_MAX + 1];
	bool is_last, is_dir;
	struct stat st;
	int len = walk_component(w, name, &is_last, &is_dir);
	*ret_fd = -1;
	if (len < 0)
		return len;
	if (!len || !strcmp(name, ".") || !strcmp(name, "..")) {
		if (len == 2 && w->dirs.cnt)
			walk_up(w, w->dirs.cnt - 1);
		if (len && !is_last)
			return 0;
		int fd = openat(walk_top(w), ".", flags & (O_PATH | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | O_ACCMODE));
		*ret_fd = fd;
		return fd < 0 ? -errno : 1;
	}
	int fd = openat(walk_top(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && is_last && !is_dir && flags & O_CREAT) {
		*ret_fd = openat(walk_top(w), name, flags | O_NOFOLLOW, mode);
		return *ret_fd < 0 ? -errno : 1;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		int status = -errno;
		if (fd >= 0)
			close(fd);
		return status;
	}
	if (is_last && flags & O_CREAT && flags & O_EXCL) {
		close(fd);
		return -EEXIST;
	}
	if (S_ISLNK(st.st_mode) && !(is_last && !is_dir && flags & O_NOFOLLOW)) {
		int status = walk_link(w, fd, is_dir);
		close(fd);
		return status;
	}
	bool is_wrong = (is_dir || !is_last || flags & O_DIRECTORY) && !S_ISDIR(st.st_mode);
	if (is_wrong || (!is_last && (w->dirs.cnt >= DEPTH_MAX || !VEC_PUSH(&w->dirs, fd)))) {
		close(fd);
		return is_wrong ? -ENOTDIR : -ENAMETOOLONG;
	}
	if (!is_last)
		return 0;
	if (S_ISLNK(st.st_mode) && !(flags & O_PATH)) {
		close(fd);
		return -ELOOP;
	}
	*ret_fd = walk_reopen(fd, flags);
	return *ret_fd < 0 ? *ret_fd : 1;
}

static int walk_open(const struct plat_root *r, const char *path, int flags, mode_t mode)
{
	struct walk w = {.root_fd = r->fd};
	int fd = -1, status = 0;
	memcpy(w.rest, path, strlen(path) + 1);
	while (!status)
		status = walk_step(&w, flags, mode, &fd);
	walk_up(&w, 0);
	VEC_FREE(&w.dirs);
	return status < 0 ? status : fd;
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

/* The name from the root on: relative ones begin at the working folder. */
static int from_root(const struct plat_root *r, const char *path, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s%s%s", *path == '/' ? "" : r->cwd, *path == '/' ? "" : "/", path);
	return !*path ? -ENOENT : n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int open_in_root(struct plat_root *r, const char *path, int flags, mode_t mode)
{
	char name[PATH_MAX];
	int fd = from_root(r, path, name);
	if (fd < 0)
		return fd;
	struct open_how how = {.flags = (uint64_t)flags, .mode = flags & O_CREAT ? mode : 0, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	for (unsigned i = 0; !r->has_no_openat2 && i < TRIES_MAX; i++) {
		fd = (int)syscall(SYS_openat2, r->fd, name, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		/* A filter of a container may refuse what it does not know by EPERM; a file's own refusal the walk meets again. */
		if (errno == ENOSYS)
			r->has_no_openat2 = true;
		else if (errno == EPERM)
			break;
		else if (errno != EAGAIN)
			return -errno;
	}
	return walk_open(r, name, flags, mode);
}

int plat_open(struct plat_root *r, const char *path, int flags, mode_t mode)
{
	flags |= O_CLOEXEC;
	if (!(flags & O_PATH))
		flags |= O_NONBLOCK | O_NOCTTY;
	if (r->fd >= 0)
		return open_in_root(r, path, flags, mode & 07777);
	int fd = open(path, flags, mode);
	return fd < 0 ? -errno : fd;
}

/* The folder of `path` and its last component, for calls that change the folder. Of no root: the whole name, from here. */
static int open_parent(struct plat_root *r, const char *path, char name[PATH_MAX])
{
	char dir[PATH_MAX];
	if (r->fd < 0) {
		if (snprintf(name, PATH_MAX, "%s", path) >= PATH_MAX)
			return -ENAMETOOLONG;
		return open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	int status = from_root(r, path, dir);
	if (status < 0)
		return status;
	size_t len = strlen(dir);
	while (len > 1 && dir[len - 1] == '/')
		dir[--len] = 0;
	char *slash = strrchr(dir, '/');
	snprintf(name, PATH_MAX, "%s", slash + 1);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	slash[1] = 0;
	return plat_open(r, dir, O_PATH | O_DIRECTORY, 0);
}

int plat_stat(struct plat_root *r, const char *path, bool is_link, struct stat *ret)
{
	_cleanup_close_ int fd = plat_open(r, path, O_PATH | (is_link ? O_NOFOLLOW : 0), 0);
	return fd < 0 ? fd : fstat(fd, ret) < 0 ? -errno : 0;
}

int plat_mkdir(struct plat_root *r, const char *path, mode_t mode)
{
	char name[PATH_MAX];
	_cleanup_close_ int dir = open_parent(r, path, name);
	return dir < 0 ? dir : mkdirat(dir, name, mode & 07777) < 0 ? -errno : 0;
}

int plat_chmod(struct plat_root *r, const char *path, mode_t mode)
{
	char at[32];
	_cleanup_close_ int fd = plat_open(r, path, O_PATH, 0);
	if (fd < 0)
		return fd;
	snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	return chmod(at, mode & 07777) < 0 ? -errno : 0;
}

int plat_unlink(struct plat_root *r, const char *path)
{
	char name[PATH_MAX];
	_cleanup_close_ int dir = open_parent(r, path, name);
	return dir < 0 ? dir : unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

int plat_symlink(struct plat_root *r, const char *text, const char *path)
{
	char name[PATH_MAX];
	_cleanup_close_ int dir = open_parent(r, path, name);
	return dir < 0 ? dir : symlinkat(text, dir, name) < 0 ? -errno : 0;
}

int plat_readlink(struct plat_root *r, const char *path, char ret[PATH_MAX])
{
	_cleanup_close_ int fd = plat_open(r, path, O_PATH | O_NOFOLLOW, 0);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISLNK(st.st_mode))
		return -EINVAL;
	ssize_t len = readlinkat(fd, "", ret, PATH_MAX - 1);
	if (len < 0)
		return -errno;
	ret[len] = 0;
	return (int)len;
}

/* What the kernel calls an open object, as the client sees it. */
static int name_of(const struct plat_root *r, int fd, char ret[PATH_MAX])
{
	char at[32], root[PATH_MAX];
	snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(at, ret, PATH_MAX - 1);
	if (len < 0)
		return -errno;
	ret[len] = 0;
	if (r->fd < 0)
		return 0;
	snprintf(at, sizeof(at), "/proc/self/fd/%d", r->fd);
	ssize_t root_len = readlink(at, root, sizeof(root) - 1);
	if (root_len < 0)
		return -errno;
	root[root_len] = 0;
	if (root_len == 1)
		return 0;
	if (strncmp(ret, root, (size_t)root_len) || (ret[root_len] && ret[root_len] != '/'))
		return -ENOENT; /* moved away meanwhile */
	memmove(ret, ret + root_len, (size_t)(len - root_len) + 1);
	if (!*ret)
		memcpy(ret, "/", 2);
	return 0;
}

int plat_normal(struct plat_root *r, const char *path, char ret[PATH_MAX])
{
	char dir[PATH_MAX];
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	const char *slash = memrchr(path, '/', len);
	const char *name = slash ? slash + 1 : path;
	size_t name_len = len - (size_t)(name - path);
	bool is_plain = name_len && !(name_len == 1 && name[0] == '.') && !(name_len == 2 && name[0] == '.' && name[1] == '.');
	int n = snprintf(dir, sizeof(dir), "%.*s", (int)(is_plain ? (size_t)(name - path) : len), path);
	if (n < 0 || (size_t)n >= sizeof(dir))
		return -ENAMETOOLONG;
	_cleanup_close_ int fd = plat_open(r, n ? dir : ".", O_PATH | O_DIRECTORY, 0);
	int status = fd < 0 ? fd : name_of(r, fd, dir);
	if (status < 0)
		return status;
	n = is_plain ? snprintf(ret, PATH_MAX, "%s/%.*s", strcmp(dir, "/") ? dir : "", (int)name_len, name) : snprintf(ret, PATH_MAX, "%s", dir);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int plat_chdir(struct plat_root *r, const char *path)
{
	char name[PATH_MAX];
	if (!*path && r->fd < 0)
		return fchdir(r->home_fd) < 0 ? -errno : 0;
	_cleanup_close_ int fd = plat_open(r, *path ? path : "/", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (r->fd < 0)
		return fchdir(fd) < 0 ? -errno : 0;
	int status = name_of(r, fd, name);
	if (!status)
		snprintf(r->cwd, sizeof(r->cwd), "%s", strcmp(name, "/") ? name : "");
	return status;
}

int plat_getcwd(const struct plat_root *r, char ret[PATH_MAX])
{
	if (r->fd < 0)
		return getcwd(ret, PATH_MAX) ? 0 : -errno;
	snprintf(ret, PATH_MAX, "%s", *r->cwd ? r->cwd : "/");
	return 0;
}
