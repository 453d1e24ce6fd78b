/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECOMP_DEC_VALUES_H
#define DECOMP_DEC_VALUES_H

#include "decomp/dec_int.h"

/* Sets of numbers of at most 64 bits, and which numbers a comparison holds for. */

#define DEC_SPANS_MAX 512 /* of a set, whose room is always that many */
#define DEC_STEPS_MAX 8

/* From lo to hi, both included; those of a set ascend and are apart from each other. */
struct dec_span {
	uint64_t lo, hi;
};

struct dec_values {
	struct dec_span *spans;
	uint32_t cnt;
};

/* One more, above the others. Here and below false: there is no room. */
bool dec_values_add(struct dec_values *s, uint64_t lo, uint64_t hi);
/* What is in both, or, with is_not, in x and not in y. */
bool dec_values_meet(const struct dec_values *x, const struct dec_values *y, bool is_not, struct dec_values *out);
/* How many there are; UINT64_MAX: that, or more. */
uint64_t dec_values_cnt(const struct dec_values *s);

/* A value made of another by these, the last one first. */
struct dec_step {
	uint8_t op;       /* ADD, ZEXT, SEXT */
	uint8_t from, to; /* enum ir_width */
	uint64_t add;
};

struct dec_chain {
	ir_ref root;
	struct dec_step steps[DEC_STEPS_MAX];
	unsigned cnt;
};

/* What a value of at most 64 bits is made of. */
void dec_chain_of(const struct ir_func *f, ir_ref v, struct dec_chain *c);
/* The same of the side of a comparison that is no number; whether that is the second one, and the number. False: `rec` is none. */
bool dec_chain_of_cmp(const struct ir_func *f, const struct ir_rec *rec, struct dec_chain *ret, bool *is_right, uint64_t *c);
/* The values before a step of those behind it. */
bool dec_values_before(const struct dec_step *step, const struct dec_values *s, struct dec_values *out);
/* The numbers of width w for which comparison `rec` with c holds. */
bool dec_values_of_cmp(const struct ir_rec *rec, enum ir_width w, uint64_t c, bool is_right, struct dec_values *out);

#endif
