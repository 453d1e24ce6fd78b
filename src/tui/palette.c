/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Every action by name, found by typing parts of it; each shows its keys. */

/* Whether all letters of `want` occur in `text` in this order, words of it from their beginning first. */
static bool matches(const char *want, const char *text)
{
	const char *at = text;
	if (strcasestr(text, want))
		return true;
	for (; *want; want++) {
		if (*want == ' ')
			continue;
		while (*at && tolower((unsigned char)*at) != tolower((unsigned char)*want))
			at++;
		if (!*at++)
			return false;
	}
	return true;
}

static bool is_recent(const struct tui_query *q, int a)
{
	return memchr(q->recent, a, TUI_RECENT_MAX) != NULL;
}

/* 5: is what is typed; 4: done lately, and nothing is typed; 3: begins as typed; 2: has it; 1: has its letters in order; 0: neither. */
static int rank(const char *want, const struct tui_action_info *info, bool is_recent)
{
	if (!want && is_recent)
		return 4;
	if (want && !strcasecmp(info->text, want))
		return 5;
	if (want && strncasecmp(info->text, want, strlen(want)) == 0)
		return 3;
	if (!want || strcasestr(info->text, want) || strcasestr(info->name, want))
		return 2;
	return matches(want, info->text);
}

static struct err *palette_fetch(const struct tui_query *q, struct tui_page *ret)
{
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, TUI_ACTION_COUNT);
	if (!ret->rows)
		return &err_nomem;
	for (int want = 5; want > 0; want--) {
		for (int i = 0; i < (want == 4 ? TUI_RECENT_MAX : TUI_ACTION_COUNT); i++) {
			int a = want == 4 ? q->recent[i] : i;
			const struct tui_action_info *info = tui_action_info((enum tui_action)a);
			if (a == TUI_NONE || rank(q->page.filter, info, is_recent(q, a)) != want)
				continue;
			uint64_t at = ret->total++;
			if (at < q->page.offset || at - q->page.offset >= q->page.limit)
				continue;
			struct tui_row *r = &ret->rows[ret->cnt++];
			const char *group = tui_group_name((enum tui_group)info->group);
			r->action = (uint8_t)a;
			r->col[0] = (struct ses_text){info->text, (uint32_t)strlen(info->text)};
			const char *keys = tui_keymap_keys(q->keys, (enum tui_action)a);
			r->col[1] = (struct ses_text){keys, (uint32_t)strlen(keys)};
			r->col[2] = (struct ses_text){group, (uint32_t)strlen(group)};
		}
	}
	return NULL;
}

const struct tui_list_ops tui_palette_list = {
	.title = "Every action",
	.empty = "no action",
	.columns = {{.title = "action", .role = ROLE_TEXT},
		    {.title = "keys", .width = 22, .role = ROLE_KEY},
		    {.title = "group", .width = 12, .role = ROLE_DIM}},
	.column_cnt = 3,
	.is_typed_in = true,
	.fetch = palette_fetch,
};

void tui_palette_open(struct tui *t)
{
	*t->palette.filter = '\0';
	tui_list_restart(&t->palette);
	tui_overlay_push(t, TUI_O_PALETTE);
}
