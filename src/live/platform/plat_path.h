/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_PATH_H
#define LIVE_PLATFORM_PLAT_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Names of files as a client says them. Where there is a root folder, it is what "/" means: nothing outside of it is reached by "..", by
 * links, or by renaming folders meanwhile (openat2(2), RESOLVE_IN_ROOT; where the kernel lacks it, a walk that opens one component at a
 * time and follows links itself). Functions return -errno, and no state is kept between them. One thread.
 */
struct plat_root {
	int fd;             /* O_PATH of the folder; -1: names mean what they mean to this process */
	bool has_no_openat2;/* the walk is used; set when the kernel said ENOSYS, and by tests */
	int home_fd;        /* where relative names began, of no root */
	char cwd[PATH_MAX]; /* where they begin, of a root only; "" is the root itself */
};

/* Opens the folder `path`; null for none. */
int plat_root_init(struct plat_root *r, const char *path);
void plat_root_fini(struct plat_root *r);

/* open(2). What is opened never blocks and never becomes the controlling terminal. */
int plat_open(struct plat_root *r, const char *path, int flags, mode_t mode);

/* stat(2), and lstat(2) when `is_link` says so. */
int plat_stat(struct plat_root *r, const char *path, bool is_link, struct stat *ret);

/* mkdir(2), chmod(2), unlink(2), symlink(2), readlink(2): that one ends the text with 0 and gives its length. */
int plat_mkdir(struct plat_root *r, const char *path, mode_t mode);
int plat_chmod(struct plat_root *r, const char *path, mode_t mode);
int plat_unlink(struct plat_root *r, const char *path);
int plat_symlink(struct plat_root *r, const char *text, const char *path);
int plat_readlink(struct plat_root *r, const char *path, char ret[PATH_MAX]);

/* Of a root the beginning of relative names alone; else chdir(2). An empty path is where they began. plat_getcwd() is what it says then. */
int plat_chdir(struct plat_root *r, const char *path);
int plat_getcwd(const struct plat_root *r, char ret[PATH_MAX]);

/* The name without links in its folders, ".", ".." and doubled slashes; a last component that is a link keeps its own name. As the
 * client sees it: of a root, from there. -ENOENT when the folder is not there. */
int plat_normal(struct plat_root *r, const char *path, char ret[PATH_MAX]);

#endif
