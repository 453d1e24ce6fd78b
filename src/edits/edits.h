/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EDITS_EDITS_H
#define EDITS_EDITS_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The journal of a target, edits.db: what people and agents did, the only precious data there is. SQLite in WAL mode
 * with synchronous=EXTRA, a rollback journal where WAL cannot work; an edit is confirmed once its transaction is on disk
 * and not before. docs/store.md has the tables; their schema is in edits_db.c and nowhere else.
 *
 * Every fact a person can state is one value under a key (kind, va, sub). An edit sets it or takes it away; the journal
 * keeps what was before and what is after. Undo sets back what was before, as a revision of its own, so that nothing is
 * ever erased. One call of edits_commit() is one transaction, one revision, one undo step.
 *
 * Front ends never see this header: the session speaks for it.
 */
enum edits_kind {
	EDITS_NAME,        /* va: UTF-8 name; no two addresses have the same */
	EDITS_COMMENT,     /* va, sub: "line", "block", "repeatable", "func" */
	EDITS_TYPE,        /* va: C type of the data or variable */
	EDITS_PROTOTYPE,   /* va: C prototype of the function */
	EDITS_ITEM,        /* va: "code", "func", "data:TYPE", "string:ENC", "undef:LEN": a directive */
	EDITS_FORMAT,      /* va, sub: operand number: "hex" "dec" "oct" "bin" "char" "offset" "stack" "enum:NAME" */
	EDITS_BOOKMARK,    /* va: text */
	EDITS_PATCH,       /* va: hex digits of bytes that replace the target's in what is shown */
	EDITS_BOUNDS,      /* va of a function: "END" or ranges "A-B,C-D": a directive */
	EDITS_FLAGS,       /* va of a function: "noreturn", "library", "thunk:VA", ...: a directive */
	EDITS_TABLE,       /* va of a jump: "TABLE,COUNT,WIDTH,REL", a jump table stated by hand: a directive */
	EDITS_DECL,        /* sub: name of the type; value: its C declaration */
	EDITS_LOAD,        /* sub: "processor", "base", "format": a directive */
	EDITS_ANALYSIS,    /* a published image; author "scry"; no fact, skipped by undo */
	EDITS_KIND_COUNT
};

/* The kind's name in the file and in answers: "rename", "comment", ... A name once used in a file never changes. */
const char *edits_kind_name(enum edits_kind k);
/* False when there is no such kind. */
bool edits_kind_find(const char *name, enum edits_kind *ret);
/* False for what is stated about the file as a whole, under a name alone. */
bool edits_has_va(enum edits_kind k);
/* A directive asks for another analysis. */
bool edits_is_directive(enum edits_kind k);

enum edits_author_kind { EDITS_HUMAN, EDITS_AGENT, EDITS_SCRIPT };

enum edits_status { EDITS_APPLIED, EDITS_UNCHANGED, EDITS_REFUSED };

/* Longest value of any kind; longer ones are refused. */
#define EDITS_VALUE_MAX (1 << 20)
#define EDITS_SUB_MAX 1024

/* One wanted change. `value` null takes the fact away. Strings are the caller's. */
struct edits_change {
	enum edits_kind kind;
	uint64_t va;
	const char *sub;          /* "" when the kind has none */
	const char *value;
	size_t value_len;
	uint64_t proposal;        /* the proposal that this accepts, refused when it is stale; 0: none */
	bool is_giving_way;       /* it only makes room for another, and is not proposed for itself */
	/* Filled by edits_commit(): */
	enum edits_status status;
	const char *before;       /* null: there was none; in the arena, NUL-terminated */
	size_t before_len;
	const char *why;          /* of a refusal; in the arena */
};

struct edits_view;
struct edits_opts {
	bool is_atomic;           /* one refusal refuses all */
	bool is_dry_run;          /* says what would happen, changes nothing */
	int64_t if_rev;           /* -1: any; else refused with ERR_STALE when a touched fact is newer */
	const char *author;       /* null or "": the user's login name */
	enum edits_author_kind author_kind;
	const char *note;         /* may be null */
	/* Says why a change may not be made, or null; called inside the transaction, before anything is written for
	 * the change. May be null. */
	const char *(*refuse)(void *ctx, const struct edits_change *c, struct arena *a);
	void *ctx;
	/* May be null. Facts are looked up here in place of in the file when it is of the newest revision: for calls with many changes. */
	const struct edits_view *view;
};

/* A connection; one thread at a time. Any number of processes may have one. */
struct edits;

/* Opens the file, makes it (mode 0600) with its tables unless `is_read_only`. Errors: not_found (read-only and none
 * there), readonly, denied, io, bad_input (not a database, or a newer scry's). */
_must_use_ struct err *edits_open(const char *path, bool is_read_only, struct edits **ret);
void edits_close(struct edits *e);

/* Keys are addresses of the target as its file has them. Of one that is shown elsewhere, `bias` higher, everything that goes
 * in and comes out of the connection from here on is: changes, entries, views. 0 at first. */
void edits_set_bias(struct edits *e, uint64_t bias);

/* What the file says is the newest. */
struct edits_state {
	uint64_t rev;
	uint64_t edit_rev;        /* newest revision that is not an analysis; 0: nobody ever edited */
	uint64_t directive_rev;   /* newest edit that asks for another analysis; 0 none */
	uint32_t image_gen;       /* 0: no analysis published yet */
	uint64_t built_from_rev;  /* the revision whose directives that analysis has seen */
};
/* One read of one row. */
_must_use_ struct err *edits_get_state(struct edits *e, struct edits_state *ret);

/*
 * State and facts of one moment, for who only reads: opens, reads, closes. While nobody writes this takes no lock
 * and makes no shared memory. `*ret_view` is null when nobody ever edited (then only one row was read). Error
 * not_found when there is no file or nothing in it.
 */
_must_use_ struct err *edits_load(const char *path, struct edits_state *ret, struct edits_view **ret_view);

/* One transaction. `*ret_rev` is the new revision, or the present one when nothing changed. Errors, and then nothing
 * changed: stale, busy (another writer for more than 5 s), readonly, io (disk full). */
_must_use_ struct err *edits_commit(struct edits *e, struct edits_change *changes, size_t cnt, const struct edits_opts *opts,
				    struct arena *a, uint64_t *ret_rev);

/* --- proposals: edits that wait for somebody to accept them (edits_propose.c) --- */

enum edits_proposal_state { EDITS_OPEN, EDITS_ACCEPTED, EDITS_DECLINED };

struct edits_proposal {
	uint64_t id, call, time_ns;      /* those of one call have one number */
	uint64_t rev;                    /* of an accepted one: the revision that did it */
	enum edits_proposal_state state;
	bool is_stale;                   /* open, but what it changes is not what it was then */
	bool has_va;
	uint64_t va;
	enum edits_kind kind;
	const char *author, *author_kind, *note /* may be null */, *sub;
	const char *before, *after;      /* null: none */
	size_t before_len, after_len;
};

/* Writes down what a dry run of edits_commit() left as EDITS_APPLIED, in one transaction; sets their `proposal`. Errors as
 * edits_commit(), and budget when too many wait. */
_must_use_ struct err *edits_propose(struct edits *e, struct edits_change *changes, size_t cnt, const struct edits_opts *opts, struct arena *a);
/* Those that wait, and with has_decided all, oldest first; of one author, or one by its id, when said. *ret_total counts all of them. */
struct edits_proposals_ask { bool has_decided; const char *author; uint64_t id, offset; uint32_t limit; };
_must_use_ struct err *edits_proposals(struct edits *e, const struct edits_proposals_ask *ask, struct arena *a, struct edits_proposal **ret,
				       uint32_t *ret_cnt, uint64_t *ret_total);
/* Refuses these, one transaction; those that are decided already stay as they are. */
_must_use_ struct err *edits_decline(struct edits *e, const uint64_t *ids, size_t cnt);

/* What edits_undo() and edits_redo() did: revision `rev` took back revision `target`, which had `cnt` changes. */
struct edits_step {
	uint64_t rev, target;
	uint64_t cnt;
	const char *author, *note; /* of the target's edit; in the arena */
};
struct edits_steps { struct edits_step *list; uint32_t cnt; };

/*
 * Takes back the newest `steps` edits that stand (of `author` only, when not null), newest first, each as a
 * transaction and a revision of its own. A step whose facts somebody changed since is refused and ends the run: error
 * stale, which names the address; steps done before it stay done and are in `*ret`. Fewer than `steps` when there is
 * nothing more to take back.
 */
_must_use_ struct err *edits_undo(struct edits *e, unsigned steps, const char *author, const struct edits_opts *opts,
				  struct arena *a, struct edits_steps *ret);
/* Takes back that one edit, which need not be the newest. Errors: not_found (no edit, or taken back already), stale. */
_must_use_ struct err *edits_undo_rev(struct edits *e, uint64_t rev, const struct edits_opts *opts, struct arena *a,
				      struct edits_steps *ret);
/* Takes back undos that are newer than the newest edit (of `author`'s edits only, when not null), in the same way. */
_must_use_ struct err *edits_redo(struct edits *e, unsigned steps, const char *author, const struct edits_opts *opts,
				  struct arena *a, struct edits_steps *ret);

struct edits_entry {
	uint64_t seq, rev, time_ns;
	uint64_t undone_by;                     /* the undo that took its revision back; 0: stands */
	uint64_t undoes;                        /* of an undo or redo: the revision it took back; else 0 */
	const char *author, *author_kind, *sub, *note;
	enum edits_kind kind;
	const char *step;                       /* "edit", "undo", "redo", "analysis" */
	bool has_va;
	uint64_t va;
	const char *before, *after;             /* null: none */
	size_t before_len, after_len;
	uint64_t cnt;                           /* entries it stands for: 1 in the journal, more in edits_changes() */
};
/* Entries are numbered from 1 without gaps: those from `first_seq` on, of revisions after `since`, oldest first, at
 * most `limit`. `*ret_total` is how many entries revisions after `since` have. Cost is by the page. */
struct edits_journal_ask { uint64_t since, first_seq; uint32_t limit; };
_must_use_ struct err *edits_journal(struct edits *e, const struct edits_journal_ask *ask, struct arena *a,
				     struct edits_entry **ret, uint32_t *ret_cnt, uint64_t *ret_total);

/*
 * What is another at revision `until` (or now, if that is not there yet) than it was at `since`: an entry a key, its `before` from then,
 * its `after` of `until`, the rest that of the newest entry, in whose order they come. What was changed and changed back is left out.
 * Those from number `offset` on, at most `limit`; `*ret_total` counts all. Cost: O(m log m) for m entries since.
 */
struct edits_changes_ask { uint64_t since, until, offset; uint32_t limit; };
_must_use_ struct err *edits_changes(struct edits *e, const struct edits_changes_ask *ask, struct arena *a, struct edits_entry **ret,
				     uint32_t *ret_cnt, uint64_t *ret_total);

/*
 * Every fact that stands, and the edit that stated it: undo and redo are nobody's statements, what they brought back is
 * its author's. Sorted by (va, kind, sub); of `entry` seq, rev, time_ns, author, author_kind, note, kind, va, sub and after are
 * set. `*ret_rev` is the revision of it all. Error bad_input when a fact has no edit: the file is damaged. One pass over the journal.
 */
_must_use_ struct err *edits_stated(struct edits *e, struct arena *a, struct edits_entry **ret, size_t *ret_cnt, uint64_t *ret_rev);

/*
 * Publishing an analysis is a revision too. edits_publish_begin() takes the write lock and says the generation and
 * the revision the new image will have; the caller writes the image file; edits_publish_end() commits, or gives the
 * lock back when `is_done` is false.
 */
_must_use_ struct err *edits_publish_begin(struct edits *e, struct edits_state *ret);
_must_use_ struct err *edits_publish_end(struct edits *e, const struct edits_state *s, const char *target_path, bool is_done);

/* --- facts in memory ---------------------------------------------------------------------------------------- */

/*
 * All facts that stand at one revision: what readers use. Immutable, reference-counted, any thread. A newer one is
 * made from an older by the journal's difference and shares with it what did not change.
 */
_must_use_ struct err *edits_view_get(struct edits *e, struct edits_view *older, struct edits_view **ret);
/* The same facts, for a target that is shown `bias` above its file's addresses. */
_must_use_ struct err *edits_view_at(const struct edits_view *v, uint64_t bias, struct edits_view **ret);
struct edits_view *edits_view_ref(struct edits_view *v);
/* Null is accepted. */
void edits_view_unref(struct edits_view *v);
/* The state it was taken with. */
const struct edits_state *edits_view_state(const struct edits_view *v);
/* Newest revision that touched a fact with va in [first, last], also by taking it away; 0 none. O(log n + hits). */
uint64_t edits_view_touched(const struct edits_view *v, uint64_t first_va, uint64_t last_va);

/* Newest revision that touched a fact of one of these kinds (bit k: kind k), also by taking it away; 0 none. */
uint64_t edits_view_newest(const struct edits_view *v, uint32_t kinds);
#define EDITS_KINDS_ALL ((1u << EDITS_KIND_COUNT) - 1)

struct edits_fact {
	uint64_t va;
	const char *sub;    /* never null */
	const char *value;  /* NUL-terminated */
	uint32_t value_len;
	uint64_t rev;       /* that set it */
};
/* The value under a key, or null. O(log n). Null views have no facts. */
const struct edits_fact *edits_find(const struct edits_view *v, enum edits_kind kind, uint64_t va, const char *sub);
/* Facts of a kind with va in [first, last], sorted by (va, sub); valid while the view is. O(log n). */
const struct edits_fact *edits_range(const struct edits_view *v, enum edits_kind kind, uint64_t first_va, uint64_t last_va,
				     size_t *ret_cnt);
/* The address that has this name by an edit; false when none. O(log n). */
bool edits_name_find(const struct edits_view *v, const char *name, size_t len, uint64_t *ret_va);

/* --- when the disk lies -------------------------------------------------------------------------------------- */

struct buf;
/* Verifies the file's own structure and that the tables follow from the journal; each fault is one line in `ret`,
 * which stays empty when all is well. */
_must_use_ struct err *edits_check(struct edits *e, struct buf *ret);
/* Writes what can be read of a damaged file into a new one at `to_path`, which must not exist: the journal's entries in
 * order, numbered anew, the facts that follow from them, facts whose entries are lost, and proposals under their old numbers. Published
 * analyses are left out; they can be made again. The source is only read. `*ret_lost` counts the entries and proposals that could not be
 * read. */
_must_use_ struct err *edits_salvage(const char *from_path, const char *to_path, uint64_t *ret_entries, uint64_t *ret_lost);

#endif
