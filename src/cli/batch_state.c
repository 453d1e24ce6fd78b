/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was done, as lines of JSON in OUT/batch.jsonl: first what the batch is, then a line for each file when it is done. A line is written by
 * one write at the end of the file, after the answer it tells of has its name. So the process can be killed between any two instructions: what has
 * no whole line is done again. The lock is the process's (fcntl(2)), so the kernel gives it back.
 */
#include "cli/batch_int.h"

#include "base/map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define STATE_NAME "batch.jsonl"

static const char *const status_names[BATCH_STATUS_COUNT] = {"waiting", "done", "failed", "timeout", "crashed", "no_program", "skipped"};

const char *batch_status_name(enum batch_status s)
{
	return status_names[s];
}

/* --- lines --- */

static void put_str(struct json *j, const char *key, const char *s)
{
	if (!*s)
		return;
	json_key(j, key);
	json_str(j, s);
}

static void put_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

void batch_put_item(const struct batch *b, const struct batch_item *it, struct buf *out)
{
	const struct batch_item *of = it->same_as == BATCH_NONE ? it : &b->items.data[it->same_as];
	struct json j = json_make(out);
	json_obj(&j);
	put_str(&j, "file", it->name);
	put_str(&j, "id", it->id);
	put_str(&j, "status", batch_status_name(it->status));
	put_u64(&j, "exit", (uint64_t)it->exit);
	put_str(&j, "kind", it->kind);
	put_str(&j, "why", it->why);
	put_str(&j, "fix", it->fix);
	if (of != it)
		put_str(&j, "same_as", of->name);
	if (it->has_answer) {
		struct buf name = {0};
		batch_out_name(of, &name);
		json_key(&j, "out");
		json_strn(&j, name.data ? name.data : "", name.len);
		buf_fini(&name);
		put_u64(&j, "bytes", it->bytes);
	}
	put_u64(&j, "ms", it->ms);
	put_u64(&j, "size", it->size);
	json_key(&j, "mtime_ns");
	json_i64(&j, it->mtime_ns);
	if (it->has_sha) {
		json_key(&j, "sha256");
		json_hex(&j, it->sha, sizeof(it->sha));
	}
	json_end_obj(&j);
	buf_add_ch(out, '\n');
}

static struct err *append(const struct batch *b, const struct buf *line)
{
	if (line->failed)
		return &err_nomem;
	ssize_t n = write(b->state_fd, line->data, line->len);
	if (n < 0)
		return err_os(errno == EACCES ? EIO : errno, "%s/%s", b->out, STATE_NAME);
	return (size_t)n == line->len ? NULL : err_os(ENOSPC, "%s/%s", b->out, STATE_NAME);
}

struct err *batch_state_add(struct batch *b, const struct batch_item *it)
{
	_cleanup_buf_ struct buf line = {0};
	if (it->is_known)
		return NULL;
	batch_put_item(b, it, &line);
	return append(b, &line);
}

static void put_params(const struct cli *c, struct json *j)
{
	json_key(j, "params");
	json_obj(j);
	for (size_t i = 0; i < ops_param_cnt(c->op); i++) {
		const struct ops_value *v = &c->args.values[i];
		if (!v->is_set)
			continue;
		json_key(j, c->op->params[i].name);
		if (v->text_cnt)
			json_arr(j);
		for (size_t k = 0; k < v->text_cnt; k++)
			json_str(j, v->texts[k]);
		if (v->text_cnt)
			json_end_arr(j);
		else if (v->text)
			json_str(j, v->text);
		else
			json_bool(j, true);
	}
	json_end_obj(j);
}

/* What the answers depend on. */
static void put_header(const struct batch *b, struct buf *out)
{
	struct json j = json_make(out);
	json_obj(&j);
	put_u64(&j, "scry_batch", 1);
	put_str(&j, "op", b->c->op->name);
	put_params(b->c, &j);
	json_key(&j, "load");
	json_arr(&j);
	for (size_t i = 0; i < ARRAY_LEN(b->c->load); i++)
		json_str(&j, b->c->load[i] ? b->c->load[i] : "");
	json_end_arr(&j);
	put_str(&j, "dir", b->dir ? b->dir : "");
	json_end_obj(&j);
	buf_add_ch(out, '\n');
}

/* --- what an earlier run has done --- */

static bool is_answer_there(const struct batch *b, const struct batch_item *it, uint64_t bytes)
{
	struct stat st;
	_cleanup_buf_ struct buf name = {0};
	batch_out_name(it, &name);
	buf_add_ch(&name, 0);
	return !name.failed && !fstatat(b->out_fd, name.data, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes;
}

static uint64_t num_of(const struct ops_doc *d, const char *key)
{
	const struct ops_doc *v = ops_doc_find(d, key);
	return v && v->kind == OPS_DOC_INT ? (uint64_t)v->num : 0;
}

static const char *text_of(const struct ops_doc *d, const char *key, struct arena *a)
{
	const char *s = ops_doc_str(d, key), *copy = s ? arena_strndup(a, s, strlen(s)) : NULL;
	return copy ? copy : "";
}

static bool read_sha(const char *hex, uint8_t ret[32])
{
	for (unsigned i = 0; hex && i < 32; i++) {
		unsigned v;
		if (sscanf(hex + 2 * i, "%2x", &v) != 1)
			return false;
		ret[i] = (uint8_t)v;
	}
	return hex && strlen(hex) == 64;
}

/* The newest line counts. What is no regular file, or another's twin, is found to be that again. */
static void take_over(struct batch *b, struct batch_item *it, const struct ops_doc *d)
{
	const char *status = ops_doc_str(d, "status");
	enum batch_status s = BATCH_DONE;
	bool is_same_file = num_of(d, "size") == it->size && (int64_t)num_of(d, "mtime_ns") == it->mtime_ns;
	bool has_answer = ops_doc_find(d, "out");
	it->is_known = !it->is_file || ops_doc_find(d, "same_as");
	while (s < BATCH_STATUS_COUNT && (!status || strcmp(status, batch_status_name(s))))
		s++;
	if (it->is_known || !is_same_file || s == BATCH_STATUS_COUNT)
		return;
	if (has_answer && !is_answer_there(b, it, num_of(d, "bytes")))
		return;
	if (b->is_retry && s != BATCH_DONE && s != BATCH_NO_PROGRAM)
		return;
	it->status = s;
	it->is_known = true;
	it->has_answer = has_answer;
	it->bytes = num_of(d, "bytes");
	it->ms = num_of(d, "ms");
	it->exit = (int)num_of(d, "exit");
	it->kind = text_of(d, "kind", &b->c->arena);
	it->why = text_of(d, "why", &b->c->arena);
	it->fix = text_of(d, "fix", &b->c->arena);
	it->has_sha = read_sha(ops_doc_str(d, "sha256"), it->sha);
}

static uint64_t id_key(const char *id)
{
	char half[17];
	snprintf(half, sizeof(half), "%.16s", id);
	return strtoull(half, NULL, 16);
}

static struct err *read_lines(struct batch *b, const char *text, size_t len)
{
	_cleanup_map_ struct map ids = {0};
	struct arena a = {0};
	for (size_t i = 0; i < b->items.cnt; i++) {
		if (!map_put(&ids, id_key(b->items.data[i].id), (uint32_t)i))
			return &err_nomem;
	}
	for (const char *end; len && (end = memchr(text, '\n', len));) {
		struct ops_doc d;
		uint32_t i;
		/* A line that is none says nothing, and its file is done again. */
		struct err *e = ops_doc_parse(STATE_NAME, text, (size_t)(end - text), &a, &d);
		const char *id = e ? NULL : ops_doc_str(&d, "id");
		err_free(e);
		if (id && map_find(&ids, id_key(id), &i) && !strcmp(b->items.data[i].id, id))
			take_over(b, &b->items.data[i], &d);
		arena_reset(&a);
		len -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	arena_fini(&a);
	return NULL;
}

/* The end of a line that was being written is taken away. */
static struct err *cut_half_line(struct batch *b, uint64_t *ret_len)
{
	char block[4096];
	off_t len = lseek(b->state_fd, 0, SEEK_END);
	while (len > 0) {
		off_t from = MAX(len - (off_t)sizeof(block), 0);
		ssize_t n = pread(b->state_fd, block, (size_t)(len - from), from);
		if (n <= 0)
			return err_os(n ? errno : EIO, "%s/%s", b->out, STATE_NAME);
		const char *end = memrchr(block, '\n', (size_t)n);
		len = end ? from + (end - block) + 1 : from;
		if (end)
			break;
	}
	*ret_len = (uint64_t)len;
	return len < lseek(b->state_fd, 0, SEEK_END) && ftruncate(b->state_fd, len) ? err_os(errno, "%s/%s", b->out, STATE_NAME) : NULL;
}

static struct err *other_batch(const struct batch *b)
{
	return err_fix(err_new(ERR_INVALID, "%s: holds the answers of another batch", b->out), "its first line of " STATE_NAME
		       " says which; give --out another folder");
}

/* The lock is gone when any descriptor of the file is closed (fcntl(2)), so there is but one. */
static struct err *load(const struct batch *b, uint64_t len, struct buf *ret)
{
	while (ret->len < len) {
		char *room = buf_room(ret, len - ret->len);
		ssize_t n = room ? pread(b->state_fd, room, len - ret->len, (off_t)ret->len) : 0;
		if (n <= 0)
			return room ? err_os(n ? errno : EIO, "%s/%s", b->out, STATE_NAME) : &err_nomem;
		ret->len += (size_t)n;
	}
	return NULL;
}

static struct err *resume(struct batch *b)
{
	_cleanup_buf_ struct buf header = {0}, text = {0};
	uint64_t len;
	struct err *e = cut_half_line(b, &len);
	if (!e)
		e = load(b, len, &text);
	put_header(b, &header);
	if (e || header.failed)
		return e ? e : &err_nomem;
	if (!text.len)
		return append(b, &header);
	if (text.len < header.len || memcmp(text.data, header.data, header.len))
		return other_batch(b);
	return read_lines(b, text.data + header.len, text.len - header.len);
}

/* What a killed run was writing. */
static void remove_parts(const struct batch *b)
{
	int fd = openat(b->out_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *f; d && (f = readdir(d));) {
		size_t len = strlen(f->d_name);
		if (len > 10 && strstr(f->d_name, ".json.") && !strcmp(f->d_name + len - 5, ".part"))
			unlinkat(b->out_fd, f->d_name, 0);
	}
	if (d)
		closedir(d);
}

struct err *batch_out_open(struct batch *b)
{
	struct stat st;
	if (mkdir(b->out, 0777) && errno != EEXIST)
		return err_os(errno == ENOENT ? EIO : errno, "%s", b->out);
	b->out_fd = open(b->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->out_fd < 0 || fstat(b->out_fd, &st))
		return err_os(errno == ENOENT ? EIO : errno, "%s", b->out);
	b->out_dev = st.st_dev;
	b->out_ino = st.st_ino;
	return NULL;
}

struct err *batch_state_open(struct batch *b)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	b->state_fd = openat(b->out_fd, STATE_NAME, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (b->state_fd < 0)
		return err_os(errno == ENOENT ? EIO : errno, "%s/%s", b->out, STATE_NAME);
	if (fcntl(b->state_fd, F_SETLK, &lock))
		return errno == EACCES || errno == EAGAIN ? err_new(ERR_BUSY, "%s: another batch writes there", b->out)
							  : err_os(errno, "%s/%s: cannot be locked", b->out, STATE_NAME);
	struct err *e = resume(b);
	if (!e)
		remove_parts(b);
	return e;
}
