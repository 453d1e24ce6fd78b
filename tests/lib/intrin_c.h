/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_INTRIN_C_H
#define TESTS_INTRIN_C_H

#include "base/buf.h"
#include "ir/ir_interp.h"

/*
 * Unlifted instructions as printed C runs them: each one's function is printed, compiled with the system's gcc, and run with a
 * state of the machine in which only what the INTRIN says it reads is right.
 */
struct intrin_c;

/* Nothing yet; null when there is no memory or no temporary folder. */
struct intrin_c *intrin_c_new(void);
/* Adds a function of one instruction; its number, or -1: it has no form in C. */
int intrin_c_add(struct intrin_c *c, const struct ir_func *f);
/* Compiles what was added since the last call; false: gcc failed, its words are on stderr. */
bool intrin_c_build(struct intrin_c *c);
/* Runs number `fn` in place of the instruction `in`: what ir_run.intrin does. Memory is that of this process. */
bool intrin_c_run(const struct intrin_c *c, int fn, const struct ir_machine *m, const struct ir_intrin *in, const struct ir_val *args,
		  struct ir_val *out);
/* Removes the temporary folder. */
void intrin_c_free(struct intrin_c *c);

#endif
