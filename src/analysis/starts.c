/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * Where functions begin and how far they reach. Extents come from what others wrote down: symbols
 * with sizes, unwind entries, the function tables of Go and DWARF. An extent is not yet a function:
 * compilers split cold code off into pieces with an unwind entry (and often a symbol, "foo.cold")
 * of their own. Such a piece is given to the function that jumps into it.
 */

const struct code_ext *code_ext_of(const struct code *c, uint32_t loc)
{
	size_t lo = 0, hi = c->exts.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->exts.data[mid].to <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->exts.cnt && c->exts.data[lo].from <= loc ? &c->exts.data[lo] : NULL;
}

const struct code_ext *code_ext_after(const struct code *c, uint32_t loc)
{
	size_t lo = 0, hi = c->exts.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->exts.data[mid].from <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return c->exts.data + lo;
}

bool code_is_stated_inside(const struct code *c, uint32_t loc)
{
	const struct code_ext *e = c->has_bounds ? code_ext_of(c, loc) : NULL;
	return e && e->is_stated && e->start != loc;
}

bool code_in_plt(const struct code *c, uint32_t loc)
{
	for (size_t i = 0; i < c->plts.cnt; i++)
		if (loc >= c->plts.data[i].from && loc < c->plts.data[i].to)
			return true;
	return false;
}

static int compare_exts(const void *a, const void *b)
{
	const struct code_ext *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->source != y->source)
		return (int)x->source - (int)y->source;
	if (x->to != y->to)
		return x->to > y->to ? -1 : 1;
	return (int)x->is_fragment - (int)y->is_fragment;
}

static bool name_is_cold(const char *s, size_t len)
{
	for (size_t i = 0; i + 5 <= len; i++)
		if (!memcmp(s + i, ".cold", 5) && (i + 5 == len || s[i + 5] == '.'))
			return true;
	return false;
}

static bool add_ext(struct code *c, uint32_t from, uint64_t len, enum image_source source,
		    bool is_fragment)
{
	if (from == LOC_NONE || !code_in(c, from))
		return true;
	const struct code_region *r = code_region_of(c, from);
	if (!r)
		return true;
	code_mark(c, c->sync, from);
	if (!len)
		return true;
	uint32_t to = len > r->to - from ? r->to : from + (uint32_t)len;
	return VEC_PUSH(&c->exts, (struct code_ext){.from = from,
						    .to = to,
						    .start = is_fragment ? CODE_NONE : from,
						    .source = (uint8_t)source,
						    .is_fragment = is_fragment});
}

static bool symbol_is_func(const struct image_symbol *s)
{
	return s->type == FMT_SYM_FUNC || s->type == FMT_SYM_IFUNC;
}

static bool symbol_exts(struct code *c)
{
	const struct image_data *d = c->d;
	for (size_t i = 0; i < d->symbols.cnt; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		if (!symbol_is_func(s) || s->loc == LOC_NONE || code_in_plt(c, s->loc))
			continue;
		bool is_cold = name_is_cold(d->pool.data + s->name.off, s->name.len);
		if (!add_ext(c, s->loc, s->size_len, IMAGE_SRC_SYMBOL, is_cold))
			return false;
	}
	return true;
}

/*
 * Bytes of a landing mark right before an unwind entry that are the function's own: some assembly states its frame only
 * behind the mark, which then is where the function is aligned and called.
 */
static uint32_t mark_before(const struct code *c, const struct dbg_fde *f, const struct dbg_fde *before)
{
	uint64_t va = f->va & ~(uint64_t)(c->arch->func_align - 1);
	if (va == f->va || (before && before->va + before->len > va))
		return 0;
	size_t len;
	struct arch_insn in;
	const uint8_t *p = space_bytes(&c->d->space, space_loc(&c->d->space, va), &len);
	if (!p || !len)
		return 0;
	c->arch->decode(c->arch, p, len, va, &in);
	return (in.flags & ARCH_INSN_LANDING) && va + in.len == f->va ? in.len : 0;
}

static bool table_exts(struct code *c)
{
	const struct space *s = &c->d->space;
	const struct dbg_fdes *fdes = c->in->fdes;
	for (size_t i = 0; fdes && i < fdes->list.cnt; i++) {
		const struct dbg_fde *f = &fdes->list.data[i];
		uint32_t loc = f->is_signal ? LOC_NONE : space_loc(s, f->va);
		if (loc == LOC_NONE || code_in_plt(c, loc))
			continue;
		uint32_t mark_len = f->is_fragment ? 0 : mark_before(c, f, i ? f - 1 : NULL);
		if (!add_ext(c, loc - mark_len, f->len + mark_len, IMAGE_SRC_UNWIND, f->is_fragment))
			return false;
	}
	const struct dbg_funcs *funcs[] = {c->in->go_funcs, c->in->dwarf_funcs};
	for (size_t k = 0; k < ARRAY_LEN(funcs); k++) {
		for (size_t i = 0; funcs[k] && i < funcs[k]->list.cnt; i++) {
			const struct dbg_func *f = &funcs[k]->list.data[i];
			if (!add_ext(c, space_loc(s, f->va), f->len, IMAGE_SRC_METADATA, false))
				return false;
		}
	}
	return true;
}

/* One extent a start: the best source stands, the longest reach counts; a name says best what is a
 * fragment. */
static void unite_exts(struct code *c)
{
	size_t n = 0;
	for (size_t i = 1; i < c->exts.cnt; i++) {
		struct code_ext *last = &c->exts.data[n];
		const struct code_ext *e = &c->exts.data[i];
		if (e->from != last->from) {
			c->exts.data[++n] = *e;
			continue;
		}
		last->to = MAX(last->to, e->to);
		if (e->source == last->source && !e->is_fragment && last->is_fragment &&
		    e->source != IMAGE_SRC_SYMBOL) {
			last->is_fragment = false;
			last->start = last->from;
		}
	}
	if (c->exts.cnt)
		c->exts.cnt = n + 1;
}

/* Where extents overlap the later one wins its part; what is left of the earlier behind it stays
 * its own. */
static bool cut_exts(struct code *c)
{
	VEC(struct code_ext) out = {0};
	struct code_ext rest = {0};
	bool ok = true;
	for (size_t i = 0; i <= c->exts.cnt && ok; i++) {
		uint32_t next = i < c->exts.cnt ? c->exts.data[i].from : CODE_NONE;
		if (rest.from < rest.to && rest.from < next) {
			struct code_ext piece = rest;
			piece.to = MIN(rest.to, next);
			piece.is_fragment = true;
			ok = VEC_PUSH(&out, piece);
		}
		if (i == c->exts.cnt)
			break;
		struct code_ext e = c->exts.data[i];
		if (rest.to <= e.to)
			rest.to = 0;
		rest.from = MAX(rest.from, e.to);
		uint32_t after = i + 1 < c->exts.cnt ? c->exts.data[i + 1].from : CODE_NONE;
		if (after < e.to) {
			if (!rest.to || e.to < rest.to)
				rest = e;
			rest.from = after;
			e.to = after;
		}
		ok = ok && VEC_PUSH(&out, e);
	}
	VEC_FREE(&c->exts);
	memcpy(&c->exts, &out, sizeof(c->exts));
	return ok;
}

struct err *code_exts(struct code *c)
{
	const struct image_data *d = c->d;
	for (size_t i = 0; i < d->sections.cnt; i++) {
		const struct image_section *s = &d->sections.data[i];
		uint32_t got = s->kind == FMT_SEC_GOT && s->is_alloc ? space_loc(&d->space, s->va)
								     : LOC_NONE;
		if (got != LOC_NONE && s->mem_len < d->loc_cnt - got && c->gots.cnt < PIECES_MAX &&
		    !VEC_PUSH(&c->gots,
			      (struct code_piece){got, got + (uint32_t)s->mem_len, CODE_NONE}))
			return &err_nomem;
		uint32_t loc = s->kind == FMT_SEC_PLT && s->is_alloc ? space_loc(&d->space, s->va)
								     : LOC_NONE;
		if (loc != LOC_NONE && code_in(c, loc) && s->mem_len < c->len &&
		    c->plts.cnt < PIECES_MAX &&
		    !VEC_PUSH(&c->plts,
			      (struct code_piece){loc, loc + (uint32_t)s->mem_len, CODE_NONE}))
			return &err_nomem;
	}
	if (!symbol_exts(c) || !table_exts(c))
		return &err_nomem;
	if (c->exts.cnt)
		qsort(c->exts.data, c->exts.cnt, sizeof(c->exts.data[0]), compare_exts);
	unite_exts(c);
	if (!cut_exts(c))
		return &err_nomem;
	for (size_t i = 0; i < d->code_starts.cnt; i++)
		if (code_in(c, d->code_starts.data[i]))
			code_mark(c, c->sync, d->code_starts.data[i]);
	return NULL;
}

/* Who jumps into an extent from outside: the first function by address, and how. */
struct entrance {
	uint32_t start;	    /* function of the first one that has one, CODE_NONE */
	uint32_t other_cnt; /* of jumps from other functions than that */
	bool is_cond;
	bool is_inside; /* past the extent's first instruction, or from its function's fragment back
			   into it */
};

static void find_entrances(const struct code *c, const struct code_ext *e, struct entrance *ret)
{
	*ret = (struct entrance){.start = CODE_NONE};
	uint32_t first = c->into_first[(e->from - c->base) / 64];
	uint32_t last = c->into_first[(e->to - 1 - c->base) / 64 + 1];
	for (uint32_t i = first; i < last; i++) {
		const struct code_rec *r = &c->recs[c->into[i]];
		if (r->target < e->from || r->target >= e->to ||
		    (r->loc >= e->from && r->loc < e->to))
			continue;
		const struct code_ext *from = code_ext_of(c, r->loc);
		if (!from || from->start == CODE_NONE || from->start == e->from)
			continue;
		ret->is_cond |= r->flow == ARCH_FLOW_CJUMP;
		ret->is_inside |= r->target != e->from;
		if (ret->start == CODE_NONE)
			ret->start = from->start;
		else if (from->start != ret->start)
			ret->other_cnt++;
	}
}

/* Whether code of `e` jumps into the middle of the function at `start`; CODE_NONE: of any, which is
 * returned. */
static uint32_t jumps_back(const struct code *c, const struct code_ext *e, uint32_t start)
{
	uint32_t i = code_rec_at(c, e->from);
	for (; i < c->rec_cnt && c->recs[i].loc < e->to; i++) {
		const struct code_rec *r = &c->recs[i];
		if (r->flow != ARCH_FLOW_JUMP && r->flow != ARCH_FLOW_CJUMP)
			continue;
		if (r->target == LOC_NONE || (r->target >= e->from && r->target < e->to))
			continue;
		const struct code_ext *to = code_ext_of(c, r->target);
		if (!to || to->start == CODE_NONE || r->target == to->start)
			continue;
		if (start == CODE_NONE || to->start == start)
			return to->start;
	}
	return CODE_NONE;
}

struct by_lsda {
	uint64_t lsda;
	uint32_t loc;
};

static int compare_lsda(const void *a, const void *b)
{
	const struct by_lsda *x = a, *y = b;
	if (x->lsda != y->lsda)
		return x->lsda < y->lsda ? -1 : 1;
	return (x->loc > y->loc) - (x->loc < y->loc);
}

/*
 * Fragments that only exceptions enter have no jump that leads to them. The table of their landing
 * pads lies behind that of the function they were split from.
 */
static bool own_by_lsda(struct code *c)
{
	const struct dbg_fdes *fdes = c->in->fdes;
	VEC(struct by_lsda) list = {0};
	bool ok = true;
	for (size_t i = 0; fdes && ok && i < fdes->list.cnt; i++) {
		const struct dbg_fde *f = &fdes->list.data[i];
		uint32_t loc = f->lsda ? space_loc(&c->d->space, f->va) : LOC_NONE;
		if (loc != LOC_NONE && code_in(c, loc))
			ok = VEC_PUSH(&list, (struct by_lsda){f->lsda, loc});
	}
	if (list.cnt)
		qsort(list.data, list.cnt, sizeof(*list.data), compare_lsda);
	const struct code_ext *before = NULL;
	for (size_t i = 0; i < list.cnt; i++) {
		struct code_ext *e = (struct code_ext *)code_ext_of(c, list.data[i].loc);
		if (!e || e->from != list.data[i].loc)
			continue;
		if (!e->is_fragment)
			before = e;
		else if (e->start == CODE_NONE && before)
			e->start = before->start;
	}
	VEC_FREE(&list);
	return ok;
}

#define FRAGMENT_ROUNDS 16 /* fragments entered from fragments, that many deep */

/* Gives marked fragments to those who jump into them, until no more find an owner. */
static void own_fragments(struct code *c)
{
	bool again = true;
	for (unsigned round = 0; again && round < FRAGMENT_ROUNDS; round++) {
		again = false;
		for (size_t i = 0; i < c->exts.cnt; i++) {
			struct code_ext *e = &c->exts.data[i];
			if (!e->is_fragment || e->start != CODE_NONE)
				continue;
			if (code_has(c, c->called, e->from) || code_has(c, c->taken, e->from)) {
				e->is_fragment = false;
				e->start = e->from;
				continue;
			}
			struct entrance in;
			find_entrances(c, e, &in);
			e->start = in.start != CODE_NONE ? in.start : jumps_back(c, e, CODE_NONE);
			again |= e->start != CODE_NONE;
		}
	}
	if (!own_by_lsda(c))
		c->has_failed = true;
	for (size_t i = 0; i < c->exts.cnt; i++) {
		struct code_ext *e = &c->exts.data[i];
		if (e->start == CODE_NONE) {
			e->is_fragment = false;
			e->start = e->from;
		}
	}
}

/*
 * Unwind entries whose frame rule does not tell that they are fragments: cold parts of functions
 * without a frame. Nobody calls them or takes their address, only one function jumps there, and
 * either the place is no usual one for a function or jumps go into the middle of one of the two.
 */
static void find_plain_fragments(struct code *c)
{
	for (size_t i = 0; i < c->exts.cnt; i++) {
		struct code_ext *e = &c->exts.data[i];
		if (e->source != IMAGE_SRC_UNWIND || e->is_fragment ||
		    code_has(c, c->called, e->from) || code_has(c, c->taken, e->from) ||
		    !code_has(c, c->items, e->from))
			continue;
		struct entrance in;
		find_entrances(c, e, &in);
		if (in.start == CODE_NONE || in.other_cnt)
			continue;
		bool is_aligned = (e->from - c->base) % c->arch->func_align == 0;
		bool is_tied = in.is_inside || jumps_back(c, e, in.start) != CODE_NONE;
		if (is_aligned ? !(is_tied && in.is_cond && code_entry_look(c, e->from) == ENTRY_ODD)
			       : !(is_tied || (in.is_cond && c->are_aligned)))
			continue;
		e->is_fragment = true;
		e->start = in.start;
	}
	/* A fragment of a fragment belongs to the function both are part of. */
	for (size_t i = 0; i < c->exts.cnt; i++) {
		struct code_ext *e = &c->exts.data[i];
		for (unsigned hops = 0; e->is_fragment && hops < 16; hops++) {
			const struct code_ext *p = code_ext_of(c, e->start);
			if (!p || !p->is_fragment || p->start == e->start || p->start == e->from)
				break;
			e->start = p->start;
		}
		if (e->is_fragment && e->start == e->from) {
			e->is_fragment = false;
		}
	}
}

/* Relocated pointers to code are taken addresses. */
static void mark_relocs(struct code *c)
{
	const struct space *s = &c->d->space;
	for (uint32_t i = 0; i < s->reloc_cnt; i++) {
		if (s->reloc_kind[i] & (SPACE_REL_WIDE | SPACE_REL_CODE))
			continue;
		if (code_in(c, s->reloc_val[i])) {
			code_mark(c, c->taken, s->reloc_val[i]);
			code_mark(c, c->relocated, s->reloc_val[i]);
		}
	}
}

static void add_start(struct code *c, uint32_t loc, enum image_source source)
{
	if (loc != LOC_NONE && code_has(c, c->items, loc) && !code_is_stated_inside(c, loc) &&
	    code_fn_add(c, loc, source) == CODE_NONE)
		c->has_failed = true;
}

static void add_symbol_starts(struct code *c)
{
	const struct image_data *d = c->d;
	for (size_t i = 0; i < d->symbols.cnt; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		bool is_label = s->type == FMT_SYM_NONE && s->bind != FMT_BIND_LOCAL;
		if ((!symbol_is_func(s) && !is_label) || s->loc == LOC_NONE ||
		    code_in_plt(c, s->loc))
			continue;
		const struct code_ext *e = code_ext_of(c, s->loc);
		if (e && e->is_fragment && e->from == s->loc)
			continue;
		/* A bare label inside a function is a label. */
		if (is_label && e && e->from != s->loc && !code_has(c, c->called, s->loc))
			continue;
		add_start(c, s->loc, IMAGE_SRC_SYMBOL);
	}
}

/* Targets of direct calls, unless the call stays inside one extent or comes from where no code
 * should be. */
static void add_call_starts(struct code *c)
{
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (r->flow != ARCH_FLOW_CALL || r->target == LOC_NONE ||
		    r->target == r->loc + r->len || !code_has(c, c->items, r->target) ||
		    code_has(c, c->starts, r->target) || code_in_plt(c, r->target))
			continue;
		const struct code_ext *to = code_ext_of(c, r->target);
		const struct code_ext *from = code_ext_of(c, r->loc);
		if (to && to->from != r->target &&
		    (to->source == IMAGE_SRC_METADATA || (from && from->start == to->start)))
			continue;
		if (!from && c->exts.cnt && !code_is_after_end(c, r->target))
			continue;
		add_start(c, r->target, IMAGE_SRC_CALL);
	}
}

static bool add_plt(struct code *c, uint32_t from, uint32_t to)
{
	struct code_piece *last = c->plts.cnt ? &c->plts.data[c->plts.cnt - 1] : NULL;
	if (last && from <= last->to) {
		last->to = MAX(last->to, to);
		return true;
	}
	return c->plts.cnt >= PIECES_MAX ||
	       VEC_PUSH(&c->plts, (struct code_piece){from, to, CODE_NONE});
}

#define STUB_LEN 16u

/*
 * Where import stubs lie in a file without sections: jumps through import slots one after the
 * other, each at the beginning of 16 bytes, perhaps behind a landing mark. An unwind entry over
 * them describes them all, no function.
 */
struct err *code_find_plts(struct code *c)
{
	if (c->plts.cnt || !c->regions.cnt || c->regions.data[0].is_section)
		return NULL;
	uint32_t last = CODE_NONE;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (r->flow != ARCH_FLOW_IJUMP || code_import_of(c, r->target) == CODE_NONE)
			continue;
		uint32_t from = r->loc - (r->loc - c->base) % STUB_LEN;
		bool is_first = from == r->loc || code_insn_before(c, r->loc) == from;
		if (!is_first || !code_has(c, c->items, from))
			continue;
		/* One alone is a tail call. */
		if (last != CODE_NONE && from - last == STUB_LEN &&
		    !add_plt(c, last, from + STUB_LEN))
			return &err_nomem;
		last = from;
	}
	size_t n = 0;
	for (size_t i = 0; i < c->exts.cnt; i++) {
		const struct code_ext *e = &c->exts.data[i];
		struct code_piece *hit = NULL;
		for (size_t k = 0; k < c->plts.cnt && !hit; k++)
			if (e->from < c->plts.data[k].to && c->plts.data[k].from < e->to)
				hit = &c->plts.data[k];
		if (!hit) {
			c->exts.data[n++] = *e;
			continue;
		}
		hit->from = MIN(hit->from, e->from);
		hit->to = MAX(hit->to, e->to);
	}
	c->exts.cnt = n;
	return NULL;
}

struct err *code_starts(struct code *c)
{
	mark_relocs(c);
	for (size_t i = 0; i < c->exts.cnt; i++) {
		c->exts.data[i].is_loose = !c->exts.data[i].is_stated &&
			(c->exts.data[i].start == CODE_NONE || !c->exts.data[i].is_fragment);
		c->exts.data[i].was_fragment = c->exts.data[i].is_fragment;
	}
	own_fragments(c);
	find_plain_fragments(c);
	code_stated_starts(c);
	add_symbol_starts(c);
	for (size_t i = 0; i < c->exts.cnt; i++)
		if (!c->exts.data[i].is_fragment)
			add_start(c, c->exts.data[i].from, c->exts.data[i].source);
	for (size_t i = 0; i < c->d->code_starts.cnt; i++)
		add_start(c, c->d->code_starts.data[i], IMAGE_SRC_ENTRY);
	add_call_starts(c);
	return c->has_failed ? &err_nomem : NULL;
}
