/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_judge.h"

#include "decomp/dec_int.h"
#include "ir/ir_interp.h"

#include <stdio.h>
#include <string.h>

#define STEPS_MAX 20000
#define STACK_AT 0x7f0000008000
#define STACK_LEN 0x8000 /* below the entry's stack pointer: the frame, and what callees leave */
#define POINTERS_AT 0x40000000

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 31) * 0x9e3779b97f4a7c15;
	v = (v ^ v >> 29) * 0xbf58476d1ce4e5b9;
	return v ^ v >> 32;
}

struct side {
	struct ir_run run;
	struct ir_mem mem;
	struct dec_conv conv;
	const struct dec_opts *opts;
	uint64_t seed;
	uint64_t trace;
	uint32_t calls;
	uint64_t entry_sp;
	bool is_cut;     /* an argument depends on what is undefined */
};

/* Small numbers, pointers, anything. */
static uint64_t word_at(uint64_t seed, uint64_t at)
{
	uint64_t r = mix(seed ^ at);
	if (r >> 62 < 2)
		return r >> 61 & 1 ? r & 15 : 0;
	return r >> 62 == 2 ? POINTERS_AT + (r & 0xfffff8) : r;
}

static bool fill(void *ctx, struct ir_page *p)
{
	const struct side *s = ctx;
	const struct dec_opts *o = s->opts;
	for (unsigned i = 0; i < IR_PAGE_LEN; i += 8) {
		uint64_t v = word_at(s->seed, p->va + i);
		if (!o->rodata || !o->rodata(o->ctx, p->va + i, p->bytes + i, 8))
			memcpy(p->bytes + i, &v, 8);
	}
	return true;
}

static void set_start(struct side *s, const struct ir_machine *m)
{
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		if (m->locs[i].cls == IR_LOC_VAR)
			continue;
		for (unsigned k = 0; k < ir_words((enum ir_width)m->locs[i].width); k++)
			s->run.locs[i].w[k] = word_at(s->seed * 977, i * 8 + k);
		unsigned bits = ir_bits((enum ir_width)m->locs[i].width);
		if (bits % 64)
			s->run.locs[i].w[bits / 64] &= ((uint64_t)1 << bits % 64) - 1;
	}
	if (s->conv.df != IR_LOC_NONE)
		s->run.locs[s->conv.df].w[0] = 0;
	s->entry_sp = m->addr_width == IR_W32 ? 0x7f008000 : STACK_AT;
	s->run.locs[m->sp_loc].w[0] = s->entry_sp;
}

static struct dec_callee callee_of(const struct side *s, uint64_t va)
{
	struct dec_callee c = {.stack_args = -1};
	memcpy(c.reads, s->conv.args.w, sizeof(c.reads));
	memcpy(c.changes, s->conv.changes.w, sizeof(c.changes));
	if (s->opts->callee)
		s->opts->callee(s->opts->ctx, va, &c);
	return c;
}

/* Notes what a callee may see, and does what it may do. */
static bool call(struct ir_run *run, uint64_t va)
{
	struct side *s = run->ctx;
	const struct ir_machine *m = run->func->machine;
	unsigned base = m->loc_cnt;
	while (base > 0 && m->locs[base - 1].cls == IR_LOC_VAR)
		base--;
	struct dec_callee callee = callee_of(s, va);
	struct dec_set reads, changes;
	memcpy(reads.w, callee.reads, sizeof(reads.w));
	memcpy(changes.w, callee.changes, sizeof(changes.w));
	s->trace = mix(s->trace ^ va);
	s->trace = mix(s->trace + run->locs[m->sp_loc].w[0]);
	for (unsigned i = 0; i < base; i++) {
		const struct ir_val *v = &run->locs[i];
		if (!dec_set_has(&reads, i))
			continue;
		/* What is undefined may be anything on the other side. */
		if (v->is_undef)
			continue;
		for (unsigned k = 0; k < ir_words((enum ir_width)m->locs[i].width); k++)
			s->trace = mix(s->trace + v->w[k]);
	}
	uint64_t sp = run->locs[m->sp_loc].w[0] + s->conv.ptr_bytes, fault;
	/* The lowest of them: others may be an object's end. */
	uint64_t lowest = s->entry_sp;
	for (unsigned i = 0; i < s->conv.int_arg_cnt; i++) {
		uint64_t at = run->locs[s->conv.int_arg[i]].w[0];
		if (at >= sp && at < lowest && dec_set_has(&reads, s->conv.int_arg[i]) && !run->locs[s->conv.int_arg[i]].is_undef)
			lowest = at;
	}
	uint8_t byte = (uint8_t)mix(s->trace);
	if (lowest < s->entry_sp)
		(void)ir_mem_write(&s->mem, lowest, &byte, 1, &fault);
	s->calls++;
	for (unsigned i = 0; i < base; i++) {
		if (!dec_set_has(&changes, i))
			continue;
		run->locs[i] = (struct ir_val){{0}};
		unsigned bits = ir_bits((enum ir_width)m->locs[i].width);
		run->locs[i].w[0] = word_at(s->trace, i);
		if (bits < 64)
			run->locs[i].w[0] &= ((uint64_t)1 << bits) - 1;
	}
	run->locs[m->sp_loc].w[0] = sp;
	return true;
}

static bool intrin(struct ir_run *run, const struct ir_intrin *in, const struct ir_val *args, struct ir_val *out)
{
	struct side *s = run->ctx;
	uint64_t h = in->va;
	for (unsigned i = 0; i < in->in_cnt + (in->mem_len ? 1u : 0u); i++)
		h = mix(h ^ (args[i].is_undef ? 0 : args[i].w[0]));
	s->trace = mix(s->trace ^ h);
	for (unsigned i = 0; i < in->out_cnt; i++)
		out[i].w[0] = mix(h + i);
	return true;
}

static bool side_run(struct side *s, struct arena *a, struct ir_func *f, const struct dec_opts *opts, uint64_t seed, const struct dec_conv *conv)
{
	*s = (struct side){.conv = *conv, .opts = opts, .seed = seed, .trace = 1};
	s->mem = (struct ir_mem){.arena = a, .fill = fill, .ctx = s, .page_limit = 4096};
	s->run = (struct ir_run){.func = f, .arena = a, .mem = &s->mem, .ctx = s, .step_limit = STEPS_MAX, .call = call, .intrin = intrin};
	s->run.locs = ARENA_ARRAY(a, struct ir_val, f->machine->loc_cnt + (size_t)1);
	if (!s->run.locs)
		return false;
	set_start(s, f->machine);
	ir_interp(&s->run);
	return true;
}

static bool is_frame(const struct side *s, uint64_t va)
{
	return va < s->entry_sp && va >= s->entry_sp - STACK_LEN;
}

static bool same_page(const struct side *x, struct side *y, const struct ir_page *p, char *why, size_t cap)
{
	const struct ir_page *q = ir_mem_page(&y->mem, p->va);
	for (unsigned k = 0; q && k < IR_PAGE_LEN; k++) {
		bool is_undef = (p->undef && p->undef[k / 8] >> k % 8 & 1) || (q->undef && q->undef[k / 8] >> k % 8 & 1);
		if (p->bytes[k] == q->bytes[k] || is_undef || is_frame(x, p->va + k))
			continue;
		snprintf(why, cap, "memory at 0x%llx is 0x%x, made 0x%x", (unsigned long long)(p->va + k), p->bytes[k], q->bytes[k]);
		return false;
	}
	return q != NULL;
}

static bool same_memory(struct side *x, struct side *y, char *why, size_t cap)
{
	for (uint32_t i = 0; i < x->mem.page_cap; i++) {
		const struct ir_page *p = x->mem.pages[i];
		if (p && p->is_written && !same_page(x, y, p, why, cap))
			return false;
	}
	return true;
}

static bool same_locs(const struct side *x, const struct side *y, const struct ir_machine *m, char *why, size_t cap)
{
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		const struct ir_val *a = &x->run.locs[i], *b = &y->run.locs[i];
		bool counts = dec_set_has(&x->conv.results, i) || dec_set_has(&x->conv.keeps, i);
		if (!counts || a->is_undef || !memcmp(a->w, b->w, sizeof(a->w)))
			continue;
		snprintf(why, cap, "%s is 0x%llx, made 0x%llx", m->locs[i].name, (unsigned long long)a->w[0], (unsigned long long)b->w[0]);
		return false;
	}
	return true;
}

/* Divisions are one way to trap, whichever operation does it. */
static unsigned trap_of(uint8_t kind)
{
	unsigned op = ir_kind_info((enum ir_kind)kind)->op;
	return op == IR_DIV || op == IR_DIVW ? IR_DIV_UQUOT : kind;
}

static enum dec_verdict compare(struct side *x, struct side *y, const struct ir_machine *m, char *why, size_t cap)
{
	enum ir_exit e = x->run.exit;
	bool is_end = e == IR_EXIT_RET || e == IR_EXIT_JUMP || (e == IR_EXIT_TRAP && x->run.kind != IR_TRAP_END);
	if (!is_end || y->run.exit == IR_EXIT_BUDGET || y->run.exit == IR_EXIT_NOMEM)
		return DEC_V_CUT;
	if (e != y->run.exit || (e == IR_EXIT_TRAP ? trap_of(x->run.kind) != trap_of(y->run.kind) : x->run.va != y->run.va)) {
		snprintf(why, cap, "ends in %s 0x%llx, made in %s 0x%llx", ir_exit_name(e), (unsigned long long)x->run.va, ir_exit_name(y->run.exit),
			 (unsigned long long)y->run.va);
		return DEC_V_DIFFERS;
	}
	if (x->calls != y->calls || x->trace != y->trace) {
		snprintf(why, cap, "%u calls, made %u, or other arguments", x->calls, y->calls);
		return DEC_V_DIFFERS;
	}
	if (e != IR_EXIT_TRAP && !same_locs(x, y, m, why, cap))
		return DEC_V_DIFFERS;
	return same_memory(x, y, why, cap) && same_memory(y, x, why, cap) ? DEC_V_SAME : DEC_V_DIFFERS;
}

enum dec_verdict dec_judge(struct ir_func *lifted, struct ir_func *made, const struct dec_opts *opts, uint64_t seed, char *why, size_t cap)
{
	struct arena a = {0};
	struct dec_conv conv;
	struct side *sides = ARENA_ARRAY(&a, struct side, 2);
	enum dec_verdict v = DEC_V_CUT;
	dec_conv_of(lifted->machine, &conv);
	*why = '\0';
	if (sides && side_run(&sides[0], &a, lifted, opts, seed, &conv) && side_run(&sides[1], &a, made, opts, seed, &conv))
		v = compare(&sides[0], &sides[1], lifted->machine, why, cap);
	arena_fini(&a);
	return v;
}
