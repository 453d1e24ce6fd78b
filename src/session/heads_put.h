/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_HEADS_PUT_H
#define SESSION_HEADS_PUT_H

#include "session/session.h"

#include <string.h>

/* Private to the listing: texts of bounded room. */

/* A bounded text being written; what does not fit is dropped whole. */
struct put {
	char *s;
	uint32_t len, cap;
};

static inline void put_n(struct put *p, const char *s, size_t len)
{
	if (len <= p->cap - p->len) {
		memcpy(p->s + p->len, s, len);
		p->len += (uint32_t)len;
	}
}

static inline void put_s(struct put *p, const char *s)
{
	put_n(p, s, strlen(s));
}

/* As much of it as there is room for, whole characters, and "..." where it was cut. */
static inline void put_cut(struct put *p, struct ses_text t)
{
	uint32_t room = p->cap - p->len, len = t.len;
	if (len > room) {
		len = room > 3 ? room - 3 : 0;
		while (len && ((uint8_t)t.s[len] & 0xc0) == 0x80)
			len--;
	}
	put_n(p, t.s, len);
	if (len < t.len)
		put_s(p, "...");
}

static inline void put_hex(struct put *p, uint64_t v)
{
	char tmp[18];
	unsigned n = 0;
	do {
		tmp[17 - n++] = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	tmp[17 - n++] = 'x';
	tmp[17 - n++] = '0';
	put_n(p, tmp + 18 - n, n);
}

static inline void put_dec(struct put *p, uint64_t v)
{
	char tmp[20];
	unsigned n = 0;
	do {
		tmp[19 - n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	put_n(p, tmp + 20 - n, n);
}

/* "text" in quotes with escapes, and "..." after the quote when it is longer than `max` characters' room. `encoding`: enum
 * image_encoding. */
void heads_put_literal(struct put *p, const uint8_t *b, uint32_t len, uint32_t encoding, uint32_t max);

#endif
