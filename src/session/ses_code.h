/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_CODE_H
#define SESSION_SES_CODE_H

#include "cprint/cprint.h"
#include "decomp/dec.h"
#include "session/session.h"

#define SES_CODE_WORD_MAX 48

/* A function as C. Zero-initialise; ses_code_fini() releases. */
struct ses_code {
	uint64_t va;
	char name[96];       /* in C: an identifier no other function of the target has */
	char prototype[480];
	bool has_sig;        /* it takes parameters and gives a result as C does; else the state */
	struct ir_sig sig;
	VEC(uint32_t) callees; /* functions it calls by their names, so they have to be declared before */
	bool has_failed;
	struct buf stops;    /* where the C is not all of the function, and why: a line each, ended by newlines; empty: it is all */
	struct buf defines;  /* what names in it stand for: comes before it */
	struct buf text;     /* the definition */
	struct cprint_map map;
	enum dec_level level; /* how much of the decompiler's work it is, see docs/design.md */
	uint32_t insn_cnt;
	uint32_t generic_cnt; /* instructions lifted only as what they read and write */
	uint32_t bad_cnt;     /* bytes that are no instruction */
	uint64_t words[SES_CODE_WORD_MAX]; /* numbers it compares with, as they stand in the code */
	uint32_t word_cnt;
};

void ses_code_fini(struct ses_code *c);

/* Function `func` (its number in the image), with the map when that is wanted. `scratch` is used up, the
 * result does not lie in it. Thread-safe. Errors: unsupported (architecture, or an operation without a form
 * in C), budget (too long), no memory. */
_must_use_ struct err *ses_code_func(struct ses_snap *sn, uint32_t func, bool wants_map, struct arena *scratch,
				       struct ses_code *ret);

/* As far as a stage and no further, for finding which one changed behaviour. Stage 0 is the lifted function, 1 the passes there must
 * be without any rule, 2 those with all rules but the last `rules_off`; each further one adds a pass. */
unsigned ses_code_stage_cnt(void);
const char *ses_code_stage_name(unsigned stage); /* "lift", "ssa", "rules", "stack" */
_must_use_ struct err *ses_code_func_stage(struct ses_snap *sn, uint32_t func, unsigned stage, unsigned rules_off, struct arena *scratch,
					   struct ses_code *ret);

/* The C name of a function, NUL-terminated: an identifier no other function of the target has. */
void ses_code_name(struct ses_snap *sn, uint32_t func, char *out, size_t cap);

/* How a function's C is called, without the semicolon: whether it has a signature, or takes the state. */
bool ses_code_prototype(struct ses_snap *sn, uint32_t func, struct buf *text);
/* The declarations its definition needs. */
void ses_code_decls(struct ses_snap *sn, const struct ses_code *c, struct buf *text);
/* What is called with the state by others than the C of functions, and calls a function's C: its name, and its definition. */
void ses_code_entry_name(uint64_t va, char *out, size_t cap);
void ses_code_entry(struct ses_snap *sn, uint32_t func, struct buf *text);
/* A definition of a function that has a signature that calls its machine code. */
void ses_code_stub(struct ses_snap *sn, uint32_t func, struct buf *text);
/* The same of the import it is the stub of, through what is called with the state. */
void ses_code_import(struct ses_snap *sn, uint32_t func, struct buf *text);
/* The function as one whose callees are all machine code, with its entry, for a file beside others like it. */
void ses_code_alone(struct ses_snap *sn, uint32_t func, const struct ses_code *c, struct buf *text);

/* Which functions calls go to by their C name, because their C is linked with what calls them. */
struct ses_code_set {
	bool (*has)(void *ctx, uint32_t func);
	void *ctx;
};
/* ses_code_func() among these, without the map. */
_must_use_ struct err *ses_code_func_in(struct ses_snap *sn, uint32_t func, const struct ses_code_set *set, struct arena *scratch,
					struct ses_code *ret);

/* What stands at the top of a file of functions. */
void ses_code_head(struct buf *text);

/* include/scry.h, for writing beside them; borrowed. */
const char *ses_code_header(size_t *ret_len);
/* The text of include/scry_tcc.h. */
const char *ses_code_quick_header(size_t *ret_len);

#endif
