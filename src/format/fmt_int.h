/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FORMAT_FMT_INT_H
#define FORMAT_FMT_INT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* What kind of file this is by its first bytes, for a message: "a PE program (Windows)". Never
 * null. */
const char *fmt_looks_like(const uint8_t *bytes, uint64_t len);

enum fmt_packing { FMT_PACK_ZLIB, FMT_PACK_ZSTD };

/* Unpacks exactly `out_len` bytes into `out`. Errors: bad_input (broken, or another length), env
 * (library missing). Thread-safe. */
_must_use_ struct err *fmt_unpack(enum fmt_packing packing, const uint8_t *in, size_t in_len,
				  uint8_t *out, size_t out_len);

#endif
