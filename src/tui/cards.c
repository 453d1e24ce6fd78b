/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/* Short lists: what the status line said, which keys there are. */

static struct ses_text text_of(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

/* Room for the page's rows; false and an error when memory ran out. */
static struct tui_row *rows_for(struct tui_page *ret, size_t cnt)
{
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, cnt + 1);
	return ret->rows;
}

/* A row of the page asked for; null when it lies outside. */
static struct tui_row *next_row(const struct tui_query *q, struct tui_page *ret)
{
	uint64_t at = ret->total++;
	return at < q->page.offset || ret->cnt >= q->page.limit ? NULL : &ret->rows[ret->cnt++];
}

static struct err *log_fetch(const struct tui_query *q, struct tui_page *ret)
{
	unsigned cnt = MIN(q->said->cnt, (unsigned)TUI_SAID_MAX);
	if (!rows_for(ret, cnt))
		return &err_nomem;
	for (unsigned i = 0; i < cnt; i++) {
		struct tui_row *r = next_row(q, ret);
		if (r)
			r->col[0] = text_of(q->said->line[(q->said->cnt - 1 - i) % TUI_SAID_MAX]);
	}
	return NULL;
}

const struct tui_list_ops tui_log_list = {
	.title = "What was said, the latest first",
	.empty = "nothing yet",
	.columns = {{.title = "message", .role = ROLE_TEXT}},
	.column_cnt = 1,
	.fetch = log_fetch,
};

static const struct { const char *name, *text; } presets[] = {
	{"ida", "IDA"}, {"ghidra", "Ghidra"}, {"binja", "Binary Ninja"}, {"vim-strict", "vim"}, {"r2", "radare2"},
};

static struct err *presets_fetch(const struct tui_query *q, struct tui_page *ret)
{
	if (!rows_for(ret, ARRAY_LEN(presets)))
		return &err_nomem;
	for (size_t i = 0; i < ARRAY_LEN(presets); i++) {
		struct tui_row *r = next_row(q, ret);
		if (!r)
			continue;
		r->action = (uint8_t)i;
		r->col[0] = text_of(presets[i].text);
		r->col[1] = text_of(presets[i].name);
	}
	return NULL;
}

const struct tui_list_ops tui_presets_list = {
	.title = "Keys like",
	.empty = "none",
	.columns = {{.title = "keys", .role = ROLE_TEXT}, {.title = "scry --keys", .width = 12, .role = ROLE_KEY}},
	.column_cnt = 2,
	.fetch = presets_fetch,
};

bool tui_keys_use(struct tui *t, const char *name)
{
	struct tui_keymap *m;
	struct err *e = tui_keys_load(name, &m);
	if (m) {
		tui_keymap_free(t->keys);
		t->keys = m;
	}
	t->is_dirty = true;
	if (!e)
		return true;
	tui_say_err(t, e);
	return false;
}

void tui_keys_pick(struct tui *t, unsigned i)
{
	if (i >= ARRAY_LEN(presets))
		return;
	if (!tui_keys_use(t, presets[i].name))
		return;
	struct err *e = tui_keys_choose(presets[i].name);
	if (e) {
		tui_say_err(t, e);
		return;
	}
	const char *keys = tui_keymap_keys(t->keys, TUI_KEYS);
	tui_say(t, false, "keys like %s, now and from now on (%.*s changes them)", presets[i].text, (int)strcspn(keys, " "), keys);
}

/* --- the first start ------------------------------------------------------------------------------------------------------ */

#define OFFER_NS 20000000000ull

void tui_offer_begin(struct tui *t, uint64_t now)
{
	t->offer_ns = now + OFFER_NS;
}

/* Whatever ends it, it does not come back. */
void tui_offer_end(struct tui *t)
{
	t->offer_ns = 0;
	t->is_dirty = true;
	err_free(tui_keys_choose(presets[0].name));
}

bool tui_offer_key(struct tui *t, uint32_t key)
{
	bool is_choice = key >= '1' && key < '1' + ARRAY_LEN(presets);
	tui_offer_end(t);
	if (is_choice)
		tui_keys_pick(t, key - '1');
	return is_choice;
}

void tui_offer_draw(struct tui *t)
{
	int h = (int)ARRAY_LEN(presets) + 3;
	int w = MIN(40, t->grid.w);
	if (t->grid.h < h + 3 || w < 30)
		return;
	struct cells_rect r = {t->grid.w - w, t->grid.h - 2 - h, w, h};
	struct cells_style st = tui_style(ROLE_BORDER_FOCUS, ROLE_BG_DIALOG);
	cells_fill(&t->grid, r, st);
	cells_box(&t->grid, r, "Keys like", st);
	for (size_t i = 0; i <= ARRAY_LEN(presets); i++) {
		struct cells_pen p = tui_pen(t, (struct cells_rect){r.x + 2, r.y + 1, r.w - 4, 1}, (int)i, ROLE_KEY, ROLE_BG_DIALOG);
		if (i == ARRAY_LEN(presets)) {
			p.st.fg = ROLE_DIM;
			cells_str(&p, "any other key: as now; ,k asks again");
			break;
		}
		cells_printf(&p, "%zu  ", i + 1);
		p.st.fg = ROLE_TEXT;
		cells_printf(&p, "%s%s", presets[i].text, i ? "" : " (as now)");
	}
	t->scroll_hint.w = 0;
}
