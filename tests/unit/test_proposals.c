/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proposals against a model that is two arrays: what stands at each key, and every proposal with what it would change. Random proposals by three
 * agents, acceptances, refusals, edits of a person and undos by author, compared after each step. Then limits, reading, and salvage.
 */
#include "edits/edits.h"

#include "base/buf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char dir[64];

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "%s/scry-proposals.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(dir) ? 0 : -1;
}

static const char *db_path(const char *name)
{
	static char path[2][128];
	static unsigned n;
	n ^= 1;
	snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
	return path[n];
}

static int drop_dir(void **state)
{
	static const char *const names[] = {"edits.db", "edits.db-wal", "edits.db-shm", "edits.db-journal", "new.db", "new.db-wal", "new.db-shm"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unlink(db_path(names[i]));
	return rmdir(dir);
}

static void must(struct err *why)
{
	if (why)
		fail_msg("%s", why->text);
}

static struct edits *must_open(const char *name)
{
	struct edits *e;
	must(edits_open(db_path(name), false, &e));
	return e;
}

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* --- the model --- */

#define KEYS 8          /* line comments at so many addresses; the last are high, because SQLite's integers are signed */
#define PROPOSALS 600

static const uint64_t vas[KEYS] = {0, 1, 0x401000, 0x401005, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffff80000000, 0xffffffffffffffff};
static const char *const agents[] = {"ann", "bob", "eve"};

struct model_proposal { int key, before, after, agent; unsigned call; enum edits_proposal_state state; uint64_t rev; };
struct model {
	int now[KEYS];  /* values are numbers, 0 none */
	struct model_proposal p[PROPOSALS];
	unsigned cnt, calls;
};

static struct edits_change change(int key, int value, char text[16])
{
	snprintf(text, 16, "text_%d", value);
	return (struct edits_change){.kind = EDITS_COMMENT, .va = vas[key], .sub = "line", .value = value ? text : NULL,
				     .value_len = value ? strlen(text) : 0};
}

/* A call of 1 to 3 changes at different keys, as the session makes them: a dry run, then written down. */
static void propose(struct edits *e, struct model *m)
{
	struct arena a = {0};
	struct edits_change c[3];
	char text[3][16];
	int key = (int)rnd(KEYS), cnt = 1 + (int)rnd(3), agent = (int)rnd(3), value[3], proposed = 0;
	uint64_t rev;
	for (int i = 0; i < cnt; i++) {
		value[i] = (int)rnd(4);
		c[i] = change((key + i) % KEYS, value[i], text[i]);
	}
	struct edits_opts o = {.if_rev = -1, .author = agents[agent], .author_kind = EDITS_AGENT, .note = "n", .is_dry_run = true};
	must(edits_commit(e, c, (size_t)cnt, &o, &a, &rev));
	must(edits_propose(e, c, (size_t)cnt, &o, &a));
	for (int i = 0; i < cnt; i++) {
		int k = (key + i) % KEYS;
		assert_int_equal(c[i].status, m->now[k] == value[i] ? EDITS_UNCHANGED : EDITS_APPLIED);
		if (c[i].status != EDITS_APPLIED)
			continue;
		proposed++;
		m->p[m->cnt++] = (struct model_proposal){.key = k, .before = m->now[k], .after = value[i], .agent = agent, .call = m->calls + 1};
		assert_int_equal(c[i].proposal, m->cnt);
	}
	m->calls += proposed > 0;
	arena_fini(&a);
}

static void accept(struct edits *e, struct model *m)
{
	if (!m->cnt)
		return;
	struct arena a = {0};
	struct edits_state before;
	char text[16];
	unsigned i = rnd(m->cnt);
	struct model_proposal *p = &m->p[i];
	struct edits_change c = change(p->key, p->after, text);
	uint64_t rev;
	must(edits_get_state(e, &before));
	c.proposal = i + 1;
	struct edits_opts o = {.if_rev = -1, .author = agents[p->agent], .author_kind = EDITS_AGENT};
	must(edits_commit(e, &c, 1, &o, &a, &rev));
	if (p->state != EDITS_OPEN || (m->now[p->key] != p->before && m->now[p->key] != p->after)) {
		assert_int_equal(c.status, EDITS_REFUSED);
		assert_non_null(strstr(c.why, p->state != EDITS_OPEN ? "decided already" : "stale"));
		assert_int_equal(rev, before.rev);
	} else {
		/* What stands already is accepted without a revision. */
		bool is_same = m->now[p->key] == p->after;
		assert_int_equal(c.status, is_same ? EDITS_UNCHANGED : EDITS_APPLIED);
		assert_int_equal(rev, before.rev + !is_same);
		p->state = EDITS_ACCEPTED;
		p->rev = rev;
		m->now[p->key] = p->after;
	}
	arena_fini(&a);
}

static void decline(struct edits *e, struct model *m)
{
	uint64_t ids[3];
	for (int i = 0; i < 3; i++) {
		/* Some that are not there, too. */
		ids[i] = 1 + rnd(m->cnt + 2);
		if (ids[i] <= m->cnt && m->p[ids[i] - 1].state == EDITS_OPEN)
			m->p[ids[i] - 1].state = EDITS_DECLINED;
	}
	must(edits_decline(e, ids, 3));
}

static void edit(struct edits *e, struct model *m)
{
	struct arena a = {0};
	char text[16];
	int key = (int)rnd(KEYS), value = (int)rnd(4);
	struct edits_change c = change(key, value, text);
	uint64_t rev;
	must(edits_commit(e, &c, 1, &(struct edits_opts){.if_rev = -1, .author = "person"}, &a, &rev));
	m->now[key] = value;
	arena_fini(&a);
}

/* Takes back an author's newest edit. What it stated stands again in the file, which the model reads: that undo is right, test_edits.c says. */
static void undo(struct edits *e, struct model *m)
{
	struct arena a = {0};
	struct edits_steps steps = {0};
	const char *author = rnd(2) ? agents[rnd(3)] : "person";
	struct edits_view *v;
	struct err *why = edits_undo(e, 1, author, &(struct edits_opts){.if_rev = -1, .author = "person"}, &a, &steps);
	if (why)
		assert_int_equal(why->kind, ERR_STALE);
	err_free(why);
	for (uint32_t i = 0; i < steps.cnt; i++)
		assert_string_equal(steps.list[i].author, author);
	must(edits_view_get(e, NULL, &v));
	for (int k = 0; k < KEYS; k++) {
		const struct edits_fact *f = edits_find(v, EDITS_COMMENT, vas[k], "line");
		m->now[k] = f ? f->value[5] - '0' : 0;
	}
	edits_view_unref(v);
	arena_fini(&a);
}

static void same_text(const char *got, int want)
{
	char text[16];
	snprintf(text, sizeof(text), "text_%d", want);
	if (want)
		assert_string_equal(got, text);
	else
		assert_null(got);
}

/* All, those that wait, and those of an author, in pages. */
static void compare(struct edits *e, const struct model *m)
{
	for (int how = 0; how < 3; how++) {
		struct arena a = {0};
		uint64_t total, want_total = 0, n = 0;
		struct edits_proposals_ask ask = {.has_decided = how == 0, .author = how == 2 ? agents[1] : NULL, .limit = 7};
		struct edits_proposal *list;
		uint32_t cnt = 0, at = 0;
		for (unsigned i = 0; i < m->cnt; i++) {
			const struct model_proposal *p = &m->p[i];
			if ((how && p->state != EDITS_OPEN) || (how == 2 && p->agent != 1))
				continue;
			if (at == cnt) {
				ask.offset = n;
				must(edits_proposals(e, &ask, &a, &list, &cnt, &total));
				at = 0;
				assert_true(cnt > 0);
			}
			const struct edits_proposal *got = &list[at++];
			n++;
			want_total++;
			assert_int_equal(got->id, i + 1);
			assert_int_equal(got->call, p->call);
			assert_int_equal(got->state, p->state);
			assert_int_equal(got->va, vas[p->key]);
			assert_string_equal(got->author, agents[p->agent]);
			assert_string_equal(got->author_kind, "agent");
			assert_string_equal(got->note, "n");
			assert_int_equal(got->is_stale, p->state == EDITS_OPEN && m->now[p->key] != p->before);
			assert_int_equal(got->rev, p->state == EDITS_ACCEPTED ? p->rev : 0);
			same_text(got->before, p->before);
			same_text(got->after, p->after);
		}
		ask.offset = n;
		must(edits_proposals(e, &ask, &a, &list, &cnt, &total));
		assert_int_equal(cnt, 0);
		assert_int_equal(total, want_total);
		arena_fini(&a);
	}
}

static void test_model(void **state)
{
	static struct model m;
	seed = 5;
	memset(&m, 0, sizeof(m));
	struct edits *e = must_open("edits.db");
	unsigned stale = 0, accepted = 0, declined = 0;
	while (m.cnt + 3 <= PROPOSALS / 3) {
		switch (rnd(6)) {
		case 0:
			decline(e, &m);
			break;
		case 1:
			edit(e, &m);
			break;
		case 2:
			undo(e, &m);
			break;
		case 3:
			propose(e, &m);
			break;
		default:
			accept(e, &m);
		}
		compare(e, &m);
		if (rnd(50) == 0) {
			edits_close(e);
			e = must_open("edits.db");
		}
	}
	for (unsigned i = 0; i < m.cnt; i++) {
		accepted += m.p[i].state == EDITS_ACCEPTED;
		declined += m.p[i].state == EDITS_DECLINED;
		stale += m.p[i].state == EDITS_OPEN && m.now[m.p[i].key] != m.p[i].before;
	}
	/* A run without any of these would show nothing. */
	assert_true(accepted > 20 && declined > 10 && stale > 3);
	struct buf faults = {0};
	must(edits_check(e, &faults));
	if (faults.len)
		fail_msg("%.*s", (int)faults.len, faults.data);
	buf_fini(&faults);
	edits_close(e);
}

/* --- single things --- */

static void propose_names(struct edits *e, uint64_t first, unsigned cnt, struct err **ret)
{
	struct arena a = {0};
	struct edits_change *c = calloc(cnt, sizeof(*c));
	char (*text)[24] = calloc(cnt, sizeof(*text));
	uint64_t rev;
	assert_true(c && text);
	for (unsigned i = 0; i < cnt; i++) {
		snprintf(text[i], sizeof(text[i]), "n_%" PRIu64, first + i);
		c[i] = (struct edits_change){.kind = EDITS_NAME, .va = (first + i) * 16, .sub = "", .value = text[i], .value_len = strlen(text[i])};
	}
	struct edits_opts o = {.if_rev = -1, .author = "ann", .author_kind = EDITS_AGENT, .is_dry_run = true};
	must(edits_commit(e, c, cnt, &o, &a, &rev));
	*ret = edits_propose(e, c, cnt, &o, &a);
	free(c);
	free(text);
	arena_fini(&a);
}

static struct edits_proposal *list_all(struct edits *e, struct arena *a, uint32_t *ret_cnt)
{
	uint64_t total;
	struct edits_proposal *list;
	must(edits_proposals(e, &(struct edits_proposals_ask){.has_decided = true, .limit = 200000}, a, &list, ret_cnt, &total));
	return list;
}

/* Acceptances of another's call in one transaction, all or none. */
static void test_accept(void **state)
{
	struct arena a = {0};
	struct edits *e = must_open("edits.db");
	struct err *why;
	uint64_t rev;
	uint32_t cnt;
	/* Where nobody ever proposed. */
	list_all(e, &a, &cnt);
	assert_int_equal(cnt, 0);
	must(edits_decline(e, &(uint64_t){1}, 1));
	struct edits_change c[3] = {{.kind = EDITS_NAME, .va = 0, .sub = "", .value = "n_0", .value_len = 3, .proposal = 1},
				    {.kind = EDITS_NAME, .va = 16, .sub = "", .value = "n_1", .value_len = 3, .proposal = 2},
				    {.kind = EDITS_NAME, .va = 32, .sub = "", .value = "n_2", .value_len = 3, .proposal = 77}};
	struct edits_opts o = {.if_rev = -1, .author = "ann", .author_kind = EDITS_AGENT};
	must(edits_commit(e, c, 1, &o, &a, &rev));
	assert_int_equal(c[0].status, EDITS_REFUSED);
	assert_non_null(strstr(c[0].why, "no such proposal"));
	propose_names(e, 0, 2, &why);
	must(why);
	/* One refusal refuses all, and marks none. */
	o.is_atomic = true;
	must(edits_commit(e, c, 3, &o, &a, &rev));
	assert_int_equal(c[0].status, EDITS_REFUSED);
	assert_int_equal(rev, 0);
	/* Neither does a dry run. */
	o.is_dry_run = true;
	must(edits_commit(e, c, 2, &o, &a, &rev));
	assert_int_equal(c[1].status, EDITS_APPLIED);
	struct edits_proposal *p = list_all(e, &a, &cnt);
	assert_true(cnt == 2 && p[0].state == EDITS_OPEN && p[1].state == EDITS_OPEN);
	o.is_dry_run = false;
	must(edits_commit(e, c, 2, &o, &a, &rev));
	p = list_all(e, &a, &cnt);
	assert_true(rev == 1 && p[0].rev == 1 && p[1].rev == 1 && p[1].state == EDITS_ACCEPTED);
	/* A decided one stays what it was. */
	must(edits_decline(e, (uint64_t[]){1, 2}, 2));
	p = list_all(e, &a, &cnt);
	assert_true(p[0].state == EDITS_ACCEPTED && p[1].state == EDITS_ACCEPTED);
	/* Somebody who may only read reads them. */
	edits_close(e);
	must(edits_open(db_path("edits.db"), true, &e));
	list_all(e, &a, &cnt);
	assert_int_equal(cnt, 2);
	edits_close(e);
	arena_fini(&a);
}

/* Shown elsewhere, they are there. */
static void test_bias(void **state)
{
	struct arena a = {0};
	struct edits *e = must_open("edits.db");
	struct err *why;
	uint32_t cnt;
	edits_set_bias(e, 0x400000);
	propose_names(e, 0x40000, 1, &why);
	must(why);
	assert_int_equal(list_all(e, &a, &cnt)[0].va, 0x400000);
	edits_set_bias(e, 0);
	assert_int_equal(list_all(e, &a, &cnt)[0].va, 0);
	edits_close(e);
	arena_fini(&a);
}

static void test_too_many(void **state)
{
	struct arena a = {0};
	struct edits *e = must_open("edits.db");
	struct err *why = NULL;
	uint32_t cnt;
	for (unsigned i = 0; i < 10; i++) {
		propose_names(e, i * 10000, 10000, &why);
		must(why);
	}
	propose_names(e, 200000, 1, &why);
	assert_int_equal(why->kind, ERR_BUDGET);
	err_free(why);
	list_all(e, &a, &cnt);
	assert_int_equal(cnt, 100000);
	/* When one is decided another has room. */
	must(edits_decline(e, &(uint64_t){5}, 1));
	propose_names(e, 200000, 1, &why);
	must(why);
	edits_close(e);
	arena_fini(&a);
}

/* --- salvage --- */

enum { SALVAGED = 400 };

/* Every third accepted, every third refused, in revisions that are not their numbers. */
static void make_decided(struct edits *e)
{
	struct err *why;
	propose_names(e, 0, SALVAGED, &why);
	must(why);
	for (unsigned i = 0; i < SALVAGED; i++) {
		struct arena a = {0};
		char text[24];
		uint64_t rev;
		snprintf(text, sizeof(text), "n_%u", i);
		struct edits_change c = {.kind = EDITS_NAME, .va = i * 16, .sub = "", .value = text, .value_len = strlen(text), .proposal = i + 1};
		if (i % 3 == 0)
			must(edits_commit(e, &c, 1, &(struct edits_opts){.if_rev = -1, .author = "ann", .author_kind = EDITS_AGENT}, &a, &rev));
		if (i % 3 == 1)
			must(edits_decline(e, &(uint64_t){i + 1}, 1));
		if (i % 50 == 0) {
			struct edits_state s;
			must(edits_publish_begin(e, &s));
			must(edits_publish_end(e, &s, "/x", true));
		}
		arena_fini(&a);
	}
}

/* Each is what it was, and an accepted one's revision is the one that states it. Gives how many there are. */
static unsigned check_salvaged(struct edits *e)
{
	struct arena a = {0};
	struct edits_view *v;
	uint32_t cnt;
	struct edits_proposal *p = list_all(e, &a, &cnt);
	must(edits_view_get(e, NULL, &v));
	for (uint32_t i = 0; i < cnt; i++) {
		char text[24];
		unsigned n = (unsigned)p[i].id - 1;
		snprintf(text, sizeof(text), "n_%u", n);
		const struct edits_fact *f = edits_find(v, EDITS_NAME, n * 16, "");
		assert_int_equal(p[i].va, n * 16);
		assert_string_equal(p[i].after, text);
		assert_string_equal(p[i].author, "ann");
		assert_int_equal(p[i].state, n % 3 == 0 ? EDITS_ACCEPTED : n % 3 == 1 ? EDITS_DECLINED : EDITS_OPEN);
		if (f && p[i].rev)
			assert_int_equal(f->rev, p[i].rev);
	}
	edits_view_unref(v);
	arena_fini(&a);
	return cnt;
}

static void test_salvage(void **state)
{
	enum { PAGE = 4096 };
	struct edits *e = must_open("edits.db");
	uint64_t entries, lost;
	make_decided(e);
	edits_close(e);
	must(edits_salvage(db_path("edits.db"), db_path("new.db"), &entries, &lost));
	assert_int_equal(lost, 0);
	e = must_open("new.db");
	assert_int_equal(check_salvaged(e), SALVAGED);
	/* What waited can be accepted, and new ones have new numbers. */
	struct arena a = {0};
	uint64_t rev;
	struct edits_change c = {.kind = EDITS_NAME, .va = 32, .sub = "", .value = "n_2", .value_len = 3, .proposal = 3};
	must(edits_commit(e, &c, 1, &(struct edits_opts){.if_rev = -1, .author = "ann"}, &a, &rev));
	assert_int_equal(c.status, EDITS_APPLIED);
	struct err *why;
	uint32_t cnt;
	propose_names(e, 100000, 1, &why);
	must(why);
	assert_int_equal(list_all(e, &a, &cnt)[SALVAGED].id, SALVAGED + 1);
	arena_fini(&a);
	edits_close(e);
	unlink(db_path("new.db"));
	/* Each page in turn is overwritten: what is not there is counted. */
	int fd = open(db_path("edits.db"), O_RDWR);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	char was[PAGE], junk[PAGE];
	memset(junk, 0x5a, sizeof(junk));
	unsigned whole = 0, partly = 0;
	for (off_t at = PAGE; at < st.st_size; at += PAGE) {
		assert_int_equal(pread(fd, was, PAGE, at), PAGE);
		assert_int_equal(pwrite(fd, junk, PAGE, at), PAGE);
		why = edits_salvage(db_path("edits.db"), db_path("new.db"), &entries, &lost);
		if (!why) {
			e = must_open("new.db");
			unsigned n = check_salvaged(e);
			/* Without its first page, nobody knows that there were any. */
			assert_true(n == SALVAGED || lost > 0 || !n);
			whole += n == SALVAGED;
			partly += n && n < SALVAGED;
			edits_close(e);
		}
		err_free(why);
		unlink(db_path("new.db"));
		assert_int_equal(pwrite(fd, was, PAGE, at), PAGE);
	}
	close(fd);
	assert_true(whole > st.st_size / PAGE / 2 && partly > 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)
	const struct CMUnitTest tests[] = {T(test_model), T(test_accept), T(test_bias), T(test_too_many), T(test_salvage)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
