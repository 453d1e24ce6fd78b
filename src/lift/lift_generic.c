/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

#include <string.h>

/*
 * The generic path: any instruction as an INTRIN over exactly the locations the decoder says it reads and writes. Nothing here knows
 * what an instruction computes, only which of them leave the program, change the height of the x87 stack or never go on.
 */
struct sets {
	bool in[LIFT_LOC_CNT_64];
	bool out[LIFT_LOC_CNT_64];
};

static void add_loc(struct lift_x86 *x, bool *set, unsigned loc)
{
	if (loc < x->f->machine->loc_cnt)
		set[loc] = true;
}

/* Locations of a register, by the width of what is accessed; how many. st(i) is counted from `top`. */
static unsigned locs_of(const struct lift_x86 *x, ZydisRegister r, int top, uint16_t out[3])
{
	unsigned num, off;
	enum ir_width w;
	if (lift_gpr(r, &num, &w, &off)) {
		out[0] = lift_gpr_loc(num);
		return 1;
	}
	unsigned first = r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31 ? ZYDIS_REGISTER_ZMM0 :
			 r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM31 ? ZYDIS_REGISTER_YMM0 : ZYDIS_REGISTER_XMM0;
	if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_ZMM31) {
		num = (unsigned)r - first;
		if (num >= 16) {
			out[0] = (uint16_t)(LIFT_ZMM16 + num - 16);
			return 1;
		}
		out[0] = lift_xmm_loc(num);
		out[1] = lift_ymmh_loc(num);
		out[2] = lift_zmmh_loc(num);
		return first == ZYDIS_REGISTER_XMM0 ? 1 : first == ZYDIS_REGISTER_YMM0 ? 2 : 3;
	}
	static const struct {
		ZydisRegister first, last;
		uint16_t loc;
	} rows[] = {
		{ZYDIS_REGISTER_MM0, ZYDIS_REGISTER_MM7, LIFT_MM0},   {ZYDIS_REGISTER_K0, ZYDIS_REGISTER_K7, LIFT_K0},
		{ZYDIS_REGISTER_ES, ZYDIS_REGISTER_GS, LIFT_ES},      {ZYDIS_REGISTER_MXCSR, ZYDIS_REGISTER_MXCSR, LIFT_MXCSR},
		{ZYDIS_REGISTER_X87CONTROL, ZYDIS_REGISTER_X87CONTROL, LIFT_FCW},
		{ZYDIS_REGISTER_X87STATUS, ZYDIS_REGISTER_X87STATUS, LIFT_FSW},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (r >= rows[i].first && r <= rows[i].last) {
			out[0] = (uint16_t)(rows[i].loc + (r - rows[i].first));
			return 1;
		}
	}
	if (r >= ZYDIS_REGISTER_ST0 && r <= ZYDIS_REGISTER_ST7) {
		out[0] = (uint16_t)(LIFT_F0 + ((top + (int)(r - ZYDIS_REGISTER_ST0)) & 7));
		return 1;
	}
	return 0;
}

/* Whether a write leaves part of the location as it was. */
static bool keeps_part(const struct lift_x86 *x, const ZydisDecodedOperand *op, unsigned loc)
{
	unsigned width = ir_bits((enum ir_width)x->f->machine->locs[loc].width);
	bool is_gpr = x->f->machine->locs[loc].cls == IR_LOC_GPR;
	bool is_masked = x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && x->in.avx.mask.reg != ZYDIS_REGISTER_K0 &&
			 x->in.avx.mask.reg != ZYDIS_REGISTER_NONE;
	/* Without a shadow stack these do nothing. */
	bool is_shadow = x->in.mnemonic == ZYDIS_MNEMONIC_RDSSPD || x->in.mnemonic == ZYDIS_MNEMONIC_RDSSPQ;
	if (op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE || is_masked || is_shadow)
		return true;
	if (is_gpr)
		return op->size < 32;
	return x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && op->size < width;
}

static void add_register(struct lift_x86 *x, struct sets *s, const ZydisDecodedOperand *op)
{
	uint16_t locs[3], to[3];
	unsigned cnt = locs_of(x, op->reg.value, x->top, locs);
	int delta = lift_x87_delta(x->in.mnemonic);
	/* What pushes writes below what it found, and names that from there. */
	locs_of(x, op->reg.value, x->top + (delta < 0 ? delta : 0), to);
	bool is_vector = op->reg.value >= ZYDIS_REGISTER_XMM0 && op->reg.value <= ZYDIS_REGISTER_ZMM31;
	for (unsigned i = 0; i < cnt; i++) {
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			add_loc(x, s->in, locs[i]);
		if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		add_loc(x, s->out, to[i]);
		if (keeps_part(x, op, to[i]))
			add_loc(x, s->in, to[i]);
	}
	/* What is encoded with VEX clears the register above what it writes. */
	bool clears = is_vector && x->in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
		      (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && cnt && locs[0] < LIFT_ZMM16;
	if (clears) {
		unsigned num = locs[0] >= LIFT_XMM8 ? locs[0] - LIFT_XMM8 + 8u : locs[0] - LIFT_XMM0 + 0u;
		add_loc(x, s->out, lift_ymmh_loc(num));
		add_loc(x, s->out, lift_zmmh_loc(num));
	}
}

static void add_flags(struct lift_x86 *x, struct sets *s)
{
	static const struct {
		uint32_t bit;
		uint16_t loc;
	} rows[] = {
		{ZYDIS_CPUFLAG_CF, LIFT_CF}, {ZYDIS_CPUFLAG_PF, LIFT_PF}, {ZYDIS_CPUFLAG_AF, LIFT_AF}, {ZYDIS_CPUFLAG_ZF, LIFT_ZF},
		{ZYDIS_CPUFLAG_SF, LIFT_SF}, {ZYDIS_CPUFLAG_DF, LIFT_DF}, {ZYDIS_CPUFLAG_OF, LIFT_OF},
	};
	const ZydisAccessedFlags *f = x->in.cpu_flags;
	/* A count of 0 leaves them. */
	bool may_keep = x->in.meta.category == ZYDIS_CATEGORY_ROTATE || x->in.meta.category == ZYDIS_CATEGORY_SHIFT ||
			x->in.meta.category == ZYDIS_CATEGORY_STRINGOP;
	uint32_t writes = f ? f->modified | f->set_0 | f->set_1 | f->undefined : 0;
	/* Those the decoder leaves out are cleared. */
	if (x->in.mnemonic == ZYDIS_MNEMONIC_VTESTPS || x->in.mnemonic == ZYDIS_MNEMONIC_VTESTPD)
		writes |= ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_PF;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool is_written = writes & rows[i].bit;
		s->in[rows[i].loc] = (f && (f->tested & rows[i].bit)) || (is_written && may_keep);
		s->out[rows[i].loc] = is_written;
	}
}

/* The condition codes of the x87: the decoder knows them as flags, not as the register they are in. */
static void add_codes(struct lift_x86 *x, struct sets *s)
{
	const ZydisAccessedFlags *f = x->in.fpu_flags;
	if (!f || !(f->modified | f->set_0 | f->set_1 | f->undefined))
		return;
	add_loc(x, s->in, LIFT_FSW);
	add_loc(x, s->out, LIFT_FSW);
}

static bool is_system(const struct lift_x86 *x)
{
	switch (x->in.meta.category) {
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		return true;
	default:
		return x->in.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED;
	}
}

/* A system call reads and writes what the system likes: every general register may be an argument. */
static void add_system(struct lift_x86 *x, struct sets *s)
{
	bool is_call = x->in.meta.category == ZYDIS_CATEGORY_SYSCALL || x->in.meta.category == ZYDIS_CATEGORY_INTERRUPT;
	for (unsigned i = 0; is_call && i < (x->is_64 ? 16u : 8u); i++)
		add_loc(x, s->in, lift_gpr_loc(i));
	if (is_call)
		add_loc(x, s->out, LIFT_AX);
}

/* What string instructions do to the registers they work by: the decoder names the addresses only. */
static void add_string(struct lift_x86 *x, struct sets *s)
{
	if (x->in.meta.category != ZYDIS_CATEGORY_STRINGOP && x->in.meta.category != ZYDIS_CATEGORY_IOSTRINGOP)
		return;
	uint16_t locs[3];
	for (unsigned i = 0; i < x->op_cnt; i++) {
		for (unsigned k = x->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY ? locs_of(x, x->ops[i].mem.base, 0, locs) : 0; k-- > 0;)
			s->in[locs[k]] = s->out[locs[k]] = true;
	}
	s->in[LIFT_DF] = true;
	if (x->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		s->in[LIFT_CX] = s->out[LIFT_CX] = true;
}

/* --- memory operand ------------------------------------------------------------------------------------------ */
/* The only memory operand; -1 when there is none or more than one. */
static int only_memory(const struct lift_x86 *x)
{
	int at = -1;
	for (unsigned i = 0; i < x->op_cnt; i++) {
		if (x->ops[i].type != ZYDIS_OPERAND_TYPE_MEMORY || x->ops[i].mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		if (at >= 0)
			return -1;
		at = (int)i;
	}
	return at;
}

static void add_memory(struct lift_x86 *x, struct sets *s, struct ir_intrin *in)
{
	for (unsigned i = 0; i < x->op_cnt; i++) {
		const ZydisDecodedOperand *op = &x->ops[i];
		uint16_t locs[3];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		for (unsigned k = locs_of(x, op->mem.base, 0, locs); k-- > 0;)
			add_loc(x, s->in, locs[k]);
		for (unsigned k = locs_of(x, op->mem.index, 0, locs); k-- > 0;)
			add_loc(x, s->in, locs[k]);
		if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		in->reads_mem |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
		in->writes_mem |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	}
}

/* A register the instruction has nothing to do with. */
static int free_gpr(const struct sets *s)
{
	static const uint8_t order[] = {0, 1, 2, 3, 6, 7};
	for (unsigned i = 0; i < sizeof(order); i++) {
		uint16_t loc = lift_gpr_loc(order[i]);
		if (!s->in[loc] && !s->out[loc])
			return order[i];
	}
	return -1;
}

static void make_alt(struct lift_x86 *x, const struct sets *s, unsigned mem, struct ir_intrin *in)
{
	ZydisEncoderRequest req;
	int reg = free_gpr(s);
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	ZyanUSize len = sizeof(bytes);
	if (reg < 0 || mem >= x->in.operand_count_visible ||
	    !ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(&x->in, x->ops, x->in.operand_count_visible, &req)))
		return;
	req.operands[mem].mem.base = (ZydisRegister)((x->is_64 ? ZYDIS_REGISTER_RAX : ZYDIS_REGISTER_EAX) + reg);
	req.operands[mem].mem.index = ZYDIS_REGISTER_NONE;
	req.operands[mem].mem.scale = 0;
	req.operands[mem].mem.displacement = 0;
	req.prefixes &= ~(ZydisInstructionAttributes)ZYDIS_ATTRIB_HAS_SEGMENT;
	if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&req, bytes, &len)) || len > IR_INTRIN_BYTES_MAX)
		return;
	memcpy(in->alt_bytes, bytes, len);
	in->alt_len = (uint8_t)len;
	in->alt_reg = lift_gpr_loc((unsigned)reg);
}

/* --- all together -------------------------------------------------------------------------------------------- */
static void list_locs(const bool *set, uint16_t *out, uint8_t *ret_cnt)
{
	*ret_cnt = 0;
	for (uint16_t i = 0; i < LIFT_LOC_CNT_64; i++) {
		if (set[i] && *ret_cnt < IR_INTRIN_IO_MAX)
			out[(*ret_cnt)++] = i;
	}
}

static ir_ref read_loc(struct lift_x86 *x, uint16_t loc)
{
	return loc >= LIFT_CF && loc <= LIFT_OF ? lift_flag(x, loc) : lift_get(x, loc);
}

static void take_results(struct lift_x86 *x, ir_ref of, const uint16_t *out, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		const struct ir_rec rec = {
			.op = IR_RES, .width = x->f->machine->locs[out[i]].width, .a = of, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = i,
		};
		ir_ref v = ir_emit(x->f, &rec);
		if (out[i] >= LIFT_CF && out[i] <= LIFT_OF)
			lift_flag_value(x, out[i], v);
		else
			lift_put(x, out[i], v);
	}
}

/* Control does not come back: far jumps and returns, returns from interrupts. */
static bool never_goes_on(const struct lift_x86 *x)
{
	return x->in.meta.category == ZYDIS_CATEGORY_RET || x->in.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       x->in.meta.category == ZYDIS_CATEGORY_SYSRET;
}

static bool is_wide(const struct lift_x86 *x)
{
	for (unsigned i = 0; i < x->op_cnt; i++) {
		ZydisRegister r = x->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? x->ops[i].reg.value : ZYDIS_REGISTER_NONE;
		bool is_mask = r >= ZYDIS_REGISTER_K0 && r <= ZYDIS_REGISTER_K7;
		unsigned high = r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_YMM31 ? (r - ZYDIS_REGISTER_XMM0) & 31u : 0;
		if (is_mask || (r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31) || high >= 16)
			return true;
	}
	return false;
}

bool lift_generic(struct lift_x86 *x)
{
	struct sets s = {{0}};
	struct ir_intrin in = {
		.mnemonic = ZydisMnemonicGetString(x->in.mnemonic), .va = x->va, .len = x->in.length, .is_system = is_system(x),
	};
	memcpy(in.bytes, x->bytes, in.len);
	for (unsigned i = 0; i < x->op_cnt; i++) {
		bool reads_st = x->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && x->ops[i].reg.value == ZYDIS_REGISTER_ST0 &&
				(x->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ);
		if (reads_st)
			lift_x87_result(x);
	}
	for (unsigned i = 0; i < x->op_cnt; i++) {
		/* k0 as a mask is how EVEX says that there is none. */
		bool is_no_mask = x->ops[i].encoding == ZYDIS_OPERAND_ENCODING_MASK && x->ops[i].reg.value == ZYDIS_REGISTER_K0;
		if (x->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && !is_no_mask)
			add_register(x, &s, &x->ops[i]);
	}
	add_flags(x, &s);
	add_codes(x, &s);
	add_string(x, &s);
	add_system(x, &s);
	int mem = only_memory(x);
	ir_ref addr = IR_REF_NONE;
	if (mem >= 0 && lift_address(x, (unsigned)mem, &addr)) {
		in.mem_len = x->ops[mem].size >= 8 ? x->ops[mem].size / 8u : 1;
		make_alt(x, &s, (unsigned)mem, &in);
	}
	add_memory(x, &s, &in);
	in.x87_top = (int8_t)(x->top & 7);
	in.is_wide = is_wide(x);
	list_locs(s.in, in.in, &in.in_cnt);
	list_locs(s.out, in.out, &in.out_cnt);
	ir_ref args[IR_INTRIN_IO_MAX + 1];
	unsigned cnt = 0;
	for (; cnt < in.in_cnt; cnt++)
		args[cnt] = read_loc(x, in.in[cnt]);
	if (in.mem_len)
		args[cnt++] = addr;
	struct ir_intrin *to;
	const struct ir_rec rec = {
		.op = IR_INTRIN, .a = IR_REF_NONE, .b = ir_list(x->f, args, cnt), .c = cnt, .aux = ir_intrin_new(x->f, &to),
	};
	if (!to)
		return true;
	*to = in;
	take_results(x, ir_emit(x->f, &rec), in.out, in.out_cnt);
	x->top += lift_x87_delta(x->in.mnemonic);
	if (never_goes_on(x))
		lift_do_trap(x, IR_TRAP_END);
	return true;
}
