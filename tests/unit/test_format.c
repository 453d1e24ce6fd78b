/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF reader: what is not ELF, the header, and helpers of the other groups. */
#include "test_format.h"

#include "lib/elfsample.h"

#include <elf.h>
#include <stdio.h>

struct opened open_bytes(const void *bytes, size_t len)
{
	struct opened o = {.bytes = malloc(len ? len : 1)};
	assert_non_null(o.bytes);
	if (len)
		memcpy(o.bytes, bytes, len);
	o.err = fmt_open(o.bytes, len, &o.b);
	assert_true(o.err == NULL || o.b == NULL);
	return o;
}

void close_opened(struct opened *o)
{
	fmt_bin_free(o->b);
	err_free(o->err);
	free(o->bytes);
}

struct opened open_good(const void *bytes, size_t len)
{
	struct opened o = open_bytes(bytes, len);
	if (o.err)
		fail_msg("not opened: %s", o.err->text);
	check_invariants(o.b);
	return o;
}

bool has_finding(const struct fmt_bin *b, const char *text)
{
	for (size_t i = 0; i < b->findings.list.cnt; i++) {
		const struct finding *f = &b->findings.list.data[i];
		if (strstr(f->what, text) || strstr(f->why, text))
			return true;
	}
	return false;
}

size_t error_finding_cnt(const struct fmt_bin *b)
{
	size_t cnt = 0;
	for (size_t i = 0; i < b->findings.list.cnt; i++)
		cnt += b->findings.list.data[i].severity == FINDING_ERROR;
	return cnt;
}

bool str_is(struct fmt_str s, const char *want)
{
	return s.s && s.len == strlen(want) && memcmp(s.s, want, s.len) == 0;
}

const struct fmt_symbol *find_symbol(const struct fmt_bin *b, const char *name)
{
	for (size_t i = 0; i < b->symbols.cnt; i++) {
		if (str_is(b->symbols.data[i].name, name))
			return &b->symbols.data[i];
	}
	return NULL;
}

const struct fmt_reloc *find_reloc(const struct fmt_bin *b, uint64_t va)
{
	for (size_t i = 0; i < b->relocs.cnt; i++) {
		if (b->relocs.data[i].va == va)
			return &b->relocs.data[i];
	}
	return NULL;
}

const struct fmt_segment *find_segment(const struct fmt_bin *b, const char *name)
{
	for (size_t i = 0; i < b->segments.cnt; i++) {
		if (str_is(b->segments.data[i].name, name))
			return &b->segments.data[i];
	}
	return NULL;
}

void check_invariants(const struct fmt_bin *b)
{
	for (size_t i = 0; i < b->segments.cnt; i++) {
		const struct fmt_segment *s = &b->segments.data[i];
		assert_true(s->mem_len > 0);
		assert_true(s->mem_len <= UINT64_MAX - s->va);
		assert_true(s->file_len <= s->mem_len);
		assert_true(s->file_off <= b->bytes_len &&
			    s->file_len <= b->bytes_len - s->file_off);
		if (i)
			assert_true(b->segments.data[i - 1].va + b->segments.data[i - 1].mem_len <=
				    s->va);
	}
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		assert_true(s->file_off <= b->bytes_len &&
			    s->file_len <= b->bytes_len - s->file_off);
	}
	for (size_t i = 1; i < b->relocs.cnt; i++)
		assert_true(b->relocs.data[i - 1].va <= b->relocs.data[i].va);
	for (size_t i = 0; i < b->imports.cnt; i++)
		assert_true(b->imports.data[i].symbol < b->symbols.cnt);
}

static void test_not_elf(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *says;
	} rows[] = {
		{"MZ\0\0", 4, "DOS"},
		{"\xcf\xfa\xed\xfe\x07\0\0\1", 8, "Mach-O"},
		{"\xca\xfe\xba\xbe\0\0\0\2", 8, "universal Mach-O"},
		{"\xca\xfe\xba\xbe\0\0\0\x34", 8, "Java class"},
		{"\x1f\x8b\x08\0", 4, "gzip"},
		{"!<arch>\n", 8, "ar archive"},
		{"#!/bin/sh\n", 10, "script"},
		{"PK\x03\x04", 4, "zip"},
		{"\0asm\1\0\0\0", 8, "WebAssembly"},
		{"hello, world\n", 13, "text"},
		{"\0\0\0\0\0\0\0\0", 8, "zeros"},
		{"\x80\x81\x82\x83\x84\x85", 6, "unknown data"},
		{"\177EL", 3, "first bytes of an ELF"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct opened o = open_bytes(rows[i].bytes, rows[i].len);
		assert_non_null(o.err);
		assert_int_equal(o.err->kind, ERR_UNSUPPORTED);
		if (!strstr(o.err->text, rows[i].says))
			fail_msg("row %zu: %s", i, o.err->text);
		close_opened(&o);
	}
	char pe[0x80] = "MZ";
	pe[0x3c] = 0x40;
	memcpy(pe + 0x40, "PE\0\0", 4);
	struct opened o = open_bytes(pe, sizeof(pe));
	assert_non_null(o.err);
	assert_non_null(strstr(o.err->text, "PE program"));
	close_opened(&o);
}

static void test_empty_and_headless(void **state)
{
	struct opened o = open_bytes("", 0);
	assert_non_null(o.err);
	assert_int_equal(o.err->kind, ERR_BAD_INPUT);
	close_opened(&o);
	o = open_bytes("\177ELF", 4);
	assert_non_null(o.err);
	assert_int_equal(o.err->kind, ERR_BAD_INPUT);
	close_opened(&o);
}

static const struct elfsample_opts kinds[] = {
	{.bits = 64, .is_be = false, .has_hash = true, .has_sections = true},
	{.bits = 32, .is_be = false, .has_hash = true, .use_rel = true, .has_sections = true},
	{.bits = 64, .is_be = true, .has_hash = true, .has_sections = true},
	{.bits = 32, .is_be = true, .has_hash = true, .has_sections = true},
};

static void test_header_of_every_kind(void **state)
{
	static const enum fmt_machine machines[] = {FMT_MACHINE_X86_64, FMT_MACHINE_I386,
						    FMT_MACHINE_OTHER, FMT_MACHINE_OTHER};
	static const char *const names[] = {"x86-64", "i386", "PowerPC64", "PowerPC"};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct elfsample s;
		elfsample_library(&kinds[i], &s);
		struct opened o = open_good(s.w.file.data, s.w.file.len);
		assert_int_equal(o.b->bits, kinds[i].bits);
		assert_int_equal(o.b->is_be, kinds[i].is_be);
		assert_int_equal(o.b->machine, machines[i]);
		assert_string_equal(o.b->machine_name, names[i]);
		assert_string_equal(o.b->format_name, kinds[i].bits == 64 ? "ELF64" : "ELF32");
		assert_int_equal(o.b->type, FMT_TYPE_SHARED);
		assert_false(o.b->is_stripped);
		assert_int_equal(o.b->findings.list.cnt, 0);
		close_opened(&o);
		elfw_fini(&s.w);
	}
}

/* Linux does not look at EI_CLASS, EI_DATA and e_version; programs lie there to trouble tools. */
static void test_lying_ident(void **state)
{
	static const struct {
		int kind;
		enum elfw_field field;
		uint64_t value;
	} rows[] = {
		{0, ELFW_CLASS, 1}, {0, ELFW_CLASS, 0}, {0, ELFW_CLASS, 77}, {0, ELFW_DATA, 2},
		{0, ELFW_DATA, 9},  {1, ELFW_CLASS, 2}, {1, ELFW_CLASS, 3},  {1, ELFW_DATA, 2},
		{2, ELFW_DATA, 1},  {2, ELFW_DATA, 0},	{3, ELFW_DATA, 1},   {3, ELFW_CLASS, 9},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elfsample s;
		const struct elfsample_opts *k = &kinds[rows[i].kind];
		elfsample_library(k, &s);
		s.w.file.data[rows[i].field == ELFW_CLASS ? EI_CLASS : EI_DATA] =
			(char)rows[i].value;
		struct opened o = open_good(s.w.file.data, s.w.file.len);
		assert_int_equal(o.b->bits, k->bits);
		assert_int_equal(o.b->is_be, k->is_be);
		assert_true(has_finding(o.b, "ELF header"));
		assert_non_null(find_symbol(o.b, "own_func"));
		close_opened(&o);
		elfw_fini(&s.w);
	}
}

/* Every length: opened or refused with a reason, and never more than was there. */
static void test_every_truncation(void **state)
{
	size_t refused = 0;
	size_t opened = 0;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		struct elfsample s;
		elfsample_library(&kinds[k], &s);
		for (size_t len = 0; len < s.w.file.len; len += len < 128 ? 1 : 61) {
			struct opened o = open_bytes(s.w.file.data, len);
			if (o.err) {
				assert_true(strlen(o.err->text) > 10);
				refused++;
			} else {
				check_invariants(o.b);
				assert_true(o.b->findings.list.cnt > 0);
				opened++;
			}
			close_opened(&o);
		}
		elfw_fini(&s.w);
	}
	assert_true(refused > 0);
	assert_true(opened > 0);
}

static void test_unknown_machine_and_type(void **state)
{
	struct elfw w;
	elfw_init(&w, 64, false, ET_EXEC, EM_RISCV);
	uint64_t off = elfw_add(&w, "code", 4, 0x1000);
	elfw_add_seg(&w, (struct elfw_seg){PT_LOAD, PF_R | PF_X, off, 0x10000, 4, 4, 0x1000});
	elfw_set(&w, ELFW_ENTRY, 0x10000);
	elfw_set(&w, ELFW_OSABI, ELFOSABI_FREEBSD);
	elfw_finish(&w);
	struct opened o = open_good(w.file.data, w.file.len);
	assert_int_equal(o.b->machine, FMT_MACHINE_OTHER);
	assert_string_equal(o.b->machine_name, "RISC-V");
	assert_string_equal(o.b->os_name, "freebsd");
	assert_int_equal(o.b->raw_machine, EM_RISCV);
	assert_true(o.b->has_entry);
	assert_int_equal(o.b->code_starts.cnt, 1);
	close_opened(&o);

	w.file.data[16] = 0x55;
	o = open_good(w.file.data, w.file.len);
	assert_true(has_finding(o.b, "unknown file type"));
	close_opened(&o);
	elfw_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_empty_and_headless),
		cmocka_unit_test(test_header_of_every_kind),
		cmocka_unit_test(test_lying_ident),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_unknown_machine_and_type),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	failed += test_format_segments();
	failed += test_format_dynamic();
	failed += test_format_real();
	return failed;
}
