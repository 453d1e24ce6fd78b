/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header of chosen declarations and all they need, in an order that C takes: tags first, then each thing after what it
 * names. What only a pointer leads to needs no more than its tag.
 */
#include "types/types_int.h"

#include "base/bits.h"

#include <string.h>

/* Structs within each other, typedefs of each other: past this the order is given up, not the text. */
#define HEADER_DEPTH_MAX 2000

struct header {
	const struct types *t;
	uint64_t *seen;       /* declarations begun */
	uint64_t *forward;    /* types whose tag is named */
	struct buf tags, body;
	unsigned depth;
};

static void visit(struct header *h, uint32_t idx);
static void need(struct header *h, struct types_ref r, bool is_whole);

/* The declaration that stands for a type today; 0 when another has its name. */
static uint32_t decl_of(const struct types *t, uint32_t id, const char *name, bool is_tag)
{
	uint32_t idx = types_find(t, name, strlen(name), is_tag);
	return types_decl_get(t, idx)->type.id == id ? idx : 0;
}

static void need_members(struct header *h, uint32_t id)
{
	uint32_t cnt;
	const struct types_member *m = types_members(h->t, id, &cnt);
	for (uint32_t i = 0; i < cnt; i++)
		need(h, m[i].type, true);
}

static void need_tagged(struct header *h, uint32_t id, const struct types_type *rec, bool is_whole)
{
	if (rec->alias) {
		visit(h, decl_of(h->t, rec->alias, types_get(h->t, rec->alias)->name, false));
	} else if (!rec->name) {
		need_members(h, id);
	} else {
		if (rec->kind != TYPES_ENUM && !bits_get(h->forward, id)) {
			bits_set(h->forward, id);
			buf_printf(&h->tags, "%s %s;\n", rec->kind == TYPES_STRUCT ? "struct" : "union", rec->name);
		}
		if (is_whole || rec->kind == TYPES_ENUM)
			visit(h, decl_of(h->t, id, rec->name, true));
	}
}

/* Whole: its size is needed. */
static void need(struct header *h, struct types_ref r, bool is_whole)
{
	const struct types_type *rec = types_get(h->t, r.id);
	uint32_t cnt;
	if (h->depth >= HEADER_DEPTH_MAX)
		return;
	h->depth++;
	switch (rec->kind) {
	case TYPES_POINTER:
		need(h, rec->target, false);
		break;
	case TYPES_ARRAY:
	case TYPES_VECTOR:
	case TYPES_COMPLEX:
		need(h, rec->target, true);
		break;
	case TYPES_FUNC: {
		const struct types_param *p = types_params(h->t, r.id, &cnt);
		need(h, rec->target, false);
		for (uint32_t i = 0; i < cnt; i++)
			need(h, p[i].type, false);
		break;
	}
	case TYPES_STRUCT:
	case TYPES_UNION:
	case TYPES_ENUM:
		need_tagged(h, r.id, rec, is_whole);
		break;
	case TYPES_TYPEDEF:
		visit(h, decl_of(h->t, r.id, rec->name, false));
		if (is_whole)
			need(h, rec->real, true);
		break;
	default:
		break;
	}
	h->depth--;
}

static void visit(struct header *h, uint32_t idx)
{
	const struct types_decl *d = types_decl_get(h->t, idx);
	const struct types_type *rec = types_get(h->t, d->type.id);
	if (!idx || bits_get(h->seen, idx) || h->depth >= HEADER_DEPTH_MAX)
		return;
	bits_set(h->seen, idx);
	h->depth++;
	bool is_body = d->kind == TYPES_D_TAG || d->kind == TYPES_D_CONST;
	if (is_body && rec->name)
		need_tagged(h, d->type.id, rec, false);
	const struct types_type *target = types_get(h->t, rec->target.id);
	/* A typedef that names a struct without a tag has its members in it. */
	bool is_alias = d->kind == TYPES_D_TYPEDEF && target->alias == d->type.id && !target->name;
	if (is_body)
		need_members(h, d->type.id);
	else if (is_alias)
		need_members(h, rec->target.id);
	else
		need(h, d->kind == TYPES_D_TYPEDEF ? rec->target : d->type, false);
	h->depth--;
	types_print_decl(h->t, idx, &h->body);
}

void types_print_header(const struct types *t, const uint32_t *decls, uint32_t cnt, struct buf *ret)
{
	struct header h = {.t = t};
	h.seen = alloc_array(bits_words(t->decls.cnt), sizeof(*h.seen));
	h.forward = alloc_array(bits_words(t->types.cnt), sizeof(*h.forward));
	for (uint32_t i = 0; h.seen && h.forward && i < cnt; i++)
		visit(&h, decls[i]);
	bool ok = h.seen && h.forward && !h.tags.failed && !h.body.failed;
	if (ok) {
		buf_add(ret, h.tags.data, h.tags.len);
		buf_add(ret, h.body.data, h.body.len);
	}
	ret->failed = ret->failed || !ok;
	free(h.seen);
	free(h.forward);
	buf_fini(&h.tags);
	buf_fini(&h.body);
}
