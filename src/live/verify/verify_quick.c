/* SPDX-License-Identifier: Apache-2.0 */
#include "live/verify/verify.h"

#include <string.h>

/*
 * What of the printed C the Tiny C Compiler takes, told by its words: include/scry_tcc.h says what there is. Variables of 128 and 80 bits
 * are structures there, so each place that names one must be a load, a store or a copy. Whatever is overlooked here the compiler refuses.
 */
#define NAMES_MAX 64

struct scan {
	const char *p, *end;
	const char *names[NAMES_MAX]; /* of such variables */
	size_t lens[NAMES_MAX];
	unsigned cnt;
	const char *stored;           /* the one that the last store names */
};

static bool is_word_ch(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_word(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && !memcmp(word, what, len);
}

static bool has(const char *word, size_t len, const char *part)
{
	return memmem(word, len, part, strlen(part)) != NULL;
}

/* The next word, a number too, of the text outside of comments; null at the end. */
static const char *next_word(struct scan *s, size_t *ret_len)
{
	while (s->p < s->end && !is_word_ch(*s->p)) {
		bool is_comment = s->end - s->p > 1 && s->p[0] == '/' && s->p[1] == '*';
		const char *over = is_comment ? memmem(s->p + 2, (size_t)(s->end - s->p - 2), "*/", 2) : s->p;
		if (!over)
			return NULL;
		s->p = is_comment ? over + 2 : s->p + 1;
	}
	const char *word = s->p;
	while (s->p < s->end && is_word_ch(*s->p))
		s->p++;
	*ret_len = (size_t)(s->p - word);
	return *ret_len ? word : NULL;
}

/* What follows, behind spaces; '\0' at the end. */
static char peek(const struct scan *s)
{
	const char *p = s->p;
	while (p < s->end && *p == ' ')
		p++;
	return p < s->end ? *p : '\0';
}

static bool starts(const struct scan *s, const char *what)
{
	return (size_t)(s->end - s->p) >= strlen(what) && !memcmp(s->p, what, strlen(what));
}

static bool is_variable(const struct scan *s, const char *word, size_t len)
{
	for (unsigned i = 0; i < s->cnt; i++)
		if (s->lens[i] == len && !memcmp(s->names[i], word, len))
			return true;
	return false;
}

/* The parenthesis that ends what begins with the one at `p`. */
static const char *closing(const struct scan *s, const char *p)
{
	for (int depth = 0; p < s->end; p++) {
		depth += (*p == '(') - (*p == ')');
		if (!depth)
			break;
	}
	return p;
}

/* A value for such a variable: of another one, of the state or of memory. */
static bool takes_value(struct scan *s)
{
	size_t len;
	s->p += 3; /* " = " */
	if (starts(s, "{0}")) {
		s->p += 3;
		return peek(s) == ';' || peek(s) == ',';
	}
	if (starts(s, "scry_load128(")) {
		const char *end = closing(s, s->p + strlen("scry_load128"));
		return end + 1 < s->end && end[1] == ';';
	}
	bool is_state = starts(s, "m->");
	s->p += is_state ? 3 : 0;
	const char *word = next_word(s, &len);
	return word && (is_state || is_variable(s, word, len)) && (peek(s) == ';' || peek(s) == ',');
}

/* "uint128_t a = m->a, b = m->b;" behind its first word. */
static bool takes_declaration(struct scan *s)
{
	for (;;) {
		size_t len;
		const char *name = peek(s) == '\0' || (*s->p != ' ') ? NULL : next_word(s, &len);
		if (!name || s->cnt == NAMES_MAX)
			return false;
		s->names[s->cnt] = name;
		s->lens[s->cnt++] = len;
		if (starts(s, " = ") && !takes_value(s))
			return false;
		if (!starts(s, ","))
			return true;
		s->p++;
	}
}

/* A store behind its name: what is stored is such a variable, one of the state, or what a load gives; nothing that would be widened. */
static bool takes_store(struct scan *s)
{
	static const char load[] = ", scry_load128(";
	const char *p = closing(s, s->p), *word;
	for (const char *at = s->p; at < p && (at = memmem(at, (size_t)(p - at), load, sizeof(load) - 1)); at++)
		if (closing(s, at + sizeof(load) - 2) + 1 == p)
			return true;
	for (word = p; word > s->p && is_word_ch(word[-1]); word--)
		;
	s->stored = word;
	bool is_state = word - s->p > 3 && !memcmp(word - 3, "m->", 3);
	const char *from = is_state ? word - 3 : word;
	/* All of what is stored. */
	return from - s->p > 2 && !memcmp(from - 2, ", ", 2) && (is_state || is_variable(s, word, (size_t)(p - word)));
}

/* A member of the state of that width, `m` was its first word. */
static bool takes_member(struct scan *s)
{
	size_t len;
	const char *word = next_word(s, &len);
	return word && (starts(s, " = ") ? takes_value(s) : word == s->stored);
}

/* One of them behind its name, which stands at `word`. */
static bool takes_use(struct scan *s, const char *word)
{
	return starts(s, " = ") ? takes_value(s) : word == s->stored;
}

static bool takes_word(const char *word, size_t len)
{
	static const char *const absent[] = {"SCRY_INSN", "scry_fma", "uitof", "scry_pair64"};
	if (len > 5 && !memcmp(word, "scry_", 5) && (has(word, len, "128") || has(word, len, "80")))
		return is_word(word, len, "scry_load128") || is_word(word, len, "scry_store128");
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		if (has(word, len, absent[i]))
			return false;
	return !is_word(word, len, "int128_t") && !is_word(word, len, "scry_u128");
}

/* The widths a macro of vectors begins with. */
static bool takes_widths(const struct scan *s)
{
	struct scan ahead = *s;
	for (unsigned i = 0; i < 2; i++) {
		size_t len;
		const char *word = next_word(&ahead, &len);
		if (!word || is_word(word, len, "128"))
			return false;
	}
	return true;
}

bool verify_quick_takes(const char *text, size_t len)
{
	struct scan s = {.p = text, .end = text + len};
	for (const char *word; (word = next_word(&s, &len));) {
		bool is_macro = is_word(word, len, "SCRY_LANES") || is_word(word, len, "SCRY_CONVERT");
		if (is_word(word, len, "define")) {
			/* The list of registers. */
			const char *line = memchr(s.p, '\n', (size_t)(s.end - s.p));
			s.p = line ? line : s.end;
		} else if (is_word(word, len, "uint128_t") || is_word(word, len, "uint80_t")) {
			if (!takes_declaration(&s))
				return false;
		} else if (is_word(word, len, "m") && (starts(&s, "->xmm") || starts(&s, "->ymmh"))) {
			if (!takes_member(&s))
				return false;
		} else if (!takes_word(word, len) || (is_macro && !takes_widths(&s)) ||
			   (is_word(word, len, "scry_store128") && !takes_store(&s)) ||
			   (is_variable(&s, word, len) && !takes_use(&s, word))) {
			return false;
		}
	}
	return true;
}
