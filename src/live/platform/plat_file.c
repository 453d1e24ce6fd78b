/* SPDX-License-Identifier: Apache-2.0 */
/* Packets about files: vFile (gdb, and LLDB's own), and the two of LLDB's platform that are about files. */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"
#include "base/md5.h"
#include "base/sha256.h"
#include "live/gdb/gdb_zstd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <xxhash.h>

#define HASH_LEN ((size_t)256 << 10) /* read at a time, bytes */

static int fd_of(const struct plat_conn *c, uint64_t number)
{
	uint64_t idx = number - PLAT_FILE_FIRST;
	return idx < PLAT_FILES_MAX && c->files[idx] >= 0 ? c->files[idx] : -1;
}

static void reply(struct plat_conn *c, int64_t status)
{
	gdb_vfile_reply_put(&c->out, status, status < 0 ? (int)-status : 0);
}

static void do_open(struct plat_conn *c, const struct gdb_vfile *v)
{
	static const struct {
		uint32_t gdb;
		int os;
	} flags[] = {{GDB_O_WRONLY, O_WRONLY}, {GDB_O_RDWR, O_RDWR},   {GDB_O_APPEND, O_APPEND},
		     {GDB_O_CREAT, O_CREAT},   {GDB_O_TRUNC, O_TRUNC}, {GDB_O_EXCL, O_EXCL}};
	size_t idx = 0;
	int os = 0;
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		os |= v->flags & flags[i].gdb ? flags[i].os : 0;
	while (idx < PLAT_FILES_MAX && c->files[idx] >= 0)
		idx++;
	int fd = idx == PLAT_FILES_MAX ? -EMFILE : os && !c->opts->allow_write ? -EACCES : plat_open(&c->root, v->path, os, v->mode);
	if (fd >= 0)
		c->files[idx] = fd;
	reply(c, fd < 0 ? fd : (int64_t)idx + PLAT_FILE_FIRST);
}

static void do_close(struct plat_conn *c, const struct gdb_vfile *v)
{
	int fd = fd_of(c, v->fd);
	if (fd >= 0) {
		c->files[v->fd - PLAT_FILE_FIRST] = -1;
		close(fd);
	}
	reply(c, fd < 0 ? -EBADF : 0);
}

/* Bytes of the file into scratch: how many, or -errno. */
static ssize_t read_file(struct plat_conn *c, const struct gdb_vfile *v)
{
	int fd = fd_of(c, v->fd);
	size_t want = (size_t)MIN(v->count, (uint64_t)PLAT_READ_MAX);
	if (fd < 0)
		return -EBADF;
	if (v->off > INT64_MAX - PLAT_READ_MAX)
		return -EINVAL;
	c->scratch.len = 0;
	/* One byte more, so that there is a place for none. */
	char *to = buf_room(&c->scratch, want + 1);
	ssize_t n;
	do
		n = to ? pread(fd, to, want, (off_t)v->off) : -1;
	while (n < 0 && to && errno == EINTR);
	return !to ? -ENOMEM : n < 0 ? -errno : n;
}

static void put_data(struct plat_conn *c, const char *data, size_t len)
{
	/* Clients of gdb's kind get no packet longer than we said. */
	if (c->has_said && !c->is_lldb && !c->is_scry)
		len = gdb_escape_fit(data, len, PLAT_PACKET_LEN - 64);
	buf_add_ch(&c->out, 'F');
	buf_add_hex(&c->out, len, 1);
	buf_add_ch(&c->out, ';');
	gdb_escape(&c->out, data, len);
}

static void do_pread(struct plat_conn *c, const struct gdb_vfile *v)
{
	ssize_t n = read_file(c, v);
	if (n < 0)
		reply(c, n);
	else
		put_data(c, c->scratch.data, (size_t)n);
}

/* As pread, and compressed where that is shorter. */
static void do_zread(struct plat_conn *c, const struct gdb_vfile *v)
{
	ssize_t n = read_file(c, v);
	if (n < 0) {
		reply(c, n);
		return;
	}
	c->packed.len = 0;
	if (!gdb_zstd_put(&c->packed, c->scratch.data, (size_t)n)) {
		put_data(c, c->scratch.data, (size_t)n);
		return;
	}
	buf_add_ch(&c->out, 'Z');
	buf_add_hex(&c->out, (uint64_t)n, 1);
	buf_add_ch(&c->out, ';');
	gdb_escape(&c->out, c->packed.data, c->packed.len);
}

static void do_pwrite(struct plat_conn *c, const struct gdb_vfile *v)
{
	int fd = fd_of(c, v->fd);
	ssize_t n = fd < 0 ? -1 : v->off > INT64_MAX ? -1 : pwrite(fd, v->data.s, v->data.len, (off_t)v->off);
	reply(c, fd < 0 ? -EBADF : v->off > INT64_MAX ? -EINVAL : n < 0 ? -errno : n);
}

static void put_stat(struct plat_conn *c, const struct stat *st)
{
	uint8_t bytes[GDB_STAT_LEN];
	const struct gdb_stat g = {
		.dev = (uint32_t)st->st_dev, .ino = (uint32_t)st->st_ino, .mode = st->st_mode, .nlink = (uint32_t)st->st_nlink, .uid = st->st_uid,
		.gid = st->st_gid, .rdev = (uint32_t)st->st_rdev, .size = (uint64_t)st->st_size, .blksize = (uint64_t)st->st_blksize,
		.blocks = (uint64_t)st->st_blocks, .atime = (uint32_t)st->st_atime, .mtime = (uint32_t)st->st_mtime, .ctime = (uint32_t)st->st_ctime};
	gdb_stat_put(bytes, &g);
	buf_add_str(&c->out, "F40;");
	gdb_escape(&c->out, bytes, sizeof(bytes));
}

static void do_stat(struct plat_conn *c, const struct gdb_vfile *v)
{
	struct stat st;
	int fd = v->op == GDB_VFILE_FSTAT ? fd_of(c, v->fd) : -1;
	int status = fd < 0 ? -EBADF : 0;
	if (v->op != GDB_VFILE_FSTAT)
		status = plat_stat(&c->root, v->path, v->op == GDB_VFILE_LSTAT, &st);
	else if (fd >= 0 && fstat(fd, &st) < 0)
		status = -errno;
	if (status < 0)
		reply(c, status);
	else
		put_stat(c, &st);
}

/* What a name is, in one number. */
static void do_name(struct plat_conn *c, const struct gdb_vfile *v)
{
	struct stat st;
	int status = plat_stat(&c->root, v->path, false, &st);
	if (v->op == GDB_VFILE_EXISTS) {
		buf_add_str(&c->out, status < 0 ? "F,0" : "F,1");
	} else if (v->op == GDB_VFILE_SIZE && status < 0) {
		plat_errno(c, -status);
	} else if (status < 0) {
		reply(c, status);
	} else if (v->op == GDB_VFILE_SIZE) {
		buf_add_ch(&c->out, 'F');
		buf_add_hex(&c->out, (uint64_t)st.st_size, 16);
	} else {
		reply(c, st.st_mode & 07777);
	}
}

/* The three hashes there are, over a regular file: `add` takes its blocks. */
static int hash_file(struct plat_conn *c, const char *path, void (*add)(void *, const void *, size_t), void *state)
{
	struct stat st;
	_cleanup_close_ int fd = plat_open(&c->root, path, O_RDONLY, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	c->scratch.len = 0;
	char *block = buf_room(&c->scratch, HASH_LEN);
	ssize_t n = block ? 1 : -1;
	while (n > 0) {
		n = read(fd, block, HASH_LEN);
		if (n > 0)
			add(state, block, (size_t)n);
	}
	return !block ? -ENOMEM : n < 0 ? -errno : 0;
}

static void add_md5(void *state, const void *bytes, size_t len)
{
	md5_add(state, bytes, len);
}

static void do_md5(struct plat_conn *c, const struct gdb_vfile *v)
{
	struct md5 m;
	uint8_t sum[16];
	md5_begin(&m);
	int status = hash_file(c, v->path, add_md5, &m);
	md5_end(&m, sum);
	if (status < 0)
		buf_add_str(&c->out, "F,x");
	else
		gdb_md5_put(&c->out, sum);
}

static void add_xxh3(void *state, const void *bytes, size_t len)
{
	(void)XXH3_128bits_update(state, bytes, len);
}

static void do_xxh3(struct plat_conn *c, const struct gdb_vfile *v)
{
	XXH3_state_t *state = XXH3_createState();
	int status = !state || XXH3_128bits_reset(state) == XXH_ERROR ? -ENOMEM : hash_file(c, v->path, add_xxh3, state);
	if (status < 0) {
		reply(c, status);
	} else {
		XXH128_hash_t sum = XXH3_128bits_digest(state);
		buf_add_str(&c->out, "F,");
		buf_add_hex(&c->out, sum.high64, 16);
		buf_add_hex(&c->out, sum.low64, 16);
	}
	(void)XXH3_freeState(state);
}

static void add_sha256(void *state, const void *bytes, size_t len)
{
	sha256_add(state, bytes, len);
}

static void do_sha256(struct plat_conn *c, const struct gdb_vfile *v)
{
	struct sha256 *state = NULL;
	uint8_t sum[SHA256_LEN];
	_cleanup_err_ struct err *e = sha256_new(&state);
	int status = e ? -ENOSYS : hash_file(c, v->path, add_sha256, state);
	if (!status)
		e = sha256_end(state, sum);
	sha256_free(state);
	if (status < 0 || e) {
		reply(c, status < 0 ? status : -EIO);
		return;
	}
	buf_add_str(&c->out, "F,");
	buf_add_hexbytes(&c->out, sum, sizeof(sum));
}

static void do_readlink(struct plat_conn *c, const struct gdb_vfile *v)
{
	char text[PATH_MAX];
	int n = plat_readlink(&c->root, v->path, text);
	reply(c, n);
	if (n >= 0) {
		buf_add_ch(&c->out, ';');
		gdb_escape(&c->out, text, (size_t)n);
	}
}

static void do_vfile(struct plat_conn *c, struct gdb_span args)
{
	struct gdb_vfile v;
	bool is_known;
	if (!gdb_vfile_read(args, &v, &is_known)) {
		if (is_known)
			plat_error(c, EINVAL, "malformed vFile packet");
		return;
	}
	if ((v.op == GDB_VFILE_PWRITE || v.op == GDB_VFILE_UNLINK || v.op == GDB_VFILE_SYMLINK) && !c->opts->allow_write) {
		reply(c, -EACCES);
		return;
	}
	switch (v.op) {
	case GDB_VFILE_OPEN: do_open(c, &v); break;
	case GDB_VFILE_CLOSE: do_close(c, &v); break;
	case GDB_VFILE_PREAD: do_pread(c, &v); break;
	case GDB_VFILE_ZREAD: do_zread(c, &v); break;
	case GDB_VFILE_PWRITE: do_pwrite(c, &v); break;
	case GDB_VFILE_FSTAT:
	case GDB_VFILE_STAT:
	case GDB_VFILE_LSTAT: do_stat(c, &v); break;
	case GDB_VFILE_SIZE:
	case GDB_VFILE_MODE:
	case GDB_VFILE_EXISTS: do_name(c, &v); break;
	case GDB_VFILE_MD5: do_md5(c, &v); break;
	case GDB_VFILE_XXH3: do_xxh3(c, &v); break;
	case GDB_VFILE_SHA256: do_sha256(c, &v); break;
	case GDB_VFILE_READLINK: do_readlink(c, &v); break;
	case GDB_VFILE_UNLINK: reply(c, plat_unlink(&c->root, v.path)); break;
	case GDB_VFILE_SYMLINK: reply(c, plat_symlink(&c->root, v.path, v.path2)); break;
	case GDB_VFILE_SETFS: reply(c, 0); break; /* there is one view of the file system */
	case GDB_VFILE_OP_COUNT: break;
	}
	if (c->scratch.cap > 2 * PLAT_READ_MAX)
		buf_fini(&c->scratch);
}

/* MODE,HEXPATH -> F and an errno. */
static void mode_packet(struct plat_conn *c, struct gdb_span args, int (*run)(struct plat_root *, const char *, mode_t))
{
	uint64_t mode;
	char path[PATH_MAX];
	struct gdb_span field;
	if (!gdb_next_field(&args, ',', &field) || !gdb_is_hex(field, &mode) || !plat_text(args, path, sizeof(path))) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	int status = run(&c->root, path, (mode_t)mode);
	buf_add_ch(&c->out, 'F');
	buf_add_hex(&c->out, (uint64_t)-status, 1);
}

static void do_mkdir(struct plat_conn *c, struct gdb_span args)
{
	mode_packet(c, args, plat_mkdir);
}

static void do_chmod(struct plat_conn *c, struct gdb_span args)
{
	mode_packet(c, args, plat_chmod);
}

const struct plat_packet plat_file_packets[] = {
	{"vFile:", do_vfile, PLAT_PREFIX | PLAT_WHOLE},
	{"qPlatform_mkdir:", do_mkdir, PLAT_PREFIX | PLAT_WRITE},
	{"qPlatform_chmod:", do_chmod, PLAT_PREFIX | PLAT_WRITE},
	{0},
};
