/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows jansson, whose names are those of our own writer. */
#include "session/ops_doc.h"

#include "base/utf8.h"
#include "session/ses_int.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define DOC_LEN_MAX ((size_t)64 << 20)
#define DOC_DEPTH_MAX 16
#define DOC_POLL_MS 100
#define DOC_WRITER_MS 2000

/* Waits until there may be more to read. A FIFO reads as ended until its first writer comes, which is given a moment. */
static struct err *doc_wait(int fd, const char *path, const struct ses_call *call, bool has_writer, unsigned *waited_ms)
{
	if (!has_writer && *waited_ms >= DOC_WRITER_MS)
		return err_new(ERR_BAD_INPUT, "%s: is a pipe nobody writes to", path);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (poll(&p, 1, DOC_POLL_MS) < 0 && errno != EINTR)
		return err_os(errno, "%s", path);
	*waited_ms += DOC_POLL_MS;
	return ses_call_check(call);
}

struct err *ops_doc_load(const char *path, const struct ses_call *call, struct arena *a, char **ret, size_t *ret_len)
{
	bool is_stdin = !strcmp(path, "-");
	/* O_NONBLOCK: neither a FIFO without a writer nor a file of the kernel that waits for news (/proc/kmsg) holds us. */
	_cleanup_close_ int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	unsigned waited_ms = 0;
	_cleanup_free_ char *text = NULL;
	size_t len = 0, cap = 0;
	if (fd < 0 || fstat(fd, &st))
		return err_os(errno, "%s", path);
	bool is_fifo = !is_stdin && S_ISFIFO(st.st_mode);
	struct statfs fs;
	/* A pipe without a name (the shell's /dev/fd/63) gets no more writers than it had. */
	bool had_writer = !is_fifo || (!fstatfs(fd, &fs) && fs.f_type == PIPEFS_MAGIC);
	for (;;) {
		if (cap - len < 65536) {
			char *grown = realloc(text, cap * 2 + 65536);
			if (!grown)
				return &err_nomem;
			text = grown;
			cap = cap * 2 + 65536;
		}
		ssize_t n = read(fd, text + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		bool is_silent = n < 0 && errno == EAGAIN && (is_stdin || is_fifo);
		if (n < 0 && !is_silent)
			return err_os(errno, "%s", path);
		if (!n && had_writer)
			break;
		had_writer |= n != 0;
		if (n <= 0) {
			struct err *e = doc_wait(fd, path, call, had_writer, &waited_ms);
			if (e)
				return e;
			continue;
		}
		len += (size_t)n;
		if (len > DOC_LEN_MAX)
			return err_new(ERR_BUDGET, "%s: is longer than 64 MB", path);
	}
	*ret = arena_strndup(a, text, len);
	*ret_len = len;
	return *ret ? NULL : &err_nomem;
}

static bool doc_take(const json_t *j, struct arena *a, unsigned depth, struct ops_doc *ret);

static bool doc_take_list(const json_t *j, struct arena *a, unsigned depth, struct ops_doc *ret)
{
	ret->kind = OPS_DOC_LIST;
	ret->cnt = json_array_size(j);
	ret->items = ARENA_ARRAY(a, struct ops_doc, ret->cnt + 1);
	for (size_t i = 0; ret->items && i < ret->cnt; i++) {
		if (!doc_take(json_array_get(j, i), a, depth + 1, &ret->items[i]))
			return false;
	}
	return ret->items != NULL;
}

static bool doc_take_object(const json_t *j, struct arena *a, unsigned depth, struct ops_doc *ret)
{
	const char *key;
	json_t *value;
	ret->kind = OPS_DOC_OBJECT;
	ret->items = ARENA_ARRAY(a, struct ops_doc, json_object_size(j) + 1);
	if (!ret->items)
		return false;
	json_object_foreach((json_t *)j, key, value) {
		struct ops_doc *item = &ret->items[ret->cnt++];
		if (!doc_take(value, a, depth + 1, item))
			return false;
		item->key = arena_strndup(a, key, strlen(key));
		if (!item->key)
			return false;
	}
	return true;
}

static bool doc_take(const json_t *j, struct arena *a, unsigned depth, struct ops_doc *ret)
{
	*ret = (struct ops_doc){.kind = OPS_DOC_OTHER};
	if (json_is_object(j) && depth < DOC_DEPTH_MAX)
		return doc_take_object(j, a, depth, ret);
	if (json_is_array(j) && depth < DOC_DEPTH_MAX)
		return doc_take_list(j, a, depth, ret);
	if (json_is_string(j)) {
		ret->kind = OPS_DOC_STRING;
		ret->len = json_string_length(j);
		ret->s = arena_strndup(a, json_string_value(j), ret->len);
		return ret->s != NULL;
	}
	if (json_is_integer(j)) {
		ret->kind = OPS_DOC_INT;
		ret->num = json_integer_value(j);
	} else if (json_is_boolean(j)) {
		ret->kind = OPS_DOC_BOOL;
		ret->num = json_is_true(j);
	} else if (json_is_null(j)) {
		ret->kind = OPS_DOC_NULL;
	}
	return true;
}

/* --- the simple ones ---------------------------------------------------------------------------------------------------- */

/*
 * Requests are short and plain: objects and lists of few members, strings of ASCII without escapes, whole numbers. They are read here, in
 * a fraction of the time. At anything else there is no opinion: the library reads the whole and says what it is, or what is wrong with it.
 */
#define SIMPLE_LEN_MAX 4096
#define SIMPLE_ITEM_MAX 32

struct simple { char *at; char *end; struct arena *a; }; /* over a copy that strings stay in; a NUL stands at the end */

static void skip_space(struct simple *s)
{
	while (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')
		s->at++;
}

/* Its closing quote becomes the NUL behind it. */
static bool simple_string(struct simple *s, const char **ret, size_t *ret_len)
{
	char *from = ++s->at;
	s->at += utf8_plain_len(from, (size_t)(s->end - from));
	if (*s->at != '"')
		return false;
	*s->at = '\0';
	*ret = from;
	*ret_len = (size_t)(s->at++ - from);
	return true;
}

static bool simple_number(struct simple *s, struct ops_doc *ret)
{
	bool is_negative = *s->at == '-';
	const char *from = s->at += is_negative;
	int64_t v = 0;
	while (*s->at >= '0' && *s->at <= '9' && s->at - from < 18)
		v = v * 10 + (*s->at++ - '0');
	bool is_plain = s->at > from && (*from != '0' || (s->at == from + 1 && !is_negative));
	ret->kind = OPS_DOC_INT;
	ret->num = is_negative ? -v : v;
	return is_plain && (*s->at == ',' || *s->at == '}' || *s->at == ']' || *s->at == ' ');
}

static bool simple_word(struct simple *s, const char *word, enum ops_doc_kind kind, struct ops_doc *ret)
{
	size_t n = strlen(word);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n))
		return false;
	s->at += n;
	ret->kind = kind;
	ret->num = *word == 't';
	return true;
}

static bool simple_value(struct simple *s, unsigned depth, struct ops_doc *ret);

static bool simple_member(struct simple *s, unsigned depth, bool has_key, struct ops_doc *items, size_t cnt)
{
	const char *key = NULL;
	size_t len;
	if (has_key) {
		if (*s->at != '"' || !simple_string(s, &key, &len))
			return false;
		for (size_t i = 0; i < cnt; i++) {
			if (*items[i].key == *key && !strcmp(items[i].key, key))
				return false;
		}
		skip_space(s);
		if (*s->at++ != ':')
			return false;
		skip_space(s);
	}
	if (!simple_value(s, depth + 1, &items[cnt]))
		return false;
	items[cnt].key = key;
	return true;
}

static bool simple_items(struct simple *s, unsigned depth, char close, struct ops_doc *ret)
{
	struct ops_doc items[SIMPLE_ITEM_MAX];
	size_t cnt = 0;
	s->at++;
	skip_space(s);
	while (*s->at != close) {
		if (cnt == SIMPLE_ITEM_MAX || !simple_member(s, depth, close == '}', items, cnt))
			return false;
		cnt++;
		skip_space(s);
		if (*s->at == close)
			break;
		if (*s->at++ != ',')
			return false;
		skip_space(s);
		if (*s->at == close)
			return false;
	}
	s->at++;
	ret->kind = close == '}' ? OPS_DOC_OBJECT : OPS_DOC_LIST;
	ret->cnt = cnt;
	ret->items = ARENA_ARRAY(s->a, struct ops_doc, cnt + 1);
	if (ret->items)
		memcpy(ret->items, items, cnt * sizeof(*items));
	return ret->items != NULL;
}

static bool simple_value(struct simple *s, unsigned depth, struct ops_doc *ret)
{
	*ret = (struct ops_doc){.kind = OPS_DOC_OTHER};
	switch (*s->at) {
	case '{':
	case '[':
		return depth < DOC_DEPTH_MAX && simple_items(s, depth, *s->at == '{' ? '}' : ']', ret);
	case '"':
		ret->kind = OPS_DOC_STRING;
		return simple_string(s, &ret->s, &ret->len);
	case 't':
		return simple_word(s, "true", OPS_DOC_BOOL, ret);
	case 'f':
		return simple_word(s, "false", OPS_DOC_BOOL, ret);
	case 'n':
		return simple_word(s, "null", OPS_DOC_NULL, ret);
	default:
		return simple_number(s, ret);
	}
}

static bool doc_is_simple(const char *text, size_t len, struct arena *a, struct ops_doc *ret)
{
	if (len > SIMPLE_LEN_MAX)
		return false;
	struct simple s = {.a = a, .at = arena_strndup(a, text, len)};
	if (!s.at)
		return false;
	s.end = s.at + len;
	skip_space(&s);
	if (*s.at != '{' || !simple_value(&s, 0, ret))
		return false;
	skip_space(&s);
	return s.at == s.end;
}

#define LARGE_MAX 16

/*
 * A number that no parameter can be is no fault of a request's form, and is answered by the request's id. The library takes a number beyond
 * its own range for a fault, and says where it ends: there an unremarkable number that is not whole takes its place.
 */
static json_t *load(const char *text, size_t len, struct arena *a, json_error_t *where)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
	json_t *j = json_loadb(text, len, flags, where);
	char *copy = NULL;
	for (unsigned i = 0; !j && i < LARGE_MAX && json_error_code(where) == json_error_numeric_overflow; i++) {
		size_t end = (size_t)where->position, from = end;
		if (!copy)
			copy = arena_strndup(a, text, len);
		while (copy && from && from <= len && strchr("+-.0123456789eE", copy[from - 1]) && copy[from - 1])
			from--;
		if (!copy || end > len || end - from < 3)
			break;
		memset(copy + from, ' ', end - from);
		memcpy(copy + from, "0.5", 3);
		j = json_loadb(copy, len, flags, where);
	}
	return j;
}

struct err *ops_doc_parse(const char *path, const char *text, size_t len, struct arena *a, struct ops_doc *ret)
{
	json_error_t where;
	struct err *e = NULL;
	if (doc_is_simple(text, len, a, ret))
		return NULL;
	json_t *j = load(text, len, a, &where);
	if (!j)
		return err_new(ERR_INVALID, "%s: line %d, column %d: %s", path, where.line, where.column, where.text);
	if (!json_is_object(j))
		e = err_new(ERR_INVALID, "%s: is not a JSON object", path);
	else if (!doc_take(j, a, 0, ret))
		e = &err_nomem;
	json_decref(j);
	return e;
}

struct err *ops_doc_read(const char *path, const struct ses_call *call, struct arena *a, struct ops_doc *ret)
{
	char *text = NULL;
	size_t len = 0;
	struct err *e = ops_doc_load(path, call, a, &text, &len);
	return e ? e : ops_doc_parse(path, text, len, a, ret);
}

const struct ops_doc *ops_doc_find(const struct ops_doc *object, const char *key)
{
	for (size_t i = 0; object->kind == OPS_DOC_OBJECT && i < object->cnt; i++) {
		if (*object->items[i].key == *key && !strcmp(object->items[i].key, key))
			return &object->items[i];
	}
	return NULL;
}

const char *ops_doc_str(const struct ops_doc *object, const char *key)
{
	const struct ops_doc *v = ops_doc_find(object, key);
	return v && v->kind == OPS_DOC_STRING ? v->s : NULL;
}
