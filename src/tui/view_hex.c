/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <string.h>

/* Bytes as the program sees them, sixteen a row, over all segments one behind the other. */
#define ROW_LEN 16

/* Segments as runs of rows; made once for a snapshot. Segments that share a row share it here too. */
static void load_segs(struct tui *t)
{
	struct tui_hex *h = &t->hex;
	struct ses_segment *segs;
	uint32_t cnt = 0;
	if (h->segs_snap == t->snap)
		return;
	arena_reset(&h->arena);
	h->segs_snap = t->snap;
	h->seg_cnt = 0;
	h->row_cnt = 0;
	struct err *e = ses_segments(t->snap, &h->arena, &segs, &cnt);
	h->segs = e ? NULL : ARENA_ARRAY(&h->arena, struct tui_hex_seg, cnt + 1);
	if (e || !h->segs) {
		err_free(e);
		return;
	}
	uint64_t end = 0; /* address after the last row; 0: none yet */
	for (uint32_t i = 0; i < cnt; i++) {
		if (!segs[i].size)
			continue;
		uint64_t first = segs[i].addr & ~(uint64_t)(ROW_LEN - 1);
		uint64_t last = (segs[i].addr + (segs[i].size - 1)) & ~(uint64_t)(ROW_LEN - 1);
		if (h->seg_cnt && first < end)
			first = end;
		if (last < first || last + ROW_LEN < last)
			continue;
		struct tui_hex_seg s = {first, h->row_cnt, (last - first) / ROW_LEN + 1};
		h->segs[h->seg_cnt++] = s;
		h->row_cnt += s.row_cnt;
		end = last + ROW_LEN;
	}
	h->digits = end > UINT32_MAX || end < ROW_LEN ? (end - 1) >> 48 ? 16 : 12 : 8;
}

static uint64_t row_of(const struct tui_hex *h, uint64_t va)
{
	for (uint32_t i = h->seg_cnt; i--;) {
		if (va >= h->segs[i].first_va)
			return h->segs[i].row + MIN((va - h->segs[i].first_va) / ROW_LEN, h->segs[i].row_cnt - 1);
	}
	return 0;
}

static uint64_t va_of_row(const struct tui_hex *h, uint64_t row)
{
	for (uint32_t i = h->seg_cnt; i--;) {
		if (row >= h->segs[i].row)
			return h->segs[i].first_va + MIN(row - h->segs[i].row, h->segs[i].row_cnt - 1) * ROW_LEN;
	}
	return 0;
}

/* Where byte i of a row is drawn: two digits, a gap in the middle. */
static int hex_col(int i)
{
	return i * 3 + (i >= ROW_LEN / 2);
}

struct layout {
	int digits, file_col, hex_col, text_col;
};

/* Sign, digits and a blank, 16 bytes with gaps, text. */
#define BYTES_W (1 + ROW_LEN * 3 + 1 + ROW_LEN)
#define FILE_W 10

/* As many digits as addresses of the target have, and the offset in the file, where there is room for both. */
static struct layout layout(const struct tui *t, int w)
{
	int digits = t->hex.digits;
	struct layout l = {.file_col = -1, .text_col = -1};
	l.digits = 2 + digits + BYTES_W <= w ? digits : 8;
	int x = 1 + l.digits + 1;
	if (x + FILE_W + BYTES_W <= w) {
		l.file_col = x;
		x += FILE_W;
	}
	l.hex_col = x + 1;
	x = l.hex_col + hex_col(ROW_LEN) + 1;
	if (x + ROW_LEN <= w)
		l.text_col = x;
	return l;
}

struct hex_byte {
	uint8_t value;
	bool is_mapped, is_cur, is_patched, is_typed;
};

static enum term_role byte_role(const struct hex_byte *b)
{
	if (b->is_cur)
		return ROLE_SELECT;
	if (b->is_typed || b->is_patched)
		return ROLE_WARN;
	if (!b->is_mapped || !b->value)
		return ROLE_DIM;
	return b->value >= 0x20 && b->value < 0x7f ? ROLE_STRING : ROLE_TEXT;
}

static void draw_byte(struct tui *t, struct cells_rect r, const struct layout *l, int i, struct hex_byte b)
{
	static const char digits[] = "0123456789abcdef";
	enum term_role bg = b.is_cur ? ROLE_BG_SELECT : b.is_typed ? ROLE_BG_WORD : ROLE_BG;
	bool is_text = b.value >= 0x20 && b.value < 0x7f;
	struct cells_style st = tui_style(byte_role(&b), bg);
	st.attr = b.is_patched || b.is_typed ? CELLS_UNDERLINE : 0;
	int x = r.x + l->hex_col + hex_col(i);
	if (x + 1 < r.x + r.w) {
		cells_put(&t->grid, x, r.y, b.is_mapped ? (uint32_t)digits[b.value >> 4] : '?', st);
		cells_put(&t->grid, x + 1, r.y, b.is_mapped ? (uint32_t)digits[b.value & 15] : '?', st);
	}
	if (l->text_col >= 0) {
		uint32_t cp = !b.is_mapped ? ' ' : is_text ? b.value : cells_glyph(&t->grid, GLYPH_DOT);
		cells_put(&t->grid, r.x + l->text_col + i, r.y, cp, st);
	}
}

static void draw_row(struct tui *t, struct cells_rect r, uint64_t va)
{
	struct layout l = layout(t, r.w);
	uint8_t bytes[ROW_LEN];
	uint8_t original[ROW_LEN];
	bool mapped[ROW_LEN];
	uint64_t off;
	ses_bytes(t->snap, va, ROW_LEN, bytes, mapped);
	ses_original_bytes(t->snap, va, ROW_LEN, original, NULL);
	uint8_t live[ROW_LEN];
	bool known[ROW_LEN];
	bool has_live = tui_dock_bytes(t, va, ROW_LEN, live, known);
	for (int i = 0; i < ROW_LEN && has_live; i++) {
		bytes[i] = known[i] ? live[i] : bytes[i];
		mapped[i] |= known[i];
	}
	bool is_patched = memcmp(bytes, original, ROW_LEN) != 0;
	struct cells_pen p = tui_pen(t, r, 0, is_patched ? ROLE_WARN : ROLE_KEY, ROLE_BG);
	cells_str(&p, t->hex.va - va < ROW_LEN ? ">" : is_patched ? "*" : " ");
	p.st.fg = ROLE_ADDR;
	/* The low digits where there is no room for all; the status line has them. */
	uint64_t shown = l.digits == 8 && va >> 32 ? va & UINT32_MAX : va;
	cells_printf(&p, "%0*llx", l.digits, (unsigned long long)shown);
	if (l.file_col >= 0 && ses_va_to_file(t->snap, va, &off)) {
		cells_pad_to(&p, l.file_col);
		p.st.fg = ROLE_DIM;
		cells_printf(&p, "+%08llx", (unsigned long long)off);
	}
	for (int i = 0; i < ROW_LEN; i++) {
		struct hex_byte b = {bytes[i], mapped[i], va + (uint64_t)i == t->hex.va, bytes[i] != original[i], false};
		b.is_typed = tui_hex_typed(t, va + (uint64_t)i, &b.value);
		draw_byte(t, r, &l, i, b);
	}
}

static void keep_in_view(struct tui_hex *h, int height)
{
	uint64_t row = row_of(h, h->va);
	uint64_t n = (uint64_t)MAX(height, 1);
	if (h->top > row)
		h->top = row;
	if (row >= h->top + n)
		h->top = row - n + 1;
	if (h->top + n > h->row_cnt)
		h->top = h->row_cnt > n ? h->row_cnt - n : 0;
}

/* The inspector beside the bytes or, where there is no room for it there, below them; what is left for them. */
static struct cells_rect place_inspector(struct tui *t, struct cells_rect r)
{
	int bytes_w = 2 + t->hex.digits + BYTES_W + 1;
	if (t->hex.hide_inspector || r.h < 16)
		return r;
	if (r.w >= bytes_w + TUI_INSPECT_W) {
		int w = MAX(r.w - bytes_w - FILE_W, TUI_INSPECT_W);
		w = MIN(w, TUI_INSPECT_W + 14);
		tui_hex_inspect_draw(t, (struct cells_rect){r.x + r.w - w, r.y, w, r.h});
		r.w -= w;
	} else {
		int h = 1 + (r.w >= 60 ? TUI_INSPECT_H / 2 : TUI_INSPECT_H);
		if (r.h - h < 8)
			return r;
		tui_hex_inspect_draw(t, (struct cells_rect){r.x, r.y + r.h - h, r.w, h});
		r.h -= h;
	}
	return r;
}

static void hex_draw(struct tui *t, struct cells_rect r, bool is_focused)
{
	struct tui_hex *h = &t->hex;
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	if (r.w < 20 || r.h < 1)
		return;
	load_segs(t);
	if (!h->is_placed) {
		h->va = t->listing.is_placed ? t->listing.va : t->info.main_va;
		h->is_placed = true;
	}
	r = place_inspector(t, r);
	struct cells_rect body = {r.x, r.y, r.w - 1, r.h};
	h->body = body;
	keep_in_view(h, body.h);
	for (int i = 0; i < body.h && h->top + (uint64_t)i < h->row_cnt; i++)
		draw_row(t, (struct cells_rect){body.x, body.y + i, body.w, 1}, va_of_row(h, h->top + (uint64_t)i));
	tui_draw_bar(t, (struct cells_rect){r.x + r.w - 1, r.y, 1, r.h}, h->top, (uint64_t)r.h, h->row_cnt);
	t->scroll_hint = body;
	if (!is_focused || !h->row_cnt)
		return;
	t->cur_x = MIN(body.x + layout(t, body.w).hex_col + hex_col((int)(h->va % ROW_LEN)), body.x + body.w - 1);
	t->cur_y = body.y + (int)(row_of(h, h->va) - h->top);
}

static void move_rows(struct tui_hex *h, int64_t by)
{
	uint64_t row = row_of(h, h->va);
	uint64_t col = h->va % ROW_LEN;
	if (!h->row_cnt)
		return;
	if (by < 0)
		row = row > (uint64_t)-by ? row - (uint64_t)-by : 0;
	else
		row = MIN(row + (uint64_t)by, h->row_cnt - 1);
	h->va = va_of_row(h, row) + col;
}

static void move_bytes(struct tui_hex *h, int by)
{
	uint64_t col = h->va % ROW_LEN;
	uint64_t row = row_of(h, h->va);
	if (by < 0 ? col > 0 : col < ROW_LEN - 1)
		h->va = by < 0 ? h->va - 1 : h->va + 1;
	else if (by < 0 && row > 0)
		h->va = va_of_row(h, row - 1) + ROW_LEN - 1;
	else if (by > 0 && row + 1 < h->row_cnt)
		h->va = va_of_row(h, row + 1);
}

static void hex_scroll(struct tui *t, int rows)
{
	struct tui_hex *h = &t->hex;
	uint64_t n = (uint64_t)MAX(h->body.h, 1);
	uint64_t last = h->row_cnt > n ? h->row_cnt - n : 0;
	if (rows < 0)
		h->top = h->top > (uint64_t)-rows ? h->top - (uint64_t)-rows : 0;
	else
		h->top = MIN(h->top + (uint64_t)rows, last);
	uint64_t row = row_of(h, h->va);
	uint64_t want = MIN(MAX(row, h->top), h->top + n - 1);
	h->va = va_of_row(h, want) + h->va % ROW_LEN;
}

static void hex_page(struct tui *t, int rows)
{
	struct tui_hex *h = &t->hex;
	uint64_t col = h->va % ROW_LEN;
	uint64_t row = row_of(h, h->va);
	hex_scroll(t, rows);
	h->va = va_of_row(h, row) + col;
	move_rows(h, rows);
}

static bool hex_act(struct tui *t, enum tui_action a)
{
	struct tui_hex *h = &t->hex;
	int height = MAX(h->body.h, 2);
	switch ((int)a) {
	case TUI_UP:
		move_rows(h, -1);
		return true;
	case TUI_DOWN:
		move_rows(h, 1);
		return true;
	case TUI_LEFT:
		move_bytes(h, -1);
		return true;
	case TUI_RIGHT:
		move_bytes(h, 1);
		return true;
	case TUI_HALF_UP:
		hex_page(t, -(height / 2));
		return true;
	case TUI_HALF_DOWN:
		hex_page(t, height / 2);
		return true;
	case TUI_PAGE_UP:
		hex_page(t, -(height - 1));
		return true;
	case TUI_PAGE_DOWN:
		hex_page(t, height - 1);
		return true;
	case TUI_LINE_START:
		h->va -= h->va % ROW_LEN;
		return true;
	case TUI_LINE_END:
		h->va += ROW_LEN - 1 - h->va % ROW_LEN;
		return true;
	case TUI_TOP:
		h->va = va_of_row(h, 0);
		return true;
	case TUI_BOTTOM:
		h->va = h->row_cnt ? va_of_row(h, h->row_cnt - 1) + ROW_LEN - 1 : 0;
		return true;
	case TUI_INSPECTOR:
		h->hide_inspector = !h->hide_inspector;
		return true;
	case TUI_FOLLOW: {
		uint64_t va = h->va;
		tui_show_view(t, TUI_V_LISTING);
		tui_listing_ops.go(t, va);
		return true;
	}
	default:
		return false;
	}
}

static bool hex_click(struct tui *t, int x, int y, bool is_drag)
{
	struct tui_hex *h = &t->hex;
	int line = y - h->body.y;
	if (x >= h->body.x + h->body.w && h->body.h > 1 && h->row_cnt) {
		int at = MAX(0, MIN(line, h->body.h - 1));
		h->va = va_of_row(h, (uint64_t)((double)at / (h->body.h - 1) * (double)(h->row_cnt - 1)));
		return false;
	}
	if (is_drag || line < 0 || h->top + (uint64_t)line >= h->row_cnt)
		return false;
	struct layout l = layout(t, h->body.w);
	uint64_t row_va = va_of_row(h, h->top + (uint64_t)line);
	x -= h->body.x;
	for (int i = 0; i < ROW_LEN; i++) {
		int at = l.hex_col + hex_col(i);
		if ((x >= at && x < at + 2) || (l.text_col >= 0 && x == l.text_col + i))
			h->va = row_va + (uint64_t)i;
	}
	return true;
}

static void hex_go(struct tui *t, uint64_t va)
{
	struct tui_hex *h = &t->hex;
	load_segs(t);
	h->va = va;
	h->is_placed = true;
	uint64_t row = row_of(h, va);
	uint64_t above = (uint64_t)MAX(h->body.h, 4) / 4;
	if (row < h->top || row >= h->top + (uint64_t)MAX(h->body.h, 1))
		h->top = row > above ? row - above : 0;
}

static bool hex_va(struct tui *t, uint64_t *ret)
{
	*ret = t->hex.va;
	return t->hex.is_placed;
}

const struct tui_view_ops tui_hex_ops = {
	.name = "hex",
	.where = TUI_IN_HEX,
	.draw = hex_draw,
	.act = hex_act,
	.scroll = hex_scroll,
	.click = hex_click,
	.go = hex_go,
	.va = hex_va,
};
