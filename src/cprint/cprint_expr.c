/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_cast.h"

#include <string.h>

/*
 * Operations as C expressions. What compilers and readers see most is written with C's operators, the rest are the C forms of ops.def
 * with the operands put in.
 *
 * An expression is written as C has it, then it is known what type it has and what its value says, and only where that is not what is
 * wanted around it a cast is put before it, by C's own conversions (C11 6.3.1.8), as parentheses are.
 */

static struct expr put(const struct cprint_form *f, unsigned i, enum want want, struct buf *text);
static struct expr put_ref(struct cprint_printer *p, ir_ref r, enum want want, struct buf *text);
static struct expr put_form(const struct cprint_form *f, enum want want, struct buf *text);

/* Integers are held in the type of their width, one bit in eight. */
void cprint_type(enum ir_width w, struct buf *text)
{
	static const char *const names[IR_W_COUNT] = {"void",	   "uint1_t",  "uint8_t",   "uint16_t",	 "uint32_t",
						      "uint64_t", "uint80_t", "uint128_t", "uint256_t", "uint512_t"};
	buf_add_str(text, names[w < IR_W_COUNT ? w : 0]);
}

/* --- numbers ---------------------------------------------------------------------------------------------------- */
enum look { AS_NUMBER, AS_BITS, AS_OFFSET };

static void put_digits(uint64_t v, enum look look, struct buf *text)
{
	bool is_decimal = v < 10 || (look == AS_NUMBER && (v < 1000 || (v <= 1000000000 && v % 1000 == 0)));
	if (is_decimal)
		buf_add_dec(text, v);
	else
		cprint_hex(text, v, "");
}

/* The type C gives a literal: decimal ones are signed and fit, hexadecimal ones may be unsigned. */
static struct expr literal_type(uint64_t v)
{
	struct expr e = {.ok = true, .u = true, .is_number = true, .prec = P_PRIMARY};
	e.bits = v <= UINT32_MAX ? 32 : 64;
	e.is_signed = v <= INT32_MAX || (v > UINT32_MAX && v <= INT64_MAX);
	return e;
}

static struct expr put_literal(uint64_t v, enum ir_width w, enum look look, struct buf *text)
{
	struct expr e = literal_type(v);
	put_digits(v, look, text);
	e.s = !(v >> (ir_bits(w) - 1) & 1);
	return e;
}

/* The characters people compare bytes with; null for others. */
static bool put_char(uint64_t v, struct buf *text)
{
	static const char names[] = "\a\b\t\n\v\f\r", letters[] = "abtnvfr";
	const char *named = v ? memchr(names, (int)v, sizeof(names) - 1) : NULL;
	if (!named && (v < 0x20 || v > 0x7e))
		return false;
	buf_add_ch(text, '\'');
	if (named || v == '\'' || v == '\\')
		buf_add_ch(text, '\\');
	buf_add_ch(text, named ? letters[named - names] : (char)v);
	buf_add_ch(text, '\'');
	return true;
}

static struct expr put_number(uint64_t v, enum ir_width w, enum want want, enum look look, struct buf *text)
{
	unsigned bits = ir_bits(w);
	uint64_t ones = UINT64_MAX >> (64 - bits), down = (0 - v) & ones;
	bool is_negative = v >> (bits - 1) & 1;
	if (bits == 8 && look == AS_NUMBER && !is_negative && want != SIGNED && put_char(v, text))
		return (struct expr){.ok = true, .bits = 32, .is_signed = true, .u = true, .s = true, .is_number = true, .prec = P_PRIMARY};
	bool is_short = is_negative && down <= (want == SIGNED ? INT32_MAX : bits >= 32 ? 4096 : 0);
	if (!is_short || want == UNSIGNED || bits == 1) {
		struct expr e = put_literal(v, w, look, text);
		if (want == SIGNED && e.s && !e.is_signed) {
			/* The next type that has a sign. */
			buf_add_str(text, "ll");
			e.is_signed = true;
			e.bits = 64;
		}
		return e;
	}
	buf_add_ch(text, '-');
	struct expr e = put_literal(down, w, look, text);
	e.u = false;
	e.s = true;
	e.is_signed = true;
	e.prec = P_UNARY;
	return e;
}

bool cprint_const(const struct ir_func *f, ir_ref r, struct buf *text)
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
	} else {
		buf_add_str(text, "scry_u128(");
		cprint_hex(text, words[1], "u, ");
		cprint_hex(text, words[0], "u)");
	}
	return true;
}

static struct expr put_const(struct cprint_printer *p, ir_ref r, enum want want, struct buf *text)
{
	const struct ir_func *f = cprint_ir(p);
	enum ir_width w = ir_ref_width(f, r);
	uint64_t v;
	struct expr e = of_type(w, false, P_PRIMARY);
	size_t at = text->len;
	if (ir_const_get(f, r, &v))
		return convert_to(put_number(v, w, want, AS_NUMBER, text), at, w, want, text);
	e.ok = cprint_const(f, r, text);
	return e;
}

/* --- operands ------------------------------------------------------------------------------------------------- */
static ir_ref ref_of(const struct cprint_form *f, unsigned i)
{
	return i == 0 ? f->rec->a : i == 1 ? f->rec->b : f->rec->c;
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

static enum ir_width width_of(const struct cprint_form *f, unsigned i)
{
	return f->p ? ir_ref_width(cprint_ir(f->p), ref_of(f, i)) : f->x;
}

static struct expr put(const struct cprint_form *f, unsigned i, enum want want, struct buf *text)
{
	if (f->p)
		return put_ref(f->p, ref_of(f, i), want, text);
	/* Of a shift of lanes, the count is that of all. */
	bool is_count = i == 1 && (f->rec->op == IR_SHL || f->rec->op == IR_LSHR || f->rec->op == IR_ASHR);
	size_t at = text->len;
	buf_add_ch(text, is_count ? 'n' : (char)('x' + i));
	return convert_to(of_type(is_count ? IR_W64 : f->x, false, P_PRIMARY), at, f->x, want, text);
}

static struct expr put_tight(const struct cprint_form *f, unsigned i, enum want want, enum prec prec, struct buf *text)
{
	size_t at = text->len;
	struct expr e = put(f, i, want, text);
	enclose(text, at, &e, prec);
	return e;
}

/* "%a %b %c %w %x %n": a helper with its arguments, which its parameters convert. */
static struct expr put_helper(const struct cprint_form *f, const char *form, struct buf *text)
{
	struct expr e = of_type((enum ir_width)f->rec->width, false, P_PRIMARY);
	for (const char *p = form, *end; p && *p; p = end) {
		for (end = p; *end && *end != '%'; end++)
			;
		buf_add(text, p, (size_t)(end - p));
		if (!*end)
			break;
		switch (*++end) {
		case 'a':
		case 'b':
		case 'c':
			e.ok = put_tight(f, (unsigned)(*end - 'a'), UNSIGNED, form[0] == 's' ? P_CHOICE : P_UNARY, text).ok && e.ok;
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
	e.ok = e.ok && form;
	return e;
}

static const char *form_of(enum ir_op op, enum ir_kind kind)
{
	return kind != IR_KIND_NONE && ir_kind_info(kind)->cform ? ir_kind_info(kind)->cform : ir_op_info(op)->cform;
}

/* --- integers ------------------------------------------------------------------------------------------------- */
/* Arithmetic modulo 2^w needs an unsigned type of that width: either operand is made that when neither is. */
static void make_unsigned(struct pair *x, enum ir_width w, struct buf *text)
{
	struct expr t = meet(x->a, x->b);
	if (!t.is_signed && t.bits == ir_bits(w))
		return;
	if (x->b.is_number && x->b.prec == P_PRIMARY && ir_bits(w) <= 64 && text->data[text->len - 1] != '\'')
		buf_add_str(text, w == IR_W64 ? "ull" : "u");
	else
		cast_first(x, w, false, text);
}

static struct expr put_sum(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	unsigned bits = ir_bits(w);
	bool is_narrow = bits < 32, is_add = f->rec->op == IR_ADD;
	struct pair x = {.at_a = text->len};
	uint64_t v, minuend;
	if (!is_add && const_arg(f, 0, &minuend) && !minuend && !is_const(f, 1)) {
		/* An operand that is no number says whether the type is unsigned. */
		buf_add_ch(text, '-');
		size_t at = text->len;
		struct expr e = put_tight(f, 1, is_narrow ? UNSIGNED : MODULO, P_PRIMARY, text);
		if (!is_narrow && (e.is_signed || e.bits != bits))
			e = cast(text, at, e, w, false);
		struct expr r = of_type(w, false, P_UNARY);
		r.ok = e.ok;
		return is_narrow ? cast(text, x.at_a, r, w, want == SIGNED) : r;
	}
	x.a = put_tight(f, 0, is_narrow ? UNSIGNED : MODULO, P_SUM, text);
	x.end_a = text->len;
	bool is_down = is_add && bits <= 64 && const_arg(f, 1, &v) && !is_const(f, 0) && v >> (bits - 1);
	buf_add_str(text, is_add && !is_down ? " + " : " - ");
	x.at_b = text->len;
	if (const_arg(f, 1, &v) && !is_const(f, 0)) {
		v = is_down ? (0 - v) & (UINT64_MAX >> (64 - bits)) : v;
		x.b = put_literal(v, w, w == IR_W64 ? AS_OFFSET : AS_NUMBER, text);
	} else {
		x.b = put_tight(f, 1, is_narrow ? UNSIGNED : MODULO, P_PRODUCT, text);
	}
	struct expr r = of_type(w, false, P_SUM);
	r.ok = x.a.ok && x.b.ok;
	if (is_narrow)
		return cast(text, x.at_a, r, w, want == SIGNED);
	make_unsigned(&x, w, text);
	return r;
}

static struct expr put_product(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	bool is_narrow = ir_bits(w) < 32;
	struct pair x = {.at_a = text->len};
	uint64_t v;
	x.a = put_tight(f, 0, is_narrow ? UNSIGNED : MODULO, P_PRODUCT, text);
	x.end_a = text->len;
	buf_add_str(text, " * ");
	x.at_b = text->len;
	x.b = const_arg(f, 1, &v) && !is_const(f, 0) ? put_literal(v, w, AS_NUMBER, text) :
						       put_tight(f, 1, is_narrow ? UNSIGNED : MODULO, P_UNARY, text);
	struct expr r = of_type(w, false, P_PRODUCT);
	r.ok = x.a.ok && x.b.ok;
	if (is_narrow) {
		/* Products of 16 bits overflow an int. */
		if (w == IR_W16)
			cast_first(&x, IR_W32, false, text);
		return cast(text, x.at_a, r, w, want == SIGNED);
	}
	make_unsigned(&x, w, text);
	return r;
}

/* A number beside & | ^: ~ of a small one where that is shorter. */
static struct expr put_mask(uint64_t v, enum ir_width w, struct buf *text)
{
	uint64_t ones = UINT64_MAX >> (64 - ir_bits(w)), clear = ~v & ones;
	if (ir_bits(w) < 32 || clear > 0xffff)
		return put_literal(v, w, AS_BITS, text);
	buf_add_ch(text, '~');
	struct expr e = put_literal(clear, w, AS_BITS, text);
	e.u = false;
	e.s = true;
	e.prec = P_UNARY;
	return e;
}

/* Compilers warn of bits that are known. */
static struct expr put_bit_side(const struct cprint_form *f, unsigned i, enum want want, struct buf *text)
{
	uint64_t v;
	if (f->rec->width != IR_W1 || !const_arg(f, i, &v))
		return put(f, i, want, text);
	buf_add_str(text, v ? "scry_known(1)" : "scry_known(0)");
	return of_type(IR_W1, false, P_PRIMARY);
}

static struct expr put_bits(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	unsigned bits = ir_bits(w);
	enum ir_op op = (enum ir_op)f->rec->op;
	size_t at = text->len;
	uint64_t v = 0;
	bool has_mask = bits <= 64 && const_arg(f, 1, &v) && !is_const(f, 0);
	enum want inner = bits < 32 && want == MODULO ? UNSIGNED : want;
	bool is_not = op == IR_XOR && has_mask && v == UINT64_MAX >> (64 - bits);
	if (is_not && bits == 1) {
		struct expr r = of_type(w, false, P_EQUAL);
		r.ok = cprint_condition(f->p, f->rec->a, true, text);
		return r;
	}
	/* ~ of what is true or false is a warning. */
	const struct ir_rec *of = is_not && f->p && ir_tag(f->rec->a) == IR_TAG_VALUE ? &cprint_ir(f->p)->recs[ir_index(f->rec->a)] : NULL;
	bool is_bool = of && of->op == IR_ZEXT && ir_ref_width(cprint_ir(f->p), of->a) == IR_W1;
	if (is_not && bits >= 32 && !is_bool) {
		buf_add_ch(text, '~');
		struct expr e = put_tight(f, 0, MODULO, P_UNARY, text);
		if (e.bits != bits)
			e = cast(text, at + 1, e, w, false);
		return (struct expr){.ok = e.ok, .bits = e.bits, .is_signed = e.is_signed, .u = !e.is_signed, .s = e.is_signed, .prec = P_UNARY};
	}
	/* gcc warns where it sees the opposite of fewer bits than an int compared. */
	if (is_not && bits < 32)
		return put_helper(f, "scry_not%w(%a)", text);
	/* A mask without the sign makes both readings the same. */
	bool is_cut = has_mask && op == IR_AND && !(v >> (bits - 1));
	enum prec prec = op == IR_AND ? P_AND : op == IR_OR ? P_OR : P_XOR;
	struct expr a = put_bit_side(f, 0, is_cut ? MODULO : inner, text);
	/* Chains of one operator need no parentheses, others people want. */
	if (!(a.prec == prec || a.prec >= P_UNARY))
		enclose(text, at, &a, P_PRIMARY);
	size_t end_a = text->len;
	buf_add_str(text, op == IR_AND ? " & " : op == IR_OR ? " | " : " ^ ");
	struct expr b = has_mask && bits > 1 ? put_mask(v, w, text) : put_bit_side(f, 1, inner, text);
	enclose(text, end_a + 3, &b, P_UNARY);
	struct expr r = meet(a, b);
	if (r.bits < bits && !is_cut && !(a.u && b.u) && !(a.s && b.s && r.is_signed)) {
		a = cast_part(text, at, end_a, a, w, false);
		r = meet(a, b);
	}
	bool fits = bits >= 32 && r.bits == bits;
	r.prec = (uint8_t)prec;
	r.u = is_cut || (fits && !r.is_signed) || (a.u && b.u);
	r.s = is_cut || (fits && r.is_signed) || (a.s && b.s);
	if (bits == 1)
		r = (struct expr){.ok = r.ok, .bits = 8, .u = true, .prec = (uint8_t)prec};
	return r;
}

/* Whether a count is less than the width. */
static bool count_fits(const struct cprint_form *f, unsigned i, unsigned bits)
{
	uint64_t v;
	if (!f->p)
		return false;
	const struct ir_func *fn = cprint_ir(f->p);
	ir_ref r = ref_of(f, i);
	for (unsigned depth = 0; depth < 4; depth++) {
		if (ir_const_get(fn, r, &v))
			return v < bits;
		if (ir_tag(r) != IR_TAG_VALUE)
			return false;
		const struct ir_rec *rec = &fn->recs[ir_index(r)];
		if (rec->op == IR_AND && ir_const_get(fn, rec->b, &v))
			return v < bits;
		if (rec->op != IR_ZEXT && (rec->op != IR_EXTRACT || rec->aux))
			return false;
		r = rec->a;
	}
	return false;
}

static struct expr put_shift(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	enum ir_op op = (enum ir_op)f->rec->op;
	unsigned bits = ir_bits(w);
	if (!count_fits(f, 1, bits))
		return put_helper(f, form_of(op, IR_KIND_NONE), text);
	size_t at = text->len;
	bool is_narrow = bits < 32;
	struct expr a = put(f, 0, op == IR_ASHR ? SIGNED : op == IR_LSHR || is_narrow ? UNSIGNED : MODULO, text);
	/* What was widened has fewer bits than it is shifted by, maybe; and a sign is not shifted out. */
	if (!is_narrow && (a.bits < bits || a.is_number || (op == IR_SHL && a.is_signed)))
		a = cast(text, at, a, w, op == IR_ASHR);
	enclose(text, at, &a, P_UNARY);
	buf_add_str(text, op == IR_SHL ? " << " : " >> ");
	uint64_t count;
	struct expr n = const_arg(f, 1, &count) ? put_literal(count, IR_W32, AS_NUMBER, text) : put_tight(f, 1, UNSIGNED, P_UNARY, text);
	struct expr r = meet(a, a);
	r.ok = a.ok && n.ok;
	r.prec = P_SHIFT;
	r.is_number = false;
	r.u = op == IR_LSHR || (op == IR_SHL && !is_narrow);
	r.s = op == IR_ASHR;
	return op == IR_SHL && is_narrow ? cast(text, at, r, w, want == SIGNED) : r;
}

static struct expr put_division(const struct cprint_form *f, struct buf *text)
{
	enum ir_kind kind = (enum ir_kind)f->rec->kind;
	bool is_signed = kind == IR_DIV_SQUOT || kind == IR_DIV_SREM;
	unsigned bits = ir_bits((enum ir_width)f->rec->width);
	size_t at = text->len;
	uint64_t v;
	if (!cprint_is_safe_division(f->p ? cprint_ir(f->p) : NULL, f->rec) || bits > 64 || !const_arg(f, 1, &v))
		return put_helper(f, form_of(IR_DIV, kind), text);
	struct expr a = put_tight(f, 0, is_signed ? SIGNED : UNSIGNED, P_UNARY, text);
	buf_add_str(text, kind == IR_DIV_UQUOT || kind == IR_DIV_SQUOT ? " / " : " % ");
	struct expr b = put_number(v, (enum ir_width)f->rec->width, is_signed ? SIGNED : UNSIGNED, AS_NUMBER, text);
	struct expr r = meet(a, b);
	if (is_signed ? !b.s || (!r.is_signed && !(a.u && b.u)) : !b.u) {
		/* A divisor that says its type only by a cast. */
		text->len = at;
		return put_helper(f, form_of(IR_DIV, kind), text);
	}
	r.prec = P_PRODUCT;
	r.u = !is_signed || (a.u && b.u);
	r.s = is_signed;
	return r;
}

/* --- comparisons ------------------------------------------------------------------------------------------------ */
/* Whether an operand says by itself that it has a sign. */
static bool says_sign(struct cprint_printer *p, ir_ref r)
{
	if (!p || ir_tag(r) != IR_TAG_VALUE)
		return false;
	const struct ir_rec *rec = &cprint_ir(p)->recs[ir_index(r)];
	if (!cprint_inline(p, r))
		return cprint_is_signed_value(p, r);
	if (rec->op == IR_GET)
		return cprint_is_signed_loc(p, rec->aux);
	return rec->op == IR_SEXT || rec->op == IR_ASHR || (rec->op == IR_DIV && (rec->kind == IR_DIV_SQUOT || rec->kind == IR_DIV_SREM));
}

static const char *compare_op(enum ir_kind kind, bool is_negated)
{
	switch (kind) {
	case IR_CMP_EQ:
		return is_negated ? " != " : " == ";
	case IR_CMP_SLT:
	case IR_CMP_ULT:
		return is_negated ? " >= " : " < ";
	case IR_CMP_SLE:
	case IR_CMP_ULE:
		return is_negated ? " > " : " <= ";
	default:
		return NULL;
	}
}

/* The operator between the same operands in the other order. */
static const char *turned_op(const char *op)
{
	return !strcmp(op, " < ") ? " > " : !strcmp(op, " <= ") ? " >= " : !strcmp(op, " > ") ? " < " : !strcmp(op, " >= ") ? " <= " : op;
}

static struct expr put_side(const struct cprint_form *f, unsigned i, enum want want, struct buf *text)
{
	uint64_t v;
	unsigned bits = ir_bits(f->x);
	size_t at = text->len;
	if (bits <= 64 && bits > 1 && const_arg(f, i, &v)) {
		struct expr e = put_number(v, f->x, want, AS_NUMBER, text);
		return convert_to(e, at, f->x, want, text);
	}
	return put_tight(f, i, want, P_SUM, text);
}

static struct expr put_compare(const struct cprint_form *f, bool is_negated, struct buf *text)
{
	enum ir_kind kind = (enum ir_kind)f->rec->kind;
	struct expr r = {.ok = true, .bits = 32, .is_signed = true, .u = true, .prec = kind == IR_CMP_EQ ? P_EQUAL : P_LESS};
	const char *known = f->p ? cprint_known_compare(f) : NULL, *op = compare_op(kind, is_negated);
	if (known) {
		buf_add_str(text, (known[0] == '1') != is_negated ? "scry_known(1)" : "scry_known(0)");
		return of_type(IR_W1, false, P_PRIMARY);
	}
	bool is_signed = kind == IR_CMP_SLT || kind == IR_CMP_SLE;
	if (!op)
		return (struct expr){0};
	if (is_signed && f->x == IR_W1) {
		/* One bit with a sign: 1 is less than 0. */
		const struct ir_rec turned = {.op = IR_CMP, .width = IR_W1, .kind = kind == IR_CMP_SLT ? IR_CMP_ULT : IR_CMP_ULE,
					      .a = f->rec->b, .b = f->rec->a};
		const struct cprint_form t = {f->p, &turned, f->x};
		return f->p ? put_compare(&t, is_negated, text) : (struct expr){0};
	}
	/* Equality is the same in both readings. */
	if (kind == IR_CMP_EQ && f->x != IR_W1)
		is_signed = (says_sign(f->p, f->rec->a) || says_sign(f->p, f->rec->b)) &&
			    (says_sign(f->p, f->rec->a) || is_const(f, 0)) + (says_sign(f->p, f->rec->b) || is_const(f, 1)) == 2;
	enum want want = is_signed ? SIGNED : UNSIGNED;
	/* Numbers stand behind. */
	unsigned first = is_const(f, 0) && !is_const(f, 1);
	struct pair x = {.at_a = text->len};
	x.a = put_side(f, first, want, text);
	x.end_a = text->len;
	buf_add_str(text, first ? turned_op(op) : op);
	x.at_b = text->len;
	x.b = put_side(f, !first, want, text);
	r.ok = x.a.ok && x.b.ok;
	make_alike(&x, f->x, is_signed, text);
	return r;
}

bool cprint_is_open_condition(const struct cprint_printer *p, ir_ref r)
{
	const struct ir_rec *rec = cprint_inline(p, r);
	uint64_t v;
	while (rec && rec->op == IR_XOR && ir_const_get(cprint_ir(p), rec->b, &v) && v == 1)
		rec = cprint_inline(p, rec->a);
	return rec && (rec->op == IR_AND || rec->op == IR_OR || rec->op == IR_XOR || rec->op == IR_SEL);
}

bool cprint_condition(struct cprint_printer *p, ir_ref r, bool is_negated, struct buf *text)
{
	const struct ir_rec *rec = cprint_inline(p, r);
	uint64_t v;
	if (rec && rec->op == IR_CMP) {
		const struct cprint_form f = {p, rec, ir_ref_width(cprint_ir(p), rec->a)};
		cprint_map_here(p, rec->origin);
		return put_compare(&f, is_negated, text).ok;
	}
	if (rec && rec->op == IR_XOR && ir_const_get(cprint_ir(p), rec->b, &v) && v == 1)
		return cprint_condition(p, rec->a, !is_negated, text);
	if (rec && rec->op == IR_EXTRACT && ir_bits(ir_ref_width(cprint_ir(p), rec->a)) <= 64) {
		/* A bit of a number. */
		const struct cprint_form f = {p, rec, ir_ref_width(cprint_ir(p), rec->a)};
		cprint_map_here(p, rec->origin);
		buf_add_ch(text, '(');
		bool ok = put_tight(&f, 0, rec->aux < 31 ? MODULO : UNSIGNED, P_UNARY, text).ok;
		buf_add_str(text, " & ");
		put_digits((uint64_t)1 << rec->aux, AS_BITS, text);
		buf_add_str(text, is_negated ? ") == 0" : ") != 0");
		return ok;
	}
	if (is_negated)
		buf_add_ch(text, '!');
	size_t at = text->len;
	if (ir_const_get(cprint_ir(p), r, &v)) {
		buf_add_str(text, v ? "scry_known(1)" : "scry_known(0)");
		return true;
	}
	struct expr e = put_ref(p, r, UNSIGNED, text);
	if (is_negated)
		enclose(text, at, &e, P_UNARY);
	return e.ok;
}

static struct expr put_choice(const struct cprint_form *f, enum want want, struct buf *text)
{
	size_t at = text->len;
	bool ok;
	if (f->p) {
		ok = cprint_condition(f->p, f->rec->a, false, text);
		const struct ir_rec *cond = cprint_inline(f->p, f->rec->a);
		struct expr c = {.prec = cond && cond->op != IR_GET && cprint_is_open_condition(f->p, f->rec->a) ? P_CHOICE : P_PRIMARY};
		enclose(text, at, &c, P_PRIMARY);
	} else {
		ok = put_tight(f, 0, UNSIGNED, P_UNARY, text).ok;
	}
	enum ir_width w = (enum ir_width)f->rec->width;
	bool both = f->p && (says_sign(f->p, f->rec->b) || is_const(f, 1)) && (says_sign(f->p, f->rec->c) || is_const(f, 2));
	enum want inner = want == SIGNED || (want == MODULO && both) ? SIGNED : UNSIGNED;
	const struct cprint_form sides = {f->p, f->rec, w};
	buf_add(text, " ? ", 3);
	struct pair x = {.at_a = text->len};
	x.a = put_side(&sides, 1, inner, text);
	x.end_a = text->len;
	buf_add(text, " : ", 3);
	x.at_b = text->len;
	x.b = put_side(&sides, 2, inner, text);
	make_alike(&x, w, inner == SIGNED, text);
	struct expr r = meet(x.a, x.b);
	r.ok = ok && x.a.ok && x.b.ok;
	r.u = inner == UNSIGNED || (x.a.u && x.b.u);
	r.s = inner == SIGNED || (x.a.s && x.b.s);
	r.prec = P_CHOICE;
	return r;
}

/* --- widths ----------------------------------------------------------------------------------------------------- */
static struct expr put_extract(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	size_t at = text->len;
	unsigned off = f->rec->aux;
	if (w == IR_W80)
		return put_helper(f, "(%a >> %n & scry_u128(0xffff, 0xffffffffffffffffu))", text);
	/* Above what C computes in there are no bits. */
	struct expr e = put_tight(f, 0, off ? UNSIGNED : MODULO, P_UNARY, text);
	if (off && off >= e.bits && e.bits < ir_bits(f->x))
		e = cast(text, at, e, f->x, false);
	if (off) {
		buf_add_str(text, " >> ");
		buf_add_dec(text, off);
		e.prec = P_SHIFT;
	}
	if (w != IR_W1) {
		struct expr r = cast(text, at, e, w, want == SIGNED);
		return r;
	}
	buf_add_str(text, " & 1");
	struct expr r = meet(e, e);
	r.u = true;
	r.s = false;
	r.prec = P_AND;
	return r;
}

static struct expr put_widened(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	bool is_sext = f->rec->op == IR_SEXT;
	size_t at = text->len;
	if (is_sext && f->x == IR_W1) {
		buf_add_ch(text, '-');
		struct expr bit = put_tight(f, 0, UNSIGNED, P_PRIMARY, text);
		struct expr r = {.ok = bit.ok, .bits = 32, .is_signed = true, .s = true, .prec = P_UNARY};
		return ir_bits(w) > 64 ? cast(text, at, r, w, false) : r;
	}
	if (is_sext && ir_bits(w) > 64)
		return put_helper(f, form_of(IR_SEXT, IR_KIND_NONE), text);
	/* C's own conversion does it. */
	struct expr e = put(f, 0, is_sext ? SIGNED : UNSIGNED, text);
	if (ir_bits(w) > 64)
		return cast(text, at, e, w, false);
	e.s = true;
	e.u = e.u && !is_sext;
	return convert_to(e, at, w, want, text);
}

static struct expr put_concat(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	size_t at = text->len;
	struct expr a = put(f, 0, UNSIGNED, text);
	a = cast(text, at, a, ir_bits(w) < 32 ? IR_W32 : w, false);
	buf_printf(text, " << %u", ir_bits(f->x));
	a.prec = P_SHIFT;
	enclose(text, at, &a, P_UNARY);
	buf_add_str(text, " | ");
	struct expr b = put_tight(f, 1, UNSIGNED, P_UNARY, text);
	struct expr r = of_type(w, false, P_OR);
	r.ok = a.ok && b.ok;
	return ir_bits(w) < 32 ? cast(text, at, r, w, want == SIGNED) : r;
}

/* Bits of a number replaced: what stays, and what comes. */
static struct expr put_insert(const struct cprint_form *f, enum want want, struct buf *text)
{
	enum ir_width w = (enum ir_width)f->rec->width;
	unsigned bits = ir_bits(w), len = ir_bits(f->x), off = f->rec->aux;
	if (w == (enum ir_width)f->x)
		return put(f, 1, want, text);
	if (bits < 32 || bits > 64)
		return put_helper(f, form_of(IR_INSERT, IR_KIND_NONE), text);
	uint64_t mask = (UINT64_MAX >> (64 - len)) << off;
	size_t at = text->len;
	buf_add_ch(text, '(');
	struct expr a = put_tight(f, 0, MODULO, P_UNARY, text);
	if (a.bits != bits || a.is_signed)
		a = cast(text, at + 1, a, w, false);
	buf_add_str(text, " & ");
	put_digits(~mask & (UINT64_MAX >> (64 - bits)), AS_BITS, text);
	buf_add_str(text, ") | ");
	size_t at_b = text->len;
	struct expr b = put(f, 1, UNSIGNED, text);
	if (off) {
		b = cast(text, at_b, b, w, false);
		buf_printf(text, " << %u", off);
		b.prec = P_SHIFT;
	}
	enclose(text, at_b, &b, P_UNARY);
	struct expr r = of_type(w, false, P_OR);
	r.ok = a.ok && b.ok;
	return r;
}

/* --- memory ----------------------------------------------------------------------------------------------------- */
/* "*(u32 *)ADDRESS": a type of the header that may lie anywhere. False: by the helpers. */
static bool put_place(const struct cprint_form *f, enum ir_width w, bool is_signed, struct expr *ret, struct buf *text)
{
	unsigned bits = ir_bits(w);
	if (!f->p || bits > 64 || width_of(f, 0) != IR_W64 || is_const(f, 0))
		return false;
	const char *name = cprint_global(f->p, ref_of(f, 0), w);
	size_t at = text->len;
	if (name) {
		buf_add_str(text, name);
		*ret = convert_to(of_type(w, false, P_PRIMARY), at, w, is_signed ? SIGNED : MODULO, text);
		return true;
	}
	buf_printf(text, "*(%c%u *)", is_signed ? 'i' : 'u', bits);
	at = text->len;
	struct expr e = put(f, 0, UNSIGNED, text);
	if (e.bits != 64)
		e = cast(text, at, e, IR_W64, false);
	enclose(text, at, &e, P_UNARY);
	*ret = of_type(w, is_signed, P_UNARY);
	ret->ok = e.ok;
	return true;
}

static struct expr put_load(const struct cprint_form *f, enum want want, struct buf *text)
{
	struct expr e;
	if (put_place(f, (enum ir_width)f->rec->width, want == SIGNED, &e, text))
		return e;
	return put_helper(f, form_of(IR_LOAD, IR_KIND_NONE), text);
}

/* What stands behind a place whose new value is made of the one it has: "++", " += VALUE" and their like. `prec`: of the
 * place. False: nothing was written, the value is made otherwise. */
static bool put_change(struct cprint_printer *p, const struct ir_rec *rec, bool is_signed, enum prec prec, bool *ret_ok, struct buf *text)
{
	static const struct {
		uint8_t op;
		const char *text;
	} ops[] = {{IR_ADD, " += "}, {IR_SUB, " -= "}, {IR_AND, " &= "}, {IR_OR, " |= "}, {IR_XOR, " ^= "}};
	enum ir_width w = (enum ir_width)rec->width;
	unsigned bits = ir_bits(w);
	uint64_t v = 0;
	size_t k = 0;
	while (k < ARRAY_LEN(ops) && ops[k].op != rec->op)
		k++;
	if (k == ARRAY_LEN(ops) || bits > 64 || bits < 8 || ir_const_get(p->f, rec->a, &v))
		return false;
	bool is_number = ir_const_get(p->f, rec->b, &v), is_sum = k < 2;
	bool is_down = is_number && k == 0 && v >> (bits - 1);
	v = is_down ? (0 - v) & (UINT64_MAX >> (64 - bits)) : v;
	if (is_number && is_sum && v == 1 && !is_signed && prec == P_PRIMARY) {
		buf_add_str(text, is_down || k == 1 ? "--" : "++");
		return *ret_ok = true;
	}
	buf_add_str(text, ops[is_down ? 1 : k].text);
	size_t at = text->len;
	struct expr e = !is_number ? put_ref(p, rec->b, MODULO, text) :
			is_sum ? put_literal(v, w, w == IR_W64 ? AS_OFFSET : AS_NUMBER, text) : put_mask(v, w, text);
	/* Sums of signed types are not to overflow. */
	if (is_sum && is_signed && bits >= 32 && is_number)
		buf_add_str(text, w == IR_W64 ? "ull" : "u");
	else if (is_sum && is_signed && bits >= 32 && (e.is_signed || e.bits != bits))
		cast(text, at, e, w, false);
	*ret_ok = e.ok;
	return true;
}

/* Of a store whose place, as it was written from `at` on, is where the value it changes was loaded from. */
static bool put_place_change(const struct cprint_form *f, size_t at, enum prec prec, bool *ret_ok, struct buf *text)
{
	const struct ir_rec *rec = cprint_inline(f->p, f->rec->b), *from = rec ? cprint_inline(f->p, rec->a) : NULL;
	if (!from || from->op != IR_LOAD || from->width != f->rec->width || from->flags != f->rec->flags || rec->width != f->rec->width)
		return false;
	const struct cprint_form load = {f->p, from, ir_ref_width(f->p->f, from->a)};
	size_t end = text->len;
	struct expr e;
	bool is_same = put_place(&load, (enum ir_width)from->width, false, &e, text) && e.ok && text->len - end == end - at &&
		       !memcmp(text->data + at, text->data + end, end - at);
	text->len = end;
	if (!is_same || !put_change(f->p, rec, false, prec, ret_ok, text))
		return false;
	cprint_map_here(f->p, rec->origin);
	cprint_map_here(f->p, from->origin);
	return true;
}

static struct expr put_store(const struct cprint_form *f, struct buf *text)
{
	struct expr e;
	size_t at = text->len;
	if (!put_place(f, (enum ir_width)f->rec->width, false, &e, text))
		return put_helper(f, form_of(IR_STORE, IR_KIND_NONE), text);
	if (put_place_change(f, at, (enum prec)e.prec, &e.ok, text))
		return e;
	buf_add(text, " = ", 3);
	e.ok = put(f, 1, MODULO, text).ok && e.ok;
	return e;
}

/* --- one bit ---------------------------------------------------------------------------------------------------- */
/* Arithmetic modulo 2 is that of a wider type, cut. */
static struct expr one_bit(const struct cprint_form *f, enum want want, struct buf *text)
{
	switch (f->rec->op) {
	case IR_ADD:
	case IR_SUB:
		return put_helper(f, "(uint1_t)((%a ^ %b) & 1)", text);
	case IR_MUL:
		return put_helper(f, "(uint1_t)(%a & %b)", text);
	case IR_EXTRACT:
		return put_extract(f, UNSIGNED, text);
	case IR_AND:
	case IR_OR:
	case IR_XOR:
		return put_bits(f, UNSIGNED, text);
	case IR_CMP:
		return put_compare(f, false, text);
	case IR_SEL:
		return put_choice(f, UNSIGNED, text);
	case IR_LOAD:
		return put_load(f, UNSIGNED, text);
	case IR_FLAG:
	case IR_MULOVF:
		if (f->x == IR_W1)
			return (struct expr){0};
		/* fall through */
	case IR_FCMP:
	case IR_PARITY:
		return put_helper(f, form_of((enum ir_op)f->rec->op, (enum ir_kind)f->rec->kind), text);
	case IR_UNDEF:
		return put_literal(0, IR_W8, AS_NUMBER, text);
	default:
		(void)want;
		return (struct expr){0};
	}
}

/* --- all of them ------------------------------------------------------------------------------------------------ */
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

static struct expr put_form(const struct cprint_form *f, enum want want, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	struct expr e = of_type((enum ir_width)rec->width, false, P_PRIMARY);
	switch (rec->op) {
	case IR_VMAP:
	case IR_VSHIFT:
	case IR_VPERM:
	case IR_VMASK:
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
	case IR_VSAD:
		e.ok = cprint_vector(f, text);
		return e;
	case IR_VCVT:
		e.ok = cprint_lanes(f, text);
		return e;
	default:
		break;
	}
	/* Wider than the compiler's integers only moves. */
	bool is_wide = rec->width >= IR_W256 || f->x >= IR_W256;
	if (is_wide && rec->op != IR_LOAD && rec->op != IR_STORE)
		return (struct expr){0};
	if ((rec->width == IR_W80 || f->x == IR_W80) && !has_80(rec))
		return (struct expr){0};
	if (rec->width == IR_W1)
		return one_bit(f, want, text);
	switch (rec->op) {
	case IR_ADD:
	case IR_SUB:
		return put_sum(f, want, text);
	case IR_MUL:
		return put_product(f, want, text);
	case IR_AND:
	case IR_OR:
	case IR_XOR:
		return put_bits(f, want, text);
	case IR_SHL:
	case IR_LSHR:
	case IR_ASHR:
		return put_shift(f, want, text);
	case IR_DIV:
		return put_division(f, text);
	case IR_CMP:
	case IR_FCMP:
		return (struct expr){0};
	case IR_SEL:
		return put_choice(f, want, text);
	case IR_EXTRACT:
		return put_extract(f, want, text);
	case IR_ZEXT:
	case IR_SEXT:
		return put_widened(f, want, text);
	case IR_CONCAT:
		return put_concat(f, want, text);
	case IR_INSERT:
		return put_insert(f, want, text);
	case IR_LOAD:
		return put_load(f, want, text);
	case IR_STORE:
		return put_store(f, text);
	case IR_UNDEF: {
		size_t at = text->len;
		e = put_literal(0, IR_W64, AS_NUMBER, text);
		return ir_bits((enum ir_width)rec->width) > 64 ? cast(text, at, e, (enum ir_width)rec->width, false) : e;
	}
	default:
		return put_helper(f, form_of((enum ir_op)rec->op, (enum ir_kind)rec->kind), text);
	}
}

bool cprint_form(const struct cprint_form *f, struct buf *text)
{
	return put_form(f, UNSIGNED, text).ok;
}

bool cprint_arg(const struct cprint_form *f, unsigned i, struct buf *text)
{
	return put(f, i, UNSIGNED, text).ok;
}

bool cprint_helper(const struct cprint_form *f, const char *form, struct buf *text)
{
	return put_helper(f, form, text).ok;
}

/* --- of the printer ---------------------------------------------------------------------------------------------- */
/* What lies at an address: a text, or what has a name. */
static void put_what(struct cprint_printer *p, uint64_t va, struct buf *text)
{
	char name[256];
	size_t at = text->len;
	buf_add_str(text, " /* ");
	size_t from = text->len;
	const char *s = NULL;
	if (!p->opts->text_of || !p->opts->text_of(p->opts->ctx, va, text))
		s = p->opts->name_of ? p->opts->name_of(p->opts->ctx, va, name, sizeof(name)) : NULL;
	buf_add(text, s, s ? strnlen(s, 80) : 0);
	if (text->len == from) {
		text->len = at;
		return;
	}
	/* No end of the comment, no other begins in it, no line break. */
	for (size_t i = from; i < text->len; i++) {
		char *c = &text->data[i];
		bool is_bad = *c < ' ' || *c > '~' || *c == '?' || (i > from && ((c[-1] == '*' && *c == '/') || (c[-1] == '/' && *c == '*')));
		*c = is_bad ? '_' : *c;
	}
	if (text->data[text->len - 1] == '\\')
		text->data[text->len - 1] = '_';
	buf_add_str(text, " */");
}

/* The address a constant stands for, in the image. */
static struct expr put_gaddr(struct cprint_printer *p, const struct ir_rec *rec, struct buf *text)
{
	uint64_t va;
	if (!ir_const_get(p->f, rec->a, &va))
		return (struct expr){0};
	/* The image may lie further up than addresses of 32 bits say. */
	bool is_short = p->f->machine->addr_width == IR_W32;
	buf_add_str(text, is_short ? "(uint32_t)(m->image + " : "m->image + ");
	cprint_hex(text, va, is_short ? ")" : "");
	put_what(p, va, text);
	return of_type((enum ir_width)rec->width, false, is_short ? P_UNARY : P_SUM);
}

/* What RES names: a variable of the MEMOP, or where the instruction left it. */
static struct expr put_res(struct cprint_printer *p, const struct ir_rec *rec, struct buf *text)
{
	if (ir_tag(rec->a) != IR_TAG_VALUE)
		return (struct expr){0};
	const struct ir_rec *of = &p->f->recs[ir_index(rec->a)];
	struct expr e = of_type((enum ir_width)rec->width, false, P_PRIMARY);
	if (of->op == IR_MEMOP) {
		cprint_temp(p, ir_index(rec->a), text);
		buf_add_ch(text, '_');
		buf_add_dec(text, rec->aux);
		return e;
	}
	const struct ir_intrin *in = &p->f->intrins[of->aux];
	if (rec->aux >= in->out_cnt)
		return (struct expr){0};
	buf_add_str(text, "m->");
	buf_add_str(text, p->f->machine->locs[in->out[rec->aux]].name);
	return e;
}

static struct expr put_record(struct cprint_printer *p, const struct ir_rec *rec, enum want want, struct buf *text)
{
	struct expr e;
	switch (rec->op) {
	case IR_GET:
		if (rec->flags & IR_F_TYPED) {
			if (!cprint_typed_call(p, p->calls[(uint32_t)(rec - p->f->recs)], text))
				(void)cprint_refuse(p, rec);
			return of_type((enum ir_width)rec->width, false, P_PRIMARY);
		}
		cprint_loc(p, rec->aux, text);
		return of_type((enum ir_width)rec->width, cprint_is_signed_loc(p, rec->aux), P_PRIMARY);
	case IR_GADDR:
		e = put_gaddr(p, rec, text);
		break;
	case IR_RES:
		e = put_res(p, rec, text);
		break;
	default: {
		/* What signature x names is the second operand where the first is the whole. */
		const struct cprint_form form = {p, rec, ir_ref_width(p->f, rec->op == IR_INSERT ? rec->b : rec->a)};
		e = put_form(&form, want, text);
	}
	}
	if (!e.ok)
		cprint_refuse(p, rec);
	return e;
}

static struct expr put_ref(struct cprint_printer *p, ir_ref r, enum want want, struct buf *text)
{
	size_t at = text->len;
	if (ir_tag(r) == IR_TAG_CONST)
		return put_const(p, r, want, text);
	if (ir_tag(r) != IR_TAG_VALUE)
		return (struct expr){0};
	const struct ir_rec *rec = &p->f->recs[ir_index(r)];
	if (!cprint_inline(p, r)) {
		cprint_temp(p, ir_index(r), text);
		struct expr e = of_type((enum ir_width)rec->width, cprint_is_signed_value(p, r), P_PRIMARY);
		return convert_to(e, at, (enum ir_width)rec->width, want, text);
	}
	cprint_map_here(p, rec->origin);
	return convert_to(put_record(p, rec, want, text), at, (enum ir_width)rec->width, want, text);
}

bool cprint_operand(struct cprint_printer *p, ir_ref r, enum cprint_how how, struct buf *text)
{
	size_t at = text->len;
	/* Addresses are arguments of a type that may be wider. */
	bool is_short = p->f->machine->addr_width == IR_W32;
	struct expr e = put_ref(p, r, how == CPRINT_LOOSE && !is_short ? MODULO : UNSIGNED, text);
	if (how == CPRINT_TIGHT)
		enclose(text, at, &e, P_UNARY);
	return e.ok;
}

bool cprint_set(struct cprint_printer *p, unsigned loc, ir_ref r, struct buf *text)
{
	const struct ir_rec *rec = cprint_inline(p, r), *from = rec ? cprint_inline(p, rec->a) : NULL;
	bool ok, is_number = ir_tag(r) == IR_TAG_CONST;
	cprint_loc(p, loc, text);
	if (from && from->op == IR_GET && from->aux == loc && rec->width == p->f->machine->locs[loc].width &&
	    put_change(p, rec, cprint_is_signed_loc(p, loc), P_PRIMARY, &ok, text)) {
		cprint_map_here(p, rec->origin);
		return ok;
	}
	buf_add(text, " = ", 3);
	return put_ref(p, r, is_number && cprint_is_signed_loc(p, loc) ? SIGNED : MODULO, text).ok;
}

bool cprint_record(struct cprint_printer *p, const struct ir_rec *rec, enum cprint_how how, struct buf *text)
{
	size_t at = text->len;
	struct expr e = put_record(p, rec, MODULO, text);
	if (how == CPRINT_TIGHT)
		enclose(text, at, &e, P_UNARY);
	return e.ok;
}
