/* SPDX-License-Identifier: Apache-2.0 */
/* `reference`: the table of operations about itself. A word counts most in a name, then in the help, then among parameters and details. */
#include "session/ops_int.h"

#include "base/glob.h"

#include <stdlib.h>
#include <string.h>

struct ref_hit { const struct ops_op *op; unsigned score; };

static const char *const type_names[] = {[OPS_FLAG] = "boolean", [OPS_STRING] = "string", [OPS_INT] = "integer", [OPS_ADDR] = "address",
					 [OPS_FUNC] = "function", [OPS_CHOICE] = "choice", [OPS_PATH] = "path", [OPS_JSON] = "json"};

static bool has(const char *text, const char *word)
{
	return text && glob_match(word, strlen(word), text, strlen(text), true);
}

static unsigned score_of(const struct ops_op *op, const char *word)
{
	unsigned score = !strcmp(op->name, word) ? 100 : has(op->name, word) ? 20 : 0;
	score += has(op->help, word) ? 8 : 0;
	score += has(op->details, word) ? 2 : 0;
	for (const struct ops_param *p = op->params; p->name; p++)
		score += !strcmp(p->name, word) ? 4 : has(p->help, word) ? 1 : 0;
	return score;
}

/* The sum over all words, 0 when one of them is nowhere. */
static unsigned score_all(const struct ops_op *op, const char *const *words, size_t cnt)
{
	unsigned sum = 1;
	for (size_t i = 0; i < cnt; i++) {
		unsigned score = *words[i] ? score_of(op, words[i]) : 1;
		if (!score)
			return 0;
		sum += score;
	}
	return sum;
}

static int by_score(const void *a, const void *b)
{
	const struct ref_hit *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static void put_param(struct buf *out, const struct ops_param *p)
{
	buf_printf(out, "%s%s%s: %s", p->name, p->is_repeated ? "..." : "", p->is_required ? "" : "?", type_names[p->type]);
	if (p->type == OPS_CHOICE)
		buf_printf(out, " %s", p->choices);
	buf_printf(out, ", %s", p->help);
}

/* Its parameters as lines of text: for a reader they cost half of what objects do. */
static void put_params(struct ops_req *rq, const struct ops_op *op)
{
	size_t cnt = ops_param_cnt(op);
	const char **lines = ARENA_ARRAY(rq->arena, const char *, cnt + 1);
	for (size_t i = 0; lines && i < cnt; i++) {
		struct buf line = {0};
		put_param(&line, &op->params[i]);
		lines[i] = line.failed ? "" : arena_strndup(rq->arena, line.data, line.len);
		lines[i] = lines[i] ? lines[i] : "";
		buf_fini(&line);
	}
	ops_out_words(rq->out, "params", lines, lines ? cnt : 0);
}

static const char *cap_of(const struct ops_op *op)
{
	unsigned bit = 0;
	while (op->cap >> bit > 1)
		bit++;
	return ses_cap_name(bit);
}

struct err *ops_reference(struct ops_req *rq)
{
	struct ses_page page;
	size_t op_cnt, word_cnt, n = 0, i;
	const struct ops_op *ops = ops_table(&op_cnt);
	const char *const *words = ops_arg_texts(rq->args, "word", &word_cnt);
	struct ref_hit *hits = ARENA_ARRAY(rq->arena, struct ref_hit, op_cnt);
	struct err *e = hits ? ops_page(rq, &page) : &err_nomem;
	if (e)
		return e;
	for (i = 0; i < op_cnt; i++) {
		unsigned score = score_all(&ops[i], words, word_cnt);
		if (score)
			hits[n++] = (struct ref_hit){&ops[i], word_cnt ? score : 1};
	}
	qsort(hits, n, sizeof(*hits), by_score);
	ops_out_list(rq->out, NULL);
	for (i = page.offset; i < n && i - page.offset < page.limit && ops_out_item(rq->out); i++) {
		ops_out_cstr(rq->out, "op", hits[i].op->name);
		ops_out_cstr(rq->out, "capability", cap_of(hits[i].op));
		ops_out_bool(rq->out, "target", hits[i].op->needs_target);
		ops_out_cstr(rq->out, "help", hits[i].op->help);
		if (word_cnt) {
			put_params(rq, hits[i].op);
			ops_out_cstr(rq->out, "details", hits[i].op->details ? hits[i].op->details : "");
		}
		ops_out_end_item(rq->out);
	}
	ops_end_page(rq, &page, (uint32_t)(i - page.offset), n);
	return NULL;
}
