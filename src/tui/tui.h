/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TUI_H
#define TUI_TUI_H

/* Opens the workbench on `path` on the terminal of stdin and stdout and returns the exit status when the person
 * leaves. The terminal is given back as it was on every way out, signals included. */
int tui_run(const char *path);

/* The same a line at a time on stdin and stdout, for screen readers: a verb's key and what it is about. */
int tui_run_plain(const char *path);

/* Every action of the workbench with its keys, to stdout. */
int tui_print_keys(void);

#endif
