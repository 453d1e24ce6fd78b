/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients send to the server: a connection's state machine over bytes, without sockets and without threads, the work of the pool done in
 * between. Bytes come in pieces and answers are taken in pieces. Beyond not crashing: each line that is no notification has one answer, each
 * answer is a line of JSON-RPC, every request ends, and what a connection held is given back.
 */
#include "fuzz.h"

#include "lib/elfsample.h"
#include "serve/serve_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN_MAX 200000

static struct serve server;
static char folder[] = "/tmp/scry-fuzz-serve-XXXXXX";

static void remove_folder(void)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	unlink(path);
	rmdir(folder);
}

/* A small program as the one database there is; nobody may write files or run anything. */
static void start(void)
{
	char path[64];
	struct elfsample sample;
	struct elfsample_opts opts = {.bits = 64, .has_hash = true, .has_sections = true};
	struct serve_db *db = NULL;
	if (!mkdtemp(folder) || atexit(remove_folder))
		abort();
	setenv("SCRY_STORE", folder, 1);
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	elfsample_library(&opts, &sample);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(sample.w.file.data, 1, sample.w.file.len, f) != sample.w.file.len || fclose(f))
		abort();
	elfw_fini(&sample.w);
	if (serve_init(&server, 0, 1))
		abort();
	server.no_store = true;
	server.caps = SES_CAP_READ | SES_CAP_EDIT;
	const struct serve_open_opts open_opts = {.path = path};
	if (serve_db_open(&server, &open_opts, &db) || ses_wait(db->ses, NULL) != SES_READY)
		abort();
	serve_db_unref(db);
}

/* How many answers there must be. */
static size_t expected(const uint8_t *bytes, size_t len)
{
	struct rpc_lines l = {.max = SERVE_LINE_MAX};
	size_t cnt = 0, n;
	const char *line;
	enum rpc_line what;
	rpc_lines_feed(&l, bytes, len);
	rpc_lines_end(&l);
	while ((what = rpc_lines_next(&l, &line, &n)) != RPC_LINE_NONE) {
		struct arena a = {0};
		struct rpc_req rq = {.id = "null"};
		enum rpc_code code;
		struct err *e = what == RPC_LINE_READY ? rpc_req_parse(line, n, &a, &rq, &code) : NULL;
		cnt += rq.id != NULL;
		err_free(e);
		arena_fini(&a);
	}
	rpc_lines_fini(&l);
	return cnt;
}

static size_t check_answers(const struct buf *got)
{
	size_t cnt = 0;
	for (size_t at = 0; at < got->len;) {
		const char *end = memchr(got->data + at, '\n', got->len - at);
		struct arena a = {0};
		struct ops_doc doc;
		if (!end)
			abort();
		struct err *e = ops_doc_parse("answer", got->data + at, (size_t)(end - got->data) - at, &a, &doc);
		if (e)
			abort();
		bool has_result = ops_doc_find(&doc, "result"), has_error = ops_doc_find(&doc, "error"), has_method = ops_doc_find(&doc, "method");
		if (has_result + has_error + has_method != 1 || has_method == (ops_doc_find(&doc, "id") != NULL))
			abort();
		fuzz_accepted += has_result;
		fuzz_rejected += has_error;
		cnt += !has_method;
		arena_fini(&a);
		at = (size_t)(end - got->data) + 1;
	}
	return cnt;
}

static void take_some(struct serve_conn *c, size_t most, struct buf *got)
{
	serve_conn_took(c, 0);
	while (most && c->outs.cnt) {
		size_t n = MIN(most, c->outs.data[0].len - c->sent);
		buf_add(got, c->outs.data[0].data + c->sent, n);
		serve_conn_took(c, n);
		most -= n;
	}
}

static void pump(struct serve_loop *l)
{
	if (!serve_pool_step(server.pool))
		return;
	for (struct serve_req *r = serve_pool_take(l), *next; r; r = next) {
		next = r->pool_next;
		if (r->conn)
			serve_conn_done(r->conn, r);
		else
			serve_req_free(r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct serve_loop *l = &server.loops[0];
	struct serve_conn c;
	struct buf got = {0};
	static const size_t steps[] = {1, 7, 100, 4096, 1 << 20};
	size_t step = steps[len % ARRAY_LEN(steps)], at = 0, most = len & 32 ? 11 : 1 << 20;
	if (!server.pool)
		start();
	serve_conn_init(&c, l);
	for (unsigned turn = 0; !serve_conn_is_over(&c); turn++) {
		size_t n = MIN(MIN(step, len - at), serve_conn_room(&c));
		if (n)
			serve_conn_feed(&c, bytes + at, n);
		at += n;
		if (at == len && !c.is_ended)
			serve_conn_end(&c);
		l->now_ns = serve_now_ns();
		(void)serve_conn_step(&c);
		(void)serve_conn_tick(&c);
		take_some(&c, most, &got);
		pump(l);
		if (turn > TURN_MAX + len * 4)
			abort(); /* a request that never ends */
		if (turn > TURN_MAX)
			usleep(100);
	}
	if (c.is_gone || check_answers(&got) != expected(bytes, len))
		abort();
	serve_conn_fini(&c);
	while (serve_pool_step(server.pool))
		pump(l);
	if (atomic_load(&server.held))
		abort();
	buf_fini(&got);
	return 0;
}
