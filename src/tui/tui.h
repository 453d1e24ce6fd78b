/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the workbench on `path` on the terminal of stdin and stdout and returns the exit status when the person
 * leaves. The terminal is given back as it was on every way out, signals included. */
int tui_run(const char *path);

/* On several binaries: P.json, or null, and further paths. */
int tui_run_project(const char *file, const char *const *paths, size_t cnt);

/* The same a line at a time on stdin and stdout, for screen readers: a verb's key and what it is about. */
int tui_run_plain(const char *path);
int tui_run_plain_project(const char *file /* P.json, or null */, const char *const *paths, size_t cnt);

/* Adds the terminal to `scry doctor` and the workbench's options to the manual. To be called first. */
void tui_join_operations(void);

/*
 * Takes an option of the workbench from the front of the words (those after words[0]) and gives true: --keys NAME,
 * --color DEPTH, --rpc SOCKET (docs/driving.md), --trace LOG (docs/debugging.md),
 * --no-CAPABILITY. Each is a spelling of a variable of the environment: SCRY_KEYS, SCRY_COLOR, SCRY_RPC, SCRY_TRACE, SCRY_NO.
 */
bool tui_option(int *words_cnt, char ***words);

/* Every action of the workbench with its keys, to stdout; of a preset when one is named. */
int tui_print_keys(const char *preset);

#endif
