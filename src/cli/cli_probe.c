/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scry probe`. What a program that is probed prints stays its own: lines go to stderr then; JSON goes to stdout, and the program's output
 * to stderr, so that stdout is JSON alone.
 */
#include "cli/cli_int.h"
#include "session/ses_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PID_MAX = 64 };

struct probing {
	struct cli c;
	struct ses_probe_run run;
	int fd;
	pid_t pids[PID_MAX];
};

static bool probe_write(void *ctx, const char *s, size_t len)
{
	const struct probing *t = ctx;
	while (len) {
		ssize_t n = write(t->fd, s, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		s += n;
		len -= (size_t)n;
	}
	return true;
}

static void probe_say(void *ctx, const char *line)
{
	struct buf text = {0};
	(void)ctx;
	buf_printf(&text, "scry: %s\n", line);
	if (!text.failed)
		(void)!write(STDERR_FILENO, text.data, text.len);
	buf_fini(&text);
}

static struct err *probe_open_out(struct probing *t)
{
	bool is_beside = t->run.argv;
	t->fd = fcntl(is_beside && !t->c.is_json ? STDERR_FILENO : STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (t->fd < 0)
		return err_os(errno, "no place for the lines");
	if (is_beside && t->c.is_json && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_os(errno, "no place for the program's output");
	return NULL;
}

/* "5", "0.5", "5s", "200ms" */
static struct err *probe_time(const char *text, uint64_t *ret)
{
	char *end;
	double v = strtod(text, &end);
	double unit = !*end || !strcmp(end, "s") ? 1e9 : !strcmp(end, "ms") ? 1e6 : 0;
	if (end == text || !(v >= 0) || v > 1e9 || unit == 0)
		return err_new(ERR_INVALID, "--for: '%s' is no time, as in 5, 0.5, 200ms", text);
	*ret = (uint64_t)(v * unit) + 1;
	return NULL;
}

/* "7", "7,8", as often as one likes. */
static struct err *probe_pids(struct probing *t)
{
	size_t cnt;
	const char *const *texts = ops_arg_texts(&t->c.args, "pid", &cnt);
	for (size_t i = 0; i < cnt; i++) {
		for (const char *s = texts[i]; *s || s == texts[i];) {
			char *end;
			errno = 0;
			long pid = strtol(s, &end, 10);
			if (errno || end == s || pid <= 0 || pid > INT_MAX || (*end && (*end != ',' || !end[1])))
				return err_new(ERR_INVALID, "-p: '%s' is no process number", texts[i]);
			if (t->run.o.pid_cnt == PID_MAX)
				return err_new(ERR_INVALID, "-p: up to %d processes", PID_MAX);
			t->pids[t->run.o.pid_cnt++] = (pid_t)pid;
			s = *end ? end + 1 : end;
		}
	}
	t->run.o.pids = t->pids;
	return NULL;
}

static struct err *probe_options(struct probing *t)
{
	const struct ops_args *a = &t->c.args;
	struct ses_probe_run *r = &t->run;
	const char *time = ops_arg_str(a, "for");
	if (t->c.project || t->c.load[0] || t->c.load[1] || t->c.load[2])
		return err_new(ERR_INVALID, "probe: takes the file itself, as processes run it: no --project and no load options");
	if (ops_arg_is_set(a, "pid") && r->argv)
		return err_new(ERR_INVALID, "either a process by -p or a program behind --");
	if (ops_arg_is_set(a, "tree") && !ops_arg_is_set(a, "pid") && !r->argv)
		return err_new(ERR_INVALID, "--tree: of which process? By -p, or a program behind --");
	r->o = (struct ses_probe_opts){
		.args = ops_arg_str(a, "args"), .cond = ops_arg_str(a, "if"),
		.way = ops_arg_str(a, "attach"), .with_children = ops_arg_is_set(a, "tree"),
		.with_stacks = ops_arg_is_set(a, "stacks"), .with_lines = ops_arg_is_set(a, "lines"),
		.text_max = (uint32_t)MIN(ops_arg_u64(a, "string_max", 0), 4000u), .ring_len = MIN(ops_arg_u64(a, "ring_kb", 0), 1u << 20) << 10,
		.count_only = ops_arg_is_set(a, "summary"), .no_return = ops_arg_is_set(a, "entry"), .is_json = t->c.is_json,
	};
	r->o.whats = ops_arg_texts(a, "what", &r->o.what_cnt);
	struct err *e = probe_pids(t);
	if (e)
		return e;
	r->count = ops_arg_u64(a, "count", 0);
	return time ? probe_time(time, &r->for_ns) : NULL;
}

static struct err *probe_target(struct probing *t, int *ret_status)
{
	struct ses_opts opts = {.no_store = t->c.no_store, .cancel = cli_stop()};
	struct ses_call call = {.cancel = cli_stop(), .caps = ~(uint32_t)0};
	struct ses *s = NULL;
	struct err *e = ses_open(t->c.file, &opts, &s);
	if (e)
		return e;
	struct ses_snap *sn = ses_snap_get(s);
	e = ses_probe_run(sn, &call, &t->run, ret_status);
	ses_snap_put(sn);
	ses_close(s);
	return e;
}

int cli_probe(int argc, char **argv)
{
	struct probing t = {.c = {.op = ops_find("probe")}, .fd = -1};
	int status = -1, words = 0;
	while (words < argc && strcmp(argv[words], "--") != 0)
		words++;
	if (words + 1 < argc)
		t.run.argv = argv + words + 1;
	ops_args_init(&t.c.args, t.c.op, &t.c.arena);
	struct err *e = cli_parse(&t.c, words, argv);
	if (!e)
		e = probe_options(&t);
	if (!e)
		e = probe_open_out(&t);
	t.run.write = probe_write;
	t.run.say = probe_say;
	t.run.ctx = &t;
	t.run.cancel = cli_stop();
	if (!e)
		e = probe_target(&t, &status);
	if (t.fd >= 0)
		close(t.fd);
	int exit_status = cli_program_status(e, status, t.run.argv);
	arena_fini(&t.c.arena);
	return exit_status;
}
