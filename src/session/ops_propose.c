/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proposals: what agents want changed and people accept or refuse. An accepted one is an edit in its author's name; those of one call stay one
 * revision, so that undo takes back together what was wanted together.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"

#include <stdlib.h>
#include <string.h>

#define PROPOSALS_MAX 100000

/* --- listing --- */

static void put_value(struct ops_out *o, const char *key, bool has, struct ses_text t)
{
	if (has)
		ops_out_text(o, key, t);
	else
		ops_out_null(o, key);
}

static void put_one(struct ops_req *rq, const struct ses_proposal *p)
{
	struct ops_out *o = rq->out;
	char time[40];
	ops_time_text(p->time_ns, time);
	ops_out_u64(o, "id", p->id);
	ops_out_cstr(o, "state", p->state);
	ops_out_cstr(o, "time", time);
	ops_out_cstr(o, "author", p->author);
	ops_out_cstr(o, "author_kind", p->author_kind);
	ops_out_cstr(o, "op", p->op);
	if (p->has_addr)
		ops_out_addr(o, "addr", p->addr);
	else
		ops_out_null(o, "addr");
	ops_out_cstr(o, "sub", p->sub);
	put_value(o, "before", p->has_before, p->before);
	put_value(o, "after", p->has_after, p->after);
	ops_out_cstr(o, "note", p->note);
	ops_out_u64(o, "call", p->call);
	if (p->rev)
		ops_out_u64(o, "accepted_rev", p->rev);
	else
		ops_out_null(o, "accepted_rev");
}

struct err *ops_proposals(struct ops_req *rq)
{
	struct ses_page page;
	struct ses_proposal *p;
	uint32_t cnt, i;
	uint64_t total;
	struct err *e = ops_page(rq, &page);
	if (e)
		return e;
	const struct ses_proposals_ask ask = {.has_decided = ops_arg_is_set(rq->args, "all"), .author = ops_arg_str(rq->args, "author"),
					      .offset = page.offset, .limit = MIN(page.limit, PROPOSALS_MAX)};
	e = ses_proposals(rq->sn->ses, &ask, rq->arena, &p, &cnt, &total);
	if (e)
		return e;
	ops_out_list(rq->out, rq->sn);
	for (i = 0; i < cnt && ops_out_item(rq->out); i++) {
		put_one(rq, &p[i]);
		ops_out_end_item(rq->out);
	}
	ops_end_page(rq, &page, i, total);
	return NULL;
}

/* --- deciding --- */

/* Which are meant: numbers, all that wait, or all of an author. */
static struct err *pick(struct ops_req *rq, struct ses_proposal **ret, uint32_t *ret_cnt)
{
	size_t id_cnt;
	uint64_t total;
	const char *const *ids = ops_arg_texts(rq->args, "id", &id_cnt), *author = ops_arg_str(rq->args, "author");
	bool is_all = ops_arg_is_set(rq->args, "all");
	if (!id_cnt && !is_all && !author)
		return err_fix(err_new(ERR_INVALID, "%s: which?", rq->args->op->name), "say their numbers, --author or --all");
	if (id_cnt && (is_all || author))
		return err_new(ERR_INVALID, "%s: numbers, --author and --all exclude each other", rq->args->op->name);
	/* Who proposes decides about nothing but what they proposed. */
	if (rq->call->is_proposing)
		author = rq->call->author;
	if (!id_cnt) {
		const struct ses_proposals_ask ask = {.author = author, .limit = PROPOSALS_MAX};
		return ses_proposals(rq->sn->ses, &ask, rq->arena, ret, ret_cnt, &total);
	}
	*ret = ARENA_ARRAY(rq->arena, struct ses_proposal, id_cnt);
	*ret_cnt = 0;
	struct err *e = *ret ? NULL : &err_nomem;
	for (size_t i = 0; i < id_cnt && !e; i++) {
		struct ses_proposal *one = NULL;
		uint32_t cnt = 0;
		char *end;
		const struct ses_proposals_ask ask = {.has_decided = true, .author = rq->call->is_proposing ? author : NULL,
						      .id = strtoull(ids[i], &end, 10), .limit = 1};
		if (!*ids[i] || *end || !ask.id)
			return err_new(ERR_INVALID, "%s: '%s' is no number of a proposal", rq->args->op->name, ids[i]);
		e = ses_proposals(rq->sn->ses, &ask, rq->arena, &one, &cnt, &total);
		if (!e && !cnt)
			e = err_fix(err_new(ERR_NOT_FOUND, "%s: there is no proposal %s", rq->args->op->name, ids[i]), "scry proposals FILE");
		if (!e)
			(*ret)[(*ret_cnt)++] = one[0];
	}
	return e;
}

/* Those from *at on that came in one call. */
static uint32_t same_call(const struct ses_proposal *p, uint32_t cnt, uint32_t at)
{
	uint32_t n = 1;
	while (at + n < cnt && p[at + n].call == p[at].call)
		n++;
	return n;
}

static struct err *accept_call(struct ops_req *rq, const struct ses_proposal *p, uint32_t cnt, struct ses_edit *edits)
{
	const struct ses_edit_opts opts = {.author = p->author, .author_kind = p->author_kind, .note = *p->note ? p->note : NULL};
	uint64_t rev;
	for (uint32_t i = 0; i < cnt; i++) {
		edits[i] = (struct ses_edit){.op = p[i].op, .addr = p[i].addr, .sub = p[i].sub, .value = p[i].has_after ? p[i].after.s : NULL,
					     .value_len = p[i].has_after ? p[i].after.len : 0, .proposal = p[i].id};
	}
	return ses_edit(rq->sn->ses, edits, cnt, &opts, rq->arena, &rev);
}

static void put_decided(struct ops_req *rq, const struct ses_proposal *p, const char *status, const char *why)
{
	struct ops_out *o = rq->out;
	(void)ops_out_item(o);
	ops_out_u64(o, "id", p->id);
	ops_out_cstr(o, "status", status);
	ops_out_cstr(o, "op", p->op);
	if (p->has_addr)
		ops_out_addr(o, "addr", p->addr);
	else
		ops_out_null(o, "addr");
	put_value(o, "after", p->has_after, p->after);
	if (why)
		ops_out_cstr(o, "why", why);
	else
		ops_out_null(o, "why");
	ops_out_end_item(o);
}

struct err *ops_accept(struct ops_req *rq)
{
	static const char *const names[] = {[SES_EDIT_APPLIED] = "accepted", [SES_EDIT_UNCHANGED] = "accepted", [SES_EDIT_REFUSED] = "refused"};
	struct ses_proposal *p = NULL;
	uint32_t cnt = 0, refused = 0;
	if (rq->call->is_proposing)
		return err_new(ERR_DENIED, "accept: who proposes does not accept");
	struct err *e = pick(rq, &p, &cnt);
	struct ses_edit *edits = e ? NULL : ARENA_ARRAY(rq->arena, struct ses_edit, cnt + 1u);
	if (!e && !edits)
		e = &err_nomem;
	for (uint32_t at = 0, n; at < cnt && !e; at += n) {
		n = same_call(p, cnt, at);
		e = accept_call(rq, &p[at], n, &edits[at]);
	}
	if (e)
		return e;
	ops_out_list(rq->out, rq->sn);
	for (uint32_t i = 0; i < cnt; i++) {
		put_decided(rq, &p[i], names[edits[i].status], edits[i].why);
		refused += edits[i].status == SES_EDIT_REFUSED;
	}
	ops_out_end_list(rq->out, cnt);
	if (refused)
		rq->out->status = err_new(ERR_STALE, "accept: %u of %u were refused", refused, cnt);
	return NULL;
}

struct err *ops_refuse(struct ops_req *rq)
{
	struct ses_proposal *p = NULL;
	uint32_t cnt = 0;
	struct err *e = pick(rq, &p, &cnt);
	uint64_t *ids = e ? NULL : ARENA_ARRAY(rq->arena, uint64_t, cnt + 1u);
	if (!e && !ids)
		e = &err_nomem;
	for (uint32_t i = 0; i < cnt && !e; i++)
		ids[i] = p[i].id;
	if (!e)
		e = ses_decline(rq->sn->ses, ids, cnt);
	if (e)
		return e;
	ops_out_list(rq->out, rq->sn);
	for (uint32_t i = 0; i < cnt; i++)
		put_decided(rq, &p[i], p[i].rev ? "accepted" : "refused", p[i].rev ? "it was decided already" : NULL);
	ops_out_end_list(rq->out, cnt);
	return NULL;
}
