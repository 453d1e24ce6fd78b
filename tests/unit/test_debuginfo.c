/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "debuginfo/dbg.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangle_known_names),
		cmocka_unit_test(test_demangle_growth_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
