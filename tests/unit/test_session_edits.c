/* SPDX-License-Identifier: Apache-2.0 */
/* Edits through the typed API: what two sessions on one target see of each other, and that a held snapshot stays as it was. */
#include "session/session.h"

#include "edits/edits.h"
#include "session/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char work[] = "/tmp/scry-ses-edits.XXXXXX";

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

static struct ses *open_target(void)
{
	struct ses *s = NULL;
	struct ses_opts opts = {0};
	struct err *e = ses_open("/bin/ls", &opts, &s);
	if (e)
		fail_msg("%s", e->text);
	return s;
}

static void name_is(struct ses_snap *sn, uint64_t va, const char *want)
{
	struct arena a = {0};
	struct ses_text t = ses_name_at(sn, va, &a);
	assert_int_equal(t.len, strlen(want));
	assert_memory_equal(t.s, want, t.len);
	arena_fini(&a);
}

static uint64_t rename_to(struct ses *s, uint64_t va, const char *name)
{
	struct arena a = {0};
	uint64_t rev = 0;
	struct ses_edit c = {.op = "rename", .addr = va, .sub = "", .value = name, .value_len = strlen(name)};
	struct ses_edit_opts o = {.author = "me"};
	assert_null(ses_edit(s, &c, 1, &o, &a, &rev));
	assert_int_equal(c.status, SES_EDIT_APPLIED);
	arena_fini(&a);
	return rev;
}

static void test_two_sessions(void **state)
{
	struct ses *s = open_target(), *other = open_target();
	struct arena a = {0};
	struct ses_snap *held = ses_snap_get(s), *sn;
	struct ses_page page = {.limit = 1};
	struct ses_func *f;
	assert_null(ses_functions(held, NULL, &page, &a, &f));
	assert_int_equal(page.cnt, 1);
	uint64_t va = f->addr, found = 0;
	char was[512];
	snprintf(was, sizeof(was), "%.*s", (int)f->name.len, f->name.s);
	uint64_t rev = rename_to(s, va, "mine");
	name_is(held, va, was);
	sn = ses_snap_get(s);
	assert_int_equal(ses_snap_rev(sn), rev);
	name_is(sn, va, "mine");
	assert_null(ses_resolve(sn, "mine", &found));
	assert_true(found == va);
	ses_snap_put(sn);
	/* The other session learns of it when it looks. */
	sn = ses_snap_get(other);
	name_is(sn, va, was);
	ses_snap_put(sn);
	assert_null(ses_refresh(other));
	sn = ses_snap_get(other);
	name_is(sn, va, "mine");
	ses_snap_put(sn);
	assert_int_equal(rename_to(other, va, "theirs"), rev + 1);
	/* Anybody's newest goes first. */
	struct ses_undone_list l;
	struct ses_edit_opts o = {.author = "me"};
	assert_null(ses_undo(s, &(struct ses_undo_ask){.steps = 1}, &o, &a, &l));
	assert_int_equal(l.cnt, 1);
	sn = ses_snap_get(s);
	name_is(sn, va, "mine");
	ses_snap_put(sn);
	assert_null(ses_undo(s, &(struct ses_undo_ask){.steps = 5}, &o, &a, &l));
	assert_int_equal(l.cnt, 1);
	sn = ses_snap_get(s);
	name_is(sn, va, was);
	ses_snap_put(sn);
	ses_snap_put(held);
	arena_fini(&a);
	ses_close(other);
	ses_close(s);
}

/* --- export and import lose nothing --- */

/*
 * Statements of every kind the journal knows, several where a kind has several forms. A kind that is added to edits.h fails the
 * test until it has its sample here, which is to be stated, exported, imported elsewhere and found again.
 */
enum place { AT_FUNC, AT_DATA, AT_DATA_AFTER, NOWHERE };
struct sample { enum edits_kind kind; enum place at; const char *sub, *value; };
static const struct sample samples[] = {
	{EDITS_NAME, AT_FUNC, "", "named_h\u00e9re"},
	{EDITS_COMMENT, AT_FUNC, "line", "quote \" back\\slash, tab\tand \u05e9\u05dc\u05d5\u05dd"},
	{EDITS_COMMENT, AT_FUNC, "block", "first\nsecond \U0001f600\n"},
	{EDITS_COMMENT, AT_FUNC, "repeatable", "again"},
	{EDITS_COMMENT, AT_FUNC, "func", "of the function"},
	{EDITS_TYPE, AT_DATA, "", "struct pair"},
	{EDITS_PROTOTYPE, AT_FUNC, "", "struct later *f(int a, char *b)"},
	{EDITS_ITEM, AT_FUNC, "", "code:4"},
	{EDITS_FORMAT, AT_DATA_AFTER, "0", "hex"},
	{EDITS_BOOKMARK, AT_FUNC, "", "begin here"},
	{EDITS_PATCH, AT_FUNC, "", "c390"},
	{EDITS_BOUNDS, AT_FUNC, "", "+0/16"},
	{EDITS_FLAGS, AT_FUNC, "", "noreturn,thunk=+16"},
	{EDITS_TABLE, AT_FUNC, "", "table=+64,count=3,size=4,base=+64,shift=2,signed"},
	{EDITS_DECL, NOWHERE, "struct pair", "struct pair {\n\tint key;\n\tstruct later *p;\n};"},
	{EDITS_DECL, NOWHERE, "struct later", "struct later {\n\tstruct pair one;\n};"},
	{EDITS_LOAD, NOWHERE, "processor", "x86-64"},
};

static void state_all(struct ses *s)
{
	struct arena a = {0};
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_page page = {.limit = 1};
	struct ses_func *f;
	struct ses_segment *sections;
	uint32_t section_cnt;
	assert_null(ses_functions(sn, NULL, &page, &a, &f));
	assert_null(ses_sections(sn, &a, &sections, &section_cnt));
	uint64_t vas[] = {[AT_FUNC] = f->addr, [AT_DATA] = 0, [AT_DATA_AFTER] = 0, [NOWHERE] = 0};
	for (uint32_t i = 0; i < section_cnt; i++) {
		if (sections[i].name.len == 5 && !memcmp(sections[i].name.s, ".data", 5))
			vas[AT_DATA] = sections[i].addr;
	}
	vas[AT_DATA_AFTER] = vas[AT_DATA] + 64;
	ses_snap_put(sn);
	struct ses_edit c[ARRAY_LEN(samples)];
	uint64_t rev;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		c[i] = (struct ses_edit){.op = edits_kind_name(samples[i].kind), .addr = vas[samples[i].at], .sub = samples[i].sub,
					 .value = samples[i].value, .value_len = strlen(samples[i].value)};
	}
	struct ses_edit_opts o = {.author = "me", .is_atomic = true};
	assert_null(ses_edit(s, c, ARRAY_LEN(samples), &o, &a, &rev));
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		if (c[i].status != SES_EDIT_APPLIED)
			fail_msg("%s %s: %s", c[i].op, c[i].sub, c[i].why);
	}
	arena_fini(&a);
}

static void run_op(struct ses *s, const char *name, const char *param, const char *value, struct buf *ret)
{
	const struct ops_op *op = ops_find(name);
	struct arena a = {0};
	struct ops_args args;
	struct ops_out o;
	struct ses_call call = {.caps = ~(uint32_t)0};
	ops_args_init(&args, op, &a);
	assert_null(ops_args_set(&args, ops_param_find(op, param, strlen(param)), value));
	ops_out_init(&o, op, ret, true);
	struct ops_req rq = {.sn = ses_snap_get(s), .call = &call, .args = &args, .arena = &a, .out = &o};
	struct err *e = ops_run(&rq);
	e = e ? e : o.status;
	if (e)
		fail_msg("%s: %s", name, e->text);
	ses_snap_put(rq.sn);
	ops_out_fini(&o);
	arena_fini(&a);
}

static void test_round_trip(void **state)
{
	char path[128], store[128];
	struct arena a = {0};
	struct buf out = {0};
	struct ses_entry *was, *is;
	size_t was_cnt, is_cnt, seen[EDITS_KIND_COUNT] = {0};
	uint64_t rev;
	struct ses *s = open_target();
	state_all(s);
	snprintf(path, sizeof(path), "%s/all.json", work);
	run_op(s, "export", "output", path, &out);
	assert_null(ses_stated(s, &a, &was, &was_cnt, &rev));
	for (size_t i = 0; i < was_cnt; i++) {
		enum edits_kind k;
		assert_true(edits_kind_find(was[i].op, &k));
		seen[k]++;
	}
	for (unsigned k = 0; k < EDITS_ANALYSIS; k++) {
		if (!seen[k])
			fail_msg("edits of kind %s have no sample here", edits_kind_name((enum edits_kind)k));
	}
	ses_close(s);
	snprintf(store, sizeof(store), "%s/other", work);
	assert_int_equal(setenv("SCRY_STORE", store, 1), 0);
	s = open_target();
	run_op(s, "import", "from", path, &out);
	assert_null(ses_stated(s, &a, &is, &is_cnt, &rev));
	assert_int_equal(is_cnt, was_cnt);
	for (size_t i = 0; i < was_cnt; i++) {
		assert_string_equal(is[i].op, was[i].op);
		assert_string_equal(is[i].sub, was[i].sub);
		assert_int_equal(is[i].has_addr, was[i].has_addr);
		assert_true(is[i].addr == was[i].addr);
		assert_int_equal(is[i].after.len, was[i].after.len);
		assert_memory_equal(is[i].after.s, was[i].after.s, was[i].after.len);
		assert_int_equal(is[i].rev, rev);
	}
	/* One step takes all of it back. */
	struct ses_undone_list l;
	struct ses_edit_opts o = {.author = "me"};
	assert_null(ses_undo(s, &(struct ses_undo_ask){.steps = 1}, &o, &a, &l));
	assert_null(ses_stated(s, &a, &is, &is_cnt, &rev));
	assert_int_equal(is_cnt, 0);
	ses_close(s);
	buf_fini(&out);
	arena_fini(&a);
}

/* What stands of a kind as a list; bytes with and without what was patched; an image somebody else published. */
static void test_facts(void **state)
{
	struct ses *s = open_target(), *other = open_target();
	struct arena a = {0};
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_info info;
	struct ses_fact *facts, patch;
	struct ses_page page = {0};
	uint8_t was, now[2];
	uint64_t rev;
	assert_null(ses_info(sn, &a, &info));
	assert_int_equal(ses_bytes(sn, info.entry, 1, &was, NULL), 1);
	assert_false(ses_patch_at(sn, info.entry, &patch));
	ses_snap_put(sn);
	struct ses_edit c[] = {{.op = "bookmark", .addr = info.entry + 1, .value = "second", .value_len = 6},
			       {.op = "bookmark", .addr = info.entry, .value = "first", .value_len = 5},
			       {.op = "patch", .addr = info.entry, .value = "90cc", .value_len = 4}};
	struct ses_edit_opts o = {.author = "me"};
	assert_null(ses_edit(s, c, 3, &o, &a, &rev));
	sn = ses_snap_get(s);
	assert_null(ses_facts(sn, NULL, "bookmark", &page, &a, &facts));
	assert_int_equal(page.total, 2);
	assert_true(facts[0].addr == info.entry && facts[0].rev == rev && !memcmp(facts[0].value.s, "first", 5));
	page = (struct ses_page){.filter = "sec*"};
	assert_null(ses_facts(sn, NULL, "bookmark", &page, &a, &facts));
	assert_true(page.total == 1 && facts[0].addr == info.entry + 1);
	struct err *e = ses_facts(sn, NULL, "nonsense", &page, &a, &facts);
	assert_non_null(e);
	err_free(e);
	assert_int_equal(ses_bytes(sn, info.entry, 2, now, NULL), 2);
	assert_true(now[0] == 0x90 && now[1] == 0xcc);
	assert_int_equal(ses_original_bytes(sn, info.entry, 1, now, NULL), 1);
	assert_int_equal(now[0], was);
	assert_true(ses_patch_at(sn, info.entry + 1, &patch) && patch.addr == info.entry && patch.value.len == 4);
	assert_false(ses_patch_at(sn, info.entry + 2, &patch));
	ses_snap_put(sn);
	/* A third one analyses anew; who watches takes the image over, edits included. */
	int fd = ses_watch_fd(other);
	assert_true(fd >= 0);
	ses_watch_clear(other);
	struct ses_opts opts = {.force = true};
	struct ses *third = NULL;
	assert_null(ses_open("/bin/ls", &opts, &third));
	ses_close(third);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 1);
	struct ses_snap *before = ses_snap_get(other);
	assert_null(ses_refresh(other));
	sn = ses_snap_get(other);
	assert_true(sn != before && ses_snap_rev(sn) > rev && ses_row_cnt(sn) == ses_row_cnt(before));
	assert_true(ses_patch_at(sn, info.entry, &patch));
	ses_snap_put(before);
	ses_snap_put(sn);
	arena_fini(&a);
	ses_close(other);
	ses_close(s);
}

/* --- etags --- */

struct page { const char *op; uint64_t va; char etag[64]; struct buf text; };

/* The page as JSON: with the etag when that is to be asked, else anew. */
static void ask_page(struct ses *s, const struct page *p, const char *etag, struct buf *ret)
{
	const struct ops_op *op = ops_find(p->op);
	struct arena a = {0};
	struct ops_args args;
	struct ops_out o;
	struct ses_call call = {.caps = ~(uint32_t)0};
	ops_args_init(&args, op, &a);
	assert_null(ops_args_set(&args, ops_param_at(op, 0), arena_printf(&a, "0x%llx", (unsigned long long)p->va)));
	assert_null(ops_args_set(&args, ops_param_find(op, "count", 5), "40"));
	if (etag)
		assert_null(ops_args_set(&args, ops_param_find(op, "etag", 4), etag));
	ret->len = 0;
	ops_out_init(&o, op, ret, true);
	struct ops_req rq = {.sn = ses_snap_get(s), .call = &call, .args = &args, .arena = &a, .out = &o};
	assert_null(ops_run(&rq));
	buf_add_ch(ret, 0);
	ses_snap_put(rq.sn);
	ops_out_fini(&o);
	arena_fini(&a);
}

static void keep_page(struct page *p)
{
	const char *tag = strstr(p->text.data, "\"etag\":\"");
	assert_non_null(tag);
	snprintf(p->etag, sizeof(p->etag), "%.*s", (int)strcspn(tag + 8, "\""), tag + 8);
}

/* Without what every revision changes: all before the items, and the cursor after them. */
static size_t items_of(const struct buf *b, const char **ret)
{
	const char *end = NULL;
	*ret = strstr(b->data, "\"items\":[");
	assert_non_null(*ret);
	for (const char *p = *ret; (p = strstr(p, "],\"total\"")) != NULL; p++)
		end = p;
	assert_non_null(end);
	return (size_t)(end - *ret);
}

static uint32_t etag_seed = 7;

static uint32_t etag_rnd(uint32_t n)
{
	etag_seed = etag_seed * 1664525 + 1013904223;
	return (etag_seed >> 8) % n;
}

/* Something somewhere: at a row, at a function, or at what the function of a page refers to. */
static void random_edit(struct ses *s, unsigned n, uint64_t page_va)
{
	static const char *const subs[] = {"line", "block", "repeatable"};
	struct arena a = {0};
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_page page = {.limit = 1};
	struct ses_func *f;
	struct ses_xref *x;
	uint64_t va = 0, rev;
	char text[32];
	assert_true(ses_va_of_row(sn, etag_rnd((uint32_t)ses_row_cnt(sn)), &va));
	if (n % 3) {
		assert_null(ses_functions(sn, NULL, &page, &a, &f));
		page.offset = etag_rnd((uint32_t)page.total);
		assert_null(ses_functions(sn, NULL, &page, &a, &f));
		va = f->addr;
	}
	page = (struct ses_page){.limit = 64};
	if (n % 3 == 1) {
		assert_null(ses_xrefs(sn, NULL, &(struct ses_xref_ask){.va = page_va, .from = true, .whole_func = true}, &page, &a, &x));
		va = page.cnt ? x[etag_rnd(page.cnt)].to : va;
	}
	snprintf(text, sizeof(text), "text_%u", n);
	struct ses_edit c = {.op = n % 4 ? "rename" : "comment", .addr = va, .sub = n % 4 ? "" : subs[etag_rnd(3)], .value = text,
			     .value_len = strlen(text)};
	ses_snap_put(sn);
	assert_null(ses_edit(s, &c, 1, &(struct ses_edit_opts){.author = "me"}, &a, &rev));
	arena_fini(&a);
}

/* A page that is said to be unchanged is, and most of those that are are said to be. */
static void test_etags(void **state)
{
	enum { PAGES = 60, ROUNDS = 60 };
	static struct page pages[PAGES];
	struct ses *s = open_target();
	struct ses_snap *sn = ses_snap_get(s);
	struct arena a = {0};
	struct buf now = {0}, answer = {0};
	unsigned said = 0, same = 0, changed = 0;
	for (size_t i = 0; i < PAGES; i++) {
		struct ses_page page = {.limit = 1};
		struct ses_func *f;
		pages[i].op = i % 2 ? "heads" : "disasm";
		assert_true(ses_va_of_row(sn, etag_rnd((uint32_t)ses_row_cnt(sn)), &pages[i].va));
		if (i % 2 == 0) {
			assert_null(ses_functions(sn, NULL, &page, &a, &f));
			page.offset = etag_rnd((uint32_t)page.total);
			assert_null(ses_functions(sn, NULL, &page, &a, &f));
			pages[i].va = f->addr;
		}
		ask_page(s, &pages[i], NULL, &pages[i].text);
		keep_page(&pages[i]);
	}
	ses_snap_put(sn);
	for (unsigned n = 0; n < ROUNDS; n++) {
		random_edit(s, n, pages[etag_rnd(PAGES)].va);
		for (size_t i = 0; i < PAGES; i++) {
			const char *was, *is;
			ask_page(s, &pages[i], pages[i].etag, &answer);
			bool is_said = strstr(answer.data, "\"unchanged\":true") != NULL;
			ask_page(s, &pages[i], NULL, &now);
			size_t was_len = items_of(&pages[i].text, &was), is_len = items_of(&now, &is);
			bool is_same = was_len == is_len && !memcmp(was, is, is_len);
			if (is_said && !is_same)
				fail_msg("edit %u changed %s 0x%llx, which is said to be unchanged", n, pages[i].op, (unsigned long long)pages[i].va);
			said += is_said;
			same += is_same;
			changed += !is_same;
			struct buf t = pages[i].text;
			pages[i].text = now;
			now = t;
			keep_page(&pages[i]);
		}
	}
	print_message("%u pages changed, %u did not, %u of them were known to\n", changed, same, said);
	assert_true(changed > 20);
	assert_true(said >= same * 19 / 20);
	for (size_t i = 0; i < PAGES; i++)
		buf_fini(&pages[i].text);
	buf_fini(&now);
	buf_fini(&answer);
	arena_fini(&a);
	ses_close(s);
}

static void run(const char *before, const char *after)
{
	char cmd[512];
	snprintf(cmd, sizeof(cmd), "%s %s%s", before, work, after);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	assert_int_equal(pclose(p), 0);
}

/* A journal that somebody is about to make is an empty one, whoever looks meanwhile. */
static void test_no_journal_yet(void **state)
{
	char store[128];
	snprintf(store, sizeof(store), "%s/none", work);
	assert_int_equal(setenv("SCRY_STORE", store, 1), 0);
	struct ses *s = open_target();
	for (size_t i = 0; i < 2; i++) {
		struct arena a = {0};
		struct ses_entry *j;
		struct ses_proposal *p;
		uint32_t cnt = 9;
		uint64_t total = 9;
		run("rm -f", "/none/*/edits.db*");
		if (i) /* begun, but empty */
			run("for d in", "/none/*/; do : >\"$d/edits.db\"; done");
		assert_null(ses_journal(s, &(struct ses_journal_ask){.first_seq = 1, .limit = 9}, &a, &j, &cnt, &total));
		assert_true(!cnt && !total);
		assert_null(ses_changes(s, &(struct ses_changes_ask){.limit = 9}, &a, &j, &cnt, &total));
		assert_true(!cnt && !total);
		assert_null(ses_proposals(s, &(struct ses_proposals_ask){.limit = 9}, &a, &p, &cnt, &total));
		assert_true(!cnt && !total);
		assert_null(ses_refresh(s));
		arena_fini(&a);
	}
	ses_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_sessions), cmocka_unit_test(test_round_trip), cmocka_unit_test(test_etags),
					   cmocka_unit_test(test_facts), cmocka_unit_test(test_no_journal_yet)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
