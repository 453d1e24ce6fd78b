/* SPDX-License-Identifier: Apache-2.0 */
/* Workers, and a queue before them. */
#include "serve/serve_int.h"

#include <signal.h>

#define WORKER_MAX 64

struct serve_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct serve_req *first, **last;
	bool is_ending;
	unsigned cnt;
	pthread_t threads[WORKER_MAX];
};

static struct serve_req *next(struct serve_pool *p)
{
	struct serve_req *r = p->first;
	if (r) {
		p->first = r->pool_next;
		if (!p->first)
			p->last = &p->first;
	}
	return r;
}

/* Back to its loop. */
static void give_back(struct serve_req *r)
{
	struct serve_loop *l = r->loop;
	pthread_mutex_lock(&l->lock);
	r->pool_next = l->done;
	l->done = r;
	pthread_mutex_unlock(&l->lock);
	serve_loop_wake(l);
}

static void *worker(void *arg)
{
	struct serve_pool *p = arg;
	pthread_mutex_lock(&p->lock);
	while (!p->is_ending) {
		struct serve_req *r = next(p);
		if (!r) {
			pthread_cond_wait(&p->wake, &p->lock);
			continue;
		}
		pthread_mutex_unlock(&p->lock);
		serve_req_work(r);
		give_back(r);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct err *serve_pool_new(unsigned workers, struct serve_pool **ret)
{
	struct serve_pool *p = calloc(1, sizeof(*p));
	if (!p)
		return &err_nomem;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->last = &p->first;
	/* Signals are the main thread's. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	workers = MIN(workers, (unsigned)WORKER_MAX);
	while (p->cnt < workers && pthread_create(&p->threads[p->cnt], NULL, worker, p) == 0)
		p->cnt++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (workers && !p->cnt) {
		serve_pool_free(p);
		return err_new(ERR_IO, "no thread can be started");
	}
	*ret = p;
	return NULL;
}

void serve_pool_free(struct serve_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_ending = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->cnt; i++)
		pthread_join(p->threads[i], NULL);
	/* What nobody began goes back as it is, to be put away. */
	for (struct serve_req *r; (r = next(p));)
		give_back(r);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void serve_pool_add(struct serve_pool *p, struct serve_req *r)
{
	r->pool_next = NULL;
	pthread_mutex_lock(&p->lock);
	*p->last = r;
	p->last = &r->pool_next;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

bool serve_pool_step(struct serve_pool *p)
{
	struct serve_req *r = next(p);
	if (r) {
		serve_req_work(r);
		give_back(r);
	}
	return r != NULL;
}

struct serve_req *serve_pool_take(struct serve_loop *l)
{
	struct serve_req *in_order = NULL;
	pthread_mutex_lock(&l->lock);
	struct serve_req *r = l->done;
	l->done = NULL;
	pthread_mutex_unlock(&l->lock);
	while (r) {
		struct serve_req *older = r->pool_next;
		r->pool_next = in_order;
		in_order = r;
		r = older;
	}
	return in_order;
}
