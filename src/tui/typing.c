/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/*
 * Types, prototypes and formats. A format is for the number under the cursor, or for the first of the line when the
 * cursor is on none; its key walks through what that number can be written as.
 */
#define OPERANDS_MAX 8

/* The number that is meant, and in C of which instruction it is; false when the line has none. */
static bool number_here(struct tui *t, uint64_t *va, unsigned *ret_operand, struct ses_formats *ret)
{
	if (tui_focus(t) == TUI_V_C)
		return tui_c_number(t, va, ret_operand, ret);
	int under = tui_listing_operand_idx(t);
	if (under >= 0 && ses_formats_at(t->snap, *va, (unsigned)under, &t->frame_arena, ret)) {
		*ret_operand = (unsigned)under;
		return true;
	}
	for (unsigned i = 0; i < OPERANDS_MAX; i++) {
		if (ses_formats_at(t->snap, *va, i, &t->frame_arena, ret)) {
			*ret_operand = i;
			return true;
		}
	}
	return false;
}

bool tui_number_here(struct tui *t, uint64_t *ret_va, unsigned *ret_operand)
{
	struct ses_formats f;
	return tui_focus_va(t, ret_va) && number_here(t, ret_va, ret_operand, &f);
}

/* From one format to the next (+1) or the one before (-1); an enum leads to the first. */
static void cycle(struct tui *t, uint64_t va, int step)
{
	struct ses_formats f;
	unsigned operand;
	char sub[12];
	if (!number_here(t, &va, &operand, &f)) {
		tui_say(t, true, "there is no number in this line");
		return;
	}
	uint32_t at = f.choice_cnt;
	for (uint32_t i = 0; i < f.choice_cnt; i++)
		at = !strcmp(f.choices[i], f.now) ? i : at;
	const char *to = f.choices[at == f.choice_cnt ? 0 : (at + f.choice_cnt + (uint32_t)step) % f.choice_cnt];
	snprintf(sub, sizeof(sub), "%u", operand);
	tui_edit_submit(t, "format", sub, va, !strcmp(to, "default") ? "" : to);
}

/* One format by its name; what the number cannot be written as is refused by the edit. */
static void format_as(struct tui *t, uint64_t va, const char *name)
{
	struct ses_formats f;
	unsigned operand;
	char sub[12];
	if (!number_here(t, &va, &operand, &f)) {
		tui_say(t, true, "there is no number in this line");
		return;
	}
	snprintf(sub, sizeof(sub), "%u", operand);
	tui_edit_submit(t, "format", sub, va, name);
}

static void prompt(struct tui *t, uint64_t va)
{
	char text[TUI_FILTER_MAX];
	struct ses_type_info now;
	ses_type_at(t->snap, va, &t->frame_arena, &now);
	if (now.text.len >= sizeof(text)) {
		tui_say(t, true, "longer than a prompt holds; change it with scry %s", now.is_func ? "set_prototype" : "retype");
		return;
	}
	snprintf(text, sizeof(text), "%.*s", (int)now.text.len, now.text.s);
	t->edit_va = va;
	tui_prompt_open(t, now.is_func ? TUI_PROMPT_PROTOTYPE : TUI_PROMPT_RETYPE, text);
}

bool tui_typing_act(struct tui *t, enum tui_action a)
{
	static const char *const names[] = {"hex", "dec", "oct", "bin", "char", "offset", "stack", ""};
	uint64_t va;
	bool is_named = a >= TUI_FORMAT_HEX && a <= TUI_FORMAT_DEFAULT;
	if (!is_named && a != TUI_RETYPE && a != TUI_FORMAT_NEXT && a != TUI_FORMAT_PREV)
		return false;
	bool has_operand = a == TUI_RETYPE && tui_focus(t) != TUI_V_GRAPH && tui_operand(t, &va);
	if (!has_operand && !tui_focus_va(t, &va))
		tui_say(t, true, "no address here");
	else if (is_named)
		format_as(t, va, names[a - TUI_FORMAT_HEX]);
	else if (a == TUI_RETYPE)
		prompt(t, va);
	else
		cycle(t, va, a == TUI_FORMAT_NEXT ? 1 : -1);
	return true;
}
