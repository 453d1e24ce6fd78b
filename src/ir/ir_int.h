/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IR_IR_INT_H
#define IR_IR_INT_H

#include "ir/ir.h"
#include "ir/ir_interp.h"

/* What the signature of ops.def says about the operands of a record: letters, '\0' where there is none. */
struct ir_shape {
	char result;
	char operand[3];
	bool has_list;
	unsigned cnt; /* operands without the list */
};

struct ir_shape ir_shape(enum ir_op op);

/* What `aux` holds. */
enum ir_aux { IR_AUX_NONE, IR_AUX_NUMBER, IR_AUX_LOC, IR_AUX_LANE, IR_AUX_BLOCK };

enum ir_aux ir_aux(enum ir_op op);

/* Operands an operation takes, for those a VMAP can name; 0 for all others. */
unsigned ir_lane_arity(enum ir_op op);

/* Widths of floats. */
static inline bool ir_is_float(enum ir_width w)
{
	return w == IR_W32 || w == IR_W64 || w == IR_W80;
}

/* Values. */
static inline void ir_val_cut(struct ir_val *v, unsigned bits)
{
	for (unsigned i = 0; i < 8; i++) {
		if (bits >= 64 * (i + 1))
			continue;
		v->w[i] = bits <= 64 * i ? 0 : v->w[i] & (((uint64_t)1 << (bits - 64 * i)) - 1);
	}
}

/* Bits [off, off + bits) of a value, bits at most 64. */
uint64_t ir_val_bits(const struct ir_val *v, unsigned off, unsigned bits);
void ir_val_set_bits(struct ir_val *v, unsigned off, unsigned bits, uint64_t bits_value);

/* The parts of ir_eval(): floats (FBIN FUN FMA FCMP FCVT FTOI ITOF) and vectors. */
void ir_eval_float(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret);
void ir_eval_vec(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret);

#endif
