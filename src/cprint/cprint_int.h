/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPRINT_CPRINT_INT_H
#define CPRINT_CPRINT_INT_H

#include "cprint/cprint.h"

/*
 * What stands around an expression, so what it may look like. An expression's C type is the unsigned type of its width from
 * 32 bits on; below, where C computes in int anyway, it is that or an int of the same value.
 */
enum cprint_how {
	CPRINT_TIGHT, /* an operator that binds tighter than those of expressions: its type counts, and parentheses */
	CPRINT_TYPED, /* the same, and beside it is something of that type: a number need not say its own */
	CPRINT_LOOSE, /* its value is converted to its width, or a wider one: an argument, an assignment, a condition */
};

struct cprint_printer;

/* An operation to be written: the operands of `rec` in `p`, or, when that is null, those of one lane of a vector: x y z. */
struct cprint_form {
	struct cprint_printer *p;
	const struct ir_rec *rec;
	enum ir_width x; /* of the operands the signature calls x */
};

/* Writes the operation; false: it has no form in C. */
bool cprint_form(const struct cprint_form *f, enum cprint_how how, struct buf *text);
/* Whether it needs parentheses under CPRINT_TIGHT and CPRINT_TYPED; then cprint_form() does not write them. */
bool cprint_is_loose(const struct ir_rec *rec);

/* --- of the printer, for the forms -------------------------------------------------------------------------- */
bool cprint_operand(struct cprint_printer *p, ir_ref r, enum cprint_how how, struct buf *text);
/* The record that is written where `r` is used, null when `r` is a number or has a variable. */
const struct ir_rec *cprint_inline(const struct cprint_printer *p, ir_ref r);
const struct ir_func *cprint_ir(const struct cprint_printer *p);
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
/* A constant; false: wider than C has integers. */
bool cprint_const(const struct ir_func *f, ir_ref r, enum cprint_how how, struct buf *text);

#endif
