/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_OPERATION_H
#define TUI_OPERATION_H

#include "base/buf.h"
#include "base/err.h"
#include "session/ops.h"

#include <stdbool.h>

/* The next word of the line at *at, its quotes taken away in place; null at the end. */
char *tui_next_word(char **at);

/* Whether a line begins with the name of an operation of the table that is about the open target. */
bool tui_is_operation(const char *line);

/* Runs an operation as on the command line, without the file: "export --output notes.md", "strings --filter 'a b'". Of `on` are taken
 * sn, call, project and binary. What it answers, for people, is added to `out`. Errors: invalid, those of the operation. Thread-safe. */
_must_use_ struct err *tui_operation(const struct ops_req *on, const char *line, struct buf *out);

#endif
