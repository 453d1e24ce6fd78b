/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the protocol. Before initialize only ping is answered. What has an id is answered once, with a result or an error; what
 * has none never is. A request that the client cancelled is not answered.
 */
#include "mcp/mcp_int.h"

#include <stdio.h>
#include <string.h>

static const char *const version_names[MCP_VERSION_COUNT] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

const char *mcp_version_name(enum mcp_version v)
{
	return version_names[v];
}

const struct ops_doc *mcp_param(const struct ops_doc *params, const char *name)
{
	return params && params->kind == OPS_DOC_OBJECT ? ops_doc_find(params, name) : NULL;
}

/* --- going out --- */

void mcp_notify(struct mcp *m, const char *method, const char *params, size_t len)
{
	struct json j = json_make(&m->out);
	json_obj(&j);
	json_key(&j, "jsonrpc");
	json_str(&j, "2.0");
	json_key(&j, "method");
	json_str(&j, method);
	if (len) {
		json_key(&j, "params");
		json_raw(&j, params, len);
	}
	json_end_obj(&j);
	buf_add_ch(&m->out, '\n');
}

/* The answers of a batch go out when the last is there; of one that holds none but notifications nothing does. */
static void batch_end(struct mcp *m, struct mcp_batch *b)
{
	if (--b->left)
		return;
	if (b->out.len) {
		buf_add_ch(&m->out, '[');
		buf_add(&m->out, b->out.data, b->out.len);
		buf_add(&m->out, "]\n", 2);
	}
	buf_fini(&b->out);
	free(b);
}

static void send_answer(struct mcp *m, struct mcp_job *job)
{
	struct buf *to = job->batch ? &job->batch->out : &m->out;
	if (job->batch && to->len)
		buf_add_ch(to, ',');
	/* In a batch the line ends elsewhere. */
	buf_add(to, job->out.data, job->out.len - (job->batch != NULL));
}

void mcp_job_free(struct mcp_job *job)
{
	buf_fini(&job->out);
	arena_fini(&job->arena);
	free(job);
}

void mcp_job_end(struct mcp *m, struct mcp_job *job)
{
	if (job->out.failed && job->req.id) {
		buf_fini(&job->out);
		rpc_put_err(&job->out, job->req.id, RPC_FAILED, &err_nomem);
	}
	if (job->out.len && !job->out.failed && !job->is_cancelled)
		send_answer(m, job);
	if (job->has_new_db)
		mcp_notify(m, "notifications/resources/list_changed", NULL, 0);
	if (job->batch)
		batch_end(m, job->batch);
	mcp_job_free(job);
}

/* The answer; takes the error. */
static void answer(struct mcp_job *job, const struct buf *result, enum rpc_code code, struct err *e)
{
	if (!job->req.id)
		;
	else if (e || result->failed)
		rpc_put_err(&job->out, job->req.id, code, e ? e : &err_nomem);
	else
		rpc_put_result(&job->out, job->req.id, result->len ? result->data : "{}", result->len ? result->len : 2);
	err_free(e);
}

/* --- what takes no time --- */

/* A name for the journal: of what the client calls itself, what can be read. */
static void take_client(struct mcp *m, const struct ops_doc *params)
{
	const struct ops_doc *info = mcp_param(params, "clientInfo");
	const char *name = info && info->kind == OPS_DOC_OBJECT ? ops_doc_str(info, "name") : NULL;
	size_t n = 0;
	for (; name && *name && n < sizeof(m->client) - 1; name++) {
		if (*name > 0x20 && *name < 0x7f)
			m->client[n++] = *name;
	}
	m->client[n] = 0;
	if (!n)
		snprintf(m->client, sizeof(m->client), "agent");
}

static struct err *initialize(struct mcp *m, struct mcp_job *job, struct buf *out)
{
	const struct ops_doc *v = mcp_param(job->req.params, "protocolVersion");
	enum mcp_version version = MCP_VERSION_COUNT - 1;
	if (!v || v->kind != OPS_DOC_STRING)
		return err_new(ERR_INVALID, "initialize: protocolVersion is missing");
	if (m->is_initialized)
		return err_new(ERR_INVALID, "initialize: the session has begun already");
	/* One that is not known is answered with the newest that is; whether that will do is the client's to say. */
	for (int i = 0; i < MCP_VERSION_COUNT; i++) {
		if (!strcmp(v->s, version_names[i]))
			version = (enum mcp_version)i;
	}
	m->version = version;
	m->is_initialized = true;
	take_client(m, job->req.params);
	struct json j = json_make(out);
	json_obj(&j);
	json_key(&j, "protocolVersion");
	json_str(&j, version_names[version]);
	json_key(&j, "capabilities");
	json_raw(&j, "{\"tools\":{},\"resources\":{\"subscribe\":true,\"listChanged\":true}}", 62);
	json_key(&j, "serverInfo");
	json_obj(&j);
	json_key(&j, "name");
	json_str(&j, "scry");
	json_key(&j, "version");
	json_str(&j, SCRY_VERSION);
	json_end_obj(&j);
	json_key(&j, "instructions");
	json_str(&j, "scry takes programs apart. Addresses are \"0x401136\", names, NAME+0x10. look tells all of one place, list runs any "
		 "operation that reads, reference says what there is and what it takes. An answer with next goes on with cursor. Every answer "
		 "has rev: give it as if_rev when you edit.");
	json_end_obj(&j);
	return NULL;
}

static struct err *put_list(struct mcp *m, struct mcp_job *job, struct buf *out)
{
	struct json j = json_make(out);
	const struct ops_doc *cursor = mcp_param(job->req.params, "cursor");
	if (cursor && cursor->kind != OPS_DOC_NULL)
		return err_new(ERR_INVALID, "cursor: this list has one page");
	if (!strcmp(job->req.method, "tools/list"))
		mcp_put_tools(m, &j);
	else if (!strcmp(job->req.method, "resources/list"))
		mcp_put_resources(m, &j);
	else
		mcp_put_templates(m, &j);
	return NULL;
}

static bool is_list(const char *method)
{
	return !strcmp(method, "tools/list") || !strcmp(method, "resources/list") || !strcmp(method, "resources/templates/list");
}

/* True when it was answered; false for what jobs do. */
static bool do_now(struct mcp *m, struct mcp_job *job)
{
	const char *method = job->req.method;
	struct buf result = {0};
	struct err *e = NULL;
	enum rpc_code code = RPC_BAD_PARAMS;
	if (!strcmp(method, "ping"))
		;
	else if (!strcmp(method, "initialize")) {
		e = initialize(m, job, &result);
		job->version = m->version;
	} else if (!m->is_initialized) {
		code = RPC_INVALID_REQUEST;
		e = err_fix(err_new(ERR_INVALID, "%s: the session has not begun", method), "initialize comes first");
	} else if (is_list(method))
		e = put_list(m, job, &result);
	else if (!strcmp(method, "resources/subscribe") || !strcmp(method, "resources/unsubscribe"))
		e = mcp_subscribe(m, job->req.params, method[10] == 's');
	else if (!strcmp(method, "tools/call") || !strcmp(method, "resources/read"))
		return false;
	else {
		code = RPC_NO_METHOD;
		e = err_new(ERR_NOT_FOUND, "%s: there is no such method", method);
	}
	if (e && e->kind == ERR_NOT_FOUND && code == RPC_BAD_PARAMS)
		code = RPC_NO_RESOURCE;
	answer(job, &result, code, e);
	buf_fini(&result);
	return true;
}

/* --- jobs --- */

void mcp_job_run(struct mcp_job *job)
{
	struct buf result = {0};
	bool is_tool = !strcmp(job->req.method, "tools/call");
	struct err *e = is_tool ? mcp_call_tool(job, &result) : mcp_read_resource(job, &result);
	enum rpc_code code = !e ? RPC_FAILED : e->kind == ERR_NOT_FOUND && !is_tool ? RPC_NO_RESOURCE : e->kind == ERR_INVALID ? RPC_BAD_PARAMS :
			     RPC_FAILED;
	answer(job, &result, code, e);
	buf_fini(&result);
}

static const char *json_of(const struct ops_doc *v, struct arena *a)
{
	struct buf text = {0};
	struct json j = json_make(&text);
	if (v && v->kind == OPS_DOC_STRING)
		json_strn(&j, v->s, v->len);
	else if (v && v->kind == OPS_DOC_INT)
		json_i64(&j, v->num);
	char *s = text.len && !text.failed ? arena_strndup(a, text.data, text.len) : NULL;
	buf_fini(&text);
	return s;
}

/* --- notifications --- */

static void cancel(struct mcp *m, struct mcp_job *job)
{
	const char *id = json_of(mcp_param(job->req.params, "requestId"), &job->arena);
	pthread_mutex_lock(&m->lock);
	struct mcp_job *lists[] = {m->queue, m->running};
	for (size_t i = 0; id && i < ARRAY_LEN(lists); i++) {
		for (struct mcp_job *k = lists[i]; k; k = k->next) {
			if (!k->req.id || strcmp(k->req.id, id))
				continue;
			k->is_cancelled = true;
			atomic_store(&k->cancel, true);
		}
	}
	pthread_mutex_unlock(&m->lock);
}

/* --- coming in --- */

static struct mcp_job *job_new(struct mcp *m, struct mcp_batch *b)
{
	struct mcp_job *job = calloc(1, sizeof(*job));
	if (job) {
		job->m = m;
		job->version = m->version;
		job->batch = b;
	}
	return job;
}

/* A request or notification that could be read. */
static void take(struct mcp *m, struct mcp_job *job)
{
	const struct ops_doc *params = job->req.params;
	const struct ops_doc *meta = mcp_param(params, "_meta");
	if (!job->req.id) {
		if (!strcmp(job->req.method, "notifications/cancelled"))
			cancel(m, job);
		mcp_job_end(m, job);
		return;
	}
	if (params && params->kind != OPS_DOC_OBJECT)
		answer(job, &(struct buf){0}, RPC_BAD_PARAMS, err_new(ERR_INVALID, "params: is no object"));
	else if (!do_now(m, job)) {
		job->token = json_of(mcp_param(meta, "progressToken"), &job->arena);
		mcp_queue(m, job);
		return;
	}
	mcp_job_end(m, job);
}

/* What is an answer of the client's; we ask nothing, so there is nothing to do with it. */
static bool is_answer(const struct ops_doc *d)
{
	return d->kind == OPS_DOC_OBJECT && !ops_doc_find(d, "method") && ops_doc_find(d, "id") &&
	       (ops_doc_find(d, "result") || ops_doc_find(d, "error"));
}

static void take_doc(struct mcp *m, const struct ops_doc *d, struct mcp_job *job)
{
	enum rpc_code code = RPC_INVALID_REQUEST;
	if (is_answer(d)) {
		mcp_job_end(m, job);
		return;
	}
	struct err *e = rpc_req_read(d, &job->arena, &job->req, &code);
	/* JSON-RPC allows null; the protocol does not. */
	if (!e && job->req.id && !strcmp(job->req.id, "null"))
		e = err_new(ERR_INVALID, "request: its id is null");
	if (!e) {
		take(m, job);
		return;
	}
	rpc_put_err(&job->out, job->req.id ? job->req.id : "null", code, e);
	err_free(e);
	mcp_job_end(m, job);
}

static void put_lone_error(struct mcp *m, enum rpc_code code, struct err *e)
{
	rpc_put_err(&m->out, "null", code, e);
	err_free(e);
}

#define MCP_BATCH_MAX 64

/* A list is read as the member of an object: documents are objects. */
static struct err *parse_batch(const char *line, size_t len, struct arena *a, const struct ops_doc **ret)
{
	struct buf text = {0};
	struct ops_doc *d = ARENA_NEW(a, struct ops_doc);
	buf_add_str(&text, "{\"batch\":");
	buf_add(&text, line, len);
	buf_add_ch(&text, '}');
	struct err *e = d && !text.failed ? ops_doc_parse("request", text.data, text.len, a, d) : &err_nomem;
	buf_fini(&text);
	if (!e && (d->cnt != 1 || d->items[0].kind != OPS_DOC_LIST))
		e = err_new(ERR_INVALID, "request: is no JSON");
	*ret = e ? NULL : &d->items[0];
	return e;
}

/* Each request has an arena of its own, so each is read again: batches are of a revision that is gone. */
static void take_batch(struct mcp *m, const char *line, size_t len, size_t cnt)
{
	struct mcp_batch *b = calloc(1, sizeof(*b));
	if (b)
		b->left = 1;
	for (size_t i = 0; b && i < cnt; i++) {
		struct mcp_job *job = job_new(m, b);
		const struct ops_doc *d = NULL;
		struct err *e = job ? parse_batch(line, len, &job->arena, &d) : &err_nomem;
		if (e) {
			err_free(e);
			if (job)
				mcp_job_free(job);
			continue;
		}
		b->left++;
		take_doc(m, &d->items[i], job);
	}
	if (b)
		batch_end(m, b);
}

static void take_list(struct mcp *m, const char *line, size_t len)
{
	struct arena a = {0};
	const struct ops_doc *d;
	struct err *e = parse_batch(line, len, &a, &d);
	enum rpc_code code = e ? RPC_PARSE : RPC_INVALID_REQUEST;
	if (!e && (!m->is_initialized || m->version != MCP_2025_03_26))
		e = err_new(ERR_INVALID, "request: batches are not of this revision of the protocol");
	if (!e && (!d->cnt || d->cnt > MCP_BATCH_MAX))
		e = err_new(ERR_INVALID, "request: a batch has 1 to %d requests", MCP_BATCH_MAX);
	if (e)
		put_lone_error(m, code, e);
	else
		take_batch(m, line, len, d->cnt);
	arena_fini(&a);
}

void mcp_take_line(struct mcp *m, const char *line, size_t len)
{
	size_t blank = 0;
	while (blank < len && (line[blank] == ' ' || line[blank] == '\t'))
		blank++;
	if (blank < len && line[blank] == '[') {
		take_list(m, line, len);
		return;
	}
	struct mcp_job *job = job_new(m, NULL);
	struct ops_doc *d = job ? ARENA_NEW(&job->arena, struct ops_doc) : NULL;
	struct err *e = d ? ops_doc_parse("request", line, len, &job->arena, d) : &err_nomem;
	if (!e) {
		take_doc(m, d, job);
		return;
	}
	put_lone_error(m, RPC_PARSE, e);
	if (job)
		mcp_job_free(job);
}

void mcp_take_long_line(struct mcp *m)
{
	put_lone_error(m, RPC_INVALID_REQUEST, err_new(ERR_BUDGET, "request: the line is longer than a megabyte"));
}
