/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_part.h"

#include "base/bits.h"
#include "base/cur.h"
#include "base/md5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <xxhash.h>

/* The map: magic, identity, length of the file, then a word for each block: 0, or XXH3-64 of it (never 0). In the byte order of this
 * machine, which is the only one that reads it. */
#define MAP_MAGIC "scrypart"
#define MAP_HEAD_LEN 48

struct reach_part {
	char *path, *map_path; /* null: a file of one block needs no map, it is there or not */
	int fd, map_fd;
	uint64_t len, done_len;
	size_t block_cnt;
	uint64_t *have;	      /* a bit for each block that is whole */
	uint32_t *filled_len; /* bytes of each block that came */
	uint8_t *block;	      /* room for one */
	/* Hashes go over the blocks in order, as far as they are there. */
	size_t hashed_cnt;
	struct sha256 *sha;
	struct md5 md5;
	XXH3_state_t *xxh;
	enum reach_hash hash;
	void (*came)(void *ctx, size_t block);
	void *came_ctx;
};

static size_t block_len(const struct reach_part *p, size_t i)
{
	uint64_t left = p->len - (uint64_t)i * REACH_BLOCK_LEN;
	return (size_t)MIN(left, REACH_BLOCK_LEN);
}

void reach_part_close(struct reach_part *p)
{
	if (!p)
		return;
	if (p->fd >= 0)
		close(p->fd);
	if (p->map_fd >= 0)
		close(p->map_fd);
	free(p->path);
	free(p->map_path);
	free(p->have);
	free(p->filled_len);
	free(p->block);
	sha256_free(p->sha);
	XXH3_freeState(p->xxh);
	free(p);
}

static void unlink_all(const struct reach_part *p)
{
	unlink(p->path);
	if (p->map_path)
		unlink(p->map_path);
}

void reach_part_drop(struct reach_part *p)
{
	if (!p)
		return;
	unlink_all(p);
	reach_part_close(p);
}

static struct err *pwrite_all(int fd, const char *path, const void *bytes, size_t len, uint64_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const uint8_t *)bytes + done, len - done, (off_t)(off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_os(n < 0 ? errno : EIO, "%s: cannot write", path);
		done += (size_t)n;
	}
	return NULL;
}

static size_t pread_all(int fd, void *dst, size_t len, uint64_t off)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, (uint8_t *)dst + done, len - done, (off_t)(off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static uint64_t checksum(const uint8_t *bytes, size_t len)
{
	uint64_t sum = XXH3_64bits(bytes, len);
	return sum ? sum : 1;
}

static void add_hashes(struct reach_part *p, const uint8_t *bytes, size_t len)
{
	sha256_add(p->sha, bytes, len);
	if (p->hash == REACH_MD5)
		md5_add(&p->md5, bytes, len);
	if (p->hash == REACH_XXH3)
		XXH3_128bits_update(p->xxh, bytes, len);
}

/* Hashes the blocks that are there up to the first that is not. `bytes` are those of block `at`, SIZE_MAX: none are at hand. */
static void hash_on(struct reach_part *p, size_t at, const uint8_t *bytes)
{
	for (; p->hashed_cnt < p->block_cnt && bits_get(p->have, p->hashed_cnt); p->hashed_cnt++) {
		size_t len = block_len(p, p->hashed_cnt);
		if (p->hashed_cnt == at) {
			add_hashes(p, bytes, len);
			continue;
		}
		if (pread_all(p->fd, p->block, len, (uint64_t)p->hashed_cnt * REACH_BLOCK_LEN) != len)
			return; /* reach_part_finish() will say so */
		at = SIZE_MAX; /* whose bytes may have lain there */
		add_hashes(p, p->block, len);
	}
}

void reach_part_want(struct reach_part *p, enum reach_hash hash)
{
	p->hash = hash;
}

/* A map of the same file: counts the blocks that still have their checksum. */
static void resume(struct reach_part *p, const uint8_t head[MAP_HEAD_LEN])
{
	uint8_t was[MAP_HEAD_LEN];
	struct stat st;
	if (pread_all(p->map_fd, was, sizeof(was), 0) != sizeof(was) || memcmp(was, head, MAP_HEAD_LEN) || fstat(p->fd, &st) ||
	    (uint64_t)st.st_size != p->len)
		return;
	for (size_t i = 0; i < p->block_cnt; i++) {
		uint64_t sum;
		size_t len = block_len(p, i);
		if (pread_all(p->map_fd, &sum, sizeof(sum), MAP_HEAD_LEN + i * sizeof(sum)) != sizeof(sum))
			break;
		if (sum && pread_all(p->fd, p->block, len, (uint64_t)i * REACH_BLOCK_LEN) == len && checksum(p->block, len) == sum) {
			bits_set(p->have, i);
			p->filled_len[i] = (uint32_t)len;
			p->done_len += len;
		}
	}
}

/* An empty map, and all the room. A full disk shows here and not in the middle. */
static struct err *start_anew(struct reach_part *p, const uint8_t head[MAP_HEAD_LEN])
{
	struct statvfs fs;
	if ((p->map_path && ftruncate(p->map_fd, 0)) || ftruncate(p->fd, 0))
		return err_os(errno, "%s: cannot empty it", p->path);
	/* A length that is a lie is refused before it takes the room of everybody else. */
	bool fits = fstatvfs(p->fd, &fs) || p->len / fs.f_frsize < fs.f_bavail;
	int failed = !fits ? ENOSPC : p->len ? posix_fallocate(p->fd, 0, (off_t)p->len) : 0;
	if (failed) {
		/* What was taken is given back. */
		if (ftruncate(p->fd, 0))
			failed = ENOSPC;
		return err_fix(err_os(failed, "%s: no room for %llu bytes", p->path, (unsigned long long)p->len),
			       "make room, or `scry cache prune`");
	}
	if (!p->map_path)
		return NULL;
	struct err *e = pwrite_all(p->map_fd, p->map_path, head, MAP_HEAD_LEN, 0);
	if (!e && ftruncate(p->map_fd, (off_t)(MAP_HEAD_LEN + p->block_cnt * sizeof(uint64_t))))
		e = err_os(errno, "%s: cannot set its length", p->map_path);
	return e;
}

/* What lies there is another file's beginning, which somebody may have mapped: it keeps its bytes, and loses its name. */
static struct err *put_aside(struct reach_part *p)
{
	struct stat st;
	if (fstat(p->fd, &st) || !st.st_size)
		return NULL;
	close(take_fd(p->fd));
	if (unlink(p->path) && errno != ENOENT)
		return err_os(errno, "%s: cannot remove", p->path);
	p->fd = open(p->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return p->fd < 0 ? err_os(errno, "%s: cannot write", p->path) : NULL;
}

static struct err *make(const char *path, const uint8_t identity[REACH_IDENTITY_LEN], uint64_t len, struct reach_part *p)
{
	p->fd = p->map_fd = -1;
	p->len = len;
	p->block_cnt = (size_t)(len / REACH_BLOCK_LEN + (len % REACH_BLOCK_LEN != 0));
	if (len > (uint64_t)1 << 46)
		return err_new(ERR_BAD_INPUT, "the server says that the file has %llu bytes", (unsigned long long)len);
	if (!(p->path = strdup(path)) || (p->block_cnt > 1 && asprintf(&p->map_path, "%s.map", path) < 0))
		return &err_nomem;
	/* O_NOFOLLOW: in a folder of somebody else's the name could lead elsewhere. */
	p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (p->fd < 0)
		return err_os(errno, "%s: cannot write", p->path);
	if (p->map_path)
		p->map_fd = open(p->map_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (p->map_path && p->map_fd < 0)
		return err_os(errno, "%s: cannot write", p->map_path);
	uint8_t head[MAP_HEAD_LEN];
	memcpy(head, MAP_MAGIC, 8);
	memcpy(head + 8, identity, REACH_IDENTITY_LEN);
	memcpy(head + 40, &len, 8);
	/* Room first: a length that is a lie must not cost memory for its map. */
	struct stat st;
	bool is_same = false;
	uint8_t was[MAP_HEAD_LEN];
	if (p->map_path && !fstat(p->fd, &st) && (uint64_t)st.st_size == len && pread_all(p->map_fd, was, sizeof(was), 0) == sizeof(was))
		is_same = !memcmp(was, head, sizeof(was));
	struct err *e = is_same ? NULL : put_aside(p);
	if (!e && !is_same)
		e = start_anew(p, head);
	if (e) {
		unlink_all(p);
		return e;
	}
	p->have = calloc(bits_words(p->block_cnt) + 1, sizeof(*p->have));
	p->filled_len = calloc(p->block_cnt + 1, sizeof(*p->filled_len));
	p->block = malloc(block_len(p, 0) + 1);
	p->xxh = XXH3_createState();
	if (!p->have || !p->filled_len || !p->block || !p->xxh)
		return &err_nomem;
	XXH3_128bits_reset(p->xxh);
	md5_begin(&p->md5);
	if (is_same)
		resume(p, head);
	return sha256_new(&p->sha);
}

struct err *reach_part_open(const char *path, const uint8_t identity[REACH_IDENTITY_LEN], uint64_t len, struct reach_part **ret)
{
	struct reach_part *p = calloc(1, sizeof(*p));
	if (!p)
		return &err_nomem;
	struct err *e = make(path, identity, len, p);
	if (e)
		reach_part_close(p);
	else
		*ret = p;
	return e;
}

uint64_t reach_part_len(const struct reach_part *p)
{
	return p->len;
}

uint64_t reach_part_done_len(const struct reach_part *p)
{
	return p->done_len;
}

int reach_part_fd(const struct reach_part *p)
{
	return p->fd;
}

void reach_part_watch(struct reach_part *p, void (*came)(void *ctx, size_t block), void *ctx)
{
	p->came = came;
	p->came_ctx = ctx;
	for (size_t i = 0; i < p->block_cnt; i++) {
		if (bits_get(p->have, i))
			came(ctx, i);
	}
}

bool reach_part_has(const struct reach_part *p, uint64_t off, uint64_t len)
{
	if (!len || off >= p->len || len > p->len - off)
		return !len;
	for (uint64_t i = off / REACH_BLOCK_LEN; i <= (off + len - 1) / REACH_BLOCK_LEN; i++) {
		if (!bits_get(p->have, i))
			return false;
	}
	return true;
}

size_t reach_part_read(void *part, uint64_t off, uint8_t *dst, size_t len)
{
	const struct reach_part *p = part;
	return reach_part_has(p, off, len) ? pread_all(p->fd, dst, len, off) : 0;
}

/* Block `i` is whole; `bytes` are its bytes, null: they came in pieces. */
static struct err *block_done(struct reach_part *p, size_t i, const uint8_t *bytes)
{
	size_t len = block_len(p, i);
	if (!bytes && pread_all(p->fd, p->block, len, (uint64_t)i * REACH_BLOCK_LEN) != len)
		return err_new(ERR_IO, "%s: what was written cannot be read", p->path);
	bytes = bytes ? bytes : p->block;
	uint64_t sum = checksum(bytes, len);
	struct err *e = NULL;
	if (p->map_path)
		e = pwrite_all(p->map_fd, p->map_path, &sum, sizeof(sum), MAP_HEAD_LEN + i * sizeof(sum));
	if (e)
		return e;
	bits_set(p->have, i);
	if (p->came)
		p->came(p->came_ctx, i);
	hash_on(p, i, bytes);
	return NULL;
}

struct err *reach_part_write(struct reach_part *p, uint64_t off, const void *bytes, size_t len)
{
	struct err *e = pwrite_all(p->fd, p->path, bytes, len, off);
	const uint8_t *at = bytes;
	while (!e && len) {
		size_t i = (size_t)(off / REACH_BLOCK_LEN);
		size_t n = MIN(len, REACH_BLOCK_LEN - (size_t)(off % REACH_BLOCK_LEN));
		p->filled_len[i] += (uint32_t)n;
		p->done_len += n;
		if (p->filled_len[i] == block_len(p, i))
			e = block_done(p, i, n == block_len(p, i) ? at : NULL);
		at += n;
		off += n;
		len -= n;
	}
	return e;
}

struct err *reach_part_finish(struct reach_part *p, uint8_t ret_sha256[SHA256_LEN], uint8_t ret_hash[16])
{
	hash_on(p, SIZE_MAX, NULL);
	if (p->hashed_cnt != p->block_cnt)
		return err_new(ERR_IO, "%s: what was written cannot be read", p->path);
	memset(ret_hash, 0, 16);
	if (p->hash == REACH_MD5) {
		md5_end(&p->md5, ret_hash);
	} else if (p->hash == REACH_XXH3) {
		XXH128_canonical_t canonical;
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(p->xxh));
		memcpy(ret_hash, canonical.digest, 16);
	}
	return sha256_end(p->sha, ret_sha256);
}

struct err *reach_part_publish(struct reach_part *p, const char *path, uint32_t mode)
{
	if (fchmod(p->fd, mode))
		return err_os(errno, "%s: cannot set its mode", p->path);
	int fd = take_fd(p->fd);
	if (close(fd))
		return err_os(errno, "%s: cannot close", p->path);
	if (rename(p->path, path))
		return err_os(errno, "%s: cannot rename into place", path);
	if (p->map_path)
		unlink(p->map_path);
	return NULL;
}
