/* SPDX-License-Identifier: Apache-2.0 */
#include "base/par.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct par {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* a new job, or the end */
	pthread_cond_t idle; /* the last worker has finished */
	unsigned thread_cnt; /* including the caller */
	unsigned busy_cnt;   /* helpers still in the current job */
	unsigned long job;   /* number of the current job */
	bool is_ending;
	par_fn *fn;
	void *ctx;
	size_t count;
	size_t grain;
	atomic_size_t next;
	pthread_t threads[];
};

struct par_start {
	struct par *pool;
	unsigned worker;
};

static void par_drain(struct par *p, unsigned worker)
{
	for (;;) {
		size_t from = atomic_fetch_add(&p->next, p->grain);
		if (from >= p->count)
			return;
		p->fn(p->ctx, worker, from, MIN(from + p->grain, p->count));
	}
}

static void *par_thread(void *arg)
{
	struct par_start start = *(struct par_start *)arg;
	free(arg);
	struct par *p = start.pool;
	unsigned long seen = 0;
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->job == seen && !p->is_ending)
			pthread_cond_wait(&p->wake, &p->lock);
		if (p->is_ending)
			break;
		seen = p->job;
		pthread_mutex_unlock(&p->lock);
		par_drain(p, start.worker);
		pthread_mutex_lock(&p->lock);
		if (--p->busy_cnt == 0)
			pthread_cond_signal(&p->idle);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct par *par_new(unsigned threads)
{
	if (!threads) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);
		threads = online > 0 ? (unsigned)online : 1;
	}
	threads = MIN(threads, 256u);
	struct par *p = calloc(1, sizeof(*p) + threads * sizeof(p->threads[0]));
	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	pthread_cond_init(&p->idle, NULL);
	p->thread_cnt = 1;
	while (p->thread_cnt < threads) {
		struct par_start *start = malloc(sizeof(*start));
		if (!start)
			break;
		*start = (struct par_start){.pool = p, .worker = p->thread_cnt};
		if (pthread_create(&p->threads[p->thread_cnt], NULL, par_thread, start)) {
			free(start);
			break;
		}
		p->thread_cnt++;
	}
	return p;
}

void par_free(struct par *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_ending = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 1; i < p->thread_cnt; i++)
		pthread_join(p->threads[i], NULL);
	pthread_cond_destroy(&p->idle);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

unsigned par_threads(const struct par *p)
{
	return p->thread_cnt;
}

void par_for(struct par *p, size_t count, size_t grain, par_fn *fn, void *ctx)
{
	grain = MAX(grain, (size_t)1);
	if (p->thread_cnt == 1 || count <= grain) {
		if (count)
			fn(ctx, 0, 0, count);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->fn = fn;
	p->ctx = ctx;
	p->count = count;
	p->grain = grain;
	atomic_store(&p->next, 0);
	p->busy_cnt = p->thread_cnt - 1;
	p->job++;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	par_drain(p, 0);
	pthread_mutex_lock(&p->lock);
	while (p->busy_cnt)
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
