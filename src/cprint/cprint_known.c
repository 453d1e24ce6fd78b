/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

/* Comparisons whose result is seen from how they are written: compilers warn of them. */

static bool const_arg(const struct cprint_form *f, unsigned i, uint64_t *ret)
{
	return ir_const_get(f->p->f, i ? f->rec->b : f->rec->a, ret);
}

/* Whether two operands are written alike. As deep as expressions nest. */
static bool is_same(struct cprint_printer *p, ir_ref a, ir_ref b)
{
	if (a == b)
		return true;
	const struct ir_rec *x = cprint_inline(p, a), *y = cprint_inline(p, b);
	if (!x || !y || x->op != y->op || x->kind != y->kind || x->width != y->width || x->aux != y->aux ||
	    (ir_op_info((enum ir_op)x->op)->effects & ~(unsigned)IR_READS_LOC))
		return false;
	return is_same(p, x->a, y->a) && is_same(p, x->b, y->b) && is_same(p, x->c, y->c);
}

/* Of (x & mask) == v and (x | mask) == v: that v has other bits. */
static bool masks_differ(const struct cprint_form *f, uint64_t v)
{
	const struct ir_rec *a = cprint_inline(f->p, f->rec->a);
	uint64_t mask;
	if (!a || !ir_const_get(f->p->f, a->b, &mask))
		return false;
	return (a->op == IR_AND && (v & ~mask)) || (a->op == IR_OR && (mask & ~v));
}

/* What a value can be, read as a comparison does, by what it was widened from; false: all its width allows. */
static bool range_of(struct cprint_printer *p, ir_ref r, bool is_signed, int64_t *lo, uint64_t *hi)
{
	const struct ir_rec *rec = cprint_inline(p, r);
	unsigned bits = rec && (rec->op == IR_ZEXT || rec->op == IR_SEXT) ? ir_bits(ir_ref_width(p->f, rec->a)) : 0;
	if (!bits || bits > 32 || (rec->op == IR_SEXT && !is_signed))
		return false;
	bool has_sign = rec->op == IR_SEXT && bits > 1;
	*lo = rec->op == IR_SEXT ? -((int64_t)1 << (bits - 1)) : 0;
	*hi = rec->op == IR_SEXT && !has_sign ? 0 : ((uint64_t)1 << (bits - has_sign)) - 1;
	return true;
}

/* Of a comparison of what has a range with a number: 0 and 1, or 2 when it may be either. */
static unsigned known_range(enum ir_kind kind, int64_t lo, uint64_t hi, uint64_t number, bool is_signed, bool is_first)
{
	bool below = is_signed && (int64_t)number < lo, above = !(is_signed && (int64_t)number < 0) && number > hi;
	bool at_lo = is_signed ? (int64_t)number == lo : !number, at_hi = !below && number == hi;
	bool or_equal = kind == IR_CMP_ULE || kind == IR_CMP_SLE;
	if (kind == IR_CMP_EQ)
		return below || above ? 0 : 2;
	if (is_first) /* number < value */
		return below || (or_equal && at_lo) ? 1 : above || (!or_equal && at_hi) ? 0 : 2;
	return above || (or_equal && at_hi) ? 1 : below || (!or_equal && at_lo) ? 0 : 2;
}

static int64_t sign_of(uint64_t v, unsigned bits)
{
	return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* Compilers warn of comparisons whose result is known: "0", "1"; null for one that is not. */
const char *cprint_known_compare(const struct cprint_form *f)
{
	enum ir_kind kind = (enum ir_kind)f->rec->kind;
	bool or_equal = kind == IR_CMP_ULE || kind == IR_CMP_SLE;
	unsigned bits = ir_bits(f->x);
	uint64_t a = 0, b = 0, ones = UINT64_MAX >> (64 - bits % 65);
	if (is_same(f->p, f->rec->a, f->rec->b))
		return or_equal || kind == IR_CMP_EQ ? "1" : "0";
	if (bits > 64)
		return NULL;
	bool has_a = const_arg(f, 0, &a), has_b = const_arg(f, 1, &b);
	bool is_signed = kind == IR_CMP_SLT || kind == IR_CMP_SLE;
	bool reads_sign = is_signed || (kind == IR_CMP_EQ && bits > 1);
	int64_t lo;
	uint64_t hi, number = reads_sign ? (uint64_t)sign_of(has_b ? b : a, bits) : has_b ? b : a;
	if (has_a != has_b && range_of(f->p, has_b ? f->rec->a : f->rec->b, reads_sign, &lo, &hi)) {
		unsigned k = known_range(kind, lo, hi, number, reads_sign, has_a);
		return k == 2 ? NULL : k ? "1" : "0";
	}
	if (kind == IR_CMP_EQ)
		return has_b && masks_differ(f, b) ? "0" : NULL;
	uint64_t min = is_signed ? (ones >> 1) + 1 : 0, max = is_signed ? ones >> 1 : ones;
	if (or_equal)
		return (has_b && b == max) || (has_a && a == min) ? "1" : NULL;
	return (has_b && b == min) || (has_a && a == max) ? "0" : NULL;
}
