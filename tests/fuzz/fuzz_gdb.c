/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec of the gdb remote protocol. `q` and a payload: a request. `r` and a payload: a reply. `s`, a byte that chooses how the stream is cut and
 * what was agreed, and a stream. Expanding agrees with the definition, done a byte at a time in two steps; what is escaped comes back.
 */
#include "fuzz.h"

#include "live/gdb/gdb_codec.h"

#include <stdlib.h>
#include <string.h>

/* Run lengths first, then escapes. */
static bool expand_plainly(const uint8_t *raw, size_t len, bool has_runs, struct buf *out)
{
	struct buf step = {0};
	bool is_good = true, is_escaped = false;
	for (size_t i = 0; i < len && is_good; i++) {
		if (!has_runs || raw[i] != '*') {
			buf_add_ch(&step, (char)raw[i]);
			continue;
		}
		is_good = step.len && i + 1 < len && raw[i + 1] >= 32 && raw[i + 1] <= 126;
		for (int n = is_good ? raw[++i] - 29 : 0; n > 0; n--)
			buf_add_ch(&step, step.data[step.len - 1]);
	}
	for (size_t i = 0; i < step.len; i++) {
		if (!is_escaped && step.data[i] == '}') {
			is_escaped = true;
			continue;
		}
		buf_add_ch(out, (char)(is_escaped ? step.data[i] ^ 0x20 : step.data[i]));
		is_escaped = false;
	}
	buf_fini(&step);
	return is_good && !is_escaped;
}

static void read_request(struct gdb_span payload)
{
	struct gdb_vfile req, again;
	bool is_known;
	if (!gdb_vfile_read(payload, &req, &is_known))
		return;
	struct buf out = {0}, plain = {0};
	gdb_vfile_put(&out, &req);
	if (gdb_expand_buf((const uint8_t *)out.data, out.len, false, out.len, &plain) != GDB_EXPAND_OK ||
	    !gdb_vfile_read(gdb_span_make(plain.data, plain.len), &again, &is_known) || again.op != req.op || again.fd != req.fd ||
	    again.count != req.count || again.off != req.off || again.flags != req.flags || again.mode != req.mode || strcmp(again.path, req.path) ||
	    strcmp(again.path2, req.path2) || again.data.len != req.data.len || memcmp(again.data.s, req.data.s, req.data.len))
		abort();
	buf_fini(&out);
	buf_fini(&plain);
}

static void read_reply(struct gdb_span payload)
{
	struct gdb_vfile_reply reply;
	struct gdb_features features;
	struct gdb_stat st;
	struct gdb_span value;
	struct buf text = {0};
	uint8_t md5[16];
	unsigned code;
	if (gdb_vfile_reply_read(payload, &reply) && gdb_stat_read(reply.data, &st)) {
		uint8_t bytes[GDB_STAT_LEN];
		gdb_stat_put(bytes, &st);
		if (memcmp(bytes, reply.data.s, GDB_STAT_LEN))
			abort();
	}
	gdb_errno_read(reply.gdb_errno);
	gdb_md5_read(payload, md5);
	gdb_is_error(payload, &code, &text);
	gdb_find_pair(payload, "port", &value);
	gdb_features_read(payload, &features);
	buf_fini(&text);
}

/* A raw payload in memory that ends where it ends. Gives whether it was well-formed. */
static bool payload(const uint8_t *bytes, size_t len, bool is_reply)
{
	uint8_t *raw = malloc(len ? len : 1);
	if (!raw)
		return false;
	memcpy(raw, bytes, len);
	struct buf fast = {0}, plain = {0};
	bool is_good = expand_plainly(raw, len, is_reply, &plain);
	enum gdb_expand how = gdb_expand_buf(raw, len, is_reply, 1 << 20, &fast);
	if (how == GDB_EXPAND_LIMIT ? plain.len <= 1 << 20 && is_good : is_good != (how == GDB_EXPAND_OK))
		abort();
	if (how == GDB_EXPAND_OK) {
		if (fast.len != plain.len || (fast.len && memcmp(fast.data, plain.data, fast.len)))
			abort();
		/* Just enough room is enough, a byte less is not. */
		uint8_t *exact = malloc(fast.len ? fast.len : 1);
		size_t exact_len;
		if (exact && (gdb_expand(raw, len, is_reply, exact, fast.len, &exact_len) != GDB_EXPAND_OK || exact_len != fast.len ||
			      (fast.len && gdb_expand(raw, len, is_reply, exact, fast.len - 1, &exact_len) == GDB_EXPAND_OK)))
			abort();
		if (exact && fast.len)
			(is_reply ? read_reply : read_request)(gdb_span_make(exact, fast.len));
		free(exact);
		struct buf escaped = {0};
		gdb_escape(&escaped, fast.data, fast.len);
		plain.len = 0;
		if (gdb_expand_buf((const uint8_t *)escaped.data, escaped.len, true, fast.len, &plain) != GDB_EXPAND_OK || plain.len != fast.len ||
		    (plain.len && memcmp(plain.data, fast.data, plain.len)) || gdb_escape_fit(fast.data, fast.len, escaped.len) != fast.len)
			abort();
		buf_fini(&escaped);
	}
	buf_fini(&fast);
	buf_fini(&plain);
	free(raw);
	return how == GDB_EXPAND_OK;
}

static void stream(const uint8_t *bytes, size_t len, uint8_t how)
{
	struct gdb_decoder d = {.max_raw_len = how & 2 ? 64 : 0, .is_noack = how & 1};
	size_t step_len = (size_t)(how >> 2) + 1;
	for (size_t i = 0; i < len; i += step_len) {
		size_t n = len - i < step_len ? len - i : step_len;
		uint8_t *room = gdb_decoder_room(&d, n);
		if (!room)
			break;
		memcpy(room, bytes + i, n);
		gdb_decoder_filled(&d, n);
		struct gdb_packet p;
		enum gdb_item item;
		while ((item = gdb_decoder_next(&d, &p)) != GDB_MORE && item != GDB_TOO_LONG) {
			if (item == GDB_PACKET || item == GDB_NOTIFICATION)
				*(payload(p.raw, p.raw_len, true) ? &fuzz_accepted : &fuzz_rejected) += 1;
			fuzz_rejected += item == GDB_BAD_SUM;
		}
	}
	gdb_decoder_fini(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len > 2 && bytes[0] == 's')
		stream(bytes + 2, len - 2, bytes[1]);
	else if (len)
		*(payload(bytes + 1, len - 1, bytes[0] != 'q') ? &fuzz_accepted : &fuzz_rejected) += 1;
	return 0;
}
