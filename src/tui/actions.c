/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/actions.h"

#include "base/cleanup.h"
#include "tui/term/input.h"

#include <string.h>

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
	static const char *const names[TUI_GROUP_COUNT] = {"Moving", "Going places", "Finding", "Views", "Editing", "scry"};
	return names[g];
}

/* Whether one written key ("Ctrl+P", ",f") is this one. */
static bool is_key(const char *name, size_t len, uint32_t key, uint8_t mods, bool is_leader)
{
	uint32_t named;
	uint8_t named_mods;
	if (is_leader != (len == 2 && name[0] == ','))
		return false;
	if (is_leader) {
		name++;
		len--;
	}
	return term_key_parse(name, len, &named, &named_mods) && named == key && named_mods == mods;
}

static bool has_key(const struct tui_action_info *info, uint32_t key, uint8_t mods, bool is_leader)
{
	for (const char *k = info->keys; *k;) {
		size_t len = strcspn(k, " ");
		if (is_key(k, len, key, mods, is_leader))
			return true;
		k += len + (k[len] == ' ');
	}
	return false;
}

enum tui_action tui_action_for(uint32_t key, uint8_t mods, uint8_t where, bool is_leader)
{
	enum tui_action best = TUI_NONE;
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		if (!(infos[a].where & where) || !has_key(&infos[a], key, mods, is_leader))
			continue;
		if (!best || __builtin_popcount(infos[a].where) < __builtin_popcount(infos[best].where))
			best = (enum tui_action)a;
	}
	return best;
}

size_t tui_action_first_key(enum tui_action a, const char **ret)
{
	*ret = infos[a].keys;
	return strcspn(infos[a].keys, " ");
}
