/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator over a list of chunks, newest first. Chunks double up to 1 MiB, so that a small
 * request stays small and a large one takes few calls of malloc.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARENA_ALIGN 16
#define ARENA_CHUNK_MIN 4096
#define ARENA_CHUNK_MAX ((size_t)1 << 20)
#define ARENA_KEEP_MAX ((size_t)4 << 20)

struct arena_chunk {
	struct arena_chunk *next;
	size_t cap_len;
	size_t used_len;
	size_t pad;
	uint8_t bytes[];
};

void arena_init(struct arena *a, size_t limit_len)
{
	*a = (struct arena){.limit_len = limit_len};
}

void arena_fini(struct arena *a)
{
	while (a->head) {
		struct arena_chunk *next = a->head->next;
		free(a->head);
		a->head = next;
	}
	a->used_len = 0;
}

static struct arena_chunk *arena_grow(struct arena *a, size_t len);

void arena_reset(struct arena *a)
{
	struct arena_chunk *keep = a->head;
	size_t all_len = 0;
	for (struct arena_chunk *c = a->head; c; c = c->next)
		all_len += c->cap_len;
	/* Who needed many will again: one as large saves malloc() and the kernel the work for each. */
	if (keep && keep->next && all_len <= ARENA_KEEP_MAX) {
		arena_fini(a);
		(void)arena_grow(a, all_len);
		return;
	}
	for (struct arena_chunk *c = a->head; c; c = c->next) {
		if (c->cap_len > keep->cap_len)
			keep = c;
	}
	while (a->head) {
		struct arena_chunk *next = a->head->next;
		if (a->head != keep)
			free(a->head);
		a->head = next;
	}
	if (keep) {
		keep->next = NULL;
		keep->used_len = 0;
	}
	a->head = keep;
	a->used_len = 0;
}

static struct arena_chunk *arena_grow(struct arena *a, size_t len)
{
	size_t cap_len = a->head ? MIN(a->head->cap_len * 2, ARENA_CHUNK_MAX) : ARENA_CHUNK_MIN;
	if (cap_len < len)
		cap_len = len;
	struct arena_chunk *c = malloc(sizeof(*c) + cap_len);
	if (!c)
		return NULL;
	*c = (struct arena_chunk){.next = a->head, .cap_len = cap_len};
	a->head = c;
	return c;
}

static void *alloc_raw(struct arena *a, size_t len)
{
	if (len > SIZE_MAX / 2)
		return NULL;
	len = (len + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (a->limit_len && len > a->limit_len - a->used_len)
		return NULL;
	struct arena_chunk *c = a->head;
	if (!c || c->cap_len - c->used_len < len) {
		c = arena_grow(a, len);
		if (!c)
			return NULL;
	}
	void *p = c->bytes + c->used_len;
	c->used_len += len;
	a->used_len += len;
	return p;
}

void *arena_alloc(struct arena *a, size_t len)
{
	void *p = alloc_raw(a, len);
	return p ? memset(p, 0, len) : NULL;
}

void *arena_raw_array(struct arena *a, size_t count, size_t elem_len)
{
	size_t len;
	return __builtin_mul_overflow(count, elem_len, &len) ? NULL : alloc_raw(a, len);
}

void *arena_array(struct arena *a, size_t count, size_t elem_len)
{
	size_t len;
	return __builtin_mul_overflow(count, elem_len, &len) ? NULL : arena_alloc(a, len);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = len == SIZE_MAX ? NULL : arena_alloc(a, len + 1);
	if (copy && len)
		memcpy(copy, s, len);
	return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *s = len < 0 ? NULL : arena_alloc(a, (size_t)len + 1);
	if (s)
		vsnprintf(s, (size_t)len + 1, fmt, again);
	va_end(again);
	return s;
}
