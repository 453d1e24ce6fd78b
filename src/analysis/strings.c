/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/data_int.h"

#include "base/cleanup.h"
#include "base/cur.h"
#include "base/utf8.h"

/*
 * Strings that end by a terminator, in the bytes nobody has claimed. Text is long runs of characters; what makes
 * a run a string is evidence: it ends in zero, it begins where something ended (a zero, a claimed item, an
 * object's edge), somebody takes its address, it reads like words. The shorter the run, the more is asked for.
 * A reference into the middle of a string leaves it whole (linkers share tails), unless its beginning has no
 * evidence of its own.
 */
#define MIN_CHARS 4
#define MIN_CHARS_WRITABLE 5   /* without a reference in data that the program writes */
#define MIN_CHARS_LOOSE 6      /* when nothing ends before it */
#define MIN_CHARS_OPEN 8       /* without a terminator, when its address is taken */
#define MIN_CHARS_PACKED 12    /* without either, in a language that packs its texts */
#define WORDY_CHARS 8          /* shorter ones must be mostly letters, digits and common signs */
#define LONG_CHARS 24
#define STRING_LEN_MAX (1u << 24)

/* What an ASCII character is worth: 0 none, 1 seldom, 2 usual in texts, 3 letters, digits and common signs. */
static unsigned char_class(uint8_t c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' || c == '_' ||
	    c == '%' || c == '.' || c == '/' || c == '-' || c == ':')
		return 3;
	if (c > ' ' && c < 0x7f)
		return 2;
	if (c == '\n' || c == '\t' || c == '\r')
		return 2;
	return (c >= 7 && c <= 0x0d) || c == 0x1b;
}

/* Characters that belong to texts: no controls, no surrogates, no private use, no unassigned planes. */
static bool is_text_cp(uint32_t cp)
{
	if (cp < 0x80)
		return char_class((uint8_t)cp) > 0;
	return cp >= 0xa0 && cp < 0x30000 && (cp < 0xd800 || cp >= 0xf900) && (cp & 0xfffe) != 0xfffe &&
	       (cp < 0x20000 || cp < 0x2fa20) && (cp < 0xfdd0 || cp > 0xfdef);
}

/* Writing systems, as far as one text keeps to one or two of them while chance does not. */
enum script { SCRIPT_COMMON, SCRIPT_LATIN, SCRIPT_GREEK, SCRIPT_CYRILLIC, SCRIPT_SEMITIC, SCRIPT_INDIC, SCRIPT_EAST,
	      SCRIPT_EMOJI, SCRIPT_OTHER, SCRIPT_COUNT };

static enum script script_of(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
		enum script script;
	} blocks[] = {
		{0x00, 0xbf, SCRIPT_COMMON},       {0xc0, 0x24f, SCRIPT_LATIN},      {0x2b0, 0x36f, SCRIPT_LATIN},
		{0x370, 0x3ff, SCRIPT_GREEK},      {0x400, 0x52f, SCRIPT_CYRILLIC},  {0x590, 0x77f, SCRIPT_SEMITIC},
		{0x900, 0x109f, SCRIPT_INDIC},     {0x1e00, 0x1eff, SCRIPT_LATIN},   {0x1f00, 0x1fff, SCRIPT_GREEK},
		{0x2010, 0x205e, SCRIPT_COMMON},   {0x20a0, 0x20bf, SCRIPT_COMMON},  {0x2100, 0x2bff, SCRIPT_COMMON},
		{0x3000, 0x9fff, SCRIPT_EAST},     {0xac00, 0xd7a3, SCRIPT_EAST},    {0xfb00, 0xfb06, SCRIPT_LATIN},
		{0xff00, 0xff9f, SCRIPT_EAST},     {0x1f000, 0x1faff, SCRIPT_EMOJI},
	};
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		if (cp <= blocks[i].last)
			return cp >= blocks[i].first ? blocks[i].script : SCRIPT_OTHER;
	}
	return SCRIPT_OTHER;
}

/* How often each writing system occurs in a text. */
struct scripts { size_t cnt[SCRIPT_COUNT]; };

static unsigned script_kinds(const struct scripts *s)
{
	unsigned kinds = 0;
	for (unsigned i = SCRIPT_LATIN; i < SCRIPT_COUNT; i++)
		kinds += s->cnt[i] > 0;
	return s->cnt[SCRIPT_OTHER] ? SCRIPT_COUNT : kinds;
}

size_t analysis_text_run(const uint8_t *p, size_t len, bool *ret_is_ascii)
{
	size_t i = 0;
	bool is_ascii = true;
	while (i < len) {
		if (p[i] < 0x80) {
			if (!char_class(p[i]))
				break;
			i++;
			continue;
		}
		uint32_t cp;
		size_t n = utf8_next((const char *)p + i, len - i, &cp);
		if (!n || !is_text_cp(cp))
			break;
		is_ascii = false;
		i += n;
	}
	*ret_is_ascii = is_ascii;
	return i;
}

size_t analysis_text_chars(const uint8_t *p, size_t len, size_t *ret_plain)
{
	bool is_ascii;
	size_t chars = 0, plain = 0;
	*ret_plain = 0;
	if (analysis_text_run(p, len, &is_ascii) != len)
		return 0;
	for (size_t i = 0; i < len; i++) {
		chars += (p[i] & 0xc0) != 0x80;
		plain += p[i] >= 0x80 ? (p[i] & 0xc0) != 0x80 : char_class(p[i]) == 3;
	}
	*ret_plain = plain;
	return chars;
}

/* A run being judged. */
struct run {
	uint32_t loc, end;
	size_t chars;
	bool is_ascii;
	bool is_closed;  /* a zero follows */
	bool is_fresh;   /* something ends right before it */
	bool is_pointed; /* its address is taken */
};

static bool is_fresh(const struct data_stage *x, const struct data_zone *z, uint32_t loc)
{
	return loc == z->loc || z->bytes[loc - 1 - z->loc] == 0 || bits_get(x->taken, loc - 1) ||
	       bits_get(x->edge, loc);
}

/* Whether UTF-8 keeps to one writing system, or two when it is long. */
static bool has_few_scripts(const uint8_t *p, size_t len, size_t chars)
{
	struct scripts s = {{0}};
	uint32_t cp;
	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_next((const char *)p + i, len - i, &cp);
		if (!n)
			return false;
		s.cnt[script_of(cp)]++;
	}
	return script_kinds(&s) <= (chars < LONG_CHARS ? 1 : 2);
}

/* Whether most characters repeat the one before: masks such as "UUUU3333", tables, fill. */
static bool is_monotonous(const uint8_t *p, size_t len)
{
	size_t repeat_cnt = 0;
	for (size_t i = 1; i < len; i++)
		repeat_cnt += p[i] == p[i - 1];
	return repeat_cnt * 10 > len * 7;
}

/* `asked`: per cent of letters, digits and common signs. */
static bool reads_like_words(const struct data_zone *z, const struct run *r, size_t asked)
{
	const uint8_t *p = z->bytes + (r->loc - z->loc);
	size_t plain, chars = analysis_text_chars(p, r->end - r->loc, &plain);
	if (!chars || plain * 100 < chars * asked || (!r->is_pointed && is_monotonous(p, r->end - r->loc)))
		return false;
	return r->is_ascii || (chars >= MIN_CHARS_LOOSE && has_few_scripts(p, r->end - r->loc, chars));
}

/* ASCII without controls other than the usual white space. */
static bool is_printable(const struct data_zone *z, const struct run *r)
{
	for (uint32_t loc = r->loc; loc < r->end; loc++) {
		uint8_t c = z->bytes[loc - z->loc];
		if (c >= 0x80 || char_class(c) < 2)
			return false;
	}
	return true;
}

/* "%s", ".": believed only right behind another string, closed, and with somebody who takes its address. */
static bool is_short_string(const struct data_stage *x, const struct data_zone *z, const struct run *r)
{
	return r->chars && r->is_closed && r->is_pointed && r->loc > z->loc && bits_get(x->string, r->loc - 1) &&
	       is_printable(z, r);
}

static bool is_string(const struct data_stage *x, const struct data_zone *z, const struct run *r)
{
	size_t asked = r->chars < WORDY_CHARS ? 75 : 50;
	if (z->is_strings)
		return r->is_closed;
	if (r->chars < MIN_CHARS)
		return is_short_string(x, z, r);
	if (!r->is_closed) {
		bool is_language = x->lang != DATA_LANG_NONE;
		if (is_language && !z->is_exec && !z->is_writable && r->chars >= MIN_CHARS_PACKED)
			return reads_like_words(z, r, 75);
		return r->is_pointed && (r->chars >= MIN_CHARS_OPEN || is_language) && reads_like_words(z, r, asked);
	}
	bool is_next = r->loc > z->loc && bits_get(x->string, r->loc - 1); /* right behind another string */
	if (((r->is_pointed && r->is_fresh) || is_next) && is_printable(z, r))
		return true;
	if (r->is_pointed)
		return reads_like_words(z, r, asked);
	if (z->is_exec)
		return r->chars >= MIN_CHARS_LOOSE && r->is_fresh && reads_like_words(z, r, asked);
	if (z->is_writable && r->chars < MIN_CHARS_WRITABLE)
		return false;
	return (r->is_fresh || r->chars >= MIN_CHARS_LOOSE) && reads_like_words(z, r, asked);
}

static enum image_encoding narrow_encoding(const struct data_stage *x, const struct run *r)
{
	if (!r->is_closed && x->lang == DATA_LANG_GO)
		return IMAGE_ENC_GO;
	if (!r->is_closed && x->lang == DATA_LANG_RUST)
		return IMAGE_ENC_RUST;
	return r->is_ascii ? IMAGE_ENC_ASCII : IMAGE_ENC_UTF8;
}

/* Rust's format pieces and Go's names have their length before them, which may itself be a character: bytes to
 * leave out at the beginning. */
static uint32_t count_prefix(const struct data_stage *x, const struct data_zone *z, const struct run *r)
{
	const uint8_t *p = z->bytes + (r->loc - z->loc);
	uint32_t len = r->end - r->loc;
	if (x->lang == DATA_LANG_NONE || len <= MIN_CHARS || (r->is_closed && char_class(p[0]) == 3))
		return 0;
	if (p[0] == len - 1)
		return 1;
	return x->lang == DATA_LANG_GO && p[0] < ' ' && p[1] == len - 2 ? 2 : 0;
}

static void judge(struct data_stage *x, const struct data_zone *z, struct run r)
{
	r.is_pointed = bits_get(x->pointed, r.loc);
	r.is_fresh = is_fresh(x, z, r.loc);
	size_t plain;
	r.chars = analysis_text_chars(z->bytes + (r.loc - z->loc), r.end - r.loc, &plain);
	if (!r.is_fresh && !r.is_pointed) {
		/* Bytes before the first place that is pointed to may be something else's end. */
		uint32_t first = (uint32_t)bits_next(x->pointed, r.loc, r.end);
		if (first < r.end) {
			struct run inner = r;
			inner.loc = first;
			judge(x, z, inner);
			return;
		}
	}
	if (!is_string(x, z, &r))
		return;
	uint32_t prefix = count_prefix(x, z, &r);
	if (prefix && r.end - r.loc - prefix >= MIN_CHARS)
		r.loc += prefix;
	analysis_claim_string(x, (struct image_string){r.loc, r.end - r.loc, narrow_encoding(x, &r)}, r.is_closed);
}

/* Texts without terminators packed one behind the other: each ends where the next is pointed to. */
static void judge_open(struct data_stage *x, const struct data_zone *z, struct run r)
{
	while (r.loc < r.end) {
		struct run part = r;
		if (x->lang != DATA_LANG_NONE)
			part.end = (uint32_t)bits_next(x->pointed, r.loc + 1, r.end);
		judge(x, z, part);
		r.loc = part.end;
	}
}

/* One unit of a wide string, in the byte order `is_be`. */
static uint32_t wide_unit(const uint8_t *p, unsigned unit, bool is_be)
{
	return unit == 2 ? load_u16(p, is_be) : load_u32(p, is_be);
}

/* What a run of wide characters is made of. */
struct wide_run {
	size_t units, plain; /* plain: letters, digits and common signs of ASCII */
	size_t repeat_cnt;   /* units equal to the one before */
	size_t double_cnt;   /* units whose two bytes are ASCII both: narrow text, seen as wide */
	struct scripts scripts;
};

static void wide_scan(const uint8_t *p, size_t len, unsigned unit, bool is_be, struct wide_run *ret)
{
	*ret = (struct wide_run){0};
	uint32_t before = 0;
	for (; len >= unit; p += unit, len -= unit) {
		uint32_t cp = wide_unit(p, unit, is_be);
		if (!is_text_cp(cp))
			break;
		ret->plain += cp < 0x80 && char_class((uint8_t)cp) == 3;
		ret->double_cnt += unit == 2 && p[0] < 0x80 && p[1] < 0x80 && char_class(p[0]) && char_class(p[1]);
		ret->scripts.cnt[script_of(cp)]++;
		ret->repeat_cnt += cp == before;
		ret->units++;
		before = cp;
	}
}

/* Tables of small numbers look like wide letters. A text is nearly all letters and digits of ASCII, or, when its
 * address is taken, mostly of one other writing system. */
static bool wide_is_text(const struct wide_run *w, bool is_pointed)
{
	if (w->repeat_cnt * 2 > w->units)
		return false;
	if (w->plain * 100 >= w->units * 80)
		return true;
	if (!is_pointed || w->double_cnt * 2 > w->units || script_kinds(&w->scripts) != 1)
		return false;
	size_t latin = w->scripts.cnt[SCRIPT_LATIN];
	if (latin)
		return w->plain * 100 >= w->units * 60;
	size_t foreign = w->units - w->scripts.cnt[SCRIPT_COMMON];
	return (foreign + w->plain) * 100 >= w->units * 80 && !w->scripts.cnt[SCRIPT_EMOJI];
}

static enum image_encoding wide_encoding(unsigned unit, bool is_be)
{
	return unit == 4 ? IMAGE_ENC_UTF32LE : is_be ? IMAGE_ENC_UTF16BE : IMAGE_ENC_UTF16LE;
}

/* Where the last run of wide characters that was no string ends: what begins inside of it is none either, and
 * looking again from each of its letters would cost their square. */
struct wide_tried {
	uint32_t end[3];
	uint32_t string_end; /* of the last wide string; 0: none */
};

static unsigned wide_slot(unsigned unit, bool is_be)
{
	return unit == 4 ? 2 : is_be;
}

/* Tries a wide string at loc; its end with the terminator, or 0. Tables of small numbers look like wide
 * letters, so nearly all must be letters and digits, and the more the less they are pointed to. */
static uint32_t try_wide(struct data_stage *x, const struct data_zone *z, struct run r, unsigned unit, bool is_be,
			 struct wide_tried *tried)
{
	uint32_t loc = r.loc, end = r.end;
	uint32_t *tried_end = &tried->end[wide_slot(unit, is_be)];
	if (loc < *tried_end)
		return 0;
	const uint8_t *p = z->bytes + (loc - z->loc);
	size_t room = MIN(end - loc, STRING_LEN_MAX);
	struct wide_run w;
	wide_scan(p, room, unit, is_be, &w);
	size_t bytes = w.units * unit;
	*tried_end = loc + (uint32_t)bytes;
	if (w.units < MIN_CHARS || room - bytes < unit || wide_unit(p + bytes, unit, is_be))
		return 0;
	bool is_pointed = bits_get(x->pointed, loc);
	bool is_native = is_be == x->d->space.is_be;
	bool is_next = tried->string_end && loc - tried->string_end < 8;
	size_t asked = is_native && (is_pointed || is_next) ? MIN_CHARS : is_native && unit == 4 ? MIN_CHARS_WRITABLE
										       : WORDY_CHARS;
	if (w.units < asked || !wide_is_text(&w, is_pointed && is_native) || (z->is_exec && !is_pointed))
		return 0;
	struct image_string s = {loc, (uint32_t)bytes, wide_encoding(unit, is_be)};
	if (!analysis_claim_string(x, s, unit))
		return 0;
	tried->string_end = loc + (uint32_t)bytes + unit;
	return tried->string_end;
}

static uint32_t try_wides(struct data_stage *x, const struct data_zone *z, struct run r, struct wide_tried *tried)
{
	uint64_t va = space_va(&x->d->space, r.loc);
	bool is_be = x->d->space.is_be;
	uint32_t done = 0;
	if (va % 4 == 0 && !is_be)
		done = try_wide(x, z, r, 4, false, tried);
	if (!done && va % 2 == 0)
		done = try_wide(x, z, r, 2, is_be, tried);
	return done;
}

/* Wide strings at a byte that may begin one: a letter before a zero, a zero before a big-endian letter, or
 * a place that is pointed to. Their end, or 0. */
static uint32_t wide_at(struct data_stage *x, const struct data_zone *z, struct run r, struct wide_tried *tried)
{
	const uint8_t *p = z->bytes + (r.loc - z->loc);
	uint32_t room = r.end - r.loc;
	if (room < 5)
		return 0;
	if (!*p) {
		bool is_wide = room > 8 && !p[2] && p[1] && p[3] && char_class(p[1]) == 3 && is_fresh(x, z, r.loc);
		return is_wide && space_va(&x->d->space, r.loc) % 2 == 0 ? try_wide(x, z, r, 2, true, tried) : 0;
	}
	bool is_letter = char_class(*p) && !p[1];
	return is_letter || bits_get(x->pointed, r.loc) ? try_wides(x, z, r, tried) : 0;
}

/* One free stretch. */
static void scan_free(struct data_stage *x, const struct data_zone *z, uint32_t loc, uint32_t end)
{
	struct wide_tried tried = {.string_end = 0};
	uint32_t limit = loc; /* the next edge */
	while (loc < end) {
		const uint8_t *p = z->bytes + (loc - z->loc);
		bool is_ascii = true;
		if (limit <= loc)
			limit = (uint32_t)bits_next(x->edge, loc + 1, end);
		uint32_t len = *p ? (uint32_t)analysis_text_run(p, MIN(limit - loc, STRING_LEN_MAX), &is_ascii) : 0;
		if (len < 4) {
			uint32_t done = wide_at(x, z, (struct run){.loc = loc, .end = end}, &tried);
			if (done) {
				loc = done;
				continue;
			}
		}
		if (!len) {
			loc++;
			continue;
		}
		struct run r = {.loc = loc, .end = loc + len, .is_ascii = is_ascii};
		r.is_closed = r.end < limit && !z->bytes[r.end - z->loc];
		if (r.is_closed)
			judge(x, z, r);
		else
			judge_open(x, z, r);
		loc = r.end;
	}
}

static void scan_zone(struct data_stage *x, const struct data_zone *z)
{
	uint32_t loc = z->loc;
	while (loc < z->end) {
		uint32_t end = (uint32_t)bits_next(x->taken, loc, z->end);
		scan_free(x, z, loc, end);
		for (loc = end; loc < z->end && bits_get(x->taken, loc);) {
			uint64_t word = ~x->taken[loc / 64] >> (loc % 64);
			loc += word ? (uint32_t)__builtin_ctzll(word) : 64 - loc % 64;
		}
	}
}

void analysis_find_strings(struct data_stage *x)
{
	analysis_each_zone(x, scan_zone);
}
