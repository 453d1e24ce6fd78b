/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 4096
#define HOLD_MS 5000 /* for another that begins at the same moment */

static bool is_folder_ours(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

static struct err *named(const char *name, bool make, struct sockaddr_un *ret)
{
	char dir[sizeof(ret->sun_path)];
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n = runtime && *runtime == '/' ? snprintf(dir, sizeof(dir), "%s/scry", runtime)
					    : snprintf(dir, sizeof(dir), "/tmp/scry-%u", (unsigned)geteuid());
	if (n >= (int)sizeof(dir))
		return err_new(ERR_INVALID, "%s: the folder's name is too long for a socket", runtime);
	if (make && mkdir(dir, 0700) && errno != EEXIST)
		return err_os(errno, "%s", dir);
	if (access(dir, F_OK) == 0 && !is_folder_ours(dir))
		return err_fix(err_new(ERR_DENIED, "%s: is not a folder of yours alone", dir), "name the socket by its path");
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", dir, name);
	return n < (int)sizeof(ret->sun_path) ? NULL : err_new(ERR_INVALID, "%s: the name is too long for a socket", name);
}

struct err *rpc_sock_path(const char *name, bool make, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!*name)
		return err_new(ERR_INVALID, "a socket needs a name or a path");
	if (!strchr(name, '/'))
		return named(name, make, ret);
	if (strlen(name) >= sizeof(ret->sun_path))
		return err_new(ERR_INVALID, "%s: longer than the %zu bytes of a socket's path", name, sizeof(ret->sun_path) - 1);
	memcpy(ret->sun_path, name, strlen(name) + 1);
	return NULL;
}

static void folder_of(const struct sockaddr_un *at, char ret[sizeof(at->sun_path)])
{
	size_t len = MAX((size_t)(strrchr(at->sun_path, '/') - at->sun_path), (size_t)1);
	memcpy(ret, at->sun_path, len);
	ret[len] = '\0';
}

/* Others that begin at the same moment wait, so that none takes the socket of one which does not listen yet for a dead one's. Gives what to
 * close, or -1. Where somebody holds the folder for longer, as anybody can one that others share, it goes without. */
static int hold_folder(const char *at)
{
	int fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int ms = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && ms < HOLD_MS; ms += 10)
		(void)!poll(NULL, 0, 10);
	return fd;
}

/* Nobody else may be able to put another socket in the place of ours. */
static struct err *check_folder(const char *at)
{
	struct stat st;
	if (stat(at, &st))
		return err_os(errno, "%s", at);
	bool is_trusted = st.st_uid == geteuid() || st.st_uid == 0;
	if (is_trusted && (!(st.st_mode & 022) || st.st_mode & S_ISVTX))
		return NULL;
	return err_fix(err_new(ERR_DENIED, "%s: others can change what is in this folder", at), "use a folder of your own, or a bare name");
}

/* A socket of ours that nobody answers on is what a crash left. */
static struct err *remove_stale(const struct sockaddr_un *at)
{
	struct stat st;
	if (lstat(at->sun_path, &st))
		return errno == ENOENT ? NULL : err_os(errno, "%s", at->sun_path);
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return err_new(ERR_DENIED, "%s: is there already and is no socket of yours", at->sun_path);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_os(errno, "socket");
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno != ECONNREFUSED)
		return err_fix(err_new(ERR_BUSY, "%s: another scry answers there", at->sun_path), "name another socket");
	return unlink(at->sun_path) && errno != ENOENT ? err_os(errno, "%s", at->sun_path) : NULL;
}

struct err *rpc_listen(const struct sockaddr_un *at, struct rpc_listener *ret)
{
	struct stat st;
	char folder[sizeof(at->sun_path)];
	folder_of(at, folder);
	struct err *e = check_folder(folder);
	_cleanup_close_ int held = e ? -1 : hold_folder(folder);
	if (!e)
		e = remove_stale(at);
	if (e)
		return e;
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_os(errno, "socket");
	/* The mode is there before the name is; no other thread of ours makes files yet. */
	mode_t old = umask(0177);
	int status = bind(fd, (const struct sockaddr *)at, sizeof(*at));
	int why = errno;
	umask(old);
	if (status)
		return err_os(why, "%s", at->sun_path);
	if (listen(fd, BACKLOG) || lstat(at->sun_path, &st))
		return err_os(errno, "%s", at->sun_path);
	*ret = (struct rpc_listener){.fd = take_fd(fd), .at = *at, .dev = st.st_dev, .ino = st.st_ino};
	return NULL;
}

struct err *rpc_listen_tcp(const char *where, int *ret_fd)
{
	char host[256];
	const char *colon = strrchr(where, ':');
	if (!colon || !colon[1] || colon == where)
		return err_new(ERR_INVALID, "--listen: '%s' is no HOST:PORT", where);
	bool has_brackets = where[0] == '[' && colon[-1] == ']';
	snprintf(host, sizeof(host), "%.*s", (int)(colon - where) - 2 * has_brackets, where + has_brackets);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
	int why = getaddrinfo(host, colon + 1, &hints, &list);
	if (why)
		return err_new(ERR_INVALID, "--listen: %s: %s", where, gai_strerror(why));
	int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	bool is_bound = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) && !bind(fd, list->ai_addr, list->ai_addrlen) &&
			!listen(fd, 64);
	struct err *e = is_bound ? NULL : err_os(errno, "--listen: %s", where);
	freeaddrinfo(list);
	if (e && fd >= 0)
		close(fd);
	if (!e)
		*ret_fd = fd;
	return e;
}

void rpc_listener_fini(struct rpc_listener *l)
{
	struct stat st;
	if (l->fd < 0)
		return;
	if (lstat(l->at.sun_path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->at.sun_path);
	close(l->fd);
	l->fd = -1;
}

bool rpc_is_peer_ours(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

struct err *rpc_connect(const struct sockaddr_un *at, int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_os(errno, "socket");
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		return err_fix(err_new(ERR_NOT_FOUND, "%s: nobody answers there: %s", at->sun_path, strerror(errno)), "scry --rpc SOCKET FILE");
	if (!rpc_is_peer_ours(fd))
		return err_new(ERR_DENIED, "%s: somebody else answers there", at->sun_path);
	*ret_fd = take_fd(fd);
	return NULL;
}
