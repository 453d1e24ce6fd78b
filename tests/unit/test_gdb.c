/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of the gdb remote protocol: captured packets, and properties over made-up ones. */
#include "live/gdb/gdb_codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t rng_state = 88172645463325252u;

static unsigned rng(unsigned below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (unsigned)(rng_state >> 20) % below;
}

static struct gdb_span span(const char *s)
{
	return gdb_span_make(s, strlen(s));
}

/* Bytes of which many need escaping or come in runs. */
static void make_bytes(uint8_t *p, size_t len)
{
	static const uint8_t odd[] = {'#', '$', '}', '*', 3, '+', '-', 0, 255, ']', '%'};
	unsigned kind = rng(3);
	for (size_t i = 0; i < len;) {
		uint8_t b = rng(4) || !kind ? (uint8_t)rng(256) : odd[rng(sizeof(odd))];
		for (unsigned n = kind == 2 && !rng(6) ? 1 + rng(300) : 1; n && i < len; n--)
			p[i++] = b;
	}
}

static void expand_is(const char *raw, size_t raw_len, const char *plain, size_t plain_len)
{
	struct buf out = {0};
	assert_int_equal(gdb_expand_buf((const uint8_t *)raw, raw_len, true, 1000, &out), GDB_EXPAND_OK);
	assert_int_equal(out.len, plain_len);
	assert_memory_equal(out.data, plain, plain_len);
	buf_fini(&out);
}
#define EXPAND_IS(raw, plain) expand_is(raw, sizeof(raw) - 1, plain, sizeof(plain) - 1)

static void test_captured(void **state)
{
	(void)state;
	/* gdbserver: the repeated byte is the raw one, before the escape is undone. */
	EXPAND_IS("AB}\x03*%CD", "AB#\x03\x03\x03\x03\x03\x03\x03\x03" "CD");
	EXPAND_IS("F4* ;", "F4444;");
	EXPAND_IS("0* ", "0000");
	EXPAND_IS("a*}b", "a" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" "b");
	EXPAND_IS("a*!* ", "aaaaaaaa");
	EXPAND_IS("}]x}\x0a", "}x*");
	struct buf out = {0};
	static const char *const bad[] = {"*!", "a*", "a*\x1f", "a*\x7f", "a}", "}", "a}*"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(gdb_expand_buf((const uint8_t *)bad[i], strlen(bad[i]), true, 1000, &out), GDB_EXPAND_BAD);
	/* A request has no runs: its `*` is a `*`. */
	assert_int_equal(gdb_expand_buf((const uint8_t *)"a*b", 3, false, 3, &out), GDB_EXPAND_OK);
	assert_memory_equal(out.data, "a*b", 3);
	assert_int_equal(gdb_expand_buf((const uint8_t *)"a*~a*~", 6, true, 100, &out), GDB_EXPAND_LIMIT);
	buf_fini(&out);
	gdb_put(&out, "QStartNoAckMode");
	gdb_put(&out, "OK");
	assert_int_equal(out.len, 25);
	assert_memory_equal(out.data, "$QStartNoAckMode#b0$OK#9a", 25);
	buf_fini(&out);
}

static void test_escapes_come_back(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		size_t len = round < 100 ? round : rng(200000);
		uint8_t *bytes = malloc(len ? len : 1), *back = malloc(len ? len : 1);
		assert_true(bytes && back);
		make_bytes(bytes, len);
		struct buf out = {0};
		gdb_escape(&out, bytes, len);
		for (size_t i = 0; i < out.len; i++)
			assert_false(out.data[i] == '#' || out.data[i] == '$' || out.data[i] == '*');
		size_t back_len, fit_len = gdb_escape_fit(bytes, len, out.len / 2);
		assert_int_equal(gdb_expand((const uint8_t *)out.data, out.len, round % 2, back, len, &back_len), GDB_EXPAND_OK);
		assert_int_equal(back_len, len);
		assert_memory_equal(back, bytes, len);
		struct buf fit = {0};
		gdb_escape(&fit, bytes, fit_len);
		assert_true(fit.len <= out.len / 2 && (fit_len == len || fit.len + 2 > out.len / 2));
		buf_fini(&fit);
		buf_fini(&out);
		free(bytes);
		free(back);
	}
}

/* Run lengths as gdbserver makes them: after escaping, never a count that reads as `#`, `$`, `+` or `-`. */
static void put_runs(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = 1;
		while (i + n < len && s[i + n] == s[i] && n < 98)
			n++;
		while (n > 3 && strchr("#$+-", (int)(n - 1 + 29)))
			n--;
		buf_add_ch(out, s[i]);
		if (n > 3) {
			buf_add_ch(out, '*');
			buf_add_ch(out, (char)(n - 1 + 29));
			i += n;
		} else {
			i++;
		}
	}
}

static void test_runs_come_back(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		size_t len = rng(5000);
		uint8_t *bytes = malloc(len + 1);
		assert_non_null(bytes);
		make_bytes(bytes, len);
		struct buf escaped = {0}, out = {0}, back = {0};
		gdb_escape(&escaped, bytes, len);
		put_runs(&out, escaped.data, escaped.len);
		assert_int_equal(gdb_expand_buf((const uint8_t *)out.data, out.len, true, len, &back), GDB_EXPAND_OK);
		assert_int_equal(back.len, len);
		assert_true(!len || !memcmp(back.data, bytes, len));
		buf_fini(&escaped);
		buf_fini(&out);
		buf_fini(&back);
		free(bytes);
	}
}

/* Whatever the pieces in which a stream comes, the items are the same. */
static void test_streams_in_pieces(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct buf in = {0}, want = {0}, got = {0};
		for (unsigned i = 0; i < 20; i++) {
			uint8_t bytes[600];
			size_t len = rng(sizeof(bytes)), start;
			switch (rng(6)) {
			case 0:
				buf_add_str(&in, "+-\x03\r\n");
				buf_add_str(&want, "+-!");
				break;
			case 1:
				buf_add_str(&in, "$bad#00%no#zz");
				buf_add_str(&want, "xx");
				break;
			case 2:
				buf_add_str(&in, "%Stop:T05#");
				buf_add_hex(&in, gdb_sum((const uint8_t *)"Stop:T05", 8), 2);
				buf_add_str(&want, "%8");
				break;
			default:
				make_bytes(bytes, len);
				start = gdb_begin(&in);
				gdb_escape(&in, bytes, len);
				buf_printf(&want, "$%zu", in.len - start - 1);
				gdb_end(&in, start);
			}
		}
		struct gdb_decoder d = {0};
		for (size_t i = 0; i < in.len;) {
			size_t n = 1 + rng(round % 2 ? 7 : 700);
			n = n < in.len - i ? n : in.len - i;
			memcpy(gdb_decoder_room(&d, n), in.data + i, n);
			gdb_decoder_filled(&d, n);
			i += n;
			struct gdb_packet p;
			for (enum gdb_item item; (item = gdb_decoder_next(&d, &p)) != GDB_MORE;) {
				assert_int_not_equal(item, GDB_TOO_LONG);
				buf_add_ch(&got, " $%+-!x "[item]);
				if (item == GDB_PACKET || item == GDB_NOTIFICATION)
					buf_printf(&got, "%zu", p.raw_len);
			}
		}
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.data, want.data, got.len);
		gdb_decoder_fini(&d);
		buf_fini(&in);
		buf_fini(&want);
		buf_fini(&got);
	}
}

static enum gdb_item feed(struct gdb_decoder *d, const char *s, struct gdb_packet *p)
{
	uint8_t *room = gdb_decoder_room(d, strlen(s));
	if (!room)
		return GDB_TOO_LONG;
	memcpy(room, s, strlen(s));
	gdb_decoder_filled(d, strlen(s));
	return gdb_decoder_next(d, p);
}

static void test_limits(void **state)
{
	(void)state;
	struct gdb_packet p;
	struct gdb_decoder d = {.max_raw_len = 8};
	assert_int_equal(feed(&d, "$12345678#", &p), GDB_MORE);
	assert_int_equal(feed(&d, "a4", &p), GDB_PACKET);
	assert_int_equal(p.raw_len, 8);
	assert_int_equal(feed(&d, "$123456789", &p), GDB_TOO_LONG);
	assert_int_equal(feed(&d, "$OK#9a", &p), GDB_TOO_LONG);
	gdb_decoder_fini(&d);
	/* Without acks nobody can ask again, and some do not count; with them a wrong sum is one. */
	d = (struct gdb_decoder){.is_noack = true};
	assert_int_equal(feed(&d, "$OK#00", &p), GDB_PACKET);
	assert_int_equal(feed(&d, "$OK#9b", &p), GDB_BAD_SUM);
	gdb_decoder_fini(&d);
	assert_int_equal(feed(&d, "$OK#00", &p), GDB_BAD_SUM);
	assert_int_equal(feed(&d, "$OK#9A", &p), GDB_PACKET);
	gdb_decoder_fini(&d);
}

static void test_vfile_requests(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		struct gdb_vfile req;
	} rows[] = {
		{"vFile:open:2f62696e2f6c73,0,180", {.op = GDB_VFILE_OPEN, .mode = 0x180, .path = "/bin/ls"}},
		{"vFile:open:61,40000601,1b6", {.op = GDB_VFILE_OPEN, .flags = 0x40000601, .mode = 0x1b6, .path = "a"}},
		{"vFile:close:7", {.op = GDB_VFILE_CLOSE, .fd = 7}},
		{"vFile:pread:b,80000,100000000", {.op = GDB_VFILE_PREAD, .fd = 11, .count = 0x80000, .off = 1ull << 32}},
		{"vFile:zread:b,ffffffffffffffff,0", {.op = GDB_VFILE_ZREAD, .fd = 11, .count = UINT64_MAX}},
		{"vFile:pwrite:b,10,a,b", {.op = GDB_VFILE_PWRITE, .fd = 11, .off = 16, .data = {"a,b", 3}}},
		{"vFile:pwrite:b,10,", {.op = GDB_VFILE_PWRITE, .fd = 11, .off = 16}},
		{"vFile:fstat:3", {.op = GDB_VFILE_FSTAT, .fd = 3}},
		{"vFile:MD5:2f61", {.op = GDB_VFILE_MD5, .path = "/a"}},
		{"vFile:symlink:61,62", {.op = GDB_VFILE_SYMLINK, .path = "a", .path2 = "b"}},
		{"vFile:setfs:0", {.op = GDB_VFILE_SETFS}},
	};
	struct gdb_vfile req;
	bool is_known;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct gdb_vfile *want = &rows[i].req;
		assert_true(gdb_vfile_read(span(rows[i].text), &req, &is_known) && is_known);
		assert_int_equal(req.op, want->op);
		assert_true(req.fd == want->fd && req.count == want->count && req.off == want->off);
		assert_true(req.flags == want->flags && req.mode == want->mode);
		assert_string_equal(req.path, want->path);
		assert_string_equal(req.path2, want->path2);
		assert_int_equal(req.data.len, want->data.len);
		assert_true(!req.data.len || !memcmp(req.data.s, want->data.s, req.data.len));
		struct buf out = {0};
		gdb_vfile_put(&out, want);
		assert_int_equal(out.len, strlen(rows[i].text));
		assert_memory_equal(out.data, rows[i].text, out.len);
		buf_fini(&out);
	}
	static const char *const bad[] = {
		"vFile:open:2f6,0,0", "vFile:open:,0,0",   "vFile:open:2f00,0,0",	       "vFile:open:2f,0",	     "vFile:pread:1,2",
		"vFile:pread:x,1,1",  "vFile:close:1,2", "vFile:pread:1,2,10000000000000000", "vFile:open:2f,100000000,0", "vFile:fstat"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_true(!gdb_vfile_read(span(bad[i]), &req, &is_known) && is_known);
	assert_true(!gdb_vfile_read(span("vFile:frob:1"), &req, &is_known) && !is_known);
	assert_true(!gdb_vfile_read(span("vCont?"), &req, &is_known) && !is_known);
}

static void test_vfile_replies(void **state)
{
	(void)state;
	struct gdb_vfile_reply r;
	assert_true(gdb_vfile_reply_read(span("F5"), &r) && r.result == 5 && !r.has_data);
	assert_true(gdb_vfile_reply_read(span("F3;a;b"), &r) && r.result == 3 && gdb_span_is(r.data, "a;b"));
	assert_true(gdb_vfile_reply_read(span("F0;"), &r) && r.has_data && !r.data.len);
	assert_true(gdb_vfile_reply_read(span("F-1,d"), &r) && r.result == -1 && gdb_errno_read(r.gdb_errno) == EACCES);
	assert_true(gdb_vfile_reply_read(span("F0000000006404098"), &r) && r.result == 0x6404098);
	assert_true(gdb_vfile_reply_read(span("Z10;xyz"), &r) && r.is_compressed && r.result == 16);
	static const char *const bad[] = {"", "E05", "F", "F,1", "F-", "Fffffffffffffffff", "F1,", "F1x", "F1,2x;a"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(gdb_vfile_reply_read(span(bad[i]), &r));
	for (int e = 1; e < 134; e++)
		assert_int_equal(gdb_errno_read(gdb_errno_put(e)), e == 91 || e == 88 ? gdb_errno_read((unsigned)e) : e);
	assert_int_equal(gdb_errno_read(9999), EIO);
	struct buf out = {0};
	gdb_vfile_reply_put(&out, -1, ENAMETOOLONG);
	buf_add_ch(&out, ' ');
	gdb_vfile_reply_put(&out, 0x1ff, 0);
	assert_int_equal(out.len, 11);
	assert_memory_equal(out.data, "F-1,5b F1ff", 11);
	buf_fini(&out);
	/* As lldb-server sends 33d96bcdc748f8c937800cae29ef8d06. */
	static const uint8_t md5[16] = {0x33, 0xd9, 0x6b, 0xcd, 0xc7, 0x48, 0xf8, 0xc9, 0x37, 0x80, 0x0c, 0xae, 0x29, 0xef, 0x8d, 0x06};
	uint8_t got[16];
	assert_true(gdb_md5_read(span("F,c9f848c7cd6bd933068def29ae0c8037"), got));
	assert_memory_equal(got, md5, 16);
	gdb_md5_put(&out, md5);
	assert_memory_equal(out.data, "F,c9f848c7cd6bd933068def29ae0c8037", 34);
	buf_fini(&out);
	assert_false(gdb_md5_read(span("F,x"), got));
	uint8_t bytes[GDB_STAT_LEN];
	struct gdb_stat st = {.mode = 0100755, .size = 104874136, .mtime = 1700000000}, back;
	gdb_stat_put(bytes, &st);
	assert_true(gdb_stat_read(gdb_span_make(bytes, sizeof(bytes)), &back));
	assert_true(back.mode == st.mode && back.size == st.size && back.mtime == st.mtime);
	assert_false(gdb_stat_read(gdb_span_make(bytes, sizeof(bytes) - 1), &back));
}

static void test_pieces(void **state)
{
	(void)state;
	struct gdb_features f;
	gdb_features_read(span("PacketSize=131072;QStartNoAckMode+;QThreadSuffixSupported+;QListThreadsInStopReply+;qEcho+"), &f);
	assert_true(f.packet_len == 131072 && f.is_lldb && f.has_noack && f.has_echo && !f.is_scry);
	gdb_features_read(span("PacketSize=47ff;QProgramSignals+;QStartNoAckMode+;multiprocess+;vContSupported+"), &f);
	assert_true(f.packet_len == 0x47ff && !f.is_lldb && f.has_vcont && f.has_multiprocess);
	gdb_features_read(span("PacketSize=20000;QListThreadsInStopReply+;scry+;vFile:zread+"), &f);
	assert_true(f.packet_len == 0x20000 && f.is_scry && f.has_zread);
	gdb_features_read(span("PacketSize=zz;multiprocess-"), &f);
	assert_true(!f.packet_len && !f.has_multiprocess);

	struct gdb_span value;
	assert_true(gdb_find_pair(span("pid:12;port:345;"), "port", &value) && gdb_span_is(value, "345"));
	assert_false(gdb_find_pair(span("pid:12;port:345;"), "por", &value));
	uint64_t v;
	assert_true(gdb_is_hex(span("00000000000000000ff"), &v) && v == 255);
	assert_false(gdb_is_hex(span("10000000000000000"), &v));
	assert_false(gdb_is_hex(span(""), &v));
	assert_true(gdb_is_dec(span("18446744073709551615"), &v) && v == UINT64_MAX);
	assert_false(gdb_is_dec(span("18446744073709551616"), &v));
	assert_false(gdb_is_dec(span("1a"), &v));

	unsigned code;
	struct buf text = {0};
	assert_true(gdb_is_error(span("E44;6e6f0a706521"), &code, &text) && code == 0x44);
	assert_memory_equal(text.data, "no?pe!", 6);
	assert_false(gdb_is_error(span("E4"), &code, NULL));
	assert_false(gdb_is_error(span("E445"), &code, NULL));
	assert_true(gdb_is_error(span("E.why"), &code, NULL));
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captured),	   cmocka_unit_test(test_escapes_come_back), cmocka_unit_test(test_runs_come_back),
		cmocka_unit_test(test_streams_in_pieces),  cmocka_unit_test(test_limits),	     cmocka_unit_test(test_vfile_requests),
		cmocka_unit_test(test_vfile_replies),	   cmocka_unit_test(test_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
