/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts that name things, IDA's own dumps above all. Nothing is run: calls of a few functions whose arguments are
 * literals are picked out of the text, wherever they stand. Comments and strings are known so that nothing inside
 * one is taken for a call.
 */
#include "symfile/symfile_int.h"

#include <string.h>

/* What a call states. `flag` is what makes a comment repeatable: the third argument, or the function itself. */
struct idc_call { const char *name; enum symfile_what what; const char *sub, *repeatable_sub; };

static const struct idc_call idc_calls[] = {
	{"MakeName", SYMFILE_NAME, "", ""},
	{"MakeNameEx", SYMFILE_NAME, "", ""},
	{"set_name", SYMFILE_NAME, "", ""},
	{"MakeComm", SYMFILE_COMMENT, "line", "line"},
	{"MakeRptCmt", SYMFILE_COMMENT, "repeatable", "repeatable"},
	{"set_cmt", SYMFILE_COMMENT, "line", "repeatable"},
	{"SetFunctionCmt", SYMFILE_COMMENT, "func", "func"},
	{"set_func_cmt", SYMFILE_COMMENT, "func", "func"},
};

static bool is_word(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_';
}

static char peek(const struct symfile_reader *r, size_t more)
{
	return r->len - r->pos > more ? r->text[r->pos + more] : 0;
}

static void step(struct symfile_reader *r)
{
	r->line += r->text[r->pos] == '\n';
	r->pos++;
}

static void skip_line(struct symfile_reader *r)
{
	while (r->pos < r->len && r->text[r->pos] != '\n')
		r->pos++;
}

static void skip_block(struct symfile_reader *r)
{
	r->pos += 2;
	while (r->pos < r->len && !(r->text[r->pos] == '*' && peek(r, 1) == '/'))
		step(r);
	r->pos = MIN(r->len, r->pos + 2);
}

/* Blanks and comments. */
static void skip_space(struct symfile_reader *r)
{
	while (r->pos < r->len) {
		char ch = r->text[r->pos];
		if (ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n')
			step(r);
		else if (ch == '#' || (ch == '/' && peek(r, 1) == '/'))
			skip_line(r);
		else if (ch == '/' && peek(r, 1) == '*')
			skip_block(r);
		else
			break;
	}
}

static int digit(char ch)
{
	uint64_t v;
	return symfile_hex((struct symfile_str){&ch, 1}, &v) ? (int)v : -1;
}

/* Up to `max` digits of that base. */
static char escape_number(struct symfile_reader *r, int base, unsigned max)
{
	unsigned v = 0;
	for (unsigned n = 0; n < max && r->pos < r->len; n++) {
		int d = digit(r->text[r->pos]);
		if (d < 0 || d >= base)
			break;
		v = v * (unsigned)base + (unsigned)d;
		r->pos++;
	}
	return (char)v;
}

static char read_escape(struct symfile_reader *r)
{
	char ch = r->text[r->pos];
	if (ch >= '0' && ch <= '7')
		return escape_number(r, 8, 3);
	step(r);
	switch (ch) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case 'x':
		return escape_number(r, 16, 2);
	default:
		return ch;
	}
}

/* A string literal at its quote; false when it has no end in its line. What it says goes to `out` unless that is null. */
static bool read_string(struct symfile_reader *r, struct buf *out)
{
	char quote = r->text[r->pos++];
	while (r->pos < r->len && r->text[r->pos] != '\n') {
		char ch = r->text[r->pos];
		if (ch == quote) {
			r->pos++;
			return true;
		}
		r->pos++;
		if (ch == '\\') {
			if (r->pos == r->len)
				return false;
			ch = read_escape(r);
		}
		if (out)
			buf_add_ch(out, ch);
	}
	return false;
}

/* A number: 0x401000, 401000h is none of IDC's. Its words end where a word character does not follow. */
static bool read_number(struct symfile_reader *r, uint64_t *ret)
{
	size_t n = 0;
	while (r->pos + n < r->len && is_word(r->text[r->pos + n]))
		n++;
	struct symfile_str s = {r->text + r->pos, n};
	r->pos += n;
	/* Old dumps have 0X401000L. */
	while (s.len && strchr("LlUu", s.s[s.len - 1]))
		s.len--;
	if (s.len > 2 && (s.s[1] | 0x20) == 'x')
		return symfile_hex(s, ret);
	uint64_t v = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.s[i] < '0' || s.s[i] > '9' || i > 18)
			return false;
		v = v * 10 + (uint64_t)(s.s[i] - '0');
	}
	*ret = v;
	return s.len > 0;
}

static bool take(struct symfile_reader *r, char ch)
{
	skip_space(r);
	if (r->pos >= r->len || r->text[r->pos] != ch)
		return false;
	r->pos++;
	return true;
}

/* The arguments of a call, from behind its parenthesis. */
static void read_call(struct symfile_reader *r, const struct idc_call *call)
{
	_cleanup_buf_ struct buf text = {0};
	struct symfile_str name = {call->name, strlen(call->name)};
	uint64_t addr, flag = 0;
	skip_space(r);
	if (!read_number(r, &addr) || !take(r, ',')) {
		symfile_refuse(r, name, "its address is not a number");
		return;
	}
	bool has_text = false;
	for (skip_space(r); r->pos < r->len && (r->text[r->pos] == '"' || r->text[r->pos] == '\''); skip_space(r)) {
		if (!read_string(r, &text)) {
			symfile_refuse(r, name, "its text has no end");
			return;
		}
		has_text = true;
	}
	if (!has_text) {
		symfile_refuse(r, name, "its text is not a string");
		return;
	}
	if (take(r, ',')) {
		skip_space(r);
		if (!read_number(r, &flag))
			flag = 0;
	}
	if (text.failed)
		r->is_out_of_memory = true;
	else
		symfile_add(r, call->what, flag ? call->repeatable_sub : call->sub, addr, (struct symfile_str){text.data, text.len});
}

static void read_word(struct symfile_reader *r)
{
	size_t n = 0;
	while (r->pos + n < r->len && is_word(r->text[r->pos + n]))
		n++;
	struct symfile_str word = {r->text + r->pos, n};
	r->pos += n;
	for (size_t i = 0; i < ARRAY_LEN(idc_calls); i++) {
		if (!symfile_str_is(word, idc_calls[i].name))
			continue;
		if (take(r, '('))
			read_call(r, &idc_calls[i]);
		return;
	}
}

void symfile_read_idc(struct symfile_reader *r)
{
	r->line = 1;
	for (skip_space(r); r->pos < r->len; skip_space(r)) {
		char ch = r->text[r->pos];
		if (is_word(ch))
			read_word(r);
		else if (ch == '"' || ch == '\'')
			(void)read_string(r, NULL);
		else
			step(r);
	}
}
