/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a live trace between the process that traces and the one that shows: the same program at both ends of a pipe. */
#include "session/ses_live.h"

#include "base/buf.h"

#include <string.h>

#define TEXT_MAX 16384 /* bytes of one text */

struct wire {
	uint32_t len;          /* of all of it */
	uint8_t kind, flags;
	uint16_t classes;
	uint32_t pid, tid;
	uint64_t time, ns;
	uint16_t comm_len, name_len, result_len, args_len;
	uint16_t frame_cnt, site;
	uint32_t pad;
};

enum { FLAG_ERROR = 1, FLAG_UNFINISHED = 2 };

struct wire_frame {
	uint64_t off, func_off;
	uint16_t module_len, func_len;
	uint32_t is_guess;
};

static uint16_t cut(struct ses_text t)
{
	return (uint16_t)MIN(t.len, TEXT_MAX);
}

void ses_live_put(const struct ses_live_row *r, struct buf *out)
{
	struct wire w = {.kind = (uint8_t)r->kind, .flags = (uint8_t)((r->is_error ? FLAG_ERROR : 0) | (r->is_unfinished ? FLAG_UNFINISHED : 0)),
			 .classes = r->classes, .pid = r->pid, .tid = r->tid, .time = r->time, .ns = r->ns, .comm_len = cut(r->comm),
			 .name_len = cut(r->name), .result_len = cut(r->result), .args_len = cut(r->args),
			 .frame_cnt = (uint16_t)MIN(r->frame_cnt, SES_LIVE_FRAMES_MAX), .site = (uint16_t)r->site};
	size_t begin = out->len;
	buf_add(out, &w, sizeof(w));
	buf_add(out, r->comm.s, w.comm_len);
	buf_add(out, r->name.s, w.name_len);
	buf_add(out, r->result.s, w.result_len);
	buf_add(out, r->args.s, w.args_len);
	for (uint32_t i = 0; i < w.frame_cnt; i++) {
		const struct ses_live_frame *f = &r->frames[i];
		struct wire_frame wf = {.off = f->off, .func_off = f->func_off, .module_len = cut(f->module), .func_len = cut(f->func),
					.is_guess = f->is_guess};
		buf_add(out, &wf, sizeof(wf));
		buf_add(out, f->module.s, wf.module_len);
		buf_add(out, f->func.s, wf.func_len);
	}
	if (out->failed)
		return;
	uint32_t len = (uint32_t)(out->len - begin);
	memcpy(out->data + begin, &len, sizeof(len));
}

static bool take(const uint8_t *bytes, size_t len, size_t *at, uint16_t want, struct ses_text *ret)
{
	if (want > len - *at)
		return false;
	*ret = (struct ses_text){(const char *)bytes + *at, want};
	*at += want;
	return true;
}

static bool parse_frame(const uint8_t *bytes, size_t len, size_t *at, struct ses_live_frame *ret)
{
	struct wire_frame wf;
	if (len - *at < sizeof(wf))
		return false;
	memcpy(&wf, bytes + *at, sizeof(wf));
	*at += sizeof(wf);
	ret->off = wf.off;
	ret->func_off = wf.func_off;
	ret->is_guess = wf.is_guess;
	return take(bytes, len, at, wf.module_len, &ret->module) && take(bytes, len, at, wf.func_len, &ret->func);
}

size_t ses_live_parse(const uint8_t *bytes, size_t len, struct ses_live_frame *frames, struct ses_live_row *ret)
{
	struct wire w;
	if (len < sizeof(w.len))
		return 0;
	memcpy(&w.len, bytes, sizeof(w.len));
	if (w.len < sizeof(w) || w.len > sizeof(w) + 4 * TEXT_MAX + SES_LIVE_FRAMES_MAX * (sizeof(struct wire_frame) + 2 * TEXT_MAX))
		return SIZE_MAX;
	if (len < w.len)
		return 0;
	memcpy(&w, bytes, sizeof(w));
	size_t at = sizeof(w);
	*ret = (struct ses_live_row){.kind = (enum ses_live_kind)w.kind, .is_error = w.flags & FLAG_ERROR, .is_unfinished = w.flags & FLAG_UNFINISHED,
				     .classes = w.classes, .pid = w.pid, .tid = w.tid, .time = w.time, .ns = w.ns, .frames = frames,
				     .frame_cnt = w.frame_cnt, .site = w.site};
	bool is_whole = w.kind < SES_LIVE_KIND_COUNT && w.frame_cnt <= SES_LIVE_FRAMES_MAX && (w.site < w.frame_cnt || !w.site) &&
			take(bytes, w.len, &at, w.comm_len, &ret->comm) && take(bytes, w.len, &at, w.name_len, &ret->name) &&
			take(bytes, w.len, &at, w.result_len, &ret->result) && take(bytes, w.len, &at, w.args_len, &ret->args);
	for (uint32_t i = 0; is_whole && i < w.frame_cnt; i++)
		is_whole = parse_frame(bytes, w.len, &at, &frames[i]);
	return is_whole && at == w.len ? w.len : SIZE_MAX;
}
