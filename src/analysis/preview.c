/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

/*
 * The code around one address before anything else is known: control is followed from there with a
 * small worklist, calls are taken to return. What one screen shows needs no more.
 */
#define PREVIEW_TODO 256

static int compare_locs(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

struct preview {
	const struct arch *arch;
	const struct space *space;
	uint32_t *locs;
	size_t cnt, max;
	uint32_t todo[PREVIEW_TODO];
	unsigned todo_cnt;
};

static bool preview_has(const struct preview *p, uint32_t loc)
{
	for (size_t i = p->cnt; i-- > 0;)
		if (p->locs[i] == loc)
			return true;
	return false;
}

static void preview_later(struct preview *p, uint64_t va)
{
	uint32_t loc = space_loc(p->space, va);
	if (loc != LOC_NONE && p->todo_cnt < PREVIEW_TODO)
		p->todo[p->todo_cnt++] = loc;
}

static void preview_walk(struct preview *p, uint32_t loc)
{
	int seg = space_seg_of_loc(p->space, loc);
	if (seg < 0 || !(p->space->segs[seg].perm & 1))
		return;
	while (p->cnt < p->max && !preview_has(p, loc)) {
		size_t len;
		const uint8_t *bytes = space_bytes(p->space, loc, &len);
		if (!bytes || !len)
			return;
		struct arch_insn in;
		p->arch->decode(p->arch, bytes, len, space_va(p->space, loc), &in);
		if (in.flow == ARCH_FLOW_INVALID)
			return;
		p->locs[p->cnt++] = loc;
		if (in.flow == ARCH_FLOW_JUMP || in.flow == ARCH_FLOW_CJUMP)
			preview_later(p, in.target);
		if (in.flow == ARCH_FLOW_JUMP || in.flow == ARCH_FLOW_IJUMP ||
		    in.flow == ARCH_FLOW_RET || in.flow == ARCH_FLOW_STOP || in.len >= len)
			return;
		loc += in.len;
	}
}

size_t analysis_preview(const struct arch *arch, const struct space *s, uint64_t va,
			uint32_t *ret_locs, size_t max)
{
	struct preview p = {.arch = arch, .space = s, .locs = ret_locs, .max = max};
	preview_later(&p, va);
	/* First come, first served: what lies closest to the address is shown first. */
	for (unsigned i = 0; i < p.todo_cnt && p.cnt < max; i++)
		preview_walk(&p, p.todo[i]);
	qsort(ret_locs, p.cnt, sizeof(*ret_locs), compare_locs);
	/* Items do not overlap: of two that do, the later one goes. */
	size_t n = 0;
	uint32_t end = 0;
	for (size_t i = 0; i < p.cnt; i++) {
		size_t len;
		const uint8_t *bytes = space_bytes(s, ret_locs[i], &len);
		struct arch_insn in;
		if (!bytes || ret_locs[i] < end)
			continue;
		arch->decode(arch, bytes, len, space_va(s, ret_locs[i]), &in);
		end = ret_locs[i] + in.len;
		ret_locs[n++] = ret_locs[i];
	}
	return n;
}
