/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/child.h"
#include "base/cur.h"
#include "debuginfo/dbg.h"
#include "debuginfo/dw_api.h"
#include "debuginfo/dw_child.h"
#include "lib/subject.h"

#if __has_include(<elfutils/libdw.h>)
#include <elfutils/libdw.h>
_Static_assert(sizeof(struct dw_die) == sizeof(Dwarf_Die), "layout of a DIE");
_Static_assert(sizeof(struct dw_attr) == sizeof(Dwarf_Attribute), "layout of an attribute");
_Static_assert(sizeof(struct dw_data) == sizeof(Elf_Data), "layout of section data");
_Static_assert(offsetof(struct dw_data, len) == offsetof(Elf_Data, d_size), "layout of section data");
_Static_assert(offsetof(struct dw_attr, value) == offsetof(Dwarf_Attribute, valp), "layout of an attribute");
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char c_source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n"
	"struct pt { int x, y; }; union un { int a; float b; }; enum col { RED, GREEN }; typedef unsigned long ulong_t;\n"
	"typedef int (*cmp_fn)(const void *, const void *);\n"
	"struct pt *f1(struct pt *p, const char *s, union un u, enum col c, ulong_t n)\n"
	"{ p->x = (int)n + *s + (int)c + u.a; return p; }\n"
	"int f2(cmp_fn cmp, int (*raw)(int, char **), volatile int *const vp, char buf[16], int (*arr)[4])\n"
	"{ return cmp(buf, arr) + raw(1, 0) + *vp; }\n"
	"__attribute__((noreturn)) void f3(const char *fmt, ...) { puts(fmt); exit(1); }\n"
	"static __attribute__((noinline)) double f4(float f, long double ld) { return f + (double)ld; }\n"
	"int (*f5(int which))(int, char **) { return which ? (int (*)(int, char **))0 : (int (*)(int, char **))1; }\n"
	"_Bool f6(void) { return 1; }\n"
	"int f7() { return 7; }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	if (argc > 5)\n"
	"		f3(\"x\");\n"
	"	return (int)f4((float)argc, 2.0L) + f6();\n"
	"}\n";

/* What every compiler must say about the source above. */
static const struct {
	const char *name, *prototype;
	uint32_t line;
	bool is_noreturn, is_local;
} c_functions[] = {
	{"f1", "struct pt *f1(struct pt *p, const char *s, union un u, enum col c, ulong_t n)", 5, false, false},
	{"f2", "int f2(cmp_fn cmp, int (*raw)(int, char **), volatile int *const vp, char *buf, int (*arr)[4])", 7, false, false},
	{"f3", "void f3(const char *fmt, ...)", 9, true, false},
	{"f4", "double f4(float f, long double ld)", 10, false, true},
	{"f5", "int (*f5(int which))(int, char **)", 11, false, false},
	{"f6", "_Bool f6(void)", 12, false, false},
	{"f7", "int f7()", 13, false, false},
	{"main", "int main(int argc, char **argv)", 14, false, false},
};

struct all {
	struct dbg_funcs funcs;
	struct dbg_lines lines;
	struct findings f;
};

static void all_fini(struct all *a)
{
	VEC_FREE(&a->funcs.list);
	VEC_FREE(&a->lines.list);
	VEC_FREE(&a->lines.files);
	arena_fini(&a->funcs.arena);
	arena_fini(&a->lines.arena);
	findings_fini(&a->f);
}

static const struct dbg_func *func_named(const struct all *a, const char *name)
{
	for (size_t i = 0; i < a->funcs.list.cnt; i++) {
		struct fmt_str s = a->funcs.list.data[i].name;
		if (s.len == strlen(name) && memcmp(s.s, name, s.len) == 0)
			return &a->funcs.list.data[i];
	}
	return NULL;
}

static bool str_is(struct fmt_str s, const char *want)
{
	return s.len == strlen(want) && (!s.len || memcmp(s.s, want, s.len) == 0);
}

static bool str_ends(struct fmt_str s, const char *want)
{
	size_t len = strlen(want);
	return s.len >= len && memcmp(s.s + s.len - len, want, len) == 0;
}

/* The symbol table is the second opinion on ranges. */
static void compare_with_symbols(const struct subject *s, const struct all *a)
{
	size_t compared = 0;
	for (size_t i = 0; i < s->bin->symbols.cnt; i++) {
		const struct fmt_symbol *sym = &s->bin->symbols.data[i];
		if (sym->type != FMT_SYM_FUNC || sym->is_undefined || !sym->size_len || sym->is_dynamic)
			continue;
		for (size_t k = 0; k < a->funcs.list.cnt; k++) {
			const struct dbg_func *x = &a->funcs.list.data[k];
			if (x->name.len != sym->name.len || memcmp(x->name.s, sym->name.s, x->name.len) != 0)
				continue;
			assert_int_equal(x->va, sym->va);
			assert_int_equal(x->len, sym->size_len);
			compared++;
		}
	}
	assert_true(compared >= ARRAY_LEN(c_functions));
}

static void check_c(const char *command)
{
	struct subject *s = subject_new(".c", c_source, command);
	if (!s) {
		print_message("not here: %s\n", command);
		return;
	}
	struct all a = {0};
	assert_null(dbg_read_dwarf(s->bin, true, &a.funcs, &a.lines, &a.f));
	if (a.f.list.cnt)
		fail_msg("%s: %s", command, a.f.list.data[0].why);
	for (size_t i = 0; i < ARRAY_LEN(c_functions); i++) {
		const struct dbg_func *x = func_named(&a, c_functions[i].name);
		if (!x || !str_is(x->prototype, c_functions[i].prototype) || x->line != c_functions[i].line ||
		    x->is_noreturn != c_functions[i].is_noreturn || x->is_external == c_functions[i].is_local ||
		    !str_ends(x->file, "in.c"))
			fail_msg("%s: %s: %.*s line %u", command, c_functions[i].name, x ? (int)x->prototype.len : 0,
				 x ? x->prototype.s : "", x ? x->line : 0);
	}
	compare_with_symbols(s, &a);
	/* Every line of main's body has a row inside main. */
	const struct dbg_func *m = func_named(&a, "main");
	unsigned seen = 0;
	for (size_t i = 0; i < a.lines.list.cnt; i++) {
		const struct dbg_line *row = &a.lines.list.data[i];
		if (row->va < m->va || row->va - m->va >= m->len || !row->line)
			continue;
		assert_true(row->line >= 14 && row->line <= 19 && str_ends(a.lines.files.data[row->file], "in.c"));
		seen |= 1u << (row->line - 14);
	}
	assert_true((seen & 0x1c) == 0x1c); /* lines 16, 17, 18 */
	/* Without lines the functions are the same. */
	struct all b = {0};
	assert_null(dbg_read_dwarf(s->bin, false, &b.funcs, NULL, &b.f));
	assert_int_equal(b.funcs.list.cnt, a.funcs.list.cnt);
	all_fini(&a);
	all_fini(&b);
	subject_free(s);
}

static void test_c_of_all_versions(void **state)
{
	static const char *const commands[] = {
		"gcc -gdwarf-2 -O0 -o $OUT $SRC", "gcc -gdwarf-3 -O0 -o $OUT $SRC", "gcc -gdwarf-4 -O1 -fno-inline -o $OUT $SRC",
		"gcc -gdwarf-5 -O0 -o $OUT $SRC", "gcc -g -gz=zlib -O0 -o $OUT $SRC", "gcc -g -gz=zlib-gnu -O0 -o $OUT $SRC",
		"gcc -g -O0 -c -o $OUT $SRC", "gcc -g -gz -O0 -ffunction-sections -c -o $OUT $SRC",
		"clang -gdwarf-4 -O0 -o $OUT $SRC", "clang -gdwarf-5 -O0 -o $OUT $SRC",
		"clang -g -fdebug-types-section -O0 -o $OUT $SRC",
	};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		check_c(commands[i]);
}

static void expect_func(const struct all *a, const char *name, const char *prototype)
{
	const struct dbg_func *x = func_named(a, name);
	if (!x)
		fail_msg("no %s", name);
	if (!str_is(x->prototype, prototype))
		fail_msg("%s: %.*s", name, (int)x->prototype.len, x->prototype.s ? x->prototype.s : "");
}

static void test_cxx(void **state)
{
	static const char source[] =
		"namespace ns { struct S { int v; S(int); virtual ~S(); int m(const long &s, int &&r) const; bool operator<(const S &) const; };\n"
		"S::S(int a) : v(a) {} S::~S() {} int S::m(const long &s, int &&r) const { return v + (int)s + r; }\n"
		"bool S::operator<(const S &o) const { return v < o.v; }\n"
		"namespace { __attribute__((noinline)) int anon(int S::*pm, decltype(nullptr)) { return pm ? 1 : 0; } } }\n"
		"template <class T> struct box { T t; }; extern \"C\" int cfun(box<ns::S *> &b) { return b.t->v + ns::anon(&ns::S::v, nullptr); }\n"
		"int main() { ns::S s(1); box<ns::S *> b{&s}; return s.m(3, 4) + cfun(b) + (s < s); }\n";
	static const char *const commands[] = {"g++ -g -O0 -o $OUT $SRC", "clang++ -g -O0 -o $OUT $SRC"};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct subject *s = subject_new(".cc", source, commands[i]);
		if (!s)
			continue;
		struct all a = {0};
		assert_null(dbg_read_dwarf(s->bin, true, &a.funcs, &a.lines, &a.f));
		expect_func(&a, "_ZNK2ns1S1mERKlOi", i ? "int m(const struct S *this, const long *s, int *r)" :
							"int m(const struct S *const this, const long int *s, int *r)");
		expect_func(&a, "_ZNK2ns1SltERKS0_", i ? "bool operator(const struct S *this, const struct S *o)" :
							"bool operator(const struct S *const this, const struct S *o)");
		/* gcc gives functions nobody else can name no linkage name. */
		expect_func(&a, i ? "_ZN2ns12_GLOBAL__N_14anonEMNS_1SEiDn" : "anon", "int anon(ptrdiff_t pm, void *)");
		assert_true(str_ends(func_named(&a, "main")->file, "in.cc") && func_named(&a, "main")->line == 6);
		expect_func(&a, "cfun", "int cfun(struct box_ns_S *b)");
		expect_func(&a, "main", "int main(void)");
		all_fini(&a);
		subject_free(s);
	}
}

static void test_rust_and_go(void **state)
{
	static const char rust[] =
		"pub struct P { a: u32 }\nimpl P { #[no_mangle] #[inline(never)]\n"
		"pub fn go(&self, s: &str, t: (i32, u8), f: fn(u16) -> bool) -> Option<u64> {\n"
		"if f(3) { None } else { Some(self.a as u64 + s.len() as u64 + t.0 as u64) } } }\n"
		"#[no_mangle] #[inline(never)] fn die(x: i128) -> ! { panic!(\"{}\", x) }\nfn odd(x: u16) -> bool { x & 1 == 1 }\n"
		"fn main() { let p = P { a: 1 }; if p.go(\"x\", (1, 2), odd).is_none() { die(1) } }\n";
	struct subject *s = subject_new(".rs", rust, "rustc -g -o $OUT $SRC");
	struct all a = {0};
	if (s) {
		assert_null(dbg_read_dwarf(s->bin, false, &a.funcs, NULL, &a.f));
		expect_func(&a, "go", "struct Option_u64 go(struct P *self, struct _str s, struct _i32_u8 t, bool (*f)(uint16_t))");
		expect_func(&a, "die", "void die(__int128 x)");
		assert_true(func_named(&a, "die")->is_noreturn);
		all_fini(&a);
		subject_free(s);
	}
	static const char go[] = "package main\n//go:noinline\nfunc add(a int32, s string) (int, error) { return int(a) + len(s), nil }\n"
				 "func main() { x, _ := add(1, \"q\"); println(x) }\n";
	a = (struct all){0};
	s = subject_new(".go", go, "go build -o $OUT $SRC");
	if (s) {
		assert_null(dbg_read_dwarf(s->bin, true, &a.funcs, &a.lines, &a.f));
		expect_func(&a, "main.add", "struct main_add_results main_add(int32_t a, struct string s)");
		expect_func(&a, "main.main", "void main_main(void)");
		all_fini(&a);
		subject_free(s);
	}
}

/* -g1 says where functions are and nothing about their types. */
static void test_no_types_no_prototypes(void **state)
{
	struct subject *s = subject_new(".c", c_source, "gcc -g1 -O0 -o $OUT $SRC");
	struct all a = {0};
	assert_non_null(s);
	assert_null(dbg_read_dwarf(s->bin, true, &a.funcs, &a.lines, &a.f));
	assert_non_null(func_named(&a, "f1"));
	for (size_t i = 0; i < a.funcs.list.cnt; i++)
		assert_null(a.funcs.list.data[i].prototype.s);
	all_fini(&a);
	subject_free(s);
}

/* Split DWARF: the lines are here, the functions are not, and that is said. */
static void test_split_is_said(void **state)
{
	static const char *const commands[] = {"gcc -gsplit-dwarf -gdwarf-4 -o $OUT $SRC", "gcc -gsplit-dwarf -gdwarf-5 -o $OUT $SRC",
					       "clang -gsplit-dwarf -gdwarf-5 -o $OUT $SRC"};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct subject *s = subject_new(".c", c_source, commands[i]);
		if (!s)
			continue;
		struct all a = {0};
		assert_null(dbg_read_dwarf(s->bin, true, &a.funcs, &a.lines, &a.f));
		assert_true(a.lines.list.cnt > 5);
		assert_int_equal(a.f.list.cnt, 1);
		assert_non_null(strstr(a.f.list.data[0].why, "1 units keep their functions in .dwo files"));
		all_fini(&a);
		subject_free(s);
	}
}

static void test_no_dwarf_is_no_problem(void **state)
{
	struct subject *s = subject_open("/bin/true");
	struct all a = {0};
	assert_non_null(s);
	assert_null(dbg_read_dwarf(s->bin, true, &a.funcs, &a.lines, &a.f));
	assert_int_equal(a.funcs.list.cnt + a.lines.list.cnt + a.f.list.cnt, 0);
	all_fini(&a);
	subject_free(s);
}

static uint64_t rng_state = 0x9e3779b97f4a7c15;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

/* Mutants of the debug sections: always an answer, sometimes a complaint, sometimes none. */
static void test_mutants(void **state)
{
	struct subject *s = subject_new(".c", c_source, "gcc -g -O0 -o $OUT $SRC");
	assert_non_null(s);
	size_t len = s->file->len, with_findings = 0, with_functions = 0;
	uint8_t *copy = malloc(len);
	assert_non_null(copy);
	for (int i = 0; i < 60; i++) {
		memcpy(copy, s->file->data, len);
		for (size_t k = 0; k < s->bin->sections.cnt; k++) {
			const struct fmt_section *sec = &s->bin->sections.data[k];
			if (sec->kind != FMT_SEC_DEBUG || !sec->file_len || rng() % 2)
				continue;
			for (int n = 0; n < 3; n++)
				copy[sec->file_off + rng() % MIN(sec->file_len, i % 2 ? 40u : 4000u)] = (uint8_t)rng();
		}
		struct fmt_bin *b = NULL;
		struct all a = {0};
		assert_null(fmt_open(copy, len, &b));
		assert_null(dbg_read_dwarf(b, true, &a.funcs, &a.lines, &a.f));
		with_findings += a.f.list.cnt > 0;
		with_functions += a.funcs.list.cnt > 0;
		all_fini(&a);
		fmt_bin_free(b);
	}
	assert_true(with_findings > 5 && with_functions > 5);
	free(copy);
	subject_free(s);
}

/* Runs the child itself with limits of the test's choice. */
static void read_with_limits(struct subject *s, size_t max_out_len, uint64_t max_mem_len, struct all *ret)
{
	struct dw_job job = {.b = s->bin, .want_lines = true, .max_out_len = max_out_len};
	struct child_opts opts = {.what = "reading DWARF", .max_out_len = max_out_len, .max_mem_len = max_mem_len,
				  .cpu_s = 20, .wall_ms = 60000, .prepare = dbg_dw_prepare, .run = dbg_dw_run, .ctx = &job};
	_cleanup_buf_ struct buf b = {0};
	_cleanup_err_ struct err *why = child_run(&opts, &b);
	assert_true(b.len <= max_out_len);
	struct dw_answer answer = {b.data, b.len, why};
	assert_null(dbg_dw_take(s->bin, &answer, &ret->funcs, &ret->lines, &ret->f));
}

/* More than the limits allow: what came before is used, and it is said. */
static void test_limits_are_said(void **state)
{
	struct subject *s = subject_new(".c", c_source, "gcc -g -O0 -o $OUT $SRC");
	assert_non_null(s);
	struct all a = {0};
	read_with_limits(s, 6500, 64 << 20, &a);
	assert_true(a.funcs.list.cnt > 0 && a.funcs.list.cnt < ARRAY_LEN(c_functions));
	assert_int_equal(a.f.list.cnt, 1);
	assert_non_null(strstr(a.f.list.data[0].why, "more of it than scry takes"));
	all_fini(&a);
	a = (struct all){0};
	read_with_limits(s, 1 << 20, 4096, &a);
	assert_int_equal(a.f.list.cnt, 1);
	assert_non_null(strstr(a.f.list.data[0].why, "what came before is used"));
	all_fini(&a);
	subject_free(s);
}

static void put_uleb(struct buf *b, uint64_t v)
{
	for (; v > 127; v >>= 7)
		buf_add_ch(b, (char)(v | 128));
	buf_add_ch(b, (char)v);
}

static void put_func(struct buf *b, uint64_t va, uint64_t len, const char *name, const char *prototype)
{
	const uint64_t head[] = {DW_REC_FUNC, va, len, 0, 1, 1};
	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		put_uleb(b, head[i]);
	put_uleb(b, strlen(name));
	buf_add_str(b, name);
	put_uleb(b, strlen(prototype));
	buf_add_str(b, prototype);
}

/* What a child that was taken over may send. */
static void test_lying_child(void **state)
{
	struct fmt_segment code = {.va = 0x1000, .mem_len = 0x1000, .perm = FMT_R | FMT_X};
	struct fmt_bin bin = {.bits = 64};
	bin.segments.data = &code;
	bin.segments.cnt = 1;
	_cleanup_buf_ struct buf b = {0};
	put_func(&b, 0x1100, 0x10, "good", "int good(void)");
	put_func(&b, 0x1f00, 0x1000, "long", "");          /* runs past the code: length unknown */
	put_func(&b, 0x5000, 0x10, "outside", "");         /* no code there */
	put_func(&b, 0x1200, 0x10, "bad\x1b[31m", "");     /* no name */
	put_func(&b, 0x1300, 0x10, "quiet", "int\nquiet"); /* no prototype */
	/* 2^60 rows, of which one is there. */
	const uint64_t rows[] = {DW_REC_LINES, (uint64_t)1 << 60, 0x1100, 0, 99, 7};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		put_uleb(&b, rows[i]);
	struct all a = {0};
	struct dw_answer answer = {b.data, b.len, NULL};
	assert_null(dbg_dw_take(&bin, &answer, &a.funcs, &a.lines, &a.f));
	assert_int_equal(a.funcs.list.cnt, 3);
	assert_true(str_is(a.funcs.list.data[0].name, "good") && str_is(a.funcs.list.data[0].prototype, "int good(void)"));
	assert_true(str_is(a.funcs.list.data[1].name, "quiet") && !a.funcs.list.data[1].prototype.s);
	assert_true(str_is(a.funcs.list.data[2].name, "long") && !a.funcs.list.data[2].len);
	assert_null(a.funcs.list.data[0].file.s); /* there is no file 1 */
	assert_int_equal(a.lines.list.cnt, 1);
	assert_int_equal(a.lines.list.data[0].line, 0);
	assert_int_equal(a.f.list.cnt, 3); /* senseless end, no code, control characters */
	all_fini(&a);
}

static void expect_debug_file(struct subject *s, const char *part)
{
	_cleanup_free_ char *found = dbg_find_debug_file(s->bin, s->path);
	if (!part ? found != NULL : !found || !strstr(found, part))
		fail_msg("found %s, wanted %s", found ? found : "none", part ? part : "none");
	if (!part)
		return;
	struct subject *d = subject_open(found);
	struct all a = {0};
	assert_null(dbg_read_dwarf(d->bin, true, &a.funcs, &a.lines, &a.f));
	assert_non_null(func_named(&a, "f1"));
	all_fini(&a);
	subject_free(d);
}

static void test_debug_files(void **state)
{
#define SPLIT "gcc -g -Wl,--build-id=none -o $OUT $SRC && objcopy --only-keep-debug $OUT out.debug && strip $OUT && " \
	      "objcopy --add-gnu-debuglink=out.debug $OUT"
	struct subject *s = subject_new(".c", c_source, SPLIT);
	assert_non_null(s);
	expect_debug_file(s, "/out.debug");
	/* Another file under the same name does not count. */
	free(subject_run(s, "cp /bin/true ${OUT}.debug"));
	expect_debug_file(s, NULL);
	subject_free(s);
	s = subject_new(".c", c_source, SPLIT " && mkdir .debug && mv out.debug .debug/");
	expect_debug_file(s, "/.debug/out.debug");
	/* The link's name is hostile: it must not leave the folders. */
	s->bin->debuglink = (struct fmt_str){"../out.debug", 12};
	expect_debug_file(s, NULL);
	s->bin->debuglink = (struct fmt_str){"..", 2};
	expect_debug_file(s, NULL);
	s->bin->debuglink = (struct fmt_str){0};
	/* A build-id nobody has. */
	static const uint8_t id[20] = {0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
	s->bin->build_id = id;
	s->bin->build_id_len = 20;
	expect_debug_file(s, NULL);
	subject_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c_of_all_versions),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_rust_and_go),
		cmocka_unit_test(test_no_types_no_prototypes),
		cmocka_unit_test(test_split_is_said),
		cmocka_unit_test(test_no_dwarf_is_no_problem),
		cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_limits_are_said),
		cmocka_unit_test(test_lying_child),
		cmocka_unit_test(test_debug_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
