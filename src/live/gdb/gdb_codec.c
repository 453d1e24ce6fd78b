/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing, run lengths and escapes. What decides the speed of a transfer is how bytes that need nothing are passed on: 16 at a time,
 * stored before it is known whether one of them is special. Of real machine code about 2 % of the bytes are.
 */
#include "live/gdb/gdb_codec.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BLOCK_LEN 16
#define ESCAPE '}'
#define RUN '*'
/* A run of a character is written with its further repetitions plus this, so that the count is printable. */
#define RUN_BIAS 29

/* --- blocks of 16 --- */

#ifdef __SSE2__
/* Copies a block; gives a bit for each byte of it that a sender has to escape. */
static inline unsigned copy_special(uint8_t *dst, const uint8_t *src)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)src);
	_mm_storeu_si128((__m128i *)(void *)dst, v);
	__m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('#')), _mm_cmpeq_epi8(v, _mm_set1_epi8('$'))),
				   _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(ESCAPE)), _mm_cmpeq_epi8(v, _mm_set1_epi8(RUN))));
	return (unsigned)_mm_movemask_epi8(hit);
}

/* The same for what a receiver has to undo. */
static inline unsigned copy_coded(uint8_t *dst, const uint8_t *src)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)src);
	_mm_storeu_si128((__m128i *)(void *)dst, v);
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(ESCAPE)), _mm_cmpeq_epi8(v, _mm_set1_epi8(RUN))));
}
#else
static inline unsigned copy_special(uint8_t *dst, const uint8_t *src)
{
	unsigned hit = 0;
	for (unsigned i = 0; i < BLOCK_LEN; i++) {
		dst[i] = src[i];
		hit |= (unsigned)(src[i] == '#' || src[i] == '$' || src[i] == ESCAPE || src[i] == RUN) << i;
	}
	return hit;
}

static inline unsigned copy_coded(uint8_t *dst, const uint8_t *src)
{
	unsigned hit = 0;
	for (unsigned i = 0; i < BLOCK_LEN; i++) {
		dst[i] = src[i];
		hit |= (unsigned)(src[i] == ESCAPE || src[i] == RUN) << i;
	}
	return hit;
}
#endif

static bool is_special(uint8_t b)
{
	return b == '#' || b == '$' || b == ESCAPE || b == RUN;
}

uint8_t gdb_sum(const uint8_t *bytes, size_t len)
{
	uint8_t sum = 0;
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + bytes[i]);
	return sum;
}

/* --- receiving --- */

void gdb_decoder_fini(struct gdb_decoder *d)
{
	buf_fini(&d->in);
	*d = (struct gdb_decoder){0};
}

uint8_t *gdb_decoder_room(struct gdb_decoder *d, size_t want_len)
{
	if (d->is_failed)
		return NULL;
	if (d->pos == d->in.len) {
		d->in.len = 0;
		d->pos = 0;
	} else if (d->pos && d->in.cap - d->in.len < want_len) {
		memmove(d->in.data, d->in.data + d->pos, d->in.len - d->pos);
		d->in.len -= d->pos;
		d->pos = 0;
	}
	return (uint8_t *)buf_room(&d->in, want_len);
}

static enum gdb_item fail(struct gdb_decoder *d)
{
	d->is_failed = true;
	return GDB_TOO_LONG;
}

/* A packet begins at `pos`. */
static enum gdb_item take_packet(struct gdb_decoder *d, struct gdb_packet *ret)
{
	const char *p = d->in.data + d->pos;
	size_t len = d->in.len - d->pos, max_len = d->max_raw_len ? d->max_raw_len : GDB_MAX_RAW_LEN;
	size_t from = d->scanned_len ? d->scanned_len : 1;
	const char *end = len > from ? memchr(p + from, '#', len - from) : NULL;
	size_t raw_len = end ? (size_t)(end - p) - 1 : len - 1;
	if (raw_len > max_len)
		return fail(d);
	d->scanned_len = end ? (size_t)(end - p) : len;
	if (!end || len - d->scanned_len < 3)
		return GDB_MORE;
	const uint8_t *raw = (const uint8_t *)p + 1;
	int high = gdb_digit(end[1]), low = gdb_digit(end[2]);
	bool is_uncounted = d->is_noack && high == 0 && low == 0;
	bool is_good = high >= 0 && low >= 0 && (is_uncounted || gdb_sum(raw, raw_len) == high * 16 + low);
	d->pos += raw_len + 4;
	d->scanned_len = 0;
	if (!is_good)
		return GDB_BAD_SUM;
	*ret = (struct gdb_packet){.raw = raw, .raw_len = raw_len};
	return *p == '$' ? GDB_PACKET : GDB_NOTIFICATION;
}

enum gdb_item gdb_decoder_next(struct gdb_decoder *d, struct gdb_packet *ret)
{
	if (d->is_failed || d->in.failed)
		return fail(d);
	while (d->pos < d->in.len) {
		switch (d->in.data[d->pos]) {
		case '$':
		case '%':
			return take_packet(d, ret);
		case '+':
			d->pos++;
			return GDB_ACK;
		case '-':
			d->pos++;
			return GDB_NAK;
		case 3:
			d->pos++;
			return GDB_INTERRUPT;
		default:
			d->pos++;
			d->junk_cnt++;
		}
	}
	return GDB_MORE;
}

/* Where decoded bytes go, and whether an escape waits for its byte. */
struct sink {
	uint8_t *dst;
	size_t len, cap;
	bool is_escaped;
};

/* One byte of what run lengths gave. */
static bool sink_byte(struct sink *s, uint8_t b)
{
	if (!s->is_escaped && b == ESCAPE) {
		s->is_escaped = true;
		return true;
	}
	if (s->len == s->cap)
		return false;
	s->dst[s->len++] = s->is_escaped ? b ^ 0x20 : b;
	s->is_escaped = false;
	return true;
}

static bool sink_run(struct sink *s, uint8_t b, unsigned cnt)
{
	if (!s->is_escaped && b != ESCAPE) {
		if (s->cap - s->len < cnt)
			return false;
		memset(s->dst + s->len, b, cnt);
		s->len += cnt;
		return true;
	}
	while (cnt--) {
		if (!sink_byte(s, b))
			return false;
	}
	return true;
}

/* Copies what needs nothing, from raw[i] on, while there are 16 bytes on both sides; gives where that ends. */
static size_t copy_plain(struct sink *s, const uint8_t *raw, size_t raw_len, size_t i)
{
	while (raw_len - i >= BLOCK_LEN && s->cap - s->len >= BLOCK_LEN) {
		unsigned hit = copy_coded(s->dst + s->len, raw + i);
		unsigned plain_len = hit ? (unsigned)__builtin_ctz(hit) : BLOCK_LEN;
		s->len += plain_len;
		i += plain_len;
		if (hit)
			break;
	}
	return i;
}

enum gdb_expand gdb_expand(const uint8_t *raw, size_t raw_len, bool has_runs, uint8_t *dst, size_t cap, size_t *ret_len)
{
	struct sink s = {.dst = dst, .cap = cap};
	size_t i = 0;
	uint8_t last = 0; /* what a run repeats: a raw byte, before escapes are undone */
	while (i < raw_len) {
		size_t from = i;
		if (!s.is_escaped)
			i = copy_plain(&s, raw, raw_len, i);
		if (i > from)
			last = raw[i - 1];
		if (i == raw_len)
			break;
		if (raw[i] != RUN || !has_runs) {
			last = raw[i++];
			if (!sink_byte(&s, last))
				return GDB_EXPAND_LIMIT;
			continue;
		}
		if (!i || raw_len - i < 2 || raw[i + 1] < 32 || raw[i + 1] > 126)
			return GDB_EXPAND_BAD;
		if (!sink_run(&s, last, (unsigned)raw[i + 1] - RUN_BIAS))
			return GDB_EXPAND_LIMIT;
		i += 2;
	}
	if (s.is_escaped)
		return GDB_EXPAND_BAD;
	*ret_len = s.len;
	return GDB_EXPAND_OK;
}

/* How long it may become: each run adds at most 97 bytes to its two. */
static size_t expanded_room(const uint8_t *raw, size_t raw_len, bool has_runs)
{
	size_t len = raw_len;
	for (const uint8_t *p = raw; has_runs && p && len < SIZE_MAX - 97; p++, len += 97) {
		p = memchr(p, RUN, raw_len - (size_t)(p - raw));
		if (!p)
			break;
	}
	return len;
}

enum gdb_expand gdb_expand_buf(const uint8_t *raw, size_t raw_len, bool has_runs, size_t max_len, struct buf *out)
{
	if (!raw_len)
		return GDB_EXPAND_OK;
	size_t room_len = expanded_room(raw, raw_len, has_runs), len;
	if (room_len > max_len)
		room_len = max_len;
	uint8_t *dst = (uint8_t *)buf_room(out, room_len ? room_len : 1);
	if (!dst)
		return GDB_EXPAND_LIMIT;
	enum gdb_expand how = gdb_expand(raw, raw_len, has_runs, dst, room_len, &len);
	if (how == GDB_EXPAND_OK)
		out->len += len;
	return how;
}

/* --- sending --- */

size_t gdb_begin(struct buf *out)
{
	size_t start = out->len;
	buf_add_ch(out, '$');
	return start;
}

void gdb_end(struct buf *out, size_t start)
{
	if (out->failed)
		return;
	uint8_t sum = gdb_sum((const uint8_t *)out->data + start + 1, out->len - start - 1);
	buf_add_ch(out, '#');
	buf_add_hex(out, sum, 2);
}

void gdb_put(struct buf *out, const char *payload)
{
	size_t start = gdb_begin(out);
	buf_add_str(out, payload);
	gdb_end(out, start);
}

/* Bytes are taken in stretches, so that the room made in advance, twice the stretch, stays small. */
#define STRETCH_LEN 65536

static void escape_stretch(struct buf *out, const uint8_t *src, size_t len)
{
	uint8_t *dst = (uint8_t *)buf_room(out, len * 2 + BLOCK_LEN);
	if (!dst)
		return;
	uint8_t *p = dst;
	size_t i = 0;
	while (len - i >= BLOCK_LEN) {
		unsigned hit = copy_special(p, src + i);
		if (!hit) {
			p += BLOCK_LEN;
			i += BLOCK_LEN;
			continue;
		}
		unsigned plain_len = (unsigned)__builtin_ctz(hit);
		p += plain_len;
		i += plain_len;
		*p++ = ESCAPE;
		*p++ = src[i++] ^ 0x20;
	}
	for (; i < len; i++) {
		bool has_escape = is_special(src[i]);
		if (has_escape)
			*p++ = ESCAPE;
		*p++ = has_escape ? src[i] ^ 0x20 : src[i];
	}
	out->len += (size_t)(p - dst);
}

void gdb_escape(struct buf *out, const void *bytes, size_t len)
{
	const uint8_t *src = bytes;
	while (len) {
		size_t n = len < STRETCH_LEN ? len : STRETCH_LEN;
		escape_stretch(out, src, n);
		src += n;
		len -= n;
	}
}

size_t gdb_escape_fit(const void *bytes, size_t len, size_t room_len)
{
	const uint8_t *src = bytes;
	size_t used_len = 0, i = 0;
	for (; i < len; i++) {
		used_len += is_special(src[i]) ? 2 : 1;
		if (used_len > room_len)
			break;
	}
	return i;
}
