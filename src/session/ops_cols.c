/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ops_cols.h"

#include <string.h>

bool ops_cols_takes(const char *op_name)
{
	static const char *const names[] = {"functions", "heads", "disasm", "strings", "imports", "exports", "symbols", "xrefs", "segments",
					    "sections", "search", "problems", "bookmarks", "callgraph", "resolve"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(names[i], op_name))
			return true;
	}
	return false;
}

void ops_cols_fini(struct ops_cols *c)
{
	for (unsigned i = 0; i < c->cnt; i++) {
		buf_fini(&c->cols[i].values);
		buf_fini(&c->cols[i].ends);
		buf_fini(&c->cols[i].cells);
	}
	c->cnt = 0;
}

static bool is_text(enum ops_col_kind kind)
{
	return kind >= OPS_COL_TEXT;
}

/* A row without a value: a zero, or no text, and a mark. */
static void put_blank(struct ops_col *col, enum ops_cell why)
{
	static const uint64_t zero;
	/* The rows before it all had values. */
	if (!col->cells.len && col->cnt) {
		char *p = buf_room(&col->cells, col->cnt);
		if (p) {
			memset(p, OPS_CELL_VALUE, col->cnt);
			col->cells.len += col->cnt;
		}
	}
	buf_add_ch(&col->cells, (char)why);
	if (is_text(col->kind)) {
		uint64_t end = col->values.len;
		buf_add(&col->ends, &end, sizeof(end));
	} else if (col->kind != OPS_COL_NONE) {
		buf_add(&col->values, &zero, col->kind == OPS_COL_BOOL ? 1 : sizeof(zero));
	}
	col->cnt++;
}

static struct ops_col *find_col(struct ops_cols *c, const char *key)
{
	unsigned i = c->hint;
	if (i >= c->cnt || c->cols[i].key != key) {
		for (i = 0; i < c->cnt && c->cols[i].key != key && strcmp(c->cols[i].key, key); i++)
			;
	}
	if (i == OPS_COLS_MAX) {
		c->failed = true;
		return NULL;
	}
	if (i == c->cnt) {
		c->cols[c->cnt++] = (struct ops_col){.key = key};
		for (uint64_t row = 0; row < c->row_cnt; row++)
			put_blank(&c->cols[i], OPS_CELL_ABSENT);
	}
	c->hint = i + 1;
	return &c->cols[i];
}

/* The column, ready for a value of that kind in the row being written; null when it cannot take one. */
static struct ops_col *begin_cell(struct ops_cols *c, const char *key, enum ops_col_kind kind)
{
	struct ops_col *col = find_col(c, key);
	if (!col)
		return NULL;
	if (col->kind == OPS_COL_NONE) {
		uint64_t blanks = col->cnt;
		col->kind = kind;
		size_t len = (size_t)blanks * (is_text(kind) || kind != OPS_COL_BOOL ? sizeof(uint64_t) : 1);
		struct buf *b = is_text(kind) ? &col->ends : &col->values;
		char *p = blanks ? buf_room(b, len) : NULL;
		if (p) {
			memset(p, 0, len);
			b->len += len;
		}
	}
	if (col->kind != kind || col->cnt != c->row_cnt) {
		c->failed = true;
		return NULL;
	}
	if (col->cells.len)
		buf_add_ch(&col->cells, OPS_CELL_VALUE);
	col->cnt++;
	return col;
}

void ops_cols_u64(struct ops_cols *c, const char *key, enum ops_col_kind kind, uint64_t v)
{
	struct ops_col *col = begin_cell(c, key, kind);
	if (col && kind == OPS_COL_BOOL)
		buf_add_ch(&col->values, v ? 1 : 0);
	else if (col)
		buf_add(&col->values, &v, sizeof(v));
}

static void end_text(struct ops_col *col)
{
	uint64_t end = col->values.len;
	buf_add(&col->ends, &end, sizeof(end));
}

void ops_cols_text(struct ops_cols *c, const char *key, enum ops_col_kind kind, const char *s, size_t len)
{
	struct ops_col *col = begin_cell(c, key, kind);
	if (!col)
		return;
	buf_add(&col->values, s, len);
	end_text(col);
}

void ops_cols_words(struct ops_cols *c, const char *key, const char *const *words, size_t cnt)
{
	struct ops_col *col = begin_cell(c, key, OPS_COL_WORDS);
	if (!col)
		return;
	for (size_t i = 0; i < cnt; i++)
		buf_add(&col->values, words[i], strlen(words[i]) + 1);
	end_text(col);
}

void ops_cols_null(struct ops_cols *c, const char *key)
{
	struct ops_col *col = find_col(c, key);
	if (col && col->cnt == c->row_cnt)
		put_blank(col, OPS_CELL_NULL);
	else
		c->failed = true;
}

void ops_cols_end_row(struct ops_cols *c)
{
	c->row_cnt++;
	c->hint = 0;
	for (unsigned i = 0; i < c->cnt; i++) {
		struct ops_col *col = &c->cols[i];
		if (col->cnt < c->row_cnt)
			put_blank(col, OPS_CELL_ABSENT);
		c->failed |= col->values.failed | col->ends.failed | col->cells.failed;
	}
}

enum ops_cell ops_col_cell(const struct ops_col *col, uint64_t row)
{
	return col->cells.len ? (enum ops_cell)col->cells.data[row] : OPS_CELL_VALUE;
}

uint64_t ops_col_num(const struct ops_col *col, uint64_t row)
{
	uint64_t v;
	if (col->kind == OPS_COL_BOOL)
		return (uint64_t)col->values.data[row];
	memcpy(&v, col->values.data + row * sizeof(v), sizeof(v));
	return v;
}

const char *ops_col_str(const struct ops_col *col, uint64_t row, size_t *ret_len)
{
	uint64_t from = 0, to;
	if (row)
		memcpy(&from, col->ends.data + (row - 1) * sizeof(from), sizeof(from));
	memcpy(&to, col->ends.data + row * sizeof(to), sizeof(to));
	*ret_len = to - from;
	return col->values.data ? col->values.data + from : "";
}

static void put_value(const struct ops_col *col, uint64_t row, struct json *j)
{
	size_t len = 0;
	const char *s = is_text(col->kind) ? ops_col_str(col, row, &len) : "";
	switch (col->kind) {
	case OPS_COL_NONE:
		json_null(j);
		break;
	case OPS_COL_U64:
		json_u64(j, ops_col_num(col, row));
		break;
	case OPS_COL_ADDR:
		json_addr(j, ops_col_num(col, row));
		break;
	case OPS_COL_BOOL:
		json_bool(j, ops_col_num(col, row) != 0);
		break;
	case OPS_COL_TEXT:
		json_strn(j, s, len);
		break;
	case OPS_COL_WORDS:
		json_arr(j);
		for (size_t at = 0; at < len; at += strlen(s + at) + 1)
			json_str(j, s + at);
		json_end_arr(j);
		break;
	case OPS_COL_RAW:
		json_raw(j, s, len);
		break;
	}
}

void ops_cols_row_json(const struct ops_cols *c, uint64_t row, struct json *j)
{
	json_obj(j);
	for (unsigned i = 0; i < c->cnt; i++) {
		enum ops_cell cell = ops_col_cell(&c->cols[i], row);
		if (cell == OPS_CELL_ABSENT)
			continue;
		json_key(j, c->cols[i].key);
		if (cell == OPS_CELL_NULL)
			json_null(j);
		else
			put_value(&c->cols[i], row, j);
	}
	json_end_obj(j);
}
