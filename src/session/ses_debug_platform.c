/* SPDX-License-Identifier: Apache-2.0 */
/* lldb-server in its platform mode: it keeps files and starts servers that debug, one for each program, at a port of its own. */
#include "session/ses_debug_int.h"

#include "base/md5.h"
#include "live/reach/reach_url.h"

#include <stdlib.h>
#include <string.h>

enum { PATH_LEN = 4096 };

/* Where that server is: another port, or socket, of the same machine. */
static struct err *find_server(const struct debug_server *at, struct reach_url *u)
{
	char *port = NULL;
	if (at->port) {
		/* Behind a socket the port is one of this machine. */
		if (u->scheme == REACH_UNIX) {
			free(u->host);
			u->host = strdup("localhost");
		}
		u->scheme = REACH_TCP;
		if (asprintf(&port, "%u", at->port) < 0)
			return &err_nomem;
		free(u->port);
		u->port = port;
		return u->host ? NULL : &err_nomem;
	}
	if (u->scheme != REACH_UNIX)
		return err_new(ERR_UNSUPPORTED, "the debug server that was started is at a socket, which only its own machine reaches");
	free(u->host);
	u->host = strdup(at->socket.data);
	return u->host ? NULL : &err_nomem;
}

/* A debugger of the server that the platform starts. */
static struct err *open_spawned(struct ses_debug *s, struct debug **ret)
{
	_cleanup_url_ struct reach_url u = {0};
	struct debug_server at = {0};
	struct err *e = debug_spawn(s->platform, &at);
	if (!e)
		e = reach_url_parse(s->where, false, &u);
	if (!e)
		e = find_server(&at, &u);
	if (!e)
		e = err_prefix(reach_link_open(&u, &s->opts.wait, NULL, NULL, &s->opts.link), "the debug server that was started, at %s %s",
			       at.port ? "port" : "socket", at.port ? u.port : u.host);
	if (!e)
		e = debug_open(&s->opts, ret);
	buf_fini(&at.socket);
	return e;
}

struct err *ses_debug_hand_over(struct ses_debug *s)
{
	struct debug *d = NULL;
	if (!s->d->is_platform)
		return NULL;
	s->platform = take_ptr(s->d);
	struct err *e = open_spawned(s, &d);
	s->d = d;
	return e;
}

struct err *ses_debug_again(struct ses_debug *s)
{
	struct debug *d = NULL;
	bool is_over = s->d->link.lost || s->d->state == DEBUG_EXITED || s->d->state == DEBUG_KILLED || s->d->state == DEBUG_DETACHED;
	if (!s->platform || !is_over)
		return NULL;
	struct err *e = open_spawned(s, &d);
	if (e)
		return e;
	ses_debug_unplace_all(s);
	d->accepts = s->d->accepts;
	d->accepts_ctx = s;
	if (!d->arch)
		d->arch = s->d->arch;
	debug_close(s->d);
	s->d = d;
	return NULL;
}

/* Whether the machine there has these bytes at `path`. LLDB's hash has each of its halves reversed. */
static struct err *is_there(struct debug *d, const char *path, const struct file *f, bool *ret)
{
	_cleanup_batch_ struct debug_batch b = {0};
	_cleanup_buf_ struct buf hex = {0}, got = {0};
	struct md5 md5;
	uint8_t sum[16], want[16];
	buf_add_hexbytes(&hex, (const uint8_t *)path, strlen(path));
	if (hex.failed)
		return &err_nomem;
	debug_ask(&b, "vFile:MD5:%.*s", (int)hex.len, hex.data);
	struct err *e = debug_link_run(&d->link, &b);
	struct gdb_span s = debug_reply(&b, 0);
	*ret = false;
	if (e || !gdb_skip(&s, "F,") || !gdb_unhex(s, sizeof(sum), &got) || got.len != sizeof(sum))
		return e;
	md5_begin(&md5);
	md5_add(&md5, f->data, f->len);
	md5_end(&md5, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		want[i] = sum[i / 8 * 8 + 7 - i % 8];
	*ret = !memcmp(got.data, want, sizeof(want));
	return NULL;
}

/* Its working folder, with a NUL. */
static struct err *ask_folder(struct debug *d, struct buf *out)
{
	_cleanup_batch_ struct debug_batch b = {0};
	debug_ask(&b, "qGetWorkingDir");
	struct err *e = debug_link_run(&d->link, &b);
	if (!e && (!gdb_unhex(debug_reply(&b, 0), PATH_LEN, out) || !out->len || out->data[0] != '/'))
		e = err_new(ERR_UNSUPPORTED, "the program is not there, and the server does not say into which folder it could be sent");
	buf_add_ch(out, 0);
	return e || !out->failed ? e : &err_nomem;
}

struct err *ses_debug_send_program(struct ses_debug *s)
{
	struct file *f;
	bool has_it = false;
	_cleanup_buf_ struct buf folder = {0};
	_cleanup_free_ char *url = NULL, *path = NULL;
	if (!s->platform || !s->own_path || s->remote_path)
		return NULL;
	struct err *e = file_open(s->own_path, &f);
	if (e)
		return e;
	e = is_there(s->platform, s->own_path, f, &has_it);
	file_close(f);
	if (e || has_it)
		return e;
	e = ask_folder(s->platform, &folder);
	if (e)
		return e;
	const char *name = strrchr(s->own_path, '/') + 1;
	_cleanup_url_ struct reach_url u = {0};
	e = reach_url_parse(s->where, false, &u);
	if (e)
		return e;
	if (asprintf(&path, "%s/%s", strcmp(folder.data, "/") ? folder.data : "", name) < 0 || asprintf(&url, "%s%s", u.peer, path) < 0)
		return &err_nomem;
	uint64_t len, sent;
	e = ses_remote_push(s->own_path, url, &s->remote, &len, &sent);
	if (!e)
		s->remote_path = take_ptr(path);
	return e;
}
