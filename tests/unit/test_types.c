/* SPDX-License-Identifier: Apache-2.0 */
#include "types/types.h"
#include "types/types_clang.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void must_parse(struct types *t, const char *text)
{
	struct err *e = types_parse(t, text, strlen(text), NULL);
	if (e)
		fail_msg("%s: %s", text, e->text);
}

static struct types *set_of(enum types_abi abi, const char *text)
{
	struct types *t = types_new(abi);
	assert_non_null(t);
	must_parse(t, text);
	return t;
}

static struct types_ref type_of(struct types *t, const char *text)
{
	struct types_ref r = {0};
	struct err *e = types_parse_type(t, text, strlen(text), NULL, &r);
	if (e)
		fail_msg("%s: %s", text, e->text);
	return r;
}

static bool marks_equal(struct types_mark a, struct types_mark b)
{
	return !memcmp(&a, &b, sizeof(a));
}

static void assert_fails(const char *text, const char *message)
{
	struct types *t = set_of(TYPES_X86_64, "struct known { int a; }; struct open; int f(); typedef struct known known_t;");
	struct types_mark before = types_mark(t);
	struct types_place place = {0};
	struct buf was = {0}, is = {0};
	types_print_all(t, &was);
	struct err *e = types_parse(t, text, strlen(text), &place);
	if (!e)
		fail_msg("%s: is taken", text);
	assert_string_equal(e->text, message);
	assert_true(e->kind == ERR_INVALID || e->kind == ERR_BUDGET);
	assert_true(place.line > 0 && place.col > 0);
	err_free(e);
	assert_true(marks_equal(before, types_mark(t)));
	types_print_all(t, &is);
	assert_int_equal(was.len, is.len);
	assert_memory_equal(was.data, is.data, is.len);
	buf_fini(&was);
	buf_fini(&is);
	types_free(t);
}

static void test_errors(void **state)
{
	assert_fails("int a;\nstruct s { int x; foo y; };", "2:19: unknown type name 'foo'");
	assert_fails("# 7 \"x.h\" 1\nint a\nint b;", "x.h:8:1: ';' expected before 'int'");
	assert_fails("#line 3\nint (x;", "3:7: ')' expected before ';'");
	assert_fails("#include <stdio.h>\n", "1:1: a preprocessor line: run the text through the preprocessor first");
	assert_fails("struct open { int x; }; struct known { long a; };", "1:48: 'known' is defined differently before");
	assert_fails("struct open x[3];", "1:14: array of a type without a size");
	assert_fails("struct s { struct s x; };", "1:21: the member's type is incomplete");
	assert_fails("struct s { int a, a; };", "1:19: member 'a' is there twice");
	assert_fails("struct s { int a; union { int b; struct { char a; }; }; };", "1:19: member 'a' is there twice");
	assert_fails("struct s { int a[]; int b; };", "1:28: the open array 'a' is not the last member");
	assert_fails("struct s { char a : 9; };", "1:21: the bit-field is wider than its type");
	assert_fails("struct s { float a : 3; };", "1:22: a bit-field must have an integer type");
	assert_fails("int a[1 - 2];", "1:7: the array's size is negative");
	assert_fails("int a[1 / 0];", "1:7: not a constant expression");
	assert_fails("int n; int a[n];", "1:14: not a constant expression: 'n' is not known here");
	assert_fails("char a[1ull << 60];", "1:7: array is too large");
	assert_fails("typedef long known_t;", "1:14: 'known_t' is declared as something else before");
	assert_fails("enum e { A = 1 }; enum f { A = 2 };", "1:28: 'A' is declared as something else before");
	assert_fails("union known { int a; };", "1:7: 'known' is a struct, not a union");
	assert_fails("int f(int)(char);", "1:7: a function cannot return a function");
	assert_fails("int x; long x;", "1:13: 'x' is declared as something else before");
	assert_fails("int x : 3;", "1:7: ';' expected before ':'");
	assert_fails("unsigned float x;", "1:1: these words make no type");
	assert_fails("_Static_assert(sizeof(long) == 4, \"long\");", "1:16: static assertion failed: long");
	assert_fails("/* never ends", "1:1: a comment without an end");
	assert_fails("char *s = \"abc;", "1:11: a string without an end");
	assert_fails("struct s { int x; ", "1:19: '}' expected, but the text ends");
	assert_fails("void g(void) { if (x) {", "1:14: '{' without its end");
	assert_fails("struct known f(int, strange);", "1:21: unknown type name 'strange'");
	assert_fails("void x;", "1:6: a variable of type void");
	assert_fails("int x __attribute__((aligned(3)));", "1:30: an alignment must be a power of two up to 268435456");
	assert_fails("int x = 0xg;; int \1;", "1:19: a name expected before '?'");
}

/* Text that nests too deep, of each way to nest. */
static void test_nesting(void **state)
{
	static const struct {
		const char *head, *open, *tail;
	} rows[] = {
		{"int ", "(", "x;"}, {"int a[", "(", "1"}, {"int a[", "-", "1];"}, {"", "struct {", "int x;"}, {"int f(", "int (", ""},
		{"int ", "*", "x;"}, {"int x", "[1]", ";"}, {"int a[", "sizeof(int[", "1"}, {"int a[", "1?", "1"},
		{"", "_Atomic(", "int"}, {"", "typeof(", "int"}, {"enum { A = ", "sizeof(enum { A = ", ""},
		{"int a[", "(int)", "1];"}, {"int a[", "1+(", "1"}, {"int a[", "1?1:", "1"}, {"int ", "(*(", "x"},
	};
	struct types *t = types_new(TYPES_X86_64);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf text = {0};
		buf_add_str(&text, rows[i].head);
		for (unsigned n = 0; n < 100000; n++)
			buf_add_str(&text, rows[i].open);
		buf_add_str(&text, rows[i].tail);
		struct err *e = types_parse(t, text.data, text.len, NULL);
		assert_non_null(e);
		if (e->kind != ERR_BUDGET)
			fail_msg("%s: %s", rows[i].open, e->text);
		err_free(e);
		buf_fini(&text);
	}
	/* Typedefs of typedefs, each twice the one before: depth is bounded, and comparing takes no time. */
	struct buf text = {0};
	buf_add_str(&text, "typedef int t0;");
	for (unsigned n = 1; n < 100; n++)
		buf_printf(&text, "typedef struct { t%u a, *b; int (*f)(t%u, t%u); } *t%u;", n - 1, n - 1, n - 1, n);
	assert_null(types_parse(t, text.data, text.len, NULL));
	/* Once more: each is compared with the one before. */
	assert_null(types_parse(t, text.data, text.len, NULL));
	buf_fini(&text);
	types_free(t);
}

static void assert_value(const char *expr, int64_t value)
{
	struct types *t = types_new(TYPES_X86_64);
	struct buf text = {0};
	buf_printf(&text, "enum { one = 1, big = 0x80000000, neg = -5 }; struct s { int a; struct { char b[3]; short c : 5; } d[4]; };"
			  "extern int arr[7]; int func(long); enum { result = %s };", expr);
	struct err *e = types_parse(t, text.data, text.len, NULL);
	if (e)
		fail_msg("%s: %s", expr, e->text);
	const struct types_decl *d = types_decl_get(t, types_find(t, "result", 6, false));
	if (d->value.value != value)
		fail_msg("%s is %lld", expr, (long long)d->value.value);
	buf_fini(&text);
	types_free(t);
}

static void test_expressions(void **state)
{
	assert_value("1 + 2 * 3 - 8 / 4 % 3", 5);
	assert_value("-1 < 0u", 0);
	assert_value("-1L < 0u", 1);
	assert_value("(unsigned char)300 + (signed char)200", 44 - 56);
	assert_value("1 ? 2 : 1 / 0", 2);
	assert_value("0 && 1 / 0 || one", 1);
	assert_value("~0u >> 28", 15);
	assert_value("-8 >> 1", -4);
	assert_value("1 << 31 >> 31", -1);
	assert_value("sizeof(int *[3]) + sizeof 'a' + sizeof arr + sizeof arr[0] + sizeof(arr + 1)", 24 + 4 + 28 + 4 + 8);
	assert_value("sizeof(struct s) + _Alignof(double)", 20 + 8);
	assert_value("__builtin_offsetof(struct s, d[2].b[1])", 4 + 2 * 4 + 1);
	assert_value("(unsigned long)&((struct s *)0)->d[1].b", 8);
	assert_value("(char *)&((struct s *)16)->d - (char *)16", 4);
	assert_value("sizeof(((struct s *)0)->d) / sizeof(((struct s *)0)->d[0])", 4);
	assert_value("sizeof(func(3)) + sizeof(1.0f) + sizeof(1.0L)", 4 + 4 + 16);
	assert_value("'\\n' + '\\x41' + '\\101' + L'\\u20ac'", 10 + 65 + 65 + 0x20ac);
	assert_value("'ab'", 'a' * 256 + 'b');
	assert_value("'\\xff'", -1);
	assert_value("0b101 + 0x1fUL + 017", 5 + 31 + 15);
	assert_value("big > 0 && neg < 0", 1);
	assert_value("sizeof(0x80000000) + sizeof(2147483648)", 12);
	assert_value("__builtin_types_compatible_p(int, signed) + __builtin_types_compatible_p(char, signed char)", 1);
	assert_value("__builtin_choose_expr(1, 4, arr)", 4);
	assert_value("_Generic(1L, int: 1, long: 2, default: 3)", 2);
	assert_value("(__int128)1 << 100 >> 98", 4);
	assert_value("(-9223372036854775807 - 1) / -1 < 0", 1);
	assert_value("(_Bool)256 + !5 + !0", 2);
	assert_value("18446744073709551615u == -1", 1);
}

static void assert_prints(const char *text, const char *expected)
{
	struct types *t = types_new(TYPES_X86_64);
	struct buf out = {0};
	must_parse(t, text);
	types_print_all(t, &out);
	buf_add_ch(&out, 0);
	assert_string_equal(out.data, expected);
	struct types *again = types_new(TYPES_X86_64);
	must_parse(again, out.data);
	struct buf out2 = {0};
	types_print_all(again, &out2);
	buf_add_ch(&out2, 0);
	assert_string_equal(out2.data, expected);
	buf_fini(&out);
	buf_fini(&out2);
	types_free(t);
	types_free(again);
}

static void test_printing(void **state)
{
	assert_prints("int *(*(*f[3])(char, ...))[4];", "extern int *(*(*f[3])(char, ...))[4];\n");
	assert_prints("void (*signal(int sig, void (*func)(int)))(int);", "void (*signal(int sig, void (*func)(int)))(int);\n");
	assert_prints("char *const volatile restrict p, c;", "extern char *const volatile restrict p;\nextern char c;\n");
	assert_prints("typedef struct { int a; struct { int b; } c, *d; union { int e; float f; }; int : 3; unsigned g : 7; } T; T x;",
		      "typedef struct {\n\tint a;\n\tstruct {\n\t\tint b;\n\t} c, *d;\n\tunion {\n\t\tint e;\n\t\tfloat f;\n\t};\n"
		      "\tint : 3;\n\tunsigned int g : 7;\n} T;\nextern T x;\n");
	assert_prints("struct node { struct node *next; enum color { RED, BLUE = -3 } c; } __attribute__((packed, aligned(4)));",
		      "enum color {\n\tRED = 0,\n\tBLUE = -3,\n};\nstruct node {\n\tstruct node *next;\n\tenum color c;\n} "
		      "__attribute__((packed, aligned(4)));\n");
	assert_prints("int f(); int g(void); int h(int a[], int (b)(void), const struct q *);",
		      "int f();\nint g(void);\nstruct q;\nint h(int *a, int (*b)(void), const struct q *);\n");
	assert_prints("extern __inline __attribute__((__noreturn__)) void die(const char *fmt, ...) __asm__(\"\" \"die2\") "
		      "__attribute__((cold, format(printf, 1, 2)));",
		      "void die(const char *fmt, ...) asm(\"die2\") __attribute__((noreturn));\n");
	assert_prints("struct v { char c; __extension__ long long x __attribute__((packed)); _Alignas(32) char d; };",
		      "struct v {\n\tchar c;\n\tlong long x __attribute__((packed));\n\tchar d __attribute__((aligned(32)));\n};\n");
	assert_prints("enum { A, B = 0xffffffffffffffff }; struct s { enum { C } c; };",
		      "enum {\n\tA = 0,\n\tB = 18446744073709551615U,\n};\nstruct s {\n\tenum {\n\t\tC = 0,\n\t} c;\n};\n");
	assert_prints("typedef float v4 __attribute__((vector_size(16))); _Complex double z; __int128 i;",
		      "typedef float __attribute__((vector_size(16))) v4;\nextern _Complex double z;\nextern __int128 i;\n");
	assert_prints("#pragma pack(push, 2)\nstruct s { int a; struct { long b; }; };\n#pragma pack(pop)\nstruct t { char c; int d; };",
		      "struct s {\n\tint a __attribute__((packed, aligned(2)));\n\tstruct {\n\t\tlong b __attribute__((packed, aligned(2)));\n\t};\n"
		      "};\nstruct t {\n\tchar c;\n\tint d;\n};\n");
	assert_prints("int old(a, b) int a; char *b; { return '}' + \"}\"[0]; } static int x = { 3, (4, 5) }, y;",
		      "int old();\nstatic int x;\nstatic int y;\n");
	assert_prints("int f(); typedef long T; int f(T);", "typedef long T;\nint f(T);\n");
	assert_prints("int x[]; int x[3]; int f(); int f(int a); int f(); int f(int);", "extern int x[3];\nint f(int a);\n");
}

static void test_single(void **state)
{
	struct types *t = set_of(TYPES_X86_64, "struct x { int a; }; typedef int fn_t(long);");
	struct buf out = {0};
	types_print(t, type_of(t, "char *[4]"), NULL, &out);
	buf_add_ch(&out, '|');
	types_print(t, type_of(t, "char *[4]"), "name", &out);
	buf_add_ch(&out, '|');
	types_print(t, type_of(t, "struct x const *volatile p;"), "", &out);
	buf_add_ch(&out, '|');
	types_print(t, type_of(t, "int (*(*)[2])(uint32_t, ...)"), "q", &out);
	buf_add_ch(&out, 0);
	assert_string_equal(out.data, "char *[4]|char *name[4]|const struct x *volatile|int (*(*q)[2])(uint32_t, ...)");
	buf_fini(&out);
	struct types_ref r;
	const char *name = NULL;
	assert_null(types_parse_prototype(t, "int f(struct x *, ...)", 22, NULL, &r, &name));
	assert_string_equal(name, "f");
	uint32_t cnt;
	const struct types_param *params = types_params(t, r.id, &cnt);
	assert_int_equal(cnt, 1);
	assert_int_equal(types_get(t, params[0].type.id)->kind, TYPES_POINTER);
	assert_true(types_get(t, r.id)->flags & TYPES_F_VARIADIC);
	assert_null(types_parse_prototype(t, "fn_t", 4, NULL, &r, &name));
	assert_null(name);
	static const char *const bad[] = {"int", "int f", "", "int f(int) {", "int f(int), g(int)", "f(int)", "int f(struct)"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct types_mark before = types_mark(t);
		struct err *e = types_parse_prototype(t, bad[i], strlen(bad[i]), NULL, &r, &name);
		assert_non_null(e);
		err_free(e);
		assert_true(marks_equal(before, types_mark(t)));
	}
	types_free(t);
}

static void test_paths(void **state)
{
	struct types *t = set_of(TYPES_X86_64,
				 "struct in { char c; short s[4]; unsigned x : 3, y : 7; }; struct out { int a; union { struct in b[3]; long l; };"
				 " struct { int deep; } n; const char tail[]; };");
	struct types_ref r = type_of(t, "struct out");
	struct types_at at;
	assert_null(types_path(t, r, "b[2].s[1]", 9, &at));
	assert_int_equal(at.off, 8 + 2 * 12 + 4);
	assert_int_equal(types_get(t, at.type.id)->base, TYPES_B_SHORT);
	assert_null(types_path(t, r, ".b[0].y", 7, &at));
	assert_true(at.is_bitfield);
	assert_int_equal(at.bit_len, 7);
	assert_int_equal(at.off * 8 + at.bit_off, (8 + 10) * 8 + 3);
	assert_null(types_path(t, r, "tail[9]", 7, &at));
	assert_int_equal(at.type.quals, TYPES_CONST);
	static const char *const bad[] = {"z", "b[3]", "a.x", "b[", "b[1", "b]", "b[99999999999999999999999]", "b..c", "a[0]", "b[1]c", ".",
					  "b[-1]", "n.deep.", "tail[18446744073709551615]"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err *e = types_path(t, r, bad[i], strlen(bad[i]), &at);
		if (!e)
			fail_msg("%s is taken", bad[i]);
		err_free(e);
	}
	struct buf path = {0};
	assert_true(types_path_of(t, r, 8 + 12 + 7, &path, &at));
	buf_add_ch(&path, 0);
	assert_string_equal(path.data, ".b[1].s[2]");
	assert_int_equal(at.off, 8 + 12 + 6);
	path.len = 0;
	assert_true(types_path_of(t, r, 5, &path, &at));
	assert_int_equal(path.len, 0);
	uint64_t len;
	uint32_t align;
	assert_true(types_layout(t, r, &len, &align));
	assert_false(types_path_of(t, r, len, &path, &at));
	/* Each offset's path leads back to it. */
	for (uint64_t off = 0; off < len; off++) {
		struct types_at back;
		path.len = 0;
		assert_true(types_path_of(t, r, off, &path, &at));
		assert_null(types_path(t, r, path.data, path.len, &back));
		assert_int_equal(back.off, at.off);
		assert_int_equal(back.type.id, at.type.id);
	}
	buf_fini(&path);
	types_free(t);
}

static void test_same(void **state)
{
	struct types *t = set_of(TYPES_X86_64, "typedef int i; typedef i ia[3]; enum e { A }; struct s; typedef const char *str;");
	static const struct {
		const char *a, *b;
		bool same, compatible;
	} rows[] = {
		{"i *", "int *", true, true}, {"ia", "int[3]", true, true}, {"const ia", "const int[3]", true, true},
		{"int[]", "int[3]", false, true}, {"int[4]", "int[3]", false, false}, {"enum e", "unsigned", false, true},
		{"int()", "int(char)", false, true}, {"int(const int)", "int(int)", true, true}, {"str", "const char *", true, true},
		{"str const", "const char *", false, false}, {"char", "signed char", false, false}, {"struct s *", "struct s *", true, true},
		{"struct { int a; }", "struct { int a; }", true, true}, {"struct { int a; }", "struct { int b; }", false, false},
		{"int(*)(int, ...)", "int(*)(int)", false, false}, {"long", "long long", false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct types_ref a = type_of(t, rows[i].a), b = type_of(t, rows[i].b);
		if (types_same(t, a, b) != rows[i].same || types_compatible(t, a, b) != rows[i].compatible)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
		assert_int_equal(types_same(t, b, a), rows[i].same);
	}
	types_free(t);
}

static void test_marks(void **state)
{
	struct types *t = set_of(TYPES_X86_64, "struct s; int f(); extern int x[];");
	struct buf was = {0}, is = {0};
	types_print_all(t, &was);
	struct types_mark mark = types_mark(t);
	must_parse(t, "struct s { int a; } s; int f(int); extern int x[4]; typedef struct s s_t; enum { K }; bool b; typedef int bool;");
	uint64_t len;
	uint32_t align;
	assert_true(types_layout(t, type_of(t, "struct s"), &len, &align));
	types_rewind(t, &mark);
	types_print_all(t, &is);
	assert_int_equal(is.len, was.len);
	assert_memory_equal(is.data, was.data, is.len);
	assert_false(types_layout(t, type_of(t, "struct s"), &len, &align));
	assert_int_equal(types_find(t, "K", 1, false), 0);
	assert_int_not_equal(types_find(t, "bool", 4, false), 0);
	must_parse(t, "struct s { char c; }; enum { K = 9 };");
	buf_fini(&was);
	buf_fini(&is);
	types_free(t);
}

static void test_unordered(void **state)
{
	static const char *const texts[] = {"struct c { struct b x; };", "struct b { T a; };", "typedef struct a T;", "struct a { int i; };",
					    "struct d { struct nowhere n; };", "int f(T);", "int syntax error"};
	struct types *t = types_new(TYPES_A64);
	struct types_text list[ARRAY_LEN(texts)];
	struct err *why[ARRAY_LEN(texts)];
	struct types_mark mark = types_mark(t);
	uint64_t len;
	uint32_t align;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		list[i] = (struct types_text){texts[i], strlen(texts[i])};
	assert_null(types_parse_unordered(t, list, ARRAY_LEN(texts), why));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(why[i] != NULL, i == 4 || i == 6);
		err_free(why[i]);
	}
	assert_true(types_layout(t, type_of(t, "struct c"), &len, &align));
	struct buf names = {0};
	for (uint32_t i = 0; (i = types_next_changed(t, &mark, i)) != 0;)
		buf_printf(&names, "%s ", types_decl_get(t, i)->name);
	buf_add_ch(&names, 0);
	assert_string_equal(names.data, "a T f b c ");
	mark = types_mark(t);
	must_parse(t, "enum e { K }; int f(T); struct c;");
	assert_string_equal(types_decl_get(t, types_next_changed(t, &mark, 0))->name, "e");
	assert_int_equal(types_next_changed(t, &mark, types_next_changed(t, &mark, 0)), 0);
	buf_fini(&names);
	types_free(t);
}

static uint64_t rng_state = 0x9e3779b97f4a7c15;

static unsigned rng(unsigned below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (unsigned)(rng_state >> 20) % below;
}

/* A random declarator as text, around `name`. */
static void random_declarator(struct buf *out, const char *inner, unsigned depth)
{
	char text[1024];
	static const char *const quals[] = {"", "const ", "volatile ", "const volatile ", "restrict "};
	switch (depth ? rng(4) : 0) {
	case 0:
		buf_add_str(out, inner);
		return;
	case 1:
		snprintf(text, sizeof(text), "(*%s%s)", quals[rng(5)], inner);
		break;
	case 2:
		snprintf(text, sizeof(text), "(*%s%s)[%u]", quals[rng(5)], inner, rng(9));
		break;
	default:
		snprintf(text, sizeof(text), "(*%s%s)(int, char *a, struct s%u *%s)", quals[rng(5)], inner, rng(5), rng(2) ? ", ..." : "");
		break;
	}
	random_declarator(out, text, depth - 1);
}

/* parse(print(t)) == t */
static void test_round_trip(void **state)
{
	static const char *const bases[] = {"int", "unsigned char", "const struct s1", "volatile T", "union { int a; char b : 3; }",
					    "enum { E1, E2 }", "long double", "_Complex float", "void", "uint64_t const"};
	for (unsigned i = 0; i < 3000; i++) {
		enum types_abi abi = rng(TYPES_ABI_COUNT);
		struct types *t = set_of(abi, "struct s1 { int a; }; typedef struct { struct s1 x[2]; } T;");
		struct types *u = set_of(abi, "struct s1 { int a; }; typedef struct { struct s1 x[2]; } T;");
		struct buf text = {0}, out = {0}, out2 = {0};
		unsigned base = rng(ARRAY_LEN(bases));
		buf_printf(&text, "%s *", bases[base]);
		random_declarator(&text, "name", rng(6));
		buf_add_ch(&text, 0);
		struct types_ref r = type_of(t, text.data);
		types_print(t, r, "name", &out);
		buf_add_ch(&out, 0);
		struct types_ref r2 = type_of(u, out.data);
		types_print(u, r2, "name", &out2);
		buf_add_ch(&out2, 0);
		assert_string_equal(out.data, out2.data);
		if (!types_same_across(t, r, u, r2))
			fail_msg("%s became %s", text.data, out.data);
		buf_fini(&text);
		buf_fini(&out);
		buf_fini(&out2);
		types_free(t);
		types_free(u);
	}
}

/* --- what another compiler says --- */

/* Parses a text of which these numbers were said, as a child says them. */
static struct types *set_said(const char *text, const int64_t *words, size_t cnt, struct types_judged *ret)
{
	struct types *t = types_new(TYPES_X86_64);
	struct types_says says;
	assert_true(types_says_read((const char *)words, cnt * sizeof(*words), &says));
	struct err *e = types_parse_said(t, text, strlen(text), NULL, &says, ret);
	if (e)
		fail_msg("%s: %s", text, e->text);
	types_says_fini(&says);
	return t;
}

static void assert_decl(const struct types *t, const char *name, bool is_tag, const char *text)
{
	struct buf b = {0};
	types_print_decl(t, types_find(t, name, strlen(name), is_tag), &b);
	assert_int_equal(b.len, strlen(text));
	assert_memory_equal(b.data, text, b.len);
	/* What it says is what it means, to everybody. */
	struct types *u = types_new(TYPES_X86_64);
	struct err *e = types_parse(u, b.data, b.len, NULL);
	assert_null(e);
	uint32_t i = types_find(t, name, strlen(name), is_tag), k = types_find(u, name, strlen(name), is_tag);
	assert_true(types_same_across(t, types_decl_get(t, i)->type, u, types_decl_get(u, k)->type));
	types_free(u);
	buf_fini(&b);
}

static void test_said(void **state)
{
	static const char text[] = "struct __attribute__((ms_struct)) s { char a : 4; int b : 4; }; struct o { char c; struct s in; }; "
				   "union u { char x : 3; int y; }; enum e { ONE = 1, TWO = __builtin_other(3), THREE, FOUR = 4 }; "
				   "typedef struct { char z; int : 0; short w; } w_t;";
	struct types_judged j;
#define AT(word) (int64_t)(strstr(text, word) - text)
	const int64_t words[] = {
		AT("enum e"), 4, 4, 4, 1, 7, 8, 5,
		AT("struct __"), 8, 4, 2, 0, 32,
		AT("struct o"), 12, 4, 2, 0, 32,
		AT("union u"), 16, 8, 2, 0, 0,
		AT("struct { char z"), 8, 4, 3, 0, 64, 32,
		AT("struct { char z"), 8, 4, 3, 0, 64, 32, /* again, as a child says it */
	};
	struct types *t = set_said(text, words, ARRAY_LEN(words), &j);
	assert_int_equal(j.compared_cnt, 5);
	assert_int_equal(j.cnt, 4);
	for (size_t i = 0; i < j.cnt; i++)
		assert_true(j.list[i].is_taken);
	assert_int_equal(j.list[0].own_len, 4);
	assert_int_equal(j.list[0].len, 8);
	assert_decl(t, "s", true, "struct s {\n\tchar a : 4;\n\tunsigned char : 4;\n\tunsigned char _gap_1[3];\n\tint b : 4;\n"
		    "\tunsigned char : 4;\n\tunsigned char _gap_5[3];\n} __attribute__((packed, aligned(4)));\n");
	assert_decl(t, "u", true, "union u {\n\tchar x : 3;\n\tint y;\n\tunsigned char _gap_0[16];\n} __attribute__((packed, aligned(8)));\n");
	assert_decl(t, "e", true, "enum e {\n\tONE = 1,\n\tTWO = 7,\n\tTHREE = 8,\n\tFOUR = 5,\n};\n");
	assert_decl(t, "w_t", false, "typedef struct {\n\tchar z;\n\tshort w __attribute__((aligned(4)));\n} w_t;\n");
	uint64_t len;
	uint32_t align;
	assert_true(types_layout(t, type_of(t, "struct o"), &len, &align));
	assert_int_equal(len, 12);
	types_judged_fini(&j);
	types_free(t);
#undef AT
}

/* What no C says, and what does not fit the text, leaves our own rules standing. */
static void test_said_otherwise(void **state)
{
	static const char text[] = "struct s { int a; int b; }; struct t { int a; };";
	struct types_judged j;
	struct types_says says;
	const int64_t overlaps[] = {0, 8, 4, 2, 0, 16}, odd_size[] = {0, 9, 4, 2, 0, 32}, fewer[] = {0, 64, 8, 1, 0};
	const int64_t elsewhere[] = {3, 64, 8, 2, 0, 64};
	const int64_t unknown[] = {0, -2, -2, 2, -1, -1, 28, 4, 4, 1, 0}, odd_align[] = {0, 24, 3, 2, 0, 64};
	const struct { const int64_t *words; size_t cnt, compared, differing; } rows[] = {
		{overlaps, ARRAY_LEN(overlaps), 1, 1}, {odd_size, ARRAY_LEN(odd_size), 1, 1}, {fewer, ARRAY_LEN(fewer), 0, 0},
		{elsewhere, ARRAY_LEN(elsewhere), 0, 0}, {unknown, ARRAY_LEN(unknown), 1, 0}, {odd_align, ARRAY_LEN(odd_align), 0, 0},
		{NULL, 0, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct types *t = set_said(text, rows[i].words, rows[i].cnt, &j);
		assert_int_equal(j.compared_cnt, rows[i].compared);
		assert_int_equal(j.cnt, rows[i].differing);
		assert_true(!j.cnt || !j.list[0].is_taken);
		assert_decl(t, "s", true, "struct s {\n\tint a;\n\tint b;\n};\n");
		types_judged_fini(&j);
		types_free(t);
	}
	/* No answer at all. */
	const int64_t cut[] = {0, 8, 4, 3, 0, 32}, many[] = {0, 8, 4, INT64_MAX}, below[] = {0, 8, 4, -1}, stub[] = {0, 8, 4};
	assert_false(types_says_read((const char *)cut, sizeof(cut), &says));
	assert_false(types_says_read((const char *)many, sizeof(many), &says));
	assert_false(types_says_read((const char *)below, sizeof(below), &says));
	assert_false(types_says_read((const char *)stub, sizeof(stub), &says));
	assert_false(types_says_read((const char *)overlaps, 7, &says));
	/* The attribute needs an answer. */
	struct types *t = types_new(TYPES_X86_64);
	static const char ms[] = "struct __attribute__((ms_struct)) s { char a : 4; };";
	says = (struct types_says){0};
	struct err *e = types_parse_said(t, ms, strlen(ms), NULL, &says, &j);
	assert_non_null(strstr(e->text, "ms_struct"));
	err_free(e);
	types_judged_fini(&j);
	e = types_parse(t, ms, strlen(ms), NULL);
	assert_non_null(strstr(e->text, "ms_struct"));
	err_free(e);
	types_free(t);
}

static void test_abis(void **state)
{
	static const char *const text = "struct a { char c; long long l; }; struct b { char c : 4; long d : 9; }; struct c { char x; int : 0; };"
					"struct d { char c; double x; long double y; };";
	static const struct {
		const char *type;
		uint64_t len[TYPES_ABI_COUNT];
		uint32_t align[TYPES_ABI_COUNT];
	} rows[] = {
		{"struct a", {16, 12, 16}, {8, 4, 8}}, {"struct b", {8, 4, 8}, {8, 4, 8}}, {"struct c", {4, 4, 4}, {1, 1, 4}},
		{"struct d", {32, 24, 32}, {16, 4, 16}}, {"void *", {8, 4, 8}, {8, 4, 8}}, {"va_list", {24, 4, 32}, {8, 4, 8}},
		{"wchar_t", {4, 4, 4}, {4, 4, 4}}, {"_Atomic long long", {8, 8, 8}, {8, 8, 8}},
	};
	for (enum types_abi abi = 0; abi < TYPES_ABI_COUNT; abi++) {
		struct types *t = set_of(abi, text);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			uint64_t len;
			uint32_t align;
			assert_true(types_layout(t, type_of(t, rows[i].type), &len, &align));
			if (len != rows[i].len[abi] || align != rows[i].align[abi])
				fail_msg("%s: %llu, %u", rows[i].type, (unsigned long long)len, align);
		}
		assert_int_equal(types_is_signed(t, type_of(t, "char")), abi != TYPES_A64);
		types_free(t);
	}
	struct types *t = types_new(TYPES_I386);
	struct err *e = types_parse(t, "__int128 x;", 11, NULL);
	assert_non_null(e);
	assert_string_equal(e->text, "1:1: this target has no such type");
	err_free(e);
	types_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors), cmocka_unit_test(test_nesting), cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_printing), cmocka_unit_test(test_single), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_same), cmocka_unit_test(test_marks), cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_said), cmocka_unit_test(test_said_otherwise), cmocka_unit_test(test_abis), cmocka_unit_test(test_unordered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
