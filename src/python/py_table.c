/* SPDX-License-Identifier: Apache-2.0 */
#include "python/py_int.h"

/* The operation table as JSON, from which python/generate.py writes the methods. */
static const char *const type_names[] = {
	[OPS_FLAG] = "flag", [OPS_STRING] = "string", [OPS_INT] = "int", [OPS_ADDR] = "addr", [OPS_FUNC] = "func",
	[OPS_CHOICE] = "choice", [OPS_PATH] = "path", [OPS_JSON] = "json",
};

static void put_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_str(j, text ? text : "");
}

static void put_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

static void put_param(struct json *j, const struct ops_param *p)
{
	json_obj(j);
	put_text(j, "name", p->name);
	put_text(j, "type", type_names[p->type]);
	put_bool(j, "positional", p->is_positional);
	put_bool(j, "required", p->is_required);
	put_bool(j, "repeated", p->is_repeated);
	put_text(j, "choices", p->choices);
	put_text(j, "help", p->help);
	json_end_obj(j);
}

static void put_op(struct json *j, const struct ops_op *op)
{
	static const char *const shapes[] = {[OPS_OBJECT] = "object", [OPS_LIST] = "list", [OPS_TEXT] = "text"};
	json_obj(j);
	put_text(j, "name", op->name);
	put_text(j, "shape", shapes[op->shape]);
	json_key(j, "cap");
	json_u64(j, op->cap);
	put_bool(j, "target", op->needs_target);
	put_bool(j, "columns", ops_cols_takes(op->name));
	put_text(j, "help", op->help);
	put_text(j, "details", op->details);
	json_key(j, "params");
	json_arr(j);
	for (const struct ops_param *p = op->params; p && p->name; p++)
		put_param(j, p);
	json_end_arr(j);
	json_end_obj(j);
}

void py_table_json(struct buf *out)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	struct json j = json_make(out);
	json_arr(&j);
	for (size_t i = 0; i < cnt; i++)
		put_op(&j, &ops[i]);
	json_end_arr(&j);
}
