/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prototypes of the whole program by its code, and what callers have to know beside them. Callees come before callers; what calls itself takes
 * the convention for what is not known yet, and is looked at once more. What callers use decides results that the code leaves open, and what
 * is left at returns at all, so all functions are looked at before one is shown.
 */
#include "base/vec.h"
#include "decomp/dec.h"
#include "lift/lift_image.h"
#include "session/ses_int.h"
#include "session/ses_types.h"
#include "session/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 8
#define FUNCS_MAX 100000 /* in a larger program nobody knows what callers want, and functions have no signatures */

enum { P_NEW, P_KNOWN, P_NONE };

struct through {
	uint32_t from, to;
	struct dec_wants w;
};

struct ses_protos {
	struct dec_proto *list;     /* by function */
	struct dec_callee *callees; /* the same */
	struct ir_sig *sigs;        /* the same, once all are known */
	uint64_t *leaves;           /* DEC_LOC_WORDS of each */
	uint8_t *state;
	uint8_t *has_sig;
	struct dec_wants *wants;    /* of callers */
	VEC(struct through) through;
	/* While it is made: when a function was last looked at, when something else became known of it, and whom it asked about then. */
	uint64_t clock, *looked, *changed;
	uint32_t *ask_first, *ask_cnt;
	VEC(uint32_t) asks;
	bool has_failed;
};

struct look {
	struct ses_snap *sn;
	struct ses_protos *p;
	uint32_t func;
};

static void free_marks(struct ses_protos *p)
{
	free(take_ptr(p->looked));
	free(take_ptr(p->changed));
	free(take_ptr(p->ask_first));
	free(take_ptr(p->ask_cnt));
	VEC_FREE(&p->asks);
}

void ses_protos_free(struct ses_protos *p)
{
	if (!p)
		return;
	free(p->list);
	free(p->callees);
	free(p->sigs);
	free(p->leaves);
	free(p->state);
	free(p->has_sig);
	free(p->wants);
	free(p->through.data);
	free_marks(p);
	free(p);
}

static uint32_t func_at(const struct ses_snap *sn, uint64_t va)
{
	uint32_t cnt, loc = space_loc(sn->space, va), f = loc == LOC_NONE ? UINT32_MAX : image_func_starting(sn->im, loc);
	image_funcs(sn->im, &cnt);
	return f < cnt ? f : UINT32_MAX;
}

uint32_t ses_proto_behind_thunks(const struct ses_snap *sn, uint64_t *va)
{
	uint32_t cnt, func = func_at(sn, *va);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	for (unsigned i = 0; i < 4 && func != UINT32_MAX && funcs[func].thunk_to != LOC_NONE; i++) {
		*va = space_va(sn->space, funcs[func].thunk_to);
		func = func_at(sn, *va);
	}
	return func;
}

/* --- what is stated ------------------------------------------------------------------------------------------------------------ */
static bool has_word(const char *s, size_t len, const char *word)
{
	return s && memmem(s, len, word, strlen(word)) != NULL;
}

/* Adds a parameter by its text; false: where it goes is not plain. */
static bool add_param(struct dec_proto *p, const char *s, size_t len)
{
	bool is_pointer = memchr(s, '*', len) || memchr(s, '[', len);
	bool is_float = has_word(s, len, "float"), is_double = has_word(s, len, "double");
	if (!is_pointer && (has_word(s, len, "struct ") || has_word(s, len, "union ") || has_word(s, len, "_Complex") ||
			    has_word(s, len, "__int128") || has_word(s, len, "long double") || has_word(s, len, "div_t")))
		return false;
	if (!is_pointer && (is_float || is_double)) {
		if (p->vec_cnt < 8)
			p->vecs[p->vec_cnt++] = is_double ? 64 : 32;
	} else if (p->int_cnt < 6) {
		p->ints[p->int_cnt++] = 64;
	} else {
		p->stack_cnt++;
	}
	return true;
}

/* A prototype's text as where its parts go; false: not plain. */
static bool read_stated(struct ses_text t, struct dec_proto *ret)
{
	const char *open = t.s && t.len ? memchr(t.s, '(', t.len) : NULL;
	if (!open)
		return false;
	size_t head = (size_t)(open - t.s), depth = 0, from = head + 1;
	bool is_pointer = memchr(t.s, '*', head) != NULL, has_double = has_word(t.s, head, "double ");
	if (!is_pointer && (has_word(t.s, head, "struct ") || has_word(t.s, head, "union ") || has_word(t.s, head, "_Complex")))
		return false;
	*ret = (struct dec_proto){.is_sure = true, .result = DEC_R_INT, .result_bits = 64};
	if (!is_pointer && has_word(t.s, head, "void "))
		ret->result = DEC_R_NONE;
	else if (!is_pointer && (has_double || has_word(t.s, head, "float ")))
		ret->result = has_word(t.s, head, "long double ") ? DEC_R_X87 : DEC_R_VEC;
	for (size_t i = head; i < t.len; i++) {
		depth += t.s[i] == '(' || t.s[i] == '[';
		bool ends = (t.s[i] == ',' || t.s[i] == ')') && depth == 1;
		if (ends) {
			const char *s = t.s + from;
			size_t len = i - from;
			if (has_word(s, len, "..."))
				ret->is_variadic = true;
			else if (len && !(len == 4 && !memcmp(s, "void", 4)) && !add_param(ret, s, len))
				return false;
			from = i + 1;
		}
		depth -= t.s[i] == ')' || t.s[i] == ']';
		if (!depth)
			return true;
	}
	return false;
}

/* --- what callers have to know, of what is outside -------------------------------------------------------------------------------- */
/* How many arguments a prototype has, when all are in general registers; -1: not so, or not known. */
static int plain_args(struct ses_text proto)
{
	struct dec_proto p;
	bool is_plain = read_stated(proto, &p) && !p.is_variadic && !p.vec_cnt && !p.stack_cnt;
	/* va_list is an array, whose address goes there. */
	return is_plain ? p.int_cnt : -1;
}

static void outside(struct ses_snap *sn, uint64_t va, struct dec_callee *ret)
{
	struct arena a = {0};
	int args = plain_args(ses_prototype_at(sn, va, &a, NULL));
	if (args >= 0)
		dec_callee_plain(lift_machine(sn->arch->id), (unsigned)args, ret);
	arena_fini(&a);
}

/* --- what the code says --------------------------------------------------------------------------------------------------------- */
static bool is_import(const struct ses_snap *sn, uint64_t va)
{
	uint32_t loc = space_loc(sn->space, va);
	return loc != LOC_NONE && image_import_at(sn->im, loc);
}

static void ask(struct look *l, uint32_t func)
{
	if (!l->p->looked)
		return;
	if (VEC_PUSH(&l->p->asks, func))
		l->p->ask_cnt[l->func]++;
	else
		l->p->has_failed = true;
}

static void callee(void *ctx, uint64_t va, struct dec_callee *ret)
{
	struct look *l = ctx;
	uint32_t func = ses_proto_behind_thunks(l->sn, &va);
	if (is_import(l->sn, va)) {
		outside(l->sn, va, ret);
		return;
	}
	/* Of another function of the target nobody knows what it leaves alone, and compilers do. */
	memcpy(ret->may_keep, ret->changes, sizeof(ret->may_keep));
	if (func == UINT32_MAX)
		return;
	ask(l, func);
	if (l->p->state[func] != P_NONE)
		*ret = l->p->callees[func];
}

static bool is_start(void *ctx, uint64_t va)
{
	const struct look *l = ctx;
	return func_at(l->sn, va) != UINT32_MAX;
}

static bool known(void *ctx, uint64_t va, struct dec_proto *ret)
{
	struct look *l = ctx;
	uint32_t cnt, from = func_at(l->sn, va), func = ses_proto_behind_thunks(l->sn, &va);
	const struct image_func *funcs = image_funcs(l->sn->im, &cnt);
	bool ends = (from < cnt && funcs[from].flags & IMAGE_FN_NORETURN) || (func < cnt && funcs[func].flags & IMAGE_FN_NORETURN);
	struct arena a = {0};
	bool is_stated = read_stated(ses_prototype_at(l->sn, va, &a, NULL), ret);
	arena_fini(&a);
	ret->is_noreturn = ends;
	if (is_stated)
		return true;
	if (func == UINT32_MAX)
		return false;
	ask(l, func);
	*ret = l->p->list[func];
	ret->is_noreturn = ends;
	return l->p->state[func] != P_NONE;
}

static void add_wants(struct dec_wants *to, const struct dec_wants *w)
{
	to->places |= w->places;
	to->rax_bits = MAX(to->rax_bits, w->rax_bits);
}

static void wants(void *ctx, uint64_t va, const struct dec_wants *w, bool is_through)
{
	struct look *l = ctx;
	uint32_t func = ses_proto_behind_thunks(l->sn, &va);
	if (func == UINT32_MAX)
		return;
	const struct through t = {l->func, func, *w};
	if (!is_through)
		add_wants(&l->p->wants[func], w);
	else if (!VEC_PUSH(&l->p->through, t))
		l->p->has_failed = true;
}

static void look_at(struct ses_snap *sn, struct ses_protos *p, uint32_t func, struct arena *a)
{
	bool is_other;
	struct look l = {sn, p, func};
	const struct dec_proto_opts opts = {known, wants, &l};
	const struct dec_opts dec = {.callee = callee, .is_start = is_start, .ctx = &l};
	struct dec_callee c = {.stack_args = -1};
	struct ir_func *f;
	struct lift_stats stats;
	struct dec_proto proto;
	p->looked[func] = ++p->clock;
	p->ask_first[func] = (uint32_t)p->asks.cnt;
	p->ask_cnt[func] = 0;
	struct err *e = lift_image_func(a, sn->im, func, &f, &stats);
	if (!e)
		e = dec_proto_of(f, &opts, &proto);
	is_other = e && p->state[func] != P_NONE;
	if (!e) {
		dec_callee_conventional(f->machine, &c);
		memcpy(c.may_keep, c.changes, sizeof(c.may_keep));
		dec_callee_of(f, &dec, &c);
		is_other = memcmp(&p->list[func], &proto, sizeof(proto)) != 0 || memcmp(&p->callees[func], &c, sizeof(c)) != 0;
		p->list[func] = proto;
		p->callees[func] = c;
	}
	p->state[func] = e ? P_NONE : P_KNOWN;
	if (is_other)
		p->changed[func] = ++p->clock;
	err_free(e);
	arena_reset(a);
}

/* Whether something that it asked about is no longer as it was then. */
static bool is_outdated(const struct ses_protos *p, uint32_t func)
{
	const uint32_t *asks = p->asks.data + p->ask_first[func];
	for (uint32_t i = 0; i < p->ask_cnt[func]; i++)
		if (p->changed[asks[i]] > p->looked[func])
			return true;
	return false;
}

/* What calls itself, by way of others, is first taken to read nothing, to change all and to give any result; the more is known the less of
 * that is so, until nothing changes. */
static void expect_best(struct ses_snap *sn, struct ses_protos *p, uint32_t func)
{
	const struct ir_machine *m = lift_machine(sn->arch->id);
	p->list[func] = (struct dec_proto){.result = DEC_R_INT, .result_bits = 8, .more = DEC_L_XMM0 | DEC_L_ST0};
	/* Something: nothing at all would be what nobody knows. */
	uint16_t flag = m ? ir_loc_find(m, "cf", 2) : IR_LOC_NONE;
	if (flag != IR_LOC_NONE)
		p->list[func].changes[flag / 64] |= (uint64_t)1 << flag % 64;
	p->callees[func] = (struct dec_callee){.stack_args = -1};
	dec_callee_conventional(m, &p->callees[func]);
	dec_callee_plain(m, 0, &p->callees[func]);
}

static void expect_worst(struct ses_snap *sn, struct ses_protos *p, uint32_t func)
{
	struct dec_callee *c = &p->callees[func];
	*c = (struct dec_callee){.stack_args = -1};
	dec_callee_conventional(lift_machine(sn->arch->id), c);
	memcpy(c->may_keep, c->changes, sizeof(c->may_keep));
}

/* --- the order --------------------------------------------------------------------------------------------------------------------- */
struct frame {
	uint32_t func;
	uint64_t edge; /* the next to follow */
};

uint64_t ses_proto_first_edge(const struct ses_edge_row *rows, uint64_t cnt, uint32_t caller)
{
	uint64_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		if (rows[mid].caller < caller)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct order {
	const struct image_func *funcs;
	const struct ses_edge_row *rows;
	uint64_t row_cnt;
	struct frame *stack;
	uint32_t depth;
	uint32_t *seen, *low; /* per function: when it was seen, from 1; the earliest it leads back to */
	uint32_t clock;
	uint32_t *open;       /* those that are not in `list` yet */
	uint32_t open_cnt;
	uint8_t *is_open;
	uint32_t *list;       /* functions, callees before callers, */
	uint32_t *group;      /* and where each begins how many there are that call each other; 0: in a group */
	uint32_t cnt;
};

static void order_begin(struct order *o, uint32_t func)
{
	o->seen[func] = o->low[func] = ++o->clock;
	o->open[o->open_cnt++] = func;
	o->is_open[func] = 1;
	o->stack[o->depth++] = (struct frame){func, ses_proto_first_edge(o->rows, o->row_cnt, o->funcs[func].loc)};
}

static void order_end(struct order *o)
{
	uint32_t func = o->stack[--o->depth].func, n = 0;
	if (o->depth)
		o->low[o->stack[o->depth - 1].func] = MIN(o->low[o->stack[o->depth - 1].func], o->low[func]);
	if (o->low[func] != o->seen[func])
		return;
	/* The last seen are the deepest. */
	uint32_t first = o->cnt;
	do {
		uint32_t f = o->open[--o->open_cnt];
		o->is_open[f] = 0;
		o->list[o->cnt++] = f;
		n++;
	} while (o->list[o->cnt - 1] != func);
	o->group[first] = n;
}

/* Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972). */
static void order_from(struct ses_snap *sn, struct order *o, uint32_t func, uint32_t cnt)
{
	order_begin(o, func);
	while (o->depth) {
		struct frame *t = &o->stack[o->depth - 1];
		if (t->edge == o->row_cnt || o->rows[t->edge].caller != o->funcs[t->func].loc) {
			order_end(o);
			continue;
		}
		uint32_t to = image_func_starting(sn->im, o->rows[t->edge++].callee);
		if (to < cnt && !o->seen[to])
			order_begin(o, to);
		else if (to < cnt && o->is_open[to])
			o->low[t->func] = MIN(o->low[t->func], o->seen[to]);
	}
}

static bool make_order(struct ses_snap *sn, struct arena *a, struct order *o)
{
	uint32_t cnt;
	*o = (struct order){.funcs = image_funcs(sn->im, &cnt)};
	struct err *e = ses_edges(sn, NULL, &o->rows, &o->row_cnt);
	o->stack = ARENA_RAW_ARRAY(a, struct frame, cnt + (size_t)1);
	o->seen = ARENA_ARRAY(a, uint32_t, cnt + (size_t)1);
	o->low = ARENA_ARRAY(a, uint32_t, cnt + (size_t)1);
	o->open = ARENA_RAW_ARRAY(a, uint32_t, cnt + (size_t)1);
	o->is_open = ARENA_ARRAY(a, uint8_t, cnt + (size_t)1);
	o->list = ARENA_RAW_ARRAY(a, uint32_t, cnt + (size_t)1);
	o->group = ARENA_ARRAY(a, uint32_t, cnt + (size_t)1);
	bool ok = !e && o->stack && o->seen && o->low && o->open && o->is_open && o->list && o->group;
	err_free(e);
	for (uint32_t i = 0; i < cnt && ok; i++)
		if (!o->seen[i])
			order_from(sn, o, i, cnt);
	return ok;
}

static uint8_t places_of(const struct dec_proto *d)
{
	static const uint8_t places[] = {[DEC_R_NONE] = 0, [DEC_R_INT] = DEC_L_RAX, [DEC_R_PAIR] = DEC_L_RAX, [DEC_R_VEC] = DEC_L_XMM0,
					 [DEC_R_X87] = DEC_L_ST0};
	return places[d->result] | d->more;
}

/* Results that the code leaves open: what callers use, what is handed on to where it is used, and all there may be of those without
 * callers. */
static void decide(const struct ses_snap *sn, struct ses_protos *p)
{
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	for (uint32_t i = 0; i < cnt; i++)
		if (p->list[i].result && !funcs[i].caller_cnt)
			add_wants(&p->wants[i], &(struct dec_wants){places_of(&p->list[i]), p->list[i].result_bits});
	/* What is not there at every return, callers only seem to use: they hand it on to somebody of whom nothing is known. */
	for (uint32_t i = 0; i < cnt; i++)
		p->wants[i].places &= (uint8_t)(p->list[i].may | DEC_L_RAX | DEC_L_XMM0);
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < p->through.cnt; i++) {
			const struct through *t = &p->through.data[i];
			const struct dec_wants *from = &p->wants[t->from];
			struct dec_wants was = p->wants[t->to], now = {from->places & t->w.places, MIN(from->rax_bits, t->w.rax_bits)};
			now.places &= (uint8_t)(p->list[t->to].may | DEC_L_RAX | DEC_L_XMM0);
			if (!(now.places & DEC_L_RAX))
				now.rax_bits = 0;
			add_wants(&p->wants[t->to], &now);
			changed |= was.places != p->wants[t->to].places || was.rax_bits != p->wants[t->to].rax_bits;
		}
	}
	for (uint32_t i = 0; i < cnt; i++) {
		struct dec_proto *d = &p->list[i];
		uint8_t w = p->wants[i].places;
		if (d->result == DEC_R_PAIR && !(w & DEC_L_RDX))
			d->result = DEC_R_INT;
		if (!d->is_sure && !(w & places_of(d)))
			d->result = DEC_R_NONE;
		/* What is used is there. */
		if (d->result == DEC_R_NONE && w & DEC_L_RAX)
			d->result = DEC_R_INT;
		else if (d->result == DEC_R_NONE && w & DEC_L_XMM0)
			d->result = DEC_R_VEC;
	}
}

/* --- signatures ------------------------------------------------------------------------------------------------------------------ */
static uint8_t int_width(unsigned bits)
{
	return !bits || bits > 32 ? IR_W64 : bits > 16 ? IR_W32 : bits > 8 ? IR_W16 : IR_W8;
}

static uint8_t vec_width(unsigned bits)
{
	return bits > 64 ? IR_W128 : bits && bits <= 32 ? IR_W32 : IR_W64;
}

static void add_arg(struct ir_sig *s, const struct ir_machine *m, const struct dec_proto *d, const char *name, uint8_t width)
{
	uint16_t loc = ir_loc_find(m, name, strlen(name));
	bool is_whole = d->flows[loc / 64] >> loc % 64 & 1;
	s->args[s->arg_cnt++] = (struct ir_sig_arg){loc, is_whole ? m->locs[loc].width : width};
}

static struct ir_sig sig_of(const struct dec_proto *d, const struct ir_machine *m)
{
	static const char ints[6][4] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
	struct ir_sig s = {.result = IR_LOC_NONE};
	char vec[8];
	for (unsigned i = 0; i < d->int_cnt; i++)
		add_arg(&s, m, d, ints[i], int_width(d->ints[i]));
	for (unsigned i = 0; i < d->vec_cnt; i++) {
		snprintf(vec, sizeof(vec), "xmm%u", i);
		add_arg(&s, m, d, vec, vec_width(d->vecs[i]));
	}
	if (d->result == DEC_R_INT || d->result == DEC_R_PAIR) {
		s.result = ir_loc_find(m, "rax", 3);
		s.result_width = int_width(d->result_bits);
	} else if (d->result == DEC_R_VEC) {
		s.result = ir_loc_find(m, "xmm0", 4);
		s.result_width = vec_width(d->result_bits);
	}
	return s;
}

static void put_leaves(const struct ir_machine *m, unsigned places, const struct ir_sig *s, uint64_t *words)
{
	static const char names[][5] = {"rax", "rdx", "xmm0", "f7", "xmm1", "f6"};
	for (unsigned k = 0; k < ARRAY_LEN(names); k++) {
		uint16_t loc = ir_loc_find(m, names[k], strlen(names[k]));
		if (places >> k & 1 && loc != IR_LOC_NONE && loc != s->result)
			words[loc / 64] |= (uint64_t)1 << loc % 64;
	}
}

/* What is stated of a function says how it is called, else its code does. False: it keeps to the state, as it takes more arguments than these,
 * or looks at its return address. */
static bool find_proto(struct ses_snap *sn, const struct ses_protos *p, uint64_t va, struct arena *a, struct dec_proto *ret)
{
	uint32_t to = ses_proto_behind_thunks(sn, &va);
	bool is_stated = read_stated(ses_prototype_at(sn, va, a, NULL), ret), is_known = to != UINT32_MAX && p->state[to] == P_KNOWN;
	if (!is_stated && (is_import(sn, va) || !is_known))
		return false;
	if (!is_stated)
		*ret = p->list[to];
	else
		ret->result_bits = 0;
	return !ret->is_variadic && ret->result != DEC_R_X87 && !(is_known && (p->list[to].is_variadic || p->list[to].reads_return));
}

/* A result is as wide as the widest use of it, too. */
static void make_sigs(struct ses_snap *sn, struct ses_protos *p, uint32_t cnt)
{
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	const struct ir_machine *m = lift_machine(sn->arch->id);
	struct arena a = {0};
	/* Elsewhere arguments are not in registers. */
	for (uint32_t i = 0; i < cnt && m && m->addr_width == IR_W64; i++) {
		uint64_t va = space_va(sn->space, funcs[i].loc), aim = va;
		uint32_t to = ses_proto_behind_thunks(sn, &aim);
		struct dec_proto d;
		struct ir_sig none = {.result = IR_LOC_NONE};
		struct dec_wants w = p->wants[i];
		p->has_sig[i] = find_proto(sn, p, va, &a, &d);
		arena_reset(&a);
		if (to != UINT32_MAX)
			add_wants(&w, &p->wants[to]);
		if (p->has_sig[i]) {
			uint8_t used = d.result == DEC_R_VEC ? 0 : w.rax_bits;
			d.result_bits = d.result_bits ? MAX(d.result_bits, used) : 64;
			p->sigs[i] = sig_of(&d, m);
		} else if (p->state[i] == P_KNOWN) {
			w.places |= places_of(&p->list[i]);
		}
		put_leaves(m, w.places, p->has_sig[i] ? &p->sigs[i] : &none, &p->leaves[(size_t)i * DEC_LOC_WORDS]);
	}
	arena_fini(&a);
}

/* --- all of them ----------------------------------------------------------------------------------------------------------------- */
/* Functions that call each other: those whose callees became others again and again, until nothing else is known of any. */
static void look_at_group(struct ses_snap *sn, struct ses_protos *p, const uint32_t *funcs, uint32_t cnt, struct arena *a)
{
	p->asks.cnt = 0;
	for (uint32_t i = 0; i < cnt; i++)
		look_at(sn, p, funcs[i], a);
	bool is_other = true;
	for (unsigned round = 1; round < ROUNDS_MAX && is_other; round++) {
		is_other = false;
		for (uint32_t i = 0; i < cnt; i++) {
			if (!is_outdated(p, funcs[i]))
				continue;
			look_at(sn, p, funcs[i], a);
			is_other = true;
		}
	}
	is_other = false;
	for (uint32_t i = 0; i < cnt; i++)
		is_other |= is_outdated(p, funcs[i]);
	for (uint32_t i = 0; i < cnt && is_other; i++)
		expect_worst(sn, p, funcs[i]);
}

static bool look_at_all(struct ses_snap *sn, struct ses_protos *p, uint32_t cnt)
{
	struct arena own = {0}, a = {0};
	struct order o;
	p->looked = calloc(cnt + (size_t)1, sizeof(*p->looked));
	p->changed = calloc(cnt + (size_t)1, sizeof(*p->changed));
	p->ask_first = calloc(cnt + (size_t)1, sizeof(*p->ask_first));
	p->ask_cnt = calloc(cnt + (size_t)1, sizeof(*p->ask_cnt));
	bool ok = p->looked && p->changed && p->ask_first && p->ask_cnt && make_order(sn, &own, &o);
	for (uint32_t i = 0; i < cnt && ok; i++)
		expect_best(sn, p, i);
	for (uint32_t i = 0; i < o.cnt && ok; i += o.group[i])
		look_at_group(sn, p, o.list + i, o.group[i], &a);
	arena_fini(&a);
	arena_fini(&own);
	free_marks(p);
	return ok && !p->has_failed;
}

/* --- kept in cache.db ------------------------------------------------------------------------------------------------------------- */
#define KEPT_KIND "prototypes"
#define KEPT_VERSION 8        /* to be counted up when what is found in the same image changes */
#define KEPT_ROW_LEN 65536
#define KEPT_LEN_MAX (16u << 20)

struct part {
	void *data;
	size_t size; /* of each function's */
};

enum { PART_CNT = 6 };

static size_t parts_of(struct ses_protos *p, struct part *ret)
{
	const struct part parts[PART_CNT] = {{p->list, sizeof(*p->list)}, {p->callees, sizeof(*p->callees)}, {p->sigs, sizeof(*p->sigs)},
					     {p->leaves, DEC_LOC_WORDS * sizeof(*p->leaves)}, {p->state, 1}, {p->has_sig, 1}};
	size_t each = 0;
	for (unsigned i = 0; i < PART_CNT; i++)
		each += parts[i].size;
	memcpy(ret, parts, sizeof(parts));
	return each;
}

static void mix(uint64_t *key, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	for (size_t i = 0; i < len; i++)
		for (unsigned k = 0; k < 4; k++)
			key[k] = (key[k] ^ bytes[i]) * (0x100000001b3 + 2 * k);
}

/* All that prototypes come from: the image, and what is stated of functions. */
static void find_key(struct ses_snap *sn, uint32_t cnt, uint64_t *key)
{
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	const uint64_t head[] = {KEPT_VERSION, cnt, sizeof(struct dec_proto), sizeof(struct dec_callee), sizeof(struct ir_sig), sn->gen,
				 ses_snap_bias(sn)};
	struct arena a = {0};
	for (unsigned k = 0; k < 4; k++)
		key[k] = 0xcbf29ce484222325u + k;
	mix(key, head, sizeof(head));
	mix(key, funcs, cnt * sizeof(*funcs));
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_text t = ses_prototype_at(sn, space_va(sn->space, funcs[i].loc), &a, NULL);
		mix(key, t.s, t.len);
		mix(key, "", 1);
		arena_reset(&a);
	}
	arena_fini(&a);
}

static bool fits(const uint64_t *words, uint32_t loc_cnt)
{
	for (unsigned l = loc_cnt; l < 64 * DEC_LOC_WORDS; l++)
		if (words[l / 64] >> l % 64 & 1)
			return false;
	return true;
}

static bool is_loc(const struct ir_machine *m, uint16_t loc, uint8_t width)
{
	return loc < m->loc_cnt && width && width <= m->locs[loc].width;
}

/* The file may say anything. */
static bool is_sound(const struct ses_protos *p, const struct ir_machine *m, uint32_t i)
{
	const struct dec_proto *d = &p->list[i];
	const struct dec_callee *c = &p->callees[i];
	const struct ir_sig *s = &p->sigs[i];
	const bool *flags[] = {&d->is_noreturn, &d->reads_return, &d->is_variadic, &d->is_sure};
	bool ok = p->state[i] <= P_NONE && p->has_sig[i] <= 1 && d->int_cnt <= 6 && d->vec_cnt <= 8 && d->stack_cnt <= 64 &&
		  d->result <= DEC_R_X87 && s->arg_cnt <= IR_SIG_ARG_MAX && fits(d->flows, m->loc_cnt) && fits(d->changes, m->loc_cnt) &&
		  fits(c->reads, m->loc_cnt) && fits(c->changes, m->loc_cnt) && fits(c->may_keep, m->loc_cnt) &&
		  fits(&p->leaves[(size_t)i * DEC_LOC_WORDS], m->loc_cnt);
	for (unsigned k = 0; k < ARRAY_LEN(flags); k++)
		ok = ok && *(const uint8_t *)flags[k] <= 1;
	if (ok && p->has_sig[i] && s->result != IR_LOC_NONE)
		ok = is_loc(m, s->result, s->result_width);
	for (unsigned k = 0; ok && p->has_sig[i] && k < s->arg_cnt; k++)
		ok = is_loc(m, s->args[k].loc, s->args[k].width);
	return ok;
}

static bool load_kept(struct ses_snap *sn, struct ses_protos *p, uint32_t cnt, const uint64_t *key)
{
	struct part parts[PART_CNT];
	size_t len = parts_of(p, parts) * cnt, at = 0;
	struct arena a = {0};
	const struct ir_machine *m = lift_machine(sn->arch->id);
	struct store_cached_list l = store_cache_load(sn->ses->store, sn->ses->sha256, KEPT_KIND, 0, len / KEPT_ROW_LEN, &a);
	uint8_t *all = l.cnt == len / KEPT_ROW_LEN + 1 ? arena_alloc(&a, len + 1) : NULL;
	bool ok = all != NULL;
	for (uint32_t i = 0; ok && i < l.cnt; i++) {
		size_t want = MIN(len - at, (size_t)KEPT_ROW_LEN);
		ok = l.rows[i].addr == i && l.rows[i].len == want + (i + 1 == l.cnt) && !memcmp(l.rows[i].key, key, 32);
		if (ok)
			memcpy(all + at, l.rows[i].value, want);
		at += want;
	}
	for (size_t k = 0, from = 0; ok && k < PART_CNT; from += parts[k++].size * cnt)
		memcpy(parts[k].data, all + from, parts[k].size * cnt);
	for (uint32_t i = 0; ok && i < cnt; i++)
		ok = is_sound(p, m, i);
	for (size_t k = 0; all && !ok && k < PART_CNT; k++)
		memset(parts[k].data, 0, parts[k].size * cnt);
	arena_fini(&a);
	return ok;
}

/* In rows of KEPT_ROW_LEN bytes; the last has a byte more, so that none is empty. */
static void put_kept(struct ses_snap *sn, struct ses_protos *p, uint32_t cnt, const uint64_t *key)
{
	struct part parts[PART_CNT];
	size_t len = parts_of(p, parts) * cnt;
	uint32_t row_cnt = (uint32_t)(len / KEPT_ROW_LEN + 1);
	if (len > KEPT_LEN_MAX)
		return;
	struct arena a = {0};
	uint8_t *all = arena_alloc(&a, len + 1);
	struct store_cached *rows = ARENA_ARRAY(&a, struct store_cached, row_cnt);
	for (size_t k = 0, from = 0; all && k < PART_CNT; from += parts[k++].size * cnt)
		memcpy(all + from, parts[k].data, parts[k].size * cnt);
	for (uint32_t i = 0; all && rows && i < row_cnt; i++) {
		size_t at = (size_t)i * KEPT_ROW_LEN;
		rows[i] = (struct store_cached){.addr = i, .value = all + at, .len = (uint32_t)MIN(len - at, (size_t)KEPT_ROW_LEN)};
		memcpy(rows[i].key, key, 32);
	}
	if (all && rows) {
		all[len] = 0;
		rows[row_cnt - 1].len++;
		(void)store_cache_put(sn->ses->store, sn->ses->sha256, KEPT_KIND, rows, row_cnt);
	}
	arena_fini(&a);
}

static struct ses_protos *make_empty(uint32_t cnt)
{
	struct ses_protos *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->list = calloc(cnt + (size_t)1, sizeof(*p->list));
	p->callees = calloc(cnt + (size_t)1, sizeof(*p->callees));
	p->sigs = calloc(cnt + (size_t)1, sizeof(*p->sigs));
	p->leaves = calloc((cnt + (size_t)1) * DEC_LOC_WORDS, sizeof(*p->leaves));
	p->state = calloc(cnt + (size_t)1, 1);
	p->has_sig = calloc(cnt + (size_t)1, 1);
	p->wants = calloc(cnt + (size_t)1, sizeof(*p->wants));
	if (p->list && p->callees && p->sigs && p->leaves && p->state && p->has_sig && p->wants)
		return p;
	ses_protos_free(p);
	return NULL;
}

static struct ses_protos *make(struct ses_snap *sn)
{
	uint32_t cnt;
	image_funcs(sn->im, &cnt);
	struct ses_protos *p = make_empty(cnt);
	bool is_known = cnt <= FUNCS_MAX && lift_machine(sn->arch->id);
	if (!p || !is_known)
		return p;
	uint64_t key[4];
	bool is_kept = !sn->is_preview && sn->ses->has_sha256 && sn->ses->store;
	if (is_kept) {
		find_key(sn, cnt, key);
		if (load_kept(sn, p, cnt, key))
			return p;
	}
	if (!look_at_all(sn, p, cnt)) {
		ses_protos_free(p);
		return NULL;
	}
	decide(sn, p);
	make_sigs(sn, p, cnt);
	if (is_kept)
		put_kept(sn, p, cnt, key);
	return p;
}

static const struct ses_protos *protos_of(struct ses_snap *sn)
{
	/* Once, however many ask at the same time. */
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	if (sn->protos)
		return sn->protos;
	pthread_mutex_lock(&making);
	if (!sn->protos)
		sn->protos = make(sn);
	pthread_mutex_unlock(&making);
	return sn->protos;
}

void ses_proto_callee(struct ses_snap *sn, uint64_t va, struct dec_callee *ret)
{
	struct look l = {.sn = sn, .p = (struct ses_protos *)protos_of(sn)};
	if (l.p)
		callee(&l, va, ret);
}

bool ses_proto_of(struct ses_snap *sn, uint32_t func, struct dec_proto *ret)
{
	const struct ses_protos *p = protos_of(sn);
	if (!p || p->state[func] != P_KNOWN)
		return false;
	*ret = p->list[func];
	return true;
}

bool ses_proto_leaves(struct ses_snap *sn, uint64_t va, uint64_t *ret)
{
	uint32_t func = func_at(sn, va);
	const struct ses_protos *p = func == UINT32_MAX ? NULL : protos_of(sn);
	if (!p || p->state[func] != P_KNOWN)
		return false;
	memcpy(ret, &p->leaves[(size_t)func * DEC_LOC_WORDS], DEC_LOC_WORDS * sizeof(*ret));
	return true;
}

bool ses_proto_sig(struct ses_snap *sn, uint64_t va, struct ir_sig *ret)
{
	uint32_t func = func_at(sn, va);
	const struct ses_protos *p = func == UINT32_MAX ? NULL : protos_of(sn);
	if (!p || !p->has_sig[func])
		return false;
	*ret = p->sigs[func];
	return true;
}

/* --- as C --------------------------------------------------------------------------------------------------------------------------- */
static const char *int_name(unsigned bits)
{
	return !bits || bits > 32 ? "uint64_t" : bits > 16 ? "uint32_t" : bits > 8 ? "uint16_t" : "uint8_t";
}

static const char *vec_name(unsigned bits)
{
	return bits && bits <= 32 ? "float" : "double";
}

struct ses_text ses_proto_recovered(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	uint64_t aim = va;
	uint32_t func = ses_proto_behind_thunks(sn, &aim);
	const struct ses_protos *p = func == UINT32_MAX ? NULL : protos_of(sn);
	if (!p || p->state[func] != P_KNOWN)
		return ses_text_of("", 0);
	const struct dec_proto *d = &p->list[func];
	const char *result = d->result == DEC_R_NONE ? "void" : d->result == DEC_R_VEC ? vec_name(d->result_bits)
			     : d->result == DEC_R_X87 ? "long double" : d->result == DEC_R_PAIR ? "unsigned __int128" : int_name(d->result_bits);
	_cleanup_buf_ struct buf b = {0};
	buf_printf(&b, "%s sub_%" PRIx64 "(", result, va);
	const char *sep = "";
	for (unsigned i = 0; i < d->int_cnt; i++, sep = ", ")
		buf_printf(&b, "%s%s", sep, int_name(d->ints[i]));
	for (unsigned i = 0; i < d->vec_cnt; i++, sep = ", ")
		buf_printf(&b, "%s%s", sep, vec_name(d->vecs[i]));
	for (unsigned i = 0; i < d->stack_cnt; i++, sep = ", ")
		buf_printf(&b, "%suint64_t", sep);
	buf_printf(&b, "%s)", d->is_variadic ? *sep ? ", ..." : "..." : *sep ? "" : "void");
	const char *text = b.failed ? NULL : arena_strndup(a, b.data, b.len);
	return text ? ses_text_of(text, b.len) : ses_text_of("", 0);
}

const uint8_t *ses_proto_import_args(struct ses_snap *sn, struct arena *a)
{
	uint32_t cnt;
	const struct image_import *imports = image_imports(sn->im, &cnt);
	uint8_t *args = ARENA_ARRAY(a, uint8_t, cnt + (size_t)1);
	struct arena own = {0};
	for (uint32_t i = 0; args && i < cnt; i++) {
		struct dec_proto p;
		bool is_stated = read_stated(ses_prototype_at(sn, space_va(sn->space, imports[i].loc), &own, NULL), &p);
		/* Of any number of arguments those without names may not be there. */
		args[i] = is_stated ? p.int_cnt : 3;
	}
	/* What is none of the target's. */
	if (args)
		args[cnt] = 3;
	arena_fini(&own);
	return args;
}
