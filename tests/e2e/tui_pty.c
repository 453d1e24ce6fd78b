/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workbench as a person meets it: started on a pseudo-terminal, watched through a terminal model, walked with the
 * keyboard, resized, stuck, killed. Prints TAP. SCRY is the program. Waits for what it expects to see; the limits are
 * for a machine that is busy, not claims.
 */
#include "pty_term.h"
#include "tui/keymap.h"
#include "tui/term/input.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000
#define TARGET "/bin/bash"

static int test_cnt;
static int fail_cnt;
static char *scry;

static void ok(bool is_good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void ok(bool is_good, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	printf("%s %d - ", is_good ? "ok" : "not ok", ++test_cnt);
	vprintf(fmt, ap);
	printf("\n");
	fflush(stdout);
	va_end(ap);
	fail_cnt += !is_good;
}

static void show(struct pty_term *t)
{
	for (const char *s = pty_text(t); *s;) {
		size_t n = strcspn(s, "\n");
		printf("# %.*s\n", (int)n, s);
		s += n + (s[n] == '\n');
	}
}

static bool expect(struct pty_term *t, const char *text, const char *what)
{
	bool good = pty_wait(t, text, WAIT_MS);
	ok(good, "%s", what);
	if (!good)
		show(t);
	return good;
}

/* Waits until the screen does not show `text` any more. */
static bool wait_gone(struct pty_term *t, const char *text)
{
	for (int ms = 0; ms < WAIT_MS && strstr(pty_text(t), text); ms += 50)
		pty_pump(t, 50, 0);
	return !strstr(pty_text(t), text);
}

static void start(struct pty_term *t, const char *file, const char *const env[], int w, int h)
{
	char *argv[] = {scry, (char *)file, NULL};
	pty_start(t, argv, env, w, h);
}

static bool alive(struct pty_term *t)
{
	return !t->is_ended && waitpid(t->pid, &t->status, WNOHANG) == 0;
}

/* The screen without its last lines, whose message any key takes away. */
static char *panes_text(struct pty_term *t)
{
	char *text = strdup(pty_text(t));
	char *at = text;
	for (int y = 0; y < t->h - 2; y++)
		at = strchr(at, '\n') + 1;
	*at = '\0';
	return text;
}

/* What is on the screen is what a full redraw puts there. */
static void check_redraw(struct pty_term *t, const char *what)
{
	pty_pump(t, 3000, 150);
	char *before = panes_text(t);
	pty_keys(t, "\x12");
	pty_pump(t, 3000, 150);
	char *after = panes_text(t);
	bool same = strcmp(before, after) == 0;
	free(after);
	ok(same, "%s: the screen is what a full redraw shows", what);
	if (!same) {
		printf("# before, then after:\n");
		for (char *line = strtok_r(before, "\n", &after); line; line = strtok_r(NULL, "\n", &after))
			printf("# %s\n", line);
		show(t);
	}
	free(before);
}

static void test_first_frames(void)
{
	struct pty_term t;
	start(&t, TARGET, NULL, 120, 40);
	expect(&t, "bash", "the header names the file");
	expect(&t, "Ctrl+P", "the footer names keys");
	expect(&t, "ready", "the analysis ends and the header says so");
	expect(&t, "main", "the listing begins at main");
	ok(memmem(t.log.data, t.log.len, "identifying", 11) || memmem(t.log.data, t.log.len, "analysing", 9),
	   "a frame was shown before the analysis ended");
	ok(t.is_alt_screen && t.mouse != VTERM_PROP_MOUSE_NONE, "alternate screen and mouse are on");
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "q leaves with 0");
	pty_stop(&t);
}

static bool log_has(const struct pty_term *t, const char *text)
{
	return memmem(t->log.data, t->log.len, text, strlen(text)) != NULL;
}

/* A file whose tables take their time: the frame does not wait for them, and keys are kept. */
static void test_huge(void)
{
	static const char *const files[] = {"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "/usr/bin/node", "/usr/bin/gdb"};
	const char *file = NULL;
	struct pty_term t;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !file; i++)
		file = access(files[i], R_OK) == 0 ? files[i] : NULL;
	if (!file) {
		printf("ok %d - # SKIP no huge file on this machine\n", ++test_cnt);
		return;
	}
	start(&t, file, NULL, 120, 40);
	pty_keys(&t, ",s");
	expect(&t, "Strings", "a key typed before the tables were read is done");
	ok(log_has(&t, "what you type is kept"), "a frame was shown before");
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "q leaves");
	pty_stop(&t);
	start(&t, file, NULL, 120, 40);
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "q before the tables were read leaves");
	pty_stop(&t);
}

static void test_walk(void)
{
	struct pty_term t;
	start(&t, TARGET, NULL, 140, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gmain\r");
	expect(&t, " main", "g goes to main");
	pty_keys(&t, "\"");
	expect(&t, "Strings", "strings");
	pty_keys(&t, "/GNU\r");
	expect(&t, "/GNU", "a filter on the strings");
	pty_keys(&t, "\r");
	expect(&t, " listing", "Enter on a string opens the listing there");
	pty_keys(&t, ",i");
	expect(&t, "Imports", "imports by the leader key");
	pty_keys(&t, "L\\");
	expect(&t, " hex", "hex view");
	pty_keys(&t, "\\");
	expect(&t, " listing", "and back");
	pty_keys(&t, "\033[Z");
	expect(&t, " functions", "Shift+Tab to the functions");
	pty_keys(&t, "/main\r");
	expect(&t, "/main", "filter of the functions");
	pty_keys(&t, "\r");
	expect(&t, " listing", "Enter opens a function");
	pty_keys(&t, "x");
	expect(&t, "References to", "x shows the references");
	pty_keys(&t, "\x1b");
	pty_pump(&t, 2000, 200);
	ok(!strstr(pty_text(&t), "References to"), "Esc closes the dialog");
	pty_keys(&t, "\x10" "memory map");
	expect(&t, "Memory map: segments", "palette");
	pty_keys(&t, "\r");
	expect(&t, ".text", "the map lists sections");
	pty_keys(&t, "H");
	expect(&t, "Keys", "help card");
	pty_keys(&t, "\x1b");
	pty_pump(&t, 1000, 100);
	pty_keys(&t, "L/hex:7f 45 4c 46\r");
	expect(&t, "found", "search for bytes");
	check_redraw(&t, "after a walk");
	pty_stop(&t);
}

static void test_graph(void)
{
	struct pty_term t;
	start(&t, TARGET, NULL, 140, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gmain\r ");
	expect(&t, " graph ", "Space shows the graph");
	expect(&t, "\xe2\x94\x80>main ", "with the entry's block selected");
	pty_keys(&t, "JwKb0");
	expect(&t, "\xe2\x94\x80>main ", "along edges, by address, and 0 comes back to the entry");
	pty_keys(&t, "z");
	expect(&t, " more", "zoomed out blocks are short");
	pty_keys(&t, "z");
	expect(&t, ">main", "and then names");
	pty_keys(&t, "zmf\x04\x15jl$hJ");
	check_redraw(&t, "after moves in the graph");
	pty_keys(&t, "x");
	expect(&t, "References to", "x works in the graph");
	pty_keys(&t, "\x03 ");
	expect(&t, " listing ", "Space again is the listing");
	pty_keys(&t, " \\");
	expect(&t, " hex ", "the graph's key does not stand in the way of hex");
	pty_keys(&t, "\\q");
	ok(pty_wait_end(&t, WAIT_MS), "q leaves");
	pty_stop(&t);
}

/* A program with one function of so many blocks: conditions ahead, loops back. False without a compiler. */
static bool build_big(const char *dir, unsigned blocks, char *path, size_t path_len)
{
	char source[600];
	char cmd[2000];
	snprintf(source, sizeof(source), "%s/big.s", dir);
	snprintf(path, path_len, "%s/big", dir);
	FILE *f = fopen(source, "w");
	if (!f)
		return false;
	fprintf(f, ".globl _start\n.type _start,@function\n_start:\ncall big\nhlt\n.size _start,.-_start\n.globl big\n"
		   ".type big,@function\nbig:\n");
	for (unsigned i = 0; i < blocks; i++) {
		unsigned to = i % 17 == 16 ? i - 9 : i + 1 + i % 13;
		fprintf(f, ".Lb%u:\ncmp $%u,%%edi\nje .Lb%u\n", i, i, to < blocks ? to : blocks - 1);
	}
	fprintf(f, "ret\n.size big,.-big\n");
	fclose(f);
	snprintf(cmd, sizeof(cmd), "cc -nostdlib -static -o %s %s", path, source);
	FILE *cc = popen(cmd, "r");
	return cc && pclose(cc) == 0;
}

static void test_big_graph(void)
{
	struct pty_term t;
	char path[600];
	if (!build_big(getenv("SCRY_STORE"), 5000, path, sizeof(path))) {
		printf("ok %d - a function of 5,000 blocks # skip no compiler for it\n", ++test_cnt);
		return;
	}
	start(&t, path, NULL, 120, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gbig\r ");
	expect(&t, "\xe2\x94\x80>big ", "a function of 5,000 blocks is shown as a graph");
	pty_keys(&t, "G");
	expect(&t, "ret", "down to its last block");
	check_redraw(&t, "far down");
	pty_keys(&t, "zz");
	expect(&t, "[loc_", "by names");
	pty_keys(&t, "0");
	expect(&t, ">big", "and up to its entry");
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS), "q leaves");
	pty_stop(&t);
}

/* Every key of the action table, from every kind of view: the program lives and draws. */
static void test_every_key(void)
{
	struct pty_term t;
	static const char *const views[] = {"L", "L\\", "\"", "Lgmain\r "};
	int pressed = 0;
	/* What these keys state is nobody else's concern. */
	char own[256];
	const char *const env[] = {own, NULL};
	snprintf(own, sizeof(own), "SCRY_STORE=%s/keys", getenv("SCRY_STORE"));
	start(&t, TARGET, env, 120, 40);
	pty_wait(&t, "ready", WAIT_MS);
	for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++) {
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT && alive(&t); a++) {
			const char *k = tui_action_info((enum tui_action)a)->keys;
			for (; *k && a != TUI_QUIT;) {
				char bytes[PTY_KEY_MAX];
				struct tui_stroke s[TUI_STROKES_MAX];
				size_t len = strcspn(k, " ");
				unsigned cnt = tui_strokes_parse(k, len, s);
				if (cnt) {
					pty_keys(&t, views[v]);
					for (unsigned i = 0; i < cnt; i++)
						pty_send(&t, bytes, pty_encode_key(s[i].key, s[i].mods, bytes));
					/* A lone Esc and what follows must not become Alt+key. */
					pty_pump(&t, 60, 0);
					pty_keys(&t, "\x03\x03");
					pressed++;
				}
				k += len + (k[len] == ' ');
			}
		}
	}
	ok(alive(&t) && pressed > 150, "%d keys from four views, still there", pressed);
	pty_keys(&t, "\x03L");
	expect(&t, " listing", "and the listing still comes");
	check_redraw(&t, "after every key");
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS), "q still leaves");
	pty_stop(&t);
}

/* An edit is on disk when it says so: killed then, the next start shows it, and undo still works. */
static void test_edit(void)
{
	struct pty_term t;
	start(&t, TARGET, NULL, 140, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gmain\rn\x15" "kept_name\r");
	expect(&t, "is on disk", "a rename is confirmed");
	pty_keys(&t, ";said_here\r");
	expect(&t, "said_here", "a comment is shown");
	expect(&t, "comment at", "and confirmed");
	kill(t.pid, SIGKILL);
	pty_wait_end(&t, WAIT_MS);
	pty_stop(&t);
	start(&t, TARGET, NULL, 140, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gkept_name\r");
	expect(&t, "said_here", "both are there after a kill");
	pty_keys(&t, "U");
	expect(&t, "kept_name", "the history has them");
	pty_keys(&t, "L\x1a");
	expect(&t, "undo: revision", "undo after a restart");
	pty_pump(&t, 3000, 300);
	ok(!strstr(pty_text(&t), "said_here"), "takes the comment away");
	pty_keys(&t, "\x1a");
	expect(&t, " main:", "and then the name");
	pty_stop(&t);
}

/* What somebody says of the bytes is shown when the analysis behind it is through, at the same place; undo brings the
 * listing back as it was. */
static void test_define(void)
{
	struct pty_term t;
	char own[256];
	const char *const env[] = {own, NULL};
	snprintf(own, sizeof(own), "SCRY_STORE=%s/define", getenv("SCRY_STORE"));
	start(&t, TARGET, env, 140, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gmain\rjj");
	pty_pump(&t, 3000, 300);
	char *was = panes_text(&t);
	pty_keys(&t, "d");
	expect(&t, "data: 1 bytes to", "d says what it made");
	expect(&t, " db ", "and the listing shows the datum");
	pty_keys(&t, "dd");
	expect(&t, " dd ", "again, and it is wider");
	pty_keys(&t, "u");
	expect(&t, "undef: ", "u says that nobody knows");
	pty_keys(&t, "c");
	expect(&t, " instructions to ", "c makes code and says how much");
	pty_keys(&t, "\x1b" "dint[3]\r");
	expect(&t, "data: 12 bytes to", "a type is prompted for");
	pty_keys(&t, "\x1a\x1a\x1a\x1a\x1a\x1a");
	char *now = NULL;
	for (unsigned i = 0; i < 100 && (!now || strcmp(was, now)); i++) {
		free(now);
		pty_pump(&t, 500, 100);
		now = panes_text(&t);
	}
	ok(!strcmp(was, now), "undo brings the old listing back, at the same place");
	if (strcmp(was, now))
		show(&t);
	free(was);
	free(now);
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS), "q leaves");
	pty_stop(&t);
}

/* `scry` with arguments, without a terminal; its exit status. */
static int command(const char *op, const char *addr, const char *value)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		execl(scry, scry, op, TARGET, addr, value, (char *)NULL);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Two workbenches and a command line on one file: each shows what the others commit, where it is. */
static void test_others(void)
{
	struct pty_term t, u;
	start(&t, TARGET, NULL, 140, 40);
	pty_wait(&t, "ready", WAIT_MS);
	start(&u, TARGET, NULL, 120, 30);
	pty_wait(&u, "ready", WAIT_MS);
	pty_keys(&t, "gmain\rjjj");
	pty_pump(&t, 2000, 200);
	ok(command("comment", "main", "from outside") == 0, "a command comments");
	expect(&t, "from outside", "the workbench shows it");
	expect(&t, "comment from outside", "and says who did what");
	expect(&u, "comment from outside", "so does another workbench");
	pty_keys(&u, "gmain\rn\x15" "their_name\r");
	expect(&u, "is on disk", "which renames");
	expect(&t, "their_name:", "and the first one shows the name");
	pty_keys(&t, "h");
	expect(&t, "their_name+", "with its cursor where it was");
	pty_keys(&t, "\x1a");
	expect(&t, "undo: revision", "and can take it back");
	expect(&u, " main:", "which the second one shows");
	ok(command("analyze", "--force", NULL) == 0, "another process analyses anew");
	pty_pump(&t, 2000, 300);
	check_redraw(&t, "on the new image");
	pty_keys(&t, "gmain\r");
	expect(&t, "from outside", "which keeps what was said");
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS), "q leaves");
	pty_stop(&t);
	pty_stop(&u);
}

static void test_resize_storm(void)
{
	struct pty_term t;
	unsigned rng = 7;
	start(&t, TARGET, NULL, 80, 24);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "gmain\r");
	pty_pump(&t, 2000, 200);
	for (int i = 0; i < 150; i++) {
		rng = rng * 1103515245u + 12345u;
		pty_resize(&t, 40 + (int)(rng >> 16) % 361, 10 + (int)(rng >> 8) % 111);
		if (i % 3 == 0)
			pty_keys(&t, i % 2 ? "\x04" : "\x15");
		pty_pump(&t, (int)(rng >> 20) % 12, 0);
	}
	pty_resize(&t, 100, 30);
	expect(&t, "Ctrl+P", "the footer after a storm of sizes");
	check_redraw(&t, "after a storm of sizes");
	pty_resize(&t, 40, 10);
	ok(wait_gone(&t, "Functions") && strncmp(pty_text(&t), " bash", 5) == 0, "40x10 shows the header");
	pty_resize(&t, 400, 120);
	expect(&t, "Functions", "400x120 shows the functions again");
	pty_stop(&t);
}

static void test_paste(void)
{
	struct pty_term t;
	char *text = malloc(1 << 20);
	start(&t, TARGET, NULL, 100, 30);
	pty_wait(&t, "ready", WAIT_MS);
	memset(text, 'q', 1 << 20);
	pty_keys(&t, "\x1b[200~qqq\x1b[201~");
	pty_pump(&t, 500, 100);
	ok(alive(&t), "a paste outside a prompt presses no key");
	pty_keys(&t, "g\x1b[200~");
	pty_send(&t, text, 1 << 20);
	pty_keys(&t, "\x1b[201~");
	expect(&t, "go to: ", "a megabyte pasted into a prompt");
	pty_keys(&t, "\x03");
	ok(wait_gone(&t, "go to: ") && alive(&t), "and Ctrl+C closes it");
	free(text);
	pty_stop(&t);
}

static long status_value(pid_t pid, const char *key)
{
	char path[64];
	char line[256];
	long value = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtol(line + strlen(key), NULL, 10);
	}
	if (f)
		fclose(f);
	return value;
}

static void test_idle(void)
{
	struct pty_term t;
	start(&t, TARGET, NULL, 120, 40);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "j"); /* the footer changes only as long as nobody did anything */
	pty_pump(&t, 5000, 500);
	size_t len = t.log.len;
	long switches = status_value(t.pid, "voluntary_ctxt_switches:");
	pty_pump(&t, 1500, 0);
	ok(t.log.len == len, "idle: no byte is written");
	ok(status_value(t.pid, "voluntary_ctxt_switches:") == switches, "idle: nothing wakes it");
	pty_stop(&t);
}

static size_t bytes_of(struct pty_term *t, const char *keys)
{
	pty_pump(t, 3000, 200);
	size_t before = t->log.len;
	pty_keys(t, keys);
	pty_pump(t, 3000, 200);
	return t->log.len - before;
}

/* Bytes for `cnt` lines walked down, the mean of a line. */
static size_t bytes_of_lines(struct pty_term *t, int cnt)
{
	size_t sum = 0;
	for (int i = 0; i < cnt; i++)
		sum += bytes_of(t, "j");
	return sum / (size_t)cnt;
}

static void test_scroll_bytes(void)
{
	static const char *const envs[][3] = {{"SCRY_COLOR=true", NULL}, {"SCRY_NO=margins sync keys", "TERM=tmux-256color", NULL}};
	static const char *const names[] = {"with margins", "without margins, as in tmux"};
	for (size_t i = 0; i < sizeof(envs) / sizeof(envs[0]); i++) {
		struct pty_term t;
		start(&t, TARGET, envs[i], 200, 60);
		pty_wait(&t, "ready", WAIT_MS);
		pty_keys(&t, "gmain\r\x04\x04");
		for (int n = 0; n < 60; n++)
			pty_keys(&t, "j");
		size_t both = bytes_of_lines(&t, 12);
		ok(both > 0 && both <= 1024, "one scrolled line at 200x60 with the functions pane, %s: %zu bytes", names[i], both);
		pty_keys(&t, "\x02");
		for (int n = 0; n < 3000 && strstr(pty_text(&t), "Functions"); n++)
			pty_pump(&t, 10, 0);
		size_t alone = bytes_of_lines(&t, 4);
		ok(alone > 0 && alone <= 1024, "one scrolled line without it, %s: %zu bytes", names[i], alone);
		check_redraw(&t, "after scrolling");
		pty_stop(&t);
	}
}

static void test_stuck_reader(void)
{
	struct pty_term t;
	start(&t, TARGET, NULL, 200, 60);
	pty_wait(&t, "ready", WAIT_MS);
	pty_pump(&t, 2000, 200);
	long before = status_value(t.pid, "VmRSS:");
	/* Nobody reads: the program must take the keys all the same and not queue frames. */
	for (int i = 0; i < 400; i++) {
		pty_keys(&t, i % 50 == 0 ? "\x12" : "\x04");
		usleep(10000);
	}
	long after = status_value(t.pid, "VmRSS:");
	ok(alive(&t), "a terminal that reads nothing does not stop it");
	ok(after - before < 16384, "and it keeps no frames (%ld KB more)", after - before);
	check_redraw(&t, "after the terminal reads again");
	for (int i = 0; i < 200; i++)
		pty_keys(&t, "\x12");
	kill(t.pid, SIGTERM);
	int waited = 0;
	for (; waited < 1000 && waitpid(t.pid, &t.status, WNOHANG) != t.pid; waited++)
		usleep(10000);
	t.is_ended = waited < 1000;
	ok(t.is_ended, "SIGTERM ends it though nobody reads");
	pty_stop(&t);
}

static bool mode_is_off(const struct pty_term *t, const char *mode)
{
	char on[16];
	char off[16];
	snprintf(on, sizeof(on), "\x1b[?%sh", mode);
	snprintf(off, sizeof(off), "\x1b[?%sl", mode);
	bool is_on = false;
	for (size_t i = 0; i + strlen(on) <= t->log.len; i++) {
		if (memcmp(t->log.data + i, on, strlen(on)) == 0)
			is_on = true;
		else if (memcmp(t->log.data + i, off, strlen(off)) == 0)
			is_on = false;
	}
	return !is_on;
}

static bool input_is_empty(struct pty_term *t)
{
	int left = 0;
	struct termios raw = t->before;
	cfmakeraw(&raw);
	tcsetattr(t->slave, TCSANOW, &raw);
	ioctl(t->slave, FIONREAD, &left);
	return left == 0;
}

static void check_trace(struct pty_term *t, const char *how)
{
	static const char *const modes[] = {"1000", "1002", "1006", "2004", "1004", "1049", "2026", "69"};
	struct termios after;
	tcgetattr(t->slave, &after);
	bool same = after.c_iflag == t->before.c_iflag && after.c_oflag == t->before.c_oflag &&
		    after.c_lflag == t->before.c_lflag && after.c_cflag == t->before.c_cflag;
	ok(same, "%s: the terminal's settings are as before", how);
	ok(!t->is_alt_screen && t->is_cursor_shown && t->mouse == VTERM_PROP_MOUSE_NONE, "%s: main screen, cursor, no mouse", how);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!mode_is_off(t, modes[i]))
			ok(false, "%s: mode %s is left on", how, modes[i]);
	}
	ok(memmem(t->log.data, t->log.len, "\x1b[?7h", 5) != NULL, "%s: autowrap is back", how);
	ok(input_is_empty(t), "%s: no reply is left for the shell", how);
}

static void test_leaves_no_trace(void)
{
	static const struct { const char *name; int sig; } ways[] = {
		{"q", 0}, {"SIGTERM", SIGTERM}, {"SIGHUP", SIGHUP}, {"SIGINT", SIGINT}, {"SIGSEGV", SIGSEGV}, {"SIGABRT", SIGABRT}};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pty_term t;
		start(&t, TARGET, NULL, 100, 30);
		pty_wait(&t, "Ctrl+P", WAIT_MS);
		/* A fault cannot wait for replies to what the terminal has not read yet. */
		for (int ms = 0; ms < WAIT_MS && !log_has(&t, "\x1b[c"); ms += 50)
			pty_pump(&t, 50, 0);
		if (ways[i].sig)
			kill(t.pid, ways[i].sig);
		else
			pty_keys(&t, "q");
		ok(pty_wait_end(&t, WAIT_MS), "%s ends it", ways[i].name);
		check_trace(&t, ways[i].name);
		pty_stop(&t);
	}
	/* Gone before the terminal could answer. */
	struct pty_term t;
	start(&t, TARGET, NULL, 100, 30);
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS), "q typed before the start ends it");
	ok(input_is_empty(&t), "and the answers of the terminal do not land in the shell");
	pty_stop(&t);
}

static void test_terminals(void)
{
	static const struct { const char *env; const char *has, *has_not; } rows[] = {
		{"NO_COLOR=1", "\x1b[0m", ";2;"},
		{"SCRY_COLOR=16", "\x1b[0;37;40m", ";5;"},
		{"SCRY_COLOR=256", ";5;", "38;2;2"},
		{"SCRY_COLOR=true", "48;2;20;23;28", "38;5;"},
	};
	struct pty_term t;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *env[] = {rows[i].env, NULL};
		start(&t, TARGET, env, 100, 30);
		pty_wait(&t, "ready", WAIT_MS);
		pty_pump(&t, 2000, 200);
		/* The question about 24-bit colour is asked in any case; look behind it. */
		char *after = memmem(t.log.data, t.log.len, "\x1b[c", 3);
		size_t at = after ? (size_t)(after - t.log.data) : 0;
		memmove(t.log.data, t.log.data + at, t.log.len - at);
		t.log.len -= at;
		ok(log_has(&t, rows[i].has) && !log_has(&t, rows[i].has_not), "%s", rows[i].env);
		pty_stop(&t);
	}
	const char *plain[] = {"LC_ALL=C", NULL};
	start(&t, TARGET, plain, 100, 30);
	pty_wait(&t, "ready", WAIT_MS);
	pty_keys(&t, "H");
	pty_wait(&t, "Keys", WAIT_MS);
	bool is_ascii = true;
	for (size_t i = 0; i < t.log.len; i++)
		is_ascii = is_ascii && (uint8_t)t.log.data[i] < 0x80;
	ok(is_ascii, "a locale without UTF-8 gets ASCII");
	pty_stop(&t);
	const char *dumb[] = {"TERM=dumb", NULL};
	start(&t, TARGET, dumb, 100, 30);
	pty_keys(&t, "x\rq\r");
	ok(pty_wait_end(&t, WAIT_MS) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "TERM=dumb ends with 0");
	ok(log_has(&t, "a line at a time") && log_has(&t, "References:") && !log_has(&t, "\x1b"), "and is a line at a time, without a sequence");
	pty_stop(&t);
}

static bool copy_file(const char *from, const char *to)
{
	char bytes[65536];
	size_t n;
	FILE *in = fopen(from, "rb");
	FILE *out = fopen(to, "wb");
	while (in && out && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		fwrite(bytes, 1, n, out);
	bool is_good = in && out;
	if (in)
		fclose(in);
	return out ? fclose(out) == 0 && is_good : false;
}

static void test_target_is_cut(void)
{
	char path[256];
	struct pty_term t;
	snprintf(path, sizeof(path), "%s/cut-me", getenv("SCRY_STORE"));
	if (!copy_file(TARGET, path)) {
		ok(false, "a copy to cut");
		return;
	}
	start(&t, path, NULL, 110, 30);
	pty_wait(&t, "ready", WAIT_MS);
	ok(truncate(path, 4096) == 0, "the file is cut while it is open");
	pty_keys(&t, "gmain\r\x04\x04\\\x04\x04\\\"jj");
	expect(&t, "the file has changed on disk", "the header says that the file has changed");
	ok(alive(&t), "and no fault ends it");
	pty_keys(&t, "q");
	ok(pty_wait_end(&t, WAIT_MS), "q leaves");
	pty_stop(&t);
	unlink(path);
}

static void test_bad_files(void)
{
	static const char *const files[] = {"/nonexistent/file", "/tmp", "/dev/null"};
	struct pty_term t;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		start(&t, files[i], NULL, 100, 30);
		ok(pty_wait_end(&t, WAIT_MS) && WIFEXITED(t.status) && WEXITSTATUS(t.status) != 0 && log_has(&t, "scry: ") &&
		   !log_has(&t, "1049h"), "%s: a line on stderr and no full screen", files[i]);
		pty_stop(&t);
	}
}

struct test {
	const char *name;
	void (*run)(void);
};

int main(void)
{
	static const struct test tests[] = {
		{"first", test_first_frames}, {"huge", test_huge}, {"walk", test_walk}, {"keys", test_every_key},
		{"edit", test_edit}, {"define", test_define}, {"others", test_others},
		{"resize", test_resize_storm},
		{"paste", test_paste}, {"idle", test_idle}, {"scroll", test_scroll_bytes}, {"stuck", test_stuck_reader},
		{"trace", test_leaves_no_trace}, {"terminals", test_terminals}, {"cut", test_target_is_cut}, {"bad", test_bad_files},
		{"graph", test_graph}, {"big", test_big_graph}};
	const char *const only = getenv("ONLY");
	char store[] = "/tmp/scry-pty-XXXXXX";
	scry = getenv("SCRY");
	if (!scry || access(scry, X_OK) || access(TARGET, R_OK)) {
		printf("1..0 # skip SCRY or " TARGET " is missing\n");
		return 0;
	}
	if (!mkdtemp(store))
		return 2;
	setenv("SCRY_STORE", store, 1);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (!only || strstr(only, tests[i].name))
			tests[i].run();
	}
	printf("1..%d\n", test_cnt);
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", store, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return fail_cnt ? 1 : 0;
}
