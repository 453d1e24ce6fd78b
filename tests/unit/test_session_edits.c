/* SPDX-License-Identifier: Apache-2.0 */
/* Edits through the typed API: what two sessions on one target see of each other, and that a held snapshot stays as it was. */
#include "session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_sessions)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
