/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tui_screen.h"

#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct tui tui;
struct ses *ses;

void open_tui(uint32_t func_cnt, int w, int h)
{
	ses = fake_open(func_cnt);
	assert_true(tui_init(&tui, ses, w, h));
	tui_draw(&tui);
}

void close_tui(void)
{
	tui_fini(&tui);
	ses_close(ses);
}

void keys(const char *list)
{
	while (*list) {
		size_t len = strcspn(list, " ");
		struct term_ev ev = {.type = TERM_EV_KEY};
		if (len > 1 && list[0] == '\'') {
			for (size_t i = 1; i < len; i++) {
				ev.key = (uint8_t)list[i];
				tui_event(&tui, &ev);
			}
		} else {
			assert_true(term_key_parse(list, len, &ev.key, &ev.mods));
			tui_event(&tui, &ev);
		}
		tui_draw(&tui);
		list += len + (list[len] == ' ');
	}
}

void page_text(struct buf *out)
{
	char u8[4];
	for (int y = 0; y < tui.grid.h; y++) {
		size_t end = out->len;
		for (int x = 0; x < tui.grid.w; x++) {
			const struct cells_cell *c = &tui.grid.cell[y * tui.grid.w + x];
			if (c->cp)
				buf_add(out, u8, utf8_put(c->cp, u8));
			for (int i = 0; i < CELLS_MARK_CNT && c->mark[i]; i++)
				buf_add(out, u8, utf8_put(c->mark[i], u8));
			if (c->cp && c->cp != ' ')
				end = out->len;
		}
		out->len = end;
		buf_add_ch(out, '\n');
	}
	buf_printf(out, "cursor %d,%d\n", tui.cur_x, tui.cur_y);
	buf_add_ch(out, '\0');
	assert_false(out->failed);
}

bool page_has(const char *text)
{
	struct buf b = {0};
	page_text(&b);
	bool has = strstr(b.data, text) != NULL;
	buf_fini(&b);
	return has;
}
