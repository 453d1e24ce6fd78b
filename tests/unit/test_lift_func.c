/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole functions: lifted as one and run, against the same bytes lifted and run one instruction at a time, where nothing
 * is lazy. What single instructions mean the processor has said (test_lift_native.c); here it is blocks, flags between them,
 * jump tables and calls. Registers, memory and where control leaves must agree.
 */
#include "ir/ir_interp.h"
#include "lib/analyzed.h"
#include "lift/lift_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STEPS_MAX 300
#define SEEDS 3

static unsigned long agreed_cnt, cut_cnt, insn_cnt;

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 31) * 0x9e3779b97f4a7c15;
	v = (v ^ v >> 29) * 0xbf58476d1ce4e5b9;
	return v ^ v >> 32;
}

/* A function of the address: small numbers, pointers, anything. */
static bool fill(void *ctx, struct ir_page *p)
{
	uint64_t seed = *(const uint64_t *)ctx;
	for (unsigned i = 0; i < IR_PAGE_LEN; i += 8) {
		uint64_t r = mix(seed ^ (p->va + i)), v = r;
		if (r >> 62 < 2)
			v = r & 15;
		else if (r >> 62 == 2)
			v = 0x40000000 + (r & 0xfffff8);
		memcpy(p->bytes + i, &v, 8);
	}
	return true;
}

static void set_start(struct ir_val *locs, const struct ir_machine *m, uint64_t seed)
{
	memset(locs, 0, m->loc_cnt * sizeof(*locs));
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		for (unsigned k = 0; k < ir_words((enum ir_width)m->locs[i].width); k++) {
			uint64_t r = mix(seed * 977 + i * 8 + k);
			locs[i].w[k] = m->locs[i].cls == IR_LOC_GPR && r & 1 ? 0x40000000 + (r >> 8 & 0xffff8) : r >> (r & 31);
		}
		unsigned bits = ir_bits((enum ir_width)m->locs[i].width);
		if (bits % 64)
			locs[i].w[bits / 64] &= ((uint64_t)1 << bits % 64) - 1;
	}
	locs[ir_loc_find(m, "df", 2)].w[0] = 0;
	locs[m->sp_loc].w[0] = 0x30008000;
}

/* What a callee does here: takes its return address off, leaves a number and known flags. */
static bool call(struct ir_run *r, uint64_t va)
{
	const struct ir_machine *m = r->func->machine;
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		if (m->locs[i].cls == IR_LOC_FLAG || m->locs[i].cls == IR_LOC_X87)
			r->locs[i] = (struct ir_val){.w = {0}};
	}
	r->locs[m->sp_loc].w[0] += ir_bits((enum ir_width)m->addr_width) / 8;
	r->locs[0] = (struct ir_val){.w = {mix(va) & 0xffffff}};
	return true;
}

static bool intrin(struct ir_run *r, const struct ir_intrin *in, const struct ir_val *args, struct ir_val *out)
{
	for (unsigned i = 0; i < in->out_cnt; i++)
		out[i].w[0] = mix(in->va + i);
	return true;
}

/* Bytes of the function at `va`; 0 when it is no part of it. */
static size_t bytes_at(const struct image *im, uint32_t func, uint64_t va, const uint8_t **ret)
{
	const struct space *s = image_space(im);
	uint32_t cnt, loc = space_loc(s, va);
	size_t len = 0;
	const struct image_range *r = image_func_ranges(im, func, &cnt);
	for (uint32_t i = 0; i < cnt && loc != LOC_NONE; i++) {
		if (loc - r[i].loc < r[i].len) {
			*ret = space_bytes(s, loc, &len);
			return len;
		}
	}
	return 0;
}

/* A single instruction names the x87 registers by their place at its own entry. */
static void rotate_x87(struct ir_run *r, int delta)
{
	const uint16_t f0 = ir_loc_find(r->func->machine, "f0", 2);
	struct ir_val was[8];
	memcpy(was, &r->locs[f0], sizeof(was));
	for (int i = 0; i < 8; i++)
		r->locs[f0 + i] = was[(i + delta) & 7];
}

/* One instruction after the other until control leaves; false: not within STEPS_MAX, or it hangs on what is undefined. */
static bool walk(const struct image *im, uint32_t func, struct ir_run *r, uint64_t va)
{
	struct arena a = {0};
	bool is_done = false;
	for (unsigned i = 0; i < STEPS_MAX && !is_done; i++) {
		const uint8_t *p = NULL;
		struct lift_insn in;
		size_t len = bytes_at(im, func, va, &p);
		if (i > 0 && (r->exit == IR_EXIT_RET || !len)) {
			is_done = true;
			break;
		}
		arena_reset(&a);
		struct err *e = lift_insn(&a, (enum arch_id)image_meta(im)->arch, p, len, va, &in);
		if (e)
			fail_msg("%s", e->text);
		r->func = in.func;
		r->arena = &a;
		ir_interp(r);
		rotate_x87(r, in.x87_delta);
		insn_cnt++;
		if (r->exit != IR_EXIT_JUMP && r->exit != IR_EXIT_RET)
			break;
		va = r->va;
	}
	arena_fini(&a);
	return is_done || r->exit == IR_EXIT_TRAP || r->exit == IR_EXIT_FAULT;
}

static void compare(const struct image *im, uint32_t func, const struct ir_run *whole, const struct ir_run *steps)
{
	const struct ir_machine *m = whole->func->machine;
	unsigned long long va = (unsigned long long)whole->func->va;
	if (whole->exit != steps->exit || (whole->exit != IR_EXIT_TRAP && whole->va != steps->va))
		fail_msg("%llx: ends in %s %lx, singly in %s %lx", va, ir_exit_name(whole->exit), whole->va, ir_exit_name(steps->exit),
			 steps->va);
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		bool is_flag = m->locs[i].cls == IR_LOC_FLAG && strcmp(m->locs[i].name, "df");
		bool is_unknown = whole->locs[i].is_undef || steps->locs[i].is_undef;
		/* Those of the x87 are named differently. */
		if (is_flag || is_unknown || m->locs[i].cls == IR_LOC_X87)
			continue;
		if (memcmp(whole->locs[i].w, steps->locs[i].w, sizeof(whole->locs[i].w)))
			fail_msg("%llx: %s is %lx, singly %lx", va, m->locs[i].name, whole->locs[i].w[0], steps->locs[i].w[0]);
	}
	for (uint32_t i = 0; i < steps->mem->page_cap; i++) {
		const struct ir_page *p = steps->mem->pages[i];
		if (!p || !p->is_written || p->undef)
			continue;
		const struct ir_page *q = ir_mem_page(whole->mem, p->va);
		assert_non_null(q);
		for (unsigned k = 0; k < IR_PAGE_LEN && !q->undef; k++) {
			if (p->bytes[k] != q->bytes[k])
				fail_msg("%llx: memory at %lx is %x, singly %x", va, p->va + k, q->bytes[k], p->bytes[k]);
		}
	}
}

static void try_func(const struct image *im, uint32_t func, struct ir_func *f, uint64_t seed)
{
	struct arena a = {0};
	struct ir_mem mem_a = {.arena = &a, .fill = fill, .ctx = &seed}, mem_b = {.arena = &a, .fill = fill, .ctx = &seed};
	struct ir_val *locs_a = ARENA_ARRAY(&a, struct ir_val, f->machine->loc_cnt);
	struct ir_val *locs_b = ARENA_ARRAY(&a, struct ir_val, f->machine->loc_cnt);
	assert_true(locs_a && locs_b);
	set_start(locs_a, f->machine, seed);
	set_start(locs_b, f->machine, seed);
	struct ir_run whole = {.func = f, .arena = &a, .locs = locs_a, .mem = &mem_a, .step_limit = 20000, .call = call, .intrin = intrin};
	struct ir_run steps = {.locs = locs_b, .mem = &mem_b, .step_limit = 20000, .call = call, .intrin = intrin};
	bool is_end = walk(im, func, &steps, f->va);
	if (is_end) {
		ir_interp(&whole);
		whole.func = f;
		bool is_end_known = whole.exit != IR_EXIT_TRAP || whole.kind != IR_TRAP_END;
		is_end = whole.exit != IR_EXIT_BUDGET && whole.exit != IR_EXIT_UNKNOWN && is_end_known;
	}
	if (is_end) {
		compare(im, func, &whole, &steps);
		agreed_cnt++;
	} else {
		cut_cnt++;
	}
	arena_fini(&a);
}

static void try_image(const struct image *im)
{
	struct arena a = {0};
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		struct ir_func *f;
		struct lift_stats st;
		int seg = space_seg_of_loc(image_space(im), funcs[i].loc);
		if (seg < 0 || image_space(im)->segs[seg].is_extern)
			continue;
		arena_reset(&a);
		struct err *e = lift_image_func(&a, im, i, &f, &st);
		if (!e)
			e = ir_check(f);
		if (e)
			fail_msg("%x: %s", funcs[i].loc, e->text);
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			try_func(im, i, f, seed);
	}
	arena_fini(&a);
}

static void try_file(const char *path)
{
	struct analyzed a = {0};
	struct err *e = analyzed_open(path, &a);
	if (e)
		fail_msg("%s: %s", path, e->text);
	try_image(a.im);
	analyzed_close(&a);
}

static void test_whole_and_singly(void **state)
{
	const char *const *paths = *state;
	for (; *paths; paths++)
		try_file(*paths);
	print_message("%lu runs agree, %lu were cut short, %lu instructions singly\n", agreed_cnt, cut_cnt, insn_cnt);
	assert_true(agreed_cnt > 100);
}

int main(int argc, char **argv)
{
	static const char *const some[] = {"/bin/ls", "/usr/lib/x86_64-linux-gnu/libz.so.1", NULL};
	static const char *const *paths = some;
	if (argc > 1)
		paths = (const char *const *)(argv + 1);
	const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_whole_and_singly, (void *)(uintptr_t)paths)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
