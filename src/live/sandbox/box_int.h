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
#define BOX_HOST_STACK 0x6f000000ul /* what they run on; frames of compilers are larger than those they were made of */
#define BOX_HOST_STACK_LEN (2u << 20)
#define BOX_STACK 0x70000000ul
#define BOX_STACK_LEN (256u << 10)
#define BOX_TRIAL_SP (BOX_STACK + BOX_STACK_LEN - 2048) /* the stack pointer a trial starts with */
#define BOX_BUFS 0x71000000ul      /* the buffers of a call's arguments */
#define BOX_HEAP 0x72000000ul      /* what the models of malloc give */
#define BOX_HEAP_LEN (64u << 20)
#define BOX_LAZY 0x200000000000ul  /* where pointers of trials point; memory is made when it is touched */
#define BOX_LOW 0x10000ul          /* nothing is made below: null and what lies near it */
#define BOX_OWN_STACK_LEN (8u << 20) /* what the stack of the process itself may grow to */
#define BOX_COPY 0x76800000ul      /* where an instruction runs alone */
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
	uint64_t fsw;                         /* 240 */
};

/* scry_call() of include/scry.h, for code of compilers that cannot have it inside. */
uint64_t box_scry_call(void);

/* What a trial's state is made from. */
struct box_input {
	uint64_t seed;
	uint32_t word_cnt, patch_cnt;
	uint64_t words[BOX_WORD_MAX];
	struct box_patch patches[BOX_PATCH_MAX];
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
	uint32_t has_x87_fault;
	uint32_t missing; /* enum box_missing */
	/* Trials. */
	uint32_t is_trial;
	uint32_t cpu_ms;
	uint32_t unsaid; /* enum box_unsaid */
	struct box_input input;
	uint64_t code; /* address of the C form in the process, 0 none */
	uint64_t trace;
	uint32_t page_cnt;
	uint32_t block_cnt;
	uint32_t branch_cnt;
	uint32_t way_cnt;
	uint32_t answer_cnt;
	uint64_t answers[BOX_ANSWER_MAX];
	uint32_t made_cnt;
	uint64_t made[BOX_PAGE_MAX / 2];
	uint64_t blocks[BOX_BLOCK_MAX]; /* addresses in the process */
	uint8_t blocks_hit[BOX_BLOCK_MAX];
	struct box_branch branches[BOX_BRANCH_MAX]; /* ... too */
	struct box_cmp cmps[BOX_BRANCH_MAX];
	struct box_way ways[BOX_WAY_MAX];
	struct box_page pages[BOX_PAGE_MAX];
	uint8_t bufs[BOX_BUF_TOTAL];
};

enum box_missing { BOX_NO_LANDLOCK = 1, BOX_NO_TSC = 2, BOX_NO_SHADOW = 4 };

enum box_state { BOX_STATE_STARTED, BOX_STATE_LOCK_FAILED, BOX_STATE_RUNNING, BOX_STATE_DONE };

/* What the zygote says of a call. `status` of -1: it could not be begun. */
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
	uint64_t data_len;  /* bytes of private memory before a call; known in the zygote */
	char missing[128];
};

/* What a call left in the shared memory, which may be anything, as bounded facts. `bufs_len` is what the parent asked for. */
void box_take_result(struct box *b, const struct box_report *report, uint32_t bufs_len, struct box_result *ret);

/* The same of a trial. */
void box_take_outcome(struct box *b, const struct box_report *report, struct box_outcome *ret);

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
/* Before the first call. */
void box_import_init(void);
/* A stub that is only a name ends here: arguments in registers, the import's number in r11. */
void box_import_entry(void);
/* Models are entered here, by what they are: their address in r11. */
void box_model_entry(void);
void box_model_entry_vec(void);
void box_model_entry_back(void);
/* Takes away what a call may do; false when the kernel refuses what must not be missing. */
bool box_lock(struct box *b);
/* Unmaps memory shared with other processes that is or could be made writable, all but the page at `keep`. */
bool box_drop_shared(const void *keep);
/* Unmaps what box_drop_shared() saw of the vDSO and its variables; libc must not be asked the time from here on. */
void box_drop_clocks(void);
/* Bytes of private writable memory this process has, as RLIMIT_DATA counts them. */
uint64_t box_data_len(void);
/* CLOCK_MONOTONIC, without the vDSO. */
uint64_t box_now_ns(void);
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
/* The word of an input at an address; see box_trial_word(). */
uint64_t box_input_word(const struct box_input *in, uint64_t at);
/* Registers, stack and memory before the lock; what can only be done then. */
bool box_trial_prepare(struct box *b, struct box_regs *regs);
/* Runs it. */
void box_trial_run(struct box *b, struct box_regs *regs);
/* A signal during a trial: true when the trial goes on. `context` is the ucontext_t. */
bool box_trial_signal(struct box *b, int sig, uint64_t fault, void *context);
/* What import `number` answers. */
uint64_t box_trial_import(struct box *b, uint32_t number, const uint64_t *args);
/* Hashes what was written. */
void box_trial_finish(struct box *b);
uint64_t box_heap_used(void);

/* --- coverage (box_cover.c) ------------------------------------------------------------------------------------------- */
/* Before the lock, in the zygote and in the call. */
void box_cover_init(void);
bool box_cover_prepare(struct box_shared *s);
/* A breakpoint: false when it is none of ours. */
bool box_cover_hit(struct box_shared *s, void *context);
/* The index in gregs[] of a general register of 64 bits, -1 of anything else; `reg` is a ZydisRegister. */
int box_greg(unsigned reg);

/* --- what no input says (box_unsaid.c) --------------------------------------------------------------------------------- */
/* Before the lock; `sp` is the stack pointer the trial starts with. */
bool box_unsaid_prepare(const struct box *b, uint64_t sp);
/* A breakpoint: false when it is none of ours. */
bool box_unsaid_hit(void *context);
/* Sets the stack protector's value of this thread; what it was. No function that keeps it may be about to return. */
uint64_t box_unsaid_canary(uint64_t v);

/* --- memory where a process can have none (box_shadow.c) ------------------------------------------------------------- */
enum box_shadow_say { BOX_SHADOW_NO, BOX_SHADOW_STEP, BOX_SHADOW_LIMIT };
/* Before the lock. */
void box_shadow_init(void);
/* A fault: STEP when its instruction can go on, one step, which box_shadow_stepped() ends; LIMIT when it wanted such memory
 * but cannot be made to have it. `context` is the ucontext_t. */
enum box_shadow_say box_shadow_fault(void *context);
bool box_shadow_stepped(void *context);
/* Where the instruction stands that runs at `ip`. */
uint64_t box_shadow_ip(uint64_t ip);

/* The call that runs, in its process only. */
extern struct box *box_now;

#endif
