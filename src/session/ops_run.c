/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every operation has in common. A mapped target can be rewritten under an answer, so its identity is compared
 * before and after, and an answer that may be mixed is thrown away.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"

#include <stdio.h>
#include <string.h>

static uint64_t tag_mix(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

/* A hash of what the answer depends on: target, generation, operation and parameters; nothing is formatted for it. */
static void ops_make_etag(struct ops_req *rq)
{
	const struct ops_args *a = rq->args;
	const struct ses_snap *sn = rq->sn;
	uint64_t h = 0xcbf29ce484222325;
	h = tag_mix(h, image_meta(sn->im)->target_sha256, 32);
	h = tag_mix(h, &sn->gen, sizeof(sn->gen));
	/* An analysis that found the same has a generation of its own; what else changes an answer is an edit. */
	uint64_t edit_rev = sn->edits ? edits_view_state(sn->edits)->edit_rev : 0;
	h = tag_mix(h, &edit_rev, sizeof(edit_rev));
	h = tag_mix(h, a->op->name, strlen(a->op->name));
	size_t n = ops_param_cnt(a->op);
	for (size_t i = 0; i < n; i++) {
		const struct ops_value *v = &a->values[i];
		if (!v->is_set || !strcmp(a->op->params[i].name, "etag") || !strcmp(a->op->params[i].name, "deadline_ms"))
			continue;
		h = tag_mix(h, &i, sizeof(i));
		for (size_t k = 0; k < v->text_cnt; k++)
			h = tag_mix(h, v->texts[k], strlen(v->texts[k]) + 1);
		if (!v->text_cnt && v->text)
			h = tag_mix(h, v->text, strlen(v->text));
	}
	snprintf(rq->out->etag, sizeof(rq->out->etag), "%016llx", (unsigned long long)h);
}

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

/* "unchanged" in place of the answer when the caller's etag still holds. */
static bool ops_is_unchanged(struct ops_req *rq)
{
	const char *etag = ops_arg_str(rq->args, "etag");
	if (!etag || !rq->out->is_json || strcmp(etag, rq->out->etag))
		return false;
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, rq->sn->rev);
	json_key(j, "etag");
	json_str(j, etag);
	json_key(j, "unchanged");
	json_bool(j, true);
	json_end_obj(j);
	return true;
}

struct err *ops_run(struct ops_req *rq)
{
	const struct ops_op *op = rq->args->op;
	if ((rq->call->caps & op->cap) != op->cap)
		return err_new(ERR_DENIED, "%s: the caller may not do this", op->name);
	size_t began = rq->out->buf->len;
	rq->out->max_bytes = rq->call->max_bytes ? began + rq->call->max_bytes : 0;
	struct err *e = rq->sn ? ops_changed(rq) : NULL;
	if (e)
		return e;
	if (rq->sn && !rq->sn->is_preview) {
		ops_make_etag(rq);
		if (ops_is_unchanged(rq))
			return NULL;
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

void ops_set_next(struct ops_req *rq, uint64_t a, uint64_t b)
{
	rq->out->has_more = true;
	snprintf(rq->out->next, sizeof(rq->out->next), "%llx.%llx.%llx", (unsigned long long)ses_snap_rev(rq->sn), (unsigned long long)a,
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
	if (n[0] != ses_snap_rev(rq->sn))
		return err_fix(err_new(ERR_STALE, "cursor: it belongs to revision %llu, this is %llu", (unsigned long long)n[0],
				       (unsigned long long)ses_snap_rev(rq->sn)), "begin the list anew");
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
