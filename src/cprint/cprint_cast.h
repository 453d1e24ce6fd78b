/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPRINT_CPRINT_CAST_H
#define CPRINT_CPRINT_CAST_H

#include "cprint/cprint_int.h"

#include <string.h>

/* What type C gives an expression that was written, what its value says then, and the parentheses and casts that make it what is wanted. */

enum want {
	MODULO,   /* converted to the value's width it is right: an assignment, an operand of unsigned arithmetic */
	UNSIGNED, /* the number itself, read without a sign */
	SIGNED,   /* read with one */
};

/* How tightly the outermost operator binds: C11 6.5.1 to 6.5.17. */
enum prec { P_CHOICE, P_OR, P_XOR, P_AND, P_EQUAL, P_LESS, P_SHIFT, P_SUM, P_PRODUCT, P_UNARY, P_PRIMARY };

/* What was written. */
struct expr {
	bool ok;
	uint8_t bits;        /* of its C type, before it is promoted to int */
	bool is_signed;      /* of that type */
	bool u, s;           /* it has the value read without, and with a sign */
	bool is_number;      /* a literal */
	uint8_t prec;
};

static inline void insert(struct buf *text, size_t at, const char *s, size_t len)
{
	if (!buf_room(text, len))
		return;
	memmove(text->data + at + len, text->data + at, text->len - at);
	memcpy(text->data + at, s, len);
	text->len += len;
}

/* Parentheses around what stands in [at, end), when it binds less tightly than `prec`. */
static inline void enclose_part(struct buf *text, size_t at, size_t end, struct expr *e, enum prec prec)
{
	if (e->prec >= prec)
		return;
	insert(text, end, ")", 1);
	insert(text, at, "(", 1);
	e->prec = P_PRIMARY;
}

/* The same around all from `at` on. */
static inline void enclose(struct buf *text, size_t at, struct expr *e, enum prec prec)
{
	enclose_part(text, at, text->len, e, prec);
}

static inline struct expr of_type(enum ir_width w, bool is_signed, enum prec prec)
{
	unsigned bits = ir_bits(w);
	return (struct expr){.ok = true, .bits = (uint8_t)(bits < 8 ? 8 : bits == 80 ? 128 : bits > 128 ? 128 : bits),
			     .is_signed = is_signed, .u = !is_signed, .s = is_signed, .prec = (uint8_t)prec};
}

/* A cast before what stands in [at, end). */
static inline struct expr cast_part(struct buf *text, size_t at, size_t end, struct expr e, enum ir_width w, bool is_signed)
{
	char name[24] = "(", *p = name + 1;
	static const char *const types[IR_W_COUNT] = {"", "uint1_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "uint80_t", "uint128_t", "", ""};
	const char *type = types[w];
	/* The Tiny C Compiler leaves the sign of a byte in 16 bits without one. */
	if (w == IR_W16 && !is_signed && e.is_signed && e.bits < 16)
		e = cast_part(text, at, end, e, IR_W32, false);
	else
		enclose_part(text, at, end, &e, P_UNARY);
	memcpy(p, type + is_signed, strlen(type + is_signed));
	p += strlen(type + is_signed);
	*p++ = ')';
	insert(text, at, name, (size_t)(p - name));
	struct expr out = of_type(w, is_signed, P_UNARY);
	out.ok = e.ok && *type;
	return out;
}

static inline struct expr cast(struct buf *text, size_t at, struct expr e, enum ir_width w, bool is_signed)
{
	return cast_part(text, at, text->len, e, w, is_signed);
}

/* What was written from `at` on as it is wanted. */
static inline struct expr convert_to(struct expr e, size_t at, enum ir_width w, enum want want, struct buf *text)
{
	if (want == MODULO || (want == UNSIGNED ? e.u : e.s))
		return e;
	return cast(text, at, e, w, want == SIGNED);
}

static inline void promote(struct expr *e)
{
	e->is_signed = e->bits < 32 || e->is_signed;
	e->bits = e->bits < 32 ? 32 : e->bits;
}

/* What C's conversions make of two operands. */
static inline struct expr meet(struct expr a, struct expr b)
{
	promote(&a);
	promote(&b);
	struct expr t = a.bits >= b.bits ? a : b;
	if (a.bits == b.bits)
		t.is_signed = a.is_signed && b.is_signed;
	t.ok = a.ok && b.ok;
	t.is_number = false;
	return t;
}

/* Two expressions in the buffer, one behind the other. */
struct pair {
	size_t at_a, end_a, at_b;
	struct expr a, b;
};

static inline void cast_first(struct pair *x, enum ir_width w, bool is_signed, struct buf *text)
{
	size_t len = text->len;
	x->a = cast_part(text, x->at_a, x->end_a, x->a, w, is_signed);
	x->end_a += text->len - len;
	x->at_b += text->len - len;
}

/* Whether C's type of an expression says `is_signed`, and compilers say so where it meets the other one. */
static inline bool is_of_sign(const struct expr *e, bool is_signed)
{
	return !e->is_number && e->is_signed == is_signed && (e->bits >= 32 || is_signed);
}

/* Where both operands of a comparison or a choice are read alike, makes their types such that C does so, too. */
static inline void make_alike(struct pair *x, enum ir_width w, bool is_signed, struct buf *text)
{
	bool mixed = (is_of_sign(&x->a, true) || !x->a.u) && (is_of_sign(&x->b, false) || !x->b.s);
	mixed = mixed || ((is_of_sign(&x->b, true) || !x->b.u) && (is_of_sign(&x->a, false) || !x->a.s));
	if (mixed && is_of_sign(&x->a, !is_signed))
		cast_first(x, w, is_signed, text);
	if (mixed && is_of_sign(&x->b, !is_signed))
		x->b = cast(text, x->at_b, x->b, w, is_signed);
}

#endif
