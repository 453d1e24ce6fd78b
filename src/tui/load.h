/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_LOAD_H
#define TUI_LOAD_H

#include "tui/term/cells.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The dialog of load options: a list of processors that what is typed filters, a base, and whether the file is taken as raw
 * bytes whatever it says. It stands by itself, for it is asked for before there is a session, too.
 */
struct tui_load {
	char filter[32];
	char base[32];       /* "": as the file says */
	char why[256];       /* a line above: why it is asked, what was wrong; "" none */
	uint32_t cur;        /* of the processors that match */
	bool is_in_base;     /* the base has the keys */
	bool is_raw;
};

enum tui_load_end { TUI_LOAD_OPEN, TUI_LOAD_TAKEN, TUI_LOAD_LEFT };

/* What is chosen, as `scry load` takes it; "auto": as the file says. Both are static or the dialog's. */
const char *tui_load_processor(const struct tui_load *d);
static inline const char *tui_load_base(const struct tui_load *d)
{
	return *d->base ? d->base : "auto";
}
static inline const char *tui_load_format(const struct tui_load *d)
{
	return d->is_raw ? "raw" : "auto";
}

/* Puts the cursor on a processor; one that is none is "auto". */
void tui_load_choose(struct tui_load *d, const char *processor);
enum tui_load_end tui_load_key(struct tui_load *d, uint32_t key, uint8_t mods);
/* Draws into the middle of the grid; *ret_x and *ret_y: the terminal's cursor. */
struct cells_rect tui_load_draw(const struct tui_load *d, struct cells *g, const char *title, int *ret_x, int *ret_y);

#endif
