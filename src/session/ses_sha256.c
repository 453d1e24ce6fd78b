/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_sha256.h"

#include "base/sha256.h"

#define SHA_CHUNK ((size_t)4 << 20)

struct err *ses_sha256(const uint8_t *bytes, size_t len, const atomic_bool *cancel,
		       void (*progress)(void *ctx, uint64_t done), void *ctx, uint8_t ret[32])
{
	struct sha256 *s = NULL;
	struct err *e = sha256_new(&s);
	if (e)
		return e;
	for (size_t done = 0; !e && done < len;) {
		size_t n = MIN(len - done, SHA_CHUNK);
		sha256_add(s, bytes + done, n);
		done += n;
		if (progress)
			progress(ctx, done);
		if (cancel && atomic_load(cancel))
			e = err_new(ERR_CANCELLED, "cancelled while hashing");
	}
	if (!e)
		e = sha256_end(s, ret);
	sha256_free(s);
	return e;
}
