/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EDITS_EDITS_INT_H
#define EDITS_EDITS_INT_H

#include "edits/edits.h"

#include <sqlite3.h>
#include <stdatomic.h>

/* Statements that edits and reads repeat, prepared on first use and kept by the connection. */
enum edits_stmt {
	EDITS_ST_STATE,
	EDITS_ST_FACT,
	EDITS_ST_NAME,
	EDITS_ST_NEW_FACT,
	EDITS_ST_SET_FACT,
	EDITS_ST_PUT_ENTRY,
	EDITS_ST_PUT_ENTRIES, /* EDITS_BATCH of them */
	EDITS_ST_NEXT_SEQ,
	EDITS_ST_PUT_REVISION,
	EDITS_ST_PUT_STATE,
	EDITS_ST_COUNT
};

struct edits {
	sqlite3 *db;
	char *path;
	uint64_t bias; /* what goes in and comes out is that much above the file's addresses */
	sqlite3_stmt *st[EDITS_ST_COUNT];
};

enum edits_step_kind { EDITS_STEP_EDIT, EDITS_STEP_UNDO, EDITS_STEP_REDO, EDITS_STEP_ANALYSIS };
const char *edits_step_name(unsigned step);

/* edits_db.c */
_must_use_ struct err *edits_error(const struct edits *e);
_must_use_ struct err *edits_exec(struct edits *e, const char *sql);
/* The statement, reset and without bindings. */
_must_use_ struct err *edits_stmt(struct edits *e, enum edits_stmt which, sqlite3_stmt **ret);
_must_use_ struct err *edits_prepare(struct edits *e, const char *sql, sqlite3_stmt **ret);
/* Runs a statement that gives no rows. */
_must_use_ struct err *edits_run(struct edits *e, sqlite3_stmt *st);
/* True when there is a row; false at the end. */
_must_use_ struct err *edits_step_row(struct edits *e, sqlite3_stmt *st, bool *ret_row);
_must_use_ struct err *edits_begin(struct edits *e);
void edits_rollback(struct edits *e);
/* Wherever it fails the transaction is rolled back. */
_must_use_ struct err *edits_end(struct edits *e);
/* Opens read-only by an SQLite name; null when it cannot be. */
sqlite3 *edits_open_read(const char *name, int flags);
const char *edits_schema(void);
extern const char edits_state_sql[];

/* Entries that one statement writes: most of what a row costs is the statement. */
#define EDITS_BATCH 32

/* One revision being written: the entries' numbers, then its row and the state's. */
struct edits_writer {
	struct edits *e;
	struct edits_state state;   /* before; .rev + 1 is the new one */
	uint64_t seq_first, seq_cnt;
	bool has_directive;
	struct edits_change waiting[EDITS_BATCH]; /* the newest entries, which are not in the table yet */
	unsigned waiting_cnt;
};
_must_use_ struct err *edits_writer_begin(struct edits_writer *w, struct edits *e);
/* The present value under a key: null `*ret` when there is none; `*ret_rev` is who touched it last, 0 nobody. */
_must_use_ struct err *edits_get_fact(struct edits *e, const struct edits_change *key, struct arena *a, const char **ret,
				      size_t *ret_len, uint64_t *ret_rev);
/* Sets the fact and writes its entry; `c->before` is the entry's before, `touched` what edits_get_fact() said. Its texts must stay until
 * edits_writer_end(). When a name is another address's nothing is written, and edits_is_taken() tells. */
_must_use_ struct err *edits_writer_add(struct edits_writer *w, const struct edits_change *c, uint64_t touched);
/* Whether the last statement failed because of the index of names. */
bool edits_is_taken(const struct edits *e);
struct edits_revision {
	enum edits_step_kind step;
	uint64_t target;
	const char *author, *note, *author_kind;
	uint64_t time_ns; /* 0: now */
};
const char *edits_author_kind_name(enum edits_author_kind k);
/* Sets or clears (0) who took the revision back. */
_must_use_ struct err *edits_set_undone_by(struct edits *e, uint64_t rev, uint64_t by);
_must_use_ struct err *edits_writer_end(struct edits_writer *w, const struct edits_revision *r);
const char *edits_login(struct arena *a);

/* edits_propose.c: why the proposal of `c`, whose `before` is what stands now, cannot be accepted; null `*ret_why`: it can. */
_must_use_ struct err *edits_proposal_check(struct edits *e, const struct edits_change *c, const char **ret_why);
/* It was accepted by revision `rev`, or refused (0). */
_must_use_ struct err *edits_proposal_mark(struct edits *e, uint64_t id, uint64_t rev);
struct map;
/* Takes over what can be read of a damaged file's proposals, in the open transaction of `to`; `revs` are the numbers that revisions have there.
 * Adds those that are lost. */
_must_use_ struct err *edits_salvage_proposals(struct edits *to, sqlite3 *from, const struct map *revs, uint64_t *ret_lost);

/* edits_view.c */
struct edits_row { enum edits_kind kind; uint32_t order; uint64_t va; const char *sub, *value; uint32_t value_len; uint64_t rev; };
/* Reads all facts of the connection's moment. */
_must_use_ struct err *edits_view_read(sqlite3 *db, const struct edits_state *s, uint64_t bias, struct edits_view **ret);
bool edits_read_state(sqlite3 *db, struct edits_state *ret);

static inline void edits_finalizep(sqlite3_stmt **st)
{
	sqlite3_finalize(*st);
}
#define _cleanup_stmt_ _cleanup_(edits_finalizep)

#endif
