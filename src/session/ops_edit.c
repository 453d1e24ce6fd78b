/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that edit, and the journal. Each is one call of ses_edit(): one transaction, one revision, one undo step; what
 * became of each wish is one row of the answer.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A wish: an edit, or the reason why it could not even be read. */
struct wish {
	struct ses_edit edit;
	const char *what; /* as the caller wrote the address */
	const char *why;  /* null: it could be read */
};

struct wishes { struct wish *list; size_t cnt; const struct ops_header *header; };

struct err *ops_edit_opts(struct ops_req *rq, struct ses_edit_opts *ret)
{
	const struct ops_args *a = rq->args;
	const struct ses_call *call = rq->call;
	const char *author = ops_arg_str(a, "author"), *kind = ops_arg_str(a, "author_kind"), *own = call->author_kind;
	if (call->author && ((author && strcmp(author, call->author)) || (kind && strcmp(kind, own ? own : "human"))))
		return err_new(ERR_DENIED, "%s: edits are made in the name of who asks, %s", a->op->name, call->author);
	*ret = (struct ses_edit_opts){
		.is_proposal = call->is_proposing,
		.is_atomic = ops_arg_is_set(a, "atomic"),
		.is_dry_run = ops_arg_is_set(a, "dry_run"),
		.has_if_rev = ops_arg_is_set(a, "if_rev"),
		.if_rev = ops_arg_u64(a, "if_rev", 0),
		.author = author ? author : call->author,
		.author_kind = kind ? kind : own,
		.note = ops_arg_str(a, "note"),
	};
	return NULL;
}

/* --- the answer --- */

static const char *const status_names[] = {[SES_EDIT_APPLIED] = "applied", [SES_EDIT_UNCHANGED] = "unchanged", [SES_EDIT_REFUSED] = "refused"};

static const char *status_of(const struct ses_edit *e)
{
	return e->proposal ? "proposed" : status_names[e->status];
}

static void put_json_text(struct json *j, const char *key, const char *s, size_t len)
{
	json_key(j, key);
	if (s)
		json_strn(j, s, len);
	else
		json_null(j);
}

/* Declarations and load options have a name in place of an address. */
static bool is_decl(const struct wish *x)
{
	return x->edit.op && (!strcmp(x->edit.op, "declare") || !strcmp(x->edit.op, "load"));
}

static void made_json(struct json *j, const struct ses_made *m)
{
	if (m->end) {
		json_key(j, "end");
		json_addr(j, m->end);
	}
	if (m->stopped) {
		json_key(j, "count");
		json_u64(j, m->count);
		json_key(j, "stopped");
		json_str(j, m->stopped);
	}
	if (m->how) {
		json_key(j, "how");
		json_str(j, m->how);
	}
}

/* The listing shows a directive when another analysis has seen it. */
static bool is_pending(struct ops_req *rq)
{
	struct ses_snap *sn = ses_snap_get(rq->sn->ses);
	bool is_pending = ses_snap_is_pending(sn);
	ses_snap_put(sn);
	return is_pending;
}

static void made_text(struct buf *b, const struct ses_made *m)
{
	if (m->stopped)
		buf_printf(b, "  %u instruction%s to 0x%llx (%s)", m->count, m->count == 1 ? "" : "s", (unsigned long long)m->end, m->stopped);
	else if (m->end)
		buf_printf(b, "  to 0x%llx", (unsigned long long)m->end);
}

static void header_json(struct json *j, const struct ops_header *h)
{
	if (h->known_cnt) {
		json_key(j, "known");
		json_u64(j, h->known_cnt);
	}
	if (!h->triple)
		return;
	json_key(j, "layouts");
	json_obj(j);
	json_key(j, "target");
	json_str(j, h->triple);
	json_key(j, "compared");
	json_u64(j, h->compared_cnt);
	put_json_text(j, "why", h->why, h->why ? strlen(h->why) : 0);
	json_key(j, "other");
	json_arr(j);
	for (size_t i = 0; i < h->layout_cnt; i++) {
		const struct ops_layout *l = &h->layouts[i];
		json_obj(j);
		json_key(j, "name");
		json_str(j, l->name);
		json_key(j, "size");
		json_u64(j, l->len);
		json_key(j, "own_size");
		json_u64(j, l->own_len);
		json_key(j, "taken");
		json_bool(j, l->is_taken);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_end_obj(j);
}

static void header_text(struct buf *b, const struct ops_header *h)
{
	if (h->known_cnt)
		buf_printf(b, "%zu more are known without it, from the system's headers (scry types FILE --source builtin)\n", h->known_cnt);
	if (!h->triple)
		return;
	if (h->why)
		buf_printf(b, "the layouts are by scry's rules alone: %s\n", h->why);
	else
		buf_printf(b, "layouts of %zu compared with libclang's for %s, %zu of them other\n", h->compared_cnt, h->triple, h->layout_cnt);
	for (size_t i = 0; i < h->layout_cnt; i++) {
		const struct ops_layout *l = &h->layouts[i];
		buf_printf(b, "! %s  size %llu by libclang, ", l->name, (unsigned long long)l->len);
		if (l->len == l->own_len)
			buf_add_str(b, "other inside by scry's rules: ");
		else
			buf_printf(b, "%llu by scry's rules: ", (unsigned long long)l->own_len);
		buf_add_str(b, l->is_taken ? "libclang's is taken\n" : "no C says libclang's, scry's is kept\n");
	}
}

static void wishes_json(struct ops_req *rq, const struct wishes *w, uint64_t rev)
{
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, rev);
	json_key(j, "results");
	json_arr(j);
	for (size_t i = 0; i < w->cnt; i++) {
		const struct wish *x = &w->list[i];
		json_obj(j);
		json_key(j, "status");
		json_str(j, status_of(&x->edit));
		if (x->edit.proposal) {
			json_key(j, "proposal");
			json_u64(j, x->edit.proposal);
		}
		if (is_decl(x)) {
			json_key(j, "name");
			json_str(j, x->edit.sub);
		} else if (!x->why) {
			json_key(j, "addr");
			json_addr(j, x->edit.addr);
		}
		put_json_text(j, "before", x->edit.before, x->edit.before_len);
		put_json_text(j, "after", x->edit.value, x->edit.value_len);
		made_json(j, &x->edit.made);
		put_json_text(j, "why", x->edit.why, x->edit.why ? strlen(x->edit.why) : 0);
		json_end_obj(j);
	}
	json_end_arr(j);
	if (w->header)
		header_json(j, w->header);
	if (is_pending(rq)) {
		json_key(j, "pending");
		json_bool(j, true);
	}
	json_end_obj(j);
}

static void wishes_text(struct ops_req *rq, const struct wishes *w, uint64_t rev)
{
	struct buf *b = rq->out->buf;
	size_t counts[3] = {0};
	for (size_t i = 0; i < w->cnt; i++) {
		const struct wish *x = &w->list[i];
		counts[x->edit.status]++;
		if (x->edit.status == SES_EDIT_REFUSED)
			continue;
		if (is_decl(x)) {
			buf_printf(b, "%s  %s\n", x->edit.sub, status_of(&x->edit));
			continue;
		}
		buf_printf(b, "0x%llx  %s  %s", (unsigned long long)x->edit.addr, x->edit.op, status_of(&x->edit));
		if (x->edit.value) {
			buf_add_str(b, "  ");
			ops_escape(b, x->edit.value, x->edit.value_len);
		}
		made_text(b, &x->edit.made);
		if (x->edit.status == SES_EDIT_UNCHANGED && x->edit.why)
			buf_printf(b, ": %s", x->edit.why);
		buf_add_ch(b, '\n');
	}
	buf_printf(b, "revision %llu: %zu applied, %zu unchanged, %zu refused\n", (unsigned long long)rev, counts[SES_EDIT_APPLIED],
		   counts[SES_EDIT_UNCHANGED], counts[SES_EDIT_REFUSED]);
	if (w->header)
		header_text(b, w->header);
}

/* The answer's status: the first refusal, and how many more. */
static struct err *wishes_status(const struct wishes *w)
{
	size_t refused = 0;
	const struct wish *first = NULL;
	for (size_t i = 0; i < w->cnt; i++) {
		if (w->list[i].edit.status != SES_EDIT_REFUSED)
			continue;
		first = first ? first : &w->list[i];
		refused++;
	}
	if (!first)
		return NULL;
	struct err *e = err_new(ERR_DENIED, "%s %s: refused: %s", first->edit.op ? first->edit.op : "edit", first->what, first->edit.why);
	return refused > 1 ? err_fix(e, "%zu more were refused", refused - 1) : e;
}

/* Runs those that could be read; one that could not refuses all where that was asked for. */
static struct err *wishes_run(struct ops_req *rq, struct wishes *w, const struct ses_edit_opts *opts)
{
	struct ses_edit *edits = ARENA_ARRAY(rq->arena, struct ses_edit, w->cnt + 1);
	size_t n = 0;
	uint64_t rev = ses_snap_rev(rq->sn);
	if (!edits)
		return &err_nomem;
	for (size_t i = 0; i < w->cnt; i++) {
		if (!w->list[i].why)
			edits[n++] = w->list[i].edit;
	}
	bool is_spoilt = opts->is_atomic && n < w->cnt;
	for (size_t i = 0; is_spoilt && i < n; i++) {
		edits[i].status = SES_EDIT_REFUSED;
		edits[i].why = "another change of this call was refused";
	}
	struct err *e = n && !is_spoilt ? ses_edit(rq->sn->ses, edits, n, opts, rq->arena, &rev) : NULL;
	if (e)
		return e;
	n = 0;
	for (size_t i = 0; i < w->cnt; i++) {
		struct wish *x = &w->list[i];
		if (!x->why) {
			x->edit = edits[n++];
			continue;
		}
		x->edit.status = SES_EDIT_REFUSED;
		x->edit.why = x->why;
	}
	if (rq->out->is_json)
		wishes_json(rq, w, rev);
	else
		wishes_text(rq, w, rev);
	rq->out->status = wishes_status(w);
	return NULL;
}

/* Fills in the address; a name that is none is a refusal of this wish alone. */
static struct err *wish_addr(struct ops_req *rq, struct wish *x, const char *text)
{
	x->what = text;
	struct err *e = ses_resolve(rq->sn, text, &x->edit.addr);
	if (!e)
		return NULL;
	x->why = arena_strndup(rq->arena, e->text, strlen(e->text));
	err_free(e);
	return x->why ? NULL : &err_nomem;
}

static void wish_value(struct wish *x, const char *value, size_t len)
{
	x->edit.value = len ? value : NULL;
	x->edit.value_len = len;
}

struct err *ops_run_declares(struct ops_req *rq, const struct ses_edit *edits, size_t cnt, const struct ops_header *h)
{
	struct wishes w = {ARENA_ARRAY(rq->arena, struct wish, cnt + 1), cnt, h};
	struct ses_edit_opts opts;
	struct err *e = w.list ? ops_edit_opts(rq, &opts) : &err_nomem;
	for (size_t i = 0; !e && i < cnt; i++)
		w.list[i] = (struct wish){.edit = edits[i], .what = *edits[i].sub ? edits[i].sub :
					  arena_printf(rq->arena, "0x%llx", (unsigned long long)edits[i].addr)};
	opts.is_atomic = true;
	return e ? e : wishes_run(rq, &w, &opts);
}

struct err *ops_run_edits(struct ops_req *rq, const struct ses_edit *edits, size_t cnt)
{
	return ops_run_declares(rq, edits, cnt, NULL);
}

/* --- one edit --- */

static struct err *run_one(struct ops_req *rq, const char *op, const char *sub, const char *value)
{
	struct wish x = {.edit = {.op = op, .sub = sub}, .what = ops_arg_str(rq->args, "addr")};
	struct ses_edit_opts opts;
	struct err *e = ops_edit_opts(rq, &opts);
	if (!e)
		e = ops_addr(rq, "addr", 0, &x.edit.addr);
	if (e)
		return e;
	wish_value(&x, value, value ? strlen(value) : 0);
	struct wishes w = {&x, 1, NULL};
	return wishes_run(rq, &w, &opts);
}

struct err *ops_comment(struct ops_req *rq)
{
	const char *kind = ops_arg_str(rq->args, "kind");
	return run_one(rq, "comment", kind ? kind : "line", ops_arg_str(rq->args, "text"));
}

struct err *ops_bookmark(struct ops_req *rq)
{
	return run_one(rq, "bookmark", "", ops_arg_str(rq->args, "text"));
}

struct err *ops_retype(struct ops_req *rq)
{
	return run_one(rq, "retype", "", ops_arg_str(rq->args, "type"));
}

struct err *ops_set_prototype(struct ops_req *rq)
{
	return run_one(rq, "set_prototype", "", ops_arg_str(rq->args, "prototype"));
}

/* "default" is no format but the absence of one. */
static const char *format_value(const char *s)
{
	return s && strcmp(s, "default") ? s : NULL;
}

struct err *ops_format(struct ops_req *rq)
{
	const char *operand = arena_printf(rq->arena, "%llu", (unsigned long long)ops_arg_u64(rq->args, "operand", 0));
	return operand ? run_one(rq, "format", operand, format_value(ops_arg_str(rq->args, "format"))) : &err_nomem;
}

/* The digits without what stands between them. */
static char *plain_hex(struct arena *a, const char *s)
{
	char *out = arena_strndup(a, s, strlen(s));
	size_t n = 0;
	for (; out && *s; s++) {
		if (*s != ' ' && *s != ',' && *s != '\t')
			out[n++] = *s >= 'A' && *s <= 'F' ? (char)(*s | 0x20) : *s;
	}
	if (out)
		out[n] = 0;
	return out;
}

struct err *ops_patch(struct ops_req *rq)
{
	char *hex = plain_hex(rq->arena, ops_arg_str(rq->args, "bytes"));
	if (!hex)
		return &err_nomem;
	if (!*hex)
		return err_fix(err_new(ERR_INVALID, "patch: there are no bytes"), "scry unpatch takes a patch away");
	return run_one(rq, "patch", "", hex);
}

struct err *ops_unpatch(struct ops_req *rq)
{
	return run_one(rq, "patch", "", NULL);
}

/* --- many --- */

/* Null takes the thing away. */
static bool is_value(const struct ops_doc *v)
{
	return v->kind == OPS_DOC_STRING || v->kind == OPS_DOC_NULL;
}

static struct err *rename_map(struct ops_req *rq, const struct ops_doc *map)
{
	struct wishes w = {ARENA_ARRAY(rq->arena, struct wish, map->cnt + 1), 0, 0};
	struct ses_edit_opts opts;
	struct err *e = w.list ? ops_edit_opts(rq, &opts) : &err_nomem;
	for (size_t i = 0; !e && i < map->cnt; i++) {
		const struct ops_doc *m = &map->items[i];
		struct wish *x = &w.list[w.cnt++];
		x->edit = (struct ses_edit){.op = "rename", .sub = ""};
		x->what = m->key;
		wish_value(x, m->s, m->len);
		if (!is_value(m))
			x->why = "the name is not a string";
		else
			e = wish_addr(rq, x, m->key);
	}
	return e ? e : wishes_run(rq, &w, &opts);
}

struct err *ops_rename(struct ops_req *rq)
{
	const char *from = ops_arg_str(rq->args, "from"), *name = ops_arg_str(rq->args, "name");
	if (from && (name || ops_arg_is_set(rq->args, "addr")))
		return err_new(ERR_INVALID, "rename: --from stands in place of ADDR and NAME");
	if (!from && !name)
		return err_fix(err_new(ERR_INVALID, "rename: ADDR and NAME are needed, or --from MAP.json"), "scry help rename");
	if (!from)
		return run_one(rq, "rename", "", name);
	struct ops_doc map;
	struct err *e = ops_arg_doc(rq, "from", &map);
	if (!e && map.kind != OPS_DOC_OBJECT)
		e = err_new(ERR_INVALID, "%s: is not a map of names", from);
	return e ? e : rename_map(rq, &map);
}

static struct err *read_wish(struct ops_req *rq, const struct ops_doc *o, struct wish *x)
{
	static const struct { const char *op, *edit, *field; bool takes_away; } ops[] = {
		{"rename", "rename", "name", false},	 {"comment", "comment", "text", false}, {"bookmark", "bookmark", "text", false},
		{"patch", "patch", "bytes", false},	 {"unpatch", "patch", "bytes", true},
		{"retype", "retype", "type", false},	 {"set_prototype", "set_prototype", "prototype", false},
		{"format", "format", "format", false},
	};
	const char *op = ops_doc_str(o, "op"), *addr = ops_doc_str(o, "addr"), *kind = ops_doc_str(o, "kind");
	*x = (struct wish){.what = addr ? addr : "?", .edit = {.sub = ""}};
	size_t i = 0;
	bool is_directive = false;
	struct err *e = ops_define_doc(rq, o, op, &x->edit, &is_directive, &x->why);
	if (e || x->why)
		return e;
	if (is_directive && is_decl(x)) {
		x->what = x->edit.sub;
		return NULL;
	}
	if (is_directive) {
		x->why = addr ? NULL : "it says no addr";
		return addr ? wish_addr(rq, x, addr) : NULL;
	}
	while (op && i < ARRAY_LEN(ops) && strcmp(op, ops[i].op))
		i++;
	if (!op || i == ARRAY_LEN(ops)) {
		x->why = op ? "this scry has no such edit" : "it says no op";
		return NULL;
	}
	x->edit.op = ops[i].edit;
	const struct ops_doc *value = ops_doc_find(o, ops[i].field);
	if (!value)
		value = ops_doc_find(o, "value");
	if (!addr)
		x->why = "it says no addr";
	else if (!ops[i].takes_away && !value)
		x->why = "it says no value; null takes the thing away";
	else if (!ops[i].takes_away && !is_value(value))
		x->why = "its value is not a string";
	if (x->why)
		return NULL;
	if (!strcmp(x->edit.op, "comment"))
		x->edit.sub = kind ? kind : "line";
	if (!strcmp(x->edit.op, "format")) {
		const struct ops_doc *n = ops_doc_find(o, "operand");
		x->edit.sub = arena_printf(rq->arena, "%lld", n && n->kind == OPS_DOC_INT ? (long long)n->num : n ? -1LL : 0LL);
		wish_value(x, format_value(value->s), value->s && format_value(value->s) ? value->len : 0);
	} else if (!ops[i].takes_away)
		wish_value(x, value->s, value->len);
	if (!strcmp(op, "patch") && x->edit.value) {
		x->edit.value = plain_hex(rq->arena, x->edit.value);
		if (!x->edit.value)
			return &err_nomem;
		x->edit.value_len = strlen(x->edit.value);
	}
	return wish_addr(rq, x, addr);
}

static bool doc_is_true(const struct ops_doc *doc, const char *key)
{
	const struct ops_doc *v = ops_doc_find(doc, key);
	return v && v->kind == OPS_DOC_BOOL && v->num;
}

/* What the document says besides its edits; the command line's words come first. */
static struct err *read_edit_opts(const struct ops_doc *doc, struct ses_edit_opts *o)
{
	const struct ops_doc *rev = ops_doc_find(doc, "if_rev");
	bool has_rev = rev && rev->kind != OPS_DOC_NULL;
	if (has_rev && (rev->kind != OPS_DOC_INT || rev->num < 0))
		return err_new(ERR_INVALID, "edit: if_rev is not a revision");
	o->is_atomic = o->is_atomic || doc_is_true(doc, "atomic");
	o->is_dry_run = o->is_dry_run || doc_is_true(doc, "dry_run");
	if (!o->has_if_rev && has_rev) {
		o->has_if_rev = true;
		o->if_rev = (uint64_t)rev->num;
	}
	if (!o->note)
		o->note = ops_doc_str(doc, "note");
	return NULL;
}

struct err *ops_edit(struct ops_req *rq)
{
	struct ops_doc doc;
	struct ses_edit_opts opts;
	const char *path = ops_arg_str(rq->args, "ops");
	struct err *e = ops_arg_doc(rq, "ops", &doc);
	if (!e)
		e = ops_edit_opts(rq, &opts);
	if (!e)
		e = read_edit_opts(&doc, &opts);
	if (e)
		return e;
	/* Given as a parameter the list is the document; what else a file says are parameters then. */
	const struct ops_doc *list = doc.kind == OPS_DOC_LIST ? &doc : ops_doc_find(&doc, "ops");
	if (!list || list->kind != OPS_DOC_LIST)
		return err_fix(err_new(ERR_INVALID, "%s: has no list \"ops\"", path), "scry help edit");
	struct wishes w = {ARENA_ARRAY(rq->arena, struct wish, list->cnt + 1), list->cnt, 0};
	if (!w.list)
		return &err_nomem;
	for (size_t i = 0; i < w.cnt && !e; i++)
		e = read_wish(rq, &list->items[i], &w.list[i]);
	return e ? e : wishes_run(rq, &w, &opts);
}

/* --- undo and redo --- */

static void undone_json(struct ops_req *rq, const struct ses_undone_list *l, const char *key)
{
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, l->rev);
	json_key(j, key);
	json_arr(j);
	for (uint32_t i = 0; i < l->cnt; i++) {
		json_obj(j);
		json_key(j, "rev");
		json_u64(j, l->list[i].rev);
		json_key(j, "target");
		json_u64(j, l->list[i].target);
		json_key(j, "changes");
		json_u64(j, l->list[i].changes);
		json_key(j, "author");
		json_str(j, l->list[i].author);
		json_key(j, "note");
		json_str(j, l->list[i].note);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_end_obj(j);
}

static struct err *run_undo(struct ops_req *rq, bool is_redo)
{
	struct ses_undo_ask ask = {.is_redo = is_redo, .of_author = ops_arg_str(rq->args, "author"),
				   .rev = ops_arg_u64(rq->args, "rev", 0),
				   .steps = (uint32_t)MIN(ops_arg_u64(rq->args, "steps", 1), UINT32_MAX)};
	if (ask.rev && (is_redo || ask.of_author || ops_arg_is_set(rq->args, "steps")))
		return err_new(ERR_INVALID, "rev: undo takes back that one edit, whoever made it");
	struct ses_edit_opts opts = {.note = ops_arg_str(rq->args, "note"), .author = rq->call->author,
				     .author_kind = rq->call->author_kind};
	struct ses_undone_list l;
	struct err *e = ses_undo(rq->sn->ses, &ask, &opts, rq->arena, &l);
	if (e && !l.cnt)
		return e;
	if (rq->out->is_json)
		undone_json(rq, &l, is_redo ? "redone" : "undone");
	for (uint32_t i = 0; !rq->out->is_json && i < l.cnt; i++)
		buf_printf(rq->out->buf, "revision %llu: took back %llu (%llu changes by %s)\n", (unsigned long long)l.list[i].rev,
			   (unsigned long long)l.list[i].target, (unsigned long long)l.list[i].changes, l.list[i].author);
	if (!e && !l.cnt && ask.steps)
		e = err_new(ERR_NOT_FOUND, "there is nothing to %s", is_redo ? "redo" : "undo");
	rq->out->status = e;
	return NULL;
}

struct err *ops_undo(struct ops_req *rq)
{
	return run_undo(rq, false);
}

struct err *ops_redo(struct ops_req *rq)
{
	return run_undo(rq, true);
}

/* --- journal --- */

void ops_time_text(uint64_t ns, char text[40])
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	if (!gmtime_r(&s, &tm))
		memset(&tm, 0, sizeof(tm));
	size_t n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, 40 - n, ".%03uZ", (unsigned)(ns / 1000000 % 1000));
}

static void journal_time(struct ops_out *o, uint64_t ns)
{
	char text[40];
	ops_time_text(ns, text);
	ops_out_cstr(o, "time", text);
}

static void journal_num(struct ops_out *o, const char *key, uint64_t v)
{
	if (v)
		ops_out_u64(o, key, v);
	else
		ops_out_null(o, key);
}

static void journal_text(struct ops_out *o, const char *key, struct ses_text t, bool is_there)
{
	if (is_there)
		ops_out_text(o, key, t);
	else
		ops_out_null(o, key);
}

/* What an entry of the journal and one of the changes both begin with. */
static void journal_who(struct ops_out *o, const struct ses_entry *j)
{
	ops_out_u64(o, "rev", j->rev);
	journal_time(o, j->time_ns);
	ops_out_cstr(o, "author", j->author);
	ops_out_cstr(o, "author_kind", j->author_kind);
	ops_out_cstr(o, "op", j->op);
	if (j->has_addr)
		ops_out_addr(o, "addr", j->addr);
	else
		ops_out_null(o, "addr");
}

static void journal_item(struct ops_out *o, const struct ses_entry *j)
{
	journal_who(o, j);
	journal_text(o, "before", j->before, j->has_before);
	journal_text(o, "after", j->after, j->has_after);
	journal_num(o, "undone_by", j->undone_by);
	ops_out_cstr(o, "sub", j->sub);
	ops_out_cstr(o, "step", j->step);
	journal_num(o, "undoes", j->undoes);
	ops_out_cstr(o, "note", j->note);
	ops_out_end_item(o);
}

struct err *ops_journal(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_entry *j;
	struct ses_journal_ask ask = {.since = ops_arg_u64(rq->args, "since", 0)};
	uint32_t cnt, i;
	uint64_t total, skipped = 0;
	struct err *e = ops_page(rq, &page);
	/* Entries are numbered over all revisions: where those after `since` begin is known with the first. */
	ask.limit = 1;
	if (!e)
		e = ses_journal(rq->sn->ses, &ask, rq->arena, &j, &cnt, &total);
	if (e)
		return e;
	skipped = cnt ? j[0].seq : 1;
	ask.first_seq = skipped + MIN(page.offset, (uint64_t)INT64_MAX);
	ask.limit = page.limit;
	e = ses_journal(rq->sn->ses, &ask, rq->arena, &j, &cnt, &total);
	if (e)
		return e;
	ops_out_list(rq->out, rq->sn);
	for (i = 0; i < cnt && ops_out_item(rq->out); i++)
		journal_item(rq->out, &j[i]);
	ops_end_page(rq, &page, i, total);
	return NULL;
}

static void change_item(struct ops_out *o, const struct ses_entry *j)
{
	journal_who(o, j);
	ops_out_cstr(o, "sub", j->sub);
	journal_text(o, "before", j->before, j->has_before);
	journal_text(o, "after", j->after, j->has_after);
	ops_out_u64(o, "edits", j->cnt);
	ops_out_end_item(o);
}

struct err *ops_changes(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_entry *j = NULL;
	uint32_t cnt = 0, i;
	uint64_t total = 0;
	struct err *e = ops_page(rq, &page);
	/* What somebody commits meanwhile belongs to a later revision than this answer says. */
	struct ses_changes_ask ask = {.since = ops_arg_u64(rq->args, "since", 0), .until = ses_snap_rev(rq->sn),
				       .offset = page.offset, .limit = page.limit};
	if (!e)
		e = ses_changes(rq->sn->ses, &ask, rq->arena, &j, &cnt, &total);
	if (e)
		return e;
	ops_out_list(rq->out, rq->sn);
	for (i = 0; i < cnt && ops_out_item(rq->out); i++)
		change_item(rq->out, &j[i]);
	ops_end_page(rq, &page, i, total);
	return NULL;
}

struct err *ops_salvage(struct ops_req *rq)
{
	struct ses_salvaged s = {0};
	struct err *e = ses_salvage(rq->sn->ses, rq->arena, &s);
	if (e)
		return e;
	(void)ops_out_item(rq->out);
	ops_out_u64(rq->out, "entries", s.entries);
	ops_out_u64(rq->out, "lost", s.lost);
	ops_out_cstr(rq->out, "aside", s.aside);
	ops_out_end_item(rq->out);
	return NULL;
}
