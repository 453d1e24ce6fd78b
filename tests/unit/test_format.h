/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_TEST_FORMAT_H
#define TESTS_UNIT_TEST_FORMAT_H

#include "format/fmt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* The groups of unit-format; each gives the number of failed tests. */
int test_format_segments(void);
int test_format_dynamic(void);
int test_format_real(void);

/* A file opened from a copy of exactly its length, so that a read past its end is seen. */
struct opened {
	uint8_t *bytes;
	struct fmt_bin *b; /* null when refused */
	struct err *err;
};

struct opened open_bytes(const void *bytes, size_t len);
void close_opened(struct opened *o);

/* Opens or fails the test. */
struct opened open_good(const void *bytes, size_t len);

/* Whether a finding's `what` or `why` contains `text`. */
bool has_finding(const struct fmt_bin *b, const char *text);
size_t error_finding_cnt(const struct fmt_bin *b);

bool str_is(struct fmt_str s, const char *want);
const struct fmt_symbol *find_symbol(const struct fmt_bin *b, const char *name);
const struct fmt_reloc *find_reloc(const struct fmt_bin *b, uint64_t va);
const struct fmt_segment *find_segment(const struct fmt_bin *b, const char *name);

/* What every opened file must satisfy, whatever was in it. */
void check_invariants(const struct fmt_bin *b);

#endif
