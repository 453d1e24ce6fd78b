/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/slice.h"

#include "arch/arch.h"

/*
 * A path is run forwards once it has been found backwards: aliases, spills and extensions then need
 * no rules of their own, because a copy is the same node. Stores are taken not to overlap other
 * slots; tables found this way are checked against the code before they are believed.
 */
static uint16_t intern(struct sx *s, struct sx_node n)
{
	uint64_t h = n.kind * 31u + n.width * 7u + n.is_signed + n.a * 131u + n.b * 517u +
		     (uint64_t)n.ka * 3 + (uint64_t)n.kb * 5 + (uint64_t)n.k * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 29) % SX_HEADS;
	for (uint16_t i = s->heads[h]; i; i = s->nodes[i].next) {
		const struct sx_node *m = &s->nodes[i];
		if (m->kind == n.kind && m->width == n.width && m->is_signed == n.is_signed &&
		    m->a == n.a && m->b == n.b && m->ka == n.ka && m->kb == n.kb && m->k == n.k)
			return i;
	}
	if (s->node_cnt >= SX_NODE_MAX)
		return 1; /* the node for everything unknown */
	n.next = s->heads[h];
	s->nodes[s->node_cnt] = n;
	s->heads[h] = s->node_cnt;
	return s->node_cnt++;
}

static uint16_t atom(struct sx *s, uint8_t reg)
{
	return intern(s, (struct sx_node){.kind = SX_ATOM, .k = reg + 256 * (int64_t)++s->version});
}

static uint16_t constant(struct sx *s, uint64_t v)
{
	if (s->c->arch->bits == 32)
		v = (uint32_t)v;
	return intern(s, (struct sx_node){.kind = SX_CONST, .k = (int64_t)v});
}

static uint16_t get_reg(struct sx *s, uint8_t reg)
{
	if (reg >= 64)
		return 1;
	if (!s->regs[reg])
		s->regs[reg] = atom(s, reg);
	return s->regs[reg];
}

struct linear {
	uint16_t node[3];
	int64_t k[3];
	unsigned cnt;
	int64_t c;
};

static void linear_add(const struct sx *s, struct linear *l, uint16_t node, int64_t k)
{
	const struct sx_node *n = &s->nodes[node];
	if (n->kind == SX_CONST) {
		l->c = (int64_t)((uint64_t)l->c + (uint64_t)n->k * (uint64_t)k);
		return;
	}
	if (n->kind == SX_SUM) {
		l->c = (int64_t)((uint64_t)l->c + (uint64_t)n->k * (uint64_t)k);
		linear_add(s, l, n->a, (int64_t)((uint64_t)n->ka * (uint64_t)k));
		if (n->b)
			linear_add(s, l, n->b, (int64_t)((uint64_t)n->kb * (uint64_t)k));
		return;
	}
	for (unsigned i = 0; i < MIN(l->cnt, 3u); i++) {
		if (l->node[i] != node)
			continue;
		l->k[i] = (int64_t)((uint64_t)l->k[i] + (uint64_t)k);
		if (!l->k[i]) {
			l->cnt--;
			l->node[i] = l->node[l->cnt < 3 ? l->cnt : 2];
			l->k[i] = l->k[l->cnt < 3 ? l->cnt : 2];
		}
		return;
	}
	if (l->cnt < 3) {
		l->node[l->cnt] = node;
		l->k[l->cnt] = k;
	}
	l->cnt++;
}

static uint16_t linear_node(struct sx *s, const struct linear *l)
{
	if (l->cnt > 2)
		return atom(s, 255);
	if (!l->cnt)
		return constant(s, (uint64_t)l->c);
	if (l->cnt == 1 && l->k[0] == 1 && !l->c)
		return l->node[0];
	struct sx_node n = {.kind = SX_SUM, .a = l->node[0], .ka = l->k[0], .k = l->c};
	if (s->c->arch->bits == 32)
		n.k = (int32_t)n.k;
	if (l->cnt == 2) {
		n.b = l->node[1];
		n.kb = l->k[1];
		if (n.b < n.a) {
			n.a = l->node[1];
			n.ka = l->k[1];
			n.b = l->node[0];
			n.kb = l->k[0];
		}
	}
	return intern(s, n);
}

static uint16_t sum(struct sx *s, uint16_t a, int64_t ka, uint16_t b, int64_t kb, int64_t k)
{
	struct linear l = {.c = k};
	linear_add(s, &l, a, ka);
	if (b)
		linear_add(s, &l, b, kb);
	return linear_node(s, &l);
}

static uint64_t mask_of(unsigned width)
{
	return width >= 8 ? UINT64_MAX : ((uint64_t)1 << width * 8) - 1;
}

static int64_t sign_extend(uint64_t v, unsigned width)
{
	unsigned shift = 64 - width * 8;
	return width >= 8 ? (int64_t)v : (int64_t)(v << shift) >> shift;
}

static uint16_t extend(struct sx *s, uint16_t a, unsigned width, bool is_signed)
{
	if (!width || width >= s->c->arch->bits / 8u)
		return a;
	const struct sx_node *n = &s->nodes[a];
	if (n->kind == SX_CONST)
		return constant(s, is_signed ? (uint64_t)sign_extend((uint64_t)n->k, width)
					     : (uint64_t)n->k & mask_of(width));
	bool is_narrow = (n->kind == SX_EXT || n->kind == SX_LOAD) && !n->is_signed &&
			 (n->width < width || (n->width == width && !is_signed));
	if (is_narrow ||
	    (n->kind == SX_AND && n->k >= 0 && (uint64_t)n->k <= mask_of(width) >> is_signed))
		return a;
	if (n->kind == SX_EXT && n->width >= width)
		a = n->a;
	return intern(s, (struct sx_node){.kind = SX_EXT,
					  .a = a,
					  .width = (uint8_t)width,
					  .is_signed = is_signed});
}

static uint16_t address(struct sx *s, const struct arch_effect *e)
{
	struct linear l = {.c = e->imm};
	if (e->base != ARCH_REG_NONE)
		linear_add(s, &l, get_reg(s, e->base), 1);
	if (e->index != ARCH_REG_NONE) {
		uint16_t index = get_reg(s, e->index);
		if (e->index_width)
			index = extend(s, index, e->index_width, e->is_index_signed);
		linear_add(s, &l, index, e->scale ? e->scale : 1);
	}
	return linear_node(s, &l);
}

static uint16_t load(struct sx *s, uint16_t addr, unsigned width, bool is_signed)
{
	for (unsigned i = s->slot_cnt; i-- > 0;)
		if (s->slots[i].addr == addr && s->slots[i].width >= width)
			return extend(s, s->slots[i].value, width, is_signed);
	return intern(s, (struct sx_node){.kind = SX_LOAD,
					  .a = addr,
					  .width = (uint8_t)width,
					  .is_signed = is_signed,
					  .k = s->memory});
}

static void store(struct sx *s, uint16_t addr, uint16_t value, unsigned width)
{
	for (unsigned i = 0; i < s->slot_cnt; i++) {
		if (s->slots[i].addr == addr) {
			s->slots[i].value = value;
			s->slots[i].width = (uint8_t)width;
			return;
		}
	}
	if (s->slot_cnt < SX_SLOT_MAX) {
		s->slots[s->slot_cnt].addr = addr;
		s->slots[s->slot_cnt].value = value;
		s->slots[s->slot_cnt++].width = (uint8_t)width;
	}
}

/* Immediates of 4-byte operations come zero-extended; as offsets they are signed. */
static int64_t offset_of(const struct arch_effect *e)
{
	return e->width == 4 ? (int32_t)e->imm : e->imm;
}

static uint16_t second(struct sx *s, const struct arch_effect *e)
{
	if (e->src2 == ARCH_REG_NONE)
		return constant(s, (uint64_t)offset_of(e));
	uint16_t v = get_reg(s, e->src2);
	if (e->ext_width)
		v = extend(s, v, e->ext_width, e->is_signed);
	return e->scale > 1 ? sum(s, v, e->scale, 0, 0, 0) : v;
}

/* Remembers a comparison of `node` with a constant. */
static void compare(struct sx *s, uint16_t node, const struct sx_node *with, unsigned width)
{
	s->cmp_node = 0;
	if (with->kind != SX_CONST)
		return;
	s->cmp_node = extend(s, node, width, false);
	s->cmp_with = (uint64_t)with->k & mask_of(width);
	s->cmp_width = (uint8_t)width;
}

static uint16_t and_mask(struct sx *s, uint16_t a, uint64_t mask)
{
	if (mask == 0xff || mask == 0xffff || mask == 0xffffffff)
		return extend(s, a, mask == 0xff ? 1 : mask == 0xffff ? 2 : 4, false);
	return intern(s, (struct sx_node){.kind = SX_AND, .a = a, .k = (int64_t)mask});
}

/* The value of the effect's destination; 0 when unknown. */
static uint16_t value_of(struct sx *s, const struct arch_effect *e)
{
	uint16_t a = e->src1 != ARCH_REG_NONE ? get_reg(s, e->src1) : 0;
	uint16_t v = 0;
	switch ((enum arch_op)e->op) {
	case ARCH_OP_CONST:
		return constant(s, (uint64_t)e->imm);
	case ARCH_OP_MOVE:
		v = extend(s, a, e->width, e->is_signed);
		return e->is_signed && e->ext_width == 4 ? extend(s, v, 4, false) : v;
	case ARCH_OP_LOAD:
		v = load(s, address(s, e), e->width, e->is_signed);
		return e->is_signed && e->ext_width == 4 ? extend(s, v, 4, false) : v;
	case ARCH_OP_LEA:
		v = address(s, e);
		break;
	case ARCH_OP_ADD:
		v = sum(s, a, 1,
			e->has_mem ? load(s, address(s, e), e->width, false) : second(s, e), 1, 0);
		break;
	case ARCH_OP_SUB:
		v = sum(s, a, 1, second(s, e), -1, 0);
		compare(s, a, &s->nodes[second(s, e)], e->width);
		break;
	case ARCH_OP_AND: {
		const struct sx_node *m =
			e->src2 == ARCH_REG_NONE ? NULL : &s->nodes[get_reg(s, e->src2)];
		if (m && m->kind != SX_CONST)
			return 0;
		uint64_t mask = (uint64_t)(m ? m->k : e->imm) & mask_of(e->width);
		return and_mask(s, a, mask);
	}
	case ARCH_OP_SHL:
		if (e->src2 != ARCH_REG_NONE || e->imm < 0 || e->imm > 31)
			return 0;
		v = sum(s, a, (int64_t)1 << e->imm, 0, 0, 0);
		break;
	case ARCH_OP_SHR:
		if (e->src2 != ARCH_REG_NONE || e->imm < 0 || e->imm > 63)
			return 0;
		v = intern(s, (struct sx_node){.kind = SX_SHR,
					       .a = extend(s, a, e->width, false),
					       .k = e->imm});
		return e->cmp_imm ? and_mask(s, v, (uint64_t)e->cmp_imm) : v;
	case ARCH_OP_INSERT:
		if (s->nodes[a].kind != SX_CONST)
			return 0;
		return constant(s, ((uint64_t)s->nodes[a].k & (uint64_t)e->cmp_imm) |
					   (uint64_t)e->imm);
	case ARCH_OP_OTHER:
	case ARCH_OP_STORE:
	case ARCH_OP_CMP:
	case ARCH_OP_TEST:
		return 0;
	}
	return extend(s, v, e->width, false);
}

static void apply(struct sx *s, const struct arch_effect *e)
{
	uint16_t sp = get_reg(s, s->c->arch->sp_reg);
	uint16_t v = 0;
	if (e->op == ARCH_OP_STORE) {
		uint16_t addr = address(s, e);
		v = e->src1 != ARCH_REG_NONE ? extend(s, get_reg(s, e->src1), e->width, false)
					     : atom(s, 255);
		store(s, addr, v, e->width);
		v = 0;
	} else if (e->op == ARCH_OP_CMP) {
		uint16_t left =
			e->has_mem ? load(s, address(s, e), e->width, false) : get_reg(s, e->src1);
		uint16_t right = e->has_mem		    ? constant(s, (uint64_t)e->cmp_imm)
				 : e->src2 == ARCH_REG_NONE ? constant(s, (uint64_t)e->imm)
							    : get_reg(s, e->src2);
		compare(s, left, &s->nodes[right], e->width);
	} else if (e->op == ARCH_OP_TEST) {
		s->cmp_node = 0;
	} else if (e->dst != ARCH_REG_NONE) {
		if (e->op == ARCH_OP_ADD || e->op == ARCH_OP_AND || e->op == ARCH_OP_SHL ||
		    e->op == ARCH_OP_SHR)
			s->cmp_node = s->c->arch->has_pairs ? s->cmp_node : 0;
		v = value_of(s, e);
	}
	for (uint64_t w = e->writes; w; w &= w - 1)
		s->regs[__builtin_ctzll(w)] = 0;
	if (v && e->dst < 64)
		s->regs[e->dst] = v;
	uint64_t others = e->writes & ~((uint64_t)1 << s->c->arch->sp_reg);
	if (!v && s->pushed && e->sp_is_known && e->sp_delta == s->c->arch->bits / 8 && others &&
	    !(others & (others - 1)))
		s->regs[__builtin_ctzll(others)] = s->pushed;
	s->pushed = 0;
	if (e->writes >> s->c->arch->sp_reg & 1 && e->sp_is_known)
		s->regs[s->c->arch->sp_reg] = sum(s, sp, 1, 0, 0, e->sp_delta);
}

/* What a conditional jump says about the compared value on the way taken. */
static void add_bound(struct sx *s, uint8_t cond, bool is_taken)
{
	if (!s->cmp_node || s->bound_cnt >= SX_BOUND_MAX)
		return;
	uint64_t n = s->cmp_with;
	bool is_less = cond == ARCH_COND_ULT || cond == ARCH_COND_SLT;
	bool is_less_equal = cond == ARCH_COND_ULE || cond == ARCH_COND_SLE;
	bool is_greater = cond == ARCH_COND_UGT || cond == ARCH_COND_SGT;
	bool is_greater_equal = cond == ARCH_COND_UGE || cond == ARCH_COND_SGE;
	if ((is_taken && is_less) || (!is_taken && is_greater_equal)) {
		if (!n)
			return;
		n--;
	} else if (!((is_taken && is_less_equal) || (!is_taken && is_greater))) {
		return;
	}
	if (n > 0xffff)
		return;
	s->bounds[s->bound_cnt++] = (struct sx_bound){s->cmp_node, n};
}

static void call_clobbers(struct sx *s, const struct code_rec *r)
{
	if (r->flow == ARCH_FLOW_CALL && r->target == r->loc + r->len) {
		s->pushed = constant(s, space_va(&s->c->d->space, r->target));
		return;
	}
	uint64_t w = s->c->arch->call_clobbers & ~((uint64_t)1 << s->c->arch->sp_reg);
	for (; w; w &= w - 1)
		s->regs[__builtin_ctzll(w)] = 0;
	s->memory++;
	s->cmp_node = 0;
	if (r->flow != ARCH_FLOW_CALL || s->c->arch->bits != 32 || r->target == LOC_NONE)
		return;
	uint8_t reg = code_pc_thunk(s->c, r->target);
	if (reg < 64)
		s->regs[reg] = constant(s, space_va(&s->c->d->space, r->loc) + r->len);
}

static bool effect_at(const struct code *c, uint32_t loc, struct arch_effect *ret)
{
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, loc, &len);
	if (!p)
		return false;
	c->arch->effect(c->arch, p, len, space_va(&c->d->space, loc), ret);
	return true;
}

/* A conditional jump; one that compares on its own leaves the flags to those behind it. */
static void run_branch(struct sx *s, const struct arch_effect *e, bool is_taken)
{
	uint16_t node = s->cmp_node;
	uint64_t with = s->cmp_with;
	uint8_t width = s->cmp_width;
	if (e->op == ARCH_OP_CMP)
		apply(s, e);
	add_bound(s, e->cond, is_taken);
	s->cmp_node = node;
	s->cmp_with = with;
	s->cmp_width = width;
}

void sx_run(struct sx *s, const struct code *c, const struct sx_path *path)
{
	memset(s->heads, 0, sizeof(s->heads));
	memset(s->regs, 0, sizeof(s->regs));
	s->c = c;
	s->nodes[0] = s->nodes[1] = (struct sx_node){.kind = SX_NONE};
	s->node_cnt = 2;
	s->version = s->memory = s->cmp_node = s->pushed = 0;
	s->slot_cnt = s->bound_cnt = 0;
	for (unsigned i = path->cnt; i-- > 1;) {
		const struct sx_step *step = &path->steps[i];
		struct arch_effect e;
		if (!effect_at(c, step->loc, &e))
			return;
		bool has_rec = code_has(c, c->rec_bits, step->loc);
		const struct code_rec *r = has_rec ? &c->recs[code_rec_at(c, step->loc)] : NULL;
		if (r && (r->flow == ARCH_FLOW_CALL || r->flow == ARCH_FLOW_ICALL)) {
			call_clobbers(s, r);
			continue;
		}
		if (r && r->flow == ARCH_FLOW_CJUMP) {
			run_branch(s, &e, step->is_taken);
			continue;
		}
		if (!r || r->flow == ARCH_FLOW_NEXT)
			apply(s, &e);
	}
}

uint16_t sx_target(struct sx *s, uint32_t loc)
{
	struct arch_effect e;
	if (!effect_at(s->c, loc, &e))
		return 0;
	if (e.op == ARCH_OP_MOVE && e.src1 < 64)
		return get_reg(s, e.src1);
	if (e.op == ARCH_OP_LOAD)
		return load(s, address(s, &e), e.width, false);
	return 0;
}

uint16_t sx_strip(const struct sx *s, uint16_t node)
{
	while (s->nodes[node].kind == SX_EXT && s->nodes[node].width >= 4)
		node = s->nodes[node].a;
	return node;
}

/* A node as one term and an offset. */
static uint16_t split_offset(const struct sx *s, uint16_t node, int64_t *ret_k)
{
	const struct sx_node *n = &s->nodes[node];
	*ret_k = 0;
	if (n->kind != SX_SUM || n->b || n->ka != 1)
		return node;
	*ret_k = n->k;
	return sx_strip(s, n->a);
}

static uint16_t strip_all(const struct sx *s, uint16_t node)
{
	while (s->nodes[node].kind == SX_EXT)
		node = s->nodes[node].a;
	return node;
}

bool sx_fits(const struct sx *s, uint16_t node, unsigned *from, struct sx_fit *ret)
{
	int64_t k;
	uint16_t core = split_offset(s, sx_strip(s, node), &k);
	while (*from) {
		const struct sx_bound *bound = &s->bounds[--*from];
		int64_t bk;
		uint16_t b = split_offset(s, sx_strip(s, bound->node), &bk);
		bool is_same = b == core || strip_all(s, b) == strip_all(s, core);
		if (!is_same || s->nodes[b].kind == SX_NONE)
			continue;
		*ret = (struct sx_fit){.offset = bk - k, .low = bk, .max = bound->max};
		return true;
	}
	return false;
}

bool sx_max(const struct sx *s, uint16_t node, uint64_t *ret)
{
	struct sx_fit fit;
	for (unsigned from = s->bound_cnt; sx_fits(s, node, &from, &fit);) {
		int64_t max = (int64_t)fit.max - fit.offset;
		if (max < 0 || max > 0xffff)
			continue;
		*ret = (uint64_t)max;
		return true;
	}
	return false;
}

uint16_t sx_sum(struct sx *s, uint16_t a, int64_t ka, uint16_t b, int64_t kb)
{
	return sum(s, a, ka, b, kb, 0);
}

/* How many ways lead to `loc`, and the one that `variant` picks; false when none. */
static bool pick_way(const struct code *c, uint32_t loc, unsigned variant, struct sx_step *ret,
		     unsigned *ret_cnt)
{
	struct sx_step ways[8];
	unsigned n = 0;
	uint32_t q = code_insn_before(c, loc);
	if (q != CODE_NONE) {
		bool has_rec = code_has(c, c->rec_bits, q);
		const struct code_rec *r = has_rec ? &c->recs[code_rec_at(c, q)] : NULL;
		uint32_t import =
			r && r->flow != ARCH_FLOW_IJUMP ? code_import_of(c, r->target) : CODE_NONE;
		if (!r || (!code_rec_ends(r) &&
			   (import == CODE_NONE || !bits_get(c->import_noreturn, import))))
			ways[n++] = (struct sx_step){q, false};
	}
	uint32_t bucket = (loc - c->base) / 64;
	/* Jumps from before come first: the others are loops, which began somewhere too. */
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = c->into_first[bucket];
		     i < c->into_first[bucket + 1] && n < ARRAY_LEN(ways); i++) {
			const struct code_rec *r = &c->recs[c->into[i]];
			if (r->target == loc && (r->loc < loc) == (pass == 0))
				ways[n++] = (struct sx_step){r->loc, true};
		}
	}
	*ret_cnt = n;
	if (!n)
		return false;
	*ret = ways[n > 1 ? variant % n : 0];
	return true;
}

void sx_path_back(const struct code *c, uint32_t loc, unsigned max, unsigned variant,
		  struct sx_path *ret)
{
	ret->cnt = 0;
	ret->has_choice = false;
	ret->steps[ret->cnt++] = (struct sx_step){loc, false};
	max = MIN(max, (unsigned)SX_PATH_MAX);
	while (ret->cnt < max && !code_has(c, c->starts, loc)) {
		struct sx_step step;
		unsigned ways;
		if (!pick_way(c, loc, variant, &step, &ways) ||
		    (ways > 1 && variant == SX_NO_CHOICE))
			return;
		if (ways > 1) {
			ret->has_choice = true;
			variant /= ways;
		}
		/* Once around a loop is enough. */
		for (unsigned i = 0; step.is_taken && i < ret->cnt; i++)
			if (ret->steps[i].loc == step.loc)
				return;
		ret->steps[ret->cnt++] = step;
		loc = step.loc;
	}
}
