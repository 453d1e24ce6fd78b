/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_OPENING_H
#define TUI_OPENING_H

#include "base/err.h"
#include "tui/load.h"
#include "tui/term/cells.h"
#include "tui/term/input.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A target being opened, before there is a session to show. Reading the tables of a huge file takes longer than a
 * person's eye, so it happens in a thread while the frame is on the screen already; keys typed meanwhile are kept.
 */
struct ses;
struct tui_keymap;
struct ses_project;

#define TUI_OPENING_KEY_MAX 256

struct tui_opening {
	const char *path;       /* borrowed */
	const struct tui_keymap *map; /* borrowed; what keys mean, set by the caller */
	struct ses_project *project; /* set before it begins: the session is its binary `bin`, and the project's */
	uint32_t bin;
	uint64_t size;          /* of the file */
	int event_fd;           /* borrowed; written to at the end */
	bool has_thread;
	unsigned long thread;
	atomic_bool is_done;
	atomic_bool cancel;     /* the person leaves: a file of another machine is not waited for */
	atomic_uint_fast64_t done, total; /* bytes fetched of such a file; total 0: of none */
	struct ses *ses;        /* once done; null when err is set */
	struct tui_load load;   /* what a person says of a file that says nothing of itself */
	char title[128];
	bool is_asking;         /* they are being asked */
	int cur_x, cur_y;       /* terminal cursor of the frame; x < 0: hidden */
	struct err *err;
	struct term_ev keys[TUI_OPENING_KEY_MAX];
	uint32_t key_cnt;
	struct cells grid;
};

/* Begins to open `path`. What a small file needs, and what cannot be opened, is done when it returns; otherwise waits
 * a few milliseconds, which do for a file that was analysed before. `event_fd`: an eventfd. */
void tui_opening_start(struct tui_opening *o, const char *path, int event_fd);

/* Whether the session (or the error) is there; joins the thread. Both are the caller's then. */
bool tui_opening_end(struct tui_opening *o, bool wait);

/* The target, which was refused for being nothing known, is asked about: takes the error and says true. Other errors stay. */
bool tui_opening_ask(struct tui_opening *o);

/* Keeps a key for later; true when it says that the person wants to leave at once. */
bool tui_opening_key(struct tui_opening *o, const struct term_ev *ev);

/* The first frame, w x h, into o->grid: header, empty panes, footer. False when memory ran out. */
_must_use_ bool tui_opening_draw(struct tui_opening *o, int w, int h, bool is_ascii);

/* Frees what it owns; the thread must have ended. */
void tui_opening_fini(struct tui_opening *o);

#endif
