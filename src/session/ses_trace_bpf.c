/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace by eBPF: opens the kernel's side, starts the program that is to be traced, drains the ring until both have ended. Records go to
 * the file as they are, and through the join to whoever takes events.
 */
#include "session/ses_trace_int.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_bpf.h"
#include "live/trace/trace_file.h"
#include "live/trace/trace_spawn.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define WAIT_MS 2
#define PID_MAX 256

struct drained {
	const struct ses_trace_what *what;
	pid_t hidden;        /* the process that is about to become the program: until then its calls are ours */
	struct trace_join *join;
	struct trace_writer *writer;
	bool goes_on;
};

static bool on_event(void *ctx, const struct trace_event *ev)
{
	struct drained *d = ctx;
	bool is_hidden = d->hidden && ev->pid == (uint32_t)d->hidden;
	if (is_hidden && ev->kind == TRACE_EXEC)
		d->hidden = 0;
	return (is_hidden && d->hidden) || d->what->sink(d->what->ctx, ev);
}

static struct err *on_chunk(void *ctx, const uint8_t *chunk, size_t len)
{
	struct drained *d = ctx;
	struct err *e = d->writer ? trace_writer_chunk(d->writer, chunk, len) : NULL;
	if (!e && d->writer && trace_writer_is_full(d->writer))
		d->goes_on = false;
	bool more = true;
	if (!e && d->join)
		e = trace_join_chunk(d->join, chunk, len, &more);
	d->goes_on &= more;
	return e;
}

/* The same calls of i386. */
static void add_i386(const uint64_t *x86_64, uint64_t *ret)
{
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		int from = all[i].nr[TRACE_X86_64], to = all[i].nr[TRACE_I386];
		if (to >= 0 && to < TRACE_IDS && (from < 0 || x86_64[from / 64] >> (from % 64) & 1))
			ret[to / 64] |= (uint64_t)1 << (to % 64);
	}
}

/* What began as execveat ends as execve: neither is whole without the other's records. */
static void add_exec(uint64_t *ids)
{
	int at = sysc_by_name("execveat", 8)->nr[TRACE_X86_64], plain = sysc_by_name("execve", 6)->nr[TRACE_X86_64];
	if (!(ids[at / 64] >> (at % 64) & 1) && !(ids[plain / 64] >> (plain % 64) & 1))
		return;
	ids[at / 64] |= (uint64_t)1 << (at % 64);
	ids[plain / 64] |= (uint64_t)1 << (plain % 64);
}

static struct err *open_bpf(const struct ses_trace_what *w, struct trace_bpf **ret)
{
	uint64_t i386[TRACE_IDS / 64] = {0}, x86_64[TRACE_IDS / 64];
	uint32_t pids[PID_MAX];
	struct trace_bpf_options o = {.with_site = true, .stack_len = w->stack_len, .with_times = w->with_times,
		.with_signals = true, .ring_len = w->ring_len, .hook = w->hook};
	o.plan = (struct trace_plan){.data_limit = MIN(MAX(w->string_max, 256u), TRACE_LIMIT_MAX), .array_limit = TRACE_LIMIT_MAX,
				     .with_blocking = w->with_entries, .with_races = true, .with_maps = w->with_maps};
	if (w->wanted) {
		memcpy(x86_64, w->wanted, sizeof(x86_64));
		add_exec(x86_64);
		add_i386(x86_64, i386);
		o.plan.ids[0] = x86_64;
		o.plan.ids[1] = i386;
	}
	for (size_t i = 0; i < w->pid_cnt && i < PID_MAX; i++)
		pids[i] = (uint32_t)w->pids[i];
	o.scope = (struct trace_scope){.pids = pids, .pid_cnt = MIN(w->pid_cnt, PID_MAX), .own = w->argv, .tree = w->argv || w->with_children};
	o.scope.container = w->container;
	if (w->comm && !w->argv && !w->pid_cnt) {
		o.scope.comms = &w->comm;
		o.scope.comm_cnt = 1;
	}
	return trace_bpf_open(&o, ret);
}

/* What is recorded now; with `w`, while the trace goes on: what is recorded faster than it is read has no end. */
static struct err *drain(const struct ses_trace_what *w, struct trace_bpf *t, struct drained *d)
{
	bool any = true;
	struct err *e = NULL;
	while (!e && any && !(w && (!d->goes_on || w->is_stopped(w->ctx))))
		e = trace_bpf_drain(t, on_chunk, d, &any);
	return e;
}

/* Whether all that is traced has ended. Orphans of the program come to us, since we are a subreaper. */
static bool has_ended(const struct ses_trace_what *w, const struct trace_spawn *spawn, int *status)
{
	if (spawn->pid) {
		int st;
		pid_t pid;
		while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
			if (pid == spawn->pid)
				*status = st;
		return pid < 0 && errno == ECHILD;
	}
	if (!w->pid_cnt || w->with_children)
		return false;
	for (size_t i = 0; i < w->pid_cnt; i++)
		if (!kill(w->pids[i], 0) || errno != ESRCH)
			return false;
	return true;
}

static struct err *loop(const struct ses_trace_what *w, struct trace_bpf *t, struct drained *d, const struct trace_spawn *spawn, int *status)
{
	for (;;) {
		trace_bpf_wait(t, WAIT_MS);
		bool is_over = has_ended(w, spawn, status) || w->is_stopped(w->ctx);
		struct err *e = drain(w, t, d);
		if (e || is_over || !d->goes_on)
			return e;
	}
}

static struct err *start(const struct ses_trace_what *w, struct trace_bpf *t, struct trace_spawn *spawn, pid_t *ret_pid)
{
	struct err *e = trace_spawn_new(w->argv, NULL, spawn);
	*ret_pid = spawn->pid;
	if (!e)
		e = trace_bpf_add(t, spawn->pid);
	return e ? e : trace_spawn_go(spawn);
}

static struct err *finish(struct trace_bpf *t, struct drained *d, struct trace_totals *ret)
{
	size_t cnt;
	trace_bpf_stop(t);
	struct err *e = drain(NULL, t, d);
	const struct trace_cpu *cpus = trace_bpf_cpus(t, &cnt);
	*ret = (struct trace_totals){0};
	for (size_t i = 0; i < cnt; i++) {
		ret->received += cpus[i].seen - cpus[i].lost;
		ret->lost += cpus[i].lost;
	}
	if (d->join && d->goes_on && !e) {
		trace_join_end(d->join, cpus, cnt);
		trace_join_left(d->join);
	}
	ret->file_is_full = d->writer && trace_writer_is_full(d->writer);
	struct err *w = trace_writer_close(take_ptr(d->writer), cpus, cnt);
	if (e)
		err_free(w);
	return e ? e : w;
}

struct err *ses_trace_bpf(const struct ses_trace_what *w, int *ret_status, struct trace_totals *ret_totals)
{
	struct trace_bpf *t = NULL;
	struct trace_spawn spawn = {.go = -1, .failed = -1};
	struct drained d = {.what = w, .goes_on = true};
	struct err *e = open_bpf(w, &t);
	if (e)
		return e;
	if (w->sink) {
		d.join = trace_join_new(on_event, &d);
		e = d.join ? NULL : &err_nomem;
	}
	if (!e && w->file)
		e = trace_writer_new(w->file, &w->file_options, &d.writer);
	if (!e && w->argv) {
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		e = start(w, t, &spawn, &d.hidden);
	}
	if (!e)
		e = loop(w, t, &d, &spawn, ret_status);
	if (!e)
		e = finish(t, &d, ret_totals);
	if (!e && spawn.pid && *ret_status != -1)
		e = trace_spawn_error(&spawn, w->argv[0]);
	err_free(trace_writer_close(d.writer, NULL, 0));
	trace_spawn_fini(&spawn);
	trace_join_free(d.join);
	trace_bpf_close(t);
	if (w->argv)
		prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	return e;
}
