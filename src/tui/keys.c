/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/actions.h"
#include "tui/tui.h"

#include <stdio.h>

/* The table of keys as text, one action a line: what the help card shows, for a printer or a search. */
int tui_print_keys(void)
{
	for (int g = 0; g < TUI_GROUP_COUNT; g++) {
		printf("%s# %s\n", g ? "\n" : "", tui_group_name((enum tui_group)g));
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
			const struct tui_action_info *info = tui_action_info((enum tui_action)a);
			if (info->group == g)
				printf("%-24s %-18s %s\n", *info->keys ? info->keys : "-", info->name, info->text);
		}
	}
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
