/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_ANALYSIS_INT_H
#define ANALYSIS_ANALYSIS_INT_H

#include "analysis/analysis.h"

/*
 * The stage after code discovery: what the bytes that are no code hold. `code_bits` has a bit per loc that belongs to an
 * instruction (d->loc_cnt bits); d->item_bits already has the starts of instructions, d->xrefs the references of
 * code, d->tables the jump tables. Adds data items and strings, padding, the references of pointers in data, and
 * the runs, so that every loc of every segment belongs to exactly one item. References to data from code should carry their
 * width: it becomes the size of the item. The result does not depend on the order of d->xrefs nor on the number of threads.
 */
_must_use_ struct err *analysis_data(const struct analysis_in *in, struct image_data *d, const uint64_t *code_bits);

/* known_types.c: false when out of memory. `types` may be null. */
_must_use_ bool analysis_add_types(struct image_data *d, const struct dbg_types *types);

#endif
