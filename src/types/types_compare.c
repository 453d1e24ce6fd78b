/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two types are the same, within one set or across two. Steps and recursion are bounded. */
#include "types/types_int.h"

#include <string.h>

#define COMPARE_STEPS 100000
#define COMPARE_DEPTH 1000

struct compare {
	const struct types *a, *b;
	bool is_lax;       /* C's compatibility */
	bool is_deep;      /* tagged types by their members too */
	unsigned steps;
	unsigned depth;
	struct map done;   /* pairs of tagged types found the same, or being compared: a id << 32 | b id */
};

static bool compare_refs(struct compare *c, struct types_ref a, struct types_ref b);

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool compare_members(struct compare *c, const struct types_type *a, const struct types_type *b)
{
	if (a->sub_cnt != b->sub_cnt || a->len != b->len || a->align != b->align)
		return false;
	for (uint32_t i = 0; i < a->sub_cnt; i++) {
		const struct types_member *m = &c->a->members.data[a->first + i], *n = &c->b->members.data[b->first + i];
		if (!same_text(m->name, n->name) || m->off != n->off || m->is_bitfield != n->is_bitfield ||
		    m->bit_off != n->bit_off || m->bit_len != n->bit_len || !compare_refs(c, m->type, n->type))
			return false;
	}
	return true;
}

static bool compare_consts(struct compare *c, const struct types_type *a, const struct types_type *b)
{
	if (a->sub_cnt != b->sub_cnt || a->len != b->len)
		return false;
	for (uint32_t i = 0; i < a->sub_cnt; i++) {
		const struct types_const *m = &c->a->consts.data[a->first + i], *n = &c->b->consts.data[b->first + i];
		if (strcmp(m->name, n->name) || m->value != n->value || m->is_unsigned != n->is_unsigned)
			return false;
	}
	return true;
}

static bool compare_bodies(struct compare *c, const struct types_type *a, const struct types_type *b)
{
	if ((a->flags ^ b->flags) & TYPES_F_COMPLETE)
		return false;
	return a->kind == TYPES_ENUM ? compare_consts(c, a, b) : compare_members(c, a, b);
}

static bool compare_tagged(struct compare *c, uint32_t a_id, uint32_t b_id)
{
	const struct types_type *a = types_get(c->a, a_id), *b = types_get(c->b, b_id);
	if (c->a == c->b && a_id == b_id)
		return true;
	if (!same_text(a->name, b->name))
		return false;
	if (a->name && !c->is_deep)
		return true;
	if (a->name && !(a->flags & b->flags & TYPES_F_COMPLETE))
		return true;
	uint64_t key = (uint64_t)a_id << 32 | b_id;
	uint32_t was;
	if (map_find(&c->done, key, &was))
		return true;
	if (!map_put(&c->done, key, 0))
		return false;
	return compare_bodies(c, a, b);
}

static bool compare_funcs(struct compare *c, const struct types_type *a, const struct types_type *b)
{
	uint32_t both = TYPES_F_VARIADIC | TYPES_F_NOPROTO | TYPES_F_CONVENTIONS | (c->is_lax ? 0 : TYPES_F_NORETURN);
	if (!compare_refs(c, a->target, b->target))
		return false;
	if (c->is_lax && (a->flags | b->flags) & TYPES_F_NOPROTO)
		return true;
	if ((a->flags ^ b->flags) & both || a->sub_cnt != b->sub_cnt)
		return false;
	for (uint32_t i = 0; i < a->sub_cnt; i++) {
		/* C 6.7.6.3p15: a parameter's own qualifiers do not count. */
		struct types_ref m = types_real(c->a, c->a->params.data[a->first + i].type);
		struct types_ref n = types_real(c->b, c->b->params.data[b->first + i].type);
		m.quals = n.quals = 0;
		if (!compare_refs(c, m, n))
			return false;
	}
	return true;
}

static bool compare_kinds(struct compare *c, struct types_ref ra, struct types_ref rb)
{
	const struct types_type *a = types_get(c->a, ra.id), *b = types_get(c->b, rb.id);
	if (c->is_lax && a->kind == TYPES_ENUM && b->kind == TYPES_INT)
		return types_get(c->a, a->target.id)->base == b->base;
	if (c->is_lax && a->kind == TYPES_INT && b->kind == TYPES_ENUM)
		return types_get(c->b, b->target.id)->base == a->base;
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case TYPES_NONE:
		return true;
	case TYPES_VOID:
	case TYPES_VALIST:
	case TYPES_INT:
	case TYPES_FLOAT:
		return a->base == b->base;
	case TYPES_ARRAY:
		if (!compare_refs(c, a->target, b->target))
			return false;
		if (c->is_lax && (a->flags | b->flags) & TYPES_F_OPEN)
			return true;
		return a->cnt == b->cnt && !((a->flags ^ b->flags) & TYPES_F_OPEN);
	case TYPES_VECTOR:
		return a->cnt == b->cnt && compare_refs(c, a->target, b->target);
	case TYPES_POINTER:
	case TYPES_COMPLEX:
		return compare_refs(c, a->target, b->target);
	case TYPES_FUNC:
		return compare_funcs(c, a, b);
	case TYPES_STRUCT:
	case TYPES_UNION:
	case TYPES_ENUM:
		return compare_tagged(c, ra.id, rb.id);
	case TYPES_TYPEDEF:
	case TYPES_KIND_COUNT:
		break;
	}
	return false;
}

/* `const T` of an array type T is an array of const elements (C 6.7.3p9): qualifiers of an array move inwards. */
static uint32_t compare_quals(const struct types *t, struct types_ref *r)
{
	uint32_t quals = r->quals;
	const struct types_type *rec = types_get(t, r->id);
	while (rec->kind == TYPES_ARRAY) {
		struct types_ref elem = types_real(t, rec->target);
		quals |= elem.quals;
		rec = types_get(t, elem.id);
	}
	return quals;
}

static bool compare_refs(struct compare *c, struct types_ref a, struct types_ref b)
{
	a = types_real(c->a, a);
	b = types_real(c->b, b);
	if (++c->steps > COMPARE_STEPS || compare_quals(c->a, &a) != compare_quals(c->b, &b))
		return false;
	if (c->a == c->b && a.id == b.id)
		return true;
	if (c->depth >= COMPARE_DEPTH)
		return false;
	/* What an array's own qualifiers say has been compared. */
	c->depth++;
	bool ret;
	const struct types_type *ra = types_get(c->a, a.id), *rb = types_get(c->b, b.id);
	if (ra->kind == TYPES_ARRAY && rb->kind == TYPES_ARRAY && (a.quals || b.quals)) {
		struct types_ref ea = types_real(c->a, ra->target), eb = types_real(c->b, rb->target);
		ea.quals |= a.quals;
		eb.quals |= b.quals;
		bool is_open = (ra->flags | rb->flags) & TYPES_F_OPEN;
		ret = (ra->cnt == rb->cnt && !((ra->flags ^ rb->flags) & TYPES_F_OPEN)) || (c->is_lax && is_open);
		ret = ret && compare_refs(c, ea, eb);
	} else {
		ret = compare_kinds(c, a, b);
	}
	c->depth--;
	return ret;
}

static bool compare_run(struct compare *c, struct types_ref a, struct types_ref b)
{
	bool ret = compare_refs(c, a, b);
	map_fini(&c->done);
	return ret;
}

bool types_same(const struct types *t, struct types_ref a, struct types_ref b)
{
	struct compare c = {.a = t, .b = t};
	return compare_run(&c, a, b);
}

bool types_compatible(const struct types *t, struct types_ref a, struct types_ref b)
{
	struct compare c = {.a = t, .b = t, .is_lax = true};
	return compare_run(&c, a, b);
}

bool types_same_across(const struct types *t, struct types_ref a, const struct types *u, struct types_ref b)
{
	struct compare c = {.a = t, .b = u, .is_deep = true};
	return compare_run(&c, a, b);
}

bool types_same_body(const struct types *t, uint32_t a, uint32_t b)
{
	struct compare c = {.a = t, .b = t};
	bool ret = compare_bodies(&c, types_get(t, a), types_get(t, b));
	map_fini(&c.done);
	return ret;
}
