/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others found out, as one edit call: one transaction, one revision, one undo step. Every entry of the file is accounted
 * for: applied, unchanged, refused with the reason, or left out with the reason (a made-up name, a second name of one place).
 */
#include "session/ops_doc.h"
#include "session/ops_exchange.h"
#include "session/ops_int.h"
#include "session/ses_int.h"
#include "symfile/symfile.h"

#include <inttypes.h>
#include <string.h>

struct import_row {
	struct ses_edit edit;
	const char *what;   /* as the file says it, for the answer */
	uint32_t line;      /* 0: unknown */
	bool is_left_out;   /* with `why` */
	bool is_same;       /* is so already, without an edit */
	const char *why;    /* null: to be edited */
	size_t order;
};

struct import {
	struct ops_req *rq;
	const char *path, *format;
	struct import_row *rows;
	size_t cnt;
	uint64_t counts[3];     /* by enum ses_edit_status */
	uint64_t left_out, unmapped, proposed;
};

static const char *keep(struct import *im, struct err *e)
{
	const char *s = arena_strndup(im->rq->arena, e->text, strlen(e->text));
	err_free(e);
	return s ? s : "out of memory";
}

/* --- other programs' files --- */

/* Where offset 0 of a map's segment is: by the section of that name, else by a made-up name in it, which says its address. */
struct seg_base { uint32_t number; bool is_known, is_theirs; uint64_t base; };

static bool base_by_section(struct import *im, const struct symfile_seg *g, uint64_t *ret)
{
	struct ses_segment *all;
	uint32_t cnt, found = 0;
	struct err *e = ses_sections(im->rq->sn, im->rq->arena, &all, &cnt);
	for (uint32_t i = 0; !e && i < cnt; i++) {
		if (all[i].name.len != strlen(g->name) || memcmp(all[i].name.s, g->name, all[i].name.len) || !all[i].addr)
			continue;
		*ret = all[i].addr - g->off;
		found++;
	}
	err_free(e);
	return found == 1;
}

static bool base_by_names(const struct symfile *f, uint32_t number, uint64_t *ret)
{
	bool is_found = false;
	for (size_t i = 0; i < f->cnt; i++) {
		const struct symfile_item *it = &f->items[i];
		uint64_t va;
		if (it->seg != number || !it->len || !ses_resolve_generated(it->text, it->len, &va))
			continue;
		if (is_found && *ret != va - it->addr)
			return false;
		*ret = va - it->addr;
		is_found = true;
	}
	return is_found;
}

static void find_base(struct import *im, const struct symfile *f, struct seg_base *s)
{
	for (size_t i = 0; i < f->seg_cnt && !s->is_known; i++)
		s->is_known = f->segs[i].number == s->number && base_by_section(im, &f->segs[i], &s->base);
	if (!s->is_known)
		s->is_known = s->is_theirs = base_by_names(f, s->number, &s->base);
}

#define SEG_MAX 256

/* Remembers what was found out about each of the first SEG_MAX segments. */
static const struct seg_base *seg_base(struct import *im, const struct symfile *f, uint32_t number, struct seg_base *known, size_t *cnt)
{
	for (size_t i = 0; i < *cnt; i++) {
		if (known[i].number == number)
			return &known[i];
	}
	if (*cnt == SEG_MAX)
		return NULL;
	struct seg_base *s = &known[(*cnt)++];
	*s = (struct seg_base){.number = number};
	find_base(im, f, s);
	return s;
}

static const char *const edit_ops[] = {[SYMFILE_NAME] = "rename", [SYMFILE_COMMENT] = "comment", [SYMFILE_BOOKMARK] = "bookmark"};

static struct err *take_symfile(struct import *im, const struct symfile *f, uint64_t shift)
{
	struct seg_base known[SEG_MAX];
	size_t known_cnt = 0;
	im->format = symfile_format_name(f->format);
	im->rows = ARENA_ARRAY(im->rq->arena, struct import_row, f->cnt + 1);
	im->cnt = f->cnt;
	if (!im->rows)
		return &err_nomem;
	for (size_t i = 0; i < f->cnt; i++) {
		const struct symfile_item *it = &f->items[i];
		struct import_row *r = &im->rows[i];
		*r = (struct import_row){.what = it->text, .line = it->line, .is_left_out = it->is_left_out, .why = it->why,
					 .edit = {.op = edit_ops[it->what], .addr = it->addr + shift, .sub = it->sub, .value = it->text,
						  .value_len = it->len}};
		if (!it->seg || r->why)
			continue;
		const struct seg_base *s = seg_base(im, f, it->seg, known, &known_cnt);
		if (!s || !s->is_known)
			r->why = arena_printf(im->rq->arena, "where segment %u of the map is cannot be told", it->seg);
		else
			r->edit.addr = s->base + it->addr + (s->is_theirs ? shift : 0);
	}
	return NULL;
}

/* --- JSON --- */

static struct err *take_map(struct import *im, const struct ops_doc *map, uint64_t shift)
{
	im->format = "names";
	im->rows = ARENA_ARRAY(im->rq->arena, struct import_row, map->cnt + 1);
	im->cnt = map->cnt;
	if (!im->rows)
		return &err_nomem;
	for (size_t i = 0; i < map->cnt; i++) {
		const struct ops_doc *m = &map->items[i];
		struct import_row *r = &im->rows[i];
		*r = (struct import_row){.what = m->key, .edit = {.op = "rename", .sub = ""}};
		struct err *e = ses_resolve(im->rq->sn, m->key, &r->edit.addr);
		bool is_number = m->key[0] >= '0' && m->key[0] <= '9';
		/* An address of the other program's may be none of ours before it is moved. */
		if (is_number && shift) {
			err_free(e);
			char *end;
			r->edit.addr = strtoull(m->key, &end, 16) + shift;
			e = *end ? err_new(ERR_INVALID, "%s: is no address", m->key) : NULL;
		}
		if (e)
			r->why = keep(im, e);
		else if (m->kind != OPS_DOC_STRING)
			r->why = "the name is not a string";
		else if (!m->len)
			r->why = "the name is empty";
		else if (symfile_is_made_up(m->s, m->len)) {
			r->why = "the name is made up from the address";
			r->is_left_out = true;
		}
		r->edit.value = m->s;
		r->edit.value_len = m->len;
	}
	return NULL;
}

/* One fact of our own export; the journal's words, taken as they stand. */
static void take_fact(struct import *im, const struct ops_doc *o, struct import_row *r)
{
	enum edits_kind kind;
	const struct ops_doc *addr = ops_doc_find(o, "addr"), *value = ops_doc_find(o, "value"), *sub = ops_doc_find(o, "sub");
	const char *op = ops_doc_str(o, "op");
	*r = (struct import_row){.what = op ? op : "?", .edit = {.op = op ? op : "?", .sub = ""}};
	if (!op || !edits_kind_find(op, &kind) || kind == EDITS_ANALYSIS) {
		r->why = op ? "this scry has no such edit" : "it says no op";
		return;
	}
	if (addr && addr->kind == OPS_DOC_STRING) {
		char *end = NULL;
		bool is_hex = addr->len > 2 && addr->len <= 18 && addr->s[0] == '0' && addr->s[1] == 'x' && strlen(addr->s) == addr->len;
		r->edit.addr = is_hex ? strtoull(addr->s + 2, &end, 16) : 0;
		if (!is_hex || *end)
			r->why = "its addr is not an address";
	} else if (addr && addr->kind != OPS_DOC_NULL) {
		r->why = "its addr is not an address";
	}
	if (sub && sub->kind == OPS_DOC_STRING && strlen(sub->s) == sub->len)
		r->edit.sub = sub->s;
	else if (sub)
		r->why = "its sub is not a text";
	if (!value || value->kind != OPS_DOC_STRING) {
		r->why = "it says no value";
		return;
	}
	r->edit.value = value->s;
	r->edit.value_len = value->len;
}

static int sub_cmp(const void *x, const void *y)
{
	const struct ses_edit *a = x, *b = y;
	return strcmp(a->sub, b->sub);
}

/* What the row's text came to: a new declaration of that name, or what stands already. */
static void take_decl(struct import *im, struct import_row *r, const struct ses_edit *made, size_t made_cnt)
{
	const struct ses_edit *m = made_cnt ? bsearch(&r->edit, made, made_cnt, sizeof(*made), sub_cmp) : NULL;
	if (m)
		r->edit = *m;
	else if (edits_find(im->rq->sn->edits, EDITS_DECL, 0, r->edit.sub))
		r->is_same = true;
	else
		r->why = "its text declares something else than its name says";
}

/* Declarations are parsed together, in whatever order they need each other, and stated in our own spelling. */
static struct err *take_decls(struct import *im)
{
	struct arena *a = im->rq->arena;
	struct ses_edit *decls = ARENA_ARRAY(a, struct ses_edit, im->cnt + 1), *made = NULL;
	struct err **why = ARENA_ARRAY(a, struct err *, im->cnt + 1);
	struct import_row **from = ARENA_ARRAY(a, struct import_row *, im->cnt + 1);
	size_t n = 0, made_cnt = 0;
	if (!decls || !why || !from)
		return &err_nomem;
	for (size_t i = 0; i < im->cnt; i++) {
		struct import_row *r = &im->rows[i];
		if (r->why || strcmp(r->edit.op, "declare"))
			continue;
		decls[n] = r->edit;
		from[n++] = r;
	}
	struct err *e = n ? ops_types_take(im->rq, decls, n, why, &made, &made_cnt) : NULL;
	if (!e && made_cnt)
		qsort(made, made_cnt, sizeof(*made), sub_cmp);
	for (size_t i = 0; i < n; i++) {
		if (why[i])
			from[i]->why = keep(im, why[i]);
		else if (!e)
			take_decl(im, from[i], made, made_cnt);
	}
	return e;
}

static bool is_same_target(struct import *im, const struct ops_doc *doc)
{
	const struct ops_doc *target = ops_doc_find(doc, "target");
	const char *theirs = target ? ops_doc_str(target, "sha256") : NULL;
	char ours[65];
	store_hex(im->rq->sn->ses->sha256, ours);
	return theirs && !strcmp(ours, theirs);
}

static struct err *take_export(struct import *im, const struct ops_doc *doc)
{
	const struct ops_doc *version = ops_doc_find(doc, "scry_edits"), *list = ops_doc_find(doc, "edits");
	im->format = "scry";
	if (version->kind != OPS_DOC_INT || version->num < 1)
		return err_new(ERR_INVALID, "%s: scry_edits is not a version", im->path);
	if (version->num > OPS_EXCHANGE_VERSION)
		return err_fix(err_new(ERR_UNSUPPORTED, "%s: was written by a newer scry (version %" PRId64 ")", im->path, version->num),
			       "use that scry");
	if (!list || list->kind != OPS_DOC_LIST)
		return err_new(ERR_INVALID, "%s: has no list \"edits\"", im->path);
	if (!is_same_target(im, doc) && !ops_arg_is_set(im->rq->args, "any_target"))
		return err_fix(err_new(ERR_DENIED, "%s: is about another file than %s", im->path, im->rq->sn->ses->path),
			       "--any-target takes it all the same, by address");
	im->rows = ARENA_ARRAY(im->rq->arena, struct import_row, list->cnt + 1);
	im->cnt = list->cnt;
	if (!im->rows)
		return &err_nomem;
	for (size_t i = 0; i < list->cnt; i++)
		take_fact(im, &list->items[i], &im->rows[i]);
	return take_decls(im);
}

/* --- what remains to be done --- */

static int row_cmp(const void *x, const void *y)
{
	const struct import_row *a = *(struct import_row *const *)x, *b = *(struct import_row *const *)y;
	int c = strcmp(a->edit.op, b->edit.op);
	if (!c && a->edit.addr != b->edit.addr)
		c = a->edit.addr < b->edit.addr ? -1 : 1;
	if (!c)
		c = strcmp(a->edit.sub, b->edit.sub);
	return c ? c : a->order < b->order ? -1 : a->order > b->order;
}

/* Of several statements about one thing the first counts. */
static struct err *drop_repeated(struct import *im)
{
	struct import_row **by_key = ARENA_ARRAY(im->rq->arena, struct import_row *, im->cnt + 1);
	size_t n = 0;
	if (!by_key)
		return &err_nomem;
	for (size_t i = 0; i < im->cnt; i++) {
		im->rows[i].order = i;
		if (!im->rows[i].why)
			by_key[n++] = &im->rows[i];
	}
	qsort(by_key, n, sizeof(*by_key), row_cmp);
	const struct import_row *first = NULL;
	for (size_t i = 0; i < n; i++) {
		struct import_row *r = by_key[i];
		bool is_again = first && !strcmp(first->edit.op, r->edit.op) && first->edit.addr == r->edit.addr &&
				!strcmp(first->edit.sub, r->edit.sub);
		if (!is_again) {
			first = r;
		} else if (first->edit.value_len == r->edit.value_len && !memcmp(first->edit.value, r->edit.value, r->edit.value_len)) {
			r->is_same = true;
		} else {
			r->why = "the file says something else about the same place before";
			r->is_left_out = true;
		}
	}
	return NULL;
}

/* A name that the place has anyway, by a symbol, needs no edit. */
static void find_same(struct import *im)
{
	struct ses_snap *sn = im->rq->sn;
	for (size_t i = 0; i < im->cnt; i++) {
		struct import_row *r = &im->rows[i];
		if (r->why || r->is_same || strcmp(r->edit.op, "rename"))
			continue;
		struct ses_text t = ses_name_at(sn, r->edit.addr, im->rq->arena);
		r->is_same = t.len == r->edit.value_len && !memcmp(t.s, r->edit.value, t.len);
		im->unmapped += !ses_is_mapped(sn, r->edit.addr);
	}
}

static void count_row(struct import *im, const struct import_row *r)
{
	if (r->why && r->is_left_out)
		im->left_out++;
	else if (!r->why && r->edit.proposal)
		im->proposed++;
	else
		im->counts[r->why ? SES_EDIT_REFUSED : r->is_same ? SES_EDIT_UNCHANGED : r->edit.status]++;
}

static struct err *run_rows(struct import *im, uint64_t *ret_rev)
{
	struct ops_req *rq = im->rq;
	struct ses_edit_opts opts;
	struct ses_edit *edits = ARENA_ARRAY(rq->arena, struct ses_edit, im->cnt + 1);
	size_t n = 0;
	struct err *e = edits ? ops_edit_opts(rq, &opts) : &err_nomem;
	if (e)
		return e;
	bool is_spoilt = false;
	for (size_t i = 0; i < im->cnt; i++) {
		const struct import_row *r = &im->rows[i];
		is_spoilt = is_spoilt || (r->why && !r->is_left_out);
		if (!r->why && !r->is_same)
			edits[n++] = r->edit;
	}
	is_spoilt = is_spoilt && opts.is_atomic;
	if (!opts.note)
		opts.note = arena_printf(rq->arena, "import of %.200s", im->path);
	*ret_rev = ses_snap_rev(rq->sn);
	e = n && !is_spoilt ? ses_edit(rq->sn->ses, edits, n, &opts, rq->arena, ret_rev) : NULL;
	n = 0;
	for (size_t i = 0; !e && i < im->cnt; i++) {
		struct import_row *r = &im->rows[i];
		if (!r->why && !r->is_same) {
			r->edit = edits[n++];
			if (is_spoilt)
				r->edit.why = "another entry was refused";
			if (is_spoilt || r->edit.status == SES_EDIT_REFUSED)
				r->why = r->edit.why;
		}
		count_row(im, r);
	}
	return e;
}

/* --- the answer --- */

static void put_row_json(struct json *j, const struct import_row *r)
{
	json_obj(j);
	json_key(j, "status");
	json_str(j, r->is_left_out ? "left_out" : "refused");
	json_key(j, "op");
	json_str(j, r->edit.op);
	json_key(j, "addr");
	json_addr(j, r->edit.addr);
	json_key(j, "text");
	json_str(j, r->what);
	json_key(j, "line");
	if (r->line)
		json_u64(j, r->line);
	else
		json_null(j);
	json_key(j, "why");
	json_str(j, r->why);
	json_end_obj(j);
}

static void put_json(struct import *im, uint64_t rev)
{
	const struct { const char *key; uint64_t v; } counts[] = {
		{"applied", im->counts[SES_EDIT_APPLIED]}, {"unchanged", im->counts[SES_EDIT_UNCHANGED]},
		{"refused", im->counts[SES_EDIT_REFUSED]}, {"left_out", im->left_out}};
	struct json *j = &im->rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, rev);
	json_key(j, "path");
	json_str(j, im->path);
	json_key(j, "format");
	json_str(j, im->format);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		json_key(j, counts[i].key);
		json_u64(j, counts[i].v);
	}
	if (im->rq->call->is_proposing) {
		json_key(j, "proposed");
		json_u64(j, im->proposed);
	}
	json_key(j, "items");
	json_arr(j);
	for (size_t i = 0; i < im->cnt; i++) {
		if (im->rows[i].why)
			put_row_json(j, &im->rows[i]);
	}
	json_end_arr(j);
	json_end_obj(j);
}

static void put_text(struct import *im, uint64_t rev)
{
	struct buf *b = im->rq->out->buf;
	for (size_t i = 0; i < im->cnt; i++) {
		const struct import_row *r = &im->rows[i];
		if (!r->why)
			continue;
		buf_add_str(b, r->is_left_out ? "left out  " : "refused   ");
		if (r->line)
			buf_printf(b, "line %u: ", r->line);
		ops_escape(b, r->what, MIN(strlen(r->what), (size_t)200));
		buf_add_str(b, ": ");
		ops_escape(b, r->why, strlen(r->why));
		buf_add_ch(b, '\n');
	}
	buf_printf(b, "revision %" PRIu64 ": %" PRIu64 " applied, %" PRIu64 " unchanged, %" PRIu64 " refused, %" PRIu64 " left out (read as %s)\n",
		   rev, im->counts[SES_EDIT_APPLIED], im->counts[SES_EDIT_UNCHANGED], im->counts[SES_EDIT_REFUSED], im->left_out, im->format);
}

static struct err *refusals(const struct import *im)
{
	if (!im->counts[SES_EDIT_REFUSED])
		return NULL;
	struct err *e = err_new(ERR_DENIED, "import: %" PRIu64 " of %zu entries were refused", im->counts[SES_EDIT_REFUSED], im->cnt);
	if (im->unmapped * 2 > im->cnt - im->left_out)
		e = err_fix(e, "most are not mapped: --base ADDR says where the other program had put the file");
	return e;
}

/* --- the operation --- */

static struct err *take_json(struct import *im, const char *text, size_t len, uint64_t shift)
{
	struct ops_doc doc;
	struct err *e = ops_doc_parse(im->path, text, len, im->rq->arena, &doc);
	if (e)
		return e;
	return ops_doc_find(&doc, "scry_edits") ? take_export(im, &doc) : take_map(im, &doc, shift);
}

static bool is_json(const char *text, size_t len)
{
	size_t i = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
	while (i < len && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	return i < len && text[i] == '{';
}

static struct err *take_file(struct import *im, const char *text, size_t len)
{
	const char *format = ops_arg_str(im->rq->args, "format");
	enum symfile_format f = SYMFILE_ANY;
	struct symfile sf;
	struct ses_info info;
	struct err *e = ses_info(im->rq->sn, im->rq->arena, &info);
	uint64_t theirs = info.base;
	if (!e)
		e = ops_addr(im->rq, "base", info.base, &theirs);
	if (e)
		return e;
	if (format ? !strcmp(format, "json") : is_json(text, len))
		return take_json(im, text, len, info.base - theirs);
	if (format)
		(void)symfile_format_find(format, &f);
	e = err_prefix(symfile_parse(text, len, f, im->rq->arena, &sf), "%s", im->path);
	if (!e && sf.has_base && !ops_arg_is_set(im->rq->args, "base"))
		theirs = sf.base;
	return e ? e : take_symfile(im, &sf, info.base - theirs);
}

struct err *ops_import(struct ops_req *rq)
{
	struct import im = {.rq = rq, .path = ops_arg_str(rq->args, "from")};
	char *text = NULL;
	size_t len = 0;
	uint64_t rev = 0;
	if (rq->sn->is_preview)
		return err_fix(err_new(ERR_BUSY, "import: the file is still being analysed"), "try again");
	struct err *e = ops_doc_load(im.path, rq->call, rq->arena, &text, &len);
	if (!e)
		e = take_file(&im, text, len);
	if (!e)
		e = drop_repeated(&im);
	if (e)
		return e;
	if (strcmp(im.format, "scry"))
		find_same(&im);
	e = run_rows(&im, &rev);
	if (e)
		return e;
	if (rq->out->is_json)
		put_json(&im, rev);
	else
		put_text(&im, rev);
	rq->out->status = refusals(&im);
	return NULL;
}
