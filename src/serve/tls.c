/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows libssl, by its names and the few numbers of its interface (openssl/ssl.h). */
#include "serve/tls.h"

#include "base/dl.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define SSL_FILETYPE_PEM 1
#define SSL_ERROR_WANT_READ 2
#define SSL_ERROR_WANT_WRITE 3
#define SSL_ERROR_ZERO_RETURN 6
#define SSL_CTRL_MODE 33
#define SSL_CTRL_SET_MIN_PROTO_VERSION 123
#define SSL_MODE_ENABLE_PARTIAL_WRITE 1
#define SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER 2
#define SSL_OP_NO_RENEGOTIATION ((uint64_t)1 << 30)
#define TLS1_2_VERSION 0x0303

struct serve_tls_server { void *ctx; };
struct serve_tls { void *ssl; bool wants_write; };

static struct {
	const void *(*server_method)(void);
	void *(*ctx_new)(const void *method);
	void (*ctx_free)(void *ctx);
	long (*ctx_ctrl)(void *ctx, int cmd, long larg, void *parg);
	uint64_t (*ctx_set_options)(void *ctx, uint64_t options);
	int (*use_chain)(void *ctx, const char *file);
	int (*use_key)(void *ctx, const char *file, int type);
	int (*check_key)(const void *ctx);
	void *(*ssl_new)(void *ctx);
	void (*ssl_free)(void *ssl);
	int (*set_fd)(void *ssl, int fd);
	void (*set_accept_state)(void *ssl);
	int (*ssl_read)(void *ssl, void *buf, int num);
	int (*ssl_write)(void *ssl, const void *buf, int num);
	int (*get_error)(const void *ssl, int ret);
	void (*clear_error)(void);
} lib;

static struct err *lib_err;

static void lib_load(void)
{
	static const struct dl_sym syms[] = {
		{"TLS_server_method", (void **)&lib.server_method}, {"SSL_CTX_new", (void **)&lib.ctx_new},
		{"SSL_CTX_free", (void **)&lib.ctx_free}, {"SSL_CTX_ctrl", (void **)&lib.ctx_ctrl},
		{"SSL_CTX_set_options", (void **)&lib.ctx_set_options}, {"SSL_CTX_use_certificate_chain_file", (void **)&lib.use_chain},
		{"SSL_CTX_use_PrivateKey_file", (void **)&lib.use_key}, {"SSL_CTX_check_private_key", (void **)&lib.check_key},
		{"SSL_new", (void **)&lib.ssl_new}, {"SSL_free", (void **)&lib.ssl_free}, {"SSL_set_fd", (void **)&lib.set_fd},
		{"SSL_set_accept_state", (void **)&lib.set_accept_state}, {"SSL_read", (void **)&lib.ssl_read},
		{"SSL_write", (void **)&lib.ssl_write}, {"SSL_get_error", (void **)&lib.get_error},
		{"ERR_clear_error", (void **)&lib.clear_error},
	};
	lib_err = dl_load("libssl.so.3", "serving over TCP", "libssl3", syms, ARRAY_LEN(syms));
}

struct err *serve_tls_load(const char *cert, const char *key, struct serve_tls_server **ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, lib_load);
	if (lib_err)
		return take_ptr(lib_err);
	struct serve_tls_server *s = calloc(1, sizeof(*s));
	if (!s)
		return &err_nomem;
	s->ctx = lib.ctx_new(lib.server_method());
	struct err *e = s->ctx ? NULL : &err_nomem;
	if (!e && lib.ctx_ctrl(s->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) != 1)
		e = err_new(ERR_UNSUPPORTED, "libssl does not take TLS 1.2 as the oldest version");
	if (!e) {
		lib.ctx_set_options(s->ctx, SSL_OP_NO_RENEGOTIATION);
		lib.ctx_ctrl(s->ctx, SSL_CTRL_MODE, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
	}
	if (!e && lib.use_chain(s->ctx, cert) != 1)
		e = err_new(ERR_INVALID, "%s: is no certificate in PEM", cert);
	if (!e && lib.use_key(s->ctx, key, SSL_FILETYPE_PEM) != 1)
		e = err_new(ERR_INVALID, "%s: is no private key in PEM", key);
	if (!e && lib.check_key(s->ctx) != 1)
		e = err_new(ERR_INVALID, "%s: is not the key of %s", key, cert);
	if (e)
		serve_tls_unload(s);
	else
		*ret = s;
	return e;
}

void serve_tls_unload(struct serve_tls_server *s)
{
	if (s && s->ctx)
		lib.ctx_free(s->ctx);
	free(s);
}

struct serve_tls *serve_tls_new(struct serve_tls_server *s, int fd)
{
	struct serve_tls *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->ssl = lib.ssl_new(s->ctx);
	if (!t->ssl || lib.set_fd(t->ssl, fd) != 1) {
		serve_tls_free(t);
		return NULL;
	}
	lib.set_accept_state(t->ssl);
	return t;
}

void serve_tls_free(struct serve_tls *t)
{
	if (t && t->ssl)
		lib.ssl_free(t->ssl);
	free(t);
}

static ssize_t came_to(struct serve_tls *t, int n)
{
	if (n > 0)
		return n;
	int why = lib.get_error(t->ssl, n);
	t->wants_write = why == SSL_ERROR_WANT_WRITE;
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
	return -1;
}

ssize_t serve_tls_recv(struct serve_tls *t, char *bytes, size_t len)
{
	lib.clear_error();
	t->wants_write = false;
	return came_to(t, lib.ssl_read(t->ssl, bytes, (int)MIN(len, (size_t)INT_MAX)));
}

ssize_t serve_tls_send(struct serve_tls *t, const char *bytes, size_t len)
{
	lib.clear_error();
	t->wants_write = false;
	ssize_t n = came_to(t, lib.ssl_write(t->ssl, bytes, (int)MIN(len, (size_t)INT_MAX)));
	if (n)
		return n;
	errno = EPIPE;
	return -1;
}

bool serve_tls_wants_write(const struct serve_tls *t)
{
	return t->wants_write;
}

bool serve_same_token(const char *token, const char *given, size_t given_len)
{
	size_t len = strlen(token);
	volatile unsigned char differs = len != given_len;
	for (size_t i = 0; i < given_len; i++)
		differs |= (unsigned char)(given[i] ^ token[len ? i % len : 0]);
	return !differs && len;
}
