/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * Functions that no table names and nobody calls directly. First the addresses that operands and
 * data hold: one that points to an instruction nobody reached, behind the end of other code, is a
 * function. Then the gaps: what lies between functions and is no padding. Two kinds of evidence are
 * needed there (a place where functions go, an instruction functions begin with, an end of the code
 * before), the code must decode cleanly to an end, and it must not jump into the middle of a
 * function: then it is a part of that one which its jump table or its call that was thought not to
 * return would have led to.
 */
#define PROBE_INSNS 20000u
#define PROBE_BLOCKS 256u

/* A look at every gap costs no more than so many instructions for each there is, and some. */
#define PROBE_SHARE 16u
#define PROBE_STEPS 1000000u
/* A gap is looked at in pieces of this size. */
#define GAP_LOOK 65536u

struct probe {
	uint64_t steps_left; /* for all looks together */
	bool is_clean;	     /* decodes to an end on every way */
	uint32_t into;	     /* function whose middle it jumps into, CODE_NONE */
	uint32_t end;	     /* behind the first straight piece */
	uint32_t reach;	     /* behind the last instruction seen */
	uint32_t seen[PROBE_BLOCKS];
	uint32_t seen_cnt;
};

static bool is_aligned(const struct code *c, uint32_t loc)
{
	return space_va(&c->d->space, loc) % c->arch->func_align == 0;
}

static uint8_t flags_at(const struct code *c, uint32_t loc)
{
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, loc, &len);
	struct arch_insn in;
	if (!p)
		return 0;
	c->arch->decode(c->arch, p, len, space_va(&c->d->space, loc), &in);
	return in.flow == ARCH_FLOW_INVALID ? 0 : in.flags;
}

static bool probe_later(struct probe *p, uint32_t loc)
{
	for (uint32_t i = 0; i < p->seen_cnt; i++)
		if (p->seen[i] == loc)
			return true;
	if (p->seen_cnt >= PROBE_BLOCKS)
		return false;
	p->seen[p->seen_cnt++] = loc;
	return true;
}

/* A direct jump out of the probed code; false when it cannot be one. */
static bool probe_jump(const struct code *c, struct probe *p, uint32_t to)
{
	if (to == LOC_NONE)
		return false;
	if (!code_in(c, to))
		return code_import_of(c, to) != CODE_NONE;
	if (code_has(c, c->starts, to) || code_in_plt(c, to))
		return true;
	if (!code_has(c, c->items, to))
		return false;
	const struct code_region *r = code_region_of(c, to);
	if (code_has(c, c->covered, to) && r) {
		uint32_t at = code_next(c, c->rec_bits, to, r->to);
		uint32_t owner = at < r->to ? c->owner[code_rec_at(c, at)] : CODE_NONE;
		if (owner != CODE_NONE)
			p->into = p->into == CODE_NONE ? owner : MIN(p->into, owner);
		return true;
	}
	return probe_later(p, to);
}

/* Straight code from `loc`; false when it is no clean code. */
static bool probe_piece(const struct code *c, struct probe *p, uint32_t loc,
			const struct code_region *region)
{
	for (unsigned n = 0; n < PROBE_INSNS && p->steps_left; n++, p->steps_left--) {
		uint32_t at = code_next(c, c->rec_bits, loc, region->to);
		uint32_t start = code_next(c, c->starts, loc + 1, MIN(at + 1, region->to));
		if (at >= region->to || (start <= at && start < region->to))
			return false; /* runs into a function without having ended */
		if (code_has(c, c->covered, at)) {
			uint32_t owner = c->owner[code_rec_at(c, at)];
			if (owner != CODE_NONE && p->into == CODE_NONE)
				p->into = owner;
			return true;
		}
		const struct code_rec *r = &c->recs[code_rec_at(c, at)];
		uint32_t next = at + r->len;
		p->reach = MAX(p->reach, next);
		if (r->flags & ARCH_INSN_PRIVILEGED && r->flow != ARCH_FLOW_STOP)
			return false;
		switch ((enum arch_flow)r->flow) {
		case ARCH_FLOW_CJUMP:
			if (!probe_jump(c, p, r->target))
				return false;
			break;
		case ARCH_FLOW_JUMP:
			return probe_jump(c, p, r->target);
		case ARCH_FLOW_CALL:
			if (r->target == LOC_NONE ||
			    (code_in(c, r->target) && !code_has(c, c->items, r->target)))
				return false;
			if (code_has(c, c->starts, next))
				return true;
			break;
		case ARCH_FLOW_ICALL:
			if (code_has(c, c->starts, next))
				return true;
			break;
		case ARCH_FLOW_IJUMP:
		case ARCH_FLOW_RET:
		case ARCH_FLOW_STOP:
			return true;
		case ARCH_FLOW_NEXT:
			break;
		case ARCH_FLOW_INVALID:
			return false;
		}
		if (code_has(c, c->pads, next) && r->flow != ARCH_FLOW_CJUMP) {
			/* Padding behind a call up to a start: the call does not return. */
			uint32_t q = next;
			while (q < region->to && code_has(c, c->pads, q))
				q = code_insn_end(c, q);
			if (q >= region->to || code_has(c, c->starts, q) ||
			    (is_aligned(c, q) && !code_is_jumped_to(c, q)))
				return true;
		}
		loc = next;
		if (loc >= region->to)
			return false;
	}
	return false;
}

static void probe(const struct code *c, uint32_t loc, const struct code_region *region,
		  struct probe *ret)
{
	ret->into = CODE_NONE;
	ret->seen_cnt = 0;
	ret->is_clean = true;
	uint32_t at = code_next(c, c->rec_bits, loc, region->to);
	ret->end = at < region->to ? at + c->recs[code_rec_at(c, at)].len : region->to;
	ret->reach = ret->end;
	probe_later(ret, loc);
	for (uint32_t i = 0; i < ret->seen_cnt && ret->is_clean; i++) {
		const struct code_region *r = code_region_of(c, ret->seen[i]);
		ret->is_clean = r && probe_piece(c, ret, ret->seen[i], r);
	}
}

static struct err *add_and_follow(struct code *c, uint32_t loc, enum image_source source)
{
	if (code_fn_add(c, loc, source) == CODE_NONE)
		return &err_nomem;
	return code_flow(c);
}

/* Words of data that hold addresses of code, in files whose pointers have no relocations. */
static void scan_words(struct code *c, uint64_t *found)
{
	const struct image_data *d = c->d;
	unsigned word = d->space.word_len;
	uint64_t first = space_va(&d->space, c->regions.data[0].from);
	uint64_t last = space_va(&d->space, c->regions.data[c->regions.cnt - 1].to - 1);
	for (size_t i = 0; i < d->segs.cnt; i++) {
		const struct space_seg *s = &d->segs.data[i];
		if (s->perm & 1 || s->is_extern || !(s->perm & 4))
			continue;
		size_t len;
		const uint8_t *p = space_bytes(&d->space, s->loc, &len);
		for (size_t off = (size_t)(-s->va % word); p && off + word <= len; off += word) {
			uint64_t v = 0;
			if (!d->space.is_be) {
				memcpy(&v, p + off, word);
			} else if (!space_word(&d->space, s->loc + (uint32_t)off, word, &v)) {
				continue;
			}
			if (v < first || v > last)
				continue;
			uint32_t loc = space_loc(&d->space, v);
			if (loc != LOC_NONE && code_has(c, c->items, loc) && code_region_of(c, loc))
				code_mark(c, found, loc);
		}
	}
}

/* The next piece without known code that holds `loc`, or more of the one that was cut before it. */
static void find_gap(const struct code *c, const struct code_region *region, uint32_t loc,
		     struct code_piece *gap)
{
	if (!gap->to || code_has(c, c->covered, gap->to))
		gap->from = loc;
	gap->to = code_next(c, c->covered, loc, loc + MIN(region->to - loc, GAP_LOOK));
}

/* Whether an operand or a word at `loc` leads to a table or a text rather than to code. */
static bool is_pointed_data(const struct code *c, uint32_t loc, struct probe *p)
{
	const struct code_region *region = code_region_of(c, loc);
	if (!region)
		return false;
	struct code_piece gap = {.from = loc};
	find_gap(c, region, loc, &gap);
	probe(c, loc, region, p);
	bool has_frame = code_entry_look(c, loc) == ENTRY_FRAME;
	if (!p->is_clean)
		return code_next(c, c->touched, loc, p->end) < p->end ||
		       (!has_frame && code_is_data(c, loc, gap.to));
	switch (code_what_is_around(c, &gap, loc, p->reach)) {
	case AROUND_CLEAN:
	case AROUND_BEFORE:
		break;
	case AROUND_BEHIND:
		return !has_frame;
	case AROUND_ITSELF:
		return true;
	}
	return false;
}

static bool pointer_is_start(const struct code *c, uint32_t loc, bool is_weak, struct probe *p)
{
	if (!code_has(c, c->items, loc) || code_has(c, c->covered, loc) ||
	    code_has(c, c->pads, loc) || code_in_plt(c, loc) || code_has(c, c->starts, loc))
		return false;
	const struct code_ext *e = code_ext_of(c, loc);
	if (e && (loc != e->from || code_is_stated_inside(c, loc)))
		return false;
	if (!e && is_pointed_data(c, loc, p))
		return false;
	bool is_at_end = code_is_after_end(c, loc);
	bool aligned = is_aligned(c, loc);
	if (code_entry_look(c, loc) == ENTRY_ODD)
		return is_at_end && aligned && !is_weak;
	if (!is_weak)
		return is_at_end || aligned;
	return is_at_end && (aligned || flags_at(c, loc) & (ARCH_INSN_FRAME | ARCH_INSN_LANDING));
}

struct err *code_pointers(struct code *c)
{
	if (!c->regions.cnt)
		return NULL;
	struct probe p = {.steps_left = PROBE_STEPS + (uint64_t)PROBE_SHARE * c->rec_cnt};
	code_mark_touched(c);
	uint64_t *words = alloc_array(bits_words(c->len) + 1, sizeof(*words));
	if (!words)
		return &err_nomem;
	if (c->d->meta.fmt_type == FMT_TYPE_EXEC)
		scan_words(c, words);
	/* Cases of switches, even in functions that nobody has reached yet. */
	uint64_t *cases = alloc_array(bits_words(c->len) + 1, sizeof(*cases));
	for (size_t i = 0; cases && i < c->targets.cnt; i++)
		code_mark(c, cases, c->targets.data[i]);
	struct err *e = cases ? NULL : &err_nomem;
	for (size_t w = 0; w < bits_words(c->len) && !e; w++) {
		uint64_t any = (c->taken[w] | words[w]) & c->items[w] & ~(c->covered[w] | cases[w]);
		for (; any && !e; any &= any - 1) {
			uint32_t loc =
				c->base + (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(any);
			bool is_weak = !code_has(c, c->taken, loc);
			if (pointer_is_start(c, loc, is_weak, &p))
				e = add_and_follow(c, loc,
						   code_has(c, c->relocated, loc)
							   ? IMAGE_SRC_RELOC
							   : IMAGE_SRC_POINTER);
		}
	}
	free(words);
	free(cases);
	return e;
}

/* The function whose code lies closest before `loc`, within 64 KiB; CODE_NONE. */
static uint32_t owner_before(const struct code *c, uint32_t loc, const struct code_region *region)
{
	uint32_t from = loc - region->from > 65536 ? loc - 65536 : region->from;
	uint32_t at = loc;
	for (unsigned n = 0; n < 64; n++) {
		at = code_prev(c, c->rec_bits, from, at);
		if (at == CODE_NONE)
			return CODE_NONE;
		uint32_t owner = c->owner[code_rec_at(c, at)];
		if (owner != CODE_NONE)
			return owner;
	}
	return CODE_NONE;
}

enum verdict { GAP_SKIP, GAP_FUNCTION, GAP_PART };

/* Code in a gap that jumps into function `into`: a part of it, unless everything says that it is a
 * function. */
static enum verdict judge_into(const struct code *c, uint32_t loc, uint32_t into,
			       uint32_t before_fn, bool is_strong)
{
	enum entry_look look = code_entry_look(c, loc);
	if (!is_strong || look == ENTRY_ODD)
		return GAP_PART;
	/* With 4-byte words arguments go over the stack, so that taking some is no sign of a
	 * beginning. */
	return into != before_fn || (look == ENTRY_FRAME && c->arch->bits == 64) ? GAP_FUNCTION
										 : GAP_PART;
}

static bool is_framed(const struct code *c, uint32_t fn)
{
	return code_entry_look(c, c->fns.data[fn].loc) == ENTRY_FRAME;
}

/* Whether so much around `loc` does not decode that it is data. For files without sections, whose
 * executable segments hold anything. */
static bool is_among_data(const struct code *c, uint32_t loc)
{
	enum { WINDOW = 64, BAD_MAX = 5 };
	uint32_t at = code_rec_at(c, loc);
	uint32_t from = at > WINDOW ? at - WINDOW : 0;
	uint32_t bad = 0;
	for (uint32_t i = from; i < c->rec_cnt && i < at + WINDOW; i++)
		bad += c->recs[i].flow == ARCH_FLOW_INVALID;
	return bad > BAD_MAX;
}

/* Whether code in a gap is none because data lies around it. Among data only what looks in every
 * way like a function is one. */
static bool is_by_chance(const struct code *c, const struct code_piece *gap, uint32_t loc,
			 const struct probe *p, int evidence)
{
	switch (code_what_is_around(c, gap, loc, p->reach)) {
	case AROUND_CLEAN:
		break;
	case AROUND_BEHIND:
		return evidence < 2;
	case AROUND_BEFORE:
		return p->into != CODE_NONE || !is_aligned(c, loc) ||
		       code_entry_look(c, loc) == ENTRY_ODD ||
		       !(flags_at(c, loc) & (ARCH_INSN_FRAME | ARCH_INSN_LANDING));
	case AROUND_ITSELF:
		return true;
	}
	return false;
}

/* Padding that traps lies between functions only; inside of one it is made of no-operations. */
static bool is_behind_traps(const struct code *c, uint32_t before)
{
	for (unsigned n = 0; n < 2; n++) {
		if (before == CODE_NONE || !(flags_at(c, before) & ARCH_INSN_PAD_TRAP))
			return false;
		before = code_insn_before(c, before);
	}
	return true;
}

static enum verdict judge(const struct code *c, uint32_t loc, const struct code_piece *gap,
			  struct probe *p, uint32_t *ret_fn)
{
	const struct code_region *region = code_region_of(c, loc);
	probe(c, loc, region, p);
	*ret_fn = p->into;
	if (!p->is_clean || (!region->is_section && is_among_data(c, loc)))
		return GAP_SKIP;
	uint32_t before = code_insn_before(c, loc);
	uint32_t before_fn = owner_before(c, loc, region);
	bool is_padded = before != CODE_NONE && code_has(c, c->pads, before);
	bool is_at_end = code_is_after_end(c, loc);
	bool has_frame = flags_at(c, loc) & (ARCH_INSN_FRAME | ARCH_INSN_LANDING);
	bool aligned = is_aligned(c, loc);
	bool is_strong = has_frame + aligned + is_padded >= 2;
	bool is_framed_here = has_frame || code_entry_look(c, loc) == ENTRY_FRAME;
	if (is_by_chance(c, gap, loc, p, is_framed_here + aligned + is_padded))
		return GAP_SKIP;
	if (p->into != CODE_NONE)
		return judge_into(c, loc, p->into, before_fn, is_strong);
	*ret_fn = before_fn;
	enum verdict part = before_fn != CODE_NONE ? GAP_PART : GAP_SKIP;
	enum entry_look look = code_entry_look(c, loc);
	bool may_be_case =
		before_fn != CODE_NONE && c->fns.data[before_fn].flags & IMAGE_FN_INDIRECT;
	if (aligned && is_behind_traps(c, before))
		return GAP_FUNCTION;
	if (look == ENTRY_ODD || (may_be_case && !(has_frame && aligned) && look != ENTRY_FRAME))
		return part;
	if (is_strong)
		return GAP_FUNCTION;
	if (is_at_end)
		return region->is_section || has_frame || aligned ? GAP_FUNCTION : GAP_SKIP;
	/* Right behind a call that is thought not to return: what sets up a frame, or returns from
	 * a function that has one without giving it back, is another function. */
	if (look == ENTRY_FRAME ||
	    (look == ENTRY_LEAF && before_fn != CODE_NONE && is_framed(c, before_fn)))
		return GAP_FUNCTION;
	return part;
}

static struct err *region_gaps(struct code *c, const struct code_region *region, struct probe *p)
{
	uint32_t pos = region->from;
	struct code_piece gap = {.to = 0};
	while ((pos = code_next_gap(c, pos, region->to)) < region->to) {
		const struct code_ext *e = code_ext_of(c, pos);
		if (e) {
			pos = e->to;
			gap.to = 0;
			continue;
		}
		if (pos >= gap.to)
			find_gap(c, region, pos, &gap);
		if (!code_has(c, c->items, pos) || code_has(c, c->pads, pos) ||
		    code_in_plt(c, pos)) {
			pos = code_insn_end(c, pos);
			continue;
		}
		uint32_t fn;
		struct err *err = NULL;
		switch (judge(c, pos, &gap, p, &fn)) {
		case GAP_FUNCTION:
			err = add_and_follow(c, pos, IMAGE_SRC_PROLOGUE);
			break;
		case GAP_PART:
			code_flow_part(c, fn, pos);
			err = code_flow(c);
			break;
		case GAP_SKIP:
			break;
		}
		if (err)
			return err;
		if (!code_has(c, c->covered, pos))
			pos = MAX(p->end, pos + 1);
		if (code_is_cancelled(c))
			return NULL;
	}
	return NULL;
}

struct err *code_gaps(struct code *c)
{
	struct probe p = {.steps_left = PROBE_STEPS + (uint64_t)PROBE_SHARE * c->rec_cnt};
	code_mark_touched(c);
	for (size_t i = 0; i < c->regions.cnt; i++) {
		struct err *e = c->regions.data[i].is_stated ? NULL : region_gaps(c, &c->regions.data[i], &p);
		if (e)
			return e;
	}
	return NULL;
}
