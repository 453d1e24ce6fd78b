/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that make a program run, and what is said when it stops. While it runs the client may interrupt it and feed it; whatever else it asks
 * waits for the stop, so that a client can send its questions along with the order to go on.
 */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "live/platform/plat_lib.h"
#include "live/platform/plat_target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_LEN 512   /* of the stack that comes with a stop, bytes; what LLDB reads together */
#define OUTPUT_LEN 16384 /* of what the program printed in a packet, bytes */
#define FS_BASE 58      /* sent with the integer registers, with gs_base behind it */

/* --- signals -------------------------------------------------------------------------------------------------------- */

/* gdb has numbers of its own (include/gdb/signals.def in its manual's terms); LLDB takes the system's. By Linux' number. */
static const uint8_t gdb_signals[65] = {
	0,  1,  2,  3,  4,  5,  6,  10, 8,  9,  30, 11, 31, 13, 14, 15, 143, 20, 19, 17, 18, 21, 22, 16, 24, 25, 26, 27, 28, 23, 32, 12, 77,
	45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61,  62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 78,
};

int plat_signal_out(const struct plat_conn *c, int sig)
{
	return sig < 0 || sig > 64 ? 0 : c->is_lldb ? sig : gdb_signals[sig];
}

int plat_signal_in(const struct plat_conn *c, int sig)
{
	if (c->is_lldb)
		return sig >= 0 && sig <= 64 ? sig : 0;
	for (int i = 1; i <= 64; i++)
		if (gdb_signals[i] == sig)
			return i;
	return 0;
}

/* --- stop replies --------------------------------------------------------------------------------------------------- */

const char *plat_reason_name(const struct plat_thread *t)
{
	switch (t->reason) {
	case PLAT_STOP_NONE: return NULL;
	case PLAT_STOP_SIGNAL:
	case PLAT_STOP_INTERRUPT: return "signal";
	case PLAT_STOP_BREAK:
	case PLAT_STOP_HW_BREAK: return "breakpoint";
	case PLAT_STOP_WATCH: return "watchpoint";
	case PLAT_STOP_TRACE: return "trace";
	case PLAT_STOP_EXEC: return "exec";
	}
	return NULL;
}

/* An interrupt shows as gdb's own Ctrl+C, an attach as nothing; LLDB expects SIGSTOP of both. */
static int stop_signal(const struct plat_conn *c, const struct plat_thread *t)
{
	if (t->reason != PLAT_STOP_INTERRUPT)
		return plat_signal_out(c, t->reason == PLAT_STOP_EXEC ? SIGTRAP : t->sig);
	return c->is_lldb ? SIGSTOP : t->sig == SIGSTOP ? 0 : plat_signal_out(c, t->sig);
}

static void put_reg(struct plat_conn *c, struct plat_thread *t, unsigned reg)
{
	uint8_t v[PLAT_REG_MAX_LEN];
	if (!plat_reg_get(t, reg, v))
		return;
	buf_add_hex(&c->out, reg, 2);
	buf_add_ch(&c->out, ':');
	buf_add_hexbytes(&c->out, v, plat_reg_len(reg));
	buf_add_ch(&c->out, ';');
}

static void put_regs(struct plat_conn *c, struct plat_thread *t)
{
	if (c->lists_threads) {
		for (unsigned i = 0; i < plat_reg_general_cnt(); i++)
			put_reg(c, t, i);
		put_reg(c, t, FS_BASE);
		put_reg(c, t, FS_BASE + 1);
		return;
	}
	put_reg(c, t, 6); /* rbp, rsp, rip */
	put_reg(c, t, 7);
	put_reg(c, t, PLAT_REG_RIP);
}

static size_t read_stack(struct plat_conn *c, struct plat_thread *t, uint8_t *bytes, uint64_t *ret_va)
{
	const struct user_regs_struct *r = plat_regs(t);
	*ret_va = r ? r->rsp : 0;
	return r ? plat_mem_read(&c->inf, r->rsp, bytes, STACK_LEN) : 0;
}

static void put_all_threads(struct plat_conn *c)
{
	buf_add_str(&c->out, "threads:");
	for (size_t i = 0; i < c->inf.threads.cnt; i++) {
		if (i)
			buf_add_ch(&c->out, ',');
		plat_put_thread_id(c, &c->out, c->inf.threads.data[i]->tid);
	}
	buf_add_str(&c->out, ";thread-pcs:");
	for (size_t i = 0; i < c->inf.threads.cnt; i++) {
		const struct user_regs_struct *r = plat_regs(c->inf.threads.data[i]);
		if (i)
			buf_add_ch(&c->out, ',');
		buf_add_hex(&c->out, r ? r->rip : 0, 1);
	}
	buf_add_ch(&c->out, ';');
}

static void put_why(struct plat_conn *c, const struct plat_thread *t)
{
	if (c->is_lldb) {
		const char *why = plat_reason_name(t);
		if (why)
			buf_printf(&c->out, "reason:%s;", why);
		if (t->reason == PLAT_STOP_WATCH) {
			char text[80];
			snprintf(text, sizeof(text), "%llu 0 %llu", (unsigned long long)t->watch_va, (unsigned long long)t->watch_va);
			buf_add_str(&c->out, "description:");
			plat_put_hextext(&c->out, text);
			buf_add_ch(&c->out, ';');
		}
		return;
	}
	if (t->reason == PLAT_STOP_WATCH) {
		char kind = '2';
		for (size_t i = 0; i < c->inf.watches.cnt; i++)
			if (c->inf.watches.data[i].va == t->watch_va)
				kind = (char)c->inf.watches.data[i].kind;
		buf_printf(&c->out, "%s:%llx;", kind == '2' ? "watch" : kind == '3' ? "rwatch" : "awatch", (unsigned long long)t->watch_va);
	} else if (t->reason == PLAT_STOP_BREAK && c->has_swbreak) {
		buf_add_str(&c->out, "swbreak:;");
	} else if (t->reason == PLAT_STOP_HW_BREAK && c->has_swbreak) {
		buf_add_str(&c->out, "hwbreak:;");
	} else if (t->reason == PLAT_STOP_EXEC && c->has_exec_events) {
		c->scratch.len = 0;
		plat_lib_put_exe(&c->inf, &c->scratch);
		buf_add_str(&c->out, "exec:");
		buf_add_hexbytes(&c->out, (const uint8_t *)c->scratch.data, c->scratch.len);
		buf_add_ch(&c->out, ';');
	}
}

void plat_put_stop(struct plat_conn *c, struct plat_thread *t)
{
	uint8_t stack[STACK_LEN];
	uint64_t va;
	char name[64];
	if (!t) {
		plat_error(c, ESRCH, "there is no such thread");
		return;
	}
	buf_printf(&c->out, "T%02xthread:", (unsigned)stop_signal(c, t));
	plat_put_thread_id(c, &c->out, t->tid);
	buf_add_ch(&c->out, ';');
	if (c->is_lldb) {
		plat_lib_thread_name(&c->inf, t->tid, name);
		buf_add_str(&c->out, "hexname:");
		plat_put_hextext(&c->out, name);
		buf_add_ch(&c->out, ';');
	}
	if (c->lists_threads)
		put_all_threads(c);
	put_regs(c, t);
	put_why(c, t);
	size_t len = c->lists_threads ? read_stack(c, t, stack, &va) : 0;
	if (len) {
		buf_printf(&c->out, "memory:0x%llx=", (unsigned long long)va);
		buf_add_hexbytes(&c->out, stack, len);
		buf_add_ch(&c->out, ';');
	}
}

static void put_exit(struct plat_conn *c)
{
	int status = c->inf.exit_status;
	if (WIFSIGNALED(status))
		buf_printf(&c->out, "X%02x", (unsigned)plat_signal_out(c, WTERMSIG(status)));
	else
		buf_printf(&c->out, "W%02x", (unsigned)WEXITSTATUS(status));
	if (c->has_multiprocess)
		buf_printf(&c->out, ";process:%x", c->inf.pid);
}

static void put_state(struct plat_conn *c)
{
	if (c->inf.is_exited)
		put_exit(c);
	else if (!c->inf.pid)
		buf_add_str(&c->out, "W00");
	else
		plat_put_stop(c, c->inf.current ? c->inf.current : c->inf.threads.cnt ? c->inf.threads.data[0] : NULL);
}

static void do_why(struct plat_conn *c, struct gdb_span args)
{
	put_state(c);
}

static void do_thread_why(struct plat_conn *c, struct gdb_span args)
{
	pid_t tid;
	plat_put_stop(c, plat_take_thread_id(&args, &tid) ? plat_thread_find(&c->inf, tid) : NULL);
}

static void put_thread_json(struct plat_conn *c, struct plat_thread *t, struct json *j)
{
	uint8_t v[PLAT_REG_MAX_LEN], stack[STACK_LEN];
	uint64_t va;
	char name[64], key[16];
	const char *why = plat_reason_name(t);
	plat_lib_thread_name(&c->inf, t->tid, name);
	json_obj(j);
	json_key(j, "tid");
	json_u64(j, (uint64_t)t->tid);
	json_key(j, "name");
	json_str(j, name);
	if (why) {
		json_key(j, "reason");
		json_str(j, why);
		json_key(j, "signal");
		json_u64(j, (uint64_t)stop_signal(c, t));
	}
	json_key(j, "registers");
	json_obj(j);
	for (unsigned i = 0; i < plat_reg_general_cnt(); i++)
		if (plat_reg_get(t, i, v)) {
			snprintf(key, sizeof(key), "%u", i);
			json_key(j, key);
			json_hex(j, v, plat_reg_len(i));
		}
	json_end_obj(j);
	size_t len = read_stack(c, t, stack, &va);
	if (len) {
		json_key(j, "memory");
		json_arr(j);
		json_obj(j);
		json_key(j, "address");
		json_u64(j, va);
		json_key(j, "bytes");
		json_hex(j, stack, len);
		json_end_obj(j);
		json_end_arr(j);
	}
	json_end_obj(j);
}

static void do_threads_info(struct plat_conn *c, struct gdb_span args)
{
	c->scratch.len = 0;
	struct json j = json_make(&c->scratch);
	json_arr(&j);
	for (size_t i = 0; i < c->inf.threads.cnt; i++)
		put_thread_json(c, c->inf.threads.data[i], &j);
	json_end_arr(&j);
	gdb_escape(&c->out, c->scratch.data, c->scratch.len);
}

/* --- while it runs -------------------------------------------------------------------------------------------------- */

void plat_forward_output(struct plat_conn *c)
{
	uint8_t block[OUTPUT_LEN];
	while (c->inf.term_fd >= 0) {
		ssize_t n = read(c->inf.term_fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		/* EIO: nobody has the other end open. */
		if (n <= 0 && !(n < 0 && errno == EAGAIN)) {
			close(c->inf.term_fd);
			c->inf.term_fd = -1;
		}
		if (n <= 0)
			return;
		size_t start = gdb_begin(&c->out);
		buf_add_ch(&c->out, 'O');
		buf_add_hexbytes(&c->out, block, (size_t)n);
		gdb_end(&c->out, start);
		if (!plat_conn_flush(c))
			return;
	}
}

static void feed_program(struct plat_conn *c, struct gdb_span hex)
{
	struct buf bytes = {0};
	size_t at = 0;
	/* What a program does not read and its terminal has no room for is dropped, as a terminal does. */
	while (c->inf.term_fd >= 0 && gdb_unhex(hex, PLAT_REQUEST_MAX, &bytes) && at < bytes.len) {
		ssize_t n = write(c->inf.term_fd, bytes.data + at, bytes.len - at);
		if (n <= 0)
			break;
		at += (size_t)n;
		if (at == bytes.len)
			break;
		bytes.len = 0;
	}
	buf_fini(&bytes);
}

static void do_input(struct plat_conn *c, struct gdb_span args)
{
	feed_program(c, args);
	plat_ok(c);
}

/* A packet that came while the program runs. */
static void take_while_running(struct plat_conn *c, const struct gdb_packet *p)
{
	struct buf payload = {0};
	if (!c->is_noack)
		buf_add_ch(&c->out, '+');
	if (gdb_expand_buf(p->raw, p->raw_len, false, PLAT_REQUEST_MAX, &payload) != GDB_EXPAND_OK || payload.failed) {
		buf_fini(&payload);
		gdb_put(&c->out, "E16");
		return;
	}
	struct gdb_span s = gdb_span_make(payload.data ? payload.data : "", payload.len);
	bool is_input = gdb_skip(&s, "I");
	if (is_input || gdb_span_is(s, "vCtrlC")) {
		if (is_input)
			feed_program(c, s);
		else
			plat_inf_interrupt(&c->inf);
		buf_fini(&payload);
		gdb_put(&c->out, "OK");
		return;
	}
	if (c->queue_len + payload.len > PLAT_QUEUE_MAX || !VEC_PUSH(&c->queue, (struct plat_queued){payload.data, payload.len})) {
		buf_fini(&payload);
		c->is_over = true;
		return;
	}
	c->queue_len += payload.len + sizeof(struct plat_queued);
}

static void hear_client(struct plat_conn *c)
{
	struct gdb_packet p;
	for (;;)
		switch (gdb_decoder_next(&c->in, &p)) {
		case GDB_INTERRUPT: plat_inf_interrupt(&c->inf); break;
		case GDB_PACKET: take_while_running(c, &p); break;
		case GDB_BAD_SUM:
			if (!c->is_noack)
				buf_add_ch(&c->out, '-');
			break;
		case GDB_ACK:
		case GDB_NAK:
		case GDB_NOTIFICATION: break;
		case GDB_TOO_LONG: c->is_over = true; return;
		case GDB_MORE: return;
		}
}

void plat_wait_stop(struct plat_conn *c)
{
	struct signalfd_siginfo info;
	while (c->inf.is_running && !c->is_over) {
		hear_client(c);
		if (c->out.len && !plat_conn_flush(c))
			return;
		if (c->signal_fd >= 0)
			while (read(c->signal_fd, &info, sizeof(info)) > 0)
				;
		if (plat_inf_poll(&c->inf))
			break;
		if (c->in_fd < 0)
			plat_inf_interrupt(&c->inf);
		struct pollfd p[] = {{.fd = c->is_eof ? -1 : c->in_fd, .events = POLLIN}, {.fd = c->signal_fd, .events = POLLIN},
				     {.fd = c->inf.term_fd, .events = POLLIN}};
		if (poll(p, ARRAY_LEN(p), c->signal_fd < 0 ? 1 : -1) < 0 && errno != EINTR)
			return;
		if (p[2].revents)
			plat_forward_output(c);
		/* With the client gone nobody waits for the stop. */
		if (p[0].revents && !plat_conn_read(c))
			c->is_over = true;
	}
	plat_forward_output(c);
}

static void go(struct plat_conn *c)
{
	plat_inf_resume(&c->inf);
	if (!plat_conn_flush(c))
		return;
	plat_wait_stop(c);
	if (c->is_over)
		return;
	c->g_tid = 0;
	size_t start = gdb_begin(&c->out);
	put_state(c);
	gdb_end(&c->out, start);
}

static void refuse(struct plat_conn *c, unsigned code, const char *why)
{
	size_t start = gdb_begin(&c->out);
	plat_error(c, code, why);
	gdb_end(&c->out, start);
}

static bool can_go(struct plat_conn *c)
{
	bool is_there = c->inf.pid && !c->inf.is_exited;
	if (!is_there)
		refuse(c, ESRCH, "there is no process");
	return is_there;
}

/* --- the packets ---------------------------------------------------------------------------------------------------- */

struct order {
	enum plat_action action;
	int deliver;
	uint64_t range_start, range_end;
	pid_t tid; /* 0 and -1: all that have none yet */
};

static bool read_order(struct plat_conn *c, struct gdb_span s, struct order *ret)
{
	uint64_t sig = 0;
	*ret = (struct order){.tid = -1};
	if (gdb_skip(&s, "c") || gdb_skip(&s, "C")) {
		ret->action = PLAT_CONT;
	} else if (gdb_skip(&s, "s") || gdb_skip(&s, "S")) {
		ret->action = PLAT_STEP;
	} else if (gdb_skip(&s, "r")) {
		ret->action = PLAT_STEP;
		if (!gdb_take_hex(&s, &ret->range_start) || !gdb_skip(&s, ",") || !gdb_take_hex(&s, &ret->range_end))
			return false;
	} else if (gdb_skip(&s, "t")) {
		ret->action = PLAT_HOLD;
	} else {
		return false;
	}
	if ((s.s[-1] == 'C' || s.s[-1] == 'S') && !gdb_take_hex(&s, &sig))
		return false;
	ret->deliver = sig <= 255 ? plat_signal_in(c, (int)sig) : 0;
	return !s.len || (gdb_skip(&s, ":") && plat_take_thread_id(&s, &ret->tid) && !s.len);
}

static void give_order(struct plat_conn *c, const struct order *o, bool *is_given)
{
	for (size_t i = 0; i < c->inf.threads.cnt; i++) {
		struct plat_thread *t = c->inf.threads.data[i];
		if (is_given[i] || (o->tid > 0 && t->tid != o->tid) || (o->tid == 0 && t != c->inf.current))
			continue;
		is_given[i] = true;
		t->action = o->action;
		t->range_start = o->range_start;
		t->range_end = o->range_end;
		if (o->deliver)
			t->deliver = o->deliver;
	}
}

static bool *begin_orders(struct plat_conn *c)
{
	for (size_t i = 0; i < c->inf.threads.cnt; i++)
		c->inf.threads.data[i]->action = PLAT_HOLD;
	return alloc_array(c->inf.threads.cnt, sizeof(bool));
}

static void do_vcont(struct plat_conn *c, struct gdb_span args)
{
	struct gdb_span one;
	struct order o;
	if (!can_go(c))
		return;
	_cleanup_free_ bool *is_given = begin_orders(c);
	bool is_good = is_given;
	while (is_good && gdb_next_field(&args, ';', &one)) {
		is_good = read_order(c, one, &o);
		if (is_good)
			give_order(c, &o, is_given);
	}
	bool goes = false;
	for (size_t i = 0; i < c->inf.threads.cnt; i++)
		goes |= c->inf.threads.data[i]->action != PLAT_HOLD;
	if (is_good && goes)
		go(c);
	else
		refuse(c, EINVAL, is_good ? "no thread that is there was told to go on" : "malformed packet");
}

static void do_log(struct plat_conn *c, struct gdb_span args)
{
	if (can_go(c))
		plat_do_log(c, args);
}

static void do_vcont_can(struct plat_conn *c, struct gdb_span args)
{
	if (c->opts->allow_run)
		buf_add_str(&c->out, "vCont;c;C;s;S;t;r");
}

/* c, s, C, S with an address to go on at; the thread is that of Hc, the others go on unless one was named. */
static void old_go(struct plat_conn *c, struct gdb_span args, enum plat_action action, bool has_signal)
{
	uint64_t sig = 0, va;
	if (!can_go(c))
		return;
	bool is_good = !has_signal || gdb_take_hex(&args, &sig);
	if (has_signal)
		gdb_skip(&args, ";");
	struct plat_thread *t = c->c_tid > 0 ? plat_thread_find(&c->inf, c->c_tid) : c->inf.current;
	struct user_regs_struct *r = args.len && t ? plat_regs(t) : NULL;
	if (args.len && (!r || !gdb_is_hex(args, &va)))
		is_good = false;
	_cleanup_free_ bool *is_given = begin_orders(c);
	if (!is_good || !t || !is_given) {
		refuse(c, EINVAL, "malformed packet");
		return;
	}
	if (r && !plat_reg_set(t, PLAT_REG_RIP, (const uint8_t *)&va)) {
		refuse(c, ESRCH, "there is no such thread");
		return;
	}
	struct order o = {.action = action, .deliver = sig <= 255 ? plat_signal_in(c, (int)sig) : 0, .tid = t->tid};
	give_order(c, &o, is_given);
	if (c->c_tid <= 0)
		give_order(c, &(struct order){.action = PLAT_CONT, .tid = -1}, is_given);
	go(c);
}

static void do_c(struct plat_conn *c, struct gdb_span args)
{
	old_go(c, args, PLAT_CONT, false);
}

static void do_s(struct plat_conn *c, struct gdb_span args)
{
	old_go(c, args, PLAT_STEP, false);
}

static void do_cont_signal(struct plat_conn *c, struct gdb_span args)
{
	old_go(c, args, PLAT_CONT, true);
}

static void do_step_signal(struct plat_conn *c, struct gdb_span args)
{
	old_go(c, args, PLAT_STEP, true);
}

static void do_pass_signals(struct plat_conn *c, struct gdb_span args)
{
	struct gdb_span one;
	uint64_t sig;
	c->inf.passed = 0;
	while (gdb_next_field(&args, ';', &one))
		if (gdb_is_hex(one, &sig) && sig <= 255 && plat_signal_in(c, (int)sig))
			c->inf.passed |= 1ull << (plat_signal_in(c, (int)sig) - 1);
	plat_ok(c);
}

const struct plat_packet plat_run_packets[] = {
	{"?", do_why, PLAT_RUN | PLAT_ASKS},
	{"qThreadStopInfo", do_thread_why, PLAT_PREFIX | PLAT_PROCESS},
	{"jThreadsInfo", do_threads_info, PLAT_PROCESS},
	{"vScryLog:", do_log, PLAT_PREFIX | PLAT_RAW},
	{"vCont?", do_vcont_can, 0},
	{"vCont;", do_vcont, PLAT_PREFIX | PLAT_RAW},
	{"QPassSignals:", do_pass_signals, PLAT_PREFIX},
	{"I", do_input, PLAT_PREFIX | PLAT_PROCESS},
	{"c", do_c, PLAT_PREFIX | PLAT_RAW},
	{"s", do_s, PLAT_PREFIX | PLAT_RAW},
	{"C", do_cont_signal, PLAT_PREFIX | PLAT_RAW},
	{"S", do_step_signal, PLAT_PREFIX | PLAT_RAW},
	{0},
};
