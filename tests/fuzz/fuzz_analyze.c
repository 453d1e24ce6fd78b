/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything from a file's bytes to its image: format, unwind tables, code, data, writing, reading
 * back. What opens must give an image that its own check finds nothing wrong with, whatever the
 * file says about itself, and twice the same one on one thread and on three.
 */
#include "analysis/analysis.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (256u << 10)

static void must_be_null(struct err *e, const char *what)
{
	if (!e)
		return;
	fprintf(stderr, "%s: %s\n", what, e->text ? e->text : "?");
	abort();
}

#define STATED_MAX 24

/* What a journal might hold about the file: made of the file's own last bytes, so that the fuzzer can change it. */
struct stated {
	struct analysis_item items[STATED_MAX];
	struct analysis_piece pieces[STATED_MAX];
	struct analysis_func_flags flags[STATED_MAX];
	struct analysis_switch switches[STATED_MAX];
	struct analysis_stated all;
};

static uint64_t near_va(const struct fmt_bin *b, uint64_t n)
{
	const struct fmt_segment *s = &b->segments.data[n % b->segments.cnt];
	return n >> 60 ? s->va + (n >> 8 & 0xffff) % s->mem_len : n;
}

static void read_stated(const struct fmt_bin *b, const uint8_t *bytes, size_t len, struct stated *ret)
{
	enum { STEP = 24 };
	*ret = (struct stated){0};
	for (size_t i = 0; i < STATED_MAX && b->segments.cnt && len >= (i + 1) * STEP; i++) {
		uint64_t n[3];
		memcpy(n, bytes + len - (i + 1) * STEP, STEP);
		uint64_t va = near_va(b, n[0]), to = near_va(b, n[1]);
		ret->items[i] = (struct analysis_item){va, n[2] >> 63 ? n[2] : n[2] & 0xff, (uint32_t)(n[2] >> 8 & 0x1f), (uint8_t)(n[0] & 7),
						       (uint8_t)(n[1] & 15), (uint8_t)(n[1] >> 4 & 7), n[1] >> 8 & 1};
		ret->pieces[i] = (struct analysis_piece){va, i % 2 ? va : to, n[2] & 0x3ff};
		ret->flags[i] = (struct analysis_func_flags){to, va, (uint32_t)(n[2] & 15)};
		ret->switches[i] = (struct analysis_switch){va, to, n[2] >> 40 & 1 ? va : 0, (uint32_t)(n[2] >> 16 & 0xfff),
							    (uint8_t)(1u << (n[2] >> 30 & 3)), (uint8_t)(n[2] >> 33 & 3), n[2] >> 36 & 1, 0};
		ret->all = (struct analysis_stated){ret->items, i + 1, ret->pieces, i + 1, ret->flags, i + 1, ret->switches, i + 1};
	}
}

struct facts {
	struct dbg_fdes fdes;
	struct dbg_funcs go;
	const struct arch *arch;
};

static void read_facts(struct fmt_bin *b, struct facts *ret)
{
	must_be_null(dbg_read_eh_frame(b, &ret->fdes, &b->findings), "unwind tables");
	must_be_null(dbg_read_pclntab(b, &ret->go, &b->findings), "Go's table");
	struct err *e = arch_get((enum arch_id)b->machine, &ret->arch);
	if (e)
		ret->arch = NULL; /* no decoder: the file still has an image */
	err_free(e);
}

static void make_image(struct fmt_bin *b, const struct facts *facts, const struct stated *stated, unsigned threads,
		       struct buf *out)
{
	static const uint8_t no_hash[32];
	struct image_data d;
	must_be_null(image_data_from_fmt(b, no_hash, &d), "image data");
	if (b->kind == FMT_RAW && b->bytes_len % 3 == 0)
		must_be_null(image_data_move(&d, 0x8000000), "moving");
	struct par *par = par_new(threads);
	struct analysis_in in = {
		.arch = facts->arch, .fdes = &facts->fdes, .go_funcs = &facts->go, .par = par, .stated = stated ? &stated->all : NULL};
	must_be_null(analysis_run(&in, &d), "analysis");
	must_be_null(image_serialize(&d, out), "writing");
	if (facts->arch) {
		uint32_t locs[64];
		size_t n = analysis_preview(facts->arch, &d.space,
					    b->has_entry ? b->entry_va : b->base_va, locs, 64);
		for (size_t i = 1; i < n; i++)
			if (locs[i] <= locs[i - 1])
				abort();
	}
	par_free(par);
	image_data_fini(&d);
}

static void check(const struct buf *out, const uint8_t *bytes, size_t len)
{
	struct image *im;
	must_be_null(image_open_mem(out->data, out->len, bytes, len, NULL, &im), "reading back");
	struct findings found = {0};
	image_check(im, &found);
	for (size_t i = 0; i < found.list.cnt; i++)
		fprintf(stderr, "%s: %s\n", found.list.data[i].what, found.list.data[i].why);
	if (found.list.cnt)
		abort();
	findings_fini(&found);
	image_unref(im);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fmt_bin *b;
	if (len > INPUT_MAX)
		return 0;
	struct err *e = fmt_open(bytes, len, &b);
	/* What no reader knows is bytes of some processor. */
	static const struct fmt_as as[] = {{FMT_MACHINE_X86_64, "x86-64", 64}, {FMT_MACHINE_I386, "i386", 32}, {FMT_MACHINE_A64, "aarch64", 64},
					   {FMT_MACHINE_OTHER, "unknown", 64}};
	if (e && len && bytes[0] & 1) {
		err_free(e);
		e = fmt_open_raw(bytes, len, &as[bytes[0] >> 1 & 3], &b);
	}
	if (e) {
		err_free(e);
		fuzz_rejected++;
		return 0;
	}
	fuzz_accepted++;
	struct facts facts = {0};
	read_facts(b, &facts);
	struct buf one = {0}, three = {0};
	/* Half of the inputs have statements, whatever their end says. */
	struct stated stated, *said = len % 2 ? &stated : NULL;
	read_stated(b, bytes, len, &stated);
	make_image(b, &facts, said, 1, &one);
	check(&one, bytes, len);
	if (len % 8 == 0 || len % 8 == 3) {
		make_image(b, &facts, said, 3, &three);
		if (one.len != three.len || memcmp(one.data, three.data, one.len))
			abort();
	}
	buf_fini(&one);
	buf_fini(&three);
	VEC_FREE(&facts.fdes.list);
	VEC_FREE(&facts.go.list);
	arena_fini(&facts.go.arena);
	fmt_bin_free(b);
	return 0;
}
