/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search over what the file backs: bytes with wildcards, text (as UTF-8 and as UTF-16), regular expressions through
 * PCRE2 with match limits, immediates and the text of instructions. A search goes in one direction from an address and
 * stops at the page's last hit, so that the next page begins there.
 */
#include "session/ses_int.h"

#include "base/glob.h"
#include "session/regex.h"

#include <string.h>

#define PATTERN_MAX 4096

/* A compiled question. */
struct search {
	struct ses_snap *sn;
	const struct ses_call *call;
	enum ses_search_kind kind;
	const char *what;
	size_t what_len;
	uint8_t value[PATTERN_MAX], mask[PATTERN_MAX];
	size_t len;           /* of value */
	uint8_t wide[PATTERN_MAX * 2];
	size_t wide_len;      /* of the UTF-16 form of a text; 0 when not ASCII */
	uint64_t imm;
	struct regex *regex;
	uint32_t limit;
	bool back;
	VEC(uint32_t) hits;   /* locs */
	VEC(uint32_t) lens;
};

/* --- patterns --- */

static int hex_digit(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch |= 0x20;
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* 'de ad ?? e? dead': pairs of hex digits, either of which may be '?'. */
static struct err *pattern_bytes(struct search *q)
{
	for (const char *p = q->what; *p;) {
		if (*p == ' ' || *p == '\t' || *p == ',') {
			p++;
			continue;
		}
		if (q->len == PATTERN_MAX)
			return err_new(ERR_INVALID, "bytes: at most %d bytes", PATTERN_MAX);
		uint8_t v = 0, m = 0;
		for (unsigned i = 0; i < 2; i++) {
			int d = p[i] ? hex_digit(p[i]) : -1;
			if (d < 0 && p[i] != '?' && p[i] != '.')
				return err_fix(err_new(ERR_INVALID, "bytes: '%s' is not pairs of hex digits", q->what),
					       "write it like 'de ad ?? ef'");
			v = (uint8_t)(v << 4 | (d < 0 ? 0 : d));
			m = (uint8_t)(m << 4 | (d < 0 ? 0 : 15));
		}
		q->value[q->len] = v;
		q->mask[q->len++] = m;
		p += 2;
	}
	bool any = false;
	for (size_t i = 0; i < q->len; i++)
		any = any || q->mask[i];
	return any ? NULL : err_new(ERR_INVALID, "bytes: at least one byte must be given");
}

static struct err *pattern_text(struct search *q)
{
	q->len = strlen(q->what);
	if (!q->len || q->len > PATTERN_MAX)
		return err_new(ERR_INVALID, "text: 1 to %d bytes", PATTERN_MAX);
	memcpy(q->value, q->what, q->len);
	memset(q->mask, 255, q->len);
	q->wide_len = q->len * 2;
	for (size_t i = 0; i < q->len; i++) {
		if (q->value[i] >= 0x80)
			q->wide_len = 0;
		q->wide[2 * i] = q->value[i];
		q->wide[2 * i + 1] = 0;
	}
	return NULL;
}

static struct err *pattern_imm(struct search *q)
{
	char *end;
	bool is_negative = q->what[0] == '-';
	q->imm = strtoull(q->what + is_negative, &end, 0);
	if (is_negative)
		q->imm = 0 - q->imm;
	return *end || !q->what[is_negative] ? err_new(ERR_INVALID, "imm: '%s' is not a number", q->what) : NULL;
}

static struct err *search_check(void *ctx)
{
	return ses_call_check(((struct search *)ctx)->call);
}

static struct err *search_compile(struct search *q)
{
	switch (q->kind) {
	case SES_SEARCH_BYTES:
		return pattern_bytes(q);
	case SES_SEARCH_TEXT:
		return pattern_text(q);
	case SES_SEARCH_REGEX:
		return regex_new(q->what, &q->regex);
	case SES_SEARCH_IMM:
		return pattern_imm(q);
	case SES_SEARCH_INSN:
		return *q->what ? NULL : err_new(ERR_INVALID, "insn: a pattern is needed");
	case SES_SEARCH_C:
		break;
	}
	return err_new(ERR_INVALID, "unknown kind of search");
}

/* --- bytes --- */

static bool bytes_match(const struct search *q, const uint8_t *p)
{
	for (size_t i = 0; i < q->len; i++) {
		if ((p[i] & q->mask[i]) != q->value[i])
			return false;
	}
	return true;
}

/* The first match in [p, p + len), or null. */
static const uint8_t *bytes_find(const struct search *q, const uint8_t *p, size_t len)
{
	size_t anchor = 0;
	while (anchor < q->len && q->mask[anchor] != 255)
		anchor++;
	const uint8_t *end = p + len;
	for (; (size_t)(end - p) >= q->len; p++) {
		if (anchor < q->len) {
			const uint8_t *at = memchr(p + anchor, q->value[anchor], (size_t)(end - p) - q->len + 1);
			if (!at)
				return NULL;
			p = at - anchor;
		}
		if (bytes_match(q, p))
			return p;
	}
	return NULL;
}

/* The first match of any form the question has, at or after `from`; its length. */
static bool find_in(struct search *q, const uint8_t *p, size_t len, size_t from, size_t *ret_at, size_t *ret_len)
{
	if (q->kind == SES_SEARCH_REGEX)
		return regex_find(q->regex, p, len, from, ret_at, ret_len);
	const uint8_t *hit = bytes_find(q, p + from, len - from);
	const uint8_t *wide = q->wide_len && len - from >= q->wide_len ? memmem(p + from, len - from, q->wide, q->wide_len) : NULL;
	if (!hit && !wide)
		return false;
	bool is_wide = wide && (!hit || wide < hit);
	*ret_at = (size_t)((is_wide ? wide : hit) - p);
	*ret_len = is_wide ? q->wide_len : q->len;
	return true;
}

/* Hits in the segment's bytes from `first` to `last` (offsets of where a hit may begin). Backwards all of them are found
 * and the last `limit` kept. */
static struct err *scan_bytes(struct search *q, uint32_t loc, const uint8_t *p, size_t len, size_t first, size_t last)
{
	size_t at, hit_len, from = first;
	size_t had = q->hits.cnt;
	for (uint32_t steps = 1; from < len && find_in(q, p, len, from, &at, &hit_len) && at <= last; steps++) {
		if (!VEC_PUSH(&q->hits, loc + (uint32_t)at) || !VEC_PUSH(&q->lens, (uint32_t)hit_len))
			return &err_nomem;
		from = at + 1;
		if (!q->back && q->hits.cnt > q->limit)
			break;
		if (q->back && q->hits.cnt - had > 2 * (size_t)q->limit + 64) {
			size_t drop = q->hits.cnt - had - q->limit - 1;
			memmove(q->hits.data + had, q->hits.data + had + drop, (q->hits.cnt - had - drop) * sizeof(uint32_t));
			memmove(q->lens.data + had, q->lens.data + had + drop, (q->hits.cnt - had - drop) * sizeof(uint32_t));
			q->hits.cnt -= drop;
			q->lens.cnt -= drop;
		}
		struct err *e = steps % 1024 ? NULL : ses_call_check(q->call);
		if (e)
			return e;
	}
	return q->kind == SES_SEARCH_REGEX ? regex_error(q->regex) : NULL;
}

/* --- instructions --- */

static bool imm_in_text(const struct arch_text *t, uint64_t imm, uint8_t bits)
{
	uint64_t mask = bits == 32 ? UINT32_MAX : UINT64_MAX;
	for (uint32_t i = 0; i < t->span_cnt; i++) {
		const struct arch_span *s = &t->spans[i];
		if (s->kind != ARCH_TOK_IMM && s->kind != ARCH_TOK_ADDR && s->kind != ARCH_TOK_DISP)
			continue;
		const char *p = t->text + s->off, *end = p + s->len;
		while (p < end && (*p == '#' || *p == '+'))
			p++;
		bool is_negative = p < end && *p == '-';
		uint64_t v = 0;
		char tmp[32];
		size_t n = MIN((size_t)(end - p - is_negative), sizeof(tmp) - 1);
		memcpy(tmp, p + is_negative, n);
		tmp[n] = 0;
		char *stop;
		v = strtoull(tmp, &stop, 0);
		if (stop != tmp && !*stop && ((is_negative ? 0 - v : v) & mask) == (imm & mask))
			return true;
	}
	return false;
}

static bool insn_matches(struct search *q, uint32_t loc)
{
	size_t left;
	const uint8_t *p = space_bytes(q->sn->space, loc, &left);
	struct arch_text t;
	if (!p)
		return false;
	bool is_imm = q->kind == SES_SEARCH_IMM;
	const struct arch_names names = {ses_name_for_operand, q->sn};
	q->sn->arch->format(q->sn->arch, p, left, space_va(q->sn->space, loc), is_imm ? NULL : &names, &t);
	return is_imm ? imm_in_text(&t, q->imm, q->sn->arch->bits) : glob_match(q->what, q->what_len, t.text, t.len, true);
}

/* The first item that begins at from_va or behind it, or the last that begins before it; false when there is none. */
static bool first_item(const struct search *q, uint64_t from_va, struct image_items *ret)
{
	const struct space *s = q->sn->space;
	for (uint32_t k = 0; k < s->seg_cnt; k++) {
		const struct space_seg *g = &s->segs[q->back ? s->seg_cnt - 1 - k : k];
		uint64_t off = from_va > g->va ? from_va - g->va : 0;
		if (!g->mem_len || (q->back ? !off : off >= g->mem_len))
			continue;
		uint32_t loc = (uint32_t)(g->loc + (q->back ? MIN(off, g->mem_len) - 1 : off));
		bool is_found = image_items_from(q->sn->im, loc, ret);
		/* An item that one is in the middle of has been seen. */
		return is_found && !q->back && ret->loc < loc ? image_items_next(ret) : is_found;
	}
	return false;
}

static struct err *scan_insns(struct search *q, uint64_t from_va)
{
	struct image_items it;
	struct err *e = NULL;
	bool more = first_item(q, from_va, &it);
	for (uint32_t steps = 1; more && !e && q->hits.cnt <= q->limit; steps++) {
		if (it.kind == IMAGE_CODE && insn_matches(q, it.loc) &&
		    (!VEC_PUSH(&q->hits, it.loc) || !VEC_PUSH(&q->lens, it.len)))
			e = &err_nomem;
		if (!e && steps % 1024 == 0)
			e = ses_call_check(q->call);
		more = q->back ? image_items_prev(&it) : image_items_next(&it);
	}
	return e;
}

/* --- the whole --- */

static struct err *scan_segments(struct search *q, uint64_t from_va)
{
	const struct space *s = q->sn->space;
	struct err *e = NULL;
	for (uint32_t k = 0; k < s->seg_cnt && !e && q->hits.cnt <= q->limit; k++) {
		const struct space_seg *g = &s->segs[q->back ? s->seg_cnt - 1 - k : k];
		size_t len;
		const uint8_t *p = space_bytes(s, g->loc, &len);
		bool is_beyond = q->back ? g->va >= from_va : from_va > g->va && from_va - g->va >= len;
		if (!p || !len || is_beyond)
			continue;
		size_t first = !q->back && from_va > g->va ? (size_t)(from_va - g->va) : 0;
		size_t last = q->back && from_va - g->va < len ? (size_t)(from_va - g->va) - 1 : len - 1;
		size_t had = q->hits.cnt;
		e = scan_bytes(q, g->loc, p, len, first, last);
		for (size_t i = had, j = q->hits.cnt; q->back && i + 1 < j; i++) {
			j--;
			uint32_t t = q->hits.data[i];
			q->hits.data[i] = q->hits.data[j];
			q->hits.data[j] = t;
			t = q->lens.data[i];
			q->lens.data[i] = q->lens.data[j];
			q->lens.data[j] = t;
		}
	}
	return e;
}

/* What to show of a hit in bytes: the line it stands in. */
static void hit_fill(struct search *q, uint32_t loc, struct arena *a, struct ses_hit *ret)
{
	uint32_t cnt, f = image_func_at(q->sn->im, loc);
	const struct image_func *funcs = image_funcs(q->sn->im, &cnt);
	*ret = (struct ses_hit){.addr = space_va(q->sn->space, loc), .has_func = f < cnt, .func = {"", 0}};
	if (ret->has_func) {
		ret->func_addr = space_va(q->sn->space, funcs[f].loc);
		ret->func = ses_func_name(q->sn, f, a);
	}
	uint32_t start = loc, len;
	enum image_item_kind kind;
	if (image_item_at(q->sn->im, loc, &start, &len, &kind))
		ret->text = ses_line_text(q->sn, start, a);
	else
		ret->text = ses_text_of("", 0);
}

static struct err *search_answer(struct search *q, struct ses_search_ask *ask, struct arena *a, struct ses_hit **ret)
{
	uint32_t n = (uint32_t)MIN(q->hits.cnt, q->limit);
	struct ses_hit *out = ARENA_ARRAY(a, struct ses_hit, (size_t)n + 1);
	if (!out)
		return &err_nomem;
	for (uint32_t i = 0; i < n; i++)
		hit_fill(q, q->hits.data[i], a, &out[i]);
	*ret = out;
	ask->cnt = n;
	ask->has_more = q->hits.cnt > n;
	ask->next_va = ask->has_more ? space_va(q->sn->space, q->back && n ? q->hits.data[n - 1] : q->hits.data[n]) : 0;
	return NULL;
}

struct err *ses_search(struct ses_snap *sn, const struct ses_call *call, struct ses_search_ask *ask, struct arena *a,
		       struct ses_hit **ret)
{
	if (ask->kind == SES_SEARCH_C)
		return ses_search_c(sn, call, ask, a, ret);
	struct search *q = calloc(1, sizeof(*q));
	if (!q)
		return &err_nomem;
	q->sn = sn;
	q->call = call;
	q->kind = ask->kind;
	q->what = ask->what;
	q->what_len = strlen(ask->what);
	q->limit = ask->limit ? ask->limit : 1000;
	q->back = ask->back;
	struct err *e = search_compile(q);
	if (!e && q->regex)
		regex_set_check(q->regex, search_check, q);
	if (!e)
		e = q->kind == SES_SEARCH_IMM || q->kind == SES_SEARCH_INSN ? scan_insns(q, ask->from_va) : scan_segments(q, ask->from_va);
	if (!e)
		e = search_answer(q, ask, a, ret);
	regex_free(q->regex);
	VEC_FREE(&q->hits);
	VEC_FREE(&q->lens);
	free(q);
	return e;
}
