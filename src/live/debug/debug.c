/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning and ending: what the server can do, the process it has, and what it says when that stops. */
#include "live/debug/debug.h"
#include "live/debug/debug_int.h"

#include <stdio.h>

enum { SOCKET_LEN = 108 };

/* gdb's numbers of signals that Linux numbers otherwise (include/gdb/signals.def of GDB's documentation, "Host Signal"). */
static const struct { uint8_t gdb, linux_; } signal_rows[] = {
	{5, 5}, {7, 0}, {10, 7}, {12, 31}, {16, 23}, {17, 19}, {18, 20}, {19, 18}, {20, 17}, {23, 29}, {24, 24}, {25, 25}, {26, 26}, {27, 27},
	{28, 28}, {30, 10}, {31, 12}, {32, 30},
};

int debug_signal_read(const struct debug *d, int sig)
{
	for (size_t i = 0; !d->has_linux_signals && i < ARRAY_LEN(signal_rows); i++)
		if (signal_rows[i].gdb == sig)
			return signal_rows[i].linux_;
	return sig;
}

int debug_signal_put(const struct debug *d, int sig)
{
	for (size_t i = 0; !d->has_linux_signals && i < ARRAY_LEN(signal_rows); i++)
		if (signal_rows[i].linux_ == sig)
			return signal_rows[i].gdb;
	return sig;
}

void debug_ask_passed(struct debug *d, struct debug_batch *b)
{
	_cleanup_buf_ struct buf list = {0};
	if (!d->features.has_pass_signals)
		return;
	for (int sig = 1; sig < 64; sig++)
		if (d->passed >> sig & 1)
			buf_printf(&list, "%s%x", list.len ? ";" : "", (unsigned)debug_signal_put(d, sig));
	debug_ask(b, "QPassSignals:%.*s", (int)list.len, list.len ? list.data : "");
}

struct err *debug_pass_signals(struct debug *d, uint64_t signals)
{
	_cleanup_batch_ struct debug_batch b = {0};
	d->passed = signals;
	debug_ask_passed(d, &b);
	return b.out_ends.cnt && d->state == DEBUG_STOPPED ? debug_link_run(&d->link, &b) : NULL;
}

struct err *debug_refused(struct gdb_span reply, const char *what)
{
	_cleanup_buf_ struct buf text = {0};
	unsigned code;
	if (!reply.len)
		return err_new(ERR_UNSUPPORTED, "the debug server has no %s", what);
	if (!gdb_is_error(reply, &code, &text))
		return err_new(ERR_BAD_INPUT, "the debug server answers nonsense to %s", what);
	buf_add_ch(&text, 0);
	if (text.len > 1)
		return err_new(ERR_IO, "%s: the debug server says: %.200s", what, text.data);
	return err_new(ERR_IO, "%s: the debug server refuses (error %u)", what, code);
}

void debug_forget(struct debug *d)
{
	for (size_t i = 0; i < d->pages.cnt; i++)
		free(d->pages.data[i]);
	d->pages.cnt = 0;
	map_fini(&d->page_at);
	d->page_at = (struct map){0};
	d->threads.cnt = 0;
	d->has_threads = false;
	if (d->valid)
		memset(d->valid, 0, DEBUG_REG_MAX);
}

static void forget_process(struct debug *d)
{
	d->entry_va = d->phdr_va = 0;
	d->is_learned = d->has_modules = d->list_is_long = false;
}

static void copy_span(char *out, size_t cap, struct gdb_span s)
{
	size_t n = MIN(s.len, cap - 1);
	memcpy(out, s.s, n);
	out[n] = 0;
}

static void add_thread(struct debug *d, struct gdb_span id)
{
	struct debug_thread t = {0};
	if (!id.len || id.len >= DEBUG_ID_MAX || d->threads.cnt == DEBUG_THREAD_MAX)
		return;
	copy_span(t.id, sizeof(t.id), id);
	(void)VEC_PUSH(&d->threads, t);
}

/* "threads:1a,1b" and "thread-pcs:401136,7f...", in the same order. */
static void take_threads(struct debug *d, struct gdb_span ids, struct gdb_span pcs)
{
	struct gdb_span id, pc;
	d->threads.cnt = 0;
	d->has_threads = true;
	while (gdb_next_field(&ids, ',', &id)) {
		add_thread(d, id);
		uint64_t va;
		if (gdb_next_field(&pcs, ',', &pc) && gdb_is_hex(pc, &va) && d->threads.cnt) {
			d->threads.data[d->threads.cnt - 1].pc = va;
			d->threads.data[d->threads.cnt - 1].has_pc = true;
		}
	}
}

/* "10:3611400000000000": a register of the thread that stopped. */
static void take_reg(struct debug *d, uint64_t num, struct gdb_span hex)
{
	int i = d->has_regs ? debug_regs_of_num(&d->regs, num) : -1;
	_cleanup_buf_ struct buf bytes = {0};
	if (i < 0 || !gdb_unhex(hex, DEBUG_REG_BYTES, &bytes) || bytes.len != d->regs.list[i].len)
		return;
	memcpy(d->values + d->regs.list[i].off, bytes.data, bytes.len);
	d->valid[i] = 1;
}

static void take_pair(struct debug *d, struct gdb_span key, struct gdb_span value, struct gdb_span pcs)
{
	uint64_t num;
	if (gdb_span_is(key, "thread")) {
		copy_span(d->stopped, sizeof(d->stopped), value);
	} else if (gdb_span_is(key, "threads")) {
		take_threads(d, value, pcs);
	} else if (gdb_span_is(key, "reason")) {
		copy_span(d->stop.reason, sizeof(d->stop.reason), value);
	} else if (gdb_span_is(key, "exec")) {
		copy_span(d->stop.reason, sizeof(d->stop.reason), key);
	} else if (gdb_span_is(key, "watch") || gdb_span_is(key, "rwatch") || gdb_span_is(key, "awatch")) {
		d->stop.has_watch = gdb_is_hex(value, &d->stop.watch_va);
	} else if (gdb_span_is(key, "description")) {
		/* lldb-server says where a watchpoint was hit in words: the address in decimal, in hex of the text. */
		_cleanup_buf_ struct buf text = {0};
		struct gdb_span s, first;
		if (gdb_unhex(value, 256, &text) && gdb_span_is(gdb_span_make(d->stop.reason, strlen(d->stop.reason)), "watchpoint")) {
			s = gdb_span_make(text.data, text.len);
			d->stop.has_watch = gdb_next_field(&s, ' ', &first) && gdb_is_dec(first, &d->stop.watch_va);
		}
	} else if (gdb_is_hex(key, &num)) {
		take_reg(d, num, value);
	}
}

static struct err *take_end(struct debug *d, struct gdb_span s, bool is_exit)
{
	uint64_t v;
	s.s++;
	s.len--;
	if (!gdb_take_hex(&s, &v))
		return err_new(ERR_BAD_INPUT, "the debug server says that the process ended, but not how");
	d->state = is_exit ? DEBUG_EXITED : DEBUG_KILLED;
	if (is_exit)
		d->stop.status = (int)(v & 0xff);
	else
		d->stop.signal = debug_signal_read(d, (int)(v & 0xff));
	/* Whoever starts it again starts it without them. */
	for (size_t i = 0; i < d->breaks.cnt; i++)
		d->breaks.data[i].is_in = false;
	d->stale.cnt = 0;
	d->pid = 0;
	d->has_modules = false;
	return NULL;
}

static struct err *take_stop(struct debug *d, struct gdb_span s)
{
	debug_forget(d);
	d->stop = (struct debug_stop){0};
	d->stopped[0] = 0;
	if (s.len && (s.s[0] == 'W' || s.s[0] == 'X'))
		return take_end(d, s, s.s[0] == 'W');
	if (!s.len || (s.s[0] != 'T' && s.s[0] != 'S')) {
		/* No process: that is an answer to `?`, and to nothing else. */
		d->state = DEBUG_NONE;
		return s.len && s.s[0] == 'F' ? err_new(ERR_UNSUPPORTED, "the target wants the debugger to do its system calls")
					      : debug_refused(s, "running the target");
	}
	struct gdb_span rest = gdb_span_make(s.s + 1, s.len - 1), pair, key, value, pcs = {0};
	uint64_t sig;
	struct gdb_span two = gdb_span_make(rest.s, MIN(rest.len, (size_t)2));
	if (!gdb_is_hex(two, &sig))
		return err_new(ERR_BAD_INPUT, "the debug server says that the target stopped, but not why");
	rest = gdb_span_make(rest.s + two.len, rest.len - two.len);
	d->state = DEBUG_STOPPED;
	d->stop.signal = debug_signal_read(d, (int)sig);
	gdb_find_pair(rest, "thread-pcs", &pcs);
	while (gdb_next_field(&rest, ';', &pair))
		if (gdb_split(pair, ':', &key, &value))
			take_pair(d, key, value, pcs);
	if (d->stopped[0])
		memcpy(d->current, d->stopped, sizeof(d->current));
	d->stop.has_pc = d->has_regs && d->valid[d->regs.pc] && debug_pc(d, &d->stop.pc);
	return NULL;
}

struct err *debug_take_stop(struct debug *d, struct gdb_span s)
{
	struct err *e = take_stop(d, s);
	if (e || strcmp(d->stop.reason, "exec") != 0)
		return e;
	/* Of the program that it was nothing is left. */
	forget_process(d);
	for (size_t i = 0; i < d->breaks.cnt; i++)
		d->breaks.data[i].is_in = false;
	d->stale.cnt = 0;
	return NULL;
}

struct err *debug_values_init(struct debug *d)
{
	if (!d->values)
		d->values = calloc(1, DEBUG_REGS_BYTES);
	if (!d->valid)
		d->valid = calloc(1, DEBUG_REG_MAX);
	if (!d->values || !d->valid)
		return &err_nomem;
	memset(d->valid, 0, DEBUG_REG_MAX);
	return NULL;
}

static bool reply_has(struct gdb_span reply, const char *word)
{
	return memmem(reply.s, reply.len, word, strlen(word));
}

/* Everything that can be asked before anything is known, at once; qSupported was asked with it. Then the process that the server has
 * already, if it has one. */
static struct err *negotiate(struct debug *d)
{
	_cleanup_batch_ struct debug_batch b = {0};
	size_t suffix = debug_ask(&b, "QThreadSuffixSupported");
	debug_ask(&b, "QListThreadsInStopReply");
	debug_ask(&b, "QEnableErrorStrings");
	size_t vcont = debug_ask(&b, "vCont?");
	size_t stop = debug_ask(&b, "?");
	size_t thread = debug_ask(&b, "qC");
	struct err *e = debug_link_run(&d->link, &b);
	if (e)
		return e;
	d->features = *reach_features(d->link.conn);
	enum reach_kind kind = reach_conn_kind(d->link.conn);
	d->is_scry = kind == REACH_SCRY;
	d->has_suffix = d->has_linux_signals = debug_reply_is_ok(&b, suffix);
	struct gdb_span go = debug_reply(&b, vcont);
	d->has_vcont = gdb_span_starts(go, "vCont") && reply_has(go, ";c");
	d->has_vcont_s = d->has_vcont && reply_has(go, ";s");
	d->has_library_list = d->features.has_libraries_svr4;
	d->has_g = true;
	struct gdb_span s = debug_reply(&b, stop);
	d->is_platform = kind == REACH_LLDB && !go.len && !s.len;
	d->state = DEBUG_NONE;
	if (!s.len || !strchr("TS", s.s[0]))
		return NULL;
	e = debug_learn(d);
	if (!e)
		e = debug_take_stop(d, s);
	struct gdb_span id = debug_reply(&b, thread);
	if (!e && !d->current[0] && gdb_skip(&id, "QC"))
		copy_span(d->current, sizeof(d->current), id);
	return e;
}

struct err *debug_open(const struct debug_opts *o, struct debug **ret)
{
	struct debug *d = calloc(1, sizeof(*d));
	struct reach_link link = o->link;
	if (!d) {
		reach_link_close(&link);
		return &err_nomem;
	}
	d->link.output = o->output;
	d->link.output_ctx = o->output_ctx;
	d->arch = o->arch;
	/* SIGALRM, SIGCHLD, SIGURG, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO. */
	d->passed = 1u << 14 | 1u << 17 | 1u << 23 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 29;
	struct err *e = debug_link_begin(&d->link, link, &o->wait);
	if (!e)
		e = debug_values_init(d);
	if (!e)
		e = negotiate(d);
	if (e)
		debug_close(d);
	else
		*ret = d;
	return e;
}

struct err *debug_spawn(struct debug *d, struct debug_server *ret)
{
	_cleanup_batch_ struct debug_batch b = {0};
	struct gdb_span v;
	uint64_t port = 0;
	*ret = (struct debug_server){0};
	size_t at = debug_ask(&b, "qLaunchGDBServer;host:;");
	struct err *e = debug_link_run(&d->link, &b);
	struct gdb_span s = debug_reply(&b, at);
	if (e)
		return e;
	if (gdb_find_pair(s, "pid", &v) && !gdb_is_dec(v, &ret->pid))
		ret->pid = 0;
	if (gdb_find_pair(s, "port", &v) && gdb_is_dec(v, &port) && port && port <= UINT16_MAX) {
		ret->port = (unsigned)port;
		return NULL;
	}
	if (gdb_find_pair(s, "socket_name", &v) && gdb_unhex(v, SOCKET_LEN, &ret->socket) && ret->socket.len) {
		buf_add_ch(&ret->socket, 0);
		return ret->socket.failed ? &err_nomem : NULL;
	}
	return debug_refused(s, "starting debug servers");
}

void debug_close(struct debug *d)
{
	if (!d)
		return;
	debug_forget(d);
	debug_recorder_free(d->log.recorder);
	VEC_FREE(&d->pages);
	VEC_FREE(&d->threads);
	VEC_FREE(&d->breaks);
	VEC_FREE(&d->stale);
	for (size_t i = 0; i < d->modules.cnt; i++)
		free(d->modules.data[i].name);
	VEC_FREE(&d->modules);
	free(d->values);
	free(d->valid);
	debug_link_fini(&d->link);
	free(d);
}

void debug_interrupt(struct debug *d)
{
	debug_link_interrupt(&d->link);
}

/* `vRun;hex;hex`, else LLDB's `A` and what it stopped with. */
struct err *debug_launch(struct debug *d, const char *const *argv, size_t argc)
{
	_cleanup_batch_ struct debug_batch b = {0};
	_cleanup_buf_ struct buf run = {0}, old = {0};
	buf_add_str(&run, "vRun");
	buf_add_ch(&old, 'A');
	for (size_t i = 0; i < argc; i++) {
		size_t len = strlen(argv[i]);
		buf_add_ch(&run, ';');
		buf_add_hexbytes(&run, (const uint8_t *)argv[i], len);
		buf_printf(&old, "%s%zu,%zu,", i ? "," : "", 2 * len, i);
		buf_add_hexbytes(&old, (const uint8_t *)argv[i], len);
	}
	if (run.failed || old.failed)
		return &err_nomem;
	/* Without `!` gdbserver ends with its process, which is what people want who started one with it. */
	debug_ask(&b, "!");
	debug_ask(&b, "QSetDisableASLR:1");
	debug_ask(&b, "QDisableRandomization:1");
	size_t run_at = debug_ask(&b, "%.*s", (int)run.len, run.data);
	/* It answers with a stop, which takes what starting takes. What there is to know of the new process is asked along with it. */
	debug_runs(&b);
	struct debug_learning learning = {0};
	if (reach_is_noack(d->link.conn))
		debug_ask_learning(d, &b, &learning);
	forget_process(d);
	struct err *e = debug_link_run(&d->link, &b);
	if (e)
		return e;
	struct gdb_span s = debug_reply(&b, run_at);
	if (s.len && strchr("TS", s.s[0]) && learning.is_asked)
		e = debug_take_learning(d, &b, &learning);
	if (e)
		return e;
	if (!s.len) {
		debug_batch_clear(&b);
		debug_ask(&b, "%.*s", (int)old.len, old.data);
		debug_ask(&b, "qLaunchSuccess");
		debug_ask(&b, "?");
		e = debug_link_run(&d->link, &b);
		s = debug_reply(&b, debug_reply_is_ok(&b, 0) ? 2 : 0);
		if (e)
			return e;
	}
	if (!s.len || !strchr("TSWX", s.s[0]))
		return err_prefix(debug_refused(s, "starting programs"), "%s", argv[0]);
	e = debug_learn(d);
	/* Some say that it became the program: what was learned is of that. */
	return e ? e : take_stop(d, s);
}

struct err *debug_attach(struct debug *d, uint64_t pid)
{
	_cleanup_batch_ struct debug_batch b = {0};
	debug_ask(&b, "!");
	size_t at = debug_ask(&b, "vAttach;%llx", (unsigned long long)pid);
	debug_runs(&b);
	forget_process(d);
	struct err *e = debug_link_run(&d->link, &b);
	struct gdb_span s = debug_reply(&b, at);
	if (!e && (!s.len || !strchr("TS", s.s[0])))
		e = debug_refused(s, "attaching");
	if (!e)
		e = debug_learn(d);
	return e ? e : debug_take_stop(d, s);
}

struct err *debug_detach(struct debug *d)
{
	_cleanup_batch_ struct debug_batch b = {0};
	DEBUG_STOPPED_ONLY(d);
	debug_ask_stale(d, &b);
	for (size_t i = 0; i < d->breaks.cnt; i++)
		if (d->breaks.data[i].is_in) {
			debug_ask(&b, "z%u,%llx,%x", d->breaks.data[i].kind, (unsigned long long)d->breaks.data[i].va, d->breaks.data[i].len);
			d->breaks.data[i].is_in = false;
		}
	char id[24] = "";
	if (d->features.has_multiprocess && d->current[0] == 'p')
		snprintf(id, sizeof(id), ";%.*s", (int)strcspn(d->current + 1, "."), d->current + 1);
	size_t i = debug_ask(&b, "D%s", id);
	struct err *e = debug_link_run(&d->link, &b);
	if (!e && !debug_reply_is_ok(&b, i))
		e = debug_refused(debug_reply(&b, i), "detaching");
	if (!e)
		d->state = DEBUG_DETACHED;
	return e;
}

struct err *debug_kill(struct debug *d)
{
	_cleanup_batch_ struct debug_batch b = {0};
	if (d->state != DEBUG_STOPPED)
		return NULL;
	struct err *e = NULL;
	bool is_killed = false;
	if (d->features.has_multiprocess && d->current[0] == 'p') {
		debug_ask(&b, "vKill;%.*s", (int)strcspn(d->current + 1, "."), d->current + 1);
		e = debug_link_run(&d->link, &b);
		is_killed = e || debug_reply_is_ok(&b, 0);
	}
	if (!is_killed) {
		debug_batch_clear(&b);
		debug_ask(&b, "k");
		e = debug_link_run(&d->link, &b);
	}
	/* Many servers answer by going away. */
	err_free(e);
	d->state = DEBUG_KILLED;
	d->stop = (struct debug_stop){.signal = 9};
	for (size_t k = 0; k < d->breaks.cnt; k++)
		d->breaks.data[k].is_in = false;
	d->stale.cnt = 0;
	debug_forget(d);
	return NULL;
}
