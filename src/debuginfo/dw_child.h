/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_DW_CHILD_H
#define DEBUGINFO_DW_CHILD_H

#include "debuginfo/dbg.h"

/*
 * Private to this folder: the side of dbg_read_dwarf() that runs in the locked child, and what it says to
 * the parent. Records follow each other, each begun by its kind; numbers are ULEB128, strings are a
 * length and bytes.
 */
enum dw_record {
	DW_REC_FILE = 1, /* string: path; files are numbered from 0 in the order of these records */
	DW_REC_FUNC,     /* start, length, flags, line, file + 1 or 0, string name, string prototype or empty */
	DW_REC_LINES,    /* count, start; then count rows: distance from the row before, file + 1 or 0, line */
	DW_REC_NOTE,     /* string: what could not be read, once for each kind */
	DW_REC_END,      /* everything was read */
	DW_REC_TYPE,     /* id, kind, encoding, flags, length, alignment, target, string name, count; then count subs: string name,
			    type, bit length, zigzag value. An id is an entry's offset + 1, so is each type; 0 is void. Of an array
			    each sub is a dimension, outermost first: its value the count, -1 unknown */
	DW_REC_VAR,      /* address, type */
};

enum dw_func_flag { DW_FUNC_NORETURN = 1, DW_FUNC_EXTERNAL = 2 };

/* Longest name or path sent; longer ones are left out and counted in a note. */
#define DW_STRING_MAX 16384

struct dw_job {
	const struct fmt_bin *b;
	bool want_lines, want_types;
	size_t max_out_len; /* the child stops by itself, with a note, before this */
};

/* For child_run(): `ctx` is a struct dw_job. */
_must_use_ struct err *dbg_dw_prepare(void *ctx);
int dbg_dw_run(void *ctx, int out_fd);

/* How the child went, for dbg_dw_take(). */
struct dw_answer {
	const void *bytes;
	size_t len;
	const struct err *why; /* its failure, or null */
};

/* The parent's half: takes the child's answer, believing nothing of it. `ret_lines` is null when lines are not
 * wanted. Error only for no memory. */
_must_use_ struct err *dbg_dw_take(const struct fmt_bin *b, const struct dw_answer *answer, struct dbg_funcs *ret,
				   struct dbg_lines *ret_lines, struct findings *f);

/* What is left of a record of a type after its kind; dwarf_types.c. */
struct dw_taken;
struct cur;
struct dw_taken *dbg_dw_taken_new(void);
/* Takes one record; false when out of memory. */
bool dbg_dw_take_type(struct dw_taken *k, struct cur *c);
bool dbg_dw_take_var(struct dw_taken *k, struct cur *c);
/* Makes the list from what was taken; false when out of memory. */
bool dbg_dw_types_finish(struct dw_taken *k, const struct fmt_bin *b, struct dbg_types *ret);
void dbg_dw_taken_free(struct dw_taken *k);

#endif
