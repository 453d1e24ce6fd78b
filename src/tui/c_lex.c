/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/c_lex.h"

#include "base/cleanup.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_one_of(const char *s, uint32_t len, const char *const *words, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strlen(words[i]) == len && !memcmp(words[i], s, len))
			return true;
	}
	return false;
}

static uint8_t word_kind(const char *s, uint32_t len, const char *end)
{
	static const char *const keywords[] = {"if", "else", "goto", "return", "switch", "case", "default", "while", "do", "for", "break",
					       "continue", "sizeof"};
	static const char *const types[] = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "struct",
					    "union", "enum", "const", "volatile", "static", "bool", "_Bool", "extern", "typedef"};
	if (is_one_of(s, len, keywords, ARRAY_LEN(keywords)))
		return TUI_C_KEYWORD;
	bool is_typedef = len > 2 && !memcmp(s + len - 2, "_t", 2);
	if (is_typedef || is_one_of(s, len, types, ARRAY_LEN(types)))
		return TUI_C_TYPE;
	return s + len < end && s[len] == '(' ? TUI_C_CALL : TUI_C_NAME;
}

static unsigned digit_of(char c)
{
	if (is_digit(c))
		return (unsigned)(c - '0');
	char lower = (char)(c | 32);
	return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a' + 10) : 99;
}

static uint64_t number(const char *s, uint32_t len)
{
	unsigned base = 10;
	uint32_t i = 0;
	uint64_t v = 0;
	if (len > 1 && s[0] == '0') {
		bool is_prefixed = s[1] == 'x' || s[1] == 'X' || s[1] == 'b' || s[1] == 'B';
		base = s[1] == 'x' || s[1] == 'X' ? 16 : s[1] == 'b' || s[1] == 'B' ? 2 : 8;
		i = is_prefixed ? 2 : 1;
	}
	for (; i < len && digit_of(s[i]) < base; i++)
		v = v * base + digit_of(s[i]);
	return v;
}

/* The byte behind a literal that begins at s with its quote. */
static uint32_t quoted(const char *s, uint32_t len)
{
	uint32_t i = 1;
	while (i < len && s[i] != s[0])
		i += s[i] == '\\' && i + 1 < len ? 2 : 1;
	return i < len ? i + 1 : len;
}

static uint32_t comment_len(const char *s, uint32_t len)
{
	const char *end = len > 3 ? memmem(s + 2, len - 2, "*/", 2) : NULL;
	return s[1] == '/' || !end ? len : (uint32_t)(end + 2 - s);
}

bool tui_c_next(const char *s, uint32_t len, uint32_t from, struct tui_c_token *ret)
{
	static const char image[] = "image + ";
	uint32_t at = from;
	while (at < len && (s[at] == ' ' || s[at] == '\t'))
		at++;
	if (at >= len)
		return false;
	const char *p = s + at;
	uint32_t left = len - at, n = 1;
	*ret = (struct tui_c_token){.off = at, .kind = TUI_C_PUNCT};
	if (*p == '#' && !at) {
		while (n < left && is_word(p[n]))
			n++;
		ret->kind = TUI_C_DIRECTIVE;
	} else if (*p == '/' && left > 1 && (p[1] == '*' || p[1] == '/')) {
		n = comment_len(p, left);
		ret->kind = TUI_C_COMMENT;
	} else if (*p == '"' || *p == '\'') {
		n = quoted(p, left);
		ret->kind = TUI_C_STRING;
	} else if (is_word(*p)) {
		while (n < left && is_word(p[n]))
			n++;
		bool is_addr = at >= sizeof(image) - 1 && !memcmp(p - (sizeof(image) - 1), image, sizeof(image) - 1);
		ret->kind = !is_digit(*p) ? word_kind(p, n, s + len) : is_addr ? TUI_C_ADDR : TUI_C_NUMBER;
		ret->value = is_digit(*p) ? number(p, n) : 0;
	} else {
		while (n < left && (p[n] & 0xc0) == 0x80) /* the rest of a character */
			n++;
	}
	ret->len = n;
	return true;
}
