/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

int cli_main(int argc, char **argv, int (*open_workbench)(const char *path))
{
	return argc > 1 ? open_workbench(argv[1]) : 2;
}
