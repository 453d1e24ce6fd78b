/* SPDX-License-Identifier: Apache-2.0 */
/* The C view over a made-up session: where it shows what, what keys act on, and that nothing waits for it. */
#include "lib/tui_screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* C of the function under the cursor, where the cursor is, and back at the instruction of the line. */
static void test_c(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 120, 30);
	keys("g 'main Enter j j Tab");
	assert_int_equal(tui.main_view, TUI_V_C);
	assert_int_equal(tui.c.func, main_va);
	assert_int_equal(tui.c.va, main_va + 8);
	assert_true(page_has("void fn_401040(struct scry_x86_64 *m)") && page_has("C  L4, verified: equal"));
	keys("j j"); /* a brace, a label and the next block */
	assert_int_equal(tui.c.va, main_va + 12);
	keys("Tab");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	assert_int_equal(tui.listing.va, main_va + 12);
	/* Every instruction leads to its own statement and back. */
	for (unsigned i = 0; i < 8; i++) {
		char list[64];
		snprintf(list, sizeof(list), "g '%llx Enter Tab", (unsigned long long)main_va + 4 * i);
		keys(list);
		assert_int_equal(tui.c.va, main_va + 4 * i);
		if (i == 5) /* not where the machine's state is saved before it */
			assert_true(strncmp(tui.c.shown->c.text.s + tui.c.shown->c.lines[tui.c.line].off, "\tscry_call", 10) == 0);
		keys("F5");
		assert_true(tui.main_view == TUI_V_LISTING && tui.listing.va == main_va + 4 * i);
	}
	/* Calls lead to C, data to the listing, and the way back is the same line. */
	keys("g '401054 Enter Tab");
	uint32_t line = tui.c.line, top = tui.c.top;
	keys("w");
	int col = tui.c.col;
	keys("Enter");
	assert_int_equal(tui.main_view, TUI_V_C);
	assert_int_equal(tui.c.func, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Esc");
	assert_true(tui.c.func == main_va && tui.c.line == line && tui.c.top == top && tui.c.col == col);
	keys(")");
	assert_int_equal(tui.c.func, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Esc g '7f0000 Enter");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	keys("Tab");
	assert_true(page_has("C is of a function, and here is none"));
	keys("Esc");
	assert_true(tui.main_view == TUI_V_C && tui.c.line == line);
	/* A label is a place in the text. */
	keys("g '40105c Enter");
	assert_int_equal(tui.main_view, TUI_V_C);
	keys("j Enter");
	assert_true(page_has(">  9 b1:; /* 0x401048 */"));
	keys("Esc");
	assert_int_equal(tui.c.va, main_va + 28);
	/* Counted, from the ends, by function. */
	keys("3 G");
	assert_int_equal(tui.c.line, 2);
	keys("G");
	assert_int_equal(tui.c.line, tui.c.shown->c.line_cnt - 1);
	keys("Ctrl+Home Ctrl+Down");
	assert_true(tui.main_view == TUI_V_C && tui.c.func == FAKE_TEXT + 3 * FAKE_FUNC_LEN);
	keys("Ctrl+Up");
	assert_int_equal(tui.c.func, main_va);
	close_tui();
}

static void test_c_words(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 120, 30);
	keys("g 'main Enter Tab Ctrl+Home / 'scry_call Enter");
	assert_true(tui.main_view == TUI_V_C && tui.c.va == main_va + 20);
	assert_int_equal(tui_c_word(&tui).len, 9);
	keys("F3");
	assert_true(page_has("past the end"));
	keys("/ 'absent Enter");
	assert_true(page_has("not in this function: absent"));
	/* What is typed with a kind is looked for in the whole file. */
	keys("/ 'text:thing Enter");
	assert_int_equal(tui.c.func, FAKE_TEXT + 10 * FAKE_FUNC_LEN);
	keys("Esc");
	/* The same word, whole: not the declaration of another. */
	keys("/ 'goto Enter w *");
	assert_true(page_has("b1:;"));
	assert_int_equal(tui.c.line, 8);
	keys("g '401054 Enter x");
	assert_true(page_has("References to main")); /* on nothing that leads elsewhere: of the function */
	keys("Esc / 'image Enter w x");
	assert_true(page_has("References to sub_401120"));
	keys("Esc n");
	assert_true(page_has("name: sub_401120"));
	keys("Esc 0 n");
	assert_true(page_has("name: main"));
	keys("Ctrl+U 'mine Enter");
	assert_true(fake_config.edits[0].va == main_va && !strcmp(fake_config.edits[0].op, "rename"));
	/* What is said about the function is in its text when it is there; the cursor stays at its statement and row. */
	keys("g '401054 Enter");
	uint32_t row = tui.c.line - tui.c.top, line = tui.c.line;
	fake_config.edits[fake_config.edit_cnt++] = (struct fake_edit){.op = "comment", .sub = "line", .value = "said", .va = main_va};
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_memory_equal(tui.c.shown->c.text.s, "/* said */", 10);
	assert_true(tui.c.va == main_va + 20 && tui.c.line == line + 1 && tui.c.line - tui.c.top == row);
	keys("; 'here Enter");
	assert_true(fake_config.edits[2].va == main_va + 20 && !strcmp(fake_config.edits[2].op, "comment"));
	/* The number of a comparison is written otherwise; a line without one says so. */
	keys("/ '0x41 Enter o");
	assert_true(fake_config.edits[3].va == main_va + 28 && !strcmp(fake_config.edits[3].op, "format"));
	assert_string_equal(fake_config.edits[3].sub, "1");
	keys("Ctrl+Home o");
	assert_true(page_has("there is no number in this line"));
	/* Copying: a line from where its code begins, lines as they are, all of it. */
	struct buf b = {0};
	keys("g '401040 Enter");
	assert_true(tui_c_copy(&tui, false, &b));
	assert_true(b.len == 28 && !memcmp(b.data, "rcx = (uint64_t)(rcx + rax);", 28));
	b.len = 0;
	keys("v j");
	assert_true(tui_c_copy(&tui, false, &b));
	assert_true(b.len > 30 && !memcmp(b.data, "\trcx", 4) && b.data[b.len - 1] == '\n');
	b.len = 0;
	assert_true(tui_c_copy(&tui, true, &b) && b.len == tui.c.shown->c.text.len);
	buf_fini(&b);
	keys("Y");
	assert_true(page_has("Copy the C of the function"));
	close_tui();
}

/* The first frame does not wait; what the cursor has left is not made, what is old is shown until the new is there. */
static void test_c_is_made_behind(void **state)
{
	uint64_t value;
	open_tui(300, 120, 30);
	tui.job_fd = eventfd(0, 0);
	keys("g 'main Enter Tab");
	assert_true(page_has("C of main is being made"));
	struct tui_job *first = tui.c.job;
	assert_non_null(first);
	keys("Ctrl+Down");
	assert_true(tui.c.job != first && tui.c.job_func == FAKE_TEXT + 3 * FAKE_FUNC_LEN);
	assert_true(atomic_load(&first->is_cancelled));
	while (tui.c.job) {
		assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
		tui_news(&tui);
	}
	tui_draw(&tui);
	assert_true(page_has("void fn_401060"));
	/* Edited meanwhile: the text stays in sight. */
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(tui.c.job && page_has("void fn_401060") && page_has("being made anew"));
	while (tui.c.job) {
		assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
		tui_news(&tui);
	}
	/* What was made is there at once. */
	unsigned made = fake_config.c_cnt;
	keys("Tab Tab j j");
	assert_int_equal(fake_config.c_cnt, made);
	assert_null(tui.c.job);
	/* More functions than are kept. */
	for (int i = 0; i < 2 * TUI_C_KEPT; i++) {
		keys("Ctrl+Down");
		while (tui.c.job) {
			assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
			tui_news(&tui);
			tui_draw(&tui);
		}
		assert_non_null(tui.c.shown);
	}
	close(tui.job_fd);
	tui.job_fd = -1;
	close_tui();
}

static void test_c_of_large_and_missing(void **state)
{
	open_tui(36000, 100, 24);
	fake_config.big_blocks = 10000;
	keys("g 'main Enter Tab G");
	assert_true(page_has("of 29,") || tui.c.shown->c.line_cnt > 20000);
	assert_int_equal(tui.c.line, tui.c.shown->c.line_cnt - 1);
	keys("PgUp Ctrl+U k k Ctrl+Home PgDn");
	assert_true(tui.cur_y >= 1 && tui.cur_y < tui.grid.h - 2);
	close_tui();
	open_tui(300, 100, 24);
	fake_config.has_no_c = true;
	keys("g 'main Enter Tab");
	assert_true(page_has("C of fake needs a lifter"));
	keys("j k w Enter x Esc G Tab");
	assert_int_equal(tui.main_view, TUI_V_LISTING);
	keys("s"); /* there is no C beside it */
	assert_int_equal(tui.split_with, TUI_V_GRAPH);
	close_tui();
	open_tui(300, 100, 24);
	fake_config.has_empty_c = true;
	keys("g 'main Enter Tab");
	assert_true(page_has("main has no code, so there is no C of it"));
	keys("j G - + w / 'rx:x Enter n Esc v Enter");
	assert_int_equal(tui.main_view, TUI_V_C);
	close_tui();
}

/* Listing and C side by side: who leads takes the other along, the lines that belong together are marked. */
static void test_split_with_c(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 140, 30);
	keys("g 'main Enter s j j");
	assert_true(tui.split_rect.w > 40 && tui.main_view == TUI_V_LISTING);
	assert_true(tui.c.va == main_va + 8 && tui.listing.va == main_va + 8);
	keys("g '401054 Enter");
	unsigned marks = 0;
	for (int y = tui.split_rect.y; y < tui.split_rect.y + tui.split_rect.h; y++)
		marks += tui.grid.cell[y * tui.grid.w + tui.split_rect.x].cp == cells_glyph(&tui.grid, GLYPH_V);
	assert_int_equal(marks, 2); /* the state saved and loaded around the call, which the cursor is on */
	keys("Tab");
	assert_int_equal(tui.main_view, TUI_V_C);
	keys("k k k k");
	assert_true(tui.c.va == tui.listing.va && tui.c.va != main_va + 20);
	keys("Enter"); /* nothing */
	keys("Ctrl+Down");
	assert_true(tui.c.func == FAKE_TEXT + 3 * FAKE_FUNC_LEN && tui.listing.va == tui.c.va);
	keys("Esc Tab");
	assert_true(tui.main_view == TUI_V_LISTING && tui.listing.va == tui.c.va);
	/* Space asks for the graph beside it, F5 for the C again; the wheel scrolls the side it is over. */
	keys("Space");
	assert_true(tui.main_view == TUI_V_GRAPH && tui.split_rect.w > 0);
	keys("Tab");
	assert_true(tui.main_view == TUI_V_LISTING && tui.split_with == TUI_V_GRAPH);
	keys("s s");
	assert_int_equal(tui.split_with, TUI_V_C);
	uint64_t va = tui.listing.va;
	struct term_ev ev = {.type = TERM_EV_MOUSE, .mouse = TERM_MOUSE_PRESS, .x = tui.split_rect.x + 9, .y = 4};
	tui_event(&tui, &ev);
	tui_draw(&tui);
	assert_true(tui.main_view == TUI_V_C && tui.c.line == tui.c.top + 3);
	ev.mouse = TERM_MOUSE_WHEEL_DOWN;
	tui_event(&tui, &ev);
	tui_draw(&tui);
	assert_true(tui.listing.va == tui.c.va && va);
	close_tui();
}

static void test_c_cursor_stays_in_sight(void **state)
{
	static const char *const moves[] = {"PgDn", "PgUp", "Ctrl+D", "Ctrl+U", "j", "k", "Ctrl+Down", "Ctrl+Up", "G", "Ctrl+Home", "Tab",
					    "w", "b", "l", "h", "z", "Enter", "Esc", "$", "0", "s", "*", "v", "Space", "-", "+"};
	uint32_t rng = 7;
	open_tui(300, 100, 24);
	fake_config.big_blocks = 400;
	keys("Tab");
	for (int i = 0; i < 3000; i++) {
		rng = rng * 1664525u + 1013904223u;
		keys(moves[(rng >> 16) % ARRAY_LEN(moves)]);
		if (rng >> 28 == 0)
			assert_true(tui_resize(&tui, 40 + (int)(rng >> 8 & 127), 10 + (int)(rng & 31)));
		if (rng >> 27 == 1) {
			fake_publish(ses);
			tui_news(&tui);
		}
		tui_draw(&tui);
		if (tui.main_view != TUI_V_C)
			continue;
		assert_true(tui.cur_y >= 1 && tui.cur_y < tui.grid.h - 2);
		assert_true(tui.cur_x >= 0 && tui.cur_x < tui.grid.w);
	}
	close_tui();
}

/* The row of the page that has the text, as it is drawn; -1: none. */
static int row_with(const char *what)
{
	struct buf b = {0};
	int row = 0;
	page_text(&b);
	const char *at = strstr(b.data, what);
	for (const char *s = b.data; at && s < at; s++)
		row += *s == '\n';
	buf_fini(&b);
	return at ? row : -1;
}

/* Blocks fold into their first line; what is folded stays so, and opens where one goes into it. */
static void test_c_folds(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 120, 40);
	keys("-"); /* no key of the listing */
	keys("g 'main Enter Tab Ctrl+Home -");
	assert_true(page_has("no block begins or ends here"));
	uint32_t cnt = tui.c.shown->c.line_cnt;
	keys("g '401048 Enter j -");
	assert_true(page_has(">  9 b1:; /* 0x401048 */ \xe2\x80\xa6 4 lines"));
	assert_int_equal(tui_c_row_cnt(&tui), cnt - 4);
	assert_int_equal(row_with(" 14 b2:;"), row_with("  9 b1:;") + 1);
	assert_int_equal(tui.c.va, main_va + 8);
	keys("j");
	assert_int_equal(tui.c.line, 13);
	keys("k");
	assert_int_equal(tui.c.line, 8);
	keys("w w"); /* from word to word past it */
	assert_int_equal(tui.c.line, 13);
	/* Said or named, it stays folded at its row, and the line after it stays where it was. */
	keys("b");
	int row = row_with("b2:;");
	keys("g '401050 Enter ; 'said Enter");
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(page_has("b1:; /* 0x401048 */ \xe2\x80\xa6 4 lines") && row_with("b2:;") == row);
	/* A goto into it, a match in it, its address open it; the wheel, a click and numbers of rows do not. */
	keys("g '40105c Enter j Enter");
	assert_true(page_has(">  9 b1:; /* 0x401048 */ \xe2\x80\xa6 4 lines")); /* its label is in sight */
	keys("g '40104c Enter");
	assert_false(page_has("4 lines"));
	assert_int_equal(tui.c.va, main_va + 12);
	keys("-");
	assert_true(page_has("4 lines"));
	keys("Ctrl+Home / 'rcx Enter F3 F3");
	assert_int_equal(tui.c.va, main_va + 8);
	assert_false(page_has("4 lines"));
	keys("- Enter");
	assert_false(page_has("4 lines")); /* Enter opens */
	/* A copy of a folded line among others has all of it. */
	struct buf b = {0};
	keys("- v");
	assert_true(tui_c_copy(&tui, false, &b));
	assert_true(b.len < 40);
	buf_fini(&b);
	/* All, and none. */
	keys("+");
	assert_int_equal(tui_c_row_cnt(&tui), cnt);
	keys("+");
	assert_int_equal(tui_c_row_cnt(&tui), 8); /* the head, four labels, the end */
	keys("G");
	assert_int_equal(tui.c.line, cnt - 1);
	keys("-"); /* the body where it ends */
	assert_int_equal(tui_c_row_cnt(&tui), 2);
	assert_int_equal(tui.c.line, 1);
	keys("Ctrl+Down");
	assert_int_equal(tui_c_row_cnt(&tui), tui.c.shown->c.line_cnt); /* another function is as it was */
	keys("Ctrl+Up");
	assert_int_equal(tui.c.func, main_va);
	close_tui();
	/* In a split the half that is led shows what is folded as folded. */
	open_tui(300, 140, 40);
	keys("g 'main Enter Tab g '401048 Enter - Tab s g '40104c Enter");
	assert_true(tui.main_view == TUI_V_LISTING && tui.split_rect.w && page_has("4 lines"));
	keys("Tab");
	assert_true(tui.main_view == TUI_V_C && tui.c.line == 8 && page_has("4 lines"));
	close_tui();
	/* Ten thousand blocks. */
	open_tui(36000, 100, 24);
	fake_config.big_blocks = 20000;
	keys("g 'main Enter Tab + G k PgUp PgUp Ctrl+Home PgDn");
	assert_int_equal(tui_c_row_cnt(&tui), 10000 + 4);
	assert_true(tui.cur_y >= 1 && tui.cur_y < tui.grid.h - 2);
	close_tui();
}

static void test_c_regex(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 120, 30);
	keys("g 'main Enter Tab Ctrl+Home / 'rx:^\\tscry_[a-z]+\\( Enter");
	assert_true(tui.main_view == TUI_V_C && tui.c.va == main_va + 20 && tui.c.off == 0);
	assert_true(page_has("found: rx:"));
	keys("/ 'regex:r[ac]x Space '= Enter");
	uint32_t line = tui.c.line;
	keys("F3");
	assert_true(tui.c.line != line);
	keys("N");
	assert_int_equal(tui.c.line, line);
	keys("? 'rx:b[0-9]+: Enter");
	assert_true(tui.c.line < line && page_has("b2:;"));
	keys("/ 'rx:[ Enter");
	assert_true(tui.is_message_bad);
	keys("/ 'rx:nowhere.*here Enter");
	assert_true(page_has("not in this function: rx:nowhere"));
	/* A pattern of C is looked for in that of all functions, from wherever, and what is found is a list. */
	keys("/ 'c:b3: Enter");
	tui_jobs_reap(&tui, true);
	assert_true(tui.main_view == TUI_V_SEARCH && !tui.is_message_bad);
	tui_draw(&tui);
	assert_true(page_has("of c:b3:"));
	close_tui();
}

/* A label is named like any place: at its block, and the text has the name at once where it is printed. */
static void test_c_label_names(void **state)
{
	const uint64_t main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
	open_tui(300, 120, 40);
	keys("g 'main Enter Tab Ctrl+Home / 'goto Enter w n");
	assert_true(page_has("name: "));
	keys("Ctrl+U 'again Enter");
	assert_true(fake_config.edits[0].va == main_va + 8 && !strcmp(fake_config.edits[0].op, "rename"));
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_true(page_has("again_401048:; /* 0x401048 */") && page_has("goto again_401048;"));
	keys("Enter"); /* it still leads there */
	assert_true(page_has(">  9 again_401048:;"));
	keys("n");
	assert_int_equal(tui.edit_va, main_va + 8);
	close_tui();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_c_words),
		cmocka_unit_test(test_c_is_made_behind),
		cmocka_unit_test(test_c_of_large_and_missing),
		cmocka_unit_test(test_split_with_c),
		cmocka_unit_test(test_c_folds),
		cmocka_unit_test(test_c_regex),
		cmocka_unit_test(test_c_label_names),
		cmocka_unit_test(test_c_cursor_stays_in_sight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
