/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/opcall.h"

struct err *rpc_op_args(const struct ops_op *op, const struct ops_doc *params, struct arena *a, struct ops_args *ret)
{
	ops_args_init(ret, op, a);
	return ops_args_take(ret, params);
}

static bool is_set(const struct ops_args *args, const char *name)
{
	return ops_param_find(args->op, name, strlen(name)) && ops_arg_is_set(args, name);
}

struct err *rpc_op_run(struct ses_snap *sn, const struct ses_call *call, const struct ops_args *args, struct arena *a, struct buf *out)
{
	struct buf text = {0};
	struct ops_out o;
	/* Without a file to write to, what would be in it is the answer. */
	bool is_document = ops_param_find(args->op, "output", 6) && !is_set(args, "output");
	bool is_text = args->op->shape == OPS_TEXT || is_document || is_set(args, "dot") || is_set(args, "svg");
	if (is_set(args, "raw") || (is_document && is_set(args, "patched")))
		return err_fix(err_new(ERR_INVALID, "%s: JSON cannot hold raw bytes", args->op->name), is_document ? "say output" : "take hex");
	ops_out_init(&o, args->op, is_text ? &text : out, !is_text);
	struct ops_req rq = {.sn = sn, .call = call, .args = args, .arena = a, .out = &o};
	struct err *e = ops_run(&rq);
	if (!e && is_text) {
		struct json j = json_make(out);
		json_obj(&j);
		json_key(&j, "text");
		json_strn(&j, text.data ? text.data : "", text.len);
		json_end_obj(&j);
	}
	/* What the answer comes to as a whole is in its items; an exit status is the command line's. */
	err_free(o.status);
	o.status = NULL;
	ops_out_fini(&o);
	buf_fini(&text);
	return !e && out->failed ? &err_nomem : e;
}
