/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_INT_H
#define CLI_CLI_INT_H

#include "session/ops.h"

#include <stdatomic.h>

/* What the words of a command said. */
struct cli {
	const struct ops_op *op;
	struct ops_args args;
	struct arena arena;
	const char *file;
	const char *project; /* P.json, of which `file` is a binary */
	const char *socket;  /* of a server that is to answer */
	const char *load[3]; /* --processor, --base, --format; null: not given */
	bool is_json, is_help, has_color, no_store, is_complete, is_progress;
};

/* Words to `c`, whose op and args are set; words are borrowed. Error invalid. */
_must_use_ struct err *cli_parse(struct cli *c, int argc, char **argv);
/* Says the error (takes it) on stderr; gives the exit status. */
int cli_fail(struct err *e);
/*
 * The exit status of a command that ran a program: the program's (128 + its signal), 125 for a failure of its own unless the words were wrong
 * or the machine refuses. `e` is taken and said; `status` is wait(2)'s, -1 when the program has not ended; `has_program`: there is one.
 */
int cli_program_status(struct err *e, int status, bool has_program);
/* Everything to stdout. A reader that went away is no error. */
_must_use_ struct err *cli_write(const struct buf *out);
/* The same, and its exit status. */
int cli_print(const struct buf *out);
/* SIGINT and SIGTERM set what cli_stop() gives; the second one ends the process. */
void cli_signals(void);
/* Set by SIGINT and SIGTERM. */
const atomic_bool *cli_stop(void);
/* "[####....]  20%  TEXT" over the line of a terminal at stderr; cli_progress_end() takes it away. */
void cli_put_progress(uint64_t done, uint64_t total, const char *text);
void cli_progress_end(struct cli *c);

/* `scry batch`; the words after it. Gives the exit status. */
int cli_batch(int argc, char **argv);
/* `scry trace`; the same. */
int cli_trace(int argc, char **argv);
/* `scry probe`; the same. */
int cli_probe(int argc, char **argv);
/* `scry get` and `scry push`; the same. */
int cli_get(int argc, char **argv);
int cli_push(int argc, char **argv);
/* `scry platform`; the same. */
int cli_platform(int argc, char **argv);
/* `scry debug`; the same. */
int cli_debug(int argc, char **argv);

#endif
