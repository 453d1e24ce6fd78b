/* SPDX-License-Identifier: Apache-2.0 */
/* A request: from its line to what is meant, and from there to the line of its answer. */
#include "serve/serve_int.h"

#include <time.h>

#define FREE_REQS_MAX 64
#define ARENA_KEPT ((size_t)256 << 10)
#define KEEP_NS 30000 /* what takes longer is worth keeping */

uint64_t serve_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct serve_req *serve_req_new(struct serve_loop *l)
{
	struct serve_req *r = l->free_reqs;
	if (r) {
		l->free_reqs = r->next;
		l->free_cnt--;
		struct arena kept = r->arena;
		memset(r, 0, sizeof(*r));
		r->arena = kept;
	} else {
		r = calloc(1, sizeof(*r));
	}
	if (!r)
		return NULL;
	r->loop = l;
	r->serve = l->serve;
	return r;
}

void serve_req_free(struct serve_req *r)
{
	struct serve_loop *l = r->loop;
	serve_db_unref(r->db);
	err_free(r->err);
	buf_fini(&r->out);
	if (l->free_cnt >= FREE_REQS_MAX) {
		arena_fini(&r->arena);
		free(r);
		return;
	}
	if (r->arena.used_len > ARENA_KEPT)
		arena_fini(&r->arena);
	else
		arena_reset(&r->arena);
	r->next = l->free_reqs;
	l->free_reqs = r;
	l->free_cnt++;
}

void serve_req_parse(struct serve_req *r)
{
	r->err = rpc_req_parse(r->line, r->line_len, &r->arena, &r->rq, &r->code);
	r->is_parsed = true;
}

/* --- what every request may say ------------------------------------------------------------------------------------- */

static struct err *take_flag(const struct ops_doc *v, bool *ret)
{
	if (v->kind != OPS_DOC_BOOL)
		return err_new(ERR_INVALID, "%s: is true or false", v->key);
	*ret = v->num;
	return NULL;
}

static struct err *take_deadline(struct serve_req *r, const struct ops_doc *v)
{
	if (v->kind != OPS_DOC_INT || v->num < 0)
		return err_new(ERR_INVALID, "deadline_ms: is a number of milliseconds");
	if (v->num)
		r->call.deadline_ns = r->begun_ns + (uint64_t)MIN(v->num, (int64_t)1 << 40) * 1000000;
	return NULL;
}

/* True when it was one of them. */
static bool take_common(struct serve_req *r, const struct ops_doc *v, struct err **ret)
{
	/* In most requests nothing else begins like these. */
	if (!strchr("adp", *v->key))
		return false;
	if (!strcmp(v->key, "deadline_ms"))
		*ret = take_deadline(r, v);
	else if (!strcmp(v->key, "database") && !r->db)
		*ret = serve_db_find(r->serve, v, &r->db);
	else if (!strcmp(v->key, "progress"))
		*ret = take_flag(v, &r->wants_progress);
	else if (!strcmp(v->key, "as_table"))
		*ret = take_flag(v, &r->as_table);
	else if (!strcmp(v->key, "as_color"))
		*ret = take_flag(v, &r->has_color);
	else
		return false;
	return true;
}

/* Takes these out of the parameters; the rest is the operation's own. */
static struct err *take_commons(struct serve_req *r)
{
	const struct ops_doc *p = r->rq.params;
	struct ops_doc *own = NULL;
	struct err *e = NULL;
	if (!p || p->kind != OPS_DOC_OBJECT)
		return NULL;
	for (size_t i = 0; i < p->cnt && !e; i++) {
		bool is_common = take_common(r, &p->items[i], &e);
		if (is_common && !own) {
			own = ARENA_NEW(&r->arena, struct ops_doc);
			struct ops_doc *items = ARENA_ARRAY(&r->arena, struct ops_doc, p->cnt);
			if (!own || !items)
				return e ? e : &err_nomem;
			*own = *p;
			own->items = items;
			own->cnt = i;
			memcpy(items, p->items, i * sizeof(*items));
		} else if (!is_common && own) {
			own->items[own->cnt++] = p->items[i];
		}
	}
	if (own)
		r->rq.params = own;
	return e;
}

/* --- what is meant ------------------------------------------------------------------------------------------------------- */

static struct err *resolve(struct serve_req *r)
{
	const struct serve_conn *c = r->conn;
	r->code = RPC_NO_METHOD;
	r->m = serve_method_find(r->rq.method);
	r->op = r->m ? NULL : ops_find(r->rq.method);
	if (!r->m && (!r->op || !ops_is_served(r->op)))
		return err_fix(err_new(ERR_NOT_FOUND, "%s: there is no such method", r->rq.method), "methods lists them");
	/* Who waits for events of a trace may ask for other things meanwhile. */
	r->is_exclusive = r->m ? r->m->is_exclusive : r->op->cap != SES_CAP_READ && r->op->cap != SES_CAP_TRACE;
	r->call.caps = c->caps;
	r->call.client = c->id;
	r->call.author_kind = c->author_kind;
	r->call.author = c->author ? arena_strndup(&r->arena, c->author, strlen(c->author)) : NULL;
	if (c->author && !r->call.author)
		return &err_nomem;
	r->wants_progress = true;
	if (c->needs_token && (!r->m || strcmp(r->m->name, "hello"))) {
		r->code = RPC_FAILED;
		return err_fix(err_new(ERR_DENIED, "%s: who asks?", r->rq.method), "hello {\"token\":...} comes first");
	}
	r->code = RPC_BAD_PARAMS;
	struct err *e = take_commons(r);
	if (e && e->kind != ERR_INVALID)
		r->code = RPC_FAILED;
	if (!e)
		e = r->m ? serve_method_check(r) : rpc_op_args(r->op, r->rq.params, &r->arena, &r->args);
	if (e)
		return e;
	r->code = RPC_FAILED;
	bool needs_db = r->op ? r->op->needs_target : false;
	if (needs_db && !r->db && c->db)
		r->db = serve_db_ref(c->db);
	if (needs_db && !r->db)
		r->db = serve_db_first(r->serve);
	if (needs_db && !r->db)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: no database is open", r->op->name), "open {\"file\":PATH}");
	return NULL;
}

void serve_req_resolve(struct serve_req *r)
{
	r->begun_ns = serve_now_ns();
	if (!r->err)
		r->err = resolve(r);
	r->work = r->m && !r->m->run ? SERVE_WORK_OPEN : SERVE_WORK_OP;
	r->call.cancel = &r->cancel;
	r->call.meter = &r->meter;
	r->call.max_bytes = SERVE_OP_BYTES;
}

/* --- running -------------------------------------------------------------------------------------------------------------- */

static atomic_uint *speed_of(const struct serve_req *r)
{
	size_t cnt;
	return &r->db->speeds[r->op - ops_table(&cnt)];
}

bool serve_req_is_quick(const struct serve_req *r)
{
	if (!r->op || r->op->cap != SES_CAP_READ)
		return false;
	if (!r->db)
		return false;
	unsigned took = atomic_load_explicit(speed_of(r), memory_order_relaxed);
	return took && took <= SERVE_QUICK_NS;
}

/* The slowest of late: what was slow once is forgotten slowly. But where the machine has more to do than it can, any request may have been
 * slow because others had their turn: what was quick until now has to be slow twice in a row, which the lowest bit is for. */
static void learn(const struct serve_req *r, uint64_t ns)
{
	if (!r->db)
		return;
	atomic_uint *speed = speed_of(r);
	unsigned was = atomic_load_explicit(speed, memory_order_relaxed), now = (unsigned)MIN(ns, (uint64_t)UINT32_MAX) | 2;
	bool is_first = was && was <= SERVE_QUICK_NS && !(was & 1) && now > SERVE_QUICK_NS;
	if (is_first)
		now = was | 1;
	else
		now = (now > was ? now : was - (was - now) / 8) & ~1u;
	atomic_store_explicit(speed, now, memory_order_relaxed);
}

/* The table for people as a text, with what the command line says below it. */
static struct err *run_table(struct rpc_ask *ask, const struct serve_req *r, struct buf *out)
{
	struct buf text = {0};
	struct ops_out o;
	ops_out_init(&o, r->op, &text, false);
	o.has_color = r->has_color;
	struct ops_req rq = {.sn = ask->snap, .call = &ask->call, .args = &r->args, .arena = ask->arena, .out = &o, .project = ask->project,
			     .binary = ask->binary, .no_store = ask->no_store};
	struct err *e = ops_run(&rq);
	ask->code = e && e->kind == ERR_INVALID ? RPC_BAD_PARAMS : RPC_FAILED;
	ask->status = e ? NULL : take_ptr(o.status);
	struct json j = json_make(out);
	if (!e) {
		json_obj(&j);
		json_key(&j, "text");
		json_strn(&j, text.data ? text.data : "", text.len);
		if (o.has_more) {
			json_key(&j, "shown");
			json_u64(&j, o.item_cnt);
			json_key(&j, "total");
			json_u64(&j, o.total == UINT64_MAX ? 0 : o.total);
			json_key(&j, "next");
			json_str(&j, o.next);
		}
		json_end_obj(&j);
	}
	ops_out_fini(&o);
	buf_fini(&text);
	return !e && out->failed ? &err_nomem : e;
}

/* Whether answers of its kind are kept, and under what. */
static bool is_kept(const struct serve_req *r, struct ses_snap *sn, const struct ses_call *call, char etag[OPS_ETAG_MAX])
{
	if (!r->op || r->op->cap != SES_CAP_READ || !r->db || r->as_table || !(call->caps & SES_CAP_READ))
		return false;
	const struct ops_req rq = {.sn = sn, .call = call, .args = &r->args, .arena = (struct arena *)&r->arena, .project = r->db->project};
	return ops_etag_of(&rq, etag);
}

bool serve_req_cached(struct serve_req *r, struct buf *out)
{
	char etag[OPS_ETAG_MAX];
	size_t began = out->len;
	if (!r->op || !r->db || !r->rq.id || atomic_load_explicit(speed_of(r), memory_order_relaxed) < KEEP_NS || !ops_etag_is_whole(r->op))
		return false;
	struct ses_snap *sn = ses_snap_get(r->db->ses);
	rpc_begin_result(out, r->rq.id);
	bool is_there = is_kept(r, sn, &r->call, etag) && !ses_target_changed(r->db->ses) && serve_cache_get(r->serve->cache, etag, out);
	if (is_there)
		rpc_end_result(out, NULL);
	else
		out->len = began;
	ses_snap_put(sn);
	return is_there;
}

static struct err *check_len(size_t len)
{
	if (len <= SERVE_ANSWER_MAX)
		return NULL;
	return err_fix(err_new(ERR_BUDGET, "the answer is longer than %zu MB", SERVE_ANSWER_MAX >> 20), "ask for less with limit or max_bytes");
}

bool serve_req_run(struct serve_req *r, struct buf *out, uint64_t limit_ns)
{
	size_t began = out->len;
	uint64_t from = serve_now_ns();
	char etag[OPS_ETAG_MAX];
	struct rpc_ask ask = {.call = r->call, .arena = &r->arena, .no_store = r->serve->no_store};
	if (limit_ns && (!ask.call.deadline_ns || from + limit_ns < ask.call.deadline_ns))
		ask.call.deadline_ns = from + limit_ns;
	if (r->db) {
		ask.snap = ses_snap_get(r->db->ses);
		ask.project = r->db->project;
		ask.binary = r->db->binary;
	}
	if (r->rq.id)
		rpc_begin_result(out, r->rq.id);
	size_t at = out->len;
	struct err *e = r->as_table ? run_table(&ask, r, out) : rpc_op_run(&ask, &r->args, out);
	uint64_t took = serve_now_ns() - from;
	learn(r, took);
	if (!e)
		e = check_len(out->len - at);
	if (!e && took > KEEP_NS && !ask.status && is_kept(r, ask.snap, &r->call, etag))
		serve_cache_put(r->serve->cache, etag, out->data + at, out->len - at);
	ses_snap_put(ask.snap);
	bool is_late = e && limit_ns && e->kind == ERR_TIMEOUT && !(r->call.deadline_ns && from + took >= r->call.deadline_ns);
	if (e || !r->rq.id)
		out->len = began;
	if (e && !is_late) {
		r->err = e;
		r->code = ask.code;
		serve_req_refuse(r, out);
	} else if (is_late) {
		err_free(e);
	} else if (r->rq.id) {
		rpc_end_result(out, ask.status);
	}
	err_free(ask.status);
	return !is_late;
}

void serve_req_refuse(struct serve_req *r, struct buf *out)
{
	if (r->rq.id)
		rpc_put_err(out, r->rq.id, r->code, r->err);
}

static void open_db(struct serve_req *r)
{
	const struct ops_doc *file = serve_arg(r, "file"), *processor = serve_arg(r, "processor"), *base = serve_arg(r, "base"),
			     *format = serve_arg(r, "format");
	const struct serve_open_opts o = {.path = file->s, .processor = processor ? processor->s : NULL, .base = base ? base->s : NULL,
					  .format = format ? format->s : NULL};
	r->err = serve_db_open(r->serve, &o, &r->db);
}

void serve_req_work(struct serve_req *r)
{
	switch (r->work) {
	case SERVE_WORK_PARSE:
		serve_req_parse(r);
		break;
	case SERVE_WORK_OP:
		(void)serve_req_run(r, &r->out, 0);
		break;
	case SERVE_WORK_OPEN:
		open_db(r);
		break;
	case SERVE_WORK_FEED:
		serve_feed_run(r);
		break;
	case SERVE_WORK_REFRESH:
		serve_db_refresh(r->db);
		break;
	}
}
