/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECOMP_DEC_H
#define DECOMP_DEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "ir/ir.h"

/*
 * From lifted IR to IR worth reading. Each pass takes a function that ir_check() accepts and leaves one; between any two the
 * interpreter can run it, and what it leaves (registers of results, memory, calls with their arguments) is what the lifted
 * function leaves. A pass that cannot prove something leaves it as it is.
 *
 * Three forms, all of them struct ir_func:
 *
 *   lifted    GET and PUT of machine locations anywhere, values live in their block.
 *   SSA       values live across blocks, PHI at joins. What is left of GET and PUT is the border of the function: GET at the
 *             entry and behind calls; PUT before calls, jumps out and returns, of what the other side may read.
 *   variables out of SSA again: the machine has more locations, of class IR_LOC_VAR, which are the function's local
 *             variables (and no registers); values live in their block, what crosses blocks is PUT into and GET from
 *             variables. Locations of other classes are the state of the machine handed to calls and left at the end.
 *
 * The last form is what gets structured and printed: a block is its records but the last one, in order; its last one is JMP,
 * BR, SWITCH, RET, IJMP or TRAP. BR's condition is a value of one bit made in the same block.
 */

/* What a function's C is printed from, best first; docs/design.md has the ladder. */
enum dec_level {
	DEC_L0, /* everything */
	DEC_L1, /* without types beyond integers of a width */
	DEC_L2, /* without schemas: structure by the engine that always succeeds */
	DEC_L3, /* the frame as bytes on the machine's stack */
	DEC_L4, /* lifted: registers as variables */
	DEC_LEVEL_COUNT
};

const char *dec_level_name(enum dec_level l); /* "L0" */

/* A local variable: location first_var + i of dec_func.f's machine. */
struct dec_var {
	uint16_t loc;     /* the machine's location it is of: a parameter's, or where most of its values were put; IR_LOC_NONE: none */
	uint8_t width;    /* enum ir_width */
	bool is_entry;    /* holds the entry value of `loc`: set once, first thing in block 0 */
	bool is_param;    /* is a parameter of the function, of that location; set there and may be set again */
	bool is_slot;     /* was in memory of the frame, at `slot` */
	int64_t slot;     /* bytes from the stack pointer at entry */
	uint64_t va;      /* of the first instruction that sets it, by address */
};

/* What was taken for granted without proof; the C is right where it holds. */
enum dec_assumption {
	DEC_A_CALLS = 1 << 0,  /* callees keep to the convention: registers they keep, the stack below the caller's, no other inputs */
	DEC_A_CANARY = 1 << 1, /* the stack protector's value does not change while the function runs; the check is left out */
	DEC_A_FRAME = 1 << 2,  /* pointers to objects of the frame are not used to reach variables that have no address */
	DEC_A_DF = 1 << 3,     /* the direction flag is clear at entry and behind calls */
};

#define DEC_LOC_WORDS 3 /* bitmaps by location number: 192 */

struct dec_callee {
	uint64_t reads[DEC_LOC_WORDS];    /* locations it may read before it writes them */
	uint64_t changes[DEC_LOC_WORDS];  /* locations that may hold something else when it returns */
	uint64_t may_keep[DEC_LOC_WORDS]; /* of those: what holds something a caller may rely on where it was not changed */
	int32_t stack_args;               /* bytes of arguments on the stack it may read; -1: not known */
};

/* What may be asked about the program around the function. */
struct dec_opts {
	uint32_t step_limit;   /* records made by all passes together; 0: 200 for each lifted record and 20,000 */
	unsigned passes_off;   /* bits of enum dec_pass left out; for finding which one changed behaviour */
	unsigned rules_off;    /* so many rules are left out, the last of the table first; for the same */
	/* What is known of the code at an address (a constant of a CALL or IJMP); `ret` holds what the convention says, and is to be made
	 * narrower. The same answer each time. Null: nothing is known of any. */
	void (*callee)(void *ctx, uint64_t va, struct dec_callee *ret);
	/* Whether a function begins at an address: a jump there with the stack as at the entry is a call and a return. Null: none does. */
	bool (*is_start)(void *ctx, uint64_t va);
	/* Bytes of memory that never change, at an address of the file: `len` of them into `out`; false: not so. Null: none. */
	bool (*rodata)(void *ctx, uint64_t va, void *out, size_t len);
	/* The signature of the function at an address: what calls of it hand over as arguments and take as result. False, or null: none, it
	 * is called with the state. */
	bool (*sig)(void *ctx, uint64_t va, struct ir_sig *ret);
	/* The signature of one call of a function that takes any number of arguments: `args[i]` is the address or the number that argument i in
	 * general registers is, where bit i of `known` is set; with `args` null the one with the most arguments a call may have. False, or null:
	 * nothing is known. */
	bool (*call_sig)(void *ctx, uint64_t va, const uint64_t *args, unsigned known, struct ir_sig *ret);
	/* Which argument of the function at an address is a text that the result is a translation of; -1, or null: none. */
	int (*translates)(void *ctx, uint64_t va);
	/* That of the function itself, null: none; and which results beside that its callers want to find in the state, bits by location. */
	const struct ir_sig *self;
	const uint64_t *leaves; /* DEC_LOC_WORDS; null: all that may be results */
	/* The name of what the function at an address takes as argument `arg`, or, with -1, of what it gives: a C identifier, no keyword. False,
	 * or null: nothing is known. */
	bool (*word)(void *ctx, uint64_t va, int arg, char *buf, size_t buf_len);
	/* Called behind each pass with the form it left, for judges; null: nobody. False: stop here. */
	bool (*after)(void *ctx, unsigned pass, struct ir_func *f);
	void *ctx;
};

struct dec_func {
	struct ir_func *f;          /* in the form of variables; in the arena of the lifted one */
	struct ir_machine machine;  /* f's: the lifted one's locations, then the variables */
	uint16_t first_var;         /* number of the first variable's location */
	uint16_t var_cnt;
	struct dec_var *vars;
	uint8_t *rec_signs, *loc_signs; /* of f, per record and location: 1 when people would declare it with a sign */
	const char **rec_words;     /* of f, per record: what people would call a variable of its own, not the only one of that name; null */
	unsigned assumes;           /* enum dec_assumption */
	unsigned passes_done;       /* bits of enum dec_pass */
	enum dec_level level;       /* the best it can be printed at */
	uint32_t steps;             /* of the limit */
};

/*
 * The passes in order. What each requires of the function before it, what it provides, and what it breaks stands at the
 * top of its file.
 *
 *   DEC_P_SSA     needs: lifted form.            gives: SSA form, flags and registers nobody reads are gone, expressions folded
 *   DEC_P_STACK   needs: SSA.                    gives: private slots of the frame as values; saved registers and canary known by value
 *   DEC_P_SWITCH  needs: SSA.                    gives: switches on values, of jumps through tables and trees of comparisons
 *   DEC_P_RANGE   needs: SSA.                    gives: what known bits, ranges and demanded bits decide is decided
 *   DEC_P_DEAD    needs: SSA.                    gives: no record without effect or use, no block nobody reaches
 *   DEC_P_VARS    needs: SSA, blocks all reached. gives: the form of variables; breaks: SSA
 */
enum dec_pass { DEC_P_SSA, DEC_P_STACK, DEC_P_SWITCH, DEC_P_RANGE, DEC_P_DEAD, DEC_P_VARS, DEC_PASS_COUNT };

const char *dec_pass_name(enum dec_pass p); /* "ssa" */
/* Whether a function can be printed without it. */
bool dec_pass_is_optional(enum dec_pass p);

/* The rules that simplify values: how many there are, and the name of one. */
unsigned dec_rule_cnt(void);
const char *dec_rule_name(unsigned rule);

/*
 * All passes over a lifted function, which is left as it is (`ret` shares its arena, constants apart). Errors: budget (the steps ran
 * out, or more variables than there are numbers), unsupported (what has no such form, named), no memory, internal (a pass left what
 * ir_check() refuses: only where the build checks). Whoever gets an error prints the lifted form.
 */
_must_use_ struct err *dec_run(struct ir_func *lifted, const struct dec_opts *opts, struct dec_func *ret);

/* What the convention says of a callee of which nothing else is known. */
void dec_callee_conventional(const struct ir_machine *m, struct dec_callee *ret);

/* A callee that takes `args` (at most 6) arguments, all of them in general registers, and nothing else. */
void dec_callee_plain(const struct ir_machine *m, unsigned args, struct dec_callee *ret);

/*
 * What callers of a lifted function have to know of it, by its own code; `opts` are asked about what it calls. `ret` holds what the
 * convention says, and stays so as far as nothing better can be said.
 */
void dec_callee_of(struct ir_func *lifted, const struct dec_opts *opts, struct dec_callee *ret);

/* --- prototypes --- */
enum dec_result { DEC_R_NONE, DEC_R_INT /* rax */, DEC_R_PAIR /* rdx:rax */, DEC_R_VEC /* xmm0 */, DEC_R_X87 /* st0 */ };

/* What a function takes and gives, by its code, under the System V convention of AMD64 (3.2.3). */
struct dec_proto {
	uint8_t ints[6], vecs[8];        /* bits used of each parameter in general and vector registers; 0: taken, not used */
	uint8_t int_cnt, vec_cnt;        /* parameters there, gaps filled */
	uint8_t stack_cnt;               /* eightbytes of parameters on the stack */
	bool is_noreturn;                /* of callees: nothing comes back from it */
	bool reads_return;               /* uses its return address otherwise than to return */
	bool is_variadic;                /* the counts are those of the parameters with names */
	uint8_t result;                  /* enum dec_result; what it may be, as long as is_sure is not set */
	uint8_t result_bits;
	uint64_t flows[DEC_LOC_WORDS];   /* locations whose entry value may be there when something is called of which nothing is known */
	uint8_t may;                     /* DEC_L_*: places that hold something of its own, or of a callee that gives it, at every return */
	uint8_t more;                    /* bits DEC_L_*: a second place of the result */
	bool is_sure;                    /* its code says what the result is; else callers say */
	uint64_t changes[DEC_LOC_WORDS]; /* locations that may hold something else when it returns */
};

/* Places of results. */
enum { DEC_L_RAX = 1, DEC_L_RDX = 2, DEC_L_XMM0 = 4, DEC_L_ST0 = 8, DEC_L_XMM1 = 16, DEC_L_ST1 = 32, DEC_L_ALL = 63 };

/* What is used behind a call of what it left there. */
struct dec_wants {
	uint8_t places;   /* DEC_L_* */
	uint8_t rax_bits; /* low bits of rax */
};

struct dec_proto_opts {
	/* What is known of the function at an address; false: nothing. Without `changes` it changes what the convention lets it. */
	bool (*known)(void *ctx, uint64_t va, struct dec_proto *ret);
	/* Told of calls of an address: what is used behind it, if anything; and with `is_through` what is when all that the function may leave
	 * at its end is. May be null. */
	void (*wants)(void *ctx, uint64_t va, const struct dec_wants *w, bool is_through);
	void *ctx;
};

/* Errors: unsupported (another machine than x86-64), no memory. `lifted` stays as it is, its arena is used. */
_must_use_ struct err *dec_proto_of(struct ir_func *lifted, const struct dec_proto_opts *opts, struct dec_proto *ret);

#endif
