/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * Data between functions: tables that hand-written assembly keeps next to its code. Decoded, they
 * give instructions that do not exist, jumps into the middle of other instructions and targets
 * outside of the file, a few to each dozen, which compiled code never has; and code reads them.
 */
enum { SIDE_RECS = 48, BAD_MIN = 2, BAD_SHARE = 10, TEXT_MIN = 6, READ_BEFORE = 4096 };

static bool rec_is_bad(const struct code *c, const struct code_rec *r)
{
	if (r->flow == ARCH_FLOW_INVALID)
		return true;
	if (r->flags & ARCH_INSN_PRIVILEGED && r->flow != ARCH_FLOW_STOP)
		return true;
	if (r->flow != ARCH_FLOW_CALL && r->flow != ARCH_FLOW_JUMP && r->flow != ARCH_FLOW_CJUMP)
		return false;
	if (r->target == LOC_NONE || !code_in(c, r->target))
		return code_import_of(c, r->target) == CODE_NONE;
	return !code_has(c, c->items, r->target);
}

/* Whether the records in [from, to) that lie closest to one of the ends are those of data. */
static bool is_dirty(const struct code *c, uint32_t from, uint32_t to, bool is_last)
{
	if (from >= to)
		return false;
	uint32_t first = code_rec_at(c, from), end = code_rec_at(c, to);
	if (end - first > SIDE_RECS) {
		if (is_last)
			first = end - SIDE_RECS;
		else
			end = first + SIDE_RECS;
	}
	uint32_t bad = 0;
	for (uint32_t i = first; i < end && i < c->rec_cnt; i++)
		bad += rec_is_bad(c, &c->recs[i]);
	return bad >= BAD_MIN && bad * BAD_SHARE >= end - first;
}

/* Whether a text of some length, with its end, lies at `loc`. */
static bool is_text(const struct code *c, uint32_t loc)
{
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, loc, &len);
	size_t n = 0;
	while (p && n < len && p[n] >= 0x20 && p[n] < 0x7f)
		n++;
	return n >= TEXT_MIN && n < len && !p[n];
}

enum code_around code_what_is_around(const struct code *c, const struct code_piece *gap,
				     uint32_t loc, uint32_t to)
{
	if (code_next(c, c->touched, loc, MIN(to, gap->to)) < MIN(to, gap->to) || is_text(c, loc))
		return AROUND_ITSELF;
	uint32_t from = MAX(gap->from, loc - MIN(loc, READ_BEFORE));
	if (code_prev(c, c->touched, from, loc) != CODE_NONE || is_dirty(c, gap->from, loc, true))
		return AROUND_BEFORE;
	return is_dirty(c, to, gap->to, false) ? AROUND_BEHIND : AROUND_CLEAN;
}

bool code_is_data(const struct code *c, uint32_t loc, uint32_t to)
{
	return is_text(c, loc) || is_dirty(c, loc, to, false);
}

void code_mark_touched(struct code *c)
{
	memset(c->touched, 0, bits_words(c->len) * sizeof(uint64_t));
	for (size_t k = 0; k < c->chunks.cnt; k++) {
		const struct code_chunk *chunk = &c->chunks.data[k];
		for (size_t i = 0; i < chunk->refs.cnt; i++) {
			const struct image_xref *x = &chunk->refs.data[i];
			if ((x->kind == IMAGE_XREF_READ || x->kind == IMAGE_XREF_WRITE) &&
			    code_in(c, x->to) && !code_has(c, c->covered, x->to) &&
			    code_has(c, c->covered, x->from))
				code_mark(c, c->touched, x->to);
		}
	}
}
