/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_TYPES_CLANG_H
#define TYPES_TYPES_CLANG_H

#include "types/types.h"

/*
 * A second opinion on layouts: libclang's, where that is installed. It says for each struct, union and enum of a preprocessed text
 * what it makes of it for a target; types_parse_said() compares that with its own rules, and takes it over.
 */

/* Lays the text out for the target `triple` ("aarch64-linux-gnu"); what has errors in it is left out. Runs the library in a child
 * (base/child.h). `ret` is to be given to types_says_fini(), also after an error. Errors: env when there is no libclang, those of
 * child_run(). */
_must_use_ struct err *types_clang(const char *triple, const char *text, size_t len, struct types_says *ret);

/*
 * Reads the child's answer: a run of native 64-bit numbers, for each record the offset of its keyword, size and alignment in bytes,
 * how many values follow, and these: members' places in bits, or an enum's constants. False when it is none, or out of memory.
 */
bool types_says_read(const char *bytes, size_t len, struct types_says *ret);

#endif
