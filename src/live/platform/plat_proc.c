/* SPDX-License-Identifier: Apache-2.0 */
/* Packets about processes of the machine, and the shell. */
#include "live/platform/plat_conn.h"

#include "base/child.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 65536
#define ARGS_LEN 65536             /* of a command line, bytes */
#define SHELL_OUT_MAX ((size_t)16 << 20)
#define SHELL_WAIT_S 30            /* where the client does not say */

struct proc {
	pid_t pid, ppid;
	uint32_t uid, euid, gid, egid;
	char name[PATH_MAX];           /* the program's path, or the name the kernel has */
	char args[ARGS_LEN];           /* each ended by a NUL */
	size_t args_len;
};

static size_t read_proc(pid_t pid, const char *what, char *ret, size_t cap)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	for (ssize_t n = 1; fd >= 0 && n > 0 && len < cap - 1; len += n > 0 ? (size_t)n : 0)
		n = read(fd, ret + len, cap - 1 - len);
	ret[len] = 0;
	return len;
}

static uint32_t number_after(const char *text, const char *key, unsigned idx)
{
	const char *p = strstr(text, key);
	if (!p)
		return 0;
	char *end = (char *)p + strlen(key);
	unsigned long v = 0;
	for (unsigned i = 0; i <= idx; i++)
		v = strtoul(end, &end, 10);
	return (uint32_t)v;
}

static bool proc_read(pid_t pid, struct proc *ret)
{
	char status[4096], path[64];
	if (!read_proc(pid, "status", status, sizeof(status)))
		return false;
	ret->pid = pid;
	ret->ppid = (pid_t)number_after(status, "\nPPid:", 0);
	ret->uid = number_after(status, "\nUid:", 0);
	ret->euid = number_after(status, "\nUid:", 1);
	ret->gid = number_after(status, "\nGid:", 0);
	ret->egid = number_after(status, "\nGid:", 1);
	ret->args_len = read_proc(pid, "cmdline", ret->args, sizeof(ret->args));
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t n = readlink(path, ret->name, sizeof(ret->name) - 1);
	if (n > 0) {
		ret->name[n] = 0;
		return true;
	}
	n = (ssize_t)read_proc(pid, "comm", ret->name, sizeof(ret->name));
	if (n > 0 && ret->name[n - 1] == '\n')
		ret->name[n - 1] = 0;
	return n > 0;
}

static void proc_put(struct plat_conn *c, const struct proc *p)
{
	struct buf *out = &c->out;
	buf_printf(out, "pid:%d;ppid:%d;uid:%u;gid:%u;euid:%u;egid:%u;name:", p->pid, p->ppid, p->uid, p->gid, p->euid, p->egid);
	plat_put_hextext(out, p->name);
	buf_add_str(out, ";args:");
	for (size_t at = 0; at < p->args_len; at += strlen(p->args + at) + 1) {
		if (at)
			buf_add_ch(out, '-');
		plat_put_hextext(out, p->args + at);
	}
	buf_add_str(out, ";triple:");
	plat_put_hextext(out, "x86_64-unknown-linux-gnu");
	buf_add_ch(out, ';');
}

static void do_info_pid(struct plat_conn *c, struct gdb_span args)
{
	uint64_t pid;
	_cleanup_free_ struct proc *p = malloc(sizeof(*p));
	if (p && gdb_is_dec(args, &pid) && pid && pid <= INT32_MAX && proc_read((pid_t)pid, p))
		proc_put(c, p);
	else
		plat_error(c, 1, "there is no such process");
}

/* --- the list ------------------------------------------------------------------------------------------------------- */

static bool text_matches(const char *text, const char *want, struct gdb_span how)
{
	size_t len = strlen(text), want_len = strlen(want);
	if (gdb_span_is(how, "starts_with"))
		return !strncmp(text, want, want_len);
	if (gdb_span_is(how, "ends_with"))
		return len >= want_len && !strcmp(text + len - want_len, want);
	if (gdb_span_is(how, "contains") || gdb_span_is(how, "regex"))
		return strstr(text, want) != NULL;
	return !strcmp(text, want);
}

static bool number_matches(struct gdb_span filter, const char *key, uint64_t v)
{
	struct gdb_span value;
	uint64_t want;
	return !gdb_find_pair(filter, key, &value) || (gdb_is_dec(value, &want) && want == v);
}

static bool proc_matches(const struct plat_conn *c, const struct proc *p)
{
	struct gdb_span filter = gdb_span_make(c->list_filter.data ? c->list_filter.data : "", c->list_filter.len), value, how = {0};
	char want[PATH_MAX];
	const char *slash = strrchr(p->name, '/'), *base = slash ? slash + 1 : p->name;
	bool is_all = gdb_find_pair(filter, "all_users", &value) && gdb_span_is(value, "1");
	if (!is_all && p->euid != geteuid())
		return false;
	if (gdb_find_pair(filter, "name", &value) && plat_text(value, want, sizeof(want))) {
		if (!gdb_find_pair(filter, "name_match", &how))
			how = gdb_span_make("equals", 6);
		if (!text_matches(strchr(want, '/') ? p->name : base, want, how))
			return false;
	}
	return number_matches(filter, "pid", (uint64_t)p->pid) && number_matches(filter, "parent_pid", (uint64_t)p->ppid) &&
	       number_matches(filter, "uid", p->uid) && number_matches(filter, "gid", p->gid) && number_matches(filter, "euid", p->euid) &&
	       number_matches(filter, "egid", p->egid);
}

static void do_next(struct plat_conn *c, struct gdb_span args)
{
	_cleanup_free_ struct proc *p = malloc(sizeof(*p));
	while (p && c->listed_idx < c->listed.cnt)
		if (proc_read(c->listed.data[c->listed_idx++], p) && proc_matches(c, p)) {
			proc_put(c, p);
			return;
		}
	plat_error(c, 4, "there are no more");
}

static void do_first(struct plat_conn *c, struct gdb_span args)
{
	DIR *d = opendir("/proc");
	c->listed.cnt = c->listed_idx = 0;
	c->list_filter.len = 0;
	gdb_skip(&args, ":");
	buf_add(&c->list_filter, args.s, args.len);
	for (struct dirent *e = d ? readdir(d) : NULL; e && c->listed.cnt < PROCESSES_MAX; e = readdir(d))
		if (isdigit((unsigned char)e->d_name[0]))
			(void)VEC_PUSH(&c->listed, (pid_t)strtol(e->d_name, NULL, 10));
	if (d)
		closedir(d);
	do_next(c, args);
}

/* --- running -------------------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static pid_t shell_start(const char *command, const char *cwd, int out_fd)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	child_give_signals();
	setpgid(0, 0);
	int null = open("/dev/null", O_RDONLY);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0 || (cwd && chdir(cwd) < 0))
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Takes what the command prints until its end or the time is over; what goes beyond the limit is read and dropped. */
static bool shell_read(int fd, int64_t end_ms, struct buf *out)
{
	char block[16384];
	for (;;) {
		int64_t left = end_ms - now_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int got = left > 0 ? poll(&p, 1, (int)MIN(left, (int64_t)INT32_MAX)) : 0;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		ssize_t n = read(fd, block, sizeof(block));
		if (n <= 0)
			return true;
		buf_add(out, block, MIN((size_t)n, SHELL_OUT_MAX - MIN(out->len, SHELL_OUT_MAX)));
	}
}

/* HEXCOMMAND,TIMEOUT[,HEXCWD] -> F,STATUS,SIGNAL,OUTPUT. */
static void do_shell(struct plat_conn *c, struct gdb_span args)
{
	struct gdb_span field;
	uint64_t wait_s = 0;
	_cleanup_free_ char *command = malloc(PLAT_REQUEST_MAX);
	char cwd[PATH_MAX] = "";
	int fds[2], status = 0;
	bool is_good = command && gdb_next_field(&args, ',', &field) && plat_text(field, command, PLAT_REQUEST_MAX);
	if (is_good && gdb_next_field(&args, ',', &field) && field.len)
		is_good = gdb_is_hex(field, &wait_s);
	if (is_good && gdb_next_field(&args, ',', &field))
		is_good = plat_text(field, cwd, sizeof(cwd));
	if (!is_good || pipe2(fds, O_CLOEXEC) < 0) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	pid_t pid = shell_start(command, *cwd ? cwd : NULL, fds[1]);
	close(fds[1]);
	c->scratch.len = 0;
	int64_t end = now_ms() + 1000 * (int64_t)(wait_s && wait_s <= 86400 ? wait_s : SHELL_WAIT_S);
	if (pid > 0 && !shell_read(fds[0], end, &c->scratch))
		kill(-pid, SIGKILL);
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		plat_errno(c, errno);
		return;
	}
	buf_printf(&c->out, "F,%08x,%08x,", WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	gdb_escape(&c->out, c->scratch.data, c->scratch.len);
}

/* The debug server is this very one: whoever connects again has it. */
static void do_launch_server(struct plat_conn *c, struct gdb_span args)
{
	buf_printf(&c->out, "pid:%d;port:%u;", getpid(), c->opts->port);
}

static void do_query_servers(struct plat_conn *c, struct gdb_span args)
{
	gdb_escape(&c->out, "[]", 2);
}

/* Nothing was spawned for a client: each connection is its own process, and ends with it. */
static void do_kill_server(struct plat_conn *c, struct gdb_span args)
{
	uint64_t pid;
	if (gdb_is_dec(args, &pid) && pid == (uint64_t)getpid())
		plat_ok(c);
	else
		plat_error(c, ESRCH, "this server did not start it");
}

const struct plat_packet plat_proc_packets[] = {
	{"qProcessInfoPID:", do_info_pid, PLAT_PREFIX},
	{"qfProcessInfo", do_first, PLAT_PREFIX},
	{"qsProcessInfo", do_next, 0},
	{"qPlatform_shell:", do_shell, PLAT_PREFIX | PLAT_RUN},
	{"qLaunchGDBServer;", do_launch_server, PLAT_PREFIX | PLAT_RUN},
	{"qQueryGDBServer", do_query_servers, 0},
	{"qKillSpawnedProcess:", do_kill_server, PLAT_PREFIX | PLAT_RUN},
	{0},
};
