/* SPDX-License-Identifier: Apache-2.0 */
/* Go's function table: the input, after a byte of options, is a program's read-only data beside made-up code. */
#include "fuzz.h"

#include "debuginfo/dbg.h"

#define CODE_VA 0x400000u
#define CODE_LEN 0x100000u
#define DATA_VA 0x10000u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len < 2 || len > CODE_VA - DATA_VA)
		return 0;
	struct fmt_bin b = {.kind = FMT_ELF, .bits = bytes[0] & 1 ? 32 : 64, .is_be = bytes[0] & 2,
			    .bytes = bytes + 1, .bytes_len = len - 1};
	struct fmt_segment segments[] = {
		{.va = DATA_VA, .mem_len = len - 1, .file_len = len - 1, .perm = FMT_R},
		{.va = CODE_VA, .mem_len = CODE_LEN, .perm = FMT_R | FMT_X},
	};
	struct fmt_section section = {.name = {".gopclntab", 10}, .va = DATA_VA, .mem_len = len - 1,
				      .file_len = len - 1, .kind = FMT_SEC_GOPCLNTAB, .is_alloc = true};
	b.segments.data = segments;
	b.segments.cnt = 2;
	b.sections.data = &section;
	b.sections.cnt = bytes[0] & 4 ? 1 : 0;
	struct dbg_funcs funcs = {0};
	struct findings f = {0};
	struct err *e = dbg_read_pclntab(&b, &funcs, &f);
	if (e)
		abort();
	for (size_t i = 0; i < funcs.list.cnt; i++) {
		const struct dbg_func *x = &funcs.list.data[i];
		const char *end = (const char *)bytes + len;
		if (x->va < CODE_VA || x->len > CODE_VA + CODE_LEN - x->va || !x->name.len || x->name.s + x->name.len > end ||
		    (i && funcs.list.data[i - 1].va > x->va))
			abort();
	}
	fuzz_accepted += funcs.list.cnt > 0;
	fuzz_rejected += funcs.list.cnt == 0;
	VEC_FREE(&funcs.list);
	arena_fini(&funcs.arena);
	findings_fini(&f);
	return 0;
}
