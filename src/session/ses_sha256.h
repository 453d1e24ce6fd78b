/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_SHA256_H
#define SESSION_SES_SHA256_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SHA-256 of `len` bytes through libcrypto, which is loaded by the first call. `done` (may be null) is set to the number
 * of bytes hashed so far, `cancel` (may be null) is looked at every 4 MiB. Errors: env, cancelled. Thread-safe. */
_must_use_ struct err *ses_sha256(const uint8_t *bytes, size_t len, const atomic_bool *cancel,
				  void (*progress)(void *ctx, uint64_t done), void *ctx, uint8_t ret[32]);

#endif
