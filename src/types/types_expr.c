/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer constant expressions, evaluated as they are parsed. A value always has a type, so that sizeof of an expression
 * works; it has a number when it is constant, or an address when it is an object at a constant address, which is how
 * offsetof is written by hand: (size_t)&((struct s *)0)->m. Arithmetic is in 128 bits, then wrapped to the type's width.
 * Not done: floating point values, calls, statement expressions. Their values are "not constant", never wrong.
 */
#include "types/types_int.h"

#include <string.h>

struct val {
	struct types_ref type;  /* {0}: not known */
	enum { VAL_UNKNOWN, VAL_NUMBER, VAL_ADDRESS } kind; /* VAL_ADDRESS: an object at `v` */
	__int128 v;
};

static struct val expr_assign(struct types_parser *p);
static struct val expr_cond(struct types_parser *p);
static struct val expr_unary(struct types_parser *p);

/* TYPES_B_COUNT, which val_int() gives for what is no integer, has no type. */
static struct types_ref val_base(const struct types_parser *p, enum types_base b)
{
	return b < TYPES_B_COUNT ? (struct types_ref){p->t->base_id[b], 0} : (struct types_ref){0};
}

static const struct types_type *val_rec(const struct types_parser *p, struct types_ref r)
{
	return types_get(p->t, types_real(p->t, r).id);
}

/* The integer type behind a type; TYPES_B_COUNT when it is none. */
static enum types_base val_int(const struct types_parser *p, struct types_ref r)
{
	const struct types_type *rec = val_rec(p, r);
	if (rec->kind == TYPES_ENUM)
		rec = val_rec(p, rec->target);
	return rec->kind == TYPES_INT ? rec->base : TYPES_B_COUNT;
}

static __int128 val_wrap(const struct types_parser *p, __int128 v, enum types_base b)
{
	const struct types_base_row *row = &p->t->row->base[b];
	if (b == TYPES_B_BOOL)
		return v != 0;
	if (row->len >= 16 || !row->len)
		return v;
	unsigned __int128 mask = ((unsigned __int128)1 << row->len * 8) - 1;
	unsigned __int128 bits = (unsigned __int128)v & mask;
	if (row->is_signed && bits >> (row->len * 8 - 1))
		bits |= ~mask;
	return (__int128)bits;
}

static struct val val_number(const struct types_parser *p, enum types_base b, __int128 v)
{
	return (struct val){.type = val_base(p, b), .kind = VAL_NUMBER, .v = val_wrap(p, v, b)};
}

/* An object as an operand: its value is not known, arrays become pointers; a bare number stays. */
static struct val val_rvalue(struct types_parser *p, struct val a)
{
	const struct types_type *rec = val_rec(p, a.type);
	if (rec->kind == TYPES_ARRAY || rec->kind == TYPES_FUNC) {
		struct types_ref target = rec->kind == TYPES_ARRAY ? rec->target : a.type;
		struct types_ref ptr = types_pointer(p->t, target);
		if (!ptr.id)
			types_fail_full(p);
		return (struct val){.type = ptr, .kind = a.kind == VAL_ADDRESS ? VAL_NUMBER : VAL_UNKNOWN, .v = a.v};
	}
	if (a.kind == VAL_ADDRESS)
		a.kind = VAL_UNKNOWN;
	return a;
}

static enum types_base val_promote(enum types_base b)
{
	return b < TYPES_B_INT ? TYPES_B_INT : b;
}

/* The usual arithmetic conversions for integers (C 6.3.1.8); bases are in ascending rank. */
static enum types_base val_common(const struct types_parser *p, enum types_base a, enum types_base b)
{
	const struct types_base_row *rows = p->t->row->base;
	a = val_promote(a);
	b = val_promote(b);
	enum types_base high = MAX(a, b), low = MIN(a, b);
	if (rows[high].is_signed && !rows[low].is_signed && rows[low].len == rows[high].len)
		return high + 1; /* the unsigned type of the same rank comes next */
	return high;
}

static struct val val_cast(struct types_parser *p, struct val a, struct types_ref to)
{
	const struct types_type *rec = val_rec(p, to);
	enum types_base b = val_int(p, to);
	a = val_rvalue(p, a);
	if (rec->kind == TYPES_POINTER)
		b = p->t->row->size_type;
	if (b == TYPES_B_COUNT)
		return (struct val){.type = to};
	a.type = to;
	a.v = a.kind == VAL_NUMBER ? val_wrap(p, a.v, b) : 0;
	return a;
}

static bool val_is_true(struct val a)
{
	return a.kind == VAL_NUMBER && a.v != 0;
}

static bool val_is_false(struct val a)
{
	return a.kind == VAL_NUMBER && a.v == 0;
}

static struct val val_size(struct types_parser *p, struct types_ref r, const struct types_token *at, unsigned kw)
{
	const struct types_type *rec = val_rec(p, r);
	uint64_t len = 1;
	uint32_t align = 1;
	if (!r.id)
		types_fail(p, at, "the size of this expression is not known");
	else if (rec->kind != TYPES_VOID && rec->kind != TYPES_FUNC && !types_layout(p->t, r, &len, &align) &&
		 (kw == KW_SIZEOF || !(align = types_align_of(p->t, r))))
		types_fail(p, at, "the type is incomplete, it has no size");
	if (kw == KW_ALIGNOF_GNU && types_get(p->t, r.id)->kind == rec->kind && (rec->kind == TYPES_INT || rec->kind == TYPES_FLOAT))
		align = p->t->row->base[rec->base].pref_align;
	return val_number(p, p->t->row->size_type, kw == KW_SIZEOF ? (__int128)len : (__int128)align);
}

/* sizeof and _Alignof; the current token is past the keyword. */
static struct val expr_sizeof(struct types_parser *p, unsigned kw)
{
	struct types_token at = p->lex.tok;
	if (types_is(p, '(')) {
		struct types_token next = types_peek(p);
		if (types_starts_type(p, &next)) {
			types_next(p);
			struct types_ref r = types_type_name(p);
			types_expect(p, ')');
			return val_size(p, r, &at, kw);
		}
	}
	return val_size(p, expr_unary(p).type, &at, kw);
}

/* The member `name` of an object; anonymous members are seen through. */
static struct val expr_member(struct types_parser *p, struct val a)
{
	if (!types_is(p, TOK_IDENT)) {
		types_fail(p, &p->lex.tok, "a member's name expected");
		return a;
	}
	struct types_at found;
	struct err *e = a.type.id ? types_path(p->t, a.type, types_tok_name(p), p->lex.tok.len, &found) : NULL;
	if (e)
		types_fail(p, &p->lex.tok, "%s", e->text);
	struct val ret = {0};
	if (a.type.id && !e) {
		ret.type = found.type;
		if (a.kind == VAL_ADDRESS && !found.is_bitfield)
			ret = (struct val){.type = found.type, .kind = VAL_ADDRESS, .v = a.v + (__int128)found.off};
	}
	err_free(e);
	types_next(p);
	return ret;
}

static struct val val_deref(struct types_parser *p, struct val a, const struct types_token *at)
{
	a = val_rvalue(p, a);
	const struct types_type *rec = val_rec(p, a.type);
	if (!a.type.id)
		return a;
	if (rec->kind != TYPES_POINTER) {
		types_fail(p, at, "the operand is no pointer");
		return a;
	}
	a.type = rec->target;
	a.kind = a.kind == VAL_NUMBER ? VAL_ADDRESS : VAL_UNKNOWN;
	return a;
}

/* a + sign * b where one is a pointer; false when neither is. */
static bool val_pointer_add(struct types_parser *p, struct val a, struct val b, int sign, struct val *ret)
{
	const struct types_type *ra = val_rec(p, a.type), *rb = val_rec(p, b.type);
	if (ra->kind != TYPES_POINTER && rb->kind != TYPES_POINTER)
		return false;
	bool is_both = ra->kind == rb->kind;
	struct val ptr = ra->kind == TYPES_POINTER ? a : b, index = ra->kind == TYPES_POINTER ? b : a;
	const struct types_type *target = val_rec(p, val_rec(p, ptr.type)->target);
	uint64_t len = target->len ? target->len : 1;
	bool is_known = a.kind == VAL_NUMBER && b.kind == VAL_NUMBER;
	if (is_both) {
		*ret = (struct val){.type = val_base(p, p->t->row->ptrdiff_type)};
		if (is_known && sign < 0)
			*ret = val_number(p, p->t->row->ptrdiff_type, (a.v - b.v) / (__int128)len);
		return true;
	}
	*ret = (struct val){.type = ptr.type, .kind = is_known ? VAL_NUMBER : VAL_UNKNOWN};
	if (is_known) {
		unsigned __int128 step = (unsigned __int128)index.v * len;
		ret->v = val_wrap(p, (__int128)((unsigned __int128)ptr.v + (sign < 0 ? -step : step)), p->t->row->size_type);
	}
	return true;
}

static struct val expr_postfix(struct types_parser *p, struct val a)
{
	for (;;) {
		struct types_token at = p->lex.tok;
		if (types_accept(p, '.')) {
			a = expr_member(p, a);
		} else if (types_accept(p, TOK_ARROW)) {
			a = expr_member(p, val_deref(p, a, &at));
		} else if (types_accept(p, '[')) {
			struct val index = val_rvalue(p, expr_assign(p)), sum = {0};
			types_expect(p, ']');
			if (val_pointer_add(p, val_rvalue(p, a), index, 1, &sum))
				a = val_deref(p, sum, &at);
			else
				a = (struct val){0};
		} else if (types_is(p, '(')) {
			/* A call: what it gives is not known, its type perhaps. */
			types_skip_group(p);
			const struct types_type *rec = val_rec(p, a.type);
			if (rec->kind == TYPES_POINTER)
				rec = val_rec(p, rec->target);
			a = (struct val){.type = rec->kind == TYPES_FUNC ? rec->target : (struct types_ref){0}};
		} else {
			return a;
		}
	}
}

/* __builtin_offsetof(type, a.b[2].c) */
static struct val expr_offsetof(struct types_parser *p)
{
	types_expect(p, '(');
	struct types_token at = p->lex.tok;
	struct val a = {.type = types_type_name(p), .kind = VAL_ADDRESS};
	uint64_t len;
	uint32_t align;
	if (!p->err && !types_layout(p->t, a.type, &len, &align))
		types_fail(p, &at, "offsetof in an incomplete type");
	types_expect(p, ',');
	a = expr_postfix(p, expr_member(p, a));
	types_expect(p, ')');
	return a.kind == VAL_ADDRESS ? val_number(p, p->t->row->size_type, a.v) :
				       (struct val){.type = val_base(p, p->t->row->size_type)};
}

/* _Generic(expr, type: expr, ..., default: expr) */
static struct val expr_generic(struct types_parser *p)
{
	struct val chosen = {0}, other = {0};
	bool is_chosen = false;
	types_expect(p, '(');
	struct types_ref of = types_real(p->t, val_rvalue(p, expr_assign(p)).type);
	of.quals = 0;
	while (types_accept(p, ',')) {
		bool is_default = types_is(p, TOK_IDENT) && !strcmp(types_tok_name(p), "default");
		struct types_ref r = {0};
		if (is_default)
			types_next(p);
		else
			r = types_type_name(p);
		types_expect(p, ':');
		struct val v = expr_assign(p);
		if (is_default)
			other = v;
		else if (!is_chosen && types_compatible(p->t, of, r)) {
			chosen = v;
			is_chosen = true;
		}
	}
	types_expect(p, ')');
	return is_chosen ? chosen : other;
}

static struct val expr_builtin(struct types_parser *p, enum types_kw kw)
{
	types_next(p);
	if (kw == KW_OFFSETOF)
		return expr_offsetof(p);
	if (kw == KW_GENERIC)
		return expr_generic(p);
	struct val ret;
	types_expect(p, '(');
	if (kw == KW_TYPES_COMPATIBLE) {
		struct types_ref a = types_real(p->t, types_type_name(p));
		types_expect(p, ',');
		struct types_ref b = types_real(p->t, types_type_name(p));
		a.quals = b.quals = 0;
		ret = val_number(p, TYPES_B_INT, types_compatible(p->t, a, b));
	} else if (kw == KW_CHOOSE) {
		struct val c = expr_assign(p);
		types_expect(p, ',');
		struct val a = expr_assign(p);
		types_expect(p, ',');
		struct val b = expr_assign(p);
		ret = val_is_true(c) ? a : val_is_false(c) ? b : (struct val){0};
	} else {
		ret = val_number(p, TYPES_B_INT, expr_assign(p).kind == VAL_NUMBER);
	}
	types_expect(p, ')');
	return ret;
}

static struct val expr_ident(struct types_parser *p)
{
	const struct types_name *n = &p->t->names.data[p->lex.tok.name];
	const struct types_decl *d = types_decl_get(p->t, n->ident);
	struct val ret = {0};
	if (n->ident && d->kind == TYPES_D_CONST) {
		enum types_base b = TYPES_B_INT;
		__int128 v = d->value.is_unsigned ? (__int128)(uint64_t)d->value.value : (__int128)d->value.value;
		/* C 6.7.2.2: an int; gcc's wider ones have the enum's type once it is complete. */
		const struct types_type *rec = types_get(p->t, d->type.id);
		if (v != (int32_t)v)
			b = rec->flags & TYPES_F_COMPLETE ? val_int(p, d->type) :
			    v < 0 || v > UINT32_MAX ? (v > INT64_MAX ? TYPES_B_ULLONG : TYPES_B_LLONG) : TYPES_B_UINT;
		ret = val_number(p, b, v);
	} else if (n->ident && (d->kind == TYPES_D_VAR || d->kind == TYPES_D_FUNC)) {
		ret.type = d->type;
		p->not_const = n->s;
	} else {
		p->not_const = n->s;
	}
	types_next(p);
	return ret;
}

static struct val expr_primary(struct types_parser *p)
{
	struct types_token at = p->lex.tok;
	enum types_kw kw = types_kw(p);
	struct val ret = {0};
	if (at.kind == TOK_INT) {
		ret = val_number(p, at.base, (__int128)at.value);
		types_next(p);
	} else if (at.kind == TOK_FLOAT) {
		ret.type = val_base(p, at.base);
		types_next(p);
	} else if (at.kind == TOK_STR) {
		/* Its size counts each escape; nobody takes sizeof of a literal in a declaration. */
		types_string(p);
	} else if (types_accept(p, '(')) {
		if (types_is(p, '{'))
			types_fail(p, &at, "a statement in an expression is not supported");
		ret = expr_assign(p);
		while (types_accept(p, ','))
			ret = expr_assign(p);
		types_expect(p, ')');
	} else if (kw == KW_OFFSETOF || kw == KW_TYPES_COMPATIBLE || kw == KW_CHOOSE || kw == KW_CONSTANT_P || kw == KW_GENERIC) {
		ret = expr_builtin(p, kw);
	} else if (at.kind == TOK_IDENT && kw == KW_NONE) {
		ret = expr_ident(p);
	} else if (at.kind == TOK_EOF) {
		types_fail(p, &at, "an expression expected, but the text ends");
	} else {
		types_fail(p, &at, "an expression expected before '%.*s'", (int)MIN(at.len, 64), at.s);
	}
	return expr_postfix(p, ret);
}

static struct val expr_apply_unary(struct types_parser *p, unsigned op, struct val a)
{
	a = val_rvalue(p, a);
	enum types_base b = val_int(p, a.type);
	if (op == '!') {
		struct val ret = {.type = val_base(p, TYPES_B_INT), .kind = a.kind, .v = !a.v};
		return ret;
	}
	if (b == TYPES_B_COUNT)
		return (struct val){.type = a.type};
	b = val_promote(b);
	if (a.kind != VAL_NUMBER)
		return (struct val){.type = val_base(p, b)};
	unsigned __int128 v = (unsigned __int128)a.v;
	return val_number(p, b, (__int128)(op == '-' ? -v : op == '~' ? ~v : v));
}

static struct val expr_unary_inner(struct types_parser *p)
{
	struct types_token at = p->lex.tok;
	enum types_kw kw = types_kw(p);
	if (kw == KW_SIZEOF || kw == KW_ALIGNOF || kw == KW_ALIGNOF_GNU) {
		types_next(p);
		return expr_sizeof(p, kw);
	}
	if (kw == KW_EXTENSION) {
		types_next(p);
		return expr_unary(p);
	}
	if (at.kind == '-' || at.kind == '+' || at.kind == '!' || at.kind == '~') {
		types_next(p);
		return expr_apply_unary(p, at.kind, expr_unary(p));
	}
	if (types_accept(p, '*'))
		return val_deref(p, expr_unary(p), &at);
	if (types_accept(p, '&')) {
		struct val a = expr_unary(p);
		struct val ret = {.kind = a.kind == VAL_ADDRESS ? VAL_NUMBER : VAL_UNKNOWN, .v = a.v};
		if (a.type.id)
			ret.type = types_pointer(p->t, a.type);
		return ret;
	}
	if (at.kind == '(') {
		struct types_token next = types_peek(p);
		if (types_starts_type(p, &next)) {
			types_next(p);
			struct types_ref to = types_type_name(p);
			types_expect(p, ')');
			if (types_is(p, '{')) {
				types_skip_group(p);
				return expr_postfix(p, (struct val){.type = to});
			}
			return val_cast(p, expr_unary(p), to);
		}
	}
	return expr_primary(p);
}

static struct val expr_unary(struct types_parser *p)
{
	struct val ret = {0};
	if (types_enter(p))
		ret = expr_unary_inner(p);
	types_leave(p);
	return ret;
}

static int expr_level(unsigned op)
{
	switch (op) {
	case '*': case '/': case '%':
		return 10;
	case '+': case '-':
		return 9;
	case TOK_SHL: case TOK_SHR:
		return 8;
	case '<': case '>': case TOK_LE: case TOK_GE:
		return 7;
	case TOK_EQ: case TOK_NE:
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case TOK_AND:
		return 2;
	case TOK_OR:
		return 1;
	default:
		return 0;
	}
}

static bool val_less(const struct types_parser *p, enum types_base b, __int128 x, __int128 y)
{
	return p->t->row->base[b].is_signed ? x < y : (unsigned __int128)x < (unsigned __int128)y;
}

static struct val val_compare(const struct types_parser *p, unsigned op, enum types_base b, __int128 x, __int128 y)
{
	bool less = val_less(p, b, x, y), equal = x == y;
	bool is = op == '<' ? less : op == '>' ? !less && !equal : op == TOK_LE ? less || equal : op == TOK_GE ? !less :
		  op == TOK_EQ ? equal : !equal;
	return val_number(p, TYPES_B_INT, is);
}

static struct val val_shift(const struct types_parser *p, unsigned op, struct val a, struct val n)
{
	enum types_base b = val_promote(val_int(p, a.type));
	const struct types_base_row *row = &p->t->row->base[b];
	if (n.v < 0 || n.v >= row->len * 8)
		return (struct val){.type = val_base(p, b)};
	unsigned cnt = (unsigned)n.v;
	__int128 v = val_wrap(p, a.v, b);
	if (op == TOK_SHL)
		return val_number(p, b, (__int128)((unsigned __int128)v << cnt));
	return val_number(p, b, row->is_signed ? v >> cnt : (__int128)((unsigned __int128)v >> cnt));
}

/* x op y in type `b`; false when C does not define it. */
static bool val_arith(const struct types_parser *p, unsigned op, enum types_base b, __int128 *x, __int128 y)
{
	unsigned __int128 ux = (unsigned __int128)*x, uy = (unsigned __int128)y;
	bool is_signed = p->t->row->base[b].is_signed;
	/* The one quotient that does not fit would trap in 128 bits. */
	bool is_over = is_signed && y == -1;
	switch (op) {
	case '*': *x = (__int128)(ux * uy); return true;
	case '+': *x = (__int128)(ux + uy); return true;
	case '-': *x = (__int128)(ux - uy); return true;
	case '&': *x &= y; return true;
	case '^': *x ^= y; return true;
	case '|': *x |= y; return true;
	case '/':
		if (y)
			*x = is_over ? (__int128)-ux : is_signed ? *x / y : (__int128)(ux / uy);
		return y != 0;
	default:
		if (y)
			*x = is_over ? 0 : is_signed ? *x % y : (__int128)(ux % uy);
		return y != 0;
	}
}

static struct val expr_logic(struct types_parser *p, unsigned op, struct val a, struct val b)
{
	struct val ret = {.type = val_base(p, TYPES_B_INT)};
	bool stops = op == TOK_AND ? val_is_false(a) : val_is_true(a);
	if (stops)
		return val_number(p, TYPES_B_INT, op == TOK_OR);
	if (a.kind == VAL_NUMBER && b.kind == VAL_NUMBER)
		return val_number(p, TYPES_B_INT, b.v != 0);
	return ret;
}

static struct val expr_apply(struct types_parser *p, unsigned op, struct val a, struct val b)
{
	a = val_rvalue(p, a);
	b = val_rvalue(p, b);
	if (op == TOK_AND || op == TOK_OR)
		return expr_logic(p, op, a, b);
	int level = expr_level(op);
	struct val ret = {0};
	if (level == 9 && val_pointer_add(p, a, b, op == '-' ? -1 : 1, &ret))
		return ret;
	enum types_base ba = val_int(p, a.type), bb = val_int(p, b.type);
	bool is_compare = level == 7 || level == 6;
	if (is_compare && val_rec(p, a.type)->kind == TYPES_POINTER)
		ba = p->t->row->size_type;
	if (is_compare && val_rec(p, b.type)->kind == TYPES_POINTER)
		bb = p->t->row->size_type;
	if (ba == TYPES_B_COUNT || bb == TYPES_B_COUNT) {
		/* Floating point: the type matters to sizeof only. */
		const struct types_type *ra = val_rec(p, a.type), *rb = val_rec(p, b.type);
		if (is_compare)
			return (struct val){.type = val_base(p, TYPES_B_INT)};
		if (ra->kind == TYPES_FLOAT && (rb->kind != TYPES_FLOAT || rb->base <= ra->base))
			return (struct val){.type = a.type};
		return (struct val){.type = rb->kind == TYPES_FLOAT ? b.type : (struct types_ref){0}};
	}
	enum types_base common = val_common(p, ba, bb);
	if (a.kind != VAL_NUMBER || b.kind != VAL_NUMBER)
		return (struct val){.type = val_base(p, is_compare ? TYPES_B_INT : level == 8 ? val_promote(ba) : common)};
	if (level == 8)
		return val_shift(p, op, a, b);
	__int128 x = val_wrap(p, a.v, common), y = val_wrap(p, b.v, common);
	if (is_compare)
		return val_compare(p, op, common, x, y);
	if (!val_arith(p, op, common, &x, y))
		return (struct val){.type = val_base(p, common)};
	return val_number(p, common, x);
}

/* Operators of at least that level, by precedence climbing; the nesting is that of levels, at most ten. */
static struct val expr_binary(struct types_parser *p, int min_level)
{
	struct val a = expr_unary(p);
	for (int level; (level = expr_level(p->lex.tok.kind)) >= min_level && level;) {
		unsigned op = p->lex.tok.kind;
		types_next(p);
		a = expr_apply(p, op, a, expr_binary(p, level + 1));
	}
	return a;
}

static struct val expr_cond_inner(struct types_parser *p)
{
	struct val c = expr_binary(p, 1);
	if (!types_accept(p, '?'))
		return c;
	c = val_rvalue(p, c);
	struct val a = types_is(p, ':') ? c : val_rvalue(p, expr_assign(p));
	types_expect(p, ':');
	struct val b = val_rvalue(p, expr_cond(p));
	enum types_base ba = val_int(p, a.type), bb = val_int(p, b.type);
	struct val ret = val_is_true(c) ? a : val_is_false(c) ? b : (struct val){0};
	if (ba != TYPES_B_COUNT && bb != TYPES_B_COUNT) {
		enum types_base common = val_common(p, ba, bb);
		ret.type = val_base(p, common);
		ret.v = val_wrap(p, ret.v, common);
	} else if (!ret.type.id) {
		ret.type = a.type;
	}
	return ret;
}

static struct val expr_cond(struct types_parser *p)
{
	struct val ret = {0};
	if (types_enter(p))
		ret = expr_cond_inner(p);
	types_leave(p);
	return ret;
}

static struct val expr_assign(struct types_parser *p)
{
	return expr_cond(p);
}

int64_t types_try_expr(struct types_parser *p, bool *ret_unsigned, bool *ret_known)
{
	p->not_const = NULL;
	struct val v = val_rvalue(p, expr_cond(p));
	*ret_known = !p->err && v.kind == VAL_NUMBER && val_int(p, v.type) != TYPES_B_COUNT;
	*ret_unsigned = *ret_known && v.v > INT64_MAX;
	if (*ret_known && (v.v > UINT64_MAX || v.v < INT64_MIN))
		types_fail(p, &p->lex.tok, "the value does not fit in 64 bits");
	return *ret_known ? (int64_t)(uint64_t)v.v : 0;
}

int64_t types_const_expr(struct types_parser *p, bool *ret_unsigned)
{
	struct types_token at = p->lex.tok;
	bool is_known;
	int64_t v = types_try_expr(p, ret_unsigned, &is_known);
	if (is_known)
		return v;
	if (p->not_const)
		types_fail(p, &at, "not a constant expression: '%.100s' is not known here", p->not_const);
	else
		types_fail(p, &at, "not a constant expression");
	return 0;
}

struct types_ref types_expr_type(struct types_parser *p)
{
	struct types_token at = p->lex.tok;
	struct types_ref r = expr_cond(p).type;
	if (!r.id)
		types_fail(p, &at, "the type of this expression is not known");
	return r;
}
