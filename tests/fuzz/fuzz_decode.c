/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Input: machine code, walked from its first byte under every architecture. What must hold for any
 * bytes: lengths stay in bounds and agree between decode() and format(), references and registers are
 * in range, the text is printable and its spans lie in it in order.
 */
#define CHECK(cond)                                                                   \
	do {                                                                          \
		if (!(cond)) {                                                        \
			fprintf(stderr, "fuzz_decode: %s:%d: %s\n", a->name, __LINE__, #cond); \
			abort();                                                      \
		}                                                                     \
	} while (0)

#define VA 0x7ffffff0

/* Names of every length, so that cutting is seen as well. */
static size_t name_of(void *ctx, uint64_t va, char *out, size_t cap)
{
	size_t len = (size_t)(va % 300);
	if (len > cap)
		len = cap;
	memset(out, 'n', len);
	return len;
}

static void check_text(const struct arch *a, const struct arch_text *t)
{
	CHECK(t->len > 0 && t->len < ARCH_TEXT_MAX && t->text[t->len] == 0);
	CHECK(t->span_cnt <= ARCH_SPAN_MAX);
	for (unsigned i = 0; i < t->len; i++)
		CHECK(t->text[i] >= 0x20 && t->text[i] < 0x7f);
	unsigned at = 0;
	for (unsigned i = 0; i < t->span_cnt; i++) {
		CHECK(t->spans[i].off >= at && t->spans[i].len > 0);
		at = t->spans[i].off + t->spans[i].len;
		CHECK(at <= t->len && t->spans[i].kind <= ARCH_TOK_NAME);
	}
}

static void check_reg(const struct arch *a, uint8_t r)
{
	CHECK(r == ARCH_REG_NONE || r < a->reg_cnt);
}

static void check_effect(const struct arch *a, const struct arch_effect *e)
{
	check_reg(a, e->dst);
	check_reg(a, e->src1);
	check_reg(a, e->src2);
	check_reg(a, e->base);
	check_reg(a, e->index);
	CHECK(e->op <= ARCH_OP_INSERT && e->cond <= ARCH_COND_OTHER);
	CHECK(a->reg_cnt == 64 || e->writes >> a->reg_cnt == 0);
	CHECK(e->dst == ARCH_REG_NONE || (e->writes >> e->dst & 1));
	CHECK(e->sp_delta == 0 || e->sp_is_known);
}

/* One instruction; gives its length. */
static size_t step(const struct arch *a, const uint8_t *p, size_t len, uint64_t va)
{
	struct arch_insn in;
	struct arch_text text;
	struct arch_text named;
	a->decode(a, p, len, va, &in);
	CHECK(in.len > 0 && in.len <= len && in.len <= a->max_len);
	CHECK(in.ref_cnt <= ARCH_REF_MAX && in.flow <= ARCH_FLOW_INVALID);
	for (unsigned i = 0; i < in.ref_cnt; i++)
		CHECK(in.refs[i].kind <= ARCH_REF_OFFSET && (a->bits == 64 || in.refs[i].va <= UINT32_MAX));
	CHECK(a->bits == 64 || in.target <= UINT32_MAX);
	size_t n = a->format(a, p, len, va, NULL, &text);
	CHECK(n > 0 && n <= len && n <= a->max_len);
	check_text(a, &text);
	const struct arch_names names = {name_of, NULL};
	CHECK(a->format(a, p, len, va, &names, &named) == n);
	check_text(a, &named);
	if (in.flow == ARCH_FLOW_INVALID) {
		fuzz_rejected++;
		return in.len;
	}
	CHECK(n == in.len);
	fuzz_accepted++;
	struct arch_effect e;
	a->effect(a, p, len, va, &e);
	check_effect(a, &e);
	return in.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	for (enum arch_id id = ARCH_ID_X86_64; id < ARCH_ID_COUNT; id++) {
		const struct arch *a;
		struct err *e = arch_get(id, &a);
		if (e) {
			err_free(e);
			continue;
		}
		size_t cut = len < 4096 ? len : 4096;
		/* Exactly as long as the code, so that a read past its end is caught. */
		uint8_t *copy = (uint8_t *)malloc(cut ? cut : 1);
		if (!copy)
			return 0;
		memcpy(copy, bytes, cut);
		for (size_t i = 0; i < cut;)
			i += step(a, copy + i, cut - i, VA + i);
		free(copy);
	}
	return 0;
}
