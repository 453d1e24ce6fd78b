/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/exec.h"

#include "exec/exec_json.h"
#include "exec/exec_warm.h"
#include "rpc/lines.h"
#include "rpc/msg.h"
#include "rpc/opcall.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_S 30.0
#define DEADLINE_MAX_S 86400.0
#define OUTPUT_MAX ((uint64_t)1 << 20)   /* bytes of output that an answer keeps, when nobody says another number */
#define RESULT_MAX ((size_t)64 << 20)
#define MEMORY_MB 1024
#define POLL_MS 50
#define PIPE_LEN (1 << 20)
#define READ_LEN ((size_t)64 << 10)
#define GRACE_NS 2000000000              /* past the deadline, until the warm interpreter itself is given up */

enum run_end { RUN_DONE, RUN_RAISED, RUN_TIMEOUT, RUN_CANCELLED, RUN_KILLED, RUN_TOO_LONG, RUN_FULL };
static const char *const end_names[] = {"done", "raised", "timeout", "cancelled", "killed", "killed", "killed"};

/* A run, from this side. */
struct run {
	struct ops_req *rq;
	struct exec_warm *warm;
	struct ses_call call;          /* with what the snippet's own requests are made */
	bool read_only, is_confined;
	uint64_t output_max, began_ns;
	int out, err, result, channel; /* ours; -1: closed */
	struct buf output, text;       /* what it printed (when nobody takes it at once); what it left */
	uint64_t output_len;
	struct rpc_lines lines;
	struct buf answers;            /* to be written to the channel */
	size_t answered;
	enum run_end end;
	int status;                    /* of wait(2) */
	bool is_over, is_warm_lost;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- what the snippet asks --- */

/* An edit is a script's, or an agent's when one runs the script, whatever the script says. */
static struct err *check_ask(const struct run *r, const struct rpc_req *req)
{
	/* Of these the author is whose edits are meant. */
	static const char *const of_author[] = {"undo", "redo", "proposals", "accept", "refuse"};
	const struct ops_op *op = ops_find(req->method);
	bool is_whose = false;
	for (size_t i = 0; op && i < ARRAY_LEN(of_author); i++)
		is_whose |= !strcmp(op->name, of_author[i]);
	bool says_who = req->params && (ops_doc_find(req->params, "author_kind") || (ops_doc_find(req->params, "author") && !is_whose));
	if (says_who)
		return err_new(ERR_DENIED, "%s: a snippet's edits are made in the name of who runs it", req->method);
	if (op && r->read_only && (op->cap & ~(uint32_t)SES_CAP_READ))
		return err_new(ERR_READONLY, "%s: the snippet runs read-only", op->name);
	return NULL;
}

static struct err *answer_one(struct run *r, const struct rpc_req *req, struct arena *a, struct buf *out, enum rpc_code *ret_code)
{
	struct ses *ses = ses_snap_session(r->rq->sn);
	struct ses_snap *sn = ses_snap_get(ses);
	struct rpc_ask ask = {.snap = sn, .project = r->rq->project, .binary = r->rq->binary, .call = r->call, .arena = a};
	const struct ops_op *op = ops_find(req->method);
	*ret_code = RPC_FAILED;
	struct err *e = check_ask(r, req);
	if (!e) {
		e = rpc_op_call(&ask, req->method, req->params, out);
		*ret_code = ask.code;
	}
	err_free(ask.status);
	/* Where nobody analyses in the background a directive is obeyed before the snippet's next question. */
	if (!e && op && op->cap == SES_CAP_EDIT)
		err_free(ses_refresh(ses));
	ses_snap_put(sn);
	return e;
}

static void answer_line(struct run *r, const char *line, size_t len)
{
	struct arena a = {0};
	struct rpc_req req;
	enum rpc_code code;
	_cleanup_buf_ struct buf result = {0};
	struct err *e = rpc_req_parse(line, len, &a, &req, &code);
	if (!e)
		e = answer_one(r, &req, &a, &result, &code);
	if (e)
		rpc_put_err(&r->answers, req.id ? req.id : "null", code, e);
	else if (req.id)
		rpc_put_result(&r->answers, req.id, result.data, result.len);
	err_free(e);
	arena_fini(&a);
}

/* One question at a time: the next is read when the answer was taken. */
static void serve_channel(struct run *r, short events)
{
	const char *line;
	size_t len;
	if (r->answers.failed || (events & (POLLERR | POLLNVAL))) {
		close_fd(&r->channel);
		return;
	}
	if (r->answers.len > r->answered) {
		ssize_t n = send(r->channel, r->answers.data + r->answered, r->answers.len - r->answered, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			close_fd(&r->channel);
		r->answered += n > 0 ? (size_t)n : 0;
		return;
	}
	r->answers.len = r->answered = 0;
	char *at = malloc(65536);
	size_t room = MIN(rpc_lines_room(&r->lines), (size_t)65536);
	ssize_t n = at ? recv(r->channel, at, room, MSG_DONTWAIT) : 0;
	bool is_end = !at || !n || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (n > 0)
		rpc_lines_feed(&r->lines, at, (size_t)n);
	free(at);
	enum rpc_line what = rpc_lines_next(&r->lines, &line, &len);
	if (what == RPC_LINE_READY)
		answer_line(r, line, len);
	else if (is_end || what != RPC_LINE_NONE)
		close_fd(&r->channel);
}

/* --- what it prints and leaves --- */

static void take_output(struct run *r, int *fd, bool is_err)
{
	char bytes[65536];
	ssize_t n = read(*fd, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_fd(fd);
		return;
	}
	if (r->rq->stream) {
		r->rq->stream(r->rq->stream_ctx, is_err, bytes, (size_t)n);
		return;
	}
	uint64_t room = r->output_max - MIN(r->output_max, (uint64_t)r->output.len);
	buf_add(&r->output, bytes, (size_t)MIN((uint64_t)n, room));
	r->output_len += (uint64_t)n;
}

static void take_result(struct run *r)
{
	/* Most are short; what is long is read in ever longer pieces. */
	size_t room = MIN(MAX(r->text.len, READ_LEN), (size_t)PIPE_LEN);
	char *at = buf_room(&r->text, room);
	ssize_t n = at ? read(r->result, at, room) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_fd(&r->result);
		return;
	}
	r->text.len += (size_t)n;
	if (r->text.len > RESULT_MAX) {
		r->end = RUN_TOO_LONG;
		close_fd(&r->result);
	}
}

/* The warm interpreter's "status N WHY": the process is gone, and whatever it had started. */
static void take_status(struct run *r)
{
	char line[256], why[16];
	const struct ses_call now = {.cancel = NULL};
	struct err *e = exec_warm_line(r->warm, &now, line, sizeof(line));
	r->is_over = true;
	if (e || sscanf(line, "status %d %15s", &r->status, why) != 2) {
		r->is_warm_lost = true;
		r->end = RUN_KILLED;
	} else if (!strcmp(why, "timeout")) {
		r->end = RUN_TIMEOUT;
	} else if (!strcmp(why, "full")) {
		r->end = RUN_FULL;
	} else if (r->end == RUN_DONE && r->status) {
		r->end = RUN_KILLED;
	}
	err_free(e);
}

static void stop(struct run *r)
{
	static const char word = 'k';
	(void)!send(exec_warm_fd(r->warm), &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Whether it has to end before it does; asks for that once. */
static void check_time(struct run *r, bool *is_stopped)
{
	const struct ses_call *call = r->rq->call;
	uint64_t now = now_ns();
	bool is_cancelled = call->cancel && atomic_load(call->cancel);
	if (!*is_stopped && (is_cancelled || r->end == RUN_TOO_LONG || now > r->call.deadline_ns)) {
		*is_stopped = true;
		if (is_cancelled)
			r->end = RUN_CANCELLED;
		else if (r->end == RUN_DONE)
			r->end = RUN_TIMEOUT;
		stop(r);
	}
	/* The warm interpreter does not do its part. */
	if (now > r->call.deadline_ns + GRACE_NS) {
		r->is_over = r->is_warm_lost = true;
		r->end = r->end == RUN_DONE ? RUN_TIMEOUT : r->end;
	}
}

static void loop(struct run *r)
{
	bool is_stopped = false;
	while (!r->is_over) {
		bool is_answering = r->answers.len > r->answered;
		struct pollfd p[] = {
			{.fd = exec_warm_fd(r->warm), .events = POLLIN}, {.fd = r->out, .events = POLLIN}, {.fd = r->err, .events = POLLIN},
			{.fd = r->result, .events = POLLIN}, {.fd = r->channel, .events = is_answering ? POLLOUT : POLLIN}};
		if (poll(p, ARRAY_LEN(p), POLL_MS) < 0 && errno != EINTR) {
			r->is_over = r->is_warm_lost = true;
			r->end = RUN_KILLED;
		}
		if (p[1].revents && r->out >= 0)
			take_output(r, &r->out, false);
		if (p[2].revents && r->err >= 0)
			take_output(r, &r->err, true);
		if (p[3].revents && r->result >= 0)
			take_result(r);
		if (p[4].revents && r->channel >= 0)
			serve_channel(r, p[4].revents);
		if (p[0].revents)
			take_status(r);
		check_time(r, &is_stopped);
	}
	/* What it left in the pipes; nobody writes any more, or nobody is waited for. */
	for (struct pollfd p = {.fd = r->out, .events = POLLIN}; r->out >= 0 && poll(&p, 1, 0) > 0;)
		take_output(r, &r->out, false);
	for (struct pollfd p = {.fd = r->err, .events = POLLIN}; r->err >= 0 && poll(&p, 1, 0) > 0;)
		take_output(r, &r->err, true);
	for (struct pollfd p = {.fd = r->result, .events = POLLIN}; r->result >= 0 && r->end != RUN_TOO_LONG && poll(&p, 1, 0) > 0;)
		take_result(r);
}

/* --- the request --- */

struct source { const char *name, *code; size_t len; };

static struct err *read_source(struct ops_req *rq, struct source *ret)
{
	const char *code = ops_arg_str(rq->args, "code"), *script = ops_arg_str(rq->args, "script");
	char *text;
	*ret = (struct source){.name = "<snippet>", .code = code, .len = code ? strlen(code) : 0};
	if (code)
		return NULL;
	if (!script)
		return err_fix(err_new(ERR_INVALID, "exec: neither a script nor -c CODE is given"), "scry help exec");
	struct err *e = ops_doc_load(script, rq->call, rq->arena, &text, &ret->len);
	ret->name = script;
	ret->code = e ? NULL : text;
	return e;
}

static struct err *read_deadline(struct ops_req *rq, uint64_t *ret_ns)
{
	const char *text = ops_arg_str(rq->args, "deadline");
	double s = DEADLINE_S;
	char *end = NULL;
	if (text) {
		s = strtod(text, &end);
		if (!*text || *end || !isfinite(s) || s <= 0)
			return err_new(ERR_INVALID, "deadline: '%s' is no number of seconds", text);
	}
	uint64_t own = now_ns() + (uint64_t)(MIN(s, DEADLINE_MAX_S) * 1e9);
	/* What the caller has left is less, or is all that was said. */
	*ret_ns = rq->call->deadline_ns && (!text || rq->call->deadline_ns < own) ? rq->call->deadline_ns : own;
	return NULL;
}

static void put_text(struct json *j, const char *key, const char *s, size_t len)
{
	json_key(j, key);
	json_strn(j, s, len);
}

/* For python/scry/_warm.py. With -c the first word is an argument. */
static struct err *write_request(struct run *r, const struct source *s, struct buf *out)
{
	size_t cnt;
	const char *const *args = ops_arg_texts(r->rq->args, "args", &cnt), *first = ops_arg_str(r->rq->args, "script");
	struct json j = json_make(out);
	json_obj(&j);
	put_text(&j, "name", s->name, strlen(s->name));
	put_text(&j, "code", s->code, s->len);
	json_key(&j, "args");
	json_arr(&j);
	if (ops_arg_is_set(r->rq->args, "code") && first)
		json_str(&j, first);
	for (size_t i = 0; i < cnt; i++)
		json_str(&j, args[i]);
	json_end_arr(&j);
	json_key(&j, "until_ns");
	json_u64(&j, r->call.deadline_ns);
	json_key(&j, "memory");
	json_u64(&j, MIN(ops_arg_u64(r->rq->args, "memory_mb", MEMORY_MB), (uint64_t)1 << 30) << 20);
	json_end_obj(&j);
	return out->failed ? &err_nomem : NULL;
}

/* --- the answer --- */

static struct err *status_of(struct run *r, const char *what)
{
	const char *name = WIFSIGNALED(r->status) ? sigabbrev_np(WTERMSIG(r->status)) : NULL;
	switch (r->end) {
	case RUN_DONE:
		return NULL;
	case RUN_RAISED:
		return err_new(ERR_NOT_FOUND, "exec: %s", what);
	case RUN_TIMEOUT:
		return err_fix(err_new(ERR_TIMEOUT, "exec: the snippet was past its deadline and was ended"), "--deadline S gives it more seconds");
	case RUN_CANCELLED:
		return err_new(ERR_CANCELLED, "exec: cancelled");
	case RUN_KILLED:
		return err_new(ERR_NOT_FOUND, "exec: the snippet's process ended without an answer (%s%s)", name ? "SIG" : "",
			       name ? name : "it left by itself");
	case RUN_TOO_LONG:
		return err_new(ERR_BUDGET, "exec: the snippet's result is longer than %zu MB", RESULT_MAX >> 20);
	case RUN_FULL:
		return err_fix(err_new(ERR_BUDGET, "exec: the snippet's files take too much of the disk"), "scry help exec says how much they may");
	}
	return NULL;
}

/* The text behind the first byte: 'R' a result, 'E' what was raised, 'L' the lock that could not be had. */
static struct err *judge(struct run *r, struct ops_doc *ret_raised)
{
	if (r->end != RUN_DONE)
		return NULL;
	char kind = r->text.len ? r->text.data[0] : 0;
	if ((kind != 'R' && kind != 'E' && kind != 'L') || !exec_json_is_one(r->text.data + 1, r->text.len - 1)) {
		r->end = RUN_KILLED;
		return NULL;
	}
	if (kind == 'R')
		return NULL;
	struct err *e = ops_doc_parse("exec", r->text.data + 1, r->text.len - 1, r->rq->arena, ret_raised);
	const char *message = e ? NULL : ops_doc_str(ret_raised, "message");
	if (kind == 'L' && !e)
		e = err_new(ERR_ENV, "exec: the snippet's process cannot be locked in: %s", message ? message : "");
	r->end = RUN_RAISED;
	return e;
}

static void put_json(struct run *r, const struct ops_doc *raised)
{
	struct json *j = &r->rq->out->json;
	bool has_result = r->end == RUN_DONE;
	json_obj(j);
	json_key(j, "rev");
	struct ses_snap *sn = ses_snap_get(ses_snap_session(r->rq->sn));
	json_u64(j, ses_snap_rev(sn));
	ses_snap_put(sn);
	json_key(j, "end");
	json_str(j, end_names[r->end]);
	json_key(j, "result");
	if (has_result)
		json_raw(j, r->text.data + 1, r->text.len - 1);
	else
		json_null(j);
	json_key(j, "error");
	if (r->end == RUN_RAISED && raised->kind == OPS_DOC_OBJECT)
		json_raw(j, r->text.data + 1, r->text.len - 1);
	else
		json_null(j);
	put_text(j, "output", r->output.data ? r->output.data : "", r->output.len);
	json_key(j, "output_cut");
	json_u64(j, r->output_len - r->output.len);
	json_key(j, "ms");
	json_u64(j, (now_ns() - r->began_ns) / 1000000);
	json_key(j, "unprotected");
	json_str(j, r->is_confined ? exec_warm_missing(r->warm) : "everything");
	json_end_obj(j);
}

static void put_plain(struct run *r)
{
	struct buf *out = r->rq->out->buf;
	buf_add(out, r->output.data ? r->output.data : "", r->output.len);
	if (r->output_len > r->output.len)
		buf_printf(out, "\n(%llu more bytes)\n", (unsigned long long)(r->output_len - r->output.len));
	if (r->end != RUN_DONE || (r->text.len == 5 && !memcmp(r->text.data, "Rnull", 5)))
		return;
	buf_add(out, r->text.data + 1, r->text.len - 1);
	buf_add_ch(out, '\n');
}

static struct err *put_answer(struct run *r)
{
	struct ops_doc raised = {.kind = OPS_DOC_NULL};
	struct err *e = judge(r, &raised);
	if (e)
		return e;
	if (r->rq->out->is_json)
		put_json(r, &raised);
	else
		put_plain(r);
	const char *type = raised.kind == OPS_DOC_OBJECT ? ops_doc_str(&raised, "type") : NULL;
	const char *message = raised.kind == OPS_DOC_OBJECT ? ops_doc_str(&raised, "message") : NULL;
	char what[512];
	snprintf(what, sizeof(what), "%s: %s", type ? type : "", message ? message : "");
	r->rq->out->status = status_of(r, what);
	return NULL;
}

/* --- running --- */

/* A pipe of which this side is read without waiting. */
static struct err *make_pipe(int *ret_ours, int *ret_theirs)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC))
		return err_os(errno, "exec: a pipe");
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ret_ours = fds[0];
	*ret_theirs = fds[1];
	return NULL;
}

static struct err *begin(struct run *r, const struct buf *request)
{
	int pair[2], theirs[4] = {-1, -1, -1, -1}; /* channel, result, output, errors */
	struct err *e = NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_os(errno, "exec: a socket");
	r->channel = pair[0];
	theirs[0] = pair[1];
	e = make_pipe(&r->result, &theirs[1]);
	/* So that most results go through without waiting for their reader. A kernel that says no leaves the pipe as it is. */
	if (!e)
		(void)fcntl(r->result, F_SETPIPE_SZ, PIPE_LEN);
	if (!e)
		e = make_pipe(&r->out, &theirs[2]);
	/* Gathered output keeps its order. */
	if (!e && r->rq->stream)
		e = make_pipe(&r->err, &theirs[3]);
	if (!e)
		e = exec_warm_send(r->warm, request->data, request->len, theirs, r->rq->stream ? 4 : 3);
	for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
		close_fd(&theirs[i]);
	return e;
}

static void fini(struct run *r)
{
	close_fd(&r->out);
	close_fd(&r->err);
	close_fd(&r->result);
	close_fd(&r->channel);
	buf_fini(&r->output);
	buf_fini(&r->text);
	buf_fini(&r->answers);
	rpc_lines_fini(&r->lines);
	if (r->warm && r->is_warm_lost)
		exec_warm_end(r->warm);
	else if (r->warm)
		exec_warm_give(r->warm);
}

static struct err *take_warm(struct run *r)
{
	struct ses *ses = ses_snap_session(r->rq->sn);
	uint8_t sha256[32];
	char hex[72] = "", absent[80];
	for (unsigned i = 0; i < 32 && (i || ses_get_sha256(ses, sha256)); i++)
		snprintf(hex + 2 * i, 3, "%02x", sha256[i]);
	snprintf(absent, sizeof(absent), "sha256:%s", hex);
	struct exec_want want = {.target = ses_is_absent(ses) ? absent : ses_local_path(ses), .sha256 = hex, .call = &r->call,
				       .no_store = r->rq->no_store || ses_store_note(ses), .is_confined = r->is_confined};
	ses_get_asked(ses, &want.load);
	return exec_warm_take(&want, &r->warm);
}

static struct err *run_snippet(struct ops_req *rq)
{
	const struct ops_args *args = rq->args;
	struct run r = {.rq = rq, .out = -1, .err = -1, .result = -1, .channel = -1, .read_only = ops_arg_is_set(args, "read_only"),
			.is_confined = !ops_arg_is_set(args, "unconfined"), .began_ns = now_ns(),
			.output_max = ops_arg_u64(args, "max_output", OUTPUT_MAX)};
	struct source s;
	_cleanup_buf_ struct buf request = {0};
	if (!r.is_confined && !rq->call->may_consent)
		return err_new(ERR_DENIED, "exec: only a person at the command line runs a snippet unconfined");
	r.call = *rq->call;
	r.call.max_bytes = 0;
	r.call.may_consent = false;
	r.call.meter = NULL;
	/* Confined, it gets nobody else to write files or to reach the network either. */
	r.call.caps &= r.is_confined ? SES_CAP_READ | SES_CAP_EDIT | SES_CAP_RUN_TARGET : ~(uint32_t)SES_CAP_RUN_CODE;
	if (!r.call.author_kind || strcmp(r.call.author_kind, "agent"))
		r.call.author_kind = "script";
	struct err *e = read_source(rq, &s);
	if (!e)
		e = take_warm(&r);
	/* Starting an interpreter is not the snippet's time. */
	if (!e)
		e = read_deadline(rq, &r.call.deadline_ns);
	if (!e)
		e = write_request(&r, &s, &request);
	if (!e) {
		e = begin(&r, &request);
		r.is_warm_lost = e != NULL;
	}
	if (!e) {
		loop(&r);
		e = put_answer(&r);
	}
	fini(&r);
	return e;
}

void exec_register(void)
{
	ops_set_exec(run_snippet);
	(void)atexit(exec_warm_end_all);
}
