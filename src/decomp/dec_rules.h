/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECOMP_DEC_RULES_H
#define DECOMP_DEC_RULES_H

#include "decomp/dec_int.h"

/* A rule being tried on a record. */
struct dec_match {
	struct dec_build *b;
	const struct ir_rec *rec;
	enum ir_width width;      /* of the record's result */
	uint32_t has_number;      /* bits by letter */
	ir_ref value[26];         /* by letter; IR_REF_NONE: not bound */
	uint64_t number[26];
	uint8_t number_width[26]; /* enum ir_width; IR_W0: it is an `aux` */
};

/* For the test of each rule, beside dec_rule_cnt(), which is 0 when a row cannot be read: its texts, and it alone. */
const char *dec_rule_text(unsigned rule, const char **ret_pattern, const char **ret_result);
ir_ref dec_rule_try(struct dec_build *b, unsigned rule, const struct ir_rec *rec);

/* What the letters of a pattern are to be when it is built: numbers by letter, widths where the pattern leaves them free. */
struct dec_rule_sample {
	uint64_t number[26];
	enum ir_width choice[4];
	unsigned choice_cnt;  /* that were asked for; more than four: the pattern cannot be built */
	uint32_t numbers;     /* letters that were asked for, as bits */
	ir_ref value[26];     /* IR_REF_NONE at first; then what the function below gave */
	ir_ref (*make)(void *ctx, unsigned letter, enum ir_width w);
	void *ctx;
};

/* A rule's pattern as records, unfolded, all but the outermost, which goes to `ret`. Widths may not fit: ir_check() knows. */
bool dec_rule_root(struct dec_build *b, unsigned rule, struct dec_rule_sample *s, struct ir_rec *ret);

#endif
