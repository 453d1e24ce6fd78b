/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/arch_text.h"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct arch *arch_test_get(enum arch_id id)
{
	const struct arch *a = NULL;
	assert_null(arch_get(id, &a));
	assert_non_null(a);
	return a;
}

uint8_t *arch_test_hex(const char *hex, size_t *ret_len)
{
	uint8_t *out = malloc(strlen(hex) + 1);
	size_t n = 0;
	assert_non_null(out);
	for (const char *s = hex; *s;) {
		char *end;
		out[n++] = (uint8_t)strtoul(s, &end, 16);
		s = end + strspn(end, " ");
	}
	out = realloc(out, n);
	*ret_len = n;
	return out;
}

void arch_test_effect(const struct arch *a, const char *hex, uint64_t va, char *out, size_t cap)
{
	static const char *const ops[] = {"other", "const", "move", "lea", "load", "store", "add",
					  "sub",   "and",   "shl",  "shr", "cmp",  "test",
					  "insert"};
	size_t len;
	_cleanup_free_ uint8_t *bytes = arch_test_hex(hex, &len);
	struct arch_effect e;
	a->effect(a, bytes, len, va, &e);
	char *s = out;
	char *end = out + cap;
	s += snprintf(s, (size_t)(end - s), "%s", ops[e.op]);
	const struct {
		const char *name;
		uint8_t reg;
	} regs[] = {{"dst", e.dst}, {"src1", e.src1}, {"src2", e.src2}, {"base", e.base}, {"index", e.index}};
	for (size_t i = 0; i < ARRAY_LEN(regs); i++) {
		if (regs[i].reg != ARCH_REG_NONE)
			s += snprintf(s, (size_t)(end - s), " %s=%s", regs[i].name,
				      a->reg_name(a, regs[i].reg));
	}
	if (e.scale != 1)
		s += snprintf(s, (size_t)(end - s), " scale=%d", e.scale);
	if (e.imm)
		s += snprintf(s, (size_t)(end - s), " imm=%#lx", (unsigned long)e.imm);
	if (e.index_width)
		s += snprintf(s, (size_t)(end - s), " index_width=%d%s", e.index_width,
			      e.is_index_signed ? "s" : "");
	if (e.has_mem || e.op == ARCH_OP_INSERT || (e.op == ARCH_OP_SHR && e.cmp_imm))
		s += snprintf(s, (size_t)(end - s), " cmp_imm=%#lx", (unsigned long)e.cmp_imm);
	if (e.width)
		s += snprintf(s, (size_t)(end - s), " width=%d%s", e.width, e.is_signed ? "s" : "");
	if (e.ext_width)
		s += snprintf(s, (size_t)(end - s), " ext=%d", e.ext_width);
	if (e.cond)
		s += snprintf(s, (size_t)(end - s), " cond=%d", e.cond);
	if (!e.sp_is_known)
		s += snprintf(s, (size_t)(end - s), " sp=?");
	else if (e.sp_delta)
		s += snprintf(s, (size_t)(end - s), " sp=%d", e.sp_delta);
	s += snprintf(s, (size_t)(end - s), " writes=%#lx", (unsigned long)e.writes);
}
