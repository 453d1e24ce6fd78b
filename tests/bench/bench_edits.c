/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writing to the journal costs, for bench_edits.py: each row is measured in turn with the same rows written by bare SQLite to
 * a file in the same folder, so that both meet the same disk.
 *   bench_edits one TARGET NAME FOLDER ROUNDS     rename NAME (ses_edit, until it is confirmed and a snapshot has it), and one INSERT
 *                                                 committed in WAL mode with synchronous=FULL
 *   bench_edits many TARGET NAME FOLDER N ROUNDS  N renames from NAME on by `rename --from` (the map read, the answer written), and
 *                                                 N INSERTs of the same names in one transaction; of each round other places
 *   bench_edits undo TARGET NAME FOLDER N ROUNDS  taking those back by one undo, and N UPDATEs in one transaction
 * Prints "OURS THEIRS" in milliseconds of wall-clock time a line. The bare table has the index that keeps names apart, too.
 */
#include "session/ops.h"
#include "session/session.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_edits: %s\n", what);
	exit(1);
}

static void no_err(struct err *e)
{
	if (e)
		die(e->text);
}

static void run_sql(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
}

static void drop(const char *folder, const char *name)
{
	static const char *const tails[] = {"", "-wal", "-shm"};
	char path[600];
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", folder, name, tails[i]);
		unlink(path);
	}
}

/* A table of names as anybody would make one: by address, no two the same. */
static sqlite3 *open_bare(const char *folder)
{
	char path[600];
	sqlite3 *db;
	drop(folder, "bare.db");
	snprintf(path, sizeof(path), "%s/bare.db", folder);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(path);
	run_sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE name(addr INTEGER PRIMARY KEY, value TEXT NOT NULL,"
		    " rev INTEGER NOT NULL); CREATE UNIQUE INDEX by_name ON name(value)");
	return db;
}

/* Round `place` of addresses, names of `round`. */
static void bare_rows(sqlite3 *db, const char *sql, unsigned n, unsigned place, unsigned round)
{
	sqlite3_stmt *st;
	char name[32];
	run_sql(db, "BEGIN IMMEDIATE");
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "name_%u_%u", round, i);
		sqlite3_bind_int64(st, 1, 0x400000 + (sqlite3_int64)n * place + i);
		sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(st, 3, round);
		if (sqlite3_step(st) != SQLITE_DONE)
			die(sqlite3_errmsg(db));
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	run_sql(db, "COMMIT");
}

static uint64_t va_of(struct ses *s, const char *name)
{
	uint64_t va;
	struct ses_snap *sn = ses_snap_get(s);
	no_err(ses_resolve(sn, name, &va));
	ses_snap_put(sn);
	return va;
}

static void bench_one(char **argv)
{
	unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10);
	struct ses *s;
	uint64_t rev;
	struct arena a = {0};
	sqlite3 *db = open_bare(argv[2]);
	no_err(ses_open(argv[0], &(struct ses_opts){0}, &s));
	uint64_t va = va_of(s, argv[1]);
	for (unsigned i = 0; i < rounds; i++) {
		char name[32];
		snprintf(name, sizeof(name), "renamed_%u", i);
		struct ses_edit c = {.op = "rename", .addr = va, .sub = "", .value = name, .value_len = strlen(name)};
		double began = now_ms();
		no_err(ses_edit(s, &c, 1, &(struct ses_edit_opts){0}, &a, &rev));
		double middle = now_ms();
		char sql[128];
		snprintf(sql, sizeof(sql), "INSERT INTO name VALUES(%u, 'renamed_%u', %u)", i, i, i);
		run_sql(db, sql);
		printf("%.4f %.4f\n", middle - began, now_ms() - middle);
		arena_reset(&a);
	}
	arena_fini(&a);
	sqlite3_close(db);
	ses_close(s);
}

static void write_map(const char *path, uint64_t va, unsigned n, unsigned round)
{
	FILE *f = fopen(path, "w");
	if (!f)
		die(path);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s\"0x%" PRIx64 "\":\"name_%u_%u\"", i ? ",\n" : "{", va + i, round, i);
	fprintf(f, "}\n");
	if (fclose(f))
		die(path);
}

static double rename_from(struct ses *s, const char *path)
{
	const struct ops_op *op = ops_find("rename");
	struct arena a = {0};
	struct buf text = {0};
	struct ops_args args;
	struct ops_out o;
	struct ses_call call = {.caps = ~(uint32_t)0};
	ops_args_init(&args, op, &a);
	no_err(ops_args_set(&args, ops_param_find(op, "from", 4), path));
	ops_out_init(&o, op, &text, true);
	struct ops_req rq = {.sn = ses_snap_get(s), .call = &call, .args = &args, .arena = &a, .out = &o};
	double began = now_ms();
	no_err(ops_run(&rq));
	double took = now_ms() - began;
	if (o.status)
		die(o.status->text);
	ses_snap_put(rq.sn);
	ops_out_fini(&o);
	buf_fini(&text);
	arena_fini(&a);
	return took;
}

static double undo_one(struct ses *s)
{
	struct arena a = {0};
	struct ses_undone_list l;
	double began = now_ms();
	no_err(ses_undo(s, &(struct ses_undo_ask){.steps = 1}, &(struct ses_edit_opts){0}, &a, &l));
	double took = now_ms() - began;
	if (l.cnt != 1)
		die("nothing was undone");
	arena_fini(&a);
	return took;
}

static void bench_many(char **argv, bool is_undo)
{
	unsigned n = (unsigned)strtoul(argv[3], NULL, 10), rounds = (unsigned)strtoul(argv[4], NULL, 10);
	struct ses *s;
	char path[600];
	snprintf(path, sizeof(path), "%s/map.json", argv[2]);
	no_err(ses_open(argv[0], &(struct ses_opts){0}, &s));
	uint64_t va = va_of(s, argv[1]);
	sqlite3 *db = open_bare(argv[2]);
	for (unsigned i = 0; i < rounds; i++) {
		write_map(path, va + (uint64_t)n * i, n, i);
		double ours = rename_from(s, path), began = now_ms();
		bare_rows(db, "INSERT INTO name VALUES(?1, ?2, ?3)", n, i, i);
		double theirs = now_ms() - began;
		if (is_undo) {
			ours = undo_one(s);
			began = now_ms();
			bare_rows(db, "UPDATE name SET value=?2, rev=?3 WHERE addr=?1", n, i, i + rounds);
			theirs = now_ms() - began;
		}
		printf("%.4f %.4f\n", ours, theirs);
	}
	sqlite3_close(db);
	drop(argv[2], "bare.db");
	unlink(path);
	ses_close(s);
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "one"))
		bench_one(argv + 2);
	else if (argc == 7 && (!strcmp(argv[1], "many") || !strcmp(argv[1], "undo")))
		bench_many(argv + 2, !strcmp(argv[1], "undo"));
	else
		die("one TARGET NAME FOLDER ROUNDS, many|undo TARGET NAME FOLDER N ROUNDS");
	return 0;
}
