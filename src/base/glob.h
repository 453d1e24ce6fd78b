/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether the whole of `s` matches `pattern`: '*' any run, '?' any byte, everything else itself.
 * ASCII letters match in either case when `ignore_case`. A pattern without '*' and '?' matches as a
 * substring, which is what people type into a filter. Linear in practice, never exponential.
 */
bool glob_match(const char *pattern, size_t pattern_len, const char *s, size_t len, bool ignore_case);

#endif
