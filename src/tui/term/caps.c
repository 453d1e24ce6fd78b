/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/term/caps.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const depth_names[] = {"mono", "16", "256", "true"};

static const struct { const char *name, *text; } caps[TERM_CAP_COUNT] = {
	[TERM_CAP_TRUECOLOR] = {"truecolor", "24-bit colours; without them the nearest of 256"},
	[TERM_CAP_SYNC] = {"sync", "a frame is shown whole (mode 2026)"},
	[TERM_CAP_MARGINS] = {"margins", "panes scroll on their own (mode 69)"},
	[TERM_CAP_BCE] = {"bce", "erasing takes the ground's colour"},
	[TERM_CAP_KEYS] = {"keys", "keys as codes: Esc at once, Ctrl+Enter"},
	[TERM_CAP_GROUND] = {"ground", "light or dark as the terminal is (OSC 11)"},
	[TERM_CAP_MOUSE] = {"mouse", "clicks, drags, the wheel"},
	[TERM_CAP_PASTE] = {"paste", "a paste is text, never keys (mode 2004)"},
	[TERM_CAP_CLIPBOARD] = {"clipboard", "copying sets the terminal's clipboard (OSC 52); a file has it in any case"},
	[TERM_CAP_UNICODE] = {"unicode", "lines and signs beyond ASCII"},
};

const char *term_cap_name(enum term_cap c)
{
	return caps[c].name;
}

const char *term_cap_text(enum term_cap c)
{
	return caps[c].text;
}

bool term_caps_is_name(const char *name)
{
	for (int c = 0; c < TERM_CAP_COUNT; c++) {
		if (!strcmp(caps[c].name, name))
			return true;
	}
	return false;
}

/* Whether `word` is among the words of `all`, which blanks and commas part. */
static bool has_word(const char *all, const char *word)
{
	for (const char *at = all ? all : ""; *at;) {
		size_t len = strcspn(at, " ,");
		if (len == strlen(word) && !strncasecmp(at, word, len))
			return true;
		at += len + (at[len] != '\0');
	}
	return false;
}

const char *term_depth_name(enum term_depth d)
{
	return depth_names[d];
}

static bool has(const char *s, const char *part)
{
	return s && strcasestr(s, part);
}

static bool is_set(const char *s)
{
	return s && *s;
}

void term_caps_env(struct term_caps *c, const char *(*get)(const char *name))
{
	memset(c, 0, sizeof(*c));
	const char *term = get("TERM");
	const char *colorterm = get("COLORTERM");
	const char *fixed = get("SCRY_COLOR");
	const char *no = get("SCRY_NO");
	for (int cap = 0; cap < TERM_CAP_COUNT; cap++)
		c->no |= (uint32_t)has_word(no, caps[cap].name) << cap;
	const char *locale = is_set(get("LC_ALL")) ? get("LC_ALL") : is_set(get("LC_CTYPE")) ? get("LC_CTYPE") : get("LANG");
	c->is_utf8 = (has(locale, "utf-8") || has(locale, "utf8")) && !term_caps_no(c, TERM_CAP_UNICODE);
	c->is_dumb = !is_set(term) || strcmp(term, "dumb") == 0;
	c->is_console = term && strcmp(term, "linux") == 0;
	c->has_bce = has(term, "tmux") && !term_caps_no(c, TERM_CAP_BCE);
	if (has(colorterm, "truecolor") || has(colorterm, "24bit") || has(term, "direct"))
		c->depth = TERM_TRUE;
	else if (has(term, "256color") || has(term, "kitty") || has(term, "alacritty") || has(term, "foot"))
		c->depth = TERM_256;
	else if (term && (strncmp(term, "vt", 2) == 0 || has(term, "mono")))
		c->depth = TERM_MONO;
	else
		c->depth = TERM_16;
	if (c->depth == TERM_TRUE && term_caps_no(c, TERM_CAP_TRUECOLOR))
		c->depth = TERM_256;
	if (is_set(get("NO_COLOR"))) {
		c->depth = TERM_MONO;
		c->is_depth_fixed = true;
	}
	for (unsigned i = 0; fixed && i < ARRAY_LEN(depth_names); i++) {
		if (strcmp(fixed, depth_names[i]) == 0) {
			c->depth = (enum term_depth)i;
			c->is_depth_fixed = true;
		}
	}
}

const char *term_caps_queries(const struct term_caps *c)
{
	if (c->is_console)
		return "\x1b[c";
	return "\x1b[>0q"                                      /* what it is */
	       "\x1bP+q524742\x1b\\\x1bP+q626365\x1b\\"       /* terminfo's RGB; bce */
	       "\x1b[48;2;1;2;3m\x1bP$qm\x1b\\\x1b[m"          /* does a 24-bit colour read back? */
	       "\x1b[?2026$p\x1b[?69$p"                        /* synchronised update; left and right margins */
	       "\x1b]11;?\x1b\\"                               /* the ground's colour */
	       "\x1b[?u"                                       /* keys as codes */
	       "\x1b[c";
}

static bool starts(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);
	return len >= n && strncmp(s, prefix, n) == 0;
}

static bool contains(const char *s, size_t len, const char *part)
{
	for (size_t i = 0; i < len; i++) {
		if (starts(s + i, len - i, part))
			return true;
	}
	return false;
}

static bool set_true_colour(struct term_caps *c)
{
	if (c->is_depth_fixed || c->depth == TERM_TRUE || term_caps_no(c, TERM_CAP_TRUECOLOR))
		return false;
	c->depth = TERM_TRUE;
	return true;
}

static bool reply_csi(struct term_caps *c, const char *s, size_t len)
{
	if (len < 2 || s[0] != '?')
		return false;
	if (s[len - 1] == 'c') {
		c->is_answered = true;
		return false;
	}
	if (s[len - 1] == 'u' && !c->has_key_codes && !term_caps_no(c, TERM_CAP_KEYS)) {
		c->has_key_codes = true;
		return true;
	}
	/* DECRPM: 1 set, 2 reset, 3 always set; 0 not known, 4 always reset. */
	bool is_known = contains(s, len, ";1$y") || contains(s, len, ";2$y") || contains(s, len, ";3$y");
	if (is_known && starts(s, len, "?2026;") && !c->has_sync && !term_caps_no(c, TERM_CAP_SYNC)) {
		c->has_sync = true;
		return true;
	}
	if (is_known && starts(s, len, "?69;") && !c->has_margins && !term_caps_no(c, TERM_CAP_MARGINS)) {
		c->has_margins = true;
		return true;
	}
	return false;
}

/* OSC 11: "11;rgb:RRRR/GGGG/BBBB", one to four digits each. */
static bool reply_ground(struct term_caps *c, const char *s, size_t len)
{
	static const char prefix[] = "11;rgb:";
	static const unsigned weight[3] = {30, 59, 11};
	if (!starts(s, len, prefix) || term_caps_no(c, TERM_CAP_GROUND))
		return false;
	unsigned luma = 0;
	size_t i = sizeof(prefix) - 1;
	for (unsigned part = 0; part < 3; part++) {
		unsigned value = 0;
		unsigned digits = 0;
		for (; i < len && isxdigit((unsigned char)s[i]) && digits < 4; i++, digits++)
			value = value * 16 + (unsigned)(isdigit((unsigned char)s[i]) ? s[i] - '0' : (s[i] | 32) - 'a' + 10);
		if (!digits || (part < 2 && (i >= len || s[i++] != '/')))
			return false;
		luma += value * 100 / ((1u << (4 * digits)) - 1) * weight[part];
	}
	c->has_ground = true;
	bool is_light = luma > 5000;
	bool changed = is_light != c->is_light;
	c->is_light = is_light;
	return changed;
}

static bool reply_dcs(struct term_caps *c, const char *s, size_t len)
{
	if (starts(s, len, "1+r524742"))
		return set_true_colour(c);
	if (starts(s, len, "1+r626365")) {
		bool is_news = !c->has_bce && !term_caps_no(c, TERM_CAP_BCE);
		c->has_bce = !term_caps_no(c, TERM_CAP_BCE);
		return is_news;
	}
	if (starts(s, len, "1$r"))
		return (contains(s, len, "48:2:1:2:3") || contains(s, len, "48;2;1;2;3") || contains(s, len, "48:2::1:2:3")) &&
		       set_true_colour(c);
	if (!starts(s, len, ">|"))
		return false;
	size_t n = MIN(len - 2, sizeof(c->name) - 1);
	for (size_t i = 0; i < n; i++)
		c->name[i] = s[i + 2] >= 0x20 && s[i + 2] < 0x7f ? s[i + 2] : '?';
	c->name[n] = '\0';
	/* tmux answers no such question but keeps 24-bit colours, reduces them for a terminal that cannot, and erases with the
	 * ground of the moment. */
	if (!starts(c->name, n, "tmux"))
		return false;
	set_true_colour(c);
	c->has_bce = !term_caps_no(c, TERM_CAP_BCE);
	return true;
}

bool term_caps_reply(struct term_caps *c, const struct term_ev *ev)
{
	if (ev->intro == '[')
		return reply_csi(c, ev->text, ev->text_len);
	if (ev->intro == ']')
		return reply_ground(c, ev->text, ev->text_len);
	return ev->intro == 'P' && reply_dcs(c, ev->text, ev->text_len);
}
