/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declare, undeclare and types. The journal keeps one canonical declaration a fact, under its name ("struct s", "size_t",
 * "open"); a set of types is made from the facts of a snapshot when somebody asks.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"
#include "types/types.h"

#include "base/glob.h"

#include <string.h>

static void free_typesp(struct types **t)
{
	types_free(*t);
}
#define _cleanup_types_ _cleanup_(free_typesp)

static struct err *types_abi_for(const struct ses_snap *sn, enum types_abi *ret)
{
	switch (sn->arch ? sn->arch->id : ARCH_ID_NONE) {
	case ARCH_ID_X86_64:
		*ret = TYPES_X86_64;
		return NULL;
	case ARCH_ID_I386:
		*ret = TYPES_I386;
		return NULL;
	case ARCH_ID_A64:
		*ret = TYPES_A64;
		return NULL;
	default:
		return err_new(ERR_UNSUPPORTED, "types: the C types of this processor are not known");
	}
}

/* All declarations of the snapshot but that of the name `without` (null: none); `*ret_lost`: how many could not be read. */
static struct err *load_types(struct ops_req *rq, const char *without, struct types **ret, size_t *ret_lost)
{
	enum types_abi abi = TYPES_X86_64;
	struct err *e = types_abi_for(rq->sn, &abi);
	if (e)
		return e;
	size_t cnt, n = 0;
	const struct edits_fact *facts = edits_range(rq->sn->edits, EDITS_DECL, 0, UINT64_MAX, &cnt);
	struct types_text *list = ARENA_ARRAY(rq->arena, struct types_text, cnt + 1);
	struct err **why = ARENA_ARRAY(rq->arena, struct err *, cnt + 1);
	_cleanup_types_ struct types *t = types_new(abi);
	if (!list || !why || !t)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		if (!without || strcmp(without, facts[i].sub))
			list[n++] = (struct types_text){facts[i].value, facts[i].value_len};
	}
	e = types_parse_unordered(t, list, n, why);
	*ret_lost = 0;
	for (size_t i = 0; !e && i < n; i++) {
		*ret_lost += why[i] != NULL;
		err_free(why[i]);
	}
	if (!e)
		*ret = take_ptr(t);
	return e;
}

static const char *decl_kind(const struct types *t, const struct types_decl *d)
{
	if (d->kind == TYPES_D_TYPEDEF)
		return "typedef";
	if (d->kind == TYPES_D_FUNC || d->kind == TYPES_D_VAR)
		return d->kind == TYPES_D_FUNC ? "func" : "var";
	enum types_kind kind = types_get(t, d->type.id)->kind;
	return kind == TYPES_STRUCT ? "struct" : kind == TYPES_UNION ? "union" : "enum";
}

/* The name a declaration is kept under: tags have their word before it, an enum without a tag its first constant. */
static const char *decl_key(struct ops_req *rq, const struct types *t, const struct types_decl *d)
{
	if (d->kind != TYPES_D_TAG && d->kind != TYPES_D_CONST)
		return arena_strndup(rq->arena, d->name, strlen(d->name));
	return arena_printf(rq->arena, "%s %s", decl_kind(t, d), d->name);
}

struct err *ops_declare(struct ops_req *rq)
{
	const char *text = ops_arg_str(rq->args, "text");
	_cleanup_types_ struct types *t = NULL;
	size_t lost, cnt = 0;
	struct err *e = load_types(rq, NULL, &t, &lost);
	if (e)
		return e;
	struct types_mark mark = types_mark(t);
	e = types_parse(t, text, strlen(text), NULL);
	if (e)
		return err_prefix(e, "declare");
	struct ses_edit *edits = ARENA_ARRAY(rq->arena, struct ses_edit, types_decl_cnt(t));
	for (uint32_t i = 0; edits && (i = types_next_changed(t, &mark, i)) != 0;) {
		const struct types_decl *d = types_decl_get(t, i);
		_cleanup_buf_ struct buf b = {0};
		types_print_decl(t, i, &b);
		size_t len = b.len && b.data[b.len - 1] == '\n' ? b.len - 1 : b.len;
		const char *value = b.failed ? NULL : arena_strndup(rq->arena, b.data, len);
		const char *key = decl_key(rq, t, d);
		if (!value || !key)
			return &err_nomem;
		edits[cnt++] = (struct ses_edit){.op = "declare", .sub = key, .value = value, .value_len = len};
	}
	return edits ? ops_run_edits(rq, edits, cnt) : &err_nomem;
}

/* The key under which a name is declared: itself, or a tag of that name; null when there is none. */
static const char *find_key(struct ops_req *rq, const char *name)
{
	static const char *const words[] = {"", "struct ", "union ", "enum "};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const char *key = arena_printf(rq->arena, "%s%s", words[i], name);
		if (key && edits_find(rq->sn->edits, EDITS_DECL, 0, key))
			return key;
	}
	return NULL;
}

struct err *ops_undeclare(struct ops_req *rq)
{
	const char *name = ops_arg_str(rq->args, "name");
	const char *key = find_key(rq, name);
	if (!key)
		return err_new(ERR_NOT_FOUND, "undeclare: nothing is declared as '%s'", name);
	_cleanup_types_ struct types *with = NULL;
	_cleanup_types_ struct types *without = NULL;
	size_t lost_with, lost_without;
	struct err *e = load_types(rq, NULL, &with, &lost_with);
	if (!e)
		e = load_types(rq, key, &without, &lost_without);
	if (e)
		return e;
	if (lost_without > lost_with)
		return err_fix(err_new(ERR_DENIED, "undeclare: %zu other declarations need '%s'", lost_without - lost_with, key),
			       "take those away first");
	struct ses_edit edit = {.op = "declare", .sub = key};
	return ops_run_edits(rq, &edit, 1);
}

static void put_decl(struct ops_req *rq, const struct types *t, uint32_t idx, const char *key)
{
	struct ops_out *o = rq->out;
	const struct types_decl *d = types_decl_get(t, idx);
	_cleanup_buf_ struct buf b = {0};
	uint64_t len;
	uint32_t align;
	ops_out_cstr(o, "name", key);
	if (d->kind != TYPES_D_FUNC && types_layout(t, d->type, &len, &align))
		ops_out_u64(o, "size", len);
	else
		ops_out_null(o, "size");
	ops_out_cstr(o, "kind", decl_kind(t, d));
	types_print_decl(t, idx, &b);
	ops_out_str(o, "text", b.data ? b.data : "", b.len && b.data[b.len - 1] == '\n' ? b.len - 1 : b.len);
}

struct err *ops_types(struct ops_req *rq)
{
	_cleanup_types_ struct types *t = NULL;
	struct ses_page page;
	size_t lost;
	struct err *e = ops_page(rq, &page);
	if (!e)
		e = load_types(rq, NULL, &t, &lost);
	if (e)
		return e;
	uint32_t shown = 0;
	uint64_t total = 0;
	bool is_full = false;
	struct types_mark start = {0};
	ops_out_list(rq->out, rq->sn);
	for (uint32_t i = 0; (i = types_next_changed(t, &start, i)) != 0;) {
		const struct types_decl *d = types_decl_get(t, i);
		const char *key = d->is_builtin ? NULL : decl_key(rq, t, d);
		if (!key || (page.filter && *page.filter && !glob_match(page.filter, strlen(page.filter), key, strlen(key), true)))
			continue;
		if (total++ < page.offset || is_full || shown == page.limit)
			continue;
		is_full = !ops_out_item(rq->out);
		if (is_full)
			continue;
		put_decl(rq, t, i, key);
		ops_out_end_item(rq->out);
		shown++;
	}
	ops_end_page(rq, &page, shown, total);
	return NULL;
}
