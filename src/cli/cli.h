/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/*
 * The command line over the operation table. `open_workbench` is what `scry FILE` starts on a terminal
 * (given by main, so that cli and tui do not know each other); it returns the exit status.
 */
int cli_main(int argc, char **argv, int (*open_workbench)(const char *path));

#endif
