/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "tui/tui.h"

#include <string.h>

int main(int argc, char **argv)
{
	/* The workbench's own, which the command line does not know. */
	if (argc == 2 && !strcmp(argv[1], "keys"))
		return tui_print_keys();
	if (argc == 3 && !strcmp(argv[1], "--plain"))
		return tui_run_plain(argv[2]);
	return cli_main(argc, argv, tui_run);
}
