/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TERM_CAPS_H
#define TUI_TERM_CAPS_H

#include "tui/term/input.h"
#include "tui/term/theme.h"

#include <stdbool.h>

/* What may be there or not, each with a name for SCRY_NO and --no-NAME. */
enum term_cap {
	TERM_CAP_TRUECOLOR, TERM_CAP_SYNC, TERM_CAP_MARGINS, TERM_CAP_BCE, TERM_CAP_KEYS, TERM_CAP_GROUND, TERM_CAP_MOUSE,
	TERM_CAP_PASTE, TERM_CAP_CLIPBOARD, TERM_CAP_UNICODE, TERM_CAP_COUNT
};
const char *term_cap_name(enum term_cap c);
/* What it is good for, for people. */
const char *term_cap_text(enum term_cap c);
bool term_caps_is_name(const char *name);

/*
 * What the terminal can do. The environment gives a first answer for the first frame; the terminal's own replies to
 * TERM_QUERIES correct it whenever they come. Nothing waits for them.
 */
struct term_caps {
	enum term_depth depth;
	bool is_depth_fixed; /* NO_COLOR or SCRY_COLOR said so */
	bool is_dumb;        /* cannot show a full screen */
	bool is_console;     /* the Linux console: no alternate screen, few queries */
	bool is_utf8;        /* the locale's character set */
	bool is_light;       /* the terminal's ground is light */
	bool has_ground;     /* it said which */
	bool has_sync, has_margins, has_bce /* erasing takes the ground */, has_key_codes /* kitty's keyboard protocol */;
	uint32_t no;         /* 1 << enum term_cap: SCRY_NO named it */
	bool is_asked, is_answered; /* queries sent; device attributes, the last of them, arrived */
	char name[64];       /* what it calls itself, or "" */
};

/* Reads TERM, COLORTERM, NO_COLOR, SCRY_COLOR, LC_ALL, LC_CTYPE and LANG through `get` (as getenv).
 * SCRY_NO names what is not to be used, words of term_cap_name(). */
void term_caps_env(struct term_caps *c, const char *(*get)(const char *name));

/* All questions at once, device attributes last. */
const char *term_caps_queries(const struct term_caps *c);

/* Takes a reply; true when a capability changed. Unknown ones are ignored. */
bool term_caps_reply(struct term_caps *c, const struct term_ev *ev);

/* Whether it is not to be used. */
static inline bool term_caps_no(const struct term_caps *c, enum term_cap cap)
{
	return c->no >> cap & 1;
}

const char *term_depth_name(enum term_depth d);

#endif
