/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of the server: one that accepts, one for each connection. */
#include "live/platform/plat.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "live/platform/plat_conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CONNS_DEFAULT 256
#define SEND_LEN (4 << 20)   /* what a socket should hold of an answer, bytes */
#define IDLE_PROBE_S 60      /* keep-alive of TCP: a machine that vanished is noticed */

static void tune(int fd)
{
	int one = 1, idle = IDLE_PROBE_S, len = SEND_LEN;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &len, sizeof(len));
}

struct err *plat_serve(const struct plat_opts *opts, int in_fd, int out_fd)
{
	struct plat_conn c;
	sigset_t set, was;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &was);
	_cleanup_close_ int signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	struct err *e = signal_fd < 0 ? err_os(errno, "signalfd") : NULL;
	int status = e ? 0 : plat_conn_init(&c, opts, in_fd, out_fd, signal_fd);
	if (status < 0)
		e = err_fix(err_new(ERR_INVALID, "%s: %s", opts->root, strerror(-status)), "--root takes a folder");
	if (!e) {
		tune(out_fd);
		plat_conn_run(&c);
	}
	if (!e || status < 0)
		plat_conn_fini(&c);
	sigprocmask(SIG_SETMASK, &was, NULL);
	return e;
}

/*
 * The process of a connection: nothing of ours but `fd`. It goes with `parent`, 0: with the connection alone, since a parent's death is told of when
 * the thread ends that made the child.
 */
static void serve_child(const struct plat_opts *opts, int fd, pid_t parent)
{
	sigset_t set;
	/* What it launched goes with it; and it goes with us. */
	if (parent)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (parent && getppid() != parent)
		_exit(0);
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	if (fd != 3 && dup2(fd, 3) < 0)
		_exit(5);
	close_range(4, ~0u, 0);
	struct err *e = plat_serve(opts, 3, 3);
	int status = e ? err_exit_status(e->kind) : 0;
	err_free(e);
	_exit(status);
}

struct err *plat_listen_run(const struct plat_listen *l)
{
	VEC(pid_t) children = {0};
	unsigned conn_max = l->conn_max ? l->conn_max : CONNS_DEFAULT;
	pid_t self = getpid();
	for (;;) {
		struct pollfd p[] = {{.fd = l->listen_fd, .events = POLLIN}, {.fd = l->stop_fd, .events = POLLIN}};
		/* Ended connections are noticed at the next one, and soon enough without. */
		if (poll(p, ARRAY_LEN(p), children.cnt ? 1000 : -1) < 0 && errno != EINTR)
			break;
		for (size_t i = 0; i < children.cnt;)
			if (waitpid(children.data[i], NULL, WNOHANG) == children.data[i])
				children.data[i] = VEC_POP(&children);
			else
				i++;
		if (p[1].revents)
			break;
		if (!p[0].revents)
			continue;
		int fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		bool is_taken = children.cnt < conn_max && VEC_RESERVE(&children, 1) && (!l->is_welcome || l->is_welcome(fd));
		pid_t pid = is_taken ? fork() : -1;
		if (!pid)
			serve_child(l->opts, fd, self);
		if (pid > 0)
			(void)VEC_PUSH(&children, pid);
		close(fd);
	}
	for (size_t i = 0; i < children.cnt; i++)
		kill(children.data[i], SIGTERM);
	for (size_t i = 0; i < children.cnt; i++)
		(void)waitpid(children.data[i], NULL, 0);
	VEC_FREE(&children);
	return NULL;
}

struct err *plat_stub_start(const struct plat_opts *opts, struct plat_stub *ret)
{
	int fds[2];
	*ret = (struct plat_stub){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return err_os(errno, "socketpair");
	pid_t pid = fork();
	if (!pid)
		serve_child(opts, fds[1], 0);
	close(fds[1]);
	if (pid < 0) {
		struct err *e = err_os(errno, "fork");
		close(fds[0]);
		return e;
	}
	*ret = (struct plat_stub){.fd = fds[0], .pid = pid};
	return NULL;
}

void plat_stub_stop(struct plat_stub *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->pid > 0)
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	*s = (struct plat_stub){.fd = -1};
}
