/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables and the landing pads they lead to, of any file our reader opens. */
#include "fuzz.h"

#include "debuginfo/dbg.h"

static void check_fdes(const struct fmt_bin *b, const struct dbg_fdes *fdes)
{
	for (size_t i = 0; i < fdes->list.cnt; i++) {
		const struct dbg_fde *x = &fdes->list.data[i];
		const struct fmt_segment *s = fmt_segment_at(b, x->va);
		if (!s || !(s->perm & FMT_X) || !x->len || x->len > s->mem_len - (x->va - s->va))
			abort();
		if (i && fdes->list.data[i - 1].va > x->va)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fmt_bin *b = NULL;
	struct err *e = fmt_open(bytes, len, &b);
	if (e) {
		err_free(e);
		return 0;
	}
	struct dbg_fdes fdes = {0};
	struct dbg_addrs pads = {0};
	struct findings f = {0};
	e = dbg_read_eh_frame(b, &fdes, &f);
	for (size_t i = 0; !e && i < fdes.list.cnt; i++)
		e = dbg_read_lsda(b, &fdes.list.data[i], &pads);
	if (e)
		abort(); /* there was memory */
	check_fdes(b, &fdes);
	/* Each record has eight bytes at least, and is taken twice at most. */
	if (fdes.list.cnt > len / 4 || pads.list.cnt > 2 * len)
		abort();
	fuzz_accepted += fdes.list.cnt > 0;
	fuzz_rejected += f.list.cnt > 0;
	VEC_FREE(&fdes.list);
	VEC_FREE(&pads.list);
	findings_fini(&f);
	fmt_bin_free(b);
	return 0;
}
