/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people state is obeyed over every guess. First small programs where it can be seen byte by byte, then statements made
 * up at random over a real one: whatever they are, the image is sound, the same for any number of threads, and each of
 * them that no later one overlaps can be read off it.
 */
#include "analysis/analysis.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PART 0x1000
#define TEXT 0x1000
#define DATA 0x2000

struct fixture {
	uint8_t bytes[2 * PART];
	struct fmt_bin bin;
	struct image_data d;
	struct analysis_stated stated;
	struct par *par;
	struct buf out;
	struct image *im;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	memset(f->bytes, 0xcc, PART);
	struct fmt_bin *b = &f->bin;
	b->bytes = f->bytes;
	b->bytes_len = sizeof(f->bytes);
	b->bits = 64;
	b->type = FMT_TYPE_PIE;
	b->machine = FMT_MACHINE_X86_64;
	b->has_entry = true;
	b->entry_va = TEXT;
	b->base_va = TEXT;
	struct fmt_segment text = {.va = TEXT, .mem_len = PART, .file_len = PART, .perm = FMT_R | FMT_X};
	struct fmt_segment data = {.va = DATA, .mem_len = 2 * PART, .file_off = PART, .file_len = PART, .perm = FMT_R | FMT_W};
	assert_true(VEC_PUSH(&b->segments, text) && VEC_PUSH(&b->segments, data) && VEC_PUSH(&b->code_starts, (uint64_t)TEXT));
}

static void forget(struct fixture *f)
{
	image_unref(f->im);
	f->im = NULL;
	buf_fini(&f->out);
	f->out = (struct buf){0};
	image_data_fini(&f->d);
	f->d = (struct image_data){0};
}

static void teardown(struct fixture *f)
{
	forget(f);
	VEC_FREE(&f->bin.segments);
	VEC_FREE(&f->bin.code_starts);
	findings_fini(&f->bin.findings);
	arena_fini(&f->bin.arena);
}

/* The image of `b` with what is stated, written and read back. */
static void make(struct fmt_bin *b, const struct analysis_stated *stated, unsigned threads, struct buf *out)
{
	static const uint8_t no_hash[32];
	struct image_data d;
	struct dbg_fdes fdes = {0};
	assert_null(dbg_read_eh_frame(b, &fdes, &b->findings));
	assert_null(image_data_from_fmt(b, no_hash, &d));
	struct analysis_in in = {.fdes = &fdes, .stated = stated, .par = par_new(threads)};
	assert_null(arch_get(ARCH_ID_X86_64, &in.arch));
	assert_null(analysis_run(&in, &d));
	assert_null(image_serialize(&d, out));
	image_data_fini(&d);
	par_free(in.par);
	VEC_FREE(&fdes.list);
}

static struct image *open_checked(const struct buf *out, const struct fmt_bin *b)
{
	struct image *im;
	struct findings found = {0};
	assert_null(image_open_mem(out->data, out->len, b->bytes, b->bytes_len, NULL, &im));
	image_check(im, &found);
	for (size_t i = 0; i < found.list.cnt; i++)
		fail_msg("%s: %s", found.list.data[i].what, found.list.data[i].why);
	findings_fini(&found);
	return im;
}

static void run(struct fixture *f)
{
	forget(f);
	make(&f->bin, &f->stated, 1, &f->out);
	f->im = open_checked(&f->out, &f->bin);
}

static void put(struct fixture *f, uint64_t va, const char *bytes, size_t len)
{
	memcpy(f->bytes + (va - TEXT), bytes, len);
}
#define PUT(f, va, s) put(f, va, s, sizeof(s) - 1)

static void say_items(struct fixture *f, const struct analysis_item *items, size_t cnt)
{
	f->stated.items = items;
	f->stated.item_cnt = cnt;
}

struct item { uint32_t loc, len; enum image_item_kind kind; };

static struct item item_at(const struct image *im, uint64_t va)
{
	struct item it = {0};
	uint32_t loc = space_loc(image_space(im), va);
	assert_true(loc != LOC_NONE && image_item_at(im, loc, &it.loc, &it.len, &it.kind));
	return it;
}

static void item_is(const struct image *im, uint64_t va, uint32_t len, enum image_item_kind kind)
{
	struct item it = item_at(im, va);
	if (space_va(image_space(im), it.loc) != va || it.len != len || it.kind != kind)
		fail_msg("%#lx: item at %#lx of %u bytes, kind %u; expected %u, kind %u", va, space_va(image_space(im), it.loc), it.len,
			 it.kind, len, kind);
}

static const struct image_func *func_at(const struct image *im, uint64_t va)
{
	uint32_t i = image_func_starting(im, space_loc(image_space(im), va));
	uint32_t cnt;
	return i == UINT32_MAX ? NULL : image_funcs(im, &cnt) + i;
}

/* push rbp; call +0x40; pop rbp; ret. At +0x40: ret. At +0x80, which nobody reaches: mov eax,1; ret. */
static void program(struct fixture *f)
{
	PUT(f, TEXT, "\x55\xe8\x3a\x00\x00\x00\x5d\xc3");
	PUT(f, TEXT + 0x40, "\xc3");
	PUT(f, TEXT + 0x83, "\xb8\x01\x00\x00\x00\xc3");
}

static void test_code(void **state)
{
	struct fixture f;
	setup(&f);
	program(&f);
	run(&f);
	assert_null(func_at(f.im, TEXT + 0x83));
	struct analysis_item code = {.va = TEXT + 0x83, .kind = ANALYSIS_CODE};
	say_items(&f, &code, 1);
	run(&f);
	item_is(f.im, TEXT + 0x83, 5, IMAGE_CODE);
	item_is(f.im, TEXT + 0x88, 1, IMAGE_CODE);
	assert_null(func_at(f.im, TEXT + 0x83));
	code.kind = ANALYSIS_FUNC;
	run(&f);
	const struct image_func *fn = func_at(f.im, TEXT + 0x83);
	assert_non_null(fn);
	assert_int_equal(fn->source, IMAGE_SRC_USER);
	assert_int_equal(fn->size_len, 6);
	teardown(&f);
}

/* In a segment that is not executable, from the middle of what else would be a string. */
static void test_code_in_data(void **state)
{
	struct fixture f;
	setup(&f);
	program(&f);
	PUT(&f, DATA + 0x100, "hello, world\0");
	PUT(&f, DATA + 0x200, "\x55\x5d\xc3");
	struct analysis_item code[] = {{.va = DATA + 0x200, .len = 3, .kind = ANALYSIS_FUNC}, {.va = DATA + 0x105, .kind = ANALYSIS_CODE}};
	say_items(&f, code, 2);
	run(&f);
	item_is(f.im, DATA + 0x200, 1, IMAGE_CODE);
	assert_non_null(func_at(f.im, DATA + 0x200));
	assert_int_equal(func_at(f.im, DATA + 0x200)->size_len, 3);
	assert_int_equal(item_at(f.im, DATA + 0x105).kind, IMAGE_CODE);
	teardown(&f);
}

/* Data in the middle of code stops what flows into it; what is behind begins anew. */
static void test_data_in_code(void **state)
{
	struct fixture f;
	setup(&f);
	program(&f);
	struct analysis_item data = {.va = TEXT + 6, .len = 8, .unit = 4, .kind = ANALYSIS_DATA};
	say_items(&f, &data, 1);
	run(&f);
	item_is(f.im, TEXT + 1, 5, IMAGE_CODE);
	item_is(f.im, TEXT + 6, 4, IMAGE_DATA);
	item_is(f.im, TEXT + 10, 4, IMAGE_DATA);
	assert_int_equal(func_at(f.im, TEXT)->size_len, 6);
	teardown(&f);
}

static void test_strings_and_unknown(void **state)
{
	struct fixture f;
	setup(&f);
	program(&f);
	PUT(&f, DATA + 0x100, "hello, world\0");
	PUT(&f, DATA + 0x123, "a\0b\0c\0\0\0");
	struct analysis_item items[] = {
		{.va = DATA + 0x107, .len = 6, .zero_len = 1, .kind = ANALYSIS_STRING, .encoding = IMAGE_ENC_ASCII},
		{.va = DATA + 0x123, .len = 8, .zero_len = 2, .kind = ANALYSIS_STRING, .encoding = IMAGE_ENC_UTF16LE},
	};
	say_items(&f, items, 2);
	run(&f);
	item_is(f.im, DATA + 0x107, 6, IMAGE_STRING);
	item_is(f.im, DATA + 0x123, 8, IMAGE_STRING);
	struct analysis_item undef = {.va = DATA + 0x100, .len = 13, .kind = ANALYSIS_UNDEF};
	say_items(&f, &undef, 1);
	run(&f);
	item_is(f.im, DATA + 0x100, 13, IMAGE_UNKNOWN);
	/* Code that somebody says to be none. */
	undef = (struct analysis_item){.va = TEXT + 6, .len = 1, .kind = ANALYSIS_UNDEF};
	run(&f);
	item_is(f.im, TEXT + 6, 1, IMAGE_UNKNOWN);
	teardown(&f);
}

/* Where no file byte is: an array, and bytes of it unknown. */
static void test_nobits(void **state)
{
	struct fixture f;
	setup(&f);
	program(&f);
	struct analysis_item items[] = {{.va = DATA + PART + 0x10, .len = 12, .unit = 4, .kind = ANALYSIS_DATA},
					{.va = DATA + PART - 8, .len = 24, .unit = 8, .kind = ANALYSIS_DATA},
					{.va = DATA + PART + 0x40, .len = 5, .kind = ANALYSIS_UNDEF}};
	say_items(&f, items, 3);
	run(&f);
	item_is(f.im, DATA + PART - 8, 8, IMAGE_DATA);
	item_is(f.im, DATA + PART, 8, IMAGE_DATA);
	item_is(f.im, DATA + PART + 0x10, 4, IMAGE_DATA);
	item_is(f.im, DATA + PART + 0x18, 4, IMAGE_DATA);
	item_is(f.im, DATA + PART + 0x40, 5, IMAGE_UNKNOWN);
	teardown(&f);
}

static void test_bounds_and_flags(void **state)
{
	struct fixture f;
	setup(&f);
	program(&f);
	/* TEXT: push; call; | pop; ret is not its own any more. */
	struct analysis_piece piece = {.func_va = TEXT, .va = TEXT, .len = 6};
	f.stated.pieces = &piece;
	f.stated.piece_cnt = 1;
	run(&f);
	assert_int_equal(func_at(f.im, TEXT)->size_len, 6);
	assert_int_equal(func_at(f.im, TEXT)->source, IMAGE_SRC_USER);
	/* A second piece, which nobody else's flow may enter. */
	struct analysis_piece pieces[] = {{TEXT, TEXT + 0x83, 6}, {TEXT, TEXT, 8}};
	f.stated.pieces = pieces;
	f.stated.piece_cnt = 2;
	run(&f);
	assert_int_equal(func_at(f.im, TEXT)->size_len, 14);
	assert_int_equal(func_at(f.im, TEXT)->range_cnt, 2);
	f.stated.piece_cnt = 0;
	struct analysis_func_flags flags[] = {{TEXT + 0x40, UINT64_MAX, ANALYSIS_NORETURN | ANALYSIS_LIBRARY}, {TEXT, TEXT + 0x40, ANALYSIS_THUNK}};
	f.stated.flags = flags;
	f.stated.flag_cnt = 2;
	run(&f);
	const struct image_func *callee = func_at(f.im, TEXT + 0x40), *start = func_at(f.im, TEXT);
	assert_int_equal(callee->why_noreturn, IMAGE_NORETURN_STATED);
	assert_true(callee->flags & IMAGE_FN_LIBRARY && callee->flags & IMAGE_FN_NORETURN);
	assert_true(start->flags & IMAGE_FN_THUNK);
	assert_int_equal(start->thunk_to, callee->loc);
	teardown(&f);
}

/* jmp rax, which says nothing of where it goes. */
static void test_switch(void **state)
{
	struct fixture f;
	setup(&f);
	PUT(&f, TEXT, "\xff\xe0");
	for (unsigned i = 0; i < 3; i++)
		PUT(&f, TEXT + 0x20 + 8 * i, "\xb8\x01\x00\x00\x00\xc3");
	int32_t rel[] = {0x20, 0x28, 0x30};
	for (unsigned i = 0; i < 3; i++)
		rel[i] = TEXT + rel[i] - DATA;
	put(&f, DATA, (const char *)rel, sizeof(rel));
	struct analysis_switch sw = {.jump_va = TEXT, .table_va = DATA, .base_va = DATA, .entry_cnt = 3, .entry_bytes = 4, .is_signed = true};
	f.stated.switches = &sw;
	f.stated.switch_cnt = 1;
	run(&f);
	const struct image_func *fn = func_at(f.im, TEXT);
	assert_int_equal(fn->block_cnt, 4);
	assert_int_equal(fn->flags & IMAGE_FN_INDIRECT, 0);
	item_is(f.im, TEXT + 0x30, 5, IMAGE_CODE);
	item_is(f.im, DATA + 8, 4, IMAGE_DATA);
	teardown(&f);
}

/* --- at random over a real program --- */

static uint32_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static uint64_t rnd_va(const struct fmt_bin *b)
{
	const struct fmt_segment *s = &b->segments.data[rnd((uint32_t)b->segments.cnt)];
	return s->va + rnd((uint32_t)MIN(s->mem_len, 1u << 20));
}

#define ITEMS 60

static void rnd_items(const struct fmt_bin *b, struct analysis_item *out)
{
	static const uint32_t units[] = {0, 1, 2, 4, 8, 16};
	for (size_t i = 0; i < ITEMS; i++) {
		out[i] = (struct analysis_item){.va = rnd_va(b), .kind = (uint8_t)rnd(6), .len = rnd(4) ? rnd(64) : rnd(5000),
						.unit = units[rnd(6)], .encoding = (uint8_t)rnd(9), .zero_len = (uint8_t)rnd(6),
						.is_pointer = rnd(4) == 0};
		if (!rnd(20))
			out[i].len = UINT64_MAX - rnd(3);
		if (!rnd(30))
			out[i].va = (uint64_t)rnd(UINT32_MAX) << 32 | rnd(UINT32_MAX);
	}
}

static bool is_alone(const struct analysis_item *items, size_t i)
{
	for (size_t k = 0; k < ITEMS; k++) {
		uint64_t a = items[i].va, b = items[k].va;
		bool is_code = items[k].kind == ANALYSIS_CODE || items[k].kind == ANALYSIS_FUNC;
		if (k != i && a < b + MAX(items[k].len, is_code ? (uint64_t)1 : 0) && b < a + items[i].len)
			return false;
	}
	return true;
}

/* What stands alone in a segment's file bytes is as it was stated. */
static void obeys(const struct image *im, const struct fmt_bin *b, const struct analysis_item *it)
{
	const struct fmt_segment *s = fmt_segment_at(b, it->va);
	if (!s || !it->len || it->len > s->mem_len || it->va - s->va + it->len > s->file_len)
		return;
	struct item at = item_at(im, it->va);
	uint64_t va = space_va(image_space(im), at.loc);
	uint32_t unit = it->unit && it->unit < it->len ? it->unit : (uint32_t)it->len;
	if (it->kind == ANALYSIS_DATA && (va != it->va || at.len != unit || at.kind != IMAGE_DATA))
		fail_msg("%#lx: not the data that was stated, item %#lx+%u kind %u, not %u", it->va, va, at.len, at.kind, unit);
	if (it->kind == ANALYSIS_UNDEF) {
		for (uint64_t k = it->va; k < it->va + it->len; k++)
			assert_int_equal(item_at(im, k).kind, IMAGE_UNKNOWN);
		assert_true(va == it->va);
	}
	if (it->kind == ANALYSIS_STRING && it->encoding < IMAGE_ENC_COUNT && it->zero_len <= MIN(4, it->len))
		assert_true(va == it->va && at.len == it->len && at.kind == IMAGE_STRING);
	if (it->kind == ANALYSIS_FUNC && at.kind == IMAGE_CODE && va == it->va)
		assert_non_null(func_at(im, it->va));
}

static void test_random(void **state)
{
	struct file *file;
	struct fmt_bin *b;
	assert_null(file_open("/bin/ls", &file));
	assert_null(fmt_open(file->data, file->len, &b));
	for (unsigned round = 0; round < 12; round++) {
		struct analysis_item items[ITEMS];
		struct analysis_piece pieces[8];
		struct analysis_func_flags flags[8];
		struct analysis_switch switches[8];
		rnd_items(b, items);
		for (size_t i = 0; i < 8; i++) {
			pieces[i] = (struct analysis_piece){rnd_va(b), rnd_va(b), rnd(2000)};
			if (i % 2)
				pieces[i].va = pieces[i].func_va;
			flags[i] = (struct analysis_func_flags){rnd_va(b), rnd(2) ? rnd_va(b) : UINT64_MAX, rnd(16)};
			switches[i] = (struct analysis_switch){rnd_va(b), rnd_va(b), rnd(2) ? rnd_va(b) : 0, rnd(3) ? rnd(40) : rnd(UINT32_MAX),
							       (uint8_t)(1u << rnd(5)), (uint8_t)rnd(5), rnd(2) != 0, 0};
		}
		struct analysis_stated st = {items, ITEMS, pieces, 8, flags, 8, switches, 8};
		if (round % 3 == 0)
			st.piece_cnt = 0;
		struct buf one = {0}, three = {0};
		make(b, &st, 1, &one);
		make(b, &st, 3, &three);
		assert_int_equal(one.len, three.len);
		assert_memory_equal(one.data, three.data, one.len);
		struct image *im = open_checked(&one, b);
		for (size_t i = 0; i < ITEMS; i++) {
			if (is_alone(items, i))
				obeys(im, b, &items[i]);
		}
		image_unref(im);
		buf_fini(&one);
		buf_fini(&three);
	}
	fmt_bin_free(b);
	file_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),		  cmocka_unit_test(test_code_in_data), cmocka_unit_test(test_data_in_code),
		cmocka_unit_test(test_strings_and_unknown), cmocka_unit_test(test_nobits),     cmocka_unit_test(test_bounds_and_flags),
		cmocka_unit_test(test_switch),		  cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
