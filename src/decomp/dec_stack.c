/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_copy.h"

#include <stdlib.h>
#include <string.h>

/*
 * Requires: SSA, every block reached. Provides: slots of the frame nobody else can reach are values, among them saved registers and the
 * stack protector's value, which are known by what is stored and not by how. Breaks: nothing.
 *
 * Every value that is the entry's stack pointer and a number is followed to its uses. What is loaded from or stored to there is an access; what
 * is done else with it makes the address known to others (it "escapes"): everything from there upwards stays memory, as one piece with its
 * layout. Below the lowest such address a slot is private when its accesses fit into one of them, and no load can come before all stores.
 * That pointers into the frame do not reach downwards is taken for granted, and noted. Above, only what holds a kept register's entry
 * value, or the protector's, is a value. What may be an argument of a call (stored, never loaded, at or above the stack pointer there) stays.
 *
 * Nothing is deleted before all uses have been seen.
 */

#define OFF_NONE INT32_MIN
#define SLOT_MAX 1024

struct access {
	int32_t at;
	uint16_t len;     /* bytes */
	bool is_load;
	bool is_kept;     /* a store of a value nobody's object holds */
	uint32_t rec;
};

struct slot {
	int32_t at;
	uint16_t len;
	bool has_store, is_kept, is_private;
};

struct stack {
	struct dec *d;
	struct ir_func *f;
	struct arena *a;
	int32_t *off;            /* per record: bytes from the entry's stack pointer; OFF_NONE */
	int32_t *from;           /* per record: the same of what is that and something unknown (an index) */
	uint32_t entry_sp;       /* record */
	struct access *accesses;
	uint32_t access_cnt, access_cap;
	int32_t escaped;         /* the lowest offset that is known to others */
	int32_t sp;              /* as the last PUT of the block left it */
	int32_t call_sp;         /* the stack pointer of all calls, when it is one; OFF_NONE */
	uint32_t sp_block, sp_blocks; /* the last block that sets it for a call, and how many do */
	bool has_other_sp;       /* calls have different ones, or a return has not the entry's */
	bool is_sp_put;          /* in the copy */
	bool has_canary;
	struct call {
		int32_t sp;
		int32_t args;    /* bytes there that are arguments; -1: not known */
	} *calls;
	uint32_t call_cnt, call_cap;
	bool is_open;            /* the frame is somebody else's, too */
	bool failed;
	struct slot *slots;
	uint32_t slot_cnt;
	uint16_t *slot_of;       /* per record that accesses one, plus 1 */
	/* Renaming. */
	struct dec_copy c;
	uint64_t *live_in, *gen, *kill;
	uint32_t words;
	ir_ref *defs, *def;
	struct phi {
		uint32_t rec, block, slot;
	} *phis;
	uint32_t phi_cnt, phi_cap;
};

/* --- uses ------------------------------------------------------------------------------------------------------------------------- */
static int32_t off_of(const struct stack *s, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? s->off[ir_index(r)] : OFF_NONE;
}

static void escape(struct stack *s, ir_ref r)
{
	int32_t at = off_of(s, r);
	if (at == OFF_NONE && ir_tag(r) == IR_TAG_VALUE)
		at = s->from[ir_index(r)];
	if (at != OFF_NONE && at < s->escaped)
		s->escaped = at;
}

static void escape_any(void *ctx, ir_ref r)
{
	escape(ctx, r);
}

/* A value no object of the source holds: what a register had at the entry that is to be given back, or the protector's. */
static bool is_kept_value(const struct stack *s, ir_ref r)
{
	const struct ir_rec *v = dec_rec(s->f, r);
	if (!v)
		return false;
	if (v->op == IR_GET)
		return ir_index(r) < s->f->rec_cnt && dec_set_has(&s->d->conv.keeps, v->aux) && v->aux != s->f->machine->sp_loc;
	return dec_is_canary(s->d, s->f, v);
}

static void add_access(struct stack *s, uint32_t rec, int32_t at, unsigned len, bool is_load, bool is_kept)
{
	if (s->access_cnt == s->access_cap) {
		uint32_t cap = s->access_cap * 2 + 64;
		struct access *list = ARENA_RAW_ARRAY(s->a, struct access, cap);
		if (!list) {
			s->failed = true;
			return;
		}
		if (s->access_cnt)
			memcpy(list, s->accesses, s->access_cnt * sizeof(*list));
		s->accesses = list;
		s->access_cap = cap;
	}
	s->accesses[s->access_cnt++] = (struct access){at, (uint16_t)len, is_load, is_kept, rec};
}

static bool fits(int64_t v)
{
	return v > -(1 << 28) && v < 1 << 28;
}

/* The offset of a record that is one by itself; else its operands' uses are noted. */
static void look_sum(struct stack *s, uint32_t id, const struct ir_rec *rec)
{
	uint64_t add = 0;
	int32_t a = off_of(s, rec->a), b = off_of(s, rec->b);
	int32_t from_a = ir_tag(rec->a) == IR_TAG_VALUE ? s->from[ir_index(rec->a)] : OFF_NONE;
	int32_t from_b = ir_tag(rec->b) == IR_TAG_VALUE ? s->from[ir_index(rec->b)] : OFF_NONE;
	bool is_const = ir_const_get(s->f, rec->b, &add);
	int64_t by = s->d->conv.ptr_bytes == 4 ? (int32_t)add : (int64_t)add;
	unsigned cnt = (a != OFF_NONE) + (b != OFF_NONE) + (from_a != OFF_NONE) + (from_b != OFF_NONE);
	bool is_sub = rec->op == IR_SUB;
	if (cnt == 1 && fits(by) && !(is_sub && (is_const || b != OFF_NONE || from_b != OFF_NONE))) {
		/* Which object an index moves within is only known when all that is added to it is. */
		if (is_const && a != OFF_NONE && fits(a + by))
			s->off[id] = (int32_t)(a + by);
		else if (is_const && from_a != OFF_NONE && fits(from_a + by))
			s->from[id] = (int32_t)(from_a + by);
		else if (!is_const)
			s->from[id] = a != OFF_NONE ? a : b != OFF_NONE ? b : from_a != OFF_NONE ? from_a : from_b;
		if (s->off[id] != OFF_NONE || s->from[id] != OFF_NONE)
			return;
	}
	escape(s, rec->a);
	escape(s, rec->b);
}

/* Rounding down reaches below. */
static void look_aligned(struct stack *s, const struct ir_rec *rec)
{
	uint64_t mask;
	int32_t was = s->escaped;
	escape(s, rec->a);
	escape(s, rec->b);
	if (s->escaped == was || !ir_const_get(s->f, rec->b, &mask))
		return;
	uint64_t below = ~mask & dec_mask((enum ir_width)rec->width);
	s->escaped = below < 1 << 16 && s->escaped > -(1 << 28) ? s->escaped - (int32_t)below : -(1 << 29);
}

static void look_intrin(struct stack *s, const struct ir_rec *rec)
{
	const struct ir_intrin *in = &s->f->intrins[rec->aux];
	for (uint32_t i = 0; i < rec->c; i++) {
		/* As the base of its memory operand, which comes last, it says nothing else. */
		bool is_base = i < in->in_cnt && in->in[i] == s->f->machine->sp_loc && in->mem_len;
		if (!is_base)
			escape(s, s->f->lists[rec->b + i]);
	}
}

/* Where the state's stack pointer is at the entry and at the end: with a signature, above the return address. */
static int32_t above(const struct stack *s)
{
	return s->f->self ? (int32_t)s->d->conv.ptr_bytes : 0;
}

static void look_put(struct stack *s, const struct ir_rec *rec, uint32_t block, uint32_t pos)
{
	const struct ir_rec *end = ir_terminator(s->f, block);
	bool is_last = true;
	for (uint32_t i = pos + 1; i < s->f->blocks[block].last; i++)
		is_last &= s->f->recs[s->f->order[i]].op != IR_PUT || s->f->recs[s->f->order[i]].aux != s->f->machine->sp_loc;
	int32_t at = off_of(s, rec->a);
	if (rec->aux != s->f->machine->sp_loc) {
		escape(s, rec->a);
		return;
	}
	/* What a call or a jump finds as its stack. */
	bool leaves = is_last && (end->op == IR_RET || end->op == IR_IJMP);
	s->has_other_sp |= leaves ? at != above(s) : at == OFF_NONE || (s->call_sp != OFF_NONE && s->call_sp != at);
	if (!leaves) {
		s->call_sp = at;
		s->sp_blocks += s->sp_block != block;
		s->sp_block = block;
	}
	if (at == OFF_NONE)
		s->is_open = true;
	else if (leaves && end->op == IR_IJMP && at != above(s))
		s->is_open |= true;
	s->sp = at;
}

/* A PUT of the stack pointer stands before each call. */
static void add_call(struct stack *s, const struct ir_rec *rec)
{
	if (s->call_cnt == s->call_cap) {
		uint32_t cap = s->call_cap * 2 + 32;
		struct call *calls = ARENA_RAW_ARRAY(s->a, struct call, cap);
		if (!calls) {
			s->failed = true;
			return;
		}
		if (s->call_cnt)
			memcpy(calls, s->calls, s->call_cnt * sizeof(*calls));
		s->calls = calls;
		s->call_cap = cap;
	}
	struct dec_callee c = dec_callee_at(s->d, s->f, rec);
	s->calls[s->call_cnt++] = (struct call){s->sp, c.stack_args};
}

static void look_at(struct stack *s, uint32_t pos, uint32_t block)
{
	uint32_t id = s->f->order[pos];
	const struct ir_rec *rec = &s->f->recs[id];
	unsigned bytes = ir_bits((enum ir_width)rec->width) / 8;
	switch (rec->op) {
	case IR_ADD:
	case IR_SUB:
		look_sum(s, id, rec);
		return;
	case IR_AND:
		look_aligned(s, rec);
		return;
	case IR_LOAD:
		if (off_of(s, rec->a) != OFF_NONE)
			add_access(s, id, off_of(s, rec->a), bytes, true, false);
		else
			escape(s, rec->a);
		s->has_canary |= dec_is_canary(s->d, s->f, rec);
		return;
	case IR_STORE:
		if (off_of(s, rec->a) != OFF_NONE)
			add_access(s, id, off_of(s, rec->a), bytes, false, is_kept_value(s, rec->b));
		else
			escape(s, rec->a);
		escape(s, rec->b);
		return;
	case IR_PUT:
		look_put(s, rec, block, pos);
		return;
	case IR_CMP:
		return;
	case IR_CALL:
		add_call(s, rec);
		return;
	case IR_INTRIN:
		look_intrin(s, rec);
		return;
	default:
		ir_operands(s->f, rec, escape_any, s);
	}
}

#define OFF_ANY (INT32_MIN + 1) /* of a join whose ways have not been seen */
#define JOIN_ROUNDS_MAX 16

/* What a record is bytes from the entry's stack pointer, by what is known so far of others. */
static int32_t off_by(const struct stack *s, const struct ir_rec *rec)
{
	uint64_t add;
	int32_t at = OFF_ANY;
	if (rec->op == IR_ADD && ir_const_get(s->f, rec->b, &add)) {
		int32_t a = off_of(s, rec->a);
		int64_t by = s->d->conv.ptr_bytes == 4 ? (int32_t)add : (int64_t)add;
		return a == OFF_NONE || a == OFF_ANY ? a : fits(by) && fits(a + by) ? (int32_t)(a + by) : OFF_NONE;
	}
	if (rec->op != IR_PHI)
		return OFF_NONE;
	for (uint32_t i = 0; i < rec->c; i++) {
		int32_t way = off_of(s, s->f->lists[rec->b + i]);
		if (way == OFF_NONE || (at != OFF_ANY && way != OFF_ANY && way != at))
			return OFF_NONE;
		at = way == OFF_ANY ? at : way;
	}
	return at;
}

/* Joins that have one offset by all ways, as a frame pointer has where loops with two ways in keep it from being one value: they are taken to,
 * until one is seen not to. Offsets of other records are left as they were. */
static void find_joins(struct stack *s)
{
	struct ir_func *f = s->f;
	const struct dec_graph *g = &s->c.g;
	bool has_changed = false;
	for (uint32_t i = 0; i < f->order_cnt; i++)
		if (f->recs[f->order[i]].op == IR_PHI || f->recs[f->order[i]].op == IR_ADD)
			s->off[f->order[i]] = OFF_ANY;
	for (unsigned round = 0; round < JOIN_ROUNDS_MAX && (has_changed || !round); round++) {
		has_changed = false;
		for (uint32_t k = 0; k < g->rpo_cnt; k++) {
			const struct ir_block *b = &f->blocks[g->rpo[k]];
			for (uint32_t i = b->first; i < b->last; i++) {
				uint32_t id = f->order[i];
				if (s->off[id] == OFF_NONE || id == s->entry_sp)
					continue;
				int32_t at = off_by(s, &f->recs[id]);
				has_changed |= at != s->off[id];
				s->off[id] = at;
			}
		}
	}
	s->is_open |= has_changed;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		uint32_t id = f->order[i];
		bool is_join = f->recs[id].op == IR_PHI && !has_changed && s->off[id] != OFF_ANY;
		if (!is_join && id != s->entry_sp)
			s->off[id] = OFF_NONE;
	}
}

/* Joins first: what comes round a loop is not known when its head is seen. */
static bool look(struct stack *s)
{
	struct ir_func *f = s->f;
	struct dec_graph *g = &s->c.g;
	for (uint32_t i = 0; i < f->rec_cnt; i++)
		s->off[i] = s->from[i] = OFF_NONE;
	for (uint32_t i = f->blocks[0].first; i < f->blocks[0].last && f->recs[f->order[i]].op == IR_GET; i++) {
		if (f->recs[f->order[i]].aux != f->machine->sp_loc)
			continue;
		s->entry_sp = f->order[i];
		s->off[s->entry_sp] = above(s);
	}
	if (s->entry_sp == UINT32_MAX)
		return false;
	find_joins(s);
	for (uint32_t k = 0; k < g->rpo_cnt && !s->failed; k++) {
		const struct ir_block *b = &f->blocks[g->rpo[k]];
		for (uint32_t i = b->first; i < b->last; i++)
			if (f->recs[f->order[i]].op != IR_PHI)
				look_at(s, i, g->rpo[k]);
	}
	for (uint32_t i = 0; i < f->order_cnt; i++)
		if (f->recs[f->order[i]].op == IR_PHI && s->off[f->order[i]] == OFF_NONE)
			ir_operands(f, &f->recs[f->order[i]], escape_any, s);
	return !s->is_open && !s->failed;
}

/* --- slots ------------------------------------------------------------------------------------------------------------------------ */
static int by_place(const void *x, const void *y)
{
	const struct access *a = x, *b = y;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->rec < b->rec ? -1 : a->rec > b->rec;
}

/* Accesses that overlap; they are one slot when one of them covers all, and it is a register's width. */
static void add_slot(struct stack *s, uint32_t from, uint32_t to, int32_t at, int32_t end)
{
	struct slot slot = {.at = at, .len = (uint16_t)(end - at), .is_kept = true};
	bool has_whole = false;
	for (uint32_t i = from; i < to; i++) {
		const struct access *a = &s->accesses[i];
		has_whole |= a->at == at && a->at + a->len == end;
		slot.has_store |= !a->is_load;
		slot.is_kept &= a->is_load || a->is_kept;
	}
	slot.is_kept &= slot.has_store;
	slot.is_private = has_whole && end <= 0 && (end <= s->escaped || slot.is_kept);
	if (s->slot_cnt == SLOT_MAX) {
		s->d->is_frame_known = false;
		return;
	}
	for (uint32_t i = from; i < to; i++)
		s->slot_of[s->accesses[i].rec] = (uint16_t)(s->slot_cnt + 1);
	s->slots[s->slot_cnt++] = slot;
}

/* What a call finds at its stack pointer: as much as its code reads, else all that is stored from there on without a gap. */
static void find_args(struct stack *s, const struct call *call)
{
	int32_t word = (int32_t)s->d->conv.ptr_bytes, at = call->sp, end = call->args >= 0 ? at + call->args : INT32_MAX;
	for (uint32_t k = 0; k < s->slot_cnt; k++) {
		struct slot *slot = &s->slots[k];
		if (slot->at + slot->len <= call->sp)
			continue;
		bool is_next = slot->has_store && !slot->is_kept && slot->at <= at;
		if (slot->at >= end || (call->args < 0 && !is_next))
			return;
		slot->is_private &= slot->is_kept;
		at = (slot->at + slot->len + word - 1) / word * word;
		if (slot->at + slot->len < 0 && (slot->at + slot->len) % word)
			at = (slot->at + slot->len) - (slot->at + slot->len) % word;
	}
}

static void find_slots(struct stack *s)
{
	if (s->access_cnt)
		qsort(s->accesses, s->access_cnt, sizeof(*s->accesses), by_place);
	for (uint32_t i = 0; i < s->access_cnt;) {
		int32_t at = s->accesses[i].at, end = at + s->accesses[i].len;
		uint32_t to = i + 1;
		for (; to < s->access_cnt && s->accesses[to].at < end; to++)
			end = s->accesses[to].at + s->accesses[to].len > end ? s->accesses[to].at + s->accesses[to].len : end;
		add_slot(s, i, to, at, end);
		i = to;
	}
	for (uint32_t i = 0; i < s->call_cnt; i++)
		find_args(s, &s->calls[i]);
}

static unsigned slot_of(const struct stack *s, uint32_t id)
{
	unsigned k = s->slot_of[id];
	return k && s->slots[k - 1].is_private ? k : 0;
}

static bool is_whole(const struct stack *s, uint32_t id, unsigned k)
{
	return ir_bits((enum ir_width)s->f->recs[id].width) / 8 == s->slots[k - 1].len;
}

/* A slot that a load may find without a store before it is somebody else's, after all. */
static bool check_stored(struct stack *s)
{
	struct ir_func *f = s->f;
	struct dec_graph *g = &s->c.g;
	uint64_t *out = ARENA_RAW_ARRAY(s->a, uint64_t, (size_t)f->block_cnt * s->words + 1);
	uint64_t *now = ARENA_RAW_ARRAY(s->a, uint64_t, s->words + (size_t)1);
	if (!out || !now)
		return false;
	memset(out, 0xff, (size_t)f->block_cnt * s->words * sizeof(*out));
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t k = 0; k < g->rpo_cnt; k++) {
			uint32_t b = g->rpo[k];
			memset(now, b == 0 ? 0 : 0xff, s->words * sizeof(*now));
			for (uint32_t i = g->preds.first[b]; i < g->preds.first[b + 1]; i++)
				for (uint32_t w = 0; w < s->words; w++)
					now[w] &= out[(size_t)g->preds.list[i] * s->words + w];
			for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
				uint32_t id = f->order[i];
				unsigned n = s->slot_of[id];
				if (!n)
					continue;
				bool is_set = now[(n - 1) / 64] >> (n - 1) % 64 & 1;
				if (f->recs[id].op == IR_STORE && is_whole(s, id, n))
					now[(n - 1) / 64] |= (uint64_t)1 << (n - 1) % 64;
				else if (!is_set)
					s->slots[n - 1].is_private = false;
			}
			changed |= memcmp(now, &out[(size_t)b * s->words], s->words * sizeof(*now)) != 0;
			memcpy(&out[(size_t)b * s->words], now, s->words * sizeof(*now));
		}
	}
	return true;
}

/* --- renaming --------------------------------------------------------------------------------------------------------------------- */
static bool make_live(struct stack *s)
{
	struct ir_func *f = s->f;
	struct dec_graph *g = &s->c.g;
	size_t cells = (size_t)f->block_cnt * s->words;
	s->live_in = ARENA_ARRAY(s->a, uint64_t, cells + 1);
	s->gen = ARENA_ARRAY(s->a, uint64_t, cells + 1);
	s->kill = ARENA_ARRAY(s->a, uint64_t, cells + 1);
	if (!s->live_in || !s->gen || !s->kill)
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		uint64_t *gen = &s->gen[(size_t)b * s->words], *kill = &s->kill[(size_t)b * s->words];
		for (uint32_t i = f->blocks[b].last; i-- > f->blocks[b].first;) {
			unsigned n = slot_of(s, f->order[i]);
			if (!n)
				continue;
			uint64_t bit = (uint64_t)1 << (n - 1) % 64;
			bool is_set = f->recs[f->order[i]].op == IR_STORE && is_whole(s, f->order[i], n);
			gen[(n - 1) / 64] = is_set ? gen[(n - 1) / 64] & ~bit : gen[(n - 1) / 64] | bit;
			if (is_set)
				kill[(n - 1) / 64] |= bit;
		}
	}
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t k = g->rpo_cnt; k-- > 0;) {
			uint32_t b = g->rpo[k];
			for (uint32_t w = 0; w < s->words; w++) {
				uint64_t out = 0, *in = &s->live_in[(size_t)b * s->words + w];
				for (uint32_t i = g->succs.first[b]; i < g->succs.first[b + 1]; i++)
					out |= s->live_in[(size_t)g->succs.list[i] * s->words + w];
				out = (out & ~s->kill[(size_t)b * s->words + w]) | s->gen[(size_t)b * s->words + w];
				changed |= out != *in;
				*in = out;
			}
		}
	}
	return true;
}

static enum ir_width slot_width(const struct stack *s, uint32_t k)
{
	return ir_width_of(s->slots[k].len * 8u);
}

static ir_ref new_phi(struct stack *s, uint32_t block, uint32_t k)
{
	struct dec_build *b = &s->c.b;
	if (s->phi_cnt == s->phi_cap) {
		uint32_t cap = s->phi_cap * 2 + 64;
		struct phi *phis = ARENA_RAW_ARRAY(s->a, struct phi, cap);
		if (!phis) {
			b->failed = true;
			return ir_const(b->f, slot_width(s, k), 0);
		}
		if (s->phi_cnt)
			memcpy(phis, s->phis, s->phi_cnt * sizeof(*phis));
		s->phis = phis;
		s->phi_cap = cap;
	}
	struct ir_rec rec = {.op = IR_PHI, .width = (uint8_t)slot_width(s, k), .a = IR_REF_NONE, .b = b->f->list_cnt,
			     .c = s->c.g.preds.first[block + 1] - s->c.g.preds.first[block]};
	for (uint32_t i = 0; i < rec.c; i++) {
		ir_ref none = ir_const(b->f, slot_width(s, k), 0);
		(void)ir_list(b->f, &none, 1);
	}
	ir_ref r = dec_put_rec(b, &rec);
	if (!b->failed)
		s->phis[s->phi_cnt++] = (struct phi){ir_index(r), block, k};
	return r;
}

static void begin(struct dec_copy *c, uint32_t block)
{
	struct stack *s = c->ctx;
	s->def = s->defs + (size_t)block * s->slot_cnt;
	for (uint32_t k = 0; k < s->slot_cnt; k++) {
		s->def[k] = IR_REF_NONE;
		if (!s->slots[k].is_private || !(s->live_in[(size_t)block * s->words + k / 64] >> k % 64 & 1))
			continue;
		ir_ref same = IR_REF_NONE;
		bool differs = false;
		for (uint32_t i = c->g.preds.first[block]; i < c->g.preds.first[block + 1] && !differs; i++) {
			uint32_t p = c->g.preds.list[i];
			ir_ref v = c->is_done[p] ? s->defs[(size_t)p * s->slot_cnt + k] : IR_REF_NONE;
			differs = v == IR_REF_NONE || (same != IR_REF_NONE && same != v);
			same = v;
		}
		s->def[k] = differs || same == IR_REF_NONE ? new_phi(s, block, k) : same;
	}
}

static ir_ref def_of(struct stack *s, unsigned k)
{
	if (s->def[k] == IR_REF_NONE) {
		const struct ir_rec undef = {.op = IR_UNDEF, .width = (uint8_t)slot_width(s, k), .a = IR_REF_NONE, .b = IR_REF_NONE,
					     .c = IR_REF_NONE};
		s->def[k] = dec_put_rec(&s->c.b, &undef);
	}
	return s->def[k];
}

/* Calls at one depth of the stack: it is said at the entry, and taken back at the end. */
static bool has_one_sp(const struct stack *s)
{
	return !s->has_other_sp && !s->is_open && s->call_sp != OFF_NONE && s->sp_blocks > 1;
}

static void emit_sp(struct stack *s, int32_t at)
{
	struct dec_build *b = &s->c.b;
	enum ir_width w = (enum ir_width)s->f->machine->addr_width;
	ir_ref sp = dec_op2(b, IR_ADD, w, s->c.map[s->entry_sp], ir_const(b->f, w, (uint64_t)(int64_t)(at - above(s))));
	const struct ir_rec put = {.op = IR_PUT, .width = (uint8_t)w, .a = sp, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = s->f->machine->sp_loc};
	dec_put_rec(b, &put);
}

/* True: the record is what is said elsewhere. */
static bool put_sp(struct stack *s, const struct ir_rec *rec)
{
	if (!s->is_sp_put && rec->op != IR_GET) {
		s->is_sp_put = true;
		emit_sp(s, s->call_sp);
	}
	if (rec->op == IR_PUT && rec->aux == s->f->machine->sp_loc)
		return true;
	if (rec->op == IR_RET || rec->op == IR_IJMP)
		emit_sp(s, above(s));
	return false;
}

/* The load or store of a slot as what it does to its value. */
static bool rec_of(struct dec_copy *c, uint32_t id, ir_ref *ret)
{
	struct stack *s = c->ctx;
	const struct ir_rec *rec = &s->f->recs[id];
	if (has_one_sp(s) && put_sp(s, rec))
		return true;
	unsigned n = rec->op == IR_LOAD || rec->op == IR_STORE ? slot_of(s, id) : 0;
	if (rec->op == IR_LOAD && dec_is_canary(s->d, s->f, rec)) {
		struct ir_rec load = *rec;
		load.a = dec_copied(c, rec->a);
		*ret = dec_value(&c->b, &load);
		return true;
	}
	if (!n)
		return false;
	unsigned k = n - 1, at = (unsigned)(off_of(s, rec->a) - s->slots[k].at) * 8;
	bool whole = is_whole(s, id, n);
	struct ir_rec part = {.op = rec->op == IR_LOAD ? IR_EXTRACT : IR_INSERT, .width = rec->op == IR_LOAD ? rec->width : (uint8_t)slot_width(s, k),
			      .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = at, .origin = rec->origin};
	if (rec->op == IR_LOAD) {
		part.a = def_of(s, k);
		*ret = whole ? part.a : dec_op(&c->b, &part);
		return true;
	}
	if (!whole)
		part.a = def_of(s, k);
	part.b = dec_copied(c, rec->b);
	s->def[k] = whole ? part.b : dec_op(&c->b, &part);
	return true;
}

static void fill_phis(struct stack *s)
{
	struct ir_func *o = s->c.b.f;
	for (uint32_t i = 0; i < s->phi_cnt; i++) {
		const struct phi *p = &s->phis[i];
		uint32_t first = s->c.g.preds.first[p->block];
		for (uint32_t k = 0; k < o->recs[p->rec].c; k++) {
			ir_ref v = s->defs[(size_t)s->c.g.preds.list[first + k] * s->slot_cnt + p->slot];
			if (v != IR_REF_NONE)
				o->lists[o->recs[p->rec].b + k] = v;
		}
	}
}

struct err *dec_stack(struct dec *d)
{
	struct stack s = {.d = d, .f = d->f, .a = d->arena, .entry_sp = UINT32_MAX, .escaped = INT32_MAX,
			  .call_sp = OFF_NONE, .sp_block = UINT32_MAX};
	struct err *e = NULL;
	if (!dec_graph_make(d->f, d->arena, &s.c.g))
		return &err_nomem;
	s.off = ARENA_RAW_ARRAY(s.a, int32_t, s.f->rec_cnt + (size_t)1);
	s.slots = ARENA_ARRAY(s.a, struct slot, SLOT_MAX);
	s.slot_of = ARENA_ARRAY(s.a, uint16_t, s.f->rec_cnt + (size_t)1);
	s.from = ARENA_RAW_ARRAY(s.a, int32_t, s.f->rec_cnt + (size_t)1);
	if (!s.off || !s.from || !s.slots || !s.slot_of)
		return &err_nomem;
	d->is_frame_known = look(&s) || s.entry_sp == UINT32_MAX;
	if (d->is_frame_known)
		find_slots(&s);
	s.words = s.slot_cnt / 64 + 1;
	if (s.slot_cnt && (size_t)s.f->block_cnt * s.slot_cnt > 2u << 20) {
		s.slot_cnt = 0;
		d->is_frame_known = false;
	}
	s.defs = ARENA_RAW_ARRAY(s.a, ir_ref, (size_t)s.f->block_cnt * s.slot_cnt + 1);
	if (!s.defs || (s.slot_cnt && (!check_stored(&s) || !make_live(&s))))
		return &err_nomem;
	if (!s.slot_cnt)
		memset(s.slot_of, 0, (s.f->rec_cnt + (size_t)1) * sizeof(*s.slot_of));
	if (s.slot_cnt && s.escaped != INT32_MAX)
		d->assumes |= DEC_A_FRAME;
	if (!s.slot_cnt && !s.has_canary && !has_one_sp(&s))
		return NULL;
	e = dec_copy_init(&s.c, d);
	if (e)
		return e;
	s.c.ctx = &s;
	s.c.begin = begin;
	s.c.rec = rec_of;
	e = dec_copy_run(&s.c);
	if (!e)
		fill_phis(&s);
	return e;
}
