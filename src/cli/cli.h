/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

/* What starts on a terminal; given by main, so that cli and tui do not know each other. Both return the exit status. */
struct cli_workbench {
	int (*open)(const char *path);
	int (*open_project)(const char *file /* P.json, or null */, const char *const *paths, size_t cnt);
	bool is_plain; /* it needs no terminal */
};

/* Whether --help is among the words. */
bool cli_wants_help(int argc, char **argv);

/* The words behind --plain: files, or --project P.json and files. */
int cli_plain(int argc, char **argv, const struct cli_workbench *plain);

/* `scry trace` for a program that watches it: rows of session/ses_live.h to stdout. */
int cli_trace_rows(int argc, char **argv);

/* The command line over the operation table. */
int cli_main(int argc, char **argv, const struct cli_workbench *workbench);

#endif
