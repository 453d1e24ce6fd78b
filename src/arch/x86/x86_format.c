/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_int.h"

#include <string.h>

size_t x86_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, arch_name_fn *name,
		  void *name_ctx, struct arch_text *ret)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisFormatter f;
	if (!ZYAN_SUCCESS(ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_INTEL)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(x86_decoder(a), p, len, &in, ops)) ||
	    !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&f, &in, ops, in.operand_count_visible, ret->text,
							  sizeof(ret->text), va, NULL))) {
		memcpy(ret->text, "(bad)", 6);
		ret->len = 5;
		ret->span_cnt = 0;
		return 1;
	}
	ret->len = (uint8_t)strlen(ret->text);
	ret->span_cnt = 0;
	return in.length;
}
