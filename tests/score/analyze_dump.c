/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analyses a file from its bytes, without a store, and prints what was found. For trying things out
 * and for the score of single stages.
 *
 *   analyze_dump [-j THREADS] [-e] [-n] [-x] [-c] FILE
 *   -e: as if the file had no unwind tables; -n: no functions and tables; -x: references too;
 *   -c: write the image in memory, open it again and check it
 *
 *   F ADDR SOURCE FLAGS SIZE RANGES NAME
 *   X FROM TO KIND
 *   T JUMP TABLE ENTRY GUESSED LOW TARGETS
 *
 * Times of the stages and counts go to stderr, in CPU milliseconds of the whole process.
 */
#include "analysis/analysis.h"
#include "base/file.h"
#include "format/fmt.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

struct run {
	const char *path;
	unsigned threads;
	bool no_unwind, no_lists, with_xrefs, with_check;
	struct timespec last;
	const char *stage;
};

static double ms_since(struct timespec *last)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	double ms = (double)(now.tv_sec - last->tv_sec) * 1e3 +
		    (double)(now.tv_nsec - last->tv_nsec) / 1e6;
	*last = now;
	return ms;
}

static void say_stage(struct run *r, const char *stage)
{
	double ms = ms_since(&r->last);
	if (r->stage && ms >= 0.5)
		fprintf(stderr, "%10.1f ms  %s\n", ms, r->stage);
	r->stage = stage;
}

static void progress(void *ctx, const char *stage, uint64_t done, uint64_t total, uint64_t func_cnt)
{
	struct run *r = ctx;
	(void)done;
	(void)total;
	(void)func_cnt;
	if (!r->stage || strcmp(stage, r->stage))
		say_stage(r, stage);
}

static void print_func(const struct image_data *d, const struct image_func *f)
{
	const struct image_name *best = NULL;
	for (size_t i = 0; i < d->names.cnt; i++)
		if (d->names.data[i].loc == f->loc &&
		    (!best || image_name_rank(&d->names.data[i]) < image_name_rank(best)))
			best = &d->names.data[i];
	printf("F %" PRIx64 " %u %x %u %u %.*s\n", space_va(&d->space, f->loc), f->source, f->flags,
	       f->size_len, f->range_cnt, best ? (int)best->name.len : 0,
	       best ? d->pool.data + best->name.off : "");
}

static void print_lists(const struct run *r, const struct image_data *d)
{
	static const char *const kinds[] = {"call", "jump", "read", "write", "offset"};
	for (size_t i = 0; !r->no_lists && i < d->funcs.cnt; i++)
		print_func(d, &d->funcs.data[i]);
	for (size_t i = 0; r->with_xrefs && i < d->xrefs.cnt; i++) {
		const struct image_xref *x = &d->xrefs.data[i];
		printf("X %" PRIx64 " %" PRIx64 " %s\n", space_va(&d->space, x->from),
		       space_va(&d->space, x->to), kinds[x->kind]);
	}
	for (size_t i = 0; !r->no_lists && i < d->tables.cnt; i++) {
		const struct image_table *t = &d->tables.data[i];
		printf("T %" PRIx64 " %" PRIx64 " %u %u %" PRId64 " ",
		       space_va(&d->space, t->jump_loc), space_va(&d->space, t->table_loc),
		       t->entry_bytes, t->is_guessed, t->low);
		for (uint32_t k = 0; k < t->target_cnt; k++)
			printf("%s%" PRIx64, k ? "," : "",
			       space_va(&d->space, d->targets.data[t->target_first + k]));
		printf("\n");
	}
}

static struct err *check_image(struct run *r, struct image_data *d, const struct file *f)
{
	_cleanup_buf_ struct buf out = {0};
	say_stage(r, "serialize");
	struct err *e = image_serialize(d, &out);
	if (e)
		return e;
	fprintf(stderr, "%zu bytes of image, %zu of file\n", out.len, f->len);
	say_stage(r, "check");
	struct image *im;
	e = image_open_mem(out.data, out.len, f->data, f->len, NULL, &im);
	if (e)
		return e;
	struct findings found = {0};
	image_check(im, &found);
	for (size_t i = 0; i < found.list.cnt; i++)
		fprintf(stderr, "check: %s: %s\n", found.list.data[i].what, found.list.data[i].why);
	findings_fini(&found);
	image_unref(im);
	return NULL;
}

static struct err *analyze(struct run *r, const struct file *f, struct fmt_bin *b,
			   struct image_data *d)
{
	static const uint8_t no_hash[32];
	const struct arch *arch;
	struct err *e = arch_get((enum arch_id)b->machine, &arch);
	if (e)
		return e;
	struct dbg_fdes fdes = {0};
	struct dbg_funcs go = {0};
	say_stage(r, "unwind and Go tables");
	if (!r->no_unwind)
		e = dbg_read_eh_frame(b, &fdes, &b->findings);
	if (!e)
		e = dbg_read_pclntab(b, &go, &b->findings);
	say_stage(r, "image data");
	if (!e)
		e = image_data_from_fmt(b, no_hash, d);
	struct par *par = par_new(r->threads);
	struct analysis_in in = {.arch = arch,
				 .fdes = &fdes,
				 .go_funcs = &go,
				 .par = par,
				 .progress = progress,
				 .ctx = r};
	if (!e)
		e = analysis_run(&in, d);
	say_stage(r, "print");
	fprintf(stderr, "%zu functions, %zu references, %zu tables, %" PRIu64 " instructions\n",
		d->funcs.cnt, d->xrefs.cnt, d->tables.cnt, d->meta.insn_cnt);
	if (!e)
		print_lists(r, d);
	if (!e && r->with_check)
		e = check_image(r, d, f);
	say_stage(r, NULL);
	par_free(par);
	VEC_FREE(&fdes.list);
	VEC_FREE(&go.list);
	arena_fini(&go.arena);
	return e;
}

static struct err *run_file(struct run *r)
{
	struct file *f = NULL;
	struct fmt_bin *b = NULL;
	struct image_data d = {0};
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &r->last);
	r->stage = "format";
	struct err *e = file_open(r->path, &f);
	if (!e)
		e = fmt_open(f->data, f->len, &b);
	if (!e)
		e = analyze(r, f, b, &d);
	image_data_fini(&d);
	fmt_bin_free(b);
	file_close(f);
	return e;
}

int main(int argc, char **argv)
{
	struct run r = {.threads = 0};
	int opt;
	while ((opt = getopt(argc, argv, "j:enxc")) >= 0) {
		switch (opt) {
		case 'j':
			r.threads = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'e':
			r.no_unwind = true;
			break;
		case 'n':
			r.no_lists = true;
			break;
		case 'x':
			r.with_xrefs = true;
			break;
		case 'c':
			r.with_check = true;
			break;
		default:
			return 2;
		}
	}
	if (optind >= argc)
		return 2;
	r.path = argv[optind];
	_cleanup_err_ struct err *e = run_file(&r);
	if (e)
		fprintf(stderr, "%s: %s\n", r.path, e->text);
	struct rusage u;
	if (!getrusage(RUSAGE_SELF, &u))
		fprintf(stderr, "%ld KiB at most\n", u.ru_maxrss);
	return e ? 3 : 0;
}
