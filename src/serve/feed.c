/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscriptions. Nothing is queued for a subscriber: it has the last revision it was told of, and an event tells of everything since, at
 * most every SERVE_COALESCE_NS. So a slow reader gets fewer events and loses none; when one event cannot hold what happened it says `gap`.
 */
#include "serve/serve_int.h"

#define EVENT_ITEMS 256

struct err *serve_feed_add(struct serve_conn *c, struct serve_db *db, uint64_t since)
{
	struct serve_sub *s = NULL;
	for (size_t i = 0; i < c->subs.cnt && !s; i++)
		s = c->subs.data[i].db == db ? &c->subs.data[i] : NULL;
	if (!s) {
		if (!VEC_PUSH(&c->subs, (struct serve_sub){.db = db}))
			return &err_nomem;
		s = &c->subs.data[c->subs.cnt - 1];
		serve_db_ref(db);
	}
	s->told_rev = since;
	s->told_news = UINT64_MAX; /* look at once */
	serve_loop_due(c->loop, 1);
	return NULL;
}

bool serve_feed_del(struct serve_conn *c, const struct serve_db *db)
{
	for (size_t i = 0; i < c->subs.cnt; i++) {
		if (c->subs.data[i].db != db)
			continue;
		serve_db_unref(c->subs.data[i].db);
		c->subs.data[i] = c->subs.data[--c->subs.cnt];
		return true;
	}
	return false;
}

void serve_feed_clear(struct serve_conn *c)
{
	while (c->subs.cnt)
		(void)serve_feed_del(c, c->subs.data[0].db);
}

/* Has a worker look what happened; the state may have changed though no revision is new. */
static void begin(struct serve_conn *c, struct serve_sub *s, uint64_t news)
{
	struct serve_req *r = serve_req_new(c->loop);
	if (!r)
		return;
	r->conn = c;
	r->work = SERVE_WORK_FEED;
	r->state = SERVE_RUNNING;
	r->in_pool = r->is_parsed = true;
	r->is_answered = false;
	r->db = serve_db_ref(s->db);
	r->since = s->told_rev;
	r->told_done = s->told_news == UINT64_MAX; /* the first look: silent when nothing is new */
	r->call = (struct ses_call){.caps = SES_CAP_READ, .cancel = &r->cancel};
	s->is_running = true;
	s->told_news = news;
	*c->last = r;
	c->last = &r->next;
	c->req_cnt++;
	serve_pool_add(c->loop->serve->pool, r);
}

uint64_t serve_feed_tick(struct serve_conn *c)
{
	uint64_t now = c->loop->now_ns, due = 0;
	for (size_t i = 0; i < c->subs.cnt; i++) {
		struct serve_sub *s = &c->subs.data[i];
		uint64_t news = atomic_load(&s->db->news);
		if (s->is_running || news == s->told_news || serve_conn_unsent(c) >= SERVE_UNSENT_MAX)
			continue;
		if (s->due_ns > now)
			due = !due ? s->due_ns : MIN(due, s->due_ns);
		else
			begin(c, s, news);
	}
	return due;
}

static void put_event(struct serve_req *r, const struct ses_progress *p, bool is_pending, const struct buf *changes)
{
	static const char *const states[] = {[SES_IDENTIFYING] = "identifying", [SES_ANALYSING] = "analysing", [SES_READY] = "ready",
					     [SES_FAILED] = "failed"};
	struct json j = json_make(&r->out);
	buf_add_str(&r->out, "{\"jsonrpc\":\"2.0\",\"method\":\"changed\",\"params\":");
	json_obj(&j);
	json_key(&j, "database");
	json_u64(&j, r->db->id);
	json_key(&j, "since");
	json_u64(&j, r->since);
	json_key(&j, "state");
	json_str(&j, states[p->state]);
	json_key(&j, "pending");
	json_bool(&j, is_pending);
	if (changes->len) {
		json_key(&j, "changes");
		json_raw(&j, changes->data, changes->len);
	}
}

/* Whether the list of changes goes on behind its page: `next` is its last member. */
static bool is_cut(const struct buf *changes)
{
	const char *end = changes->len ? memrchr(changes->data, ']', changes->len) : NULL;
	return end && memmem(end, changes->len - (size_t)(end - changes->data), "\"next\":", 7);
}

void serve_feed_run(struct serve_req *r)
{
	struct ses_progress p;
	struct ses_snap *sn = ses_snap_get(r->db->ses);
	uint64_t rev = ses_snap_rev(sn);
	bool is_pending = ses_snap_is_pending(sn), is_gap = false;
	struct buf changes = {0};
	ses_get_progress(r->db->ses, &p);
	if (rev > r->since) {
		struct ops_doc items[] = {{.kind = OPS_DOC_INT, .key = "since", .num = (int64_t)r->since},
					  {.kind = OPS_DOC_INT, .key = "limit", .num = EVENT_ITEMS}};
		struct ops_doc params = {.kind = OPS_DOC_OBJECT, .items = items, .cnt = ARRAY_LEN(items)};
		struct rpc_ask ask = {.snap = sn, .call = r->call, .arena = &r->arena};
		struct err *e = rpc_op_call(&ask, "changes", &params, &changes);
		is_gap = e || is_cut(&changes);
		err_free(e);
		err_free(ask.status);
	}
	if (rev != r->since || !r->told_done) {
		put_event(r, &p, is_pending, &changes);
		struct json j = json_make(&r->out);
		j.comma = true;
		json_key(&j, "rev");
		json_u64(&j, rev);
		json_key(&j, "gap");
		json_bool(&j, is_gap || rev < r->since);
		buf_add_str(&r->out, "}}\n");
	}
	r->since = rev;
	buf_fini(&changes);
	ses_snap_put(sn);
}

void serve_feed_done(struct serve_conn *c, struct serve_req *r)
{
	for (size_t i = 0; i < c->subs.cnt; i++) {
		struct serve_sub *s = &c->subs.data[i];
		if (s->db != r->db)
			continue;
		s->is_running = false;
		s->told_rev = r->since;
		s->due_ns = c->loop->now_ns + SERVE_COALESCE_NS;
		serve_loop_due(c->loop, s->due_ns);
	}
}
