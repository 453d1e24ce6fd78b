/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"

#include <string.h>

/* The machine whose code is not known: nothing is an instruction, so that a program of any machine still has
 * segments, names, strings and bytes, and nobody above asks whether there is a decoder. */
static void none_decode(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_insn *ret)
{
	(void)a, (void)p, (void)len, (void)va;
	*ret = (struct arch_insn){.len = 1, .flow = ARCH_FLOW_INVALID};
}

static void none_effect(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_effect *ret)
{
	(void)a, (void)p, (void)len, (void)va;
	*ret = (struct arch_effect){.op = ARCH_OP_OTHER, .writes = UINT64_MAX, .dst = ARCH_REG_NONE,
				    .src1 = ARCH_REG_NONE, .src2 = ARCH_REG_NONE, .base = ARCH_REG_NONE,
				    .index = ARCH_REG_NONE};
}

static size_t none_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
			  const struct arch_names *names, struct arch_text *ret)
{
	static const char bad[] = "(bad)";
	(void)a, (void)p, (void)len, (void)va, (void)names;
	ret->len = sizeof(bad) - 1;
	ret->span_cnt = 0;
	memcpy(ret->text, bad, sizeof(bad));
	return 1;
}

static const char *none_reg_name(const struct arch *a, uint8_t r)
{
	(void)a, (void)r;
	return "";
}

const struct arch arch_none = {
	.name = "unknown",
	.id = ARCH_ID_NONE,
	.bits = 64,
	.align = 1,
	.min_len = 1,
	.max_len = 1,
	.sp_reg = ARCH_REG_NONE,
	.link_reg = ARCH_REG_NONE,
	.func_align = 1,
	.decode = none_decode,
	.effect = none_effect,
	.format = none_format,
	.reg_name = none_reg_name,
};
