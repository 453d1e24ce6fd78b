/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a live trace: over the pipe, in the ring, through the filter. The process that traces is this test, called again. */
#include "session/ses_live.h"

#include "base/buf.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static struct ses_text text(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

/* Row i of the process that pretends to trace: every third failed, every fifth is of another thread, every hundredth a finding. */
static void put_row(unsigned i, struct buf *out)
{
	char args[64];
	static const struct ses_live_frame frames[2] = {
		{.module = {"/lib/libc.so.6", 14}, .func = {"__write", 7}, .off = 0x1000, .func_off = 4},
		{.module = {"/bin/prog", 9}, .func = {"main", 4}, .off = 0x2000, .func_off = 8, .is_guess = true}};
	snprintf(args, sizeof(args), "(%u, \"text %u\")", i, i);
	struct ses_live_row r = {.kind = i % 100 == 99 ? SES_LIVE_FINDING : SES_LIVE_CALL, .is_error = i % 3 == 0, .classes = i % 2 ? 1 : 2,
				 .pid = 7, .tid = i % 5 ? 7 : 8, .time = i, .ns = 5, .comm = text("prog"), .name = text(i % 2 ? "write" : "close"),
				 .args = text(args), .result = text(i % 3 ? "0" : "-1 EBADF"), .frames = frames, .frame_cnt = 2, .site = 1};
	ses_live_put(&r, out);
}

/* trace-rows N [stay|die|rubbish] */
static int pretend(int argc, char **argv)
{
	struct buf out = {0};
	struct ses_live_row end = {.kind = SES_LIVE_END, .args = text("over")};
	bool dies = argc > 1 && !strcmp(argv[1], "die");
	for (unsigned i = 0; argc > 0 && i < (unsigned)strtoul(argv[0], NULL, 10); i++)
		put_row(i, &out);
	if (argc > 1 && !strcmp(argv[1], "rubbish"))
		buf_add(&out, "\1\0\0\0rubbish", 11);
	else if (argc == 1)
		ses_live_put(&end, &out);
	for (size_t at = 0; at < out.len;) {
		ssize_t n = write(1, out.data + at, out.len - at);
		if (n <= 0)
			return 1;
		at += (size_t)n;
	}
	while (argc > 1 && !dies)
		pause();
	return 0;
}

static struct ses_live *begin(const char *cnt, const char *how, uint32_t rows_max, int event_fd)
{
	const char *words[] = {cnt, how, NULL};
	struct ses_live_opts o = {.words = words, .event_fd = event_fd, .rows_max = rows_max};
	struct ses_live *l = NULL;
	assert_null(ses_live_start(&o, &l));
	return l;
}

static struct ses_live_state state_of(struct ses_live *l)
{
	struct ses_live_state st;
	ses_live_get_state(l, &st);
	return st;
}

/* Until so many events came and, with `ends`, it ended. */
static void wait_for(struct ses_live *l, uint64_t events, bool ends)
{
	while (state_of(l).events < events || (ends && state_of(l).is_running)) {
		ses_live_has_news(l);
		ses_live_wait(l, 50);
	}
}

static struct ses_live_row row_at(struct ses_live *l, uint64_t off, struct arena *a)
{
	struct ses_live_row r = {0};
	assert_int_equal(ses_live_rows(l, off, 1, a, &r), 1);
	return r;
}

static void test_wire(void **state)
{
	struct buf out = {0};
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX];
	struct ses_live_row r;
	put_row(3, &out);
	const uint8_t *bytes = (const uint8_t *)out.data;
	assert_int_equal(ses_live_parse(bytes, out.len, frames, &r), out.len);
	assert_true(r.is_error && r.pid == 7 && r.frame_cnt == 2 && r.site == 1 && r.frames[1].is_guess);
	assert_memory_equal(r.frames[1].func.s, "main", 4);
	assert_memory_equal(r.result.s, "-1 EBADF", 8);
	for (size_t n = 0; n < out.len; n++)
		assert_int_equal(ses_live_parse(bytes, n, frames, &r), 0);
	/* Whatever a byte becomes, what is given lies within. */
	for (size_t i = 0; i < out.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			uint8_t *copy = malloc(out.len);
			memcpy(copy, bytes, out.len);
			copy[i] ^= (uint8_t)(1 << bit);
			size_t n = ses_live_parse(copy, out.len, frames, &r);
			if (n == out.len) {
				assert_true((const uint8_t *)r.args.s >= copy && (const uint8_t *)r.args.s + r.args.len <= copy + n);
				assert_true(r.frame_cnt <= SES_LIVE_FRAMES_MAX);
			}
			free(copy);
		}
	}
	buf_fini(&out);
}

static void test_filter(void **state)
{
	static const struct { const char *filter; uint64_t left; } cases[] = {
		{"", 1001}, {"error", 335}, {"!error", 667}, {"pid=8", 201}, {"call=write,close", 991}, {"call=write", 491}, {"finding", 11},
		{"\"text 99", 20}, {"*99\")", 11}, {"error pid=8", 68}, {"comm=PRO", 1001}, {"main", 1001}, {"libc.so", 1}, {"%file", 501},
		{"write !EBADF", 334}};
	struct arena a = {0};
	struct ses_live *l = begin("1000", NULL, 0, -1);
	wait_for(l, 1000, true);
	assert_false(state_of(l).is_bad);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_null(ses_live_filter(l, cases[i].filter));
		if (state_of(l).shown != cases[i].left)
			fail_msg("%s: %llu", cases[i].filter, (unsigned long long)state_of(l).shown);
	}
	struct err *e = ses_live_filter(l, "%nothing");
	assert_int_equal(e->kind, ERR_INVALID);
	err_free(e);
	assert_int_equal(state_of(l).shown, 334); /* as it was */
	assert_null(ses_live_filter(l, "pid=8"));
	assert_int_equal(row_at(l, 2, &a).id, 11);
	assert_int_equal(ses_live_index(l, 11), 2);
	assert_int_equal(ses_live_index(l, 7), 2);
	uint64_t at;
	assert_true(ses_live_find(l, "text 100", 0, false, &at) && at == 20);
	assert_true(ses_live_find(l, "text 5\"", 20, true, &at) && at == 1);
	assert_false(ses_live_find(l, "text 5\"", 2, false, &at));
	arena_fini(&a);
	ses_live_free(l);
}

static void test_ring(void **state)
{
	struct arena a = {0};
	struct ses_live *l = begin("1000", NULL, 100, -1);
	wait_for(l, 1000, true);
	struct ses_live_state st = state_of(l);
	assert_int_equal(st.events, 1000);
	assert_int_equal(st.kept, 100);
	assert_int_equal(st.dropped, 901);
	assert_int_equal(st.gone, 901);
	assert_int_equal(row_at(l, 0, &a).id, 902);
	assert_null(ses_live_filter(l, "error"));
	assert_int_equal(row_at(l, 0, &a).id, 904); /* number 903 */
	struct ses_live_row last = row_at(l, state_of(l).shown - 1, &a);
	assert_int_equal(last.kind, SES_LIVE_END);
	arena_fini(&a);
	ses_live_free(l);
}

static void test_pause(void **state)
{
	struct arena a = {0};
	struct ses_live *l = begin("50", "stay", 100, -1);
	wait_for(l, 50, false);
	ses_live_pause(l, true);
	assert_int_equal(state_of(l).shown, 50);
	ses_live_stop(l);
	wait_for(l, 50, true); /* its end is kept behind what is shown */
	assert_int_equal(state_of(l).shown, 50);
	ses_live_pause(l, false);
	assert_int_equal(state_of(l).shown, 51);
	arena_fini(&a);
	ses_live_free(l);
}

static void test_ends(void **state)
{
	static const char *const how[] = {"die", "rubbish"};
	struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		struct ses_live *l = begin("10", how[i], 0, -1);
		wait_for(l, 10, true);
		struct ses_live_state st = state_of(l);
		assert_true(st.is_bad);
		assert_int_equal(row_at(l, 10, &a).kind, SES_LIVE_END);
		ses_live_free(l);
	}
	arena_fini(&a);
}

/* Who looks is told once, and not again before it has looked; without news nobody is. */
static void test_tells(void **state)
{
	uint64_t cnt;
	int fd = eventfd(0, EFD_NONBLOCK);
	struct ses_live *l = begin("500", "stay", 0, fd);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 60000), 1);
	wait_for(l, 500, false);
	while (read(fd, &cnt, sizeof(cnt)) > 0)
		;
	ses_live_has_news(l);
	assert_false(ses_live_has_news(l));
	ses_live_free(l);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "trace-rows"))
		return pretend(argc - 2, argv + 2);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire), cmocka_unit_test(test_filter), cmocka_unit_test(test_ring),
					   cmocka_unit_test(test_pause), cmocka_unit_test(test_ends), cmocka_unit_test(test_tells)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
