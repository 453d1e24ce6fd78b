/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/operation.h"

#include <string.h>

#define WORD_MAX 64

static const struct ops_op *op_of(const char *line)
{
	char name[32];
	size_t len = strcspn(line, " \t");
	if (!len || len >= sizeof(name))
		return NULL;
	memcpy(name, line, len);
	name[len] = '\0';
	const struct ops_op *op = ops_find(name);
	return op && op->needs_target ? op : NULL;
}

bool tui_is_operation(const char *line)
{
	return op_of(line) != NULL;
}

/* "-o", as on the command line. */
static const struct ops_param *by_letter(const struct ops_op *op, const char *word)
{
	const struct ops_param *p = word[0] == '-' && word[1] && !word[2] ? op->params : NULL;
	while (p && p->name && p->letter != word[1])
		p++;
	return p && p->name ? p : NULL;
}

static struct err *take_words(const struct ops_op *op, struct ops_args *args, char *rest)
{
	size_t positional = 0;
	char *word;
	while ((word = tui_next_word(&rest))) {
		const struct ops_param *p = by_letter(op, word);
		bool is_option = p || (word[0] == '-' && word[1] == '-' && word[2]);
		char *value = is_option && !p ? strchr(word, '=') : NULL;
		size_t len = is_option ? strcspn(word + 2, "=") : 0;
		if (!p)
			p = is_option ? ops_param_find(op, word + 2, len) : ops_param_at(op, positional++);
		if (!p || (is_option && p->is_positional))
			return err_fix(err_new(ERR_INVALID, "%s: %s takes no such word", word, op->name), "scry help %s", op->name);
		if (is_option && p->type == OPS_FLAG)
			value = NULL;
		else if (is_option)
			value = value ? value + 1 : tui_next_word(&rest);
		else
			value = word;
		struct err *e = ops_args_set(args, p, value);
		if (e)
			return e;
	}
	return ops_args_check(args);
}

struct err *tui_operation(const struct ops_req *on, const char *line, struct buf *out)
{
	const struct ops_op *op = op_of(line);
	struct ops_args args;
	struct ops_out answer;
	struct arena arena = {0};
	if (!op)
		return err_new(ERR_INVALID, "no operation is called so");
	struct ses_call with = *on->call;
	with.caps = ~(uint32_t)0;
	ops_args_init(&args, op, &arena);
	char *rest = arena_strndup(&arena, line + strlen(op->name), strlen(line) - strlen(op->name));
	struct err *e = rest ? take_words(op, &args, rest) : &err_nomem;
	if (!e) {
		ops_out_init(&answer, op, out, false);
		struct ops_req rq = {.sn = on->sn, .call = &with, .args = &args, .arena = &arena, .out = &answer, .project = on->project,
				     .binary = on->binary};
		e = ops_run(&rq);
		if (!e)
			e = take_ptr(answer.status);
		ops_out_fini(&answer);
	}
	arena_fini(&arena);
	return e;
}
