/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DEBUG_INT_H
#define LIVE_DEBUG_INT_H

#include "live/debug/debug.h"

/* Private to this folder. */

/* Forgets what a running target changes. */
void debug_forget(struct debug *d);
/* Adds the request for a piece of a qXfer object; takes that piece, the first one, and asks for those that follow, up to `max` bytes in all. */
size_t debug_ask_xfer(const struct debug *d, struct debug_batch *b, const char *object, const char *annex, size_t off);
_must_use_ struct err *debug_take_xfer(struct debug *d, struct gdb_span first, const char *object, const char *annex, size_t max, struct buf *out);
/* Names and places of threads out of jThreadsInfo (LLDB's documentation of its packets); false when it is no such list. */
bool debug_take_threads_info(struct debug *d, struct gdb_span json);
/* A stop reply: state, stop, threads and registers from it. Error bad_input when it is none. */
_must_use_ struct err *debug_take_stop(struct debug *d, struct gdb_span reply);
/* Adds the objects of a library-list-svr4. Errors: bad_input, budget. */
_must_use_ struct err *debug_take_modules(struct debug *d, const char *text, size_t len);
/* Takes a list that came as a whole. */
void debug_take_short_list(struct debug *d, struct gdb_span reply);
/* Makes room for the values of the registers. */
_must_use_ struct err *debug_values_init(struct debug *d);
/*
 * What is asked of a process once it is there: how memory is read, the target description, the auxiliary vector. Adds the beginnings of the
 * answers to a batch; takes what came, and asks for what is left of long ones. A description that cannot be had is taken for granted by the
 * program's processor.
 */
struct debug_learning { bool is_asked; size_t x, xml, auxv; };
void debug_ask_learning(struct debug *d, struct debug_batch *b, struct debug_learning *ret);
_must_use_ struct err *debug_take_learning(struct debug *d, const struct debug_batch *b, const struct debug_learning *l);
/* The words of an auxiliary vector. */
void debug_take_auxv(struct debug *d, const struct buf *text);
/* Adds to a batch that temporary breakpoints go and lifted ones come back. */
void debug_ask_stale(struct debug *d, struct debug_batch *b);
/* "an error of the server": what a reply says, about `what`. */
_must_use_ struct err *debug_refused(struct gdb_span reply, const char *what);
/* Adds a request for all registers of the current thread. */
size_t debug_ask_values(struct debug *d, struct debug_batch *b);
/* Takes its reply; false when it was refused. */
bool debug_take_values(struct debug *d, struct gdb_span reply);
/* Adds a request for a page that is not known, unless it is; *ret_i is its number in the batch, SIZE_MAX: none was needed. */
void debug_ask_page(struct debug *d, struct debug_batch *b, uint64_t va, size_t *ret_i);
/* Takes what came of it. */
_must_use_ struct err *debug_take_page(struct debug *d, uint64_t va, const struct debug_batch *b, size_t first);
/* Appends "vCont;..." for the thread that is looked at: one step of it alone, or everything goes on. */
void debug_ask_go(struct debug *d, struct debug_batch *b, bool is_step, int signal);
/* Sends the batch, whose last request lets the target run, and takes the stop. */
_must_use_ struct err *debug_go(struct debug *d, struct debug_batch *b);
/* Tells the server of signals that it need not stop for, where it takes that. */
void debug_ask_passed(struct debug *d, struct debug_batch *b);
/* The signal in gdb's numbers, or the server's own. */
int debug_signal_put(const struct debug *d, int linux_signal);
int debug_signal_read(const struct debug *d, int signal);

/* --- debug_log.c: a log made from here --- */
_must_use_ struct err *debug_recorder_new(struct debug *d, struct debug_recorder **ret);
void debug_recorder_free(struct debug_recorder *r);
/* Before and after one step of the current thread; the lines go to the log. */
_must_use_ struct err *debug_record_before(struct debug *d);
_must_use_ struct err *debug_record_after(struct debug *d);
/* Whether others may run during that step: it may wait for them. */
bool debug_record_waits(const struct debug *d);

#define DEBUG_STOPPED_ONLY(d)                                                                                                     \
	do {                                                                                                                      \
		if ((d)->state != DEBUG_STOPPED)                                                                                  \
			return err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");                     \
	} while (0)

#endif
