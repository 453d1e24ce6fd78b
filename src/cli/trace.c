/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scry trace`. What a program that is traced prints stays its own: lines go to stderr then, as strace's do; JSON goes to stdout, and
 * the program's output to stderr, so that stdout is JSON alone.
 */
#include "cli/cli.h"
#include "cli/cli_int.h"
#include "session/ses_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tracing {
	struct cli c;
	int fd;
	int write_errno; /* why the trace could not be written; 0: it was */
};

static bool trace_write(void *ctx, const char *s, size_t len)
{
	struct tracing *t = ctx;
	while (len) {
		ssize_t n = write(t->fd, s, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			t->write_errno = n ? errno : EIO;
			return false;
		}
		s += n;
		len -= (size_t)n;
	}
	return true;
}

static void trace_say(void *ctx, const char *line)
{
	(void)ctx;
	struct buf text = {0};
	buf_printf(&text, "scry: %s\n", line);
	if (!text.failed)
		(void)!write(STDERR_FILENO, text.data, text.len);
	buf_fini(&text);
}

/* Where the trace goes: a file, else stdout or, beside a program, stderr. */
static struct err *trace_open_out(struct tracing *t)
{
	size_t cnt;
	const char *to = ops_arg_str(&t->c.args, "to");
	ops_arg_texts(&t->c.args, "cmd", &cnt);
	if (to) {
		t->fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		return t->fd < 0 ? err_os(errno == EACCES ? EIO : errno, "%s", to) : NULL;
	}
	bool is_beside = cnt > 0;
	t->fd = fcntl(is_beside && !t->c.is_json ? STDERR_FILENO : STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (t->fd < 0)
		return err_os(errno, "no place for the trace");
	if (is_beside && t->c.is_json && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_os(errno, "no place for the program's output");
	return NULL;
}

/* The same words; behind --capture's list stands a folder, which becomes an option of its own. Ended by null, the caller's to free. */
static char **trace_words(int argc, char **argv)
{
	char **words = calloc((size_t)argc + 2, sizeof(*words));
	int n = 0;
	for (int i = 0; words && i < argc; i++) {
		bool is_it = !strcmp(argv[i], "--capture") && i + 2 < argc && argv[i + 2][0] != '-';
		words[n++] = argv[i];
		if (!strcmp(argv[i], "--")) {
			while (++i < argc)
				words[n++] = argv[i];
		} else if (is_it) {
			words[n++] = argv[i + 1];
			words[n++] = (char *)(uintptr_t)"--capture-dir";
			words[n++] = argv[i + 2];
			for (i += 3; i < argc; i++)
				words[n++] = argv[i];
		}
	}
	return words;
}

static int trace_word_cnt(char **words)
{
	int n = 0;
	while (words[n])
		n++;
	return n;
}

int cli_trace(int argc, char **argv)
{
	struct tracing t = {.c = {.op = ops_find("trace")}, .fd = -1};
	int status = -1;
	ops_args_init(&t.c.args, t.c.op, &t.c.arena);
	char **words = trace_words(argc, argv);
	struct err *e = words ? cli_parse(&t.c, trace_word_cnt(words), words) : &err_nomem;
	if (!e)
		e = trace_open_out(&t);
	struct ses_trace_io io = {.write = trace_write, .say = trace_say, .ctx = &t, .cancel = cli_stop(), .is_json = t.c.is_json,
				  .is_live = !e && isatty(t.fd)};
	if (!e)
		e = ses_trace(&t.c.args, &io, &status);
	/* A reader that went away is no error. */
	if (!e && t.write_errno && t.write_errno != EPIPE) {
		const char *to = ops_arg_str(&t.c.args, "to");
		e = err_os(t.write_errno, "%s", to ? to : "the trace");
	}
	if (t.fd >= 0)
		close(t.fd);
	size_t cmd_cnt;
	ops_arg_texts(&t.c.args, "cmd", &cmd_cnt);
	int exit_status = cli_program_status(e, status, cmd_cnt);
	arena_fini(&t.c.arena);
	free(words);
	return exit_status;
}

int cli_trace_rows(int argc, char **argv)
{
	struct cli c = {.op = ops_find("trace")};
	/* The pipe is no descriptor of what is traced. */
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (null < 0 || fd < 0 || dup2(null, STDOUT_FILENO) < 0)
		return EXIT_FAILURE;
	cli_signals();
	ops_args_init(&c.args, c.op, &c.arena);
	ses_trace_rows(&c.args, cli_parse(&c, argc, argv), fd, cli_stop());
	close(fd);
	arena_fini(&c.arena);
	return EXIT_SUCCESS;
}
