/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's EVP, through pointers: the library costs as much to load as a page costs to print, and a target that
 * is in the stat cache does not need it. */
#include "base/sha256.h"

#include "base/dl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static void *(*sha_ctx_new)(void);
static void (*sha_ctx_free)(void *ctx);
static const void *(*sha_md)(void);
static int (*sha_init)(void *ctx, const void *type, void *engine);
static int (*sha_update)(void *ctx, const void *bytes, size_t len);
static int (*sha_final)(void *ctx, unsigned char *out, unsigned *out_len);

static pthread_mutex_t sha_lock = PTHREAD_MUTEX_INITIALIZER;
static bool sha_is_loaded;

struct sha256 {
	void *ctx;
	bool is_good;
};

struct err *sha256_try(void)
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

struct err *sha256_new(struct sha256 **ret)
{
	struct err *e = sha256_try();
	if (e)
		return e;
	struct sha256 *s = calloc(1, sizeof(*s));
	if (s)
		s->ctx = sha_ctx_new();
	if (!s || !s->ctx) {
		free(s);
		return &err_nomem;
	}
	s->is_good = sha_init(s->ctx, sha_md(), NULL) == 1;
	*ret = s;
	return NULL;
}

void sha256_free(struct sha256 *s)
{
	if (s)
		sha_ctx_free(s->ctx);
	free(s);
}

void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
	s->is_good = s->is_good && sha_update(s->ctx, bytes, len) == 1;
}

struct err *sha256_end(struct sha256 *s, uint8_t ret[SHA256_LEN])
{
	s->is_good = s->is_good && sha_final(s->ctx, ret, NULL) == 1;
	return s->is_good ? NULL : err_new(ERR_INTERNAL, "libcrypto refuses to compute SHA-256");
}
