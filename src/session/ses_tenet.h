/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_TENET_H
#define SESSION_SES_TENET_H

#include "session/session.h"

/*
 * An execution log (live/tenet/tenet.h) beside the database of the program it is of: positions are steps, addresses are the database's
 * unless called live. What the loader added to addresses is found by comparing where functions begin. Thread-safe.
 */
struct ses_tenet;
#define SES_TENET_NONE UINT64_MAX

/* Reads and indexes the log. Errors as tenet_open(). The snapshot is held until it is closed. */
_must_use_ struct err *ses_tenet_open(struct ses_snap *sn, const struct ses_call *call, const char *path, struct ses_tenet **ret);
void ses_tenet_close(struct ses_tenet *t);

uint64_t ses_tenet_steps(const struct ses_tenet *t);
/* Lines or tokens of the log that are none. */
uint64_t ses_tenet_odd(const struct ses_tenet *t);
/* Whether code of the log is code of the database, and what was added to its addresses. */
bool ses_tenet_slide(const struct ses_tenet *t, uint64_t *ret);
/* Where a step is: the instruction about to run; false: outside of the database. */
bool ses_tenet_va(struct ses_tenet *t, uint64_t step, uint64_t *ret);
/* The same, as the log has it; false: it does not say. */
bool ses_tenet_live(struct ses_tenet *t, uint64_t step, uint64_t *ret);

struct ses_tenet_reg { const char *name; uint64_t value; bool is_known, has_changed; };
/* Registers at a step; the program counter first, then as the log has them. */
_must_use_ struct err *ses_tenet_regs(struct ses_tenet *t, uint64_t step, struct arena *a, struct ses_tenet_reg **ret, uint32_t *ret_cnt);
/* Bytes at a step: at addresses of the database, of the log. known[i] tells which the log states. */
void ses_tenet_bytes(struct ses_tenet *t, uint64_t step, uint64_t va, uint32_t len, uint8_t *out, bool *known);
void ses_tenet_live_bytes(struct ses_tenet *t, uint64_t step, uint64_t live, uint32_t len, uint8_t *out, bool *known);

/* The step after (or before) this one that is not inside of a call made from here. */
uint64_t ses_tenet_over(struct ses_tenet *t, uint64_t step, bool back);
/* The nearest other step at an address. */
uint64_t ses_tenet_ran(struct ses_tenet *t, uint64_t step, uint64_t va, bool back);
/* The nearest step whose instruction wrote the register, SES_TENET_NONE also for one that the log has not. */
uint64_t ses_tenet_written(struct ses_tenet *t, uint64_t step, const char *reg, bool back);
/* The nearest step whose instruction read or wrote the byte, or with `writes` wrote it. */
uint64_t ses_tenet_touched(struct ses_tenet *t, uint64_t step, uint64_t va, bool writes, bool back);
/* The addresses of the steps around one: `cnt` before it, itself, `cnt` after it; UINT64_MAX where there is none in the database. */
void ses_tenet_trail(struct ses_tenet *t, uint64_t step, uint32_t cnt, uint64_t *out);

#endif
