/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_INDEX_H
#define SESSION_SES_INDEX_H

#include "base/arena.h"
#include "session/project.h"
#include "session/store.h"

/*
 * projects/ID.db (docs/store.md): one index over the names, strings, imports and exports of all binaries of a project, and
 * where a person was in each. SQLite's FTS5 with trigrams finds text of three letters and more, lists of first places
 * find shorter ones. All of it can be made again.
 *
 * What is known of one binary is a slot: rows under a number of its own that is never used again. A newer state of the
 * binary is another slot, appended in bulk; the old one is dead and skipped, and swept out once much is dead.
 *
 * Any thread. What writes holds one connection, between batches not even that; what is found is read by another.
 */
struct ses_index;

/* Opens or makes the project's file; in memory when `st` is null. Errors: io, readonly, denied, busy. A damaged file or one of
 * another version is made anew. */
_must_use_ struct err *ses_index_open(const struct store *st, const char *id, struct ses_index **ret);
void ses_index_close(struct ses_index *ix);

/* The two halves of what a binary has: what its analysis says, and the names people gave. */
enum ses_index_part { SES_INDEX_IMAGE, SES_INDEX_EDITS, SES_INDEX_PART_COUNT };

struct ses_index_state {
	uint32_t gen;      /* of the image */
	uint64_t rev;      /* newest edit the slot has seen */
	int64_t stamp_ns;  /* mtime of the target's rev.stamp before it was read */
};

/* What the live slot of that binary has seen; false when there is none. */
bool ses_index_get(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part, struct ses_index_state *ret);
/* The same slot was found to hold for a later stamp. */
_must_use_ struct err *ses_index_touch(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part, int64_t stamp_ns);

struct ses_index_row {
	enum ses_find_kind kind;
	uint64_t va;
	struct ses_text text, readable /* demangled, "" */, version, library; /* the last two of imports and exports */
};

/* Writing a slot: begin, rows, end. One transaction: a crash or `is_done` false leaves what was. */
struct ses_index_writer;
_must_use_ struct err *ses_index_begin(struct ses_index *ix, const uint8_t sha256[32], enum ses_index_part part,
				       struct ses_index_writer **ret);
_must_use_ struct err *ses_index_add(struct ses_index_writer *w, const struct ses_index_row *row);
/* Frees the writer. */
_must_use_ struct err *ses_index_end(struct ses_index_writer *w, const struct ses_index_state *state, bool is_done);

/* Slots of other targets than these are dead from now on; sweeps when much is. */
_must_use_ struct err *ses_index_keep(struct ses_index *ix, const uint8_t (*sha256s)[32], size_t cnt);

struct ses_index_hit { uint8_t sha256[32]; struct ses_index_row row; uint64_t id; };

/* Rows in the order of their ids that match; texts are in the arena. */
_must_use_ struct err *ses_index_find(struct ses_index *ix, const struct ses_call *call, struct ses_find_ask *ask, struct arena *a,
				      struct ses_index_hit **ret);
/* All imports, or exports, of exactly this name. */
_must_use_ struct err *ses_index_link(struct ses_index *ix, enum ses_find_kind kind, struct ses_text name, struct arena *a,
				      struct ses_index_hit **ret, uint32_t *ret_cnt);
/* Live rows of names and strings. */
uint64_t ses_index_row_cnt(struct ses_index *ix, uint32_t kinds);

/* What was known of a path when it was last opened. */
struct ses_index_path {
	uint8_t sha256[32], was_sha256[32];
	bool has_was;              /* its bytes changed under us; the work on those before is under was_sha256 */
	uint64_t dev, ino, len;
	int64_t mtime_ns, ctime_ns;
	bool has_place;
	struct ses_place place;
};
bool ses_index_get_path(struct ses_index *ix, const char *path, struct ses_index_path *ret);
_must_use_ struct err *ses_index_put_path(struct ses_index *ix, const char *path, const struct ses_index_path *p);

/* A short text under a key. Owned; null when there is none. */
char *ses_index_get_note(struct ses_index *ix, const char *key);
_must_use_ struct err *ses_index_put_note(struct ses_index *ix, const char *key, const char *value);

#endif
