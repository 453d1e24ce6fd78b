/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: words to an operation of the table, its answer to stdout, diagnostics to stderr, one exit status.
 * Nothing here knows what an operation does.
 */
#include "cli/cli.h"

#include "base/child.h"
#include "cli/cli_int.h"
#include "cli/cli_remote.h"
#include "session/project.h"
#include "session/ses_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static atomic_bool cli_interrupted;

const atomic_bool *cli_stop(void)
{
	return &cli_interrupted;
}

#define STOP_AGAIN_MS 500

/* One that comes later than STOP_AGAIN_MS ends the process, should anything not look at the flag; sooner it is the same one:
 * timeout(1) sends it to its child, and to the group the child is in. */
static void cli_on_signal(int sig)
{
	static _Atomic int64_t first_ms;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1, first = 0;
	atomic_store(&cli_interrupted, true);
	if (!atomic_compare_exchange_strong(&first_ms, &first, ms) && ms - first >= STOP_AGAIN_MS) {
		sigaction(sig, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
		raise(sig);
	}
}

void cli_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, stop = {.sa_handler = cli_on_signal};
	child_note_signals();
	sigaction(SIGPIPE, &ignore, NULL);
	/* A file that may not grow is an error like a full disk (setrlimit(2)). */
	sigaction(SIGXFSZ, &ignore, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
}

/* --- errors --- */

int cli_fail(struct err *e)
{
	bool was_stopped = e->kind == ERR_CANCELLED && atomic_load(&cli_interrupted);
	int status = ops_fail(e, NULL);
	return was_stopped ? 130 : status;
}

int cli_program_status(struct err *e, int status, bool has_program)
{
	if (e) {
		bool is_kept = e->kind == ERR_INVALID || e->kind == ERR_ENV || !has_program;
		int own = cli_fail(e);
		return is_kept || own == 130 ? own : 125;
	}
	if (status >= 0 && has_program)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return has_program && atomic_load(&cli_interrupted) ? 130 : 0;
}

/* At once. A reader that went away is no failure; a full disk is. */
struct err *cli_write(const struct buf *out)
{
	size_t done = 0;
	while (done < out->len) {
		ssize_t n = write(STDOUT_FILENO, out->data + done, out->len - done);
		if (n < 0 && errno == EINTR && !atomic_load(&cli_interrupted))
			continue;
		if (n < 0 && errno == EPIPE)
			return NULL;
		if (n < 0)
			return err_os(errno == EACCES || errno == EPERM ? EIO : errno, "stdout: cannot write");
		done += (size_t)n;
	}
	return NULL;
}

int cli_print(const struct buf *out)
{
	if (out->failed)
		return cli_fail(&err_nomem);
	struct err *e = cli_write(out);
	return e ? cli_fail(e) : 0;
}

/* --- words --- */

static struct err *cli_color(struct cli *c, const char *when)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	if (!when || !strcmp(when, "auto"))
		c->has_color = isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
	else if (!strcmp(when, "always") || !strcmp(when, "never"))
		c->has_color = *when == 'a';
	else
		return err_new(ERR_INVALID, "--color: '%s' is none of never, auto, always", when);
	return NULL;
}

/* The options every command has; true when it was one. `value` is what follows '=', or null. */
static bool cli_global(struct cli *c, const char *name, size_t len, struct err **ret_err)
{
	static const char *const flags[] = {"json", "help", "no-store", "no-partial"};
	bool *const slots[] = {&c->is_json, &c->is_help, &c->no_store, &c->is_complete};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (len != strlen(flags[i]) || memcmp(name, flags[i], len))
			continue;
		if (name[len] == '=')
			*ret_err = err_new(ERR_INVALID, "--%s takes no value", flags[i]);
		*slots[i] = true;
		return true;
	}
	return false;
}

static const char *const cli_load_names[] = {"processor", "base", "format"};

/* Load options are everybody's who opens a target, unless the operation has a parameter of that name. */
static const char **cli_load_slot(struct cli *c, const char *name, size_t len)
{
	for (size_t i = 0; c->op->needs_target && i < ARRAY_LEN(cli_load_names); i++) {
		if (len == strlen(cli_load_names[i]) && !memcmp(name, cli_load_names[i], len))
			return &c->load[i];
	}
	return NULL;
}

static struct err *cli_unknown_option(const struct cli *c, const char *word)
{
	return err_fix(err_new(ERR_INVALID, "%s: %s has no such option", word, c->op->name), "scry help %s", c->op->name);
}

/* The options every command has with a value; true when it was one. */
static bool cli_global_value(struct cli *c, const char *name, size_t len, const char *value, struct err **ret_err)
{
	bool is_color = len == 5 && !memcmp(name, "color", 5), is_project = len == 7 && !memcmp(name, "project", 7);
	/* What is the command line's own no server does. */
	bool is_socket = len == 6 && !memcmp(name, "socket", 6) && !c->op->is_command;
	if (!is_color && !is_socket && !(is_project && c->op->needs_target))
		return false;
	if (!value)
		*ret_err = err_new(ERR_INVALID, "--%.*s needs a value", (int)len, name);
	else if (is_color)
		*ret_err = cli_color(c, value);
	else if (is_socket)
		c->socket = value;
	else
		c->project = value;
	return true;
}

/* One option word; *ret_used tells whether the next word was its value. */
static struct err *cli_option(struct cli *c, const char *word, const char *next, bool *ret_used)
{
	const char *name = word + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] == '=' ? name + len + 1 : NULL;
	struct err *e = NULL;
	*ret_used = false;
	if (cli_global(c, name, len, &e))
		return e;
	if (cli_global_value(c, name, len, value ? value : next, &e)) {
		*ret_used = !value && next;
		return e;
	}
	const struct ops_param *p = ops_param_find(c->op, name, len);
	const char **load = p && !p->is_positional ? NULL : cli_load_slot(c, name, len);
	if (load) {
		*ret_used = !value && next;
		*load = value ? value : next;
		return *load ? NULL : err_new(ERR_INVALID, "--%.*s needs a value", (int)len, name);
	}
	if (!p || p->is_positional || p->is_served)
		return cli_unknown_option(c, word);
	if (p->type == OPS_FLAG)
		return ops_args_set(&c->args, p, value);
	*ret_used = !value;
	return ops_args_set(&c->args, p, value ? value : next);
}

/* "-o VALUE"; the letter of a parameter of the operation. */
static struct err *cli_letter(struct cli *c, const char *word, const char *next, bool *ret_used)
{
	for (const struct ops_param *p = c->op->params; p && p->name; p++) {
		if (!p->letter || p->letter != word[1] || word[2])
			continue;
		*ret_used = p->type != OPS_FLAG;
		return ops_args_set(&c->args, p, *ret_used ? next : NULL);
	}
	return cli_unknown_option(c, word);
}

static struct err *cli_positional(struct cli *c, const char *word, size_t *n)
{
	if (c->op->needs_target && !c->file) {
		c->file = word;
		return NULL;
	}
	const struct ops_param *p = ops_param_at(c->op, (*n)++);
	if (!p)
		return err_fix(err_new(ERR_INVALID, "%s: one word too many for %s", word, c->op->name), "scry help %s", c->op->name);
	return ops_args_set(&c->args, p, word);
}

/* BINARY!ADDR as one word stands for BINARY and ADDR, the operation's first own word. */
static struct err *cli_split_module(struct cli *c)
{
	const char *bang = strrchr(c->file, '!');
	const struct ops_param *p = ops_param_at(c->op, 0);
	if (!bang || !bang[1] || !p)
		return NULL;
	struct ops_value *v = &c->args.values[p - c->op->params];
	const struct ops_param *second = ops_param_at(c->op, 1);
	/* A word that was read as the first is the second then. */
	if (v->is_set && second && second != p) {
		struct err *e = ops_args_set(&c->args, second, v->text);
		if (e)
			return e;
		*v = (struct ops_value){0};
	}
	if (v->is_set)
		return NULL;
	c->file = arena_strndup(&c->arena, c->file, (size_t)(bang - c->file));
	return c->file ? ops_args_set(&c->args, p, bang + 1) : &err_nomem;
}

struct err *cli_parse(struct cli *c, int argc, char **argv)
{
	struct err *e = cli_color(c, NULL);
	size_t positional = 0;
	bool only_words = false;
	for (int i = 0; i < argc && !e; i++) {
		const char *word = argv[i];
		bool used = false;
		if (!only_words && !strcmp(word, "--"))
			only_words = true;
		else if (!only_words && (!strcmp(word, "-h") || !strcmp(word, "-j")))
			*(word[1] == 'h' ? &c->is_help : &c->is_json) = true;
		else if (!only_words && word[0] == '-' && word[1] == '-')
			e = cli_option(c, word, i + 1 < argc ? argv[i + 1] : NULL, &used);
		else if (!only_words && word[0] == '-' && word[1] && (word[1] < '0' || word[1] > '9'))
			e = cli_letter(c, word, i + 1 < argc ? argv[i + 1] : NULL, &used);
		else
			e = cli_positional(c, word, &positional);
		i += used;
	}
	if (e || c->is_help)
		return e;
	if (c->op->needs_target && !c->file)
		return err_fix(err_new(ERR_INVALID, "%s: FILE is missing", c->op->name), "scry help %s", c->op->name);
	if (c->project)
		e = cli_split_module(c);
	return e ? e : ops_args_check(&c->args);
}

/* --- progress --- */

void cli_put_progress(uint64_t done, uint64_t total, const char *text)
{
	char line[200], bar[21];
	uint64_t filled = !total || done >= total ? 20 : done * 20 / total;
	for (unsigned i = 0; i < 20; i++)
		bar[i] = i < filled ? '#' : '.';
	bar[20] = 0;
	int n = snprintf(line, sizeof(line), "\r\033[K[%s] %3u%%  %s", bar, (unsigned)(filled * 5), text);
	if (n > 0)
		(void)!write(STDERR_FILENO, line, MIN((size_t)n, sizeof(line) - 1));
}

static void cli_progress(void *ctx, const struct ses_progress *p)
{
	struct cli *c = ctx;
	char text[120], line[140];
	int n = snprintf(text, sizeof(text), "%s", p->stage);
	if (p->func_cnt && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, ", %llu functions", (unsigned long long)p->func_cnt);
	n = snprintf(line, sizeof(line), "\r\033[K%s", text);
	if (p->total)
		cli_put_progress(p->done, p->total, text);
	else if (n > 0)
		(void)!write(STDERR_FILENO, line, MIN((size_t)n, sizeof(line) - 1));
	c->is_progress = true;
}

void cli_progress_end(struct cli *c)
{
	if (c->is_progress)
		(void)!write(STDERR_FILENO, "\r\033[K", 4);
	c->is_progress = false;
}

/* --- running --- */

static uint64_t cli_deadline(const struct cli *c)
{
	uint64_t ms = ops_arg_u64(&c->args, "deadline_ms", 0);
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ms ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + MIN(ms, (uint64_t)1 << 40) * 1000000 : 0;
}

static void cli_note_rest(const struct cli *c, const struct ops_out *o)
{
	if (c->is_json || !o->has_more)
		return;
	struct buf line = {0};
	buf_printf(&line, "scry: %llu shown", (unsigned long long)o->item_cnt);
	if (o->total && o->total != UINT64_MAX && c->op->columns)
		buf_printf(&line, " of %llu", (unsigned long long)o->total);
	buf_printf(&line, "; more with --cursor %s\n", o->next);
	if (!line.failed)
		(void)!write(STDERR_FILENO, line.data, line.len);
	buf_fini(&line);
}

/* What a snippet prints. On a terminal, what that would obey stands as text: names of the target are among it. */
struct cli_prints {
	bool is_tame[2]; /* standard output, standard error */
	struct { char s[4]; size_t len; } rest[2]; /* of a character that goes on in the next piece */
};

static bool cli_is_tame(const struct cli *c, int fd)
{
	return !strcmp(c->op->name, "exec") && !ops_arg_is_set(&c->args, "unconfined") && isatty(fd);
}

/* Lines and tabs stay. */
static void cli_tame(struct buf *out, const char *s, size_t len)
{
	while (len) {
		size_t n = 0;
		while (n < len && s[n] != '\n' && s[n] != '\t')
			n++;
		ops_escape(out, s, n);
		if (n < len)
			buf_add_ch(out, s[n++]);
		s += n;
		len -= n;
	}
}

/* How many bytes at the end may be the beginning of a character. */
static size_t cli_begun(const char *s, size_t len)
{
	for (size_t n = 1; n <= MIN(len, 3u); n++) {
		uint8_t byte = (uint8_t)s[len - n];
		if (byte >= 0xc0)
			return n < (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : 2u) ? n : 0;
		if (byte < 0x80)
			return 0;
	}
	return 0;
}

static void cli_write_all(int fd, const char *s, size_t len)
{
	while (len) {
		ssize_t n = write(fd, s, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		s += n;
		len -= (size_t)n;
	}
}

static void cli_stream(void *ctx, bool is_err, const char *s, size_t len)
{
	struct cli_prints *p = ctx;
	int fd = is_err ? STDERR_FILENO : STDOUT_FILENO;
	if (!p->is_tame[is_err]) {
		cli_write_all(fd, s, len);
		return;
	}
	_cleanup_buf_ struct buf all = {0}, text = {0};
	buf_add(&all, p->rest[is_err].s, p->rest[is_err].len);
	buf_add(&all, s, len);
	if (all.failed)
		return;
	size_t rest = len ? cli_begun(all.data, all.len) : 0;
	cli_tame(&text, all.data, all.len - rest);
	p->rest[is_err].len = rest;
	memcpy(p->rest[is_err].s, all.data + all.len - rest, rest);
	if (!text.failed && text.len)
		cli_write_all(fd, text.data, text.len);
}

/* As cli_print(), of a command whose answer may be what a snippet left. */
static int cli_print_answer(const struct cli *c, const struct buf *out)
{
	if (out->failed || !cli_is_tame(c, STDOUT_FILENO))
		return cli_print(out);
	_cleanup_buf_ struct buf text = {0};
	cli_tame(&text, out->data, out->len);
	return cli_print(&text);
}

static int cli_answer(struct cli *c, struct ses_snap *sn, struct ses_project *p, uint32_t binary)
{
	struct ses_call call = {.deadline_ns = cli_deadline(c), .cancel = &cli_interrupted, .caps = ~(uint32_t)0, .may_consent = true,
				.max_bytes = ops_arg_u64(&c->args, "max_bytes", 0)};
	struct buf text = {0};
	struct ops_out out;
	struct cli_prints prints = {.is_tame = {cli_is_tame(c, STDOUT_FILENO), cli_is_tame(c, STDERR_FILENO)}};
	ops_out_init(&out, c->op, &text, c->is_json);
	out.has_color = c->has_color;
	struct ops_req rq = {.sn = sn, .call = &call, .args = &c->args, .arena = &c->arena, .out = &out, .project = p, .binary = binary,
			     .no_store = c->no_store, .stream = c->is_json ? NULL : cli_stream, .stream_ctx = &prints};
	struct err *e = ops_run(&rq);
	for (int i = 0; i < 2; i++)
		cli_stream(&prints, i, "", 0);
	if (c->is_json && text.len)
		buf_add_ch(&text, '\n');
	int status = text.len || !e ? cli_print_answer(c, &text) : 0;
	if (!status)
		cli_note_rest(c, &out);
	if (!e)
		e = take_ptr(out.status);
	if (e) {
		int why = cli_fail(e);
		status = status ? status : why;
	}
	ops_out_fini(&out);
	buf_fini(&text);
	return status;
}

static void cli_say(const char *what, const char *why)
{
	struct buf line = {0};
	buf_printf(&line, "scry: %s%s\n", what, why);
	if (!line.failed)
		(void)!write(STDERR_FILENO, line.data, line.len);
	buf_fini(&line);
}

static void cli_say_note(const char *note)
{
	if (note)
		cli_say("the analysis is kept in memory only: ", note);
}

/* What was looked at was a part of the file. */
static int cli_end_part(struct ses *s, struct ses_snap *sn)
{
	uint64_t have_len;
	char text[120];
	struct ses_info info;
	struct arena a = {0};
	if (!ses_is_partial(s, &have_len))
		return 0;
	struct err *e = ses_info(sn, &a, &info);
	if (!e) {
		snprintf(text, sizeof(text), "%.1f of %.1f MiB", (double)have_len / (1 << 20), (double)info.size / (1 << 20));
		cli_say(text, " of the file are here, and it is not analysed; --no-partial fetches the rest first");
		e = ses_end_part(s);
	}
	arena_fini(&a);
	return e ? cli_fail(e) : 0;
}

static int cli_with_target(struct cli *c)
{
	struct ses_opts opts = {.threads = (unsigned)MIN(ops_arg_u64(&c->args, "threads", 0), 1024), .force = ops_arg_is_set(&c->args, "force"),
				.no_store = c->no_store, .may_connect = true, .may_be_partial = !c->is_complete && ops_is_of_part(c->op),
				.cancel = &cli_interrupted, .processor = c->load[0], .base = c->load[1],
				.format = c->load[2]};
	if (isatty(STDERR_FILENO)) {
		opts.progress = cli_progress;
		opts.progress_ctx = c;
	}
	struct ses *s = NULL;
	struct err *e = ses_open(c->file, &opts, &s);
	cli_progress_end(c);
	if (e)
		return cli_fail(e);
	cli_say_note(ses_store_note(s));
	struct ses_snap *sn = ses_snap_get(s);
	int status = cli_answer(c, sn, NULL, 0), end = cli_end_part(s, sn);
	ses_snap_put(sn);
	ses_close(s);
	return status ? status : end;
}

/* By a running server. */
static int cli_with_server(struct cli *c)
{
	struct cli_remote r = {.socket = c->socket, .file = c->file, .load = c->load, .args = &c->args, .is_json = c->is_json,
			       .has_color = c->has_color, .cancel = &cli_interrupted};
	struct buf text = {0};
	if (c->project || c->no_store)
		return cli_fail(err_fix(err_new(ERR_INVALID, "--project and --no-store are the server's"), "give them to scry serve"));
	struct err *e = cli_remote_run(&r, &text);
	int status = e ? cli_fail(e) : cli_print_answer(c, &text);
	if (!status && *r.more)
		cli_say(r.more, "");
	if (r.status) {
		int why = cli_fail(r.status);
		status = status ? status : why;
	}
	buf_fini(&text);
	return status;
}

/* One binary of a project. */
static int cli_with_project(struct cli *c)
{
	struct ses_project_opts opts = {.file = c->project, .no_store = c->no_store, .cancel = &cli_interrupted, .event_fd = -1};
	struct ses_project *p = NULL;
	struct ses *s = NULL;
	uint32_t i;
	struct err *e = ses_project_open(&opts, &p);
	if (!e)
		e = ses_project_pick(p, c->file, &i);
	if (!e)
		e = ses_project_get(p, i, &s);
	if (e) {
		ses_project_close(p);
		return cli_fail(e);
	}
	cli_say_note(ses_store_note(s));
	struct ses_snap *sn = ses_snap_get(s);
	int status = cli_answer(c, sn, p, i);
	ses_snap_put(sn);
	ses_project_close(p);
	return status;
}

static int cli_op_help(const struct ops_op *op)
{
	struct buf text = {0};
	ops_write_op_help(&text, op);
	int status = cli_print(&text);
	buf_fini(&text);
	return status;
}

/* Commands that are the command line's own. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} cli_commands[] = {
	{"batch", cli_batch},
	{"trace", cli_trace},
	{"probe", cli_probe},
	{"get", cli_get},
	{"push", cli_push},
	{"platform", cli_platform},
	{"debug", cli_debug},
};

bool cli_wants_help(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	}
	return false;
}

static int cli_command(const struct ops_op *op, int argc, char **argv)
{
	if (cli_wants_help(argc, argv))
		return cli_op_help(op);
	for (size_t k = 0; k < ARRAY_LEN(cli_commands); k++) {
		if (!strcmp(cli_commands[k].name, op->name))
			return cli_commands[k].run(argc, argv);
	}
	return cli_fail(err_new(ERR_INTERNAL, "%s: nobody runs it", op->name));
}

static int cli_op(const struct ops_op *op, int argc, char **argv)
{
	if (op->is_command)
		return cli_command(op, argc, argv);
	struct cli c = {.op = op};
	ops_args_init(&c.args, op, &c.arena);
	struct err *e = cli_parse(&c, argc, argv);
	int status;
	if (e)
		status = cli_fail(e);
	else if (c.is_help)
		status = cli_op_help(op);
	else if (c.socket)
		status = cli_with_server(&c);
	else if (c.project)
		status = cli_with_project(&c);
	else if (op->needs_target)
		status = cli_with_target(&c);
	else
		status = cli_answer(&c, NULL, NULL, 0);
	arena_fini(&c.arena);
	return status;
}

static int cli_usage(int fd)
{
	struct buf text = {0};
	ops_write_usage(&text);
	int status = 0;
	if (fd == STDOUT_FILENO)
		status = cli_print(&text);
	else if (!text.failed)
		(void)!write(fd, text.data, text.len);
	buf_fini(&text);
	return status;
}

/* "project list" is project_list. */
static const struct ops_op *cli_two_words(const char *first, const char *second)
{
	char name[64];
	int n = second ? snprintf(name, sizeof(name), "%s_%s", first, second) : -1;
	return n > 0 && (size_t)n < sizeof(name) ? ops_find(name) : NULL;
}

static int cli_help(int argc, char **argv)
{
	if (!argc)
		return cli_usage(STDOUT_FILENO);
	const struct ops_op *op = cli_two_words(argv[0], argc > 1 ? argv[1] : NULL);
	if (!op)
		op = ops_find(argv[0]);
	if (op)
		return cli_op_help(op);
	const char *near = ops_nearest(argv[0]);
	struct err *e = err_new(ERR_INVALID, "%s: there is no such command", argv[0]);
	return cli_fail(near ? err_fix(e, "did you mean %s?", near) : err_fix(e, "scry help lists them"));
}

/* With load options and nothing else before the workbench: they are stated, then it opens. */
static int cli_file_as(const char *path, int argc, char **argv, const struct cli_workbench *workbench)
{
	struct cli c = {.op = ops_find("info"), .file = path};
	ops_args_init(&c.args, c.op, &c.arena);
	struct err *e = cli_parse(&c, argc, argv);
	struct ses *s = NULL;
	struct ses_opts opts = {.may_connect = true, .processor = c.load[0], .base = c.load[1], .format = c.load[2]};
	if (!e)
		e = ses_open(path, &opts, &s);
	ses_close(s);
	arena_fini(&c.arena);
	return e ? cli_fail(e) : workbench->open(path);
}

static bool cli_is_load_only(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		size_t k = 0;
		while (k < ARRAY_LEN(cli_load_names) && (strncmp(argv[i], "--", 2) || strcmp(argv[i] + 2, cli_load_names[k])))
			k++;
		if (k == ARRAY_LEN(cli_load_names) || ++i == argc)
			return false;
	}
	return argc > 0;
}

/* `scry FILE`: the workbench, or the overview where nobody could use one. */
static int cli_file(const char *path, int argc, char **argv, const struct cli_workbench *workbench)
{
	bool is_seen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (!argc && is_seen)
		return workbench->open(path);
	if (is_seen && cli_is_load_only(argc, argv))
		return cli_file_as(path, argc, argv, workbench);
	cli_signals();
	/* Options may follow the file; the file itself is never one. */
	char *words[16];
	int n = 0;
	while (n < argc && n < (int)ARRAY_LEN(words) - 2) {
		words[n] = argv[n];
		n++;
	}
	words[n++] = (char *)"--";
	words[n++] = (char *)path;
	return cli_op(ops_find("info"), n, words);
}

/* Several files that are no P.json: what they are, one after the other. */
static int cli_overviews(char *const *paths, int cnt)
{
	int status = 0;
	for (int i = 0; i < cnt; i++) {
		char *words[] = {(char *)"--", paths[i]};
		if (i)
			(void)!write(STDOUT_FILENO, "\n", 1);
		int why = cli_op(ops_find("info"), 2, words);
		status = status ? status : why;
	}
	return status;
}

/* `scry FILE FILE...`: the workbench on all of them. */
static int cli_files(int argc, char **argv, const struct cli_workbench *workbench)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return workbench->open_project(NULL, (const char *const *)argv, (size_t)argc);
	cli_signals();
	return cli_overviews(argv, argc);
}

/* `scry --project P.json [FILE...]`: makes it or adds to it, and opens it; shows it where there is no terminal. */
static int cli_project(int argc, char **argv, const struct cli_workbench *workbench)
{
	if (argc < 1)
		return cli_fail(err_new(ERR_INVALID, "a project is missing after --project"));
	struct stat st;
	bool is_there = !lstat(argv[0], &st);
	const char *const *files = (const char *const *)argv + 1;
	size_t cnt = (size_t)argc - 1;
	struct err *e = NULL;
	if (!is_there && cnt)
		e = ses_project_create(argv[0], NULL, files, cnt);
	else if (cnt)
		e = ses_project_add(argv[0], files, cnt);
	if (e)
		return cli_fail(e);
	if (workbench->is_plain || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return workbench->open_project(argv[0], NULL, 0);
	cli_signals();
	return cli_op(ops_find("project_list"), 1, argv);
}

/* Whether all words are names of files, so that they are looked at together. */
static bool cli_are_files(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct stat st;
		if (argv[i][0] == '-' || stat(argv[i], &st))
			return false;
	}
	return argc > 1;
}

int cli_plain(int argc, char **argv, const struct cli_workbench *plain)
{
	if (argc && !strcmp(argv[0], "--project"))
		return cli_project(argc - 1, argv + 1, plain);
	bool is_end = argc && !strcmp(argv[0], "--");
	argc -= is_end;
	argv += is_end;
	if (!argc || (!is_end && argv[0][0] == '-' && argv[0][1])) {
		struct err *e = argc ? err_new(ERR_INVALID, "%s: --plain has no such option", argv[0]) :
				       err_new(ERR_INVALID, "a file is missing after --plain");
		return cli_fail(err_fix(e, "scry --plain FILE..., scry --plain --project P.json [FILE...]"));
	}
	return argc == 1 ? plain->open(argv[0]) : plain->open_project(NULL, (const char *const *)argv, (size_t)argc);
}

static int cli_unknown(const char *word)
{
	const char *near = ops_nearest(word);
	struct err *e = err_new(near && !strchr(word, '/') ? ERR_INVALID : ERR_BAD_INPUT, "%s: there is no such file or command", word);
	return cli_fail(near && !strchr(word, '/') ? err_fix(e, "did you mean scry %s?", near) : e);
}

int cli_main(int argc, char **argv, const struct cli_workbench *workbench)
{
	if (argc < 2) {
		(void)cli_usage(STDERR_FILENO);
		return 2;
	}
	const char *word = argv[1];
	if (!strcmp(word, "--")) {
		if (argc < 3)
			return cli_fail(err_new(ERR_INVALID, "a file is missing after --"));
		return cli_file(argv[2], argc - 3, argv + 3, workbench);
	}
	if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h"))
		return cli_help(argc - 2, argv + 2);
	if (!strcmp(word, "--version") || !strcmp(word, "-V"))
		return cli_op(ops_find("version"), argc - 2, argv + 2);
	if (!strcmp(word, "--project"))
		return cli_project(argc - 2, argv + 2, workbench);
	const struct ops_op *op = cli_two_words(word, argc > 2 ? argv[2] : NULL);
	if (op) {
		cli_signals();
		return cli_op(op, argc - 3, argv + 3);
	}
	op = ops_find(word);
	if (op) {
		cli_signals();
		return cli_op(op, argc - 2, argv + 2);
	}
	if (word[0] == '-')
		return cli_fail(err_fix(err_new(ERR_INVALID, "%s: there is no such option", word), "scry help"));
	struct stat st;
	if (lstat(word, &st) && errno == ENOENT && strncmp(word, "sha256:", 7) && !ses_is_remote(word))
		return cli_unknown(word);
	if (cli_are_files(argc - 1, argv + 1))
		return cli_files(argc - 1, argv + 1, workbench);
	return cli_file(word, argc - 2, argv + 2, workbench);
}
