/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the lists: one typed query, then each item's facts by name. */
#include "session/ops_int.h"

#include "base/glob.h"
#include "session/project.h"

#include <string.h>

bool ops_is_of_part(const struct ops_op *op)
{
	static const char *const names[] = {"info", "segments", "sections", "symbols", "imports", "exports", "resolve", "bytes", "heads", "disasm"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(op->name, names[i]))
			return true;
	}
	return false;
}

struct err *ops_info(struct ops_req *rq)
{
	struct ses_info i;
	struct err *e = ses_info(rq->sn, rq->arena, &i);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	(void)ops_out_item(o);
	ops_out_text(o, "file", i.file);
	ops_out_text(o, "sha256", i.sha256);
	ops_out_u64(o, "size", i.size);
	ops_out_text(o, "format", i.format);
	ops_out_text(o, "arch", i.arch);
	ops_out_u64(o, "bits", i.bits);
	ops_out_text(o, "endian", i.endian);
	ops_out_text(o, "type", i.type);
	if (i.has_entry)
		ops_out_addr(o, "entry", i.entry);
	else
		ops_out_null(o, "entry");
	ops_out_addr(o, "base", i.base);
	ops_out_text(o, "build_id", i.build_id);
	ops_out_bool(o, "stripped", i.is_stripped);
	ops_out_text(o, "interp", i.interp);
	const char **needed = ARENA_ARRAY(rq->arena, const char *, i.needed_cnt + 1u);
	for (uint32_t k = 0; needed && k < i.needed_cnt; k++)
		needed[k] = arena_strndup(rq->arena, i.needed[k].s, i.needed[k].len);
	ops_out_words(o, "needed", needed, needed ? i.needed_cnt : 0);
	ops_out_u64(o, "functions", i.functions);
	ops_out_u64(o, "instructions", i.instructions);
	ops_out_u64(o, "strings", i.strings);
	ops_out_u64(o, "xrefs", i.xrefs);
	ops_out_u64(o, "problems", i.problems);
	ops_out_addr(o, "main", i.main_va);
	ops_out_u64(o, "rev", ses_snap_rev(rq->sn));
	if (o->etag[0])
		ops_out_cstr(o, "etag", o->etag);
	if (ses_snap_is_pending(rq->sn))
		ops_out_bool(o, "pending", true);
	/* Which file it is, is known by where it is, its build-id and size, until all of it is here. */
	uint64_t have_len;
	if (ses_snap_is_preview(rq->sn) && ses_is_partial(ses_snap_session(rq->sn), &have_len)) {
		ops_out_bool(o, "partial", true);
		ops_out_u64(o, "have", have_len);
	}
	ops_out_end_item(o);
	return NULL;
}

static struct err *segment_list(struct ops_req *rq, struct ses_segment *s, uint32_t cnt)
{
	struct ses_page page;
	struct err *e = ops_page(rq, &page);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	uint32_t shown = 0;
	uint64_t total = 0;
	bool is_full = false;
	ops_out_list(o, rq->sn);
	for (uint32_t i = 0; i < cnt; i++) {
		if (page.filter && *page.filter &&
		    !glob_match(page.filter, strlen(page.filter), s[i].name.s, s[i].name.len, true))
			continue;
		if (total++ < page.offset || is_full || shown == page.limit)
			continue;
		is_full = !ops_out_item(o);
		if (is_full)
			continue;
		ops_out_text(o, "name", s[i].name);
		ops_out_addr(o, "addr", s[i].addr);
		ops_out_u64(o, "size", s[i].size);
		ops_out_u64(o, "file_off", s[i].file_off);
		ops_out_u64(o, "file_size", s[i].file_size);
		ops_out_cstr(o, "perm", s[i].perm);
		ops_out_end_item(o);
		shown++;
	}
	ops_end_page(rq, &page, shown, total);
	return NULL;
}

struct err *ops_segments(struct ops_req *rq)
{
	struct ses_segment *s;
	uint32_t cnt;
	struct err *e = ses_segments(rq->sn, rq->arena, &s, &cnt);
	return e ? e : segment_list(rq, s, cnt);
}

struct err *ops_sections(struct ops_req *rq)
{
	struct ses_segment *s;
	uint32_t cnt;
	struct err *e = ses_sections(rq->sn, rq->arena, &s, &cnt);
	return e ? e : segment_list(rq, s, cnt);
}

static void func_flags(struct ops_out *o, uint32_t flags)
{
	const char *words[4];
	size_t n = 0;
	if (flags & SES_FN_THUNK)
		words[n++] = "thunk";
	if (flags & SES_FN_NORETURN)
		words[n++] = "noreturn";
	if (flags & SES_FN_LIBRARY)
		words[n++] = "library";
	if (flags & SES_FN_EXPORT)
		words[n++] = "export";
	ops_out_words(o, "flags", words, n);
}

struct err *ops_functions(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_func *f;
	uint32_t i;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = ses_functions(rq->sn, rq->call, &page, rq->arena, &f);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page.cnt && ops_out_item(o); i++) {
		ops_out_u64(o, "id", f[i].id);
		ops_out_addr(o, "addr", f[i].addr);
		ops_out_text(o, "name", f[i].name);
		ops_out_text(o, "demangled", f[i].demangled);
		ops_out_u64(o, "size", f[i].size);
		ops_out_u64(o, "blocks", f[i].blocks);
		func_flags(o, f[i].flags);
		ops_out_cstr(o, "source", f[i].source);
		ops_out_u64(o, "callers", f[i].callers);
		ops_out_u64(o, "callees", f[i].callees);
		ops_out_end_item(o);
	}
	ops_end_page(rq, &page, i, page.total);
	return NULL;
}

struct err *ops_strings(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_string *s;
	uint32_t i;
	struct err *e = ops_page(rq, &page);
	page.min_len = (uint32_t)MIN(ops_arg_u64(rq->args, "min", 0), UINT32_MAX);
	if (!e)
		e = ses_strings(rq->sn, rq->call, &page, rq->arena, &s);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page.cnt && ops_out_item(o); i++) {
		ops_out_addr(o, "addr", s[i].addr);
		ops_out_u64(o, "len", s[i].len);
		ops_out_cstr(o, "encoding", s[i].encoding);
		ops_out_text(o, "text", s[i].text);
		ops_out_end_item(o);
	}
	ops_end_page(rq, &page, i, page.total);
	return NULL;
}

static void put_prototype(struct ops_req *rq, const struct ses_import *s)
{
	struct ses_type_info info = {.text = {"", 0}};
	if (s->has_addr)
		ses_type_at(rq->sn, s->addr, rq->arena, &info);
	if (info.text.len)
		ops_out_text(rq->out, "prototype", info.text);
	else
		ops_out_null(rq->out, "prototype");
}

static void symbol_list(struct ops_req *rq, const struct ses_page *page, const struct ses_import *s, bool is_imports)
{
	struct ops_out *o = rq->out;
	uint32_t i;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page->cnt && ops_out_item(o); i++) {
		if (s[i].has_addr)
			ops_out_addr(o, "addr", s[i].addr);
		else
			ops_out_null(o, "addr");
		ops_out_text(o, "name", s[i].name);
		ops_out_text(o, "demangled", s[i].demangled);
		ops_out_text(o, "library", s[i].library);
		ops_out_text(o, "version", s[i].version);
		ops_out_cstr(o, "kind", s[i].kind);
		ops_out_u64(o, "size", s[i].size);
		if (is_imports)
			put_prototype(rq, &s[i]);
		ops_out_end_item(o);
	}
	ops_end_page(rq, page, i, page->total);
}

typedef struct err *symbol_query(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
				 struct ses_import **ret);

static struct err *symbol_op(struct ops_req *rq, symbol_query *query)
{
	struct ses_page page;
	struct ses_import *s;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = query(rq->sn, rq->call, &page, rq->arena, &s);
	if (!e)
		symbol_list(rq, &page, s, query == ses_imports);
	return e;
}

struct err *ops_imports(struct ops_req *rq)
{
	return symbol_op(rq, ses_imports);
}

struct err *ops_exports(struct ops_req *rq)
{
	return symbol_op(rq, ses_exports);
}

struct err *ops_symbols(struct ops_req *rq)
{
	return symbol_op(rq, ses_symbols);
}

struct err *ops_bookmarks(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_fact *f;
	uint32_t i;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = ses_facts(rq->sn, rq->call, "bookmark", &page, rq->arena, &f);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page.cnt && ops_out_item(o); i++) {
		ops_out_addr(o, "addr", f[i].addr);
		ops_out_text(o, "where", ses_where(rq->sn, f[i].addr, rq->arena));
		ops_out_text(o, "text", f[i].value);
		ops_out_u64(o, "set_rev", f[i].rev);
		ops_out_end_item(o);
	}
	ops_end_page(rq, &page, i, page.total);
	return NULL;
}

struct err *ops_problems(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_problem *p;
	uint32_t i;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = ses_problems(rq->sn, &page, rq->arena, &p);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page.cnt && ops_out_item(o); i++) {
		if (p[i].has_addr)
			ops_out_addr(o, "addr", p[i].addr);
		else
			ops_out_null(o, "addr");
		ops_out_text(o, "what", p[i].what);
		ops_out_text(o, "why", p[i].why);
		ops_out_cstr(o, "severity", p[i].severity);
		ops_out_end_item(o);
	}
	ops_end_page(rq, &page, i, page.total);
	return NULL;
}

/* --- resolve --- */

static const char *resolve_kind(struct ops_req *rq, uint64_t va)
{
	struct ses_func f;
	if (!ses_is_mapped(rq->sn, va))
		return "unmapped";
	if (ses_func_at(rq->sn, va, rq->arena, &f))
		return f.addr == va ? "func" : "code";
	struct ses_head *h;
	uint32_t n = 0;
	struct err *e = ses_heads(rq->sn, rq->call, &(struct ses_at){.va = va, .sub = SES_SUB_ITEM, .count = 1}, rq->arena, &h, &n);
	err_free(e);
	return e || !n ? "" : h->kind == SES_HEAD_CODE ? "code" : h->kind == SES_HEAD_STRING ? "string" : "data";
}

struct err *ops_resolve(struct ops_req *rq)
{
	const struct ops_value *v = &rq->args->values[0];
	struct ops_out *o = rq->out;
	struct err *first = NULL;
	size_t i;
	ops_out_list(o, rq->sn);
	for (i = 0; i < v->text_cnt && ops_out_item(o); i++) {
		uint64_t va = 0;
		struct err *e = ses_resolve(rq->sn, v->texts[i], &va);
		ops_out_cstr(o, "query", v->texts[i]);
		if (e) {
			ops_out_null(o, "addr");
			ops_out_cstr(o, "name", "");
			ops_out_cstr(o, "kind", err_kind_name(e->kind));
		} else {
			ops_out_addr(o, "addr", va);
			ops_out_text(o, "name", ses_where(rq->sn, va, rq->arena));
			ops_out_cstr(o, "kind", resolve_kind(rq, va));
		}
		ops_out_end_item(o);
		/* The answer stands; the command line's status tells that something was not there. */
		if (!first)
			first = e;
		else
			err_free(e);
	}
	if (i < v->text_cnt)
		ops_set_next(rq, i, 0);
	ops_out_end_list(o, v->text_cnt);
	o->status = first;
	return NULL;
}

/* --- bytes --- */

#define BYTES_MAX ((uint64_t)64 << 20)

static void bytes_dump(struct ops_out *o, uint64_t va, const uint8_t *b, const bool *mapped, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 16) {
		uint32_t n = MIN(16, len - i);
		buf_add_hex(o->buf, va + i, 8);
		buf_add(o->buf, "  ", 2);
		for (uint32_t k = 0; k < 16; k++) {
			if (k >= n)
				buf_add(o->buf, "  ", 2);
			else if (mapped[i + k])
				buf_add_hexbytes(o->buf, b + i + k, 1);
			else
				buf_add(o->buf, "??", 2);
			buf_add(o->buf, "  ", k == 7 ? 2 : 1);
		}
		buf_add_ch(o->buf, '|');
		for (uint32_t k = 0; k < n; k++)
			buf_add_ch(o->buf, mapped[i + k] && b[i + k] >= 0x20 && b[i + k] < 0x7f ? (char)b[i + k] : '.');
		buf_add(o->buf, "|\n", 2);
	}
}

static void bytes_json(struct ops_req *rq, uint64_t va, const uint8_t *b, uint32_t len, uint32_t mapped_len)
{
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, ses_snap_rev(rq->sn));
	json_key(j, "addr");
	json_addr(j, va);
	json_key(j, "hex");
	json_hex(j, b, len);
	json_key(j, "mapped");
	json_u64(j, mapped_len);
	json_end_obj(j);
}

struct err *ops_bytes(struct ops_req *rq)
{
	uint64_t va, len = ops_arg_u64(rq->args, "len", 0);
	struct err *e = ops_addr(rq, "addr", 0, &va);
	if (e)
		return e;
	if (!len || len > BYTES_MAX)
		return err_new(ERR_INVALID, "bytes: 1 to %llu at a time", (unsigned long long)BYTES_MAX);
	if (!ses_is_mapped(rq->sn, va))
		return err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)va);
	_cleanup_free_ uint8_t *b = malloc(len);
	_cleanup_free_ bool *mapped = malloc(len);
	if (!b || !mapped)
		return &err_nomem;
	uint32_t n = ses_bytes(rq->sn, va, (uint32_t)len, b, mapped);
	if (rq->out->is_json)
		bytes_json(rq, va, b, (uint32_t)len, n);
	else if (ops_arg_is_set(rq->args, "raw"))
		buf_add(rq->out->buf, b, len);
	else
		bytes_dump(rq->out, va, b, mapped, (uint32_t)len);
	return NULL;
}

/* --- references and search --- */

static bool xref_item(struct ops_out *o, const struct ses_xref *x, const char *binary)
{
	if (!ops_out_item(o))
		return false;
	ops_out_addr(o, "from", x->from);
	ops_out_addr(o, "to", x->to);
	ops_out_cstr(o, "kind", x->kind);
	ops_out_text(o, "func", x->func);
	if (x->has_func)
		ops_out_addr(o, "func_addr", x->func_addr);
	else
		ops_out_null(o, "func_addr");
	ops_out_text(o, "text", x->text);
	if (binary)
		ops_out_cstr(o, "binary", binary);
	ops_out_end_item(o);
	return true;
}

/* Those of other binaries come after the target's own. */
struct err *ops_xrefs(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_xref *x;
	struct ses_far_list far = {0};
	uint32_t i;
	struct ses_xref_ask ask = {.from = ops_arg_is_set(rq->args, "from"), .whole_func = ops_arg_is_set(rq->args, "whole")};
	if (ask.from && ops_arg_is_set(rq->args, "to"))
		return err_new(ERR_INVALID, "xrefs: --to and --from exclude each other");
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = ops_addr(rq, "addr", 0, &ask.va);
	if (!e)
		e = ses_xrefs(rq->sn, rq->call, &ask, &page, rq->arena, &x);
	uint64_t far_off = page.offset > page.total ? page.offset - page.total : 0;
	uint64_t far_limit = !e && page.cnt < page.limit ? far_off + (page.limit - page.cnt) : 0;
	if (!e && !ask.from)
		e = ops_far_xrefs(rq, ask.va, (uint32_t)MIN(far_limit, 1000000), &far);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page.cnt && xref_item(o, &x[i], NULL); i++)
		;
	for (uint64_t k = far_off; i >= page.cnt && k < far.cnt && xref_item(o, &far.list[k].xref, ops_far_label(rq, &far.list[k])); k++)
		i++;
	ops_end_page(rq, &page, i, page.total + far.total);
	return NULL;
}

static struct err *search_kind(struct ops_req *rq, enum ses_search_kind *ret_kind, const char **ret_what)
{
	static const char *const names[] = {"bytes", "text", "regex", "imm", "insn", "c"};
	unsigned given = 0;
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		const char *text = ops_arg_str(rq->args, names[i]);
		if (!text)
			continue;
		given++;
		*ret_kind = (enum ses_search_kind)i;
		*ret_what = text;
	}
	if (given != 1)
		return err_fix(err_new(ERR_INVALID, "search: exactly one of --bytes --text --regex --imm --insn --c is needed"), "scry help search");
	return NULL;
}

/* A page of matches in C ended before number `at`: it goes on in that one's function, behind those that were given. */
static void set_next_c(struct ops_req *rq, const struct ses_search_ask *ask, const struct ses_hit *h, uint32_t at)
{
	uint32_t given = 0;
	while (given < at && h[at - given - 1].func_addr == h[at].func_addr)
		given++;
	ops_set_next(rq, h[at].func_addr + ask->back, given + (given == at ? ask->skip : 0));
}

struct err *ops_search(struct ops_req *rq)
{
	struct ses_search_ask ask = {.back = ops_arg_is_set(rq->args, "back")};
	struct ses_hit *h;
	uint32_t i;
	uint64_t skip = 0;
	struct err *e = search_kind(rq, &ask.kind, &ask.what);
	struct ses_segment *seg;
	uint32_t seg_cnt = 0;
	if (!e)
		e = ses_segments(rq->sn, rq->arena, &seg, &seg_cnt);
	if (!e && !seg_cnt)
		e = err_new(ERR_NOT_FOUND, "search: nothing of this file is mapped");
	if (!e)
		e = ops_addr(rq, "from", ask.back ? UINT64_MAX : seg[0].addr, &ask.from_va);
	if (!e && ops_arg_is_set(rq->args, "cursor"))
		e = ops_get_cursor(rq, &ask.from_va, &skip);
	ask.limit = (uint32_t)MIN(ops_arg_u64(rq->args, "limit", rq->out->is_json ? 1000 : 1000000), 10000000);
	ask.skip = (uint32_t)MIN(skip, UINT32_MAX);
	if (!e)
		e = ses_search(rq->sn, rq->call, &ask, rq->arena, &h);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < ask.cnt && ops_out_item(o); i++) {
		ops_out_addr(o, "addr", h[i].addr);
		ops_out_text(o, "func", h[i].func);
		if (h[i].has_func)
			ops_out_addr(o, "func_addr", h[i].func_addr);
		else
			ops_out_null(o, "func_addr");
		if (h[i].line)
			ops_out_u64(o, "line", h[i].line);
		ops_out_text(o, "text", h[i].text);
		ops_out_end_item(o);
	}
	if (i < ask.cnt && h[i].line)
		set_next_c(rq, &ask, h, i);
	else if (i < ask.cnt)
		ops_set_next(rq, h[ask.back && i ? i - 1 : i].addr, 0);
	else if (ask.has_more)
		ops_set_next(rq, ask.next_va, ask.next_skip);
	/* The number of hits beyond the page is not known without looking for them. */
	ops_out_end_list(o, ask.has_more || i < ask.cnt || ops_arg_is_set(rq->args, "cursor") ? UINT64_MAX : ask.cnt);
	return NULL;
}
