/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_peer.h"

#include <errno.h>
#include <string.h>

struct err *reach_file_err(int os_errno, const char *path)
{
	switch (os_errno) {
	case ENOENT:
	case ENOTDIR:
		return err_new(ERR_NOT_FOUND, "%s: there is no such file there", path);
	case EACCES:
	case EPERM:
		return err_new(ERR_DENIED, "%s: the server may not read it (%s)", path, strerror(os_errno));
	case ENOSYS:
		return err_new(ERR_UNSUPPORTED, "%s: the server does not give out files", path);
	case EISDIR:
		return err_new(ERR_INVALID, "%s: is a folder there, not a file", path);
	default:
		return err_new(ERR_IO, "%s: there: %s", path, strerror(os_errno));
	}
}

static struct err *open_gdb(const struct reach_url *u, const struct reach_wait *wait, struct reach_peer **ret)
{
	struct reach_link link;
	struct reach_conn *c = NULL;
	struct err *e = reach_link_open(u, wait, "command -v scry >/dev/null && exec scry platform --stdio", NULL, &link);
	if (!e)
		e = err_prefix(reach_conn_new(link, wait, &c), "%s", u->peer);
	return e ? e : reach_peer_lanes(c, wait, ret);
}

static struct err *open_sftp(const struct reach_url *u, const struct reach_wait *wait, struct reach_peer **ret)
{
	struct reach_link link;
	struct err *e = reach_link_open(u, wait, NULL, "sftp", &link);
	return e ? e : err_prefix(reach_peer_sftp(link, wait, ret), "%s", u->peer);
}

struct err *reach_peer_open(const struct reach_url *u, const struct reach_wait *wait, struct reach_peer **ret)
{
	if (u->scheme != REACH_SSH)
		return open_gdb(u, wait, ret);
	/* A shell says that there is no scry by ending, perhaps with words of its own. */
	struct err *e = open_gdb(u, wait, ret);
	if (!e || (e->kind != ERR_IO && e->kind != ERR_BAD_INPUT))
		return e;
	err_free(e);
	return open_sftp(u, wait, ret);
}

void reach_peer_close(struct reach_peer *p)
{
	if (p)
		p->ops->free(p);
}
