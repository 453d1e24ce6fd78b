/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TENET_RECORD_H
#define LIVE_TENET_RECORD_H

#include "arch/arch.h"
#include "live/tenet/tenet.h"

/*
 * Makes a log (tenet.h) of a thread that somebody steps, x86-64. What memory an instruction touches follows from its operands
 * (arch->accesses): what it reads is taken before the step, what it writes after it. What may write anywhere, as a system call does, is
 * followed by a comparison of all that the log has stated with what is there.
 */
#define TENET_X64_REGS 17
#define TENET_X64_PC 16
/* "rax", "rcx", ... as the processor numbers them, then "rip". */
extern const char *const tenet_x64_names[TENET_X64_REGS];

struct tenet_state {
	uint64_t regs[TENET_X64_REGS];
	bool has_bases;            /* of segments; without, what goes through them may be anywhere */
	uint64_t fs_base, gs_base;
};

/* The memory of who is stepped: gives how many bytes from va on could be read. */
struct tenet_memory {
	size_t (*read)(void *ctx, uint64_t va, void *out, size_t len);
	void *ctx;
};

struct tenet_record;
/* Errors: no memory, no decoder. Free with tenet_record_free(), which accepts null. */
_must_use_ struct err *tenet_record_new(struct tenet_record **ret);
void tenet_record_free(struct tenet_record *r);

/* The first line: all registers. */
void tenet_record_begin(struct tenet_record *r, const struct tenet_state *now, struct buf *out);
/* Before a step of the instruction whose bytes these are. */
void tenet_record_before(struct tenet_record *r, const struct tenet_memory *m, const struct tenet_state *now, const uint8_t *code, size_t len);
/* Of that instruction: it enters the kernel, where it may wait for other threads; what memory it touches. */
bool tenet_record_is_syscall(const struct tenet_record *r);
const struct arch_access *tenet_record_touched(const struct tenet_record *r, size_t *ret_cnt);
/* It was not done after all. */
void tenet_record_cancel(struct tenet_record *r);
/* After it: the line of the next step. With `by_others` something else may have run, too. */
void tenet_record_after(struct tenet_record *r, const struct tenet_memory *m, const struct tenet_state *now, bool by_others, struct buf *out);

#endif
