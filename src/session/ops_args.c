/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters by name, as every front end gives them: the text is checked against the type in the table and kept.
 * Addresses and functions stay text here; the handler resolves them at its snapshot.
 */
#include "session/ops.h"

#include <errno.h>
#include <string.h>

size_t ops_param_cnt(const struct ops_op *op)
{
	size_t n = 0;
	while (op->params && op->params[n].name)
		n++;
	return n;
}

size_t ops_column_cnt(const struct ops_op *op)
{
	size_t n = 0;
	while (op->columns && op->columns[n].key)
		n++;
	return n;
}

static bool ops_name_is(const char *name, const char *given, size_t len)
{
	if (!name || strlen(name) != len)
		return false;
	for (size_t i = 0; i < len; i++) {
		char ch = given[i] == '-' ? '_' : given[i];
		if (name[i] != ch)
			return false;
	}
	return true;
}

const struct ops_param *ops_param_find(const struct ops_op *op, const char *name, size_t len)
{
	for (const struct ops_param *p = op->params; p && p->name; p++) {
		if (ops_name_is(p->name, name, len) || ops_name_is(p->alias, name, len))
			return p;
	}
	return NULL;
}

const struct ops_param *ops_param_at(const struct ops_op *op, size_t n)
{
	const struct ops_param *last = NULL;
	for (const struct ops_param *p = op->params; p && p->name; p++) {
		if (!p->is_positional)
			continue;
		if (n-- == 0)
			return p;
		last = p;
	}
	return last && last->is_repeated ? last : NULL;
}

void ops_args_init(struct ops_args *a, const struct ops_op *op, struct arena *arena)
{
	*a = (struct ops_args){.op = op, .arena = arena};
}

static bool ops_choice_has(const char *choices, const char *text)
{
	size_t len = strlen(text);
	for (const char *c = choices; *c;) {
		size_t n = strcspn(c, "|");
		if (n == len && !memcmp(c, text, n))
			return true;
		c += n + (c[n] == '|');
	}
	return false;
}

static struct err *ops_parse_num(const struct ops_param *p, const char *text, uint64_t *ret)
{
	char *end;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 0);
	if (!*text || *end || errno || *text == '-' || *text == '+' || *text == ' ')
		return err_new(ERR_INVALID, "%s: '%s' is not a number", p->name, text);
	*ret = v;
	return NULL;
}

static struct err *ops_args_append(struct ops_args *a, struct ops_value *v, const char *text)
{
	const char **grown = ARENA_ARRAY(a->arena, const char *, v->text_cnt + 1);
	if (!grown)
		return &err_nomem;
	if (v->text_cnt)
		memcpy(grown, v->texts, v->text_cnt * sizeof(*grown));
	grown[v->text_cnt++] = text;
	v->texts = grown;
	return NULL;
}

struct err *ops_args_set(struct ops_args *a, const struct ops_param *p, const char *text)
{
	struct ops_value *v = &a->values[p - a->op->params];
	if (v->is_set && !p->is_repeated && p->type != OPS_FLAG)
		return err_new(ERR_INVALID, "%s is given twice", p->name);
	if (p->type == OPS_FLAG && text)
		return err_new(ERR_INVALID, "%s takes no value", p->name);
	if (p->type != OPS_FLAG && !text)
		return err_new(ERR_INVALID, "%s needs a value", p->name);
	struct err *e = NULL;
	if (p->type == OPS_INT)
		e = ops_parse_num(p, text, &v->num);
	else if (p->type == OPS_CHOICE && !ops_choice_has(p->choices, text))
		e = err_new(ERR_INVALID, "%s: '%s' is none of %s", p->name, text, p->choices);
	if (!e && p->is_repeated)
		e = ops_args_append(a, v, text);
	if (e)
		return e;
	v->is_set = true;
	v->text = text;
	return NULL;
}

struct err *ops_args_check(const struct ops_args *a)
{
	size_t n = ops_param_cnt(a->op);
	for (size_t i = 0; i < n; i++) {
		const struct ops_param *p = &a->op->params[i];
		if (p->is_required && !a->values[i].is_set)
			return err_fix(err_new(ERR_INVALID, "%s: %s is missing", a->op->name, p->value ? p->value : p->name),
				       "scry help %s", a->op->name);
	}
	return NULL;
}

static const struct ops_value *ops_arg(const struct ops_args *a, const char *name)
{
	const struct ops_param *p = ops_param_find(a->op, name, strlen(name));
	return p && a->values[p - a->op->params].is_set ? &a->values[p - a->op->params] : NULL;
}

bool ops_arg_is_set(const struct ops_args *a, const char *name)
{
	return ops_arg(a, name) != NULL;
}

const char *ops_arg_str(const struct ops_args *a, const char *name)
{
	const struct ops_value *v = ops_arg(a, name);
	return v ? v->text : NULL;
}

uint64_t ops_arg_u64(const struct ops_args *a, const char *name, uint64_t otherwise)
{
	const struct ops_value *v = ops_arg(a, name);
	return v ? v->num : otherwise;
}
