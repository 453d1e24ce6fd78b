/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "debuginfo/dbg.h"
#include "lib/subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_name(const char *mangled, const char *want)
{
	struct arena a = {0};
	struct fmt_str got = dbg_demangle(&a, mangled, strlen(mangled));
	if (!want) {
		assert_null(got.s);
		assert_int_equal(got.len, 0);
	} else {
		assert_non_null(got.s);
		assert_int_equal(got.len, strlen(want));
		assert_memory_equal(got.s, want, got.len);
	}
	arena_fini(&a);
}

static void test_demangle_known_names(void **state)
{
	expect_name("_Z3fooi", "foo(int)");
	expect_name("_ZNSt6vectorIiSaIiEE9push_backEOi",
		    "std::vector<int, std::allocator<int> >::push_back(int&&)");
	expect_name("_Z1fIJiEEvDpT_", "void f<int>(int)");
	expect_name("_Z1fIJEEvDpT_", "void f<>()");
	expect_name("_Z3barv.cold", "bar() [clone .cold]");
	expect_name("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str");
	expect_name("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect_name("_RNvC0foo16example_function", NULL);
	expect_name("_RNvMCs1234_7mycrateNtB2_3Foo3new", "<mycrate::Foo>::new");
	expect_name("_D3std5stdio7writelnFZv", "std.stdio.writeln()");
	expect_name("main", NULL);
	expect_name("_Z", NULL);
	expect_name("_ZZZZ", NULL);
	expect_name("_R", NULL);
	expect_name("", NULL);
	expect_name("_Dynamic", NULL);
	struct arena a = {0};
	assert_null(dbg_demangle(&a, "_Z3f\0oi", 7).s);
	arena_fini(&a);
}

/* Names of a few hundred bytes that stand for more text than there is memory, one for each scheme. */
static void test_demangle_growth_is_bounded(void **state)
{
	struct arena a = {0};
	_cleanup_buf_ struct buf b = {0};
	buf_add_str(&b, "_Z1fPFvP1AS_S_E");
	for (int i = 0; i < 20; i++) {
		char ch = (char)(i < 5 ? '0' + 2 * i : 'A' + 2 * (i - 5));
		buf_printf(&b, "PFvS%c_S%c_E", ch, ch);
	}
	assert_null(dbg_demangle(&a, b.data, b.len).s);
	b.len = 0;
	buf_add_str(&b, "_Z1fIJiEEvDpPFvP1APFvS0_S0_E");
	for (int i = 0; i < 20; i++) {
		char ch = (char)(i < 4 ? '2' + 2 * i : 'A' + 2 * (i - 4));
		buf_printf(&b, "PFvS%c_S%c_E", ch, ch);
	}
	buf_add_ch(&b, 'E');
	assert_null(dbg_demangle(&a, b.data, b.len).s);
	/* D: each reference means the list before it, which holds the reference before. */
	b.len = 0;
	buf_add_str(&b, "_D1aF");
	for (int i = 0; i < 60; i++)
		buf_add_str(&b, "FQbQb");
	buf_add_str(&b, "Zv");
	assert_null(dbg_demangle(&a, b.data, b.len).s);
	char name[4096];
	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z1f", 4);
	assert_null(dbg_demangle(&a, name, sizeof(name)).s);
	memcpy(name, "_D1a", 4);
	dbg_demangle(&a, name, sizeof(name));
	b.len = 0;
	buf_add_str(&b, "_Z4096");
	while (b.len < 5000)
		buf_add_ch(&b, 'x');
	assert_null(dbg_demangle(&a, b.data, b.len).s);
	arena_fini(&a);
}


static const char cxx_source[] =
	"#include <stdexcept>\n#include <cstdio>\n"
	"struct S { ~S() { puts(\"x\"); } };\n"
	"__attribute__((noinline)) int f(int x) { S s; if (x > 3) throw std::runtime_error(\"a\"); return x; }\n"
	"int main(int c, char **) { try { return f(c); } catch (std::exception &e) { puts(e.what()); return 2; } }\n";

static const char c_source[] = "int h(int); int g(int *x) { return h(*x) + h(x[1]); } int k(int x) { return g(&x) + 1; }\n";

/* Compares what is read with what readelf shows: "start..end" of each FDE that is not empty, sorted. */
static void compare_with_readelf(struct subject *s, const char *what)
{
	if (!s) {
		print_message("not here: %s\n", what);
		return;
	}
	struct dbg_fdes fdes = {0};
	struct findings f = {0};
	assert_null(dbg_read_eh_frame(s->bin, &fdes, &f));
	assert_int_equal(f.list.cnt, 0);
	struct buf mine = {0};
	uint64_t last[2] = {0, 0};
	for (size_t i = 0; i < fdes.list.cnt; i++) {
		const struct dbg_fde *x = &fdes.list.data[i];
		if (x->va == last[0] && x->len == last[1])
			continue;
		last[0] = x->va;
		last[1] = x->len;
		buf_add_hex(&mine, x->va, 16);
		buf_add_str(&mine, "..");
		buf_add_hex(&mine, x->va + x->len, 16);
		buf_add_ch(&mine, '\n');
	}
	buf_add_ch(&mine, 0);
	char *theirs = subject_run(s, "readelf --debug-dump=frames \"$OUT\" 2>/dev/null | "
				      "sed -n 's/.*FDE.* pc=\\([0-9a-f]*\\)\\.\\.\\([0-9a-f]*\\).*/\\1 \\2/p' | "
				      "awk '{ z = \"0000000000000000\"; a = substr(z $1, length($1) + 1); b = substr(z $2, length($2) + 1); "
				      "if (a \"\" != b \"\") print a \"..\" b }' | sort -u");
	if (strcmp(mine.data, theirs) != 0)
		fail_msg("%s: %zu entries; differs from readelf", what, fdes.list.cnt);
	assert_true(fdes.list.cnt > 2);

	/* Without section headers, and without the header's table, the same comes out. */
	size_t sections = s->bin->sections.cnt, cnt = fdes.list.cnt;
	s->bin->sections.cnt = 0;
	fdes.list.cnt = 0;
	assert_null(dbg_read_eh_frame(s->bin, &fdes, &f));
	assert_int_equal(fdes.list.cnt, cnt);
	s->bin->sections.cnt = sections;
	struct fmt_range hdr = s->bin->eh_frame_hdr;
	s->bin->eh_frame_hdr.len = 0;
	fdes.list.cnt = 0;
	assert_null(dbg_read_eh_frame(s->bin, &fdes, &f));
	assert_int_equal(fdes.list.cnt, cnt);
	s->bin->eh_frame_hdr = hdr;
	free(theirs);
	buf_fini(&mine);
	VEC_FREE(&fdes.list);
	findings_fini(&f);
	subject_free(s);
}

static void test_unwind_ranges_are_readelfs(void **state)
{
	compare_with_readelf(subject_open("/bin/bash"), "bash");
	compare_with_readelf(subject_open("/usr/lib/x86_64-linux-gnu/libcrypto.so.3"), "libcrypto");
	compare_with_readelf(subject_new(".cc", cxx_source, "g++ -O2 -o $OUT $SRC"), "g++");
	compare_with_readelf(subject_new(".cc", cxx_source, "clang++ -O2 -o $OUT $SRC"), "clang++");
}

/* Objects: every function's section has its own start, and the tables are relocated. */
static void test_unwind_of_objects(void **state)
{
	static const char *const rows[] = {
		"gcc -O1 -fno-pic -ffunction-sections -c -o $OUT $SRC",
		"clang --target=i386-linux-gnu -O2 -c -o $OUT $SRC",
		"clang --target=aarch64-linux-gnu -O2 -c -o $OUT $SRC",
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct subject *s = subject_new(".c", c_source, rows[i]);
		if (!s)
			continue;
		struct dbg_fdes fdes = {0};
		struct findings f = {0};
		assert_null(dbg_read_eh_frame(s->bin, &fdes, &f));
		assert_int_equal(fdes.list.cnt, 2);
		assert_int_equal(f.list.cnt, 0);
		for (size_t k = 0; k < s->bin->symbols.cnt; k++) {
			const struct fmt_symbol *sym = &s->bin->symbols.data[k];
			if (sym->type != FMT_SYM_FUNC)
				continue;
			size_t at = fdes.list.data[0].va == sym->va ? 0 : 1;
			assert_int_equal(fdes.list.data[at].va, sym->va);
			assert_int_equal(fdes.list.data[at].len, sym->size_len);
			assert_false(fdes.list.data[at].is_fragment);
		}
		VEC_FREE(&fdes.list);
		findings_fini(&f);
		subject_free(s);
	}
}

static const struct dbg_fde *fde_at(const struct dbg_fdes *fdes, uint64_t va)
{
	for (size_t i = 0; i < fdes->list.cnt; i++) {
		if (fdes->list.data[i].va == va)
			return &fdes->list.data[i];
	}
	return NULL;
}

static uint64_t symbol_va(const struct fmt_bin *b, const char *name)
{
	for (size_t i = 0; i < b->symbols.cnt; i++) {
		const struct fmt_symbol *s = &b->symbols.data[i];
		if (s->name.len == strlen(name) && memcmp(s->name.s, name, s->name.len) == 0)
			return s->va;
	}
	return 0;
}

/* A cold piece is a fragment, its function is not; landing pads lie in the function or the piece. */
static void test_fragments_and_landing_pads(void **state)
{
	struct subject *s = subject_new(".cc", cxx_source, "g++ -O2 -o $OUT $SRC");
	if (!s)
		skip();
	struct dbg_fdes fdes = {0};
	struct dbg_addrs pads = {0};
	struct findings f = {0};
	assert_null(dbg_read_eh_frame(s->bin, &fdes, &f));
	const struct dbg_fde *whole = fde_at(&fdes, symbol_va(s->bin, "_Z1fi"));
	const struct dbg_fde *cold = fde_at(&fdes, symbol_va(s->bin, "_Z1fi.cold"));
	assert_non_null(whole);
	assert_non_null(cold);
	assert_false(whole->is_fragment);
	assert_true(cold->is_fragment);
	assert_true(whole->lsda && cold->lsda && whole->lsda != cold->lsda);
	assert_true(whole->personality && whole->personality == cold->personality);
	assert_null(dbg_read_lsda(s->bin, cold, &pads));
	size_t of_cold = pads.list.cnt;
	assert_null(dbg_read_lsda(s->bin, whole, &pads));
	assert_true(of_cold >= 1 && pads.list.cnt >= 2);
	for (size_t i = 0; i < pads.list.cnt; i++) {
		uint64_t va = pads.list.data[i];
		assert_true((va > whole->va && va - whole->va < whole->len) || (va >= cold->va && va - cold->va < cold->len));
	}
	VEC_FREE(&fdes.list);
	VEC_FREE(&pads.list);
	findings_fini(&f);
	subject_free(s);
}

static void test_signal_frames_are_marked(void **state)
{
	struct subject *s = subject_open("/lib/x86_64-linux-gnu/libc.so.6");
	if (!s)
		skip();
	struct dbg_fdes fdes = {0};
	struct findings f = {0};
	assert_null(dbg_read_eh_frame(s->bin, &fdes, &f));
	size_t signals = 0, fragments = 0;
	for (size_t i = 0; i < fdes.list.cnt; i++) {
		signals += fdes.list.data[i].is_signal;
		fragments += fdes.list.data[i].is_fragment;
		assert_false(fdes.list.data[i].is_signal && fdes.list.data[i].is_fragment);
	}
	assert_true(signals >= 1 && signals < 10);
	assert_true(fragments < fdes.list.cnt / 4);
	VEC_FREE(&fdes.list);
	findings_fini(&f);
	subject_free(s);
}

/* A program of one data segment (the given bytes, at 0x1000) and one of code (0x10000, 4 KiB). */
struct made {
	struct fmt_bin bin;
	struct fmt_segment segments[2];
	struct fmt_section section;
};

static void made_init(struct made *m, const void *bytes, size_t len)
{
	*m = (struct made){.bin = {.bits = 64, .machine = FMT_MACHINE_X86_64, .bytes = bytes, .bytes_len = len}};
	m->segments[0] = (struct fmt_segment){.va = 0x1000, .mem_len = len, .file_len = len, .perm = FMT_R};
	m->segments[1] = (struct fmt_segment){.va = 0x10000, .mem_len = 0x1000, .perm = FMT_R | FMT_X};
	m->bin.segments.data = m->segments;
	m->bin.segments.cnt = 2;
	m->section = (struct fmt_section){.name = {".eh_frame", 9}, .va = 0x1000, .mem_len = len, .file_len = len,
					  .kind = FMT_SEC_EH_FRAME, .is_alloc = true};
	m->bin.sections.data = &m->section;
	m->bin.sections.cnt = 1;
}

static void put_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, 4);
}

/* A CIE for absolute pointers of format `enc`, CFA = rsp + 8. */
static void put_cie(struct buf *b, uint8_t enc, bool is_64)
{
	const uint8_t body[] = {0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, enc, 0x0c, 7, 8, 0, 0, 0, 0};
	if (is_64) {
		uint64_t len = sizeof(body);
		put_u32(b, UINT32_MAX);
		buf_add(b, &len, 8);
	} else {
		put_u32(b, sizeof(body));
	}
	buf_add(b, body, sizeof(body));
}

/* An FDE of the CIE at 0 with the given pointer bytes and call-frame program. */
static void put_fde(struct buf *b, const void *pointers, size_t len, const void *program, size_t program_len)
{
	put_u32(b, (uint32_t)(4 + len + 1 + program_len));
	put_u32(b, (uint32_t)b->len);
	buf_add(b, pointers, len);
	buf_add_ch(b, 0);
	buf_add(b, program, program_len);
}

static void read_made(const struct buf *b, struct dbg_fdes *fdes, size_t want_findings)
{
	struct made m;
	struct findings f = {0};
	made_init(&m, b->data, b->len);
	fdes->list.cnt = 0;
	assert_null(dbg_read_eh_frame(&m.bin, fdes, &f));
	assert_int_equal(f.list.cnt, want_findings);
	findings_fini(&f);
}

static void test_pointer_encodings(void **state)
{
	static const struct {
		uint8_t enc;
		uint8_t len;
		uint8_t bytes[24]; /* start 0x10020, length 0x10 */
	} rows[] = {
		{0x00, 16, {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10}},
		{0x01, 4, {0xa0, 0x80, 0x04, 0x10}},
		{0x03, 8, {0x20, 0, 1, 0, 0x10}},
		{0x04, 16, {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10}},
		{0x08, 16, {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10}},
		{0x09, 4, {0xa0, 0x80, 0x04, 0x10}},
		{0x0b, 8, {0x20, 0, 1, 0, 0x10}},
		{0x0c, 16, {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10}},
		/* Relative to the field, which is 32 bytes into the data: 0x10020 - 0x1020 = 0xf000. */
		{0x1b, 8, {0, 0xf0, 0, 0, 0x10}},
		{0x10, 16, {0, 0xf0, 0, 0, 0, 0, 0, 0, 0x10}},
		{0x12, 4, {0, 0xf0, 0x10, 0}},
		{0x3b, 8, {0x20, 0, 1, 0, 0x10}}, /* data-relative, and there is no GOT: from 0 */
		{0x50, 16, {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10}},
	};
	struct dbg_fdes fdes = {0};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_buf_ struct buf b = {0};
		put_cie(&b, rows[i].enc, false);
		put_fde(&b, rows[i].bytes, rows[i].len, "", 0);
		read_made(&b, &fdes, 0);
		if (fdes.list.cnt != 1 || fdes.list.data[0].va != 0x10020 || fdes.list.data[0].len != 0x10)
			fail_msg("encoding 0x%x: %zu entries, %llx", rows[i].enc, fdes.list.cnt,
				 fdes.list.cnt ? (unsigned long long)fdes.list.data[0].va : 0);
	}
	/* A signed 16-bit distance cannot reach; an encoding that does not exist; indirect through the null page. */
	static const uint8_t bad[] = {0x05, 0x0f, 0x70, 0x80};
	for (size_t i = 0; i < sizeof(bad); i++) {
		_cleanup_buf_ struct buf b = {0};
		put_cie(&b, bad[i], false);
		put_fde(&b, rows[0].bytes, 16, "", 0);
		read_made(&b, &fdes, 1);
		assert_int_equal(fdes.list.cnt, 0);
	}
	VEC_FREE(&fdes.list);
}

static void test_first_rows(void **state)
{
	static const struct {
		const char *program;
		size_t len;
		bool is_fragment;
		size_t findings;
	} rows[] = {
		{"", 0, false, 0},
		{"\x0e\x10", 2, true, 0},                     /* def_cfa_offset 16 */
		{"\x41\x0e\x10", 3, false, 0},                /* after one byte of code */
		{"\x40\x0e\x10", 3, true, 0},                 /* after none */
		{"\x02\x01\x0e\x10", 4, false, 0},
		{"\x0c\x06\x10", 3, true, 0},                 /* rbp + 16 */
		{"\x0d\x06", 2, true, 0},
		{"\x0f\x02\x77\x08", 4, true, 0},             /* an expression */
		{"\x0a\x0e\x10\x0b", 4, false, 0},            /* remembered and restored */
		{"\x86\x02\x07\x10\x0c\x07\x08", 7, false, 0}, /* rules of registers do not matter */
		{"\x13\x7f", 2, false, 0},                    /* -1 times the data alignment -8 */
		{"\x3f\x0e\x10", 3, false, 1},                /* not known: what came before stands */
		{"\x0e", 1, false, 1},
		{"\x0b", 1, false, 1},
	};
	const uint8_t pointers[16] = {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10};
	struct dbg_fdes fdes = {0};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_buf_ struct buf b = {0};
		put_cie(&b, 0, i % 2);
		b.data[4 + 9 + (i % 2 ? 8 : 0)] = 0x78;
		put_fde(&b, pointers, sizeof(pointers), rows[i].program, rows[i].len);
		read_made(&b, &fdes, rows[i].findings);
		if (fdes.list.cnt != 1 || fdes.list.data[0].is_fragment != rows[i].is_fragment)
			fail_msg("row %zu", i);
	}
	VEC_FREE(&fdes.list);
}

static void test_broken_tables(void **state)
{
	const uint8_t pointers[16] = {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10};
	struct dbg_fdes fdes = {0};
	_cleanup_buf_ struct buf b = {0};
	put_cie(&b, 0, false);
	put_fde(&b, pointers, 16, "", 0);
	size_t good = b.len;
	put_u32(&b, 0); /* a terminator in the middle of a section ends nothing */
	put_fde(&b, pointers, 16, "\x0e\x10", 2);
	read_made(&b, &fdes, 0);
	assert_int_equal(fdes.list.cnt, 2);
	/* A record past the end: what came before stays. */
	put_u32(&b, 0x7fffffff);
	read_made(&b, &fdes, 1);
	assert_int_equal(fdes.list.cnt, 2);
	/* A CIE that is not there, one that is an FDE, and a range that is no code. */
	for (int kind = 0; kind < 3; kind++) {
		b.len = good;
		size_t at = b.len + 4;
		put_fde(&b, pointers, 16, "", 0);
		uint32_t back = kind == 0 ? 0x10000 : (uint32_t)(at - 24);
		if (kind < 2)
			memcpy(b.data + at, &back, 4);
		else
			b.data[at + 4 + 3] = 1;
		read_made(&b, &fdes, 1);
		assert_int_equal(fdes.list.cnt, 1);
	}
	VEC_FREE(&fdes.list);
}

/* The section's first record is broken, so only the table of .eh_frame_hdr leads to the FDEs. */
static void test_header_table_is_followed(void **state)
{
	const uint8_t pointers[16] = {0x20, 0, 1, 0, 0, 0, 0, 0, 0x10};
	struct dbg_fdes fdes = {0};
	_cleanup_buf_ struct buf b = {0};
	put_cie(&b, 0, false);
	size_t fde_at_off = b.len;
	put_fde(&b, pointers, 16, "", 0);
	size_t broken_off = b.len, hdr_off = broken_off + 8;
	put_u32(&b, 0x10000000);
	put_u32(&b, 0);
	const uint8_t head[] = {1, 0x1b, 0x03, 0x3b};
	buf_add(&b, head, sizeof(head));
	put_u32(&b, (uint32_t)(broken_off - (hdr_off + 4)));
	put_u32(&b, 1);
	put_u32(&b, 0x10020 - (uint32_t)(0x1000 + hdr_off));
	put_u32(&b, (uint32_t)(fde_at_off - hdr_off));
	struct made m;
	struct findings f = {0};
	made_init(&m, b.data, b.len);
	m.section.va = 0x1000 + broken_off;
	m.section.file_len = 8;
	m.bin.eh_frame_hdr = (struct fmt_range){0x1000 + hdr_off, b.len - hdr_off};
	assert_null(dbg_read_eh_frame(&m.bin, &fdes, &f));
	assert_int_equal(fdes.list.cnt, 1);
	assert_int_equal(fdes.list.data[0].va, 0x10020);
	assert_int_equal(f.list.cnt, 1);
	/* A count of 2^32 - 1 is cut to what there is room for, and said. */
	memset(b.data + hdr_off + 8, 0xff, 4);
	fdes.list.cnt = 0;
	findings_fini(&f);
	f = (struct findings){0};
	assert_null(dbg_read_eh_frame(&m.bin, &fdes, &f));
	assert_int_equal(fdes.list.cnt, 1);
	assert_int_equal(f.list.cnt, 2);
	VEC_FREE(&fdes.list);
	findings_fini(&f);
}

static const char go_source[] = "package main\n\n//go:noinline\nfunc add(a, b int) int { return a + b }\n"
				"func main() { println(\"hi\", add(1, 2)) }\n";

static const struct dbg_func *func_named(const struct dbg_funcs *funcs, const char *name)
{
	for (size_t i = 0; i < funcs->list.cnt; i++) {
		struct fmt_str s = funcs->list.data[i].name;
		if (s.len == strlen(name) && memcmp(s.s, name, s.len) == 0)
			return &funcs->list.data[i];
	}
	return NULL;
}

static void test_go_table(void **state)
{
	static const char *const commands[] = {
		"go build -o $OUT $SRC",
		"go build -ldflags='-s -w' -o $OUT $SRC",
		"go build -buildmode=pie -ldflags='-s -w' -o $OUT $SRC",
	};
	uint64_t cnt = 0;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct subject *s = subject_new(".go", go_source, commands[i]);
		if (!s)
			skip();
		for (int has_sections = 1; has_sections >= 0; has_sections--) {
			struct dbg_funcs funcs = {0};
			struct findings f = {0};
			s->bin->sections.cnt = has_sections ? s->bin->sections.cnt : 0;
			assert_null(dbg_read_pclntab(s->bin, &funcs, &f));
			assert_int_equal(f.list.cnt, 0);
			const struct dbg_func *add = func_named(&funcs, "main.add");
			assert_non_null(add);
			assert_int_equal(add->line, 4);
			assert_true(add->file.len > 5 && memcmp(add->file.s + add->file.len - 5, "in.go", 5) == 0);
			assert_non_null(func_named(&funcs, "runtime.main"));
			cnt = cnt ? cnt : funcs.list.cnt;
			assert_true(funcs.list.cnt > cnt - 50 && funcs.list.cnt < cnt + 50 && cnt > 500);
			VEC_FREE(&funcs.list);
			arena_fini(&funcs.arena);
			findings_fini(&f);
		}
		if (i == 0) {
			/* The symbol table says the same about this function. */
			uint64_t va = symbol_va(s->bin, "main.add");
			struct dbg_funcs funcs = {0};
			struct findings f = {0};
			assert_null(dbg_read_pclntab(s->bin, &funcs, &f));
			assert_int_equal(func_named(&funcs, "main.add")->va, va);
			VEC_FREE(&funcs.list);
			arena_fini(&funcs.arena);
		}
		subject_free(s);
	}
}

static void test_no_go_table_elsewhere(void **state)
{
	struct subject *s = subject_open("/bin/bash");
	if (!s)
		skip();
	struct dbg_funcs funcs = {0};
	struct findings f = {0};
	assert_null(dbg_read_pclntab(s->bin, &funcs, &f));
	assert_int_equal(funcs.list.cnt, 0);
	assert_int_equal(f.list.cnt, 0);
	subject_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangle_known_names),
		cmocka_unit_test(test_demangle_growth_is_bounded),
		cmocka_unit_test(test_unwind_ranges_are_readelfs),
		cmocka_unit_test(test_unwind_of_objects),
		cmocka_unit_test(test_fragments_and_landing_pads),
		cmocka_unit_test(test_signal_frames_are_marked),
		cmocka_unit_test(test_pointer_encodings),
		cmocka_unit_test(test_first_rows),
		cmocka_unit_test(test_broken_tables),
		cmocka_unit_test(test_header_table_is_followed),
		cmocka_unit_test(test_go_table),
		cmocka_unit_test(test_no_go_table_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
