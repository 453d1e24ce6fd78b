/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_interp.h"

#include "ir/ir_int.h"

#include <string.h>

struct machine {
	struct ir_run *r;
	const struct ir_func *f;
	struct ir_val *vals;     /* one for each record */
	struct ir_val **results; /* of INTRIN and MEMOP, by record */
	struct ir_edges preds;   /* made when there is a join */
	bool has_preds;
	uint64_t limit;
	uint32_t block, from;    /* running, and the one before */
	bool is_over;
};

static const char *const exit_names[IR_EXIT_COUNT] = {
	[IR_EXIT_JUMP] = "jump",       [IR_EXIT_RET] = "ret",         [IR_EXIT_TRAP] = "trap",
	[IR_EXIT_FAULT] = "fault",     [IR_EXIT_CALL] = "call",       [IR_EXIT_INTRIN] = "intrin",
	[IR_EXIT_UNKNOWN] = "unknown", [IR_EXIT_BUDGET] = "budget",   [IR_EXIT_NOMEM] = "nomem",
};

const char *ir_exit_name(enum ir_exit e)
{
	return e < IR_EXIT_COUNT ? exit_names[e] : "?";
}

static void stop(struct machine *m, enum ir_exit e, uint64_t va)
{
	m->r->exit = e;
	m->r->va = va;
	m->is_over = true;
}

static struct ir_val value_of(const struct machine *m, ir_ref ref)
{
	struct ir_val v = {{0}};
	if (ir_tag(ref) == IR_TAG_VALUE)
		return m->vals[ir_index(ref)];
	const uint64_t *words = ir_const_words(m->f, ref);
	if (words)
		memcpy(v.w, words, ir_words(ir_ref_width(m->f, ref)) * 8);
	return v;
}

/* A number that decides what happens: an address, a condition, a count. */
static bool known(struct machine *m, const struct ir_val *v)
{
	if (v->is_undef)
		stop(m, IR_EXIT_UNKNOWN, 0);
	return !v->is_undef;
}

/* --- memory ------------------------------------------------------------------------------------------------ */
static unsigned byte_cnt(const struct ir_rec *rec)
{
	return ir_bits((enum ir_width)rec->width) / 8;
}

/* Marks, or asks about, bytes that depend on an UNDEF. */
static bool undef_bytes(struct machine *m, uint64_t va, unsigned len, bool set, bool is_undef)
{
	bool any = false;
	for (unsigned i = 0; i < len; i++) {
		struct ir_page *p = ir_mem_page(m->r->mem, va + i);
		if (!p || (!p->undef && !(set && is_undef)))
			continue;
		if (!p->undef && !(p->undef = arena_alloc(m->r->mem->arena, IR_PAGE_LEN / 8)))
			return true;
		unsigned at = (unsigned)((va + i) % IR_PAGE_LEN);
		any |= p->undef[at / 8] >> at % 8 & 1;
		if (set)
			p->undef[at / 8] = (uint8_t)((p->undef[at / 8] & ~(1u << at % 8)) | (unsigned)is_undef << at % 8);
	}
	return any;
}

static void reverse(uint8_t *bytes, unsigned len)
{
	for (unsigned i = 0; i < len / 2; i++) {
		uint8_t t = bytes[i];
		bytes[i] = bytes[len - 1 - i];
		bytes[len - 1 - i] = t;
	}
}

static bool is_swapped(const struct machine *m, const struct ir_rec *rec)
{
	return (rec->flags & IR_F_BE) != 0 ? !m->f->machine->is_be : m->f->machine->is_be;
}

static bool load(struct machine *m, const struct ir_rec *rec, uint64_t va, struct ir_val *ret)
{
	uint8_t bytes[64] = {0};
	uint64_t fault;
	unsigned n = byte_cnt(rec);
	if (!ir_mem_read(m->r->mem, va, bytes, n, &fault)) {
		stop(m, IR_EXIT_FAULT, fault);
		return false;
	}
	if (is_swapped(m, rec))
		reverse(bytes, n);
	*ret = (struct ir_val){.is_undef = undef_bytes(m, va, n, false, false)};
	for (unsigned i = 0; i < n; i++)
		ret->w[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
	return true;
}

static bool store(struct machine *m, const struct ir_rec *rec, uint64_t va, const struct ir_val *v)
{
	uint8_t bytes[64];
	uint64_t fault;
	unsigned n = byte_cnt(rec);
	for (unsigned i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v->w[i / 8] >> i % 8 * 8);
	if (is_swapped(m, rec))
		reverse(bytes, n);
	if (!ir_mem_write(m->r->mem, va, bytes, n, &fault)) {
		stop(m, IR_EXIT_FAULT, fault);
		return false;
	}
	undef_bytes(m, va, n, true, v->is_undef);
	return true;
}

static uint64_t rmw_new(enum ir_kind kind, uint64_t old, uint64_t b)
{
	switch (kind) {
	case IR_RMW_ADD:
		return old + b;
	case IR_RMW_SUB:
		return old - b;
	case IR_RMW_AND:
		return old & b;
	case IR_RMW_OR:
		return old | b;
	case IR_RMW_XOR:
		return old ^ b;
	default:
		return b;
	}
}

static void do_atomic(struct machine *m, const struct ir_rec *rec, struct ir_val *ret)
{
	struct ir_val a = value_of(m, rec->a), b = value_of(m, rec->b), old, new_val;
	if (!known(m, &a) || !load(m, rec, a.w[0], &old))
		return;
	if (rec->op == IR_CAS) {
		new_val = memcmp(old.w, b.w, sizeof(old.w)) ? old : value_of(m, rec->c);
		new_val.is_undef |= old.is_undef | b.is_undef;
	} else {
		new_val = (struct ir_val){{rmw_new((enum ir_kind)rec->kind, old.w[0], b.w[0])}, old.is_undef | b.is_undef};
		ir_val_cut(&new_val, ir_bits((enum ir_width)rec->width));
	}
	if (store(m, rec, a.w[0], &new_val))
		*ret = old;
}

/* --- repeated string operations ----------------------------------------------------------------------------- */
struct string_op {
	const struct ir_rec *rec;
	struct ir_rec elem;  /* its width */
	uint64_t dst, src, count, step, mask;
	struct ir_val value; /* of fill and scan */
	struct ir_val last[2];
	bool go_on_equal;
};

/* One element; false when it ended, by itself or because the machine stopped. */
static bool do_element(struct machine *m, struct string_op *s)
{
	struct ir_val a = s->value, b;
	enum ir_kind kind = (enum ir_kind)s->rec->kind;
	if (kind == IR_MEMOP_COPY || kind == IR_MEMOP_CMP) {
		if (!load(m, &s->elem, s->src, &a))
			return false;
	}
	if (kind == IR_MEMOP_COPY || kind == IR_MEMOP_FILL) {
		if (!store(m, &s->elem, s->dst, &a))
			return false;
	} else {
		if (!load(m, &s->elem, s->dst, &b))
			return false;
		s->last[0] = a;
		s->last[1] = b;
		if (!known(m, &a) || !known(m, &b))
			return false;
	}
	s->dst = (s->dst + s->step) & s->mask;
	s->src = (s->src + s->step) & s->mask;
	s->count = (s->count - 1) & s->mask;
	if (kind == IR_MEMOP_CMP || kind == IR_MEMOP_SCAN)
		return (a.w[0] == b.w[0]) == s->go_on_equal;
	return true;
}

static void do_memop(struct machine *m, const struct ir_rec *rec, struct ir_val *res)
{
	struct ir_val v[5];
	bool is_value = rec->kind == IR_MEMOP_FILL || rec->kind == IR_MEMOP_SCAN;
	for (unsigned i = 0; i < 5; i++) {
		v[i] = value_of(m, m->f->lists[rec->b + i]);
		if (!(is_value && i == 1) && !known(m, &v[i]))
			return;
	}
	unsigned addr_bits = ir_bits((enum ir_width)m->f->machine->addr_width);
	uint64_t bytes = rec->aux / 8;
	struct string_op s = {
		.rec = rec, .elem = {.width = (uint8_t)ir_width_of(rec->aux)}, .dst = v[0].w[0], .src = v[1].w[0],
		.count = v[2].w[0], .step = v[3].w[0] ? 0 - bytes : bytes, .value = v[1], .go_on_equal = v[4].w[0],
		.mask = addr_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << addr_bits) - 1,
	};
	while (s.count) {
		if (++m->r->steps > m->limit) {
			stop(m, IR_EXIT_BUDGET, 0);
			return;
		}
		if (!do_element(m, &s))
			break;
	}
	if (m->is_over)
		return;
	res[0].w[0] = s.dst;
	res[1] = s.value;
	if (!is_value)
		res[1].w[0] = s.src;
	res[2].w[0] = s.count;
	res[3] = s.last[0];
	res[4] = s.last[1];
}

/* --- calls, opaque instructions ------------------------------------------------------------------------------ */
static void do_intrin(struct machine *m, const struct ir_rec *rec, struct ir_val *res)
{
	const struct ir_intrin *in = &m->f->intrins[rec->aux];
	struct ir_val *args = ARENA_ARRAY(m->r->arena, struct ir_val, rec->c + 1);
	if (!args) {
		stop(m, IR_EXIT_NOMEM, 0);
		return;
	}
	for (uint32_t i = 0; i < rec->c; i++)
		args[i] = value_of(m, m->f->lists[rec->b + i]);
	if (!m->r->intrin || !m->r->intrin(m->r, in, args, res))
		stop(m, IR_EXIT_INTRIN, in->va);
	for (unsigned i = 0; i < in->out_cnt; i++)
		ir_val_cut(&res[i], ir_bits((enum ir_width)m->f->machine->locs[in->out[i]].width));
}

static struct ir_rec address_rec(const struct machine *m)
{
	return (struct ir_rec){.width = m->f->machine->addr_width};
}

static void add_sp(struct machine *m, uint64_t delta)
{
	struct ir_val *sp = &m->r->locs[m->f->machine->sp_loc];
	sp->w[0] += delta;
	ir_val_cut(sp, ir_bits((enum ir_width)m->f->machine->addr_width));
}

static void do_call(struct machine *m, const struct ir_rec *rec)
{
	struct ir_val to = value_of(m, rec->a), back = value_of(m, rec->b);
	const struct ir_rec addr = address_rec(m);
	uint64_t bytes = byte_cnt(&addr);
	if (!known(m, &to) || !known(m, &m->r->locs[m->f->machine->sp_loc]))
		return;
	if (m->f->machine->calls_push && rec->b != IR_REF_NONE) {
		struct ir_val sp = m->r->locs[m->f->machine->sp_loc];
		sp.w[0] -= bytes;
		ir_val_cut(&sp, (unsigned)bytes * 8);
		if (!store(m, &addr, sp.w[0], &back))
			return;
		add_sp(m, 0 - bytes);
	}
	if (!m->r->call || !m->r->call(m->r, to.w[0]))
		stop(m, IR_EXIT_CALL, to.w[0]);
}

static void do_ret(struct machine *m, const struct ir_rec *rec)
{
	struct ir_val to = {{0}};
	const struct ir_rec addr = address_rec(m);
	const struct ir_val *sp = &m->r->locs[m->f->machine->sp_loc];
	if (m->f->machine->calls_push) {
		/* With a signature the stack pointer is what it will be. */
		uint64_t bytes = byte_cnt(&addr), below = m->f->self ? bytes : 0;
		if (!known(m, sp) || !load(m, &addr, sp->w[0] - below, &to) || !known(m, &to))
			return;
		add_sp(m, bytes - below + rec->aux);
	}
	stop(m, IR_EXIT_RET, to.w[0]);
}

/* --- control ------------------------------------------------------------------------------------------------ */
static void do_switch(struct machine *m, const struct ir_rec *rec)
{
	struct ir_val v = value_of(m, rec->a);
	if (!known(m, &v))
		return;
	m->from = m->block;
	m->block = rec->aux;
	for (uint32_t i = 0; i < rec->c; i += 2) {
		struct ir_val is = value_of(m, m->f->lists[rec->b + i]);
		if (!memcmp(is.w, v.w, sizeof(is.w))) {
			m->block = ir_index(m->f->lists[rec->b + i + 1]);
			return;
		}
	}
}

static void do_end(struct machine *m, const struct ir_rec *rec)
{
	struct ir_val v = value_of(m, rec->a);
	switch (rec->op) {
	case IR_JMP:
		m->from = m->block;
		m->block = ir_index(rec->a);
		break;
	case IR_BR:
		if (known(m, &v)) {
			m->from = m->block;
			m->block = ir_index(v.w[0] & 1 ? rec->b : rec->c);
		}
		break;
	case IR_SWITCH:
		do_switch(m, rec);
		break;
	case IR_IJMP:
		if (known(m, &v))
			stop(m, IR_EXIT_JUMP, v.w[0]);
		break;
	case IR_RET:
		do_ret(m, rec);
		break;
	default:
		m->r->kind = rec->kind;
		stop(m, IR_EXIT_TRAP, 0);
	}
}

/* All joins at once: they may exchange values. Gives how many there were. */
static uint32_t do_joins(struct machine *m)
{
	const struct ir_block *b = &m->f->blocks[m->block];
	uint32_t cnt = 0;
	while (b->first + cnt < b->last && m->f->recs[m->f->order[b->first + cnt]].op == IR_PHI)
		cnt++;
	if (!cnt)
		return 0;
	struct ir_val *now = ARENA_ARRAY(m->r->arena, struct ir_val, cnt);
	if (!now || (!m->has_preds && !ir_preds(m->r->func, &m->preds))) {
		stop(m, IR_EXIT_NOMEM, 0);
		return cnt;
	}
	m->has_preds = true;
	uint32_t which = 0, first = m->preds.first[m->block];
	while (first + which < m->preds.first[m->block + 1] && m->preds.list[first + which] != m->from)
		which++;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct ir_rec *rec = &m->f->recs[m->f->order[b->first + i]];
		now[i] = value_of(m, m->f->lists[rec->b + which]);
	}
	for (uint32_t i = 0; i < cnt; i++)
		m->vals[m->f->order[b->first + i]] = now[i];
	return cnt;
}

/* --- records ------------------------------------------------------------------------------------------------ */
static enum ir_width x_width(const struct machine *m, const struct ir_rec *rec)
{
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	const char *operands = ir_op_info((enum ir_op)rec->op)->signature + 2;
	const char *x = strchr(operands, 'x');
	return x ? ir_ref_width(m->f, refs[x - operands]) : IR_W0;
}

static void do_pure(struct machine *m, const struct ir_rec *rec, struct ir_val *ret)
{
	struct ir_val a = value_of(m, rec->a), b = value_of(m, rec->b), c = value_of(m, rec->c);
	if ((rec->op == IR_DIV || rec->op == IR_DIVW) && (!known(m, &a) || !known(m, &b) || !known(m, &c)))
		return;
	if (!ir_eval(rec, x_width(m, rec), &a, &b, &c, ret)) {
		m->r->kind = rec->kind;
		stop(m, IR_EXIT_TRAP, 0);
	}
}

static void do_listed(struct machine *m, const struct ir_rec *rec, uint32_t id)
{
	unsigned cnt = rec->op == IR_MEMOP ? 5 : m->f->intrins[rec->aux].out_cnt;
	m->results[id] = ARENA_ARRAY(m->r->arena, struct ir_val, cnt + 1);
	if (!m->results[id])
		stop(m, IR_EXIT_NOMEM, 0);
	else if (rec->op == IR_MEMOP)
		do_memop(m, rec, m->results[id]);
	else
		do_intrin(m, rec, m->results[id]);
}

static void do_record(struct machine *m, uint32_t id)
{
	const struct ir_rec *rec = &m->f->recs[id];
	struct ir_val *ret = &m->vals[id];
	struct ir_val a = value_of(m, rec->a), b;
	switch (rec->op) {
	case IR_GET:
		*ret = m->r->locs[rec->aux];
		ir_val_cut(ret, ir_bits((enum ir_width)rec->width));
		break;
	case IR_PUT:
		m->r->locs[rec->aux] = a;
		break;
	case IR_UNDEF:
		*ret = (struct ir_val){.is_undef = true};
		break;
	case IR_LOAD:
		if (known(m, &a))
			load(m, rec, a.w[0], ret);
		break;
	case IR_STORE:
		b = value_of(m, rec->b);
		if (known(m, &a))
			store(m, rec, a.w[0], &b);
		break;
	case IR_RMW:
	case IR_CAS:
		do_atomic(m, rec, ret);
		break;
	case IR_FENCE:
		break;
	case IR_MEMOP:
	case IR_INTRIN:
		do_listed(m, rec, id);
		break;
	case IR_RES:
		*ret = m->results[ir_index(rec->a)][rec->aux];
		break;
	case IR_CALL:
		do_call(m, rec);
		break;
	default:
		if (ir_op_info((enum ir_op)rec->op)->effects & IR_ENDS)
			do_end(m, rec);
		else
			do_pure(m, rec, ret);
	}
}

static void run_block(struct machine *m)
{
	const struct ir_block *b = &m->f->blocks[m->block];
	if (m->r->block)
		m->r->block(m->r, m->block);
	uint32_t joins = do_joins(m);
	for (uint32_t i = b->first + joins; i < b->last && !m->is_over; i++) {
		m->r->rec = m->f->order[i];
		if (++m->r->steps > m->limit)
			stop(m, IR_EXIT_BUDGET, 0);
		else
			do_record(m, m->f->order[i]);
	}
}

void ir_interp(struct ir_run *r)
{
	struct machine m = {.r = r, .f = r->func, .limit = r->step_limit ? r->step_limit : 1000000};
	r->steps = 0;
	r->rec = 0;
	r->va = 0;
	r->kind = IR_KIND_NONE;
	m.vals = ARENA_ARRAY(r->arena, struct ir_val, m.f->rec_cnt + 1);
	m.results = ARENA_ARRAY(r->arena, struct ir_val *, m.f->rec_cnt + 1);
	if (!m.vals || !m.results) {
		stop(&m, IR_EXIT_NOMEM, 0);
		return;
	}
	while (!m.is_over)
		run_block(&m);
}
