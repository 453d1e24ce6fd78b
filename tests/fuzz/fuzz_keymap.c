/* SPDX-License-Identifier: Apache-2.0 */
/* A person's file of keys: any bytes. What was bound is shown and does something; the palette keeps every action. */
#include "fuzz.h"

#include "tui/keymap.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct tui_keymap *m = tui_keymap_new();
	char name[64];
	if (!m)
		abort();
	tui_keymap_preset_of((const char *)bytes, len, name, sizeof(name));
	struct err *e = tui_keymap_add(m, "f", (const char *)bytes, len);
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		for (const char *k = tui_keymap_keys(m, (enum tui_action)a); *k;) {
			struct tui_stroke s[TUI_STROKES_MAX];
			size_t n = strcspn(k, " ");
			enum tui_action next;
			unsigned cnt = tui_strokes_parse(k, n, s);
			if (!cnt || tui_keymap_action(m, s, cnt, TUI_IN_ANY) == TUI_NONE)
				abort();
			if (cnt == 2 && !tui_keymap_after(m, s[0], TUI_IN_ANY, 0, &next))
				abort();
			tui_keymap_char(m, s[0].key);
			k += n + (k[n] == ' ');
		}
	}
	fuzz_accepted += !e;
	fuzz_rejected += e != NULL;
	err_free(e);
	tui_keymap_free(m);
	return 0;
}
