/* SPDX-License-Identifier: Apache-2.0 */
#include "base/md5.h"

#include "base/cleanup.h"

#include <string.h>

/* RFC 1321, 3.4: 2^32 * abs(sin(i + 1)). */
static const uint32_t md5_sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
	0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
	0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
	0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
	0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static uint32_t rotated(uint32_t v, unsigned bits)
{
	return v << bits | v >> (32 - bits);
}

/* One step, and the four words move on by one place. `f` is the round's function of b, c and d. */
#define STEP(f, i, word, bits)                                                \
	do {                                                                  \
		uint32_t t_ = a + (f) + md5_sines[i] + w[(word) & 15];        \
		a = d;                                                        \
		d = c;                                                        \
		c = b;                                                        \
		b += rotated(t_, bits);                                       \
	} while (0)

static void md5_block(uint32_t state[4], const uint8_t *p)
{
	static const uint8_t turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
	uint32_t w[16], a = state[0], b = state[1], c = state[2], d = state[3];
	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 3] << 24;
#pragma GCC unroll 16
	for (unsigned i = 0; i < 16; i++)
		STEP((b & c) | (~b & d), i, i, turns[0][i & 3]);
#pragma GCC unroll 16
	for (unsigned i = 0; i < 16; i++)
		STEP((b & d) | (c & ~d), 16 + i, 5 * i + 1, turns[1][i & 3]);
#pragma GCC unroll 16
	for (unsigned i = 0; i < 16; i++)
		STEP(b ^ c ^ d, 32 + i, 3 * i + 5, turns[2][i & 3]);
#pragma GCC unroll 16
	for (unsigned i = 0; i < 16; i++)
		STEP(c ^ (b | ~d), 48 + i, 7 * i, turns[3][i & 3]);
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

void md5_begin(struct md5 *m)
{
	*m = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void md5_add(struct md5 *m, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	size_t held = m->len % 64;
	m->len += len;
	if (held) {
		size_t n = MIN(len, 64 - held);
		memcpy(m->block + held, p, n);
		p += n;
		len -= n;
		if (held + n < 64)
			return;
		md5_block(m->state, m->block);
	}
	for (; len >= 64; p += 64, len -= 64)
		md5_block(m->state, p);
	if (len)
		memcpy(m->block, p, len);
}

void md5_end(struct md5 *m, uint8_t ret[16])
{
	static const uint8_t pad[64] = {0x80};
	uint8_t bits[8];
	for (unsigned i = 0; i < 8; i++)
		bits[i] = (uint8_t)(m->len << 3 >> (8 * i));
	md5_add(m, pad, 1 + (119 - m->len % 64) % 64);
	md5_add(m, bits, 8);
	for (unsigned i = 0; i < 16; i++)
		ret[i] = (uint8_t)(m->state[i / 4] >> (8 * (i % 4)));
}
