/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui.h"

int tui_run(const char *path)
{
	return path ? 0 : 2;
}
