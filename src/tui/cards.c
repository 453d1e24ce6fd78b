/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <string.h>

/* Short lists: what the status line said, which keys there are, bookmarks. */

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

void tui_keys_use(struct tui *t, const char *name)
{
	struct tui_keymap *m;
	struct err *e = tui_keys_load(name, &m);
	if (m) {
		tui_keymap_free(t->keys);
		t->keys = m;
	}
	t->is_dirty = true;
	if (e)
		tui_say_err(t, e);
}

void tui_keys_pick(struct tui *t, unsigned i)
{
	if (i >= ARRAY_LEN(presets))
		return;
	struct err *e = tui_keys_choose(presets[i].name);
	const char *keys;
	tui_keys_use(t, presets[i].name);
	if (e) {
		tui_say_err(t, e);
		return;
	}
	keys = tui_keymap_keys(t->keys, TUI_KEYS);
	tui_say(t, false, "keys like %s, now and from now on (%.*s changes them)", presets[i].text, (int)strcspn(keys, " "), keys);
}

static struct err *bookmarks_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_entry *j;
	size_t cnt;
	uint64_t rev;
	struct err *e = ses_stated(q->ses, &ret->arena, &j, &cnt, &rev);
	if (e)
		return e;
	if (!rows_for(ret, cnt))
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		struct tui_row *r = strcmp(j[i].op, "bookmark") ? NULL : next_row(q, ret);
		if (!r)
			continue;
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)j[i].addr);
		if (!addr)
			return &err_nomem;
		r->va = j[i].addr;
		r->has_va = j[i].has_addr;
		r->col[0] = text_of(addr);
		r->col[1] = j[i].after;
		r->col[2] = text_of(j[i].author ? j[i].author : "");
	}
	return NULL;
}

const struct tui_list_ops tui_bookmarks_list = {
	.title = "Bookmarks",
	.empty = "none yet: ,B sets one",
	.columns = {{.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "bookmark", .role = ROLE_TEXT},
		    {.title = "author", .width = 12, .role = ROLE_DIM}},
	.column_cnt = 3,
	.fetch = bookmarks_fetch,
};
