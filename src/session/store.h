/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_STORE_H
#define SESSION_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "edits/edits.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The store on disk (docs/store.md): a folder per target, named by the SHA-256 of its bytes, with its images and its
 * journal; global.db with the stat cache. SQLite is seen only behind this header and edits.h.
 *
 * Every function may be called from any thread and any number of processes at once. Under sudo the store and its
 * files are the invoking user's.
 */
struct store;

/* Finds the place ($SCRY_STORE, $XDG_DATA_HOME/scry, ~/.local/share/scry) and checks that what is there is a folder
 * of this user's with no access for others. Makes nothing. Errors: io, denied, env (no home). */
_must_use_ struct err *store_open(struct store **ret);
void store_close(struct store *st);
const char *store_root(const struct store *st);

/* The place as text even where it cannot be used; owned, null when there is no home. */
char *store_default_root(void);

/* The hash of a file by the stat cache: device, inode, length, mtime and ctime must be the same, and the file must
 * have been quiet for two seconds when it was hashed. One query. */
bool store_find_sha256(struct store *st, const struct file *f, uint8_t ret_sha256[32]);

/* Remembers it; a file changed less than two seconds ago is not remembered. Errors: io, readonly. */
_must_use_ struct err *store_put_sha256(struct store *st, const struct file *f, const uint8_t sha256[32]);

/* What is the newest, and the facts people stated: null when nobody did. Error not_found when the target is new. */
_must_use_ struct err *store_get_state(struct store *st, const uint8_t sha256[32], struct edits_state *ret,
				       struct edits_view **ret_edits);

/* The same whether or not there is an image: what one is to be built from. Error not_found when nobody stated anything. */
_must_use_ struct err *store_get_base(struct store *st, const uint8_t sha256[32], struct edits_state *ret,
				      struct edits_view **ret_edits);

/* Path of a generation of the target's image. Owned; null without memory. */
char *store_image_path(const struct store *st, const uint8_t sha256[32], uint32_t gen);

/*
 * Publishes an analysis: image.<gen> written beside and renamed, then one transaction with the journal row (op
 * "analysis", author "scry"); older generations are unlinked. `base` is the state it was built from. Two processes that publish at
 * once do so one after the other, and the second keeps what the first published unless directives ask for more: one analysis, one revision.
 */
_must_use_ struct err *store_publish(struct store *st, const uint8_t sha256[32], const char *target_path, const struct buf *image,
				     const struct edits_state *base);

/* Tries the store as a user would: folder, database, journal mode. For doctor; null when all is well. `ret_mode` is
 * SQLite's journal mode. */
_must_use_ struct err *store_try(struct store *st, char ret_mode[16]);

/* When something was last committed for that target: mtime of its rev.stamp, 0 when there is none. One stat. */
int64_t store_stamp_ns(const struct store *st, const uint8_t sha256[32]);
/* Whether something was ever kept of that target. One stat. */
bool store_has_target(const struct store *st, const uint8_t sha256[32]);
/* Where the target was when it was last analysed. Owned; null when that is not known. */
char *store_seen_path(const struct store *st, const uint8_t sha256[32]);

/* The index of a project, projects/ID.db. Owned; null without memory. */
char *store_project_path(const struct store *st, const char *id);
_must_use_ struct err *store_make_projects(const struct store *st);

/* An image of recompiled functions that was built here, by the hash of its bytes, and the target it belongs to. `*ret_path`, where
 * the target was, is owned. False: none such. Errors of putting: readonly, io. */
_must_use_ struct err *store_put_native(struct store *st, const uint8_t sha256[32], const uint8_t target[32], const char *target_path);
bool store_find_native(struct store *st, const uint8_t sha256[32], uint8_t ret_target[32], char **ret_path);

/* --- what can be computed again ------------------------------------------------------------------------------------- */
/* A row of cache.db: one for each kind and address. */
struct store_cached {
	uint64_t addr;
	uint8_t key[32]; /* hash of all that the value was computed from */
	void *value;     /* 1 to 65536 bytes */
	uint32_t len;
};

/* Rows by address, in an arena. */
struct store_cached_list {
	struct store_cached *rows;
	uint32_t cnt;
};

/* Rows of `kind` at the addresses `from` to `to`, both below 2^63; none where there are none or they cannot be read. What a value says is
 * the reader's to check. */
struct store_cached_list store_cache_load(struct store *st, const uint8_t sha256[32], const char *kind, uint64_t from, uint64_t to,
					  struct arena *a);
/* Replaces rows. A file that is damaged or of another make is thrown away first. False: nothing was kept (read-only, full, busy). */
bool store_cache_put(struct store *st, const uint8_t sha256[32], const char *kind, const struct store_cached *rows, uint32_t cnt);
/* A number that is another after each change of what is kept; 0: nothing is. */
uint64_t store_cache_stamp(struct store *st, const uint8_t sha256[32]);
enum store_cache_state { STORE_CACHE_NONE, STORE_CACHE_FINE, STORE_CACHE_DAMAGED };
/* Reads it whole: rows and bytes of the file. */
enum store_cache_state store_cache_check(struct store *st, const uint8_t sha256[32], uint64_t *ret_cnt, uint64_t *ret_bytes);

/* --- consent ---------------------------------------------------------------------------------------------------------- */
/* Whether this user agreed to run the target with these bytes; and that they do now. Errors readonly, io. */
bool store_has_consent(struct store *st, const uint8_t sha256[32]);
_must_use_ struct err *store_put_consent(struct store *st, const uint8_t sha256[32]);

/* The 64 digits of a hash, NUL-terminated. */
void store_hex(const uint8_t sha256[32], char ret[65]);
/* Bytes from twice as many digits in lower case; false when others are among them. `ret` may be null. */
bool store_unhex(const char *digits, size_t cnt, uint8_t *ret);

#endif
