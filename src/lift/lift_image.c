/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_image.h"

#include "base/vec.h"

#include <stdlib.h>

/* The analysis' facts about a function, in the form lift_func() takes. */
struct source {
	const struct image *im;
	const struct space *space;
	VEC(struct lift_block) blocks;
	VEC(struct lift_table) tables;
	VEC(struct image_xref) xrefs; /* from the function's code, by place */
};

static bool returns(void *ctx, uint64_t va)
{
	const struct source *s = ctx;
	uint32_t cnt, loc = space_loc(s->space, va);
	uint32_t func = loc == LOC_NONE ? UINT32_MAX : image_func_starting(s->im, loc);
	const struct image_func *funcs = image_funcs(s->im, &cnt);
	return func >= cnt || !(funcs[func].flags & IMAGE_FN_NORETURN);
}

/* A number is an address when the analysis has a reference from this instruction to there. */
static bool is_addr(void *ctx, uint64_t insn_va, uint64_t value)
{
	const struct source *s = ctx;
	uint32_t to = space_loc(s->space, value), from = space_loc(s->space, insn_va);
	size_t lo = 0, hi = s->xrefs.cnt;
	if (to == LOC_NONE || from == LOC_NONE)
		return false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (s->xrefs.data[mid].from < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < s->xrefs.cnt && s->xrefs.data[lo].from == from; lo++) {
		if (s->xrefs.data[lo].to == to)
			return true;
	}
	return false;
}

static bool add_block(struct source *s, uint32_t loc, uint32_t len)
{
	size_t have;
	const uint8_t *bytes = space_bytes(s->space, loc, &have);
	if (!bytes || !have)
		return true;
	if (len > have)
		len = (uint32_t)have;
	return VEC_PUSH(&s->blocks, (struct lift_block){.va = space_va(s->space, loc), .bytes = bytes, .len = len});
}

static bool add_range(struct source *s, const struct image_range *r)
{
	uint32_t end = r->loc + r->len;
	for (uint32_t loc = r->loc; loc < end;) {
		uint32_t next = image_block_next(s->im, loc + 1, end);
		if (next > end || next <= loc)
			next = end;
		if (!add_block(s, loc, next - loc))
			return false;
		loc = next;
	}
	return true;
}

/* Once for the function: asking the image for each number in an instruction took longer than lifting it. */
static bool add_xrefs(struct source *s, const struct image_range *r)
{
	uint32_t first, cnt = r->len ? image_xrefs_from(s->im, r->loc, r->loc + r->len - 1, &first) : 0;
	for (uint32_t i = 0; i < cnt; i++) {
		struct image_xref x;
		if (image_xref_fwd(s->im, first + i, &x) && !VEC_PUSH(&s->xrefs, x))
			return false;
	}
	return true;
}

/* Jump tables whose dispatch lies in the range; they are sorted by it. */
static bool add_tables(struct source *s, struct arena *arena, const struct image_range *r)
{
	uint32_t cnt, lo = 0;
	const struct image_table *t = image_tables(s->im, &cnt);
	for (uint32_t hi = cnt; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (t[mid].jump_loc < r->loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < cnt && t[lo].jump_loc - r->loc < r->len; lo++) {
		uint64_t *targets = ARENA_ARRAY(arena, uint64_t, t[lo].target_cnt);
		uint32_t n = 0;
		if (!targets)
			return false;
		for (uint32_t i = 0; i < t[lo].target_cnt; i++) {
			uint32_t to = image_table_target(s->im, &t[lo], i);
			if (to != LOC_NONE)
				targets[n++] = space_va(s->space, to);
		}
		if (!VEC_PUSH(&s->tables, (struct lift_table){.jump_va = space_va(s->space, t[lo].jump_loc), .targets = targets, .target_cnt = n}))
			return false;
	}
	return true;
}

static int by_va(const void *a, const void *b)
{
	const struct lift_block *x = a, *y = b;
	return x->va < y->va ? -1 : x->va > y->va;
}

static int by_jump(const void *a, const void *b)
{
	const struct lift_table *x = a, *y = b;
	return x->jump_va < y->jump_va ? -1 : x->jump_va > y->jump_va;
}

static int by_from(const void *a, const void *b)
{
	const struct image_xref *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

static bool collect(struct source *s, struct arena *arena, uint32_t func)
{
	uint32_t cnt;
	const struct image_range *r = image_func_ranges(s->im, func, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!add_range(s, &r[i]) || !add_tables(s, arena, &r[i]) || !add_xrefs(s, &r[i]))
			return false;
	}
	/* The ranges of most functions are in order already. */
	size_t sorted = 1;
	while (sorted < s->blocks.cnt && s->blocks.data[sorted - 1].va < s->blocks.data[sorted].va)
		sorted++;
	if (sorted < s->blocks.cnt)
		qsort(s->blocks.data, s->blocks.cnt, sizeof(*s->blocks.data), by_va);
	sorted = 1;
	while (sorted < s->xrefs.cnt && s->xrefs.data[sorted - 1].from <= s->xrefs.data[sorted].from)
		sorted++;
	if (sorted < s->xrefs.cnt)
		qsort(s->xrefs.data, s->xrefs.cnt, sizeof(*s->xrefs.data), by_from);
	if (s->tables.cnt)
		qsort(s->tables.data, s->tables.cnt, sizeof(*s->tables.data), by_jump);
	return true;
}

struct err *lift_image_func(struct arena *arena, const struct image *im, uint32_t func, struct ir_func **ret,
			    struct lift_stats *ret_stats)
{
	struct source s = {.im = im, .space = image_space(im)};
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(im, &cnt);
	*ret = NULL;
	if (func >= cnt)
		return &err_not_found;
	struct err *e = &err_nomem;
	if (collect(&s, arena, func)) {
		const struct lift_code code = {
			.arch = (enum arch_id)image_meta(im)->arch, .va = space_va(s.space, funcs[func].loc),
			.blocks = s.blocks.data, .block_cnt = (uint32_t)s.blocks.cnt,
			.tables = s.tables.data, .table_cnt = (uint32_t)s.tables.cnt,
			.returns = returns, .is_addr = is_addr, .ctx = &s,
		};
		e = lift_func(arena, &code, ret, ret_stats);
	}
	VEC_FREE(&s.blocks);
	VEC_FREE(&s.tables);
	VEC_FREE(&s.xrefs);
	return e;
}
