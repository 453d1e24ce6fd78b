/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarators (C 6.7.6). They read inside out: the parts are pushed in their order from the name outwards, then applied to
 * the specifiers' type from the last to the first.
 */
#include "types/types_int.h"

static void declr_push(struct types_parser *p, const struct types_op *op)
{
	if (!p->err && (p->ops.cnt >= TYPES_RECORD_MAX || !VEC_PUSH(&p->ops, *op)))
		types_fail_full(p);
}

/* What may follow a '*' or an opening parenthesis: qualifiers, attributes, conventions. */
static uint32_t declr_quals(struct types_parser *p, struct types_declr *d)
{
	uint32_t quals = 0;
	for (;;) {
		struct types_token at = p->lex.tok;
		struct types_attr attr = {0};
		switch (types_kw(p)) {
		case KW_CONST:
			quals |= TYPES_CONST;
			break;
		case KW_VOLATILE:
			quals |= TYPES_VOLATILE;
			break;
		case KW_RESTRICT:
			quals |= TYPES_RESTRICT;
			break;
		case KW_ATOMIC:
			quals |= TYPES_ATOMIC;
			break;
		case KW_STDCALL:
			d->attr.flags |= TYPES_F_STDCALL;
			break;
		case KW_FASTCALL:
			d->attr.flags |= TYPES_F_FASTCALL;
			break;
		case KW_CDECL:
		case KW_EXTENSION:
			break;
		case KW_ATTRIBUTE:
			types_attrs(p, &attr);
			if (attr.align || attr.mode || attr.vector_len)
				types_fail(p, &at, "aligned, mode and vector_size are not supported at this place");
			d->attr.flags |= attr.flags;
			continue;
		default:
			return quals;
		}
		types_next(p);
	}
}

/* "[...]", the bracket being the current token. */
static void declr_array(struct types_parser *p)
{
	struct types_op op = {.kind = OP_ARRAY, .at = p->lex.tok};
	types_next(p);
	struct types_declr unused = {0};
	while (types_kw(p) == KW_STATIC || types_kw(p) == KW_CONST || types_kw(p) == KW_VOLATILE || types_kw(p) == KW_RESTRICT) {
		if (types_kw(p) == KW_STATIC)
			types_next(p);
		declr_quals(p, &unused);
	}
	struct types_token at = p->lex.tok;
	bool is_unsigned = false, is_known = true;
	int64_t cnt = 0;
	if (types_is(p, ']')) {
		op.is_open = true;
	} else if (p->param_nest && types_is(p, '*') && types_peek(p).kind == ']') {
		op.is_open = true;
		types_next(p);
	} else if (p->param_nest) {
		cnt = types_try_expr(p, &is_unsigned, &is_known);
		op.is_open = !is_known;
	} else {
		cnt = types_const_expr(p, &is_unsigned);
	}
	if (!p->err && cnt < 0 && !is_unsigned)
		types_fail(p, &at, "the array's size is negative");
	op.cnt = (uint64_t)cnt;
	types_expect(p, ']');
	declr_push(p, &op);
}

/* C 6.7.6.3: parameters of array and function type are pointers. */
static struct types_ref param_adjust(struct types_parser *p, struct types_ref r)
{
	struct types_ref real = types_real(p->t, r);
	const struct types_type *rec = types_get(p->t, real.id);
	if (p->err || (rec->kind != TYPES_ARRAY && rec->kind != TYPES_FUNC))
		return r;
	struct types_ref target = rec->target;
	target.quals |= real.quals;
	struct types_ref ptr = types_pointer(p->t, rec->kind == TYPES_ARRAY ? target : r);
	if (!ptr.id)
		types_fail_full(p);
	return ptr;
}

static void declr_param(struct types_parser *p, size_t from)
{
	struct types_spec spec;
	struct types_declr d;
	struct types_token at = p->lex.tok;
	types_specs(p, &spec);
	if (spec.is_typedef || spec.is_static || spec.is_extern)
		types_fail(p, &at, "a parameter has no storage class");
	types_declarator(p, &spec, true, &d);
	if (p->err)
		return;
	const struct types_type *rec = types_get(p->t, types_real(p->t, d.type).id);
	if (rec->kind == TYPES_VOID) {
		if (d.name || p->params.cnt != from || !types_is(p, ')'))
			types_fail(p, &at, "a parameter of type void");
		return;
	}
	struct types_param param = {.type = param_adjust(p, d.type), .name = d.name ? p->t->names.data[d.name].s : NULL};
	if (!p->err && (p->t->params.cnt + p->params.cnt >= TYPES_RECORD_MAX || !VEC_PUSH(&p->params, param)))
		types_fail_full(p);
}

/* "a, b, c)" of an old definition. */
static void declr_old_list(struct types_parser *p, struct types_op *op)
{
	struct types_token first = p->lex.tok;
	op->flags |= TYPES_F_NOPROTO;
	do {
		if (!types_is(p, TOK_IDENT) || types_kw(p))
			break;
		types_next(p);
	} while (types_accept(p, ','));
	if (!types_is(p, ')') || !p->can_be_old)
		types_fail(p, &first, "unknown type name '%.100s'", p->t->names.data[first.name].s);
	p->old_list = first;
}

/* Parameters, from behind the opening parenthesis to behind the closing one. */
static void declr_params(struct types_parser *p)
{
	struct types *t = p->t;
	struct types_op op = {.kind = OP_FUNC, .at = p->lex.tok};
	size_t from = p->params.cnt;
	if (types_is(p, ')')) {
		op.flags |= TYPES_F_NOPROTO;
	} else if (types_is(p, TOK_IDENT) && !types_kw(p) && !types_starts_type(p, &p->lex.tok)) {
		declr_old_list(p, &op);
	} else {
		bool can_be_old = p->can_be_old;
		p->can_be_old = false;
		p->param_nest++;
		do {
			if (types_is(p, TOK_ELLIPSIS) && p->params.cnt > from) {
				op.flags |= TYPES_F_VARIADIC;
				types_next(p);
				break;
			}
			declr_param(p, from);
		} while (types_accept(p, ','));
		p->param_nest--;
		p->can_be_old = can_be_old;
	}
	types_expect(p, ')');
	size_t cnt = p->params.cnt - from;
	op.first = (uint32_t)t->params.cnt;
	op.sub_cnt = (uint32_t)cnt;
	if (!p->err && cnt && !VEC_RESERVE(&t->params, cnt))
		types_fail_full(p);
	for (size_t i = 0; !p->err && i < cnt; i++)
		t->params.data[t->params.cnt++] = p->params.data[from + i];
	p->params.cnt = from;
	declr_push(p, &op);
}

static void declr_inner(struct types_parser *p, bool is_abstract, struct types_declr *d);

static void declr_direct(struct types_parser *p, bool is_abstract, struct types_declr *d)
{
	if (types_is(p, '(')) {
		struct types_token next = types_peek(p);
		bool is_params = is_abstract && (next.kind == ')' || types_starts_type(p, &next));
		/* "(__attribute__((stdcall)) *f)" begins like a parameter but is none. */
		if (next.kind == TOK_IDENT && p->t->names.data[next.name].kw == KW_ATTRIBUTE)
			is_params = false;
		if (!is_params) {
			types_next(p);
			declr_quals(p, d);
			declr_inner(p, is_abstract, d);
			types_expect(p, ')');
		}
	} else if (types_is(p, TOK_IDENT) && types_kw(p) == KW_NONE) {
		d->name = p->lex.tok.name;
		d->at = p->lex.tok;
		types_next(p);
		struct types_attr attr = {0};
		if (types_is(p, '[') && p->lex.s < p->lex.end && *p->lex.s == '[') {
			types_attrs(p, &attr);
			d->attr.align = MAX(d->attr.align, attr.align);
		}
	} else if (!is_abstract) {
		struct types_token at = p->lex.tok;
		if (at.kind == TOK_EOF)
			types_fail(p, &at, "a name expected, but the text ends");
		else
			types_fail(p, &at, "a name expected before '%.*s'", (int)MIN(at.len, 64), at.s);
	}
	while (!p->err) {
		if (types_is(p, '['))
			declr_array(p);
		else if (types_accept(p, '('))
			declr_params(p);
		else
			break;
	}
}

static void declr_inner(struct types_parser *p, bool is_abstract, struct types_declr *d)
{
	size_t from = p->ptrs.cnt;
	if (types_enter(p)) {
		while (types_accept(p, '*')) {
			uint32_t quals = declr_quals(p, d);
			if (p->ptrs.cnt >= TYPES_RECORD_MAX || !VEC_PUSH(&p->ptrs, quals))
				types_fail_full(p);
		}
		declr_direct(p, is_abstract, d);
	}
	types_leave(p);
	while (p->ptrs.cnt > from) {
		struct types_op op = {.kind = OP_POINTER, .quals = VEC_POP(&p->ptrs)};
		declr_push(p, &op);
	}
}

static struct types_ref op_func(struct types_parser *p, const struct types_op *op, struct types_ref result)
{
	enum types_kind kind = types_get(p->t, types_real(p->t, result).id)->kind;
	if (kind == TYPES_ARRAY || kind == TYPES_FUNC) {
		types_fail(p, &op->at, "a function cannot return %s", kind == TYPES_ARRAY ? "an array" : "a function");
		return result;
	}
	uint32_t depth = types_get(p->t, result.id)->depth;
	for (uint32_t i = 0; i < op->sub_cnt; i++)
		depth = MAX(depth, types_get(p->t, p->t->params.data[op->first + i].type.id)->depth);
	struct types_type rec = {.kind = TYPES_FUNC, .target = result, .flags = op->flags, .first = op->first,
				 .sub_cnt = op->sub_cnt, .align = 1, .depth = depth + 1};
	return (struct types_ref){types_add(p->t, &rec), 0};
}

static struct types_ref op_apply(struct types_parser *p, const struct types_op *op, struct types_ref r)
{
	const char *why = NULL;
	struct types_ref ret = {0};
	if (op->kind == OP_POINTER) {
		ret = types_pointer(p->t, r);
		ret.quals = op->quals;
	} else if (op->kind == OP_ARRAY) {
		ret = types_array(p->t, r, op->cnt, op->is_open, &why);
	} else {
		ret = op_func(p, op, r);
	}
	if (why)
		types_fail(p, &op->at, "%s", why);
	else if (!ret.id)
		types_fail_full(p);
	return ret;
}

static void declr_asm(struct types_parser *p, struct types_declr *d)
{
	types_next(p);
	types_expect(p, '(');
	if (types_is(p, TOK_STR))
		d->asm_name = types_string(p);
	else
		types_fail(p, &p->lex.tok, "a string expected");
	types_expect(p, ')');
}

void types_declarator(struct types_parser *p, const struct types_spec *spec, bool is_abstract, struct types_declr *ret)
{
	*ret = (struct types_declr){.at = p->lex.tok};
	struct types_declr *d = ret;
	size_t from = p->ops.cnt;
	p->old_list.kind = TOK_EOF;
	struct types_attr before = {.mode = spec->attr.mode, .vector_len = spec->attr.vector_len};
	struct types_ref r = types_apply(p, spec->type, &before, &d->at);
	declr_inner(p, is_abstract, d);
	for (size_t i = p->ops.cnt; i > from && !p->err; i--)
		r = op_apply(p, &p->ops.data[i - 1], r);
	p->ops.cnt = from;
	while (types_kw(p) == KW_ASM || types_kw(p) == KW_ATTRIBUTE) {
		if (types_kw(p) == KW_ASM)
			declr_asm(p, d);
		else
			types_attrs(p, &d->attr);
	}
	struct types_attr after = d->attr;
	after.flags |= spec->attr.flags;
	d->type = types_apply(p, r, &after, &d->at);
}

struct types_ref types_type_name(struct types_parser *p)
{
	struct types_spec spec;
	struct types_declr d;
	types_specs(p, &spec);
	types_declarator(p, &spec, true, &d);
	if (d.name)
		types_fail(p, &d.at, "a type without a name expected");
	return d.type;
}
