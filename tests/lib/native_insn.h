/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NATIVE_INSN_H
#define TESTS_NATIVE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Runs single x86 instructions, of 64 or 32 bits, on the processor at hand, between loading and storing the whole state of registers, with a
 * window of memory to work on. Everything is at fixed addresses below 2 GiB. To be used in a child of its own: an
 * instruction may do anything.
 */
#define NATIVE_WINDOW 0x20000000u
#define NATIVE_WINDOW_LEN 0x4000u
#define NATIVE_INSN_VA 0x10000400u /* where the instruction stands */
#define NATIVE_TAKEN 0x20          /* a jump taken goes so many bytes behind the next instruction */

struct native_state {
	uint64_t gpr[16];    /* in the order of their encoding */
	uint64_t flags;
	uint8_t vec[32][64]; /* zmm after native_wide(), else ymm, only xmm where the machine has no AVX */
	uint64_t k[8];       /* after native_wide() */
	uint8_t x87[108];    /* as fnsave leaves it */
	uint8_t pad[4];
	uint64_t host_sp;
	uint32_t marker;     /* 1: went on behind the instruction, 2: jumped */
	uint32_t far_va;     /* where 32-bit code begins, and its code segment */
	uint16_t far_cs;
	uint8_t stack[256];  /* for the flags of 32-bit code */
};

enum native_end { NATIVE_NEXT, NATIVE_JUMPED, NATIVE_SEGV, NATIVE_FPE, NATIVE_ILL, NATIVE_OTHER };

/* Maps everything; false when this machine does not let us. Runs 64-bit code until native_mode() says 32 (then the first
 * eight registers count, and their low halves). */
bool native_init(void);
void native_mode(unsigned bits);
/* The registers of AVX-512, too, until the next native_mode(); false: this processor has none. */
bool native_wide(void);
/* The state to load and what was stored (at a fault: general registers, flags and xmm); the window's bytes. */
extern struct native_state *native_state;
extern uint8_t *native_window;
/* Puts the instruction there; bytes behind it jump out. */
void native_put(const uint8_t *bytes, size_t len);
/* Address a jump to which ends the run as NATIVE_JUMPED. */
uint64_t native_jump_target(size_t insn_len);
enum native_end native_run(void);

#endif
