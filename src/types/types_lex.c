/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of preprocessed C, made one at a time from the text. Line markers and #pragma pack take effect as they are passed;
 * other pragmas are skipped; any other directive means that the text did not go through the preprocessor.
 */
#include "types/types_int.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void types_fail(struct types_parser *p, const struct types_token *at, const char *fmt, ...)
{
	if (p->err)
		return;
	char reason[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	/* The text may hold anything; the message is one printable line. */
	for (char *c = reason; *c; c++) {
		if ((uint8_t)*c < 32 || *c == 127)
			*c = '?';
	}
	p->place.line = at->line;
	p->place.col = at->col;
	size_t len = MIN(p->lex.file_len, sizeof(p->place.file) - 1);
	for (size_t i = 0; i < len; i++)
		p->place.file[i] = (char)((uint8_t)p->lex.file[i] < 32 || p->lex.file[i] == 127 ? '?' : p->lex.file[i]);
	p->place.file[len] = 0;
	p->err = err_new(ERR_INVALID, "%s%s%u:%u: %s", p->place.file, len ? ":" : "", at->line, at->col, reason);
	p->lex.tok.kind = TOK_EOF;
	p->lex.s = p->lex.end;
}

void types_fail_full(struct types_parser *p)
{
	struct types *t = p->t;
	const char *what = t->types.cnt >= TYPES_RECORD_MAX ? "types" : t->names.cnt >= TYPES_RECORD_MAX ? "names" :
			   t->decls.cnt >= TYPES_RECORD_MAX ? "declarations" : NULL;
	if (p->err)
		return;
	if (what)
		types_fail(p, &p->lex.tok, "more than %zu %s", TYPES_RECORD_MAX, what);
	else
		types_fail(p, &p->lex.tok, "a type of more than %u parts, or out of memory", TYPES_DEPTH_MAX);
	if (p->err != &err_nomem)
		p->err->kind = ERR_BUDGET;
}

static bool lex_is_ident(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c >= '0' && c <= '9') || c >= 0x80;
}

static bool lex_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void lex_blanks(struct types_lex *l)
{
	while (l->s < l->end && (*l->s == ' ' || *l->s == '\t'))
		l->s++;
}

static bool lex_word(struct types_lex *l, const char *word)
{
	size_t len = strlen(word);
	lex_blanks(l);
	if ((size_t)(l->end - l->s) < len || memcmp(l->s, word, len) ||
	    (l->s + len < l->end && lex_is_ident((uint8_t)word[0]) && lex_is_ident((uint8_t)l->s[len])))
		return false;
	l->s += len;
	return true;
}

static bool lex_number(struct types_lex *l, uint32_t *ret)
{
	lex_blanks(l);
	if (l->s >= l->end || !lex_is_digit(*l->s))
		return false;
	uint32_t v = 0;
	for (; l->s < l->end && lex_is_digit(*l->s); l->s++)
		v = v > 100000000 ? v : v * 10 + (uint32_t)(*l->s - '0');
	*ret = v;
	return true;
}

/* #pragma pack(n), pack(), pack(push[, n]), pack(pop); false when it is none of them. */
static bool lex_pack(struct types_lex *l)
{
	uint32_t n = 0;
	if (!lex_word(l, "("))
		return false;
	if (lex_word(l, "push")) {
		if (l->pack_cnt >= TYPES_PACK_STACK)
			return false;
		l->pack_stack[l->pack_cnt++] = l->pack;
		if (!lex_word(l, ","))
			return lex_word(l, ")");
	} else if (lex_word(l, "pop")) {
		l->pack = l->pack_cnt ? l->pack_stack[--l->pack_cnt] : 0;
		return lex_word(l, ")");
	}
	if (lex_number(l, &n) && (n > 16 || (n & (n - 1))))
		return false;
	l->pack = n;
	return lex_word(l, ")");
}

/* A line that begins with '#', which the position is past. */
static void lex_directive(struct types_parser *p)
{
	struct types_lex *l = &p->lex;
	struct types_token at = {.line = l->line, .col = (uint32_t)(l->s - l->line_start)};
	uint32_t line = 0;
	bool is_line = false;
	if (lex_word(l, "pragma")) {
		if (lex_word(l, "pack") && !lex_pack(l))
			types_fail(p, &at, "#pragma pack is not understood");
	} else {
		lex_word(l, "line");
		is_line = lex_number(l, &line);
		lex_blanks(l);
		if (!is_line && l->s < l->end && *l->s != '\n') {
			types_fail(p, &at, "a preprocessor line: run the text through the preprocessor first");
			return;
		}
		if (is_line && l->s < l->end && *l->s == '"') {
			const char *from = ++l->s;
			while (l->s < l->end && *l->s != '"' && *l->s != '\n')
				l->s++;
			l->file = from;
			l->file_len = (size_t)(l->s - from);
		}
	}
	while (l->s < l->end && *l->s != '\n')
		l->s++;
	/* The line end that follows counts one up. */
	if (is_line)
		l->line = line - 1;
}

static void lex_newline(struct types_lex *l)
{
	l->s++;
	l->line++;
	l->line_start = l->s;
}

static bool lex_comment(struct types_parser *p)
{
	struct types_lex *l = &p->lex;
	struct types_token at = {.line = l->line, .col = (uint32_t)(l->s - l->line_start) + 1};
	if (l->s[1] == '/') {
		while (l->s < l->end && *l->s != '\n')
			l->s++;
		return true;
	}
	for (l->s += 2; l->end - l->s >= 2 && !(l->s[0] == '*' && l->s[1] == '/');) {
		if (*l->s == '\n')
			lex_newline(l);
		else
			l->s++;
	}
	if (l->end - l->s < 2) {
		types_fail(p, &at, "a comment without an end");
		return false;
	}
	l->s += 2;
	return true;
}

/* Goes to the next token's first byte. */
static void lex_space(struct types_parser *p)
{
	struct types_lex *l = &p->lex;
	bool is_first = l->s == l->line_start;
	while (l->s < l->end) {
		char c = *l->s;
		char next = l->end - l->s > 1 ? l->s[1] : 0;
		if (c == '\n') {
			lex_newline(l);
			is_first = true;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
			l->s++;
		} else if (c == '\\' && (next == '\n' || next == '\r')) {
			l->s++;
		} else if (c == '/' && (next == '/' || next == '*')) {
			if (!lex_comment(p))
				return;
		} else if (c == '#' && is_first) {
			l->s++;
			lex_directive(p);
		} else {
			return;
		}
	}
}

static int lex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* The type of an integer constant: the first of C's list that holds it (C 6.4.4.1). */
static enum types_base lex_int_type(const struct types *t, uint64_t v, unsigned longs, bool is_unsigned, bool is_decimal)
{
	static const enum types_base list[] = {TYPES_B_INT, TYPES_B_UINT, TYPES_B_LONG, TYPES_B_ULONG, TYPES_B_LLONG,
					       TYPES_B_ULLONG};
	for (size_t i = (size_t)longs * 2; i < ARRAY_LEN(list); i++) {
		const struct types_base_row *row = &t->row->base[list[i]];
		if (row->is_signed ? is_unsigned : is_decimal && !is_unsigned)
			continue;
		unsigned bits = row->len * 8u - row->is_signed;
		if (bits >= 64 || v >> bits == 0)
			return list[i];
	}
	return TYPES_B_ULLONG;
}

static bool lex_suffix(const char *s, size_t len, unsigned *ret_longs, bool *ret_unsigned)
{
	for (size_t i = 0; i < len; i++) {
		if ((s[i] == 'u' || s[i] == 'U') && !*ret_unsigned) {
			*ret_unsigned = true;
		} else if ((s[i] == 'l' || s[i] == 'L') && !*ret_longs) {
			*ret_longs = i + 1 < len && s[i + 1] == s[i] ? 2 : 1;
			i += *ret_longs - 1;
		} else {
			return false;
		}
	}
	return true;
}

/* A preprocessing number (C 6.4.8), then what it is. */
static void lex_num(struct types_parser *p)
{
	struct types_lex *l = &p->lex;
	struct types_token *k = &l->tok;
	const char *s = l->s;
	while (l->s < l->end && (lex_is_ident((uint8_t)*l->s) || *l->s == '.' ||
				 ((*l->s == '+' || *l->s == '-') && strchr("eEpP", l->s[-1]) && l->s > s)))
		l->s++;
	size_t len = (size_t)(l->s - s);
	bool is_hex = len > 1 && s[0] == '0' && (s[1] | 32) == 'x';
	k->kind = TOK_INT;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.' || (is_hex ? (s[i] | 32) == 'p' : (s[i] | 32) == 'e'))
			k->kind = TOK_FLOAT;
	}
	if (k->kind == TOK_FLOAT) {
		char last = (char)(s[len - 1] | 32);
		k->base = last == 'f' && !is_hex ? TYPES_B_FLOAT : last == 'l' ? TYPES_B_LDOUBLE : TYPES_B_DOUBLE;
		return;
	}
	bool is_bin = len > 1 && s[0] == '0' && (s[1] | 32) == 'b';
	unsigned base = is_hex ? 16 : is_bin ? 2 : s[0] == '0' ? 8 : 10;
	size_t from = is_hex || is_bin ? 2 : 0, i = from;
	bool is_over = false;
	for (; i < len && lex_digit(s[i]) < (int)base; i++) {
		uint64_t more;
		is_over |= __builtin_mul_overflow(k->value, (uint64_t)base, &more);
		is_over |= __builtin_add_overflow(more, (uint64_t)lex_digit(s[i]), &k->value);
	}
	unsigned longs = 0;
	bool is_unsigned = false;
	if (i == from || !lex_suffix(s + i, len - i, &longs, &is_unsigned)) {
		/* What no constant is may stand in a body that gets skipped; an expression refuses it. */
		k->kind = TOK_OTHER;
		return;
	}
	if (is_over) {
		types_fail(p, k, "the number does not fit in 64 bits");
		return;
	}
	k->base = lex_int_type(p->t, k->value, longs, is_unsigned, base == 10);
}

/* One character of a literal; the position moves past it. */
static uint32_t lex_char(const char **s, const char *end)
{
	uint32_t cp;
	if (**s != '\\' || *s + 1 >= end) {
		size_t n = utf8_next(*s, (size_t)(end - *s), &cp);
		if (!n)
			return (uint8_t)*(*s)++;
		*s += n;
		return cp;
	}
	(*s)++;
	char c = *(*s)++;
	static const char from[] = "abfnrtve", to[] = "\a\b\f\n\r\t\v\033";
	const char *simple = c ? strchr(from, c) : NULL;
	if (simple)
		return (uint8_t)to[simple - from];
	unsigned max = c == 'x' ? 8 : c == 'u' ? 4 : c == 'U' ? 8 : 3, base = 16;
	if (c >= '0' && c <= '7') {
		base = 8;
		(*s)--;
	} else if (c != 'x' && c != 'u' && c != 'U') {
		return (uint8_t)c;
	}
	uint32_t v = 0;
	for (; max && *s < end && lex_digit(**s) < (int)base; max--)
		v = v * base + (uint32_t)lex_digit(*(*s)++);
	return v;
}

/* The value of a character constant between `s` and `end` (without quotes). */
static void lex_char_value(struct types_parser *p, const char *s, const char *end, char prefix)
{
	struct types_token *k = &p->lex.tok;
	const struct types_abi_row *row = p->t->row;
	uint64_t v = 0;
	unsigned cnt = 0;
	while (s < end) {
		bool is_escape = *s == '\\';
		uint32_t c = lex_char(&s, end);
		char bytes[4];
		size_t n = !prefix && !is_escape && c >= 0x80 ? utf8_put(c, bytes) : 0;
		for (size_t i = 0; i < n; i++)
			v = (v << 8 | (uint8_t)bytes[i]) & UINT32_MAX;
		if (!n)
			v = prefix ? c : (v << 8 | (c & 0xff)) & UINT32_MAX;
		cnt += n ? (unsigned)n : 1;
	}
	k->kind = TOK_INT;
	k->base = prefix == 'L' ? row->wchar_type : prefix == 'u' ? TYPES_B_USHORT : prefix == 'U' ? TYPES_B_UINT :
		  prefix == '8' ? TYPES_B_UCHAR : TYPES_B_INT;
	if (k->base == TYPES_B_USHORT)
		v &= 0xffff;
	if (k->base == TYPES_B_UCHAR)
		v &= 0xff;
	if (!prefix && cnt == 1 && row->base[TYPES_B_CHAR].is_signed)
		v = (uint64_t)(int64_t)(int8_t)v;
	else if (row->base[k->base].is_signed)
		v = (uint64_t)(int64_t)(int32_t)v;
	k->value = v;
}

/* A string or character constant whose quote is at `quote`, after its prefix. */
static void lex_quoted(struct types_parser *p, const char *quote)
{
	struct types_lex *l = &p->lex;
	const char *s = quote + 1;
	while (s < l->end && *s != *quote && *s != '\n')
		s += *s == '\\' && l->end - s > 1 && s[1] != '\n' ? 2 : 1;
	if (s >= l->end || *s != *quote) {
		types_fail(p, &l->tok, "a %s without an end", *quote == '"' ? "string" : "character constant");
		return;
	}
	char prefix = quote > l->tok.s ? quote[-1] : 0;
	l->s = s + 1;
	l->tok.kind = TOK_STR;
	if (*quote == '\'')
		lex_char_value(p, quote + 1, s, prefix);
}

static void lex_ident(struct types_parser *p)
{
	struct types_lex *l = &p->lex;
	const char *s = l->s;
	while (l->s < l->end && lex_is_ident((uint8_t)*l->s)) {
		uint32_t cp;
		size_t n = (uint8_t)*l->s < 0x80 ? 1 : utf8_next(l->s, (size_t)(l->end - l->s), &cp);
		if (!n) {
			types_fail(p, &l->tok, "the name is not UTF-8");
			return;
		}
		l->s += n;
	}
	size_t len = (size_t)(l->s - s);
	if (l->s < l->end && (*l->s == '"' || *l->s == '\'') &&
	    ((len == 1 && strchr("LuU", *s)) || (len == 2 && s[0] == 'u' && s[1] == '8'))) {
		lex_quoted(p, l->s);
		return;
	}
	l->tok.kind = TOK_IDENT;
	l->tok.name = types_intern(p->t, s, len);
	if (!l->tok.name)
		types_fail_full(p);
}

static void lex_punct(struct types_lex *l)
{
	static const struct {
		char s[4];
		unsigned kind;
	} rows[] = {
		{"...", TOK_ELLIPSIS}, {"->", TOK_ARROW}, {"<<", TOK_SHL}, {">>", TOK_SHR}, {"<=", TOK_LE}, {">=", TOK_GE},
		{"==", TOK_EQ}, {"!=", TOK_NE}, {"&&", TOK_AND}, {"||", TOK_OR},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len = strlen(rows[i].s);
		if ((size_t)(l->end - l->s) >= len && !memcmp(l->s, rows[i].s, len)) {
			l->tok.kind = rows[i].kind;
			l->s += len;
			return;
		}
	}
	uint8_t c = (uint8_t)*l->s++;
	l->tok.kind = c > 32 && c < 127 ? c : TOK_OTHER;
}

void types_next(struct types_parser *p)
{
	struct types_lex *l = &p->lex;
	if (!p->err)
		lex_space(p);
	l->tok = (struct types_token){.kind = TOK_EOF, .line = l->line, .col = (uint32_t)(l->s - l->line_start) + 1, .s = l->s};
	if (p->err || l->s >= l->end)
		return;
	uint8_t c = (uint8_t)*l->s;
	if (lex_is_digit((char)c) || (c == '.' && l->end - l->s > 1 && lex_is_digit(l->s[1])))
		lex_num(p);
	else if (lex_is_ident(c))
		lex_ident(p);
	else if (c == '"' || c == '\'')
		lex_quoted(p, l->s);
	else
		lex_punct(l);
	l->tok.len = (size_t)(l->s - l->tok.s);
}

struct types_token types_peek(struct types_parser *p)
{
	struct types_lex saved = p->lex;
	types_next(p);
	struct types_token tok = p->lex.tok;
	if (!p->err)
		p->lex = saved;
	return tok;
}

bool types_is(const struct types_parser *p, unsigned kind)
{
	return p->lex.tok.kind == kind;
}

bool types_accept(struct types_parser *p, unsigned kind)
{
	if (p->lex.tok.kind != kind || p->err)
		return false;
	types_next(p);
	return true;
}

/* What the current token is, for messages. */
static void types_fail_unexpected(struct types_parser *p, unsigned kind)
{
	const struct types_token *k = &p->lex.tok;
	if (k->kind == TOK_EOF)
		types_fail(p, k, "'%c' expected, but the text ends", (int)kind);
	else
		types_fail(p, k, "'%c' expected before '%.*s'", (int)kind, (int)MIN(k->len, 64), k->s);
}

void types_expect(struct types_parser *p, unsigned kind)
{
	if (!types_accept(p, kind))
		types_fail_unexpected(p, kind);
}

enum types_kw types_kw(const struct types_parser *p)
{
	return p->lex.tok.kind == TOK_IDENT ? (enum types_kw)p->t->names.data[p->lex.tok.name].kw : KW_NONE;
}

const char *types_tok_name(const struct types_parser *p)
{
	return p->t->names.data[p->lex.tok.name].s;
}

bool types_enter(struct types_parser *p)
{
	if (p->nest++ < TYPES_NEST_MAX)
		return true;
	types_fail(p, &p->lex.tok, "nested more than %u deep", TYPES_NEST_MAX);
	if (p->err != &err_nomem)
		p->err->kind = ERR_BUDGET;
	return false;
}

void types_leave(struct types_parser *p)
{
	p->nest--;
}

void types_skip_group(struct types_parser *p)
{
	struct types_token from = p->lex.tok;
	size_t open = 0;
	do {
		unsigned k = p->lex.tok.kind;
		if (k == TOK_EOF) {
			types_fail(p, &from, "'%c' without its end", (int)from.kind);
			return;
		}
		open += k == '(' || k == '[' || k == '{';
		open -= k == ')' || k == ']' || k == '}';
		types_next(p);
	} while (open && !p->err);
}

const char *types_string(struct types_parser *p)
{
	struct buf joined = {0};
	while (types_is(p, TOK_STR)) {
		const struct types_token *k = &p->lex.tok;
		const char *quote = memchr(k->s, '"', k->len);
		buf_add(&joined, quote + 1, (size_t)(k->s + k->len - quote) - 2);
		types_next(p);
	}
	uint32_t id = joined.failed || p->err ? 0 : types_intern(p->t, joined.data ? joined.data : "", joined.len);
	buf_fini(&joined);
	if (!id) {
		types_fail_full(p);
		return NULL;
	}
	return p->t->names.data[id].s;
}
