/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/cli_ui.h"
#include "exec/exec.h"
#include "mcp/mcp.h"
#include "serve/serve.h"
#include "tui/tui.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `scry keys [--preset NAME]`. */
static int print_keys(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[0], "--preset"))
		return tui_print_keys(argv[1]);
	if (argc)
		fprintf(stderr, "scry: usage: scry keys [--preset NAME]\n");
	return argc ? 2 : tui_print_keys(NULL);
}

int main(int argc, char **argv)
{
	/* Arrays of a megabyte and more are maps of their own: they grow without a copy and go back when
	 * they are freed. Left alone, the limit rises with the first of them that is freed, and what
	 * the analysis gave back stays resident between its other arrays. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	tui_join_operations();
	exec_register();
	/* The workbench's own, which the command line does not know. */
	if (argc > 1 && !strcmp(argv[1], "keys"))
		return print_keys(argc - 2, argv + 2);
	/* What the workbench starts to trace with. */
	if (argc > 1 && !strcmp(argv[1], "trace-rows"))
		return cli_trace_rows(argc - 2, argv + 2);
	const char *socket = getenv("SCRY_RPC"), *log = getenv("SCRY_TRACE");
	while (argc > 2 && tui_option(&argc, &argv))
		;
	/* Where --rpc or --trace was among them a workbench is meant, and without a terminal there is none. */
	if (argc == 2 && (getenv("SCRY_RPC") != socket || getenv("SCRY_TRACE") != log))
		return tui_run(argv[1]);
	if (argc >= 2 && !strcmp(argv[1], "--plain")) {
		static const struct cli_workbench plain = {tui_run_plain, tui_run_plain_project, .is_plain = true};
		return cli_plain(argc - 2, argv + 2, &plain);
	}
	if (argc >= 2 && !strcmp(argv[1], "ui"))
		return cli_ui(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "serve"))
		return serve_main(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "mcp") && !cli_wants_help(argc - 2, argv + 2))
		return mcp_main(argc - 2, argv + 2);
	static const struct cli_workbench workbench = {tui_run, tui_run_project};
	return cli_main(argc, argv, &workbench);
}
