/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the listing as structs, rows, and the bytes behind them. */
#include "session/heads_int.h"

#include <string.h>

const char *ses_span_name(enum ses_span_kind k)
{
	static const char *const names[SES_SPAN_KIND_COUNT] = {
		[SES_SPAN_MNEMONIC] = "mnemonic", [SES_SPAN_REG] = "reg",   [SES_SPAN_IMM] = "imm",
		[SES_SPAN_ADDR] = "addr",	  [SES_SPAN_DISP] = "disp", [SES_SPAN_PUNCT] = "punct",
		[SES_SPAN_SIZE] = "size",	  [SES_SPAN_PREFIX] = "prefix", [SES_SPAN_NAME] = "name",
		[SES_SPAN_STRING] = "string",	  [SES_SPAN_COMMENT] = "comment",
	};
	return (unsigned)k < SES_SPAN_KIND_COUNT ? names[k] : "";
}

static struct ses_text heads_copy_text(struct arena *a, struct ses_text t)
{
	return t.len ? ses_text_of(arena_strndup(a, t.s, t.len), t.len) : ses_text_of("", 0);
}

static bool heads_copy(struct arena *a, const struct ses_head *from, struct ses_head *to)
{
	struct ses_span *spans = ARENA_ARRAY(a, struct ses_span, from->span_cnt + 1u);
	if (!spans)
		return false;
	*to = *from;
	memcpy(spans, from->spans, from->span_cnt * sizeof(*spans));
	to->spans = spans;
	to->text = heads_copy_text(a, from->text);
	to->label = heads_copy_text(a, from->label);
	to->comment = heads_copy_text(a, from->comment);
	return true;
}

struct err *ses_heads(struct ses_snap *sn, const struct ses_call *call, const struct ses_at *at, struct arena *a,
		      struct ses_head **ret, uint32_t *ret_cnt)
{
	struct heads_walk w;
	uint32_t n = 0, count = at->count;
	bool ok = at->back ? heads_start_back(&w, sn, at, &count) : heads_start(&w, sn, at->va, at->sub);
	struct ses_head *out = ok ? ARENA_ARRAY(a, struct ses_head, (size_t)count + 1) : NULL;
	struct err *e = ok && !out ? &err_nomem : NULL;
	if (!ok)
		e = err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)at->va);
	while (!e && n < count && heads_next(&w)) {
		if (!heads_copy(a, &w.line, &out[n++]))
			e = &err_nomem;
		else if (n % 1024 == 0)
			e = ses_call_check(call);
	}
	heads_fini(&w);
	if (e)
		return e;
	*ret = out;
	*ret_cnt = n;
	return NULL;
}

struct ses_text ses_line_text(struct ses_snap *sn, uint32_t loc, struct arena *a)
{
	struct heads_walk w;
	struct ses_text t = ses_text_of("", 0);
	uint64_t va = space_va(sn->space, loc);
	if (va != UINT64_MAX && heads_start(&w, sn, va, SES_SUB_ITEM) && heads_next(&w))
		t = heads_copy_text(a, w.line.text);
	heads_fini(&w);
	return t;
}

uint64_t ses_row_cnt(struct ses_snap *sn)
{
	return sn->is_preview ? 0 : image_row_cnt(sn->im);
}

bool ses_row_of(struct ses_snap *sn, uint64_t va, uint64_t *ret_row)
{
	uint32_t loc = space_loc(sn->space, va);
	uint32_t row = loc == LOC_NONE || sn->is_preview ? UINT32_MAX : image_row_of(sn->im, loc);
	*ret_row = row;
	return row != UINT32_MAX;
}

bool ses_va_of_row(struct ses_snap *sn, uint64_t row, uint64_t *ret_va)
{
	uint32_t loc = sn->is_preview || row >= UINT32_MAX ? LOC_NONE : image_loc_of_row(sn->im, (uint32_t)row);
	if (loc == LOC_NONE)
		return false;
	*ret_va = space_va(sn->space, loc);
	return *ret_va != UINT64_MAX;
}

uint32_t ses_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped)
{
	uint32_t total = 0;
	for (uint32_t i = 0; i < len;) {
		uint32_t loc = va + i < va ? LOC_NONE : space_loc(sn->space, va + i);
		size_t n = loc == LOC_NONE ? 0 : space_read(sn->space, loc, out + i, len - i);
		if (mapped)
			memset(mapped + i, n != 0, n ? n : 1);
		if (!n)
			out[i] = 0;
		total += (uint32_t)n;
		i += n ? (uint32_t)n : 1;
	}
	return total;
}
