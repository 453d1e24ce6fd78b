/* SPDX-License-Identifier: Apache-2.0 */
/* Names as other programs write them down: one document of each format as that program writes it, then what is wrong with lines. */
#include "symfile/symfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct symfile f;

static int teardown(void **state)
{
	arena_fini(&arena);
	return 0;
}

static void parse(const char *text, enum symfile_format want)
{
	struct err *e = symfile_parse(text, strlen(text), SYMFILE_ANY, &arena, &f);
	if (e)
		fail_msg("%s", e->text);
	assert_int_equal(f.format, want);
}

/* Entry i, as "what sub seg:addr text why". */
static void item_is(size_t i, const char *want)
{
	static const char *const whats[] = {"name", "comment", "bookmark"};
	char got[512];
	assert_true(i < f.cnt);
	const struct symfile_item *it = &f.items[i];
	snprintf(got, sizeof(got), "%s%s%s %u:%llx %s line %u%s%s", whats[it->what], *it->sub ? " " : "", it->sub, it->seg,
		 (unsigned long long)it->addr, it->text, it->line, it->why ? it->is_left_out ? " left out: " : " refused: " : "",
		 it->why ? it->why : "");
	assert_string_equal(got, want);
}

static void test_list(void **state)
{
	parse("# made by hand\n0000000000401136 T main\n0x401200 helper\n                 U puts\n401300 B spaced  \n\r\n"
	      "; note\nnothing\n401400\n401500 sub_401500\n", SYMFILE_LIST);
	assert_int_equal(f.cnt, 7);
	item_is(0, "name 0:401136 main line 2");
	item_is(1, "name 0:401200 helper line 3");
	item_is(2, "name 0:0 puts line 4 left out: it has no address");
	item_is(3, "name 0:401300 spaced line 5");
	item_is(4, "name 0:0 nothing line 8 refused: the line is not ADDR NAME");
	item_is(5, "name 0:0 401400 line 9 refused: the line is not ADDR NAME");
	item_is(6, "name 0:401500 sub_401500 line 10 left out: the name is made up from the address");
}

static void test_map(void **state)
{
	parse("\r\n Start         Length     Name                   Class\r\n 0001:00000000 000067000H .text                  CODE\r\n"
	      " 0002:00001000 000000F1CH .data                  DATA\r\n\r\n\r\n  Address         Publics by Value\r\n\r\n"
	      " 0001:00000000       sub_401000\r\n 0001:00000030       parse_args\r\n 0002:00001010       table\r\n"
	      " 0001:0000000000000040       wide\r\n 0000:00000007       absolute\r\n"
	      " 0001:00000050       _main                      00401050 f   main.obj\r\n"
	      " 0001:00000060\r\n\r\nProgram entry point at 0001:00001060\r\n", SYMFILE_MAP);
	assert_int_equal(f.seg_cnt, 2);
	assert_string_equal(f.segs[0].name, ".text");
	assert_int_equal(f.segs[0].len, 0x67000);
	assert_int_equal(f.segs[1].off, 0x1000);
	assert_int_equal(f.cnt, 7);
	item_is(0, "name 1:0 sub_401000 line 9 left out: the name is made up from the address");
	item_is(1, "name 1:30 parse_args line 10");
	item_is(2, "name 2:1010 table line 11");
	item_is(3, "name 1:40 wide line 12");
	item_is(4, "name 0:0 absolute line 13 left out: it is absolute, not in memory");
	item_is(5, "name 0:401050 _main line 14");
	item_is(6, "name 0:0 0001:00000060 line 15 refused: the line is not a symbol");
}

static void test_idc(void **state)
{
	parse("#include <idc.idc>\nstatic main(void) {\n\t// MakeName(0x1, \"commented_out\");\n\t/* set_name(0x2, \"also\") */\n"
	      "\tMakeName(0X401000, \"start\");\n\tset_name (4198400 , \"deci\\x6dal\", SN_CHECK);\n\tMakeNameEx(0x401020, \"ex\", 0);\n"
	      "\tset_cmt(0X401030, \"say \\\"hi\\\"\\nthere\", 0); set_cmt(0X401030, \"again\", 1);\n\tMakeRptCmt(0x401040, 'rpt');\n"
	      "\tset_func_cmt(0x401000, \"fn\", 1);\n\tset_name(ea, \"variable\");\n\tset_name(0x401050, name);\n"
	      "\tMessage(\"MakeName(0x3, \\\"in_a_string\\\")\");\n\tset_name(0x401060, \"\");\n\tset_name(0x401070, \"open);\n}\n", SYMFILE_IDC);
	assert_int_equal(f.cnt, 11);
	item_is(0, "name 0:401000 start line 5");
	item_is(1, "name 0:401000 decimal line 6");
	item_is(2, "name 0:401020 ex line 7");
	item_is(3, "comment line 0:401030 say \"hi\"\nthere line 8");
	item_is(4, "comment repeatable 0:401030 again line 8");
	item_is(5, "comment repeatable 0:401040 rpt line 9");
	item_is(6, "comment func 0:401000 fn line 10");
	item_is(7, "name 0:0 set_name line 11 refused: its address is not a number");
	item_is(8, "name 0:0 set_name line 12 refused: its text is not a string");
	item_is(9, "name 0:401060  line 14 refused: the name is empty");
	item_is(10, "name 0:0 set_name line 15 refused: its text has no end");
}

static void test_csv(void **state)
{
	parse("\"Name\",\"Location\",\"Type\",\"Namespace\",\"Source\",\"Reference Count\"\n"
	      "\"main\",\"00101149\",\"Function\",\"Global\",\"Imported\",\"1\"\n"
	      "\"get\",\"ram:00101200\",\"Function\",\"Box\",\"User Defined\",\"0\"\n"
	      "\"printf\",\"EXTERNAL:00000001\",\"Function\",\"<EXTERNAL>\",\"Imported\",\"2\"\n"
	      "\"local_8\",\"Stack[-0x8]\",\"Local Variable\",\"main\",\"Analysis\",\"2\"\n"
	      "\"quoted \"\"x\"\", with\nlines\",\"00101300\",\"Label\",\"Global\",\"User Defined\",\"0\"\n"
	      "FUN_00101400,00101400,Function,Global,Default,0\n\"odd\",\"zzz\",\"Label\",\"Global\",\"\",\"\"\n", SYMFILE_CSV);
	assert_int_equal(f.cnt, 7);
	item_is(0, "name 0:101149 main line 2");
	item_is(1, "name 0:101200 Box::get line 3");
	item_is(2, "name 0:0 printf line 4 left out: it is not in memory");
	item_is(3, "name 0:0 local_8 line 5 left out: it is not in memory");
	item_is(4, "name 0:101300 quoted \"x\", with\nlines line 7");
	item_is(5, "name 0:101400 FUN_00101400 line 8 left out: the name is made up from the address");
	item_is(6, "name 0:0 odd line 9 refused: its address cannot be read");
}

static void test_xml(void **state)
{
	parse("<?xml version=\"1.0\" standalone=\"yes\"?>\n<?program_dtd version=\"1\"?>\n<PROGRAM NAME=\"p\" IMAGE_BASE=\"00100000\">\n"
	      "<!-- <SYMBOL ADDRESS=\"1\" NAME=\"commented\"/> -->\n<COMMENTS>\n"
	      "<COMMENT ADDRESS=\"00101149\" TYPE=\"end-of-line\">a &lt;b&gt; &amp; &#x41;&#66;</COMMENT>\n"
	      "<COMMENT ADDRESS=\"00101149\" TYPE=\"post\">after</COMMENT>\n"
	      "<COMMENT ADDRESS=\"0010114a\" TYPE=\"pre\"><![CDATA[raw <x> &amp;]]></COMMENT>\n</COMMENTS>\n"
	      "<BOOKMARKS><BOOKMARK ADDRESS=\"00101150\" TYPE=\"Note\" CATEGORY=\"c\" COMMENT=\"look > here\"/>\n"
	      "<BOOKMARK ADDRESS=\"00101150\" TYPE=\"Analysis\" COMMENT=\"Found Code\"/></BOOKMARKS>\n"
	      "<FUNCTIONS><FUNCTION ENTRY_POINT=\"00101200\" NAME=\"g&quot;\" LIBRARY_FUNCTION=\"n\"><STACK_FRAME/></FUNCTION></FUNCTIONS>\n"
	      "<SYMBOL_TABLE><SYMBOL ADDRESS=\"00101149\" NAME=\"main\" NAMESPACE=\"\" TYPE=\"global\" SOURCE_TYPE=\"USER_DEFINED\" PRIMARY=\"y\"/>\n"
	      "<SYMBOL NAME='method' ADDRESS='00101300' NAMESPACE='A::B::' TYPE='function'/>\n"
	      "<SYMBOL NAME=\"none\"/></SYMBOL_TABLE></PROGRAM>", SYMFILE_XML);
	assert_true(f.has_base);
	assert_int_equal(f.base, 0x100000);
	assert_int_equal(f.cnt, 9);
	item_is(0, "comment line 0:101149 a <b> & AB line 6");
	item_is(1, "name 0:0 after line 7 left out: comments of this kind have no place in the listing");
	item_is(2, "comment block 0:10114a raw <x> &amp; line 8");
	item_is(3, "bookmark 0:101150 look > here line 10");
	item_is(4, "name 0:0 Found Code line 11 left out: the bookmark is the analyser's own");
	item_is(5, "name 0:101200 g\" line 12");
	item_is(6, "name 0:101149 main line 13");
	item_is(7, "name 0:101300 A::B::method line 14");
	item_is(8, "name 0:0 none line 15 refused: it has no address or no name");
}

static void test_made_up(void **state)
{
	static const char *const yes[] = {"sub_401000", "FUN_00101149", "LAB_0010114f", "s_hello_world_00102004", "PTR_LAB_00103dd8", "locret_12ab",
					  "switchD_00101234", "caseD_0", "thunk_FUN_00101000"};
	static const char *const no[] = {"sub_", "sub_marine", "main", "s_hello", "FUN_", "data_", "PTR_", "caseD_", "s_12"};
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		assert_true(symfile_is_made_up(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		assert_false(symfile_is_made_up(no[i], strlen(no[i])));
}

static void test_nothing(void **state)
{
	static const char *const texts[] = {"", "\n\n", "hello world\n"
	      "this is prose\n", "<html><body>no</body></html>", "Name,Location\n", "\xff\xfe\x00",
					    "Publics by Value\n", "set_name(x, y)"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err *e = symfile_parse(texts[i], strlen(texts[i]), SYMFILE_ANY, &arena, &f);
		assert_non_null(e);
		assert_int_equal(e->kind, ERR_INVALID);
		err_free(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list), cmocka_unit_test(test_map), cmocka_unit_test(test_idc), cmocka_unit_test(test_csv),
		cmocka_unit_test(test_xml), cmocka_unit_test(test_made_up), cmocka_unit_test(test_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
