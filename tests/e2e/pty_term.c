/* SPDX-License-Identifier: Apache-2.0 */
#include "pty_term.h"

#include "base/utf8.h"
#include "tui/term/input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

static long now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int on_prop(VTermProp prop, VTermValue *val, void *user)
{
	struct pty_term *t = user;
	if (prop == VTERM_PROP_CURSORVISIBLE)
		t->is_cursor_shown = val->boolean;
	else if (prop == VTERM_PROP_ALTSCREEN)
		t->is_alt_screen = val->boolean;
	else if (prop == VTERM_PROP_MOUSE)
		t->mouse = val->number;
	return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = on_prop};

/* What the model answers goes back to the program as if typed. */
static void on_output(const char *s, size_t len, void *user)
{
	pty_send(user, s, len);
}

static void run_child(struct pty_term *t, char *const argv[], const char *const env[])
{
	static const char *const kept[] = {"PATH", "HOME", "SCRY_STORE", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH"};
	char *values[sizeof(kept) / sizeof(kept[0])];
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		char *v = getenv(kept[i]);
		values[i] = v ? strdup(v) : NULL;
	}
	clearenv();
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (values[i])
			setenv(kept[i], values[i], 1);
	}
	setenv("TERM", "xterm-256color", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("SCRY_KEYS", "ida", 1); /* chosen: no first start */
	for (; env && *env; env++)
		putenv((char *)*env);
	close(t->fd);
	login_tty(t->slave);
	execv(argv[0], argv);
	_exit(127);
}

void pty_start(struct pty_term *t, char *const argv[], const char *const env[], int w, int h)
{
	struct winsize ws = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
	memset(t, 0, sizeof(*t));
	t->w = w;
	t->h = h;
	t->is_cursor_shown = true;
	if (openpty(&t->fd, &t->slave, NULL, NULL, &ws) < 0) {
		perror("openpty");
		exit(2);
	}
	fcntl(t->fd, F_SETFD, FD_CLOEXEC);
	fcntl(t->fd, F_SETFL, O_NONBLOCK);
	tcgetattr(t->slave, &t->before);
	t->vt = vterm_new(h, w);
	vterm_set_utf8(t->vt, 1);
	vterm_output_set_callback(t->vt, on_output, t);
	t->screen = vterm_obtain_screen(t->vt);
	vterm_screen_set_callbacks(t->screen, &callbacks, t);
	vterm_screen_enable_altscreen(t->screen, 1);
	vterm_screen_reset(t->screen, 1);
	t->pid = fork();
	if (t->pid == 0)
		run_child(t, argv, env);
}

void pty_stop(struct pty_term *t)
{
	if (!t->is_ended) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, &t->status, 0);
	}
	close(t->fd);
	close(t->slave);
	vterm_free(t->vt);
	buf_fini(&t->log);
}

/* Whether a thread of the program wants a processor or a disk: on a loaded machine it can be silent and not be done. */
static bool is_busy(const struct pty_term *t)
{
	char path[64];
	bool busy = false;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	DIR *d = t->is_ended ? NULL : opendir(path);
	for (struct dirent *e; d && !busy && (e = readdir(d));) {
		char line[512];
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", (int)t->pid, e->d_name);
		FILE *f = fopen(path, "re");
		if (f && fgets(line, sizeof(line), f)) {
			const char *state = strrchr(line, ')'); /* proc(5): the name before it may hold anything */
			busy = state && (state[2] == 'R' || state[2] == 'D');
		}
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return busy;
}

void pty_pump(struct pty_term *t, int ms, int quiet_ms)
{
	char bytes[16384];
	long end = now_ms() + ms, last = now_ms() + 10L * ms;
	long quiet_end = now_ms() + quiet_ms;
	for (;;) {
		long left = (quiet_ms && quiet_end < end ? quiet_end : end) - now_ms();
		struct pollfd p = {.fd = t->fd, .events = POLLIN};
		if (left <= 0 || poll(&p, 1, (int)left) <= 0) {
			if (!quiet_ms || now_ms() >= last || !is_busy(t))
				return;
			quiet_end = now_ms() + quiet_ms;
			end = quiet_end > end ? quiet_end : end;
			continue;
		}
		ssize_t n = read(t->fd, bytes, sizeof(bytes));
		if (n <= 0)
			return;
		buf_add(&t->log, bytes, (size_t)n);
		vterm_input_write(t->vt, bytes, (size_t)n);
		quiet_end = now_ms() + quiet_ms;
	}
}

void pty_send(struct pty_term *t, const char *bytes, size_t len)
{
	for (int tries = 0; len && tries < 4000;) {
		ssize_t n = write(t->fd, bytes, len);
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EAGAIN) {
			return;
		} else {
			struct pollfd p = {.fd = t->fd, .events = POLLOUT};
			poll(&p, 1, 5);
			tries++;
		}
	}
}

void pty_keys(struct pty_term *t, const char *keys)
{
	pty_send(t, keys, strlen(keys));
}

void pty_resize(struct pty_term *t, int w, int h)
{
	struct winsize ws = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
	t->w = w;
	t->h = h;
	vterm_set_size(t->vt, h, w);
	ioctl(t->fd, TIOCSWINSZ, &ws);
}

const char *pty_text(struct pty_term *t)
{
	static char text[400 * 120 * 8];
	size_t n = 0;
	for (int y = 0; y < t->h; y++) {
		for (int x = 0; x < t->w && n + 16 < sizeof(text); x++) {
			VTermScreenCell c;
			if (!vterm_screen_get_cell(t->screen, (VTermPos){.row = y, .col = x}, &c) || c.chars[0] == UINT32_MAX)
				continue;
			n += utf8_put(c.chars[0] ? c.chars[0] : ' ', text + n);
		}
		while (n && text[n - 1] == ' ')
			n--;
		text[n++] = '\n';
	}
	text[n] = '\0';
	return text;
}

bool pty_wait(struct pty_term *t, const char *text, int ms)
{
	long end = now_ms() + ms;
	while (!strstr(pty_text(t), text)) {
		if (now_ms() >= end)
			return false;
		pty_pump(t, 20, 0);
	}
	return true;
}

bool pty_wait_end(struct pty_term *t, int ms)
{
	long end = now_ms() + ms;
	while (waitpid(t->pid, &t->status, WNOHANG) != t->pid) {
		if (now_ms() >= end)
			return false;
		pty_pump(t, 20, 0);
	}
	t->is_ended = true;
	pty_pump(t, 200, 50);
	return true;
}

size_t pty_encode_key(uint32_t key, unsigned mods, char out[PTY_KEY_MAX])
{
	static const char *const plain[] = {"\x1b", "\r", "\t", "\x7f"};
	static const char finals[] = "ABDCHF";
	static const int numbers[] = {5, 6, 2, 3, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24};
	unsigned param = 1 + (mods & TERM_SHIFT ? 1 : 0) + (mods & TERM_ALT ? 2 : 0) + (mods & TERM_CTRL ? 4 : 0);
	if (key == TERM_KEY_TAB && mods == TERM_SHIFT)
		return (size_t)snprintf(out, PTY_KEY_MAX, "\x1b[Z");
	if (key >= TERM_KEY_ESC && key <= TERM_KEY_BACKSPACE)
		return (size_t)snprintf(out, PTY_KEY_MAX, "%s", plain[key - TERM_KEY_ESC]);
	if (key >= TERM_KEY_UP && key <= TERM_KEY_END)
		return (size_t)snprintf(out, PTY_KEY_MAX, "\x1b[1;%u%c", param, finals[key - TERM_KEY_UP]);
	if (key >= TERM_KEY_PGUP)
		return (size_t)snprintf(out, PTY_KEY_MAX, "\x1b[%d;%u~", numbers[key - TERM_KEY_PGUP], param);
	size_t n = 0;
	if (mods & TERM_ALT)
		out[n++] = '\x1b';
	if (mods & TERM_CTRL)
		out[n++] = (char)(key & 0x1f);
	else
		n += utf8_put(key, out + n);
	return n;
}
