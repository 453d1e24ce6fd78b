/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IR_IR_H
#define IR_IR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The intermediate representation of one function. Operations are in ops.def; each has one result for every input.
 *
 * Everything is an index. A record (struct ir_rec) is one operation; a record with a result *is* that value, and its
 * number is the value's name. Operands are tagged references: a value, a constant, a block or none. Records never move:
 * a block is a range of `order`, an array of record numbers in machine order.
 *
 * Before SSA, which is how a lifter leaves it, machine registers and flags are *locations*, read by GET and written by
 * PUT; values live inside their block only. GET and PUT are in machine order, so a location is a variable.
 * With SSA, PHI joins values, and definitions dominate uses. ir_check() accepts both.
 *
 * Memory: all of a function's IR is in one arena, which dies with ir_func's owner. Building never fails loudly: when
 * memory or a limit runs out, `failed` is set, every builder call gives something harmless, and who builds
 * looks at ir_status() once at the end.
 *
 * Not thread-safe; one worker, one arena.
 */

/* --- widths ------------------------------------------------------------------------------------------------ */
enum ir_width { IR_W0 /* no result */, IR_W1, IR_W8, IR_W16, IR_W32, IR_W64, IR_W80, IR_W128, IR_W256, IR_W512, IR_W_COUNT };

/* In bits; 0 for IR_W0 and beyond. */
static inline unsigned ir_bits(enum ir_width w)
{
	static const uint16_t bits[IR_W_COUNT] = {0, 1, 8, 16, 32, 64, 80, 128, 256, 512};
	return w < IR_W_COUNT ? bits[w] : 0;
}
/* The width of so many bits; IR_W0 when there is none. */
enum ir_width ir_width_of(unsigned bits);

/* --- operations -------------------------------------------------------------------------------------------- */
enum ir_effect {
	IR_READS_MEM = 1 << 0,
	IR_WRITES_MEM = 1 << 1,
	IR_READS_LOC = 1 << 2,
	IR_WRITES_LOC = 1 << 3,
	IR_TRAPS = 1 << 4,  /* may end the program */
	IR_CALLS = 1 << 5,
	IR_ENDS = 1 << 6,   /* the last record of its block, and only that */
};

enum ir_op {
	IR_OP_NONE, /* a record that was deleted; in no block */
#define IR_OP(id, text, signature, effects, cform) IR_##id,
#include "ir/ops.def"
	IR_OP_COUNT
};

enum ir_kind {
	IR_KIND_NONE,
#define IR_KIND(op, id, text, cform) IR_##id,
#include "ir/ops.def"
	IR_KIND_COUNT
};

struct ir_op_info {
	const char *text;      /* "add" */
	const char *signature; /* see ops.def */
	const char *cform;     /* or null */
	uint8_t effects;       /* enum ir_effect; 0: pure */
	uint8_t operand_cnt;   /* letters of the signature behind the colon */
};

struct ir_kind_info {
	const char *text;
	const char *cform; /* or null */
	uint8_t op;        /* enum ir_op it belongs to */
};

extern const struct ir_op_info ir_op_table[IR_OP_COUNT];
extern const struct ir_kind_info ir_kind_table[IR_KIND_COUNT];

/* Facts of an operation and of a kind; never null (beyond the end: those of IR_OP_NONE, IR_KIND_NONE). */
static inline const struct ir_op_info *ir_op_info(enum ir_op op)
{
	return &ir_op_table[op < IR_OP_COUNT ? op : IR_OP_NONE];
}

static inline const struct ir_kind_info *ir_kind_info(enum ir_kind kind)
{
	return &ir_kind_table[kind < IR_KIND_COUNT ? kind : IR_KIND_NONE];
}

/* Whether the operands of `op` end in a list, and how many there are before it. */
static inline bool ir_has_list(enum ir_op op)
{
	const struct ir_op_info *info = ir_op_info(op);
	return info->signature[1 + info->operand_cnt] == 'L';
}

static inline unsigned ir_fixed_operands(enum ir_op op)
{
	return ir_op_info(op)->operand_cnt - (unsigned)ir_has_list(op);
}

/* Whether `kind` may stand with `op`: one of its own, or IR_KIND_NONE when it has none. */
bool ir_kind_fits(enum ir_op op, enum ir_kind kind);

/* --- machines ---------------------------------------------------------------------------------------------- */
enum ir_loc_class {
	IR_LOC_GPR,
	IR_LOC_FLAG,    /* one bit of the flags register */
	IR_LOC_BASE,    /* base address of a segment */
	IR_LOC_SEG,     /* segment selector */
	IR_LOC_VEC,     /* vector register, its low 128 bits */
	IR_LOC_VEC_HI,  /* the bits above them */
	IR_LOC_MASK,
	IR_LOC_X87,     /* by place relative to the top of the stack at entry */
	IR_LOC_CONTROL,
	IR_LOC_VAR,     /* no register: a local variable of the function */
};

struct ir_loc {
	const char *name;
	uint8_t width; /* enum ir_width */
	uint8_t cls;   /* enum ir_loc_class */
};

/* Static and const, made by the lifter of an architecture. */
struct ir_machine {
	const char *name;         /* as struct arch has it */
	const struct ir_loc *locs;
	uint16_t loc_cnt;
	uint16_t sp_loc;
	uint8_t addr_width;       /* enum ir_width of addresses */
	bool is_be;
	bool calls_push;          /* CALL pushes the return address, RET pops it */
};

/* The location called `name`, or UINT16_MAX. */
uint16_t ir_loc_find(const struct ir_machine *m, const char *name, size_t len);

/* --- references -------------------------------------------------------------------------------------------- */
typedef uint32_t ir_ref;

enum ir_tag { IR_TAG_VALUE, IR_TAG_CONST, IR_TAG_BLOCK, IR_TAG_NONE };

#define IR_REF_NONE UINT32_MAX
#define IR_REF_INDEX_MAX ((1u << 30) - 1)

static inline enum ir_tag ir_tag(ir_ref r)
{
	return (enum ir_tag)(r >> 30);
}

/* The record, constant or block number. */
static inline uint32_t ir_index(ir_ref r)
{
	return r & IR_REF_INDEX_MAX;
}

static inline ir_ref ir_ref_make(enum ir_tag tag, uint32_t index)
{
	return (ir_ref)tag << 30 | index;
}

static inline ir_ref ir_block_ref(uint32_t block)
{
	return ir_ref_make(IR_TAG_BLOCK, block);
}

/* --- records ----------------------------------------------------------------------------------------------- */
enum ir_rec_flag {
	IR_F_BE = 1 << 0,       /* LOAD, STORE: the other byte order than the machine's */
	IR_F_VOLATILE = 1 << 1, /* must stay, and stay where it is */
	IR_F_COMPUTED = 1 << 2, /* CALL, IJMP: a constant address is a number the program made, none of the image; SWITCH: on a number */
	/* What callers and callees hand over as C does, see struct ir_sig. GET in block 0: a parameter; behind a CALL: its result. PUT before a
	 * CALL or an IJMP: an argument, before a RET: the result. These may be narrower than the location: its low bits, the others are 0.
	 * CALL, IJMP: ir_func.sigs[aux] is the callee's. */
	IR_F_TYPED = 1 << 3,
};

#define IR_SIG_ARG_MAX 14

/* What a function takes and gives as parameters and result of C. All else it has of its callers, and leaves them, is in the state. */
struct ir_sig {
	uint8_t arg_cnt;
	/* Of one call: it may have other arguments elsewhere, stack_cnt of them on the stack that are stored there before it. None is in a vector
	 * register, and the machine is told so. */
	bool is_variadic;
	uint8_t stack_cnt;
	uint8_t result_width; /* enum ir_width; IR_W0: none */
	uint16_t result;      /* location */
	struct ir_sig_arg {
		uint16_t loc;
		uint8_t width; /* enum ir_width, at most the location's */
	} args[IR_SIG_ARG_MAX];
};

struct ir_rec {
	uint8_t op;      /* enum ir_op */
	uint8_t width;   /* enum ir_width of the result; for STORE and PUT of what is stored; else IR_W0 */
	uint8_t kind;    /* enum ir_kind */
	uint8_t flags;   /* enum ir_rec_flag */
	ir_ref a, b, c;  /* operands; of a list (signature L): b the first in `lists`, c the count */
	uint32_t aux;    /* location, bit offset, lane (ir_lane()), result number, ...: see ops.def */
	uint32_t origin; /* number of the machine instruction it comes from */
};

/* `aux` of VMAP, VSHIFT, VCVT: what is done in each lane. */
static inline uint32_t ir_lane(enum ir_op op, enum ir_kind kind, enum ir_width lane)
{
	return (uint32_t)op | (uint32_t)kind << 8 | (uint32_t)lane << 16;
}

static inline enum ir_op ir_lane_op(uint32_t aux)
{
	return (enum ir_op)(aux & 0xff);
}

static inline enum ir_kind ir_lane_kind(uint32_t aux)
{
	return (enum ir_kind)(aux >> 8 & 0xff);
}

static inline enum ir_width ir_lane_width(uint32_t aux)
{
	return (enum ir_width)(aux >> 16 & 0xff);
}

/* Interned: equal constants have equal references. */
struct ir_const {
	uint32_t first_word; /* in `words`: ir_words() of them, low first; bits above the width are 0 */
	uint8_t width;       /* enum ir_width */
};

struct ir_block {
	uint64_t va;         /* of its first instruction; UINT64_MAX when it stands for none */
	uint32_t first, last; /* [first, last) of `order` */
};

/* A machine instruction: where IR comes from. */
struct ir_origin {
	uint64_t va;
	uint8_t len;         /* bytes */
	uint32_t with;       /* number of another one plus 1: what is left of it is a part of that one's; 0: of none */
};

#define IR_INTRIN_IO_MAX 40
#define IR_INTRIN_BYTES_MAX 15
#define IR_LOC_NONE UINT16_MAX

/*
 * An instruction that was not lifted. Its INTRIN record takes one argument for each `in`, in that order, then the
 * address of its memory operand when mem_len is not 0; RES k is the value of location out[k] afterwards.
 * Values have their locations' widths.
 */
struct ir_intrin {
	const char *mnemonic;                 /* "cpuid"; static, or in the function's arena */
	uint64_t va;
	uint8_t bytes[IR_INTRIN_BYTES_MAX];   /* as they stand in the program */
	uint8_t len;
	uint8_t in_cnt, out_cnt;
	uint16_t in[IR_INTRIN_IO_MAX];        /* locations */
	uint16_t out[IR_INTRIN_IO_MAX];
	uint32_t mem_len;                     /* bytes of its one memory operand; 0: has none, or several, or none of one place
						 (vector indices): then the inputs hold all the addresses are made of */
	bool reads_mem, writes_mem;           /* memory at all */
	bool is_system;                       /* leaves the program: syscall, int, in, out */
	bool is_wide;                         /* uses registers of 512 bits, or masks: more than VEX has */
	int8_t x87_top;                       /* st(i) is the location f((x87_top + i) & 7) */
	/* The same instruction with its memory operand as [reg] and nothing else, reg being a general register it does not use
	 * otherwise; alt_len 0: has no memory operand, or no such form. */
	uint8_t alt_bytes[IR_INTRIN_BYTES_MAX];
	uint8_t alt_len;
	uint16_t alt_reg;                     /* location */
};

struct ir_func {
	struct arena *arena;
	const struct ir_machine *machine;
	uint64_t va;                  /* entry; block 0 is where it begins */
	/* Null: it takes and leaves all in the state. Else it has this signature, and no return address: the stack pointer in the state is as
	 * it was before the call that pushed one, and is left so. */
	const struct ir_sig *self;
	const uint16_t *params;       /* with variables: the one each parameter of `self` is, or IR_LOC_NONE; else null */
	struct ir_sig *sigs;          /* of callees */
	uint32_t sig_cnt;
	struct ir_rec *recs;
	struct ir_const *consts;
	uint64_t *words;
	ir_ref *lists;
	uint32_t *order;
	struct ir_block *blocks;
	struct ir_origin *origins;
	struct ir_intrin *intrins;
	uint32_t *const_hash;         /* open addressing, const_hash_cap a power of two, UINT32_MAX empty */
	uint32_t rec_cnt, rec_cap;
	uint32_t const_cnt, const_cap, const_hash_cap;
	uint32_t word_cnt, word_cap;
	uint32_t list_cnt, list_cap;
	uint32_t order_cnt, order_cap;
	uint32_t block_cnt, block_cap;
	uint32_t origin_cnt, origin_cap;
	uint32_t intrin_cnt, intrin_cap;
	uint32_t rec_limit;           /* records at most; 0: none */
	uint32_t cur_origin;          /* given to new records */
	uint32_t cur_block;           /* they go into */
	bool failed;                  /* memory or rec_limit ran out */
};

/* --- building ---------------------------------------------------------------------------------------------- */
/* An empty function in `arena`; null when out of memory. */
struct ir_func *ir_func_new(struct arena *arena, const struct ir_machine *machine, uint64_t va);

/* Makes room for so many more records and machine instructions at once. */
void ir_reserve(struct ir_func *f, uint32_t recs, uint32_t origins);

/* Null, or why building failed: no memory, budget. */
_must_use_ struct err *ir_status(const struct ir_func *f);

/* A block without content; gives its number. */
uint32_t ir_block_new(struct ir_func *f, uint64_t va);
/* Records made from here on are this block's, until the next call; each block is begun at most once. */
void ir_block_begin(struct ir_func *f, uint32_t block);
/* Opens a block again that was begun and ended: its records but the last are taken over, what is made from here on comes behind
 * them, until ir_block_close() puts the last one, whose number this gives, at the end again. */
uint32_t ir_block_reopen(struct ir_func *f, uint32_t block);
void ir_block_close(struct ir_func *f, uint32_t last_rec);
/* Machine instruction that records made from here on come from. */
void ir_origin_set(struct ir_func *f, uint64_t va, unsigned len);

/* Makes room for one more record in the block that was begun; false: none, and `failed`. */
bool ir_emit_room(struct ir_func *f);

/* Appends a record to the block that was begun; its reference. `aux` and the rest as ops.def says. */
static inline ir_ref ir_emit(struct ir_func *f, const struct ir_rec *rec)
{
	bool has_room = f->rec_cnt < f->rec_cap && f->order_cnt < f->order_cap && !f->failed;
	if (!has_room && !ir_emit_room(f))
		return ir_ref_make(IR_TAG_VALUE, 0);
	uint32_t i = f->rec_cnt++;
	f->recs[i] = *rec;
	f->recs[i].origin = f->cur_origin;
	f->order[f->order_cnt++] = i;
	f->blocks[f->cur_block].last = f->order_cnt;
	return ir_ref_make(IR_TAG_VALUE, i);
}

/* Constants. ir_const() cuts `v` to the width; for wider than 64 bits it is zero-extended. ir_const_wide() takes
 * ir_words(w) words, low first. */
ir_ref ir_const(struct ir_func *f, enum ir_width w, uint64_t v);
ir_ref ir_const_wide(struct ir_func *f, enum ir_width w, const uint64_t *words);
/* 64-bit words a value takes: 1, 2, 4, 8. */
static inline unsigned ir_words(enum ir_width w)
{
	return (ir_bits(w) + 63) / 64;
}
/* Puts `cnt` references into the lists; the index of the first. */
uint32_t ir_list(struct ir_func *f, const ir_ref *refs, uint32_t cnt);
/* An empty intrinsic; its number, and where to fill it in (valid until the next call; null when failed). */
uint32_t ir_intrin_new(struct ir_func *f, struct ir_intrin **ret);

/* --- looking ----------------------------------------------------------------------------------------------- */
/* Width of a value or constant; IR_W0 for anything else. */
static inline enum ir_width ir_ref_width(const struct ir_func *f, ir_ref r)
{
	uint32_t i = ir_index(r);
	if (ir_tag(r) == IR_TAG_CONST)
		return i < f->const_cnt ? (enum ir_width)f->consts[i].width : IR_W0;
	if (ir_tag(r) != IR_TAG_VALUE || i >= f->rec_cnt)
		return IR_W0;
	return ir_op_info((enum ir_op)f->recs[i].op)->signature[0] == '-' ? IR_W0 : (enum ir_width)f->recs[i].width;
}

/* Whether `r` is a constant of at most 64 bits, and its value. */
static inline bool ir_const_get(const struct ir_func *f, ir_ref r, uint64_t *ret)
{
	if (ir_tag(r) != IR_TAG_CONST || ir_index(r) >= f->const_cnt || ir_bits((enum ir_width)f->consts[ir_index(r)].width) > 64)
		return false;
	*ret = f->words[f->consts[ir_index(r)].first_word];
	return true;
}

/* The words of a constant, ir_words() of its width; null for anything else. */
const uint64_t *ir_const_words(const struct ir_func *f, ir_ref r);
/* The last record of a block; null when it has none. */
const struct ir_rec *ir_terminator(const struct ir_func *f, uint32_t block);
/* Calls `fn` for each value, constant and block a record refers to, in order; lists included. Here, so that `fn` is called directly: passes look at
 * every operand there is. */
static inline void ir_operands(const struct ir_func *f, const struct ir_rec *rec, void (*fn)(void *ctx, ir_ref r), void *ctx)
{
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	unsigned fixed = ir_fixed_operands((enum ir_op)rec->op);
	for (unsigned i = 0; i < fixed; i++) {
		if (refs[i] != IR_REF_NONE)
			fn(ctx, refs[i]);
	}
	if (ir_has_list((enum ir_op)rec->op)) {
		for (uint32_t k = 0; k < rec->c; k++)
			fn(ctx, f->lists[rec->b + k]);
	}
	if (rec->op == IR_SWITCH)
		fn(ctx, ir_block_ref(rec->aux));
}

/* Successors and predecessors of all blocks: those of block i are list[first[i]] .. list[first[i + 1] - 1], each block
 * once, in the order of the terminator's operands, predecessors in the order of their number. */
struct ir_edges {
	uint32_t *first; /* block_cnt + 1 */
	uint32_t *list;
};
/* In the function's arena; false when out of memory. */
bool ir_succs(const struct ir_func *f, struct ir_edges *ret);
bool ir_preds(const struct ir_func *f, struct ir_edges *ret);
/* The one from the other. */
bool ir_turn_edges(const struct ir_func *f, const struct ir_edges *edges, struct ir_edges *ret);

/* --- checking and text ------------------------------------------------------------------------------------- */
/*
 * Whether the function is well formed: operations, kinds, widths, operand tags and indices, one terminator at the end of
 * every block, every record in one block at most, values defined before use in their block or (with SSA) in a
 * block that dominates, PHI at the front with one operand for each predecessor, RES of what has results, locations of
 * their widths. Null when it is; else internal, naming the record. Takes scratch memory from the function's arena.
 */
_must_use_ struct err *ir_check(struct ir_func *f);

/*
 * Text form, one record a line:
 *
 *   func x86-64 0x1000
 *   block 0 0x1000
 *   insn 0x1000 4
 *   %0:64 = get rax
 *   %1:64 = add %0 0x5:64
 *   put rax %1
 *   br %7 b1 b2
 *
 * ir_print() and ir_parse() round-trip: parsing what was printed gives the same text again. Records in no block are not
 * printed, and numbers are those of the order.
 */
void ir_print(struct ir_func *f, struct buf *b);

/* Reads the text form (hostile: any bytes). `machines` are those it may name, `cnt` of them. Errors: bad_input with the line,
 * no memory, budget. What comes out has the form of IR, but only ir_check() says that it is well formed. */
_must_use_ struct err *ir_parse(struct arena *arena, const char *text, size_t len, const struct ir_machine *const *machines,
				unsigned cnt, struct ir_func **ret);

#endif
