/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image reader. An input is a recipe: byte 0 chooses a made-up image (tests/lib/image_sample.h), byte 1 whether the
 * header's checksum is put right again, and each further 6 bytes edit the image: u32 where, u8 how, u8 what. So
 * the edits reach every section, which a checksum over the header would otherwise hide. Whatever opens is
 * walked through every accessor: no access outside of the image, no endless walk, answers that keep their bounds.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cur.h"
#include "image/image_int.h"
#include "lib/image_sample.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SAMPLE_SIZE 700
#define STEPS_MAX 60000u

static volatile uint64_t sink;

#define REQUIRE(cond)            \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

static void use_text(const struct image *im, struct image_str s)
{
	size_t len;
	const char *t = image_text(im, s, &len);
	REQUIRE(strlen(t) <= len || len == 0);
	for (size_t i = 0; i < len; i++)
		sink += (uint8_t)t[i];
}

static void walk_items(const struct image *im)
{
	struct image_items it;
	const struct space *s = image_space(im);
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		uint32_t end = s->segs[i].loc + (uint32_t)s->segs[i].mem_len, steps = 0;
		bool ok = image_items_from(im, s->segs[i].loc, &it);
		REQUIRE(ok);
		for (; ok && it.seg == i && steps < STEPS_MAX; ok = image_items_next(&it), steps++) {
			REQUIRE(it.len > 0 && it.loc >= s->segs[i].loc && it.loc < end && it.len <= end - it.loc);
			REQUIRE((unsigned)it.kind < IMAGE_ITEM_KIND_COUNT);
		}
		ok = image_items_from(im, end - 1, &it);
		for (steps = 0; ok && it.seg == i && steps < 2000; ok = image_items_prev(&it), steps++)
			REQUIRE(it.len > 0 && it.loc >= s->segs[i].loc && it.loc < end);
		REQUIRE(image_block_next(im, s->segs[i].loc, end) <= end);
	}
	for (uint32_t row = 0; row < image_row_cnt(im) && row < STEPS_MAX; row++) {
		uint32_t loc = image_loc_of_row(im, row);
		REQUIRE(loc == LOC_NONE || space_seg_of_loc(s, loc) >= 0);
	}
	REQUIRE(image_loc_of_row(im, image_row_cnt(im)) == LOC_NONE);
}

static void walk_locs(const struct image *im, uint32_t loc)
{
	uint32_t first, cnt, start, len, func_cnt;
	enum image_item_kind kind;
	struct image_str file;
	uint64_t word;
	uint8_t bytes[32];
	image_funcs(im, &func_cnt);
	uint32_t func = image_func_at(im, loc);
	REQUIRE(func == UINT32_MAX || func < func_cnt);
	func = image_func_starting(im, loc);
	REQUIRE(func == UINT32_MAX || func < func_cnt);
	cnt = image_xrefs_from(im, loc, loc, &first);
	REQUIRE((uint64_t)first + cnt <= image_xref_cnt(im));
	cnt = image_xrefs_to(im, loc, loc, &first);
	REQUIRE((uint64_t)first + cnt <= image_xref_cnt(im));
	if (image_item_at(im, loc, &start, &len, &kind))
		REQUIRE(start <= loc && loc - start < len);
	uint32_t row = image_row_of(im, loc);
	REQUIRE(row == UINT32_MAX || row < image_row_cnt(im));
	const struct image_name *n = image_name_at(im, loc);
	if (n)
		use_text(im, n->name);
	n = image_name_before(im, loc);
	REQUIRE(!n || n->loc <= loc);
	const struct image_string *str = image_string_at(im, loc);
	REQUIRE(!str || str->loc <= loc);
	if (image_line_at(im, loc, &file, &first))
		use_text(im, file);
	sink += image_block_starts(im, loc) + (image_table_at(im, loc) != NULL) + (image_proto_at(im, loc) != NULL) +
		(image_import_at(im, loc) != NULL);
	sink += space_read(image_space(im), loc, bytes, sizeof(bytes)) + space_word(image_space(im), loc, 8, &word);
	sink += space_va(image_space(im), loc);
}

static void walk_tables(const struct image *im)
{
	uint32_t cnt, n, first;
	const struct image_func *f = image_funcs(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct image_range *r = image_func_ranges(im, i, &n);
		for (uint32_t k = 0; k < n; k++)
			sink += r[k].loc + f[i].loc;
	}
	const struct image_symbol *sym = image_symbols(im, &cnt);
	struct image_version v;
	for (uint32_t i = 0; i < cnt; i++) {
		use_text(im, sym[i].name);
		if (image_version(im, sym[i].version, &v))
			use_text(im, v.version);
	}
	const struct image_name *names = image_names(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		size_t len;
		const char *t = image_text(im, names[i].name, &len);
		n = image_name_find(im, t, len, &first);
		REQUIRE((uint64_t)first + n <= cnt);
		const struct image_name *o = image_name_by_order(im, i);
		if (o)
			use_text(im, o->name);
	}
	const struct image_table *t = image_tables(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		for (uint32_t k = 0; k < 100; k++)
			sink += image_table_target(im, &t[i], k);
		sink += image_table_target(im, &t[i], UINT32_MAX);
	}
	struct image_xref x;
	for (uint32_t i = 0; i < image_xref_cnt(im); i++) {
		if (image_xref_fwd(im, i, &x))
			REQUIRE(x.kind <= IMAGE_XREF_OFFSET);
		if (image_xref_rev(im, i, &x))
			REQUIRE(x.kind <= IMAGE_XREF_OFFSET);
	}
	for (uint32_t i = 0; i < image_space(im)->reloc_cnt; i++)
		sink += space_reloc_value(image_space(im), i);
}

static void walk(const struct image *im)
{
	walk_items(im);
	walk_tables(im);
	const struct space *s = image_space(im);
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		uint64_t step = 1 + s->segs[i].mem_len / 500;
		for (uint64_t k = 0; k < s->segs[i].mem_len + 2; k += step)
			walk_locs(im, s->segs[i].loc + (uint32_t)k);
	}
	walk_locs(im, 0);
	walk_locs(im, UINT32_MAX);
	struct findings f = {0};
	image_check(im, &f);
	sink += f.list.cnt;
	findings_fini(&f);
}

static void edit(uint8_t *image, size_t len, const uint8_t *e)
{
	static const uint64_t words[] = {0, UINT64_MAX, 0x7fffffff, 0x80000000, 1, 0xffff, 64, 512};
	size_t at = load_u32(e, false) % len;
	size_t n = (size_t)1 << (e[4] >> 2 & 3);
	n = n < len - at ? n : len - at;
	switch (e[4] & 3) {
	case 0:
		image[at] ^= e[5];
		break;
	case 1:
		image[at] = e[5];
		break;
	case 2:
		memcpy(image + at, &words[e[5] % (sizeof(words) / sizeof(words[0]))], n);
		break;
	default:
		memset(image + at, e[5], n * 4 < len - at ? n * 4 : n);
	}
}

static void repair(uint8_t *image, size_t len)
{
	size_t start = sizeof(struct image_header) + IMAGE_SECT_COUNT * sizeof(struct image_sect_entry);
	size_t at = offsetof(struct image_header, xxh3);
	if (len < start)
		return;
	memset(image + at, 0, 8);
	uint64_t sum = XXH3_64bits(image, start);
	memcpy(image + at, &sum, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct image_sample s;
	struct buf out = {0};
	if (len < 2 || !image_sample_make(&s, bytes[0] % 16u + 1, SAMPLE_SIZE))
		return 0;
	struct err *e = image_serialize(&s.data, &out);
	REQUIRE(!e);
	uint8_t *image = (uint8_t *)out.data;
	for (size_t i = 2; i + 6 <= len; i += 6)
		edit(image, out.len, bytes + i);
	if (bytes[1] & 1)
		repair(image, out.len);
	/* Exactly the image's size, so that the sanitizer sees what reads past it. */
	size_t image_len = bytes[1] & 2 ? out.len - bytes[1] % out.len : out.len;
	uint8_t *copy = malloc(image_len);
	REQUIRE(copy);
	memcpy(copy, image, image_len);
	struct image *im = NULL;
	e = image_open_mem(copy, image_len, s.target, s.target_len, NULL, &im);
	if (e) {
		fuzz_rejected++;
		REQUIRE(e->kind == ERR_BAD_INPUT || e->kind == ERR_STALE || e->kind == ERR_NOMEM);
		err_free(e);
	} else {
		fuzz_accepted++;
		walk(im);
		image_unref(im);
	}
	free(copy);
	buf_fini(&out);
	image_sample_fini(&s);
	return 0;
}
