/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/term/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER_MODES "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b(B\x1b[?1004l" /* alternate screen, no autowrap, ASCII, no focus events */
#define ENTER_MOUSE "\x1b[?1000h\x1b[?1002h\x1b[?1006h"          /* buttons, drags, SGR form */
#define ENTER_PASTE "\x1b[?2004h"
/* CAN ends a sequence that was cut in the middle. */
#define LEAVE_MODES                                                          \
	"\x18\x1b[?2026l\x1b[r\x1b[?69l\x1b[m\x1b[?1006l\x1b[?1002l\x1b[?1000l" \
	"\x1b[?2004l\x1b[?7h\x1b[?25h"
#define LEAVE_KEY_CODES "\x1b[<u"
#define LEAVE_SCREEN "\x1b[?1049l"
#define LEAVE_CONSOLE "\x1b[H\x1b[J"

/*
 * What a signal handler needs to give the terminal back. The only global state of the terminal code: a handler has no
 * argument to find it through. Written before is_active is set, read only while it is.
 */
static struct {
	volatile sig_atomic_t is_active;
	int fd;
	struct termios saved;
	struct termios raw;
	char leave[256];
	size_t leave_len;
} tty_saved;

static struct sigaction tty_previous[NSIG];
static char tty_fault_stack[16384];

/* Async-signal-safe. Gives up after 200 ms of a terminal that takes nothing. */
static void write_all(int fd, const char *s, size_t len)
{
	for (int tries = 0; len && tries < 8;) {
		ssize_t n = write(fd, s, len);
		if (n > 0) {
			s += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return;
		} else {
			struct pollfd p = {.fd = fd, .events = POLLOUT};
			poll(&p, 1, 25);
			tries++;
		}
	}
}

static void leave_now(void)
{
	if (!tty_saved.is_active)
		return;
	tty_saved.is_active = 0;
	write_all(tty_saved.fd, tty_saved.leave, tty_saved.leave_len);
	tcsetattr(tty_saved.fd, TCSANOW, &tty_saved.saved);
}

static void on_fault(int sig)
{
	int saved_errno = errno;
	bool was_active = tty_saved.is_active;
	leave_now();
	/* Neither the terminal's replies nor keys meant for the workbench are typed into the shell. */
	if (was_active)
		tcflush(tty_saved.fd, TCIFLUSH);
	/* The handler that was there before (a sanitizer's, or the default that ends us) gets the signal next. */
	sigaction(sig, &tty_previous[sig], NULL);
	raise(sig);
	errno = saved_errno;
}

void term_tty_catch_faults(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS};
	stack_t stack = {.ss_sp = tty_fault_stack, .ss_size = sizeof(tty_fault_stack)};
	stack_t old;
	if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE)
		sigaltstack(&stack, NULL);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct sigaction act = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
		sigemptyset(&act.sa_mask);
		sigaction(faults[i], &act, &tty_previous[faults[i]]);
	}
}

static void build_leave(const struct term_tty *t, bool is_console)
{
	int n = snprintf(tty_saved.leave, sizeof(tty_saved.leave), "%s%s%s", LEAVE_MODES, t->has_key_codes ? LEAVE_KEY_CODES : "",
			 is_console ? LEAVE_CONSOLE : LEAVE_SCREEN);
	tty_saved.leave_len = (size_t)n;
}

static void enter(struct term_tty *t)
{
	tcsetattr(tty_saved.fd, TCSANOW, &tty_saved.raw);
	tty_saved.is_active = 1;
	buf_add_str(&t->pending, ENTER_MODES);
	if (!t->no_mouse)
		buf_add_str(&t->pending, ENTER_MOUSE);
	if (!t->no_paste)
		buf_add_str(&t->pending, ENTER_PASTE);
}

struct err *term_tty_open(struct term_tty *t, const struct term_caps *caps)
{
	memset(t, 0, sizeof(*t));
	t->fd = -1;
	t->no_mouse = term_caps_no(caps, TERM_CAP_MOUSE);
	t->no_paste = term_caps_no(caps, TERM_CAP_PASTE);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_new(ERR_ENV, "the workbench needs a terminal on stdin and stdout");
	char name[128];
	if (ttyname_r(STDIN_FILENO, name, sizeof(name)) == 0)
		t->fd = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (t->fd < 0) {
		t->fd = STDIN_FILENO;
		t->is_shared_fd = true;
		fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) | O_NONBLOCK);
	}
	if (tcgetattr(t->fd, &tty_saved.saved) < 0)
		return err_os(errno, "terminal settings");
	tty_saved.raw = tty_saved.saved;
	cfmakeraw(&tty_saved.raw);
	tty_saved.raw.c_cc[VMIN] = 0;
	tty_saved.raw.c_cc[VTIME] = 0;
	tty_saved.fd = t->fd;
	build_leave(t, caps->is_console);
	enter(t);
	return NULL;
}

/* Replies on their way would be typed into the shell: wait for the last of them. */
static void drain_replies(const struct term_tty *t, const struct term_caps *caps)
{
	char sink[512];
	for (int i = 0; i < 10 && caps->is_asked && !caps->is_answered; i++) {
		struct pollfd p = {.fd = t->fd, .events = POLLIN};
		if (poll(&p, 1, 20) <= 0)
			continue;
		ssize_t n = read(t->fd, sink, sizeof(sink));
		if (n <= 0 || memchr(sink, 'c', (size_t)n))
			break;
	}
	tcflush(t->fd, TCIFLUSH);
}

void term_tty_close(struct term_tty *t, const struct term_caps *caps)
{
	if (t->fd < 0)
		return;
	if (!term_tty_is_stuck(t))
		drain_replies(t, caps);
	leave_now();
	if (t->is_shared_fd)
		fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) & ~O_NONBLOCK);
	else
		close(t->fd);
	t->fd = -1;
	buf_fini(&t->pending);
}

void term_tty_suspend(struct term_tty *t)
{
	t->pending.len = t->sent = 0;
	leave_now();
}

void term_tty_resume(struct term_tty *t)
{
	enter(t);
	if (t->has_key_codes)
		buf_add_str(&t->pending, "\x1b[>1u");
}

void term_tty_use_key_codes(struct term_tty *t)
{
	if (t->has_key_codes)
		return;
	t->has_key_codes = true;
	build_leave(t, false);
	buf_add_str(&t->pending, "\x1b[>1u");
}

void term_tty_size(const struct term_tty *t, int *ret_w, int *ret_h)
{
	struct winsize ws = {0};
	if (ioctl(t->fd, TIOCGWINSZ, &ws) < 0 || !ws.ws_col || !ws.ws_row) {
		ws.ws_col = 80;
		ws.ws_row = 24;
	}
	*ret_w = MIN(ws.ws_col, 4096);
	*ret_h = MIN(ws.ws_row, 4096);
}

bool term_tty_flush(struct term_tty *t)
{
	while (term_tty_is_stuck(t)) {
		ssize_t n = write(t->fd, t->pending.data + t->sent, t->pending.len - t->sent);
		if (n > 0)
			t->sent += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return true;
		else if (n < 0 && errno != EINTR)
			return false;
	}
	t->pending.len = t->sent = 0;
	return true;
}
