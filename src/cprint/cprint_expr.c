/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <string.h>

/*
 * Operations as C expressions. Most are the C form of ops.def with the operands put in; what ops.def leaves open (one-bit
 * arithmetic, vectors) is here.
 */

/* Integers are held in the type of their width, one bit in eight. */
void cprint_type(enum ir_width w, struct buf *text)
{
	static const char *const names[IR_W_COUNT] = {"void",	   "uint1_t",  "uint8_t",   "uint16_t",	 "uint32_t",
						      "uint64_t", "uint80_t", "uint128_t", "uint256_t", "uint512_t"};
	buf_add_str(text, names[w < IR_W_COUNT ? w : 0]);
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
	} else if (ir_bits(w) > 64) {
		buf_printf(text, "scry_u128(0x%llxu, 0x%llxu)", (unsigned long long)words[1], (unsigned long long)words[0]);
	} else if (ir_bits(w) >= 32) {
		cprint_hex(text, words[0], w == IR_W64 ? "ull" : "u");
	} else {
		buf_add_ch(text, '(');
		cprint_type(w, text);
		buf_add_ch(text, ')');
		cprint_hex(text, words[0], "");
	}
	return true;
}

struct form {
	const struct ir_rec *rec;
	enum ir_width x;
	const char *const *operand;
};

static void put_form(const struct form *f, const char *form, struct buf *text)
{
	for (const char *p = form; *p; p++) {
		if (*p != '%') {
			buf_add_ch(text, *p);
			continue;
		}
		switch (*++p) {
		case 'a':
		case 'b':
		case 'c':
			buf_add_str(text, f->operand[*p - 'a']);
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
			buf_add_ch(text, *p);
		}
	}
}

static const char *form_of(enum ir_op op, enum ir_kind kind)
{
	return kind != IR_KIND_NONE && ir_kind_info(kind)->cform ? ir_kind_info(kind)->cform : ir_op_info(op)->cform;
}

/* Arithmetic modulo 2 is that of a wider type, cut. */
static bool one_bit(const struct form *f, struct buf *text)
{
	/* One bit with a sign: 1 is less than 0. */
	if (f->x == IR_W1 && (f->rec->kind == IR_CMP_SLT || f->rec->kind == IR_CMP_SLE)) {
		put_form(f, f->rec->kind == IR_CMP_SLT ? "%a > %b" : "%a >= %b", text);
		return true;
	}
	if (f->x == IR_W1 && (f->rec->op == IR_FLAG || f->rec->op == IR_MULOVF))
		return false;
	switch (f->rec->op) {
	case IR_ADD:
	case IR_SUB:
		put_form(f, "(uint1_t)((%a ^ %b) & 1)", text);
		return true;
	case IR_MUL:
		put_form(f, "(uint1_t)(%a & %b)", text);
		return true;
	case IR_EXTRACT:
		put_form(f, "(uint1_t)(%a >> %n & 1)", text);
		return true;
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_CMP:
	case IR_FCMP:
	case IR_FLAG:
	case IR_MULOVF:
	case IR_PARITY:
	case IR_SEL:
		put_form(f, form_of((enum ir_op)f->rec->op, (enum ir_kind)f->rec->kind), text);
		return true;
	default:
		return false;
	}
}

/* --- vectors ------------------------------------------------------------------------------------------------- */
static const char *const LANE_OPERANDS[3] = {"x", "y", "z"};

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
	if (!is_mask)
		return cprint_expr(&one, lane, LANE_OPERANDS, text);
	buf_add_str(text, "0 - (uint64_t)(");
	bool ok = cprint_expr(&one, lane, LANE_OPERANDS, text);
	buf_add_ch(text, ')');
	return ok;
}

static bool vector(const struct form *f, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	unsigned w = ir_bits((enum ir_width)rec->width);
	unsigned lane = ir_bits(ir_lane_width(rec->aux));
	if ((w != 64 && w != 128 && rec->op != IR_VMASK) || ir_bits(f->x) > 128)
		return false;
	switch (rec->op) {
	case IR_VMAP: {
		const char *b = f->operand[1] ? f->operand[1] : "0", *c = f->operand[2] ? f->operand[2] : "0";
		buf_printf(text, "SCRY_LANES(%u, %u, %s, %s, %s, ", w, lane, f->operand[0], b, c);
		bool ok = lane_expr(rec, text);
		buf_add_ch(text, ')');
		return ok;
	}
	case IR_VSHIFT: {
		const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux), .width = (uint8_t)ir_lane_width(rec->aux)};
		static const char *const OPERANDS[3] = {"x", "n", NULL};
		buf_printf(text, "SCRY_LANES(%u, %u, %s, %s, 0, ", w, lane, f->operand[0], f->operand[1]);
		bool ok = cprint_expr(&one, (enum ir_width)one.width, OPERANDS, text);
		buf_add_ch(text, ')');
		return ok;
	}
	case IR_VPERM:
		put_form(f, "scry_vperm%w(%a, %b, %c)", text);
		return true;
	case IR_VMASK:
		buf_printf(text, "(uint%u_t)", w);
		put_form(f, "scry_vmask%x(%a, %n)", text);
		return w >= 8 && ir_bits(f->x) >= 64;
	case IR_VPACK:
		put_form(f, rec->kind == IR_VPACK_S ? "scry_vpack%w(%a, %b, %n, 1)" : "scry_vpack%w(%a, %b, %n, 0)", text);
		return true;
	case IR_VMADD:
		put_form(f, "scry_vmadd%w(%a, %b, %n)", text);
		return true;
	case IR_VMULE:
		put_form(f, rec->kind == IR_VMULE_S ? "scry_vmules%w(%a, %b, %n)" : "scry_vmuleu%w(%a, %b, %n)", text);
		return true;
	default:
		put_form(f, "scry_vsad%w(%a, %b)", text);
		return true;
	}
}

/* The second operand is the width of the result's lanes, in decimal. */
static bool convert(const struct form *f, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	unsigned to = 0, w = ir_bits((enum ir_width)rec->width);
	for (const char *p = f->operand[1]; *p >= '0' && *p <= '9'; p++)
		to = to * 10 + (unsigned)(*p - '0');
	enum ir_width to_w = ir_width_of(to), from = ir_lane_width(rec->aux);
	if (to_w == IR_W0 || (w != 64 && w != 128) || ir_bits(f->x) > 128)
		return false;
	const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux),
				   .kind = (uint8_t)ir_lane_kind(rec->aux),
				   .width = (uint8_t)to_w};
	buf_printf(text, "SCRY_CONVERT(%u, %u, %u, %u, %s, ", w, ir_bits(f->x), ir_bits(from), to, f->operand[0]);
	bool ok = cprint_expr(&one, from, LANE_OPERANDS, text);
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

bool cprint_expr(const struct ir_rec *rec, enum ir_width x, const char *const operand[3], struct buf *text)
{
	const struct form f = {rec, x, operand};
	switch (rec->op) {
	case IR_VMAP:
	case IR_VSHIFT:
	case IR_VPERM:
	case IR_VMASK:
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
	case IR_VSAD:
		return vector(&f, text);
	case IR_VCVT:
		return convert(&f, text);
	default:
		break;
	}
	const char *form = form_of((enum ir_op)rec->op, (enum ir_kind)rec->kind);
	if (!form)
		return false;
	/* Wider than the compiler's integers only moves. */
	bool is_wide = ir_bits((enum ir_width)rec->width) > 128 || ir_bits(x) > 128;
	if (is_wide && rec->op != IR_LOAD && rec->op != IR_STORE)
		return false;
	if ((rec->width == IR_W80 || x == IR_W80) && !has_80(rec))
		return false;
	if (rec->width == IR_W1 && rec->op != IR_UNDEF)
		return one_bit(&f, text);
	if (rec->op == IR_EXTRACT && !rec->aux)
		form = "(uint%w_t)%a";
	if (rec->op == IR_INSERT && rec->width == x)
		form = "%b";
	if (rec->width == IR_W80 && rec->op == IR_EXTRACT)
		form = "(%a >> %n & scry_u128(0xffff, 0xffffffffffffffffu))";
	/* Shifts of C give their operand's type: narrow ones stay what they are by the form's cast. */
	put_form(&f, form, text);
	return true;
}
