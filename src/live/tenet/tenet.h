/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TENET_H
#define LIVE_TENET_H

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Execution logs in the text form of the Tenet trace explorer: a line a step, of tokens between commas. "rax=0x2a" is a register that
 * has another value than a step before, "rip=0x401136" the instruction that is about to run, "mr=0x7ffd10:2a00" memory the
 * instruction before read, "mw=" wrote, "mrw=" both, with its bytes in hex. The first line has every register.
 *
 * A step is the moment before its instruction runs, counted from 0. What a line states was done by the instruction of the step before
 * it, so a write that line i states is answered as step i - 1. Nothing is known of a register or byte before the log first states
 * it. The file is mapped and read once; in memory are the registers of every 1,024th step and for each address of code and each
 * 64 bytes of memory in which 1,024 steps it occurs. A query reads few stretches of text, whatever the log's length. Thread-safe.
 */
struct tenet;

#define TENET_REG_MAX 64
#define TENET_NAME_MAX 8
#define TENET_NONE UINT64_MAX

struct tenet_opts {
	const atomic_bool *cancel;    /* may be null */
	atomic_uint_fast64_t *done;   /* bytes read so far; may be null */
};

/* Opens a log. Errors: bad_input (no step in it, not readable), cancelled, no memory. Release with tenet_close(). */
_must_use_ struct err *tenet_open(const char *path, const struct tenet_opts *opts, struct tenet **ret);
/* The same of `len` bytes of text, which are borrowed until it is closed. */
_must_use_ struct err *tenet_read_text(const char *text, size_t len, const struct tenet_opts *opts, struct tenet **ret);
void tenet_close(struct tenet *t);

uint64_t tenet_step_cnt(const struct tenet *t);
/* Tokens and lines that are none of the form, and the number from 1 of the first line with one, 0: none. */
uint64_t tenet_odd_cnt(const struct tenet *t, uint64_t *ret_line);
/* Whether the mapped file was changed under us. */
bool tenet_has_changed(const struct tenet *t);

unsigned tenet_reg_cnt(const struct tenet *t);
const char *tenet_reg_name(const struct tenet *t, unsigned reg);
/* By name, in any case; -1 when the log has none such. */
int tenet_reg_find(const struct tenet *t, const char *name);
/* The numbers of the registers "rip", "eip" or "pc", and "rsp", "esp" or "sp"; -1 without. */
int tenet_pc_reg(const struct tenet *t);
int tenet_sp_reg(const struct tenet *t);

/* All registers at a step: values[reg] for those in the mask that is given back. `step` is less than the count of steps. */
uint64_t tenet_regs(struct tenet *t, uint64_t step, uint64_t values[TENET_REG_MAX]);
/* The registers that the step's line states. */
uint64_t tenet_changed(struct tenet *t, uint64_t step);
/* The address of the instruction about to run; false while none was stated. */
bool tenet_pc(struct tenet *t, uint64_t step, uint64_t *ret);
/* The addresses of `cnt` steps from `first` on; those not known are 0. Gives how many steps there are. */
size_t tenet_pcs(struct tenet *t, uint64_t first, size_t cnt, uint64_t *out);

/* Memory at a step as far as the log states it: known[i] for each of `len` bytes from va on. Gives how many are known. */
size_t tenet_mem(struct tenet *t, uint64_t step, uint64_t va, size_t len, uint8_t *out, bool *known);

enum tenet_access_kind { TENET_READ = 1, TENET_WRITE = 2 };
struct tenet_access { uint64_t va; uint32_t len; uint8_t kinds; /* enum tenet_access_kind bits */ };
/* What the instruction of a step read and wrote, up to `cap`; gives how many there are. */
size_t tenet_accesses(struct tenet *t, uint64_t step, struct tenet_access *out, size_t cap);

/* The nearest step after, or with `back` before, `step` whose instruction wrote the register; TENET_NONE. */
uint64_t tenet_reg_written(struct tenet *t, uint64_t step, unsigned reg, bool back);
/* The same of an instruction that touched any of the bytes in these ways. */
uint64_t tenet_touched(struct tenet *t, uint64_t step, const struct tenet_access *what, bool back);
/* The nearest other step at this address. */
uint64_t tenet_ran(struct tenet *t, uint64_t step, uint64_t pc, bool back);
/* How many of every 1,024 steps' stretches ran this address; 0: it never ran. */
size_t tenet_pc_spread(const struct tenet *t, uint64_t pc);
/* The i-th address of code that ran, in no order of worth; false behind the last. */
bool tenet_code_at(const struct tenet *t, size_t i, uint64_t *ret);

/* --- writing --- */

/* Appends a step to `out`. `names` and `values` are of `reg_cnt` registers, of which those in `mask` are stated; `accesses` is ready
 * text of further tokens, each with a comma before it, or "". */
void tenet_put(struct buf *out, const char *const *names, const uint64_t *values, uint64_t mask, const char *accesses);
/* Appends ",mw=0x7ffd10:2a00"; kinds as in struct tenet_access. */
void tenet_put_access(struct buf *out, uint8_t kinds, uint64_t va, const uint8_t *bytes, size_t len);

#endif
