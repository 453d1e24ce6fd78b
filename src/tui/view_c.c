/* SPDX-License-Identifier: Apache-2.0 */
#include "session/regex.h"
#include "tui/c_lex.h"
#include "tui/tui_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * C of the function under the cursor. The text is made once (c_made.c); a frame takes apart only the lines it shows. The cursor is
 * anchored by function and statement: another snapshot's text keeps the statement under it, and the row on the screen.
 */
#define TAB_COLS 4
#define WHEEL_MAX 64
#define REGEX_NS 1000000000u /* of one search */

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static const char *line_of(const struct tui_c_made *m, uint32_t line, uint32_t *ret_len)
{
	const struct ses_c_line *l = &m->c.lines[line];
	*ret_len = l->len;
	return m->c.text.s + l->off;
}

static bool line_has(const struct tui_c_made *m, uint32_t line, uint64_t va)
{
	const struct ses_c_line *l = &m->c.lines[line];
	for (uint32_t i = 0; i < l->addr_cnt; i++) {
		if (m->c.addrs[l->first_addr + i] == va)
			return true;
	}
	return false;
}

/* --- columns ---------------------------------------------------------------------------------------------------------- */

static int tab_from(int col)
{
	return TAB_COLS - col % TAB_COLS;
}

/* Column at which byte `off` is drawn. */
static int column_of(const struct cells *g, const char *s, uint32_t len, uint32_t off)
{
	int col = 0;
	for (uint32_t i = 0; i < MIN(off, len);) {
		uint32_t n = i;
		while (n < MIN(off, len) && s[n] != '\t')
			n++;
		if (n > i)
			col += cells_text_width(g, s + i, n - i);
		else
			col += tab_from(col), n++;
		i = n;
	}
	return col;
}

static uint32_t step(const char *s, uint32_t len, uint32_t off)
{
	do
		off++;
	while (off < len && ((uint8_t)s[off] & 0xc0) == 0x80);
	return off;
}

/* The byte drawn at a column, of the last one when the line is shorter. */
static uint32_t offset_at(const struct cells *g, const char *s, uint32_t len, int want)
{
	uint32_t off = 0;
	int col = 0;
	while (off < len) {
		uint32_t next = step(s, len, off);
		int w = s[off] == '\t' ? tab_from(col) : cells_text_width(g, s + off, next - off);
		if (next >= len || col + w > want)
			break;
		col += w;
		off = next;
	}
	return off;
}

/* --- the text that is shown ------------------------------------------------------------------------------------------- */

static void set_line(struct tui *t, const struct tui_c_made *m, uint32_t line)
{
	struct tui_c *c = &t->c;
	uint32_t len;
	c->line = MIN(line, m->c.line_cnt ? m->c.line_cnt - 1 : 0);
	if (!m->c.line_cnt)
		return;
	if (!line_has(m, c->line, c->va))
		c->va = ses_c_addr_of(&m->c, c->line);
	const char *s = line_of(m, c->line, &len);
	c->off = offset_at(&t->grid, s, len, c->col);
}

/* The cursor to a byte of its line, which is the column it keeps from now on. */
static void set_off(struct tui *t, const struct tui_c_made *m, uint32_t off)
{
	uint32_t len;
	const char *s = line_of(m, t->c.line, &len);
	t->c.off = len ? MIN(off, len - 1) : 0;
	t->c.col = column_of(&t->grid, s, len, t->c.off);
}

static uint32_t first_code(const char *s, uint32_t len)
{
	uint32_t off = 0;
	while (off + 1 < len && (s[off] == '\t' || s[off] == ' '))
		off++;
	return off;
}

static void to_first_code(struct tui *t, const struct tui_c_made *m)
{
	uint32_t len;
	const char *s = m->c.line_cnt ? line_of(m, t->c.line, &len) : NULL;
	if (s)
		set_off(t, m, first_code(s, len));
}

/* To where c->va is in a text that was not shown before. */
static void settle(struct tui *t, struct tui_c_made *m)
{
	struct tui_c *c = &t->c;
	uint64_t va = c->va;
	c->shown = m;
	c->rows_of = NULL;
	tui_c_rows_make(t, m);
	c->is_selecting = false;
	bool is_kept = c->has_keep && c->keep_line < m->c.line_cnt &&
		       (line_has(m, c->keep_line, va) || ses_c_addr_of(&m->c, c->keep_line) == va);
	uint32_t line = is_kept ? c->keep_line : ses_c_line_at(&m->c, va);
	if (tui_focus(t) == TUI_V_C)
		tui_c_unfold_at(t, m, line);
	set_line(t, m, line);
	c->top = is_kept ? MIN(c->keep_top, c->line) : 0;
	c->want_context = !is_kept;
	c->has_keep = false;
	c->hscroll = 0;
	if (!is_kept) {
		c->va = va;
		to_first_code(t, m);
		return;
	}
	c->col = c->keep_col;
	set_line(t, m, c->line);
}

void tui_c_replaced(struct tui *t, const struct tui_c_made *old, struct tui_c_made *next)
{
	struct tui_c *c = &t->c;
	uint32_t above = tui_c_row_of(t, c->line) - MIN(tui_c_row_of(t, c->top), tui_c_row_of(t, c->line));
	c->shown = NULL;
	c->rows_of = NULL;
	if (next->err || !next->c.line_cnt || !old->c.line_cnt)
		return;
	uint32_t old_len, next_len, line = c->line;
	const char *was = line_of(old, c->line, &old_len);
	const char *is = line < next->c.line_cnt ? line_of(next, line, &next_len) : NULL;
	if (!is || old_len != next_len || memcmp(was, is, old_len)) {
		/* As far from its statement as it was. */
		uint64_t va = ses_c_addr_of(&old->c, c->line);
		int64_t at = (int64_t)ses_c_line_at(&next->c, va) + c->line - ses_c_line_at(&old->c, va);
		line = (uint32_t)MAX(MIN(at, (int64_t)next->c.line_cnt - 1), 0);
	}
	c->shown = next;
	tui_c_rows_make(t, next);
	c->line = line;
	uint32_t row = tui_c_row_of(t, line);
	c->top = tui_c_row_line(t, row - MIN(above, row));
	c->anchor = MIN(c->anchor, next->c.line_cnt - 1);
}

/* The C of the function at the cursor, as far as it is there: null when there is none yet, with ->err when there will be none. */
static struct tui_c_made *ready(struct tui *t)
{
	struct tui_c *c = &t->c;
	struct ses_func f;
	if (!c->is_placed) {
		c->va = t->listing.is_placed ? t->listing.va : t->info.main_va;
		c->is_placed = true;
		c->func = UINT64_MAX;
	}
	bool is_func = c->func != UINT64_MAX && ses_func_at(t->snap, c->func, &t->frame_arena, &f) && f.addr == c->func;
	if (!is_func && !ses_func_at(t->snap, c->va, &t->frame_arena, &f)) {
		tui_c_cancel(t);
		c->func = UINT64_MAX;
		c->shown = NULL;
		return NULL;
	}
	c->func = f.addr;
	struct tui_c_made *m = tui_c_get(t, f.addr);
	if (!m || m->err)
		c->shown = NULL;
	else if (m != c->shown)
		settle(t, m);
	else
		tui_c_rows_make(t, m);
	return m;
}

/* The text with the cursor in it, or null. */
static struct tui_c_made *current(struct tui *t)
{
	struct tui_c_made *m = ready(t);
	return m && !m->err && m->c.line_cnt ? m : NULL;
}

/* --- tokens ----------------------------------------------------------------------------------------------------------- */

static bool token_at(const char *s, uint32_t len, uint32_t off, struct tui_c_token *ret)
{
	for (uint32_t at = 0; tui_c_next(s, len, at, ret); at = ret->off + ret->len) {
		if (off < ret->off)
			return false;
		if (off < ret->off + ret->len)
			return ret->kind != TUI_C_PUNCT;
	}
	return false;
}

static bool cursor_token(const struct tui *t, const char **ret_line, struct tui_c_token *ret)
{
	const struct tui_c *c = &t->c;
	uint32_t len;
	if (!c->shown || !c->shown->c.line_cnt)
		return false;
	*ret_line = line_of(c->shown, c->line, &len);
	return token_at(*ret_line, len, c->off, ret);
}

struct ses_text tui_c_word(const struct tui *t)
{
	struct tui_c_token k;
	const char *s;
	return cursor_token(t, &s, &k) ? (struct ses_text){s + k.off, k.len} : (struct ses_text){"", 0};
}

/* "b12" and ":" behind it at the beginning of a line. */
static bool find_label(const struct tui_c_made *m, const char *name, uint32_t len, uint32_t *ret)
{
	for (uint32_t i = 0; i < m->c.line_cnt; i++) {
		uint32_t line_len;
		const char *s = line_of(m, i, &line_len);
		if (line_len > len && s[len] == ':' && !memcmp(s, name, len)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Names of C end in the address of what they name. */
static bool address_in_name(struct tui *t, const char *s, uint32_t len, uint64_t *ret)
{
	uint32_t at = len;
	char text[256];
	while (at && isxdigit((unsigned char)s[at - 1]) && !isupper((unsigned char)s[at - 1]))
		at--;
	if (len >= sizeof(text) || (len >= 5 && !memcmp(s, "scry_", 5)))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)len, s);
	struct err *e = ses_resolve(t->snap, text, ret);
	bool is_name = !e;
	err_free(e);
	if (is_name)
		return true;
	if (at < 2 || s[at - 1] != '_' || at == len || len - at > 16)
		return false;
	*ret = strtoull(text + at, NULL, 16);
	return ses_is_mapped(t->snap, *ret);
}

/* The first address a line speaks of: of a call its target. */
static bool line_addr(const char *s, uint32_t len, uint64_t *ret)
{
	struct tui_c_token k;
	for (uint32_t at = 0; tui_c_next(s, len, at, &k); at = k.off + k.len) {
		if (k.kind != TUI_C_ADDR)
			continue;
		*ret = k.value;
		return true;
	}
	return false;
}

struct target {
	bool is_label;
	uint32_t line; /* of the label */
	uint64_t va;
};

static bool target_of(struct tui *t, const struct tui_c_made *m, const char *s, uint32_t len, const struct tui_c_token *k, struct target *ret)
{
	*ret = (struct target){0};
	switch (k->kind) {
	case TUI_C_ADDR:
		ret->va = k->value;
		return true;
	case TUI_C_NUMBER:
		ret->va = k->value;
		return k->value > 0xfff && ses_is_mapped(t->snap, k->value);
	case TUI_C_COMMENT:
		if (line_addr(s, len, &ret->va))
			return true;
		ret->va = k->len > 5 && !memcmp(s + k->off, "/* 0x", 5) ? strtoull(s + k->off + 5, NULL, 16) : 0;
		return ret->va != 0;
	case TUI_C_NAME:
	case TUI_C_CALL:
		if (find_label(m, s + k->off, k->len, &ret->line)) {
			ret->is_label = true;
			ret->va = tui_c_label_va(m, ret->line);
			return true;
		}
		return address_in_name(t, s + k->off, k->len, &ret->va);
	default:
		return false;
	}
}

static bool cursor_target(struct tui *t, struct target *ret)
{
	struct tui_c_token k;
	const char *s;
	return current(t) && cursor_token(t, &s, &k) && target_of(t, t->c.shown, s, t->c.shown->c.lines[t->c.line].len, &k, ret);
}

/* Where the line leads when the cursor is on nothing that does. */
static bool line_target(struct tui *t, struct target *ret)
{
	const struct tui_c_made *m = current(t);
	struct tui_c_token k;
	uint32_t len;
	if (!m)
		return false;
	const char *s = line_of(m, t->c.line, &len);
	*ret = (struct target){0};
	if (line_addr(s, len, &ret->va))
		return true;
	for (uint32_t at = 0, is_goto = false; tui_c_next(s, len, at, &k); at = k.off + k.len) {
		if (is_goto && target_of(t, m, s, len, &k, ret))
			return true;
		is_goto = k.kind == TUI_C_KEYWORD && k.len == 4 && !memcmp(s + k.off, "goto", 4);
	}
	return false;
}

bool tui_c_subject(struct tui *t, uint64_t *ret)
{
	struct target to;
	if (cursor_target(t, &to))
		*ret = to.va;
	else
		*ret = t->c.func;
	return t->c.func != UINT64_MAX;
}

bool tui_c_links(const struct tui *t, uint64_t va)
{
	const struct tui_c *c = &t->c;
	return c->shown && c->line < c->shown->c.line_cnt && line_has(c->shown, c->line, va);
}

/* An operand of one of the line's instructions that has this value. */
static bool operand_in(struct tui *t, uint32_t line, uint64_t value, uint64_t *ret_va, unsigned *ret_operand, struct ses_formats *ret)
{
	const struct ses_c *c = &t->c.shown->c;
	const struct ses_c_line *l = &c->lines[line];
	for (uint32_t i = 0; i < l->addr_cnt; i++) {
		for (unsigned operand = 0; operand < 8; operand++) {
			uint64_t va = c->addrs[l->first_addr + i];
			if (!ses_formats_at(t->snap, va, operand, &t->frame_arena, ret))
				continue;
			bool is_narrow = value && (value == (uint32_t)ret->value || value == (uint8_t)ret->value);
			if (value != ret->value && value != -ret->value && !is_narrow)
				continue;
			*ret_va = va;
			*ret_operand = operand;
			return true;
		}
	}
	return false;
}

/* Flags may be read further on than they were set: the nearest line of the block up from here. */
static bool operand_of(struct tui *t, uint32_t line, uint64_t value, uint64_t *ret_va, unsigned *ret_operand, struct ses_formats *ret)
{
	const struct tui_c_made *m = t->c.shown;
	for (uint32_t i = line + 1; i-- > 0;) {
		uint32_t len;
		const char *s = line_of(m, i, &len);
		if (operand_in(t, i, value, ret_va, ret_operand, ret))
			return true;
		if (!len || *s != '\t' || s[len - 1] == '{')
			return false;
	}
	return false;
}

bool tui_c_number(struct tui *t, uint64_t *ret_va, unsigned *ret_operand, struct ses_formats *ret)
{
	const struct tui_c_made *m = current(t);
	struct tui_c_token k;
	uint32_t len;
	if (!m)
		return false;
	const char *s = line_of(m, t->c.line, &len);
	bool is_on = token_at(s, len, t->c.off, &k) && k.kind == TUI_C_NUMBER;
	if (is_on)
		return operand_of(t, t->c.line, k.value, ret_va, ret_operand, ret);
	for (uint32_t at = t->c.off; tui_c_next(s, len, at, &k); at = k.off + k.len) {
		if (k.kind == TUI_C_NUMBER && operand_of(t, t->c.line, k.value, ret_va, ret_operand, ret))
			return true;
	}
	return false;
}

/* --- drawing ---------------------------------------------------------------------------------------------------------- */

static enum term_role token_role(uint8_t kind)
{
	static const uint8_t roles[] = {
		[TUI_C_KEYWORD] = ROLE_MNEMONIC, [TUI_C_TYPE] = ROLE_REG,      [TUI_C_NUMBER] = ROLE_NUMBER, [TUI_C_ADDR] = ROLE_NAME,
		[TUI_C_NAME] = ROLE_TEXT,	 [TUI_C_CALL] = ROLE_NAME,     [TUI_C_COMMENT] = ROLE_COMMENT,
		[TUI_C_STRING] = ROLE_STRING,	 [TUI_C_PUNCT] = ROLE_PUNCT,   [TUI_C_DIRECTIVE] = ROLE_DIM,
	};
	return roles[kind];
}

static void draw_blanks(struct cells_pen *p, const char *s, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		cells_pad_to(p, p->col + (s[i] == '\t' ? tab_from(p->col) : 1));
}

struct look {
	struct ses_text word; /* under the cursor */
	int digits;           /* of line numbers; 0: none */
	bool has_listing;     /* beside it, and leading: its instruction's lines are marked */
};

static void draw_text(struct tui *t, struct cells_pen *p, const struct tui_c_made *m, uint32_t line, const struct look *look, enum term_role bg)
{
	struct tui_c_token k;
	uint32_t len, at = 0;
	const char *s = line_of(m, line, &len);
	p->col = 0;
	p->skip = t->c.hscroll;
	while (!p->is_cut && tui_c_next(s, len, at, &k)) {
		bool is_word = look->word.len == k.len && !memcmp(look->word.s, s + k.off, k.len);
		bool is_under = line == t->c.line && t->c.off >= k.off && t->c.off < k.off + k.len;
		p->st = tui_style(ROLE_TEXT, bg);
		draw_blanks(p, s + at, k.off - at);
		p->st = tui_style(token_role(k.kind), is_word ? ROLE_BG_WORD : bg);
		if (is_under && (k.kind == TUI_C_ADDR || k.kind == TUI_C_CALL || k.kind == TUI_C_NUMBER))
			p->st.attr |= CELLS_UNDERLINE | CELLS_BOLD;
		cells_text(p, s + k.off, k.len);
		at = k.off + k.len;
	}
}

/* The line that a probe at va is of: a function's is its head. */
static uint32_t probed_line(const struct tui_c_made *m, uint64_t va)
{
	uint32_t line = ses_c_line_at(&m->c, va);
	if (va != m->c.addr)
		return m->c.line_cnt && line_has(m, line, va) ? line : UINT32_MAX;
	for (line = 0; line < m->c.line_cnt; line++) {
		uint32_t len;
		const char *s = line_of(m, line, &len);
		if (len && *s != '#' && *s != '/' && memchr(s, '(', len))
			return line;
	}
	return 0;
}

/* Where the program is or was in the statement of a line, the nearest to now. */
static enum term_role line_trail(const struct tui *t, const struct tui_c_made *m, uint32_t line)
{
	enum term_role best = ROLE_BG;
	const struct ses_c_line *l = &m->c.lines[line];
	for (uint32_t i = 0; t->dock && i < l->addr_cnt && best != ROLE_BG_NOW; i++) {
		enum term_role bg = tui_dock_bg(t, m->c.addrs[l->first_addr + i]);
		best = bg != ROLE_BG ? bg : best;
	}
	return best;
}

static void draw_line(struct tui *t, struct cells_rect r, const struct tui_c_made *m, uint32_t line, const struct look *look)
{
	const struct tui_c *c = &t->c;
	uint32_t hidden = tui_c_hidden(t, line);
	bool is_current = line == c->line || (c->line > line && c->line - line <= hidden);
	bool is_selected = c->is_selecting && line >= MIN(c->line, c->anchor) && line <= MAX(c->line, c->anchor);
	bool is_linked = look->has_listing && line_has(m, line, t->listing.va);
	enum term_role trail = line_trail(t, m, line);
	enum term_role bg = trail == ROLE_BG_NOW ? trail : is_current || is_linked ? ROLE_BG_LINE : is_selected ? ROLE_BG_WORD : trail;
	struct cells_pen p = tui_pen(t, r, 0, ROLE_KEY, bg);
	cells_fill(&t->grid, r, p.st);
	cells_put(&t->grid, p.x++, p.y, is_current ? '>' : is_selected ? '+' : is_linked ? cells_glyph(&t->grid, GLYPH_V) : ' ', p.st);
	p.st.fg = ROLE_ADDR;
	if (look->digits)
		cells_printf(&p, "%*u ", look->digits, line + 1);
	draw_text(t, &p, m, line, look, bg);
	uint64_t va;
	for (size_t at = 0; tui_probe_next(t, &at, &va);) {
		if (line == probed_line(m, va))
			tui_probe_draw(t, &p, va, bg);
	}
	if (!hidden)
		return;
	p.st = tui_style(ROLE_KEY, bg);
	cells_printf(&p, " \xe2\x80\xa6 %u line%s", hidden, hidden == 1 ? "" : "s");
}

static void draw_nothing(struct tui *t, struct cells_rect r, const struct tui_c_made *m)
{
	struct ses_text name = ses_name_at(t->snap, t->c.func, &t->frame_arena);
	struct cells_pen p = tui_pen(t, r, r.h / 2, ROLE_DIM, ROLE_BG);
	if (m && m->err) {
		p.st.fg = ROLE_WARN;
		cells_printf(&p, "  ! %s", m->err->text ? m->err->text : err_kind_name(m->err->kind));
		p = tui_pen(t, r, MIN(r.h / 2 + 1, r.h - 1), ROLE_DIM, ROLE_BG);
		cells_str(&p, "  Tab: listing   Space: graph");
	} else if (m && !t->c.job) {
		cells_str(&p, "  ! ");
		cells_text(&p, name.s, MIN(name.len, 60));
		cells_str(&p, " has no code, so there is no C of it");
	} else if (t->c.job) {
		cells_str(&p, "  C of ");
		cells_text(&p, name.s, MIN(name.len, 60));
		cells_str(&p, " is being made");
	} else if (ses_snap_is_preview(t->snap)) {
		cells_printf(&p, "  no function is known at %llx yet; the analysis goes on", (unsigned long long)t->c.va);
	} else {
		cells_printf(&p, "  C is of a function, and %llx is in none", (unsigned long long)t->c.va);
	}
}

/* Moves the window so that the cursor is in it. */
static void place(struct tui *t, const struct tui_c_made *m, int height)
{
	struct tui_c *c = &t->c;
	uint32_t h = (uint32_t)MAX(height, 1), cnt = tui_c_row_cnt(t);
	uint32_t step_lines = (uint32_t)MIN(MAX(t->edge_step, 1), height);
	c->line = MIN(c->line, m->c.line_cnt - 1);
	uint32_t row = tui_c_row_of(t, c->line), top = tui_c_row_of(t, c->top);
	if (c->want_context || c->want_centre) {
		/* A function is shown from its beginning when what one wants of it is on the first page. */
		uint32_t above = c->want_centre ? h / 2 : h / 4;
		top = row < h && !c->want_centre ? 0 : row - MIN(row, above);
	} else if (row < top) {
		top = row - MIN(row, step_lines - 1);
	} else if (row - top >= h) {
		top = row - (h - step_lines);
	}
	c->want_context = c->want_centre = false;
	c->top = tui_c_row_line(t, MIN(top, cnt > h ? cnt - h : 0));
}

/* Whether a line is in the window as it was drawn last. */
static bool is_in_window(const struct tui *t, uint32_t line)
{
	uint32_t row = tui_c_row_of(t, line), top = tui_c_row_of(t, t->c.top);
	return row >= top && row < top + (uint32_t)MAX(t->c.body.h, 1);
}

/* The cursor is on no line that is folded away: on the one it is folded into. */
static void leave_fold(struct tui *t, const struct tui_c_made *m)
{
	uint32_t line = tui_c_row_line(t, tui_c_row_of(t, t->c.line));
	if (line != t->c.line)
		set_line(t, m, line);
}

static int digits_of(uint32_t v)
{
	int n = 1;
	for (; v > 9; v /= 10)
		n++;
	return MAX(n, 3);
}

static void c_draw(struct tui *t, struct cells_rect r, bool is_focused)
{
	struct tui_c *c = &t->c;
	struct look look = {.word = {"", 0}};
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	if (r.w < 8 || r.h < 1)
		return;
	struct cells_rect body = {r.x, r.y, r.w - 1, r.h};
	c->body = body;
	struct tui_c_made *m = ready(t);
	if (!m || m->err || !m->c.line_cnt) {
		draw_nothing(t, r, m);
		return;
	}
	if (is_focused)
		leave_fold(t, m);
	place(t, m, body.h);
	uint32_t top = tui_c_row_of(t, c->top), row_cnt = tui_c_row_cnt(t);
	look.digits = body.w >= 48 ? digits_of(m->c.line_cnt) : 0;
	look.has_listing = t->split_rect.w && t->main_view == TUI_V_LISTING;
	c->text_x = 1 + (look.digits ? look.digits + 1 : 0);
	uint32_t len;
	const char *s = line_of(m, c->line, &len);
	c->off = len ? MIN(c->off, len - 1) : 0;
	int col = column_of(&t->grid, s, len, c->off), room = body.w - c->text_x;
	if (is_focused || !c->hscroll) {
		if (col < c->hscroll || (room > 8 && col >= c->hscroll + room - 1))
			c->hscroll = col >= room - 1 ? col - room / 2 : 0;
	}
	if (is_focused) {
		look.word = tui_c_word(t);
		c->want_centre = false;
		t->cur_x = MAX(MIN(body.x + c->text_x + col - c->hscroll, body.x + body.w - 1), body.x);
		t->cur_y = body.y + (int)(tui_c_row_of(t, c->line) - top);
	}
	for (uint32_t i = 0; i < (uint32_t)body.h && top + i < row_cnt; i++)
		draw_line(t, (struct cells_rect){body.x, body.y + (int)i, body.w, 1}, m, tui_c_row_line(t, top + i), &look);
	tui_draw_bar(t, (struct cells_rect){r.x + r.w - 1, r.y, 1, r.h}, top, (uint64_t)r.h, row_cnt);
	if (is_focused)
		t->scroll_hint = body;
}

static void c_status(struct tui *t, struct cells_pen *p)
{
	const struct tui_c_made *m = t->c.shown;
	if (!m)
		return;
	const char *v = m->c.verified;
	bool is_not_run = !strcmp(v, "not_run");
	p->st.fg = !strcmp(v, "differs") ? ROLE_BAR_WARN : ROLE_BAR_NAME;
	cells_printf(p, "  %s, %s%s", m->c.level, is_not_run ? "not verified" : "verified: ", is_not_run ? "" : v);
	if (strcmp(m->c.status, "full")) {
		p->st.fg = ROLE_BAR_WARN;
		cells_printf(p, ", ! %s", m->c.status);
	}
	p->st.fg = ROLE_BAR_DIM;
	if (t->c.job)
		cells_str(p, ", being made anew");
	cells_printf(p, "  line %u of %u", t->c.line + 1, m->c.line_cnt);
}

/* --- moving ----------------------------------------------------------------------------------------------------------- */

static void move(struct tui *t, const struct tui_c_made *m, int64_t by)
{
	int64_t at = (int64_t)tui_c_row_of(t, t->c.line) + by;
	set_line(t, m, tui_c_row_line(t, (uint32_t)MAX(MIN(at, (int64_t)tui_c_row_cnt(t) - 1), 0)));
}

static void page(struct tui *t, const struct tui_c_made *m, int by)
{
	int64_t top = (int64_t)tui_c_row_of(t, t->c.top) + by;
	int64_t last = MAX((int64_t)tui_c_row_cnt(t) - MAX(t->c.body.h, 1), 0);
	t->c.top = tui_c_row_line(t, (uint32_t)MAX(MIN(top, last), 0));
	move(t, m, by);
}

static void sideways(struct tui *t, const struct tui_c_made *m, int by)
{
	uint32_t len, off = t->c.off;
	const char *s = line_of(m, t->c.line, &len);
	do {
		if (by < 0 ? off == 0 : off + 1 >= len)
			break;
		off = by < 0 ? off - 1 : off + 1;
	} while (((uint8_t)s[off] & 0xc0) == 0x80);
	set_off(t, m, off);
}

/* The next (or last) word of a line from `off` on (or before it); false when there is none. */
static bool word_in(const struct tui_c_made *m, uint32_t line, int64_t off, int by, uint32_t *ret)
{
	struct tui_c_token k;
	uint32_t len;
	bool is_found = false;
	const char *s = line_of(m, line, &len);
	for (uint32_t at = 0; tui_c_next(s, len, at, &k); at = k.off + k.len) {
		if (k.kind == TUI_C_PUNCT || (by > 0 ? k.off <= off : k.off >= off))
			continue;
		*ret = k.off;
		is_found = true;
		if (by > 0)
			break;
	}
	return is_found;
}

static void word(struct tui *t, const struct tui_c_made *m, int by)
{
	int64_t off = t->c.off;
	for (uint32_t row = tui_c_row_of(t, t->c.line);; row += (uint32_t)by, off = by > 0 ? -1 : (int64_t)UINT32_MAX) {
		uint32_t at, line = tui_c_row_line(t, row);
		if (word_in(m, line, off, by, &at)) {
			set_line(t, m, line);
			set_off(t, m, at);
			return;
		}
		if (by > 0 ? row + 1 >= tui_c_row_cnt(t) : row == 0)
			return;
	}
}

/* To a line of the text, remembering where we were. */
static void jump(struct tui *t, struct tui_c_made *m, uint32_t line)
{
	tui_push_past(t);
	t->future.cnt = 0;
	tui_c_unfold_at(t, m, line);
	set_line(t, m, line);
	to_first_code(t, m);
	t->c.want_context |= !is_in_window(t, line);
}

static void fold(struct tui *t, struct tui_c_made *m)
{
	uint32_t line = t->c.line;
	if (tui_c_fold_toggle(t, m, &line))
		set_line(t, m, line);
	else
		tui_say(t, false, "no block begins or ends here");
}

static void follow(struct tui *t, struct tui_c_made *m)
{
	struct target to;
	if (tui_c_hidden(t, t->c.line))
		fold(t, m);
	else if (!cursor_target(t, &to) && !line_target(t, &to))
		tui_say(t, false, "nothing to follow on this line");
	else if (to.is_label)
		jump(t, m, to.line);
	else
		tui_follow(t, to.va);
}

void tui_c_go_line(struct tui *t, uint64_t line)
{
	struct tui_c_made *m = current(t);
	if (m && line)
		jump(t, m, (uint32_t)MIN(line - 1, m->c.line_cnt - 1));
}

static bool act_move(struct tui *t, const struct tui_c_made *m, enum tui_action a)
{
	struct tui_c *c = &t->c;
	int height = MAX(c->body.h, 2);
	uint32_t len;
	const char *s = line_of(m, c->line, &len);
	switch ((int)a) {
	case TUI_UP:
	case TUI_DOWN:
		move(t, m, a == TUI_UP ? -1 : 1);
		return true;
	case TUI_LEFT:
	case TUI_RIGHT:
		sideways(t, m, a == TUI_LEFT ? -1 : 1);
		return true;
	case TUI_HALF_UP:
	case TUI_HALF_DOWN:
		page(t, m, a == TUI_HALF_UP ? -(height / 2) : height / 2);
		return true;
	case TUI_PAGE_UP:
	case TUI_PAGE_DOWN:
		page(t, m, a == TUI_PAGE_UP ? -(height - 1) : height - 1);
		return true;
	case TUI_LINE_START:
		/* First the code, then the edge. */
		set_off(t, m, c->off == first_code(s, len) ? 0 : first_code(s, len));
		return true;
	case TUI_LINE_END:
		set_off(t, m, len);
		return true;
	case TUI_TOP:
	case TUI_BOTTOM:
		set_line(t, m, a == TUI_TOP ? 0 : tui_c_row_line(t, UINT32_MAX));
		return true;
	case TUI_WORD_NEXT:
	case TUI_WORD_PREV:
		word(t, m, a == TUI_WORD_NEXT ? 1 : -1);
		return true;
	case TUI_CENTRE:
		c->want_centre = true;
		return true;
	default:
		return false;
	}
}

static void select_toggle(struct tui *t)
{
	t->c.is_selecting = !t->c.is_selecting;
	t->c.anchor = t->c.line;
	tui_say(t, false, t->c.is_selecting ? "lines from here: move, then Ctrl+Y copies them; v or Esc ends" : "no selection");
}

static bool c_act(struct tui *t, enum tui_action a)
{
	if (a == TUI_FUNC_NEXT || a == TUI_FUNC_PREV) {
		tui_go_function(t, t->c.func == UINT64_MAX ? t->c.va : t->c.func, a == TUI_FUNC_NEXT ? 1 : -1);
		return true;
	}
	struct tui_c_made *m = current(t);
	if (!m)
		return tui_action_info(a)->group == TUI_GROUP_MOVE; /* there is nothing to move in */
	switch ((int)a) {
	case TUI_FOLLOW:
		follow(t, m);
		return true;
	case TUI_FOLD:
		fold(t, m);
		return true;
	case TUI_FOLD_ALL:
		if (!tui_c_fold_all(t, m))
			tui_say(t, false, "there are no blocks to fold");
		return true;
	case TUI_SELECT:
		select_toggle(t);
		return true;
	case TUI_BACK:
		if (!t->c.is_selecting)
			return false;
		select_toggle(t);
		return true;
	default:
		return act_move(t, m, a);
	}
}

static void c_scroll(struct tui *t, int rows)
{
	const struct tui_c_made *m = current(t);
	if (!m)
		return;
	int n = MAX(MIN(rows, WHEEL_MAX), -WHEEL_MAX);
	int64_t h = MAX(t->c.body.h, 1);
	int64_t cnt = tui_c_row_cnt(t), row = tui_c_row_of(t, t->c.line);
	int64_t top = MAX(MIN((int64_t)tui_c_row_of(t, t->c.top) + n, cnt - h), 0);
	t->c.top = tui_c_row_line(t, (uint32_t)top);
	if (row < top || row >= top + h)
		set_line(t, m, tui_c_row_line(t, (uint32_t)(row < top ? top : MIN(top + h, cnt) - 1)));
}

static bool c_click(struct tui *t, int x, int y, bool is_drag)
{
	struct tui_c *c = &t->c;
	const struct tui_c_made *m = current(t);
	if (!m)
		return false;
	if (x >= c->body.x + c->body.w && c->body.h > 0) {
		int at = MAX(0, MIN(y - c->body.y, c->body.h - 1));
		uint64_t last = tui_c_row_cnt(t) - 1u;
		set_line(t, m, c->body.h > 1 ? tui_c_row_line(t, (uint32_t)((uint64_t)at * last / (uint64_t)(c->body.h - 1))) : 0);
		return false;
	}
	int64_t row = (int64_t)tui_c_row_of(t, c->top) + y - c->body.y;
	if (is_drag || y < c->body.y || row >= tui_c_row_cnt(t))
		return false;
	uint32_t len;
	c->line = tui_c_row_line(t, (uint32_t)row);
	const char *s = line_of(m, c->line, &len);
	c->col = MAX(x - c->body.x - c->text_x + c->hscroll, 0);
	c->off = offset_at(&t->grid, s, len, c->col);
	if (!line_has(m, c->line, c->va))
		c->va = ses_c_addr_of(&m->c, c->line);
	return true;
}

/* --- places ----------------------------------------------------------------------------------------------------------- */

static void c_go(struct tui *t, uint64_t va)
{
	struct tui_c *c = &t->c;
	struct ses_func f;
	bool has_func = ses_func_at(t->snap, va, &t->frame_arena, &f);
	bool is_shown = has_func && c->shown && c->func == f.addr;
	c->va = va;
	c->func = has_func ? f.addr : UINT64_MAX;
	c->is_placed = true;
	c->has_keep = false;
	if (!is_shown) {
		c->shown = NULL; /* what is there of it is settled when it is drawn */
		return;
	}
	/* A target on the screen is walked to; the page stays still under the eye. */
	struct tui_c_made *m = c->shown;
	uint32_t line = ses_c_line_at(&m->c, va);
	if (!line_has(m, c->line, va)) {
		c->line = MIN(line, m->c.line_cnt ? m->c.line_cnt - 1 : 0);
		to_first_code(t, m);
	}
	/* The half that is led opens nothing. */
	if (tui_focus(t) == TUI_V_C)
		tui_c_unfold_at(t, m, c->line);
	c->want_context |= !is_in_window(t, c->line);
}

bool tui_c_can(struct tui *t, uint64_t va)
{
	struct ses_func f;
	return ses_func_at(t->snap, va, &t->frame_arena, &f);
}

void tui_c_toggle(struct tui *t)
{
	uint64_t va;
	if (t->main_view == TUI_V_C && !t->focus_functions) {
		tui_show_view(t, TUI_V_LISTING);
		return;
	}
	if (!tui_focus_va(t, &va) || !tui_c_can(t, va)) {
		tui_say(t, true, ses_snap_is_preview(t->snap) ? "no function is known here yet; the analysis goes on" :
								 "C is of a function, and here is none");
		return;
	}
	t->graph.is_sticky = false;
	tui_show_view(t, TUI_V_C);
	c_go(t, va);
}

void tui_c_spot(const struct tui *t, struct tui_place *p)
{
	p->va = t->c.va;
	p->sub = t->c.line;
	p->top_va = t->c.func;
	p->top_sub = t->c.top;
	p->col = (uint16_t)MIN(t->c.col, UINT16_MAX);
}

void tui_c_restore(struct tui *t, const struct tui_place *p)
{
	struct tui_c *c = &t->c;
	c_go(t, p->va);
	c->func = p->top_va;
	c->shown = NULL;
	c->has_keep = true;
	c->keep_line = p->sub;
	c->keep_top = p->top_sub;
	c->keep_col = p->col;
}

static bool c_va(struct tui *t, uint64_t *ret)
{
	*ret = t->c.va;
	return t->c.is_placed;
}

/* --- text ------------------------------------------------------------------------------------------------------------- */

static bool is_upper_in(const char *s)
{
	for (; *s; s++) {
		if (isupper((unsigned char)*s))
			return true;
	}
	return false;
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

struct find {
	const char *what;
	uint32_t len;
	struct regex *rx; /* in place of what and len, or null */
	bool back;
	bool is_word; /* no part of a longer one */
	bool is_exact; /* smart case: capitals are meant when there are any */
};

static bool matches_at(const struct find *f, const char *s, uint32_t len, uint32_t off)
{
	uint32_t end = off + f->len;
	if (end > len || (f->is_exact ? memcmp(s + off, f->what, f->len) : strncasecmp(s + off, f->what, f->len)))
		return false;
	return !f->is_word || !((off && is_word_char(s[off - 1])) || (end < len && is_word_char(s[end])));
}

/* The first match at or behind byte `from`; false when there is none, or something ended the search. */
static bool next_match(const struct find *f, const char *s, uint32_t len, uint32_t from, uint32_t *ret)
{
	size_t at, n;
	if (f->rx) {
		bool is_found = regex_find(f->rx, (const uint8_t *)s, len, from, &at, &n);
		*ret = is_found ? (uint32_t)at : 0;
		return is_found;
	}
	for (*ret = from; *ret < len; ++*ret) {
		if (matches_at(f, s, len, *ret))
			return true;
	}
	return false;
}

/* The match in a line nearest behind byte `off`, or before it. */
static bool match_in(const struct tui_c_made *m, const struct find *f, uint32_t line, int64_t off, uint32_t *ret)
{
	uint32_t len, at;
	bool is_found = false;
	const char *s = line_of(m, line, &len);
	for (int64_t from = f->back ? 0 : off + 1; from < len && next_match(f, s, len, (uint32_t)from, &at); from = (int64_t)at + 1) {
		if (f->back && at >= off)
			break;
		*ret = at;
		is_found = true;
		if (!f->back)
			break;
	}
	return is_found;
}

static void show_match(struct tui *t, struct tui_c_made *m, uint32_t line, uint32_t off)
{
	tui_push_past(t);
	t->future.cnt = 0;
	tui_c_unfold_at(t, m, line);
	set_line(t, m, line);
	set_off(t, m, off);
	t->c.want_context |= !is_in_window(t, line);
}

static void search(struct tui *t, struct tui_c_made *m, const struct find *f, const char *text)
{
	int64_t off = t->c.off;
	uint32_t line = t->c.line, at;
	bool has_wrapped = false;
	/* Every line once, and the cursor's at the end again: the part of it that lay behind. */
	for (uint32_t i = 0; i <= m->c.line_cnt; i++) {
		if (match_in(m, f, line, off, &at)) {
			show_match(t, m, line, at);
			tui_say(t, false, "found%s: %s  (F3 next, N before)", has_wrapped ? ", past the end" : "", text);
			return;
		}
		struct err *e = f->rx ? regex_error(f->rx) : NULL;
		if (e) {
			tui_say_err(t, e);
			return;
		}
		bool is_edge = f->back ? line == 0 : line + 1 == m->c.line_cnt;
		has_wrapped |= is_edge;
		line = is_edge ? (f->back ? m->c.line_cnt - 1 : 0) : f->back ? line - 1 : line + 1;
		off = f->back ? (int64_t)UINT32_MAX : -1;
	}
	tui_say(t, true, "not in this function: %s (Ctrl+F looks in the whole file)", text);
}

/* A pattern that takes long is no reason to stop the screen. */
static struct err *check_time(void *ctx)
{
	const uint64_t *until = ctx;
	return now_ns() < *until ? NULL : err_fix(err_new(ERR_TIMEOUT, "this pattern takes too long"), "a simpler one");
}

void tui_c_search(struct tui *t, const char *text, bool back, bool is_word)
{
	struct tui_c_made *m = current(t);
	const char *what = text;
	uint64_t until = now_ns() + REGEX_NS;
	enum ses_search_kind kind = is_word ? SES_SEARCH_TEXT : tui_search_kind(text, &what);
	bool is_regex = kind == SES_SEARCH_REGEX;
	struct find f = {.what = what, .len = (uint32_t)strlen(what), .back = back, .is_word = is_word,
			 .is_exact = is_word || is_upper_in(what)};
	if (!m || !*what)
		return;
	struct err *e = is_regex ? regex_new(what, &f.rx) : NULL;
	if (e) {
		tui_say_err(t, e);
		return;
	}
	if (f.rx)
		regex_set_check(f.rx, check_time, &until);
	search(t, m, &f, text);
	regex_free(f.rx);
}

bool tui_c_copy(struct tui *t, bool is_all, struct buf *out)
{
	const struct tui_c_made *m = current(t);
	struct tui_c *c = &t->c;
	if (!m)
		return false;
	if (is_all) {
		buf_add(out, m->c.text.s, m->c.text.len);
		return true;
	}
	bool is_many = c->is_selecting;
	uint32_t first = is_many ? MIN(c->line, c->anchor) : c->line, last = is_many ? MAX(c->line, c->anchor) : c->line;
	for (uint32_t i = first; i <= last; i++) {
		uint32_t len;
		const char *s = line_of(m, i, &len);
		uint32_t skip = is_many ? 0 : first_code(s, len);
		buf_add(out, s + skip, len - skip);
		if (is_many)
			buf_add_ch(out, '\n');
	}
	c->is_selecting = false;
	return true;
}

const struct tui_view_ops tui_c_ops = {
	.name = "C",
	.where = TUI_IN_C,
	.draw = c_draw,
	.act = c_act,
	.scroll = c_scroll,
	.click = c_click,
	.go = c_go,
	.va = c_va,
	.status = c_status,
};
