/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: lines in, requests in order, lines out. Requests that only read may overtake each other; what changes something waits for
 * those before it and is waited for by those behind it. A client that does not take its answers has nothing further begun.
 */
#include "serve/serve_int.h"
#include "session/ses_stream.h"

#include <string.h>

#define TURN_MAX 32                    /* lines, before other connections have their turn */
#define POOL_MAX 2                     /* requests of one connection that workers are at */
#define KEPT_INPUT ((size_t)64 << 10)  /* bytes of a line's buffer that are kept */
#define KEPT_OUTPUT ((size_t)512 << 10)

void serve_conn_init(struct serve_conn *c, struct serve_loop *l)
{
	static atomic_uint_fast64_t last_id;
	*c = (struct serve_conn){.src = SERVE_CONN, .id = atomic_fetch_add(&last_id, 1) + 1,
				 .loop = l, .fd = -1, .caps = l->serve->caps, .author_kind = "script"};
	c->lines.max = SERVE_LINE_MAX;
	c->last = &c->first;
}

static void unlist(struct serve_conn *c, struct serve_req **at)
{
	struct serve_req *r = *at;
	*at = r->next;
	if (!*at)
		c->last = at;
	c->req_cnt--;
	c->pool_cnt -= r->in_pool && r->work != SERVE_WORK_FEED;
}

/* Whether it is done also when nobody takes the answer: an edit. A snippet or a run of the target is not; of what is not parsed nobody knows. */
static bool is_wanted(const struct serve_req *r)
{
	return !r->is_parsed || (r->op && r->op->cap == SES_CAP_EDIT) || r->work == SERVE_WORK_FEED;
}

void serve_conn_fini(struct serve_conn *c)
{
	ses_stream_drop(c->id);
	while (c->first) {
		struct serve_req *r = c->first;
		unlist(c, &c->first);
		r->conn = NULL;
		/* What was to be changed is changed, though nobody hears of it. */
		if (!is_wanted(r))
			atomic_store(&r->cancel, true);
		if (!r->in_pool)
			serve_req_free(r);
	}
	serve_feed_clear(c);
	VEC_FREE(&c->subs);
	for (size_t i = 0; i < c->opened.cnt; i++) {
		serve_db_close(c->opened.data[i]);
		serve_db_unref(c->opened.data[i]);
	}
	VEC_FREE(&c->opened);
	serve_db_unref(c->db);
	for (size_t i = 0; i < c->outs.cnt; i++)
		buf_fini(&c->outs.data[i]);
	VEC_FREE(&c->outs);
	rpc_lines_fini(&c->lines);
	atomic_fetch_sub(&c->loop->serve->held, c->held);
	free(c->author);
}

/* --- bytes ------------------------------------------------------------------------------------------------------------ */

size_t serve_conn_room(const struct serve_conn *c)
{
	if (c->is_refused)
		return 0;
	bool is_full = c->req_cnt >= SERVE_REQ_MAX || serve_conn_unsent(c) >= SERVE_UNSENT_MAX;
	/* While requests wait, a line's beginning is enough to have. */
	if (c->is_ended || (is_full && c->lines.in.len - c->lines.at >= KEPT_INPUT))
		return 0;
	return rpc_lines_room(&c->lines);
}

static void count_held(struct serve_conn *c)
{
	size_t now = c->lines.in.cap;
	atomic_fetch_add(&c->loop->serve->held, now - c->held);
	c->held = now;
	/* Where many hold long lines none may grow further. */
	bool is_tight = atomic_load(&c->loop->serve->held) > SERVE_INPUT_MAX;
	c->lines.max = c->needs_token ? 4096 : is_tight ? KEPT_INPUT : SERVE_LINE_MAX;
}

void serve_conn_feed(struct serve_conn *c, const void *bytes, size_t len)
{
	rpc_lines_feed(&c->lines, bytes, len);
	if (c->lines.in.cap != c->held)
		count_held(c);
}

void serve_conn_end(struct serve_conn *c)
{
	c->is_ended = true;
	rpc_lines_end(&c->lines);
}

void serve_conn_hang(struct serve_conn *c)
{
	c->is_hung = true;
	for (struct serve_req **at = &c->first; *at;) {
		struct serve_req *r = *at;
		if (!is_wanted(r))
			atomic_store(&r->cancel, true);
		if (is_wanted(r) || r->in_pool) {
			at = &r->next;
		} else {
			unlist(c, at);
			serve_req_free(r);
		}
	}
}

static void drop_input(struct serve_conn *c)
{
	if (c->lines.in.len == c->lines.at && c->lines.in.cap > KEPT_INPUT) {
		buf_fini(&c->lines.in);
		c->lines.at = c->lines.scanned = 0;
	}
	if (c->lines.in.cap != c->held)
		count_held(c);
}

struct buf *serve_conn_out(struct serve_conn *c)
{
	struct serve_loop *l = c->loop;
	if (c->outs.cnt)
		return &c->outs.data[c->outs.cnt - 1];
	if (!VEC_PUSH(&c->outs, l->spare)) {
		c->is_gone = true;
		l->spare.len = 0;
		return &l->spare;
	}
	l->spare = (struct buf){0};
	return &c->outs.data[0];
}

size_t serve_conn_unsent(const struct serve_conn *c)
{
	size_t len = 0;
	for (size_t i = 0; i < c->outs.cnt; i++)
		len += c->outs.data[i].len;
	return len - c->sent;
}

/* The first of the buffers is through; the loop keeps it for the next answer unless it became large. */
static void drop_first(struct serve_conn *c)
{
	struct buf b = c->outs.data[0];
	memmove(c->outs.data, c->outs.data + 1, --c->outs.cnt * sizeof(b));
	c->sent = 0;
	if (c->loop->spare.data || b.cap > KEPT_OUTPUT || b.failed) {
		buf_fini(&b);
		return;
	}
	b.len = 0;
	c->loop->spare = b;
}

void serve_conn_took(struct serve_conn *c, size_t len)
{
	c->sent += len;
	while (c->outs.cnt && c->sent == c->outs.data[0].len)
		drop_first(c);
}

/* An answer that is a whole line; takes it. */
static void put_line(struct serve_conn *c, struct buf *line)
{
	if (line->failed)
		c->is_gone = true;
	if (!line->len)
		return;
	if (line->len < 4096 || !VEC_PUSH(&c->outs, *line)) {
		buf_add(serve_conn_out(c), line->data, line->len);
		return;
	}
	*line = (struct buf){0};
}

bool serve_conn_is_over(const struct serve_conn *c)
{
	if (c->is_refused && !c->outs.cnt)
		return true;
	return c->is_gone || (c->is_ended && !c->req_cnt && !c->outs.cnt && c->lines.at == c->lines.in.len);
}

/* --- requests ------------------------------------------------------------------------------------------------------------ */

static bool same_id(const struct serve_req *a, const struct serve_req *b)
{
	return a->rq.id && b->rq.id && !strcmp(a->rq.id, b->rq.id);
}

/* Whether it has to wait for one that came before it. */
static bool is_blocked(const struct serve_conn *c, const struct serve_req *r)
{
	for (const struct serve_req *q = c->first; q != r; q = q->next) {
		if (q->work == SERVE_WORK_FEED)
			continue;
		if (q->is_exclusive || r->is_exclusive || !r->rq.id || same_id(q, r))
			return true;
	}
	return false;
}

static void to_pool(struct serve_conn *c, struct serve_req *r)
{
	r->state = SERVE_RUNNING;
	r->in_pool = true;
	c->pool_cnt++;
	serve_loop_due(c->loop, r->call.deadline_ns);
	if (r->wants_progress)
		serve_loop_due(c->loop, r->begun_ns + SERVE_PROGRESS_NS);
	serve_pool_add(c->loop->serve->pool, r);
}

static bool is_cancel(const struct serve_req *r)
{
	return !r->err && r->m && !strcmp(r->m->name, "cancel");
}

static void cancel(struct serve_conn *c, const struct serve_req *r)
{
	const struct ops_doc *id = serve_arg(r, "id");
	struct buf text = {0};
	struct json j = json_make(&text);
	if (id->kind == OPS_DOC_STRING)
		json_strn(&j, id->s, id->len);
	else
		json_i64(&j, id->num);
	buf_add_ch(&text, '\0');
	if (!text.failed)
		serve_conn_cancel(c, text.data);
	buf_fini(&text);
}

static void run_method(struct serve_conn *c, struct serve_req *r)
{
	if (is_cancel(r))
		cancel(c, r);
	struct buf *out = serve_conn_out(c);
	size_t began = out->len;
	struct json j = json_make(out);
	if (r->rq.id)
		rpc_begin_result(out, r->rq.id);
	r->err = r->m->run(r, &j);
	if (r->err || !r->rq.id)
		out->len = began;
	if (r->err) {
		r->code = r->err->kind == ERR_INVALID ? RPC_BAD_PARAMS : RPC_FAILED;
		serve_req_refuse(r, out);
	} else if (r->rq.id) {
		rpc_end_result(out, NULL);
	}
}

/* Begins a request that nothing stands in the way of; true when it is answered already. */
static bool begin(struct serve_conn *c, struct serve_req *r)
{
	if (r->err) {
		serve_req_refuse(r, serve_conn_out(c));
		return true;
	}
	if (r->m && r->m->run) {
		run_method(c, r);
		return true;
	}
	if (serve_req_cached(r, serve_conn_out(c)))
		return true;
	if (serve_req_is_quick(r) && serve_req_run(r, serve_conn_out(c), SERVE_INLINE_NS))
		return true;
	if (c->pool_cnt < POOL_MAX)
		to_pool(c, r);
	return false;
}

/* Of those whose client is there no more only edits begin. */
static bool is_dropped(const struct serve_conn *c, const struct serve_req *r)
{
	return c->is_hung && !is_wanted(r);
}

static void begin_queued(struct serve_conn *c)
{
	for (struct serve_req **at = &c->first; *at && serve_conn_unsent(c) < SERVE_UNSENT_MAX;) {
		struct serve_req *r = *at;
		if (r->state == SERVE_QUEUED && !is_blocked(c, r) && (is_dropped(c, r) || begin(c, r))) {
			unlist(c, at);
			serve_req_free(r);
		} else if (r->is_exclusive) {
			return;
		} else {
			at = &r->next;
		}
	}
}

static void append(struct serve_conn *c, struct serve_req *r)
{
	r->next = NULL;
	*c->last = r;
	c->last = &r->next;
	c->req_cnt++;
}

/* What was asked for, once it is parsed. Cancelling does not wait in line. */
static void place(struct serve_conn *c, struct serve_req *r)
{
	serve_req_resolve(r);
	if (is_cancel(r)) {
		run_method(c, r);
		serve_req_free(r);
	} else if (is_dropped(c, r) || (!c->first && begin(c, r))) {
		serve_req_free(r);
	} else {
		append(c, r);
	}
}

static void refuse_line(struct serve_conn *c, enum rpc_line what)
{
	struct err *e = what == RPC_LINE_NOMEM ? &err_nomem : err_new(ERR_BUDGET, "request: the line is longer than %zu bytes", c->lines.max);
	rpc_put_err(serve_conn_out(c), "null", RPC_PARSE, e);
	err_free(e);
	c->is_gone |= what == RPC_LINE_NOMEM;
}

/* Takes a line; false when there is none. */
static bool take_line(struct serve_conn *c)
{
	const char *line = NULL;
	size_t len = 0;
	enum rpc_line what = rpc_lines_next(&c->lines, &line, &len);
	if (what == RPC_LINE_NONE)
		return false;
	struct serve_req *r = what == RPC_LINE_READY ? serve_req_new(c->loop) : NULL;
	if (!r) {
		refuse_line(c, what == RPC_LINE_READY ? RPC_LINE_NOMEM : what);
		return true;
	}
	r->conn = c;
	r->line = line;
	r->line_len = len;
	if (len <= SERVE_INLINE_LINE) {
		serve_req_parse(r);
		place(c, r);
		return true;
	}
	/* What it asks is not known yet, so all that follow wait. */
	r->line = arena_strndup(&r->arena, line, len);
	r->work = SERVE_WORK_PARSE;
	r->is_exclusive = true;
	if (!r->line) {
		serve_req_free(r);
		refuse_line(c, RPC_LINE_NOMEM);
		return true;
	}
	append(c, r);
	to_pool(c, r);
	return true;
}

bool serve_conn_step(struct serve_conn *c)
{
	int turn = 0;
	begin_queued(c);
	while (!c->is_gone && !c->is_refused && c->req_cnt < SERVE_REQ_MAX && serve_conn_unsent(c) < SERVE_UNSENT_MAX) {
		if (turn++ == TURN_MAX)
			return true;
		if (!take_line(c))
			break;
	}
	drop_input(c);
	return false;
}

/* --- what comes back ------------------------------------------------------------------------------------------------------ */

static struct serve_req **place_of(struct serve_conn *c, const struct serve_req *r)
{
	struct serve_req **at = &c->first;
	while (*at != r)
		at = &(*at)->next;
	return at;
}

/* The file is open: the connection has it, and waits for the analysis if that was asked. True: answer now. */
static bool opened(struct serve_conn *c, struct serve_req *r)
{
	struct ses_progress p;
	const struct ops_doc *wait = serve_arg(r, "wait");
	if (r->err)
		return true;
	if (!VEC_PUSH(&c->opened, r->db)) {
		serve_db_close(r->db);
		r->err = &err_nomem;
		return true;
	}
	serve_db_ref(r->db);
	if (!c->db)
		c->db = serve_db_ref(r->db);
	ses_get_progress(r->db->ses, &p);
	r->is_waiting = !(wait && !wait->num) && p.state != SES_READY && p.state != SES_FAILED;
	return !r->is_waiting;
}

void serve_conn_done(struct serve_conn *c, struct serve_req *r)
{
	struct serve_req **at = place_of(c, r);
	if (r->work != SERVE_WORK_FEED)
		c->pool_cnt--;
	r->in_pool = false;
	if (r->work == SERVE_WORK_PARSE) {
		/* In its place in the line, as what it turned out to be. */
		r->state = SERVE_QUEUED;
		serve_req_resolve(r);
		if (!is_cancel(r))
			return;
		unlist(c, at);
		run_method(c, r);
		serve_req_free(r);
		return;
	}
	if (r->work == SERVE_WORK_OPEN && !opened(c, r) && !r->is_answered)
		return;
	if (r->work == SERVE_WORK_FEED)
		serve_feed_done(c, r);
	if (!r->is_answered) {
		if (r->work == SERVE_WORK_OPEN)
			serve_open_answer(r, &r->out);
		put_line(c, &r->out);
	}
	unlist(c, at);
	serve_req_free(r);
}

/* --- time ------------------------------------------------------------------------------------------------------------------ */

/* Answers with an error what a worker is still at. */
static void answer_early(struct serve_conn *c, struct serve_req *r, struct err *e)
{
	if (r->rq.id)
		rpc_put_err(serve_conn_out(c), r->rq.id, RPC_FAILED, e);
	err_free(e);
	r->is_answered = true;
	atomic_store(&r->cancel, true);
}

void serve_conn_cancel(struct serve_conn *c, const char *id)
{
	for (struct serve_req **at = &c->first; *at; at = &(*at)->next) {
		struct serve_req *r = *at;
		bool is_change = r->op && r->is_exclusive && r->state == SERVE_RUNNING;
		if (!r->rq.id || strcmp(r->rq.id, id) || r->work == SERVE_WORK_FEED)
			continue;
		if (r->in_pool && !r->is_parsed)
			continue;
		/* Whether something was changed, only the one who changes it can say. */
		atomic_store(&r->cancel, true);
		if (!r->is_answered && !is_change)
			answer_early(c, r, err_new(ERR_CANCELLED, "cancelled"));
		if (!r->in_pool) {
			unlist(c, at);
			serve_req_free(r);
		}
		return;
	}
}

static void put_progress(struct serve_conn *c, struct serve_req *r)
{
	struct ses_progress p = {0};
	const char *what = atomic_load(&r->meter.what);
	uint64_t done = atomic_load(&r->meter.done), total = atomic_load(&r->meter.total);
	if (r->is_waiting) {
		ses_get_progress(r->db->ses, &p);
		what = p.stage;
		done = p.done;
		total = p.total;
	}
	r->told_ns = c->loop->now_ns;
	if (!what || !r->rq.id || serve_conn_unsent(c) >= SERVE_UNSENT_MAX)
		return;
	struct json j = json_make(serve_conn_out(c));
	buf_add_str(j.out, "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{\"id\":");
	buf_add_str(j.out, r->rq.id);
	j.comma = true;
	json_key(&j, "what");
	json_str(&j, what);
	json_key(&j, "done");
	json_u64(&j, done);
	if (total) {
		json_key(&j, "total");
		json_u64(&j, total);
	}
	if (p.func_cnt) {
		json_key(&j, "functions");
		json_u64(&j, p.func_cnt);
	}
	buf_add_str(j.out, "}}\n");
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return !a ? b : !b ? a : MIN(a, b);
}

/* What is due of one request; the next time something is. True in *ret_over: it is answered and not in the pool. */
static uint64_t tick_req(struct serve_conn *c, struct serve_req *r, bool *ret_over)
{
	uint64_t now = c->loop->now_ns, due = 0;
	struct ses_progress p;
	*ret_over = false;
	if (r->is_answered || r->work == SERVE_WORK_FEED || (r->in_pool && !r->is_parsed))
		return 0;
	if (r->is_waiting) {
		ses_get_progress(r->db->ses, &p);
		*ret_over = p.state == SES_READY || p.state == SES_FAILED;
		if (*ret_over) {
			serve_open_answer(r, serve_conn_out(c));
			return 0;
		}
	}
	bool is_change = r->op && r->is_exclusive && r->state == SERVE_RUNNING;
	if (r->call.deadline_ns && now >= r->call.deadline_ns && !is_change) {
		answer_early(c, r, err_new(ERR_TIMEOUT, "the deadline passed"));
		*ret_over = !r->in_pool;
		return 0;
	}
	due = is_change ? 0 : r->call.deadline_ns;
	if (r->wants_progress && r->state == SERVE_RUNNING) {
		uint64_t tell = MAX(r->told_ns, r->begun_ns) + SERVE_PROGRESS_NS;
		if (now >= tell) {
			put_progress(c, r);
			tell = now + SERVE_PROGRESS_NS;
		}
		due = sooner(due, tell);
	}
	return due;
}

uint64_t serve_conn_tick(struct serve_conn *c)
{
	uint64_t due = serve_feed_tick(c);
	for (struct serve_req **at = &c->first; *at;) {
		struct serve_req *r = *at;
		bool is_over;
		due = sooner(due, tick_req(c, r, &is_over));
		if (is_over) {
			unlist(c, at);
			serve_req_free(r);
		} else {
			at = &r->next;
		}
	}
	if (c->needs_token && c->loop->now_ns >= c->token_due_ns)
		c->is_gone = true;
	return c->needs_token ? sooner(due, c->token_due_ns) : due;
}
