/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <string.h>

/* What functions promise each other: the convention, and what their code says. */

bool dec_target(const struct ir_func *f, ir_ref r, uint64_t *ret_va)
{
	const struct ir_rec *rec = dec_rec(f, r);
	return ir_const_get(f, rec && rec->op == IR_GADDR ? rec->a : r, ret_va);
}

static struct dec_callee conventional(const struct dec_conv *conv)
{
	struct dec_callee c = {.stack_args = -1};
	memcpy(c.reads, conv->args.w, sizeof(c.reads));
	memcpy(c.changes, conv->changes.w, sizeof(c.changes));
	return c;
}

static struct dec_known *slot_of(struct dec *d, uint64_t va)
{
	uint32_t mask = d->known_cap - 1;
	for (uint32_t i = (uint32_t)(va * 0x9e3779b97f4a7c15 >> 32) & mask;; i = (i + 1) & mask)
		if (!d->known[i].is_used || d->known[i].va == va)
			return &d->known[i];
}

static bool grow(struct dec *d)
{
	struct dec_known *was = d->known;
	uint32_t cap = d->known_cap;
	if (cap && d->known_cnt * 2 < cap)
		return true;
	struct dec_known *bigger = ARENA_ARRAY(d->arena, struct dec_known, cap ? 2 * (size_t)cap : 32);
	if (!bigger)
		return false;
	d->known = bigger;
	d->known_cap = cap ? 2 * cap : 32;
	for (uint32_t i = 0; i < cap; i++)
		if (was[i].is_used)
			*slot_of(d, was[i].va) = was[i];
	return true;
}

struct dec_callee dec_callee_at(struct dec *d, const struct ir_func *f, const struct ir_rec *rec)
{
	uint64_t va;
	struct dec_callee c = conventional(&d->conv);
	if (!d->opts->callee || !dec_target(f, rec->a, &va) || !grow(d))
		return c;
	struct dec_known *k = slot_of(d, va);
	if (!k->is_used) {
		d->opts->callee(d->opts->ctx, va, &c);
		*k = (struct dec_known){va, true, c};
		d->known_cnt++;
	}
	return k->callee;
}

void dec_callee_plain(const struct ir_machine *m, unsigned args, struct dec_callee *ret)
{
	struct dec_conv conv;
	struct dec_set reads = {{0}};
	dec_conv_of(m, &conv);
	for (unsigned i = 0; i < m->loc_cnt && i < DEC_LOC_MAX; i++)
		if (dec_set_has(&conv.args, i) && dec_set_has(&conv.keeps, i))
			dec_set_add(&reads, i);
	for (unsigned i = 0; i < args && i < conv.int_arg_cnt; i++)
		dec_set_add(&reads, conv.int_arg[i]);
	/* Of i386 arguments are on the stack. */
	if (!conv.int_arg_cnt)
		return;
	memcpy(ret->reads, reads.w, sizeof(ret->reads));
	/* One that gives no result may leave alone where it would be. */
	memcpy(ret->may_keep, conv.results.w, sizeof(ret->may_keep));
	ret->stack_args = 0;
}

void dec_callee_of(struct ir_func *lifted, const struct dec_opts *opts, struct dec_callee *ret)
{
	struct dec d = {.opts = opts, .arena = lifted->arena, .f = lifted, .step_limit = lifted->rec_cnt * 20 + 20000};
	int32_t stack_args = -1;
	dec_conv_of(lifted->machine, &d.conv);
	struct err *e = dec_ssa_effects(&d, ret);
	if (!e)
		e = dec_ssa(&d);
	if (!e)
		e = dec_dead(&d);
	if (!e)
		e = dec_stack_args(&d, &stack_args);
	if (!e)
		ret->stack_args = stack_args;
	err_free(e);
}
