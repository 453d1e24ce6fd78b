/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workbench without a terminal: keys in, cells out, over a made-up session. Pages are compared as text with
 * tests/golden/tui/NAME.txt and their colours and attributes with NAME.look (UPDATE_GOLDEN=1 writes them).
 */
#include "lib/tui_screen.h"

#include "base/buf.h"
#include "tui/graph_func.h"
#include "tui/opening.h"
#include "tui/tui_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static const char *role_name(uint8_t role)
{
	static const char *const names[ROLE_COUNT] = {
		"default", "text", "dim", "addr", "bytes", "mnemonic", "reg", "number", "name", "string", "comment", "punct", "label", "banner",
		"escape", "title", "key", "warn", "error", "border", "border-focus", "edge-taken", "edge-fall", "edge-jump", "arrow", "bar",
		"bar-dim", "bar-key", "bar-warn", "bar-name", "select", "bg", "bg-line", "bg-word", "bg-dialog", "bg-bar", "bg-select",
	};
	return role < ROLE_COUNT && names[role] ? names[role] : "?";
}

/* How the page looks: a letter for each cell, and what the letters mean. Blanks have only a ground. */
static void page_look(struct buf *out)
{
	static const char letters[] = ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	struct cells_style seen[sizeof(letters)];
	size_t cnt = 0;
	for (int i = 0; i < tui.grid.w * tui.grid.h; i++) {
		const struct cells_cell *c = &tui.grid.cell[i];
		struct cells_style st = c->st;
		size_t at = 0;
		if (c->cp == ' ' && !(st.attr & (CELLS_UNDERLINE | CELLS_REVERSE)))
			st = (struct cells_style){.bg = st.bg};
		while (at < cnt && memcmp(&seen[at], &st, sizeof(st)))
			at++;
		assert_true(at + 1 < sizeof(letters));
		if (at == cnt)
			seen[cnt++] = st;
		buf_add_ch(out, letters[at]);
		if (i % tui.grid.w == tui.grid.w - 1)
			buf_add_ch(out, '\n');
	}
	for (size_t i = 0; i < cnt; i++)
		buf_printf(out, "%c %s on %s%s%s%s%s\n", letters[i], seen[i].fg ? role_name(seen[i].fg) : "nothing", role_name(seen[i].bg),
			   seen[i].attr & CELLS_BOLD ? " bold" : "", seen[i].attr & CELLS_ITALIC ? " italic" : "",
			   seen[i].attr & CELLS_UNDERLINE ? " underline" : "", seen[i].attr & CELLS_REVERSE ? " reverse" : "");
	buf_add_ch(out, '\0');
	assert_false(out->failed);
}

static void compare(const char *name, const char *kind, const struct buf *b)
{
	char path[512];
	char want[65536];
	snprintf(path, sizeof(path), "%s/%s.%s", SCRY_GOLDEN, name, kind);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "w");
		assert_non_null(f);
		fputs(b->data, f);
		fclose(f);
	}
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s is missing", path);
	size_t n = fread(want, 1, sizeof(want) - 1, f);
	want[n] = '\0';
	fclose(f);
	if (strcmp(want, b->data) != 0)
		fail_msg("%s differs; shown now:\n%s", path, b->data);
}

static void golden(const char *name)
{
	struct buf text = {0};
	struct buf look = {0};
	page_text(&text);
	page_look(&look);
	compare(name, "txt", &text);
	compare(name, "look", &look);
	buf_fini(&text);
	buf_fini(&look);
}

static void test_pages_at_three_sizes(void **state)
{
	static const struct { int w, h; const char *name; } sizes[] = {{40, 10, "small"}, {100, 24, "middle"}, {160, 40, "large"}};
	static const struct { const char *keys, *name; } pages[] = {
		{"", "start"}, {"B Shift+Tab", "functions"}, {"\\", "hex"}, {"Tab j", "c"},
		{"\"", "strings"}, {", i", "imports"}, {"M", "map"},
		{"x", "xrefs"}, {"Ctrl+P 'hex", "palette"}, {"/", "search"}, {"P", "problems"},
		{"Space", "graph"}, {"Space z z J", "graph-names"}, {"s j j", "split"}, {"Space s Tab j j", "split-graph"},
		{"n Ctrl+U 'named Enter ; 'said Enter U", "journal"},
	};
	char name[64];
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
		for (size_t p = 0; p < ARRAY_LEN(pages); p++) {
			open_tui(300, sizes[s].w, sizes[s].h);
			keys(pages[p].keys);
			snprintf(name, sizeof(name), "%s-%s", pages[p].name, sizes[s].name);
			golden(name);
			close_tui();
		}
	}
}

static void test_ascii_only(void **state)
{
	static const char *const pages[] = {"", "\"", "Ctrl+P", "H", "x", "\\", "Esc L Space", "z"};
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		open_tui(300, 100, 24);
		tui.grid.is_ascii = true;
		tui_draw(&tui);
		keys(pages[i]);
		for (int c = 0; c < tui.grid.w * tui.grid.h; c++)
			assert_in_range(tui.grid.cell[c].cp, 0x20, 0x7e);
		close_tui();
	}
}

static void test_target_text_is_escaped(void **state)
{
	open_tui(300, 160, 40);
	keys("Shift+Tab \" Ctrl+Home");
	for (int c = 0; c < tui.grid.w * tui.grid.h; c++) {
		uint32_t cp = tui.grid.cell[c].cp;
		assert_true(cp == 0 || (cp >= 0x20 && cp != 0x7f && (cp < 0x80 || cp >= 0xa0)));
		assert_true(cells_width(cp ? cp : ' ') != WIDTH_ESCAPE);
	}
	assert_true(page_has("line\\nbreak\\x1b[2J"));
	assert_true(page_has("\\u{202e}tfel"));
	close_tui();
}

static void test_follow_and_back(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	assert_int_equal(start, FAKE_TEXT + 2 * FAKE_FUNC_LEN);
	keys("j j j j j");
	assert_int_equal(tui.listing.va, start + 20);
	keys("Enter");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Esc");
	assert_int_equal(tui.listing.va, start + 20);
	keys(")");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Backspace g 'main Enter");
	assert_int_equal(tui.listing.va, start);
	keys("g '0x999999999 Enter");
	assert_true(page_has("is not mapped"));
	keys("g 'nonsense Enter");
	assert_true(page_has("no such name"));
	assert_int_equal(tui.listing.va, start);
	close_tui();
}

static void test_typing_bytes(void **state)
{
	open_tui(300, 160, 40);
	keys("g 'main Enter \\");
	assert_true(page_has("u16       16704  be 16449")); /* 0x4140 */
	keys("e '9 '0 'f '3");
	assert_true(page_has("2 bytes"));
	assert_int_equal(fake_config.edit_cnt, 0);
	assert_true(page_has("u16       62352")); /* what is typed is inspected */
	keys("Backspace Backspace Tab 'AB Enter");
	assert_int_equal(fake_config.edit_cnt, 1);
	assert_string_equal(fake_config.edits[0].op, "patch");
	assert_string_equal(fake_config.edits[0].value, "904142");
	assert_int_equal(fake_config.edits[0].va, FAKE_TEXT + 2 * FAKE_FUNC_LEN);
	keys("h h h");
	assert_true(page_has("* the file has 40; 3 bytes from 401040"));
	golden("hex-patched");
	/* A shorter one at the same place keeps the tail of the one that is there. */
	keys("e 'cc Enter");
	assert_string_equal(fake_config.edits[1].value, "cc4142");
	keys("e 'cc Esc");
	assert_int_equal(fake_config.edit_cnt, 2);
	assert_true(page_has("nothing was changed"));
	keys("Del");
	assert_string_equal(fake_config.edits[2].value, "");
	keys("e 'q"); /* no digit */
	assert_true(tui.hex.is_editing && !tui.hex.nibble_cnt && !tui.wants_quit);
	for (int i = 0; i < 300; i++)
		keys("'1 '2");
	assert_true(page_has("as many as can be typed at once"));
	keys("Esc i");
	assert_false(page_has("Inspector"));
	close_tui();
}

/* Who calls a function and what it calls, as names; every one of them leads there, and back is the picture. */
static void test_graph_around(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN, caller = FAKE_TEXT + 20 * FAKE_FUNC_LEN + 20;
	open_tui(300, 120, 40);
	keys("g 'main Enter , c");
	assert_true(tui.main_view == TUI_V_GRAPH && tui.graph.kind == TUI_AROUND_CALLS && tui.graph.va == main_va);
	assert_true(page_has("main") && page_has("sub_401120") && page_has("sub_401200"));
	keys("J"); /* along an edge: to what main calls */
	assert_int_equal(tui.graph.va, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("z");
	assert_true(page_has("Space draws the blocks"));
	keys("Enter");
	assert_true(tui.main_view == TUI_V_LISTING && tui.listing.va == FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Esc");
	assert_true(tui.graph.kind == TUI_AROUND_CALLS && tui.graph.root == main_va && tui.graph.va == FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys(", c"); /* around that one */
	assert_int_equal(tui.graph.root, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Space");
	assert_true(tui.main_view == TUI_V_GRAPH && tui.graph.kind == TUI_AROUND_NONE);
	keys("Esc L g 'main Enter , x");
	assert_true(tui.graph.kind == TUI_AROUND_REFS && tui.graph.root == main_va);
	keys("K");
	assert_true(tui.graph.va >= caller && tui.graph.va < caller + 3 * FAKE_FUNC_LEN);
	keys("L G , c"); /* zeroed data calls nothing */
	assert_true(page_has("calls are of a function"));
	close_tui();
}

/* Listing and graph side by side: who leads takes the other along, and a narrow screen says what is missing. */
static void test_split(void **state)
{
	open_tui(300, 99, 30);
	keys("s");
	assert_true(page_has("a split needs 100 columns, here are 99"));
	assert_true(tui_resize(&tui, 120, 30));
	keys("g 'main Enter Space s Tab");
	assert_true(tui.split_rect.w > 40 && tui.split_rect.x > tui.main_rect.x);
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	assert_int_equal(tui.graph.va, tui.listing.va);
	keys("j j j");
	assert_int_equal(tui.graph.va, tui.listing.va);
	uint64_t va = tui.listing.va;
	keys("Tab");
	assert_int_equal(tui.main_view, TUI_V_GRAPH);
	assert_int_equal(tui.graph.va, va);
	keys("J");
	assert_true(tui.graph.va != va && tui.listing.va == tui.graph.va);
	/* Across functions, by the leader and back. */
	keys("Ctrl+Down");
	assert_int_equal(tui.graph.va, FAKE_TEXT + 3 * FAKE_FUNC_LEN);
	assert_int_equal(tui.listing.va, tui.graph.va);
	keys("Esc Tab");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	assert_true(tui.listing.va == tui.graph.va && tui.listing.va < FAKE_TEXT + 3 * FAKE_FUNC_LEN);
	/* A click makes the other half the leader, the wheel only scrolls it. */
	struct term_ev ev = {.type = TERM_EV_MOUSE, .mouse = TERM_MOUSE_WHEEL_DOWN, .x = tui.split_rect.x + 5, .y = 10};
	va = tui.listing.va;
	tui_event(&tui, &ev);
	tui_draw(&tui);
	assert_true(tui.main_view == TUI_V_LISTING && tui.listing.va == va);
	ev.mouse = TERM_MOUSE_PRESS;
	tui_event(&tui, &ev);
	tui_draw(&tui);
	assert_int_equal(tui.main_view, TUI_V_GRAPH);
	/* Other views have the whole room; then the split is there again. */
	keys("Tab \\");
	assert_int_equal(tui.split_rect.w, 0);
	keys("\\");
	assert_true(tui.split_rect.w > 0);
	keys("Shift+Tab");
	assert_true(tui.focus_functions);
	keys("Tab s");
	assert_int_equal(tui.split_rect.w, 0);
	close_tui();
}

/* What another process commits is said and shown, and the page stays where it is. */
static void test_others_edit(void **state)
{
	open_tui(300, 120, 30);
	keys("j j j j j");
	uint64_t va = tui.listing.va, top = tui.listing.top_va;
	fake_config.edits[fake_config.edit_cnt++] = (struct fake_edit){.op = "rename", .value = "theirs", .va = va};
	tui_watch_event(&tui, 1000000000);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(page_has("me: rename theirs"));
	assert_true(tui.listing.va == va && tui.listing.top_va == top);
	/* The next of a burst waits; nothing new is nothing to say. */
	keys("h");
	tui_watch_event(&tui, 1000000001);
	assert_true(tui.refresh_due_ns > 1000000001 && !tui.refresh_job);
	tui_watch_tick(&tui, tui.refresh_due_ns);
	assert_true(!tui.refresh_due_ns);
	tui_draw(&tui);
	assert_false(page_has("me: rename theirs"));
	close_tui();
}

/* Every line of the listing is reached going down and going up again, in the same order. */
static void test_listing_walks_every_line(void **state)
{
	struct { uint64_t va; uint32_t sub; } seen[400];
	int cnt = 0;
	open_tui(20, 100, 24);
	keys("Ctrl+Home");
	assert_int_equal(tui.listing.va, FAKE_TEXT);
	assert_int_equal(tui.listing.sub, 1);
	for (; cnt < 400; cnt++) {
		seen[cnt].va = tui.listing.va;
		seen[cnt].sub = tui.listing.sub;
		keys("j");
		if (tui.listing.va == seen[cnt].va && tui.listing.sub == seen[cnt].sub)
			break;
	}
	assert_int_equal(cnt + 1, 20 * 10 + 1 + 40 + 1 + 1); /* functions, first section, strings, second section, bss */
	assert_int_equal(tui.listing.va, FAKE_BSS);
	for (int i = cnt; i > 0; i--) {
		keys("k");
		assert_int_equal(tui.listing.va, seen[i - 1].va);
		assert_int_equal(tui.listing.sub, seen[i - 1].sub);
	}
	keys("G");
	assert_int_equal(tui.listing.va, FAKE_BSS);
	close_tui();
}

static void test_cursor_stays_in_sight(void **state)
{
	static const char *const moves[] = {"PgDn", "PgUp", "Ctrl+D", "Ctrl+U", "j", "k", "Ctrl+Down", "Ctrl+Up", "G", "Ctrl+Home",
					    "w", "b", "l", "h", "z", "Enter", "Esc", "$", "0"};
	uint32_t rng = 1;
	open_tui(300, 100, 24);
	for (int i = 0; i < 3000; i++) {
		rng = rng * 1664525u + 1013904223u;
		keys(moves[(rng >> 16) % ARRAY_LEN(moves)]);
		if (rng >> 28 == 0)
			assert_true(tui_resize(&tui, 40 + (int)(rng >> 8 & 127), 10 + (int)(rng & 31)));
		tui_draw(&tui);
		assert_true(tui.cur_y >= 1 && tui.cur_y < tui.grid.h - 2);
		assert_true(tui.cur_x >= 0 && tui.cur_x < tui.grid.w);
	}
	close_tui();
}

static void test_image_arrives_under_the_cursor(void **state)
{
	open_tui(300, 120, 30);
	fake_config.is_preview = true;
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(page_has("identifying 25 %"));
	keys("PgDn PgDn j j Shift+Tab j j j j j");
	uint64_t va = tui.listing.va;
	uint64_t top = tui.listing.top_va;
	const struct tui_row *row = tui_list_row(&tui, &tui.lists[TUI_V_FUNCTIONS]);
	uint64_t func = row->va;
	fake_config.is_preview = false;
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(page_has("ready"));
	assert_int_equal(tui.listing.va, va);
	assert_int_equal(tui.listing.top_va, top);
	assert_int_equal(tui_list_row(&tui, &tui.lists[TUI_V_FUNCTIONS])->va, func);
	close_tui();
}

static void test_filter_is_incremental(void **state)
{
	open_tui(36000, 120, 30);
	keys("Shift+Tab / 'sub_41");
	assert_true(page_has("filter: sub_41"));
	uint64_t some = tui.lists[TUI_V_FUNCTIONS].page.total;
	assert_in_range(some, 1, 35000);
	keys("'9");
	uint64_t fewer = tui.lists[TUI_V_FUNCTIONS].page.total;
	assert_in_range(fewer, 1, some - 1);
	keys("Esc"); /* as it was before */
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].page.total, 36000);
	keys("/ 'zzzz Enter");
	assert_true(page_has("nothing matches"));
	keys("Ctrl+C");
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].page.total, 36000);
	close_tui();
}

static void test_only_what_is_seen_is_fetched(void **state)
{
	open_tui(36000, 120, 30);
	unsigned before = fake_config.call_cnt;
	for (int i = 0; i < 50; i++)
		tui_draw(&tui); /* nothing changed: nothing is asked */
	assert_int_equal(fake_config.call_cnt, before);
	keys("j");
	assert_in_range(fake_config.call_cnt - before, 1, 4);
	assert_true(tui.lists[TUI_V_FUNCTIONS].page.cnt <= 3 * 30 + 64);
	close_tui();
}

static void test_slow_list_is_loaded_behind(void **state)
{
	open_tui(300, 120, 30);
	tui.job_fd = eventfd(0, 0);
	fake_config.is_slow = true;
	tui_list_set_filter(&tui.lists[TUI_V_FUNCTIONS], "sub");
	tui_draw(&tui);
	assert_non_null(tui.lists[TUI_V_FUNCTIONS].job); /* not there yet, and the frame did not wait */
	uint64_t value;
	assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
	tui_news(&tui);
	tui_draw(&tui);
	assert_null(tui.lists[TUI_V_FUNCTIONS].job);
	assert_in_range(tui.lists[TUI_V_FUNCTIONS].page.total, 290, 300);
	/* Enter on a row that is still being loaded opens it when it is there. */
	tui.focus_functions = true;
	tui_list_set_filter(&tui.lists[TUI_V_FUNCTIONS], "sub_401200");
	tui_draw(&tui);
	assert_non_null(tui.lists[TUI_V_FUNCTIONS].job);
	keys("Enter");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	assert_true(tui.focus_functions);
	assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
	tui_news(&tui);
	tui_draw(&tui);
	assert_false(tui.focus_functions);
	assert_int_equal(tui.listing.va, 0x401200);
	close(tui.job_fd);
	close_tui();
}

static void test_search(void **state)
{
	const char *what;
	open_tui(300, 120, 30);
	keys("/ 'thing Enter");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 10 * FAKE_FUNC_LEN);
	keys("F3");
	assert_true(page_has("past the end"));
	keys("N");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 10 * FAKE_FUNC_LEN);
	keys("/ Enter"); /* nothing typed: the next one */
	assert_true(page_has("past the end"));
	keys("/ 'absent Enter");
	assert_true(page_has("not found: absent"));
	keys("Ctrl+F 'all Enter");
	assert_int_equal(tui.main_view, TUI_V_SEARCH);
	assert_true(page_has("found_here") && page_has("Matches 1  of all"));
	keys("Enter");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	assert_int_equal(tui.listing.va, FAKE_TEXT + 10 * FAKE_FUNC_LEN);
	keys("Esc"); /* the matches are still there */
	assert_true(tui.main_view == TUI_V_SEARCH && page_has("found_here"));
	keys("/ 'zzz Enter");
	assert_true(page_has("nothing matches"));
	keys("Ctrl+F 'absent Enter");
	assert_true(page_has("not found: absent") && !page_has("found_here"));
	keys("Ctrl+F 'de F2");
	assert_string_equal(tui.prompt.text, "hex:de");
	keys("F2 'f");
	assert_string_equal(tui.prompt.text, "text:def");
	keys("Esc L");
	assert_int_equal(tui_search_kind("hex: de ad", &what), SES_SEARCH_BYTES);
	assert_string_equal(what, "de ad");
	assert_int_equal(tui_search_kind("rx:a+", &what), SES_SEARCH_REGEX);
	assert_int_equal(tui_search_kind("imm:0x10", &what), SES_SEARCH_IMM);
	assert_int_equal(tui_search_kind("insn:mov*", &what), SES_SEARCH_INSN);
	assert_int_equal(tui_search_kind("plain", &what), SES_SEARCH_TEXT);
	close_tui();
}

static void test_paste_is_text(void **state)
{
	struct term_ev paste = {.type = TERM_EV_PASTE, .text = "q\nq\x1b", .text_len = 4};
	open_tui(300, 120, 30);
	tui_event(&tui, &paste);
	assert_false(tui.wants_quit); /* nowhere to put it */
	keys("g");
	tui_event(&tui, &paste);
	assert_string_equal(tui.prompt.text, "q q ");
	for (int i = 0; i < 300; i++)
		tui_event(&tui, &paste);
	assert_true(tui.prompt.len < TUI_FILTER_MAX);
	tui_draw(&tui);
	close_tui();
}

static void test_escape_and_a_key_at_once(void **state)
{
	open_tui(300, 120, 30);
	keys("x Alt+\"");
	assert_int_equal(tui.overlay_cnt, 0);
	assert_int_equal(tui.main_view, TUI_V_STRINGS);
	keys("g Alt+L");
	assert_int_equal(tui.prompt.kind, TUI_PROMPT_NONE);
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	close_tui();
}

static void test_prompt_editing(void **state)
{
	open_tui(300, 120, 30);
	keys("g 'one Space 'two Ctrl+W");
	assert_string_equal(tui.prompt.text, "one ");
	keys("Ctrl+A 'x Right Right Ctrl+K");
	assert_string_equal(tui.prompt.text, "xon");
	keys("Backspace Left Del Home 'y End 'z");
	assert_string_equal(tui.prompt.text, "yxz");
	keys("Ctrl+U 'main Enter g Up");
	assert_string_equal(tui.prompt.text, "main");
	keys("Down");
	assert_string_equal(tui.prompt.text, "");
	keys("'sub_40 Tab");
	assert_true(strlen(tui.prompt.text) >= 6);
	keys("Ctrl+U Backspace");
	assert_int_equal(tui.prompt.kind, TUI_PROMPT_NONE);
	close_tui();
}

static struct term_ev mouse_at(enum term_mouse what, int x, int y)
{
	return (struct term_ev){.type = TERM_EV_MOUSE, .mouse = what, .x = x, .y = y};
}

static void mouse(enum term_mouse what, int x, int y)
{
	struct term_ev ev = mouse_at(what, x, y);
	tui_event(&tui, &ev);
	tui_draw(&tui);
}

static void test_mouse(void **state)
{
	open_tui(300, 120, 30);
	mouse(TERM_MOUSE_PRESS, 5, 6);
	assert_true(tui.focus_functions);
	mouse(TERM_MOUSE_PRESS, 5, 6); /* double: open */
	assert_false(tui.focus_functions);
	assert_int_equal(tui.listing.va, FAKE_TEXT + 4 * FAKE_FUNC_LEN);
	mouse(TERM_MOUSE_PRESS, 60, 12);
	assert_int_equal(tui.cur_y, 12);
	uint64_t top = tui.listing.top_va;
	mouse(TERM_MOUSE_WHEEL_DOWN, 60, 12);
	assert_true(tui.listing.top_va > top);
	uint64_t cur = tui.lists[TUI_V_FUNCTIONS].top;
	mouse(TERM_MOUSE_WHEEL_DOWN, 5, 12);
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].top, cur + 3);
	mouse(TERM_MOUSE_PRESS, 119, 27); /* the end of the scroll bar */
	assert_int_equal(tui.listing.va, FAKE_BSS);
	mouse(TERM_MOUSE_DRAG, 119, 1);
	assert_int_equal(tui.listing.va, FAKE_TEXT);
	mouse(TERM_MOUSE_RELEASE, 119, 1);
	mouse(TERM_MOUSE_PRESS, tui.functions_rect.w - 1, 27); /* the end of a list's bar */
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].cur, 299);
	mouse(TERM_MOUSE_DRAG, tui.functions_rect.w - 1, tui.lists[TUI_V_FUNCTIONS].body.y);
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].cur, 0);
	mouse(TERM_MOUSE_RELEASE, 1, 1);
	mouse(TERM_MOUSE_DRAG, tui.functions_rect.w - 1, 20);
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].cur, 0);
	keys("Tab x");
	assert_int_equal(tui.overlay_cnt, 1);
	mouse(TERM_MOUSE_PRESS, 0, 29); /* outside closes */
	assert_int_equal(tui.overlay_cnt, 0);
	close_tui();
}

static void test_graph(void **state)
{
	uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 120, 40);
	keys("Space");
	assert_int_equal(tui.main_view, TUI_V_GRAPH);
	assert_true(page_has("main"));
	assert_int_equal(tui.graph.va, main_va);
	keys("j");
	assert_int_equal(tui.graph.va, main_va + 4);
	keys("J"); /* what follows when nothing jumps, then on, then back where we came from */
	assert_int_equal(tui.graph.va, main_va + 8);
	keys("J");
	assert_int_equal(tui.graph.va, main_va + 16);
	keys("K");
	assert_int_equal(tui.graph.va, main_va + 8);
	keys("w");
	assert_int_equal(tui.graph.va, main_va + 16);
	keys("b b");
	assert_int_equal(tui.graph.va, main_va);
	keys("G");
	assert_int_equal(tui.graph.va, main_va + 24);
	keys("0");
	assert_int_equal(tui.graph.va, main_va);
	/* Sticky: Enter on a call and the functions pane lead to graphs; Esc comes back to the place. */
	keys("w w j");
	assert_int_equal(tui.graph.va, main_va + 20);
	int32_t x = tui.graph.x;
	int32_t y = tui.graph.y;
	keys("Enter");
	assert_int_equal(tui.main_view, TUI_V_GRAPH);
	assert_int_equal(tui.graph.va, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Esc");
	assert_int_equal(tui.graph.va, main_va + 20);
	assert_true(tui.graph.x == x && tui.graph.y == y);
	keys("x");
	assert_int_equal(tui.overlay_cnt, 1);
	assert_true(strstr(tui.xrefs_title, "References to") != NULL);
	keys("Esc g '0x7f0000 Enter"); /* no function there: the listing, until there is one again */
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	keys("g 'main Enter");
	assert_int_equal(tui.main_view, TUI_V_GRAPH);
	keys("j Space");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	assert_int_equal(tui.listing.va, main_va + 4);
	keys("g '0x401000 Enter");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	keys("g '0x7f0000 Enter Space");
	assert_true(page_has("here is none"));
	close_tui();
}

/* Whatever is zoomed, published or resized: the block under the cursor stays where it is on the screen. */
static void test_graph_stays(void **state)
{
	open_tui(300, 160, 40);
	fake_config.big_blocks = 300;
	keys("Space w w w w w w w w w w w w w w w w w w w w j");
	uint64_t va = tui.graph.va;
	int at_x = tui.cur_x;
	int at_y = tui.cur_y;
	assert_true(at_x > 0 && at_y > 0 && tui.graph.map.w > 0);
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(tui.graph.va == va && tui.cur_x == at_x && tui.cur_y == at_y);
	keys("z z z");
	assert_int_equal(tui.graph.va, va);
	assert_true(tui.cur_y > 0 && tui.cur_y < 38);
	assert_true(abs(tui.cur_y - at_y) <= 6);
	close_tui();
}

/* Any keys in any order: the cursor's line is in sight unless the picture was moved, and nothing outside of the pane is
 * written. */
static void test_graph_walk(void **state)
{
	static const char *const moves[] = {"j", "k", "h", "l", "J", "K", "w", "b", "0", "G", "z", "m", "f", "$", "Home", "Shift+Tab Tab"};
	static const char *const pans[] = {"Ctrl+D", "Ctrl+U", "PgDn", "PgUp", "Shift+Left", "Ctrl+Right"};
	uint32_t rng = 1;
	open_tui(300, 110, 30);
	fake_config.big_blocks = 120;
	keys("Space");
	for (int i = 0; i < 1500; i++) {
		rng = rng * 1664525u + 1013904223u;
		if (rng >> 29 == 0)
			assert_true(tui_resize(&tui, 40 + (int)(rng >> 8 & 127), 10 + (int)(rng & 31)));
		if (rng >> 29 == 1)
			keys(pans[(rng >> 16) % ARRAY_LEN(pans)]);
		const char *move = moves[(rng >> 16) % ARRAY_LEN(moves)];
		keys(move);
		assert_int_equal(tui.main_view, TUI_V_GRAPH);
		assert_true(page_has("fake"));
		if (strchr("JKwb0Gf", *move) && !move[1])
			assert_true(tui.cur_y >= 1 && tui.cur_y < tui.grid.h - 2 && tui.cur_x >= tui.graph.body.x && tui.cur_x < tui.grid.w);
	}
	close_tui();
}

static void test_graph_mouse(void **state)
{
	open_tui(300, 160, 40);
	fake_config.big_blocks = 300;
	keys("Ctrl+B Space");
	int32_t x = tui.graph.x;
	int32_t y = tui.graph.y;
	uint64_t va = tui.graph.va;
	mouse(TERM_MOUSE_PRESS, 2, 20);
	mouse(TERM_MOUSE_DRAG, 12, 14);
	mouse(TERM_MOUSE_RELEASE, 12, 14);
	assert_true(tui.graph.x == x - 10 && tui.graph.y == y + 6 && tui.graph.va == va);
	mouse(TERM_MOUSE_WHEEL_UP, 12, 14);
	assert_int_equal(tui.graph.y, y + 3);
	keys("f j");
	int row = tui.cur_y;
	int col = tui.cur_x;
	keys("J");
	assert_int_not_equal(tui.graph.va, va);
	keys("0");
	mouse(TERM_MOUSE_PRESS, col, row);
	assert_true(tui.cur_y == row && tui.cur_x == col);
	/* The map: its end shows the last blocks, dragging goes on. */
	struct cells_rect m = tui.graph.map;
	assert_true(m.w > 0);
	mouse(TERM_MOUSE_PRESS, m.x + m.w - 1, m.y + m.h - 1);
	int32_t low = tui.graph.y;
	assert_true(low > 20); /* far down */
	assert_true(tui.graph.map.w > 0);
	mouse(TERM_MOUSE_DRAG, m.x, m.y);
	mouse(TERM_MOUSE_RELEASE, m.x, m.y);
	assert_true(tui.graph.y < low);
	keys("m");
	assert_int_equal(tui.graph.map.w, 0);
	close_tui();
}

/* A picture that cannot be made within a frame is made behind it; one that is not wanted any more does no harm. */
static void test_graph_behind(void **state)
{
	uint64_t value;
	open_tui(300, 120, 30);
	tui.job_fd = eventfd(0, 0);
	fake_config.is_slow = true;
	keys("Space");
	assert_true(page_has("being laid out"));
	keys("j J z z z");
	while (tui.graph.job) {
		assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
		tui_news(&tui);
		tui_draw(&tui);
	}
	assert_non_null(tui.graph.f);
	assert_false(page_has("being laid out"));
	keys("z");
	close_tui();
	close(tui.job_fd);
}

/* Each action of the table is reached from the palette, by every one of its keys, and leaves a screen behind. */
static void test_every_action(void **state)
{
	char text[128];
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		const struct tui_action_info *info = tui_action_info((enum tui_action)a);
		open_tui(300, 120, 30);
		keys("Ctrl+P");
		struct term_ev paste = {.type = TERM_EV_PASTE, .text = info->text, .text_len = strlen(info->text)};
		tui_event(&tui, &paste);
		tui_draw(&tui);
		const struct tui_row *row = tui_list_row(&tui, &tui.palette);
		assert_non_null(row);
		snprintf(text, sizeof(text), "%.*s", (int)row->col[0].len, row->col[0].s);
		assert_string_equal(text, info->text);
		keys("Enter");
		for (const char *k = info->keys; *k;) {
			size_t len = strcspn(k, " ");
			struct tui_stroke s[TUI_STROKES_MAX];
			unsigned cnt = tui_strokes_parse(k, len, s);
			assert_true(cnt > 0);
			for (unsigned where = 1; where & TUI_IN_ANY; where <<= 1) {
				enum tui_action got = tui_keymap_action(tui.keys, s, cnt, (uint8_t)where);
				/* Where it is not this one, it is one made for that place. */
				if (info->where & where && got != (enum tui_action)a)
					assert_true(__builtin_popcount(tui_action_info(got)->where) < __builtin_popcount(info->where));
			}
			k += len + (k[len] == ' ');
		}
		close_tui();
	}
}

static void test_tiny_and_huge(void **state)
{
	static const int sizes[][2] = {{1, 1}, {2, 2}, {5, 3}, {10, 4}, {39, 9}, {40, 10}, {83, 24}, {84, 24}, {400, 120}, {1, 100}, {300, 1}};
	static const char *const pages[] = {"", "Tab", "\\", "\"", "Ctrl+P", "H", "x", "g", "M", "Space", "Space z", "Ctrl+F 'a Enter"};
	for (size_t p = 0; p < ARRAY_LEN(pages); p++) {
		open_tui(300, 120, 30);
		keys(pages[p]);
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			assert_true(tui_resize(&tui, sizes[i][0], sizes[i][1]));
			tui_draw(&tui);
			if (sizes[i][0] >= 40 && sizes[i][1] >= 10)
				assert_true(page_has("fake"));
		}
		close_tui();
	}
}

static void test_opening_behind_the_first_frame(void **state)
{
	static struct tui_opening o;
	struct term_ev ev = {.type = TERM_EV_KEY, .key = 'g'};
	char path[] = "/tmp/scry-opening-XXXXXX";
	int fd = mkstemp(path);
	int event_fd = eventfd(0, 0);
	assert_true(fd >= 0 && ftruncate(fd, 3 << 20) == 0);
	struct tui_keymap *map = tui_keymap_new();
	o.map = map;
	tui_opening_start(&o, path, event_fd);
	for (int w = 1; w < 200; w += 33) {
		assert_true(tui_opening_draw(&o, w, 1 + w / 4, false));
		assert_int_equal(o.grid.w, w);
	}
	assert_true(tui_opening_draw(&o, 120, 30, true));
	for (int c = 0; c < o.grid.w * o.grid.h; c++)
		assert_in_range(o.grid.cell[c].cp, 0x20, 0x7e);
	tui.grid = o.grid;
	assert_true(page_has("3.0 MB  identifying"));
	assert_true(page_has("Functions"));
	assert_true(page_has("Ctrl+P"));
	tui.grid = (struct cells){0};
	/* q leaves, but not when it is part of what was typed. */
	ev.key = 'q';
	assert_true(tui_opening_key(&o, &ev));
	ev.key = 'g';
	assert_false(tui_opening_key(&o, &ev));
	ev.key = 'q';
	assert_false(tui_opening_key(&o, &ev));
	assert_int_equal(o.key_cnt, 2);
	ev.key = 'c';
	ev.mods = TERM_CTRL;
	assert_true(tui_opening_key(&o, &ev));
	assert_true(tui_opening_end(&o, true));
	assert_non_null(o.ses);
	ses_close(o.ses);
	tui_opening_fini(&o);
	tui_keymap_free(map);
	close(event_fd);
	close(fd);
	unlink(path);
}

static void test_symbol_palette(void **state)
{
	open_tui(300, 120, 30);
	keys("Ctrl+N");
	assert_true(page_has("Functions, symbols and strings"));
	keys("'main");
	assert_true(page_has("function"));
	keys("Enter");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 2 * FAKE_FUNC_LEN);
	/* Its letters in order are enough. */
	keys("Ctrl+N 's401200");
	const struct tui_row *row = tui_list_row(&tui, &tui.symbols);
	assert_non_null(row);
	assert_int_equal(row->va, 0x401200);
	keys("Esc");
	assert_int_equal(tui.overlay_cnt, 0);
	close_tui();
}

static void test_typing(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	keys("y");
	assert_int_equal(tui.prompt.kind, TUI_PROMPT_PROTOTYPE);
	assert_string_equal(tui.prompt.text, "int f(void)"); /* what it is now */
	keys("Enter");
	assert_int_equal(fake_config.edit_cnt, 0);
	keys("y Ctrl+U 'void Space 'f(long) Enter");
	assert_string_equal(fake_config.edits[0].op, "set_prototype");
	assert_string_equal(fake_config.edits[0].value, "void f(long)");
	assert_int_equal(fake_config.edits[0].va, start);
	keys("j y");
	assert_int_equal(tui.prompt.kind, TUI_PROMPT_RETYPE);
	assert_string_equal(tui.prompt.text, "");
	keys("'int Enter");
	assert_string_equal(fake_config.edits[1].op, "retype");
	keys("y");
	assert_string_equal(tui.prompt.text, "int");
	keys("Esc j o");
	assert_string_equal(fake_config.edits[2].op, "format");
	assert_string_equal(fake_config.edits[2].sub, "1");
	assert_string_equal(fake_config.edits[2].value, "hex");
	keys("o");
	assert_string_equal(fake_config.edits[3].value, "char");
	keys("o");
	assert_string_equal(fake_config.edits[4].value, ""); /* the default */
	keys("O");
	assert_string_equal(fake_config.edits[5].value, "char");
	close_tui();
}

static void test_bookmarks(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	keys(", B 'here Enter g '0x401100 Enter , B 'there Enter , b");
	assert_true(page_has("here") && page_has("there") && page_has("main"));
	golden("bookmarks");
	keys("Enter");
	assert_int_equal(tui.listing.va, start);
	keys(", b j d");
	assert_string_equal(fake_config.edits[2].op, "bookmark");
	assert_string_equal(fake_config.edits[2].value, "");
	assert_int_equal(fake_config.edits[2].va, 0x401100);
	close_tui();
}

static void news(uint64_t at)
{
	tui_watch_event(&tui, at * 1000000000);
	tui_draw(&tui);
}

/* The number of the proposal under the cursor. */
static uint64_t proposal(void)
{
	const struct tui_row *row = tui_list_row(&tui, &tui.lists[TUI_V_PROPOSALS]);
	return row ? row->id : 0;
}

static void test_proposals(void **state)
{
	open_tui(300, 140, 34);
	news(1);
	assert_false(page_has("proposed"));
	keys(", a");
	assert_true(page_has("no agent has proposed anything"));
	keys("a r v V"); /* there is nothing to decide */
	assert_int_equal(fake_config.edit_cnt, 0);
	/* They come while one looks. */
	fake_config.proposal_cnt = 3;
	news(2);
	assert_true(page_has("robot proposes 3 edits (,a shows what waits)") && page_has("! 3 proposed"));
	/* Fewer are no news. */
	fake_config.edits[fake_config.edit_cnt++] = (struct fake_edit){.op = "refuse", .sub = "9"};
	keys("Home");
	news(3);
	assert_false(page_has("robot proposes"));
	fake_config.edit_cnt = 0;
	assert_true(page_has("it parses") && page_has("old -> parse") && page_has("struct s { int a; };"));
	golden("proposals");
	keys("j");
	assert_true(page_has(" + struct s {") && page_has(" +     int a;") && page_has(" + };"));
	keys("j");
	assert_true(page_has(" - old") && page_has(" ! stale: what it changes was changed since") && page_has("parse: *"));
	keys("a");
	assert_int_equal(fake_config.edit_cnt, 0);
	assert_true(page_has("proposal 3 was not accepted: stale"));
	keys("/ 'struct Enter");
	assert_int_equal(tui.lists[TUI_V_PROPOSALS].page.total, 1);
	keys("r");
	assert_string_equal(fake_config.edits[0].op, "refuse");
	assert_string_equal(fake_config.edits[0].sub, "2");
	assert_true(page_has("proposal 2 refused") && page_has("! 2 proposed"));
	keys("/ Ctrl+U Enter a");
	assert_string_equal(fake_config.edits[1].op, "accept");
	assert_string_equal(fake_config.edits[1].sub, "1");
	assert_true(page_has("proposal 1 accepted") && !page_has("it parses"));
	keys("Enter");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 2 * FAKE_FUNC_LEN);
	assert_true(page_has("! 1 proposed (,a)"));
	close_tui();
}

/* Several at once; and the cursor and the marks stay with their proposals whatever others decide. */
static void test_proposals_marked(void **state)
{
	open_tui(300, 140, 34);
	fake_config.proposal_cnt = 12;
	keys(", a j v v k k k");
	assert_true(page_has("12, 2 marked") && page_has("+    2") && page_has("+    3"));
	keys("j j j j j");
	assert_int_equal(proposal(), 6);
	fake_config.edits[fake_config.edit_cnt++] = (struct fake_edit){.op = "refuse", .sub = "1"};
	news(1);
	assert_int_equal(proposal(), 6);
	keys("a");
	assert_true(page_has("1 of 2 proposals accepted, the others not: stale"));
	assert_string_equal(fake_config.edits[1].sub, "2");
	assert_int_equal(fake_config.edit_cnt, 2);
	assert_false(page_has("marked"));
	/* All that the filter leaves; of several that they are put away is asked. */
	keys("/ 'declare Enter V");
	assert_true(page_has("3 marked"));
	keys("V");
	assert_false(page_has("marked"));
	keys("V r");
	assert_true(page_has("Put the 3 marked proposals away for good?"));
	keys("n");
	assert_int_equal(fake_config.edit_cnt, 2);
	keys("r y");
	assert_int_equal(fake_config.edit_cnt, 5);
	assert_true(page_has("3 proposals refused") && page_has("! 7 proposed"));
	close_tui();
	/* Small screens have the list alone. */
	open_tui(300, 40, 10);
	fake_config.proposal_cnt = 3;
	keys(", a");
	golden("proposals-small");
	close_tui();
}

/* The dialog begins at the reference that is nearest to where one is. */
static void test_xrefs_begin_nearest(void **state)
{
	open_tui(300, 120, 30);
	keys("x");
	assert_int_equal(tui.xrefs.cur, 0);
	keys("Esc g '0x4012d4 Enter x");
	assert_int_equal(tui.xrefs.cur, 2);
	keys("Esc");
	close_tui();
}

static void test_types(void **state)
{
	open_tui(300, 120, 30);
	keys("Ctrl+T");
	assert_true(page_has("no types"));
	keys("Ctrl+N 'a Down Tab 'bad Ctrl+S");
	assert_int_equal(fake_config.edit_cnt, 0);
	assert_true(page_has("! declare: 2:3: ';' expected before 'bad'") && page_has("!   2"));
	assert_int_equal(tui.overlay_cnt, 1); /* the text stays */
	golden("editor");
	keys("Ctrl+A Ctrl+K Tab 'int Space 'x; Ctrl+S");
	assert_int_equal(tui.overlay_cnt, 0);
	assert_int_equal(fake_config.edit_cnt, 1);
	assert_string_equal(fake_config.edits[0].op, "declare");
	assert_string_equal(fake_config.edits[0].value, "struct aname {\n\tint x;\n};\n");
	assert_true(page_has("struct aname"));
	golden("types");
	keys("S S S");
	assert_true(page_has("by size"));
	keys("S S");
	/* What is opened takes the place of what it was. */
	keys("Enter End Enter 'y Enter");
	assert_true(page_has("struct aname {") && tui.editor.is_changed);
	keys("Esc");
	assert_int_equal(tui.overlay_cnt, 1);
	assert_true(page_has("Esc again drops it"));
	keys("Left Ctrl+S");
	assert_string_equal(fake_config.edits[1].sub, "struct aname");
	keys("Enter 'z Esc Esc");
	assert_int_equal(fake_config.edit_cnt, 2);
	keys("d");
	assert_true(page_has("Take the declaration of struct aname"));
	keys("n");
	assert_int_equal(fake_config.edit_cnt, 2);
	keys("Del y");
	assert_string_equal(fake_config.edits[2].op, "undeclare");
	keys("Ctrl+Y");
	assert_true(page_has("copied"));
	close_tui();
}

/* Any text, any size of screen: the cursor is in the text and on the screen. */
static void test_editor_takes_anything(void **state)
{
	unsigned rng = 3;
	static const char *const pieces[] = {"a", "\t", "\n", "\xe6\xbc\xa2", "struct x {", "\r\n", "\x1b[2J", "\xff"};
	open_tui(300, 100, 30);
	assert_true(tui_editor_open(&tui, "t", "", ""));
	for (int i = 0; i < 3000; i++) {
		static const uint32_t special[] = {TERM_KEY_UP, TERM_KEY_DOWN, TERM_KEY_LEFT, TERM_KEY_RIGHT, TERM_KEY_HOME, TERM_KEY_END,
						   TERM_KEY_PGUP, TERM_KEY_PGDN, TERM_KEY_BACKSPACE, TERM_KEY_DELETE, TERM_KEY_ENTER, TERM_KEY_TAB};
		rng = rng * 1103515245u + 12345u;
		const char *piece = pieces[rng >> 16 & 7];
		struct term_ev ev = {.type = TERM_EV_PASTE, .text = piece, .text_len = strlen(piece)};
		if (rng >> 20 & 1)
			ev = (struct term_ev){.type = TERM_EV_KEY, .key = special[(rng >> 8) % ARRAY_LEN(special)]};
		tui_event(&tui, &ev);
		if (i % 50 == 0)
			assert_true(tui_resize(&tui, 10 + (int)(rng >> 12) % 150, 4 + (int)(rng >> 4) % 60));
		tui_draw(&tui);
		assert_true(tui.editor.pos <= tui.editor.len && tui.editor.text[tui.editor.len] == '\0');
		assert_true(!memchr(tui.editor.text, '\x1b', tui.editor.len));
	}
	close_tui();
}

int main(void)
{
	setenv("TZ", "UTC", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_at_three_sizes),
		cmocka_unit_test(test_ascii_only),
		cmocka_unit_test(test_bookmarks),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_proposals),
		cmocka_unit_test(test_proposals_marked),
		cmocka_unit_test(test_xrefs_begin_nearest),
		cmocka_unit_test(test_editor_takes_anything),
		cmocka_unit_test(test_target_text_is_escaped),
		cmocka_unit_test(test_follow_and_back),
		cmocka_unit_test(test_bookmarks),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_editor_takes_anything),
		cmocka_unit_test(test_others_edit),
		cmocka_unit_test(test_graph_around),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_typing_bytes),
		cmocka_unit_test(test_listing_walks_every_line),
		cmocka_unit_test(test_cursor_stays_in_sight),
		cmocka_unit_test(test_image_arrives_under_the_cursor),
		cmocka_unit_test(test_filter_is_incremental),
		cmocka_unit_test(test_only_what_is_seen_is_fetched),
		cmocka_unit_test(test_slow_list_is_loaded_behind),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_paste_is_text),
		cmocka_unit_test(test_escape_and_a_key_at_once),
		cmocka_unit_test(test_prompt_editing),
		cmocka_unit_test(test_mouse),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_graph_stays),
		cmocka_unit_test(test_graph_walk),
		cmocka_unit_test(test_graph_mouse),
		cmocka_unit_test(test_graph_behind),
		cmocka_unit_test(test_every_action),
		cmocka_unit_test(test_tiny_and_huge),
		cmocka_unit_test(test_opening_behind_the_first_frame),
		cmocka_unit_test(test_symbol_palette),
		cmocka_unit_test(test_typing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
