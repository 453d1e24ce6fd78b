/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_LINE_H
#define CLI_CLI_LINE_H

#include "base/buf.h"

/* A line that a person types at a terminal: with a cursor, the lines before it (up, down) and completion (Tab). */
#define CLI_LINE_KEPT 100

struct cli_line {
	struct buf text;
	size_t pos;                 /* bytes */
	char *kept[CLI_LINE_KEPT];  /* the newest last */
	unsigned kept_cnt, kept_at;
	/* The i-th way to complete the text before the cursor's last word; false: there is none. May be null. */
	bool (*complete)(void *ctx, const char *line, unsigned i, char *out, size_t cap);
	void *ctx;
};

void cli_line_fini(struct cli_line *l);

/* Reads one, NUL-terminated and borrowed until the next. Null: end of input; `*ret_is_interrupted` (Ctrl+C): an empty one was meant.
 * Where stdin is no terminal it is a plain line. */
const char *cli_line_read(struct cli_line *l, const char *prompt, bool *ret_is_interrupted);

#endif
