/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIFT_LIFT_H
#define LIFT_LIFT_H

#include "arch/arch.h"
#include "ir/ir.h"

/*
 * From machine code to IR. A lifter knows one architecture: its locations (registers and flags) and what each
 * instruction does to them. The result is IR before SSA: GET and PUT of locations, values inside their block.
 *
 * No instruction stops a function. What is not lifted by hand becomes an INTRIN that reads and writes exactly what
 * the decoder says; bytes that are no instruction become a TRAP at their address.
 *
 * What the result promises, and where it does not hold the machine's promise:
 *   - a record that can fault comes before the instruction's PUTs, so a fault leaves the registers as they were. Of a repeated
 *     string operation the machine has moved them by the elements it did; here they stay, while memory has those elements, as there;
 *   - flags the architecture leaves undefined are PUT as UNDEF, never left with an old value;
 *   - flags register: what pushf pushes beside the flags that are locations is 0x202, what popf loads of it is dropped;
 *   - x87: registers are f0 .. f7 by place relative to the top of the stack at entry; "empty" is not modelled. A call has left
 *     a value there when what follows takes one more than there is, before the next call or the end. Of the status word (fsw) there are
 *     the condition codes as comparisons and unlifted instructions leave them (arithmetic leaves C1 as it was), and the place of the top
 *     at the entry; no exceptions. What loads and saves the whole unit (fnsave, fnstenv, fxsave, xsave and their opposites) has
 *     only the locations its operands name;
 *   - MMX registers are locations of their own: writing one does not change f0 .. f7, nor the other way round;
 *   - floating point: exception flags of mxcsr are not modelled, denormals are taken as they are;
 *   - an instruction that is not lifted and works on the stack pointer itself (pusha, enter with frames) has no C but a trap.
 */

/* The locations of an architecture; null for one without a lifter. */
const struct ir_machine *lift_machine(enum arch_id id);

/* Number of machines there are, and they all, for ir_parse(). */
const struct ir_machine *const *lift_machines(unsigned *ret_cnt);

/* Where a jump through a table may go. */
struct lift_table {
	uint64_t jump_va;         /* the dispatching instruction */
	const uint64_t *targets;  /* addresses, in any order, may repeat */
	uint32_t target_cnt;
};

/* The code of one function. Blocks are sorted by address and do not overlap; control enters at `va`. */
struct lift_block {
	uint64_t va;
	const uint8_t *bytes;     /* `len` of them, borrowed */
	uint32_t len;
};

struct lift_code {
	enum arch_id arch;
	uint64_t va;                     /* entry: the start of one of the blocks */
	const struct lift_block *blocks;
	uint32_t block_cnt;
	const struct lift_table *tables; /* sorted by jump_va */
	uint32_t table_cnt;
	/* Whether control goes on behind a call of `va`; null: always. */
	bool (*returns)(void *ctx, uint64_t va);
	/* Whether a number in an instruction at `insn_va` is an address of the image (then it becomes a GADDR): those that are
	 * RIP-relative always are, others when this says so. Null: none. */
	bool (*is_addr)(void *ctx, uint64_t insn_va, uint64_t value);
	void *ctx;
	/* Flags that somebody reads after the function's end: a judge of single instructions wants all, compiled code none. */
	bool flags_live_out;
	uint32_t rec_limit;              /* records at most; 0: 64 for each byte and 4,096 */
};

/* What became of the instructions; for measuring. */
struct lift_stats {
	uint32_t insn_cnt;     /* instructions lifted, those of unreached blocks too */
	uint32_t generic_cnt;  /* of them, by the generic path */
	uint32_t bad_cnt;      /* bytes that are no instruction */
	bool x87_differs;      /* two ways into a block disagree on the x87 stack: f0 .. f7 are not to be trusted */
};

/*
 * Lifts a function into `arena`. IR block 0 only jumps to the entry's; IR block 1 + i is block i of the code; those behind stand
 * for what lies outside. Jumps out of the blocks, and into the middle of one, are IJMP of a constant. An instruction that runs over its
 * block's end is none (TRAP). `ret_stats` may be null. Errors: invalid (no block at the entry, blocks not sorted or empty),
 * unsupported (architecture), no memory, budget (rec_limit).
 */
_must_use_ struct err *lift_func(struct arena *arena, const struct lift_code *code, struct ir_func **ret,
				 struct lift_stats *ret_stats);

/* How a single instruction was lifted. */
struct lift_insn {
	struct ir_func *func;  /* ends in IJMP to the next instruction's address when it falls through */
	uint8_t len;           /* bytes taken */
	bool is_generic;       /* an INTRIN stands for it */
	bool is_bad;           /* no instruction; len is 1 */
	int8_t x87_delta;      /* st(0) afterwards is f(x87_delta & 7): -1 after a push */
	const char *form;      /* static or in the arena: "add r32 m32", what the coverage counts by */
};

/* One instruction alone: bytes p[0 .. len) at `va`, all flags live. For the judge, the printer of last resort and tests. */
_must_use_ struct err *lift_insn(struct arena *arena, enum arch_id arch, const uint8_t *p, size_t len, uint64_t va,
				 struct lift_insn *ret);

#endif
