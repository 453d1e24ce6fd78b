/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listing as an answer. This is the page people and agents ask for most, so its JSON is written field by field
 * into room reserved once a line, from the walk's own memory.
 */
#include "session/heads_int.h"
#include "session/ops_cols.h"
#include "session/ops_int.h"

#include <string.h>

static const char *const head_kinds[] = {
	[SES_HEAD_CODE] = "code", [SES_HEAD_DATA] = "data", [SES_HEAD_STRING] = "string", [SES_HEAD_ALIGN] = "align",
	[SES_HEAD_UNKNOWN] = "unknown", [SES_HEAD_FUNC] = "func", [SES_HEAD_LABEL] = "label", [SES_HEAD_SEGMENT] = "segment",
	[SES_HEAD_COMMENT] = "comment", [SES_HEAD_MEMBER] = "member",
};

/* --- JSON --- */

#define PUT(p, literal) (memcpy((p), (literal), sizeof(literal) - 1), (p) + sizeof(literal) - 1)

static char *put_hex_digits(char *p, uint64_t v)
{
	unsigned n = v ? (unsigned)(64 - __builtin_clzll(v) + 3) / 4 : 1;
	for (unsigned i = n; i-- > 0; v >>= 4)
		p[i] = "0123456789abcdef"[v & 15];
	return p + n;
}

static char *put_number(char *p, uint64_t v)
{
	char tmp[20];
	unsigned n = 0;
	do {
		tmp[19 - n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	memcpy(p, tmp + 20 - n, n);
	return p + n;
}

static bool is_plain(const char *s, size_t len)
{
	unsigned bad = 0;
	for (size_t i = 0; i < len; i++) {
		uint8_t ch = (uint8_t)s[i];
		bad |= (ch < 0x20) | (ch >= 0x7f) | (ch == '"') | (ch == '\\');
	}
	return !bad;
}

/* A string value; the room for it (six bytes a byte) is there. */
static char *put_text(char *p, struct ses_text t)
{
	if (is_plain(t.s, t.len)) {
		*p++ = '"';
		memcpy(p, t.s, t.len);
		p += t.len;
		*p++ = '"';
		return p;
	}
	struct buf one = {.data = p, .cap = (size_t)t.len * 6 + 16};
	struct json j = json_make(&one);
	json_strn(&j, t.s, t.len);
	return p + one.len;
}

static char *put_spans(char *p, const struct ses_head *h)
{
	static const struct { char s[14]; uint8_t len; } kinds[SES_SPAN_KIND_COUNT] = {
		[SES_SPAN_MNEMONIC] = {",\"mnemonic\"]", 12}, [SES_SPAN_REG] = {",\"reg\"]", 7},   [SES_SPAN_IMM] = {",\"imm\"]", 7},
		[SES_SPAN_ADDR] = {",\"addr\"]", 8},	      [SES_SPAN_DISP] = {",\"disp\"]", 8}, [SES_SPAN_PUNCT] = {",\"punct\"]", 9},
		[SES_SPAN_SIZE] = {",\"size\"]", 8},	      [SES_SPAN_PREFIX] = {",\"prefix\"]", 10}, [SES_SPAN_NAME] = {",\"name\"]", 8},
		[SES_SPAN_STRING] = {",\"string\"]", 10},     [SES_SPAN_COMMENT] = {",\"comment\"]", 11},
	};
	*p++ = '[';
	for (uint32_t i = 0; i < h->span_cnt; i++) {
		const struct ses_span *s = &h->spans[i];
		if (i)
			*p++ = ',';
		*p++ = '[';
		p = put_number(p, s->off);
		*p++ = ',';
		p = put_number(p, s->len);
		unsigned k = s->kind < SES_SPAN_KIND_COUNT ? s->kind : SES_SPAN_PUNCT;
		memcpy(p, kinds[k].s, sizeof(kinds[k].s));
		p += kinds[k].len;
	}
	*p++ = ']';
	return p;
}

static void head_json(struct buf *out, const struct ses_head *h, bool is_first)
{
	size_t room = 512 + ((size_t)h->text.len + h->label.len + h->comment.len) * 6 + 64 + (size_t)h->span_cnt * 40;
	char *start = buf_room(out, room), *p = start;
	if (!p)
		return;
	if (!is_first)
		*p++ = ',';
	p = PUT(p, "{\"row\":");
	p = h->row == UINT64_MAX ? PUT(p, "null") : put_number(p, h->row);
	if (h->sub) {
		p = PUT(p, ",\"sub\":");
		p = put_number(p, h->sub);
	}
	p = PUT(p, ",\"addr\":\"0x");
	p = put_hex_digits(p, h->va);
	p = PUT(p, "\",\"size\":");
	p = put_number(p, h->size);
	p = PUT(p, ",\"kind\":\"");
	size_t n = strlen(head_kinds[h->kind]);
	memcpy(p, head_kinds[h->kind], n);
	p += n;
	p = PUT(p, "\",\"bytes\":\"");
	for (uint32_t i = 0; i < h->bytes_len; i++) {
		*p++ = "0123456789abcdef"[h->bytes[i] >> 4];
		*p++ = "0123456789abcdef"[h->bytes[i] & 15];
	}
	p = PUT(p, "\",\"text\":");
	p = put_text(p, h->text);
	p = PUT(p, ",\"spans\":");
	p = put_spans(p, h);
	p = PUT(p, ",\"label\":");
	p = put_text(p, h->label);
	p = PUT(p, ",\"comment\":");
	p = put_text(p, h->comment);
	if (h->has_target) {
		p = PUT(p, ",\"target\":\"0x");
		p = put_hex_digits(p, h->target);
		p = PUT(p, "\"}");
	} else {
		p = PUT(p, ",\"target\":null}");
	}
	out->len += (size_t)(p - start);
}

/* --- columns --- */

static void head_cols(struct ops_cols *c, const struct ses_head *h)
{
	char hex[32], spans[16 + HEADS_SPAN_MAX * 40];
	size_t n = MIN(h->bytes_len, 16u);
	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = "0123456789abcdef"[h->bytes[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[h->bytes[i] & 15];
	}
	if (h->row == UINT64_MAX)
		ops_cols_null(c, "row");
	else
		ops_cols_u64(c, "row", OPS_COL_U64, h->row);
	if (h->sub)
		ops_cols_u64(c, "sub", OPS_COL_U64, h->sub);
	ops_cols_u64(c, "addr", OPS_COL_ADDR, h->va);
	ops_cols_u64(c, "size", OPS_COL_U64, h->size);
	ops_cols_text(c, "kind", OPS_COL_TEXT, head_kinds[h->kind], strlen(head_kinds[h->kind]));
	ops_cols_text(c, "bytes", OPS_COL_TEXT, hex, 2 * n);
	ops_cols_text(c, "text", OPS_COL_TEXT, h->text.s, h->text.len);
	char *end = put_spans(spans, h);
	ops_cols_text(c, "spans", OPS_COL_RAW, spans, (size_t)(end - spans));
	ops_cols_text(c, "label", OPS_COL_TEXT, h->label.s, h->label.len);
	ops_cols_text(c, "comment", OPS_COL_TEXT, h->comment.s, h->comment.len);
	if (h->has_target)
		ops_cols_u64(c, "target", OPS_COL_ADDR, h->target);
	else
		ops_cols_null(c, "target");
	ops_cols_end_row(c);
}

/* --- for people --- */

static const char *span_color(uint8_t kind)
{
	switch (kind) {
	case SES_SPAN_MNEMONIC:
	case SES_SPAN_PREFIX:
		return "\033[34m";
	case SES_SPAN_REG:
		return "\033[33m";
	case SES_SPAN_IMM:
	case SES_SPAN_DISP:
		return "\033[35m";
	case SES_SPAN_NAME:
	case SES_SPAN_ADDR:
		return "\033[32m";
	case SES_SPAN_STRING:
		return "\033[31m";
	case SES_SPAN_COMMENT:
		return "\033[2m";
	default:
		return NULL;
	}
}

static void pad_to(struct buf *b, size_t width, size_t have)
{
	for (size_t i = have; i < width; i++)
		buf_add_ch(b, ' ');
}

/* The text with its tokens coloured. Spans come in order and do not overlap; one that does is passed over. */
static void head_text_colored(struct buf *out, const struct ses_head *h)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < h->span_cnt; i++) {
		const struct ses_span *s = &h->spans[i];
		const char *color = span_color(s->kind);
		if (!color || s->off < at || (uint32_t)s->off + s->len > h->text.len)
			continue;
		ops_escape(out, h->text.s + at, s->off - at);
		buf_add_str(out, color);
		ops_escape(out, h->text.s + s->off, s->len);
		buf_add_str(out, "\033[0m");
		at = (uint32_t)s->off + s->len;
	}
	ops_escape(out, h->text.s + at, h->text.len - at);
}

static void head_line(struct buf *out, const struct ses_head *h, bool has_color)
{
	size_t began = out->len;
	if (h->kind == SES_HEAD_FUNC || h->kind == SES_HEAD_SEGMENT)
		buf_add_ch(out, '\n');
	if (has_color)
		buf_add_str(out, "\033[36m");
	buf_add_hex(out, h->va, 8);
	if (has_color)
		buf_add_str(out, "\033[0m");
	buf_add(out, "  ", 2);
	bool is_item = h->kind != SES_HEAD_FUNC && h->kind != SES_HEAD_SEGMENT && h->kind != SES_HEAD_LABEL &&
		       h->kind != SES_HEAD_COMMENT;
	if (is_item) {
		uint32_t shown = MIN(h->bytes_len, 8);
		buf_add_hexbytes(out, h->bytes, shown);
		if (h->size > shown && h->bytes_len)
			buf_add_ch(out, '+');
		pad_to(out, 20, (size_t)shown * 2 + (h->size > shown && h->bytes_len));
	}
	size_t text_at = out->len;
	if (has_color)
		head_text_colored(out, h);
	else
		ops_escape(out, h->text.s, h->text.len);
	if (h->comment.len) {
		size_t width = has_color ? ops_text_width(h->text.s, h->text.len) : ops_text_width(out->data + text_at, out->len - text_at);
		pad_to(out, 40, width);
		buf_add_str(out, has_color ? "  \033[2m; " : "  ; ");
		ops_escape(out, h->comment.s, h->comment.len);
		if (has_color)
			buf_add_str(out, "\033[0m");
	}
	while (out->len > began && out->data[out->len - 1] == ' ')
		out->len--;
	buf_add_ch(out, '\n');
}

/* --- pages --- */

static void heads_begin(struct ops_req *rq)
{
	ops_out_list(rq->out, rq->sn);
	rq->out->page_first = UINT64_MAX;
	rq->out->page_last = 0;
}

static void heads_put(struct ops_req *rq, const struct ses_head *h)
{
	uint64_t last = h->va + (h->size ? h->size - 1 : 0);
	rq->out->page_first = MIN(rq->out->page_first, h->va);
	rq->out->page_last = MAX(rq->out->page_last, last < h->va ? UINT64_MAX : last);
	if (rq->out->cols)
		head_cols(rq->out->cols, h);
	else if (rq->out->is_json)
		head_json(rq->out->buf, h, rq->out->item_cnt == 0);
	else
		head_line(rq->out->buf, h, rq->out->has_color);
	rq->out->item_cnt++;
}

static bool heads_is_full(const struct ops_out *o)
{
	return o->max_bytes && o->item_cnt && o->buf->len >= o->max_bytes;
}

/* "rows" is the number of items of the segment; a list's total is the same here. */
static void heads_end(struct ops_req *rq, uint64_t rows)
{
	struct ops_out *o = rq->out;
	o->total = rows;
	if (!o->is_json)
		return;
	ops_etag_page(rq);
	o->json.comma = true;
	json_end_arr(&o->json);
	if (rows != UINT64_MAX) {
		json_key(&o->json, "total");
		json_u64(&o->json, rows);
		json_key(&o->json, "rows");
		json_u64(&o->json, rows);
	}
	if (o->has_more) {
		json_key(&o->json, "next");
		json_str(&o->json, o->next);
	}
	json_end_obj(&o->json);
}

static uint64_t segment_rows(struct ses_snap *sn, uint64_t va)
{
	int seg = space_seg_of_va(sn->space, va);
	if (seg < 0 || sn->is_preview)
		return UINT64_MAX;
	const struct space_seg *g = &sn->space->segs[seg];
	uint32_t end = (uint32_t)seg + 1 < sn->space->seg_cnt ? g[1].row_first : image_row_cnt(sn->im);
	return end >= g->row_first ? end - g->row_first : 0;
}

static struct err *heads_back(struct ops_req *rq, const struct ses_at *from)
{
	struct heads_walk w;
	uint32_t n = 0;
	struct err *e = NULL;
	if (!heads_start_back(&w, rq->sn, from, &n))
		e = err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)from->va);
	if (!e) {
		uint64_t at;
		uint32_t at_sub;
		heads_begin(rq);
		if (n == from->count && heads_peek(&w, &at, &at_sub))
			ops_set_next(rq, at, at_sub);
		for (uint32_t i = 0; i < n && heads_next(&w); i++)
			heads_put(rq, &w.line);
		heads_end(rq, segment_rows(rq->sn, from->va));
	}
	heads_fini(&w);
	return e;
}

struct err *ops_heads(struct ops_req *rq)
{
	struct heads_walk w;
	struct ses_info info;
	uint64_t va = 0, sub = ops_arg_u64(rq->args, "sub", 0), count = ops_arg_u64(rq->args, "count", 200);
	struct err *e = NULL;
	if (!ops_arg_is_set(rq->args, "addr")) {
		e = ses_info(rq->sn, rq->arena, &info);
		va = e ? 0 : info.main_va;
	}
	if (!e && ops_arg_is_set(rq->args, "cursor"))
		e = ops_get_cursor(rq, &va, &sub);
	else if (!e)
		e = ops_addr(rq, "addr", va, &va);
	if (!e && !count)
		e = err_new(ERR_INVALID, "count: at least 1");
	if (e)
		return e;
	count = MIN(count, 1000000);
	sub = MIN(sub, SES_SUB_ITEM);
	if (ops_arg_is_set(rq->args, "back"))
		return heads_back(rq, &(struct ses_at){.va = va, .sub = (uint32_t)sub, .count = (uint32_t)count});
	if (!heads_start(&w, rq->sn, va, (uint32_t)sub)) {
		heads_fini(&w);
		return err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)va);
	}
	heads_begin(rq);
	uint64_t at;
	uint32_t at_sub;
	for (uint64_t n = 0; n < count && !heads_is_full(rq->out) && !e && heads_next(&w); n++) {
		heads_put(rq, &w.line);
		if (n % 1024 == 1023)
			e = ses_call_check(rq->call);
	}
	if (heads_peek(&w, &at, &at_sub))
		ops_set_next(rq, at, at_sub);
	heads_end(rq, segment_rows(rq->sn, va));
	heads_fini(&w);
	return e;
}

/* --- one function --- */

struct disasm {
	const struct image_range *ranges;
	uint32_t cnt, at;
	uint64_t total;
	uint64_t skip, limit;
};

/* Rows of the function, all its pieces. */
static uint64_t disasm_rows(struct ses_snap *sn, const struct disasm *d)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < d->cnt; i++) {
		uint32_t first = image_row_of(sn->im, d->ranges[i].loc), last = image_row_of(sn->im, d->ranges[i].loc + d->ranges[i].len - 1);
		n += first != UINT32_MAX && last != UINT32_MAX && last >= first ? last - first + 1 : 0;
	}
	return n;
}

/* One piece from `va`; false when the page ended inside it, with `next` set. */
static bool disasm_piece(struct ops_req *rq, struct disasm *d, uint64_t va, uint32_t sub, struct err **ret_err)
{
	struct heads_walk w;
	const struct image_range *r = &d->ranges[d->at];
	uint64_t end = space_va(rq->sn->space, r->loc) + r->len, at;
	uint32_t at_sub;
	bool is_done = true;
	if (!heads_start(&w, rq->sn, va, sub)) {
		heads_fini(&w);
		return true;
	}
	while (heads_peek(&w, &at, &at_sub) && at < end) {
		if (d->limit == 0 || heads_is_full(rq->out)) {
			ops_set_next(rq, at, at_sub);
			is_done = false;
			break;
		}
		(void)heads_next(&w);
		if (d->skip) {
			d->skip--;
			continue;
		}
		heads_put(rq, &w.line);
		d->limit--;
		if (rq->out->item_cnt % 1024 == 0 && (*ret_err = ses_call_check(rq->call)))
			break;
	}
	heads_fini(&w);
	return is_done && !*ret_err;
}

struct err *ops_disasm(struct ops_req *rq)
{
	uint64_t va, sub = 0;
	struct disasm d = {.skip = ops_arg_u64(rq->args, "offset", 0),
			   .limit = ops_arg_u64(rq->args, "limit", rq->out->is_json ? 1000 : UINT64_MAX)};
	struct err *e = ops_addr(rq, "func", 0, &va);
	if (e)
		return e;
	uint32_t loc = space_loc(rq->sn->space, va);
	uint32_t f = loc == LOC_NONE ? UINT32_MAX : image_func_at(rq->sn->im, loc);
	if (f == UINT32_MAX)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: is in no function", ops_arg_str(rq->args, "func")),
			       "scry heads FILE ADDR shows any address");
	d.ranges = image_func_ranges(rq->sn->im, f, &d.cnt);
	if (!d.cnt)
		return err_new(ERR_INTERNAL, "the image has a function without bytes");
	d.total = disasm_rows(rq->sn, &d);
	va = space_va(rq->sn->space, d.ranges[0].loc);
	if (ops_arg_is_set(rq->args, "cursor"))
		e = ops_get_cursor(rq, &va, &sub);
	loc = space_loc(rq->sn->space, va);
	while (!e && d.at < d.cnt && (loc < d.ranges[d.at].loc || loc - d.ranges[d.at].loc >= d.ranges[d.at].len))
		d.at++;
	if (!e && d.at == d.cnt)
		e = err_new(ERR_INVALID, "cursor: it is not of this function");
	if (e)
		return e;
	heads_begin(rq);
	while (disasm_piece(rq, &d, va, (uint32_t)MIN(sub, SES_SUB_ITEM), &e) && ++d.at < d.cnt) {
		va = space_va(rq->sn->space, d.ranges[d.at].loc);
		sub = 0;
	}
	heads_end(rq, d.total);
	return e;
}
