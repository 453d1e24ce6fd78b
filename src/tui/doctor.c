/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui.h"

#include "base/cleanup.h"
#include "session/ops.h"
#include "tui/term/caps.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/*
 * The workbench's part of `scry doctor` and of the manual: what the terminal answers when it is asked, and which settings
 * of tmux are in the way.
 */
#define ASK_MS 300
#define TMUX_MS 1000

static const char *env_get(const char *name)
{
	return getenv(name);
}

static void on_event(void *ctx, const struct term_ev *ev)
{
	if (ev->type == TERM_EV_REPLY)
		term_caps_reply(ctx, ev);
}

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Asks as the workbench does, and waits for the last answer; the terminal is as it was afterwards. */
static void ask(struct term_caps *c)
{
	_cleanup_close_ int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios was;
	struct termios raw;
	struct term_input in = {0};
	char bytes[512];
	if (fd < 0 || c->is_dumb || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &was))
		return;
	raw = was;
	cfmakeraw(&raw);
	tcsetattr(fd, TCSAFLUSH, &raw);
	const char *queries = term_caps_queries(c);
	c->is_asked = write(fd, queries, strlen(queries)) > 0;
	int64_t end = now_ms() + ASK_MS;
	for (int64_t left = ASK_MS; c->is_asked && !c->is_answered && left > 0; left = end - now_ms()) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n = poll(&p, 1, (int)left) > 0 ? read(fd, bytes, sizeof(bytes)) : 0;
		if (n > 0)
			term_input_feed(&in, bytes, (size_t)n, on_event, c);
	}
	tcsetattr(fd, TCSAFLUSH, &was);
}

/* Standard output of a program, at most cap - 1 bytes of its first line; "" when it cannot be had in time. */
static void first_line(char *const argv[], char *out, size_t cap)
{
	extern char **environ;
	int fds[2];
	pid_t pid;
	posix_spawn_file_actions_t acts;
	size_t len = 0;
	*out = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return;
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&acts, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&acts, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	bool is_running = posix_spawnp(&pid, argv[0], &acts, NULL, argv, environ) == 0;
	posix_spawn_file_actions_destroy(&acts);
	close(fds[1]);
	struct pollfd p = {.fd = fds[0], .events = POLLIN};
	while (is_running && len + 1 < cap && poll(&p, 1, TMUX_MS) > 0) {
		ssize_t n = read(fds[0], out + len, cap - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(fds[0]);
	if (is_running) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	out[len] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

struct tmux_setting {
	const char *name, *flag; /* of show-options: server or global */
	const char *good;        /* what is fine; null: a number below 100 */
	const char *why, *fix;
};

static const struct tmux_setting tmux_settings[] = {
	{"escape-time", "-sv", NULL, "every lone Esc comes so many milliseconds late", "set -sg escape-time 10 (until then Backspace goes back)"},
	{"set-clipboard", "-sv", "on", "what is copied does not reach tmux's buffer", "set -s set-clipboard on (until then the file has it)"},
	{"mouse", "-gv", "on", "the mouse does not reach the workbench", "set -g mouse on"},
	{"default-terminal", "-sv", "tmux-256color", "programs are told of fewer colours and keys", "set -s default-terminal tmux-256color"},
};

static void tmux_row(struct ops_req *rq, const struct tmux_setting *s)
{
	char what[64];
	char now[64];
	char *argv[] = {(char *)"tmux", (char *)"show-options", (char *)s->flag, (char *)s->name, NULL};
	first_line(argv, now, sizeof(now));
	bool is_good = s->good ? !strcmp(now, s->good) : *now && strtol(now, NULL, 10) < 100;
	snprintf(what, sizeof(what), "tmux %s", s->name);
	ops_doctor_row(rq, what, is_good || !*now ? NULL : err_fix(err_new(ERR_ENV, "%s: %s", now, s->why), "%s", s->fix), *now ? now : "not told");
}

static bool has_cap(const struct term_caps *c, enum term_cap cap)
{
	switch (cap) {
	case TERM_CAP_TRUECOLOR:
		return c->depth == TERM_TRUE;
	case TERM_CAP_SYNC:
		return c->has_sync;
	case TERM_CAP_MARGINS:
		return c->has_margins;
	case TERM_CAP_BCE:
		return c->has_bce;
	case TERM_CAP_KEYS:
		return c->has_key_codes;
	case TERM_CAP_GROUND:
		return c->has_ground;
	case TERM_CAP_UNICODE:
		return c->is_utf8;
	case TERM_CAP_MOUSE:
	case TERM_CAP_PASTE:
	case TERM_CAP_CLIPBOARD:
	case TERM_CAP_COUNT:
		break;
	}
	return true;
}

static bool is_asked_for(enum term_cap cap)
{
	return cap != TERM_CAP_MOUSE && cap != TERM_CAP_PASTE && cap != TERM_CAP_CLIPBOARD && cap != TERM_CAP_UNICODE;
}

static void cap_row(struct ops_req *rq, const struct term_caps *c, enum term_cap cap)
{
	char what[64];
	char why[192];
	const char *state = term_caps_no(c, cap) ? "not used: SCRY_NO says so" : !has_cap(c, cap) ? (c->is_answered ? "no" : "not known") :
			    is_asked_for(cap) ? "yes" : "used";
	snprintf(what, sizeof(what), "terminal: %s", term_cap_name(cap));
	snprintf(why, sizeof(why), "%s (%s; --no-%s does without)", state, term_cap_text(cap), term_cap_name(cap));
	ops_doctor_row(rq, what, NULL, why);
}

static void doctor(struct ops_req *rq)
{
	struct term_caps c;
	char name[160];
	term_caps_env(&c, env_get);
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		ask(&c);
	snprintf(name, sizeof(name), "%s, %s colours%s", *c.name ? c.name : "it does not say its name", term_depth_name(c.depth),
		 c.is_answered ? "" : c.is_asked ? " (it answers no questions)" : " (not asked: no terminal here)");
	ops_doctor_row(rq, "terminal: name", NULL, name);
	for (int cap = 0; cap < TERM_CAP_COUNT; cap++)
		cap_row(rq, &c, (enum term_cap)cap);
	for (size_t i = 0; i < ARRAY_LEN(tmux_settings) && getenv("TMUX") && *getenv("TMUX"); i++)
		tmux_row(rq, &tmux_settings[i]);
}

static void man(struct buf *out)
{
	buf_add_str(out, ".SH OPTIONS OF THE WORKBENCH\nThey stand before the file; each is a spelling of a variable of the environment.\n"
			 ".TP\n.B \\-\\-keys \\fINAME\\fR, SCRY_KEYS\n"
			 "keys as in ida, ghidra, binja, vim\\-strict or r2, or a file (with a / in its name).\n"
			 "The person's own, $XDG_CONFIG_HOME/scry/keys, lie over them; a line\n.B preset \\fINAME\\fR\nthere chooses as well.\n"
			 ".B scry keys \\-\\-preset \\fINAME\\fR\nprints them. A line is\n.B ACTION = KEY...\nor\n.B ACTION += KEY...\n"
			 "where a key is g, Ctrl+P, F3 or two in a row: gg, ,f;\n.B langmap FROM TO\nsays which key of another layout is which.\n"
			 ".TP\n.B \\-\\-color \\fIDEPTH\\fR, SCRY_COLOR\ncolours: true, 256, 16 or mono, whatever the terminal says\n"
			 ".TP\n.B \\-\\-plain\na line at a time, for screen readers\n");
	buf_add_str(out, ".TP\n.B \\-\\-no\\-\\fICAPABILITY\\fR, SCRY_NO\nwhat is not to be used of the terminal, in SCRY_NO several words:\n");
	for (int c = 0; c < TERM_CAP_COUNT; c++) {
		buf_printf(out, ".br\n.B %s\n(", term_cap_name((enum term_cap)c));
		for (const char *s = term_cap_text((enum term_cap)c); *s; s++) {
			if (*s == '-')
				buf_add_ch(out, '\\');
			buf_add_ch(out, *s);
		}
		buf_add_str(out, ")\n");
	}
	buf_add_str(out, ".B scry doctor\nsays which of them this terminal has.\n");
}

void tui_join_operations(void)
{
	static const struct ops_front front = {.doctor = doctor, .man = man};
	ops_set_front(&front);
}
