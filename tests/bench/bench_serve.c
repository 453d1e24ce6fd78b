/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other ends of what bench_serve.py measures:
 *   bench_serve echo SOCKET                  a bare server: what it reads it writes, one connection after the other
 *   bench_serve ask SOCKET N [LINE...]       sends each line and waits for the answer's line, N times in turn; prints for each line the
 *                                            median and the mean in microseconds, and the answer's bytes. Behind "@SOCKET" lines
 *                                            go there. Unless N is 1 each was asked thrice before
 *   bench_serve connect SOCKET N LINE...     the same with a connection each time
 *   bench_serve page FILE N OP PARAMS...     the operation in this process, N times with each parameters in turn; processor and wall
 *                                            microseconds of one, and its bytes. If N is 1 the first parameters do not count, else
 *                                            each was done thrice before
 *   bench_serve mix SOCKET CLIENTS MS LINE...  so many clients, a thread each, asking these in turn; answers a second, the least and the
 *                                            most of one client, and the clients' processor microseconds for one
 */
#include "rpc/opcall.h"
#include "rpc/sock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINES_MAX 64

static double now_us(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_serve: %s\n", what);
	exit(1);
}

static int dial(const char *path)
{
	struct sockaddr_un at;
	int fd = -1;
	if (rpc_sock_path(path, false, &at) || rpc_connect(&at, &fd))
		die(path);
	return fd;
}

static _Noreturn void echo(const char *path)
{
	struct sockaddr_un at;
	struct rpc_listener l;
	char bytes[65536];
	if (rpc_sock_path(path, true, &at) || rpc_listen(&at, &l))
		die(path);
	fd_set set;
	for (;;) {
		FD_ZERO(&set);
		FD_SET(l.fd, &set);
		select(l.fd + 1, &set, NULL, NULL, NULL);
		int fd = accept(l.fd, NULL, NULL);
		ssize_t n;
		while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0) {
			if (write(fd, bytes, (size_t)n) != n)
				break;
		}
		close(fd);
	}
}

/* One answer; its bytes. */
static size_t ask_one(int fd, const char *line, size_t len)
{
	static __thread char bytes[1 << 20];
	size_t got = 0;
	if (write(fd, line, len) != (ssize_t)len)
		die("cannot send");
	for (;;) {
		ssize_t n = read(fd, bytes, sizeof(bytes));
		if (n <= 0)
			die("the server left");
		got += (size_t)n;
		if (bytes[n - 1] == '\n')
			break;
	}
	if (memmem(bytes, MIN(got, (size_t)200), "\"error\":{", 9))
		die(bytes);
	return got;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void tell(double *took, unsigned n, size_t bytes)
{
	double sum = 0;
	for (unsigned i = 0; i < n; i++)
		sum += took[i];
	qsort(took, n, sizeof(*took), by_value);
	printf("%.3f %.3f %zu\n", took[n / 2], sum / n, bytes);
}

/* The lines in turn, those behind "@SOCKET" to that one; with `is_anew` each with a connection of its own. */
static int ask(const char *path, unsigned n, char **lines, int cnt, bool is_anew)
{
	double *took[LINES_MAX];
	size_t bytes[LINES_MAX] = {0};
	const char *paths[LINES_MAX];
	int fds[LINES_MAX], fd = -1;
	for (int k = 0; k < cnt; k++) {
		took[k] = calloc(n, sizeof(double));
		if (lines[k][0] == '@') {
			lines[k][strlen(lines[k]) - 1] = '\0';
			path = lines[k] + 1;
			fd = -1;
			continue;
		}
		paths[k] = path;
		fds[k] = fd = is_anew ? -1 : fd < 0 ? dial(path) : fd;
		for (int i = 0; i < 3 && !is_anew && n > 1; i++)
			bytes[k] = ask_one(fd, lines[k], strlen(lines[k]));
	}
	for (unsigned i = 0; i < n; i++) {
		for (int k = 0; k < cnt; k++) {
			if (lines[k][0] == '@')
				continue;
			double from = now_us(CLOCK_MONOTONIC);
			fd = is_anew ? dial(paths[k]) : fds[k];
			bytes[k] = ask_one(fd, lines[k], strlen(lines[k]));
			took[k][i] = now_us(CLOCK_MONOTONIC) - from;
			if (is_anew)
				close(fd);
		}
	}
	for (int k = 0; k < cnt; k++) {
		if (lines[k][0] != '@')
			tell(took[k], n, bytes[k]);
	}
	return 0;
}

static int page(const char *file, unsigned n, const char *op, char **params, int cnt)
{
	struct ses *s = NULL;
	struct ses_opts opts = {0};
	struct ops_doc doc[LINES_MAX];
	struct arena keep = {0}, a = {0};
	struct buf out = {0};
	if (ses_open(file, &opts, &s))
		die(file);
	for (int k = 0; k < cnt; k++) {
		if (ops_doc_parse("params", params[k], strlen(params[k]), &keep, &doc[k]))
			die(params[k]);
	}
	double cpu = 0, wall = 0, bytes = 0;
	unsigned before = n > 1 ? 3 * (unsigned)cnt : 1;
	for (unsigned i = 0; i < (n > 1 ? n + 3 : 1) * (unsigned)cnt; i++) {
		if (i == before) {
			cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
			wall = now_us(CLOCK_MONOTONIC);
			bytes = 0;
		}
		struct ses_snap *sn = ses_snap_get(s);
		struct rpc_ask q = {.snap = sn, .arena = &a, .call = {.caps = SES_CAP_READ}};
		out.len = 0;
		struct err *e = rpc_op_call(&q, op, &doc[i % (unsigned)cnt], &out);
		if (e)
			die(e->text);
		bytes += (double)out.len;
		ses_snap_put(sn);
		arena_reset(&a);
	}
	double times = n > 1 ? n * (double)cnt : cnt - 1;
	printf("%.3f %.3f %.0f\n", (now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu) / times, (now_us(CLOCK_MONOTONIC) - wall) / times, bytes / times);
	ses_close(s);
	return 0;
}

struct client { const char *path; char **lines; int cnt, first; double until; unsigned long answers; };

static void *client(void *arg)
{
	struct client *c = arg;
	int fd = dial(c->path);
	for (int k = c->first; now_us(CLOCK_MONOTONIC) < c->until; k++) {
		const char *line = c->lines[k % c->cnt];
		ask_one(fd, line, strlen(line));
		c->answers++;
	}
	close(fd);
	return NULL;
}

static int mix(const char *path, unsigned clients, double ms, char **lines, int cnt)
{
	pthread_t threads[64];
	struct client all[64];
	unsigned long sum = 0, least = ~0ul, most = 0;
	double from = now_us(CLOCK_MONOTONIC);
	clients = MIN(clients, 64u);
	for (unsigned i = 0; i < clients; i++) {
		all[i] = (struct client){path, lines, cnt, (int)(i * 7), from + ms * 1000, 0};
		if (pthread_create(&threads[i], NULL, client, &all[i]))
			die("no thread");
	}
	for (unsigned i = 0; i < clients; i++) {
		pthread_join(threads[i], NULL);
		sum += all[i].answers;
		least = MIN(least, all[i].answers);
		most = MAX(most, all[i].answers);
	}
	double rate = (double)sum / (now_us(CLOCK_MONOTONIC) - from) * 1e6;
	printf("%.1f %lu %lu %.3f\n", rate, least, most, now_us(CLOCK_PROCESS_CPUTIME_ID) / (double)sum);
	return 0;
}

int main(int argc, char **argv)
{
	/* Lines are given without their ends. */
	char *lines[LINES_MAX];
	int cnt = 0;
	int at = argc > 1 && !strcmp(argv[1], "mix") ? 5 : 4;
	for (int i = at; i < argc && cnt < LINES_MAX && strcmp(argv[1], "page"); i++) {
		if (asprintf(&lines[cnt++], "%s\n", argv[i]) < 0)
			die("no memory");
	}
	if (argc == 3 && !strcmp(argv[1], "echo"))
		echo(argv[2]);
	if (argc >= 5 && (!strcmp(argv[1], "ask") || !strcmp(argv[1], "connect")))
		return ask(argv[2], (unsigned)strtoul(argv[3], NULL, 10), lines, cnt, *argv[1] == 'c');
	if (argc >= 6 && !strcmp(argv[1], "page"))
		return page(argv[2], (unsigned)strtoul(argv[3], NULL, 10), argv[4], argv + 5, MIN(argc - 5, LINES_MAX));
	if (argc >= 6 && !strcmp(argv[1], "mix"))
		return mix(argv[2], (unsigned)strtoul(argv[3], NULL, 10), strtod(argv[4], NULL), lines, cnt);
	die("see the head of bench_serve.c");
	return 2;
}
