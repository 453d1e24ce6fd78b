/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "debuginfo/dbg.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena a = {0};
	struct fmt_str s = dbg_demangle(&a, (const char *)bytes, len);
	if (s.len > 16384 || !s.s != !s.len)
		abort();
	fuzz_accepted += s.s != NULL;
	fuzz_rejected += s.s == NULL;
	arena_fini(&a);
	return 0;
}
