/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_KEYMAP_H
#define TUI_KEYMAP_H

#include "base/err.h"
#include "tui/actions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which keys do what. The lowest layer is the table of actions.def; a preset and the person's own file lie over it. What
 * a layer binds it takes from the layers below, in the places where its action is meant.
 *
 * A layer is text, a line each:
 *   # a comment
 *   ACTION = KEY...     these keys and no others (none: only the palette has it)
 *   ACTION += KEY...    these keys too
 *   langmap FROM TO     a character of FROM, where it has no action, is the key at the same place of TO
 *   preset NAME         the layer in between; in a person's own file only
 * A KEY is "g", "Ctrl+P", "F3", or two keys typed one after the other: "gg", ",f".
 */
struct tui_keymap;

#define TUI_STROKES_MAX 2
#define TUI_KEYMAP_LEN_MAX 65536 /* bytes of a layer's text */

struct tui_stroke {
	uint32_t key;
	uint8_t mods;
};

/* "Ctrl+P", "gg" to strokes; how many, 0 when it is no key. */
unsigned tui_strokes_parse(const char *name, size_t len, struct tui_stroke *ret);

/* The table's keys and nothing else; null when memory ran out. tui_keymap_free() takes null. */
struct tui_keymap *tui_keymap_new(void);
void tui_keymap_free(struct tui_keymap *m);

/* Lays `text` over what is there. Lines that cannot be taken are left out; the error, of kind invalid, names the first
 * ("FILE:LINE: WHY") and says how many more there are. */
_must_use_ struct err *tui_keymap_add(struct tui_keymap *m, const char *file, const char *text, size_t len);

/* The name after `preset` in a layer's text, of at most cap - 1 bytes; false when there is none. */
bool tui_keymap_preset_of(const char *text, size_t len, char *out, size_t cap);

/* The action of one stroke (cnt 1) or two for a focus (enum tui_where), the one for the fewest kinds of focus first;
 * TUI_NONE when there is none. */
enum tui_action tui_keymap_action(const struct tui_keymap *m, const struct tui_stroke *s, unsigned cnt, uint16_t where);

/* Whether another stroke follows this one. */
bool tui_keymap_is_prefix(const struct tui_keymap *m, struct tui_stroke s, uint16_t where);

/* What the i-th binding beginning with this stroke continues with, as written; null past the last. */
const char *tui_keymap_after(const struct tui_keymap *m, struct tui_stroke s, uint16_t where, unsigned i, enum tui_action *ret);

/* The character that stands at this one's place of the keyboard; itself where no langmap has it. */
uint32_t tui_keymap_char(const struct tui_keymap *m, uint32_t key);

/* The keys of an action as written, separated by blanks; "" when it has none. */
const char *tui_keymap_keys(const struct tui_keymap *m, enum tui_action a);

/* --- where layers come from (keys.c) --- */

/* The keys of the preset `name` (null: what the person's own file says, else none) under the person's own file. *ret is
 * usable whatever the error is: what could not be taken is left out. */
_must_use_ struct err *tui_keys_load(const char *name, struct tui_keymap **ret);

/* The person's own file, $XDG_CONFIG_HOME/scry/keys or ~/.config/scry/keys; false when neither is set. */
bool tui_keys_path(char *out, size_t cap);

/* Whether nobody has said yet which keys there are to be: a first start. */
bool tui_keys_are_unchosen(void);

/* Writes `preset NAME` into the person's own file, whose other lines stay. */
_must_use_ struct err *tui_keys_choose(const char *name);

#endif
