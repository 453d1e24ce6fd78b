/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

char *buf_room_slow(struct buf *b, size_t more)
{
	size_t need;
	if (b->failed || __builtin_add_overflow(b->len, more, &need)) {
		b->failed = true;
		return NULL;
	}
	size_t cap = b->cap < 128 ? 256 : b->cap * 2;
	if (cap < need)
		cap = need;
	char *grown = realloc(b->data, cap);
	if (!grown) {
		b->failed = true;
		return NULL;
	}
	b->data = grown;
	b->cap = cap;
	return b->data + b->len;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = len < 0 ? NULL : buf_room(b, (size_t)len + 1);
	if (p) {
		vsnprintf(p, (size_t)len + 1, fmt, again);
		b->len += (size_t)len;
	}
	va_end(again);
}

static const char hex_digits[] = "0123456789abcdef";

void buf_add_hex(struct buf *b, uint64_t v, unsigned min_digits)
{
	unsigned digits = v ? (unsigned)(64 - __builtin_clzll(v) + 3) / 4 : 1;
	if (digits < min_digits)
		digits = min_digits;
	char *p = buf_room(b, digits);
	if (!p)
		return;
	for (unsigned i = digits; i-- > 0; v >>= 4)
		p[i] = hex_digits[v & 15];
	b->len += digits;
}

void buf_add_dec(struct buf *b, uint64_t v)
{
	char tmp[20];
	unsigned n = 0;
	do {
		tmp[sizeof(tmp) - ++n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	buf_add(b, tmp + sizeof(tmp) - n, n);
}

void buf_add_hexbytes(struct buf *b, const uint8_t *bytes, size_t len)
{
	char *p = len > SIZE_MAX / 2 ? NULL : buf_room(b, len * 2);
	if (!p)
		return;
	for (size_t i = 0; i < len; i++) {
		p[2 * i] = hex_digits[bytes[i] >> 4];
		p[2 * i + 1] = hex_digits[bytes[i] & 15];
	}
	b->len += len * 2;
}
