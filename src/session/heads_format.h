/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_HEADS_FORMAT_H
#define SESSION_HEADS_FORMAT_H

#include "session/heads_put.h"
#include "session/ses_int.h"

/* Private to the listing: how numbers are written, and the formats that people chose for operands and data. */
enum heads_num { NUM_DEFAULT, NUM_HEX, NUM_DEC, NUM_OCT, NUM_BIN, NUM_CHAR, NUM_OFFSET, NUM_STACK, NUM_ENUM, NUM_COUNT };

struct heads_num_ask {
	enum heads_num num;
	const char *enum_name; /* NUM_ENUM: NUL-terminated */
	uint32_t len;          /* bytes of the value; 0: as many as it needs */
	bool is_signed;        /* NUM_DEC: the top bit is a sign */
};

/* "hex", "dec", ... "enum:NAME"; false for anything else ("default" too). */
bool heads_num_parse(const char *s, struct heads_num_ask *ret);
/* The format stated for operand `operand` of what stands at va; NUM_DEFAULT when none is. */
void heads_num_at(const struct ses_snap *sn, uint64_t va, unsigned operand, struct heads_num_ask *ret);
/* Writes the value; the kind of span it makes. What cannot be written so (an address that is not mapped, a value that is no
 * constant of the enum) is written in hex. */
uint8_t heads_num_put(struct ses_snap *sn, struct put *p, uint64_t v, const struct heads_num_ask *ask);
/* The number that operand `operand` at va is about; false when there is none. */
bool heads_operand_value(struct ses_snap *sn, uint64_t va, unsigned operand, uint64_t *ret);

#endif
