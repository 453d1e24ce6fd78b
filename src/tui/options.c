/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui.h"

#include "base/cleanup.h"
#include "tui/term/caps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a word to SCRY_NO, which names what is not to be used of the terminal. */
static void add_no(const char *name)
{
	char all[256];
	const char *was = getenv("SCRY_NO");
	if ((size_t)snprintf(all, sizeof(all), "%s%s%s", was ? was : "", was && *was ? " " : "", name) < sizeof(all))
		setenv("SCRY_NO", all, 1);
}

/* Words are moved up so that the first of them stays the program's name. */
static void drop(int *cnt, char ***words, int n)
{
	(*words)[n] = (*words)[0];
	*words += n;
	*cnt -= n;
}

bool tui_option(int *cnt, char ***words)
{
	static const char *const valued[][2] = {{"--keys", "SCRY_KEYS"}, {"--color", "SCRY_COLOR"}, {"--rpc", "SCRY_RPC"}, {"--trace", "SCRY_TRACE"}};
	const char *word = (*words)[1];
	for (size_t i = 0; i < ARRAY_LEN(valued); i++) {
		size_t len = strlen(valued[i][0]);
		bool has_value = !strncmp(word, valued[i][0], len) && word[len] == '=';
		bool is_next = !strcmp(word, valued[i][0]) && *cnt > 2;
		if (!has_value && !is_next)
			continue;
		setenv(valued[i][1], has_value ? word + len + 1 : (*words)[2], 1);
		drop(cnt, words, has_value ? 1 : 2);
		return true;
	}
	if (strncmp(word, "--no-", 5) || !term_caps_is_name(word + 5))
		return false;
	add_no(word + 5);
	drop(cnt, words, 1);
	return true;
}
