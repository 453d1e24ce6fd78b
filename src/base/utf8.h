/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Length in bytes of the well-formed UTF-8 sequence at `s` (Unicode 15, table 3-7: no overlong
 * forms, no surrogates, at most U+10FFFF), with its code point in `*ret_cp`; 0 when there is none.
 */
size_t utf8_next(const char *s, size_t len, uint32_t *ret_cp);

/* Writes `cp` as UTF-8 (1 to 4 bytes) into `out`, which has room for 4; gives the length. A value
 * that is no scalar value is written as U+FFFD. */
size_t utf8_put(uint32_t cp, char *out);

/* How many bytes of `s`, at most `len`, stand in a JSON string as they are: printable ASCII but the quote and the backslash. */
size_t utf8_plain_len(const char *s, size_t len);

#endif
