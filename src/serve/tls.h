/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_TLS_H
#define SERVE_TLS_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* TLS 1.2 and later by OpenSSL's libssl, which is loaded when first asked for. One thread uses a connection. */
struct serve_tls_server;
struct serve_tls;

/* Certificate chain and key, PEM files. Errors: unsupported without the library, invalid for what it does not take. */
_must_use_ struct err *serve_tls_load(const char *cert, const char *key, struct serve_tls_server **ret);
void serve_tls_unload(struct serve_tls_server *s);

/* The server's end of a connection; null: no memory. The descriptor stays the caller's. */
struct serve_tls *serve_tls_new(struct serve_tls_server *s, int fd);
void serve_tls_free(struct serve_tls *t);
/* As recv() and send() on a descriptor that does not block: 0 at the end, -1 and errno, EAGAIN while the other end is to speak. */
ssize_t serve_tls_recv(struct serve_tls *t, char *bytes, size_t len);
ssize_t serve_tls_send(struct serve_tls *t, const char *bytes, size_t len);
/* Whether it waits until it can write (also for reading). */
bool serve_tls_wants_write(const struct serve_tls *t);

/* Whether the two are the same; how long that takes depends on the length of `given` alone. */
bool serve_same_token(const char *token, const char *given, size_t given_len);

#endif
