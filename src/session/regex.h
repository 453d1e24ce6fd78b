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

/* Asked now and then while a search goes on; an error ends it. */
typedef struct err *regex_check_fn(void *ctx);
void regex_set_check(struct regex *r, regex_check_fn *check, void *ctx);

/* The first match at or after `from`; empty matches are passed over. */
bool regex_find(struct regex *r, const uint8_t *p, size_t len, size_t from, size_t *ret_at, size_t *ret_len);

/* What ended the last search before its end: error budget for a limit, or the caller's own; else null. */
_must_use_ struct err *regex_error(struct regex *r);

/* Whether PCRE2 can be loaded; for doctor. */
_must_use_ struct err *regex_try(void);

#endif
