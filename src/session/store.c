/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders and files of the store; the databases are in store_db.c.
 *
 * Under sudo the files must be the invoking user's, and root must not follow that user's symbolic links with root's
 * rights. Both come from one thing: while this file touches the store the calling thread's file-system uid is the
 * user's (setfsuid is per thread), so the kernel itself creates and checks as that user.
 */
#include "session/store.h"

#include "session/store_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

/* The user whose store this is: the caller, or who called sudo. */
static void store_who(uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = geteuid();
	*ret_gid = getegid();
	const char *uid = *ret_uid == 0 ? getenv("SUDO_UID") : NULL;
	const char *gid = uid ? getenv("SUDO_GID") : NULL;
	char *end;
	if (!uid || !*uid)
		return;
	unsigned long u = strtoul(uid, &end, 10);
	if (*end || u >= UINT32_MAX)
		return;
	unsigned long g = gid && *gid ? strtoul(gid, &end, 10) : u;
	*ret_uid = (uid_t)u;
	*ret_gid = gid && *gid && *end ? (gid_t)u : (gid_t)g;
}

struct store_as store_as_user(const struct store *st)
{
	struct store_as was = {.uid = geteuid(), .gid = getegid(), .is_switched = st->uid != geteuid()};
	if (was.is_switched) {
		setfsgid(st->gid);
		setfsuid(st->uid);
	}
	return was;
}

void store_as_back(struct store_as *was)
{
	if (was->is_switched) {
		setfsuid(was->uid);
		setfsgid(was->gid);
	}
}

/* Home of the store's owner: $HOME, or under sudo the invoking user's, whatever HOME says. */
static char *store_home(void)
{
	uid_t uid;
	gid_t gid;
	store_who(&uid, &gid);
	const char *home = getenv("HOME");
	struct passwd room, *pw = NULL;
	char text[4096];
	if (uid != geteuid() || !home || !*home)
		home = !getpwuid_r(uid, &room, text, sizeof(text), &pw) && pw ? pw->pw_dir : NULL;
	return home && *home == '/' ? strdup(home) : NULL;
}

char *store_default_root(void)
{
	char *path = NULL;
	const char *env = getenv("SCRY_STORE");
	if (env && *env)
		return strdup(env);
	uid_t uid;
	gid_t gid;
	store_who(&uid, &gid);
	env = uid == geteuid() ? getenv("XDG_DATA_HOME") : NULL;
	if (env && *env == '/')
		return asprintf(&path, "%s/scry", env) < 0 ? NULL : path;
	_cleanup_free_ char *home = store_home();
	return !home || asprintf(&path, "%s/.local/share/scry", home) < 0 ? NULL : path;
}

static struct err *store_check_folder(const struct store *st, const char *path)
{
	struct stat s;
	if (lstat(path, &s))
		return errno == ENOENT ? NULL : err_os(errno, "%s", path);
	if (S_ISLNK(s.st_mode) && stat(path, &s))
		return err_os(errno, "%s", path);
	if (!S_ISDIR(s.st_mode))
		return err_new(ERR_IO, "%s: is not a folder", path);
	if (s.st_uid != st->uid)
		return err_fix(err_new(ERR_DENIED, "%s: belongs to uid %u, not to you", path, s.st_uid),
			       "set SCRY_STORE to a folder of your own");
	if (s.st_mode & 022)
		return err_fix(err_new(ERR_DENIED, "%s: others may write there", path), "chmod 700 %s", path);
	return NULL;
}

struct err *store_open(struct store **ret)
{
	struct store *st = calloc(1, sizeof(*st));
	if (!st)
		return &err_nomem;
	store_who(&st->uid, &st->gid);
	st->root = store_default_root();
	struct err *e = st->root ? NULL :
		err_fix(err_new(ERR_ENV, "there is no home folder to keep analyses in"), "set SCRY_STORE to a folder of your own");
	if (!e) {
		struct store_as was = store_as_user(st);
		e = store_check_folder(st, st->root);
		store_as_back(&was);
	}
	if (e) {
		store_close(st);
		return e;
	}
	*ret = st;
	return NULL;
}

void store_close(struct store *st)
{
	if (!st)
		return;
	free(st->root);
	free(st);
}

const char *store_root(const struct store *st)
{
	return st->root;
}

void store_hex(const uint8_t sha256[32], char ret[65])
{
	static const char digits[] = "0123456789abcdef";
	for (unsigned i = 0; i < 32; i++) {
		ret[2 * i] = digits[sha256[i] >> 4];
		ret[2 * i + 1] = digits[sha256[i] & 15];
	}
	ret[64] = 0;
}

bool store_unhex(const char *digits, size_t cnt, uint8_t *ret)
{
	for (size_t i = 0; i < 2 * cnt; i++) {
		char ch = digits[i];
		unsigned digit = ch >= '0' && ch <= '9' ? (unsigned)(ch - '0') : ch >= 'a' && ch <= 'f' ? (unsigned)(ch - 'a') + 10 : 16;
		if (digit > 15)
			return false;
		if (ret)
			ret[i / 2] = (uint8_t)(ret[i / 2] << 4 | digit);
	}
	return true;
}

char *store_target_path(const struct store *st, const uint8_t sha256[32], const char *name)
{
	char hex[65];
	char *path = NULL;
	store_hex(sha256, hex);
	return asprintf(&path, "%s/%s/%s", st->root, hex, name) < 0 ? NULL : path;
}

char *store_image_path(const struct store *st, const uint8_t sha256[32], uint32_t gen)
{
	char name[24];
	snprintf(name, sizeof(name), "image.%u", gen);
	return store_target_path(st, sha256, name);
}

/* The entry of a new folder on the disk: what is committed inside it must be found after a power cut. */
static void store_sync_entry(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = slash && slash != path ? strndup(path, (size_t)(slash - path)) : strdup(slash ? "/" : ".");
	_cleanup_close_ int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0)
		(void)fsync(fd);
}

/* Makes the folder and its missing parents, 0700; the caller has switched to the user. */
static struct err *store_make_dirs(const struct store *st, const char *path)
{
	_cleanup_free_ char *part = strdup(path);
	if (!part)
		return &err_nomem;
	for (char *p = part + 1;; p++) {
		if (*p != '/' && *p)
			continue;
		char was = *p;
		*p = 0;
		if (!mkdir(part, 0700))
			store_sync_entry(part);
		else if (errno != EEXIST)
			return err_os(errno, "%s: cannot make the folder", part);
		*p = was;
		if (!was)
			break;
	}
	return store_check_folder(st, path);
}

struct err *store_make_root(const struct store *st)
{
	return store_make_dirs(st, st->root);
}

struct err *store_make_target(const struct store *st, const uint8_t sha256[32])
{
	_cleanup_free_ char *dir = store_target_path(st, sha256, "");
	if (!dir)
		return &err_nomem;
	dir[strlen(dir) - 1] = 0;
	struct err *e = store_make_root(st);
	return e ? e : store_make_dirs(st, dir);
}

void store_unlink_old(const struct store *st, const uint8_t sha256[32], uint32_t keep_gen)
{
	_cleanup_free_ char *dir = store_target_path(st, sha256, "");
	DIR *d = dir ? opendir(dir) : NULL;
	if (!d)
		return;
	for (struct dirent *de; (de = readdir(d));) {
		if (strncmp(de->d_name, "image.", 6))
			continue;
		char *end;
		unsigned long gen = strtoul(de->d_name + 6, &end, 10);
		/* A newer one is another writer's; a temporary file of our own number is a dead writer's. */
		if (gen < keep_gen || (gen == keep_gen && *end))
			(void)unlinkat(dirfd(d), de->d_name, 0);
	}
	closedir(d);
}

/* Whoever watches the folder learns that something was committed. */
void store_touch_stamp(const struct store *st, const uint8_t sha256[32])
{
	_cleanup_free_ char *path = store_target_path(st, sha256, "rev.stamp");
	_cleanup_close_ int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd >= 0)
		(void)futimens(fd, NULL);
}

int64_t store_stamp_ns(const struct store *st, const uint8_t sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "rev.stamp");
	struct stat s;
	return path && !stat(path, &s) ? (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec : 0;
}

bool store_has_target(const struct store *st, const uint8_t sha256[32])
{
	_cleanup_as_ struct store_as was = store_as_user(st);
	_cleanup_free_ char *path = store_target_path(st, sha256, "edits.db");
	return path && !access(path, R_OK);
}

char *store_project_path(const struct store *st, const char *id)
{
	char *path = NULL;
	return asprintf(&path, "%s/projects/%s.db", st->root, id) < 0 ? NULL : path;
}

struct err *store_make_projects(const struct store *st)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/projects", st->root) < 0)
		return &err_nomem;
	struct err *e = store_make_root(st);
	return e ? e : store_make_dirs(st, path);
}
