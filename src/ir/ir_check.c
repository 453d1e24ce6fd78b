/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

/*
 * The verifier. Everything that indexes an array is checked before anything is followed, so any bytes in the arrays
 * of a function are safe to check.
 */
struct checker {
	struct ir_func *f;
	uint32_t *block_of; /* of a record, UINT32_MAX none */
	uint32_t *pos_of;   /* place in the order */
	uint32_t *idom;     /* made when first needed */
	uint32_t *rpo;      /* number of a block in reverse post-order, UINT32_MAX unreachable */
	struct ir_edges preds;
	uint32_t rec;       /* being checked */
	struct err *e;
};

struct ir_shape ir_shape(enum ir_op op)
{
	const char *sig = ir_op_info(op)->signature;
	struct ir_shape s = {.result = sig[0]};
	for (sig += 2; *sig; sig++) {
		if (*sig == 'L')
			s.has_list = true;
		else
			s.operand[s.cnt++] = *sig;
	}
	return s;
}

enum ir_aux ir_aux(enum ir_op op)
{
	switch (op) {
	case IR_GET:
	case IR_PUT:
		return IR_AUX_LOC;
	case IR_VMAP:
	case IR_VSHIFT:
	case IR_VCVT:
		return IR_AUX_LANE;
	case IR_SWITCH:
		return IR_AUX_BLOCK;
	case IR_EXTRACT:
	case IR_INSERT:
	case IR_VMASK:
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
	case IR_MEMOP:
	case IR_INTRIN:
	case IR_RES:
	case IR_RET:
		return IR_AUX_NUMBER;
	default:
		return IR_AUX_NONE;
	}
}

unsigned ir_lane_arity(enum ir_op op)
{
	switch (op) {
	case IR_FUN:
		return 1;
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_MULH:
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_CMP:
	case IR_FBIN:
	case IR_FCMP:
	case IR_VLANE:
		return 2;
	case IR_FMA:
		return 3;
	default:
		return 0;
	}
}

static bool fail(struct checker *c, const char *why)
{
	if (!c->e) {
		const struct ir_rec *r = &c->f->recs[c->rec];
		c->e = err_new(ERR_INTERNAL, "IR of the function at 0x%llx: record %u (%s): %s",
			       (unsigned long long)c->f->va, c->rec, ir_op_info((enum ir_op)r->op)->text, why);
	}
	return false;
}

static bool need(struct checker *c, bool ok, const char *why)
{
	return ok || fail(c, why);
}

/* --- references -------------------------------------------------------------------------------------------- */
static bool is_record(const struct checker *c, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE && ir_index(r) < c->f->rec_cnt && c->block_of[ir_index(r)] != UINT32_MAX;
}

/* A value or a constant. */
static bool is_data(const struct checker *c, ir_ref r)
{
	return ir_tag(r) == IR_TAG_CONST ? ir_index(r) < c->f->const_cnt : is_record(c, r) && ir_ref_width(c->f, r) != IR_W0;
}

static bool is_block(const struct checker *c, ir_ref r)
{
	return ir_tag(r) == IR_TAG_BLOCK && ir_index(r) < c->f->block_cnt;
}

static bool check_letter(struct checker *c, char letter, ir_ref r, enum ir_width *x)
{
	const struct ir_rec *rec = &c->f->recs[c->rec];
	if (letter == 'B')
		return need(c, is_block(c, r), "a block is missing");
	if (letter == 'v')
		return need(c, is_record(c, r) || is_data(c, r), "an operand is missing");
	if (!need(c, is_data(c, r), "an operand is no value"))
		return false;
	enum ir_width w = ir_ref_width(c->f, r);
	switch (letter) {
	case 'w':
		return need(c, w == rec->width, "an operand has another width than the result");
	case '1':
		return need(c, w == IR_W1, "an operand is not one bit");
	case 'p':
		return need(c, w == c->f->machine->addr_width, "an address has the wrong width");
	case 'n':
		return need(c, ir_bits(w) <= 64, "a count is wider than 64 bits");
	default:
		if (*x == IR_W0)
			*x = w;
		return need(c, *x == w, "operands differ in width");
	}
}

static bool check_list(struct checker *c)
{
	const struct ir_rec *rec = &c->f->recs[c->rec];
	if (!need(c, rec->b <= c->f->list_cnt && rec->c <= c->f->list_cnt - rec->b, "its list is out of range"))
		return false;
	bool is_switch = rec->op == IR_SWITCH;
	for (uint32_t i = 0; i < rec->c; i++) {
		ir_ref r = c->f->lists[rec->b + i];
		bool ok = is_switch && i % 2 ? is_block(c, r) : is_data(c, r);
		if (!need(c, ok, "its list holds something else"))
			return false;
	}
	return true;
}

/* Operands as the signature says; gives the width of 'x'. */
static bool check_shape(struct checker *c, enum ir_width *x)
{
	const struct ir_rec *rec = &c->f->recs[c->rec];
	struct ir_shape s = ir_shape((enum ir_op)rec->op);
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	unsigned optional_from = 3;
	if (rec->op == IR_VMAP) {
		optional_from = ir_lane_arity(ir_lane_op(rec->aux));
		if (!need(c, optional_from > 0, "no operation for lanes"))
			return false;
	}
	for (unsigned i = 0; i < 3 && !(s.has_list && i > 0); i++) {
		bool is_absent = i >= s.cnt || i >= optional_from;
		if (is_absent && !need(c, refs[i] == IR_REF_NONE, "too many operands"))
			return false;
		if (!is_absent && rec->op == IR_CALL && i == 1 && refs[i] == IR_REF_NONE)
			continue;
		if (!is_absent && !check_letter(c, s.operand[i], refs[i], x))
			return false;
	}
	bool has_width = rec->width != IR_W0 && rec->width < IR_W_COUNT;
	bool wants = s.result != '-' || memchr(s.operand, 'w', 3);
	if (!need(c, has_width == wants && (wants || rec->width == IR_W0), "a width where none belongs, or none"))
		return false;
	if (s.result == '1' && !need(c, rec->width == IR_W1, "the result is one bit"))
		return false;
	if (s.result == 'p' && !need(c, rec->width == c->f->machine->addr_width, "the result is an address"))
		return false;
	return !s.has_list || check_list(c);
}

/* --- widths of single operations --------------------------------------------------------------------------- */
/* An operation with kinds, for a record or for each lane of one. */
static bool widths_ok(enum ir_op op, enum ir_kind kind, enum ir_width w, enum ir_width x)
{
	unsigned wb = ir_bits(w);
	unsigned xb = ir_bits(x);
	switch (op) {
	case IR_MUL:
		return wb <= 128;
	case IR_MULH:
	case IR_DIV:
	case IR_DIVW:
	case IR_ROT:
	case IR_FSHR:
	case IR_BITS2:
	case IR_RMW:
		return wb >= 8 && wb <= 64;
	case IR_BITS:
		return wb >= 8 && wb <= 64 && (kind != IR_BITS_BSWAP || wb >= 16);
	case IR_FLAG:
	case IR_MULOVF:
		return xb <= 64;
	case IR_ZEXT:
	case IR_SEXT:
		return xb < wb;
	case IR_CONCAT:
		return wb == 2 * xb;
	case IR_FBIN:
	case IR_FUN:
		return ir_is_float(w);
	case IR_FMA:
		return ir_is_float(w) && w != IR_W80;
	case IR_FCMP:
		return ir_is_float(x);
	case IR_FCVT:
		return ir_is_float(w) && ir_is_float(x) && w != x;
	case IR_FTOI:
		return wb >= 16 && wb <= 64 && ir_is_float(x);
	case IR_ITOF:
		return ir_is_float(w) && xb >= 16 && xb <= 64;
	case IR_LOAD:
	case IR_STORE:
		return wb >= 8;
	case IR_CAS:
		return wb >= 8 && wb <= 128 && w != IR_W80;
	default:
		return true;
	}
}

static bool is_vec(enum ir_width w)
{
	return w == IR_W64 || w == IR_W128 || w == IR_W256 || w == IR_W512;
}

static bool lanes_ok(const struct ir_rec *rec)
{
	enum ir_op op = ir_lane_op(rec->aux);
	enum ir_kind kind = ir_lane_kind(rec->aux);
	enum ir_width lane = ir_lane_width(rec->aux);
	unsigned bits = ir_bits(lane);
	if (!is_vec((enum ir_width)rec->width) || bits < 8 || bits > 64 || bits > ir_bits((enum ir_width)rec->width) ||
	    rec->aux >> 24 || !ir_kind_fits(op, kind))
		return false;
	if (rec->op == IR_VSHIFT)
		return op == IR_SHL || op == IR_LSHR || op == IR_ASHR;
	return ir_lane_arity(op) > 0 && widths_ok(op, kind, lane, lane);
}

static bool vcvt_ok(const struct checker *c, const struct ir_rec *rec, enum ir_width x)
{
	enum ir_op op = ir_lane_op(rec->aux);
	enum ir_width from = ir_lane_width(rec->aux);
	uint64_t to_bits;
	if (!ir_const_get(c->f, rec->b, &to_bits) || to_bits > 64 || rec->aux >> 24)
		return false;
	enum ir_width to = ir_width_of((unsigned)to_bits);
	bool known = op == IR_FCVT || op == IR_FTOI || op == IR_ITOF || op == IR_SEXT || op == IR_ZEXT;
	return known && is_vec((enum ir_width)rec->width) && is_vec(x) && ir_bits(from) >= 8 && ir_bits(from) <= 64 &&
	       ir_bits(to) >= 8 && ir_kind_fits(op, ir_lane_kind(rec->aux)) && widths_ok(op, ir_lane_kind(rec->aux), to, from);
}

static bool vec_ok(const struct checker *c, const struct ir_rec *rec, enum ir_width x)
{
	switch (rec->op) {
	case IR_VMAP:
	case IR_VSHIFT:
		return lanes_ok(rec);
	case IR_VCVT:
		return vcvt_ok(c, rec, x);
	case IR_VPERM:
	case IR_VSAD:
		return is_vec((enum ir_width)rec->width);
	case IR_VMASK:
		return is_vec(x) && (rec->aux == 8 || rec->aux == 16 || rec->aux == 32 || rec->aux == 64) &&
		       ir_bits(x) / rec->aux <= ir_bits((enum ir_width)rec->width);
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
		return is_vec((enum ir_width)rec->width) && (rec->aux == 16 || (rec->aux == 32 && rec->op != IR_VMADD));
	case IR_VLANE:
		return false;
	default:
		return true;
	}
}

static bool check_memop(struct checker *c)
{
	const struct ir_func *f = c->f;
	const struct ir_rec *rec = &f->recs[c->rec];
	enum ir_width elem = ir_width_of(rec->aux);
	enum ir_width p = (enum ir_width)f->machine->addr_width;
	bool has_value = rec->kind == IR_MEMOP_FILL || rec->kind == IR_MEMOP_SCAN;
	if (!need(c, ir_bits(elem) >= 8 && ir_bits(elem) <= 64 && rec->c == 5, "not an element's width, or not five operands"))
		return false;
	const enum ir_width want[5] = {p, has_value ? elem : p, p, IR_W1, IR_W1};
	for (unsigned i = 0; i < 5; i++) {
		if (!need(c, ir_ref_width(f, f->lists[rec->b + i]) == want[i], "an operand of the list has the wrong width"))
			return false;
	}
	return true;
}

static bool check_intrin(struct checker *c)
{
	const struct ir_func *f = c->f;
	const struct ir_rec *rec = &f->recs[c->rec];
	if (!need(c, rec->aux < f->intrin_cnt, "no such intrinsic"))
		return false;
	const struct ir_intrin *in = &f->intrins[rec->aux];
	if (!need(c, in->in_cnt <= IR_INTRIN_IO_MAX && in->out_cnt <= IR_INTRIN_IO_MAX && in->mnemonic &&
		  in->len <= IR_INTRIN_BYTES_MAX && in->alt_len <= IR_INTRIN_BYTES_MAX &&
		  (in->alt_len == 0 || in->alt_reg < f->machine->loc_cnt), "a broken intrinsic"))
		return false;
	for (unsigned i = 0; i < in->out_cnt; i++) {
		if (!need(c, in->out[i] < f->machine->loc_cnt, "it writes no location"))
			return false;
	}
	if (!need(c, rec->c == in->in_cnt + (in->mem_len ? 1u : 0u), "a wrong number of inputs"))
		return false;
	for (unsigned i = 0; i < in->in_cnt; i++) {
		if (!need(c, in->in[i] < f->machine->loc_cnt, "it reads no location") ||
		    !need(c, ir_ref_width(f, f->lists[rec->b + i]) == f->machine->locs[in->in[i]].width,
			  "an input has another width than its location"))
			return false;
	}
	return !in->mem_len ||
	       need(c, ir_ref_width(f, f->lists[rec->b + in->in_cnt]) == f->machine->addr_width, "its address is none");
}

static bool check_res(struct checker *c)
{
	const struct ir_func *f = c->f;
	const struct ir_rec *rec = &f->recs[c->rec];
	if (!need(c, is_record(c, rec->a), "no record to take a result of"))
		return false;
	const struct ir_rec *of = &f->recs[ir_index(rec->a)];
	enum ir_width w = IR_W0;
	if (of->op == IR_INTRIN && of->aux < f->intrin_cnt && rec->aux < f->intrins[of->aux].out_cnt &&
	    rec->aux < IR_INTRIN_IO_MAX && f->intrins[of->aux].out[rec->aux] < f->machine->loc_cnt)
		w = (enum ir_width)f->machine->locs[f->intrins[of->aux].out[rec->aux]].width;
	if (of->op == IR_MEMOP && rec->aux < 5) {
		bool is_value = rec->aux > 2 || (rec->aux == 1 && (of->kind == IR_MEMOP_FILL || of->kind == IR_MEMOP_SCAN));
		w = is_value ? ir_width_of(of->aux) : (enum ir_width)f->machine->addr_width;
	}
	return need(c, w != IR_W0 && w == rec->width, "no such result, or of another width");
}

static bool check_switch(struct checker *c, enum ir_width x)
{
	const struct ir_func *f = c->f;
	const struct ir_rec *rec = &f->recs[c->rec];
	if (!need(c, rec->aux < f->block_cnt && rec->c % 2 == 0, "no default, or half a case"))
		return false;
	for (uint32_t i = 0; i < rec->c; i += 2) {
		ir_ref r = f->lists[rec->b + i];
		if (!need(c, ir_tag(r) == IR_TAG_CONST && ir_ref_width(f, r) == x, "a case is no constant of that width"))
			return false;
	}
	return true;
}

static bool check_special(struct checker *c, enum ir_width x)
{
	const struct ir_rec *rec = &c->f->recs[c->rec];
	unsigned wb = ir_bits((enum ir_width)rec->width);
	switch (rec->op) {
	case IR_GET:
	case IR_PUT:
		return need(c, rec->aux < c->f->machine->loc_cnt && (c->f->machine->locs[rec->aux].width == rec->width ||
			    (rec->flags & IR_F_TYPED && c->f->machine->locs[rec->aux].width > rec->width)), "no such location of that width");
	case IR_CALL:
	case IR_IJMP:
		return need(c, !(rec->flags & IR_F_TYPED) || rec->aux < c->f->sig_cnt, "no such signature");
	case IR_GADDR:
		return need(c, ir_tag(rec->a) == IR_TAG_CONST, "an address in the image is a constant");
	case IR_EXTRACT:
		return need(c, rec->aux <= ir_bits(x) && wb <= ir_bits(x) - rec->aux, "takes more bits than there are");
	case IR_INSERT:
		return need(c, rec->aux <= wb && ir_bits(x) <= wb - rec->aux, "puts in more bits than there are");
	case IR_MEMOP:
		return check_memop(c);
	case IR_INTRIN:
		return check_intrin(c);
	case IR_RES:
		return check_res(c);
	case IR_SWITCH:
		return check_switch(c, x);
	default:
		return need(c, vec_ok(c, rec, x), "not an operation on such lanes");
	}
}

static bool check_rec(struct checker *c)
{
	const struct ir_rec *rec = &c->f->recs[c->rec];
	if (!need(c, rec->op > IR_OP_NONE && rec->op < IR_OP_COUNT, "no such operation") ||
	    !need(c, ir_kind_fits((enum ir_op)rec->op, (enum ir_kind)rec->kind), "a kind of another operation") ||
	    !need(c, rec->origin < c->f->origin_cnt || (rec->origin == 0 && c->f->origin_cnt == 0), "comes from nowhere"))
		return false;
	enum ir_width x = IR_W0;
	if (!check_shape(c, &x))
		return false;
	if (!need(c, widths_ok((enum ir_op)rec->op, (enum ir_kind)rec->kind, (enum ir_width)rec->width, x),
		  "not for this width"))
		return false;
	return check_special(c, x);
}

/* --- blocks and order -------------------------------------------------------------------------------------- */
static bool check_places(struct checker *c)
{
	struct ir_func *f = c->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_block *bl = &f->blocks[b];
		if (bl->first >= bl->last || bl->last > f->order_cnt) {
			c->e = err_new(ERR_INTERNAL, "IR of the function at 0x%llx: block %u is empty or out of range",
				       (unsigned long long)f->va, b);
			return false;
		}
		for (uint32_t i = bl->first; i < bl->last; i++) {
			uint32_t r = f->order[i];
			c->rec = r < f->rec_cnt ? r : 0;
			if (!need(c, r < f->rec_cnt && c->block_of[r] == UINT32_MAX, "is in two places, or in none"))
				return false;
			c->block_of[r] = b;
			c->pos_of[r] = i;
		}
	}
	return true;
}

static bool check_ends(struct checker *c)
{
	struct ir_func *f = c->f;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		bool only_phi = true;
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
			c->rec = f->order[i];
			const struct ir_rec *rec = &f->recs[c->rec];
			bool ends = ir_op_info((enum ir_op)rec->op)->effects & IR_ENDS;
			only_phi = only_phi && rec->op == IR_PHI;
			if (!need(c, ends == (i + 1 == f->blocks[b].last), "a block's end is not where it belongs") ||
			    !need(c, rec->op != IR_PHI || only_phi, "a join behind the front of its block"))
				return false;
		}
	}
	return true;
}

/* --- definitions dominate uses ----------------------------------------------------------------------------- */
/* Reverse post-order with a stack of our own: depth is the input's. */
static uint32_t *make_rpo(struct checker *c, uint32_t *ret_cnt)
{
	struct ir_func *f = c->f;
	struct ir_edges succs;
	uint32_t n = f->block_cnt;
	uint32_t *order = ARENA_ARRAY(f->arena, uint32_t, n + 1);
	uint32_t *stack = ARENA_ARRAY(f->arena, uint32_t, n + 1);
	uint32_t *next = ARENA_ARRAY(f->arena, uint32_t, n + 1);
	c->rpo = ARENA_ARRAY(f->arena, uint32_t, n + 1);
	if (!order || !stack || !next || !c->rpo || !ir_succs(f, &succs))
		return NULL;
	memset(c->rpo, 0xff, n * sizeof(*c->rpo));
	uint32_t depth = 0, at = n;
	stack[depth++] = 0;
	next[0] = succs.first[0];
	c->rpo[0] = 0;
	while (depth) {
		uint32_t b = stack[depth - 1];
		if (next[b] == succs.first[b + 1]) {
			order[--at] = b;
			depth--;
			continue;
		}
		uint32_t to = succs.list[next[b]++];
		if (c->rpo[to] == UINT32_MAX) {
			c->rpo[to] = 0;
			next[to] = succs.first[to];
			stack[depth++] = to;
		}
	}
	for (uint32_t i = at; i < n; i++)
		c->rpo[order[i]] = i - at;
	*ret_cnt = n - at;
	return order + at;
}

static uint32_t meet(const struct checker *c, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (c->rpo[a] > c->rpo[b])
			a = c->idom[a];
		while (c->rpo[b] > c->rpo[a])
			b = c->idom[b];
	}
	return a;
}

/* Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm". */
static bool make_idom(struct checker *c)
{
	uint32_t cnt = 0;
	uint32_t *order = make_rpo(c, &cnt);
	c->idom = ARENA_ARRAY(c->f->arena, uint32_t, c->f->block_cnt + 1);
	if (!order || !c->idom) {
		c->e = &err_nomem;
		return false;
	}
	memset(c->idom, 0xff, c->f->block_cnt * sizeof(*c->idom));
	c->idom[0] = 0;
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = 1; i < cnt; i++) {
			uint32_t b = order[i], best = UINT32_MAX;
			for (uint32_t k = c->preds.first[b]; k < c->preds.first[b + 1]; k++) {
				uint32_t p = c->preds.list[k];
				if (c->rpo[p] != UINT32_MAX && c->idom[p] != UINT32_MAX)
					best = best == UINT32_MAX ? p : meet(c, best, p);
			}
			changed |= c->idom[b] != best;
			c->idom[b] = best;
		}
	}
	return true;
}

/* Whether `a` dominates `b`; blocks nobody reaches are dominated by all. */
static bool dominates(struct checker *c, uint32_t a, uint32_t b)
{
	if (!c->idom && !make_idom(c))
		return false;
	if (c->rpo[b] == UINT32_MAX)
		return true;
	if (c->rpo[a] == UINT32_MAX)
		return false;
	while (c->rpo[b] > c->rpo[a])
		b = c->idom[b];
	return a == b;
}

static void check_use(void *ctx, ir_ref r)
{
	struct checker *c = ctx;
	if (c->e || ir_tag(r) != IR_TAG_VALUE)
		return;
	uint32_t def = ir_index(r), from = c->block_of[def], to = c->block_of[c->rec];
	bool ok = from == to ? c->pos_of[def] < c->pos_of[c->rec] : dominates(c, from, to);
	need(c, ok, "uses a value that need not exist yet");
}

static bool check_phi(struct checker *c)
{
	const struct ir_rec *rec = &c->f->recs[c->rec];
	uint32_t b = c->block_of[c->rec];
	uint32_t first = c->preds.first[b];
	if (!need(c, rec->c == c->preds.first[b + 1] - first, "a join without a value for each way in"))
		return false;
	for (uint32_t i = 0; i < rec->c; i++) {
		ir_ref r = c->f->lists[rec->b + i];
		if (!need(c, ir_ref_width(c->f, r) == rec->width, "a value of another width"))
			return false;
		if (ir_tag(r) == IR_TAG_VALUE &&
		    !need(c, dominates(c, c->block_of[ir_index(r)], c->preds.list[first + i]), "a value that need not exist"))
			return false;
	}
	return true;
}

struct err *ir_check(struct ir_func *f)
{
	struct checker c = {.f = f};
	if (f->failed)
		return ir_status(f);
	if (f->block_cnt == 0)
		return err_new(ERR_INTERNAL, "IR of the function at 0x%llx: no block", (unsigned long long)f->va);
	c.block_of = ARENA_ARRAY(f->arena, uint32_t, f->rec_cnt + 1);
	c.pos_of = ARENA_ARRAY(f->arena, uint32_t, f->rec_cnt + 1);
	if (!c.block_of || !c.pos_of)
		return &err_nomem;
	memset(c.block_of, 0xff, f->rec_cnt * sizeof(*c.block_of));
	if (!check_places(&c))
		return c.e;
	for (uint32_t i = 0; i < f->order_cnt && !c.e; i++) {
		c.rec = f->order[i];
		if (c.rec < f->rec_cnt && c.block_of[c.rec] != UINT32_MAX)
			check_rec(&c);
	}
	if (c.e || !check_ends(&c))
		return c.e;
	if (!ir_preds(f, &c.preds))
		return &err_nomem;
	for (uint32_t i = 0; i < f->order_cnt && !c.e; i++) {
		c.rec = f->order[i];
		if (c.block_of[c.rec] == UINT32_MAX)
			continue;
		if (f->recs[c.rec].op == IR_PHI)
			check_phi(&c);
		else
			ir_operands(f, &f->recs[c.rec], check_use, &c);
	}
	return c.e;
}
