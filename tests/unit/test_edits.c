/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal against a model that is nothing but two arrays: random edits, undos and redos by several authors, compared
 * fact by fact after every step and again after reopening. Then refusals, staleness, damage and salvage.
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
	/* In memory where that can be had: thousands of commits, and no power cut to fear. */
	snprintf(dir, sizeof(dir), "%s/scry-edits.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	static const char *const names[] = {"edits.db", "edits.db-wal", "edits.db-shm", "edits.db-journal", "new.db", "new.db-wal", "new.db-shm"};
	char path[128];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static const char *db_path(const char *name)
{
	static char path[2][128];
	static unsigned n;
	n ^= 1;
	snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
	return path[n];
}

static struct edits *must_open(const char *path)
{
	struct edits *e;
	struct err *why = edits_open(path, false, &e);
	if (why)
		fail_msg("%s", why->text);
	return e;
}

static void no_fault(struct edits *e)
{
	struct buf faults = {0};
	assert_null(edits_check(e, &faults));
	if (faults.len)
		fail_msg("%.*s", (int)faults.len, faults.data);
	buf_fini(&faults);
}

static struct edits_change set(enum edits_kind kind, uint64_t va, const char *sub, const char *value)
{
	return (struct edits_change){.kind = kind, .va = va, .sub = sub, .value = value, .value_len = value ? strlen(value) : 0};
}

static const struct edits_view *with_view; /* what commit_as() gives along */

static uint64_t commit_as(struct edits *e, struct edits_change *c, size_t cnt, const char *author)
{
	struct arena a = {0};
	uint64_t rev = 0;
	struct edits_opts o = {.if_rev = -1, .author = author, .view = with_view};
	struct err *why = edits_commit(e, c, cnt, &o, &a, &rev);
	if (why)
		fail_msg("%s", why->text);
	for (size_t i = 0; i < cnt; i++)
		c[i].before = c[i].why = NULL;
	arena_fini(&a);
	return rev;
}

/* --- the model --- */

#define VAS 12
#define KEYS (VAS * 2)      /* a name and a line comment for each address */
#define CHANGES 24         /* calls of many changes go by the view, small ones by the file */
#define STEPS 1500

/* Values are small numbers; 0 is none. Names are unique over addresses. */
struct model_edit { unsigned author; uint64_t rev; int cnt, key[CHANGES], before[CHANGES], after[CHANGES]; bool is_undone; };
struct model {
	int now[KEYS];
	struct model_edit edits[STEPS];
	int cnt;
	int undos[STEPS];   /* edits whose undo was not redone, in the order they were undone; -1 a barrier of all */
	int undo_at[STEPS]; /* cnt when it was undone */
	int undo_cnt;
	uint64_t rev;
};

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static const char *const authors[] = {"ann", "bob", "scry-agent"};

/* High addresses are there because SQLite's integers are signed. */
static uint64_t key_va(int key)
{
	static const uint64_t vas[VAS] = {0, 1, 0x401000, 0x401005, 0x401006, 0x402000, 0x7fffffffffffffff, 0x8000000000000000,
					  0xffffffff80000000, 0xffffffff80000010, 0xfffffffffffffffe, 0xffffffffffffffff};
	return vas[key / 2];
}

static enum edits_kind key_kind(int key)
{
	return key % 2 ? EDITS_COMMENT : EDITS_NAME;
}

static const char *key_sub(int key)
{
	return key % 2 ? "line" : "";
}

static const char *value_text(int v, char *out, size_t cap)
{
	if (!v)
		return NULL;
	snprintf(out, cap, "text_%d", v);
	return out;
}

static bool name_is_free(const struct model *m, int key, int v)
{
	for (int k = 0; k < KEYS; k += 2) {
		if (key % 2 == 0 && v && k != key && m->now[k] == v)
			return false;
	}
	return true;
}

static void check_view(const struct model *m, const struct edits_view *v)
{
	char text[32];
	for (int k = 0; k < KEYS; k++) {
		const struct edits_fact *f = edits_find(v, key_kind(k), key_va(k), key_sub(k));
		const char *want = value_text(m->now[k], text, sizeof(text));
		assert_int_equal(f != NULL, want != NULL);
		uint64_t va = 0;
		if (!f)
			continue;
		assert_string_equal(f->value, want);
		assert_int_equal(f->value_len, strlen(want));
		/* Whoever is named so is the one with that name; a comment's text names nobody by itself. */
		assert_int_equal(edits_name_find(v, want, strlen(want), &va), k % 2 == 0 || !name_is_free(m, KEYS, m->now[k]));
		if (k % 2 == 0)
			assert_true(va == key_va(k));
	}
	size_t n = 0;
	int live = 0;
	for (int k = 1; k < KEYS; k += 2)
		live += m->now[k] != 0;
	const struct edits_fact *f = edits_range(v, EDITS_COMMENT, 0, UINT64_MAX, &n);
	assert_int_equal(n, live);
	for (size_t i = 1; i < n; i++)
		assert_true(f[i - 1].va < f[i].va);
}

/* What edits_commit must say and do. */
static void model_edit(struct model *m, struct edits *e)
{
	struct model_edit *me = &m->edits[m->cnt];
	struct edits_change c[CHANGES];
	enum edits_status want[CHANGES];
	int key[CHANGES], now[KEYS], cnt = 1 + (int)rnd(rnd(3) ? 5 : CHANGES - 1);
	char text[CHANGES][32];
	*me = (struct model_edit){.author = rnd(3)};
	memcpy(now, m->now, sizeof(now));
	for (int i = 0; i < cnt; i++) {
		key[i] = (int)rnd(KEYS);
		int v = rnd(4) ? (int)rnd(30) + 1 : 0;
		c[i] = set(key_kind(key[i]), key_va(key[i]), key_sub(key[i]), value_text(v, text[i], sizeof(text[i])));
		int was = m->now[key[i]];
		want[i] = was == v ? EDITS_UNCHANGED : name_is_free(m, key[i], v) ? EDITS_APPLIED : EDITS_REFUSED;
		if (want[i] != EDITS_APPLIED)
			continue;
		me->key[me->cnt] = key[i];
		me->before[me->cnt] = was;
		me->after[me->cnt++] = v;
		m->now[key[i]] = v;
	}
	uint64_t rev = commit_as(e, c, (size_t)cnt, authors[me->author]);
	for (int i = 0; i < cnt; i++)
		assert_int_equal(c[i].status, want[i]);
	assert_int_equal(rev, m->rev + (me->cnt > 0));
	m->rev = me->rev = rev;
	m->cnt += me->cnt > 0;
}

static int newest_standing(const struct model *m, int author)
{
	for (int i = m->cnt - 1; i >= 0; i--) {
		if (!m->edits[i].is_undone && (author < 0 || m->edits[i].author == (unsigned)author))
			return i;
	}
	return -1;
}

static int newest_undo(const struct model *m, int author)
{
	for (int i = m->undo_cnt - 1; i >= 0; i--) {
		if (author >= 0 && m->edits[m->undos[i]].author != (unsigned)author)
			continue;
		for (int k = m->undo_at[i]; k < m->cnt; k++) {
			if (author < 0 || m->edits[k].author == (unsigned)author)
				return -1;
		}
		return i;
	}
	return -1;
}

/* The facts after `me` was taken back, or made again; false when somebody was there since. */
static bool model_apply(struct model *m, const struct model_edit *me, bool is_redo)
{
	int was[KEYS];
	memcpy(was, m->now, sizeof(was));
	for (int n = 0; n < me->cnt; n++) {
		int i = is_redo ? n : me->cnt - 1 - n;
		int from = is_redo ? me->before[i] : me->after[i], to = is_redo ? me->after[i] : me->before[i];
		if (m->now[me->key[i]] != from || !name_is_free(m, me->key[i], to)) {
			memcpy(m->now, was, sizeof(was));
			return false;
		}
		m->now[me->key[i]] = to;
	}
	return true;
}

static void model_back(struct model *m, struct edits *e, bool is_redo)
{
	struct arena a = {0};
	struct edits_steps steps = {0};
	int author = rnd(2) ? (int)rnd(3) : -1;
	struct edits_opts o = {.if_rev = -1, .author = "who", .author_kind = EDITS_AGENT};
	const char *name = author < 0 ? NULL : authors[author];
	struct err *why = is_redo ? edits_redo(e, 1, name, &o, &a, &steps) : edits_undo(e, 1, name, &o, &a, &steps);
	int u = is_redo ? newest_undo(m, author) : -1;
	int i = is_redo ? (u < 0 ? -1 : m->undos[u]) : newest_standing(m, author);
	bool ok = i >= 0 && model_apply(m, &m->edits[i], is_redo);
	if (i >= 0 && !ok) {
		assert_non_null(why);
		assert_int_equal(why->kind, ERR_STALE);
	} else {
		assert_null(why);
		assert_int_equal(steps.cnt, ok);
	}
	err_free(why);
	if (ok) {
		assert_string_equal(steps.list[0].author, authors[m->edits[i].author]);
		assert_int_equal(steps.list[0].rev, ++m->rev);
		m->edits[i].is_undone = !is_redo;
		if (is_redo) {
			memmove(m->undos + u, m->undos + u + 1, (size_t)(m->undo_cnt - u - 1) * sizeof(int));
			memmove(m->undo_at + u, m->undo_at + u + 1, (size_t)(m->undo_cnt - u - 1) * sizeof(int));
			m->undo_cnt--;
		} else {
			m->undo_at[m->undo_cnt] = m->cnt;
			m->undos[m->undo_cnt++] = i;
		}
	}
	arena_fini(&a);
}

static void publish(struct edits *e, struct model *m)
{
	struct edits_state s;
	assert_null(edits_publish_begin(e, &s));
	s.built_from_rev = s.directive_rev;
	bool is_done = rnd(3) != 0;
	assert_null(edits_publish_end(e, &s, "/bin/x", is_done));
	m->rev += is_done;
}

/* Replays the journal from nothing. */
static void check_journal(struct edits *e, const struct model *m)
{
	struct arena a = {0};
	int now[KEYS] = {0};
	uint64_t total = 0, seen = 0;
	char text[32];
	for (uint64_t seq = 1;; seq += 100) {
		struct edits_entry *out;
		uint32_t cnt;
		assert_null(edits_journal(e, &(struct edits_journal_ask){0, seq, 100}, &a, &out, &cnt, &total));
		for (uint32_t i = 0; i < cnt; i++) {
			assert_int_equal(out[i].seq, ++seen);
			if (out[i].kind == EDITS_ANALYSIS)
				continue;
			int k = 0;
			while (key_va(k) != out[i].va || key_kind(k) != out[i].kind)
				k++;
			const char *was = value_text(now[k], text, sizeof(text));
			assert_int_equal(was != NULL, out[i].before != NULL);
			if (was)
				assert_string_equal(was, out[i].before);
			now[k] = 0;
			if (out[i].after)
				assert_int_equal(sscanf(out[i].after, "text_%d", &now[k]), 1);
		}
		if (cnt < 100)
			break;
		arena_reset(&a);
	}
	assert_int_equal(seen, total);
	assert_memory_equal(now, m->now, sizeof(now));
	arena_fini(&a);
}

/* What stands is what the model has, each with an edit of one of the authors, not with an undo. */
static void check_stated(struct edits *e, const struct model *m)
{
	struct arena a = {0};
	struct edits_entry *out;
	size_t cnt, live = 0;
	uint64_t rev;
	char text[32];
	assert_null(edits_stated(e, &a, &out, &cnt, &rev));
	assert_int_equal(rev, m->rev);
	for (int k = 0; k < KEYS; k++)
		live += m->now[k] != 0;
	assert_int_equal(cnt, live);
	for (size_t i = 0; i < cnt; i++) {
		int k = 0;
		while (key_va(k) != out[i].va || key_kind(k) != out[i].kind)
			k++;
		assert_string_equal(out[i].after, value_text(m->now[k], text, sizeof(text)));
		int by = m->cnt - 1, n = -1;
		for (; by >= 0 && n < 0; by--) {
			for (n = m->edits[by].cnt - 1; n >= 0 && (m->edits[by].key[n] != k || m->edits[by].after[n] != m->now[k]);)
				n--;
		}
		by++;
		assert_true(n >= 0);
		assert_string_equal(out[i].author, authors[m->edits[by].author]);
		assert_int_equal(out[i].rev, m->edits[by].rev);
	}
	arena_fini(&a);
}

/* From `was` at revision `since` to what is now, each key once. */
static void check_changes(struct edits *e, const struct model *m, const int *was, uint64_t since)
{
	struct arena a = {0};
	struct edits_entry *out, *page;
	uint32_t cnt, page_cnt;
	uint64_t total, page_total, last = 0;
	int now[KEYS];
	char text[32];
	memcpy(now, was, sizeof(now));
	assert_null(edits_changes(e, &(struct edits_changes_ask){since, UINT64_MAX, 0, UINT32_MAX}, &a, &out, &cnt, &total));
	assert_int_equal(cnt, total);
	for (uint32_t i = 0; i < cnt; i++) {
		assert_true(out[i].seq > last && out[i].rev > since && out[i].cnt);
		last = out[i].seq;
		if (out[i].kind == EDITS_ANALYSIS)
			continue;
		int k = 0, v = 0;
		while (key_va(k) != out[i].va || key_kind(k) != out[i].kind)
			k++;
		const char *before = value_text(was[k], text, sizeof(text));
		assert_int_equal(before != NULL, out[i].before != NULL);
		if (before)
			assert_string_equal(before, out[i].before);
		if (out[i].after)
			assert_int_equal(sscanf(out[i].after, "text_%d", &v), 1);
		assert_int_not_equal(v, now[k]);
		now[k] = v;
	}
	assert_memory_equal(now, m->now, sizeof(now));
	assert_null(edits_changes(e, &(struct edits_changes_ask){since, UINT64_MAX, cnt / 2, 1}, &a, &page, &page_cnt, &page_total));
	assert_int_equal(page_total, total);
	assert_int_equal(page_cnt, cnt > cnt / 2);
	if (page_cnt)
		assert_int_equal(page[0].seq, out[cnt / 2].seq);
	/* What stood then is what had changed until then. */
	memset(now, 0, sizeof(now));
	assert_null(edits_changes(e, &(struct edits_changes_ask){0, since, 0, UINT32_MAX}, &a, &out, &cnt, &total));
	for (uint32_t i = 0; i < cnt; i++) {
		int k = 0;
		if (out[i].kind == EDITS_ANALYSIS)
			continue;
		while (key_va(k) != out[i].va || key_kind(k) != out[i].kind)
			k++;
		assert_true(out[i].rev <= since && out[i].after && sscanf(out[i].after, "text_%d", &now[k]) == 1);
	}
	assert_memory_equal(now, was, sizeof(now));
	arena_fini(&a);
}

static void run_model(uint32_t from_seed)
{
	static struct model m;
	struct edits *e = must_open(db_path("edits.db"));
	struct edits_view *v = NULL;
	int then[KEYS] = {0};
	uint64_t then_rev = 0;
	m = (struct model){0};
	seed = from_seed;
	for (int i = 0; i < STEPS / 3; i++) {
		uint32_t what = rnd(20);
		if (what == 0) {
			publish(e, &m);
		} else if (what < 6) {
			model_back(&m, e, false);
		} else if (what < 10) {
			model_back(&m, e, true);
		} else {
			/* Sometimes none, sometimes one of a revision before. */
			with_view = rnd(4) ? v : NULL;
			model_edit(&m, e);
			with_view = NULL;
		}
		struct edits_view *next = NULL;
		assert_null(edits_view_get(e, v, &next));
		edits_view_unref(v);
		v = next;
		assert_int_equal(edits_view_state(v)->rev, m.rev);
		check_view(&m, v);
		if (i % 10 == 9)
			check_changes(e, &m, then, then_rev);
		if (i % 40 == 39) {
			check_stated(e, &m);
			memcpy(then, m.now, sizeof(then));
			then_rev = m.rev;
		}
		if (i % 100 == 99) {
			no_fault(e);
			edits_close(e);
			struct edits_state s;
			struct edits_view *loaded;
			assert_null(edits_load(db_path("edits.db"), &s, &loaded));
			assert_int_equal(s.rev, m.rev);
			check_view(&m, loaded);
			edits_view_unref(loaded);
			e = must_open(db_path("edits.db"));
		}
	}
	check_journal(e, &m);
	edits_view_unref(v);
	edits_close(e);
}

static void test_model(void **state)
{
	static const uint32_t seeds[] = {1, 20261130, 77777};
	for (size_t i = 0; i < ARRAY_LEN(seeds); i++) {
		run_model(seeds[i]);
		unlink(db_path("edits.db"));
		unlink(db_path("edits.db-wal"));
		unlink(db_path("edits.db-shm"));
	}
}

static void test_atomic_and_dry_run(void **state)
{
	struct arena a = {0};
	struct edits *e = must_open(db_path("edits.db"));
	uint64_t rev;
	struct edits_change c[] = {set(EDITS_NAME, 0x10, "", "one"), set(EDITS_NAME, 0x20, "", "one"), set(EDITS_BOOKMARK, 0x10, "", "b")};
	struct edits_opts o = {.is_atomic = true, .if_rev = -1};
	assert_null(edits_commit(e, c, 3, &o, &a, &rev));
	assert_int_equal(rev, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(c[i].status, EDITS_REFUSED);
		assert_non_null(c[i].why);
	}
	assert_non_null(strstr(c[1].why, "0x10"));
	o = (struct edits_opts){.is_dry_run = true, .if_rev = -1};
	assert_null(edits_commit(e, c, 3, &o, &a, &rev));
	assert_int_equal(rev, 0);
	assert_int_equal(c[0].status, EDITS_APPLIED);
	assert_int_equal(c[1].status, EDITS_REFUSED);
	assert_int_equal(c[2].status, EDITS_APPLIED);
	o.is_dry_run = false;
	assert_null(edits_commit(e, c, 3, &o, &a, &rev));
	assert_int_equal(rev, 1);
	assert_null(edits_commit(e, c, 1, &o, &a, &rev));
	assert_int_equal(rev, 1);
	assert_int_equal(c[0].status, EDITS_UNCHANGED);
	no_fault(e);
	edits_close(e);
	arena_fini(&a);
}

static void test_if_rev(void **state)
{
	struct arena a = {0};
	struct edits *e = must_open(db_path("edits.db"));
	struct edits_change c = set(EDITS_COMMENT, 5, "line", "x");
	uint64_t rev = commit_as(e, &c, 1, "ann"), now;
	struct edits_opts o = {.if_rev = 0};
	struct edits_change mine = set(EDITS_COMMENT, 5, "line", "y");
	struct err *why = edits_commit(e, &mine, 1, &o, &a, &now);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_STALE);
	err_free(why);
	o.if_rev = (int64_t)rev;
	assert_null(edits_commit(e, &mine, 1, &o, &a, &now));
	/* Taking it away is a change too. */
	c = set(EDITS_COMMENT, 5, "line", NULL);
	commit_as(e, &c, 1, "ann");
	o.if_rev = (int64_t)now;
	why = edits_commit(e, &mine, 1, &o, &a, &now);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_STALE);
	err_free(why);
	edits_close(e);
	arena_fini(&a);
}

static void test_shapes_refused(void **state)
{
	struct arena a = {0};
	struct edits *e = must_open(db_path("edits.db"));
	char *big = malloc(EDITS_VALUE_MAX + 1);
	memset(big, 'x', EDITS_VALUE_MAX + 1);
	uint64_t rev;
	struct edits_change c[] = {
		set(EDITS_NAME, 1, "", ""),
		{.kind = EDITS_COMMENT, .va = 1, .sub = "line", .value = big, .value_len = EDITS_VALUE_MAX + 1},
		{.kind = EDITS_COMMENT, .va = 1, .sub = "line", .value = "a\0b", .value_len = 3},
		{.kind = EDITS_ANALYSIS, .va = 1, .value = "1", .value_len = 1},
	};
	struct edits_opts o = {.if_rev = -1};
	assert_null(edits_commit(e, c, ARRAY_LEN(c), &o, &a, &rev));
	assert_int_equal(rev, 0);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		assert_int_equal(c[i].status, EDITS_REFUSED);
	free(big);
	edits_close(e);
	arena_fini(&a);
}

/* Thousands of steps at once, between another author's edits: each revision is met once, so this ends. */
static void test_long_undo(void **state)
{
	enum { CNT = 3000 };
	struct edits *e = must_open(db_path("edits.db"));
	struct arena a = {0};
	struct edits_steps steps;
	struct edits_view *v;
	struct edits_opts o = {.if_rev = -1, .author = "ann"};
	for (int i = 0; i < CNT; i++) {
		char name[32];
		snprintf(name, sizeof(name), "name_%d", i);
		struct edits_change c = set(EDITS_NAME, (uint64_t)i, "", name);
		commit_as(e, &c, 1, authors[i % 2]);
	}
	assert_null(edits_undo(e, CNT, "ann", &o, &a, &steps));
	assert_int_equal(steps.cnt, CNT / 2);
	for (uint32_t i = 0; i < steps.cnt; i++)
		assert_int_equal(steps.list[i].target, CNT - 1 - 2 * i);
	assert_null(edits_undo(e, CNT, NULL, &o, &a, &steps));
	assert_int_equal(steps.cnt, CNT / 2);
	assert_null(edits_view_get(e, NULL, &v));
	assert_null(edits_find(v, EDITS_NAME, 1, ""));
	edits_view_unref(v);
	assert_null(edits_redo(e, CNT * 2, NULL, &o, &a, &steps));
	assert_int_equal(steps.cnt, CNT);
	assert_null(edits_view_get(e, NULL, &v));
	for (int i = 0; i < CNT; i++)
		assert_non_null(edits_find(v, EDITS_NAME, (uint64_t)i, ""));
	edits_view_unref(v);
	no_fault(e);
	edits_close(e);
	arena_fini(&a);
}

static void test_directives_and_touches(void **state)
{
	struct edits *e = must_open(db_path("edits.db"));
	struct edits_change c = set(EDITS_ITEM, 0x30, "", "code");
	uint64_t first = commit_as(e, &c, 1, "ann");
	c = set(EDITS_NAME, 0x40, "", "n");
	uint64_t second = commit_as(e, &c, 1, "ann");
	struct edits_view *v;
	assert_null(edits_view_get(e, NULL, &v));
	assert_int_equal(edits_view_state(v)->directive_rev, first);
	assert_int_equal(edits_view_state(v)->edit_rev, second);
	assert_int_equal(edits_view_touched(v, 0x30, 0x3f), first);
	assert_int_equal(edits_view_touched(v, 0, UINT64_MAX), second);
	assert_int_equal(edits_view_touched(v, 0x41, UINT64_MAX), 0);
	edits_view_unref(v);
	no_fault(e);
	edits_close(e);
}

static void test_no_file(void **state)
{
	struct edits *e;
	struct edits_state s;
	struct edits_view *v;
	struct err *why = edits_open(db_path("edits.db"), true, &e);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_NOT_FOUND);
	err_free(why);
	why = edits_load(db_path("edits.db"), &s, &v);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_NOT_FOUND);
	err_free(why);
	int fd = open(db_path("edits.db"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "this is no database, it only says so at some length", 50), 50);
	close(fd);
	why = edits_open(db_path("edits.db"), false, &e);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_BAD_INPUT);
	err_free(why);
}

/* --- damage --- */

static void fill(struct edits *e, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		char name[32], text[200];
		snprintf(name, sizeof(name), "name_%d", i);
		snprintf(text, sizeof(text), "comment %d: %0150d", i, i);
		struct edits_change c[] = {set(EDITS_NAME, (uint64_t)i * 16, "", name), set(EDITS_COMMENT, (uint64_t)i * 16, "line", text)};
		commit_as(e, c, 2, authors[i % 3]);
	}
}

static int count_facts(const char *path, int cnt)
{
	struct edits *e = must_open(path);
	struct edits_view *v;
	int found = 0;
	no_fault(e);
	assert_null(edits_view_get(e, NULL, &v));
	for (int i = 0; i < cnt; i++) {
		char name[32];
		snprintf(name, sizeof(name), "name_%d", i);
		const struct edits_fact *f = edits_find(v, EDITS_NAME, (uint64_t)i * 16, "");
		found += f && !strcmp(f->value, name);
	}
	edits_view_unref(v);
	edits_close(e);
	return found;
}

/* Each page in turn is overwritten; the check must see it or the content be the same, and salvage keeps the rest. */
static void test_damaged_pages(void **state)
{
	enum { CNT = 300, PAGE = 4096 };
	struct edits *e = must_open(db_path("edits.db"));
	fill(e, CNT);
	edits_close(e);
	int fd = open(db_path("edits.db"), O_RDWR);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	char *was = malloc((size_t)st.st_size), junk[PAGE];
	assert_int_equal(pread(fd, was, (size_t)st.st_size, 0), st.st_size);
	memset(junk, 0x5a, sizeof(junk));
	int salvaged = 0;
	for (off_t at = PAGE; at < st.st_size; at += PAGE) {
		assert_int_equal(pwrite(fd, junk, PAGE, at), PAGE);
		struct buf faults = {0};
		struct err *why = edits_open(db_path("edits.db"), true, &e);
		if (!why) {
			why = edits_check(e, &faults);
			assert_true(why || faults.len);
			edits_close(e);
		}
		err_free(why);
		buf_fini(&faults);
		uint64_t entries, lost;
		why = edits_salvage(db_path("edits.db"), db_path("new.db"), &entries, &lost);
		if (!why) {
			int n = count_facts(db_path("new.db"), CNT);
			assert_true(n >= CNT * 8 / 10 || lost > 0);
			salvaged += n == CNT;
		}
		err_free(why);
		unlink(db_path("new.db"));
		assert_int_equal(pwrite(fd, was + at, PAGE, at), PAGE);
	}
	close(fd);
	free(was);
	/* A name is in the journal and in the facts: most single pages cost nothing. */
	assert_true(salvaged > st.st_size / PAGE / 2);
	assert_int_equal(count_facts(db_path("edits.db"), CNT), CNT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)
	const struct CMUnitTest tests[] = {
		T(test_model), T(test_atomic_and_dry_run), T(test_if_rev), T(test_long_undo), T(test_shapes_refused), T(test_directives_and_touches),
		T(test_no_file), T(test_damaged_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
