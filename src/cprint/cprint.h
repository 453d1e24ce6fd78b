/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPRINT_CPRINT_H
#define CPRINT_CPRINT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "ir/ir.h"

/*
 * C from IR before SSA: the lowest rung of the ladder, which must always be there. Machine registers are variables, a
 * basic block is a statement group behind a label, control is goto. The text needs include/scry.h and nothing else, uses
 * no operation C leaves undefined, and means what the IR means, record by record.
 *
 * A function takes the state of the machine, `struct scry_MACHINE *m`, with its return address on the machine's stack, and
 * leaves in it the state at its end; m->pc is where control went. Calls hand the state to the code at an address.
 */

/* One line of the text (from 1) and an instruction it comes from; sorted by line, then address. Every instruction of the function is there. */
struct cprint_line {
	uint32_t line;
	bool is_near; /* the instruction left nothing in the text (it does nothing, or nobody uses what it does): a line beside it */
	uint64_t va;
};

struct cprint_map {
	VEC(struct cprint_line) lines;
};

void cprint_map_fini(struct cprint_map *map);

/* How the variable of a location or a value is declared. It changes no meaning: what is read otherwise gets a cast. */
enum cprint_view { CPRINT_UNSIGNED, CPRINT_SIGNED };

struct cprint_views {
	const uint8_t *locs; /* enum cprint_view, by location */
	const uint8_t *recs; /* by record, for those that get variables of their own */
	const char *const *words; /* what these are called, by record; null: by numbers */
};

struct cprint_opts {
	const char *name; /* of the function: an identifier */
	/* What to say about an address in a comment, or null: `buf` may be filled. Text of the target, so it is escaped here. */
	const char *(*name_of)(void *ctx, uint64_t va, char *buf, size_t buf_len);
	/* Whether the code at an address has a C form, whose name is put into `buf`; null: none has. Calls and jumps there go to that. */
	bool (*fn_of)(void *ctx, uint64_t va, char *buf, size_t buf_len);
	/* The label of the block at an address: an identifier that no other block of the function has; false, or null: its number. */
	bool (*label_of)(void *ctx, uint64_t va, char *buf, size_t buf_len);
	/* The name of `bits` of data at an address, an identifier that stands for nothing else in the file; false, or null: none. */
	bool (*global_of)(void *ctx, uint64_t va, unsigned bits, char *buf, size_t buf_len);
	struct buf *defines; /* with `global_of`: what these names stand for, which has to come before the function */
	/* Adds the text that lies at an address as C would write it; false, or null: none does. */
	bool (*text_of)(void *ctx, uint64_t va, struct buf *text);
	/* The name of a function that has a signature. Needed where calls with one are. */
	void (*typed_name)(void *ctx, uint64_t va, char *buf, size_t buf_len);
	void *ctx;
	/* Locations are the state's own members, and only those of class IR_LOC_VAR are variables; else all are variables, which the state
	 * gets before calls. Not for instructions without C that name a variable's location. */
	bool is_state;
	const struct cprint_views *views; /* null: all are unsigned */
	bool *is_plain; /* set to whether the schemas gave up, so that gotos say what they did not; null: nobody asks */
	struct arena *scratch; /* used up, nothing of the result lies in it; null: one of its own */
};

/*
 * Appends the definition of `f` to `text` and, when `map` is not null, its lines to it (numbered from the first line of
 * `text`). Errors: unsupported with the operation that has no form in C (then `text` is as it was), no memory. `f` is one
 * ir_check() accepts, without PHI.
 */
_must_use_ struct err *cprint_func(const struct ir_func *f, const struct cprint_opts *opts, struct buf *text,
				   struct cprint_map *map);

/* What stands before the first function of a file: includes. */
void cprint_prelude(struct buf *text);

/*
 * What a function with a signature looks like from outside. Its C gets the state from scry_m of the header.
 *
 * The head of its definition, without a line's end: "uint64_t f_1000(uint64_t a0)".
 */
void cprint_prototype(const struct ir_sig *sig, const char *name, struct buf *text);
/* A function that is called with the state, by whoever has none of its own in scry_m, and calls that of `name`; `sig` null: which is, too. */
void cprint_entry(const struct ir_machine *m, const struct ir_sig *sig, const char *entry, const char *name, struct buf *text);
/* A function of that signature that calls code with the state: the C of function `state_fn`, or, when that is null, machine code at `va`. */
void cprint_stub(const struct ir_machine *m, const struct ir_sig *sig, const char *name, uint64_t va, const char *state_fn, struct buf *text);

/* The name of a machine's state in C: "scry_x86_64". */
void cprint_machine(const struct ir_machine *m, struct buf *text);

#endif
