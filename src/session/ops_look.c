/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `look`: what is known of one place, as a list that can be cut anywhere and gone on with. First what it is and how much there is of each
 * thing, then the nearest of each (LOOK_FIRST), the C, and then the rest: whoever reads only the beginning has seen some of everything.
 */
#include "session/ops_int.h"
#include "session/ses_code.h"
#include "session/ses_int.h"
#include "session/ses_types.h"

#include "base/map.h"
#include "base/vec.h"

#include <string.h>

#define LOOK_FIRST 16      /* of each kind before the C */
#define LOOK_LINES 12      /* of C in one item */
#define LOOK_TEXT_MAX 240  /* bytes of a string's text; its length is told */
#define LOOK_REFS_MAX 65536

enum look_what { LOOK_COMMENT, LOOK_CALLER, LOOK_CALLEE, LOOK_STRING, LOOK_DATA, LOOK_TYPE, LOOK_REF, LOOK_WHAT_COUNT };

static const char *const what_names[LOOK_WHAT_COUNT] = {"comment", "caller", "callee", "string", "data", "type", "ref"};
static const char *const total_names[LOOK_WHAT_COUNT] = {"comments", "callers", "callees", "strings", "data", "types", "refs"};

struct look_thing { uint32_t loc, cnt; const struct edits_fact *fact; const char *name, *text; size_t text_len; };
typedef VEC(struct look_thing) look_list;

struct look {
	struct ops_req *rq;
	struct ses_snap *sn;
	uint32_t loc, func;             /* func: UINT32_MAX when it is in none */
	look_list lists[LOOK_WHAT_COUNT];
	bool are_refs_cut;              /* more than LOOK_REFS_MAX */
	struct ses_code code;
	const char *no_code;            /* why there is no C; null: there is */
	VEC(uint32_t) chunks;           /* of the C: where each begins */
	uint64_t offset, at;            /* items before the page; which one is put next */
	uint32_t limit, shown;
	bool is_full;
};

/* --- collecting --- */

static bool add(struct look *k, enum look_what what, struct look_thing t)
{
	return VEC_PUSH(&k->lists[what], t);
}

/* Once, however often it is met; `seen` holds where it stands in its list. */
static bool add_once(struct look *k, enum look_what what, uint32_t loc, struct map *seen)
{
	uint32_t at;
	uint64_t key = (uint64_t)what << 32 | loc;
	if (map_find(seen, key, &at)) {
		k->lists[what].data[at].cnt++;
		return true;
	}
	return map_put(seen, key, (uint32_t)k->lists[what].cnt) && add(k, what, (struct look_thing){.loc = loc, .cnt = 1});
}

/* What the code of [first, last] refers to besides code. */
static bool add_refs_from(struct look *k, uint32_t first_loc, uint32_t last_loc, struct map *seen)
{
	uint32_t first, cnt = image_xrefs_from(k->sn->im, first_loc, last_loc, &first);
	k->are_refs_cut |= cnt > LOOK_REFS_MAX;
	for (uint32_t i = 0; i < MIN(cnt, LOOK_REFS_MAX); i++) {
		struct image_xref x;
		if (!image_xref_fwd(k->sn->im, first + i, &x) || image_func_at(k->sn->im, x.to) != UINT32_MAX)
			continue;
		bool is_string = image_string_at(k->sn->im, x.to);
		bool is_call = !strcmp(ses_xref_name(x.kind), "call") || !strcmp(ses_xref_name(x.kind), "jump");
		if (!is_call && !add_once(k, is_string ? LOOK_STRING : LOOK_DATA, x.to, seen))
			return false;
	}
	return true;
}

static struct err *collect_edges(struct look *k)
{
	const struct ses_edge_row *rows;
	uint64_t cnt;
	uint32_t func_cnt, self = image_funcs(k->sn->im, &func_cnt)[k->func].loc;
	struct err *e = ses_edges(k->sn, k->rq->call, &rows, &cnt);
	for (uint64_t i = 0; !e && i < cnt; i++) {
		if (rows[i].callee == self && !add(k, LOOK_CALLER, (struct look_thing){.loc = rows[i].caller, .cnt = rows[i].cnt}))
			e = &err_nomem;
		if (!e && rows[i].caller == self && !add(k, LOOK_CALLEE, (struct look_thing){.loc = rows[i].callee, .cnt = rows[i].cnt}))
			e = &err_nomem;
		if (!e && i % 65536 == 0)
			e = ses_call_check(k->rq->call);
	}
	return e;
}

static bool add_comments(struct look *k, uint32_t first_loc, uint32_t last_loc)
{
	size_t cnt;
	const struct edits_fact *f = edits_range(k->sn->edits, EDITS_COMMENT, space_va(k->sn->space, first_loc),
						 space_va(k->sn->space, last_loc), &cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (!add(k, LOOK_COMMENT, (struct look_thing){.fact = &f[i]}))
			return false;
	}
	return true;
}

/* Who refers to what is no function. */
static struct err *collect_refs_to(struct look *k)
{
	struct ses_page page = {.limit = LOOK_REFS_MAX};
	struct ses_xref_ask ask = {.va = space_va(k->sn->space, k->loc)};
	struct ses_xref *x;
	struct err *e = ses_xrefs(k->sn, k->rq->call, &ask, &page, k->rq->arena, &x);
	for (uint32_t i = 0; !e && i < page.cnt; i++) {
		struct look_thing t = {.loc = space_loc(k->sn->space, x[i].from), .name = x[i].kind, .text = x[i].text.s, .text_len = x[i].text.len};
		if (!add(k, LOOK_REF, t))
			e = &err_nomem;
	}
	k->are_refs_cut |= !e && page.total > page.cnt;
	return e;
}

/* The types that a prototype or the type of data names, as C. */
static struct err *collect_types(struct look *k, const char *text, size_t len)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = len ? ses_types_lock(k->sn, &ts) : NULL;
	if (e || !len) {
		/* Without C types of this processor there is nothing to say. */
		if (e && e->kind == ERR_UNSUPPORTED) {
			err_free(e);
			e = NULL;
		}
		return e;
	}
	static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	for (size_t at = 0; at < len;) {
		size_t n = 0;
		while (at + n < len && strchr(word, text[at + n]))
			n++;
		const char *name = n ? arena_strndup(k->rq->arena, text + at, n) : NULL;
		struct buf body = {0};
		if (name && ops_put_type(ts, name, &body) && body.len && !body.failed) {
			struct look_thing t = {.name = name, .text = arena_strndup(k->rq->arena, body.data, body.len), .text_len = body.len};
			bool is_twice = false;
			for (size_t i = 0; i < k->lists[LOOK_TYPE].cnt; i++)
				is_twice |= !strcmp(k->lists[LOOK_TYPE].data[i].name, name);
			if (!is_twice && (!t.text || !add(k, LOOK_TYPE, t)))
				e = &err_nomem;
		}
		buf_fini(&body);
		if (e)
			return e;
		at += n ? n : 1;
	}
	return NULL;
}

static struct err *collect_code(struct look *k)
{
	struct err *e = ses_code_func(k->sn, k->func, false, k->rq->arena, &k->code);
	if (e && (e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET)) {
		k->no_code = arena_strndup(k->rq->arena, e->text, strlen(e->text));
		err_free(e);
		return k->no_code ? NULL : &err_nomem;
	}
	uint32_t line = 0;
	for (size_t at = 0; !e && at < k->code.text.len; line++) {
		if (line % LOOK_LINES == 0 && !VEC_PUSH(&k->chunks, (uint32_t)at))
			return &err_nomem;
		const char *end = memchr(k->code.text.data + at, '\n', k->code.text.len - at);
		at = end ? (size_t)(end - k->code.text.data) + 1 : k->code.text.len;
	}
	return e;
}

static struct err *collect_func(struct look *k)
{
	_cleanup_map_ struct map seen = {0};
	uint32_t cnt;
	const struct image_range *r = image_func_ranges(k->sn->im, k->func, &cnt);
	struct err *e = collect_edges(k);
	for (uint32_t i = 0; !e && i < cnt; i++) {
		bool is_good = add_refs_from(k, r[i].loc, r[i].loc + r[i].len - 1, &seen) && add_comments(k, r[i].loc, r[i].loc + r[i].len - 1);
		e = is_good ? NULL : &err_nomem;
	}
	return e ? e : collect_code(k);
}

static struct err *collect(struct look *k, const struct ses_type_info *type)
{
	struct err *e;
	if (k->func != UINT32_MAX) {
		e = collect_func(k);
	} else {
		e = collect_refs_to(k);
		if (!e && !add_comments(k, k->loc, k->loc))
			e = &err_nomem;
	}
	return e ? e : collect_types(k, type->text.s, type->text.len);
}

/* --- the page --- */

/* Whether the next item is on the page and has room; it is begun then. */
static bool begin(struct look *k)
{
	uint64_t at = k->at++;
	if (at < k->offset || k->is_full || k->shown >= k->limit)
		return false;
	if (!ops_out_item(k->rq->out)) {
		k->is_full = true;
		return false;
	}
	k->shown++;
	return true;
}

static void put_name(struct look *k, uint32_t loc)
{
	ops_out_addr(k->rq->out, "addr", space_va(k->sn->space, loc));
	ops_out_text(k->rq->out, "name", ses_where(k->sn, space_va(k->sn->space, loc), k->rq->arena));
}

static void put_string(struct look *k, uint32_t loc)
{
	struct ops_out *o = k->rq->out;
	const struct image_string *s = image_string_at(k->sn->im, loc);
	struct buf text = {0};
	ops_out_addr(o, "addr", space_va(k->sn->space, loc));
	if (s)
		ses_put_string(k->sn, s, LOOK_TEXT_MAX, &text);
	ops_out_str(o, "text", text.data ? text.data : "", text.len);
	ops_out_u64(o, "len", s ? s->len : 0);
	buf_fini(&text);
}

static void put_thing(struct look *k, enum look_what what, const struct look_thing *t)
{
	struct ops_out *o = k->rq->out;
	struct ses_type_info type = {.text = {"", 0}};
	if (!begin(k))
		return;
	ops_out_cstr(o, "what", what_names[what]);
	switch (what) {
	case LOOK_COMMENT:
		ops_out_addr(o, "addr", t->fact->va);
		ops_out_cstr(o, "kind", t->fact->sub);
		ops_out_str(o, "text", t->fact->value, t->fact->value_len);
		break;
	case LOOK_STRING:
		put_string(k, t->loc);
		break;
	case LOOK_TYPE:
		ops_out_cstr(o, "name", t->name);
		ops_out_str(o, "text", t->text, t->text_len);
		break;
	case LOOK_REF:
		put_name(k, t->loc);
		ops_out_cstr(o, "kind", t->name);
		ops_out_str(o, "text", t->text, t->text_len);
		break;
	case LOOK_CALLEE:
	case LOOK_DATA:
		ses_type_at(k->sn, space_va(k->sn->space, t->loc), k->rq->arena, &type);
		put_name(k, t->loc);
		if (type.text.len)
			ops_out_text(o, "text", type.text);
		ops_out_u64(o, "count", t->cnt);
		break;
	case LOOK_CALLER:
	case LOOK_WHAT_COUNT:
		put_name(k, t->loc);
		ops_out_u64(o, "count", t->cnt);
		break;
	}
	ops_out_end_item(o);
}

static void put_things(struct look *k, bool is_rest)
{
	for (int what = 0; what < LOOK_WHAT_COUNT; what++) {
		size_t cnt = k->lists[what].cnt, edge = MIN(cnt, LOOK_FIRST);
		for (size_t i = is_rest ? edge : 0; i < (is_rest ? cnt : edge); i++)
			put_thing(k, (enum look_what)what, &k->lists[what].data[i]);
	}
}

static void put_code(struct look *k)
{
	struct ops_out *o = k->rq->out;
	for (size_t i = 0; i < k->chunks.cnt; i++) {
		size_t from = k->chunks.data[i], to = i + 1 < k->chunks.cnt ? k->chunks.data[i + 1] : k->code.text.len;
		if (!begin(k))
			continue;
		ops_out_cstr(o, "what", "c");
		ops_out_u64(o, "line", i * LOOK_LINES + 1);
		ops_out_str(o, "text", k->code.text.data + from, to - from);
		ops_out_end_item(o);
	}
}

static uint64_t line_cnt(const struct look *k)
{
	uint64_t n = 0;
	for (size_t i = 0; i < k->code.text.len; i++)
		n += k->code.text.data[i] == '\n';
	return n;
}

static void put_func(struct look *k)
{
	struct ops_out *o = k->rq->out;
	struct ses_func f = {.name = {"", 0}, .demangled = {"", 0}, .source = ""};
	(void)ses_func_at(k->sn, space_va(k->sn->space, k->loc), k->rq->arena, &f);
	ops_out_cstr(o, "kind", "function");
	ops_out_addr(o, "addr", f.addr);
	ops_out_text(o, "name", f.name);
	if (f.demangled.len)
		ops_out_text(o, "demangled", f.demangled);
	ops_out_u64(o, "size", f.size);
	ops_out_u64(o, "blocks", f.blocks);
	ops_out_cstr(o, "source", f.source);
	if (f.flags & SES_FN_NORETURN)
		ops_out_bool(o, "noreturn", true);
}

/* What is no function: a line of the listing says it. */
static struct err *put_other(struct look *k)
{
	struct ops_out *o = k->rq->out;
	struct ses_head *h;
	uint32_t cnt = 0;
	uint64_t va = space_va(k->sn->space, k->loc);
	static const char *const kinds[] = {"code", "data", "string", "align", "unknown"};
	struct err *e = ses_heads(k->sn, k->rq->call, &(struct ses_at){.va = va, .sub = SES_SUB_ITEM, .count = 1}, k->rq->arena, &h, &cnt);
	if (e)
		return e;
	ops_out_cstr(o, "kind", cnt && h->kind < ARRAY_LEN(kinds) ? kinds[h->kind] : "data");
	ops_out_addr(o, "addr", va);
	ops_out_text(o, "name", ses_where(k->sn, va, k->rq->arena));
	ops_out_u64(o, "size", cnt ? h->size : 0);
	ops_out_text(o, "text", cnt ? h->text : (struct ses_text){"", 0});
	return NULL;
}

/* The first item: what it is, its type, and how much there is of everything else, on this page or not. */
static struct err *put_head(struct look *k, const struct ses_type_info *type)
{
	struct ops_out *o = k->rq->out;
	struct err *e = NULL;
	if (!begin(k))
		return NULL;
	ops_out_cstr(o, "what", "this");
	if (k->func != UINT32_MAX)
		put_func(k);
	else
		e = put_other(k);
	if (type->text.len)
		ops_out_text(o, "type", type->text);
	for (int what = 0; what < LOOK_WHAT_COUNT; what++) {
		if (k->lists[what].cnt)
			ops_out_u64(o, total_names[what], k->lists[what].cnt);
	}
	if (k->code.text.len)
		ops_out_u64(o, "c_lines", line_cnt(k));
	if (k->no_code)
		ops_out_cstr(o, "no_c", k->no_code);
	if (k->are_refs_cut)
		ops_out_bool(o, "truncated", true);
	ops_out_end_item(o);
	return e;
}

static struct err *look(struct look *k)
{
	struct ses_page page;
	struct ses_type_info type = {.text = {"", 0}};
	uint64_t va = space_va(k->sn->space, k->loc);
	struct err *e = ops_page(k->rq, &page);
	if (!e) {
		uint32_t cnt;
		uint64_t about = k->func != UINT32_MAX ? space_va(k->sn->space, image_funcs(k->sn->im, &cnt)[k->func].loc) : va;
		ses_type_at(k->sn, about, k->rq->arena, &type);
		e = collect(k, &type);
	}
	if (e)
		return e;
	k->offset = page.offset;
	k->limit = page.limit;
	ops_out_list(k->rq->out, k->sn);
	e = put_head(k, &type);
	put_things(k, false);
	put_code(k);
	put_things(k, true);
	ops_end_page(k->rq, &page, k->shown, k->at);
	return e;
}

struct err *ops_look(struct ops_req *rq)
{
	uint64_t va = 0;
	struct err *e = ops_addr(rq, "addr", 0, &va);
	if (e)
		return e;
	struct look k = {.rq = rq, .sn = rq->sn, .loc = space_loc(rq->sn->space, va)};
	if (k.loc == LOC_NONE)
		return err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)va);
	k.func = image_func_at(rq->sn->im, k.loc);
	e = look(&k);
	for (size_t i = 0; i < LOOK_WHAT_COUNT; i++)
		VEC_FREE(&k.lists[i]);
	VEC_FREE(&k.chunks);
	ses_code_fini(&k.code);
	return e;
}
