/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_RPC_VERBS_H
#define TUI_RPC_VERBS_H

#include "tui/rpc_int.h"

/* What the methods do (their line in rpc_methods.c says what that is). Each begins its call; an error ends it. */
struct err *tui_verb_screen(struct tui_call *c);
struct err *tui_verb_keys(struct tui_call *c);
struct err *tui_verb_text(struct tui_call *c);
struct err *tui_verb_paste(struct tui_call *c);
struct err *tui_verb_mouse(struct tui_call *c);
struct err *tui_verb_action(struct tui_call *c);
struct err *tui_verb_goto(struct tui_call *c);
struct err *tui_verb_follow(struct tui_call *c);
struct err *tui_verb_back(struct tui_call *c);
struct err *tui_verb_forward(struct tui_call *c);
struct err *tui_verb_show(struct tui_call *c);
struct err *tui_verb_pseudocode(struct tui_call *c);
struct err *tui_verb_toggle_view(struct tui_call *c);
struct err *tui_verb_hex(struct tui_call *c);
struct err *tui_verb_trace(struct tui_call *c);
struct err *tui_verb_graph(struct tui_call *c);
struct err *tui_verb_xrefs(struct tui_call *c);
struct err *tui_verb_symbols(struct tui_call *c);
struct err *tui_verb_structs(struct tui_call *c);
struct err *tui_verb_search(struct tui_call *c);
struct err *tui_verb_filter(struct tui_call *c);
struct err *tui_verb_select(struct tui_call *c);
struct err *tui_verb_close(struct tui_call *c);
struct err *tui_verb_move(struct tui_call *c);
struct err *tui_verb_cursor(struct tui_call *c);
struct err *tui_verb_cursor_on(struct tui_call *c);
struct err *tui_verb_rename_many(struct tui_call *c);
struct err *tui_verb_binaries(struct tui_call *c);
struct err *tui_verb_switch(struct tui_call *c);

#endif
