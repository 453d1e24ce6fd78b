/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings are scanned for the next byte that needs care and the run before it is copied whole; most
 * values (mnemonics, names) are one run.
 */
#include "base/json.h"

#include "base/utf8.h"

static void json_escape(struct buf *out, uint8_t ch)
{
	switch (ch) {
	case '"':
		buf_add(out, "\\\"", 2);
		break;
	case '\\':
		buf_add(out, "\\\\", 2);
		break;
	case '\n':
		buf_add(out, "\\n", 2);
		break;
	case '\t':
		buf_add(out, "\\t", 2);
		break;
	case '\r':
		buf_add(out, "\\r", 2);
		break;
	default:
		buf_add(out, "\\u00", 4);
		buf_add_hex(out, ch, 2);
	}
}

void json_strn(struct json *j, const char *s, size_t len)
{
	json_sep(j);
	buf_add_ch(j->out, '"');
	while (len) {
		size_t n = utf8_plain_len(s, len);
		if (n) {
			buf_add(j->out, s, n);
		} else if ((uint8_t)*s < 0x80) {
			json_escape(j->out, (uint8_t)*s);
			n = 1;
		} else {
			uint32_t cp;
			n = utf8_next(s, len, &cp);
			/* A terminal obeys U+0080..9f as it does what is below 0x20. */
			if (n && cp < 0xa0)
				buf_printf(j->out, "\\u%04x", cp);
			else if (n)
				buf_add(j->out, s, n);
			else
				buf_add(j->out, "\xef\xbf\xbd", 3);
			n = n ? n : 1;
		}
		s += n;
		len -= n;
	}
	buf_add_ch(j->out, '"');
}

void json_i64(struct json *j, int64_t v)
{
	json_sep(j);
	if (v < 0)
		buf_add_ch(j->out, '-');
	buf_add_dec(j->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
