/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

#include "arch/arch.h"

/*
 * References that no single instruction holds: an address made by two (adrp and add), or an offset
 * from a register that holds the address of the code itself or of the GOT. Constants are followed
 * along the code in order of address; they are forgotten where a function begins and where control
 * comes in from a place that was not seen yet.
 */
struct pairs {
	struct code *c;
	uint64_t *merges; /* per loc of code: a jump from behind leads here */
};

static void pair_ref(struct code_chunk *k, const struct code *c, uint32_t loc, uint64_t va,
		     enum image_xref_kind kind)
{
	if (c->arch->bits == 32)
		va = (uint32_t)va;
	uint32_t to = space_loc(&c->d->space, va);
	if (to != LOC_NONE && !VEC_PUSH(&k->refs, (struct image_xref){loc, to, (uint8_t)kind}))
		k->has_failed = true;
}

/* The reference instruction `e` makes, given what registers held before it. */
static void find_pair(const struct code *c, struct code_chunk *k, uint32_t loc,
		      const struct code_track *before, const struct code_track *after,
		      const struct arch_effect *e)
{
	uint64_t known = before->known;
	bool has_base = e->base < 64 && (known >> e->base & 1) && e->index == ARCH_REG_NONE;
	uint64_t va = has_base ? before->val[e->base] + (uint64_t)e->imm : 0;
	switch ((enum arch_op)e->op) {
	case ARCH_OP_LOAD:
		if (has_base)
			pair_ref(k, c, loc, va, IMAGE_XREF_READ);
		break;
	case ARCH_OP_STORE:
		if (has_base)
			pair_ref(k, c, loc, va, IMAGE_XREF_WRITE);
		break;
	case ARCH_OP_CMP:
	case ARCH_OP_TEST:
		if (has_base && e->has_mem)
			pair_ref(k, c, loc, va, IMAGE_XREF_READ);
		break;
	case ARCH_OP_LEA:
	case ARCH_OP_ADD:
		if (e->has_mem) {
			if (has_base)
				pair_ref(k, c, loc, va, IMAGE_XREF_READ);
			break;
		}
		if (e->dst < 64 && (after->known >> e->dst & 1) &&
		    (e->op == ARCH_OP_LEA || e->src1 == e->dst || e->src1 < 64))
			pair_ref(k, c, loc, after->val[e->dst], IMAGE_XREF_OFFSET);
		break;
	case ARCH_OP_OTHER:
	case ARCH_OP_CONST:
	case ARCH_OP_MOVE:
	case ARCH_OP_SUB:
	case ARCH_OP_AND:
	case ARCH_OP_SHL:
	case ARCH_OP_SHR:
	case ARCH_OP_INSERT:
		break;
	}
}

/* One chunk, from its first function start on; what comes before that start is the chunk before's.
 */
static void pair_chunk(const struct pairs *p, size_t i)
{
	struct code *c = p->c;
	struct code_chunk *k = &c->chunks.data[i];
	struct code_track t = {0};
	uint32_t loc = i && c->chunks.data[i - 1].region_to == k->region_to
			       ? code_next(c, c->starts, k->from, k->region_to)
			       : k->from;
	uint32_t to = code_next(c, c->starts, k->to, k->region_to);
	if (loc >= k->to && loc != k->from)
		return;
	loc = code_next(c, c->items, loc, to);
	while (loc < to) {
		if (code_has(c, c->starts, loc) || bits_get(p->merges, loc - c->base))
			t.known &= code_has(c, c->starts, loc) ? 0 : ~c->arch->call_clobbers;
		bool has_rec = code_has(c, c->rec_bits, loc);
		const struct code_rec *r = has_rec ? &c->recs[code_rec_at(c, loc)] : NULL;
		struct code_track before = t;
		struct arch_effect e;
		code_track_step(c, &t, loc, r, &e);
		find_pair(c, k, loc, &before, &t, &e);
		if (r && code_rec_ends(r))
			t.known &= ~c->arch->call_clobbers;
		loc = code_next(c, c->items, loc + 1, to);
	}
}

static int compare_refs(const void *a, const void *b)
{
	const struct image_xref *x = a, *y = b;
	return x->from != y->from ? (x->from < y->from ? -1 : 1)
				  : (x->to > y->to) - (x->to < y->to);
}

static void pair_chunks(void *ctx, unsigned worker, size_t from, size_t to)
{
	(void)worker;
	const struct pairs *p = ctx;
	for (size_t i = from; i < to; i++) {
		struct code_chunk *k = &p->c->chunks.data[i];
		size_t had = k->refs.cnt;
		pair_chunk(p, i);
		if (k->refs.cnt > had)
			qsort(k->refs.data, k->refs.cnt, sizeof(*k->refs.data), compare_refs);
	}
}

struct err *code_pairs(struct code *c)
{
	if (!c->arch->has_pairs && c->arch->bits != 32)
		return NULL;
	struct pairs p = {.c = c};
	p.merges = alloc_array(bits_words(c->len) + 1, sizeof(*p.merges));
	if (!p.merges)
		return &err_nomem;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if ((r->flow == ARCH_FLOW_JUMP || r->flow == ARCH_FLOW_CJUMP) &&
		    r->target != LOC_NONE && code_in(c, r->target) && r->target <= r->loc)
			bits_set(p.merges, r->target - c->base);
	}
	par_for(c->in->par, c->chunks.cnt, 1, pair_chunks, &p);
	free(p.merges);
	for (size_t i = 0; i < c->chunks.cnt; i++) {
		if (c->chunks.data[i].has_failed)
			return &err_nomem;
		const struct code_chunk *k = &c->chunks.data[i];
		for (size_t x = 0; x < k->refs.cnt; x++) {
			bits_set(c->data_refs, k->refs.data[x].to);
			if (k->refs.data[x].kind == IMAGE_XREF_OFFSET &&
			    code_in(c, k->refs.data[x].to))
				code_mark(c, c->taken, k->refs.data[x].to);
		}
	}
	return NULL;
}
