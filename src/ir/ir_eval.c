/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

/* Pure operations on integers; floats are in ir_float.c, vectors in ir_vec.c. */

uint64_t ir_val_bits(const struct ir_val *v, unsigned off, unsigned bits)
{
	if (off >= 512)
		return 0;
	unsigned i = off / 64, in = off % 64;
	uint64_t r = v->w[i] >> in;
	if (in && i + 1 < 8)
		r |= v->w[i + 1] << (64 - in);
	return bits >= 64 ? r : r & (((uint64_t)1 << bits) - 1);
}

void ir_val_set_bits(struct ir_val *v, unsigned off, unsigned bits, uint64_t bits_value)
{
	for (unsigned done = 0; done < bits && off < 512;) {
		unsigned i = off / 64, in = off % 64;
		unsigned n = 64 - in < bits - done ? 64 - in : bits - done;
		uint64_t mask = (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << in;
		v->w[i] = (v->w[i] & ~mask) | (bits_value >> done << in & mask);
		done += n;
		off += n;
	}
}

static int64_t sext64(uint64_t v, unsigned bits)
{
	return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* --- any width --------------------------------------------------------------------------------------------- */
static void add_wide(const struct ir_val *a, const struct ir_val *b, unsigned invert, struct ir_val *ret)
{
	uint64_t carry = invert;
	for (unsigned i = 0; i < 8; i++) {
		uint64_t y = invert ? ~b->w[i] : b->w[i];
		uint64_t sum = a->w[i] + y;
		uint64_t out = sum < y;
		ret->w[i] = sum + carry;
		carry = out | (ret->w[i] < carry);
	}
}

static void mul_wide(const struct ir_val *a, const struct ir_val *b, struct ir_val *ret)
{
	unsigned __int128 lo = (unsigned __int128)a->w[0] * b->w[0];
	ret->w[0] = (uint64_t)lo;
	ret->w[1] = (uint64_t)(lo >> 64) + a->w[1] * b->w[0] + a->w[0] * b->w[1];
}

static bool sign_of(const struct ir_val *v, unsigned bits)
{
	return ir_val_bits(v, bits - 1, 1);
}

static void shift_left(const struct ir_val *a, unsigned n, struct ir_val *ret)
{
	for (unsigned i = 8; i-- > 0;) {
		unsigned from = i * 64;
		uint64_t v = 0;
		if (from >= n)
			v = ir_val_bits(a, from - n, 64);
		else if (from + 64 > n)
			v = a->w[0] << (n - from);
		ret->w[i] = v;
	}
}

static void shift(const struct ir_rec *rec, const struct ir_val *a, uint64_t count, struct ir_val *ret)
{
	unsigned bits = ir_bits((enum ir_width)rec->width);
	unsigned n = count > bits ? bits : (unsigned)count;
	if (rec->op == IR_SHL) {
		shift_left(a, n, ret);
		return;
	}
	for (unsigned i = 0; i < 8; i++)
		ret->w[i] = ir_val_bits(a, i * 64 + n, 64);
	if (rec->op == IR_ASHR && sign_of(a, bits)) {
		for (unsigned at = bits - n; at < bits; at += 64)
			ir_val_set_bits(ret, at, bits - at < 64 ? bits - at : 64, UINT64_MAX);
	}
}

/* -1, 0, 1: a before b, without sign. */
static int order_of(const struct ir_val *a, const struct ir_val *b)
{
	for (unsigned i = 8; i-- > 0;) {
		if (a->w[i] != b->w[i])
			return a->w[i] < b->w[i] ? -1 : 1;
	}
	return 0;
}

static bool compare(enum ir_kind kind, const struct ir_val *a, const struct ir_val *b, unsigned bits)
{
	int u = order_of(a, b);
	bool sa = sign_of(a, bits), sb = sign_of(b, bits);
	int s = sa == sb ? u : sa ? -1 : 1;
	switch (kind) {
	case IR_CMP_EQ:
		return u == 0;
	case IR_CMP_ULT:
		return u < 0;
	case IR_CMP_ULE:
		return u <= 0;
	case IR_CMP_SLT:
		return s < 0;
	default:
		return s <= 0;
	}
}

static void extend(const struct ir_rec *rec, unsigned from, const struct ir_val *a, struct ir_val *ret)
{
	unsigned to = ir_bits((enum ir_width)rec->width);
	memcpy(ret->w, a->w, sizeof(a->w));
	if (rec->op == IR_ZEXT || !sign_of(a, from))
		return;
	for (unsigned at = from; at < to; at += 64)
		ir_val_set_bits(ret, at, to - at < 64 ? to - at : 64, UINT64_MAX);
}

static void insert(const struct ir_val *a, const struct ir_val *b, unsigned off, unsigned bits, struct ir_val *ret)
{
	memcpy(ret->w, a->w, sizeof(a->w));
	for (unsigned done = 0; done < bits; done += 64)
		ir_val_set_bits(ret, off + done, bits - done < 64 ? bits - done : 64, b->w[done / 64]);
}

/* --- up to 64 bits ----------------------------------------------------------------------------------------- */
static uint64_t mulh(enum ir_kind kind, uint64_t a, uint64_t b, unsigned bits)
{
	if (kind == IR_MULH_U)
		return (uint64_t)((unsigned __int128)a * b >> bits);
	return (uint64_t)((__int128)sext64(a, bits) * sext64(b, bits) >> bits);
}

/* The double-width dividend hi:lo; false: traps. */
static bool divide(unsigned which, unsigned __int128 dividend, uint64_t b, unsigned bits, uint64_t *ret)
{
	bool is_signed = which >= 2;
	unsigned __int128 n = dividend, d = b;
	unsigned dbits = 2 * bits;
	bool neg_n = is_signed && (n >> (dbits - 1) & 1);
	bool neg_d = is_signed && (b >> (bits - 1) & 1);
	unsigned __int128 mask = dbits == 128 ? ~(unsigned __int128)0 : ((unsigned __int128)1 << dbits) - 1;
	if (b == 0)
		return false;
	if (neg_n)
		n = (0 - n) & mask;
	if (neg_d)
		d = (0 - d) & (((unsigned __int128)1 << bits) - 1);
	unsigned __int128 q = n / d, r = n % d;
	unsigned __int128 max = ((unsigned __int128)1 << (is_signed ? bits - 1 : bits)) - 1;
	if (q > max + (neg_n != neg_d ? 1 : 0))
		return false;
	if (which % 2)
		*ret = (uint64_t)(neg_n ? 0 - r : r);
	else
		*ret = (uint64_t)(neg_n != neg_d ? 0 - q : q);
	return true;
}

static bool eval_div(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	unsigned bits = ir_bits((enum ir_width)rec->width);
	if (rec->op == IR_DIV) {
		unsigned which = rec->kind - IR_DIV_UQUOT;
		uint64_t a = v[0]->w[0];
		unsigned __int128 n = a;
		if (which >= 2) {
			n = (unsigned __int128)(__int128)sext64(a, bits);
			n &= bits == 64 ? ~(unsigned __int128)0 : ((unsigned __int128)1 << 2 * bits) - 1;
		}
		return divide(which, n, v[1]->w[0], bits, &ret->w[0]);
	}
	unsigned __int128 n = (unsigned __int128)v[0]->w[0] << bits | v[1]->w[0];
	return divide(rec->kind - IR_DIVW_UQUOT, n, v[2]->w[0], bits, &ret->w[0]);
}

static uint64_t rotate(enum ir_kind kind, uint64_t a, uint64_t count, unsigned bits)
{
	unsigned n = (unsigned)(count % bits);
	if (kind == IR_ROT_R)
		n = (bits - n) % bits;
	return n ? a << n | a >> (bits - n) : a;
}

static uint64_t funnel(uint64_t hi, uint64_t lo, uint64_t count, unsigned bits)
{
	unsigned __int128 both = (unsigned __int128)hi << bits | lo;
	return count >= 2 * bits ? 0 : (uint64_t)(both >> count);
}

static bool flag(enum ir_kind kind, uint64_t a, uint64_t b, uint64_t c, unsigned bits)
{
	__int128 sa = sext64(a, bits), sb = sext64(b, bits);
	__int128 max = ((__int128)1 << (bits - 1)) - 1;
	__int128 s = kind == IR_FLAG_OVF_ADD ? sa + sb + (__int128)c : sa - sb - (__int128)c;
	switch (kind) {
	case IR_FLAG_CARRY:
		return ((unsigned __int128)a + b + c) >> bits;
	case IR_FLAG_BORROW:
		return (unsigned __int128)a < (unsigned __int128)b + c;
	default:
		return s > max || s < -max - 1;
	}
}

static bool mul_overflows(uint64_t a, uint64_t b, unsigned bits)
{
	__int128 p = (__int128)sext64(a, bits) * sext64(b, bits);
	__int128 max = ((__int128)1 << (bits - 1)) - 1;
	return p > max || p < -max - 1;
}

static uint64_t bits_of(enum ir_kind kind, uint64_t a, unsigned bits)
{
	uint64_t r = 0;
	switch (kind) {
	case IR_BITS_CLZ:
		return a ? (uint64_t)__builtin_clzll(a) - (64 - bits) : bits;
	case IR_BITS_CTZ:
		return a ? (uint64_t)__builtin_ctzll(a) : bits;
	case IR_BITS_POPCNT:
		return (uint64_t)__builtin_popcountll(a);
	default:
		for (unsigned i = 0; i < bits; i += 8)
			r |= (a >> i & 0xff) << (bits - 8 - i);
		return r;
	}
}

static uint64_t scatter(enum ir_kind kind, uint64_t a, uint64_t mask)
{
	uint64_t r = 0;
	unsigned at = 0;
	for (unsigned i = 0; i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		if (kind == IR_BITS2_PDEP)
			r |= (a >> at & 1) << i;
		else
			r |= (a >> i & 1) << at;
		at++;
	}
	return r;
}

static bool eval_int(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_kind kind = (enum ir_kind)rec->kind;
	unsigned bits = ir_bits((enum ir_width)rec->width);
	uint64_t a = v[0]->w[0], b = v[1]->w[0], c = v[2]->w[0];
	switch (rec->op) {
	case IR_MULH:
		ret->w[0] = mulh(kind, a, b, bits);
		return true;
	case IR_DIV:
	case IR_DIVW:
		return eval_div(rec, v, ret);
	case IR_ROT:
		ret->w[0] = rotate(kind, a, b, bits);
		return true;
	case IR_FSHR:
		ret->w[0] = funnel(a, b, c, bits);
		return true;
	case IR_FLAG:
		ret->w[0] = flag(kind, a, b, c, ir_bits(x));
		return true;
	case IR_MULOVF:
		ret->w[0] = mul_overflows(a, b, ir_bits(x));
		return true;
	case IR_PARITY:
		ret->w[0] = ~__builtin_popcountll(a & 0xff) & 1;
		return true;
	case IR_BITS:
		ret->w[0] = bits_of(kind, a, bits);
		return true;
	case IR_BITS2:
		ret->w[0] = scatter(kind, a, b);
		return true;
	default:
		return false;
	}
}

static bool eval_any(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret)
{
	switch (rec->op) {
	case IR_ADD:
	case IR_SUB:
		add_wide(v[0], v[1], rec->op == IR_SUB, ret);
		return true;
	case IR_MUL:
		mul_wide(v[0], v[1], ret);
		return true;
	case IR_AND:
		for (unsigned i = 0; i < 8; i++)
			ret->w[i] = v[0]->w[i] & v[1]->w[i];
		return true;
	case IR_OR:
		for (unsigned i = 0; i < 8; i++)
			ret->w[i] = v[0]->w[i] | v[1]->w[i];
		return true;
	case IR_XOR:
		for (unsigned i = 0; i < 8; i++)
			ret->w[i] = v[0]->w[i] ^ v[1]->w[i];
		return true;
	case IR_SHL:
	case IR_LSHR:
	case IR_ASHR:
		shift(rec, v[0], v[1]->w[0], ret);
		return true;
	case IR_ZEXT:
	case IR_SEXT:
		extend(rec, ir_bits(x), v[0], ret);
		return true;
	case IR_EXTRACT:
		for (unsigned i = 0; i < 8; i++)
			ret->w[i] = ir_val_bits(v[0], rec->aux + 64 * i, 64);
		return true;
	case IR_CONCAT:
		insert(v[1], v[0], ir_bits(x), ir_bits(x), ret);
		return true;
	case IR_CMP:
		ret->w[0] = compare((enum ir_kind)rec->kind, v[0], v[1], ir_bits(x));
		return true;
	case IR_SEL:
		memcpy(ret->w, v[v[0]->w[0] & 1 ? 1 : 2]->w, sizeof(ret->w));
		return true;
	default:
		return eval_int(rec, x, v, ret);
	}
}

/* A selection is known when what it selects is; the same of an `and` with a known 0 and an `or` with a known 1. */
static bool undef_of(const struct ir_rec *rec, const struct ir_val *const v[3])
{
	if (rec->op == IR_SEL)
		return v[0]->is_undef || v[v[0]->w[0] & 1 ? 1 : 2]->is_undef;
	if (rec->width == IR_W1 && (rec->op == IR_AND || rec->op == IR_OR)) {
		uint64_t decides = rec->op == IR_OR;
		if ((!v[0]->is_undef && v[0]->w[0] == decides) || (!v[1]->is_undef && v[1]->w[0] == decides))
			return false;
	}
	return v[0]->is_undef || v[1]->is_undef || v[2]->is_undef;
}

bool ir_eval(const struct ir_rec *rec, enum ir_width x, const struct ir_val *a, const struct ir_val *b,
	     const struct ir_val *c, struct ir_val *ret)
{
	static const struct ir_val zero;
	const struct ir_val *const v[3] = {a ? a : &zero, b ? b : &zero, c ? c : &zero};
	struct ir_val r = {.is_undef = undef_of(rec, v)};
	bool ok = true;
	switch (rec->op) {
	case IR_GADDR:
		r = *v[0];
		break;
	case IR_INSERT:
		insert(v[0], v[1], rec->aux, ir_bits(x), &r);
		break;
	case IR_FBIN:
	case IR_FUN:
	case IR_FMA:
	case IR_FCMP:
	case IR_FCVT:
	case IR_FTOI:
	case IR_ITOF:
		ir_eval_float(rec, x, v, &r);
		break;
	case IR_VMAP:
	case IR_VSHIFT:
	case IR_VPERM:
	case IR_VMASK:
	case IR_VCVT:
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
	case IR_VSAD:
		ir_eval_vec(rec, x, v, &r);
		break;
	default:
		ok = eval_any(rec, x, v, &r);
	}
	ir_val_cut(&r, ir_bits((enum ir_width)rec->width));
	*ret = r;
	return ok;
}
