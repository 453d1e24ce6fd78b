/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_TERM_TTY_H
#define TUI_TERM_TTY_H

#include "base/buf.h"
#include "base/err.h"
#include "tui/term/caps.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The terminal itself: raw mode, the alternate screen and the modes we use, and giving everything back on every way
 * out. One at a time in a process, because a signal handler must find it.
 */
struct term_tty {
	int fd;             /* our own open description where possible, so that O_NONBLOCK is ours alone */
	bool is_shared_fd;  /* it is the caller's stdin after all */
	bool no_mouse, no_paste; /* modes that are not switched on */
	bool has_key_codes; /* kitty's keyboard protocol was switched on */
	struct buf pending; /* bytes the terminal has not taken yet */
	size_t sent;        /* of pending */
};

/* Takes the terminal of stdin (which must be one, as must stdout). Errors: env when there is none, io. */
_must_use_ struct err *term_tty_open(struct term_tty *t, const struct term_caps *caps);

/* Gives the terminal back. Waits at most 200 ms for a terminal that does not read, and for replies still under way
 * so that they do not land in the shell. Does nothing when not open. */
void term_tty_close(struct term_tty *t, const struct term_caps *caps);

/* Leaves full-screen mode and enters it again (around stopping the process). */
void term_tty_suspend(struct term_tty *t);
void term_tty_resume(struct term_tty *t);

/* Switches on keys as codes once the terminal said that it knows them. */
void term_tty_use_key_codes(struct term_tty *t);

/* Size in cells; 80x24 when the terminal does not know. */
void term_tty_size(const struct term_tty *t, int *ret_w, int *ret_h);

/* Hands as much of `pending` to the terminal as it takes without waiting; false when the terminal is gone. */
bool term_tty_flush(struct term_tty *t);
static inline bool term_tty_is_stuck(const struct term_tty *t)
{
	return t->sent < t->pending.len;
}

/* Handlers for the signals of our own faults that give the terminal back and pass the signal on. To be called before
 * anything else installs a SIGBUS handler. */
void term_tty_catch_faults(void);

#endif
