/* SPDX-License-Identifier: Apache-2.0 */
/* blocks and callgraph: as lists, as DOT, as SVG. */
#include "session/ops_int.h"

#include "session/dot.h"

#include <string.h>

/* A graph is one text: the bare text for people, {"rev","dot"} or {"rev","svg"} in JSON. */
static struct err *graph_text(struct ops_req *rq, const struct buf *dot)
{
	bool is_svg = ops_arg_is_set(rq->args, "svg");
	struct buf svg = {0};
	struct err *e = is_svg ? ses_dot_to_svg(dot, &svg) : NULL;
	const struct buf *text = is_svg ? &svg : dot;
	if (!e && rq->out->is_json) {
		struct json *j = &rq->out->json;
		json_obj(j);
		json_key(j, "rev");
		json_u64(j, ses_snap_rev(rq->sn));
		json_key(j, is_svg ? "svg" : "dot");
		json_strn(j, text->data, text->len);
		json_end_obj(j);
	} else if (!e) {
		buf_add(rq->out->buf, text->data, text->len);
	}
	buf_fini(&svg);
	return e;
}

static bool wants_graph(const struct ops_req *rq)
{
	return ops_arg_is_set(rq->args, "dot") || ops_arg_is_set(rq->args, "svg");
}

static void block_succ(struct ops_out *o, const struct ses_block *b)
{
	if (!o->is_json) {
		struct buf text = {0};
		for (uint32_t k = 0; k < b->succ_cnt; k++) {
			if (!k || strcmp(b->succ[k].kind, b->succ[k - 1].kind))
				buf_printf(&text, "%s%s", k ? ", " : "", b->succ[k].kind);
			buf_printf(&text, " %u", b->succ[k].id);
		}
		ops_out_str(o, "succ", text.data ? text.data : "", text.len);
		buf_fini(&text);
		return;
	}
	struct json *j = &o->json;
	json_key(j, "succ");
	json_arr(j);
	for (uint32_t k = 0; k < b->succ_cnt; k++) {
		json_obj(j);
		json_key(j, "id");
		json_u64(j, b->succ[k].id);
		json_key(j, "addr");
		json_addr(j, b->succ[k].addr);
		json_key(j, "kind");
		json_str(j, b->succ[k].kind);
		json_end_obj(j);
	}
	json_end_arr(j);
}

struct err *ops_blocks(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_block *b;
	uint32_t cnt;
	uint64_t va;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = ops_addr(rq, "func", 0, &va);
	if (!e)
		e = ses_blocks(rq->sn, rq->call, va, rq->arena, &b, &cnt);
	if (e)
		return e;
	if (wants_graph(rq)) {
		struct buf dot = {0};
		e = ses_dot_blocks(rq->sn, rq->call, b, cnt, &dot);
		if (!e)
			e = graph_text(rq, &dot);
		buf_fini(&dot);
		return e;
	}
	struct ops_out *o = rq->out;
	uint32_t shown = 0;
	ops_out_list(o, rq->sn);
	for (uint64_t i = page.offset; i < cnt && shown < page.limit && ops_out_item(o); i++, shown++) {
		ops_out_u64(o, "id", b[i].id);
		ops_out_addr(o, "addr", b[i].addr);
		ops_out_addr(o, "end", b[i].end);
		block_succ(o, &b[i]);
		ops_out_end_item(o);
	}
	ops_end_page(rq, &page, shown, cnt);
	return NULL;
}

struct err *ops_callgraph(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_call_edge *g;
	struct ses_func f;
	struct ses_call_ask ask = {.func_va = UINT64_MAX, .depth = (uint32_t)MIN(ops_arg_u64(rq->args, "depth", 1), UINT32_MAX)};
	uint32_t i;
	uint64_t va;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = ops_addr(rq, "func", UINT64_MAX, &va);
	if (!e && va != UINT64_MAX && !ses_func_at(rq->sn, va, rq->arena, &f))
		e = err_new(ERR_NOT_FOUND, "%s: is in no function", ops_arg_str(rq->args, "func"));
	if (!e && va != UINT64_MAX)
		ask.func_va = f.addr;
	if (wants_graph(rq))
		page.limit = (uint32_t)ops_arg_u64(rq->args, "limit", UINT32_MAX);
	if (!e)
		e = ses_callgraph(rq->sn, rq->call, &ask, &page, rq->arena, &g);
	if (e)
		return e;
	if (wants_graph(rq)) {
		struct buf dot = {0};
		e = ses_dot_calls(g, page.cnt, &dot);
		if (!e)
			e = graph_text(rq, &dot);
		buf_fini(&dot);
		return e;
	}
	struct ops_out *o = rq->out;
	ops_out_list(o, rq->sn);
	for (i = 0; i < page.cnt && ops_out_item(o); i++) {
		ops_out_addr(o, "caller", g[i].caller);
		ops_out_addr(o, "callee", g[i].callee);
		ops_out_u64(o, "count", g[i].count);
		ops_out_text(o, "caller_name", g[i].caller_name);
		ops_out_text(o, "callee_name", g[i].callee_name);
		ops_out_end_item(o);
	}
	ops_end_page(rq, &page, i, page.total);
	return NULL;
}
