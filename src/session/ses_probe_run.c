/* SPDX-License-Identifier: Apache-2.0 */
/* `scry probe`: a program or a process, and probes on it until it ends. */
#include "session/ses_probe.h"

#include "base/child.h"
#include "live/trace/trace_spawn.h"
#include "session/ses_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 2, LAST_MS = 1000 /* for a record that another processor is about to write */, ALIVE_NS = 50000000 };

struct run {
	const struct ses_probe_run *r;
	struct ses_probes *p;
	pid_t child;
	int go, failed;          /* pipes: the program may begin; the errno when it could not */
	VEC(int) pidfds;         /* of the processes probed */
	bool ended;              /* those named, or the program; their children may go on */
	uint64_t asked_ns;
	uint64_t lines;
	struct buf out;
	bool is_over;            /* enough lines, or nobody reads */
};

/* --- the program -------------------------------------------------------------------------------------------------- */

/* In the new process: waits for the word, then becomes the program. Only system calls, so that no probed function of a library is called
 * here. */
_Noreturn static void become(const char *path, char *const *argv, int go, int failed)
{
	char word;
	child_give_signals();
	long n = syscall(SYS_read, go, &word, 1);
	if (n == 1) {
		syscall(SYS_execve, path, argv, environ);
		int why = errno;
		n = syscall(SYS_write, failed, &why, sizeof(why));
	}
	(void)n;
	syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

static struct err *start(struct run *u)
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1};
	char path[4096];
	struct err *e = trace_spawn_find(u->r->argv[0], path, sizeof(path));
	if (e)
		return e;
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) {
		e = err_os(errno, "no pipe");
		cleanup_closep(&go[0]);
		cleanup_closep(&go[1]);
		return e;
	}
	u->child = fork();
	if (u->child == 0) {
		close(go[1]);
		become(path, u->r->argv, go[0], failed[1]);
	}
	if (u->child < 0)
		e = err_os(errno, "no process");
	close(go[0]);
	close(failed[1]);
	u->go = go[1];
	u->failed = failed[0];
	return e;
}

/* The program may run. */
static struct err *let_go(struct run *u)
{
	int why;
	if (write(u->go, "g", 1) != 1)
		return err_os(errno, "%s", u->r->argv[0]);
	if (read(u->failed, &why, sizeof(why)) == sizeof(why))
		return err_os(why == EACCES ? EIO : why, "%s", u->r->argv[0]);
	return NULL;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */
static bool on_line(void *ctx, const char *line, size_t len)
{
	struct run *u = ctx;
	buf_add(&u->out, line, len);
	buf_add_ch(&u->out, '\n');
	u->lines++;
	u->is_over |= u->r->count && u->lines >= u->r->count;
	return !u->is_over;
}

/* Lines behind the last one that was asked for are read, so that the counts hold, and not shown. */
static bool on_more(void *ctx, const char *line, size_t len)
{
	return true;
}

static void write_out(struct run *u)
{
	if (u->out.len && !u->r->write(u->r->ctx, u->out.data, u->out.len))
		u->is_over = true;
	u->out.len = 0;
}

static struct err *drain(struct run *u, uint64_t *ret_cnt)
{
	struct err *e = ses_probes_drain(u->p, u->is_over ? on_more : on_line, u, ret_cnt);
	if (!e && u->out.failed)
		e = &err_nomem;
	write_out(u);
	return e;
}

/* Whether what is probed has ended. */
static bool has_ended(struct run *u, int *ret_status)
{
	if (u->child > 0) {
		if (waitpid(u->child, ret_status, WNOHANG) != u->child)
			return false;
		u->child = 0;
		u->ended = true;
	}
	bool is_one = u->pidfds.cnt > 0;
	for (size_t i = 0; !u->ended && i < u->pidfds.cnt; i++) {
		struct pollfd f = {.fd = u->pidfds.data[i], .events = POLLIN};
		is_one = is_one && poll(&f, 1, 0) == 1;
	}
	u->ended = u->ended || is_one;
	if (!u->ended || !u->r->o.with_children)
		return u->ended;
	uint64_t now = ses_now_ns();
	if (now - u->asked_ns < ALIVE_NS)
		return false;
	u->asked_ns = now;
	return !ses_probes_are_alive(u->p);
}

static struct err *watch(struct run *u, int *ret_status)
{
	const struct ses_probe_run *r = u->r;
	uint64_t begin = ses_now_ns(), cnt;
	struct err *e = NULL;
	for (bool was_end = false; !e && !u->is_over && !atomic_load(r->cancel);) {
		/* What it did until it ended is in the ring by then. */
		was_end = has_ended(u, ret_status);
		e = drain(u, &cnt);
		if (was_end || (r->for_ns && ses_now_ns() - begin >= r->for_ns))
			break;
		if (!cnt)
			poll(NULL, 0, TICK_MS);
	}
	return e;
}

static struct err *summary(struct run *u)
{
	uint64_t cnt, records, received, lost;
	struct err *e = NULL;
	/* The last records, one that was being written when probing ended included, and calls that did not end. */
	ses_probes_detach(u->p);
	for (unsigned i = 0; !e && i < LAST_MS; i++) {
		e = drain(u, &cnt);
		ses_probes_totals(u->p, &records, &received, &lost);
		if (u->r->o.count_only || received + lost >= records)
			break;
		poll(NULL, 0, 1);
	}
	if (!e && !u->is_over) {
		ses_probes_flush(u->p, on_line, u);
		write_out(u);
	}
	if (!e && (u->r->o.is_json || u->r->o.count_only)) {
		u->out.failed = false;
		ses_probes_put_summary(u->p, u->r->o.is_json, &u->out);
		write_out(u);
	}
	return e;
}

/* The program goes on without probes. */
static void await(struct run *u, int *ret_status)
{
	while (u->child > 0 && !atomic_load(u->r->cancel)) {
		if (waitpid(u->child, ret_status, WNOHANG) == u->child)
			u->child = 0;
		else
			poll(NULL, 0, TICK_MS);
	}
}

static struct err *check_process(struct run *u)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && !u->r->argv && i < u->r->o.pid_cnt; i++) {
		int pid = u->r->o.pids[i], fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd >= 0 && !VEC_PUSH(&u->pidfds, fd))
			close(fd);
		if (fd < 0 && errno != ENOSYS)
			e = errno == ESRCH || errno == EINVAL ? err_new(ERR_NOT_FOUND, "%d: there is no such process", pid)
							      : err_os(errno, "process %d", pid);
	}
	return e;
}

/* How many there are, and what their arguments are known by. */
static void say_attached(struct run *u)
{
	_cleanup_buf_ struct buf line = {0};
	uint32_t cnt = ses_probes_cnt(u->p), recovered = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_probe_counts c;
		ses_probes_get(u->p, i, &c);
		recovered += !strcmp(c.types, "recovered");
	}
	buf_printf(&line, "%u probe%s attached (%s)", cnt, cnt == 1 ? "" : "s", ses_probes_way(u->p));
	if (recovered && !u->r->o.count_only)
		buf_printf(&line, "; arguments of %u as the code shows them: -a says what they are", recovered);
	const char *why;
	uint32_t left_out = ses_probes_left_out(u->p, &why);
	if (left_out)
		buf_printf(&line, "; %u left out, the first: %s", left_out, why ? why : "out of memory");
	buf_add_ch(&line, 0);
	if (!line.failed)
		u->r->say(u->r->ctx, line.data);
}

struct err *ses_probe_run(struct ses_snap *sn, const struct ses_call *call, const struct ses_probe_run *r, int *ret_status)
{
	struct run u = {.r = r, .go = -1, .failed = -1};
	struct ses_probe_opts o = r->o;
	*ret_status = -1;
	struct err *e = check_process(&u);
	if (!e && r->argv)
		e = start(&u);
	if (u.child > 0) {
		o.pids = &u.child;
		o.pid_cnt = 1;
	}
	if (!e)
		e = ses_probes_open(sn, call, &o, &u.p);
	if (!e)
		say_attached(&u);
	if (!e && r->argv)
		e = let_go(&u);
	if (!e)
		e = watch(&u, ret_status);
	if (!e)
		e = summary(&u);
	ses_probes_close(u.p);
	cleanup_closep(&u.go);
	cleanup_closep(&u.failed);
	for (size_t i = 0; i < u.pidfds.cnt; i++)
		close(u.pidfds.data[i]);
	VEC_FREE(&u.pidfds);
	/* One that was not let go ends by the closed pipe. */
	if (!e)
		await(&u, ret_status);
	else if (u.child > 0)
		waitpid(u.child, NULL, 0);
	buf_fini(&u.out);
	return e;
}
