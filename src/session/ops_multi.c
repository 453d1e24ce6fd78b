/* SPDX-License-Identifier: Apache-2.0 */
/* Several reading operations in one call, all at one snapshot. */
#include "session/ops_doc.h"
#include "session/ops_int.h"

#include <string.h>

#define MULTI_MAX 1000

static struct err *read_ask(struct ops_req *rq, const struct ops_doc *ask, struct ops_args *ret)
{
	const char *name = ops_doc_str(ask, "op");
	const struct ops_op *op = name ? ops_find(name) : NULL;
	const struct ops_doc *params = ops_doc_find(ask, "params");
	if (!op)
		return err_new(ERR_INVALID, "%s: there is no such operation", name ? name : "op");
	if (op->cap != SES_CAP_READ || !op->needs_target || op->run == ops_multi)
		return err_new(ERR_INVALID, "%s: multi takes operations that read one target", name);
	if (params && params->kind != OPS_DOC_OBJECT)
		return err_new(ERR_INVALID, "%s: params is not an object", name);
	ops_args_init(ret, op, rq->arena);
	return ops_args_take(ret, params);
}

static void put_error(struct json *j, const struct err *e)
{
	json_obj(j);
	json_key(j, "error");
	json_obj(j);
	json_key(j, "kind");
	json_str(j, err_kind_name(e->kind));
	json_key(j, "message");
	json_str(j, e->text);
	json_key(j, "fix");
	json_str(j, e->fix ? e->fix : "");
	json_end_obj(j);
	json_end_obj(j);
}

/* One answer, or its error in its place. */
static struct err *run_one(struct ops_req *rq, const struct ops_doc *ask)
{
	struct ops_args args;
	struct buf text = {0};
	struct ops_out out = {0};
	struct err *e = read_ask(rq, ask, &args);
	if (!e) {
		ops_out_init(&out, args.op, &text, true);
		struct ops_req one = *rq;
		one.args = &args;
		one.out = &out;
		e = ops_run(&one);
	}
	bool is_over = e && (e->kind == ERR_CANCELLED || e->kind == ERR_TIMEOUT || e->kind == ERR_NOMEM);
	if (!is_over && text.len)
		json_raw(&rq->out->json, text.data, text.len);
	else if (!is_over && e)
		put_error(&rq->out->json, e);
	else if (!is_over)
		json_null(&rq->out->json);
	ops_out_fini(&out);
	buf_fini(&text);
	if (is_over)
		return e;
	err_free(e);
	return NULL;
}

struct err *ops_multi(struct ops_req *rq)
{
	struct ops_doc doc;
	const char *path = ops_arg_str(rq->args, "ops");
	struct err *e = ops_arg_doc(rq, "ops", &doc);
	if (e)
		return e;
	const struct ops_doc *list = doc.kind == OPS_DOC_LIST ? &doc : ops_doc_find(&doc, "ops");
	if (!list || list->kind != OPS_DOC_LIST)
		return err_fix(err_new(ERR_INVALID, "%s: has no list \"ops\"", path), "scry help multi");
	if (list->cnt > MULTI_MAX)
		return err_new(ERR_BUDGET, "multi: at most %d operations in one call, these are %zu", MULTI_MAX, list->cnt);
	/* People get the same document: answers of different shapes have no table. */
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, ses_snap_rev(rq->sn));
	json_key(j, "results");
	json_arr(j);
	ses_meter_begin(rq->call, "operations", list->cnt);
	for (size_t i = 0; i < list->cnt && !e; i++) {
		e = run_one(rq, &list->items[i]);
		ses_meter_add(rq->call, 1);
	}
	json_end_arr(j);
	json_end_obj(j);
	if (!rq->out->is_json)
		buf_add_ch(rq->out->buf, '\n');
	return e;
}
