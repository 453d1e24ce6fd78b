/* SPDX-License-Identifier: Apache-2.0 */
/* Types and typed data that debug information states, into the image as they are: nothing of the analysis rests on them. */
#include "analysis/analysis_int.h"

_Static_assert((int)DBG_T_STRUCT == (int)IMAGE_T_STRUCT && (int)DBG_T_VOLATILE == (int)IMAGE_T_VOLATILE &&
	       (int)DBG_T_KIND_COUNT == (int)IMAGE_T_KIND_COUNT, "kinds of type share numbers");

#define TYPES_CHAIN_MAX 64

/* Bytes of a type; 0 when it has none. */
static uint64_t type_len(const struct image_data *d, uint32_t idx)
{
	uint64_t cnt = 1, len;
	for (unsigned i = 0; i < TYPES_CHAIN_MAX && idx < d->types.cnt; i++) {
		const struct image_type *t = &d->types.data[idx];
		switch (t->kind) {
		case IMAGE_T_ARRAY:
		case IMAGE_T_VECTOR:
			if (t->flags & IMAGE_T_F_OPEN || __builtin_mul_overflow(cnt, t->len, &cnt))
				return 0;
			break;
		case IMAGE_T_TYPEDEF:
		case IMAGE_T_CONST:
		case IMAGE_T_VOLATILE:
			break;
		case IMAGE_T_POINTER:
			return __builtin_mul_overflow(cnt, d->meta.bits / 8u, &len) ? 0 : len;
		case IMAGE_T_BASE:
		case IMAGE_T_STRUCT:
		case IMAGE_T_UNION:
		case IMAGE_T_ENUM:
			return __builtin_mul_overflow(cnt, t->len, &len) ? 0 : len;
		default:
			return 0;
		}
		idx = t->target;
	}
	return 0;
}

static bool add_vars(struct image_data *d, const struct dbg_types *types)
{
	uint64_t end = 0;
	for (size_t i = 0; i < types->vars.cnt; i++) {
		const struct dbg_var *v = &types->vars.data[i];
		uint64_t len = type_len(d, v->type);
		uint32_t loc = space_loc(&d->space, v->va);
		int seg = loc == LOC_NONE ? -1 : space_seg_of_loc(&d->space, loc);
		if (seg < 0 || !len || loc < end || len > d->segs.data[seg].mem_len - (loc - d->segs.data[seg].loc))
			continue;
		if (!VEC_PUSH(&d->vars, (struct image_var){loc, (uint32_t)len, v->type}))
			return false;
		end = (uint64_t)loc + len;
	}
	return true;
}

bool analysis_add_types(struct image_data *d, const struct dbg_types *types)
{
	if (!types)
		return true;
	for (size_t i = 0; i < types->list.cnt; i++) {
		const struct dbg_type *t = &types->list.data[i];
		struct image_type rec = {.len = t->len, .target = t->target, .sub_first = t->sub_first, .sub_cnt = t->sub_cnt,
					 .align = t->align, .kind = t->kind, .encoding = t->encoding, .flags = t->flags};
		if (!image_pool_add(d, t->name.s, t->name.len, &rec.name) || !VEC_PUSH(&d->types, rec))
			return false;
	}
	for (size_t i = 0; i < types->subs.cnt; i++) {
		const struct dbg_type_sub *s = &types->subs.data[i];
		struct image_type_sub rec = {.value = s->value, .type = s->type, .bit_len = s->bit_len};
		if (!image_pool_add(d, s->name.s, s->name.len, &rec.name) || !VEC_PUSH(&d->type_subs, rec))
			return false;
	}
	return add_vars(d, types);
}
