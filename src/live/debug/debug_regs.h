/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DEBUG_REGS_H
#define LIVE_DEBUG_REGS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Registers as the server's target description names them (Debugging with GDB, appendix G), or, without one, as gdb takes them for granted
 * on x86. LLDB's attributes are understood: `offset` in the `g` packet, and `value_regnums`, parts of other registers, which are left out.
 */
#define DEBUG_REG_MAX 512
#define DEBUG_REG_BYTES 256            /* of one */
#define DEBUG_REGS_BYTES (64 << 10)    /* of all */

struct debug_reg {
	char name[24];
	uint32_t num;                  /* the server's */
	uint32_t len, off;             /* bytes; where in the `g` packet */
	bool is_general;               /* what a person wants to see first */
};

struct debug_regs {
	struct debug_reg list[DEBUG_REG_MAX];
	uint32_t cnt, bytes;           /* bytes: of the `g` packet */
	char arch[32];                 /* "i386:x86-64", "" unsaid */
	int pc, sp, fp, ra;            /* numbers in `list`, -1: none */
};

/* Fetches a further description ("64bit-core.xml"); an error leaves it out. */
typedef struct err *debug_regs_fetch(void *ctx, const char *name, struct buf *out);

/* Reads a description. Errors: bad_input when it is malformed, names no registers or not a pc, or goes beyond the limits. */
_must_use_ struct err *debug_regs_read(const char *text, size_t len, debug_regs_fetch *fetch, void *ctx, struct debug_regs *ret);
/* What gdb takes for granted: of "x86-64", "i386" or "aarch64". False: of none else. */
bool debug_regs_default(const char *arch, struct debug_regs *ret);
/* By name, in any case ("$rax" too); -1. */
int debug_regs_find(const struct debug_regs *r, const char *name);
/* By the server's number; -1. */
int debug_regs_of_num(const struct debug_regs *r, uint64_t num);

#endif
