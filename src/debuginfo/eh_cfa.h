/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_EH_CFA_H
#define DEBUGINFO_EH_CFA_H

#include "base/cleanup.h"
#include "base/cur.h"
#include "format/fmt.h"

/*
 * Private to this folder: call-frame programs (DWARF 5, 6.4.2), as far as the first row's rule for the
 * canonical frame address goes. That rule tells a fresh call from a piece of a function.
 */
struct dbg_cfa {
	uint64_t reg;
	int64_t off; /* bytes, factored offsets already multiplied */
	bool is_expr;
	bool is_set;
};

/* How the instructions of one CIE and its FDEs are to be read. */
struct dbg_cfa_rules {
	int64_t data_align;
	unsigned address_bytes; /* operand of DW_CFA_set_loc */
};

/*
 * Runs the program in `c` on `row` until the location first advances, the program ends, or
 * `*steps_left` instructions were run (taken off as they are). False when an instruction is not known
 * or cut; `row` then holds what was understood before it.
 */
bool dbg_cfa_run(struct cur *c, const struct dbg_cfa_rules *rules, struct dbg_cfa *row,
		 uint64_t *steps_left);

/* Whether `row` is what a call leaves behind on this machine; true for machines not known here. */
bool dbg_cfa_is_fresh(enum fmt_machine machine, const struct dbg_cfa *row);

#endif
