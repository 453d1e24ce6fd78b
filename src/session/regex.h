/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_REGEX_H
#define SESSION_REGEX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Regular expressions over bytes, through PCRE2, which is loaded by the first one. A match may take a bounded number
 * of steps and a bounded amount of memory; past that regex_error() says so, so an answer is never silently short.
 * One object belongs to one thread.
 */
struct regex;

/* Errors: invalid (with the place in the pattern), env. */
_must_use_ struct err *regex_new(const char *pattern, struct regex **ret);
void regex_free(struct regex *r);

/* The first match at or after `from`; empty matches are passed over. */
bool regex_find(struct regex *r, const uint8_t *p, size_t len, size_t from, size_t *ret_at, size_t *ret_len);

/* Error budget when a limit ended the last search, else null. */
_must_use_ struct err *regex_error(const struct regex *r);

/* Whether PCRE2 can be loaded; for doctor. */
_must_use_ struct err *regex_try(void);

#endif
