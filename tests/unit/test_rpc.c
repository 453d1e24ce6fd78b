/* SPDX-License-Identifier: Apache-2.0 */
/* Operations asked for in JSON: whose edits they are, what may not be done, how far something is. */
#include "rpc/opcall.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char work[] = "/tmp/scry-rpc.XXXXXX";
static struct ses *target;

static int setup(void **state)
{
	char store[128];
	struct ses_opts opts = {0};
	if (!mkdtemp(work))
		return 1;
	snprintf(store, sizeof(store), "%s/store", work);
	return setenv("SCRY_STORE", store, 1) || ses_open("/bin/ls", &opts, &target);
}

static int teardown(void **state)
{
	char cmd[256];
	ses_close(target);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", work);
	FILE *p = popen(cmd, "r");
	return p ? pclose(p) : 1;
}

/* What the answer, or the kind of the refusal, is. */
struct got {
	struct buf text;
	struct arena arena;
	struct ops_doc doc;
	enum err_kind kind;
	enum rpc_code code;
	bool is_refused;
};

static void got_fini(struct got *g)
{
	buf_fini(&g->text);
	arena_fini(&g->arena);
}

static struct got call_as(const struct ses_call *call, const char *name, const char *params)
{
	struct got g = {0};
	struct ops_doc doc;
	struct ses_snap *sn = ses_snap_get(target);
	struct rpc_ask ask = {.snap = sn, .call = *call, .arena = &g.arena};
	assert_null(ops_doc_parse("params", params, strlen(params), &g.arena, &doc));
	struct err *e = rpc_op_call(&ask, name, &doc, &g.text);
	g.is_refused = e != NULL;
	if (e) {
		g.kind = e->kind;
		g.code = ask.code;
		assert_int_equal(g.text.len, 0);
		err_free(e);
	} else {
		assert_null(ops_doc_parse("answer", g.text.data, g.text.len, &g.arena, &g.doc));
	}
	err_free(ask.status);
	ses_snap_put(sn);
	return g;
}

static void refused(const struct ses_call *call, const char *name, const char *params, enum err_kind kind, enum rpc_code code)
{
	struct got g = call_as(call, name, params);
	assert_true(g.is_refused);
	assert_int_equal(g.kind, kind);
	assert_int_equal(g.code, code);
	got_fini(&g);
}

/* The newest entry of the journal is that author's. */
static void newest_is_by(const char *author, const char *kind)
{
	const struct ses_call reader = {.caps = SES_CAP_READ};
	struct got g = call_as(&reader, "journal", "{}");
	assert_false(g.is_refused);
	const struct ops_doc *items = ops_doc_find(&g.doc, "items");
	assert_true(items && items->cnt);
	const struct ops_doc *last = &items->items[items->cnt - 1];
	assert_string_equal(ops_doc_str(last, "author"), author);
	assert_string_equal(ops_doc_str(last, "author_kind"), kind);
	got_fini(&g);
}

static void test_author(void **state)
{
	const struct ses_call agent = {.caps = SES_CAP_READ | SES_CAP_EDIT, .author = "robot", .author_kind = "agent"};
	const struct ses_call script = {.caps = SES_CAP_READ | SES_CAP_EDIT, .author_kind = "script"};
	struct got g = call_as(&agent, "comment", "{\"addr\":\"entry\",\"text\":\"one\"}");
	assert_false(g.is_refused);
	got_fini(&g);
	newest_is_by("robot", "agent");
	/* Nobody takes another's name, or passes for a person. */
	refused(&agent, "comment", "{\"addr\":\"entry\",\"text\":\"two\",\"author\":\"me\"}", ERR_DENIED, RPC_FAILED);
	refused(&agent, "edit", "{\"ops\":{\"ops\":[{\"op\":\"comment\",\"addr\":\"entry\",\"text\":\"2\"}]},\"author_kind\":\"human\"}", ERR_DENIED,
		RPC_FAILED);
	g = call_as(&agent, "comment", "{\"addr\":\"entry\",\"text\":\"two\",\"author\":\"robot\",\"author_kind\":\"agent\"}");
	assert_false(g.is_refused);
	got_fini(&g);
	g = call_as(&agent, "undo", "{}");
	assert_false(g.is_refused);
	got_fini(&g);
	newest_is_by("robot", "agent");
	/* Who has no name may say one. */
	g = call_as(&script, "comment", "{\"addr\":\"entry\",\"text\":\"three\",\"author\":\"ann\"}");
	assert_false(g.is_refused);
	got_fini(&g);
	newest_is_by("ann", "script");
}

static void test_caps(void **state)
{
	const struct ses_call reader = {.caps = SES_CAP_READ}, editor = {.caps = SES_CAP_READ | SES_CAP_EDIT};
	const struct ses_call runner = {.caps = SES_CAP_READ | SES_CAP_RUN_TARGET};
	char params[256];
	refused(&reader, "comment", "{\"addr\":\"entry\",\"text\":\"x\"}", ERR_DENIED, RPC_FAILED);
	refused(&editor, "call", "{\"func\":\"entry\"}", ERR_DENIED, RPC_FAILED);
	snprintf(params, sizeof(params), "{\"all\":true,\"output\":\"%s/c\"}", work);
	refused(&editor, "decompile", params, ERR_DENIED, RPC_FAILED);
	snprintf(params, sizeof(params), "{\"output\":\"%s/x.json\"}", work);
	refused(&editor, "export", params, ERR_DENIED, RPC_FAILED);
	/* The right to run is not the agreement to run this file, which only a person gives. */
	refused(&runner, "call", "{\"func\":\"entry\",\"yes_run_target\":true}", ERR_DENIED, RPC_FAILED);
	refused(&reader, "no_such_op", "{}", ERR_NOT_FOUND, RPC_NO_METHOD);
	refused(&reader, "info", "{\"nothing\":1}", ERR_INVALID, RPC_BAD_PARAMS);
	for (unsigned i = 0; ses_cap_name(i); i++)
		assert_int_equal(ses_cap_find(ses_cap_name(i)), 1u << i);
	assert_int_equal(ses_cap_find("everything"), 0);
}

static void test_meter(void **state)
{
	struct ses_meter m = {0};
	const struct ses_call call = {.caps = SES_CAP_ALL, .meter = &m};
	struct got g = call_as(&call, "multi", "{\"ops\":[{\"op\":\"info\"},{\"op\":\"segments\"},{\"op\":\"none\"}]}");
	assert_false(g.is_refused);
	assert_int_equal(ops_doc_find(&g.doc, "results")->cnt, 3);
	assert_string_equal(atomic_load(&m.what), "operations");
	assert_int_equal(atomic_load(&m.done), 3);
	assert_int_equal(atomic_load(&m.total), 3);
	got_fini(&g);
	char params[256];
	snprintf(params, sizeof(params), "{\"all\":true,\"output\":\"%s/c\"}", work);
	g = call_as(&call, "decompile", params);
	assert_false(g.is_refused);
	assert_string_equal(atomic_load(&m.what), "functions");
	assert_true(atomic_load(&m.total) > 100);
	assert_int_equal(atomic_load(&m.done), atomic_load(&m.total));
	got_fini(&g);
}

static void test_limits(void **state)
{
	const struct ses_call call = {.caps = SES_CAP_READ, .max_bytes = 2000};
	struct got g = call_as(&call, "functions", "{\"max_bytes\":1000000}");
	assert_false(g.is_refused);
	assert_true(g.text.len < 4000 && ops_doc_find(&g.doc, "next"));
	got_fini(&g);
	g = call_as(&call, "functions", "{\"max_bytes\":500}");
	assert_true(g.text.len < 1500 && ops_doc_find(&g.doc, "next"));
	got_fini(&g);
	const struct ses_call late = {.caps = SES_CAP_READ, .deadline_ns = 1};
	refused(&late, "functions", "{\"filter\":\"*a*\"}", ERR_TIMEOUT, RPC_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_author),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_meter),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
