/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TERM_THEME_H
#define TUI_TERM_THEME_H

#include <stdint.h>

/*
 * Colours by meaning. Views name a role; the theme says what it looks like at each colour depth. Neutral greys carry
 * machine text, hue only where it means something, and nothing is said by hue alone.
 */
enum term_role {
	ROLE_DEFAULT, /* the terminal's own */
	/* text on ROLE_BG, ROLE_BG_LINE, ROLE_BG_WORD and ROLE_BG_DIALOG */
	ROLE_TEXT, ROLE_DIM, ROLE_ADDR, ROLE_BYTES, ROLE_MNEMONIC, ROLE_REG, ROLE_NUMBER, ROLE_NAME, ROLE_STRING,
	ROLE_COMMENT, ROLE_PUNCT, ROLE_LABEL, ROLE_BANNER, ROLE_ESCAPE, ROLE_TITLE, ROLE_KEY, ROLE_WARN, ROLE_ERROR,
	ROLE_BORDER, ROLE_BORDER_FOCUS, ROLE_EDGE_TAKEN, ROLE_EDGE_FALL, ROLE_EDGE_JUMP, ROLE_ARROW,
	/* text on ROLE_BG_BAR */
	ROLE_BAR, ROLE_BAR_DIM, ROLE_BAR_KEY, ROLE_BAR_WARN, ROLE_BAR_NAME,
	/* text on ROLE_BG_SELECT */
	ROLE_SELECT,
	/* grounds */
	ROLE_BG, ROLE_BG_LINE, ROLE_BG_WORD, ROLE_BG_DIALOG, ROLE_BG_BAR, ROLE_BG_SELECT,
	ROLE_BG_NOW, ROLE_BG_PAST, ROLE_BG_AHEAD, /* where a program is, was, will be */
	ROLE_COUNT
};

enum term_depth { TERM_MONO, TERM_16, TERM_256, TERM_TRUE };

#define TERM_COLOUR_DEFAULT 255 /* of 16 colours: the terminal's own */

/* A theme resolved for the writer: indexed by role; room for more than the roles so that tests may use their own. */
#define TERM_ROLE_MAX 64
struct term_palette {
	uint32_t rgb[TERM_ROLE_MAX];    /* 0xrrggbb */
	uint8_t c256[TERM_ROLE_MAX];
	uint8_t c16[TERM_ROLE_MAX];
	uint8_t mono_attr[TERM_ROLE_MAX]; /* enum cells_attr bits that stand in for the colour */
};

void term_theme(struct term_palette *ret, int is_light);

/* The entry of the 256-colour palette (16 .. 255) nearest to rgb, and what that entry looks like. */
uint8_t term_rgb_to_256(uint32_t rgb);
uint32_t term_256_to_rgb(uint8_t idx);

/* Contrast of two colours in hundredths (WCAG 2.1 relative luminance): 450 is 4.5:1. */
int term_contrast(uint32_t rgb1, uint32_t rgb2);

#endif
