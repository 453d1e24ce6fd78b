/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob.h"

#include <string.h>

static char glob_fold(char c, bool ignore_case)
{
	return ignore_case && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool glob_same(const char *p, const char *s, size_t len, bool ignore_case)
{
	for (size_t i = 0; i < len; i++) {
		if (glob_fold(p[i], ignore_case) != glob_fold(s[i], ignore_case))
			return false;
	}
	return true;
}

static bool glob_substring(const char *p, size_t p_len, const char *s, size_t len, bool ignore_case)
{
	for (size_t i = 0; p_len <= len && i <= len - p_len; i++) {
		if (glob_same(p, s + i, p_len, ignore_case))
			return true;
	}
	return false;
}

bool glob_match(const char *pattern, size_t pattern_len, const char *s, size_t len, bool ignore_case)
{
	bool has_wild = pattern_len && (memchr(pattern, '*', pattern_len) || memchr(pattern, '?', pattern_len));
	if (!has_wild)
		return glob_substring(pattern, pattern_len, s, len, ignore_case);
	/* The usual two-pointer walk: on a mismatch go back to the last star and let it take one more. */
	size_t p = 0, i = 0, star = SIZE_MAX, star_i = 0;
	while (i < len) {
		if (p < pattern_len && pattern[p] == '*') {
			star = p++;
			star_i = i;
		} else if (p < pattern_len && (pattern[p] == '?' || glob_same(pattern + p, s + i, 1, ignore_case))) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++star_i;
		} else {
			return false;
		}
	}
	while (p < pattern_len && pattern[p] == '*')
		p++;
	return p == pattern_len;
}
