/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinding through a program's tables: rows at addresses all over its code. Whatever the file says, a row has a base that is known. */
#include "fuzz.h"

#include "live/trace/trace_cfi.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fmt_bin *b;
	struct err *e = fmt_open(bytes, len, &b);
	if (e) {
		err_free(e);
		fuzz_rejected++;
		return 0;
	}
	b->machine = FMT_MACHINE_X86_64; /* tables of other machines are input like any other */
	size_t found = 0;
	for (size_t i = 0; i < b->segments.cnt && i < 8; i++) {
		const struct fmt_segment *s = &b->segments.data[i];
		for (uint64_t k = 0; k < 16; k++) {
			struct trace_cfi_row row;
			struct trace_cfi_saved saved;
			uint64_t va = s->va + s->mem_len / 16 * k + k;
			if (!trace_cfi_find_saved(b, va, &row, &saved))
				continue;
			found++;
			for (int r = 0; r < TRACE_CFI_KEPT; r++)
				if (saved.where[r] > TRACE_CFI_LOST)
					abort();
			size_t left = 0;
			if (row.base > TRACE_CFA_BP || (trace_cfi_bytes(b, va, &left) && !left))
				abort();
		}
	}
	if (found)
		fuzz_accepted++;
	fmt_bin_free(b);
	return 0;
}
