/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/term/writer.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/*
 * Terminals disagree about the width of some characters. After anything but plain ASCII, Latin-1 and box drawing the
 * writer takes the cursor's place as unknown and says where the next character goes, so that a disagreement stays in
 * its cell. Autowrap is off while we draw (tty.c), so the last column needs no care beyond the same rule.
 */
#define CELL_UNKNOWN UINT32_MAX
#define SURE_TIMES 4 /* so many times fewer cells to write are fewer bytes in any case */
#define GAP_MAX 4 /* unchanged cells that are cheaper to write again than to jump over */

void term_writer_fini(struct term_writer *w)
{
	cells_fini(&w->front);
}

static void set_unknown(struct cells_cell *c)
{
	*c = (struct cells_cell){.cp = CELL_UNKNOWN, .width = 1};
}

void term_writer_forget(struct term_writer *w)
{
	for (int i = 0; i < w->front.w * w->front.h; i++)
		set_unknown(&w->front.cell[i]);
	w->cur_x = w->cur_y = -1;
	w->pen_known = false;
	w->cur_shown = true; /* so that hiding it is written */
}

static uint32_t resolve(const struct term_writer *w, uint8_t role)
{
	role = role < TERM_ROLE_MAX ? role : 0;
	if (!role || w->depth == TERM_MONO)
		return UINT32_MAX;
	if (w->depth == TERM_16)
		return w->palette.c16[role] == TERM_COLOUR_DEFAULT ? UINT32_MAX : w->palette.c16[role];
	return w->depth == TERM_256 ? w->palette.c256[role] : w->palette.rgb[role];
}

static uint8_t cell_attr(const struct term_writer *w, const struct cells_cell *c)
{
	uint8_t attr = c->st.attr;
	if (w->depth == TERM_MONO) {
		attr |= w->palette.mono_attr[c->st.fg < TERM_ROLE_MAX ? c->st.fg : 0];
		attr |= w->palette.mono_attr[c->st.bg < TERM_ROLE_MAX ? c->st.bg : 0];
	}
	return attr;
}

/* Nothing of it is seen but its ground. */
static bool is_blank(const struct term_writer *w, const struct cells_cell *c)
{
	return c->cp == ' ' && !c->mark[0] && !(cell_attr(w, c) & (CELLS_UNDERLINE | CELLS_REVERSE));
}

static bool same_cell(const struct cells_cell *a, const struct cells_cell *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Whether they look the same; text colour and weight do not matter where there is no text. */
static bool same_look(const struct term_writer *w, const struct cells_cell *a, const struct cells_cell *b)
{
	return same_cell(a, b) || (is_blank(w, a) && is_blank(w, b) && resolve(w, a->st.bg) == resolve(w, b->st.bg));
}

/* A number and the character behind it. */
static void add_num(struct buf *out, uint32_t v, char end)
{
	buf_add_dec(out, v);
	buf_add_ch(out, end);
}

static void move_to(struct term_writer *w, int x, int y, struct buf *out)
{
	if (w->cur_x == x && w->cur_y == y)
		return;
	if (w->cur_y >= 0 && y == w->cur_y + 1) {
		buf_add_str(out, "\r\n");
		w->cur_x = 0;
		w->cur_y = y;
	}
	if (w->cur_y == y && w->cur_x >= 0 && x >= w->cur_x) {
		if (x - w->cur_x == 1) {
			buf_add_str(out, "\x1b[C");
		} else if (x > w->cur_x) {
			buf_add_str(out, "\x1b[");
			add_num(out, (uint32_t)(x - w->cur_x), 'C');
		}
	} else {
		buf_add_str(out, "\x1b[");
		add_num(out, (uint32_t)y + 1, x ? ';' : 'H');
		if (x)
			add_num(out, (uint32_t)x + 1, 'H');
	}
	w->cur_x = x;
	w->cur_y = y;
}

static void add_colour(const struct term_writer *w, uint32_t colour, bool is_bg, struct buf *out)
{
	unsigned base = is_bg ? 40 : 30;
	if (colour == UINT32_MAX || w->depth == TERM_16) {
		add_num(out, colour == UINT32_MAX ? base + 9 : colour < 8 ? base + colour : base + 60 + colour - 8, ';');
		return;
	}
	add_num(out, base + 8, ';');
	add_num(out, w->depth == TERM_256 ? 5 : 2, ';');
	for (int shift = w->depth == TERM_256 ? 0 : 16; shift >= 0; shift -= 8)
		add_num(out, colour >> shift & 0xff, ';');
}

/* Selects the cell's look with the fewest parameters. */
static void set_pen(struct term_writer *w, const struct cells_cell *c, struct buf *out)
{
	static const char on[] = {'1', '3', '4', '7'};
	uint32_t fg = resolve(w, c->st.fg);
	uint32_t bg = resolve(w, c->st.bg);
	uint8_t attr = cell_attr(w, c);
	if (w->pen_known && is_blank(w, c)) {
		fg = w->pen_fg;
		attr = w->pen_attr & (CELLS_BOLD | CELLS_ITALIC);
	}
	if (w->pen_known && fg == w->pen_fg && bg == w->pen_bg && attr == w->pen_attr)
		return;
	buf_add_str(out, "\x1b[");
	if (!w->pen_known || (w->pen_attr & ~attr)) {
		buf_add_str(out, "0;");
		w->pen_fg = w->pen_bg = UINT32_MAX;
		w->pen_attr = 0;
	}
	for (unsigned i = 0; i < ARRAY_LEN(on); i++) {
		if (attr & ~w->pen_attr & 1u << i) {
			buf_add_ch(out, on[i]);
			buf_add_ch(out, ';');
		}
	}
	if (fg != w->pen_fg)
		add_colour(w, fg, false, out);
	if (bg != w->pen_bg)
		add_colour(w, bg, true, out);
	if (out->len && !out->failed)
		out->data[out->len - 1] = 'm';
	w->pen_known = true;
	w->pen_fg = fg;
	w->pen_bg = bg;
	w->pen_attr = attr;
}

static bool is_sure(uint32_t cp)
{
	return (cp >= 0x20 && cp < 0x7f) || (cp >= 0xa1 && cp <= 0xff && cp != 0xad) || (cp >= 0x2500 && cp <= 0x259f);
}

static void add_cp(const struct term_writer *w, const struct cells *next, uint32_t cp, struct buf *out)
{
	char text[4];
	if (cp >= 0x20 && cp < 0x7f)
		buf_add_ch(out, (char)cp);
	else if (next->is_ascii || cp < 0xa0)
		buf_add_ch(out, '?');
	else
		buf_add(out, text, utf8_put(cp, text));
}

static void put_cell(struct term_writer *w, const struct cells *next, int x, int y, struct buf *out)
{
	const struct cells_cell *c = &next->cell[y * next->w + x];
	set_pen(w, c, out);
	add_cp(w, next, c->cp, out);
	bool sure = is_sure(c->cp);
	for (int i = 0; i < CELLS_MARK_CNT && c->mark[i] && !next->is_ascii; i++) {
		add_cp(w, next, c->mark[i], out);
		sure = false;
	}
	w->cur_x = sure && x + 1 < next->w ? x + 1 : -1;
	w->front.cell[y * next->w + x] = *c;
	if (c->width == 2 && x + 1 < next->w)
		w->front.cell[y * next->w + x + 1] = c[1];
}

/* Whether the pen as it is would write the cell. */
static bool is_in_pen(const struct term_writer *w, const struct cells_cell *c)
{
	if (c->cp < 0x20 || c->cp > 0x7e || c->mark[0] || resolve(w, c->st.bg) != w->pen_bg)
		return false;
	if (is_blank(w, c))
		return !(w->pen_attr & (CELLS_UNDERLINE | CELLS_REVERSE));
	return resolve(w, c->st.fg) == w->pen_fg && cell_attr(w, c) == w->pen_attr;
}

/* Goes to (x, y), writing again unchanged cells on the way when that is shorter than a jump over them. */
static void go_to(struct term_writer *w, const struct cells *next, int x, int y, struct buf *out)
{
	if (w->cur_y >= 0 && y == w->cur_y + 1 && x <= GAP_MAX)
		move_to(w, 0, y, out);
	bool is_near = w->cur_y == y && w->cur_x >= 0 && x > w->cur_x && x - w->cur_x <= GAP_MAX && w->pen_known;
	for (int i = w->cur_x; i < x && is_near; i++)
		is_near = is_in_pen(w, &next->cell[y * next->w + i]);
	while (is_near && w->cur_x < x)
		put_cell(w, next, w->cur_x, y, out);
	move_to(w, x, y, out);
}

/* Erases a run of blanks at x instead of writing it; the cells it covered, 0 when writing them is shorter. */
static int erase_blanks(struct term_writer *w, const struct cells *next, int x, int y, struct buf *out)
{
	const struct cells_cell *row = &next->cell[y * next->w];
	const struct cells_cell *front = &w->front.cell[y * next->w];
	int n = 0;
	int need = 0; /* of them up to the last that is not blank yet */
	while (w->has_bce && x + n < next->w && is_blank(w, &row[x + n]) &&
	       resolve(w, row[x + n].st.bg) == resolve(w, row[x].st.bg)) {
		need = same_look(w, &row[x + n], &front[x + n]) ? need : n + 1;
		n++;
	}
	bool to_end = x + n == next->w;
	bool goes_on = !to_end && !same_look(w, &row[x + n], &front[x + n]);
	if (need <= (to_end ? 3 : n < 10 ? 4 : 5) + (goes_on ? 5 : 0))
		return 0;
	go_to(w, next, x, y, out);
	set_pen(w, &row[x], out);
	if (to_end)
		buf_add_str(out, "\x1b[K");
	else
		buf_printf(out, "\x1b[%dX", n);
	memcpy(&w->front.cell[y * next->w + x], &row[x], (size_t)n * sizeof(*row));
	return n;
}

static void diff_row(struct term_writer *w, const struct cells *next, int y, struct buf *out)
{
	for (int x = 0; x < next->w; x++) {
		const struct cells_cell *c = &next->cell[y * next->w + x];
		if (same_look(w, c, &w->front.cell[y * next->w + x])) {
			w->front.cell[y * next->w + x] = *c; /* so that rows are known again when they move */
			continue;
		}
		int erased = erase_blanks(w, next, x, y, out);
		if (erased) {
			x += erased - 1;
			continue;
		}
		if (c->width == 0) { /* written with its left half */
			w->front.cell[y * next->w + x] = *c;
			continue;
		}
		go_to(w, next, x, y, out);
		put_cell(w, next, x, y, out);
	}
}

static uint64_t hash_cells(const struct cells_cell *c, int n)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (int i = 0; i < n; i++) {
		uint64_t v = c[i].cp | (uint64_t)c[i].st.fg << 32 | (uint64_t)c[i].st.bg << 40 | (uint64_t)c[i].st.attr << 48 |
			     (uint64_t)c[i].width << 56;
		h = (h ^ v ^ (uint64_t)c[i].mark[0] << 17) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

/* The shift (rows moved up, negative: down) after which most rows of the hint are already right; 0: none is. */
static int find_shift(const struct term_writer *w, const struct cells *next, struct cells_rect r)
{
	uint64_t *old_hash = calloc((size_t)r.h * 2, sizeof(*old_hash));
	if (!old_hash)
		return 0;
	uint64_t *new_hash = old_hash + r.h;
	for (int i = 0; i < r.h; i++) {
		size_t at = (size_t)(r.y + i) * (size_t)next->w + (size_t)r.x;
		old_hash[i] = hash_cells(w->front.cell + at, r.w);
		new_hash[i] = hash_cells(next->cell + at, r.w);
	}
	int best = 0;
	int best_cnt = 0;
	for (int d = 1 - r.h; d < r.h; d++) {
		int cnt = 0;
		for (int i = MAX(0, -d); i < MIN(r.h, r.h - d); i++)
			cnt += old_hash[i + d] == new_hash[i];
		/* Of equals the smaller move: it uncovers fewer rows. */
		if (cnt > best_cnt || (cnt == best_cnt && abs(d) < abs(best))) {
			best = d;
			best_cnt = cnt;
		}
	}
	free(old_hash);
	return best;
}

/* Cells of `next` that differ from the front when its rows [y, y + h) of columns [x, x + w) moved up by d. */
static int count_diff(const struct term_writer *w, const struct cells *next, struct cells_rect r, int d)
{
	int cnt = 0;
	for (int y = r.y; y < r.y + r.h; y++) {
		int from = y + d;
		bool is_inside = from >= r.y && from < r.y + r.h;
		for (int x = r.x; x < r.x + r.w; x++) {
			const struct cells_cell *c = &next->cell[y * next->w + x];
			cnt += !is_inside || !same_cell(c, &w->front.cell[from * next->w + x]);
		}
	}
	return cnt;
}

static void shift_front(struct term_writer *w, struct cells_rect r, int d)
{
	int step = d > 0 ? 1 : -1;
	int y = d > 0 ? r.y : r.y + r.h - 1;
	for (int i = 0; i < r.h; i++, y += step) {
		struct cells_cell *to = &w->front.cell[y * w->front.w + r.x];
		int from = y + d;
		if (from >= r.y && from < r.y + r.h) {
			memcpy(to, &w->front.cell[from * w->front.w + r.x], (size_t)r.w * sizeof(*to));
			continue;
		}
		for (int x = 0; x < r.w; x++)
			set_unknown(&to[x]);
	}
}

/* Whether a wide character of the front lies across column x. */
static bool is_edge_split(const struct term_writer *w, struct cells_rect r, int x)
{
	for (int y = r.y; y < r.y + r.h && x > 0 && x < w->front.w; y++) {
		if (w->front.cell[y * w->front.w + x].width == 0)
			return true;
	}
	return false;
}

static void diff_rows(struct term_writer *w, const struct cells *next, struct buf *out)
{
	for (int y = 0; y < next->h; y++) {
		if (memcmp(&w->front.cell[y * next->w], &next->cell[y * next->w], (size_t)next->w * sizeof(struct cells_cell)))
			diff_row(w, next, y, out);
	}
}

static void scroll(struct term_writer *w, struct cells_rect r, int d, struct buf *out)
{
	bool use_margins = r.w < w->front.w;
	if (use_margins)
		buf_printf(out, "\x1b[?69h\x1b[%d;%ds", r.x + 1, r.x + r.w);
	/* The uncovered rows take the current ground on most terminals; they are written in full anyway. */
	buf_printf(out, "\x1b[%d;%dr\x1b[%d%c\x1b[r", r.y + 1, r.y + r.h, abs(d), d > 0 ? 'S' : 'T');
	if (use_margins)
		buf_add_str(out, "\x1b[?69l");
	w->cur_x = w->cur_y = -1;
	shift_front(w, r, d);
}

/* The rows that moved together and by how many (0: none): the hint's, over the full width without margins. *ret_is_sure: no
 * way without a scroll can be shorter. */
static int find_scroll(const struct term_writer *w, const struct cells *next, struct cells_rect *ret, bool *ret_is_sure)
{
	struct cells_rect r = w->scroll_hint;
	if (w->no_scroll || r.w < 1 || r.h < 3 || r.x < 0 || r.y < 0 || r.x + r.w > next->w || r.y + r.h > next->h)
		return 0;
	bool use_margins = w->has_margins && r.w < next->w && !is_edge_split(w, r, r.x) && !is_edge_split(w, r, r.x + r.w);
	*ret = use_margins ? r : (struct cells_rect){0, r.y, next->w, r.h};
	int d = find_shift(w, next, r);
	int with = d ? count_diff(w, next, r, d) : 0, without = d ? count_diff(w, next, r, 0) : 0;
	*ret_is_sure = (use_margins || r.w == next->w) && with * SURE_TIMES < without;
	return with < without ? d : 0;
}

/* Where it is not plain which is shorter, both ways are written, with a scroll and without. What shows afterwards is the same. */
static void diff_or_scroll(struct term_writer *w, const struct cells *next, struct buf *out)
{
	struct cells_rect r;
	bool is_sure = false;
	size_t len = (size_t)next->w * (size_t)next->h * sizeof(struct cells_cell);
	int d = find_scroll(w, next, &r, &is_sure);
	if (d && is_sure) {
		scroll(w, r, d, out);
		diff_rows(w, next, out);
		return;
	}
	struct cells_cell *front = d ? malloc(len) : NULL;
	if (!front) {
		diff_rows(w, next, out);
		return;
	}
	memcpy(front, w->front.cell, len);
	struct term_writer before = *w;
	size_t start = out->len;
	diff_rows(w, next, out);
	struct term_writer plain = *w;
	size_t plain_end = out->len;
	memcpy(w->front.cell, front, len);
	free(front);
	before.front = w->front;
	*w = before;
	scroll(w, r, d, out);
	diff_rows(w, next, out);
	if (out->failed)
		return;
	size_t scroll_len = out->len - plain_end;
	if (scroll_len < plain_end - start) {
		memmove(out->data + start, out->data + plain_end, scroll_len);
		out->len = start + scroll_len;
		return;
	}
	plain.front = w->front;
	*w = plain;
	out->len = plain_end;
}

static bool match_size(struct term_writer *w, const struct cells *next)
{
	if (w->front.cell && w->front.w == next->w && w->front.h == next->h)
		return true;
	if (!cells_resize(&w->front, next->w, next->h))
		return false;
	term_writer_forget(w);
	return true;
}

bool term_writer_frame(struct term_writer *w, const struct cells *next, int cur_x, int cur_y, struct buf *out)
{
	if (!match_size(w, next))
		return false;
	size_t start = out->len;
	size_t cells_at;
	if (w->has_sync)
		buf_add_str(out, "\x1b[?2026h");
	if (w->cur_shown)
		buf_add_str(out, "\x1b[?25l");
	cells_at = out->len;
	diff_or_scroll(w, next, out);
	bool is_changed = out->len != cells_at;
	bool is_shown = cur_x >= 0 && cur_x < next->w && cur_y >= 0 && cur_y < next->h;
	if (!is_changed) {
		out->len = start;
		if (!is_shown && w->cur_shown)
			buf_add_str(out, "\x1b[?25l");
	}
	if (is_shown)
		move_to(w, cur_x, cur_y, out);
	if (is_shown && (is_changed || !w->cur_shown))
		buf_add_str(out, "\x1b[?25h");
	if (is_changed && w->has_sync)
		buf_add_str(out, "\x1b[?2026l");
	w->cur_shown = is_shown;
	if (out->failed)
		term_writer_forget(w);
	return !out->failed;
}
