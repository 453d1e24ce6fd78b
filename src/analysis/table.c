/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/slice.h"

#include "arch/arch.h"

/*
 * Jump tables. Each indirect jump of the sweep is looked at on its own, in parallel, before any
 * flow is followed: the value it jumps to is expressed over a path that leads to it (slice.c) and
 * matched with
 *
 *     C + M * LOAD(T + index * stride)
 *
 * where C = 0, M = 1 is a table of pointers, and the index may itself come out of a table of bytes.
 * The number of entries is what comparisons and widths on the path say about the index. Every entry
 * must be the start of an instruction where this jump can go; if one is not, the match was wrong
 * and another path is tried. Without a bound the table grows while entries are good and no other
 * reference begins a new object: a guess, marked as one.
 */
#define TABLE_MAX 65536u
#define GUESS_MIN 2u
#define LOOKS 32u

struct shape {
	bool has_base;	    /* else the target is the entry itself */
	uint16_t base_atom; /* unknown part of C, 0 none; its factor is 1 */
	uint64_t base;	    /* known part of C */
	int64_t factor;	    /* M */
	uint8_t width;
	bool is_signed;
	uint16_t table_atom; /* unknown part of T, 0 none */
	uint64_t table;
	uint16_t index;
	int64_t stride;
};

struct job {
	struct code *c;
	struct sx *s;
	uint32_t rec;
	struct code_table found;
	VEC(uint32_t) targets;
	uint32_t lo, hi;    /* where the function lies, as far as is known */
	uint32_t ext_start; /* function of the extent, CODE_NONE */
	bool may_look_far;  /* for what a register holds, in the whole function */
	uint64_t budget;    /* instructions still to be looked at */
	bool is_cut;	    /* a guess too long to be kept, unless another table ends it */
};

struct jobs {
	struct code *c;
	struct job *list;
	uint32_t *recs;
	struct sx *slices; /* per worker */
	uint64_t budget;   /* of each job */
	uint64_t target_max; /* likewise */
};

/* Tables may overlap and be read at many places, but not so that all of them are longer than the code. */
#define JOB_BATCH 1024u
#define TARGETS_MIN 256u
#define TARGETS_SPARE 65536u

/* LOAD, with what extends it. */
static bool as_load(const struct sx *s, uint16_t node, uint16_t *ret_addr, uint8_t *ret_width,
		    bool *ret_signed)
{
	const struct sx_node *n = &s->nodes[node];
	bool is_signed = false;
	bool has_ext = false;
	while (n->kind == SX_EXT && s->nodes[n->a].kind != SX_NONE) {
		if (!has_ext || n->width <= 4)
			is_signed = n->is_signed;
		has_ext = true;
		n = &s->nodes[n->a];
	}
	if (n->kind != SX_LOAD)
		return false;
	*ret_addr = n->a;
	*ret_width = n->width;
	*ret_signed = n->is_signed || (has_ext && is_signed);
	return true;
}

/* An index that was scaled before it was extended: unwrap to the value itself. */
static void unscale(const struct sx *s, struct shape *h)
{
	for (unsigned i = 0; i < 4; i++) {
		uint16_t core = sx_strip(s, h->index);
		const struct sx_node *n = &s->nodes[core];
		if (h->stride != 1 || h->width == 1 || n->kind != SX_SUM || n->b ||
		    n->ka != h->width)
			return;
		h->stride *= n->ka;
		h->table += (uint64_t)n->k;
		h->index = n->a;
	}
}

/* The address of the entry as T + index * stride. `prefer_base`: an atom known to be a base. */
static bool match_address(struct sx *s, uint16_t addr, uint16_t prefer_base, struct shape *h)
{
	const struct sx_node *n = &s->nodes[addr];
	h->table = 0;
	h->table_atom = 0;
	if (n->kind != SX_SUM) {
		h->index = addr;
		h->stride = 1;
		return n->kind != SX_CONST && n->kind != SX_NONE && h->width > 1;
	}
	h->table = (uint64_t)n->k;
	h->index = n->a;
	h->stride = n->ka;
	if (n->b && h->width > 1 && n->ka % h->width == 0 && n->kb % h->width == 0) {
		/* The index is itself a sum. */
		h->stride = h->width;
		h->index = sx_sum(s, n->a, n->ka / h->width, n->b, n->kb / h->width);
	} else if (n->b) {
		uint64_t max;
		bool swap = n->ka == 1 && (n->kb != 1 || prefer_base == n->a);
		if (n->ka == 1 && n->kb == 1 && prefer_base != n->a && prefer_base != n->b)
			swap = sx_max(s, n->b, &max);
		if (swap) {
			h->index = n->b;
			h->stride = n->kb;
			h->table_atom = n->a;
		} else {
			h->table_atom = n->b;
		}
		if ((swap ? n->ka : n->kb) != 1)
			return false;
	}
	unscale(s, h);
	return h->stride > 0 && h->stride <= 64;
}

static bool match_target(struct sx *s, uint16_t target, struct shape *h)
{
	*h = (struct shape){.factor = 1};
	uint16_t addr;
	if (as_load(s, target, &addr, &h->width, &h->is_signed))
		return match_address(s, addr, 0, h);
	const struct sx_node *n = &s->nodes[sx_strip(s, target)];
	if (n->kind != SX_SUM)
		return false;
	h->has_base = true;
	h->base = (uint64_t)n->k;
	if (as_load(s, n->a, &addr, &h->width, &h->is_signed)) {
		h->factor = n->ka;
		h->base_atom = n->b;
		if (n->b && n->kb != 1)
			return false;
		if (match_address(s, addr, n->b, h) && h->stride >= h->width)
			return true;
	}
	if (n->b && as_load(s, n->b, &addr, &h->width, &h->is_signed)) {
		h->factor = n->kb;
		h->base_atom = n->a;
		return n->ka == 1 && match_address(s, addr, n->a, h) && h->stride >= h->width;
	}
	return false;
}

/* Whether control of this jump may go to `loc`. */
static bool entry_is_good(const struct job *j, uint32_t loc)
{
	const struct code *c = j->c;
	if (loc == LOC_NONE || !code_has(c, c->items, loc))
		return false;
	/* Cases that cannot happen may point behind the function's last instruction. */
	if (loc >= j->lo && loc <= j->hi)
		return true;
	if (j->ext_start == CODE_NONE)
		return false;
	const struct code_ext *e = code_ext_of(c, loc);
	return e && e->start == j->ext_start;
}

static bool read_entry(const struct code *c, uint64_t va, unsigned width, bool is_signed,
		       uint64_t *ret)
{
	uint32_t loc = space_loc(&c->d->space, va);
	if (loc == LOC_NONE || !space_word(&c->d->space, loc, width, ret))
		return false;
	if (is_signed && width < 8) {
		unsigned shift = 64 - width * 8;
		*ret = (uint64_t)((int64_t)(*ret << shift) >> shift);
	}
	return true;
}

static uint32_t entry_loc(const struct code *c, const struct shape *h, uint64_t i)
{
	uint64_t v;
	if (!read_entry(c, h->table + i * (uint64_t)h->stride, h->width, h->is_signed, &v))
		return LOC_NONE;
	v = h->has_base ? h->base + v * (uint64_t)h->factor : v;
	if (c->arch->bits == 32)
		v = (uint32_t)v;
	return space_loc(&c->d->space, v);
}

/* What is known of the index without a comparison: masks and narrow loads. */
static bool width_bound(const struct sx *s, uint16_t index, uint64_t *ret)
{
	const struct sx_node *n = &s->nodes[sx_strip(s, index)];
	switch (n->kind) {
	case SX_AND:
		*ret = (uint64_t)n->k;
		return n->k >= 0 && n->k < TABLE_MAX;
	case SX_EXT:
	case SX_LOAD:
		*ret = n->width == 1 ? 255 : 65535;
		return n->width <= 2 && !n->is_signed;
	case SX_SHR: {
		const struct sx_node *a = &s->nodes[n->a];
		unsigned bits = (a->kind == SX_EXT || a->kind == SX_LOAD) && !a->is_signed
					? a->width * 8u
					: 64;
		*ret = n->k < (int64_t)bits && bits - (unsigned)n->k <= 16
			       ? ((uint64_t)1 << (bits - (unsigned)n->k)) - 1
			       : TABLE_MAX;
		return *ret < TABLE_MAX;
	}
	default:
		return false;
	}
}

/* Reads the targets; false when an entry is bad before the table ends. */
static bool read_targets(struct job *j, const struct shape *h, uint64_t cnt, bool is_hard)
{
	struct code *c = j->c;
	uint32_t table = space_loc(&c->d->space, h->table);
	j->targets.cnt = 0;
	if (table == LOC_NONE)
		return false;
	uint64_t far_cnt = 0;
	uint32_t last_far = LOC_NONE;
	for (uint64_t i = 0; i < cnt; i++) {
		uint32_t at = space_loc(&c->d->space, h->table + i * (uint64_t)h->stride);
		if (!is_hard && i && (at == LOC_NONE || bits_get(c->data_refs, at)))
			break;
		uint32_t to = entry_loc(c, h, i);
		if (!entry_is_good(j, to)) {
			/* Without extents cold cases lie anywhere; there are few, though many
			 * entries may share one. */
			if (!is_hard || j->ext_start != CODE_NONE || to == LOC_NONE ||
			    !code_has(c, c->items, to) || code_has(c, c->starts, to))
				break;
			far_cnt += to != last_far;
			last_far = to;
		}
		if (!VEC_PUSH(&j->targets, to))
			return false;
	}
	if (is_hard && (j->targets.cnt != cnt || far_cnt * 2 > cnt))
		return false;
	return j->targets.cnt >= (is_hard ? 1 : GUESS_MIN);
}

/* A table whose index comes out of a table of bytes or halves with a known bound. */
static bool try_two_level(struct job *j, const struct shape *h)
{
	const struct sx *s = j->s;
	struct code *c = j->c;
	struct shape in = {.factor = 1};
	uint16_t addr;
	int64_t low = 0;
	if (!as_load(s, sx_strip(s, h->index), &addr, &in.width, &in.is_signed) || in.width > 2)
		return false;
	const struct sx_node *n = &s->nodes[addr];
	if (n->kind != SX_SUM || n->b || n->ka != in.width)
		return false;
	in.table = (uint64_t)n->k;
	uint64_t max;
	if (space_loc(&c->d->space, in.table) == LOC_NONE ||
	    (!sx_max(s, n->a, &max) && !width_bound(s, n->a, &max)))
		return false;
	j->targets.cnt = 0;
	for (uint64_t i = 0; i <= max; i++) {
		uint64_t v;
		if (!read_entry(c, in.table + i * in.width, in.width, in.is_signed, &v))
			return false;
		uint32_t to = entry_loc(c, h, v);
		if (!entry_is_good(j, to) || !VEC_PUSH(&j->targets, to))
			return false;
	}
	const struct sx_node *core = &s->nodes[sx_strip(s, n->a)];
	if (core->kind == SX_SUM && !core->b && core->ka == 1)
		low = -core->k;
	j->found.t = (struct image_table){.table_loc = space_loc(&c->d->space, h->table),
					  .index_loc = space_loc(&c->d->space, in.table),
					  .low = low};
	return true;
}

static void settle(struct job *j, const struct shape *h, int64_t low, bool is_guessed)
{
	j->found.t = (struct image_table){.table_loc = space_loc(&j->c->d->space, h->table),
					  .index_loc = LOC_NONE,
					  .entry_bytes = h->width,
					  .is_relative = h->has_base,
					  .low = low,
					  .is_guessed = is_guessed};
}

/*
 * Tables bounded by comparisons. The compared value may be the index plus a constant: the table
 * then begins where that sum is 0, for the constant went into the table's address when the sum was
 * formed.
 */
static bool try_bounds(struct job *j, const struct shape *h)
{
	struct sx_fit fit;
	for (unsigned from = j->s->bound_cnt; sx_fits(j->s, h->index, &from, &fit);) {
		struct shape use = *h;
		uint64_t max = fit.max;
		if (h->stride == 1 && h->width > 1) {
			use.stride = h->width;
			max /= h->width;
		}
		use.table -= (uint64_t)fit.offset * (uint64_t)use.stride;
		if (read_targets(j, &use, max + 1, true)) {
			settle(j, &use, -fit.low, false);
			return true;
		}
		if (fit.offset && (int64_t)max - fit.offset >= 0 &&
		    read_targets(j, h, (uint64_t)((int64_t)max - fit.offset) + 1, true)) {
			settle(j, h, 0, false);
			return true;
		}
	}
	return false;
}

static bool try_known(struct job *j, const struct shape *h)
{
	const struct sx *s = j->s;
	if (try_bounds(j, h))
		return true;
	if (try_two_level(j, h)) {
		j->found.t.entry_bytes = h->width;
		j->found.t.is_relative = h->has_base;
		return true;
	}
	uint64_t max = TABLE_MAX - 1;
	bool has_width = width_bound(s, h->index, &max);
	struct shape use = *h;
	/* A masked offset in bytes counts its entries by the stride. */
	if (h->stride == 1 && h->width > 1) {
		if (!has_width)
			return false;
		use.stride = h->width;
		max /= h->width;
	}
	const struct sx_node *core = &s->nodes[sx_strip(s, h->index)];
	int64_t low = core->kind == SX_SUM && !core->b && core->ka == 1 ? -core->k : 0;
	/* A mask is a bound when all it lets through is good; else it only bounds the guess. Where
	 * a comparison bounds the index and does not fit the table, the match is wrong and no guess
	 * is better. */
	bool is_mask = has_width && core->kind == SX_AND && read_targets(j, &use, max + 1, true);
	uint64_t bound;
	if (!is_mask && (sx_max(s, h->index, &bound) || !read_targets(j, &use, max + 1, false)))
		return false;
	settle(j, &use, low, !is_mask);
	return true;
}

/* Constants that an unknown register or stack slot may have got far from here: what the function
 * puts there. */
struct far {
	struct {
		uint64_t val;
		uint32_t loc;
	} list[16];
	unsigned cnt;
};

static void far_add(const struct code *c, struct far *f, uint64_t v, uint32_t at)
{
	uint32_t loc = space_loc(&c->d->space, v);
	if (loc == LOC_NONE)
		return;
	for (unsigned i = 0; i < f->cnt; i++) {
		if (f->list[i].val == v) {
			f->list[i].loc = at;
			return;
		}
	}
	if (f->cnt < ARRAY_LEN(f->list)) {
		f->list[f->cnt].val = v;
		f->list[f->cnt++].loc = at;
	}
}

/* The nearest before the jump first, then those behind it. */
static unsigned far_next(const struct far *f, uint32_t jump, uint32_t done)
{
	unsigned best = f->cnt;
	for (unsigned i = 0; i < f->cnt; i++) {
		if (done >> i & 1)
			continue;
		if (best == f->cnt || (f->list[i].loc < jump) > (f->list[best].loc < jump) ||
		    ((f->list[i].loc < jump) == (f->list[best].loc < jump) &&
		     (f->list[i].loc > f->list[best].loc) == (f->list[i].loc < jump)))
			best = i;
	}
	return best;
}

#define FAR_MAX 262144u

static void find_far(struct job *j, uint16_t atom, struct far *ret)
{
	const struct code *c = j->c;
	const struct sx *s = j->s;
	const struct sx_node *n = &s->nodes[atom];
	uint8_t reg = n->kind == SX_ATOM ? (uint8_t)(n->k & 0xff) : ARCH_REG_NONE;
	int64_t slot = 0;
	bool has_slot = false;
	ret->cnt = 0;
	if (n->kind == SX_LOAD) {
		const struct sx_node *a = &s->nodes[n->a];
		has_slot = a->kind == SX_SUM && !a->b && a->ka == 1;
		slot = a->k;
	}
	if (reg >= 64 && !has_slot)
		return;
	struct code_track t = {0};
	uint32_t to = MIN(j->hi, j->lo + FAR_MAX);
	uint32_t loc = code_next(c, c->items, j->lo, to);
	for (; loc < to && j->budget; j->budget--) {
		bool has_rec = code_has(c, c->rec_bits, loc);
		const struct code_rec *r = has_rec ? &c->recs[code_rec_at(c, loc)] : NULL;
		struct arch_effect e;
		code_track_step(c, &t, loc, r, &e);
		if (reg < 64 && (e.writes >> reg & 1) && (t.known >> reg & 1))
			far_add(c, ret, t.val[reg], loc);
		if (has_slot && e.op == ARCH_OP_STORE && e.index == ARCH_REG_NONE && e.src1 < 64 &&
		    e.imm == slot && (t.known >> e.src1 & 1))
			far_add(c, ret, t.val[e.src1], loc);
		loc = code_next(c, c->items, loc + 1, to);
	}
}

static bool try_shape(struct job *j, const struct shape *h)
{
	uint16_t atom = h->table_atom ? h->table_atom : h->base_atom;
	if (!atom)
		return try_known(j, h);
	/* Two different unknowns are one too many. */
	if (h->table_atom && h->base_atom && h->table_atom != h->base_atom)
		return false;
	if (!j->may_look_far)
		return false;
	struct far far;
	find_far(j, atom, &far);
	uint32_t done = 0;
	for (unsigned k = 0; k < far.cnt; k++) {
		unsigned i = far_next(&far, j->c->recs[j->rec].loc, done);
		struct shape known = *h;
		done |= 1u << i;
		if (h->table_atom)
			known.table += far.list[i].val;
		if (h->base_atom)
			known.base += far.list[i].val;
		if (try_known(j, &known))
			return true;
	}
	return false;
}

/* Dispatches, as opposed to calls through pointers: an entry picked by a scaled index. */
static bool looks_like_dispatch(const struct sx *s, uint16_t target)
{
	const struct sx_node *n = &s->nodes[sx_strip(s, target)];
	if (n->kind == SX_SUM)
		return true;
	if (n->kind != SX_LOAD)
		return false;
	const struct sx_node *a = &s->nodes[n->a];
	return a->kind == SX_SUM && (a->ka > 1 || (a->b && a->kb > 1));
}

static void set_limits(struct job *j)
{
	const struct code *c = j->c;
	uint32_t loc = c->recs[j->rec].loc;
	const struct code_region *r = code_region_of(c, loc);
	const struct code_ext *e = code_ext_of(c, loc);
	j->ext_start = CODE_NONE;
	if (e) {
		j->ext_start = e->start;
		j->lo = e->from;
		j->hi = e->to;
		const struct code_ext *main = e->is_fragment ? code_ext_of(c, e->start) : NULL;
		if (main) {
			j->lo = main->from;
			j->hi = main->to;
		}
		return;
	}
	uint32_t start = r ? code_prev(c, c->starts, r->from, loc + 1) : CODE_NONE;
	j->lo = start != CODE_NONE ? start : r ? r->from : loc;
	j->hi = r ? code_next(c, c->starts, loc + 1, r->to) : loc;
}

/* Paths that are tried: short ones first, which is enough for nearly all. */
static const struct {
	unsigned len, variant;
	bool is_far;
} tries[] = {
	{96, SX_NO_CHOICE, false},
	{32, 0, false},
	{96, 0, false},
	{96, 1, false},
	{96, 2, false},
	{96, 3, false},
	{96, SX_NO_CHOICE, true},
	{96, 0, true},
	{400, 0, true},
	{400, 1, true},
	{400, 2, true},
};

/* A jump through a slot at a known address is none through a table. */
static bool is_slot(const struct job *j, const struct sx_node *target)
{
	if (target->kind != SX_LOAD || j->s->nodes[target->a].kind != SX_CONST)
		return false;
	uint32_t slot = space_loc(&j->c->d->space, (uint64_t)j->s->nodes[target->a].k);
	if (slot != LOC_NONE)
		j->c->recs[j->rec].target = slot;
	return true;
}

/* Tries one path. True when the jump is settled: a table with a sure bound, or no table at all. */
static bool try_path(struct job *j, const struct sx_path *path)
{
	struct code_rec *r = &j->c->recs[j->rec];
	sx_run(j->s, j->c, path);
	uint16_t target = sx_target(j->s, r->loc);
	const struct sx_node *n = &j->s->nodes[target];
	if (!path->has_choice && is_slot(j, n))
		return true;
	r->is_dispatch = looks_like_dispatch(j->s, target) ||
			 (r->flags & ARCH_INSN_NOTRACK && n->kind != SX_LOAD);
	struct shape h;
	if (!match_target(j->s, target, &h))
		return n->kind == SX_LOAD && !r->is_dispatch &&
		       j->s->nodes[n->a].kind != SX_CONST; /* through a field */
	if (!try_shape(j, &h))
		return false;
	j->found.rec = j->rec;
	return !j->found.t.is_guessed;
}

static void resolve(struct job *j)
{
	struct sx_path path;
	unsigned last_cnt = 0;
	struct code_table guess = {.rec = CODE_NONE};
	VEC(uint32_t) guess_targets = {0};
	uint32_t loc = j->c->recs[j->rec].loc;
	set_limits(j);
	for (unsigned i = 0; i < ARRAY_LEN(tries) && j->budget; i++) {
		sx_path_back(j->c, loc, tries[i].len, tries[i].variant, &path);
		if (tries[i].is_far != j->may_look_far) {
			j->may_look_far = tries[i].is_far;
			last_cnt = 0;
		}
		if (tries[i].variant == SX_NO_CHOICE || !tries[i].variant) {
			if (path.cnt == last_cnt)
				continue;
			last_cnt = path.cnt;
		} else if (!path.has_choice) {
			continue;
		}
		j->budget -= MIN(j->budget, path.cnt);
		j->found.rec = CODE_NONE;
		if (try_path(j, &path)) {
			VEC_FREE(&guess_targets);
			return;
		}
		/* A guess stands only if no other path gives a bound; the first is from the
		 * shortest path. */
		if (j->found.rec != CODE_NONE && guess.rec == CODE_NONE) {
			guess = j->found;
			memcpy(&guess_targets, &j->targets, sizeof(guess_targets));
			memset(&j->targets, 0, sizeof(j->targets));
		}
	}
	VEC_FREE(&j->targets);
	memcpy(&j->targets, &guess_targets, sizeof(guess_targets));
	j->found = guess;
}

/* Of a table too long to be kept a guess keeps its first targets until another table has ended it. */
static void shorten(struct job *j, uint64_t max)
{
	VEC(uint32_t) few = {0};
	j->is_cut = j->found.rec != CODE_NONE && j->found.t.is_guessed && VEC_RESERVE(&few, max);
	if (j->is_cut) {
		memcpy(few.data, j->targets.data, max * sizeof(uint32_t));
		few.cnt = max;
	} else {
		j->found.rec = CODE_NONE;
	}
	VEC_FREE(&j->targets);
	memcpy(&j->targets, &few, sizeof(few));
}

static void resolve_jobs(void *ctx, unsigned worker, size_t from, size_t to)
{
	struct jobs *all = ctx;
	for (size_t i = from; i < to; i++) {
		all->list[i] = (struct job){.c = all->c,
					    .s = &all->slices[worker],
					    .rec = all->recs[i],
					    .budget = all->budget,
					    .found = {.rec = CODE_NONE}};
		if (all->c->in->cancel &&
		    atomic_load_explicit(all->c->in->cancel, memory_order_relaxed))
			continue;
		struct job *j = &all->list[i];
		resolve(j);
		if (j->targets.cnt > all->target_max)
			shorten(j, all->target_max);
	}
}

const struct code_table *code_table_of(const struct code *c, uint32_t rec)
{
	size_t lo = 0, hi = c->tables.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->tables.data[mid].rec < rec)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->tables.cnt && c->tables.data[lo].rec == rec ? &c->tables.data[lo] : NULL;
}

static int compare_locs(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* A guessed table ends where another table begins at the latest. */
static bool cut_guesses(const struct jobs *all, size_t cnt)
{
	VEC(uint32_t) firsts = {0};
	bool ok = true;
	for (size_t i = 0; i < cnt && ok; i++) {
		const struct code_table *f = &all->list[i].found;
		if (f->rec == CODE_NONE)
			continue;
		ok = VEC_PUSH(&firsts, f->t.table_loc) &&
		     (f->t.index_loc == LOC_NONE || VEC_PUSH(&firsts, f->t.index_loc));
	}
	if (firsts.cnt)
		qsort(firsts.data, firsts.cnt, sizeof(*firsts.data), compare_locs);
	for (size_t i = 0; i < cnt && ok; i++) {
		struct job *j = &all->list[i];
		if (j->found.rec == CODE_NONE || !j->found.t.is_guessed)
			continue;
		size_t lo = 0, hi = firsts.cnt;
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			if (firsts.data[mid] <= j->found.t.table_loc)
				lo = mid + 1;
			else
				hi = mid;
		}
		size_t max = lo < firsts.cnt ? (firsts.data[lo] - j->found.t.table_loc) /
						       MAX(j->found.t.entry_bytes, 1u)
					     : SIZE_MAX;
		if (j->is_cut && max > j->targets.cnt)
			j->found.rec = CODE_NONE;
		j->targets.cnt = MIN(j->targets.cnt, MAX(max, (size_t)1));
	}
	VEC_FREE(&firsts);
	return ok;
}

static bool collect(struct code *c, const struct jobs *all, size_t cnt)
{
	if (!cut_guesses(all, cnt))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		struct job *j = &all->list[i];
		if (j->found.rec == CODE_NONE || !j->targets.cnt ||
		    c->targets.cnt + j->targets.cnt > TARGETS_SPARE + (uint64_t)c->len)
			continue;
		j->found.t.jump_loc = c->recs[j->rec].loc;
		j->found.t.target_first = (uint32_t)c->targets.cnt;
		j->found.t.target_cnt = (uint32_t)j->targets.cnt;
		if (!VEC_RESERVE(&c->targets, j->targets.cnt) || !VEC_PUSH(&c->tables, j->found))
			return false;
		memcpy(c->targets.data + c->targets.cnt, j->targets.data,
		       j->targets.cnt * sizeof(uint32_t));
		c->targets.cnt += j->targets.cnt;
	}
	return true;
}

struct err *code_tables(struct code *c)
{
	size_t cnt = 0;
	c->tables.cnt = 0;
	c->targets.cnt = 0;
	for (uint32_t i = 0; i < c->rec_cnt; i++)
		cnt += c->recs[i].flow == ARCH_FLOW_IJUMP;
	if (!cnt)
		return NULL;
	struct jobs all = {.c = c};
	all.list = alloc_array(MIN(cnt, (size_t)JOB_BATCH), sizeof(*all.list));
	uint32_t *recs = all.recs = alloc_array(cnt, sizeof(*all.recs));
	all.slices = alloc_array(par_threads(c->in->par), sizeof(*all.slices));
	bool ok = all.list && all.recs && all.slices;
	if (ok) {
		cnt = 0;
		for (uint32_t i = 0; i < c->rec_cnt; i++)
			if (c->recs[i].flow == ARCH_FLOW_IJUMP &&
			    code_import_of(c, c->recs[i].target) == CODE_NONE)
				all.recs[cnt++] = i;
		/* Made-up code may be full of indirect jumps; all of them together look at each
		 * byte a few times. */
		all.budget = MAX((uint64_t)LOOKS * c->len / MAX(cnt, (size_t)1), (uint64_t)64);
		all.target_max = MAX(2 * (uint64_t)c->len / MAX(cnt, (size_t)1), (uint64_t)TARGETS_MIN);
		for (size_t from = 0; ok && from < cnt; from += JOB_BATCH) {
			size_t n = MIN(cnt - from, (size_t)JOB_BATCH);
			all.recs = recs + from;
			par_for(c->in->par, n, 16, resolve_jobs, &all);
			ok = collect(c, &all, n);
			for (size_t i = 0; i < n; i++)
				VEC_FREE(&all.list[i].targets);
		}
	}
	free(all.list);
	free(recs);
	free(all.slices);
	return ok ? NULL : &err_nomem;
}
