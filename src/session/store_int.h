/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_STORE_INT_H
#define SESSION_STORE_INT_H

#include "session/store.h"

#include <sys/types.h>

/* Shared by store.c (folders) and store_db.c (databases). */
struct store {
	char *root;
	uid_t uid; /* whose store it is */
	gid_t gid;
};

/* The calling thread acts on files as the store's owner between these two. */
struct store_as {
	uid_t uid;
	gid_t gid;
	bool is_switched;
};
struct store_as store_as_user(const struct store *st);
void store_as_back(struct store_as *was);

#define _cleanup_as_ _cleanup_(store_as_back)

/* Path of `name` in the target's folder. Owned; null without memory. */
char *store_target_path(const struct store *st, const uint8_t sha256[32], const char *name);
_must_use_ struct err *store_make_root(const struct store *st);
_must_use_ struct err *store_make_target(const struct store *st, const uint8_t sha256[32]);

/* The target's journal; for writing it is made when there is none. SQLite makes files of its own beside it, so the caller
 * acts as the store's owner from here until it is closed. */
_must_use_ struct err *store_open_edits(const struct store *st, const uint8_t sha256[32], bool is_read_only, struct edits **ret);

/* Removes the generations older than `keep_gen` and what dead writers left; newer ones are another writer's. */
void store_unlink_old(const struct store *st, const uint8_t sha256[32], uint32_t keep_gen);
void store_touch_stamp(const struct store *st, const uint8_t sha256[32]);

#endif
