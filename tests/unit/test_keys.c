/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of keys: the table, the presets, what a person writes. SCRY_PRESETS is the folder of the presets. */
#include "tui/keymap.h"
#include "tui/term/input.h"
#include "tui/tui.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const presets[] = {"ida", "ghidra", "binja", "vim-strict", "r2"};

static enum tui_action action(const struct tui_keymap *m, const char *name, uint16_t where)
{
	struct tui_stroke s[TUI_STROKES_MAX];
	unsigned cnt = tui_strokes_parse(name, strlen(name), s);
	assert_true(cnt > 0);
	return tui_keymap_action(m, s, cnt, where);
}

static char *add(struct tui_keymap *m, const char *text)
{
	static char why[512];
	struct err *e = tui_keymap_add(m, "f", text, strlen(text));
	snprintf(why, sizeof(why), "%s", e ? e->text : "");
	err_free(e);
	return why;
}

static struct tui_keymap *preset(const char *name)
{
	char path[512];
	char text[TUI_KEYMAP_LEN_MAX];
	struct tui_keymap *m = tui_keymap_new();
	assert_non_null(m);
	snprintf(path, sizeof(path), "%s/%s", SCRY_PRESETS, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	struct err *e = tui_keymap_add(m, name, text, n);
	if (e)
		fail_msg("%s", e->text);
	return m;
}

static void test_strokes(void **state)
{
	struct tui_stroke s[TUI_STROKES_MAX];
	assert_int_equal(tui_strokes_parse("gg", 2, s), 2);
	assert_true(s[0].key == 'g' && s[1].key == 'g');
	assert_int_equal(tui_strokes_parse(",Space", 6, s), 2);
	assert_true(s[0].key == ',' && s[1].key == ' ');
	assert_int_equal(tui_strokes_parse("Ctrl+P", 6, s), 1);
	assert_true(s[0].key == 'p' && s[0].mods == TERM_CTRL);
	assert_int_equal(tui_strokes_parse("Up", 2, s), 1);
	assert_int_equal(tui_strokes_parse("ж", 2, s), 1);
	assert_int_equal(tui_strokes_parse("ggg", 3, s), 0);
	assert_int_equal(tui_strokes_parse("", 0, s), 0);
	assert_int_equal(tui_strokes_parse("\xff\xfe", 2, s), 0);
}

/* The table as a layer of its own: one key is two actions nowhere. */
static void test_table_has_no_conflict(void **state)
{
	struct tui_keymap *m = tui_keymap_new();
	static char text[TUI_KEYMAP_LEN_MAX];
	size_t n = 0;
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		const struct tui_action_info *info = tui_action_info((enum tui_action)a);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s += %s\n", info->name, info->keys);
		assert_true(n < sizeof(text));
	}
	assert_string_equal(add(m, text), "");
	tui_keymap_free(m);
}

/* What a preset says of a key is what the key does, everywhere; and the ways to everything are there in each. */
static void test_presets(void **state)
{
	static const enum tui_action needed[] = {
		TUI_PALETTE, TUI_HELP, TUI_QUIT, TUI_BACK, TUI_FORWARD, TUI_FOLLOW, TUI_GOTO, TUI_UP, TUI_DOWN, TUI_COMMAND, TUI_CANCEL,
		TUI_SEARCH, TUI_SEARCH_NEXT, TUI_XREFS_TO, TUI_FIND_SYMBOL, TUI_RENAME, TUI_COMMENT, TUI_RETYPE, TUI_FORMAT_NEXT, TUI_DEFINE_CODE,
		TUI_DEFINE_DATA, TUI_DEFINE_STRING, TUI_DEFINE_FUNC, TUI_UNDEFINE, TUI_UNDO, TUI_REDO, TUI_HISTORY, TUI_HINTS, TUI_SELECT,
		TUI_COPY_LINE, TUI_VIEW_GRAPH, TUI_VIEW_HEX, TUI_VIEW_STRINGS, TUI_BOOKMARK, TUI_MARK, TUI_MARK_GO};
	for (size_t p = 0; p < sizeof(presets) / sizeof(presets[0]); p++) {
		struct tui_keymap *m = preset(presets[p]);
		for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
			if (!*tui_keymap_keys(m, needed[i]))
				fail_msg("%s: no key for %s", presets[p], tui_action_info(needed[i])->name);
		}
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
			const char *k = tui_keymap_keys(m, (enum tui_action)a);
			while (*k) {
				char name[64];
				snprintf(name, sizeof(name), "%.*s", (int)strcspn(k, " "), k);
				int places = 0;
				for (unsigned where = 1; where & TUI_IN_ANY; where <<= 1) {
					struct tui_stroke s[TUI_STROKES_MAX];
					unsigned cnt = tui_strokes_parse(name, strlen(name), s);
					places += tui_keymap_action(m, s, cnt, (uint16_t)where) == (enum tui_action)a;
					/* No key is hidden by a longer one. */
					if (cnt == 1 && tui_keymap_action(m, s, 1, (uint16_t)where) != TUI_NONE)
						assert_false(tui_keymap_is_prefix(m, s[0], (uint16_t)where));
				}
				if (!places)
					fail_msg("%s: %s is shown for %s and does it nowhere", presets[p], name,
						 tui_action_info((enum tui_action)a)->name);
				k += strlen(name) + (k[strlen(name)] == ' ');
			}
		}
		tui_keymap_free(m);
	}
}

/* Keys that terminals take for themselves or deliver late have twins. */
static void test_twins(void **state)
{
	static const char *const eaten[] = {"Ctrl+Enter", "Super", "F10", "F11", "Esc", "F1"};
	for (size_t p = 0; p < sizeof(presets) / sizeof(presets[0]); p++) {
		struct tui_keymap *m = preset(presets[p]);
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
			const char *keys = tui_keymap_keys(m, (enum tui_action)a);
			bool has_plain = !*keys;
			for (const char *k = keys; *k; k += strcspn(k, " "), k += *k == ' ') {
				size_t len = strcspn(k, " ");
				bool is_eaten = !strncmp(k, "Alt+", 4) || !strncmp(k, "Ctrl+Shift+", 11) || (*k == 'F' && len > 1) ||
						!strncmp(k, "Shift+", 6) || (!strncmp(k, "Ctrl+", 5) && len == 6 && (k[5] < 'a' || k[5] > 'z') &&
						(k[5] < 'A' || k[5] > 'Z') && k[5] != ']');
				for (size_t i = 0; i < sizeof(eaten) / sizeof(eaten[0]); i++)
					is_eaten = is_eaten || (len == strlen(eaten[i]) && !strncmp(k, eaten[i], len));
				has_plain = has_plain || !is_eaten;
			}
			/* With two panes backwards is forwards, and an empty search is the next match. */
			bool is_later = tui_action_info((enum tui_action)a)->group == TUI_GROUP_LATER;
			if (!has_plain && !is_later && a != TUI_FOCUS_PREV && a != TUI_SEARCH_NEXT)
				fail_msg("%s: %s has only %s", presets[p], tui_action_info((enum tui_action)a)->name, keys);
		}
		tui_keymap_free(m);
	}
}

static void test_layers(void **state)
{
	struct tui_keymap *m = tui_keymap_new();
	assert_int_equal(action(m, "n", TUI_IN_LISTING), TUI_RENAME);
	assert_int_equal(action(m, "w", TUI_IN_GRAPH), TUI_BLOCK_NEXT);
	assert_int_equal(action(m, ",f", TUI_IN_LIST), TUI_VIEW_FUNCTIONS);
	assert_true(tui_keymap_is_prefix(m, (struct tui_stroke){',', 0}, TUI_IN_LISTING));
	assert_string_equal(add(m, "# mine\nsearch-next = n\n  RENAME += Ctrl+N \nGOTO = gg\r\n\n"), "");
	assert_int_equal(action(m, "n", TUI_IN_LISTING), TUI_SEARCH_NEXT);
	assert_int_equal(action(m, "Ctrl+N", TUI_IN_LISTING), TUI_RENAME);
	assert_string_equal(tui_keymap_keys(m, TUI_RENAME), "Ctrl+N");
	assert_string_equal(tui_keymap_keys(m, TUI_FIND_SYMBOL), "");
	assert_int_equal(action(m, "g", TUI_IN_LISTING), TUI_NONE);
	assert_int_equal(action(m, "gg", TUI_IN_LISTING), TUI_GOTO);
	assert_int_equal(action(m, "F3", TUI_IN_LISTING), TUI_NONE);
	/* A layer takes a key only where its action is meant. */
	assert_string_equal(add(m, "BYTES = x\n"), "");
	assert_int_equal(action(m, "x", TUI_IN_LISTING), TUI_BYTES);
	assert_int_equal(action(m, "x", TUI_IN_LIST), TUI_XREFS_TO);
	assert_string_equal(add(m, "QUIT =\n"), "");
	assert_string_equal(tui_keymap_keys(m, TUI_QUIT), "");
	tui_keymap_free(m);
}

static void test_faults_by_line(void **state)
{
	static const struct { const char *text, *why; } rows[] = {
		{"GOTO = n\nRENAME = n\n", "f:2: n is a key of GOTO in line 1 already"},
		{"GOTO = n\nRENAME = nn\n", "f:2: nn is the beginning of a key of GOTO in line 1 already"},
		{"GOTO = a a\n", "f:1: a is given twice"},
		{"\n\nNOTHING = x\n", "f:3: NOTHING: no such action (scry keys lists them)"},
		{"GOTO x\n", "f:1: 'GOTO' is followed by neither = nor +="},
		{"GOTO = Ctrl+\n", "f:1: 'Ctrl+' is no key"},
		{"GOTO = Super+x\nUP = q\nQUIT = q\nx\n", "f:1: 'Super+x' is no key (and 2 more)"},
		{"langmap ab c\n", "f:1: langmap needs two words of as many characters"},
		{"langmap\n", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tui_keymap *m = tui_keymap_new();
		assert_string_equal(add(m, rows[i].text), rows[i].why);
		tui_keymap_free(m);
	}
	/* What can be taken is. */
	struct tui_keymap *m = tui_keymap_new();
	add(m, "GOTO = a\nNOTHING = x\nQUIT = b\n");
	assert_int_equal(action(m, "a", TUI_IN_LISTING), TUI_GOTO);
	assert_int_equal(action(m, "b", TUI_IN_LISTING), TUI_QUIT);
	char *big = malloc(TUI_KEYMAP_LEN_MAX + 100);
	memset(big, '#', TUI_KEYMAP_LEN_MAX + 100);
	struct err *e = tui_keymap_add(m, "f", big, TUI_KEYMAP_LEN_MAX + 100);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "longer than"));
	err_free(e);
	free(big);
	tui_keymap_free(m);
}

static void test_langmap(void **state)
{
	struct tui_keymap *m = tui_keymap_new();
	assert_int_equal(tui_keymap_char(m, 0x43f /* п */), 'g');
	assert_int_equal(tui_keymap_char(m, 0x416 /* Ж */), ':');
	assert_int_equal(tui_keymap_char(m, 0x431 /* б */), ',');
	assert_int_equal(tui_keymap_char(m, 0x3b3 /* γ */), 'g');
	assert_int_equal(tui_keymap_char(m, 'g'), 'g');
	assert_string_equal(add(m, "langmap ñп ;x\n"), "");
	assert_int_equal(tui_keymap_char(m, 0xf1), ';');
	assert_int_equal(tui_keymap_char(m, 0x43f), 'x');
	tui_keymap_free(m);
}

/* The person's own file: read, chosen into, its other lines kept. */
static void test_own_file(void **state)
{
	char dir[] = "/tmp/scry-keys-XXXXXX";
	char path[128];
	char got[256] = "";
	struct tui_keymap *m;
	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	assert_null(tui_keys_load(NULL, &m));
	assert_int_equal(action(m, "n", TUI_IN_LISTING), TUI_RENAME);
	tui_keymap_free(m);
	assert_null(tui_keys_choose("ida"));
	snprintf(path, sizeof(path), "%s/scry/keys", dir);
	FILE *f = fopen(path, "a");
	assert_non_null(f);
	fputs("RENAME = R\nbroken\n", f);
	fclose(f);
	assert_null(tui_keys_choose(SCRY_PRESETS "/vim-strict"));
	f = fopen(path, "r");
	assert_true(fread(got, 1, sizeof(got) - 1, f) > 0);
	fclose(f);
	assert_null(strstr(got, "preset ida"));
	assert_non_null(strstr(got, "vim-strict\nRENAME = R\nbroken\n"));
	struct err *e = tui_keys_load(NULL, &m);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "/scry/keys:3: "));
	err_free(e);
	assert_int_equal(action(m, "R", TUI_IN_LISTING), TUI_RENAME);
	assert_int_equal(action(m, "gg", TUI_IN_LISTING), TUI_TOP);
	tui_keymap_free(m);
	e = tui_keys_load("no-such", &m);
	assert_int_equal(e->kind, ERR_NOT_FOUND);
	err_free(e);
	assert_int_equal(action(m, "R", TUI_IN_LISTING), TUI_RENAME);
	tui_keymap_free(m);
	unlink(path);
	/* What is there and cannot be read is said, and is not written over. */
	assert_int_equal(symlink("nowhere", path), 0);
	e = tui_keys_load(NULL, &m);
	assert_non_null(strstr(e->text, "a link that leads nowhere: "));
	assert_non_null(strstr(e->text, "/scry/keys: No such file"));
	assert_non_null(e->fix);
	err_free(e);
	assert_int_equal(action(m, "n", TUI_IN_LISTING), TUI_RENAME);
	tui_keymap_free(m);
	assert_false(tui_keys_are_unchosen());
	e = tui_keys_choose("ida");
	assert_non_null(e);
	err_free(e);
	unlink(path);
	snprintf(path, sizeof(path), "%s/scry", dir);
	rmdir(path);
	assert_int_equal(symlink(path, path), 0);
	e = tui_keys_load(NULL, &m);
	assert_non_null(strstr(e->text, "your keys: "));
	assert_non_null(strstr(e->text, "/scry/keys: "));
	err_free(e);
	tui_keymap_free(m);
	unlink(path);
	rmdir(dir);
	unsetenv("XDG_CONFIG_HOME");
}

static void test_options(void **state)
{
	const char *words[] = {"scry", "--keys", "vim-strict", "--no-mouse", "--keys=r2", "--no-sync", "file"};
	char **at = (char **)words;
	int cnt = 7;
	unsetenv("SCRY_NO");
	while (cnt > 2 && tui_option(&cnt, &at))
		;
	assert_int_equal(cnt, 2);
	assert_string_equal(at[0], "scry");
	assert_string_equal(at[1], "file");
	assert_string_equal(getenv("SCRY_KEYS"), "r2");
	assert_string_equal(getenv("SCRY_NO"), "mouse sync");
	const char *other[] = {"scry", "--no-thing", "file"};
	at = (char **)other;
	cnt = 3;
	assert_false(tui_option(&cnt, &at));
	assert_int_equal(cnt, 3);
	unsetenv("SCRY_KEYS");
	unsetenv("SCRY_NO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strokes),
		cmocka_unit_test(test_table_has_no_conflict),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_faults_by_line),
		cmocka_unit_test(test_langmap),
		cmocka_unit_test(test_own_file),
		cmocka_unit_test(test_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
