/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

/*
 * The continuous listing. Cursor and first line are anchored by (address, sub-line); only the lines shown are fetched.
 * Nothing here knows a row number except the scroll bar, so a new snapshot changes what is said about an address but
 * not the address that is looked at.
 */
#define MNEMONIC_COLS 8
#define COMMENT_COL 40 /* where comments begin when the text is shorter */
#define WHEEL_MAX 64
#define LINE_MAX 4096

static uint32_t sub_arg(uint32_t sub)
{
	return sub ? sub : SES_SUB_ITEM;
}

/* `count` lines from exactly (va, sub) on; or with `back` those that end before it. */
static uint32_t fetch(struct tui *t, struct tui_place at, uint32_t count, bool back, struct ses_head **ret)
{
	struct ses_call call = tui_call(t, 0);
	uint32_t cnt = 0;
	struct ses_at ask = {at.va, sub_arg(at.sub), MIN(count, LINE_MAX), back};
	struct err *e = ses_heads(t->snap, &call, &ask, &t->frame_arena, ret, &cnt);
	if (e) {
		err_free(e);
		return 0;
	}
	return cnt;
}

static struct tui_place cursor(const struct tui_listing *l)
{
	return (struct tui_place){.va = l->va, .sub = l->sub};
}

static void set_cursor(struct tui_listing *l, const struct ses_head *h)
{
	l->va = h->va;
	l->sub = h->sub;
}

static void set_top(struct tui_listing *l, const struct ses_head *h)
{
	l->top_va = h->va;
	l->top_sub = h->sub;
}

/* Puts the first line `n` lines above the cursor, or as many as there are. */
static void top_above_cursor(struct tui *t, uint32_t n)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	uint32_t cnt = n ? fetch(t, cursor(l), n, true, &lines) : 0;
	l->top_va = l->va;
	l->top_sub = l->sub;
	if (cnt)
		set_top(l, &lines[0]);
}

/* Who comes to a label, behind it: the first two places and how many there are. A function's banner says it already. */
static void hint_labels(struct tui *t)
{
	struct tui_listing *l = &t->listing;
	struct ses_call call = tui_call(t, 4);
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		struct ses_head *h = &l->lines[i];
		struct ses_xref_ask ask = {.va = h->va};
		struct ses_page page = {.limit = 2};
		struct ses_xref *x;
		bool has_banner = i && l->lines[i - 1].kind == SES_HEAD_FUNC;
		if (h->kind != SES_HEAD_LABEL || has_banner || h->comment.len)
			continue;
		struct err *e = ses_xrefs(t->snap, &call, &ask, &page, &l->arena, &x);
		bool is_late = e != NULL;
		err_free(e);
		if (is_late)
			return;
		if (!page.cnt)
			continue;
		char *text = arena_printf(&l->arena, "%s from %llx", x[0].kind, (unsigned long long)x[0].from);
		bool is_same = page.cnt > 1 && !strcmp(x[0].kind, x[1].kind);
		if (text && page.cnt > 1)
			text = arena_printf(&l->arena, "%s, %s%s%llx", text, is_same ? "" : x[1].kind, is_same ? "" : " from ",
					    (unsigned long long)x[1].from);
		if (text && page.total > page.cnt)
			text = arena_printf(&l->arena, "%s and %llu more", text, (unsigned long long)(page.total - page.cnt));
		if (text)
			h->comment = (struct ses_text){text, (uint32_t)strlen(text)};
	}
}

/* Bytes nobody knows stand in a row of numbers: how many they are, 0 in other lines. */
static uint32_t number_cnt(const struct ses_head *h)
{
	uint32_t cnt = h->kind == SES_HEAD_UNKNOWN && h->text.len > 3 && h->text.s[0] == 'd' && h->text.s[2] == ' ';
	for (uint32_t i = 0; cnt && i < h->text.len; i++)
		cnt += h->text.s[i] == ',';
	return cnt > 1 && h->size % cnt == 0 ? cnt : 0;
}

/* The address of the number at byte `off` of the line; the line's own when it has none. */
static uint64_t number_va(const struct ses_head *h, uint32_t off)
{
	uint32_t cnt = number_cnt(h), i = 0;
	for (uint32_t at = 0; cnt && at < MIN(off, h->text.len); at++)
		i += h->text.s[at] == ',';
	return cnt ? h->va + (uint64_t)i * (h->size / cnt) : h->va;
}

/* Where the number at an address stands in the line; 0 when it has none. */
static uint32_t number_off(const struct ses_head *h, uint64_t va)
{
	uint32_t cnt = va > h->va && va - h->va < h->size ? number_cnt(h) : 0;
	uint64_t i = cnt ? (va - h->va) / (h->size / cnt) : 0;
	for (uint32_t at = 0; i && at < h->text.len; at++) {
		if (h->text.s[at] == ',' && !--i)
			return at + 1;
	}
	return 0;
}

static bool load(struct tui *t, uint32_t count)
{
	struct tui_listing *l = &t->listing;
	struct ses_call call = tui_call(t, 0);
	if (l->lines_snap == t->snap && l->lines_va == l->top_va && l->lines_sub == l->top_sub && l->lines_want == count)
		return l->line_cnt > 0;
	arena_reset(&l->arena);
	l->line_cnt = 0;
	l->lines_snap = t->snap;
	l->lines_va = l->top_va;
	l->lines_sub = l->top_sub;
	l->lines_want = count;
	struct ses_at ask = {.va = l->top_va, .sub = sub_arg(l->top_sub), .count = count};
	struct err *e = ses_heads(t->snap, &call, &ask, &l->arena, &l->lines, &l->line_cnt);
	if (e)
		tui_say_err(t, e);
	else
		hint_labels(t);
	tui_edits_show(t, l->lines, l->line_cnt);
	return l->line_cnt > 0;
}

/* The cursor's line on the screen, or -1. */
static int cursor_line(const struct tui_listing *l)
{
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		if (l->lines[i].va == l->va && l->lines[i].sub == l->sub)
			return (int)i;
	}
	return -1;
}

/* A new snapshot may cut items differently: the cursor goes to the line that holds its address. */
static void settle(struct tui *t)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	if (l->lines_snap == t->snap)
		return;
	/* What was last drawn under the cursor, unless it has gone elsewhere. */
	bool is_inside = l->number_of == l->va && l->number_off == l->off && l->number_va != l->va;
	uint64_t va = is_inside ? l->number_va : l->va;
	if (!fetch(t, is_inside ? (struct tui_place){.va = va} : cursor(l), 1, false, &lines))
		return;
	set_cursor(l, &lines[0]);
	if (is_inside)
		l->off = number_off(&lines[0], va);
}

static void go_end(struct tui *t, bool to_last)
{
	struct tui_listing *l = &t->listing;
	struct ses_segment *segs;
	uint32_t cnt;
	struct err *e = ses_segments(t->snap, &t->frame_arena, &segs, &cnt);
	if (e || !cnt) {
		err_free(e);
		return;
	}
	uint64_t first = UINT64_MAX;
	uint64_t last = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		if (!segs[i].size)
			continue;
		first = MIN(first, segs[i].addr);
		last = MAX(last, segs[i].addr + (segs[i].size - 1));
	}
	l->va = to_last ? last : first;
	l->sub = to_last ? 0 : 1;
	l->off = 0;
	struct ses_head *lines;
	if (fetch(t, cursor(l), 1, false, &lines))
		set_cursor(l, &lines[0]);
}

/* Fills the window so that the cursor is in it. */
static void place(struct tui *t, int height)
{
	struct tui_listing *l = &t->listing;
	if (!l->is_placed) {
		l->va = t->info.main_va;
		l->sub = 0;
		if (!ses_is_mapped(t->snap, l->va))
			go_end(t, false);
		l->is_placed = l->want_context = true;
	}
	settle(t);
	if (l->want_context || l->want_centre)
		top_above_cursor(t, (uint32_t)(l->want_centre ? height / 2 : height / 4));
	l->want_context = l->want_centre = false;
	bool ok = load(t, (uint32_t)height);
	int at = ok ? cursor_line(l) : -1;
	if (at >= 0) {
		l->number_of = l->va;
		l->number_off = l->off;
		l->number_va = number_va(&l->lines[at], l->off);
		return;
	}
	bool is_below = ok && (l->va > l->top_va || (l->va == l->top_va && l->top_sub));
	uint32_t step = (uint32_t)MIN(MAX(t->edge_step, 1), height);
	top_above_cursor(t, is_below ? (uint32_t)height - step : step - 1);
	load(t, (uint32_t)height);
}

/* --- looks ------------------------------------------------------------------------------------------------------- */

static enum term_role span_role(uint8_t kind)
{
	static const uint8_t roles[SES_SPAN_KIND_COUNT] = {
		[SES_SPAN_MNEMONIC] = ROLE_MNEMONIC, [SES_SPAN_REG] = ROLE_REG,	   [SES_SPAN_IMM] = ROLE_NUMBER,
		[SES_SPAN_ADDR] = ROLE_NAME,	     [SES_SPAN_DISP] = ROLE_NUMBER, [SES_SPAN_PUNCT] = ROLE_PUNCT,
		[SES_SPAN_SIZE] = ROLE_DIM,	     [SES_SPAN_PREFIX] = ROLE_MNEMONIC, [SES_SPAN_NAME] = ROLE_NAME,
		[SES_SPAN_STRING] = ROLE_STRING,     [SES_SPAN_COMMENT] = ROLE_COMMENT,
	};
	return kind < SES_SPAN_KIND_COUNT ? roles[kind] : ROLE_TEXT;
}

static bool is_item_line(const struct ses_head *h)
{
	return h->kind != SES_HEAD_FUNC && h->kind != SES_HEAD_LABEL && h->kind != SES_HEAD_SEGMENT && h->kind != SES_HEAD_COMMENT;
}

/* End of the mnemonic with its prefixes: what stands in the first column. */
static uint32_t mnemonic_end(const struct ses_head *h)
{
	uint32_t end = 0;
	for (uint32_t i = 0; i < h->span_cnt; i++) {
		const struct ses_span *s = &h->spans[i];
		if (s->kind != SES_SPAN_MNEMONIC && s->kind != SES_SPAN_PREFIX)
			break;
		end = s->off + s->len;
	}
	return end < h->text.len ? end : 0;
}

/* Text of the token at byte `off`: a span that is a word worth looking for elsewhere; null when there is none. */
static const struct ses_span *token_at(const struct ses_head *h, uint32_t off)
{
	for (uint32_t i = 0; i < h->span_cnt; i++) {
		const struct ses_span *s = &h->spans[i];
		if (off >= s->off && off < (uint32_t)s->off + s->len && (uint32_t)s->off + s->len <= h->text.len)
			return s->kind == SES_SPAN_PUNCT ? NULL : s;
	}
	return NULL;
}

struct look {
	struct ses_text word; /* token under the cursor, "" when none */
	enum term_role bg;
	bool marks_operand;   /* marks what a key would act on: what Enter follows, the number under the cursor */
	uint32_t off;         /* byte of the text the cursor is on */
	uint64_t block_va, block_end; /* lines of the graph's block beside it have a mark */
	bool has_c;                   /* lines of the C's statement beside it, which leads, have one */
};

static bool is_acted_on(const struct ses_head *h, const struct ses_span *s, uint32_t off)
{
	if (s->kind == SES_SPAN_NAME || s->kind == SES_SPAN_ADDR)
		return h->has_target;
	return (s->kind == SES_SPAN_IMM || s->kind == SES_SPAN_DISP) && off >= s->off && off < (uint32_t)s->off + s->len;
}

static void draw_spans(struct cells_pen *p, const struct ses_head *h, const struct look *look)
{
	uint32_t cut = mnemonic_end(h);
	uint32_t at = 0;
	uint32_t i = 0;
	int start = p->col;
	while (at < h->text.len) {
		const struct ses_span *s = NULL;
		while (i < h->span_cnt && h->spans[i].off < at)
			i++;
		if (i < h->span_cnt && h->spans[i].off == at && h->spans[i].len && at + h->spans[i].len <= h->text.len)
			s = &h->spans[i];
		uint32_t end = s ? at + s->len : i < h->span_cnt ? MIN(h->spans[i].off, h->text.len) : h->text.len;
		if (end <= at)
			end = at + 1;
		bool is_word = s && look->word.len == s->len && !memcmp(look->word.s, h->text.s + at, s->len);
		p->st = tui_style(s ? span_role(s->kind) : ROLE_TEXT, is_word ? ROLE_BG_WORD : look->bg);
		if (look->marks_operand && s && is_acted_on(h, s, look->off))
			p->st.attr |= CELLS_UNDERLINE | CELLS_BOLD;
		if (at == cut && cut) { /* operands begin in a column of their own */
			while (at < end && h->text.s[at] == ' ')
				at++;
			cells_pad_to(p, MAX(start + MNEMONIC_COLS, p->col + 1));
		}
		cells_text(p, h->text.s + at, end - at);
		at = end;
	}
}

/* Column (from the start of the text) at which byte `off` of the line is drawn. */
static int column_of(const struct cells *g, const struct ses_head *h, uint32_t off)
{
	uint32_t cut = mnemonic_end(h);
	off = MIN(off, h->text.len);
	if (!is_item_line(h) || !cut || off <= cut)
		return cells_text_width(g, h->text.s, off);
	uint32_t operands = cut;
	while (operands < h->text.len && h->text.s[operands] == ' ')
		operands++;
	int first = MAX(MNEMONIC_COLS, cells_text_width(g, h->text.s, cut) + 1);
	return first + (off > operands ? cells_text_width(g, h->text.s + operands, off - operands) : 0);
}

static void draw_rule(struct cells_pen *p, const char *s, size_t len, enum term_role fg, enum term_role bg)
{
	uint32_t h = cells_glyph(p->g, GLYPH_H);
	struct cells_style line = tui_style(ROLE_BORDER, bg);
	for (int i = 0; i < 2 && p->x < p->end; i++)
		cells_put(p->g, p->x++, p->y, h, line);
	p->st = tui_style(fg, bg);
	p->st.attr = CELLS_BOLD;
	cells_str(p, " ");
	const char *sep = memmem(s, len, "  ; ", 4);
	size_t name = sep ? (size_t)(sep - s) : len;
	cells_text(p, s, name);
	if (sep) {
		p->st = tui_style(ROLE_COMMENT, bg);
		cells_str(p, "  ");
		cells_text(p, sep + 4, len - name - 4);
	}
	cells_str(p, " ");
	while (!p->is_cut && p->x < p->end)
		cells_put(p->g, p->x++, p->y, h, line);
}

static void draw_banner(struct cells_pen *p, const struct ses_head *h, const struct look *look)
{
	const char *s = h->text.s;
	size_t len = h->text.len;
	if (len >= 2 && s[0] == ';' && s[1] == ' ') {
		s += 2;
		len -= 2;
	}
	draw_rule(p, s, len, h->kind == SES_HEAD_SEGMENT ? ROLE_TITLE : ROLE_BANNER, look->bg);
}

static int bytes_cols(const struct tui *t, int width)
{
	int mode = t->listing.bytes_mode;
	if (!mode || width < 70)
		return 0;
	return mode == 1 ? 8 * 2 + 2 : 15 * 2 + 2;
}

static int address_digits(const struct tui *t)
{
	uint64_t last = 0;
	for (uint32_t i = 0; i < t->section_cnt; i++)
		last = MAX(last, t->sections[i].addr + t->sections[i].size);
	return last > UINT32_MAX ? 12 : 8;
}

static void draw_bytes(struct tui *t, struct cells_pen *p, const struct ses_head *h, int cols)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t max = (uint32_t)(cols - 2) / 2;
	int start = p->col;
	p->st.fg = ROLE_BYTES;
	for (uint32_t i = 0; is_item_line(h) && i < h->bytes_len && i < max; i++) {
		char two[2] = {digits[h->bytes[i] >> 4], digits[h->bytes[i] & 15]};
		cells_text(p, two, 2);
	}
	if (is_item_line(h) && h->size > max)
		cells_put(&t->grid, p->x, p->y, '+', p->st);
	cells_pad_to(p, start + cols);
}

/* `start`: the column where the text of code begins. */
static void draw_comment(struct cells_pen *p, const struct ses_head *h, int start, const struct look *look)
{
	if (!h->comment.len)
		return;
	p->st = tui_style(ROLE_COMMENT, look->bg);
	cells_pad_to(p, MAX(start + COMMENT_COL, p->col + 2));
	cells_str(p, "; ");
	cells_text(p, h->comment.s, h->comment.len);
}

static void draw_line(struct tui *t, struct cells_rect r, const struct ses_head *h, struct look *look)
{
	struct tui_listing *l = &t->listing;
	char hint[3];
	bool is_current = h->va == l->va && h->sub == l->sub;
	bool is_selected = t->is_selecting && tui_select_has(t, h->va, h->sub);
	bool is_linked = look->has_c && is_item_line(h) && tui_c_links(t, h->va);
	enum term_role trail = is_item_line(h) ? tui_dock_bg(t, h->va) : ROLE_BG;
	look->bg = trail == ROLE_BG_NOW ? trail : is_current || is_linked ? ROLE_BG_LINE : is_selected ? ROLE_BG_WORD : trail;
	struct cells_pen p = tui_pen(t, r, 0, ROLE_ADDR, look->bg);
	look->marks_operand = is_current;
	look->off = l->off;
	cells_fill(&t->grid, r, p.st);
	p.st.fg = ROLE_KEY;
	bool in_block = is_linked || (look->block_va <= h->va && h->va < look->block_end);
	bool has_break = is_item_line(h) && tui_dock_has_break(t, h->va);
	cells_put(&t->grid, p.x++, p.y,
		  has_break ? '@' : is_current ? '>' : is_selected ? '+' : in_block ? cells_glyph(&t->grid, GLYPH_V) : ' ', p.st);
	p.col++;
	p.st.fg = ROLE_ADDR;
	if (r.w >= 36)
		cells_printf(&p, "%0*llx ", address_digits(t), (unsigned long long)h->va);
	int cols = bytes_cols(t, r.w);
	if (cols)
		draw_bytes(t, &p, h, cols);
	if (h->kind == SES_HEAD_FUNC || h->kind == SES_HEAD_SEGMENT) {
		draw_banner(&p, h, look);
		return;
	}
	if (h->kind == SES_HEAD_LABEL) {
		p.st = tui_style(ROLE_LABEL, look->bg);
		p.st.attr = CELLS_BOLD;
		int label = p.col;
		cells_text(&p, h->text.s, h->text.len);
		draw_comment(&p, h, label + (r.w >= 60 ? 4 : 1), look);
		return;
	}
	cells_str(&p, r.w >= 60 ? "    " : " ");
	p.skip = l->hscroll;
	int start = p.col;
	if (*tui_hint_of(t, (uint32_t)(h - l->lines), hint)) {
		struct cells_pen at = tui_pen(t, (struct cells_rect){MAX(p.x - 3, r.x), r.y, 3, 1}, 0, ROLE_SELECT, ROLE_BG_SELECT);
		cells_str(&at, hint);
	}
	draw_spans(&p, h, look);
	draw_comment(&p, h, start, look);
	tui_probe_draw(t, &p, h->va, look->bg);
}

static int text_start(const struct tui *t, const struct cells_rect *r, const struct ses_head *h)
{
	int x = 1 + (r->w >= 36 ? address_digits(t) + 1 : 0) + bytes_cols(t, r->w);
	if (h->kind == SES_HEAD_FUNC || h->kind == SES_HEAD_SEGMENT)
		return x + 3;
	return h->kind == SES_HEAD_LABEL ? x : x + (r->w >= 60 ? 4 : 1);
}

/* At the start of a line the cursor is on the line, not on its mnemonic: walking down changes no other line. */
static struct ses_text cursor_word(const struct tui_listing *l, const struct ses_head *h)
{
	const struct ses_span *s = is_item_line(h) && l->off ? token_at(h, l->off) : NULL;
	return s ? (struct ses_text){h->text.s + s->off, s->len} : (struct ses_text){"", 0};
}

static void draw_bar(struct tui *t, struct cells_rect r)
{
	uint64_t row = 0;
	uint64_t total = ses_row_cnt(t->snap);
	if (!ses_row_of(t->snap, t->listing.top_va, &row))
		total = 0;
	tui_draw_bar(t, r, row, (uint64_t)r.h, total);
}

static void listing_draw(struct tui *t, struct cells_rect r, bool is_focused)
{
	struct tui_listing *l = &t->listing;
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	if (r.w < 8 || r.h < 1)
		return;
	struct cells_rect body = {r.x, r.y, r.w - 1, r.h};
	l->body = body;
	place(t, body.h);
	int at = cursor_line(l);
	struct look look = {.word = {"", 0}};
	look.has_c = t->split_rect.w && t->main_view == TUI_V_C;
	bool has_graph = t->split_rect.w && (t->main_view == TUI_V_GRAPH || tui_split_other(t) == TUI_V_GRAPH);
	if (has_graph && !tui_graph_block(t, &look.block_va, &look.block_end))
		look.block_end = 0;
	if (at >= 0) {
		const struct ses_head *h = &l->lines[at];
		l->off = h->text.len ? MIN(l->off, h->text.len - 1) : 0;
		look.word = cursor_word(l, h);
		int room = body.w - text_start(t, &body, h);
		int col = column_of(&t->grid, h, l->off);
		if (col < l->hscroll || (room > 8 && col >= l->hscroll + room))
			l->hscroll = col >= room ? col - room / 2 : 0;
		l->text_x = text_start(t, &body, h);
		if (is_focused) {
			t->cur_x = MIN(body.x + l->text_x + col - (is_item_line(h) ? l->hscroll : 0), body.x + body.w - 1);
			t->cur_y = body.y + at;
		}
	}
	for (int i = 0; i < body.h && (uint32_t)i < l->line_cnt; i++)
		draw_line(t, (struct cells_rect){body.x, body.y + i, body.w, 1}, &l->lines[i], &look);
	draw_bar(t, (struct cells_rect){r.x + r.w - 1, r.y, 1, r.h});
	t->scroll_hint = body;
}

/* --- moving -------------------------------------------------------------------------------------------------------- */

static void move(struct tui *t, int by)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	uint32_t n = (uint32_t)(by < 0 ? -by : by);
	uint32_t cnt = fetch(t, cursor(l), by < 0 ? n : n + 1, by < 0, &lines);
	if (cnt)
		set_cursor(l, &lines[by < 0 ? 0 : cnt - 1]);
}

/* Moves the window; the cursor stays on its line of text as long as that is shown. */
static void scroll(struct tui *t, int by)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	struct tui_place top = {.va = l->top_va, .sub = l->top_sub};
	int n = MIN(by < 0 ? -by : by, WHEEL_MAX);
	uint32_t cnt = fetch(t, top, by < 0 ? (uint32_t)n : (uint32_t)n + 1, by < 0, &lines);
	if (!cnt)
		return;
	set_top(l, &lines[by < 0 ? 0 : cnt - 1]);
	if (load(t, (uint32_t)MAX(l->body.h, 1)) && cursor_line(l) < 0)
		set_cursor(l, &l->lines[by < 0 ? l->line_cnt - 1 : 0]);
}

/* Page moves shift window and cursor together, as pagers do. */
static void page(struct tui *t, int by)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	struct tui_place top = {.va = l->top_va, .sub = l->top_sub};
	uint32_t n = (uint32_t)(by < 0 ? -by : by);
	uint32_t cnt = fetch(t, top, by < 0 ? n : n + 1, by < 0, &lines);
	if (cnt)
		set_top(l, &lines[by < 0 ? 0 : cnt - 1]);
	move(t, by);
}

/* The cursor's line, which may not be on the screen yet. */
static const struct ses_head *current(struct tui *t)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	int at = l->lines_snap == t->snap ? cursor_line(l) : -1;
	if (at >= 0)
		return &l->lines[at];
	return l->is_placed && fetch(t, cursor(l), 1, false, &lines) ? &lines[0] : NULL;
}

static bool is_word_start(const struct ses_head *h, uint32_t off)
{
	for (uint32_t i = 0; i < h->span_cnt; i++) {
		if (h->spans[i].off == off)
			return h->spans[i].kind != SES_SPAN_PUNCT;
	}
	if (off && h->text.s[off - 1] == ',' && number_cnt(h))
		return true;
	return !h->span_cnt && off && h->text.s[off - 1] == ' ';
}

static void word(struct tui *t, int by)
{
	struct tui_listing *l = &t->listing;
	const struct ses_head *h = current(t);
	for (uint32_t off = l->off; h; ) {
		if (by > 0 ? off + 1 >= h->text.len : off == 0) {
			move(t, by);
			l->off = 0;
			return;
		}
		off = by > 0 ? off + 1 : off - 1;
		if (off == 0 || is_word_start(h, off)) {
			l->off = off;
			return;
		}
	}
}

static void sideways(struct tui *t, int by)
{
	struct tui_listing *l = &t->listing;
	const struct ses_head *h = current(t);
	if (!h)
		return;
	uint32_t off = l->off;
	do {
		if (by < 0 ? off == 0 : off + 1 >= h->text.len)
			return;
		off = by < 0 ? off - 1 : off + 1;
	} while (((uint8_t)h->text.s[off] & 0xc0) == 0x80);
	l->off = off;
}

/* The function after or before the cursor's address: from the list in order of address. */
void tui_go_function(struct tui *t, uint64_t va, int by)
{
	struct ses_func *funcs;
	struct ses_call call = tui_call(t, 0);
	struct ses_page one = {.limit = 1};
	uint64_t lo = 0;
	uint64_t hi = UINT32_MAX;
	/* First function above the cursor (by > 0) or not below it. */
	while (lo < hi) {
		one.offset = lo + (hi - lo) / 2;
		struct err *e = ses_functions(t->snap, &call, &one, &t->frame_arena, &funcs);
		if (e) {
			err_free(e);
			return;
		}
		if (one.cnt && (by > 0 ? funcs[0].addr <= va : funcs[0].addr < va))
			lo = one.offset + 1;
		else
			hi = MIN(one.offset, one.total);
	}
	if (by < 0 && !lo)
		return;
	one.offset = by > 0 ? lo : lo - 1;
	struct err *e = ses_functions(t->snap, &call, &one, &t->frame_arena, &funcs);
	if (!e && one.cnt)
		tui_go(t, funcs[0].addr);
	err_free(e);
}

static void follow(struct tui *t)
{
	const struct ses_head *h = current(t);
	if (h && h->has_target)
		tui_follow(t, h->target);
	else
		tui_say(t, false, "nothing to follow on this line");
}

static bool listing_act(struct tui *t, enum tui_action a)
{
	struct tui_listing *l = &t->listing;
	const struct ses_head *h = current(t);
	int height = MAX(l->body.h, 2);
	switch ((int)a) {
	case TUI_UP:
		move(t, -1);
		return true;
	case TUI_DOWN:
		move(t, 1);
		return true;
	case TUI_LEFT:
		sideways(t, -1);
		return true;
	case TUI_RIGHT:
		sideways(t, 1);
		return true;
	case TUI_HALF_UP:
		page(t, -(height / 2));
		return true;
	case TUI_HALF_DOWN:
		page(t, height / 2);
		return true;
	case TUI_PAGE_UP:
		page(t, -(height - 1));
		return true;
	case TUI_PAGE_DOWN:
		page(t, height - 1);
		return true;
	case TUI_LINE_START:
		l->off = 0;
		return true;
	case TUI_LINE_END:
		l->off = h && h->text.len ? h->text.len - 1 : 0;
		return true;
	case TUI_TOP:
	case TUI_BOTTOM:
		go_end(t, a == TUI_BOTTOM);
		return true;
	case TUI_WORD_NEXT:
		word(t, 1);
		return true;
	case TUI_WORD_PREV:
		word(t, -1);
		return true;
	case TUI_FUNC_NEXT:
		tui_go_function(t, l->va, 1);
		return true;
	case TUI_FUNC_PREV:
		tui_go_function(t, l->va, -1);
		return true;
	case TUI_CENTRE:
		l->want_centre = true;
		return true;
	case TUI_BYTES:
		l->bytes_mode = (l->bytes_mode + 1) % 3;
		return true;
	case TUI_SELECT:
		tui_select_toggle(t);
		return true;
	case TUI_HINTS:
		tui_hints_begin(t);
		return true;
	case TUI_BACK:
		if (!t->is_selecting)
			return false;
		tui_select_toggle(t);
		return true;
	case TUI_FOLLOW:
		follow(t);
		return true;
	default:
		return false;
	}
}

/* The byte of the line's text drawn at column `col` of the text. */
static uint32_t offset_at(const struct cells *g, const struct ses_head *h, int col)
{
	uint32_t off = 0;
	while (off + 1 < h->text.len && column_of(g, h, off + 1) <= col)
		off++;
	while (off && ((uint8_t)h->text.s[off] & 0xc0) == 0x80)
		off--;
	return off;
}

static bool listing_click(struct tui *t, int x, int y, bool is_drag)
{
	struct tui_listing *l = &t->listing;
	uint64_t total = ses_row_cnt(t->snap);
	uint64_t va;
	if (x >= l->body.x + l->body.w && l->body.h > 0) {
		int at = MAX(0, MIN(y - l->body.y, l->body.h - 1));
		uint64_t row = l->body.h > 1 ? (uint64_t)((double)at / (l->body.h - 1) * (double)(total ? total - 1 : 0)) : 0;
		if (total && ses_va_of_row(t->snap, row, &va)) {
			l->va = l->top_va = va;
			l->sub = l->top_sub = 0;
		}
		return false;
	}
	int line = y - l->body.y;
	if (is_drag || line < 0 || (uint32_t)line >= l->line_cnt)
		return false;
	const struct ses_head *h = &l->lines[line];
	set_cursor(l, h);
	l->off = offset_at(&t->grid, h, x - l->body.x - text_start(t, &l->body, h) + l->hscroll);
	return true;
}

static void listing_go(struct tui *t, uint64_t va)
{
	struct tui_listing *l = &t->listing;
	struct ses_head *lines;
	l->va = va;
	l->sub = 0;
	l->off = 0;
	l->hscroll = 0;
	if (fetch(t, cursor(l), 1, false, &lines)) {
		set_cursor(l, &lines[0]);
		l->off = number_off(&lines[0], va);
	}
	l->is_placed = true;
	/* A target on the screen is walked to; the page stays still under the eye. */
	l->want_context = l->lines_snap != t->snap || cursor_line(l) < 0;
}

/* --- for whoever else shows lines --- */

void tui_line_spans(struct cells_pen *p, const struct ses_head *h, struct ses_text word, enum term_role bg)
{
	struct look look = {.word = word, .bg = bg};
	draw_spans(p, h, &look);
}

int tui_line_column(const struct cells *g, const struct ses_head *h, uint32_t off)
{
	return column_of(g, h, off);
}

uint32_t tui_line_offset(const struct cells *g, const struct ses_head *h, int col)
{
	return h->text.len ? offset_at(g, h, col) : 0;
}

const struct ses_span *tui_line_token(const struct ses_head *h, uint32_t off)
{
	return token_at(h, off);
}

bool tui_listing_operand(struct tui *t, uint64_t *ret)
{
	const struct ses_head *h = current(t);
	const struct ses_span *s = h && h->has_target && is_item_line(h) ? token_at(h, t->listing.off) : NULL;
	if (!s || (s->kind != SES_SPAN_NAME && s->kind != SES_SPAN_ADDR))
		return false;
	*ret = h->target;
	return true;
}

int tui_listing_operand_idx(struct tui *t)
{
	const struct ses_head *h = current(t);
	const struct ses_span *s = h && is_item_line(h) ? token_at(h, t->listing.off) : NULL;
	return s && s->operand != 255 ? s->operand : -1;
}

bool tui_listing_target(struct tui *t, uint64_t *ret)
{
	const struct ses_head *h = current(t);
	if (!h || !h->has_target)
		return false;
	*ret = h->target;
	return true;
}

struct ses_text tui_listing_word(struct tui *t)
{
	const struct ses_head *h = current(t);
	const struct ses_span *s = h && is_item_line(h) ? token_at(h, t->listing.off) : NULL;
	return s ? (struct ses_text){h->text.s + s->off, s->len} : (struct ses_text){"", 0};
}

static bool listing_va(struct tui *t, uint64_t *ret)
{
	const struct tui_listing *l = &t->listing;
	int at = l->lines_snap == t->snap ? cursor_line(l) : -1;
	*ret = at >= 0 ? number_va(&l->lines[at], l->off) : l->va;
	return l->is_placed;
}

const struct tui_view_ops tui_listing_ops = {
	.name = "listing",
	.where = TUI_IN_LISTING,
	.draw = listing_draw,
	.act = listing_act,
	.scroll = scroll,
	.click = listing_click,
	.go = listing_go,
	.va = listing_va,
};
