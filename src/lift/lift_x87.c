/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

/*
 * The x87. Compiled code leaves the stack balanced, so the place of st(0) is known at every instruction (x->top, relative to the
 * function's entry) and st(i) is an ordinary location. Of the status word there are the condition codes of comparisons and the place
 * of the top, which the location has as it was at the entry (the ABIs: 0). Not modelled: exceptions, what else sets condition codes,
 * empty places, precision below that of the registers, and rounding other than to nearest, except where it is what the instruction
 * is for (fist, frndint).
 */
/*
 * The ABIs have the stack empty at calls and return floats (i386) or long doubles in st(0), one place above: the place where the
 * callee, counting from its own entry, put it. Whether a call did is known by what becomes of it: compiled code that gets a result
 * takes it off before the next call or its own end, so it needs a place that would else be empty. From a call on the height is open until
 * the next instruction of the x87, which looks ahead.
 */
int lift_x87_delta(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_FLD:
	case ZYDIS_MNEMONIC_FILD:
	case ZYDIS_MNEMONIC_FBLD:
	case ZYDIS_MNEMONIC_FLD1:
	case ZYDIS_MNEMONIC_FLDZ:
	case ZYDIS_MNEMONIC_FLDPI:
	case ZYDIS_MNEMONIC_FLDL2E:
	case ZYDIS_MNEMONIC_FLDL2T:
	case ZYDIS_MNEMONIC_FLDLG2:
	case ZYDIS_MNEMONIC_FLDLN2:
	case ZYDIS_MNEMONIC_FPTAN:
	case ZYDIS_MNEMONIC_FXTRACT:
	case ZYDIS_MNEMONIC_FSINCOS:
	case ZYDIS_MNEMONIC_FDECSTP:
		return -1;
	case ZYDIS_MNEMONIC_FSTP:
	case ZYDIS_MNEMONIC_FSTPNCE:
	case ZYDIS_MNEMONIC_FBSTP:
	case ZYDIS_MNEMONIC_FISTP:
	case ZYDIS_MNEMONIC_FISTTP:
	case ZYDIS_MNEMONIC_FADDP:
	case ZYDIS_MNEMONIC_FMULP:
	case ZYDIS_MNEMONIC_FSUBP:
	case ZYDIS_MNEMONIC_FSUBRP:
	case ZYDIS_MNEMONIC_FDIVP:
	case ZYDIS_MNEMONIC_FDIVRP:
	case ZYDIS_MNEMONIC_FCOMIP:
	case ZYDIS_MNEMONIC_FUCOMIP:
	case ZYDIS_MNEMONIC_FPATAN:
	case ZYDIS_MNEMONIC_FYL2X:
	case ZYDIS_MNEMONIC_FYL2XP1:
	case ZYDIS_MNEMONIC_FCOMP:
	case ZYDIS_MNEMONIC_FUCOMP:
	case ZYDIS_MNEMONIC_FICOMP:
	case ZYDIS_MNEMONIC_FFREEP:
	case ZYDIS_MNEMONIC_FINCSTP:
		return 1;
	case ZYDIS_MNEMONIC_FCOMPP:
	case ZYDIS_MNEMONIC_FUCOMPP:
		return 2;
	default:
		return 0;
	}
}

bool lift_x87_is(const ZydisDecodedInstruction *in)
{
	return in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && in->opcode >= 0xd8 &&
	       in->opcode <= 0xdf;
}

/* Further ways are not looked at: the code has then no use of it near. */
#define LOOK_WAYS 64
#define LOOK_INSNS 2048

struct look {
	const struct lift_x86 *x;
	uint64_t va[LOOK_WAYS]; /* where ways begin; the first `done` were gone */
	int depth[LOOK_WAYS];   /* places in use there */
	unsigned cnt, done, insns;
};

static void look_at(struct look *l, uint64_t va, int depth)
{
	for (unsigned i = 0; i < l->cnt; i++)
		if (l->va[i] == va)
			return;
	if (l->cnt == LOOK_WAYS)
		return;
	l->va[l->cnt] = va;
	l->depth[l->cnt++] = depth;
}

/* Places the instruction finds values in, or writes to though no value may be there. */
static int places_needed(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, int delta)
{
	int need = 0;
	for (unsigned i = 0; i < in->operand_count; i++) {
		int r = (int)ops[i].reg.value - ZYDIS_REGISTER_ST0;
		bool is_st = ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && r >= 0 && r < 8;
		/* What pushes names what it writes from where it is then. */
		bool is_used = ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ || (r > 0 && delta >= 0);
		if (is_st && is_used)
			need = MAX(need, r + 1);
	}
	return need;
}

/* Where control goes behind a jump: to where the look goes on. */
static void look_behind(struct look *l, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op, uint64_t va, int depth)
{
	const struct lift_code *code = l->x->code;
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op->imm.is_relative)
		look_at(l, va + in->length + op->imm.value.u, depth);
	for (uint32_t i = 0; i < code->table_cnt; i++)
		for (uint32_t k = 0; code->tables[i].jump_va == va && k < code->tables[i].target_cnt; k++)
			look_at(l, code->tables[i].targets[k], depth);
}

/* Goes from `va` to the end of its block; whether a value is needed that is not there. */
static bool look_along(struct look *l, uint64_t va, int depth)
{
	const struct lift_x86 *x = l->x;
	uint32_t lo = 0, hi = x->code->block_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (x->code->blocks[mid].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	const struct lift_block *b = lo ? &x->code->blocks[lo - 1] : NULL;
	if (!b || va - b->va >= b->len)
		return false;
	while (va - b->va < b->len && l->insns++ < LOOK_INSNS) {
		ZydisDecoderContext ctx;
		ZydisDecodedInstruction in;
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(x->decoder, &ctx, b->bytes + (va - b->va), b->len - (va - b->va), &in)))
			return false;
		ZydisInstructionCategory kind = in.meta.category;
		bool is_jump = kind == ZYDIS_CATEGORY_COND_BR || kind == ZYDIS_CATEGORY_UNCOND_BR;
		if (kind == ZYDIS_CATEGORY_CALL || kind == ZYDIS_CATEGORY_RET || in.mnemonic == ZYDIS_MNEMONIC_FNINIT ||
		    in.mnemonic == ZYDIS_MNEMONIC_FRSTOR)
			return false;
		if ((is_jump || lift_x87_is(&in)) && !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(x->decoder, &ctx, &in, ops, in.operand_count)))
			return false;
		if (lift_x87_is(&in)) {
			int delta = lift_x87_delta(in.mnemonic);
			if (places_needed(&in, ops, delta) > depth)
				return true;
			depth -= delta;
		}
		if (is_jump)
			look_behind(l, &in, ops, va, depth);
		if (kind == ZYDIS_CATEGORY_UNCOND_BR)
			return false;
		va += in.length;
	}
	if (va - b->va >= b->len)
		look_at(l, va, depth);
	return false;
}

void lift_x87_settle(struct lift_x86 *x)
{
	struct look l = {.x = x};
	bool is_needed = false;
	x->is_open = false;
	look_at(&l, x->va, 0);
	while (l.done < l.cnt && !is_needed) {
		is_needed = look_along(&l, l.va[l.done], l.depth[l.done]);
		l.done++;
	}
	if (is_needed)
		x->top = -1;
}

/* Who reads st(0) of an empty stack where no call was seen takes such a result, too. */
void lift_x87_result(struct lift_x86 *x)
{
	if (!x->is_single && x->top >= 0)
		x->top = -1;
}

static uint16_t st_loc(const struct lift_x86 *x, int i)
{
	return (uint16_t)(LIFT_F0 + ((x->top + i) & 7));
}

static ir_ref get_st(struct lift_x86 *x, int i)
{
	lift_x87_result(x);
	return lift_get(x, st_loc(x, i));
}

/* Number of the stack register operand `i` is, -1 for none. */
static int st_of(const struct lift_x86 *x, unsigned i)
{
	if (!lift_is_reg(x, i))
		return -1;
	ZydisRegister r = x->ops[i].reg.value;
	return r >= ZYDIS_REGISTER_ST0 && r <= ZYDIS_REGISTER_ST7 ? (int)(r - ZYDIS_REGISTER_ST0) : -1;
}

static ir_ref unary(struct lift_x86 *x, enum ir_op op, enum ir_kind kind, enum ir_width w, ir_ref a)
{
	const struct ir_rec rec = {
		.op = (uint8_t)op, .width = (uint8_t)w, .kind = (uint8_t)kind, .a = a, .b = IR_REF_NONE, .c = IR_REF_NONE,
	};
	return ir_emit(x->f, &rec);
}

/* A memory operand as an extended float; false when its address is not for us. */
static bool load_float(struct lift_x86 *x, unsigned i, bool is_int, ir_ref *ret)
{
	ir_ref addr;
	if (!lift_is_mem(x, i) || !lift_address(x, i, &addr))
		return false;
	ir_ref v = lift_load(x, lift_op_width(x, i), addr);
	if (is_int)
		v = unary(x, IR_ITOF, IR_ITOF_S, IR_W80, v);
	else if (lift_width(x, v) != IR_W80)
		v = unary(x, IR_FCVT, IR_KIND_NONE, IR_W80, v);
	*ret = v;
	return true;
}

static void push(struct lift_x86 *x, ir_ref v)
{
	x->top--;
	lift_put(x, st_loc(x, 0), v);
}

/* fld, fild (arg 1) */
bool lift_do_fld(struct lift_x86 *x, unsigned is_int)
{
	ir_ref v;
	int r = st_of(x, 0);
	if (r >= 0)
		v = get_st(x, r);
	else if (!load_float(x, 0, is_int, &v))
		return false;
	push(x, v);
	return true;
}

/* fst, fstp (arg 1) */
bool lift_do_fst(struct lift_x86 *x, unsigned pops)
{
	ir_ref addr, v;
	int r = st_of(x, 0);
	if (r >= 0) {
		v = get_st(x, 0);
		lift_put(x, st_loc(x, r), v);
	} else {
		if (!lift_is_mem(x, 0) || !lift_address(x, 0, &addr))
			return false;
		enum ir_width w = lift_op_width(x, 0);
		v = get_st(x, 0);
		lift_store(x, addr, w == IR_W80 ? v : unary(x, IR_FCVT, IR_KIND_NONE, w, v));
	}
	x->top += (int)pops;
	return true;
}

/* As the control word rounds: 0 to nearest, 1 down, 2 up, 3 towards zero. */
static ir_ref round_as_set(struct lift_x86 *x, ir_ref a)
{
	ir_ref rc = lift_op(x, IR_LSHR, IR_W16, lift_get(x, LIFT_FCW), lift_k(x, IR_W8, 10));
	static const uint8_t kinds[4] = {IR_FUN_NEAREST, IR_FUN_FLOOR, IR_FUN_CEIL, IR_FUN_TRUNC};
	rc = lift_op(x, IR_AND, IR_W16, rc, lift_k(x, IR_W16, 3));
	ir_ref r = unary(x, IR_FUN, (enum ir_kind)kinds[0], IR_W80, a);
	for (unsigned i = 1; i < 4; i++) {
		ir_ref is = lift_cmp(x, IR_CMP_EQ, rc, lift_k(x, IR_W16, i));
		r = lift_sel(x, is, unary(x, IR_FUN, (enum ir_kind)kinds[i], IR_W80, a), r);
	}
	return r;
}

/* fist, fistp (arg 1), fisttp (arg 3: bit 1 truncates whatever is set) */
bool lift_do_fist(struct lift_x86 *x, unsigned arg)
{
	ir_ref addr;
	if (!lift_is_mem(x, 0) || !lift_address(x, 0, &addr))
		return false;
	ir_ref v = get_st(x, 0);
	if (!(arg & 2))
		v = round_as_set(x, v);
	lift_store(x, addr, unary(x, IR_FTOI, IR_FTOI_TRUNC, lift_op_width(x, 0), v));
	x->top += (int)(arg & 1);
	return true;
}

/* fadd ..: arg is the kind of FBIN; bit 8: operands exchanged, bit 9: pops, bit 10: of an integer in memory. */
bool lift_do_farith(struct lift_x86 *x, unsigned arg)
{
	int to = 0, from = 0;
	ir_ref b;
	if (lift_is_mem(x, 0)) {
		if (!load_float(x, 0, arg >> 10 & 1, &b))
			return false;
	} else {
		to = st_of(x, 0);
		from = st_of(x, 1);
		if (to < 0 || from < 0)
			return false;
		b = get_st(x, from);
	}
	ir_ref a = get_st(x, to);
	const struct ir_rec rec = {
		.op = IR_FBIN, .width = IR_W80, .kind = (uint8_t)(arg & 0xff), .a = arg >> 8 & 1 ? b : a, .b = arg >> 8 & 1 ? a : b,
		.c = IR_REF_NONE,
	};
	lift_put(x, st_loc(x, to), ir_emit(x->f, &rec));
	x->top += (int)(arg >> 9 & 1);
	return true;
}

/* fld1 fldz */
bool lift_do_fconst(struct lift_x86 *x, unsigned is_one)
{
	static const uint64_t one[2] = {(uint64_t)1 << 63, 0x3fff}, zero[2] = {0, 0};
	push(x, ir_const_wide(x->f, IR_W80, is_one ? one : zero));
	return true;
}

bool lift_do_fxch(struct lift_x86 *x, unsigned arg)
{
	int r = st_of(x, 0);
	if (r < 0)
		return false;
	ir_ref a = get_st(x, 0), b = get_st(x, r);
	lift_put(x, st_loc(x, 0), b);
	lift_put(x, st_loc(x, r), a);
	return true;
}

static ir_ref compare(struct lift_x86 *x, enum ir_kind kind, ir_ref a, ir_ref b)
{
	const struct ir_rec rec = {.op = IR_FCMP, .width = IR_W1, .kind = (uint8_t)kind, .a = a, .b = b, .c = IR_REF_NONE};
	return ir_emit(x->f, &rec);
}

/* fcomi fucomi; arg 1: pops. */
bool lift_do_fcom(struct lift_x86 *x, unsigned pops)
{
	int r = st_of(x, 1);
	if (st_of(x, 0) != 0 || r < 0)
		return false;
	ir_ref a = get_st(x, 0), b = get_st(x, r), uno = compare(x, IR_FCMP_UNO, a, b);
	lift_flag_value(x, LIFT_ZF, lift_op(x, IR_OR, IR_W1, compare(x, IR_FCMP_OEQ, a, b), uno));
	lift_flag_value(x, LIFT_CF, lift_op(x, IR_OR, IR_W1, compare(x, IR_FCMP_OLT, a, b), uno));
	lift_flag_value(x, LIFT_PF, uno);
	lift_flag_value(x, LIFT_OF, lift_k(x, IR_W1, 0));
	lift_flag_value(x, LIFT_SF, lift_k(x, IR_W1, 0));
	lift_flag_value(x, LIFT_AF, lift_k(x, IR_W1, 0));
	x->top += (int)pops;
	return true;
}

#define FSW_CODES 0x4700 /* C0 C1 C2 C3: bits 8, 9, 10, 14 */
#define FSW_TOP 11

/* The codes as C3 C2 C0 of a comparison: less 001, equal 100, unordered 111, greater 000; C1 is cleared. Bits 0 and 1 of arg: pops so many;
 * bit 2: with an integer in memory; bit 3: with zero. */
bool lift_do_fcom_status(struct lift_x86 *x, unsigned arg)
{
	static const uint64_t zero[2] = {0, 0};
	ir_ref b;
	if (arg & 8) {
		b = ir_const_wide(x->f, IR_W80, zero);
	} else if (lift_is_mem(x, 0)) {
		if (!load_float(x, 0, arg >> 2 & 1, &b))
			return false;
	} else {
		/* Of two operands the first is st(0); of none the second is st(1). */
		int r = x->op_cnt ? st_of(x, x->op_cnt - 1) : 1;
		if (r < 0)
			return false;
		lift_x87_result(x);
		b = get_st(x, r);
	}
	ir_ref a = get_st(x, 0), uno = compare(x, IR_FCMP_UNO, a, b), fsw = lift_get(x, LIFT_FSW);
	ir_ref is_less = lift_op(x, IR_OR, IR_W1, compare(x, IR_FCMP_OLT, a, b), uno);
	ir_ref is_equal = lift_op(x, IR_OR, IR_W1, compare(x, IR_FCMP_OEQ, a, b), uno);
	fsw = lift_op(x, IR_AND, IR_W16, fsw, lift_k(x, IR_W16, 0xffff & ~FSW_CODES));
	fsw = lift_insert(x, fsw, is_less, 8);
	fsw = lift_insert(x, fsw, uno, 10);
	lift_put(x, LIFT_FSW, lift_insert(x, fsw, is_equal, 14));
	x->top += (int)(arg & 3);
	return true;
}

/* The place of the top is what it was at the entry, moved as the stack was. */
bool lift_do_fnstsw(struct lift_x86 *x, unsigned arg)
{
	ir_ref addr, fsw = lift_get(x, LIFT_FSW);
	if (lift_is_mem(x, 0) && !lift_address(x, 0, &addr))
		return false;
	if (x->top & 7) {
		/* Only the three bits: what they carry out of themselves is dropped. */
		const uint16_t mask = 7 << FSW_TOP;
		ir_ref moved = lift_op(x, IR_ADD, IR_W16, fsw, lift_k(x, IR_W16, (uint16_t)((x->top & 7) << FSW_TOP)));
		moved = lift_op(x, IR_AND, IR_W16, moved, lift_k(x, IR_W16, mask));
		fsw = lift_op(x, IR_OR, IR_W16, lift_op(x, IR_AND, IR_W16, fsw, lift_k(x, IR_W16, (uint16_t)~mask)), moved);
	}
	lift_write(x, 0, fsw);
	return true;
}

/* fchs fabs fsqrt; 0: frndint */
bool lift_do_funary(struct lift_x86 *x, unsigned kind)
{
	ir_ref a = get_st(x, 0);
	lift_put(x, st_loc(x, 0), kind ? unary(x, IR_FUN, (enum ir_kind)kind, IR_W80, a) : round_as_set(x, a));
	return true;
}

bool lift_do_fcmov(struct lift_x86 *x, unsigned cc)
{
	int r = st_of(x, 1);
	if (st_of(x, 0) != 0 || r < 0)
		return false;
	ir_ref a = get_st(x, 0), b = get_st(x, r);
	lift_put(x, st_loc(x, 0), lift_sel(x, lift_cond(x, cc), b, a));
	return true;
}

/* fldcw (arg 1), fnstcw */
bool lift_do_fcw(struct lift_x86 *x, unsigned is_load)
{
	ir_ref addr;
	if (!lift_is_mem(x, 0) || !lift_address(x, 0, &addr))
		return false;
	if (is_load)
		lift_put(x, LIFT_FCW, lift_load(x, IR_W16, addr));
	else
		lift_store(x, addr, lift_get(x, LIFT_FCW));
	return true;
}
