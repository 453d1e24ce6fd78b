/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers about files, in both directions. */
#include "live/gdb/gdb_codec.h"

#include "base/cur.h"

#include <errno.h>

/* What follows the name: paths P and Q, the numbers N (file), C (count), O (offset), F (flags) and M (mode), D data up to the end. */
static const struct {
	const char *name, *args;
} vfile_ops[GDB_VFILE_OP_COUNT] = {
	[GDB_VFILE_OPEN] = {"open", "PFM"},	  [GDB_VFILE_CLOSE] = {"close", "N"},	    [GDB_VFILE_PREAD] = {"pread", "NCO"},
	[GDB_VFILE_ZREAD] = {"zread", "NCO"},	  [GDB_VFILE_PWRITE] = {"pwrite", "NOD"},   [GDB_VFILE_FSTAT] = {"fstat", "N"},
	[GDB_VFILE_STAT] = {"stat", "P"},	  [GDB_VFILE_LSTAT] = {"lstat", "P"},	    [GDB_VFILE_SIZE] = {"size", "P"},
	[GDB_VFILE_MODE] = {"mode", "P"},	  [GDB_VFILE_EXISTS] = {"exists", "P"},	    [GDB_VFILE_MD5] = {"MD5", "P"},
	[GDB_VFILE_READLINK] = {"readlink", "P"}, [GDB_VFILE_UNLINK] = {"unlink", "P"},	    [GDB_VFILE_SYMLINK] = {"symlink", "PQ"},
	[GDB_VFILE_SETFS] = {"setfs", "N"},	  [GDB_VFILE_XXH3] = {"XXH3", "P"},	    [GDB_VFILE_SHA256] = {"SHA256", "P"},
};

void gdb_vfile_put(struct buf *out, const struct gdb_vfile *req)
{
	buf_add_str(out, "vFile:");
	buf_add_str(out, vfile_ops[req->op].name);
	char sep = ':';
	for (const char *arg = vfile_ops[req->op].args; *arg; arg++) {
		buf_add_ch(out, sep);
		sep = ',';
		switch (*arg) {
		case 'P':
			buf_add_hexbytes(out, (const uint8_t *)req->path, strlen(req->path));
			break;
		case 'Q':
			buf_add_hexbytes(out, (const uint8_t *)req->path2, strlen(req->path2));
			break;
		case 'N':
			buf_add_hex(out, req->fd, 1);
			break;
		case 'C':
			buf_add_hex(out, req->count, 1);
			break;
		case 'O':
			buf_add_hex(out, req->off, 1);
			break;
		case 'F':
			buf_add_hex(out, req->flags, 1);
			break;
		case 'M':
			buf_add_hex(out, req->mode, 1);
			break;
		case 'D':
			gdb_escape(out, req->data.s, req->data.len);
			break;
		}
	}
}

static bool read_path(struct gdb_span hex, char ret[GDB_MAX_PATH_LEN])
{
	struct buf plain = {0};
	bool is_good = hex.len && gdb_unhex(hex, GDB_MAX_PATH_LEN - 1, &plain) && !memchr(plain.data, 0, plain.len);
	if (is_good) {
		memcpy(ret, plain.data, plain.len);
		ret[plain.len] = '\0';
	}
	buf_fini(&plain);
	return is_good;
}

static bool read_u32(struct gdb_span field, uint32_t *ret)
{
	uint64_t v;
	if (!gdb_is_hex(field, &v) || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool read_arg(char arg, struct gdb_span field, struct gdb_vfile *ret)
{
	switch (arg) {
	case 'P':
		return read_path(field, ret->path);
	case 'Q':
		return read_path(field, ret->path2);
	case 'N':
		return gdb_is_hex(field, &ret->fd);
	case 'C':
		return gdb_is_hex(field, &ret->count);
	case 'O':
		return gdb_is_hex(field, &ret->off);
	case 'F':
		return read_u32(field, &ret->flags);
	default:
		return read_u32(field, &ret->mode);
	}
}

bool gdb_vfile_read(struct gdb_span payload, struct gdb_vfile *ret, bool *ret_is_known)
{
	struct gdb_span name, rest, field;
	*ret_is_known = false;
	if (!gdb_skip(&payload, "vFile:"))
		return false;
	gdb_split(payload, ':', &name, &rest);
	unsigned op = 0;
	while (op < GDB_VFILE_OP_COUNT && !gdb_span_is(name, vfile_ops[op].name))
		op++;
	if (op == GDB_VFILE_OP_COUNT)
		return false;
	*ret_is_known = true;
	ret->op = (enum gdb_vfile_op)op;
	ret->path[0] = ret->path2[0] = '\0';
	ret->fd = ret->count = ret->off = ret->flags = ret->mode = 0;
	ret->data = gdb_span_make(payload.s, 0);
	for (const char *arg = vfile_ops[op].args; *arg; arg++) {
		if (*arg == 'D') {
			ret->data = rest; /* empty, too: nothing is to be written */
			return true;
		}
		if (!gdb_next_field(&rest, ',', &field) || !read_arg(*arg, field, ret))
			return false;
	}
	return !rest.len;
}

bool gdb_vfile_reply_read(struct gdb_span payload, struct gdb_vfile_reply *ret)
{
	struct gdb_span head;
	uint64_t v, code = 0;
	*ret = (struct gdb_vfile_reply){0};
	if (gdb_skip(&payload, "Z"))
		ret->is_compressed = true;
	else if (!gdb_skip(&payload, "F"))
		return false;
	ret->has_data = gdb_split(payload, ';', &head, &ret->data);
	bool is_negative = gdb_skip(&head, "-");
	if (!gdb_take_hex(&head, &v) || v > INT64_MAX)
		return false;
	ret->result = is_negative ? -(int64_t)v : (int64_t)v;
	if (gdb_skip(&head, ",") && (!gdb_take_hex(&head, &code) || code > UINT32_MAX))
		return false;
	ret->gdb_errno = (unsigned)code;
	return !head.len;
}

void gdb_vfile_reply_put(struct buf *out, int64_t result, int os_errno)
{
	buf_add_ch(out, 'F');
	if (os_errno) {
		buf_add_str(out, "-1,");
		buf_add_hex(out, gdb_errno_put(os_errno), 1);
		return;
	}
	buf_add_hex(out, (uint64_t)result, 1);
}

/* Most numbers are those of Linux on the common machines; these are not. */
static const struct {
	int os;
	unsigned gdb;
} errnos[] = {{ENAMETOOLONG, 91}, {ENOSYS, 88}};

/* Linux' numbers end with 133. */
#define ERRNO_LAST 133

unsigned gdb_errno_put(int os_errno)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(*errnos); i++) {
		if (errnos[i].os == os_errno)
			return errnos[i].gdb;
	}
	return (unsigned)os_errno;
}

int gdb_errno_read(unsigned gdb_errno)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(*errnos); i++) {
		if (errnos[i].gdb == gdb_errno)
			return errnos[i].os;
	}
	return gdb_errno && gdb_errno <= ERRNO_LAST ? (int)gdb_errno : EIO;
}

bool gdb_stat_read(struct gdb_span data, struct gdb_stat *ret)
{
	if (data.len != GDB_STAT_LEN)
		return false;
	struct cur c = cur_make(data.s, data.len, true);
	uint32_t *const first[] = {&ret->dev, &ret->ino, &ret->mode, &ret->nlink, &ret->uid, &ret->gid, &ret->rdev};
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		*first[i] = cur_u32(&c);
	ret->size = cur_u64(&c);
	ret->blksize = cur_u64(&c);
	ret->blocks = cur_u64(&c);
	ret->atime = cur_u32(&c);
	ret->mtime = cur_u32(&c);
	ret->ctime = cur_u32(&c);
	return true;
}

static uint8_t *put_be(uint8_t *p, uint64_t v, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		p[i] = (uint8_t)(v >> (8 * (len - 1 - i)));
	return p + len;
}

void gdb_stat_put(uint8_t out[GDB_STAT_LEN], const struct gdb_stat *st)
{
	const uint32_t first[] = {st->dev, st->ino, st->mode, st->nlink, st->uid, st->gid, st->rdev};
	uint8_t *p = out;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		p = put_be(p, first[i], 4);
	p = put_be(p, st->size, 8);
	p = put_be(p, st->blksize, 8);
	p = put_be(p, st->blocks, 8);
	p = put_be(p, st->atime, 4);
	p = put_be(p, st->mtime, 4);
	put_be(p, st->ctime, 4);
}

/* LLDB's server writes each half as one little-endian number of 64 bits. */
bool gdb_md5_read(struct gdb_span reply, uint8_t ret_md5[16])
{
	struct buf plain = {0};
	bool is_good = gdb_skip(&reply, "F,") && reply.len == 32 && gdb_unhex(reply, 16, &plain);
	for (unsigned i = 0; is_good && i < 16; i++)
		ret_md5[i] = (uint8_t)plain.data[(i & 8) | (7 - (i & 7))];
	buf_fini(&plain);
	return is_good;
}

void gdb_md5_put(struct buf *out, const uint8_t md5[16])
{
	uint8_t turned[16];
	for (unsigned i = 0; i < 16; i++)
		turned[i] = md5[(i & 8) | (7 - (i & 7))];
	buf_add_str(out, "F,");
	buf_add_hexbytes(out, turned, sizeof(turned));
}
