/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One slot for each value of a hash: what is newer takes the place of what is older. That is little to get wrong, and whoever asks for the
 * same function twice asks soon.
 */
#include "serve/serve_int.h"

#define SLOT_CNT 4096

struct slot { char etag[OPS_ETAG_MAX]; char *text; size_t len; };

struct serve_cache {
	pthread_mutex_t lock;
	size_t held, max;
	size_t hand; /* the next slot that makes room */
	struct slot slots[SLOT_CNT];
};

struct serve_cache *serve_cache_new(size_t max_len)
{
	struct serve_cache *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->max = max_len;
	return c;
}

static void drop(struct serve_cache *c, struct slot *s)
{
	c->held -= s->len;
	free(s->text);
	*s = (struct slot){0};
}

void serve_cache_free(struct serve_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < SLOT_CNT; i++)
		free(c->slots[i].text);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct slot *slot_of(struct serve_cache *c, const char *etag)
{
	uint64_t h = 0xcbf29ce484222325;
	for (; *etag; etag++)
		h = (h ^ (uint8_t)*etag) * 0x100000001b3;
	return &c->slots[(h ^ h >> 32) % SLOT_CNT];
}

bool serve_cache_get(struct serve_cache *c, const char *etag, struct buf *out)
{
	pthread_mutex_lock(&c->lock);
	const struct slot *s = slot_of(c, etag);
	bool is_there = s->text && !strcmp(s->etag, etag);
	if (is_there)
		buf_add(out, s->text, s->len);
	pthread_mutex_unlock(&c->lock);
	return is_there;
}

void serve_cache_put(struct serve_cache *c, const char *etag, const char *text, size_t len)
{
	if (len > c->max / 8 || strlen(etag) >= OPS_ETAG_MAX)
		return;
	char *copy = malloc(len + 1);
	if (!copy)
		return;
	memcpy(copy, text, len);
	pthread_mutex_lock(&c->lock);
	struct slot *s = slot_of(c, etag);
	drop(c, s);
	while (c->held + len > c->max)
		drop(c, &c->slots[c->hand++ % SLOT_CNT]);
	memcpy(s->etag, etag, strlen(etag) + 1);
	s->text = copy;
	s->len = len;
	c->held += len;
	pthread_mutex_unlock(&c->lock);
}
