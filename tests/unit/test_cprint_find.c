/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "cprint/cprint_find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is found, one after the other with bars between, each with its holes as "text[x=..,y=..]". */
static void find(const char *pattern, const char *text, char *out, size_t cap)
{
	struct cprint_pattern *p;
	struct cprint_subject *s;
	struct cprint_found f;
	uint32_t at = 0;
	bool is_found;
	size_t n = 0;
	assert_null(cprint_pattern_new(pattern, &p));
	assert_null(cprint_subject_new(text, strlen(text), &s));
	out[0] = '\0';
	for (;;) {
		assert_null(cprint_find(p, s, &at, &f, &is_found));
		if (!is_found)
			break;
		assert_true(cprint_pattern_fits(p, text, strlen(text)));
		n += (size_t)snprintf(out + n, cap - n, "%s%.*s", n ? "|" : "", (int)f.part.len, text + f.part.off);
		for (uint32_t h = 0; h < f.hole_cnt; h++)
			n += (size_t)snprintf(out + n, cap - n, "%s%s=%.*s%s", h ? "," : "[", f.holes[h].name, (int)f.holes[h].part.len,
					      text + f.holes[h].part.off, h + 1 == f.hole_cnt ? "]" : "");
	}
	cprint_pattern_free(p);
	cprint_subject_free(s);
}

static void check(const char *pattern, const char *text, const char *want)
{
	char have[4096];
	find(pattern, text, have, sizeof(have));
	if (strcmp(have, want))
		fail_msg("%s in %s: '%s', not '%s'", pattern, text, have, want);
}

static void test_tokens(void **state)
{
	(void)state;
	check("f(1)", "a = f( 0x1u );", "f( 0x1u )");
	check("f(1)", "f(2); f1(1); g(f(1));", "f(1)");
	check("free($x)", "free_2f090(v1); freed(v2); free_zz(v3);", "free_2f090(v1)[x=v1]");
	check("count = 1", "count_13c5a8_u32 = 1;", "count_13c5a8_u32 = 1");
	check("x == 'a'", "if (x == 97) {", "x == 97");
	check("x /* no matter */ + 1", "x+1", "x+1");
	/* What lies at an address stands in a comment. */
	check("log(\"no\", $x)", "log_12(m->image + 0xf5481 /* \"no\" */, v1);", "log_12(m->image + 0xf5481 /* \"no\" */, v1)[x=v1]");
	check("log(\"no\", $x)", "log_12(m->image + 0xf5481 /* \"yes\" */, v1);", "");
	check("at(bye)", "at(m->image + 0x10 /* bye */);", "at(m->image + 0x10 /* bye */)");
}

static void test_holes(void **state)
{
	(void)state;
	check("memcpy($a, $b, strlen($b))", "memcpy(v1, v2, strlen(v2)); memcpy(v1, v2, strlen(v1));",
	      "memcpy(v1, v2, strlen(v2))[a=v1,b=v2]");
	check("memcpy($a, $b, strlen($b))", "memcpy(v1, (uint64_t)(p + 1), strlen(p + 1));",
	      "memcpy(v1, (uint64_t)(p + 1), strlen(p + 1))[a=v1,b=(uint64_t)(p + 1)]");
	check("f($_, $_)", "f(a, b); f(a);", "f(a, b)");
	check("$f(0)", "x = g(h(0), 0);", "h(0)[f=h]");
	check("$x = $x + 1", "i = i + 1; j = i + 1;", "i = i + 1[x=i]");
	check("return $x;", "return a ? b : c; return;", "return a ? b : c;[x=a ? b : c]");
	check("if ($x) $s;", "if (a) { b = c(1); }", "if (a) { b = c(1);[x=a,s=b = c(1)]");
	check("$p->next", "a = b->next; c(*d)->next;", "b->next[p=b]|c(*d)->next[p=c(*d)]");
}

static void test_precedence(void **state)
{
	(void)state;
	check("$x == 0", "a + b == 0", "a + b == 0[x=a + b]");
	check("$x == 0", "if (a && b == 0)", "b == 0[x=b]");
	check("$x == 0", "!x == 0", "!x == 0[x=!x]");
	check("$x == 0", "a == 0 + c", "");
	check("$x * 2", "a + b * 2", "b * 2[x=b]");
	check("$x + 1", "x + 1 << 2", "x + 1[x=x]");
	check("$x << 2", "x + 1 << 2", "x + 1 << 2[x=x + 1]");
	check("$x - $y", "a - b - c", "a - b[x=a,y=b]");
	check("$x + $y", "(a + b) * c", "a + b[x=a,y=b]");
	check("$x * $y", "(a + b) * c", "(a + b) * c[x=(a + b),y=c]");
	check("*$p", "x = *p + 1; y = a * b;", "*p[p=p]");
	check("-$x", "a - b; -b;", "-b[x=b]");
	check("(uint32_t)$x", "a = (uint32_t)b + (uint8_t)c;", "(uint32_t)b[x=b]");
	check("*(u32 *)$p", "*(u32 *)(a + 8) = *(u8 *)b;", "*(u32 *)(a + 8)[p=(a + 8)]");
	check("$a[$i]", "x = b[i + 1];", "b[i + 1][a=b,i=i + 1]");
	check("$c ? 1 : 0", "x = a < b ? 1 : 0;", "a < b ? 1 : 0[c=a < b]");
}

static void test_statements(void **state)
{
	(void)state;
	const char *text = "if (v1 == 0) {\n\treturn;\n}\nL1:\nx = 1;\nif (v2 == 0) {\n\tf();\n\treturn;\n}\n";
	check("if ($x == 0) return;", text, "if (v1 == 0) {\n\treturn;[x=v1]");
	check("if ($x == 0) { return; }", text, "if (v1 == 0) {\n\treturn;[x=v1]");
	check("if ($x == 0) { ...; return; }", text, "if (v2 == 0) {\n\tf();\n\treturn;\n}[x=v2]");
	check("$y = 1;", text, "x = 1;[y=x]");
	check("free($x); $x = 0;", "free(a); b = 0; free(c); c = 0;", "free(c); c = 0;[x=c]");
	check("free($x); ...; use($x);", "free(a); b(); c(); use(a); }", "free(a); b(); c(); use(a);[x=a]");
	check("free($x); ...; use($x);", "{ free(a); } { use(a); }", "");
	check("while (...) { ... }", "while (a) { b(); c(); }", "while (a) { b(); c(); }");
	check("else f();", "if (a) { b(); } else { f(); }", "else { f();");
}

static void test_dots(void **state)
{
	(void)state;
	check("f(..., 0)", "f(0); f(1, g(2, 0), 0); f(0, 1);", "f(0)|f(1, g(2, 0), 0)");
	check("f(0, ...)", "f(0); f(0, 1, 2); f(1);", "f(0)|f(0, 1, 2)");
	check("f(...)", "f(); f(a, b(c));", "f()|f(a, b(c))");
	check("f(..., x, ...)", "f(x); f(1, x); f(x, 1); f(1, x, 2); f(1);", "f(x)|f(1, x)|f(x, 1)|f(1, x, 2)");
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "   ", "$x", "$x;", "...", "... f()", "f() ...", "f(", "f)", "(]", "\"open", "'", "$", "$1", "f($)",
					  "$a $b",
					  "f(... ...)", "{ f(; }"};
	char *long_one = calloc(1, CPRINT_PATTERN_MAX + 2), many[CPRINT_HOLE_MAX * 8 + 64] = "f(";
	assert_non_null(long_one);
	memset(long_one, 'a', CPRINT_PATTERN_MAX + 1);
	for (unsigned i = 0; i <= CPRINT_HOLE_MAX; i++)
		snprintf(many + strlen(many), 16, "$h%u%s", i, i == CPRINT_HOLE_MAX ? ")" : ",");
	for (unsigned i = 0; i < ARRAY_LEN(bad) + 2; i++) {
		struct cprint_pattern *p;
		const char *text = i < ARRAY_LEN(bad) ? bad[i] : i == ARRAY_LEN(bad) ? long_one : many;
		struct err *e = cprint_pattern_new(text, &p);
		if (!e)
			fail_msg("%s was taken", text);
		assert_int_equal(e->kind, ERR_INVALID);
		assert_non_null(e->text);
		err_free(e);
	}
	free(long_one);
}

/* Subjects are cut and broken anywhere; what takes too long says so. */
static void test_hostile(void **state)
{
	(void)state;
	const char *text = "if (a == 0) { f((u32 *)\"x\", 'y', b ? c : d); } /* e";
	struct cprint_pattern *p;
	struct cprint_subject *s;
	struct cprint_found f;
	bool is_found;
	assert_null(cprint_pattern_new("f($a, ..., $b)", &p));
	for (size_t len = 0; len <= strlen(text); len++) {
		char *copy = malloc(len + 1);
		assert_non_null(copy);
		memcpy(copy, text, len);
		assert_null(cprint_subject_new(copy, len, &s));
		uint32_t at = 0;
		assert_null(cprint_find(p, s, &at, &f, &is_found));
		cprint_subject_free(s);
		free(copy);
	}
	cprint_pattern_free(p);
	/* Ways to choose where nine dots end: too many. */
	enum { LEN = 4000 };
	char *many = calloc(1, LEN * 2 + 1);
	assert_non_null(many);
	for (size_t i = 0; i < LEN; i++)
		memcpy(many + 2 * i, "a;", 2);
	assert_null(cprint_pattern_new("a; ...; a; ...; a; ...; a; ...; a; ...; a; ...; b", &p));
	assert_null(cprint_subject_new(many, LEN * 2, &s));
	uint32_t at = 0;
	struct err *e = cprint_find(p, s, &at, &f, &is_found);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_BUDGET);
	err_free(e);
	cprint_subject_free(s);
	cprint_pattern_free(p);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens), cmocka_unit_test(test_holes), cmocka_unit_test(test_precedence), cmocka_unit_test(test_statements),
		cmocka_unit_test(test_dots), cmocka_unit_test(test_refused), cmocka_unit_test(test_hostile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
