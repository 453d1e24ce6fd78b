/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTY_TERM_H
#define PTY_TERM_H

#include "base/buf.h"

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>

/* A program on a pseudo-terminal whose other end is a terminal model, which also answers its questions. */
struct pty_term {
	pid_t pid;
	int fd;                 /* master */
	int slave;              /* kept open, to see what the program leaves behind */
	struct termios before;
	VTerm *vt;
	VTermScreen *screen;
	int w, h;
	struct buf log;         /* every byte the program wrote */
	bool is_cursor_shown, is_alt_screen;
	int mouse;              /* VTERM_PROP_MOUSE_* */
	bool is_ended;
	int status;             /* of waitpid, once ended */
};

/* Starts argv with `env` (NAME=VALUE, null-terminated) added to a small environment. */
void pty_start(struct pty_term *t, char *const argv[], const char *const env[], int w, int h);
void pty_stop(struct pty_term *t);

/* Takes what the program writes for at most `ms`, or until nothing came for `quiet_ms` (0: the whole time). With quiet_ms a program that
 * is silent but runs, as on a loaded machine, is waited for, ten times as long at most. */
void pty_pump(struct pty_term *t, int ms, int quiet_ms);
void pty_send(struct pty_term *t, const char *bytes, size_t len);
void pty_keys(struct pty_term *t, const char *keys);
void pty_resize(struct pty_term *t, int w, int h);

/* The screen as text, one line a row; valid until the next call. */
const char *pty_text(struct pty_term *t);
/* Waits until the screen shows `text`; false when it does not within `ms`. */
bool pty_wait(struct pty_term *t, const char *text, int ms);
/* Waits until the program ended; false when it does not within `ms`. */
bool pty_wait_end(struct pty_term *t, int ms);

/* The bytes a terminal sends for a key. */
#define PTY_KEY_MAX 32
size_t pty_encode_key(uint32_t key, unsigned mods, char out[PTY_KEY_MAX]);

#endif
