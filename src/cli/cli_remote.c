/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_remote.h"

#include "base/json.h"
#include "rpc/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_LEN_MAX ((size_t)80 << 20)

struct link { int fd; struct buf in; size_t at; const atomic_bool *cancel; };

static struct err *link_send(struct link *l, const struct buf *lines)
{
	for (size_t done = 0; done < lines->len;) {
		ssize_t n = send(l->fd, lines->data + done, lines->len - done, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return err_os(errno, "the server");
		done += n > 0 ? (size_t)n : 0;
	}
	return NULL;
}

/* The next line, without its end; valid until the next. */
static struct err *link_line(struct link *l, const char **ret, size_t *ret_len)
{
	size_t scanned = l->at;
	for (;;) {
		const char *end = !l->in.data ? NULL : memchr(l->in.data + scanned, '\n', l->in.len - scanned);
		if (end) {
			*ret = l->in.data + l->at;
			*ret_len = (size_t)(end - *ret);
			l->at = (size_t)(end - l->in.data) + 1;
			return NULL;
		}
		scanned = l->in.len;
		char *room = buf_room(&l->in, 65536);
		if (!room || l->in.len - l->at > ANSWER_LEN_MAX)
			return err_new(ERR_BUDGET, "the answer is longer than %zu MB", ANSWER_LEN_MAX >> 20);
		ssize_t n = recv(l->fd, room, 65536, 0);
		if (n < 0 && errno == EINTR && l->cancel && atomic_load(l->cancel))
			return err_new(ERR_CANCELLED, "interrupted");
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_new(ERR_IO, "the server left before it answered");
		l->in.len += (size_t)n;
	}
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static void begin_request(struct json *j, unsigned id, const char *method)
{
	*j = json_make(j->out);
	json_obj(j);
	json_key(j, "jsonrpc");
	json_str(j, "2.0");
	json_key(j, "id");
	json_u64(j, id);
	json_key(j, "method");
	json_str(j, method);
	json_key(j, "params");
	json_obj(j);
}

static void end_request(struct json *j)
{
	json_end_obj(j);
	json_end_obj(j);
	buf_add_ch(j->out, '\n');
}

static void put_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

/* Our folder is not the server's. */
static struct err *put_path(struct json *j, const struct ops_param *p, const char *path)
{
	char here[4096];
	_cleanup_free_ char *whole = NULL;
	if (!strcmp(path, "-"))
		return err_fix(err_new(ERR_INVALID, "%s: standard input is not the server's", p->name), "name a file");
	if (*path == '/' || !getcwd(here, sizeof(here)))
		json_str(j, path);
	else if (asprintf(&whole, "%s/%s", here, path) < 0)
		return &err_nomem;
	else
		json_str(j, whole);
	return NULL;
}

/* A document goes along, on one line: inside its strings there are no line feeds. */
static struct err *put_doc(struct json *j, const char *path, const struct ops_args *args)
{
	char *text = NULL;
	size_t len = 0;
	struct ops_doc doc;
	struct err *e = ops_doc_load(path, NULL, args->arena, &text, &len);
	if (!e)
		e = ops_doc_parse(path, text, len, args->arena, &doc);
	for (size_t i = 0; !e && i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			text[i] = ' ';
	}
	if (!e)
		json_raw(j, text, len);
	return e;
}

static struct err *put_value(struct json *j, const struct ops_args *args, size_t i)
{
	const struct ops_param *p = &args->op->params[i];
	const struct ops_value *v = &args->values[i];
	bool is_path = p->type == OPS_PATH || !strcmp(p->name, "output") || !strcmp(p->name, "image");
	json_key(j, p->name);
	if (p->type == OPS_JSON)
		return put_doc(j, v->text, args);
	if (p->type == OPS_FLAG) {
		json_bool(j, true);
	} else if (p->is_repeated) {
		json_arr(j);
		for (size_t k = 0; k < v->text_cnt; k++)
			json_str(j, v->texts[k]);
		json_end_arr(j);
	} else if (is_path) {
		return put_path(j, p, v->text);
	} else if (p->type == OPS_INT) {
		json_u64(j, v->num);
	} else {
		json_str(j, v->text);
	}
	return NULL;
}

/* Bytes as they are, which JSON cannot hold: they are asked for in hex. */
static bool wants_bytes(const struct cli_remote *r)
{
	return !r->is_json && ops_param_find(r->args->op, "raw", 3) && ops_arg_is_set(r->args, "raw");
}

static struct err *put_requests(const struct cli_remote *r, bool is_path, struct buf *out)
{
	static const char *const load_names[] = {"processor", "base", "format"};
	struct json j = json_make(out);
	struct err *e = NULL;
	_cleanup_free_ char *real = is_path ? realpath(r->file, NULL) : NULL;
	const char *file = real ? real : r->file;
	if (is_path) {
		begin_request(&j, 1, "open");
		put_str(&j, "file", file);
		for (size_t i = 0; i < ARRAY_LEN(load_names); i++) {
			if (r->load[i])
				put_str(&j, load_names[i], r->load[i]);
		}
		end_request(&j);
	}
	begin_request(&j, 2, r->args->op->name);
	if (file)
		put_str(&j, "database", file);
	if (!r->is_json && !wants_bytes(r)) {
		json_key(&j, "as_table");
		json_bool(&j, true);
		json_key(&j, "as_color");
		json_bool(&j, r->has_color);
	}
	size_t cnt = ops_param_cnt(r->args->op);
	for (size_t i = 0; i < cnt && !e; i++) {
		const struct ops_param *p = &r->args->op->params[i];
		bool is_stdout = !strcmp(p->name, "output") && r->args->values[i].text && !strcmp(r->args->values[i].text, "-");
		bool is_ours = is_stdout || (wants_bytes(r) && !strcmp(p->name, "raw"));
		if (r->args->values[i].is_set && !is_ours)
			e = put_value(&j, r->args, i);
	}
	end_request(&j);
	return e ? e : out->failed ? &err_nomem : NULL;
}

/* --- answers ------------------------------------------------------------------------------------------------------------ */

static enum err_kind kind_of(const char *name)
{
	for (int k = 0; name && k < ERR_KIND_COUNT; k++) {
		if (!strcmp(err_kind_name((enum err_kind)k), name))
			return (enum err_kind)k;
	}
	return ERR_INTERNAL;
}

static struct err *err_of(const char *why, const struct ops_doc *data)
{
	const char *fix = data ? ops_doc_str(data, "fix") : NULL;
	struct err *e = err_new(kind_of(data ? ops_doc_str(data, "kind") : NULL), "%s", why ? why : "refused");
	return fix ? err_fix(e, "%s", fix) : e;
}

static void note_more(struct cli_remote *r, const struct ops_doc *result)
{
	const struct ops_doc *shown = ops_doc_find(result, "shown"), *total = ops_doc_find(result, "total");
	const char *next = ops_doc_str(result, "next");
	if (!next)
		return;
	int n = snprintf(r->more, sizeof(r->more), "%lld shown", (long long)(shown ? shown->num : 0));
	if (total && total->num)
		n += snprintf(r->more + n, sizeof(r->more) - (size_t)n, " of %lld", (long long)total->num);
	snprintf(r->more + n, sizeof(r->more) - (size_t)n, "; more with --cursor %s", next);
}

static int digit_of(char ch)
{
	return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static struct err *put_bytes(const struct ops_doc *result, struct buf *out)
{
	const struct ops_doc *hex = ops_doc_find(result, "hex");
	bool good = hex && hex->kind == OPS_DOC_STRING && hex->len % 2 == 0;
	for (size_t i = 0; good && i < hex->len; i += 2) {
		int high = digit_of(hex->s[i]), low = digit_of(hex->s[i + 1]);
		good = high >= 0 && low >= 0;
		buf_add_ch(out, (char)(high << 4 | low));
	}
	return good ? NULL : err_new(ERR_IO, "the answer has no bytes");
}

/* The envelope is the server's own: the result stands between its head and a status that may follow. */
static struct err *put_result(struct cli_remote *r, const char *line, size_t len, const struct ops_doc *doc, struct buf *out)
{
	static const char head[] = "\"result\":", tail[] = ",\"status\":{\"kind\":";
	const struct ops_doc *result = ops_doc_find(doc, "result"), *status = ops_doc_find(doc, "status");
	const struct ops_doc *text = r->is_json ? NULL : ops_doc_find(result, "text");
	const char *from = memmem(line, len, head, sizeof(head) - 1), *end = line + len - 1;
	if (status)
		r->status = err_of(ops_doc_str(status, "message"), status);
	if (text && text->kind == OPS_DOC_STRING) {
		buf_add(out, text->s, text->len);
		note_more(r, result);
		return NULL;
	}
	if (result && wants_bytes(r))
		return put_bytes(result, out);
	if (!from)
		return err_new(ERR_IO, "the answer is none of JSON-RPC");
	from += sizeof(head) - 1;
	for (const char *at = from; status && (at = memmem(at, (size_t)(line + len - at), tail, sizeof(tail) - 1)); at++)
		end = at;
	buf_add(out, from, (size_t)(end - from));
	buf_add_ch(out, '\n');
	return NULL;
}

/* Reads on to the answer of the command; a refusal to open the file is one too. */
static struct err *take_answers(struct cli_remote *r, struct link *l, struct buf *out)
{
	for (;;) {
		const char *line = NULL;
		size_t len = 0;
		struct ops_doc doc;
		struct arena a = {0};
		struct err *e = link_line(l, &line, &len);
		if (!e)
			e = ops_doc_parse("the answer", line, len, &a, &doc);
		if (e) {
			arena_fini(&a);
			return e;
		}
		const struct ops_doc *id = ops_doc_find(&doc, "id"), *error = ops_doc_find(&doc, "error");
		bool is_last = error || (id && id->kind == OPS_DOC_INT && id->num == 2);
		if (error)
			e = err_of(ops_doc_str(error, "message"), ops_doc_find(error, "data"));
		else if (is_last)
			e = put_result(r, line, len, &doc, out);
		arena_fini(&a);
		if (is_last)
			return e;
	}
}

struct err *cli_remote_run(struct cli_remote *r, struct buf *out)
{
	struct sockaddr_un at;
	struct buf lines = {0};
	struct link l = {.fd = -1, .cancel = r->cancel};
	bool is_path = r->file && (access(r->file, F_OK) == 0 || !strncmp(r->file, "sha256:", 7));
	struct err *e = put_requests(r, is_path, &lines);
	if (!e)
		e = rpc_sock_path(r->socket, false, &at);
	if (!e)
		e = rpc_connect(&at, &l.fd);
	if (e && e->kind == ERR_NOT_FOUND)
		e = err_fix(e, "scry serve --socket %s FILE starts a server", r->socket);
	if (!e)
		e = link_send(&l, &lines);
	if (!e)
		e = take_answers(r, &l, out);
	if (l.fd >= 0)
		close(l.fd);
	buf_fini(&lines);
	buf_fini(&l.in);
	return e;
}
