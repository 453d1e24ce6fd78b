/* SPDX-License-Identifier: Apache-2.0 */
/* The workbench's verbs, key by key: copying, marks, edits, cards. */
#include "lib/tui_screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* The help card has every action with its keys, at any size, when it is scrolled through. */
static void test_help_has_everything(void **state)
{
	static const int sizes[][2] = {{40, 10}, {100, 24}, {160, 40}};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct buf seen = {0};
		open_tui(300, sizes[i][0], sizes[i][1]);
		keys("H");
		for (int page = 0; page < 100; page++) {
			page_text(&seen);
			seen.len--;
			keys("PgDn");
		}
		buf_add_ch(&seen, '\0');
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
			char keys_of[32];
			const char *k = tui_keymap_keys(tui.keys, (enum tui_action)a);
			snprintf(keys_of, sizeof(keys_of), "  %.*s", 20, *k ? k : "(palette)");
			assert_non_null(strstr(seen.data, keys_of));
			snprintf(keys_of, sizeof(keys_of), "%.12s", tui_action_info((enum tui_action)a)->text);
			assert_non_null(strstr(seen.data, keys_of));
		}
		buf_fini(&seen);
		close_tui();
	}
}

/* F6 probes what is under the cursor; counts stand beside it, in listing, C and list; F6 again takes it away. */
static void test_probes(void **state)
{
	open_tui(300, 120, 30);
	keys("F6");
	assert_int_equal(tui.probes.cnt, 1);
	assert_true(tui.probes_due_ns != 0);
	assert_true(page_has("@ 0 hits"));
	tui_probes_tick(&tui, UINT64_MAX);
	tui_draw(&tui);
	assert_true(page_has("@ 3 hits  f(a=1)"));
	keys("j j F6");
	assert_int_equal(tui.probes.cnt, 2);
	tui_probes_tick(&tui, UINT64_MAX);
	tui_draw(&tui);
	assert_true(page_has("@ 6 hits"));
	keys(", w");
	assert_true(page_has("Probes 2"));
	keys("Esc F6");
	assert_int_equal(tui.probes.cnt, 1);
	tui_act(&tui, TUI_PROBES_OFF);
	assert_int_equal(tui.probes.cnt, 0);
	tui_probes_tick(&tui, UINT64_MAX);
	assert_true(!tui.probes_due_ns); /* nothing wakes anybody */
	tui.is_driven = true;
	keys("F6");
	assert_true(page_has("a driver may not trace"));
	assert_int_equal(tui.probes.cnt, 0);
	tui_live_begin(&tui, "/bin/true");
	tui_draw(&tui);
	assert_true(page_has("a driver may not run or trace"));
	assert_int_equal(tui.overlay_cnt, 0);
	close_tui();
}

static void test_marks_counts_and_commands(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	keys("m a 5 j");
	assert_int_equal(tui.listing.va, start + 20);
	assert_int_equal(tui.count, 0);
	keys("1 0 j");
	assert_true(tui.listing.va > start + 20);
	keys("m B ' a");
	assert_int_equal(tui.listing.va, start);
	keys("' z");
	assert_true(page_has("mark z is not set"));
	keys("' Esc j k m 1");
	assert_true(page_has("a mark is a letter"));
	keys("1 2 G");
	uint64_t row;
	assert_true(ses_row_of(tui.snap, tui.listing.va, &row) && row == 11);
	keys("9 9 9 9 9 9 9 9 G");
	assert_true(ses_row_of(tui.snap, tui.listing.va, &row) && row == ses_row_cnt(tui.snap) - 1);
	keys("Shift+Tab 3 G");
	assert_int_equal(tui.lists[TUI_V_FUNCTIONS].cur, 2);
	keys("Tab \\ 3 G");
	assert_true(page_has("lines are counted in the listing"));
	keys("\\ Ctrl+Home");
	keys(": 'view-he Tab Enter");
	assert_int_equal(tui.main_view, TUI_V_HEX);
	keys(": 'view-listing Enter : '0x401200 Enter");
	assert_int_equal(tui.listing.va, 0x401200);
	keys(": 'g Space 'main Enter");
	assert_int_equal(tui.listing.va, start);
	keys(": 'view Enter");
	assert_true(page_has("actions begin so"));
	keys(": 'zzz Enter");
	assert_true(page_has("no such action"));
	keys(": 'suspend Enter");
	assert_true(tui.wants_suspend);
	keys(": 'q Enter");
	assert_true(tui.wants_quit);
	close_tui();
}

static void test_copy(void **state)
{
	char dir[] = "/tmp/scry-copy-XXXXXX";
	char path[64];
	char got[256] = {0};
	assert_non_null(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(path, sizeof(path), "%s/scry-copy.txt", dir);
	open_tui(300, 120, 30);
	keys("j j j j j Ctrl+Y");
	assert_true(page_has(path));
	assert_true(tui.clip.len > 10 && !memcmp(tui.clip.data, "\x1b]52;c;", 7));
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(got, 1, sizeof(got) - 1, f) > 4);
	fclose(f);
	assert_non_null(strstr(got, "call"));
	keys("Y");
	assert_true(page_has("Copy the address"));
	keys("j Enter");
	/* "0x401054" */
	assert_memory_equal(tui.clip.data, "\x1b]52;c;MHg0MDEwNTQ=\x1b\\", 21);
	tui_copy_text(&tui, "ab", 2);
	assert_memory_equal(tui.clip.data, "\x1b]52;c;YWI=\x1b\\", 13);
	char *big = calloc(1, 200000);
	tui.clip.len = 0;
	tui_copy_text(&tui, big, 200000);
	assert_int_equal(tui.clip.len, 0);
	tui_draw(&tui);
	assert_true(page_has("too much for the terminal's clipboard"));
	free(big);
	close_tui();
	unlink(path);
	rmdir(dir);
	unsetenv("XDG_RUNTIME_DIR");
}

static void test_peek_and_tokens(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	keys("K");
	assert_true(page_has("nothing on this line leads anywhere"));
	keys("5 j K");
	assert_true(page_has("callers"));
	assert_int_equal(tui.peek.va, FAKE_TEXT + 9 * FAKE_FUNC_LEN);
	keys("Esc");
	assert_int_equal(tui.listing.va, start + 20);
	keys("*");
	assert_string_equal(tui.search_text, "insn:*call*");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 12 * FAKE_FUNC_LEN); /* where it stands whole */
	keys("#");
	assert_true(page_has("found, past the end"));
	keys("/ 'insn:*call* Enter");
	assert_int_equal(tui.listing.va, FAKE_TEXT + 10 * FAKE_FUNC_LEN); /* any will do */
	close_tui();
}

static void test_leader_card(void **state)
{
	open_tui(300, 120, 30);
	keys(",");
	assert_false(tui.is_card);
	tui_tick(&tui, tui.card_ns - 1);
	assert_false(tui.is_card);
	tui_tick(&tui, tui.card_ns);
	tui_draw(&tui);
	assert_true(tui.is_card && page_has(", then") && page_has("s  Strings"));
	keys("s");
	assert_int_equal(tui.main_view, TUI_V_STRINGS);
	assert_false(page_has(", then"));
	close_tui();
}

static void test_edits(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	keys("n");
	assert_string_equal(tui.prompt.text, "main"); /* what it is called now */
	keys("Enter");
	assert_int_equal(fake_config.edit_cnt, 0); /* nothing was changed */
	keys("n Ctrl+U 'new_main Enter");
	assert_int_equal(fake_config.edit_cnt, 1);
	assert_string_equal(fake_config.edits[0].op, "rename");
	assert_string_equal(fake_config.edits[0].value, "new_main");
	assert_int_equal(fake_config.edits[0].va, start);
	assert_true(page_has("is on disk"));
	keys("n Ctrl+U 'a Space 'b Enter");
	assert_true(page_has("rename refused: a name has no blank"));
	keys("j ; 'why Enter Alt+; 'above Enter");
	assert_int_equal(fake_config.edit_cnt, 3);
	assert_string_equal(fake_config.edits[1].sub, "line");
	assert_string_equal(fake_config.edits[2].sub, "block");
	assert_int_equal(fake_config.edits[1].va, start + 4);
	/* The place stays in sight, and so does what was done last. */
	assert_true(page_has("comment at ") && page_has(".text  file +"));
	tui_watch_event(&tui, 1000000000);
	tui_draw(&tui);
	assert_true(page_has("last: comment above (Ctrl+Z takes it back)"));
	keys("Ctrl+Z");
	assert_true(page_has("undo: revision 1"));
	keys("Alt+z");
	assert_true(page_has("nothing to redo"));
	keys("U");
	assert_true(page_has("new_main") && page_has("comment block"));
	const struct tui_row *row = tui_list_row(&tui, &tui.lists[TUI_V_JOURNAL]);
	assert_true(!memcmp(row->col[2].s, "comment block", 13)); /* the newest first */
	keys("/ 'new_main Enter");
	assert_true(page_has("Journal") && !page_has("comment block"));
	keys("u");
	assert_int_equal(fake_config.undo.rev, 1);
	keys("Ctrl+G j A");
	assert_true(!fake_config.undo.rev && !strcmp(fake_config.undo_author, "me"));
	/* The cursor stays with its entry when another comes above. */
	row = tui_list_row(&tui, &tui.lists[TUI_V_JOURNAL]);
	uint64_t rev = row->id;
	fake_config.edits[fake_config.edit_cnt++] = (struct fake_edit){.op = "rename", .value = "later", .va = start};
	fake_publish(ses);
	tui_news(&tui);
	tui_draw(&tui);
	assert_int_equal(tui_list_row(&tui, &tui.lists[TUI_V_JOURNAL])->id, rev);
	keys("Esc Tab n");
	assert_int_equal(tui.prompt.kind, TUI_PROMPT_RENAME);
	keys("Esc");
	close_tui();
}

static void test_load_options(void **state)
{
	open_tui(300, 120, 30);
	keys("Ctrl+L");
	assert_true(page_has("> processor:") && page_has("auto: as the file says") && page_has("x86-64") && page_has("format: as the file says"));
	keys("'64");
	assert_true(page_has("> x86-64") && !page_has("auto: as"));
	keys("Down");
	assert_true(page_has("> aarch64"));
	keys("Down Tab '40zz Backspace Backspace '00 F2");
	assert_true(page_has("> base: 4000") && page_has("raw bytes"));
	assert_string_equal(tui_load_processor(&tui.load), "aarch64");
	assert_string_equal(tui_load_base(&tui.load), "4000");
	keys("Tab 'q Enter"); /* none is called so: it stays open */
	assert_true(page_has("none is called so") && tui.overlay_cnt == 1);
	keys("Esc");
	assert_int_equal(tui.overlay_cnt, 0);
	assert_int_equal(fake_config.edit_cnt, 0);
	close_tui();
}

static void test_help_begins_with_the_view(void **state)
{
	open_tui(300, 120, 30);
	keys("\\ H");
	assert_true(page_has("In this view (hex)") && page_has("Data inspector on and off"));
	keys("Esc L H");
	assert_true(page_has("In this view (listing)") && page_has("Put this line in the middle"));
	close_tui();
}

static void test_pending_edits(void **state)
{
	uint64_t value;
	open_tui(300, 120, 30);
	tui.job_fd = eventfd(0, 0);
	keys("; 'wait_for_it Enter ; 'second Enter");
	assert_true(page_has("second *"));
	assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
	tui_news(&tui);
	keys("j ; 'third Enter ; Ctrl+U 'fourth Enter");
	int fd = tui.job_fd;
	close_tui();
	assert_int_equal(fake_config.edit_cnt, 4);
	assert_string_equal(fake_config.edits[3].value, "fourth");
	close(fd);
}

/* Shown at once, counted when the job is done, and written though one leaves. */
/* A prompt is open before it is known what is there; what was typed meanwhile stands behind it. */
static void test_comment_is_read_behind(void **state)
{
	uint64_t value;
	open_tui(300, 120, 30);
	keys("; 'old Enter ;");
	assert_string_equal(tui.prompt.text, "old");
	keys("Enter");
	assert_int_equal(fake_config.edit_cnt, 1); /* as it was */
	tui.job_fd = eventfd(0, 0);
	keys("; 'er");
	assert_string_equal(tui.prompt.text, "er");
	assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
	tui_news(&tui);
	assert_string_equal(tui.prompt.text, "older");
	assert_int_equal(tui.prompt.pos, 5);
	keys("Esc ; Enter"); /* nothing typed in time: nothing meant */
	assert_int_equal(fake_config.edit_cnt, 1);
	assert_int_equal(read(tui.job_fd, &value, sizeof(value)), (int)sizeof(value));
	keys("g");
	tui_news(&tui);
	assert_string_equal(tui.prompt.text, ""); /* not into another prompt */
	close(tui.job_fd);
	tui.job_fd = -1;
	close_tui();
}

static void test_repeat_and_bookmarks(void **state)
{
	open_tui(300, 120, 30);
	uint64_t start = tui.listing.va;
	keys(".");
	assert_true(page_has("nothing was edited yet"));
	keys("; 'same Enter 2 j .");
	assert_int_equal(fake_config.edit_cnt, 2);
	assert_string_equal(fake_config.edits[1].value, "same");
	assert_int_equal(fake_config.edits[1].va, start + 8);
	keys(", B 'mark Enter , b");
	assert_true(page_has("Bookmarks") && page_has("mark"));
	keys("Esc G , b Enter");
	assert_int_equal(tui.listing.va, start + 8);
	close_tui();
}

static void test_select_lines(void **state)
{
	char dir[] = "/tmp/scry-copy-XXXXXX";
	char path[64];
	char got[4096] = {0};
	assert_non_null(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(path, sizeof(path), "%s/scry-copy.txt", dir);
	open_tui(300, 120, 30);
	keys("j v 3 j");
	assert_true(page_has("+00401044") && page_has(">00401050"));
	keys("Ctrl+Y");
	assert_false(tui.is_selecting);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(got, 1, sizeof(got) - 1, f) > 4);
	fclose(f);
	int lines = 0;
	for (const char *c = got; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 4);
	assert_non_null(strstr(got, "401044"));
	keys("v k k Esc");
	assert_false(tui.is_selecting);
	assert_int_equal(tui.past.cnt, 0); /* Esc ended the selection, it did not go anywhere */
	keys("v j Y");
	assert_true(page_has("Copy the bytes"));
	close_tui();
	unlink(path);
	rmdir(dir);
	unsetenv("XDG_RUNTIME_DIR");
}

static void test_hints(void **state)
{
	open_tui(300, 120, 30);
	keys("f");
	assert_int_equal(tui.pending, TUI_HINTS);
	uint64_t want = 0;
	char hint[3];
	for (uint32_t i = 0; i < tui.listing.line_cnt && !want; i++) {
		if (tui.listing.lines[i].has_target && !strcmp(tui_hint_of(&tui, i, hint), "a"))
			want = tui.listing.lines[i].target;
	}
	keys("a");
	assert_int_equal(tui.listing.va, want);
	keys("f 5");
	assert_int_equal(tui.pending, TUI_NONE);
	assert_true(page_has("no line has these letters"));
	close_tui();
	/* More targets than letters: two for each. */
	open_tui(3000, 120, 300);
	keys("Ctrl+Home f s");
	assert_int_equal(tui.pending, TUI_HINTS);
	assert_int_equal(tui.hint, 's');
	keys("Esc");
	assert_int_equal(tui.pending, TUI_NONE);
	close_tui();
}

static void test_first_start(void **state)
{
	char dir[] = "/tmp/scry-first-XXXXXX";
	char path[64];
	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	unsetenv("SCRY_KEYS");
	snprintf(path, sizeof(path), "%s/scry/keys", dir);
	open_tui(300, 120, 30);
	assert_true(tui_keys_are_unchosen());
	tui_offer_begin(&tui, 1000);
	tui_draw(&tui);
	assert_true(page_has("Keys like") && page_has("2  Ghidra"));
	tui_tick(&tui, tui.offer_ns - 1);
	assert_true(tui.offer_ns > 0);
	tui_tick(&tui, tui_tick_due(&tui));
	tui_draw(&tui);
	assert_false(page_has("Keys like"));
	assert_false(tui_keys_are_unchosen()); /* it does not come back */
	/* Any key ends it and does what it does; a number chooses, now and for later. */
	unlink(path);
	tui_offer_begin(&tui, 1000);
	keys("\"");
	assert_int_equal(tui.main_view, TUI_V_STRINGS);
	assert_false(page_has("Keys like"));
	assert_false(tui_keys_are_unchosen());
	unlink(path);
	tui_offer_begin(&tui, 1000);
	keys("1");
	assert_int_equal(tui.count, 0);
	FILE *f = fopen(path, "r");
	char got[64] = "";
	assert_non_null(f);
	assert_non_null(fgets(got, sizeof(got), f));
	fclose(f);
	assert_string_equal(got, "preset ida\n");
	close_tui();
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
	unsetenv("XDG_CONFIG_HOME");
}

/* The footer shows other keys while nobody does anything, and then rests. */
static void test_hints_rotate(void **state)
{
	open_tui(300, 120, 30);
	assert_int_equal(tui_tick_due(&tui), 0);
	tui.rotate_ns = 1000;
	assert_true(page_has("who refers"));
	tui_tick(&tui, 1000);
	tui_draw(&tui);
	assert_true(page_has("n name") && page_has("Ctrl+P everything"));
	tui_tick(&tui, tui_tick_due(&tui));
	tui_draw(&tui);
	assert_true(page_has("any name"));
	tui_tick(&tui, tui_tick_due(&tui));
	tui_draw(&tui);
	assert_true(page_has("who refers"));
	assert_int_equal(tui_tick_due(&tui), 0);
	tui.rotate_ns = 1000;
	keys("j");
	assert_int_equal(tui_tick_due(&tui), 0);
	close_tui();
}

static void test_other_keys(void **state)
{
	open_tui(300, 120, 30);
	int line = tui.cur_y;
	keys("r");
	assert_true(page_has("References to main"));
	assert_int_equal(tui.overlay_rect.y, line + 1); /* under the line */
	keys("Esc ? 'thing Enter");
	assert_true(page_has("found"));
	keys("F9");
	assert_true(page_has("outside of any sandbox"));
	keys("n F7");
	assert_true(page_has("nothing is debugged"));
	keys("]");
	assert_true(page_has("no trace is loaded"));
	keys(", l");
	assert_true(page_has("! no trace is loaded"));
	keys("Esc Ctrl+S");
	assert_true(page_has("nothing waits to be saved"));
	keys("Z");
	assert_int_equal(tui.functions_rect.w, 0);
	keys("Z");
	assert_true(tui.functions_rect.w > 0);
	keys("Ctrl+P 'memory Enter Ctrl+P");
	const struct tui_row *row = tui_list_row(&tui, &tui.palette);
	assert_int_equal(row->action, TUI_VIEW_MAP); /* done lately: first */
	keys("Esc L");
	/* A key of another layout is the one at its place; a leader too. */
	struct term_ev ev = {.type = TERM_EV_KEY, .key = 0x43f};
	tui_event(&tui, &ev);
	assert_int_equal(tui.prompt.kind, TUI_PROMPT_GOTO);
	tui_event(&tui, &ev);
	assert_string_equal(tui.prompt.text, "\xd0\xbf"); /* what is typed is text */
	keys("Esc");
	ev.key = 0x431;
	tui_event(&tui, &ev);
	ev.key = 0x456; /* Ukrainian i: s */
	tui_event(&tui, &ev);
	assert_int_equal(tui.main_view, TUI_V_STRINGS);
	close_tui();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help_has_everything), cmocka_unit_test(test_probes),
		cmocka_unit_test(test_marks_counts_and_commands),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_peek_and_tokens),
		cmocka_unit_test(test_leader_card),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_pending_edits),
		cmocka_unit_test(test_load_options),
		cmocka_unit_test(test_help_begins_with_the_view),
		cmocka_unit_test(test_comment_is_read_behind),
		cmocka_unit_test(test_repeat_and_bookmarks),
		cmocka_unit_test(test_select_lines),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_other_keys),
		cmocka_unit_test(test_first_start),
		cmocka_unit_test(test_hints_rotate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
