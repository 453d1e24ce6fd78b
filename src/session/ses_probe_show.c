/* SPDX-License-Identifier: Apache-2.0 */
/* Values as C writes them. All bytes are the traced program's. */
#include "session/ses_probe_int.h"

#include "session/ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHOW_ELEMENTS = 8, SHOW_LEN_MAX = 1024 };

static uint64_t cut(uint64_t v, unsigned bits, bool is_signed)
{
	if (bits >= 64 || !bits)
		return v;
	v <<= 64 - bits;
	return is_signed ? (uint64_t)((int64_t)v >> (64 - bits)) : v >> (64 - bits);
}

static void put_text(const uint8_t *s, size_t len, bool is_cut, struct buf *out)
{
	buf_add_ch(out, '"');
	size_t from = out->len;
	ops_escape(out, (const char *)s, len);
	/* Quotes of the text itself. */
	for (size_t i = from; i < out->len && !out->failed; i++) {
		if (out->data[i] != '"')
			continue;
		buf_add_ch(out, 0);
		if (out->failed)
			return;
		memmove(out->data + i + 1, out->data + i, out->len - 1 - i);
		out->data[i++] = '\\';
	}
	buf_add_str(out, is_cut ? "\"..." : "\"");
}

static void put_int(uint64_t v, bool is_signed, struct buf *out)
{
	/* Large numbers without a sign are masks and addresses more often than counts. */
	if (is_signed)
		buf_printf(out, "%" PRId64, (int64_t)v);
	else if (v >> 32)
		buf_printf(out, "0x%" PRIx64, v);
	else
		buf_printf(out, "%" PRIu64, v);
}

static void put_char(uint64_t v, struct buf *out)
{
	int64_t c = (int8_t)v;
	if (c >= ' ' && c < 0x7f && c != '\'' && c != '\\')
		buf_printf(out, "'%c'", (int)c);
	else
		buf_printf(out, "%" PRId64, c);
}

static void put_enum(const struct ses_show *t, uint64_t v, struct buf *out)
{
	int64_t now = (int64_t)cut(v, 8 * t->size, t->is_signed);
	for (uint32_t i = 0; i < t->cnt; i++) {
		if (t->values[i] == now && t->names[i]) {
			buf_add_str(out, t->names[i]);
			return;
		}
	}
	buf_printf(out, "%" PRId64, now);
}

static void put_float(const struct ses_show *t, uint64_t v, struct buf *out)
{
	double d;
	if (t->size == 4) {
		float f;
		uint32_t w = (uint32_t)v;
		memcpy(&f, &w, sizeof(f));
		d = (double)f;
	} else {
		memcpy(&d, &v, sizeof(d));
	}
	buf_printf(out, t->size == 4 ? "%.9g" : "%.17g", d);
}

static void put_scalar(const struct ses_show *t, uint64_t v, struct buf *out)
{
	switch (t->kind) {
	case SES_SHOW_INT:
		put_int(cut(v, 8 * t->size, t->is_signed), t->is_signed, out);
		break;
	case SES_SHOW_CHAR:
		put_char(v, out);
		break;
	case SES_SHOW_BOOL:
		buf_add_str(out, cut(v, 8, false) == 0 ? "false" : cut(v, 8, false) == 1 ? "true" : "true?");
		break;
	case SES_SHOW_ENUM:
		put_enum(t, v, out);
		break;
	case SES_SHOW_FLOAT:
		put_float(t, v, out);
		break;
	default:
		v = cut(v, 8 * t->size, false);
		if (v)
			buf_printf(out, "0x%" PRIx64, v);
		else
			buf_add_str(out, "NULL");
	}
}

static uint64_t read_bits(const uint8_t *p, size_t len)
{
	uint64_t v = 0;
	memcpy(&v, p, MIN(len, sizeof(v)));
	return v;
}

static void put_memory(const struct ses_show *t, const uint8_t *p, size_t len, size_t from, struct buf *out);

static void put_array(const struct ses_show *t, const uint8_t *p, size_t len, size_t from, struct buf *out)
{
	const struct ses_show *e = t->to;
	if (e && e->kind == SES_SHOW_CHAR) {
		size_t n = strnlen((const char *)p, len);
		put_text(p, n, false, out);
		return;
	}
	uint32_t cnt = e && e->size ? (uint32_t)MIN(len / e->size, t->cnt) : 0;
	buf_add_ch(out, '{');
	for (uint32_t i = 0; i < cnt && i < SHOW_ELEMENTS && out->len - from < SHOW_LEN_MAX; i++) {
		buf_add_str(out, i ? ", " : "");
		put_memory(e, p + (size_t)i * e->size, e->size, from, out);
	}
	buf_add_str(out, !cnt || cnt > SHOW_ELEMENTS ? cnt ? ", ...}" : "...}" : "}");
}

static void put_struct(const struct ses_show *t, const uint8_t *p, size_t len, size_t from, struct buf *out)
{
	bool is_first = true;
	buf_add_ch(out, '{');
	for (uint32_t i = 0; i < t->cnt; i++) {
		const struct ses_show_member *m = &t->members[i];
		uint32_t size = m->bit_len ? (m->bit_off + m->bit_len + 7u) / 8 : m->type ? m->type->size : 0;
		if (!m->type || !size || m->off > len || size > len - m->off)
			continue;
		if (out->len - from >= SHOW_LEN_MAX) {
			buf_add_str(out, is_first ? "..." : ", ...");
			break;
		}
		buf_add_str(out, is_first ? "" : ", ");
		is_first = false;
		if (m->name)
			buf_printf(out, ".%s=", m->name);
		if (m->bit_len)
			put_int(cut(read_bits(p + m->off, size) >> m->bit_off, m->bit_len, m->type->is_signed), m->type->is_signed, out);
		else
			put_memory(m->type, p + m->off, m->type->size, from, out);
	}
	buf_add_str(out, t->cnt ? "}" : "...}");
}

/* `from`: where the value begins in `out`, by which its length is bounded. Types are at most SHOW_DEPTH deep. */
static void put_memory(const struct ses_show *t, const uint8_t *p, size_t len, size_t from, struct buf *out)
{
	if (t->kind == SES_SHOW_ARRAY)
		put_array(t, p, len, from, out);
	else if (t->kind == SES_SHOW_STRUCT)
		put_struct(t, p, len, from, out);
	else
		put_scalar(t, read_bits(p, len), out);
}

void ses_show_value(const struct ses_show *t, uint64_t bits, const struct trace_slot *slot, struct buf *out)
{
	bool has_bytes = slot && (slot->status == TRACE_OK || slot->status == TRACE_TRUNCATED);
	if (!t || t->kind == SES_SHOW_NONE) {
		buf_printf(out, "0x%" PRIx64, bits);
	} else if (t->kind == SES_SHOW_TEXT && has_bytes) {
		put_text(slot->data, slot->len, slot->status == TRACE_TRUNCATED, out);
	} else if (t->kind == SES_SHOW_POINTER && t->to && has_bytes && slot->len >= t->to->size) {
		bool is_open = t->to->kind == SES_SHOW_STRUCT || t->to->kind == SES_SHOW_ARRAY;
		buf_add_str(out, is_open ? "" : "[");
		put_memory(t->to, slot->data, slot->len, out->len, out);
		buf_add_str(out, is_open ? "" : "]");
	} else if (t->kind == SES_SHOW_STRUCT || t->kind == SES_SHOW_ARRAY) {
		uint8_t bytes[8];
		memcpy(bytes, &bits, sizeof(bytes));
		put_memory(t, bytes, MIN(t->size, sizeof(bytes)), out->len, out);
	} else {
		put_scalar(t, bits, out);
	}
}
