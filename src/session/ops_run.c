/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every operation has in common. A mapped target can be rewritten under an answer, so its identity is compared
 * before and after, and an answer that may be mixed is thrown away.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct err *ops_changed(const struct ops_req *rq)
{
	if (image_was_hit(rq->sn->im))
		return err_fix(err_new(ERR_STALE, "%s: target_changed: its analysis in the store was cut while it was open",
				       rq->sn->ses->path), "open it again, it is made anew");
	if (!ses_target_changed(rq->sn->ses))
		return NULL;
	return err_fix(err_new(ERR_STALE, "%s: target_changed: the file was cut or rewritten while it was open", rq->sn->ses->path),
		       "open it again");
}

/* "unchanged" in place of the answer. */
static void ops_put_unchanged(struct ops_req *rq)
{
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, rq->sn->rev);
	if (ses_snap_is_pending(rq->sn)) {
		json_key(j, "pending");
		json_bool(j, true);
	}
	json_key(j, "etag");
	json_str(j, ops_arg_str(rq->args, "etag"));
	json_key(j, "unchanged");
	json_bool(j, true);
	json_end_obj(j);
}

struct err *ops_run(struct ops_req *rq)
{
	const struct ops_op *op = rq->args->op;
	if ((rq->call->caps & op->cap) != op->cap)
		return err_new(ERR_DENIED, "%s: the caller may not do this", op->name);
	bool is_direct = op->run == ops_undo || op->run == ops_redo || op->run == ops_salvage;
	if (rq->call->is_proposing && is_direct)
		return err_fix(err_new(ERR_DENIED, "%s: edits are only proposed here", op->name), "refuse takes back what you proposed");
	size_t began = rq->out->buf->len;
	rq->out->max_bytes = rq->call->max_bytes ? began + rq->call->max_bytes : 0;
	struct err *e = ses_call_check(rq->call);
	if (!e && rq->sn)
		e = ops_changed(rq);
	if (e)
		return e;
	/* With a project an answer may rest on other targets too. */
	if (rq->sn && !rq->sn->is_preview && !rq->project && op->run != ops_proposals) {
		ops_etag_begin(rq);
		if (ops_etag_holds(rq)) {
			ops_put_unchanged(rq);
			return NULL;
		}
	}
	e = op->run(rq);
	if (!e && rq->sn)
		e = ops_changed(rq);
	if (!e && rq->out->buf->failed)
		e = &err_nomem;
	if (e && e->kind != ERR_BAD_INPUT)
		rq->out->buf->len = began;
	return e;
}

/* --- what handlers share --- */

/* Of what is about no target: lists that never change. */
static uint64_t rev_of(const struct ops_req *rq)
{
	return rq->sn ? ses_snap_rev(rq->sn) : 0;
}

void ops_set_next(struct ops_req *rq, uint64_t a, uint64_t b)
{
	rq->out->has_more = true;
	snprintf(rq->out->next, sizeof(rq->out->next), "%llx.%llx.%llx", (unsigned long long)rev_of(rq), (unsigned long long)a,
		 (unsigned long long)b);
}

struct err *ops_get_cursor(struct ops_req *rq, uint64_t *ret_a, uint64_t *ret_b)
{
	const char *c = ops_arg_str(rq->args, "cursor");
	uint64_t n[3] = {0};
	unsigned k = 0;
	const char *p = c;
	for (; p && k < 3; k++) {
		char *end;
		n[k] = strtoull(p, &end, 16);
		if (end == p || (*end && *end != '.'))
			break;
		p = *end ? end + 1 : NULL;
	}
	if (k != 3 || p)
		return err_new(ERR_INVALID, "cursor: '%s' is not one of scry's", c);
	if (n[0] != rev_of(rq))
		return err_fix(err_new(ERR_STALE, "cursor: it belongs to revision %llu, this is %llu", (unsigned long long)n[0],
				       (unsigned long long)rev_of(rq)), "begin the list anew");
	*ret_a = n[1];
	*ret_b = n[2];
	return NULL;
}

struct err *ops_page(struct ops_req *rq, struct ses_page *ret)
{
	uint64_t limit = ops_arg_u64(rq->args, "limit", rq->out->is_json ? 1000 : UINT32_MAX);
	uint64_t unused;
	*ret = (struct ses_page){.filter = ops_arg_str(rq->args, "filter"), .sort = ops_arg_str(rq->args, "sort"),
				 .offset = ops_arg_u64(rq->args, "offset", 0), .limit = (uint32_t)MIN(limit, UINT32_MAX)};
	if (!ret->limit)
		return err_new(ERR_INVALID, "limit: at least 1");
	if (!ops_arg_is_set(rq->args, "cursor"))
		return NULL;
	if (ops_arg_is_set(rq->args, "offset"))
		return err_new(ERR_INVALID, "cursor and offset exclude each other");
	return ops_get_cursor(rq, &ret->offset, &unused);
}

void ops_end_page(struct ops_req *rq, const struct ses_page *page, uint32_t shown, uint64_t total)
{
	if (page->offset + shown < total && shown)
		ops_set_next(rq, page->offset + shown, 0);
	ops_out_end_list(rq->out, total);
}

struct err *ops_addr(struct ops_req *rq, const char *name, uint64_t otherwise, uint64_t *ret)
{
	const char *text = ops_arg_str(rq->args, name);
	if (text)
		return ses_resolve(rq->sn, text, ret);
	*ret = otherwise;
	return NULL;
}
