/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that change what the analysis makes of the bytes. Names in their arguments become addresses here; what is
 * wanted goes on as text to ses_edit(), which works out the rest.
 */
#include "session/ops_doc.h"
#include "session/ops_int.h"
#include "session/ses_int.h"

#include <inttypes.h>
#include <string.h>

/* One statement: an op of the journal and its value, null to take it away. */
static struct err *run_stated(struct ops_req *rq, const char *op, const char *value)
{
	struct ses_edit e = {.op = op, .sub = "", .value = value, .value_len = value ? strlen(value) : 0};
	struct err *why = ops_addr(rq, "addr", 0, &e.addr);
	return why ? why : ops_run_edits(rq, &e, 1);
}

/* Addresses and names of `text` in hex: words between the characters of `seps`, of which one is kept as it is when it
 * follows `skip`. */
static struct err *to_hex(struct ops_req *rq, const char *text, const char *seps, const char **ret)
{
	_cleanup_buf_ struct buf b = {0};
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, seps);
		uint64_t va;
		char *word = arena_strndup(rq->arena, p, n);
		struct err *e = !word ? &err_nomem : n ? ses_resolve(rq->sn, word, &va) : NULL;
		if (e)
			return e;
		if (n)
			buf_printf(&b, "0x%" PRIx64, va);
		p += n;
		if (*p)
			buf_add_ch(&b, *p++);
	}
	*ret = b.failed ? NULL : arena_strndup(rq->arena, b.data ? b.data : "", b.len);
	return *ret ? NULL : &err_nomem;
}

/* "data:TYPE" and a count, "string:KIND" and a length, "array" with both; null and `*ret_why` when they do not fit. */
static const char *what_text(struct arena *a, const char *what, const char *type, uint64_t cnt, uint64_t len, const char **ret_why)
{
	if (!strncmp(what, "data:", 5) && cnt)
		return arena_printf(a, "array:%" PRIu64 ":%s", cnt, what + 5);
	if (!strcmp(what, "array")) {
		*ret_why = cnt && type ? NULL : "an array needs a count and a type";
		return *ret_why ? NULL : arena_printf(a, "array:%" PRIu64 ":%s", cnt, type);
	}
	if (!strncmp(what, "string", 6) && len)
		return arena_printf(a, "string:%s:%" PRIu64, what[6] == ':' ? what + 7 : "c", len);
	if (!strcmp(what, "undef") && len)
		return arena_printf(a, "undef:%" PRIu64, len);
	return what;
}

struct err *ops_define(struct ops_req *rq)
{
	const char *what = ops_arg_str(rq->args, "what"), *end = ops_arg_str(rq->args, "end"), *why = NULL;
	if (!strcmp(what, "auto"))
		return run_stated(rq, "define", NULL);
	const char *value = what_text(rq->arena, what, ops_arg_str(rq->args, "type"), ops_arg_u64(rq->args, "count", 0),
				      ops_arg_u64(rq->args, "len", 0), &why);
	if (!value)
		return why ? err_fix(err_new(ERR_INVALID, "define: %s", why), "scry help define") : &err_nomem;
	if (!end)
		return run_stated(rq, "define", value);
	if (strcmp(what, "func"))
		return err_new(ERR_INVALID, "define: --end is of functions");
	const char *bound;
	uint64_t va;
	struct err *e = ops_addr(rq, "addr", 0, &va);
	if (!e)
		e = to_hex(rq, end, "", &bound);
	if (e)
		return e;
	struct ses_edit both[] = {{.op = "define", .addr = va, .sub = "", .value = value, .value_len = strlen(value)},
				  {.op = "bounds", .addr = va, .sub = "", .value = bound, .value_len = strlen(bound)}};
	return ops_run_edits(rq, both, 2);
}

struct err *ops_undefine(struct ops_req *rq)
{
	const char *why = NULL, *value = what_text(rq->arena, "undef", NULL, 0, ops_arg_u64(rq->args, "len", 0), &why);
	return value ? run_stated(rq, "define", value) : &err_nomem;
}

struct err *ops_make_data(struct ops_req *rq)
{
	const char *type = ops_arg_str(rq->args, "type"), *why = NULL;
	uint64_t cnt = ops_arg_u64(rq->args, "count", 0);
	const char *what = cnt ? "array" : arena_printf(rq->arena, "data:%s", type);
	const char *value = what ? what_text(rq->arena, what, type, cnt, 0, &why) : NULL;
	return value ? run_stated(rq, "define", value) : &err_nomem;
}

struct err *ops_make_string(struct ops_req *rq)
{
	const char *kind = ops_arg_str(rq->args, "kind"), *why = NULL;
	const char *what = arena_printf(rq->arena, "string:%s", kind ? kind : "c");
	const char *value = what ? what_text(rq->arena, what, NULL, 0, ops_arg_u64(rq->args, "len", 0), &why) : NULL;
	return value ? run_stated(rq, "define", value) : &err_nomem;
}

struct err *ops_bounds(struct ops_req *rq)
{
	const char *text = ops_arg_str(rq->args, "pieces"), *value = NULL;
	struct err *e = *text ? to_hex(rq, text, ",-", &value) : NULL;
	return e ? e : run_stated(rq, "bounds", value);
}

/* "thunk=NAME" with the address in place of the name. */
static struct err *flags_text(struct ops_req *rq, const char *text, const char **ret)
{
	const char *thunk = strstr(text, "thunk=");
	*ret = text;
	if (!thunk)
		return NULL;
	size_t n = strcspn(thunk + 6, ",");
	char *name = arena_strndup(rq->arena, thunk + 6, n);
	const char *hex;
	struct err *e = name ? to_hex(rq, name, "", &hex) : &err_nomem;
	if (e)
		return e;
	*ret = arena_printf(rq->arena, "%.*s%s%s", (int)(thunk + 6 - text), text, hex, thunk + 6 + n);
	return *ret ? NULL : &err_nomem;
}

struct err *ops_flags(struct ops_req *rq)
{
	const char *text = ops_arg_str(rq->args, "flags"), *value = NULL;
	struct err *e = *text ? flags_text(rq, text, &value) : NULL;
	return e ? e : run_stated(rq, "flags", value);
}

/* The words of a jump table as one text. */
struct table_words {
	const char *table, *base; /* null: none */
	uint64_t cnt, size, shift;
	const char *low;          /* "" none */
	bool is_signed;
};

static struct err *table_text(struct ops_req *rq, const struct table_words *w, const char **ret)
{
	const char *table, *base = NULL;
	struct err *e = to_hex(rq, w->table, "", &table);
	if (!e && w->base)
		e = to_hex(rq, w->base, "", &base);
	if (e)
		return e;
	*ret = arena_printf(rq->arena, "table=%s,count=%" PRIu64 ",size=%" PRIu64 "%s%s,shift=%" PRIu64 "%s%s%s", table, w->cnt, w->size,
			    base ? ",base=" : "", base ? base : "", w->shift, w->is_signed ? ",signed" : "", *w->low ? ",low=" : "", w->low);
	return *ret ? NULL : &err_nomem;
}

struct err *ops_jump_table(struct ops_req *rq)
{
	const struct ops_args *a = rq->args;
	const char *low = ops_arg_str(a, "low"), *value;
	struct table_words w = {.table = ops_arg_str(a, "table"), .base = ops_arg_str(a, "base"), .cnt = ops_arg_u64(a, "count", 0),
				.size = ops_arg_u64(a, "size", 4), .shift = ops_arg_u64(a, "shift", 0), .low = low ? low : "",
				.is_signed = ops_arg_is_set(a, "signed")};
	if (ops_arg_is_set(a, "none"))
		return run_stated(rq, "jump_table", NULL);
	if (!w.table || !w.cnt)
		return err_fix(err_new(ERR_INVALID, "jump_table: --table and --count are needed, or --none"), "scry help jump_table");
	struct err *e = table_text(rq, &w, &value);
	return e ? e : run_stated(rq, "jump_table", value);
}

static const char *const load_names[] = {"processor", "base", "format"};

/* "auto" is no option but the absence of one. */
static struct ses_edit load_edit(const char *sub, const char *value)
{
	const char *v = value && *value && strcmp(value, "auto") ? value : NULL;
	return (struct ses_edit){.op = "load", .sub = sub, .value = v, .value_len = v ? strlen(v) : 0};
}

struct err *ops_load(struct ops_req *rq)
{
	struct ses_edit edits[ARRAY_LEN(load_names)];
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(load_names); i++) {
		const char *v = ops_arg_str(rq->args, load_names[i]);
		if (v)
			edits[n++] = load_edit(load_names[i], v);
	}
	if (!n)
		return err_fix(err_new(ERR_INVALID, "load: --processor, --base or --format is needed"), "scry help load");
	return ops_run_edits(rq, edits, n);
}

/* --- documents --- */

static uint64_t doc_num(const struct ops_doc *o, const char *key, uint64_t otherwise)
{
	const struct ops_doc *v = ops_doc_find(o, key);
	return v && v->kind == OPS_DOC_INT && v->num >= 0 ? (uint64_t)v->num : otherwise;
}

static struct err *doc_table(struct ops_req *rq, const struct ops_doc *o, const char **ret, const char **ret_why)
{
	const struct ops_doc *low = ops_doc_find(o, "low"), *sign = ops_doc_find(o, "signed");
	struct table_words w = {.table = ops_doc_str(o, "table"), .base = ops_doc_str(o, "base"), .cnt = doc_num(o, "count", 0),
				.size = doc_num(o, "size", 4), .shift = doc_num(o, "shift", 0), .low = "",
				.is_signed = sign && sign->kind == OPS_DOC_BOOL && sign->num};
	const struct ops_doc *table = ops_doc_find(o, "table");
	*ret = NULL;
	if (table && table->kind == OPS_DOC_NULL)
		return NULL;
	if (low && low->kind == OPS_DOC_INT)
		w.low = arena_printf(rq->arena, "%lld", (long long)low->num);
	*ret_why = w.table && w.cnt ? NULL : "a table needs its address and a count; a null table takes it away";
	return *ret_why ? NULL : w.low ? table_text(rq, &w, ret) : &err_nomem;
}

static struct err *doc_text(struct ops_req *rq, const struct ops_doc *o, const char *op, const char **ret, const char **ret_why)
{
	struct arena *a = rq->arena;
	const char *field = !strcmp(op, "define") ? "what" : !strcmp(op, "make_data") ? "type" : !strcmp(op, "make_string") ? "kind" :
			    !strcmp(op, "bounds") ? "pieces" : !strcmp(op, "flags") ? "flags" : NULL;
	const struct ops_doc *v = field ? ops_doc_find(o, field) : NULL;
	const char *s = v && v->kind == OPS_DOC_STRING ? v->s : NULL;
	uint64_t cnt = doc_num(o, "count", 0), len = doc_num(o, "len", 0);
	bool takes_away = v && (v->kind == OPS_DOC_NULL || (s && (!*s || !strcmp(s, "auto"))));
	*ret = NULL;
	if (!strcmp(op, "undefine"))
		*ret = what_text(a, "undef", NULL, 0, len, ret_why);
	else if (!strcmp(op, "make_string"))
		*ret = what_text(a, s ? arena_printf(a, "string:%s", s) : "string:c", NULL, 0, len, ret_why);
	else if (takes_away)
		return NULL;
	else if (!s)
		*ret_why = arena_printf(a, "it says no %s; null takes the statement away", field);
	else if (!strcmp(op, "define"))
		*ret = what_text(a, s, ops_doc_str(o, "type"), cnt, len, ret_why);
	else if (!strcmp(op, "make_data"))
		*ret = cnt ? what_text(a, "array", s, cnt, 0, ret_why) : arena_printf(a, "data:%s", s);
	else
		return *op == 'b' ? to_hex(rq, s, ",-", ret) : flags_text(rq, s, ret);
	return *ret || *ret_why ? NULL : &err_nomem;
}

struct err *ops_define_doc(struct ops_req *rq, const struct ops_doc *o, const char *op, struct ses_edit *e, bool *ret_is_ours,
			   const char **ret_why)
{
	static const struct { const char *op, *kind; } ops[] = {{"define", "define"}, {"undefine", "define"}, {"make_data", "define"},
								{"make_string", "define"}, {"bounds", "bounds"}, {"flags", "flags"},
								{"jump_table", "jump_table"}};
	size_t i = 0;
	while (op && i < ARRAY_LEN(ops) && strcmp(ops[i].op, op))
		i++;
	*ret_is_ours = op && (i < ARRAY_LEN(ops) || !strcmp(op, "load"));
	if (op && !strcmp(op, "load")) {
		size_t k = 0;
		while (k < ARRAY_LEN(load_names) && !ops_doc_find(o, load_names[k]))
			k++;
		if (k < ARRAY_LEN(load_names))
			*e = load_edit(load_names[k], ops_doc_str(o, load_names[k]));
		else
			*ret_why = "it says none of processor, base, format";
		return NULL;
	}
	if (!*ret_is_ours)
		return NULL;
	e->op = ops[i].kind;
	struct err *why = !strcmp(op, "jump_table") ? doc_table(rq, o, &e->value, ret_why) : doc_text(rq, o, op, &e->value, ret_why);
	e->value_len = e->value ? strlen(e->value) : 0;
	if (!why || why == &err_nomem)
		return why;
	/* A name that is none refuses this wish alone. */
	*ret_why = arena_strndup(rq->arena, why->text, strlen(why->text));
	err_free(why);
	return *ret_why ? NULL : &err_nomem;
}
