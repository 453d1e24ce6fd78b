/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_CACHE_H
#define LIVE_REACH_REACH_CACHE_H

#include "live/reach/reach_fetch.h"

/*
 * Files of other machines, kept. Blobs are named by the SHA-256 of their bytes; entries say which blob a server's file is: by (server,
 * build-id, length), and by (server, path, length, mtime). A server is believed about its own files only: another server's blob is used for
 * it when the server gives that very SHA-256, never because a build-id is the same. Nothing a server says is a path here.
 *
 *   blobs/SHA256        bytes, complete and checked
 *   keys/HASH           entries (reach_entry_read()); the mtime is the last use
 *   partial/HASH[.map]  files on their way (reach_part.h)
 *   locks/keys          a byte for each file, held (fcntl) by whoever fetches that file; gone with its process
 *
 * Any number of processes at once.
 */
struct reach_cache;

#define REACH_CACHE_LIMIT_LEN (20ull << 30) /* default, bytes of blobs */

/* Makes the folders below `root`. Errors: io, denied, readonly. */
_must_use_ struct err *reach_cache_open(const char *root, uint64_t limit_len, struct reach_cache **ret);
void reach_cache_close(struct reach_cache *c);

/* An entry. */
struct reach_entry {
	uint8_t sha256[SHA256_LEN];
	uint64_t len;
	/* The blob as it was when its hash was last known to be its name's. */
	uint64_t ino;
	int64_t mtime_ns, ctime_ns;
	char boot[37]; /* and since which start of the machine: nothing is synced, so after a power cut bytes may be missing */
	/* For people: which server, which path there, which build-id in hex ("" none). */
	char peer[512], path[GDB_MAX_PATH_LEN], id[2 * REACH_MAX_ID_LEN + 1];
};

/* Text of an entry; false for anything that reach_entry_put() would not have written. */
bool reach_entry_read(const char *text, size_t len, struct reach_entry *ret);
void reach_entry_put(struct buf *out, const struct reach_entry *e);

/* A sink that fetches into the cache what `peer` (the text before the path of a URL) has; the path of each blob, owned, goes to the job's
 * ctx, a `char **`. Uses `c` until the fetch is over. */
struct reach_cache_sink {
	struct reach_sink sink;
	struct reach_cache *cache;
	const char *peer;
	void *own;
};
_must_use_ struct err *reach_cache_sink_init(struct reach_cache_sink *s, struct reach_cache *c, const char *peer);
void reach_cache_sink_fini(struct reach_cache_sink *s);

/* Files that were not there a moment ago, so that a search for libraries need not ask again: true when `peer` said so less than a minute
 * ago. */
bool reach_cache_is_missing(struct reach_cache *c, const char *peer, const char *path);
void reach_cache_put_missing(struct reach_cache *c, const char *peer, const char *path);

struct reach_cache_row {
	struct reach_entry entry;
	int64_t used_s;	 /* CLOCK_REALTIME */
	bool is_damaged; /* after verify: its bytes were not what its name says; the blob is gone */
};
/* Each blob once, last used first; rows are owned. `verify` reads all of them. Errors io. */
_must_use_ struct err *reach_cache_list(struct reach_cache *c, bool verify, struct reach_cache_row **ret, size_t *ret_cnt);

/* Removes what was used longest ago until blobs have at most `limit_len` bytes (UINT64_MAX: the cache's own limit), what nobody refers to,
 * and what was left half fetched more than a week ago (all of it when the limit is 0). Gives the bytes freed. */
_must_use_ struct err *reach_cache_prune(struct reach_cache *c, uint64_t limit_len, uint64_t *ret_freed_len);

#endif
