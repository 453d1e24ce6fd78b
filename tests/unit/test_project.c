/* SPDX-License-Identifier: Apache-2.0 */
/* P.json as text, and the index of a project by its own interface: what is found, in which order, and what survives. */
#include "session/project.h"
#include "session/ses_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char work[] = "/tmp/scry-project.XXXXXX";
static const uint8_t one[32] = {1}, two[32] = {2}, three[32] = {3};

static int setup(void **state)
{
	char store[128];
	if (!mkdtemp(work))
		return 1;
	snprintf(store, sizeof(store), "%s/store", work);
	return setenv("SCRY_STORE", store, 1);
}

static int teardown(void **state)
{
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "rm -rf %s", work);
	FILE *p = popen(cmd, "r");
	return p ? pclose(p) : 1;
}

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", e->text);
}

/* --- P.json --- */

static void refused(const char *text, const char *want)
{
	struct arena a = {0};
	struct ses_project_text t;
	struct err *e = ses_project_parse(text, strlen(text), "P.json", &a, &t);
	assert_non_null(e);
	if (!strstr(e->text, want))
		fail_msg("'%s' is not in: %s", want, e->text);
	err_free(e);
	arena_fini(&a);
}

static void test_parse(void **state)
{
	struct arena a = {0};
	struct ses_project_text t;
	const char *text = "{\"name\": \"n\", \"id\": \"00112233445566778899aabbccddeeff\",\n \"binaries\": [\n  {\"path\": \"lib/x.so\"},\n"
			   "  {\"path\": \"/bin/y\", \"label\": \"why\",\n   \"sha256\": "
			   "\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"}]}\n";
	good(ses_project_parse(text, strlen(text), "P.json", &a, &t));
	assert_string_equal(t.name, "n");
	assert_string_equal(t.id, "00112233445566778899aabbccddeeff");
	assert_int_equal(t.cnt, 2);
	assert_string_equal(t.list[0].path, "lib/x.so");
	assert_null(t.list[0].label);
	assert_false(t.list[0].has_sha256);
	assert_int_equal(t.list[0].line, 3);
	assert_string_equal(t.list[1].label, "why");
	assert_true(t.list[1].has_sha256 && t.list[1].sha256[31] == 31);
	assert_int_equal(t.list[1].line, 4);
	arena_fini(&a);
}

static void test_refusals(void **state)
{
	refused("", "line 1");
	refused("[]", "is not a JSON object");
	refused("{}", "line 1: there is no list \"binaries\"");
	refused("{\"binaries\":[],\n\"binarys\":[]}", "line 2: a project has");
	refused("{\"binaries\":\n3}", "line 2: \"binaries\" is not a list");
	refused("{\"binaries\":[\n\n7]}", "line 3: a binary is not an object");
	refused("{\"binaries\":[{\"path\":\"a\"},\n{\"label\":\"x\"}]}", "line 2: a binary has no \"path\"");
	refused("{\"binaries\":[{\"path\":\"a\",\n\"pfad\":\"b\"}]}", "line 2: a binary has \"path\"");
	refused("{\"binaries\":[{\"path\":\"a\"},\n{\"path\":\"a\"}]}", "line 2: this path is in line 1 already");
	refused("{\"binaries\":[{\"path\":\"a\",\"label\":\"x\"},\n\n{\"path\":\"b\",\"label\":\"x\"}]}", "line 3: this label is in line 1 already");
	refused("{\"binaries\":[{\"path\":\"\"}]}", "\"path\" is empty");
	refused("{\"binaries\":[{\"path\":\"a\\u0000b\"}]}", "control characters");
	refused("{\"binaries\":[{\"path\":\"a\\u001b[31m\"}]}", "control characters");
	refused("{\"binaries\":[{\"path\":\"a\",\"label\":\"x!y\"}]}", "has '!' or '/' in it");
	refused("{\"binaries\":[{\"path\":\"a\",\"sha256\":\"00\"}]}", "64 hexadecimal digits");
	refused("{\"binaries\":[{\"path\":5}]}", "\"path\" is not a string");
	refused("{\"name\":\"\",\"binaries\":[]}", "\"name\" is empty");
	refused("{\"id\":\"../../etc/passwd\",\"binaries\":[]}", "\"id\" is not 32");
	refused("{\"binaries\":[],}", "line 1, column");
	refused("{\"binaries\":[{\"path\":\"a\",\"path\":\"b\"}]}", "duplicate");
}

/* --- the index --- */

static void put(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part, const struct ses_index_row *rows, size_t cnt)
{
	struct ses_index_writer *w;
	good(ses_index_begin(ix, sha256, part, &w));
	for (size_t i = 0; i < cnt; i++)
		good(ses_index_add(w, &rows[i]));
	good(ses_index_end(w, &(struct ses_index_state){.gen = 1, .rev = 2, .stamp_ns = 3}, true));
}

static struct ses_index_row row(enum ses_find_kind kind, uint64_t va, const char *text)
{
	return (struct ses_index_row){.kind = kind, .va = va, .text = {text, (uint32_t)strlen(text)}, .readable = {"", 0},
				      .version = {"", 0}, .library = {"", 0}};
}

/* The addresses of what a filter finds, as one text. */
static void finds(struct ses_index *ix, const char *filter, uint32_t kinds, const char *want)
{
	struct arena a = {0};
	struct ses_index_hit *h;
	struct ses_find_ask ask = {.filter = filter, .kinds = kinds};
	char got[256] = "";
	size_t n = 0;
	good(ses_index_find(ix, NULL, &ask, &a, &h));
	for (uint32_t i = 0; i < ask.cnt; i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%llx", i ? " " : "", (unsigned long long)h[i].row.va);
	if (strcmp(got, want))
		fail_msg("'%s' finds '%s', not '%s'", filter, got, want);
	arena_fini(&a);
}

static void fill(struct ses_index *ix)
{
	struct ses_index_row a[] = {row(SES_FIND_EXPORT, 0x10, "EVP_DigestInit"), row(SES_FIND_FUNCTION, 0x11, "helper"),
				    row(SES_FIND_IMPORT, 0x12, "malloc"), row(SES_FIND_STRING, 0x13, "a \"quoted\" text"),
				    row(SES_FIND_STRING, 0x14, "\xc3\xa9t\xc3\xa9")};
	struct ses_index_row b[] = {row(SES_FIND_EXPORT, 0x20, "malloc"), row(SES_FIND_FUNCTION, 0x21, "_ZN3foo3barEv"),
				    row(SES_FIND_STRING, 0x23, "out of memory in malloc"), row(SES_FIND_STRING, 0x24, "x")};
	b[1].readable = (struct ses_text){"foo::bar()", 10};
	put(ix, one, SES_INDEX_IMAGE, a, 5);
	put(ix, two, SES_INDEX_IMAGE, b, 4);
}

static void test_find(void **state)
{
	struct ses_index *ix;
	good(ses_index_open(NULL, "x", &ix));
	fill(ix);
	finds(ix, "digest", 0, "10");
	finds(ix, "EVP_DIGESTINIT", 0, "10");
	finds(ix, "malloc", 0, "12 20 23");
	finds(ix, "malloc", 1u << SES_FIND_EXPORT, "20");
	finds(ix, "malloc", SES_FIND_STRINGS, "23");
	finds(ix, "m*y", 0, "");
	finds(ix, "*m*y*in*", 0, "23");
	finds(ix, "*memory*mal?oc", 0, "23");
	finds(ix, "foo::bar", 0, "21");
	finds(ix, "N3foo3", 0, "21");
	finds(ix, "\"quoted\"", 0, "13");
	finds(ix, "lo", 0, "12 20 23");
	finds(ix, "Lo", SES_FIND_NAMES, "12 20");
	finds(ix, "x", 0, "13 24");
	finds(ix, "\xc3\xa9", 0, "14");
	finds(ix, "t\xc3\xa9", 0, "14");
	finds(ix, "\xc3\xa9t\xc3\xa9", 0, "14");
	finds(ix, "zz", 0, "");
	finds(ix, "zzz", 0, "");
	finds(ix, "?", 0, "24");
	finds(ix, "", SES_FIND_STRINGS, "13 14 23 24");
	finds(ix, NULL, SES_FIND_NAMES, "10 11 12 20 21");
	assert_int_equal(ses_index_row_cnt(ix, SES_FIND_NAMES), 5);
	ses_index_close(ix);
}

/* Every page of one, over every way of finding, gives each once. */
static void test_pages(void **state)
{
	static const char *const filters[] = {"mal", "lo", "", "*"};
	struct ses_index *ix;
	good(ses_index_open(NULL, "x", &ix));
	fill(ix);
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		struct arena a = {0};
		struct ses_index_hit *h, *page;
		struct ses_find_ask all = {.filter = filters[i]}, ask = {.filter = filters[i], .limit = 1};
		good(ses_index_find(ix, NULL, &all, &a, &h));
		assert_true(all.cnt > 1 && !all.has_more);
		for (uint32_t k = 0; k < all.cnt; k++) {
			good(ses_index_find(ix, NULL, &ask, &a, &page));
			assert_int_equal(ask.cnt, 1);
			assert_int_equal(page[0].id, h[k].id);
			assert_int_equal(ask.has_more, k + 1 < all.cnt);
			ask.after = ask.next;
		}
		arena_fini(&a);
	}
	ses_index_close(ix);
}

/* More of a short text than its list holds: those behind are found by walking. */
static void test_many_short(void **state)
{
	struct ses_index *ix;
	struct ses_index_writer *w;
	struct arena a = {0};
	struct ses_index_hit *h;
	struct ses_find_ask ask = {.filter = "qz", .limit = 5000};
	char text[32];
	good(ses_index_open(NULL, "x", &ix));
	good(ses_index_begin(ix, one, SES_INDEX_IMAGE, &w));
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), i % 3 ? "name_%u" : "qz_%u", i);
		struct ses_index_row r = row(SES_FIND_SYMBOL, i, text);
		good(ses_index_add(w, &r));
	}
	good(ses_index_end(w, &(struct ses_index_state){0}, true));
	good(ses_index_find(ix, NULL, &ask, &a, &h));
	assert_int_equal(ask.cnt, 1000);
	for (uint32_t i = 0; i < ask.cnt; i++)
		assert_int_equal(h[i].row.va, 3 * i);
	ask = (struct ses_find_ask){.filter = "qz", .limit = 10, .after = h[599].id};
	good(ses_index_find(ix, NULL, &ask, &a, &h));
	assert_int_equal(h[0].row.va, 1800);
	arena_fini(&a);
	ses_index_close(ix);
}

static void test_slots(void **state)
{
	struct ses_index *ix;
	struct ses_index_state s;
	struct ses_index_writer *w;
	struct ses_index_row r = row(SES_FIND_GIVEN, 0x30, "my_name"), n = row(SES_FIND_GIVEN, 0x31, "my_other");
	good(ses_index_open(NULL, "x", &ix));
	fill(ix);
	assert_false(ses_index_get(ix, one, SES_INDEX_EDITS, &s));
	put(ix, one, SES_INDEX_EDITS, &r, 1);
	assert_true(ses_index_get(ix, one, SES_INDEX_EDITS, &s) && s.gen == 1 && s.rev == 2 && s.stamp_ns == 3);
	good(ses_index_touch(ix, one, SES_INDEX_EDITS, 9));
	assert_true(ses_index_get(ix, one, SES_INDEX_EDITS, &s) && s.stamp_ns == 9);
	finds(ix, "my_", 0, "30");
	/* Given up half-way: what was stays. */
	good(ses_index_begin(ix, one, SES_INDEX_EDITS, &w));
	good(ses_index_add(w, &n));
	good(ses_index_end(w, NULL, false));
	finds(ix, "my_", 0, "30");
	put(ix, one, SES_INDEX_EDITS, &n, 1);
	finds(ix, "my_", 0, "31");
	finds(ix, "my", 0, "31");
	const uint8_t keep[2][32] = {{2}, {3}};
	good(ses_index_keep(ix, keep, 2));
	finds(ix, "malloc", 0, "20 23");
	finds(ix, "my_", 0, "");
	ses_index_close(ix);
}

/* So often written anew that the dead are swept out, and nothing else. */
static void test_sweep(void **state)
{
	struct ses_index *ix;
	char text[32];
	good(ses_index_open(NULL, "x", &ix));
	fill(ix);
	for (unsigned round = 0; round < 3; round++) {
		struct ses_index_writer *w;
		good(ses_index_begin(ix, three, SES_INDEX_IMAGE, &w));
		for (unsigned i = 0; i < 15000; i++) {
			snprintf(text, sizeof(text), "round_%u_%u", round, i);
			struct ses_index_row r = row(i % 2 ? SES_FIND_SYMBOL : SES_FIND_STRING, i, text);
			good(ses_index_add(w, &r));
		}
		good(ses_index_end(w, &(struct ses_index_state){0}, true));
	}
	const uint8_t keep[3][32] = {{1}, {2}, {3}};
	good(ses_index_keep(ix, keep, 3));
	assert_int_equal(ses_index_row_cnt(ix, SES_FIND_NAMES | SES_FIND_STRINGS), 15009);
	finds(ix, "round_1_77", 0, "");
	finds(ix, "round_2_4999", 0, "1387");
	finds(ix, "foo::bar", 0, "21");
	finds(ix, "lo", 0, "12 20 23");
	ses_index_close(ix);
}

static void test_link(void **state)
{
	struct ses_index *ix;
	struct arena a = {0};
	struct ses_index_hit *h;
	uint32_t cnt;
	good(ses_index_open(NULL, "x", &ix));
	fill(ix);
	good(ses_index_link(ix, SES_FIND_EXPORT, (struct ses_text){"malloc", 6}, &a, &h, &cnt));
	assert_int_equal(cnt, 1);
	assert_int_equal(h[0].row.va, 0x20);
	assert_memory_equal(h[0].sha256, two, 32);
	good(ses_index_link(ix, SES_FIND_IMPORT, (struct ses_text){"mallo", 5}, &a, &h, &cnt));
	assert_int_equal(cnt, 0);
	arena_fini(&a);
	ses_index_close(ix);
}

/* On disk: what is there after closing, what a damaged file and one of another version come to. */
static void test_file(void **state)
{
	struct store *st;
	struct ses_index *ix;
	struct ses_index_path p = {.len = 7, .has_place = true, .place = {.view = 1, .va = UINT64_MAX, .sub = 2}}, q;
	good(store_open(&st));
	good(ses_index_open(st, "0123", &ix));
	fill(ix);
	memcpy(p.sha256, two, 32);
	good(ses_index_put_path(ix, "/bin/x", &p));
	good(ses_index_put_note(ix, "shown", "/bin/x"));
	ses_index_close(ix);
	good(ses_index_open(st, "0123", &ix));
	finds(ix, "malloc", 0, "12 20 23");
	assert_true(ses_index_get_path(ix, "/bin/x", &q));
	assert_memory_equal(q.sha256, two, 32);
	assert_true(q.has_place && q.place.va == UINT64_MAX && q.place.sub == 2 && !q.has_was && q.len == 7);
	assert_false(ses_index_get_path(ix, "/bin/y", &q));
	char *note = ses_index_get_note(ix, "shown");
	assert_string_equal(note, "/bin/x");
	free(note);
	ses_index_close(ix);
	char *path = store_project_path(st, "0123");
	struct stat s;
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 077, 0);
	FILE *f = fopen(path, "r+");
	for (unsigned i = 0; i < 3000; i++)
		fputs("garbage ", f);
	fclose(f);
	good(ses_index_open(st, "0123", &ix));
	finds(ix, "malloc", 0, "");
	fill(ix);
	finds(ix, "malloc", 0, "12 20 23");
	ses_index_close(ix);
	free(path);
	store_close(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse), cmocka_unit_test(test_refusals), cmocka_unit_test(test_find), cmocka_unit_test(test_pages),
		cmocka_unit_test(test_many_short), cmocka_unit_test(test_slots), cmocka_unit_test(test_sweep), cmocka_unit_test(test_link),
		cmocka_unit_test(test_file),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
