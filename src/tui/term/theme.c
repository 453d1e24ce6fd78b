/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/term/theme.h"

#include "tui/term/cells.h"

#include <string.h>

struct role_look {
	uint8_t role;
	uint32_t dark, light; /* 0xrrggbb */
	uint8_t dark16, light16;
	uint8_t mono_attr;
};

static const struct role_look looks[] = {
	{ROLE_TEXT, 0xd0d4da, 0x24292f, 7, 0, 0},
	{ROLE_DIM, 0x9ba4b0, 0x57606a, 7, 0, 0},
	{ROLE_ADDR, 0x98a2b0, 0x57606a, 7, 0, 0},
	{ROLE_BYTES, 0x9aa3af, 0x57606a, 7, 0, 0},
	{ROLE_MNEMONIC, 0xf2f4f7, 0x0b0e12, 15, 0, 0},
	{ROLE_REG, 0xc3cedd, 0x2c4464, 7, 0, 0},
	{ROLE_NUMBER, 0xe8bb7d, 0x6a3900, 11, 0, 0},
	{ROLE_NAME, 0x82c7ff, 0x0a4c9e, 14, 4, 0},
	{ROLE_STRING, 0xa3d98f, 0x17602a, 10, 0, 0},
	{ROLE_COMMENT, 0xa0a9b6, 0x56606b, 6, 0, 0},
	{ROLE_PUNCT, 0xa6aeb9, 0x4e5761, 7, 0, 0},
	{ROLE_LABEL, 0xf0d58a, 0x6b4a00, 11, 0, CELLS_BOLD},
	{ROLE_BANNER, 0xf0d58a, 0x6b4a00, 11, 0, CELLS_BOLD},
	{ROLE_ESCAPE, 0xf0a3c4, 0x97205a, 13, 5, CELLS_UNDERLINE},
	{ROLE_TITLE, 0xf2f4f7, 0x0b0e12, 15, 0, CELLS_BOLD},
	{ROLE_KEY, 0xf0d58a, 0x6b4a00, 11, 0, CELLS_BOLD},
	{ROLE_WARN, 0xf3b562, 0x6a3900, 11, 1, CELLS_BOLD},
	{ROLE_ERROR, 0xff9a90, 0xa3160f, 9, 1, CELLS_BOLD},
	{ROLE_BORDER, 0x99a3b1, 0x525a64, 7, 0, 0},
	{ROLE_BORDER_FOCUS, 0x82c7ff, 0x0a4c9e, 14, 4, CELLS_BOLD},
	{ROLE_EDGE_TAKEN, 0x8fd39b, 0x17602a, 10, 0, 0},
	{ROLE_EDGE_FALL, 0xf2a09a, 0xa3160f, 9, 1, 0},
	{ROLE_EDGE_JUMP, 0x86bdf0, 0x0a4c9e, 14, 4, 0},
	{ROLE_ARROW, 0x9fb4d0, 0x2c4a70, 6, 0, 0},
	{ROLE_BAR, 0xe3e7ec, 0x1c2127, 0, 7, 0},
	{ROLE_BAR_DIM, 0xb4bcc7, 0x454d56, 0, 7, 0},
	{ROLE_BAR_KEY, 0xf5da92, 0x5e3f00, 0, 7, CELLS_BOLD},
	{ROLE_BAR_WARN, 0xffc174, 0x7a2e00, 0, 7, CELLS_BOLD},
	{ROLE_BAR_NAME, 0x9bd3ff, 0x0a4285, 0, 7, 0},
	{ROLE_SELECT, 0xffffff, 0xffffff, 0, 15, 0},
	{ROLE_BG, 0x14171c, 0xfcfcfa, 0, 7, 0},
	{ROLE_BG_LINE, 0x202833, 0xe8eef6, 4, 7, CELLS_BOLD},
	{ROLE_BG_WORD, 0x2a3340, 0xd9e6f7, 4, 7, CELLS_REVERSE},
	{ROLE_BG_DIALOG, 0x1b2028, 0xf1f3f6, 0, 7, 0},
	{ROLE_BG_BAR, 0x2b323d, 0xdde2e9, 7, 0, CELLS_REVERSE},
	{ROLE_BG_SELECT, 0x2a5a91, 0x0b59a6, 7, 4, CELLS_REVERSE},
	{ROLE_BG_NOW, 0x3a2a10, 0xffeccc, 5, 3, CELLS_REVERSE},
	{ROLE_BG_PAST, 0x162637, 0xe6f0ff, 0, 7, 0},
	{ROLE_BG_AHEAD, 0x27203a, 0xf3eafd, 0, 7, 0},
};

void term_theme(struct term_palette *ret, int is_light)
{
	memset(ret, 0, sizeof(*ret));
	ret->c16[ROLE_DEFAULT] = TERM_COLOUR_DEFAULT;
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		const struct role_look *l = &looks[i];
		ret->rgb[l->role] = is_light ? l->light : l->dark;
		ret->c256[l->role] = term_rgb_to_256(ret->rgb[l->role]);
		ret->c16[l->role] = is_light ? l->light16 : l->dark16;
		ret->mono_attr[l->role] = l->mono_attr;
	}
}

static const uint8_t cube_levels[6] = {0, 95, 135, 175, 215, 255};

static uint32_t distance(uint32_t a, uint32_t b)
{
	int sum = 0;
	for (int shift = 0; shift <= 16; shift += 8) {
		int d = (int)(a >> shift & 0xff) - (int)(b >> shift & 0xff);
		sum += d * d;
	}
	return (uint32_t)sum;
}

uint32_t term_256_to_rgb(uint8_t idx)
{
	if (idx >= 232) {
		uint32_t v = 8 + 10u * (idx - 232u);
		return v << 16 | v << 8 | v;
	}
	if (idx < 16)
		return 0;
	uint32_t n = idx - 16u;
	return (uint32_t)cube_levels[n / 36] << 16 | (uint32_t)cube_levels[n / 6 % 6] << 8 | cube_levels[n % 6];
}

uint8_t term_rgb_to_256(uint32_t rgb)
{
	uint8_t best = 16;
	for (unsigned i = 16; i < 256; i++) {
		if (distance(term_256_to_rgb((uint8_t)i), rgb) < distance(term_256_to_rgb(best), rgb))
			best = (uint8_t)i;
	}
	return best;
}

/* v^2.4 for v in 0..1 without libm: v^2 * v^(2/5), the root by Newton's method. */
static double pow_2_4(double v)
{
	if (v <= 0)
		return 0;
	double target = v * v;
	double root = 1;
	for (int i = 0; i < 60; i++) {
		double r4 = root * root * root * root;
		root -= (r4 * root - target) / (5 * r4);
	}
	return target * root;
}

static double luminance(uint32_t rgb)
{
	static const double weight[3] = {0.0722, 0.7152, 0.2126};
	double sum = 0;
	for (int i = 0; i < 3; i++) {
		double c = (rgb >> (8 * i) & 0xff) / 255.0;
		sum += weight[i] * (c <= 0.03928 ? c / 12.92 : pow_2_4((c + 0.055) / 1.055));
	}
	return sum;
}

int term_contrast(uint32_t rgb1, uint32_t rgb2)
{
	double a = luminance(rgb1);
	double b = luminance(rgb2);
	return (int)(100 * (MAX(a, b) + 0.05) / (MIN(a, b) + 0.05));
}
