/* SPDX-License-Identifier: Apache-2.0 */
/*
 * P.json: {"name":S, "id":HEX, "binaries":[{"path":P, "label":L, "sha256":HEX}]}. It comes from anywhere, so each value is
 * looked at and a fault is told with its line; a key that is none of these is a fault too, being a misspelt one most of
 * the time. The values come from the JSON reader, which has no lines; those are found by walking the text, which is known
 * to be well-formed by then.
 */
#include "session/project.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "session/ops_doc.h"
#include "session/project_int.h"
#include "session/ses_sha256.h"
#include "session/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TEXT_LEN_MAX ((size_t)4 << 20)
#define BINARY_MAX 4096
#define LABEL_LEN_MAX 200

/* --- lines --- */

struct walk { const char *p, *end; };

static void skip_blank(struct walk *w)
{
	while (w->p < w->end && strchr(" \t\r\n", *w->p))
		w->p++;
}

static void skip_string(struct walk *w)
{
	for (w->p++; w->p < w->end && *w->p != '"'; w->p++)
		w->p += *w->p == '\\' && w->p + 1 < w->end;
	w->p += w->p < w->end;
}

static void skip_value(struct walk *w)
{
	unsigned depth = 0;
	do {
		skip_blank(w);
		if (w->p >= w->end)
			return;
		if (*w->p == '"') {
			skip_string(w);
		} else if (strchr("{[", *w->p)) {
			depth++;
			w->p++;
		} else if (strchr("}]", *w->p)) {
			depth--;
			w->p++;
		} else if (strchr(",:", *w->p)) {
			w->p++;
		} else {
			while (w->p < w->end && !strchr(",:]} \t\r\n", *w->p))
				w->p++;
		}
	} while (depth);
}

/* From the brace of an object to the value of a key; false when no key is spelled so. */
static bool enter_member(struct walk *w, const char *key)
{
	size_t len = strlen(key);
	for (w->p++; w->p < w->end; w->p++) {
		skip_blank(w);
		if (w->p >= w->end || *w->p != '"')
			return false;
		const char *name = w->p + 1;
		skip_string(w);
		bool is_it = (size_t)(w->p - name) == len + 1 && !memcmp(name, key, len);
		skip_blank(w);
		w->p++; /* the colon */
		skip_blank(w);
		if (is_it)
			return true;
		skip_value(w);
		skip_blank(w);
	}
	return false;
}

static bool enter_item(struct walk *w, size_t i)
{
	for (w->p++; w->p < w->end; w->p++) {
		skip_blank(w);
		if (!i--)
			return true;
		skip_value(w);
		skip_blank(w);
	}
	return false;
}

/* Line of a key of the document, or of binary i (and of a key of it). */
struct spot { const char *key; size_t i; const char *sub; };

static unsigned line_of(const char *text, size_t len, struct spot at)
{
	struct walk w = {text, text + len}, best;
	skip_blank(&w);
	best = w;
	if (at.key && enter_member(&w, at.key)) {
		best = w;
		if (at.i != SIZE_MAX && enter_item(&w, at.i)) {
			best = w;
			if (at.sub && enter_member(&w, at.sub))
				best = w;
		}
	}
	unsigned line = 1;
	for (const char *p = text; p < best.p; p++)
		line += *p == '\n';
	return line;
}

/* --- reading --- */

struct reading {
	const char *text, *what;
	size_t len;
	struct arena *arena;
};

static struct err *fault(const struct reading *r, struct spot at, const char *why)
{
	return err_fix(err_new(ERR_INVALID, "%s: line %u: %s", r->what, line_of(r->text, r->len, at), why), "scry help project_create");
}

static const char *text_fault(const struct ops_doc *v, size_t max_len, bool is_label)
{
	if (v->kind != OPS_DOC_STRING)
		return "is not a string";
	if (!v->len)
		return "is empty";
	if (v->len > max_len)
		return "is too long";
	for (size_t i = 0, n; i < v->len; i += n) {
		uint32_t cp;
		n = utf8_next(v->s + i, v->len - i, &cp);
		if (!n || cp < 0x20 || cp == 0x7f || (cp >= 0x80 && cp < 0xa0) || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e))
			return "has control characters in it";
		if (is_label && (cp == '!' || cp == '/'))
			return "has '!' or '/' in it";
	}
	return NULL;
}

static struct err *check_text(const struct reading *r, struct spot at, const struct ops_doc *v, size_t max_len)
{
	const char *key = at.sub ? at.sub : at.key;
	const char *why = text_fault(v, max_len, !strcmp(key, "label"));
	return why ? fault(r, at, arena_printf(r->arena, "\"%s\" %s", key, why)) : NULL;
}

static struct err *read_binary_key(const struct reading *r, size_t i, const struct ops_doc *v, struct ses_project_entry *ret)
{
	struct spot at = {"binaries", i, v->key};
	struct err *e;
	if (!strcmp(v->key, "path")) {
		e = check_text(r, at, v, PATH_MAX - 1);
		ret->path = v->s;
	} else if (!strcmp(v->key, "label")) {
		e = check_text(r, at, v, LABEL_LEN_MAX);
		ret->label = v->s;
	} else if (!strcmp(v->key, "sha256")) {
		ret->has_sha256 = v->kind == OPS_DOC_STRING && v->len == 64 && store_unhex(v->s, 32, ret->sha256);
		e = ret->has_sha256 ? NULL : fault(r, at, "\"sha256\" is not 64 hexadecimal digits in lower case");
	} else {
		e = fault(r, at, "a binary has \"path\", \"label\" and \"sha256\", and this is none of them");
	}
	return e;
}

static struct err *read_binary(const struct reading *r, size_t i, const struct ops_doc *o, struct ses_project_text *t)
{
	struct spot at = {"binaries", i, NULL};
	struct ses_project_entry *ret = &t->list[i];
	*ret = (struct ses_project_entry){.line = line_of(r->text, r->len, at)};
	if (o->kind != OPS_DOC_OBJECT)
		return fault(r, at, "a binary is not an object");
	struct err *e = NULL;
	for (size_t k = 0; k < o->cnt && !e; k++)
		e = read_binary_key(r, i, &o->items[k], ret);
	if (!e && !ret->path)
		e = fault(r, at, "a binary has no \"path\"");
	for (size_t k = 0; k < i && !e; k++) {
		at.sub = "path";
		if (!strcmp(t->list[k].path, ret->path))
			e = fault(r, at, arena_printf(r->arena, "this path is in line %u already", t->list[k].line));
		at.sub = "label";
		if (!e && ret->label && t->list[k].label && !strcmp(t->list[k].label, ret->label))
			e = fault(r, at, arena_printf(r->arena, "this label is in line %u already", t->list[k].line));
	}
	return e;
}

static struct err *read_binaries(const struct reading *r, const struct ops_doc *v, struct ses_project_text *ret)
{
	struct spot at = {"binaries", SIZE_MAX, NULL};
	if (v->kind != OPS_DOC_LIST)
		return fault(r, at, "\"binaries\" is not a list");
	if (v->cnt > BINARY_MAX)
		return fault(r, at, "a project has at most 4096 binaries");
	ret->list = ARENA_ARRAY(r->arena, struct ses_project_entry, v->cnt + 1);
	struct err *e = ret->list ? NULL : &err_nomem;
	for (size_t i = 0; i < v->cnt && !e; i++)
		e = read_binary(r, i, &v->items[i], ret);
	ret->cnt = v->cnt;
	return e;
}

struct err *ses_project_parse(const char *text, size_t len, const char *what, struct arena *a, struct ses_project_text *ret)
{
	struct reading r = {.text = text, .what = what, .len = len, .arena = a};
	struct ses_project_text t = {.name = "", .id = ""};
	struct ops_doc doc;
	if (len > TEXT_LEN_MAX)
		return err_new(ERR_INVALID, "%s: line 1: is longer than 4 MB", what);
	struct err *e = ops_doc_parse(what, text, len, a, &doc);
	bool has_list = false;
	for (size_t i = 0; !e && i < doc.cnt; i++) {
		const struct ops_doc *v = &doc.items[i];
		struct spot at = {v->key, SIZE_MAX, NULL};
		if (!strcmp(v->key, "name")) {
			e = check_text(&r, at, v, LABEL_LEN_MAX);
			t.name = v->s;
		} else if (!strcmp(v->key, "id")) {
			if (v->kind != OPS_DOC_STRING || v->len != 32 || !store_unhex(v->s, 16, NULL))
				e = fault(&r, at, "\"id\" is not 32 hexadecimal digits in lower case");
			t.id = v->s;
		} else if (!strcmp(v->key, "binaries")) {
			has_list = true;
			e = read_binaries(&r, v, &t);
		} else {
			e = fault(&r, at, "a project has \"name\", \"id\" and \"binaries\", and this is none of them");
		}
	}
	if (!e && !has_list)
		e = fault(&r, (struct spot){NULL, SIZE_MAX, NULL}, "there is no list \"binaries\"");
	if (!e)
		*ret = t;
	return e;
}

struct err *ses_project_read(const char *file, struct arena *a, struct ses_project_text *ret)
{
	struct file *f = NULL;
	struct err *e = file_open(file, &f);
	if (e)
		return e;
	/* A copy: the file may be rewritten while it is read. */
	char *text = f->len <= TEXT_LEN_MAX ? arena_strndup(a, f->len ? (const char *)f->data : "", f->len) : NULL;
	if (f->len > TEXT_LEN_MAX)
		e = err_new(ERR_INVALID, "%s: line 1: is longer than 4 MB", file);
	else
		e = text ? ses_project_parse(text, f->len, file, a, ret) : &err_nomem;
	file_close(f);
	return e;
}

/* --- paths --- */

char *ses_project_dir(const char *file)
{
	_cleanup_free_ char *real = realpath(file, NULL);
	_cleanup_free_ char *up = NULL;
	if (!real) {
		/* It is not there yet; its folder is. */
		const char *slash = strrchr(file, '/');
		up = slash ? strndup(file, MAX((size_t)(slash - file), 1)) : strdup(".");
		return up ? realpath(up, NULL) : NULL;
	}
	*strrchr(real, '/') = 0;
	return strdup(*real ? real : "/");
}

char *ses_project_abs(const char *dir, const char *path)
{
	char *ret = NULL;
	if (*path == '/')
		return strdup(path);
	if (!strncmp(path, "./", 2))
		path += 2;
	return asprintf(&ret, "%s%s%s", dir, strcmp(dir, "/") ? "/" : "", path) < 0 ? NULL : ret;
}

char *ses_project_real(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *up = slash ? strndup(path, MAX((size_t)(slash - path), 1)) : strdup(".");
	_cleanup_free_ char *real = up ? realpath(up, NULL) : NULL;
	const char *name = slash ? slash + 1 : path;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return realpath(path, NULL);
	return real ? ses_project_abs(real, name) : NULL;
}

/* How the file spells a path: relative when it lies below the file's folder, so that the two can move together. */
static const char *spell(const char *dir, const char *abs)
{
	size_t len = strlen(dir);
	if (len > 1 && !strncmp(dir, abs, len) && abs[len] == '/' && abs[len + 1])
		return abs + len + 1;
	return abs;
}

/* --- writing --- */

static void put_member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_str(j, value);
}

/* A line a binary, for people and their version control. */
static struct err *write_text(const char *file, const struct ses_project_text *t)
{
	struct buf out = {0};
	struct json j = json_make(&out);
	json_obj(&j);
	if (*t->name)
		put_member(&j, "name", t->name);
	put_member(&j, "id", t->id);
	buf_add_str(&out, ",\n\"binaries\":[");
	for (size_t i = 0; i < t->cnt; i++) {
		const struct ses_project_entry *b = &t->list[i];
		j.comma = false;
		buf_add_str(&out, i ? ",\n" : "\n");
		json_obj(&j);
		put_member(&j, "path", b->path);
		if (b->label)
			put_member(&j, "label", b->label);
		if (b->has_sha256) {
			char hex[65];
			store_hex(b->sha256, hex);
			put_member(&j, "sha256", hex);
		}
		json_end_obj(&j);
	}
	buf_add_str(&out, "\n]}\n");
	struct err *e = out.failed ? &err_nomem : file_write_atomic(file, out.data, out.len);
	buf_fini(&out);
	return e;
}

struct err *ses_project_hash(struct store *st, const char *path, uint8_t ret[32])
{
	struct file *f = NULL;
	struct err *e = file_open(path, &f);
	if (e)
		return e;
	if (!st || !store_find_sha256(st, f, ret)) {
		e = ses_sha256(f->data, f->len, NULL, NULL, NULL, ret);
		if (!e && file_has_changed(f))
			e = err_new(ERR_STALE, "%s: target_changed: the file was rewritten while it was read", path);
		if (!e && st)
			err_free(store_put_sha256(st, f, ret)); /* a cache */
	}
	file_close(f);
	return e;
}

static struct err *new_id(struct arena *a, const char **ret)
{
	uint8_t bytes[16];
	char *id = arena_alloc(a, 33);
	if (!id)
		return &err_nomem;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_os(errno, "random numbers");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	*ret = id;
	return NULL;
}

/* One more binary; one that is there already, by path or by bytes whose file is gone, is taken as it is now. */
static struct err *add_one(struct ses_project_text *t, const char *dir, const char *path, struct arena *a)
{
	_cleanup_free_ char *named = ses_project_real(path);
	_cleanup_free_ char *real = realpath(path, NULL);
	struct ses_project_entry b = {.has_sha256 = true};
	struct store *st = NULL;
	if (!named || !real)
		return err_os(errno, "%s", path);
	err_free(store_open(&st)); /* without one the bytes are read */
	struct err *e = ses_project_hash(st, real, b.sha256);
	store_close(st);
	if (e)
		return e;
	const char *spelt = spell(dir, named);
	b.path = arena_strndup(a, spelt, strlen(spelt));
	if (!b.path)
		return &err_nomem;
	struct ses_project_entry *to = &t->list[t->cnt];
	for (size_t i = 0; i < t->cnt; i++) {
		_cleanup_free_ char *abs = ses_project_abs(dir, t->list[i].path);
		_cleanup_free_ char *abs_real = abs ? realpath(abs, NULL) : NULL;
		bool is_same = abs_real ? !strcmp(abs_real, real) :
			       t->list[i].has_sha256 && !memcmp(t->list[i].sha256, b.sha256, 32);
		if (is_same)
			to = &t->list[i];
	}
	if (to == &t->list[t->cnt] && ++t->cnt > BINARY_MAX)
		return err_new(ERR_BUDGET, "a project has at most 4096 binaries");
	b.label = to->label;
	*to = b;
	return NULL;
}

static struct err *add_all(const char *file, struct ses_project_text *t, const char *const *paths, size_t cnt, struct arena *a)
{
	_cleanup_free_ char *dir = ses_project_dir(file);
	struct ses_project_entry *list = ARENA_ARRAY(a, struct ses_project_entry, t->cnt + cnt + 1);
	if (!dir)
		return err_os(errno, "%s: its folder", file);
	if (!list)
		return &err_nomem;
	if (t->cnt)
		memcpy(list, t->list, t->cnt * sizeof(*list));
	t->list = list;
	struct err *e = *t->id ? NULL : new_id(a, &t->id);
	for (size_t i = 0; i < cnt && !e; i++)
		e = add_one(t, dir, paths[i], a);
	return e ? e : write_text(file, t);
}

struct err *ses_project_create(const char *file, const char *name, const char *const *paths, size_t cnt)
{
	struct arena a = {0};
	struct ses_project_text t = {.name = name ? name : "", .id = ""};
	struct stat st;
	struct ops_doc v = {.kind = OPS_DOC_STRING, .s = t.name, .len = strlen(t.name)};
	const char *why = *t.name ? text_fault(&v, LABEL_LEN_MAX, false) : NULL;
	struct err *e = why ? err_new(ERR_INVALID, "name: %s", why) : NULL;
	if (!e && !lstat(file, &st))
		e = err_fix(err_new(ERR_INVALID, "%s: is there already", file), "scry project add puts binaries into it");
	if (!e)
		e = add_all(file, &t, paths, cnt, &a);
	arena_fini(&a);
	return e;
}

struct err *ses_project_add(const char *file, const char *const *paths, size_t cnt)
{
	struct arena a = {0};
	struct ses_project_text t;
	struct err *e = ses_project_read(file, &a, &t);
	if (!e)
		e = add_all(file, &t, paths, cnt, &a);
	arena_fini(&a);
	return e;
}

static struct err *remove_one(struct ses_project_text *t, const char *dir, const char *word)
{
	_cleanup_free_ char *real = realpath(word, NULL);
	size_t found = SIZE_MAX, hits = 0;
	for (size_t i = 0; i < t->cnt; i++) {
		const struct ses_project_entry *b = &t->list[i];
		_cleanup_free_ char *abs = ses_project_abs(dir, b->path);
		const char *slash = strrchr(b->path, '/');
		bool is_path = abs && (!strcmp(abs, word) || (real && !strcmp(abs, real)));
		bool is_it = is_path || (b->label && !strcmp(b->label, word)) || !strcmp(b->path, word) ||
			     !strcmp(slash ? slash + 1 : b->path, word);
		hits += is_it;
		found = is_it ? i : found;
	}
	if (!hits)
		return err_new(ERR_NOT_FOUND, "%s: is no binary of the project", word);
	if (hits > 1)
		return err_fix(err_new(ERR_AMBIGUOUS, "%s: is the name of %zu binaries of the project", word, hits), "give the path");
	memmove(&t->list[found], &t->list[found + 1], (t->cnt - found - 1) * sizeof(*t->list));
	t->cnt--;
	return NULL;
}

struct err *ses_project_remove(const char *file, const char *const *words, size_t cnt)
{
	struct arena a = {0};
	struct ses_project_text t;
	_cleanup_free_ char *dir = ses_project_dir(file);
	struct err *e = dir ? ses_project_read(file, &a, &t) : err_os(errno, "%s: its folder", file);
	if (!e && !*t.id)
		e = new_id(&a, &t.id);
	for (size_t i = 0; i < cnt && !e; i++)
		e = remove_one(&t, dir, words[i]);
	if (!e)
		e = write_text(file, &t);
	arena_fini(&a);
	return e;
}
