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

/* Where a page's lines keep their spans and texts: pieces of a few large allocations. */
struct heads_room {
	struct arena *arena;
	char *at;
	size_t left;
};

#define HEADS_ROOM_LEN 16384

static char *heads_take(struct heads_room *r, size_t len)
{
	len = (len + 7) & ~(size_t)7;
	if (len > r->left) {
		r->left = MAX(len, HEADS_ROOM_LEN);
		r->at = arena_alloc(r->arena, r->left);
		if (!r->at)
			return NULL;
	}
	char *p = r->at;
	r->at += len;
	r->left -= len;
	return p;
}

static bool heads_copy(struct heads_room *r, const struct ses_head *from, bool is_patched, struct ses_head *to)
{
	size_t spans_len = from->span_cnt * sizeof(*from->spans);
	char *p = heads_take(r, spans_len + from->text.len + from->label.len + from->comment.len +
				  (is_patched ? from->bytes_len : 0) + 1);
	if (!p)
		return false;
	*to = *from;
	memcpy(p, from->spans, spans_len);
	to->spans = (const struct ses_span *)(const void *)p;
	p += spans_len;
	to->text.s = memcpy(p, from->text.s, from->text.len);
	p += from->text.len;
	to->label.s = memcpy(p, from->label.s, from->label.len);
	p += from->label.len;
	to->comment.s = memcpy(p, from->comment.s, from->comment.len);
	p += from->comment.len;
	if (is_patched)
		to->bytes = memcpy(p, from->bytes, from->bytes_len);
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
	struct heads_room room = {.arena = a};
	while (!e && n < count && heads_next(&w)) {
		if (!heads_copy(&room, &w.line, w.is_patched && w.line.bytes, &out[n++]))
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

static uint32_t read_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped, bool is_original)
{
	uint32_t total = 0;
	for (uint32_t i = 0; i < len;) {
		uint32_t loc = va + i < va ? LOC_NONE : space_loc(sn->space, va + i);
		uint32_t want = loc == LOC_NONE ? 0 : ses_is_here(sn, loc, len - i) ? len - i : ses_is_here(sn, loc, 1);
		size_t n = want ? space_read(sn->space, loc, out + i, want) : 0;
		if (mapped)
			memset(mapped + i, n != 0, n ? n : 1);
		if (!n)
			out[i] = 0;
		if (n && sn->edits && !is_original)
			ses_edit_patch(sn, va + i, out + i, n);
		total += (uint32_t)n;
		i += n ? (uint32_t)n : 1;
	}
	return total;
}

uint32_t ses_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped)
{
	return read_bytes(sn, va, len, out, mapped, false);
}

uint32_t ses_original_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped)
{
	return read_bytes(sn, va, len, out, mapped, true);
}
