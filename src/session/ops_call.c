/* SPDX-License-Identifier: Apache-2.0 */
/* An operation for a front end in this process: cells instead of a printed table. */
#include "session/ops_int.h"

#include <string.h>

static struct err *set_args(struct ops_args *args, const struct ops_op *op, const char *const *pairs)
{
	for (; pairs && *pairs; pairs += 2) {
		const struct ops_param *p = ops_param_find(op, pairs[0], strlen(pairs[0]));
		if (!p)
			return err_new(ERR_INVALID, "%s: it takes no '%s'", op->name, pairs[0]);
		struct err *e = ops_args_set(args, p, pairs[1]);
		if (e)
			return e;
	}
	return ops_args_check(args);
}

static struct err *take_rows(const struct ops_out *o, struct arena *a, struct ops_rows *ret)
{
	uint32_t cols = (uint32_t)ops_column_cnt(o->op);
	size_t cnt = o->cell_lens.len / sizeof(uint32_t);
	char *text = arena_alloc(a, o->cells.len + 1);
	struct ses_text *cells = ARENA_ARRAY(a, struct ses_text, cnt + 1);
	if (!text || !cells || o->cells.failed || o->cell_lens.failed)
		return &err_nomem;
	if (o->cells.len)
		memcpy(text, o->cells.data, o->cells.len);
	for (size_t i = 0; i < cnt; i++) {
		uint32_t len;
		memcpy(&len, o->cell_lens.data + i * sizeof(len), sizeof(len));
		cells[i] = (struct ses_text){text, len};
		text += len;
	}
	*ret = (struct ops_rows){.cells = cells, .column_cnt = cols, .row_cnt = cols ? (uint32_t)(cnt / cols) : 0,
				 .total = o->total == UINT64_MAX ? o->item_cnt : o->total};
	return NULL;
}

static struct err *(*exec_run)(struct ops_req *rq);

void ops_set_exec(struct err *(*run)(struct ops_req *rq))
{
	exec_run = run;
}

struct err *ops_exec(struct ops_req *rq)
{
	return exec_run ? exec_run(rq) : err_new(ERR_UNSUPPORTED, "exec: this program runs no snippets");
}

struct err *ops_call(struct ses_snap *sn, const struct ses_call *call, const char *name, const char *const *pairs, struct arena *a,
		     struct ops_rows *ret)
{
	const struct ops_op *op = ops_find(name);
	_cleanup_buf_ struct buf text = {0};
	struct ops_args args;
	struct ops_out out;
	if (!op)
		return err_new(ERR_INVALID, "%s: there is no such operation", name);
	ops_args_init(&args, op, a);
	struct err *e = set_args(&args, op, pairs);
	if (e)
		return e;
	ops_out_init(&out, op, &text, false);
	struct ops_req rq = {.sn = sn, .call = call, .args = &args, .arena = a, .out = &out};
	e = ops_run(&rq);
	if (!e)
		e = take_rows(&out, a, ret);
	if (!e)
		e = take_ptr(out.status);
	ops_out_fini(&out);
	return e;
}
