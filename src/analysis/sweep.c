/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

/*
 * The linear sweep: every byte of the executable regions is decoded once, as if by one pass from
 * the first byte to the last that starts afresh at each known point (symbol, unwind entry, section,
 * entry). Chunks of a fixed size are decoded in parallel, each from its own first byte; then each
 * one's end is stitched to the next: decoding goes on past the boundary until it meets an
 * instruction start of the next chunk, and what that chunk had before this point is dropped.
 * Variable-length code falls into step within a few instructions, so the result is that of the one
 * pass, for any number of threads, and costs one decode of each byte.
 *
 * A sweep believes that data between code is code. That is undone later: only what the traversal
 * reaches, or what lies in the extent of a function, is kept. Where the traversal comes to the
 * middle of what was swept as an instruction, that point becomes a known one and the chunks around
 * it are swept again.
 */
#define CHUNK_LEN 32768u
/* Straight code gets a record now and then, so that to look for the next one costs no more than
 * that. */
#define SYNC_LOOK 256u /* bytes, more than any instruction has */
#define STRAIGHT_MAX 4096u
#define PAIRS_MAX 100000000u

struct sweep {
	struct code *c;
	size_t seg_hint;
	bool has_guesses; /* absolute operands may be addresses here */
	bool by_reloc;	  /* ... only where a relocation says so */
	uint64_t min_va;  /* no operand points below */
};

static int compare_regions(const void *a, const void *b)
{
	const struct code_region *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

const struct code_region *code_region_of(const struct code *c, uint32_t loc)
{
	size_t lo = 0, hi = c->regions.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->regions.data[mid].to <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->regions.cnt && c->regions.data[lo].from <= loc ? &c->regions.data[lo] : NULL;
}

const struct image_section *code_section_of(const struct code *c, uint32_t loc)
{
	uint64_t va = space_va(&c->d->space, loc);
	for (size_t i = 0; i < c->d->sections.cnt; i++) {
		const struct image_section *s = &c->d->sections.data[i];
		if (s->is_alloc && va >= s->va && va - s->va < s->mem_len)
			return s;
	}
	return NULL;
}

uint32_t code_insn_end(const struct code *c, uint32_t loc)
{
	const struct code_region *r = code_region_of(c, loc);
	uint32_t to = r ? r->to : loc + 1;
	to = MIN(to, loc + 256);
	uint32_t item = code_next(c, c->items, loc + 1, to);
	return code_next(c, c->rec_bits, loc + 1, item);
}

uint32_t code_insn_before(const struct code *c, uint32_t loc)
{
	const struct code_region *r = code_region_of(c, loc);
	if (!r)
		return CODE_NONE;
	uint32_t from = loc - r->from > 32 ? loc - 32 : r->from;
	uint32_t q = code_prev(c, c->items, from, loc);
	return q != CODE_NONE && code_insn_end(c, q) == loc ? q : CODE_NONE;
}

static bool add_region(struct code *c, const struct space_seg *seg, uint64_t from_va, uint64_t len,
		       bool is_section)
{
	if (from_va < seg->va) {
		uint64_t cut = seg->va - from_va;
		if (cut >= len)
			return true;
		from_va += cut;
		len -= cut;
	}
	uint64_t off = from_va - seg->va;
	if (off >= seg->file_len || !len)
		return true;
	len = MIN(len, seg->file_len - off);
	uint32_t from = seg->loc + (uint32_t)off;
	return VEC_PUSH(&c->regions, (struct code_region){from, from + (uint32_t)len, is_section, false});
}

/* The executable sections of a segment when they look like they cover its code, else all its file
 * bytes. */
static bool seg_regions(struct code *c, const struct space_seg *seg)
{
	size_t first = c->regions.cnt;
	uint32_t entry = c->d->meta.entry_loc;
	/* Tables this large are made up, and looking at each pair of the two would take for ever.
	 */
	if ((uint64_t)c->d->segs.cnt * c->d->sections.cnt > PAIRS_MAX)
		return add_region(c, seg, seg->va, seg->file_len, false);
	bool needs_entry =
		entry != LOC_NONE && entry >= seg->loc && entry - seg->loc < seg->mem_len;
	for (size_t i = 0; i < c->d->sections.cnt; i++) {
		const struct image_section *s = &c->d->sections.data[i];
		if (!s->is_alloc || !(s->perm & 1) || s->va < seg->va ||
		    s->va - seg->va >= seg->mem_len)
			continue;
		if (!add_region(c, seg, s->va, MIN(s->mem_len, s->file_len), true))
			return false;
		if (needs_entry && c->regions.cnt > first) {
			const struct code_region *r = &c->regions.data[c->regions.cnt - 1];
			needs_entry = !(entry >= r->from && entry < r->to);
		}
	}
	if (c->regions.cnt > first && !needs_entry)
		return true;
	c->regions.cnt = first;
	return add_region(c, seg, seg->va, seg->file_len, false);
}

/* Neighbours that share a word of the bit maps become one region, so that no two chunks write one
 * word. Segments never do: each begins at a multiple of 64. */
static void merge_regions(struct code *c)
{
	if (!c->regions.cnt)
		return;
	qsort(c->regions.data, c->regions.cnt, sizeof(c->regions.data[0]), compare_regions);
	size_t n = 0;
	for (size_t i = 1; i < c->regions.cnt; i++) {
		struct code_region *last = &c->regions.data[n], *r = &c->regions.data[i];
		if (r->from / 64 <= (last->to - 1) / 64 + 1 &&
		    space_seg_of_loc(&c->d->space, r->from) ==
			    space_seg_of_loc(&c->d->space, last->from)) {
			last->to = MAX(last->to, r->to);
			if (last->is_stated)
				last->is_section = r->is_section;
			last->is_stated = last->is_stated && r->is_stated;
			continue;
		}
		c->regions.data[++n] = *r;
	}
	c->regions.cnt = n + 1;
}

static bool alloc_maps(struct code *c)
{
	uint64_t **maps[] = {&c->items, &c->pads,      &c->rec_bits, &c->sync,	  &c->called,
			     &c->taken, &c->relocated, &c->starts,   &c->covered, &c->leaders, &c->touched};
	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		*maps[i] = alloc_array(bits_words(c->len) + 1, sizeof(uint64_t));
		if (!*maps[i])
			return false;
	}
	c->data_refs = alloc_array(bits_words(c->d->loc_cnt) + 1, sizeof(uint64_t));
	return c->data_refs != NULL;
}

static void mark_section_starts(struct code *c)
{
	for (size_t i = 0; i < c->d->sections.cnt; i++) {
		const struct image_section *s = &c->d->sections.data[i];
		uint32_t loc =
			s->is_alloc && (s->perm & 1) ? space_loc(&c->d->space, s->va) : LOC_NONE;
		if (loc != LOC_NONE && code_in(c, loc))
			code_mark(c, c->sync, loc);
	}
}

struct err *code_regions(struct code *c)
{
	for (size_t i = 0; i < c->d->segs.cnt; i++) {
		const struct space_seg *seg = &c->d->segs.data[i];
		if ((seg->perm & 1) && !seg->is_extern && seg->file_len && !seg_regions(c, seg))
			return &err_nomem;
	}
	struct err *e = code_stated_regions(c);
	if (e)
		return e;
	merge_regions(c);
	if (!c->regions.cnt)
		return NULL;
	c->base = c->regions.data[0].from & ~63u;
	c->len = c->regions.data[c->regions.cnt - 1].to - c->base;
	for (size_t i = 0; i < c->regions.cnt; i++) {
		const struct code_region *r = &c->regions.data[i];
		for (uint32_t from = r->from; from < r->to;) {
			uint32_t to = (from / CHUNK_LEN + 1) * CHUNK_LEN;
			to = to > r->to || to < from ? r->to : to;
			if (!VEC_PUSH(&c->chunks, (struct code_chunk){.from = from,
								      .to = to,
								      .region_to = r->to}))
				return &err_nomem;
			from = to;
		}
	}
	if (!alloc_maps(c))
		return &err_nomem;
	mark_section_starts(c);
	return NULL;
}

static uint32_t loc_of(struct sweep *w, uint64_t va)
{
	const struct image_data *d = w->c->d;
	const struct space_seg *s = &d->segs.data[w->seg_hint];
	if (va - s->va < s->mem_len)
		return s->loc + (uint32_t)(va - s->va);
	int seg = space_seg_of_va(&d->space, va);
	if (seg < 0)
		return LOC_NONE;
	w->seg_hint = (size_t)seg;
	s = &d->segs.data[seg];
	return s->loc + (uint32_t)(va - s->va);
}

/* Whether an absolute operand is an address: never in position-independent files, where no code
 * holds any; in objects where a relocation patched it; else when it hits a segment and is no round
 * number. */
static bool guess_is_address(const struct sweep *w, uint32_t loc, uint32_t len, uint64_t va)
{
	if (!w->has_guesses)
		return false;
	if (w->by_reloc) {
		const struct space *s = &w->c->d->space;
		uint32_t i = space_reloc_at(s, loc);
		return i < s->reloc_cnt && s->reloc_loc[i] < loc + len;
	}
	return va >= w->min_va && (va & 0xffff) != 0;
}

static void add_refs(struct sweep *w, struct code_chunk *k, uint32_t loc,
		     const struct arch_insn *in)
{
	for (unsigned i = 0; i < in->ref_cnt && i < ARCH_REF_MAX; i++) {
		const struct arch_ref *r = &in->refs[i];
		if ((r->is_guess && !guess_is_address(w, loc, in->len, r->va)) || r->va < w->min_va)
			continue;
		uint32_t to = loc_of(w, r->va);
		if (to == LOC_NONE)
			continue;
		uint8_t kind = r->kind == ARCH_REF_READ	   ? IMAGE_XREF_READ
			       : r->kind == ARCH_REF_WRITE ? IMAGE_XREF_WRITE
							   : IMAGE_XREF_OFFSET;
		if (!VEC_PUSH(&k->refs, (struct image_xref){loc, to, kind}))
			k->has_failed = true;
	}
}

static uint32_t rec_target(struct sweep *w, const struct arch_insn *in)
{
	switch ((enum arch_flow)in->flow) {
	case ARCH_FLOW_JUMP:
	case ARCH_FLOW_CJUMP:
	case ARCH_FLOW_CALL:
		return loc_of(w, in->target);
	case ARCH_FLOW_IJUMP:
	case ARCH_FLOW_ICALL:
		if (in->ref_cnt && !in->refs[0].is_guess && in->refs[0].kind == ARCH_REF_READ)
			return loc_of(w, in->refs[0].va);
		return LOC_NONE;
	case ARCH_FLOW_NEXT:
	case ARCH_FLOW_RET:
	case ARCH_FLOW_STOP:
	case ARCH_FLOW_INVALID:
		break;
	}
	return LOC_NONE;
}

/* `len` bytes that are no instruction; neighbours are told as one record. */
static void add_invalid(struct code *c, struct code_chunk *k, uint32_t loc, uint32_t len)
{
	struct code_rec *last = k->recs.cnt ? &k->recs.data[k->recs.cnt - 1] : NULL;
	if (last && last->flow == ARCH_FLOW_INVALID && last->loc + last->len == loc &&
	    last->len + len <= 255) {
		last->len = (uint8_t)(last->len + len);
		return;
	}
	struct code_rec r = {
		.loc = loc, .target = LOC_NONE, .flow = ARCH_FLOW_INVALID, .len = (uint8_t)len};
	if (VEC_PUSH(&k->recs, r))
		code_mark(c, c->rec_bits, loc);
	else
		k->has_failed = true;
}

static void add_insn(struct sweep *w, struct code_chunk *k, uint32_t loc,
		     const struct arch_insn *in)
{
	struct code *c = w->c;
	/* A call of the next instruction goes on there either way, but it is a reference. */
	bool is_call_next = in->flow == ARCH_FLOW_NEXT && in->target &&
			    in->target == space_va(&c->d->space, loc) + in->len;
	code_mark(c, c->items, loc);
	if (in->flags & (ARCH_INSN_NOP | ARCH_INSN_PAD_TRAP))
		code_mark(c, c->pads, loc);
	if (in->ref_cnt)
		add_refs(w, k, loc, in);
	if (in->flow == ARCH_FLOW_NEXT && !is_call_next && loc - k->last_rec < STRAIGHT_MAX)
		return;
	k->last_rec = loc;
	struct code_rec r = {.loc = loc,
			     .target = is_call_next ? loc_of(w, in->target) : rec_target(w, in),
			     .flow = is_call_next ? ARCH_FLOW_CALL : in->flow,
			     .len = in->len,
			     .flags = in->flags};
	if (VEC_PUSH(&k->recs, r))
		code_mark(c, c->rec_bits, loc);
	else
		k->has_failed = true;
}

/* Bytes that are all zero are some instruction on most machines, but never one that somebody wrote.
 */
static bool is_zeros(const uint8_t *p, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* Bytes of a long run of zeros that can be passed over at once: a multiple of every instruction's length, and not
 * the run's end, which may be the beginning of an instruction. */
static uint32_t zeros_at(const uint8_t *p, uint32_t len)
{
	enum { STEP = 16 };
	static const uint8_t zeros[STEP];
	uint32_t n = 0;
	while (len - n >= STEP && memcmp(p + n, zeros, STEP) == 0)
		n += STEP;
	return n > STEP ? n - STEP : 0;
}

/* Where the data ends that people stated, or the ABI's mapping symbols declare, at `loc`; `loc` when there is none. */
static uint32_t skip_data(const struct code *c, uint32_t loc, uint32_t to)
{
	uint32_t stated = code_stated_data_end(c, loc);
	if (stated > loc)
		return MIN(stated, to);
	size_t lo = 0, hi = c->d->mappings.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->d->mappings.data[mid].loc <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || c->d->mappings.data[lo - 1].is_code)
		return loc;
	return lo < c->d->mappings.cnt ? MIN(c->d->mappings.data[lo].loc, to) : to;
}

/*
 * Decodes from `pos` on until `to`; in the stitching pass until an instruction start that is there
 * already. Returns where it stopped.
 */
static uint32_t sweep_run(struct sweep *w, struct code_chunk *k, uint32_t pos, uint32_t to,
			  bool is_stitch)
{
	struct code *c = w->c;
	const struct arch *a = c->arch;
	size_t avail;
	const uint8_t *bytes = space_bytes(&c->d->space, pos, &avail);
	if (!bytes)
		return to;
	uint32_t first = pos;
	k->last_rec = pos;
	uint64_t va = space_va(&c->d->space, pos);
	uint32_t end = (uint32_t)MIN((uint64_t)k->region_to, (uint64_t)pos + avail);
	uint32_t next_sync = pos;
	bool has_data = c->d->mappings.cnt || c->zones.cnt;
	while (pos < to && pos < end) {
		if (is_stitch && code_has(c, c->items, pos))
			break;
		if (pos >= next_sync) /* no farther than an instruction of this run can reach */
			next_sync = code_next(c, c->sync, pos + 1, (uint32_t)MIN(end, (uint64_t)to + SYNC_LOOK));
		uint32_t stop = has_data ? skip_data(c, pos, next_sync) : pos;
		if (stop > pos) {
			uint32_t len = MIN(stop - pos, 255u); /* one record: a stitch clears what it replaces after each */
			add_invalid(c, k, pos, len);
			pos += len;
			continue;
		}
		struct arch_insn in;
		const uint8_t *p = bytes + (pos - first);
		uint32_t zeros = is_stitch || *p ? 0 : zeros_at(p, MIN(MIN(end, next_sync), to) - pos);
		if (zeros) {
			for (stop = pos + zeros; pos < stop; pos += MIN(stop - pos, 240u))
				add_invalid(c, k, pos, MIN(stop - pos, 240u));
			continue;
		}
		a->decode(a, p, end - pos, va + (pos - first), &in);
		if (in.flow == ARCH_FLOW_INVALID || pos + in.len > next_sync ||
		    is_zeros(p, in.len)) {
			uint32_t len = MIN(MAX((uint32_t)in.len, (uint32_t)1), next_sync - pos);
			add_invalid(c, k, pos, len);
			pos += len;
			continue;
		}
		add_insn(w, k, pos, &in);
		pos += in.len;
	}
	return MAX(pos, MIN(to, end));
}

static struct sweep sweep_make(struct code *c)
{
	struct sweep w = {.c = c};
	uint8_t type = c->d->meta.fmt_type;
	w.by_reloc = type == FMT_TYPE_OBJECT || type == FMT_TYPE_MODULE;
	w.has_guesses = w.by_reloc || (type == FMT_TYPE_EXEC && c->d->meta.base_va >= 0x1000);
	w.min_va = c->d->meta.base_va;
	/* The file's headers at the start of the first segment are not what an operand points to:
	 * what looks like it is a null pointer with an offset, or a small number. */
	uint64_t lowest = UINT64_MAX;
	for (size_t i = 0; i < c->d->sections.cnt; i++)
		if (c->d->sections.data[i].is_alloc && c->d->sections.data[i].va)
			lowest = MIN(lowest, c->d->sections.data[i].va);
	if (lowest != UINT64_MAX)
		w.min_va = MAX(w.min_va, lowest);
	return w;
}

static void sweep_chunks(void *ctx, unsigned worker, size_t from, size_t to)
{
	struct sweep w = *(const struct sweep *)ctx; /* with a hint of its own */
	struct code *c = w.c;
	(void)worker;
	for (size_t i = from; i < to; i++) {
		struct code_chunk *k = &c->chunks.data[i];
		if (c->in->cancel && atomic_load_explicit(c->in->cancel, memory_order_relaxed))
			return;
		k->end = sweep_run(&w, k, k->from, k->to, false);
	}
}

/* Puts what `fix` holds in place of what chunk `k` has before `pos`. */
static bool replace_head(struct code *c, struct code_chunk *k, struct code_chunk *fix, uint32_t pos)
{
	size_t r = 0, x = 0;
	while (r < k->recs.cnt && k->recs.data[r].loc < pos)
		r++;
	while (x < k->refs.cnt && k->refs.data[x].from < pos)
		x++;
	/* A run of invalid bytes that began before the meeting point goes on behind it. */
	uint32_t tail_to = 0;
	if (r && k->recs.data[r - 1].flow == ARCH_FLOW_INVALID)
		tail_to = k->recs.data[r - 1].loc + k->recs.data[r - 1].len;
	if (tail_to > pos)
		add_invalid(c, fix, pos, tail_to - pos);
	if (!VEC_RESERVE(&fix->recs, k->recs.cnt - r) || !VEC_RESERVE(&fix->refs, k->refs.cnt - x))
		return false;
	if (k->recs.cnt > r)
		memcpy(fix->recs.data + fix->recs.cnt, k->recs.data + r,
		       (k->recs.cnt - r) * sizeof(*k->recs.data));
	if (k->refs.cnt > x)
		memcpy(fix->refs.data + fix->refs.cnt, k->refs.data + x,
		       (k->refs.cnt - x) * sizeof(*k->refs.data));
	fix->recs.cnt += k->recs.cnt - r;
	fix->refs.cnt += k->refs.cnt - x;
	VEC_FREE(&k->recs);
	VEC_FREE(&k->refs);
	memcpy(&k->recs, &fix->recs, sizeof(k->recs));
	memcpy(&k->refs, &fix->refs, sizeof(k->refs));
	return true;
}

/* Makes chunk `k` begin where the one before it ended. */
static bool stitch(struct sweep *w, struct code_chunk *k, uint32_t pos)
{
	struct code *c = w->c;
	if (pos <= k->from || pos >= k->region_to)
		return true;
	uint32_t limit = MIN(pos, k->to);
	/* What the chunk decoded inside the last instruction of its predecessor goes first. */
	bits_clear_range(c->items, k->from - c->base, limit - c->base);
	bits_clear_range(c->pads, k->from - c->base, limit - c->base);
	bits_clear_range(c->rec_bits, k->from - c->base, limit - c->base);
	struct code_chunk fix = {.from = k->from, .to = k->to, .region_to = k->region_to};
	while (pos < k->to && !code_has(c, c->items, pos)) {
		/* One instruction at a time, clearing what it replaces. */
		uint32_t at = pos;
		if (code_has(c, c->rec_bits, at))
			bits_clear(c->rec_bits, at - c->base);
		pos = sweep_run(w, &fix, at, at + 1, true);
		uint32_t over = MIN(pos, k->to);
		if (over > at + 1) {
			bits_clear_range(c->items, at + 1 - c->base, over - c->base);
			bits_clear_range(c->pads, at + 1 - c->base, over - c->base);
			bits_clear_range(c->rec_bits, at + 1 - c->base, over - c->base);
		}
	}
	if (pos >= k->to)
		k->end = pos;
	if (!replace_head(c, k, &fix, MIN(pos, k->to))) {
		VEC_FREE(&fix.recs);
		VEC_FREE(&fix.refs);
		return false;
	}
	return !k->has_failed && !fix.has_failed;
}

/* The first record at or behind `loc`. */
static size_t rec_at(const struct code *c, uint32_t loc)
{
	size_t lo = 0, hi = c->rec_cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->recs[mid].loc < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Puts the records of the chunks [first, last) that have some into the array of all, in place: in
 * a file made to have millions of them two such arrays side by side would be the peak of the whole
 * analysis. First the records they replace are closed up, then the rest is moved apart from the
 * end. */
static bool gather(struct code *c, size_t first, size_t last)
{
	if (first == last)
		return true;
	size_t fresh = 0, old = rec_at(c, c->chunks.data[first].from), kept = old;
	for (size_t i = first; i < last; i++) {
		const struct code_chunk *k = &c->chunks.data[i];
		bool is_fresh = k->recs.cap != 0;
		fresh += k->recs.cnt;
		for (; old < c->rec_cnt && c->recs[old].loc < k->to; old++)
			if (!is_fresh)
				c->recs[kept++] = c->recs[old];
	}
	size_t rest = c->rec_cnt - old;
	if (rest)
		memmove(c->recs + kept, c->recs + old, rest * sizeof(*c->recs));
	c->rec_cnt = (uint32_t)(kept + rest);
	struct code_rec *all = realloc(c->recs, (c->rec_cnt + fresh + 1) * sizeof(*all));
	if (!all)
		return false;
	c->recs = all;
	size_t end = c->rec_cnt, to = end + fresh;
	c->rec_cnt = (uint32_t)to;
	for (size_t i = last; fresh && i-- > first;) {
		struct code_chunk *k = &c->chunks.data[i];
		size_t cut = end;
		while (cut && all[cut - 1].loc >= k->from)
			cut--;
		to -= end - cut;
		memmove(all + to, all + cut, (end - cut) * sizeof(*all));
		end = cut;
		to -= k->recs.cnt;
		fresh -= k->recs.cnt;
		if (k->recs.cnt)
			memcpy(all + to, k->recs.data, k->recs.cnt * sizeof(*all));
	}
	for (size_t i = first; i < last; i++)
		VEC_FREE(&c->chunks.data[i].recs);
	return true;
}

struct err *code_sweep(struct code *c)
{
	/* Short enough to look at the clock and the cancel flag in between, and for the records of a
	 * batch to be few beside those of all. */
	const size_t batch = 16;
	struct sweep w = sweep_make(c);
	code_progress(c, "code", 0, (uint64_t)c->chunks.cnt * CHUNK_LEN);
	for (size_t from = 0; from < c->chunks.cnt; from += batch) {
		size_t n = MIN(batch, c->chunks.cnt - from);
		struct code_chunk *all = c->chunks.data;
		size_t all_cnt = c->chunks.cnt;
		/* par_for() counts from 0, so it is shown the batch only. */
		struct code view = *c;
		view.chunks.data = all + from;
		view.chunks.cnt = n;
		struct sweep part = w;
		part.c = &view;
		par_for(c->in->par, n, 1, sweep_chunks, &part);
		if (code_is_cancelled(c))
			return NULL;
		code_progress(c, "code", (uint64_t)(from + n) * CHUNK_LEN,
			      (uint64_t)all_cnt * CHUNK_LEN);
		for (size_t i = from; i < from + n; i++) {
			struct code_chunk *k = &c->chunks.data[i];
			if (k->has_failed)
				return &err_nomem;
			if (i && k[-1].region_to == k->region_to && !stitch(&w, k, k[-1].end))
				return &err_nomem;
		}
		if (!gather(c, from, from + n))
			return &err_nomem;
	}
	return NULL;
}

/* Gives a chunk its records back, for a stitch to change. */
static bool load_recs(struct code *c, struct code_chunk *k)
{
	if (k->recs.cap)
		return true;
	if (!VEC_RESERVE(&k->recs, 1))
		return false;
	for (size_t i = rec_at(c, k->from); i < c->rec_cnt && c->recs[i].loc < k->to; i++)
		if (!VEC_PUSH(&k->recs, c->recs[i]))
			return false;
	return true;
}

static bool resweep_chunk(struct code *c, struct sweep *w, size_t i)
{
	struct code_chunk *k = &c->chunks.data[i];
	uint64_t from = k->from - c->base, to = k->to - c->base;
	bits_clear_range(c->items, from, to);
	bits_clear_range(c->pads, from, to);
	bits_clear_range(c->rec_bits, from, to);
	k->recs.cnt = 0;
	k->refs.cnt = 0;
	if (!VEC_RESERVE(&k->recs, 1))
		return false;
	k->end = sweep_run(w, k, k->from, k->to, false);
	if (i && k[-1].region_to == k->region_to && !stitch(w, k, k[-1].end))
		return false;
	if (i + 1 < c->chunks.cnt && k[1].region_to == k->region_to) {
		if (!load_recs(c, k + 1) || !stitch(w, k + 1, k->end))
			return false;
	}
	return !k->has_failed;
}

bool code_sweep_again(struct code *c)
{
	bool is_new = false;
	for (size_t i = 0; i < c->missync.cnt; i++) {
		uint32_t loc = c->missync.data[i];
		if (!code_in(c, loc) || code_has(c, c->sync, loc))
			continue;
		code_mark(c, c->sync, loc);
		is_new = true;
	}
	if (!is_new)
		return false;
	/* The index is of the old records and made anew. */
	free(c->into);
	c->into = NULL;
	free(c->owner);
	c->owner = NULL;
	struct sweep w = sweep_make(c);
	size_t waiting = 0; /* records beside those they replace: an eighth of all at most */
	for (size_t i = 0; i < c->chunks.cnt && !c->has_failed; i++) {
		const struct code_chunk *k = &c->chunks.data[i];
		bool is_hit = false;
		for (size_t m = 0; m < c->missync.cnt && !is_hit; m++)
			is_hit = c->missync.data[m] >= k->from && c->missync.data[m] < k->to;
		if (!is_hit)
			continue;
		c->has_failed = !resweep_chunk(c, &w, i);
		waiting += k->recs.cnt;
		if (!c->has_failed && waiting > c->rec_cnt / 8 + CHUNK_LEN) {
			c->has_failed = !gather(c, 0, c->chunks.cnt);
			waiting = 0;
		}
	}
	c->missync.cnt = 0;
	if (!c->has_failed)
		c->has_failed = !gather(c, 0, c->chunks.cnt);
	return !c->has_failed;
}

static bool in_got(const struct code *c, uint32_t loc)
{
	for (size_t i = 0; i < c->gots.cnt; i++)
		if (loc >= c->gots.data[i].from && loc < c->gots.data[i].to)
			return true;
	return false;
}

/* Calls and jumps through a GOT slot that is bound to code of this file go there for certain. */
static void bind_local_slots(struct code *c)
{
	const struct space *s = &c->d->space;
	for (uint32_t i = 0; i < c->rec_cnt && c->gots.cnt; i++) {
		struct code_rec *r = &c->recs[i];
		uint64_t va;
		if ((r->flow != ARCH_FLOW_ICALL && r->flow != ARCH_FLOW_IJUMP) ||
		    r->target == LOC_NONE || !in_got(c, r->target) ||
		    code_import_of(c, r->target) != CODE_NONE ||
		    !space_word(s, r->target, s->word_len, &va))
			continue;
		uint32_t to = space_loc(s, va);
		if (to == LOC_NONE || !code_has(c, c->items, to))
			continue;
		r->flow = r->flow == ARCH_FLOW_ICALL ? ARCH_FLOW_CALL : ARCH_FLOW_JUMP;
		r->target = to;
	}
}

/* Whether what is called begins at the usual multiples: not so when the compiler was told to save
 * space. */
static bool called_are_aligned(const struct code *c)
{
	uint64_t called = 0, aligned = 0;
	for (size_t w = 0; w < bits_words(c->len); w++) {
		for (uint64_t any = c->called[w] & c->items[w]; any; any &= any - 1) {
			called++;
			aligned += (unsigned)__builtin_ctzll(any) % c->arch->func_align == 0;
		}
	}
	return aligned * 4 >= called * 3;
}

/* What the later stages ask of the sweep: records by position, jumps by target, called and taken
 * addresses. */
struct err *code_index(struct code *c)
{
	free(c->rank);
	free(c->into_first);
	free(c->into);
	size_t buckets = c->len / 64 + 2;
	c->rank = alloc_array(bits_rank_blocks(c->len) + 1, sizeof(*c->rank));
	c->into_first = alloc_array(buckets + 1, sizeof(*c->into_first));
	c->into = NULL;
	if (!c->rank || !c->into_first)
		return &err_nomem;
	bits_rank_build(c->rec_bits, c->len, c->rank);
	bind_local_slots(c);
	memset(c->called, 0, bits_words(c->len) * sizeof(uint64_t));
	memset(c->taken, 0, bits_words(c->len) * sizeof(uint64_t));
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (r->target == LOC_NONE || !code_in(c, r->target))
			continue;
		if (r->flow == ARCH_FLOW_CALL && r->target != r->loc + r->len)
			code_mark(c, c->called, r->target);
		if (r->flow == ARCH_FLOW_JUMP || r->flow == ARCH_FLOW_CJUMP)
			c->into_first[(r->target - c->base) / 64 + 2]++;
	}
	for (size_t i = 2; i <= buckets; i++)
		c->into_first[i] += c->into_first[i - 1];
	c->into = alloc_array((size_t)c->into_first[buckets] + 1, sizeof(*c->into));
	if (!c->into)
		return &err_nomem;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		const struct code_rec *r = &c->recs[i];
		if (r->target != LOC_NONE && code_in(c, r->target) &&
		    (r->flow == ARCH_FLOW_JUMP || r->flow == ARCH_FLOW_CJUMP))
			c->into[c->into_first[(r->target - c->base) / 64 + 1]++] = i;
	}
	c->are_aligned = called_are_aligned(c);
	for (size_t k = 0; k < c->chunks.cnt; k++) {
		const struct code_chunk *chunk = &c->chunks.data[k];
		for (size_t i = 0; i < chunk->refs.cnt; i++) {
			const struct image_xref *x = &chunk->refs.data[i];
			bits_set(c->data_refs, x->to);
			if (x->kind == IMAGE_XREF_OFFSET && code_in(c, x->to))
				code_mark(c, c->taken, x->to);
		}
	}
	return NULL;
}

bool code_is_jumped_to(const struct code *c, uint32_t loc)
{
	uint32_t bucket = (loc - c->base) / 64;
	for (uint32_t i = c->into_first[bucket]; i < c->into_first[bucket + 1]; i++)
		if (c->recs[c->into[i]].target == loc)
			return true;
	return false;
}

uint32_t code_next_gap(const struct code *c, uint32_t loc, uint32_t to)
{
	while (loc < to) {
		uint64_t word = ~c->covered[(loc - c->base) / 64] >> (loc - c->base) % 64;
		if (word)
			return MIN(loc + (uint32_t)__builtin_ctzll(word), to);
		loc = (loc | 63) + 1;
	}
	return to;
}
