/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal layer without a terminal: cells, the writer against a terminal model (libvterm), the input parser,
 * capability replies, contrast of the theme.
 */
#include "tui/term/caps.h"
#include "tui/term/cells.h"
#include "tui/term/input.h"
#include "tui/term/theme.h"
#include "tui/term/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <vterm.h>

static uint64_t rng_state;

static uint32_t rng(uint32_t below)
{
	rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((rng_state >> 33) % below);
}

static void row_text(const struct cells *g, int y, char *out, size_t len)
{
	size_t n = 0;
	for (int x = 0; x < g->w && n + 1 < len; x++) {
		uint32_t cp = g->cell[y * g->w + x].cp;
		if (cp)
			out[n++] = cp < 0x80 ? (char)cp : '?';
	}
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
}

static void check_text(const char *text, size_t len, int width, const char *expected, int expected_cols)
{
	struct cells g = {0};
	struct cells_style st = {0};
	char row[256];
	assert_true(cells_resize(&g, width, 1));
	cells_fill(&g, (struct cells_rect){0, 0, width, 1}, st);
	struct cells_pen p = {.g = &g, .end = width, .st = st};
	assert_int_equal(cells_text(&p, text, len), expected_cols);
	assert_int_equal(cells_text_width(&g, text, len), expected_cols);
	row_text(&g, 0, row, sizeof(row));
	assert_string_equal(row, expected);
	cells_fini(&g);
}

static void test_text_escapes(void **state)
{
	check_text("plain", 5, 20, "plain", 5);
	check_text("a\x1b[31mb\n", 8, 20, "a\\x1b[31mb\\n", 12);
	check_text("\x00\x7f\xff", 3, 20, "\\x00\\x7f\\xff", 12);
	check_text("x\xe2\x80\xaey", 5, 20, "x\\u{202e}y", 10); /* right-to-left override */
	check_text("\xe2\x80\x8b", 3, 20, "\\u{200b}", 8);      /* zero width space */
	check_text("\xc2\x9b", 2, 20, "\\u{9b}", 6);            /* C1 CSI */
	check_text("\xcc\x81", 2, 20, "\\u{301}", 7);           /* a mark with nothing to sit on */
	check_text("e\xcc\x81.", 4, 20, "e.", 2);
	check_text("e\xcc\x81\xcc\x81\xcc\x81.", 8, 20, "e\\u{301}.", 9); /* no towers of marks */
	check_text("\xe6\xbc\xa2\xe5\xad\x97", 6, 20, "??", 4);
	check_text("abcdefgh", 8, 5, "abcd?", 8); /* an ellipsis, never a silent cut */
	check_text("abc\xe6\xbc\xa2", 6, 4, "abc?", 5);
	check_text("\xed\xa0\x80\xc0\x80", 5, 30, "\\xed\\xa0\\x80\\xc0\\x80", 20);
}

static void test_ascii_grid(void **state)
{
	struct cells g = {.is_ascii = true};
	struct cells_style st = {0};
	char row[64];
	assert_true(cells_resize(&g, 20, 3));
	cells_fill(&g, (struct cells_rect){0, 0, 20, 3}, st);
	struct cells_pen p = {.g = &g, .end = 20, .st = st};
	cells_str(&p, "\xc3\xa9t\xc3\xa9");
	row_text(&g, 0, row, sizeof(row));
	assert_string_equal(row, "\\u{e9}t\\u{e9}");
	cells_box(&g, (struct cells_rect){0, 0, 20, 3}, "box", st);
	for (int i = 0; i < 60; i++)
		assert_true(g.cell[i].cp < 0x7f);
	cells_fini(&g);
}

static void check_halves(const struct cells *g)
{
	for (int i = 0; i < g->w * g->h; i++) {
		bool starts_row = i % g->w == 0;
		bool ends_row = i % g->w == g->w - 1;
		if (g->cell[i].width == 2)
			assert_true(!ends_row && g->cell[i + 1].width == 0 && g->cell[i + 1].cp == 0);
		if (g->cell[i].width == 0)
			assert_true(!starts_row && g->cell[i - 1].width == 2);
	}
}

static void test_wide_halves(void **state)
{
	struct cells g = {0};
	struct cells_style st = {0};
	assert_true(cells_resize(&g, 9, 4));
	cells_fill(&g, (struct cells_rect){0, 0, 9, 4}, st);
	rng_state = 7;
	for (int i = 0; i < 20000; i++) {
		int x = (int)rng(9);
		int y = (int)rng(4);
		if (rng(4) == 0)
			cells_fill(&g, (struct cells_rect){x, y, (int)rng(4), 1 + (int)rng(2)}, st);
		else
			cells_put(&g, x, y, rng(2) ? 0x6f22 : 'a', st);
		check_halves(&g);
	}
	cells_fini(&g);
}

static void test_widths(void **state)
{
	assert_int_equal(cells_width('a'), WIDTH_ONE);
	assert_int_equal(cells_width(0x6f22), WIDTH_WIDE);
	assert_int_equal(cells_width(0x1f600), WIDTH_WIDE);
	assert_int_equal(cells_width(0x301), WIDTH_MARK);
	assert_int_equal(cells_width(0x202e), WIDTH_ESCAPE);
	assert_int_equal(cells_width(0x2066), WIDTH_ESCAPE);
	assert_int_equal(cells_width(0x61c), WIDTH_ESCAPE);
	assert_int_equal(cells_width(0xfe0f), WIDTH_ESCAPE);
	assert_int_equal(cells_width(0x2500), WIDTH_ONE);
	assert_int_equal(cells_width(0x110000), WIDTH_ESCAPE);
}

/* --- the writer against libvterm ---------------------------------------------------------------------- */

struct model {
	VTerm *vt;
	VTermScreen *screen;
	VTermPos cursor;
	int shown;
};

static int on_cursor(VTermPos pos, VTermPos old, int visible, void *user)
{
	struct model *m = user;
	m->cursor = pos;
	return 1;
}

static int on_prop(VTermProp prop, VTermValue *val, void *user)
{
	struct model *m = user;
	if (prop == VTERM_PROP_CURSORVISIBLE)
		m->shown = val->boolean;
	return 1;
}

static const VTermScreenCallbacks model_callbacks = {.movecursor = on_cursor, .settermprop = on_prop};

static void model_init(struct model *m, int w, int h)
{
	m->vt = vterm_new(h, w);
	vterm_set_utf8(m->vt, 1);
	m->screen = vterm_obtain_screen(m->vt);
	vterm_screen_set_callbacks(m->screen, &model_callbacks, m);
	vterm_screen_enable_altscreen(m->screen, 1);
	vterm_screen_reset(m->screen, 1);
	m->shown = 1;
	static const char modes[] = "\x1b[?1049h\x1b[?7l";
	vterm_input_write(m->vt, modes, sizeof(modes) - 1);
}

static bool colour_is(const VTermColor *c, bool is_bg, enum term_depth depth, const struct term_palette *pal, uint8_t role)
{
	bool is_default = is_bg ? VTERM_COLOR_IS_DEFAULT_BG(c) : VTERM_COLOR_IS_DEFAULT_FG(c);
	if (!role || depth == TERM_MONO || (depth == TERM_16 && pal->c16[role] == TERM_COLOUR_DEFAULT))
		return is_default;
	if (is_default)
		return false;
	if (depth == TERM_16)
		return VTERM_COLOR_IS_INDEXED(c) && c->indexed.idx == pal->c16[role];
	if (depth == TERM_256)
		return VTERM_COLOR_IS_INDEXED(c) && c->indexed.idx == pal->c256[role];
	return VTERM_COLOR_IS_RGB(c) &&
	       (uint32_t)(c->rgb.red << 16 | c->rgb.green << 8 | c->rgb.blue) == pal->rgb[role];
}

static bool cell_is(struct model *m, const struct term_writer *w, const struct cells *g, int x, int y)
{
	const struct cells_cell *want = &g->cell[y * g->w + x];
	VTermScreenCell got;
	if (want->width == 0)
		return true;
	if (!vterm_screen_get_cell(m->screen, (VTermPos){.row = y, .col = x}, &got))
		return false;
	uint32_t cp = got.chars[0] ? got.chars[0] : ' ';
	uint8_t attr = want->st.attr;
	if (w->depth == TERM_MONO)
		attr |= w->palette.mono_attr[want->st.fg] | w->palette.mono_attr[want->st.bg];
	/* Of a blank only the ground is seen. */
	if (want->cp == ' ' && !want->mark[0] && !(attr & (CELLS_UNDERLINE | CELLS_REVERSE)))
		return cp == ' ' && (!got.chars[0] || !got.chars[1]) && !got.attrs.underline && !got.attrs.reverse &&
		       colour_is(&got.bg, true, w->depth, &w->palette, want->st.bg);
	return cp == want->cp && got.width == want->width && got.chars[1] == want->mark[0] &&
	       (!want->mark[0] || got.chars[2] == want->mark[1]) && got.attrs.bold == !!(attr & CELLS_BOLD) &&
	       got.attrs.italic == !!(attr & CELLS_ITALIC) && !!got.attrs.underline == !!(attr & CELLS_UNDERLINE) &&
	       got.attrs.reverse == !!(attr & CELLS_REVERSE) && colour_is(&got.fg, false, w->depth, &w->palette, want->st.fg) &&
	       colour_is(&got.bg, true, w->depth, &w->palette, want->st.bg);
}

static void check_screen(struct model *m, const struct term_writer *w, const struct cells *g, int frame)
{
	for (int y = 0; y < g->h; y++) {
		for (int x = 0; x < g->w; x++) {
			if (!cell_is(m, w, g, x, y))
				fail_msg("frame %d, cell %d,%d (U+%04X) differs at depth %s", frame, x, y,
					 g->cell[y * g->w + x].cp, term_depth_name(w->depth));
		}
	}
}

static bool only_narrow; /* wide characters across an edge forbid moving a part of the rows */

static void random_cell(struct cells *g, int x, int y)
{
	static const uint32_t odd[] = {0x6f22, 0x5b57, 0xe9, 0x2500, 0x2588, 0x3b1, 0xac00, 0xff21};
	struct cells_style st = {(uint8_t)rng(8), (uint8_t)rng(8), (uint8_t)(rng(3) ? 0 : rng(16))};
	cells_put(g, x, y, only_narrow || rng(6) ? 0x20 + rng(0x5f) : odd[rng(ARRAY_LEN(odd))], st);
	if (rng(40) == 0 && g->cell[y * g->w + x].width)
		g->cell[y * g->w + x].mark[0] = 0x301;
}

/* The next frame: scattered edits, moved blocks, whole new rows, or all new. */
static void mutate(struct cells *g, struct cells_rect *hint)
{
	hint->w = 0;
	uint32_t how = rng(11);
	if (how == 10) {
		struct cells_style st = {(uint8_t)rng(8), (uint8_t)rng(8), (uint8_t)(rng(3) ? 0 : rng(16))};
		cells_fill(g, (struct cells_rect){(int)rng((uint32_t)g->w), (int)rng((uint32_t)g->h), (int)rng(40), 2}, st);
		return;
	}
	if (how < 4) {
		for (uint32_t n = rng(30); n; n--)
			random_cell(g, (int)rng((uint32_t)g->w), (int)rng((uint32_t)g->h));
		return;
	}
	if (how < 8) {
		int x = (int)rng((uint32_t)g->w / 2);
		int y = (int)rng((uint32_t)g->h / 2);
		*hint = (struct cells_rect){x, y, g->w - x - (int)rng(3), g->h - y - (int)rng(2)};
		int d = (int)rng(5) - 2;
		struct cells copy = {0};
		assert_true(cells_resize(&copy, g->w, g->h));
		memcpy(copy.cell, g->cell, (size_t)(g->w * g->h) * sizeof(*g->cell));
		for (int row = hint->y; row < hint->y + hint->h; row++) {
			for (int col = hint->x; col < hint->x + hint->w; col++) {
				int from = row + d;
				const struct cells_cell *c = &copy.cell[from * g->w + col];
				if (from < hint->y || from >= hint->y + hint->h)
					random_cell(g, col, row);
				else if (c->width)
					cells_put(g, col, row, c->cp, c->st);
			}
		}
		cells_fini(&copy);
		return;
	}
	for (int y = 0; y < g->h; y++) {
		for (int x = 0; x < g->w && (how == 9 || y % 3 == 0); x++)
			random_cell(g, x, y);
	}
}

static void run_frames(enum term_depth depth, int frames, uint64_t seed)
{
	struct model m = {0};
	struct term_writer w = {.depth = depth, .has_sync = seed & 1, .has_margins = seed & 2, .has_bce = seed & 8};
	struct cells g = {0};
	struct buf out = {0};
	rng_state = seed;
	only_narrow = seed & 4;
	for (int i = 0; i < TERM_ROLE_MAX; i++) {
		w.palette.rgb[i] = rng(0x1000000);
		w.palette.c256[i] = (uint8_t)(16 + rng(240));
		w.palette.c16[i] = (uint8_t)(rng(5) ? rng(16) : TERM_COLOUR_DEFAULT);
		w.palette.mono_attr[i] = (uint8_t)(rng(3) ? 0 : rng(16));
	}
	int width = 12 + (int)rng(60);
	int height = 4 + (int)rng(20);
	model_init(&m, width, height);
	assert_true(cells_resize(&g, width, height));
	cells_fill(&g, (struct cells_rect){0, 0, width, height}, (struct cells_style){0});
	for (int i = 0; i < frames; i++) {
		int cx = rng(5) ? (int)rng((uint32_t)width) : -1;
		int cy = (int)rng((uint32_t)height);
		mutate(&g, &w.scroll_hint);
		out.len = 0;
		assert_true(term_writer_frame(&w, &g, cx, cy, &out));
		vterm_input_write(m.vt, out.data, out.len);
		check_screen(&m, &w, &g, i);
		assert_int_equal(m.shown, cx >= 0);
		if (cx >= 0) {
			vterm_state_get_cursorpos(vterm_obtain_state(m.vt), &m.cursor);
			assert_int_equal(m.cursor.col, cx);
			assert_int_equal(m.cursor.row, cy);
		}
		out.len = 0;
		assert_true(term_writer_frame(&w, &g, cx, cy, &out));
		assert_int_equal(out.len, 0); /* the same frame again costs nothing */
	}
	buf_fini(&out);
	cells_fini(&g);
	term_writer_fini(&w);
	vterm_free(m.vt);
}

static void test_writer_random_frames(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		for (int depth = TERM_MONO; depth <= TERM_TRUE; depth++)
			run_frames((enum term_depth)depth, 25, seed * 1000 * 16 + seed % 16);
	}
}

/* A screen like ours: `top` is the number of the first line of the right pane. */
static void paint_page(struct cells *g, int pane_w, int top)
{
	char text[200];
	struct cells_style st = {ROLE_TEXT, ROLE_BG, 0};
	cells_fill(g, (struct cells_rect){0, 0, g->w, g->h}, st);
	for (int y = 1; y < g->h - 2; y++) {
		struct cells_pen left = {.g = g, .x = 0, .y = y, .end = pane_w, .st = st};
		if (pane_w)
			cells_printf(&left, "sub_%06x", y * 7919);
		struct cells_pen p = {.g = g, .x = pane_w, .y = y, .end = g->w, .st = {ROLE_ADDR, ROLE_BG, 0}};
		int n = top + y;
		cells_printf(&p, "%012x ", 0x401000 + n * 5);
		static const uint8_t roles[] = {ROLE_MNEMONIC, ROLE_REG, ROLE_PUNCT, ROLE_NUMBER, ROLE_NAME, ROLE_COMMENT};
		for (size_t i = 0; i < ARRAY_LEN(roles) * 2; i++) {
			p.st.fg = roles[i % ARRAY_LEN(roles)];
			snprintf(text, sizeof(text), "t%x ", (unsigned)(n * 31 + (int)i) * 2654435761u % 4096);
			cells_str(&p, text);
		}
	}
}

static size_t scrolled_bytes(bool has_margins, int pane_w)
{
	struct term_writer w = {.depth = TERM_TRUE, .has_margins = has_margins};
	struct cells g = {0};
	struct buf out = {0};
	struct model m = {0};
	term_theme(&w.palette, 0);
	model_init(&m, 200, 60);
	assert_true(cells_resize(&g, 200, 60));
	paint_page(&g, pane_w, 0);
	assert_true(term_writer_frame(&w, &g, 0, 0, &out));
	vterm_input_write(m.vt, out.data, out.len);
	out.len = 0;
	paint_page(&g, pane_w, 1);
	w.scroll_hint = (struct cells_rect){pane_w, 1, 200 - pane_w, 57};
	assert_true(term_writer_frame(&w, &g, 0, 0, &out));
	vterm_input_write(m.vt, out.data, out.len);
	check_screen(&m, &w, &g, 1);
	size_t len = out.len;
	buf_fini(&out);
	cells_fini(&g);
	term_writer_fini(&w);
	vterm_free(m.vt);
	return len;
}

static void test_scroll_is_cheap(void **state)
{
	assert_in_range(scrolled_bytes(false, 0), 1, 1024);
	assert_in_range(scrolled_bytes(true, 30), 1, 1024);
	size_t repaired = scrolled_bytes(false, 30); /* the other pane is moved along and put right */
	assert_in_range(repaired, 1, 3072);
}

/* --- input ---------------------------------------------------------------------------------------------- */

static void log_event(void *ctx, const struct term_ev *ev)
{
	struct buf *b = ctx;
	switch (ev->type) {
	case TERM_EV_KEY:
		buf_printf(b, "k%x.%u ", ev->key, ev->mods);
		break;
	case TERM_EV_MOUSE:
		buf_printf(b, "m%d.%d.%d.%d.%u ", ev->mouse, ev->button, ev->x, ev->y, ev->mods);
		break;
	case TERM_EV_PASTE:
		buf_add_str(b, "p<");
		buf_add(b, ev->text, ev->text_len);
		buf_add_str(b, "> ");
		break;
	case TERM_EV_PASTE_END:
		buf_add_str(b, "e ");
		break;
	case TERM_EV_REPLY:
		buf_printf(b, "r%c", ev->intro);
		buf_add(b, ev->text, ev->text_len);
		buf_add_ch(b, ' ');
		break;
	}
}

struct input_case {
	const char *bytes;
	const char *events;
};

static const struct input_case input_cases[] = {
	{"a", "k61.0 "},
	{"\x01", "k61.4 "},
	{"\r", "k110001.0 "},
	{"\t", "k110002.0 "},
	{"\x7f", "k110003.0 "},
	{"\x1c", "k5c.4 "},
	{"\xc3\xa9", "ke9.0 "},
	{"\xe6\xbc\xa2", "k6f22.0 "},
	{"\xf0\x9f\x98\x80", "k1f600.0 "},
	{"\xe6" "a", "kfffd.0 k61.0 "},
	{"\xff" "a", "kfffd.0 k61.0 "},
	{"\x1b[A", "k110004.0 "},
	{"\x1bOB", "k110005.0 "},
	{"\x1b[1;5C", "k110007.4 "},
	{"\x1b[1;3D", "k110006.2 "},
	{"\x1b[H\x1b[F", "k110008.0 k110009.0 "},
	{"\x1b[5~\x1b[6~", "k11000a.0 k11000b.0 "},
	{"\x1b[2~\x1b[3~", "k11000c.0 k11000d.0 "},
	{"\x1bOP\x1b[15~\x1b[24~", "k11000e.0 k110012.0 k110019.0 "},
	{"\x1b[[A", "k11000e.0 "},
	{"\x1b[Z", "k110002.1 "},
	{"\x1bx", "k78.2 "},
	{"\x1b\xc3\xa9", "ke9.2 "},
	{"\x1b\x1b[A", "k110000.0 k110004.0 "},
	{"\x1b[27;5;9~", "k110002.4 "},
	{"\x1b[97;5u", "k61.4 "},
	{"\x1b[27u", "k110000.0 "},
	{"\x1b[97:65;2u", "k41.0 "},
	{"\x1b[57344u", ""},
	{"\x1b[<0;10;5M", "m0.0.9.4.0 "},
	{"\x1b[<0;10;5m", "m1.0.9.4.0 "},
	{"\x1b[<32;10;5M", "m2.0.9.4.0 "},
	{"\x1b[<64;1;1M\x1b[<65;1;1M", "m3.0.0.0.0 m4.1.0.0.0 "},
	{"\x1b[<20;3;4M", "m0.0.2.3.5 "},
	{"\x1b[<35;3;4M\x1b[<0;0;4M\x1b[<0;3M", ""},
	{"\x1b[M !!x", "k78.0 "},
	{"\x1b[200~q\x1b[Aq\x1b[201~z", "p<q\x1b[Aq> e k7a.0 "},
	{"\x1b[200~\x1b[201~", "e "},
	{"\x1b[?62;22c", "r[?62;22c "},
	{"\x1b[?2026;2$y", "r[?2026;2$y "},
	{"\x1b[>41;354;0c", "r[>41;354;0c "},
	{"\x1bP>|tmux 3.3a\x1b\\q", "rP>|tmux 3.3a k71.0 "},
	{"\x1b]11;rgb:00/00/00\x07q", "r]11;rgb:00/00/00 k71.0 "},
	{"\x1b]11;rgb:0000/0000/0000\x1b\\q", "r]11;rgb:0000/0000/0000 k71.0 "},
	{"\x1b_Gi=1;OK\x1b\\", "r_Gi=1;OK "},
	{"\x1b^private\x1b\\a", "k61.0 "},
	{"\x1bXstart\x1b\\a", "k61.0 "},
	{"\x1b]11;\x1b[A", "k110004.0 "},
	{"\x1b]11;\x18" "a", "k61.0 "},
	{"\x1b[12;34R", ""},
	{"\x1b[I\x1b[O", ""},
	{"\x1b[1!p\x1b[ q", ""},
	{"\x1b[999999999999999999999999~a", "k61.0 "},
};

static void test_input_split_everywhere(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(input_cases); i++) {
		const char *s = input_cases[i].bytes;
		size_t len = strlen(s);
		for (size_t a = 0; a <= len; a++) {
			for (size_t b = a; b <= len; b++) {
				struct term_input in = {0};
				struct buf log = {0};
				term_input_feed(&in, s, a, log_event, &log);
				term_input_feed(&in, s + a, b - a, log_event, &log);
				term_input_feed(&in, s + b, len - b, log_event, &log);
				buf_add_ch(&log, '\0');
				assert_false(log.failed);
				if (strcmp(log.data, input_cases[i].events) != 0)
					fail_msg("case %zu split at %zu,%zu: got \"%s\", want \"%s\"", i, a, b, log.data,
						 input_cases[i].events);
				assert_int_equal(term_input_wait_ms(&in), 0);
				buf_fini(&log);
			}
		}
	}
}

static void check_timeout(const char *bytes, int wait_ms, const char *events)
{
	struct term_input in = {0};
	struct buf log = {0};
	term_input_feed(&in, bytes, strlen(bytes), log_event, &log);
	assert_int_equal(term_input_wait_ms(&in), wait_ms);
	term_input_timeout(&in, log_event, &log);
	term_input_feed(&in, "z", 1, log_event, &log);
	buf_add_ch(&log, '\0');
	assert_string_equal(log.data, events);
	buf_fini(&log);
}

static void test_input_timeouts(void **state)
{
	check_timeout("\x1b", 25, "k110000.0 k7a.0 ");
	check_timeout("\x1b[", 25, "k5b.2 k7a.0 ");
	check_timeout("\x1bO", 25, "k4f.2 k7a.0 ");
	check_timeout("\x1b]", 25, "k5d.2 k7a.0 ");
	check_timeout("\x1b[1;", 500, "k7a.0 ");
	check_timeout("\x1b]11;rgb", 500, "k7a.0 ");
	check_timeout("\x1bP>|ab\x1b", 500, "k7a.0 ");
	check_timeout("\xe6\xbc", 500, "k7a.0 ");
}

static void test_input_paste_of_a_megabyte(void **state)
{
	struct term_input in = {0};
	struct buf log = {0};
	size_t len = 1 << 20;
	char *text = malloc(len);
	assert_non_null(text);
	memset(text, 'q', len);
	term_input_feed(&in, "\x1b[200~", 6, log_event, &log);
	term_input_feed(&in, text, len, log_event, &log);
	term_input_feed(&in, "\x1b[201~", 6, log_event, &log);
	size_t cnt = 0;
	for (size_t i = 0; i < log.len; i++)
		cnt += log.data[i] == 'q';
	assert_int_equal(cnt, len);
	assert_null(memchr(log.data, 'k', log.len));
	buf_fini(&log);
	free(text);
}

static void test_input_overlong_is_swallowed(void **state)
{
	static const char *const intro[] = {"\x1b[", "\x1b]", "\x1bP"};
	static const char *const end[] = {"m", "\x07", "\x1b\\"};
	for (size_t i = 0; i < ARRAY_LEN(intro); i++) {
		struct term_input in = {0};
		struct buf log = {0};
		term_input_feed(&in, intro[i], strlen(intro[i]), log_event, &log);
		for (int n = 0; n < 3 * TERM_INPUT_MAX; n++)
			term_input_feed(&in, "1", 1, log_event, &log);
		term_input_feed(&in, end[i], strlen(end[i]), log_event, &log);
		term_input_feed(&in, "z", 1, log_event, &log);
		buf_add_ch(&log, '\0');
		assert_string_equal(log.data, "k7a.0 ");
		buf_fini(&log);
	}
}

/* Random bytes, cut differently: the same events, and afterwards the parser still hears a key. */
static void test_input_random(void **state)
{
	static const char pool[] = "\x1b\x1b\x1b[[]OP<?;;0123456789~MmuABc$y\\\x07\x18 aq\xc3\xa9\xff\xe6";
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		char bytes[64];
		struct buf log[2] = {{0}, {0}};
		rng_state = seed;
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = rng(8) ? pool[rng(sizeof(pool) - 1)] : (char)rng(256);
		for (int pass = 0; pass < 2; pass++) {
			struct term_input in = {0};
			for (size_t i = 0; i < sizeof(bytes);) {
				size_t n = pass ? 1 + rng(5) : sizeof(bytes);
				n = MIN(n, sizeof(bytes) - i);
				term_input_feed(&in, bytes + i, n, log_event, &log[pass]);
				i += n;
			}
			term_input_timeout(&in, log_event, &log[pass]);
			term_input_feed(&in, "\x1b[201~", 6, log_event, &log[pass]);
			buf_add_ch(&log[pass], '!');
			term_input_feed(&in, "z", 1, log_event, &log[pass]);
			static const char last[] = "!k7a.0 ";
			assert_true(log[pass].len >= sizeof(last) - 1);
			assert_memory_equal(log[pass].data + log[pass].len - (sizeof(last) - 1), last, sizeof(last) - 1);
		}
		assert_int_equal(log[0].len, log[1].len);
		assert_memory_equal(log[0].data, log[1].data, log[0].len);
		buf_fini(&log[0]);
		buf_fini(&log[1]);
	}
}

static void test_key_names(void **state)
{
	static const struct { const char *name; uint32_t key; uint8_t mods; } cases[] = {
		{"g", 'g', 0},
		{"G", 'G', 0},
		{"Ctrl+P", 'p', TERM_CTRL},
		{"Ctrl+\\", '\\', TERM_CTRL},
		{"Alt+Left", TERM_KEY_LEFT, TERM_ALT},
		{"Shift+Tab", TERM_KEY_TAB, TERM_SHIFT},
		{"F1", TERM_KEY_F1, 0},
		{"F12", TERM_KEY_F12, 0},
		{"Space", ' ', 0},
		{"+", '+', 0},
		{"\"", '"', 0},
	};
	uint32_t key;
	uint8_t mods;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(term_key_parse(cases[i].name, strlen(cases[i].name), &key, &mods));
		assert_int_equal(key, cases[i].key);
		assert_int_equal(mods, cases[i].mods);
	}
	assert_false(term_key_parse("F13", 3, &key, &mods));
	assert_false(term_key_parse("Nope", 4, &key, &mods));
	assert_false(term_key_parse("", 0, &key, &mods));
}

/* --- capabilities ----------------------------------------------------------------------------------------- */

static const char *const *fake_env;

static const char *fake_getenv(const char *name)
{
	size_t n = strlen(name);
	for (const char *const *e = fake_env; *e; e++) {
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	}
	return NULL;
}

static struct term_caps caps_of(const char *const *env)
{
	struct term_caps c;
	fake_env = env;
	term_caps_env(&c, fake_getenv);
	return c;
}

#define CAPS(...) caps_of((const char *const[]){__VA_ARGS__, NULL})

static void caps_event(void *ctx, const struct term_ev *ev)
{
	assert_int_equal(ev->type, TERM_EV_REPLY);
	term_caps_reply(ctx, ev);
}

static void tell(struct term_caps *c, const char *reply)
{
	struct term_input in = {0};
	term_input_feed(&in, reply, strlen(reply), caps_event, c);
}

static void test_caps_environment(void **state)
{
	assert_true(CAPS("LANG=C").is_dumb);
	assert_true(CAPS("TERM=dumb").is_dumb);
	assert_int_equal(CAPS("TERM=xterm").depth, TERM_16);
	assert_int_equal(CAPS("TERM=xterm-256color").depth, TERM_256);
	assert_int_equal(CAPS("TERM=xterm-256color", "COLORTERM=truecolor").depth, TERM_TRUE);
	assert_int_equal(CAPS("TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=1").depth, TERM_MONO);
	assert_int_equal(CAPS("TERM=xterm-256color", "NO_COLOR=").depth, TERM_256);
	assert_int_equal(CAPS("TERM=xterm-256color", "SCRY_COLOR=16").depth, TERM_16);
	assert_true(CAPS("TERM=xterm", "LANG=de_DE.UTF-8").is_utf8);
	assert_false(CAPS("TERM=xterm", "LC_ALL=C", "LANG=de_DE.UTF-8").is_utf8);
	assert_true(CAPS("TERM=linux").is_console);
	assert_false(CAPS("TERM=xterm", "LANG=de_DE.UTF-8", "SCRY_NO=unicode").is_utf8);
	assert_int_equal(CAPS("TERM=xterm", "COLORTERM=truecolor", "SCRY_NO=truecolor").depth, TERM_256);
	for (int cap = 0; cap < TERM_CAP_COUNT; cap++) {
		char no[64];
		snprintf(no, sizeof(no), "SCRY_NO=x%s %s,", term_cap_name((enum term_cap)cap), term_cap_name((enum term_cap)cap));
		assert_int_equal(CAPS("TERM=xterm", no).no, 1u << cap);
		assert_true(term_caps_is_name(term_cap_name((enum term_cap)cap)));
	}
	assert_int_equal(CAPS("TERM=xterm", "SCRY_NO=xsync").no, 0);
	assert_string_equal(term_caps_queries(&(struct term_caps){.is_console = true}), "\x1b[c");
}

static void test_caps_replies(void **state)
{
	struct term_caps c = CAPS("TERM=xterm-256color");
	tell(&c, "\x1b[?2026;2$y\x1b[?69;0$y\x1b[?0u");
	assert_true(c.has_sync);
	assert_false(c.has_margins);
	assert_true(c.has_key_codes);
	assert_false(c.is_answered);
	tell(&c, "\x1b[?62c");
	assert_true(c.is_answered);
	assert_int_equal(c.depth, TERM_256);
	tell(&c, "\x1bP1$r0;48:2:1:2:3m\x1b\\");
	assert_int_equal(c.depth, TERM_TRUE);
	c = CAPS("TERM=screen-256color");
	tell(&c, "\x1bP>|tmux 3.3a\x1b\\");
	assert_int_equal(c.depth, TERM_TRUE);
	c = CAPS("TERM=xterm", "NO_COLOR=1");
	tell(&c, "\x1bP1+r524742=8\x1b\\\x1bP>|tmux 3.3a\x1b\\");
	assert_int_equal(c.depth, TERM_MONO);
	tell(&c, "\x1b]11;rgb:ffff/ffff/eeee\x1b\\");
	assert_true(c.is_light);
	tell(&c, "\x1b]11;rgb:10/10/20\x1b\\");
	assert_false(c.is_light);
	tell(&c, "\x1b]11;rgb:zz\x1b\\\x1b]11;rgb:ff/ff\x1b\\\x1bP\x1b\\");
	assert_false(c.is_light);
	/* What is not to be used is not, whatever the terminal says. */
	c = CAPS("TERM=xterm", "SCRY_NO=sync margins bce keys ground truecolor");
	tell(&c, "\x1b[?2026;2$y\x1b[?69;1$y\x1b[?0u\x1bP1+r626365\x1b\\\x1bP1+r524742=8\x1b\\\x1b]11;rgb:ffff/ffff/eeee\x1b\\");
	assert_false(c.has_sync || c.has_margins || c.has_bce || c.has_key_codes || c.is_light || c.depth == TERM_TRUE);
}

/* --- contrast ------------------------------------------------------------------------------------------------ */

static void check_contrast(const struct term_palette *pal, int fg, int bg, bool is_light)
{
	int full = term_contrast(pal->rgb[fg], pal->rgb[bg]);
	int reduced = term_contrast(term_256_to_rgb(pal->c256[fg]), term_256_to_rgb(pal->c256[bg]));
	if (full < 450 || reduced < 450)
		fail_msg("role %d on %d, %s: contrast %d, in 256 colours %d", fg, bg, is_light ? "light" : "dark", full,
			 reduced);
	assert_true(pal->c16[fg] != pal->c16[bg]);
}

static void test_contrast(void **state)
{
	static const int grounds[] = {ROLE_BG, ROLE_BG_LINE, ROLE_BG_WORD, ROLE_BG_DIALOG};
	struct term_palette pal;
	assert_int_equal(term_contrast(0, 0xffffff), 2100);
	assert_in_range(term_contrast(0x767676, 0xffffff), 450, 458);
	for (int is_light = 0; is_light < 2; is_light++) {
		term_theme(&pal, is_light);
		for (size_t g = 0; g < ARRAY_LEN(grounds); g++) {
			for (int fg = ROLE_TEXT; fg <= ROLE_ARROW; fg++)
				check_contrast(&pal, fg, grounds[g], is_light);
		}
		for (int fg = ROLE_BAR; fg <= ROLE_BAR_NAME; fg++)
			check_contrast(&pal, fg, ROLE_BG_BAR, is_light);
		check_contrast(&pal, ROLE_SELECT, ROLE_BG_SELECT, is_light);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_escapes),
		cmocka_unit_test(test_ascii_grid),
		cmocka_unit_test(test_wide_halves),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_writer_random_frames),
		cmocka_unit_test(test_scroll_is_cheap),
		cmocka_unit_test(test_input_split_everywhere),
		cmocka_unit_test(test_input_timeouts),
		cmocka_unit_test(test_input_paste_of_a_megabyte),
		cmocka_unit_test(test_input_overlong_is_swallowed),
		cmocka_unit_test(test_input_random),
		cmocka_unit_test(test_key_names),
		cmocka_unit_test(test_caps_environment),
		cmocka_unit_test(test_caps_replies),
		cmocka_unit_test(test_contrast),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
