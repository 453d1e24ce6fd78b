/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_ui.h"

#include "base/json.h"
#include "rpc/lines.h"
#include "rpc/sock.h"
#include "session/ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Words to one JSON-RPC request. NAME=VALUE is a parameter by name, whose value is a number, true, false or null when it reads like one;
 * NAME:=JSON is taken as it is; a name that is given again makes a list. Words without a name are parameters by position.
 */
#define ANSWER_LEN_MAX ((size_t)80 << 20)

/* --- the request ------------------------------------------------------------------------------------------------------------- */

static bool is_number(const char *s)
{
	s += *s == '-';
	return *s && strlen(s) < 19 && strspn(s, "0123456789") == strlen(s) && (*s != '0' || !s[1]);
}

static void put_value(struct json *j, const char *s, bool is_json)
{
	if (is_json || is_number(s) || !strcmp(s, "true") || !strcmp(s, "false") || !strcmp(s, "null"))
		json_raw(j, s, strlen(s));
	else
		json_str(j, s);
}

/* NAME=VALUE or NAME:=JSON: the length of the name, 0: a word without one. */
static size_t name_len(const char *word)
{
	size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
	return n && (word[n] == '=' || (word[n] == ':' && word[n + 1] == '=')) ? n : 0;
}

static bool same_name(const char *a, const char *b)
{
	size_t n = name_len(a);
	return n == name_len(b) && !memcmp(a, b, n);
}

static void put_word(struct json *j, const char *word)
{
	size_t n = name_len(word);
	put_value(j, word + n + (word[n] == ':') + 1, word[n] == ':');
}

static void put_named(struct json *j, int argc, char **argv)
{
	char key[64];
	json_obj(j);
	for (int i = 0; i < argc; i++) {
		bool is_told = false, is_list = false;
		for (int k = 0; k < argc; k++) {
			is_told |= k < i && same_name(argv[k], argv[i]);
			is_list |= k > i && same_name(argv[k], argv[i]);
		}
		if (is_told)
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)name_len(argv[i]), argv[i]);
		json_key(j, key);
		if (is_list)
			json_arr(j);
		for (int k = i; k < argc; k++) {
			if (same_name(argv[k], argv[i]))
				put_word(j, argv[k]);
		}
		if (is_list)
			json_end_arr(j);
	}
	json_end_obj(j);
}

static struct err *put_params(struct json *j, int argc, char **argv)
{
	int named = 0;
	for (int i = 0; i < argc; i++)
		named += name_len(argv[i]) > 0;
	if (named && named < argc)
		return err_fix(err_new(ERR_INVALID, "ui: some parameters have a name and some have none"), "name all of them: NAME=VALUE");
	if (named) {
		put_named(j, argc, argv);
		return NULL;
	}
	json_arr(j);
	for (int i = 0; i < argc; i++)
		put_value(j, argv[i], false);
	json_end_arr(j);
	return NULL;
}

/* A word that is no operation that reads is a method of the workbench: "goto" is "ui.goto", "rename" is "ui.rename". */
static struct err *put_request(struct buf *out, const char *method, int argc, char **argv)
{
	char name[128];
	const struct ops_op *op = ops_find(method);
	bool is_whole = strchr(method, '.') || (op && op->cap == SES_CAP_READ);
	snprintf(name, sizeof(name), "%s%s", is_whole ? "" : "ui.", method);
	struct json j = json_make(out);
	json_obj(&j);
	json_key(&j, "jsonrpc");
	json_str(&j, "2.0");
	json_key(&j, "id");
	json_u64(&j, 1);
	json_key(&j, "method");
	json_str(&j, name);
	json_key(&j, "params");
	struct err *e = put_params(&j, argc, argv);
	json_end_obj(&j);
	buf_add_ch(out, '\n');
	return e ? e : out->failed ? &err_nomem : NULL;
}

/* --- the answer --------------------------------------------------------------------------------------------------------------- */

static struct err *ask(int fd, const struct buf *request, struct buf *ret)
{
	for (size_t done = 0; done < request->len;) {
		ssize_t n = send(fd, request->data + done, request->len - done, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return err_os(errno, "the workbench");
		done += n > 0 ? (size_t)n : 0;
	}
	while (!ret->len || ret->data[ret->len - 1] != '\n') {
		char *room = buf_room(ret, 65536);
		ssize_t n = room ? recv(fd, room, 65536, 0) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (!room || ret->len > ANSWER_LEN_MAX)
			return err_new(ERR_BUDGET, "the answer is longer than %zu MB", ANSWER_LEN_MAX >> 20);
		if (n <= 0)
			return err_new(ERR_IO, "the workbench left before it answered");
		ret->len += (size_t)n;
	}
	ret->len--;
	return NULL;
}

static int print(const char *s, size_t len, bool has_end)
{
	bool is_good = fwrite(s, 1, len, stdout) == len && (has_end || putchar('\n') != EOF) && fflush(stdout) == 0;
	return is_good || errno == EPIPE ? 0 : ops_fail(err_os(errno, "stdout: cannot write"), NULL);
}

static enum err_kind kind_of(const char *name)
{
	for (int k = 0; name && k < ERR_KIND_COUNT; k++) {
		if (!strcmp(err_kind_name((enum err_kind)k), name))
			return (enum err_kind)k;
	}
	return ERR_INTERNAL;
}

static const struct ops_doc *text_of(const struct ops_doc *result)
{
	static const char *const keys[] = {"text", "code", "dot", "svg"};
	const struct ops_doc *text = NULL;
	for (size_t i = 0; !text && i < ARRAY_LEN(keys); i++)
		text = ops_doc_find(result, keys[i]);
	return text;
}

/* The result as JSON, or the text in it for people: a screen, a function as C, a graph. */
static int tell(const struct buf *answer, bool is_json)
{
	static const char before[] = "\"result\":";
	struct arena a = {0};
	struct ops_doc doc;
	struct err *e = ops_doc_parse("the answer", answer->data, answer->len, &a, &doc);
	const struct ops_doc *error = e ? NULL : ops_doc_find(&doc, "error"), *result = e ? NULL : ops_doc_find(&doc, "result");
	const struct ops_doc *text = result ? text_of(result) : NULL;
	/* The envelope is ours, and the result its last member. */
	const char *at = result ? memmem(answer->data, answer->len, before, sizeof(before) - 1) : NULL;
	int status;
	if (error) {
		const struct ops_doc *data = ops_doc_find(error, "data");
		const char *why = ops_doc_str(error, "message"), *fix = data ? ops_doc_str(data, "fix") : NULL;
		e = err_new(kind_of(data ? ops_doc_str(data, "kind") : NULL), "%s", why ? why : "refused");
		status = ops_fail(fix ? err_fix(e, "%s", fix) : e, NULL);
	} else if (e || !at) {
		status = ops_fail(e ? e : err_new(ERR_IO, "the answer is none of JSON-RPC"), NULL);
	} else if (!is_json && text && text->kind == OPS_DOC_STRING) {
		status = print(text->s, text->len, text->len && text->s[text->len - 1] == '\n');
	} else {
		at += sizeof(before) - 1;
		status = print(at, (size_t)(answer->data + answer->len - 1 - at), false);
	}
	arena_fini(&a);
	return status;
}

int cli_ui(int argc, char **argv)
{
	bool is_json = argc && !strcmp(argv[0], "--json");
	argc -= is_json;
	argv += is_json;
	if (argc < 2) {
		return ops_fail(err_fix(err_new(ERR_INVALID, "ui: SOCKET and METHOD are needed"),
				       "scry ui [--json] SOCKET METHOD [WORD... | NAME=VALUE...], as in: scry ui work goto main"), NULL);
	}
	struct sockaddr_un at;
	struct buf request = {0}, reply = {0};
	_cleanup_close_ int fd = -1;
	struct err *e = put_request(&request, argv[1], argc - 2, argv + 2);
	if (!e)
		e = rpc_sock_path(argv[0], false, &at);
	if (!e)
		e = rpc_connect(&at, &fd);
	if (!e)
		e = ask(fd, &request, &reply);
	int status = e ? ops_fail(e, NULL) : tell(&reply, is_json);
	buf_fini(&request);
	buf_fini(&reply);
	return status;
}
