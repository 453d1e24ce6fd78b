/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

/*
 * One lifetime, one arena: everything allocated from it dies with arena_fini() or arena_reset().
 * Not thread-safe; each worker has its own. Zero-initialise, or use arena_init() to set a limit.
 */
struct arena_chunk;

struct arena {
	struct arena_chunk *head;
	size_t used_len;  /* bytes handed out since the last reset */
	size_t limit_len; /* 0: none; else arena_alloc() gives null past it */
};

void arena_init(struct arena *a, size_t limit_len);

/* Frees everything; the arena may be used again. */
void arena_fini(struct arena *a);

/* Forgets the content but keeps the largest chunk for reuse. */
void arena_reset(struct arena *a);

/* Zeroed memory, aligned to 16; valid until reset or fini; null when out of memory or over the limit. */
_must_use_ void *arena_alloc(struct arena *a, size_t len);

/* The same without the zeroes, for what is written in full: with zeroes it would be written twice. */
_must_use_ void *arena_raw_array(struct arena *a, size_t count, size_t elem_len);

/* Zeroed array; null also when count * elem_len overflows. */
_must_use_ void *arena_array(struct arena *a, size_t count, size_t elem_len);

/* A copy of `len` bytes with a NUL after them. */
_must_use_ char *arena_strndup(struct arena *a, const char *s, size_t len);

/* A printf-style string. */
_must_use_ char *arena_printf(struct arena *a, const char *fmt, ...) _printf_(2, 3);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_array((a), (n), sizeof(type)))

#define ARENA_RAW_ARRAY(a, type, n) ((type *)arena_raw_array((a), (n), sizeof(type)))

#endif
