/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on projects. They take P.json where the others take a target. */
#include "session/ops_int.h"

#include "session/project.h"

#include <stdio.h>
#include <string.h>

struct words { const char *const *list; size_t cnt; };

static struct words words_of(const struct ops_args *a, const char *name)
{
	const struct ops_param *p = ops_param_find(a->op, name, strlen(name));
	const struct ops_value *v = &a->values[p - a->op->params];
	return (struct words){v->texts, v->text_cnt};
}

static struct err *open_project(struct ops_req *rq, bool wants_index, struct ses_project **ret)
{
	struct ses_project_opts o = {.file = ops_arg_str(rq->args, "project"), .no_store = rq->no_store, .cancel = rq->call->cancel, .event_fd = -1};
	struct ses_project *p = NULL;
	struct err *e = ses_project_open(&o, &p);
	if (!e && wants_index)
		e = ses_project_sync(p);
	if (e) {
		ses_project_close(p);
		return e;
	}
	*ret = p;
	return NULL;
}

static void closep(struct ses_project **p)
{
	ses_project_close(*p);
}
#define _cleanup_project_ _cleanup_(closep)

static struct err *put_list(struct ops_req *rq, struct ses_project *p)
{
	struct ops_out *o = rq->out;
	uint32_t cnt = ses_project_cnt(p), i;
	uint64_t changed = 0;
	struct err *e = NULL;
	ops_out_list(o, NULL);
	for (i = 0; i < cnt && !e; i++) {
		struct ses_binary b;
		e = ses_project_binary(p, i, rq->arena, &b);
		if (e || !ops_out_item(o))
			break;
		ops_out_cstr(o, "label", b.label);
		ops_out_cstr(o, "state", ses_binary_state_name(b.state));
		ops_out_cstr(o, "path", b.path);
		if (*b.found)
			ops_out_cstr(o, "found", b.found);
		else
			ops_out_null(o, "found");
		if (b.has_sha256)
			ops_out_cstr(o, "sha256", b.sha256);
		else
			ops_out_null(o, "sha256");
		ops_out_bool(o, "indexed", b.is_indexed);
		ops_out_cstr(o, "why", b.why);
		ops_out_end_item(o);
		changed += b.state != SES_BINARY_SAME;
	}
	ops_out_end_list(o, cnt);
	if (!e && changed)
		o->status = err_fix(err_new(ERR_NOT_FOUND, "%s: %llu of its binaries are not what they were", ses_project_name(p),
					    (unsigned long long)changed), "scry project add P.json FILE takes one as it is now");
	return e;
}

struct err *ops_project_list(struct ops_req *rq)
{
	_cleanup_project_ struct ses_project *p = NULL;
	struct err *e = open_project(rq, ops_arg_is_set(rq->args, "sync"), &p);
	return e ? e : put_list(rq, p);
}

static struct err *put_changed(struct ops_req *rq)
{
	_cleanup_project_ struct ses_project *p = NULL;
	struct err *e = open_project(rq, false, &p);
	if (!e)
		e = put_list(rq, p);
	err_free(take_ptr(rq->out->status)); /* what was asked for was done */
	return e;
}

struct err *ops_project_create(struct ops_req *rq)
{
	struct words w = words_of(rq->args, "files");
	struct err *e = ses_project_create(ops_arg_str(rq->args, "project"), ops_arg_str(rq->args, "name"), w.list, w.cnt);
	return e ? e : put_changed(rq);
}

struct err *ops_project_add(struct ops_req *rq)
{
	struct words w = words_of(rq->args, "files");
	struct err *e = ses_project_add(ops_arg_str(rq->args, "project"), w.list, w.cnt);
	return e ? e : put_changed(rq);
}

struct err *ops_project_remove(struct ops_req *rq)
{
	struct words w = words_of(rq->args, "binaries");
	struct err *e = ses_project_remove(ops_arg_str(rq->args, "project"), w.list, w.cnt);
	if (e)
		return e;
	e = put_changed(rq);
	/* A project may be emptied. */
	if (e && e->kind == ERR_INVALID) {
		err_free(e);
		ops_out_list(rq->out, NULL);
		ops_out_end_list(rq->out, 0);
		e = NULL;
	}
	return e;
}

/* --- search --- */

static struct err *find_ask(struct ops_req *rq, struct ses_find_ask *ret)
{
	const char *kind = ops_arg_str(rq->args, "kind"), *cursor = ops_arg_str(rq->args, "cursor");
	uint64_t limit = ops_arg_u64(rq->args, "limit", rq->out->is_json ? 1000 : UINT32_MAX);
	char *end = NULL;
	*ret = (struct ses_find_ask){.filter = ops_arg_str(rq->args, "text"), .limit = (uint32_t)MIN(limit, UINT32_MAX)};
	if (!limit)
		return err_new(ERR_INVALID, "limit: at least 1");
	if (cursor)
		ret->after = strtoull(cursor, &end, 16);
	if (cursor && (!*cursor || *end))
		return err_new(ERR_INVALID, "cursor: '%s' is not one of scry's", cursor);
	for (int k = 0; kind && k < SES_FIND_KIND_COUNT; k++) {
		if (!strcmp(kind, ses_find_kind_name((enum ses_find_kind)k)))
			ret->kinds = 1u << k;
	}
	if (kind && !strcmp(kind, "name"))
		ret->kinds = SES_FIND_NAMES;
	return NULL;
}

static const char *label_of(struct ses_project *p, struct arena *a, uint32_t i)
{
	struct ses_binary b;
	struct err *e = ses_project_binary(p, i, a, &b);
	err_free(e);
	return e ? "?" : b.label;
}

struct err *ops_project_search(struct ops_req *rq)
{
	_cleanup_project_ struct ses_project *p = NULL;
	struct ses_find_ask ask;
	struct ses_find *f;
	struct err *e = find_ask(rq, &ask);
	if (!e)
		e = open_project(rq, true, &p);
	if (!e)
		e = ses_project_find(p, rq->call, &ask, rq->arena, &f);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	const char *label = "";
	uint32_t of = UINT32_MAX;
	ops_out_list(o, NULL);
	for (uint32_t i = 0; i < ask.cnt; i++) {
		(void)ops_out_item(o);
		if (f[i].binary != of) {
			of = f[i].binary;
			label = label_of(p, rq->arena, of);
		}
		ops_out_cstr(o, "binary", label);
		ops_out_addr(o, "addr", f[i].addr);
		ops_out_cstr(o, "kind", ses_find_kind_name(f[i].kind));
		ops_out_text(o, "text", f[i].text);
		ops_out_text(o, "demangled", f[i].readable);
		ops_out_text(o, "version", f[i].version);
		ops_out_text(o, "library", f[i].library);
		ops_out_end_item(o);
	}
	if (ask.has_more) {
		o->has_more = true;
		snprintf(o->next, sizeof(o->next), "%llx", (unsigned long long)ask.next);
	}
	ops_out_end_list(o, UINT64_MAX);
	return NULL;
}

/* --- follow --- */

struct err *ops_project_follow(struct ops_req *rq)
{
	_cleanup_project_ struct ses_project *p = NULL;
	const char *from = ops_arg_str(rq->args, "import"), *bang = strrchr(from, '!');
	struct ses_providers f = {0};
	struct ses_far_ask ask = {0};
	struct ses *s;
	if (!bang)
		return err_fix(err_new(ERR_INVALID, "%s: is not BINARY!IMPORT", from), "scry help project_follow");
	char *label = arena_strndup(rq->arena, from, (size_t)(bang - from));
	struct err *e = label ? open_project(rq, true, &p) : &err_nomem;
	if (!e)
		e = ses_project_pick(p, label, &ask.binary);
	if (!e)
		e = ses_project_get(p, ask.binary, &s);
	if (e)
		return e;
	ask.snap = ses_snap_get(s);
	e = ses_resolve(ask.snap, bang + 1, &ask.va);
	if (!e)
		e = ses_project_providers(p, &ask, rq->arena, &f);
	ses_snap_put(ask.snap);
	if (e == &err_not_found)
		return err_new(ERR_NOT_FOUND, "%s: is no import", from);
	if (e)
		return e;
	ops_out_list(rq->out, NULL);
	for (uint32_t i = 0; i < f.cnt; i++) {
		(void)ops_out_item(rq->out);
		ops_out_cstr(rq->out, "binary", label_of(p, rq->arena, f.list[i].binary));
		ops_out_addr(rq->out, "addr", f.list[i].addr);
		ops_out_text(rq->out, "name", f.list[i].name);
		ops_out_text(rq->out, "version", f.list[i].version);
		ops_out_end_item(rq->out);
	}
	ops_out_end_list(rq->out, f.cnt);
	if (!f.cnt)
		rq->out->status = err_new(ERR_NOT_FOUND, "%s: no binary of the project exports it", from);
	return NULL;
}

/* --- references from other binaries --- */

struct err *ops_far_xrefs(struct ops_req *rq, uint64_t va, uint32_t limit, struct ses_far_list *ret)
{
	struct ses_far_ask ask = {.binary = rq->binary, .snap = rq->sn, .va = va, .limit = limit};
	*ret = (struct ses_far_list){0};
	if (!rq->project)
		return NULL;
	struct err *e = ses_project_sync(rq->project);
	return e ? e : ses_project_xrefs(rq->project, rq->call, &ask, rq->arena, ret);
}

const char *ops_far_label(struct ops_req *rq, const struct ses_far_xref *x)
{
	return label_of(rq->project, rq->arena, x->binary);
}
