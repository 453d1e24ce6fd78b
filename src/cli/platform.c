/* SPDX-License-Identifier: Apache-2.0 */
/* `scry platform`: who may come, and what they may do. */
#include "cli/cli_int.h"
#include "rpc/sock.h"
#include "session/ses_platform.h"

#include "base/vec.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* "HOST:PORT" as it was bound, which for port 0 only the kernel knows. */
static void say_address(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char host[256] = "?", port[16] = "?";
	if (!getsockname(fd, (struct sockaddr *)&at, &len))
		(void)getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	fprintf(stderr, at.ss_family == AF_INET6 ? "scry: listening on [%s]:%s\n" : "scry: listening on %s:%s\n", host, port);
}

static struct err *over_socket(const struct ses_platform *p, const char *name)
{
	struct sockaddr_un at;
	struct rpc_listener listener = {.fd = -1};
	struct err *e = rpc_sock_path(name, true, &at);
	if (!e)
		e = rpc_listen(&at, &listener);
	if (!e) {
		fprintf(stderr, "scry: listening on %s\n", at.sun_path);
		e = ses_platform_listen(p, listener.fd, rpc_is_peer_ours);
	}
	rpc_listener_fini(&listener);
	return e;
}

static struct err *over_tcp(const struct ses_platform *p, const char *where)
{
	_cleanup_close_ int fd = -1;
	struct err *e = rpc_listen_tcp(where, &fd);
	if (e)
		return e;
	say_address(fd);
	fprintf(stderr, "scry: every user of this machine%s can connect, without a password, and %s as you\n",
		p->is_remote ? ", and who else reaches that address," : "",
		p->allow_run ? "run programs, which equals a shell," : p->root ? "read and change files below the root" : "read files");
	return ses_platform_listen(p, fd, NULL);
}

static struct err *serve_words(const struct cli *c)
{
	const char *socket = ops_arg_str(&c->args, "socket"), *listen = ops_arg_str(&c->args, "listen");
	bool is_stdio = ops_arg_is_set(&c->args, "stdio");
	size_t cnt;
	const char *const *cmd = ops_arg_texts(&c->args, "cmd", &cnt);
	_cleanup_free_ const char **argv = alloc_array(cnt + 1, sizeof(*argv));
	if (!argv)
		return &err_nomem;
	if (cnt)
		memcpy(argv, cmd, cnt * sizeof(*argv));
	const struct ses_platform p = {.root = ops_arg_str(&c->args, "root"), .allow_run = ops_arg_is_set(&c->args, "allow_run"),
				       .argv = cnt ? (char *const *)argv : NULL, .is_remote = listen != NULL};
	if (is_stdio + (socket != NULL) + (listen != NULL) != 1)
		return err_new(ERR_INVALID, "platform: one of --socket PATH, --stdio and --listen HOST:PORT says where clients come from");
	if (listen && !ops_arg_is_set(&c->args, "allow_remote"))
		return err_fix(err_new(ERR_DENIED, "--listen: over TCP every user of this machine can connect without a password, also on localhost"),
			       "give --allow-remote when that is meant; else --socket PATH, or scry get ssh://HOST/PATH, which needs no server");
	if (is_stdio)
		return ses_platform_stdio(&p);
	return socket ? over_socket(&p, socket) : over_tcp(&p, listen);
}

int cli_platform(int argc, char **argv)
{
	struct cli c = {.op = ops_find("platform")};
	ops_args_init(&c.args, c.op, &c.arena);
	struct err *e = cli_parse(&c, argc, argv);
	if (!e)
		e = serve_words(&c);
	int status = e ? cli_fail(e) : 0;
	arena_fini(&c.arena);
	return status;
}
