/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directives through the typed API: a define is pending until another analysis has seen it, undo brings the old image back bit
 * for bit, and whatever is stated and taken back, the image is the one a fresh analysis makes. A process that is killed
 * anywhere on the way leaves a store that the next one goes on with.
 */
#include "edits/edits.h"
#include "session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char work[] = "/tmp/scry-ses-define.XXXXXX", target[64];
static uint32_t seed = 7;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static void run(const char *cmd)
{
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	assert_int_equal(pclose(p), 0);
}

static int setup(void **state)
{
	char store[128], cmd[160];
	if (!mkdtemp(work))
		return 1;
	snprintf(store, sizeof(store), "%s/store", work);
	snprintf(target, sizeof(target), "%s/t", work);
	snprintf(cmd, sizeof(cmd), "cp /bin/true %s", target);
	run(cmd);
	return setenv("SCRY_STORE", store, 1);
}

static int teardown(void **state)
{
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "rm -rf %s", work);
	run(cmd);
	return 0;
}

static struct ses *open_with(struct ses_opts opts)
{
	struct ses *s = NULL;
	struct err *e = ses_open(target, &opts, &s);
	if (e)
		fail_msg("%s", e->text);
	return s;
}

static struct ses *open_target(void)
{
	return open_with((struct ses_opts){0});
}

static bool is_pending(struct ses *s)
{
	struct ses_snap *sn = ses_snap_get(s);
	bool is = ses_snap_is_pending(sn);
	ses_snap_put(sn);
	return is;
}

/* The bytes of the newest image in the store; the caller's. */
static char *newest_image(size_t *ret_len)
{
	char cmd[256], path[300] = "";
	snprintf(cmd, sizeof(cmd), "ls %s/store/*/image.* | sort -t. -k3n | tail -n1", work);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	assert_non_null(fgets(path, sizeof(path), p));
	pclose(p);
	path[strcspn(path, "\n")] = 0;
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*ret_len = (size_t)ftell(f);
	char *bytes = malloc(*ret_len);
	rewind(f);
	assert_int_equal(fread(bytes, 1, *ret_len, f), *ret_len);
	fclose(f);
	return bytes;
}

static struct ses_edit state(struct ses *s, const char *op, uint64_t va, const char *value)
{
	struct arena a = {0};
	uint64_t rev = 0;
	struct ses_edit e = {.op = op, .addr = va, .sub = "", .value = value, .value_len = value ? strlen(value) : 0};
	struct ses_edit_opts o = {.author = "me"};
	struct err *why = ses_edit(s, &e, 1, &o, &a, &rev);
	if (why)
		fail_msg("%s", why->text);
	e.why = e.before = e.value = NULL; /* in the arena */
	arena_fini(&a);
	return e;
}

static uint64_t text_va(struct ses *s, uint64_t *ret_len)
{
	struct arena a = {0};
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_segment *seg;
	uint32_t cnt, i = 0;
	assert_null(ses_segments(sn, &a, &seg, &cnt));
	while (i < cnt && seg[i].perm[2] != 'x')
		i++;
	assert_true(i < cnt);
	uint64_t va = seg[i].addr;
	*ret_len = seg[i].file_size;
	arena_fini(&a);
	ses_snap_put(sn);
	return va;
}

static uint64_t some_func(struct ses *s)
{
	struct arena a = {0};
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_page page = {.sort = "-size", .limit = 1};
	struct ses_func *f;
	assert_null(ses_functions(sn, NULL, &page, &a, &f));
	uint64_t va = f->addr;
	arena_fini(&a);
	ses_snap_put(sn);
	return va;
}

static uint8_t kind_at(struct ses *s, uint64_t va, uint32_t *ret_size)
{
	struct arena a = {0};
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_head *h;
	uint32_t cnt;
	assert_null(ses_heads(sn, NULL, &(struct ses_at){.va = va, .sub = SES_SUB_ITEM, .count = 1}, &a, &h, &cnt));
	assert_int_equal(cnt, 1);
	uint8_t kind = h->va == va ? h->kind : 255;
	*ret_size = h->size;
	arena_fini(&a);
	ses_snap_put(sn);
	return kind;
}

static void test_pending_and_undo(void **unused)
{
	size_t was_len, now_len, back_len;
	uint32_t size;
	struct ses *s = open_target();
	char *was = newest_image(&was_len);
	uint64_t va = some_func(s) + 4;
	assert_false(is_pending(s));
	struct ses_edit e = state(s, "define", va, "data:dword");
	assert_int_equal(e.status, SES_EDIT_APPLIED);
	assert_int_equal(e.made.end, va + 4);
	assert_true(is_pending(s));
	assert_null(ses_refresh(s));
	assert_false(is_pending(s));
	assert_int_equal(kind_at(s, va, &size), SES_HEAD_DATA);
	assert_int_equal(size, 4);
	char *now = newest_image(&now_len);
	assert_true(now_len != was_len || memcmp(now, was, was_len));
	/* What was stated stays for who opens it, without another analysis. */
	struct ses *other = open_target();
	assert_int_equal(kind_at(other, va, &size), SES_HEAD_DATA);
	ses_close(other);
	struct arena a = {0};
	struct ses_undone_list l;
	struct ses_edit_opts o = {.author = "me"};
	assert_null(ses_undo(s, &(struct ses_undo_ask){.steps = 1}, &o, &a, &l));
	assert_true(is_pending(s));
	assert_null(ses_refresh(s));
	char *back = newest_image(&back_len);
	assert_int_equal(back_len, was_len);
	assert_memory_equal(back, was, was_len);
	assert_null(ses_undo(s, &(struct ses_undo_ask){.is_redo = true, .steps = 1}, &o, &a, &l));
	ses_close(s);
	/* Whoever opens a target with a newer directive analyses. */
	s = open_target();
	assert_int_equal(kind_at(s, va, &size), SES_HEAD_DATA);
	ses_close(s);
	back = (free(back), newest_image(&back_len));
	assert_int_equal(back_len, now_len);
	assert_memory_equal(back, now, now_len);
	arena_fini(&a);
	free(was);
	free(now);
	free(back);
}

static void wait_settled(struct ses *s)
{
	struct pollfd p = {.fd = ses_event_fd(s), .events = POLLIN};
	uint64_t n;
	for (unsigned i = 0; i < 2000 && is_pending(s); i++) {
		if (poll(&p, 1, 50) > 0)
			assert_int_equal(read(p.fd, &n, 8), 8);
	}
	assert_false(is_pending(s));
}

/* In the background the snapshot that is held stays, and several statements in a row come to rest. */
static void test_background(void **unused)
{
	uint32_t size;
	struct ses *s = open_with((struct ses_opts){.background = true});
	wait_settled(s);
	uint64_t len, va = text_va(s, &len) + len - 64;
	struct ses_snap *held = ses_snap_get(s);
	uint64_t rows = ses_row_cnt(held);
	state(s, "define", va, "undef:64");
	state(s, "define", va + 8, "data:qword");
	state(s, "define", va + 16, "array:3:unsigned short");
	wait_settled(s);
	assert_int_equal(kind_at(s, va, &size), SES_HEAD_UNKNOWN);
	assert_int_equal(kind_at(s, va + 8, &size), SES_HEAD_DATA);
	assert_int_equal(size, 8);
	assert_int_equal(kind_at(s, va + 16, &size), SES_HEAD_DATA);
	/* What stood behind the datum is unknown still. */
	assert_int_equal(kind_at(s, va + 22, &size), SES_HEAD_UNKNOWN);
	assert_int_equal(ses_row_cnt(held), rows);
	ses_snap_put(held);
	ses_close(s);
}

static void test_refused(void **unused)
{
	struct ses *s = open_target();
	uint64_t va = some_func(s), len, text = text_va(s, &len);
	state(s, "define", va + 4, NULL);
	assert_null(ses_refresh(s));
	struct ses_edit e = state(s, "define", va, "func");
	assert_int_equal(e.status, SES_EDIT_UNCHANGED);
	assert_string_equal(e.made.how, "existed");
	static const char *const bad[] = {"data:struct nothing", "data:void", "data:int[1000000]", "string:c:0", "string:x", "undef:0",
					  "undef:99999999", "array:0:int", "nonsense", "data:"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (state(s, "define", va, bad[i]).status != SES_EDIT_REFUSED)
			fail_msg("%s: was not refused", bad[i]);
	assert_int_equal(state(s, "define", 0x7000000000, "code").status, SES_EDIT_REFUSED);
	assert_int_equal(state(s, "flags", va + 1, "noreturn").status, SES_EDIT_REFUSED);
	assert_int_equal(state(s, "flags", va, "noreturn,returns").status, SES_EDIT_REFUSED);
	assert_int_equal(state(s, "bounds", va, "0x10").status, SES_EDIT_REFUSED);
	assert_int_equal(state(s, "jump_table", va, "table=0x1,count=1,size=4").status, SES_EDIT_REFUSED);
	assert_false(is_pending(s));
	assert_int_equal(state(s, "flags", va, "noreturn,library").status, SES_EDIT_APPLIED);
	char bounds[64];
	snprintf(bounds, sizeof(bounds), "0x%llx", (unsigned long long)va + 16);
	e = state(s, "bounds", va, bounds);
	assert_int_equal(e.status, SES_EDIT_APPLIED);
	assert_string_equal(e.made.how, "explicit-end");
	assert_true(text <= va && len);
	assert_null(ses_refresh(s));
	struct arena a = {0};
	struct ses_func f;
	struct ses_snap *sn = ses_snap_get(s);
	assert_true(ses_func_at(sn, va, &a, &f));
	assert_true(f.flags & SES_FN_NORETURN && f.flags & SES_FN_LIBRARY);
	assert_true(f.size && f.size <= 16); /* to the last instruction that ends there */
	ses_snap_put(sn);
	arena_fini(&a);
	ses_close(s);
}

/* Whatever was stated, changed and taken back in whatever order: what stands makes the image, not how it came to stand. */
static void test_random(void **unused)
{
	static const char *const what[] = {"code", "func", "data:int", "data:char[5]", "data:void *", "string", "string:pascal", "undef",
					   "undef:40", "array:7:qword", NULL};
	struct ses *s = open_target();
	uint64_t len, text = text_va(s, &len);
	struct arena a = {0};
	struct ses_edit_opts o = {.author = "me"};
	struct ses_undone_list l;
	for (unsigned i = 0; i < 60; i++) {
		if (rnd(6) == 0)
			assert_null(ses_undo(s, &(struct ses_undo_ask){.is_redo = rnd(2) != 0, .steps = 1 + rnd(3)}, &o, &a, &l));
		else
			state(s, "define", text + rnd((uint32_t)len + 0x2000), what[rnd(sizeof(what) / sizeof(*what))]);
		if (rnd(12) == 0)
			assert_null(ses_refresh(s));
	}
	assert_null(ses_refresh(s));
	ses_close(s);
	size_t was_len, now_len;
	char *was = newest_image(&was_len);
	s = open_with((struct ses_opts){.force = true, .threads = 3});
	ses_close(s);
	char *now = newest_image(&now_len);
	assert_int_equal(was_len, now_len);
	assert_memory_equal(was, now, was_len);
	free(was);
	free(now);
	arena_fini(&a);
}

/* Killed anywhere between the edit and the end of the publication: the next one opens what was confirmed. */
static void test_kill(void **unused)
{
	uint32_t size;
	struct ses *s = open_target();
	uint64_t len, va = text_va(s, &len) + 8;
	state(s, "define", va, NULL);
	ses_close(s);
	for (unsigned i = 0; i < 25; i++) {
		const char *value = i % 2 ? "data:word" : "data:dword";
		s = open_target();
		state(s, "define", va, value);
		ses_close(s);
		pid_t pid = fork();
		if (!pid) {
			s = open_target();
			_exit(s ? 0 : 1);
		}
		usleep(rnd(120000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		s = open_target();
		assert_false(is_pending(s));
		assert_int_equal(kind_at(s, va, &size), SES_HEAD_DATA);
		assert_int_equal(size, i % 2 ? 2 : 4);
		ses_close(s);
	}
}

static void load(struct ses *s, const char *sub, const char *value, enum ses_edit_status want)
{
	struct arena a = {0};
	uint64_t rev = 0;
	struct ses_edit e = {.op = "load", .sub = sub, .value = value, .value_len = value ? strlen(value) : 0};
	assert_null(ses_edit(s, &e, 1, &(struct ses_edit_opts){.author = "me"}, &a, &rev));
	if (e.status != want)
		fail_msg("load %s %s: %s", sub, value ? value : "", e.why ? e.why : "");
	arena_fini(&a);
}

static uint64_t where(struct ses *s, const char *name)
{
	uint64_t va = 0;
	struct ses_snap *sn = ses_snap_get(s);
	err_free(ses_resolve(sn, name, &va));
	ses_snap_put(sn);
	return va;
}

/* After hours of work the base turns out to be another: everything that was said is where its bytes went. */
static void test_rebase(void **unused)
{
	uint32_t size;
	size_t was_len, now_len;
	struct ses *s = open_target();
	uint64_t len, base = 0x7000000, va = text_va(s, &len) + 64;
	state(s, "define", va, "data:qword");
	state(s, "rename", va, "moves_along");
	assert_null(ses_refresh(s));
	char *was = newest_image(&was_len);
	load(s, "base", "0x7000010", SES_EDIT_REFUSED);
	load(s, "base", "0xfffffffffffff000", SES_EDIT_REFUSED);
	load(s, "processor", "z80", SES_EDIT_REFUSED);
	load(s, "format", "elf", SES_EDIT_REFUSED);
	load(s, "base", "0x7000000", SES_EDIT_APPLIED);
	assert_true(where(s, "moves_along") == va);
	assert_null(ses_refresh(s));
	assert_true(where(s, "moves_along") == va + base);
	assert_int_equal(kind_at(s, va + base, &size), SES_HEAD_DATA);
	assert_int_equal(size, 8);
	/* What is said now is said of the bytes, too. */
	state(s, "rename", va + base + 8, "said_later");
	assert_true(where(s, "said_later") == va + base + 8);
	ses_close(s);
	s = open_target();
	assert_true(where(s, "said_later") == va + base + 8);
	load(s, "base", NULL, SES_EDIT_APPLIED);
	assert_null(ses_refresh(s));
	assert_true(where(s, "said_later") == va + 8);
	char *now = newest_image(&now_len);
	assert_int_equal(now_len, was_len);
	assert_memory_equal(now, was, was_len);
	ses_close(s);
	free(was);
	free(now);
}

/* A file of which nobody knows anything but what is said of it. */
static void test_blob(void **unused)
{
	static const uint8_t code[] = {0x55, 0xe8, 0x06, 0, 0, 0, 0x5d, 0xc3, 'h', 'i', '!', 0, 0xb8, 1, 0, 0, 0, 0xc3};
	uint32_t size;
	char path[64];
	struct ses *s = NULL;
	snprintf(path, sizeof(path), "%s/blob", work);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(code, 1, sizeof(code), f), sizeof(code));
	fclose(f);
	struct ses_opts plain = {0}, as = {.processor = "x86-64", .base = "0x8000"};
	struct err *e = ses_open(path, &plain, &s);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_UNSUPPORTED);
	assert_non_null(strstr(e->fix, "--processor"));
	err_free(e);
	assert_null(ses_open(path, &as, &s));
	state(s, "define", 0x8000, "func");
	state(s, "define", 0x8008, "string");
	ses_close(s);
	/* It was stated: the next one need not say it. */
	assert_null(ses_open(path, &plain, &s));
	assert_int_equal(kind_at(s, 0x8008, &size), SES_HEAD_STRING);
	assert_int_equal(size, 4);
	assert_int_equal(kind_at(s, 0x800c, &size), SES_HEAD_CODE);
	load(s, "base", "0x100000", SES_EDIT_APPLIED);
	load(s, "processor", "i386", SES_EDIT_APPLIED);
	assert_null(ses_refresh(s));
	assert_int_equal(kind_at(s, 0x100008, &size), SES_HEAD_STRING);
	ses_close(s);
}

/* --- every kind of edit --- */

struct sample { enum edits_kind kind; const char *sub, *value; };

static const struct sample samples[] = {
	{EDITS_NAME, "", "given_name"}, {EDITS_COMMENT, "line", "one"}, {EDITS_COMMENT, "block", "two\nlines"}, {EDITS_COMMENT, "func", "three"},
	{EDITS_COMMENT, "repeatable", "four"}, {EDITS_TYPE, "", "int"}, {EDITS_PROTOTYPE, "", "int f(void)"}, {EDITS_ITEM, "", "code:4"},
	{EDITS_ITEM, "", "func:4"}, {EDITS_ITEM, "", "data:4/4:int"}, {EDITS_ITEM, "", "string:c:5/1"}, {EDITS_ITEM, "", "undef:3"},
	{EDITS_FORMAT, "0", "hex"}, {EDITS_BOOKMARK, "", "here"}, {EDITS_PATCH, "", "c3"}, {EDITS_BOUNDS, "", "+0/16"},
	{EDITS_FLAGS, "", "noreturn,thunk=+32"}, {EDITS_TABLE, "", "table=+64,count=3,size=4,base=+64,shift=0,signed"},
	{EDITS_DECL, "struct s", "struct s { int a; };"}, {EDITS_LOAD, "base", "0x10000"},
};

/* The schema's kinds, each written, the file closed, opened and compared; undone and redone. A kind without a sample fails. */
static void test_every_kind(void **unused)
{
	char path[128];
	unsigned seen = 0;
	snprintf(path, sizeof(path), "%s/every.db", work);
	struct arena a = {0};
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		const struct sample *sm = &samples[i];
		struct edits *e;
		uint64_t rev, va = sm->kind == EDITS_DECL || sm->kind == EDITS_LOAD ? 0 : 0xfffffffffff00000 + i;
		struct edits_change c = {.kind = sm->kind, .va = va, .sub = sm->sub, .value = sm->value, .value_len = strlen(sm->value)};
		struct edits_opts o = {.if_rev = -1, .author = "me"};
		struct edits_state st;
		struct edits_view *v;
		struct edits_steps steps;
		seen |= 1u << sm->kind;
		for (unsigned k = 0; k < 3; k++) { /* set, taken back, set again */
			assert_null(edits_open(path, false, &e));
			if (k == 0) {
				assert_null(edits_commit(e, &c, 1, &o, &a, &rev));
				assert_int_equal(c.status, EDITS_APPLIED);
			} else {
				assert_null(k == 1 ? edits_undo(e, 1, NULL, &o, &a, &steps) : edits_redo(e, 1, NULL, &o, &a, &steps));
				assert_int_equal(steps.cnt, 1);
			}
			edits_close(e);
			assert_null(edits_load(path, &st, &v));
			const struct edits_fact *f = edits_find(v, sm->kind, va, sm->sub);
			assert_true((f != NULL) == (k != 1));
			if (f) {
				assert_string_equal(f->value, sm->value);
				assert_string_equal(f->sub, sm->sub);
				assert_true(f->va == va);
			}
			assert_int_equal(st.directive_rev == st.rev, edits_is_directive(sm->kind));
			edits_view_unref(v);
		}
	}
	for (unsigned k = 0; k < EDITS_KIND_COUNT; k++) {
		if (k != EDITS_ANALYSIS && !(seen >> k & 1))
			fail_msg("no sample of %s", edits_kind_name((enum edits_kind)k));
	}
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pending_and_undo), cmocka_unit_test(test_background), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_random), cmocka_unit_test(test_kill), cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_rebase), cmocka_unit_test(test_blob),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
