/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Typed growing arrays. VEC(struct foo) is an anonymous struct {data, cnt, cap}; zero-initialise it.
 * VEC_PUSH gives false when memory ran out (the vector is unchanged); VEC_FREE releases the storage.
 * Growth is by half, so that peak memory stays near the content.
 */
#define VEC(type)            \
	struct {             \
		type *data;  \
		size_t cnt;  \
		size_t cap;  \
	}

/* Makes room for `more` further elements of `elem_len` bytes; false on overflow or no memory. */
static inline bool vec_reserve_(void **data, size_t *cap, size_t cnt, size_t more, size_t elem_len)
{
	size_t need;
	if (__builtin_add_overflow(cnt, more, &need))
		return false;
	if (need <= *cap)
		return true;
	size_t want = *cap + *cap / 2 + 16;
	if (want < need)
		want = need;
	size_t bytes;
	if (__builtin_mul_overflow(want, elem_len, &bytes))
		return false;
	void *grown = realloc(*data, bytes);
	if (!grown)
		return false;
	*data = grown;
	*cap = want;
	return true;
}

#define VEC_RESERVE(v, more) \
	vec_reserve_((void **)&(v)->data, &(v)->cap, (v)->cnt, (more), sizeof(*(v)->data))

#define VEC_PUSH(v, ...) (VEC_RESERVE(v, 1) ? ((v)->data[(v)->cnt++] = (__VA_ARGS__), true) : false)

#define VEC_POP(v) ((v)->data[--(v)->cnt])

#define VEC_FREE(v)              \
	do {                     \
		free((v)->data); \
		(v)->data = NULL; \
		(v)->cnt = (v)->cap = 0; \
	} while (0)

/* Overflow-checked array allocation, zeroed; null when count * elem_len overflows or memory is out. */
static inline void *alloc_array(size_t count, size_t elem_len)
{
	return calloc(count ? count : 1, elem_len ? elem_len : 1);
}

#endif
