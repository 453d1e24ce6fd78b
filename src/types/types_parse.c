/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translation units, single types and prototypes: the parser's entries. Each takes a mark first and goes back to it when
 * anything failed.
 */
#include "types/types_int.h"

#include <string.h>

/* Whether the new declaration of the same name says nothing else; then brings in what it adds. */
static bool decl_merge(struct types_parser *p, uint32_t idx, const struct types_decl *with)
{
	struct types *t = p->t;
	const struct types_decl *d = &t->decls.data[idx];
	if (d->kind != with->kind)
		return false;
	if (d->kind == TYPES_D_TYPEDEF)
		return types_same(t, d->type, with->type) && types_align_of(t, d->type) == types_align_of(t, with->type);
	if (!types_compatible(t, d->type, with->type))
		return false;
	const struct types_type *old = types_get(t, d->type.id), *new = types_get(t, with->type.id);
	bool adds = (old->flags & (TYPES_F_OPEN | TYPES_F_NOPROTO) && !(new->flags & (TYPES_F_OPEN | TYPES_F_NOPROTO))) ||
		    (new->flags & ~old->flags & (TYPES_F_NORETURN | TYPES_F_CONVENTIONS)) || (with->asm_name && !d->asm_name);
	if (!adds)
		return true;
	struct types_decl *to = types_decl_change(t, idx);
	if (!to) {
		types_fail_full(p);
		return true;
	}
	/* What neither declaration said must not get lost: a prototype stays when () comes after it. */
	if (!(new->flags & (TYPES_F_OPEN | TYPES_F_NOPROTO)) || old->flags & (TYPES_F_OPEN | TYPES_F_NOPROTO))
		to->type = with->type;
	/* It may name types that came after the first declaration. */
	to->order = ++t->order;
	if (with->asm_name)
		to->asm_name = with->asm_name;
	return true;
}

static void decl_put(struct types_parser *p, const struct types_declr *d, const struct types_decl *decl)
{
	uint32_t was = p->t->names.data[d->name].ident;
	if (p->err)
		return;
	if (was && !types_decl_get(p->t, was)->is_builtin) {
		if (!decl_merge(p, was, decl))
			types_fail(p, &d->at, "'%.100s' is declared as something else before", p->t->names.data[d->name].s);
		return;
	}
	if (!types_decl_add(p->t, decl, d->name))
		types_fail_full(p);
}

static void decl_typedef(struct types_parser *p, const struct types_spec *spec, const struct types_declr *d)
{
	struct types *t = p->t;
	if (p->err)
		return;
	uint32_t align = MAX(spec->attr.align, d->attr.align);
	const struct types_type *target = types_get(t, d->type.id);
	struct types_ref real = types_real(t, d->type);
	uint32_t was = target->kind == TYPES_TYPEDEF ? target->align : 0;
	const struct types_type *rec = types_get(t, real.id);
	uint32_t flags = (rec->flags & TYPES_F_COMPLETE) | ((spec->attr.flags | d->attr.flags) & TYPES_F_MAY_ALIAS);
	struct types_type def = {.kind = TYPES_TYPEDEF, .flags = flags, .user_align = align, .align = align ? align : was,
				 .len = rec->len, .depth = target->depth + 1, .target = d->type, .real = real,
				 .name = t->names.data[d->name].s};
	bool is_named_by = (target->kind == TYPES_STRUCT || target->kind == TYPES_UNION || target->kind == TYPES_ENUM) &&
			   !target->name && !target->alias && !d->type.quals;
	uint32_t id = types_add(t, &def);
	if (!id) {
		types_fail_full(p);
		return;
	}
	struct types_decl decl = {.kind = TYPES_D_TYPEDEF, .type = {id, 0}};
	size_t decl_cnt = t->decls.cnt;
	decl_put(p, d, &decl);
	if (!is_named_by || p->err || t->decls.cnt == decl_cnt)
		return;
	struct types_type *anon = types_change(t, d->type.id);
	if (anon)
		anon->alias = id;
	else
		types_fail_full(p);
}

/* The parameter declarations and the body of an old or new function definition. */
static void decl_body(struct types_parser *p)
{
	while (!types_is(p, '{') && !p->err) {
		struct types_spec spec;
		struct types_declr d;
		types_specs(p, &spec);
		p->param_nest++;
		do
			types_declarator(p, &spec, false, &d);
		while (types_accept(p, ','));
		p->param_nest--;
		types_expect(p, ';');
	}
	if (types_is(p, '{'))
		types_skip_group(p);
}

static void decl_init(struct types_parser *p)
{
	while (!types_is(p, ',') && !types_is(p, ';') && !p->err) {
		if (types_is(p, TOK_EOF))
			types_fail(p, &p->lex.tok, "';' expected, but the text ends");
		else if (types_is(p, '(') || types_is(p, '{') || types_is(p, '['))
			types_skip_group(p);
		else
			types_next(p);
	}
}

/* One declarator and what follows it; true when a body ended the declaration. */
static bool decl_one(struct types_parser *p, const struct types_spec *spec, bool is_first)
{
	struct types_declr d;
	p->can_be_old = is_first && !spec->is_typedef;
	types_declarator(p, spec, false, &d);
	p->can_be_old = false;
	struct types_token old = p->old_list;
	p->old_list.kind = TOK_EOF;
	if (spec->is_typedef) {
		decl_typedef(p, spec, &d);
		return false;
	}
	enum types_kind kind = types_get(p->t, types_real(p->t, d.type).id)->kind;
	struct types_decl decl = {.kind = kind == TYPES_FUNC ? TYPES_D_FUNC : TYPES_D_VAR, .type = d.type,
				  .is_static = spec->is_static, .asm_name = d.asm_name};
	if (kind == TYPES_VOID && !p->err && !spec->is_extern)
		types_fail(p, &d.at, "a variable of type void");
	bool has_body = kind == TYPES_FUNC && is_first && (types_is(p, '{') || types_starts_type(p, &p->lex.tok));
	if (old.kind != TOK_EOF && !has_body)
		types_fail(p, &old, "unknown type name '%.100s'", p->t->names.data[old.name].s);
	if (has_body && old.kind == TOK_EOF && !types_is(p, '{'))
		types_expect(p, ';');
	decl_put(p, &d, &decl);
	if (has_body)
		decl_body(p);
	else if (types_accept(p, '='))
		decl_init(p);
	return has_body;
}

static void parse_external(struct types_parser *p)
{
	struct types_spec spec;
	if (types_accept(p, ';'))
		return;
	if (types_kw(p) == KW_STATIC_ASSERT) {
		types_static_assert(p);
		return;
	}
	if (types_kw(p) == KW_ASM) {
		types_next(p);
		if (!types_is(p, '('))
			types_fail(p, &p->lex.tok, "'(' expected");
		types_skip_group(p);
		types_accept(p, ';');
		return;
	}
	types_specs(p, &spec);
	if (types_accept(p, ';'))
		return;
	bool is_first = true;
	do {
		if (decl_one(p, &spec, is_first))
			return;
		is_first = false;
	} while (types_accept(p, ','));
	types_expect(p, ';');
}

static struct err *parse_begin(struct types_parser *p, struct types *t, const char *text, size_t len)
{
	if (len > TYPES_TEXT_MAX)
		return err_new(ERR_BUDGET, "the text has more than %zu bytes", TYPES_TEXT_MAX);
	*p = (struct types_parser){.t = t};
	/* An empty text may be a null pointer. */
	p->lex.s = p->text = len ? text : "";
	p->lex.end = p->lex.s + len;
	p->lex.line_start = p->lex.s;
	p->lex.line = 1;
	types_next(p);
	return NULL;
}

static struct err *parse_end(struct types_parser *p, const struct types_mark *mark, struct types_place *ret_place)
{
	if (!p->err && p->t->is_full)
		types_fail_full(p);
	if (p->err) {
		types_rewind(p->t, mark);
		if (ret_place)
			*ret_place = p->place;
	}
	map_fini(&p->seen);
	VEC_FREE(&p->members);
	VEC_FREE(&p->params);
	VEC_FREE(&p->consts);
	VEC_FREE(&p->ops);
	VEC_FREE(&p->ptrs);
	return p->err;
}

struct err *types_parse_said(struct types *t, const char *text, size_t len, struct types_place *ret_place, const struct types_says *says,
			     struct types_judged *ret)
{
	struct types_parser p;
	struct types_mark mark = types_mark(t);
	*ret = (struct types_judged){0};
	struct err *e = parse_begin(&p, t, text, len);
	if (e)
		return e;
	p.says = says;
	while (!types_is(&p, TOK_EOF) && !p.err)
		parse_external(&p);
	*ret = (struct types_judged){p.differing.data, p.differing.cnt, p.compared_cnt};
	return parse_end(&p, &mark, ret_place);
}

struct err *types_parse(struct types *t, const char *text, size_t len, struct types_place *ret_place)
{
	struct types_judged none;
	return types_parse_said(t, text, len, ret_place, NULL, &none);
}

void types_judged_fini(struct types_judged *j)
{
	free(j->list);
	*j = (struct types_judged){0};
}

struct err *types_parse_unordered(struct types *t, const struct types_text *list, size_t cnt, struct err **ret_why)
{
	_cleanup_free_ bool *is_taken = alloc_array(cnt, sizeof(*is_taken));
	if (!is_taken)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++)
		ret_why[i] = NULL;
	size_t left = cnt;
	for (bool has_moved = true; has_moved && left;) {
		has_moved = false;
		for (size_t i = 0; i < cnt; i++) {
			if (is_taken[i])
				continue;
			err_free(ret_why[i]);
			ret_why[i] = types_parse(t, list[i].text, list[i].len, NULL);
			is_taken[i] = !ret_why[i];
			has_moved |= is_taken[i];
			left -= is_taken[i];
		}
	}
	return NULL;
}

uint32_t types_next_changed(const struct types *t, const struct types_mark *since, uint32_t after)
{
	for (uint32_t i = after + 1; i < t->decls.cnt; i++) {
		const struct types_decl *d = &t->decls.data[i];
		const struct types_type *rec = types_get(t, d->type.id);
		bool is_own = d->kind != TYPES_D_CONST || (!rec->name && !rec->alias && rec->sub_cnt &&
							   t->consts.data[rec->first].name == d->name);
		if (d->order > since->order && is_own)
			return i;
	}
	return 0;
}

/* One declarator, which may lack a name, and then nothing. */
static void parse_single(struct types_parser *p, struct types_ref *ret, uint32_t *ret_name)
{
	struct types_spec spec;
	struct types_declr d;
	struct types_token at = p->lex.tok;
	types_specs(p, &spec);
	if (spec.is_typedef)
		types_fail(p, &at, "a type expected, not a typedef");
	types_declarator(p, &spec, true, &d);
	types_accept(p, ';');
	if (!types_is(p, TOK_EOF))
		types_fail(p, &p->lex.tok, "'%.*s' after the type", (int)MIN(p->lex.tok.len, 64), p->lex.tok.s);
	*ret = d.type;
	*ret_name = d.name;
}

struct err *types_parse_type(struct types *t, const char *text, size_t len, struct types_place *ret_place, struct types_ref *ret)
{
	struct types_parser p;
	struct types_mark mark = types_mark(t);
	struct types_ref r;
	uint32_t name;
	struct err *e = parse_begin(&p, t, text, len);
	if (e)
		return e;
	parse_single(&p, &r, &name);
	e = parse_end(&p, &mark, ret_place);
	if (!e)
		*ret = r;
	return e;
}

struct err *types_parse_prototype(struct types *t, const char *text, size_t len, struct types_place *ret_place,
				  struct types_ref *ret, const char **ret_name)
{
	struct types_parser p;
	struct types_mark mark = types_mark(t);
	struct types_ref r;
	uint32_t name;
	struct err *e = parse_begin(&p, t, text, len);
	if (e)
		return e;
	struct types_token at = p.lex.tok;
	parse_single(&p, &r, &name);
	if (!p.err && types_get(t, types_real(t, r).id)->kind != TYPES_FUNC)
		types_fail(&p, &at, "this is no function: write it like int f(char *, ...)");
	e = parse_end(&p, &mark, ret_place);
	if (e)
		return e;
	*ret = r;
	*ret_name = name ? t->names.data[name].s : NULL;
	return NULL;
}
