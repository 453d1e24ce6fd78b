/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

/*
 * Division by a constant, which compilers make a multiplication by M and a shift by p. Not a list of shapes: the equation is solved.
 *
 * For 0 <= n <= N let d = ceil(2^p / M), e = M*d - 2^p, and q the largest n <= N with n mod d = d - 1. Then floor(n*M / 2^p) = floor(n / d)
 * for all of them iff q*e < 2^p (Granlund, Montgomery: "Division by Invariant Integers using Multiplication", turned round).
 * For n < 0, floor(n*M / 2^p) + 1 is the truncated quotient of all down to -2^(w-1) if e > 0 and 2^(w-1) * e <= 2^p.
 */

typedef unsigned __int128 u128;

/* n * M / 2^p, rounded down. */
struct high {
	ir_ref n;        /* a value */
	enum ir_width w; /* its width */
	u128 m;
	unsigned p;
	bool is_signed;
};

static bool number_of(const struct dec_build *b, ir_ref r, uint64_t *ret)
{
	return ir_const_get(b->f, r, ret);
}

static int64_t signed_of(uint64_t v, enum ir_width w)
{
	unsigned bits = ir_bits(w);
	return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* A product by a constant whose factor has been widened, so that nothing is lost. */
static bool read_product(const struct dec_build *b, ir_ref r, struct high *h)
{
	uint64_t m;
	const struct ir_rec *mul = dec_rec(b->f, r);
	if (!mul || mul->op != IR_MUL || mul->width != IR_W64 || !number_of(b, mul->b, &m))
		return false;
	const struct ir_rec *ext = dec_rec(b->f, mul->a);
	if (!ext || (ext->op != IR_ZEXT && ext->op != IR_SEXT))
		return false;
	h->n = ext->a;
	h->w = ir_ref_width(b->f, ext->a);
	h->is_signed = ext->op == IR_SEXT;
	h->m = m;
	h->p = 0;
	unsigned bits = ir_bits(h->w);
	/* Within 64 bits, with a sign where there is one. */
	return bits <= 32 && bits >= 8 && m < (uint64_t)1 << (64 - bits - h->is_signed);
}

static bool read_mulh(const struct dec_build *b, ir_ref r, struct high *h)
{
	uint64_t m;
	const struct ir_rec *mul = dec_rec(b->f, r);
	if (!mul || mul->op != IR_MULH || !number_of(b, mul->b, &m))
		return false;
	h->is_signed = mul->kind == IR_MULH_S;
	if (h->is_signed && signed_of(m, (enum ir_width)mul->width) < 0)
		return false;
	*h = (struct high){mul->a, (enum ir_width)mul->width, m, ir_bits((enum ir_width)mul->width), h->is_signed};
	return true;
}

/* Whether the value, with its sign, is told by its low bits. */
static bool fits(const struct high *h, unsigned bits)
{
	u128 most = (u128)(dec_mask(h->w) >> h->is_signed) + h->is_signed;
	return h->p < 127 && most * h->m >> h->p <= (u128)(UINT64_MAX >> (64 - bits + h->is_signed));
}

/* Of a product by a negative number, as those of w + 1 bits are where n is added. */
static bool read_negative(const struct dec_build *b, ir_ref r, struct high *h)
{
	uint64_t m;
	const struct ir_rec *rec = dec_rec(b->f, r);
	if (rec && rec->op == IR_MULH && rec->kind == IR_MULH_S && number_of(b, rec->b, &m) && signed_of(m, (enum ir_width)rec->width) < 0) {
		*h = (struct high){rec->a, (enum ir_width)rec->width, m, ir_bits((enum ir_width)rec->width), true};
		return true;
	}
	const struct ir_rec *mul = rec && rec->op == IR_EXTRACT && rec->aux == 32 && rec->width == IR_W32 ? dec_rec(b->f, rec->a) : NULL;
	const struct ir_rec *ext = mul && mul->op == IR_MUL && mul->width == IR_W64 ? dec_rec(b->f, mul->a) : NULL;
	if (!ext || ext->op != IR_SEXT || ir_ref_width(b->f, ext->a) != IR_W32 || !number_of(b, mul->b, &m) || (int64_t)m >= 0 ||
	    (int64_t)m <= -((int64_t)1 << 32))
		return false;
	*h = (struct high){ext->a, IR_W32, m + ((uint64_t)1 << 32), 32, true};
	return true;
}

/* n*M / 2^w, and (n - that) / 2 + that: M of w + 1 bits. */
static bool read_long(const struct dec_build *b, ir_ref r, ir_ref half, struct high *h)
{
	uint64_t by;
	const struct ir_rec *shift = dec_rec(b->f, half), *rec = dec_rec(b->f, r);
	const struct ir_rec *sub = shift && shift->op == IR_LSHR && number_of(b, shift->b, &by) && by == 1 ? dec_rec(b->f, shift->a) : NULL;
	if (!sub || sub->op != IR_SUB || sub->b != r || !rec)
		return false;
	if (rec->op == IR_EXTRACT ? !(read_product(b, rec->a, h) && rec->aux == ir_bits(h->w)) : !read_mulh(b, r, h))
		return false;
	h->m += (u128)1 << ir_bits(h->w);
	h->p = ir_bits(h->w) + 1;
	return !h->is_signed && sub->a == h->n && rec->width == h->w;
}

/* The value's bits from some place on, which are all there are of it. */
static bool read_high(const struct dec_build *b, ir_ref r, struct high *h, unsigned depth)
{
	uint64_t by;
	const struct ir_rec *rec = dec_rec(b->f, r);
	if (!rec || depth > 3)
		return false;
	if (rec->op == IR_MULH)
		return read_mulh(b, r, h);
	if (rec->op == IR_EXTRACT) {
		unsigned bits = ir_bits((enum ir_width)rec->width);
		if (!read_product(b, rec->a, h) && !(rec->aux == 0 && read_high(b, rec->a, h, depth + 1)))
			return false;
		h->p += rec->aux;
		return fits(h, bits);
	}
	if ((rec->op == IR_LSHR || rec->op == IR_ASHR) && number_of(b, rec->b, &by) && by < ir_bits((enum ir_width)rec->width)) {
		if (!read_product(b, rec->a, h) && !read_high(b, rec->a, h, depth + 1))
			return false;
		h->p += (unsigned)by;
		return (rec->op == IR_ASHR) == h->is_signed && h->p < 127;
	}
	if (rec->op != IR_ADD)
		return false;
	if (read_long(b, rec->a, rec->b, h) || read_long(b, rec->b, rec->a, h))
		return true;
	return (read_negative(b, rec->a, h) && h->n == rec->b) || (read_negative(b, rec->b, h) && h->n == rec->a);
}

/* The divisor; 0: it is no division. */
static uint64_t solve(const struct dec_build *b, const struct high *h)
{
	unsigned bits = ir_bits(h->w);
	uint64_t most = h->is_signed ? dec_mask(h->w) >> 1 : ~dec_zeros(b, h->n) & dec_mask(h->w);
	if (h->m < 3 || !(h->m & (h->m - 1)) || h->p < 8 || h->p > 126)
		return 0;
	/* The largest value, of the bits that may be set. */
	most = most ? UINT64_MAX >> __builtin_clzll(most) : 0;
	u128 power = (u128)1 << h->p, d = (power + h->m - 1) / h->m;
	if (d < 3 || d > dec_mask(h->w) >> h->is_signed || most < d)
		return 0;
	u128 e = h->m * d - power;
	u128 q = most - (most + 1) % d;
	if (e && q > (power - 1) / e)
		return 0;
	if (h->is_signed && (!e || ((u128)1 << (bits - 1)) > power / e))
		return 0;
	return (uint64_t)d;
}

static ir_ref as_wide(struct dec_build *b, ir_ref v, enum ir_width w, bool is_signed)
{
	enum ir_width is = ir_ref_width(b->f, v);
	if (is == w)
		return v;
	const struct ir_rec rec = {.op = ir_bits(is) < ir_bits(w) ? (is_signed ? IR_SEXT : IR_ZEXT) : IR_EXTRACT, .width = (uint8_t)w, .a = v,
				   .b = IR_REF_NONE, .c = IR_REF_NONE};
	return dec_op(b, &rec);
}

static ir_ref quotient(struct dec_build *b, const struct high *h, uint64_t d, const struct ir_rec *rec)
{
	const struct ir_rec div = {.op = IR_DIV, .kind = h->is_signed ? IR_DIV_SQUOT : IR_DIV_UQUOT, .width = (uint8_t)h->w, .a = h->n,
				   .b = ir_const(b->f, h->w, d), .c = IR_REF_NONE, .origin = rec->origin};
	return as_wide(b, dec_op(b, &div), (enum ir_width)rec->width, h->is_signed);
}

/* Whether a term is n's sign, as -1 (or, asked so, 1): of n itself, or of its product, which has the same. */
static bool is_sign(const struct dec_build *b, ir_ref r, const struct high *h, enum ir_op shift)
{
	uint64_t by;
	struct high other;
	const struct ir_rec *rec = dec_rec(b->f, r);
	/* A sign of 64 bits may be cut. */
	if (rec && rec->op == IR_EXTRACT && rec->aux == 0)
		rec = dec_rec(b->f, rec->a);
	if (!rec || rec->op != shift || !number_of(b, rec->b, &by) || by != ir_bits((enum ir_width)rec->width) - 1)
		return false;
	const struct ir_rec *from = dec_rec(b->f, rec->a);
	if (rec->a == h->n || (from && from->op == IR_SEXT && from->a == h->n))
		return true;
	return (read_product(b, rec->a, &other) || read_high(b, rec->a, &other, 0)) && other.n == h->n && other.is_signed && other.m == h->m;
}

ir_ref dec_divide(struct dec_build *b, const struct ir_rec *rec)
{
	struct high h;
	uint64_t d;
	ir_ref root = IR_REF_NONE;
	if (rec->op == IR_LSHR || rec->op == IR_EXTRACT) {
		/* As if it were a record already: its parts are what is read. */
		uint64_t by;
		bool is_shift = rec->op == IR_LSHR;
		if (is_shift && (!number_of(b, rec->b, &by) || by >= ir_bits((enum ir_width)rec->width)))
			return IR_REF_NONE;
		if (!is_shift && rec->aux < 8)
			return IR_REF_NONE;
		if (!read_product(b, rec->a, &h) && !(is_shift && read_high(b, rec->a, &h, 0)))
			return IR_REF_NONE;
		h.p += is_shift ? (unsigned)by : rec->aux;
		if (h.is_signed || (!is_shift && !fits(&h, ir_bits((enum ir_width)rec->width))))
			return IR_REF_NONE;
		d = solve(b, &h);
		return d ? quotient(b, &h, d, rec) : IR_REF_NONE;
	}
	if (rec->op == IR_MULH && rec->kind == IR_MULH_U && number_of(b, rec->b, &d)) {
		h = (struct high){rec->a, (enum ir_width)rec->width, d, ir_bits((enum ir_width)rec->width), false};
		d = solve(b, &h);
		return d ? quotient(b, &h, d, rec) : root;
	}
	if (rec->op == IR_SUB && read_high(b, rec->a, &h, 0) && h.is_signed && is_sign(b, rec->b, &h, IR_ASHR))
		root = rec->a;
	else if (rec->op == IR_ADD && read_high(b, rec->a, &h, 0) && h.is_signed && is_sign(b, rec->b, &h, IR_LSHR))
		root = rec->a;
	else if (rec->op == IR_ADD && read_high(b, rec->b, &h, 0) && h.is_signed && is_sign(b, rec->a, &h, IR_LSHR))
		root = rec->b;
	if (root == IR_REF_NONE || rec->width != h.w)
		return IR_REF_NONE;
	d = solve(b, &h);
	return d ? quotient(b, &h, d, rec) : IR_REF_NONE;
}
