/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPRINT_CPRINT_INT_H
#define CPRINT_CPRINT_INT_H

#include "cprint/cprint.h"
#include "structure/structure.h"

#define CPRINT_NONE UINT32_MAX

/* What the printer knows of a record. */
struct cprint_value {
	uint32_t place;  /* order index of the statement that shows it: the last one, if several do */
	uint32_t temp;   /* number of its variable, from 1; 0: has none */
	uint16_t use_cnt;
	uint8_t cost;    /* operations of the expression it is, when is_inline */
	bool is_inline;  /* part of the statement at `place`; else it has a variable or none uses it */
};

/* Data of the image that is read or written by its name, which is a macro. */
struct cprint_global {
	uint64_t va;
	const char *name; /* null: has none */
	uint8_t width;    /* enum ir_width */
};

/* A block of the structure: statements of a block, and its end unless the structure says another. */
struct cprint_part {
	uint32_t block;
	uint32_t first, last; /* places in the order */
};

struct cprint_printer {
	const struct ir_func *f;
	const struct cprint_opts *opts;
	struct buf *text;
	struct cprint_map *map;
	const char *suffix;  /* of the header's functions that are a machine's own; "" for x86-64 */
	uint32_t line;       /* being written, from 1 */
	size_t line_counted; /* bytes of `text` whose line breaks are in `line` */
	unsigned indent;
	bool in_expr;        /* statements are written as operands of commas */
	struct cprint_value *values; /* per record */
	uint64_t *unset;     /* bits by location: variables that may be read before they are set */
	uint32_t *next_put;  /* per location: the nearest change behind where place_block() is; what lies before is of a block before */
	uint8_t *name_len;   /* per location: bytes of its name; 0: the function does not use it */
	uint32_t *temps;     /* records that have a variable, by its number less one */
	const char **temp_names; /* of those, null: by its number */
	uint32_t temp_cnt;
	struct cprint_global *globals; /* by address and width */
	uint32_t global_cnt;
	uint32_t *calls;     /* per record: of a marked GET the call it is the result of; of a marked CALL its result; CPRINT_NONE */
	uint32_t *pos;       /* per record that is a marked CALL: its place in `order` */
	struct str_block *blocks; /* per part: the graph its structure is made of */
	struct cprint_part *parts; /* those of the function's blocks, then what was taken out of some */
	uint32_t part_cnt;
	uint32_t for_first; /* part the head of the next `for` begins with, or STR_NONE */
	struct str_case *cases;
	uint32_t case_cnt;
	bool *is_named;      /* per part: has its label */
	uint32_t *origin_lines; /* per machine instruction: the first line it is in; 0: in none */
	struct str_tree tree;
	const char *why;     /* there is no form: what of */
	bool has_failed;
};

/* What stands around an expression, so what it may look like. */
enum cprint_how {
	CPRINT_TIGHT, /* an operator that binds as tightly as a cast: the number itself */
	CPRINT_LOOSE, /* its value is converted to its width: an assignment */
};

/* An operation to be written: the operands of `rec` in `p`, or, when that is null, those of one lane of a vector: x y z. */
struct cprint_form {
	struct cprint_printer *p;
	const struct ir_rec *rec;
	enum ir_width x; /* of the operands the signature calls x */
};

/* The value itself, read without a sign: of an operation, of its operand i, of a helper in the form of ops.def. False: no form in C. */
bool cprint_form(const struct cprint_form *f, struct buf *text);
bool cprint_arg(const struct cprint_form *f, unsigned i, struct buf *text);
bool cprint_helper(const struct cprint_form *f, const char *form, struct buf *text);

/* Of a comparison of the printer's whose result compilers see: "0", "1"; null for others. */
const char *cprint_known_compare(const struct cprint_form *f);

/* --- lanes (cprint_vec.c) ------------------------------------------------------------------------------------ */
bool cprint_vector(const struct cprint_form *f, struct buf *text);
/* VCVT: the second operand is the width of the result's lanes. */
bool cprint_lanes(const struct cprint_form *f, struct buf *text);

/* --- statements (cprint_stmt.c) ------------------------------------------------------------------------------ */
/* What a part does, without its end; with p->in_expr as operands of commas, each with its comma. */
bool cprint_block(struct cprint_printer *p, uint32_t part);
/* An end that does not come back into the function. */
bool cprint_leave(struct cprint_printer *p, uint32_t block);
/* Whether record r, where it has a statement, is one expression of C. */
bool cprint_is_expr(const struct cprint_printer *p, const struct ir_rec *rec);
/* Whether a record has no statement: one that none uses and that does nothing, or puts back what was read. */
bool cprint_is_idle(const struct cprint_printer *p, uint32_t r);
/* The beginning of a line. */
void cprint_indent(struct cprint_printer *p);
uint32_t cprint_line_now(struct cprint_printer *p);
/* What is written now comes from an instruction. */
void cprint_map_here(struct cprint_printer *p, uint32_t origin);
/* Puts the map into order, with what left nothing in the text. */
void cprint_map_finish(struct cprint_printer *p);
bool cprint_refuse(struct cprint_printer *p, const struct ir_rec *rec);
void cprint_loc(const struct cprint_printer *p, unsigned loc, struct buf *text);
/* The expression of a record, without parentheses. */
bool cprint_record(struct cprint_printer *p, const struct ir_rec *rec, enum cprint_how how, struct buf *text);
/* Whether a location lies in the state, where calls and unlifted instructions have it. */
bool cprint_is_in_state(const struct cprint_printer *p, unsigned loc);
bool cprint_is_pure(const struct ir_func *f, const struct ir_rec *rec);
/* Whether a record hands over what C does: no statement of its own. */
bool cprint_is_handed(const struct ir_rec *rec);
/* Whether a DIV is by a constant that it cannot trap with. */
bool cprint_is_safe_division(const struct ir_func *f, const struct ir_rec *rec);
/* The number of a variable of its own. */
void cprint_temp(const struct cprint_printer *p, uint32_t r, struct buf *text);

/* --- variables (cprint_decl.c) -------------------------------------------------------------------------------- */
/* Whether the variable of a location, or of a value of its own, has a type with a sign. */
bool cprint_is_signed_loc(const struct cprint_printer *p, unsigned loc);
bool cprint_is_signed_value(const struct cprint_printer *p, ir_ref r);
/* The names of data, before the function. False: no memory. */
bool cprint_define_globals(struct cprint_printer *p, struct arena *a);
/* The name of what lies at an address that is written where it is used; null: has none. */
const char *cprint_global(const struct cprint_printer *p, ir_ref addr, enum ir_width w);
/* Which variables of locations need a value from the beginning. False: no memory. */
bool cprint_find_unset(struct cprint_printer *p, struct arena *a);
/* Names for variables of values. False: no memory. */
bool cprint_name_temps(struct cprint_printer *p, struct arena *a);
/* "uint64_t f_1000(uint64_t a0)", its parameters called as the variables they are. */
void cprint_head(const struct cprint_printer *p, struct buf *text);
/* The variables of locations, of values. */
void cprint_declare_locs(struct cprint_printer *p);
void cprint_declare_temps(struct cprint_printer *p);

/* What is at an address, as a comment. */
void cprint_comment(struct cprint_printer *p, ir_ref target);

/* --- signatures (cprint_sig.c) --------------------------------------------------------------------------------- */
/* A call with a signature, as an expression. */
bool cprint_typed_call(struct cprint_printer *p, uint32_t r, struct buf *text);
/* What a function with a signature ends in, for RET and IJMP. */
bool cprint_typed_leave(struct cprint_printer *p, uint32_t block, const struct ir_rec *end);

/* --- parts (cprint_parts.c) ------------------------------------------------------------------------------------ */
/* What several blocks decide becomes one part, and so does what a loop does between rounds. Room for as many more parts as there are blocks,
 * twice, is there. False: no memory. */
bool cprint_split(struct cprint_printer *p, struct arena *a);
/* Of a part before a loop with a step: the place of its last statement, when that sets what the step moves; else UINT32_MAX. */
uint32_t cprint_first_set(const struct cprint_printer *p, uint32_t part, uint32_t step);

/* --- the tree (cprint_tree.c) --------------------------------------------------------------------------------- */
/* The body of the function. */
bool cprint_body(struct cprint_printer *p);

/* --- of the printer, for the forms -------------------------------------------------------------------------- */
/* "LOCATION = VALUE" */
bool cprint_set(struct cprint_printer *p, unsigned loc, ir_ref r, struct buf *text);
bool cprint_operand(struct cprint_printer *p, ir_ref r, enum cprint_how how, struct buf *text);
/* The record that is written where `r` is used, null when `r` is a number or has a variable. */
const struct ir_rec *cprint_inline(const struct cprint_printer *p, ir_ref r);
const struct ir_func *cprint_ir(const struct cprint_printer *p);
/* Whether a condition, or its opposite, is an operator that binds less tightly than && does, or that people would not write beside it
 * without parentheses. */
bool cprint_is_open_condition(const struct cprint_printer *p, ir_ref r);
/* A condition, or its opposite. */
bool cprint_condition(struct cprint_printer *p, ir_ref r, bool is_negated, struct buf *text);

/* --- pieces ------------------------------------------------------------------------------------------------- */
/* "0x", the number, `suffix`: many times a line, so without printf's reading of a format. */
static inline void cprint_hex(struct buf *text, uint64_t v, const char *suffix)
{
	buf_add(text, "0x", 2);
	buf_add_hex(text, v, 1);
	buf_add_str(text, suffix);
}

/* The name of the type of a width: "uint32_t". */
void cprint_type(enum ir_width w, struct buf *text);
/* A constant of more than 64 bits. */
bool cprint_const(const struct ir_func *f, ir_ref r, struct buf *text);

#endif
