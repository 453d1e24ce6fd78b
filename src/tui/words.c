/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/operation.h"

#include <string.h>

char *tui_next_word(char **at)
{
	char *from = *at + strspn(*at, " \t");
	char *to = from;
	char *word = from;
	char quote = 0;
	if (!*from)
		return NULL;
	for (; *from && (quote || (*from != ' ' && *from != '\t')); from++) {
		if (quote ? *from == quote : *from == '\'' || *from == '"')
			quote = quote ? 0 : *from;
		else
			*to++ = *from;
	}
	*at = *from ? from + 1 : from;
	*to = '\0';
	return word;
}
