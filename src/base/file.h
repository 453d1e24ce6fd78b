/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/err.h"
#include "base/guard.h"
#include "base/holes.h"

#include <stdint.h>
#include <sys/stat.h>

/*
 * A file mapped read-only and guarded (base/guard.h), with what identified it at open. Many threads
 * may read the bytes.
 */
struct file {
	char *path;          /* as given */
	int fd;
	const uint8_t *data; /* null when len is 0 */
	size_t len;          /* bytes */
	uint64_t dev, ino;
	int64_t mtime_ns, ctime_ns;
	uint32_t mode, uid;
	struct guard_view *view;
	struct holes *holes; /* null: all of it was there when it was opened */
	atomic_bool is_settled; /* of one with holes: file_settle() was called */
};

/* Opens and maps a regular file. Errors: bad_input for what is missing, a folder, a device or not
 * readable as a file; denied (exit 4 by the caller's choice) without permission. `ret` is to be
 * released with file_close(). An empty file is opened with len 0. */
_must_use_ struct err *file_open(const char *path, struct file **ret);

/* Maps what is still being written to `fd` (which stays the caller's) in blocks of `block_len` bytes, `len` in all; see base/holes.h.
 * `path`: what it is called. Errors: as holes_new(). */
_must_use_ struct err *file_open_holes(int fd, const char *path, uint64_t len, uint32_t block_len, struct file **ret);
/* All of it is there under its final name: what identifies it is noted now. Error io. */
_must_use_ struct err *file_settle(struct file *f);

/* Null is accepted. */
void file_close(struct file *f);

/* Whether the file on disk is no longer what was mapped: size, mtime or ctime moved, or a page was
 * missing, or never came. One fstat. */
bool file_has_changed(const struct file *f);

/* Writes `len` bytes to `path` so that a crash at any moment leaves the old file or the new one:
 * temporary file beside it, fsync, rename, fsync of the folder. Mode 0600. */
_must_use_ struct err *file_write_atomic(const char *path, const void *bytes, size_t len);

/* Makes `path` and its missing parents as 0700 folders. An existing last folder must belong to this uid. */
_must_use_ struct err *file_make_dirs(const char *path);

#endif
