/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several binaries in the workbench, on a pseudo-terminal: switching, following an import into the library and back, references
 * from other binaries, names and strings of the whole project, and being where one was the next time. Prints TAP.
 */
#include "pty_term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000

static int test_cnt, fail_cnt;
static char *scry;
static char dir[] = "/tmp/scry-tui-project-XXXXXX";

static void ok(bool is_good, const char *name)
{
	printf("%s %d - %s\n", is_good ? "ok" : "not ok", ++test_cnt, name);
	fflush(stdout);
	fail_cnt += !is_good;
}

static void expect(struct pty_term *t, const char *text, const char *name)
{
	bool is_there = pty_wait(t, text, WAIT_MS);
	ok(is_there, name);
	for (const char *s = is_there ? "" : pty_text(t); *s;) {
		size_t n = strcspn(s, "\n");
		printf("# %.*s\n", (int)n, s);
		s += n + (s[n] == '\n');
	}
}

static bool shell(const char *text)
{
	FILE *p = popen(text, "r");
	return p && pclose(p) == 0;
}

static bool make_programs(void)
{
	char text[2000];
	snprintf(text, sizeof(text),
		 "cd %s && printf 'int scale(int x) { return x * 3; }\\nint twice(int x) { return scale(x) + 1; }\\n"
		 "const char *banner(void) { return \"text of the library\"; }\\n' >l.c && "
		 "printf 'extern int twice(int); extern const char *banner(void); extern int puts(const char *);\\n"
		 "int helper(int a) { return twice(a) + 1; }\\n"
		 "int main(int c, char **v) { puts(banner()); puts(\"text of the program\"); return helper(c); }\\n' >a.c && "
		 "cc -O1 -shared -fPIC -Wl,-soname,libone.so -o libone.so l.c && cc -O1 -fno-inline -o app a.c -L. -lone", dir);
	return shell(text);
}

static void open_both(struct pty_term *t)
{
	char app[200], lib[200];
	snprintf(app, sizeof(app), "%s/app", dir);
	snprintf(lib, sizeof(lib), "%s/libone.so", dir);
	char *argv[] = {scry, app, lib, NULL};
	pty_start(t, argv, NULL, 120, 40);
}

static void leave(struct pty_term *t, const char *name)
{
	pty_keys(t, "q");
	ok(pty_wait_end(t, WAIT_MS) && WIFEXITED(t->status) && WEXITSTATUS(t->status) == 0, name);
	pty_stop(t);
}

/* Keys that open a dialog, again and again until it shows the text: the index is made beside us. */
static void retry(struct pty_term *t, const char *keys, const char *text, const char *name)
{
	bool is_there = false;
	for (int i = 0; i < 200 && !is_there; i++) {
		if (i)
			pty_keys(t, "\x07");
		pty_keys(t, keys);
		is_there = pty_wait(t, text, 300);
	}
	ok(is_there, name);
	if (!is_there)
		expect(t, text, "what it shows");
}

static void test_follow(void)
{
	struct pty_term t;
	open_both(&t);
	expect(&t, " app  ELF64", "the first binary is shown");
	expect(&t, "1/2 app", "as one of two");
	expect(&t, "ready", "and is analysed");
	pty_keys(&t, "\x0f");
	expect(&t, "Binaries of the project", "Ctrl+O lists them");
	expect(&t, "/libone.so", "with the library's file");
	pty_keys(&t, "libone\r");
	expect(&t, " libone.so  ELF64", "typed and entered, it is shown");
	expect(&t, "2/2 app", "as the second");
	expect(&t, "ready", "and is analysed too");
	pty_keys(&t, "gtwice\r");
	expect(&t, "twice  .text", "going to an exported function");
	retry(&t, "x", "app!helper", "x: who refers to it in the program");
	pty_keys(&t, "G\r");
	expect(&t, " app  ELF64", "Enter goes there");
	expect(&t, ">00001", "to a line");
	expect(&t, "call    twice", "which calls it");
	pty_keys(&t, "\r");
	expect(&t, " libone.so  ELF64", "Enter on the call goes to the library, past the stub");
	expect(&t, "twice  .text", "to the function");
	pty_keys(&t, "\x7f");
	expect(&t, " app  ELF64", "Backspace goes back to the program");
	expect(&t, "helper+", "to the call");
	pty_keys(&t, "\x7f");
	expect(&t, " libone.so  ELF64", "and again to the library");
	expect(&t, "twice  .text", "to where the way began");
	pty_keys(&t, ")");
	expect(&t, " app  ELF64", "forward leads over binaries too");
	expect(&t, "helper+", "to the same line");
	leave(&t, "q leaves");
}

static void test_find(void)
{
	struct pty_term t;
	open_both(&t);
	expect(&t, "ready", "opened again");
	expect(&t, " app  ELF64", "the binary shown last");
	expect(&t, "helper+", "at the place where it was left");
	pty_keys(&t, "\x0e\x1bOQ");
	expect(&t, "Names and strings of the project", "F2 in the palette: the whole project");
	pty_keys(&t, "scale");
	expect(&t, "scale", "a name typed");
	expect(&t, "export", "is an export");
	pty_keys(&t, "\r");
	expect(&t, " libone.so  ELF64", "Enter goes to its binary");
	expect(&t, "scale  .text", "and its place");
	pty_keys(&t, "\"");
	expect(&t, "> Strings", "the strings of one binary");
	pty_keys(&t, "\x1bOQ");
	expect(&t, "Strings of the project", "F2: of the project");
	expect(&t, "text of the library", "with the library's");
	expect(&t, "text of the program", "and the program's");
	pty_keys(&t, "/of the prog\r");
	pty_keys(&t, "\r");
	expect(&t, " app  ELF64", "Enter goes to that binary");
	pty_keys(&t, "\x7f");
	expect(&t, " libone.so  ELF64", "and back");
	leave(&t, "q leaves again");
}

/* A binary that is gone the next time: its names and comments are there all the same. */
static void test_vanished(void)
{
	struct pty_term t;
	char text[300];
	snprintf(text, sizeof(text), "cd %s && '%s' project create P.json app libone.so && '%s' project list P.json --sync && "
		 "'%s' comment libone.so scale 'kept in mind' && rm libone.so", dir, scry, scry, scry);
	ok(shell(text), "a project file, a comment, and the library is gone");
	snprintf(text, sizeof(text), "%s/P.json", dir);
	char option[] = "--project";
	char *argv[] = {scry, option, text, NULL};
	pty_start(&t, argv, NULL, 140, 40);
	expect(&t, " app  ELF64", "it opens");
	pty_keys(&t, "\x0f");
	expect(&t, "vanished", "the switcher says what is gone");
	pty_keys(&t, "libone\r");
	expect(&t, "! vanished", "it is shown, and so does the header");
	pty_keys(&t, "gscale\r");
	expect(&t, "kept in mind", "with the work on it");
	leave(&t, "q leaves as ever");
}

/* A terminal without a full screen shows a project a line at a time. */
static void test_dumb(void)
{
	char app[200], lib[200];
	struct pty_term t;
	const char *dumb[] = {"TERM=dumb", NULL};
	snprintf(app, sizeof(app), "%s/app", dir);
	snprintf(lib, sizeof(lib), "%s/libone.so", dir);
	char *argv[] = {scry, app, lib, NULL};
	pty_start(&t, argv, dumb, 120, 40);
	pty_keys(&t, ",o libone.so\rq\r");
	ok(pty_wait_end(&t, WAIT_MS) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "TERM=dumb ends with 0");
	ok(memmem(t.log.data, t.log.len, "2 of 2  libone.so", 17) && !memmem(t.log.data, t.log.len, "\x1b", 1),
	   "and shows the binaries a line at a time, without a sequence");
	pty_stop(&t);
}

int main(void)
{
	char store[120], cmd[200];
	scry = getenv("SCRY");
	if (!scry || access(scry, X_OK) || !mkdtemp(dir) || !make_programs()) {
		printf("1..0 # skip SCRY or a C compiler is missing\n");
		return 0;
	}
	snprintf(store, sizeof(store), "%s/store", dir);
	setenv("SCRY_STORE", store, 1);
	test_follow();
	test_find();
	test_dumb();
	test_vanished();
	printf("1..%d\n", test_cnt);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return shell(cmd) && !fail_cnt ? 0 : 1;
}
