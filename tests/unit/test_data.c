/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis_int.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/*
 * The stage after code discovery, on programs made up here: a segment of code at 0x1000 (loc 0), read-only data at
 * 0x2000, writable data at 0x3000 with a part without file bytes from 0x3400 on. Code is declared, not decoded.
 */
#define PART 0x400
#define TEXT_VA 0x1000
#define RO_VA 0x2000
#define RW_VA 0x3000
#define NOBITS_LEN 0x200

struct fixture {
	uint8_t bytes[3 * PART];
	struct fmt_bin bin;
	struct image_data d;
	uint64_t *code;
	VEC(struct image_xref) xrefs; /* put into d when the stage runs */
	struct image *im;
	struct buf out;
};

static uint8_t *at(struct fixture *f, uint64_t va)
{
	uint64_t part = va / 0x1000 - 1;
	return f->bytes + part * PART + va % 0x1000;
}

static void put(struct fixture *f, uint64_t va, const void *bytes, size_t len)
{
	assert_in_range(va, TEXT_VA, RW_VA + PART - len);
	memcpy(at(f, va), bytes, len);
}

/* Text with its terminator. */
static void put_str(struct fixture *f, uint64_t va, const char *s)
{
	put(f, va, s, strlen(s) + 1);
}

static void put_word(struct fixture *f, uint64_t va, uint64_t v)
{
	put(f, va, &v, 8);
}

static struct fixture *fixture_new(enum fmt_type type)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	struct fmt_bin *b = &f->bin;
	memset(f->bytes, 0xee, sizeof(f->bytes)); /* no text, no padding */
	b->bytes = f->bytes;
	b->bytes_len = sizeof(f->bytes);
	b->bits = 64;
	b->type = type;
	b->machine = FMT_MACHINE_X86_64;
	b->format_name = "ELF64";
	struct fmt_segment segs[] = {
		{.va = TEXT_VA, .mem_len = PART, .file_off = 0, .file_len = PART, .perm = FMT_R | FMT_X},
		{.va = RO_VA, .mem_len = PART, .file_off = PART, .file_len = PART, .perm = FMT_R},
		{.va = RW_VA, .mem_len = PART + NOBITS_LEN, .file_off = 2 * PART, .file_len = PART,
		 .perm = FMT_R | FMT_W},
	};
	for (size_t i = 0; i < ARRAY_LEN(segs); i++)
		assert_true(VEC_PUSH(&b->segments, segs[i]));
	return f;
}

static void add_section(struct fixture *f, const char *name, enum fmt_sec_kind kind, uint64_t va, uint64_t len)
{
	struct fmt_section s = {.name = {name, (uint32_t)strlen(name)}, .va = va, .mem_len = len, .file_len = len,
				.kind = (uint8_t)kind, .is_alloc = true};
	s.raw_flags = !strcmp(name, ".rodata.str1.1") ? 0x30 : 2;
	s.entry_len = kind == FMT_SEC_SYMTAB ? 24 : 1;
	assert_true(VEC_PUSH(&f->bin.sections, s));
}

static void add_pointer(struct fixture *f, uint64_t va, uint64_t value)
{
	assert_true(VEC_PUSH(&f->bin.relocs, (struct fmt_reloc){.va = va, .value = value, .target = value,
								.import = UINT32_MAX, .kind = FMT_REL_POINTER,
								.width = 8}));
}

static void add_object(struct fixture *f, const char *name, uint64_t va, uint64_t len)
{
	struct fmt_symbol s = {.name = {name, (uint32_t)strlen(name)}, .va = va, .size_len = len,
			       .type = FMT_SYM_OBJECT, .bind = FMT_BIND_GLOBAL};
	assert_true(VEC_PUSH(&f->bin.symbols, s));
}

/* A reference from the first instruction. */
static void add_ref(struct fixture *f, uint64_t va, enum image_xref_kind kind, uint8_t width)
{
	struct image_xref x = {.from = 0, .to = (uint32_t)va, .kind = (uint8_t)kind, .width = width};
	assert_true(VEC_PUSH(&f->xrefs, x));
}

static uint32_t loc_of(const struct fixture *f, uint64_t va)
{
	return space_loc(&f->d.space, va);
}

/* Runs the stage with the bytes [0x1000, 0x1000 + code_len) as instructions of four bytes. */
static void run_stage(struct fixture *f, uint32_t code_len, const struct dbg_funcs *go_funcs)
{
	uint8_t sha[32] = {0};
	assert_null(image_data_from_fmt(&f->bin, sha, &f->d));
	f->code = calloc(bits_words(f->d.loc_cnt) + 1, 8);
	bits_set_range(f->code, 0, code_len);
	for (uint32_t i = 0; i < code_len; i += 4)
		bits_set(f->d.item_bits, i);
	for (size_t i = 0; i < f->xrefs.cnt; i++) {
		struct image_xref x = f->xrefs.data[i];
		x.to = loc_of(f, x.to);
		assert_true(x.to != LOC_NONE && VEC_PUSH(&f->d.xrefs, x));
	}
	const struct arch *arch;
	assert_null(arch_get(ARCH_ID_X86_64, &arch));
	struct analysis_in in = {.arch = arch, .go_funcs = go_funcs, .par = par_new(1)};
	assert_null(analysis_data(&in, &f->d, f->code));
	par_free(in.par);
	assert_null(image_serialize(&f->d, &f->out));
	assert_null(image_open_mem(f->out.data, f->out.len, f->bytes, sizeof(f->bytes), NULL, &f->im));
	struct findings faults = {0};
	image_check(f->im, &faults);
	assert_int_equal(faults.list.cnt, 0);
	findings_fini(&faults);
}

static void fixture_free(struct fixture *f)
{
	image_unref(f->im);
	buf_fini(&f->out);
	image_data_fini(&f->d);
	VEC_FREE(&f->bin.segments);
	VEC_FREE(&f->bin.sections);
	VEC_FREE(&f->bin.symbols);
	VEC_FREE(&f->bin.relocs);
	VEC_FREE(&f->bin.tables);
	findings_fini(&f->bin.findings);
	VEC_FREE(&f->xrefs);
	free(f->code);
	free(f);
}

/* The encoding of the string that begins at va and is `len` bytes long; -1 when there is none. */
static int string_at(const struct fixture *f, uint64_t va, uint32_t len)
{
	uint32_t loc = space_loc(image_space(f->im), va);
	const struct image_string *s = image_string_at(f->im, loc);
	return s && s->loc == loc && s->len == len ? (int)s->encoding : -1;
}

static bool has_string(const struct fixture *f, uint64_t va)
{
	return image_string_at(f->im, space_loc(image_space(f->im), va)) != NULL;
}

static void expect_item(const struct fixture *f, uint64_t va, uint32_t len, enum image_item_kind kind)
{
	uint32_t start, got_len, loc = space_loc(image_space(f->im), va);
	enum image_item_kind got_kind;
	assert_true(image_item_at(f->im, loc, &start, &got_len, &got_kind));
	if (start != loc || got_len != len || got_kind != kind)
		print_error("0x%llx: starts at %d, %u bytes, kind %d\n", (unsigned long long)va, (int)(start - loc),
			    got_len, got_kind);
	assert_int_equal(start, loc);
	assert_int_equal(got_len, len);
	assert_int_equal(got_kind, kind);
}

static bool has_xref(const struct fixture *f, uint64_t from, uint64_t to)
{
	const struct space *s = image_space(f->im);
	uint32_t first, loc = space_loc(s, from);
	uint32_t cnt = image_xrefs_from(f->im, loc, loc, &first);
	struct image_xref x;
	for (uint32_t i = 0; i < cnt; i++) {
		if (image_xref_fwd(f->im, first + i, &x) && x.to == space_loc(s, to) && x.kind == IMAGE_XREF_OFFSET)
			return true;
	}
	return false;
}

static void test_c_strings(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	put_str(f, RO_VA, "usage: prog [-v]\n");
	put_str(f, RO_VA + 0x12, "%s");
	put_str(f, RO_VA + 0x15, "file");
	put_str(f, RO_VA + 0x1a, "{...}"); /* not wordy, but right behind a string */
	put(f, RO_VA + 0x2f, "\0<[]>\0", 7);
	put(f, RO_VA + 0x40, "\1\2abc", 6);             /* too short */
	put(f, RO_VA + 0x60, "\x90qkz~", 6);             /* four signs behind a byte that ends nothing */
	put_str(f, RO_VA + 0x80, "gr\xc3\xbc\xc3\x9f dich"); /* UTF-8 */
	put(f, RO_VA + 0xa0, "\0AbC\xc4\x80\xd0\x90\xd7\x90", 11); /* four writing systems are chance */
	put_str(f, RO_VA + 0xc0, "no end");
	put(f, RO_VA + 0xc0, "no ending here", 14);
	put_str(f, RW_VA + 1, "wxyz");                   /* four, writable, nobody points */
	put(f, RW_VA, "\0", 1);
	put_str(f, RW_VA + 0x10, "abcde");
	put(f, RW_VA + 0xf, "\0", 1);
	put_str(f, RW_VA + 0x20, "ptrd");
	put(f, RW_VA + 0x1f, "\0", 1);
	put(f, RO_VA + 0x13f, "\0", 1);
	put_str(f, RO_VA + 0x140, "*=>@|");
	add_ref(f, RO_VA + 0x12, IMAGE_XREF_OFFSET, 0);
	add_ref(f, RO_VA + 7, IMAGE_XREF_OFFSET, 0); /* into the first one */
	add_ref(f, RW_VA + 0x20, IMAGE_XREF_OFFSET, 0);
	add_ref(f, RO_VA + 0x140, IMAGE_XREF_OFFSET, 0);
	run_stage(f, 16, NULL);
	assert_int_equal(string_at(f, RO_VA, 17), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 0x12, 2), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 0x15, 4), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 0x1a, 5), IMAGE_ENC_ASCII);
	assert_false(has_string(f, RO_VA + 0x30));
	assert_false(has_string(f, RO_VA + 0x42));
	assert_false(has_string(f, RO_VA + 0x61));
	assert_int_equal(string_at(f, RO_VA + 0x80, 11), IMAGE_ENC_UTF8);
	assert_false(has_string(f, RO_VA + 0xa1));
	assert_false(has_string(f, RO_VA + 0xc0));
	assert_false(has_string(f, RW_VA + 1));
	assert_int_equal(string_at(f, RW_VA + 0x10, 5), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RW_VA + 0x20, 4), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 0x140, 5), IMAGE_ENC_ASCII);
	expect_item(f, RO_VA, 18, IMAGE_STRING);
	fixture_free(f);
}

/* What looks like text but is something else. */
static void test_no_strings(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	put_str(f, TEXT_VA, "text in code");
	put_str(f, TEXT_VA + 0x20, "text in a gap of code, nobody points");
	put(f, TEXT_VA + 0x1f, "\xcc", 1);
	put(f, RO_VA, "\0symbol_name\0other_name", 24);
	put(f, RO_VA + 0x40, "unwind text\0", 12);
	put(f, RO_VA + 0x60, "relocate", 8); /* under a relocation */
	put(f, RO_VA + 0x68, "\0", 1);
	put(f, RO_VA + 0x7f, "\0UUUUUUUU33333333", 18);
	put_word(f, RO_VA + 0xa0, 0x7a7877);   /* "wxz": with a width it is a number */
	add_section(f, ".dynstr", FMT_SEC_STRTAB, RO_VA, 24);
	add_section(f, ".eh_frame", FMT_SEC_EH_FRAME, RO_VA + 0x40, 0x20);
	add_pointer(f, RO_VA + 0x60, TEXT_VA);
	run_stage(f, 16, NULL);
	uint32_t cnt;
	image_strings(f->im, &cnt);
	assert_int_equal(cnt, 0);
	fixture_free(f);
}

static void put_wide(struct fixture *f, uint64_t va, const char *s, unsigned unit, bool is_be)
{
	size_t len = strlen(s) + 1;
	memset(at(f, va), 0, len * unit);
	for (size_t i = 0; i < len; i++)
		at(f, va)[i * unit + (is_be ? unit - 1 : 0)] = (uint8_t)s[i];
}

static void test_wide_strings(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	static const uint16_t cyrillic[] = {0x41f, 0x440, 0x438, 0x432, 0x435, 0x442, 0};
	static const int32_t offsets[] = {-0x10f000, -0x10e000, -0x10f000, -0x10e000, -0x10d000, -0x10c000, 0};
	static const uint16_t rising[] = {'a', 'b', 'd', 'g', 'k', 0};
	put_wide(f, RO_VA, "wide text", 2, false);
	put_wide(f, RO_VA + 0x40, "wchar_t text", 4, false);
	put(f, RO_VA + 0x7f, "\0", 1);
	put_wide(f, RO_VA + 0x80, "big endian", 2, true);
	put(f, RO_VA + 0xa0, cyrillic, sizeof(cyrillic));
	put(f, RO_VA + 0x100, offsets, sizeof(offsets));
	put(f, RO_VA + 0x140, rising, sizeof(rising));
	put_str(f, RO_VA + 0x160, "abcdefgh"); /* narrow, though its bytes are also CJK */
	add_ref(f, RO_VA, IMAGE_XREF_OFFSET, 0);
	add_ref(f, RO_VA + 0xa0, IMAGE_XREF_OFFSET, 0);
	add_ref(f, RO_VA + 0x100, IMAGE_XREF_OFFSET, 0);
	add_ref(f, RO_VA + 0x160, IMAGE_XREF_OFFSET, 0);
	run_stage(f, 16, NULL);
	assert_int_equal(string_at(f, RO_VA, 18), IMAGE_ENC_UTF16LE);
	expect_item(f, RO_VA, 20, IMAGE_STRING);
	assert_int_equal(string_at(f, RO_VA + 0x40, 48), IMAGE_ENC_UTF32LE);
	assert_int_equal(string_at(f, RO_VA + 0x80, 20), IMAGE_ENC_UTF16BE);
	assert_int_equal(string_at(f, RO_VA + 0xa0, 12), IMAGE_ENC_UTF16LE);
	assert_false(has_string(f, RO_VA + 0x100));
	assert_false(has_string(f, RO_VA + 0x140));
	assert_int_equal(string_at(f, RO_VA + 0x160, 8), IMAGE_ENC_ASCII);
	fixture_free(f);
}

static void test_string_sections(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_OBJECT);
	put(f, RO_VA, "a\0%d\0~~~~\0done", 15);
	add_section(f, ".rodata.str1.1", FMT_SEC_RODATA, RO_VA, 15);
	run_stage(f, 16, NULL);
	assert_int_equal(string_at(f, RO_VA, 1), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 2, 2), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 5, 4), IMAGE_ENC_ASCII);
	assert_int_equal(string_at(f, RO_VA + 10, 4), IMAGE_ENC_ASCII);
	fixture_free(f);
	/* The mark on a section that holds other things proves nothing. */
	f = fixture_new(FMT_TYPE_PIE);
	put(f, RO_VA, "a\0%d\0~~~~\0\1\2\3\4", 15);
	add_section(f, ".rodata.str1.1", FMT_SEC_RODATA, RO_VA, 15);
	run_stage(f, 16, NULL);
	assert_false(has_string(f, RO_VA));
	assert_false(has_string(f, RO_VA + 5));
	fixture_free(f);
}

/* Rust: pairs of address and length over texts packed without terminators, one of them known only by code. */
static void test_counted_strings(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	put(f, RO_VA, "invalid utf-8okcapacity overflow/rustc/9eb3afe9ebe9c7d2b84b71002d44f4a0edac95e0/lib", 83);
	add_pointer(f, RW_VA, RO_VA);
	put_word(f, RW_VA + 8, 13);
	add_pointer(f, RW_VA + 16, RO_VA + 13);
	put_word(f, RW_VA + 24, 2);
	add_pointer(f, RW_VA + 32, RO_VA + 15);
	put_word(f, RW_VA + 40, 17);
	add_pointer(f, RW_VA + 48, RO_VA + 15);
	put_word(f, RW_VA + 56, 1u << 30); /* no length */
	/* lea rdi,[rip+...]; mov esi,0x33 */
	put(f, TEXT_VA, "\x48\x8d\x3d\x00\x00\x00\x00\xbe\x33\x00\x00\x00\x90\x90\x90\x90", 16);
	add_ref(f, RO_VA + 32, IMAGE_XREF_OFFSET, 0);
	put(f, RO_VA + 0x180, "!is not a char boundary; inside of\xc0", 35); /* '!' is its length */
	put(f, RO_VA + 0x100, "alonea pairtriple thing", 23); /* reached by offsets in a table: kept in one piece */
	run_stage(f, 16, NULL);
	assert_int_equal(string_at(f, RO_VA + 0x100, 23), IMAGE_ENC_RUST);
	assert_int_equal(string_at(f, RO_VA + 0x181, 33), IMAGE_ENC_RUST);
	assert_int_equal(string_at(f, RO_VA, 13), IMAGE_ENC_RUST);
	assert_false(has_string(f, RO_VA + 13));
	assert_int_equal(string_at(f, RO_VA + 15, 17), IMAGE_ENC_RUST);
	assert_int_equal(string_at(f, RO_VA + 32, 0x33), IMAGE_ENC_RUST);
	assert_true(has_xref(f, RW_VA, RO_VA));
	fixture_free(f);
}

static void test_go_strings(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_EXEC);
	struct dbg_funcs funcs = {0};
	assert_true(VEC_PUSH(&funcs.list, (struct dbg_func){.va = TEXT_VA}));
	for (size_t i = 0; i < 3; i++)
		f->bin.segments.data[i].va += 0x400000;
	put(f, RO_VA, "runtime: bad pointerunlock of unlocked lock", 43);
	put_word(f, RW_VA, 0x400000 + RO_VA);
	put_word(f, RW_VA + 8, 20);
	put_word(f, RW_VA + 16, 0x400000 + RO_VA + 20);
	put_word(f, RW_VA + 24, 23);
	run_stage(f, 16, &funcs);
	assert_int_equal(string_at(f, 0x400000 + RO_VA, 20), IMAGE_ENC_GO);
	assert_int_equal(string_at(f, 0x400000 + RO_VA + 20, 23), IMAGE_ENC_GO);
	VEC_FREE(&funcs.list);
	fixture_free(f);
}

static void test_pointers(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_EXEC);
	for (size_t i = 0; i < 3; i++)
		f->bin.segments.data[i].va += 0x600000;
	uint64_t base = 0x600000;
	put_word(f, RW_VA, base + RO_VA + 8);
	put_word(f, RW_VA + 8, base + TEXT_VA + 4);
	put_word(f, RW_VA + 16, base + TEXT_VA + 5); /* into an instruction */
	put_word(f, RW_VA + 24, 0x1234);             /* a small number */
	put(f, RW_VA + 0x3c, "initialize__`\0\0\0\0", 17);
	put(f, RW_VA + 0x3b, "\0", 1);
	run_stage(f, 16, NULL);
	assert_true(has_xref(f, base + RW_VA, base + RO_VA + 8));
	assert_true(has_xref(f, base + RW_VA + 8, base + TEXT_VA + 4));
	expect_item(f, base + RW_VA, 8, IMAGE_DATA);
	uint32_t first, from = space_loc(image_space(f->im), base + RW_VA + 16);
	assert_int_equal(image_xrefs_from(f->im, from, from + 0x80, &first), 0);
	assert_int_equal(string_at(f, base + RW_VA + 0x3c, 13), IMAGE_ENC_ASCII);
	fixture_free(f);
}

static void test_items(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	memset(at(f, RO_VA), 0x81, 0x40);
	add_ref(f, RO_VA + 8, IMAGE_XREF_READ, 8);
	add_ref(f, RO_VA + 8, IMAGE_XREF_READ, 4);
	add_ref(f, RO_VA + 0x18, IMAGE_XREF_READ, 16);
	add_ref(f, RW_VA + 0x401, IMAGE_XREF_WRITE, 4); /* no file bytes */
	add_object(f, "four", RW_VA, 4);
	add_object(f, "array", RW_VA + 0x10, 0x28);
	add_object(f, "buffer", RW_VA + 0x480, 0x20);
	memset(at(f, RW_VA + 4), 0, 12);
	memset(at(f, RW_VA + 0x80), 0, 0x100);
	/* Code of 16 bytes, a nop of 5, zeros, then bytes that are nothing. */
	put(f, TEXT_VA + 16, "\x0f\x1f\x44\x00\x00\x66\x90\xcc", 8);
	add_ref(f, TEXT_VA + 24, IMAGE_XREF_READ, 4);
	run_stage(f, 16, NULL);
	expect_item(f, TEXT_VA + 4, 4, IMAGE_CODE);
	expect_item(f, TEXT_VA + 16, 8, IMAGE_ALIGN);
	expect_item(f, TEXT_VA + 24, 4, IMAGE_DATA);
	expect_item(f, TEXT_VA + 28, 4, IMAGE_UNKNOWN);
	expect_item(f, TEXT_VA + 32, 16, IMAGE_UNKNOWN);
	expect_item(f, RO_VA, 8, IMAGE_UNKNOWN);
	expect_item(f, RO_VA + 8, 8, IMAGE_DATA);
	expect_item(f, RO_VA + 0x18, 16, IMAGE_DATA);
	expect_item(f, RW_VA, 4, IMAGE_DATA);
	expect_item(f, RW_VA + 4, 12, IMAGE_ALIGN);
	expect_item(f, RW_VA + 0x10, 16, IMAGE_DATA);
	expect_item(f, RW_VA + 0x30, 8, IMAGE_DATA);
	expect_item(f, RW_VA + 0x80, 0x100, IMAGE_ALIGN);
	expect_item(f, RW_VA + 0x400, 1, IMAGE_UNKNOWN);
	expect_item(f, RW_VA + 0x401, 0x7f, IMAGE_DATA);
	expect_item(f, RW_VA + 0x480, 0x20, IMAGE_DATA);
	expect_item(f, RW_VA + 0x4a0, 0x160, IMAGE_UNKNOWN);
	fixture_free(f);
}

static void test_sections(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	static const uint32_t frame[] = {12, 0, 1, 2, 20, 16, 3, 4, 5, 6, 0};
	put(f, RO_VA, frame, sizeof(frame));
	add_section(f, ".eh_frame", FMT_SEC_EH_FRAME, RO_VA, sizeof(frame));
	add_section(f, ".dynsym", FMT_SEC_SYMTAB, RO_VA + 0x100, 72);
	add_section(f, ".got", FMT_SEC_GOT, RO_VA + 0x200, 24);
	run_stage(f, 16, NULL);
	expect_item(f, RO_VA, 16, IMAGE_DATA);
	expect_item(f, RO_VA + 16, 24, IMAGE_DATA);
	expect_item(f, RO_VA + 40, 4, IMAGE_DATA);
	expect_item(f, RO_VA + 0x118, 24, IMAGE_DATA);
	expect_item(f, RO_VA + 0x208, 8, IMAGE_DATA);
	fixture_free(f);
}

/* The same without section headers: the loader's tables are known from elsewhere. */
static void test_loader_tables(void **state)
{
	struct fixture *f = fixture_new(FMT_TYPE_PIE);
	put(f, RO_VA, "\0symbol_name\0other_name", 24);
	put_str(f, RO_VA + 24, "a string of the program");
	assert_true(VEC_PUSH(&f->bin.tables, (struct fmt_table){RO_VA, 24, 1, FMT_SEC_STRTAB}));
	assert_true(VEC_PUSH(&f->bin.tables, (struct fmt_table){RO_VA + 0x100, 72, 24, FMT_SEC_SYMTAB}));
	assert_true(VEC_PUSH(&f->bin.tables, (struct fmt_table){RO_VA + 0x3f0, 1u << 30, 4, FMT_SEC_OTHER}));
	run_stage(f, 16, NULL);
	assert_false(has_string(f, RO_VA + 1));
	assert_int_equal(string_at(f, RO_VA + 24, 23), IMAGE_ENC_ASCII);
	expect_item(f, RO_VA + 0x118, 24, IMAGE_DATA);
	expect_item(f, RO_VA + 0x3fc, 4, IMAGE_DATA);
	fixture_free(f);
}

static uint64_t rng_state = 88172645463325252u;

static uint32_t below(uint32_t n)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state % n);
}

/* Random content with random evidence, twice with the references in another order: the same image to the byte, a
 * well-formed one (run_stage checks it all), and code stays code. */
static void test_random(void **state)
{
	for (unsigned round = 0; round < 120; round++) {
		struct fixture *pair[2];
		uint64_t seed = rng_state + round;
		for (unsigned k = 0; k < 2; k++) {
			rng_state = seed | 1;
			struct fixture *f = pair[k] = fixture_new(round % 3 ? FMT_TYPE_PIE : FMT_TYPE_EXEC);
			for (size_t i = 0; i < sizeof(f->bytes); i++)
				f->bytes[i] = below(3) ? (uint8_t)"ab\0\xc3\xbc %1"[below(8)] : (uint8_t)below(256);
			for (unsigned i = below(12); i > 0; i--)
				add_object(f, "object", 0x1000 + below(0x2600), below(80));
			for (unsigned i = 0; i < round % 9; i++)
				add_pointer(f, RO_VA + 0x20 * i + below(0x18), 0x1000 + below(0x2800));
			add_section(f, ".text", FMT_SEC_CODE, TEXT_VA, below(PART));
			add_section(f, ".odd", (enum fmt_sec_kind)below(FMT_SEC_INTERP), RO_VA + below(PART), below(2 * PART));
			for (unsigned i = below(40); i > 0; i--)
				add_ref(f, (1 + below(3)) * 0x1000 + below(PART), (enum image_xref_kind)below(5),
					(uint8_t)(1u << below(6)));
			for (size_t i = 0; k && i < f->xrefs.cnt / 2; i++) {
				struct image_xref t = f->xrefs.data[i];
				f->xrefs.data[i] = f->xrefs.data[f->xrefs.cnt - 1 - i];
				f->xrefs.data[f->xrefs.cnt - 1 - i] = t;
			}
			run_stage(f, 4 * below(PART / 4), NULL);
		}
		assert_int_equal(pair[0]->out.len, pair[1]->out.len);
		assert_memory_equal(pair[0]->out.data, pair[1]->out.data, pair[0]->out.len);
		struct image_items it;
		assert_true(image_items_from(pair[0]->im, 0, &it));
		do {
			bool is_code = bits_get(pair[0]->code, it.loc);
			assert_int_equal(it.kind == IMAGE_CODE, is_code);
			if (is_code)
				assert_int_equal(it.len, 4);
		} while (image_items_next(&it));
		fixture_free(pair[0]);
		fixture_free(pair[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c_strings),       cmocka_unit_test(test_no_strings),
		cmocka_unit_test(test_wide_strings),    cmocka_unit_test(test_string_sections),
		cmocka_unit_test(test_counted_strings), cmocka_unit_test(test_go_strings),
		cmocka_unit_test(test_pointers),        cmocka_unit_test(test_items),
		cmocka_unit_test(test_sections),        cmocka_unit_test(test_random),
		cmocka_unit_test(test_loader_tables),
	};
	return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
