/* SPDX-License-Identifier: Apache-2.0 */
/* Fields, numbers, hex text and errors: what payloads are made of. And qSupported, which is made of them. */
#include "live/gdb/gdb_codec.h"

bool gdb_span_is(struct gdb_span s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.s, text, s.len);
}

bool gdb_span_starts(struct gdb_span s, const char *text)
{
	size_t len = strlen(text);
	return s.len >= len && !memcmp(s.s, text, len);
}

bool gdb_skip(struct gdb_span *s, const char *text)
{
	if (!gdb_span_starts(*s, text))
		return false;
	*s = gdb_span_make(s->s + strlen(text), s->len - strlen(text));
	return true;
}

bool gdb_split(struct gdb_span s, char sep, struct gdb_span *ret_key, struct gdb_span *ret_value)
{
	const char *at = s.len ? memchr(s.s, sep, s.len) : NULL;
	size_t key_len = at ? (size_t)(at - s.s) : s.len;
	*ret_key = gdb_span_make(s.s, key_len);
	*ret_value = at ? gdb_span_make(at + 1, s.len - key_len - 1) : gdb_span_make(s.s, 0);
	return at;
}

bool gdb_next_field(struct gdb_span *rest, char sep, struct gdb_span *ret)
{
	if (!rest->len)
		return false;
	struct gdb_span all = *rest;
	gdb_split(all, sep, ret, rest);
	return true;
}

bool gdb_find_pair(struct gdb_span pairs, const char *key, struct gdb_span *ret_value)
{
	struct gdb_span field, name;
	while (gdb_next_field(&pairs, ';', &field)) {
		if (gdb_split(field, ':', &name, ret_value) && gdb_span_is(name, key))
			return true;
	}
	return false;
}

static bool take_number(struct gdb_span *s, unsigned base, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;
	for (; i < s->len; i++) {
		int d = gdb_digit(s->s[i]);
		if (d < 0 || (unsigned)d >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, (unsigned)d, &v))
			return false;
	}
	if (!i)
		return false;
	*s = gdb_span_make(s->s + i, s->len - i);
	*ret = v;
	return true;
}

bool gdb_take_hex(struct gdb_span *s, uint64_t *ret)
{
	return take_number(s, 16, ret);
}

bool gdb_take_dec(struct gdb_span *s, uint64_t *ret)
{
	return take_number(s, 10, ret);
}

bool gdb_is_hex(struct gdb_span s, uint64_t *ret)
{
	return take_number(&s, 16, ret) && !s.len;
}

bool gdb_is_dec(struct gdb_span s, uint64_t *ret)
{
	return take_number(&s, 10, ret) && !s.len;
}

bool gdb_unhex(struct gdb_span hex, size_t max_len, struct buf *out)
{
	if (hex.len % 2 || hex.len / 2 > max_len)
		return false;
	char *p = buf_room(out, hex.len / 2);
	if (!p)
		return false;
	for (size_t i = 0; i < hex.len; i += 2) {
		int high = gdb_digit(hex.s[i]), low = gdb_digit(hex.s[i + 1]);
		if (high < 0 || low < 0)
			return false;
		*p++ = (char)(high << 4 | low);
	}
	out->len += hex.len / 2;
	return true;
}

static void put_printable(struct buf *out, struct gdb_span s)
{
	for (size_t i = 0; i < s.len; i++)
		buf_add_ch(out, s.s[i] >= ' ' && s.s[i] <= '~' ? s.s[i] : '?');
}

bool gdb_is_error(struct gdb_span reply, unsigned *ret_code, struct buf *text)
{
	uint64_t code = 0;
	if (gdb_skip(&reply, "E.")) {
		*ret_code = 0;
		if (text)
			put_printable(text, reply);
		return true;
	}
	if (reply.len < 3 || reply.s[0] != 'E' || (reply.len > 3 && reply.s[3] != ';') || !gdb_is_hex(gdb_span_make(reply.s + 1, 2), &code))
		return false;
	*ret_code = (unsigned)code;
	if (reply.len > 4 && text) {
		struct buf plain = {0};
		if (gdb_unhex(gdb_span_make(reply.s + 4, reply.len - 4), 4096, &plain))
			put_printable(text, gdb_span_make(plain.data, plain.len));
		buf_fini(&plain);
	}
	return true;
}

void gdb_features_read(struct gdb_span reply, struct gdb_features *ret)
{
	const struct {
		const char *name;
		bool *is_there;
	} known[] = {
		{"QStartNoAckMode+", &ret->has_noack},
		{"qEcho+", &ret->has_echo},
		{"multiprocess+", &ret->has_multiprocess},
		{"vContSupported+", &ret->has_vcont},
		{"swbreak+", &ret->has_swbreak},
		{"hwbreak+", &ret->has_hwbreak},
		{"qXfer:features:read+", &ret->has_target_xml},
		{"qXfer:auxv:read+", &ret->has_auxv},
		{"qXfer:libraries-svr4:read+", &ret->has_libraries_svr4},
		{"qXfer:exec-file:read+", &ret->has_exec_file},
		{"qXfer:memory-map:read+", &ret->has_memory_map},
		{"QPassSignals+", &ret->has_pass_signals},
		{"binary-upload+", &ret->has_binary_upload},
		{"QListThreadsInStopReply+", &ret->is_lldb},
		{"QThreadSuffixSupported+", &ret->is_lldb},
		{"scry+", &ret->is_scry},
		{"vFile:zread+", &ret->has_zread},
	};
	*ret = (struct gdb_features){0};
	struct gdb_span field, packet_size = {0};
	while (gdb_next_field(&reply, ';', &field)) {
		if (gdb_skip(&field, "PacketSize="))
			packet_size = field;
		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			*known[i].is_there |= gdb_span_is(field, known[i].name);
	}
	ret->is_lldb |= ret->has_echo; /* all that its platform mode says */
	uint64_t dec;
	if (!packet_size.s || !gdb_is_hex(packet_size, &ret->packet_len))
		ret->packet_len = 0;
	else if (ret->is_lldb && !ret->is_scry && gdb_is_dec(packet_size, &dec))
		ret->packet_len = dec;
}
