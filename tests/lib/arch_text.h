/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_ARCH_TEXT_H
#define TESTS_LIB_ARCH_TEXT_H

#include "arch/arch.h"

/* Helpers of the tests of arch/, for use in cmocka tests. */

/* The architecture, which must be there. */
const struct arch *arch_test_get(enum arch_id id);

/* Bytes from "48 89 e5"; the buffer is exactly as long, so that a read past it is caught. Owned. */
uint8_t *arch_test_hex(const char *hex, size_t *ret_len);

/* What effect() says about the bytes as one line of text, so that a case is easy to read and to add. */
void arch_test_effect(const struct arch *a, const char *hex, uint64_t va, char *out, size_t cap);

#endif
