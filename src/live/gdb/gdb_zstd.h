/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_GDB_GDB_ZSTD_H
#define LIVE_GDB_GDB_ZSTD_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/* Single zstd frames (RFC 8878) through libzstd, which is loaded by the first call. What is decompressed may be hostile. */

/* Whether libzstd can be loaded: error env. */
_must_use_ struct err *gdb_zstd_try(void);

/* Appends a frame of the bytes if it is smaller than they are; false when it is not, or there is no libzstd. */
bool gdb_zstd_put(struct buf *out, const void *bytes, size_t len);

/* Decompresses a frame that must give exactly `len` bytes to `dst`. */
bool gdb_zstd_read(const void *frame, size_t frame_len, uint8_t *dst, size_t len);

#endif
