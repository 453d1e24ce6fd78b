/* SPDX-License-Identifier: Apache-2.0 */
#include "live/gdb/gdb_zstd.h"

#include "base/dl.h"

#include <pthread.h>

static size_t (*z_compress)(void *dst, size_t cap, const void *src, size_t len, int level);
static size_t (*z_bound)(size_t len);
static size_t (*z_decompress)(void *dst, size_t cap, const void *src, size_t len);
static unsigned (*z_is_error)(size_t code);

static pthread_mutex_t z_lock = PTHREAD_MUTEX_INITIALIZER;
static bool z_is_loaded;

struct err *gdb_zstd_try(void)
{
	static const struct dl_sym syms[] = {
		{"ZSTD_compress", (void **)&z_compress},
		{"ZSTD_compressBound", (void **)&z_bound},
		{"ZSTD_decompress", (void **)&z_decompress},
		{"ZSTD_isError", (void **)&z_is_error},
	};
	pthread_mutex_lock(&z_lock);
	struct err *e = NULL;
	if (!z_is_loaded)
		e = dl_load("libzstd.so.1", "compressing what goes over slow links", "libzstd1", syms, ARRAY_LEN(syms));
	z_is_loaded = z_is_loaded || !e;
	pthread_mutex_unlock(&z_lock);
	return e;
}

static bool is_there(void)
{
	struct err *e = gdb_zstd_try();
	err_free(e);
	return !e;
}

bool gdb_zstd_put(struct buf *out, const void *bytes, size_t len)
{
	if (!len || !is_there())
		return false;
	char *p = buf_room(out, z_bound(len));
	size_t n = p ? z_compress(p, z_bound(len), bytes, len, 1) : len;
	if (!p || z_is_error(n) || n >= len)
		return false;
	out->len += n;
	return true;
}

bool gdb_zstd_read(const void *frame, size_t frame_len, uint8_t *dst, size_t len)
{
	return is_there() && z_decompress(dst, len, frame, frame_len) == len;
}
