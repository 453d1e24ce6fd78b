/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declare, undeclare and types. The journal keeps one canonical declaration a fact, under its name ("struct s", "size_t",
 * "open"); a set of types is made from the facts of a snapshot when somebody asks.
 */
#include "session/ops_exchange.h"
#include "session/ops_int.h"
#include "session/ses_types.h"
#include "types/types_clang.h"
#include "types/types_system.h"

#include "base/glob.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

static void put_setp(struct ses_typeset **ts)
{
	ses_typeset_put(*ts);
}
#define _cleanup_set_ _cleanup_(put_setp)

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

/* Before the text of what came from a header. */
static const char from_header[] = "/* from ";

/* A header brings in all that it includes, also what no program can refer to. */
static bool is_inline(const struct types_decl *d)
{
	return d->kind == TYPES_D_FUNC && d->is_static;
}

/* Whether the system's table says it already. */
static bool is_known(const struct types *t, const struct types_decl *d, const char *text, size_t len)
{
	const struct types_system_row *r = (int)types_abi_of(t) == types_system_abi ?
		types_system_find(d->name, strlen(d->name), d->kind == TYPES_D_TAG) : NULL;
	if (!r || d->kind == TYPES_D_FUNC || r->kind == TYPES_SYSTEM_FUNC)
		return r && d->kind == TYPES_D_FUNC && r->kind == TYPES_SYSTEM_FUNC;
	/* The table's texts end in a line end. */
	return r->text_len == len + 1 && !memcmp(types_system_text + r->text_off, text, len);
}

/* What declarations are made of, and how many more a header has that the system's table has too. */
struct decl_edits { struct ses_edit *list; size_t cnt, known_cnt; };

/* An edit for every declaration that was made or completed since the mark. `header`: the file they are from; or null. */
static struct err *take_changed(struct ops_req *rq, const struct types *t, const struct types_mark *mark, const char *header,
				struct decl_edits *ret)
{
	size_t cnt = 0, known_cnt = 0;
	struct ses_edit *edits = ARENA_ARRAY(rq->arena, struct ses_edit, types_decl_cnt(t));
	for (uint32_t i = 0; edits && (i = types_next_changed(t, mark, i)) != 0;) {
		const struct types_decl *d = types_decl_get(t, i);
		_cleanup_buf_ struct buf b = {0};
		types_print_decl(t, i, &b);
		size_t len = b.len && b.data[b.len - 1] == '\n' ? b.len - 1 : b.len;
		if (header && is_inline(d))
			continue;
		if (header && is_known(t, d, b.data, len)) {
			known_cnt++;
			continue;
		}
		const char *value = b.failed ? NULL : header ? arena_printf(rq->arena, "%s%s */\n%.*s", from_header, header, (int)len, b.data) :
							       arena_strndup(rq->arena, b.data, len);
		const char *key = decl_key(rq, t, d);
		if (!value || !key)
			return &err_nomem;
		len = strlen(value);
		edits[cnt++] = (struct ses_edit){.op = "declare", .sub = key, .value = value, .value_len = len};
	}
	*ret = (struct decl_edits){edits, cnt, known_cnt};
	return edits ? NULL : &err_nomem;
}

static const char *find_key(struct ops_req *rq, const char *name);
static size_t unreadable(struct ses_snap *sn, struct ses_typeset *ts);

/* Every declaration but that of `key` once more, into a set that has the text in its place: how many it cannot read, which may be
 * because they were left out for want of it. `*ret_first` is the name of the first. */
static struct err *count_lost(struct ops_req *rq, struct ses_typeset *ts, const char *key, size_t *ret, const char **ret_first)
{
	struct ses_page page = {.limit = UINT32_MAX};
	struct ses_fact *f;
	uint32_t n = 0;
	struct err *e = ses_facts(rq->sn, rq->call, "declare", &page, rq->arena, &f);
	struct types_text *list = e ? NULL : ARENA_ARRAY(rq->arena, struct types_text, (size_t)page.cnt + 1);
	struct err **why = e ? NULL : ARENA_ARRAY(rq->arena, struct err *, (size_t)page.cnt + 1);
	const char **names = e ? NULL : ARENA_ARRAY(rq->arena, const char *, (size_t)page.cnt + 1);
	if (!list || !why || !names)
		return e ? e : &err_nomem;
	for (uint32_t i = 0; i < page.cnt; i++) {
		if (!strcmp(key, f[i].sub.s))
			continue;
		names[n] = f[i].sub.s;
		list[n++] = (struct types_text){f[i].value.s, f[i].value.len};
	}
	e = types_parse_unordered(ts->t, list, n, why);
	*ret = 0;
	for (uint32_t i = 0; !e && i < n; i++) {
		if (why[i] && !(*ret)++)
			*ret_first = names[i];
		err_free(why[i]);
	}
	return e;
}

/* The text in the place of a declaration: all that used it must be readable with the new one. */
static struct err *declare_over(struct ops_req *rq, const char *name, const char *text)
{
	_cleanup_set_ struct ses_typeset *with = NULL;
	_cleanup_set_ struct ses_typeset *ts = NULL;
	struct decl_edits made = {0};
	const char *first = "";
	size_t lost = 0;
	const char *key = find_key(rq, name);
	if (!key)
		return err_new(ERR_NOT_FOUND, "declare: nothing is declared as '%s'", name);
	struct err *e = ses_types_new(rq->sn, NULL, &with);
	if (!e)
		e = ses_types_new(rq->sn, key, &ts);
	if (e)
		return e;
	ses_types_know(ts, text, strlen(text));
	struct types_mark mark = types_mark(ts->t);
	e = err_prefix(types_parse(ts->t, text, strlen(text), NULL), "declare");
	if (!e)
		e = take_changed(rq, ts->t, &mark, NULL, &made);
	if (!e)
		e = count_lost(rq, ts, key, &lost, &first);
	if (e)
		return e;
	if (lost > with->lost_cnt)
		return err_new(ERR_DENIED, "declare: '%s' needs '%s' as it was", first, key);
	if (unreadable(rq->sn, ts) > unreadable(rq->sn, with))
		return err_fix(err_new(ERR_DENIED, "declare: typed data or prototypes need '%s' as it was", key), "retype those first");
	bool has_key = false;
	size_t cnt = made.cnt;
	for (size_t i = 0; i < cnt; i++)
		has_key = has_key || !strcmp(made.list[i].sub, key);
	struct ses_edit *all = ARENA_ARRAY(rq->arena, struct ses_edit, cnt + 1);
	if (!all)
		return &err_nomem;
	memcpy(all, made.list, cnt * sizeof(*all));
	if (!has_key)
		all[cnt++] = (struct ses_edit){.op = "declare", .sub = key};
	return ops_run_edits(rq, all, cnt);
}

/* The file's name for a comment. */
static const char *header_name(struct ops_req *rq, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = arena_strndup(rq->arena, slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
	for (char *c = name; c && *c; c++)
		*c = *c == '*' || (uint8_t)*c < ' ' || (uint8_t)*c >= 0x7f ? '?' : *c;
	return name;
}

static const struct ops_value *repeated(const struct ops_args *a, const char *name)
{
	const struct ops_param *p = ops_param_find(a->op, name, strlen(name));
	return &a->values[p - a->op->params];
}

static struct err *read_header(struct ops_req *rq, const char *path, struct buf *ret, const char **ret_triple)
{
	const struct ops_value *folders = repeated(rq->args, "include"), *macros = repeated(rq->args, "define");
	struct ses_header h = {.path = path, .target = ops_arg_str(rq->args, "target"), .folders = folders->texts, .folder_cnt = folders->text_cnt,
			       .macros = macros->texts, .macro_cnt = macros->text_cnt};
	*ret_triple = ses_header_triple(rq->sn, &h, rq->arena);
	return *ret_triple ? ses_header_read(rq->sn, &h, rq->arena, ret) : &err_nomem;
}

static const char *record_name(struct ops_req *rq, const struct types *t, uint32_t id)
{
	const struct types_type *rec = types_get(t, id);
	const char *word = rec->kind == TYPES_STRUCT ? "struct" : rec->kind == TYPES_UNION ? "union" : "enum";
	if (!rec->name && rec->alias)
		return arena_printf(rq->arena, "%s", types_get(t, rec->alias)->name);
	return rec->name ? arena_printf(rq->arena, "%s %s", word, rec->name) :
			   arena_printf(rq->arena, "%s %s without a name", rec->kind == TYPES_ENUM ? "an" : "a", word);
}

/* What libclang, where it is, says of the layouts of a header's text. Without it our own rules stand. */
static struct err *hear(struct ops_req *rq, const char *text, size_t len, struct ops_header *h, struct types_says *ret)
{
	struct err *e = types_clang(h->triple, text, len, ret);
	if (!e)
		return NULL;
	if (e->kind == ERR_ENV)
		h->triple = NULL;
	else
		h->why = arena_strndup(rq->arena, e->text, strlen(e->text));
	bool is_out = h->triple && !h->why;
	err_free(e);
	return is_out ? &err_nomem : NULL;
}

static struct err *put_layouts(struct ops_req *rq, const struct types *t, const struct types_judged *j, struct ops_header *h)
{
	struct ops_layout *list = ARENA_ARRAY(rq->arena, struct ops_layout, j->cnt + 1);
	if (!list)
		return &err_nomem;
	for (size_t i = 0; i < j->cnt; i++) {
		const struct types_differing *d = &j->list[i];
		list[i] = (struct ops_layout){record_name(rq, t, d->type.id), d->len, d->own_len, d->is_taken};
		if (!list[i].name)
			return &err_nomem;
	}
	h->compared_cnt = j->compared_cnt;
	h->layouts = list;
	h->layout_cnt = j->cnt;
	return NULL;
}

static struct err *declare_header(struct ops_req *rq, struct ses_typeset *ts, const char *path)
{
	_cleanup_buf_ struct buf b = {0};
	struct types_says says = {0};
	struct types_judged judged = {0};
	struct decl_edits made = {0};
	struct ops_header h = {0};
	struct err *e = read_header(rq, path, &b, &h.triple);
	const char *text = b.data ? b.data : "";
	if (!e)
		e = hear(rq, text, b.len, &h, &says);
	struct types_mark mark = types_mark(ts->t);
	if (!e)
		e = types_parse_said(ts->t, text, b.len, NULL, h.triple && !h.why ? &says : NULL, &judged);
	e = err_prefix(e, "declare");
	const char *name = header_name(rq, path);
	if (!e && !name)
		e = &err_nomem;
	if (!e)
		e = put_layouts(rq, ts->t, &judged, &h);
	if (!e)
		e = take_changed(rq, ts->t, &mark, name, &made);
	types_says_fini(&says);
	types_judged_fini(&judged);
	h.known_cnt = made.known_cnt;
	return e ? e : ops_run_declares(rq, made.list, made.cnt, &h);
}

struct err *ops_declare(struct ops_req *rq)
{
	const char *text = ops_arg_str(rq->args, "text"), *path = ops_arg_str(rq->args, "header");
	_cleanup_set_ struct ses_typeset *ts = NULL;
	struct decl_edits made = {0};
	if (!text == !path)
		return err_fix(err_new(ERR_INVALID, "declare: C declarations are needed, or --header X.h"), "scry help declare");
	if (ops_arg_is_set(rq->args, "over") && path)
		return err_new(ERR_INVALID, "declare: --over takes C declarations, not --header");
	if (ops_arg_is_set(rq->args, "over"))
		return declare_over(rq, ops_arg_str(rq->args, "over"), text);
	struct err *e = ses_types_new(rq->sn, NULL, &ts);
	if (e)
		return err_prefix(e, "declare");
	/* A header says itself what it needs. */
	if (path)
		return declare_header(rq, ts, path);
	ses_types_know(ts, text, strlen(text));
	struct types_mark mark = types_mark(ts->t);
	e = err_prefix(types_parse(ts->t, text, strlen(text), NULL), "declare");
	if (!e)
		e = take_changed(rq, ts->t, &mark, NULL, &made);
	return e ? e : ops_run_edits(rq, made.list, made.cnt);
}

struct err *ops_types_take(struct ops_req *rq, const struct ses_edit *decls, size_t cnt, struct err **ret_why, struct ses_edit **ret,
			   size_t *ret_cnt)
{
	_cleanup_set_ struct ses_typeset *ts = NULL;
	struct types_text *list = ARENA_ARRAY(rq->arena, struct types_text, cnt + 1);
	struct err *e = list ? ses_types_new(rq->sn, NULL, &ts) : &err_nomem;
	if (e)
		return e;
	for (size_t i = 0; i < cnt; i++) {
		list[i] = (struct types_text){decls[i].value, decls[i].value_len};
		ses_types_know(ts, decls[i].value, decls[i].value_len);
	}
	struct types_mark mark = types_mark(ts->t);
	e = types_parse_unordered(ts->t, list, cnt, ret_why);
	struct decl_edits made = {0};
	if (!e)
		e = take_changed(rq, ts->t, &mark, NULL, &made);
	*ret = made.list;
	*ret_cnt = made.cnt;
	return e;
}

struct err *ops_types_header(struct ops_req *rq, struct buf *out, size_t *ret_cnt)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct types_mark start = {0};
	struct err *e = ses_types_header(rq->sn, false, out);
	if (!e)
		e = ses_types_lock(rq->sn, &ts);
	if (e)
		return e;
	if (ts->lost_cnt)
		buf_printf(out, "/* %zu declarations that could not be read are left out. */\n", ts->lost_cnt);
	*ret_cnt = 0;
	for (uint32_t i = 0; (i = types_next_changed(ts->t, &start, i)) != 0;)
		*ret_cnt += !types_decl_get(ts->t, i)->is_builtin;
	return NULL;
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

/* Statements about addresses that the set cannot read. */
static size_t unreadable(struct ses_snap *sn, struct ses_typeset *ts)
{
	static const enum edits_kind kinds[] = {EDITS_TYPE, EDITS_PROTOTYPE};
	size_t n = 0;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		size_t cnt;
		const struct edits_fact *f = edits_range(sn->edits, kinds[k], 0, UINT64_MAX, &cnt);
		for (size_t i = 0; i < cnt; i++) {
			struct types_ref r;
			uint64_t len;
			uint32_t align;
			struct err *e = ses_types_parse(ts, f[i].value, f[i].value_len, &r);
			n += e || (kinds[k] == EDITS_TYPE && !types_layout(ts->t, r, &len, &align));
			err_free(e);
		}
	}
	return n;
}

struct err *ops_undeclare(struct ops_req *rq)
{
	const char *name = ops_arg_str(rq->args, "name");
	const char *key = find_key(rq, name);
	if (!key)
		return err_new(ERR_NOT_FOUND, "undeclare: nothing is declared as '%s'", name);
	_cleanup_set_ struct ses_typeset *with = NULL;
	_cleanup_set_ struct ses_typeset *without = NULL;
	struct err *e = ses_types_new(rq->sn, NULL, &with);
	if (!e)
		e = ses_types_new(rq->sn, key, &without);
	if (e)
		return e;
	if (without->lost_cnt > with->lost_cnt)
		return err_fix(err_new(ERR_DENIED, "undeclare: %zu other declarations need '%s'", without->lost_cnt - with->lost_cnt, key),
			       "take those away first");
	size_t lost = unreadable(rq->sn, without), had = unreadable(rq->sn, with);
	if (lost > had)
		return err_fix(err_new(ERR_DENIED, "undeclare: %zu typed data or prototypes need '%s'", lost - had, key), "retype those first");
	struct ses_edit edit = {.op = "declare", .sub = key};
	return ops_run_edits(rq, &edit, 1);
}

/* Where a declaration comes from. */
static const char *decl_source(struct ses_snap *sn, const struct types_decl *d, const char *key)
{
	const struct edits_fact *f = d->is_builtin ? NULL : edits_find(sn->edits, EDITS_DECL, 0, key);
	if (f)
		return strncmp(f->value, from_header, strlen(from_header)) ? "user" : "header";
	return image_type_find(sn->im, d->name, strlen(d->name), d->kind == TYPES_D_TAG) ? "dwarf" : "builtin";
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
	ops_out_cstr(o, "source", decl_source(rq->sn, d, key));
	types_print_decl(t, idx, &b);
	ops_out_str(o, "text", b.data ? b.data : "", b.len && b.data[b.len - 1] == '\n' ? b.len - 1 : b.len);
}

/* A type of the list, and how it is found again. */
enum type_from { FROM_DECL, FROM_DWARF, FROM_SYSTEM };
struct type_item {
	const char *key;
	uint64_t rank;         /* sorted by size: it and one more, 0 of what has none */
	uint32_t i;            /* declaration of the set, type of the image, row of the system's table */
	uint8_t from;
};

enum type_sort { SORT_NONE, SORT_NAME, SORT_SIZE };

/* A list of types: written as they come, or collected to be sorted. */
struct type_list {
	struct ops_req *rq;
	struct ses_typeset *ts;
	struct ses_page page;
	const char *source;
	enum type_sort sort;
	VEC(struct type_item) items;
	uint32_t shown;
	uint64_t total;
	bool is_full;
};

static bool list_has(const struct type_list *l, const char *source, const char *key)
{
	const char *filter = l->page.filter;
	return (!l->source || !strcmp(l->source, source)) &&
	       (!filter || !*filter || glob_match(filter, strlen(filter), key, strlen(key), true));
}

static const struct types_system_row *item_func(const struct type_item *item)
{
	const struct types_system_row *r = item->from == FROM_SYSTEM ? &types_system_rows[item->i] : NULL;
	return r && r->kind == TYPES_SYSTEM_FUNC ? r : NULL;
}

/* The name in a key, behind the word before a tag. */
static const char *key_name(const char *key)
{
	static const char *const words[] = {"struct ", "union ", "enum "};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!strncmp(key, words[i], strlen(words[i])))
			return key + strlen(words[i]);
	}
	return key;
}

/* Its declaration in the set, made when it is not there yet; 0 when it cannot be. */
static uint32_t item_decl(struct type_list *l, const struct type_item *item)
{
	if (item->from == FROM_DECL)
		return item->i;
	const char *name = key_name(item->key);
	if (item->from == FROM_DWARF)
		(void)ses_dwarf_type(l->ts, item->i);
	else
		ses_types_know(l->ts, item->key, strlen(item->key));
	return types_find(l->ts->t, name, strlen(name), name != item->key);
}

static void item_put(struct type_list *l, const struct type_item *item)
{
	struct ops_out *o = l->rq->out;
	const struct types_system_row *func = item_func(item);
	uint32_t idx = func ? 0 : item_decl(l, item);
	l->is_full = (func || idx) && !ops_out_item(o);
	if (l->is_full)
		return;
	l->shown++;
	if (idx) {
		put_decl(l->rq, l->ts->t, idx, item->key);
	} else if (func) {
		ops_out_cstr(o, "name", item->key);
		ops_out_null(o, "size");
		ops_out_cstr(o, "kind", "func");
		ops_out_cstr(o, "source", "builtin");
		ops_out_str(o, "text", types_system_text + func->text_off, func->text_len);
	}
	if (idx || func)
		ops_out_end_item(o);
}

static uint64_t item_rank(struct type_list *l, const struct type_item *item)
{
	uint64_t len;
	uint32_t align, idx = item_func(item) ? 0 : item_decl(l, item);
	const struct types_decl *d = idx ? types_decl_get(l->ts->t, idx) : NULL;
	return d && d->kind != TYPES_D_FUNC && types_layout(l->ts->t, d->type, &len, &align) ? len + 1 : 0;
}

/* The next type of those that belong to the list. */
static struct err *list_add(struct type_list *l, struct type_item item)
{
	uint64_t at = l->total++;
	if (l->sort == SORT_NONE) {
		if (at >= l->page.offset && !l->is_full && l->shown < l->page.limit)
			item_put(l, &item);
	} else {
		if (l->sort == SORT_SIZE)
			item.rank = item_rank(l, &item);
		if (!VEC_PUSH(&l->items, item))
			return &err_nomem;
	}
	return l->total % 1024 ? NULL : ses_call_check(l->rq->call);
}

/* What was declared, in the order of the set. */
static struct err *list_declared(struct type_list *l)
{
	struct types_mark start = {0};
	struct err *e = NULL;
	for (uint32_t i = 0; !e && (i = types_next_changed(l->ts->t, &start, i)) != 0;) {
		const struct types_decl *d = types_decl_get(l->ts->t, i);
		const char *key = d->is_builtin ? NULL : decl_key(l->rq, l->ts->t, d);
		if (key && list_has(l, decl_source(l->rq->sn, d, key), key))
			e = list_add(l, (struct type_item){.key = key, .i = i, .from = FROM_DECL});
	}
	return e;
}

/* What debug information says, by name; only what is shown, or what must be measured to be sorted, is made. */
static struct err *list_dwarf(struct type_list *l)
{
	uint32_t cnt;
	struct err *e = NULL;
	const struct image_type *t = image_types(l->rq->sn->im, &cnt);
	for (uint32_t i = 1; !e && i < cnt && t[i].name.len && t[i].kind != IMAGE_T_BASE; i++) {
		struct ses_text name = ses_pool(l->rq->sn, t[i].name);
		const char *word = t[i].kind == IMAGE_T_STRUCT ? "struct " : t[i].kind == IMAGE_T_UNION ? "union " :
				   t[i].kind != IMAGE_T_TYPEDEF ? "enum " : "";
		const char *key = arena_printf(l->rq->arena, "%s%.*s", word, (int)name.len, name.s);
		if (!key)
			return &err_nomem;
		if (!(t[i].flags & IMAGE_T_F_INCOMPLETE) && !edits_find(l->rq->sn->edits, EDITS_DECL, 0, key) && list_has(l, "dwarf", key))
			e = list_add(l, (struct type_item){.key = key, .i = i, .from = FROM_DWARF});
	}
	return e;
}

/* What the system's headers say; only when it is asked for, there are thousands. */
static struct err *list_system(struct type_list *l)
{
	struct err *e = NULL;
	for (uint32_t i = 0; !e && l->source && i < types_system_cnt; i++) {
		const struct types_system_row *r = &types_system_rows[i];
		const char *name = types_system_names + r->name_off, *text = types_system_text + r->text_off;
		const char *key = r->kind != TYPES_SYSTEM_TAG ? name :
				  arena_printf(l->rq->arena, "%.*s %s", (int)strcspn(text, " "), text, name);
		if (!key)
			return &err_nomem;
		if (r->kind != TYPES_SYSTEM_CONST && list_has(l, "builtin", key))
			e = list_add(l, (struct type_item){.key = key, .i = i, .from = FROM_SYSTEM});
	}
	return e;
}

/* By size, those without one first, and by name. */
static int item_cmp(const void *x, const void *y)
{
	const struct type_item *a = x, *b = y;
	int c = strcmp(key_name(a->key), key_name(b->key));
	return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : c ? c : strcmp(a->key, b->key);
}

static int item_cmp_down(const void *x, const void *y)
{
	return item_cmp(y, x);
}

static void list_put_sorted(struct type_list *l)
{
	if (l->items.cnt)
		qsort(l->items.data, l->items.cnt, sizeof(*l->items.data), l->page.sort[0] == '-' ? item_cmp_down : item_cmp);
	for (uint64_t i = l->page.offset; i < l->items.cnt && !l->is_full && l->shown < l->page.limit; i++)
		item_put(l, &l->items.data[i]);
}

static struct err *list_sort(struct type_list *l)
{
	const char *sort = l->page.sort, *key = sort && *sort == '-' ? sort + 1 : sort;
	l->sort = !key || !*key ? SORT_NONE : !strcmp(key, "name") ? SORT_NAME : SORT_SIZE;
	return l->sort != SORT_SIZE || !strcmp(key, "size") ? NULL :
	       err_fix(err_new(ERR_INVALID, "sort: '%s' is no column types can be sorted by", sort), "name, size, -name or -size");
}

static struct err *types_as_c(struct ops_req *rq)
{
	_cleanup_buf_ struct buf b = {0};
	struct err *e = ses_types_header(rq->sn, true, &b);
	if (e)
		return e;
	if (!rq->out->is_json) {
		buf_add(rq->out->buf, b.data, b.len);
		return NULL;
	}
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, ses_snap_rev(rq->sn));
	json_key(j, "c");
	json_strn(j, b.data ? b.data : "", b.len);
	json_end_obj(j);
	return NULL;
}

struct err *ops_types(struct ops_req *rq)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct type_list l = {.rq = rq, .source = ops_arg_str(rq->args, "source")};
	if (ops_arg_is_set(rq->args, "c"))
		return types_as_c(rq);
	struct err *e = ops_page(rq, &l.page);
	if (!e)
		e = list_sort(&l);
	if (!e)
		e = ses_types_lock(rq->sn, &ts);
	if (e)
		return e;
	l.ts = ts;
	ops_out_list(rq->out, rq->sn);
	e = list_declared(&l);
	if (!e)
		e = list_dwarf(&l);
	if (!e)
		e = list_system(&l);
	if (!e && l.sort)
		list_put_sorted(&l);
	VEC_FREE(&l.items);
	ops_end_page(rq, &l.page, l.shown, l.total);
	return e;
}

/* --- one type --- */

/* The declaration of that name, its word before it or not; 0 when there is none. */
static uint32_t find_decl(struct ses_typeset *ts, const char *name)
{
	static const char *const words[] = {"struct ", "union ", "enum "};
	ses_types_know(ts, name, strlen(name));
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);
		if (!strncmp(name, words[i], n))
			return types_find(ts->t, name + n, strlen(name + n), true);
	}
	ses_types_know_tag(ts, name, strlen(name));
	uint32_t idx = types_find(ts->t, name, strlen(name), false);
	return idx ? idx : types_find(ts->t, name, strlen(name), true);
}

/* The struct, union or enum that a declaration is about; 0 when it is another type. */
static struct types_ref inside_of(const struct types *t, const struct types_decl *d)
{
	struct types_ref r = types_real(t, d->type);
	enum types_kind kind = types_get(t, r.id)->kind;
	bool has_inside = kind == TYPES_STRUCT || kind == TYPES_UNION || kind == TYPES_ENUM;
	return has_inside && d->kind != TYPES_D_FUNC && d->kind != TYPES_D_VAR ? r : (struct types_ref){0};
}

static void member_json(struct json *j, const struct types *t, const struct types_member *m)
{
	uint64_t len;
	uint32_t align;
	_cleanup_buf_ struct buf b = {0};
	types_print(t, m->type, NULL, &b);
	json_obj(j);
	json_key(j, "name");
	json_str(j, m->name ? m->name : "");
	json_key(j, "type");
	json_strn(j, b.data ? b.data : "", b.len);
	json_key(j, "offset");
	json_u64(j, m->off);
	json_key(j, "size");
	if (types_layout(t, m->type, &len, &align))
		json_u64(j, len);
	else
		json_u64(j, 0);
	if (m->is_bitfield) {
		json_key(j, "bit_offset");
		json_u64(j, m->bit_off);
		json_key(j, "bits");
		json_u64(j, m->bit_len);
	}
	json_end_obj(j);
}

static void members_json(struct json *j, const struct types *t, struct types_ref r)
{
	uint32_t cnt;
	const struct types_member *m = types_members(t, r.id, &cnt);
	json_key(j, "members");
	json_arr(j);
	for (uint32_t i = 0; i < cnt; i++)
		member_json(j, t, &m[i]);
	json_end_arr(j);
	const struct types_const *c = types_consts(t, r.id, &cnt);
	json_key(j, "constants");
	json_arr(j);
	for (uint32_t i = 0; i < cnt; i++) {
		json_obj(j);
		json_key(j, "name");
		json_str(j, c[i].name);
		json_key(j, "value");
		if (c[i].is_unsigned)
			json_u64(j, (uint64_t)c[i].value);
		else
			json_i64(j, c[i].value);
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void type_json(struct ops_req *rq, struct ses_typeset *ts, uint32_t idx, const char *key)
{
	struct json *j = &rq->out->json;
	const struct types_decl *d = types_decl_get(ts->t, idx);
	_cleanup_buf_ struct buf b = {0};
	uint64_t len = 0;
	uint32_t align = 0;
	bool is_sized = d->kind != TYPES_D_FUNC && types_layout(ts->t, d->type, &len, &align);
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, ses_snap_rev(rq->sn));
	json_key(j, "name");
	json_str(j, key);
	json_key(j, "kind");
	json_str(j, decl_kind(ts->t, d));
	json_key(j, "source");
	json_str(j, decl_source(rq->sn, d, key));
	json_key(j, "size");
	if (is_sized)
		json_u64(j, len);
	else
		json_null(j);
	json_key(j, "align");
	if (is_sized)
		json_u64(j, align);
	else
		json_null(j);
	members_json(j, ts->t, inside_of(ts->t, d));
	types_print_decl(ts->t, idx, &b);
	json_key(j, "text");
	json_strn(j, b.data ? b.data : "", b.len && b.data[b.len - 1] == '\n' ? b.len - 1 : b.len);
	json_end_obj(j);
}

/* A table of offsets, then the C. */
static void type_text(struct ops_req *rq, struct ses_typeset *ts, uint32_t idx, const char *key)
{
	struct buf *b = rq->out->buf;
	const struct types_decl *d = types_decl_get(ts->t, idx);
	struct types_ref r = inside_of(ts->t, d);
	uint64_t len;
	uint32_t align, cnt;
	const struct types_member *m = types_members(ts->t, r.id, &cnt);
	buf_printf(b, "%s  (%s)\n", key, decl_source(rq->sn, d, key));
	if (d->kind != TYPES_D_FUNC && types_layout(ts->t, d->type, &len, &align))
		buf_printf(b, "size %llu, alignment %u\n", (unsigned long long)len, align);
	if (cnt)
		buf_add_str(b, "\nOFFSET   SIZE  MEMBER\n");
	for (uint32_t i = 0; i < cnt; i++) {
		_cleanup_buf_ struct buf type = {0};
		types_print(ts->t, m[i].type, m[i].name, &type);
		buf_printf(b, "%6llu", (unsigned long long)m[i].off);
		if (m[i].is_bitfield)
			buf_printf(b, ".%u %4u b", m[i].bit_off, m[i].bit_len);
		else
			buf_printf(b, " %6llu", types_layout(ts->t, m[i].type, &len, &align) ? (unsigned long long)len : 0);
		struct ses_text line = ses_types_line(&type);
		buf_printf(b, "  %.*s\n", (int)line.len, line.s);
	}
	buf_add_ch(b, '\n');
	types_print_decl(ts->t, idx, b);
}

bool ops_put_type(struct ses_typeset *ts, const char *name, struct buf *out)
{
	uint32_t idx = find_decl(ts, name);
	const struct types_decl *d = idx ? types_decl_get(ts->t, idx) : NULL;
	if (d && inside_of(ts->t, d).id)
		types_print_decl(ts->t, idx, out);
	return d && inside_of(ts->t, d).id;
}

struct err *ops_type(struct ops_req *rq)
{
	const char *name = ops_arg_str(rq->args, "name");
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(rq->sn, &ts);
	if (e)
		return e;
	uint32_t idx = find_decl(ts, name);
	const struct types_decl *d = types_decl_get(ts->t, idx);
	const char *key = idx ? decl_key(rq, ts->t, d) : "";
	if (!idx)
		return err_fix(err_new(ERR_NOT_FOUND, "type: nothing is known as '%s'", name), "scry types FILE lists them, scry declare adds one");
	if (!key)
		return &err_nomem;
	if (rq->out->is_json)
		type_json(rq, ts, idx, key);
	else
		type_text(rq, ts, idx, key);
	return NULL;
}

/* --- the type of a place --- */

/* The type at va, and of which member of what data it is. */
static void put_data_type(struct ops_req *rq, struct ses_typeset *ts, const struct ses_typed *typed, uint32_t loc)
{
	struct ops_out *o = rq->out;
	_cleanup_buf_ struct buf path = {0};
	_cleanup_buf_ struct buf b = {0};
	struct types_ref whole = ses_typed_ref(ts, typed);
	struct types_at at = {.type = whole};
	uint64_t len;
	uint32_t align;
	if (loc != typed->loc && !types_path_of(ts->t, whole, loc - typed->loc, &path, &at))
		at.type = whole;
	types_print(ts->t, at.type, NULL, &b);
	ops_out_str(o, "type", b.data ? b.data : "", b.len);
	if (types_layout(ts->t, at.type, &len, &align))
		ops_out_u64(o, "size", len);
	else
		ops_out_null(o, "size");
	ops_out_str(o, "member", path.data ? path.data : "", path.len);
}

struct err *ops_type_at(struct ops_req *rq)
{
	struct ops_out *o = rq->out;
	const char *source = "";
	uint64_t va;
	struct err *e = ops_addr(rq, "addr", 0, &va);
	if (e)
		return e;
	uint32_t loc = space_loc(rq->sn->space, va);
	const struct ses_typed *typed = loc == LOC_NONE ? NULL : ses_typed_at(rq->sn, loc);
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	e = typed ? ses_types_lock(rq->sn, &ts) : NULL;
	if (e)
		return e;
	struct ses_text proto = typed ? ses_text_of("", 0) : ses_prototype_at(rq->sn, va, rq->arena, &source);
	if (!typed && !proto.len) {
		proto = ses_proto_recovered(rq->sn, va, rq->arena);
		source = proto.len ? "recovered" : "";
	}
	(void)ops_out_item(o);
	ops_out_addr(o, "addr", va);
	ops_out_text(o, "name", ses_where(rq->sn, va, rq->arena));
	if (typed) {
		put_data_type(rq, ts, typed, loc);
		source = edits_find(rq->sn->edits, EDITS_TYPE, space_va(rq->sn->space, typed->loc), "") ? "user" : "dwarf";
	} else {
		ops_out_null(o, "type");
		ops_out_null(o, "size");
	}
	ops_out_bool(o, "is_func", image_func_starting(rq->sn->im, loc) != UINT32_MAX);
	if (proto.len)
		ops_out_text(o, "prototype", proto);
	else
		ops_out_null(o, "prototype");
	ops_out_cstr(o, "source", source);
	ops_out_end_item(o);
	return NULL;
}
