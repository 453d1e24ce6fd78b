/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a batch is to be done on. The id of an item is a hash of its name's bytes, so that it does not matter what JSON or a file system can
 * say of a name, and long enough that nobody can make up two names with the same.
 */
#include "cli/batch_int.h"

#include "base/map.h"
#include "session/ses_sha256.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BATCH_ITEMS_MAX 10000000

static struct err *set_id(struct batch_item *it)
{
	uint8_t sha[32];
	struct err *e = ses_sha256((const uint8_t *)it->name, strlen(it->name), NULL, NULL, NULL, sha);
	for (unsigned i = 0; !e && i < BATCH_ID_LEN / 2; i++)
		snprintf(it->id + 2 * i, 3, "%02x", sha[i]);
	return e;
}

void batch_out_name(const struct batch_item *it, struct buf *ret)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.";
	const char *slash = strrchr(it->name, '/'), *base = slash ? slash + 1 : it->name;
	for (unsigned i = 0; base[i] && i < 80; i++) {
		bool is_plain = strchr(plain, base[i]) && (i || (base[i] != '.' && base[i] != '-'));
		buf_add_ch(ret, is_plain ? base[i] : '_');
	}
	buf_add_ch(ret, '.');
	buf_add_str(ret, it->id);
	buf_add_str(ret, ".json");
}

static void skip(struct batch_item *it, const char *why)
{
	it->status = BATCH_SKIPPED;
	it->why = why;
}

static void fail(struct batch_item *it, int os_errno, const char *why)
{
	bool is_missing = os_errno == ENOENT || os_errno == ENOTDIR;
	it->status = BATCH_FAILED;
	it->exit = is_missing ? 3 : 4;
	it->kind = is_missing ? "bad_input" : "denied";
	it->why = is_missing ? "there is no such file" : why;
}

static const char *kind_of_file(mode_t mode)
{
	return S_ISDIR(mode) ? "is a folder" : S_ISFIFO(mode) ? "is a pipe" : S_ISSOCK(mode) ? "is a socket" : "is a device";
}

/* What stands under the name now, a link's end included. */
static void look(struct batch_item *it, bool is_linked)
{
	struct stat st;
	if (stat(it->path, &st)) {
		struct stat link;
		bool is_dangling = errno == ENOENT && !lstat(it->path, &link);
		if (is_dangling) {
			skip(it, "is a link to nothing");
			return;
		}
		fail(it, errno, "cannot be looked at");
		return;
	}
	it->size = (uint64_t)st.st_size;
	it->dev = st.st_dev;
	it->ino = st.st_ino;
	it->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (S_ISDIR(st.st_mode) && is_linked)
		skip(it, "is a link to a folder");
	else if (!S_ISREG(st.st_mode))
		skip(it, kind_of_file(st.st_mode));
	else if (!st.st_size) {
		it->status = BATCH_NO_PROGRAM;
		it->why = "is empty";
	} else {
		it->is_file = true;
	}
}

static struct err *add(struct batch *b, const char *name, const char *path, bool is_linked)
{
	struct batch_item it = {.name = name, .path = path, .same_as = BATCH_NONE, .kind = "", .why = "", .fix = ""};
	if (!name || !path)
		return &err_nomem;
	if (b->items.cnt >= BATCH_ITEMS_MAX)
		return err_new(ERR_BUDGET, "%s: has more than %d files", b->source, BATCH_ITEMS_MAX);
	struct err *e = set_id(&it);
	if (e)
		return e;
	look(&it, is_linked);
	return VEC_PUSH(&b->items, it) ? NULL : &err_nomem;
}

/* --- a folder --- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static struct err *add_entry(struct batch *b, const FTSENT *f, size_t skip_len)
{
	if (f->fts_info == FTS_D || f->fts_info == FTS_DP || f->fts_info == FTS_DOT)
		return NULL;
	const char *path = arena_strndup(&b->c->arena, f->fts_path, f->fts_pathlen);
	struct err *e = add(b, path ? path + skip_len : NULL, path, f->fts_info == FTS_SL || f->fts_info == FTS_SLNONE);
	/* What is in it is not known. */
	if (!e && f->fts_info == FTS_DNR)
		fail(&b->items.data[b->items.cnt - 1], f->fts_errno, "the folder cannot be read");
	return e;
}

static struct err *collect_folder(struct batch *b)
{
	char *const paths[] = {(char *)b->source, NULL};
	size_t skip_len = strlen(b->source);
	struct err *e = NULL;
	while (skip_len > 1 && b->source[skip_len - 1] == '/')
		skip_len--;
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	if (!fts)
		return err_os(errno, "%s", b->source);
	for (FTSENT *f; !e;) {
		errno = 0;
		f = fts_read(fts);
		if (!f && errno)
			e = err_os(errno, "%s: reading the folder", b->source);
		if (!f)
			break;
		bool is_out = f->fts_info == FTS_D && f->fts_statp->st_dev == b->out_dev && f->fts_statp->st_ino == b->out_ino;
		if (is_out)
			fts_set(fts, f, FTS_SKIP);
		/* The name below DIR begins behind its slash. */
		else
			e = add_entry(b, f, strspn(f->fts_path + MIN(skip_len, f->fts_pathlen), "/") + MIN(skip_len, f->fts_pathlen));
		if (atomic_load(cli_stop()))
			e = err_new(ERR_CANCELLED, "batch: stopped");
	}
	fts_close(fts);
	return e;
}

/* --- a list --- */

static struct err *collect_list(struct batch *b)
{
	const struct ses_call call = {.cancel = cli_stop()};
	char *text;
	size_t len;
	struct err *e = ops_doc_load(b->source, &call, &b->c->arena, &text, &len);
	if (e)
		return e;
	char end = memchr(text, 0, len) ? 0 : '\n';
	for (size_t at = 0; at < len && !e;) {
		const char *stop = memchr(text + at, end, len - at);
		size_t n = stop ? (size_t)(stop - text) - at : len - at;
		const char *name = arena_strndup(&b->c->arena, text + at, n);
		if (n)
			e = add(b, name, name, false);
		at += n + 1;
	}
	return e;
}

/* --- what is there twice --- */

static uint64_t id_key(const char *id)
{
	char half[17];
	snprintf(half, sizeof(half), "%.16s", id);
	return strtoull(half, NULL, 16);
}

/* A name that is in a list again says nothing new. */
static struct err *drop_repeated(struct batch *b)
{
	_cleanup_map_ struct map seen = {0};
	size_t kept = 0;
	for (size_t i = 0; i < b->items.cnt; i++) {
		uint64_t key = id_key(b->items.data[i].id);
		uint32_t was;
		if (map_find(&seen, key, &was) && !strcmp(b->items.data[was].id, b->items.data[i].id))
			continue;
		if (!map_put(&seen, key, (uint32_t)kept))
			return &err_nomem;
		b->items.data[kept++] = b->items.data[i];
	}
	b->items.cnt = kept;
	return NULL;
}

/* Only files that have the size of another can have its bytes. */
static struct err *mark_shared(struct batch *b)
{
	_cleanup_map_ struct map first = {0};
	for (size_t i = 0; i < b->items.cnt; i++) {
		struct batch_item *it = &b->items.data[i];
		uint32_t was;
		if (it->status != BATCH_WAITING)
			continue;
		if (map_find(&first, it->size, &was))
			it->is_shared = b->items.data[was].is_shared = true;
		else if (!map_put(&first, it->size, (uint32_t)i))
			return &err_nomem;
	}
	return NULL;
}

struct err *batch_collect(struct batch *b)
{
	struct err *e = b->dir ? collect_folder(b) : collect_list(b);
	if (!e)
		e = drop_repeated(b);
	return e ? e : mark_shared(b);
}
