/* SPDX-License-Identifier: Apache-2.0 */
/* The typed API on a real program: opening in both ways, snapshots, pages, names, a target that changes. */
#include "session/ops.h"
#include "session/ses_types.h"
#include "session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char work[] = "/tmp/scry-session.XXXXXX";
static char target[128];
static const struct ses_call any = {.caps = ~(uint32_t)0};

static void copy_target(void)
{
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "cp /bin/ls %s", target);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	assert_int_equal(pclose(p), 0);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(work))
		return 1;
	snprintf(target, sizeof(target), "%s/target", work);
	char store[128];
	snprintf(store, sizeof(store), "%s/store", work);
	setenv("SCRY_STORE", store, 1);
	copy_target();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "rm -rf %s", work);
	FILE *p = popen(cmd, "r");
	return p ? pclose(p) : 1;
}

static struct ses *open_target(const struct ses_opts *opts)
{
	struct ses *s = NULL;
	struct err *e = ses_open(target, opts, &s);
	if (e)
		print_message("%s\n", e->text);
	assert_null(e);
	return s;
}

static void test_open_foreground(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct arena a = {0};
	struct ses_info i;
	assert_null(ses_info(sn, &a, &i));
	assert_false(ses_snap_is_preview(sn));
	assert_false(ses_snap_is_pending(sn));
	assert_int_equal(i.sha256.len, 64);
	assert_true(i.functions > 100);
	uint64_t rev = ses_snap_rev(sn);
	assert_true(rev >= 1);
	assert_true(ses_is_mapped(sn, i.main_va));
	ses_snap_put(sn);
	ses_close(s);
	/* Opened again it is the same analysis. */
	s = open_target(&opts);
	sn = ses_snap_get(s);
	assert_int_equal(ses_snap_rev(sn), rev);
	arena_fini(&a);
	ses_snap_put(sn);
	ses_close(s);
}

static void wait_ready(struct ses *s)
{
	struct ses_progress p;
	for (unsigned i = 0; i < 6000; i++) {
		ses_get_progress(s, &p);
		if (p.state == SES_READY || p.state == SES_FAILED)
			break;
		struct pollfd fd = {.fd = ses_event_fd(s), .events = POLLIN};
		uint64_t n;
		if (poll(&fd, 1, 1000) == 1)
			assert_int_equal(read(fd.fd, &n, sizeof(n)), 8);
	}
	assert_int_equal(p.state, SES_READY);
}

static void check_lines(const struct ses_head *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_true(h[i].text.len > 0);
		for (uint32_t k = 0; k < h[i].span_cnt; k++)
			assert_true((uint32_t)h[i].spans[k].off + h[i].spans[k].len <= h[i].text.len);
		assert_true(i == 0 || h[i].va >= h[i - 1].va);
	}
}

static void test_open_background(void **state)
{
	(void)state;
	struct ses_opts opts = {.background = true, .force = true};
	struct ses *s = open_target(&opts);
	assert_true(ses_event_fd(s) >= 0);
	struct ses_snap *first = ses_snap_get(s);
	struct arena a = {0};
	struct ses_info i;
	struct ses_head *h, *b;
	uint32_t n, m;
	assert_null(ses_info(first, &a, &i));
	struct ses_at at = {.va = i.entry, .count = 20};
	assert_null(ses_heads(first, &any, &at, &a, &h, &n));
	assert_int_equal(n, 20);
	check_lines(h, n);
	if (ses_snap_is_preview(first)) {
		assert_int_equal(i.sha256.len, 0);
		assert_int_equal(ses_row_cnt(first), 0);
		at = (struct ses_at){.va = h[n - 1].va, .sub = h[n - 1].sub ? h[n - 1].sub : SES_SUB_ITEM, .count = 5, .back = true};
		assert_null(ses_heads(first, &any, &at, &a, &b, &m));
		assert_int_equal(m, 5);
		assert_true(b[4].va == h[n - 2].va);
		struct ses_page page = {0};
		struct ses_import *imp;
		assert_null(ses_imports(first, &any, &page, &a, &imp));
		assert_true(page.total > 50);
	}
	wait_ready(s);
	struct ses_snap *second = ses_snap_get(s);
	assert_false(ses_snap_is_preview(second));
	assert_false(ses_snap_is_pending(second));
	/* The old snapshot still answers. */
	assert_null(ses_heads(first, &any, &(struct ses_at){.va = i.entry, .count = 3}, &a, &h, &n));
	assert_int_equal(n, 3);
	ses_snap_put(first);
	ses_snap_put(second);
	arena_fini(&a);
	ses_close(s);
}

static void test_close_while_analysing(void **state)
{
	(void)state;
	struct ses_opts opts = {.background = true, .force = true, .no_store = true};
	for (unsigned i = 0; i < 5; i++)
		ses_close(open_target(&opts));
}

struct shared {
	struct ses_snap *sn;
	uint64_t entry;
};

static void *reader(void *arg)
{
	struct shared *sh = arg;
	for (unsigned i = 0; i < 20; i++) {
		struct arena a = {0};
		struct ses_page page = {.filter = i % 2 ? "sub_*" : NULL, .sort = i % 3 ? "-size" : NULL, .limit = 50};
		struct ses_func *f;
		struct ses_head *h;
		uint32_t n;
		struct err *e = ses_functions(sh->sn, &any, &page, &a, &f);
		if (!e)
			e = ses_heads(sh->sn, &any, &(struct ses_at){.va = sh->entry, .count = 100}, &a, &h, &n);
		struct ses_call_edge *g;
		page = (struct ses_page){.limit = 10};
		if (!e)
			e = ses_callgraph(sh->sn, &any, &(struct ses_call_ask){.func_va = UINT64_MAX}, &page, &a, &g);
		arena_fini(&a);
		if (e)
			return e;
	}
	return NULL;
}

static void test_many_readers(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct arena a = {0};
	struct ses_info i;
	struct shared sh = {.sn = ses_snap_get(s)};
	assert_null(ses_info(sh.sn, &a, &i));
	sh.entry = i.entry;
	pthread_t t[4];
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(pthread_create(&t[k], NULL, reader, &sh), 0);
	for (unsigned k = 0; k < 4; k++) {
		void *e;
		assert_int_equal(pthread_join(t[k], &e), 0);
		assert_null(e);
	}
	arena_fini(&a);
	ses_snap_put(sh.sn);
	ses_close(s);
}

static void test_names_resolve_back(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct arena a = {0};
	struct ses_page page = {.limit = UINT32_MAX};
	struct ses_func *f;
	assert_null(ses_functions(sn, &any, &page, &a, &f));
	for (uint32_t i = 0; i < page.cnt; i++) {
		uint64_t va = 0;
		char *name = arena_strndup(&a, f[i].name.s, f[i].name.len);
		struct err *e = ses_resolve(sn, name, &va);
		assert_true(!e || e->kind == ERR_AMBIGUOUS);
		if (!e)
			assert_int_equal(va, f[i].addr);
		err_free(e);
	}
	/* The same for what the listing names. */
	struct ses_head *h;
	uint32_t n;
	assert_null(ses_heads(sn, &any, &(struct ses_at){.va = f[0].addr, .count = 3000}, &a, &h, &n));
	check_lines(h, n);
	uint32_t labels = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (h[i].kind != SES_HEAD_LABEL)
			continue;
		uint64_t va = 0;
		struct err *e = ses_resolve(sn, arena_strndup(&a, h[i].label.s, h[i].label.len), &va);
		if (!e)
			assert_int_equal(va, h[i].va);
		err_free(e);
		labels++;
	}
	assert_true(labels > 20);
	arena_fini(&a);
	ses_snap_put(sn);
	ses_close(s);
}

static void test_rows_and_pages_agree(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct arena a = {0};
	uint64_t rows = ses_row_cnt(sn), step = rows / 97 + 1;
	assert_true(rows > 1000);
	for (uint64_t r = 0; r < rows; r += step) {
		uint64_t va, back;
		struct ses_head *h, *b;
		uint32_t n, m;
		assert_true(ses_va_of_row(sn, r, &va));
		assert_true(ses_row_of(sn, va, &back));
		assert_int_equal(back, r);
		assert_null(ses_heads(sn, &any, &(struct ses_at){.va = va, .count = 40}, &a, &h, &n));
		assert_true(n > 0);
		check_lines(h, n);
		/* Going back from the last line gives the lines before it. */
		struct ses_at at = {.va = h[n - 1].va, .sub = h[n - 1].sub ? h[n - 1].sub : SES_SUB_ITEM, .count = n - 1, .back = true};
		if (n < 2)
			continue;
		assert_null(ses_heads(sn, &any, &at, &a, &b, &m));
		assert_int_equal(m, n - 1);
		for (uint32_t i = 0; i < m; i++) {
			assert_true(b[i].va == h[i].va && b[i].sub == h[i].sub && b[i].row == h[i].row);
			assert_int_equal(b[i].text.len, h[i].text.len);
			assert_memory_equal(b[i].text.s, h[i].text.s, h[i].text.len);
		}
		arena_reset(&a);
	}
	assert_false(ses_va_of_row(sn, rows, &(uint64_t){0}));
	arena_fini(&a);
	ses_snap_put(sn);
	ses_close(s);
}

static void test_cancel_and_deadline(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct arena a = {0};
	atomic_bool stop = true;
	struct ses_call call = {.cancel = &stop, .caps = SES_CAP_READ};
	struct ses_search_ask ask = {.kind = SES_SEARCH_INSN, .what = "*no such thing*", .from_va = 0x4000};
	struct ses_hit *h;
	struct err *e = ses_search(sn, &call, &ask, &a, &h);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_CANCELLED);
	err_free(e);
	call = (struct ses_call){.deadline_ns = 1, .caps = SES_CAP_READ};
	e = ses_search(sn, &call, &ask, &a, &h);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_TIMEOUT);
	err_free(e);
	arena_fini(&a);
	ses_snap_put(sn);
	ses_close(s);
}

/* The hits one by one, each from behind the last, are the hits at once, in both directions. */
static void test_search_goes_on(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct arena a = {0};
	struct ses_hit *all, *one;
	struct ses_search_ask ask = {.kind = SES_SEARCH_INSN, .what = "call*", .limit = 200};
	assert_null(ses_search(sn, NULL, &ask, &a, &all));
	uint32_t cnt = ask.cnt;
	assert_true(cnt > 20);
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_search_ask next = {.kind = SES_SEARCH_INSN, .what = "call*", .limit = 1, .from_va = i ? all[i - 1].addr + 1 : 0};
		assert_null(ses_search(sn, NULL, &next, &a, &one));
		assert_true(next.cnt == 1 && one[0].addr == all[i].addr);
		struct ses_search_ask prev = {.kind = SES_SEARCH_INSN, .what = "call*", .limit = 1, .from_va = all[i].addr, .back = true};
		assert_null(ses_search(sn, NULL, &prev, &a, &one));
		assert_int_equal(prev.cnt, i > 0);
		assert_true(!i || one[0].addr == all[i - 1].addr);
	}
	/* From where nothing is mapped: to the first and to the last of all. */
	uint64_t last = UINT64_MAX;
	for (int k = 0; k < 2; k++) {
		struct ses_search_ask prev = {.kind = SES_SEARCH_INSN, .what = "call*", .limit = 1, .back = true};
		prev.from_va = UINT64_MAX - (uint64_t)k;
		assert_null(ses_search(sn, NULL, &prev, &a, &one));
		assert_true(prev.cnt == 1 && (!k || one[0].addr == last));
		last = one[0].addr;
	}
	struct ses_search_ask none = {.kind = SES_SEARCH_INSN, .what = "call*", .limit = 1, .from_va = last + 1};
	assert_null(ses_search(sn, NULL, &none, &a, &one));
	assert_int_equal(none.cnt, 0);
	arena_fini(&a);
	ses_snap_put(sn);
	ses_close(s);
}

static struct err *ask_op(struct ses_snap *sn, const char *name, const struct ses_call *call, struct buf *out)
{
	struct arena a = {0};
	struct ops_args args;
	struct ops_out o;
	const struct ops_op *op = ops_find(name);
	ops_args_init(&args, op, &a);
	ops_out_init(&o, op, out, true);
	struct ops_req rq = {.sn = sn, .call = call, .args = &args, .arena = &a, .out = &o};
	struct err *e = ops_run(&rq);
	ops_out_fini(&o);
	arena_fini(&a);
	return e;
}

static void test_capabilities(void **state)
{
	(void)state;
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct buf out = {0};
	struct err *e = ask_op(sn, "info", &(struct ses_call){.caps = SES_CAP_EDIT}, &out);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_DENIED);
	err_free(e);
	assert_null(ask_op(sn, "info", &any, &out));
	assert_true(out.len > 100);
	buf_fini(&out);
	ses_snap_put(sn);
	ses_close(s);
}

/* The stored analysis is cut under an open session; opened again it is made anew. */
static void image_is_cut(void)
{
	struct ses_opts opts = {0};
	ses_close(open_target(&opts));
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	char pattern[256];
	glob_t g;
	snprintf(pattern, sizeof(pattern), "%s/store/*/image.*", work);
	assert_int_equal(glob(pattern, 0, NULL, &g), 0);
	assert_int_equal(g.gl_pathc, 1);
	assert_int_equal(truncate(g.gl_pathv[0], 4096), 0);
	globfree(&g);
	struct buf out = {0};
	struct err *e = ask_op(sn, "functions", &any, &out);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_STALE);
	err_free(e);
	ses_snap_put(sn);
	ses_close(s);
	s = open_target(&opts);
	sn = ses_snap_get(s);
	assert_int_equal(ses_snap_rev(sn), 2);
	assert_null(ask_op(sn, "functions", &any, &out));
	buf_fini(&out);
	ses_snap_put(sn);
	ses_close(s);
}

/* First: cmocka sets its own SIGBUS handler before each test, the guard sets its once. */
static void test_target_changes(void **state)
{
	(void)state;
	image_is_cut();
	struct ses_opts opts = {0};
	struct ses *s = open_target(&opts);
	struct ses_snap *sn = ses_snap_get(s);
	struct buf out = {0};
	struct arena a = {0};
	assert_null(ask_op(sn, "heads", &any, &out));
	assert_false(ses_target_changed(s));
	assert_int_equal(truncate(target, 4096), 0);
	assert_true(ses_target_changed(s));
	out.len = 0;
	struct err *e = ask_op(sn, "heads", &any, &out);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_STALE);
	assert_non_null(strstr(e->text, "target_changed"));
	assert_int_equal(out.len, 0);
	err_free(e);
	/* The typed queries read zeros where the file is gone, and live. */
	struct ses_head *h;
	uint32_t n;
	struct ses_page page = {.limit = UINT32_MAX};
	struct ses_string *str;
	assert_null(ses_heads(sn, &any, &(struct ses_at){.va = 0x6000, .count = 500}, &a, &h, &n));
	assert_null(ses_strings(sn, &any, &page, &a, &str));
	uint8_t bytes[64];
	assert_int_equal(ses_bytes(sn, 0x6000, sizeof(bytes), bytes, NULL), sizeof(bytes));
	arena_fini(&a);
	buf_fini(&out);
	ses_snap_put(sn);
	ses_close(s);
	copy_target();
}

/* --- parameters and answers --- */

static void test_args(void **state)
{
	(void)state;
	struct arena a = {0};
	struct ops_args args;
	const struct ops_op *op = ops_find("functions");
	ops_args_init(&args, op, &a);
	const struct ops_param *p = ops_param_find(op, "max-bytes", 9);
	assert_non_null(p);
	assert_ptr_equal(p, ops_param_find(op, "max_bytes", 9));
	assert_ptr_equal(ops_param_find(op, "count", 5), ops_param_find(op, "limit", 5));
	assert_null(ops_param_find(op, "nothing", 7));
	static const char *const bad[] = {"", "x", "-1", "+1", " 1", "1x", "99999999999999999999"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err *e = ops_args_set(&args, p, bad[i]);
		assert_non_null(e);
		assert_int_equal(e->kind, ERR_INVALID);
		err_free(e);
	}
	assert_null(ops_args_set(&args, p, "0x10"));
	assert_int_equal(ops_arg_u64(&args, "max_bytes", 0), 16);
	assert_int_equal(ops_arg_u64(&args, "limit", 7), 7);
	arena_fini(&a);
}

static void test_nearest(void **state)
{
	(void)state;
	assert_string_equal(ops_nearest("functoins"), "functions");
	assert_string_equal(ops_nearest("xref"), "xrefs");
	assert_string_equal(ops_nearest("inof"), "info");
	assert_null(ops_nearest("zzzzzzzz"));
	assert_null(ops_nearest("a"));
}

static void test_escape(void **state)
{
	(void)state;
	static const char in[] = "a\033[31m\n\x80\xc3\xa9\xe2\x80\xae";
	struct buf b = {0};
	ops_escape(&b, in, sizeof(in) - 1);
	static const char want[] = "a\\x1b[31m\\n\\x80\xc3\xa9\\u{202e}";
	assert_int_equal(b.len, sizeof(want) - 1);
	assert_memory_equal(b.data, want, b.len);
	assert_int_equal(ops_text_width("\xe6\xbc\xa2x", 4), 3);
	buf_fini(&b);
}

/* Every operation is whole: help, a handler, columns where it is a list for people, no parameter twice. */
static void test_table(void **state)
{
	(void)state;
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		size_t n = ops_param_cnt(&ops[i]);
		assert_non_null(ops[i].run);
		assert_true(strlen(ops[i].help) > 5);
		assert_true(n <= OPS_PARAM_MAX && ops_column_cnt(&ops[i]) <= 16);
		assert_ptr_equal(ops_find(ops[i].name), &ops[i]);
		for (size_t k = 0; k < n; k++) {
			const struct ops_param *p = &ops[i].params[k];
			assert_ptr_equal(ops_param_find(&ops[i], p->name, strlen(p->name)), p);
			assert_true(strlen(p->help) > 3);
			assert_true(p->type == OPS_FLAG || p->value);
		}
	}
}

static void test_formats(void **state)
{
	static const struct {
		const char *text;
		int args;
		bool is_scan;
	} rows[] = {
		{"", 0, false}, {"100%%", 0, false}, {"%d %s %p", 3, false}, {"%-*.*s|%m", 3, false}, {"%5.3lld%hhx%zu%jd%td", 5, false},
		{"%ls%lc%n", 3, false}, {"%f", -1, false}, {"%Lf", -1, false}, {"%1$d", -1, false}, {"%", -1, false}, {"%l", -1, false},
		{"%q", -1, false}, {"%+'08d % i %#o", 3, false},
		{"%d %*d %lf", 2, true}, {"%[^]x]%[]]%s", 3, true}, {"%[abc", -1, true}, {"%5c%*s%n", 2, true}, {"%ms", 1, true}, {"%Lf", -1, true},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (ses_variadic_format_args(rows[i].text, rows[i].is_scan) != rows[i].args)
			fail_msg("%s takes %d", rows[i].text, ses_variadic_format_args(rows[i].text, rows[i].is_scan));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_target_changes),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_open_foreground),
		cmocka_unit_test(test_open_background),
		cmocka_unit_test(test_close_while_analysing),
		cmocka_unit_test(test_many_readers),
		cmocka_unit_test(test_names_resolve_back),
		cmocka_unit_test(test_rows_and_pages_agree),
		cmocka_unit_test(test_cancel_and_deadline), cmocka_unit_test(test_search_goes_on),
		cmocka_unit_test(test_capabilities),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
