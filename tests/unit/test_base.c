/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/cur.h"
#include "base/err.h"
#include "base/file.h"
#include "base/finding.h"
#include "base/glob.h"
#include "base/json.h"
#include "base/map.h"
#include "base/md5.h"
#include "base/par.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t rng_state = 0x2545f4914f6cdd1d;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static void test_err_texts(void **state)
{
	struct err *e = err_new(ERR_BAD_INPUT, "bad %s", "magic");
	e = err_prefix(e, "file %d", 7);
	e = err_fix(e, "use another");
	assert_string_equal(e->text, "file 7: bad magic");
	assert_string_equal(e->fix, "use another");
	assert_int_equal(err_exit_status(e->kind), 3);
	err_free(e);
	e = err_prefix(&err_not_found, "name x");
	assert_string_equal(e->text, "name x: not found");
	assert_string_equal(err_not_found.text, "not found");
	err_free(e);
	e = err_os(ENOENT, "/x");
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	assert_null(err_prefix(NULL, "x"));
}

static void test_arena_limits(void **state)
{
	struct arena a;
	arena_init(&a, 1000);
	assert_non_null(arena_alloc(&a, 900));
	assert_null(arena_alloc(&a, 200));
	assert_null(arena_array(&a, SIZE_MAX / 2, 4));
	arena_reset(&a);
	char *s = arena_printf(&a, "%d-%s", 12, "ab");
	assert_string_equal(s, "12-ab");
	assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
	arena_fini(&a);
}

static void test_cur_bounds(void **state)
{
	const uint8_t bytes[] = {1, 2, 3, 4, 0xe5, 0x8e, 0x26, 0x9b, 0xf1, 0x59, 'h', 'i', 0, 'x'};
	struct cur c = cur_make(bytes, sizeof(bytes), false);
	assert_int_equal(cur_u32(&c), 0x04030201);
	assert_int_equal(cur_uleb(&c), 624485);
	assert_int_equal(cur_sleb(&c), -624485);
	size_t len;
	const char *s = cur_str(&c, &len);
	assert_string_equal(s, "hi");
	assert_int_equal(len, 2);
	assert_null(cur_str(&c, &len));
	assert_true(c.failed);
	assert_int_equal(cur_u64(&c), 0);
	c = cur_make(bytes, sizeof(bytes), true);
	assert_int_equal(cur_u16(&c), 0x0102);
	struct cur sub = cur_sub(&c, 10, UINT64_MAX);
	assert_true(sub.failed);
	const uint8_t top[] = {0, 0, 0, 0x80};
	assert_true(load_u32(top, false) == 0x80000000u && (uint64_t)load_u32(top, false) == 0x80000000u);
	const uint8_t long_leb[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
	c = cur_make(long_leb, sizeof(long_leb), false);
	cur_uleb(&c);
	assert_true(c.failed);
	c = cur_make(NULL, 0, false);
	assert_null(cur_str(&c, &len));
	assert_true(c.failed);
	c = cur_make(NULL, 0, false);
	sub = cur_sub(&c, 0, 0);
	assert_null(cur_bytes(&sub, 0));
	assert_true(!sub.failed && !c.failed);
}

static void test_buf_and_json(void **state)
{
	struct buf b = {0};
	struct json j = json_make(&b);
	json_obj(&j);
	json_key(&j, "addr");
	json_addr(&j, 0x401136);
	json_key(&j, "text");
	json_strn(&j, "a\"\\\n\x01\xff\xc3\xa9\x7f\xc2\x80\xc2\x9f\xc2\xa0", 15);
	json_key(&j, "list");
	json_arr(&j);
	json_i64(&j, INT64_MIN);
	json_u64(&j, UINT64_MAX);
	json_bool(&j, true);
	json_null(&j);
	json_hex(&j, (const uint8_t *)"\x48\x89", 2);
	json_end_arr(&j);
	json_end_obj(&j);
	buf_add_ch(&b, 0);
	assert_string_equal(b.data, "{\"addr\":\"0x401136\",\"text\":\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa9\\u007f\\u0080\\u009f\xc2\xa0\","
				    "\"list\":[-9223372036854775808,18446744073709551615,true,null,\"4889\"]}");
	b.len = 0;
	buf_add_hex(&b, 0, 1);
	buf_add_hex(&b, UINT64_MAX, 1);
	buf_add_hex(&b, 5, 4);
	buf_add_ch(&b, 0);
	assert_string_equal(b.data, "0ffffffffffffffff0005");
	buf_fini(&b);
}

static void test_bits_against_counting(void **state)
{
	enum { N = 5000 };
	uint64_t w[(N + 63) / 64] = {0};
	uint32_t rank[N / BITS_RANK_SPAN + 2];
	for (int i = 0; i < 700; i++)
		bits_set(w, rng() % N);
	bits_set_range(w, 1000, 1100);
	bits_clear_range(w, 1050, 1300);
	bits_rank_build(w, N, rank);
	uint64_t seen = 0;
	for (uint64_t i = 0; i < N; i++) {
		assert_int_equal(bits_rank(w, rank, N, i), seen);
		if (bits_get(w, i)) {
			assert_int_equal(bits_select(w, rank, N, seen), i);
			seen++;
		}
	}
	assert_int_equal(bits_rank(w, rank, N, N), seen);
	assert_int_equal(bits_select(w, rank, N, seen), N);
	assert_int_equal(bits_next(w, 1050, 1300), 1300);
	assert_int_equal(bits_prev(w, 1050, 1300), 1300);
	assert_int_equal(bits_prev(w, 1000, 1100), 1049);
	assert_int_equal(bits_next(w, 999, 1100), bits_get(w, 999) ? 999 : 1000);
}

static void test_map_holds_all(void **state)
{
	_cleanup_map_ struct map m = {0};
	for (uint32_t i = 0; i < 20000; i++)
		assert_true(map_put(&m, (uint64_t)i * 0x10001, i));
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t v;
		assert_true(map_find(&m, (uint64_t)i * 0x10001, &v));
		assert_int_equal(v, i);
	}
	uint32_t v;
	assert_false(map_find(&m, 5, &v));
	assert_int_equal(m.cnt, 20000);
}

static void add_range(void *ctx, unsigned worker, size_t from, size_t to)
{
	atomic_uint *hits = ctx;
	for (size_t i = from; i < to; i++)
		atomic_fetch_add(&hits[i], 1);
}

static void test_par_runs_each_once(void **state)
{
	static atomic_uint hits[10000];
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct par *p = par_new(threads);
		assert_non_null(p);
		for (int round = 0; round < 20; round++)
			par_for(p, 10000, 7, add_range, hits);
		par_free(p);
	}
	for (int i = 0; i < 10000; i++)
		assert_int_equal(hits[i], 80);
}

static void test_utf8_forms(void **state)
{
	uint32_t cp;
	assert_int_equal(utf8_next("\xe2\x82\xac", 3, &cp), 3);
	assert_int_equal(cp, 0x20ac);
	assert_int_equal(utf8_next("\xc0\x80", 2, &cp), 0);
	assert_int_equal(utf8_next("\xed\xa0\x80", 3, &cp), 0);
	assert_int_equal(utf8_next("\xf4\x90\x80\x80", 4, &cp), 0);
	assert_int_equal(utf8_next("\xe2\x82", 2, &cp), 0);
	for (uint32_t want = 0; want < 0x110000; want += 37) {
		char out[4];
		size_t n = utf8_put(want, out);
		if (want >= 0xd800 && want <= 0xdfff)
			continue;
		assert_int_equal(utf8_next(out, n, &cp), n);
		assert_int_equal(cp, want);
	}
}

/* Eight bytes are looked at together: each byte at each place among them, and behind others that end a run. */
static void test_utf8_plain(void **state)
{
	(void)state;
	char text[33];
	for (unsigned ch = 0; ch < 256; ch++) {
		bool is_plain = ch >= 0x20 && ch < 0x7f && ch != '"' && ch != '\\';
		for (size_t at = 0; at < sizeof(text); at++) {
			memset(text, 'a' + (int)(at % 26), sizeof(text));
			text[at] = (char)ch;
			assert_int_equal(utf8_plain_len(text, sizeof(text)), is_plain ? sizeof(text) : at);
			assert_int_equal(utf8_plain_len(text, at), at);
			if (at + 1 < sizeof(text))
				text[at + 1] = '"';
			assert_int_equal(utf8_plain_len(text, sizeof(text)), is_plain ? at + 1 : at);
		}
	}
	assert_int_equal(utf8_plain_len(text, 0), 0);
}

static bool glob(const char *p, const char *s)
{
	return glob_match(p, strlen(p), s, strlen(s), true);
}

static void test_glob(void **state)
{
	assert_true(glob("exec", "do_Execute"));
	assert_true(glob("*exec", "do_exec"));
	assert_false(glob("*exec", "do_execute"));
	assert_true(glob("a*b?c*", "aXXbYc"));
	assert_false(glob("a*b?c", "ab"));
	assert_true(glob("", "anything"));
	assert_true(glob("*", ""));
}

static void test_findings_are_bounded(void **state)
{
	struct findings f = {0};
	for (int i = 0; i < FINDING_MAX + 5; i++)
		finding_add(&f, FINDING_WARNING, 4, "table", "entry %d is off", i);
	assert_int_equal(f.list.cnt, FINDING_MAX);
	assert_int_equal(f.dropped_cnt, 5);
	assert_string_equal(f.list.data[3].why, "entry 3 is off");
	findings_fini(&f);
}

static void test_file_is_guarded(void **state)
{
	char dir[] = "/tmp/scry-unit-XXXXXX";
	assert_non_null(mkdtemp(dir));
	char path[64];
	snprintf(path, sizeof(path), "%s/f", dir);
	static uint8_t block[3 * 4096];
	memset(block, 7, sizeof(block));
	assert_null(file_write_atomic(path, block, sizeof(block)));
	struct file *f;
	assert_null(file_open(path, &f));
	assert_int_equal(f->len, sizeof(block));
	assert_false(file_has_changed(f));
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(f->data[0], 7);
	assert_int_equal(((volatile const uint8_t *)f->data)[2 * 4096], 0); /* would be SIGBUS */
	assert_true(guard_was_hit(f->view));
	assert_true(file_has_changed(f));
	file_close(f);
	unlink(path);
	struct err *e = file_open(dir, &f);
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	e = file_open(path, &f);
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	rmdir(dir);
}

#define HOLE_LEN 8192u
#define HOLE_CNT 5u

struct filler {
	struct file *f;
	int fd;
	size_t order[HOLE_CNT], cnt; /* blocks in the order in which they were asked for */
	size_t never;		     /* which does not come */
	atomic_bool is_over;
};

/* Writes blocks as they are asked for, each byte its block's number and one. */
static void *fill_holes(void *arg)
{
	struct filler *w = arg;
	while (!atomic_load(&w->is_over)) {
		uint8_t bytes[HOLE_LEN];
		size_t i = holes_next(w->f->holes);
		if (i == SIZE_MAX) {
			holes_idle(w->f->holes, 20);
			continue;
		}
		w->order[w->cnt++] = i;
		if (i == w->never)
			break;
		memset(bytes, (int)i + 1, sizeof(bytes));
		size_t len = MIN(HOLE_LEN, w->f->len - i * HOLE_LEN);
		assert_int_equal(pwrite(w->fd, bytes, len, (off_t)(i * HOLE_LEN)), len);
		holes_fill(w->f->holes, i);
	}
	holes_end(w->f->holes, false);
	return NULL;
}

static void test_holes_are_waited_for(void **state)
{
	char path[] = "/tmp/scry-unit-XXXXXX";
	int fd = mkstemp(path);
	uint64_t len = (HOLE_CNT - 1) * HOLE_LEN + 100;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	struct filler w = {.fd = fd, .never = 3};
	assert_null(file_open_holes(fd, "coming", len, HOLE_LEN, &w.f));
	struct holes *h = w.f->holes;
	assert_false(holes_wait(h, 0, 1, 0));
	assert_int_equal(holes_next(h), 0);
	assert_int_equal(holes_next(h), SIZE_MAX);
	holes_restart(h); /* as if the link had been lost */
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, fill_holes, &w), 0);
	const volatile uint8_t *data = w.f->data;
	assert_int_equal(data[2 * HOLE_LEN + 5], 3); /* waits */
	assert_int_equal(data[len - 1], 5);
	assert_true(holes_wait(h, HOLE_LEN - 1, 2, UINT_MAX));
	assert_int_equal(holes_have_len(h), 3 * HOLE_LEN + 100);
	assert_int_equal(data[HOLE_LEN], 2);
	assert_false(file_has_changed(w.f));
	assert_false(holes_was_hit(h));
	/* What is not there in time is not waited for; what never comes is said. */
	assert_false(holes_wait(h, 0, len, UINT_MAX));
	assert_true(holes_is_over(h));
	assert_int_equal(data[3 * HOLE_LEN], 0);
	assert_true(holes_was_hit(h) && file_has_changed(w.f));
	pthread_join(thread, NULL);
	assert_int_equal(w.cnt, 5);
	assert_int_equal(w.order[0], 0);
	assert_int_equal(w.order[1], 2);
	assert_int_equal(w.order[2], 4);
	file_close(w.f);
	/* All of it comes by another way. */
	assert_null(file_open_holes(fd, "coming", len, HOLE_LEN, &w.f));
	holes_end(w.f->holes, true);
	assert_int_equal(w.f->data[HOLE_LEN], 2);
	assert_null(file_settle(w.f));
	assert_false(file_has_changed(w.f));
	assert_int_equal(pwrite(fd, "x", 1, (off_t)len), 1);
	assert_true(file_has_changed(w.f));
	file_close(w.f);
	close(fd);
}

/* The suite of RFC 1321 (A.5), given in pieces of every length. */
static void test_md5_is_the_rfcs(void **state)
{
	static const struct {
		const char *text, *hex;
	} suite[] = {
		{"", "d41d8cd98f00b204e9800998ecf8427e"},
		{"abc", "900150983cd24fb0d6963f7d28e17f72"},
		{"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"},
		{"12345678901234567890123456789012345678901234567890123456789012345678901234567890", "57edf4a22be3c955ac49da2e2107b67a"},
	};
	for (size_t i = 0; i < ARRAY_LEN(suite); i++) {
		for (size_t step = 1; step <= 81; step++) {
			size_t len = strlen(suite[i].text);
			struct md5 m;
			uint8_t sum[16];
			struct buf hex = {0};
			md5_begin(&m);
			for (size_t at = 0; at < len; at += step)
				md5_add(&m, suite[i].text + at, MIN(step, len - at));
			md5_end(&m, sum);
			buf_add_hexbytes(&hex, sum, sizeof(sum));
			assert_int_equal(hex.len, 32);
			assert_memory_equal(hex.data, suite[i].hex, 32);
			buf_fini(&hex);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_texts),
		cmocka_unit_test(test_arena_limits),
		cmocka_unit_test(test_cur_bounds),
		cmocka_unit_test(test_buf_and_json),
		cmocka_unit_test(test_bits_against_counting),
		cmocka_unit_test(test_map_holds_all),
		cmocka_unit_test(test_md5_is_the_rfcs),
		cmocka_unit_test(test_par_runs_each_once),
		cmocka_unit_test(test_utf8_forms),
		cmocka_unit_test(test_utf8_plain),
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_findings_are_bounded),
		cmocka_unit_test(test_file_is_guarded),
		cmocka_unit_test(test_holes_are_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
