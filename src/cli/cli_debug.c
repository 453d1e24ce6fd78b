/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scry debug`. Commands come from -b and -e, else from standard input: with a prompt where that is a terminal. What the target prints is
 * its own; what scry says of it goes to stdout.
 */
#include "cli/cli_int.h"
#include "cli/cli_line.h"
#include "session/ses_debug.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Whether a bar is on the line of the terminal. */
static struct cli debug_shown;
/* What Ctrl+C stops while a target runs. */
static struct ses_debug *_Atomic debug_running;
static atomic_bool debug_stop, debug_give_up;

static void on_interrupt(int sig)
{
	(void)sig;
	struct ses_debug *s = atomic_load(&debug_running);
	/* The second one does not wait for a server any more. */
	if (atomic_exchange(&debug_stop, true))
		atomic_store(&debug_give_up, true);
	if (s)
		ses_debug_interrupt(s);
}

static void put_output(void *ctx, const char *s, size_t len)
{
	(void)ctx;
	while (len) {
		ssize_t n = write(STDOUT_FILENO, s, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		s += n;
		len -= (size_t)n;
	}
}

/* A file of the server's machine comes along, at a terminal. */
static void put_progress(void *ctx, const struct ses_remote_progress *p)
{
	char text[80];
	(void)ctx;
	if (!isatty(STDERR_FILENO) || !p->came_len)
		return;
	snprintf(text, sizeof(text), "fetching, file %u of %u", MIN(p->done_cnt + 1, p->file_cnt), p->file_cnt);
	cli_put_progress(p->done_len, p->total_len, text);
	debug_shown.is_progress = true;
}

/* One command; gives the exit status of what went wrong, 0. */
static int run_line(struct ses_debug *s, const char *line, bool *ret_quit)
{
	struct buf out = {0};
	atomic_store(&debug_stop, false);
	struct err *e = ses_debug_command(s, line, &out, ret_quit);
	cli_progress_end(&debug_shown);
	put_output(NULL, out.data, out.len);
	buf_fini(&out);
	return e ? cli_fail(e) : 0;
}

static bool complete_line(void *ctx, const char *line, unsigned i, char *out, size_t cap)
{
	return ses_debug_complete(ctx, line, i, out, cap);
}

static int run_prompt(struct ses_debug *s)
{
	struct cli_line l = {.complete = complete_line, .ctx = s};
	bool is_quit = false, is_interrupted;
	int status = 0;
	bool is_person = isatty(STDIN_FILENO);
	const char *line;
	while (!is_quit && (line = cli_line_read(&l, "(scry) ", &is_interrupted))) {
		/* Of a script the first line that fails ends it. */
		status = is_interrupted ? 0 : run_line(s, line, &is_quit);
		if (status && !is_person)
			break;
	}
	cli_line_fini(&l);
	return is_person ? 0 : status;
}

static int run_script(struct ses_debug *s, const struct cli *c)
{
	size_t cnt;
	bool is_quit = false;
	int status = 0;
	uint64_t pid = ops_arg_u64(&c->args, "pid", 0);
	char attach[32];
	snprintf(attach, sizeof(attach), "attach %llu", (unsigned long long)pid);
	if (pid)
		status = run_line(s, attach, &is_quit);
	const char *const *places = ops_arg_texts(&c->args, "break", &cnt);
	for (size_t i = 0; i < cnt && !status; i++) {
		struct buf line = {0};
		buf_printf(&line, "break %s", places[i]);
		buf_add_ch(&line, 0);
		status = line.failed ? cli_fail(&err_nomem) : run_line(s, line.data, &is_quit);
		buf_fini(&line);
	}
	const char *const *lines = ops_arg_texts(&c->args, "execute", &cnt);
	for (size_t i = 0; i < cnt && !status && !is_quit; i++)
		status = run_line(s, lines[i], &is_quit);
	return status || cnt || is_quit ? status : run_prompt(s);
}

static bool is_place(const char *s)
{
	return s && (!strncmp(s, "connect://", 10) || !strncmp(s, "unix-connect://", 15) || !strncmp(s, "ssh://", 6));
}

/* The words: a server or none, a file or none, a program to start or none. */
struct debugging {
	struct cli c;
	const char *file;
	struct ses_debug_opts opts;
	char **argv;
	int argc;
	char exe[40], *program;   /* of the process to attach to */
};

static struct err *take_words(struct debugging *t)
{
	size_t cnt;
	const char *const *words = ops_arg_texts(&t->c.args, "what", &cnt);
	size_t i = 0;
	if (i < cnt && is_place(words[i]))
		t->opts.where = words[i++];
	if (i < cnt)
		t->file = words[i++];
	if (i < cnt)
		return err_fix(err_new(ERR_INVALID, "%s: one word too many", words[i]), "words of the program stand behind --");
	if (!t->file && t->argc && !t->opts.where)
		t->file = t->argv[0];
	/* What is fetched is the server's word for it. */
	if (t->file && ses_is_remote(t->file))
		return err_fix(err_new(ERR_INVALID, "%s: a server comes first, and only one", t->file), "scry debug connect://HOST:PORT/PATH");
	/* Of a process here the program is known. */
	uint64_t pid = ops_arg_u64(&t->c.args, "pid", 0);
	snprintf(t->exe, sizeof(t->exe), "/proc/%llu/exe", (unsigned long long)pid);
	if (!t->file && !t->opts.where && pid) {
		t->program = realpath(t->exe, NULL);
		if (!t->program)
			return err_os(errno, "process %llu", (unsigned long long)pid);
		t->file = t->program;
	}
	if (!t->file && !t->opts.where)
		return err_fix(err_new(ERR_INVALID, "neither a server nor a program"),
			       "scry debug -- PROGRAM, scry debug -p PID, or scry debug connect://HOST:PORT [FILE]");
	t->opts.argv = (const char *const *)t->argv;
	t->opts.argc = (size_t)t->argc;
	return NULL;
}

static struct err *open_target(struct debugging *t, struct ses **ret)
{
	struct ses_opts opts = {.no_store = t->c.no_store, .cancel = cli_stop()};
	*ret = NULL;
	return t->file ? ses_open(t->file, &opts, ret) : NULL;
}

int cli_debug(int argc, char **argv)
{
	struct debugging t = {.c = {.op = ops_find("debug")}};
	struct ses *target = NULL;
	struct ses_debug *s = NULL;
	int words = 0;
	while (words < argc && strcmp(argv[words], "--") != 0)
		words++;
	if (words + 1 < argc) {
		t.argv = argv + words + 1;
		t.argc = argc - words - 1;
	}
	ops_args_init(&t.c.args, t.c.op, &t.c.arena);
	struct err *e = cli_parse(&t.c, words, argv);
	if (!e)
		e = take_words(&t);
	if (!e)
		e = open_target(&t, &target);
	t.opts.ses = target;
	t.opts.no_store = t.c.no_store;
	t.opts.log = ops_arg_str(&t.c.args, "trace");
	t.opts.cancel = &debug_give_up;
	t.opts.output = put_output;
	t.opts.progress = put_progress;
	t.opts.silence_ms = (unsigned)MIN(ops_arg_u64(&t.c.args, "timeout", 10), 3600u) * 1000;
	if (!e) {
		struct sigaction sa = {.sa_handler = on_interrupt};
		sigaction(SIGINT, &sa, NULL);
		sa.sa_handler = SIG_IGN;
		sigaction(SIGPIPE, &sa, NULL);
		e = ses_debug_open(&t.opts, &s);
		cli_progress_end(&debug_shown);
	}
	int status = e ? cli_fail(e) : 0;
	if (s) {
		atomic_store(&debug_running, s);
		status = run_script(s, &t.c);
		atomic_store(&debug_running, NULL);
		/* The target's own status, where nothing else went wrong. */
		if (!status && ses_debug_status(s) >= 0)
			status = ses_debug_status(s);
	}
	ses_debug_close(s);
	ses_close(target);
	arena_fini(&t.c.arena);
	free(t.program);
	return status;
}
