/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options to a trace. A selection (-e) is a bit per number of x86-64 calls, which is what both sources take; what a source cannot
 * tell apart by itself (a command's name, a container) is looked at again here, event by event.
 */
#include "session/ses_trace.h"

#include "session/ses_live.h"
#include "session/ses_trace_int.h"
#include "session/ses_trace_line.h"

#include "live/trace/sysc.h"
#include "live/trace/sysc_check.h"
#include "live/trace/trace_btf.h"
#include "live/trace/trace_capture.h"
#include "live/trace/trace_count.h"
#include "live/trace/trace_fds.h"
#include "live/trace/trace_file.h"
#include "live/trace/trace_finding.h"
#include "live/trace/trace_json.h"
#include "live/trace/trace_ptrace.h"
#include "live/trace/trace_site.h"
#include "live/trace/trace_text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define PID_MAX 256
#define KEEP_MAX 1000
#define RING_MIN (64u << 10)
#define RING_MAX (256u << 20)
#define COMM_LEN 15 /* of a name the kernel keeps so much */
#define FLUSH_LEN 65536
#define FLUSH_NS 200000000u
#define CAPTURE_MIN 512 /* bytes of strings that a source reads */
#define STACK_USUAL 256  /* bytes of stack where call sites are kept or shown: more of some calls (trace_plan.h) */
#define STACK_MAX 2048   /* with --stacks: who called that, too */
#define ROW_STRING 200   /* bytes of strings in rows */

enum form { FORM_LINES, FORM_TABLE, FORM_JSON, FORM_ROWS };

struct trace {
	const struct ops_args *args;
	const struct ses_trace_io *io;
	enum form form;
	uint64_t wanted[16];   /* calls a source has to give */
	uint64_t shown[16];    /* with rules: those of -e, which are shown beside findings */
	bool has_wanted;
	struct trace_rules *rules;
	pid_t pids[PID_MAX];
	size_t pid_cnt;
	const char *comm, *container;
	uint64_t until_events, until_ns; /* 0: no end */
	uint64_t limit_len;    /* of files, bytes; 0: as it is */
	unsigned keep;
	uint32_t ring_len;     /* bytes, a power of two; 0: as it is */
	uint32_t stack_len;    /* bytes of each call's stack that are recorded */
	uint64_t begun_ns, flushed_ns, event_cnt;
	uint64_t first_ns;     /* time of the first event */
	uint64_t polled_ns;    /* when the source first asked whether it is to stop: it has begun by then */
	bool is_read;          /* from a file */
	struct trace_text_opts text;
	struct trace_counts *counts;
	struct trace_btf *btf;
	struct trace_fds *fds;
	struct trace_sites *sites; /* with --stacks, rules and rows */
	struct ses_lines *lines;   /* with --lines */
	bool shows_stacks;
	struct trace_capture *capture;
	bool is_narrow;        /* more calls are wanted than those of -e, which are `shown` */
	struct buf out;
	uint32_t first_tid;
	uint64_t missing_cnt; /* events that are lost, as far as their number is known */
	bool misses_unknown;
	bool is_stopped;
	struct trace_frame_text frames[TRACE_FRAMES_MAX]; /* of the event at hand, the call's site first */
	size_t frame_cnt;
	struct arena arena;    /* their texts */
	bool is_silent;        /* events go to a file, and are not shown */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- what was asked for ----------------------------------------------------------------------------------------------- */
static void want(struct trace *t, const struct sysc *s, bool on)
{
	int nr = s->nr[TRACE_X86_64];
	if (nr < 0)
		return;
	if (on)
		t->wanted[nr / 64] |= (uint64_t)1 << (nr % 64);
	else
		t->wanted[nr / 64] &= ~((uint64_t)1 << (nr % 64));
}

static void want_class(struct trace *t, uint16_t bit, bool on)
{
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++)
		if (all[i].classes & bit || bit == UINT16_MAX)
			want(t, &all[i], on);
}

/* "openat", "%file", "file", "all", "none". */
static struct err *want_word(struct trace *t, const char *word, size_t len, bool on)
{
	const struct sysc *s = sysc_by_name(word, len);
	uint16_t bit = s ? 0 : sysc_class_bit(word, len);
	if (s)
		want(t, s, on);
	else if (bit)
		want_class(t, bit, on);
	else if (len == 3 && !memcmp(word, "all", 3))
		want_class(t, UINT16_MAX, on);
	else if (!(len == 4 && !memcmp(word, "none", 4)))
		return err_fix(err_new(ERR_INVALID, "-e %.*s: no system call and no class has that name", (int)len, word),
			       "classes are file, network, memory, process, signal, ipc, desc, creds, clock, stat, pure; all, none");
	return NULL;
}

/* strace's spelling: "trace=LIST" or "LIST", "!LIST" for all others. */
static struct err *want_list(struct trace *t, const char *list)
{
	if (!strncmp(list, "trace=", 6))
		list += 6;
	bool is_not = *list == '!';
	list += is_not;
	if (is_not && !t->has_wanted)
		want_class(t, UINT16_MAX, true);
	t->has_wanted = true;
	if (!*list)
		return err_new(ERR_INVALID, "-e: names no system call");
	while (*list) {
		size_t len = strcspn(list, ",");
		struct err *e = want_word(t, list, len, !is_not);
		if (e)
			return e;
		list += len + (list[len] == ',');
	}
	return NULL;
}

/* "100" events, "5s", "200ms", "2m". */
static struct err *read_until(struct trace *t, const char *text)
{
	char *end;
	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}};
	if (end == text || errno || *text == '-' || !n)
		return err_fix(err_new(ERR_INVALID, "--until %s: is no number", text), "--until 1000 is a number of events, 5s and 200ms a time");
	if (!*end) {
		t->until_events = n;
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(end, units[i].unit) && n < UINT64_MAX / units[i].ns) {
			t->until_ns = n * units[i].ns;
			return NULL;
		}
	return err_new(ERR_INVALID, "--until %s: the unit is none of ms, s, m, h", text);
}

/* "65536", "64K", "16M", "2G" of the argument `name`, which users call `option`; 0 where it is not given. */
static struct err *read_size(const struct trace *t, const char *name, const char *option, uint64_t *ret)
{
	const char *text = ops_arg_str(t->args, name);
	*ret = 0;
	if (!text)
		return NULL;
	char *end;
	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr("KMG", *end) : "";
	unsigned shift = !*end ? 0 : unit ? 10 * (unsigned)(unit - "KMG" + 1) : 0;
	if (end == text || errno || *text == '-' || !n || !unit || (*end && end[1]) || n > UINT64_MAX >> 20 >> shift)
		return err_fix(err_new(ERR_INVALID, "--%s %s: is no size", option, text), "500000, 64K, 16M or 2G is one, in bytes");
	*ret = n << shift;
	return NULL;
}

/* How much may be kept, in the ring and in files. */
static struct err *read_bounds(struct trace *t)
{
	uint64_t ring;
	struct err *e = read_size(t, "file_limit", "file-limit", &t->limit_len);
	if (!e)
		e = read_size(t, "ring", "ring", &ring);
	if (e)
		return e;
	int64_t keep = ops_arg_is_set(t->args, "keep") ? (int64_t)ops_arg_u64(t->args, "keep", 1) : 1;
	if (keep < 1 || keep > KEEP_MAX)
		return err_new(ERR_INVALID, "--keep: from 1 to %d files can be kept", KEEP_MAX);
	if ((t->limit_len || ops_arg_is_set(t->args, "keep")) && !ops_arg_is_set(t->args, "output"))
		return err_new(ERR_INVALID, "--file-limit and --keep are of files: -o FILE is missing");
	if (ring > RING_MAX)
		return err_new(ERR_INVALID, "--ring: at most %u MB are possible", RING_MAX >> 20);
	t->keep = (unsigned)keep;
	t->ring_len = ring ? RING_MIN : 0;
	while (t->ring_len < ring)
		t->ring_len *= 2;
	return NULL;
}

/* How much of the stack a call has with it. */
static struct err *read_stack_len(struct trace *t)
{
	uint64_t len = 0;
	const char *text = ops_arg_str(t->args, "stack_size");
	bool is_kept = t->form == FORM_JSON || ops_arg_is_set(t->args, "output") || ops_arg_is_set(t->args, "rule");
	struct err *e = text && !strcmp(text, "0") ? NULL : read_size(t, "stack_size", "stack-size", &len);
	if (!e && len > STACK_MAX)
		e = err_new(ERR_INVALID, "--stack-size: at most %u bytes are possible", STACK_MAX);
	if (e)
		return e;
	if (!text)
		len = t->shows_stacks || t->form == FORM_ROWS ? STACK_MAX : is_kept ? STACK_USUAL : 0;
	t->stack_len = (uint32_t)(len + 7) & ~7u;
	return NULL;
}

static struct err *read_pids(struct trace *t)
{
	size_t cnt;
	const char *const *texts = ops_arg_texts(t->args, "pid", &cnt);
	for (size_t i = 0; i < cnt; i++) {
		const char *p = texts[i];
		while (*p) {
			char *end;
			errno = 0;
			long pid = strtol(p, &end, 10);
			if (errno || end == p || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
				return err_new(ERR_INVALID, "-p %s: is no number of a process", texts[i]);
			if (t->pid_cnt == PID_MAX)
				return err_new(ERR_BUDGET, "-p: more than %d processes", PID_MAX);
			t->pids[t->pid_cnt++] = (pid_t)pid;
			p = *end ? end + 1 : end;
		}
	}
	return NULL;
}

static struct err *read_args(struct trace *t)
{
	size_t cnt, cmd_cnt;
	const char *const *lists = ops_arg_texts(t->args, "expr", &cnt), *until = ops_arg_str(t->args, "until");
	struct err *e = NULL;
	for (size_t i = 0; !e && i < cnt; i++)
		e = want_list(t, lists[i]);
	if (!e)
		e = read_pids(t);
	if (!e && until)
		e = read_until(t, until);
	if (!e)
		e = read_bounds(t);
	if (e)
		return e;
	ops_arg_texts(t->args, "cmd", &cmd_cnt);
	t->comm = ops_arg_str(t->args, "comm");
	t->container = ops_arg_str(t->args, "container");
	if ((t->comm && !*t->comm) || (t->container && !*t->container))
		return err_new(ERR_INVALID, "%s: the name is empty", t->comm && !*t->comm ? "-t" : "--container");
	t->form = t->io->is_rows ? FORM_ROWS : t->io->is_json ? FORM_JSON : ops_arg_is_set(t->args, "table") ? FORM_TABLE : FORM_LINES;
	uint64_t usual = t->form == FORM_JSON ? 4096 : t->form == FORM_ROWS ? ROW_STRING : 32;
	t->text.string_max = (uint32_t)MIN(ops_arg_u64(t->args, "string_max", usual), 1u << 20);
	t->shows_stacks = ops_arg_is_set(t->args, "stacks") || ops_arg_is_set(t->args, "lines");
	e = read_stack_len(t);
	if (e)
		return e;
	t->text.has_pid = ops_arg_is_set(t->args, "to"); /* beside others, when there are several */
	t->text.has_times = ops_arg_is_set(t->args, "times");
	static const char *const others[] = {"output", "summary", "table", "to", "rules"};
	for (size_t i = 0; t->form == FORM_ROWS && i < ARRAY_LEN(others); i++) {
		if (ops_arg_is_set(t->args, others[i]))
			return err_new(ERR_INVALID, "--%s: a live trace is shown as rows", others[i]);
	}
	if (ops_arg_is_set(t->args, "read") && (cmd_cnt || t->pid_cnt || ops_arg_is_set(t->args, "output")))
		return err_new(ERR_INVALID, "--read shows a trace that was made: no program, -p or -o beside it");
	if (!cmd_cnt && !t->pid_cnt && !t->comm && !t->container && !ops_arg_is_set(t->args, "read"))
		return err_fix(err_new(ERR_INVALID, "trace: nothing says what to trace"), "scry trace -- CMD, or scry trace -p PID");
	return NULL;
}

/* --- what becomes of an event ----------------------------------------------------------------------------------------- */
static bool flush(struct trace *t)
{
	bool goes_on = !t->out.failed && (!t->out.len || t->io->write(t->io->ctx, t->out.data, t->out.len));
	t->out.len = 0;
	t->flushed_ns = now_ns();
	return goes_on;
}

static void put_table_row(struct trace *t, const struct trace_event *ev)
{
	char space[24];
	const char *name;
	uint64_t at = ev->time > t->begun_ns ? ev->time - t->begun_ns : 0;
	buf_printf(&t->out, "%4" PRIu64 ".%06" PRIu64 "  %7u  ", at / 1000000000, at / 1000 % 1000000, ev->tid);
	_cleanup_buf_ struct buf comm = {0}, line = {0};
	ops_escape(&comm, ev->comm ? ev->comm : "?", ev->comm ? strlen(ev->comm) : 1);
	buf_printf(&t->out, "%-15.*s  %-18s  ", (int)comm.len, comm.data ? comm.data : "", trace_text_name(ev, space));
	if (ev->kind == TRACE_SYSCALL && !ev->unfinished && trace_text_errno(ev, &name))
		buf_printf(&t->out, "%-18s", name ? name : "error");
	else if (ev->kind == TRACE_SYSCALL && !ev->unfinished)
		buf_printf(&t->out, ev->ret < 0 || ev->ret > 0xfffffff ? "0x%-16" PRIx64 : "%-18" PRId64, ev->ret);
	else
		buf_printf(&t->out, "%-18s", "");
	if (ev->ns)
		buf_printf(&t->out, "  %10" PRIu64 "  ", ev->ns / 1000);
	else
		buf_printf(&t->out, "  %10s  ", "");
	struct trace_text_opts plain = t->text;
	plain.has_pid = plain.has_times = false;
	trace_text_event(ev, &plain, &line);
	size_t end = line.len;
	for (size_t i = line.len; i > 3 && ev->kind == TRACE_SYSCALL; i--) /* its result has a column */
		if (!memcmp(line.data + i - 3, " = ", 3)) {
			end = i - 3;
			break;
		}
	while (end && (line.data[end - 1] == ' ' || line.data[end - 1] == '\n'))
		end--;
	buf_add(&t->out, line.data ? line.data : "", end);
	buf_add_ch(&t->out, '\n');
}

static bool is_of(const uint64_t bits[16], unsigned abi, int nr)
{
	const struct sysc *s = sysc_find(abi, nr);
	int bit = s ? s->nr[TRACE_X86_64] : -1;
	return bit >= 0 && bit < 16 * 64 && bits[bit / 64] >> (bit % 64) & 1;
}

/* Events that are no calls are of the JSON and the table; as lines only those strace shows. */
static bool is_shown(const struct trace *t, const struct trace_event *ev)
{
	bool is_line = ev->kind == TRACE_SYSCALL || ev->kind == TRACE_SIGNAL || ev->kind == TRACE_EXIT || ev->kind == TRACE_LOST ||
		       ev->kind == TRACE_PROBE;
	const struct sysc *s = ev->kind == TRACE_SYSCALL ? sysc_find(ev->abi, ev->nr) : NULL;
	bool is_exit = s && s->flags & SYSC_NO_RETURN && !strncmp(s->name, "exit", 4);
	/* It is shown when it has ended. */
	bool is_begun = ev->kind == TRACE_SYSCALL && ev->unfinished && !is_exit && !ev->left;
	if (t->is_silent || (t->form == FORM_JSON ? ev->left == TRACE_LEFT_AGAIN : is_begun))
		return false;
	if (t->form == FORM_ROWS && ev->kind == TRACE_PROCESS)
		return false;
	if (ev->kind == TRACE_SYSCALL && t->has_wanted && !is_of(t->wanted, ev->abi, ev->nr) && sysc_find(ev->abi, ev->nr))
		return false;
	if (t->is_narrow && ev->kind == TRACE_SYSCALL && !is_of(t->shown, ev->abi, ev->nr))
		return false;
	if (t->comm && (!ev->comm || strncmp(ev->comm, t->comm, COMM_LEN) != 0))
		return false;
	if (t->rules && t->form == FORM_ROWS && t->has_wanted && ev->kind == TRACE_SYSCALL && !is_of(t->shown, ev->abi, ev->nr))
		return false;
	if (t->rules && t->form != FORM_ROWS && (ev->kind != TRACE_SYSCALL ? ev->kind != TRACE_LOST : !is_of(t->shown, ev->abi, ev->nr)))
		return false;
	if (t->container && (!ev->container || strncmp(ev->container, t->container, strlen(t->container)) != 0))
		return false;
	return t->form != FORM_LINES || is_line;
}

static const char *hex_text(struct trace *t, const uint8_t *bytes, size_t len)
{
	_cleanup_buf_ struct buf text = {0};
	buf_add_hexbytes(&text, bytes, len);
	return text.failed || !len ? NULL : arena_strndup(&t->arena, text.data, text.len);
}

/* Who made the call: outside of the C library first, then what called that. */
static void find_frames(struct trace *t, const struct trace_event *ev)
{
	struct trace_frame found[TRACE_FRAMES_MAX];
	t->frame_cnt = 0;
	if (!t->sites || ev->kind != TRACE_SYSCALL)
		return;
	arena_reset(&t->arena);
	size_t cnt = trace_sites_frames(t->sites, ev, found, ARRAY_LEN(found));
	for (size_t i = cnt ? trace_sites_caller(found, cnt) : 0; i < cnt; i++) {
		const struct trace_frame *f = &found[i];
		t->frames[t->frame_cnt++] = (struct trace_frame_text){
			.module = f->module, .offset = f->module ? f->file_off : f->va, .build_id = hex_text(t, f->build_id, f->build_id_len),
			.func = f->func ? arena_strndup(&t->arena, f->func, f->func_len) : NULL};
		if (!t->lines || !f->module)
			continue;
		struct ses_line line = ses_lines_find(t->lines, f->module, f->file_off);
		struct trace_frame_text *to = &t->frames[t->frame_cnt - 1];
		to->line = line.line;
		to->func = to->func ? to->func : line.func;
	}
}

/* " > /usr/bin/cat(main) [0x1234]", as strace has it. */
static void put_frames(struct trace *t)
{
	if (!t->shows_stacks)
		return;
	for (size_t i = 0; i < t->frame_cnt; i++) {
		const struct trace_frame_text *f = &t->frames[i];
		buf_add_str(&t->out, " > ");
		ops_escape(&t->out, f->module ? f->module : "?", f->module ? strlen(f->module) : 1);
		buf_add_ch(&t->out, '(');
		ops_escape(&t->out, f->func ? f->func : "", f->func ? strlen(f->func) : 0);
		buf_printf(&t->out, ") [0x%" PRIx64 "]", f->offset);
		if (f->line)
			buf_printf(&t->out, " line %u", f->line);
		buf_add_ch(&t->out, '\n');
	}
}

/* --- rows --- */

static struct ses_text text_of(const char *s)
{
	return s ? (struct ses_text){s, (uint32_t)strlen(s)} : (struct ses_text){"", 0};
}

static struct ses_text escaped(struct trace *t, const char *s)
{
	_cleanup_buf_ struct buf text = {0};
	ops_escape(&text, s ? s : "", s ? strlen(s) : 0);
	char *own = text.failed ? NULL : arena_strndup(&t->arena, text.data ? text.data : "", text.len);
	return own ? (struct ses_text){own, (uint32_t)text.len} : (struct ses_text){"", 0};
}

/* All frames: what called the C library is `site`. */
static void row_frames(struct trace *t, const struct trace_event *ev, struct ses_live_frame *ret, struct ses_live_row *r)
{
	struct trace_frame found[TRACE_FRAMES_MAX];
	size_t cnt = t->sites && ev->kind == TRACE_SYSCALL ? trace_sites_frames(t->sites, ev, found, ARRAY_LEN(found)) : 0;
	for (size_t i = 0; i < cnt; i++) {
		const struct trace_frame *f = &found[i];
		ret[i] = (struct ses_live_frame){.module = text_of(f->module), .func = {f->func ? f->func : "", f->func ? f->func_len : 0},
						 .off = f->module ? f->file_off : f->va, .func_off = f->func_off, .is_guess = f->is_guess};
	}
	r->frames = ret;
	r->frame_cnt = (uint32_t)cnt;
	r->site = cnt ? (uint32_t)trace_sites_caller(found, cnt) : 0;
}

/* The line as strace writes it, in parts: what stands between name and result, and the result. */
static void split_line(struct ses_live_row *r, const char *line, size_t len)
{
	while (len && (line[len - 1] == '\n' || line[len - 1] == ' '))
		len--;
	r->args = (struct ses_text){line, (uint32_t)len};
	if (r->kind != SES_LIVE_CALL || len < r->name.len || memcmp(line, r->name.s, r->name.len) != 0)
		return;
	r->args = (struct ses_text){line + r->name.len, (uint32_t)(len - r->name.len)};
	for (size_t i = r->args.len; i > 3 && !r->is_unfinished; i--) {
		if (memcmp(r->args.s + i - 3, " = ", 3) != 0)
			continue;
		r->result = (struct ses_text){r->args.s + i, r->args.len - (uint32_t)i};
		for (r->args.len = (uint32_t)i - 3; r->args.len && r->args.s[r->args.len - 1] == ' '; r->args.len--)
			;
		return;
	}
}

static void put_row(struct trace *t, const struct trace_event *ev)
{
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	char space[24];
	const char *error;
	const struct sysc *s = ev->kind == TRACE_SYSCALL ? sysc_find(ev->abi, ev->nr) : NULL;
	struct ses_live_row r = {.pid = ev->pid, .tid = ev->tid, .ns = ev->ns, .is_unfinished = ev->unfinished, .classes = s ? s->classes : 0};
	struct trace_text_opts plain = t->text;
	_cleanup_buf_ struct buf line = {0};
	plain.has_pid = plain.has_times = false;
	arena_reset(&t->arena);
	r.kind = ev->kind == TRACE_SYSCALL ? SES_LIVE_CALL : ev->kind == TRACE_LOST ? SES_LIVE_LOST : SES_LIVE_EVENT;
	r.time = ev->time > t->first_ns ? ev->time - t->first_ns : 0;
	r.is_error = ev->kind == TRACE_SYSCALL && !ev->unfinished && trace_text_errno(ev, &error);
	r.name = text_of(trace_text_name(ev, space));
	r.comm = escaped(t, ev->comm);
	if (ev->kind == TRACE_LOST)
		r.ns = ev->lost.count;
	trace_text_event(ev, &plain, &line);
	split_line(&r, line.data ? line.data : "", line.len);
	row_frames(t, ev, frames, &r);
	ses_live_put(&r, &t->out);
}

static void put_finding_row(struct trace *t, const struct trace_finding *f)
{
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	_cleanup_buf_ struct buf line = {0};
	struct ses_live_row r = {.kind = SES_LIVE_FINDING, .pid = f->pid, .tid = f->pid, .name = text_of(f->rule), .result = text_of(f->severity)};
	struct trace_text_opts plain = t->text;
	plain.has_pid = plain.has_times = false;
	arena_reset(&t->arena);
	r.time = f->time > t->first_ns ? f->time - t->first_ns : 0;
	r.comm = escaped(t, f->comm);
	buf_add_str(&line, f->title ? f->title : "");
	if (f->technique)
		buf_printf(&line, " (%s)", f->technique);
	if (f->repeats)
		buf_printf(&line, ", %" PRIu64 " times more", f->repeats);
	if (f->ev) {
		buf_add_str(&line, ": ");
		trace_text_event(f->ev, &plain, &line);
		row_frames(t, f->ev, frames, &r);
	}
	split_line(&r, line.data ? line.data : "", line.len);
	ses_live_put(&r, &t->out);
}

static void put_event(struct trace *t, const struct trace_event *ev)
{
	if (ev->kind == TRACE_LOST) {
		t->missing_cnt += ev->lost.count;
		t->misses_unknown |= !ev->lost.count;
	} else {
		t->first_tid = t->first_tid ? t->first_tid : ev->tid;
		t->text.has_pid |= ev->tid != t->first_tid;
	}
	if (t->counts) {
		trace_counts_add(t->counts, ev);
	} else if (t->form == FORM_ROWS) {
		put_row(t, ev);
	} else if (t->form == FORM_JSON) {
		trace_json_event(ev, &t->text, t->frames, t->frame_cnt, &t->out);
		buf_add_ch(&t->out, '\n');
	} else if (t->form == FORM_TABLE) {
		put_table_row(t, ev);
	} else {
		trace_text_event(ev, &t->text, &t->out);
	}
	if (!t->counts && (t->form == FORM_LINES || t->form == FORM_TABLE))
		put_frames(t);
}

static bool gives_fd(const struct trace_event *ev)
{
	struct sysc resolved;
	const struct sysc *s = ev->kind == TRACE_SYSCALL ? sysc_find(ev->abi, ev->nr) : NULL;
	if (!s)
		return false;
	sysc_resolve(s, ev->args, &resolved);
	return resolved.flags & SYSC_RET_FD;
}

static void on_finding(void *ctx, const struct trace_finding *f)
{
	struct trace *t = ctx;
	if (t->form == FORM_ROWS) {
		put_finding_row(t, f);
		return;
	}
	t->frame_cnt = 0;
	if (f->ev)
		find_frames(t, f->ev);
	if (t->form == FORM_JSON) {
		trace_finding_json(f, &t->text, t->frames, t->frame_cnt, &t->out);
		buf_add_ch(&t->out, '\n');
	} else {
		trace_finding_text(f, &t->text, t->frames, t->frame_cnt, &t->out);
	}
}

static bool on_event(void *ctx, const struct trace_event *ev)
{
	struct trace *t = ctx;
	bool goes_on = true, opens = t->fds && gives_fd(ev);
	t->begun_ns = t->begun_ns ? t->begun_ns : ev->time;
	t->first_ns = t->first_ns ? t->first_ns : ev->time;
	bool is_new = ev->left != TRACE_LEFT_AGAIN;
	if (t->sites && is_new)
		trace_sites_event(t->sites, ev);
	if (t->rules && is_new)
		trace_rules_event(t->rules, ev);
	if (t->capture && is_new)
		trace_capture_event(t->capture, ev);
	if (opens) /* what the result is open on is shown with it */
		trace_fds_event(t->fds, ev);
	if (is_shown(t, ev)) {
		if (t->form != FORM_ROWS && (t->shows_stacks || t->form == FORM_JSON))
			find_frames(t, ev);
		put_event(t, ev);
		t->event_cnt++;
	}
	if (t->fds && !opens)
		trace_fds_event(t->fds, ev);
	if (t->out.len >= FLUSH_LEN || (t->out.len && (t->io->is_live || ev->time > t->flushed_ns + FLUSH_NS)))
		goes_on = flush(t);
	bool is_late = t->is_read && t->until_ns && ev->time >= t->begun_ns + t->until_ns;
	t->is_stopped = !goes_on || is_late || (t->until_events && t->event_cnt >= t->until_events);
	return !t->is_stopped;
}

static bool is_stopped(void *ctx)
{
	struct trace *t = ctx;
	uint64_t now = now_ns();
	t->polled_ns = t->polled_ns ? t->polled_ns : now;
	return t->is_stopped || (t->io->cancel && atomic_load(t->io->cancel)) || (t->until_ns && now >= t->polled_ns + t->until_ns);
}

/* --- the summary ------------------------------------------------------------------------------------------------------ */
static void put_summary_json(struct trace *t, const struct trace_count_row *rows, size_t cnt)
{
	struct json j = json_make(&t->out);
	json_obj(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	json_key(&j, "calls");
	json_arr(&j);
	for (size_t i = 0; i < cnt; i++) {
		json_obj(&j);
		json_key(&j, "name");
		json_str(&j, rows[i].name);
		json_key(&j, "calls");
		json_u64(&j, rows[i].calls);
		json_key(&j, "errors");
		json_u64(&j, rows[i].errors);
		json_key(&j, "timed");
		json_u64(&j, rows[i].timed);
		json_key(&j, "ns");
		json_u64(&j, rows[i].ns);
		json_key(&j, "max_ns");
		json_u64(&j, rows[i].max_ns);
		json_end_obj(&j);
	}
	json_end_arr(&j);
	json_key(&j, "missing");
	json_u64(&j, t->missing_cnt);
	json_key(&j, "misses_unknown");
	json_bool(&j, t->misses_unknown);
	json_end_obj(&j);
	buf_add_ch(&t->out, '\n');
}

static void put_summary(struct trace *t)
{
	size_t cnt;
	const struct trace_count_row *rows = trace_counts_rows(t->counts, &cnt);
	struct trace_count_row sum = {.name = "total"};
	if (t->form == FORM_JSON) {
		put_summary_json(t, rows, cnt);
		return;
	}
	for (size_t i = 0; i < cnt; i++) {
		sum.ns += rows[i].ns;
		sum.calls += rows[i].calls;
		sum.errors += rows[i].errors;
	}
	buf_printf(&t->out, "%6s %11s %11s %11s %9s %9s %s\n", "% time", "seconds", "usecs/call", "max usecs", "calls", "errors", "syscall");
	for (size_t i = 0; i <= cnt; i++) {
		const struct trace_count_row *r = i < cnt ? &rows[i] : &sum;
		double part = sum.ns ? 100.0 * (double)r->ns / (double)sum.ns : 0;
		buf_printf(&t->out, "%6.2f %11.6f %11" PRIu64 " %11" PRIu64 " %9" PRIu64 " ", part, (double)r->ns / 1e9,
			   r->calls ? r->ns / 1000 / r->calls : 0, r->max_ns / 1000, r->calls);
		if (r->errors)
			buf_printf(&t->out, "%9" PRIu64 " %s\n", r->errors, r->name);
		else
			buf_printf(&t->out, "%9s %s\n", "", r->name);
	}
}

/* --- the sources ------------------------------------------------------------------------------------------------------ */
static void on_tick(int sig)
{
	(void)sig; /* what waits is interrupted, and looks at the time */
}

/* While it waits for children, a timer interrupts it. */
static void set_tick(bool on)
{
	struct sigaction tick = {.sa_handler = on ? on_tick : SIG_DFL};
	struct itimerval every = {.it_interval.tv_usec = on ? 100000 : 0, .it_value.tv_usec = on ? 100000 : 0};
	if (on)
		sigaction(SIGALRM, &tick, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	if (!on)
		sigaction(SIGALRM, &tick, NULL);
}

/* By ptrace. Events become records for a file. */
struct by_ptrace {
	const struct ses_trace_what *what;
	struct trace_writer *writer;
	struct err *e;
	uint64_t cnt;
};

static bool on_ptrace_event(void *ctx, const struct trace_event *ev)
{
	struct by_ptrace *b = ctx;
	b->cnt++;
	if (b->writer)
		b->e = trace_writer_event(b->writer, ev);
	bool is_full = b->writer && trace_writer_is_full(b->writer);
	return !b->e && !is_full && (!b->what->sink || b->what->sink(b->what->ctx, ev));
}

static bool is_ptrace_stopped(void *ctx)
{
	const struct by_ptrace *b = ctx;
	return b->what->is_stopped(b->what->ctx);
}

static struct err *run_ptrace(const struct ses_trace_what *w, int *ret_status, struct trace_totals *ret_totals)
{
	struct by_ptrace b = {.what = w};
	struct trace_ptrace_opts o = {.argv = w->argv, .pids = w->pids, .pid_cnt = w->pid_cnt, .wanted = w->wanted, .string_max = w->string_max,
				      .no_filter = w->is_left_running, .no_follow = !w->argv && !w->with_children, .with_maps = w->with_maps,
				      .stack_len = w->stack_len ? 2 * STACK_MAX : 0, /* next to a stop it costs nothing */
				      .is_stopped = is_ptrace_stopped, .sink = on_ptrace_event, .ctx = &b};
	struct err *e = NULL;
	if (w->file)
		e = trace_writer_new(w->file, &w->file_options, &b.writer);
	if (e)
		return e;
	set_tick(true);
	e = trace_ptrace_run(&o, ret_status);
	set_tick(false);
	*ret_totals = (struct trace_totals){.received = b.cnt, .file_is_full = b.writer && trace_writer_is_full(b.writer)};
	struct err *closing = trace_writer_close(b.writer, NULL, 0);
	if (!e && b.e)
		e = take_ptr(b.e);
	if (!e)
		e = take_ptr(closing);
	err_free(b.e);
	err_free(closing);
	return e;
}

static void say_why(const struct trace *t, const struct err *e)
{
	_cleanup_buf_ struct buf line = {0};
	buf_printf(&line, "traced by ptrace: %s", e->text);
	buf_add_ch(&line, 0);
	if (!line.failed)
		t->io->say(t->io->ctx, line.data);
}

/* The kernel's side where it is to be had, else ptrace for what that can do. */
static struct err *run_best(struct trace *t, const struct ses_trace_what *w, int *ret_status, struct trace_totals *totals)
{
	const char *source = ops_arg_str(t->args, "source");
	bool can_ptrace = w->argv || w->pid_cnt;
	/* For copies threads have to stand still while their files are looked at. */
	bool is_ptrace = source ? !strcmp(source, "ptrace") : t->capture && can_ptrace;
	if (is_ptrace && !can_ptrace)
		return err_fix(err_new(ERR_INVALID, "trace: ptrace traces what it is told"), "name processes with -p, or a program behind --");
	struct err *e = is_ptrace ? NULL : ses_trace_bpf(w, ret_status, totals);
	if (is_ptrace)
		return run_ptrace(w, ret_status, totals);
	if (!e || e->kind != ERR_ENV || source || !can_ptrace)
		return e;
	say_why(t, e);
	err_free(e);
	return run_ptrace(w, ret_status, totals);
}

static void tell_totals(const struct trace *t, const char *file, const struct trace_totals *totals)
{
	_cleanup_buf_ struct buf line = {0};
	if (!file && !totals->lost)
		return;
	buf_printf(&line, "%s%s%" PRIu64 " events", file ? file : "", file ? ": " : "", totals->received);
	if (totals->lost)
		buf_printf(&line, ", %" PRIu64 " lost", totals->lost);
	if (totals->file_is_full)
		buf_add_str(&line, "; the limit of the file was reached, and the trace ended there (--file-limit, --keep)");
	buf_add_ch(&line, 0);
	if (!line.failed)
		t->io->say(t->io->ctx, line.data);
}

/* What is not among the counts: how many, or that nobody knows. */
static void tell_missing(const struct trace *t)
{
	_cleanup_buf_ struct buf line = {0};
	if (!t->missing_cnt && !t->misses_unknown)
		return;
	if (t->missing_cnt)
		buf_printf(&line, "%" PRIu64 " events are missing", t->missing_cnt);
	if (t->misses_unknown)
		buf_printf(&line, "%sof the file a part is damaged or cut off: how many events it had is not known", t->missing_cnt ? "; " : "");
	buf_add_ch(&line, 0);
	if (!line.failed)
		t->io->say(t->io->ctx, line.data);
}

static struct err *read_file(struct trace *t, const char *path)
{
	struct trace_file *f = NULL;
	struct err *e = trace_file_open(path, &f);
	struct trace_totals totals;
	t->begun_ns = 0;
	t->is_read = true;
	if (!e)
		e = trace_file_each(f, on_event, t, &totals);
	trace_file_free(f);
	return e;
}

static enum trace_hook hook_of(const char *source)
{
	enum trace_hook hook = TRACE_HOOK_BTF;
	while (source && hook <= TRACE_HOOK_PERF && strcmp(source, trace_hook_name(hook)) != 0)
		hook++;
	return source && hook <= TRACE_HOOK_PERF ? hook : TRACE_HOOK_ANY;
}

static struct err *run_source(struct trace *t, int *ret_status)
{
	size_t cnt;
	const char *const *words = ops_arg_texts(t->args, "cmd", &cnt);
	const char *file = ops_arg_str(t->args, "output"), *from = ops_arg_str(t->args, "read");
	if (from)
		return read_file(t, from);
	char **argv = cnt ? calloc(cnt + 1, sizeof(*argv)) : NULL;
	if (cnt && !argv)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	struct ses_trace_what w = {.argv = argv, .pids = t->pids, .pid_cnt = t->pid_cnt, .comm = t->comm,
				   .with_children = ops_arg_is_set(t->args, "tree"),
				   .wanted = t->has_wanted ? t->wanted : NULL, .string_max = MAX(t->text.string_max, CAPTURE_MIN),
				   .stack_len = t->stack_len,
				   .with_entries = !t->counts || file,
				   .with_times = t->text.has_times || t->counts || t->form == FORM_JSON,
				   .with_maps = t->form == FORM_JSON || file || t->sites,
				   .is_left_running = t->until_events || t->until_ns,
				   .file = file, .file_options = {.limit_len = t->limit_len, .keep = t->keep, .command = cnt ? words[0] : NULL},
				   .ring_len = t->ring_len, .hook = hook_of(ops_arg_str(t->args, "source")), .is_stopped = is_stopped, .ctx = t};
	struct trace_totals totals = {0};
	if (!cnt && !t->pid_cnt)
		w.container = take_ptr(t->container); /* the source gives no others */
	/* A file alone needs no events, only their records. */
	w.sink = !file || t->rules || t->counts || t->until_events || t->capture ? on_event : NULL;
	t->is_silent = file && !t->rules && !t->counts;
	struct err *e = run_best(t, &w, ret_status, &totals);
	if (!e)
		tell_totals(t, file, &totals);
	free(argv);
	return e;
}

/* --- rules ------------------------------------------------------------------------------------------------------------ */
/* What descriptors and folders are is followed by these. */
static const char *const fd_calls[] = {"open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2", "dup3", "fcntl",
				       "chdir", "fchdir", "socket", "socketpair", "accept", "accept4", "memfd_create", "pipe", "pipe2"};

static struct err *load_rules(struct trace *t)
{
	size_t cnt;
	const char *const *words = ops_arg_texts(t->args, "rule", &cnt);
	struct err *e = cnt ? trace_rules_new(&t->rules) : NULL;
	for (size_t i = 0; !e && i < cnt; i++)
		e = trace_rules_add(t->rules, words[i]);
	if (e || !cnt)
		return e;
	t->fds = t->fds ? t->fds : trace_fds_new(!ops_arg_is_set(t->args, "read"));
	if (!t->fds || !trace_rules_begin(t->rules, on_finding, t, t->fds))
		return &err_nomem;
	memcpy(t->shown, t->wanted, sizeof(t->shown)); /* nothing without -e */
	if (t->form == FORM_ROWS && !t->has_wanted) /* everything is shown beside findings */
		return NULL;
	size_t all;
	const struct sysc *s = sysc_all(&all);
	for (size_t i = 0; i < all; i++) {
		if (s[i].nr[TRACE_X86_64] >= 0 && trace_rules_needs(t->rules, TRACE_X86_64, s[i].nr[TRACE_X86_64]))
			want(t, &s[i], true);
	}
	for (size_t i = 0; i < ARRAY_LEN(fd_calls); i++)
		want(t, sysc_by_name(fd_calls[i], strlen(fd_calls[i])), true);
	t->has_wanted = true;
	return NULL;
}

/* `--rules`: a line each, or an object. */
static struct err *list_rules(struct trace *t)
{
	struct trace_finding f;
	t->form = t->io->is_json ? FORM_JSON : FORM_LINES;
	struct err *e = trace_rules_new(&t->rules);
	if (!e)
		e = trace_rules_add(t->rules, "all");
	for (size_t i = 0; !e && trace_rules_get(t->rules, i, &f); i++) {
		if (t->form == FORM_JSON) {
			trace_finding_json(&f, &t->text, NULL, 0, &t->out);
			buf_add_ch(&t->out, '\n');
		} else {
			buf_printf(&t->out, "%-24s %-9s %-10s %s\n", f.rule, f.severity, f.technique ? f.technique : "", f.title);
		}
	}
	return e;
}

/* --- capture ---------------------------------------------------------------------------------------------------------- */
static struct err *begin_capture(struct trace *t)
{
	const char *list = ops_arg_str(t->args, "capture"), *dir = ops_arg_str(t->args, "capture_dir");
	struct trace_capture_opts o = {.dir = dir, .file_max = ops_arg_u64(t->args, "capture_file", 16) << 20,
				       .total_max = ops_arg_u64(t->args, "capture_total", 256) << 20};
	if (!list && !dir)
		return NULL;
	if (!list || !dir)
		return err_new(ERR_INVALID, "--capture: takes exec, write or both, and a folder: --capture exec,write DIR");
	if (ops_arg_is_set(t->args, "read"))
		return err_new(ERR_INVALID, "--capture: copies files while they are executed and written, and a trace file has none");
	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ",");
		bool is_exec = len == 4 && !memcmp(p, "exec", 4), is_write = len == 5 && !memcmp(p, "write", 5);
		if (!is_exec && !is_write)
			return err_new(ERR_INVALID, "--capture: '%.*s' is neither exec nor write", (int)len, p);
		o.exec |= is_exec;
		o.write |= is_write;
		p += len + (p[len] == ',');
	}
	if (!o.exec && !o.write)
		return err_new(ERR_INVALID, "--capture: nothing is named");
	struct err *e = trace_capture_new(&o, &t->capture);
	if (e || !t->has_wanted)
		return e;
	if (!t->rules) {
		memcpy(t->shown, t->wanted, sizeof(t->shown));
		t->is_narrow = true;
	}
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (trace_capture_needs(t->capture, &all[i]))
			want(t, &all[i], true);
	}
	return NULL;
}

static struct err *end_capture(struct trace *t)
{
	struct trace_capture_counts n;
	_cleanup_buf_ struct buf line = {0};
	struct err *e = trace_capture_end(t->capture, &n);
	buf_printf(&line, "%s: %" PRIu64 " executed, %" PRIu64 " written; %" PRIu64 " files of %" PRIu64 " bytes",
		   ops_arg_str(t->args, "capture_dir"), n.execs, n.writes, n.files, n.bytes);
	if (n.cut)
		buf_printf(&line, "; %" PRIu64 " cut", n.cut);
	if (n.missed)
		buf_printf(&line, "; %" PRIu64 " not copied", n.missed);
	buf_add_ch(&line, 0);
	if (!line.failed)
		t->io->say(t->io->ctx, line.data);
	return e;
}

#define DIFFERENCES_SAID 5

struct differences {
	const struct trace *t;
	size_t cnt;
};

static void on_difference(void *ctx, const struct sysc_difference *d)
{
	struct differences *all = ctx;
	char line[160];
	snprintf(line, sizeof(line), "this kernel's %s has %u arguments, %u of them as scry knows them (%u)", d->s->name, d->nargs, d->same_names,
		 d->s->nargs);
	if (all->cnt++ < DIFFERENCES_SAID)
		all->t->io->say(all->t->io->ctx, line);
}

/* What this kernel's calls take, where it says so, is what the table says, or the user is told. */
static void check_table(const struct trace *t)
{
	struct differences all = {.t = t};
	char line[80];
	if (!sysc_check_folder())
		return;
	sysc_check(sysc_check_folder(), on_difference, &all);
	snprintf(line, sizeof(line), "and %zu calls more", all.cnt - MIN(all.cnt, DIFFERENCES_SAID));
	if (all.cnt > DIFFERENCES_SAID)
		t->io->say(t->io->ctx, line);
}

static struct err *prepare(struct trace *t)
{
	struct err *e = read_args(t);
	if (e)
		return e;
	if (!ops_arg_is_set(t->args, "read"))
		check_table(t);
	bool is_shown = !ops_arg_is_set(t->args, "output") || ops_arg_is_set(t->args, "rule");
	if (is_shown) /* it is long, and without it fewer structs have fields */
		err_free(trace_btf_open_kernel(&t->btf));
	t->text.btf = t->btf;
	if (ops_arg_is_set(t->args, "fds")) {
		t->fds = trace_fds_new(!ops_arg_is_set(t->args, "read"));
		t->text.fds = t->fds;
		if (!t->fds)
			return &err_nomem;
	}
	e = load_rules(t);
	if (!e)
		e = begin_capture(t);
	if (e)
		return e;
	if (ops_arg_is_set(t->args, "lines") && !(t->lines = ses_lines_new()))
		return &err_nomem;
	bool needs_sites = t->shows_stacks || t->rules || t->form == FORM_ROWS || t->form == FORM_JSON;
	if (needs_sites && !(t->sites = trace_sites_new(!ops_arg_is_set(t->args, "read"))))
		return &err_nomem;
	t->counts = ops_arg_is_set(t->args, "summary") ? trace_counts_new() : NULL;
	t->begun_ns = t->flushed_ns = now_ns();
	if (t->form == FORM_TABLE && !t->counts)
		buf_printf(&t->out, "%11s  %7s  %-15s  %-18s  %-18s  %10s  %s\n", "SECONDS", "TID", "COMM", "EVENT", "RESULT", "USECS", "CALL");
	return NULL;
}

static void tell_dropped(const struct trace *t, uint64_t cnt)
{
	char line[120];
	snprintf(line, sizeof(line), "rules: %" PRIu64 " processes or beginnings of sequences were forgotten for want of room", cnt);
	if (cnt)
		t->io->say(t->io->ctx, line);
}

/* The line that ends a stream. */
static void put_end(struct trace *t)
{
	struct json j = json_make(&t->out);
	json_obj(&j);
	json_key(&j, "end");
	json_bool(&j, true);
	json_key(&j, "events");
	json_u64(&j, t->event_cnt);
	json_key(&j, "missing");
	json_u64(&j, t->missing_cnt);
	json_key(&j, "misses_unknown");
	json_bool(&j, t->misses_unknown);
	json_end_obj(&j);
	buf_add_ch(&t->out, '\n');
}

struct err *ses_trace(const struct ops_args *args, const struct ses_trace_io *io, int *ret_status)
{
	struct trace *t = calloc(1, sizeof(*t));
	if (!t)
		return &err_nomem;
	t->args = args;
	t->io = io;
	*ret_status = -1;
	bool is_list = ops_arg_is_set(args, "rules");
	struct err *e = is_list ? list_rules(t) : prepare(t);
	if (!e && !is_list)
		e = run_source(t, ret_status);
	if (!e && t->capture)
		e = end_capture(t);
	if (!e && t->rules && !is_list)
		tell_dropped(t, trace_rules_finish(t->rules));
	if (!e && t->counts) {
		put_summary(t);
		tell_missing(t);
	}
	if (!e && t->form == FORM_JSON && !t->counts && !is_list && !t->is_silent)
		put_end(t);
	if (!e && t->out.failed)
		e = &err_nomem;
	if (!e)
		flush(t);
	buf_fini(&t->out);
	trace_counts_free(t->counts);
	trace_btf_free(t->btf);
	trace_rules_free(t->rules);
	trace_sites_free(t->sites);
	ses_lines_free(t->lines);
	trace_capture_free(t->capture);
	arena_fini(&t->arena);
	trace_fds_free(t->fds);
	free(t);
	return e;
}
