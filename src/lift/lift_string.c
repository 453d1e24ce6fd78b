/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

/*
 * String instructions. Alone they are a load, a store, a comparison; repeated they are one MEMOP. The direction flag is read as
 * the location it is, so nothing is assumed about it.
 */
enum string_kind { MOVS, STOS, LODS, CMPS, SCAS };

struct string_insn {
	enum string_kind kind;
	enum ir_width w;
};

static bool kind_of(const struct lift_x86 *x, struct string_insn *ret)
{
	static const struct {
		ZydisMnemonic m;
		enum string_kind kind;
		enum ir_width w;
	} rows[] = {
		{ZYDIS_MNEMONIC_MOVSB, MOVS, IR_W8},  {ZYDIS_MNEMONIC_MOVSW, MOVS, IR_W16}, {ZYDIS_MNEMONIC_MOVSD, MOVS, IR_W32},
		{ZYDIS_MNEMONIC_MOVSQ, MOVS, IR_W64}, {ZYDIS_MNEMONIC_STOSB, STOS, IR_W8},  {ZYDIS_MNEMONIC_STOSW, STOS, IR_W16},
		{ZYDIS_MNEMONIC_STOSD, STOS, IR_W32}, {ZYDIS_MNEMONIC_STOSQ, STOS, IR_W64}, {ZYDIS_MNEMONIC_LODSB, LODS, IR_W8},
		{ZYDIS_MNEMONIC_LODSW, LODS, IR_W16}, {ZYDIS_MNEMONIC_LODSD, LODS, IR_W32}, {ZYDIS_MNEMONIC_LODSQ, LODS, IR_W64},
		{ZYDIS_MNEMONIC_CMPSB, CMPS, IR_W8},  {ZYDIS_MNEMONIC_CMPSW, CMPS, IR_W16}, {ZYDIS_MNEMONIC_CMPSD, CMPS, IR_W32},
		{ZYDIS_MNEMONIC_CMPSQ, CMPS, IR_W64}, {ZYDIS_MNEMONIC_SCASB, SCAS, IR_W8},  {ZYDIS_MNEMONIC_SCASW, SCAS, IR_W16},
		{ZYDIS_MNEMONIC_SCASD, SCAS, IR_W32}, {ZYDIS_MNEMONIC_SCASQ, SCAS, IR_W64},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].m == x->in.mnemonic) {
			*ret = (struct string_insn){rows[i].kind, rows[i].w};
			return true;
		}
	}
	return false;
}

static ir_ref accumulator(struct lift_x86 *x, enum ir_width w)
{
	return lift_extract(x, w, lift_get(x, LIFT_AX), 0);
}

/* `none`: whether nothing was compared, and the flags stay; IR_REF_NONE when something was. */
static void compare(struct lift_x86 *x, enum ir_width w, ir_ref a, ir_ref b, ir_ref none)
{
	const struct lift_thunk t = {
		.kind = none == IR_REF_NONE ? LIFT_T_SUB : LIFT_T_REPEATED, .width = (uint8_t)w, .a = a, .b = b, .c = none,
		.r = lift_op(x, IR_SUB, w, a, b),
	};
	lift_flags_thunk(x, LIFT_F_ARITH, &t);
}

static void single(struct lift_x86 *x, const struct string_insn *s)
{
	ir_ref bytes = lift_k(x, x->aw, ir_bits(s->w) / 8);
	ir_ref back = lift_op(x, IR_SUB, x->aw, lift_k(x, x->aw, 0), bytes);
	ir_ref step = lift_sel(x, lift_flag(x, LIFT_DF), back, bytes);
	bool uses_si = s->kind == MOVS || s->kind == LODS || s->kind == CMPS, uses_di = s->kind != LODS;
	ir_ref si = uses_si ? lift_get(x, LIFT_SI) : IR_REF_NONE, di = uses_di ? lift_get(x, LIFT_DI) : IR_REF_NONE;
	ir_ref v = uses_si ? lift_load(x, s->w, si) : accumulator(x, s->w), other = IR_REF_NONE;
	if (s->kind == MOVS || s->kind == STOS)
		lift_store(x, di, v);
	else if (s->kind != LODS)
		other = lift_load(x, s->w, di);
	if (uses_si)
		lift_put(x, LIFT_SI, lift_op(x, IR_ADD, x->aw, si, step));
	if (uses_di)
		lift_put(x, LIFT_DI, lift_op(x, IR_ADD, x->aw, di, step));
	if (s->kind == LODS) {
		if (s->w == IR_W32)
			v = lift_zext(x, x->aw, v);
		lift_put(x, LIFT_AX, s->w == x->aw ? v : lift_insert(x, lift_get(x, LIFT_AX), v, 0));
	}
	if (other != IR_REF_NONE)
		compare(x, s->w, v, other, IR_REF_NONE);
}

static ir_ref result(struct lift_x86 *x, enum ir_width w, ir_ref of, unsigned which)
{
	const struct ir_rec rec = {.op = IR_RES, .width = (uint8_t)w, .a = of, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = which};
	return ir_emit(x->f, &rec);
}

static bool repeated(struct lift_x86 *x, const struct string_insn *s, bool while_equal)
{
	static const uint8_t kinds[] = {
		[MOVS] = IR_MEMOP_COPY, [STOS] = IR_MEMOP_FILL, [CMPS] = IR_MEMOP_CMP, [SCAS] = IR_MEMOP_SCAN,
	};
	if (s->kind == LODS)
		return false;
	bool uses_si = s->kind == MOVS || s->kind == CMPS;
	ir_ref count = lift_get(x, LIFT_CX);
	const ir_ref args[5] = {
		lift_get(x, LIFT_DI), uses_si ? lift_get(x, LIFT_SI) : accumulator(x, s->w), count, lift_flag(x, LIFT_DF),
		lift_k(x, IR_W1, while_equal),
	};
	const struct ir_rec rec = {
		.op = IR_MEMOP, .kind = kinds[s->kind], .a = IR_REF_NONE, .b = ir_list(x->f, args, 5), .c = 5, .aux = ir_bits(s->w),
	};
	ir_ref op = ir_emit(x->f, &rec);
	lift_put(x, LIFT_DI, result(x, x->aw, op, 0));
	if (uses_si)
		lift_put(x, LIFT_SI, result(x, x->aw, op, 1));
	lift_put(x, LIFT_CX, result(x, x->aw, op, 2));
	if (s->kind == CMPS || s->kind == SCAS)
		compare(x, s->w, result(x, s->w, op, 3), result(x, s->w, op, 4), lift_is_zero(x, count));
	return true;
}

bool lift_do_string(struct lift_x86 *x, unsigned arg)
{
	struct string_insn s;
	if (!kind_of(x, &s) || x->in.address_width != ir_bits(x->aw) || (x->in.attributes & ZYDIS_ATTRIB_HAS_SEGMENT))
		return false;
	bool rep = x->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE);
	if (rep || (x->in.attributes & ZYDIS_ATTRIB_HAS_REPNE))
		return repeated(x, &s, rep);
	single(x, &s);
	return true;
}
