/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trace`, `probe` and `events` for everybody but the command line: a trace that is begun here goes on in a process of its own, and is read
 * piece by piece. What it watches runs already: nothing is started here.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"
#include "session/ses_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 2000, WAIT_MS_MAX = 60000, LIMIT = 1000, WORDS_LEN_MAX = 100000 /* below what the kernel takes as one word */ };

/* What the command line has and nobody else: programs are started, files written, tables printed. */
static struct err *check_words(const struct ops_args *a)
{
	static const char *const own[] = {"cmd", "output", "to", "capture", "capture_dir", "table"};
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (ops_param_find(a->op, own[i], strlen(own[i])) && ops_arg_is_set(a, own[i]))
			return err_fix(err_new(ERR_DENIED, "%s: %s is for the command line alone", a->op->name, own[i]),
				       i ? "leave it out" : "a person starts the program; watch it by its pid");
	}
	return NULL;
}

static bool is_ours(const char *name)
{
	return !strcmp(name, "wait_ms") || !strcmp(name, "limit");
}

/* The words of the command that does it. No value can be taken for an option. */
static struct err *put_words(struct ops_req *rq, char **words, size_t cap)
{
	const struct ops_args *a = rq->args;
	size_t n = 0, len = 0;
	words[n++] = (char *)(uintptr_t)a->op->name;
	words[n++] = (char *)(uintptr_t)"--json";
	if (rq->no_store)
		words[n++] = (char *)(uintptr_t)"--no-store";
	if (a->op->needs_target) {
		const char *path = rq->sn->ses->path;
		words[n] = arena_printf(rq->arena, "%s%s", *path == '-' ? "./" : "", path);
		if (!words[n++])
			return &err_nomem;
	}
	for (size_t i = 0; a->op->params[i].name; i++) {
		const struct ops_param *p = &a->op->params[i];
		const struct ops_value *v = &a->values[i];
		size_t cnt = v->is_set ? p->is_repeated ? v->text_cnt : 1 : 0;
		for (size_t k = 0; k < cnt && !is_ours(p->name); k++) {
			const char *text = p->is_repeated ? v->texts[k] : v->text;
			len += text ? strlen(text) : 0; /* flags have none */
			if (n + 1 >= cap || len > WORDS_LEN_MAX)
				return err_new(ERR_BUDGET, "%s: so many words are too much", a->op->name);
			if (p->is_positional && *text == '-')
				return err_new(ERR_INVALID, "%s: %s begins with '-'", text, p->name);
			words[n] = p->is_positional ? arena_strndup(rq->arena, text, strlen(text))
				 : p->type == OPS_FLAG ? arena_printf(rq->arena, "--%s", p->name)
						       : arena_printf(rq->arena, "--%s=%s", p->name, text);
			if (!words[n++])
				return &err_nomem;
		}
	}
	words[n] = NULL;
	return NULL;
}

/* {"rev","items":[...],"next","missed","notes"}; a line each where it is for people. */
static void put_answer(struct ops_req *rq, uint64_t id, const struct ses_stream_answer *s)
{
	struct json *j = &rq->out->json;
	if (!rq->out->is_json) {
		buf_add(rq->out->buf, s->lines.data ? s->lines.data : "", s->lines.len);
	} else {
		json_obj(j);
		json_key(j, "rev");
		json_u64(j, rq->sn ? ses_snap_rev(rq->sn) : 0);
		json_key(j, "items");
		json_arr(j);
		for (const char *p = s->lines.data, *end = p + s->lines.len, *eol; p < end; p = eol + 1) {
			eol = memchr(p, '\n', (size_t)(end - p));
			json_raw(j, p, (size_t)(eol - p));
		}
		json_end_arr(j);
	}
	rq->out->item_cnt = s->cnt;
	rq->out->total = UINT64_MAX;
	if (!s->is_over) {
		rq->out->has_more = true;
		snprintf(rq->out->next, sizeof(rq->out->next), "%" PRIx64 ".%" PRIx64, id, s->next);
	}
	if (!rq->out->is_json)
		return;
	if (!s->is_over) {
		json_key(j, "next");
		json_str(j, rq->out->next);
	}
	json_key(j, "missed");
	json_u64(j, s->missed);
	if (*s->notes) {
		json_key(j, "notes");
		json_strn(j, s->notes, strlen(s->notes));
	}
	json_end_obj(j);
}

static struct err *answer(struct ops_req *rq, struct ses_stream_ask *ask)
{
	struct ses_stream_answer s;
	uint64_t max = rq->call->max_bytes;
	ask->client = rq->call->client;
	ask->call = rq->call;
	ask->limit = ops_arg_u64(rq->args, "limit", LIMIT);
	ask->wait_ms = MIN(ops_arg_u64(rq->args, "wait_ms", WAIT_MS), (uint64_t)WAIT_MS_MAX);
	/* Beside the items stand the other members. */
	ask->max_len = max > 2048 ? max - 1536 : max / 2;
	struct err *e = ses_stream_read(ask, &s);
	if (!e)
		put_answer(rq, ask->id, &s);
	buf_fini(&s.lines);
	return e;
}

struct err *ops_watch(struct ops_req *rq)
{
	enum { WORDS_MAX = 1024 };
	char **words = ARENA_ARRAY(rq->arena, char *, WORDS_MAX);
	struct ses_stream_ask ask = {0};
	struct err *e = words ? check_words(rq->args) : &err_nomem;
	if (!e && ops_arg_is_set(rq->args, "limit") && !ops_arg_u64(rq->args, "limit", 0))
		e = err_new(ERR_INVALID, "limit: at least 1");
	if (!e)
		e = put_words(rq, words, WORDS_MAX);
	if (!e)
		e = ses_stream_start(rq->call->client, words, &ask.id);
	if (e)
		return e;
	e = answer(rq, &ask);
	/* Nobody got its cursor. */
	if (e) {
		struct ses_stream_answer s;
		ask.stop = true;
		ask.wait_ms = 0;
		ask.call = &(struct ses_call){0};
		err_free(ses_stream_read(&ask, &s));
		buf_fini(&s.lines);
	}
	return e;
}

struct err *ops_events(struct ops_req *rq)
{
	struct ses_stream_ask ask = {.stop = ops_arg_is_set(rq->args, "stop")};
	const char *c = ops_arg_str(rq->args, "cursor");
	char *end;
	ask.id = strtoull(c, &end, 16);
	if (end == c || *end != '.')
		return err_new(ERR_INVALID, "cursor: '%s' is not one of a trace", c);
	c = end + 1;
	ask.from = strtoull(c, &end, 16);
	if (end == c || *end)
		return err_new(ERR_INVALID, "cursor: '%s' is not one of a trace", c);
	return answer(rq, &ask);
}
