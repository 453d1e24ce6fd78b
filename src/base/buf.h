/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A growing byte buffer for output. `failed` is sticky: after memory ran out, further writes are
 * dropped and the caller tests once at the end. Zero-initialise; buf_fini() releases.
 */
struct buf {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

void buf_fini(struct buf *b);

/* Makes room for `more` bytes after `len`; gives where to write them, or null (and `failed`). The
 * caller adds what it wrote to `len`. */
char *buf_room_slow(struct buf *b, size_t more);

static inline char *buf_room(struct buf *b, size_t more)
{
	return b->cap - b->len >= more && b->data ? b->data + b->len : buf_room_slow(b, more);
}

static inline void buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *p = buf_room(b, len);
	if (p && len) {
		memcpy(p, bytes, len);
		b->len += len;
	}
}

static inline void buf_add_ch(struct buf *b, char ch)
{
	char *p = buf_room(b, 1);
	if (p) {
		*p = ch;
		b->len++;
	}
}

static inline void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* Appends `v` in lower-case hex without a prefix, at least `min_digits` digits. */
void buf_add_hex(struct buf *b, uint64_t v, unsigned min_digits);

/* Appends `v` in decimal. */
void buf_add_dec(struct buf *b, uint64_t v);

/* Appends `len` bytes as two lower-case hex digits each. */
void buf_add_hexbytes(struct buf *b, const uint8_t *bytes, size_t len);

#define _cleanup_buf_ _cleanup_(buf_fini)

#endif
