/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/term/input.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <string.h>

/*
 * A state machine in the manner of ECMA-48: ESC introduces, CSI sequences have parameters, intermediates and a final
 * byte, strings (OSC, DCS, APC, PM, SOS) run to ST or BEL. `buf` holds what came after the introducer.
 */
enum state {
	ST_GROUND,
	ST_UTF8,    /* inside a character */
	ST_ESC,     /* after ESC */
	ST_SS3,     /* after ESC O */
	ST_CSI,     /* after ESC [ */
	ST_STRING,  /* after ESC ] P _ ^ X; buf[0] is the introducer */
	ST_STR_ESC, /* ESC inside a string */
	ST_SKIP,    /* old-style mouse report */
	ST_PASTE,   /* bracketed paste; buf holds text not yet handed on */
};

#define ESC_WAIT_MS 25
#define SEQUENCE_WAIT_MS 500

struct sink {
	term_ev_fn *fn;
	void *ctx;
};

static void emit_key(const struct sink *s, uint32_t key, unsigned mods)
{
	struct term_ev ev = {.type = TERM_EV_KEY, .key = key, .mods = (uint8_t)mods};
	if (key)
		s->fn(s->ctx, &ev);
}

/* One byte or character of plain typing. */
static void emit_char(const struct sink *s, uint32_t cp, unsigned mods)
{
	if (cp == 0x1b)
		emit_key(s, TERM_KEY_ESC, mods);
	else if (cp == '\r' || cp == '\n')
		emit_key(s, TERM_KEY_ENTER, mods);
	else if (cp == '\t')
		emit_key(s, TERM_KEY_TAB, mods);
	else if (cp == 0x7f || cp == 0x08)
		emit_key(s, TERM_KEY_BACKSPACE, mods);
	else if (cp == 0)
		emit_key(s, ' ', mods | TERM_CTRL);
	else if (cp < 0x1b)
		emit_key(s, cp + 'a' - 1, mods | TERM_CTRL);
	else if (cp < 0x20)
		emit_key(s, cp + '@', mods | TERM_CTRL);
	else if (cp < 0x80 || cp >= 0xa0)
		emit_key(s, cp, mods);
}

/* Numbers of a CSI sequence; an absent one is 0. Sub-parameters (after ':') are left out. */
static int parse_params(const char *s, size_t len, unsigned *ret, int max)
{
	int cnt = 0;
	unsigned value = 0;
	bool is_sub = false;
	for (size_t i = 0; i <= len; i++) {
		if (i == len || s[i] == ';') {
			if (cnt < max)
				ret[cnt++] = value;
			value = 0;
			is_sub = false;
		} else if (s[i] == ':') {
			is_sub = true;
		} else if (s[i] >= '0' && s[i] <= '9' && !is_sub && value < 100000000) {
			value = value * 10 + (unsigned)(s[i] - '0');
		}
	}
	return cnt;
}

static unsigned mods_of(unsigned param)
{
	unsigned bits = param ? param - 1 : 0;
	return (bits & 1 ? TERM_SHIFT : 0) | (bits & 2 ? TERM_ALT : 0) | (bits & 4 ? TERM_CTRL : 0);
}

/* Keys whose final byte names them, in CSI and SS3 form. */
static uint32_t key_of_final(char final)
{
	switch (final) {
	case 'A':
		return TERM_KEY_UP;
	case 'B':
		return TERM_KEY_DOWN;
	case 'C':
		return TERM_KEY_RIGHT;
	case 'D':
		return TERM_KEY_LEFT;
	case 'H':
		return TERM_KEY_HOME;
	case 'F':
		return TERM_KEY_END;
	case 'M':
		return TERM_KEY_ENTER;
	case 'P':
	case 'Q':
	case 'R':
	case 'S':
		return TERM_KEY_F1 + (uint32_t)(final - 'P');
	default:
		return TERM_KEY_NONE;
	}
}

/* CSI number ~ */
static uint32_t key_of_number(unsigned n)
{
	static const uint32_t low[] = {0, TERM_KEY_HOME, TERM_KEY_INSERT, TERM_KEY_DELETE, TERM_KEY_END, TERM_KEY_PGUP,
				       TERM_KEY_PGDN, TERM_KEY_HOME, TERM_KEY_END};
	if (n < ARRAY_LEN(low))
		return low[n];
	if (n >= 11 && n <= 15)
		return TERM_KEY_F1 + n - 11;
	if (n >= 17 && n <= 21)
		return TERM_KEY_F1 + n - 12;
	if (n == 23 || n == 24)
		return TERM_KEY_F1 + n - 13;
	return TERM_KEY_NONE;
}

/* A key given as a code point with modifiers (kitty's CSI u, xterm's CSI 27 ~). */
static void emit_code(const struct sink *s, unsigned code, unsigned mods)
{
	if (code < 0x20 || code == 0x7f) {
		if (code == 0x1b || code == '\r' || code == '\t' || code == 0x7f || code == 0x08)
			emit_char(s, code, mods);
		return;
	}
	if (code >= 57344 && code <= 63743) /* kitty's functional keys in the private area */
		return;
	if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return;
	if (mods & TERM_SHIFT && !(mods & (TERM_CTRL | TERM_ALT))) {
		if (code >= 'a' && code <= 'z')
			code -= 'a' - 'A';
		mods &= ~(unsigned)TERM_SHIFT;
	}
	if (mods & TERM_CTRL && code >= 'A' && code <= 'Z')
		code += 'a' - 'A';
	emit_key(s, code, mods);
}

static void emit_mouse(const struct sink *s, const char *body, size_t len)
{
	unsigned p[3] = {0};
	if (parse_params(body + 1, len - 2, p, 3) != 3 || !p[1] || !p[2] || p[1] > 4096 || p[2] > 4096)
		return;
	struct term_ev ev = {.type = TERM_EV_MOUSE, .x = (int)p[1] - 1, .y = (int)p[2] - 1, .button = (int)(p[0] & 3)};
	ev.mods = (uint8_t)((p[0] & 4 ? TERM_SHIFT : 0) | (p[0] & 8 ? TERM_ALT : 0) | (p[0] & 16 ? TERM_CTRL : 0));
	if (p[0] & 64) {
		if (ev.button > 1 || body[len - 1] == 'm')
			return;
		ev.mouse = ev.button ? TERM_MOUSE_WHEEL_DOWN : TERM_MOUSE_WHEEL_UP;
	} else if (ev.button == 3 || p[0] & 128) {
		return;
	} else {
		ev.mouse = body[len - 1] == 'm' ? TERM_MOUSE_RELEASE : p[0] & 32 ? TERM_MOUSE_DRAG : TERM_MOUSE_PRESS;
	}
	s->fn(s->ctx, &ev);
}

static void emit_reply(const struct sink *s, char intro, const char *text, size_t len)
{
	struct term_ev ev = {.type = TERM_EV_REPLY, .intro = intro, .text = text, .text_len = len};
	s->fn(s->ctx, &ev);
}

/* A complete CSI sequence: buf is parameters, intermediates and the final byte. */
static void end_csi(struct term_input *in, const struct sink *s)
{
	const char *b = in->buf;
	size_t len = in->len;
	char final = b[len - 1];
	unsigned p[4] = {0};
	in->state = ST_GROUND;
	if (len > 1 && b[0] == '<') {
		if (final == 'M' || final == 'm')
			emit_mouse(s, b, len);
		return;
	}
	if (len > 1 && (b[0] == '?' || b[0] == '>')) {
		emit_reply(s, '[', b, len);
		return;
	}
	if (final == 'M' && len == 1) {
		in->state = ST_SKIP;
		in->skip_cnt = 3;
		return;
	}
	for (size_t i = 0; i + 1 < len; i++) {
		if (b[i] != ';' && b[i] != ':' && (b[i] < '0' || b[i] > '9'))
			return;
	}
	int cnt = parse_params(b, len - 1, p, 4);
	unsigned mods = cnt > 1 ? mods_of(p[1]) : 0;
	if (final == '~' && p[0] == 200)
		in->state = ST_PASTE;
	else if (final == '~' && p[0] == 27 && cnt == 3)
		emit_code(s, p[2], mods);
	else if (final == '~')
		emit_key(s, key_of_number(p[0]), mods);
	else if (final == 'u')
		emit_code(s, p[0], mods);
	else if (final == 'Z')
		emit_key(s, TERM_KEY_TAB, TERM_SHIFT);
	else if (final != 'M' && final != 'R')
		emit_key(s, key_of_final(final), mods);
	in->len = 0;
}

static void start_escape(struct term_input *in)
{
	in->state = ST_ESC;
	in->len = 0;
	in->is_overlong = false;
}

static void keep(struct term_input *in, char ch)
{
	if (in->len < sizeof(in->buf))
		in->buf[in->len++] = ch;
	else
		in->is_overlong = true;
}

/* The first byte of a character, typed plainly or (alt) after ESC. */
static void start_char(struct term_input *in, uint8_t ch, bool alt, const struct sink *s)
{
	in->state = ST_GROUND;
	if (ch < 0x80) {
		emit_char(s, ch, alt ? TERM_ALT : 0);
		return;
	}
	if (ch < 0xc2 || ch > 0xf4) {
		emit_key(s, 0xfffd, alt ? TERM_ALT : 0);
		return;
	}
	in->state = ST_UTF8;
	in->utf8_need = ch >= 0xf0 ? 4 : ch >= 0xe0 ? 3 : 2;
	in->utf8_alt = alt;
	in->len = 0;
	keep(in, (char)ch);
}

static void feed_ground(struct term_input *in, uint8_t ch, const struct sink *s)
{
	if (ch == 0x1b)
		start_escape(in);
	else
		start_char(in, ch, false, s);
}

static void feed_utf8(struct term_input *in, uint8_t ch, const struct sink *s)
{
	uint32_t cp = 0xfffd;
	unsigned mods = in->utf8_alt ? TERM_ALT : 0;
	if ((ch & 0xc0) != 0x80) {
		in->state = ST_GROUND;
		emit_key(s, cp, mods);
		feed_ground(in, ch, s);
		return;
	}
	keep(in, (char)ch);
	if (in->len < in->utf8_need)
		return;
	in->state = ST_GROUND;
	if (utf8_next(in->buf, in->len, &cp) != in->len)
		cp = 0xfffd;
	if (cp >= 0xa0)
		emit_key(s, cp, mods);
}

static void feed_esc(struct term_input *in, uint8_t ch, const struct sink *s)
{
	switch (ch) {
	case 0x1b:
		emit_key(s, TERM_KEY_ESC, 0);
		start_escape(in);
		break;
	case '[':
		in->state = ST_CSI;
		break;
	case 'O':
		in->state = ST_SS3;
		break;
	case ']':
	case 'P':
	case '_':
	case '^':
	case 'X':
		in->state = ST_STRING;
		keep(in, (char)ch);
		break;
	default:
		start_char(in, ch, true, s);
		break;
	}
}

static void feed_ss3(struct term_input *in, uint8_t ch, const struct sink *s)
{
	if (ch == 0x1b) {
		emit_key(s, 'O', TERM_ALT);
		start_escape(in);
		return;
	}
	/* Digits are modifiers in some terminals' SS3 keys. */
	if (((ch >= '0' && ch <= '9') || ch == ';') && in->len < 8) {
		keep(in, (char)ch);
		return;
	}
	unsigned p[2] = {0};
	int cnt = parse_params(in->buf, in->len, p, 2);
	in->state = ST_GROUND;
	emit_key(s, key_of_final((char)ch), cnt > 1 ? mods_of(p[1]) : mods_of(p[0]));
}

static void feed_csi(struct term_input *in, uint8_t ch, const struct sink *s)
{
	if (ch == 0x1b) {
		if (!in->len)
			emit_key(s, '[', TERM_ALT);
		start_escape(in);
		return;
	}
	if (ch == 0x18 || ch == 0x1a || ch >= 0x80) {
		in->state = ST_GROUND;
		return;
	}
	if (ch < 0x20 || ch == 0x7f)
		return;
	/* The Linux console's F1 .. F5 are ESC [ [ A .. E. */
	if (in->len == 1 && in->buf[0] == '[') {
		in->state = ST_GROUND;
		if (ch >= 'A' && ch <= 'E')
			emit_key(s, TERM_KEY_F1 + (uint32_t)(ch - 'A'), 0);
		return;
	}
	keep(in, (char)ch);
	if (ch < 0x40 || (ch == '[' && in->len == 1))
		return;
	if (in->is_overlong)
		in->state = ST_GROUND;
	else
		end_csi(in, s);
}

static void end_string(struct term_input *in, const struct sink *s)
{
	in->state = ST_GROUND;
	if (!in->is_overlong && (in->buf[0] == ']' || in->buf[0] == 'P' || in->buf[0] == '_'))
		emit_reply(s, in->buf[0], in->buf + 1, in->len - 1);
}

static void feed_string(struct term_input *in, uint8_t ch, const struct sink *s)
{
	if (in->state == ST_STR_ESC) {
		if (ch == '\\') {
			end_string(in, s);
		} else { /* the string was cut short by another sequence */
			start_escape(in);
			feed_esc(in, ch, s);
		}
	} else if (ch == 0x1b) {
		in->state = ST_STR_ESC;
	} else if (ch == 0x07) {
		end_string(in, s);
	} else if (ch == 0x18 || ch == 0x1a) {
		in->state = ST_GROUND;
	} else {
		keep(in, (char)ch);
	}
}

static void emit_paste(struct term_input *in, size_t len, const struct sink *s)
{
	struct term_ev ev = {.type = TERM_EV_PASTE, .text = in->buf, .text_len = len};
	if (len)
		s->fn(s->ctx, &ev);
	memmove(in->buf, in->buf + len, in->len - len);
	in->len -= len;
}

static void feed_paste(struct term_input *in, uint8_t ch, const struct sink *s)
{
	static const char end[] = "\x1b[201~";
	const size_t end_len = sizeof(end) - 1;
	in->buf[in->len++] = (char)ch;
	if (ch == '~' && in->len >= end_len && memcmp(in->buf + in->len - end_len, end, end_len) == 0) {
		in->len -= end_len;
		emit_paste(in, in->len, s);
		in->state = ST_GROUND;
		struct term_ev ev = {.type = TERM_EV_PASTE_END};
		s->fn(s->ctx, &ev);
	} else if (in->len == sizeof(in->buf)) {
		emit_paste(in, in->len - end_len, s);
	}
}

static void feed_byte(struct term_input *in, uint8_t ch, const struct sink *s)
{
	switch ((enum state)in->state) {
	case ST_GROUND:
		feed_ground(in, ch, s);
		break;
	case ST_UTF8:
		feed_utf8(in, ch, s);
		break;
	case ST_ESC:
		feed_esc(in, ch, s);
		break;
	case ST_SS3:
		feed_ss3(in, ch, s);
		break;
	case ST_CSI:
		feed_csi(in, ch, s);
		break;
	case ST_STRING:
	case ST_STR_ESC:
		feed_string(in, ch, s);
		break;
	case ST_SKIP:
		if (--in->skip_cnt == 0)
			in->state = ST_GROUND;
		break;
	case ST_PASTE:
		feed_paste(in, ch, s);
		break;
	}
}

void term_input_feed(struct term_input *in, const void *bytes, size_t len, term_ev_fn *fn, void *ctx)
{
	struct sink s = {fn, ctx};
	const uint8_t *p = bytes;
	for (size_t i = 0; i < len; i++)
		feed_byte(in, p[i], &s);
}

int term_input_wait_ms(const struct term_input *in)
{
	switch ((enum state)in->state) {
	case ST_GROUND:
	case ST_PASTE:
		return 0;
	case ST_ESC:
		return ESC_WAIT_MS;
	case ST_SS3:
	case ST_CSI:
		return in->len ? SEQUENCE_WAIT_MS : ESC_WAIT_MS;
	case ST_STRING:
		return in->len > 1 ? SEQUENCE_WAIT_MS : ESC_WAIT_MS;
	case ST_UTF8:
	case ST_STR_ESC:
	case ST_SKIP:
		return SEQUENCE_WAIT_MS;
	}
	return 0;
}

void term_input_timeout(struct term_input *in, term_ev_fn *fn, void *ctx)
{
	struct sink s = {fn, ctx};
	enum state state = (enum state)in->state;
	if (state == ST_GROUND || state == ST_PASTE)
		return;
	in->state = ST_GROUND;
	if (state == ST_ESC)
		emit_key(&s, TERM_KEY_ESC, 0);
	else if (state == ST_SS3 && !in->len)
		emit_key(&s, 'O', TERM_ALT);
	else if (state == ST_CSI && !in->len)
		emit_key(&s, '[', TERM_ALT);
	else if (state == ST_STRING && in->len == 1)
		emit_key(&s, (uint8_t)in->buf[0], TERM_ALT);
}

struct key_name {
	const char *name;
	uint32_t key;
};

static const struct key_name key_names[] = {
	{"Esc", TERM_KEY_ESC},      {"Enter", TERM_KEY_ENTER},   {"Tab", TERM_KEY_TAB},   {"Backspace", TERM_KEY_BACKSPACE},
	{"Up", TERM_KEY_UP},        {"Down", TERM_KEY_DOWN},     {"Left", TERM_KEY_LEFT}, {"Right", TERM_KEY_RIGHT},
	{"Home", TERM_KEY_HOME},    {"End", TERM_KEY_END},       {"PgUp", TERM_KEY_PGUP}, {"PgDn", TERM_KEY_PGDN},
	{"Insert", TERM_KEY_INSERT}, {"Del", TERM_KEY_DELETE},   {"Space", ' '},
};

bool term_key_parse(const char *name, size_t len, uint32_t *ret_key, uint8_t *ret_mods)
{
	static const struct { const char *name; uint8_t mod; } mod_names[] = {
		{"Ctrl+", TERM_CTRL}, {"Alt+", TERM_ALT}, {"Shift+", TERM_SHIFT}};
	uint8_t mods = 0;
	for (size_t i = 0; i < ARRAY_LEN(mod_names); i++) {
		size_t n = strlen(mod_names[i].name);
		if (len > n && memcmp(name, mod_names[i].name, n) == 0) {
			mods |= mod_names[i].mod;
			name += n;
			len -= n;
		}
	}
	uint32_t key = 0;
	if (len && utf8_next(name, len, &key) == len) {
		/* Ctrl+letter has no case on a terminal. */
		if (mods & TERM_CTRL && key >= 'A' && key <= 'Z')
			key += 'a' - 'A';
	} else if (len >= 2 && len <= 3 && name[0] == 'F' && name[1] >= '1' && name[1] <= '9') {
		unsigned n = (unsigned)(name[1] - '0');
		if (len == 3)
			n = n * 10 + (unsigned)(name[2] - '0');
		key = n >= 1 && n <= 12 ? TERM_KEY_F1 + n - 1 : 0;
	} else {
		key = 0;
		for (size_t i = 0; i < ARRAY_LEN(key_names); i++) {
			if (strlen(key_names[i].name) == len && memcmp(key_names[i].name, name, len) == 0)
				key = key_names[i].key;
		}
	}
	if (!key)
		return false;
	*ret_key = key;
	*ret_mods = mods;
	return true;
}
