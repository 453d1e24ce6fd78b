/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requires: lifted form. Provides: what the function takes and gives. Breaks: nothing.
 *
 * Parameters are argument registers whose value at entry is needed: backwards from what has an effect, in bits, so that a register that
 * is only copied, or handed to a callee that does not take it, is none. A result is a register that is set on every way to
 * a return; where the value is needed by nothing else it is there to be returned, else callers have to want it.
 */
#include "decomp/dec_int.h"

#include <string.h>

enum { L_RAX, L_RDX, L_XMM0, L_ST0, L_XMM1, L_ST1, L_CNT }; /* where results are, in the order of DEC_L_RAX and so on */
enum { D_ENTRY = 1, D_JUNK = 2, D_CALL = 4, D_USED = 8, D_FRESH = 16 }; /* how what is there came there */

/* What is known of who is called. */
struct call {
	struct dec_proto proto;
	uint64_t va;
	bool is_known;
	unsigned ready; /* arguments in general registers that are there for it, in their order */
	bool says_vectors;
};

/* How argument registers came to be what they are, by their number: as the function was entered, left by a call, or set. */
struct came {
	uint8_t entry, junk, set;
};

struct proto {
	struct dec d;
	struct ir_func *f;
	const struct dec_proto_opts *opts;
	struct dec_graph g;
	uint16_t result[L_CNT], vec[8];
	uint8_t *need;          /* per record: low bits that are needed, of PUT of what it puts */
	uint8_t *top;           /* per record: low bits that may be other than 0 */
	uint8_t *in;            /* per block and location: bits needed at its beginning */
	uint8_t *now;
	bool *is_due;           /* blocks whose successors' needs are others */
	struct call **calls;    /* per record: of calls that were asked about */
	struct came *came;      /* per block, at its end */
	uint32_t *acts;         /* records that set a location, or leave the function, in their order; a fraction of all, and looked at most */
	uint32_t *act_first;    /* per block; one more */
	uint8_t at_end[L_CNT];  /* bits needed at returns, */
	uint8_t needs_at_end[L_CNT]; /* and when needs were found, if `has_needs` */
	bool has_needs;
	bool is_telling, is_through;
	uint8_t *defs;          /* per block and place of a result: D_*, at its end */
	uint8_t ret_defs[L_CNT], ret_bits[L_CNT], own_bits[L_CNT];
};

static uint8_t bits_of(enum ir_width w)
{
	unsigned n = ir_bits(w);
	return (uint8_t)(n > 255 ? 255 : n);
}

static void want(struct proto *p, ir_ref r, unsigned bits)
{
	unsigned most = bits_of(ir_ref_width(p->f, r));
	if (ir_tag(r) != IR_TAG_VALUE)
		return;
	uint8_t *n = &p->need[ir_index(r)];
	bits = bits > most ? most : bits;
	*n = *n > bits ? *n : (uint8_t)bits;
}

static void want_all(void *ctx, ir_ref r)
{
	want(ctx, r, 255);
}

static bool find_acts(struct proto *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	uint32_t cnt = 0;
	p->acts = ARENA_RAW_ARRAY(a, uint32_t, f->order_cnt + (size_t)1);
	p->act_first = ARENA_RAW_ARRAY(a, uint32_t, f->block_cnt + (size_t)1);
	if (!p->acts || !p->act_first)
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		p->act_first[b] = cnt;
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
			unsigned op = f->recs[f->order[i]].op;
			if (op == IR_PUT || op == IR_CALL || op == IR_IJMP || op == IR_RET)
				p->acts[cnt++] = f->order[i];
		}
	}
	p->act_first[f->block_cnt] = cnt;
	return true;
}

static unsigned top_of(const struct proto *p, ir_ref r)
{
	uint64_t v;
	if (ir_const_get(p->f, r, &v))
		return v ? (unsigned)(64 - __builtin_clzll(v)) : 0;
	return ir_tag(r) == IR_TAG_VALUE ? p->top[ir_index(r)] : bits_of(ir_ref_width(p->f, r));
}

static unsigned make_top(const struct proto *p, const struct ir_rec *rec)
{
	unsigned all = bits_of((enum ir_width)rec->width), top;
	switch (rec->op) {
	case IR_ZEXT:
	case IR_EXTRACT:
		top = rec->op == IR_EXTRACT && rec->aux ? all : top_of(p, rec->a);
		break;
	case IR_INSERT:
		top = MAX(top_of(p, rec->a), rec->aux + bits_of(ir_ref_width(p->f, rec->b)));
		break;
	case IR_AND:
		top = MIN(top_of(p, rec->a), top_of(p, rec->b));
		break;
	case IR_OR:
	case IR_XOR:
		top = MAX(top_of(p, rec->a), top_of(p, rec->b));
		break;
	default:
		return all;
	}
	return MIN(top, all);
}

/* By what stands before in the same block. */
static void find_tops(struct proto *p)
{
	const struct ir_machine *m = p->f->machine;
	for (uint32_t b = 0; b < p->f->block_cnt; b++) {
		memset(p->now, 255, m->loc_cnt);
		for (uint32_t i = p->f->blocks[b].first; i < p->f->blocks[b].last; i++) {
			const struct ir_rec *rec = &p->f->recs[p->f->order[i]];
			if (rec->op == IR_CALL || rec->op == IR_INTRIN)
				memset(p->now, 255, m->loc_cnt);
			if (rec->op == IR_PUT)
				p->now[rec->aux] = (uint8_t)top_of(p, rec->a);
			p->top[p->f->order[i]] = rec->op == IR_GET ? MIN(p->now[rec->aux], bits_of((enum ir_width)rec->width))
								   : (uint8_t)make_top(p, rec);
		}
	}
}

static void want_operands(struct proto *p, const struct ir_rec *rec, unsigned bits)
{
	unsigned inner = bits_of(ir_ref_width(p->f, rec->b));
	switch (rec->op) {
	case IR_AND:
		/* Where the other one is 0, anything does. */
		want(p, rec->a, MIN(bits, top_of(p, rec->b)));
		want(p, rec->b, MIN(bits, top_of(p, rec->a)));
		return;
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_OR:
	case IR_XOR:
		/* What is taken from itself is nothing. */
		if ((rec->op == IR_XOR || rec->op == IR_SUB) && rec->a == rec->b)
			return;
		want(p, rec->a, bits);
		want(p, rec->b, bits);
		return;
	case IR_ZEXT:
	case IR_SEXT:
		want(p, rec->a, bits);
		return;
	case IR_EXTRACT:
		want(p, rec->a, rec->aux + bits);
		return;
	case IR_INSERT:
		if (rec->aux || bits > inner)
			want(p, rec->a, bits);
		if (bits > rec->aux)
			want(p, rec->b, bits - rec->aux);
		return;
	case IR_CONCAT:
		want(p, rec->b, bits);
		if (bits > inner)
			want(p, rec->a, bits - inner);
		return;
	default:
		ir_operands(p->f, rec, want_all, p);
	}
}

/* --- calls -------------------------------------------------------------------------------------------------------------------- */
static bool find_callee(const struct proto *p, const struct ir_rec *rec, uint64_t *ret_va, struct dec_proto *ret)
{
	*ret = (struct dec_proto){0};
	bool is_number = rec->flags & IR_F_COMPUTED && ir_tag(rec->a) == IR_TAG_CONST;
	static const uint64_t nothing[DEC_LOC_WORDS];
	if (!is_number && dec_target(p->f, rec->a, ret_va)) {
		if (p->opts->known && p->opts->known(p->opts->ctx, *ret_va, ret)) {
			if (!memcmp(ret->changes, nothing, sizeof(nothing)))
				memcpy(ret->changes, p->d.conv.changes.w, sizeof(ret->changes));
			return true;
		}
	} else {
		*ret_va = UINT64_MAX;
	}
	*ret = (struct dec_proto){.result = DEC_R_INT, .result_bits = 64};
	memcpy(ret->changes, p->d.conv.changes.w, sizeof(ret->changes));
	return false;
}

/* Whether the number of vector arguments is said before a call, which is done right there: no call leaves it as it was. */
static bool says_vectors(const struct proto *p, uint32_t block, uint32_t at)
{
	for (uint32_t i = at; i > p->act_first[block]; i--) {
		const struct ir_rec *rec = &p->f->recs[p->acts[i - 1]];
		if (rec->op == IR_CALL || rec->op == IR_PUT)
			if (rec->op == IR_CALL || rec->aux == p->result[L_RAX])
				return rec->op == IR_PUT;
	}
	return false;
}

static void come_rec(const struct proto *p, const struct ir_rec *rec, struct came *now);

static struct came came_to(const struct proto *p, uint32_t block)
{
	struct came now = {.entry = block == 0 ? 0x3f : 0};
	for (uint32_t i = p->g.preds.first[block]; i < p->g.preds.first[block + 1]; i++) {
		const struct came *c = &p->came[p->g.preds.list[i]];
		now = (struct came){now.entry | c->entry, now.junk | c->junk, now.set | c->set};
	}
	return now;
}

/* Arguments come one behind the other, all of them set: what was there at the entry may be a parameter handed on, and may be nothing. */
static unsigned made_ready(const struct proto *p, uint32_t block, uint32_t at)
{
	struct came now = came_to(p, block);
	unsigned n = 0;
	for (uint32_t i = p->act_first[block]; i < at; i++)
		come_rec(p, &p->f->recs[p->acts[i]], &now);
	while (n < 6 && now.set >> n & 1 && !(now.entry >> n & 1))
		n++;
	return n;
}

/* False: nothing is known. Asked once of each call, as every look at a block wants to know. */
static bool callee(const struct proto *p, const struct ir_rec *rec, uint64_t *ret_va, struct dec_proto *ret)
{
	struct call **at = &p->calls[rec - p->f->recs];
	if (!*at && (*at = ARENA_RAW_ARRAY(p->d.arena, struct call, 1)))
		(*at)->is_known = find_callee(p, rec, &(*at)->va, &(*at)->proto);
	if (!*at)
		return find_callee(p, rec, ret_va, ret);
	*ret_va = (*at)->va;
	*ret = (*at)->proto;
	return (*at)->is_known;
}

static bool comes_back(const struct proto *p, const struct ir_rec *rec)
{
	struct dec_proto c;
	uint64_t va;
	return !callee(p, rec, &va, &c) || !c.is_noreturn;
}

static bool in_words(const uint64_t *w, unsigned loc)
{
	return w[loc / 64] >> loc % 64 & 1;
}

static void come_rec(const struct proto *p, const struct ir_rec *rec, struct came *now)
{
	struct dec_proto c;
	uint64_t va;
	bool is_call = rec->op == IR_CALL || rec->op == IR_IJMP;
	if (is_call)
		callee(p, rec, &va, &c);
	for (unsigned k = 0; k < 6 && (is_call || rec->op == IR_PUT); k++) {
		uint8_t bit = (uint8_t)(1u << k);
		if (is_call ? !in_words(c.changes, p->d.conv.int_arg[k]) : rec->aux != p->d.conv.int_arg[k])
			continue;
		now->entry &= (uint8_t)~bit;
		now->junk = is_call ? now->junk | bit : now->junk & (uint8_t)~bit;
		now->set = is_call ? now->set & (uint8_t)~bit : now->set | bit;
	}
}

/* What is said of each call by what was done before it. */
static void find_ready(struct proto *p)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = 0; i < p->g.rpo_cnt; i++) {
			uint32_t b = p->g.rpo[i];
			struct came now = came_to(p, b);
			for (uint32_t k = p->act_first[b]; k < p->act_first[b + 1]; k++)
				come_rec(p, &p->f->recs[p->acts[k]], &now);
			changed |= p->g.has_loop && memcmp(&now, &p->came[b], sizeof(now)) != 0;
			p->came[b] = now;
		}
	}
	for (uint32_t i = 0; i < p->g.rpo_cnt; i++) {
		uint32_t b = p->g.rpo[i];
		for (uint32_t k = p->act_first[b]; k < p->act_first[b + 1]; k++) {
			struct call *c = p->calls[p->acts[k]];
			if (!c || (c->is_known && !c->proto.is_variadic))
				continue;
			c->ready = made_ready(p, b, k);
			c->says_vectors = says_vectors(p, b, k);
		}
	}
}

static void tell(struct proto *p, uint64_t va)
{
	struct dec_wants w = {.rax_bits = p->now[p->result[L_RAX]]};
	for (unsigned k = 0; k < L_CNT; k++)
		w.places |= (uint8_t)((p->now[p->result[k]] != 0) << k);
	if (p->is_telling && p->opts->wants && va != UINT64_MAX && w.places)
		p->opts->wants(p->opts->ctx, va, &w, p->is_through);
}

static void need_call(struct proto *p, const struct ir_rec *rec)
{
	struct dec_proto c;
	uint64_t va;
	bool is_known = callee(p, rec, &va, &c);
	tell(p, va);
	for (unsigned l = 0; l < p->f->machine->loc_cnt; l++)
		if (in_words(c.changes, l))
			p->now[l] = 0;
	/* Of one whose parameters nobody knows. */
	const struct call *made = p->calls[rec - p->f->recs];
	unsigned ready = made && (!is_known || c.is_variadic) ? made->ready : 0;
	for (unsigned k = 0; k < 6; k++) {
		uint8_t bits = k < c.int_cnt ? c.ints[k] : k < ready ? 64 : 0;
		uint8_t *n = &p->now[p->d.conv.int_arg[k]];
		*n = *n > bits ? *n : bits;
	}
	for (unsigned k = 0; k < c.vec_cnt; k++)
		p->now[p->vec[k]] = p->now[p->vec[k]] > c.vecs[k] ? p->now[p->vec[k]] : c.vecs[k];
	if ((!is_known || c.is_variadic) && made && made->says_vectors)
		p->now[p->result[L_RAX]] = 8;
	want(p, rec->a, 255);
}

/* --- what is needed --------------------------------------------------------------------------------------------------------------- */
static void need_end(struct proto *p)
{
	memset(p->now, 0, p->f->machine->loc_cnt);
	for (unsigned k = 0; k < L_CNT; k++)
		p->now[p->result[k]] = p->at_end[k];
}

static void need_rec(struct proto *p, uint32_t at)
{
	uint32_t id = p->f->order[at];
	const struct ir_rec *rec = &p->f->recs[id];
	switch (rec->op) {
	case IR_RET:
		need_end(p);
		return;
	case IR_IJMP:
		if (comes_back(p, rec))
			need_end(p);
		else
			memset(p->now, 0, p->f->machine->loc_cnt);
		need_call(p, rec);
		return;
	case IR_CALL:
		need_call(p, rec);
		return;
	case IR_PUT:
		p->need[id] = p->need[id] > p->now[rec->aux] ? p->need[id] : p->now[rec->aux];
		if (p->now[rec->aux])
			want(p, rec->a, p->now[rec->aux]);
		p->now[rec->aux] = 0;
		return;
	case IR_GET:
		if (p->now[rec->aux] < p->need[id])
			p->now[rec->aux] = p->need[id];
		return;
	default:
		break;
	}
	const struct ir_op_info *info = ir_op_info((enum ir_op)rec->op);
	bool has_effect = info->signature[0] == '-' || info->effects & ~(unsigned)(IR_READS_MEM | IR_TRAPS);
	if (has_effect)
		ir_operands(p->f, rec, want_all, p);
	else if (p->need[id])
		want_operands(p, rec, p->need[id]);
}

static void join(uint8_t *restrict now, const uint8_t *restrict in, uint32_t n)
{
	for (uint32_t l = 0; l < n; l++)
		now[l] = now[l] > in[l] ? now[l] : in[l];
}

static void need_block(struct proto *p, uint32_t b)
{
	uint32_t n = p->f->machine->loc_cnt;
	memset(p->now, 0, n);
	for (uint32_t i = p->g.succs.first[b]; i < p->g.succs.first[b + 1]; i++)
		join(p->now, &p->in[(size_t)p->g.succs.list[i] * n], n);
	for (uint32_t i = p->f->blocks[b].last; i > p->f->blocks[b].first; i--)
		need_rec(p, i - 1);
}

static void find_needs(struct proto *p)
{
	uint32_t n = p->f->machine->loc_cnt;
	/* The same as the last time. */
	if (p->has_needs && !memcmp(p->needs_at_end, p->at_end, sizeof(p->at_end)))
		return;
	p->has_needs = true;
	memcpy(p->needs_at_end, p->at_end, sizeof(p->at_end));
	memset(p->need, 0, p->f->rec_cnt);
	memset(p->in, 0, (size_t)n * p->f->block_cnt);
	memset(p->is_due, true, p->f->block_cnt);
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = p->g.rpo_cnt; i > 0; i--) {
			uint32_t b = p->g.rpo[i - 1];
			uint8_t *in = &p->in[(size_t)b * n];
			if (!p->is_due[b])
				continue;
			p->is_due[b] = false;
			need_block(p, b);
			if (!memcmp(in, p->now, n))
				continue;
			memcpy(in, p->now, n);
			for (uint32_t k = p->g.preds.first[b]; k < p->g.preds.first[b + 1]; k++)
				p->is_due[p->g.preds.list[k]] = true;
			changed = true;
		}
	}
}

static void tell_all(struct proto *p, bool is_through)
{
	p->is_telling = true;
	p->is_through = is_through;
	for (uint32_t i = 0; i < p->g.rpo_cnt; i++)
		need_block(p, p->g.rpo[i]);
	p->is_telling = false;
}

/* --- results ------------------------------------------------------------------------------------------------------------------ */
static uint8_t width_of(const struct proto *p, ir_ref r)
{
	const struct ir_rec *rec = dec_rec(p->f, r);
	uint64_t v;
	if (ir_const_get(p->f, r, &v))
		return v >> 32 && ~v >> 31 ? 64 : 32;
	if (rec && rec->op == IR_INSERT && !rec->aux)
		return bits_of(ir_ref_width(p->f, rec->b));
	return bits_of(ir_ref_width(p->f, rec && rec->op == IR_ZEXT ? rec->a : r));
}

static void wider(uint8_t *at, uint8_t bits)
{
	*at = *at > bits ? *at : bits;
}

static void def_call(struct proto *p, const struct ir_rec *rec, uint8_t *now)
{
	struct dec_proto c;
	uint64_t va;
	callee(p, rec, &va, &c);
	unsigned change_cnt = 0;
	for (unsigned k = 0; k < DEC_LOC_WORDS; k++)
		change_cnt += (unsigned)__builtin_popcountll(c.changes[k]);
	bool is_idle = change_cnt == 1; /* find_changes() */
	for (unsigned k = 0; k < L_CNT; k++) {
		bool is_result = (k == L_RAX && (c.result == DEC_R_INT || c.result == DEC_R_PAIR)) || (k == L_RDX && c.result == DEC_R_PAIR) ||
				 (k == L_XMM0 && c.result == DEC_R_VEC) || (k == L_ST0 && c.result == DEC_R_X87) ||
				 (k != L_RDX && c.more >> k & 1);
		/* One that changes nothing is called for what it does: what happens to lie there is nobody's result. */
		if (in_words(c.changes, p->result[k]) || (is_idle && !is_result))
			now[k] = is_result ? D_CALL : D_JUNK;
		if (is_result)
			wider(&p->ret_bits[k], c.result_bits);
	}
}

/* Whether what is put into a register was popped: that makes room, and what was there is no result. */
static bool is_popped(const struct proto *p, uint32_t block, const struct ir_rec *put)
{
	const struct ir_rec *from = dec_rec(p->f, put->a);
	for (uint32_t i = p->f->blocks[block].first; from && from->op == IR_LOAD && i < p->f->blocks[block].last; i++) {
		const struct ir_rec *rec = &p->f->recs[p->f->order[i]];
		if (rec->op == IR_PUT && rec->origin == put->origin && rec->aux == p->f->machine->sp_loc)
			return true;
	}
	return false;
}

/* Whether the instruction of a record sets rax, too: a division, or a product. */
static bool is_by_way(const struct proto *p, uint32_t block, const struct ir_rec *by)
{
	for (uint32_t i = p->f->blocks[block].first; i < p->f->blocks[block].last; i++) {
		const struct ir_rec *rec = &p->f->recs[p->f->order[i]];
		if (rec->op == IR_PUT && rec->origin == by->origin && rec->aux == p->result[L_RAX])
			return true;
	}
	return false;
}

static void def_block(struct proto *p, uint32_t b, uint8_t *now)
{
	memset(now, b == 0 ? D_ENTRY : 0, L_CNT);
	for (uint32_t i = p->g.preds.first[b]; i < p->g.preds.first[b + 1]; i++)
		for (unsigned k = 0; k < L_CNT; k++)
			now[k] |= p->defs[(size_t)p->g.preds.list[i] * L_CNT + k];
	for (uint32_t i = p->act_first[b]; i < p->act_first[b + 1]; i++) {
		const struct ir_rec *rec = &p->f->recs[p->acts[i]];
		if (rec->op == IR_CALL || rec->op == IR_IJMP)
			def_call(p, rec, now);
		for (unsigned k = 0; k < L_CNT && rec->op == IR_PUT; k++) {
			if (rec->aux != p->result[k])
				continue;
			bool is_used = p->need[p->acts[i]] || (ir_tag(rec->a) == IR_TAG_VALUE && p->need[ir_index(rec->a)]);
			/* One that is set for a call, as the number of vector arguments is, does not reach a return. */
			now[k] = is_popped(p, b, rec) ? D_JUNK : is_used || (k == L_RDX && is_by_way(p, b, rec)) ? D_USED : D_FRESH;
			wider(&p->own_bits[k], width_of(p, rec->a));
		}
		for (unsigned k = 0; k < L_CNT && (rec->op == IR_RET || (rec->op == IR_IJMP && comes_back(p, rec))); k++)
			p->ret_defs[k] |= now[k];
	}
}

static void find_defs(struct proto *p)
{
	memset(p->defs, 0, (size_t)p->f->block_cnt * L_CNT);
	memset(p->ret_defs, 0, sizeof(p->ret_defs));
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = 0; i < p->g.rpo_cnt; i++) {
			uint32_t b = p->g.rpo[i];
			uint8_t now[L_CNT];
			def_block(p, b, now);
			changed |= p->g.has_loop && memcmp(now, &p->defs[(size_t)b * L_CNT], L_CNT) != 0;
			memcpy(&p->defs[(size_t)b * L_CNT], now, L_CNT);
		}
	}
}

/* Of registers that nothing in the function needs, those that make one that is returned are none: only what is left when it is. */
static void settle(struct proto *p, const bool *may, bool *is_fresh)
{
	static const uint8_t order[] = {L_RAX, L_XMM0, L_ST0};
	for (unsigned i = 0; i < 3; i++) {
		unsigned k = order[i];
		if (!is_fresh[k])
			continue;
		p->at_end[k] = p->ret_bits[k];
		find_needs(p);
		find_defs(p);
		p->at_end[k] = 0;
		for (unsigned o = 0; o < L_CNT; o++)
			is_fresh[o] &= o == k || (may[o] && p->ret_defs[o] & D_FRESH);
	}
}

static void find_result(struct proto *p, struct dec_proto *ret)
{
	find_defs(p);
	bool may[L_CNT], is_fresh[L_CNT];
	for (unsigned k = 0; k < L_CNT; k++) {
		may[k] = p->ret_defs[k] && !(p->ret_defs[k] & (D_ENTRY | D_JUNK));
		is_fresh[k] = may[k] && p->ret_defs[k] & D_FRESH;
		wider(&p->ret_bits[k], p->own_bits[k]);
		ret->may |= (uint8_t)(may[k] << k);
	}
	settle(p, may, is_fresh);
	static const uint8_t kinds[] = {[L_RAX] = DEC_R_INT, [L_XMM0] = DEC_R_VEC, [L_ST0] = DEC_R_X87};
	static const uint8_t order[] = {L_XMM0, L_ST0, L_RAX};
	for (unsigned pass = 0; pass < 2 && !ret->result; pass++)
		for (unsigned i = 0; i < 3 && !ret->result; i++) {
			unsigned k = pass ? order[2 - i] : order[i];
			if (!(pass ? may[k] : is_fresh[k]))
				continue;
			ret->result = kinds[k];
			ret->result_bits = p->ret_bits[k];
			ret->is_sure = !pass;
		}
	if (ret->result == DEC_R_INT && ret->is_sure && is_fresh[L_RDX])
		ret->result = DEC_R_PAIR;
	bool is_mixed = ret->result == DEC_R_VEC && is_fresh[L_RAX];
	ret->more = (uint8_t)(is_mixed ? DEC_L_RAX : ret->result == DEC_R_PAIR ? DEC_L_RDX : ret->result == DEC_R_VEC && is_fresh[L_XMM1] ? DEC_L_XMM1
			      : ret->result == DEC_R_X87 && is_fresh[L_ST1] ? DEC_L_ST1 : 0);
	ret->is_sure |= !ret->result;
}

/* --- parameters ---------------------------------------------------------------------------------------------------------------- */
/* The register save area of 3.5.7: r9 lies 40 bytes above where rdi would. How many general registers are not in it. */
static unsigned named_ints(const struct proto *p)
{
	uint64_t at[6], off;
	bool has[6] = {false};
	for (uint32_t b = 0; b < p->f->block_cnt && b < 4; b++)
		for (uint32_t i = p->f->blocks[b].first; i < p->f->blocks[b].last; i++) {
			const struct ir_rec *rec = &p->f->recs[p->f->order[i]], *addr = dec_rec(p->f, rec->a), *v = dec_rec(p->f, rec->b);
			if (rec->op != IR_STORE || !addr || !v || v->op != IR_GET || (addr->op == IR_ADD && !ir_const_get(p->f, addr->b, &off)))
				continue;
			off = addr->op == IR_ADD ? off : 0;
			for (unsigned k = 0; k < 6; k++)
				if (v->aux == p->d.conv.int_arg[k] && !has[k]) {
					has[k] = true;
					at[k] = off;
				}
		}
	unsigned n = 6;
	while (n && has[n - 1] && at[n - 1] + 8 * (uint64_t)(6 - n) == at[5])
		n--;
	return n;
}

static void find_params(struct proto *p, struct dec_proto *ret)
{
	const uint8_t *in = p->in;
	unsigned vecs = 0;
	for (unsigned k = 0; k < 6; k++)
		if ((ret->ints[k] = in[p->d.conv.int_arg[k]]))
			ret->int_cnt = (uint8_t)(k + 1);
	for (unsigned k = 0; k < 8; k++) {
		ret->vecs[k] = in[p->vec[k]];
		vecs += ret->vecs[k] != 0;
		if (ret->vecs[k])
			ret->vec_cnt = (uint8_t)(k + 1);
	}
	ret->is_variadic = vecs == 8 && in[p->result[L_RAX]];
	if (ret->is_variadic) {
		ret->int_cnt = (uint8_t)named_ints(p);
		ret->vec_cnt = 0;
		return;
	}
	int32_t bytes = 0;
	(void)dec_stack_args(&p->d, &bytes, &ret->reads_return);
	ret->stack_cnt = (uint8_t)(bytes > 8 * 64 ? 64 : (bytes + 7) / 8);
}

/* What holds its entry value behind a block. */
static void flow_block(struct proto *p, uint32_t b, struct dec_set *now, struct dec_proto *ret)
{
	for (uint32_t i = p->act_first[b]; i < p->act_first[b + 1]; i++) {
		const struct ir_rec *rec = &p->f->recs[p->acts[i]];
		struct dec_proto c;
		uint64_t va;
		if (rec->op == IR_PUT)
			now->w[rec->aux / 64] &= ~((uint64_t)1 << rec->aux % 64);
		if (rec->op != IR_CALL && rec->op != IR_IJMP)
			continue;
		bool is_known = callee(p, rec, &va, &c) && !c.is_variadic;
		for (unsigned k = 0; k < DEC_LOC_WORDS; k++) {
			ret->flows[k] |= now->w[k] & (is_known ? c.flows[k] : UINT64_MAX);
			now->w[k] &= ~c.changes[k];
		}
	}
}

static bool find_flows(struct proto *p, struct dec_proto *ret)
{
	struct dec_set *out = ARENA_ARRAY(p->d.arena, struct dec_set, p->f->block_cnt + (size_t)1);
	for (bool changed = out != NULL; changed;) {
		changed = false;
		for (uint32_t i = 0; i < p->g.rpo_cnt; i++) {
			uint32_t b = p->g.rpo[i];
			struct dec_set now = b == 0 ? p->d.conv.args : (struct dec_set){{0}};
			for (uint32_t k = p->g.preds.first[b]; k < p->g.preds.first[b + 1]; k++)
				for (unsigned w = 0; w < DEC_LOC_WORDS; w++)
					now.w[w] |= out[p->g.preds.list[k]].w[w];
			flow_block(p, b, &now, ret);
			changed |= p->g.has_loop && memcmp(&now, &out[b], sizeof(now)) != 0;
			out[b] = now;
		}
	}
	return out != NULL;
}

static void find_changes(struct proto *p, struct dec_proto *ret)
{
	struct dec_set any = {{0}};
	for (uint32_t i = 0; i < p->act_first[p->f->block_cnt]; i++) {
		const struct ir_rec *rec = &p->f->recs[p->acts[i]];
		struct dec_proto c;
		uint64_t va;
		if (rec->op == IR_PUT)
			dec_set_add(&any, rec->aux);
		if (rec->op != IR_CALL && rec->op != IR_IJMP)
			continue;
		callee(p, rec, &va, &c);
		for (unsigned k = 0; k < DEC_LOC_WORDS; k++)
			any.w[k] |= c.changes[k];
	}
	bool has_any = false;
	for (unsigned k = 0; k < DEC_LOC_WORDS; k++) {
		ret->changes[k] = any.w[k] & p->d.conv.changes.w[k];
		has_any |= ret->changes[k] != 0;
	}
	/* Nothing at all would be what nobody knows: a flag then, which nobody asks a callee for. */
	for (unsigned l = 0; l < p->f->machine->loc_cnt && !has_any; l++) {
		has_any = p->f->machine->locs[l].cls == IR_LOC_FLAG && dec_set_has(&p->d.conv.changes, l);
		if (has_any)
			ret->changes[l / 64] |= (uint64_t)1 << l % 64;
	}
}

struct err *dec_proto_of(struct ir_func *lifted, const struct dec_proto_opts *opts, struct dec_proto *ret)
{
	static const struct dec_opts none;
	static const char names[L_CNT][5] = {"rax", "rdx", "xmm0", "f7", "xmm1", "f6"};
	struct arena *a = lifted->arena;
	struct proto p = {.d = {.opts = &none, .arena = a, .f = lifted, .step_limit = UINT32_MAX}, .f = lifted, .opts = opts};
	const struct ir_machine *m = lifted->machine;
	*ret = (struct dec_proto){0};
	dec_conv_of(m, &p.d.conv);
	if (!p.d.conv.int_arg_cnt)
		return err_new(ERR_UNSUPPORTED, "prototypes of %s code are not recovered", m->name);
	for (unsigned k = 0; k < L_CNT; k++)
		if ((p.result[k] = ir_loc_find(m, names[k], strlen(names[k]))) == IR_LOC_NONE)
			return err_new(ERR_INTERNAL, "%s has no %s", m->name, names[k]);
	for (unsigned k = 0; k < 8; k++)
		p.vec[k] = (uint16_t)(p.result[L_XMM0] + k);
	if (!dec_graph_flow(lifted, a, &p.g))
		return &err_nomem;
	p.need = ARENA_ARRAY(a, uint8_t, lifted->rec_cnt + (size_t)1);
	p.top = ARENA_ARRAY(a, uint8_t, lifted->rec_cnt + (size_t)1);
	p.in = ARENA_ARRAY(a, uint8_t, (size_t)m->loc_cnt * lifted->block_cnt + 1);
	p.now = ARENA_ARRAY(a, uint8_t, m->loc_cnt + (size_t)1);
	p.defs = ARENA_ARRAY(a, uint8_t, (size_t)L_CNT * lifted->block_cnt + 1);
	p.is_due = ARENA_ARRAY(a, bool, lifted->block_cnt + (size_t)1);
	p.calls = ARENA_ARRAY(a, struct call *, lifted->rec_cnt + (size_t)1);
	p.came = ARENA_ARRAY(a, struct came, lifted->block_cnt + (size_t)1);
	if (!p.need || !p.top || !p.in || !p.now || !p.defs || !p.is_due || !p.calls || !p.came)
		return &err_nomem;
	if (!find_acts(&p, a))
		return &err_nomem;
	find_tops(&p);
	find_ready(&p);
	find_needs(&p);
	find_result(&p, ret);
	find_changes(&p, ret);
	if (!find_flows(&p, ret))
		return &err_nomem;
	if (ret->result && ret->is_sure) {
		p.at_end[ret->result == DEC_R_VEC ? L_XMM0 : ret->result == DEC_R_X87 ? L_ST0 : L_RAX] = ret->result_bits;
		for (unsigned k = 0; k < L_CNT; k++)
			if (ret->more >> k & 1)
				p.at_end[k] = 128;
		find_needs(&p);
	}
	find_params(&p, ret);
	tell_all(&p, false);
	/* What a caller may want of it that is a callee's. */
	bool has_call = false;
	for (uint32_t i = 0; i < lifted->order_cnt && !has_call; i++)
		has_call = lifted->recs[lifted->order[i]].op == IR_CALL || lifted->recs[lifted->order[i]].op == IR_IJMP;
	if (has_call && opts->wants) {
		memset(p.at_end, 128, sizeof(p.at_end));
		find_needs(&p);
		tell_all(&p, true);
	}
	return NULL;
}
