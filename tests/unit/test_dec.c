/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over whole functions of this machine's programs: behind each of them the function is well formed, and the interpreter sees it
 * do what the lifted one does.
 */
#include "decomp/dec_judge.h"
#include "lib/analyzed.h"
#include "lift/lift_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SEEDS 4

static unsigned long same_cnt, cut_cnt, func_cnt, refused_cnt, failed_cnt, var_cnt, rec_cnt, made_cnt;
static double seconds;

struct judged {
	struct ir_func *lifted;
	struct dec_opts opts;
	const struct image *im;
	struct dec_callee *callees; /* by function, as far as they were asked for */
	bool *is_known;
};

static bool is_loud;

/* Of functions of the program by their code, with nothing known of what they call. */
static void callee(void *ctx, uint64_t va, struct dec_callee *ret)
{
	struct judged *j = ctx;
	struct arena a = {0};
	struct lift_stats st;
	struct ir_func *f;
	uint32_t loc = space_loc(image_space(j->im), va), func = loc == LOC_NONE ? UINT32_MAX : image_func_starting(j->im, loc);
	if (func == UINT32_MAX)
		return;
	memcpy(ret->may_keep, ret->changes, sizeof(ret->may_keep));
	if (!j->is_known[func]) {
		const struct dec_opts opts = {0};
		struct err *e = lift_image_func(&a, j->im, func, &f, &st);
		if (!e)
			dec_callee_of(f, &opts, ret);
		err_free(e);
		arena_fini(&a);
		j->callees[func] = *ret;
		j->is_known[func] = true;
	}
	*ret = j->callees[func];
}

static bool rodata(void *ctx, uint64_t va, void *out, size_t len)
{
	struct judged *j = ctx;
	const struct space *s = image_space(j->im);
	int seg = space_seg_of_va(s, va);
	return seg >= 0 && !(s->segs[seg].perm & 2) && !s->segs[seg].is_extern && space_read(s, space_loc(s, va), out, len) == len;
}

/* Behind one pass. */
static bool look(void *ctx, unsigned pass, struct ir_func *f)
{
	struct judged *j = ctx;
	struct err *e = ir_check(f);
	char why[160];
	if (e)
		fail_msg("%llx: %s: %s", (unsigned long long)f->va, dec_pass_name((enum dec_pass)pass), e->text);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		enum dec_verdict v = dec_judge(j->lifted, f, &j->opts, seed, why, sizeof(why));
		same_cnt += v == DEC_V_SAME;
		cut_cnt += v == DEC_V_CUT;
		if (v != DEC_V_DIFFERS)
			continue;
		failed_cnt++;
		if (is_loud)
			print_message("%llx: %s: seed %llu: %s\n", (unsigned long long)f->va, dec_pass_name((enum dec_pass)pass),
				      (unsigned long long)seed, why);
		return false;
	}
	return true;
}

static void try_image(const struct image *im)
{
	struct arena a = {0};
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(im, &cnt);
	struct dec_callee *callees = calloc(cnt + (size_t)1, sizeof(*callees));
	bool *is_known = calloc(cnt + (size_t)1, sizeof(*is_known));
	assert_true(callees && is_known);
	for (uint32_t i = 0; i < cnt; i++) {
		struct judged j = {.im = im, .callees = callees, .is_known = is_known};
		struct lift_stats st;
		struct dec_func out;
		int seg = space_seg_of_loc(image_space(im), funcs[i].loc);
		if (seg < 0 || image_space(im)->segs[seg].is_extern)
			continue;
		arena_reset(&a);
		struct err *e = lift_image_func(&a, im, i, &j.lifted, &st);
		if (e)
			fail_msg("%x: %s", funcs[i].loc, e->text);
		j.opts = (struct dec_opts){.callee = callee, .rodata = rodata, .after = getenv("DEC_QUICK") ? NULL : look, .ctx = &j};
		clock_t t = clock();
		e = dec_run(j.lifted, &j.opts, &out);
		seconds += (double)(clock() - t) / CLOCKS_PER_SEC;
		func_cnt++;
		if (e) {
			refused_cnt++;
			if (is_loud)
				print_message("%llx: refused: %s\n", (unsigned long long)j.lifted->va, e->text);
			err_free(e);
			continue;
		}
		var_cnt += out.var_cnt;
		rec_cnt += j.lifted->order_cnt;
		made_cnt += out.f ? out.f->order_cnt : 0;
		const char *show = getenv("DEC_SHOW");
		if (show && strtoull(show, NULL, 16) == j.lifted->va && out.f) {
			struct buf b = {0};
			ir_print(j.lifted, &b);
			buf_add_str(&b, "\n-----\n");
			ir_print(out.f, &b);
			fwrite(b.data, 1, b.len, stderr);
			buf_fini(&b);
		}
	}
	free(callees);
	free(is_known);
	arena_fini(&a);
}

static void test_passes(void **state)
{
	const char *const *paths = *state;
	for (; *paths; paths++) {
		struct analyzed a = {0};
		struct err *e = analyzed_open(*paths, &a);
		if (e)
			fail_msg("%s: %s", *paths, e->text);
		try_image(a.im);
		analyzed_close(&a);
	}
	print_message("%lu functions, %lu refused; runs behind passes: %lu same, %lu cut short, %lu differ; %lu records became %lu, %lu variables; "
		      "%.3f s\n", func_cnt, refused_cnt, same_cnt, cut_cnt, failed_cnt, rec_cnt, made_cnt, var_cnt, seconds);
	assert_int_equal(failed_cnt, 0);
	assert_true(func_cnt > 100 && refused_cnt * 10 < func_cnt);
	assert_true(getenv("DEC_QUICK") || same_cnt > func_cnt);
}

int main(int argc, char **argv)
{
	static const char *const some[] = {"/bin/ls", "/usr/lib/x86_64-linux-gnu/libz.so.1", NULL};
	static const char *const *paths = some;
	is_loud = argc > 1;
	if (argc > 1)
		paths = (const char *const *)(argv + 1);
	const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_passes, (void *)(uintptr_t)paths)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
