/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * System V ABI, AMD64 (3.2) and i386 (2.2), by the names of locations. Flags, segment selectors and what is above the low halves of vector
 * registers pass through nobody's hands; the direction flag and the control words are kept.
 */
enum role { R_NONE, R_ARG = 1, R_RESULT = 2, R_KEPT = 4, R_CHANGED = 8 };

static unsigned gpr_role_64(const char *n)
{
	static const struct {
		char name[4];
		uint8_t role;
	} roles[] = {
		{"rax", R_ARG | R_RESULT | R_CHANGED}, {"rcx", R_ARG | R_CHANGED}, {"rdx", R_ARG | R_RESULT | R_CHANGED},
		{"rbx", R_KEPT}, {"rsp", R_ARG | R_KEPT}, {"rbp", R_KEPT}, {"rsi", R_ARG | R_CHANGED}, {"rdi", R_ARG | R_CHANGED},
		{"r8", R_ARG | R_CHANGED}, {"r9", R_ARG | R_CHANGED}, {"r10", R_ARG | R_CHANGED}, {"r11", R_CHANGED},
	};
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (!strcmp(n, roles[i].name))
			return roles[i].role;
	return R_KEPT;
}

/* Registers may be arguments of local functions, too (regparm). */
static unsigned gpr_role_32(const char *n)
{
	if (!strcmp(n, "eax") || !strcmp(n, "edx"))
		return R_ARG | R_RESULT | R_CHANGED;
	if (!strcmp(n, "ecx"))
		return R_ARG | R_CHANGED;
	return !strcmp(n, "esp") ? R_ARG | R_KEPT : R_KEPT;
}

static unsigned role_of(const struct ir_loc *l, bool is_64)
{
	unsigned number = 0;
	switch (l->cls) {
	case IR_LOC_GPR:
		return is_64 ? gpr_role_64(l->name) : gpr_role_32(l->name);
	case IR_LOC_VEC:
		if (l->width != IR_W128)
			return R_CHANGED;
		number = (unsigned)strtoul(l->name + 3, NULL, 10);
		return R_CHANGED | (number < 8 ? R_ARG : 0u) | (number < 2 ? R_RESULT : 0u);
	case IR_LOC_X87:
		/* The place below the top at entry, and the next. */
		return R_CHANGED | (l->name[1] >= '6' ? R_RESULT : 0u);
	case IR_LOC_FLAG:
		return strcmp(l->name, "df") ? R_CHANGED : R_ARG | R_KEPT;
	case IR_LOC_CONTROL:
		return strcmp(l->name, "fsw") ? R_ARG | R_KEPT : R_CHANGED;
	case IR_LOC_BASE:
	case IR_LOC_SEG:
		return R_ARG | R_KEPT;
	default:
		return R_CHANGED;
	}
}

bool dec_is_canary(const struct dec *d, const struct ir_func *f, const struct ir_rec *rec)
{
	uint64_t off;
	if (rec->op != IR_LOAD || rec->width != f->machine->addr_width)
		return false;
	const struct ir_rec *sum = dec_rec(f, rec->a);
	const struct ir_rec *base = sum && sum->op == IR_ADD ? dec_rec(f, sum->a) : NULL;
	return base && base->op == IR_GET && base->aux == d->conv.canary_base && ir_const_get(f, sum->b, &off) && off == d->conv.canary_off;
}

static void make_conv(const struct ir_machine *m, struct dec_conv *ret)
{
	static const char order[6][4] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
	bool is_64 = m->addr_width == IR_W64;
	*ret = (struct dec_conv){.df = IR_LOC_NONE, .canary_base = IR_LOC_NONE, .canary_off = is_64 ? 0x28 : 0x14,
				 .ptr_bytes = ir_bits((enum ir_width)m->addr_width) / 8};
	for (unsigned i = 0; i < m->loc_cnt && i < DEC_LOC_MAX; i++) {
		const struct ir_loc *l = &m->locs[i];
		unsigned role = role_of(l, is_64);
		if (role & R_ARG)
			dec_set_add(&ret->args, i);
		if (role & R_RESULT)
			dec_set_add(&ret->results, i);
		if (role & R_KEPT)
			dec_set_add(&ret->keeps, i);
		if (role & R_CHANGED)
			dec_set_add(&ret->changes, i);
		if (l->cls == IR_LOC_FLAG && !strcmp(l->name, "df"))
			ret->df = (uint16_t)i;
		if (l->cls == IR_LOC_BASE && !strcmp(l->name, is_64 ? "fsbase" : "gsbase"))
			ret->canary_base = (uint16_t)i;
		for (unsigned k = 0; k < 6 && is_64 && l->cls == IR_LOC_GPR; k++)
			if (!strcmp(l->name, order[k]))
				ret->int_arg[k] = (uint16_t)i;
	}
	ret->int_arg_cnt = is_64 ? 6 : 0;
}

/* Each function is asked about, and each call; there are two machines. One with variables behind its locations has the same convention. */
void dec_conv_of(const struct ir_machine *m, struct dec_conv *ret)
{
	static _Thread_local const struct ir_loc *locs;
	static _Thread_local uint32_t loc_cnt;
	static _Thread_local struct dec_conv kept;
	if (locs != m->locs || loc_cnt != m->loc_cnt)
		make_conv(m, &kept);
	locs = m->locs;
	loc_cnt = m->loc_cnt;
	*ret = kept;
}
