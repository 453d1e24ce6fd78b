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

struct push {
	struct reach_peer *p;
	const char *path;
	int fd;
	uint64_t len, sent_off, done_len, there;
	unsigned flying_cnt;
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
		if (a.os_errno)
			return err_new(a.os_errno == EACCES || a.os_errno == EPERM ? ERR_DENIED : ERR_IO, "%s: cannot be written there: %s",
				       s->path, strerror(a.os_errno));
		if (a.value != a.tag)
			return err_new(ERR_IO, "%s: the server wrote %llu bytes of %llu; its disk may be full", s->path,
				       (unsigned long long)a.value, (unsigned long long)a.tag);
		s->flying_cnt--;
		s->done_len += a.tag;
		if (progress)
			progress(ctx, s->done_len, s->len);
	}
	return NULL;
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
	XXH128_canonical_t canonical;
	md5_end(&s->md5, hash);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(s->xxh));
	if (s->p->hash == REACH_XXH3)
		memcpy(hash, canonical.digest, sizeof(hash));
	e = ask(s, (struct reach_req){.op = REACH_HASH, .path = s->path}, &a);
	if (!e && !a.os_errno && memcmp(a.hash, hash, sizeof(hash)))
		e = err_new(ERR_IO, "%s: has other bytes there than were sent", s->path);
	return e;
}

static struct err *push(struct push *s, uint32_t mode, void (*progress)(void *ctx, uint64_t done, uint64_t len), void *ctx)
{
	struct reach_answer a;
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
	e = ask(s,
		(struct reach_req){
			.op = REACH_OPEN, .path = s->path, .flags = GDB_O_WRONLY | GDB_O_CREAT | GDB_O_TRUNC, .mode = mode & 0777},
		&a);
	if (!e && a.os_errno)
		e = a.os_errno == ENOSYS ? reach_file_err(ENOSYS, s->path)
					 : err_new(a.os_errno == EACCES || a.os_errno == EPERM ? ERR_DENIED : ERR_IO,
						   "%s: cannot be made there: %s", s->path, strerror(a.os_errno));
	s->there = a.value;
	if (!e)
		e = send_all(s, progress, ctx);
	return e ? e : compare(s);
}

struct err *reach_push(struct reach_peer *p, const char *path, uint32_t mode, int fd,
		       void (*progress)(void *ctx, uint64_t done, uint64_t len), void *ctx)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_os(errno, "reading");
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_INVALID, "what is to be sent is not a file");
	struct push s = {.p = p, .path = path, .fd = fd, .len = (uint64_t)st.st_size};
	struct err *e = push(&s, mode, progress, ctx);
	free(s.bytes);
	XXH3_freeState(s.xxh);
	return e;
}
