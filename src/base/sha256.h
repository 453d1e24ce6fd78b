/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32

/* SHA-256 through libcrypto, which is loaded by the first call: sha256_new(), any number of sha256_add(), sha256_end(). */
struct sha256;

/* Whether libcrypto can be loaded; for doctor. */
_must_use_ struct err *sha256_try(void);

/* Errors env, no memory. Released by sha256_free(), which takes null. */
_must_use_ struct err *sha256_new(struct sha256 **ret);
void sha256_free(struct sha256 *s);

void sha256_add(struct sha256 *s, const void *bytes, size_t len);
/* The hash of what was added. Error internal when libcrypto refused. Nothing can be added after it. */
_must_use_ struct err *sha256_end(struct sha256 *s, uint8_t ret[SHA256_LEN]);

#endif
