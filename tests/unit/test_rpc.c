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

/* --- documents: plain ones are read by a shorter way, which a long one does not go --- */

static bool same_doc(const struct ops_doc *x, const struct ops_doc *y)
{
	bool is_same = x->kind == y->kind && x->num == y->num && x->cnt == y->cnt && x->len == y->len && !x->key == !y->key &&
		       !(x->key && strcmp(x->key, y->key)) && !(x->s && memcmp(x->s, y->s, x->len + 1));
	for (size_t i = 0; is_same && i < x->cnt; i++)
		is_same = same_doc(&x->items[i], &y->items[i]);
	return is_same;
}

static bool both_ways(const char *text, size_t len)
{
	static char padded[5000 + 512];
	struct arena a = {0};
	struct ops_doc one = {0}, two = {0};
	memset(padded, ' ', 5000);
	memcpy(padded + 5000, text, len);
	struct err *e = ops_doc_parse("one", text, len, &a, &one), *f = ops_doc_parse("two", padded, 5000 + len, &a, &two);
	if (!e != !f || (!e && !same_doc(&one, &two)))
		fail_msg("%.*s: read in two ways", (int)len, text);
	bool is_good = !e;
	err_free(e);
	err_free(f);
	arena_fini(&a);
	return is_good;
}

static void test_documents(void **state)
{
	static const char *const texts[] = {
		"{}", " { } ", "{\"a\":1}", "{\"a\" : [ ] , \"b\":{\"c\":\"d\"}}", "{\"a\":[1,2,-3,\"x\",true,false,null,{}]}", "{\"a\":\"\"}",
		"{\"a\":1,\"a\":2}", "{\"a\":01}", "{\"a\":-0}", "{\"a\":0}", "{\"a\":-}", "{\"a\":1.5}", "{\"a\":1e3}",
		"{\"a\":999999999999999999}", "{\"a\":9223372036854775807}", "{\"a\":9223372036854775808}", "{\"a\":-9223372036854775808}",
		"{\"a\":-9223372036854775809}", "{\"id\":1,\"a\":[1e999,-1e999,99999999999999999999999,2]}", "{\"a\":1e99999999",
		"{\"a\":\"\\n\\u00e9\\u0000\"}", "{\"\\u0061\":1,\"a\":2}", "{\"a\":\"\xc3\xa9\"}",
		"{\"a\":\"\xff\"}", "{\"a\":\"\t\"}", "{\"a\":\"\x7f\"}",
		"{,}", "{\"a\":1,}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\" 1}", "{a:1}", "{\"a\":tru}",
		"{\"a\":truee}", "{\"a\":nul", "{\"a\":1", "{\"a",
		"{\"a\":1}}", "{\"a\":1} x", "[]", "1", "", "{\"a\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}", "{\"a\":1\n}", "{\"a\":1\t,\"b\":2\r}",
		"{\"a\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34]}", "{\"a\":1]", "{\"a\":[1}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"heads\",\"params\":{\"addr\":\"main\",\"count\":200,\"back\":true}}"};
	unsigned good = 0, seed = 1;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t len = strlen(texts[i]);
		char mutant[512];
		good += both_ways(texts[i], len);
		/* Each with one byte another, and cut off anywhere. */
		for (size_t k = 0; k < len; k++) {
			both_ways(texts[i], k);
			for (unsigned n = 0; n < 12; n++) {
				seed = seed * 1103515245 + 12345;
				memcpy(mutant, texts[i], len);
				mutant[k] = "{}[]\",:0-9e t\\\n\0x"[seed >> 16 & 15];
				good += both_ways(mutant, len);
			}
		}
		both_ways("{\"a\0b\":1}", 9);
	}
	assert_true(good > 100);
	/* A number out of every range is no number a parameter takes, and the rest is read. */
	struct arena a = {0};
	struct ops_doc doc = {0};
	static const char large[] = "{\"id\":7,\"a\":[1e999,-99999999999999999999,3],\"b\":1.5}";
	assert_null(ops_doc_parse("large", large, sizeof(large) - 1, &a, &doc));
	assert_int_equal(ops_doc_find(&doc, "id")->num, 7);
	const struct ops_doc *list = ops_doc_find(&doc, "a");
	assert_true(list->cnt == 3 && list->items[0].kind == OPS_DOC_OTHER && list->items[1].kind == OPS_DOC_OTHER && list->items[2].num == 3);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_author),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_meter),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_documents),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
