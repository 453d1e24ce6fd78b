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

/* For the test of each rule: their number (0 when a row cannot be read), their texts, and one of them alone. */
unsigned dec_rule_cnt(void);
const char *dec_rule_text(unsigned rule, const char **ret_pattern, const char **ret_result);
ir_ref dec_rule_try(struct dec_build *b, unsigned rule, const struct ir_rec *rec);

#endif
