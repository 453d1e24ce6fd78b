/* SPDX-License-Identifier: Apache-2.0 */
/* A file of this machine to the other: pieces as long as the server takes packets, many on their way. */
#include "live/reach/reach_fetch.h"

#include "base/md5.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#define MAX_FLYING_LEN (4u << 20)
#define MAX_FLYING_CNT 256
#define MAX_READS 64 /* on their way, of a file that is compared */
#define NO_FD 0xffff

struct push {
	struct reach_peer *p;
	const char *path;
	int fd;
	uint64_t len, sent_off, done_len, there;
	unsigned flying_cnt;
	bool is_file; /* what was opened there */
	struct md5 md5;
	XXH3_state_t *xxh;
	uint8_t *bytes;
};

static struct err *next(struct push *s, enum reach_op op, struct reach_answer *ret)
{
	struct err *e = s->p->ops->next(s->p, ret);
	if (e)
		return e;
	if (ret->op != op)
		return err_new(ERR_BAD_INPUT, "the server answers something else than it was asked");
	return NULL;
}

static struct err *ask(struct push *s, struct reach_req req, struct reach_answer *ret)
{
	struct err *e = s->p->ops->submit(s->p, &req);
	return e ? e : next(s, req.op, ret);
}

/* One write, of which the server has to take all. */
static struct err *send_piece(struct push *s)
{
	uint64_t len = MIN(s->p->max_write_len, s->len - s->sent_off);
	ssize_t n = pread(s->fd, s->bytes, (size_t)len, (off_t)s->sent_off);
	if (n != (ssize_t)len)
		return n < 0 ? err_os(errno, "reading") : err_new(ERR_STALE, "the file became shorter while it was sent");
	md5_add(&s->md5, s->bytes, (size_t)len);
	XXH3_128bits_update(s->xxh, s->bytes, (size_t)len);
	struct reach_req req = {.op = REACH_WRITE, .fd = s->there, .off = s->sent_off, .len = len, .data = s->bytes, .tag = len};
	s->sent_off += len;
	s->flying_cnt++;
	return s->p->ops->submit(s->p, &req);
}

static struct err *send_all(struct push *s, void (*progress)(void *ctx, uint64_t done, uint64_t len), void *ctx)
{
	while (s->done_len < s->len) {
		struct err *e = NULL;
		while (!e && s->sent_off < s->len && s->flying_cnt < MAX_FLYING_CNT && s->sent_off - s->done_len < MAX_FLYING_LEN)
			e = send_piece(s);
		struct reach_answer a;
		if (!e)
			e = next(s, REACH_WRITE, &a);
		if (e)
			return e;
		s->flying_cnt--;
		if (a.os_errno)
			return err_new(a.os_errno == EACCES || a.os_errno == EPERM ? ERR_DENIED : ERR_IO, "%s: cannot be written there: %s",
				       s->path, strerror(a.os_errno));
		if (a.value != a.tag)
			return err_new(ERR_IO, "%s: the server wrote %llu bytes of %llu; its disk may be full", s->path,
				       (unsigned long long)a.value, (unsigned long long)a.tag);
		s->done_len += a.tag;
		if (progress)
			progress(ctx, s->done_len, s->len);
	}
	return NULL;
}

/* The hash that the server knows, of what was read. */
static void digest(struct push *s, uint8_t ret[16])
{
	XXH128_canonical_t canonical;
	md5_end(&s->md5, ret);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(s->xxh));
	if (s->p->hash == REACH_XXH3)
		memcpy(ret, canonical.digest, sizeof(canonical.digest));
	md5_begin(&s->md5);
	XXH3_128bits_reset(s->xxh);
}

/* What is there now is what was sent: its length, and its hash where the server has one. */
static struct err *compare(struct push *s)
{
	struct reach_answer a;
	struct err *e = ask(s, (struct reach_req){.op = REACH_STAT, .fd = s->there}, &a);
	if (!e && !a.os_errno && a.meta.has_len && a.meta.len != s->len)
		e = err_new(ERR_IO, "%s: has %llu bytes there, not %llu", s->path, (unsigned long long)a.meta.len,
			    (unsigned long long)s->len);
	if (!e)
		e = ask(s, (struct reach_req){.op = REACH_CLOSE, .fd = s->there}, &a);
	if (!e && a.os_errno && a.os_errno != ENOSYS)
		e = err_new(ERR_IO, "%s: cannot be closed there: %s", s->path, strerror(a.os_errno));
	if (e || s->p->hash == REACH_NO_HASH)
		return e;
	uint8_t hash[16];
	digest(s, hash);
	e = ask(s, (struct reach_req){.op = REACH_HASH, .path = s->path}, &a);
	if (!e && !a.os_errno && memcmp(a.hash, hash, sizeof(hash)))
		e = err_new(ERR_IO, "%s: has other bytes there than were sent", s->path);
	return e;
}

/* Whether there is more than the file's length says, as of those in /proc. */
static bool goes_on(const struct push *s)
{
	uint8_t byte;
	return pread(s->fd, &byte, 1, (off_t)s->len) > 0;
}

/* Whether `path` there has these bytes already. */
static struct err *is_there(struct push *s, const struct reach_meta *look, bool *ret)
{
	struct reach_answer a;
	uint8_t hash[16];
	*ret = false;
	if (s->p->hash == REACH_NO_HASH || (look->has_len && look->len != s->len))
		return NULL;
	struct err *e = ask(s, (struct reach_req){.op = REACH_HASH, .path = s->path, .len = s->len}, &a);
	if (!e && a.os_errno)
		s->p->hash = REACH_NO_HASH;
	if (e || a.os_errno)
		return e;
	for (uint64_t off = 0; off < s->len;) {
		ssize_t n = pread(s->fd, s->bytes, (size_t)MIN(s->p->max_write_len, s->len - off), (off_t)off);
		if (n <= 0)
			return n ? err_os(errno, "reading") : err_new(ERR_STALE, "the file became shorter while it was read");
		md5_add(&s->md5, s->bytes, (size_t)n);
		XXH3_128bits_update(s->xxh, s->bytes, (size_t)n);
		off += (uint64_t)n;
	}
	digest(s, hash);
	*ret = !memcmp(hash, a.hash, sizeof(hash));
	return NULL;
}

/* Asks for the rest of the piece that `off` lies in. */
static struct err *ask_piece(struct push *s, uint64_t fd, uint64_t off)
{
	uint64_t len = MIN(s->p->chunk_len - off % s->p->chunk_len, s->len - off);
	s->flying_cnt++;
	return s->p->ops->submit(s->p, &(struct reach_req){.op = REACH_READ, .fd = fd, .off = off, .len = len, .tag = off});
}

/* A piece of the file there beside ours; what it leaves out is asked for. */
static struct err *compare_piece(struct push *s, uint64_t fd, const struct reach_answer *a, uint8_t *ours, bool *is_same)
{
	uint64_t want = MIN(s->p->chunk_len - a->tag % s->p->chunk_len, s->len - a->tag);
	*is_same = *is_same && !a->os_errno && a->data.len && a->data.len <= want &&
		   pread(s->fd, ours, a->data.len, (off_t)a->tag) == (ssize_t)a->data.len && !memcmp(ours, a->data.s, a->data.len);
	return *is_same && a->data.len < want ? ask_piece(s, fd, a->tag + a->data.len) : NULL;
}

/* Whether the file `fd` there has these bytes, by reading it. */
static struct err *has_same_bytes(struct push *s, uint64_t fd, bool *ret)
{
	struct err *e = NULL;
	uint8_t *ours = malloc((size_t)s->p->chunk_len);
	if (!ours)
		return &err_nomem;
	*ret = true;
	for (uint64_t off = 0; !e && (s->flying_cnt || (off < s->len && *ret));) {
		while (!e && *ret && off < s->len && s->flying_cnt < MIN(MAX_READS, s->p->max_open_cnt)) {
			e = ask_piece(s, fd, off);
			off += s->p->chunk_len;
		}
		struct reach_answer a;
		if (!e)
			e = next(s, REACH_READ, &a);
		s->flying_cnt--;
		if (!e)
			e = compare_piece(s, fd, &a, ours, ret);
	}
	free(ours);
	return e;
}

/*
 * What is emptied there must not be what is about to be read here. Of a server without hashes a file is known by its numbers; where those
 * are not told, one of the same length and time may be the same, and is not touched when it has the same bytes.
 */
static struct err *check_not_same(struct push *s, const struct stat *st, bool *ret_has_it)
{
	struct reach_answer a, closed;
	struct err *e = ask(s, (struct reach_req){.op = REACH_OPEN, .path = s->path, .flags = GDB_O_RDONLY}, &a);
	if (e || a.os_errno)
		return e;
	uint64_t fd = a.value;
	e = ask(s, (struct reach_req){.op = REACH_STAT, .fd = fd}, &a);
	/* Where nothing is told it may be anything. */
	bool is_told = !a.os_errno && a.meta.has_len && a.meta.has_mtime;
	bool may_be_same = !is_told || (a.meta.len == s->len && a.meta.mtime == (int64_t)(uint32_t)st->st_mtime);
	bool has_numbers = is_told && (a.meta.ino || a.meta.dev);
	if (!e && may_be_same && !has_numbers)
		e = has_same_bytes(s, fd, ret_has_it);
	if (!e)
		e = ask(s, (struct reach_req){.op = REACH_CLOSE, .fd = fd}, &closed);
	if (!e && may_be_same && has_numbers && a.meta.ino == (uint32_t)st->st_ino && a.meta.dev == (uint32_t)st->st_dev)
		e = err_new(ERR_INVALID, "%s: is the file itself", s->path);
	return e;
}

/* A server that can open and not write would leave an empty file. */
static struct err *check_writes(struct push *s)
{
	struct reach_answer a;
	struct err *e = ask(s, (struct reach_req){.op = REACH_WRITE, .fd = NO_FD, .data = ""}, &a);
	return e || a.os_errno != ENOSYS ? e : reach_file_err(ENOSYS, s->path);
}

static struct err *open_there(struct push *s, uint32_t mode)
{
	struct reach_answer a;
	struct reach_req req = {.op = REACH_OPEN, .path = s->path, .flags = GDB_O_WRONLY | GDB_O_CREAT | GDB_O_TRUNC, .mode = mode & 0777};
	struct err *e = ask(s, req, &a);
	if (!e && a.os_errno)
		e = a.os_errno == ENOSYS ? reach_file_err(ENOSYS, s->path)
					 : err_new(a.os_errno == EACCES || a.os_errno == EPERM ? ERR_DENIED : ERR_IO,
						   "%s: cannot be made there: %s", s->path, strerror(a.os_errno));
	s->there = a.value;
	if (!e)
		e = ask(s, (struct reach_req){.op = REACH_STAT, .fd = s->there}, &a);
	if (e)
		return e;
	bool has_kind = !a.os_errno && a.meta.has_mode && a.meta.mode & S_IFMT;
	s->is_file = has_kind && S_ISREG(a.meta.mode);
	return has_kind && !s->is_file ? err_new(ERR_INVALID, "%s: is a device or pipe there, not a file", s->path) : NULL;
}

/* Sends until all answers are there: what is under way would be taken for the answer to something else. */
static void remove_there(struct push *s, const struct err *why)
{
	struct reach_answer a;
	struct err *e = NULL;
	/* The connection is gone, or nothing more is believed of it. */
	if (!s->is_file || why->kind == ERR_CANCELLED || why->kind == ERR_TIMEOUT)
		return;
	for (; s->flying_cnt && !e; s->flying_cnt--)
		e = next(s, REACH_WRITE, &a);
	if (!e)
		e = ask(s, (struct reach_req){.op = REACH_CLOSE, .fd = s->there}, &a);
	if (!e)
		e = ask(s, (struct reach_req){.op = REACH_UNLINK, .path = s->path}, &a);
	err_free(e);
}

static struct err *push(struct push *s, const struct stat *st, void (*progress)(void *ctx, uint64_t done, uint64_t len), void *ctx)
{
	struct reach_answer a;
	bool has_it = false;
	/* What kind of server it is comes with the first answer. */
	struct err *e = ask(s, (struct reach_req){.op = REACH_LOOK, .path = s->path}, &a);
	if (e)
		return e;
	s->bytes = malloc((size_t)s->p->max_write_len);
	s->xxh = XXH3_createState();
	if (!s->bytes || !s->xxh)
		return &err_nomem;
	md5_begin(&s->md5);
	XXH3_128bits_reset(s->xxh);
	e = is_there(s, &a.meta, &has_it);
	if (!e && !has_it && s->p->hash == REACH_NO_HASH)
		e = check_not_same(s, st, &has_it);
	if (!e && !has_it && s->p->kind == REACH_PLAIN)
		e = check_writes(s);
	if (e || has_it)
		return e;
	e = open_there(s, st->st_mode);
	if (!e)
		e = send_all(s, progress, ctx);
	if (!e && goes_on(s))
		e = err_new(ERR_STALE, "the file became longer while it was sent");
	if (!e)
		e = compare(s);
	if (e)
		remove_there(s, e);
	return e;
}

struct err *reach_push(struct reach_peer *p, const char *path, int fd,
		       void (*progress)(void *ctx, uint64_t done, uint64_t len), void *ctx, uint64_t *ret_sent_len)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_os(errno, "reading");
	struct push s = {.p = p, .path = path, .fd = fd, .len = (uint64_t)st.st_size};
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_INVALID, "what is to be sent is not a file");
	if (goes_on(&s))
		return err_new(ERR_INVALID, "what is to be sent has more bytes than its length says, as files in /proc: copy it first");
	struct err *e = push(&s, &st, progress, ctx);
	free(s.bytes);
	XXH3_freeState(s.xxh);
	*ret_sent_len = s.sent_off;
	return e;
}
