/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"

#include "base/buf.h"
#include "base/file.h"

/*
 * Separate debug files, in the places the GNU debugger documents ("Debugging Information in Separate
 * Files"). A file counts only when it proves that it belongs: by the same build-id, or by the CRC that
 * the link holds. The link's name is the target's word and must be a plain file name.
 */
#define DEBUG_ROOT "/usr/lib/debug"

/* Build-ids are 8 to 20 bytes; shorter ones prove nothing. */
#define BUILD_ID_MIN 8
#define BUILD_ID_MAX 64

/* The CRC of .gnu_debuglink: that of zlib and Ethernet (reflected 0x04c11db7), begun and ended inverted. */
static uint32_t debug_crc(const uint8_t *p, size_t len)
{
	uint32_t table[256], crc = UINT32_MAX;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;
		for (int bit = 0; bit < 8; bit++)
			v = v & 1 ? v >> 1 ^ 0xedb88320 : v >> 1;
		table[i] = v;
	}
	for (size_t i = 0; i < len; i++)
		crc = table[(crc ^ p[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

static bool debug_has_build_id(const struct fmt_bin *b)
{
	return b->build_id && b->build_id_len >= BUILD_ID_MIN && b->build_id_len <= BUILD_ID_MAX;
}

/* Whether the file is a program's debug information with the same build-id. */
static bool debug_same_build_id(const struct fmt_bin *b, const struct file *f)
{
	struct fmt_bin *other = NULL;
	struct err *e = fmt_open(f->data, f->len, &other);
	bool same = !e && other->build_id_len == b->build_id_len && other->build_id &&
		    memcmp(other->build_id, b->build_id, b->build_id_len) == 0;
	fmt_bin_free(other);
	err_free(e);
	return same;
}

/* Whether `path` is there, is not the target itself, and belongs to `b`. */
static bool debug_is_right(const struct fmt_bin *b, const char *target_path, const char *path, bool by_build_id)
{
	struct file *f = NULL;
	struct stat target, st;
	if (stat(path, &st) || !S_ISREG(st.st_mode) ||
	    (stat(target_path, &target) == 0 && target.st_dev == st.st_dev && target.st_ino == st.st_ino))
		return false;
	struct err *e = file_open(path, &f);
	bool right = !e && (by_build_id ? debug_same_build_id(b, f) : debug_crc(f->data, f->len) == b->debuglink_crc);
	file_close(f);
	err_free(e);
	return right;
}

/* Gives the path in `path` away when it is right. */
static char *debug_try(const struct fmt_bin *b, const char *target_path, struct buf *path, bool by_build_id)
{
	buf_add_ch(path, 0);
	bool right = !path->failed && debug_is_right(b, target_path, path->data, by_build_id);
	char *ret = right ? strdup(path->data) : NULL;
	path->len = 0;
	return ret;
}

static char *debug_by_build_id(const struct fmt_bin *b, const char *target_path)
{
	_cleanup_buf_ struct buf path = {0};
	buf_add_str(&path, DEBUG_ROOT "/.build-id/");
	buf_add_hexbytes(&path, b->build_id, 1);
	buf_add_ch(&path, '/');
	buf_add_hexbytes(&path, b->build_id + 1, b->build_id_len - 1);
	buf_add_str(&path, ".debug");
	return debug_try(b, target_path, &path, true);
}

static char *debug_by_link(const struct fmt_bin *b, const char *target_path)
{
	static const char *const before[] = {"", "", DEBUG_ROOT};
	static const char *const after[] = {"/", "/.debug/", "/"};
	struct fmt_str link = b->debuglink;
	if (memchr(link.s, '/', link.len) || memchr(link.s, 0, link.len) || (link.len == 1 && link.s[0] == '.') ||
	    (link.len == 2 && memcmp(link.s, "..", 2) == 0))
		return NULL;
	_cleanup_free_ char *full = realpath(target_path, NULL);
	char *slash = full ? strrchr(full, '/') : NULL;
	if (!slash)
		return NULL;
	*slash = 0;
	_cleanup_buf_ struct buf path = {0};
	char *ret = NULL;
	for (size_t i = 0; i < ARRAY_LEN(before) && !ret; i++) {
		buf_add_str(&path, before[i]);
		buf_add_str(&path, full);
		buf_add_str(&path, after[i]);
		buf_add(&path, link.s, link.len);
		ret = debug_try(b, target_path, &path, false);
	}
	return ret;
}

char *dbg_find_debug_file(const struct fmt_bin *b, const char *target_path)
{
	char *ret = debug_has_build_id(b) ? debug_by_build_id(b, target_path) : NULL;
	return !ret && b->debuglink.s && b->debuglink.len ? debug_by_link(b, target_path) : ret;
}
