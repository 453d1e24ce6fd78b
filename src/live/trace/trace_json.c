/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_json.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_int.h"

#include "base/json.h"

#include <signal.h>

static void put_opt(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s)
		json_str(j, s);
	else
		json_null(j);
}

/* Readers of JSON need not know more than 63 bits; only a damaged event has more where a number stands. */
static void put_number(struct json *j, uint64_t v)
{
	json_u64(j, MIN(v, (uint64_t)INT64_MAX));
}

/* A number that is not known when it is 0. */
static void put_known(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	if (v)
		put_number(j, v);
	else
		json_null(j);
}

static bool is_utf8(const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint8_t ch = (uint8_t)s[i++];
		unsigned more = ch < 0x80 ? 0 : ch >= 0xc2 && ch < 0xe0 ? 1 : ch >= 0xe0 && ch < 0xf0 ? 2 : ch >= 0xf0 && ch < 0xf5 ? 3 : 4;
		if (more == 4 || more > len - i)
			return false;
		while (more--)
			if (((uint8_t)s[i++] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

/* Text of a target: what is not UTF-8 is given as hex, too. */
static void put_text(struct json *j, const struct buf *text)
{
	json_key(j, "text");
	json_strn(j, text->data ? text->data : "", text->len);
	if (!is_utf8(text->data, text->len)) {
		json_key(j, "bytes");
		json_hex(j, (const uint8_t *)text->data, text->len);
	}
}

static void put_args(struct json *j, const struct trace_event *ev, const struct trace_text_opts *opts)
{
	unsigned cnt = trace_text_arg_cnt(ev);
	json_key(j, "args");
	json_arr(j);
	for (unsigned i = 0; i < cnt; i++) {
		_cleanup_buf_ struct buf text = {0};
		struct trace_arg a = trace_text_arg(ev, i, opts, &text);
		if (a.is_hidden)
			continue;
		json_obj(j);
		json_key(j, "name");
		json_str(j, a.name);
		json_key(j, "type");
		json_str(j, a.type);
		json_key(j, "value");
		json_addr(j, ev->args[i]);
		put_text(j, &text);
		json_key(j, "status");
		json_str(j, trace_status_name(a.status));
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void put_call(struct json *j, const struct trace_event *ev, const struct trace_text_opts *opts)
{
	static const char *const abis[TRACE_ABI_COUNT] = {"x86_64", "i386", "arm64"};
	const char *name;
	json_key(j, "abi");
	json_str(j, ev->abi < TRACE_ABI_COUNT ? abis[ev->abi] : "unknown");
	json_key(j, "nr");
	json_i64(j, ev->nr);
	put_args(j, ev, opts);
	json_key(j, "ret");
	if (ev->unfinished)
		json_null(j);
	else
		json_addr(j, (uint64_t)ev->ret);
	bool is_error = trace_text_errno(ev, &name);
	put_opt(j, "errno", is_error ? name ? name : "unknown" : NULL);
	put_known(j, "ns", ev->ns);
}

static void put_words(struct json *j, const char *key, const struct trace_slot *slot)
{
	json_key(j, key);
	json_arr(j);
	for (size_t at = 0; slot && at < slot->len;) {
		size_t len = strnlen((const char *)slot->data + at, slot->len - at);
		json_strn(j, (const char *)slot->data + at, len);
		at += len + 1;
	}
	json_end_arr(j);
	if (slot && slot->status != TRACE_OK && slot->status != TRACE_LATE) {
		json_key(j, "argv_status");
		json_str(j, trace_status_name(slot->status));
	}
}

static void put_name(struct json *j, const char *key, void (*put)(struct buf *, int), int value)
{
	_cleanup_buf_ struct buf text = {0};
	put(&text, value);
	json_key(j, key);
	json_strn(j, text.data ? text.data : "", text.len);
}

static void put_signal(struct json *j, const struct trace_event *ev)
{
	enum trace_origin from = trace_origin_of((int)ev->args[0], (int32_t)ev->args[1]);
	put_name(j, "signal", trace_put_signal, (int)ev->args[0]);
	json_key(j, "code");
	if (trace_signal_has_code(ev))
		json_i64(j, (int32_t)ev->args[1]);
	else
		json_null(j);
	json_key(j, from == TRACE_ORIGIN_FAULT ? "fault_addr" : "from_pid");
	if (ev->args[3] & TRACE_SIGNAL_BARE || !trace_signal_has_code(ev))
		json_null(j);
	else if (from == TRACE_ORIGIN_FAULT)
		json_addr(j, ev->args[2]);
	else if (from == TRACE_ORIGIN_PROCESS)
		json_u64(j, (uint32_t)ev->args[2]);
	else
		json_null(j);
}

static void put_exit(struct json *j, const struct trace_event *ev)
{
	uint32_t status = (uint32_t)ev->ret;
	if (status & 0x7f) {
		json_key(j, "code");
		json_null(j);
		put_name(j, "signal", trace_put_signal, (int)(status & 0x7f));
	} else {
		json_key(j, "code");
		json_u64(j, status >> 8 & 0xff);
		put_opt(j, "signal", NULL);
	}
	json_key(j, "last_thread");
	json_bool(j, ev->args[0]);
}

static void put_mmap(struct json *j, const struct trace_event *ev)
{
	_cleanup_buf_ struct buf prot = {0}, path = {0};
	const struct trace_slot *slot = trace_slot_find(ev, 0, TRACE_IN, TRACE_PART_SELF);
	static const char *const keys[] = {"addr", "length"};
	for (unsigned i = 0; i < 2; i++) {
		json_key(j, keys[i]);
		json_addr(j, ev->args[i]);
	}
	trace_put_flags(&prot, ev->abi, SYSC_SET_mmap_prot, ev->args[2]);
	json_key(j, "prot");
	json_strn(j, prot.data ? prot.data : "", prot.len);
	json_key(j, "file_offset");
	json_addr(j, ev->args[4]);
	if (slot && slot->len)
		buf_add(&path, slot->data, strnlen((const char *)slot->data, slot->len));
	json_key(j, "path");
	if (path.len)
		json_strn(j, path.data, path.len);
	else
		json_null(j);
}

static void put_probe(struct json *j, const struct trace_event *ev)
{
	json_key(j, "probe");
	put_number(j, ev->args[0]);
	json_key(j, "values");
	json_arr(j);
	for (unsigned i = 1; i < 6; i++)
		json_addr(j, ev->args[i]);
	json_end_arr(j);
}

static void put_lost(struct json *j, const struct trace_event *ev)
{
	put_known(j, "count", ev->lost.count);
	put_known(j, "first_seq", ev->lost.first);
	put_known(j, "last_seq", ev->lost.last);
	json_key(j, "reason");
	json_str(j, trace_lost_reason_name(ev->lost.reason));
}

static void put_payload(struct json *j, const struct trace_event *ev)
{
	switch (ev->kind) {
	case TRACE_EXEC: put_words(j, "argv", trace_slot_find(ev, TRACE_ARG_ARGV, TRACE_IN, TRACE_PART_SELF)); break;
	case TRACE_FORK:
		json_key(j, "child_tid");
		json_u64(j, (uint32_t)ev->ret);
		put_known(j, "child_pid", (uint32_t)ev->args[1]);
		break;
	case TRACE_EXIT: put_exit(j, ev); break;
	case TRACE_MMAP: put_mmap(j, ev); break;
	case TRACE_SIGNAL: put_signal(j, ev); break;
	case TRACE_PROBE: put_probe(j, ev); break;
	case TRACE_LOST: put_lost(j, ev); break;
	case TRACE_SYSCALL: case TRACE_PROCESS: case TRACE_KIND_COUNT: break;
	}
}

static void put_frame(struct json *j, const struct trace_frame_text *f)
{
	json_obj(j);
	put_opt(j, "module", f->module);
	put_opt(j, "build_id", f->build_id);
	json_key(j, "offset");
	json_addr(j, f->offset);
	put_opt(j, "func", f->func);
	put_known(j, "line", f->line);
	json_end_obj(j);
}

void trace_json_event(const struct trace_event *ev, const struct trace_text_opts *opts, const struct trace_frame_text *frames, size_t frame_cnt,
		      struct buf *out)
{
	struct json j = json_make(out);
	char space[24];
	json_obj(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	json_key(&j, "phase");
	json_str(&j, ev->unfinished ? "unfinished" : "complete");
	put_known(&j, "seq", ev->seq);
	json_key(&j, "cpu");
	if (ev->seq || ev->kind == TRACE_LOST)
		json_u64(&j, ev->cpu);
	else
		json_null(&j);
	json_key(&j, "time");
	json_addr(&j, ev->time);
	json_key(&j, "pid");
	json_u64(&j, ev->pid);
	json_key(&j, "tid");
	json_u64(&j, ev->tid);
	put_known(&j, "ppid", ev->ppid);
	put_opt(&j, "comm", ev->comm);
	put_opt(&j, "exe", ev->exe);
	put_opt(&j, "container", ev->container);
	json_key(&j, "event");
	json_str(&j, trace_kind_name(ev->kind));
	json_key(&j, "name");
	json_str(&j, trace_text_name(ev, space));
	if (ev->kind == TRACE_SYSCALL)
		put_call(&j, ev, opts);
	else
		put_payload(&j, ev);
	json_key(&j, "site");
	if (frame_cnt)
		put_frame(&j, &frames[0]);
	else if (ev->ip) {
		json_obj(&j);
		json_key(&j, "ip");
		json_addr(&j, ev->ip);
		json_end_obj(&j);
	} else
		json_null(&j);
	json_key(&j, "stack");
	json_arr(&j);
	for (size_t i = 1; i < frame_cnt; i++)
		put_frame(&j, &frames[i]);
	json_end_arr(&j);
	json_end_obj(&j);
}
