/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

size_t utf8_next(const char *s, size_t len, uint32_t *ret_cp)
{
	static const uint32_t min_cp[5] = {0, 0, 0x80, 0x800, 0x10000};
	if (!len)
		return 0;
	uint8_t lead = (uint8_t)s[0];
	if (lead < 0x80) {
		*ret_cp = lead;
		return 1;
	}
	size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	if (lead < 0xc2 || lead > 0xf4 || len < n)
		return 0;
	uint32_t cp = lead & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		uint8_t b = (uint8_t)s[i];
		if ((b & 0xc0u) != 0x80)
			return 0;
		cp = cp << 6 | (b & 0x3fu);
	}
	if (cp < min_cp[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret_cp = cp;
	return n;
}

size_t utf8_put(uint32_t cp, char *out)
{
	if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		cp = 0xfffd;
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		out[i] = (char)(0x80u | (cp & 0x3fu));
	out[0] = (char)((0xf00u >> n & 0xffu) | cp);
	return n;
}

#define EACH(ch) (0x0101010101010101u * (ch))

static bool is_plain(uint8_t ch)
{
	return ch >= 0x20 && ch < 0x7f && ch != '"' && ch != '\\';
}

/* The high bit of each of eight bytes that is below `n`, of bytes below 0x80. The lowest bit that is set tells the truth, those above
 * it may come of a borrow. */
static uint64_t below(uint64_t v, uint8_t n)
{
	return (v - EACH(n)) & EACH(0x80);
}

size_t utf8_plain_len(const char *s, size_t len)
{
	size_t i = 0;
	for (uint64_t v; len - i >= sizeof(v); i += sizeof(v)) {
		memcpy(&v, s + i, sizeof(v));
		v = le64toh(v);
		uint64_t found = (v & EACH(0x80)) | below(v, 0x20) | below(v ^ EACH('"'), 1) | below(v ^ EACH('\\'), 1) |
				 below(v ^ EACH(0x7f), 1);
		if (found)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < len && is_plain((uint8_t)s[i]))
		i++;
	return i;
}
