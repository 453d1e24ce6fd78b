/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <string.h>

/*
 * Operations as C expressions. What compilers and readers see most (sums, masks, comparisons, casts) is written here, the rest are
 * the C forms of ops.def with the operands put in.
 */

/* Integers are held in the type of their width, one bit in eight. */
void cprint_type(enum ir_width w, struct buf *text)
{
	static const char *const names[IR_W_COUNT] = {"void",	   "uint1_t",  "uint8_t",   "uint16_t",	 "uint32_t",
						      "uint64_t", "uint80_t", "uint128_t", "uint256_t", "uint512_t"};
	buf_add_str(text, names[w < IR_W_COUNT ? w : 0]);
}

static void put_cast(enum ir_width w, struct buf *text)
{
	buf_add_ch(text, '(');
	cprint_type(w, text);
	buf_add_ch(text, ')');
}

/* A number whose type does not matter. */
static void put_bare(uint64_t v, struct buf *text)
{
	if (v < 10)
		buf_add_ch(text, (char)('0' + v));
	else
		cprint_hex(text, v, "");
}

bool cprint_const(const struct ir_func *f, ir_ref r, enum cprint_how how, struct buf *text)
{
	enum ir_width w = ir_ref_width(f, r);
	const uint64_t *words = ir_const_words(f, r);
	if (!words)
		return false;
	if (ir_bits(w) > 128) {
		buf_printf(text, "(uint%u_t){{", ir_bits(w));
		for (unsigned i = 0; i < ir_words(w); i++)
			buf_printf(text, "%s0x%llxu", i ? ", " : "", (unsigned long long)words[i]);
		buf_add_str(text, "}}");
	} else if (ir_bits(w) > 64) {
		buf_add_str(text, "scry_u128(");
		cprint_hex(text, words[1], "u, ");
		cprint_hex(text, words[0], "u)");
	} else if (w == IR_W1 && how != CPRINT_LOOSE) {
		buf_add_str(text, words[0] ? "scry_known(1)" : "scry_known(0)");
	} else if (how != CPRINT_TIGHT) {
		put_bare(words[0], text);
	} else if (ir_bits(w) >= 32) {
		cprint_hex(text, words[0], w == IR_W64 ? "ull" : "u");
	} else {
		put_cast(w, text);
		cprint_hex(text, words[0], "");
	}
	return true;
}

/* --- operands ------------------------------------------------------------------------------------------------- */
static ir_ref ref_of(const struct cprint_form *f, unsigned i)
{
	return i == 0 ? f->rec->a : i == 1 ? f->rec->b : f->rec->c;
}

static bool put_arg(const struct cprint_form *f, unsigned i, enum cprint_how how, struct buf *text)
{
	if (f->p)
		return cprint_operand(f->p, ref_of(f, i), how, text);
	/* Of a shift of lanes, the count is that of all. */
	bool is_count = i == 1 && (f->rec->op == IR_SHL || f->rec->op == IR_LSHR || f->rec->op == IR_ASHR);
	buf_add_ch(text, is_count ? 'n' : (char)('x' + i));
	return true;
}

static bool is_const(const struct cprint_form *f, unsigned i)
{
	return f->p && ir_tag(ref_of(f, i)) == IR_TAG_CONST;
}

/* Operand i of a number of at most 64 bits. */
static bool const_arg(const struct cprint_form *f, unsigned i, uint64_t *ret)
{
	return f->p && ir_const_get(cprint_ir(f->p), ref_of(f, i), ret);
}

/* "%a OP %b"; the type is that of whichever is no number. */
static bool put_binary(const struct cprint_form *f, const char *op, struct buf *text)
{
	bool ok = put_arg(f, 0, is_const(f, 1) ? CPRINT_TIGHT : CPRINT_TYPED, text);
	buf_add_str(text, op);
	return put_arg(f, 1, is_const(f, 0) ? CPRINT_TIGHT : CPRINT_TYPED, text) && ok;
}

static bool put_form(const struct cprint_form *f, const char *form, struct buf *text)
{
	/* Arguments are converted to the types of the helper's parameters. */
	enum cprint_how how = form[0] == 's' ? CPRINT_LOOSE : CPRINT_TIGHT;
	bool ok = true;
	for (const char *p = form, *end; *p; p = end) {
		for (end = p; *end && *end != '%'; end++)
			;
		buf_add(text, p, (size_t)(end - p));
		if (!*end)
			break;
		switch (*++end) {
		case 'a':
		case 'b':
		case 'c':
			ok = put_arg(f, (unsigned)(*end - 'a'), how, text) && ok;
			break;
		case 'w':
			buf_add_dec(text, ir_bits((enum ir_width)f->rec->width));
			break;
		case 'x':
			buf_add_dec(text, ir_bits(f->x));
			break;
		case 'n':
			buf_add_dec(text, f->rec->aux);
			break;
		default:
			buf_add_ch(text, *end);
		}
		end++;
	}
	return ok;
}

static const char *form_of(enum ir_op op, enum ir_kind kind)
{
	return kind != IR_KIND_NONE && ir_kind_info(kind)->cform ? ir_kind_info(kind)->cform : ir_op_info(op)->cform;
}

/* --- integers ------------------------------------------------------------------------------------------------- */
bool cprint_is_loose(const struct ir_rec *rec)
{
	switch (rec->op) {
	case IR_ADD:
	case IR_SUB:
		return ir_bits((enum ir_width)rec->width) >= 32;
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_CMP:
	case IR_SEL:
	case IR_GADDR:
		return true;
	default:
		return false;
	}
}

static bool put_sum(const struct cprint_form *f, struct buf *text)
{
	unsigned bits = ir_bits((enum ir_width)f->rec->width);
	bool is_narrow = bits < 32, ok;
	uint64_t v;
	if (is_narrow) {
		put_cast((enum ir_width)f->rec->width, text);
		buf_add_ch(text, '(');
	}
	if (bits <= 64 && f->rec->op == IR_ADD && const_arg(f, 1, &v) && !is_const(f, 0) && v >> (bits - 1)) {
		/* A number that goes down. */
		ok = put_arg(f, 0, CPRINT_TIGHT, text);
		buf_add(text, " - ", 3);
		put_bare((0 - v) & (UINT64_MAX >> (64 - bits)), text);
	} else {
		ok = put_binary(f, f->rec->op == IR_ADD ? " + " : " - ", text);
	}
	if (is_narrow)
		buf_add_ch(text, ')');
	return ok;
}

static bool put_bits(const struct cprint_form *f, struct buf *text)
{
	unsigned bits = ir_bits((enum ir_width)f->rec->width);
	uint64_t v;
	if (f->rec->op == IR_XOR && bits <= 64 && const_arg(f, 1, &v) && v == UINT64_MAX >> (64 - bits)) {
		if (bits == 1)
			return cprint_condition(f->p, f->rec->a, true, text);
		if (bits < 32)
			put_cast((enum ir_width)f->rec->width, text);
		buf_add_ch(text, '~');
		return put_arg(f, 0, CPRINT_TIGHT, text);
	}
	return put_binary(f, f->rec->op == IR_AND ? " & " : f->rec->op == IR_OR ? " | " : " ^ ", text);
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
	if (!a || !ir_const_get(cprint_ir(f->p), a->b, &mask))
		return false;
	return (a->op == IR_AND && (v & ~mask)) || (a->op == IR_OR && (mask & ~v));
}

/* Compilers warn of comparisons whose result is known: "0", "1"; null for one that is not. */
static const char *known_compare(const struct cprint_form *f)
{
	enum ir_kind kind = (enum ir_kind)f->rec->kind;
	bool or_equal = kind == IR_CMP_ULE || kind == IR_CMP_SLE;
	unsigned bits = ir_bits(f->x);
	uint64_t a = 0, b = 0, ones = UINT64_MAX >> (64 - bits % 65);
	if (!f->p)
		return NULL;
	if (is_same(f->p, f->rec->a, f->rec->b))
		return or_equal || kind == IR_CMP_EQ ? "1" : "0";
	if (bits > 64)
		return NULL;
	bool has_a = const_arg(f, 0, &a), has_b = const_arg(f, 1, &b);
	if (kind == IR_CMP_EQ)
		return has_b && masks_differ(f, b) ? "0" : NULL;
	bool is_signed = kind == IR_CMP_SLT || kind == IR_CMP_SLE;
	uint64_t min = is_signed ? (ones >> 1) + 1 : 0, max = is_signed ? ones >> 1 : ones;
	if (or_equal)
		return (has_b && b == max) || (has_a && a == min) ? "1" : NULL;
	return (has_b && b == min) || (has_a && a == max) ? "0" : NULL;
}

/* An operand of a signed comparison. */
static bool put_signed(const struct cprint_form *f, unsigned i, struct buf *text)
{
	unsigned bits = ir_bits(f->x);
	uint64_t v;
	if (bits <= 64 && const_arg(f, i, &v)) {
		int64_t s = (int64_t)(v << (64 - bits)) >> (64 - bits);
		/* -0x80000000 would be unsigned. */
		if (s >= -INT32_MAX) {
			if (s < 0)
				buf_add_ch(text, '-');
			put_bare(s < 0 ? 0 - (uint64_t)s : (uint64_t)s, text);
			return true;
		}
	}
	buf_add_str(text, "(int");
	buf_add_dec(text, bits);
	buf_add_str(text, "_t)");
	return put_arg(f, i, CPRINT_TIGHT, text);
}

static bool put_compare(const struct cprint_form *f, bool is_negated, struct buf *text)
{
	const char *known = known_compare(f);
	if (known) {
		buf_add_str(text, (known[0] == '1') != is_negated ? "scry_known(1)" : "scry_known(0)");
		return true;
	}
	const char *op;
	bool is_signed = false, ok;
	switch (f->rec->kind) {
	case IR_CMP_EQ:
		op = is_negated ? " != " : " == ";
		break;
	case IR_CMP_SLT:
		is_signed = true;
		/* fall through */
	case IR_CMP_ULT:
		op = is_negated ? " >= " : " < ";
		break;
	case IR_CMP_SLE:
		is_signed = true;
		/* fall through */
	case IR_CMP_ULE:
		op = is_negated ? " > " : " <= ";
		break;
	default:
		return false;
	}
	if (!is_signed)
		return put_binary(f, op, text);
	if (f->x == IR_W1) {
		/* One bit with a sign: 1 is less than 0. */
		const struct ir_rec turned = {.op = IR_CMP, .width = IR_W1, .kind = f->rec->kind, .a = f->rec->b, .b = f->rec->a};
		const struct cprint_form t = {f->p, &turned, f->x};
		return f->p && put_binary(&t, op, text);
	}
	ok = put_signed(f, 0, text);
	buf_add_str(text, op);
	return put_signed(f, 1, text) && ok;
}

bool cprint_is_open_condition(const struct cprint_printer *p, ir_ref r)
{
	const struct ir_rec *rec = cprint_inline(p, r);
	uint64_t v;
	while (rec && rec->op == IR_XOR && ir_const_get(cprint_ir(p), rec->b, &v) && v == 1)
		rec = cprint_inline(p, rec->a);
	return rec && rec->op != IR_CMP && cprint_is_loose(rec);
}

bool cprint_condition(struct cprint_printer *p, ir_ref r, bool is_negated, struct buf *text)
{
	const struct ir_rec *rec = cprint_inline(p, r);
	uint64_t v;
	if (rec && rec->op == IR_CMP) {
		const struct cprint_form f = {p, rec, ir_ref_width(cprint_ir(p), rec->a)};
		return put_compare(&f, is_negated, text);
	}
	if (rec && rec->op == IR_XOR && ir_const_get(cprint_ir(p), rec->b, &v) && v == 1)
		return cprint_condition(p, rec->a, !is_negated, text);
	if (is_negated)
		buf_add_ch(text, '!');
	return cprint_operand(p, r, is_negated ? CPRINT_TIGHT : CPRINT_LOOSE, text);
}

static bool put_choice(const struct cprint_form *f, struct buf *text)
{
	const struct ir_rec *cond = f->p ? cprint_inline(f->p, f->rec->a) : NULL;
	bool ok = cond && cond->op == IR_CMP ? cprint_condition(f->p, f->rec->a, false, text) : put_arg(f, 0, CPRINT_TIGHT, text);
	buf_add(text, " ? ", 3);
	ok = put_arg(f, 1, CPRINT_TIGHT, text) && ok;
	buf_add(text, " : ", 3);
	return put_arg(f, 2, CPRINT_TIGHT, text) && ok;
}

static bool put_extract(const struct cprint_form *f, struct buf *text)
{
	if (f->rec->width == IR_W80)
		return put_form(f, "(%a >> %n & scry_u128(0xffff, 0xffffffffffffffffu))", text);
	if (f->rec->width == IR_W1)
		return put_form(f, f->rec->aux ? "(uint1_t)(%a >> %n & 1)" : "(uint1_t)(%a & 1)", text);
	if (f->rec->aux)
		return put_form(f, "(uint%w_t)(%a >> %n)", text);
	put_cast((enum ir_width)f->rec->width, text);
	return put_arg(f, 0, CPRINT_TIGHT, text);
}

/* Arithmetic modulo 2 is that of a wider type, cut. */
static bool one_bit(const struct cprint_form *f, struct buf *text)
{
	switch (f->rec->op) {
	case IR_ADD:
	case IR_SUB:
		return put_form(f, "(uint1_t)((%a ^ %b) & 1)", text);
	case IR_MUL:
		return put_form(f, "(uint1_t)(%a & %b)", text);
	case IR_EXTRACT:
		return put_extract(f, text);
	case IR_AND:
	case IR_OR:
	case IR_XOR:
		return put_bits(f, text);
	case IR_CMP:
		return put_compare(f, false, text);
	case IR_SEL:
		return put_choice(f, text);
	case IR_FLAG:
	case IR_MULOVF:
		return f->x != IR_W1 && put_form(f, form_of((enum ir_op)f->rec->op, (enum ir_kind)f->rec->kind), text);
	case IR_FCMP:
	case IR_PARITY:
		return put_form(f, form_of((enum ir_op)f->rec->op, (enum ir_kind)f->rec->kind), text);
	case IR_UNDEF:
		buf_add_ch(text, '0');
		return true;
	default:
		return false;
	}
}

/* --- vectors ------------------------------------------------------------------------------------------------- */
/* The operation of one lane over x, y and z. */
static bool lane_expr(const struct ir_rec *rec, struct buf *text)
{
	enum ir_op op = ir_lane_op(rec->aux);
	enum ir_kind kind = ir_lane_kind(rec->aux);
	enum ir_width lane = ir_lane_width(rec->aux);
	if (op == IR_VLANE) {
		if (lane == IR_W64 && kind != IR_VLANE_MINS && kind != IR_VLANE_MINU && kind != IR_VLANE_MAXS &&
		    kind != IR_VLANE_MAXU)
			return false;
		buf_printf(text, "scry_v%s%u(x, y)", ir_kind_info(kind)->text, ir_bits(lane));
		return true;
	}
	bool is_mask = ir_op_info(op)->signature[0] == '1';
	const struct ir_rec one = {.op = (uint8_t)op, .kind = (uint8_t)kind, .width = (uint8_t)(is_mask ? IR_W1 : lane)};
	const struct cprint_form f = {NULL, &one, lane};
	if (!is_mask)
		return cprint_form(&f, CPRINT_LOOSE, text);
	buf_add_str(text, "0 - (uint64_t)(");
	bool ok = cprint_form(&f, CPRINT_LOOSE, text);
	buf_add_ch(text, ')');
	return ok;
}

/* "NAME(w, lane, a, b, c, " */
static bool open_lanes(const struct cprint_form *f, unsigned w, unsigned lane, unsigned cnt, struct buf *text)
{
	bool ok = true;
	buf_printf(text, "SCRY_LANES(%u, %u, ", w, lane);
	for (unsigned i = 0; i < 3; i++) {
		if (i < cnt && ref_of(f, i) != IR_REF_NONE)
			ok = put_arg(f, i, CPRINT_LOOSE, text) && ok;
		else
			buf_add_ch(text, '0');
		buf_add(text, ", ", 2);
	}
	return ok;
}

static bool vector(const struct cprint_form *f, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	unsigned w = ir_bits((enum ir_width)rec->width);
	unsigned lane = ir_bits(ir_lane_width(rec->aux));
	if (!f->p || (w != 64 && w != 128 && rec->op != IR_VMASK) || ir_bits(f->x) > 128)
		return false;
	switch (rec->op) {
	case IR_VMAP: {
		bool ok = open_lanes(f, w, lane, 3, text) && lane_expr(rec, text);
		buf_add_ch(text, ')');
		return ok;
	}
	case IR_VSHIFT: {
		const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux), .width = (uint8_t)ir_lane_width(rec->aux)};
		const struct cprint_form lanes = {NULL, &one, (enum ir_width)one.width};
		bool ok = open_lanes(f, w, lane, 2, text) && cprint_form(&lanes, CPRINT_LOOSE, text);
		buf_add_ch(text, ')');
		return ok;
	}
	case IR_VPERM:
		return put_form(f, "scry_vperm%w(%a, %b, %c)", text);
	case IR_VMASK:
		buf_printf(text, "(uint%u_t)", w);
		return put_form(f, "scry_vmask%x(%a, %n)", text) && w >= 8 && ir_bits(f->x) >= 64;
	case IR_VPACK:
		return put_form(f, rec->kind == IR_VPACK_S ? "scry_vpack%w(%a, %b, %n, 1)" : "scry_vpack%w(%a, %b, %n, 0)", text);
	case IR_VMADD:
		return put_form(f, "scry_vmadd%w(%a, %b, %n)", text);
	case IR_VMULE:
		return put_form(f, rec->kind == IR_VMULE_S ? "scry_vmules%w(%a, %b, %n)" : "scry_vmuleu%w(%a, %b, %n)", text);
	default:
		return put_form(f, "scry_vsad%w(%a, %b)", text);
	}
}

/* The second operand is the width of the result's lanes. */
static bool convert(const struct cprint_form *f, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	unsigned w = ir_bits((enum ir_width)rec->width);
	uint64_t to = 0;
	enum ir_width to_w = const_arg(f, 1, &to) && to <= 512 ? ir_width_of((unsigned)to) : IR_W0, from = ir_lane_width(rec->aux);
	if (to_w == IR_W0 || (w != 64 && w != 128) || ir_bits(f->x) > 128)
		return false;
	const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux),
				   .kind = (uint8_t)ir_lane_kind(rec->aux),
				   .width = (uint8_t)to_w};
	const struct cprint_form lane = {NULL, &one, from};
	buf_printf(text, "SCRY_CONVERT(%u, %u, %u, %u, ", w, ir_bits(f->x), ir_bits(from), (unsigned)to);
	bool ok = put_arg(f, 0, CPRINT_LOOSE, text);
	buf_add(text, ", ", 2);
	ok = cprint_form(&lane, CPRINT_LOOSE, text) && ok;
	buf_add_ch(text, ')');
	return ok;
}

/* What there is for 80 bits, which live in an integer of 128. */
static bool has_80(const struct ir_rec *rec)
{
	switch (rec->op) {
	case IR_FBIN:
	case IR_FUN:
	case IR_FCMP:
	case IR_FCVT:
	case IR_FTOI:
	case IR_ITOF:
	case IR_LOAD:
	case IR_STORE:
	case IR_EXTRACT:
	case IR_ZEXT:
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_SEL:
	case IR_UNDEF:
		return true;
	case IR_CMP:
		return rec->kind == IR_CMP_EQ || rec->kind == IR_CMP_ULT || rec->kind == IR_CMP_ULE;
	case IR_INSERT:
		return rec->width == IR_W128;
	default:
		return false;
	}
}

bool cprint_form(const struct cprint_form *f, enum cprint_how how, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	switch (rec->op) {
	case IR_VMAP:
	case IR_VSHIFT:
	case IR_VPERM:
	case IR_VMASK:
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
	case IR_VSAD:
		return vector(f, text);
	case IR_VCVT:
		return convert(f, text);
	default:
		break;
	}
	/* Wider than the compiler's integers only moves. */
	bool is_wide = rec->width >= IR_W256 || f->x >= IR_W256;
	if (is_wide && rec->op != IR_LOAD && rec->op != IR_STORE)
		return false;
	if ((rec->width == IR_W80 || f->x == IR_W80) && !has_80(rec))
		return false;
	if (rec->width == IR_W1)
		return one_bit(f, text);
	switch (rec->op) {
	case IR_ADD:
	case IR_SUB:
		return put_sum(f, text);
	case IR_AND:
	case IR_OR:
	case IR_XOR:
		return put_bits(f, text);
	case IR_CMP:
	case IR_FCMP:
		return false;
	case IR_SEL:
		return put_choice(f, text);
	case IR_EXTRACT:
		return put_extract(f, text);
	case IR_ZEXT:
		if (how != CPRINT_LOOSE)
			put_cast((enum ir_width)rec->width, text);
		return put_arg(f, 0, how == CPRINT_LOOSE ? CPRINT_LOOSE : CPRINT_TIGHT, text);
	case IR_INSERT:
		if (rec->width == f->x)
			return put_arg(f, 1, CPRINT_TIGHT, text);
		break;
	case IR_UNDEF:
		if (how != CPRINT_LOOSE)
			put_cast((enum ir_width)rec->width, text);
		buf_add_ch(text, '0');
		return true;
	default:
		break;
	}
	const char *form = form_of((enum ir_op)rec->op, (enum ir_kind)rec->kind);
	return form && put_form(f, form, text);
}
