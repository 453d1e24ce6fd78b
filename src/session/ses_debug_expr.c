/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions of conditions and of `print`: C over 64-bit numbers, registers ($rax, or rax), names of the program (their addresses), and
 * memory: *e is the word at e, u8(e), u16(e), u32(e), u64(e), i8(e), i16(e), i32(e) what is there of that width.
 */
#include "session/ses_debug_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct expr {
	struct ses_debug *s;
	const char *text, *p;
	int depth;
	struct err *e;
};

static uint64_t parse_binary(struct expr *x, int level);

static void fail(struct expr *x, const char *what)
{
	if (!x->e)
		x->e = err_new(ERR_INVALID, "%s: %s at '%.20s'", x->text, what, x->p);
}

static bool take(struct expr *x, const char *op)
{
	while (isspace((unsigned char)*x->p))
		x->p++;
	size_t len = strlen(op);
	if (strncmp(x->p, op, len))
		return false;
	x->p += len;
	return true;
}

static uint64_t load(struct expr *x, uint64_t va, unsigned len, bool is_signed)
{
	uint8_t bytes[8] = {0};
	size_t got = 0;
	uint64_t v = 0;
	if (x->e)
		return 0;
	x->e = debug_mem(x->s->d, va, bytes, len, &got);
	if (!x->e && got < len)
		x->e = err_new(ERR_NOT_FOUND, "%s: 0x%llx cannot be read", x->text, (unsigned long long)va);
	for (unsigned i = len; i--;)
		v = v << 8 | bytes[i];
	if (is_signed && len < 8 && v >> (8 * len - 1))
		v |= ~(uint64_t)0 << (8 * len);
	return v;
}

static uint64_t parse_name(struct expr *x)
{
	static const struct { const char *name; uint8_t len; bool is_signed; } loads[] = {
		{"u8", 1, false}, {"u16", 2, false}, {"u32", 4, false}, {"u64", 8, false},
		{"i8", 1, true}, {"i16", 2, true}, {"i32", 4, true}, {"i64", 8, true}};
	char name[256];
	size_t n = 0;
	while ((isalnum((unsigned char)*x->p) || strchr("_.$@?", *x->p) ||
		(*x->p == ':' && x->p[1] == ':')) && *x->p && n + 2 < sizeof(name)) {
		name[n++] = *x->p++;
		if (name[n - 1] == ':')
			name[n++] = *x->p++;
	}
	name[n] = 0;
	for (size_t i = 0; i < ARRAY_LEN(loads); i++)
		if (!strcmp(loads[i].name, name) && take(x, "(")) {
			uint64_t va = parse_binary(x, 0);
			if (!take(x, ")"))
				fail(x, "')' is missing");
			return load(x, va, loads[i].len, loads[i].is_signed);
		}
	uint64_t v = 0;
	int reg = debug_regs_find(&x->s->d->regs, name);
	if (reg >= 0) {
		if (!ses_debug_frame_reg(x->s, reg, &v) && !x->e)
			x->e = err_new(ERR_NOT_FOUND, "%s: register %s is not known", x->text, name);
		return v;
	}
	if (!x->e)
		x->e = *name == '$' ? err_new(ERR_NOT_FOUND, "%s: no register of the target", name) : ses_debug_place(x->s, name, &v);
	return v;
}

static uint64_t parse_unary(struct expr *x)
{
	uint64_t v = 0;
	if (++x->depth > DEPTH_MAX)
		fail(x, "too deep");
	if (x->e) {
		/* Nothing more is looked at. */
	} else if (take(x, "(")) {
		v = parse_binary(x, 0);
		if (!take(x, ")"))
			fail(x, "')' is missing");
	} else if (take(x, "-")) {
		v = 0 - parse_unary(x);
	} else if (take(x, "~")) {
		v = ~parse_unary(x);
	} else if (take(x, "!")) {
		v = !parse_unary(x);
	} else if (take(x, "&")) {
		v = parse_unary(x);
	} else if (take(x, "*")) {
		v = parse_unary(x);
		v = load(x, v, x->s->d->arch && x->s->d->arch->bits == 32 ? 4 : 8, false);
	} else if (*x->p == '\'' && x->p[1] && x->p[2] == '\'') {
		v = (uint8_t)x->p[1];
		x->p += 3;
	} else if (isdigit((unsigned char)*x->p)) {
		char *end;
		v = strtoull(x->p, &end, 0);
		x->p = end;
	} else if (isalpha((unsigned char)*x->p) || *x->p == '_' || *x->p == '$') {
		v = parse_name(x);
	} else {
		fail(x, "a number, a register or a name is missing");
	}
	x->depth--;
	return v;
}

/* Longest first where one begins another; level: how loosely it binds. */
static const struct { const char *op; int level; } operators[] = {
	{"||", 0}, {"&&", 1}, {"==", 5}, {"!=", 5}, {"<=", 6}, {">=", 6}, {"<<", 7}, {">>", 7}, {"|", 2}, {"^", 3}, {"&", 4},
	{"<", 6}, {">", 6}, {"+", 8}, {"-", 8}, {"*", 9}, {"/", 9}, {"%", 9},
};

static uint64_t apply(struct expr *x, const char *op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	switch (op[0]) {
	case '|':
		return op[1] ? a || b : a | b;
	case '&':
		return op[1] ? a && b : a & b;
	case '^':
		return a ^ b;
	case '=':
		return a == b;
	case '!':
		return a != b;
	case '<':
		return op[1] == '<' ? b < 64 ? a << b : 0 : op[1] ? sa <= sb : sa < sb;
	case '>':
		return op[1] == '>' ? b < 64 ? a >> b : 0 : op[1] ? sa >= sb : sa > sb;
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	default:
		if (!b)
			fail(x, "division by zero");
		return b ? op[0] == '/' ? a / b : a % b : 0;
	}
}

static uint64_t parse_binary(struct expr *x, int level)
{
	if (++x->depth > DEPTH_MAX)
		fail(x, "too deep");
	uint64_t v = x->e ? 0 : parse_unary(x);
	while (!x->e) {
		size_t i = 0;
		while (isspace((unsigned char)*x->p))
			x->p++;
		while (i < ARRAY_LEN(operators) && strncmp(x->p, operators[i].op, strlen(operators[i].op)))
			i++;
		if (i == ARRAY_LEN(operators) || operators[i].level < level)
			break;
		x->p += strlen(operators[i].op);
		uint64_t b = parse_binary(x, operators[i].level + 1);
		v = apply(x, operators[i].op, v, b);
	}
	x->depth--;
	return v;
}

struct err *ses_debug_eval(struct ses_debug *s, const char *text, uint64_t *ret)
{
	struct expr x = {.s = s, .text = text, .p = text};
	uint64_t v = parse_binary(&x, 0);
	while (isspace((unsigned char)*x.p))
		x.p++;
	if (!x.e && *x.p)
		fail(&x, "not understood");
	if (!x.e)
		*ret = v;
	return x.e;
}
