/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent's program sends: lines to the handler of messages over a small program, jobs done where they are made. The first byte chooses the
 * revision of the protocol. Beyond not crashing: every line out is JSON-RPC, an answer has a result or an error, no more answers than lines
 * came in, and what a tool answers is within the budget.
 */
#include "fuzz.h"

#include "lib/elfsample.h"
#include "mcp/mcp_int.h"
#include "rpc/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/scry-fuzz-mcp-XXXXXX";
static struct mcp *server;

static void clean(void)
{
	char command[64];
	mcp_dbs_close(server);
	for (size_t i = 0; i < MCP_RESTS_MAX; i++)
		mcp_rest_free(server->rests[i]);
	free(server);
	snprintf(command, sizeof(command), "%s/lib.so", folder);
	unlink(command);
	rmdir(folder);
}

static void begin(void)
{
	char path[64];
	struct elfsample sample;
	struct elfsample_opts opts = {.bits = 64, .has_hash = true, .has_sections = true};
	struct mcp_db *db;
	bool is_new;
	if (!mkdtemp(folder))
		abort();
	setenv("SCRY_STORE", folder, 1);
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	elfsample_library(&opts, &sample);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(sample.w.file.data, 1, sample.w.file.len, f) != sample.w.file.len || fclose(f))
		abort();
	elfw_fini(&sample.w);
	server = calloc(1, sizeof(*server));
	if (!server)
		abort();
	server->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	server->no_store = true;
	struct err *e = mcp_db_open(server, path, &is_new, &db);
	if (e)
		abort();
	(void)ses_wait(db->s, NULL);
	atexit(clean);
}

/* One message going out; gives how many answers it is. */
static size_t check_message(const struct ops_doc *d)
{
	bool has_result = ops_doc_find(d, "result"), has_error = ops_doc_find(d, "error"), is_note = ops_doc_find(d, "method");
	if (d->kind != OPS_DOC_OBJECT || has_result + has_error + is_note != 1 || is_note == (ops_doc_find(d, "id") != NULL))
		abort();
	fuzz_accepted += has_result;
	fuzz_rejected += has_error;
	return has_result + has_error;
}

static size_t check_out(const struct buf *out)
{
	size_t answers = 0;
	for (size_t at = 0; at < out->len;) {
		const char *end = memchr(out->data + at, '\n', out->len - at);
		struct arena a = {0};
		struct ops_doc doc;
		struct buf text = {0};
		if (!end)
			abort();
		/* A batch is a list, which is read as a member. */
		buf_add_str(&text, "{\"m\":");
		buf_add(&text, out->data + at, (size_t)(end - out->data) - at);
		buf_add_ch(&text, '}');
		if (ops_doc_parse("answer", text.data, text.len, &a, &doc))
			abort();
		const struct ops_doc *m = &doc.items[0];
		for (size_t i = 0; m->kind == OPS_DOC_LIST && i < m->cnt; i++)
			answers += check_message(&m->items[i]);
		if (m->kind != OPS_DOC_LIST)
			answers += check_message(m);
		arena_fini(&a);
		buf_fini(&text);
		at = (size_t)(end - out->data) + 1;
	}
	return answers;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct rpc_lines lines = {0};
	const char *line;
	size_t n, asked = 0;
	enum rpc_line what;
	if (!server)
		begin();
	if (!len || len > RPC_LINE_MAX)
		return 0;
	server->is_inline = true;
	server->is_initialized = bytes[0] & 4;
	server->version = (enum mcp_version)(bytes[0] % MCP_VERSION_COUNT);
	server->caps = SES_CAP_READ | SES_CAP_EDIT;
	server->max_bytes = 2048;
	rpc_lines_feed(&lines, bytes + 1, len - 1);
	rpc_lines_end(&lines);
	while ((what = rpc_lines_next(&lines, &line, &n)) == RPC_LINE_READY) {
		/* Answers to a batch are at most one for each brace that opens. */
		asked += 1;
		for (size_t i = 0; i < n && *line == '['; i++)
			asked += line[i] == '{' || line[i] == ',';
		mcp_take_line(server, line, n);
	}
	(void)mcp_tell_news(server, 1);
	if (server->out.failed || check_out(&server->out) > asked)
		abort();
	for (size_t i = 0; i < server->subs.cnt; i++)
		free(server->subs.data[i].uri);
	VEC_FREE(&server->subs);
	buf_fini(&server->out);
	rpc_lines_fini(&lines);
	return 0;
}
