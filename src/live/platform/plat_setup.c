/* SPDX-License-Identifier: Apache-2.0 */
/* Packets in which client and server come to terms, and those that begin and end a process. */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"
#include "live/gdb/gdb_zstd.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENV_MAX 65536
#define ARGV_MAX 65536

static void do_noack(struct plat_conn *c, struct gdb_span args)
{
	plat_ok(c);
	c->is_noack = true;
	c->in.is_noack = true;
}

static bool says(struct gdb_span features, const char *feature)
{
	struct gdb_span one;
	while (gdb_next_field(&features, ';', &one))
		if (gdb_span_is(one, feature))
			return true;
	return false;
}

static void do_supported(struct plat_conn *c, struct gdb_span args)
{
	gdb_skip(&args, ":");
	c->has_said = true;
	c->is_scry = says(args, "scry+");
	c->has_multiprocess = says(args, "multiprocess+");
	c->has_swbreak = says(args, "swbreak+");
	c->has_exec_events = says(args, "exec-events+");
	c->has_binary_upload = says(args, "binary-upload+");
	buf_printf(&c->out, "PacketSize=%x;QStartNoAckMode+;qEcho+;scry+", PLAT_PACKET_LEN);
	struct err *e = gdb_zstd_try();
	if (!e)
		buf_add_str(&c->out, ";vFile:zread+");
	err_free(e);
	if (!c->opts->allow_run)
		return;
	buf_add_str(&c->out, ";QThreadSuffixSupported+;QListThreadsInStopReply+;QPassSignals+;multiprocess+;swbreak+;hwbreak+;vContSupported+;"
			     "qXfer:features:read+;qXfer:auxv:read+;qXfer:libraries-svr4:read+;qXfer:exec-file:read+;qXfer:threads:read+;"
			     "qXfer:siginfo:read+;QEnvironmentHexEncoded+;QEnvironmentUnset+;QEnvironmentReset+;QSetWorkingDir+;"
			     "QDisableRandomization+");
	if (c->has_exec_events)
		buf_add_str(&c->out, ";exec-events+");
	if (c->has_binary_upload)
		buf_add_str(&c->out, ";binary-upload+");
}

static void do_suffix(struct plat_conn *c, struct gdb_span args)
{
	c->is_lldb = c->has_suffix = true;
	plat_ok(c);
}

static void do_list_threads(struct plat_conn *c, struct gdb_span args)
{
	c->is_lldb = c->lists_threads = true;
	plat_ok(c);
}

static void do_error_strings(struct plat_conn *c, struct gdb_span args)
{
	c->has_error_strings = true;
	plat_ok(c);
}

static void do_extended(struct plat_conn *c, struct gdb_span args)
{
	c->is_extended = true;
	plat_ok(c);
}

static void do_nothing(struct plat_conn *c, struct gdb_span args)
{
	plat_ok(c);
}

/* --- what a program is to be started with --------------------------------------------------------------------------- */

static void do_no_aslr(struct plat_conn *c, struct gdb_span args)
{
	c->has_aslr = gdb_span_is(args, "0");
	plat_ok(c);
}


/* A later setting of the same name takes the place of an earlier one. */
static bool env_set(struct plat_conn *c, const char *text, size_t len)
{
	size_t name_len = strcspn(text, "=");
	char *own = strndup(text, len);
	for (size_t i = 0; i < c->env.cnt && own; i++) {
		char *was = c->env.data[i];
		if (strcspn(was, "=") == name_len && !strncmp(was, text, name_len)) {
			free(was);
			c->env.data[i] = own;
			return true;
		}
	}
	if (own && c->env.cnt < ENV_MAX && VEC_PUSH(&c->env, own))
		return true;
	free(own);
	return false;
}

static void do_env(struct plat_conn *c, struct gdb_span args)
{
	_cleanup_free_ char *text = strndup(args.s, args.len);
	if (text && strchr(text, '=') && *text != '=' && env_set(c, text, args.len))
		plat_ok(c);
	else
		plat_error(c, EINVAL, "no variable");
}

static void env_hex(struct plat_conn *c, struct gdb_span args, bool has_value)
{
	_cleanup_free_ char *text = malloc(args.len / 2 + 1);
	if (text && plat_text(args, text, args.len / 2 + 1) && *text && *text != '=' && !strchr(text, '=') == !has_value &&
	    env_set(c, text, args.len / 2))
		plat_ok(c);
	else
		plat_error(c, EINVAL, "no variable");
}

static void do_env_hex(struct plat_conn *c, struct gdb_span args)
{
	env_hex(c, args, true);
}

static void do_env_unset(struct plat_conn *c, struct gdb_span args)
{
	env_hex(c, args, false);
}

static void do_env_reset(struct plat_conn *c, struct gdb_span args)
{
	for (size_t i = 0; i < c->env.cnt; i++)
		free(c->env.data[i]);
	c->env.cnt = 0;
	plat_ok(c);
}

static void set_stdio(struct plat_conn *c, unsigned idx, struct gdb_span args)
{
	char path[PATH_MAX];
	if (!plat_text(args, path, sizeof(path))) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	free(c->stdio[idx]);
	c->stdio[idx] = strdup(path);
	plat_ok(c);
}

static void do_stdin(struct plat_conn *c, struct gdb_span args)
{
	set_stdio(c, 0, args);
}

static void do_stdout(struct plat_conn *c, struct gdb_span args)
{
	set_stdio(c, 1, args);
}

static void do_stderr(struct plat_conn *c, struct gdb_span args)
{
	set_stdio(c, 2, args);
}

/* Our own environment with the client's changes; the texts are borrowed. */
static char **make_env(const struct plat_conn *c)
{
	size_t own = 0, cnt = 0;
	while (environ[own])
		own++;
	char **env = alloc_array(own + c->env.cnt + 1, sizeof(*env));
	for (size_t i = 0; env && i < own; i++) {
		size_t len = strcspn(environ[i], "=");
		bool is_set = false;
		for (size_t k = 0; k < c->env.cnt; k++)
			is_set |= strcspn(c->env.data[k], "=") == len && !strncmp(c->env.data[k], environ[i], len);
		if (!is_set)
			env[cnt++] = environ[i];
	}
	for (size_t k = 0; env && k < c->env.cnt; k++)
		if (strchr(c->env.data[k], '='))
			env[cnt++] = c->env.data[k];
	return env;
}

/* --- launching ------------------------------------------------------------------------------------------------------ */

struct words {
	VEC(char *) list;
};

static void words_fini(struct words *w)
{
	for (size_t i = 0; i < w->list.cnt; i++)
		free(w->list.data[i]);
	VEC_FREE(&w->list);
}

static bool words_add(struct words *w, struct gdb_span hex)
{
	char *text = malloc(hex.len / 2 + 1);
	if (text && w->list.cnt < ARGV_MAX && plat_text(hex, text, hex.len / 2 + 1) && VEC_PUSH(&w->list, text))
		return true;
	free(text);
	return false;
}

static int launch(struct plat_conn *c, struct words *w)
{
	_cleanup_free_ char **env = make_env(c);
	struct plat_launch how = {.envp = env, .stdio = {c->stdio[0], c->stdio[1], c->stdio[2]}, .own_stdio = c->opts->own_stdio,
				  .has_aslr = c->has_aslr};
	if (!env || !VEC_PUSH(&w->list, NULL))
		return -ENOMEM;
	w->list.cnt--; /* the end is no word */
	how.argv = w->list.data;
	plat_inf_fini(&c->inf);
	int status = plat_inf_launch(&c->inf, &how);
	c->g_tid = c->c_tid = 0;
	c->had_program |= !status;
	return status;
}

void plat_launch_given(struct plat_conn *c)
{
	struct words w = {0};
	if (!c->opts->argv || !c->opts->allow_run || c->had_program)
		return;
	c->had_program = true;
	for (char *const *word = c->opts->argv; *word; word++) {
		char *own = strdup(*word);
		if (!own || !VEC_PUSH(&w.list, own)) {
			free(own);
			break;
		}
	}
	(void)launch(c, &w);
	words_fini(&w);
}

static void launch_failed(struct plat_conn *c, const struct words *w, int status)
{
	char text[PATH_MAX + 128];
	snprintf(text, sizeof(text), "%s: %s", w->list.cnt ? w->list.data[0] : "no program", strerror(-status));
	plat_error(c, (unsigned)-status, text);
}

/* vRun;HEX;HEX...: the program and its words, answered by how it stopped. */
static void do_run(struct plat_conn *c, struct gdb_span args)
{
	struct words w = {0};
	struct gdb_span field;
	bool is_good = true;
	while (is_good && gdb_next_field(&args, ';', &field))
		is_good = words_add(&w, field);
	int status = is_good && w.list.cnt && *w.list.data[0] ? launch(c, &w) : -EINVAL;
	if (status < 0)
		launch_failed(c, &w, status);
	else
		plat_put_stop(c, c->inf.current);
	words_fini(&w);
}

/* A LEN,IDX,HEX,...: the same as older clients have it, which then ask qLaunchSuccess. */
static void do_launch(struct plat_conn *c, struct gdb_span args)
{
	struct words w = {0};
	struct gdb_span len, idx, hex;
	bool is_good = true;
	while (is_good && gdb_next_field(&args, ',', &len)) {
		uint64_t n;
		is_good = gdb_next_field(&args, ',', &idx) && gdb_next_field(&args, ',', &hex) && gdb_is_dec(len, &n) && n == hex.len &&
			  words_add(&w, hex);
	}
	int status = is_good && w.list.cnt && *w.list.data[0] ? launch(c, &w) : -EINVAL;
	if (status < 0)
		launch_failed(c, &w, status);
	else
		plat_ok(c);
	words_fini(&w);
}

static void do_launch_success(struct plat_conn *c, struct gdb_span args)
{
	if (c->inf.pid && !c->inf.is_exited)
		plat_ok(c);
	else
		plat_error(c, ESRCH, "there is no process");
}

static void do_attach(struct plat_conn *c, struct gdb_span args)
{
	uint64_t pid;
	if (!gdb_is_hex(args, &pid) || !pid || pid > INT32_MAX) {
		plat_error(c, EINVAL, "no process");
		return;
	}
	plat_inf_fini(&c->inf);
	int status = plat_inf_attach(&c->inf, (pid_t)pid);
	c->g_tid = c->c_tid = 0;
	c->had_program |= !status;
	if (status < 0)
		plat_errno(c, -status);
	else
		plat_put_stop(c, c->inf.current);
}

/* --- the end -------------------------------------------------------------------------------------------------------- */

/* D, D;PID of gdb, D1 of LLDB, which leaves it stopped. */
static void do_detach(struct plat_conn *c, struct gdb_span args)
{
	bool stay_stopped = gdb_skip(&args, "1");
	if (!c->inf.pid) {
		plat_error(c, ESRCH, "there is no process");
		return;
	}
	(void)plat_inf_detach(&c->inf, stay_stopped);
	plat_ok(c);
}

static void do_kill(struct plat_conn *c, struct gdb_span args)
{
	bool is_lldb = c->is_lldb;
	pid_t pid = c->inf.pid;
	plat_inf_kill(&c->inf);
	/* gdb waits for no answer, and LLDB does. */
	if (is_lldb && pid) {
		size_t start = gdb_begin(&c->out);
		buf_add_str(&c->out, "X09");
		if (c->has_multiprocess)
			buf_printf(&c->out, ";process:%x", pid);
		gdb_end(&c->out, start);
	}
	if (!is_lldb && !c->is_extended)
		c->is_over = true;
}

static void do_vkill(struct plat_conn *c, struct gdb_span args)
{
	uint64_t pid;
	if (!gdb_is_hex(args, &pid) || !c->inf.pid || pid != (uint64_t)c->inf.pid) {
		plat_error(c, ESRCH, "there is no such process here");
		return;
	}
	plat_inf_kill(&c->inf);
	plat_ok(c);
}

const struct plat_packet plat_setup_packets[] = {
	{"QStartNoAckMode", do_noack, 0},
	{"qSupported", do_supported, PLAT_PREFIX},
	{"QThreadSuffixSupported", do_suffix, 0},
	{"QListThreadsInStopReply", do_list_threads, 0},
	{"QEnableErrorStrings", do_error_strings, 0},
	{"!", do_extended, PLAT_RUN},
	{"QSetDisableASLR:", do_no_aslr, PLAT_PREFIX},
	{"QDisableRandomization:", do_no_aslr, PLAT_PREFIX},
	{"QSetDetachOnError:", do_nothing, PLAT_PREFIX},
	{"QLaunchArch:", do_nothing, PLAT_PREFIX},
	{"QEnvironment:", do_env, PLAT_PREFIX},
	{"QEnvironmentHexEncoded:", do_env_hex, PLAT_PREFIX},
	{"QEnvironmentUnset:", do_env_unset, PLAT_PREFIX},
	{"QEnvironmentReset", do_env_reset, 0},
	{"QSetSTDIN:", do_stdin, PLAT_PREFIX},
	{"QSetSTDOUT:", do_stdout, PLAT_PREFIX},
	{"QSetSTDERR:", do_stderr, PLAT_PREFIX},
	{"vRun;", do_run, PLAT_PREFIX | PLAT_RUN},
	{"A", do_launch, PLAT_PREFIX | PLAT_RUN},
	{"qLaunchSuccess", do_launch_success, 0},
	{"vAttach;", do_attach, PLAT_PREFIX | PLAT_RUN},
	{"D", do_detach, PLAT_PREFIX},
	{"k", do_kill, PLAT_RAW},
	{"vKill;", do_vkill, PLAT_PREFIX},
	{0},
};
