/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_SANDBOX_BOX_H
#define LIVE_SANDBOX_BOX_H

#include "base/err.h"
#include "image/image.h"

#include <stdatomic.h>

/*
 * Runs single functions of a target natively, in a locked-down process of their own.
 *
 * A zygote maps the target's segments from its file, privately and in place (nothing is read or copied but the pages
 * relocations or stores touch), at a fixed base, binds imports to models, and waits. Each call is a fork of it: the
 * child takes away everything it can do without (descriptors, files, network, other processes, the vDSO, the time stamp
 * counter, all system calls but a handful with fixed arguments) and then jumps to the function. What it leaves in the
 * result memory is hostile input, bounded and checked by the parent; how it ended is what the kernel says.
 *
 * What this does not protect from: bugs of the kernel, and what a process can learn by measuring.
 * x86-64 only so far.
 */
struct box;

struct box_opts {
	const struct image *im; /* must outlive the box */
	int fd;                 /* the target's file, open for reading; stays the caller's */
	uint32_t wall_ms;       /* a call is killed after this */
	uint32_t cpu_s;
	uint64_t mem_len;       /* bytes a call may take beside the target itself */
	const atomic_bool *cancel; /* may be null; a call that runs when it becomes true ends, and the box with it */
	/* Optional: recompiled functions, a shared object that needs nothing but the models of imports; see box_try(). */
	const struct image *code;
	int code_fd;
	/* Optional, borrowed: per import, and last for others, how many arguments in general registers it has. Else three are looked at. */
	const uint8_t *import_args;
};

enum box_arg_kind { BOX_ARG_INT, BOX_ARG_F64, BOX_ARG_F32, BOX_ARG_BUF };

#define BOX_ARG_MAX 16
#define BOX_BUF_TOTAL (1u << 20) /* bytes of all buffers of a call */

struct box_arg {
	enum box_arg_kind kind;
	uint64_t value;       /* an integer, or a float's bits */
	const uint8_t *bytes; /* a buffer's content; null: zeros */
	uint32_t len;         /* bytes of a buffer; the argument is its address */
	bool is_va;           /* an integer that is an address as the file gives it; passed is where that lies in the process */
};

enum box_end {
	BOX_RETURNED,
	BOX_EXITED,   /* called an import that does not come back: `import` */
	BOX_SIGNAL,   /* `signal` at `ip`; of SIGSEGV and SIGBUS `fault` is the address */
	BOX_SYSCALL,  /* tried system call `syscall_nr` at `ip` */
	BOX_TIMEOUT,  /* did not end in time */
	BOX_KILLED,   /* by `signal`, before it could say more */
	BOX_BROKEN,   /* ended without an answer: it damaged the harness */
	BOX_END_COUNT
};

struct box_result {
	enum box_end end;
	uint64_t rax, rdx;
	uint64_t xmm0[2], xmm1[2];
	uint8_t st0[10];
	bool has_st0;        /* there is a value on the x87 stack, and only it; of the C form not known */
	int signal;
	int syscall_nr;
	uint64_t ip, fault;  /* addresses of the target, as its file gives them, when they lie in it; else of the process */
	bool is_ip_inside, is_fault_inside;
	uint32_t import;     /* number in image_imports(), UINT32_MAX none */
	uint32_t import_calls; /* calls of imports that are only logged */
	bool has_x87_fault;  /* it read an empty place of the x87 stack, or ran over its end: what no compiled code does */
	uint64_t ns;         /* inside the function */
	const uint8_t *bufs; /* what the buffers hold now, one behind the other in order of the arguments; valid until the
				next call */
	uint32_t bufs_len;
	bool bufs_valid;     /* false: the process ended before they could be read */
};

/* Makes the zygote. Errors: unsupported (architecture), env (what the kernel refuses), bad_input (segments that cannot be
 * mapped), io. */
_must_use_ struct err *box_open(const struct box_opts *opts, struct box **ret);

/* Ends the zygote and whatever runs. Null is accepted. */
void box_close(struct box *b);

/* Calls the function at `va` (an address as the file gives it) by the System V ABI. Errors: invalid (too many arguments,
 * address not in the target), env, io, cancelled. How the function ended is no error. */
_must_use_ struct err *box_call(struct box *b, uint64_t va, const struct box_arg *args, unsigned arg_cnt,
				struct box_result *ret);

/* The same of the function's C form at `code_va` of the box's code object, taking struct scry_x86_64 *. */
_must_use_ struct err *box_call_code(struct box *b, uint64_t va, uint64_t code_va, const struct box_arg *args, unsigned arg_cnt,
				     struct box_result *ret);

/* Where in the process the buffer lies that begins at byte `off` of all buffers of a call. */
uint64_t box_buf_addr(const struct box *b, uint32_t off);

/*
 * A trial: the function with registers, stack and memory made from a seed, for comparing two forms of it. Memory nobody has
 * mapped is made at first touch, wherever that is but below the stacks; its content depends on the input
 * (box_trial_word()) and so do the answers of imports and of calls through pointers that lead nowhere. In half of the seeds
 * the target's zeroed variables (.bss) are made, too. Memory is compared by hash of each page that was written or made.
 */
#define BOX_PAGE_MAX 512  /* pages an outcome names; touching more ends the trial */
#define BOX_BLOCK_MAX 4096
#define BOX_BRANCH_MAX 4096
#define BOX_WAY_MAX 8192
#define BOX_ANSWER_MAX 64
#define BOX_WORD_MAX 48
#define BOX_PATCH_MAX 128

struct box_page {
	uint64_t addr, hash;
};

/* Words of the input at addresses [from, to) of the process are `value`; of up to 8 bytes within the target's writable memory, these bytes. */
struct box_patch {
	uint64_t from, to, value;
};

/* A conditional or indirect jump of the function, the start of its block, and where to begin looking for what loaded its operands: there or
 * not far before. Addresses as the file gives them. */
struct box_branch {
	uint64_t at, from, before;
};

/* Where a branch was seen to go. */
struct box_way {
	uint32_t branch; /* of box_trial.branches */
	uint64_t to;     /* as the file gives it */
};

/* What a branch decided on, the first time: `a` and `b`, `len` bytes each, compared, or tested. */
struct box_cmp {
	uint64_t a, b;
	uint64_t at;  /* where `a` lies in the process, or was probably made from; 0: not known */
	uint8_t at_len;
	uint8_t len;  /* 0: not known */
	uint8_t answers; /* imports that had answered by then */
	uint8_t cc;   /* the condition as the opcode's last four bits have it */
	bool is_test;
};

struct box_outcome {
	struct box_result result;     /* buffers unused */
	bool has_no_memory;           /* it ended because memory could not be made where the function wanted it */
	uint64_t trace;               /* hash over the imports called, in order, with their arguments */
	uint32_t page_cnt;
	const struct box_page *pages; /* by the order of the process, the same in every trial; valid until the next call */
	uint32_t made_cnt;
	const uint64_t *made;         /* pages of memory that were made, sorted; what the function can have read of the input */
	const uint8_t *blocks_hit;    /* of box_trial.blocks: 1 when it was reached */
	uint32_t way_cnt;
	const struct box_way *ways;   /* of box_trial.branches; each branch is watched for a few turns only */
	const struct box_cmp *cmps;   /* by branch */
	uint32_t answer_cnt;
	const uint64_t *answers;      /* of imports, and of calls that lead nowhere */
};

/*
 * What no input says and a program that keeps to the rules does not ask for. STACK: memory below the stack pointer is zero at the start and after
 * every return of the target, so that nothing of what a call left there is found. CANARY: the stack protector's value is another one.
 */
enum box_unsaid { BOX_UNSAID_AS_IS, BOX_UNSAID_STACK, BOX_UNSAID_CANARY };

struct box_trial {
	uint64_t va;             /* the function */
	enum box_unsaid unsaid;
	uint64_t code_va;        /* its C form in `code`, taking struct scry_x86_64 *; 0: the machine code itself */
	uint64_t seed;
	const uint64_t *blocks;  /* starts of its blocks, for coverage of the machine code; may be null */
	uint32_t block_cnt;      /* at most BOX_BLOCK_MAX are looked at */
	const struct box_branch *branches; /* as blocks; may be null */
	uint32_t branch_cnt;     /* at most BOX_BRANCH_MAX are looked at */
	uint32_t cpu_ms;         /* ends as timeout after this much time of the processor */
	const uint64_t *words;   /* numbers that mean something to the function; may be null */
	uint32_t word_cnt;       /* at most BOX_WORD_MAX are looked at */
	const struct box_patch *patches; /* a later one wins; may be null */
	uint32_t patch_cnt;      /* at most BOX_PATCH_MAX */
};

/* What the `i`th import answers is a word of the input, too, at an address that is none; patches alone tell it. */
#define BOX_ANSWER_AT(i) (1024 + 8 * (uint64_t)(i))

/*
 * What the 8 bytes at `at`, a multiple of 8, of the process hold when the trial makes them. Below 48 these are no
 * addresses: the integer arguments in the order of the ABI. The stack above the return address is made, too: box_stack_args().
 */
uint64_t box_trial_word(const struct box_trial *t, uint64_t at);
/* Where the made part of the stack begins, the first argument in memory; bytes to its end. */
uint64_t box_stack_args(uint64_t *ret_len);

/* Errors as box_call(). */
_must_use_ struct err *box_try(struct box *b, const struct box_trial *t, struct box_outcome *ret);

/* Where the target lies: process address - address in the file. */
uint64_t box_slide(const struct box *b);

/* What the lock could not get from this kernel, as text for a person ("landlock, user namespace"), or "". */
const char *box_missing(const struct box *b);

const char *box_end_name(enum box_end e);

#endif
