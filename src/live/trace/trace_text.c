/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line for an event. What an argument is shown as follows from its class; the memory behind pointers comes from the
 * event's slots, inputs from those read at entry, outputs from those read when the call had ended without an error.
 */
#include "live/trace/trace_text.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STRING_MAX 32  /* bytes, as strace's -s */
#define COLUMN 33      /* where " = " and the result stand at the earliest, as in strace */
#define WORDS_MAX 32   /* strings of an array that are shown */

static const char *const kind_names[TRACE_KIND_COUNT] = {"syscall", "exec", "fork", "exit", "mmap", "signal", "probe", "lost", "process"};
static const char *const status_names[TRACE_STATUS_COUNT] = {"ok", "absent", "truncated", "faulted", "late", "raced"};
static const char *const reason_names[TRACE_LOST_REASON_COUNT] = {"ring_full", "read_failed", "file_damaged"};

const char *trace_kind_name(enum trace_kind kind)
{
	return (unsigned)kind < TRACE_KIND_COUNT ? kind_names[kind] : "unknown";
}

const char *trace_status_name(unsigned status)
{
	return status < TRACE_STATUS_COUNT ? status_names[status] : "unknown";
}

const char *trace_lost_reason_name(unsigned reason)
{
	return reason < TRACE_LOST_REASON_COUNT ? reason_names[reason] : "unknown";
}

const struct trace_slot *trace_slot_find(const struct trace_event *ev, unsigned arg, unsigned phase, unsigned part)
{
	for (uint32_t i = 0; i < ev->nslots; i++)
		if (ev->slots[i].arg == arg && ev->slots[i].phase == phase && ev->slots[i].part == part)
			return &ev->slots[i];
	return NULL;
}

bool trace_text_errno(const struct trace_event *ev, const char **ret_name)
{
	static const struct sysc_name inner[] = {{"ERESTARTSYS", 512}, {"ERESTARTNOINTR", 513}, {"ERESTARTNOHAND", 514}, {"ENOIOCTLCMD", 515},
						 {"ERESTART_RESTARTBLOCK", 516}};
	*ret_name = NULL;
	if (ev->kind != TRACE_SYSCALL || ev->unfinished || ev->ret >= 0 || ev->ret < -4095)
		return false;
	*ret_name = sysc_set_name(ev->abi, SYSC_SET_errno, (uint64_t)-ev->ret);
	for (size_t i = 0; i < ARRAY_LEN(inner); i++)
		if (inner[i].value == (uint64_t)-ev->ret)
			*ret_name = inner[i].name;
	return true;
}

static bool is_error(const struct trace_event *ev)
{
	return ev->ret < 0 && ev->ret >= -4095;
}

static bool begin(struct tx *t, const struct trace_event *ev, const struct trace_text_opts *o, struct buf *out)
{
	const struct sysc *s = ev->kind == TRACE_SYSCALL ? sysc_find(ev->abi, ev->nr) : NULL;
	*t = (struct tx){.ev = ev, .o = o, .out = out};
	if (s) {
		sysc_resolve(s, ev->args, &t->s);
		return true;
	}
	/* A number nobody knows: six registers. */
	t->s = (struct sysc){.name = NULL, .nargs = ev->kind == TRACE_SYSCALL ? SYSC_ARG_MAX : 0, .flags = SYSC_UNKNOWN};
	for (unsigned i = 0; i < t->s.nargs; i++) {
		static const char *const names[] = {"arg1", "arg2", "arg3", "arg4", "arg5", "arg6"};
		t->s.a[i] = (struct sysc_arg){.name = names[i], .ctype = "unsigned long", .cls = SYSC_HEX, .partner = -1};
	}
	return false;
}

const char *trace_text_name(const struct trace_event *ev, char space[24])
{
	if (ev->kind != TRACE_SYSCALL)
		return trace_kind_name(ev->kind);
	const struct sysc *s = sysc_find(ev->abi, ev->nr);
	if (s)
		return s->name;
	snprintf(space, 24, "syscall_0x%x", (unsigned)ev->nr);
	return space;
}

/* --- arguments ------------------------------------------------------------------------------------------------------ */
static void note(struct tx *t, const struct trace_slot *slot)
{
	static const uint8_t weight[TRACE_STATUS_COUNT] = {[TRACE_LATE] = 1, [TRACE_TRUNCATED] = 2, [TRACE_RACED] = 3, [TRACE_ABSENT] = 4,
							   [TRACE_FAULTED] = 5};
	if (slot->status < TRACE_STATUS_COUNT && weight[slot->status] > weight[t->status])
		t->status = slot->status;
}

void trace_put_buffer(const struct tx *t, struct buf *out, const uint8_t *bytes, size_t len, bool is_longer)
{
	size_t max = t->o->string_max ? t->o->string_max : STRING_MAX, shown = MIN(len, max);
	bool all_hex = t->s.name && !strcmp(t->s.name, "getrandom");
	trace_put_quoted(out, bytes, shown, all_hex);
	if (is_longer || shown < len)
		buf_add_str(out, "...");
}

static void put_name_flags(struct tx *t, const struct sysc_arg *a, uint64_t v)
{
	if (a->set == SYSC_SET_clone)
		trace_put_clone_flags(t->out, v, 0);
	else if (a->set == SYSC_SET_personality && (uint32_t)v == UINT32_MAX)
		buf_add_str(t->out, "0xffffffff");
	else
		trace_put_flags(t->out, t->ev->abi, a->set, v);
}

static void put_ipcmode(struct tx *t, const struct sysc_arg *a, uint64_t v)
{
	if (v & ~(uint64_t)0777) {
		trace_put_flags(t->out, t->ev->abi, a->set, v & ~(uint64_t)0777);
		buf_add_ch(t->out, '|');
	}
	trace_put_mode(t->out, (uint32_t)v & 0777);
}

static void put_scalar(struct tx *t, const struct sysc_arg *a, uint64_t v)
{
	struct buf *out = t->out;
	bool is_long = sysc_is_wide(a) && t->ev->abi != TRACE_I386;
	uint64_t u = is_long ? v : (uint32_t)v;
	int64_t i = is_long ? (int64_t)v : (int32_t)v;
	switch ((enum sysc_cls)a->cls) {
	case SYSC_INT: case SYSC_PID: case SYSC_UID: buf_printf(out, "%" PRId64, a->cls == SYSC_INT ? i : (int32_t)v); break;
	case SYSC_UINT: buf_printf(out, "%" PRIu64, u); break;
	case SYSC_HEX: buf_printf(out, u ? "0x%" PRIx64 : "%" PRIx64, u); break;
	case SYSC_OCT: buf_printf(out, "%#03" PRIo64, u); break;
	case SYSC_FD: trace_put_fd(out, t, (int32_t)v); break;
	case SYSC_DIRFD:
		if ((int32_t)v == -100)
			buf_add_str(out, "AT_FDCWD");
		else
			trace_put_fd(out, t, (int32_t)v);
		break;
	case SYSC_SIGNAL: trace_put_signal(out, (int)v); break;
	case SYSC_MODE: trace_put_mode(out, (uint16_t)v); break;
	case SYSC_DEV: trace_put_dev(out, (uint32_t)v); break;
	case SYSC_FLAGS: put_name_flags(t, a, u); break;
	case SYSC_ENUM:
		if (a->set == SYSC_SET_signal)
			trace_put_signal(out, (int)v);
		else
			trace_put_enum(out, t->ev->abi, a->set, u);
		break;
	case SYSC_IPCMODE: put_ipcmode(t, a, u); break;
	case SYSC_IOCTL: trace_put_ioctl(out, (uint32_t)v); break;
	default: trace_put_ptr(out, t->ev->abi == TRACE_I386 ? (uint32_t)v : v); break;
	}
}

static bool is_call(const struct tx *t, const char *name)
{
	return t->s.name && !strcmp(t->s.name, name);
}

/* The slot an argument is shown from; null: its address is. */
static const struct trace_slot *shown_slot(struct tx *t, unsigned idx)
{
	const struct sysc_arg *a = &t->s.a[idx];
	const struct trace_slot *in = a->dir & SYSC_IN ? trace_slot_find(t->ev, idx, TRACE_IN, TRACE_PART_SELF) : NULL;
	const struct trace_slot *ret = in;
	/* Of select(2) and poll(2) what was asked for is shown, and what came of it behind the result. */
	bool is_ready = is_call(t, "select") || is_call(t, "pselect6") || is_call(t, "poll") || is_call(t, "ppoll");
	bool is_same = idx == 0 && (is_call(t, "poll") || is_call(t, "ppoll")) && !in; /* events are as they were */
	if (a->dir & SYSC_OUT && (!is_ready || is_same) && !t->ev->unfinished && !is_error(t->ev)) {
		const struct trace_slot *after = trace_slot_find(t->ev, idx, TRACE_OUT, TRACE_PART_SELF);
		ret = after && after->status != TRACE_ABSENT ? after : in;
	}
	if (!ret)
		t->status = t->ev->args[idx] && !(a->dir == SYSC_OUT && is_error(t->ev)) ? TRACE_ABSENT : t->status;
	else
		note(t, ret);
	return ret;
}

static void put_string(struct tx *t, const struct trace_slot *slot, bool is_path)
{
	size_t len = strnlen((const char *)slot->data, slot->len);
	bool is_longer = slot->status == TRACE_TRUNCATED && len == slot->len;
	if (is_path) {
		trace_put_quoted(t->out, slot->data, len, false);
		buf_add_str(t->out, is_longer ? "..." : "");
	} else {
		trace_put_buffer(t, t->out, slot->data, len, is_longer);
	}
}

static void put_strings(struct tx *t, const struct trace_slot *slot)
{
	size_t at = 0, cnt = 0;
	buf_add_ch(t->out, '[');
	while (at < slot->len) {
		size_t len = strnlen((const char *)slot->data + at, slot->len - at);
		bool is_cut = at + len == slot->len;
		buf_add_str(t->out, cnt ? ", " : "");
		if (cnt == WORDS_MAX)
			break;
		trace_put_buffer(t, t->out, slot->data + at, len, is_cut);
		at += len + 1;
		cnt++;
	}
	if (at < slot->len)
		buf_add_str(t->out, "...");
	else if (slot->status == TRACE_TRUNCATED || slot->status == TRACE_FAULTED)
		buf_add_str(t->out, cnt ? ", ..." : "...");
	buf_add_ch(t->out, ']');
}

static void put_env(struct tx *t, const struct trace_slot *slot, uint64_t v)
{
	size_t cnt = 0;
	for (size_t at = 0; at < slot->len; cnt++)
		at += strnlen((const char *)slot->data + at, slot->len - at) + 1;
	trace_put_ptr(t->out, v);
	bool is_cut = slot->status == TRACE_TRUNCATED || slot->status == TRACE_FAULTED;
	buf_printf(t->out, " /* %s%zu var%s */", is_cut ? "at least " : "", cnt, cnt == 1 ? "" : "s");
}

/* Bytes of an output the kernel filled: the result, where it bounds them. */
static size_t filled(const struct tx *t, const struct sysc_arg *a, const struct trace_slot *slot)
{
	return slot->phase == TRACE_OUT && a->by_ret && t->ev->ret >= 0 ? MIN(slot->len, (uint64_t)t->ev->ret) : slot->len;
}

static void put_cpus(struct tx *t, const struct trace_slot *slot, size_t len)
{
	bool any = false;
	buf_add_ch(t->out, '[');
	for (size_t bit = 0; bit < 8 * len && bit < 8192; bit++)
		if (slot->data[bit / 8] >> (bit % 8) & 1) {
			buf_printf(t->out, any ? " %zu" : "%zu", bit);
			any = true;
		}
	buf_add_ch(t->out, ']');
}

/* struct linux_dirent64 has its length at 16; struct linux_dirent too. */
static void put_entries(struct tx *t, const struct trace_slot *slot, size_t len, uint64_t v)
{
	size_t cnt = 0, at = 0;
	while (len - at >= 19) {
		uint16_t step = load_u16(slot->data + at + 16, false);
		if (step < 19 || step > len - at)
			break;
		at += step;
		cnt++;
	}
	trace_put_ptr(t->out, v);
	bool is_cut = at < (uint64_t)MAX(t->ev->ret, 0);
	buf_printf(t->out, " /* %s%zu entr%s */", is_cut ? "at least " : "", cnt, cnt == 1 ? "y" : "ies");
}

static void put_bytes(struct tx *t, unsigned idx, const struct trace_slot *slot)
{
	const struct sysc_arg *a = &t->s.a[idx];
	size_t len = filled(t, a, slot);
	bool is_longer = slot->status == TRACE_TRUNCATED && len == slot->len;
	if (is_call(t, "getdents64") || is_call(t, "getdents"))
		put_entries(t, slot, len, t->ev->args[idx]);
	else if (is_call(t, "sched_getaffinity") || is_call(t, "sched_setaffinity"))
		put_cpus(t, slot, len);
	else if (is_call(t, "getsockopt") || is_call(t, "setsockopt"))
		trace_put_sockopt(t, slot, t->ev->args[1], t->ev->args[2]);
	else if ((is_call(t, "clone3") && trace_put_struct(t, t->out, "clone_args", slot->data, len)) ||
		 (is_call(t, "openat2") && trace_put_struct(t, t->out, "open_how", slot->data, len)) ||
		 (is_call(t, "sched_getattr") && trace_put_struct(t, t->out, "sched_attr", slot->data, len)))
		return;
	else
		trace_put_buffer(t, t->out, slot->data, len, is_longer);
}

static void put_message(struct tx *t, const struct trace_slot *slot)
{
	if (slot->len < 8) {
		buf_add_str(t->out, "{...}");
		return;
	}
	uint64_t len = t->ev->ret > 0 && slot->phase == TRACE_OUT ? (uint64_t)t->ev->ret : t->ev->args[2];
	uint64_t have = MIN(len, slot->len - 8);
	buf_printf(t->out, "{mtype=%" PRId64 ", mtext=", (int64_t)load_u64(slot->data, false));
	trace_put_buffer(t, t->out, slot->data + 8, (size_t)have, have < len);
	buf_add_ch(t->out, '}');
}

/* Descriptors of a set below the first argument. */
static void put_fdset(struct tx *t, const struct trace_slot *slot, struct buf *out)
{
	int32_t end = (int32_t)t->ev->args[0];
	bool any = false;
	buf_add_ch(out, '[');
	for (int32_t fd = 0; fd < end && fd < (int32_t)(8 * slot->len); fd++)
		if (slot->data[fd / 8] >> (fd % 8) & 1) {
			buf_add_str(out, any ? " " : "");
			trace_put_fd(out, t, fd);
			any = true;
		}
	buf_add_ch(out, ']');
}

/* Pairs that are an array by C's rules though the type does not say so. */
static bool put_pair(struct tx *t, unsigned idx, const struct trace_slot *slot)
{
	const struct sysc_arg *a = &t->s.a[idx];
	if (a->size == 8 && !strcmp(a->ctype, "int *") && slot->len == 8) {
		buf_add_ch(t->out, '[');
		trace_put_fd(t->out, t, (int32_t)load_u32(slot->data, false));
		buf_add_str(t->out, ", ");
		trace_put_fd(t->out, t, (int32_t)load_u32(slot->data + 4, false));
		buf_add_ch(t->out, ']');
		return true;
	}
	if (a->size != 32 || slot->len != 32 || (!strstr(a->ctype, "timespec") && !strstr(a->ctype, "old_timeval")))
		return false;
	buf_add_ch(t->out, '[');
	for (unsigned i = 0; i < 2; i++) {
		uint64_t ns = load_u64(slot->data + 16 * i + 8, false);
		bool is_spec = strstr(a->ctype, "timespec");
		buf_add_str(t->out, i ? ", " : "");
		if (is_spec && (ns == 0x3fffffff || ns == 0x3ffffffe))
			buf_add_str(t->out, ns == 0x3fffffff ? "UTIME_NOW" : "UTIME_OMIT");
		else
			trace_put_struct(t, t->out, a->ctype, slot->data + 16 * i, 16);
	}
	buf_add_ch(t->out, ']');
	return true;
}

static void put_array(struct tx *t, unsigned idx, const struct trace_slot *slot)
{
	const struct sysc_arg *a = &t->s.a[idx];
	size_t each = a->size ? a->size : 1, cnt = slot->len / each;
	if (slot->phase == TRACE_OUT && a->by_ret && t->ev->ret >= 0)
		cnt = MIN(cnt, (uint64_t)t->ev->ret);
	if (t->s.name && t->ev->abi == TRACE_ARM64 && strstr(a->ctype, "epoll_event"))
		each = 16;
	bool is_poll = strstr(a->ctype, "pollfd");
	size_t shown = 0;
	buf_add_ch(t->out, '[');
	for (size_t i = 0; i < cnt && (i + 1) * each <= slot->len; i++) {
		if (is_poll && (int32_t)load_u32(slot->data + each * i, false) < 0 && i >= WORDS_MAX)
			continue;
		buf_add_str(t->out, shown ? ", " : "");
		if (shown++ == WORDS_MAX) {
			buf_add_str(t->out, "...");
			break;
		}
		if (!trace_put_struct(t, t->out, a->ctype, slot->data + each * i, each))
			trace_put_buffer(t, t->out, slot->data + each * i, each, false);
	}
	if (slot->status == TRACE_TRUNCATED && shown <= WORDS_MAX)
		buf_add_str(t->out, shown ? ", ..." : "...");
	buf_add_ch(t->out, ']');
}

/* "[128 => 16]": a length before and after. */
static bool put_length(struct tx *t, unsigned idx, const struct trace_slot *slot)
{
	for (unsigned i = 0; i < t->s.nargs; i++)
		if (t->s.a[i].len == SYSC_LEN_PTR && t->s.a[i].partner == (int)idx && slot->len == 4) {
			const struct trace_slot *in = trace_slot_find(t->ev, idx, TRACE_IN, TRACE_PART_SELF);
			uint32_t after = load_u32(slot->data, false), before = in && in->len == 4 ? load_u32(in->data, false) : after;
			buf_printf(t->out, before != after ? "[%u => %u]" : "[%u]", before, after);
			return true;
		}
	return false;
}

static bool is_number(const char *ctype)
{
	return !strstr(ctype, "struct") && !strstr(ctype, "siginfo_t") && !strstr(ctype, "sigset_t") && !strstr(ctype, "stack_t") &&
	       !strstr(ctype, "cap_user");
}

static void put_structs(struct tx *t, unsigned idx, const struct trace_slot *slot)
{
	const struct sysc_arg *a = &t->s.a[idx];
	if (a->fetch == SYSC_FETCH_ARRAY) {
		put_array(t, idx, slot);
		return;
	}
	if (put_length(t, idx, slot) || put_pair(t, idx, slot))
		return;
	if (is_call(t, "wait4") && idx == 1 && slot->len == 4) {
		buf_add_ch(t->out, '[');
		trace_put_wait_status(t->out, load_u32(slot->data, false));
		buf_add_ch(t->out, ']');
		return;
	}
	bool is_plain = is_number(a->ctype), is_lock = is_call(t, "fcntl") && a->dir == SYSC_INOUT;
	if (is_plain)
		buf_add_ch(t->out, '[');
	if (!trace_put_struct(t, t->out, is_lock ? "flock with l_pid" : a->ctype, slot->data, slot->len)) {
		if (slot->len)
			trace_put_buffer(t, t->out, slot->data, slot->len, slot->status == TRACE_TRUNCATED);
		else
			trace_put_ptr(t->out, t->ev->args[idx]);
	}
	if (is_plain)
		buf_add_ch(t->out, ']');
}

static void put_pointed(struct tx *t, unsigned idx, const struct trace_slot *slot)
{
	const struct sysc_arg *a = &t->s.a[idx];
	uint64_t v = t->ev->args[idx];
	bool is_msg = is_call(t, "msgsnd") || is_call(t, "msgrcv");
	switch ((enum sysc_cls)a->cls) {
	case SYSC_PATH: case SYSC_STR: put_string(t, slot, a->cls == SYSC_PATH); break;
	case SYSC_STRV: put_strings(t, slot); break;
	case SYSC_ENVP: put_env(t, slot, v); break;
	case SYSC_SOCKADDR: trace_put_sockaddr(t->out, slot->data, slot->len); break;
	case SYSC_FDSET:
		if (slot->len)
			put_fdset(t, slot, t->out);
		else
			trace_put_ptr(t->out, v);
		break;
	case SYSC_MSGHDR:
		if (slot->len >= 56)
			trace_put_msghdr(t, idx);
		else
			trace_put_ptr(t->out, v);
		break;
	case SYSC_IOVEC:
		trace_put_iovec(t, slot, trace_slot_find(t->ev, idx, a->dir & SYSC_OUT ? TRACE_OUT : TRACE_IN, TRACE_PART_DATA),
				a->dir & SYSC_OUT && t->ev->ret >= 0 ? (uint64_t)t->ev->ret : UINT64_MAX);
		break;
	case SYSC_BUF:
		if (is_msg)
			put_message(t, slot);
		else
			put_bytes(t, idx, slot);
		break;
	default: put_structs(t, idx, slot); break;
	}
}

/* The argument at `idx`, whichever it is. */
static void put_arg(struct tx *t, unsigned idx)
{
	const struct sysc_arg *a = &t->s.a[idx];
	uint64_t v = t->ev->args[idx];
	t->status = TRACE_OK;
	if (a->fetch == SYSC_FETCH_NONE) {
		put_scalar(t, a, v);
		return;
	}
	const struct trace_slot *slot = v ? shown_slot(t, idx) : NULL;
	bool is_empty = slot && !slot->len && (slot->status == TRACE_FAULTED || slot->status == TRACE_ABSENT);
	if (!slot || is_empty) {
		trace_put_ptr(t->out, v);
		buf_add_str(t->out, is_empty && slot->status == TRACE_FAULTED && !is_error(t->ev) ? " /* unreadable */" : "");
		return;
	}
	put_pointed(t, idx, slot);
	if (slot->status == TRACE_RACED)
		buf_add_str(t->out, " /* changed during the call */");
}

unsigned trace_text_arg_cnt(const struct trace_event *ev)
{
	struct tx t;
	begin(&t, ev, NULL, NULL);
	return t.s.nargs;
}

struct trace_arg trace_text_arg(const struct trace_event *ev, unsigned idx, const struct trace_text_opts *opts, struct buf *out)
{
	static const char *const types[SYSC_CLS_COUNT] = {
		"int", "uint", "hex", "oct", "ptr", "fd", "dirfd", "pid", "uid", "signal", "mode", "dev", "flags", "enum", "flags", "ioctl",
		"hidden", "path", "str", "strv", "envp", "buf", "sockaddr", "iovec", "msghdr", "fdset", "struct"};
	struct tx t;
	begin(&t, ev, opts, out);
	const struct sysc_arg *a = &t.s.a[MIN(idx, SYSC_ARG_MAX - 1)];
	struct trace_arg ret = {.name = a->name, .type = a->cls == SYSC_STRUCT ? a->ctype : types[a->cls], .is_hidden = a->cls == SYSC_HIDE};
	bool is_text = (a->cls == SYSC_PATH || a->cls == SYSC_STR) && a->fetch != SYSC_FETCH_NONE && ev->args[idx];
	const struct trace_slot *slot = is_text ? shown_slot(&t, idx) : NULL;
	if (slot && slot->len) {
		buf_add(out, slot->data, strnlen((const char *)slot->data, filled(&t, a, slot)));
		ret.is_string = true;
	} else {
		put_arg(&t, idx);
	}
	ret.status = t.status;
	return ret;
}

/* --- what stands behind the arguments --------------------------------------------------------------------------------- */
static void put_ret_flags(struct tx *t, const char *what, unsigned set, bool is_wanted)
{
	if (!is_wanted)
		return;
	buf_printf(t->out, " (%s ", what);
	trace_put_flags(t->out, t->ev->abi, set, (uint64_t)t->ev->ret);
	buf_add_ch(t->out, ')');
}

/* "in [4], out [5]" of select(2), "([{fd=3, revents=POLLIN}])" of poll(2). */
static void put_ready_sets(struct tx *t)
{
	static const char *const names[] = {"in", "out", "except"};
	bool any = false;
	for (unsigned i = 0; i < 3; i++) {
		const struct trace_slot *slot = t->ev->args[1 + i] ? trace_slot_find(t->ev, 1 + i, TRACE_OUT, TRACE_PART_SELF) : NULL;
		struct buf one = {0};
		if (slot)
			put_fdset(t, slot, &one);
		if (one.len > 2 && !one.failed) {
			buf_printf(t->out, any ? ", %s " : " (%s ", names[i]);
			buf_add(t->out, one.data, one.len);
			any = true;
		}
		buf_fini(&one);
	}
	const struct trace_slot *left = t->ev->args[4] ? trace_slot_find(t->ev, 4, TRACE_OUT, TRACE_PART_SELF) : NULL;
	if (left && left->len == 16) {
		buf_add_str(t->out, any ? ", left " : " (left ");
		trace_put_struct(t, t->out, t->s.a[4].ctype, left->data, left->len);
		any = true;
	}
	buf_add_str(t->out, any ? ")" : "");
}

static void put_ready_polls(struct tx *t)
{
	const struct trace_slot *slot = trace_slot_find(t->ev, 0, TRACE_OUT, TRACE_PART_SELF);
	const struct trace_slot *left = t->s.nargs > 3 && t->ev->args[2] ? trace_slot_find(t->ev, 2, TRACE_OUT, TRACE_PART_SELF) : NULL;
	size_t shown = 0;
	if (!slot)
		return;
	buf_add_str(t->out, " ([");
	for (size_t at = 0; at + 8 <= slot->len; at += 8) {
		uint16_t revents = load_u16(slot->data + at + 6, false);
		if (!revents)
			continue;
		buf_add_str(t->out, shown ? ", " : "");
		if (shown++ == WORDS_MAX) {
			buf_add_str(t->out, "...");
			break;
		}
		buf_add_str(t->out, "{fd=");
		trace_put_fd(t->out, t, (int32_t)load_u32(slot->data + at, false));
		buf_add_str(t->out, ", revents=");
		trace_put_flags(t->out, t->ev->abi, SYSC_SET_poll_events, revents);
		buf_add_ch(t->out, '}');
	}
	buf_add_ch(t->out, ']');
	if (left && left->len == 16) {
		buf_add_str(t->out, ", left ");
		trace_put_struct(t, t->out, t->s.a[2].ctype, left->data, left->len);
	}
	buf_add_ch(t->out, ')');
}

static void put_extra(struct tx *t)
{
	const struct trace_event *ev = t->ev;
	bool is_select = is_call(t, "select") || is_call(t, "pselect6"), is_poll = is_call(t, "poll") || is_call(t, "ppoll");
	if ((is_select || is_poll) && !ev->ret)
		buf_add_str(t->out, " (Timeout)");
	else if (is_select)
		put_ready_sets(t);
	else if (is_poll)
		put_ready_polls(t);
	else if (is_call(t, "fcntl")) {
		put_ret_flags(t, "flags", SYSC_SET_open, ev->args[1] == 3);
		put_ret_flags(t, "flags", SYSC_SET_fdflags, ev->args[1] == 1 && ev->ret);
		put_ret_flags(t, "seals", SYSC_SET_seals, ev->args[1] == 1034 && ev->ret);
	} else if (is_call(t, "prctl") && ev->args[0] == 3 && ev->ret < 3) { /* PR_GET_DUMPABLE */
		static const char *const dumps[] = {"SUID_DUMP_DISABLE", "SUID_DUMP_USER", "SUID_DUMP_ROOT"};
		buf_printf(t->out, " (%s)", dumps[ev->ret]);
	} else if (is_call(t, "rt_sigtimedwait")) {
		buf_add_str(t->out, " (");
		trace_put_signal(t->out, (int)ev->ret);
		buf_add_ch(t->out, ')');
	} else if (is_call(t, "personality")) {
		buf_add_str(t->out, " (");
		trace_put_flags(t->out, ev->abi, SYSC_SET_personality, (uint64_t)ev->ret);
		buf_add_ch(t->out, ')');
	}
}

static bool is_hex_ret(const struct tx *t)
{
	bool is_getter = is_call(t, "fcntl") && (t->ev->args[1] == 3 || t->ev->args[1] == 1 || t->ev->args[1] == 1034);
	return t->s.flags & SYSC_RET_PTR || is_call(t, "personality") || (is_getter && t->ev->ret);
}

static void put_error(struct tx *t, const char *name)
{
	const char *what = strerrordesc_np((int)-t->ev->ret);
	if (name)
		buf_printf(t->out, "-1 %s (%s)", name, what ? what : "unknown error");
	else
		buf_printf(t->out, "-1 (errno %d)", (int)-t->ev->ret);
}

static void put_ret(struct tx *t)
{
	const struct trace_event *ev = t->ev;
	const char *name;
	bool is_away = t->s.flags & SYSC_NO_RETURN && !is_call(t, "rt_sigreturn") && !is_error(ev) && strncmp(t->s.name, "execve", 6) != 0;
	if (ev->unfinished || is_away)
		buf_add_str(t->out, "?");
	else if (trace_text_errno(ev, &name) && ev->ret <= -512 && name)
		buf_printf(t->out, "? %s", name);
	else if (trace_text_errno(ev, &name))
		put_error(t, name);
	else if (is_call(t, "umask"))
		buf_printf(t->out, "%#03" PRIo64, (uint64_t)ev->ret);
	else if (is_hex_ret(t))
		buf_printf(t->out, ev->ret ? "0x%" PRIx64 : "%" PRIx64, (uint64_t)ev->ret);
	else if (t->s.flags & SYSC_RET_FD && ev->ret >= 0)
		trace_put_fd(t->out, t, (int32_t)ev->ret);
	else
		buf_printf(t->out, "%" PRId64, ev->ret);
	if (ev->ret >= 0 && !ev->unfinished)
		put_extra(t);
}

/* clone(2) as strace shows it: by name, and only what the flags say is looked at. */
static void put_clone(struct tx *t)
{
	const uint64_t *a = t->ev->args;
	buf_add_str(t->out, "child_stack=");
	trace_put_ptr(t->out, a[1]);
	buf_add_str(t->out, ", flags=");
	trace_put_clone_flags(t->out, a[0] & ~(uint64_t)0xff, a[0] & 0xff);
	if (a[0] & 0x00100000) /* CLONE_PARENT_SETTID */
		buf_printf(t->out, ", parent_tid=0x%" PRIx64, a[2]);
	if (a[0] & 0x00080000) /* CLONE_SETTLS */
		buf_printf(t->out, ", tls=0x%" PRIx64, a[4]);
	if (a[0] & (0x01000000 | 0x00200000)) /* CLONE_CHILD_SETTID, CLEARTID */
		buf_printf(t->out, ", child_tidptr=0x%" PRIx64, a[3]);
}

static void put_call(struct tx *t)
{
	const struct trace_event *ev = t->ev;
	char space[24];
	size_t from = t->out->len;
	buf_printf(t->out, "%s(", trace_text_name(ev, space));
	if (is_call(t, "clone") && ev->abi == TRACE_X86_64)
		put_clone(t);
	else
		for (unsigned i = 0, shown = 0; i < t->s.nargs; i++) {
			if (t->s.a[i].cls == SYSC_HIDE)
				continue;
			buf_add_str(t->out, shown++ ? ", " : "");
			put_arg(t, i);
		}
	if (ev->unfinished && !(t->s.flags & SYSC_NO_RETURN && t->s.name && !strncmp(t->s.name, "exit", 4))) {
		buf_add_str(t->out, " <unfinished ...>");
		return;
	}
	buf_add_ch(t->out, ')');
	size_t width = t->out->len - from;
	static const char blank[COLUMN + 1] = "                                 ";
	if (width < COLUMN)
		buf_add(t->out, blank, COLUMN - width);
	buf_add_str(t->out, " = ");
	put_ret(t);
	if (t->o->has_times && ev->ns)
		buf_printf(t->out, " <%" PRIu64 ".%06" PRIu64 ">", ev->ns / 1000000000, ev->ns / 1000 % 1000000);
}

/* --- events that are no call ------------------------------------------------------------------------------------------ */
static void put_exit(struct tx *t)
{
	uint32_t status = (uint32_t)t->ev->ret;
	if (status & 0x7f) {
		buf_add_str(t->out, "+++ killed by ");
		trace_put_signal(t->out, (int)(status & 0x7f));
		buf_add_str(t->out, status & 0x80 ? " (core dumped) +++" : " +++");
	} else {
		buf_printf(t->out, "+++ exited with %u +++", status >> 8 & 0xff);
	}
}

static void put_signal_event(struct tx *t)
{
	const struct trace_slot *slot = trace_slot_find(t->ev, 0, TRACE_IN, TRACE_PART_SELF);
	buf_add_str(t->out, "--- ");
	trace_put_signal(t->out, (int)t->ev->args[0]);
	buf_add_ch(t->out, ' ');
	if (slot && slot->len >= 48)
		trace_put_siginfo(t->out, slot->data, slot->len);
	else
		trace_put_signal_short(t->out, t->ev);
	buf_add_str(t->out, " ---");
}

static void put_other(struct tx *t)
{
	const struct trace_event *ev = t->ev;
	const struct trace_slot *argv = trace_slot_find(ev, TRACE_ARG_ARGV, TRACE_IN, TRACE_PART_SELF);
	const struct trace_slot *path = trace_slot_find(ev, 0, TRACE_IN, TRACE_PART_SELF);
	buf_printf(t->out, "*** %s ", trace_kind_name(ev->kind));
	if (ev->kind == TRACE_EXEC && ev->exe)
		trace_put_quoted(t->out, (const uint8_t *)ev->exe, strlen(ev->exe), false);
	if (ev->kind == TRACE_EXEC && argv) {
		buf_add_ch(t->out, ' ');
		put_strings(t, argv);
	}
	if (ev->kind == TRACE_FORK)
		buf_printf(t->out, "%" PRId64, ev->ret);
	if (ev->kind == TRACE_MMAP) {
		buf_printf(t->out, "0x%" PRIx64 " 0x%" PRIx64 " ", ev->args[0], ev->args[1]);
		trace_put_flags(t->out, ev->abi, SYSC_SET_mmap_prot, ev->args[2]);
		buf_add_ch(t->out, ' ');
		if (path && path->len)
			put_string(t, path, true);
	}
	if (ev->kind == TRACE_PROBE) {
		buf_printf(t->out, "%" PRIu64, ev->args[0]);
		for (unsigned i = 1; i < 6; i++)
			buf_printf(t->out, " 0x%" PRIx64, ev->args[i]);
	}
	if (ev->kind == TRACE_PROCESS && ev->comm)
		trace_put_quoted(t->out, (const uint8_t *)ev->comm, strlen(ev->comm), false);
	if (ev->kind == TRACE_LOST && ev->lost.count)
		buf_printf(t->out, "%" PRIu64 " events of cpu %u (%s)", ev->lost.count, ev->cpu, trace_lost_reason_name(ev->lost.reason));
	if (ev->kind == TRACE_LOST && !ev->lost.count)
		buf_printf(t->out, "an unknown number of events (%s)", trace_lost_reason_name(ev->lost.reason));
	buf_add_str(t->out, " ***");
}

void trace_text_event(const struct trace_event *ev, const struct trace_text_opts *opts, struct buf *out)
{
	struct tx t;
	begin(&t, ev, opts, out);
	if (opts->has_pid && ev->tid)
		buf_printf(out, "[pid %5u] ", ev->tid);
	if (ev->kind == TRACE_SYSCALL)
		put_call(&t);
	else if (ev->kind == TRACE_EXIT)
		put_exit(&t);
	else if (ev->kind == TRACE_SIGNAL)
		put_signal_event(&t);
	else
		put_other(&t);
	buf_add_ch(out, '\n');
}
