/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/c_lex.h"
#include "tui/tui_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * Blocks of C folded away: what stands behind a label up to the next one, or between braces. What is folded is remembered by address, so
 * that it stays so when an edit makes the text anew; rows are the lines that are left.
 */
struct blocks {
	const struct tui_c_made *m;
	VEC(struct tui_c_block) all;
	VEC(uint32_t) open; /* indices of those that have not ended */
	uint32_t braces;    /* open ones among them */
	bool failed;
};

/* What a line begins and ends with, comments aside. */
struct shape {
	bool is_label, closes, opens;
	bool is_brace; /* nothing but the brace that it opens */
	bool is_end;   /* ... that it closes */
};

static const char *line_of(const struct tui_c_made *m, uint32_t line, uint32_t *ret_len)
{
	*ret_len = m->c.lines[line].len;
	return m->c.text.s + m->c.lines[line].off;
}

static struct shape shape_of(const char *s, uint32_t len)
{
	struct shape h = {0};
	struct tui_c_token k;
	unsigned cnt = 0;
	for (uint32_t at = 0; tui_c_next(s, len, at, &k); at = k.off + k.len) {
		if (k.kind == TUI_C_COMMENT)
			continue;
		bool is_punct = k.kind == TUI_C_PUNCT;
		if (!cnt) {
			h.closes = is_punct && s[k.off] == '}';
			h.is_label = k.kind == TUI_C_NAME && k.off + k.len < len && s[k.off + k.len] == ':';
		}
		h.opens = is_punct && s[k.off] == '{';
		cnt++;
	}
	h.is_brace = h.opens && cnt == 1;
	h.is_end = h.closes && cnt == 1;
	return h;
}

uint64_t tui_c_label_va(const struct tui_c_made *m, uint32_t line)
{
	static const char before[] = "/* 0x";
	uint32_t len;
	const char *s = line_of(m, line, &len), *at = memmem(s, len, before, sizeof(before) - 1);
	char *end;
	if (!at || (size_t)(s + len - at) < sizeof(before))
		return ses_c_addr_of(&m->c, line);
	uint64_t va = strtoull(at + 3, &end, 16);
	return end > at + 5 && end < s + len ? va : ses_c_addr_of(&m->c, line);
}

static void begin(struct blocks *b, uint32_t line, bool is_label, bool is_part)
{
	uint64_t va = is_label ? tui_c_label_va(b->m, line) : ses_c_addr_of(&b->m->c, line);
	struct tui_c_block block = {.head = line, .last = line, .key = {.func = b->m->func, .va = va, .depth = b->braces, .is_label = is_label},
				    .is_part = is_part};
	b->failed |= !VEC_PUSH(&b->all, block) || !VEC_PUSH(&b->open, (uint32_t)b->all.cnt - 1);
	b->braces += !is_label;
}

/* The innermost one ends with this line. */
static bool end(struct blocks *b, uint32_t last)
{
	struct tui_c_block *block = &b->all.data[VEC_POP(&b->open)];
	block->last = last;
	b->braces -= !block->key.is_label;
	return block->key.is_label;
}

static bool is_in_label(const struct blocks *b)
{
	return b->open.cnt && b->all.data[b->open.data[b->open.cnt - 1]].key.is_label;
}

static void add_line(struct blocks *b, uint32_t line)
{
	uint32_t len;
	const char *s = line_of(b->m, line, &len);
	struct shape h = shape_of(s, len);
	if ((h.is_label || h.closes) && is_in_label(b))
		end(b, line - 1);
	/* What stands behind a brace in its line (else, while) is shown. */
	if (h.closes && b->open.cnt)
		end(b, h.is_end ? line : line - 1);
	bool is_part = h.is_brace && is_in_label(b) && b->all.data[b->all.cnt - 1].head + 1 == line;
	if (h.is_label)
		begin(b, line, true, false);
	if (h.opens)
		begin(b, line, false, is_part);
}

/* The blocks of a text by the lines they begin with, found once. */
static bool find_blocks(struct tui_c_made *m)
{
	struct blocks b = {.m = m};
	if (m->blocks)
		return true;
	for (uint32_t i = 0; i < m->c.line_cnt && !b.failed; i++)
		add_line(&b, i);
	while (b.open.cnt && !b.failed)
		end(&b, m->c.line_cnt - 1);
	m->blocks = b.failed ? NULL : ARENA_ARRAY(&m->arena, struct tui_c_block, b.all.cnt + 1);
	for (size_t i = 0; m->blocks && i < b.all.cnt; i++) {
		if (b.all.data[i].last > b.all.data[i].head && !b.all.data[i].is_part)
			m->blocks[m->block_cnt++] = b.all.data[i];
	}
	VEC_FREE(&b.all);
	VEC_FREE(&b.open);
	return m->blocks;
}

/* --- what is folded ------------------------------------------------------------------------------------------------------ */

static int cmp_key(const void *x, const void *y)
{
	const struct tui_c_fold *a = x, *b = y;
	if (a->func != b->func)
		return a->func < b->func ? -1 : 1;
	if (a->va != b->va)
		return a->va < b->va ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return (int)a->is_label - (int)b->is_label;
}

static struct tui_c_fold *find_fold(const struct tui_c *c, const struct tui_c_block *b)
{
	return c->folds.cnt ? bsearch(&b->key, c->folds.data, c->folds.cnt, sizeof(*c->folds.data), cmp_key) : NULL;
}

static bool add_fold(struct tui_c *c, const struct tui_c_block *b)
{
	if (find_fold(c, b))
		return true;
	if (!VEC_PUSH(&c->folds, b->key))
		return false;
	qsort(c->folds.data, c->folds.cnt, sizeof(*c->folds.data), cmp_key);
	return true;
}

static void drop_fold(struct tui_c *c, struct tui_c_fold *f)
{
	size_t behind = c->folds.cnt - (size_t)(f + 1 - c->folds.data);
	memmove(f, f + 1, behind * sizeof(*f));
	c->folds.cnt--;
}

static bool is_any_folded(const struct tui_c *c, uint64_t func)
{
	for (size_t i = 0; i < c->folds.cnt; i++) {
		if (c->folds.data[i].func == func)
			return true;
	}
	return false;
}

void tui_c_rows_make(struct tui *t, struct tui_c_made *m)
{
	struct tui_c *c = &t->c;
	if (c->rows_of == m)
		return;
	c->rows_of = m;
	c->has_folds = is_any_folded(c, m->func) && find_blocks(m);
	c->rows.cnt = 0;
	for (uint32_t i = 0, at = 0; c->has_folds && i < m->c.line_cnt;) {
		c->has_folds = VEC_PUSH(&c->rows, i);
		while (at < m->block_cnt && m->blocks[at].head < i)
			at++;
		/* Of two that begin in one line the first is the larger one. */
		uint32_t last = i;
		for (; at < m->block_cnt && m->blocks[at].head == i; at++)
			last = find_fold(c, &m->blocks[at]) ? MAX(last, m->blocks[at].last) : last;
		i = last + 1;
	}
}

uint32_t tui_c_row_cnt(const struct tui *t)
{
	return t->c.has_folds ? (uint32_t)t->c.rows.cnt : t->c.shown ? t->c.shown->c.line_cnt : 0;
}

uint32_t tui_c_row_line(const struct tui *t, uint32_t row)
{
	uint32_t cnt = tui_c_row_cnt(t);
	row = MIN(row, cnt ? cnt - 1 : 0);
	return t->c.has_folds ? t->c.rows.data[row] : row;
}

uint32_t tui_c_row_of(const struct tui *t, uint32_t line)
{
	uint32_t lo = 0, hi = (uint32_t)t->c.rows.cnt;
	if (!t->c.has_folds)
		return line;
	/* The last row that is not behind the line. */
	while (lo + 1 < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (t->c.rows.data[mid] <= line)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

uint32_t tui_c_hidden(const struct tui *t, uint32_t line)
{
	const struct tui_c *c = &t->c;
	uint32_t row = tui_c_row_of(t, line), cnt = tui_c_row_cnt(t);
	if (!c->has_folds || c->rows.data[row] != line)
		return 0;
	return (row + 1 < cnt ? c->rows.data[row + 1] : c->shown->c.line_cnt) - line - 1;
}

/* The innermost block a line is in; the function's body only where it begins and ends. */
static const struct tui_c_block *block_at(const struct tui_c_made *m, uint32_t line)
{
	for (uint32_t i = m->block_cnt; i-- > 0;) {
		const struct tui_c_block *b = &m->blocks[i];
		bool is_body = !b->key.depth && !b->key.is_label;
		if (b->head <= line && b->last >= line && (!is_body || b->head == line || b->last == line))
			return b;
	}
	return NULL;
}

bool tui_c_fold_toggle(struct tui *t, struct tui_c_made *m, uint32_t *line)
{
	struct tui_c *c = &t->c;
	const struct tui_c_block *b = find_blocks(m) ? block_at(m, *line) : NULL;
	if (!b)
		return false;
	struct tui_c_fold *f = find_fold(c, b);
	if (f)
		drop_fold(c, f);
	else if (!add_fold(c, b))
		return false;
	*line = b->head;
	c->rows_of = NULL;
	tui_c_rows_make(t, m);
	return true;
}

bool tui_c_fold_all(struct tui *t, struct tui_c_made *m)
{
	struct tui_c *c = &t->c;
	bool is_unfolding = is_any_folded(c, m->func);
	size_t kept = 0;
	for (size_t i = 0; i < c->folds.cnt; i++) {
		if (c->folds.data[i].func != m->func)
			c->folds.data[kept++] = c->folds.data[i];
	}
	c->folds.cnt = kept;
	bool is_found = is_unfolding || find_blocks(m);
	for (uint32_t i = 0; !is_unfolding && is_found && i < m->block_cnt; i++) {
		/* The outermost of the body: what is in them comes with them. */
		if (m->blocks[i].key.depth <= 1 && (m->blocks[i].key.depth || m->blocks[i].key.is_label))
			is_found = VEC_PUSH(&c->folds, m->blocks[i].key);
	}
	if (c->folds.cnt)
		qsort(c->folds.data, c->folds.cnt, sizeof(*c->folds.data), cmp_key);
	c->rows_of = NULL;
	tui_c_rows_make(t, m);
	return is_unfolding || c->has_folds;
}

void tui_c_unfold_at(struct tui *t, struct tui_c_made *m, uint32_t line)
{
	struct tui_c *c = &t->c;
	if (!c->has_folds || c->rows.data[tui_c_row_of(t, line)] == line)
		return;
	for (uint32_t i = 0; i < m->block_cnt && m->blocks[i].head < line; i++) {
		struct tui_c_fold *f = m->blocks[i].last >= line ? find_fold(c, &m->blocks[i]) : NULL;
		if (f)
			drop_fold(c, f);
	}
	c->rows_of = NULL;
	tui_c_rows_make(t, m);
}
