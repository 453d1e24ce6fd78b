/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIFT_LIFT_INT_H
#define LIFT_LIFT_INT_H

#include "lift/lift.h"

#include <Zydis/Zydis.h>

/*
 * The lifter of x86-64 and i386.
 *
 *   lift_x86.c      blocks, order of things, lift_func(), lift_insn()
 *   lift_table.c    which function lifts which mnemonic
 *   lift_locs.c     registers and flags as locations
 *   lift_operand.c  reading and writing operands, addresses
 *   lift_flags.c    flags, made only when somebody reads them
 *   lift_arith.c, lift_shift.c, lift_bits.c, lift_move.c, lift_control.c, lift_string.c   integer instructions
 *   lift_vec.c, lift_sse.c, lift_packed.c   vectors
 *   lift_x87.c      the floating-point stack
 *   lift_generic.c  everything else
 *
 * A lifting function returns false when this form of the instruction is not its; it has then emitted nothing but pure records
 * and loads of nothing, and the generic path takes over.
 */

/* --- locations: the same numbers in both machines; i386 ends at LIFT_LOC_CNT_32 ------------------------------ */
enum lift_loc {
	LIFT_AX, LIFT_CX, LIFT_DX, LIFT_BX, LIFT_SP, LIFT_BP, LIFT_SI, LIFT_DI,
	LIFT_CF, LIFT_PF, LIFT_AF, LIFT_ZF, LIFT_SF, LIFT_DF, LIFT_OF,
	LIFT_FSBASE, LIFT_GSBASE,
	LIFT_ES, LIFT_CS, LIFT_SS, LIFT_DS, LIFT_FS, LIFT_GS,
	LIFT_MXCSR, LIFT_FCW, LIFT_FSW,
	LIFT_XMM0, LIFT_XMM7 = LIFT_XMM0 + 7,
	LIFT_YMMH0, LIFT_YMMH7 = LIFT_YMMH0 + 7,
	LIFT_ZMMH0, LIFT_ZMMH7 = LIFT_ZMMH0 + 7,
	LIFT_F0, LIFT_F7 = LIFT_F0 + 7,
	LIFT_MM0, LIFT_MM7 = LIFT_MM0 + 7,
	LIFT_K0, LIFT_K7 = LIFT_K0 + 7,
	LIFT_LOC_CNT_32,
	LIFT_R8 = LIFT_LOC_CNT_32, LIFT_R15 = LIFT_R8 + 7,
	LIFT_XMM8, LIFT_XMM15 = LIFT_XMM8 + 7,
	LIFT_YMMH8, LIFT_YMMH15 = LIFT_YMMH8 + 7,
	LIFT_ZMMH8, LIFT_ZMMH15 = LIFT_ZMMH8 + 7,
	LIFT_ZMM16, LIFT_ZMM31 = LIFT_ZMM16 + 15,
	LIFT_LOC_CNT_64,
};

/* Location of general, vector (low 128, high 128, high 256 bits) register `num`. */
static inline uint16_t lift_gpr_loc(unsigned num)
{
	return (uint16_t)(num < 8 ? LIFT_AX + num : LIFT_R8 + num - 8);
}

static inline uint16_t lift_xmm_loc(unsigned num)
{
	return (uint16_t)(num < 8 ? LIFT_XMM0 + num : LIFT_XMM8 + num - 8);
}

static inline uint16_t lift_ymmh_loc(unsigned num)
{
	return (uint16_t)(num < 8 ? LIFT_YMMH0 + num : LIFT_YMMH8 + num - 8);
}

static inline uint16_t lift_zmmh_loc(unsigned num)
{
	return (uint16_t)(num < 8 ? LIFT_ZMMH0 + num : LIFT_ZMMH8 + num - 8);
}

/* --- flags ------------------------------------------------------------------------------------------------- */
enum { LIFT_FLAG_CNT = 7 };
#define LIFT_FLAG_BIT(loc) (1u << ((loc) - LIFT_CF))
#define LIFT_F_CF LIFT_FLAG_BIT(LIFT_CF)
#define LIFT_F_PF LIFT_FLAG_BIT(LIFT_PF)
#define LIFT_F_AF LIFT_FLAG_BIT(LIFT_AF)
#define LIFT_F_ZF LIFT_FLAG_BIT(LIFT_ZF)
#define LIFT_F_SF LIFT_FLAG_BIT(LIFT_SF)
#define LIFT_F_DF LIFT_FLAG_BIT(LIFT_DF)
#define LIFT_F_OF LIFT_FLAG_BIT(LIFT_OF)
#define LIFT_F_ARITH (LIFT_F_CF | LIFT_F_PF | LIFT_F_AF | LIFT_F_ZF | LIFT_F_SF | LIFT_F_OF)

/* Where a flag's value is. */
enum lift_flag_state { LIFT_FLAG_IN_LOC, LIFT_FLAG_VALUE, LIFT_FLAG_THUNK, LIFT_FLAG_UNDEF };

struct lift_thunk;

struct lift_flag {
	uint8_t state;            /* enum lift_flag_state */
	bool may_keep;            /* it may be that the location's old value is still the one */
	ir_ref value;             /* LIFT_FLAG_VALUE */
	struct lift_thunk *thunk; /* LIFT_FLAG_THUNK */
};

enum lift_thunk_kind {
	LIFT_T_ADD,    /* r = a + b + c (c none: 0) */
	LIFT_T_SUB,    /* r = a - b - c */
	LIFT_T_LOGIC,  /* r: CF and OF 0, AF undefined */
	LIFT_T_RESULT, /* r: only ZF SF PF */
	LIFT_T_SHL, LIFT_T_SHR, LIFT_T_SAR, /* r = a by b (already masked, not constant or not 0) */
	LIFT_T_ROL, LIFT_T_ROR,             /* CF and OF; b masked to 5 or 6 bits */
	LIFT_T_SHLD, LIFT_T_SHRD,
	LIFT_T_REPEATED, /* a - b, the last elements compared; c: there were none */
};

/* What flags will be computed from. */
struct lift_thunk {
	uint8_t kind;  /* enum lift_thunk_kind */
	uint8_t width; /* enum ir_width of a, b, r */
	ir_ref a, b, c, r;
	unsigned depth; /* of the shifts in `before` */
	struct lift_flag *before; /* from LIFT_T_SHL on, LIFT_FLAG_CNT: what stays when the count is 0 */
};

/* --- an instruction being lifted ---------------------------------------------------------------------------- */
struct lift_x86 {
	struct ir_func *f;
	const struct lift_code *code;
	const ZydisDecoder *decoder;
	bool is_64;
	enum ir_width aw;          /* of addresses of the machine */
	uint64_t va;
	const uint8_t *bytes;
	ZydisDecoderContext ctx;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t op_cnt;            /* of them decoded: those one sees, for the generic path all */
	ir_ref addr[ZYDIS_MAX_OPERAND_COUNT]; /* of memory operands, once computed */
	struct lift_flag flags[LIFT_FLAG_CNT];
	int top;                   /* of the x87 stack relative to entry */
	bool is_open;              /* it may be one higher than `top` says: by the result of a call */
	bool is_ended;             /* the block has its terminator */
	bool is_single;            /* one instruction: every jump leaves */
	uint32_t flags_read;       /* LIFT_F bits whose location was read in this block */
	struct lift_done *done;    /* one for each block of the code */
	uint32_t *todo;            /* numbers of blocks reached and not lifted yet */
	uint32_t todo_cnt;
	struct lift_exit *exits;   /* blocks made for what lies outside */
	uint32_t exit_cnt, exit_cap;
	struct lift_stats stats;
};

/* What is known of a block of the code. */
struct lift_done {
	bool is_reached;
	int top;                   /* of the x87 stack at its entry */
	bool is_open;              /* ... as in struct lift_x86 */
	uint32_t flags_read;       /* before any other value of theirs */
	struct lift_flag flags[LIFT_FLAG_CNT]; /* at its end */
};

struct lift_exit {
	uint32_t block;
	uint64_t va;
	bool is_nowhere;
};

typedef bool lift_fn(struct lift_x86 *x, unsigned arg);

struct lift_row {
	lift_fn *fn;
	unsigned arg;
};

/* The row of a mnemonic; fn is null when there is none. */
struct lift_row lift_row_of(ZydisMnemonic m);

/* --- emitting ---------------------------------------------------------------------------------------------- */
/* Folds constants and what widths make trivial. */
ir_ref lift_op(struct lift_x86 *x, enum ir_op op, enum ir_width w, ir_ref a, ir_ref b);
ir_ref lift_op_kind(struct lift_x86 *x, const struct ir_rec *rec);
ir_ref lift_k(struct lift_x86 *x, enum ir_width w, uint64_t v);
ir_ref lift_get(struct lift_x86 *x, uint16_t loc);
void lift_put(struct lift_x86 *x, uint16_t loc, ir_ref v);
ir_ref lift_zext(struct lift_x86 *x, enum ir_width w, ir_ref v);
ir_ref lift_sext(struct lift_x86 *x, enum ir_width w, ir_ref v);
ir_ref lift_extract(struct lift_x86 *x, enum ir_width w, ir_ref v, unsigned off);
ir_ref lift_insert(struct lift_x86 *x, ir_ref into, ir_ref v, unsigned off);
ir_ref lift_cmp(struct lift_x86 *x, enum ir_kind kind, ir_ref a, ir_ref b);
ir_ref lift_not(struct lift_x86 *x, ir_ref v);  /* all bits */
ir_ref lift_sel(struct lift_x86 *x, ir_ref cond, ir_ref a, ir_ref b);
ir_ref lift_is_zero(struct lift_x86 *x, ir_ref v);
ir_ref lift_msb(struct lift_x86 *x, ir_ref v);
ir_ref lift_bit(struct lift_x86 *x, ir_ref v, unsigned bit); /* one bit wide */
ir_ref lift_undef(struct lift_x86 *x, enum ir_width w);
ir_ref lift_load(struct lift_x86 *x, enum ir_width w, ir_ref addr);
void lift_store(struct lift_x86 *x, ir_ref addr, ir_ref v);
static inline enum ir_width lift_width(const struct lift_x86 *x, ir_ref v)
{
	return ir_ref_width(x->f, v);
}

/* --- operands ---------------------------------------------------------------------------------------------- */
/* Number and kind of a general register; false: it is none. */
bool lift_gpr(ZydisRegister r, unsigned *ret_num, enum ir_width *ret_width, unsigned *ret_off);
/* A general register, or a part of one. */
ir_ref lift_read_gpr(struct lift_x86 *x, ZydisRegister r);
void lift_write_gpr(struct lift_x86 *x, ZydisRegister r, ir_ref v);
/* Operand i: general register, immediate (of the width of operand 0 when `w` is IR_W0, else of `w`), or memory of its width. */
ir_ref lift_read(struct lift_x86 *x, unsigned i);
/* The same to a register or memory. */
void lift_write(struct lift_x86 *x, unsigned i, ir_ref v);
/* Address of memory operand i; false: one that is not lifted (16-bit, vector index). */
bool lift_address(struct lift_x86 *x, unsigned i, ir_ref *ret);
/* Whether operands [0, cnt) are of the kinds lift_read() takes, with addresses that can be lifted. */
bool lift_plain(struct lift_x86 *x, unsigned cnt);
bool lift_is_mem(const struct lift_x86 *x, unsigned i);
bool lift_is_reg(const struct lift_x86 *x, unsigned i);
bool lift_is_imm(const struct lift_x86 *x, unsigned i);
enum ir_width lift_op_width(const struct lift_x86 *x, unsigned i);
/* Number of the vector register operand i is, -1 when it is none or above 15. */
int lift_vec(const struct lift_x86 *x, unsigned i);
/* An immediate as a value: an address of the image when the caller of lift_func() says so. */
ir_ref lift_imm(struct lift_x86 *x, enum ir_width w, uint64_t v);
uint64_t lift_next_va(const struct lift_x86 *x);

/* --- flags, conditions ------------------------------------------------------------------------------------- */
void lift_flags_thunk(struct lift_x86 *x, unsigned mask, const struct lift_thunk *t);
void lift_flag_value(struct lift_x86 *x, unsigned loc, ir_ref v);
void lift_flags_undef(struct lift_x86 *x, unsigned mask);
ir_ref lift_flag(struct lift_x86 *x, unsigned loc);
/* Condition code 0 .. 15 as in the encodings: o no b nb z nz be nbe s ns p np l nl le nle. */
ir_ref lift_cond(struct lift_x86 *x, unsigned cc);
/* PUTs those of `mask` that are not in their locations; then all of `mask` are. */
void lift_flags_sync(struct lift_x86 *x, unsigned mask);
void lift_flags_reset(struct lift_x86 *x);
/* r is a logical result, or only a result. */
void lift_flags_logic(struct lift_x86 *x, ir_ref r);
void lift_flags_result(struct lift_x86 *x, ir_ref r);

/* --- the rest ---------------------------------------------------------------------------------------------- */
bool lift_generic(struct lift_x86 *x);
/* How the place of st(0) moves: -1 for a push. */
int lift_x87_delta(ZydisMnemonic m);
/* Whether it is one of the x87. */
bool lift_x87_is(const ZydisDecodedInstruction *in);
/* Before an instruction of the x87 when the height of the stack is open: says what it is. */
void lift_x87_settle(struct lift_x86 *x);
/* To be called before st(0) is read. */
void lift_x87_result(struct lift_x86 *x);
/* Ends the block by going to `va`: a block of this function, or out of it. */
void lift_goto(struct lift_x86 *x, uint64_t va);
/* The block that begins at `va`; for an address outside, one that leaves for it. */
uint32_t lift_block_for(struct lift_x86 *x, uint64_t va);
/* One that traps: control came where nothing is known to be. */
uint32_t lift_block_nowhere(struct lift_x86 *x);

/* For the table. With the operation, lift_do_arith() is told whether the carry joins in and whether the result is dropped. */
enum { LIFT_CARRY = 1 << 8, LIFT_DROP = 1 << 9 };
/* Behind ir_lane() for lift_do_packed(): operands exchanged, the first complemented. */
enum { LIFT_SWAP = 1 << 24, LIFT_NOT_A = 1 << 25 };
lift_fn lift_do_arith, lift_do_incdec, lift_do_neg, lift_do_not, lift_do_mul, lift_do_imul, lift_do_div, lift_do_adx;
lift_fn lift_do_xadd, lift_do_cmpxchg, lift_do_xchg, lift_do_cwd, lift_do_flagop, lift_do_sahf, lift_do_lahf, lift_do_pushf, lift_do_popf;
lift_fn lift_do_shift, lift_do_rcx, lift_do_double_shift, lift_do_bmi_shift, lift_do_rorx;
lift_fn lift_do_bt, lift_do_scan, lift_do_count, lift_do_bswap, lift_do_bmi, lift_do_mulx, lift_do_pdep, lift_do_bzhi;
lift_fn lift_do_mov, lift_do_movx, lift_do_movbe, lift_do_lea, lift_do_push, lift_do_pop, lift_do_leave, lift_do_enter, lift_do_xlat;
lift_fn lift_do_cmov, lift_do_set, lift_do_nop, lift_do_fence;
lift_fn lift_do_jcc, lift_do_jcxz, lift_do_loop, lift_do_jmp, lift_do_call, lift_do_ret, lift_do_trap;
lift_fn lift_do_string;
lift_fn lift_do_vmov, lift_do_vmov_scalar, lift_do_vmov_gpr, lift_do_vmov_half, lift_do_vmov_hl, lift_do_fscalar, lift_do_fcomi;
lift_fn lift_do_fcvt_int, lift_do_fcvt_float, lift_do_int_cvt, lift_do_zeroupper;
lift_fn lift_do_packed, lift_do_packed_shift, lift_do_byte_shift, lift_do_shuffle, lift_do_unpack, lift_do_movmsk;
lift_fn lift_do_pinsr, lift_do_pextr, lift_do_pcvt, lift_do_broadcast, lift_do_vextract, lift_do_vinsert, lift_do_pmovx;
lift_fn lift_do_ptest, lift_do_pshufb, lift_do_roundx, lift_do_blend, lift_do_fpcmp, lift_do_vperm, lift_do_movddup;
lift_fn lift_do_fld, lift_do_fst, lift_do_farith, lift_do_fconst, lift_do_fxch, lift_do_fcom, lift_do_funary, lift_do_fcmov;
lift_fn lift_do_fcw, lift_do_fist, lift_do_fcom_status, lift_do_fnstsw;

#endif
