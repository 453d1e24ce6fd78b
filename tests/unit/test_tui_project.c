/* SPDX-License-Identifier: Apache-2.0 */
/* Several binaries in the workbench, over a made-up project (lib/fake_project.c): keys in, state and cells out. */
#include "lib/tui_screen.h"

#include "session/project.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ses_project *project;

static void open_both(void)
{
	struct ses *s;
	struct ses_project_opts o = {.event_fd = -1};
	assert_null(ses_project_open(&o, &project));
	assert_null(ses_project_get(project, 0, &s));
	assert_true(tui_init(&tui, s, 120, 40));
	tui_project_begin(&tui, project, 0);
	tui_draw(&tui);
}

static void close_both(void)
{
	tui_fini(&tui);
	ses_project_close(project);
}

static void act(enum tui_action a)
{
	tui_act(&tui, a);
	tui_draw(&tui);
}

static void test_switch_and_back(void **state)
{
	open_both();
	uint64_t va = FAKE_TEXT + 5 * FAKE_FUNC_LEN;
	tui_go(&tui, va);
	assert_true(page_has("1/2 fakes"));
	tui_go_binary(&tui, 1, false, 0);
	tui_draw(&tui);
	assert_int_equal(tui.bin, 1);
	assert_true(page_has("2/2 fakes") && page_has("! vanished") && page_has("second is gone"));
	tui_go(&tui, FAKE_TEXT + 7 * FAKE_FUNC_LEN);
	act(TUI_BACK);
	assert_int_equal(tui.bin, 1);
	act(TUI_BACK);
	assert_int_equal(tui.bin, 0);
	assert_int_equal(tui.listing.va, va);
	act(TUI_FORWARD);
	assert_int_equal(tui.bin, 1);
	/* Without a place to go to, where one was. */
	tui_go_binary(&tui, 0, false, 0);
	assert_int_equal(tui.listing.va, va);
	close_both();
}

static void test_follow(void **state)
{
	open_both();
	tui_follow(&tui, FAKE_TEXT);
	assert_int_equal(tui.bin, 1);
	assert_int_equal(tui.listing.va, FAKE_TEXT + FAKE_FUNC_LEN);
	/* What is no import is gone to as ever. */
	tui_follow(&tui, FAKE_TEXT + 2 * FAKE_FUNC_LEN);
	assert_int_equal(tui.bin, 1);
	assert_int_equal(tui.listing.va, FAKE_TEXT + 2 * FAKE_FUNC_LEN);
	close_both();
}

static void test_lists(void **state)
{
	open_both();
	act(TUI_BINARIES);
	assert_true(page_has("Binaries of the project") && page_has("/lib/second") == false && page_has("is gone"));
	act(TUI_CANCEL);
	tui.overlay_cnt = 0;
	act(TUI_FIND_SYMBOL);
	tui_scope(&tui);
	tui_draw(&tui);
	assert_true(page_has("far_one") && page_has("near text"));
	tui.symbols.cur = 1;
	tui_overlay_accept(&tui);
	assert_int_equal(tui.bin, 1);
	assert_int_equal(tui.listing.va, FAKE_TEXT + 3 * FAKE_FUNC_LEN);
	act(TUI_XREFS_TO);
	assert_true(page_has("first!caller") && page_has("dq far") && !page_has("first! "));
	tui.overlay_cnt = 0;
	act(TUI_VIEW_STRINGS);
	tui_scope(&tui);
	tui_draw(&tui);
	assert_true(page_has("Strings of the project") && page_has("near text") && page_has("far text") && !page_has("far_one"));
	tui_scope(&tui);
	tui_draw(&tui);
	assert_false(page_has("near text"));
	close_both();
}

/* Marks know their binary; with one binary nothing of a project is there. */
static void test_marks_and_none(void **state)
{
	open_both();
	tui.marks[0] = (struct tui_mark){.va = FAKE_TEXT + 9 * FAKE_FUNC_LEN, .bin = 1, .is_set = true};
	act(TUI_MARK_GO);
	tui_event(&tui, &(struct term_ev){.type = TERM_EV_KEY, .key = 'a'});
	assert_int_equal(tui.bin, 1);
	assert_int_equal(tui.listing.va, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	close_both();
	open_tui(100, 120, 40);
	act(TUI_BINARIES);
	assert_true(page_has("one binary is open"));
	assert_int_equal(tui.overlay_cnt, 0);
	close_tui();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_switch_and_back), cmocka_unit_test(test_follow), cmocka_unit_test(test_lists),
					   cmocka_unit_test(test_marks_and_none)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
