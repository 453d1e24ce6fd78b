/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIFT_LIFT_VEC_INT_H
#define LIFT_LIFT_VEC_INT_H

#include "lift/lift_int.h"

/*
 * Vector registers. Nearly all 256-bit instructions do the same to both halves, so a value is up to two of 128 bits, and one
 * function lifts all three forms: SSE (the first operand is a source too), VEX with 128 bits (the rest of the register is cleared)
 * and VEX with 256. What is encoded with EVEX is left to the generic path.
 */
struct lift_vec {
	ir_ref half[2];
	unsigned cnt; /* halves: 1 or 2 */
};

static inline bool lift_is_vex(const struct lift_x86 *x)
{
	return x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
}

/* Whether operands [0, cnt) are vector registers of ours, memory or immediates, and none is encoded with EVEX. */
bool lift_vec_plain(struct lift_x86 *x, unsigned cnt);
/* Number of the operand that is the first source: 0 for SSE and for VEX with two operands, else 1. */
unsigned lift_vec_first(const struct lift_x86 *x);
/* Operand i whole: 128 bits, or 256 when the operand is. */
struct lift_vec lift_vec_read(struct lift_x86 *x, unsigned i);
/* The low `w` bits of a register, or memory of that width. */
ir_ref lift_vec_low(struct lift_x86 *x, unsigned i, enum ir_width w);
/* To a register (clears what VEX clears) or memory. */
void lift_vec_write(struct lift_x86 *x, unsigned i, struct lift_vec v);
/* The low `w` bits of register i become `v`, the others those of operand `from`. */
void lift_vec_merge(struct lift_x86 *x, unsigned i, unsigned from, ir_ref v);
/* Only `v`, zero-extended. */
void lift_vec_zext(struct lift_x86 *x, unsigned i, ir_ref v);
/* Bytes of a (0 .. 15) and b (16 .. 31) by index; 255 gives 0. */
ir_ref lift_perm(struct lift_x86 *x, ir_ref a, ir_ref b, const uint8_t index[16]);
ir_ref lift_vmap(struct lift_x86 *x, uint32_t lane, ir_ref a, ir_ref b);

#endif
