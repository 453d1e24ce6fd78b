/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_link.h"

#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

uint64_t reach_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A cancel flag is looked at as often as this. */
#define SLICE_MS 100

struct err *reach_poll(int fd, short events, uint64_t until_ns, const struct reach_wait *wait)
{
	for (;;) {
		uint64_t now = reach_now_ns();
		if (wait->cancel && atomic_load(wait->cancel))
			return err_new(ERR_CANCELLED, "cancelled");
		uint64_t left_ms = now < until_ns ? (until_ns - now) / 1000000 + 1 : 0;
		struct pollfd p = {.fd = fd, .events = events};
		int n = poll(&p, 1, (int)(wait->cancel ? MIN(left_ms, SLICE_MS) : MIN(left_ms, 1000)));
		if (n > 0)
			return NULL;
		if (n < 0 && errno != EINTR)
			return err_os(errno, "waiting for the other machine");
		if (now >= until_ns)
			return err_new(ERR_TIMEOUT, "the other machine has stalled: nothing came for %.3g s",
				       (double)reach_stall_ns(wait) / 1e9);
	}
}

static struct err *make_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_os(errno, "making a connection non-blocking");
	return NULL;
}

struct err *reach_link_fd(int fd, struct reach_link *ret)
{
	struct err *e = make_nonblocking(fd);
	if (e) {
		close(fd);
		return e;
	}
	*ret = (struct reach_link){.in = fd, .out = fd};
	return NULL;
}

/* Connects a socket of that address; it is closed on failure. */
static struct err *connect_to(const struct sockaddr *sa, socklen_t sa_len, const struct reach_wait *wait, int *ret)
{
	_cleanup_close_ int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_os(errno, "making a socket");
	if (connect(fd, sa, sa_len) < 0) {
		if (errno != EINPROGRESS)
			return err_os(errno, "connecting");
		struct err *e = reach_poll(fd, POLLOUT, reach_now_ns() + reach_stall_ns(wait), wait);
		if (e)
			return e;
		int failed = 0;
		socklen_t len = sizeof(failed);
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0 || failed)
			return err_os(failed ? failed : errno, "connecting");
	}
	*ret = take_fd(fd);
	return NULL;
}

static struct err *open_tcp(const struct reach_url *u, const struct reach_wait *wait, struct reach_link *ret)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV}, *all = NULL;
	int failed = getaddrinfo(u->host, u->port, &hints, &all);
	if (failed == EAI_ADDRFAMILY || failed == EAI_NONAME) {
		hints.ai_flags = AI_NUMERICSERV; /* a machine with nothing but loopback */
		failed = getaddrinfo(u->host, u->port, &hints, &all);
	}
	if (failed)
		return err_new(ERR_NOT_FOUND, "the host %s: %s", u->host, gai_strerror(failed));
	struct err *e = err_new(ERR_NOT_FOUND, "the host %s has no address", u->host);
	int fd = -1;
	for (struct addrinfo *a = all; a && e; a = a->ai_next) {
		err_free(e);
		e = connect_to(a->ai_addr, a->ai_addrlen, wait, &fd);
		if (e && e->kind == ERR_CANCELLED)
			break;
	}
	freeaddrinfo(all);
	if (e)
		return e;
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return reach_link_fd(fd, ret);
}

static struct err *open_unix(const struct reach_url *u, const struct reach_wait *wait, struct reach_link *ret)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	if (strlen(u->host) >= sizeof(sa.sun_path))
		return err_new(ERR_INVALID, "the path of the socket is longer than %zu bytes", sizeof(sa.sun_path) - 1);
	memcpy(sa.sun_path, u->host, strlen(u->host));
	int fd = -1;
	struct err *e = connect_to((const struct sockaddr *)(const void *)&sa, sizeof(sa), wait, &fd);
	return e ? e : reach_link_fd(fd, ret);
}

struct err *reach_link_again(int fd, struct reach_link *ret)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	if (getpeername(fd, (struct sockaddr *)&sa, &len) || len <= sizeof(sa_family_t))
		return err_new(ERR_UNSUPPORTED, "the connection has no address");
	_cleanup_close_ int again = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (again < 0 || (connect(again, (struct sockaddr *)&sa, len) && errno != EINPROGRESS))
		return err_os(errno, "connecting");
	int on = 1;
	setsockopt(again, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* of a unix socket there is no such thing */
	return reach_link_fd(take_fd(again), ret);
}

/* `-- HOST` keeps ssh from taking a host for an option, which reach_url_parse() refuses, too. */
static struct err *open_ssh(const struct reach_url *u, const char *command, const char *subsystem, struct reach_link *ret)
{
	const char *argv[16] = {"ssh", "-T"};
	unsigned n = 2;
	if (u->port) {
		argv[n++] = "-p";
		argv[n++] = u->port;
	}
	if (u->user) {
		argv[n++] = "-l";
		argv[n++] = u->user;
	}
	if (subsystem)
		argv[n++] = "-s";
	argv[n++] = "--";
	argv[n++] = u->host;
	argv[n] = subsystem ? subsystem : command;
	/* A socket, not two pipes: what is written to a process that is gone is an error and no signal. */
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_os(errno, "making a pair of sockets");
	pid_t pid = fork();
	if (pid == 0) {
		child_give_signals();
		if (dup2(pair[1], 0) < 0 || dup2(pair[1], 1) < 0)
			_exit(127);
		execvp(argv[0], (char *const *)argv);
		_exit(126);
	}
	int failed = errno;
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_os(failed, "starting ssh");
	}
	struct err *e = reach_link_fd(pair[0], ret);
	ret->pid = pid;
	return e;
}

struct err *reach_link_open(const struct reach_url *u, const struct reach_wait *wait, const char *ssh_command, const char *ssh_subsystem,
			    struct reach_link *ret)
{
	struct err *e = NULL;
	*ret = REACH_NO_LINK;
	switch (u->scheme) {
	case REACH_TCP:
		e = open_tcp(u, wait, ret);
		break;
	case REACH_UNIX:
		e = open_unix(u, wait, ret);
		break;
	case REACH_SSH:
		e = open_ssh(u, ssh_command, ssh_subsystem, ret);
		break;
	}
	/* That nothing is there is no fault of a target's bytes. */
	if (e && e->kind == ERR_BAD_INPUT)
		e->kind = ERR_NOT_FOUND;
	return err_prefix(e, "%s", u->peer);
}

void reach_link_close(struct reach_link *l)
{
	if (l->in >= 0)
		close(l->in);
	if (l->out >= 0 && l->out != l->in)
		close(l->out);
	for (unsigned i = 0; l->pid > 0 && waitpid(l->pid, NULL, WNOHANG) == 0; i++) {
		if (i == 100)
			kill(l->pid, SIGKILL);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	*l = REACH_NO_LINK;
}
