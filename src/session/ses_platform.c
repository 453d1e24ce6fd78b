/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_platform.h"

#include "base/child.h"
#include "live/platform/plat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static struct plat_opts opts_of(const struct ses_platform *p)
{
	return (struct plat_opts){.root = p->root, .argv = p->argv, .allow_run = p->allow_run,
				  .allow_write = !p->is_remote || p->allow_run || p->root};
}

/* What is not there is said now, not to the first client. */
static struct err *check(const struct ses_platform *p)
{
	const char *root = p->root;
	if (p->argv && !p->allow_run)
		return err_fix(err_new(ERR_DENIED, "platform: whoever debugs %s can make it do anything", p->argv[0]), "give --allow-run");
	if (p->argv && strchr(p->argv[0], '/') && access(p->argv[0], X_OK))
		return err_os(errno, "%s", p->argv[0]);
	_cleanup_close_ int fd = root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	return root && fd < 0 ? err_fix(err_os(errno, "--root: %s", root), "name a folder") : NULL;
}

struct err *ses_platform_stdio(const struct ses_platform *p)
{
	const struct plat_opts opts = opts_of(p);
	struct err *e = check(p);
	child_note_signals();
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	return e ? e : plat_serve(&opts, STDIN_FILENO, STDOUT_FILENO);
}

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {0};
	socklen_t len = sizeof(at);
	if (getsockname(fd, &at.any, &len) < 0)
		return 0;
	return at.any.sa_family == AF_INET ? ntohs(at.v4.sin_port) : at.any.sa_family == AF_INET6 ? ntohs(at.v6.sin6_port) : 0;
}

struct err *ses_platform_listen(const struct ses_platform *p, int listen_fd, bool (*is_welcome)(int fd))
{
	struct plat_opts opts = opts_of(p);
	sigset_t set;
	struct err *e = check(p);
	if (e)
		return e;
	opts.port = port_of(listen_fd);
	child_note_signals();
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	_cleanup_close_ int stop_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (stop_fd < 0)
		return err_os(errno, "signalfd");
	const struct plat_listen l = {.opts = &opts, .listen_fd = listen_fd, .stop_fd = stop_fd, .is_welcome = is_welcome};
	return plat_listen_run(&l);
}
