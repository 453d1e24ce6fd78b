/* SPDX-License-Identifier: Apache-2.0 */
/* zlib and zstd, loaded when the first compressed section is read. */
#include "format/fmt_int.h"

#include "base/dl.h"

#include <pthread.h>

static int (*zlib_uncompress)(uint8_t *out, unsigned long *out_len, const uint8_t *in,
			      unsigned long in_len);
static size_t (*zstd_decompress)(void *out, size_t out_cap, const void *in, size_t in_len);
static unsigned (*zstd_is_error)(size_t code);

/* What went wrong at the first load; kept for the life of the process, each caller gets a copy. */
static struct err *zlib_err;
static struct err *zstd_err;

static void load_zlib(void)
{
	const struct dl_sym syms[] = {{"uncompress", (void **)&zlib_uncompress}};
	zlib_err = dl_load("libz.so.1", "zlib-compressed sections", "zlib1g", syms, 1);
}

static void load_zstd(void)
{
	const struct dl_sym syms[] = {
		{"ZSTD_decompress", (void **)&zstd_decompress},
		{"ZSTD_isError", (void **)&zstd_is_error},
	};
	zstd_err = dl_load("libzstd.so.1", "zstd-compressed sections", "libzstd1", syms, 2);
}

static struct err *copy_err(const struct err *e)
{
	struct err *copy = err_new(e->kind, "%s", e->text);
	return e->fix ? err_fix(copy, "%s", e->fix) : copy;
}

struct err *fmt_unpack(enum fmt_packing packing, const uint8_t *in, size_t in_len, uint8_t *out,
		       size_t out_len)
{
	static pthread_once_t zlib_once = PTHREAD_ONCE_INIT;
	static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;
	if (packing == FMT_PACK_ZLIB) {
		pthread_once(&zlib_once, load_zlib);
		if (zlib_err)
			return copy_err(zlib_err);
		unsigned long got = out_len;
		if (zlib_uncompress(out, &got, in, in_len) != 0 || got != out_len)
			return err_new(ERR_BAD_INPUT,
				       "zlib data is broken or not of the length it claims");
		return NULL;
	}
	pthread_once(&zstd_once, load_zstd);
	if (zstd_err)
		return copy_err(zstd_err);
	size_t got = zstd_decompress(out, out_len, in, in_len);
	if (zstd_is_error(got) || got != out_len)
		return err_new(ERR_BAD_INPUT, "zstd data is broken or not of the length it claims");
	return NULL;
}
