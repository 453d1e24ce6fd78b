/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What an instruction is. One `struct arch` per instruction set answers every question the analysis
 * asks; nothing above this folder names an architecture. To add one: a folder arch/NAME/ with its
 * table, its line in arch.c, a lifter later; nothing in analysis/.
 *
 * Everything here is pure and thread-safe; nothing allocates. `arch` objects are static and const.
 */

enum arch_id { ARCH_ID_NONE, ARCH_ID_X86_64, ARCH_ID_I386, ARCH_ID_A64, ARCH_ID_COUNT };

/* How control leaves an instruction. */
enum arch_flow {
	ARCH_FLOW_NEXT,    /* falls through (a system call does too; x86 `call $+5`, which only pushes the PC) */
	ARCH_FLOW_JUMP,    /* direct, `target` */
	ARCH_FLOW_CJUMP,   /* direct and conditional: `target` or fall through */
	ARCH_FLOW_IJUMP,   /* through a register or memory */
	ARCH_FLOW_CALL,    /* direct, `target` */
	ARCH_FLOW_ICALL,   /* through a register or memory */
	ARCH_FLOW_RET,
	ARCH_FLOW_STOP,    /* never falls through: ud2, hlt, udf, brk, int3 when another follows */
	ARCH_FLOW_INVALID, /* these bytes are no instruction; `len` is 1 (or the ISA's unit) */
};

enum arch_insn_flag {
	ARCH_INSN_NOP = 1 << 0,        /* does nothing: padding when between functions */
	ARCH_INSN_PAD_TRAP = 1 << 1,   /* int3, udf #0: trap used as padding */
	ARCH_INSN_LANDING = 1 << 2,    /* endbr64, bti c, paciasp: an indirect branch may land here */
	ARCH_INSN_FRAME = 1 << 3,      /* typical first instruction of a function (push rbp/rbx/r12.., sub
					  rsp,N, stp x29,x30,..): evidence, not proof */
	ARCH_INSN_NOTRACK = 1 << 4,    /* indirect branch marked as a jump-table dispatch */
	ARCH_INSN_REP = 1 << 5,
	ARCH_INSN_PRIVILEGED = 1 << 6, /* in/out, hlt, ...: rare in user code, evidence against code */
};

/* A reference an operand makes to an address that the decoder alone can compute. */
enum arch_ref_kind { ARCH_REF_READ, ARCH_REF_WRITE, ARCH_REF_OFFSET /* lea, adr, address immediate */ };

struct arch_ref {
	uint64_t va;
	uint8_t kind;         /* enum arch_ref_kind; read-and-write counts as write */
	uint8_t access_bytes; /* width of the access, 0 for an offset */
	bool is_guess;        /* an immediate or absolute displacement that may be a plain number: the caller
				 must check that it lies in a segment and is not small; PC-relative ones and
				 memory operands without any register are facts */
};

#define ARCH_REF_MAX 3
#define ARCH_REG_NONE 255

/*
 * What an instruction does to general registers, as far as jump tables, address pairs and stack
 * tracking need it. ARCH_OP_OTHER only says, by `writes`, which registers lose their value.
 *
 * Immediates of 4-byte operations are zero-extended, those of 8 bytes as the machine extends them.
 * MOVE and LOAD with is_signed: `ext_width` is the width the value is sign-extended to, 4 or 8; above
 * it the register is zero (movsx eax, bl: width 1, ext_width 4).
 * IJUMP and ICALL: MOVE with src1 the register that holds the target, or LOAD of the target from
 * memory; dst is NONE.
 * Stores of what is no general register, and read-modify-write of memory, are STORE with src1 NONE.
 * Writes of 1 or 2 bytes to a register are OTHER: the rest of the register survives.
 * CALL and ICALL: sp_delta 0 and the stack pointer not in `writes`, as the callee takes its return
 * address off; clobbered registers are `call_clobbers`, not in `writes`.
 */
enum arch_op {
	ARCH_OP_OTHER,
	ARCH_OP_CONST, /* dst = imm: mov imm, xor r,r, RIP-relative lea, adr, adrp (PC already applied) */
	ARCH_OP_MOVE,  /* dst = extend(src1 from `width` bytes, is_signed) */
	ARCH_OP_LEA,   /* dst = base + index * scale + imm (either register may be NONE) */
	ARCH_OP_LOAD,  /* dst = extend([base + index * scale + imm] of `width` bytes, is_signed); both
			  registers NONE: absolute address imm */
	ARCH_OP_STORE, /* [base + index * scale + imm] of `width` bytes = src1 (NONE: something else) */
	ARCH_OP_ADD,   /* dst = src1 + (src2 or imm when src2 is NONE); a64: src2 may be extended/shifted, then
			  ext_width, is_signed, scale tell: dst = src1 + (extend(src2 from ext_width) * scale) */
	ARCH_OP_SUB,
	ARCH_OP_AND,
	ARCH_OP_SHL,
	ARCH_OP_SHR,
	ARCH_OP_CMP,   /* flags = src1 ? (src2 or imm); `width` bytes; src1 NONE: compares memory
			  [base + index * scale + imm2]... with imm: has_mem is set */
	ARCH_OP_TEST,
	ARCH_OP_INSERT, /* dst = (src1 & cmp_imm) | imm: a64 movk */
};

/* Conditions of ARCH_FLOW_CJUMP after CMP/SUB, seen as unsigned or signed relations. */
enum arch_cond {
	ARCH_COND_NONE,
	ARCH_COND_EQ, ARCH_COND_NE,
	ARCH_COND_ULT, ARCH_COND_ULE, ARCH_COND_UGT, ARCH_COND_UGE,
	ARCH_COND_SLT, ARCH_COND_SLE, ARCH_COND_SGT, ARCH_COND_SGE,
	ARCH_COND_OTHER,
};

/* Filled by decode(). 64-bit values are already truncated to the machine's address width. */
struct arch_insn {
	uint64_t target;    /* of JUMP, CJUMP, CALL; of IJUMP/ICALL through memory at a known address: see refs[0] */
	struct arch_ref refs[ARCH_REF_MAX];
	uint8_t ref_cnt;
	uint8_t len;        /* bytes */
	uint8_t flow;       /* enum arch_flow */
	uint8_t flags;      /* enum arch_insn_flag */
};

/* Filled by decode_op(), for the few instructions whose meaning matters. */
struct arch_effect {
	uint64_t writes;    /* bit r: general register r is written (whole or part) */
	int64_t imm;        /* immediate or displacement, see enum arch_op */
	int64_t cmp_imm;    /* CMP/TEST with has_mem: the immediate compared with, imm being the displacement;
			       INSERT: the bits that stay; SHR: those that stay of the shifted value,
			       0 for all (a64 ubfx) */
	int32_t sp_delta;   /* bytes added to the stack pointer, when known */
	bool sp_is_known;   /* false: writes the stack pointer in a way not described by sp_delta */
	bool is_signed;
	bool has_mem;       /* CMP/TEST: the first operand is memory [base + index * scale + imm]; ADD: the second is */
	uint8_t op;         /* enum arch_op */
	uint8_t cond;       /* enum arch_cond of a CJUMP (or compare-and-branch: op is CMP with src1 and imm 0) */
	uint8_t width;      /* bytes of the operation: 1, 2, 4, 8; writes of 4 zero-extend on 64-bit machines */
	uint8_t ext_width;  /* a64 extended register: bytes taken from src2; signed MOVE and LOAD: see above */
	uint8_t index_width; /* a64 [base, w1, uxtw]: bytes taken from the index, 0 for all */
	bool is_index_signed; /* and whether they are sign-extended */
	uint8_t scale;      /* 1, 2, 4, 8 (a64: up to 128) */
	uint8_t dst, src1, src2, base, index; /* register numbers, ARCH_REG_NONE */
};

/* Kinds of token in an instruction's text, for colours and for clicks. */
enum arch_token {
	ARCH_TOK_MNEMONIC, ARCH_TOK_REG, ARCH_TOK_IMM, ARCH_TOK_ADDR /* value is an address */,
	ARCH_TOK_DISP, ARCH_TOK_PUNCT, ARCH_TOK_SIZE /* "DWORD PTR" */, ARCH_TOK_PREFIX, ARCH_TOK_NAME /* symbol */,
};

struct arch_span {
	uint8_t off, len; /* bytes of the text */
	uint8_t kind;     /* enum arch_token */
	uint8_t operand;  /* operand number from 0; 255 for the mnemonic and prefixes */
};

#define ARCH_TEXT_MAX 240
#define ARCH_SPAN_MAX 40

struct arch_text {
	uint8_t len;      /* of `text`, which also has a NUL after it */
	uint8_t span_cnt;
	char text[ARCH_TEXT_MAX];
	struct arch_span spans[ARCH_SPAN_MAX]; /* ordered, only what carries meaning; may be empty when cut */
};

/* Says a name for an address that stands in an operand: writes at most `cap` bytes (no NUL) to `out`
 * and returns the length, or 0 for none. Called only for ARCH_TOK_ADDR values. */
typedef size_t arch_name_fn(void *ctx, uint64_t va, char *out, size_t cap);

struct arch_names {
	arch_name_fn *fn;
	void *ctx;
};

/* Registers as far as addresses are made of them; pc is the instruction's. */
struct arch_machine { uint64_t regs[32], pc, fs_base, gs_base; };
enum { ARCH_ACCESS_READ = 1, ARCH_ACCESS_WRITE = 2 };
struct arch_access { uint64_t va; uint32_t len /* bytes */; uint8_t kinds; };

struct arch {
	const char *name;          /* "x86-64", "i386", "aarch64" */
	enum arch_id id;
	uint8_t bits;              /* 32 or 64: address width */
	uint8_t align;             /* instructions start at multiples of this */
	uint8_t min_len, max_len;  /* of an instruction, bytes */
	uint8_t reg_cnt;           /* general registers for arch_effect, at most 64 */
	uint8_t sp_reg;
	uint8_t link_reg;          /* ARCH_REG_NONE where calls push their return address */
	bool has_pairs;            /* addresses are built by two instructions (adrp + add): the analysis must
				      follow constants through a block to see references */
	uint8_t func_align;        /* usual alignment of function starts: 16, 4 */
	uint64_t call_clobbers;    /* bit r: register r does not survive a call */

	/*
	 * Length, flow, target and references of the instruction at `va`, whose bytes are p[0..len), len > 0.
	 * Hot: one call per instruction of the program. Never fails: bad bytes give ARCH_FLOW_INVALID.
	 */
	void (*decode)(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_insn *ret);

	/* What it does to registers; only called for instructions decode() accepted. */
	void (*effect)(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_effect *ret);

	/*
	 * The text in the spelling of `objdump -d -M intel` (a64: of objdump) for one instruction:
	 * lower case, "mov    rax,QWORD PTR [rip+0x2f5e]" with one space after the mnemonic instead of
	 * objdump's padding; addresses as 0x..., or as names from `names` (null: none);
	 * a RIP-relative operand with a name reads "[rip+NAME]"; guesses are not renamed. Bad bytes give
	 * "(bad)". Returns the length of the instruction in bytes. Hot: 200 rows a page.
	 */
	size_t (*format)(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
			 const struct arch_names *names, struct arch_text *ret);

	/*
	 * The memory that the instruction touches when it runs with the registers of `m`, at most `cap` accesses; gives how many. Where a mask or a
	 * comparison decides what is touched, all that may be. Not named: gathers and scatters. Null: nothing is known of this machine.
	 */
	size_t (*accesses)(const struct arch *a, const uint8_t *p, size_t len, const struct arch_machine *m, struct arch_access *out, size_t cap);

	/* Name of general register r, full width: "rax", "x0". */
	const char *(*reg_name)(const struct arch *a, uint8_t r);
};

/* The table for an id; null when the build or the machine lacks it. For ARCH_ID_A64 the decoder library
 * is loaded on first use; `arch_get` returns an error of kind env naming the package when it cannot. */
_must_use_ struct err *arch_get(enum arch_id id, const struct arch **ret);

/* Stands for a machine without a decoder: every byte is ARCH_FLOW_INVALID. arch_get() never gives it. */
extern const struct arch arch_none;

/* The id for a name ("x86-64", "i386", "aarch64"), ARCH_ID_NONE when unknown. */
enum arch_id arch_id_of_name(const char *name);
/* The i-th of those names, static; null behind the last. */
const char *arch_name_at(uint32_t i);

#endif
