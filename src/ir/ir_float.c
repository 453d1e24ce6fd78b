/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * Floating point, in the arithmetic of the machine scry runs on (IEEE 754, so the same everywhere) with the rules for NaNs
 * made explicit: hardware differs there. Width 80 needs the long double of x86; elsewhere its results are marked unknown.
 */
#define HAS_X87 (LDBL_MANT_DIG == 64)

static float f32_of(const struct ir_val *v)
{
	uint32_t bits = (uint32_t)v->w[0];
	float f;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

static double f64_of(const struct ir_val *v)
{
	double f;
	memcpy(&f, &v->w[0], sizeof(f));
	return f;
}

static long double f80_of(const struct ir_val *v)
{
	long double f = 0;
	memcpy(&f, v->w, HAS_X87 ? 10 : 0);
	return f;
}

static long double any_of(enum ir_width w, const struct ir_val *v)
{
	if (w == IR_W80)
		return f80_of(v);
	return w == IR_W32 ? (long double)f32_of(v) : (long double)f64_of(v);
}

static void set_f32(struct ir_val *ret, float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof(f));
	ret->w[0] = bits;
}

static void set_f64(struct ir_val *ret, double f)
{
	memcpy(&ret->w[0], &f, sizeof(f));
}

static void set_f80(struct ir_val *ret, long double f)
{
	memset(ret->w, 0, 16);
	memcpy(ret->w, &f, HAS_X87 ? 10 : 0);
	if (!HAS_X87)
		ret->is_undef = true;
}

/* --- NaNs -------------------------------------------------------------------------------------------------- */
static bool is_nan(enum ir_width w, const struct ir_val *v)
{
	if (w == IR_W32)
		return (v->w[0] & 0x7fffffff) > 0x7f800000;
	if (w == IR_W64)
		return (v->w[0] & INT64_MAX) > (uint64_t)0x7ff << 52;
	return isnan(f80_of(v));
}

static uint64_t quiet_bit(enum ir_width w)
{
	return w == IR_W32 ? (uint64_t)1 << 22 : w == IR_W64 ? (uint64_t)1 << 51 : (uint64_t)1 << 62;
}

static void set_default_nan(enum ir_width w, struct ir_val *ret)
{
	ret->w[0] = w == IR_W32 ? 0xffc00000 : w == IR_W64 ? (uint64_t)0xfff8 << 48 : (uint64_t)3 << 62;
	ret->w[1] = w == IR_W80 ? 0xffff : 0;
}

/* A NaN among the first `cnt` operands becomes the result. */
static bool took_nan(enum ir_width w, const struct ir_val *const v[3], unsigned cnt, struct ir_val *ret)
{
	for (unsigned i = 0; i < cnt; i++) {
		if (!is_nan(w, v[i]))
			continue;
		memcpy(ret->w, v[i]->w, sizeof(ret->w));
		ret->w[0] |= quiet_bit(w);
		return true;
	}
	return false;
}

/* --- arithmetic -------------------------------------------------------------------------------------------- */
#define ARITHMETIC(type, name)                          \
	static type name(enum ir_kind kind, type a, type b) \
	{                                               \
		switch (kind) {                         \
		case IR_FBIN_ADD:                       \
			return a + b;                   \
		case IR_FBIN_SUB:                       \
			return a - b;                   \
		case IR_FBIN_MUL:                       \
			return a * b;                   \
		case IR_FBIN_DIV:                       \
			return a / b;                   \
		case IR_FBIN_MINX:                      \
			return a < b ? a : b;           \
		default:                                \
			return a > b ? a : b;           \
		}                                       \
	}

ARITHMETIC(float, arith32)
ARITHMETIC(double, arith64)
ARITHMETIC(long double, arith80)

static void eval_fbin(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_kind kind = (enum ir_kind)rec->kind;
	enum ir_width w = (enum ir_width)rec->width;
	if (kind == IR_FBIN_MINX || kind == IR_FBIN_MAXX) {
		/* Chosen, not computed: a NaN stays as it is. */
		bool is_first = kind == IR_FBIN_MINX ? any_of(w, v[0]) < any_of(w, v[1]) : any_of(w, v[0]) > any_of(w, v[1]);
		memcpy(ret->w, v[is_first ? 0 : 1]->w, sizeof(ret->w));
		return;
	}
	if (took_nan(w, v, 2, ret))
		return;
	if (w == IR_W32)
		set_f32(ret, arith32(kind, f32_of(v[0]), f32_of(v[1])));
	else if (w == IR_W64)
		set_f64(ret, arith64(kind, f64_of(v[0]), f64_of(v[1])));
	else
		set_f80(ret, arith80(kind, f80_of(v[0]), f80_of(v[1])));
	if (is_nan(w, ret))
		set_default_nan(w, ret);
}

/* Exact for the narrower widths too: rounding to an integer gives what they can hold. */
static long double to_integer(enum ir_kind kind, long double a)
{
	switch (kind) {
	case IR_FUN_FLOOR:
		return floorl(a);
	case IR_FUN_CEIL:
		return ceill(a);
	case IR_FUN_TRUNC:
		return truncl(a);
	case IR_FUN_NEAREST: {
		long double down = floorl(a), rest = a - down;
		bool is_odd = fmodl(down, 2) != 0;
		return copysignl(rest > 0.5L || (rest == 0.5L && is_odd) ? down + 1 : down, a);
	}
	default:
		return rintl(a);
	}
}

static void eval_fun(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_kind kind = (enum ir_kind)rec->kind;
	enum ir_width w = (enum ir_width)rec->width;
	unsigned bits = ir_bits(w);
	if (kind == IR_FUN_ABS || kind == IR_FUN_NEG) {
		memcpy(ret->w, v[0]->w, sizeof(ret->w));
		uint64_t sign = kind == IR_FUN_ABS ? 0 : !ir_val_bits(v[0], bits - 1, 1);
		ir_val_set_bits(ret, bits - 1, 1, sign);
		return;
	}
	if (took_nan(w, v, 1, ret))
		return;
	if (kind == IR_FUN_SQRT && w == IR_W32)
		set_f32(ret, sqrtf(f32_of(v[0])));
	else if (kind == IR_FUN_SQRT && w == IR_W64)
		set_f64(ret, sqrt(f64_of(v[0])));
	else if (kind == IR_FUN_SQRT)
		set_f80(ret, sqrtl(f80_of(v[0])));
	else if (w == IR_W32)
		set_f32(ret, (float)to_integer(kind, any_of(w, v[0])));
	else if (w == IR_W64)
		set_f64(ret, (double)to_integer(kind, any_of(w, v[0])));
	else
		set_f80(ret, to_integer(kind, any_of(w, v[0])));
	if (is_nan(w, ret))
		set_default_nan(w, ret);
}

static void eval_fma(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_width w = (enum ir_width)rec->width;
	if (took_nan(w, v, 3, ret))
		return;
	if (w == IR_W32)
		set_f32(ret, fmaf(f32_of(v[0]), f32_of(v[1]), f32_of(v[2])));
	else
		set_f64(ret, fma(f64_of(v[0]), f64_of(v[1]), f64_of(v[2])));
	if (is_nan(w, ret))
		set_default_nan(w, ret);
}

/* --- comparisons and conversions --------------------------------------------------------------------------- */
static bool compare(enum ir_kind kind, enum ir_width x, const struct ir_val *const v[3])
{
	if (is_nan(x, v[0]) || is_nan(x, v[1]))
		return kind == IR_FCMP_UNO;
	long double a = any_of(x, v[0]), b = any_of(x, v[1]);
	return kind == IR_FCMP_OEQ ? a == b : kind == IR_FCMP_OLT ? a < b : kind == IR_FCMP_OLE ? a <= b : false;
}

static void eval_fcvt(const struct ir_rec *rec, enum ir_width x, const struct ir_val *a, struct ir_val *ret)
{
	enum ir_width w = (enum ir_width)rec->width;
	if (w == IR_W64)
		set_f64(ret, x == IR_W32 ? (double)f32_of(a) : (double)f80_of(a));
	else if (w == IR_W32)
		set_f32(ret, x == IR_W64 ? (float)f64_of(a) : (float)f80_of(a));
	else
		set_f80(ret, any_of(x, a));
	if (is_nan(w, ret))
		ret->w[0] |= quiet_bit(w);
}

static void eval_ftoi(const struct ir_rec *rec, enum ir_width x, const struct ir_val *a, struct ir_val *ret)
{
	unsigned bits = ir_bits((enum ir_width)rec->width);
	long double limit = ldexpl(1, (int)bits - 1);
	ret->w[0] = (uint64_t)1 << (bits - 1);
	if (is_nan(x, a))
		return;
	long double f = any_of(x, a);
	f = rec->kind == IR_FTOI_TRUNC ? truncl(f) : rintl(f);
	if (f >= -limit && f < limit)
		ret->w[0] = (uint64_t)(int64_t)f;
}

static void eval_itof(const struct ir_rec *rec, enum ir_width x, const struct ir_val *a, struct ir_val *ret)
{
	uint64_t u = a->w[0];
	unsigned bits = ir_bits(x);
	int64_t s = bits == 64 ? (int64_t)u : (int64_t)(u << (64 - bits)) >> (64 - bits);
	bool is_signed = rec->kind == IR_ITOF_S;
	if (rec->width == IR_W32)
		set_f32(ret, is_signed ? (float)s : (float)u);
	else if (rec->width == IR_W64)
		set_f64(ret, is_signed ? (double)s : (double)u);
	else
		set_f80(ret, is_signed ? (long double)s : (long double)u);
}

void ir_eval_float(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret)
{
	switch (rec->op) {
	case IR_FBIN:
		eval_fbin(rec, v, ret);
		break;
	case IR_FUN:
		eval_fun(rec, v, ret);
		break;
	case IR_FMA:
		eval_fma(rec, v, ret);
		break;
	case IR_FCMP:
		ret->w[0] = compare((enum ir_kind)rec->kind, x, v);
		break;
	case IR_FCVT:
		eval_fcvt(rec, x, v[0], ret);
		break;
	case IR_FTOI:
		eval_ftoi(rec, x, v[0], ret);
		break;
	default:
		eval_itof(rec, x, v[0], ret);
	}
	if (!HAS_X87 && x == IR_W80)
		ret->is_undef = true;
}
