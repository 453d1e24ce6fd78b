/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of programs the lifter lifts by hand: every function the analysis finds in each FILE, lifted and verified.
 *
 *   lift_cover [-v] FILE...
 *
 * One line a file: functions, instructions, how many of them took the generic path or were no instruction, share lifted by hand
 * weighted by how often each occurs, CPU time of lifting. Then the sum, and the mnemonics left to the generic path, most
 * frequent first. -v: functions whose IR the verifier refuses, or that could not be lifted, one a line (they are
 * counted in any case). Exit 1 when there is one.
 */
#include "lib/analyzed.h"
#include "lift/lift_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tally {
	uint64_t funcs, insns, generic, bad, refused, unbalanced, records;
	double ms;
};

#define NAME_CAP 4096
struct name {
	uint64_t cnt;
	char text[32];
};
static struct name names[NAME_CAP];
static unsigned name_cnt;
static bool is_verbose;

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void count_name(const char *name)
{
	for (unsigned i = 0; i < name_cnt; i++) {
		if (!strcmp(names[i].text, name)) {
			names[i].cnt++;
			return;
		}
	}
	if (name_cnt == NAME_CAP)
		return;
	snprintf(names[name_cnt].text, sizeof(names->text), "%s", name);
	names[name_cnt++].cnt = 1;
}

static int by_cnt(const void *a, const void *b)
{
	uint64_t x = ((const struct name *)a)->cnt, y = ((const struct name *)b)->cnt;
	return x > y ? -1 : x < y;
}

static void lift_all(const char *path, const struct image *im, struct tally *t)
{
	struct arena a = {0};
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		struct lift_stats st = {0};
		struct ir_func *f;
		int seg = space_seg_of_loc(image_space(im), funcs[i].loc);
		if (seg < 0 || image_space(im)->segs[seg].is_extern)
			continue;
		double start = now_ms();
		arena_reset(&a);
		struct err *e = lift_image_func(&a, im, i, &f, &st);
		t->ms += now_ms() - start;
		if (!e) {
			for (uint32_t k = 0; k < f->intrin_cnt; k++)
				count_name(f->intrins[k].mnemonic);
			t->records += f->rec_cnt;
			e = ir_check(f);
		}
		t->funcs++;
		t->insns += st.insn_cnt;
		t->generic += st.generic_cnt;
		t->bad += st.bad_cnt;
		t->unbalanced += st.x87_differs;
		t->refused += e != NULL;
		if (e && is_verbose)
			printf("%s: %llx: %s\n", path, (unsigned long long)space_va(image_space(im), funcs[i].loc), e->text);
		err_free(e);
	}
	arena_fini(&a);
}

static void print_tally(const char *name, const struct tally *t)
{
	uint64_t by_hand = t->insns - t->generic - t->bad;
	printf("%-44s %7llu functions %9llu instructions %7llu generic %5llu bad %8.3f %% by hand %8.1f ms %5.1f records/insn %llu refused"
	       " %llu x87 open\n",
	       name, (unsigned long long)t->funcs, (unsigned long long)t->insns, (unsigned long long)t->generic,
	       (unsigned long long)t->bad, t->insns ? 100.0 * (double)by_hand / (double)t->insns : 0.0, t->ms,
	       t->insns ? (double)t->records / (double)t->insns : 0.0, (unsigned long long)t->refused,
	       (unsigned long long)t->unbalanced);
}

static void add_tally(struct tally *sum, const struct tally *t)
{
	sum->funcs += t->funcs;
	sum->insns += t->insns;
	sum->generic += t->generic;
	sum->bad += t->bad;
	sum->refused += t->refused;
	sum->unbalanced += t->unbalanced;
	sum->records += t->records;
	sum->ms += t->ms;
}

static struct err *cover(const char *path, struct tally *sum)
{
	struct tally t = {0};
	struct analyzed a = {0};
	struct err *e = analyzed_open(path, &a);
	if (!e) {
		lift_all(path, a.im, &t);
		print_tally(path, &t);
		add_tally(sum, &t);
	}
	analyzed_close(&a);
	return e;
}

int main(int argc, char **argv)
{
	struct tally sum = {0};
	int first = 1;
	if (argc > 1 && !strcmp(argv[1], "-v")) {
		is_verbose = true;
		first = 2;
	}
	for (int i = first; i < argc; i++) {
		struct err *e = cover(argv[i], &sum);
		if (e)
			printf("%s: left out: %s\n", argv[i], e->text);
		err_free(e);
	}
	print_tally("all", &sum);
	qsort(names, name_cnt, sizeof(names[0]), by_cnt);
	for (unsigned i = 0; i < name_cnt && i < 100; i++)
		printf("%s %llu%s", names[i].text, (unsigned long long)names[i].cnt, i % 12 == 11 || i + 1 == name_cnt ? "\n" : ", ");
	return sum.refused > 0;
}
