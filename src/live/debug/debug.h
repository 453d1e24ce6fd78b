/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DEBUG_H
#define LIVE_DEBUG_H

#include "arch/arch.h"
#include "base/map.h"
#include "live/debug/debug_link.h"
#include "live/debug/debug_regs.h"

/*
 * A debugger over the gdb remote protocol: lldb-server, GNU gdbserver, QEMU's stubs, scry's own. What is known of a stopped target (registers
 * of the current thread, pages of memory, threads) is kept until it runs, and asked for in as few round trips as can be: one lets it run
 * and brings the stop, the next one all that a person sees of it.
 *
 * Addresses are the target's own at run time. One thread, but for debug_interrupt(). Fields may be read, not written.
 */
enum debug_state { DEBUG_NONE /* no process yet */, DEBUG_STOPPED, DEBUG_EXITED, DEBUG_KILLED /* by a signal */, DEBUG_DETACHED };

#define DEBUG_ID_MAX 40     /* of a thread, as the server writes it */
#define DEBUG_THREAD_MAX 4096
#define DEBUG_MODULE_MAX 4096
#define DEBUG_BREAK_MAX 1024
#define DEBUG_PAGE 4096u

struct debug_thread {
	char id[DEBUG_ID_MAX];
	char name[32];
	bool has_pc;
	uint64_t pc;
};

/* Why it stands still. */
struct debug_stop {
	int signal;            /* Linux' number; 5 for steps and breakpoints */
	int status;            /* of DEBUG_EXITED */
	char reason[24];       /* the server's word: "breakpoint", "trace", "watchpoint", "exec", ...; "" unsaid */
	bool has_watch;
	uint64_t watch_va;
	bool has_pc;
	uint64_t pc;           /* of the thread that stopped, as it was then */
	uint32_t break_id;     /* of the breakpoint at pc or the watchpoint, 0: none */
};

enum debug_break_kind { DEBUG_BREAK_SOFT, DEBUG_BREAK_HARD, DEBUG_WATCH_WRITE, DEBUG_WATCH_READ, DEBUG_WATCH_ACCESS }; /* Z0 ... Z4 */

struct debug_break {
	uint32_t id;
	uint8_t kind;          /* enum debug_break_kind */
	uint32_t len;          /* bytes watched; of code the kind that the protocol wants */
	uint64_t va;
	bool is_in;            /* the server has it */
	bool is_lifted;        /* but for the next request: the thread on it was stepped off */
	bool is_off;
	uint64_t hit_cnt, ignore_cnt;
};

struct debug_module {
	char *name;            /* path, as the target says; owned */
	uint64_t base;         /* l_addr: what is added to the addresses of its file */
};

struct debug_page {
	uint64_t va;
	uint32_t got;          /* bytes of it that could be read, from its start */
	uint8_t bytes[DEBUG_PAGE];
};

/* Everything the target does is stepped and logged (live/tenet/tenet.h): by our own server where it is, else from here, some round trips a step. */
struct debug_log {
	/* Takes text; an error ends the log. */
	struct err *(*take)(void *ctx, const char *text, size_t len);
	void *ctx;
	uint64_t step_max;     /* it ends after that many steps */
	uint64_t step_cnt, asked;
	bool is_on, has_begun;
	bool is_full;          /* it ended so */
	struct debug_recorder *recorder; /* from here; null: the server does it. Owned by the debugger */
};

struct debug {
	struct debug_link link;
	struct debug_log log;
	struct gdb_features features;
	bool has_suffix;       /* threads are named behind requests */
	bool has_linux_signals;
	bool has_x, x_has_b;   /* memory as bytes, with a `b` before them */
	bool has_vcont, has_vcont_s;
	bool has_g;            /* false once it was refused: registers are read one by one */
	bool break_works;      /* a Z0 was accepted */
	bool has_library_list; /* qXfer:libraries-svr4 */
	bool is_learned;       /* of this process: see debug_learn() */
	bool list_is_long;     /* the list of libraries comes in several pieces */
	bool is_platform;      /* lldb-server's platform mode, which debugs nothing but starts servers that do: debug_spawn() */
	bool is_scry;          /* our own server: what is asked behind an order to go on is answered at the stop, and it steps over breakpoints */
	const struct arch *arch;

	uint64_t passed;       /* bit n: signal n, Linux' number, goes to the target without stopping it */

	enum debug_state state;
	struct debug_stop stop;
	uint64_t pid;          /* 0 unknown */
	VEC(struct debug_thread) threads;
	bool has_threads;      /* all of them are in the list */
	char current[DEBUG_ID_MAX]; /* the thread that is looked at */
	char stopped[DEBUG_ID_MAX]; /* the one that stopped */

	struct debug_regs regs;
	bool has_regs;         /* `regs` is known */
	uint8_t *values;       /* of the current thread, as in the `g` packet */
	uint8_t *valid;        /* one a register */

	VEC(struct debug_page *) pages;
	struct map page_at;

	VEC(struct debug_break) breaks;
	VEC(uint64_t) stale;   /* temporary ones that the server still has */
	uint32_t last_id;

	VEC(struct debug_module) modules;
	bool has_modules;
	uint64_t entry_va, phdr_va; /* AT_ENTRY, AT_PHDR; 0: not told */
	uint32_t phdr_cnt;

	/* Whether a hit breakpoint stops, or the target goes on; may be null. */
	bool (*accepts)(void *ctx, const struct debug_break *b);
	void *accepts_ctx;
};

struct debug_opts {
	struct reach_link link; /* taken, also on failure */
	struct reach_wait wait;
	void (*output)(void *ctx, const char *s, size_t len);
	void *output_ctx;
	const struct arch *arch; /* of the program; null: unknown */
};

/* Agrees with the server on how to speak; a process that is there is known afterwards. Errors: those of the link. */
_must_use_ struct err *debug_open(const struct debug_opts *o, struct debug **ret);
/* The server that an lldb-server in platform mode started, on its own machine. */
struct debug_server {
	uint64_t pid;          /* 0: not told */
	unsigned port;         /* of TCP; 0: it is at a socket */
	struct buf socket;     /* its path, with a NUL; the caller's to release */
};
/* Has it start one, which waits for one client. Error unsupported: this is no platform. */
_must_use_ struct err *debug_spawn(struct debug *d, struct debug_server *ret);
/* Lets go of the connection. What becomes of the process is the server's: detach or kill first. */
void debug_close(struct debug *d);
/* Any thread: the target that runs is to stop. */
void debug_interrupt(struct debug *d);

/* Starts a program, which stops before its first instruction. */
_must_use_ struct err *debug_launch(struct debug *d, const char *const *argv, size_t argc);
_must_use_ struct err *debug_attach(struct debug *d, uint64_t pid);
_must_use_ struct err *debug_detach(struct debug *d);
_must_use_ struct err *debug_kill(struct debug *d);

/* --- what a stopped target looks like (debug_state.c, debug_mem.c) --- */

/* What there is to know of a process from its beginning on; asks but once of each. */
_must_use_ struct err *debug_learn(struct debug *d);
/* Everything a person sees of it, in one batch: registers, threads, the pages around pc, sp and fp. */
_must_use_ struct err *debug_look(struct debug *d);
/* A register of the current thread, little-endian at most 8 bytes of it; false when it cannot be had. */
bool debug_reg(struct debug *d, int reg, uint64_t *ret);
static inline bool debug_pc(struct debug *d, uint64_t *ret)
{
	return debug_reg(d, d->regs.pc, ret);
}
/* The bytes of a register, borrowed; null when it is not known. Reads all registers first. */
const uint8_t *debug_reg_bytes(struct debug *d, int reg);
_must_use_ struct err *debug_reg_write(struct debug *d, int reg, uint64_t value);
/* The thread to look at. Error not_found. */
_must_use_ struct err *debug_thread_pick(struct debug *d, const char *id);
/* The threads with their names and places. */
_must_use_ struct err *debug_threads(struct debug *d);

/* Memory; gives in *ret_got how many bytes from the start could be read. What lies in pages not known yet is asked at once. */
_must_use_ struct err *debug_mem(struct debug *d, uint64_t va, void *out, size_t len, size_t *ret_got);
/* Asks for up to 64 pages at once, given by any address in them, which are known then. */
_must_use_ struct err *debug_pages(struct debug *d, const uint64_t *vas, size_t cnt);
/* The same of what is known already; asks nobody. */
size_t debug_mem_known(const struct debug *d, uint64_t va, void *out, size_t len);
_must_use_ struct err *debug_mem_write(struct debug *d, uint64_t va, const void *bytes, size_t len);
/* A word of the target's width. */
bool debug_word(struct debug *d, uint64_t va, uint64_t *ret);

/* The list of loaded objects, read anew after the target ran; the first one is the program. */
_must_use_ struct err *debug_modules(struct debug *d);
/* Where the loader stops to tell debuggers of an object, once it has begun; false: there is no such place, or not yet. And whether it
 * stands there because the list of objects is complete again. */
bool debug_load_place(struct debug *d, uint64_t *ret);
bool debug_is_loaded(struct debug *d);
/* Reads qXfer objects: the whole, up to `max` bytes. Empty when the server has none. */
_must_use_ struct err *debug_xfer(struct debug *d, const char *object, const char *annex, size_t max, struct buf *out);

/* --- breakpoints and running (debug_break.c, debug_run.c, debug_step.c) --- */

/* Sets some at once. What the server does not take has an error of its own, the caller's; errors given back are the connection's. */
struct debug_asked {
	enum debug_break_kind kind;
	uint64_t va;
	uint32_t len;          /* of watchpoints, bytes */
	uint32_t id;           /* of the breakpoint that was made, 0: none */
	struct err *err;
	size_t at;             /* of the debugger's own */
};
_must_use_ struct err *debug_breaks_add(struct debug *d, struct debug_asked *all, size_t cnt);
_must_use_ struct err *debug_break_add(struct debug *d, enum debug_break_kind kind, uint64_t va, uint32_t len, uint32_t *ret_id);
_must_use_ struct err *debug_break_del(struct debug *d, uint32_t id);
_must_use_ struct err *debug_break_enable(struct debug *d, uint32_t id, bool is_on);
struct debug_break *debug_break_find(struct debug *d, uint32_t id);
/* One of code that is on, null: none is there. */
struct debug_break *debug_break_at(struct debug *d, uint64_t va);

/* Signals that do not stop the target: bits by Linux' numbers. What programs use as a clock, or to hear of children, to begin with. */
_must_use_ struct err *debug_pass_signals(struct debug *d, uint64_t signals);

/* Runs until something stops it. `signal`: to deliver, 0 none, -1 the one that it stopped with. */
_must_use_ struct err *debug_continue(struct debug *d, int signal);
/* One instruction of the current thread. */
_must_use_ struct err *debug_step_insn(struct debug *d);
/* From here on all that runs is the current thread, step by step, and `log` is given what each one did; others run while it is in a system call.
 * Error unsupported: not of x86-64. Null: no more. */
_must_use_ struct err *debug_log_to(struct debug *d, const struct debug_log *log);

/* A place to stop at, in the current thread and with a stack pointer above min_sp. */
struct debug_place { uint64_t va, min_sp; };
/* Runs until one of them, or something else, stops it; *ret_hit tells which, -1: something else. */
_must_use_ struct err *debug_run_to(struct debug *d, const struct debug_place *places, size_t cnt, int *ret_hit);

/* A step through the instructions of a statement, [first, end) each. */
struct debug_range { uint64_t first, end; };
struct debug_step {
	const struct debug_range *ranges;
	size_t range_cnt;
	bool is_over;          /* calls are run through */
	bool has_caller;       /* where the function returns to, and the stack pointer then */
	uint64_t caller_va, caller_sp;
	/* Whether to stop in a function that is called; null: in every one. */
	bool (*wants)(void *ctx, uint64_t va);
	void *ctx;
	bool is_done;          /* set: it left the statement; false: something else stopped it */
};
/* Few round trips, however many instructions: breakpoints where control leaves the statement. */
_must_use_ struct err *debug_step_range(struct debug *d, struct debug_step *s);

/* --- stacks (debug_unwind.c) --- */

#define DEBUG_FRAME_REGS 16 /* general registers of x86-64, in DWARF's order */
struct debug_frame {
	uint64_t pc, sp;
	uint64_t fp;           /* frame pointer, 0 unknown */
	uint64_t cfa;          /* sp before the call that made it, 0 unknown */
	uint16_t known;        /* of `regs`, bit by bit: those that callees must keep and whose place is known; after a signal all */
	uint64_t regs[DEBUG_FRAME_REGS];
};
/* A register as it was in a frame that debug_unwind() gave, not the innermost; false: nobody knows. */
bool debug_frame_reg(const struct debug *d, const struct debug_frame *f, int reg, uint64_t *ret);
/* The program's file a place belongs to and what to take from addresses to get the file's own; null: unknown. */
struct fmt_bin;
typedef const struct fmt_bin *debug_bin_fn(void *ctx, uint64_t va, uint64_t *ret_base);
/* Frames of the current thread, innermost first, by unwind tables, else by frame pointers. Gives how many. */
size_t debug_unwind(struct debug *d, debug_bin_fn *bin, void *ctx, struct debug_frame *out, size_t cap);

#endif
