/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The eight tools. Each is an operation of the table, or several that one word chooses from; schemas are made of the table's parameters. Answers
 * are what --json prints, as structured content and as text, and never longer than the budget: a list ends at an item and its cursor goes on
 * there; what an edit or a snippet came to is kept and told in pages (mcp_rest.c); what cannot be cut is refused, with how much it would be.
 */
#include "mcp/mcp_int.h"

#include <stdio.h>
#include <string.h>

/* --- schemas --- */

static void put_member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_str(j, value);
}

static void put_plain(struct json *j, const char *name, const char *type, const char *help)
{
	json_key(j, name);
	json_obj(j);
	put_member(j, "type", type);
	put_member(j, "description", help);
	json_end_obj(j);
}

static void put_choices(struct json *j, const char *choices)
{
	json_key(j, "enum");
	json_arr(j);
	for (const char *c = choices; *c;) {
		size_t n = strcspn(c, "|");
		json_strn(j, c, n);
		c += n + (c[n] == '|');
	}
	json_end_arr(j);
}

static const char *type_of(const struct ops_param *p)
{
	return p->type == OPS_FLAG ? "boolean" : p->type == OPS_INT ? "integer" : p->type == OPS_JSON ? "array" : "string";
}

static void put_param(struct json *j, const struct ops_param *p)
{
	json_key(j, p->name);
	json_obj(j);
	if (p->is_repeated) {
		put_member(j, "type", "array");
		json_key(j, "items");
		json_raw(j, "{\"type\":\"string\"}", 17);
	} else {
		put_member(j, "type", type_of(p));
	}
	if (p->type == OPS_INT) {
		json_key(j, "minimum");
		json_u64(j, 0);
	}
	if (p->type == OPS_JSON) {
		json_key(j, "items");
		json_raw(j, "{\"type\":\"object\"}", 17);
	}
	if (p->type == OPS_CHOICE)
		put_choices(j, p->choices);
	put_member(j, "description", p->help);
	json_end_obj(j);
}

/* What front ends say in other words, or an agent has no use for. */
static bool is_hidden(const char *name)
{
	static const char *const names[] = {"etag", "author", "author_kind", "max_bytes", "offset", "sort",
					    "cmd", "output", "to", "table", "capture"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static void put_op_params(struct json *j, const char *name)
{
	const struct ops_op *op = ops_find(name);
	for (const struct ops_param *p = op->params; p->name; p++) {
		if (!is_hidden(p->name))
			put_param(j, p);
	}
}

/* --- the tools --- */

#define CAPS_RUN (SES_CAP_RUN_CODE | SES_CAP_RUN_TARGET | SES_CAP_WRITE_FILES)

struct tool;
typedef struct err *tool_run(struct mcp_job *job, const struct ops_doc *args, struct buf *out);

struct tool {
	const char *name, *help;
	uint32_t caps;         /* one of them must be granted */
	uint32_t op_caps;      /* `op` is one of the operations that need one of these; 0: it has none */
	const char *params_of; /* whose parameters it has, or null */
	bool has_db, reads;
	tool_run *run;
};

static tool_run run_open, run_look, run_find, run_list, run_edit, run_run, run_trace, run_reference;

static const struct tool tools[] = {
	{"open", "Open a program, or say which are open. Waits for the analysis unless wait is false.", SES_CAP_READ, 0, NULL, false, true,
	 run_open},
	{"look", "All about one function or address: C, callers, callees, strings, types, comments.", SES_CAP_READ, 0, "look", true, true, run_look},
	{"find", "Find names, strings, bytes, text, numbers or instructions: give one of them.", SES_CAP_READ, 0, "search", true, true, run_find},
	{"list", "Run an operation that reads, with its params (reference says which).", SES_CAP_READ, SES_CAP_READ, NULL, true, true, run_list},
	{"edit", "Change names, comments, types, code and data: ops as one transaction, or one op with params. Undo is an op.", SES_CAP_EDIT,
	 SES_CAP_EDIT, "edit", true, false, run_edit},
	{"run", "Run Python (code), or an operation that runs the target or writes files, with its params.", CAPS_RUN, CAPS_RUN, NULL, true, false,
	 run_run},
	{"trace", "Watch processes that run: system calls (op trace), calls of functions (probe). What goes on has next; cursor reads on.",
	 SES_CAP_TRACE, SES_CAP_TRACE, "trace", true, false, run_trace},
	{"reference", "Which operation does it, and what it takes.", SES_CAP_READ, 0, "reference", false, true, run_reference},
};

static bool has_op(const struct tool *t, const struct ops_op *op)
{
	return (op->cap & t->op_caps) && ops_is_served(op) && op->shape != OPS_TEXT;
}

static void put_ops(struct json *j, const struct tool *t)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	bool has_any = false;
	for (size_t i = 0; i < cnt; i++)
		has_any |= has_op(t, &ops[i]);
	if (!has_any)
		return;
	json_key(j, "op");
	json_obj(j);
	put_member(j, "type", "string");
	json_key(j, "enum");
	json_arr(j);
	for (size_t i = 0; i < cnt; i++) {
		if (has_op(t, &ops[i]))
			json_str(j, ops[i].name);
	}
	json_end_arr(j);
	json_end_obj(j);
	put_plain(j, "params", "object", "the operation's parameters by name");
}

static void put_own_params(struct json *j, const struct tool *t)
{
	if (t->run == run_open) {
		put_plain(j, "path", "string", "of the file");
		put_plain(j, "wait", "boolean", "false: answer at once, from what is known so far");
	} else if (t->run == run_find) {
		put_plain(j, "name", "string", "part of a function's name, or * and ?");
		put_plain(j, "symbol", "string", "part of any symbol's name, or * and ?");
		put_plain(j, "string", "string", "part of a string found in the program, or * and ?");
	} else if (t->run == run_list) {
		put_plain(j, "limit", "integer", "at most so many items");
		put_plain(j, "cursor", "string", "next of the answer before");
		put_plain(j, "filter", "string", "only what matches: * and ?, else a part of the text");
	} else if (t->run == run_trace) {
		put_plain(j, "cursor", "string", "next of the answer before: more of it");
		put_plain(j, "stop", "boolean", "with cursor: end it, and give the rest");
	} else if (t->run == run_run) {
		put_plain(j, "code", "string", "Python: db is the program, what it leaves in result is the answer");
	}
	if (t->run == run_open || t->run == run_edit || t->run == run_run)
		put_plain(j, "cursor", "string", "next of an answer that was cut: the rest of it; alone");
}

static const char *required_of(const struct tool *t)
{
	return t->run == run_look ? "addr" : t->run == run_list ? "op" : NULL;
}

static void put_schema(struct json *j, const struct tool *t)
{
	json_obj(j);
	put_member(j, "type", "object");
	json_key(j, "properties");
	json_obj(j);
	if (t->has_db)
		put_plain(j, "db", "string", "which open program; needed when there are several");
	put_own_params(j, t);
	put_ops(j, t);
	if (t->params_of)
		put_op_params(j, t->params_of);
	put_plain(j, "max_bytes", "integer", "of the answer (24576)");
	json_end_obj(j);
	if (required_of(t)) {
		json_key(j, "required");
		json_arr(j);
		json_str(j, required_of(t));
		json_end_arr(j);
	}
	json_key(j, "additionalProperties");
	json_bool(j, false);
	json_end_obj(j);
}

static void put_hints(struct json *j, const struct tool *t)
{
	json_key(j, "annotations");
	json_obj(j);
	json_key(j, "readOnlyHint");
	json_bool(j, t->reads);
	if (!t->reads) {
		json_key(j, "destructiveHint");
		json_bool(j, t->run == run_run);
	}
	json_key(j, "openWorldHint");
	json_bool(j, false);
	json_end_obj(j);
}

void mcp_put_tools(const struct mcp *m, struct json *j)
{
	json_obj(j);
	json_key(j, "tools");
	json_arr(j);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		const struct tool *t = &tools[i];
		bool is_granted = m->caps & t->caps, may_edit = t->run == run_edit || t->run == run_run;
		struct buf help = {0};
		buf_printf(&help, "%s%s%s", t->help, is_granted ? "" : " Not granted here.",
			   is_granted && m->is_proposing && may_edit ? " Edits are proposed to the user, not applied." : "");
		json_obj(j);
		put_member(j, "name", t->name);
		json_key(j, "description");
		json_strn(j, help.data ? help.data : "", help.len);
		json_key(j, "inputSchema");
		put_schema(j, t);
		if (m->version >= MCP_2025_03_26)
			put_hints(j, t);
		json_end_obj(j);
		buf_fini(&help);
	}
	json_end_arr(j);
	json_end_obj(j);
}

/* --- running operations --- */

/* An object with room for `more` further members. */
static struct ops_doc *copy_object(const struct ops_doc *d, size_t more, struct arena *a)
{
	struct ops_doc *copy = ARENA_NEW(a, struct ops_doc);
	size_t cnt = d ? d->cnt : 0;
	if (!copy)
		return NULL;
	*copy = (struct ops_doc){.kind = OPS_DOC_OBJECT, .items = ARENA_ARRAY(a, struct ops_doc, cnt + more)};
	if (!copy->items)
		return NULL;
	if (cnt)
		memcpy(copy->items, d->items, cnt * sizeof(*copy->items));
	copy->cnt = cnt;
	return copy;
}

/* Adds `d` (null: nothing) under a name, unless there is one. */
static void set(struct ops_doc *object, const char *key, const struct ops_doc *d)
{
	if (!d || d->kind == OPS_DOC_NULL || ops_doc_find(object, key))
		return;
	object->items[object->cnt] = *d;
	object->items[object->cnt++].key = key;
}

static void drop(struct ops_doc *object, const char *key)
{
	for (size_t i = 0; i < object->cnt; i++) {
		if (!strcmp(object->items[i].key, key))
			object->items[i--] = object->items[--object->cnt];
	}
}

static struct err *too_long(const char *op, size_t len, uint64_t max)
{
	return err_fix(err_new(ERR_BUDGET, "%s: the answer is %zu bytes, the budget %llu", op, len, (unsigned long long)max),
		       "ask for less, or say max_bytes");
}

/* An answer ends with the item that reaches the limit, so the limit is lowered until that one is within the budget. */
static struct err *run_cut(struct mcp_job *job, const struct mcp_ask *ask, struct rpc_ask *r, struct buf *out)
{
	uint64_t aim = ask->max_bytes - MIN(ask->max_bytes / 16, 1024);
	const struct ops_op *op = ops_find(ask->op);
	size_t len = 0;
	while (aim > 64) {
		out->len = 0;
		r->call.max_bytes = aim;
		struct err *e = rpc_op_call(r, ask->op, ask->params, out);
		err_free(r->status);
		r->status = NULL;
		if (e || out->len <= ask->max_bytes)
			return e;
		/* What changes something is done once. */
		if (op->cap != SES_CAP_READ) {
			(void)mcp_rest_cut(job->m, ask->max_bytes, true, out);
			return NULL;
		}
		/* The same again: it has one item, or cannot be cut. */
		if (op->shape != OPS_LIST || (out->len == len && aim < ask->max_bytes / 8))
			break;
		len = out->len;
		aim -= MIN(aim, MAX(len - ask->max_bytes, aim / 8));
	}
	if (mcp_rest_cut(job->m, ask->max_bytes, false, out))
		return NULL;
	len = out->len;
	out->len = 0;
	return too_long(ask->op, len, ask->max_bytes);
}

struct err *mcp_run_op(struct mcp_job *job, const struct mcp_ask *ask, struct buf *out)
{
	struct mcp *m = job->m;
	const struct ops_op *op = ops_find(ask->op);
	struct ses_snap *sn = NULL;
	if (!op || !ops_is_served(op))
		return err_fix(err_new(ERR_NOT_FOUND, "%s: there is no such operation", ask->op), "reference lists them");
	struct err *e = op->needs_target ? mcp_db_snap(job, ask->db, ask->wants_wait, &sn) : NULL;
	if (e)
		return e;
	struct rpc_ask r = {.snap = sn, .no_store = m->no_store, .arena = &job->arena};
	if (ask->db && ask->db->is_of_project) {
		r.project = m->project;
		r.binary = ask->db->binary;
	}
	r.call = (struct ses_call){.cancel = &job->cancel, .caps = m->caps, .author = m->client, .author_kind = "agent", .meter = &job->meter,
				 .is_proposing = m->is_proposing, .client = 1};
	e = run_cut(job, ask, &r, out);
	if (sn)
		ses_snap_put(sn);
	return e;
}

/* What every tool has: the database and the budget; both leave the arguments. */
static struct err *take_common(struct mcp_job *job, struct ops_doc *args, bool has_db, struct mcp_ask *ret)
{
	const struct ops_doc *db = ops_doc_find(args, "db"), *max = ops_doc_find(args, "max_bytes");
	*ret = (struct mcp_ask){.max_bytes = job->m->max_bytes, .wants_wait = true};
	if (max && (max->kind != OPS_DOC_INT || max->num < 256 || (uint64_t)max->num > MCP_BYTES_MAX))
		return err_new(ERR_INVALID, "max_bytes: is a number from 256 to %llu", (unsigned long long)MCP_BYTES_MAX);
	if (db && db->kind != OPS_DOC_STRING)
		return err_new(ERR_INVALID, "db: is a string");
	if (max)
		ret->max_bytes = (uint64_t)max->num;
	struct err *e = has_db ? mcp_db_find(job->m, db ? db->s : NULL, &ret->db) : NULL;
	drop(args, "max_bytes");
	if (has_db)
		drop(args, "db");
	return e;
}

/* A place may say whose it is: NAME!ADDR, as in projects. `params` has room for one more. */
static struct err *take_binary(struct mcp_job *job, const struct ops_op *op, struct ops_doc *params)
{
	const struct ops_param *p = ops_param_at(op, 0);
	const struct ops_doc *v = p ? ops_doc_find(params, p->name) : NULL;
	const char *bang = v && v->kind == OPS_DOC_STRING ? strrchr(v->s, '!') : NULL;
	struct mcp_db *db;
	if (!bang || ops_doc_find(params, "db"))
		return NULL;
	char *name = arena_strndup(&job->arena, v->s, (size_t)(bang - v->s));
	struct err *e = name ? mcp_db_find(job->m, name, &db) : &err_nomem;
	if (e && e->kind == ERR_NOT_FOUND) {
		/* It may be a name that has one in it. */
		err_free(e);
		return NULL;
	}
	if (e)
		return e;
	struct ops_doc addr = *v, named = {.kind = OPS_DOC_STRING, .s = name, .len = strlen(name)};
	addr.len -= (size_t)(bang + 1 - v->s);
	addr.s = bang + 1;
	drop(params, p->name);
	set(params, p->name, &addr);
	set(params, "db", &named);
	return NULL;
}

/* An operation on the tool's own arguments. */
static struct err *run_as(struct mcp_job *job, const struct ops_doc *args, bool has_db, const char *op, struct buf *out)
{
	struct mcp_ask ask;
	struct ops_doc *params = copy_object(args, 1, &job->arena);
	struct err *e = params && has_db ? take_binary(job, ops_find(op), params) : NULL;
	if (!e)
		e = params ? take_common(job, params, has_db, &ask) : &err_nomem;
	if (e)
		return e;
	ask.op = op;
	ask.params = params;
	return mcp_run_op(job, &ask, out);
}

static struct err *run_look(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	return run_as(job, args, true, "look", out);
}

static struct err *run_reference(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	return run_as(job, args, false, "reference", out);
}

/* Names and strings are lists with a filter, the rest is a search. */
static struct err *run_find(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	static const struct { const char *arg, *op; } lists[] = {{"name", "functions"}, {"symbol", "symbols"}, {"string", "strings"}};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct ops_doc *what = ops_doc_find(args, lists[i].arg);
		if (!what)
			continue;
		struct ops_doc *params = copy_object(args, 1, &job->arena);
		if (!params)
			return &err_nomem;
		drop(params, lists[i].arg);
		set(params, "filter", what);
		return run_as(job, params, true, lists[i].op, out);
	}
	return run_as(job, args, true, "search", out);
}

/* `op` with `params`; limit, cursor and filter may stand beside them. */
static struct err *run_op_of(struct mcp_job *job, const struct ops_doc *args, uint32_t caps, struct buf *out)
{
	const struct ops_doc *name = ops_doc_find(args, "op"), *params = ops_doc_find(args, "params");
	static const char *const beside[] = {"limit", "cursor", "filter", "db", "max_bytes"};
	const struct ops_op *op = name && name->kind == OPS_DOC_STRING ? ops_find(name->s) : NULL;
	if (!op || !(op->cap & caps) || !ops_is_served(op))
		return err_fix(err_new(ERR_INVALID, "op: '%s' is none of this tool's", name && name->kind == OPS_DOC_STRING ? name->s : ""),
			       "reference says which there are");
	if (params && params->kind != OPS_DOC_OBJECT && params->kind != OPS_DOC_NULL)
		return err_new(ERR_INVALID, "params: is no object");
	struct ops_doc *all = copy_object(params && params->kind == OPS_DOC_OBJECT ? params : NULL, args->cnt, &job->arena);
	if (!all)
		return &err_nomem;
	for (size_t i = 0; i < args->cnt; i++) {
		const struct ops_doc *v = &args->items[i];
		size_t k = 0;
		while (k < ARRAY_LEN(beside) && strcmp(v->key, beside[k]))
			k++;
		if (k < ARRAY_LEN(beside))
			set(all, beside[k], v);
		else if (v != name && v != params)
			return err_new(ERR_INVALID, "%s: is no argument beside op", v->key);
	}
	return run_as(job, all, op->needs_target, op->name, out);
}

static struct err *run_list(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	return run_op_of(job, args, SES_CAP_READ, out);
}

static struct err *run_edit(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	return ops_doc_find(args, "op") ? run_op_of(job, args, SES_CAP_EDIT, out) : run_as(job, args, true, "edit", out);
}

static struct err *run_run(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	if (!ops_doc_find(args, "code"))
		return run_op_of(job, args, CAPS_RUN, out);
	if (!ops_find("exec"))
		return err_fix(err_new(ERR_UNSUPPORTED, "run: this version runs no Python"), "op exec will bring it; call and verify are there");
	return run_as(job, args, true, "exec", out);
}

static struct err *run_trace(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	if (ops_doc_find(args, "op"))
		return run_op_of(job, args, SES_CAP_TRACE, out);
	return run_as(job, args, false, ops_doc_find(args, "cursor") ? "events" : "trace", out);
}

/* --- open --- */

static void put_dbs(struct mcp *m, struct json *j)
{
	json_key(j, "databases");
	json_arr(j);
	pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < m->db_cnt; i++) {
		struct ses_snap *sn = ses_snap_get(m->dbs[i]->s);
		json_obj(j);
		put_member(j, "db", m->dbs[i]->name);
		put_member(j, "path", m->dbs[i]->path);
		put_member(j, "state", mcp_db_state(m->dbs[i]));
		json_key(j, "rev");
		json_u64(j, ses_snap_rev(sn));
		json_end_obj(j);
		ses_snap_put(sn);
	}
	pthread_mutex_unlock(&m->lock);
	json_end_arr(j);
}

static struct err *open_one(struct mcp_job *job, const char *path, struct mcp_ask *ask, struct json *j)
{
	struct buf info = {0};
	bool is_new;
	struct err *e = mcp_db_open(job->m, path, &is_new, &ask->db);
	job->has_new_db = !e && is_new;
	ask->op = "info";
	if (!e)
		e = mcp_run_op(job, ask, &info);
	if (!e) {
		put_member(j, "db", ask->db->name);
		put_member(j, "state", mcp_db_state(ask->db));
		json_key(j, "info");
		json_raw(j, info.data, info.len);
	}
	buf_fini(&info);
	return e;
}

static struct err *run_open(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	struct mcp_ask ask;
	struct ops_doc *own = copy_object(args, 0, &job->arena);
	struct err *e = own ? take_common(job, own, false, &ask) : &err_nomem;
	if (e)
		return e;
	const struct ops_doc *path = ops_doc_find(own, "path"), *wait = ops_doc_find(own, "wait");
	for (size_t i = 0; i < own->cnt; i++) {
		if (&own->items[i] != path && &own->items[i] != wait)
			return err_new(ERR_INVALID, "%s: open takes no such parameter", own->items[i].key);
	}
	if ((path && path->kind != OPS_DOC_STRING) || (wait && wait->kind != OPS_DOC_BOOL))
		return err_new(ERR_INVALID, "open: path is a string, wait true or false");
	ask.wants_wait = !wait || wait->num;
	struct json j = json_make(out);
	json_obj(&j);
	e = path ? open_one(job, path->s, &ask, &j) : NULL;
	put_dbs(job->m, &j);
	json_end_obj(&j);
	if (!e && out->len > ask.max_bytes)
		(void)mcp_rest_cut(job->m, ask.max_bytes, true, out);
	return e;
}

/* What is left of an answer that had to be cut; whichever tool gave it. */
static struct err *run_rest(struct mcp_job *job, const struct ops_doc *args, struct buf *out)
{
	struct mcp_ask ask;
	struct ops_doc *own = copy_object(args, 0, &job->arena);
	struct err *e = own ? take_common(job, own, false, &ask) : &err_nomem;
	return e ? e : mcp_rest_next(job->m, ops_doc_find(args, "cursor")->s, ask.max_bytes, out);
}

/* --- the call --- */

static void put_error(struct buf *out, const struct err *e)
{
	struct json j = json_make(out);
	json_obj(&j);
	json_key(&j, "error");
	json_obj(&j);
	put_member(&j, "kind", err_kind_name(e->kind));
	put_member(&j, "message", e->text ? e->text : err_kind_name(e->kind));
	if (e->fix)
		put_member(&j, "fix", e->fix);
	json_end_obj(&j);
	json_end_obj(&j);
}

/* What an operation refuses is a result that says so: the model is to read it. */
static void put_result(const struct mcp_job *job, struct buf *out, const struct buf *answer, bool is_error)
{
	struct json j = json_make(out);
	json_obj(&j);
	json_key(&j, "content");
	json_arr(&j);
	json_obj(&j);
	put_member(&j, "type", "text");
	json_key(&j, "text");
	json_strn(&j, answer->data, answer->len);
	json_end_obj(&j);
	json_end_arr(&j);
	if (job->version >= MCP_2025_06_18) {
		json_key(&j, "structuredContent");
		json_raw(&j, answer->data, answer->len);
	}
	json_key(&j, "isError");
	json_bool(&j, is_error);
	json_end_obj(&j);
}

struct err *mcp_call_tool(struct mcp_job *job, struct buf *out)
{
	static const struct ops_doc none = {.kind = OPS_DOC_OBJECT};
	const struct ops_doc *name = mcp_param(job->req.params, "name"), *args = mcp_param(job->req.params, "arguments");
	size_t i = 0;
	if (!name || name->kind != OPS_DOC_STRING)
		return err_new(ERR_INVALID, "tools/call: names no tool");
	while (i < ARRAY_LEN(tools) && strcmp(tools[i].name, name->s))
		i++;
	if (i == ARRAY_LEN(tools))
		return err_fix(err_new(ERR_INVALID, "%s: there is no such tool", name->s), "tools/list lists them");
	if (args && args->kind != OPS_DOC_OBJECT && args->kind != OPS_DOC_NULL)
		return err_new(ERR_INVALID, "tools/call: arguments is no object");
	struct buf answer = {0};
	const struct tool *t = &tools[i];
	struct err *e;
	if (!(job->m->caps & t->caps))
		e = err_fix(err_new(ERR_DENIED, "%s: is not granted here", t->name), "the user grants it: scry mcp --allow");
	else if (mcp_rest_is(mcp_param(args, "cursor")))
		e = run_rest(job, args, &answer);
	else
		e = t->run(job, args && args->kind == OPS_DOC_OBJECT ? args : &none, &answer);
	if (e) {
		answer.len = 0;
		put_error(&answer, e);
	}
	put_result(job, out, &answer, e != NULL);
	err_free(e);
	bool is_lost = answer.failed;
	buf_fini(&answer);
	return is_lost ? &err_nomem : NULL;
}
