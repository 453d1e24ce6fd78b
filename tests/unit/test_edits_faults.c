/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the journal promises when things go wrong: power cuts (every prefix of what was written, with what was not synced
 * lost in part), kill -9 at random moments, two writers, a full disk, a file one may not write.
 */
#include "edits/edits.h"

#include "base/buf.h"
#include "lib/recording_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static char dir[64];
static uint32_t seed = 20261130;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "%s/scry-faults.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(dir) ? 0 : -1;
}

static const char *path_of(const char *name)
{
	static char path[4][160];
	static unsigned n;
	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
	return path[n];
}

static const char *const file_names[] = {"edits.db", "edits.db-wal", "edits.db-shm", "edits.db-journal"};

static void drop_files(void)
{
	for (size_t i = 0; i < ARRAY_LEN(file_names); i++)
		unlink(path_of(file_names[i]));
}

static int drop_dir(void **state)
{
	drop_files();
	return rmdir(dir);
}

static char where[200]; /* what a failure is told with */

static struct edits *must_open(void)
{
	struct edits *e;
	struct err *why = edits_open(path_of("edits.db"), false, &e);
	if (why)
		fail_msg("%s", why->text);
	return e;
}

/* Edit number n: a name, a comment and a bookmark at address n, all or none. */
static struct err *put(struct edits *e, uint64_t n, int64_t if_rev, uint64_t *ret_rev)
{
	struct arena a = {0};
	char name[48], text[64];
	snprintf(name, sizeof(name), "name_%llu", (unsigned long long)n);
	snprintf(text, sizeof(text), "comment on %llu", (unsigned long long)n);
	struct edits_change c[] = {
		{.kind = EDITS_NAME, .va = n, .value = name, .value_len = strlen(name)},
		{.kind = EDITS_COMMENT, .va = n, .sub = "line", .value = text, .value_len = strlen(text)},
		{.kind = EDITS_BOOKMARK, .va = n, .value = "here", .value_len = 4},
	};
	struct edits_opts o = {.if_rev = if_rev, .author = "t"};
	struct err *why = edits_commit(e, c, ARRAY_LEN(c), &o, &a, ret_rev);
	arena_fini(&a);
	return why;
}

/* Facts follow from the journal, every edit is whole, and those up to `acked` (of writer `base`) are there. */
static void check_all(uint64_t base, uint64_t acked, uint64_t *ret_found)
{
	struct edits *e = must_open();
	struct buf faults = {0};
	struct edits_view *v;
	assert_null(edits_check(e, &faults));
	if (faults.len)
		fail_msg("%.*s", (int)faults.len, faults.data);
	buf_fini(&faults);
	assert_null(edits_view_get(e, NULL, &v));
	uint64_t n = 0;
	while (edits_find(v, EDITS_NAME, base + n, "")) {
		assert_non_null(edits_find(v, EDITS_COMMENT, base + n, "line"));
		assert_non_null(edits_find(v, EDITS_BOOKMARK, base + n, ""));
		n++;
	}
	if (n < acked)
		fail_msg("%llu edits were acknowledged, %llu are there; %s", (unsigned long long)acked, (unsigned long long)n, where);
	assert_null(edits_find(v, EDITS_BOOKMARK, base + n, ""));
	*ret_found = n;
	edits_view_unref(v);
	edits_close(e);
}

/* --- power cuts --- */

struct disk_file {
	uint8_t *data;            /* what is surely on the disk */
	size_t len, cap;
	bool is_there;
	size_t pending[4096];     /* operations since the last sync */
	size_t pending_cnt;
	bool was_deleted;         /* and the folder not synced since */
	bool is_new;              /* its first sync syncs the folder too, as SQLite's does */
};

static void disk_apply(struct disk_file *f, const struct rec_op *op, size_t len)
{
	size_t end = op->kind == REC_CUT ? op->off : op->off + len;
	if (end > f->cap) {
		f->data = realloc(f->data, end + 65536);
		assert_non_null(f->data);
		f->cap = end + 65536;
	}
	if (end > f->len || op->kind == REC_CUT) {
		if (end > f->len)
			memset(f->data + f->len, 0, end - f->len);
		f->len = end;
	}
	if (op->kind == REC_WRITE && len)
		memcpy(f->data + op->off, op->data, len);
}

enum lost { LOSE_ALL, LOSE_NONE, LOSE_SOME, LOST_COUNT };

/* The file as a power cut may leave it: what was synced, and of the rest all, none, or some, the last perhaps torn. */
static void disk_write(const struct disk_file *f, const char *name, enum lost lost)
{
	struct disk_file t = {0};
	if (!f->is_there && !(f->was_deleted && lost != LOSE_NONE))
		return;
	t.data = malloc(f->len + 1);
	assert_non_null(t.data);
	if (f->len)
		memcpy(t.data, f->data, f->len);
	t.len = t.cap = f->len;
	for (size_t i = 0; i < f->pending_cnt; i++) {
		const struct rec_op *op = &rec_ops[f->pending[i]];
		bool keep = lost == LOSE_NONE || (lost == LOSE_SOME && rnd(2));
		size_t len = keep && lost == LOSE_SOME && op->kind == REC_WRITE && !rnd(4) ? rnd((uint32_t)op->len + 1) : op->len;
		if (keep)
			disk_apply(&t, op, len);
	}
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, t.data, t.len), (ssize_t)t.len);
	close(fd);
	free(t.data);
}

static void disk_step(struct disk_file *files, size_t at)
{
	const struct rec_op *op = &rec_ops[at];
	struct disk_file *f = &files[op->file];
	if (op->kind == REC_ACK)
		return;
	if (op->kind == REC_SYNC) {
		for (size_t i = 0; i < f->pending_cnt; i++)
			disk_apply(f, &rec_ops[f->pending[i]], rec_ops[f->pending[i]].len);
		f->pending_cnt = 0;
		for (unsigned i = 0; f->is_new && i < rec_file_cnt; i++)
			files[i].was_deleted = false;
		f->is_new = false;
	} else if (op->kind == REC_DELETE) {
		f->is_there = false;
		f->was_deleted = !op->off;
	} else {
		if (!f->is_there) {
			f->len = f->pending_cnt = 0;
			f->was_deleted = false;
			f->is_new = true;
		}
		f->is_there = true;
		assert_true(f->pending_cnt < ARRAY_LEN(f->pending));
		f->pending[f->pending_cnt++] = at;
	}
}

/* Edits, publications, and closings with their checkpoints; each acknowledged as the caller learns of it. */
static void record_session(void)
{
	uint64_t n = 0, rev;
	rec_start();
	for (int round = 0; round < 4; round++) {
		struct edits *e = must_open();
		for (int i = 0; i < 6; i++) {
			assert_null(put(e, n, -1, &rev));
			rec_ack(++n);
		}
		struct edits_state s;
		assert_null(edits_publish_begin(e, &s));
		assert_null(edits_publish_end(e, &s, "/bin/x", round % 2 == 0));
		edits_close(e);
	}
	rec_stop();
}

static void test_power_cut(void **state)
{
	static struct disk_file files[REC_FILE_MAX];
	uint64_t acked = 0, found, syncs = 0, cuts = 0;
	record_session();
	drop_files();
	for (size_t at = 0; at < rec_cnt; at++) {
		disk_step(files, at);
		syncs += rec_ops[at].kind == REC_SYNC;
		if (rec_ops[at].kind == REC_ACK) {
			/* Its sync came before it, and what it wrote is synced: nothing of the log is pending. */
			assert_true(syncs > 0);
			syncs = 0;
			acked = rec_ops[at].off;
			for (unsigned i = 0; i < rec_file_cnt; i++) {
				if (strstr(rec_names[i], "-wal"))
					assert_int_equal(files[i].pending_cnt, 0);
			}
		}
		for (enum lost lost = LOSE_ALL; lost < LOST_COUNT; lost++) {
			drop_files();
			snprintf(where, sizeof(where), "after operation %zu (kind %d on %s), loss %d", at, (int)rec_ops[at].kind,
				 rec_names[rec_ops[at].file], (int)lost);
			for (unsigned i = 0; i < rec_file_cnt; i++)
				disk_write(&files[i], rec_names[i], lost);
			check_all(0, acked, &found);
			cuts++;
		}
	}
	assert_int_equal(acked, 24);
	assert_true(cuts > 300);
	for (unsigned i = 0; i < REC_FILE_MAX; i++)
		free(files[i].data);
	rec_free();
}

/* --- kill -9 --- */

/* Edits from number `n` on, says each on the pipe when it is confirmed. */
static void write_until_killed(int out, uint64_t n)
{
	struct edits *e;
	uint64_t rev;
	if (edits_open(path_of("edits.db"), false, &e))
		_exit(1);
	for (;; n++) {
		if (put(e, n, -1, &rev) || write(out, &n, sizeof(n)) != sizeof(n))
			_exit(1);
		/* Checkpoints and the removal of the log must be met too. */
		if (n % 7 == 6) {
			edits_close(e);
			if (edits_open(path_of("edits.db"), false, &e))
				_exit(1);
		}
	}
}

static void nap_us(uint32_t us)
{
	struct timespec t = {0, (long)us * 1000};
	nanosleep(&t, NULL);
}

static void test_kill(void **state)
{
	const char *rounds_text = getenv("SCRY_KILL_ROUNDS");
	unsigned rounds = rounds_text ? (unsigned)strtoul(rounds_text, NULL, 10) : 200;
	uint64_t next = 0, found = 0, confirmed = 0;
	for (unsigned r = 0; r < rounds; r++) {
		int fds[2];
		assert_int_equal(pipe(fds), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			close(fds[0]);
			write_until_killed(fds[1], next);
		}
		close(fds[1]);
		nap_us(500 + rnd(12000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		uint64_t n, acked = next;
		while (read(fds[0], &n, sizeof(n)) == sizeof(n)) {
			assert_int_equal(n, acked);
			acked++;
			confirmed++;
		}
		close(fds[0]);
		check_all(0, acked, &found);
		assert_true(found <= acked + 1);
		next = found;
		if (next > 150) {
			drop_files();
			next = 0;
		}
	}
	/* Rounds that were all killed before their first edit would prove nothing. */
	assert_true(confirmed > rounds / 4);
}

/* --- two writers --- */

#define WRITER_EDITS 400

/* Each writer adds to a counter that both share, by if_rev: the edit is refused when the other was there since it looked. */
static void add_with_if_rev(struct edits *e)
{
	for (;;) {
		struct edits_view *v;
		struct arena a = {0};
		char text[32];
		uint64_t rev;
		if (edits_view_get(e, NULL, &v))
			_exit(2);
		const struct edits_fact *f = edits_find(v, EDITS_BOOKMARK, 0xc0, "");
		unsigned long was = f ? strtoul(f->value, NULL, 10) : 0;
		snprintf(text, sizeof(text), "%lu", was + 1);
		struct edits_change c = {.kind = EDITS_BOOKMARK, .va = 0xc0, .value = text, .value_len = strlen(text)};
		struct edits_opts o = {.if_rev = (int64_t)edits_view_state(v)->rev, .author = "t"};
		struct err *why = edits_commit(e, &c, 1, &o, &a, &rev);
		edits_view_unref(v);
		arena_fini(&a);
		bool is_stale = why && why->kind == ERR_STALE;
		err_free(why);
		if (!why)
			return;
		if (!is_stale)
			_exit(3);
	}
}

static void writer(uint64_t base)
{
	struct edits *e;
	uint64_t rev, last = 0;
	if (edits_open(path_of("edits.db"), false, &e))
		_exit(1);
	for (uint64_t i = 0; i < WRITER_EDITS; i++) {
		struct err *why = put(e, base + i, -1, &rev);
		if (why || rev <= last)
			_exit(4);
		last = rev;
		if (i % 4 == 0)
			add_with_if_rev(e);
	}
	edits_close(e);
	_exit(0);
}

static void test_two_writers(void **state)
{
	pid_t pids[2];
	for (size_t i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i])
			writer(0x100000 * (i + 1));
	}
	for (size_t i = 0; i < 2; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	uint64_t found;
	for (size_t i = 0; i < 2; i++) {
		check_all(0x100000 * (i + 1), WRITER_EDITS, &found);
		assert_int_equal(found, WRITER_EDITS);
	}
	struct edits *e = must_open();
	struct edits_view *v;
	assert_null(edits_view_get(e, NULL, &v));
	const struct edits_fact *f = edits_find(v, EDITS_BOOKMARK, 0xc0, "");
	assert_non_null(f);
	assert_int_equal(strtoul(f->value, NULL, 10), 2 * (WRITER_EDITS / 4));
	edits_view_unref(v);
	edits_close(e);
}

/* --- a full disk, a file one may not write --- */

/* RLIMIT_FSIZE makes writes past a length fail, as on a full disk; SIGXFSZ must be off for that. */
static void test_disk_full(void **state)
{
	struct edits *e = must_open();
	uint64_t rev, n = 0, found;
	assert_null(put(e, n++, -1, &rev));
	struct rlimit was, limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur = 120000;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	struct err *why = NULL;
	while (n < 1000 && !(why = put(e, n, -1, &rev)))
		n++;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_IO);
	err_free(why);
	assert_true(n > 1);
	check_all(0, n, &found);
	assert_int_equal(found, n);
	/* With room again the same connection goes on. */
	assert_null(put(e, n, -1, &rev));
	edits_close(e);
	check_all(0, n + 1, &found);
}

static void test_read_only(void **state)
{
	struct edits *e = must_open();
	uint64_t rev, found;
	assert_null(put(e, 0, -1, &rev));
	edits_close(e);
	assert_null(edits_open(path_of("edits.db"), true, &e));
	struct err *why = put(e, 1, -1, &rev);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_READONLY);
	err_free(why);
	edits_close(e);
	check_all(0, 1, &found);
	assert_int_equal(found, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)
	const struct CMUnitTest tests[] = {
		T(test_power_cut), T(test_kill), T(test_two_writers), T(test_disk_full), T(test_read_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
