/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPRINT_CPRINT_FIND_H
#define CPRINT_CPRINT_FIND_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Patterns over printed C: C with holes.
 *
 *   $x     one expression, the same at each place of that name; $_ any. With a semicolon behind it, a statement.
 *   ...    anything, or nothing, as far as brackets allow: arguments, statements.
 *
 * What is compared is tokens. Spaces, comments, casts the pattern does not have, and braces around one statement make no
 * difference; numbers are compared by value; a name is also that with the address scry puts behind it. An expression in
 * a hole is whole by C's precedence: `$x == 0` is not found in `a + b == 0` with only `b`, nor `$x + 1` in `x + 1 << 2`'s shift.
 */
struct cprint_pattern;

#define CPRINT_PATTERN_MAX 4096 /* bytes of a pattern */
#define CPRINT_HOLE_MAX 32      /* names of holes */

/* `text` ends with a zero. Errors, all invalid: too long, no token beside holes, brackets that do not match, an open string. */
_must_use_ struct err *cprint_pattern_new(const char *text, struct cprint_pattern **ret);
void cprint_pattern_free(struct cprint_pattern *p);
/* Whether a text has the words it takes: false says that it is not in there. */
bool cprint_pattern_fits(const struct cprint_pattern *p, const char *text, size_t len);

/* Text of the subject: bytes from `off` on. */
struct cprint_part { uint32_t off, len; };

struct cprint_found {
	struct cprint_part part;
	uint32_t line; /* where it begins, from 0 */
	uint32_t hole_cnt;
	struct { const char *name; struct cprint_part part; } holes[CPRINT_HOLE_MAX]; /* names are the pattern's */
};

/* A subject, taken apart once. Any bytes. Errors: no memory, budget (more than 16 M tokens). */
struct cprint_subject;
_must_use_ struct err *cprint_subject_new(const char *text, size_t len, struct cprint_subject **ret);
void cprint_subject_free(struct cprint_subject *s);

/* The first place where the pattern begins at or behind token *at, which goes on to the one behind that. False: none. Error budget: it
 * is not known, because there were too many ways to try. */
_must_use_ struct err *cprint_find(const struct cprint_pattern *p, const struct cprint_subject *s, uint32_t *at, struct cprint_found *ret,
				   bool *ret_found);

#endif
