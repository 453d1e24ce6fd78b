/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/actions.h"

static const struct tui_action_info infos[TUI_ACTION_COUNT] = {
#define ACTION(id, keys_, where_, group_, text_) \
	[TUI_##id] = {.name = #id, .keys = keys_, .text = text_, .where = TUI_IN_##where_, .group = TUI_GROUP_##group_},
#include "tui/actions.def"
#undef ACTION
};

const struct tui_action_info *tui_action_info(enum tui_action a)
{
	return &infos[a];
}

const char *tui_group_name(enum tui_group g)
{
	static const char *const names[TUI_GROUP_COUNT] = {"Moving", "Going places", "Finding", "Views", "Editing", "Running programs",
						      "scry", "Not there yet"};
	return names[g];
}

static bool is_action(const char *name, const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = word[i] == '-' ? '_' : word[i] >= 'a' && word[i] <= 'z' ? (char)(word[i] - 32) : word[i];
		if (!name[i] || c != name[i])
			return false;
	}
	return !name[len];
}

enum tui_action tui_action_named(const char *word, size_t len)
{
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		if (is_action(infos[a].name, word, len))
			return (enum tui_action)a;
	}
	return TUI_NONE;
}
