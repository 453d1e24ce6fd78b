/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/exec_json.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 1024

struct scan {
	const char *at, *end;
	uint8_t is_object[DEPTH_MAX]; /* of each level that is open */
	unsigned depth;
};

static bool take(struct scan *s, char ch)
{
	if (s->at == s->end || *s->at != ch)
		return false;
	s->at++;
	return true;
}

static void blanks(struct scan *s)
{
	while (s->at < s->end && *s->at == ' ')
		s->at++;
}

static bool take_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len))
		return false;
	s->at += len;
	return true;
}

static bool is_digit(const struct scan *s)
{
	return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static bool take_digits(struct scan *s)
{
	if (!is_digit(s))
		return false;
	while (is_digit(s))
		s->at++;
	return true;
}

static bool take_number(struct scan *s)
{
	(void)take(s, '-');
	if (!take(s, '0') && !take_digits(s))
		return false;
	if (take(s, '.') && !take_digits(s))
		return false;
	if (take(s, 'e') || take(s, 'E')) {
		if (!take(s, '+'))
			(void)take(s, '-');
		return take_digits(s);
	}
	return true;
}

static bool take_escape(struct scan *s)
{
	if (s->at == s->end)
		return false;
	char ch = *s->at++;
	if (ch != 'u')
		return ch && strchr("\"\\/bfnrt", ch);
	for (unsigned i = 0; i < 4; i++, s->at++) {
		if (s->at == s->end || !*s->at || !strchr("0123456789abcdefABCDEF", *s->at))
			return false;
	}
	return true;
}

static bool take_string(struct scan *s)
{
	if (!take(s, '"'))
		return false;
	while (s->at < s->end) {
		s->at += utf8_plain_len(s->at, (size_t)(s->end - s->at));
		if (s->at == s->end)
			return false;
		uint8_t ch = (uint8_t)*s->at++;
		if (ch == '"')
			return true;
		if (ch < 0x20 || ch >= 0x7f || (ch == '\\' && !take_escape(s)))
			return false;
	}
	return false;
}

static bool take_key(struct scan *s)
{
	blanks(s);
	if (!take_string(s))
		return false;
	blanks(s);
	return take(s, ':');
}

/* A value that holds no others. */
static bool take_plain(struct scan *s)
{
	if (s->at == s->end)
		return false;
	switch (*s->at) {
	case '"':
		return take_string(s);
	case 't':
		return take_word(s, "true");
	case 'f':
		return take_word(s, "false");
	case 'n':
		return take_word(s, "null");
	default:
		return take_number(s);
	}
}

/* Behind a value: closes what ends there; true with *ret_more when another value is to come. */
static bool take_ends(struct scan *s, bool *ret_more)
{
	*ret_more = false;
	while (s->depth) {
		bool is_object = s->is_object[s->depth - 1];
		blanks(s);
		if (take(s, ',')) {
			*ret_more = true;
			return !is_object || take_key(s);
		}
		if (!take(s, is_object ? '}' : ']'))
			return false;
		s->depth--;
	}
	return true;
}

/* Opens a list or an object; *ret_more unless it is empty, and then it is a value that was read. */
static bool take_open(struct scan *s, bool *ret_more)
{
	bool is_object = *s->at++ == '{';
	if (s->depth == DEPTH_MAX)
		return false;
	blanks(s);
	*ret_more = !take(s, is_object ? '}' : ']');
	if (!*ret_more)
		return true;
	s->is_object[s->depth++] = is_object;
	return !is_object || take_key(s);
}

bool exec_json_is_one(const char *text, size_t len)
{
	struct scan s = {.at = text, .end = text + len};
	bool more = true;
	while (more) {
		blanks(&s);
		bool opens = s.at < s.end && (*s.at == '{' || *s.at == '[');
		if (opens ? !take_open(&s, &more) : !take_plain(&s))
			return false;
		if (opens && more)
			continue;
		if (!take_ends(&s, &more))
			return false;
	}
	blanks(&s);
	return s.at == s.end;
}
