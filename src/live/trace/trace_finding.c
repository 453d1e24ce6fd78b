/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_finding.h"

#include "base/json.h"

/* A name of the traced program's, with what a terminal would act on escaped. */
static void put_name(struct buf *out, const char *s)
{
	for (; s && *s; s++) {
		if ((uint8_t)*s < 0x20 || (uint8_t)*s >= 0x7f)
			buf_printf(out, "\\%03o", (uint8_t)*s);
		else
			buf_add_ch(out, *s);
	}
}

void trace_finding_text(const struct trace_finding *f, const struct trace_text_opts *opts, const struct trace_frame_text *frames, size_t frame_cnt,
			struct buf *out)
{
	buf_printf(out, "!!! %s %s: ", f->severity, f->rule);
	if (f->repeats)
		buf_printf(out, "%llu times more, ", (unsigned long long)f->repeats);
	else
		buf_printf(out, "%s%s%s%s: ", f->title, f->technique ? " (" : "", f->technique ? f->technique : "", f->technique ? ")" : "");
	buf_printf(out, "process %u", f->pid);
	if (f->comm && *f->comm) {
		buf_add_ch(out, ' ');
		put_name(out, f->comm);
	}
	if (f->exe) {
		buf_add_str(out, " (");
		put_name(out, f->exe);
		buf_add_ch(out, ')');
	}
	if (f->first_pid != f->pid)
		buf_printf(out, ", begun by process %u", f->first_pid);
	buf_add_ch(out, '\n');
	if (!f->ev)
		return;
	struct trace_text_opts plain = *opts;
	plain.has_pid = false;
	buf_add_str(out, "      ");
	trace_text_event(f->ev, &plain, out);
	for (size_t i = 0; i < frame_cnt; i++) {
		buf_add_str(out, "      at ");
		put_name(out, frames[i].func ? frames[i].func : frames[i].module);
		buf_printf(out, "%s0x%llx", frames[i].func ? " " : "+", (unsigned long long)frames[i].offset);
		if (frames[i].line)
			buf_printf(out, ", line %u", frames[i].line);
		buf_add_ch(out, '\n');
	}
}

static void put_opt(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s && *s)
		json_str(j, s);
	else
		json_null(j);
}

void trace_finding_json(const struct trace_finding *f, const struct trace_text_opts *opts, const struct trace_frame_text *frames, size_t frame_cnt,
			struct buf *out)
{
	struct json j = json_make(out);
	json_obj(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	put_opt(&j, "event", "finding");
	put_opt(&j, "rule", f->rule);
	put_opt(&j, "title", f->title);
	put_opt(&j, "severity", f->severity);
	put_opt(&j, "technique", f->technique);
	json_key(&j, "time");
	json_addr(&j, f->time);
	json_key(&j, "pid");
	json_u64(&j, f->pid);
	put_opt(&j, "comm", f->comm);
	put_opt(&j, "exe", f->exe);
	json_key(&j, "first_time");
	json_addr(&j, f->first_time);
	json_key(&j, "first_pid");
	json_u64(&j, f->first_pid);
	json_key(&j, "repeats");
	json_u64(&j, f->repeats);
	json_key(&j, "cause");
	if (f->ev) {
		json_sep(&j);
		trace_json_event(f->ev, opts, frames, frame_cnt, out);
	} else {
		json_null(&j);
	}
	json_end_obj(&j);
}
