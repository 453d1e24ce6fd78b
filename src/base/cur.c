/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cur.h"

#include <string.h>

uint64_t cur_uleb(struct cur *c)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		const uint8_t *p = cur_bytes(c, 1);
		if (!p)
			return 0;
		uint64_t low = *p & 0x7fu;
		if (shift >= 64 ? low != 0 : (low << shift) >> shift != low) {
			c->failed = true;
			return 0;
		}
		if (shift < 64)
			value |= low << shift;
		if (!(*p & 0x80u))
			return value;
		if (shift > 140) { /* padding without end */
			c->failed = true;
			return 0;
		}
	}
}

int64_t cur_sleb(struct cur *c)
{
	uint64_t value = 0;
	unsigned shift = 0;
	for (;;) {
		const uint8_t *p = cur_bytes(c, 1);
		if (!p)
			return 0;
		if (shift < 64)
			value |= (uint64_t)(*p & 0x7fu) << shift;
		shift += 7;
		if (!(*p & 0x80u)) {
			if (shift < 64 && (*p & 0x40u))
				value |= ~(uint64_t)0 << shift;
			return (int64_t)value;
		}
		if (shift > 140) {
			c->failed = true;
			return 0;
		}
	}
}

const char *cur_str(struct cur *c, size_t *ret_len)
{
	size_t left = cur_left(c);
	const uint8_t *start = left ? c->base + c->pos : NULL;
	const uint8_t *nul = left ? memchr(start, 0, left) : NULL;
	if (!nul) {
		c->failed = true;
		return NULL;
	}
	*ret_len = (size_t)(nul - start);
	c->pos += *ret_len + 1;
	return (const char *)start;
}
