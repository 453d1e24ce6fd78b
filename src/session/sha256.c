/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's EVP, through pointers: the library costs as much to load as a page costs to print, and a target that
 * is in the stat cache does not need it. */
#include "session/sha256.h"

#include "base/dl.h"

#include <pthread.h>

#define SHA_CHUNK ((size_t)4 << 20)

static void *(*sha_ctx_new)(void);
static void (*sha_ctx_free)(void *ctx);
static const void *(*sha_md)(void);
static int (*sha_init)(void *ctx, const void *type, void *engine);
static int (*sha_update)(void *ctx, const void *bytes, size_t len);
static int (*sha_final)(void *ctx, unsigned char *out, unsigned *out_len);

static pthread_mutex_t sha_lock = PTHREAD_MUTEX_INITIALIZER;
static bool sha_is_loaded;

struct err *ses_sha256_try(void)
{
	static const struct dl_sym syms[] = {
		{"EVP_MD_CTX_new", (void **)&sha_ctx_new},    {"EVP_MD_CTX_free", (void **)&sha_ctx_free},
		{"EVP_sha256", (void **)&sha_md},             {"EVP_DigestInit_ex", (void **)&sha_init},
		{"EVP_DigestUpdate", (void **)&sha_update},   {"EVP_DigestFinal_ex", (void **)&sha_final},
	};
	pthread_mutex_lock(&sha_lock);
	struct err *e = NULL;
	if (!sha_is_loaded)
		e = dl_load("libcrypto.so.3", "telling files apart (SHA-256)", "libssl3", syms, ARRAY_LEN(syms));
	sha_is_loaded = sha_is_loaded || !e;
	pthread_mutex_unlock(&sha_lock);
	return e;
}

struct err *ses_sha256(const uint8_t *bytes, size_t len, const atomic_bool *cancel,
		       void (*progress)(void *ctx, uint64_t done), void *ctx, uint8_t ret[32])
{
	struct err *e = ses_sha256_try();
	if (e)
		return e;
	void *c = sha_ctx_new();
	if (!c)
		return &err_nomem;
	bool ok = sha_init(c, sha_md(), NULL) == 1;
	for (size_t done = 0; ok && !e && done < len;) {
		size_t n = MIN(len - done, SHA_CHUNK);
		ok = sha_update(c, bytes + done, n) == 1;
		done += n;
		if (progress)
			progress(ctx, done);
		if (cancel && atomic_load(cancel))
			e = err_new(ERR_CANCELLED, "cancelled while hashing");
	}
	ok = ok && sha_final(c, ret, NULL) == 1;
	sha_ctx_free(c);
	if (!e && !ok)
		e = err_new(ERR_INTERNAL, "libcrypto refuses to compute SHA-256");
	return e;
}
