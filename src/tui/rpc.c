/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/rpc.h"

#include "rpc/lines.h"
#include "rpc/opcall.h"
#include "rpc/sock.h"
#include "tui/rpc_int.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Connections and the life of a request. A request is begun when the one before it on its connection was answered and
 * the answer was taken, so a driver that sends without reading is held back by its socket and costs one line and one
 * answer. Nothing waits here: a request that cannot end yet says when to look again.
 */
#define CLIENT_MAX 64       /* further connections wait in the listen queue */
#define READ_LEN 65536
#define TURN_MAX 16         /* requests of one connection before the others and the screen have their turn */
#define SETTLE_MS 10000
#define SHOWN_MS 250        /* a terminal that has not taken the frame by then is said not to have */
#define OP_LEN_MAX ((uint64_t)16 << 20)
#define ANSWER_LEN_MAX ((size_t)64 << 20)

struct tui_rpc_client {
	int fd;                  /* -1: free */
	uint32_t watched;        /* what epoll tells of */
	bool is_ended;           /* it sends no more */
	bool is_gone;            /* and takes no more */
	struct rpc_lines lines;
	struct buf out;
	size_t sent;             /* of out */
	struct tui_call *call;
};

struct tui_rpc {
	struct tui *t;
	struct rpc_listener listener;
	int epoll_fd;
	uint32_t first_src;
	bool is_full;            /* the listener is not watched */
	bool wants_quit;         /* a driver asked to leave, and was answered */
	bool is_again;           /* a turn ended before the requests did */
	uint64_t now_ns;
	bool is_stuck;
	struct tui_rpc_client clients[CLIENT_MAX];
};

/* --- answering -------------------------------------------------------------------------------------------------------- */

static void call_free(struct tui_call *c)
{
	if (!c)
		return;
	VEC_FREE(&c->steps);
	buf_fini(&c->extra);
	buf_fini(&c->op_out);
	err_free(c->err);
	arena_fini(&c->arena);
	free(c);
}

/* The frame's number and what stands behind it. */
static void put_head(const struct tui_call *c, struct json *j)
{
	json_key(j, "frame");
	json_u64(j, c->t->frame);
	json_key(j, "settled");
	json_bool(j, c->is_settled);
	json_key(j, "shown");
	json_bool(j, c->is_shown);
}

static void put_result(struct tui_call *c, struct buf *text)
{
	struct json j = json_make(text);
	if (!c->m) {
		buf_add(text, c->op_out.data, c->op_out.len);
		return;
	}
	json_obj(&j);
	if (c->extra.len)
		json_raw(&j, c->extra.data, c->extra.len);
	if (c->op) {
		json_key(&j, "result");
		json_raw(&j, c->op_out.data ? c->op_out.data : "null", c->op_out.data ? c->op_out.len : 4);
	}
	if (c->m->kind != TUI_M_NOW)
		put_head(c, &j);
	if (c->m->answer)
		c->m->answer(c, &j);
	else if (c->m->kind != TUI_M_NOW)
		tui_put_state(c->t, &j);
	json_end_obj(&j);
}

static void answer(struct tui_rpc *r, struct tui_rpc_client *cl, struct tui_call *c)
{
	struct buf text = {0};
	if (c->rq.id && !cl->is_gone) {
		if (!c->err)
			put_result(c, &text);
		if (!c->err && (text.failed || c->extra.failed || c->op_out.failed))
			c->err = &err_nomem;
		if (!c->err && text.len > ANSWER_LEN_MAX)
			c->err = err_fix(err_new(ERR_BUDGET, "the answer is longer than %zu MB", ANSWER_LEN_MAX >> 20), "ask for less with limit");
		if (c->err)
			rpc_put_err(&cl->out, c->rq.id, c->code, c->err);
		else
			rpc_put_result(&cl->out, c->rq.id, text.data, text.len);
	}
	r->wants_quit |= c->wants_quit;
	buf_fini(&text);
	cl->call = NULL;
	call_free(c);
}

/* --- operations in jobs ----------------------------------------------------------------------------------------------- */

struct op_job {
	struct tui_job job;
	struct tui_call *call;
};

static void op_run(struct tui_job *j)
{
	struct tui_call *c = ((struct op_job *)j)->call;
	struct rpc_ask ask = {.snap = j->snap, .call = j->call, .arena = &c->arena};
	c->err = rpc_op_run(&ask, &c->op_args, &c->op_out);
	c->code = ask.code;
	err_free(ask.status); /* it is in the items; an exit status is the command line's */
}

static void op_done(struct tui *t, struct tui_job *j)
{
	struct tui_call *c = ((struct op_job *)j)->call;
	struct ses_snap *newest = ses_snap_get(t->ses);
	uint64_t rev = ses_snap_rev(newest);
	/* Whoever watches is told; what changed is in the newest snapshot, which the loop takes before the next frame. */
	if (c->op->cap == SES_CAP_EDIT && rev != ses_snap_rev(t->snap))
		tui_say(t, false, "%s by a driver: revision %llu (Ctrl+Z takes it back)", c->op->name, (unsigned long long)rev);
	ses_snap_put(newest);
	t->is_dirty |= c->m != NULL;
}

static void op_fini(struct tui_job *j)
{
	struct tui_call *c = ((struct op_job *)j)->call;
	c->job = NULL;
	/* Stopped with the screen's own jobs: there is no answer, and that is said. */
	if (atomic_load(&j->is_cancelled) && !c->err) {
		c->code = RPC_FAILED;
		c->err = err_new(ERR_CANCELLED, "%s: stopped", c->op->name);
	}
	if (!c->client)
		call_free(c);
}

static void start_op(struct tui_call *c)
{
	struct op_job *j = calloc(1, sizeof(*j));
	if (!j) {
		c->err = &err_nomem;
		return;
	}
	j->call = c;
	j->job.is_driver = true;
	j->job.run = op_run;
	j->job.done = op_done;
	j->job.fini = op_fini;
	c->job = &j->job;
	j->job.call.caps = SES_CAP_READ | SES_CAP_EDIT | SES_CAP_WRITE_FILES;
	j->job.call.max_bytes = OP_LEN_MAX;
	tui_job_start(c->t, &j->job);
}

/* --- one request ------------------------------------------------------------------------------------------------------- */

static struct err *no_method(struct tui_call *c)
{
	const char *name = c->rq.method;
	const char *bare = !strncmp(name, "ui.", 3) ? name + 3 : name;
	const char *with = tui_method_comes_with(bare);
	c->code = RPC_NO_METHOD;
	if (with) {
		c->code = RPC_FAILED;
		return err_fix(err_new(ERR_UNSUPPORTED, "%s: not in this scry yet", name), "it comes with %s", with);
	}
	return err_fix(err_new(ERR_NOT_FOUND, "%s: there is no such method", name), "ui.methods lists them");
}

/* Finds what is meant and begins it. */
static struct err *begin(struct tui_call *c)
{
	struct err *e;
	const char *name = c->rq.method;
	const struct ops_op *edit = !strncmp(name, "ui.", 3) ? tui_edit_op(name + 3) : NULL;
	c->m = tui_method_find(name);
	c->op = c->m ? NULL : edit ? edit : ops_find(name);
	if (!c->m && !c->op)
		return no_method(c);
	/* Nobody is there to hear an answer; what was asked to be done is done. */
	if (c->client->is_gone && !edit && !(c->m && c->m->kind != TUI_M_LOOK))
		return &err_not_found;
	c->code = RPC_BAD_PARAMS;
	if (c->m) {
		e = tui_call_args(c);
		if (!e && c->m->run) {
			c->code = RPC_FAILED;
			e = c->m->run(c);
		}
		return e;
	}
	if (edit)
		return tui_edit_begin(c, edit);
	return rpc_op_args(c->op, c->rq.params, &c->arena, &c->op_args);
}

/* Whether a request can be begun before there is a workbench. */
static bool is_early(const char *method)
{
	const struct tui_method *m = method ? tui_method_find(method) : NULL;
	return m && m->kind == TUI_M_NOW;
}

static bool ui_is_busy(const struct tui *t)
{
	for (const struct tui_job *j = t->jobs; j; j = j->next) {
		if (!j->is_driver && !atomic_load(&j->is_cancelled))
			return true;
	}
	return t->edit_running || t->edit_first || t->opening;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return !a ? b : !b ? a : MIN(a, b);
}

/* What was typed so far; false while there is more to type. */
static bool steps_done(struct tui_call *c, const struct tui_rpc *r)
{
	while (c->step_at < c->steps.cnt) {
		const struct tui_step *s = &c->steps.data[c->step_at];
		if (!c->step_due_ns)
			c->step_due_ns = r->now_ns + (uint64_t)s->wait_ms * 1000000;
		if (s->wait_ms && c->step_due_ns > r->now_ns && !c->client->is_gone)
			return false;
		c->step_due_ns = 0;
		tui_step_do(c->t, s);
		c->step_at++;
	}
	return true;
}

/* What the call set off has ended and is painted. */
static bool is_settled(const struct tui_call *c)
{
	const struct tui *t = c->t;
	bool is_ready = !c->wants_ready || t->progress.state == SES_READY || t->progress.state == SES_FAILED;
	bool must_settle = c->m->kind == TUI_M_ACT && !c->no_settle;
	return is_ready && !t->is_dirty && !(must_settle && ui_is_busy(t));
}

/* Goes on with a request; true when it has come to its answer. */
static bool call_step(struct tui_call *c, struct tui_rpc *r)
{
	if (c->job)
		return false;
	if (c->err || (c->m && c->m->kind == TUI_M_NOW) || !c->m)
		return true;
	if (!steps_done(c, r))
		return false;
	if (!c->timeout_ns)
		c->timeout_ns = r->now_ns + SETTLE_MS * 1000000ull;
	c->is_settled = is_settled(c);
	if (!c->is_settled && c->timeout_ns > r->now_ns && !c->client->is_gone)
		return false;
	c->is_shown = !r->is_stuck && !c->t->is_dirty;
	if (c->is_shown || !c->is_settled)
		return true;
	if (!c->shown_due_ns)
		c->shown_due_ns = r->now_ns + SHOWN_MS * 1000000ull;
	return c->shown_due_ns <= r->now_ns || c->client->is_gone;
}

/* --- connections -------------------------------------------------------------------------------------------------------- */

static void client_close(struct tui_rpc *r, struct tui_rpc_client *cl)
{
	struct tui_call *c = cl->call;
	/* Children that are about to become another program have it, too. */
	epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, cl->fd, NULL);
	close(cl->fd);
	rpc_lines_fini(&cl->lines);
	buf_fini(&cl->out);
	*cl = (struct tui_rpc_client){.fd = -1};
	if (!c)
		return;
	c->client = NULL;
	if (!c->job)
		call_free(c);
	else if (c->op->cap == SES_CAP_READ)
		tui_job_cancel(c->job);
}

static void client_send(struct tui_rpc_client *cl)
{
	while (cl->sent < cl->out.len && !cl->is_gone) {
		ssize_t n = send(cl->fd, cl->out.data + cl->sent, cl->out.len - cl->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			cl->sent += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			cl->is_gone = true;
	}
	cl->sent = cl->out.len = 0;
	/* An answer may have been large; the next need not be. */
	if (cl->out.cap > READ_LEN || cl->out.failed)
		buf_fini(&cl->out);
}

static void client_read(struct tui_rpc_client *cl)
{
	char bytes[READ_LEN];
	size_t room;
	while (!cl->is_ended && (room = rpc_lines_room(&cl->lines)) > 0) {
		ssize_t n = recv(cl->fd, bytes, MIN(room, sizeof(bytes)), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			cl->is_ended = true;
			cl->is_gone = cl->is_gone || n < 0;
			rpc_lines_end(&cl->lines);
			return;
		}
		rpc_lines_feed(&cl->lines, bytes, (size_t)n);
		/* A line's worth is enough for now: the rest may wait in the socket. */
		if (cl->call || cl->out.len)
			return;
	}
}

static void refuse_line(struct tui_rpc_client *cl, enum rpc_line what)
{
	struct err *e = what == RPC_LINE_NOMEM ? &err_nomem
		: err_new(ERR_BUDGET, "request: a line is longer than %zu bytes", RPC_LINE_MAX);
	rpc_put_err(&cl->out, "null", RPC_PARSE, e);
	err_free(e);
	if (what != RPC_LINE_NOMEM)
		return;
	buf_fini(&cl->lines.in);
	cl->is_ended = true;
}

/* Takes the next line; false when there is none. */
static bool next_request(struct tui_rpc *r, struct tui_rpc_client *cl)
{
	const char *line = NULL;
	size_t len = 0;
	enum rpc_line what = rpc_lines_next(&cl->lines, &line, &len);
	if (what == RPC_LINE_NONE)
		return false;
	struct tui_call *c = what == RPC_LINE_READY ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		refuse_line(cl, what == RPC_LINE_READY ? RPC_LINE_NOMEM : what);
		return true;
	}
	cl->call = c;
	c->client = cl;
	c->err = rpc_req_parse(line, len, &c->arena, &c->rq, &c->code);
	return true;
}

/* Begins the request that was read, once it can be. */
static bool begin_request(struct tui_rpc *r, struct tui_call *c)
{
	if (c->err || c->m || c->op)
		return true;
	if (!r->t && !is_early(c->rq.method))
		return false;
	c->t = r->t;
	c->err = begin(c);
	if (!c->err && c->op && !c->job)
		start_op(c);
	return true;
}

/* Does what can be done of a connection's requests. */
static void client_step(struct tui_rpc *r, struct tui_rpc_client *cl)
{
	for (int turn = 0; turn < TURN_MAX; turn++) {
		client_send(cl);
		if (cl->out.len)
			return;
		bool is_more = cl->call || next_request(r, cl);
		/* What is left of one who is gone waits in the socket, of which nothing tells any more. */
		if (!is_more && cl->is_gone && !cl->is_ended) {
			client_read(cl);
			continue;
		}
		if (!is_more && cl->is_ended)
			client_close(r, cl);
		if (!is_more)
			return;
		if (!cl->call)
			continue;
		if (!begin_request(r, cl->call) || !call_step(cl->call, r))
			return;
		answer(r, cl, cl->call);
	}
	client_send(cl);
	r->is_again = true;
}

static void watch(struct tui_rpc *r, struct tui_rpc_client *cl)
{
	bool wants_in = !cl->is_ended && rpc_lines_room(&cl->lines) && !((cl->call || cl->out.len) && cl->lines.in.len - cl->lines.at >= READ_LEN);
	uint32_t want = (wants_in ? EPOLLIN : 0u) | (cl->out.len ? EPOLLOUT : 0u);
	if (cl->fd < 0 || want == cl->watched)
		return;
	struct epoll_event ev = {.events = want, .data = {.u32 = r->first_src + 1 + (uint32_t)(cl - r->clients)}};
	epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, cl->fd, &ev);
	cl->watched = want;
}

static struct tui_rpc_client *free_client(struct tui_rpc *r)
{
	for (size_t i = 0; i < CLIENT_MAX; i++) {
		if (r->clients[i].fd < 0)
			return &r->clients[i];
	}
	return NULL;
}

static void watch_listener(struct tui_rpc *r)
{
	bool is_full = !free_client(r);
	if (is_full == r->is_full)
		return;
	struct epoll_event ev = {.events = is_full ? 0u : EPOLLIN, .data = {.u32 = r->first_src}};
	epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, r->listener.fd, &ev);
	r->is_full = is_full;
}

static bool accept_client(struct tui_rpc *r)
{
	struct tui_rpc_client *cl = free_client(r);
	int fd = cl ? accept4(r->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	struct epoll_event ev = {.events = EPOLLIN, .data = {.u32 = r->first_src + 1 + (uint32_t)(cl - r->clients)}};
	if (!rpc_is_peer_ours(fd) || epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		close(fd);
		return true;
	}
	*cl = (struct tui_rpc_client){.fd = fd, .watched = EPOLLIN};
	return true;
}

/* --- for the loop -------------------------------------------------------------------------------------------------------- */

struct err *tui_rpc_new(const char *name, struct tui_rpc **ret)
{
	struct sockaddr_un at;
	struct tui_rpc *r = calloc(1, sizeof(*r));
	struct err *e = r ? rpc_sock_path(name, true, &at) : &err_nomem;
	if (!e)
		e = rpc_listen(&at, &r->listener);
	if (e) {
		free(r);
		return e;
	}
	for (size_t i = 0; i < CLIENT_MAX; i++)
		r->clients[i].fd = -1;
	*ret = r;
	return NULL;
}

void tui_rpc_free(struct tui_rpc *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < CLIENT_MAX; i++) {
		if (r->clients[i].fd >= 0)
			client_close(r, &r->clients[i]);
	}
	rpc_listener_fini(&r->listener);
	free(r);
}

struct err *tui_rpc_watch(struct tui_rpc *r, int epoll_fd, uint32_t first_src)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.u32 = first_src}};
	r->epoll_fd = epoll_fd;
	r->first_src = first_src;
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, r->listener.fd, &ev) ? err_os(errno, "event loop") : NULL;
}

void tui_rpc_show(struct tui_rpc *r, struct tui *t)
{
	r->t = t;
}

void tui_rpc_event(struct tui_rpc *r, uint32_t src, uint32_t events)
{
	if (src == r->first_src) {
		for (int i = 0; i < CLIENT_MAX && accept_client(r); i++)
			;
		return;
	}
	struct tui_rpc_client *cl = &r->clients[src - r->first_src - 1];
	/* An event may be older than the connection that has the place now: its state is asked for. */
	struct pollfd p = {.fd = cl->fd, .events = POLLIN};
	if (cl->fd < 0)
		return;
	if (events & (EPOLLHUP | EPOLLERR) && poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR)) {
		cl->is_gone = true;
		/* Nothing more can be said about it, and it would be said for ever. */
		epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, cl->fd, NULL);
		cl->watched = 0;
	}
	client_read(cl);
}

void tui_rpc_step(struct tui_rpc *r, uint64_t now_ns, bool is_stuck)
{
	r->now_ns = now_ns;
	r->is_stuck = is_stuck;
	r->is_again = false;
	for (size_t i = 0; i < CLIENT_MAX; i++) {
		struct tui_rpc_client *cl = &r->clients[i];
		if (cl->fd < 0)
			continue;
		client_step(r, cl);
		watch(r, cl);
	}
	watch_listener(r);
}

bool tui_rpc_is_waiting(const struct tui_rpc *r)
{
	for (size_t i = 0; i < CLIENT_MAX; i++) {
		const struct tui_call *c = r->clients[i].fd >= 0 ? r->clients[i].call : NULL;
		if (c && c->m && c->m->kind != TUI_M_NOW)
			return true;
	}
	return false;
}

bool tui_rpc_wants_quit(const struct tui_rpc *r)
{
	return r->wants_quit;
}

uint64_t tui_rpc_due_ns(const struct tui_rpc *r)
{
	uint64_t due = r->is_again ? 1 : 0;
	for (size_t i = 0; i < CLIENT_MAX; i++) {
		const struct tui_call *c = r->clients[i].fd >= 0 ? r->clients[i].call : NULL;
		if (c && !c->job)
			due = sooner(due, sooner(c->step_due_ns, sooner(c->timeout_ns, c->shown_due_ns)));
	}
	return due;
}
