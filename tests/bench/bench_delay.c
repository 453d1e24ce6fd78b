/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_delay PORT HOST HOST_PORT MS: a TCP proxy on 127.0.0.1:PORT that hands on what comes MS milliseconds later in each direction. TCP ends here,
 * so that the growth of its window over a long path is not part of what is measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_LEN (256u << 10)
#define MAX_CNT 1024

/* One direction: what was read, and when it is due. */
struct way {
	int from, to;
	uint64_t delay_ns;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct {
		char *bytes;
		ssize_t len;
		uint64_t due_ns;
	} chunks[MAX_CNT];
	unsigned first, cnt;
};

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void *read_way(void *ctx)
{
	struct way *w = ctx;
	for (ssize_t n = 1; n > 0;) {
		char *bytes = malloc(CHUNK_LEN);
		n = bytes ? read(w->from, bytes, CHUNK_LEN) : -1;
		pthread_mutex_lock(&w->lock);
		while (w->cnt == MAX_CNT)
			pthread_cond_wait(&w->changed, &w->lock);
		unsigned i = (w->first + w->cnt++) % MAX_CNT;
		w->chunks[i].bytes = bytes;
		w->chunks[i].len = n;
		w->chunks[i].due_ns = now_ns() + w->delay_ns;
		pthread_cond_broadcast(&w->changed);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void *write_way(void *ctx)
{
	struct way *w = ctx;
	for (;;) {
		pthread_mutex_lock(&w->lock);
		while (!w->cnt)
			pthread_cond_wait(&w->changed, &w->lock);
		char *bytes = w->chunks[w->first].bytes;
		ssize_t len = w->chunks[w->first].len;
		uint64_t due_ns = w->chunks[w->first].due_ns, now = now_ns();
		w->first = (w->first + 1) % MAX_CNT;
		w->cnt--;
		pthread_cond_broadcast(&w->changed);
		pthread_mutex_unlock(&w->lock);
		uint64_t left_ns = due_ns > now ? due_ns - now : 0;
		nanosleep(&(struct timespec){.tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000)}, NULL);
		for (ssize_t done = 0; done < len;) {
			ssize_t n = send(w->to, bytes + done, (size_t)(len - done), MSG_NOSIGNAL);
			if (n <= 0)
				break;
			done += n;
		}
		free(bytes);
		if (len <= 0) {
			shutdown(w->to, SHUT_WR);
			return NULL;
		}
	}
}

static void begin_way(int from, int to, uint64_t delay_ns)
{
	struct way *w = calloc(1, sizeof(*w));
	pthread_t thread;
	if (!w)
		exit(1);
	w->from = from;
	w->to = to;
	w->delay_ns = delay_ns;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (pthread_create(&thread, NULL, read_way, w) || pthread_create(&thread, NULL, write_way, w))
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10))};
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	uint64_t delay_ns = (uint64_t)(strtod(argv[4], NULL) * 1e6);
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	if (inet_pton(AF_INET, argv[2], &far.sin_addr) != 1 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(listener, (struct sockaddr *)(void *)&own, sizeof(own)) || listen(listener, 16)) {
		perror("bench_delay");
		return 1;
	}
	for (;;) {
		int near_fd = accept(listener, NULL, NULL), far_fd = socket(AF_INET, SOCK_STREAM, 0);
		if (near_fd < 0 || far_fd < 0)
			return 1;
		if (connect(far_fd, (struct sockaddr *)(void *)&far, sizeof(far))) {
			close(near_fd);
			close(far_fd);
			continue;
		}
		setsockopt(near_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(far_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		begin_way(near_fd, far_fd, delay_ns);
		begin_way(far_fd, near_fd, delay_ns);
	}
}
