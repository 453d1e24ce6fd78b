/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_SUBJECT_H
#define TESTS_LIB_SUBJECT_H

#include "base/file.h"
#include "format/fmt.h"

/*
 * A program compiled for one test, opened by our reader, and deleted with subject_free(). The compiler's words are
 * the test's own; "$SRC" and "$OUT" stand for the files.
 */
struct subject {
	char *folder; /* temporary */
	char *path;   /* of the program */
	struct file *file;
	struct fmt_bin *bin;
};

/* Writes `source` to a file ending in `suffix` (".c") and runs `command` in the shell, in the temporary folder.
 * Null when the first word of the command is not installed: the caller skips. Fails the test when the command
 * does. */
struct subject *subject_new(const char *suffix, const char *source, const char *command);

/* Opens a program that is there; null when it is not. */
struct subject *subject_open(const char *path);

void subject_free(struct subject *s);

/* The standard output of `command` with $OUT set to the program's path; the caller frees it. */
char *subject_run(const struct subject *s, const char *command);

#endif
