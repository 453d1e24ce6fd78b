/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_INDEX_INT_H
#define SESSION_SES_INDEX_INT_H

#include "base/buf.h"
#include "session/ses_index.h"
#include "session/store_int.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>

/* Shared by ses_index.c (the file, writing) and ses_index_find.c (reading). */

enum ses_index_stmt { INDEX_ADD_NAME, INDEX_ADD_STRING, INDEX_ADD_ENTRY, INDEX_ADD_GRAM, INDEX_FIND_NAME, INDEX_FIND_STRING, INDEX_GET_ENTRY,
		      INDEX_WALK, INDEX_LINK, INDEX_GET_GRAM, INDEX_GET_SLOT, INDEX_GET_PATH, INDEX_STMT_COUNT };

struct index_slot { uint32_t id; uint8_t sha256[32]; uint64_t cnt[2]; /* names, strings */ };

struct ses_index {
	char *path;
	const struct store *store; /* null: in memory */
	pthread_mutex_t reader_lock;
	struct ses_index *reader;  /* a connection of its own for finding, so that nobody waits for who writes; null: not yet */
	pthread_mutex_t lock;      /* for all that follows */
	sqlite3 *db;
	sqlite3_stmt *stmts[INDEX_STMT_COUNT];
	struct index_slot *slots;  /* live ones, by number, as of the last ses_index_load_slots() */
	size_t slot_cnt;
	bool is_writing;           /* a writer's transaction is open */
};

/* One byte, or two: where texts of one and two letters are looked up. Of each the first places are kept. */
#define INDEX_GRAM_COUNT (256 + 65536)
#define INDEX_GRAM_MAX 256u
struct index_gram { uint32_t *ids; uint32_t cnt, cap, last; };
struct index_grams { struct index_gram list[INDEX_GRAM_COUNT]; bool failed; };

static inline uint32_t index_fold(uint8_t ch)
{
	return ch >= 'A' && ch <= 'Z' ? ch + 32u : ch;
}

static inline uint32_t index_gram_of(uint32_t first, uint32_t second)
{
	return 256 + first * 256 + second;
}

static inline uint64_t index_id(uint32_t slot, int is_string, uint32_t n)
{
	return (uint64_t)slot << 33 | (uint64_t)is_string << 32 | n;
}

/* The lock, and the store's owner's rights, for a scope. */
struct index_held { struct ses_index *ix; struct store_as as; };
struct index_held ses_index_hold(struct ses_index *ix);
void ses_index_let(struct index_held *h);
#define _cleanup_held_ _cleanup_(ses_index_let)

/* The index to find in: its reader, made on first use, or itself where there can be none. */
struct ses_index *ses_index_reader(struct ses_index *ix);

/* With the lock held: */
_must_use_ struct err *ses_index_error(const struct ses_index *ix);
sqlite3_stmt *ses_index_stmt(struct ses_index *ix, enum ses_index_stmt which);
_must_use_ struct err *ses_index_load_slots(struct ses_index *ix);

#endif
