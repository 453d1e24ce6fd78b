/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters by name, as every front end gives them: the text is checked against the type in the table and kept.
 * Addresses and functions stay text here; the handler resolves them at its snapshot.
 */
#include "session/ops.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
	/* Of most the first letter tells. */
	if (!name || *name != *given || strlen(name) != len)
		return false;
	for (size_t i = 1; i < len; i++) {
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

struct err *ops_args_set_doc(struct ops_args *a, const struct ops_param *p, const struct ops_doc *doc)
{
	struct ops_value *v = &a->values[p - a->op->params];
	if (p->type != OPS_JSON)
		return err_new(ERR_INVALID, "%s: a document is no value for it", p->name);
	if (v->is_set)
		return err_new(ERR_INVALID, "%s is given twice", p->name);
	*v = (struct ops_value){.is_set = true, .text = p->name, .doc = doc};
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

static bool ops_is_word(const char *a, const char *b)
{
	return *a == *b && !strcmp(a, b);
}

static const struct ops_value *ops_arg(const struct ops_args *a, const char *name)
{
	const struct ops_param *p = a->op->params;
	for (size_t i = 0; p && p[i].name; i++) {
		if (a->values[i].is_set && (ops_is_word(p[i].name, name) || (p[i].alias && ops_is_word(p[i].alias, name))))
			return &a->values[i];
	}
	return NULL;
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

const char *const *ops_arg_texts(const struct ops_args *a, const char *name, size_t *ret_cnt)
{
	const struct ops_value *v = ops_arg(a, name);
	*ret_cnt = v ? v->text_cnt : 0;
	return v ? (const char *const *)v->texts : NULL;
}

uint64_t ops_arg_u64(const struct ops_args *a, const char *name, uint64_t otherwise)
{
	const struct ops_value *v = ops_arg(a, name);
	return v ? v->num : otherwise;
}

struct err *ops_arg_doc(const struct ops_req *rq, const char *name, struct ops_doc *ret)
{
	const struct ops_value *v = ops_arg(rq->args, name);
	if (v && v->doc) {
		*ret = *v->doc;
		return NULL;
	}
	return v ? ops_doc_read(v->text, rq->call, rq->args->arena, ret) : err_new(ERR_INVALID, "%s is missing", name);
}

/* --- from JSON --- */

/* An address may be given as a number, which as a word would be a name or hex without a prefix. Digits from the last to the first: every
 * request has some, and printf takes longer than all the rest of it. */
static struct err *set_num(struct ops_args *r, const struct ops_param *p, int64_t num)
{
	bool is_place = p->type == OPS_ADDR || p->type == OPS_FUNC, is_negative = num < 0 && !is_place;
	unsigned base = is_place ? 16 : 10;
	char digits[32], *at = digits + sizeof(digits);
	uint64_t v = is_negative ? 0 - (uint64_t)num : (uint64_t)num;
	do {
		*--at = "0123456789abcdef"[v % base];
	} while (v /= base);
	if (is_place)
		at = memcpy(at - 2, "0x", 2);
	if (is_negative)
		*--at = '-';
	const char *text = arena_strndup(r->arena, at, (size_t)(digits + sizeof(digits) - at));
	return text ? ops_args_set(r, p, text) : &err_nomem;
}

/* Our standard input is not the caller's, and what is no plain file may never end. */
static struct err *check_path(const struct ops_param *p, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		return NULL;
	return err_fix(err_new(ERR_INVALID, "%s: %s is no plain file", p->name, path), "give the document itself");
}

static struct err *set_one(struct ops_args *r, const struct ops_param *p, const struct ops_doc *v)
{
	struct err *e;
	switch (v->kind) {
	case OPS_DOC_NULL:
		return NULL;
	case OPS_DOC_BOOL:
		if (p->type != OPS_FLAG)
			return err_new(ERR_INVALID, "%s: true and false are no values for it", p->name);
		return v->num ? ops_args_set(r, p, NULL) : NULL;
	case OPS_DOC_INT:
		return p->type == OPS_FLAG ? err_new(ERR_INVALID, "%s: is true or false", p->name) : set_num(r, p, v->num);
	case OPS_DOC_STRING:
		if (strlen(v->s) != v->len)
			return err_new(ERR_INVALID, "%s: has a NUL in it", p->name);
		if (p->type == OPS_FLAG)
			return err_new(ERR_INVALID, "%s: is true or false", p->name);
		e = p->type == OPS_JSON || p->type == OPS_PATH ? check_path(p, v->s) : NULL;
		return e ? e : ops_args_set(r, p, v->s);
	case OPS_DOC_LIST:
	case OPS_DOC_OBJECT:
		return ops_args_set_doc(r, p, v);
	case OPS_DOC_OTHER:
		break;
	}
	return err_new(ERR_INVALID, "%s: is no value it can take", p->name);
}

static struct err *take(struct ops_args *r, const struct ops_param *p, const struct ops_doc *v)
{
	struct err *e = NULL;
	if (!p->is_repeated || v->kind != OPS_DOC_LIST)
		return set_one(r, p, v);
	for (size_t i = 0; i < v->cnt && !e; i++)
		e = set_one(r, p, &v->items[i]);
	return e;
}

struct err *ops_args_take(struct ops_args *a, const struct ops_doc *params)
{
	struct err *e = NULL;
	for (size_t i = 0; params && i < params->cnt && !e; i++) {
		const struct ops_doc *v = &params->items[i];
		const struct ops_param *p = v->key ? ops_param_find(a->op, v->key, strlen(v->key)) : ops_param_at(a->op, i);
		if (!p && !v->key)
			e = err_new(ERR_INVALID, "%s: takes no %zu parameters by position", a->op->name, params->cnt);
		else
			e = p ? take(a, p, v) : err_new(ERR_INVALID, "%s: %s takes no such parameter", v->key, a->op->name);
	}
	return e ? e : ops_args_check(a);
}
