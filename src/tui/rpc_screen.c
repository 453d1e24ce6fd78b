/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grid of cells as text, as HTML and as SVG. Colours are those of the theme at full depth, whatever the terminal can show; text is
 * the target's and is escaped (XML 1.0, section 2.4; code points that XML does not have become U+FFFD).
 */
#include "tui/rpc_int.h"

#include "base/utf8.h"

#define CELL_W 8  /* pixels of a cell in the picture */
#define CELL_H 17
#define BASE_Y 13

static void add_escaped(struct buf *out, uint32_t cp)
{
	char u8[4];
	if (cp == '<')
		buf_add_str(out, "&lt;");
	else if (cp == '>')
		buf_add_str(out, "&gt;");
	else if (cp == '&')
		buf_add_str(out, "&amp;");
	else if (cp == '"')
		buf_add_str(out, "&quot;");
	else
		buf_add(out, u8, utf8_put(cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp & 0xfffe) == 0xfffe ? 0xfffd : cp, u8));
}

static void add_cell(struct buf *out, const struct cells_cell *c, bool is_escaped)
{
	char u8[4];
	for (int i = -1; i < CELLS_MARK_CNT; i++) {
		uint32_t cp = i < 0 ? c->cp : c->mark[i];
		if (!cp)
			break;
		if (is_escaped)
			add_escaped(out, cp);
		else
			buf_add(out, u8, utf8_put(cp, u8));
	}
}

static bool same_style(const struct cells_cell *a, const struct cells_cell *b)
{
	return a->st.fg == b->st.fg && a->st.bg == b->st.bg && a->st.attr == b->st.attr;
}

/* The cell after the run of one look that begins at x. */
static int run_end(const struct cells *g, int x, int y)
{
	const struct cells_cell *row = &g->cell[y * g->w];
	int end = x + 1;
	while (end < g->w && same_style(&row[x], &row[end]))
		end++;
	return end;
}

struct look {
	uint32_t fg, bg;
	const char *weight, *style, *line;
};

static struct look look_of(const struct term_palette *p, const struct cells_cell *c)
{
	bool is_reverse = c->st.attr & CELLS_REVERSE;
	uint32_t fg = p->rgb[c->st.fg ? c->st.fg : ROLE_TEXT], bg = p->rgb[c->st.bg ? c->st.bg : ROLE_BG];
	return (struct look){is_reverse ? bg : fg, is_reverse ? fg : bg, c->st.attr & CELLS_BOLD ? "bold" : "normal",
			     c->st.attr & CELLS_ITALIC ? "italic" : "normal", c->st.attr & CELLS_UNDERLINE ? "underline" : "none"};
}

static void screen_text(const struct cells *g, struct buf *out)
{
	for (int y = 0; y < g->h; y++) {
		size_t end = out->len;
		for (int x = 0; x < g->w; x++) {
			add_cell(out, &g->cell[y * g->w + x], false);
			end = g->cell[y * g->w + x].cp > ' ' ? out->len : end;
		}
		out->len = end;
		buf_add_ch(out, '\n');
	}
}

static void screen_html(const struct cells *g, const struct term_palette *p, struct buf *out)
{
	buf_printf(out, "<pre style=\"color:#%06x;background:#%06x;font-family:monospace;line-height:1.2\">", p->rgb[ROLE_TEXT], p->rgb[ROLE_BG]);
	for (int y = 0; y < g->h; y++) {
		for (int x = 0, end; x < g->w; x = end) {
			struct look k = look_of(p, &g->cell[y * g->w + x]);
			end = run_end(g, x, y);
			buf_printf(out, "<span style=\"color:#%06x;background:#%06x;font-weight:%s;font-style:%s;text-decoration:%s\">", k.fg, k.bg,
				   k.weight, k.style, k.line);
			for (int i = x; i < end; i++)
				add_cell(out, &g->cell[y * g->w + i], true);
			buf_add_str(out, "</span>");
		}
		buf_add_ch(out, '\n');
	}
	buf_add_str(out, "</pre>");
}

static bool is_blank_run(const struct cells *g, int x, int end, int y)
{
	for (int i = x; i < end; i++) {
		if (g->cell[y * g->w + i].cp > ' ')
			return false;
	}
	return true;
}

static void screen_svg(const struct cells *g, const struct term_palette *p, struct buf *out)
{
	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"monospace\" font-size=\"13\">"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"#%06x\"/>", g->w * CELL_W, g->h * CELL_H, p->rgb[ROLE_BG]);
	for (int y = 0; y < g->h; y++) {
		for (int x = 0, end; x < g->w; x = end) {
			struct look k = look_of(p, &g->cell[y * g->w + x]);
			end = run_end(g, x, y);
			if (k.bg != p->rgb[ROLE_BG])
				buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>", x * CELL_W, y * CELL_H,
					   (end - x) * CELL_W, CELL_H, k.bg);
			if (is_blank_run(g, x, end, y) && *k.line == 'n')
				continue;
			buf_printf(out, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" lengthAdjust=\"spacingAndGlyphs\" fill=\"#%06x\" "
				   "font-weight=\"%s\" font-style=\"%s\" text-decoration=\"%s\" xml:space=\"preserve\">",
				   x * CELL_W, y * CELL_H + BASE_Y,
				   (end - x) * CELL_W, k.fg, k.weight, k.style, k.line);
			for (int i = x; i < end; i++)
				add_cell(out, &g->cell[y * g->w + i], true);
			buf_add_str(out, "</text>");
		}
	}
	buf_add_str(out, "</svg>\n");
}

void tui_answer_screen(struct tui_call *c, struct json *j)
{
	const struct cells *g = &c->t->grid;
	const char *format = tui_arg_str(c, 0) ? tui_arg_str(c, 0) : "text";
	struct term_palette palette;
	struct buf text = {0};
	term_theme(&palette, c->t->is_light);
	if (!strcmp(format, "svg"))
		screen_svg(g, &palette, &text);
	else if (!strcmp(format, "html"))
		screen_html(g, &palette, &text);
	else
		screen_text(g, &text);
	json_key(j, "width");
	json_u64(j, (uint64_t)g->w);
	json_key(j, "height");
	json_u64(j, (uint64_t)g->h);
	json_key(j, "format");
	json_str(j, format);
	json_key(j, "cursor");
	if (c->t->cur_x >= 0) {
		json_arr(j);
		json_u64(j, (uint64_t)c->t->cur_x);
		json_u64(j, (uint64_t)c->t->cur_y);
		json_end_arr(j);
	} else {
		json_null(j);
	}
	json_key(j, "text");
	json_strn(j, text.data ? text.data : "", text.len);
	if (text.failed)
		j->out->failed = true;
	buf_fini(&text);
}
