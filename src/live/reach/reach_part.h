/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_PART_H
#define LIVE_REACH_REACH_PART_H

#include "base/sha256.h"
#include "live/reach/reach_elf.h"

/*
 * A file on its way here: the bytes under a temporary name, all of its room taken in advance, and beside it a map that says which blocks
 * have come. A block counts once its checksum stands in the map, and counts again after a crash only when the bytes still have it, so that
 * neither kill -9 nor a lost link nor a power cut makes a byte wrong; they cost the blocks under way.
 */
#define REACH_BLOCK_LEN (256u << 10)

struct reach_part;

/* Which file it is the beginning of: whatever names the file there and this version of it, hashed. */
#define REACH_IDENTITY_LEN 32

/*
 * Opens `path`, and `path` with ".map" after it, making them anew unless they hold the beginning of the same file: same identity and
 * length. What is not the same is unlinked, not emptied: somebody may have it mapped. The caller has the exclusive right to the name.
 * Errors: io, no room ("ENOSPC"), denied, readonly.
 */
_must_use_ struct err *reach_part_open(const char *path, const uint8_t identity[REACH_IDENTITY_LEN], uint64_t len, struct reach_part **ret);
/* Closes; the files stay, for the next time. */
void reach_part_close(struct reach_part *p);
/* Removes the files and closes. */
void reach_part_drop(struct reach_part *p);

uint64_t reach_part_len(const struct reach_part *p);
/* Bytes that are there, from before and now. */
uint64_t reach_part_done_len(const struct reach_part *p);
/* Whether a range is there. */
bool reach_part_has(const struct reach_part *p, uint64_t off, uint64_t len);

/* Bytes that came: no byte comes twice, none beyond the length. Errors io. */
_must_use_ struct err *reach_part_write(struct reach_part *p, uint64_t off, const void *bytes, size_t len);

/* Reads what is there: reach_read_fn with the part as context. */
size_t reach_part_read(void *part, uint64_t off, uint8_t *dst, size_t len);

/* The file itself, the part's. */
int reach_part_fd(const struct reach_part *p);
/* Calls `came` for each block that is whole: at once for those that are there, later for each as it comes. */
void reach_part_watch(struct reach_part *p, void (*came)(void *ctx, size_t block), void *ctx);

/* Which hash of the whole is wanted beside SHA-256. Before the first write. */
void reach_part_want(struct reach_part *p, enum reach_hash hash);

/* When all is there: its hashes. Errors io. */
_must_use_ struct err *reach_part_finish(struct reach_part *p, uint8_t ret_sha256[SHA256_LEN], uint8_t ret_hash[16]);

/* After it was finished: gives the file its final name, on the same file system, replacing what is there, and forgets the map. Error io. */
_must_use_ struct err *reach_part_publish(struct reach_part *p, const char *path, uint32_t mode);

#endif
