/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_UI_H
#define CLI_CLI_UI_H

/* `scry ui SOCKET METHOD [WORD... | NAME=VALUE...]`: one request to a live workbench, its answer to stdout. Returns the exit status. */
int cli_ui(int argc, char **argv);

#endif
