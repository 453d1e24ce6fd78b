/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TERM_INPUT_H
#define TUI_TERM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes from a terminal to events. Only shapes decide: an escape sequence that is not known is swallowed whole, a reply
 * never becomes a key, a paste never becomes keys. The events do not depend on how the bytes were cut into reads.
 */

/* Keys: a Unicode character, or one of these. Ctrl+letter is the lower-case letter with TERM_CTRL. */
enum term_key {
	TERM_KEY_NONE = 0,
	TERM_KEY_ESC = 0x110000, TERM_KEY_ENTER, TERM_KEY_TAB, TERM_KEY_BACKSPACE, TERM_KEY_UP, TERM_KEY_DOWN,
	TERM_KEY_LEFT, TERM_KEY_RIGHT, TERM_KEY_HOME, TERM_KEY_END, TERM_KEY_PGUP, TERM_KEY_PGDN, TERM_KEY_INSERT,
	TERM_KEY_DELETE, TERM_KEY_F1, TERM_KEY_F12 = TERM_KEY_F1 + 11, TERM_KEY_END_OF_LIST
};
enum term_mod { TERM_SHIFT = 1, TERM_ALT = 2, TERM_CTRL = 4 };

enum term_ev_type { TERM_EV_KEY, TERM_EV_MOUSE, TERM_EV_PASTE, TERM_EV_PASTE_END, TERM_EV_REPLY };
enum term_mouse { TERM_MOUSE_PRESS, TERM_MOUSE_RELEASE, TERM_MOUSE_DRAG, TERM_MOUSE_WHEEL_UP, TERM_MOUSE_WHEEL_DOWN };

struct term_ev {
	enum term_ev_type type;
	uint32_t key;          /* KEY */
	uint8_t mods;          /* KEY, MOUSE: enum term_mod bits */
	enum term_mouse mouse; /* MOUSE */
	int button;            /* MOUSE: 0 left, 1 middle, 2 right */
	int x, y;              /* MOUSE: cell, from 0 */
	char intro;            /* REPLY: '[', ']', 'P' or '_', as after ESC */
	const char *text;      /* PASTE: bytes; REPLY: what is between introducer and terminator (for '[' with the
				* final byte); valid during the call */
	size_t text_len;
};

typedef void term_ev_fn(void *ctx, const struct term_ev *ev);

#define TERM_INPUT_MAX 4096 /* of one sequence; a longer one is swallowed */

struct term_input {
	uint8_t state;
	bool is_overlong;
	bool in_paste;
	uint8_t skip_cnt;   /* bytes of an old-style mouse report still to swallow */
	uint8_t utf8_need;
	bool utf8_alt;
	size_t len;
	char buf[TERM_INPUT_MAX];
};

/* Feeds bytes; calls `fn` for each event. Zero-initialise `in` first. */
void term_input_feed(struct term_input *in, const void *bytes, size_t len, term_ev_fn *fn, void *ctx);

/* How long to wait for more bytes before term_input_timeout(), in ms; 0: nothing is pending. A lone Esc waits 25 ms,
 * an unfinished sequence longer. */
int term_input_wait_ms(const struct term_input *in);

/* No more bytes came: what is pending becomes a key (Esc, Alt+[) or is dropped (an unfinished sequence). */
void term_input_timeout(struct term_input *in, term_ev_fn *fn, void *ctx);

/* "Ctrl+P", "F1", "Alt+Left", "G", "Space" to key and modifiers; false when it is no key. */
bool term_key_parse(const char *name, size_t len, uint32_t *ret_key, uint8_t *ret_mods);

#endif
