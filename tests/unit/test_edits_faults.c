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
#include <poll.h>
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

/* A process that forks a thousand times keeps no freed memory: each child would copy its page tables. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8";
}

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

/* The key of edit number n in kind k: its address where the kind has one, else its sub. */
static void key_of(enum edits_kind k, uint64_t n, uint64_t *ret_va, char sub[48])
{
	*ret_va = edits_has_va(k) ? n : 0;
	snprintf(sub, 48, edits_has_va(k) ? "" : "of_%llu", (unsigned long long)n);
}

/* Edit number n: a statement of every kind there is, all or none. */
static struct err *put_kinds(struct edits *e, uint64_t n, unsigned kinds, uint64_t *ret_rev)
{
	struct arena a = {0};
	char value[EDITS_ANALYSIS][64], sub[EDITS_ANALYSIS][48];
	struct edits_change c[EDITS_ANALYSIS];
	unsigned cnt = 0;
	for (unsigned k = 0; k < EDITS_ANALYSIS; k++) {
		if (!(kinds & 1u << k))
			continue;
		c[cnt] = (struct edits_change){.kind = (enum edits_kind)k, .sub = sub[k], .value = value[k]};
		key_of((enum edits_kind)k, n, &c[cnt].va, sub[k]);
		snprintf(value[k], sizeof(value[k]), "%s_%llu", edits_kind_name((enum edits_kind)k), (unsigned long long)n);
		c[cnt].value_len = strlen(value[k]);
		cnt++;
	}
	struct edits_opts o = {.if_rev = -1, .author = "t"};
	struct err *why = edits_commit(e, c, cnt, &o, &a, ret_rev);
	arena_fini(&a);
	return why;
}

#define ALL_KINDS ((1u << EDITS_ANALYSIS) - 1)
#define FEW_KINDS (1u << EDITS_NAME | 1u << EDITS_COMMENT | 1u << EDITS_DECL)

static struct err *put(struct edits *e, uint64_t n, uint64_t *ret_rev)
{
	return put_kinds(e, n, ALL_KINDS, ret_rev);
}

/* How many of `kinds` edit n has left. */
static unsigned count_kinds(const struct edits_view *v, uint64_t n, unsigned kinds)
{
	unsigned cnt = 0;
	for (unsigned k = 0; k < EDITS_ANALYSIS; k++) {
		uint64_t va;
		char sub[48];
		key_of((enum edits_kind)k, n, &va, sub);
		cnt += (kinds & 1u << k) && edits_find(v, (enum edits_kind)k, va, sub);
	}
	return cnt;
}

/* Facts follow from the journal, every edit (of these kinds) is whole, and those up to `acked` (of writer `base`) are there. */
static void check_kinds(uint64_t base, uint64_t acked, unsigned kinds, uint64_t *ret_found)
{
	unsigned all = (unsigned)__builtin_popcount(kinds), cnt;
	struct edits *e = must_open();
	struct buf faults = {0};
	struct edits_view *v;
	assert_null(edits_check(e, &faults));
	if (faults.len)
		fail_msg("%.*s", (int)faults.len, faults.data);
	buf_fini(&faults);
	assert_null(edits_view_get(e, NULL, &v));
	uint64_t n = 0;
	while ((cnt = count_kinds(v, base + n, kinds)) == all)
		n++;
	if (cnt)
		fail_msg("edit %llu is there in part; %s", (unsigned long long)n, where);
	if (n < acked)
		fail_msg("%llu edits were acknowledged, %llu are there; %s", (unsigned long long)acked, (unsigned long long)n, where);
	*ret_found = n;
	edits_view_unref(v);
	edits_close(e);
}

static void check_all(uint64_t base, uint64_t acked, uint64_t *ret_found)
{
	check_kinds(base, acked, ALL_KINDS, ret_found);
}

/* --- proposals: step 2n proposes name n, step 2n+1 accepts it --- */

static struct err *propose_step(struct edits *e, uint64_t step)
{
	struct arena a = {0};
	char text[32];
	uint64_t rev;
	snprintf(text, sizeof(text), "p_%llu", (unsigned long long)step / 2);
	struct edits_change c = {.kind = EDITS_NAME, .va = step / 2, .sub = "", .value = text, .value_len = strlen(text)};
	struct edits_opts o = {.if_rev = -1, .author = "agent", .author_kind = EDITS_AGENT, .is_dry_run = step % 2 == 0};
	c.proposal = step % 2 ? step / 2 + 1 : 0;
	struct err *why = edits_commit(e, &c, 1, &o, &a, &rev);
	if (!why && step % 2 == 0)
		why = edits_propose(e, &c, 1, &o, &a);
	if (!why && c.status != EDITS_APPLIED)
		why = err_new(ERR_INTERNAL, "step %llu: %s", (unsigned long long)step, c.why);
	arena_fini(&a);
	return why;
}

/* What is accepted stands, what waits does not, and the first `acked` steps were done; gives how many were. */
static uint64_t check_proposals(uint64_t acked)
{
	struct edits *e = must_open();
	struct arena a = {0};
	struct buf faults = {0};
	struct edits_view *v;
	struct edits_proposal *list;
	uint32_t cnt;
	uint64_t total, accepted = 0;
	assert_null(edits_check(e, &faults));
	if (faults.len)
		fail_msg("%.*s", (int)faults.len, faults.data);
	buf_fini(&faults);
	assert_null(edits_view_get(e, NULL, &v));
	assert_null(edits_proposals(e, &(struct edits_proposals_ask){.has_decided = true, .limit = 10000}, &a, &list, &cnt, &total));
	for (uint32_t i = 0; i < cnt; i++) {
		const struct edits_fact *f = edits_find(v, EDITS_NAME, i, "");
		bool is_accepted = list[i].state == EDITS_ACCEPTED;
		if (list[i].id != i + 1 || is_accepted != (f != NULL) || (f && f->rev != list[i].rev))
			fail_msg("proposal %u is half accepted; %s", i, where);
		accepted += is_accepted;
	}
	edits_view_unref(v);
	edits_close(e);
	arena_fini(&a);
	if (cnt + accepted < acked)
		fail_msg("%llu steps were acknowledged, %llu are there; %s", (unsigned long long)acked, (unsigned long long)(cnt + accepted), where);
	return cnt + accepted;
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
			assert_null(put(e, n, &rev));
			rec_ack(++n);
		}
		struct edits_state s;
		assert_null(edits_publish_begin(e, &s));
		assert_null(edits_publish_end(e, &s, "/bin/x", round % 2 == 0));
		edits_close(e);
	}
	rec_stop();
}

static void check_edits_cut(uint64_t acked)
{
	uint64_t found;
	check_all(0, acked, &found);
}

static void record_proposals(void)
{
	uint64_t n = 0;
	rec_start();
	for (int round = 0; round < 4; round++) {
		struct edits *e = must_open();
		for (int i = 0; i < 5; i++) {
			assert_null(propose_step(e, n));
			rec_ack(++n);
		}
		edits_close(e);
	}
	rec_stop();
}

static void check_proposals_cut(uint64_t acked)
{
	(void)check_proposals(acked);
}

static void cut_everywhere(void (*check)(uint64_t acked), uint64_t acks)
{
	struct disk_file *files = calloc(REC_FILE_MAX, sizeof(*files));
	uint64_t acked = 0, syncs = 0, cuts = 0;
	assert_non_null(files);
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
			check(acked);
			cuts++;
		}
	}
	assert_int_equal(acked, acks);
	assert_true(cuts > 300);
	for (unsigned i = 0; i < REC_FILE_MAX; i++)
		free(files[i].data);
	free(files);
	rec_free();
}

static void test_power_cut(void **state)
{
	record_session();
	cut_everywhere(check_edits_cut, 24);
}

static void test_power_cut_accepting(void **state)
{
	record_proposals();
	cut_everywhere(check_proposals_cut, 20);
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
		if (put(e, n, &rev) || write(out, &n, sizeof(n)) != sizeof(n))
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
	unsigned rounds = rounds_text ? (unsigned)strtoul(rounds_text, NULL, 10) : 1000, done = 0;
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
		/* Every second round is past its first edit, on machines of any speed; the others may meet the opening. */
		if (r % 2)
			poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, -1);
		nap_us(300 + rnd(8000));
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
		done++;
		next = found;
		if (next > 20) {
			drop_files();
			next = 0;
		}
	}
	/* Rounds that were all killed before their first edit would prove nothing. */
	assert_true(confirmed >= rounds / 2);
	print_message("%u rounds, %llu edits confirmed\n", done, (unsigned long long)confirmed);
}

static void propose_until_killed(int out, uint64_t n)
{
	struct edits *e;
	if (edits_open(path_of("edits.db"), false, &e))
		_exit(1);
	for (;; n++) {
		if (propose_step(e, n) || write(out, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

static void test_kill_accepting(void **state)
{
	uint64_t next = 0, confirmed = 0;
	for (unsigned r = 0; r < 200; r++) {
		int fds[2];
		assert_int_equal(pipe(fds), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			close(fds[0]);
			propose_until_killed(fds[1], next);
		}
		close(fds[1]);
		poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, -1);
		nap_us(300 + rnd(8000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		uint64_t n, acked = next;
		while (read(fds[0], &n, sizeof(n)) == sizeof(n)) {
			assert_int_equal(n, acked);
			acked++;
			confirmed++;
		}
		close(fds[0]);
		snprintf(where, sizeof(where), "round %u", r);
		next = check_proposals(acked);
		assert_true(next <= acked + 1);
		if (next > 200) {
			drop_files();
			next = 0;
		}
	}
	assert_true(confirmed >= 200);
	print_message("%llu steps confirmed\n", (unsigned long long)confirmed);
}

/* --- two writers --- */

/* SCRY_WRITER_EDITS makes it another number. */
static unsigned writer_edits = 10000;

/* Each writer adds to a counter that both share, by if_rev: the edit is refused when the other was there since it looked. */
static void add_with_if_rev(struct edits *e, struct edits_view **kept)
{
	for (;;) {
		struct edits_view *v;
		struct arena a = {0};
		char text[32];
		uint64_t rev;
		if (edits_view_get(e, *kept, &v))
			_exit(2);
		edits_view_unref(*kept);
		*kept = v;
		const struct edits_fact *f = edits_find(v, EDITS_BOOKMARK, 0xc0, "");
		unsigned long was = f ? strtoul(f->value, NULL, 10) : 0;
		snprintf(text, sizeof(text), "%lu", was + 1);
		struct edits_change c = {.kind = EDITS_BOOKMARK, .va = 0xc0, .value = text, .value_len = strlen(text)};
		struct edits_opts o = {.if_rev = (int64_t)edits_view_state(v)->rev, .author = "t"};
		struct err *why = edits_commit(e, &c, 1, &o, &a, &rev);
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
	struct edits_view *kept = NULL;
	uint64_t rev, last = 0;
	if (edits_open(path_of("edits.db"), false, &e))
		_exit(1);
	for (uint64_t i = 0; i < writer_edits; i++) {
		struct err *why = put_kinds(e, base + i, FEW_KINDS, &rev);
		if (why || rev <= last)
			_exit(4);
		last = rev;
		if (i % 10 == 0)
			add_with_if_rev(e, &kept);
	}
	edits_view_unref(kept);
	edits_close(e);
	_exit(0);
}

/* Each writer's edits stand in the journal in the order in which it made them. */
static void check_order(struct edits *e)
{
	struct arena a = {0};
	uint64_t seen[2] = {0}, total, last_rev = 0;
	for (uint64_t seq = 1;; seq += 1000) {
		struct edits_entry *out;
		uint32_t cnt;
		assert_null(edits_journal(e, &(struct edits_journal_ask){0, seq, 1000}, &a, &out, &cnt, &total));
		for (uint32_t i = 0; i < cnt; i++) {
			assert_true(out[i].rev >= last_rev);
			last_rev = out[i].rev;
			uint64_t who = out[i].va / 0x100000 - 1;
			if (out[i].kind == EDITS_NAME)
				assert_int_equal(out[i].va % 0x100000, seen[who]++);
		}
		if (cnt < 1000)
			break;
		arena_reset(&a);
	}
	assert_int_equal(seen[0], writer_edits);
	assert_int_equal(seen[1], writer_edits);
	arena_fini(&a);
}

static void test_two_writers(void **state)
{
	pid_t pids[2];
	const char *text = getenv("SCRY_WRITER_EDITS");
	writer_edits = text ? (unsigned)strtoul(text, NULL, 10) : writer_edits;
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
		check_kinds(0x100000 * (i + 1), writer_edits, FEW_KINDS, &found);
		assert_int_equal(found, writer_edits);
	}
	struct edits *e = must_open();
	struct edits_view *v;
	check_order(e);
	assert_null(edits_view_get(e, NULL, &v));
	const struct edits_fact *f = edits_find(v, EDITS_BOOKMARK, 0xc0, "");
	assert_non_null(f);
	assert_int_equal(strtoul(f->value, NULL, 10), 2 * ((writer_edits + 9) / 10));
	edits_view_unref(v);
	edits_close(e);
	print_message("2 writers, %u edits each, and %lu by if_rev\n", writer_edits, 2ul * ((writer_edits + 9) / 10));
}

/* --- a full disk, a file one may not write --- */

/* RLIMIT_FSIZE makes writes past a length fail, as on a full disk; SIGXFSZ must be off for that. */
static void test_disk_full(void **state)
{
	struct edits *e = must_open();
	uint64_t rev, n = 0, found;
	assert_null(put(e, n++, &rev));
	struct rlimit was, limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur = 120000;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	struct err *why = NULL;
	while (n < 1000 && !(why = put(e, n, &rev)))
		n++;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_non_null(why);
	assert_int_equal(why->kind, ERR_IO);
	err_free(why);
	assert_true(n > 1);
	check_all(0, n, &found);
	assert_int_equal(found, n);
	/* With room again the same connection goes on. */
	assert_null(put(e, n, &rev));
	edits_close(e);
	check_all(0, n + 1, &found);
}

static void test_read_only(void **state)
{
	struct edits *e = must_open();
	uint64_t rev, found;
	assert_null(put(e, 0, &rev));
	edits_close(e);
	assert_null(edits_open(path_of("edits.db"), true, &e));
	struct err *why = put(e, 1, &rev);
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
		T(test_power_cut), T(test_power_cut_accepting), T(test_kill), T(test_kill_accepting), T(test_two_writers), T(test_disk_full),
		T(test_read_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
