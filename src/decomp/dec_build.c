/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include "ir/ir_interp.h"

#include <string.h>

/* Values are folded and numbered when they are made, so nothing has to be looked at again until one of its operands changes. */

#define RULE_DEPTH_MAX 12

bool dec_build_init(struct dec_build *b, struct ir_func *f, const struct dec_graph *g, uint32_t recs, uint32_t step_limit)
{
	*b = (struct dec_build){.f = f, .g = g, .step_limit = step_limit};
	b->cap = recs + 64;
	b->block_of = ARENA_RAW_ARRAY(f->arena, uint32_t, b->cap);
	b->zeros = ARENA_RAW_ARRAY(f->arena, uint64_t, b->cap);
	for (b->table_cap = 64; b->table_cap < b->cap * 2; b->table_cap *= 2)
		;
	b->table = ARENA_RAW_ARRAY(f->arena, uint32_t, b->table_cap);
	if (!b->block_of || !b->zeros || !b->table)
		return false;
	memset(b->table, 0xff, b->table_cap * sizeof(*b->table));
	ir_reserve(f, recs, 0);
	return !f->failed;
}

void dec_build_block(struct dec_build *b, uint32_t block)
{
	ir_block_begin(b->f, block);
}

static bool grow(struct dec_build *b)
{
	uint32_t cap = b->cap * 2;
	uint32_t *block_of = ARENA_RAW_ARRAY(b->f->arena, uint32_t, cap);
	uint64_t *zeros = ARENA_RAW_ARRAY(b->f->arena, uint64_t, cap);
	if (!block_of || !zeros)
		return false;
	memcpy(block_of, b->block_of, b->cap * sizeof(*block_of));
	memcpy(zeros, b->zeros, b->cap * sizeof(*zeros));
	b->block_of = block_of;
	b->zeros = zeros;
	b->cap = cap;
	return true;
}

/* --- known bits ------------------------------------------------------------------------------------------------------------ */
uint64_t dec_zeros(const struct dec_build *b, ir_ref r)
{
	uint64_t v;
	if (ir_const_get(b->f, r, &v))
		return ~v;
	return ir_tag(r) == IR_TAG_VALUE ? b->zeros[ir_index(r)] : 0;
}

/* Above the highest bit that may be set. */
static uint64_t above(uint64_t zeros)
{
	return zeros == UINT64_MAX ? UINT64_MAX : ~zeros ? ~(UINT64_MAX >> __builtin_clzll(~zeros)) : UINT64_MAX;
}

static uint64_t sum_zeros(uint64_t x, uint64_t y)
{
	/* As many low bits as both have, and what no carry reaches. */
	uint64_t low = ~x | ~y, high = above(x) & above(y);
	low = low ? (uint64_t)1 << __builtin_ctzll(low) : 0;
	return (low ? low - 1 : UINT64_MAX) | high << 1;
}

static uint64_t shift_zeros(const struct dec_build *b, const struct ir_rec *rec, uint64_t x)
{
	uint64_t n;
	if (!ir_const_get(b->f, rec->b, &n))
		return rec->op == IR_LSHR ? above(x) : 0;
	if (n >= ir_bits((enum ir_width)rec->width))
		return UINT64_MAX;
	if (rec->op == IR_SHL)
		return x << n | (((uint64_t)1 << n) - 1);
	return x >> n | (n ? ~(UINT64_MAX >> n) : 0);
}

/* Bits of a record's result that are 0 whatever its operands' unknown bits are. */
static uint64_t make_zeros(const struct dec_build *b, const struct ir_rec *rec)
{
	uint64_t out = ~dec_mask((enum ir_width)rec->width), x, y;
	if (rec->width == IR_W0 || ir_bits((enum ir_width)rec->width) > 64)
		return 0;
	switch (rec->op) {
	case IR_AND:
		return out | dec_zeros(b, rec->a) | dec_zeros(b, rec->b);
	case IR_OR:
	case IR_XOR:
		return out | (dec_zeros(b, rec->a) & dec_zeros(b, rec->b));
	case IR_SEL:
		return out | (dec_zeros(b, rec->b) & dec_zeros(b, rec->c));
	case IR_ADD:
		return out | sum_zeros(dec_zeros(b, rec->a), dec_zeros(b, rec->b));
	case IR_ZEXT:
		return out | dec_zeros(b, rec->a);
	case IR_SHL:
	case IR_LSHR:
		return out | shift_zeros(b, rec, dec_zeros(b, rec->a));
	case IR_EXTRACT:
		return ir_bits(ir_ref_width(b->f, rec->a)) > 64 || rec->aux > 63 ? out : out | dec_zeros(b, rec->a) >> rec->aux;
	case IR_MUL:
		x = ~dec_zeros(b, rec->a);
		y = ~dec_zeros(b, rec->b);
		if (!x || !y)
			return UINT64_MAX;
		x = (unsigned)(__builtin_ctzll(x) + __builtin_ctzll(y));
		return x >= 64 ? UINT64_MAX : out | (((uint64_t)1 << x) - 1);
	case IR_BITS:
		return rec->kind == IR_BITS_BSWAP ? out : out | ~(uint64_t)127;
	case IR_DIV:
		return rec->kind == IR_DIV_UQUOT || rec->kind == IR_DIV_UREM ? out | above(dec_zeros(b, rec->a)) : out;
	default:
		return out;
	}
}

/* --- numbering --------------------------------------------------------------------------------------------------------------- */
static uint32_t hash_of(const struct ir_rec *r)
{
	uint64_t h = ((uint64_t)r->op << 24 | (uint64_t)r->width << 16 | (uint64_t)r->kind << 8 | r->flags) * 0x9e3779b97f4a7c15;
	h = (h ^ r->a) * 0x9e3779b97f4a7c15;
	h = (h ^ h >> 29 ^ r->b) * 0xbf58476d1ce4e5b9;
	h = (h ^ h >> 32 ^ (uint64_t)r->c << 32 ^ r->aux) * 0x94d049bb133111eb;
	return (uint32_t)(h >> 32);
}

static bool is_same(const struct ir_rec *x, const struct ir_rec *y)
{
	return x->op == y->op && x->width == y->width && x->kind == y->kind && x->flags == y->flags && x->a == y->a && x->b == y->b && x->c == y->c &&
	       x->aux == y->aux;
}

static uint32_t *slot_of(struct dec_build *b, const struct ir_rec *rec)
{
	uint32_t mask = b->table_cap - 1;
	for (uint32_t i = hash_of(rec) & mask;; i = (i + 1) & mask) {
		if (b->table[i] == UINT32_MAX || is_same(&b->f->recs[b->table[i]], rec))
			return &b->table[i];
	}
}

ir_ref dec_put_rec(struct dec_build *b, const struct ir_rec *rec)
{
	if (++b->steps > b->step_limit || (b->f->rec_cnt + 1 >= b->cap && !grow(b))) {
		b->failed = true;
		return ir_const(b->f, rec->width ? (enum ir_width)rec->width : IR_W1, 0);
	}
	ir_ref r = ir_emit(b->f, rec);
	if (b->f->failed) {
		b->failed = true;
		return r;
	}
	b->block_of[ir_index(r)] = b->f->cur_block;
	b->zeros[ir_index(r)] = make_zeros(b, rec);
	return r;
}

/* The table is never more than half full: it stops taking values then. */
ir_ref dec_value(struct dec_build *b, const struct ir_rec *rec)
{
	uint32_t *slot = slot_of(b, rec);
	if (*slot != UINT32_MAX && dec_dominates(b->g, b->block_of[*slot], b->f->cur_block))
		return ir_ref_make(IR_TAG_VALUE, *slot);
	ir_ref r = dec_put_rec(b, rec);
	if (!b->failed && ir_tag(r) == IR_TAG_VALUE && (*slot != UINT32_MAX || b->f->rec_cnt < b->table_cap / 2))
		*slot = ir_index(r);
	return r;
}

/* --- folding ------------------------------------------------------------------------------------------------------------------- */
static bool const_val(const struct ir_func *f, ir_ref r, struct ir_val *v)
{
	const uint64_t *words = ir_const_words(f, r);
	*v = (struct ir_val){{0}};
	if (r == IR_REF_NONE)
		return true;
	if (!words)
		return false;
	memcpy(v->w, words, ir_words(ir_ref_width(f, r)) * 8);
	return true;
}

static ir_ref fold(struct dec_build *b, const struct ir_rec *rec)
{
	struct ir_val v[3], out;
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	unsigned n = ir_fixed_operands((enum ir_op)rec->op);
	for (unsigned i = 0; i < 3; i++)
		if (!const_val(b->f, i < n ? refs[i] : IR_REF_NONE, &v[i]))
			return IR_REF_NONE;
	const char *x = strchr(ir_op_info((enum ir_op)rec->op)->signature + 2, 'x');
	enum ir_width xw = x ? ir_ref_width(b->f, refs[x - ir_op_info((enum ir_op)rec->op)->signature - 2]) : IR_W0;
	if (rec->op == IR_GADDR || !ir_eval(rec, xw, &v[0], &v[1], &v[2], &out) || out.is_undef)
		return IR_REF_NONE;
	return ir_const_wide(b->f, (enum ir_width)rec->width, out.w);
}

bool dec_commutes(enum ir_op op, enum ir_kind kind)
{
	switch (op) {
	case IR_ADD:
	case IR_MUL:
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_MULOVF:
	case IR_MULH:
		return true;
	case IR_CMP:
		return kind == IR_CMP_EQ;
	case IR_FLAG:
		return kind == IR_FLAG_CARRY || kind == IR_FLAG_OVF_ADD;
	default:
		return false;
	}
}

/* Numbers second, then the older value first: so that equal sums are the same record. */
static void order_operands(struct ir_rec *rec)
{
	if (!dec_commutes((enum ir_op)rec->op, (enum ir_kind)rec->kind))
		return;
	bool is_const = ir_tag(rec->a) == IR_TAG_CONST;
	if (is_const || (ir_tag(rec->b) != IR_TAG_CONST && rec->b < rec->a)) {
		ir_ref t = rec->a;
		rec->a = rec->b;
		rec->b = t;
	}
}

/* An address of the image moved by a number is one, too. */
static ir_ref fold_address(struct dec_build *b, const struct ir_rec *rec)
{
	uint64_t base, add;
	const struct ir_rec *a = dec_rec(b->f, rec->a);
	if ((rec->op != IR_ADD && rec->op != IR_SUB) || !a || a->op != IR_GADDR || !ir_const_get(b->f, a->a, &base) ||
	    !ir_const_get(b->f, rec->b, &add))
		return IR_REF_NONE;
	struct ir_rec out = *a;
	out.a = ir_const(b->f, (enum ir_width)rec->width, rec->op == IR_ADD ? base + add : base - add);
	out.origin = rec->origin;
	return dec_value(b, &out);
}

ir_ref dec_op(struct dec_build *b, const struct ir_rec *in)
{
	struct ir_rec rec = *in;
	if (b->failed)
		return ir_const(b->f, (enum ir_width)rec.width, 0);
	order_operands(&rec);
	ir_ref r = fold(b, &rec);
	if (r == IR_REF_NONE)
		r = fold_address(b, &rec);
	if (r == IR_REF_NONE && b->depth < RULE_DEPTH_MAX) {
		b->depth++;
		r = dec_rules(b, &rec);
		if (r == IR_REF_NONE && !b->rules_off)
			r = dec_divide(b, &rec);
		b->depth--;
	}
	return r != IR_REF_NONE ? r : dec_value(b, &rec);
}

ir_ref dec_op2(struct dec_build *b, enum ir_op op, enum ir_width w, ir_ref x, ir_ref y)
{
	const struct ir_rec rec = {.op = (uint8_t)op, .width = (uint8_t)w, .a = x, .b = y, .c = IR_REF_NONE};
	return dec_op(b, &rec);
}
