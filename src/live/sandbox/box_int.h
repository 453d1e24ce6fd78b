/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_SANDBOX_BOX_INT_H
#define LIVE_SANDBOX_BOX_INT_H

#include "live/sandbox/box.h"

#include <stddef.h>

/*
 * The process's fixed places. Position-independent targets lie low, where code made beside them can reach
 * everything with 32 bits; they and all that belongs to a call stay below 2 GiB.
 */
#define BOX_BASE 0x10000000ul      /* the lowest segment of a position-independent target */
#define BOX_TOP 0x60000000ul       /* targets end below */
#define BOX_CODE 0x61000000ul       /* recompiled functions */
#define BOX_HOST_STACK 0x6f000000ul /* what they run on */
#define BOX_STACK 0x70000000ul
#define BOX_STACK_LEN (256u << 10)
#define BOX_BUFS 0x71000000ul      /* the buffers of a call's arguments */
#define BOX_HEAP 0x72000000ul      /* what the models of malloc give */
#define BOX_HEAP_LEN (64u << 20)
#define BOX_LAZY 0x200000000000ul /* memory that is made when it is touched */
#define BOX_LAZY_LEN (1ul << 32)
#define BOX_DUMMY 0x77000000ul     /* a page that objects of other libraries (stdout, environ) point to */

/* Registers at the start and the end of a call; known to box_enter.S by offset. */
struct box_regs {
	uint64_t rdi, rsi, rdx, rcx, r8, r9; /* 0 .. 40 */
	uint64_t rax;                         /* 48: count of vector registers in, result out */
	uint64_t rsp;                         /* 56 */
	uint64_t target;                      /* 64 */
	uint64_t host_sp;                     /* 72 */
	uint64_t xmm[8][2];                   /* 80 */
	uint64_t out_rdx;                     /* 208 */
	uint8_t st0[16];                      /* 216 */
	uint64_t has_st0;                     /* 232 */
};

/* Between parent, zygote and call. Written by the target's process, so the parent copies before it looks. */
struct box_shared {
	/* Parent to call. */
	struct box_regs regs;
	uint64_t stack[BOX_ARG_MAX];
	uint32_t stack_cnt;
	uint32_t bufs_len;
	/* Call to parent. */
	uint32_t state; /* enum box_state */
	uint32_t end;   /* enum box_end */
	int32_t signal, syscall_nr;
	uint64_t ip, fault, ns;
	uint32_t import, import_calls;
	uint32_t missing; /* enum box_missing */
	/* Trials. */
	uint32_t is_trial;
	uint32_t cpu_ms;
	uint64_t seed;
	uint64_t code; /* address of the C form in the process, 0 none */
	uint64_t trace;
	uint32_t page_cnt;
	uint32_t block_cnt;
	uint64_t blocks[BOX_BLOCK_MAX]; /* addresses in the process */
	uint8_t blocks_hit[BOX_BLOCK_MAX];
	struct box_page pages[BOX_PAGE_MAX];
	uint8_t bufs[BOX_BUF_TOTAL];
};

enum box_missing { BOX_NO_LANDLOCK = 1, BOX_NO_TSC = 2, BOX_NO_NAMESPACES = 4 };

enum box_state { BOX_STATE_STARTED, BOX_STATE_LOCK_FAILED, BOX_STATE_RUNNING, BOX_STATE_DONE };

/* What the zygote says of a call. */
struct box_report {
	int32_t status; /* of waitpid() */
	uint32_t is_timeout;
};

struct box {
	struct box_opts opts;
	uint64_t slide;
	uint64_t code_slide;
	int fd;             /* to the zygote */
	int pid;
	struct box_shared *shared;
	bool has_namespaces;
	char missing[128];
};

/* --- in the zygote and its calls: no malloc, no locks, nothing of libc that asks the vDSO -------------------------- */
/* An object in the process: the target, or recompiled code. */
struct box_object {
	const struct image *im;
	uint64_t slide;
};

/* Maps the segments, applies relocations, makes the stubs of imports. Null, or what failed. */
const char *box_map_object(const struct box_object *o, const struct image *target, int fd);
/* The stack, the buffers and the heap of calls. */
const char *box_map_places(void);
/* Writes the stub of every import, counted as the target's of the same name, and the words that refer to objects of other libraries. */
void box_bind_imports(const struct box_object *o, const struct image *target);
/* The page all stubs jump through, and the one objects of other libraries point to. Null, or what failed. */
const char *box_import_entry_map(void);
/* A stub that is only a name ends here: arguments in registers, the import's number in r11. */
void box_import_entry(void);
/* Takes away what a call may do; false when the kernel refuses what must not be missing. */
bool box_lock(struct box *b);
/* Unmaps memory shared with other processes that is or could be made writable, all but the page at `keep`. */
bool box_drop_shared(const void *keep);
/* What namespaces clone() can make here. */
unsigned long box_namespaces(void);
/* Runs the request in `shared` and ends the process. */
_Noreturn void box_run(struct box *b);
/* Ends the call with what is in `shared`. */
_Noreturn void box_finish(struct box_shared *s, enum box_end end);
/* box_enter.S: runs regs->target on regs->rsp and stores what it left. */
void box_enter(struct box_regs *regs);

/* --- trials (box_trial.c) ------------------------------------------------------------------------------------------- */
/* A number made of two. */
static inline uint64_t box_mix(uint64_t a, uint64_t b)
{
	a ^= b + 0x9e3779b97f4a7c15u + (a << 12) + (a >> 4);
	a *= 0xff51afd7ed558ccdu;
	a ^= a >> 33;
	a *= 0xc4ceb9fe1a85ec53u;
	return a ^ a >> 29;
}

/* What running a C form needs from before the lock. */
bool box_code_prepare(void);
/* Runs the C form of the request from these registers; they hold its results then. */
void box_code_run(struct box *b, struct box_regs *regs);
/* Registers, stack and memory before the lock; what can only be done then. */
bool box_trial_prepare(struct box *b, struct box_regs *regs);
/* Runs it. */
void box_trial_run(struct box *b, struct box_regs *regs);
/* A signal during a trial: true when the trial goes on. */
bool box_trial_signal(struct box *b, int sig, uint64_t fault, uint64_t *ip);
/* What import `number` answers. */
uint64_t box_trial_import(struct box *b, uint32_t number, const uint64_t *args);
/* Hashes what was written. */
void box_trial_finish(struct box *b);
uint64_t box_heap_used(void);

/* The call that runs, in its process only. */
extern struct box *box_now;

#endif
