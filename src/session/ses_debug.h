/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_DEBUG_H
#define SESSION_SES_DEBUG_H

#include "base/buf.h"
#include "session/ses_remote.h"
#include "session/session.h"

/*
 * A debugger of a target: at a server of the gdb remote protocol, or of a program started here. Commands are lines of text, the same in
 * scripts, at the prompt and in the workbench; what a view shows is asked for by type. Addresses are the database's where they are
 * called `va`, and those of the running target where they are called `live`; the two differ by what the loader added.
 *
 * One thread at a time, but for ses_debug_interrupt(). A target runs only because a command says so.
 */
struct ses_debug;

struct ses_debug_opts {
	/* connect://HOST:PORT, unix-connect://SOCKET, ssh://HOST; null: a program is started here. With a path behind it, or where no database is
	 * given and the server tells which program it has: that file is fetched through the cache and opened, and is what `run` starts. */
	const char *where;
	const char *const *argv;   /* the program and its words; of a server what `run` starts there */
	size_t argc;
	struct ses *ses;           /* the program's database, borrowed; null: none */
	bool is_apart;             /* a program started here has a terminal of its own, whose output comes to `output` */
	unsigned silence_ms;       /* how long a server may say nothing; 0: 10 s */
	const atomic_bool *cancel; /* may be null */
	/* What it does from its first stop on, or from its beginning where nothing stops it, is written there: an execution log; null: not. */
	const char *log;
	bool no_store;             /* what is fetched and opened is not kept */
	/* How a file that is fetched comes along; may be null. */
	void (*progress)(void *ctx, const struct ses_remote_progress *p);
	/* What the target prints, where its output comes over the connection. */
	void (*output)(void *ctx, const char *s, size_t len);
	void *ctx;
};

/* Errors: those of the connection; invalid: no place of a server. */
_must_use_ struct err *ses_debug_open(const struct ses_debug_opts *o, struct ses_debug **ret);
/* Kills what it started, lets go of what was there before. Accepts null. */
void ses_debug_close(struct ses_debug *s);
/* Any thread: the target that runs is to stop. */
void ses_debug_interrupt(struct ses_debug *s);

/* Does one command, answers in `out` as text for people that is safe to show. *ret_quit: it was the one that ends. */
_must_use_ struct err *ses_debug_command(struct ses_debug *s, const char *line, struct buf *out, bool *ret_quit);
/* The i-th way to go on with the last word of `line`, a command or a name, into `out`; false: there is none. */
bool ses_debug_complete(struct ses_debug *s, const char *line, unsigned i, char *out, size_t cap);
/* Requests sent, and times an answer was waited for. */
void ses_debug_counts(const struct ses_debug *s, uint64_t *ret_packets, uint64_t *ret_turns);
/* The status of the target that ended: as a shell has it; -1: it has not ended. */
int ses_debug_status(const struct ses_debug *s);

/* --- for views --- */

enum ses_debug_state { SES_DEBUG_NONE, SES_DEBUG_STOPPED, SES_DEBUG_ENDED };
enum ses_debug_state ses_debug_state(const struct ses_debug *s);
/* Where it stands in the database; false: nowhere, or in another object. */
bool ses_debug_va(struct ses_debug *s, uint64_t *ret);
/* One line: why it stands still and where. */
void ses_debug_put_state(struct ses_debug *s, struct buf *out);

struct ses_debug_reg { const char *name; uint64_t value; bool is_known, has_changed; };
/* The general registers of the current thread. */
_must_use_ struct err *ses_debug_regs(struct ses_debug *s, struct arena *a, struct ses_debug_reg **ret, uint32_t *ret_cnt);
struct ses_debug_frame { uint64_t live; bool has_va; uint64_t va; struct ses_text where; };
_must_use_ struct err *ses_debug_frames(struct ses_debug *s, struct arena *a, struct ses_debug_frame **ret, uint32_t *ret_cnt);
struct ses_debug_word { uint64_t live, value; bool is_known; struct ses_text where; /* what the value leads to, "" */ };
/* The first words of the stack. */
_must_use_ struct err *ses_debug_stack(struct ses_debug *s, struct arena *a, uint32_t cnt, struct ses_debug_word **ret);
/* Live bytes at addresses of the database; known[i] tells which could be had. */
_must_use_ struct err *ses_debug_bytes(struct ses_debug *s, uint64_t va, uint32_t len, uint8_t *out, bool *known);
/* Whether a breakpoint is at va: 0 none, 1 on, 2 off or not placed yet. */
int ses_debug_break_at(const struct ses_debug *s, uint64_t va);
/* Where breakpoints are, up to `cap` addresses; gives how many. */
size_t ses_debug_breaks(const struct ses_debug *s, uint64_t *out, size_t cap);
/* Where the frame that is looked at is in the database; false: nowhere. */
bool ses_debug_frame_va(struct ses_debug *s, uint64_t *ret);
/* Sets one, or takes it away. */
_must_use_ struct err *ses_debug_break_toggle(struct ses_debug *s, uint64_t va);
/* One step: by instruction, by line of the source or, without such, by statement of the C. */
enum ses_debug_unit { SES_DEBUG_INSN, SES_DEBUG_SOURCE, SES_DEBUG_C };
_must_use_ struct err *ses_debug_step(struct ses_debug *s, enum ses_debug_unit unit, bool is_over);
_must_use_ struct err *ses_debug_until(struct ses_debug *s, uint64_t va);
/* Starts the program if there is none, else goes on. */
_must_use_ struct err *ses_debug_run(struct ses_debug *s);

#endif
