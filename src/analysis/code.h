/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_CODE_H
#define ANALYSIS_CODE_H

#include "analysis/analysis_int.h"
#include "analysis/stated_int.h"
#include "base/bits.h"
#include "base/map.h"

/*
 * The state of code discovery, shared by the stages of this folder in this order:
 *
 * - sweep.c: decodes every byte of the executable regions once, in parallel, into bit maps, records of
 *   the instructions that do not just fall through, and references;
 * - starts.c: where functions begin and how far they reach, from every source that says so;
 * - stated.c: what people say, which stands against all of these;
 * - names.c: import stubs, the entry and main, who does not return by name;
 * - table.c: jump tables, in parallel, from the sweep alone (slice.c: values along a path);
 * - flow.c: follows control from the starts over the records: who owns which code, who returns;
 * - pairs.c: references made of several instructions, where the machine has such (track.c);
 * - gaps.c: pointers into code nobody reached, then what lies between functions (entry.c, island.c);
 * - emit.c: writes functions, blocks and references to struct image_data.
 *
 * All positions are locs. Bit maps cover [base, base + len) and are indexed by loc - base; base is a
 * multiple of 64.
 */
#define CODE_NONE UINT32_MAX
#define PIECES_MAX 256u

/* An instruction (or a run of bytes that are none) after which control does not simply go on. */
struct code_rec {
	uint32_t loc;
	uint32_t target; /* loc of a direct target, or of the word an indirect one goes through;
			    LOC_NONE */
	uint8_t flow;	 /* enum arch_flow */
	uint8_t len;	 /* bytes */
	uint8_t flags;	 /* enum arch_insn_flag */
	bool is_dispatch; /* an indirect jump that looks like one of a switch */
};

/* A piece of the sweep: what starts in [from, to). */
struct code_chunk {
	uint32_t from, to;
	uint32_t region_to; /* no instruction reaches past it */
	uint32_t end;	    /* where decoding stopped, >= to */
	uint32_t last_rec;  /* while decoding: the last record, or where it began */
	VEC(struct code_rec) recs;
	VEC(struct image_xref) refs; /* by operands; direct targets are in recs */
	bool has_failed;
};

struct code_region {
	uint32_t from, to;
	bool is_section;
	bool is_stated; /* there only because somebody says that code is here: nothing is guessed in it */
};

/* How far a function reaches by symbols, unwind or other tables; sorted by `from`, no overlaps. */
struct code_ext {
	uint32_t from, to;
	uint32_t start; /* loc of the function this belongs to; CODE_NONE: a fragment nobody entered
			 */
	uint8_t source; /* enum image_source */
	bool is_fragment;
	bool is_stated;	   /* the function has no code outside of such */
	bool is_loose;	   /* ... was decided from jumps, not told */
	bool was_fragment; /* what was told */
};

enum fn_status { FN_UNKNOWN, FN_RETURNS, FN_NORETURN };

struct code_fn {
	uint32_t loc;
	uint32_t waiting; /* first of those that wait for it to return, CODE_NONE */
	uint32_t resume;  /* first of its own waits that are over, CODE_NONE */
	uint32_t flags;	  /* enum image_func_flag */
	uint32_t thunk_to;
	uint8_t source;
	uint8_t status; /* enum fn_status */
	uint8_t why;	/* enum image_noreturn_why */
	bool is_queued;
	bool is_bound;	/* its pieces were stated */
	bool is_loose;	/* code of no function that somebody says to be code: never listed */
};

/* What waits until a callee is known to return. */
struct code_wait {
	uint32_t fn;
	uint32_t loc;  /* where to go on; CODE_NONE: a tail call, the caller then returns too */
	uint32_t next; /* of the same callee */
};

struct code_piece {
	uint32_t from, to, fn;
};

/* A resolved jump table, by record. */
struct code_table {
	struct image_table t;
	uint32_t rec;
};

struct code {
	const struct analysis_in *in;
	struct image_data *d;
	const struct arch *arch;
	uint32_t base, len;
	VEC(struct stated_zone) zones; /* what was stated, by loc, without overlaps */
	VEC(struct stated_flags) flags; /* of functions, by loc */
	bool has_bounds;
	VEC(struct code_region) regions;
	VEC(struct code_chunk) chunks;

	uint64_t *items; /* an instruction starts here, as swept */
	uint64_t *pads;	 /* ... and it is padding */
	uint64_t *rec_bits;
	uint64_t *sync;	     /* the sweep must start an instruction here */
	uint64_t *called;    /* target of a direct call */
	uint64_t *taken;     /* an operand or a relocation makes this address */
	uint64_t *relocated; /* ... the latter */
	uint64_t *starts;    /* functions */
	uint32_t free_from, free_to; /* no function starts in [free_from, free_to) */
	uint64_t *covered;   /* bytes reached from a start */
	uint64_t *leaders;   /* blocks */
	uint64_t *touched;   /* reached code reads or writes here, and nobody has run it */
	uint64_t *data_refs; /* over all locs: an operand makes this address */

	struct code_rec *recs;
	uint32_t rec_cnt;
	uint32_t *rank;	      /* directory of rec_bits */
	uint32_t *owner;      /* function of each record, CODE_NONE */
	uint32_t *into_first; /* per 64 locs: where the jumps into them begin in `into` */
	uint32_t *into;	      /* records of direct jumps, by bucket of their target */

	VEC(struct code_piece) plts; /* sections of import stubs, at most PIECES_MAX */
	VEC(struct code_piece) gots; /* sections of bound pointers, likewise */
	VEC(struct code_ext) exts;
	VEC(struct code_fn) fns;
	struct map fn_at; /* loc -> index into fns */
	VEC(struct code_wait) waits;
	VEC(struct code_piece) pieces; /* reached code that ends without a record of its own */
	VEC(uint32_t) queue;	       /* functions to visit */
	struct map got;		       /* loc of a GOT slot or an extern slot -> import */
	uint64_t *import_noreturn;     /* bit per import */
	VEC(struct code_table) tables; /* sorted by rec */
	VEC(uint32_t) targets;
	VEC(uint32_t) missync; /* reached addresses inside what the sweep took for an instruction */
	uint64_t covered_cnt;  /* bytes, for progress */
	bool are_aligned; /* functions of this file begin at multiples of the usual alignment */
	bool has_failed;  /* memory ran out */
	bool is_cancelled;
};

static inline bool code_in(const struct code *c, uint32_t loc)
{
	return loc >= c->base && loc - c->base < c->len;
}

static inline bool code_has(const struct code *c, const uint64_t *bits, uint32_t loc)
{
	return code_in(c, loc) && bits_get(bits, loc - c->base);
}

static inline void code_mark(const struct code *c, uint64_t *bits, uint32_t loc)
{
	bits_set(bits, loc - c->base);
}

/* First marked loc in [from, to), or `to`; both inside the code. */
static inline uint32_t code_next(const struct code *c, const uint64_t *bits, uint32_t from,
				 uint32_t to)
{
	return from >= to ? to : (uint32_t)bits_next(bits, from - c->base, to - c->base) + c->base;
}

/* Last marked loc in [from, to), or CODE_NONE. */
static inline uint32_t code_prev(const struct code *c, const uint64_t *bits, uint32_t from,
				 uint32_t to)
{
	if (from >= to)
		return CODE_NONE;
	uint64_t at = bits_prev(bits, from - c->base, to - c->base);
	return at == to - c->base ? CODE_NONE : (uint32_t)at + c->base;
}

/* Index of the record at `loc`, which has one; of the next one otherwise. */
static inline uint32_t code_rec_at(const struct code *c, uint32_t loc)
{
	return (uint32_t)bits_rank(c->rec_bits, c->rank, c->len, loc - c->base);
}

static inline bool code_rec_ends(const struct code_rec *r)
{
	return r->flow != ARCH_FLOW_CJUMP && r->flow != ARCH_FLOW_CALL &&
	       r->flow != ARCH_FLOW_ICALL && r->flow != ARCH_FLOW_NEXT;
}

/* The region that holds loc, or null. */
const struct code_region *code_region_of(const struct code *c, uint32_t loc);
/* The section that holds loc, or null. */
const struct image_section *code_section_of(const struct code *c, uint32_t loc);
/* The extent that holds loc, or null; the index likewise, CODE_NONE. */
const struct code_ext *code_ext_of(const struct code *c, uint32_t loc);
/* The first extent that begins behind `loc`, or the end of them all. */
const struct code_ext *code_ext_after(const struct code *c, uint32_t loc);
/* Whether `loc` lies in a piece stated for a function that begins elsewhere: no other one does here. */
bool code_is_stated_inside(const struct code *c, uint32_t loc);
/* First loc in [loc, to) that is not covered, or `to`. */
uint32_t code_next_gap(const struct code *c, uint32_t loc, uint32_t to);
/* End of the instruction that starts at `loc`: the next item or record start, at most the region's
 * end. */
uint32_t code_insn_end(const struct code *c, uint32_t loc);
/* Start of the instruction that ends at `loc`, CODE_NONE when none does. */
uint32_t code_insn_before(const struct code *c, uint32_t loc);
/* True when control cannot come to `loc` from the instruction before it: padding, a jump, a return.
 */
bool code_is_after_end(const struct code *c, uint32_t loc);
/* Whether a direct jump goes to `loc`. */
bool code_is_jumped_to(const struct code *c, uint32_t loc);
/* How code looks as the beginning of a function. */
enum entry_look {
	ENTRY_OPEN,	/* nothing speaks for or against it */
	ENTRY_OPEN_END, /* ... and there is no more to see */
	ENTRY_ODD,	/* it uses what only the middle of a function has */
	ENTRY_FRAME,	/* it takes stack */
	ENTRY_LEAF,	/* it leaves again without having touched the stack */
};
enum entry_look code_entry_look(const struct code *c, uint32_t loc);
/* What the instruction at `loc` does; false where no bytes are. */
bool code_effect(const struct code *c, uint32_t loc, struct arch_effect *ret);
/* Whether one of the last instructions before the one at `loc` gives the stack frame back. */
bool code_gives_back_stack(const struct code *c, uint32_t loc);
bool code_is_cancelled(struct code *c);
void code_progress(struct code *c, const char *stage, uint64_t done, uint64_t total);

/* stated.c: zones and flags; then, with the regions, extents and where the sweep must begin. */
_must_use_ struct err *code_stated_read(struct code *c);
_must_use_ struct err *code_stated_regions(struct code *c);
_must_use_ struct err *code_stated_exts(struct code *c);
/* End of the stated data that holds `loc`, or `loc`. */
uint32_t code_stated_data_end(const struct code *c, uint32_t loc);
/* The first stated data in [loc, to), or `to`. */
uint32_t code_stated_data_next(const struct code *c, uint32_t loc, uint32_t to);
void code_stated_starts(struct code *c);
/* What was stated of a function that was just added. */
void code_stated_flags(const struct code *c, struct code_fn *f);
/* Jump tables stated by hand take the place of those that were found. */
_must_use_ struct err *code_stated_tables(struct code *c);
/* Follows the code that somebody says to be there and nobody reached. */
_must_use_ struct err *code_stated_flow(struct code *c);

_must_use_ struct err *code_regions(struct code *c);
_must_use_ struct err *code_sweep(struct code *c);
/* Sweeps again with the points of c->missync; false when there is nothing to do. */
_must_use_ bool code_sweep_again(struct code *c);
_must_use_ struct err *code_index(struct code *c);

_must_use_ struct err *code_exts(struct code *c);
_must_use_ struct err *code_find_plts(struct code *c);
_must_use_ struct err *code_starts(struct code *c);
_must_use_ struct err *code_imports(struct code *c);
_must_use_ struct err *code_names(struct code *c);

/* The import whose slot (GOT or extern) is `loc`, CODE_NONE. */
uint32_t code_import_of(const struct code *c, uint32_t loc);
bool code_in_plt(const struct code *c, uint32_t loc);

/* Constants in registers along straight code. */
struct code_track {
	uint64_t val[64];
	uint64_t known;	 /* bit r: val[r] holds */
	uint64_t pushed; /* address that a call of the next instruction left on the stack for it, 0
			    none */
};
/* Applies the instruction at `loc` (`rec` null: it just falls through); gives what it does. */
void code_track_step(const struct code *c, struct code_track *t, uint32_t loc,
		     const struct code_rec *rec, struct arch_effect *ret);
/* Register that a call of `target` fills with the address behind the call, ARCH_REG_NONE. */
uint8_t code_pc_thunk(const struct code *c, uint32_t target);

/* Whether a function of this name does not come back. */
bool code_name_is_noreturn(const char *s, size_t len);

_must_use_ struct err *code_tables(struct code *c);
const struct code_table *code_table_of(const struct code *c, uint32_t rec);

/* The function at loc, made when there is none; CODE_NONE when memory ran out. A better source
 * wins. */
uint32_t code_fn_add(struct code *c, uint32_t loc, enum image_source source);
/* Index of the function that starts at loc, CODE_NONE. */
uint32_t code_fn_find(const struct code *c, uint32_t loc);
/* Follows control from all functions that are not visited yet, to the end. */
_must_use_ struct err *code_flow(struct code *c);
/* Follows control from `loc` as a part of function `fn`. */
void code_flow_part(struct code *c, uint32_t fn, uint32_t loc);
/* Decides who does not return; called when code_flow() has come to rest. */
void code_flow_settle(struct code *c);

/* Marks c->touched by what is covered now. */
void code_mark_touched(struct code *c);
/* What speaks for data where code seems to lie in a gap. */
enum code_around {
	AROUND_CLEAN,
	AROUND_BEHIND, /* what follows in the gap is data */
	AROUND_BEFORE, /* what comes before, at least */
	AROUND_ITSELF, /* it is read as data */
};
/* `gap`: the piece without known code that holds [loc, to), which looks like code. */
enum code_around code_what_is_around(const struct code *c, const struct code_piece *gap,
				     uint32_t loc, uint32_t to);
/* Whether what begins at `loc`, up to `to`, does not decode as code does. */
bool code_is_data(const struct code *c, uint32_t loc, uint32_t to);

_must_use_ struct err *code_pointers(struct code *c);
_must_use_ struct err *code_gaps(struct code *c);
/* References made of two instructions. */
_must_use_ struct err *code_pairs(struct code *c);
_must_use_ struct err *code_emit(struct code *c, uint64_t **ret_code_bits);

#endif
