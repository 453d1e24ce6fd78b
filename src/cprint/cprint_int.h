/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPRINT_CPRINT_INT_H
#define CPRINT_CPRINT_INT_H

#include "cprint/cprint.h"

/* "0x", the number, `suffix`: many times a line, so without printf's reading of a format. */
static inline void cprint_hex(struct buf *text, uint64_t v, const char *suffix)
{
	buf_add(text, "0x", 2);
	buf_add_hex(text, v, 1);
	buf_add_str(text, suffix);
}

/* The name of the type of a width: "uint32_t". */
void cprint_type(enum ir_width w, struct buf *text);
/* A constant as an expression of its width; false: wider than C has integers. */
bool cprint_const(const struct ir_func *f, ir_ref r, struct buf *text);

#endif
