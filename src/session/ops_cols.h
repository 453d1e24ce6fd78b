/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_COLS_H
#define SESSION_OPS_COLS_H

#include "base/buf.h"
#include "base/json.h"

/*
 * A list as columns: for a front end that works with arrays (src/python). A handler says each fact by key as ever, and
 * each key becomes a column, numbers as 64-bit words, text as one blob and where each row's part ends. Nothing is
 * formatted. What a row does not say, or says null, is marked beside the values.
 */
enum ops_col_kind { OPS_COL_NONE /* no row had a value */, OPS_COL_U64, OPS_COL_ADDR, OPS_COL_BOOL /* a byte a row */,
		    OPS_COL_TEXT, OPS_COL_WORDS /* as text, a NUL behind each word */, OPS_COL_RAW /* as text: JSON */ };
enum ops_cell { OPS_CELL_VALUE, OPS_CELL_NULL, OPS_CELL_ABSENT };

struct ops_col {
	const char *key;       /* borrowed: a literal, or what the caller keeps */
	enum ops_col_kind kind;
	uint64_t cnt;          /* rows so far */
	struct buf values;     /* uint64_t or uint8_t each, or text */
	struct buf ends;       /* of text: uint64_t each, where the row's part of `values` ends */
	struct buf cells;      /* uint8_t each, enum ops_cell; empty while every row has a value */
};

#define OPS_COLS_MAX 32

struct ops_cols {
	struct ops_col cols[OPS_COLS_MAX];
	unsigned cnt, hint;    /* hint: the column that the next key probably is */
	uint64_t row_cnt;
	bool failed;           /* out of memory, too many columns, or a column with values of two kinds */
};

/* Whether the list that an operation answers can be had as columns (others write nested JSON). */
bool ops_cols_takes(const char *op_name);

void ops_cols_fini(struct ops_cols *c);
void ops_cols_u64(struct ops_cols *c, const char *key, enum ops_col_kind kind, uint64_t v);
void ops_cols_text(struct ops_cols *c, const char *key, enum ops_col_kind kind, const char *s, size_t len);
void ops_cols_words(struct ops_cols *c, const char *key, const char *const *words, size_t cnt);
void ops_cols_null(struct ops_cols *c, const char *key);
void ops_cols_end_row(struct ops_cols *c);

enum ops_cell ops_col_cell(const struct ops_col *col, uint64_t row);
uint64_t ops_col_num(const struct ops_col *col, uint64_t row);          /* of U64, ADDR, BOOL */
const char *ops_col_str(const struct ops_col *col, uint64_t row, size_t *ret_len); /* of the others */
/* The row as the JSON object that --json prints. */
void ops_cols_row_json(const struct ops_cols *c, uint64_t row, struct json *j);

#endif
