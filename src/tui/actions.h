/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_ACTIONS_H
#define TUI_ACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The actions of actions.def and their keys. */
enum tui_action {
	TUI_NONE,
#define ACTION(id, keys, where, group, text) TUI_##id,
#include "tui/actions.def"
#undef ACTION
	TUI_ACTION_COUNT
};

/* Where the focus is. */
enum tui_where {
	TUI_IN_LISTING = 1,
	TUI_IN_HEX = 2,
	TUI_IN_LIST = 4,
	TUI_IN_GRAPH = 8,
	/* Lists with keys of their own. */
	TUI_IN_MARKS = 16,
	TUI_IN_JOURNAL = 32,
	TUI_IN_TYPES = 64,
	TUI_IN_C = 128,
	TUI_IN_PROPOSALS = 256,
	TUI_IN_LIVE = 512,
	TUI_IN_OWNED = TUI_IN_MARKS | TUI_IN_TYPES,
	TUI_IN_LINES = TUI_IN_LISTING | TUI_IN_HEX,
	TUI_IN_TEXT = TUI_IN_LISTING | TUI_IN_C,
	TUI_IN_PLACES = TUI_IN_LISTING | TUI_IN_HEX | TUI_IN_C,
	TUI_IN_CODE = TUI_IN_LISTING | TUI_IN_GRAPH | TUI_IN_C,
	TUI_IN_MAIN = TUI_IN_LISTING | TUI_IN_HEX | TUI_IN_GRAPH | TUI_IN_C,
	TUI_IN_ANY = TUI_IN_MAIN | TUI_IN_LIST | TUI_IN_MARKS | TUI_IN_JOURNAL | TUI_IN_TYPES | TUI_IN_PROPOSALS | TUI_IN_LIVE,
};

enum tui_group { TUI_GROUP_MOVE, TUI_GROUP_GO, TUI_GROUP_FIND, TUI_GROUP_VIEW, TUI_GROUP_EDIT,
		 TUI_GROUP_LIVE, TUI_GROUP_SCRY, TUI_GROUP_LATER, TUI_GROUP_COUNT };

struct tui_action_info {
	const char *name;  /* "VIEW_HEX" */
	const char *keys;  /* as the table has them (keymap.h has those in force), separated by blanks; "" */
	const char *text;  /* for people */
	uint16_t where;    /* enum tui_where bits */
	uint8_t group;     /* enum tui_group */
};

/* Of any action but TUI_NONE. */
const struct tui_action_info *tui_action_info(enum tui_action a);
const char *tui_group_name(enum tui_group g);

/* The action with this name, in any case and with - for _; TUI_NONE when there is none. */
enum tui_action tui_action_named(const char *word, size_t len);

#endif
