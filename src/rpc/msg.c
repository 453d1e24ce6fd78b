/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/msg.h"

#include "base/json.h"

/* An id is a string, a whole number or null; anything else is none. */
static const char *id_text(const struct ops_doc *id, struct arena *a)
{
	struct buf text = {0};
	struct json j = json_make(&text);
	if (id->kind == OPS_DOC_STRING)
		json_strn(&j, id->s, id->len);
	else if (id->kind == OPS_DOC_INT)
		json_i64(&j, id->num);
	else if (id->kind == OPS_DOC_NULL)
		json_null(&j);
	char *ret = text.failed || !text.len ? NULL : arena_strndup(a, text.data, text.len);
	buf_fini(&text);
	return ret;
}

static struct err *invalid(enum rpc_code *ret_code, const char *why)
{
	*ret_code = RPC_INVALID_REQUEST;
	return err_fix(err_new(ERR_INVALID, "request: %s", why), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ui.ping\"}");
}

struct err *rpc_req_read(const struct ops_doc *doc, struct arena *a, struct rpc_req *ret, enum rpc_code *ret_code)
{
	*ret = (struct rpc_req){.id = "null"};
	if (doc->kind != OPS_DOC_OBJECT)
		return invalid(ret_code, "it is no object");
	const struct ops_doc *id = ops_doc_find(doc, "id"), *version = ops_doc_find(doc, "jsonrpc"), *method = ops_doc_find(doc, "method");
	const char *text = id ? id_text(id, a) : NULL;
	if (id && !text)
		return invalid(ret_code, "its id is no string and no whole number");
	ret->id = text;
	if (version && (version->kind != OPS_DOC_STRING || strcmp(version->s, "2.0")))
		return invalid(ret_code, "jsonrpc is not \"2.0\"");
	if (!method || method->kind != OPS_DOC_STRING || !method->len || strlen(method->s) != method->len)
		return invalid(ret_code, "it names no method");
	ret->method = method->s;
	ret->params = ops_doc_find(doc, "params");
	if (ret->params && ret->params->kind == OPS_DOC_NULL)
		ret->params = NULL;
	if (ret->params && ret->params->kind != OPS_DOC_OBJECT && ret->params->kind != OPS_DOC_LIST)
		return invalid(ret_code, "params is no object and no list");
	return NULL;
}

struct err *rpc_req_parse(const char *line, size_t len, struct arena *a, struct rpc_req *ret, enum rpc_code *ret_code)
{
	struct ops_doc *doc = ARENA_NEW(a, struct ops_doc);
	*ret = (struct rpc_req){.id = "null"};
	*ret_code = RPC_PARSE;
	struct err *e = doc ? ops_doc_parse("request", line, len, a, doc) : &err_nomem;
	return e ? e : rpc_req_read(doc, a, ret, ret_code);
}

static void begin(struct buf *out, const char *id)
{
	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_str(out, id);
}

static void put_kind(struct json *j, const struct err *e)
{
	json_key(j, "kind");
	json_str(j, err_kind_name(e->kind));
	if (e->fix) {
		json_key(j, "fix");
		json_str(j, e->fix);
	}
}

void rpc_begin_result(struct buf *out, const char *id)
{
	begin(out, id);
	buf_add_str(out, ",\"result\":");
}

void rpc_end_result(struct buf *out, const struct err *status)
{
	struct json j = json_make(out);
	j.comma = true;
	if (status) {
		json_key(&j, "status");
		json_obj(&j);
		put_kind(&j, status);
		json_key(&j, "message");
		json_str(&j, status->text ? status->text : err_kind_name(status->kind));
		json_end_obj(&j);
	}
	buf_add(out, "}\n", 2);
}

void rpc_put_result(struct buf *out, const char *id, const char *result, size_t len)
{
	rpc_begin_result(out, id);
	buf_add(out, result, len);
	rpc_end_result(out, NULL);
}

void rpc_put_err(struct buf *out, const char *id, enum rpc_code code, const struct err *e)
{
	struct json j = json_make(out);
	begin(out, id);
	j.comma = true;
	json_key(&j, "error");
	json_obj(&j);
	json_key(&j, "code");
	json_i64(&j, code);
	json_key(&j, "message");
	json_str(&j, e->text ? e->text : err_kind_name(e->kind));
	json_key(&j, "data");
	json_obj(&j);
	put_kind(&j, e);
	json_end_obj(&j);
	json_end_obj(&j);
	buf_add_str(out, "}\n");
}
