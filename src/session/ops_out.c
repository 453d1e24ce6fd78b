/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers. JSON goes straight into the buffer, once. A table must know the widest cell of each column first, so
 * its cells are kept as text until the end; only keys that are columns are kept.
 */
#include "session/ops.h"

#include "session/ops_cols.h"

#include <string.h>

#define COLOR_TITLE "\033[1m"
#define COLOR_ADDR "\033[36m"
#define COLOR_END "\033[0m"

void ops_out_init(struct ops_out *o, const struct ops_op *op, struct buf *buf, bool is_json)
{
	*o = (struct ops_out){.op = op, .buf = buf, .is_json = is_json, .json = json_make(buf)};
}

void ops_out_fini(struct ops_out *o)
{
	err_free(o->status);
	buf_fini(&o->cells);
	buf_fini(&o->cell_lens);
	for (size_t i = 0; i < ARRAY_LEN(o->row_texts) && !o->is_json; i++)
		buf_fini(&o->row_texts[i]);
}

void ops_out_list(struct ops_out *o, struct ses_snap *sn)
{
	if (!o->is_json)
		return;
	json_obj(&o->json);
	json_key(&o->json, "rev");
	json_u64(&o->json, sn ? ses_snap_rev(sn) : 0);
	if (sn && ses_snap_is_pending(sn)) {
		json_key(&o->json, "pending");
		json_bool(&o->json, true);
	}
	if (o->etag[0]) {
		json_key(&o->json, "etag");
		o->etag_at = o->buf->len + 1;
		json_str(&o->json, o->etag);
	}
	json_key(&o->json, "items");
	json_arr(&o->json);
}

bool ops_out_item(struct ops_out *o)
{
	if (o->max_bytes && o->item_cnt && o->buf->len >= o->max_bytes)
		return false;
	o->item_cnt++;
	if (o->is_json) {
		json_obj(&o->json);
	} else if (!o->cols) {
		for (size_t i = 0; i < ARRAY_LEN(o->row_texts); i++)
			o->row_texts[i].len = 0;
	}
	return true;
}

/* An object for people: a line a key, the titles aligned. */
static void ops_out_object_table(struct ops_out *o)
{
	size_t cols = ops_column_cnt(o->op);
	size_t width = 0;
	for (size_t i = 0; i < cols; i++)
		width = MAX(width, strlen(o->op->columns[i].title));
	for (size_t i = 0; i < cols; i++) {
		struct buf *t = &o->row_texts[i];
		if (!t->len)
			continue;
		if (o->has_color)
			buf_add_str(o->buf, COLOR_TITLE);
		buf_add_str(o->buf, o->op->columns[i].title);
		if (o->has_color)
			buf_add_str(o->buf, COLOR_END);
		for (size_t k = strlen(o->op->columns[i].title); k < width + 2; k++)
			buf_add_ch(o->buf, ' ');
		buf_add(o->buf, t->data, t->len);
		buf_add_ch(o->buf, '\n');
	}
}

void ops_out_end_item(struct ops_out *o)
{
	if (o->is_json) {
		json_end_obj(&o->json);
		return;
	}
	if (o->cols) {
		ops_cols_end_row(o->cols);
		return;
	}
	if (o->op->shape == OPS_OBJECT) {
		ops_out_object_table(o);
		return;
	}
	size_t cols = ops_column_cnt(o->op);
	for (size_t i = 0; i < cols; i++) {
		uint32_t len = (uint32_t)o->row_texts[i].len;
		buf_add(&o->cells, o->row_texts[i].data, len);
		buf_add(&o->cell_lens, &len, sizeof(len));
	}
}

static void ops_pad(struct buf *b, uint32_t n)
{
	char *p = buf_room(b, n);
	if (p) {
		memset(p, ' ', n);
		b->len += n;
	}
}

static void ops_put_cell(struct ops_out *o, size_t col, const char *s, size_t len, uint32_t width)
{
	const struct ops_column *c = &o->op->columns[col];
	bool is_last = !o->op->columns[col + 1].key;
	uint32_t own = ops_text_width(s, len);
	if (c->align == 'r')
		ops_pad(o->buf, width - own);
	bool paint = o->has_color && len && (!strcmp(c->key, "addr") || !strcmp(c->key, "from") || !strcmp(c->key, "to"));
	if (paint)
		buf_add_str(o->buf, COLOR_ADDR);
	buf_add(o->buf, s, len);
	if (paint)
		buf_add_str(o->buf, COLOR_END);
	if (c->align != 'r' && !is_last)
		ops_pad(o->buf, width - own);
	if (!is_last)
		ops_pad(o->buf, 2);
}

static void ops_trim_line(struct buf *b)
{
	while (b->len && b->data[b->len - 1] == ' ')
		b->len--;
	buf_add_ch(b, '\n');
}

static void ops_out_titles(struct ops_out *o, const uint32_t *widths, size_t cols)
{
	if (o->has_color)
		buf_add_str(o->buf, COLOR_TITLE);
	for (size_t c = 0; c < cols; c++) {
		const struct ops_column *col = &o->op->columns[c];
		uint32_t len = (uint32_t)strlen(col->title);
		if (col->align == 'r')
			ops_pad(o->buf, widths[c] - len);
		buf_add(o->buf, col->title, len);
		if (col->align != 'r' && c + 1 < cols)
			ops_pad(o->buf, widths[c] - len);
		if (c + 1 < cols)
			ops_pad(o->buf, 2);
	}
	if (o->has_color)
		buf_add_str(o->buf, COLOR_END);
	ops_trim_line(o->buf);
}

/* One address or number far wider than the rest must not push every row: a column's width is bounded, and a longer
 * cell shifts its own row only. */
#define OPS_WIDTH_MAX 48

static void ops_out_table(struct ops_out *o)
{
	size_t cols = ops_column_cnt(o->op);
	if (!cols || o->cells.failed || o->cell_lens.failed)
		return;
	uint32_t widths[16] = {0};
	const uint32_t *lens = (const uint32_t *)(const void *)o->cell_lens.data;
	size_t rows = o->cell_lens.len / sizeof(uint32_t) / cols;
	const char *p = o->cells.data;
	for (size_t c = 0; c < cols; c++)
		widths[c] = (uint32_t)strlen(o->op->columns[c].title);
	for (size_t i = 0; i < rows * cols; i++) {
		uint32_t w = ops_text_width(p, lens[i]);
		widths[i % cols] = MAX(widths[i % cols], MIN(w, OPS_WIDTH_MAX));
		p += lens[i];
	}
	ops_out_titles(o, widths, cols);
	p = o->cells.data;
	for (size_t i = 0; i < rows * cols; i++) {
		uint32_t w = ops_text_width(p, lens[i]);
		ops_put_cell(o, i % cols, p, lens[i], MAX(w, widths[i % cols]));
		p += lens[i];
		if (i % cols == cols - 1)
			ops_trim_line(o->buf);
	}
}

void ops_out_end_list(struct ops_out *o, uint64_t total)
{
	o->total = total;
	if (!o->is_json) {
		if (!o->cols)
			ops_out_table(o);
		return;
	}
	json_end_arr(&o->json);
	if (total != UINT64_MAX) {
		json_key(&o->json, "total");
		json_u64(&o->json, total);
	}
	if (o->has_more) {
		json_key(&o->json, "next");
		json_str(&o->json, o->next);
	}
	json_end_obj(&o->json);
}

/* The buffer of the cell with that key in the row being written; null where the table has no such column. */
static struct buf *ops_cell(struct ops_out *o, const char *key)
{
	size_t i = 0;
	for (const struct ops_column *c = o->op->columns; c && c->key; c++, i++) {
		if (!strcmp(c->key, key))
			return i < ARRAY_LEN(o->row_texts) ? &o->row_texts[i] : NULL;
	}
	return NULL;
}

void ops_out_str(struct ops_out *o, const char *key, const char *s, size_t len)
{
	if (o->is_json) {
		json_key(&o->json, key);
		json_strn(&o->json, s, len);
		return;
	}
	if (o->cols) {
		ops_cols_text(o->cols, key, OPS_COL_TEXT, s, len);
		return;
	}
	struct buf *b = ops_cell(o, key);
	if (b)
		ops_escape(b, s, len);
}

void ops_out_cstr(struct ops_out *o, const char *key, const char *s)
{
	ops_out_str(o, key, s, strlen(s));
}

void ops_out_text(struct ops_out *o, const char *key, struct ses_text t)
{
	ops_out_str(o, key, t.s, t.len);
}

void ops_out_u64(struct ops_out *o, const char *key, uint64_t v)
{
	if (o->is_json) {
		json_key(&o->json, key);
		json_u64(&o->json, v);
		return;
	}
	if (o->cols) {
		ops_cols_u64(o->cols, key, OPS_COL_U64, v);
		return;
	}
	struct buf *b = ops_cell(o, key);
	if (b)
		buf_add_dec(b, v);
}

void ops_out_addr(struct ops_out *o, const char *key, uint64_t va)
{
	if (o->is_json) {
		json_key(&o->json, key);
		json_addr(&o->json, va);
		return;
	}
	if (o->cols) {
		ops_cols_u64(o->cols, key, OPS_COL_ADDR, va);
		return;
	}
	struct buf *b = ops_cell(o, key);
	if (b) {
		buf_add(b, "0x", 2);
		buf_add_hex(b, va, 1);
	}
}

void ops_out_bool(struct ops_out *o, const char *key, bool v)
{
	if (o->is_json) {
		json_key(&o->json, key);
		json_bool(&o->json, v);
		return;
	}
	if (o->cols) {
		ops_cols_u64(o->cols, key, OPS_COL_BOOL, v);
		return;
	}
	struct buf *b = ops_cell(o, key);
	if (b)
		buf_add_str(b, v ? "yes" : "no");
}

void ops_out_null(struct ops_out *o, const char *key)
{
	if (o->is_json) {
		json_key(&o->json, key);
		json_null(&o->json);
		return;
	}
	if (o->cols) {
		ops_cols_null(o->cols, key);
		return;
	}
	struct buf *b = ops_cell(o, key);
	if (b)
		buf_add_ch(b, '-');
}

void ops_out_words(struct ops_out *o, const char *key, const char *const *words, size_t cnt)
{
	if (o->is_json) {
		json_key(&o->json, key);
		json_arr(&o->json);
		for (size_t i = 0; i < cnt; i++)
			json_str(&o->json, words[i]);
		json_end_arr(&o->json);
		return;
	}
	if (o->cols) {
		ops_cols_words(o->cols, key, words, cnt);
		return;
	}
	struct buf *b = ops_cell(o, key);
	for (size_t i = 0; b && i < cnt; i++) {
		if (i)
			buf_add_ch(b, ' ');
		ops_escape(b, words[i], strlen(words[i]));
	}
}
