/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: what the target decides made safe to show, its width, and errors. */
#include "session/ops.h"

#include "base/utf8.h"

#include <string.h>
#include <unistd.h>

static void ops_escape_byte(struct buf *out, uint8_t ch)
{
	switch (ch) {
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
		buf_add(out, "\\x", 2);
		buf_add_hex(out, ch, 2);
	}
}

/* C1 controls, bidirectional overrides and the like would let a name rewrite the line it stands in. */
static bool ops_is_unsafe(uint32_t cp)
{
	return cp < 0xa0 || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xe0000 && cp <= 0xe0fff);
}

void ops_escape(struct buf *out, const char *s, size_t len)
{
	while (len) {
		size_t n = 0;
		while (n < len && (uint8_t)s[n] >= 0x20 && (uint8_t)s[n] < 0x7f)
			n++;
		buf_add(out, s, n);
		s += n;
		len -= n;
		if (!len)
			break;
		uint32_t cp;
		n = (uint8_t)*s < 0x80 ? 0 : utf8_next(s, len, &cp);
		if (n && !ops_is_unsafe(cp))
			buf_add(out, s, n);
		else if (n)
			buf_printf(out, "\\u{%x}", cp);
		else
			ops_escape_byte(out, (uint8_t)*s);
		n = n ? n : 1;
		s += n;
		len -= n;
	}
}

int ops_fail(struct err *e, const char *what)
{
	const char *text = e->text ? e->text : err_kind_name(e->kind);
	struct buf out = {0};
	buf_add_str(&out, "scry: ");
	if (what) {
		ops_escape(&out, what, strlen(what));
		buf_add_str(&out, ": ");
	}
	ops_escape(&out, text, strlen(text));
	if (e->fix) {
		buf_add_str(&out, "\n  ");
		ops_escape(&out, e->fix, strlen(e->fix));
	}
	buf_add_ch(&out, '\n');
	if (!out.failed)
		(void)!write(STDERR_FILENO, out.data, out.len);
	buf_fini(&out);
	int status = e->kind == ERR_DENIED && e->os_errno ? 4 : err_exit_status(e->kind);
	err_free(e);
	return status;
}

/* Unicode 15 East Asian Wide and Fullwidth, by block. */
static bool ops_is_wide(uint32_t cp)
{
	return cp >= 0x1100 && (cp <= 0x115f || (cp >= 0x2e80 && cp <= 0xa4cf) || (cp >= 0xac00 && cp <= 0xd7a3) ||
				(cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0xfe30 && cp <= 0xfe6f) ||
				(cp >= 0xff00 && cp <= 0xff60) || (cp >= 0xffe0 && cp <= 0xffe6) ||
				(cp >= 0x1f300 && cp <= 0x1faff) || (cp >= 0x20000 && cp <= 0x3fffd));
}

uint32_t ops_text_width(const char *s, size_t len)
{
	uint32_t width = 0;
	while (len) {
		uint32_t cp = 0;
		size_t n = (uint8_t)*s < 0x80 ? 1 : utf8_next(s, len, &cp);
		width += ops_is_wide(cp) ? 2 : 1;
		n = n ? n : 1;
		s += n;
		len -= n;
	}
	return width;
}
