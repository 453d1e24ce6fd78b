/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_cache.h"

#include "base/cur.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define MISSING_S 60
#define PARTIAL_S (7 * 86400)
#define MAX_ENTRY_LEN 32768
#define HEX_LEN 65

struct reach_cache {
	char *root;
	uid_t uid; /* its owner's, which is another than ours under sudo */
	uint64_t limit_len;
	char boot[37]; /* which start of this machine it is */
};

static const char *const folders[] = {"blobs", "keys", "partial", "locks"};

/* A folder of the same owner as `uid` (the first: of anybody) that nobody else can write to. */
static struct err *make_folder(const char *path, bool is_first, uid_t *uid)
{
	struct stat st;
	if (mkdir(path, 0700) && errno != EEXIST)
		return err_os(errno, "%s: cannot make the folder", path);
	if (lstat(path, &st))
		return err_os(errno, "%s", path);
	if (!S_ISDIR(st.st_mode) || (st.st_mode & 022) || (!is_first && st.st_uid != *uid))
		return err_new(ERR_DENIED, "%s: is not a folder that nobody else can write to", path);
	*uid = st.st_uid;
	return NULL;
}

/* A line of hex digits and dashes. */
static bool take_boot(struct gdb_span *s, char ret[37])
{
	struct gdb_span line;
	if (!gdb_next_field(s, '\n', &line) || line.len > 36)
		return false;
	for (size_t i = 0; i < line.len; i++) {
		if (gdb_digit(line.s[i]) < 0 && line.s[i] != '-')
			return false;
		ret[i] = line.s[i];
	}
	ret[line.len] = '\0';
	return true;
}

/* Which start of this machine it is (random(4)); "" where that is not told, and equal to nothing then. */
static void put_boot(char ret[37])
{
	ret[0] = '\0';
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	struct gdb_span s = gdb_span_make(text, n < 0 ? 0 : (size_t)n);
	if (!take_boot(&s, ret))
		ret[0] = '\0';
}

struct err *reach_cache_open(const char *root, uint64_t limit_len, struct reach_cache **ret)
{
	uid_t uid = 0;
	_cleanup_free_ char *above = strdup(root);
	char *slash = above ? strrchr(above, '/') : NULL;
	if (!above)
		return &err_nomem;
	/* The store may not have been used yet. */
	if (slash)
		*slash = '\0';
	struct err *e = *above && access(above, F_OK) ? file_make_dirs(above) : NULL;
	if (!e)
		e = make_folder(root, true, &uid);
	for (size_t i = 0; i < ARRAY_LEN(folders) && !e; i++) {
		_cleanup_free_ char *path = NULL;
		if (asprintf(&path, "%s/%s", root, folders[i]) < 0)
			return &err_nomem;
		e = make_folder(path, false, &uid);
	}
	if (e)
		return e;
	struct reach_cache *c = calloc(1, sizeof(*c));
	if (!c || !(c->root = strdup(root))) {
		free(c);
		return &err_nomem;
	}
	c->uid = uid;
	put_boot(c->boot);
	c->limit_len = limit_len ? limit_len : REACH_CACHE_LIMIT_LEN;
	*ret = c;
	return NULL;
}

void reach_cache_close(struct reach_cache *c)
{
	if (c)
		free(c->root);
	free(c);
}

/* ROOT/FOLDER/NAME, owned; null without memory. */
static char *path_of(const struct reach_cache *c, const char *folder, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s/%s", c->root, folder, name) < 0 ? NULL : path;
}

static void to_hex(const uint8_t *bytes, size_t len, char *ret)
{
	for (size_t i = 0; i < len; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* --- keys --- */

/* SHA-256 of fields, each with its length, so that none runs into the next. */
static struct err *hash_fields(const struct gdb_span *fields, size_t cnt, uint8_t ret[SHA256_LEN])
{
	struct sha256 *s = NULL;
	struct err *e = sha256_new(&s);
	for (size_t i = 0; i < cnt && !e; i++) {
		uint64_t len = fields[i].len;
		sha256_add(s, &len, sizeof(len));
		sha256_add(s, fields[i].s, fields[i].len);
	}
	if (!e)
		e = sha256_end(s, ret);
	sha256_free(s);
	return e;
}

static struct gdb_span text_span(const char *s)
{
	return gdb_span_make(s, strlen(s));
}

/* ANY is of all servers, and leads to what may be asked about; LAST leads to nothing: it keeps what
 * nothing else refers to, since two versions of it cannot be told apart. */
enum key_kind { KEY_ID, KEY_PATH, KEY_ANY, KEY_MISSING, KEY_LAST };

/* The name of an entry; false where what it is made of is not known. */
static bool key_of(enum key_kind kind, const char *peer, const char *path, const struct reach_meta *m, char ret[HEX_LEN])
{
	static const char *const names[] = {"id", "path", "any", "missing", "last"};
	if ((kind == KEY_ID || kind == KEY_ANY) && (!m->id_len || !m->has_len))
		return false;
	if (kind == KEY_PATH && (!m->has_len || !m->has_mtime))
		return false;
	struct gdb_span fields[5] = {text_span(names[kind])};
	size_t cnt = 1;
	if (kind != KEY_ANY)
		fields[cnt++] = text_span(peer);
	if (kind == KEY_ID || kind == KEY_ANY)
		fields[cnt++] = gdb_span_make(m->id, m->id_len);
	else
		fields[cnt++] = text_span(path);
	if (kind < KEY_MISSING)
		fields[cnt++] = gdb_span_make(&m->len, sizeof(m->len));
	if (kind == KEY_PATH)
		fields[cnt++] = gdb_span_make(&m->mtime, sizeof(m->mtime));
	uint8_t hash[SHA256_LEN];
	struct err *e = hash_fields(fields, cnt, hash);
	if (!e)
		to_hex(hash, sizeof(hash), ret);
	err_free(e);
	return !e;
}

/* --- entries --- */

void reach_entry_put(struct buf *out, const struct reach_entry *e)
{
	buf_add_str(out, "scry-remote 1\nsha256 ");
	buf_add_hexbytes(out, e->sha256, sizeof(e->sha256));
	buf_printf(out, "\nlen %llu\nblob %llu %lld %lld\nboot %s\nid %s\npeer ", (unsigned long long)e->len, (unsigned long long)e->ino,
		   (long long)e->mtime_ns, (long long)e->ctime_ns, e->boot, e->id);
	buf_add_hexbytes(out, (const uint8_t *)e->peer, strlen(e->peer));
	buf_add_str(out, "\npath ");
	buf_add_hexbytes(out, (const uint8_t *)e->path, strlen(e->path));
	buf_add_str(out, "\n");
}

static bool take_i64(struct gdb_span *s, int64_t *ret)
{
	bool is_negative = gdb_skip(s, "-");
	uint64_t v;
	if (!gdb_take_dec(s, &v) || v > INT64_MAX)
		return false;
	*ret = is_negative ? -(int64_t)v : (int64_t)v;
	return true;
}

/* A line NAME and hex digits to text of less than `cap` bytes without a NUL. */
static bool take_text(struct gdb_span *s, const char *name, char *ret, size_t cap)
{
	struct gdb_span line;
	struct buf plain = {0};
	bool is_good = gdb_skip(s, name) && gdb_next_field(s, '\n', &line) && gdb_unhex(line, cap - 1, &plain) &&
		       (!plain.len || !memchr(plain.data, 0, plain.len));
	if (is_good) {
		if (plain.len)
			memcpy(ret, plain.data, plain.len);
		ret[plain.len] = '\0';
	}
	buf_fini(&plain);
	return is_good;
}

static bool read_entry(struct gdb_span s, struct reach_entry *ret)
{
	struct gdb_span line;
	struct buf sha = {0};
	bool is_good = gdb_skip(&s, "scry-remote 1\nsha256 ") && gdb_next_field(&s, '\n', &line) && gdb_unhex(line, SHA256_LEN, &sha) &&
		       sha.len == SHA256_LEN;
	if (is_good)
		memcpy(ret->sha256, sha.data, SHA256_LEN);
	buf_fini(&sha);
	if (!is_good || !gdb_skip(&s, "len ") || !gdb_take_dec(&s, &ret->len) || !gdb_skip(&s, "\nblob ") || !gdb_take_dec(&s, &ret->ino) ||
	    !gdb_skip(&s, " ") || !take_i64(&s, &ret->mtime_ns) || !gdb_skip(&s, " ") || !take_i64(&s, &ret->ctime_ns) ||
	    !gdb_skip(&s, "\nboot ") || !take_boot(&s, ret->boot) || !gdb_skip(&s, "id "))
		return false;
	if (!gdb_next_field(&s, '\n', &line) || line.len >= sizeof(ret->id))
		return false;
	for (size_t i = 0; i < line.len; i++) {
		if (gdb_digit(line.s[i]) < 0)
			return false;
		ret->id[i] = line.s[i];
	}
	ret->id[line.len] = '\0';
	return take_text(&s, "peer ", ret->peer, sizeof(ret->peer)) && take_text(&s, "path ", ret->path, sizeof(ret->path)) && !s.len;
}

bool reach_entry_read(const char *text, size_t len, struct reach_entry *ret)
{
	struct reach_entry e = {0};
	struct buf again = {0};
	bool is_good = read_entry(gdb_span_make(text, len), &e);
	if (is_good) {
		/* One spelling of each: what was changed by hand is nothing we wrote. */
		reach_entry_put(&again, &e);
		is_good = !again.failed && again.len == len && !memcmp(again.data, text, len);
	}
	buf_fini(&again);
	if (is_good)
		*ret = e;
	return is_good;
}

/* A small file whole; false when it is not to be had. */
static bool read_small(const char *path, uid_t uid, char *ret, size_t cap, size_t *ret_len, struct stat *ret_stat)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, ret_stat) || !S_ISREG(ret_stat->st_mode) || ret_stat->st_uid != uid)
		return false;
	ssize_t n = read(fd, ret, cap);
	*ret_len = n < 0 ? 0 : (size_t)n;
	return n >= 0 && (size_t)n < cap;
}

static bool load_entry(const struct reach_cache *c, const char *path, struct reach_entry *ret, struct stat *ret_stat)
{
	char *text = malloc(MAX_ENTRY_LEN);
	size_t len = 0;
	bool is_good = text && read_small(path, c->uid, text, MAX_ENTRY_LEN, &len, ret_stat) && reach_entry_read(text, len, ret);
	free(text);
	return is_good;
}

static int64_t ns_of(struct timespec ts)
{
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static bool is_as_noted(const struct reach_cache *c, const struct reach_entry *e, const struct stat *st)
{
	return (uint64_t)st->st_size == e->len && st->st_ino == e->ino && ns_of(st->st_mtim) == e->mtime_ns &&
	       ns_of(st->st_ctim) == e->ctime_ns && *c->boot && !strcmp(c->boot, e->boot);
}

static void note(const struct reach_cache *c, struct reach_entry *e, const struct stat *st)
{
	e->ino = st->st_ino;
	e->mtime_ns = ns_of(st->st_mtim);
	e->ctime_ns = ns_of(st->st_ctim);
	memcpy(e->boot, c->boot, sizeof(e->boot));
}

/* Whole or not at all for everybody who looks, but not synced: an entry is worth nothing after a power cut, and what is left of it is no
 * entry. */
static struct err *write_small(const char *path, const void *bytes, size_t len)
{
	_cleanup_free_ char *tmp = NULL;
	char *slash = strrchr(path, '/');
	if (asprintf(&tmp, "%.*s/.new.XXXXXX", (int)(slash - path), path) < 0)
		return &err_nomem;
	int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_os(errno, "%s: cannot write", path);
	struct err *e = write(fd, bytes, len) == (ssize_t)len ? NULL : err_os(errno ? errno : ENOSPC, "%s: cannot write", path);
	if (close(fd) && !e)
		e = err_os(errno, "%s: cannot close", path);
	if (!e && rename(tmp, path))
		e = err_os(errno, "%s: cannot rename into place", path);
	if (e)
		unlink(tmp);
	return e;
}

static struct err *put_entry(struct reach_cache *c, const char *key, const struct reach_entry *e)
{
	_cleanup_free_ char *path = path_of(c, "keys", key);
	struct buf text = {0};
	reach_entry_put(&text, e);
	struct err *err = !path || text.failed ? &err_nomem : write_small(path, text.data, text.len);
	buf_fini(&text);
	return err;
}

/* The same entry under another key: another name of it where that can be, which costs next to nothing. */
static struct err *link_entry(struct reach_cache *c, const char *key, const char *other, const struct reach_entry *e)
{
	_cleanup_free_ char *from = path_of(c, "keys", key);
	_cleanup_free_ char *to = path_of(c, "keys", other);
	if (!from || !to)
		return &err_nomem;
	return link(from, to) ? put_entry(c, other, e) : NULL;
}

/* Whether the bytes of a blob have the hash its name says. */
static bool is_intact(int fd, const uint8_t sha256[SHA256_LEN], uint64_t want_len)
{
	struct sha256 *s = NULL;
	struct err *e = sha256_new(&s);
	uint8_t *bytes = malloc(1 << 20), got[SHA256_LEN];
	uint64_t len = 0;
	ssize_t n = -1;
	if (!e && bytes) {
		while ((n = read(fd, bytes, 1 << 20)) > 0) {
			sha256_add(s, bytes, (size_t)n);
			len += (uint64_t)n;
		}
		e = sha256_end(s, got);
	}
	bool is_good = !e && n == 0 && len == want_len && !memcmp(got, sha256, SHA256_LEN);
	err_free(e);
	sha256_free(s);
	free(bytes);
	return is_good;
}

static char *blob_path(const struct reach_cache *c, const uint8_t sha256[SHA256_LEN])
{
	char hex[HEX_LEN];
	to_hex(sha256, SHA256_LEN, hex);
	return path_of(c, "blobs", hex);
}

/* The blob of an entry, if it is there and unharmed; read whole when it was touched, or `fully`. One that is damaged is removed. */
static bool check_blob(struct reach_cache *c, struct reach_entry *e, bool fully, char **ret_path, bool *ret_moved)
{
	_cleanup_free_ char *path = blob_path(c, e->sha256);
	_cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	*ret_moved = !is_as_noted(c, e, &st);
	if ((*ret_moved || fully) && !is_intact(fd, e->sha256, e->len)) {
		unlink(path);
		return false;
	}
	note(c, e, &st);
	*ret_path = take_ptr(path);
	return true;
}

/* A file that is here. */
static bool find(struct reach_cache *c, const char *key, char **ret_path, uint8_t ret_sha256[SHA256_LEN])
{
	_cleanup_free_ char *path = path_of(c, "keys", key);
	struct reach_entry e;
	struct stat st;
	bool has_moved;
	if (!path || !load_entry(c, path, &e, &st))
		return false;
	if (!check_blob(c, &e, false, ret_path, &has_moved)) {
		unlink(path);
		return false;
	}
	memcpy(ret_sha256, e.sha256, SHA256_LEN);
	/* That it was used is noted where it can be; the entry is right without. */
	if (has_moved)
		err_free(put_entry(c, key, &e));
	else
		utimensat(AT_FDCWD, path, NULL, 0);
	return true;
}

bool reach_cache_is_missing(struct reach_cache *c, const char *peer, const char *path)
{
	char key[HEX_LEN];
	struct stat st;
	if (!key_of(KEY_MISSING, peer, path, NULL, key))
		return false;
	_cleanup_free_ char *file = path_of(c, "keys", key);
	return file && !stat(file, &st) && time(NULL) - st.st_mtime < MISSING_S && time(NULL) >= st.st_mtime;
}

void reach_cache_put_missing(struct reach_cache *c, const char *peer, const char *path)
{
	char key[HEX_LEN];
	if (!key_of(KEY_MISSING, peer, path, NULL, key))
		return;
	_cleanup_free_ char *file = path_of(c, "keys", key);
	if (file)
		err_free(write_small(file, "missing\n", 8));
}

/* --- the sink --- */

/* What is held for a job between place() and publish(). */
struct hold {
	struct reach_fetch_job *job;
	int lock_fd;
	char key[HEX_LEN];
	struct hold *next;
};

static void release(struct reach_cache_sink *s, const struct reach_fetch_job *job)
{
	for (struct hold **at = (struct hold **)&s->own; *at;) {
		struct hold *h = *at;
		if (job && h->job != job) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		close(h->lock_fd);
		free(h);
	}
}

static int open_lock(const struct reach_cache *c, const char *name)
{
	_cleanup_free_ char *path = path_of(c, "locks", name);
	return path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
}

/* Takes the right to a key, which ends when the descriptor is closed: -1 and errno EWOULDBLOCK when somebody has it. Of one file each key
 * has a byte, so that no file has to be made for it. */
static int lock_key(const struct reach_cache *c, const char *key)
{
	char digits[16];
	snprintf(digits, sizeof(digits), "%.15s", key);
	struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)strtoull(digits, NULL, 16), .l_len = 1};
	_cleanup_close_ int fd = open_lock(c, "keys");
	if (fd >= 0 && !fcntl(fd, F_OFD_SETLK, &byte))
		return take_fd(fd);
	errno = errno == EACCES && fd >= 0 ? EWOULDBLOCK : errno;
	return -1;
}

/* Keeps those who publish (`how` LOCK_SH) and whoever prunes (LOCK_EX) apart. */
static int lock_all(const struct reach_cache *c, int how)
{
	_cleanup_close_ int fd = open_lock(c, "prune");
	return fd < 0 || flock(fd, how) ? -1 : take_fd(fd);
}

static bool take(struct reach_cache_sink *s, struct reach_fetch_job *job, const char *key, char **ret_path)
{
	uint8_t sha256[SHA256_LEN];
	if (!find(s->cache, key, ret_path, sha256))
		return false;
	*(char **)job->ctx = *ret_path;
	return true;
}

static bool is_here(struct reach_cache_sink *s, struct reach_fetch_job *job, bool is_last)
{
	char key[HEX_LEN], *path = NULL;
	/* A program that was patched has its build-id and length still: where a time is told, it has to be the same, too. */
	if (job->meta.has_mtime)
		return key_of(KEY_PATH, s->peer, job->path, &job->meta, key) && take(s, job, key, &path);
	return is_last && key_of(KEY_ID, s->peer, job->path, &job->meta, key) && take(s, job, key, &path);
}

static bool has_entry(const struct reach_cache *c, const char *key)
{
	_cleanup_free_ char *path = path_of(c, "keys", key);
	return path && !access(path, F_OK);
}

/* An entry whose blob may be the file, whoever had it: of the same build-id and length. */
static bool find_alike(struct reach_cache_sink *s, const struct reach_fetch_job *job, struct reach_entry *ret)
{
	char key[HEX_LEN];
	struct stat st;
	if (!key_of(KEY_ANY, s->peer, job->path, &job->meta, key))
		return false;
	_cleanup_free_ char *path = path_of(s->cache, "keys", key);
	return path && load_entry(s->cache, path, ret, &st);
}


/* What the beginning of a file is the beginning of. Without a build-id and a time of change nothing tells two versions apart: then nothing
 * is resumed. */
static struct err *identity_of(struct reach_cache_sink *s, struct reach_fetch_job *job, uint8_t ret[REACH_IDENTITY_LEN])
{
	const struct reach_meta *m = &job->meta;
	uint8_t random[16] = {0};
	job->is_at_once = !m->id_len && !m->has_mtime;
	if (job->is_at_once && getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_os(errno, "no random bytes");
	int64_t mtime = m->has_mtime ? m->mtime : -1;
	const struct gdb_span fields[] = {text_span(s->peer),
					  text_span(job->path),
					  gdb_span_make(&m->len, sizeof(m->len)),
					  gdb_span_make(&mtime, sizeof(mtime)),
					  gdb_span_make(m->id, m->id_len),
					  gdb_span_make(random, sizeof(random))};
	return hash_fields(fields, ARRAY_LEN(fields), ret);
}

/* Leads to a blob from all that names the file. */
static struct err *put_keys(struct reach_cache_sink *s, const struct reach_fetch_job *job, const uint8_t sha256[SHA256_LEN],
			    const struct stat *st)
{
	struct reach_cache *c = s->cache;
	struct reach_entry entry = {.len = job->meta.len};
	memcpy(entry.sha256, sha256, SHA256_LEN);
	note(c, &entry, st);
	snprintf(entry.peer, sizeof(entry.peer), "%s", s->peer);
	snprintf(entry.path, sizeof(entry.path), "%s", job->path);
	to_hex(job->meta.id, job->meta.id_len, entry.id);
	entry.id[2 * job->meta.id_len] = '\0';
	static const enum key_kind kinds[] = {KEY_PATH, KEY_ID, KEY_ANY, KEY_LAST};
	char first[HEX_LEN] = "";
	struct err *e = NULL;
	for (size_t i = 0; i < ARRAY_LEN(kinds) && !e; i++) {
		char key[HEX_LEN];
		if ((*first && kinds[i] == KEY_LAST) || !key_of(kinds[i], s->peer, job->path, &job->meta, key))
			continue;
		e = *first ? link_entry(c, first, key, &entry) : put_entry(c, key, &entry);
		if (!*first)
			memcpy(first, key, sizeof(first));
	}
	return e;
}

/* Whether the same bytes are here from elsewhere, which their SHA-256 proves and nothing less: `*ret`, and the job has them; or they may
 * be, and the server has not been asked yet. */
static struct err *prove(struct reach_cache_sink *s, struct reach_fetch_job *job, bool *ret)
{
	struct reach_cache *c = s->cache;
	struct reach_entry *alike = calloc(1, sizeof(*alike));
	_cleanup_free_ char *path = NULL;
	struct err *e = NULL;
	struct stat st;
	bool has_moved;
	if (!alike)
		return &err_nomem;
	*ret = find_alike(s, job, alike);
	if (*ret && job->is_sha256_asked)
		*ret = job->has_sha256 && !memcmp(job->sha256, alike->sha256, SHA256_LEN) && check_blob(c, alike, false, &path, &has_moved) &&
		       !stat(path, &st);
	if (*ret && job->is_sha256_asked) {
		e = put_keys(s, job, alike->sha256, &st);
		if (!e)
			*(char **)job->ctx = take_ptr(path);
	}
	free(alike);
	return e;
}

/* The name of what has come of a file, the same for all its versions. */
static bool part_key(const struct reach_cache_sink *s, const struct reach_fetch_job *job, char ret[HEX_LEN])
{
	struct reach_meta no_time = job->meta;
	no_time.has_mtime = true;
	return key_of(KEY_ID, s->peer, job->path, &job->meta, ret) || key_of(KEY_PATH, s->peer, job->path, &no_time, ret);
}

static struct err *place(void *ctx, struct reach_fetch_job *job, bool is_last, enum reach_place *ret, struct reach_part **ret_part)
{
	struct reach_cache_sink *s = ctx;
	struct reach_cache *c = s->cache;
	if (is_here(s, job, is_last)) {
		*ret = REACH_PLACE_HAS;
		return NULL;
	}
	if (!is_last) {
		char key[HEX_LEN];
		bool has_id = key_of(KEY_ID, s->peer, job->path, &job->meta, key);
		job->is_new = job->meta.has_mtime || (has_id && !has_entry(c, key));
		/* What was begun before need not begin again. */
		if (job->is_new && part_key(s, job, key)) {
			_cleanup_free_ char *part = path_of(c, "partial", key);
			job->is_new = part && access(part, F_OK);
		}
		*ret = REACH_PLACE_LATER;
		return NULL;
	}
	bool is_alike = false;
	struct err *e = prove(s, job, &is_alike);
	if (e || is_alike) {
		*ret = job->is_sha256_asked ? REACH_PLACE_HAS : REACH_PLACE_PROVE;
		return e;
	}
	struct hold *h = calloc(1, sizeof(*h));
	if (!h)
		return &err_nomem;
	if (!part_key(s, job, h->key)) {
		free(h);
		return sha256_try();
	}
	_cleanup_free_ char *part_path = path_of(c, "partial", h->key);
	h->job = job;
	h->lock_fd = lock_key(c, h->key);
	if (h->lock_fd < 0) {
		int failed = errno;
		free(h);
		*ret = REACH_PLACE_BUSY;
		return failed == EWOULDBLOCK ? NULL : err_os(failed, "%s/locks: cannot lock", c->root);
	}
	h->next = s->own;
	s->own = h;
	/* Whoever had the lock before may have fetched it. */
	if (is_here(s, job, true)) {
		release(s, job);
		*ret = REACH_PLACE_HAS;
		return NULL;
	}
	uint8_t identity[REACH_IDENTITY_LEN];
	e = identity_of(s, job, identity);
	if (!e)
		e = !part_path ? &err_nomem : reach_part_open(part_path, identity, job->meta.len, ret_part);
	if (e)
		release(s, job);
	*ret = REACH_PLACE_PART;
	return e;
}

/* Blob first, entries after: an entry never leads to what is not there. Nobody prunes meanwhile. */
static struct err *publish(void *ctx, struct reach_fetch_job *job, struct reach_part *part, const uint8_t sha256[SHA256_LEN])
{
	struct reach_cache_sink *s = ctx;
	struct reach_cache *c = s->cache;
	_cleanup_free_ char *path = blob_path(c, sha256);
	_cleanup_close_ int prune_fd = lock_all(c, LOCK_SH);
	struct stat st;
	struct err *e = !path	       ? &err_nomem
			: prune_fd < 0 ? err_os(errno, "%s/locks: cannot lock", c->root)
				       : reach_part_publish(part, path, 0400);
	reach_part_close(part);
	if (!e && stat(path, &st))
		e = err_os(errno, "%s", path);
	if (e) {
		release(s, job);
		return e;
	}
	e = put_keys(s, job, sha256, &st);
	release(s, job);
	if (!e)
		*(char **)job->ctx = take_ptr(path);
	return e;
}

static void give_up(void *ctx, struct reach_fetch_job *job)
{
	release(ctx, job);
}

struct err *reach_cache_sink_init(struct reach_cache_sink *s, struct reach_cache *c, const char *peer)
{
	*s = (struct reach_cache_sink){
		.sink = {.place = place, .publish = publish, .give_up = give_up, .ctx = s}, .cache = c, .peer = peer};
	return strlen(peer) < sizeof(((struct reach_entry *)NULL)->peer) ? NULL
									 : err_new(ERR_INVALID, "the name of the server is too long");
}

void reach_cache_sink_fini(struct reach_cache_sink *s)
{
	release(s, NULL);
}

/* --- looking after it --- */

struct rows {
	const struct reach_cache *c;
	struct reach_cache_row *all;
	char (*keys)[HEX_LEN]; /* in step with it */
	size_t cnt, cap;
};

static bool add_row(struct rows *r, const struct reach_cache_row *row, const char *key)
{
	if (r->cnt == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 64;
		struct reach_cache_row *all = realloc(r->all, cap * sizeof(*all));
		if (!all)
			return false;
		r->all = all;
		char(*keys)[HEX_LEN] = realloc(r->keys, cap * sizeof(*keys));
		if (!keys)
			return false;
		r->keys = keys;
		r->cap = cap;
	}
	r->all[r->cnt] = *row;
	memcpy(r->keys[r->cnt++], key, HEX_LEN);
	return true;
}

/* Calls `fn` for each file of a folder whose name is 64 digits, perhaps with `suffix`. */
static struct err *each(const struct reach_cache *c, const char *folder, struct err *(*fn)(void *ctx, const char *path, const char *name),
			void *ctx)
{
	_cleanup_free_ char *path = path_of(c, folder, "");
	DIR *dir = path ? opendir(path) : NULL;
	if (!dir)
		return path ? err_os(errno, "%s", path) : &err_nomem;
	struct err *e = NULL;
	for (struct dirent *d; !e && (d = readdir(dir));) {
		if (d->d_name[0] == '.')
			continue;
		_cleanup_free_ char *file = path_of(c, folder, d->d_name);
		e = file ? fn(ctx, file, d->d_name) : &err_nomem;
	}
	closedir(dir);
	return e;
}

static struct err *collect(void *ctx, const char *path, const char *name)
{
	struct reach_cache_row row = {0};
	struct stat st;
	if (strlen(name) != HEX_LEN - 1 || !load_entry(((struct rows *)ctx)->c, path, &row.entry, &st))
		return NULL;
	row.used_s = st.st_mtime;
	return add_row(ctx, &row, name) ? NULL : &err_nomem;
}

static int by_use(const void *a, const void *b)
{
	const struct reach_cache_row *x = a, *y = b;
	if (x->used_s != y->used_s)
		return x->used_s < y->used_s ? 1 : -1;
	return memcmp(x->entry.sha256, y->entry.sha256, SHA256_LEN);
}

static bool is_listed(const struct reach_cache_row *rows, size_t cnt, const uint8_t sha256[SHA256_LEN])
{
	for (size_t i = 0; i < cnt; i++) {
		if (!memcmp(rows[i].entry.sha256, sha256, SHA256_LEN))
			return true;
	}
	return false;
}

struct err *reach_cache_list(struct reach_cache *c, bool verify, struct reach_cache_row **ret, size_t *ret_cnt)
{
	struct rows r = {.c = c};
	struct err *e = each(c, "keys", collect, &r);
	free(r.keys);
	if (e) {
		free(r.all);
		return e;
	}
	if (r.cnt)
		qsort(r.all, r.cnt, sizeof(*r.all), by_use);
	size_t cnt = 0;
	for (size_t i = 0; i < r.cnt; i++) {
		if (is_listed(r.all, cnt, r.all[i].entry.sha256))
			continue;
		struct reach_cache_row row = r.all[i];
		_cleanup_free_ char *path = NULL;
		_cleanup_free_ char *blob = blob_path(c, row.entry.sha256);
		bool has_moved;
		if (!blob || access(blob, F_OK))
			continue;
		if (verify)
			row.is_damaged = !check_blob(c, &row.entry, true, &path, &has_moved);
		r.all[cnt++] = row;
	}
	*ret = r.all;
	*ret_cnt = cnt;
	return NULL;
}

struct prune {
	struct reach_cache *c;
	struct rows rows;
	uint64_t freed_len;
	bool is_all;
};

static uint64_t len_at(const char *path)
{
	struct stat st;
	return stat(path, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

static struct err *prune_blob(void *ctx, const char *path, const char *name)
{
	struct prune *p = ctx;
	uint8_t sha256[SHA256_LEN] = {0};
	struct buf plain = {0};
	if (gdb_unhex(text_span(name), SHA256_LEN, &plain) && plain.len == SHA256_LEN)
		memcpy(sha256, plain.data, SHA256_LEN);
	buf_fini(&plain);
	uint64_t len = len_at(path);
	if (!is_listed(p->rows.all, p->rows.cnt, sha256) && !unlink(path))
		p->freed_len += len;
	return NULL;
}

/* What was left half fetched, unless somebody is at it. */
static struct err *prune_partial(void *ctx, const char *path, const char *name)
{
	struct prune *p = ctx;
	struct stat st;
	char key[HEX_LEN];
	snprintf(key, sizeof(key), "%.64s", name);
	if (stat(path, &st) || (!p->is_all && time(NULL) - st.st_mtime < PARTIAL_S))
		return NULL;
	_cleanup_close_ int fd = lock_key(p->c, key);
	uint64_t len = len_at(path);
	if (fd >= 0 && !unlink(path))
		p->freed_len += len;
	return NULL;
}

/* An entry to choose from; those of files that were missing a while ago, and what is no entry, go. */
static struct err *prune_key(void *ctx, const char *path, const char *name)
{
	struct prune *p = ctx;
	struct reach_cache_row row = {0};
	struct stat st;
	if (load_entry(p->c, path, &row.entry, &st)) {
		row.used_s = st.st_mtime;
		return strlen(name) != HEX_LEN - 1 || add_row(&p->rows, &row, name) ? NULL : &err_nomem;
	}
	if (!stat(path, &st) && time(NULL) - st.st_mtime >= MISSING_S)
		unlink(path);
	return NULL;
}

struct err *reach_cache_prune(struct reach_cache *c, uint64_t limit_len, uint64_t *ret_freed_len)
{
	_cleanup_close_ int fd = lock_all(c, LOCK_EX);
	if (fd < 0)
		return err_os(errno, "%s/locks: cannot lock", c->root);
	struct prune p = {.c = c, .rows = {.c = c}, .is_all = !limit_len};
	if (limit_len == UINT64_MAX)
		limit_len = c->limit_len;
	struct err *e = each(c, "keys", prune_key, &p);
	/* Blobs by last use; the first that does not fit goes, and with it all that were used before. */
	uint64_t len = 0;
	size_t keep_cnt = 0;
	struct reach_cache_row *rows = NULL;
	if (!e && p.rows.cnt) {
		rows = malloc(p.rows.cnt * sizeof(*rows));
		if (!rows)
			e = &err_nomem;
	}
	if (!e && p.rows.cnt) {
		memcpy(rows, p.rows.all, p.rows.cnt * sizeof(*rows));
		qsort(rows, p.rows.cnt, sizeof(*rows), by_use);
		for (size_t i = 0; i < p.rows.cnt; i++) {
			if (is_listed(rows, keep_cnt, rows[i].entry.sha256))
				continue;
			len += rows[i].entry.len;
			if (len > limit_len)
				break;
			rows[keep_cnt++] = rows[i];
		}
		for (size_t i = 0; i < p.rows.cnt; i++) {
			_cleanup_free_ char *key_path = path_of(c, "keys", p.rows.keys[i]);
			if (key_path && !is_listed(rows, keep_cnt, p.rows.all[i].entry.sha256))
				unlink(key_path);
		}
	}
	free(p.rows.all);
	free(p.rows.keys);
	p.rows = (struct rows){.all = rows, .cnt = keep_cnt};
	if (!e)
		e = each(c, "blobs", prune_blob, &p);
	if (!e)
		e = each(c, "partial", prune_partial, &p);
	free(rows);
	*ret_freed_len = p.freed_len;
	return e;
}
